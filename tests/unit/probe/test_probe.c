/* SPDX-License-Identifier: Apache-2.0 */
/* The searches on a model of a GPU: banks by a hash with two times, an L2 that replaces the line used least recently;
 * jitter, false pairs, maps that are not linear, spans; pairs from a file; the machine file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../partition/fgpu_masks.h"
#include "machine/spec/spec.h"
#include "partition/gf2.h"
#include "partition/hash.h"
#include "probe/meter.h"

enum { WAYS = 16, FAST = 455, SLOW = 505, HIT = 200, MISS = 400 };

/* A machine: its hash, and the lines that its L2 has, by module and set, youngest first. */
typedef struct model {
  address_hash *hash;
  uint64_t *lines; /* 0: empty */
  uint32_t sets, ways, flushes;
  meter meter;
} model;

static ff_status model_pairs(void *context, const probe_pair *pairs, size_t count, double *cycles, ff_error *error) {
  model *m = context;
  for (size_t i = 0; i < count; i++) {
    hash_place a = hash_of(m->hash, pairs[i].a), b = hash_of(m->hash, pairs[i].b);
    cycles[i] = a.module == b.module && a.bank == b.bank && a.row != b.row ? SLOW : FAST;
  }
  return FF_OK;
}

static bool model_read(model *m, uint64_t address) { /* whether it was there */
  hash_place p = hash_of(m->hash, address);
  uint64_t *set = m->lines + ((size_t)p.module * m->sets + p.set) * m->ways, tag = address + 1;
  uint32_t at = 0;
  while (at < m->ways - 1 && set[at] != tag) at++;
  bool hit = set[at] == tag;
  memmove(set + 1, set, at * sizeof *set);
  set[0] = tag;
  return hit;
}

static ff_status model_again(void *context, uint64_t x, const uint64_t *lines, size_t count, double *cycles,
                             ff_error *error) {
  model *m = context;
  model_read(m, x);
  for (size_t i = 0; i < count; i++) model_read(m, lines[i]);
  *cycles = model_read(m, x) ? HIT : MISS;
  return FF_OK;
}

static ff_status model_flush(void *context, ff_error *error) {
  ((model *)context)->flushes++;
  return FF_OK;
}

static void model_open(model *m, const hash_spec *spec, uint64_t base, uint64_t bytes) {
  ff_error error;
  *m = (model){.sets = spec->set_count, .ways = WAYS};
  if (hash_create(spec, &m->hash, &error)) fail_msg("%s", error.message);
  m->lines = ff_alloc((size_t)spec->module_count * spec->set_count * WAYS * sizeof *m->lines);
  m->meter = (meter){.context = m,
                     .base = base,
                     .bytes = bytes,
                     .l2_bytes = (uint64_t)spec->module_count * spec->set_count * WAYS * PROBE_LINE,
                     .time_pairs = model_pairs,
                     .time_again = model_again,
                     .flush = model_flush};
}

static void model_close(model *m) {
  hash_free(m->hash);
  free(m->lines);
}

static hash_masks masks_of(const published *p, int first, uint32_t count) {
  hash_masks out = {.count = count};
  for (uint32_t i = 0; i < count; i++) out.masks[i] = published_mask(p->bits[first + (int)i]);
  return out;
}

static hash_spec gtx1080_spec(void) {
  return (hash_spec){.kind = HASH_XOR,
                     .modules = masks_of(&gtx1080, 0, 3),
                     .banks = masks_of(&gtx1080, 0, 7),
                     .sets = masks_of(&gtx1080, 7, 10),
                     .module_count = 8,
                     .bank_count = 16,
                     .set_count = 128,
                     .row_bytes = 2048};
}

static hash_spec v100_spec(void) {
  static const int modules[5][14] = {{10, 13, 17, 19, 24, 25, 26, 29, 30, 32, 33, -1},
                                     {11, 13, 15, 23, 24, 26, 27, 29, 30, 31, -1},
                                     {12, 15, 16, 18, 20, 21, 23, 26, 28, 29, 30, -1},
                                     {13, 19, 20, 22, 25, 27, 28, 29, -1},
                                     {15, 18, 22, 23, 26, 29, 30, 31, 32, 33, -1}};
  hash_spec spec = {.kind = HASH_XOR,
                    .modules = {.count = 5},
                    .banks = masks_of(&v100, 0, 9),
                    .sets = masks_of(&v100, 9, 10),
                    .module_count = 32,
                    .bank_count = 16,
                    .set_count = 32,
                    .row_bytes = 2048};
  for (int i = 0; i < 5; i++) spec.modules.masks[i] = published_mask(modules[i]);
  return spec;
}

static void check_span(const char *what, const hash_masks *expected, const recover_result *map, uint64_t bits) {
  uint64_t found[RECOVER_MASKS];
  gf2_space got = gf2_span(found, recover_list(map, found)), whole = gf2_span(expected->masks, expected->count),
            wanted = gf2_restrict(&whole, bits);
  if (map->verdict != RECOVER_LINEAR || !gf2_equal(&got, &wanted))
    fail_msg("%s: %s, rank %u, not %u", what, recover_verdict_name(map->verdict), got.rank, wanted.rank);
}

static void check_machine(hash_spec (*make)(void), uint64_t base, uint64_t bytes, const probe_options *options) {
  hash_spec spec = make();
  model m;
  ff_error error;
  probe_result *result = ff_alloc(sizeof *result);
  model_open(&m, &spec, base, bytes);
  if (probe_banks(&m.meter, options, &result->kinds[PROBE_BANKS], &error)) fail_msg("%s", error.message);
  if (probe_sets(&m.meter, options, &result->kinds[PROBE_SETS], &error)) fail_msg("%s", error.message);
  check_span("banks", &spec.banks, &result->kinds[PROBE_BANKS].map, UINT64_MAX);
  check_span("sets", &spec.sets, &result->kinds[PROBE_SETS].map, UINT64_MAX);
  probe_modules(result);
  assert_int_equal(UINT32_C(1) << result->module_rank, spec.module_count);
  assert_int_equal(result->kinds[PROBE_SETS].ways, WAYS);
  const probe_finding *banks = &result->kinds[PROBE_BANKS];
  if (options->jitter < 4) assert_true(banks->moved == banks->moved_tested && banks->moved > 32);
  assert_true(m.flushes > 0 && banks->threshold > FAST && banks->threshold < SLOW);
  model_close(&m);
  free(result);
}

static void finds_published_hashes(void **state) {
  probe_options options = {.seed = 1};
  check_machine(gtx1080_spec, 0, UINT64_C(8) << 30, &options);
  check_machine(v100_spec, 0, UINT64_C(16) << 30, &options);
}

/* Memory that begins anywhere and has any size. */
static void with_a_part_of_the_memory(void **state) {
  probe_options options = {.seed = 2};
  check_machine(gtx1080_spec, UINT64_C(0x3120000), (UINT64_C(8) << 30) - 0x5120000, &options);
}

static void twenty_seeds(double noise, double jitter) {
  for (uint64_t seed = 1; seed <= 20; seed++) {
    hash_spec spec = seed % 2 ? gtx1080_spec() : v100_spec();
    probe_options options = {.seed = seed, .noise = noise, .jitter = jitter, .pairs = 200};
    probe_finding found = {0};
    model m;
    ff_error error;
    model_open(&m, &spec, 0, UINT64_C(8) << (seed % 2 ? 30 : 31));
    if (probe_banks(&m.meter, &options, &found, &error)) fail_msg("seed %d: %s", (int)seed, error.message);
    check_span("banks", &spec.banks, &found.map, UINT64_MAX);
    assert_true(fabs(found.map.false_pairs - noise) < 0.05);
    model_close(&m);
  }
}

static void one_percent_false(void **state) { twenty_seeds(0.01, 6); }
static void five_percent_false(void **state) { twenty_seeds(0.05, 4); }

static void sets_with_noise(void **state) {
  probe_options options = {.seed = 3, .noise = 0.05, .jitter = 20};
  hash_spec spec = gtx1080_spec();
  probe_finding found = {0};
  model m;
  ff_error error;
  model_open(&m, &spec, 0, UINT64_C(8) << 30);
  if (probe_sets(&m.meter, &options, &found, &error)) fail_msg("%s", error.message);
  check_span("sets", &spec.sets, &found.map, UINT64_MAX);
  model_close(&m);
}

/* Only the low 21 bits are physical: masks of these alone. */
static void within_a_page(void **state) {
  probe_options options = {.seed = 4};
  hash_spec spec = gtx1080_spec();
  probe_finding banks = {0}, sets = {0};
  model m;
  ff_error error;
  model_open(&m, &spec, UINT64_C(1) << 32, UINT64_C(1) << 32);
  m.meter.span = UINT64_C(1) << 21;
  if (probe_banks(&m.meter, &options, &banks, &error)) fail_msg("%s", error.message);
  if (probe_sets(&m.meter, &options, &sets, &error)) fail_msg("%s", error.message);
  check_span("banks", &spec.banks, &banks.map, m.meter.span - 1);
  check_span("sets", &spec.sets, &sets.map, m.meter.span - 1);
  model_close(&m);
}

static void not_linear(void **state) {
  hash_spec spec = {.kind = HASH_MODULO,
                    .piece_bytes = 1024,
                    .module_count = 5,
                    .bank_count = 16,
                    .set_count = 128,
                    .row_bytes = 2048};
  probe_options options = {.seed = 5};
  probe_finding found = {0};
  model m;
  ff_error error;
  model_open(&m, &spec, 0, UINT64_C(8) << 30);
  assert_int_equal(probe_banks(&m.meter, &options, &found, &error), FF_OK);
  assert_true(found.map.verdict == RECOVER_NOT_LINEAR || found.map.verdict == RECOVER_PARTLY);
  assert_true(found.moved_tested > 32 && found.moved < found.moved_tested / 2);
  model_close(&m);
}

static ff_status all_the_same(void *context, const probe_pair *pairs, size_t count, double *cycles, ff_error *error) {
  for (size_t i = 0; i < count; i++) cycles[i] = 400 + (double)(pairs[i].a % 1024) / 256;
  return FF_OK;
}

static ff_status always_a_hit(void *context, uint64_t x, const uint64_t *lines, size_t count, double *cycles,
                              ff_error *error) {
  *cycles = 200;
  return FF_OK;
}

static void nothing_to_see(void **state) {
  probe_options options = {.seed = 5};
  probe_finding found = {0};
  meter m = {.bytes = UINT64_C(1) << 30,
             .l2_bytes = 1 << 20,
             .time_pairs = all_the_same,
             .time_again = always_a_hit,
             .flush = model_flush};
  ff_error error;
  assert_int_equal(probe_banks(&m, &options, &found, &error), FF_UNSUPPORTED);
  assert_non_null(strstr(error.message, "no bank conflict can be seen"));
  assert_int_equal(probe_sets(&m, &options, &found, &error), FF_UNSUPPORTED);
  assert_non_null(strstr(error.message, "a line read again takes 200 cycles"));
}

/* ---- the time is over ---- */

static int looks; /* until it is */

static bool is_over(void *context) { return looks-- <= 0; }

static void no_time_left(void **state) {
  hash_spec spec = gtx1080_spec();
  model m;
  ff_error error;
  probe_options options = {.seed = 3, .pairs = 100000};
  probe_finding found = {0}, few = {0};
  model_open(&m, &spec, 0, UINT64_C(8) << 30);
  m.meter.over = is_over;
  looks = 3; /* chunks of pairs */
  assert_int_equal(probe_banks(&m.meter, &options, &found, &error), FF_OK);
  assert_true(found.done && found.conflicts > 64 && found.conflicts < 1000);
  check_span("banks", &spec.banks, &found.map, UINT64_MAX);
  looks = 0;
  assert_int_equal(probe_banks(&m.meter, &options, &few, &error), FF_UNSUPPORTED);
  assert_non_null(strstr(error.message, "of 0 pairs"));
  assert_int_equal(probe_sets(&m.meter, &options, &few, &error), FF_LIMIT);
  assert_non_null(strstr(error.message, "the time is over: 0 random lines do not push"));
  looks = 40; /* in the middle of leaving lines out */
  assert_int_equal(probe_sets(&m.meter, &options, &few, &error), FF_LIMIT);
  assert_non_null(strstr(error.message, "the time is over: the fewest lines known"));
  model_close(&m);
}

static void sets_found_in_time(void **state) {
  hash_spec spec = gtx1080_spec();
  model m;
  ff_error error;
  probe_options options = {.seed = 3, .pairs = 100000};
  probe_finding found = {0};
  model_open(&m, &spec, 0, UINT64_C(8) << 30);
  m.meter.over = is_over;
  looks = 2000;
  assert_int_equal(probe_sets(&m.meter, &options, &found, &error), FF_OK);
  assert_true(found.done && found.conflicts > 128 && found.conflicts < 2000);
  check_span("sets", &spec.sets, &found.map, UINT64_MAX);
  model_close(&m);
}

static void two_modes(void **state) {
  double samples[200], fast, slow, threshold;
  for (int i = 0; i < 200; i++) samples[i] = i < 190 ? 500 + i % 7 : 560 + i % 3;
  assert_true(modes_split(samples, 200, &fast, &slow, &threshold));
  assert_true(fast >= 500 && fast <= 506 && slow >= 560 && slow <= 562 && threshold > 506 && threshold < 560);
  for (int i = 193; i < 200; i++) samples[i] = 503; /* three outliers are no mode */
  assert_false(modes_split(samples, 200, &fast, &slow, &threshold));
  assert_false(modes_split(samples, 15, &fast, &slow, &threshold));
  /* Modes that overlap: no gap, but a valley. One mode has none. */
  probe_random random = {5};
  static double scattered[20000];
  for (int i = 0; i < 20000; i++) scattered[i] = (i % 100 ? 500 : 550) + 8 * probe_random_normal(&random);
  assert_true(modes_split(scattered, 20000, &fast, &slow, &threshold));
  assert_true(threshold > 515 && threshold < 545 && fabs(slow - 550) < 12);
  for (uint64_t seed = 0; seed < 50; seed++) {
    probe_random other = {seed};
    for (int i = 0; i < 2000; i++) scattered[i] = 500 + 8 * probe_random_normal(&other);
    assert_false(modes_split(scattered, 2000, &fast, &slow, &threshold));
  }
  for (int i = 0; i < 200; i++) samples[i] = 500;
  assert_false(modes_split(samples, 200, &fast, &slow, &threshold));
}

/* ---- pairs of a file ---- */

static void pairs_of_a_file(void **state) {
  hash_spec spec = gtx1080_spec();
  model m;
  ff_text text = {0};
  ff_error error;
  probe_options options = {.seed = 1};
  probe_random random = {77};
  probe_result *result = ff_alloc(sizeof *result);
  model_open(&m, &spec, 0, UINT64_C(8) << 30);
  ff_text_add(&text, "# measured\nprimary,secondary,cycles\n");
  for (int i = 0; i < 30000; i++) {
    probe_pair p = {probe_random_line(&random, &m.meter), probe_random_line(&random, &m.meter)};
    double cycles;
    model_pairs(&m, &p, 1, &cycles, &error);
    ff_text_add(&text, i % 2 ? "0x%llx,0x%llx,%.1f\n" : " %llu , %llu ; %.1f \r\n", (unsigned long long)p.a,
                (unsigned long long)p.b, cycles);
  }
  if (probe_pairs_text("pairs.csv", text.chars, text.length, PROBE_BANKS, &options, result, &error))
    fail_msg("%s", error.message);
  check_span("banks", &spec.banks, &result->kinds[PROBE_BANKS].map, UINT64_MAX);
  assert_int_equal(result->kinds[PROBE_BANKS].tested, 30000);
  free(text.chars);
  free(result);
  model_close(&m);
}

/* The pairs that were timed are kept, and give the same masks. */
static void raw_pairs(void **state) {
  hash_spec spec = gtx1080_spec();
  model m;
  ff_text text = {0};
  ff_error error;
  probe_options options = {.seed = 6, .pairs = 128};
  probe_finding found = {0};
  probe_result *result = ff_alloc(sizeof *result);
  model_open(&m, &spec, 0, UINT64_C(8) << 30);
  m.meter.raw = &text;
  if (probe_banks(&m.meter, &options, &found, &error)) fail_msg("%s", error.message);
  if (probe_pairs_text("raw.csv", text.chars, text.length, PROBE_BANKS, &options, result, &error))
    fail_msg("%s", error.message);
  const probe_finding *again = &result->kinds[PROBE_BANKS];
  assert_int_equal(again->tested, found.tested);
  assert_int_equal(again->conflicts, found.conflicts);
  check_span("banks", &spec.banks, &again->map, UINT64_MAX);
  free(text.chars);
  free(result);
  model_close(&m);
}

static ff_status model_lines(void *context, uint32_t sm, uint64_t from, uint32_t count, double *first, double *again,
                             ff_error *error) {
  const model *m = context;
  if (sm == 6) return ff_fail(error, FF_UNSUPPORTED, "SM 6 is not there");
  for (uint32_t i = 0; i < count; i++) {
    first[i] = MISS + sm;
    again[i] = HIT + (double)hash_of(m->hash, from + i * PROBE_LINE).module;
  }
  return FF_OK;
}

static void lines_one_by_one(void **state) {
  hash_spec spec = gtx1080_spec();
  model m;
  ff_text text = {0};
  ff_error error;
  model_open(&m, &spec, 0, UINT64_C(8) << 30);
  m.meter.time_lines = model_lines;
  m.meter.sm_count = 40; /* every second and third: 0 2 5 7 ... 37 */
  m.meter.line_count = 1000;
  if (probe_lines(&m.meter, &text, &error)) fail_msg("%s", error.message);
  assert_int_equal(m.flushes, 1);
  const char *at = text.chars + strlen("sm,line,first,again\n");
  for (uint32_t i = 0; i < 16; i++)
    for (uint32_t line = 0; line < 1000; line++) {
      char row[64];
      uint32_t sm = i * 40 / 16;
      snprintf(row, sizeof row, "%u,%u,%u.0,%u.0\n", sm, line, MISS + sm, HIT + hash_of(m.hash, line * 128ull).module);
      if (strncmp(at, row, strlen(row))) fail_msg("not %s, but %.20s", row, at);
      at += strlen(row);
    }
  assert_int_equal(*at, 0);
  m.meter.sm_count = 8; /* all of them */
  assert_int_equal(probe_lines(&m.meter, &text, &error), FF_UNSUPPORTED);
  assert_string_equal(error.message, "SM 6 is not there");
  free(text.chars);
  model_close(&m);
}

static void broken_files(void **state) {
  static const struct {
    const char *text, *message;
  } cases[] = {
      {"", "there are no pairs"},
      {"a,b,c\n", "there are no pairs"},
      {"1,2,3\nx,2,3\n", "bad.csv:2:1: an address is expected"},
      {"0x,2,3\n", "bad.csv:1:1: an address is expected"},
      {"1 2,3\n", "bad.csv:1:3: a comma is expected"},
      {"1,1,3\n", "both addresses are the same"},
      {"1,2,\n", "bad.csv:1:5: a time in cycles is expected"},
      {"1,2,nan\n", "a time in cycles is expected"},
      {"1,2,-3\n", "a time in cycles is expected"},
      {"1,2,1e99\n", "a time in cycles is expected"},
      {"1,2,3,4\n", "does not end behind the cycles"},
      {"0xfffffffffffffff,2,3\n", "at most 52 bits"},
      {"99999999999999999999999,2,3\n", "at most 64 bits"},
      {"1,2,3\n4,5,6\n", "do not divide"},
  };
  probe_options options = {.seed = 1};
  probe_result *result = ff_alloc(sizeof *result);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ff_error error = {.message = ""};
    assert_int_not_equal(
        probe_pairs_text("bad.csv", cases[i].text, strlen(cases[i].text), PROBE_SETS, &options, result, &error), FF_OK);
    if (!strstr(error.message, cases[i].message)) fail_msg("'%s': %s", cases[i].text, error.message);
  }
  free(result);
}

/* ---- what is written ---- */

static void exact(probe_result *r, const hash_spec *spec) {
  const hash_masks *masks[] = {&spec->banks, &spec->sets};
  *r = (probe_result){.physical = true};
  for (int kind = 0; kind < PROBE_KINDS; kind++) {
    r->kinds[kind].done = true;
    r->kinds[kind].map.verdict = RECOVER_LINEAR;
    r->kinds[kind].map.rank = masks[kind]->count;
    for (uint32_t i = 0; i < masks[kind]->count; i++) r->kinds[kind].map.masks[i].bits = masks[kind]->masks[i];
  }
  probe_modules(r);
}

static void machine_file(void **state) {
  hash_spec spec = gtx1080_spec(), got;
  probe_result *r = ff_alloc(sizeof *r);
  machine_spec base, made;
  ff_text text = {0};
  ff_error error;
  char *file;
  size_t size;
  exact(r, &spec);
  assert_int_equal(machine_spec_load("gtx1070", &base, &error), FF_OK);
  assert_int_equal(ff_file_read(base.file, 0, &file, &size, &error), FF_OK);
  if (probe_write_machine(r, "gtx1070", file, size, "cuda:\"0", &text, &error)) fail_msg("%s", error.message);
  assert_non_null(strstr(text.chars, "source: \"measured by farfault probe on cuda:?0\""));
  assert_int_equal(ff_file_write("probe_machine.yaml", text.chars, text.length, &error), FF_OK);
  assert_int_equal(machine_spec_load("./probe_machine.yaml", &made, &error), FF_OK);
  assert_int_equal(machine_spec_hash(&made, &got, &error), FF_OK);
  gf2_space a = gf2_span(got.sets.masks, got.sets.count), b = gf2_span(spec.sets.masks, spec.sets.count);
  assert_true(gf2_equal(&a, &b));
  assert_true(got.kind == HASH_XOR && made.sm_count == base.sm_count);
  /* What is not known, or does not fit, makes no file. */
  r->kinds[PROBE_SETS].map.verdict = RECOVER_PARTLY;
  assert_int_equal(probe_write_machine(r, "gtx1070", file, size, "x", &text, &error), FF_INVALID);
  r->kinds[PROBE_SETS].map.verdict = RECOVER_LINEAR;
  r->physical = false;
  assert_int_equal(probe_write_machine(r, "gtx1070", file, size, "x", &text, &error), FF_INVALID);
  r->physical = true;
  r->kinds[PROBE_BANKS].map.rank = 5;
  text.length = 0;
  assert_int_not_equal(probe_write_machine(r, "gtx1070", file, size, "x", &text, &error), FF_OK);
  assert_non_null(strstr(error.message, "does not fit the machine"));
  remove("probe_machine.yaml");
  free(text.chars);
  free(file);
  free(r);
}

static void colours_of_pages(void **state) {
  static const uint32_t expected[2][8] = {{8, 4, 2, 1, 1, 1, 1, 1}, {32, 16, 8, 4, 2, 2, 1, 1}};
  probe_result *r = ff_alloc(sizeof *r);
  for (int i = 0; i < 2; i++) {
    hash_spec spec = i ? v100_spec() : gtx1080_spec();
    exact(r, &spec);
    for (uint32_t bits = 10; bits < 18; bits++) assert_int_equal(probe_colours(r, bits), expected[i][bits - 10]);
  }
  free(r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(finds_published_hashes),
      cmocka_unit_test(with_a_part_of_the_memory),
      cmocka_unit_test(one_percent_false),
      cmocka_unit_test(five_percent_false),
      cmocka_unit_test(sets_with_noise),
      cmocka_unit_test(within_a_page),
      cmocka_unit_test(not_linear),
      cmocka_unit_test(nothing_to_see),
      cmocka_unit_test(no_time_left),
      cmocka_unit_test(sets_found_in_time),
      cmocka_unit_test(two_modes),
      cmocka_unit_test(pairs_of_a_file),
      cmocka_unit_test(raw_pairs),
      cmocka_unit_test(lines_one_by_one),
      cmocka_unit_test(broken_files),
      cmocka_unit_test(machine_file),
      cmocka_unit_test(colours_of_pages),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
