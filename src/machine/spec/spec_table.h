/* SPDX-License-Identifier: Apache-2.0 */
/* The vocabulary of machine files as a table (params.def with spec_limits.def), and what reads one value from text.
 * For spec*.c, choice.c, and sweep/, which varies values. */
#ifndef FF_MACHINE_SPEC_TABLE_H
#define FF_MACHINE_SPEC_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "machine/spec/spec.h"

typedef enum spec_param_id {
#define X(group, name, type, unit, required, help) SPEC_##name,
#include "machine/spec/params.def"
#undef X
  SPEC_PARAM_COUNT
} spec_param_id;

typedef struct spec_param {
  const char *group, *name;
  char type; /* u, f, s, t, m, j, p or l, as in params.def */
  const char *unit;
  bool required;
  size_t offset; /* of the value in machine_spec */
} spec_param;

extern const spec_param spec_params[SPEC_PARAM_COUNT];

/* The parameter of that name, or NULL. */
const spec_param *spec_param_find(const char *name);
/* Whether any parameter is of that group. */
bool spec_group_exists(const char *group);

/* The least and the most that the parameter may be; of type s, how many bytes; of type m, how many masks. */
void spec_param_limits(const spec_param *param, double *low, double *high);

/* Checks and stores one value of type u, f or s given as text. The message names neither place nor parameter. */
ff_status spec_value_parse(const spec_param *param, const char *text, machine_spec *spec, ff_error *error);
/* Checks and stores one point of a size table: sizes must grow, bandwidths be above zero. */
ff_status spec_point_add(machine_size_table *table, const char *bytes, const char *gbs, ff_error *error);

/* of a physical address that a hash may use: from a line of 128 bytes to 128 GiB */
enum { SPEC_LOWEST_BIT = 7, SPEC_HIGHEST_BIT = 36 };
/* The lowest and the highest bit of this parameter's masks: of an address, or numbers of GPUs. */
void spec_mask_bits(const spec_param *param, uint32_t *low, uint32_t *high);
/* Checks and stores one join, of four texts: two GPUs, GB/s, us. */
ff_status spec_join_add(machine_join_table *table, const char *const texts[4], ff_error *error);
/* Checks and stores one profile of MIG, of four texts: its name, SMs, memory slices, L2 slices. */
ff_status spec_profile_add(machine_profile_table *table, const char *const texts[4], ff_error *error);
/* Checks and stores one tier, of seven texts: its name, bytes, GB/s read and written, us, bytes of a unit, "paged" or
 * "mapped". *wrong: which of them the message is about. */
ff_status spec_tier_add(machine_tier_table *table, const char *const texts[MACHINE_TIER_FIELDS], int *wrong,
                        ff_error *error);
/* Adds one bit to the last mask of the table (`first`: to a new one). */
ff_status spec_mask_bit_add(const spec_param *param, machine_mask_table *table, const char *bit, bool first,
                            ff_error *error);

/* What must hold between values (powers of two, multiples, shared memory per block <= per SM). */
ff_status spec_check(const machine_spec *spec, ff_error *error);

/* Reads the text of a machine file. `file` is the name for messages, and what a path behind `like` is relative to. */
ff_status spec_text_load(const char *file, const char *text, size_t size, machine_spec *spec, ff_error *error);

/* A file that is being read, because the one before it is like it. */
typedef struct spec_chain {
  const char *file;
  const struct spec_chain *from; /* NULL: nothing is like it */
} spec_chain;
/* As spec_text_load, of chain->file. */
ff_status spec_text_load_like(const spec_chain *chain, const char *text, size_t size, machine_spec *spec,
                              ff_error *error);
/* The file of the machine `name` that `file` is like: a bundled machine, or a path relative to the folder of `file`.
 * NULL: there is none. The caller frees it. */
char *spec_like_path(const char *name, const char *file);
/* Reads that machine; the message does not say where it is named. FF_NOT_FOUND: there is none. FF_INVALID: it is one of
 * the chain itself, or the chain is too long. Else the error is in its file, and the message has the place. */
ff_status spec_load_like(const char *name, const spec_chain *chain, machine_spec *spec, ff_error *error);

#endif
