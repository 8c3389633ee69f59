/* SPDX-License-Identifier: Apache-2.0 */
/* What banks.c and sets.c measure with, and what they find. Private to probe/ and its tests: a meter is a GPU
 * (probe_gpu.c), or in tests a model.
 *
 * Addresses are physical where they are known; else numbers whose low bits, within a span, are. What always holds: all
 * addresses given to a meter are multiples of 128 in [base, base + bytes). */
#ifndef FF_PROBE_METER_H
#define FF_PROBE_METER_H

#include "base/memory.h"
#include "probe/probe.h"

enum { PROBE_LINE = 128 };

typedef struct probe_pair {
  uint64_t a, b;
} probe_pair;

typedef struct meter {
  void *context;
  uint64_t base, bytes;
  /* a power of two: differences of addresses within an aligned piece of this size are physical. 0: of all addresses */
  uint64_t span;
  uint64_t l2_bytes; /* what must be read at least to have nothing of before in the L2; 0: not known */
  /* Cycles of a load from DRAM, when one reads alternately a line of a and a line of b: of each pair. The lines are not
   * in the L2. NAN: the pair is as fast as most are, but was not timed alone. */
  ff_status (*time_pairs)(void *context, const probe_pair *pairs, size_t count, double *cycles, ff_error *error);
  /* Reads x, then all lines, then x again: the cycles of that load. */
  ff_status (*time_again)(void *context, uint64_t x, const uint64_t *lines, size_t count, double *cycles,
                          ff_error *error);
  /* Reads `count` lines from address `from` on, from SM number `sm`, past its L1: the cycles of the first load of each,
   * and of the next ones. */
  ff_status (*time_lines)(void *context, uint32_t sm, uint64_t from, uint32_t count, double *first, double *again,
                          ff_error *error);
  uint32_t sm_count, line_count; /* of the GPU; to be timed by time_lines: fewer than the meter has */
  /* Has nothing of what was read before in the L2. */
  ff_status (*flush)(void *context, ff_error *error);
  void (*progress)(void *context, const char *what, double done); /* NULL: none */
  bool (*over)(void *context); /* whether the time for this kind is over; NULL: it never is */
  ff_text *raw;                /* banks: takes a line for each random pair that was timed alone; NULL: none */
} meter;

static inline bool probe_over(const meter *m) { return m->over && m->over(m->context); }

/* What pairs were found; differences only. */
typedef struct findings {
  FF_VEC(uint64_t) conflicts, others;
  uint64_t tested;
} findings;
void findings_free(findings *f);

typedef struct probe_random {
  uint64_t state;
} probe_random;
uint64_t probe_random_next(probe_random *r);
double probe_random_share(probe_random *r);                              /* in [0, 1) */
double probe_random_normal(probe_random *r);                             /* mean 0, standard deviation 1 */
uint64_t probe_random_line(probe_random *r, const meter *m);             /* any address of the meter's */
uint64_t probe_random_near(probe_random *r, const meter *m, uint64_t a); /* any in the same span as a */
/* Whether the meter may be asked for it. */
bool probe_in_range(const meter *m, uint64_t a);

/* ---- modes.c ---- */
/* Where the samples divide into many fast and few slow ones (at most half): the middle of the widest gap above the
 * bulk. false: they do not. */
bool modes_split(const double *samples, size_t count, double *fast, double *slow, double *threshold);
void modes_histogram(const double *samples, size_t count, probe_histogram *out);

/* ---- banks.c, sets.c: fill `found` (but not found->seconds) ---- */
ff_status probe_banks(const meter *m, const probe_options *options, probe_finding *found, ff_error *error);
ff_status probe_sets(const meter *m, const probe_options *options, probe_finding *found, ff_error *error);
/* lines.c: "sm,line,first,again" of consecutive lines from some SMs, one SM after the other, to `out`. */
ff_status probe_lines(const meter *m, ff_text *out, ff_error *error);
/* Adds a pair to what was found, with options->noise. */
void findings_add(findings *f, const probe_options *options, probe_random *random, const meter *m, uint64_t a,
                  uint64_t b, bool conflict);
/* Masks from what was found. */
void findings_solve(const findings *f, const probe_options *options, probe_finding *found);
/* Modules of both kinds. */
void probe_modules(probe_result *result);

/* ---- probe_gpu.c ---- */
typedef struct gpu gpu;
ff_status gpu_open(const probe_options *options, gpu **out, probe_result *result, ff_error *error);
const meter *gpu_meter(const gpu *g);
/* From now on the meter's time is over after options->seconds, if these are not 0; its pairs go to `raw` (NULL:
 * nowhere). */
void gpu_begin(gpu *g, ff_text *raw);

#endif
