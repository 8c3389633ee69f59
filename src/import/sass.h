/* SPDX-License-Identifier: Apache-2.0 */
/* One instruction line of an Accel-Sim trace (NVIDIA's machine code, SASS), and what it means for memory and units.
 *
 *   [x y z warp] [line] PC mask destinations [Rn ...] opcode sources [Rn ...] width [mode addresses] [immediate [...]]
 *
 * Hexadecimal: PC, mask, addresses (with or without 0x). Modes: 0 an address per active lane; 1 the first one's and a
 * stride, for active lanes without a gap; 2 the first one's, then for each further active lane the distance from the
 * one before. */
#ifndef FF_IMPORT_SASS_H
#define FF_IMPORT_SASS_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/coalesce.h"

enum { SASS_REGISTERS_MAX = 16, SASS_ZERO = 255 }; /* RZ reads as zero and forgets what is written */

typedef enum sass_kind {
  SASS_OTHER,
  SASS_LOAD,
  SASS_STORE,
  SASS_ATOMIC,     /* global memory, or by a generic address */
  SASS_ASYNC_LOAD, /* LDGSTS: from global to shared memory, into no register */
  SASS_GROUP,
  SASS_WAIT_GROUPS, /* LDGDEPBAR: a group of them ends; DEPBAR: at most so many groups may be left */
  SASS_SHARED,
  SASS_SHARED_ATOMIC, /* ATOMS: lanes of one word take turns */
  SASS_LOCAL,
  SASS_BARRIER,
  SASS_BULK, /* the tensor memory accelerator's copies: not imported */
} sass_kind;

typedef struct sass_instr {
  sass_kind kind;
  uint32_t pc, mask;
  uint32_t destinations, sources;
  uint8_t destination[SASS_REGISTERS_MAX], source[SASS_REGISTERS_MAX];
  uint32_t bytes; /* of a lane's access; 0: no memory access */
  uint32_t flags; /* TRACE_BYPASS_L1 ... of an access */
  bool sfu, fp64, arrive_only;
  bool has_address;
  uint64_t address[TRACE_LANES]; /* of the lanes in the mask */
  uint64_t immediate;            /* 0: none was there */
} sass_instr;

/* By the trace's header: what stands in front of an instruction (block and warp; a source line), and whether values may
 * stand behind it. */
typedef struct sass_format {
  bool places, lines, values;
} sass_format;

/* NULL: read; else what is wrong with it. */
const char *sass_parse(const char *line, const sass_format *format, sass_instr *instr);

#endif
