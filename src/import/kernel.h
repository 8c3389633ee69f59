/* SPDX-License-Identifier: Apache-2.0 */
/* One kernel's file of an Accel-Sim trace: its header, then thread blocks, each turned into records (trace/stream.h).
 *
 * One thread block is in memory at a time; a block that is handed out has every warp, in order, each
 * ended by EXIT. */
#ifndef FF_IMPORT_KERNEL_H
#define FF_IMPORT_KERNEL_H

#include "base/memory.h"
#include "import/lines.h"
#include "import/sass.h"

typedef struct kernel_header {
  char name[256];
  uint32_t grid[3], block[3];
  uint64_t blocks; /* of the grid */
  uint32_t warps;  /* of a block */
  uint32_t shared_bytes, registers;
  uint64_t stream;                  /* CUDA's handle; 0: the default stream */
  uint64_t shared_base, local_base; /* where generic addresses reach those memories; 0: unknown */
  sass_format format;
  bool begun; /* the line behind the header was #BEGIN_TB already */
} kernel_header;

typedef struct kernel_counts { /* added to */
  uint64_t warp_instructions, thread_instructions, accesses, sectors, blocks, barriers;
  uint64_t bulk; /* copies by the tensor memory accelerator, left out */
} kernel_counts;

typedef FF_VEC(uint64_t) kernel_words;

typedef struct kernel_block {
  uint64_t number;
  uint64_t line;      /* of the file, where it begins */
  kernel_words words; /* reused from block to block */
} kernel_block;

/* What comes before the first thread block. FF_PARSE: with file and line. */
ff_status kernel_read_header(lines *from, kernel_header *header, ff_error *error);

/* The next block; *there: false at the end of the file. */
typedef struct kernel_reader kernel_reader;
kernel_reader *kernel_reader_create(lines *from, const kernel_header *header, kernel_counts *counts);
void kernel_reader_free(kernel_reader *reader);
ff_status kernel_read_block(kernel_reader *reader, kernel_block *block, bool *there, ff_error *error);

/* ---- warp.c ---- */

/* What a warp is at while its instructions become records. */
typedef struct warp_state {
  /* by register: the number (from 1) of the load that writes it, not waited for; 0: none */
  uint32_t newest[256];
  uint32_t loads, waited;
  FF_VEC(uint32_t) groups;           /* loads made when each group of asynchronous ones ended */
  uint32_t issue, memory, sfu, fp64; /* instructions not written yet */
  uint32_t barriers;
} warp_state;

void warp_begin(warp_state *warp);
void warp_instruction(warp_state *warp, const sass_instr *instr, const kernel_header *header, kernel_words *words,
                      kernel_counts *counts);
void warp_end(warp_state *warp, kernel_words *words); /* EXIT */

#endif
