/* SPDX-License-Identifier: Apache-2.0 */
/* From a trace file's records to a profile: see profile.h.
 *
 *   trace_file_next -> operation: allocations, launches
 *                   -> record: ENTER opens an instance, ACCESS adds its lines, LEAVE or EXIT hands them to the
 *                   statistics
 *
 * Records of a warp follow each other in the file, so that one instance is open at a time. */
#include "offload/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "offload/distances.h"

enum { STACK_BITS = 2, HASH = 2 * OFFLOAD_PROFILE_CANDIDATES };

static const double early_shares[OFFLOAD_PROFILE_EARLY] = {0.001, 0.005, 0.01};

/* ---- a cache ---- */

/* of each set the last used first; a tag is the line + 1 */
typedef struct lines_cache {
  uint64_t *tags, sets;
  uint32_t ways;
} lines_cache;

static lines_cache cache_create(const machine_spec *spec) {
  uint64_t lines = spec->l2_bytes / TRACE_LINE_BYTES, ways = spec->l2_ways ? spec->l2_ways : 16;
  if (ways > lines) ways = lines ? lines : 1;
  lines_cache c = {.ways = (uint32_t)ways, .sets = lines / ways ? lines / ways : 1};
  c.tags = ff_alloc(c.sets * c.ways * sizeof *c.tags);
  return c;
}

/* Was the line there? It is now. */
static bool cache_touch(lines_cache *c, uint64_t line) {
  uint64_t *set = c->tags + (line ^ line >> 17) % c->sets * c->ways, tag = line + 1;
  if (set[0] == tag) return true;
  uint32_t way = 1;
  while (way < c->ways && set[way] != tag) way++;
  bool found = way < c->ways;
  memmove(set + 1, set, (found ? way : c->ways - 1) * sizeof *set);
  set[0] = tag;
  return found;
}

/* ---- the pass ---- */

/* entered: in the open launch */
typedef struct candidate {
  offload_profile_candidate measured;
  distances distances;
  bool entered;
} candidate;
typedef struct name {
  uint64_t address;
  char text[64];
} name;

typedef struct pass {
  const offload_profile_options *options;
  offload_profile *out;
  colocate *colocate;
  lines_cache cache;
  candidate **candidates;      /* as they were first entered */
  uint32_t count, hash[HASH];  /* index + 1 by kernel and pc */
  FF_VEC(candidate *) entered; /* of the open launch */
  FF_VEC(name) names;          /* allocations */
  FF_VEC(char *) kernels;      /* by kernel_index; NULL: not launched */
  const trace_launch *launch;  /* the open one, until the next operation */
  uint32_t kernel_index;       /* its */
  bool any_mark;
  candidate *open; /* NULL: the warp is in none */
  uint64_t *lines; /* of the open instance, in order */
  uint32_t line_count, accesses;
  uint64_t first_line; /* of its first access */
  uint32_t first_pc, rounds, trips;
} pass;

static candidate *candidate_at(pass *p, uint32_t pc) {
  uint64_t key = (uint64_t)p->kernel_index << 32 | pc;
  uint32_t slot = (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 40) % HASH;
  for (; p->hash[slot]; slot = (slot + 1) % HASH) {
    candidate *c = p->candidates[p->hash[slot] - 1];
    if (c->measured.pc == pc && c->measured.kernel_index == p->kernel_index) return c;
  }
  if (p->count == OFFLOAD_PROFILE_CANDIDATES) return NULL;
  candidate *c = p->candidates[p->count] = ff_alloc(sizeof *c);
  p->hash[slot] = ++p->count;
  c->measured = (offload_profile_candidate){.kernel_index = p->kernel_index,
                                            .kernel = p->kernels.items[p->kernel_index],
                                            .pc = pc,
                                            .trips_least = UINT64_MAX};
  if (p->options->find) c->measured.candidate = p->options->find(p->options->context, p->launch, pc);
  return c;
}

static void enter(pass *p, uint64_t word) {
  p->any_mark = true;
  p->open = candidate_at(p, trace_mark_pc(word));
  if (p->open && !p->open->entered) {
    p->open->entered = true;
    FF_PUSH(&p->entered, p->open);
  }
  p->line_count = p->accesses = p->rounds = 0;
  p->trips = trace_enter_trips(word);
}

static void leave(pass *p) {
  if (!p->open) return;
  offload_profile_candidate *m = &p->open->measured;
  p->open = NULL;
  if (!p->line_count) {
    m->without_access++;
    return;
  }
  uint64_t trips = p->trips ? p->trips : p->rounds;
  m->instances++;
  m->trips_known += p->trips != 0;
  m->trips += trips;
  if (trips < m->trips_least) m->trips_least = trips;
  if (trips > m->trips_most) m->trips_most = trips;
  if (m->candidate && !sim_condition(m->candidate, sim_trips_of(m->candidate, p->trips))) return;
  m->may_go++;
  p->out->follows |= m->candidate && m->candidate->follows;
  p->out->lines += p->line_count;
  p->out->by_lines[31 - __builtin_clz(p->line_count)]++; /* at most OFFLOAD_PROFILE_LINES */
  colocate_instance(p->colocate, p->lines, p->line_count);
}

/* Lines of the access through the cache; how many were not there. */
static uint32_t misses(pass *p, const uint64_t *record, uint32_t lines) {
  uint32_t missed = 0;
  for (uint32_t i = 0; i < lines; i++)
    missed += !cache_touch(&p->cache, trace_line_address(record[2 + i]) / TRACE_LINE_BYTES);
  return missed;
}

static void count_access(offload_profile_candidate *m, const uint64_t *record, uint32_t lines, uint32_t missed) {
  trace_access_op op = trace_access_operation(*record);
  if (op == TRACE_LOAD) {
    m->loads++;
    m->load_lines += lines;
    m->load_misses += missed;
  } else if (op == TRACE_STORE) {
    m->stores++;
    m->store_lines += lines;
  } else {
    return;
  }
  m->lanes += (uint32_t)__builtin_popcount((uint32_t)record[1]);
}

static void place_access(pass *p, const uint64_t *record, uint32_t lines) {
  uint64_t first = trace_line_address(record[2]);
  if (!p->accesses) {
    p->first_line = first / TRACE_LINE_BYTES;
    p->first_pc = trace_access_pc(*record);
  } else {
    distances_add(&p->open->distances, p->accesses, p->first_line, first / TRACE_LINE_BYTES);
  }
  p->accesses++;
  p->rounds += trace_access_pc(*record) == p->first_pc;
  for (uint32_t i = 0; i < lines && p->line_count < OFFLOAD_PROFILE_LINES; i++) {
    uint64_t address = trace_line_address(record[2 + i]);
    if (!p->line_count || address != p->lines[p->line_count - 1]) p->lines[p->line_count++] = address;
  }
}

static void see_access(pass *p, const uint64_t *record) {
  uint32_t lines = trace_access_lines(*record), missed = misses(p, record, lines);
  p->out->accesses++;
  if (!p->open || !lines || trace_access_operation(*record) == TRACE_PREFETCH) return;
  p->out->candidate_accesses++;
  count_access(&p->open->measured, record, lines, missed);
  place_access(p, record, lines);
}

static void record(pass *p, const uint64_t *words) {
  switch (trace_word_kind(*words)) {
  case TRACE_ISSUE:
    p->out->warp_instructions += trace_issue_count(*words);
    if (!p->open) break;
    p->out->candidate_instructions += trace_issue_count(*words);
    p->open->measured.instructions += trace_issue_count(*words);
    break;
  case TRACE_ACCESS: see_access(p, words); break;
  case TRACE_ENTER:
    leave(p);
    enter(p, *words);
    break;
  case TRACE_LEAVE:
  case TRACE_EXIT: leave(p); break;
  default: break;
  }
}

/* ---- operations ---- */

static void add_range(pass *p, uint64_t address, uint64_t bytes, const char *text) {
  if (!bytes || address + bytes < address || colocate_range_count(p->colocate) == OFFLOAD_PROFILE_RANGES) return;
  colocate_add_range(p->colocate, (colocate_range){address, bytes});
  if (p->names.count >= 4 * OFFLOAD_PROFILE_RANGES) return;
  name n = {.address = address};
  snprintf(n.text, sizeof n.text, "%s", text);
  FF_PUSH(&p->names, n);
}

static void end_launch(pass *p) {
  if (!p->launch) return;
  for (size_t i = 0; i < p->entered.count; i++) {
    distances_end_launch(&p->entered.items[i]->distances);
    p->entered.items[i]->entered = false;
  }
  p->entered.count = 0;
  p->launch = NULL;
  p->open = NULL;
}

static void begin_launch(pass *p, const trace_launch *launch) {
  p->launch = launch;
  p->kernel_index = launch->kernel_index;
  while (p->kernels.count <= launch->kernel_index) FF_PUSH(&p->kernels, NULL);
  if (!p->kernels.items[launch->kernel_index]) p->kernels.items[launch->kernel_index] = ff_strdup(launch->kernel);
}

static void operation(pass *p, const trace_op *op) {
  end_launch(p);
  if (p->options->operation) p->options->operation(p->options->context, op);
  if (op->kind == TRACE_OP_LAUNCH) begin_launch(p, op->launch);
  else if (op->kind == TRACE_OP_ALLOC &&
           (op->alloc.memory == TRACE_MEMORY_DEVICE || op->alloc.memory == TRACE_MEMORY_MANAGED))
    add_range(p, op->alloc.address, op->alloc.bytes, op->alloc.name);
  else if (op->kind == TRACE_OP_MAP) add_range(p, op->map.address, op->map.bytes, "mapped memory");
}

/* ---- what comes of it ---- */

static int by_kernel_and_pc(const void *a, const void *b) {
  const offload_profile_candidate *left = a, *right = b;
  if (left->kernel_index != right->kernel_index) return left->kernel_index < right->kernel_index ? -1 : 1;
  return left->pc < right->pc ? -1 : left->pc > right->pc;
}

static void finish_candidates(pass *p) {
  offload_profile *out = p->out;
  out->candidates = ff_alloc(p->count * sizeof *out->candidates + 1);
  for (uint32_t i = 0; i < p->count; i++) {
    offload_profile_candidate *m = &p->candidates[i]->measured;
    distances_say(&p->candidates[i]->distances, m);
    if (!m->instances) m->trips_least = 0;
    m->kernel = ff_strdup(m->kernel);
    out->candidates[out->candidate_count++] = *m;
  }
  qsort(out->candidates, out->candidate_count, sizeof *out->candidates, by_kernel_and_pc);
}

/* The first allocation that lay in the range. */
static void name_range(const pass *p, offload_profile_range *range) {
  for (size_t i = 0; i < p->names.count; i++) {
    uint64_t line = p->names.items[i].address / TRACE_LINE_BYTES * TRACE_LINE_BYTES;
    if (line < range->address || line - range->address >= range->bytes) continue;
    memcpy(range->name, p->names.items[i].text, sizeof range->name);
    return;
  }
}

static void finish_ranges(pass *p) {
  offload_profile *out = p->out;
  uint32_t count = out->range_count = colocate_range_count(p->colocate);
  stack_map *maps = ff_alloc(count * sizeof *maps + 1),
            pair = out->best_worth ? stack_map_pair(out->best_lowest, out->bits) : stack_map_baseline(out->bits);
  stack_map other = stack_map_baseline(out->bits);
  out->linear = colocate_linear(p->colocate, maps);
  out->linear_beside = colocate_beside(p->colocate, maps, &other);
  out->ranges = ff_alloc(count * sizeof *out->ranges + 1);
  out->oracle = ff_alloc(count * sizeof *out->oracle + 1);
  out->oracle_linear = ff_alloc(count * sizeof *out->oracle_linear + 1);
  for (uint32_t i = 0; i < count; i++) {
    colocate_range r = colocate_range_at(p->colocate, i);
    out->ranges[i] = (offload_profile_range){
        .address = r.address, .bytes = r.bytes, .touched = colocate_touched(p->colocate, i), .linear = maps[i]};
    name_range(p, &out->ranges[i]);
    if (!out->ranges[i].touched) continue;
    out->oracle[out->oracle_count] = (sim_range_map){r.address, r.bytes, pair};
    out->oracle_linear[out->oracle_count++] = (sim_range_map){r.address, r.bytes, maps[i]};
  }
  free(maps);
}

static void finish(pass *p) {
  offload_profile *out = p->out;
  colocate_complete(p->colocate);
  out->instances = colocate_instances(p->colocate);
  out->baseline = colocate_baseline_share(p->colocate);
  out->baseline_beside = colocate_baseline_beside(p->colocate);
  for (uint32_t i = 0; i < STACK_MAP_PAIRS; i++) {
    out->pairs[i] = colocate_pair_share(p->colocate, i);
    out->uneven[i] = colocate_pair_uneven(p->colocate, i);
    out->pairs_beside[i] = colocate_pair_beside(p->colocate, i);
  }
  if (p->options->spec) {
    uint32_t highest =
        sim_highest_pair(p->options->spec->sm_count, p->options->spec->max_threads, UINT64_C(1) << out->bits);
    colocate_bound(p->colocate, highest);
    if (out->follows) colocate_lean(p->colocate, highest - 1);
  }
  out->best_lowest = colocate_best_pair(p->colocate);
  out->best_worth = colocate_worth(p->colocate, out->best_lowest);
  out->best = out->pairs[out->best_lowest - STACK_MAP_LOWEST];
  for (uint32_t i = 0; i < OFFLOAD_PROFILE_EARLY; i++) {
    offload_early *e = &out->early[i];
    e->share = early_shares[i];
    e->lowest = colocate_early_pair(p->colocate, e->share, &e->instances, &e->worth);
    e->colocation = out->pairs[e->lowest - STACK_MAP_LOWEST];
  }
  finish_candidates(p);
  finish_ranges(p);
}

static uint32_t stack_bits(const machine_spec *spec) {
  uint32_t bits = 0;
  while (spec->stack_count && bits < STACK_MAP_BITS && UINT64_C(2) << bits <= spec->stack_count) bits++;
  return spec->stack_count ? bits : STACK_BITS;
}

static void pass_free(pass *p) {
  for (uint32_t i = 0; i < p->count; i++) free(p->candidates[i]);
  for (size_t i = 0; i < p->kernels.count; i++) free(p->kernels.items[i]);
  free(p->candidates);
  free(p->entered.items);
  free(p->kernels.items);
  free(p->names.items);
  free(p->lines);
  free(p->cache.tags);
  colocate_free(p->colocate);
}

static void watch(pass *p, const trace_file_watch *w, uint64_t blocks) {
  trace_file_step step = {.launch = p->launch, .blocks = blocks, .warp_instructions = p->out->warp_instructions};
  if (w) w->step(w->context, &step);
}

static void read_all(pass *p, trace_file *file) {
  trace_item item;
  uint64_t block = 0;
  for (;;) {
    p->out->cut = trace_file_next(file, &item, NULL) != FF_OK;
    if (p->out->cut || item.kind == TRACE_ITEM_END) break;
    if (item.kind == TRACE_ITEM_OPERATION) {
      operation(p, item.op);
      block = 0;
      if (p->launch) watch(p, p->options->watch, 0);
      continue;
    }
    if (item.block != block) watch(p, p->options->watch, block = item.block);
    record(p, item.record);
  }
  p->out->cut |= !trace_file_information(file)->whole;
  end_launch(p);
}

offload_profile *offload_profile_run(trace_file *file, const offload_profile_options *options) {
  offload_profile *out = ff_alloc(sizeof *out);
  out->bits = stack_bits(options->spec);
  pass p = {.options = options,
            .out = out,
            .colocate = colocate_create(out->bits, NULL, 0),
            .cache = cache_create(options->spec)};
  p.candidates = ff_alloc(OFFLOAD_PROFILE_CANDIDATES * sizeof *p.candidates);
  p.lines = ff_alloc(OFFLOAD_PROFILE_LINES * sizeof *p.lines);
  trace_file_rewind(file);
  read_all(&p, file);
  trace_file_rewind(file);
  finish(&p);
  bool marks = p.any_mark;
  pass_free(&p);
  if (marks) return out;
  offload_profile_free(out);
  return NULL;
}

void offload_profile_free(offload_profile *profile) {
  if (!profile) return;
  for (uint32_t i = 0; i < profile->candidate_count; i++) free((char *)profile->candidates[i].kernel);
  free(profile->candidates);
  free(profile->ranges);
  free(profile->oracle);
  free(profile->oracle_linear);
  free(profile);
}

void offload_profile_offloading(const offload_profile *profile, const offload_profile_options *options,
                                sim_offloading *out) {
  *out = (sim_offloading){.find = options->find,
                          .context = options->context,
                          .follows = profile->follows,
                          .instances = profile->instances,
                          .oracle = profile->oracle,
                          .oracle_count = profile->oracle_count,
                          .oracle_linear = profile->oracle_linear,
                          .oracle_linear_count = profile->oracle_count};
}

static double ratio(uint64_t part, uint64_t whole, double assumed) {
  return whole ? (double)part / (double)whole : assumed;
}
double offload_profile_coal_load(const offload_profile_candidate *m) { return ratio(m->load_lines, m->loads, 1); }
double offload_profile_coal_store(const offload_profile_candidate *m) { return ratio(m->store_lines, m->stores, 1); }
double offload_profile_miss_load(const offload_profile_candidate *m) {
  return ratio(m->load_misses, m->load_lines, 0.5);
}
double offload_profile_trips(const offload_profile_candidate *m) { return ratio(m->trips, m->instances, 1); }
