/* SPDX-License-Identifier: Apache-2.0 */
/* Advice: the rules on made-up results, at both sides of each threshold; which settings are asked for, stage by stage;
 * what is said and what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "advise/advise.h"

#define MIB (UINT64_C(1) << 20)

/* Two allocations of 8 MiB that a kernel declares and touches, and one that it only declares. */
static advise_facts make_facts(bool managed) {
  advise_facts f = {
      .launches = 4, .accesses = 1000, .footprint = 20 * MIB, .footprint_blocks = 20 * MIB, .managed = managed};
  trace_memory_kind memory = managed ? TRACE_MEMORY_MANAGED : TRACE_MEMORY_DEVICE;
  advise_allocation a = {.name = "first",
                         .id = 1,
                         .bytes = 8 * MIB,
                         .memory = memory,
                         .pages = 2048,
                         .touched_pages = 2048,
                         .loads = 500,
                         .sector_bytes = 8 * MIB,
                         .declared = 4,
                         .touched = 4};
  advise_allocation b = a, c = a;
  snprintf(b.name, sizeof b.name, "second");
  snprintf(c.name, sizeof c.name, "idle");
  b.id = 2;
  b.writes = 10;
  b.touched_pages = 10;
  c.id = 3;
  c.touched = c.touched_pages = c.loads = c.sector_bytes = 0;
  FF_PUSH(&f.allocations, a);
  FF_PUSH(&f.allocations, b);
  FF_PUSH(&f.allocations, c);
  advise_kernel k = {.name = "work", .number = 7, .launches = 4};
  FF_PUSH(&k.uses, ((advise_use){.allocation = 0, .declared = 4, .touched = 4}));
  FF_PUSH(&k.uses, ((advise_use){.allocation = 2, .declared = 4}));
  FF_PUSH(&f.kernels, k);
  return f;
}

typedef uint64_t (*times)(const char *memory); /* ps; 0: it cannot run */

static void put_time(advise_study *study, size_t index, uint64_t ps) {
  sim_result r = {.complete = true, .counters = {.time_ps = ps, .faults = 100}};
  if (!ps) snprintf(r.error, sizeof r.error, "it does not fit");
  r.allocation_count = 3;
  r.allocations = ff_alloc(3 * sizeof *r.allocations);
  for (uint32_t i = 0; i < 3; i++) {
    r.allocations[i] = (sim_allocation_result){.id = i + 1, .bytes = 8 * MIB};
    r.allocations[i].counters = (sim_counters){.faults = 50, .h2d_bytes = 8 * MIB, .fault_wait_ps = 1000 * (i + 1)};
  }
  advise_put(study, index, &r);
  assert_null(r.allocations);
}

static uint32_t system_memory; /* of the machine */

static void run_study(advise_study *study, const char *baseline, bool managed, bool quick, times of) {
  advise_facts facts = make_facts(managed);
  facts.system_memory = system_memory;
  ff_error error;
  size_t first;
  assert_int_equal(advise_start(study, &facts, baseline, quick, &error), FF_OK);
  while (advise_next(study, &first))
    for (size_t i = first; i < study->settings.count; i++) put_time(study, i, of(study->settings.items[i]->memory));
}

static const advise_item *item_of(const advise_advice *advice, advise_kind kind, const char *then) {
  for (size_t i = 0; i < advice->items.count; i++)
    if (advice->items.items[i].kind == kind && (!then || !strcmp(advice->items.items[i].then->memory, then)))
      return &advice->items.items[i];
  return NULL;
}

static bool tried(const advise_advice *advice, const char *memory) {
  for (size_t i = 0; i < advice->tried.count; i++)
    if (!strcmp(advice->tried.items[i]->memory, memory)) return true;
  return false;
}

static const advise_capacity *capacity_of(const advise_advice *advice, const char *manager) {
  for (size_t i = 0; i < advice->capacities.count; i++)
    if (!strcmp(advice->capacities.items[i].manager, manager)) return &advice->capacities.items[i];
  return NULL;
}

static char *markdown_of(const advise_study *study, const advise_advice *advice) {
  ff_text out = {0};
  advise_markdown(study, advice, &(advise_context){"app.fft", "./app", "gtx480", "--machine gtx480"}, &out);
  return out.chars;
}

/* ---- which hints are tried ---- */

static void sparse_memory_is_tried_pinned(void **state) {
  (void)state;
  advise_facts f = make_facts(true);
  advise_allocation a = f.allocations.items[0];
  sim_counters c = {.h2d_bytes = 6 * MIB, .d2h_bytes = 2 * MIB};
  a.sector_bytes = ADVISE_SPARSE * 8 * MIB - 1;
  assert_true(advise_tries(&a, &c, SIM_HINT_PIN));
  assert_true(advise_tries(&a, &c, SIM_HINT_CPU));
  a.sector_bytes++;
  assert_false(advise_tries(&a, &c, SIM_HINT_PIN));
  a.sector_bytes = 0;
  c.h2d_bytes = c.d2h_bytes = 0; /* nothing moved */
  assert_false(advise_tries(&a, &c, SIM_HINT_PIN));
  a.sector_bytes = UINT64_MAX;
  c.h2d_bytes = 1;
  assert_false(advise_tries(&a, &c, SIM_HINT_PIN));
  advise_facts_free(&f);
}

static void dense_memory_is_tried_prefetched(void **state) {
  (void)state;
  advise_facts f = make_facts(true);
  advise_allocation a = f.allocations.items[0];
  sim_counters c = {.faults = 1};
  a.touched_pages = 1024;
  assert_true(advise_tries(&a, &c, SIM_HINT_PREFETCH));
  a.touched_pages = 1023;
  assert_false(advise_tries(&a, &c, SIM_HINT_PREFETCH));
  a.touched_pages = 2048;
  a.declared = 0; /* there is no launch to prefetch it before */
  assert_false(advise_tries(&a, &c, SIM_HINT_PREFETCH));
  a.declared = 1;
  c.faults = 0;
  assert_false(advise_tries(&a, &c, SIM_HINT_PREFETCH));
  c.faults = 1;
  a.memory = TRACE_MEMORY_PINNED;
  assert_false(advise_tries(&a, &c, SIM_HINT_PREFETCH));
  a.memory = TRACE_MEMORY_DEVICE;
  assert_true(advise_tries(&a, &c, SIM_HINT_PREFETCH));
  assert_false(advise_tries(&a, NULL, SIM_HINT_PREFETCH));
  a.touched = 0;
  assert_false(advise_tries(&a, &c, SIM_HINT_PREFETCH));
  advise_facts_free(&f);
}

static void shared_memory_that_no_kernel_writes_is_tried_read_mostly(void **state) {
  (void)state;
  advise_facts f = make_facts(true);
  advise_allocation a = f.allocations.items[0];
  sim_counters c = {.faults = 1};
  assert_false(advise_tries(&a, &c, SIM_HINT_READ_MOSTLY)); /* no other processor uses it, nothing leaves */
  a.host_uses_later = 1;
  assert_true(advise_tries(&a, &c, SIM_HINT_READ_MOSTLY));
  a.writes = 1;
  assert_false(advise_tries(&a, &c, SIM_HINT_READ_MOSTLY));
  a.writes = a.host_uses_later = 0;
  c.evicted_bytes = 4096;
  assert_true(advise_tries(&a, &c, SIM_HINT_READ_MOSTLY));
  advise_facts_free(&f);
}

/* ---- hints ---- */

static uint64_t at_threshold(const char *memory) {
  if (!strcmp(memory, "uvm+advise=1:prefetch")) return 98000000; /* 2 % */
  if (!strcmp(memory, "uvm+advise=1:pin")) return 98000001;      /* a bit less */
  return 100000000;
}

static void advice_is_what_gains_two_percent(void **state) {
  (void)state;
  advise_study study;
  advise_advice advice;
  run_study(&study, NULL, true, false, at_threshold);
  assert_string_equal(study.baseline, "uvm");
  advise_conclude(&study, &advice);
  const advise_item *item = item_of(&advice, ADVISE_KIND_HINT, "uvm+advise=1:prefetch");
  assert_non_null(item);
  assert_true(item->gain == 0.02);
  assert_int_equal(item->allocation->id, 1);
  assert_false(item->conditional);
  assert_true(tried(&advice, "uvm+advise=1:pin"));
  assert_false(tried(&advice, "uvm+advise=1:prefetch"));
  item = item_of(&advice, ADVISE_KIND_TOGETHER, NULL);
  assert_non_null(item);
  assert_string_equal(item->then->memory, "uvm+advise=1:prefetch");
  assert_null(item_of(&advice, ADVISE_KIND_MANAGER, NULL));
  assert_null(item_of(&advice, ADVISE_KIND_MODEL, NULL));
  char *text = markdown_of(&study, &advice);
  assert_non_null(strstr(text, "farfault sim app.fft --machine gtx480 --memory uvm,uvm+advise=1:prefetch\n"));
  free(text);
  advise_advice_free(&advice);
  advise_free(&study);
}

static uint64_t all_the_same(const char *memory) { return memory[0] ? 100000000 : 0; }

static void no_gain_is_no_advice(void **state) {
  (void)state;
  advise_study study;
  advise_advice advice;
  run_study(&study, NULL, false, false, all_the_same);
  assert_string_equal(study.baseline, "copy");
  assert_string_equal(study.paged, "uvm");
  assert_null(study.together);
  advise_conclude(&study, &advice);
  assert_int_equal(advice.items.count, 0);
  char *text = markdown_of(&study, &advice), *again = markdown_of(&study, &advice);
  assert_non_null(strstr(text, "No advice: nothing that was simulated saves"));
  assert_string_equal(text, again);
  free(text);
  free(again);
  advise_advice_free(&advice);
  advise_free(&study);
}

static uint64_t three_hints(const char *memory) {
  if (strstr(memory, "gpu-memory")) return 100000000;
  if (!strcmp(memory, "uvm+advise=1:pin")) return 80000000;
  if (!strcmp(memory, "uvm+advise=1:prefetch")) return 90000000;
  if (!strcmp(memory, "uvm+advise=2:pin")) return 85000000;
  if (!strcmp(memory, "uvm+advise=1:pin/2:pin")) return 70000000;
  return 100000000;
}

static void the_best_hints_are_simulated_together(void **state) {
  (void)state;
  advise_study study;
  advise_advice advice;
  run_study(&study, NULL, true, false, three_hints);
  assert_non_null(advise_find(&study, "uvm+advise=1:pin/2:pin"));
  assert_null(advise_find(&study, "uvm+advise=1:pin/2:pin/1:prefetch")); /* one hint for an allocation */
  assert_string_equal(study.together, "uvm+advise=1:pin/2:pin");
  advise_conclude(&study, &advice);
  assert_int_equal(advice.items.items[0].kind, ADVISE_KIND_TOGETHER); /* the most valuable first */
  assert_true(advice.items.items[0].gain == 0.3);
  assert_null(item_of(&advice, ADVISE_KIND_HINT, "uvm+advise=1:prefetch")); /* pinning that allocation gains more */
  const advise_item *one = item_of(&advice, ADVISE_KIND_HINT, "uvm+advise=1:pin"),
                    *two = item_of(&advice, ADVISE_KIND_HINT, "uvm+advise=2:pin");
  assert_true(one && two && one < two);
  advise_advice_free(&advice);
  advise_free(&study);
}

static uint64_t together_is_worse(const char *memory) {
  if (!strcmp(memory, "uvm+advise=1:pin/2:pin")) return 95000000;
  return three_hints(memory);
}

static void hints_that_spoil_each_other_are_not_added_up(void **state) {
  (void)state;
  advise_study study;
  advise_advice advice;
  run_study(&study, NULL, true, false, together_is_worse);
  assert_string_equal(study.together, "uvm+advise=1:pin");
  advise_conclude(&study, &advice);
  assert_true(item_of(&advice, ADVISE_KIND_TOGETHER, NULL)->gain == 0.2);
  advise_advice_free(&advice);
  advise_free(&study);
}

/* A program that copies: hints count if managed memory with them is faster than its copies. */
static uint64_t copies_stay_faster(const char *memory) {
  if (!strcmp(memory, "copy")) return 70000000 + 1000000;
  return three_hints(memory);
}
static uint64_t copies_are_slower(const char *memory) {
  if (!strcmp(memory, "copy")) return 72000000;
  return three_hints(memory);
}

static void hints_for_a_program_that_copies_must_beat_its_copies(void **state) {
  (void)state;
  advise_study study;
  advise_advice advice;
  run_study(&study, NULL, false, false, copies_stay_faster); /* 1.4 % */
  advise_conclude(&study, &advice);
  const advise_item *item = item_of(&advice, ADVISE_KIND_TOGETHER, NULL);
  assert_true(item && item->conditional);
  assert_string_equal(item->now->memory, "uvm");
  advise_advice_free(&advice);
  advise_free(&study);
  run_study(&study, NULL, false, false, copies_are_slower); /* 2.8 % */
  advise_conclude(&study, &advice);
  item = item_of(&advice, ADVISE_KIND_TOGETHER, NULL);
  assert_true(item && !item->conditional);
  assert_string_equal(item->now->memory, "copy");
  assert_non_null(strstr(item->text, "cudaMallocManaged"));
  advise_advice_free(&advice);
  advise_free(&study);
}

/* ---- managers, segments ---- */

static uint64_t zero_copy_wins(const char *memory) {
  if (!strcmp(memory, "zero-copy")) return 50000000;
  if (!strcmp(memory, "auto")) return 40000000;
  if (!strcmp(memory, "segments")) return 60000000;
  if (!strcmp(memory, "segments+advise=3:undeclared@7")) return 55000000;
  if (!strcmp(memory, "ideal")) return 10000000;
  return 100000000;
}

static void models_are_not_advice(void **state) {
  (void)state;
  advise_study study;
  advise_advice advice;
  run_study(&study, NULL, false, false, zero_copy_wins);
  advise_conclude(&study, &advice);
  const advise_item *manager = item_of(&advice, ADVISE_KIND_MANAGER, NULL),
                    *model = item_of(&advice, ADVISE_KIND_MODEL, NULL);
  assert_string_equal(manager->then->memory, "zero-copy");
  assert_false(manager->conditional);
  assert_string_equal(model->then->memory, "auto");
  assert_string_equal(model->now->memory, "zero-copy");
  assert_true(model->conditional && model->gain == 0.2);
  assert_non_null(strstr(advice.summary, "90.0 % of the time"));
  assert_true(advise_is_real("uvm+advise=1:pin") && advise_is_real("copy"));
  assert_false(advise_is_real("uvm+evict=auto") || advise_is_real("auto") || advise_is_real("uvm+prefetch=tbn") ||
               advise_is_real("uv"));
  advise_advice_free(&advice);
  advise_free(&study);
}

static uint64_t system_memory_wins(const char *memory) {
  if (!strcmp(memory, "ats") || !strcmp(memory, "hmm")) return 40000000;
  if (!strcmp(memory, "uvm+advise=1:pin")) return 50000000;
  return 100000000;
}

/* On a machine whose kernels may use it: all data, and one array. On another one it is not tried. */
static void system_memory_is_advised_where_it_is(void **state) {
  (void)state;
  for (uint32_t kind = 0; kind <= ADVISE_SYSTEM_MEMORY_ATS; kind++) {
    static const char *const managers[] = {NULL, "hmm", "ats"};
    advise_study study;
    advise_advice advice;
    system_memory = kind;
    run_study(&study, NULL, false, true, system_memory_wins);
    system_memory = 0;
    advise_conclude(&study, &advice);
    const advise_item *manager = item_of(&advice, ADVISE_KIND_MANAGER, NULL),
                      *pin = item_of(&advice, ADVISE_KIND_HINT, "uvm+advise=1:pin");
    char *text = markdown_of(&study, &advice);
    assert_true(!manager == !kind);
    if (manager) assert_string_equal(manager->then->memory, managers[kind]);
    if (manager) assert_non_null(strstr(manager->title, "Leave all data in system memory (malloc)"));
    assert_true(!advise_find(&study, "ats") == (kind != ADVISE_SYSTEM_MEMORY_ATS));
    assert_non_null(pin);
    assert_true(
        !strstr(pin->title, "in system memory (malloc, or preferred location CPU): on this machine it is better") ==
        (kind != ADVISE_SYSTEM_MEMORY_ATS));
    assert_true(!strstr(text, "this machine's also ats") == (kind != ADVISE_SYSTEM_MEMORY_ATS));
    free(text);
    advise_advice_free(&advice);
    advise_free(&study);
  }
}

static void what_is_declared_and_not_touched_is_named(void **state) {
  (void)state;
  advise_study study;
  advise_advice advice;
  run_study(&study, NULL, false, false, zero_copy_wins);
  advise_conclude(&study, &advice);
  assert_true(item_of(&advice, ADVISE_KIND_SEGMENTS, "segments")->gain == 0.4);
  const advise_item *item = item_of(&advice, ADVISE_KIND_UNDECLARED, NULL);
  assert_string_equal(item->then->memory, "segments+advise=3:undeclared@7");
  assert_true(item->conditional); /* it does not declare anything yet */
  assert_non_null(strstr(item->title, "idle"));
  assert_non_null(strstr(item->title, "`work`"));
  assert_null(advise_find(&study, "segments+advise=1:undeclared@7")); /* it is touched */
  advise_advice_free(&advice);
  advise_free(&study);
}

static uint64_t copy_does_not_fit(const char *memory) {
  if (!strcmp(memory, "copy")) return 0;
  return three_hints(memory);
}

static void a_program_that_does_not_fit_is_compared_with_paging(void **state) {
  (void)state;
  advise_study study;
  advise_advice advice;
  run_study(&study, NULL, false, false, copy_does_not_fit);
  advise_conclude(&study, &advice);
  assert_non_null(strstr(advice.summary, "copy cannot run here: it does not fit"));
  const advise_item *item = item_of(&advice, ADVISE_KIND_TOGETHER, NULL);
  assert_string_equal(item->now->memory, "uvm");
  assert_false(item->conditional);
  assert_non_null(strstr(item->text, "would have to use managed memory"));
  advise_advice_free(&advice);
  advise_free(&study);
}

static uint64_t nothing_runs(const char *memory) { return (uint64_t)(memory == NULL); }

static void without_any_time_nothing_is_said(void **state) {
  (void)state;
  advise_study study;
  advise_advice advice;
  run_study(&study, NULL, false, true, nothing_runs);
  advise_conclude(&study, &advice);
  assert_int_equal(advice.items.count, 0);
  assert_int_equal(advice.reference, 0);
  assert_non_null(strstr(advice.verdict, "Nothing can be said"));
  free(markdown_of(&study, &advice));
  advise_advice_free(&advice);
  advise_free(&study);
}

/* ---- less memory ---- */

#define AT(percent) (20 * MIB * (percent) / 100)
static bool is_at(const char *memory, const char *manager, uint64_t bytes) {
  char text[64];
  snprintf(text, sizeof text, "%s+gpu-memory=%llu", manager, (unsigned long long)bytes);
  return !strcmp(memory, text);
}
static uint64_t less_memory(const char *memory) {
  if (strstr(memory, "advise=") && strstr(memory, "gpu-memory")) return 500000000;
  if (is_at(memory, "uvm", AT(90))) return 110000000; /* just within 10 % */
  if (is_at(memory, "uvm", AT(75))) return 110000001;
  if (is_at(memory, "uvm", AT(60))) return 200000000; /* just twice */
  if (is_at(memory, "uvm", AT(50))) return 400000000; /* just not lost */
  if (is_at(memory, "uvm", AT(35))) return 400000001;
  if (is_at(memory, "auto", AT(75))) return 400000001;
  return 100000000;
}

static void capacity_limits_are_at_their_thresholds(void **state) {
  (void)state;
  advise_study study;
  advise_advice advice;
  run_study(&study, NULL, true, false, less_memory);
  advise_conclude(&study, &advice);
  const advise_capacity *c = capacity_of(&advice, "uvm");
  assert_int_equal(advice.reference, 100000000);
  assert_int_equal(c->near, AT(90));
  assert_int_equal(c->viable, AT(60));
  assert_int_equal(c->near_own_percent, 90);
  assert_non_null(strstr(advice.verdict,
                         "with uvm the time stays within 10 % down to 90 % of the memory, 18.00 MiB (18874368 bytes)"));
  assert_non_null(strstr(advice.verdict, "with uvm it stays within twice the reference down to 60 %"));
  /* 35 %: four times the reference at 50 % is not lost */
  assert_true(advise_time(&study, "uvm+gpu-memory=7340032") > 0);
  assert_null(advise_find(&study, "auto+gpu-memory=12582912")); /* 60 %: lost at 75 % */
  bool said = false;
  for (size_t i = 0; i < study.skipped.count; i++)
    said = said || strstr(study.skipped.items[i], "auto with less than 75 % of the memory");
  assert_true(said);
  advise_advice_free(&advice);
  advise_free(&study);
}

static uint64_t pins_reach_down(const char *memory) {
  bool pinned = !strncmp(memory, "uvm+advise=2:pin/1:pin+gpu-memory=", 34);
  return strstr(memory, "gpu-memory") && !strstr(memory, "=20971520") && !pinned ? 500000000 : 100000000;
}

static void large_sparse_memory_is_pinned_when_there_is_less(void **state) {
  (void)state;
  advise_study study;
  advise_advice advice;
  run_study(&study, NULL, true, false, pins_reach_down); /* with all memory no hint helps */
  assert_null(study.together);
  advise_conclude(&study, &advice);
  assert_non_null(capacity_of(&advice, "uvm+advise=2:pin/1:pin")); /* the heavier one first */
  assert_int_equal(capacity_of(&advice, "uvm+advise=2:pin/1:pin")->viable_percent, 25);
  assert_non_null(strstr(advice.verdict, "with uvm+advise=2:pin/1:pin the time stays within 10 % down to 25 %"));
  advise_advice_free(&advice);
  advise_free(&study);
  advise_facts facts = make_facts(true);
  size_t first;
  /* the second is too small */
  for (size_t i = 0; i < 2; i++) facts.allocations.items[i].bytes = facts.footprint / ADVISE_LARGE - i;
  assert_int_equal(advise_start(&study, &facts, NULL, false, NULL), FF_OK);
  while (advise_next(&study, &first))
    for (size_t i = first; i < study.settings.count; i++) put_time(&study, i, 100000000);
  assert_non_null(advise_find(&study, "uvm+advise=1:pin+gpu-memory=20971520"));
  advise_free(&study);
}

static uint64_t never_viable(const char *memory) {
  if (strstr(memory, "gpu-memory") && strncmp(memory, "auto", 4) && !is_at(memory, "uvm", AT(100))) return 300000000;
  return 100000000;
}

static void what_is_not_viable_is_said_so(void **state) {
  (void)state;
  advise_study study;
  advise_advice advice;
  run_study(&study, NULL, true, true, never_viable);
  advise_conclude(&study, &advice);
  assert_non_null(strstr(advice.verdict, "not viable with what can be had today"));
  assert_non_null(strstr(advice.verdict, "A driver that paged so would get further: with auto"));
  assert_null(strstr(advice.verdict, "Less memory is viable"));
  advise_advice_free(&advice);
  advise_free(&study);
}

/* ---- what it is asked for, and output ---- */

static void baselines_are_managers(void **state) {
  (void)state;
  static const char *const bad[] = {"nonsense",         "copy,uvm", "uvm+gpu-memory=50%",
                                    "uvm+advise=x:pin", "",         "uvm+advise=1:undeclared@"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    advise_study study;
    advise_facts facts = make_facts(true);
    ff_error error = {0};
    assert_int_not_equal(advise_start(&study, &facts, bad[i], false, &error), FF_OK);
    assert_non_null(strstr(error.message, "--now"));
    advise_free(&study);
  }
  advise_study study;
  run_study(&study, "replay", false, true, all_the_same);
  assert_string_equal(study.paged, "replay");
  assert_non_null(advise_find(&study, "replay+advise=all:prefetch"));
  advise_free(&study);
}

static void commands_hold_what_one_simulation_takes(void **state) {
  (void)state;
  const char *memories[40];
  for (int i = 0; i < 40; i++) memories[i] = "uvm";
  assert_int_equal(advise_together(memories, 40), 32);
  assert_int_equal(advise_together(memories, 3), 3);
  char *text = ff_alloc(1001);
  memset(text, 'x', 1000);
  for (int i = 0; i < 40; i++) memories[i] = text;
  assert_int_equal(advise_together(memories, 40), 1);
  free(text);
}

static void json_has_what_the_text_has(void **state) {
  (void)state;
  advise_study study;
  advise_advice advice;
  ff_text out = {0};
  run_study(&study, NULL, true, false, three_hints);
  advise_conclude(&study, &advice);
  advise_json(&study, &advice, &(advise_context){"a b.fft", "\xff", "gtx480", "--machine gtx480"}, &out);
  assert_non_null(strstr(out.chars, "\"gain_percent\": 30"));
  assert_non_null(strstr(out.chars, "farfault sim 'a b.fft' --machine gtx480 --memory uvm,uvm+advise=1:pin/2:pin"));
  assert_non_null(strstr(out.chars, "\"within_2x_bytes\": 5242880"));
  free(out.chars);
  advise_advice_free(&advice);
  advise_free(&study);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sparse_memory_is_tried_pinned),
      cmocka_unit_test(dense_memory_is_tried_prefetched),
      cmocka_unit_test(shared_memory_that_no_kernel_writes_is_tried_read_mostly),
      cmocka_unit_test(advice_is_what_gains_two_percent),
      cmocka_unit_test(no_gain_is_no_advice),
      cmocka_unit_test(the_best_hints_are_simulated_together),
      cmocka_unit_test(hints_that_spoil_each_other_are_not_added_up),
      cmocka_unit_test(hints_for_a_program_that_copies_must_beat_its_copies),
      cmocka_unit_test(models_are_not_advice),
      cmocka_unit_test(what_is_declared_and_not_touched_is_named),
      cmocka_unit_test(a_program_that_does_not_fit_is_compared_with_paging),
      cmocka_unit_test(without_any_time_nothing_is_said),
      cmocka_unit_test(capacity_limits_are_at_their_thresholds),
      cmocka_unit_test(large_sparse_memory_is_pinned_when_there_is_less),
      cmocka_unit_test(what_is_not_viable_is_said_so),
      cmocka_unit_test(baselines_are_managers),
      cmocka_unit_test(system_memory_is_advised_where_it_is),
      cmocka_unit_test(commands_hold_what_one_simulation_takes),
      cmocka_unit_test(json_has_what_the_text_has),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
