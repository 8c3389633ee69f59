/* SPDX-License-Identifier: Apache-2.0 */
/* What study_plan.c (the points), study_check.c (may they run?) and command.c (their words) share. */
#ifndef FF_SWEEP_PRIVATE_H
#define FF_SWEEP_PRIVATE_H

#include "sweep/study_plan.h"

typedef struct planning {
  const study *study;
  sweep_plan *plan;
  ff_error *error;
  ff_map known;       /* points by key */
  ff_map checked;     /* what a simulation was made of, by the hash of all but the trace */
  sim_choice *choice; /* large: one for all */
} planning;

/* The path in the study's folder, as a new text. */
char *sweep_path_in(const char *folder, const char *path);
/* The machine of this name, or the trace's own where `machine` is NULL. */
const sweep_machine *sweep_find_machine(const sweep_plan *plan, const study_value *machine, const study_value *trace);

/* ---- study_check.c ---- */

/* FF_PARSE at the place of a value. */
ff_status sweep_fail_value(const planning *p, const study_value *value, const char *what);
/* Every value of every axis alone, with the first machine that its axis meets: others are looked at with the points. */
ff_status sweep_check_values(planning *p);
/* The point as a whole, on its machine; then `hash` has taken what it is, but for its trace. */
ff_status sweep_check_point(planning *p, const sweep_point *point, sweep_hash *hash);

/* ---- command.c ---- */

/* Policies may be files ("./mine.so:2"): the text with the file's whole path, or NULL where it is none. The caller
 * frees it. */
char *sweep_whole_policy(const sweep_plan *plan, const char *text);
/* "MANAGER+prefetch=./mine.so" with whole paths; the caller frees it. */
char *sweep_whole_memory(const sweep_plan *plan, const char *memory);
/* Is the choice of axis `axis` a policy? */
bool sweep_is_policy(int axis);

#endif
