/* SPDX-License-Identifier: Apache-2.0 */
/* From measured numbers to advice, and which hints are worth a simulation: docs/advise.md has the rules in words.
 *
 * Every sentence that says a gain names the two settings whose times it is of. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"
#include "advise/advise.h"

const char *const advise_kind_names[] = {"manager", "hints together", "hint", "segments", "undeclared", "model"};

/* ---- what is tried ---- */

static bool on_gpu(const advise_allocation *a) {
  return a->memory == TRACE_MEMORY_DEVICE || a->memory == TRACE_MEMORY_MANAGED;
}

bool advise_tries(const advise_allocation *a, const sim_counters *c, sim_hint_kind hint) {
  if (!c || !on_gpu(a) || !a->touched) return false;
  uint64_t moved = c->h2d_bytes + c->d2h_bytes;
  bool sparse = moved && a->sector_bytes / ADVISE_SPARSE <= moved && a->sector_bytes < ADVISE_SPARSE * moved;
  switch (hint) {
  case SIM_HINT_PREFETCH:
    return c->faults && a->declared && a->pages && (double)a->touched_pages >= ADVISE_DENSE * (double)a->pages;
  case SIM_HINT_PIN:
  case SIM_HINT_CPU: return sparse;
  case SIM_HINT_READ_MOSTLY: return c->faults && !a->writes && (a->host_uses_later || c->evicted_bytes || c->d2h_bytes);
  case SIM_HINT_UNDECLARED:
  case SIM_HINT_COUNT: return false;
  }
  return false;
}

static const char *const real_managers[] = {"copy", "uvm", "zero-copy", "ats", "hmm", "cuda6", "gm200", "gp100", NULL};

bool advise_is_real(const char *memory) {
  size_t length = strcspn(memory, "+");
  bool listed = false;
  for (const char *const *each = real_managers; *each; each++)
    listed = listed || (strlen(*each) == length && !strncmp(*each, memory, length));
  return listed && !strstr(memory, "+evict=") && !strstr(memory, "+prefetch=");
}

/* ---- words ---- */

static const char *bytes(uint64_t count, char *buffer) { return ff_format_bytes(count, buffer, 32); }
static const char *time(uint64_t ps, char *buffer) { return report_format_time(ps, buffer, 32); }

static void add_name(ff_text *text, const advise_allocation *a) {
  char size[32];
  if (a) ff_text_add(text, "allocation %" PRIu32 " (`%s`, %s)", a->id, a->name, bytes(a->bytes, size));
  else ff_text_add(text, "every allocation");
}

/* "1.69 ms -> 1.13 ms (33.1 % less)" */
static void add_times(ff_text *text, uint64_t now, uint64_t then) {
  char a[32], b[32];
  double gain = 100 * advise_gain(now, then);
  ff_text_add(text, "%s -> %s (%.1f %% %s)", time(now, a), time(then, b), gain < 0 ? -gain : gain,
              gain < 0 ? "more" : "less");
}

static const sim_counters *counters_in(const advise_setting *s, const advise_allocation *a) {
  for (uint32_t i = 0; s && s->known && a && i < s->result.allocation_count; i++)
    if (s->result.allocations[i].id == a->id) return &s->result.allocations[i].counters;
  return NULL;
}

static uint64_t time_of(const advise_setting *s) { return s && s->known ? s->result.counters.time_ps : 0; }

static advise_item *add_item(advise_advice *advice, advise_kind kind, const advise_setting *now,
                             const advise_setting *then) {
  advise_item item = {.kind = kind, .now = now, .then = then, .gain = advise_gain(time_of(now), time_of(then))};
  FF_PUSH(&advice->items, item);
  advise_item *made = &advice->items.items[advice->items.count - 1];
  FF_PUSH(&made->evidence, now);
  FF_PUSH(&made->evidence, then);
  return made;
}

/* ---- managers ---- */

/* What the program does now, if that can run; else what it would have to do. */
static const advise_setting *now_of(const advise_study *study) {
  const advise_setting *now = advise_find(study, study->baseline);
  return now && now->known ? now : advise_find(study, study->paged);
}

static const advise_setting *fastest(const advise_study *study, bool real) {
  const advise_setting *best = NULL;
  for (size_t i = 0; i < study->settings.count; i++) {
    const advise_setting *s = study->settings.items[i];
    if (s->stage != ADVISE_MANAGERS || !s->known || !strcmp(s->memory, "ideal") || !strcmp(s->memory, "segments"))
      continue;
    if (advise_is_real(s->memory) == real && (!best || time_of(s) < time_of(best))) best = s;
  }
  return best;
}

static const char *way_of(const char *memory) {
  if (!strncmp(memory, "copy", 4)) return "Copy the data to the GPU's memory (cudaMalloc, cudaMemcpy)";
  if (!strncmp(memory, "zero-copy", 9))
    return "Leave all data in pinned host memory and reach it over the link (cudaHostAlloc)";
  if (!strncmp(memory, "uvm", 3)) return "Use managed memory (cudaMallocManaged) without copies";
  if (!strcmp(memory, "ats"))
    return "Leave all data in system memory (malloc): kernels reach it over the coherent link, and what they access often moves";
  if (!strcmp(memory, "hmm")) return "Leave all data in system memory (malloc): far-faults bring it";
  return "Keep memory as another GPU does";
}

static void conclude_managers(const advise_study *study, advise_advice *advice) {
  const advise_setting *now = now_of(study), *real = fastest(study, true), *model = fastest(study, false);
  if (real && now && real != now && advise_gain(time_of(now), time_of(real)) >= ADVISE_WORTH) {
    advise_item *item = add_item(advice, ADVISE_KIND_MANAGER, now, real);
    ff_text title = {0}, text = {0};
    ff_text_add(&title, "%s: %s instead of %s", way_of(real->memory), real->memory, now->memory);
    ff_text_add(&text, "Of the ways that can be had today, %s is the fastest here: ", real->memory);
    add_times(&text, time_of(now), time_of(real));
    ff_text_add(&text, ".");
    if (!strcmp(now->memory, "copy"))
      ff_text_add(
          &text,
          " The host then writes and reads the data in place: copies of the program count as that, and cost nothing.");
    item->title = title.chars;
    item->text = text.chars;
  }
  const advise_setting *than = real && time_of(real) < time_of(now) ? real : now;
  if (model && than && advise_gain(time_of(than), time_of(model)) >= ADVISE_WORTH) {
    advise_item *item = add_item(advice, ADVISE_KIND_MODEL, than, model);
    ff_text title = {0}, text = {0};
    ff_text_add(&title, "A driver that pages as %s would be faster than %s", model->memory, than->memory);
    ff_text_add(&text, "%s is a model of this simulator, which no driver has: ", model->memory);
    add_times(&text, time_of(than), time_of(model));
    ff_text_add(&text, ". It says what is to be had by better paging, not what can be chosen.");
    item->title = title.chars;
    item->text = text.chars;
    item->conditional = true;
  }
}

/* ---- hints ---- */

/* The condition under which hints do anything: the program's memory is managed. */
static void add_condition(const advise_study *study, const advise_setting *then, ff_text *text) {
  const advise_setting *base = advise_find(study, study->baseline);
  if (!strcmp(study->baseline, study->paged)) return;
  if (!base || !base->known) {
    ff_text_add(text,
                " %s cannot run with this memory, so the program would have to use managed memory (cudaMallocManaged).",
                study->baseline);
    return;
  }
  char a[32];
  ff_text_add(
      text,
      " Hints are for managed memory, which the program would have to use (cudaMallocManaged): its host then writes and reads the data in place, and "
      "its copies cost nothing. ");
  if (time_of(then) < time_of(base))
    ff_text_add(text, "%s takes %s, %.2f times as long.", study->baseline, time(time_of(base), a),
                (double)time_of(base) / (double)time_of(then));
  else
    ff_text_add(text, "%s takes %s and stays faster: this is for a program that has to be managed anyway.",
                study->baseline, time(time_of(base), a));
}

static void add_why(const advise_setting *now, const advise_setting *then, const advise_allocation *a,
                    sim_hint_kind hint, ff_text *text) {
  const sim_counters *c = counters_in(now, a), *d = counters_in(then, a);
  char one[32], two[32], three[32];
  if (!c || !d) return;
  uint64_t moved = c->h2d_bytes + c->d2h_bytes;
  switch (hint) {
  case SIM_HINT_PREFETCH:
    ff_text_add(text,
                " Kernels touch %.0f %% of its pages; its %" PRIu64
                " far-faults, which waited %s in sum, become %" PRIu64 ".",
                a->pages ? 100.0 * (double)a->touched_pages / (double)a->pages : 0, c->faults,
                time(c->fault_wait_ps, one), d->faults);
    break;
  case SIM_HINT_PIN:
  case SIM_HINT_CPU:
    ff_text_add(text,
                " Kernels ask for %s of it, and %s moved for that%s; then %s go over the link as they are asked for.",
                bytes(a->sector_bytes, one), bytes(moved, two), c->refaults ? ", some of it again and again" : "",
                bytes(d->remote_bytes, three));
    break;
  case SIM_HINT_READ_MOSTLY:
    ff_text_add(text, " No kernel writes it; %s came back over the link for it, then %s.", bytes(c->d2h_bytes, one),
                bytes(d->d2h_bytes, two));
    break;
  case SIM_HINT_UNDECLARED:
  case SIM_HINT_COUNT: break;
  }
}

/* A coherent link reaches what malloc gives as well as what is pinned. */
static void add_call(const advise_study *study, ff_text *text, sim_hint_kind hint, const advise_allocation *a) {
  static const struct {
    const char *before, *behind;
  } words[SIM_HINT_COUNT] = {[SIM_HINT_PREFETCH] = {"Prefetch ", " (cudaMemPrefetchAsync before the launch)"},
                             [SIM_HINT_PIN] = {"Pin ", " in host memory (preferred location CPU, accessed by the GPU)"},
                             [SIM_HINT_CPU] = {"Keep ", " on the CPU (preferred location CPU)"},
                             [SIM_HINT_READ_MOSTLY] = {"Mark ", " as mostly read"},
                             [SIM_HINT_UNDECLARED] = {"Do not declare ", ""}};
  bool better_there = study->facts.system_memory == ADVISE_SYSTEM_MEMORY_ATS && hint == SIM_HINT_PIN;
  ff_text_add(text, "%s", better_there ? "Leave " : words[hint].before);
  add_name(text, a);
  ff_text_add(text, "%s",
              better_there ? " in system memory (malloc, or preferred location CPU): on this machine it is better there"
                           : words[hint].behind);
}

/* Whether another hint on the same allocation gains more. */
static bool beaten(const advise_study *study, const advise_setting *hint) {
  for (size_t i = 0; i < study->settings.count; i++) {
    const advise_setting *s = study->settings.items[i];
    if (s == hint || s->stage != ADVISE_HINTS || s->allocation != hint->allocation || s->hint == SIM_HINT_UNDECLARED ||
        !s->known)
      continue;
    if (time_of(s) < time_of(hint) || (time_of(s) == time_of(hint) && s->hint < hint->hint)) return true;
  }
  return false;
}

static void conclude_hint(const advise_study *study, const advise_setting *hint, advise_advice *advice) {
  const advise_setting *paged = advise_find(study, study->paged), *base = advise_find(study, study->baseline);
  advise_item *item = add_item(advice, ADVISE_KIND_HINT, paged, hint);
  ff_text title = {0}, text = {0};
  item->allocation = hint->allocation;
  item->conditional = base && base->known && time_of(hint) >= time_of(base);
  add_call(study, &title, hint->hint, hint->allocation);
  add_times(&text, time_of(paged), time_of(hint));
  ff_text_add(&text, ".");
  add_why(paged, hint, hint->allocation, hint->hint, &text);
  if (base != paged && time_of(base))
    ff_text_add(&text, " That is %.2f times %s.", (double)time_of(hint) / (double)time_of(base), base->memory);
  item->title = title.chars;
  item->text = text.chars;
}

static void conclude_together(const advise_study *study, advise_advice *advice) {
  const advise_setting *together = study->together ? advise_find(study, study->together) : NULL;
  const advise_setting *paged = advise_find(study, study->paged), *base = advise_find(study, study->baseline),
                       *now = now_of(study);
  if (!together || advise_gain(time_of(paged), time_of(together)) < ADVISE_WORTH) return;
  bool faster = now && advise_gain(time_of(now), time_of(together)) >= ADVISE_WORTH;
  advise_item *item = add_item(advice, ADVISE_KIND_TOGETHER, faster ? now : paged, together);
  ff_text title = {0}, text = {0};
  const char *hints = strstr(together->memory, "advise=");
  bool several = together->stage == ADVISE_TOGETHER;
  item->conditional = !faster;
  if (several) ff_text_add(&title, "%s with hints on several allocations: %s", study->paged, hints + strlen("advise="));
  else add_call(study, &title, together->hint, together->allocation);
  if (several) ff_text_add(&text, "All these hints together, simulated once more: ");
  add_times(&text, time_of(paged), time_of(together));
  ff_text_add(&text, " against %s without hints.", study->paged);
  if (!several) add_why(paged, together, together->allocation, together->hint, &text);
  if (base != paged) add_condition(study, together, &text);
  if (faster && now != paged) FF_PUSH(&item->evidence, paged);
  for (size_t i = 0; i < study->settings.count; i++) {
    const advise_setting *s = study->settings.items[i];
    if (s->stage == ADVISE_HINTS && s->known && s->hint != SIM_HINT_UNDECLARED && s != together &&
        advise_gain(time_of(paged), time_of(s)) >= ADVISE_HELPS)
      FF_PUSH(&item->evidence, s);
  }
  item->title = title.chars;
  item->text = text.chars;
}

static void conclude_hints(const advise_study *study, advise_advice *advice) {
  uint64_t paged = advise_time(study, study->paged);
  for (size_t i = 0; i < study->settings.count; i++) {
    const advise_setting *s = study->settings.items[i];
    if (s->stage != ADVISE_HINTS || !s->known || s->hint == SIM_HINT_UNDECLARED) continue;
    if (advise_gain(paged, time_of(s)) < ADVISE_WORTH) FF_PUSH(&advice->tried, s);
    else if (s->allocation && !beaten(study, s)) conclude_hint(study, s, advice);
  }
  conclude_together(study, advice);
}

/* ---- segments ---- */

static void conclude_undeclared(const advise_study *study, const advise_setting *less, advise_advice *advice) {
  const advise_setting *segments = advise_find(study, "segments");
  if (advise_gain(time_of(segments), time_of(less)) < ADVISE_WORTH) {
    FF_PUSH(&advice->tried, less);
    return;
  }
  char one[32], two[32];
  advise_item *item = add_item(advice, ADVISE_KIND_UNDECLARED, segments, less);
  ff_text title = {0}, text = {0};
  item->allocation = less->allocation;
  item->conditional = strcmp(study->baseline, segments->memory) != 0;
  add_call(study, &title, less->hint, less->allocation);
  ff_text_add(&title, " for `%.60s`", less->kernel->name);
  ff_text_add(&text, "A parameter of `%.60s` points to it, and none of its launches (%" PRIu64 ") touches it. ",
              less->kernel->name, less->kernel->launches);
  add_times(&text, time_of(segments), time_of(less));
  ff_text_add(&text, "; %s go to the GPU instead of %s.", bytes(less->result.counters.h2d_bytes, one),
              bytes(segments->result.counters.h2d_bytes, two));
  item->title = title.chars;
  item->text = text.chars;
}

static void conclude_segments(const advise_study *study, advise_advice *advice) {
  const advise_setting *now = now_of(study), *segments = advise_find(study, "segments");
  if (!segments || !segments->known || !now) return;
  if (advise_gain(time_of(now), time_of(segments)) >= ADVISE_WORTH) {
    char one[32], two[32];
    advise_item *item = add_item(advice, ADVISE_KIND_SEGMENTS, now, segments);
    ff_text title = {0}, text = {0};
    ff_text_add(&title, "Declare what each launch uses: segments instead of %s", now->memory);
    add_times(&text, time_of(now), time_of(segments));
    ff_text_add(&text, " if what the launches' parameters point to is fetched before they begin and while others run.");
    ff_text_add(&text, " The link is busy for %s, with %s for %s;", time(segments->result.counters.transfer_ps, one),
                now->memory, time(now->result.counters.transfer_ps, two));
    ff_text_add(&text, " of that, kernels run meanwhile for %s, with %s for %s;",
                time(segments->result.counters.overlap_ps, one), now->memory,
                time(now->result.counters.overlap_ps, two));
    ff_text_add(&text, " the host spends %s in calls, with %s %s.", time(segments->result.counters.host_api_ps, one),
                now->memory, time(now->result.counters.host_api_ps, two));
    if (!strcmp(now->memory, "copy"))
      ff_text_add(&text, " Its copies become the host's writes in place, and cost nothing.");
    ff_text_add(&text,
                " Without a runtime that does so: cudaMemPrefetchAsync in a stream of its own, ahead of the launches.");
    if (segments->result.counters.undeclared_faults)
      ff_text_add(&text, " %" PRIu64 " far-faults are on memory that no parameter points to: to be declared, too.",
                  segments->result.counters.undeclared_faults);
    item->title = title.chars;
    item->text = text.chars;
  }
  for (size_t i = 0; i < study->settings.count; i++) {
    const advise_setting *s = study->settings.items[i];
    if (s->stage == ADVISE_HINTS && s->hint == SIM_HINT_UNDECLARED && s->known) conclude_undeclared(study, s, advice);
  }
}

/* ---- less memory ---- */

/* Goes down from all memory as long as the time stays within `limit`. */
static void go_down(const advise_study *study, const char *manager, double limit, uint64_t *capacity,
                    uint32_t *percent) {
  *capacity = 0;
  *percent = 0;
  for (uint32_t at = 100; at; at--)
    for (size_t i = 0; i < study->settings.count; i++) {
      const advise_setting *s = study->settings.items[i];
      if (s->stage != ADVISE_CAPACITY || s->percent != at || strcmp(s->manager, manager)) continue;
      if (!s->known || (double)time_of(s) > limit) return;
      *capacity = s->capacity;
      *percent = at;
    }
}

static uint64_t full_time(const advise_study *study, const char *manager) {
  for (size_t i = 0; i < study->settings.count; i++) {
    const advise_setting *s = study->settings.items[i];
    if (s->stage == ADVISE_CAPACITY && s->percent == 100 && !strcmp(s->manager, manager)) return time_of(s);
  }
  return 0;
}

static void add_reach(ff_text *text, const char *manager, uint32_t percent, uint64_t capacity, const char *how) {
  char size[32];
  ff_text_add(text, "with %s %s down to %" PRIu32 " %% of the memory, %s (%" PRIu64 " bytes)", manager, how, percent,
              bytes(capacity, size), capacity);
}

/* The one that reaches lowest; the first of equals. `real`: only what can be had today. */
static const advise_capacity *lowest(const advise_advice *advice, bool real, bool near) {
  const advise_capacity *best = NULL;
  for (size_t i = 0; i < advice->capacities.count; i++) {
    const advise_capacity *c = &advice->capacities.items[i];
    uint32_t percent = near ? c->near_percent : c->viable_percent, than = !best  ? 100
                                                                          : near ? best->near_percent
                                                                                 : best->viable_percent;
    if (percent && percent < than && (!real || advise_is_real(c->manager))) best = c;
  }
  return best;
}

static void conclude_verdict(const advise_study *study, advise_advice *advice) {
  ff_text text = {0};
  char a[32];
  const advise_capacity *near = lowest(advice, true, true), *viable = lowest(advice, true, false),
                        *any = lowest(advice, false, false);
  if (!advice->reference) {
    ff_text_add(&text, "Nothing can be said of less memory: %s",
                study->facts.footprint_blocks ? "it was not simulated." : "the program allocates none.");
  } else {
    ff_text_add(&text, "The reference is %s with all memory: %s. ", study->baseline, time(advice->reference, a));
    bool any_real = false;
    for (size_t i = 0; i < study->settings.count; i++) {
      const advise_setting *s = study->settings.items[i];
      any_real =
          any_real || (s->stage == ADVISE_CAPACITY && s->percent < 100 && s->known && advise_is_real(s->manager));
    }
    if (!any_real) {
      ff_text_add(&text, "With what can be had today less memory was not simulated (the list at the end says why).");
    } else if (!viable) {
      ff_text_add(
          &text,
          "Less memory than that is not viable with what can be had today: at every capacity simulated the time is more than %.0f times the reference.",
          ADVISE_VIABLE);
    } else {
      ff_text_add(&text, "Less memory is viable: ");
      if (near) add_reach(&text, near->manager, near->near_percent, near->near, "the time stays within 10 %");
      else ff_text_add(&text, "not at the same speed (nothing stays within 10 %%), but ");
      if (near && near->near_percent > viable->viable_percent) ff_text_add(&text, "; ");
      if (!near || near->near_percent > viable->viable_percent)
        add_reach(&text, viable->manager, viable->viable_percent, viable->viable,
                  "it stays within twice the reference");
      ff_text_add(&text, ".");
    }
    if (any && (!viable || any->viable_percent < viable->viable_percent)) {
      ff_text_add(&text, " A driver that paged so would get further: ");
      add_reach(&text, any->manager, any->viable_percent, any->viable, "within twice the reference");
      ff_text_add(&text, ".");
    }
  }
  advice->verdict = text.chars;
}

static void conclude_capacity(const advise_study *study, advise_advice *advice) {
  advice->reference = full_time(study, study->baseline);
  for (size_t i = 0; i < study->managers.count && advice->reference; i++) {
    advise_capacity c = {.manager = study->managers.items[i]};
    double reference = (double)advice->reference, own = (double)full_time(study, c.manager);
    go_down(study, c.manager, ADVISE_NEAR * reference, &c.near, &c.near_percent);
    go_down(study, c.manager, ADVISE_VIABLE * reference, &c.viable, &c.viable_percent);
    go_down(study, c.manager, ADVISE_NEAR * own, &c.near_own, &c.near_own_percent);
    FF_PUSH(&advice->capacities, c);
  }
  conclude_verdict(study, advice);
}

/* ---- all together ---- */

static void conclude_summary(const advise_study *study, advise_advice *advice) {
  const advise_setting *now = now_of(study), *base = advise_find(study, study->baseline),
                       *ideal = advise_find(study, "ideal"), *copy = advise_find(study, "copy");
  ff_text text = {0};
  char a[32], b[32];
  if (base && !base->known)
    ff_text_add(&text, "%s cannot run here%s%.300s. ", base->memory, base->result.error[0] ? ": " : "",
                report_reason(&base->result));
  if (!now || !now->known) ff_text_add(&text, "Neither could %s: there is nothing to compare with.", study->paged);
  else {
    ff_text_add(&text, "Now, with %s: %s", now->memory, time(time_of(now), a));
    if (ideal && ideal->known)
      ff_text_add(&text, ". If memory were everywhere (ideal): %s, so moving data costs %.1f %% of the time",
                  time(time_of(ideal), b), 100 * advise_gain(time_of(now), time_of(ideal)));
    if (copy && copy->known && copy != now)
      ff_text_add(&text, ". With copies: %s, %.2f times that", time(time_of(copy), b),
                  (double)time_of(copy) / (double)time_of(now));
    ff_text_add(&text, ".");
  }
  advice->summary = text.chars;
}

/* 0: helps this program; 1: would help another one; 2: a part of what helps. */
static int section_of(const advise_item *item) { return item->kind == ADVISE_KIND_HINT ? 2 : item->conditional; }

/* By section, then by gain, then in the order of the kinds. */
static int by_value(const void *a, const void *b) {
  const advise_item *x = a, *y = b;
  if (section_of(x) != section_of(y)) return section_of(x) - section_of(y);
  if (x->gain != y->gain) return x->gain < y->gain ? 1 : -1;
  if (x->kind != y->kind) return (int)x->kind - (int)y->kind;
  return strcmp(x->then->memory, y->then->memory);
}

void advise_conclude(const advise_study *study, advise_advice *advice) {
  *advice = (advise_advice){0};
  conclude_summary(study, advice);
  conclude_managers(study, advice);
  conclude_hints(study, advice);
  conclude_segments(study, advice);
  conclude_capacity(study, advice);
  if (advice->items.count) qsort(advice->items.items, advice->items.count, sizeof *advice->items.items, by_value);
}

void advise_advice_free(advise_advice *advice) {
  for (size_t i = 0; i < advice->items.count; i++) {
    free(advice->items.items[i].title);
    free(advice->items.items[i].text);
    free(advice->items.items[i].evidence.items);
  }
  free(advice->items.items);
  free(advice->capacities.items);
  free(advice->tried.items);
  free(advice->summary);
  free(advice->verdict);
  *advice = (advise_advice){0};
}
