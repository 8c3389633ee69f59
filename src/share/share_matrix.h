/* SPDX-License-Identifier: Apache-2.0 */
/* Every program in parallel with every other one (Jain 2019, section VI): which simulations that takes, and what is
 * made of their outcomes.
 *
 *   share_matrix_start -> for each cell: share_matrix_request -> (share_run, in any order, anywhere) ->
 *   share_matrix_put -> tables
 *
 * A *measured* program A is in partition 0; an *interferer* B loops in each of the others. Cells: A alone on the whole
 * GPU, once; for each isolation A with idle neighbours (none) and in parallel with each B. Times are of A's
 * kernels.
 *
 *   over none    T(A,B) / T(A,none)
 *   variation    of A: (the largest of these - 1) x 100, per cent
 *   normalised   T(A,B) x share / T(A,alone), share: of the SMs (SHARE_MIG: as the profile says); with n equal shares T(A,B) / (n x T(A,alone)): 1 is what a share promises
 *
 * A number that has not all it is made of is NAN; the same outcomes give the same bytes, whatever
 * order they came in. */
#ifndef FF_STUDY_SHARE_MATRIX_H
#define FF_STUDY_SHARE_MATRIX_H

#include "base/memory.h"
#include "base/text.h"
#include "share/share.h"

enum { SHARE_ISOLATIONS = SHARE_MIG + 1, SHARE_RECORDINGS = 64 };

typedef struct share_part {
  double sm, memory;
} share_part; /* of the device */

typedef struct share_request { /* a simulation */
  share_isolation isolation;
  bool borrow;
  uint32_t count;
  share_part parts[SHARE_PROGRAMS];
  uint32_t profiles[SHARE_PROGRAMS]; /* SHARE_MIG */
  int32_t programs[SHARE_PROGRAMS];  /* of share_matrix.programs; below 0: idle. [0] is measured, the others loop */
} share_request;

typedef struct share_cell {
  share_outcome *outcomes; /* owned, as many as its request has programs; NULL: not there (yet) */
  char *error;             /* owned; why there is none; NULL: none so far */
} share_cell;

typedef struct share_recording {
  char *path, *label; /* owned */
  uint64_t accesses;  /* of its warps */
} share_recording;

typedef struct share_matrix {
  const machine_spec *spec; /* borrowed, as all texts here */
  /* as they were given; set, host_memory: NULL without */
  const char *machine, *set, *manager, *partitions, *host_memory;
  bool borrow;
  share_part parts[SHARE_PROGRAMS];
  uint32_t profiles[SHARE_PROGRAMS]; /* of each partition under SHARE_MIG: which of the machine's mig_profiles */
  uint32_t part_count;
  share_isolation isolations[SHARE_ISOLATIONS];
  uint32_t isolation_count;
  FF_VEC(share_recording) programs; /* no path twice */
  /* indices of programs */
  uint32_t measured[SHARE_RECORDINGS], measured_count, interferers[SHARE_RECORDINGS], interferer_count;
  share_cell *cells;
  uint32_t cell_count;
} share_matrix;

/* The recording's number; it is added if it is not there. -1: there are SHARE_RECORDINGS already. */
int32_t share_matrix_add(share_matrix *m, const char *path);
/* Gives every program its label: the file's name without folder and ".fft", or as much of its path as tells it from the
 * others; makes the cells. To be called when programs, partitions and isolations are there. */
void share_matrix_start(share_matrix *m);
void share_matrix_free(share_matrix *m);

uint32_t share_matrix_alone(const share_matrix *m, uint32_t a);
/* column 0: none; 1 ...: in parallel with interferer column - 1. isolation and a are positions in their lists. */
uint32_t share_matrix_cell(const share_matrix *m, uint32_t isolation, uint32_t a, uint32_t column);
void share_matrix_request(const share_matrix *m, uint32_t cell, share_request *request);
/* How long its simulation is, compared with others, and the number of those that are much alike (base/tasks.h). */
double share_request_weight(const share_matrix *m, const share_request *request, uint32_t *group);
/* "mm beside va under sm", for messages. */
void share_matrix_name(const share_matrix *m, uint32_t cell, ff_text *out);
/* Takes over the outcomes, of malloc, or (outcomes NULL) the reason why there are none, which is copied. What an
 * outcome's `error` says becomes a reason, too. */
void share_matrix_put(share_matrix *m, uint32_t cell, share_outcome *outcomes, const char *why);
uint32_t share_matrix_missing(const share_matrix *m); /* cells without outcome */

/* ---- numbers; NAN: not known ---- */

/* A's; NULL: not there */
const share_outcome *share_matrix_outcome(const share_matrix *m, uint32_t isolation, uint32_t a, uint32_t column);
double share_alone_us(const share_matrix *m, uint32_t a);
double share_time_us(const share_matrix *m, uint32_t isolation, uint32_t a, uint32_t column);
double share_over_none(const share_matrix *m, uint32_t isolation, uint32_t a, uint32_t column);
double share_normalised(const share_matrix *m, uint32_t isolation, uint32_t a, uint32_t column);
/* worst: the column that gives it; NULL: not wanted. Over the interferers that are there; NAN without any. */
double share_variation(const share_matrix *m, uint32_t isolation, uint32_t a, uint32_t *worst);

typedef struct share_summary { /* of an isolation, over the measured programs */
  double variation_average, variation_most;
  uint32_t most_a, most_column;             /* where variation_most is */
  double normalised_none, normalised_worst; /* mean; with idle neighbours, with each program's worst */
  double unused_gbs;                        /* mean of what idle neighbours leave */
  /* mean share of A's time, with idle neighbours, in which it had what was lent */
  double borrowed;
  double take_back_us; /* the longest of all programs in all cells */
} share_summary;
share_summary share_summarise(const share_matrix *m, uint32_t isolation);

/* ---- one simulation's outcomes as JSON (share_outcome.c) ---- */

void share_outcomes_write(const share_outcome *outcomes, uint32_t count, ff_text *out);
/* FF_PARSE with a message that begins with `name`: the text is not what share_outcomes_write makes of `count`
 * outcomes. */
ff_status share_outcomes_read(const char *name, const char *text, size_t size, share_outcome *outcomes, uint32_t count,
                              ff_error *error);

/* ---- as texts (share_output.c, share_picture.c) ---- */

void share_matrix_table(const share_matrix *m, ff_text *out);
void share_matrix_csv(const share_matrix *m, ff_text *out);
void share_matrix_json(const share_matrix *m, ff_text *out);
/* Bars: each program's normalised time with idle neighbours, whiskers from the least to the most with an interferer;
 * and the matrix of each isolation. below: the last line. */
void share_matrix_svg(const share_matrix *m, const char *below, ff_text *out);

#endif
