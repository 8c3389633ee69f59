/* SPDX-License-Identifier: Apache-2.0 */
/* A study file: which traces are simulated on which machines, under which managers and with which parameters
 * (docs/sweeps.md).
 *
 * axis - one thing that can be varied, with its values: the trace, the machine, the memory manager, a choice of
 * choices.def (gpu-memory, prefetch ...), or a value of the machine. grid - all combinations of its axes' values. point
 * - one simulation.
 *
 * In a study that was read, every grid has a trace and a manager; one without a machine takes that of
 * each recording. Every axis that is there has at least one value; no value is empty. Whether the values mean anything
 * is looked at by study_plan.c. */
#ifndef FF_SWEEP_STUDY_H
#define FF_SWEEP_STUDY_H

#include "base/memory.h"
#include "base/text.h"
#include "machine/spec/choice.h"
#include "machine/spec/spec_table.h"

/* The axes in the order in which points are counted: the last one changes first. */
enum {
  AXIS_TRACE,
  AXIS_MACHINE,
  AXIS_SET,                                  /* values of the machine, as in params.def */
  AXIS_CHOICE = AXIS_SET + SPEC_PARAM_COUNT, /* as in choices.def */
  AXIS_MEMORY = AXIS_CHOICE + SIM_CHOICE_COUNT,
  AXIS_COUNT
};

typedef struct study_value {
  char *text;            /* owned */
  uint32_t line, column; /* from 1 */
} study_value;

typedef struct study_axis {
  FF_VEC(study_value) values;
} study_axis;

typedef struct study_grid {
  study_axis *axes[AXIS_COUNT]; /* the study's; NULL: not varied */
  bool own[AXIS_COUNT];         /* said in this grid, not for all of them */
  bool point;                   /* from the list of points: its own values are single ones */
  uint32_t line, column;        /* of its first key */
} study_grid;

typedef struct study { /* study_free */
  char *file, *text;   /* the name for messages, and the whole text */
  size_t size;
  char title[160]; /* may be empty */
  FF_VEC(study_grid *) grids;
  FF_VEC(study_axis *) axes; /* all that grids point to */
} study;

/* Reads the text of a study. FF_PARSE, with file, line, column and a caret: everything that is not as in
 * docs/sweeps.md. */
ff_status study_read(const char *file, const char *text, size_t size, study *study, ff_error *error);
void study_free(study *study);

/* "trace", "gpu-memory", "fault_us", ... */
const char *study_axis_name(int axis);
/* FF_PARSE at a place of the study's text. */
ff_status study_fail(const study *study, uint32_t line, uint32_t column, ff_error *error, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* How many combinations a grid has; UINT64_MAX: more than can be counted. */
uint64_t study_grid_size(const study_grid *grid);

#endif
