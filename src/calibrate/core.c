/* SPDX-License-Identifier: Apache-2.0 */
/* The SM: its clock, what an instruction of one warp takes, what special-function and double-precision instructions
 * take of a full SM's schedulers. */
#include <math.h>

#include "calibrate/kernels.h"
#include "calibrate/lab.h"

/* Long enough that the step of %globaltimer (a microsecond on some GPUs) does not matter. */
static ff_status clock_once(lab *l, uint64_t *rounds) {
  uint64_t least = l->is_virtual ? 20000 : 20000000, seen[5]; /* nanoseconds */
  for (;; *rounds *= 2) {
    void *arguments[] = {rounds, &l->sink};
    LAB_TRY(lab_launch(l, KERNEL_clocks, 1, 1, arguments));
    LAB_CALL(l, StreamSynchronize, l->stream);
    LAB_CALL(l, MemcpyDtoH, seen, l->sink, sizeof seen);
    if (seen[4] - seen[2] >= least || *rounds > UINT64_C(1) << 28) break;
  }
  if (seen[4] <= seen[2]) return ff_fail(l->error, FF_UNSUPPORTED, "%%globaltimer does not go on");
  lab_record(l, FIGURE_clock_mhz, (double)(seen[3] - seen[1]) * 1e3 / (double)(seen[4] - seen[2]));
  return FF_OK;
}

/* Cycles of a round more, with one block of so many threads. */
static ff_status round_cycles(lab *l, lab_kernel kernel, uint32_t threads, double *cycles) {
  uint64_t few = l->is_virtual ? 8 : 200, many = 5 * few;
  double short_us, long_us;
  void *few_arguments[] = {&few, &l->sink}, *many_arguments[] = {&many, &l->sink};
  LAB_TRY(lab_time_kernel(l, kernel, 1, threads, few_arguments, &short_us));
  LAB_TRY(lab_time_kernel(l, kernel, 1, threads, many_arguments, &long_us));
  *cycles = lab_cycles(l, long_us - short_us) / (double)(many - few);
  return FF_OK;
}

/* A full SM: `warps` on each scheduler take turns, so a round takes all of them their instructions' scheduler time. How
 * many schedulers there are is not measured: calibrate_machine_file.c multiplies by the base's. */
static ff_status pipe(lab *l, lab_kernel kernel, figure_id id) {
  double cycles, warps = 32;
  LAB_TRY(round_cycles(l, kernel, 32 * (uint32_t)warps, &cycles));
  lab_record(l, id, cycles / warps / COMPUTE_ROUND);
  return FF_OK;
}

ff_status measure_core(lab *l) {
  uint64_t rounds = 64;
  /* an idle GPU's clock is low at first */
  for (int i = 0; i < (l->is_virtual ? 0 : 20); i++) LAB_TRY(clock_once(l, &rounds));
  l->result->figures[FIGURE_clock_mhz].count = 0;
  for (uint32_t i = 0; i < l->repeats; i++) LAB_TRY(clock_once(l, &rounds));
  for (uint32_t i = 0; i < l->repeats; i++) {
    /* The difference: how much of the loop goes beside the chains is the compiler's and the pipes'. */
    double whole, half;
    LAB_TRY(round_cycles(l, KERNEL_chain, 32, &whole));
    LAB_TRY(round_cycles(l, KERNEL_chain_half, 32, &half));
    lab_record(l, FIGURE_issue_interval, (whole - half) / (COMPUTE_ROUND - COMPUTE_ROUND / 2));
    LAB_TRY(pipe(l, KERNEL_sfu, FIGURE_sfu_pipe));
    LAB_TRY(pipe(l, KERNEL_fp64, FIGURE_fp64_pipe));
  }
  return FF_OK;
}
