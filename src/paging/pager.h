/* SPDX-License-Identifier: Apache-2.0 */
/* The pager: where the newest bytes of every page are, which warps wait for a page, and what moves. It is given no
 * time: the machine tells it what happened and asks what must happen next (pager_hooks).
 *
 * Glossary. A *unit* is what a far-fault moves: an aligned window of fault_page_bytes, cut to one allocation (two small
 * allocations in one window are two units). A *flight* is a unit on its way to the GPU. A *NACK* is an SM's
 * translation request that found its unit absent; all warps of that SM that access the unit wait on the one NACK.
 *
 *            pager_fault, prefetch        pager_complete
 *     ABSENT ----------------> IN_FLIGHT ----------------> RESIDENT        REMOTE (pinned host memory) stays so; managed
 *       ^  `--- pager_gpu_fill, pager_gpu_fetch ------------> |            memory becomes it by a far-fault or a hint (paging_hints.c)
 *       `------ pager_host_write, pager_host_read, eviction --'
 *
 * What the GPU reaches over the link it goes on reaching while it is IN_FLIGHT and has not departed (pager_depart: its
 * bytes begin to move).
 *
 * Asserted by pager_check and pager_check_all, at the deep check level (in bytes; only MANAGER_PAGED counts them):
 *     resident + in_flight + free == memory; if memory is handed out in whole blocks (the real driver's root chunks):
 *     blocks that hold anything x 2 MiB + free == memory, and resident + in_flight <= what they make
 *     moved_in + filled - moved_out - dropped == resident
 *     a unit's newest version is in the CPU's copy or in the GPU's copy, or both; a blank one was never written
 *     and is zeros
 *     an SM's tracked NACKs <= its allotment, unless faults are served in batches
 * What is cleaned is copied to the CPU and stays: it is in none of these sums, and dirty again when the GPU writes to
 * it. */
#ifndef FF_PAGING_PAGER_H
#define FF_PAGING_PAGER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "farfault/policy.h"
#include "paging/owners.h"
#include "paging/tiers.h"
#include "policy/manager.h"
#include "trace/future.h"
#include "trace/stream.h"

#define PAGER_MIN_UNIT 128u
#define PAGER_CHUNK_SHIFT 21 /* the page table is kept in pieces of 2 MiB, made when first touched */

typedef enum pager_state { PAGER_ABSENT, PAGER_IN_FLIGHT, PAGER_RESIDENT, PAGER_REMOTE } pager_state;

/* What the program has said of a unit of managed memory (paging_hints.c). */
enum {
  PAGER_READ_MOSTLY = 1,
  PAGER_PREFERS_CPU = 2,
  PAGER_PREFERS_GPU = 4,
  PAGER_ACCESSED_BY_GPU = 8,
  PAGER_PINNED = 16, /* not the program, but thrash.c: it stays the CPU's, and the GPU has it mapped */
  PAGER_REACHED =
      32 /* not the program, but the manager (manager.h: reaches): while it is the CPU's the GPU has it mapped; it may come */
};
#define PAGER_HINTS 63u /* all of them */
/* What a flight does: brings the page; brings a copy that may only be read; takes a frame of zeros, without a byte;
 * maps the CPU's page, without a byte; makes a copy that may only be read writable, without a byte. */
typedef enum pager_flight_kind {
  PAGER_FLIGHT_MOVED,
  PAGER_FLIGHT_COPIED,
  PAGER_FLIGHT_ZEROED,
  PAGER_FLIGHT_MAPPED,
  PAGER_FLIGHT_WRITABLE
} pager_flight_kind;

enum { PAGER_INDEX_BITS = 28 };
#define PAGER_INDEX_MAX ((UINT32_C(1) << PAGER_INDEX_BITS) - 1) /* allocations, NACKs, flights and siblings at a time */

/* What there is most of, one for each page that was ever looked at. Of the versions of its content only which copy has
 * the newest is kept: a write makes a newer one, a transfer gives what the other has. */
typedef struct pager_unit {
  union {
    uint64_t last_use;                    /* not IN_FLIGHT: by the GPU, since it came; 0: never */
    struct {                              /* IN_FLIGHT */
      uint32_t flight : PAGER_INDEX_BITS; /* its index */
      pager_flight_kind flight_kind : 3;
      uint8_t source; /* 1 + the device whose bytes come; 0: the host's, or none */
    };
  };
  /* a bit per 32nd of its window: the GPU has used it since the unit left last, so lines of it may be in caches */
  uint32_t used;
  uint32_t allocation : PAGER_INDEX_BITS; /* index; 0: belongs to none, counts as resident */
  pager_state state : 2;
  /* came for a far-fault whose access has not been made yet: not evicted if it can be helped */
  bool fresh : 1;
  bool prefetched : 1; /* came along with a far-fault */
  union {
    struct {
      uint32_t nacks : PAGER_INDEX_BITS; /* first NACK on it; 0: none */
      bool starved : 1;                  /* a far-fault on it waits for room */
      /* IN_FLIGHT, but its bytes do not move yet: the GPU goes on reaching the CPU's copy, and may write it (manager.h:
       * reaches) */
      bool departs : 1;
      bool duplicate : 1; /* resident, and the CPU has the same bytes mapped: both may read it, neither write */
      /* resident, written back ahead and not written to since: the host takes it back with what is dirty */
      bool cleaned : 1;
    };
    /* managed pages, for which no warp waits: the CPU may touch it if no launch was made since: == pager.unmappings */
    uint32_t mapped : PAGER_INDEX_BITS;
  };
  uint16_t pieces : 10; /* that it covers, of pager.grain: whole 4 KiB pages, or whole units if those are smaller */
  uint16_t hints : 6;   /* what the program has said of it */
  uint8_t alias_tag;    /* tells units of one window apart, for TLB tags */
  bool shared : 1;      /* another unit of its window comes behind it: pager_unit_next */
  bool evicted : 1;     /* has been evicted before: its next far-fault is a refault */
  /* of a blank allocation: it holds data though it was never written, as zeros were copied, or the host has touched it
   * under a manager that keeps no account of writes (copy_clean) */
  bool populated : 1;
  bool wrote_far : 1;  /* written over the link since another device has it: noted */
  bool written : 1;    /* since it was allocated */
  bool cpu_newest : 1; /* the copy in host memory is the newest, */
  bool gpu_newest : 1; /* and that in GPU memory is. Of none it is: only before the program's first copy to it */
} pager_unit;
_Static_assert(sizeof(pager_unit) == 24, "16 million of them are 384 MiB");

typedef struct pager_sibling { /* a unit that shares its window with those before it */
  pager_unit unit;             /* the first field: what a pointer to the unit points to */
  uint32_t next; /* index into siblings of the one behind it, if unit.shared; or in the list of free ones */
} pager_sibling;

typedef struct pager_allocation {
  uint64_t address, bytes;
  trace_memory_kind kind;
  uint32_t owner; /* the machine's number for its counters */
  bool live;
  bool given;      /* no call allocated it: a variable of a module, or the program's own memory */
  uint8_t device;  /* PINNED, and 1 + the device in whose memory it is; 0: it is the host's */
  owners_set team; /* PINNED, and multicast memory of these devices */
  bool mapping;    /* of memory that has a number of its own: */
  uint32_t memory;
  uint8_t hints;       /* of all of it */
  bool on_gpu, on_cpu; /* MANAGER_PROGRAM, managed: whose copy is the newest */
  bool host_wrote;     /* MANAGER_PROGRAM, managed: the host may have written it since it went to the GPU */
  uint32_t mapped;     /* managed pages: pager.unmappings when it was made */
  /* it came without bytes, and every write to it is seen: units of version 1 hold nothing that must move */
  bool blank;
  uint32_t users; /* segments: launches, queued or running, that have declared it: evicted last */
} pager_allocation;

typedef struct pager_buffered { /* a far-fault in the buffer, or in the batch that is being served */
  uint64_t address, time;
  pager_unit *unit; /* NULL: over before a batch took it */
  uint32_t sm, warp, nack;
} pager_buffered;

/* The page of the page table that maps an address. Where pages may grow, 64 KiB or 2 MiB are one page if they are in
 * GPU memory to the last byte, or to the last byte where the GPU reaches them over the link, as NVIDIA's driver maps
 * them: whatever the allocations in them. */
typedef enum pager_leaf { PAGER_LEAF_MIN, PAGER_LEAF_GROUP, PAGER_LEAF_BLOCK, PAGER_LEAVES } pager_leaf;

/* What pages come or go for: given to the pager with a far-fault, and by the pager to every hook that it calls for it.
 * The pager reads which SM and warp ask, and makes a request of its own for what it tries again; the rest is the
 * machine's. NULL where no access asks: copies, idle links, watermarks. */
typedef struct fault_request {
  uint32_t sm, warp; /* whose access it is */
  /* where what moves is counted; start sets them for the pages that come along with a far-fault */
  struct sim_counters *counters;
  uint64_t from; /* when it has reached the GMMU; 0: it is tried again, now */
  /* when its service began, with which other pages may come: set by start; 0: it has none */
  uint64_t served;
  bool declared; /* not an access's, but what a launch has declared (pager_request) */
} fault_request;

typedef struct pager_hooks {
  void *context;
  /* The warp tries its access again: its far-fault on the unit of the address is over. */
  void (*wake)(void *context, uint32_t sm, uint32_t warp, uint64_t address);
  bool (*writes)(void *context, uint32_t warp); /* the access that the warp is at; NULL: all read */
  /* A far-fault begins; returns when the unit will have arrived (pager_complete is then called). `room`: when the
   * memory that it takes is free, what was there having been written back; 0: it is free, or nothing moves. */
  uint64_t (*start)(void *context, fault_request *request, uint64_t address, uint32_t flight, const pager_unit *unit,
                    uint64_t room);
  /* Pages that a prefetcher has proposed are to come, in one transfer; returns when they will have arrived. */
  uint64_t (*fetch)(void *context, const fault_request *request, uint64_t address, uint64_t bytes, uint32_t flight,
                    const pager_unit *first, uint64_t room);
  /* A flight that fetch has started: true: its bytes begin to move later, and the machine calls pager_depart then,
   * before it lands (only if the manager reaches what is absent). false: they move now. NULL: all do. */
  bool (*departs)(void *context, const fault_request *request, uint64_t bytes, uint32_t flight, uint64_t lands);
  /* The unit is evicted; `write_back`: its bytes go to the host. Returns when what comes in its place may begin to
   * move; 0: at once, or the machine keeps account of it (what is evicted ahead). */
  uint64_t (*evicted)(void *context, const fault_request *request, uint64_t address, const pager_unit *unit,
                      bool write_back);
  /* MANAGER_BUFFER: a far-fault has come into the buffer. And: it is served now; `block`: the first of its 2 MiB. */
  void (*buffered)(void *context, const fault_request *request, uint64_t address);
  void (*serve)(void *context, const pager_buffered *fault, bool block);
  void (*unblock)(void *context, uint32_t sm); /* MANAGER_BLOCK: its far-fault is over */
  /* pager_retry then. NULL: nothing is put off */
  void (*retry)(void *context, uint64_t time);
  void (*left)(void *context, uint64_t address, pager_unit *unit);       /* no longer in GPU memory: TLBs, caches */
  void (*moved)(void *context, uint32_t owner, bool in, uint64_t bytes); /* over the link */
  void (*zeroed)(void *context, uint32_t owner, uint64_t bytes);         /* came as zeros instead. NULL: not told */
  /* The unit is resident and no longer dirty; what has its page as written to must ask again. NULL: nothing is
   * cleaned. */
  void (*cleaned)(void *context, uint64_t address, const pager_unit *unit);
  /* Pages that grow: one page maps this group or block from now on (whole), or smaller ones do again. */
  void (*remapped)(void *context, uint64_t address, uint64_t bytes, bool whole);
} pager_hooks;

typedef struct pager_config {
  const manager *manager;
  const ff_policy *prefetch, *evict; /* NULL: nothing is prefetched; whatever comes first is evicted */
  void *prefetch_state, *evict_state;
  bool evict_shares;          /* both are one, with one state: it is told once */
  bool tells_runs;            /* what arrives or leaves together is told as one range; else, to plug-ins, by units */
  const trace_future *future; /* complete before the first fault; NULL: it is not known */
  tiers *tiers;               /* below GPU memory; borrowed; NULL: the host's memory holds everything */
  uint64_t tier_space;        /* what units' addresses have in front there: which program of several they are of */
  owners *owners;             /* the other devices' simulations have it, too; NULL: there is one device */
  uint32_t device;            /* the number of this one */
  owners_set peers;           /* devices whose memory this one's kernels can reach */
  manager_counters counters;  /* of the manager, or chosen instead */
  bool copy_clean;            /* evicted pages are written back even if the host's copy is the newest */
  bool zeroes; /* blank pages come as zeros to whatever brings them; else only what declares them takes them so */
  /* of valid bytes that a page of 2 MiB may have: partial pages; 0: none, all units on their own */
  uint32_t ranges;
  uint64_t gap_bytes;    /* partial pages with several ranges: a smaller gap between two is moved and closed */
  uint32_t flight_limit; /* requests that the migration buffer holds; 0: any number */
  bool whole_blocks;     /* GPU memory is handed out 2 MiB at a time, to whatever a block needs */
  watermarks watermarks;
  uint64_t unit_bytes;               /* power of two, 4 KiB to 2 MiB */
  uint64_t least_leaf, largest_leaf; /* pages of the page table, bytes; largest_leaf 0: all are least_leaf */
  uint64_t memory_bytes;
  uint32_t sms;
  uint32_t allotment;    /* far-fault MSHRs per SM */
  bool merges_take_mshr; /* also a request for a unit that is on its way already */
  pager_hooks hooks;
} pager_config;

/* Sets of units that the pager keeps in order of address, so that nothing has to be walked to find the next one. */
typedef enum pager_set {
  PAGER_HELD,  /* resident or in flight */
  PAGER_LOOSE, /* of these, what can be evicted now: resident, and the access that it came for was made */
  PAGER_SPARE, /* of these, what no launch has declared */
  PAGER_SETS
} pager_set;

typedef struct pager_windows { /* a bit per window of units: one of them is in the set */
  uint64_t in[PAGER_SETS];
} pager_windows;

typedef struct pager_chunk {
  uint64_t number;             /* address >> PAGER_CHUNK_SHIFT */
  struct pager_thrash *thrash; /* thrash.c; NULL: nothing has happened here */
  uint32_t used;               /* units that belong to an allocation, siblings included */
  uint32_t holding;            /* units that are resident or in flight */
  pager_windows *windows;      /* 64 of the chunk's each */
  uint32_t counts[PAGER_SETS]; /* of these bits */
  bool listed[PAGER_SETS];     /* its number is in pager.chunks */
  bool owed_listed;            /* its number is in pager.owed */
  bool moves;                  /* it has a page that is `moving` */
  /* per group: the latest use of what is resident, unless stale (units of a group or less) */
  uint64_t group_use[FF_BLOCK_BYTES / FF_GROUP_BYTES];
  /* a bit per group: what was used last has left, so the latest use of the rest must be looked for */
  uint32_t group_stale;
  /* by group: bytes that the GPU read and wrote over the link since a page of it last came */
  uint32_t reached[FF_BLOCK_BYTES / FF_GROUP_BYTES];
  /* access counters: by granule, at its first group */
  uint32_t accesses[FF_BLOCK_BYTES / FF_GROUP_BYTES];
  uint32_t whole_groups; /* pages that grow: a bit per group that one page maps */
  bool whole_block;      /* one page maps the block */
  /* as policies see them; a page that several units share is valid when all are */
  ff_pages mapped, valid, moving, dirty;
  ff_pages cleaned; /* pages with a unit that is `cleaned`; not for policies */
  /* by window: index into siblings of the unit behind its first one, if that is `shared`. NULL: no window is */
  uint32_t *next;
  pager_unit units[];
} pager_chunk;

typedef struct pager_flight { /* the units in the range that say so are on their way */
  uint64_t address, bytes, lands;
  uint64_t last_use; /* of a unit that becomes writable, which was there before */
  uint32_t next_free;
} pager_flight;
typedef struct pager_nack {
  pager_unit *unit;
  uint64_t address;
  uint32_t sm, next_of_unit, next_of_sm; /* next_of_sm: in the throttle queue, or in the free list */
  uint32_t first_waiter, last_waiter;
  uint64_t buffered; /* 1 + its place in the buffer, counted from the first far-fault of all; 0: it is not there */
  bool tracked, counted, blocking; /* counted: it takes one of the SM's MSHRs */
} pager_nack;
typedef struct pager_waiter {
  uint32_t warp, next;
} pager_waiter;

enum { PAGER_CACHE = 256, PAGER_REGION_CHUNKS = 512 };

typedef struct pager_region { /* a GiB of addresses */
  uint64_t number;            /* address >> PAGER_CHUNK_SHIFT, / PAGER_REGION_CHUNKS */
  struct pager_region *next;  /* in its bucket */
  uint32_t made;              /* chunks that are not NULL; 0: it is freed */
  pager_chunk *chunks[PAGER_REGION_CHUNKS];
} pager_region;

typedef struct pager_range {
  uint64_t address, bytes;
} pager_range;
typedef FF_VEC(pager_range) pager_proposals;

typedef struct pager_pin {
  uint64_t address, deadline;
} pager_pin;

typedef struct pager {
  pager_config config;
  /* what policies are given; its first words are kept up to date */
  ff_view view;
  pager_proposals *proposals; /* where propose() writes: one of the two below */
  pager_proposals to_bring, to_evict;
  uint64_t random;
  /* in the program's order: of the blocks that run the first, and the last so far */
  uint64_t position, position_last;
  /* the machine's clock; it only marks uses and is shown to policies */
  uint64_t now;
  uint32_t unit_shift;
  uint64_t memory, free, in_flight, resident; /* bytes, as all that follow */
  uint64_t resident_peak;                     /* those in flight included */
  uint64_t moved_in, moved_out, filled, dropped;
  uint64_t cleaned; /* copied to the CPU ahead; stayed */
  /* of moved_in: after it had been evicted to make room; the rest */
  uint64_t came_back, came_first;
  uint64_t zeroed_first; /* came as zeros, before it had been evicted */
  struct {
    uint64_t address, bytes, until;
  } cleaning; /* what is being copied so; bytes 0: nothing */
  /* the watermarks: bytes to be kept free, low <= high <= memory / 2 */
  uint64_t low, high;
  /* what is proposed now is for the idle link; and some of it was left out as below */
  bool idles, blank_skipped;
  /* of what is proposed now only that comes which has no bytes yet */
  bool blank_only;
  bool counting; /* what is proposed now comes for its access counter */
  bool ahead;    /* what is evicted now goes before its room is wanted */
  /* When the room that was made for what comes next is free; 0: it is. An eviction cannot name the transfer that takes
   * its room: room for a unit is made before the run of units before it starts (bring_range), which may wait for it. */
  uint64_t room_at;
  uint64_t mapped;      /* that allocations can have of GPU memory at most */
  uint64_t held_blocks; /* whole_blocks: that hold anything */
  /* that have something in the set; whole_blocks: loose only where all of the block is */
  ff_numbers chunks[PAGER_SETS];
  ff_numbers owed;           /* chunks with a unit that is newer in GPU memory, or was cleaned */
  uint64_t hand_address;     /* where the fallback evictor has come to */
  uint32_t used_allocations; /* that have users */
  bool spare_used;           /* nothing of these goes, for now */
  bool may_wait, retrying;   /* room is made for what can be tried again; pager_retry will be called */
  uint64_t landed;           /* when something last came for a far-fault */
  /* a search found that nothing else could go; until something else comes */
  bool no_unused;
  uint32_t unmappings; /* managed pages: how often they were taken from the CPU */
  bool touched;        /* managed pages: the CPU has touched one since */
  /* managed pages: the CPU has newer bytes than the GPU; an address in each */
  FF_VEC(uint64_t) dirty;
  FF_VEC(pager_allocation) allocations; /* [0]: what belongs to none */
  FF_VEC(uint32_t) by_address;          /* live allocations, by address */
  uint32_t free_allocation;             /* list of dead ones, linked by owner */
  pager_region **buckets;               /* by hash of their numbers */
  pager_chunk *zero_chunk;              /* stands for every piece that no allocation overlaps */
  uint32_t bucket_count, region_count, chunk_count;
  struct {
    uint64_t number;
    pager_region *region;
  } cache[PAGER_CACHE];
  uint64_t unowned[PAGER_CACHE]; /* numbers of chunks that no allocation overlaps; UINT64_MAX: none */
  pager_sibling **siblings;      /* [0] unused */
  uint32_t sibling_count, sibling_capacity, sibling_free;
  FF_VEC(pager_flight) flights; /* [0] unused */
  uint32_t flight_count;        /* in use */
  /* what sizes are rounded to: pages, or units if those are smaller */
  uint64_t grain;
  uint64_t lands_last; /* the latest landing so far */
  FF_VEC(pager_nack) nacks;
  FF_VEC(pager_waiter) waiters;
  FF_VEC(pager_buffered) buffer; /* in the order in which they came; from buffer_first on */
  size_t buffer_first;
  uint64_t buffer_gone, buffer_live; /* those before items[0]; those that are not over */
  FF_VEC(pager_buffered) taken;      /* by the batch that is being served, in the order in which they came */
  FF_VEC(pager_buffered) batch;      /* the first of each unit, in order of address */
  FF_VEC(uint32_t) batch_flights;
  bool serving;
  FF_VEC(pager_pin) pins; /* in order of deadline, from pins_first on */
  size_t pins_first;
  uint64_t pins_due;                     /* the first deadline; UINT64_MAX: none */
  uint64_t throttled, pinned;            /* how often, so far */
  uint64_t from_devices[OWNERS_DEVICES]; /* what bring_in has brought from them, to be carried: pager_from_device */
  uint64_t touched_at;                   /* by the host, the last time: ps */
  bool for_other;                        /* what the host does now is an operation of another device of the program */
  bool met;                              /* nothing has been done since the devices met */
  uint32_t free_flight, free_nack, free_waiter;
  uint32_t starved_first, starved_last; /* NACKs that found no room: everything is on its way */
  struct {
    uint32_t pending, queue_first, queue_last;
  } * sms;
} pager;

pager *pager_create(const pager_config *config);
void pager_free(pager *pager);
void pager_grow(pager *pager, uint64_t bytes); /* GPU memory becomes larger; whole pages */

/* ---- allocations ---- */

/* Returns the allocation's index; 0: it is empty or overlaps another one, and stays unknown. Its data is on the CPU
 * (PAGED, and managed memory everywhere) or undefined on the GPU. */
uint32_t pager_map(pager *pager, uint64_t address, uint64_t bytes, trace_memory_kind kind, uint32_t owner);
/* The allocation came without bytes, and all that writes to it will be seen: blank, if the manager can use that. */
void pager_map_blank(pager *pager, uint32_t allocation);
/* Nothing may be in flight in it. Returns its index (gone after this), 0 if no live allocation starts there. */
uint32_t pager_unmap(pager *pager, uint64_t address);
uint32_t pager_allocation_at(const pager *pager, uint64_t address); /* that starts there; 0: none */

/* The position in by_address of the first live allocation that ends behind `address`. */
size_t pager_first_behind(const pager *pager, uint64_t address);
pager_chunk *pager_chunk_find(pager *pager, uint64_t number); /* slow path of pager_find */
bool pager_chunk_made(const pager *pager, uint64_t number);   /* an address in it has been looked up */
/* How an allocation's unit looks before anything has touched it. */
pager_unit pager_unit_fresh(const pager *pager, uint32_t allocation, uint64_t window);
pager_unit *pager_sibling_find(pager *pager, pager_chunk *chunk, pager_unit *unit, uint64_t address);
pager_unit *pager_sibling_behind(const pager *pager, const pager_chunk *chunk, const pager_unit *unit);

/* The unit behind this one of the chunk's in its window; NULL: there is none. */
static inline pager_unit *pager_unit_next(const pager *pager, const pager_chunk *chunk, const pager_unit *unit) {
  return __builtin_expect(unit->shared, 0) ? pager_sibling_behind(pager, chunk, unit) : NULL;
}

/* The chunk of an address: `zero_chunk` if no allocation overlaps it. O(1). */
static inline pager_chunk *pager_chunk_at(pager *pager, uint64_t address) {
  uint64_t number = address >> PAGER_CHUNK_SHIFT, region = number / PAGER_REGION_CHUNKS;
  uint32_t slot = region % PAGER_CACHE;
  bool known = pager->cache[slot].number == region;
  pager_chunk *chunk = known ? pager->cache[slot].region->chunks[number % PAGER_REGION_CHUNKS] : NULL;
  return __builtin_expect(chunk != NULL, 1) ? chunk : pager_chunk_find(pager, number);
}

/* pager_find and pager_leaf_of of the address would change nothing of the pager. O(1). */
static inline bool pager_knows(const pager *pager, uint64_t address) {
  uint64_t number = address >> PAGER_CHUNK_SHIFT, region = number / PAGER_REGION_CHUNKS;
  uint32_t slot = region % PAGER_CACHE;
  return pager->cache[slot].number == region && pager->cache[slot].region->chunks[number % PAGER_REGION_CHUNKS];
}

/* The unit of an address: never NULL. O(1). The pointer lives until an allocation is mapped or unmapped. */
static inline pager_unit *pager_find(pager *pager, uint64_t address) {
  pager_chunk *chunk = pager_chunk_at(pager, address);
  pager_unit *unit = &chunk->units[(address & ((UINT64_C(1) << PAGER_CHUNK_SHIFT) - 1)) >> pager->unit_shift];
  return __builtin_expect(unit->shared, 0) ? pager_sibling_find(pager, chunk, unit, address) : unit;
}

/* The page that maps the address. O(1). */
static inline pager_leaf pager_leaf_of(pager *pager, uint64_t address) {
  const pager_chunk *chunk = pager_chunk_at(pager, address);
  if (chunk->whole_block) return PAGER_LEAF_BLOCK;
  if (pager->config.least_leaf >= FF_GROUP_BYTES) return PAGER_LEAF_MIN;
  return chunk->whole_groups >> (address / FF_GROUP_BYTES % 32) & 1 ? PAGER_LEAF_GROUP : PAGER_LEAF_MIN;
}

/* It is on its way with this flight. */
static inline bool pager_flies(const pager_unit *unit, uint32_t flight) {
  return unit->state == PAGER_IN_FLIGHT && unit->flight == flight;
}

/* Bytes that it covers. */
static inline uint32_t pager_bytes(const pager *pager, const pager_unit *unit) {
  return unit->pieces * (uint32_t)pager->grain;
}

/* It holds no data: neither written nor copied since it was allocated. O(1). */
static inline bool pager_blank(const pager *pager, const pager_unit *unit) {
  return !unit->written && !unit->populated && pager->allocations.items[unit->allocation].blank;
}

/* ---- what the GPU does to a unit of which `address` is any address: the version oracle ---- */

/* marks.c: the unit at the address has become dirty, clean or used, which is to be marked; or else is at another place,
 * too (pager_remark). */
void pager_mark_used(pager *pager, uint64_t address);
void pager_remark(pager *pager, uint64_t address);

typedef enum pager_processor { PAGER_CPU = 1, PAGER_GPU = 2 } pager_processor;
/* There is a newer version, in the copies of these (a set of processors). */
static inline void pager_written(pager_unit *unit, unsigned processors) {
  unit->written = true;
  unit->cpu_newest = processors & PAGER_CPU;
  unit->gpu_newest = processors & PAGER_GPU;
}

/* The bit of pager_unit.used for an address of the unit. */
static inline uint32_t pager_used_bit(const pager *pager, uint64_t address) {
  return UINT32_C(1) << (address >> (pager->unit_shift - 5) & 31);
}

static inline void pager_note_use(pager *pager, pager_unit *unit, uint64_t address) {
  if (pager->config.evict && unit->state == PAGER_RESIDENT) { /* else no policy asks */
    pager_chunk *chunk = pager_chunk_at(pager, address);
    uint32_t group = address / FF_GROUP_BYTES % (FF_BLOCK_BYTES / FF_GROUP_BYTES);
    if (__builtin_expect(unit->last_use > pager->now, 0)) chunk->group_stale |= UINT32_C(1) << group;
    if (chunk->group_use[group] < pager->now) chunk->group_use[group] = pager->now;
  }
  if (unit->state != PAGER_IN_FLIGHT) unit->last_use = pager->now;
  unit->used |= pager_used_bit(pager, address);
}

/* One more line of a unit that was just read or written (pager_gpu_read). */
static inline void pager_note_line(const pager *pager, pager_unit *unit, uint64_t address) {
  if (unit->allocation == 0 || pager->config.manager->placement == MANAGER_EVERYWHERE) return;
  unit->used |= pager_used_bit(pager, address);
}

void pager_wrote_far(pager *pager, pager_unit *unit, uint64_t address); /* other_devices.c */

/* ---- tiers below GPU memory: unit_tiers.c. `address` is any address in the unit ---- */

/* Its bytes have left GPU memory: for the nearest tier. */
void pager_tier_arrive(pager *pager, const pager_unit *unit, uint64_t address);
/* Its bytes have come to the host, which wants them, or has written all of it. */
void pager_tier_put(pager *pager, const pager_unit *unit, uint64_t address);
/* The host reads or writes some of it, which comes to the host's memory first; it reads all units of a range. */
void pager_tier_host(pager *pager, const pager_unit *unit, bool write, uint64_t address);
void pager_tier_host_range(pager *pager, uint64_t address, uint64_t bytes);
/* Its bytes go to the GPU; and those of all units of a flight that has any. */
void pager_tier_gpu(pager *pager, const pager_unit *unit, uint64_t address);
void pager_tier_flight(pager *pager, uint32_t flight, uint64_t address, uint64_t bytes);
/* The copy outside GPU memory is no longer its newest. */
void pager_tier_old(pager *pager, const pager_unit *unit, uint64_t address);
void pager_tier_check(pager *pager, const pager_unit *unit, uint64_t window);         /* place and copies agree */
tier_place *pager_tier_place(pager *pager, const pager_unit *unit, uint64_t address); /* NULL: it has none */
/* Several devices, after a meeting: a unit that kernels of two devices have taken at the same time gets its place, or
 * gives it up, as the device has it that kept it. */
void pager_tier_agree(pager *pager, const pager_unit *unit, uint64_t address);

/* The GPU can read and write the CPU's copy over the link. */
static inline bool pager_over_link(const pager_unit *unit) { return unit->state == PAGER_REMOTE || unit->departs; }

static inline void pager_gpu_read(pager *pager, pager_unit *unit, uint64_t address) {
  if (unit->allocation == 0 || pager->config.manager->placement == MANAGER_EVERYWHERE) return;
  pager_note_use(pager, unit, address);
  if (__builtin_expect(unit->fresh, 0)) {
    unit->fresh = false;
    pager_mark_used(pager, address);
  }
  FF_CHECK(pager_over_link(unit) || (unit->state == PAGER_RESIDENT && unit->gpu_newest));
}

static inline void pager_gpu_write(pager *pager, pager_unit *unit, uint64_t address) {
  pager_gpu_read(pager, unit, address); /* most stores leave part of the page: it must be the newest */
  if (pager_over_link(unit)) {
    pager_written(unit, PAGER_CPU);
    if (__builtin_expect(pager->config.owners != NULL, 0)) pager_wrote_far(pager, unit, address);
  }
  if (unit->state != PAGER_RESIDENT) return;
  bool clean = unit->cpu_newest;
  pager_written(unit, PAGER_GPU);
  unit->duplicate = false;
  if (__builtin_expect(clean, 0)) {
    unit->cleaned = false;
    pager_tier_old(pager, unit, address);
    pager_mark_used(pager, address);
  }
  pager_allocation *allocation = &pager->allocations.items[unit->allocation];
  allocation->on_cpu = false;
}

/* ---- far-faults (MANAGER_PAGED) ---- */

typedef enum pager_outcome {
  PAGER_STARTED,   /* a new far-fault; hooks.start was called */
  PAGER_MERGED,    /* the unit was already on its way */
  PAGER_THROTTLED, /* beyond the SM's allotment: replayed after one of its pending far-faults */
  PAGER_JOINED,    /* another warp of the SM was throttled on this unit: waits with it */
  PAGER_BUFFERED,  /* waits for the next batch */
  PAGER_STARVED,   /* no room, all of GPU memory is on its way: tried again when something has landed */
} pager_outcome;

/* The request's warp asked for an absent (or flying) unit; it will be woken. *blocks: the SM's TLB must stop. */
pager_outcome pager_fault(pager *pager, fault_request *request, uint64_t address, pager_unit *unit, bool *blocks);
/* Is the SM waiting for this unit already? Then the TLB merges the request without asking the GMMU. */
bool pager_waits(const pager *pager, uint32_t sm, const pager_unit *unit);
/* Is it this warp that waits? Takes time with the warps of the SM that wait for the unit. */
bool pager_warp_waits(const pager *pager, uint32_t sm, uint32_t warp, const pager_unit *unit);
/* The flight's bytes begin to move: what is accessed from now on waits until it has landed. */
void pager_depart(pager *pager, uint32_t flight);
/* The flight has landed: the unit is resident, all warps that wait for it are woken, throttled requests are
 * replayed. */
void pager_complete(pager *pager, uint32_t flight);
/* Far-faults that found nothing but what had just come for others, which have had the time to use it, are tried
 * again. */
void pager_retry(pager *pager);
/* ---- batches: batch.c (MANAGER_BUFFER) ---- */

/* Takes up to `limit` faults from the buffer, in order of address block by block, drops duplicates, and starts what is
 * to move (hooks.serve, hooks.fetch). The batch is over when the machine says so: pager_batch_end. */
void pager_batch_begin(pager *pager, uint32_t limit);
void pager_batch_lands(pager *pager, uint64_t time); /* of everything in the batch */
/* All that the batch moves has landed; the buffer is flushed and the GPU replays: what is still absent is in the buffer
 * again, what the batch took and did not serve behind the rest. */
void pager_batch_end(pager *pager);
void pager_buffer_drop(pager *pager, const pager_nack *nack); /* is over: no batch takes it */
void pager_buffer_add(pager *pager, const fault_request *request, const pager_buffered *fault);
void pager_end_tracked(pager *pager, pager_unit *unit); /* wakes all whose tracked NACKs are on the unit */
/* the starved unit is on its way: its NACK waits for that only */
void pager_starved_drop(pager *pager, pager_unit *unit);
void pager_bring(pager *pager, const fault_request *request, bool may_evict); /* what is in to_bring */

/* The latest landing of what is in flight within the range; 0: nothing is. */
uint64_t pager_busy_until(pager *pager, uint64_t address, uint64_t bytes);
/* The same for the host, which goes on reading and writing its own pages until their bytes begin to move. */
uint64_t pager_host_busy_until(pager *pager, uint64_t address, uint64_t bytes);
uint64_t pager_all_busy_until(const pager *pager); /* of everything that is in flight */

/* The link to the GPU has nothing to do: the prefetcher may propose something. */
void pager_idle(pager *pager);
bool pager_wants_idle(const pager *pager);
/* The GPU has read or written `bytes` of the page at `address` over the link: counted for its group, and the prefetcher
 * is told of each FF_REACHED_BYTES (policy.h). What it proposes comes even if other pages must go. */
/* counts; true: the prefetcher is to be told */
bool pager_reached(pager *pager, const pager_unit *unit, uint64_t address, uint64_t bytes);
/* A launch that declares these allocations begins: the prefetcher is told. */
void pager_launching(pager *pager, const uint32_t *allocations, size_t count);
/* queued: bytes that wait for the link */
void pager_reached_tell(pager *pager, const fault_request *request, uint64_t address, uint64_t queued);

/* ---- access counters: access_counters.c ---- */

/* Accesses of the unit are counted, and it comes with its granule. */
bool pager_counted(const pager_unit *unit);
/* One line of an access over the link; true: the count has come to the threshold (pager_count_reached). */
bool pager_count_access(pager *pager, const pager_unit *unit, uint64_t address);
/* Brings the granule around the address, and counts its accesses from 0 again. */
void pager_count_reached(pager *pager, const fault_request *request, uint64_t address);

/* ---- room: room.c ---- */

/* Bytes that must be free for the unit to come. */
uint64_t pager_room_wanted(pager *pager, uint64_t address, const pager_unit *unit);
void pager_room_take(pager *pager, uint64_t address, const pager_unit *unit);
void pager_room_give(pager *pager, uint64_t address, const pager_unit *unit);
uint64_t pager_room_ready(pager *pager); /* for the transfer that begins now: takes room_at, and clears it */

void pager_view_init(pager *pager);
/* The latest use of what is resident of a range; and of a chunk's group, which is kept (units of a group or less). */
uint64_t pager_latest_use(pager *pager, uint64_t address, uint64_t bytes);
uint64_t pager_group_use(pager *pager, pager_chunk *chunk, uint32_t group);
/* Evicts until `bytes` are free. false: what is left cannot be evicted now (it is on its way). */
bool pager_make_room(pager *pager, const fault_request *request, uint64_t bytes);
/* Segments. Starts to move what is absent of the range and finds room, for which only what no launch declared goes;
 * returns how many bytes that are. Units of blank allocations that were not written only take their room. And: one
 * launch more or less has declared the allocation. */
uint64_t pager_request(pager *pager, const fault_request *request, uint64_t address, uint64_t bytes);
void pager_declare(pager *pager, uint32_t allocation, bool declared);
/* Watermarks: evicts ahead if less than `low` is free, as far as anything can go now. Called when a far-fault or a
 * prefetch has taken room and when something has landed. Nothing goes while all that is allocated fits. */
void pager_keep_free(pager *pager, const fault_request *request);
void pager_watermarks_set(pager *pager); /* memory has another size */

/* ---- cleaning: clean.c ---- */

bool pager_wants_clean(const pager *pager); /* the evictor may propose something */
/* The link to the CPU has nothing to do. What the evictor proposes first and is dirty becomes clean, at most 64 KiB of
 * it; returns how much that is, at *address, which the machine must carry. One piece at a time. */
uint64_t pager_clean(pager *pager, uint64_t *address);
/* The dirty unit's bytes are the CPU's, too; `for_host`: as the host wants them. */
void pager_clean_unit(pager *pager, pager_unit *unit, bool for_host, uint64_t address);
void pager_clean_until(pager *pager, uint64_t time); /* the piece will have been carried then */
void pager_clean_end(pager *pager);                  /* it has */
/* When the bytes of the range that are being copied will be the CPU's; 0: none are. */
uint64_t pager_cleaning(const pager *pager, uint64_t address, uint64_t bytes);
/* Lets the prefetcher propose what to bring along with these faults, and starts it. */
void pager_prefetch(pager *pager, const fault_request *request, const ff_fault *faults, size_t count);
void pager_ask_prefetcher(pager *pager, const ff_fault *faults, size_t count); /* only adds to to_bring */
uint32_t pager_flight_take(pager *pager);
void pager_flight_set(pager *pager, uint32_t flight, uint64_t address, uint64_t bytes, uint64_t lands);

/* ---- marks: marks.c ---- */

/* Units of one chunk, one behind the other, whose state has become the same: they are yet to be marked and told of. */
typedef struct pager_marks {
  uint64_t first, end; /* windows */
  pager_chunk *chunk;  /* NULL: there are none */
  pager_state now;
} pager_marks;
/* The unit's state has changed. `address` is any address in the unit. What cannot be marked with it is marked first. */
void pager_marks_add(pager *pager, pager_marks *marks, uint64_t address, const pager_unit *unit);
/* To be called before anything looks at sets, views or leaves: policies, evictions, warps that wake. */
void pager_marks_end(pager *pager, pager_marks *marks);
void pager_mark(pager *pager, uint64_t address, const pager_unit *unit); /* both, of one unit */
void pager_tell(pager *pager, uint64_t address, bool arrived);           /* the policies: a unit has come or gone */
void pager_mark_window(pager *pager, pager_chunk *chunk, uint64_t window);
void pager_mark_windows(pager *pager, pager_chunk *chunk, uint64_t first, uint64_t end); /* all from `first` to `end` */
/* A launch has declared the window's allocation, or does no longer: what of it can go is spare no longer, or again. */
void pager_mark_declared(pager *pager, pager_chunk *chunk, uint64_t window);
void pager_view_update(pager *pager); /* before a policy is asked or told */
/* A block that is handed out whole must keep one of its pages, and so all. */
bool pager_block_stays(const pager *pager, const pager_chunk *chunk);

/* Walks the units of the allocations in [address, address + bytes), whatever lies between them. */
typedef struct pager_walk {
  pager *p;
  uint64_t at, begin, end;
  uint64_t address;           /* of the current unit's first byte in the range */
  uint64_t first, last;       /* the current unit's first byte, and its end */
  const pager_allocation *in; /* the allocation that holds `at`; NULL: to be found */
  pager_chunk *chunk;         /* of the current unit */
  bool covered;               /* the range holds all of the current unit */
} pager_walk;
pager_walk pager_walk_begin(pager *pager, uint64_t address, uint64_t bytes);
pager_unit *pager_walk_next(pager_walk *walk); /* NULL: the end */

/* Walks only those of a set, which costs what there is of them. The current one may be evicted. */
typedef struct pager_held {
  pager *p;
  pager_set set;
  uint64_t begin, end;
  uint64_t number; /* of the current chunk; its windows from `window` on are still to come */
  uint32_t window;
  pager_unit *sibling; /* the next one of the same window; NULL: there is none */
  pager_chunk *chunk;
  uint64_t address; /* of the current unit's first byte */
} pager_held;
pager_held pager_held_begin(pager *pager, uint64_t address, uint64_t bytes); /* PAGER_HELD */
pager_held pager_set_begin(pager *pager, pager_set set, uint64_t address, uint64_t bytes);
pager_unit *pager_held_next(pager_held *held); /* NULL: the end */
/* Each set is a part of the one before: how many of them, from the first on, the unit is in; and whether it is in
 * one. */
int pager_sets_of(const pager *pager, const pager_unit *unit);
bool pager_in_set(const pager *pager, const pager_unit *unit, pager_set set);
/* Of the chunk's windows the first from `at` on that holds something or, if not `held`, that holds nothing; the number
 * of windows: there is none. */
uint32_t pager_chunk_next(const pager *pager, const pager_chunk *chunk, uint32_t at, bool held);
/* The policies: what of the chunk's pages could not be evicted `before`, when these were moving, and can be now. */
void pager_tell_settled(pager *pager, pager_chunk *chunk, const ff_pages *before);

/* ---- partial pages: partial_pages.c ---- */

/* The unit at `address` is on its way: brings what lies between the page's ranges and may not stay out. */
void pager_partial(pager *pager, const fault_request *request, uint64_t address);
uint32_t pager_page_ranges(pager *pager, uint64_t address); /* that the page has now */

/* ---- what the host and copies do; nothing may be in flight in the range ---- */

typedef struct pager_moves {
  uint64_t units, bytes;    /* what the machine must carry over the link */
  uint64_t faults, faulted; /* units that the host's accesses faulted on, and their bytes */
  uint64_t first_touches;   /* and on which they faulted as on any memory that holds nothing yet */
} pager_moves;

pager_moves pager_host_read(pager *pager, uint64_t address, uint64_t bytes); /* -> moves out */
/* The host takes back, with one fault, what is newer in GPU memory, or would be if it had not been cleaned. -> moves
 * out, faults. */
pager_moves pager_host_take(pager *pager, uint64_t address, uint64_t bytes);
pager_moves pager_host_write(pager *pager, uint64_t address, uint64_t bytes); /* -> moves out (pages written in part) */
/* resident without a transfer: it has no bytes yet */
void pager_unit_appears(pager *pager, pager_unit *unit, uint64_t address);
pager_moves pager_gpu_fill(pager *pager, uint64_t address, uint64_t bytes);  /* written whole by the GPU -> moves in */
pager_moves pager_gpu_fetch(pager *pager, uint64_t address, uint64_t bytes); /* to be read by the GPU -> moves in */
/* Parts of these, for the pager's own files. Partial pages: whole pages go back to the CPU before part of one does. */
void pager_unit_leaves(pager *pager, pager_unit *unit, uint64_t address);
/* keeps: who has it now keeps it, if the program has said that it is mostly read */
void pager_bring_in(pager *pager, pager_unit *unit, bool keeps, uint64_t address, pager_moves *moves);
void pager_whole_pages_back(pager *pager, uint64_t address, uint64_t bytes, pager_moves *moves);
void pager_moved(pager *pager, const pager_unit *unit, bool in);
void pager_zeroed(pager *pager, const pager_unit *unit);

/* ---- hints and the host's loads and stores: paging_hints.c (MANAGER_PAGED, managed allocations) ---- */

/* The host reads or writes some of each page from *address to `end`: what lies in GPU memory is brought back first, so
 * a page that is written in part keeps the rest. -> moves out, faults. *until > 0: it must wait until then for the page
 * that *address is now in, and goes on there; else *address is `end`, or where the next page begins if the prefetcher
 * adds to the host's faults: then it ends behind each. `now`: the host's time. Partial pages: none may be in flight. */
pager_moves pager_host_touch(pager *pager, uint64_t *address, uint64_t end, bool write, uint64_t now, uint64_t *until);
/* The unit, which is in GPU memory, is the host's; `keeps`: the GPU has it too, both may read it. */
void pager_host_takes(pager *pager, pager_unit *unit, bool keeps, uint64_t address, uint64_t now, pager_moves *moves);
/* cudaMemPrefetchAsync to the CPU (-> moves out) and to the GPU (-> moves in); nothing may be in flight in the
 * range. */
pager_moves pager_prefetch_out(pager *pager, uint64_t address, uint64_t bytes);
pager_moves pager_prefetch_in(pager *pager, uint64_t address, uint64_t bytes);
/* device -1: the CPU */
void pager_advise(pager *pager, uint64_t address, uint64_t bytes, trace_advice advice, int32_t device);
/* of a unit that is not in GPU memory: ABSENT, or mapped by the GPU all the same */
pager_state pager_away(const pager_unit *unit);
bool pager_stays(const pager_unit *unit); /* the GPU's far-fault maps it where it is */
/* it is not in GPU memory, nor on its way, and may be brought: ABSENT, or REACHED and not hinted to stay */
bool pager_may_come(const pager_unit *unit);
/* for the far-fault of this warp */
pager_flight_kind pager_flight_kind_of(const pager *pager, const pager_unit *unit, uint32_t warp);

void pager_remap(pager *pager, pager_unit *unit, uint64_t address); /* its hints have changed */

/* ---- host_prefetch.c: what goes to the host with its faults ---- */

bool pager_host_prefetches(const pager *pager);      /* the prefetcher adds to them */
void pager_host_ask(pager *pager, uint64_t address); /* for a fault on this page; what is proposed stands in to_evict */
void pager_host_prefetch(pager *pager, uint64_t now, pager_moves *moves); /* that goes */

/* ---- thrashing: thrash.c ---- */

typedef enum pager_thrash_answer {
  PAGER_THRASH_NONE,
  PAGER_THRASH_THROTTLE,
  PAGER_THRASH_PIN_CPU,
  PAGER_THRASH_PIN_GPU
} pager_thrash_answer;
/* A page migrates to a processor because that faulted on it, or on a page next to it. */
void pager_thrash_event(pager *pager, uint64_t address, pager_processor processor, uint64_t now);
/* A processor faults on a page: what is to be done? THROTTLE: not before *until. PIN: it is pinned there now. */
pager_thrash_answer pager_thrash_ask(pager *pager, uint64_t address, pager_processor asks, uint64_t now,
                                     uint64_t *until);
bool pager_thrashes(const pager *pager, const pager_chunk *chunk, uint64_t address);
void pager_thrash_forget(pager *pager, uint64_t address); /* the program has moved the page, or freed it */
void pager_thrash_free(pager_chunk *chunk);
void pager_unpin(pager *pager, uint64_t now); /* what is due by now; to be called when pins_due <= now */

/* MANAGER_PROGRAM: the program's copy wrote device memory, or a managed allocation moves whole. */
void pager_copy_write(pager *pager, uint64_t address, uint64_t bytes);
/* A copy from the host changes the GPU's copy; else the host's, which goes in before the next launch. What the host may
 * have written (host_wrote) it has not written where the GPU wrote since. */
bool pager_managed_on_gpu(const pager_allocation *allocation);
/* bytes over the link; 0: the GPU's copy is the newest */
uint64_t pager_managed_in(pager *pager, uint32_t allocation);
/* bytes over the link; 0: the host's copy is the newest */
uint64_t pager_managed_out(pager *pager, uint32_t allocation);
void pager_managed_host_write(pager *pager, uint64_t address, uint64_t bytes);

/* ---- managed pages: managed_pages.c (MANAGER_PROGRAM with cpu_fault_bytes) ---- */

bool pager_managed_pages(const pager *pager); /* the manager keeps them so */
/* A launch: pages are the GPU's alone. Puts the runs of dirty ones, which are to be copied to the GPU, into to_bring in
 * order of address. false: the CPU has touched none since the last time, so nothing had to be taken from it and nothing
 * is to be copied. */
bool pager_managed_unmap(pager *pager);
/* The CPU touches the page at `address`. Returns what must come back first; no unit: the page was the CPU's already. */
pager_moves pager_managed_fault(pager *pager, uint64_t address);
/* And writes to pages that are the CPU's. */
void pager_managed_dirty(pager *pager, uint64_t address, uint64_t bytes);
/* A copy of the program reads or writes; returns the bytes that lie in GPU memory, the others are the CPU's. */
pager_moves pager_managed_read(pager *pager, uint64_t address, uint64_t bytes);
pager_moves pager_managed_write(pager *pager, uint64_t address, uint64_t bytes);

/* ---- several devices: other_devices.c (MANAGER_PAGED, managed allocations) ---- */

/* Where the bytes of a unit come from that is not in this GPU's memory: 1 + the device that holds it; 0: the host. */
uint8_t pager_source(pager *pager, const pager_unit *unit, uint64_t address);
/* For the owner map: the unit has come (from a source), to be shared or alone; or it has left. */
void pager_note(pager *pager, const pager_unit *unit, uint64_t address, owners_kind kind, uint8_t source);
typedef struct pager_place { /* where a unit is that the GPU reaches where it is */
  int device;                /* -1: in the host's memory */
  owners_set team;           /* multicast memory of these devices; 0: it is none */
} pager_place;
pager_place pager_remote_place(pager *pager, const pager_unit *unit, uint64_t address);
/* It has come from another device, which has it no longer: the host's copy is old. */
void pager_came_from_device(pager *pager, pager_unit *unit, uint64_t address);
/* What happens to the unit's copy outside GPU memory all devices see: this one tells the tiers of it. It is the first
 * one of those that hold the unit; if none does, the one whose operation it is. */
bool pager_speaks_for(const pager *pager, const pager_unit *unit, uint64_t address);
/* After a meeting: what other devices have taken leaves, what they have copied may only be read. */
void pager_owners_changed(pager *pager);
/* Bytes that bring_in has brought from this device since the last call. */
uint64_t pager_from_device(pager *pager, uint32_t device);

/* ---- checks ---- */

void pager_check(const pager *pager);   /* the equations: cheap; at FF_CHECK_DEEP */
void pager_check_all(pager *pager);     /* recounts from the page table */
void pager_managed_check(pager *pager); /* the same for managed pages (managed_pages.c) */
/* forgets that the GPU's copy is old: the oracle must notice */
void pager_break_for_test(pager *pager, uint64_t address);

#endif
