/* SPDX-License-Identifier: Apache-2.0 */
/* Windows: a launch that needs more than the budget runs part by part (Wilt 2017, R9).
 *
 * A window is a slice of the grid along one axis. Its pieces are those of all uses that are not per block, and of the
 * slice's part of the others. The slice is as thick as lets four windows be in memory at once, so that one comes and
 * one goes while one runs; if that cannot be, as thick as lets one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/ranges/ranges.h"
#include "ptx/rewrite/window.h"
#include "runtime/gpu.h"

static uint64_t pieces_of(ff_gpu *gpu, const launch *l, uint32_t axis, uint32_t from, uint32_t step) {
  need needs[l->use_count + 1];
  box part = whole_grid(l);
  part.from[axis] = from;
  part.to[axis] = step < part.to[axis] - from ? from + step : part.to[axis];
  for (uint32_t u = 0; u < l->use_count; u++)
    needs[u] = (need){l->uses[u].segment->store, use_bytes(&l->uses[u], &part)};
  return memory_pieces(gpu, l->device ? l->device - 1 : 0, needs, l->use_count);
}

/* The most that any window of that thickness needs: they differ by their edges. */
static uint64_t most_pieces(ff_gpu *gpu, const launch *l, uint32_t axis, uint32_t step) {
  uint64_t most = 0;
  for (uint64_t from = 0; from < l->grid[axis]; from += step) {
    uint64_t pieces = pieces_of(gpu, l, axis, (uint32_t)from, step);
    if (pieces > most) most = pieces;
  }
  return most;
}

static uint64_t fixed_pieces(ff_gpu *gpu, const launch *l) {
  need needs[l->use_count + 1];
  uint32_t count = 0;
  for (uint32_t u = 0; u < l->use_count; u++)
    if (!l->uses[u].block_bytes) needs[count++] = (need){l->uses[u].segment->store, l->uses[u].bytes};
  return memory_pieces(gpu, l->device ? l->device - 1 : 0, needs, count);
}

/* The thickest slice of which `times` fit in `room`; 0: not even the thinnest. */
static uint32_t thickest(ff_gpu *gpu, const launch *l, uint32_t axis, uint64_t fixed, uint64_t room, uint64_t times) {
  uint32_t low = 0, high = l->grid[axis];
  while (low < high) {
    uint32_t middle = low + (high - low + 1) / 2;
    uint64_t own =
        pieces_of(gpu, l, axis, l->grid[axis] / 2 < l->grid[axis] - middle ? l->grid[axis] / 2 : l->grid[axis] - middle,
                  middle) -
        fixed;
    if (fixed + times * own <= room) low = middle;
    else high = middle - 1;
  }
  while (low && fixed + times * (most_pieces(gpu, l, axis, low) - fixed) > room) low = low * 7 / 8;
  return low;
}

/* ---- uses that the PTX proves ---- */

/* The parameter block as the kernel gets it on the first GPU that it may run on; NULL: it is not known. */
static unsigned char *parameter_block(const launch *l, const ptx_func *f, uint32_t d, uint32_t *bytes) {
  uint32_t offsets[f->param_count + 1];
  *bytes = ptx_param_layout(f, offsets);
  if (*bytes == UINT32_MAX) return NULL;
  unsigned char *block = ff_alloc(*bytes + 1u);
  for (uint32_t i = 0; i < f->param_count; i++) {
    const argument *a = &l->arguments[i];
    uint64_t address = a->segment ? a->segment->store->sides[d].address + a->segment->base + a->offset : 0;
    memcpy(block + offsets[i], a->segment ? (const unsigned char *)&address : l->values + a->offset,
           f->params[i]->size);
  }
  return block;
}

/* The segments that are used, each once; their number. */
static uint32_t used_segments(const launch *l, uint32_t d, ptx_ranges_segment *segments, const ff_segment **of) {
  uint32_t count = 0;
  for (uint32_t u = 0; u < l->use_count; u++) {
    const ff_segment *g = l->uses[u].segment;
    uint32_t i = 0;
    while (i < count && of[i] != g) i++;
    if (i < count) continue;
    of[count] = g;
    segments[count++] = (ptx_ranges_segment){g->store->sides[d].address + g->base, g->bytes};
  }
  return count;
}

/* What is proved of a segment, as a use of it; the declared range stays the limit. */
static void narrow(use *u, const ptx_range *proved) {
  if (u->block_bytes || proved->whole || !proved->any) return;
  u->start = (int64_t)u->segment->base + proved->start;
  memcpy(u->per_block, proved->per_block, sizeof u->per_block);
  u->block_bytes = proved->block_bytes;
}

/* Makes uses per block where it can; the reason of the first that stays whole is added to `reason`. */
static void prove(ff_gpu *gpu, launch *l, char *reason, size_t length) {
  uint32_t d = l->device ? l->device - 1 : 0, bytes;
  const ptx_func *f = l->kernel->module->ptx ? ptx_find_func(l->kernel->module->ptx, l->kernel->name) : NULL;
  snprintf(reason, length, "%s", f ? "" : l->kernel->module->reason);
  unsigned char *block = f && f->param_count == l->argument_count ? parameter_block(l, f, d, &bytes) : NULL;
  if (!block) return;
  ptx_ranges_segment segments[l->use_count + 1];
  const ff_segment *of[l->use_count + 1];
  ptx_ranges_launch asked = {
      .params = block, .param_bytes = bytes, .segments = segments, .segment_count = used_segments(l, d, segments, of)};
  memcpy(asked.grid, l->grid, sizeof asked.grid);
  memcpy(asked.block, l->block, sizeof asked.block);
  ptx_ranges found;
  ptx_ranges_find(f, &asked, &found);
  for (uint32_t u = 0; u < l->use_count; u++)
    for (uint32_t i = 0; i < asked.segment_count; i++) {
      if (of[i] != l->uses[u].segment) continue;
      narrow(&l->uses[u], &found.segments[i].all);
      if (found.segments[i].all.whole && !*reason)
        snprintf(reason, length, "segment '%.60s': %.250s", of[i]->name,
                 found.complete ? found.segments[i].reason : found.reason);
    }
  ptx_ranges_free(&found);
  free(block);
}

/* ---- choosing ---- */

static ff_result no_windows(char *reason, size_t length, const char *why, const char *analysis) {
  snprintf(reason, length, "%s%s%s", why, *analysis ? "; the kernel's PTX does not prove more: " : "", analysis);
  return FF_ERROR_TOO_LARGE;
}

/* The thickest slices along the axis that allows most of them to be in memory at once. */
static bool choose_slices(ff_gpu *gpu, launch *l, uint64_t fixed, uint64_t room, uint64_t *windows) {
  for (uint64_t times = 4; times; times--)
    for (uint32_t axis = 3; axis-- > 0;) {
      uint32_t step = l->grid[axis] == 1 ? 0 : thickest(gpu, l, axis, fixed, room, times);
      if (!step) continue;
      l->axis = axis;
      l->step = step;
      *windows = (l->grid[axis] + step - 1) / step;
      return true;
    }
  return false;
}

ff_result window_choose(ff_gpu *gpu, launch *l, uint64_t room, uint64_t *windows, char *reason, size_t length) {
  cuda_function function;
  char analysis[400] = "", why[160];
  uint32_t declared = 0, proved = 0;
  *windows = 0;
  for (uint32_t u = 0; u < l->use_count; u++) declared += l->uses[u].block_bytes != 0;
  if (declared < l->use_count) prove(gpu, l, analysis, sizeof analysis);
  for (uint32_t u = 0; u < l->use_count; u++) proved += l->uses[u].block_bytes != 0;
  if (!proved) return no_windows(reason, length, "no use is per block", analysis);
  uint64_t fixed = fixed_pieces(gpu, l);
  snprintf(why, sizeof why, "what every block uses takes %llu bytes", (unsigned long long)(fixed * gpu->piece));
  if (fixed > room) return no_windows(reason, length, why, analysis);
  if (!choose_slices(gpu, l, fixed, room, windows))
    return no_windows(reason, length, "one slice of its blocks needs more than the budget", analysis);
  ff_result result = kernel_function(gpu, l->kernel, 0, true, &function);
  if (result) {
    *windows = 0;
    no_windows(reason, length, ff_message(), "");
    return result; /* of the driver perhaps, which may do it the next time */
  }
  snprintf(reason, length, proved > declared ? "uses per block proved from the PTX" : "uses declared per block");
  return FF_SUCCESS;
}
