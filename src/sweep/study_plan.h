/* SPDX-License-Identifier: Apache-2.0 */
/* The points of a study, checked: everything that can be refused is refused here, before the first one runs.
 *
 * point - one simulation: a trace, a machine, a manager, and parameters; numbered from 1 in the study's order.
 * parameter - a choice or a value of the machine that the study names anywhere: a column of the database.
 * key - what a point is, as 32 hex digits: a hash of farfault's version, the trace's checksum, the machine file's text,
 * the manager's text, and all parameters. Equal keys, equal results.
 *
 * No two points of a plan have the same key; each was made a simulation of once, without an error; a
 * parameter that says nothing to a manager (prefetch to `copy`) is not one of its points' parameters. */
#ifndef FF_SWEEP_PLAN_H
#define FF_SWEEP_PLAN_H

#include "sweep/study.h"

enum { SWEEP_POINTS = 10000 /* at most, if nothing else is said */, SWEEP_KEY = 33 };

typedef struct sweep_trace {
  const char *name;  /* as the study has it */
  char *path;        /* owned; absolute */
  char checksum[17]; /* of its contents */
  char *machine;     /* owned; for grids that name none: the one it was recorded on, or the default */
  char *lost;        /* owned; the one it was recorded on, where that is not there; NULL: it is, or none is known */
  bool alone;        /* a grid names no machine for it */
} sweep_trace;

typedef struct sweep_machine {
  const char *name; /* as the study has it, or the recording */
  char *path;       /* owned; absolute */
  char *text;       /* owned; the whole file */
  char hash[SWEEP_KEY];
  machine_spec spec;
} sweep_machine;

typedef struct sweep_parameter {
  int axis;
  char column[64]; /* its name in the database */
} sweep_parameter;

typedef struct sweep_point {
  uint32_t number; /* from 1 */
  const study_grid *grid;
  const sweep_trace *trace;
  const sweep_machine *machine;
  const char *memory;  /* as the study has it */
  const char **values; /* one per parameter, NULL: not given, or without meaning for the manager */
  char key[SWEEP_KEY];
  char comparable[SWEEP_KEY]; /* the same for points that differ in the manager and its way of paging only */
} sweep_point;

typedef struct sweep_plan { /* sweep_plan_free */
  const study *study;
  char *folder; /* of the study's file: relative paths are relative to it */
  FF_VEC(sweep_trace *) traces;
  FF_VEC(sweep_machine *) machines;
  FF_VEC(sweep_parameter) parameters;
  FF_VEC(sweep_point *) points;
  uint32_t repeated; /* points that were the same as earlier ones, and are not there */
  ff_arena arena;
} sweep_plan;

/* `limit`: of the number of points, repeated ones included. The study is borrowed. */
ff_status sweep_plan_make(const study *study, uint64_t limit, sweep_plan *plan, ff_error *error);
void sweep_plan_free(sweep_plan *plan);

/* The words of `farfault sim` for a point, the program's path in front; the caller frees each and the list. */
char **sweep_point_command(const sweep_plan *plan, const sweep_point *point, const char *program, const char *json);
/* "trace a.fft, machine gtx480, memory uvm, gpu-memory 50%, fault_us 20" */
void sweep_point_describe(const sweep_plan *plan, const sweep_point *point, ff_text *out);

/* ---- study_hash.c ---- */

/* 128 bits of FNV-1a over texts, each with its length. */
typedef struct sweep_hash {
  unsigned __int128 state;
} sweep_hash;
void sweep_hash_start(sweep_hash *hash);
void sweep_hash_bytes(sweep_hash *hash, const void *bytes, size_t size);
void sweep_hash_text(sweep_hash *hash, const char *text);
void sweep_hash_end(const sweep_hash *hash, char digits[SWEEP_KEY]);

#endif
