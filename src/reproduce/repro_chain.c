/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of dependent loads at chosen places of GPU memory, as a recording (Jain 2019, section V-F): what a thread does
 * that reads the address of its next load from the line that it loads.
 *
 * Lines are found page by page (2 MiB): an address hash that is linear over GF(2) gives for a line of a page what it
 * gives for the page, XOR what it gives for the line in page 0. So the lines of page 0 are sorted by place once, and
 * each page costs a look-up; every line that is taken was asked of the hash itself. No two chains
 * share a line, no two lines of a chain a row. */
#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"
#include "farfault/trace.h"
#include "reproduce/repro_private.h"

enum { LINE = 128, PAGE = 2 << 20, PAGE_LINES = PAGE / LINE, CHAIN_LINES = 20 };
static const uint64_t chain_virtual = UINT64_C(0x700000000000); /* where the program's memory begins for itself */

typedef struct placed {
  uint64_t place;
  uint32_t offset;
} placed; /* of a line of page 0 */

typedef struct picker {
  const address_hash *hash;
  const chain_request *request;
  placed *sorted;  /* PAGE_LINES, by place */
  uint64_t *lines; /* found: offsets from request->physical */
  uint32_t wanted, found;
} picker;

static uint64_t place_word(uint32_t module, uint32_t bank, uint32_t set) {
  return module | (uint64_t)bank << 20 | (uint64_t)set << 40;
}

static uint64_t place_at(const address_hash *hash, uint64_t physical) {
  hash_place p = hash_of(hash, physical);
  return place_word(p.module, p.bank, p.set);
}

static int by_place(const void *a, const void *b) {
  const placed *x = a, *y = b;
  if (x->place != y->place) return x->place < y->place ? -1 : 1;
  return (x->offset > y->offset) - (x->offset < y->offset);
}

/* The first of page 0's lines whose place is not below this one. */
static uint32_t lower_bound(const picker *p, uint64_t place) {
  uint32_t low = 0, high = PAGE_LINES;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (p->sorted[middle].place < place) low = middle + 1;
    else high = middle;
  }
  return low;
}

static void pick_from_page(picker *p, uint64_t page) {
  const chain_request *r = p->request;
  uint64_t target = place_word(r->place.module, r->place.bank, r->place.set),
           in_page = target ^ place_at(p->hash, page);
  uint64_t last_row = UINT64_MAX;
  for (uint32_t i = lower_bound(p, in_page); i < PAGE_LINES && p->sorted[i].place == in_page && p->found < p->wanted;
       i++) {
    uint64_t physical = page + p->sorted[i].offset, row = hash_of(p->hash, physical).row;
    if (place_at(p->hash, physical) != target || row == last_row) continue;
    p->lines[p->found++] = physical - r->physical;
    last_row = row;
  }
}

uint64_t chain_bytes(const chain_request *request) {
  return (uint64_t)PAGE * ((uint64_t)request->chains * CHAIN_LINES * 2 + 64);
}

static ff_status pick(const address_hash *hash, const chain_request *request, uint64_t *lines, ff_error *error) {
  picker p = {hash, request, ff_alloc(PAGE_LINES * sizeof(placed)), lines, request->chains * CHAIN_LINES, 0};
  for (uint32_t i = 0; i < PAGE_LINES; i++) p.sorted[i] = (placed){place_at(hash, (uint64_t)i * LINE), i * LINE};
  qsort(p.sorted, PAGE_LINES, sizeof *p.sorted, by_place);
  for (uint64_t at = 0; at < chain_bytes(request) && p.found < p.wanted; at += PAGE)
    pick_from_page(&p, request->physical + at);
  free(p.sorted);
  if (p.found == p.wanted) return FF_OK;
  return ff_fail(error, FF_LIMIT, "only %u of %u lines lie in module %u, bank %u, set %u", p.found, p.wanted,
                 request->place.module, request->place.bank, request->place.set);
}

/* ---- the recording ---- */

static ff_trace_status put_chain(ff_trace_writer *writer, uint32_t chain, uint32_t loads, const uint64_t *lines,
                                 ff_trace_error *error) {
  const uint64_t issue = ff_trace_issue(1, 0, 0, 0), wait = ff_trace_wait(0);
  ff_trace_status status = ff_trace_begin_warp(writer, chain, 0, error);
  for (uint32_t i = 0; i < loads && !status; i++) {
    uint64_t address[FF_TRACE_LANES] = {chain_virtual + lines[i % CHAIN_LINES]};
    status = ff_trace_put_record(writer, &issue, 1, error);
    if (!status) status = ff_trace_put_access(writer, FF_TRACE_LOAD, FF_TRACE_BYPASS_L1, 0, 8, 1, address, error);
    if (!status) status = ff_trace_put_record(writer, &wait, 1, error);
  }
  return status;
}

static ff_trace_status put_program(ff_trace_writer *writer, const chain_request *request, const uint64_t *lines,
                                   ff_trace_error *error) {
  const ff_trace_operation memory = {.kind = FF_TRACE_ALLOCATE,
                                     .as.allocation = {.address = chain_virtual,
                                                       .bytes = chain_bytes(request),
                                                       .id = 1,
                                                       .name = "lines"}},
                           wait = {.kind = FF_TRACE_SYNC_DEVICE},
                           give_back = {.kind = FF_TRACE_FREE, .as.allocation = {.address = chain_virtual, .id = 1}};
  const ff_trace_use use = {chain_virtual, chain_bytes(request)};
  const ff_trace_launch launch = {.kernel = "chain",
                                  .grid = {request->chains, 1, 1},
                                  .block = {1, 1, 1},
                                  .registers = 16,
                                  .uses = &use,
                                  .use_count = 1};
  ff_trace_status status = ff_trace_put_operation(writer, &memory, error);
  if (!status) status = ff_trace_put_launch(writer, 0, &launch, error);
  for (uint32_t i = 0; i < request->chains && !status; i++)
    status = put_chain(writer, i, request->loads, lines + (size_t)i * CHAIN_LINES, error);
  if (!status) status = ff_trace_put_operation(writer, &wait, error);
  if (!status) status = ff_trace_put_operation(writer, &give_back, error);
  return status;
}

ff_status chain_write(const address_hash *hash, const chain_request *request, const char *path, ff_error *error) {
  uint64_t *lines = ff_alloc((size_t)request->chains * CHAIN_LINES * sizeof *lines);
  ff_trace_writer *writer = NULL;
  ff_trace_error said;
  FF_ASSERT(request->physical % PAGE == 0);
  ff_status status = pick(hash, request, lines, error);
  if (!status && ff_trace_create(path, "chains of loads", NULL, &writer, &said))
    status = ff_fail(error, FF_IO, "%s", said.message);
  if (!status && put_program(writer, request, lines, &said)) {
    ff_trace_discard(writer);
    status = ff_fail(error, FF_INVALID, "%s", said.message);
  } else if (!status && ff_trace_finish(writer, NULL, &said)) status = ff_fail(error, FF_IO, "%s", said.message);
  free(lines);
  return status;
}
