/* SPDX-License-Identifier: Apache-2.0 */
/* What file_write.c and file_read.c share: a frame's header, and columns as a payload. Nothing outside trace/ includes
 * this. */
#ifndef FF_TRACE_FRAME_H
#define FF_TRACE_FRAME_H

#include "trace/file.h"
#include "trace/footprint.h"
#include "trace/operations.h"

#define FILE_MAGIC "FFTRACE\n"
#define END_MAGIC "FFTREND\n"
enum { FILE_HEADER_BYTES = 16, FILE_END_BYTES = 24, FRAME_HEADER_BYTES = 96 };
#define FRAME_MAGIC UINT32_C(0x4d524646) /* "FFRM" */

typedef enum frame_kind { FRAME_ABOUT = 1, FRAME_DATA, FRAME_INDEX } frame_kind;

/* A frame is ended when one of these is reached: what a reader holds at one time. */
enum { FRAME_COLUMN_BYTES = 1 << 20, FRAME_PAYLOAD_MAX = 96 << 20 };

typedef struct frame_header {
  frame_kind kind;
  uint64_t number; /* frames from 0 */
  uint64_t payload_bytes, payload_hash;
  uint64_t operation, launch, block;
  uint64_t launch_blocks;                               /* of the open launch */
  uint32_t operations, launches, accesses, warp, warps; /* warps: of the open launch's blocks */
  uint32_t words;                                       /* of records */
  bool open;
} frame_header;

void frame_header_write(const frame_header *header, uint8_t bytes[FRAME_HEADER_BYTES]);
/* false: no such header, or damaged. */
bool frame_header_read(const uint8_t bytes[FRAME_HEADER_BYTES], frame_header *header);
uint64_t frame_hash(const void *bytes, size_t count);

/* Appends the columns to the payload. `compressor` is a ZSTD_CCtx. */
struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;
/* footprint: one more column; NULL: the file's frames have none */
void frame_pack(struct ZSTD_CCtx_s *compressor, const pack_bytes columns[PACK_COLUMNS], const pack_bytes *footprint,
                pack_bytes *payload);
/* Takes the payload apart; the columns are owned by `storage`, which the caller reuses. false: broken. */
bool frame_unpack(struct ZSTD_DCtx_s *decompressor, const uint8_t *payload, size_t bytes, bool footprints,
                  pack_bytes *storage, pack_view columns[PACK_COLUMNS]);
/* The same of the column with the footprint alone, which is left out above. */
bool frame_unpack_footprint(struct ZSTD_DCtx_s *decompressor, const uint8_t *payload, size_t bytes, pack_bytes *storage,
                            pack_view *footprint);

/* ---- file_footprint.c: what the blocks of a frame touch, in files that have it ---- */

/* Instructions of a stream without marks as a reader counts them that has late WAITs, or leaves them out. */
enum { WITH_LATE_WAITS, WITHOUT_LATE_WAITS, COUNT_WAYS };

typedef struct pending_issue { /* ISSUEs between which only what is left out stands are one, if they fit into one */
  uint64_t word;               /* 0: none */
  bool joins;
} pending_issue;

typedef struct frame_touches { /* while a frame is written */
  footprint touched;
  FF_VEC(uint64_t) edges; /* pages in which an allocation begins or ends; ascending */
  uint64_t first, blocks; /* of the launch: the frame's first one; how many of it are whole */
  uint64_t instructions[COUNT_WAYS];
  pending_issue pending[COUNT_WAYS];
  bool parted; /* the frame begins within a block */
} frame_touches;
void frame_touches_open(frame_touches *t);
void frame_touches_free(frame_touches *t);
void frame_touches_allocated(frame_touches *t, uint64_t address, uint64_t bytes); /* from here on */
void frame_touches_begin(frame_touches *t, uint64_t block, uint32_t warp);        /* a frame, in the open launch */
void frame_touches_record(frame_touches *t, uint64_t block, const uint64_t *words);
void frame_touches_block_over(frame_touches *t);
/* What belongs into the frame's column; nothing if it is not of whole blocks (`inside`: it ends within one). */
void frame_touches_put(frame_touches *t, bool inside, pack_bytes *to);

typedef struct frame_footprint { /* of a frame that is read */
  uint64_t blocks, instructions[COUNT_WAYS];
} frame_footprint;
/* Joins the column's pieces to *to, blocks counted from `first`. false: it is empty or broken. */
bool frame_footprint_take(pack_view from, uint64_t first, footprint *to, frame_footprint *out);

/* ---- pack_mirror.c, for file_write.c ---- */

/* A reader that follows the writer, record by record; at the deep level only. */
typedef struct pack_mirror {
  pack_coder *coder; /* NULL: not at the deep level */
  operation_names names, names_again;
  size_t read[PACK_COLUMNS]; /* bytes of each column */
  pack_bytes again;
} pack_mirror;
void pack_mirror_open(pack_mirror *mirror);
void pack_mirror_close(pack_mirror *mirror);
void pack_mirror_reset(pack_mirror *mirror); /* a frame begins */
/* After pack_put and operation_put, only if there is a coder: assert that what was put last reads back as it was. */
void pack_mirror_record(pack_mirror *mirror, const pack_bytes columns[PACK_COLUMNS], const uint64_t *words);
void pack_mirror_operation(pack_mirror *mirror, const pack_bytes *text);

/* ---- file_read.c, for file_feed.c ---- */

/* The records that follow of the warp at hand, without its EXIT, straight to the writer, with its marks or as
 * a stream without marks has them; adds the instructions of its ISSUEs. true: the EXIT came. false: the frame has
 * ended, or is damaged: trace_file_next goes on, or says so. */
bool trace_file_take_warp(trace_file *file, trace_writer *to, bool marks, uint64_t *instructions);
/* The next item is the first of this frame; frames that were left out count as lost. */
void trace_file_go_to(trace_file *file, uint64_t frame);
/* The frame that the next item is the first one of; UINT64_MAX: it lies within a frame. */
uint64_t trace_file_next_frame(const trace_file *file);
/* Of a file with footprints, changes nothing that trace_file_next says. false: the frame has none, or is damaged. */
bool trace_file_footprint(trace_file *file, uint64_t frame, uint64_t first, footprint *to, frame_footprint *out);
/* The same file once more, with a position of its own. */
ff_status trace_file_again(const trace_file *file, trace_file **out, ff_error *error);

#endif
