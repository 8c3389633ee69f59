/* SPDX-License-Identifier: Apache-2.0 */
/* suld, sust, sured for a whole warp (PTX ISA, "Surface Instructions").
 *
 * The x of an unformatted access counts bytes, that of a formatted one texels. What lies outside is a fault (.trap),
 * the nearest place inside (.clamp), or nothing (.zero); the layer is a coordinate like the others. Only arrays have
 * surfaces, so every access is inside memory that the launch need not declare. */
#include <inttypes.h>
#include <string.h>

#include "exec/launch/checker.h"
#include "exec/launch/fault.h"
#include "exec/texture/texture_access.h"

#define MAX_BYTES 32u /* of one lane */

/* host NULL: nothing happens */
typedef struct lane_place {
  unsigned char *host;
  uint32_t bytes;
  bool formatted_texel;
  const exec_texture *surface;
} lane_place;

/* A coordinate in [0, count), or outside. */
static bool bring_inside(int64_t *value, int64_t count, uint8_t bounds) {
  if (*value >= 0 && *value < count) return true;
  if (bounds == EXEC_BOUNDS_CLAMP) *value = *value < 0 ? 0 : count - 1;
  return bounds == EXEC_BOUNDS_CLAMP;
}

static lane_place locate(core_warp *w, const exec_instr *i, uint32_t lane) {
  const exec_texture_access *a = i->side;
  uint64_t handle = exec_u64(&w->x, a->handle)[lane];
  const exec_texture *s = core_texture_object(w, i, lane, handle, true);
  const exec_image *image = &s->level[0];
  bool texel = a->formatted && a->access.op == EXEC_OP_STORE;
  uint32_t bytes = texel ? exec_texel_bytes(s) : (uint32_t)a->access.bytes * a->access.elements,
           unit = a->formatted ? bytes : 1;
  int64_t at[3] = {0}, first = (int32_t)exec_u32(&w->x, a->coordinate[0])[lane], layer = 0;
  for (uint32_t d = 1; d < a->dimensions; d++) at[d] = (int32_t)exec_u32(&w->x, a->coordinate[d])[lane];
  if (a->layered) layer = exec_u32(&w->x, a->layer)[lane];
  at[0] = first * unit;
  if (at[0] % bytes)
    core_fault(w, i, lane, EXEC_FAULT_MISALIGNED, handle,
               "misaligned surface access of %u bytes at byte %" PRId64 " of a row: it must be a multiple of %u", bytes,
               at[0], bytes);
  int64_t row = (int64_t)image->width * exec_texel_bytes(s), places = row / bytes, place = at[0] / bytes;
  uint32_t bounds = a->bounds;
  bool inside = places > 0 && bring_inside(&place, places, a->bounds);
  inside &= bring_inside(&at[1], a->dimensions > 1 ? image->height : 1, a->bounds);
  inside &= bring_inside(&at[2], a->dimensions > 2 ? image->depth : 1, a->bounds);
  inside &= bring_inside(&layer, a->layered ? image->depth : 1, a->bounds);
  if (!inside && bounds == EXEC_BOUNDS_TRAP)
    core_fault(w, i, lane, EXEC_FAULT_TRAP, handle,
               "surface access of %u bytes outside of surface object 0x%" PRIx64 ": at byte %" PRId64 ", %" PRId64
               ", %" PRId64 ", layer %" PRId64 "\n  it has rows of %" PRId64 " bytes, %u rows, %s %u",
               bytes, handle, at[0], at[1], at[2], layer, row, image->height,
               s->layered || s->cube ? "layers" : "depth", image->depth);
  if (!inside) return (lane_place){.surface = s, .bytes = bytes};
  uint64_t address = image->address + (uint64_t)(at[2] + layer) * image->slice + (uint64_t)at[1] * image->pitch +
                     (uint64_t)place * bytes;
  return (lane_place){
      .host = (unsigned char *)(uintptr_t)address, .bytes = bytes, .formatted_texel = texel, .surface = s};
}

/* ---- registers ---- */

static void read_registers(const core_warp *w, const exec_access *a, uint32_t lane, unsigned char *data) {
  for (uint32_t e = 0; e < a->elements; e++) {
    uint64_t value = a->slot_bytes == 8 ? exec_u64(&w->x, a->data[e])[lane] : exec_u32(&w->x, a->data[e])[lane];
    memcpy(data + e * a->bytes, &value, a->bytes);
  }
}

static void write_registers(core_warp *w, const exec_access *a, uint32_t lane, const unsigned char *data) {
  for (uint32_t e = 0; e < a->elements; e++) {
    uint64_t value = 0;
    memcpy(&value, data + e * a->bytes, a->bytes);
    if (a->slot_bytes == 8) exec_u64(&w->x, a->data[e])[lane] = value;
    else exec_u32(&w->x, a->data[e])[lane] = (uint32_t)value;
  }
}

/* ---- moving ---- */

static void store_lane(const core_warp *w, const exec_texture_access *a, uint32_t lane, const lane_place *at) {
  unsigned char data[MAX_BYTES] = {0}, texel[16];
  if (!at->host) return;
  read_registers(w, &a->access, lane, data);
  if (!at->formatted_texel) {
    memcpy(at->host, data, at->bytes);
    return;
  }
  uint32_t bits[4];
  memcpy(bits, data, sizeof bits);
  texture_pack(at->surface, bits, texel);
  memcpy(at->host, texel, at->bytes);
}

/* The type of a reduction: sured.p takes it from the surface. */
static ptx_type reduced_type(const exec_texture_access *a, const exec_texture *s) {
  if (!a->formatted || a->reduction == PTX_MOD_AND || a->reduction == PTX_MOD_OR) return a->wanted;
  bool is_signed = s->type == EXEC_TEXEL_S8 || s->type == EXEC_TEXEL_S16 || s->type == EXEC_TEXEL_S32;
  if (a->access.bytes == 8) return is_signed ? PTX_S64 : PTX_U64;
  return is_signed ? PTX_S32 : PTX_U32;
}

static void reduce(core_warp *w, const exec_instr *i, const lane_place *places) {
  const exec_texture_access *a = i->side;
  for (uint32_t m = w->active; m; m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m);
    void *address[EXEC_LANES] = {0};
    if (!places[lane].host) continue;
    exec_atomic_function function = exec_atomic_find(a->reduction, reduced_type(a, places[lane].surface), true);
    if (!function) core_fault(w, i, lane, EXEC_FAULT_UNSUPPORTED, 0, "this reduction on the surface's format");
    address[lane] = places[lane].host;
    core_atomic(w, i, function, address, 1u << lane, false);
  }
}

/* ---- the access stream ---- */

static void trace_surface(core_warp *w, const exec_instr *i, const lane_place *places) {
  const exec_texture_access *a = i->side;
  uint64_t address[EXEC_LANES] = {0};
  uint32_t mask = 0, bytes = MAX_BYTES;
  for (uint32_t m = w->active; m; m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m);
    if (!places[lane].host) continue;
    address[lane] = (uint64_t)(uintptr_t)places[lane].host;
    bytes = places[lane].bytes < bytes ? places[lane].bytes : bytes;
    mask |= 1u << lane;
  }
  exec_access access = a->access;
  exec_instr as_access = *i;
  as_access.side = &access;
  access.log2_total = (uint8_t)__builtin_ctz(bytes);
  if (mask) core_trace_gather(w, &as_access, address, 0, bytes, mask);
}

/* A checker may hold lanes back: as if they were outside. */
static void check_surface(core_warp *w, const exec_instr *i, lane_place *places) {
  exec_checker *checker = w->launch->checker;
  const exec_texture_access *a = i->side;
  exec_reach at[EXEC_LANES];
  uint32_t lanes = 0, bytes = 1;
  for (uint32_t m = w->active; m; m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m);
    if (!places[lane].host) continue;
    uint64_t address = (uint64_t)(uintptr_t)places[lane].host;
    at[lane] = (exec_reach){.address = address,
                            .host = places[lane].host,
                            .span = exec_memory_span(w->launch->memory, address),
                            .space = PTX_SPACE_GLOBAL};
    bytes = places[lane].bytes;
    lanes |= 1u << lane;
  }
  if (!lanes) return;
  uint32_t kept = checker->access(
      checker, &(exec_watched){.warp = w, .instr = i, .access = &a->access, .lanes = lanes, .bytes = bytes, .at = at});
  for (uint32_t m = lanes & ~kept; m; m &= m - 1) places[__builtin_ctz(m)].host = NULL;
}

void core_surface(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  const exec_texture_access *a = i->side;
  lane_place places[EXEC_LANES];
  unsigned char data[EXEC_LANES][MAX_BYTES];
  for (uint32_t m = w->active; m; m &= m - 1) places[__builtin_ctz(m)] = locate(w, i, (uint32_t)__builtin_ctz(m));
  if (w->launch->checker) check_surface(w, i, places);
  if (core_tells_places(w)) trace_surface(w, i, places);
  w->accesses++;
  if (a->access.op == EXEC_OP_ATOMIC) {
    reduce(w, i, places);
    return;
  }
  for (uint32_t m = w->active; m; m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m);
    if (a->access.op == EXEC_OP_STORE) {
      store_lane(w, a, lane, &places[lane]);
      continue;
    }
    memset(data[lane], 0, sizeof data[lane]);
    if (places[lane].host) memcpy(data[lane], places[lane].host, places[lane].bytes);
  }
  if (a->access.op != EXEC_OP_LOAD) return;
  for (uint32_t m = w->active; m; m &= m - 1)
    write_registers(w, &a->access, (uint32_t)__builtin_ctz(m), data[__builtin_ctz(m)]);
}
