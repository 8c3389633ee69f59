/* SPDX-License-Identifier: Apache-2.0 */
/* The owner map of managed pages: what each kind of note does, the order in which they become the map, and random notes
 * against a model that sorts all of them and goes through them one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "paging/owners.h"

static void note(owners *o, uint32_t device, uint64_t address, uint64_t time, owners_kind kind) {
  owners_note(o, device, (owners_event){.address = address, .time = time, .from = OWNERS_HOST, .kind = (uint8_t)kind});
}

static void test_kinds(void **state) {
  owners *o = owners_create();
  assert_int_equal(owners_of(o, 0), 0);
  note(o, 3, 4096, 10, OWNERS_TAKES);
  assert_int_equal(owners_of(o, 4096), 0); /* until they meet */
  owners_merge(o);
  assert_int_equal(owners_of(o, 4096), 1 << 3);
  note(o, 15, 4096, 20, OWNERS_COPIES);
  owners_merge(o);
  assert_int_equal(owners_of(o, 4096), 1 << 3 | 1 << 15);
  note(o, 3, 4096, 30, OWNERS_GIVES);
  owners_merge(o);
  assert_int_equal(owners_of(o, 4096), 1 << 15);
  note(o, 0, 4096, 40, OWNERS_TAKES);
  note(o, 15, 4096, 40, OWNERS_GIVES); /* at the same time: the lower number was first */
  owners_merge(o);
  assert_int_equal(owners_of(o, 4096), 1 << 0);
  assert_int_equal(owners_of(o, 0), 0);
  owners_free(o);
}

static void test_order(void **state) {
  owners *o = owners_create();
  size_t count;
  note(o, 1, 0, 50, OWNERS_TAKES);
  note(o, 1, 0, 40, OWNERS_GIVES); /* noted later: not before what was noted first */
  note(o, 0, 0, 45, OWNERS_TAKES);
  owners_merge(o);
  const owners_event *events = owners_events(o, &count);
  assert_int_equal(count, 3);
  assert_int_equal(events[0].device, 0);
  assert_int_equal(events[1].device, 1);
  assert_int_equal(events[1].kind, OWNERS_TAKES);
  assert_int_equal(events[2].kind, OWNERS_GIVES);
  assert_int_equal(events[2].time, 50);
  assert_int_equal(owners_of(o, 0), 0);
  owners_merge(o); /* each note counts once */
  owners_events(o, &count);
  assert_int_equal(count, 0);
  owners_free(o);
}

static void test_what_was_carried(void **state) {
  owners *o = owners_create();
  size_t count;
  owners_carried(o, 2, (owners_transfer){.bytes = 7, .begins = 1, .from = 1, .to = 2});
  owners_say_busy(o, 1, OWNERS_OUT_SWITCH, 99);
  assert_int_equal(owners_busy(o, 1, OWNERS_OUT_SWITCH), 0);
  owners_merge(o);
  assert_int_equal(owners_busy(o, 1, OWNERS_OUT_SWITCH), 99);
  assert_int_equal(owners_busy(o, 1, OWNERS_OUT_BUS), 0);
  const owners_transfer *transfers = owners_transfers(o, &count);
  assert_int_equal(count, 1);
  assert_int_equal(transfers[0].bytes, 7);
  assert_int_equal(transfers[0].from, 1);
  owners_merge(o);
  owners_transfers(o, &count);
  assert_int_equal(count, 0);
  owners_free(o);
}

/* ---- random notes ---- */

enum { PAGES = 5000, DEVICES = OWNERS_DEVICES, NOTES = 400, MEETINGS = 300 };

typedef struct model_note {
  owners_event event;
  uint32_t number;
} model_note;

static uint64_t seed;
static uint64_t draw(uint64_t below) {
  seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (seed >> 33) % below;
}

static int in_order(const void *a, const void *b) {
  const model_note *x = a, *y = b;
  if (x->event.time != y->event.time) return x->event.time < y->event.time ? -1 : 1;
  if (x->event.device != y->event.device) return x->event.device < y->event.device ? -1 : 1;
  return x->number < y->number ? -1 : 1;
}

static void test_random_notes(void **state) {
  owners *o = owners_create();
  static bool held[PAGES][DEVICES];
  static model_note notes[NOTES];
  uint64_t latest[DEVICES] = {0};
  memset(held, 0, sizeof held);
  seed = 7;
  for (uint32_t m = 0; m < MEETINGS; m++) {
    uint32_t count = (uint32_t)draw(NOTES + 1);
    memset(latest, 0, sizeof latest);
    for (uint32_t i = 0; i < count; i++) {
      uint32_t device = (uint32_t)draw(DEVICES);
      uint64_t time = draw(50), page = draw(m < 20 ? 20 : PAGES);
      notes[i] = (model_note){{.address = page << 12, .from = OWNERS_HOST, .kind = (uint8_t)draw(3)}, i};
      note(o, device, page << 12, time, (owners_kind)notes[i].event.kind);
      if (latest[device] < time) latest[device] = time;
      notes[i].event.device = (uint8_t)device;
      notes[i].event.time = latest[device];
    }
    if (count) qsort(notes, count, sizeof *notes, in_order);
    owners_merge(o);
    size_t merged;
    const owners_event *events = owners_events(o, &merged);
    assert_int_equal(merged, count);
    for (uint32_t i = 0; i < count; i++) {
      bool *page = held[notes[i].event.address >> 12];
      assert_int_equal(events[i].address, notes[i].event.address);
      assert_int_equal(events[i].device, notes[i].event.device);
      assert_int_equal(events[i].kind, notes[i].event.kind);
      if (notes[i].event.kind == OWNERS_TAKES) memset(page, 0, sizeof held[0]);
      page[notes[i].event.device] = notes[i].event.kind != OWNERS_GIVES;
    }
    for (uint32_t p = 0; p < PAGES; p++)
      for (uint32_t d = 0; d < DEVICES; d++) assert_int_equal(owners_of(o, (uint64_t)p << 12) >> d & 1, held[p][d]);
  }
  owners_free(o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_kinds), cmocka_unit_test(test_order),
                                     cmocka_unit_test(test_what_was_carried), cmocka_unit_test(test_random_notes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
