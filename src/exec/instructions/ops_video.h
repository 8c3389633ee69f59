/* SPDX-License-Identifier: Apache-2.0 */
/* What aux holds for the video instructions (PTX ISA, "Video Instructions"): types, modifiers and operand selectors.
 * ops_choose.c writes it, ops_video.isa.c reads it once per warp instruction. */
#ifndef FF_EXEC_OPS_VIDEO_H
#define FF_EXEC_OPS_VIDEO_H

#include <stdint.h>

/* Scalar forms. A selector is 0: the whole word, 1-4: b0-b3, 5-6: h0, h1. */
#define VIDEO_SELECT_A(aux) ((aux)&7u)
#define VIDEO_SELECT_B(aux) ((aux) >> 3 & 7u)
#define VIDEO_SELECT_D(aux) ((aux) >> 6 & 7u)
#define VIDEO_SIGNED_D (1u << 9)
#define VIDEO_SIGNED_A (1u << 10)
#define VIDEO_SIGNED_B (1u << 11)
#define VIDEO_SAT (1u << 12)
#define VIDEO_WRAP (1u << 13)
#define VIDEO_HAS_C (1u << 14)
#define VIDEO_NEGATED_PRODUCT (1u << 15)
#define VIDEO_NEGATED_C (1u << 16)
#define VIDEO_PLUS_ONE (1u << 17)
#define VIDEO_SCALE(aux) ((aux) >> 18 & 15u)  /* right shift: 0, 7, 15 */
#define VIDEO_SECOND(aux) ((aux) >> 22 & 3u)  /* 0 none, 1 add, 2 min, 3 max */
#define VIDEO_COMPARE(aux) ((aux) >> 24 & 7u) /* 0-5: eq ne lt le gt ge */

/* Packed forms: three bits for each element's place among the elements of b:a, the mask of elements written, the two
 * types' signs, and what becomes of the results. */
#define VIDEO_PLACES_A(aux) ((aux)&0xfffu)
#define VIDEO_PLACES_B(aux) ((aux) >> 12 & 0xfffu)
#define VIDEO_PACKED_MASK(aux) ((aux) >> 24 & 15u)
#define VIDEO_PACKED_SIGNED_A (1u << 28)
#define VIDEO_PACKED_SIGNED_B (1u << 29)
#define VIDEO_PACKED_MODE(aux) ((aux) >> 30)
enum { VIDEO_MERGE, VIDEO_ACCUMULATE, VIDEO_MERGE_SAT_U, VIDEO_MERGE_SAT_S };

#endif
