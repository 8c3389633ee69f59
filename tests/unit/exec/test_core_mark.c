/* SPDX-License-Identifier: Apache-2.0 */
/* Marked regions: where ENTER and LEAVE stand, the trips that ENTER says, and that marks change nothing else: random
 * kernels with random regions give the same results, and the same stream once the marks are left out. */
#include "core_harness.h"
#include "random_kernel.h"

#include "ptx/analysis/cfg.h"

#define WARPS_MAX 32u

typedef struct words {
  uint64_t *items;
  size_t count, capacity;
} words; /* FF_VEC(uint64_t) */

/* ---- a launch's stream, as words ---- */

static void take_warp(trace_reader *reader, trace_chunk *chunk, uint32_t warp, words *out) {
  trace_cursor cursor;
  const uint64_t *record;
  trace_cursor_open(reader, chunk, warp, &cursor);
  do {
    record = trace_cursor_next(reader, &cursor);
    uint32_t count = trace_word_kind(*record) == TRACE_ACCESS ? 2 + trace_access_lines(*record) : 1;
    for (uint32_t n = 0; n < count; n++) FF_PUSH(out, record[n]);
  } while (trace_word_kind(*record) != TRACE_EXIT);
  trace_cursor_close(reader, &cursor);
}

/* Runs k with these marks; the words of all its warps. */
static words record(kernel_test *t, const exec_mark *marks, uint32_t count, const uint32_t grid[3],
                    const uint32_t block[3], const void *params) {
  exec_kernel *kernel;
  ff_error error = {0};
  assert_int_equal(exec_program_kernel(t->program, "k", &kernel, &error), FF_OK);
  if (count && exec_kernel_mark(kernel, marks, count, &error)) fail_msg("%s", error.message);
  uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2];
  uint32_t warps = (block[0] * block[1] * block[2] + 31) / 32;
  trace_program *program = trace_program_create(0);
  trace_program_mark(program, count != 0);
  trace_program_units(program, true);
  trace_reader *reader = trace_reader_create(program);
  t->trace = trace_launch_create(program, blocks, warps);
  trace_op_append(program, &(trace_op){.kind = TRACE_OP_LAUNCH, .launch = t->trace});
  if (launch_with(t, "k", grid, block, params, &error) != FF_OK && t->fault.kind != EXEC_FAULT_TIMEOUT)
    fail_msg("%s", error.message);
  trace_launch_finish(t->trace);
  trace_op_append(program, &(trace_op){.kind = TRACE_OP_END});
  const trace_op *op = trace_reader_next_op(reader);
  words out = {0};
  for (uint64_t b = 0; b < blocks; b++) {
    trace_chunk *chunk = trace_reader_chunk(reader, op->launch, b);
    for (uint32_t w = 0; w < warps; w++) take_warp(reader, chunk, w, &out);
    trace_reader_release(reader, chunk);
  }
  trace_reader_next_op(reader);
  trace_reader_free(reader);
  trace_program_free(program);
  t->trace = NULL;
  return out;
}

/* The words without marks, by the writer that leaves them out. */
static words without_marks(const words *from) {
  trace_program *program = trace_program_create(0);
  trace_program_units(program, true);
  trace_reader *reader = trace_reader_create(program);
  uint32_t warps = 0;
  for (size_t n = 0; n < from->count;
       n += trace_word_kind(from->items[n]) == TRACE_ACCESS ? 2 + trace_access_lines(from->items[n]) : 1)
    warps += trace_word_kind(from->items[n]) == TRACE_EXIT;
  trace_launch *launch = trace_launch_create(program, warps, 1);
  trace_op_append(program, &(trace_op){.kind = TRACE_OP_LAUNCH, .launch = launch});
  size_t at = 0;
  for (uint32_t w = 0; w < warps; w++) {
    trace_writer writer;
    trace_chunk *chunk = trace_chunk_begin(launch, w);
    trace_chunk_writer(chunk, 0, &writer);
    for (trace_kind kind; (kind = trace_word_kind(from->items[at])) != TRACE_EXIT;) {
      if (kind != TRACE_ACCESS) {
        trace_copy_word(&writer, from->items[at++]);
        continue;
      }
      trace_flush_issue(&writer);
      uint32_t count = 2 + trace_access_lines(from->items[at]);
      memcpy(trace_room(&writer, count), from->items + at, count * sizeof *from->items);
      at += count;
    }
    at++;
    trace_put_exit(&writer);
    trace_chunk_publish(chunk);
  }
  trace_launch_finish(launch);
  trace_op_append(program, &(trace_op){.kind = TRACE_OP_END});
  words out = {0};
  const trace_op *op = trace_reader_next_op(reader);
  for (uint32_t w = 0; w < warps; w++) {
    trace_chunk *chunk = trace_reader_chunk(reader, op->launch, w);
    take_warp(reader, chunk, 0, &out);
    trace_reader_release(reader, chunk);
  }
  trace_reader_next_op(reader);
  trace_reader_free(reader);
  trace_program_free(program);
  return out;
}

static void expect_same(const words *a, const words *b, uint64_t seed) {
  for (size_t n = 0; n < a->count && n < b->count; n++)
    if (a->items[n] != b->items[n])
      fail_msg("seed %llu: word %zu is %llx, without marks %llx", (unsigned long long)seed, n,
               (unsigned long long)a->items[n], (unsigned long long)b->items[n]);
  assert_int_equal(a->count, b->count);
}

/* Every ENTER has its LEAVE, and between them there is no barrier. Returns the pairs. */
static uint64_t expect_pairs(const words *w, uint64_t seed) {
  bool inside = false;
  uint32_t pc = 0;
  uint64_t pairs = 0;
  for (size_t n = 0; n < w->count; n++) {
    uint64_t word = w->items[n];
    switch (trace_word_kind(word)) {
    case TRACE_ENTER:
      if (inside) fail_msg("seed %llu: ENTER in ENTER at word %zu", (unsigned long long)seed, n);
      inside = true;
      pc = trace_mark_pc(word);
      pairs++;
      break;
    case TRACE_LEAVE:
      if (!inside || pc != trace_mark_pc(word))
        fail_msg("seed %llu: LEAVE without ENTER at word %zu", (unsigned long long)seed, n);
      inside = false;
      break;
    case TRACE_BARRIER:
    case TRACE_EXIT:
      if (inside) fail_msg("seed %llu: a barrier or end in a region at word %zu", (unsigned long long)seed, n);
      break;
    case TRACE_ACCESS: n += 1 + trace_access_lines(word); break;
    default: break;
    }
  }
  return pairs;
}

/* ---- known kernels ---- */

/* The stream of a launch of one block: "e PC TRIPS", "l PC", "iN" instructions, "aPC" accesses, "w", "b", "x". */
static char *shape(const words *w) {
  ff_text out = {0};
  for (size_t n = 0; n < w->count; n++) {
    uint64_t word = w->items[n];
    switch (trace_word_kind(word)) {
    case TRACE_ENTER: ff_text_add(&out, "e%u:%u ", trace_mark_pc(word), trace_enter_trips(word)); break;
    case TRACE_LEAVE: ff_text_add(&out, "l%u ", trace_mark_pc(word)); break;
    case TRACE_ISSUE: ff_text_add(&out, "i%u ", trace_issue_count(word)); break;
    case TRACE_ACCESS:
      ff_text_add(&out, "a%u/%x ", trace_access_pc(word), (uint32_t)w->items[n + 1]);
      n += 1 + trace_access_lines(word);
      break;
    case TRACE_WAIT: ff_text_add(&out, "w "); break;
    case TRACE_UNITS: break;
    case TRACE_BARRIER: ff_text_add(&out, "b "); break;
    default: ff_text_add(&out, "x");
    }
  }
  return out.chars;
}

/* Instructions count from 0: %out and %n are loaded by 0 and 1, the body begins at 2. */
static void expect_shape(const char *body, const exec_mark *marks, uint32_t count, uint32_t threads, uint32_t n,
                         const char *want) {
  struct {
    uint64_t out;
    uint32_t n;
  } params;
  words streams[2];
  for (int marked = 0; marked < 2; marked++) {
    kernel_test *t = open_body("", body);
    params.out = buffer(t, 65536);
    params.n = n;
    streams[marked] =
        record(t, marks, marked ? count : 0, (uint32_t[3]){1, 1, 1}, (uint32_t[3]){threads, 1, 1}, &params);
    close_ptx(t);
  }
  char *text = shape(&streams[1]);
  assert_string_equal(text, want);
  words dropped = without_marks(&streams[1]);
  expect_same(&dropped, &streams[0], 0);
  expect_pairs(&streams[1], 0);
  free(text);
  free(dropped.items);
  free(streams[0].items);
  free(streams[1].items);
}

#define NO_BOUND \
  { PTX_NO_REG, 0 }
#define PLAIN(first, last) \
  { .entry = first, .exit = last, .from = NO_BOUND, .to = NO_BOUND }

static void straight(void **state) {
  (void)state;
  exec_mark one[] = {PLAIN(2, 5)}, two[] = {PLAIN(2, 3), PLAIN(3, 5)};
  const char *body = "mov.u32 %r0, 1; st.global.u32 [%out], %r0; mov.u32 %r1, 2; mov.u32 %r2, 3;";
  expect_shape(body, one, 1, 32, 0, "i2 e2:0 i2 a3/ffffffff i1 l2 i2 x");
  expect_shape(body, two, 2, 32, 0, "i2 e2:0 i1 l2 e3:0 i1 a3/ffffffff i1 l3 i2 x");
  exec_mark first[] = {PLAIN(0, 2)}, before_end[] = {PLAIN(4, 6)};
  expect_shape(body, first, 1, 32, 0, "e0:0 i2 l0 i2 a3/ffffffff i3 x");
  expect_shape(body, before_end, 1, 32, 0, "i4 a3/ffffffff e4:0 i2 l4 i1 x");
}

/* The function's text ends with the region: its lanes leave it where they exit. */
static void at_the_end(void **state) {
  (void)state;
  kernel_test *t =
      open_ptx(PTX_HEAD ".visible .entry k(.param .u64 p_out, .param .u32 p_n)\n{\n.reg .b64 %out; .reg .b32 %r<4>;\n"
                        "ld.param.u64 %out, [p_out]; mov.u32 %r0, 5; st.global.u32 [%out], %r0;\n}\n");
  struct {
    uint64_t out;
    uint32_t n;
  } params = {buffer(t, 64), 0};
  exec_mark marks[] = {PLAIN(1, 3)};
  words w = record(t, marks, 1, (uint32_t[3]){1, 1, 1}, (uint32_t[3]){32, 1, 1}, &params);
  char *text = shape(&w);
  assert_string_equal(text, "i1 e1:0 i2 a2/ffffffff l1 x");
  free(text);
  free(w.items);
  close_ptx(t);
}

/* do { ... } while (++i < tid + 1): every lane makes other trips. */
static void loop(void **state) {
  (void)state;
  const char *body = "mov.u32 %r0, %tid.x; add.u32 %r3, %r0, 1; mov.u32 %r1, 0;\n"          /* 2 3 4 */
                     "top: add.u32 %r1, %r1, 1; setp.lt.u32 %p0, %r1, %r3; @%p0 bra top;\n" /* 5 6 7 */
                     "mov.u32 %r2, 1;";                                                     /* 8, ret 9 */
  kernel_test *t = open_body("", body);
  uint32_t counter = t->module->funcs[0]->instrs[5].operands[0].reg,
           limit = t->module->funcs[0]->instrs[3].operands[0].reg;
  close_ptx(t);
  exec_mark marks[] = {
      {.entry = 5, .exit = 8, .from = {counter, 1}, .to = {limit, 0}, .step = 1, .compare = PTX_MOD_LT, .bits = 32}};
  expect_shape(body, marks, 1, 4, 0, "i5 e5:4 i12 l5 i2 x");
}

/* if (tid < 2) { region }: one half enters, the other waits behind. And a while loop that some warps skip. */
static void divergent(void **state) {
  (void)state;
  const char *body = "mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 2; @!%p0 bra other;\n"                   /* 2 3 4 */
                     "add.u32 %r1, %r0, 1; setp.eq.u32 %p1, %r0, 1; @%p1 bra out; add.u32 %r1, %r1, 1;\n" /* 5 6 7 8 */
                     "out: add.u32 %r2, %r1, 2; bra join;\n"                                              /* 9 10 */
                     "other: add.u32 %r2, %r0, 7;\n"                                                      /* 11 */
                     "join: mov.u32 %r3, %r2;";                                                           /* 12 */
  exec_mark marks[] = {PLAIN(5, 9)}, both[] = {PLAIN(4, 12)};
  expect_shape(body, marks, 1, 4, 0, "i5 e5:0 i4 l5 i5 x");
  expect_shape(body, both, 1, 4, 0, "i4 e4:0 i8 l4 i2 x");
}

static void skipped(void **state) {
  (void)state;
  const char *body = "mov.u32 %r0, %tid.x; mov.u32 %r1, 0;\n"         /* 2 3 */
                     "top: setp.ge.u32 %p0, %r1, %n; @%p0 bra out;\n" /* 4 5 */
                     "add.u32 %r1, %r1, 1; bra top;\n"                /* 6 7 */
                     "out: mov.u32 %r2, 1;";                          /* 8 */
  kernel_test *t = open_body("", body);
  uint32_t counter = t->module->funcs[0]->instrs[3].operands[0].reg,
           limit = t->module->funcs[0]->instrs[1].operands[0].reg;
  close_ptx(t);
  exec_mark marks[] = {{.entry = 4,
                        .exit = 8,
                        .from = {counter, 0},
                        .to = {limit, 0},
                        .step = 1,
                        .compare = PTX_MOD_LT,
                        .tested_first = true,
                        .bits = 32}};
  expect_shape(body, marks, 1, 32, 3, "i4 e4:3 i14 l4 i2 x");
  expect_shape(body, marks, 1, 32, 0, "i4 e4:0 i2 l4 i2 x");
}

/* ---- trips ---- */

static uint32_t trips_for(exec_mark mark, uint32_t from, uint32_t to) {
  /* 2 3 4, ret 5 */
  const char *body = "ld.global.u32 %r1, [%out]; ld.global.u32 %r2, [%out+4]; add.u32 %r3, %r1, %r2;";
  kernel_test *t = open_body("", body);
  mark.entry = 4;
  mark.exit = 5;
  mark.from.reg = t->module->funcs[0]->instrs[2].operands[0].reg;
  mark.to.reg = t->module->funcs[0]->instrs[3].operands[0].reg;
  struct {
    uint64_t out;
    uint32_t n;
  } params = {buffer(t, 64), 0};
  u32_at(params.out)[0] = from;
  u32_at(params.out)[1] = to;
  words w = record(t, &mark, 1, (uint32_t[3]){1, 1, 1}, (uint32_t[3]){32, 1, 1}, &params);
  uint32_t trips = UINT32_MAX;
  for (size_t n = 0; n < w.count; n++) {
    if (trace_word_kind(w.items[n]) == TRACE_ENTER) trips = trace_enter_trips(w.items[n]);
    if (trace_word_kind(w.items[n]) == TRACE_ACCESS) n += 1 + trace_access_lines(w.items[n]);
  }
  free(w.items);
  close_ptx(t);
  return trips;
}

static bool holds(ptx_mod compare, bool is_signed, uint32_t a, uint32_t b) {
  int64_t x = is_signed ? (int64_t)(int32_t)a : (int64_t)a, y = is_signed ? (int64_t)(int32_t)b : (int64_t)b;
  switch (compare) {
  case PTX_MOD_LT: return x < y;
  case PTX_MOD_LE: return x <= y;
  case PTX_MOD_GT: return x > y;
  case PTX_MOD_GE: return x >= y;
  case PTX_MOD_EQ: return x == y;
  default: return x != y;
  }
}

/* Against a loop that counts; one that would go around the type's end, or is longer than it, is not known. */
static void trip_counts(void **state) {
  (void)state;
  static const ptx_mod compares[] = {PTX_MOD_LT, PTX_MOD_LE, PTX_MOD_GT, PTX_MOD_GE, PTX_MOD_EQ, PTX_MOD_NE};
  static const int32_t steps[] = {1, -1, 3, -4, 128}, values[] = {0, 1, 7, -1, -9, 100, 2147483647, -2147483647 - 1};
  random_kernel random = {.state = 5};
  for (uint32_t n = 0; n < 150; n++) {
    exec_mark mark = {.compare = PICK(&random, compares),
                      .step = PICK(&random, steps),
                      .tested_first = pick(&random, 2),
                      .is_signed = pick(&random, 2),
                      .bits = 32};
    uint32_t from = (uint32_t)PICK(&random, values), to = (uint32_t)PICK(&random, values), want = !mark.tested_first,
             counter = from;
    bool wraps = false;
    while (want < 3000 && holds(mark.compare, mark.is_signed, counter, to)) {
      int64_t next = (mark.is_signed ? (int64_t)(int32_t)counter : (int64_t)counter) + mark.step;
      wraps |= mark.compare != PTX_MOD_NE && (mark.is_signed ? next != (int32_t)next : next < 0 || next > UINT32_MAX);
      counter += (uint32_t)mark.step;
      want++;
    }
    if (want >= 3000 && !wraps) continue; /* long */
    uint32_t trips = trips_for(mark, from, to);
    if (trips != (wraps ? 0 : want))
      fail_msg("compare %d, step %lld, first %d, signed %d: from %u to %u: %u trips, %u counted%s", (int)mark.compare,
               (long long)mark.step, mark.tested_first, mark.is_signed, from, to, trips, want, wraps ? ", wraps" : "");
  }
  exec_mark fixed = {.trips = 12, .step = 0}, unknown = {.step = 0},
            far = {.step = 1, .compare = PTX_MOD_LT, .bits = 32, .tested_first = true};
  assert_int_equal(trips_for(fixed, 0, 0), 12);
  assert_int_equal(trips_for(unknown, 0, 5), 0);
  assert_int_equal(trips_for(far, 0, UINT32_MAX), TRACE_TRIPS_MAX);
}

/* ---- bursts that do not fit into one ISSUE ---- */

static void long_bursts(void **state) {
  (void)state;
  random_kernel random = {.state = 77};
  for (int round = 0; round < 12; round++) {
    ff_text body = {0};
    uint32_t length = 5 + pick(&random, 900), begin = pick(&random, length - 2),
             size = 1 + pick(&random, length - begin - 1);
    ff_text_add(
        &body,
        "mov.u32 %%r1, 0; mov.u32 %%r5, %%tid.x; shl.b32 %%r5, %%r5, 3; { .shared .b32 s[512]; .reg .b32 base; mov.u32 base, s; add.u32 %%r5, %%r5, base; }\ntop:\n");
    for (uint32_t n = 0; n < length; n++)
      ff_text_add(&body, "%s\n",
                  pick(&random, 9)   ? "add.u32 %r2, %r2, 1;"
                  : pick(&random, 2) ? "sin.approx.f32 %f1, %f1;"
                                     : "ld.shared.u32 %r3, [%r5];");
    ff_text_add(&body, "add.u32 %%r1, %%r1, 1; setp.lt.u32 %%p0, %%r1, %%n; @%%p0 bra top;\n");
    exec_mark marks[] = {PLAIN(7 + begin, 7 + begin + size)};
    struct {
      uint64_t out;
      uint32_t n;
    } params;
    words streams[2];
    for (int marked = 0; marked < 2; marked++) {
      kernel_test *t = open_body("", body.chars);
      params.out = buffer(t, 64);
      params.n = 40000 / length + 60;
      streams[marked] = record(t, marks, marked ? 1u : 0, (uint32_t[3]){1, 1, 1}, (uint32_t[3]){32, 1, 1}, &params);
      close_ptx(t);
    }
    assert_true(expect_pairs(&streams[1], (uint64_t)round) == params.n);
    assert_true(streams[0].count > 2);
    words dropped = without_marks(&streams[1]);
    expect_same(&dropped, &streams[0], (uint64_t)round);
    free(dropped.items);
    free(streams[0].items);
    free(streams[1].items);
    free(body.chars);
  }
}

/* ---- random kernels, random regions ---- */

/* Entered only at begin, left only to end, no barrier and no exit inside. */
static bool is_region(const ptx_func *f, uint32_t begin, uint32_t end) {
  for (uint32_t n = 0; n < f->instr_count; n++) {
    const ptx_instr *i = &f->instrs[n];
    bool inside = n >= begin && n < end;
    if (inside && (i->opcode == PTX_OP_RET || i->opcode == PTX_OP_EXIT || i->opcode == PTX_OP_BAR ||
                   i->opcode == PTX_OP_TRAP || i->opcode == PTX_OP_CALL))
      return false;
    if (i->opcode != PTX_OP_BRA) continue;
    uint32_t target = i->operands[0].label;
    if (inside && (target < begin || target > end)) return false;
    if (!inside && target > begin && target < end) return false;
  }
  return true;
}

static uint32_t random_regions(random_kernel *k, const ptx_func *f, exec_mark *marks, uint32_t room) {
  uint32_t count = 0;
  for (uint32_t at = 0; at < f->instr_count && count < room;) {
    uint32_t begin = at + pick(k, 12), end = begin + 1 + pick(k, 60);
    for (; end > begin && (end > f->instr_count || !is_region(f, begin, end)); end--) {}
    if (end <= begin || begin >= f->instr_count) {
      at++;
      continue;
    }
    marks[count++] = (exec_mark){.entry = begin,
                                 .exit = end,
                                 .from = {pick(k, f->reg_count), 3},
                                 .to = {pick(k, f->reg_count), -1},
                                 .step = 2,
                                 .compare = PTX_MOD_LT,
                                 .bits = pick(k, 2) ? 32 : 64};
    at = end;
  }
  return count;
}

static void random_kernels(void **state) {
  (void)state;
  uint64_t pairs = 0, regions = 0;
  for (uint64_t seed = 1; seed <= SHARE(80, 5); seed++) {
    ff_text text = random_kernel_of(seed, true);
    random_kernel k = {.state = seed * 977 + 13};
    words streams[2];
    uint32_t *results[2];
    exec_mark marks[64];
    uint32_t count = 0;
    for (int marked = 0; marked < 2; marked++) {
      kernel_test *t = open_ptx(text.chars);
      t->config.max_instructions = 300000;
      struct {
        uint64_t a, b;
        uint32_t n, m;
      } params = {buffer(t, 4 * RANDOM_WORDS), buffer(t, 4 * RANDOM_WORDS), 37, 5};
      for (uint32_t n = 0; n < RANDOM_WORDS; n++) u32_at(params.a)[n] = n * 2654435761u >> (n % 29);
      if (marked) count = random_regions(&k, t->module->funcs[0], marks, 64);
      streams[marked] = record(t, marks, count, (uint32_t[3]){2, 2, 1}, (uint32_t[3]){40, 2, 1}, &params);
      results[marked] = malloc(4 * RANDOM_WORDS);
      memcpy(results[marked], u32_at(params.b), 4 * RANDOM_WORDS);
      close_ptx(t);
    }
    assert_memory_equal(results[0], results[1], 4 * RANDOM_WORDS);
    regions += count;
    pairs += expect_pairs(&streams[1], seed);
    words dropped = without_marks(&streams[1]);
    expect_same(&dropped, &streams[0], seed);
    free(dropped.items);
    for (int n = 0; n < 2; n++) {
      free(streams[n].items);
      free(results[n]);
    }
    free(text.chars);
  }
  assert_true(regions > SHARE(200, 5) && pairs > 3 * regions);
}

static void refusals(void **state) {
  (void)state;
  kernel_test *t = open_body("", "mov.u32 %r0, 1; mov.u32 %r1, 1;");
  exec_kernel *kernel;
  ff_error error = {0};
  assert_int_equal(exec_program_kernel(t->program, "k", &kernel, &error), FF_OK);
  exec_mark order[] = {PLAIN(2, 3), PLAIN(0, 1)}, beyond[] = {PLAIN(2, 99)}, empty[] = {PLAIN(2, 2)},
            unknown[] = {{.entry = 1, .exit = 2, .from = {100000, 0}, .to = NO_BOUND}};
  assert_int_equal(exec_kernel_mark(kernel, order, 2, &error), FF_INVALID);
  assert_int_equal(exec_kernel_mark(kernel, beyond, 1, &error), FF_INVALID);
  assert_int_equal(exec_kernel_mark(kernel, empty, 1, &error), FF_INVALID);
  assert_int_equal(exec_kernel_mark(kernel, unknown, 1, &error), FF_INVALID);
  close_ptx(t);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(straight),    cmocka_unit_test(at_the_end),     cmocka_unit_test(loop),
    cmocka_unit_test(divergent),   cmocka_unit_test(skipped),        cmocka_unit_test(trip_counts),
    cmocka_unit_test(long_bursts), cmocka_unit_test(random_kernels), cmocka_unit_test(refusals)};

RUN_ON_EVERY_ISA(tests)
