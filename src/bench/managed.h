/* SPDX-License-Identifier: Apache-2.0 */
/* The microbenchmark of Wilt, "Managed Memory and Segmentation" (2017), for several ways to have memory on both sides:
 * launch a null kernel, synchronise, write one byte in each page of 4 KiB of a range of 0, 1, 2, 4 ... 4096 pages; the
 * mean time of such a turn. The second series does not touch anything between the launches. */
#ifndef FF_BENCH_MANAGED_H
#define FF_BENCH_MANAGED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

enum { MANAGED_SIZES = 14, MANAGED_PAGE = 4096 }; /* 0 pages, and 2^0 to 2^12 */

typedef enum managed_way {
#define X(id, key, name, help) MANAGED_##id,
#include "bench/managed.def"
#undef X
  MANAGED_WAYS
} managed_way;
typedef struct managed_way_info {
  const char *key, *name, *help;
} managed_way_info;
extern const managed_way_info managed_ways[MANAGED_WAYS];

typedef struct managed_times {
  bool known;
  uint32_t turns;
  double touched[MANAGED_SIZES], untouched[MANAGED_SIZES]; /* microseconds per turn */
  char device[128];                                        /* the GPU's name */
} managed_times;

uint32_t managed_pages(uint32_t size); /* of 0 to MANAGED_SIZES - 1 */

/* Measures one way, in this process: `turns` turns of each size after two that do not count; 0: 10 on the virtual GPU,
 * whose turns are all alike, else 1000. */
ff_status managed_measure(managed_way way, uint32_t turns, managed_times *times, ff_error *error);

typedef struct managed_report {
  const char *command, *machine; /* "farfault bench managed --machine gp100"; "gp100", or "the real GPU" */
  bool paper_gm200;              /* whose numbers stand in the picture: GM200's, else GP100's */
  uint32_t turns;
  managed_times times[MANAGED_WAYS];
} managed_report;
void managed_table(const managed_report *report, ff_text *out);
void managed_csv(const managed_report *report, ff_text *out);
void managed_json(const managed_report *report, ff_text *out);
void managed_svg(const managed_report *report, ff_text *out);

#endif
