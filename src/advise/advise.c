/* SPDX-License-Identifier: Apache-2.0 */
/* The settings that `farfault advise` simulates, stage by stage: see advise.h.
 *
 *     MANAGERS   every manager of the list, with the memory that was asked for
 *     HINTS      the paged manager with one hint on one allocation: candidates by their counters of the stage before; segments
 *                without what kernels declare and do not touch
 *     TOGETHER   the hints that helped, best first: the first two, three, four ... of them
 *     CAPACITY   all, 90, 75 % ... of the footprint, in rounds: a manager that is far too slow goes no further down
 *
 * No setting is simulated twice; what is left out is said in `skipped`. */
#include "advise/advise.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/spec/choice.h"
#include "session/session.h"

static const char *const all_managers[] = {"copy", "uvm",      "zero-copy", "tbn", "sequential",
                                           "auto", "segments", "ideal",     NULL};
static const char *const quick_managers[] = {"copy", "uvm", "auto", "segments", "ideal", NULL};

enum { ROUNDS = 3, PER_ROUND = 3 };
static const uint32_t percents[ROUNDS][PER_ROUND] = {{100, 90, 75}, {60, 50, 0}, {35, 25, 0}};
static const uint32_t quick_percents[ROUNDS][PER_ROUND] = {{100, 75, 0}, {50, 0, 0}, {0, 0, 0}};

/* ---- settings ---- */

const advise_setting *advise_find(const advise_study *study, const char *memory) {
  for (size_t i = 0; i < study->settings.count; i++)
    if (!strcmp(study->settings.items[i]->memory, memory)) return study->settings.items[i];
  return NULL;
}

uint64_t advise_time(const advise_study *study, const char *memory) {
  const advise_setting *s = advise_find(study, memory);
  return s && s->known ? s->result.counters.time_ps : 0;
}

double advise_gain(uint64_t now, uint64_t then) { return now && then ? ((double)now - (double)then) / (double)now : 0; }

/* The new setting; NULL: there is one of that text already. */
static advise_setting *add(advise_study *study, const char *memory) {
  if (advise_find(study, memory)) return NULL;
  advise_setting *s = ff_alloc(sizeof *s);
  s->memory = ff_strdup(memory);
  s->stage = study->stage;
  FF_PUSH(&study->settings, s);
  return s;
}

void advise_put(advise_study *study, size_t setting, sim_result *result) {
  advise_setting *s = study->settings.items[setting];
  s->result = *result;
  s->known = result->complete && !result->error[0] && result->counters.time_ps;
  *result = (sim_result){0};
}

void advise_skip(advise_study *study, const char *format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  for (size_t i = 0; i < study->skipped.count; i++)
    if (!strcmp(study->skipped.items[i], text)) return;
  FF_PUSH(&study->skipped, ff_strdup(text));
}

static bool pages(const char *memory) {
  char name[64];
  snprintf(name, sizeof name, "%.*s", (int)strcspn(memory, "+"), memory);
  const manager *m = manager_find(name);
  return m && m->placement == MANAGER_PAGED;
}

static bool whole_blocks(const char *memory) {
  char name[64];
  snprintf(name, sizeof name, "%.*s", (int)strcspn(memory, "+"), memory);
  const manager *m = manager_find(name);
  return m && m->whole_blocks;
}

const char *advise_system_manager(const advise_study *study) {
  return study->facts.system_memory == ADVISE_SYSTEM_MEMORY_ATS ? "ats" : "hmm";
}

/* ---- the stages ---- */

static void plan_managers(advise_study *study) {
  add(study, study->baseline);
  add(study, study->paged);
  for (const char *const *m = study->quick ? quick_managers : all_managers; *m; m++) add(study, *m);
  if (study->facts.system_memory) add(study, advise_system_manager(study));
  if (study->quick) advise_skip(study, "the managers zero-copy, tbn and sequential (--quick)");
}

typedef struct candidate {
  const advise_allocation *allocation;
  sim_hint_kind hint;
  uint64_t weight; /* what there is to gain: the time that far-faults on it waited, the bytes that moved */
} candidate;

/* Heaviest first; then as the program allocated, and in the order of hints.def. */
static int by_weight(const void *a, const void *b) {
  const candidate *x = a, *y = b;
  if (x->weight != y->weight) return x->weight < y->weight ? 1 : -1;
  if (x->allocation != y->allocation) return x->allocation < y->allocation ? -1 : 1;
  return (int)x->hint - (int)y->hint;
}

static const sim_counters *counters_of(const advise_setting *s, uint32_t id) {
  for (uint32_t i = 0; s && s->known && i < s->result.allocation_count; i++)
    if (s->result.allocations[i].id == id) return &s->result.allocations[i].counters;
  return NULL;
}

/* "uvm+advise=3:pin" */
static void add_hint(advise_study *study, const candidate *c) {
  ff_text text = {0};
  if (c->allocation)
    ff_text_add(&text, "%s+advise=%" PRIu32 ":%s", study->paged, c->allocation->id, sim_hint_infos[c->hint].name);
  else ff_text_add(&text, "%s+advise=all:%s", study->paged, sim_hint_infos[c->hint].name);
  advise_setting *s = text.length < ADVISE_TEXT_MAX ? add(study, text.chars) : NULL;
  if (s) {
    s->allocation = c->allocation;
    s->hint = c->hint;
  }
  free(text.chars);
}

static void plan_undeclared(advise_study *study) {
  uint32_t count = 0, left = 0;
  for (size_t k = 0; k < study->facts.kernels.count; k++) {
    const advise_kernel *kernel = &study->facts.kernels.items[k];
    for (size_t i = 0; i < kernel->uses.count; i++) {
      const advise_use *use = &kernel->uses.items[i];
      if (!use->declared || use->touched) continue;
      if (study->facts.allocations.items[use->allocation].memory == TRACE_MEMORY_PINNED) continue;
      char text[64];
      snprintf(text, sizeof text, "segments+advise=%" PRIu32 ":undeclared@%" PRIu32,
               study->facts.allocations.items[use->allocation].id, kernel->number);
      advise_setting *s = count < ADVISE_QUICK_CANDIDATES ? add(study, text) : (left++, NULL);
      if (!s) continue;
      count++;
      s->allocation = &study->facts.allocations.items[use->allocation];
      s->kernel = kernel;
      s->hint = SIM_HINT_UNDECLARED;
    }
  }
  if (left) advise_skip(study, "%" PRIu32 " further allocations that kernels declare and do not touch", left);
}

static void plan_hints(advise_study *study) {
  const advise_setting *paged = advise_find(study, study->paged);
  FF_VEC(candidate) found = {0};
  for (size_t i = 0; i < study->facts.allocations.count; i++) {
    const advise_allocation *a = &study->facts.allocations.items[i];
    const sim_counters *c = counters_of(paged, a->id);
    for (int hint = 0; hint < SIM_HINT_UNDECLARED; hint++)
      if (advise_tries(a, c, (sim_hint_kind)hint) && !(study->quick && hint == SIM_HINT_CPU))
        FF_PUSH(&found, ((candidate){a, (sim_hint_kind)hint, c->fault_wait_ps + c->h2d_bytes + c->d2h_bytes}));
  }
  if (found.count) qsort(found.items, found.count, sizeof *found.items, by_weight);
  size_t limit = study->quick ? ADVISE_QUICK_CANDIDATES : ADVISE_CANDIDATES;
  if (found.count > limit)
    advise_skip(study, "%zu hints on allocations whose far-faults wait least, of %zu that might help",
                found.count - limit, found.count);
  if (paged && paged->known) add_hint(study, &(candidate){.hint = SIM_HINT_PREFETCH});
  for (size_t i = 0; i < found.count && i < limit; i++) add_hint(study, &found.items[i]);
  free(found.items);
  if (advise_time(study, "segments")) plan_undeclared(study);
}

/* The best hint of each allocation that helps, best first. */
static int by_time(const void *a, const void *b) {
  const advise_setting *x = *(const advise_setting *const *)a, *y = *(const advise_setting *const *)b;
  if (x->result.counters.time_ps != y->result.counters.time_ps)
    return x->result.counters.time_ps < y->result.counters.time_ps ? -1 : 1;
  return x->allocation < y->allocation ? -1 : x->allocation > y->allocation ? 1 : (int)x->hint - (int)y->hint;
}

static void plan_together(advise_study *study) {
  uint64_t now = advise_time(study, study->paged);
  FF_VEC(const advise_setting *) helpful = {0};
  for (size_t i = 0; i < study->settings.count; i++) {
    const advise_setting *s = study->settings.items[i];
    if (s->stage != ADVISE_HINTS || !s->known || !s->allocation || s->hint == SIM_HINT_UNDECLARED) continue;
    if (advise_gain(now, s->result.counters.time_ps) >= ADVISE_HELPS) FF_PUSH(&helpful, s);
  }
  if (helpful.count) qsort(helpful.items, helpful.count, sizeof *helpful.items, by_time);
  ff_text text = {0};
  uint32_t taken = 0;
  ff_text_add(&text, "%s+advise=", study->paged);
  for (size_t i = 0; i < helpful.count; i++) {
    const advise_setting *s = helpful.items[i];
    bool seen = false; /* a better hint on the same allocation */
    for (size_t j = 0; j < i; j++) seen = seen || helpful.items[j]->allocation == s->allocation;
    if (seen) continue;
    if (taken == ADVISE_TOGETHER_MAX || text.length + 20 > ADVISE_TEXT_MAX) {
      advise_skip(study, "more than %" PRIu32 " hints together", taken);
      break;
    }
    ff_text_add(&text, "%s%" PRIu32 ":%s", taken++ ? "/" : "", s->allocation->id, sim_hint_infos[s->hint].name);
    if (taken > 1) add(study, text.chars);
  }
  free(text.chars);
  free(helpful.items);
}

/* Of all that has hints: the fastest; among those within a five hundredth of it the first, which has the fewest. */
static void choose_together(advise_study *study) {
  uint64_t now = advise_time(study, study->paged), best = 0;
  for (int pass = 0; pass < 2; pass++)
    for (size_t i = 0; i < study->settings.count; i++) {
      const advise_setting *s = study->settings.items[i];
      bool hints = (s->stage == ADVISE_HINTS && s->hint != SIM_HINT_UNDECLARED) || s->stage == ADVISE_TOGETHER;
      if (!hints || !s->known || advise_gain(now, s->result.counters.time_ps) < ADVISE_HELPS) continue;
      if (pass == 0 && (!best || s->result.counters.time_ps < best)) best = s->result.counters.time_ps;
      if (pass == 1 && !study->together && s->result.counters.time_ps <= best + best / 500)
        study->together = ff_strdup(s->memory);
    }
}

/* ---- less memory ---- */

static void add_manager(advise_study *study, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add_manager(advise_study *study, const char *format, ...) {
  char text[ADVISE_TEXT_MAX + 16];
  va_list args;
  va_start(args, format);
  int length = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (length >= (int)sizeof text || strstr(text, "gpu-memory=")) return;
  for (size_t i = 0; i < study->managers.count; i++)
    if (!strcmp(study->managers.items[i], text)) return;
  FF_PUSH(&study->managers, ff_strdup(text));
}

/* What is large, and used sparsely, stays in host memory: with less memory that may help where with all of it it did
 * not. */
static void add_pinned(advise_study *study) {
  ff_text text = {0};
  uint32_t count = 0;
  ff_text_add(&text, "%s+advise=", study->paged);
  for (size_t i = 0; i < study->settings.count; i++) {
    const advise_setting *s = study->settings.items[i];
    bool pins = s->stage == ADVISE_HINTS && s->hint == SIM_HINT_PIN && s->allocation &&
                s->allocation->bytes >= study->facts.footprint / ADVISE_LARGE;
    if (pins && count < ADVISE_TOGETHER_MAX && text.length + 20 < ADVISE_TEXT_MAX)
      ff_text_add(&text, "%s%" PRIu32 ":pin", count++ ? "/" : "", s->allocation->id);
  }
  if (count) add_manager(study, "%s", text.chars);
  free(text.chars);
}

static void choose_managers(advise_study *study) {
  add_manager(study, "%s", study->baseline);
  add_manager(study, "%s", study->paged);
  if (study->together) add_manager(study, "%s", study->together);
  add_pinned(study);
  add_manager(study, "auto");
  if (study->quick) {
    advise_skip(study, "other evictors and segments with less memory, and 90, 60, 35 and 25 %% of it (--quick)");
    return;
  }
  if (!strstr(study->paged, "evict=")) {
    add_manager(study, "%s+evict=lru", study->paged);
    add_manager(study, "%s+evict=auto", study->paged);
  }
  add_manager(study, "segments");
}

static uint64_t capacity_of(const advise_study *study, uint32_t percent) {
  uint64_t bytes = study->facts.footprint_blocks / 100 * percent + study->facts.footprint_blocks % 100 * percent / 100;
  return (bytes + 4095) / 4096 * 4096;
}

static const advise_setting *at_percent(const advise_study *study, const char *manager, uint32_t percent) {
  for (size_t i = 0; i < study->settings.count; i++) {
    const advise_setting *s = study->settings.items[i];
    if (s->stage == ADVISE_CAPACITY && s->percent == percent && !strcmp(s->manager, manager)) return s;
  }
  return NULL;
}

/* Whether it is worth to go below what was simulated already. */
static bool goes_on(advise_study *study, const char *manager) {
  uint64_t reference = 0;
  const advise_setting *full = at_percent(study, study->baseline, 100), *last = NULL;
  if (full && full->known) reference = full->result.counters.time_ps;
  for (size_t i = 0; i < study->settings.count; i++) {
    const advise_setting *s = study->settings.items[i];
    if (s->stage == ADVISE_CAPACITY && !strcmp(s->manager, manager) && (!last || s->percent < last->percent)) last = s;
  }
  if (!last || !last->known) return false;
  if (!reference || (double)last->result.counters.time_ps <= ADVISE_LOST * (double)reference) return true;
  advise_skip(study,
              "%s with less than %" PRIu32 " %% of the memory: there it takes %.1f times as long as %s with all of it",
              manager, last->percent, (double)last->result.counters.time_ps / (double)reference, study->baseline);
  return false;
}

static void add_capacity(advise_study *study, char *manager, uint32_t percent) {
  uint64_t capacity = capacity_of(study, percent);
  if (whole_blocks(manager) && capacity < UINT64_C(4) << 20) {
    advise_skip(study, "%s with %" PRIu32 " %% of the memory: it needs 4 MiB", manager, percent);
    return;
  }
  if (capacity < UINT64_C(2) << 20) {
    advise_skip(study, "%s with %" PRIu32 " %% of the memory, which is less than a block of 2 MiB", manager, percent);
    return;
  }
  ff_text text = {0};
  ff_text_add(&text, "%s+gpu-memory=%" PRIu64, manager, capacity);
  advise_setting *s = add(study, text.chars);
  if (s) {
    s->percent = percent;
    s->capacity = capacity;
    s->manager = manager;
  }
  free(text.chars);
}

static void plan_capacity(advise_study *study, const uint32_t *of_round) {
  if (!study->round) choose_managers(study);
  for (size_t i = 0; i < study->managers.count; i++) {
    char *manager = study->managers.items[i];
    if (study->round && (!of_round[0] || !pages(manager) || !goes_on(study, manager))) continue;
    for (int j = 0; j < PER_ROUND && of_round[j]; j++)
      if (of_round[j] == 100 || pages(manager)) add_capacity(study, manager, of_round[j]);
  }
}

/* ---- one after the other ---- */

static void plan(advise_study *study) {
  switch (study->stage) {
  case ADVISE_MANAGERS: plan_managers(study); break;
  case ADVISE_HINTS: plan_hints(study); break;
  case ADVISE_TOGETHER: plan_together(study); break;
  case ADVISE_CAPACITY:
    if (!study->round) choose_together(study);
    if (study->facts.footprint_blocks) plan_capacity(study, (study->quick ? quick_percents : percents)[study->round]);
    break;
  case ADVISE_STAGES: break;
  }
}

static void step(advise_study *study) {
  uint32_t rounds = study->stage == ADVISE_CAPACITY ? ROUNDS : 1;
  if (++study->round < rounds) return;
  study->round = 0;
  study->stage++;
}

bool advise_next(advise_study *study, size_t *first) {
  *first = study->settings.count;
  while (study->stage < ADVISE_STAGES && study->settings.count == *first) {
    plan(study);
    step(study);
  }
  return study->settings.count > *first;
}

ff_status advise_start(advise_study *study, advise_facts *facts, const char *baseline, bool quick, ff_error *error) {
  machine_spec spec;
  *study = (advise_study){.quick = quick, .facts = *facts};
  *facts = (advise_facts){0};
  if (!baseline) baseline = study->facts.managed ? "uvm" : "copy";
  if (strlen(baseline) > 128 || strpbrk(baseline, ", "))
    return ff_fail(error, FF_INVALID, "--now: '%.60s' is not one manager", baseline);
  if (strstr(baseline, "gpu-memory="))
    return ff_fail(error, FF_INVALID, "--now: memory is chosen by --gpu-memory, for all managers");
  ff_status status = machine_spec_load(MACHINE_DEFAULT, &spec, error);
  sim_choice *choice = ff_alloc(sizeof *choice);
  if (!status) status = sim_choice_read(baseline, &(sim_choices){0}, &spec, choice, error);
  free(choice);
  if (status) return ff_fail_at(error, status, "--now");
  snprintf(study->baseline, sizeof study->baseline, "%s", baseline);
  snprintf(study->paged, sizeof study->paged, "%s", pages(baseline) && !strstr(baseline, "advise=") ? baseline : "uvm");
  if (study->facts.left_out)
    advise_skip(study, "%" PRIu32 " allocations or kernels beyond the first %d", study->facts.left_out,
                ADVISE_ALLOCATIONS_MAX);
  return FF_OK;
}

void advise_free(advise_study *study) {
  for (size_t i = 0; i < study->settings.count; i++) {
    free(study->settings.items[i]->memory);
    sim_result_free(&study->settings.items[i]->result);
    free(study->settings.items[i]);
  }
  for (size_t i = 0; i < study->skipped.count; i++) free(study->skipped.items[i]);
  for (size_t i = 0; i < study->managers.count; i++) free(study->managers.items[i]);
  free(study->settings.items);
  free(study->skipped.items);
  free(study->managers.items);
  free(study->together);
  advise_facts_free(&study->facts);
  *study = (advise_study){0};
}
