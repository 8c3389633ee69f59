/* SPDX-License-Identifier: Apache-2.0 */
/* Programs over more data than the GPU may hold, each written in several ways: by hand with streams, with managed
 * memory, with segments.
 *
 *   stream   out = f(in), one kernel over the whole
 *   chain    a tile of in -> f -> f -> f -> a tile of out, for each tile
 *   diamond  a tile of in -> f and g, joined -> a tile of out, for each tile
 *   matmul   C = A B in tiles; each needs a panel of A's rows and one of B's columns (B is kept by columns)
 *
 * Half of the bytes go in and half come out (matmul: two thirds go in). What is measured is the time from all of the
 * input being in host memory to all of the output being there. Results are checked against the host: all words of the
 * first three; C x = A (B x) for a vector x, in whole numbers, of matmul. */
#ifndef FF_BENCH_PIPELINE_H
#define FF_BENCH_PIPELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

typedef enum pipeline_shape {
  PIPELINE_STREAM,
  PIPELINE_CHAIN,
  PIPELINE_DIAMOND,
  PIPELINE_MATMUL,
  PIPELINE_SHAPES
} pipeline_shape;
extern const char *const pipeline_shape_names[PIPELINE_SHAPES + 1]; /* ends in NULL */

typedef enum pipeline_way {
#define X(id, key, name, memory, help) PIPELINE_##id,
#include "bench/pipeline.def"
#undef X
  PIPELINE_WAYS
} pipeline_way;
typedef struct pipeline_way_info {
  const char *key, *name, *memory, *help;
} pipeline_way_info;
extern const pipeline_way_info pipeline_ways[PIPELINE_WAYS];

typedef struct pipeline_plan {
  pipeline_shape shape;
  uint64_t budget; /* bytes of GPU memory */
  uint64_t tile;   /* bytes that are copied at once; matmul: of a panel */
  uint32_t tiles;  /* of in, and of out; matmul: panels of A, and of B */
  uint32_t rounds; /* of a kernel over each word */
  uint32_t side;   /* matmul: rows and columns */
  uint32_t panel;  /* matmul: rows of a panel of A, columns of one of B */
} pipeline_plan;

/* The plan for `data` bytes in all. FF_INVALID: the budget is too small for what the hand-written program needs, or
 * there is more than a tile over; FF_LIMIT: more than 16 GiB. */
ff_status pipeline_make_plan(pipeline_shape shape, uint64_t data, uint64_t budget, uint64_t tile, uint32_t rounds,
                             pipeline_plan *plan, ff_error *error);

typedef struct pipeline_result {
  bool known;
  double seconds;
  uint64_t to_gpu, from_gpu; /* bytes moved, as the program counts them; UINT64_MAX: it does not know */
  uint64_t checked, wrong;   /* values; checked 0: there is nothing to check */
  char device[128];
} pipeline_result;

/* Runs one way in this process. */
ff_status pipeline_run(const pipeline_plan *plan, pipeline_way way, pipeline_result *result, ff_error *error);

typedef struct pipeline_machine { /* what was measured on one */
  const char *name;
  pipeline_result results[PIPELINE_WAYS];
} pipeline_machine;
typedef struct pipeline_report {
  const char *command;
  const pipeline_plan *plans; /* one per shape that was measured */
  uint32_t plan_count, machine_count;
  const pipeline_machine *machines; /* machine_count per plan */
} pipeline_report;
void pipeline_table(const pipeline_report *report, ff_text *out);
void pipeline_csv(const pipeline_report *report, ff_text *out);
void pipeline_json(const pipeline_report *report, ff_text *out);
void pipeline_svg(const pipeline_report *report, ff_text *out);

#endif
