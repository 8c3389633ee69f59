/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of exec/: decoded functions, frames, splits, warps, blocks, workers and launches.
 *
 *   launch    one exec_launch; shared by the workers, freed when they are done
 *   worker    a host thread; owns pools of frames and of block contexts, kept from launch to launch
 *   cluster   blocks that run together, on one worker, and reach each other's shared memory (cluster.c); mostly one
 *   block     a thread block in progress: shared memory, barriers, warps
 *   warp      32 lanes: one *running split*, and the other splits
 *   split     lanes of a warp that are at the same instruction of the same frame: {lanes, pc, frame}
 *   frame     one activation of a function: the registers of all 32 lanes, of which `lanes` are still inside
 *
 * Invariants of a warp between two turns (core_warp_check)
 *   - the splits' lane sets are disjoint and together are `live`: the lanes that have not exited;
 *   - no two runnable splits stand at the same pc of the same frame (they would have been merged);
 *   - every frame's `lanes` is the union of the lanes of the splits in it or below it.
 *
 * The split with the smallest key runs (deepest call first, then smallest rank), unless it was rotated for fairness:
 * that is decided where basic blocks begin.
 *
 * Life of a split (state; arrows are functions):
 *
 *        warp_diverge                     warp_pick
 *   (running) ------------> READY --------------------------> (running)
 *      |   \__ barrier_arrive ____> BARRIER -- barrier_release --> READY
 *      |   \__ sync_wait _________> SYNC ----- sync_release -----> READY
 *      +------ warp_exit --> gone */
#ifndef FF_EXEC_CORE_H
#define FF_EXEC_CORE_H

#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "exec/instructions/ops.h"
#include "exec/memory/space.h"
#include "ptx/analysis/cfg.h"
#include "ptx/analysis/declared.h"

#define EXEC_LANES 32u
#define EXEC_ALL_LANES UINT32_MAX
#define EXEC_SLOT 128u /* bytes of a 32-bit register */
/* 0 to 15 are PTX's own; then the cluster's, one for each group of four warps (wgmma), and a place to wait for columns
 * of tensor memory */
#define EXEC_BARRIERS 26u
#define EXEC_CLUSTER_BARRIER 16u
#define EXEC_GROUP_BARRIER 17u
#define EXEC_TENSOR_BARRIER 25u
#define EXEC_CLUSTER_MAX 16u /* blocks in a cluster */
#define EXEC_MAX_THREADS 1024u
#define EXEC_MAX_WARPS (EXEC_MAX_THREADS / EXEC_LANES)
#define EXEC_DEFAULT_STACK 1024u
#define EXEC_MAX_LOCAL (512u << 10)               /* bytes of local memory that a thread can have */
#define EXEC_CODE_WINDOW UINT64_C(0x1ffe00000000) /* a function's address: window + 16 * (index + 1); unmapped */
#define EXEC_NO_OFFSET UINT32_MAX

/* exec_instr.flow: what the interpreter itself has to do. Everything else is EXEC_FLOW_NONE. */
typedef enum exec_flow {
  EXEC_FLOW_NONE,
  EXEC_FLOW_GUARDED, /* run[1] for the lanes whose guard is true */
  EXEC_FLOW_BRA,
  EXEC_FLOW_BRA_IF,
  EXEC_FLOW_BRX,
  EXEC_FLOW_CALL,
  EXEC_FLOW_CALL_INDIRECT,
  EXEC_FLOW_HOST_CALL,
  EXEC_FLOW_RET,
  EXEC_FLOW_EXIT,
  EXEC_FLOW_BARRIER,
  EXEC_FLOW_SYNC,
  EXEC_FLOW_YIELD, /* nanosleep */
  EXEC_FLOW_PULL,  /* behind the atomic by which a block takes a virtual block */
  EXEC_FLOW_TRAP,
  EXEC_FLOW_UNSUPPORTED,
} exec_flow;

/* exec_instr.attention: what the interpreter has to look at before the instruction. */
enum {
  EXEC_ATTEND_FLOW = 1,    /* flow != NONE */
  EXEC_ATTEND_WAIT = 2,    /* may use a register with an outstanding load: only when the access stream is wanted */
  EXEC_ATTEND_LEADER = 4,  /* first of a basic block: only while other splits are runnable */
  EXEC_ATTEND_START = 8,   /* backward branch, store in a loop: where a warp's first turn ends */
  EXEC_ATTEND_MARK = 16,   /* entry of a marked region, or where it goes on: only when the access stream is wanted */
  EXEC_ATTEND_NATIVE = 32, /* where compiled code may be entered: only while there is some (native.h) */
};

/* ---- decoded code ---- */

typedef struct exec_function exec_function;

/* In a list of waits: one of two for the same load (decode_waits.c). */
#define EXEC_WAIT_EARLY 0x80000000u
#define EXEC_WAIT_LATE 0x40000000u
#define EXEC_WAIT_SPILL 0x20000000u /* no load number: an index into exec_function.spills */
#define EXEC_WAIT_NUMBER 0x1fffffffu

typedef struct exec_spill { /* ptx_spill */
  uint32_t slot;            /* in words of the thread's local memory */
  uint32_t load;            /* of one that loads: its load number's index; else EXEC_NO_OFFSET */
  uint32_t words;           /* TRACE_SPILL_WORDS at most */
} exec_spill;

typedef struct exec_place { /* a .param variable: `words` slots of 32-bit words in the frame, or local memory */
  uint32_t offset;          /* bytes from the frame's registers */
  uint32_t words;
  uint32_t local; /* its address was taken: bytes from the frame's local memory; else EXEC_NO_OFFSET */
} exec_place;

typedef struct exec_region { /* an exec_mark: registers as operand offsets, EXEC_NO_OFFSET: none, or unknown */
  exec_mark mark;
  uint32_t from, to;
  uint8_t from_bytes, to_bytes; /* of their slots per lane */
} exec_region;

struct exec_function {
  const ptx_func *source;
  const char *name;
  exec_instr *code;
  uint32_t count;
  unsigned char *constants; /* the pool, 64-byte aligned */
  uint32_t frame_bytes;     /* registers, parameters, load numbers */
  uint32_t frame_class;     /* of such frames in the pool (frame.c) */
  uint32_t zero_bytes;      /* the first part of a new frame: must be zero */
  uint32_t local_bytes;     /* one activation's local memory, a multiple of 16 */
  uint32_t stack_bytes;     /* what one activation takes of the thread's stack */
  const exec_place *params, *results;
  uint32_t param_count, result_count;
  const uint32_t *sfu_before, *fp64_before; /* per PTX instruction: how many of them stand before it, */
  const trace_counts *units_before;         /* and what a compiler makes of those (ptx/analysis/machine_code.h) */
  const uint32_t *first_of;                 /* PTX instruction -> decoded instruction */
  uint32_t pc_base;                         /* trace pc of PTX instruction 0 */
  uint32_t loads_offset; /* frame offset of uint32_t[load_count]: number of the newest load into a register */
  uint32_t load_count;
  const exec_region *regions; /* by entry */
  uint32_t region_count;
  const uint32_t *waits; /* lists for exec_instr.wait: count, then indices into those numbers, some EARLY; or SPILLs */
  const exec_spill *spills;
  uint32_t spill_count;
  uint32_t ever; /* index of a load number that is never 0, where there are spills: they are always there to be made */
  uint32_t number; /* among its kernel's functions */
};

typedef struct exec_copy { /* a parameter or result that moves between two frames */
  exec_place from, to;
} exec_copy;

typedef struct exec_call {
  uint32_t callee; /* index into the kernel's functions; indirect: unused */
  uint32_t target; /* indirect: operand offset of the address */
  uint32_t argument_count, result_count;
  const exec_place *arguments, *results; /* in the caller's frame */
  uint32_t host;                         /* exec_host_call of a function that the virtual GPU provides itself */
} exec_call;

typedef enum exec_host_call {
  EXEC_HOST_NONE,
  EXEC_HOST_VPRINTF,
  EXEC_HOST_ASSERT,
  EXEC_HOST_MALLOC,
  EXEC_HOST_FREE,
  EXEC_HOST_CONDITION,    /* cudaGraphSetConditional */
  EXEC_HOST_GRAPH_LAUNCH, /* cudaGraphLaunch of the device (children.c) */
  /* dynamic parallelism: what CUDA's device runtime, itself PTX, asks of the system (children.c) */
  EXEC_HOST_PARAMETER_BUFFER,
  EXEC_HOST_LAUNCH,
  EXEC_HOST_NEW_HANDLE,
  EXEC_HOST_NOTHING,
  EXEC_HOST_SET_ERROR,
  EXEC_HOST_LAST_ERROR,
  EXEC_HOST_DEVICE,
  EXEC_HOST_DEVICE_COUNT,
  EXEC_HOST_ATTRIBUTE,
  EXEC_HOST_LIMIT,
} exec_host_call;

typedef enum exec_op { EXEC_OP_LOAD, EXEC_OP_STORE, EXEC_OP_ATOMIC, EXEC_OP_PREFETCH } exec_op;

/* One atomic operation for the lanes of `mask`, in lane order. address[l] is the lane's cell in host memory; b, c and
 * old are slots (old may be NULL). plain: no other thread can reach the memory. Returns the lanes whose cell
 * changed. */
typedef uint32_t (*exec_atomic_function)(void *const *address, const void *b, const void *c, void *old, uint32_t mask,
                                         bool plain);

typedef struct exec_access {   /* side data of ld, st, atom, red */
  exec_span *hint;             /* the last allocation found here; racy on purpose, verified before it is used */
  uint8_t op, space;           /* exec_op, ptx_space */
  uint8_t wide;                /* the address register has 64 bits */
  uint8_t bytes;               /* of one element in memory: 1, 2, 4, 8, 16 */
  uint8_t elements;            /* 1, 2, 4, 8 */
  uint8_t sign;                /* load: sign-extend */
  uint8_t to16;                /* load: the register has 16 bits: the extension is cut to 16 */
  uint8_t slot_bytes;          /* of the data registers: 4, 8 or 16 per lane */
  uint8_t poll;                /* volatile, relaxed, acquire: a loop of these waits for another thread */
  uint8_t awaits;              /* load: the loop around it is left when what it reads has changed (wait_loop.c) */
  uint8_t whole;               /* a vector that other blocks must not see in part */
  uint8_t returns;             /* atomic: the old value is wanted */
  uint8_t takes_turns;         /* atomic: of atom and red, not of an mbarrier: lanes of one shared word go one by one */
  uint8_t trace_flags;         /* TRACE_* */
  uint8_t log2_total;          /* log2 of the bytes per lane, rounded up */
  uint8_t system;              /* atomic of .sys scope: threads of the host may change the cell, too */
  uint32_t data[8];            /* operand offsets of the elements; a sink has a scratch slot */
  uint32_t load[8];            /* trace: index of the load number of each destination, EXEC_NO_OFFSET without */
  uint32_t compare;            /* cas: operand offset of c */
  uint32_t use;                /* the declared use last found here; racy on purpose, verified before it is used */
  exec_handler plain;          /* of code that is checked: what does the access (checked.c); else NULL */
  exec_atomic_function atomic; /* on global memory */
  exec_atomic_function atomic_shared;
  uint8_t hinted;  /* it has a cache policy (memory/cache_policy.h): */
  uint32_t policy; /* its operand offset */
} exec_access;

/* Side data of bar, barrier, shfl, vote, match, redux, elect, bar.warp.sync, and the start of an exec_matrix. Operands:
 * src[0] the value (shfl a, vote's predicate, ...), src[1] and src[2] shfl's b and c, src[3] the membermask; barriers:
 * src[0] the barrier, src[1] the thread count (EXEC_NO_OFFSET: none), src[2] the predicate. */
typedef struct exec_sync {
  uint8_t kind;          /* exec_sync_kind */
  uint8_t mode;          /* exec_sync_mode */
  uint8_t has_predicate; /* a predicate result is wanted (dst2) */
  uint8_t negated;       /* the predicate source is written !p */
  uint8_t wide;          /* match: 64-bit values */
  uint8_t legacy;        /* no membermask: the active lanes */
  uint8_t is_signed;
  uint8_t cluster;  /* barrier: of the cluster */
  uint8_t group;    /* barrier: of four warps */
  uint8_t tensor;   /* barrier: tcgen05.alloc (memory/tensor_memory.h) */
  uint8_t absolute; /* redux.f32 .abs */
  uint8_t nan;      /* redux.f32 .NaN */
  uint8_t constant; /* shfl: b and c are constants: `lane` and `valid` hold */
  uint8_t plain;    /* barrier: of all threads of the block, without a result, and its number is */
  uint8_t number;   /* this constant */
  uint32_t valid;
  uint32_t lane[EXEC_LANES];
} exec_sync;

typedef enum exec_sync_mode {
  EXEC_SHFL_UP,
  EXEC_SHFL_DOWN,
  EXEC_SHFL_BFLY,
  EXEC_SHFL_IDX,
  EXEC_VOTE_ALL,
  EXEC_VOTE_ANY,
  EXEC_VOTE_UNI,
  EXEC_VOTE_BALLOT,
  EXEC_REDUX_ADD,
  EXEC_REDUX_MIN,
  EXEC_REDUX_MAX,
  EXEC_REDUX_AND,
  EXEC_REDUX_OR,
  EXEC_REDUX_XOR,
  EXEC_REDUX_FMIN,
  EXEC_REDUX_FMAX,
  EXEC_BARRIER_SYNC,
  EXEC_BARRIER_ARRIVE,
  EXEC_BARRIER_POPC,
  EXEC_BARRIER_AND,
  EXEC_BARRIER_OR,
} exec_sync_mode;

typedef enum exec_sync_kind {
  EXEC_SYNC_WARP,
  EXEC_SYNC_SHFL,
  EXEC_SYNC_VOTE,
  EXEC_SYNC_MATCH_ANY,
  EXEC_SYNC_MATCH_ALL,
  EXEC_SYNC_REDUX,
  EXEC_SYNC_ELECT,
  EXEC_SYNC_MMA,
  EXEC_SYNC_QUAD_MMA,
  EXEC_SYNC_MOVMATRIX, /* matrix.h; all lanes at one place */
  EXEC_SYNC_WGMMA,     /* wgmma.h; likewise */
  EXEC_SYNC_BARRIER,
} exec_sync_kind;

/* ---- running ---- */

typedef struct core_warp core_warp;
typedef struct core_block core_block;
typedef struct core_worker core_worker;
typedef struct core_launch core_launch;
typedef struct core_phases core_phases; /* copy_records.c */
typedef struct core_cluster core_cluster;

typedef struct exec_frame {
  struct exec_frame *parent; /* the caller's; NULL in the kernel; next free one in the pool */
  const exec_function *function;
  const exec_instr *call; /* the call instruction, in the parent's code */
  uint32_t lanes;         /* lanes inside */
  uint32_t depth;         /* 0: the kernel */
  /* where its local memory starts, how much stack is in use with it; bytes per thread */
  uint32_t local, stack;
  uint32_t size_class;
  _Alignas(64) unsigned char registers[];
} exec_frame;

typedef enum split_state { SPLIT_READY, SPLIT_BARRIER, SPLIT_SYNC } split_state;

typedef struct exec_split {
  uint32_t mask;
  uint8_t state;
  uint8_t barrier;      /* BARRIER: which */
  uint32_t member;      /* SYNC: the membermask */
  uint32_t last;        /* when it last ran, for rotation */
  const exec_instr *pc; /* next instruction; BARRIER and SYNC: the one it waits at */
  exec_frame *frame;
} exec_split;

typedef enum warp_turn { TURN_DONE, TURN_BLOCKED, TURN_YIELD } warp_turn;

typedef warp_turn (*exec_run_function)(core_warp *warp);

typedef struct exec_isa_table { /* what core.isa.c and its companions give per instruction set */
  exec_run_function run;
  ff_status (*choose)(const ptx_func *func, const ptx_instr *instr, exec_choice *choice, ff_error *error);
  void (*choose_access)(const exec_access *access, exec_handler run[2]);
  const exec_handler *sync;  /* by exec_sync_kind */
  const exec_handler *moves; /* by exec_move */
} exec_isa_table;

extern const exec_isa_table exec_isa_baseline, exec_isa_avx2, exec_isa_avx512;
/* NULL name: the best that this build has for this processor. NULL: there is no such one, or the processor lacks it. */
const exec_isa_table *exec_isa_find(const char *name);

#define EXEC_TURN_BUDGET (1 << 20) /* warp instructions after which a turn ends at the next backward branch */
#define EXEC_POLL_COST (1 << 14)   /* what a poll costs of it: a volatile load, an atomic that changes nothing, ... */
#define EXEC_SPIN_POLLS 32u        /* polls in one turn from which on the warp counts as waiting */
#define EXEC_NO_KEY UINT64_MAX

#define EXEC_KEPT 64u /* values that are the same in all lanes, kept over a barrier */

enum { CORE_LOOKS = 16 }; /* kept: NCCL looks at eight cells in turn */

typedef struct core_look { /* by a load that awaits */
  const exec_instr *instr;
  uint64_t address; /* of its first lane, or a number for all */
  uint32_t mask;
} core_look;

/* What every turn looks at stands first, so that the warps of a block that take turns at barriers need few lines of the
 * host's cache. */
struct core_warp {
  exec_warp x;           /* first: what computing handlers see */
  uint32_t active;       /* lanes of the running split; 0: none is running */
  uint32_t active_count; /* how many those are */
  uint32_t live;         /* lanes that have not exited */
  uint32_t segment;      /* PTX index of the first instruction that is not yet counted */
  int32_t budget;        /* warp instructions left of this turn */
  uint32_t polls;        /* of this turn */
  const exec_instr *pc;  /* of the running split, while the interpreter loop does not hold it */
  exec_frame *frame;
  const exec_function *function; /* frame->function */
  core_block *block;
  core_launch *launch;
  core_worker *worker;
  trace_writer *trace; /* NULL: no records are wanted */
  /* instead of records: what is touched (worker->touched); NULL: not wanted */
  struct footprint *touched;
  bool watched; /* global accesses are to be told: there is a stream, or uses are declared */
  unsigned char *shared;
  uint32_t shared_bytes;
  uint32_t index;       /* in the block */
  unsigned char *local; /* 32 lanes interleaved by 4-byte words */
  const unsigned char *params;
  uint64_t next_key;    /* smallest key among the other READY splits */
  uint32_t ready_count; /* how many those are */
  uint32_t other_count; /* READY, BARRIER and SYNC */
  uint32_t rotated;     /* leaders that the running split may pass whatever its key */
  uint32_t rotation;    /* how many it gets next time */
  uint32_t clock;       /* counts rotations: exec_split.last */
  uint32_t present;     /* lanes that exist */
  uint32_t looks;       /* trace: how many `look` has */
  bool stuck;           /* in this turn it waited at an mbarrier and looked at no other memory */
  bool started;         /* it has a frame */
  bool starting;        /* its first turn is not over */
  /* compiled code for full warps left it at this barrier, and has found it since; else NULL (native.h) */
  const exec_instr *known;
  /* what that code has left in `kept` instead of in every lane of the frame: places as exec_native_api.spread takes
   * them; NULL: nothing */
  const uint32_t *kept_places;
  uint64_t executed, thread_executed, accesses, sectors, diverged;
  /* of a block that takes virtual ones: what it had executed and touched at the last */
  uint64_t mark;
  /* trace: lanes that are in `region`, among them all of the running split; 0: no region is entered */
  uint32_t inside;
  const exec_region *region;
  uint32_t loads, waited, waited_early; /* trace: loads so far; those last waited for, and early */
  /* lanes that have arrived at the cluster's barrier, and it has not opened since */
  uint32_t cluster_arrived;
  bool cluster_owes; /* trace: it has opened for this warp, whose BARRIER is not yet written */
  /* mbarrier.c: lanes whose last wait failed, where each waits (an offset in the block's shared memory) and for the end
   * of which phase; those of them whose phase had ended when the mbarrier was set up again */
  uint32_t waiting, woken, waiting_odd;
  uint64_t kept[EXEC_KEPT];
  uint32_t waiting_at[EXEC_LANES];
  /* trace: what has been looked at since the last record of another kind, and the instructions of looks that came
   * again, which are in no ISSUE */
  core_look look[CORE_LOOKS];
  uint64_t unrecorded;
  _Alignas(64) uint32_t tid[3][EXEC_LANES];
  exec_split others[EXEC_LANES];
  trace_writer writer;
};

typedef struct core_barrier {
  uint32_t arrived;        /* threads: those that wait, and */
  uint32_t absent;         /* those that do not: they only arrived, or have exited and are counted with their warp */
  uint32_t expected;       /* threads; 0: all that live */
  uint32_t popc;           /* .red: threads whose predicate was true */
  uint32_t threads;        /* .red: threads that gave a predicate */
  uint32_t arrive_records; /* arrive-only BARRIER records written since the last completion */
} core_barrier;

/* The blocks of a cluster, by rank. Its barrier opens when all threads that have not exited have arrived:
 *
 *     arrived == sum over its warps of lanes in cluster_arrived,  live == sum of its blocks' live_threads */
struct core_cluster {
  core_block *blocks[EXEC_CLUSTER_MAX];
  uint32_t count;
  uint32_t live, arrived; /* threads */
};

struct core_block {
  core_launch *launch;
  core_worker *worker;
  core_cluster *cluster, own_cluster; /* own_cluster: that of the block of rank 0 */
  uint32_t rank;
  bool done;                 /* all its threads have exited, others of its cluster have not */
  bool moved;                /* in this turn it did more than look at memory */
  uint32_t cluster_expected; /* warps that were alive when the cluster's barrier last opened */
  core_block *next;          /* in one of the worker's lists */
  uint64_t index;
  uint32_t ctaid[3];
  uint32_t warp_count, thread_count;
  uint32_t live_threads;
  uint64_t ready;      /* warps that can run, a bit each */
  uint32_t at;         /* the warp whose turn it is */
  uint32_t idle_turns; /* turns that ended waiting since the last barrier or exit */
  uint32_t busy_turns; /* turns that ended computing since then */
  /* barrier_count when the block's turn began; at the last look at it. */
  uint64_t first_barrier, seen_barriers;
  uint32_t looks;       /* of the barriers between, those with a poll before them */
  bool looked;          /* there was a poll since */
  bool polled;          /* when it gave way, all its warps had polled memory, or waited for one that had */
  bool pulled;          /* it has taken a virtual block and gives way */
  uint32_t stuck_turns; /* its last turns in which every warp that could run only waited at mbarriers, */
  uint64_t stuck_since; /* and when they began, in ms */
  /* instructions and sectors of its virtual blocks so far, of the slowest warp of each; how many had turns before:
   * launch.c */
  uint64_t work, turn;
  trace_chunk *chunk;
  core_phases *phases; /* trace: of its mbarriers; NULL: it had none yet */
  unsigned char *shared;
  uint32_t shared_bytes, shared_room;
  core_barrier barriers[EXEC_BARRIERS];
  uint32_t barriers_waiting; /* bit per barrier at which threads have arrived */
  uint64_t parked;           /* warps, a bit each, that wait as a whole and are no split (barrier.c), */
  uint32_t parked_threads;   /* how many threads they have, */
  uint32_t parked_at;        /* and the barrier at which they wait */
  uint64_t barrier_count;
  uint64_t counted; /* warp instructions that the launch's total does not have yet */
  ff_text print;
  uint32_t *errors;            /* per thread: cudaGetLastError of the device runtime; NULL: none */
  uint64_t shape;              /* the launch for which the warps were set up */
  uint32_t sides[3];           /* of the blocks for which their thread ids were made; 0: they were not */
  const ptx_use_range *ranges; /* what it may touch, launch->request->use_count of them; NULL: everything */
  ptx_use_range *own_ranges;   /* where they stand if they are this block's alone */
  uint32_t own_ranges_room;
  unsigned char *local; /* all warps' local memory */
  uint64_t local_room;
  struct tensor_memory *tensor; /* memory/tensor_memory.h; NULL: no block has used it here */
  core_warp *warps;
  uint32_t warps_room;
  void *watched; /* core_launch.checker's */
};

#define CORE_SIZE_CLASSES 96

struct core_worker {
  uint32_t index;
  exec_frame *frames[CORE_SIZE_CLASSES];
  uint64_t frame_bytes; /* of all frames in use or in the pool */
  core_block *spare;    /* block contexts not in use */
  core_block *running, *running_tail;
  uint32_t running_count;
  core_block **queued; /* blocks that have taken a virtual block: a heap, least work first */
  uint32_t queued_count, queued_room;
  uint64_t queued_turns; /* how often one was added */
  bool queue_next;       /* the next one to run is one of them */
  exec_stats stats;
  struct footprint *touched; /* trace/footprint.h; NULL: none has been wanted so far; */
  uint64_t touched_shape;    /* of the launch of this number */
  uint64_t seen_progress;    /* of the launch, when the stream last held a block back */
  uint32_t stuck_rounds;     /* how often in a row it did so without any progress */
  uint64_t waiting_progress; /* of the launch, since when its blocks have only polled, */
  uint64_t waiting_since;    /* and that time, in ms; 0: they have not */
  jmp_buf escape;            /* a fault leaves the interpreter through it */
};

struct core_launch {
  const exec_config *config;
  const exec_launch_request *request;
  exec_kernel *kernel;
  exec_memory *memory;
  const exec_isa_table *isa;
  exec_function *const *functions; /* functions[0] is the kernel; use core_function */
  uint32_t function_count;
  uint32_t threads; /* workers */
  uint32_t resident_limit;
  uint32_t grid[3], block[3];
  uint32_t cluster[3], cluster_blocks; /* cluster_blocks: their product */
  bool has_clusters;                   /* the launch or the kernel says how large they are */
  uint64_t blocks;
  uint32_t warp_count, thread_count;
  uint32_t shared_bytes, dynamic_shared;
  uint32_t stack_limit; /* bytes of local memory per thread */
  const unsigned char *params;
  uint64_t workspace;  /* of a cooperative grid; 0: none */
  uint64_t clock_base; /* warp instructions of all launches before */
  uint64_t shape;      /* unique number of this launch */
  trace_launch *trace;
  bool touches; /* of what its blocks do the stream has only what they touch (trace/touched.h) */
  /* what looks at everything that the launch does (checker.h): it is then interpreted; NULL: none */
  struct exec_checker *checker;
  ptx_use_range *ranges; /* what every block may touch; NULL: everything, or it depends on the block */
  /* shared by the workers, changed atomically */
  uint64_t next_block;
  uint64_t stop_above;  /* blocks with a larger index stop: one with this index has faulted */
  uint64_t executed;    /* warp instructions, updated at the end of turns */
  uint64_t progress;    /* blocks finished and barriers passed */
  uint32_t resident;    /* blocks in progress */
  bool told_waiting;    /* config->waiting was called */
  pthread_mutex_t lock; /* of what follows */
  exec_fault fault;
  uint64_t fault_block;
  struct core_output *output;
  exec_children children;
  uint64_t handles; /* streams and events that its threads have made */
  /* by function; NULL: not compiled, or not yet (native.h). Set once, atomically */
  const struct exec_native_code *native;
  void *native_job; /* the handle of the compilation that is under way (native.h); NULL: none */
};

/* Do its warps write records? */
static inline bool core_records(const core_launch *launch) { return launch->trace && !launch->touches; }
/* Is it wanted where accesses of global memory go? */
static inline bool core_tells_places(const core_warp *w) { return w->trace || w->touched; }

/* By sums of ever more bits: without an instruction for it, the compiler's own way is a call. (It knows the shorter
 * ways to write this, and makes them that call.) */
static inline uint32_t core_lane_count(uint32_t mask) {
  if (mask == EXEC_ALL_LANES) return EXEC_LANES;
  mask = (mask & 0x55555555u) + (mask >> 1 & 0x55555555u);
  mask = (mask & 0x33333333u) + (mask >> 2 & 0x33333333u);
  mask = (mask & 0x0f0f0f0fu) + (mask >> 4 & 0x0f0f0f0fu);
  mask += mask >> 8;
  return (mask + (mask >> 16)) & 63u;
}

/* ---- splits (split.c): rare events of the interpreter loop ---- */

static inline uint64_t core_key(const exec_frame *frame, const exec_instr *pc) {
  return (uint64_t)(UINT32_MAX - frame->depth) << 32 | pc->rank;
}
/* Adds a runnable split, merged with one that stands at the same place. */
void core_add_ready(core_warp *w, uint32_t mask, const exec_instr *pc, exec_frame *frame);
/* The running split stands at w->pc: merges those that stand there too, then makes the one with the smallest key
 * run. */
void core_switch(core_warp *w);
/* Some of the running split's lanes branch at i, `taken`, the others go on behind it: the split that comes first
 * runs. */
void core_diverge(core_warp *w, const exec_instr *i, uint32_t taken);
/* The running split's lanes branch by their index into the targets of i, a brx.idx: those of the first lane's run, the
 * others are runnable. */
void core_branch_indexed(core_warp *w, const exec_instr *i);
/* No split is running: makes the runnable one with the smallest key run. False: there is none. */
bool core_pick(core_warp *w);
/* Another runnable split gets a while, whatever its key. */
void core_rotate(core_warp *w);
/* The running split stops at pc: it becomes one of the others, in that state. */
void core_park(core_warp *w, const exec_instr *pc, split_state state, uint32_t barrier, uint32_t member);
void core_drop_split(core_warp *w, uint32_t index);
void core_update_ready(core_warp *w);
/* Lanes of the running split leave the kernel. */
void core_exit(core_warp *w, const exec_instr *i);

void core_trace_issue(core_warp *w, uint32_t end); /* access_records.c */
/* touched.c: launches that have no records, but what they touch (trace/touched.h) */
void core_touched_begin(core_worker *worker, core_launch *launch); /* the worker's footprint is the launch's */
void core_touched_block(core_block *block);                        /* what is touched next is touched by it */
/* No worker runs blocks of the launch any more; footprints[n]: of its workers, NULL: it had none to run. */
void core_touched_end(core_launch *launch, struct footprint **footprints, uint32_t count, uint64_t instructions);
void core_phases_start(core_block *block); /* copy_records.c: no mbarrier has been seen */
void core_phases_check(const core_block *block);
void core_trace_waits(core_warp *w, const exec_instr *i);
/* mark.c: the running split is where a marked region begins or ends */
void core_mark(core_warp *w, const exec_instr *i);
void core_mark_leave(core_warp *w);
/* The lanes that are to run now are not all in the region: the others have left it, or wait in it. */
static inline void core_mark_check(core_warp *w) {
  if (w->inside && (w->active & ~w->inside)) core_mark_leave(w);
}

/* The warp has looked at something that only others can change. */
static inline void core_poll(core_warp *w) {
  w->budget -= EXEC_POLL_COST;
  w->polls++;
  w->waiting = w->woken = 0;
}

/* Counts what was executed up to PTX instruction `end` (exclusive). */
static inline void core_count(core_warp *w, uint32_t end) {
  if (w->trace) {
    core_trace_issue(w, end);
    return;
  }
  uint32_t n = end - w->segment;
  w->executed += n;
  w->thread_executed += (uint64_t)n * w->active_count;
  w->budget -= (int32_t)n;
  w->segment = end;
}

/* ---- frames (frame.c) ---- */
uint32_t core_frame_class(uint32_t frame_bytes);
static inline void core_frame_free(core_worker *worker, exec_frame *frame) {
  frame->parent = worker->frames[frame->size_class];
  worker->frames[frame->size_class] = frame;
}
void core_frames_trim(core_worker *worker); /* gives pooled frames back to the host */
/* The running split enters / leaves a function. i is the call / the ret. */
void core_call(core_warp *w, const exec_instr *i, const exec_function *callee);
void core_return(core_warp *w, const exec_instr *i);
/* Indirect: splits the running split by callee; the others wait at i. */
const exec_function *core_callee(core_warp *w, const exec_instr *i);
/* Decodes it; a fault of the call i, if that cannot be. */
const exec_function *core_function_later(core_warp *w, const exec_instr *i, uint32_t f);
static inline const exec_function *core_function(core_warp *w, const exec_instr *i, uint32_t f) {
  const exec_function *function = __atomic_load_n(&w->launch->functions[f], __ATOMIC_ACQUIRE);
  return __builtin_expect(function != NULL, 1) ? function : core_function_later(w, i, f);
}
void core_warp_start(core_warp *w);

/* ---- lanes that synchronise (sync.c, barrier.c) ---- */
/* The running split is at a .sync instruction and lanes of `member` are missing: it waits, or the group is complete. */
void core_sync_wait(core_warp *w, const exec_instr *i, uint32_t member);
/* Lanes have exited: groups that waited only for them go on. */
void core_sync_recheck(core_warp *w);
/* True: the running split goes on after the barrier at once. False: it waits (parked). */
bool core_barrier_arrive(core_warp *w, const exec_instr *i);
/* The same of a whole warp at a barrier of all threads, of which no one is told: it goes on at w->pc behind the
 * barrier, at once or when the barrier opens. ARRIVED_NOT: it is no such warp or barrier, and nothing was done. */
typedef enum core_arrival { ARRIVED_NOT, ARRIVED_PASSES, ARRIVED_WAITS } core_arrival;
core_arrival core_barrier_arrive_whole(core_warp *w, const exec_instr *i);
/* Warps that wait as a whole become splits that wait, as all others are. */
void core_barrier_settle(core_block *block);
void core_barrier_recheck(core_block *block); /* threads have exited */
/* Those that wait at a place that is no barrier try again. */
void core_barrier_retry(core_block *block, uint32_t id);
/* barrier.cluster.arrive and .wait, likewise. */
bool core_cluster_barrier(core_warp *w, const exec_instr *i);
void core_cluster_exit(core_warp *w, uint32_t lanes); /* these lanes have exited */
/* The cluster's barrier opens for this block: those that wait at it go on. */
void core_barrier_open_cluster(core_block *block);
/* trace: what the warp owes of the cluster's barrier. */
void core_cluster_trace(core_warp *w, bool arrive_only);

/* ---- blocks (block.c) ---- */
typedef enum block_result { BLOCK_DONE, BLOCK_YIELD, BLOCK_PULLED } block_result;
core_block *core_block_start(core_worker *worker, core_launch *launch, uint64_t index);
block_result core_block_run(core_block *block);
void core_block_end(core_block *block); /* finished: statistics, chunk, context back to the pool */
void core_block_abort(core_block *block);
void core_block_destroy(core_block *block);
/* ---- clusters (cluster.c) ---- */
/* Where `bytes` bytes at an offset of the window of shared memory are: the block's own, or those of another block of
 * its cluster. NULL: nowhere. */
unsigned char *core_shared_at(const core_warp *w, uint64_t offset, uint32_t bytes);
/* The address of offset `from` of block `rank`, and the rank that an address belongs to. */
uint32_t core_shared_map(const core_warp *w, uint32_t from, uint32_t rank);
uint32_t core_shared_rank(const core_warp *w, uint64_t offset);
/* The coordinates of block `index` of the launch, in the order in which blocks start: cluster by cluster. */
void core_cluster_place(const core_launch *launch, uint64_t index, uint32_t ctaid[3]);
/* Runs the blocks of a cluster in turn until all are done, or none does more than wait. */
block_result core_cluster_run(core_cluster *cluster);
/* warp_check.c: assert the invariants between two turns, and those of a block that has finished. */
void core_warp_check(const core_warp *w);
void core_block_check(const core_block *block);
void core_block_check_end(const core_block *block);

/* Declared uses (declared_access.c): launch->ranges, if they are the same for all blocks; block->ranges. */
void core_declared_prepare(core_launch *launch);
void core_declared_start(core_block *block);

/* A function that the virtual GPU provides itself (host_call.c). */
void core_host_call(core_warp *w, const exec_instr *i);
/* One of dynamic parallelism's (children.c), for one lane: its arguments (dim3: three words), what it returns. */
uint64_t core_child_call(core_warp *w, const exec_instr *i, uint32_t lane);
/* The launch has finished: what its threads launched, in the order in which it runs, goes to the request. */
void core_children_finish(core_launch *launch);
/* The value of a special register for all lanes. i->aux is the ptx_sreg. */
void core_read_sreg(core_warp *w, const exec_instr *i);

#endif
