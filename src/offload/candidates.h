/* SPDX-License-Identifier: Apache-2.0 */
/* Which blocks of a kernel are worth running where its data is (Hsieh et al., ISCA 2016, sections 3.1 and 4.2).
 *
 * A *region* is a run of instructions [begin, end) that is entered at one instruction and left to one: mostly
 * begin and end, but compilers also lay the last block of a loop before its first one. It is a *candidate* if nothing
 * in it forbids that (offload_bar) and if it saves bytes between the GPU and its memory: TX + RX < 0, for one trip or
 * from some number of trips on. Of nested and overlapping candidates those are *chosen* that save most together; only
 * these are marked.
 *
 *   TX(k) = tx_fixed + k * tx_trip      words of 4 bytes to the memory, equation (3): live-in registers less what loads and stores would have sent
 *   RX(k) = rx_fixed + k * rx_trip      words of 4 bytes from it, equation (4);       k: trips of the region's loop, 1 if it has none
 *
 * No two chosen regions overlap (offload_kernel_check). All lanes that enter a chosen region leave it to its `exit`.
 *
 *   offload_kernel *k = offload_analyze(func);
 *   ... k->regions[i] ...
 *   offload_kernel_free(k); */
#ifndef FF_OFFLOAD_CANDIDATES_H
#define FF_OFFLOAD_CANDIDATES_H

#include "machine/stacks/offload_choice.h"
#include "ptx/analysis/cfg.h"
#include "ptx/ir.h"

#define OFFLOAD_NEVER UINT32_MAX

typedef enum offload_bar { /* why a region is none: X(id, text) */
#define X(id, text) OFFLOAD_##id,
#include "offload/eligibility.def"
#undef X
} offload_bar;
const char *offload_bar_text(offload_bar bar);

typedef enum offload_trip_kind {
  OFFLOAD_TRIPS_ONE,     /* no loop */
  OFFLOAD_TRIPS_STATIC,  /* a loop whose trips the code says */
  OFFLOAD_TRIPS_KNOWN,   /* known from registers before it: a conditional candidate */
  OFFLOAD_TRIPS_UNKNOWN, /* decided inside: counts as one */
} offload_trip_kind;

/* How ENTER's trips come about: at its first test the counter is `from`, at each further one a step more; while counter
 * COMPARE to, there is another trip. So trips = 1 (0 if tested_first) + the number of t = 0, 1, 2 ... for which from +
 * t * step COMPARE to, one after the other. */
/* reg PTX_NO_REG: value; else what the register holds at ENTER, plus value */
typedef struct offload_bound {
  uint32_t reg;
  int64_t value;
} offload_bound;
typedef struct offload_trips {
  offload_trip_kind kind;
  uint32_t count;         /* STATIC */
  offload_bound from, to; /* KNOWN */
  int64_t step;           /* not 0 */
  ptx_mod compare;        /* PTX_MOD_LT, LE, GT, GE or NE */
  bool tested_first;      /* before the first trip; else there is one at least */
  bool is_signed;
  uint32_t bits; /* of the counter: 32 or 64 */
} offload_trips;

/* Each trip of a region's loop begins with the access `pc`, all others come behind it: a warp may go there, too. Then
 * what is left of the region has to be sent: from the loop's first instruction on to the region's end. Words and bytes
 * as for the region. */
typedef struct offload_again {
  bool any;
  uint32_t pc, in_bytes, out_bytes, in_words, out_words, once_loads, once_stores;
} offload_again;

typedef struct offload_region {
  uint32_t begin, end; /* instructions of the function, in its layout */
  /* where it is entered (in [begin, end): the pc of its marks) and where it goes on (outside) */
  uint32_t entry, exit;
  uint32_t first_line, last_line; /* in the PTX */
  offload_bar bar;                /* OFFLOAD_NONE: it may be offloaded; else */
  uint32_t bar_line;              /* where that stands in the PTX */
  bool candidate, chosen;
  uint32_t *live_in, *live_out; /* registers; in the kernel's arena */
  uint32_t live_in_count, live_out_count;
  /* special registers and parameters that it reads: indices of kernel->others; each counts as a live-in register */
  uint32_t *others, other_count;
  /* of a whole warp: 128 or 256 bytes a register, 4 a predicate; what is the same for all lanes once */
  uint32_t in_bytes, out_bytes;
  /* REG_TX S_W and REG_RX S_W of the equations: 32 a register, whatever its width (as the paper counts), 1 a
   * predicate */
  uint32_t in_words, out_words;
  /* of global and generic memory in one trip; each in a nested loop that often as the code says, else once */
  uint32_t loads, stores;
  uint32_t once_loads, once_stores; /* in the region, but not in its loop */
  offload_trips trips;
  offload_again again;
  /* of a chosen one: the most of 32 bits that are live at once in it, of those that it reads or writes; 0: not known */
  uint32_t registers;
  /* of a chosen one: it has addresses that it loads itself, or computes from what it loads */
  bool follows;
  double tx_fixed, tx_trip, rx_fixed, rx_trip;
  uint32_t threshold;        /* trips from which TX + RX < 0 on; OFFLOAD_NEVER */
  uint32_t tx_from, rx_from; /* from which TX < 0, RX < 0: the two bits; OFFLOAD_NEVER */
  /* conditional: the register that the hardware looks at, PTX_NO_REG if it takes two; and */
  uint32_t compared;
  int64_t compared_with; /* the value that it must reach (compared_down: from above) */
  bool compared_down;
  double times; /* a warp comes to it in one run of the kernel, as far as the code says */
} offload_region;

/* param NULL: the special register */
typedef struct offload_other {
  ptx_sreg sreg;
  const ptx_var *param;
} offload_other;
typedef struct offload_kernel {
  ff_arena arena;
  const ptx_func *func; /* borrowed */
  offload_other *others;
  /* candidates, and what would be one but for its bar, by begin, larger ones first */
  offload_region *regions;
  uint32_t region_count, chosen_count;
} offload_kernel;

/* Free with offload_kernel_free. Milliseconds for a kernel of ordinary size; huge ones are looked at in
 * parts (regions grow no larger). */
offload_kernel *offload_analyze(const ptx_func *func);
void offload_kernel_free(offload_kernel *kernel);
/* From the values of from.reg and to.reg where the region is entered (of a constant: ignored); OFFLOAD_NEVER: they
 * do not end. */
uint32_t offload_trips_of(const offload_trips *trips, uint64_t from, uint64_t to);
/* For the machine. */
/* with the words of wide registers in full; the threshold follows from these */
sim_candidate offload_candidate(const offload_region *region);
/* Equations (3) and (4) for measured ratios: lines per load and store access, share of loads that miss, words per
 * line. */
typedef struct offload_ratios {
  double coal_load, coal_store, miss_load, line_words;
} offload_ratios;
extern const offload_ratios offload_assumed; /* 1, 1, 0.5, 32: section 3.1.1 */
void offload_cost(const offload_region *region, const offload_ratios *ratios, double *tx_fixed, double *tx_trip,
                  double *rx_fixed, double *rx_trip);

#endif
