/* SPDX-License-Identifier: Apache-2.0 */
/* A machine: the immutable description that a machine file (machines/NAME.yaml) gives. params.def is the vocabulary. */
#ifndef FF_MACHINE_SPEC_H
#define FF_MACHINE_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct machine_size_point {
  uint64_t bytes;
  double gbs;
} machine_size_point;
typedef struct machine_size_table {
  machine_size_point points[32];
  uint32_t count;
} machine_size_table;

enum { MACHINE_MASKS = 16 };
/* of a physical address; mask i gives bit i */
typedef struct machine_mask_table {
  uint64_t masks[MACHINE_MASKS];
  uint32_t count;
} machine_mask_table;

enum { MACHINE_GPUS = 16, MACHINE_JOINS = MACHINE_GPUS * (MACHINE_GPUS - 1) / 2 };
typedef struct machine_join { /* two GPUs' own link, both ways at once */
  uint32_t gpus[2];
  double gbs, latency_us;
} machine_join;
typedef struct machine_join_table {
  machine_join joins[MACHINE_JOINS];
  uint64_t count;
} machine_join_table;

enum { MACHINE_PROFILES = 12 };
typedef struct machine_profile { /* of MIG: what a GPU can be divided into */
  char name[16];                 /* "3g.40gb": of 3 compute slices; zeros behind it */
  uint32_t sms;
  uint32_t memory, l2; /* of mig_memory_slices: of the memory with its channels, of the L2's bytes */
} machine_profile;
typedef struct machine_profile_table {
  machine_profile profiles[MACHINE_PROFILES];
  uint64_t count;
} machine_profile_table;

enum { MACHINE_TIERS = 4, MACHINE_TIER_FIELDS = 7 };
typedef struct machine_tier { /* memory or storage above or below the host's memory */
  char name[16];
  uint64_t bytes, unit_bytes; /* it is read and written in whole units, one behind the other */
  double read_gbs, write_gbs, latency_us;
  uint64_t mapped; /* 1: the GPU reads and writes it over the link, as the host's memory; 0: it must be brought up */
} machine_tier;
typedef struct machine_tier_table {
  machine_tier tiers[MACHINE_TIERS]; /* the nearest first */
  uint64_t count;
} machine_tier_table;

typedef uint64_t machine_type_u;
typedef double machine_type_f;
typedef char machine_type_s[64];
typedef machine_size_table machine_type_t;
typedef machine_mask_table machine_type_m;
typedef machine_join_table machine_type_j;
typedef machine_profile_table machine_type_p;
typedef machine_tier_table machine_type_l;

typedef struct machine_spec {
#define X(group, name, type, unit, required, help) machine_type_##type name;
#include "machine/spec/params.def"
#undef X
  char file[256];  /* where it was read */
  char title[160]; /* one line for `farfault list machines` */
  bool like;       /* has values of another machine's file, too */
} machine_spec;

/* Of what goes over DRAM's bus for a whole line, what is no check word. */
static inline double spec_data_share(const machine_spec *spec) { return 4 / (4 + (double)spec->dram_check_sectors); }
/* Bytes of whole lines' data that the bus could carry while it carries a sector alone, with its check words. */
static inline double spec_sector_bytes(const machine_spec *spec) {
  return 32 * (1 + (double)spec->dram_check_sectors) * spec_data_share(spec);
}
/* Of dram_gbs, for long streams of whole lines: data that is read, and as much read as written. */
static inline double spec_read_share(const machine_spec *spec) {
  return (spec->dram_read_share > 0 ? spec->dram_read_share : 1) * spec_data_share(spec);
}
static inline double spec_copy_share(const machine_spec *spec) {
  return (spec->dram_copy_share > 0 ? spec->dram_copy_share : 1) * spec_data_share(spec);
}

/* The machine's address hash, as src/partition/hash.h takes it; a machine without `address_map` interleaves.
 * FF_INVALID: there is no such map. */
struct hash_spec;
ff_status machine_spec_hash(const machine_spec *spec, struct hash_spec *hash, ff_error *error);
/* What is simulated where nothing was said: the newest bundled machine, whose compute capability runs what today's nvcc
 * makes without options. */
#define MACHINE_DEFAULT "h200"
/* What a recording that was made on the machine `recorded` (NULL: it does not say) is simulated on where nothing was
 * said: `recorded` itself where its file is there, is read and is no longer than `longest` bytes; else
 * MACHINE_DEFAULT. */
const char *machine_of_recording(const char *recorded, size_t longest);
/* Reads a machine file. `name` is a file name, or the bare name of a bundled machine (looked up in $FARFAULT_MACHINES,
 * then next to the program, then in the installed data folder). Unknown keys, missing ones, values out of range and a
 * value without a source are errors "file:line:column: ...". */
ff_status machine_spec_load(const char *name, machine_spec *spec, ff_error *error);
/* Is that `name` the path of a machine file, and not a bundled machine? */
bool machine_spec_is_file(const char *name);
/* The bundled machines, NULL-ended, sorted; the caller frees the list and the strings. */
char **machine_spec_list(void);
/* Overrides one value by text ("fault_us=50", "memory_bytes=2G"), as in the file. */
ff_status machine_spec_set(machine_spec *spec, const char *assignment, ff_error *error);
/* The same for "NAME=VALUE,NAME=VALUE"; what must hold between values is looked at when all are set. After an error the
 * spec is as it was. */
ff_status machine_spec_set_all(machine_spec *spec, const char *assignments, ff_error *error);

#endif
