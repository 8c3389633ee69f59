/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault advise`: from a recorded program to advice about its memory, each with the simulations that show it.
 *
 *     advise_facts_read -> advise_start -> advise_next: settings to simulate -> (a child simulates them) -> advise_put
 *                                             ^------------------ until there are no more ------------------------|
 *                          advise_conclude: items -> advise_markdown, advise_json
 *
 * A gain is of two simulations that were made, never a sum; where these estimate times (--sample) the advice says so.
 * What gains less than ADVISE_WORTH is no advice; the same results give the same items in the same order.
 * docs/advise.md explains the rules. */
#ifndef FF_STUDY_ADVISE_H
#define FF_STUDY_ADVISE_H

#include "base/text.h"
#include "machine/host/given_hints.h"
#include "machine/observe/result.h"
#include "advise/advise_facts.h"

#define ADVISE_WORTH 0.02   /* of the time: a smaller gain is no advice */
#define ADVISE_HELPS 0.0025 /* a hint that gains less is not tried together with others */
#define ADVISE_SPARSE 2     /* pin, cpu: kernels ask for fewer than so many bytes for each that moves */
#define ADVISE_DENSE 0.5    /* prefetch: kernels touch at least this share of the pages */
#define ADVISE_LARGE 16     /* an allocation of at least such a part of all memory is large */
#define ADVISE_NEAR 1.10    /* of the reference: time with less memory is about the same */
#define ADVISE_VIABLE 2.0   /* of the reference: it is viable */
#define ADVISE_LOST 4.0     /* of the reference: nothing smaller is simulated */

enum { ADVISE_CANDIDATES = 30, ADVISE_QUICK_CANDIDATES = 10, ADVISE_TOGETHER_MAX = 12, ADVISE_TEXT_MAX = 240 };

typedef enum advise_stage {
  ADVISE_MANAGERS,
  ADVISE_HINTS,
  ADVISE_TOGETHER,
  ADVISE_CAPACITY,
  ADVISE_STAGES
} advise_stage;

typedef struct advise_setting {
  char *memory; /* as for --memory */
  advise_stage stage;
  const advise_allocation *allocation; /* HINTS: of which; NULL: of all */
  const advise_kernel *kernel;         /* UNDECLARED: of which kernel's launches */
  sim_hint_kind hint;
  uint32_t percent; /* CAPACITY: of footprint_blocks; and in bytes */
  uint64_t capacity;
  const char *manager; /* CAPACITY: without its memory; owned by the study */
  bool known;          /* it was simulated to its end, and `result` is without an error */
  sim_result result;   /* owned; its error says why it cannot run */
} advise_setting;

typedef struct advise_study {
  advise_facts facts; /* owned from advise_start on */
  char baseline[256]; /* what the program does now */
  char paged[256];    /* what hints and less memory are simulated with: the baseline if that pages, else uvm */
  bool quick;
  advise_stage stage;
  uint32_t round;
  FF_VEC(advise_setting *) settings;
  FF_VEC(char *) skipped;  /* sentences: what was not simulated */
  FF_VEC(char *) managers; /* CAPACITY */
  char *together;          /* the best hints, as one setting of stage HINTS or TOGETHER; NULL: none helps */
} advise_study;

/* `baseline` NULL: `uvm` if the program has managed memory, else `copy`. Takes over *facts. FF_NOT_FOUND, FF_INVALID:
 * not a manager. */
ff_status advise_start(advise_study *study, advise_facts *facts, const char *baseline, bool quick, ff_error *error);
/* Adds the settings that are to be simulated next, from *first on; false: there are no more. Those before must all have
 * been put or given up (they then count as not simulated). */
bool advise_next(advise_study *study, size_t *first);
/* takes over what the result owns, and empties it */
void advise_put(advise_study *study, size_t setting, sim_result *result);
void advise_skip(advise_study *study, const char *format, ...) __attribute__((format(printf, 2, 3)));
void advise_free(advise_study *study);

/* The manager of memory of malloc's on a machine whose kernels may use it. */
const char *advise_system_manager(const advise_study *study);
/* The setting of that text; NULL: there is none. advise_time: its time in ps, 0: not known. */
const advise_setting *advise_find(const advise_study *study, const char *memory);
uint64_t advise_time(const advise_study *study, const char *memory);
/* (now - then) / now; 0 if one of them is not known. */
double advise_gain(uint64_t now, uint64_t then);

/* ---- advise_rules.c ---- */

typedef enum advise_kind {
  ADVISE_KIND_MANAGER,
  ADVISE_KIND_TOGETHER,
  ADVISE_KIND_HINT,
  ADVISE_KIND_SEGMENTS,
  ADVISE_KIND_UNDECLARED,
  ADVISE_KIND_MODEL
} advise_kind;
extern const char *const advise_kind_names[];

typedef struct advise_item {
  advise_kind kind;
  /* it helps a program that is not this one: with managed memory, with declared data, or on a driver that does not
   * exist */
  bool conditional;
  const advise_setting *now, *then;
  double gain; /* of now's time */
  const advise_allocation *allocation;
  char *title, *text; /* owned */
  FF_VEC(const advise_setting *) evidence;
} advise_item;

typedef struct advise_capacity { /* of one manager with less memory; capacities in bytes, 0: none */
  const char *manager;
  uint64_t near, viable; /* down to where its time stays within ADVISE_NEAR, ADVISE_VIABLE of the reference */
  uint64_t near_own;     /* within ADVISE_NEAR of its own time with all its memory */
  uint32_t near_percent, viable_percent, near_own_percent;
} advise_capacity;

typedef struct advise_advice { /* borrows from the study */
  FF_VEC(advise_item) items;   /* the most valuable first; those that are conditional behind all others */
  FF_VEC(advise_capacity) capacities;
  uint64_t reference;                   /* the baseline's time with all its memory, ps; 0: not known */
  char *summary, *verdict;              /* how far the program is from the best; whether less memory is viable. Owned */
  FF_VEC(const advise_setting *) tried; /* hints that gained less than ADVISE_WORTH */
} advise_advice;

void advise_conclude(const advise_study *study, advise_advice *advice);
void advise_advice_free(advise_advice *advice);

/* What would have to be true of an allocation for a hint to be tried: all by the paged manager's counters (NULL: not
 * known). */
bool advise_tries(const advise_allocation *a, const sim_counters *counters, sim_hint_kind hint);
/* Can be had today: on a real GPU with today's driver. Others are models. */
bool advise_is_real(const char *memory);

/* ---- advise_output.c ---- */

typedef struct advise_context {          /* texts borrowed */
  const char *trace, *command, *machine; /* the file; what was recorded; what is simulated */
  const char *options;                   /* "--machine gtx480 --gpu-memory 8G", for the commands; as a shell takes it */
} advise_context;

/* How many of these settings, from the first on, one `farfault sim` takes. At least 1. */
size_t advise_together(const char *const *memories, size_t count);
/* The command that repeats the simulation of these settings. */
void advise_command(const advise_context *context, const char *const *memories, size_t count, ff_text *out);
void advise_markdown(const advise_study *study, const advise_advice *advice, const advise_context *context,
                     ff_text *out);
void advise_json(const advise_study *study, const advise_advice *advice, const advise_context *context, ff_text *out);

#endif
