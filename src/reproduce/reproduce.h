/* SPDX-License-Identifier: Apache-2.0 */
/* Reproductions: the experiments of a paper on the bundled workloads, and each number that the paper prints next to
 * ours.
 *
 * A paper is one file with one table (zheng2016.c ...): programs, settings, rows, pictures.
 *   program   a bundled workload with its arguments, one text per size
 *   setting   what one simulation is: a manager and what is changed about it, as `farfault run --memory` takes it; or a share
 *             of a GPU next to other programs, of which it takes recordings
 *   row       one number of the paper, and the formula over the measured counters that gives ours
 *   quantity  what such a formula takes from the two settings that it compares, for one program
 *   score     ours over the paper's in what the row claims: of a ratio to something else what differs from 1, the gain or the loss
 *
 * One of them, `combined`, has no paper: the ideas of the others together, whose rows are ours alone.
 *
 * Every program is executed once and feeds all settings (several times if they are too many for one run).
 * A row is computed from measured counters only, over the programs that ran under all settings that it needs;
 * its name says which mean it is; `paper` is a number that the paper's text or a publication of its authors prints,
 * else REPRO_NONE. */
#ifndef FF_STUDY_REPRODUCE_H
#define FF_STUDY_REPRODUCE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "machine/observe/result.h"
#include "share/share.h"

enum { REPRO_SETTINGS = 96, REPRO_PROGRAMS = 64, REPRO_PANEL_SERIES = 10 };

#define REPRO_NONE NAN /* no number: of the paper's, or of ours */

typedef enum repro_size { REPRO_SMALL, REPRO_NORMAL, REPRO_FULL, REPRO_SIZES } repro_size;
extern const char *const repro_size_names[REPRO_SIZES]; /* "small", "normal", "full" */

typedef struct repro_program {
  const char *label;                  /* unique in the paper; what rows and pictures call it */
  const char *workload;               /* of workloads/; NULL: n chains of loads (repro_chain.c), shares only */
  const char *arguments[REPRO_SIZES]; /* words separated by spaces; of chains: n */
  double seconds[REPRO_SIZES];        /* about how long it takes on two cores, for the estimate of the time left */
} repro_program;

typedef struct repro_setting {
  const char *key; /* unique in the paper */
  const char *
      memory; /* for `farfault run --memory`, `farfault sim --memory`, with "<KEY>" for the pair of bits that the cell of that key found (repro_memory);
                       * NULL: no simulation but repro_profile_run */
  const char *machine; /* instead of the paper's; NULL: the paper's */
} repro_setting;

/* The program has the first of so many equal partitions of the GPU. */
typedef struct repro_share {
  share_isolation isolation;
  uint32_t partitions;
  /* label of the program that runs again and again in each of the others; NULL: they are idle; "chain": the other
   * chains, of whose place the setting's key is the name */
  const char *neighbour;
  /* kernel times are what is wanted: its copies take no time, the paper's `set` is not heeded */
  bool kernels_only;
  /* all programs' kernels are persistent blocks that are bound to their partition's SMs (`farfault record --bind-sms`),
   * as a GPU without partitions of its own needs it; chains are as they are */
  bool bound;
  /* of the measured program, only what is between its cudaProfilerStart and ...Stop: its authors' clock */
  bool profile_range;
} repro_share;

/* What the accesses in candidate blocks (machine/stacks/offload_choice.h) keep between them (Hsieh et al., ISCA 2016,
 * section 3.2.1). */
typedef struct repro_offsets {
  uint64_t candidates; /* blocks of more than one access that ran */
  /* of these, those with an access at the same distance from the block's first one in (nearly) all instances of a
   * launch */
  uint64_t some_fixed;
  uint64_t all_fixed; /* those in which all accesses are so */
  /* of instances that may go: lines that they touch, and those that a map puts into the stack of their first one */
  uint64_t lines, lines_beside;
} repro_offsets;

/* What was measured of a program under one setting. */
typedef struct repro_measured {
  sim_counters counters;
  sim_stacks stacks;     /* count 0: the machine has none */
  repro_offsets offsets; /* of repro_profile_run */
  /* of repro_profile_run: of the pair of address bits that chooses the stack; 0: no pair does */
  uint32_t lowest_bit;
} repro_measured;

/* What one program gives: `a` and `b` are what was measured under two settings (`b` NULL where the row names one only).
 * REPRO_NONE: there is none (a denominator is zero). */
typedef double (*repro_quantity)(const repro_measured *a, const repro_measured *b);

typedef enum repro_mean {
  REPRO_GEOMETRIC, /* over all programs; of positive quantities */
  REPRO_ARITHMETIC,
  REPRO_HIGHEST,
  REPRO_LOWEST,
  REPRO_SHARE, /* of the programs whose quantity is at least `bound` */
  REPRO_ONE,   /* the row's program only */
  /* `a` is "x|y|z": the share of its neighbours of which the first one's mean is lower; 1: they are in this order */
  REPRO_ORDERED,
} repro_mean;

typedef struct repro_row {
  const char *name;
  double paper; /* REPRO_NONE: it prints none */
  repro_mean mean;
  repro_quantity quantity;
  const char *a,
      *b; /* keys of settings. In `a`, "x|y|z": the one of them that gives the lowest value; "x+y+z": for each program the
                            * highest of its values; "both=x&y": what both settings' ideas give together, over what
                            * they give apart (repro_program_value) */
  const char *program; /* REPRO_ONE: its label */
  double bound;        /* REPRO_SHARE */
  bool highest;        /* of several settings in `a` the one with the highest value counts */
} repro_row;

/* What a row claims, and so what of it is compared. */
typedef enum repro_claim {
  REPRO_VALUE, /* a number: ours over the paper's */
  /* how much more or less than something else: ours less one over the paper's less one. Of 1.30 against 1.21 so 0.7 */
  REPRO_GAIN,
  REPRO_ORDER, /* that several things are in one order: the share of neighbours that are */
  REPRO_CLAIMS
} repro_claim;
extern const char *const repro_claim_names[REPRO_CLAIMS]; /* "value", "gain", "order" */

/* What is to be known of the rows whose names begin so. */
typedef struct repro_note {
  const char *start;
  /* the row's value went into the machine file: that ours is near it shows nothing, and the row does not count */
  bool fitted;
  const char *text; /* no quotes */
} repro_note;

typedef struct repro_series {
  const char *label, *a, *b;
} repro_series;

/* Bars: a group per program and one for the mean, in it a bar per series. The paper's values stand next to ours where a
 * row has the same quantity, mean and settings. */
typedef struct repro_panel {
  const char *title, *axis;
  const char *mean_label; /* of the mean's group, "geometric mean"; NULL: no such group */
  repro_quantity quantity;
  repro_mean mean;
  bool logarithmic;
  double line; /* a line across, where both are equal (1); REPRO_NONE: none */
  const char *line_label;
  repro_series series[REPRO_PANEL_SERIES];
  uint32_t series_count;
} repro_panel;

typedef struct repro_paper {
  const char *name, *title; /* "zheng2016"; authors, title, where */
  const char *machine;      /* of machines/ */
  const char *set;          /* "NAME=VALUE,...": changed for all settings; NULL: nothing */
  const repro_program *programs;
  const repro_setting *settings;
  const repro_share *shares; /* one per setting, of no partitions: that one is no share; NULL: none is */
  bool recorded;             /* programs are recorded first, and their recordings simulated */
  bool (*applies)(uint32_t program, uint32_t setting); /* which programs are run under which settings; NULL: all */
  const repro_row *rows;
  const repro_panel *panels;
  /* ratios of its own whose rows claim gains, in addition to those of quantities.c; NULL-ended. NULL: none */
  const repro_quantity *gains;
  const repro_note *notes; /* ended by one without a start; NULL: none. The first that fits a row is its note */
  uint32_t program_count, setting_count, row_count, panel_count;
} repro_paper;

extern const repro_paper *const repro_papers[];  /* NULL-ended */
const repro_paper *repro_find(const char *name); /* NULL: there is none of that name */

bool repro_applies(const repro_paper *paper, uint32_t program, uint32_t setting);

/* What was measured: a cell per program and setting. */
typedef struct repro_cell {
  bool known;
  repro_measured measured;
} repro_cell;
typedef struct repro_data {
  const repro_paper *paper;
  repro_cell *cells; /* owned, program_count x setting_count */
} repro_data;
void repro_data_start(repro_data *data, const repro_paper *paper);
void repro_data_free(repro_data *data);
/* Index of a setting or program by its key or label; -1: there is none. */
int repro_setting_index(const repro_paper *paper, const char *key);
int repro_program_index(const repro_paper *paper, const char *label);
/* Takes over what was measured of a program under one setting. */
void repro_put(repro_data *data, uint32_t program, uint32_t setting, const repro_measured *measured);

/* Our value of a row; REPRO_NONE: nothing was measured for it. *programs: over how many (may be NULL). */
double repro_value(const repro_data *data, const repro_row *row, uint32_t *programs);
/* Ours over the paper's; REPRO_NONE: one of them is missing, or the paper's is zero. */
double repro_ratio(double paper, double ours);

/* ---- how near ours is ---- */

repro_claim repro_claim_of(const repro_paper *paper, const repro_row *row);
/* Ours over the paper's in what the row claims; REPRO_NONE: one of them is missing, or the paper's is nothing. */
double repro_score(const repro_paper *paper, const repro_row *row, double ours);
/* Is a score within 25 %: from 0.75 to 1.25; of an order: 1? */
bool repro_near(const repro_paper *paper, const repro_row *row, double score);
const repro_note *repro_note_of(const repro_paper *paper, const repro_row *row); /* NULL: there is none */

/* Rows with a number of the paper's and one of ours. */
typedef struct repro_tally {
  uint32_t rows, near; /* that count; of these within 25 % */
  uint32_t fitted;     /* that do not */
} repro_tally;
repro_tally repro_count(const repro_data *data);

/* "row,paper,ours,ratio,claim,score,within,note" and a line per row; what is absent is empty. `within`: yes, no, or
 * fitted. Six significant digits. */
void repro_csv(const repro_data *data, ff_text *out);
/* An object with the rows, their numbers (null: none) and how many programs each is over, and every program's
 * counters. */
void repro_json(const repro_data *data, repro_size size, ff_text *out);
/* For people: a line per row. `verbose`: and per picture its values per program. */
void repro_table(const repro_data *data, bool verbose, ff_text *out);
/* The paper's pictures, in one SVG. */
void repro_svg(const repro_data *data, repro_size size, ff_text *out);

/* A page of several reproductions: zero it, add each, write it, free it. */
typedef struct repro_page {
  ff_text summary, sections;
} repro_page;
void repro_page_add(repro_page *page, const repro_data *data, repro_size size);
void repro_page_write(const repro_page *page, ff_text *out); /* HTML without scripts */
void repro_page_free(repro_page *page);

/* ---- shares ---- */

/* Where the recording of a program is that a setting takes, in that folder. The caller frees it. */
char *repro_recording(const repro_paper *paper, repro_size size, uint32_t program, uint32_t setting,
                      const char *folder);
bool repro_bound(const repro_paper *paper, uint32_t setting); /* are its programs recorded with bound kernels? */
/* Does a setting take that program's recording, of the program or of its neighbours? */
bool repro_takes(const repro_paper *paper, uint32_t program, uint32_t setting);
/* Simulates one cell of a paper of shares. Of the counters, these are of the program: kernel_ps (its kernels' times,
 * added), time_ps (from its first operation to its last), launches; of chains: accesses (of the first chain), blocks
 * (the chains). The errors of share_run. */
ff_status repro_share_run(const repro_paper *paper, repro_size size, uint32_t program, uint32_t setting,
                          const char *folder, sim_counters *out, ff_error *error);

/* Reads the recording of a program, and fills its cells whose settings have no `memory`. FF_PARSE, FF_IO: it is
 * damaged, or none. */
ff_status repro_profile_run(repro_data *data, repro_size size, uint32_t program, const char *folder, ff_error *error);
/* The setting's `memory` for that program: "<KEY>" is replaced by what the cell KEY found, as "12:13" (four stacks).
 * false: it is not known. */
bool repro_memory(const repro_data *data, uint32_t program, uint32_t setting, ff_text *out);

/* The cells of one program under settings [first, first + count) as a file's text, and back; what does not apply is
 * left out. FF_PARSE: it is not such a file, or cells are missing; then nothing was taken. */
void repro_cells_json(const repro_data *data, uint32_t program, uint32_t first, uint32_t count, ff_text *out);
ff_status repro_cells_read(repro_data *data, uint32_t program, uint32_t first, uint32_t count, const char *path,
                           ff_error *error);

/* ---- quantities ---- */
/* Is the quantity a ratio to something else, of which the gain or the loss is what counts? Of those below. */
bool repro_is_gain(repro_quantity quantity);
double repro_time_ratio(const repro_measured *a, const repro_measured *b); /* a's time over b's */
double repro_speedup(const repro_measured *a, const repro_measured *b);    /* b's time over a's */
/* a's time over b's, and b's over a's, where b copies first: all memory that the program allocates, also what it does
 * not copy itself, as where all pages lie in the CPU's memory at first. Nothing, if b copies nothing. */
double repro_time_over_all_copied(const repro_measured *a, const repro_measured *b);
double repro_speed_over_all_copied(const repro_measured *a, const repro_measured *b);
/* the share of the speed that a loses against b */
double repro_time_lost(const repro_measured *a, const repro_measured *b);
double repro_time_saved(const repro_measured *a, const repro_measured *b); /* the share of b's time that a saves */
double repro_kernel_time_ratio(const repro_measured *a, const repro_measured *b); /* a's kernel time over b's */
/* b's kernel time, waits for pages included, over a's */
double repro_kernel_speedup(const repro_measured *a, const repro_measured *b);
/* the share of b's kernel time that a saves */
double repro_kernel_saved(const repro_measured *a, const repro_measured *b);
/* share of a's kernel time that its link to the GPU is busy */
double repro_link_used(const repro_measured *a, const repro_measured *b);
/* the share of a's (transfers + kernels) that is saved if both run at one time: the shorter of the two; at most half */
double repro_overlap_saved(const repro_measured *a, const repro_measured *b);
/* a's transfers over transfers + kernels */
double repro_transfer_share(const repro_measured *a, const repro_measured *b);
double repro_footprint(const repro_measured *a, const repro_measured *b); /* a's footprint in MB (10^6 bytes) */
double repro_faults(const repro_measured *a, const repro_measured *b);
double repro_tlb_misses(const repro_measured *a, const repro_measured *b);          /* a's TLB miss rate */
double repro_bytes_ratio(const repro_measured *a, const repro_measured *b);         /* a's bytes to the GPU over b's */
double repro_launch_microseconds(const repro_measured *a, const repro_measured *b); /* a's time per kernel launch */
/* a's footprint per launch over that time, MB/s */
double repro_launch_bandwidth(const repro_measured *a, const repro_measured *b);

#endif
