/* SPDX-License-Identifier: Apache-2.0 */
/* The library's state, for src/runtime only.
 *
 *   segment   a range of a *store*; small segments share one
 *   store     bytes with a host side (page-locked, pageable, or a file) and a side on every GPU: reserved addresses, *pieces*
 *             of GPU memory mapped there or not, and which bytes of them are valid
 *   launch    queued in the order of the calls, *issued* (given to the driver) in that order, over some time later
 *   operation a copy, a set or a kernel in one of the GPU's streams: one stream for copies to it, one for copies from
 *             it, some for kernels. Its number counts within its stream.
 *   history   which operations have read and written which bytes of a store on one side: what the next operation must come after
 *
 * While the lock is free, for every byte of a store (store_check):
 *   blank, or valid on the host, or valid on some GPU; what is valid in several places has the same contents in all;
 *   valid on a GPU -> its piece is mapped there;  blank -> it is zero, wherever it is valid;
 * and for every GPU: mapped pieces + free pieces == created pieces <= budget pieces;  a stale piece is not mapped.
 * Validity is that of the end of everything issued: a copy counts when it is in its stream; histories make others wait
 * for it. */
#ifndef FF_RUNTIME_GPU_H
#define FF_RUNTIME_GPU_H

#include <pthread.h>

#include "base/check.h"
#include "farfault/farfault.h"
#include "runtime/cuda.h"
#include "runtime/spans.h"

enum {
  KERNEL_STREAMS = 6,
  STREAM_IN = 0,                                       /* of a GPU's streams: copies to it */
  STREAM_OUT = 1,                                      /* copies from it */
  STREAM_KERNELS = 2,                                  /* the first one for kernels */
  STREAM_PARTITIONS = STREAM_KERNELS + KERNEL_STREAMS, /* the first one of the first partition's */
  PARTITIONS = 8,                                      /* of a GPU, at one time */
  PARTITION_STREAMS = 2,                               /* for the kernels of one */
  STREAMS = STREAM_PARTITIONS + PARTITIONS * PARTITION_STREAMS,
  MAX_SMS = 1024,
  STREAM_EVENTS = 256, /* operations of a stream that may not be over; the host waits before more */
  SLOTS = 4,           /* of page-locked memory, for what is not page-locked itself */
  SLOT_BYTES = 4 << 20,
  LOOKAHEAD = 32,
  MAX_DEVICES = 16,
  PIECES_WANTED = 512, /* of a budget, unless the driver's granularity is larger, or pieces would be */
  LARGEST_PIECE = 16 << 20,
};

/* ---- operations ---- */

typedef struct operation {
  uint32_t stream; /* index in gpu.streams */
  uint64_t number; /* from 1; 0: none */
} operation;

typedef struct stream {
  cuda_stream handle;
  uint32_t device;
  bool open;                            /* operation issued + 1 is being put together: its event is not recorded */
  uint64_t issued, completed;           /* numbers; completed: as far as the host has seen */
  cuda_event events[STREAM_EVENTS];     /* of operation n: [n % STREAM_EVENTS]; made when first needed */
  uint64_t seen[MAX_DEVICES * STREAMS]; /* of each other stream: the operation that this one waits for already */
} stream;

typedef struct history_record {
  span bytes;
  operation by;
  bool write;
} history_record;
typedef FF_VEC(history_record) history;

/* ---- stores ---- */

typedef struct piece {
  cuda_memory memory;
  bool mapped; /* memory lies there; */
  bool usable; /* and kernels and copies may touch it */
  bool stale;  /* not mapped: what lay there has another place, but is to be seen here still */
  uint32_t pins;
  uint64_t used; /* gpu.tick of its last use */
  uint64_t mark; /* gpu.tick of the launch that needs it now */
  uint64_t next; /* scratch of choosing victims: position of its next use in the queue */
} piece;

typedef struct store_side { /* on one GPU */
  cuda_address address;     /* reserved; 0: not yet */
  piece *pieces;
  size_t usable;       /* pieces */
  uint64_t used, mark; /* as a piece's, of all of it */
  /* the piece that is mapped next if it is gone through from front to back; how often it was so */
  uint64_t expected, streak;
  spans valid;
  history history;
} store_side;

typedef enum host_kind { HOST_NONE, HOST_PINNED, HOST_PAGEABLE, HOST_FILE } host_kind;

typedef struct store {
  ff_gpu *gpu;
  uint64_t bytes;
  size_t piece_count;
  store_side *sides; /* one per GPU */
  spans blank, host_valid;
  history host_history; /* of copies that read and write the page-locked host side */
  host_kind host_kind;
  unsigned char *host; /* PINNED, PAGEABLE */
  int file;            /* FILE */
  char *path;
  uint64_t file_offset;
  bool writable;           /* the file */
  bool eager;              /* the host has read what launches wrote here: it is brought back as soon as it is written */
  spans offered;           /* what was brought back so and not read yet */
  bool slab;               /* shared by small segments */
  ff_partition *partition; /* whose memory it lies in; NULL: the GPU's */
  FF_VEC(ff_segment *) segments; /* in it, by their place */
} store;

typedef struct mapping { /* an ff_segment_map */
  unsigned char *host;
  span bytes;       /* of the store */
  bool write, copy; /* copy: `host` is memory of its own (a file's) */
} mapping;

struct ff_segment {
  ff_gpu *gpu;
  store *store;
  uint64_t base, bytes; /* in the store */
  char *name;
  int priority;
  uint32_t pins; /* a bit per GPU */
  FF_VEC(mapping) mappings;
};

/* ---- code ---- */

/* PTX forms whose kernels take part of a grid, are bound to SMs, or both */
enum { FORM_WHOLE, FORM_WINDOW, FORMS };
typedef struct bound_code { /* one of these forms, bound to SMs: runtime_rewrite.c */
  struct ptx_persistents *made;
  cuda_module loaded[MAX_DEVICES];
} bound_code;

struct ptx_module;
struct ff_module {
  ff_gpu *gpu;
  char *name;
  char *image; /* owned; with a NUL behind it */
  size_t bytes;
  struct ptx_module *ptx;      /* NULL: not PTX, or nothing that is understood here */
  char reason[256];            /* why not */
  struct ptx_windows *windows; /* NULL: not made yet, or cannot be */
  struct ptx_checked *checked; /* runtime_check.h: what the driver has in place of the image; NULL: the image */
  struct ptx_module *checked_ptx;
  /* `loaded` is the text with both forms of the kernels; else the windows' form is in window_code */
  bool both;
  cuda_module loaded[MAX_DEVICES], window_code[MAX_DEVICES];
  bound_code bound[FORMS];
  FF_VEC(ff_kernel *) kernels;
};
struct ff_kernel {
  ff_module *module;
  char *name;
  cuda_function functions[MAX_DEVICES], windows[MAX_DEVICES], bound[FORMS][MAX_DEVICES];
  const struct ptx_checked_kernel *checked; /* the form that is launched; NULL: the kernel itself */
  bool known;                               /* from PTX: */
  uint32_t param_count;
  uint32_t *param_bytes;
};

/* ---- launches ---- */

typedef struct use {
  ff_segment *segment;
  ff_access access;
  span bytes;    /* of the store */
  int64_t start; /* block (x, y, z) uses [start + x * per_block[0] + ..., + block_bytes), clipped to bytes */
  int64_t per_block[3];
  uint64_t block_bytes; /* 0: all of it, for every block */
} use;

typedef struct box {
  uint32_t from[3], to[3];
} box; /* blocks of a grid: [from, to) */

typedef struct argument {
  ff_segment *segment; /* an address, filled in when the GPU is chosen; NULL: a value */
  uint64_t offset;     /* in the segment, or in `values` */
} argument;

typedef struct launch {
  struct launch *next; /* queued */
  ff_ticket ticket;
  ff_kernel *kernel;
  uint32_t grid[3], block[3], shared, device; /* device: 1 + index; 0: any */
  uint32_t argument_count, use_count;
  argument *arguments;
  unsigned char *values;
  use *uses;
  ff_partition *partition; /* NULL: the whole GPU */
  uint32_t axis, step;     /* windows: of `step` blocks along `axis`; step 0: it runs whole */
} launch;

typedef struct outcome { /* of a ticket that is issued and maybe not over, or that failed */
  ff_ticket ticket;
  operation last; /* of it */
  ff_result result;
  char *message;
  bool told;
} outcome;

/* ---- everything ---- */

typedef struct spare { /* memory without a place */
  cuda_memory memory;
  uint32_t count;
  operation after[STREAMS]; /* an operation on it must come after these: they use it in its old place */
} spare;

typedef struct place {
  store *store;
  size_t index;
} place; /* of a piece */

/* a budget of a GPU's memory, and what of it the driver gave: a GPU's, or a partition's share of it */
typedef struct pool {
  uint64_t budget_pieces, created;
  uint64_t pinned_pieces;
  FF_VEC(spare) free;
  FF_VEC(place) stale; /* all of them, the oldest first */
} pool;

typedef struct slot {
  unsigned char *memory;
  operation by;
} slot; /* by: what last used it */

/* ---- partitions ---- */

typedef enum partition_way { WAY_GREEN, WAY_REWRITE } partition_way;

struct ff_partition {
  ff_gpu *gpu;
  uint32_t device, slot; /* slot: which of the GPU's partitions */
  char *name;
  partition_way way;
  uint32_t sm_first, sm_count;
  uint32_t next_stream;
  cuda_green green;                  /* WAY_GREEN */
  cuda_address queues;               /* WAY_REWRITE: a ptx_persistent_queue for each of its streams, */
  uint32_t turns[PARTITION_STREAMS]; /* and what stands for the next launch */
  bool own_memory;                   /* `pool` is a share of the GPU's; else it is not used */
  pool pool;
  struct broker_share *share; /* NULL: of this process alone */
};

typedef struct device {
  int number; /* the driver's */
  cuda_context context;
  uint64_t memory;
  pool pool; /* of the segments that are no partition's */
  uint32_t next_stream;
  slot slots[SLOTS];
  uint32_t next_slot;
  ff_partition *partitions[PARTITIONS];
  uint32_t sm_count;
  uint64_t sms_taken[MAX_SMS / 64]; /* by partitions */
  cuda_resource *groups;            /* its SMs as the driver divides them; NULL: not asked yet, or it does not */
  uint32_t group_count, group_sms;
  struct check *check; /* NULL: no launch has checked itself on it */
} device;

struct ff_gpu {
  pthread_mutex_t lock;
  const cuda_driver *driver;
  device devices[MAX_DEVICES];
  uint32_t device_count;
  stream *streams; /* STREAMS per GPU */
  uint64_t piece, tick;
  uint32_t lookahead;
  bool check;
  uint64_t pinned_limit;
  FF_VEC(ff_segment *) segments;
  FF_VEC(store *) stores;
  FF_VEC(ff_module *) modules;
  launch *first, **last; /* queued, not issued */
  const launch *issuing; /* the one that is being issued, and which of its blocks were not yet */
  box rest;
  uint32_t queued;
  ff_ticket tickets;       /* given; those that are neither queued nor running nor failed are over */
  FF_VEC(outcome) running; /* issued, by ticket */
  FF_VEC(outcome) failed;  /* by ticket */
  uint64_t segment_names;
  bool lost;             /* the context is of no use any more */
  bool fault, loss_told; /* by a kernel's fault; a call has returned it */
  char lost_message[2048];
  cuda_context caller; /* the calling thread's context, while it is in here */
  cuda_context current;
  ff_statistics statistics;
};

/* ---- runtime_message.c ---- */

/* Sets the thread's message and returns `result`. */
ff_result runtime_fail(ff_result result, const char *format, ...) __attribute__((format(printf, 2, 3)));
void runtime_restore_message(const char *message);
/* What a failed driver call becomes; finds out whether the context is lost. */
ff_result driver_failed(ff_gpu *gpu, int result, const char *call);
#define DRIVER_TRY(gpu, name, ...)                               \
  do {                                                           \
    int tried_ = (gpu)->driver->name(__VA_ARGS__);               \
    if (tried_) return driver_failed((gpu), tried_, "cu" #name); \
  } while (0)
/* Of a clean-up: what the driver refuses once it may let through the next time; a lost context never does. */
#define INSIST(call)                           \
  do {                                         \
    for (int tries_ = 0; tries_ < 8; tries_++) \
      if (!(call)) break;                      \
  } while (0)
#define TRY(expression)              \
  do {                               \
    ff_result tried_ = (expression); \
    if (tried_) return tried_;       \
  } while (0)

/* ---- open.c ---- */

void gpu_enter(ff_gpu *gpu);                    /* takes the lock */
void gpu_leave(ff_gpu *gpu);                    /* gives the thread's own context back, and the lock */
ff_result gpu_on(ff_gpu *gpu, uint32_t device); /* makes its context current */

/* ---- order.c: streams, operations, which comes after which ---- */

static inline uint32_t stream_of(uint32_t device, uint32_t which) { return device * STREAMS + which; }
/* Opens the stream's next operation, whose context becomes current; *op is its number already. What is put into the
 * stream until work_close belongs to it. Open already: goes on with it. */
ff_result work_open(ff_gpu *gpu, uint32_t stream, operation *op);
ff_result work_close(ff_gpu *gpu, uint32_t stream);
/* The open operation of `stream` comes after `op`. */
ff_result work_after(ff_gpu *gpu, uint32_t stream, operation op);
bool work_is_over(ff_gpu *gpu, operation op); /* as far as the host has seen, without asking */
ff_result work_ask(ff_gpu *gpu, operation op, bool *over);
ff_result work_wait(ff_gpu *gpu, operation op); /* the host waits */
/* The same for all records that an access of [begin, end) must come after. */
ff_result history_after(ff_gpu *gpu, history *h, uint64_t begin, uint64_t end, bool write, uint32_t stream);
ff_result history_wait(ff_gpu *gpu, history *h, uint64_t begin, uint64_t end, bool write);
void history_add(ff_gpu *gpu, history *h, uint64_t begin, uint64_t end, bool write, operation by);
void history_forget(history *h, uint64_t begin, uint64_t end);
/* The stream for a kernel: of the operation it must come after anyway, if that is the last of its stream; else the next
 * in turn. */
uint32_t kernel_stream(ff_gpu *gpu, const launch *l, uint32_t device, const span *ranges);
/* The GPU's stream is made. */
ff_result stream_make(ff_gpu *gpu, uint32_t device, uint32_t which, cuda_green green);

/* ---- runtime_store.c ---- */

ff_result store_make(ff_gpu *gpu, ff_partition *partition, uint64_t bytes, store **out);
void store_free(store *s);      /* everything is over, its pieces are unmapped (or the context is lost) */
ff_result store_host(store *s); /* an anonymous store has host memory afterwards */
void store_written(store *s, uint32_t device, uint64_t begin, uint64_t end); /* the newest bytes are on that GPU now */
void store_check(const store *s);

/* ---- runtime_transfer.c: copies ---- */

/* Each brings the newest bytes of [begin, end) to the GPU, the host side or the file; pieces are mapped already. */
ff_result transfer_in(store *s, uint32_t device, uint64_t begin, uint64_t end);
ff_result transfer_out(store *s, uint64_t begin, uint64_t end);
/* What no other place has of [begin, end) on that GPU. */
ff_result transfer_save(store *s, uint32_t device, uint64_t begin, uint64_t end);
ff_result file_read(store *s, uint64_t at, void *to, uint64_t bytes);
ff_result file_write(store *s, uint64_t at, const void *from, uint64_t bytes);

/* ---- runtime_memory.c: pieces ---- */

pool *store_pool(const store *s, uint32_t device);
/* of the GPU's budget, which has that much less */
ff_result memory_lend(ff_gpu *gpu, uint32_t device, pool *to, uint64_t pieces);
void memory_take_back(ff_gpu *gpu, uint32_t device, pool *from); /* nothing of it is in use */
typedef struct need {
  store *store;
  span bytes;
} need; /* on the GPU that is meant */
/* How many pieces of them have no memory there. Marks all with a new tick. */
uint64_t memory_missing(ff_gpu *gpu, uint32_t device, const need *needs, uint32_t count);
/* all of them, and all that are pinned */
uint64_t memory_pieces(ff_gpu *gpu, uint32_t device, const need *needs, uint32_t count);
bool memory_has_room(const pool *from, uint64_t missing); /* without an eviction */
/* All of them mapped; evicts what is needed last. */
ff_result memory_bring(ff_gpu *gpu, uint32_t device, const need *needs, uint32_t count);
ff_result memory_commit(ff_gpu *gpu, uint32_t device); /* takes all of the budget from the driver */
void memory_clean_ahead(ff_gpu *gpu, uint32_t device, const need *written); /* by the launch that is being issued */
ff_result memory_evict(store *s, uint32_t device);                          /* all of it but what is pinned */
ff_result memory_drop(store *s, uint32_t device); /* unmaps all, whatever it holds; everything is over */

/* ---- runtime_launch.c ---- */

ff_result launch_flush(ff_gpu *gpu); /* issues all that is queued */
/* and waits until all is over; what failed stays for the call that asks */
ff_result launch_wait(ff_gpu *gpu);
ff_result launch_settle(ff_gpu *gpu);            /* the same, and returns the first failure that no call has returned */
span use_bytes(const use *u, const box *blocks); /* what these blocks use */
box whole_grid(const launch *l);
/* The next part of *rest that runs at once (all of it, or a window), which is taken off. false: nothing is left. */
bool next_part(const launch *l, box *rest, box *part);

/* ---- runtime_window.c ---- */

/* Chooses axis and step, so that every window fits; uses that were not declared per block become so where the kernel's
 * PTX proves it. FF_ERROR_TOO_LARGE: there are none, and why. */
ff_result window_choose(ff_gpu *gpu, launch *l, uint64_t room, uint64_t *windows, char *reason, size_t length);

/* ---- runtime_module.c ---- */

/* `window`: the form that takes part of a grid (ptx/rewrite/window.h). FF_ERROR_TOO_LARGE: it has none, and why. */
ff_result kernel_function(ff_gpu *gpu, ff_kernel *kernel, uint32_t device, bool window, cuda_function *function);
void module_free(ff_module *module);

ff_result module_load_image(ff_module *m, uint32_t device, const char *image, cuda_module *loaded);
void module_unload_image(ff_module *m, uint32_t device, cuda_module *loaded);
/* The PTX of the form that takes part of a grid, made if need be, and the kernel's name in it. */
ff_result module_windows(ff_kernel *kernel, const char **text, const char **name);
bool module_has_variables(const ff_module *m);

/* ---- partition.c ---- */

const pool *partition_pool(const ff_partition *p);
void partition_free(ff_partition *p); /* its launches are over, its segments are gone, or the context is lost */
static inline uint32_t partition_stream(const ff_partition *p, uint32_t which) {
  return stream_of(p->device, STREAM_PARTITIONS + p->slot * PARTITION_STREAMS + which);
}

/* ---- runtime_rewrite.c: kernels bound to SMs (ptx/rewrite/persistent.h) ---- */

typedef struct bound_launch { /* what stands behind a kernel's own parameters, and how it is launched */
  cuda_function function;
  uint64_t queue;
  uint32_t numbers[6]; /* first SM, SMs, the grid, turn */
  uint32_t blocks;
} bound_launch;
enum { BOUND_PARAMETERS = 7 };
/* For `part` of the launch, whose partition is of WAY_REWRITE, in the stream. FF_ERROR_CODE: the kernel has no such
 * form, and why. */
ff_result rewrite_prepare(ff_gpu *gpu, const launch *l, const box *part, uint32_t stream, bound_launch *out);
void rewrite_parameters(const bound_launch *b, void **pointers); /* BOUND_PARAMETERS of them */
void rewrite_launched(ff_partition *p, uint32_t stream);
void rewrite_module_free(ff_module *m);

/* ---- segment.c ---- */

void segment_free(ff_segment *segment); /* the bookkeeping alone */

#endif
