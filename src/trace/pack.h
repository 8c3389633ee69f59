/* SPDX-License-Identifier: Apache-2.0 */
/* Record words to few bytes and back: what a trace file's frames are made of.
 *
 * The words of warps that follow each other are taken apart into *columns*, each of one kind of thing, so that what is
 * regular in a kernel becomes runs of zeros for the compressor behind:
 *
 *   HEADS    0: the head (an ISSUE, the first word of an ACCESS, ...) that followed the one before it the last time; else
 *            1 + its number in the dictionary of heads; the dictionary's size: a new one, whose word is in WORDS
 *   MASKS    0: the mask of the warp's access before; 1: that of this instruction's last one; 2: it is in WORDS
 *   FIRST    how far the first line is from where the instruction's strides (in the warp, from warp to warp, from block to
 *            block) would have it: bytes of the zigzag number, which are in PLANE0, PLANE1, ... from the lowest
 *   FURTHER  the same for an access's further lines, from the line before and the instruction's usual distance
 *   LANES    of each line; of the last one less what the mask leaves, so 0
 *   SECTORS  of each line
 *   (WORDS)  behind the head of an ENTER, which is without its trips: by how many they differ from the last ones of
 *   that head, zigzag
 *   TEXT     operations (operations.h), in the program's order; records follow the LAUNCH that they are of
 *
 * A *coder* has the state that writer and reader share: the same words in the same order leave the same state. It is
 * reset at the end of each frame. At the deep check level the writer reads every record back (pack_mirror.c). The
 * reader trusts no column: it reads none past its end, and refuses words that stream.h does not allow (fuzz/trace). */
#ifndef FF_TRACE_PACK_H
#define FF_TRACE_PACK_H

#include "base/memory.h"
#include "trace/stream.h"

typedef enum pack_column {
  PACK_HEADS,
  PACK_WORDS,
  PACK_MASKS,
  PACK_FIRST,
  PACK_FURTHER,
  PACK_LANES,
  PACK_SECTORS,
  PACK_TEXT,
  PACK_PLANE0,
  PACK_PLANES = 7, /* a line number has 54 bits, a distance 55 */
  PACK_COLUMNS = PACK_PLANE0 + PACK_PLANES,
} pack_column;

typedef struct pack_bytes {
  uint8_t *items;
  size_t count, capacity;
} pack_bytes; /* FF_VEC(uint8_t) */
typedef struct pack_view {
  const uint8_t *at, *end;
} pack_view;

void pack_byte(pack_bytes *to, uint8_t byte);
void pack_number(pack_bytes *to, uint64_t number); /* seven bits a byte, the lowest first */
/* false: it does not end, or has more than 64 bits; *number is then 0. */
bool pack_take_number(pack_view *from, uint64_t *number);

typedef struct pack_coder pack_coder;
pack_coder *pack_coder_create(void);
void pack_coder_free(pack_coder *coder);
void pack_coder_reset(pack_coder *coder); /* a frame begins */
/* before the first record: the head of an ENTER has its trips, as in files of version 1 */
void pack_coder_plain(pack_coder *coder);
/* The words that follow are of this kernel; a kernel keeps what was learnt of it. */
void pack_coder_kernel(pack_coder *coder, uint32_t kernel);
void pack_coder_block(pack_coder *coder); /* a block begins: before its first warp */
void pack_coder_warp(pack_coder *coder);  /* a warp's stream begins */

/* The record at `words`, whole: one word, or an ACCESS with its lines. */
void pack_put(pack_coder *coder, pack_bytes columns[PACK_COLUMNS], const uint64_t *words);

/* The next record into `words` (room for PACK_RECORD_WORDS); its length in words, 0: the columns are broken. */
#define PACK_LINES_MAX 64u
#define PACK_RECORD_WORDS (2 + PACK_LINES_MAX)
uint32_t pack_take(pack_coder *coder, pack_view columns[PACK_COLUMNS], uint64_t *words);

/* The records that follow of a warp, without its EXIT, straight into a stream (of which a part may be pending in the
 * writer), with its marks or as a stream without marks has them; takes their words from *words_left and adds the
 * instructions of their ISSUEs. true: EXIT came. false: no words are left, or (some are) the columns are broken. */
bool pack_take_warp(pack_coder *coder, pack_view columns[PACK_COLUMNS], trace_writer *to, bool marks,
                    uint32_t *words_left, uint64_t *instructions);

#endif
