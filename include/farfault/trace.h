/* SPDX-License-Identifier: Apache-2.0 */
/* Traces: recorded programs, written and read by other programs than farfault. A trace is everything that a GPU program
 * did to memory: what it allocated, copied and launched, and every access of every warp. `farfault sim` simulates it.
 *
 *   cc $(pkg-config --cflags farfault-trace) mine.c $(pkg-config --libs farfault-trace)
 *
 *   write:  ff_trace_create -> ff_trace_put_operation ... ff_trace_put_launch, then for its warps in order:
 *           ff_trace_begin_warp, ff_trace_put_access, ff_trace_put_record ... -> ff_trace_finish (or ff_trace_discard)
 *   read:   ff_trace_open -> ff_trace_next ... -> ff_trace_close
 *
 * Guarantees
 *   - a function that returns FF_TRACE_OK left *error untouched; any other left a message there that names the thing
 *     and the place;
 *   - what is refused is not written, and the writer can be used on; what was written can be read;
 *   - the file has its name only when it is whole;
 *   - the same calls give the same bytes.
 * A writer or a reader is used by one thread at a time; different ones do not know of each other. A host that is out of
 * memory ends the process (exit 70): a trace takes a few megabytes, whatever its size.
 *
 * Addresses are the GPU's, below 2^56; sizes are bytes. docs/trace.md has the file's format. */
#ifndef FARFAULT_TRACE_H
#define FARFAULT_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define FF_TRACE_API __attribute__((visibility("default")))
#else
#define FF_TRACE_API
#endif

/* Of this interface: raised when a program has to be compiled again. The library's own is
 * ff_trace_library_version(). */
#define FF_TRACE_VERSION 1u
/* Of the files that this library writes. */
#define FF_TRACE_FORMAT 16384u

FF_TRACE_API uint32_t ff_trace_library_version(void);

typedef enum ff_trace_status {
  FF_TRACE_OK = 0,
  FF_TRACE_INVALID,  /* an argument, or a call at the wrong time: nothing was done */
  FF_TRACE_IO,       /* the system refused: the file cannot be read or written */
  FF_TRACE_NO_TRACE, /* the file is no trace, or one of another format */
  FF_TRACE_DAMAGED   /* a part of the file is lost; the reader goes on behind it */
} ff_trace_status;

typedef struct ff_trace_error {
  ff_trace_status status;
  char message[1024]; /* ended by NUL, without a line end */
} ff_trace_error;     /* every `error` below may be NULL */

/* ---- records: what a warp does ----
 *
 * Words of 64 bits, in the order in which the warp does it. The lowest four bits say what it is:
 *
 *   ISSUE   n:16 instructions at bit 4 | memory:16 at 20 | sfu:14 at 36 | fp64:14 at 50
 *           A burst of n warp instructions, of which sfu go to the special function unit and fp64 to that for double
 *           precision; `memory` are cycles that accesses to shared, local and constant memory take beyond their first.
 *           The instruction of an ACCESS is counted in an ISSUE before it.
 *   ACCESS  op:2 at 4 | log2 of the bytes per lane:3 at 6 | flags:7 at 9 | lines:8 at 16 | passes:8 at 24 | pc:32 at 32
 *           An access to global memory. Then a word with the mask of the lanes that take part, and `lines` (1 to 64)
 *           words, one per line of 128 bytes: address / 128 at bit 10 | lanes:6 at 4 | sectors:4 at 0 (of 32 bytes, bit
 *           0 the first). passes: cycles in which 32 banks of 4 bytes serve the lanes; 0: fewer than the lines take,
 *           eight looked up in a cycle. ff_trace_put_access finds it.
 *   WAIT    early:1 at 4 | late:1 at 5 | k:32 at 32
 *           The warp needs the value of its k-th youngest load (0: the youngest). Loads are the ACCESS records with op
 *           LOAD and without the flag ASYNC_COPY, or ATOMIC with the flag RETURNS. early: in the order of the PTX;
 *           machines on which a compiler moves loads up go on, to a late WAIT for the same load, which is nothing to
 *           the others.
 *   BARRIER id:8 at 4 | arrive only:1 at 12 | expected:16 at 16
 *           It arrives at a barrier of its block, and waits there unless it only arrives; `expected` arrivals open it.
 *   ENTER   trips:28 at 4 | pc:32 at 32
 *           The warp comes to a block of the kernel's code that may run near its data; pc is the block's first
 *           instruction, trips how often its loop will run as far as that is known before it (0: it is not known).
 *   LEAVE   pc:32 at 32
 *           It has left that block. Pairs do not nest, and have no BARRIER and no EXIT in them. Simulations without
 *           offloading run as if neither were there.
 *   EXIT    the warp's last record.
 *   UNITS   nine counts of 6 bits at 4, 10 ... 52 (ff_trace_unit, as far as LOADS) | half:1 at 58 | a count:5 at 59, of
 *           HALF or, if half is 0, of PRODUCTS; with half and without that count: MINMAX:21 at 4, and nothing else
 *           Only behind an ISSUE; several add up: what a compiler makes of its instructions for the machine. A trace in
 *           which any ISSUE has them has them for all: one without takes no time on machines with execution pipes.
 *   ASYNC   id:8 at 4 | what:4 at 12 (ff_trace_async) | count:16 at 16
 *           Of asynchronous copies, ACCESS records with the flag ASYNC_COPY, for which no WAIT waits. GROUP: what the
 *           warp has copied since its last GROUP is a group. WAIT_GROUPS: all its groups but the `count` youngest must
 *           have arrived. ARRIVE: it arrives at mbarrier `id` of its block; ARRIVE_COPIED: the same, but not before all
 *           that it has copied so far has arrived. AWAIT: it waits until all warps of the block have made `count` more
 *           arrivals at mbarrier `id` than its last AWAIT of this id waited for (its first: than none). ARRIVE_FAR,
 *           ARRIVE_FAR_COPIED: an arrival at mbarrier `id` of another block of its cluster, the one that is `count`
 *           further in the launch, as a 16-bit number with a sign; AWAIT_FAR: as AWAIT, of such arrivals, which are
 *           counted by themselves.
 *   SPILL   store:1 at 4 | words:3 at 5 | sectors:4 at 8 | slot:16 at 12 | pc:32 at 32
 *           Registers that the kernel may not have: before instruction pc, `words` (1 to 4) of each lane go to its
 *           local memory, or come back; a line for each, with the words of all lanes side by side. slot: the first
 *           one's number among those of the thread; sectors: those of lanes that take part (bit 0: lanes 0 to 7). One
 *           that loads is a load that a WAIT can name. In no ISSUE: the program has no such instruction. */
typedef enum ff_trace_record_kind {
  FF_TRACE_ISSUE = 1,
  FF_TRACE_ACCESS,
  FF_TRACE_WAIT,
  FF_TRACE_BARRIER,
  FF_TRACE_ENTER,
  FF_TRACE_LEAVE,
  FF_TRACE_EXIT,
  FF_TRACE_UNITS,
  FF_TRACE_ASYNC,
  FF_TRACE_SPILL
} ff_trace_record_kind;

typedef enum ff_trace_async {
  FF_TRACE_GROUP,
  FF_TRACE_WAIT_GROUPS,
  FF_TRACE_ARRIVE,
  FF_TRACE_ARRIVE_COPIED,
  FF_TRACE_AWAIT,
  FF_TRACE_ARRIVE_FAR,
  FF_TRACE_ARRIVE_FAR_COPIED,
  FF_TRACE_AWAIT_FAR
} ff_trace_async;

typedef enum ff_trace_unit {
  FF_TRACE_SLOTS,    /* machine instructions, each a cycle of its scheduler; of them, on each pipe: */
  FF_TRACE_FMA,      /* fp32, integer products */
  FF_TRACE_ALU,      /* other integers, logic, comparisons; operands of memory instructions */
  FF_TRACE_XU,       /* special functions, conversions */
  FF_TRACE_FP64,     /* double precision */
  FF_TRACE_LSU,      /* shared and local memory */
  FF_TRACE_TENSOR,   /* in 512 multiply-adds of half precision */
  FF_TRACE_CHAIN,    /* longest chain of dependences: cycles, where an addition takes four */
  FF_TRACE_LOADS,    /* loads from shared memory in it */
  FF_TRACE_PRODUCTS, /* of integers, which are in FMA, too, but have half of the lanes of some GPUs */
  FF_TRACE_HALF,     /* half precision: not in FMA */
  FF_TRACE_MINMAX,   /* minima and maxima of integers, which are in ALU, too, but are two instructions on some GPUs */
  FF_TRACE_UNIT_COUNT
} ff_trace_unit;

typedef enum ff_trace_access_op {
  FF_TRACE_LOAD,
  FF_TRACE_STORE,
  FF_TRACE_ATOMIC,
  FF_TRACE_PREFETCH
} ff_trace_access_op;

/* Flags of an ACCESS. */
#define FF_TRACE_BYPASS_L1 1u   /* is served by the L2: volatile, .cg, .cv, strong beyond its block */
#define FF_TRACE_READ_ONLY 2u   /* .nc */
#define FF_TRACE_RETURNS 4u     /* an atomic whose old value is used: it can be waited for */
#define FF_TRACE_STREAMING 8u   /* .cs, .lu, evict first */
#define FF_TRACE_ASYNC_COPY 16u /* of a LOAD: an asynchronous copy to shared memory, which ASYNC records wait for */
#define FF_TRACE_BULK 32u       /* made by the SM's engine for bulk copies, not by its load/store unit */
/* A cache hint: the L2 evicts its lines first (with STREAMING), else last. */
#define FF_TRACE_L2_PRIORITY 64u

#define FF_TRACE_TRIPS_MAX 0xfffffffu /* of ENTER; more count as that */

#define FF_TRACE_LANES 32u
#define FF_TRACE_LINE_BYTES 128u
#define FF_TRACE_SECTOR_BYTES 32u
#define FF_TRACE_LINES_MAX 64u                          /* of an access */
#define FF_TRACE_RECORD_WORDS (2u + FF_TRACE_LINES_MAX) /* of a record */
#define FF_TRACE_WARPS_MAX 32u                          /* of a block */
#define FF_TRACE_SPILL_WORDS 4u                         /* of a SPILL */

/* Words from their parts; what does not fit into its bits is cut. */
static inline uint64_t ff_trace_issue(uint32_t instructions, uint32_t memory, uint32_t sfu, uint32_t fp64) {
  return (uint64_t)FF_TRACE_ISSUE | (uint64_t)(instructions & 0xffffu) << 4 | (uint64_t)(memory & 0xffffu) << 20 |
         (uint64_t)(sfu & 0x3fffu) << 36 | (uint64_t)(fp64 & 0x3fffu) << 50;
}
static inline uint64_t ff_trace_access(ff_trace_access_op op, uint32_t log2_bytes, uint32_t flags, uint32_t pc,
                                       uint32_t lines) {
  return (uint64_t)FF_TRACE_ACCESS | (uint64_t)(op & 3u) << 4 | (uint64_t)(log2_bytes & 7u) << 6 |
         (uint64_t)(flags & 0x7fu) << 9 | (uint64_t)(lines & 0xffu) << 16 | (uint64_t)pc << 32;
}
static inline uint64_t ff_trace_line(uint64_t address, uint32_t lanes, uint32_t sectors) {
  return address / FF_TRACE_LINE_BYTES << 10 | (uint64_t)(lanes & 0x3fu) << 4 | (sectors & 0xfu);
}
static inline uint64_t ff_trace_wait(uint32_t k) { return (uint64_t)FF_TRACE_WAIT | (uint64_t)k << 32; }
static inline uint64_t ff_trace_early_wait(uint32_t k) { return ff_trace_wait(k) | UINT64_C(16); }
static inline uint64_t ff_trace_late_wait(uint32_t k) { return ff_trace_wait(k) | UINT64_C(32); }
/* Up to 63 each, but 31 PRODUCTS, or if there are none, 31 of HALF; or, if there is nothing else, MINMAX. */
static inline uint64_t ff_trace_units(const uint32_t counts[FF_TRACE_UNIT_COUNT]) {
  const bool half = (counts[FF_TRACE_HALF] & 31u) && !counts[FF_TRACE_PRODUCTS];
  uint64_t word = (uint64_t)FF_TRACE_UNITS | (uint64_t)half << 58 |
                  (uint64_t)(counts[half ? FF_TRACE_HALF : FF_TRACE_PRODUCTS] & 31u) << 59;
  for (uint32_t u = 0; u <= FF_TRACE_LOADS; u++) word |= (uint64_t)(counts[u] & 63u) << (4 + 6 * u);
  if (word == (uint64_t)FF_TRACE_UNITS && counts[FF_TRACE_MINMAX])
    word |= (uint64_t)(counts[FF_TRACE_MINMAX] & 0x1fffffu) << 4 | UINT64_C(1) << 58;
  return word;
}
static inline uint64_t ff_trace_barrier(uint32_t id, bool arrive_only, uint32_t expected) {
  return (uint64_t)FF_TRACE_BARRIER | (uint64_t)(id & 0xffu) << 4 | (uint64_t)arrive_only << 12 |
         (uint64_t)(expected & 0xffffu) << 16;
}
static inline uint64_t ff_trace_enter(uint32_t id) { return (uint64_t)FF_TRACE_ENTER | (uint64_t)id << 32; }
static inline uint64_t ff_trace_enter_trips(uint32_t pc, uint32_t trips) {
  return (uint64_t)FF_TRACE_ENTER | (uint64_t)(trips < FF_TRACE_TRIPS_MAX ? trips : FF_TRACE_TRIPS_MAX) << 4 |
         (uint64_t)pc << 32;
}
static inline uint64_t ff_trace_leave(uint32_t id) { return (uint64_t)FF_TRACE_LEAVE | (uint64_t)id << 32; }
static inline uint64_t ff_trace_asynchronous(ff_trace_async what, uint32_t id, uint32_t count) {
  return (uint64_t)FF_TRACE_ASYNC | (uint64_t)(id & 0xffu) << 4 | (uint64_t)(what & 15u) << 12 |
         (uint64_t)(count & 0xffffu) << 16;
}
static inline uint64_t ff_trace_spill(bool store, uint32_t words, uint32_t sectors, uint32_t slot, uint32_t pc) {
  return (uint64_t)FF_TRACE_SPILL | (uint64_t)store << 4 | (uint64_t)(words & 7u) << 5 |
         (uint64_t)(sectors & 15u) << 8 | (uint64_t)(slot & 0xffffu) << 12 | (uint64_t)pc << 32;
}
static inline uint64_t ff_trace_exit(void) { return (uint64_t)FF_TRACE_EXIT; }

/* And back. */
static inline ff_trace_record_kind ff_trace_kind(uint64_t word) { return (ff_trace_record_kind)(word & 15u); }
static inline uint32_t ff_trace_issue_instructions(uint64_t word) { return (uint32_t)(word >> 4 & 0xffffu); }
static inline uint32_t ff_trace_issue_memory(uint64_t word) { return (uint32_t)(word >> 20 & 0xffffu); }
static inline uint32_t ff_trace_issue_sfu(uint64_t word) { return (uint32_t)(word >> 36 & 0x3fffu); }
static inline uint32_t ff_trace_issue_fp64(uint64_t word) { return (uint32_t)(word >> 50 & 0x3fffu); }
static inline ff_trace_access_op ff_trace_access_operation(uint64_t word) {
  return (ff_trace_access_op)(word >> 4 & 3u);
}
static inline uint32_t ff_trace_access_bytes(uint64_t word) { return 1u << (word >> 6 & 7u); }
static inline uint32_t ff_trace_access_flags(uint64_t word) { return (uint32_t)(word >> 9 & 0x7fu); }
static inline uint32_t ff_trace_access_lines(uint64_t word) { return (uint32_t)(word >> 16 & 0xffu); }
static inline uint32_t ff_trace_access_pc(uint64_t word) { return (uint32_t)(word >> 32); }
static inline uint64_t ff_trace_line_address(uint64_t line) { return (line >> 10) * FF_TRACE_LINE_BYTES; }
static inline uint32_t ff_trace_line_lanes(uint64_t line) { return (uint32_t)(line >> 4 & 0x3fu); }
static inline uint32_t ff_trace_line_sectors(uint64_t line) { return (uint32_t)(line & 0xfu); }
static inline uint32_t ff_trace_wait_k(uint64_t word) { return (uint32_t)(word >> 32); }
static inline bool ff_trace_wait_early(uint64_t word) { return (word >> 4 & 1u) != 0; }
static inline bool ff_trace_wait_late(uint64_t word) { return (word >> 5 & 1u) != 0; }
static inline uint32_t ff_trace_units_count(uint64_t word, ff_trace_unit unit) {
  if (word >> 58 == 1) return unit == FF_TRACE_MINMAX ? (uint32_t)(word >> 4) & 0x1fffffu : 0;
  if (unit == FF_TRACE_MINMAX) return 0;
  if (unit <= FF_TRACE_LOADS) return (uint32_t)(word >> (4 + 6 * (uint32_t)unit) & 63u);
  return (word >> 58 & 1u) == (unit == FF_TRACE_HALF) ? (uint32_t)(word >> 59) : 0;
}
static inline uint32_t ff_trace_barrier_id(uint64_t word) { return (uint32_t)(word >> 4 & 0xffu); }
static inline bool ff_trace_barrier_arrive_only(uint64_t word) { return (word >> 12 & 1u) != 0; }
static inline uint32_t ff_trace_barrier_expected(uint64_t word) { return (uint32_t)(word >> 16 & 0xffffu); }
static inline ff_trace_async ff_trace_async_what(uint64_t word) { return (ff_trace_async)(word >> 12 & 15u); }
static inline uint32_t ff_trace_async_id(uint64_t word) { return (uint32_t)(word >> 4 & 0xffu); }
static inline uint32_t ff_trace_async_count(uint64_t word) { return (uint32_t)(word >> 16 & 0xffffu); }
static inline bool ff_trace_spill_stores(uint64_t word) { return (word >> 4 & 1u) != 0; }
static inline uint32_t ff_trace_spill_words(uint64_t word) { return (uint32_t)(word >> 5 & 7u); }
static inline uint32_t ff_trace_spill_sectors(uint64_t word) { return (uint32_t)(word >> 8 & 15u); }
static inline uint32_t ff_trace_spill_slot(uint64_t word) { return (uint32_t)(word >> 12 & 0xffffu); }
static inline uint32_t ff_trace_spill_pc(uint64_t word) { return (uint32_t)(word >> 32); }
static inline uint32_t ff_trace_mark(uint64_t word) { return (uint32_t)(word >> 32); } /* pc of ENTER, LEAVE */
static inline uint32_t ff_trace_trips(uint64_t word) { return (uint32_t)(word >> 4) & FF_TRACE_TRIPS_MAX; }

/* ---- operations: what the host does ---- */

typedef enum ff_trace_operation_kind {
  FF_TRACE_ALLOCATE,      /* allocation */
  FF_TRACE_FREE,          /* allocation.address, .id */
  FF_TRACE_COPY,          /* copy */
  FF_TRACE_SET,           /* copy.to, .width, .height, .to_pitch */
  FF_TRACE_LAUNCH,        /* launch; written with ff_trace_put_launch */
  FF_TRACE_STREAM_CREATE, /* number: 1 if it does not wait for the default stream */
  FF_TRACE_STREAM_DESTROY,
  FF_TRACE_EVENT_RECORD, /* number: of this recording, never used again */
  FF_TRACE_STREAM_WAIT,  /* number: the stream waits for that recording */
  FF_TRACE_SYNC_STREAM,  /* the host waits for the stream, */
  FF_TRACE_SYNC_EVENT,   /* for the recording `number`, */
  FF_TRACE_SYNC_DEVICE,  /* for everything */
  FF_TRACE_HOST_CALL,    /* a call that only takes the host's time */
  /* range: the host reads or writes (write) managed memory; 0 bytes: such touches are recorded from here on */
  FF_TRACE_HOST_TOUCH,
  FF_TRACE_ADVISE,           /* range, number: cudaMemAdvise's advice, 1 to 6 */
  FF_TRACE_PREFETCH_RANGE,   /* range: cudaMemPrefetchAsync */
  FF_TRACE_MODULE,           /* module: PTX of the launches that follow */
  FF_TRACE_RESERVE,          /* allocation: a range of addresses without memory (cuMemAddressReserve) */
  FF_TRACE_FREE_RESERVATION, /* mapping.address, .bytes */
  /* allocation without an address: memory that can be mapped (cuMemCreate); .id: of such memory */
  FF_TRACE_CREATE_MEMORY,
  FF_TRACE_RELEASE_MEMORY, /* allocation.id: it goes when it is mapped nowhere any more */
  FF_TRACE_MAP,            /* mapping (cuMemMap) */
  /* mapping.address, .bytes: of one mapping or several whole ones (cuMemUnmap); does not wait for the device */
  FF_TRACE_UNMAP,
  FF_TRACE_SET_ACCESS, /* mapping.address, .bytes: cuMemSetAccess */
  /* sms: on which SMs the stream's launches have their blocks from here on (a green context's stream) */
  FF_TRACE_STREAM_SMS,
  FF_TRACE_PROFILE,    /* number: 1 from here on the program is profiled (cudaProfilerStart), 0 it is not any more */
  FF_TRACE_NAMED_RANGE /* named_range: one of the program's own ranges (NVTX) begins or ends */
} ff_trace_operation_kind;

typedef enum ff_trace_memory {
  FF_TRACE_MEMORY_DEVICE,  /* cudaMalloc */
  FF_TRACE_MEMORY_MANAGED, /* cudaMallocManaged */
  FF_TRACE_MEMORY_PINNED,  /* of the host; the GPU reaches it over the link */
  FF_TRACE_MEMORY_HOST
} ff_trace_memory;

typedef enum ff_trace_direction {
  FF_TRACE_TO_DEVICE,
  FF_TRACE_TO_HOST,
  FF_TRACE_ON_DEVICE,
  FF_TRACE_ON_HOST
} ff_trace_direction;

typedef struct ff_trace_allocation {
  uint64_t address, bytes;
  ff_trace_memory memory;
  uint32_t id;      /* of the program's allocations */
  bool initialised; /* a variable with its value, not memory that is yet to be written */
  const char *name; /* "input", up to 63 bytes; NULL: none */
} ff_trace_allocation;

/* rows of `width` bytes, `height` of them a pitch apart; height 1 for an ordinary copy */
typedef struct ff_trace_copy {
  uint64_t to, from; /* of the host's pageable memory: 0 (where it lies is chance) */
  uint64_t width, height, to_pitch, from_pitch;
  ff_trace_direction direction;
  bool pinned; /* the host's side is pinned */
} ff_trace_copy;

typedef struct ff_trace_range {
  uint64_t address, bytes;
  bool write;     /* HOST_TOUCH */
  int32_t device; /* ADVISE, PREFETCH_RANGE: -1 is the CPU */
} ff_trace_range;

typedef struct ff_trace_named_range {
  uint64_t number;  /* from 1, of no other range */
  bool begin;       /* false: it ends; only the number counts */
  bool started;     /* another thread may end it (nvtxRangeStart); else it was pushed */
  uint8_t domain;   /* how many bytes of `name` are the domain's, without the colon; 0: the default domain */
  uint32_t thread;  /* of the program's, from 0 */
  const char *name; /* "step", or "domain:step"; up to 79 bytes; NULL: none */
} ff_trace_named_range;

typedef struct ff_trace_mapping {
  uint64_t address, bytes;
  uint64_t offset; /* MAP: where in the memory it begins */
  uint32_t memory; /* MAP: its CREATE_MEMORY's id */
} ff_trace_mapping;

#define FF_TRACE_SMS_MAX 256u
/* SM i: bit i % 64 of mask[i / 64]; no bit: all SMs */
typedef struct ff_trace_sms {
  uint64_t mask[FF_TRACE_SMS_MAX / 64];
} ff_trace_sms;

typedef struct ff_trace_use {
  uint64_t address, bytes;
} ff_trace_use;
#define FF_TRACE_USES_MAX 64u

typedef struct ff_trace_launch {
  const char *kernel;         /* its name, up to 255 bytes */
  uint32_t grid[3], block[3]; /* a block has 1 to 1024 threads; a grid may be empty */
  uint32_t shared_bytes;      /* per block, static and dynamic */
  uint32_t registers;         /* per thread; 0: unknown */
  bool cooperative;
  uint32_t module;          /* the number of the MODULE operations that have its code; 0: none */
  const void *parameters;   /* as the PTX lays them out; NULL: unknown */
  uint32_t parameter_bytes; /* up to 65536 */
  const ff_trace_use *uses; /* the allocations that it may touch, as far as its parameters say */
  uint32_t use_count;       /* up to FF_TRACE_USES_MAX */
  /* its code reads %smid: block b was told the (b % smids)-th of its stream's SMs; 0: it does not */
  uint32_t smids;
  uint32_t carve_out; /* 1 + percent of shared memory that the program prefers an SM to have; 0: it does not say */
  /* When read; not looked at when written. A warp has 32 threads in the order of CUDA's (x, then y, then z). */
  uint64_t number; /* launches from 0 */
  uint64_t blocks; /* the grid's: block x + grid[0] * (y + grid[1] * z) */
  uint32_t warps_per_block;
  uint32_t kernel_number; /* the same for the same kernel */
} ff_trace_launch;

typedef struct ff_trace_module {
  uint32_t number;
  const char *ptx;
  uint64_t bytes; /* up to 64 MiB */
} ff_trace_module;

typedef struct ff_trace_operation {
  ff_trace_operation_kind kind;
  /* 0 is the default stream; plus 1u << 31: put by a call that the host has paid for already (a graph's launch) */
  uint32_t stream;
  bool blocking;     /* the host goes on only when it is over (cudaMemcpy) */
  uint32_t number;   /* see the kinds */
  uint64_t sequence; /* when read: operations from 0 */
  union {            /* by kind */
    ff_trace_allocation allocation;
    ff_trace_copy copy;
    ff_trace_range range;
    ff_trace_named_range named_range;
    ff_trace_mapping mapping;
    ff_trace_module module;
    ff_trace_sms sms;
    const ff_trace_launch *launch; /* when read */
  } as;
} ff_trace_operation;

/* ---- writing ---- */

typedef struct ff_trace_writer ff_trace_writer;

/* The trace will be `path`: until ff_trace_finish a file that is there stays what it is (symbolic links are followed);
 * a pipe or a device is written in place, and may have parts of a trace that is then discarded. command: the program
 * that is traced, for people; machine: a machine of farfault's that `farfault sim` is to take if none is chosen; both
 * may be NULL and are copied. FF_TRACE_IO: it cannot be written there. *out is the caller's until ff_trace_finish or
 * ff_trace_discard. */
FF_TRACE_API ff_trace_status ff_trace_create(const char *path, const char *command, const char *machine,
                                             ff_trace_writer **out, ff_trace_error *error);

/* Everything but a launch; ends the launch before it. Copies what it points to. FF_TRACE_INVALID: an unknown kind, a
 * range that wraps, a number out of its range. What the disk refuses is remembered and said by ff_trace_finish. */
FF_TRACE_API ff_trace_status ff_trace_put_operation(ff_trace_writer *writer, const ff_trace_operation *operation,
                                                    ff_trace_error *error);

/* A launch; the records that follow are its warps'. Warps that get no records only end. */
FF_TRACE_API ff_trace_status ff_trace_put_launch(ff_trace_writer *writer, uint32_t stream,
                                                 const ff_trace_launch *launch, ff_trace_error *error);

/* The records that follow are of this block and warp of the last launch; the warp before it has ended. Blocks and, in
 * them, warps must come in order, none twice (FF_TRACE_INVALID); any may be left out. */
FF_TRACE_API ff_trace_status ff_trace_begin_warp(ff_trace_writer *writer, uint64_t block, uint32_t warp,
                                                 ff_trace_error *error);

/* One record of `count` words (1; 2 + lines for an ACCESS). EXIT ends the warp; it is written by itself where it is
 * left out. FF_TRACE_INVALID: no warp has begun, no such record, a wrong count, sfu + fp64 beyond the instructions, a
 * WAIT for a load that the warp has not made, a BARRIER that expects no warp, ENTER and LEAVE that do not match, a line
 * at 2^56 or beyond, a SPILL of no word or more than four. */
FF_TRACE_API ff_trace_status ff_trace_put_record(ff_trace_writer *writer, const uint64_t *words, size_t count,
                                                 ff_trace_error *error);

/* An ACCESS by what the lanes ask for: address[lane] for the lanes of `mask`, `bytes` each (a power of two up to 128,
 * to which the addresses are aligned). The lines come in the order in which the lanes, from 0, meet them first, each
 * once. An empty mask writes nothing. */
FF_TRACE_API ff_trace_status ff_trace_put_access(ff_trace_writer *writer, ff_trace_access_op op, uint32_t flags,
                                                 uint32_t pc, uint32_t bytes, uint32_t mask,
                                                 const uint64_t address[FF_TRACE_LANES], ff_trace_error *error);

typedef struct ff_trace_ending {
  bool incomplete;          /* the program did not end by itself */
  const char *const *notes; /* shown under every simulation's results */
  uint32_t note_count;
  uint64_t thread_instructions, divergent_branches, barriers; /* what cannot be seen in the records; 0: unknown */
} ff_trace_ending;

/* Ends the file and gives it its name, over what was there; frees the writer in any case. ending: NULL is all zeros. On
 * an error there is no new file. */
FF_TRACE_API ff_trace_status ff_trace_finish(ff_trace_writer *writer, const ff_trace_ending *ending,
                                             ff_trace_error *error);

/* Removes what was written and frees the writer. NULL: nothing. */
FF_TRACE_API void ff_trace_discard(ff_trace_writer *writer);

/* ---- reading ---- */

typedef struct ff_trace_reader ff_trace_reader;

typedef struct ff_trace_info {
  const char *recorder;          /* the version of farfault, or of this library, that wrote it */
  const char *command, *machine; /* NULL: unknown */
  bool whole;                    /* the file's end is there; if not, it was cut off */
  bool complete;                 /* and the program ended by itself */
  uint64_t bytes;                /* of the file */
  uint64_t checksum;             /* of its contents; 0 if it is not whole */
  uint64_t operations, launches, blocks, accesses, words; /* of what is there; blocks: 0 if it is not whole */
  uint64_t warp_instructions, thread_instructions, sectors, divergent_branches, barriers; /* 0 if it is not whole */
  const char *const *notes;
  uint32_t note_count;
  bool marks; /* there are ENTER and LEAVE, or would be if its code had such blocks */
} ff_trace_info;

/* FF_TRACE_IO: cannot be read. FF_TRACE_NO_TRACE. A damaged or incomplete one opens. *out is the caller's until
 * ff_trace_close. */
FF_TRACE_API ff_trace_status ff_trace_open(const char *path, ff_trace_reader **out, ff_trace_error *error);

/* Owned by the reader, until ff_trace_close. */
FF_TRACE_API const ff_trace_info *ff_trace_information(const ff_trace_reader *reader);

typedef enum ff_trace_item_kind { FF_TRACE_OPERATION, FF_TRACE_RECORD, FF_TRACE_END } ff_trace_item_kind;

typedef struct ff_trace_item {
  ff_trace_item_kind kind;
  const ff_trace_operation *operation; /* OPERATION; it and what it points to are valid until the next call */
  /* RECORD: of which launch (its parameters and uses: only while it is the OPERATION), */
  const ff_trace_launch *launch;
  uint64_t block;         /* block */
  uint32_t warp;          /* and warp; every warp of every block is there and ends with EXIT */
  uint32_t words;         /* RECORD: how many */
  const uint64_t *record; /* valid until the next call */
} ff_trace_item;

/* The next item, in the program's order. FF_TRACE_DAMAGED: a part of the file is lost, the message says which
 * operations and blocks were in it; *item is not set, the next call goes on behind it. END comes at the end of a file
 * that was cut off, too, and then again. */
FF_TRACE_API ff_trace_status ff_trace_next(ff_trace_reader *reader, ff_trace_item *item, ff_trace_error *error);
FF_TRACE_API void ff_trace_rewind(ff_trace_reader *reader); /* to the first item */
FF_TRACE_API void ff_trace_close(ff_trace_reader *reader);  /* NULL: nothing */

#ifdef __cplusplus
}
#endif
#endif
