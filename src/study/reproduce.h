/* SPDX-License-Identifier: Apache-2.0 */
/* Reproductions: the experiments of a paper on the bundled workloads, and each number that the paper prints beside ours.
 *
 * A paper is one file with one table (zheng2016.c ...): programs, settings, rows, pictures.
 *   program   a bundled workload with its arguments, one text per size
 *   setting   what one simulation is: a manager and what is changed about it, as `farfault run --memory` takes it
 *   row       one number of the paper, and the formula over the measured counters that gives ours
 *   quantity  what such a formula takes from the two settings that it compares, for one program
 *
 * Every program is executed once and feeds all settings (several times if they are too many for one run). What always holds: a
 * row is computed from measured counters only, over the programs that ran under all settings that it needs; its name says
 * which mean it is; `paper` is a number that the paper's text or a publication of its authors prints, else REPRO_NONE. */
#ifndef FF_STUDY_REPRODUCE_H
#define FF_STUDY_REPRODUCE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "machine/result.h"

enum { REPRO_SETTINGS = 96, REPRO_PROGRAMS = 48, REPRO_PANEL_SERIES = 8 };

#define REPRO_NONE NAN /* no number: of the paper's, or of ours */

typedef enum repro_size { REPRO_SMALL, REPRO_NORMAL, REPRO_FULL, REPRO_SIZES } repro_size;
extern const char *const repro_size_names[REPRO_SIZES]; /* "small", "normal", "full" */

typedef struct repro_program {
  const char *label;                  /* unique in the paper; what rows and pictures call it */
  const char *workload;               /* of workloads/ */
  const char *arguments[REPRO_SIZES]; /* words separated by spaces */
  double seconds[REPRO_SIZES];        /* about how long it takes on two cores, for the estimate of the time left */
} repro_program;

typedef struct repro_setting {
  const char *key;    /* unique in the paper */
  const char *memory; /* for `farfault run --memory` */
  const char *machine; /* instead of the paper's; NULL: the paper's */
} repro_setting;

/* What one program gives: `a` and `b` are its counters under two settings (`b` NULL where the row names one only).
 * REPRO_NONE: there is none (a denominator is zero). */
typedef double (*repro_quantity)(const sim_counters *a, const sim_counters *b);

typedef enum repro_mean {
  REPRO_GEOMETRIC,  /* over all programs; of positive quantities */
  REPRO_ARITHMETIC,
  REPRO_HIGHEST,
  REPRO_LOWEST,
  REPRO_SHARE,      /* of the programs whose quantity is at least `bound` */
  REPRO_ONE,        /* the row's program only */
} repro_mean;

typedef struct repro_row {
  const char *name;
  double paper;            /* REPRO_NONE: it prints none */
  repro_mean mean;
  repro_quantity quantity;
  const char *a, *b;       /* keys of settings. In `a`, "x|y|z": the one of them that gives the lowest value */
  const char *program;     /* REPRO_ONE: its label */
  double bound;            /* REPRO_SHARE */
  bool highest;            /* of several settings in `a` the one with the highest value counts */
} repro_row;

typedef struct repro_series { const char *label, *a, *b; } repro_series;

/* Bars: a group per program and one for the mean, in it a bar per series. The paper's values stand beside ours where a
 * row has the same quantity, mean and settings. */
typedef struct repro_panel {
  const char *title, *axis;
  const char *mean_label;  /* of the mean's group, "geometric mean"; NULL: no such group */
  repro_quantity quantity;
  repro_mean mean;
  bool logarithmic;
  double line;             /* a line across, where both are equal (1); REPRO_NONE: none */
  const char *line_label;
  repro_series series[REPRO_PANEL_SERIES];
  uint32_t series_count;
} repro_panel;

typedef struct repro_paper {
  const char *name, *title;  /* "zheng2016"; authors, title, where */
  const char *machine;       /* of machines/ */
  const char *set;           /* "NAME=VALUE,...": changed for all settings; NULL: nothing */
  const repro_program *programs;
  const repro_setting *settings;
  const repro_row *rows;
  const repro_panel *panels;
  uint32_t program_count, setting_count, row_count, panel_count;
} repro_paper;

extern const repro_paper *const repro_papers[]; /* NULL-ended */
const repro_paper *repro_find(const char *name); /* NULL: there is none of that name */

/* What was measured: a cell per program and setting. */
typedef struct repro_cell { bool known; sim_counters counters; } repro_cell;
typedef struct repro_data {
  const repro_paper *paper;
  repro_cell *cells;         /* owned, program_count x setting_count */
} repro_data;
void repro_data_start(repro_data *data, const repro_paper *paper);
void repro_data_free(repro_data *data);
/* Index of a setting or program by its key or label; -1: there is none. */
int repro_setting_index(const repro_paper *paper, const char *key);
int repro_program_index(const repro_paper *paper, const char *label);
/* Takes over the counters of a program under one setting. */
void repro_put(repro_data *data, uint32_t program, uint32_t setting, const sim_counters *counters);

/* Our value of a row; REPRO_NONE: nothing was measured for it. *programs: over how many (may be NULL). */
double repro_value(const repro_data *data, const repro_row *row, uint32_t *programs);
/* Ours over the paper's; REPRO_NONE: one of them is missing, or the paper's is zero. */
double repro_ratio(double paper, double ours);

/* "row,paper,ours,ratio" and a line per row; an absent number is empty. Six significant digits. */
void repro_csv(const repro_data *data, ff_text *out);
/* An object with the rows, their numbers (null: none) and how many programs each is over, and every program's counters. */
void repro_json(const repro_data *data, repro_size size, ff_text *out);
/* For people: a line per row. `verbose`: and per picture its values per program. */
void repro_table(const repro_data *data, bool verbose, ff_text *out);
/* The paper's pictures, in one SVG. */
void repro_svg(const repro_data *data, repro_size size, ff_text *out);

/* ---- quantities ---- */
double repro_time_ratio(const sim_counters *a, const sim_counters *b);      /* a's time over b's */
double repro_speedup(const sim_counters *a, const sim_counters *b);         /* b's time over a's */
double repro_time_lost(const sim_counters *a, const sim_counters *b);       /* the share of the speed that a loses against b */
double repro_time_saved(const sim_counters *a, const sim_counters *b);      /* the share of b's time that a saves */
double repro_kernel_speedup(const sim_counters *a, const sim_counters *b);  /* b's kernel time, waits for pages included, over a's */
double repro_kernel_saved(const sim_counters *a, const sim_counters *b);    /* the share of b's kernel time that a saves */
double repro_link_used(const sim_counters *a, const sim_counters *b);       /* share of a's kernel time that its link to the GPU is busy */
double repro_overlap_gain(const sim_counters *a, const sim_counters *b);    /* a's (transfers + kernels) over the longer of the two, less one */
double repro_transfer_share(const sim_counters *a, const sim_counters *b);  /* a's transfers over transfers + kernels */
double repro_footprint(const sim_counters *a, const sim_counters *b);       /* a's footprint in MB (10^6 bytes) */
double repro_faults(const sim_counters *a, const sim_counters *b);
double repro_tlb_misses(const sim_counters *a, const sim_counters *b);      /* a's TLB miss rate */
double repro_bytes_ratio(const sim_counters *a, const sim_counters *b);     /* a's bytes to the GPU over b's */
double repro_launch_microseconds(const sim_counters *a, const sim_counters *b); /* a's time per kernel launch */
double repro_launch_bandwidth(const sim_counters *a, const sim_counters *b);    /* a's footprint per launch over that time, MB/s */

#endif
