/* SPDX-License-Identifier: Apache-2.0 */
/* Measurements on real GPUs next to what the same microbenchmarks take on the virtual one.
 *
 *   row     one measurement: its group, the GPU, the machine file that stands for it, the program that is run, what of it is
 *           compared, the value on silicon, where that was published
 *   run     what must be run for one or more rows: machine, settings, manager, program; the same for all of them
 *   role    held: no value of a machine file was chosen with the row in view. fitted: one was. input: the row's value is a value of
 *           the machine file. Only held rows are scored
 *   score   of a group's held rows on one GPU: the geometric mean of ours/silicon, the mean of |ours/silicon - 1|, and the correlation
 *           of the logarithms
 *   limit   the largest mean error that a group may have on a GPU, in a quick run and in a full one
 *   goal    the mean error, or the correlation, that the held rows of some groups are to reach together: which rows, what
 *           they were before, what is wanted
 *
 * Tables are text: a header line with the columns of columns.def, a line per row, fields with a tab between them. The
 * order of rows is the files', so that the same measurements give the same bytes. */
#ifndef FF_VALIDATE_H
#define FF_VALIDATE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "report/report.h"

#define VALIDATE_NONE ((double)NAN)

typedef enum validate_role { VALIDATE_HELD, VALIDATE_FITTED, VALIDATE_INPUT, VALIDATE_ROLES } validate_role;
extern const char *const validate_role_names[VALIDATE_ROLES];

typedef struct validate_row { /* texts are the table's */
#define X(name, help) const char *name;
#include "validate/columns.def"
#undef X
  double at, measured; /* x, VALIDATE_NONE: none; silicon, > 0 */
  validate_role is;
  bool is_quick;
  uint32_t run;
  double ours; /* VALIDATE_NONE: not run, or not found in what it printed */
} validate_row;

typedef struct validate_run { /* texts are the table's; "-": none, or the default */
  const char *machine, *set, *memory, *program;
} validate_run;

typedef enum validate_measure { VALIDATE_ERROR, VALIDATE_CORRELATION, VALIDATE_MEASURES } validate_measure;

typedef struct validate_goal { /* texts are the table's; "-": any */
#define X(name, help) const char *name;
#include "validate/goals.def"
#undef X
  validate_measure of;
  double from, to; /* x of the rows; VALIDATE_NONE: any */
  double wanted;   /* of the error at most, 1: 100 %; of the correlation at least */
  uint32_t held;   /* rows of the role in the tables, whether they are run or not */
} validate_goal;

typedef struct validate_table {
  FF_VEC(validate_row) rows;
  FF_VEC(validate_run) runs;
  FF_VEC(validate_goal) goals;
  ff_arena texts;
} validate_table;

/* Adds the rows of that text to the table; `file` is its name for messages. FF_PARSE with file, line and column: a
 * header that is not the one of columns.def, a wrong number of fields, an empty one, a number that is none, a role that
 * is none, the same row again. */
ff_status validate_table_read(const char *file, const char *text, size_t size, validate_table *table, ff_error *error);
void validate_table_free(validate_table *table);

/* What stands in a row's program for the folder of programs that are not bundled. */
#define VALIDATE_FOLDER "{programs}"
bool validate_needs_folder(const validate_row *row);

/* Which rows are wanted; NULL: of any group, on any machine. */
typedef struct validate_choice {
  const char *group, *machine;
  bool quick;
  bool without_folder; /* none that needs that folder */
} validate_choice;
bool validate_is_wanted(const validate_row *row, const validate_choice *choice);
/* Drops all other rows, the runs that no row needs then, and the goals without a row of that group and machine. */
void validate_choose(validate_table *table, const validate_choice *choice);

/* ---- what a run gave ---- */

/* The value of the line "QUANTITY = VALUE UNIT" in what the program printed; VALIDATE_NONE: there is none, or two that
 * differ. */
double validate_printed(const char *text, const char *quantity, const char *unit);
/* The value of the quantity "COUNTER", of the run, or "COUNTER of KERNEL", of a launch of that kernel on average: in
 * microseconds, milliseconds, KiB, MiB or "cycles of N MHz" where that is the unit, else as it is counted. "cycles of N
 * MHz + M": and M more, which the measurement has and the counter has not. VALIDATE_NONE: no such counter or kernel. */
double validate_counted(const sim_result *result, const char *quantity, const char *unit);
/* Of what the row asks for; `result` may be NULL. */
double validate_value(const validate_row *row, const char *printed, const sim_result *result);

/* ---- scores ---- */

typedef struct validate_score { /* of a group's rows on one GPU */
  const char *group, *gpu, *machine;
  uint32_t rows, held, scored;      /* scored: of those that are held, those with a value of ours */
  double ratio, error, correlation; /* VALIDATE_NONE: no row, or for the correlation fewer than three, or all equal */
} validate_score;
typedef struct validate_scores {
  FF_VEC(validate_score) list; /* in the order of their first rows */
} validate_scores;
/* The caller frees the list's items. */
void validate_score_all(const validate_table *table, validate_scores *scores);
/* Whether the row is one of those that the score is of. */
bool validate_scored_by(const validate_score *score, const validate_row *row);

/* ---- goals ---- */

/* Adds the goals of that text, a table with the columns of goals.def, to the table, whose rows have all been read and
 * not been chosen from. Errors as for the rows. */
ff_status validate_goals_read(const char *file, const char *text, size_t size, validate_table *table, ff_error *error);

/* Whether the row is one of the goal's; not all of these are held. */
bool validate_goal_is_of(const validate_goal *goal, const validate_row *row);

typedef enum validate_verdict {
  VALIDATE_MET,
  VALIDATE_MISSED,
  VALIDATE_IN_PART,   /* of its held rows some have no value: nothing can be said */
  VALIDATE_NOT_RUN,   /* none has */
  VALIDATE_NONE_HELD, /* all rows were in view when values were chosen, or there are none */
  VALIDATE_VERDICTS
} validate_verdict;
extern const char *const validate_verdict_names[VALIDATE_VERDICTS];
extern const char *const validate_measure_names[VALIDATE_MEASURES];

typedef struct validate_attainment {
  uint32_t scored; /* of its held rows those with a value of ours */
  /* the measure over these; VALIDATE_NONE: none, or for the correlation fewer than three, or all equal */
  double now;
  validate_verdict verdict;
} validate_attainment;
validate_attainment validate_attained(const validate_table *table, const validate_goal *goal);

/* ---- limits ---- */

typedef struct validate_limit {
  char group[64], gpu[64];
  double quick, full; /* of the mean error, 1: 100 % */
} validate_limit;
typedef struct validate_limits {
  FF_VEC(validate_limit) list;
} validate_limits;
/* A table with the columns group, gpu, quick, full, both in percent. Errors as for the rows. The caller frees the
 * list's items. */
ff_status validate_limits_read(const char *file, const char *text, size_t size, validate_limits *limits,
                               ff_error *error);
/* Says of each score that is above its limit, has none, or has rows without a value, and returns how many there are. */
uint32_t validate_exceeded(const validate_scores *scores, const validate_limits *limits, bool quick, ff_text *out);

/* ---- outputs ---- */

typedef struct validate_page { /* what a page says of how it was made */
  const char *command;         /* the command line */
  const char *set;             /* settings of the user's, "": none */
} validate_page;
void validate_table_text(const validate_table *table, const validate_scores *scores, bool verbose, ff_text *out);
void validate_list_text(const validate_table *table, bool verbose, ff_text *out);
void validate_json(const validate_table *table, const validate_scores *scores, const validate_page *page, ff_text *out);
void validate_markdown(const validate_table *table, const validate_scores *scores, const validate_page *page,
                       ff_text *out);
void validate_html(const validate_table *table, const validate_scores *scores, const validate_page *page, ff_text *out);

#endif
