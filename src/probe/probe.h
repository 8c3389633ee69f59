/* SPDX-License-Identifier: Apache-2.0 */
/* Address hashes of a GPU from timing alone (Jain 2019, section V): which physical addresses share a DRAM bank, which
 * share a set of the L2.
 *
 *   probe_run | probe_pairs_text -> probe_result -> probe_text | probe_json | probe_picture | probe_write_machine
 *
 * The measurement runs in a child process, as calibrate's does; of the virtual GPU it asks, in addition to
 * what any CUDA program sees, only physical addresses (farfaultPhysical): never the machine file. The same options give
 * the same result there. */
#ifndef FF_PROBE_PROBE_H
#define FF_PROBE_PROBE_H

#include "base/text.h"
#include "machine/spec/spec.h"
#include "partition/recover.h"

typedef enum probe_kind { PROBE_BANKS, PROBE_SETS, PROBE_KINDS } probe_kind;
enum { PROBE_BARS = 160 };

typedef struct probe_options {
  const char *driver;  /* as cuda_open's: "virtual", "cuda"; NULL: as FARFAULT_DRIVER says, or what there is */
  const char *machine; /* of the virtual GPU; NULL: its default */
  const char *set;     /* changes of its values; NULL */
  int device;          /* number of the GPU */
  bool mapped;         /* as on a real GPU: physical addresses are not asked for, even if the driver tells them */
  bool wanted[PROBE_KINDS];
  double noise;  /* share of the conflicts that become any pair, and that are missed: 0 to 0.5 */
  double jitter; /* cycles: standard deviation of what is added to each measured time */
  uint64_t seed;
  uint32_t pairs; /* conflicts wanted of each kind; 0: 256 */
  /* bytes of physically contiguous memory assumed on a real GPU; 0: 2 MiB, which a mapping of that size is */
  uint64_t span;
  double seconds;    /* for each kind; then the search ends with what it has. 0: as long as it takes */
  const char *raw;   /* file for the pairs of banks that were timed alone, as probe_pairs_text reads them; NULL: none */
  const char *lines; /* file for probe_lines' CSV; NULL: none */
  bool progress;     /* a line on stderr */
} probe_options;

/* Access times: bar i counts those in [low + i * width, + width). */
typedef struct probe_histogram {
  double low, width;
  uint32_t bars[PROBE_BARS];
} probe_histogram;

typedef struct probe_finding {
  bool done;
  char problem[256]; /* not "": why it was not found */
  recover_result map;
  uint64_t tested, conflicts; /* pairs that were looked at; of these, that shared the bank (set) */
  /* cycles: the two modes, and what divides them. Banks: of a load; sets: of a load that hits, and misses, the L2 */
  double fast, slow, threshold;
  /* conflicts that are conflicts still when both addresses are XORed with the same number: all in a linear map */
  uint32_t moved, moved_tested;
  uint32_t ways;  /* sets: lines that push one out */
  double seconds; /* of the host */
  probe_histogram times;
} probe_finding;

typedef struct probe_result {
  char device[64];
  bool is_virtual, physical;   /* physical addresses were told, not only those within a span */
  uint64_t memory_bytes, span; /* looked at; physically contiguous within so many bytes */
  uint64_t l2_bytes;
  double clock_mhz;
  probe_finding kinds[PROBE_KINDS];
  recover_mask modules[RECOVER_MASKS]; /* of both: what bank and set masks have in common; only `bits` is set */
  uint32_t module_rank;
  bool modules_known;
  char problem[256]; /* not "": why `raw` or `lines` was not written, which is no reason to lose the rest */
} probe_result;

/* FF_NOT_FOUND: no driver or no GPU; FF_UNSUPPORTED; FF_INTERNAL: the child crashed. A kind that cannot be measured has
 * a problem. */
ff_status probe_run(const probe_options *options, probe_result *result, ff_error *error);

/* Lines "primary,secondary,cycles" (decimal or 0x...; a heading and lines that begin with # are skipped) as pairs of
 * banks or sets, solved as if they had been measured. FF_PARSE with file, line and column; FF_LIMIT: more than 16
 * million lines. */
ff_status probe_pairs_text(const char *file, const char *text, size_t size, probe_kind kind,
                           const probe_options *options, probe_result *result, ff_error *error);

/* How many colours pages of 2^page_bits bytes have by the modules that were found. */
uint32_t probe_colours(const probe_result *result, uint32_t page_bits);
const char *probe_kind_name(probe_kind kind); /* "banks", "sets" */

void probe_text(const probe_result *result, ff_text *out);
void probe_json(const probe_result *result, const char *target, ff_text *out);
/* SVG: how many pairs took how long */
void probe_picture(const probe_result *result, const char *target, ff_text *out);
/* The machine file `base_text` (called `base_name`) with the masks that were found, all else as it is. FF_INVALID: they
 * are not known, or do not fit the machine: the message says which. */
ff_status probe_write_machine(const probe_result *result, const char *base_name, const char *base_text,
                              size_t base_size, const char *target, ff_text *out, ff_error *error);

#endif
