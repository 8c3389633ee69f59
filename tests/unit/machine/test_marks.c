/* SPDX-License-Identifier: Apache-2.0 */
/* Units that change one behind the other are marked at once: what pages the page table maps by, and what policies are
 * told, is as if each had been marked by itself. */
#include "rig.h"

enum { PAGES = FF_GROUP_BYTES / FF_PAGE_BYTES, MAX_NOTES = 64 };

typedef struct note {
  uint64_t address, bytes;
  bool yes; /* one page maps it from now on; or it has arrived */
} note;

typedef struct notes {
  note items[MAX_NOTES];
  size_t count;
} notes;

typedef struct bed {
  notes remapped, told;
  uint64_t fetched;
  uint32_t flight; /* the far-fault's */
  bool writes;     /* the access that asks */
} bed;

static bed *told_bed; /* of the policy, which gets no context */

static void note_add(notes *n, uint64_t address, uint64_t bytes, bool yes) {
  assert_true(n->count < MAX_NOTES);
  n->items[n->count++] = (note){address, bytes, yes};
}

static void assert_note(const notes *n, size_t index, uint64_t address, uint64_t bytes, bool yes) {
  assert_true(index < n->count);
  assert_int_equal(n->items[index].address, address);
  assert_int_equal(n->items[index].bytes, bytes);
  assert_int_equal(n->items[index].yes, yes);
}

static uint64_t on_fetch(void *context, const fault_request *request, uint64_t address, uint64_t bytes, uint32_t flight,
                         const pager_unit *first, uint64_t room) {
  ((bed *)context)->fetched += bytes;
  return 1;
}
static uint64_t on_start(void *context, fault_request *request, uint64_t address, uint32_t flight,
                         const pager_unit *unit, uint64_t room) {
  ((bed *)context)->flight = flight;
  return 1;
}
static void on_wake(void *context, uint32_t sm, uint32_t warp, uint64_t address) {}
static bool on_writes(void *context, uint32_t warp) { return ((bed *)context)->writes; }
static uint64_t on_evicted(void *context, const fault_request *request, uint64_t address, const pager_unit *unit,
                           bool write_back) {
  return 0;
}
static void on_left(void *context, uint64_t address, pager_unit *unit) {}
static void on_moved(void *context, uint32_t owner, bool in, uint64_t bytes) {}
static void on_remapped(void *context, uint64_t address, uint64_t bytes, bool whole) {
  note_add(&((bed *)context)->remapped, address, bytes, whole);
}

/* Evicts the group at RIG_BASE, and notes what it is told; what it is told of is as the view shows it. */
static void tell(ff_view *view, uint64_t address, uint64_t bytes, bool arrived) {
  ff_block block;
  view->block(view, address, &block);
  uint32_t page = address % FF_BLOCK_BYTES / FF_PAGE_BYTES;
  assert_int_equal(block.valid.word[page / 64] >> page % 64 & 1, arrived);
  note_add(&told_bed->told, address, bytes, arrived);
}
static void arrived(void *state, ff_view *view, uint64_t address, uint64_t bytes) { tell(view, address, bytes, true); }
static void left(void *state, ff_view *view, uint64_t address, uint64_t bytes) { tell(view, address, bytes, false); }
static void evict(void *state, ff_view *view, uint64_t bytes) { view->propose(view, RIG_BASE, FF_GROUP_BYTES); }
static const ff_policy first_group = {
    .version = FF_POLICY_VERSION, .name = "first", .summary = "", .evict = evict, .arrived = arrived, .left = left};

/* Two groups, one of which fits into memory. */
static pager *make(bed *b, const char *manager_name) {
  *b = (bed){0};
  told_bed = b;
  pager_config config = {.manager = manager_find(manager_name),
                         .evict = &first_group,
                         .unit_bytes = FF_PAGE_BYTES,
                         .least_leaf = FF_PAGE_BYTES,
                         .largest_leaf = FF_GROUP_BYTES,
                         .memory_bytes = FF_GROUP_BYTES,
                         .sms = 1,
                         .allotment = 1,
                         .hooks = {.context = b,
                                   .start = on_start,
                                   .wake = on_wake,
                                   .writes = on_writes,
                                   .fetch = on_fetch,
                                   .evicted = on_evicted,
                                   .left = on_left,
                                   .moved = on_moved,
                                   .remapped = on_remapped}};
  pager *p = pager_create(&config);
  assert_true(pager_map(p, RIG_BASE, 2 * FF_GROUP_BYTES, TRACE_MEMORY_MANAGED, 0));
  return p;
}

/* Brings the group in one flight, which lands. */
static void bring(bed *b, pager *p, uint64_t group) {
  assert_int_equal(pager_request(p, &(fault_request){.declared = true}, group, FF_GROUP_BYTES), FF_GROUP_BYTES);
  assert_int_equal(b->fetched, FF_GROUP_BYTES);
  b->fetched = 0;
  const pager_unit *unit = pager_find(p, group);
  assert_int_equal(unit->state, PAGER_IN_FLIGHT);
  if (unit->departs) pager_depart(p, unit->flight);
  pager_complete(p, unit->flight);
  assert_int_equal(unit->state, PAGER_RESIDENT);
  pager_check_all(p);
}

/* To plug-ins each page by itself, in order of address, when all of them had come or gone. */
static void test_told_of_each(void **state) {
  bed b;
  pager *p = make(&b, "replay");
  bring(&b, p, RIG_BASE);
  assert_int_equal(b.told.count, PAGES);
  for (size_t i = 0; i < PAGES; i++) assert_note(&b.told, i, RIG_BASE + i * FF_PAGE_BYTES, FF_PAGE_BYTES, true);
  b.told.count = 0;
  assert_true(pager_make_room(p, NULL, FF_PAGE_BYTES));
  assert_int_equal(b.told.count, PAGES);
  for (size_t i = 0; i < PAGES; i++) assert_note(&b.told, i, RIG_BASE + i * FF_PAGE_BYTES, FF_PAGE_BYTES, false);
  pager_free(p);
}

/* To policies of this program all at once. */
static void test_told_of_all(void **state) {
  bed b;
  pager *p = make(&b, "replay");
  p->config.tells_runs = true;
  bring(&b, p, RIG_BASE);
  assert_int_equal(b.told.count, 1);
  assert_note(&b.told, 0, RIG_BASE, FF_GROUP_BYTES, true);
  assert_true(pager_make_room(p, NULL, FF_PAGE_BYTES));
  assert_int_equal(b.told.count, 2);
  assert_note(&b.told, 1, RIG_BASE, FF_GROUP_BYTES, false);
  pager_free(p);
}

/* Where the GPU reaches what is the CPU's, a group is one page before and after it goes; but another one. */
static void test_one_page_elsewhere(void **state) {
  bed b;
  pager *p = make(&b, "auto");
  pager_find(p, RIG_BASE);
  assert_int_equal(b.remapped.count, 2); /* both groups are the CPU's, whole */
  b.remapped.count = 0;
  bring(&b, p, RIG_BASE);
  assert_int_equal(b.remapped.count, 2);
  assert_note(&b.remapped, 0, RIG_BASE, FF_GROUP_BYTES, false);
  assert_note(&b.remapped, 1, RIG_BASE, FF_GROUP_BYTES, true);
  b.remapped.count = 0;
  assert_true(pager_make_room(p, NULL, FF_PAGE_BYTES));
  assert_int_equal(b.remapped.count, 2);
  assert_note(&b.remapped, 0, RIG_BASE, FF_GROUP_BYTES, false);
  assert_note(&b.remapped, 1, RIG_BASE, FF_GROUP_BYTES, true);
  pager_free(p);
}

/* Where it does not, it is split once when the first page goes, and whole when the last one has come. */
static void test_one_page_or_none(void **state) {
  bed b;
  pager *p = make(&b, "replay");
  bring(&b, p, RIG_BASE);
  assert_int_equal(b.remapped.count, 1);
  assert_note(&b.remapped, 0, RIG_BASE, FF_GROUP_BYTES, true);
  assert_true(pager_make_room(p, NULL, FF_PAGE_BYTES));
  assert_int_equal(b.remapped.count, 2);
  assert_note(&b.remapped, 1, RIG_BASE, FF_GROUP_BYTES, false);
  pager_free(p);
}

static void fault(bed *b, pager *p, bool writes) {
  bool blocks;
  b->writes = writes;
  assert_int_equal(pager_fault(p, &(fault_request){0}, RIG_BASE, pager_find(p, RIG_BASE), &blocks), PAGER_STARTED);
  pager_complete(p, b->flight);
  pager_check_all(p);
}

/* A page that becomes writable was there before: what it was used for last is known still. */
static void test_writable(void **state) {
  bed b;
  pager *p = make(&b, "replay");
  pager_advise(p, RIG_BASE, FF_GROUP_BYTES, TRACE_ADVICE_SET_READ_MOSTLY, 0);
  fault(&b, p, false);
  pager_unit *unit = pager_find(p, RIG_BASE);
  assert_true(unit->state == PAGER_RESIDENT && unit->duplicate);
  p->now = 5;
  pager_gpu_read(p, unit, RIG_BASE);
  p->now = 9;
  assert_int_equal(p->view.last_use(&p->view, RIG_BASE, FF_GROUP_BYTES), 5);
  fault(&b, p, true);
  assert_true(unit->state == PAGER_RESIDENT && !unit->duplicate);
  assert_int_equal(unit->last_use, 5);
  assert_int_equal(p->view.last_use(&p->view, RIG_BASE, FF_GROUP_BYTES), 5);
  pager_free(p);
}

/* Three allocations in one page: each has a unit, whichever goes and comes. */
static void test_shared_window(void **state) {
  bed b;
  pager *p = make(&b, "replay");
  uint64_t window = RIG_BASE + 2 * FF_GROUP_BYTES;
  for (uint64_t i = 0; i < 3; i++) assert_true(pager_map(p, window + i * 1024, 1024, TRACE_MEMORY_DEVICE, 0));
  for (int gone = 0; gone < 3; gone++) {
    pager_unit *units[3];
    for (uint64_t i = 0; i < 3; i++) {
      units[i] = pager_find(p, window + i * 1024 + 512);
      assert_int_equal(p->allocations.items[units[i]->allocation].address, window + i * 1024);
    }
    assert_true(units[0] != units[1] && units[1] != units[2] && units[0] != units[2]);
    assert_true(pager_unmap(p, window + (uint64_t)gone * 1024));
    pager_check_all(p);
    assert_true(pager_map(p, window + (uint64_t)gone * 1024, 1024, TRACE_MEMORY_DEVICE, 0));
    pager_check_all(p);
  }
  pager_free(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_told_of_each),       cmocka_unit_test(test_told_of_all),
                                     cmocka_unit_test(test_one_page_elsewhere), cmocka_unit_test(test_one_page_or_none),
                                     cmocka_unit_test(test_writable),           cmocka_unit_test(test_shared_window)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
