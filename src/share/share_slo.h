/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines: which shares of a GPU keep a program's kernels within a time, whichever of the interferers runs in
 * parallel, and the smallest that does.
 *
 *   share_slo_read -> while share_slo_next: for each simulation that is needed share_slo_request -> (share_run) ->
 *   share_slo_put -> tables
 *
 * A *row* is a deadline, an isolation and, where memory is divided, a number of colours. In it the number of SMs is
 * searched by bisection, as more SMs should not make it slower. The program has partition 0; the other partitions share
 * what is left in equal parts, each with the same interferer.
 *
 * A row's answer was simulated, with every interferer, and so was one SM less, which missed the
 * deadline. A simulation that contradicts the order (more SMs miss what fewer meet) makes the row look at every number;
 * its answer is then the number from which on all meet it. */
#ifndef FF_STUDY_SHARE_SLO_H
#define FF_STUDY_SHARE_SLO_H

#include "share/share_matrix.h"

typedef struct share_deadline {
  uint32_t program; /* of share_matrix.programs */
  double us;
  bool per_launch; /* us is for the mean of its launches, not for all kernels together */
} share_deadline;

typedef struct share_looked { /* at a number of SMs */
  uint32_t sms;
  double us;      /* the longest, in the deadline's sense */
  uint32_t worst; /* in parallel with this one of share_matrix.interferers */
  bool meets;
} share_looked;

typedef struct share_row {
  uint32_t deadline;
  share_isolation isolation;
  uint32_t colours;            /* 0: memory is not divided */
  uint32_t most;               /* SMs: the other partitions need one each */
  FF_VEC(share_looked) looked; /* in the order of their SMs */
  uint32_t wanted;             /* the number that is being looked at; 0: none */
  bool irregular;              /* more SMs missed what fewer met */
  char *error;                 /* owned: a simulation failed, the row is not known */
} share_row;

typedef struct share_slo {
  const share_matrix *m; /* programs, interferers, isolations, how many partitions; its cells are not used */
  FF_VEC(share_deadline) deadlines;
  FF_VEC(share_row) rows;
  share_outcome *outcomes; /* of this step: per open row and interferer, the measured program's */
  uint32_t *open;          /* rows that want something */
  uint32_t open_count;
  uint64_t simulations;
} share_slo;

/* "2.5ms", "40us/launch": into us and per_launch. FF_PARSE. */
ff_status share_deadline_read(const char *text, share_deadline *deadline, ff_error *error);
/* Adds "a.fft=2.5ms,b.fft=40us/launch": programs by their path or their label. FF_PARSE, FF_NOT_FOUND with the place in
 * the text, which messages call `name`. */
ff_status share_slo_read(share_slo *slo, const char *name, const char *text, ff_error *error);
/* Makes the rows. FF_INVALID: an isolation without shares (none). `colours`: that the machine has. */
ff_status share_slo_start(share_slo *slo, uint32_t colours, ff_error *error);
void share_slo_free(share_slo *slo);

/* What is to be simulated next, as numbers from 0; 0: it is over. All of them are to be put before it is called
 * again. */
uint32_t share_slo_next(share_slo *slo);
void share_slo_request(const share_slo *slo, uint32_t index, share_request *request);
/* outcome: of the measured program, copied; NULL: why says why there is none. */
void share_slo_put(share_slo *slo, uint32_t index, const share_outcome *outcome, const char *why);
/* About how many simulations are still to come after this step. */
uint32_t share_slo_left(const share_slo *slo);

/* The number of SMs from which on the deadline is met; 0: with none, or not known (yet). */
uint32_t share_row_answer(const share_row *row);
const share_looked *share_row_looked(const share_row *row, uint32_t sms); /* NULL: not simulated */
bool share_row_ended(const share_row *row);
/* The smallest share of SMs and memory together (added; fewer SMs if equal) that meets the deadline under the
 * isolation; NULL: none does. */
const share_row *share_slo_smallest(const share_slo *slo, uint32_t deadline, share_isolation isolation,
                                    uint32_t colours);

void share_slo_table(const share_slo *slo, ff_text *out);
void share_slo_csv(const share_slo *slo, ff_text *out);
void share_slo_json(const share_slo *slo, ff_text *out);
/* Per deadline and isolation a field of SMs by colours: what meets it, what does not, simulated or concluded. */
void share_slo_svg(const share_slo *slo, const char *below, ff_text *out);

#endif
