/* SPDX-License-Identifier: Apache-2.0 */
/* tex, tld4, txq, istypep, suq for a whole warp (PTX ISA, "Texture Instructions").
 *
 * Lanes may have different handles: they go group by group. In the access stream a fetch is a load of the lines that
 * its texels lie in: first every lane's first texel, then, in further spans, texels in sectors that the instruction
 * has not touched yet. All sources are read before the first result is written, because they may share slots. */
#include <inttypes.h>
#include <string.h>

#include "exec/launch/checker.h"
#include "exec/launch/fault.h"
#include "exec/instructions/ops_half.h"
#include "exec/texture/texture_access.h"
#include "trace/coalesce.h"

/* ---- objects ---- */

/* Is all of the texture's memory there? Mappings side by side count as one. */
static bool is_there(const core_warp *w, const exec_texture *t) {
  for (uint64_t at = t->address, left = t->bytes; left;) {
    const exec_span *span = exec_memory_span(w->launch->memory, at);
    uint64_t offset = span ? at - span->info.address : 0;
    if (!span || offset >= span->readable || (t->allocation && span->info.id != t->allocation)) return false;
    uint64_t piece = span->readable - offset;
    if (piece >= left) return true;
    at += piece;
    left -= piece;
  }
  return true;
}

static const char *kind_text(bool surface) { return surface ? "surface" : "texture"; }

const exec_texture *core_texture_object(core_warp *w, const exec_instr *i, uint32_t lane, uint64_t handle,
                                        bool surface) {
  const exec_texture *t = exec_texture_find(w->launch->memory, handle);
  if (!t && exec_texture_is_cell(w->launch->memory, handle))
    core_fault(w, i, lane, EXEC_FAULT_ILLEGAL_ADDRESS, handle, "nothing is bound to this %s reference, or no %s object",
               kind_text(surface), kind_text(surface));
  if (!t)
    core_fault(w, i, lane, EXEC_FAULT_ILLEGAL_ADDRESS, handle,
               "0x%" PRIx64 " is no %s object, or one that was destroyed", handle, kind_text(surface));
  if (t->surface != surface)
    core_fault(w, i, lane, EXEC_FAULT_ILLEGAL_ADDRESS, handle, "0x%" PRIx64 " is a %s object, not a %s object", handle,
               kind_text(t->surface), kind_text(surface));
  if (!is_there(w, t)) {
    const exec_allocation *was = exec_memory_find(w->launch->memory, t->address);
    bool same = was && (!t->allocation || was->id == t->allocation);
    core_fault(w, i, lane, EXEC_FAULT_ILLEGAL_ADDRESS, t->address,
               "%s object 0x%" PRIx64 ": its memory, %s at 0x%" PRIx64 ", is not there any more", kind_text(surface),
               handle, same ? was->name : "an allocation", t->address);
  }
  return t;
}

/* The next group of lanes with one handle, taken out of *left. */
static uint32_t take_group(const uint64_t *handle, uint32_t *left, uint64_t *common) {
  uint32_t group = 0;
  *common = handle[__builtin_ctz(*left)];
  for (uint32_t m = *left; m; m &= m - 1)
    if (handle[__builtin_ctz(m)] == *common) group |= m & -m;
  *left &= ~group;
  return group;
}

/* ---- coordinates ---- */

static uint32_t word_at(const core_warp *w, uint32_t operand, uint32_t lane) { return exec_u32(&w->x, operand)[lane]; }
static float real_at(const core_warp *w, uint32_t operand, uint32_t lane) {
  return ops_f32_of(word_at(w, operand, lane));
}

static texture_at place_of(const core_warp *w, const exec_texture_access *a, const exec_texture *t, uint32_t lane) {
  texture_at at = {.integer = a->integer, .mipmap = a->level || a->gradient};
  float *real[3] = {&at.x, &at.y, &at.z};
  uint32_t count = a->cube ? 3 : a->dimensions;
  if (a->layered) at.layer = word_at(w, a->layer, lane);
  for (uint32_t d = 0; d < count; d++) {
    if (a->integer) at.index[d] = (int32_t)word_at(w, a->coordinate[d], lane);
    else *real[d] = real_at(w, a->coordinate[d], lane);
    if (a->offset[d] != EXEC_NO_OFFSET) at.offset[d] = (int32_t)word_at(w, a->offset[d], lane);
  }
  if (a->level) at.lod = a->integer ? (float)(int32_t)word_at(w, a->lod, lane) : real_at(w, a->lod, lane);
  if (!a->gradient) return at;
  float dx[3] = {0}, dy[3] = {0};
  for (uint32_t d = 0; d < count; d++) dx[d] = real_at(w, a->dx[d], lane), dy[d] = real_at(w, a->dy[d], lane);
  at.lod = texture_lod(t, &at, dx, dy);
  return at;
}

/* ---- the access stream ---- */

typedef struct touched_sectors {
  uint64_t sector[EXEC_LANES * TEXTURE_TEXELS];
  uint32_t count;
} touched_sectors;

static bool is_new(touched_sectors *seen, uint64_t sector) {
  for (uint32_t n = seen->count; n-- > 0;)
    if (seen->sector[n] == sector) return false;
  seen->sector[seen->count++] = sector;
  return true;
}

static void trace_reads(core_warp *w, const exec_instr *i, const texture_reads *reads, uint32_t group, uint32_t bytes) {
  uint64_t address[EXEC_LANES] = {0};
  touched_sectors seen;
  seen.count = 0;
  for (uint32_t n = 0; n < TEXTURE_TEXELS; n++) {
    uint32_t mask = 0, any = 0;
    for (uint32_t m = group; m; m &= m - 1) {
      uint32_t lane = (uint32_t)__builtin_ctz(m);
      if (n >= reads[lane].count) continue;
      any = 1;
      address[lane] = reads[lane].address[n];
      if (is_new(&seen, address[lane] / TRACE_SECTOR_BYTES) || !n) mask |= 1u << lane;
    }
    if (mask) core_trace_gather(w, i, address, 0, bytes, mask);
    if (!any) break;
  }
}

/* A checker sees one load per texel of a lane. All of a texture's memory is there, so nothing is held back. */
static void check_reads(core_warp *w, const exec_instr *i, const texture_reads *reads, uint32_t group, uint32_t bytes) {
  exec_checker *checker = w->launch->checker;
  exec_reach at[EXEC_LANES];
  for (uint32_t n = 0; n < TEXTURE_TEXELS; n++) {
    uint32_t lanes = 0;
    for (uint32_t m = group; m; m &= m - 1) {
      uint32_t lane = (uint32_t)__builtin_ctz(m);
      if (n >= reads[lane].count) continue;
      uint64_t address = reads[lane].address[n];
      at[lane] = (exec_reach){.address = address,
                              .host = (unsigned char *)(uintptr_t)address,
                              .span = exec_memory_span(w->launch->memory, address),
                              .space = PTX_SPACE_GLOBAL};
      lanes |= 1u << lane;
    }
    if (!lanes) break;
    checker->access(
        checker, &(exec_watched){.warp = w, .instr = i, .access = i->side, .lanes = lanes, .bytes = bytes, .at = at});
  }
}

/* The group's reads, for a checker, declared uses and the access stream. */
static void watch_reads(core_warp *w, const exec_instr *i, const exec_texture *t, const texture_reads *reads,
                        uint32_t group) {
  exec_access access = ((const exec_texture_access *)i->side)->access;
  exec_instr as_load = *i;
  uint32_t bytes = exec_texel_bytes(t);
  as_load.side = &access;
  as_load.immediate = 0;
  access.bytes = (uint8_t)bytes;
  access.log2_total = (uint8_t)__builtin_ctz(bytes);
  if (w->block->ranges && t->resource != EXEC_RESOURCE_ARRAY)
    for (uint32_t m = group; m; m &= m - 1)
      for (uint32_t n = 0; n < reads[__builtin_ctz(m)].count; n++)
        core_declared_check_lane(w, &as_load, (uint32_t)__builtin_ctz(m), reads[__builtin_ctz(m)].address[n], bytes);
  if (w->launch->checker) check_reads(w, &as_load, reads, group, bytes);
  if (core_tells_places(w)) trace_reads(w, &as_load, reads, group, bytes);
}

/* ---- tex, tld4 ---- */

static void convert_results(const exec_texture_access *a, const exec_texture *t, texture_value *value) {
  if (a->results == EXEC_RESULT_WORDS) return;
  for (uint32_t c = 0; c < 4; c++)
    value->bits[c] = texture_gives_floats(t) ? ops_f16_rn(value->real[c]) : value->bits[c] & 0xffff;
  if (a->results == EXEC_RESULT_F16) return;
  value->bits[0] |= value->bits[1] << 16;
  value->bits[1] = value->bits[2] | value->bits[3] << 16;
}

static void fetch_group(core_warp *w, const exec_instr *i, uint64_t handle, uint32_t group, texture_value *values) {
  const exec_texture_access *a = i->side;
  texture_reads reads[EXEC_LANES];
  uint32_t first = (uint32_t)__builtin_ctz(group);
  bool watched = w->watched || w->launch->checker;
  const exec_texture *t = core_texture_object(w, i, first, handle, false);
  exec_texture flat;
  if (a->cube && !t->cube)
    core_fault(w, i, first, EXEC_FAULT_ILLEGAL_ADDRESS, handle, "texture object 0x%" PRIx64 " is no cubemap", handle);
  if (!a->cube && t->cube) { /* its faces as layers */
    flat = *t;
    flat.cube = false;
    flat.layered = true;
    t = &flat;
  }
  if (!watched && texture_fetch_warp(&w->x, a, t, group, values)) {
    for (uint32_t m = a->results == EXEC_RESULT_WORDS ? 0 : group; m; m &= m - 1)
      convert_results(a, t, &values[__builtin_ctz(m)]);
    return;
  }
  for (uint32_t m = group; m; m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m);
    texture_at at = place_of(w, a, t, lane);
    if (a->gather) texture_gather(t, &at, a->component, &values[lane], &reads[lane]);
    else texture_fetch(t, &at, &values[lane], &reads[lane]);
    convert_results(a, t, &values[lane]);
  }
  if (watched) watch_reads(w, i, t, reads, group);
}

void core_texture(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  const exec_texture_access *a = i->side;
  texture_value values[EXEC_LANES];
  uint32_t left = w->active;
  const uint64_t *handle = exec_u64(x, a->handle);
  while (left) {
    uint64_t common;
    uint32_t group = take_group(handle, &left, &common);
    fetch_group(w, i, common, group, values);
  }
  for (uint32_t e = 0; e < a->access.elements; e++) {
    uint32_t *to = exec_u32(x, a->access.data[e]);
    for (uint32_t m = w->active; m; m &= m - 1) to[__builtin_ctz(m)] = values[__builtin_ctz(m)].bits[e];
  }
  if (a->resident != EXEC_NO_OFFSET) *exec_pred(x, a->resident) |= w->active;
  w->accesses++;
}

/* ---- txq, suq, istypep ---- */

/* OpenCL's numbers, as PTX has them ("Channel Data Type and Channel Order Fields"). */
static uint32_t data_type_number(const exec_texture *t) {
  static const uint32_t numbers[] = {
#define X(name, bytes, integer, is_signed, number) number,
      EXEC_TEXEL_TYPES(X)
#undef X
  };
  static const uint32_t normalized[EXEC_TEXEL_COUNT] = {
      [EXEC_TEXEL_U8] = 0x10D2, [EXEC_TEXEL_U16] = 0x10D3, [EXEC_TEXEL_S8] = 0x10D0, [EXEC_TEXEL_S16] = 0x10D1};
  return t->sampler.as_float && normalized[t->type] ? normalized[t->type] : numbers[t->type];
}

static uint32_t address_mode_number(const exec_texture *t, uint32_t dimension) {
  static const uint32_t numbers[] = {
      [EXEC_ADDRESS_WRAP] = 0, [EXEC_ADDRESS_MIRROR] = 1, [EXEC_ADDRESS_CLAMP] = 3, [EXEC_ADDRESS_BORDER] = 4};
  return numbers[t->sampler.mode[dimension]];
}

static uint32_t answer(const exec_texture *t, ptx_mod query, uint32_t level) {
  const exec_image *image = &t->level[level < t->level_count ? level : t->level_count - 1];
  switch (query) {
  case PTX_MOD_WIDTH: return image->width;
  case PTX_MOD_HEIGHT: return t->dimensions < 2 ? 0 : image->height;
  case PTX_MOD_DEPTH: return t->dimensions < 3 ? 0 : image->depth;
  case PTX_MOD_ARRAY_SIZE: return !t->layered ? 0 : t->cube ? image->depth / 6 : image->depth;
  case PTX_MOD_NUM_MIPMAP_LEVELS: return t->mipmapped ? t->level_count : 0;
  case PTX_MOD_CHANNEL_DATA_TYPE: return data_type_number(t);
  case PTX_MOD_CHANNEL_ORDER: return t->channels == 1 ? 0x10B0 : t->channels == 2 ? 0x10B2 : 0x10B5;
  case PTX_MOD_NORMALIZED_COORDS: return t->sampler.normalized;
  case PTX_MOD_FILTER_MODE: return t->sampler.linear;
  case PTX_MOD_ADDR_MODE_0: return address_mode_number(t, 0);
  case PTX_MOD_ADDR_MODE_1: return address_mode_number(t, 1);
  case PTX_MOD_ADDR_MODE_2: return address_mode_number(t, 2);
  case PTX_MOD_MEMORY_LAYOUT: return t->resource != EXEC_RESOURCE_ARRAY;
  default: return 0; /* .num_samples, .force_unnormalized_coords */
  }
}

/* istypep: of an opaque variable's address, or of the handle itself. */
static uint32_t is_type(const core_warp *w, uint64_t handle, ptx_type wanted) {
  const exec_texture *t = exec_texture_find(w->launch->memory, handle);
  return t && wanted != PTX_SAMPLERREF && t->surface == (wanted == PTX_SURFREF);
}

void core_texture_query(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  const exec_texture_access *a = i->side;
  uint32_t result[EXEC_LANES], set = 0;
  for (uint32_t m = w->active; m; m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m);
    uint64_t handle = exec_u64(x, a->handle)[lane];
    if (a->wanted != PTX_TYPE_NONE) set |= is_type(w, handle, a->wanted) << lane;
    else
      result[lane] = answer(core_texture_object(w, i, lane, handle, a->formatted), (ptx_mod)a->query,
                            a->level ? word_at(w, a->lod, lane) : 0);
  }
  if (a->wanted != PTX_TYPE_NONE) {
    uint32_t *predicate = exec_pred(x, i->dst);
    *predicate = (*predicate & ~w->active) | set;
    return;
  }
  for (uint32_t m = w->active; m; m &= m - 1) exec_u32(x, i->dst)[__builtin_ctz(m)] = result[__builtin_ctz(m)];
}
