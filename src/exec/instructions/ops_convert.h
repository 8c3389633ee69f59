/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds that cvt needs beyond those of ops_lane.h: sources of which only the low bits count, and destinations in
 * registers wider than their type. */
#ifndef FF_EXEC_OPS_CONVERT_H
#define FF_EXEC_OPS_CONVERT_H

#include "exec/instructions/ops_math.h"

/* Sources: 8 and 16 bits in a 32-bit cell (the rest is ignored), 8 to 32 bits in a 64-bit cell. */
#define CELL_u8 uint32_t
#define LANE_u8 uint32_t
#define DEC_u8(x) ((x)&0xffu)
#define TYPE_u8 PTX_U8
#define CELL_s8 uint32_t
#define LANE_s8 int32_t
#define DEC_s8(x) OPS_SIGN8(x)
#define TYPE_s8 PTX_S8
#define CELL_m16 uint32_t
#define LANE_m16 uint32_t
#define DEC_m16(x) ((x)&0xffffu)
#define TYPE_m16 PTX_U16
#define CELL_w8u uint64_t
#define LANE_w8u uint32_t
#define DEC_w8u(x) ((uint32_t)(x)&0xffu)
#define TYPE_w8u PTX_U64
#define CELL_w8s uint64_t
#define LANE_w8s int32_t
#define DEC_w8s(x) OPS_SIGN8(x)
#define TYPE_w8s PTX_U64
#define CELL_w16u uint64_t
#define LANE_w16u uint32_t
#define DEC_w16u(x) ((uint32_t)(x)&0xffffu)
#define TYPE_w16u PTX_U64
#define CELL_w16s uint64_t
#define LANE_w16s int32_t
#define DEC_w16s(x) OPS_SIGN16(x)
#define TYPE_w16s PTX_U64
#define CELL_w32u uint64_t
#define LANE_w32u uint32_t
#define DEC_w32u(x) ((uint32_t)(x))
#define TYPE_w32u PTX_U64
#define CELL_w32s uint64_t
#define LANE_w32s int32_t
#define DEC_w32s(x) ((int32_t)(uint32_t)(x))
#define TYPE_w32s PTX_U64

/* Destinations, t<type>[_<register's bits>]: truncate, extend to the register, put into the cell. */
#define CELL_t8u uint32_t
#define ENC_t8u(x) ((uint32_t)(x)&0xffu)
#define TYPE_t8u PTX_U16
#define CELL_t8s_16 uint32_t
#define ENC_t8s_16(x) ((uint32_t)OPS_SIGN8(x) & 0xffffu)
#define TYPE_t8s_16 PTX_U16
#define CELL_t8s_32 uint32_t
#define ENC_t8s_32(x) ((uint32_t)OPS_SIGN8(x))
#define TYPE_t8s_32 PTX_U32
#define CELL_t16u uint32_t
#define ENC_t16u(x) ((uint32_t)(x)&0xffffu)
#define TYPE_t16u PTX_U16
#define CELL_t16s_32 uint32_t
#define ENC_t16s_32(x) ((uint32_t)OPS_SIGN16(x))
#define TYPE_t16s_32 PTX_U32
#define CELL_t32 uint32_t
#define ENC_t32(x) ((uint32_t)(x))
#define TYPE_t32 PTX_U32
#define CELL_t8u_64 uint64_t
#define ENC_t8u_64(x) ((uint64_t)((uint32_t)(x)&0xffu))
#define TYPE_t8u_64 PTX_U64
#define CELL_t8s_64 uint64_t
#define ENC_t8s_64(x) ((uint64_t)(int64_t)OPS_SIGN8(x))
#define TYPE_t8s_64 PTX_U64
#define CELL_t16u_64 uint64_t
#define ENC_t16u_64(x) ((uint64_t)((uint32_t)(x)&0xffffu))
#define TYPE_t16u_64 PTX_U64
#define CELL_t16s_64 uint64_t
#define ENC_t16s_64(x) ((uint64_t)(int64_t)OPS_SIGN16(x))
#define TYPE_t16s_64 PTX_U64
#define CELL_t32u_64 uint64_t
#define ENC_t32u_64(x) ((uint64_t)(uint32_t)(x))
#define TYPE_t32u_64 PTX_U64
#define CELL_t32s_64 uint64_t
#define ENC_t32s_64(x) ((uint64_t)(int64_t)(int32_t)(uint32_t)(x))
#define TYPE_t32s_64 PTX_U64
#define CELL_t64 uint64_t
#define ENC_t64(x) ((uint64_t)(x))
#define TYPE_t64 PTX_U64

#endif
