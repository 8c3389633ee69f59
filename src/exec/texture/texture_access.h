/* SPDX-License-Identifier: Apache-2.0 */
/* Side data of tex, tld4, txq, istypep, suld, sust, sured, suq, and their handlers (texture.c, surface.c). Operand
 * offsets are EXEC_NO_OFFSET where the instruction has no such operand. */
#ifndef FF_EXEC_TEXTURE_ACCESS_H
#define FF_EXEC_TEXTURE_ACCESS_H

#include "exec/memory/access.h"
#include "exec/texture/texture_sample.h"

typedef enum exec_bounds { EXEC_BOUNDS_TRAP, EXEC_BOUNDS_CLAMP, EXEC_BOUNDS_ZERO } exec_bounds;
typedef enum exec_results { EXEC_RESULT_WORDS, EXEC_RESULT_F16, EXEC_RESULT_F16X2 } exec_results;

typedef struct exec_texture_access {
  exec_access access; /* first, for messages and the access stream; data[]: results, or what is stored */
  uint8_t dimensions; /* of one layer */
  bool layered, cube;
  bool integer;                       /* tex: integer coordinates */
  bool gather;                        /* tld4, of `component` */
  bool level, gradient;               /* tex.level, tex.grad */
  bool formatted;                     /* sust.p, sured.p: x counts texels */
  uint8_t component, results, bounds; /* exec_results, exec_bounds */
  uint16_t query;                     /* txq, suq: ptx_mod */
  ptx_type wanted;                    /* istypep */
  ptx_mod reduction;                  /* sured */
  uint32_t handle;                    /* 64 bits */
  uint32_t layer, coordinate[3], offset[3], lod, dx[3], dy[3], value;
  uint32_t resident; /* predicate result */
} exec_texture_access;

void core_texture(exec_warp *x, const exec_instr *i);       /* tex, tld4 */
void core_texture_query(exec_warp *x, const exec_instr *i); /* txq, suq, istypep */
void core_surface(exec_warp *x, const exec_instr *i);       /* suld, sust, sured */

/* The texture or surface object that the lane's handle names, with its memory there; a fault otherwise. */
const exec_texture *core_texture_object(core_warp *w, const exec_instr *i, uint32_t lane, uint64_t handle,
                                        bool surface);

/* texture_warp.c: the lanes of `mask` have this texture. False: not one of the usual fetches, nothing was done. */
bool texture_fetch_warp(const exec_warp *x, const exec_texture_access *a, const exec_texture *t, uint32_t mask,
                        texture_value *out);

#endif
