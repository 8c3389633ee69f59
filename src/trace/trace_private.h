/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of trace/ share: pages, chunks, the parts of a program. Nothing outside trace/ includes this.
 *
 * Locks, from the outside in (one may be taken while holding those to its left):
 *     program.mutex (operations, readers, throttle)  -  stripe.mutex (chunks by hash)  -  pool and spill mutexes
 * A chunk that is being written belongs to its writers; once published it is immutable and owned by the readers whose
 * bits are in `pending`; the thread that clears the last bit frees it.
 *
 *     bytes in memory == sum of the sizes of the unspilled pages of all chunks           (program.memory_bytes)
 *
 * trace_check.c has the other equations, and checks them at the deep level.
 *
 * Which thread may wait for which. A reader's thread *works*, or it waits for one of four things; then its bit is set
 * in the mask of that thing:
 *
 *     waiting_op     an operation that was not appended yet         set by the reader, cleared by trace_op_append
 *     waiting_chunk  a chunk that was not published yet             set by the reader, cleared by trace_chunk_publish and trace_launch_finish
 *     waiting_told   whether a launch has records, or its end if it has none    set by the reader, cleared by trace_launch_ask and trace_launch_finish
 *     waiting_other  another reader (the devices of one manager)    set and cleared by the reader (trace_reader_waits)
 *
 * A writer (a thread that appends an operation, or wants to start a block) waits only for readers that work
 * (trace_readers_working): for one that is OPS_OUTSTANDING operations behind, or has not come near the block while
 * there is more in memory than should be. So no set of readers and writers can wait for each other:
 *   - a writer that waits, waits for a reader that works. That one goes on until it has come near enough, or waits
 *     itself, or leaves; each of these wakes the writer, and none of them needs a writer;
 *   - while no reader works, no writer waits: what a reader lacks comes, whatever the other readers hold back;
 *   - a reader that waits for another one waits for one that works, or that lacks something which a writer brings;
 *   - a writer that asks whether a launch needs records (touched.h) waits for readers that have not answered and work;
 *     a reader that has answered waits for that writer, not the writer for it.
 * What the stream keeps for a reader that falls behind (it waits for operations and has not taken the blocks of earlier
 * launches) goes to the temporary file. No writer waits for deferred readers, which begin when the program has ended.
 *
 * The throttle is an optimisation: a block may start at any time. The requirement is that a reader does not count as
 * working while it waits; the reverse, a reader that counts as waiting when it could go on, costs memory only. The
 * masks are exact but for the moment in which a thread wakes up; reader_waits_check asserts that no reader counts as
 * waiting for an operation or a chunk that is there. */
#ifndef FF_TRACE_PRIVATE_H
#define FF_TRACE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/memory.h"
#include "trace/ahead.h"
#include "trace/stream.h"
#include "trace/touched.h"

/* ---- pages: pool.c ---- */

typedef struct trace_page {
  struct trace_page *next; /* in the warp's stream, or in the pool */
  uint64_t offset;         /* in the spill file */
  uint32_t used;           /* words, without the terminating zero; known once the page is full or closed */
  uint32_t size_class;     /* PAGE_SPILLED: this is only a header */
  uint64_t words[];
} trace_page;

enum { PAGE_CLASSES = 4, PAGE_SPILLED = 255 };
#define PAGE_BYTES(size_class) (UINT64_C(512) << 2 * (size_class)) /* 512 B, 2 KiB, 8 KiB, 32 KiB */
#define PAGE_WORDS(size_class) ((uint32_t)((PAGE_BYTES(size_class) - sizeof(trace_page)) / 8))

typedef struct pool_slab pool_slab; /* 2 MiB of pages of one size */
typedef struct page_pool {
  struct {
    _Alignas(64) pthread_mutex_t mutex;
    pool_slab *slabs;    /* those with free pages */
    uint64_t free_count; /* pages */
  } classes[PAGE_CLASSES];
} page_pool;

void pool_init(page_pool *pool);
void pool_free(page_pool *pool);
/* A list of `count` pages, linked by next. */
trace_page *pool_take(page_pool *pool, uint32_t size_class, uint32_t count);
void pool_give(page_pool *pool, trace_page *page);
void pool_check(page_pool *pool); /* asserts the equations at the head of pool.c */

/* ---- the temporary file: spill.c ---- */

enum { SPILL_CLASSES = 40 };
typedef struct spill_file {
  pthread_mutex_t mutex;
  int descriptor;   /* -1: not opened yet */
  int failed;       /* errno of what ended its use (no room, no place): everything stays in memory; 0: nothing did */
  uint64_t end;     /* bytes handed out so far */
  uint64_t written; /* bytes ever written */
  FF_VEC(uint64_t) free[SPILL_CLASSES]; /* offsets of freed extents of 512 << class bytes */
} spill_file;

typedef struct spill_extent {
  uint64_t offset, bytes;
} spill_extent;

void spill_init(spill_file *file);
void spill_close(spill_file *file);
/* Writes `count` runs of words behind each other into one extent. false: not possible (full disk): keep them. */
typedef struct spill_run {
  const uint64_t *words;
  uint32_t count;
} spill_run;
bool spill_write(spill_file *file, const spill_run *runs, uint32_t count, spill_extent *extent);
void spill_read(spill_file *file, uint64_t offset, uint64_t *words, uint32_t count);
void spill_release(spill_file *file, const spill_extent *extent);
uint64_t spill_extent_bytes(uint64_t bytes); /* what an extent for so many bytes takes of the file */
/* Asserts that extents of `live` bytes and the free ones are no more than was handed out; exact: all of it. */
void spill_check(spill_file *file, uint64_t live, bool exact);

/* ---- chunks: chunk.c ---- */

typedef struct trace_warp {
  trace_page *first, *last;
  trace_page *before; /* while it is written: the page in front of `last`, NULL: `last` is the first */
} trace_warp;

struct trace_chunk {
  trace_launch *launch;
  uint64_t block;
  trace_chunk *next, **link; /* in its stripe: list of the begun ones, or bucket */
  uint64_t pending;          /* readers that have not released it; under the stripe's mutex */
  uint64_t taken;            /* readers that took it; under the stripe's mutex */
  bool made;                 /* from what the launch touches, for one reader (touched.c); it hangs in reader.made */
  FF_VEC(spill_extent) extents;
  uint32_t warps;
  bool empty; /* stands for a block that did not finish: every warp only EXIT; belongs to one reader */
  trace_warp streams[];
};

enum { STRIPES = 32 };
typedef struct chunk_stripe {
  _Alignas(64) pthread_mutex_t mutex;
  pthread_cond_t published;
  trace_reader *waiters; /* that lack a chunk of this stripe, by next_waiter */
  trace_chunk *begun;    /* being written */
  trace_chunk **buckets; /* published, by hash */
  uint32_t bucket_count, count;
} chunk_stripe;

/* Has a launch records, or what it touches? It may not be known yet. */
typedef enum told_as { TOLD_RECORDS, TOLD_LATER, TOLD_TOUCHED } told_as;

struct trace_chunks { /* the private part of a launch */
  trace_program *program;
  trace_launch *next, **link; /* among the program's live launches; under its mutex */
  uint64_t serial;
  _Atomic uint32_t references; /* the producer, its operation, each reader that wants blocks; who asks */
  _Atomic bool finished;
  _Atomic uint32_t begun;   /* chunks that are being written */
  bool listed;              /* its operation is on the list; only while trace_check runs */
  _Atomic uint64_t wanting; /* readers that want further blocks */
  /* readers that have said whether they want records; that want none */
  _Atomic uint64_t answered, without_records;
  _Atomic told_as told;
  trace_touched *touched; /* instead of chunks; owned */
  void *parameters;       /* memory for trace_launch.parameters, */
  uint32_t parameter_room;
  uint32_t progress_count;
  struct {
    _Atomic uint64_t taken, released; /* blocks; only the reader's thread counts */
    uint64_t found;                   /* chunks in its hands, counted by trace_check */
  } progress[];                       /* by reader */
};

/* ---- programs, operations, readers: stream.c ---- */

enum { OP_SEGMENT = 256, OPS_OUTSTANDING = 65536 };
typedef struct op_segment {
  struct op_segment *next;
  uint64_t base; /* sequence number of ops[0] */
  trace_op ops[OP_SEGMENT];
} op_segment;

struct trace_reader {
  trace_program *program;
  uint32_t index;            /* its bit in the masks */
  uint64_t next;             /* sequence number of the operation that next_op returns next */
  op_segment *segment;       /* holds `next`; NULL: to be looked up */
  bool holds;                /* the operation before `next` is still in the caller's hands */
  bool ended;                /* END was handed out */
  bool poked;                /* under program.mutex */
  trace_reader *next_waiter; /* while it waits for a chunk, in the stripe's list: */
  const trace_launch *lacks; /* of this launch; under the stripe's mutex */
  uint64_t lacks_block;
  trace_chunk *made;             /* that it has taken and not released */
  struct cursor_buffer *buffers; /* all of them, by all_next */
  struct cursor_buffer *free_buffers;
};

struct trace_program {
  uint64_t budget; /* beyond it pages are spilled */
  uint64_t ahead;  /* beyond it blocks wait for readers: the budget, or less */
  bool marks;      /* streams have ENTER and LEAVE, */
  bool units;      /* and UNITS */
  uint64_t window; /* blocks beyond the slowest reader's next that may start whatever the budget */
  pthread_mutex_t mutex;
  pthread_cond_t appended, consumed, room, told;
  op_segment *first, *last;
  uint64_t appended_count; /* operations appended so far; under mutex, as: */
  uint64_t freed_count;    /* operations behind the slowest reader */
  trace_reader *readers[TRACE_READERS_MAX];
  _Atomic uint32_t reader_count; /* slots ever used */
  _Atomic uint64_t active;       /* readers that are there */
  uint64_t deferred;             /* of these, those that begin when the program has ended; constant by then */
  uint64_t answering;            /* readers that say of each launch whether they want records; constant by then */
  uint64_t leaving;              /* readers in trace_reader_free; under mutex */
  uint32_t changes;              /* counted by trace_check_sometimes; under mutex */
  _Atomic uint64_t waiting_op, waiting_chunk, waiting_told, waiting_other; /* readers, see above */
  _Atomic uint32_t room_waiters;                                           /* writers that wait */
  _Atomic uint64_t room_block; /* the block that one of them wants to start */
  _Atomic uint64_t memory_bytes, peak_bytes, words;
  uint64_t next_launch;                /* under mutex */
  FF_VEC(char *) kept;                 /* texts; under mutex */
  void (*_Atomic pull)(void *context); /* NULL: others write */
  void *pull_context;
  trace_ahead leaps;      /* fetch NULL: blocks come in the order of the operations */
  trace_launch *launches; /* under mutex, as: */
  trace_launch *spare;    /* freed ones, for the next */
  uint32_t spare_count;
  page_pool pool;
  spill_file spill;
  chunk_stripe stripes[STRIPES];
};

void chunk_stripes_init(trace_program *program);
void chunk_stripes_free(trace_program *program);
/* The reader gives up its claim on the launch's published chunks that it has not taken. */
void chunk_drop_reader(trace_program *program, uint32_t reader, const trace_launch *launch);
void cursor_buffers_free(trace_reader *reader);
void launch_unreference(trace_launch *launch);
/* The readers for which a writer may wait. */
uint64_t trace_readers_working(const trace_program *program);
/* touched.c */
void trace_touched_finish(trace_launch *launch);
trace_chunk *trace_touched_chunk(trace_reader *reader, trace_launch *launch, uint64_t block);
void trace_touched_chunk_free(trace_chunk *chunk);
/* After memory was given back or a reader went on; `wanted`: it wants the block that waits for room. */
void program_signal_room(trace_program *program, bool wanted);
/* After a reader began to wait: those that wait for it look again. The caller holds no lock. */
void program_signal_waiting(trace_program *program);
/* The first block that a reader which is not deferred has not taken yet; UINT64_MAX if none wants any. */
uint64_t launch_slowest(const trace_launch *launch);
trace_chunk *stripe_find(chunk_stripe *stripe, const trace_launch *launch, uint64_t block); /* under its mutex */
/* Whether the chunk hangs where its hash says. */
bool chunk_belongs(chunk_stripe *stripe, uint32_t bucket, const trace_chunk *chunk);
static inline uint32_t trace_record_words(uint64_t head) {
  return trace_word_kind(head) == TRACE_ACCESS ? 2 + trace_access_lines(head) : 1;
}

/* ---- invariants: trace_check.c ---- */

/* quiet: no other thread is inside a function of stream.h for this program. */
void trace_check(trace_program *program, bool quiet);
void trace_check_locked(trace_program *program, bool quiet); /* the caller has the program's mutex */
void trace_check_sometimes(trace_program *program);          /* the same at every so many calls */
/* Of a chunk whose streams are closed. */
void trace_chunk_check(const trace_chunk *chunk);
/* At the deep level: no reader counts as waiting for a chunk that is there. */
void chunk_waits_check(trace_program *program);

#endif
