/* SPDX-License-Identifier: Apache-2.0 */
/* Messages: there and back, cut at every byte, and each limit from both sides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "broker/wire.h"

/* Every field of every kind has its largest value. */
static wire_message largest(wire_kind kind) {
  wire_message m = {.kind = kind,
                    .gpu_sms = BROKER_SMS,
                    .gpu_colours = BROKER_COLOURS,
                    .sms = BROKER_SMS,
                    .colours = BROKER_COLOURS,
                    .sm_step = BROKER_SMS,
                    .timeout_ms = WIRE_FOREVER,
                    .sm_first = BROKER_SMS,
                    .mask = UINT64_MAX,
                    .ahead = UINT32_MAX,
                    .status = UINT8_MAX,
                    .state = 2,
                    .pid = INT32_MAX,
                    .age_ms = UINT64_MAX};
  memset(m.gpu, '~', sizeof m.gpu - 1);
  memset(m.name, ' ', sizeof m.name - 1);
  memset(m.program, 'p', sizeof m.program - 1);
  memset(m.text, 't', sizeof m.text - 1);
  return m;
}

static void there_and_back(void **unused) {
  for (int kind = WIRE_ASK; kind <= WIRE_END; kind++)
    for (int size = 0; size < 2; size++) {
      wire_message m = size ? largest((wire_kind)kind) : (wire_message){.kind = (wire_kind)kind}, back;
      uint8_t frame[WIRE_FRAME], again[WIRE_FRAME];
      size_t bytes = wire_write(&m, frame), used;
      uint32_t version;
      assert_true(bytes >= WIRE_HEAD && bytes <= WIRE_FRAME);
      assert_int_equal(wire_read(frame, bytes, &back, &used, &version), WIRE_GOOD);
      assert_int_equal(used, bytes);
      assert_int_equal(wire_write(&back, again), bytes);
      assert_memory_equal(frame, again, bytes);
      for (size_t part = 0; part < bytes; part++) { /* a copy of exactly its size: a read past it is seen */
        uint8_t *cut = malloc(part ? part : 1);
        memcpy(cut, frame, part);
        assert_int_equal(wire_read(cut, part, &back, &used, &version), WIRE_MORE);
        free(cut);
      }
    }
}

static void says_what_it_is(void **unused) {
  wire_message m = {.kind = WIRE_ASK,
                    .gpu = "GPU-1",
                    .gpu_sms = 132,
                    .gpu_colours = 16,
                    .sms = 33,
                    .colours = 4,
                    .sm_step = 8,
                    .timeout_ms = 1500,
                    .name = "me"},
               back;
  uint8_t frame[WIRE_FRAME];
  size_t used, bytes = wire_write(&m, frame);
  uint32_t version;
  static const uint8_t head[] = {0x3f, 0,   0,   0,   1, 0, 1, 0, 5, 0, 'G', 'P',
                                 'U',  '-', '1', 132, 0, 0, 0, 0, 0, 0, 0,   16};
  assert_int_equal(bytes, 4 + 0x3f);
  assert_memory_equal(frame, head, sizeof head); /* these bytes are the protocol: other builds speak it */
  assert_int_equal(wire_read(frame, bytes, &back, &used, &version), WIRE_GOOD);
  assert_string_equal(back.gpu, "GPU-1");
  assert_string_equal(back.name, "me");
  assert_true(back.gpu_sms == 132 && back.gpu_colours == 16 && back.sms == 33 && back.colours == 4 &&
              back.sm_step == 8 && back.timeout_ms == 1500);
}

/* The byte at `offset` of an ASK with this name becomes `value`. */
static wire_result changed(size_t offset, uint8_t value) {
  wire_message m = {.kind = WIRE_ASK, .gpu = "GPU-1", .gpu_sms = 1024, .gpu_colours = 64, .name = "name"}, back;
  uint8_t frame[WIRE_FRAME];
  size_t used, bytes = wire_write(&m, frame);
  uint32_t version = 0;
  frame[offset] = value;
  wire_result result = wire_read(frame, bytes, &back, &used, &version);
  if (result == WIRE_FOREIGN) assert_int_equal(version, frame[4] | frame[5] << 8);
  return result;
}

static void limits(void **unused) {
  enum { LENGTH = 0, VERSION = 4, KIND = 6, GPU_LENGTH = 8, GPU = 10, GPU_SMS = 15, GPU_COLOURS = 23 };
  assert_int_equal(changed(GPU, 'G'), WIRE_GOOD);
  assert_int_equal(changed(GPU, ' '), WIRE_GOOD);
  assert_int_equal(changed(GPU, 31), WIRE_BAD);
  assert_int_equal(changed(GPU, '~'), WIRE_GOOD);
  assert_int_equal(changed(GPU, 127), WIRE_BAD);
  assert_int_equal(changed(GPU, 0), WIRE_BAD);
  assert_int_equal(changed(GPU_SMS, 0), WIRE_GOOD);
  assert_int_equal(changed(GPU_SMS, 1), WIRE_BAD); /* 1025 */
  assert_int_equal(changed(GPU_SMS + 7, 0x80), WIRE_BAD);
  assert_int_equal(changed(GPU_COLOURS, 64), WIRE_GOOD);
  assert_int_equal(changed(GPU_COLOURS, 65), WIRE_BAD);
  assert_int_equal(changed(GPU_LENGTH + 1, 1), WIRE_BAD); /* 261 bytes: more than there are, and than a name has */
  assert_int_equal(changed(GPU_LENGTH, 4), WIRE_BAD);     /* all fields are one byte early, and one byte is left over */
  assert_int_equal(changed(VERSION, 2), WIRE_FOREIGN);
  assert_int_equal(changed(VERSION + 1, 1), WIRE_FOREIGN);
  assert_int_equal(changed(KIND, 0), WIRE_BAD);
  assert_int_equal(changed(KIND, 9), WIRE_BAD);
  assert_int_equal(changed(KIND + 1, 1), WIRE_BAD);
  assert_int_equal(changed(LENGTH, 3), WIRE_BAD);     /* shorter than its head */
  assert_int_equal(changed(LENGTH, 4), WIRE_BAD);     /* nothing in it */
  assert_int_equal(changed(LENGTH + 1, 4), WIRE_BAD); /* longer than any message */
  assert_int_equal(changed(LENGTH, 255), WIRE_MORE);
}

static void texts_are_cleaned(void **unused) {
  char out[8];
  wire_clean("a\tb\x7f\xc3\xa4", out, sizeof out);
  assert_string_equal(out, "a?b???");
  wire_clean("12345678", out, sizeof out);
  assert_string_equal(out, "1234567");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(there_and_back), cmocka_unit_test(says_what_it_is),
                                     cmocka_unit_test(limits), cmocka_unit_test(texts_are_cleaned)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
