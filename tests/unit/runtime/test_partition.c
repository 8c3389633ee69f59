/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions on the virtual GPU: both ways give what the whole GPU gives, kernels stay on their SMs, launches are
 * asynchronous, memory has its own budget, and every refusal has its message. On the model driver, which has no green
 * contexts: what is missing is said, auto goes on. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "farfault/farfault.h"

enum { MIB = 1 << 20, BLOCK = 128, BLOCKS = 500, WORDS = BLOCK * BLOCKS - 7, GPU_SMS = 28 };

/* step: y[i] = y[i] * 3 + i, u32, for i < n;  where: at[block] = %smid;  total: a variable counts */
static const char code[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry step(.param .u64 y, .param .u32 n)\n{\n"
    "  .reg .pred %p<2>; .reg .b32 %r<10>; .reg .b64 %rd<10>;\n"
    "  ld.param.u64 %rd2, [y]; ld.param.u32 %r1, [n];\n"
    "  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.s32 %r5, %r2, %r3, %r4;\n"
    "  setp.ge.u32 %p1, %r5, %r1; @%p1 bra END;\n"
    "  mul.wide.u32 %rd3, %r5, 4; add.s64 %rd5, %rd2, %rd3; ld.global.u32 %r6, [%rd5]; mad.lo.u32 %r7, %r6, 3, %r5; st.global.u32 [%rd5], %r7;\n"
    "END: ret;\n}\n"
    ".visible .entry where(.param .u64 at)\n{\n"
    "  .reg .b32 %r<10>; .reg .b64 %rd<10>;\n"
    "  ld.param.u64 %rd1, [at]; mov.u32 %r1, %smid; mov.u32 %r2, %ctaid.x;\n"
    "  mul.wide.u32 %rd2, %r2, 4; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r1; ret;\n}\n";
static const char with_variable[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n.global .u32 total;\n"
    ".visible .entry count()\n{\n  .reg .b32 %r<3>; .reg .b64 %rd<3>;\n  mov.u64 %rd1, total; atom.global.add.u32 %r1, [%rd1], 1; ret;\n}\n";

#define OK(call)                                                                       \
  do {                                                                                 \
    ff_result result_ = (call);                                                        \
    if (result_) fail_msg("%s: %s: %s", #call, ff_result_name(result_), ff_message()); \
  } while (0)
#define BAD(call, result, message)                                    \
  do {                                                                \
    assert_string_equal(ff_result_name(call), #result);               \
    if (!strstr(ff_message(), message)) fail_msg("%s", ff_message()); \
  } while (0)

typedef struct fixture {
  ff_gpu *gpu;
  ff_module *module;
  ff_kernel *step, *where;
} fixture;

static fixture start(uint64_t budget) {
  fixture f;
  ff_options o = {.size = sizeof o, .driver = "virtual", .budget = budget};
  OK(ff_open(&o, &f.gpu));
  OK(ff_module_load(f.gpu, "test", code, 0, &f.module));
  OK(ff_kernel_find(f.module, "step", &f.step));
  OK(ff_kernel_find(f.module, "where", &f.where));
  return f;
}

static ff_partition_options asked(const char *share, const char *way) {
  return (ff_partition_options){.size = sizeof(ff_partition_options), .name = "mine", .share = share, .way = way};
}

static ff_partition *partition(const fixture *f, const char *share, const char *way) {
  ff_partition *p;
  ff_partition_options o = asked(share, way);
  OK(ff_partition_create(f->gpu, &o, &p));
  return p;
}

static ff_partition_info describe(ff_partition *p) {
  ff_partition_info info;
  OK(ff_partition_describe(p, &info));
  return info;
}

static ff_segment *segment(const fixture *f, ff_partition *p, uint64_t words) {
  ff_segment *s;
  OK(p ? ff_partition_segment_create(p, NULL, words * 4, &s) : ff_segment_create(f->gpu, NULL, words * 4, &s));
  return s;
}

static ff_result launch(const fixture *f, ff_partition *p, const ff_launch_request *r, ff_ticket *ticket) {
  return p ? ff_partition_launch(p, r, ticket) : ff_launch(f->gpu, r, ticket);
}

static ff_result step(const fixture *f, ff_partition *p, ff_segment *y, uint32_t words, ff_ticket *ticket) {
  ff_use uses[] = {{.segment = y, .access = FF_READ_WRITE, .per_block = {BLOCK * 4}, .block_bytes = BLOCK * 4}};
  ff_argument arguments[] = {FF_ADDRESS(y), FF_VALUE(words)};
  ff_launch_request r = {.kernel = f->step,
                         .grid = {(words + BLOCK - 1) / BLOCK},
                         .block = {BLOCK},
                         .arguments = arguments,
                         .argument_count = 2,
                         .uses = uses,
                         .use_count = 1};
  return launch(f, p, &r, ticket);
}

/* `times` steps, and then whether each word is what that gives. */
static void steps_are_right(const fixture *f, ff_partition *p, uint32_t words, uint32_t times) {
  ff_segment *y = segment(f, p, words);
  uint32_t *host;
  for (uint32_t t = 0; t < times; t++) OK(step(f, p, y, words, NULL));
  OK(ff_wait_all(f->gpu));
  OK(ff_segment_map(y, FF_READ, 0, 0, (void **)&host));
  for (uint32_t i = 0; i < words; i++) {
    uint32_t expected = 0;
    for (uint32_t t = 0; t < times; t++) expected = expected * 3 + i;
    if (host[i] != expected) fail_msg("word %u is %u, not %u", i, host[i], expected);
  }
  OK(ff_segment_unmap(y, host));
  OK(ff_segment_free(y));
}

/* Every SM that blocks of a launch in the partition were on. */
static void seen(const fixture *f, ff_partition *p, bool set[GPU_SMS]) {
  ff_segment *at = segment(f, p, BLOCKS);
  ff_use use = {.segment = at, .access = FF_WRITE};
  ff_argument argument = FF_ADDRESS(at);
  ff_launch_request r = {.kernel = f->where,
                         .grid = {BLOCKS},
                         .block = {1},
                         .arguments = &argument,
                         .argument_count = 1,
                         .uses = &use,
                         .use_count = 1};
  uint32_t *host;
  OK(launch(f, p, &r, NULL));
  OK(ff_segment_map(at, FF_READ, 0, 0, (void **)&host));
  memset(set, 0, GPU_SMS * sizeof *set);
  for (int i = 0; i < BLOCKS; i++) {
    assert_true(host[i] < GPU_SMS);
    set[host[i]] = true;
  }
  OK(ff_segment_unmap(at, host));
  OK(ff_segment_free(at));
}

static void both_ways_give_the_same(void **state) {
  static const char *const ways[] = {"green", "rewrite", NULL};
  fixture f = start(64 * MIB);
  for (int w = 0; w < 3; w++) {
    bool set[GPU_SMS];
    ff_partition *first = partition(&f, "sm=25%", ways[w]), *second = partition(&f, "sm=6,memory=50%", ways[w]);
    ff_partition_info a = describe(first), b = describe(second);
    assert_string_equal(a.way, ways[w] ? ways[w] : "green");
    assert_int_equal(a.sm_count, w == 1 ? 7 : 8); /* groups of two */
    assert_int_equal(b.sm_count, 6);
    assert_int_equal(a.sm_first, 0);
    assert_int_equal(b.sm_first, a.sm_count);
    assert_int_equal(a.gpu_sms, GPU_SMS);
    assert_false(a.own_budget || a.apart || a.memory_apart);
    assert_true(b.own_budget);
    assert_int_equal(b.budget, 32 * MIB);
    assert_int_equal(a.budget, 32 * MIB);
    for (int i = 0; i < 2; i++) {
      ff_partition_info own = i ? b : a;
      seen(&f, i ? second : first, set);
      for (uint32_t sm = 0; sm < GPU_SMS; sm++)
        if (set[sm] && (sm < own.sm_first || sm >= own.sm_first + own.sm_count))
          fail_msg("%s: a block on SM %u", own.way, sm);
      steps_are_right(&f, i ? second : first, WORDS, 3);
    }
    steps_are_right(&f, NULL, WORDS, 3);
    OK(ff_partition_destroy(second));
    OK(ff_partition_destroy(first));
    ff_gpu_info info;
    OK(ff_gpu_describe(f.gpu, &info));
    assert_int_equal(info.budget, 64 * MIB); /* all of it is back */
  }
  OK(ff_close(f.gpu));
}

static void below_a_group_kernels_are_rewritten(void **state) {
  fixture f = start(0);
  bool set[GPU_SMS];
  ff_partition *one = partition(&f, "sm=1", NULL), *three = partition(&f, "sm=3", NULL);
  assert_string_equal(describe(one).way, "rewrite");
  assert_string_equal(describe(three).way, "green");
  assert_int_equal(describe(three).sm_count, 4);
  assert_int_equal(describe(three).sm_first, 2); /* SM 1 is in a group that SM 0 has broken */
  seen(&f, one, set);
  for (int i = 0; i < GPU_SMS; i++) assert_int_equal(set[i], i == 0);
  steps_are_right(&f, one, WORDS, 2);
  setenv("FF_PARTITION", "rewrite", 1);
  ff_partition *forced = partition(&f, "sm=2", "green");
  assert_string_equal(describe(forced).way, "rewrite");
  unsetenv("FF_PARTITION");
  OK(ff_close(f.gpu)); /* with all that is in it */
}

/* Percentages with a point, also where the program's numbers have a comma; all of the GPU. */
static void shares_in_percent(void **state) {
  fixture f = start(0);
  bool comma = setlocale(LC_NUMERIC, "de_DE.UTF-8") != NULL;               /* not on every system */
  assert_int_equal(describe(partition(&f, "sm=12.5%", NULL)).sm_count, 4); /* 3.5 SMs: two groups */
  if (comma) setlocale(LC_NUMERIC, "C");
  OK(ff_close(f.gpu));
  f = start(0);
  assert_int_equal(describe(partition(&f, "sm=100%", "green")).sm_count, GPU_SMS);
  OK(ff_close(f.gpu));
}

/* Windows of a kernel that is bound to SMs: more data than the partition's memory. */
static void windows_are_rewritten_too(void **state) {
  for (int w = 0; w < 2; w++) {
    fixture f = start(64 * MIB);
    ff_statistics s;
    ff_partition *p = partition(&f, "sm=3,memory=8M", w ? "green" : "rewrite");
    steps_are_right(&f, p, 5 * MIB, 2); /* 20 MiB */
    OK(ff_statistics_get(f.gpu, &s));
    assert_true(s.windows >= 6);
    assert_true(s.peak_resident_bytes <= 8 * MIB);
    OK(ff_close(f.gpu));
  }
}

/* The share of memory is kept from both sides. */
static void budgets_are_apart(void **state) {
  fixture f = start(32 * MIB);
  ff_segment_info info;
  ff_segment *outside = segment(&f, NULL, 6 * MIB); /* 24 MiB */
  OK(step(&f, NULL, outside, 6 * MIB, NULL));
  OK(ff_wait_all(f.gpu));
  OK(ff_segment_describe(outside, &info));
  assert_int_equal(info.resident_bytes, 24 * MIB);
  ff_partition *p = partition(&f, "sm=8,memory=50%", NULL); /* what is resident has to make room */
  assert_int_equal(describe(p).budget, 16 * MIB);
  OK(ff_segment_describe(outside, &info));
  assert_true(info.resident_bytes <= 16 * MIB);
  steps_are_right(&f, p, 2 * MIB, 2);
  steps_are_right(&f, NULL, 6 * MIB, 1);
  /* small ones do not share a piece across the border */
  ff_segment *inside = segment(&f, p, 1024), *small = segment(&f, NULL, 1024);
  OK(step(&f, p, inside, 1024, NULL));
  OK(ff_segment_pin(inside, 0, true));
  BAD(step(&f, NULL, inside, 1024, NULL), FF_ERROR_INVALID, "is of partition mine, the launch of none");
  BAD(step(&f, p, small, 1024, NULL), FF_ERROR_INVALID, "is of no partition, the launch of partition mine");
  BAD(ff_partition_destroy(p), FF_ERROR_BUSY, "has segments still: 'segment");
  OK(ff_segment_free(inside));
  ff_partition_options more = asked("sm=2,memory=24M", NULL);
  BAD(ff_partition_create(f.gpu, &more, &(ff_partition *){NULL}), FF_ERROR_NO_MEMORY,
      "neither pinned nor another partition's");
  OK(ff_partition_destroy(p));
  OK(ff_partition_create(f.gpu, &more, &p));
  OK(ff_close(f.gpu));
}

static void a_launch_returns_at_once(void **state) {
  static const char *const ways[] = {"green", "rewrite"};
  for (int w = 0; w < 2; w++) {
    fixture f = start(0);
    ff_partition *p = partition(&f, "sm=4", ways[w]), *other = partition(&f, "sm=4", ways[w]);
    ff_segment *mine = segment(&f, p, WORDS), *theirs = segment(&f, other, WORDS);
    ff_ticket tickets[40];
    bool done;
    for (int i = 0; i < 40; i++) OK(step(&f, i % 2 ? p : other, i % 2 ? mine : theirs, WORDS, &tickets[i]));
    for (int i = 0; i < 40; i++) assert_int_equal(tickets[i], tickets[0] + (ff_ticket)i);
    OK(ff_flush(f.gpu));
    OK(ff_done(f.gpu, tickets[39], &done));
    assert_false(done); /* in virtual time the host is far ahead of the kernels */
    OK(ff_wait(f.gpu, tickets[39]));
    OK(ff_done(f.gpu, tickets[39], &done));
    assert_true(done);
    OK(ff_close(f.gpu));
  }
}

static void refusals_have_messages(void **state) {
  fixture f = start(0);
  ff_partition *p, *q;
  ff_ticket ticket;
  static const struct {
    const char *share, *message;
  } shares[] = {{"", "names no SMs"},
                {"memory=50%", "names no SMs"},
                {"sm=0", "'0' is neither a number of 1 to 28"},
                {"sm=29", "'29'"},
                {"sm=1.5", "'1.5'"},
                {"sm=101%", "'101%'"},
                {"sm=nan%", "'nan%'"},
                {"sm=50%x", "'50%x'"},
                {"sm= 5", "' 5'"},
                {"sm=2,sm=3", "'sm=3' is neither"},
                {"warps=3", "'warps=3' is neither"},
                {"sm=2,memory=1K", "less than one piece"},
                {"sm=2,memory=x", "the share of memory 'x'"},
                {"sm=2,memory=200%", "memory"}};
  for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
    ff_partition_options o = asked(shares[i].share, NULL);
    ff_result result = ff_partition_create(f.gpu, &o, &p);
    if (!result || !strstr(ff_message(), shares[i].message))
      fail_msg("'%s': %s", shares[i].share, result ? ff_message() : "accepted");
  }
  ff_partition_options o = asked("sm=2", "blue");
  BAD(ff_partition_create(f.gpu, &o, &p), FF_ERROR_INVALID, "green, rewrite or auto, not 'blue'");
  o = asked(NULL, NULL);
  BAD(ff_partition_create(f.gpu, &o, &p), FF_ERROR_INVALID, "no share");
  o = asked("sm=2", NULL);
  o.device = 1;
  BAD(ff_partition_create(f.gpu, &o, &p), FF_ERROR_INVALID, "there is no GPU 1");
  o.size = 0;
  BAD(ff_partition_create(f.gpu, &o, &p), FF_ERROR_INVALID, "size is not set");
  BAD(ff_partition_create(NULL, &o, &p), FF_ERROR_INVALID, "NULL");
  BAD(ff_partition_launch(NULL, NULL, NULL), FF_ERROR_INVALID, "NULL");
  BAD(ff_partition_describe(NULL, NULL), FF_ERROR_INVALID, "NULL");
  BAD(ff_partition_segment_create(NULL, NULL, 5, NULL), FF_ERROR_INVALID, "NULL");
  BAD(ff_partition_segment_open(NULL, NULL, "x", 0, 0, 0, NULL), FF_ERROR_INVALID, "NULL");
  OK(ff_partition_destroy(NULL));
  p = partition(&f, "sm=20", NULL);
  o = asked("sm=9", "rewrite");
  BAD(ff_partition_create(f.gpu, &o, &q), FF_ERROR_TOO_LARGE,
      "wants 9 SMs side by side; of the GPU's 28, 20 are other partitions'");
  OK(ff_partition_destroy(p));
  ff_partition *all[8];
  for (int i = 0; i < 8; i++) all[i] = partition(&f, "sm=1", NULL);
  BAD(ff_partition_create(f.gpu, &o, &q), FF_ERROR_TOO_LARGE, "at most 8 partitions");
  OK(ff_partition_destroy(all[3]));
  ff_module *counting;
  ff_kernel *count;
  OK(ff_module_load(f.gpu, "counting", with_variable, 0, &counting));
  OK(ff_kernel_find(counting, "count", &count));
  ff_launch_request r = {.kernel = count, .grid = {4}, .block = {32}};
  OK(ff_partition_launch(all[0], &r, &ticket));
  BAD(ff_wait(f.gpu, ticket), FF_ERROR_CODE, "module 'counting' has variables");
  p = partition(&f, "sm=4", "green");
  OK(ff_partition_launch(p, &r, &ticket)); /* a green context runs it as it is */
  OK(ff_wait(f.gpu, ticket));
  steps_are_right(&f, all[0], WORDS, 1);
  r.device = 2;
  BAD(ff_partition_launch(p, &r, &ticket), FF_ERROR_INVALID, "GPU 1");
  OK(ff_close(f.gpu));
}

/* ---- threads ---- */

typedef struct tenant {
  const fixture *f;
  const char *way;
} tenant;

static void *tenant_main(void *context) {
  const tenant *t = context;
  for (int i = 0; i < 6; i++) {
    ff_partition *p = partition(t->f, "sm=4,memory=4M", t->way);
    steps_are_right(t->f, p, WORDS / 2, 2);
    OK(ff_partition_destroy(p));
  }
  return NULL;
}

static void threads_have_partitions_of_their_own(void **state) {
  fixture f = start(64 * MIB);
  tenant tenants[] = {{&f, "green"}, {&f, "rewrite"}, {&f, NULL}};
  pthread_t threads[3];
  for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, tenant_main, &tenants[i]);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  OK(ff_close(f.gpu));
}

/* FF_CHECK: kernels that check themselves, bound to SMs. */
static void checked_kernels_are_rewritten_too(void **state) {
  ff_options o = {.size = sizeof o, .driver = "virtual", .check = true};
  fixture f;
  OK(ff_open(&o, &f.gpu));
  OK(ff_module_load(f.gpu, "test", code, 0, &f.module));
  OK(ff_kernel_find(f.module, "step", &f.step));
  ff_partition *p = partition(&f, "sm=3", "rewrite");
  steps_are_right(&f, p, WORDS, 2);
  ff_segment *y = segment(&f, p, WORDS);
  ff_ticket ticket;
  uint32_t words = WORDS;
  ff_use use = {.segment = y, .access = FF_READ_WRITE, .bytes = 4096};
  ff_argument arguments[] = {FF_ADDRESS(y), FF_VALUE(words)};
  ff_launch_request r = {.kernel = f.step,
                         .grid = {BLOCKS},
                         .block = {BLOCK},
                         .arguments = arguments,
                         .argument_count = 2,
                         .uses = &use,
                         .use_count = 1};
  OK(ff_partition_launch(p, &r, &ticket));
  BAD(ff_wait(f.gpu, ticket), FF_ERROR_FAULT, "step");
  OK(ff_close(f.gpu));
}

/* ---- a driver without green contexts ---- */

static void without_green_contexts(void **state) {
  ff_options o = {.size = sizeof o, .driver = FF_BUILD_DIR "/tests/model_driver.so"};
  ff_gpu *gpu;
  ff_partition *p;
  OK(ff_open(&o, &gpu));
  ff_partition_options green = asked("sm=2", "green"), any = asked("sm=2,memory=4M", NULL);
  BAD(ff_partition_create(gpu, &green, &p), FF_ERROR_NO_DRIVER, "has no green contexts");
  OK(ff_partition_create(gpu, &any, &p));
  assert_string_equal(describe(p).way, "rewrite");
  OK(ff_partition_destroy(p));
  OK(ff_close(gpu));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(both_ways_give_the_same),
      cmocka_unit_test(below_a_group_kernels_are_rewritten),
      cmocka_unit_test(shares_in_percent),
      cmocka_unit_test(windows_are_rewritten_too),
      cmocka_unit_test(budgets_are_apart),
      cmocka_unit_test(a_launch_returns_at_once),
      cmocka_unit_test(refusals_have_messages),
      cmocka_unit_test(threads_have_partitions_of_their_own),
      cmocka_unit_test(checked_kernels_are_rewritten_too),
      cmocka_unit_test(without_green_contexts),
  };
  setenv("FARFAULT_MACHINE", "gtx1080ti", 1);
  unsetenv("FF_PARTITION");
  return cmocka_run_group_tests(tests, NULL, NULL);
}
