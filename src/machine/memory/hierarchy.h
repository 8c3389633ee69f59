/* SPDX-License-Identifier: Apache-2.0 */
/* L1, L2 and DRAM: the way of one line from the SM's load/store unit down. */
#ifndef FF_MACHINE_MEMORY_HIERARCHY_H
#define FF_MACHINE_MEMORY_HIERARCHY_H

#include <stdbool.h>
#include <stdint.h>

#include "machine/memory/cache.h"
#include "machine/memory/dram.h"
#include "machine/sm/sm.h"
#include "paging/pager.h"
#include "partition/hash.h"

/* What MSHRs that hold more than a line hold (l2_mshr_bytes): misses of one piece share one. */
enum { HELD_PIECES = 64 };
typedef struct held_piece {
  uint64_t piece;
  ps until;
} held_piece;
typedef struct l2_slice {
  server port;
  cache cache;
  slots mshrs;
  held_piece *held; /* by piece mod HELD_PIECES, the latest; NULL: an MSHR holds a line */
  dram_channel *channel;
  uint32_t part; /* which of its channel's slices it is */
} l2_slice;

/* Where a line is, by its physical address alone. */
typedef struct line_place {
  l2_slice *slice;
  dram_bank *bank;
  int64_t row;
  uint64_t tag;         /* in the L2; 0: no line */
  uint32_t set, number; /* of the slice; the slice's own */
} line_place;
/* Lines whose places have been found lately, by a hash of the line: a line is asked for ahead twice before its turn. */
enum { KNOWN_LINES_BITS = 6 };
typedef struct known_line {
  line_place place;
  uint32_t l1_set, l1_sets; /* its set in an L1 of so many */
} known_line;

/* The L2's slices and the channels behind them, and where in them an address is. */
typedef struct memory {
  const machine_spec *spec;
  const timing *t;
  const address_hash *hash; /* NULL: the machine file says nothing of which address is where */
  struct placing *map;
  struct stacks *stacks;         /* that stand in the channels' place; NULL: none */
  struct lent *lent;             /* whose bytes in others' memory are counted; NULL: nothing is lent */
  struct link_port *link;        /* to pinned host memory */
  struct peer_link *peers;       /* to the memory of other devices */
  const struct network *network; /* NULL: its ports have no limits */
  l2_slice *slices;
  server
      *crossing; /* from one side of the L2 to the other: to that of the even slices, of the odd ones; NULL: one side */
  dram_channel *channels;
  uint64_t slices_per_channel;
  divider by_slices, by_banks; /* by_slices: those of one side */
  uint64_t first_slices;       /* among which a round of pieces may begin: all of a side's, or 0: at the first */
  uint64_t side_mask, granule; /* of an L2 of two sides: its parity is the side; pieces that stay on one */
  uint32_t row_shift;          /* log2 of row_bytes */
  uint32_t bank_bits;          /* of a bank's number, which those of the row's permute; 0: they do not */
  /* What the program has set aside of each slice for lines that persist, in lines: at most three quarters; whether the
   * machine has such controls (8.0 and later) */
  uint64_t lasts;
  bool ranks;
  /* Lines that are to be in the L2 by now come into it before any are dropped (sample_settle); NULL: none are late */
  void (*settle)(void *context);
  void *settle_context;
  known_line known[1 << KNOWN_LINES_BITS]; /* of one thread: not in rounds */
} memory;

typedef struct request {
  uint64_t address;        /* of the line, physical */
  uint32_t sectors, lanes; /* mask; number of lanes */
  uint32_t sm;             /* that asks */
  trace_access_op op;
  bool bypass_l1;
  uint8_t priority; /* trace_l2_priority: in the L2 */
  ps ask, at;
  const tally *tally;
  const struct stack_instance *instance; /* that makes it in a stack; NULL */
  block *block;                          /* whose warp asks; NULL: a page walk */
} request;
/* From the SM's load/store unit down, through the caches; remote_access: over the link. Both return when the data has
 * arrived (a store: was taken over). *accepted: when the unit can take the next line. */
ps memory_access(memory *y, sm *m, request *r, ps *accepted); /* what *r asks for below the L1 is left in it */
/* The host's caches are asked for the tables' entries of a line some lines before its turn: `far` first, then
 * `near`. */
void memory_prefetch_far(memory *y, const sm *m, uint64_t address);
void memory_prefetch_near(memory *y, const sm *m, uint64_t address);
ps remote_access(memory *y, sm *m, pager_place place, const request *r, ps *accepted);
void l2_find_place(const memory *y, uint64_t physical, line_place *p);
ps l2_access(memory *y, const request *r);
ps l2_access_at(memory *y, const request *r, const line_place *p); /* the same where the line's place is known */
/* What an L1 asks: through the network, the L2, or for an SM in a memory stack the stacks. */
ps memory_below_l1(memory *y, const sm *m, const request *r, const line_place *p);
/* The same in three steps: out through the network (only changes r->at), in the L2, and back to the SM. */
void network_out(const memory *y, request *r);
ps network_back(const memory *y, const request *r, ps data);
/* For many accesses side by side (sm/round_serve.c). The L2's slices in parts that have no slice and no channel in
 * common: of_slice[i] is the part of slice i. Returns how many parts there are. What is asked in two parts has only the
 * way between the sides of the L2 in common, if there are two. */
uint32_t l2_parts(const memory *y, uint32_t *of_slice);
uint32_t l2_slice_of(const memory *y, uint64_t physical);
/* l2_access_at in three steps: for many accesses all of one step may be made before the next one's. The first two in
 * the order of the accesses of a part; the second in the order of all. The third in the order of a part again. */
typedef struct l2_way l2_way;
typedef struct l2_turn { /* over to the other side of the L2: */
  ps at;                 /* without any wait; behind l2_cross: when the way is free for it */
  uint8_t sectors;       /* 0: it does not go there */
  uint8_t there;
} l2_turn;
size_t l2_way_bytes(void);
void l2_find(const memory *y, const request *r, const line_place *p, l2_way *way, l2_turn *turn);
void l2_cross(memory *y, l2_turn *turn);
ps l2_take(memory *y, const request *r, const l2_way *way, const l2_turn *turn);
/* What was just stored to local memory is in the L1, too. */
void l1_put(sm *m, uint64_t physical, uint32_t sectors);
uint32_t l1_set(const sm *m, uint64_t physical);
uint64_t l1_tag(const sm *m, uint64_t physical);
/* As memory_prefetch_far and ..._near, of the L1 alone; of the L2 alone, for a line that the SM of that number asks
 * for. */
void l1_prefetch_far(const memory *y, const sm *m, uint64_t address);
void l1_prefetch_near(const memory *y, const sm *m, uint64_t address);
void l2_prefetch_far(const memory *y, const line_place *p, uint32_t sm);
void l2_prefetch_near(const memory *y, const line_place *p, uint32_t sm);
/* the page has left: its lines are no longer valid */
void l2_discard(memory *y, uint64_t address, uint64_t bytes);
bool l2_has_any(memory *y, uint64_t address, uint64_t bytes); /* a line of the range; for checks */
/* The line is used, at no time and uncounted: what it finds missing is there then, what goes for it is in memory. */
void l2_warm(memory *y, uint64_t physical, uint32_t sectors, trace_access_op op);
/* A kernel begins that finds these controls; *resets: what its program's last kernel found. */
void l2_control(memory *y, const trace_l2_controls *controls, uint32_t *resets);
/* The priority that an access of that kernel has in the L2, on a machine with ranks: its instruction's, else that of
 * the window in which the line (a virtual address) lies. */
trace_l2_priority l2_priority(const memory *y, const trace_l2_controls *controls, uint64_t access, uint64_t address);
void l2_flush(memory *y);               /* empty; what was dirty is in memory */
bool l1_drop(sm *m, uint64_t physical); /* one line; false: it was not there */
bool l2_drop(memory *y, uint64_t physical);
/* a line's transfer on the bus of its channel: when it is over */
ps channel_take(memory *y, uint64_t physical, ps at);
void l2_discard_frames(memory *y, uint64_t physical, uint64_t bytes); /* the same for physical addresses */

#endif
