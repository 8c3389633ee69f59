/* SPDX-License-Identifier: Apache-2.0 */
/* What a launch needs, told from its uses alone: bytes of GPU memory at least and at most, whether a mapping is in its
 * way - and with that whether the library's answer to it may be. Pieces of small segments may be shared, so these count
 * as little at least. */
#include <stdlib.h>
#include <string.h>

#include "random_world.h"

static bool overlap(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

/* Does a mapping that is held forbid `access` to the range? */
bool world_is_busy(const world *in, uint32_t slot, uint64_t offset, uint64_t bytes, unsigned access) {
  for (uint32_t m = 0; m < MAPPINGS; m++) {
    const world_mapping *one = &in->mappings[m];
    if (one->held && one->slot == slot && overlap(offset, bytes, one->offset, one->bytes) &&
        ((one->access | access) & FF_WRITE))
      return true;
  }
  return false;
}

static void mark(unsigned char *units, uint64_t unit, uint64_t begin, uint64_t end) {
  for (uint64_t u = begin / unit; u <= (end - 1) / unit; u++) units[u] = 1;
}

/* Marks the units that block ranges of the use touch; is one of them in a mapping's way? */
static bool mark_blocks(const world *in, const launch_spec *spec, const launch_use *use, unsigned char *units,
                        uint64_t unit) {
  bool busy = false, whole = mix_is_whole(&use->shape);
  for (uint32_t z = 0; z < (whole ? 1 : spec->grid[2]); z++)
    for (uint32_t y = 0; y < (whole ? 1 : spec->grid[1]); y++)
      for (uint32_t x = 0; x < (whole ? 1 : spec->grid[0]); x++) {
        uint64_t begin, end;
        if (!mix_range(&use->shape, x, y, z, &begin, &end)) continue;
        mark(units, unit, use->offset + begin, use->offset + end);
        busy |= world_is_busy(in, use->slot, use->offset + begin, end - begin, use->shape.access);
      }
  return busy;
}

/* What it needs at least (every unit that a block touches must be there) and at most (whole uses, in whole pieces). */
need world_needed(const world *in, const launch_spec *spec) {
  need sum = {0};
  uint64_t unit = in->program->granularity, piece = in->program->piece;
  bool any_small = false;
  for (uint32_t s = 0; s < SLOTS; s++) {
    uint64_t units = (in->segments[s].bytes + unit - 1) / unit + 1;
    unsigned char *least = NULL, *most = NULL;
    for (uint32_t u = 0; u < spec->count; u++) {
      const launch_use *use = &spec->uses[u];
      if (use->slot != s) continue;
      if (!least) {
        least = ff_alloc(units);
        most = ff_alloc(units);
      }
      sum.busy |= mark_blocks(in, spec, use, least, unit);
      sum.may_be_busy |= world_is_busy(in, s, use->offset, use->shape.bytes, use->shape.access);
      sum.refused |= (use->shape.access & FF_WRITE) && in->segments[s].file && !in->segments[s].writable;
      mark(most, piece, use->offset, use->offset + use->shape.bytes);
    }
    bool small = in->segments[s].bytes <= piece / 2; /* may share a piece with others */
    any_small |= small && least;
    for (uint64_t i = 0; least && i < units; i++) {
      if (!small) sum.least += least[i] * unit;
      sum.most += most[i] * piece;
    }
    free(least);
    free(most);
  }
  if (any_small && sum.least < unit) sum.least = unit;
  return sum;
}

/* The smallest range of the use that holds what blocks [at, at + 1) of the axis touch, marked in pieces: clipped as a
 * whole, so blocks that lie outside of the use count too, as in the library. */
static void mark_slice(const launch_spec *spec, const launch_use *use, int axis, uint32_t at, unsigned char *pieces,
                       uint64_t piece) {
  int64_t low = 0, high = (int64_t)use->shape.block_bytes, end = (int64_t)use->shape.bytes;
  for (int i = 0; i < 3; i++) {
    int64_t first = use->shape.per_block[i] * (i == axis ? at : 0),
            last = use->shape.per_block[i] * (i == axis ? at : spec->grid[i] - 1);
    low += first < last ? first : last;
    high += first < last ? last : first;
  }
  if (low < 0 || mix_is_whole(&use->shape)) low = 0;
  if (high > end || mix_is_whole(&use->shape)) high = end;
  if (low < high) mark(pieces, piece, use->offset + (uint64_t)low, use->offset + (uint64_t)high);
}

/* What a window of one block's thickness needs at most, along the axis where that is least; UINT64_MAX: there are no
 * windows. */
static uint64_t slice_bytes(const world *in, const launch_spec *spec) {
  uint64_t piece = in->program->piece, best = UINT64_MAX;
  for (int axis = 0; axis < 3 && spec->clean; axis++) {
    uint64_t worst = 0;
    for (uint32_t at = 0; at < spec->grid[axis] && spec->grid[axis] > 1; at++) {
      uint64_t sum = 0;
      for (uint32_t s = 0; s < SLOTS; s++) {
        uint64_t count = (in->segments[s].bytes + piece - 1) / piece + 1;
        unsigned char *pieces = ff_alloc(count);
        for (uint32_t u = 0; u < spec->count; u++)
          if (spec->uses[u].slot == s) mark_slice(spec, &spec->uses[u], axis, at, pieces, piece);
        for (uint64_t i = 0; i < count; i++) sum += pieces[i] * piece;
        free(pieces);
      }
      if (sum > worst) worst = sum;
    }
    if (worst && worst < best) best = worst;
  }
  return best;
}

/* Bytes that pinned segments other than the launch's take at most. */
uint64_t world_pinned_bytes(const world *in, const launch_spec *spec) {
  uint64_t sum = 0, piece = in->program->piece;
  for (uint32_t s = 0; s < SLOTS; s++)
    for (uint32_t d = 0; d < in->program->devices && in->segments[s].handle; d++)
      if (in->segments[s].pinned[d]) {
        sum += (in->segments[s].bytes + piece - 1) / piece * piece;
        break;
      }
  return sum;
}

void world_judge(world *in, const launch_spec *spec, ff_result result, bool plan) {
  program *program = in->program;
  need need = world_needed(in, spec);
  bool fits = need.most + world_pinned_bytes(in, spec) <= program->budget,
       cannot = need.least > program->budget && !spec->clean;
  if (result == FF_ERROR_TOO_LARGE && !fits && spec->clean) {
    uint64_t slice = slice_bytes(in, spec), room = program->budget - world_pinned_bytes(in, spec);
    if (program->budget >= world_pinned_bytes(in, spec) && slice <= room)
      program_wrong(program, "a launch that has windows of %llu bytes was refused: %s", (unsigned long long)slice,
                    ff_message());
  }
  /* how much would have been enough */
  const char *sum = result == FF_ERROR_TOO_LARGE ? strstr(ff_message(), "needs ") : NULL;
  if (result == FF_ERROR_TOO_LARGE && (!sum || strtoull(sum + 6, NULL, 10) < need.least))
    program_wrong(program, "the sum is not in: %s", ff_message());
  if (result == FF_ERROR_TOO_LARGE && !fits) return;
  if (result == FF_ERROR_BUSY && need.may_be_busy) return;
  if (result && need.refused) return;
  if (!program_allows(program, result, plan ? "ff_launch_plan" : "ff_launch")) return;
  if (plan) return;
  if (need.refused) program_wrong(program, "a launch that writes a segment whose file is only read was taken");
  else if (need.busy) program_wrong(program, "a launch on what is mapped was taken");
  else if (cannot)
    program_wrong(program, "a launch that needs %llu bytes was taken, the budget is %llu",
                  (unsigned long long)need.least, (unsigned long long)program->budget);
}
