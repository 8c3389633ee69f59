/* SPDX-License-Identifier: Apache-2.0 */
/* Launches: from the call to the driver (Wilt 2017, R1, R2, R5, R7, R9).
 *
 *   ff_launch: checked, copied, queued ------> issue: GPU chosen, pieces brought, contents brought, kernel in a stream
 *                 |  ^ while it would evict,                                    |
 *                 +--+ until `lookahead` are queued or a call waits           +--> running --(ff_wait)--> over
 *
 * Issued in the order of the calls. A launch that fails is as if it had not been called; its ticket remembers why. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/runtime_check.h"

enum { RUNNING_KEPT = 1024 }; /* tickets, before those that are over are thrown away */

/* ---- what blocks use ---- */

box whole_grid(const launch *l) { return (box){{0, 0, 0}, {l->grid[0], l->grid[1], l->grid[2]}}; }

bool next_part(const launch *l, box *rest, box *part) {
  uint32_t a = l->axis;
  if (rest->from[a] >= rest->to[a]) return false;
  *part = *rest;
  if (l->step && rest->to[a] - rest->from[a] > l->step) part->to[a] = rest->from[a] + l->step;
  rest->from[a] = part->to[a];
  return true;
}

/* The smallest range that holds what each block of the box uses. */
span use_bytes(const use *u, const box *blocks) {
  if (!u->block_bytes) return u->bytes;
  __int128 low = u->start, high = low + u->block_bytes;
  for (int i = 0; i < 3; i++) {
    __int128 first = (__int128)u->per_block[i] * blocks->from[i],
             last = (__int128)u->per_block[i] * (blocks->to[i] - 1);
    low += first < last ? first : last;
    high += first < last ? last : first;
  }
  if (low < (__int128)u->bytes.begin) low = u->bytes.begin;
  if (high > (__int128)u->bytes.end) high = u->bytes.end;
  return low < high ? (span){(uint64_t)low, (uint64_t)high} : (span){u->bytes.begin, u->bytes.begin};
}

/* ---- making one from the request ---- */

static ff_result check_use(ff_gpu *gpu, const ff_partition *in, const ff_use *use, uint32_t number) {
  const ff_segment *g = use->segment;
  if (!g || g->gpu != gpu)
    return runtime_fail(FF_ERROR_INVALID, "use %u: %s", number, g ? "a segment of another ff_gpu" : "no segment");
  const ff_partition *owner = g->store->partition;
  if (owner != (in && in->own_memory ? in : NULL))
    return runtime_fail(FF_ERROR_INVALID, "use %u: segment '%s' is of %s%.60s, the launch of %s%.60s", number, g->name,
                        owner ? "partition " : "no partition", owner ? owner->name : "", in ? "partition " : "none",
                        in ? in->name : "");
  if (!use->access || use->access & ~3u)
    return runtime_fail(FF_ERROR_INVALID, "use %u of segment '%s': no such access", number, g->name);
  if (use->offset >= g->bytes || use->bytes > g->bytes - use->offset)
    return runtime_fail(FF_ERROR_INVALID, "use %u: bytes %llu to %llu are not in segment '%s' of %llu bytes", number,
                        (unsigned long long)use->offset, (unsigned long long)(use->offset + use->bytes), g->name,
                        (unsigned long long)g->bytes);
  if (!use->block_bytes && (use->per_block[0] || use->per_block[1] || use->per_block[2]))
    return runtime_fail(FF_ERROR_INVALID, "use %u of segment '%s': per_block without block_bytes", number, g->name);
  if (use->access & FF_WRITE && g->store->host_kind == HOST_FILE && !g->store->writable)
    return runtime_fail(FF_ERROR_INVALID, "use %u: the file of segment '%s' is not written", number, g->name);
  return FF_SUCCESS;
}

static ff_result check_mapped(const use *u, uint32_t number) {
  const ff_segment *g = u->segment;
  for (size_t i = 0; i < g->mappings.count; i++) {
    const mapping *m = &g->mappings.items[i];
    if ((m->write || u->access & FF_WRITE) && m->bytes.begin < u->bytes.end && u->bytes.begin < m->bytes.end)
      return runtime_fail(FF_ERROR_BUSY, "use %u: the host has bytes %llu to %llu of segment '%s' mapped%s", number,
                          (unsigned long long)(m->bytes.begin - g->base), (unsigned long long)(m->bytes.end - g->base),
                          g->name, m->write ? " for writing" : "");
  }
  return FF_SUCCESS;
}

static ff_result check_arguments(ff_gpu *gpu, const ff_launch_request *r, size_t *value_bytes) {
  const ff_kernel *k = r->kernel;
  *value_bytes = 0;
  if (k->known && k->param_count != r->argument_count)
    return runtime_fail(FF_ERROR_INVALID, "kernel '%s' takes %u arguments, not %u", k->name, k->param_count,
                        r->argument_count);
  for (uint32_t i = 0; i < r->argument_count; i++) {
    const ff_argument *a = &r->arguments[i];
    if (!a->value && (!a->segment || a->segment->gpu != gpu || a->offset > a->segment->bytes))
      return runtime_fail(FF_ERROR_INVALID, "argument %u: %s", i,
                          a->segment ? "a segment of another ff_gpu, or an offset behind it"
                                     : "neither a value nor a segment");
    size_t bytes = a->value ? a->bytes : 8;
    if (!bytes || bytes > 1 << 16) return runtime_fail(FF_ERROR_INVALID, "argument %u: %zu bytes", i, bytes);
    if (k->known && k->param_bytes[i] != bytes)
      return runtime_fail(FF_ERROR_INVALID, "argument %u of kernel '%s' has %u bytes, not %zu", i, k->name,
                          k->param_bytes[i], bytes);
    *value_bytes += (bytes + 15) / 16 * 16;
  }
  return FF_SUCCESS;
}

static void copy_arguments(launch *l, const ff_launch_request *r) {
  size_t at = 0;
  for (uint32_t i = 0; i < r->argument_count; i++) {
    const ff_argument *a = &r->arguments[i];
    l->arguments[i] = a->value ? (argument){NULL, at} : (argument){a->segment, a->offset};
    if (!a->value) continue;
    memcpy(l->values + at, a->value, a->bytes);
    at += (a->bytes + 15) / 16 * 16;
  }
}

static void copy_use(use *u, const ff_use *from) {
  uint64_t begin = from->segment->base + from->offset,
           bytes = from->bytes ? from->bytes : from->segment->bytes - from->offset;
  *u = (use){from->segment,
             from->access,
             {begin, begin + bytes},
             (int64_t)begin,
             {from->per_block[0], from->per_block[1], from->per_block[2]},
             from->block_bytes};
}

/* Do the blocks' ranges leave bytes between them? Surely not, if the axes, taken by their strides, each continue what
 * those before cover. No launch needs such bytes: what is there stays. */
static bool has_gaps(const use *u, const uint32_t grid[3]) {
  __int128 covered = u->block_bytes;
  bool taken[3] = {false, false, false};
  for (int n = 0; n < 3 && u->block_bytes; n++) {
    int next = -1;
    uint64_t stride = 0;
    for (int i = 0; i < 3; i++) {
      uint64_t own = u->per_block[i] < 0 ? -(uint64_t)u->per_block[i] : (uint64_t)u->per_block[i];
      if (!taken[i] && (next < 0 || own < stride)) {
        next = i;
        stride = own;
      }
    }
    taken[next] = true;
    if (grid[next] > 1 && stride > covered) return true;
    covered += (__int128)stride * (grid[next] - 1);
  }
  return false;
}

static ff_result make_launch(ff_gpu *gpu, ff_partition *in, const ff_launch_request *r, launch **out) {
  size_t value_bytes;
  if (!r->kernel || r->kernel->module->gpu != gpu)
    return runtime_fail(FF_ERROR_INVALID, "ff_launch: %s", r->kernel ? "a kernel of another ff_gpu" : "no kernel");
  if ((r->use_count && !r->uses) || (r->argument_count && !r->arguments) || r->use_count > 4096 ||
      r->argument_count > 4096)
    return runtime_fail(FF_ERROR_INVALID, "ff_launch: NULL, or more than 4096 of them");
  if (r->device > gpu->device_count)
    return runtime_fail(FF_ERROR_INVALID, "ff_launch: there is no GPU %u", r->device - 1);
  if (in && r->device && r->device != in->device + 1)
    return runtime_fail(FF_ERROR_INVALID, "ff_partition_launch: partition '%s' is of GPU %u", in->name, in->device);
  TRY(check_arguments(gpu, r, &value_bytes));
  for (uint32_t i = 0; i < r->use_count; i++) TRY(check_use(gpu, in, &r->uses[i], i));
  size_t uses_at = sizeof(launch), arguments_at = uses_at + r->use_count * sizeof(use),
         values_at = (arguments_at + r->argument_count * sizeof(argument) + 15) / 16 * 16;
  launch *l = malloc(values_at + value_bytes);
  if (!l) return runtime_fail(FF_ERROR_NO_MEMORY, "ff_launch: no host memory");
  *l = (launch){.kernel = r->kernel,
                .partition = in,
                .shared = r->shared_bytes,
                .device = in ? in->device + 1 : r->device,
                .argument_count = r->argument_count,
                .use_count = r->use_count,
                .uses = (use *)((char *)l + uses_at),
                .arguments = (argument *)((char *)l + arguments_at),
                .values = (unsigned char *)l + values_at};
  for (int i = 0; i < 3; i++) {
    l->grid[i] = r->grid[i] ? r->grid[i] : 1;
    l->block[i] = r->block[i] ? r->block[i] : 1;
  }
  copy_arguments(l, r);
  ff_result result = FF_SUCCESS;
  for (uint32_t i = 0; i < r->use_count && !result; i++) {
    copy_use(&l->uses[i], &r->uses[i]);
    if (l->uses[i].access == FF_WRITE && has_gaps(&l->uses[i], l->grid)) l->uses[i].access = FF_READ_WRITE;
    result = check_mapped(&l->uses[i], i);
  }
  if (result) free(l);
  else *out = l;
  return result;
}

/* ---- does it fit? ---- */

static void fill_needs(const launch *l, const box *part, need *needs) {
  for (uint32_t u = 0; u < l->use_count; u++)
    needs[u] = (need){l->uses[u].segment->store, use_bytes(&l->uses[u], part)};
}

static const pool *launch_pool(const launch *l, uint32_t d) {
  return l->partition ? partition_pool(l->partition) : &l->kernel->module->gpu->devices[d].pool;
}

/* Pieces that the whole launch needs, with what is pinned on that GPU. */
static uint64_t whole_pieces(ff_gpu *gpu, const launch *l, uint32_t d) {
  const pool *from = launch_pool(l, d);
  uint64_t most = from->pinned_pieces;
  for (uint32_t u = 0; u < l->use_count; u++) most += (l->uses[u].bytes.end - l->uses[u].bytes.begin) / gpu->piece + 2;
  if (most <= from->budget_pieces) return most; /* at most: it fits, that is all that is asked */
  need needs[l->use_count + 1];
  for (uint32_t u = 0; u < l->use_count; u++) needs[u] = (need){l->uses[u].segment->store, l->uses[u].bytes};
  return memory_pieces(gpu, d, needs, l->use_count);
}

static uint32_t any_device(const launch *l) { return l->device ? l->device - 1 : 0; }

/* Whole, or else in windows. */
static ff_result plan(ff_gpu *gpu, launch *l, uint64_t *pieces, uint64_t *windows, char *reason, size_t length) {
  uint32_t d = any_device(l);
  for (uint32_t other = 0; !l->device && other < gpu->device_count; other++)
    if (gpu->devices[other].pool.pinned_pieces < gpu->devices[d].pool.pinned_pieces) d = other;
  *pieces = whole_pieces(gpu, l, d);
  *windows = 1;
  if (*pieces <= launch_pool(l, d)->budget_pieces) {
    snprintf(reason, length, "it fits");
    return FF_SUCCESS;
  }
  l->device = d + 1; /* the windows are as large as that one allows */
  return window_choose(gpu, l, launch_pool(l, d)->budget_pieces, windows, reason, length);
}

/* ---- issuing ---- */

/* The GPU that has most of what the launch needs, and room for it in addition to what is pinned there; of equal ones
 * the one with the least in its streams. */
static uint32_t choose_device(ff_gpu *gpu, const launch *l) {
  if (l->device || gpu->device_count == 1) return any_device(l);
  uint32_t best = 0;
  uint64_t best_bytes = 0, best_work = UINT64_MAX;
  for (uint32_t d = 0; d < gpu->device_count; d++) {
    uint64_t bytes = 0, work = 0;
    if (whole_pieces(gpu, l, d) > launch_pool(l, d)->budget_pieces) continue;
    for (uint32_t u = 0; u < l->use_count; u++)
      bytes += spans_bytes(&l->uses[u].segment->store->sides[d].valid, l->uses[u].bytes.begin, l->uses[u].bytes.end);
    for (uint32_t s = 0; s < STREAMS; s++) work += gpu->streams[stream_of(d, s)].issued;
    if (bytes < best_bytes || (bytes == best_bytes && work >= best_work)) continue;
    best = d;
    best_bytes = bytes;
    best_work = work;
  }
  return best;
}

/* What a kernel may leave as it is must be there before; what an earlier window wrote is there, or came back to the
 * host. */
static ff_result bring_contents(const launch *l, uint32_t d, const need *needs, const spans *written) {
  for (uint32_t u = 0; u < l->use_count; u++) {
    span run = needs[u].bytes;
    if (l->uses[u].access & FF_READ) TRY(transfer_in(needs[u].store, d, run.begin, run.end));
    else if (written)
      for (uint64_t at = needs[u].bytes.begin; spans_next(&written[u], true, &at, needs[u].bytes.end, &run);)
        TRY(transfer_in(needs[u].store, d, run.begin, run.end));
  }
  return FF_SUCCESS;
}

static ff_result run_kernel(ff_gpu *gpu, const launch *l, uint32_t d, const box *part, operation op) {
  cuda_function function = NULL;
  bound_launch bound;
  cuda_address table;
  cuda_address addresses[l->argument_count + 1];
  void *pointers[l->argument_count + 8 + BOUND_PARAMETERS];
  bool rewritten = l->partition && l->partition->way == WAY_REWRITE;
  uint32_t grid[3] = {part->to[0] - part->from[0], part->to[1] - part->from[1], part->to[2] - part->from[2]};
  uint32_t window[6] = {part->from[0], part->from[1], part->from[2], l->grid[0], l->grid[1], l->grid[2]};
  if (rewritten) TRY(rewrite_prepare(gpu, l, part, op.stream, &bound));
  else TRY(kernel_function(gpu, l->kernel, d, l->step != 0, &function));
  for (uint32_t i = 0; i < l->argument_count; i++) {
    const argument *a = &l->arguments[i];
    if (a->segment) addresses[i] = a->segment->store->sides[d].address + a->segment->base + a->offset;
    pointers[i] = a->segment ? (void *)&addresses[i] : (void *)(l->values + a->offset);
  }
  TRY(check_before(gpu, l, d, part, op, &table));
  uint32_t count = l->argument_count;
  if (table) pointers[count++] = &table;
  for (uint32_t i = 0; i < 6 && (l->step || !rewritten); i++) pointers[count++] = &window[i];
  if (rewritten) {
    rewrite_parameters(&bound, &pointers[count]);
    count += BOUND_PARAMETERS;
    function = bound.function;
    grid[0] = bound.blocks;
    grid[1] = grid[2] = 1;
  }
  pointers[count] = NULL;
  TRY(gpu_on(gpu, d));
  DRIVER_TRY(gpu, LaunchKernel, function, grid[0], grid[1], grid[2], l->block[0], l->block[1], l->block[2], l->shared,
             gpu->streams[op.stream].handle, pointers, NULL);
  if (rewritten) rewrite_launched(l->partition, op.stream);
  return check_after(gpu, op, table);
}

static ff_result issue_part(ff_gpu *gpu, const launch *l, uint32_t d, const box *part, spans *written, operation *op) {
  need needs[l->use_count + 1];
  span ranges[l->use_count + 1];
  fill_needs(l, part, needs);
  TRY(memory_bring(gpu, d, needs, l->use_count));
  TRY(bring_contents(l, d, needs, written));
  for (uint32_t u = 0; u < l->use_count; u++) ranges[u] = needs[u].bytes;
  TRY(work_open(gpu, kernel_stream(gpu, l, d, ranges), op));
  for (uint32_t u = 0; u < l->use_count; u++)
    TRY(history_after(gpu, &needs[u].store->sides[d].history, ranges[u].begin, ranges[u].end,
                      l->uses[u].access & FF_WRITE, op->stream));
  TRY(run_kernel(gpu, l, d, part, *op));
  for (uint32_t u = 0; u < l->use_count; u++) {
    history_add(gpu, &needs[u].store->sides[d].history, ranges[u].begin, ranges[u].end, l->uses[u].access & FF_WRITE,
                *op);
    if (l->uses[u].access & FF_WRITE) store_written(needs[u].store, d, ranges[u].begin, ranges[u].end);
    if (l->uses[u].access & FF_WRITE && written) spans_add(&written[u], ranges[u].begin, ranges[u].end);
  }
  work_close(gpu, op->stream); /* if it fails it stays open, and a call that waits for it tries again */
  for (uint32_t u = 0; u < l->use_count; u++)
    if (l->uses[u].access & FF_WRITE) memory_clean_ahead(gpu, d, &needs[u]);
  gpu->statistics.windows += l->step != 0;
  return FF_SUCCESS;
}

static ff_result issue_windows(ff_gpu *gpu, const launch *l, uint32_t d, operation *op) {
  spans written[l->use_count + 1];
  box part;
  ff_result result = FF_SUCCESS;
  memset(written, 0, sizeof written);
  for (uint64_t number = 1; !result && next_part(l, &gpu->rest, &part); number++) {
    result = issue_part(gpu, l, d, &part, written, op);
    if (result && number > 1) {
      char reason[1800];
      snprintf(reason, sizeof reason, "%.1700s", ff_message());
      runtime_fail(result, "%s (in window %llu: what the launch had written before stays)", reason,
                   (unsigned long long)number);
    }
  }
  for (uint32_t u = 0; u < l->use_count; u++) spans_free(&written[u]);
  return result;
}

static void note_failure(ff_gpu *gpu, ff_ticket ticket, ff_result result) {
  FF_PUSH(&gpu->failed, ((outcome){.ticket = ticket, .result = result, .message = ff_strdup(ff_message())}));
}

static void throw_old_away(ff_gpu *gpu) {
  size_t kept = 0;
  for (size_t i = 0; i < gpu->running.count; i++)
    if (!work_is_over(gpu, gpu->running.items[i].last)) gpu->running.items[kept++] = gpu->running.items[i];
  gpu->running.count = kept;
}

static void issue(ff_gpu *gpu, launch *l) {
  uint32_t d = choose_device(gpu, l);
  operation op = {0};
  ff_result result;
  gpu->issuing = l;
  gpu->rest = whole_grid(l);
  if (gpu->lost) result = runtime_fail(FF_ERROR_LOST, "%s", gpu->lost_message);
  else if (l->step) result = issue_windows(gpu, l, d, &op);
  else {
    box all = gpu->rest;
    gpu->rest.from[0] = gpu->rest.to[0];
    result = issue_part(gpu, l, d, &all, NULL, &op);
  }
  gpu->issuing = NULL;
  if (result) note_failure(gpu, l->ticket, result);
  else {
    FF_PUSH(&gpu->running, ((outcome){.ticket = l->ticket, .last = op}));
    if (gpu->running.count % RUNNING_KEPT == 0) throw_old_away(gpu);
    gpu->statistics.launches++;
  }
  if (ff_check_level > 1)
    for (size_t i = 0; i < gpu->stores.count; i++) store_check(gpu->stores.items[i]);
}

static bool has_room(ff_gpu *gpu, const launch *l) {
  uint32_t d = choose_device(gpu, l);
  box all = whole_grid(l);
  need needs[l->use_count + 1];
  if (l->step) return false;
  fill_needs(l, &all, needs);
  return memory_has_room(launch_pool(l, d), memory_missing(gpu, d, needs, l->use_count));
}

/* Issues from the front as long as nothing need be evicted, or everything up to `ticket`. */
static void pump(ff_gpu *gpu, ff_ticket ticket) {
  while (gpu->first) {
    launch *l = gpu->first;
    if (l->ticket > ticket && gpu->queued < gpu->lookahead && !has_room(gpu, l)) return;
    gpu->first = l->next;
    if (!gpu->first) gpu->last = &gpu->first;
    gpu->queued--;
    issue(gpu, l);
    free(l);
  }
}

ff_result launch_flush(ff_gpu *gpu) {
  pump(gpu, gpu->tickets);
  return FF_SUCCESS;
}

/* ---- the calls ---- */

static ff_result queue(ff_gpu *gpu, ff_partition *in, const ff_launch_request *request, ff_ticket *ticket) {
  launch *l;
  uint64_t pieces, windows;
  char reason[512];
  if (gpu->lost) return runtime_fail(FF_ERROR_LOST, "%s", gpu->lost_message);
  TRY(make_launch(gpu, in, request, &l));
  ff_result result = plan(gpu, l, &pieces, &windows, reason, sizeof reason);
  if (result) {
    uint64_t budget = launch_pool(l, any_device(l))->budget_pieces * gpu->piece;
    free(l);
    return runtime_fail(
        result,
        "kernel '%s' needs %llu bytes of GPU memory at once, the budget is %llu, and it cannot be run in windows: %s",
        request->kernel->name, (unsigned long long)(pieces * gpu->piece), (unsigned long long)budget, reason);
  }
  l->ticket = ++gpu->tickets;
  *gpu->last = l;
  gpu->last = &l->next;
  gpu->queued++;
  if (ticket) *ticket = l->ticket;
  pump(gpu, 0);
  return FF_SUCCESS;
}

ff_result ff_launch(ff_gpu *gpu, const ff_launch_request *request, ff_ticket *ticket) {
  if (!gpu || !request) return runtime_fail(FF_ERROR_INVALID, "ff_launch: NULL");
  gpu_enter(gpu);
  ff_result result = queue(gpu, NULL, request, ticket);
  gpu_leave(gpu);
  return result;
}

ff_result ff_partition_launch(ff_partition *partition, const ff_launch_request *request, ff_ticket *ticket) {
  if (!partition || !request) return runtime_fail(FF_ERROR_INVALID, "ff_partition_launch: NULL");
  ff_gpu *gpu = partition->gpu;
  gpu_enter(gpu);
  ff_result result = queue(gpu, partition, request, ticket);
  gpu_leave(gpu);
  return result;
}

ff_result ff_launch_plan(ff_gpu *gpu, const ff_launch_request *request, ff_plan *out) {
  if (!gpu || !request || !out) return runtime_fail(FF_ERROR_INVALID, "ff_launch_plan: NULL");
  launch *l;
  gpu_enter(gpu);
  ff_result result = make_launch(gpu, NULL, request, &l);
  if (!result) {
    *out = (ff_plan){0};
    need needs[l->use_count + 1];
    for (uint32_t u = 0; u < l->use_count; u++) needs[u] = (need){l->uses[u].segment->store, l->uses[u].bytes};
    if (plan(gpu, l, &out->needed, &out->windows, out->reason, sizeof out->reason)) out->windows = 0;
    out->needed = memory_pieces(gpu, any_device(l), needs, l->use_count) * gpu->piece;
    free(l);
  }
  gpu_leave(gpu);
  return result;
}

static outcome *find_outcome(outcome *items, size_t count, ff_ticket ticket) {
  size_t low = 0, high = count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (items[middle].ticket < ticket) low = middle + 1;
    else high = middle;
  }
  return low < count && items[low].ticket == ticket ? &items[low] : NULL;
}

static ff_result tell(outcome *failed) {
  failed->told = true;
  return runtime_fail(failed->result, "%s", failed->message);
}

/* The first to hear of a lost GPU hears of the kernel's fault. */
static ff_result lost(ff_gpu *gpu, ff_result result) {
  if (result != FF_ERROR_LOST || gpu->loss_told) return result;
  gpu->loss_told = true;
  return gpu->fault ? runtime_fail(FF_ERROR_FAULT, "%s", gpu->lost_message) : result;
}

/* Waits without the lock, so that others can go on. */
static ff_result wait_unlocked(ff_gpu *gpu, operation op) {
  stream *s = &gpu->streams[op.stream];
  if (op.number <= s->completed) return FF_SUCCESS;
  if (op.number == s->issued + 1) TRY(work_close(gpu, op.stream));
  if (op.number <= s->completed) return FF_SUCCESS;
  TRY(gpu_on(gpu, s->device));
  cuda_event event = s->events[op.number % STREAM_EVENTS]; /* recorded again only after op is over */
  cuda_context caller = gpu->caller, own = gpu->current;
  pthread_mutex_unlock(&gpu->lock);
  int result = gpu->driver->EventSynchronize(event);
  pthread_mutex_lock(&gpu->lock);
  gpu->caller = caller;
  gpu->current = own;
  if (result) return driver_failed(gpu, result, "cuEventSynchronize");
  if (s->completed < op.number) s->completed = op.number;
  return FF_SUCCESS;
}

static ff_result wait_for(ff_gpu *gpu, ff_ticket ticket) {
  if (!ticket || ticket > gpu->tickets)
    return runtime_fail(FF_ERROR_INVALID, "there is no launch %llu", (unsigned long long)ticket);
  launch_flush(gpu); /* those behind it too: the caller queues nothing while it waits */
  outcome *failed = find_outcome(gpu->failed.items, gpu->failed.count, ticket);
  if (failed) return lost(gpu, tell(failed));
  outcome *running = find_outcome(gpu->running.items, gpu->running.count, ticket);
  if (running) TRY(lost(gpu, wait_unlocked(gpu, running->last)));
  TRY(check_collect(gpu, ticket));
  failed = find_outcome(gpu->failed.items, gpu->failed.count, ticket);
  return failed ? tell(failed) : FF_SUCCESS;
}

ff_result ff_wait(ff_gpu *gpu, ff_ticket ticket) {
  if (!gpu) return runtime_fail(FF_ERROR_INVALID, "ff_wait: NULL");
  gpu_enter(gpu);
  ff_result result = wait_for(gpu, ticket);
  gpu_leave(gpu);
  return result;
}

static ff_result settle_running(ff_gpu *gpu) {
  ff_result first = FF_SUCCESS;
  for (uint32_t i = 0; i < gpu->device_count * STREAMS; i++) {
    if (!gpu->streams[i].handle) continue;
    ff_result result = work_close(gpu, i);
    if (!result) result = work_wait(gpu, (operation){i, gpu->streams[i].issued});
    if (!first) first = result;
  }
  if (!first) gpu->running.count = 0;
  return first;
}

ff_result launch_wait(ff_gpu *gpu) {
  launch_flush(gpu);
  return settle_running(gpu);
}

ff_result launch_settle(ff_gpu *gpu) {
  TRY(lost(gpu, launch_wait(gpu)));
  TRY(check_collect(gpu, 0));
  for (size_t i = 0; i < gpu->failed.count; i++)
    if (!gpu->failed.items[i].told) return lost(gpu, tell(&gpu->failed.items[i]));
  return FF_SUCCESS;
}

ff_result ff_wait_all(ff_gpu *gpu) {
  if (!gpu) return runtime_fail(FF_ERROR_INVALID, "ff_wait_all: NULL");
  gpu_enter(gpu);
  ff_result result = launch_settle(gpu);
  gpu_leave(gpu);
  return result;
}

static ff_result ask(ff_gpu *gpu, ff_ticket ticket, bool *done) {
  if (!ticket || ticket > gpu->tickets)
    return runtime_fail(FF_ERROR_INVALID, "there is no launch %llu", (unsigned long long)ticket);
  pump(gpu, 0);
  *done = false;
  for (const launch *l = gpu->first; l; l = l->next)
    if (l->ticket == ticket) return FF_SUCCESS;
  outcome *running = find_outcome(gpu->running.items, gpu->running.count, ticket);
  *done = true;
  return running ? work_ask(gpu, running->last, done) : FF_SUCCESS;
}

ff_result ff_done(ff_gpu *gpu, ff_ticket ticket, bool *done) {
  if (!gpu || !done) return runtime_fail(FF_ERROR_INVALID, "ff_done: NULL");
  gpu_enter(gpu);
  ff_result result = ask(gpu, ticket, done);
  gpu_leave(gpu);
  return result;
}

ff_result ff_flush(ff_gpu *gpu) {
  if (!gpu) return runtime_fail(FF_ERROR_INVALID, "ff_flush: NULL");
  gpu_enter(gpu);
  ff_result result = launch_flush(gpu);
  gpu_leave(gpu);
  return result;
}
