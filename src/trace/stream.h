/* SPDX-License-Identifier: Apache-2.0 */
/* The access stream: all data from the functional half (driver/, exec/) to the timing half (machine/, paging/).
 *
 * A *program* is a list of operations (allocations, copies, launches, events, synchronisations) in the order in which
 * the host made them. A launch has one *chunk* per thread block; a chunk has one record stream per warp. One writer
 * side (any number of exec threads), any number of *readers* (one per simulated manager), each at its own pace.
 *
 *   host thread: trace_op_append()  -> list of trace_op    -> each reader: trace_reader_next_op()
 *   exec thread: trace_chunk_begin(), trace_put_*(), trace_chunk_publish()
 *                                   -> per launch, by block -> each reader: trace_reader_chunk(launch, block)
 *
 * Invariants (equations and their check: trace_check.c)
 *   - readers see a chunk after its block has finished (it is published); it is complete then, each warp's stream ends
 *     with its only EXIT, and the chunk does not change any more;
 *   - operations and chunks are freed when the last reader is past them.
 *
 * How memory stays bounded: record pages beyond the budget go to an unlinked temporary file as they fill, and are read
 * back by the readers; trace_block_wait() keeps exec from *starting* blocks that no reader will need soon. A running
 * block does not wait for readers, so blocks that wait for each other cannot deadlock with the throttle. A writer waits
 * for readers that work, not for one that waits itself (trace_private.h argues why that suffices).
 *
 * Record words (uint64_t, in a warp's stream, in program order of that warp):
 *   ISSUE   kind:4 | n:16 warp instructions | memory:16 extra cycles of shared/local/constant passes | sfu:14 | fp64:14
 *           n counts all instructions of the burst, sfu and fp64 say how many of them go to those units. The
 *           instruction that makes an ACCESS is counted in an ISSUE too (before the ACCESS).
 *   ACCESS  kind:4 | op:2 | log2 bytes per lane:3 | flags:7 | lines:8 | passes:8 | pc:32, then a word with the active
 *           mask in the low 32 bits, then `lines` words: line number (address / 128) << 10 | lanes:6 << 4 | sectors:4.
 *           passes: cycles in which the L1's banks serve the lanes, as they do shared memory (coalesce.h); 0: no more
 *           than looking up the lines takes, TRACE_LOOKUPS_MAX in a cycle.
 *   WAIT    kind:4 | early:1 | late:1 | unused:26 | k:32: the k-th youngest load (0: the youngest) of this warp must have
 *           arrived. early: in the order of the PTX; a compiler would let the warp go on, to a late WAIT for the same
 *           load. Both are only in streams that have UNITS. For readers in the order of the PTX a late WAIT is nothing,
 *           and what it cuts from an ISSUE belongs to it.
 *           Loads are the ACCESS records with op load, without flag ASYNC_COPY, or atomic with flag RETURNS, and the
 *           SPILLs that load, numbered as they appear.
 *   BARRIER kind:4 | id:8 | flags:4 (1: arrive only, does not wait) | expected:16 arrivals | unused:32
 *           written for each warp when the barrier completed; `expected` is how many BARRIER records, over the whole
 *           block, belong to this completion.
 *   ENTER   kind:4 | trips:28 of the block's loop, as known before it from registers; 0: not known | pc:32
 *   LEAVE   kind:4 | unused:28 | pc:32. Both are of an offload candidate (offload/candidates.h): lanes of the warp enter
 *           it, and all of them have left it; pc is the block's first instruction. Only in streams that
 *           are asked for them (trace_program_mark); pairs do not nest, and between the two is no BARRIER and nothing
 *           of other lanes.
 *
 * An ISSUE holds what a warp executes until its next ACCESS, WAIT, BARRIER or EXIT, or as much of that as fits. A mark
 * cuts one in two, but where one is full does not depend on marks: two ISSUEs with nothing but marks between them are
 * one ISSUE without the marks exactly if both fit into one (trace_copy_word). So a stream whose marks are left out is,
 * word by word, that of a program that is not asked for marks.
 *   EXIT    the last record of every warp.
 *   UNITS   kind:4 | nine counts of 6 bits (trace_unit, as far as LOADS) | half:1 | a count of 5 bits, of HALF or, if
 *           half is 0, of PRODUCTS; behind an ISSUE: what a compiler makes of its instructions for the machine
 *           (ptx/analysis/machine_code.h). With half and without that count it has, in the place of the nine, one count
 *           of 21 bits, of MINMAX. Several behind one ISSUE add up. Only in streams that have them
 *           (trace_program_units); there, an ISSUE without one takes no time.
 *   ASYNC   kind:4 | id:8 | what:4 (trace_async) | count:16 | unused:32, of copies that no register waits for: ACCESS
 *           records with flag ASYNC_COPY, which are no loads.
 *           GROUP: the warp's copies since its last GROUP are a group. WAIT_GROUPS: all its groups but the `count`
 *           youngest must have arrived. ARRIVE: it arrives at mbarrier `id` of its block; ARRIVE_COPIED: as soon as all
 *           that it has copied so far has arrived. AWAIT: it waits for `count` more arrivals at mbarrier `id`, over the
 *           whole block, than its last AWAIT of that id (its first: than none). They are in the chunk.
 *           ARRIVE_FAR, ARRIVE_FAR_COPIED: the same at mbarrier `id` of the block that is `count` further in the launch
 *           (16 bits with a sign), of the same cluster. AWAIT_FAR: `count` more such arrivals at mbarrier `id` of its
 *           block than its last AWAIT_FAR of that id. They are in the chunks of other blocks of the cluster.
 *   SPILL   kind:4 | store:1 | words:3 | sectors:4 | slot:16 | unused:4 | pc:32: registers that the kernel may not have
 *           (ptx/analysis/spills.h): before instruction pc, `words` (1 to 4) of each lane go to its local memory, or
 *           come back. Words of all lanes lie side by side, a line for each; `slot` is the first one's number in what
 *           the thread's spills take. sectors: those of lanes that take part. It is counted in no ISSUE: the program
 *           has no such instruction. */
#ifndef FF_TRACE_STREAM_H
#define FF_TRACE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef enum trace_kind {
  TRACE_END = 0, /* zero word: end of a page; readers do not see it */
  TRACE_ISSUE,
  TRACE_ACCESS,
  TRACE_WAIT,
  TRACE_BARRIER,
  TRACE_ENTER,
  TRACE_LEAVE,
  TRACE_EXIT,
  TRACE_UNITS,
  TRACE_ASYNC,
  TRACE_SPILL,
} trace_kind;

typedef enum trace_async {
  TRACE_GROUP,
  TRACE_WAIT_GROUPS,
  TRACE_ARRIVE,
  TRACE_ARRIVE_COPIED,
  TRACE_AWAIT,
  TRACE_ARRIVE_FAR,
  TRACE_ARRIVE_FAR_COPIED,
  TRACE_AWAIT_FAR,
  TRACE_ASYNC_COUNT,
} trace_async;

typedef enum trace_unit { /* of machine instructions, as ptx_pipe says */
                          TRACE_SLOTS,
                          TRACE_FMA,
                          TRACE_ALU,
                          TRACE_XU,
                          TRACE_FP64,
                          TRACE_LSU,
                          TRACE_TENSOR,
                          TRACE_CHAIN,
                          TRACE_LOADS,
                          TRACE_PRODUCTS, /* of integers: they are in FMA, too */
                          TRACE_HALF,
                          TRACE_MINMAX, /* of integers: they are in ALU, too */
                          TRACE_UNIT_COUNT,
} trace_unit;

/* Counts while they are added up: three to a word, of 21 bits each, which is room for what one ISSUE can have. */
enum { TRACE_UNIT_WORDS = 4, TRACE_UNIT_BITS = 21 };
typedef struct trace_counts {
  uint64_t word[TRACE_UNIT_WORDS];
} trace_counts;

typedef enum trace_access_op { TRACE_LOAD, TRACE_STORE, TRACE_ATOMIC, TRACE_PREFETCH } trace_access_op;
enum {                        /* ACCESS flags */
       TRACE_BYPASS_L1 = 1,   /* .cg .cv volatile relaxed...: served by the L2 */
       TRACE_READ_ONLY = 2,   /* .nc */
       TRACE_RETURNS = 4,     /* an atomic whose result is used: counts as a load */
       TRACE_STREAMING = 8,   /* .cs .lu */
       TRACE_ASYNC_COPY = 16, /* of a load: an asynchronous copy to shared memory; ASYNC records wait for it */
       TRACE_BULK = 32,       /* made by the SM's engine for bulk copies, not by its load/store unit */
       /* a cache hint: in the L2 its lines are evicted first (with STREAMING), else last */
       TRACE_L2_PRIORITY = 64,
};

/* Which of its lines the L2 evicts (PTX ISA, "Cache Eviction Priority Hints"; CUDA C++ Programming Guide, "L2 Access
 * Properties"). PLAIN: an access without a property, which leaves that of a line as it is. */
typedef enum trace_l2_priority {
  TRACE_L2_PLAIN,
  TRACE_L2_FIRST,  /* evict_first, streaming */
  TRACE_L2_LAST,   /* evict_last, persisting */
  TRACE_L2_NORMAL, /* normal: a line that persisted does no longer */
} trace_l2_priority;

#define TRACE_EARLY 16u /* of a WAIT: one of a pair for the same load */
#define TRACE_LATE 32u
#define TRACE_LOOKUPS_MAX 8u
#define TRACE_LINE_BYTES 128u
#define TRACE_SECTOR_BYTES 32u
#define TRACE_TRIPS_MAX ((1u << 28) - 1)
#define TRACE_ISSUE_MAX 0x3fffu /* instructions, and extra cycles, of one ISSUE */
#define TRACE_SPILL_WORDS 4u    /* of one SPILL, at most */
#define TRACE_SPILL_SLOTS 0x10000u

static inline trace_kind trace_word_kind(uint64_t word) { return (trace_kind)(word & 15); }

/* ---- decoding (readers) ---- */
static inline uint32_t trace_issue_count(uint64_t w) { return w >> 4 & 0xffff; }
static inline uint32_t trace_issue_memory(uint64_t w) { return w >> 20 & 0xffff; }
static inline uint32_t trace_issue_sfu(uint64_t w) { return w >> 36 & 0x3fff; }
static inline uint32_t trace_issue_fp64(uint64_t w) { return (uint32_t)(w >> 50 & 0x3fff); }
static inline uint32_t trace_count(const trace_counts *counts, trace_unit unit) {
  return (uint32_t)(counts->word[unit / 3] >> unit % 3 * TRACE_UNIT_BITS) & ((1u << TRACE_UNIT_BITS) - 1);
}
/* Of an UNITS: it has PRODUCTS or HALF; it has MINMAX, and nothing else. */
static inline bool trace_units_further(uint64_t w) { return w >> 58 > 1; }
static inline bool trace_units_minmax(uint64_t w) { return w >> 58 == 1; }
static inline void trace_add_units(trace_counts *to, uint64_t w) { /* the counts of an UNITS */
  if (__builtin_expect(trace_units_minmax(w), 0)) {
    to->word[TRACE_MINMAX / 3] += (w >> 4 & ((1u << TRACE_UNIT_BITS) - 1)) << TRACE_MINMAX % 3 * TRACE_UNIT_BITS;
    return;
  }
  for (int i = 0; i < TRACE_UNIT_WORDS - 1; i++) {
    uint64_t three = w >> (4 + 18 * i);
    to->word[i] += (three & 63) | (three >> 6 & 63) << TRACE_UNIT_BITS | (three >> 12 & 63) << 2 * TRACE_UNIT_BITS;
  }
  to->word[TRACE_UNIT_WORDS - 1] += (w >> 59) << (w >> 58 & 1) * TRACE_UNIT_BITS;
}
static inline bool trace_counts_some(const trace_counts *counts) {
  return counts->word[0] | counts->word[1] | counts->word[2] | counts->word[3];
}
static inline bool trace_issues_fit(uint64_t a, uint64_t b) { /* into one */
  return trace_issue_count(a) + trace_issue_count(b) <= TRACE_ISSUE_MAX &&
         trace_issue_memory(a) + trace_issue_memory(b) <= TRACE_ISSUE_MAX;
}
static inline trace_access_op trace_access_operation(uint64_t w) { return (trace_access_op)(w >> 4 & 3); }
static inline uint32_t trace_access_bytes(uint64_t w) { return 1u << (w >> 6 & 7); }
static inline uint32_t trace_access_flags(uint64_t w) { return w >> 9 & 0x7f; }
static inline uint32_t trace_access_lines(uint64_t w) { return w >> 16 & 0xff; }
static inline uint32_t trace_access_passes(uint64_t w) { return w >> 24 & 0xff; }
static inline uint32_t trace_access_pc(uint64_t w) { return (uint32_t)(w >> 32); }
static inline uint64_t trace_line_address(uint64_t l) { return (l >> 10) * TRACE_LINE_BYTES; }
static inline uint32_t trace_line_lanes(uint64_t l) { return l >> 4 & 0x3f; }
static inline uint32_t trace_line_sectors(uint64_t l) { return l & 15; }
static inline uint32_t trace_wait_k(uint64_t w) { return (uint32_t)(w >> 32); }
static inline bool trace_wait_early(uint64_t w) { return w & TRACE_EARLY; }
static inline bool trace_wait_late(uint64_t w) { return w & TRACE_LATE; }
static inline uint32_t trace_enter_trips(uint64_t w) { return (uint32_t)(w >> 4) & TRACE_TRIPS_MAX; }
static inline uint32_t trace_mark_pc(uint64_t w) { return (uint32_t)(w >> 32); } /* of ENTER and LEAVE */
static inline uint32_t trace_barrier_id(uint64_t w) { return w >> 4 & 0xff; }
static inline bool trace_barrier_arrive_only(uint64_t w) { return w >> 12 & 1; }
static inline uint32_t trace_barrier_expected(uint64_t w) { return w >> 16 & 0xffff; }
static inline uint32_t trace_async_id(uint64_t w) { return w >> 4 & 0xff; }
static inline trace_async trace_async_what(uint64_t w) { return (trace_async)(w >> 12 & 15); }
static inline uint32_t trace_async_count(uint64_t w) { return w >> 16 & 0xffff; }
static inline int32_t trace_async_away(uint64_t w) { return (int16_t)(w >> 16 & 0xffff); }
static inline bool trace_async_far(uint64_t w) { return trace_async_what(w) >= TRACE_ARRIVE_FAR; }
static inline bool trace_spill_stores(uint64_t w) { return w >> 4 & 1; }
static inline uint32_t trace_spill_words(uint64_t w) { return w >> 5 & 7; }
static inline uint32_t trace_spill_sectors(uint64_t w) { return w >> 8 & 15; }
static inline uint32_t trace_spill_slot(uint64_t w) { return w >> 12 & 0xffff; }
static inline uint32_t trace_spill_pc(uint64_t w) { return (uint32_t)(w >> 32); }
/* Of an ACCESS: a WAIT may name it. */
static inline bool trace_access_is_load(uint64_t w) {
  trace_access_op op = trace_access_operation(w);
  return (op == TRACE_LOAD && !(trace_access_flags(w) & TRACE_ASYNC_COPY)) ||
         (op == TRACE_ATOMIC && trace_access_flags(w) & TRACE_RETURNS);
}

/* ---- operations ---- */

typedef enum trace_op_kind {
  TRACE_OP_ALLOC,
  TRACE_OP_FREE,
  TRACE_OP_COPY,
  TRACE_OP_SET,
  TRACE_OP_LAUNCH,
  TRACE_OP_STREAM_CREATE,
  TRACE_OP_STREAM_DESTROY,
  TRACE_OP_EVENT_RECORD,
  TRACE_OP_STREAM_WAIT, /* stream waits for event */
  TRACE_OP_SYNC_STREAM,
  TRACE_OP_SYNC_EVENT,
  TRACE_OP_SYNC_DEVICE, /* the host waits */
  TRACE_OP_HOST,        /* an API call that only costs host time (a query, ...) */
  /* the host read or wrote managed memory, some of each page; 0 bytes: from here on such touches are recorded */
  TRACE_OP_HOST_TOUCH,
  TRACE_OP_ADVISE,
  TRACE_OP_PREFETCH, /* cudaMemAdvise, cudaMemPrefetchAsync */
  TRACE_OP_MODULE,   /* code of the launches that follow; takes no time */
  /* Virtual memory management: addresses and memory apart. None of these waits for the device. */
  TRACE_OP_RESERVE,
  TRACE_OP_UNRESERVE, /* a range of addresses (cuMemAddressReserve, cuMemAddressFree) */
  /* memory without an address (cuMemCreate); released, it stays while it is mapped somewhere */
  TRACE_OP_CREATE,
  TRACE_OP_RELEASE,
  /* cuMemMap; cuMemUnmap of all mappings in the range, each of which lies in it whole */
  TRACE_OP_MAP,
  TRACE_OP_UNMAP,
  TRACE_OP_SET_ACCESS, /* cuMemSetAccess */
  /* launches of this stream from here on have blocks only on some SMs (a green context's); takes no time */
  TRACE_OP_STREAM_SMS,
  TRACE_OP_PROFILE, /* cudaProfilerStart, cudaProfilerStop; takes no time */
  TRACE_OP_RANGE,   /* a range of the program's own (NVTX) begins or ends; takes no time */
  TRACE_OP_END,     /* the program is over */
} trace_op_kind;

typedef enum trace_memory_kind {
  TRACE_MEMORY_DEVICE,  /* cudaMalloc, module variables */
  TRACE_MEMORY_MANAGED, /* cudaMallocManaged, __managed__ */
  TRACE_MEMORY_PINNED,  /* cudaHostAlloc, cudaHostRegister: the GPU reaches it over the link */
  TRACE_MEMORY_HOST,    /* pageable host memory (copies only) */
} trace_memory_kind;

typedef enum trace_direction { TRACE_H2D, TRACE_D2H, TRACE_D2D, TRACE_H2H } trace_direction;

typedef enum trace_advice { /* numbered as CUDA does */
                            TRACE_ADVICE_SET_READ_MOSTLY = 1,
                            TRACE_ADVICE_UNSET_READ_MOSTLY,
                            TRACE_ADVICE_SET_PREFERRED_LOCATION,
                            TRACE_ADVICE_UNSET_PREFERRED_LOCATION,
                            TRACE_ADVICE_SET_ACCESSED_BY,
                            TRACE_ADVICE_UNSET_ACCESSED_BY,
} trace_advice;

#define TRACE_STREAM_LEGACY 0u       /* the default stream: waits for all blocking streams and they for it */
#define TRACE_STREAM_NON_BLOCKING 1u /* flag of TRACE_OP_STREAM_CREATE */

#define TRACE_SMS_MAX 256u
/* SM i: bit i % 64 of mask[i / 64]; none: every SM of the device */
typedef struct trace_sms {
  uint64_t mask[TRACE_SMS_MAX / 64];
} trace_sms;

#define TRACE_RANGE_NAME_BYTES 80u

typedef struct trace_launch trace_launch;

typedef struct trace_op {
  trace_op_kind kind;
  uint32_t stream;   /* stream number; 0 is the legacy default stream; numbers are not reused */
  uint64_t sequence; /* position in the program, from 0; set by trace_op_append */
  bool blocking;     /* the host call returns only when the operation is over (cudaMemcpy) */
  union {
    /* initialised: a module variable; name: "cudaMalloc #3" or a variable's; system: memory of the program's own, which
     * kernels may touch as if it were managed: it was allocated by no call */
    struct {
      uint64_t address, bytes;
      trace_memory_kind memory;
      uint32_t id;
      char name[64];
      bool initialised, system;
    } alloc;
    /* RESERVE has `alloc`, too; CREATE with an id of its own kind; address: a multicast object's devices, a bit each */
    struct {
      uint64_t address;
      uint32_t id;
    } free; /* RELEASE: the CREATE's id, no address */
    /* memory: the CREATE's id; UNMAP, SET_ACCESS, UNRESERVE: only the range */
    struct {
      uint64_t address, bytes, offset;
      uint32_t memory;
    } map;
    /* width/height/pitches in bytes: a 1D copy has height 1. Pageable host memory has address 0. */
    struct {
      uint64_t to, from, width, height, to_pitch, from_pitch;
      trace_direction direction;
      bool pinned;
      bool file; /* the host's side is a file's bytes (cuFile) */
    } copy;
    struct {
      uint64_t to, width, height, pitch;
    } set;
    trace_launch *launch;
    struct {
      uint32_t flags;
    } stream_create;
    trace_sms sms; /* STREAM_SMS */
    struct {
      bool start;
    } profile;
    /* number: from 1, not used again. Of one that begins: thread: of the program's, from 0 in the order of their first
     * ranges; started: any thread may end it (else it was pushed); name: "conv", or "domain:conv" with the length of
     * the domain's name in `domain` (0: the default domain) */
    struct {
      uint64_t number;
      uint32_t thread;
      bool begin, started;
      uint8_t domain;
      char name[TRACE_RANGE_NAME_BYTES];
    } range;
    /* EVENT_RECORD, STREAM_WAIT, SYNC_EVENT; a number per *recording*, not reused */
    struct {
      uint32_t event;
    } event;
    struct {
      uint64_t address, bytes;
      bool write;
    } touch;
    struct {
      uint64_t address, bytes;
      int32_t advice, device;
    } hint; /* a trace_advice; device -1: the CPU */
    /* a translation unit of it; the text lives as long as the program (trace_keep) */
    struct {
      const char *ptx;
      uint64_t bytes;
      uint32_t id;
    } module;
  };
} trace_op;

struct trace_chunk;

#define TRACE_USES_MAX 64u
typedef struct trace_use {
  uint64_t address, bytes;
} trace_use; /* an allocation, whole */

/* A number for a function's name in the PTX, which may be any length: FNV-1a of 64 bits, not 0. */
static inline uint64_t trace_symbol(const char *name) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (; *name; name++) hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
  return hash ? hash : 1;
}

#define TRACE_RANGE_BYTES 128u
#define TRACE_SITE_BYTES 40u
#define TRACE_CARVE_OUT_MAX 101u
#define TRACE_L2_SHARE 65536u

/* What a launch finds of the program's L2 controls. All 0: it has none. */
typedef struct trace_l2_controls {
  uint64_t set_aside; /* bytes of the L2 for lines that persist (cudaLimitPersistingL2CacheSize) */
  uint32_t resets;    /* calls of cudaCtxResetPersistingL2Cache so far */
  /* Its access policy window (cudaAccessPolicyWindow): `share` of 65536 of the lines in the range, chosen by
   * trace_l2_share, are accessed with priority `hit`, the others with `miss`. 0 bytes: it has none */
  uint32_t share;
  uint64_t address, bytes;
  uint8_t hit, miss; /* trace_l2_priority */
} trace_l2_controls;

static inline bool trace_l2_controls_some(const trace_l2_controls *c) { return c->set_aside || c->resets || c->bytes; }

/* A share of all lines that does not depend on where they are: those of which this is below it, of 65536. */
static inline uint32_t trace_l2_share(uint64_t address) {
  return (uint32_t)(address / TRACE_LINE_BYTES * UINT64_C(0x9e3779b97f4a7c15) >> 48);
}

struct trace_launch { /* immutable once appended, but for the chunk table behind it */
  char kernel[256];   /* demangled where possible */
  /* of the program (NVTX), in which it launched; outer ones first, with a / between them; "": none */
  char range[TRACE_RANGE_BYTES];
  char site[TRACE_SITE_BYTES]; /* in the program, where it was made: "saxpy.cu:41"; "": not known */
  uint64_t id;                 /* launches from 0 */
  uint32_t grid[3], block[3];
  uint64_t blocks; /* grid product */
  uint32_t warps_per_block;
  uint32_t shared_bytes; /* static + dynamic, per block */
  uint32_t registers;    /* per thread */
  uint32_t kernel_index; /* the same number for the same kernel */
  uint8_t carve_out;     /* 1 + percent of shared memory that the program prefers the SM to have; 0: it does not say */
  bool cooperative;
  /* its code reads %smid, and block b was told the (b % smids)-th of the SMs that its stream may use; 0: it does not */
  uint32_t smids;
  uint32_t module; /* the TRACE_OP_MODULE operations of this number have its code, */
  uint64_t symbol; /* as the function of this name there (trace_symbol); 0: only `kernel` says which */
  uint32_t parameter_bytes;
  /* the kernel's parameters as the PTX lays them out; NULL: unknown. Set by trace_launch_set_parameters */
  const void *parameters;
  /* what the launch declares: allocations that its parameters point into (any aligned word of them */
  uint32_t use_count;
  /* that is such an address), and module variables that it names; each once, the first so many */
  trace_use uses[TRACE_USES_MAX];
  trace_l2_controls l2;
  struct trace_chunks *chunks; /* private to stream.c */
};

typedef struct trace_program trace_program;
typedef struct trace_reader trace_reader;
typedef struct trace_chunk trace_chunk;

/* memory_budget: bytes of record pages kept in memory before they go to the temporary file (0: 256 MiB). */
trace_program *trace_program_create(uint64_t memory_budget);
/* Before the first operation: no block starts while so many bytes lie in memory, unless a reader waits for it. For a
 * stream that is fed from a file: it comes as fast as it is read, and what lies in memory is better small enough for
 * the host's caches. */
void trace_program_limit(trace_program *program, uint64_t bytes);
/* Instead of writers in other threads: the program's only reader calls `pull`, in its own thread, when it finds
 * nothing. Each call appends an operation or goes on with the blocks of the last launch, and in the end appends
 * TRACE_OP_END. Before the first operation; the reader may wait for one already. */
void trace_program_pull(trace_program *program, void (*pull)(void *context), void *context);
/* Whether streams have ENTER and LEAVE; from the start they do not. Before the first operation. Without them the
 * records are those of a program without regions. */
void trace_program_mark(trace_program *program, bool marks);
bool trace_program_marks(const trace_program *program);
/* Whether streams have UNITS; from the start they do not. Before the first operation. */
void trace_program_units(trace_program *program, bool units);
bool trace_program_has_units(const trace_program *program);
void trace_program_free(trace_program *program); /* after all readers are gone */

/* Host side. Thread-safe. Copies *op, gives it its sequence number and returns that. For TRACE_OP_LAUNCH give a
 * trace_launch made by trace_launch_create; append the operation *before* running the kernel. Waits for readers that
 * work and are 65,536 operations behind, except with TRACE_OP_END. */
uint64_t trace_op_append(trace_program *program, const trace_op *op);
trace_launch *trace_launch_create(trace_program *program, uint64_t blocks, uint32_t warps_per_block);
void trace_launch_set_parameters(trace_launch *launch, const void *bytes, uint32_t count); /* copies them */
/* A copy of the text (NUL-terminated, too) that lives as long as the program. Thread-safe. */
const char *trace_keep(trace_program *program, const char *text, uint64_t bytes);
/* The kernel has stopped (whole or by a fault): chunks that were not published count as empty (every warp only
 * EXIT). */
void trace_launch_finish(trace_launch *launch);

/* exec side. True at once if block may start now; otherwise waits up to `milliseconds` for that (less than 0: as long
 * as it takes); returns whether it may. */
bool trace_block_wait(trace_launch *launch, uint64_t block, int milliseconds);

typedef struct trace_writer { /* one per warp; the fields are for the inline functions only */
  uint64_t *at, *end;         /* free words of the current page */
  trace_chunk *chunk;
  uint32_t warp;
  uint32_t issue, memory, sfu, fp64;                 /* pending ISSUE, not written yet, */
  uint32_t cut_issue, cut_memory, cut_sfu, cut_fp64; /* but for these, which were written before a mark */
  trace_counts units, cut_units;                     /* of it: UNITS to come, but for those already written */
  bool joins;                                        /* trace_copy_word: a mark was left out behind the pending ISSUE */
} trace_writer;

trace_chunk *trace_chunk_begin(trace_launch *launch, uint64_t block); /* by the thread that runs the block */
void trace_chunk_writer(trace_chunk *chunk, uint32_t warp, trace_writer *writer);
void trace_chunk_publish(trace_chunk *chunk); /* after trace_put_exit on every writer */
/* Of all its ISSUEs, after trace_put_exit on every writer: for checks that the stream has what was executed. */
uint64_t trace_chunk_instructions(const trace_chunk *chunk);
void trace_writer_grow(trace_writer *writer, uint32_t words); /* makes room for `words` consecutive words (slow path) */
void trace_writer_close(trace_writer *writer);                /* by trace_put_exit: the warp's stream is whole */
void trace_flush_cut(trace_writer *writer);               /* of a pending ISSUE, what no mark has cut off (slow path) */
void trace_put_mark(trace_writer *writer, uint64_t word); /* by trace_put_enter and trace_put_leave */

static inline uint64_t *trace_room(trace_writer *w, uint32_t words) {
  if (__builtin_expect(w->at + words > w->end, 0)) trace_writer_grow(w, words);
  uint64_t *at = w->at;
  w->at += words;
  return at;
}
bool trace_writer_has_units(const trace_writer *writer); /* its stream has UNITS */
void trace_put_units(trace_writer *writer);              /* of a pending ISSUE that was just written */
static inline void trace_flush_issue(trace_writer *w) {
  if (!w->issue && !w->memory) return;
  if (__builtin_expect(w->cut_issue || w->cut_memory, 0)) {
    trace_flush_cut(w);
    return;
  }
  *trace_room(w, 1) = TRACE_ISSUE | (uint64_t)w->issue << 4 | (uint64_t)w->memory << 20 | (uint64_t)w->sfu << 36 |
                      (uint64_t)w->fp64 << 50;
  w->issue = w->memory = w->sfu = w->fp64 = 0;
  if (trace_counts_some(&w->units)) trace_put_units(w);
}
/* n instructions, of which sfu and fp64 go to those units, and extra memory-pass cycles. n, memory < 8192 each call. */
static inline void trace_put_issue(trace_writer *w, uint32_t n, uint32_t memory, uint32_t sfu, uint32_t fp64) {
  if (__builtin_expect(w->issue + n > TRACE_ISSUE_MAX || w->memory + memory > TRACE_ISSUE_MAX, 0)) trace_flush_issue(w);
  w->issue += n;
  w->memory += memory;
  w->sfu += sfu;
  w->fp64 += fp64;
}
/* Units of what the last trace_put_issue counted. */
static inline void trace_count_units(trace_writer *w, const trace_counts *end, const trace_counts *begin) {
  for (int i = 0; i < TRACE_UNIT_WORDS; i++) w->units.word[i] += end->word[i] - begin->word[i];
}
/* The pending ISSUE, but for what was written before a mark, is forgotten: its instructions. */
static inline uint32_t trace_drop_issue(trace_writer *w) {
  uint32_t dropped = w->issue - w->cut_issue;
  w->issue = w->cut_issue, w->memory = w->cut_memory, w->sfu = w->cut_sfu, w->fp64 = w->cut_fp64;
  w->units = w->cut_units;
  return dropped;
}
/* The passes of an ACCESS as they stand in its word; more than fit count as the most. */
static inline uint64_t trace_passes_bits(uint32_t passes, uint32_t lines) {
  if (TRACE_LOOKUPS_MAX * passes < lines + TRACE_LOOKUPS_MAX) return 0;
  return (uint64_t)(passes < 0xff ? passes : 0xff) << 24;
}
/* Returns where the caller writes the `lines` line words (trace_line). lines is 1 to 64; passes as
 * trace_shared_passes. */
static inline uint64_t *trace_put_banked(trace_writer *w, trace_access_op op, uint32_t log2_bytes, uint32_t flags,
                                         uint32_t pc, uint32_t mask, uint32_t lines, uint32_t passes) {
  trace_flush_issue(w);
  uint64_t *at = trace_room(w, 2 + lines);
  at[0] = TRACE_ACCESS | (uint64_t)op << 4 | (uint64_t)log2_bytes << 6 | (uint64_t)flags << 9 | (uint64_t)lines << 16 |
          trace_passes_bits(passes, lines) | (uint64_t)pc << 32;
  at[1] = mask;
  return at + 2;
}
/* The same without bank conflicts. */
static inline uint64_t *trace_put_access(trace_writer *w, trace_access_op op, uint32_t log2_bytes, uint32_t flags,
                                         uint32_t pc, uint32_t mask, uint32_t lines) {
  return trace_put_banked(w, op, log2_bytes, flags, pc, mask, lines, 0);
}
static inline uint64_t trace_line(uint64_t address, uint32_t lanes, uint32_t sectors) {
  return address / TRACE_LINE_BYTES << 10 | (uint64_t)lanes << 4 | sectors;
}
static inline void trace_put_wait(trace_writer *w, uint32_t k) {
  trace_flush_issue(w);
  *trace_room(w, 1) = TRACE_WAIT | (uint64_t)k << 32;
}
/* pair: TRACE_EARLY or TRACE_LATE; 0: a WAIT of its own */
static inline void trace_put_paired_wait(trace_writer *w, uint32_t k, uint32_t pair) {
  trace_flush_issue(w);
  *trace_room(w, 1) = TRACE_WAIT | pair | (uint64_t)k << 32;
}
static inline void trace_put_barrier(trace_writer *w, uint32_t id, bool arrive_only, uint32_t expected) {
  trace_flush_issue(w);
  *trace_room(w, 1) = TRACE_BARRIER | (uint64_t)id << 4 | (uint64_t)arrive_only << 12 | (uint64_t)expected << 16;
}
static inline void trace_put_async(trace_writer *w, trace_async what, uint32_t id, uint32_t count) {
  trace_flush_issue(w);
  *trace_room(w, 1) = TRACE_ASYNC | (uint64_t)id << 4 | (uint64_t)what << 12 | (uint64_t)count << 16;
}
/* words: 1 to TRACE_SPILL_WORDS; slot: below TRACE_SPILL_SLOTS */
static inline void trace_put_spill(trace_writer *w, bool store, uint32_t words, uint32_t sectors, uint32_t slot,
                                   uint32_t pc) {
  trace_flush_issue(w);
  *trace_room(w, 1) = TRACE_SPILL | (uint64_t)store << 4 | (uint64_t)words << 5 | (uint64_t)sectors << 8 |
                      (uint64_t)slot << 12 | (uint64_t)pc << 32;
}
/* trips: more than TRACE_TRIPS_MAX count as that */
static inline void trace_put_enter(trace_writer *w, uint32_t pc, uint32_t trips) {
  trace_put_mark(w,
                 TRACE_ENTER | (uint64_t)(trips < TRACE_TRIPS_MAX ? trips : TRACE_TRIPS_MAX) << 4 | (uint64_t)pc << 32);
}
static inline void trace_put_leave(trace_writer *w, uint32_t pc) {
  trace_put_mark(w, TRACE_LEAVE | (uint64_t)pc << 32);
}
/* A record of one word from a stream with marks, into one without: it becomes the same as if it was written without
 * marks. */
static inline void trace_copy_word(trace_writer *w, uint64_t word) {
  switch (trace_word_kind(word)) {
  case TRACE_ENTER:
  case TRACE_LEAVE: w->joins = true; return;
  case TRACE_ISSUE:
    if (!w->joins || w->issue + trace_issue_count(word) > TRACE_ISSUE_MAX ||
        w->memory + trace_issue_memory(word) > TRACE_ISSUE_MAX)
      trace_flush_issue(w);
    w->issue += trace_issue_count(word);
    w->memory += trace_issue_memory(word);
    w->sfu += trace_issue_sfu(word);
    w->fp64 += trace_issue_fp64(word);
    w->joins = false;
    return;
  case TRACE_UNITS: trace_add_units(&w->units, word); return;
  default: trace_flush_issue(w); *trace_room(w, 1) = word;
  }
}
static inline void trace_put_exit(trace_writer *w) {
  trace_flush_issue(w);
  *trace_room(w, 1) = TRACE_EXIT;
  trace_writer_close(w);
}

/* ---- readers (one per simulated manager, each used by one thread) ---- */
#define TRACE_READERS_MAX 64u
/* Before the first operation is appended. NULL: there are TRACE_READERS_MAX already. */
trace_reader *trace_reader_create(trace_program *program);
/* The reader will only begin when the program has ended: neither the program nor the other readers wait for it; all
 * that it has not read is kept, in the temporary file if need be. Before the first operation is appended. */
void trace_reader_defer(trace_reader *reader);
/* Any time: the others go on without it. Chunks that it took and has not released (a simulation that was stopped) stay
 * until the program is freed. */
void trace_reader_free(trace_reader *reader);
/* The next operation; waits for it. The pointer lives until the next call. NULL only after TRACE_OP_END. */
const trace_op *trace_reader_next_op(trace_reader *reader);
bool trace_reader_has_op(trace_reader *reader); /* true: next_op will not wait */
/* Waits until there is an operation (or the program has ended: true) or trace_reader_poke was called since the last
 * return (false). For a reader that also answers questions of other threads. */
bool trace_reader_wait(trace_reader *reader);
void trace_reader_poke(trace_reader *reader); /* any thread */
/* Around each wait of the reader's thread for another reader, and when it has come to its end: meanwhile no writer
 * waits for this one. By that thread. */
void trace_reader_waits(trace_reader *reader, bool waits);
/* The reader wants no further block of this launch; those it has taken it still releases. */
void trace_reader_skip(trace_reader *reader, trace_launch *launch);

typedef struct trace_cursor { /* a position in one warp's stream */
  const uint64_t *at;
  void *page; /* private */
  trace_chunk *chunk;
  uint32_t warp;
  uint32_t loaded; /* private: words of a spilled page that were read back so far */
  void *buffer;    /* private: where they are */
} trace_cursor;
/* The chunk of `block`; waits until it is published. Each reader takes each block of a launch exactly once, in
 * order. */
trace_chunk *trace_reader_chunk(trace_reader *reader, trace_launch *launch, uint64_t block);
/* Asks the host's caches for what opening a cursor of each warp will read. */
void trace_chunk_prefetch(const trace_chunk *chunk);
void trace_cursor_open(trace_reader *reader, trace_chunk *chunk, uint32_t warp, trace_cursor *cursor);
const uint64_t *trace_cursor_turn(trace_reader *reader, trace_cursor *cursor); /* to the next page (slow path) */
/* The next record's first word (an ACCESS's further words follow it in memory); valid until the next call. Not to be
 * called again after EXIT. */
static inline const uint64_t *trace_cursor_next(trace_reader *reader, trace_cursor *cursor) {
  const uint64_t *record = cursor->at;
  if (__builtin_expect(trace_word_kind(*record) == TRACE_END, 0)) record = trace_cursor_turn(reader, cursor);
  cursor->at = record + (trace_word_kind(*record) == TRACE_ACCESS ? 2 + trace_access_lines(*record) : 1);
  return record;
}
/* What a reader leaves out of a stream: an ISSUE that it cuts in two is one again. */
enum { TRACE_NO_MARKS = 1, TRACE_NO_LATE_WAITS = 2 };
/* Behind an ISSUE that was just read: the UNITS that belong to it are read, too, and added up in *units, and what is
 * left out is skipped. Returns the whole ISSUE. */
uint64_t trace_cursor_issue(trace_reader *reader, trace_cursor *cursor, uint64_t issue, uint32_t left_out,
                            trace_counts *units);
void trace_cursor_close(trace_reader *reader, trace_cursor *cursor); /* gives its buffer back; before the release */
/* The reader is done with the chunk (all its warps reached EXIT). */
void trace_reader_release(trace_reader *reader, trace_chunk *chunk);

typedef struct trace_usage {
  uint64_t memory_bytes, peak_memory_bytes, spilled_bytes, words;
  /* errno of what ended the use of the temporary file: since then all is kept in memory; 0: nothing did */
  int spill_error;
} trace_usage;
trace_usage trace_program_usage(trace_program *program);

#endif
