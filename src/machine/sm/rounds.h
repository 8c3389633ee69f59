/* SPDX-License-Identifier: Apache-2.0 */
/* One simulation on several threads: its SMs run in rounds, each for itself, and exchange what they ask of the L2
 * between two rounds.
 *
 *     round:    every SM runs its own events of  [t, t + round_length)  on any thread           (rounds.c, round_lines.c)
 *     between:  what the SMs asked below their L1s is served in order of (ask, SM, order of asking)    (round_serve.c)
 *
 * No answer of the L2 is there before ask + l2_latency, so nothing that is asked in a round of that length is answered
 * in it: a load that an instruction waits for is `open` until the round is over, and the warp waits. What an SM cannot
 * do for itself (a page's first write, a far-fault, the end of a block) stops it; that one step is made between two
 * rounds, at its place in time, and the SM goes on. A translation that its TLB does not have is asked for as lines are;
 * where its answer matters before a round is over, the SM pauses until it is known. So what comes out depends on
 * neither the number of threads nor on which of them runs which SM.
 *
 * The rest of the simulation (operations, copies, far-faults) has its events in the device's queue, as always; no round
 * runs past the next of them. */
#ifndef FF_MACHINE_SM_ROUNDS_H
#define FF_MACHINE_SM_ROUNDS_H

#include "base/memory.h"
#include "machine/memory/hierarchy.h"
#include "machine/memory/tlb.h"
#include "machine/sm/sm.h"

/* A time that is not known yet: OPEN | the number of the request whose answer says it. No time is as late. */
#define ROUND_OPEN (UINT64_C(1) << 63)
enum { ROUND_NO_SLOT = 255 };

/* LINE: one line of an access. WALK: a translation that the SM's TLB does not have. FOLLOW: a look into the TLB that
 * found one that was asked for and is not known yet. */
typedef enum round_kind { ROUND_LINE, ROUND_WALK, ROUND_FOLLOW } round_kind;

/* What an SM asks, as far as who serves it looks at it: one line of the host's cache. */
typedef struct round_request {
  _Alignas(64) ps ask; /* as in `request`; WALK, FOLLOW: of the TLB's port */
  ps at;               /* the same */
  uint64_t address;    /* of the line, physical; WALK: virtual */
  /* LINE, FOLLOW: by when it is translated; may be open; 0: it waits for no translation. WALK: the TLB's key. */
  uint64_t translated;
  /* When the data has arrived; of a line that finds its sectors on their way: unused. WALK, FOLLOW: when the
   * translation is there, and until that is known, before when it is not. */
  ps answer;
  tally tally;
  uint16_t lanes; /* WALK: pager_leaf */
  uint8_t sectors, op, kind, priority;
  bool answered;
} round_request;

/* What the SM does with the answer: another line, which only the SM looks at. */
typedef struct round_taking {
  _Alignas(64) ps turn; /* when it is served: `ask`, or later, where its translation was asked for later */
  ps before;            /* when sectors arrive that the L1's line waited for already; may be open; 0: it did not */
  ps floor;             /* the data is there no earlier; with a `line`: counted from `at`, modulo 2^64 */
  ps hold;              /* and holds the load/store unit so much longer */
  cache_line *line;     /* of the L1, that gets the answer; NULL: it passes the L1 */
  uint64_t tag;         /* the line's then */
  warp *w;
  uint8_t slot;          /* the warp's load (ring), or ROUND_NO_SLOT */
  bool copies;           /* asynchronous: warp.copied */
  bool store;            /* holds one of sm.stores, else of sm.l1_mshrs */
  bool asks;             /* it goes below the L1; else it waits for `before` only */
  bool waits_for_before; /* its data is there no earlier than `before` */
  bool over;
  bool foreseen; /* WALK: when it is over was known at once */
} round_taking;
_Static_assert(sizeof(round_request) == 64 && sizeof(round_taking) == 64, "a line of the host's cache each");

/* Counters of one SM alone, added to the real ones between two rounds. */
typedef struct round_counts {
  sim_counters *whole; /* where they belong */
  sim_counters own;
} round_counts;

/* What is known of a request that is to be served before it is looked at. */
typedef struct round_asked {
  ps turn;
  uint32_t number; /* the SM's request, modulo 2^32 */
  uint16_t sm;
  uint8_t group; /* LINE: of the L2's parts that it goes to (round_serve.c) */
  bool line : 1; /* it is one */
  bool load : 1; /* a line that is one: it does not go out through the network */
} round_asked;

/* An entry of an SM's TLB, which the census of all TLBs has not been told of. */
typedef struct round_entry {
  uint64_t key;
  bool in; /* it has come, else gone */
} round_entry;

struct sim;

/* What one SM has of its own. */
typedef struct round_sm {
  struct sm_rounds *all;
  sm *m;
  event_heap events;
  front_end front, single;               /* for a round, and for one step between two */
  access_path accesses, single_accesses; /* below them */
  round_request *requests;               /* number n at n & mask: of [first, end) */
  round_taking *takings;                 /* the same */
  uint64_t first, end;
  FF_VEC(round_asked) asked; /* that have not been taken to be served yet */
  uint64_t mask;
  uint32_t answers;      /* that are there and not taken over yet */
  ps last_ask;           /* the latest of all so far */
  ps open_ask;           /* the earliest of those whose answer has not been taken over; UINT64_MAX: there are none */
  ps until;              /* no request that is open now is answered before: it runs no further */
  ps length;             /* of a round */
  bool paused;           /* it goes on when all that it has asked is answered */
  const uint8_t *groups; /* of the L2's slices: round_asked.group; NULL: all are in one */
  bool lines;            /* is counted by instruction, where kernels' counters are not the SM's own (observe/lines.h) */
  warp *stopped;         /* makes its next step between two rounds: */
  ps stopped_at;         /* at its own time */
  ps *clock;             /* nothing happens in the SM before: rounds.clocks */
  round_counts **counts; /* by a hash of `whole` */
  uint32_t count_mask, count_number;
  FF_VEC(round_counts *) touched; /* all of them */
  FF_VEC(round_entry) census;     /* what it is told between two rounds */
} round_sm;

typedef struct sm_rounds sm_rounds;

/* For the SMs' front ends and load/store units (sm.c, warp_access.c), within a round. */
void round_stop(round_sm *q, warp *w, ps time); /* its next step, at `time`, is made between two sm_rounds */
/* The warp, which the SM's unit serves, goes on at `time`; by then all that the SM has asked is answered. */
void round_pause(round_sm *q, const warp *w, ps time);
/* The warp's load number `load` has arrived by *time; else the warp goes on when it has, and this is false. */
bool round_wait(round_sm *q, warp *w, uint32_t load, ps *time);
/* The translation of an address of a unit that tlb_reaches. Returns when it is there, or its open time. */
ps round_translate(round_sm *q, gmmu *g, uint64_t address, const pager_unit *unit, ps ask, const tally *tally);
/* One line down, when it is translated: 0, or an open time. false: it cannot be done in a round, and nothing has
 * changed: not before more is answered (round_pause). *data: when it has arrived, as far as that is known; what is not
 * comes to the warp later. */
bool round_access(round_sm *q, memory *y, warp *w, const request *r, ps hold, ps translated, ps *accepted, ps *data);
sim_counters *round_counters(round_sm *q, sim_counters *whole);
/* When the request's translation is there, which has been answered. */
ps round_translated(const round_sm *q, const round_request *e);
void round_take(round_sm *q);       /* the answers that are there */
void round_counts_add(round_sm *q); /* its own counters to where they belong */
void round_census(round_sm *q);     /* is told */
/* Reads or writes of the unit need nothing but to be noted (round_note). */
bool round_may_use(const pager *p, const pager_unit *unit, bool writes);
void round_note(pager *p, pager_unit *unit, uint64_t address, ps now);

/* ---- what has been asked: round_serve.c ---- */

typedef struct round_server round_server;
typedef struct round_threads round_threads;
/* sms, threads: borrowed */
round_server *round_server_create(struct sim *s, round_sm *sms, uint32_t sm_count, ps length, round_threads *threads,
                                  uint32_t thread_count);
void round_server_free(round_server *v);
void round_server_collect(round_server *v, round_sm *q); /* what the SM has asked since the last time waits now */
/* all that was asked before `end`, and has been collected */
void round_server_serve(round_server *v, ps end);
size_t round_server_waiting(const round_server *v); /* requests */

/* ---- the whole: rounds.c ---- */

/* threads: that run SMs, the simulation's own among them. Of a simulation for which rounds_refuse has no reason. */
void rounds_begin(struct sim *s, uint32_t threads);
void rounds_end(struct sim *s);
const char *rounds_refuse(const struct sim *s); /* why it cannot run in rounds; NULL: it can */
/* All that happens up to and with `limit`, or until the operation is over (NULL: does not matter). */
struct node;
void rounds_run(sm_rounds *r, ps limit, const struct node *n);
/* What has been asked is served now, whatever its time: before lines are taken out of the L2. `sms`: the device's;
 * those of a simulation that does not run in rounds have nothing to be served. */
void rounds_settle(const sm *sms);
/* What the SMs have counted is where it belongs. By who holds the simulation's lock. NULL: nothing. */
void rounds_counts_add(sm_rounds *r);

/* ---- its threads: round_threads.c ---- */

typedef void round_task(void *context, uint32_t number);
typedef enum round_work { ROUND_SMS, ROUND_SERVING, ROUND_WORKS } round_work;
/* measures: round_threads_spent is wanted */
round_threads *round_threads_create(uint32_t threads, bool measures);
/* task(context, i) for all i < count, each on any thread; rather on number owners[i], below `threads`, which does not
 * get smaller with i. */
void round_threads_run(round_threads *t, round_task *task, void *context, round_work work, const uint32_t *owners,
                       uint32_t count);
/* Processor time of the caller in that work so far, in nanoseconds: of one thread, what all tasks took. */
uint64_t round_threads_spent(const round_threads *t, round_work work);
uint64_t round_clock(void); /* of this thread: processor time, in nanoseconds */
void round_threads_free(round_threads *t);

#endif
