/* SPDX-License-Identifier: Apache-2.0 */
/* A recorded program: the whole access stream (stream.h) as a file, from which it is simulated again without the
 * program.
 *
 *   write:  trace_file_create -> trace_file_put_operation, and behind a launch for each block and warp in order
 *           trace_file_put_record ... EXIT -> trace_file_finish
 *   read:   trace_file_open -> trace_file_next ... -> trace_file_close
 *
 * Layout (all numbers little-endian):
 *   file   "FFTRACE\n", version u32 (1, and 1 more if the file has marks, 2 more if launches have ranges or carve-outs, 4 more if it has UNITS or early WAITs, 8 more if launches have sites, 16 more if it has calls of cudaProfilerStart or ...Stop, 32 more if files were copied, 64 more if it has ASYNC or copies that are asynchronous, 128 more if it has the begins and ends of ranges, 256 more if it has arrivals from other blocks, 512 more if frames have footprints, 1024 more if UNITS count products of integers and half precision, 2048 more if they count minima and maxima, 4096 more if launches have L2 controls or accesses a priority in the L2), 0 u32; the frame ABOUT; frames DATA; the frame INDEX; 24 bytes: offset of INDEX u64,
 *          XXH64 of that u64, "FFTREND\n"
 *   frame  FRAME_HEADER_BYTES (trace_frame.h), ended by XXH64 of what stands before; then the payload, with its own
 *   XXH64 in the header
 *   DATA   columns (pack.h), each: bytes u64-varint, stored bytes u64-varint, zstd frame (or the bytes, if that is no shorter)
 *          In a file with footprints one more: what the frame's blocks touch (file_footprint.c). There a launch is the
 *          last operation of its frame, its blocks have frames of their own, and these end between blocks, but for
 *          blocks that are too large.
 * A DATA frame holds operations and records in the program's order, ends anywhere between two of them, and can be read
 * alone: its header says with which operation it begins, and in which launch, block and warp.
 *
 * Damage: a file without its end is recognised as incomplete, and read up to its last whole frame. A frame whose
 * checksum differs is left out, and the reader says which operations and blocks it had. The same program gives the same
 * bytes. The *checksum* of a trace is over the contents of its DATA frames. */
#ifndef FF_TRACE_FILE_H
#define FF_TRACE_FILE_H

#include "trace/stream.h"

#define TRACE_FILE_VERSION 16384u /* the highest: with all of them */
#define TRACE_FILE_MARKED 2u      /* with marks */
#define TRACE_FILE_PLAIN 1u       /* with neither */

typedef struct trace_file_totals { /* what executing the program took; as exec_stats */
  uint64_t warp_instructions, thread_instructions, warp_accesses, sectors, blocks, divergent_branches, barriers;
} trace_file_totals;

typedef struct trace_file_about { /* texts owned by the caller that made it */
  char farfault[32];              /* version that recorded */
  char *command;                  /* the program and its arguments, quoted for a shell; NULL: unknown */
  char *machine;                  /* name or path of the machine whose GPU the program found; NULL: unknown */
  bool complete; /* the program ended by itself; false: a signal ended it, or the recording was cut off */
  /* offload candidates are marked with ENTER and LEAVE (or were looked for: there may be none) */
  bool marks, units;
  bool footprints; /* what the blocks of a frame touch can be read alone */
  char **notes;    /* for the reports of every simulation */
  uint32_t note_count;
  trace_file_totals totals;
} trace_file_about;

/* ---- writing ---- */

typedef struct trace_file_writer trace_file_writer;
/* Writes the beginning of a trace that will be the output `path` (base/output.h). Copies command and machine. A file
 * that is to have no marks gets them all the same with the first mark that is put into it, and says that launches have
 * ranges or carve-outs with the first that has one, as it does of sites and profilers; what goes into a pipe or a
 * device says so from the start. */
ff_status trace_file_create(const char *path, const trace_file_about *about, trace_file_writer **out, ff_error *error);
/* The same for a trace that may be cut off and is to stay as far as it came: a new file, under its name from the
 * beginning. */
ff_status trace_file_create_part(const char *path, const trace_file_about *about, trace_file_writer **out,
                                 ff_error *error);
/* What comes next. An error of the disk is remembered and returned by trace_file_finish; nothing more is written
 * then. */
/* END: not written; an open launch is ended by it */
void trace_file_put_operation(trace_file_writer *writer, const trace_op *op);
/* A record of the open launch's next warp: word by word as in stream.h; EXIT ends the warp, the last warp's EXIT the
 * block. */
void trace_file_put_record(trace_file_writer *writer, const uint64_t *words);
/* The records that come are of this block and warp of the open launch: those before it that have none only end. */
void trace_file_seek(trace_file_writer *writer, uint64_t block, uint32_t warp);
/* Ends the file (complete, notes and totals are taken from *about), flushes it to the disk, gives it its name, and
 * frees the writer. On an error `path` is what it was; a part stays as far as it got. */
ff_status trace_file_finish(trace_file_writer *writer, const trace_file_about *about, ff_error *error);
typedef struct trace_file_written {
  uint64_t operations, launches, blocks, accesses, bytes;
} trace_file_written;
/* What is in the file once it is finished: trace_file_finish fills *written. */
void trace_file_tell(trace_file_writer *writer, trace_file_written *written);
/* frees; `path` is what it was, a part stays incomplete; NULL: nothing */
void trace_file_abandon(trace_file_writer *writer);

/* ---- reading ---- */

typedef struct trace_file trace_file;

typedef struct trace_file_frame { /* a DATA frame */
  uint64_t offset, bytes;         /* in the file, header included */
  uint64_t operation;             /* the number (trace_op.sequence) of its first operation, or of the one behind it */
  uint32_t operations, accesses;
  uint64_t launch, launches; /* the number of the first launch in it, or of the open one; how many begin in it */
  bool open;                 /* it begins within a launch: */
  uint64_t block;            /* ... in this block */
  uint32_t warp;             /* ... and warp */
  bool damaged;              /* its header; the payload is looked at when it is read */
} trace_file_frame;

typedef struct trace_file_info {
  trace_file_about about; /* owned by the file; notes, totals and `complete` only if `whole` */
  bool whole;             /* the end is there */
  bool nameless;          /* the frame ABOUT is damaged: which farfault, program and machine is lost */
  uint64_t bytes;         /* of the file */
  uint64_t checksum;      /* of the contents; 0 if not whole */
  uint64_t operations, launches, accesses, words; /* of all frames whose headers are good */
  uint64_t blocks;                                /* 0 if not whole */
  const trace_file_frame *frames;
  uint64_t frame_count;
} trace_file_info;

/* FF_IO: cannot be read. FF_PARSE: no trace, or of another version. A damaged or incomplete one opens. */
ff_status trace_file_open(const char *path, trace_file **out, ff_error *error);
void trace_file_close(trace_file *file);
const trace_file_info *trace_file_information(const trace_file *file);

typedef enum trace_item_kind { TRACE_ITEM_OPERATION, TRACE_ITEM_RECORD, TRACE_ITEM_END } trace_item_kind;
typedef struct trace_item {
  trace_item_kind kind;
  const trace_op *op;         /* OPERATION; a launch has no chunks; valid until the next operation */
  const trace_launch *launch; /* RECORD: of which launch, block and warp */
  uint64_t block;
  uint32_t warp, words;   /* RECORD: length */
  const uint64_t *record; /* valid until the next item */
} trace_item;

/* The next item. FF_PARSE: damage (the message says which frame and what was in it); the next call goes on behind it.
 * END comes at the end of an incomplete file, too. */
ff_status trace_file_next(trace_file *file, trace_item *item, ff_error *error);
void trace_file_rewind(trace_file *file);

/* Appends everything, but for TRACE_OP_END, and for marks if the program has none, to the program, whose simulations
 * run in other threads; waits where the program does, so that memory stays bounded. `step` (NULL: none) is called for
 * each operation and block. On an error the launch that was open is ended as far as it came; the part that was
 * appended can be simulated. */
typedef struct trace_file_step {
  const trace_launch *launch; /* the one that is fed now; NULL: none */
  uint64_t blocks;            /* of it, fed so far */
  uint64_t warp_instructions; /* fed so far, of all launches */
} trace_file_step;
typedef struct trace_file_watch {
  void (*step)(void *context, const trace_file_step *step);
  void *context;
} trace_file_watch;
/* The same step by step, for trace_program_pull: a step is an operation, or a block as far as its frame goes; nothing
 * waits. */
typedef struct trace_feed trace_feed;
/* borrows all three */
trace_feed *trace_feed_create(trace_file *file, trace_program *program, const trace_file_watch *watch);
bool trace_feed_step(trace_feed *feed);                       /* false: it is over */
ff_status trace_feed_free(trace_feed *feed, ff_error *error); /* what trace_file_feed returns */
/* The same of a file with footprints, for a program that is pulled: a step is an operation, and blocks come when the
 * reader asks for them, a frame at a time, if it does not leave them out. Sets trace_program_ahead. The feed may be
 * freed when it is idle: a step has returned false, and no launch has blocks left. `idle` is called if it comes to be
 * so outside a step. */
ff_status trace_feed_create_ahead(trace_file *file, trace_program *program, const trace_file_watch *watch,
                                  void (*idle)(void *context), void *context, trace_feed **out, ff_error *error);
bool trace_feed_is_idle(const trace_feed *feed);

/* what may lie in the stream (trace_program_limit): it stays in the host's caches */
#define TRACE_FEED_BYTES (UINT64_C(2) << 20)
ff_status trace_file_feed(trace_file *file, trace_program *program, const trace_file_watch *watch, ff_error *error);

/* ---- file_copy.c ---- */

typedef struct trace_selection {      /* what is kept of launches; all other operations are */
  uint64_t first_launch, last_launch; /* numbers from 0, both kept */
  uint64_t first_block, last_block;   /* of each; the others' warps only end */
  const char *kernel;                 /* a part of its name; NULL: every one */
  bool repair;                        /* go on behind damage */
  bool footprints;                    /* with them; else as in the file */
} trace_selection;
typedef struct trace_copied {
  uint64_t operations, launches, accesses, lost_frames;
} trace_copied;

/* Writes the output `path`. Damage: FF_PARSE, unless it is to be repaired; `lost` (may be NULL) gets
 * each message. A selection of launches that none is in: FF_INVALID. After an error `path` is what it was. */
ff_status trace_file_copy(trace_file *from, const char *path, const trace_selection *selection,
                          void (*lost)(const char *message), trace_copied *copied, ff_error *error);

#endif
