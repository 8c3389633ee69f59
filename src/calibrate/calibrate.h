/* SPDX-License-Identifier: Apache-2.0 */
/* Calibration: measures a GPU through the CUDA driver API and says what a machine file of it would hold.
 *
 *   calibrate_run -> calibrate_result -> calibrate_write_machine | calibrate_compare | calibrate_json |
 *   calibrate_picture
 *
 * The measurement runs in child processes, so that the caller never loads a driver and a driver that
 * crashes is an error message; it looks at nothing but what any CUDA program sees (calls, attributes, time): not at the
 * machine file that a virtual GPU runs on. On the virtual GPU the same options give the same figures. */
#ifndef FF_CALIBRATE_CALIBRATE_H
#define FF_CALIBRATE_CALIBRATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "machine/spec/spec.h"

typedef enum figure_id {
#define X(name, unit, kind, expression, help) FIGURE_##name,
#include "calibrate/calibrate_figures.def"
#undef X
  FIGURE_COUNT
} figure_id;

typedef enum figure_kind { FIGURE_MEASURED, FIGURE_SOLVED, FIGURE_SUM } figure_kind; /* calibrate_figures.def */
typedef struct figure_info {
  const char *name, *unit, *help;
  figure_kind kind;
} figure_info;
extern const figure_info figure_infos[FIGURE_COUNT];

enum { CALIBRATE_SAMPLES = 64, CALIBRATE_CURVE = 128 };

typedef struct figure {
  uint32_t count;
  double samples[CALIBRATE_SAMPLES];
} figure; /* count 0: not found */
typedef struct figure_summary {
  double median, low, high, quarter, three_quarters;
} figure_summary;
/* latency of a random chase over so many bytes */
typedef struct curve_point {
  uint64_t bytes;
  double cycles;
} curve_point;

/* What the driver says of the GPU without a measurement. */
typedef struct calibrate_device {
  char name[64], driver_path[512];
  int driver_version; /* 12040: CUDA 12.4 */
  bool is_virtual;
  uint64_t memory_bytes;
  int major, minor, sm_count, clock_khz, memory_clock_khz, bus_bits, l2_bytes;
  int max_threads, max_blocks, registers, shared_bytes, shared_per_block, shared_per_block_optin, copy_engines,
      pci_domain, pci_bus, pci_device;
} calibrate_device;

typedef struct calibrate_result {
  calibrate_device device;
  figure figures[FIGURE_COUNT];
  curve_point curve[CALIBRATE_CURVE];
  uint32_t curve_count;
  char failures[1024]; /* groups that could not be measured, and why: lines */
} calibrate_result;

typedef struct calibrate_options {
  const char *driver;  /* as cuda_open's; NULL: as FARFAULT_DRIVER says, or what there is */
  const char *machine; /* of the virtual GPU: what FARFAULT_MACHINE says to it */
  const char *set;     /* of the virtual GPU: "NAME=VALUE,..."; NULL: none */
  uint32_t repeats;    /* 1 to CALIBRATE_SAMPLES; 0: 11 on a GPU, 3 on the virtual one */
  bool quick;          /* smaller sweeps; no curve */
  bool info;           /* measure nothing: result->device only */
  bool progress;       /* stderr is a terminal: its last line says what is being measured. false: a line every
                        * ff_progress_period() seconds */
} calibrate_options;

/* FF_NOT_FOUND: no driver or no GPU; FF_INTERNAL: a child crashed. A group that fails is in result->failures, and the
 * others are measured. */
ff_status calibrate_run(const calibrate_options *options, calibrate_result *result, ff_error *error);

figure_summary figure_summarise(const figure *figure); /* of a figure that was found */
/* What machine `m` says of the figure; NAN: nothing. */
double figure_expected(figure_id id, const machine_spec *m);

/* The figures that need values of `base` for what cannot be told apart: after calibrate_run, before the functions
 * below. */
void calibrate_solve(calibrate_result *result, const machine_spec *base);
/* The machine as measured; what was not is `base`'s. `base_name`, for the sources; `date`, "2026-11-21"; `out` becomes
 * the file. The text is checked as any machine file is: an error says what does not fit together. */
ff_status calibrate_write_machine(const calibrate_result *result, const machine_spec *base, const char *base_name,
                                  const char *date, ff_text *out, ff_error *error);
/* Measured against what machine `m` says; returns the figures further off than `tolerance` (0.05), or that were not
 * found. */
uint32_t calibrate_compare(const calibrate_result *result, const machine_spec *m, double tolerance, ff_text *out);
void calibrate_json(const calibrate_result *result, ff_text *out);
/* Rows "name,value,unit,min,max,command" without a header: what the driver says of the GPU, and the link it sits on as
 * the system says. */
void calibrate_info_csv(const calibrate_device *device, const char *command, ff_text *out);
/* The same of all figures. */
void calibrate_csv(const calibrate_result *result, const char *command, ff_text *out);
void calibrate_picture(const calibrate_result *result, ff_text *out); /* SVG: latency against footprint */

#endif
