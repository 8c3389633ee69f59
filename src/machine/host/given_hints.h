/* SPDX-License-Identifier: Apache-2.0 */
/* Hints on allocations that a simulation is given instead of by the program: what the program would do if it said so.
 *
 *     ALLOCATION:HINT[/ALLOCATION:HINT...]       "1:prefetch/3:pin", "all:prefetch", "2:undeclared@1"
 *
 * ALLOCATION is its number in the reports (`id`), or `all`; N of undeclared@N the kernel's (`farfault trace info -v`).
 * Hints are for managed memory, so device memory that has one counts as managed (undeclared: as it is). Each call that
 * the program would have to make costs the host what a call costs. Only managers that page have hints: under the others
 * memory is where it is. */
#ifndef FF_MACHINE_HINTS_H
#define FF_MACHINE_HINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef enum sim_hint_kind {
#define X(id, name, help) SIM_HINT_##id,
#include "machine/host/given_hints.def"
#undef X
  SIM_HINT_COUNT
} sim_hint_kind;

typedef struct sim_hint_info {
  const char *name, *help;
} sim_hint_info;
extern const sim_hint_info sim_hint_infos[SIM_HINT_COUNT];

enum { SIM_HINTS_MAX = 64 };
#define SIM_HINT_ALL UINT32_MAX

typedef struct sim_hint {
  uint32_t allocation; /* its id; SIM_HINT_ALL: every one */
  sim_hint_kind kind;
  uint32_t kernel; /* UNDECLARED: kernel_index; SIM_HINT_ALL: every one */
} sim_hint;

typedef struct sim_hints {
  sim_hint items[SIM_HINTS_MAX];
  uint32_t count;
} sim_hints;

/* FF_INVALID, FF_LIMIT: not such a text. */
ff_status sim_hints_read(const char *text, sim_hints *hints, ff_error *error);
bool sim_hints_have(const sim_hints *hints, uint32_t allocation, sim_hint_kind kind);
bool sim_hints_undeclare(const sim_hints *hints, uint32_t allocation, uint32_t kernel);

#endif
