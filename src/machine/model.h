/* SPDX-License-Identifier: Apache-2.0 */
/* The timing model's state: everything that one simulation consists of. Private to machine/ and its tests.
 *
 * Time is picoseconds since the program's first operation. Two times travel with every request below the SM: `ask`, when
 * it would arrive if nothing but fixed latencies lay before it, and `at` >= ask, when it does arrive. A server counts its
 * backlog from `ask` (requests are made nearly in that order, so a late one does not hold the server idle for the
 * others) and serves the request no earlier than `at`:
 *
 *     begin = max(free, ask);  free = begin + service;  the request is served at max(begin, at)
 *
 * What always holds: events leave the heap in order of time, ties in order of insertion; nothing happens between two
 * events; only this simulation's thread touches it, but for what sim.c guards by its mutex. */
#ifndef FF_MACHINE_MODEL_H
#define FF_MACHINE_MODEL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/check.h"
#include "base/memory.h"
#include "base/text.h"
#include "machine/host/given_hints.h"
#include "machine/sim.h"
#include "paging/pager.h"
#include "partition/frames.h"
#include "partition/hash.h"
#include "policy/policies.h"

typedef uint64_t ps;

/* ---- events: events.c ---- */

typedef enum event_kind { EVENT_WARP, EVENT_NODE_READY, EVENT_NODE_DONE, EVENT_KERNEL_BEGIN, EVENT_FLIGHT, EVENT_DEPART, EVENT_BATCH, EVENT_LINK_IDLE, EVENT_CLEAN, EVENT_SLICE } event_kind;
/* key = time << 64 | order << 32 | kind << 28 | index: one comparison gives time, then order of insertion. An index that is a simulation's own (not a
 * warp's) has the tenant's number in its upper bits: sim_event. */
enum { EVENT_TENANT_SHIFT = 24 };
typedef struct event { unsigned __int128 key; } event;
static inline ps event_time(event e) { return (ps)(e.key >> 64); }
static inline event_kind event_kind_of(event e) { return (event_kind)((uint32_t)e.key >> 28); }
static inline uint32_t event_index(event e) { return (uint32_t)e.key & 0x0fffffff; }
static inline uint32_t event_own_index(event e) { return (uint32_t)e.key & ((1u << EVENT_TENANT_SHIFT) - 1); }
static inline uint32_t event_tenant(event e) { return (uint32_t)e.key >> EVENT_TENANT_SHIFT & 15; }

typedef struct event_heap {
  event *items;
  uint32_t count, capacity, order;
  bool hole;             /* items[0] has been popped, and is counted still */
  ps next_time;          /* of the next event, or `horizon` if that is earlier; UINT64_MAX: there is none */
  ps horizon;            /* when a tenant that waits for a time goes on (device.c): no warp runs past it; UINT64_MAX: never */
} event_heap;
void event_push(event_heap *heap, ps time, event_kind kind, uint32_t index);
event event_pop(event_heap *heap);
ps event_next(const event_heap *heap); /* time of the next event itself; UINT64_MAX: there is none */
static inline bool event_any(const event_heap *heap) { return heap->count > heap->hole; }

/* ---- memory: arena.c ---- */

/* Everything that is read all over while a simulation runs lies together, in huge pages where the host has them. */
typedef struct arena {
  struct arena_slab { void *memory; size_t bytes; } *slabs;
  size_t slab_count, used; /* used: bytes of the last slab */
} arena;
void *arena_alloc(arena *a, size_t bytes); /* zeroed, on a cache line of the host; lives until arena_free */
void arena_free(arena *a);

/* ---- servers and slots ---- */

typedef struct server { ps free; } server;
static inline ps server_take(server *s, ps ask, ps at, ps service) {
  ps begin = s->free > ask ? s->free : ask;
  s->free = begin + service;
  return begin > at ? begin : at;
}

/* A number of equal places, each held until a known time (MSHRs, page walkers); a place that was never taken is held
 * until 0. The times stand in order in a window that slides over twice its length: what is taken next mostly ends last,
 * so that this is a step or two, where a heap would be several that no host processor can predict. */
typedef struct slots { ps *until; uint32_t first, capacity; } slots;
void slots_init(slots *s, arena *a, uint64_t capacity);
static inline ps slots_wait(const slots *s, ps at) { /* when one is free, at the earliest */
  return s->until[s->first] > at ? s->until[s->first] : at;
}
void slots_hold(slots *s, ps until); /* takes the place that slots_wait spoke of */

/* Division by a number that is known when the machine is made: a multiplication for all dividends below `limit`. */
typedef struct divider { uint64_t by, magic, limit; } divider;
static inline divider divider_make(uint64_t by) {
  return (divider){by, by > 1 ? UINT64_MAX / by + 1 : 0, by > 1 ? UINT64_MAX / by : 0};
}
static inline uint64_t divide(uint64_t x, const divider *d) {
  return x < d->limit ? (uint64_t)((unsigned __int128)x * d->magic >> 64) : x / d->by;
}
static inline uint64_t modulo(uint64_t x, const divider *d) { return x - divide(x, d) * d->by; }

static inline uint32_t sector_count(uint32_t mask) { /* of four sectors */
  static const uint8_t counts[16] = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};
  return counts[mask & 15];
}

/* ---- tables: lru.c, cache.c ---- */

/* A fully associative table with LRU replacement: TLBs, the page walk cache. */
typedef struct lru_entry { uint64_t key; ps ready; uint32_t newer, older, next; } lru_entry;
typedef struct lru {
  lru_entry *entries;   /* [0] is the list's head: newer/older make a ring */
  uint32_t *buckets;
  uint32_t count, capacity, mask;
} lru;
void lru_init(lru *table, arena *a, uint64_t capacity);
lru_entry *lru_find(lru *table, uint64_t key);            /* and makes it the youngest; NULL: absent */
lru_entry *lru_insert(lru *table, uint64_t key, ps ready); /* key must be absent; the oldest goes if it is full. NULL: it has no entries */
uint32_t lru_remove_range(lru *table, uint64_t first, uint64_t last); /* all keys from first to last; how many */
bool lru_remove(lru *table, uint64_t key);                /* false: it was not there */

/* A set-associative cache of 128-byte lines in four sectors, LRU. */
typedef struct cache_line {
  ps ready;             /* when the pending sectors arrive */
  uint8_t valid, dirty, pending; /* sector masks; pending is part of valid */
  uint32_t filled;      /* machines with stacks: versions_now when it became this line */
} cache_line;
typedef struct cache_ring { uint32_t newer, older, next; } cache_ring;
typedef struct cache {
  uint64_t *tags;       /* sets x ways, as the others; 0: empty */
  cache_line *lines;
  uint32_t *used;       /* few ways: stamps for LRU */
  cache_ring *rings;    /* many ways: each set's lines in order of use, and what hangs behind them in a bucket */
  uint32_t *buckets;    /* many ways: line + 1 by hash of the tag */
  divider sets;
  uint32_t ways, clock, bucket_mask;
} cache;
void cache_init(cache *c, arena *a, uint64_t bytes, uint64_t ways);
cache_line *cache_find(cache *c, uint32_t set, uint64_t tag);  /* NULL: absent */
/* The line to replace (an empty one, else the least recently used); its old tag in *tag. */
cache_line *cache_victim(cache *c, uint32_t set, uint64_t *old_tag);
void cache_retag(cache *c, cache_line *line, uint64_t tag);    /* the line now holds nothing of `tag` (0: is empty) */
void cache_clear(cache *c);
/* Ask the host's caches for what cache_find(c, set, tag) will read: `far` first, `near` some lines later. */
void cache_prefetch_far(const cache *c, uint32_t set, uint64_t tag);
void cache_prefetch_near(const cache *c, uint64_t tag);

/* ---- the machine's parts ---- */

enum { LOAD_RING = 32, BURST = 32, BARRIERS = 16, SEEN_PAGES = 64, AHEAD_CYCLES = 64 };

typedef struct tally { sim_counters *kernel, *allocation; } tally;
#define COUNT(t, field, n) ((void)((t)->kernel->field += (n), (t)->allocation->field += (n)))

/* All durations of the spec in picoseconds. */
typedef struct timing {
  uint64_t cycle_fixed, interval_fixed, sfu_fixed, fp64_fixed, shared_fixed; /* picoseconds << 20, per instruction or pass */
  ps cycle, ahead, launch, block_launch;
  ps side, l1, l2_there, l2_back, l2_service[5]; /* by sectors */
  ps tlb_port, tlb_there, tlb_back, shared_tlb, walk_cache;
  ps dram_there, dram_back, dram_burst[5], t_rcd, t_rp, t_rc, t_cl, t_wr;
  ps link_latency, link_copy, fault, fault_batch, fault_block, host_fault, managed_launch, api, launch_call, sync, malloc;
  ps reserve, create, release, map, unmap, set_access;
  double h2d_per_byte, d2h_per_byte, host_per_byte, dram_per_byte; /* picoseconds */
} timing;

typedef struct warp {
  uint32_t burst, passes, sfu, fp64; /* what is left of an ISSUE */
  const uint64_t *record; /* the ACCESS in progress; NULL: none */
  struct sm *sm;
  server *scheduler;
  sim_counters *counters; /* of its kernel */
  uint32_t index;
  uint32_t loads;         /* issued so far; load i arrives at ring[i % LOAD_RING] */
  bool asleep;
  bool marked;            /* between ENTER and LEAVE, on a machine with stacks: stacks.h */
  trace_cursor cursor;
  struct block *block;
  uint64_t todo;          /* of the access's lines from first_line on, those not accepted yet */
  ps arrival;             /* when the data of those that were accepted has arrived */
  ps slept;               /* asleep: since when */
  uint32_t first_line;
  uint32_t waiting_units; /* far-faults it sleeps on */
  uint32_t next;          /* in a barrier's list, or in the load/store unit's */
  ps ring[LOAD_RING];
} warp;

typedef struct block {
  struct kernel *kernel;
  trace_chunk *chunk;
  struct sm *sm;
  uint64_t position;            /* in the program's order, if the future is known */
  uint32_t live, waiting;       /* warps that have not exited; of these, at a barrier */
  uint32_t arrived[BARRIERS], first_waiting[BARRIERS], last_waiting[BARRIERS];
  ps barrier_time[BARRIERS];    /* the latest arrival so far */
  ps began, ended, drained;     /* the latest exit so far; when its last access is over */
  uint64_t serial;              /* no other block of the simulation has the same, whatever memory it lies in */
  ps written;                   /* when all that its warps have written is in memory (l2_write_through) */
  struct block *next_free;
} block;

typedef struct seen_page { /* a page that the access in the load/store unit has asked the TLB for */
  uint64_t page;                /* address >> seen_shift */
  ps ready;
  uint8_t alias_tag;
  bool here;
} seen_page;

typedef struct sm {
  uint32_t index;
  uint32_t stack;               /* 1 + the memory stack whose logic layer it is in; 0: it is on the GPU */
  uint32_t began_version;       /* in a stack: versions_now when the last instance came */
  server *schedulers;
  server lsu, shared, tlb_port;
  uint32_t lsu_owner, lsu_first, lsu_last; /* the warp whose access it works on; those that wait, by warp.next */
  uint32_t seen_count;
  seen_page seen[SEEN_PAGES];   /* of the owner's access */
  ps next_block;
  cache l1;
  uint64_t l1_epoch;            /* part of its tags: a kernel's begin empties it */
  slots l1_mshrs, stores;
  lru tlb;
  uint32_t threads, blocks, next_scheduler;
  uint64_t registers, shared_bytes; /* in use */
  bool tlb_blocked;
  struct warp_list { uint32_t *items; size_t count, capacity; } *blocked_warps; /* in the simulation's own array */
} sm;

typedef struct dram_bank { int64_t row; ps ready, activated, written; } dram_bank;
typedef struct dram_channel { server bus; dram_bank *banks; } dram_channel;
/* What MSHRs that hold more than a line hold (l2_mshr_bytes): misses of one piece share one. */
enum { HELD_PIECES = 64 };
typedef struct held_piece { uint64_t piece; ps until; } held_piece;
typedef struct l2_slice {
  server port;
  cache cache;
  slots mshrs;
  held_piece *held;             /* by piece mod HELD_PIECES, the latest; NULL: an MSHR holds a line */
  dram_channel *channel;
  uint32_t part;                /* which of its channel's slices it is */
} l2_slice;

typedef struct link_direction { server bus; double per_byte; uint64_t busy; } link_direction;
typedef struct host_link {
  link_direction h2d, d2h;
  server engines[2];            /* one engine: [0] carries both directions */
  server device;                /* copies within GPU memory */
  ps accounted, union_busy;     /* busy in at least one direction, until `accounted` */
  ps beside_kernels;            /* of union_busy, while a kernel ran */
} host_link;

/* Which SMs a kernel's blocks may start on. */
enum { SM_SET_WORDS = 64 };
typedef struct sm_set { uint64_t bits[SM_SET_WORDS]; } sm_set;
static inline bool sm_set_has(const sm_set *set, uint32_t sm) { return set->bits[sm / 64] >> (sm % 64) & 1; }

typedef struct kernel {
  struct sim *sim;              /* whose it is */
  const sm_set *sms;            /* NULL: all */
  trace_launch *launch;         /* until the last block is over */
  uint64_t number;              /* the launch's */
  sim_counters *counters;
  uint32_t node;
  uint64_t blocks, next_block, done_blocks;
  trace_chunk *ahead;           /* of next_block, if that was looked at to find its SM */
  uint32_t bound_to;            /* where it must start then; UINT32_MAX: anywhere */
  uint32_t warps_per_block, block_threads;
  uint64_t block_registers, block_shared;
  ps began, ended, longest_block; /* longest_block: of those that are over */
  struct kernel *next;          /* in the dispatcher's queue, or among the running ones */
} kernel;

/* ---- streams and operations: queue.c ---- */

typedef struct node { /* an operation in a stream */
  trace_op op;
  uint32_t index;
  uint32_t waits;               /* unfinished operations before it, plus one while it is made */
  FF_VEC(uint32_t) dependents;
  ps ready, done_at;
  bool done;
  uint32_t references;          /* stream tails, events, the host that waits */
  kernel *kernel;
  /* segments */
  FF_VEC(uint32_t) uses;        /* a launch's: allocations that it declares, until it is over */
  uint32_t use;                 /* how far they have been fetched while others ran: this one, up to use_at */
  uint64_t use_at;
  const sm_set *sms;            /* a launch's; NULL: all */
  bool only_kernels;            /* nothing but launches was unfinished before it */
  bool waited;                  /* for what it declares */
} node;

typedef struct stream {
  uint32_t number;
  bool non_blocking, destroyed;
  uint32_t tail;                /* its last operation; 0: none ever */
  ps done_at;                   /* of all its finished operations the latest */
  const sm_set *sms;            /* of launches that are still to be made; NULL: all */
} stream;

typedef struct event_record { uint64_t sequence; uint32_t number, node; ps time; bool known; } event_record;

typedef struct batch_fault { tally tally; ps time; } batch_fault;

typedef struct freed_ahead { uint64_t bytes; ps at; } freed_ahead; /* `at`: it has been written back */

typedef struct question { uint64_t sequence; struct question *next; } question; /* of another thread, about an event */

enum { HOST_TIMES = 1 << 16, ALLOCATIONS_SHOWN = 4096, SEGMENTS_AHEAD = 8, SM_SETS = 256 };

typedef struct hinted {         /* an allocation that is to be prefetched */
  uint64_t address, bytes;
  bool away;                    /* it has not come since the host had it last */
} hinted;

typedef struct created_memory { uint32_t id, mappings; uint64_t bytes; bool released, used; } created_memory; /* used: was mapped once */
typedef struct reserved_range { uint64_t address, bytes; uint32_t id, owner; } reserved_range;

/* ---- the device: device.c. Several simulations (tenants) may be on one: each has its program, its host, its streams and its pager; SMs,
 * caches, TLBs, DRAM and the link are the device's. ---- */

typedef struct moved_page { uint64_t address, home; } moved_page; /* virtual; physical: where it goes back to */
typedef struct placed_block placed_block;
typedef struct placed_run { uint64_t address, bytes, physical; } placed_run; /* an allocation in one piece of physical memory */
typedef struct placing {        /* address_map.c: virtual blocks of 2 MiB, by hash */
  placed_block **blocks, *last; /* last: that was asked for */
  uint32_t capacity, count;
  FF_VEC(placed_run) runs;
} placing;

enum { TENANTS = SIM_TENANTS, SPACE_SHIFT = 47 }; /* addresses of tenant n have n in the bits from SPACE_SHIFT on */

typedef enum tenant_wait { WAIT_NOTHING, WAIT_TIME, WAIT_NODE, WAIT_ALL, WAIT_GONE } tenant_wait;

typedef struct tenant {
  sim *sim;                     /* NULL: between two rounds, or idle */
  sim_tenant given;
  sm_set sms;                   /* its own */
  tenant_wait waits;            /* its thread, while another one's runs: for what */
  ps until;                     /* WAIT_TIME: its host's clock has come there */
  node *node;                   /* WAIT_NODE */
  pthread_cond_t turn;
  uint32_t foreign_blocks;      /* of others, on its SMs */
  uint32_t lent_blocks;         /* its own, on SMs of others */
  ps idle_since;                /* no kernel of its runs: since when */
  ps wants_back;                /* since when it waits for them to be over; 0: it does not */
  ps take_back, borrowed_from, borrowed;
  uint64_t lent_bytes;          /* that it read and wrote in modules of others */
} tenant;

typedef struct device {
  uint32_t uses;                /* simulations and, if there may be several, its maker */
  machine_spec spec;
  event_heap heap;
  arena arena;
  sm *sms;
  uint32_t sm_total;            /* with those in memory stacks, which come last */
  l2_slice *slices;
  dram_channel *channels;
  lru walk_cache;
  slots walkers;
  lru *shared_tlb;              /* its sets; NULL: there is none */
  divider shared_sets;
  host_link link;
  FF_VEC(warp *) warps;
  FF_VEC(uint32_t) free_warps;
  struct warp_list *blocked_warps; /* per SM */
  /* where physical memory lies: NULL where the machine file says nothing of it */
  address_hash *hash;
  frames *frames;
  /* tenants */
  sim_isolation isolation;
  bool borrow, shared;          /* shared: made for several */
  uint32_t tenant_count, registered, running; /* running: the tenant whose thread may work */
  uint32_t turn;                /* who is asked first for a block */
  bool stop;                    /* all that do not loop are over: the others stop where they are */
  ps now;
  pthread_mutex_t work;         /* of all its simulations: whoever's turn it is works for all of them */
  pthread_mutex_t mutex;        /* of `registered` and `running`, for who waits for his turn */
  tenant tenants[TENANTS];
  /* SIM_ISOLATION_NONE: time slices */
  uint32_t slice_owner;         /* its blocks may start; TENANTS: nobody's */
  ps slice_until;               /* when its time is up; */
  bool slice_over;              /* it is: nothing of its starts any more */
} device;

struct sim {
  device *d;
  uint32_t tenant;              /* its number on the device */
  uint64_t space;               /* tenant << SPACE_SHIFT */
  ps began;                     /* the device's time when it was made */
  bool instant;                 /* what is not a kernel takes no time */
  uint64_t thread_limit, threads; /* MPS: resident threads that it may have, and has; 0: any number */
  uint32_t running_blocks;
  uint32_t unfinished, own_events; /* operations that are not over; events of its own in the heap, warps' apart */
  placing placing;
  FF_VEC(moved_page) moved;     /* idle_sharing.c: pages in memory that others lend */
  ps look_again;                /* for such memory, no earlier than that */
  /* what it is made of */
  const machine_spec *spec;     /* &own_spec */
  const manager *manager;       /* &own_manager */
  ff_policy_instance prefetch, evict;
  trace_program *program;
  trace_reader *reader;
  bool joins_issues;            /* the stream has marks, which mean nothing here */
  uint64_t gpu_memory;          /* that it works with: what it was given, a paged manager its least until it was given more */
  uint64_t given_memory;        /* the same for all managers; of a share the most so far */
  uint64_t least_memory;        /* that a paged manager can work with */
  bool left_out;                /* it was given less: what was counted is no result */
  double gpu_memory_share;      /* of the most that was mapped at one time so far; 0: gpu_memory is fixed */
  timing t;
  struct stacks *stacks;        /* memory stacks; NULL: the machine has none */
  ps stopped;                   /* no warp goes on before that */
  /* the device */
  ps now;
  sm *sms;
  l2_slice *slices;
  dram_channel *channels;
  uint64_t slices_per_channel;
  divider by_slices, by_row, by_banks;
  lru *shared_tlb;              /* its sets; NULL: there is none */
  divider shared_sets;
  pager *pager;
  trace_future *future;         /* that its policies ask; NULL: they do not */
  trace_future *record;         /* that it writes; NULL: none */
  FF_VEC(uint64_t) positions;   /* future: of the blocks that run */
  bool leaves_grow;             /* the pages that TLB entries map follow what is resident; else all are PAGER_LEAF_MIN */
  uint8_t alias_mask;         /* 0: units share the entries of a page */
  uint32_t leaf_shift[PAGER_LEAVES]; /* of these pages */
  bool page_fixed;              /* the user chose one size for all */
  uint32_t walk_shift;          /* of the machine's page_bytes, whatever is mapped: see gmmu_walk */
  uint32_t seen_shift;          /* of what a translation answers for: the smallest page, or a unit if that is smaller */
  ps fault_from;                /* when the request that faults now has reached the GMMU; 0: it is replayed */
  ps served_from;               /* when the far-fault's service began that pages are prefetched beside; 0: none */
  sim_counters *served_kernel;  /* whose far-fault that is */
  enum { BATCH_NONE, BATCH_CALLED, BATCH_SERVED } batch; /* the driver: idle, on its way, at work */
  ps batch_at;                  /* how far the service has come */
  FF_VEC(batch_fault) batch_faults; /* what it serves, for the counters */
  bool idle_pending;            /* an EVENT_LINK_IDLE is in the heap */
  bool clean_pending;           /* an EVENT_CLEAN is in the heap */
  ps room_at;                   /* when the memory that the next transfer takes is written back */
  FF_VEC(freed_ahead) freed;    /* memory that was evicted ahead and may still be being written back, oldest first */
  size_t freed_first;
  uint64_t freed_bytes;         /* sum of what is in it */
  bool write_back_overlaps;     /* the transfer in need not wait for that */
  /* warps, blocks, kernels */
  struct warp_list *blocked_warps; /* per SM */
  FF_VEC(block *) blocks;     /* all that were ever made, */
  block *free_blocks;         /* and those that are not running */
  uint64_t blocks_begun;
  kernel *queue_first, *queue_last; /* kernels with blocks to start */
  kernel *running;              /* all that have begun and not ended */
  uint32_t next_sm, running_count;
  ps running_since, running_until; /* of the kernels that run or ran last; until: where none runs */
  /* the host and its streams */
  ps host;
  FF_VEC(node *) nodes;         /* [0] unused */
  FF_VEC(uint32_t) free_nodes;
  FF_VEC(stream) streams;
  FF_VEC(sm_set *) sm_sets;     /* that streams are bound to, each once */
  uint32_t worked_stream;       /* the only stream that had work so far; UINT32_MAX: none yet */
  bool one_stream;              /* no second one has: launches are simulated to their end at once */
  bool paid;                    /* the operation was put by a call that the host has paid for (trace/origin.h) */
  uint32_t device_index;             /* of the program's devices, the one that is simulated; of the others it knows what they cost the host */
  sim_peers *peers;             /* where it meets the others' simulations; NULL: it is alone */
  ps not_before;                /* the operation that is processed waits for another device's event: it happened then */
  FF_VEC(uint32_t) ahead;       /* segments: launches whose turn has not come, in order */
  node *kept_back[SEGMENTS_AHEAD]; /* segments, one stream: the last ones that the host made, a ring */
  uint32_t next_kept_back;
  sim_counters *segment_kernel; /* segments: for which something is fetched now; NULL: nothing is */
  sim_hints hints;              /* given from outside; and what of them is prefetched and alive */
  FF_VEC(hinted) prefetched;
  FF_VEC(created_memory) created;  /* by id */
  FF_VEC(reserved_range) reserved; /* by address */
  bool touches_recorded;        /* the program says when the host touches managed memory */
  uint64_t mapped, mapped_pages, mapped_raw; /* bytes of device and managed memory, as host_memory has them */
  bool failed;
  uint64_t processed;           /* operations */
  ps device_end;                /* the latest end of any operation */
  /* results */
  sim_history *history;         /* NULL: none is kept */
  ps next_sample;               /* of what is resident, for the history; UINT64_MAX: none */
  ps batch_began;               /* the batch that is served, for the history, and what it moves */
  uint64_t batch_bytes;
  sim_counters counters;        /* of the run; the kernels' are added when asked for */
  FF_VEC(sim_kernel_result *) kernels;
  FF_VEC(sim_allocation_result *) allocations; /* [0]: accesses that belong to no allocation */
  char error[512];
  /* other threads */
  pthread_mutex_t *mutex;       /* the device's `work`: held by the thread that simulates, but while it waits */
  pthread_cond_t progress;
  _Atomic uint32_t askers;      /* threads that want the mutex */
  question *questions;
  bool over;
  FF_VEC(event_record) records; /* by sequence */
  ps *host_times;               /* of the last HOST_TIMES operations */
  /* what was chosen, apart from what is read all over */
  machine_spec own_spec;        /* with this simulation's values */
  manager own_manager;          /* with its way of handling far-faults */
  char label[SIM_LABEL_LENGTH];
};

/* durations */
static inline ps fixed_ps(uint64_t count, uint64_t fixed) { return (count * fixed) >> 20; }

/* When the bank can take a column of the row, which is open from then on. */
static inline ps bank_column(const timing *t, dram_bank *bank, int64_t row, ps at, const tally *tally) {
  ps column = at > bank->ready ? at : bank->ready;
  if (bank->row == row) {
    COUNT(tally, dram_row_hits, 1);
    return column;
  }
  COUNT(tally, dram_row_misses, 1);
  if (bank->row >= 0) {
    if (column < bank->written) column = bank->written;
    column += t->t_rp;
    if (column < bank->activated + t->t_rc) column = bank->activated + t->t_rc;
  }
  bank->activated = column;
  bank->row = row;
  return column + t->t_rcd;
}

/* hierarchy.c: from the SM's load/store unit down. Both return when the data has arrived (a store: was taken over). */
typedef struct request {
  uint64_t address;             /* of the line, physical */
  uint32_t sectors, lanes;      /* mask; number of lanes */
  uint32_t sm;                  /* that asks */
  trace_access_op op;
  bool bypass_l1;
  ps ask, at;
  const tally *tally;
  const struct stack_instance *instance; /* that makes it in a stack; NULL */
  block *block;                 /* whose warp asks; NULL: a page walk */
} request;
ps memory_access(sim *s, sm *m, const request *r, ps *accepted); /* *accepted: when the unit can take the next line */
/* The host's caches are asked for the tables' entries of a line some lines before its turn: `far` first, then `near`. */
void memory_prefetch_far(const sim *s, const sm *m, uint64_t address);
void memory_prefetch_near(const sim *s, const sm *m, uint64_t address);
ps remote_access(sim *s, sm *m, const request *r, ps *accepted);
ps l2_access(sim *s, const request *r);
void l2_discard(sim *s, uint64_t address, uint64_t bytes);        /* the page has left: its lines are no longer valid */
bool l1_drop(sm *m, uint64_t physical);                           /* one line; false: it was not there */
bool l2_drop(sim *s, uint64_t physical);
ps channel_take(sim *s, uint64_t physical, ps at);                /* a line's transfer on the bus of its channel: when it is over */
void l2_discard_frames(sim *s, uint64_t physical, uint64_t bytes); /* the same for physical addresses */

/* tlb.c: translation and page walks. */
typedef enum translation { TRANSLATION_DONE, TRANSLATION_ABSENT, TRANSLATION_BLOCKED } translation;
translation tlb_translate(sim *s, sm *m, warp *w, uint64_t address, pager_unit *unit, ps ask, ps at, ps *ready, const tally *tally);
void tlb_forget_range(sim *s, uint64_t address, uint64_t bytes);  /* all translations of it, where pages do not move */
void tlb_forget(sim *s, uint64_t address, const pager_unit *unit); /* shootdown in all SMs */
void tlb_clean(sim *s, uint64_t address, const pager_unit *unit); /* its page is no longer dirty, and entries say that it is */
void tlb_init(sim *s, uint64_t unit_bytes); /* also the shape of the page table */
void tlb_remap(sim *s, uint64_t address, uint64_t bytes, bool whole); /* one page maps it now, or smaller ones do */
ps gmmu_walk(sim *s, const sm *m, uint64_t address, pager_leaf leaf, ps ask, ps at, const tally *tally);
void fault_hooks(sim *s, pager_hooks *hooks);
void fault_view(const sim *s, ff_view *view);        /* what the machine says of the link */
void fault_batch(sim *s); /* the driver begins or ends a batch */
void fault_clean(sim *s); /* lets the evictor use a link to the host that has nothing to do while kernels run */
bool fault_reaches(const sim *s, const pager_unit *unit, ps at); /* the GPU reaches the unit, which departs later, over the link rather than wait for it */
void fault_reached(sim *s, kernel *k, uint64_t address); /* the GPU has read or written so much over the link that the prefetcher is told */
void fault_idle(sim *s); /* lets the prefetcher use a link that has nothing to do while kernels run */

/* link.c */
void link_init(sim *s);
void link_account(sim *s, ps now);    /* brings the busy time up to `now` */
ps link_transfer(const sim *s, uint64_t bytes); /* how long so much takes to the GPU, once it moves */
ps link_carry(sim *s, history_cause cause, bool in, uint64_t bytes, ps from); /* one page or sector: returns when the last byte is through */
ps link_remote(sim *s, bool write, uint64_t bytes, ps ask, ps at);
ps link_copy(sim *s, history_cause cause, bool in, uint64_t bytes, bool pageable, ps from); /* an explicit or bulk transfer on a copy engine */
ps link_device_copy(sim *s, uint64_t bytes, ps from);    /* within GPU memory; bytes read and written together */

/* sm.c */
void warp_wake(sim *s, warp *w, ps time);
void warp_sleep(sim *s, warp *w, ps time);

/* warp_access.c: the warp's ACCESS in progress. false: the warp sleeps and will be woken; else *time has moved on. */
void access_begin(sim *s, warp *w, const uint64_t *record, ps *time);
bool access_continue(sim *s, warp *w, ps *time);

/* dispatch.c */
void kernel_begin(sim *s, kernel *k, ps time);
void block_end(sim *s, block *b);
void dispatch_again(sim *s, ps time); /* what held blocks back is over */
void dispatch_slice(device *d, ps time); /* a time slice is over */
#define SLICE UINT64_C(2000000000) /* 2 ms: NVIDIA's driver reports time slices of this order */

/* device.c: who is on the device, and whose turn it is. */
device *device_create(const machine_spec *spec, uint32_t near, bool shared); /* near: SMs in memory stacks */
void device_release(device *d);
void sim_event(sim *s, ps time, event_kind kind, uint32_t index);       /* an event of its own: any but EVENT_WARP */
sim *device_owner(const device *d, event e);                            /* whose event it is */
void device_enter(sim *s);                                              /* its thread begins: returns when it is its turn */
void device_leave(sim *s);
void device_wait(sim *s, tenant_wait what, ps until, node *n);          /* the device and the others go on until then */
bool device_stopped(const sim *s);                                      /* it loops, and nobody measures it any more */

/* address_map.c: which physical address a virtual one has. A machine without address_map has none: the virtual one (with the tenant in it) stands for it. */
uint64_t address_map_find(sim *s, uint64_t address);
bool address_map_peek(const sim *s, uint64_t address, uint64_t *physical);  /* false: it has none yet; nothing is placed */
void address_map_allocated(sim *s, uint64_t address, uint64_t bytes);       /* comes to stay: in one piece if that can be had */
void address_map_give(sim *s, uint64_t address, uint64_t bytes);            /* all frames that lie wholly in it */
void address_map_free(sim *s);
void address_map_move(sim *s, uint64_t address, uint64_t physical);         /* the page lies there from now on; whose the frames are is the caller's to know */
typedef void address_map_visit(void *context, uint64_t address);
void address_map_pages(sim *s, address_map_visit *visit, void *context);        /* all pages of data that have a frame, in the same order each time */

/* idle_sharing.c: only with `borrow`. */
tenant *idle_sharing_owner(device *d, uint32_t sm);                          /* whose SM it is; NULL: nobody's */
bool idle_sharing_may(const sim *s, const sm *m, const kernel *k);           /* may a block start on this SM of another tenant? */
void idle_sharing_block_start(sim *s, const sm *m, ps time);
void idle_sharing_block_end(sim *s, const sm *m, ps time);
void idle_sharing_kernel_begin(sim *s, ps time);                             /* it has work: takes back what is its own */
void idle_sharing_kernel_end(sim *s, ps time);
void idle_sharing_look(sim *s, ps time);                                     /* is there memory to be had? */
void idle_sharing_count(sim *s, uint32_t module, uint64_t bytes);             /* that it reads or writes there */
void idle_sharing_forget(sim *s);                                            /* all its pages are where they belong */
static inline uint64_t physical_address(sim *s, uint64_t address) {
  return __builtin_expect(s->d->hash != NULL, 0) ? address_map_find(s, address) : address | s->space;
}

/* queue.c */
stream *stream_find(sim *s, uint32_t number);
void stream_bind(sim *s, uint32_t number, const trace_sms *wanted); /* TRACE_OP_STREAM_SMS */
node *queue_add(sim *s, const trace_op *op, ps issued);  /* one reference is the caller's */
void queue_release(sim *s, node *n);
void node_ready(sim *s, node *n);
void node_done(sim *s, node *n, ps time);
void queue_run_event(sim *s, event e);
void run_until(sim *s, ps limit);          /* all events up to and with `limit` */
void run_until_done(sim *s, node *n);
void run_all(sim *s);
void stream_destroy(sim *s, uint32_t number);
event_record *record_of(sim *s, uint32_t number); /* by the event's number; NULL: never recorded */

/* host_transfer.c: copies, sets and prefetches that begin now; returns when they are over (*again: when to ask again). */
bool transfer_reaches(sim *s, const trace_op *op); /* a copy or set in a stream of another device: has it to do with memory of this one? */
ps operation_begin(sim *s, node *n, ps time, bool *again);
ps transfer_delayed(sim *s, uint64_t address, uint64_t bytes, bool pageable, ps time); /* a copy that waited for a map (learn.c) */
ps transfer_managed_in(sim *s, ps time);   /* copy: managed allocations to the GPU, before a kernel */
ps transfer_managed_out(sim *s, ps time);  /* copy: written ones back, when the host waits */
ps transfer_touch(sim *s, const trace_op *op, ps time); /* the host's own access to managed memory */

/* declared_residency.c: does nothing under other managers */
void segments_declare(sim *s, node *n);                  /* a launch has been queued */
void segments_over(sim *s, node *n);                     /* and is over */
bool segments_declared(const sim *s, const kernel *k, uint32_t allocation);
ps segments_resident(sim *s, node *n, ps time);          /* its turn: when all that it declares and that finds room is there */
void segments_idle(sim *s);                              /* the link may have nothing to do: fetches for queued launches */
ps segments_fetch(sim *s, uint64_t bytes, uint32_t flight, const pager_unit *first); /* for segment_kernel */

/* given_hints.c: does nothing without hints from outside */
trace_memory_kind hints_memory(const sim *s, const trace_op *op); /* what the allocation counts as */
void hints_allocated(sim *s, const trace_op *op);  /* it is mapped */
void hints_released(sim *s, uint64_t address);
void hints_touched(sim *s, const trace_op *op);    /* a copy, or a touch of the host's */
/* What is to be prefetched before the launch: one operation after the other, until false. */
bool hints_launch(sim *s, const trace_op *op, trace_op *prefetch);

/* host.c */
void host_spend(sim *s, ps cost);                  /* host time; the device goes on meanwhile */
void host_wait_for_device(sim *s);
typedef struct host_memory { uint64_t bytes, pages, raw; } host_memory; /* as the manager hands it out; in whole pages; as the program counts it: bytes */
host_memory host_memory_for(const sim *s, uint64_t address, uint64_t bytes); /* that a range takes which is not mapped now */
/* GPU memory for `name`; false: there is none, and the simulation has failed. */
bool host_take_memory(sim *s, host_memory memory, const char *name);
void host_give_memory(sim *s, host_memory memory);
/* Addresses and memory apart: TRACE_OP_RESERVE and those behind it (virtual_memory.c). */
void mapping_process(sim *s, const trace_op *op);
void mapping_foreign(sim *s, const trace_op *op); /* the same of other devices' memory */
void host_spend_call(sim *s);                      /* the cost of a CUDA call that does not wait */
void host_process(sim *s, const trace_op *op);
void sim_fail(sim *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* sim.c */
void sim_yield(sim *s);   /* lets waiting threads in, now and then */
void sim_unlock(sim *s);  /* around everything that may wait */
void sim_lock(sim *s);
event_record *sim_record(sim *s, uint64_t sequence); /* NULL: that operation recorded no event */

/* history_record.c: what is added to the history. All do nothing if none is kept. */
void record_access(sim *s, const pager_unit *unit, uint64_t address, ps time);
void record_fault(sim *s, const pager_unit *unit, uint64_t address, ps time);   /* a far-fault that is served */
void record_evicted(sim *s, const pager_unit *unit, uint64_t address, bool write_back, ps time);
void record_link(sim *s, history_cause cause, bool in, uint64_t bytes, ps begin, ps end);
void record_operation(sim *s, const node *n, ps begin, ps end); /* a copy, a set, a prefetch of the program */
void record_kernel(sim *s, const kernel *k);
void record_released(sim *s, uint32_t owner, ps time);          /* allocation number `owner` is about to be */
void record_sample(sim *s, ps time);                            /* what has been resident up to now, when time has come to next_sample */
sim_history *record_copy(sim *s, ps end);                       /* history_copy_of; there must be one */

/* counters.c */
sim_counters *counters_of_kernel(sim *s, const trace_launch *launch);
uint32_t counters_of_allocation(sim *s, const trace_op *op); /* the index */
void counters_total(sim *s, sim_counters *total);

static inline tally tally_of(sim *s, const kernel *k, const pager_unit *unit) {
  return (tally){k->counters, &s->allocations.items[s->pager->allocations.items[unit->allocation].owner]->counters};
}
static inline bool is_paged(const sim *s) { return s->manager->placement == MANAGER_PAGED; }

#include "machine/stacks/stacks.h"

#endif
