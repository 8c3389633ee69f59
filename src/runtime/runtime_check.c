/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of uses for launches that check themselves, and what their reports become.
 *
 *   check_before: a slot's table, filled -> copied to the GPU -> [kernel] -> check_after: its head is copied back
 *   -> check_collect, when the operation is over: an outcome of the ticket, if there is a report
 *
 * A slot is used again when its launch is over and collected; the host waits for that if need be. */
#include "ptx/rewrite/persistent.h"
#include "runtime/runtime_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "ptx/rewrite/instrument.h"

enum { CHECK_SLOTS = 32, NAME_ROOM = 64 };

typedef struct check_slot {
  bool busy; /* used by an operation, not collected */
  operation by;
  ff_ticket ticket;
  const ff_kernel *kernel;
  uint32_t use_count, room; /* room: of the memory below, in uses */
  ff_virtual_use *uses;     /* declared; their names are in `names` */
  char (*names)[NAME_ROOM];
  ptx_check_table *host; /* page-locked */
  cuda_address table;
} check_slot;

struct check { /* of one GPU */
  check_slot slots[CHECK_SLOTS];
  uint32_t next;
};

/* ---- code ---- */

void check_module(ff_module *m) {
  ff_error error;
  if (!m->gpu->check || !m->ptx) return;
  m->checked = ptx_instrument(m->ptx);
  if (!ptx_module_parse(m->name, m->checked->text.chars, m->checked->text.length, &m->checked_ptx, &error)) return;
  snprintf(m->reason, sizeof m->reason, "%.*s", (int)strcspn(error.message, "\n"), error.message);
  ptx_checked_free(m->checked); /* it is too large, with its checks */
  m->checked = NULL;
}

const char *check_image(const ff_module *m) { return m->checked ? m->checked->text.chars : m->image; }

const ptx_module *check_ptx(const ff_module *m) { return m->checked ? m->checked_ptx : m->ptx; }

ff_result check_kernel(ff_kernel *k) {
  const ff_module *m = k->module;
  if (!m->gpu->check) return FF_SUCCESS;
  const ptx_checked_kernel *found = m->checked ? ptx_checked_find(m->checked, k->name) : NULL;
  if (found && found->checked_name) k->checked = found;
  if (k->checked || m->gpu->driver->declare) return FF_SUCCESS;
  return runtime_fail(FF_ERROR_CODE, "kernel '%s' cannot check its accesses (FF_CHECK): %s", k->name,
                      found        ? found->reason
                      : *m->reason ? m->reason
                                   : "it has no body");
}

const char *check_entry(const ff_kernel *k) { return k->checked ? k->checked->checked_name : k->name; }

void check_module_free(ff_module *m) {
  for (uint32_t d = 0; d < m->gpu->device_count; d++) /* reports that a failing driver kept back */
    for (uint32_t i = 0; m->gpu->devices[d].check && i < CHECK_SLOTS; i++) {
      check_slot *slot = &m->gpu->devices[d].check->slots[i];
      if (slot->busy && slot->kernel->module == m) slot->busy = false;
    }
  ptx_checked_free(m->checked);
  if (m->checked_ptx) ptx_module_free(m->checked_ptx);
}

/* ---- slots ---- */

static void free_slot_memory(ff_gpu *gpu, check_slot *slot) {
  for (int tries = 0; slot->table && tries < 8; tries++) /* what fails once may be let through the next time */
    if (!gpu->driver->MemFree(slot->table)) slot->table = 0;
  for (int tries = 0; slot->host && tries < 8; tries++)
    if (!gpu->driver->MemFreeHost(slot->host)) slot->host = NULL;
  free(slot->uses);
  free(slot->names);
  *slot = (check_slot){0};
}

static ff_result make_room(ff_gpu *gpu, check_slot *slot, uint32_t uses) {
  if (slot->table && slot->host && slot->room >= uses) return FF_SUCCESS;
  void *host = NULL;
  free_slot_memory(gpu, slot);
  slot->room = uses < 16 ? 16 : uses * 2;
  slot->uses = ff_alloc(slot->room * sizeof *slot->uses);
  slot->names = ff_alloc(slot->room * sizeof *slot->names);
  DRIVER_TRY(gpu, MemHostAlloc, &host, ptx_check_bytes(slot->room), 0);
  slot->host = host;
  DRIVER_TRY(gpu, MemAlloc, &slot->table, ptx_check_bytes(slot->room));
  return FF_SUCCESS;
}

/* In the order of the tickets, which failures are looked up by. */
static void add_failure(ff_gpu *gpu, ff_ticket ticket, const char *message) {
  size_t at = gpu->failed.count;
  FF_PUSH(&gpu->failed, ((outcome){0}));
  for (; at && gpu->failed.items[at - 1].ticket > ticket; at--) gpu->failed.items[at] = gpu->failed.items[at - 1];
  gpu->failed.items[at] = (outcome){.ticket = ticket, .result = FF_ERROR_FAULT, .message = ff_strdup(message)};
}

static bool has_failed(const ff_gpu *gpu, ff_ticket ticket) {
  for (size_t i = gpu->failed.count; i-- > 0 && gpu->failed.items[i].ticket >= ticket;)
    if (gpu->failed.items[i].ticket == ticket) return true;
  return false;
}

static void collect(ff_gpu *gpu, check_slot *slot) {
  ff_text text = {0};
  ff_error error;
  slot->busy = false;
  if (!slot->host->report.taken || has_failed(gpu, slot->ticket)) return; /* of several windows the first counts */
  const ff_kernel *k = slot->kernel;
  if (ptx_check_explain(k->module->checked, k->name, &slot->host->report, slot->uses, slot->use_count, &text, &error))
    ff_text_add(&text, "%s", error.message);
  add_failure(gpu, slot->ticket, text.chars);
  free(text.chars);
}

ff_result check_collect(ff_gpu *gpu, ff_ticket ticket) {
  for (uint32_t d = 0; d < gpu->device_count; d++)
    for (uint32_t i = 0; gpu->devices[d].check && i < CHECK_SLOTS; i++) {
      check_slot *slot = &gpu->devices[d].check->slots[i];
      if (slot->busy && slot->ticket == ticket) TRY(work_wait(gpu, slot->by));
      if (slot->busy && work_is_over(gpu, slot->by)) collect(gpu, slot);
    }
  return FF_SUCCESS;
}

static ff_result take_slot(ff_gpu *gpu, uint32_t d, uint32_t uses, check_slot **out) {
  device *on = &gpu->devices[d];
  if (!on->check) on->check = ff_alloc(sizeof *on->check);
  check_slot *slot = &on->check->slots[on->check->next++ % CHECK_SLOTS];
  if (slot->busy) {
    TRY(work_wait(gpu, slot->by));
    collect(gpu, slot);
  }
  TRY(gpu_on(gpu, d));
  *out = slot;
  return make_room(gpu, slot, uses);
}

void check_close(ff_gpu *gpu, uint32_t d) {
  struct check *check = gpu->devices[d].check;
  if (!check) return;
  for (uint32_t i = 0; i < CHECK_SLOTS; i++) free_slot_memory(gpu, &check->slots[i]);
  free(check);
  gpu->devices[d].check = NULL;
}

/* ---- uses ---- */

/* from: the first block, where the kernel counts from the window's first; else 0. */
static ff_virtual_use declared(const use *u, uint32_t d, const uint32_t from[3]) {
  const ff_segment *g = u->segment;
  ff_virtual_use made = {.base = g->store->sides[d].address + u->bytes.begin,
                         .bytes = u->bytes.end - u->bytes.begin,
                         .block_bytes = u->block_bytes,
                         .offset = u->bytes.begin - g->base,
                         .read = (u->access & FF_READ) != 0,
                         .write = (u->access & FF_WRITE) != 0,
                         .segment = g->name};
  made.start = u->start - (int64_t)u->bytes.begin;
  for (int i = 0; i < 3 && u->block_bytes; i++) {
    made.per_block[i] = u->per_block[i];
    /* what wraps around is in no use */
    made.start = (int64_t)((uint64_t)made.start + (uint64_t)u->per_block[i] * from[i]);
  }
  return made;
}

static int by_address(const void *a, const void *b) {
  uint64_t x = ((const span *)a)->begin, y = ((const span *)b)->begin;
  return x < y ? -1 : x > y;
}

/* For kernels that call malloc: all addresses but those of segments. Returns how many uses that are. */
static uint32_t add_others(ff_gpu *gpu, uint32_t d, ff_virtual_use *uses) {
  span *taken = ff_alloc((gpu->stores.count + 1) * sizeof *taken);
  uint32_t count = 0, made = 0;
  uint64_t at = 4096;
  for (size_t i = 0; i < gpu->stores.count; i++) {
    const store *s = gpu->stores.items[i];
    if (s->sides[d].address)
      taken[count++] = (span){s->sides[d].address, s->sides[d].address + s->piece_count * gpu->piece};
  }
  qsort(taken, count, sizeof *taken, by_address);
  taken[count] = (span){INT64_MAX, INT64_MAX};
  for (uint32_t i = 0; i <= count; i++) {
    if (taken[i].begin > at)
      uses[made++] = (ff_virtual_use){.base = at, .bytes = taken[i].begin - at, .read = 1, .write = 1};
    at = taken[i].end;
  }
  free(taken);
  return made;
}

static ff_result fill(ff_gpu *gpu, check_slot *slot, const launch *l, uint32_t d) {
  static const uint32_t none[3] = {0, 0, 0};
  uint32_t count = l->use_count;
  ff_error error;
  for (uint32_t u = 0; u < l->use_count; u++) {
    slot->uses[u] = declared(&l->uses[u], d, none);
    snprintf(slot->names[u], NAME_ROOM, "%s", slot->uses[u].segment);
    slot->uses[u].segment = slot->names[u];
  }
  if (l->kernel->checked->heap) count += add_others(gpu, d, slot->uses + count);
  slot->use_count = l->use_count;
  if (ptx_check_fill(slot->uses, count, l->grid, slot->host, &error))
    return runtime_fail(FF_ERROR_INVALID, "%s", error.message);
  return FF_SUCCESS;
}

/* The virtual GPU checks. */
static ff_result declare(ff_gpu *gpu, const launch *l, uint32_t d, const box *part) {
  static const uint32_t none[3] = {0, 0, 0};
  /* its blocks are not the grid's: only whole ranges can be said of them */
  bool bound = l->partition && l->partition->way == WAY_REWRITE;
  ff_virtual_use uses[l->use_count + 2];
  uint32_t count = l->use_count;
  for (uint32_t u = 0; u < l->use_count; u++) {
    uses[u] = declared(&l->uses[u], d, l->step ? part->from : none);
    if (!bound || !uses[u].block_bytes) continue;
    uses[u].block_bytes = 0;
    memset(uses[u].per_block, 0, sizeof uses[u].per_block);
  }
  if (bound)
    uses[count++] = (ff_virtual_use){.base = l->partition->queues,
                                     .bytes = PARTITION_STREAMS * sizeof(ptx_persistent_queue),
                                     .read = 1,
                                     .write = 1,
                                     .segment = "the partition's queues"};
  int result = gpu->driver->declare(uses, count);
  return result ? driver_failed(gpu, result, "farfaultDeclareUses") : FF_SUCCESS;
}

ff_result check_before(ff_gpu *gpu, const launch *l, uint32_t d, const box *part, operation op, cuda_address *table) {
  check_slot *slot;
  *table = 0;
  if (!l->kernel->checked) return gpu->driver->declare ? declare(gpu, l, d, part) : FF_SUCCESS;
  uint32_t most = l->use_count + (l->kernel->checked->heap ? (uint32_t)gpu->stores.count + 1 : 0);
  TRY(take_slot(gpu, d, most, &slot));
  TRY(fill(gpu, slot, l, d));
  DRIVER_TRY(gpu, MemcpyHtoDAsync, slot->table, slot->host, ptx_check_bytes(slot->host->count),
             gpu->streams[op.stream].handle);
  slot->busy = true;
  slot->by = op;
  slot->ticket = l->ticket;
  slot->kernel = l->kernel;
  *table = slot->table;
  return FF_SUCCESS;
}

ff_result check_after(ff_gpu *gpu, operation op, cuda_address table) {
  device *on = &gpu->devices[gpu->streams[op.stream].device];
  if (!table) return FF_SUCCESS;
  check_slot *slot = &on->check->slots[(on->check->next - 1) % CHECK_SLOTS];
  DRIVER_TRY(gpu, MemcpyDtoHAsync, slot->host, slot->table, sizeof slot->host->report, gpu->streams[op.stream].handle);
  return FF_SUCCESS;
}
