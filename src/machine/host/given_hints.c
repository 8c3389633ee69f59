/* SPDX-License-Identifier: Apache-2.0 */
/* Hints from outside: their text, and what they make of the program's operations (given_hints.h).
 *
 *     allocation -----> managed memory; cudaMemAdvise behind it          hints_allocated
 *     launch ---------> before it, in its stream, cudaMemPrefetchAsync    hints_launch
 *                       of what it declares and has not come since the host last touched it
 *     copy, touch ----> what the host had in its hands is to come again   hints_touched
 *
 * Without hints these functions return at once. */
#include "machine/host/given_hints.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/host/hints.h"
#include "machine/host/host.h"
#include "paging/pager.h"

const sim_hint_info sim_hint_infos[SIM_HINT_COUNT] = {
#define X(id, name, help) {name, help},
#include "machine/host/given_hints.def"
#undef X
};

/* ---- text ---- */

static bool read_number(const char **at, uint32_t *number) {
  char *end;
  if (**at < '0' || **at > '9') return false;
  unsigned long long value = strtoull(*at, &end, 10);
  if (end - *at > 9) return false;
  *number = (uint32_t)value;
  *at = end;
  return true;
}

static bool read_allocation(const char **at, uint32_t *number) {
  if (strncmp(*at, "all", 3)) return read_number(at, number);
  *number = SIM_HINT_ALL;
  *at += 3;
  return true;
}

static int find_kind(const char *name, size_t length) {
  for (int i = 0; i < SIM_HINT_COUNT; i++)
    if (strlen(sim_hint_infos[i].name) == length && !strncmp(sim_hint_infos[i].name, name, length)) return i;
  return -1;
}

static ff_status fail_kind(const char *name, size_t length, ff_error *error) {
  char known[160] = "";
  for (int i = 0; i < SIM_HINT_COUNT; i++)
    snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", sim_hint_infos[i].name);
  return ff_fail(error, FF_INVALID, "'%.*s' is no hint: there are %s", (int)(length < 40 ? length : 40), name, known);
}

/* "ALLOCATION:HINT" */
static ff_status read_hint(const char *text, const char *end, sim_hint *hint, ff_error *error) {
  const char *at = text;
  hint->kernel = SIM_HINT_ALL;
  if (!read_allocation(&at, &hint->allocation) || *at != ':')
    return ff_fail(error, FF_INVALID, "'%.*s' is not ALLOCATION:HINT, with the number of an allocation or 'all'",
                   (int)(end - text < 40 ? end - text : 40), text);
  const char *name = ++at;
  size_t length = strcspn(name, "@/");
  int kind = find_kind(name, length);
  if (kind < 0) return fail_kind(name, length, error);
  hint->kind = (sim_hint_kind)kind;
  at = name + length;
  bool numbered = *at == '@';
  if (numbered) at++;
  if (numbered && (kind != SIM_HINT_UNDECLARED || !read_number(&at, &hint->kernel)))
    return ff_fail(error, FF_INVALID, "'%.*s': only 'undeclared@N' has the number of a kernel",
                   (int)(end - text < 40 ? end - text : 40), text);
  if (at != end)
    return ff_fail(error, FF_INVALID, "'%.*s' is not ALLOCATION:HINT", (int)(end - text < 40 ? end - text : 40), text);
  return FF_OK;
}

ff_status sim_hints_read(const char *text, sim_hints *hints, ff_error *error) {
  hints->count = 0;
  for (const char *at = text;;) {
    const char *end = at + strcspn(at, "/");
    if (hints->count == SIM_HINTS_MAX) return ff_fail(error, FF_LIMIT, "more than %d hints", SIM_HINTS_MAX);
    ff_status status = read_hint(at, end, &hints->items[hints->count++], error);
    if (status || !*end) return status;
    at = end + 1;
  }
}

bool sim_hints_have(const sim_hints *hints, uint32_t allocation, sim_hint_kind kind) {
  for (uint32_t i = 0; i < hints->count; i++)
    if (hints->items[i].kind == kind &&
        (hints->items[i].allocation == allocation || hints->items[i].allocation == SIM_HINT_ALL))
      return true;
  return false;
}

bool sim_hints_undeclare(const sim_hints *hints, uint32_t allocation, uint32_t kernel) {
  for (uint32_t i = 0; i < hints->count; i++) {
    const sim_hint *h = &hints->items[i];
    if (h->kind != SIM_HINT_UNDECLARED || (h->kernel != SIM_HINT_ALL && h->kernel != kernel)) continue;
    if (h->allocation == allocation || h->allocation == SIM_HINT_ALL) return true;
  }
  return false;
}

/* ---- what they make of the program ---- */

static bool moves_hinted(const hints *g, uint32_t allocation) {
  for (int kind = 0; kind < SIM_HINT_UNDECLARED; kind++)
    if (sim_hints_have(&g->given, allocation, (sim_hint_kind)kind)) return true;
  return false;
}

trace_memory_kind hints_memory(const hints *g, const trace_op *op) {
  if (!g->given.count || op->alloc.memory != TRACE_MEMORY_DEVICE || !moves_hinted(g, op->alloc.id))
    return op->alloc.memory;
  return TRACE_MEMORY_MANAGED;
}

static void advise(hints *g, const trace_op *op, trace_advice advice, int32_t device) {
  host_spend_call(g->host);
  if (!g->host->failed) pager_advise(g->pager, op->alloc.address, op->alloc.bytes, advice, device);
}

void hints_allocated(hints *g, const trace_op *op) {
  if (!g->given.count || !manager_pages(g->manager)) return;
  uint32_t id = op->alloc.id;
  bool pin = sim_hints_have(&g->given, id, SIM_HINT_PIN);
  if (pin || sim_hints_have(&g->given, id, SIM_HINT_CPU)) advise(g, op, TRACE_ADVICE_SET_PREFERRED_LOCATION, -1);
  if (pin) advise(g, op, TRACE_ADVICE_SET_ACCESSED_BY, 0);
  if (sim_hints_have(&g->given, id, SIM_HINT_READ_MOSTLY)) advise(g, op, TRACE_ADVICE_SET_READ_MOSTLY, 0);
  if (sim_hints_have(&g->given, id, SIM_HINT_PREFETCH))
    FF_PUSH(&g->prefetched, ((hinted){op->alloc.address, op->alloc.bytes, true}));
}

void hints_released(hints *g, uint64_t address) {
  for (size_t i = 0; i < g->prefetched.count; i++)
    if (g->prefetched.items[i].address == address) {
      g->prefetched.items[i] = g->prefetched.items[--g->prefetched.count];
      return;
    }
}

static void touched(hints *g, uint64_t address) {
  for (size_t i = 0; i < g->prefetched.count; i++) {
    hinted *h = &g->prefetched.items[i];
    if (address - h->address < h->bytes) h->away = true;
  }
}

void hints_touched(hints *g, const trace_op *op) {
  if (!g->prefetched.count) return;
  if (op->kind == TRACE_OP_HOST_TOUCH && op->touch.bytes) touched(g, op->touch.address);
  if (op->kind != TRACE_OP_COPY || op->copy.direction == TRACE_D2D) return;
  touched(g, op->copy.to);
  touched(g, op->copy.from);
}

static bool declares(const trace_launch *launch, uint64_t address) {
  for (uint32_t i = 0; i < launch->use_count; i++)
    if (launch->uses[i].address == address) return true;
  return false;
}

bool hints_launch(hints *g, const trace_op *op, trace_op *prefetch) {
  for (size_t i = 0; i < g->prefetched.count; i++) {
    hinted *h = &g->prefetched.items[i];
    if (!h->away || !declares(op->launch, h->address)) continue;
    h->away = false;
    *prefetch = (trace_op){.kind = TRACE_OP_PREFETCH,
                           .stream = op->stream,
                           .sequence = op->sequence,
                           .hint = {.address = h->address, .bytes = h->bytes, .device = 0}};
    return true;
  }
  return false;
}

void hints_free(hints *g) { free(g->prefetched.items); }
