/* SPDX-License-Identifier: Apache-2.0 */
/* A simulation's choices as text: a manager, and what is chosen instead of its parts and of the machine's values:
 *
 *     MANAGER[+NAME=VALUE...]           "uvm+evict=lru:64K+gpu-memory=50%+fault_us=5"
 *
 * NAME is one of choices.def, or a value of the machine. What is said behind a manager goes before what is said for
 * all. */
#ifndef FF_MACHINE_CHOICE_H
#define FF_MACHINE_CHOICE_H

#include "machine/sim.h"
#include "policy/manager.h"

typedef enum sim_choice_id {
#define X(id, name, variable, pages, value, help) SIM_CHOICE_##id,
#include "machine/spec/choices.def"
#undef X
  SIM_CHOICE_COUNT
} sim_choice_id;

typedef struct sim_choice_info {
  const char *name, *variable, *value, *help;
  bool pages; /* only managers that page have it */
} sim_choice_info;
extern const sim_choice_info sim_choice_infos[SIM_CHOICE_COUNT];

enum { SIM_CHOICE_LENGTH = 512, SIM_SET_LENGTH = 1024, SIM_RANGES_MAX = 8192, SIM_COUNTERS_MAX = 65535 };

typedef struct sim_choices {
  char text[SIM_CHOICE_COUNT][SIM_CHOICE_LENGTH]; /* empty: not chosen */
  char set[SIM_SET_LENGTH];                       /* "NAME=VALUE,...": values of the machine */
} sim_choices;

typedef struct sim_choice {     /* of one simulation */
  char label[SIM_LABEL_LENGTH]; /* the text; of plug-ins only the file's name */
  char manager[64];
  sim_choices choices;
  sim_options options; /* for sim_create, with pointers to the texts here: it must stay where it is */
} sim_choice;

/* Reads "MANAGER+NAME=VALUE..." onto what is chosen for all (`given`), with everything checked that can be without
 * opening a policy. FF_NOT_FOUND: no such manager or name (the message lists or suggests); FF_INVALID, FF_LIMIT: a
 * value is none. The machine is borrowed as by sim_options. */
ff_status sim_choice_read(const char *text, const sim_choices *given, const machine_spec *machine, sim_choice *choice,
                          ff_error *error);
/* Whether a simulation can be made of the choice: policies exist and take their arguments, and all of it fits together.
 * recorded: the program will be a recorded one. */
ff_status sim_choice_try(sim_choice *choice, bool recorded, ff_error *error);
/* The values of one choice, as sim_choice_read checks them; messages do not name the choice. */
ff_status sim_choice_check(sim_choice_id id, const char *text, const machine_spec *machine, ff_error *error);
/* GPU memory as text ("8G", "75%"): bytes, or a share of what the program allocates. */
ff_status sim_memory_read(const char *text, const machine_spec *machine, uint64_t *bytes, double *share,
                          ff_error *error);
/* The host's memory, in the same way. */
ff_status sim_host_memory_read(const char *text, const machine_spec *machine, uint64_t *bytes, double *share,
                               ff_error *error);
/* "replay:16": the way of handling far-faults; N becomes a value of the machine. */
ff_status sim_faults_read(const char *text, machine_spec *machine, const manager_faults **ways, ff_error *error);
/* "5%:10%", "1M", "none": without HIGH it is LOW. */
ff_status sim_watermark_read(const char *text, watermarks *marks, ff_error *error);
/* "256:2M", "256", "none": the threshold of access counters, and their granule. */
ff_status sim_counters_read(const char *text, manager_counters *counters, ff_error *error);
/* "4K", "64K", "2M", "auto": the largest of these. */
ff_status sim_page_read(const char *text, uint64_t *bytes, ff_error *error);

/* "8", "unlimited" (more than a page can have): the valid ranges that a partial page may have. */
ff_status sim_ranges_read(const char *text, uint32_t *ranges, ff_error *error);
/* "none" (0), "4": on how many threads the SMs are simulated, in rounds (sm/rounds.h). */
enum { SIM_THREADS_MAX = 64 };
ff_status sim_threads_read(const char *text, uint32_t *threads, ff_error *error);
/* "none" (0), "on", "5": the launches of a group that are timed before others are estimated. */
ff_status sim_sample_read(const char *text, uint32_t *needed, ff_error *error);
/* "4K", "none" (0): the gap between two of them below which it moves. */
ff_status sim_gap_read(const char *text, uint64_t *bytes, ff_error *error);

#endif
