/* SPDX-License-Identifier: Apache-2.0 */
/* Frames: order, colours, runs, and random operations against a table of frames that is searched from its beginning. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "known_hashes.h"
#include "partition/frames.h"

static frames *make(const address_hash *hash, uint64_t memory, uint64_t frame) {
  frames *f = NULL;
  ff_error error;
  if (frames_create(hash, memory, frame, &f, &error)) fail_msg("%s", error.message);
  return f;
}

static address_hash *hash_or_fail(const hash_spec *spec) {
  address_hash *hash = NULL;
  ff_error error;
  if (hash_create(spec, &hash, &error)) fail_msg("%s", error.message);
  return hash;
}

static void test_one_colour(void **state) {
  frames *f = make(NULL, 10 * 4096 + 100, 0);
  uint64_t at;
  for (uint64_t i = 0; i < 10; i++) {
    assert_int_equal(frames_take(f, 1, &at, NULL), FF_OK);
    assert_int_equal(at, i * 4096);
  }
  assert_int_equal(frames_take(f, 1, &at, NULL), FF_NO_MEMORY); /* the 100 bytes are no frame */
  frames_give(f, 7 * 4096, 4096);
  frames_give(f, 3 * 4096, 1);
  frames_check(f);
  assert_int_equal(frames_left(f, 1), 2);
  assert_int_equal(frames_take(f, 1, &at, NULL), FF_OK);
  assert_int_equal(at, 3 * 4096);
  frames_free(f);
}

static void test_refused(void **state) {
  frames *f;
  ff_error error;
  uint64_t at;
  assert_int_equal(frames_create(NULL, 4095, 0, &f, &error), FF_INVALID);
  assert_int_equal(frames_create(NULL, 1 << 20, 3000, &f, &error), FF_INVALID);
  assert_int_equal(frames_create(NULL, UINT64_MAX, 4096, &f, &error), FF_LIMIT);
  f = make(NULL, 1 << 20, 0);
  assert_int_equal(frames_take_run(f, 0, 1, &at, &error), FF_INVALID);
  assert_int_equal(frames_take_run(f, 4096, 3, &at, &error), FF_INVALID);
  assert_int_equal(frames_take_run(f, UINT64_MAX, 1, &at, &error), FF_NO_MEMORY);
  assert_int_equal(frames_take_run(f, 4096, UINT64_C(1) << 63, &at, &error), FF_OK); /* address 0 */
  assert_int_equal(frames_take_run(f, 4096, UINT64_C(1) << 63, &at, &error), FF_NO_MEMORY);
  frames_free(f);
}

static void test_runs(void **state) {
  frames *f = make(NULL, 1000 * 4096, 4096);
  uint64_t at;
  assert_int_equal(frames_take(f, 1, &at, NULL), FF_OK);
  assert_int_equal(frames_take_run(f, 300 * 4096 - 5, 64 * 4096, &at, NULL), FF_OK);
  assert_int_equal(at, 64 * 4096);
  assert_int_equal(frames_take_run(f, 63 * 4096, 1, &at, NULL), FF_OK); /* fits exactly between */
  assert_int_equal(at, 4096);
  assert_int_equal(frames_take_run(f, 637 * 4096, 1, &at, NULL), FF_NO_MEMORY);
  assert_int_equal(frames_take_run(f, 636 * 4096, 1, &at, NULL), FF_OK);
  assert_int_equal(at, 364 * 4096);
  assert_int_equal(frames_left(f, 1), 0);
  frames_give(f, 100 * 4096, 65 * 4096); /* a part of a run */
  assert_int_equal(frames_take_run(f, 65 * 4096, 4096, &at, NULL), FF_OK);
  assert_int_equal(at, 100 * 4096);
  frames_check(f);
  frames_free(f);
}

/* All frames of each colour come, in order, and none of another's. */
static void every_frame_by_colour(const hash_spec *spec, uint64_t frame, uint64_t count, uint32_t colour_count) {
  address_hash *hash = hash_or_fail(spec);
  frames *f = make(hash, count * frame, frame);
  const colours *c = frames_colours(f);
  uint64_t at, sum = 0;
  assert_int_equal(colours_count(c), colour_count);
  for (uint32_t colour = 0; colour < colour_count; colour++) {
    uint64_t all = frames_all(f, UINT64_C(1) << colour), last = 0;
    sum += all;
    for (uint64_t i = 0; i < all; i++) {
      assert_int_equal(frames_take(f, UINT64_C(1) << colour, &at, NULL), FF_OK);
      assert_true(!i || at > last);
      assert_int_equal(colours_of(c, at), colour);
      last = at;
    }
    assert_int_equal(frames_take(f, UINT64_C(1) << colour, &at, NULL), FF_NO_MEMORY);
    frames_check(f);
  }
  assert_int_equal(sum, count);
  assert_int_equal(frames_left(f, UINT64_MAX), 0);
  frames_free(f);
  hash_free(hash);
}

static const hash_spec six_modules = {
    .kind = HASH_MODULO, .piece_bytes = 2048, .module_count = 6, .bank_count = 16, .set_count = 100, .row_bytes = 2048};
static const hash_spec ten_modules = {.kind = HASH_POLYNOMIAL,
                                      .piece_bytes = 4096,
                                      .polynomial = 0x11d,
                                      .module_count = 10,
                                      .bank_count = 16,
                                      .set_count = 100,
                                      .row_bytes = 2048};

static void test_colours(void **state) {
  every_frame_by_colour(&gtx1080_hash, 4096, 5001, 2);
  every_frame_by_colour(&gtx1080_hash, 1024, 5001, 8);
  every_frame_by_colour(&v100_hash, 4096, 70000, 8);
  every_frame_by_colour(&v100_hash, 2048, 3, 16);
  every_frame_by_colour(&six_modules, 4096, 5001, 3);
  every_frame_by_colour(&ten_modules, 4096, 5001, 10);
}

/* ---- random operations compared with a naive model ---- */

enum { MODEL_FRAMES = 9001 };
typedef struct model {
  uint8_t taken[MODEL_FRAMES], colour[MODEL_FRAMES];
  uint64_t count;
} model;

static uint64_t seed;
static uint64_t random_below(uint64_t n) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed % n;
}

static uint64_t model_first(const model *m, uint64_t set) {
  for (uint64_t i = 0; i < m->count; i++)
    if (!m->taken[i] && set >> m->colour[i] & 1) return i;
  return m->count;
}
static uint64_t model_run(const model *m, uint64_t length, uint64_t step) {
  for (uint64_t i = 0; i + length <= m->count; i += step)
    if (!memchr(m->taken + i, 1, length)) return i;
  return m->count;
}

static void random_take(frames *f, model *m, uint64_t frame) {
  uint64_t set = random_below(3) ? UINT64_C(1) << random_below(colours_count(frames_colours(f)))
                                 : random_below(UINT64_MAX),
           at;
  uint64_t expected = model_first(m, set);
  ff_status status = frames_take(f, set, &at, NULL);
  assert_int_equal(status, expected == m->count ? FF_NO_MEMORY : FF_OK);
  if (status) return;
  assert_int_equal(at, expected * frame);
  m->taken[expected] = 1;
}
static void random_run(frames *f, model *m, uint64_t frame) {
  uint64_t length = 1 + random_below(random_below(4) ? 20 : 700), step = UINT64_C(1) << random_below(8), at;
  uint64_t expected = model_run(m, length, step);
  ff_status status = frames_take_run(f, length * frame - random_below(frame), step * frame, &at, NULL);
  assert_int_equal(status, expected == m->count ? FF_NO_MEMORY : FF_OK);
  if (status) return;
  assert_int_equal(at, expected * frame);
  memset(m->taken + expected, 1, length);
}
static void random_give(frames *f, model *m, uint64_t frame) {
  uint64_t begin = random_below(m->count), length = 0, most = 1 + random_below(random_below(3) ? 1 : 300);
  while (begin < m->count && !m->taken[begin]) begin++;
  while (length < most && begin + length < m->count && m->taken[begin + length]) m->taken[begin + length++] = 0;
  if (length) frames_give(f, begin * frame, length * frame);
}

static void random_operations(const hash_spec *spec, uint64_t frame, uint64_t count, int operations) {
  address_hash *hash = spec ? hash_or_fail(spec) : NULL;
  frames *f = make(hash, count * frame, frame);
  model *m = calloc(1, sizeof *m);
  m->count = count;
  for (uint64_t i = 0; i < count; i++) m->colour[i] = (uint8_t)colours_of(frames_colours(f), i * frame);
  for (int i = 0; i < operations; i++) {
    uint64_t kind = random_below(i / 500 % 2 ? 12 : 9); /* filling and emptying in turns */
    if (kind < 5) random_take(f, m, frame);
    else if (kind < 6) random_run(f, m, frame);
    else random_give(f, m, frame);
    if (i % 97 == 0) {
      uint64_t set = random_below(UINT64_MAX), left = 0;
      for (uint64_t n = 0; n < count; n++) {
        left += !m->taken[n] && set >> m->colour[n] & 1;
        assert_int_equal(frames_is_taken(f, n * frame), m->taken[n]);
      }
      assert_int_equal(frames_left(f, set), left);
      frames_check(f);
    }
  }
  frames_free(f);
  hash_free(hash);
  free(m);
}

static void test_random(void **state) {
  seed = 88172645463325252;
  random_operations(NULL, 4096, 9001, 3000);
  random_operations(&gtx1080_hash, 1024, 9001, 3000);
  random_operations(&v100_hash, 4096, 8192, 3000);
  random_operations(&six_modules, 2048, 700, 3000);
  random_operations(&ten_modules, 4096, 9001, 3000);
}

/* 143 GiB: all of one colour of eight, then everything else; the same frames must come again after giving back. */
static void test_large(void **state) {
  address_hash *hash = hash_or_fail(&v100_hash);
  frames *f = make(hash, UINT64_C(143) << 30, 4096);
  uint64_t at, count = 0, run;
  assert_int_equal(frames_take_run(f, UINT64_C(100) << 30, 2 << 20, &run, NULL), FF_OK);
  assert_int_equal(run, 0);
  while (!frames_take(f, 1, &at, NULL)) count++;
  assert_int_equal(count, (UINT64_C(43) << 30) / 4096 / 8);
  for (int i = 0; i < 1000; i++) {
    frames_give(f, at, 4096);
    assert_int_equal(frames_take(f, 1, &run, NULL), FF_OK);
    assert_int_equal(run, at);
  }
  assert_int_equal(frames_left(f, 0xfe), (UINT64_C(43) << 30) / 4096 / 8 * 7);
  frames_check(f);
  frames_free(f);
  hash_free(hash);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_colour), cmocka_unit_test(test_refused), cmocka_unit_test(test_runs),
      cmocka_unit_test(test_colours),    cmocka_unit_test(test_random),  cmocka_unit_test(test_large),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
