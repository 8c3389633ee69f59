/* SPDX-License-Identifier: Apache-2.0 */
/* What all measurements share: an open driver, a context, kernels, a stream, two events, and where figures go. Private
 * to calibrate/; it lives in a child process (calibrate_session.c).
 *
 * Units: times are microseconds of the GPU's or the host's clock (lab_time.c: virtual ones on the virtual GPU),
 * latencies are SM cycles. A measurement that fails returns a status and leaves the figures found before
 * it. */
#ifndef FF_CALIBRATE_LAB_H
#define FF_CALIBRATE_LAB_H

#include "base/memory.h"
#include "calibrate/calibrate.h"
#include "runtime/cuda.h"

typedef enum lab_kernel {
#define K(name) KERNEL_##name,
#include "calibrate/kernels.def"
#undef K
  KERNEL_COUNT
} lab_kernel;

typedef struct lab {
  const cuda_driver *cuda;
  calibrate_result *result;
  calibrate_options options;
  uint32_t repeats;
  bool is_virtual;
  int device;
  cuda_context context;
  cuda_module module;
  cuda_function kernels[KERNEL_COUNT];
  cuda_stream stream;
  cuda_event begin, end;
  cuda_address sink; /* 64 bytes for what kernels must not leave uncomputed */
  uint64_t random;
  ff_error *error;
} lab;

/* Makes a driver call; a failure is the function's. */
#define LAB_CALL(l, name, ...)                                                 \
  do {                                                                         \
    int result_ = (l)->cuda->name(__VA_ARGS__);                                \
    if (result_) return cuda_fail((l)->cuda, result_, "cu" #name, (l)->error); \
  } while (0)
#define LAB_TRY(call)            \
  do {                           \
    ff_status status_ = (call);  \
    if (status_) return status_; \
  } while (0)

/* ---- lab_time.c ---- */
double lab_host_now(const lab *l); /* microseconds */
ff_status lab_elapsed(lab *l, cuda_event begin, cuda_event end, double *us);

/* ---- lab.c ---- */
ff_status lab_open(lab *l, const calibrate_options *options, calibrate_result *result, ff_error *error);
void lab_record(lab *l, figure_id id, double value); /* one sample; nothing if it is no number */
double lab_figure(const lab *l, figure_id id);       /* the median; NAN if it was not found */
double lab_cycles(const lab *l, double us);
uint64_t lab_random(lab *l, uint64_t below);
ff_status lab_launch(lab *l, lab_kernel kernel, uint32_t blocks, uint32_t threads, void **arguments);
/* Launches and waits; the time from an event before to one after. */
ff_status lab_time_kernel(lab *l, lab_kernel kernel, uint32_t blocks, uint32_t threads, void **arguments, double *us);
/* The same with blocks of 32 threads and so many bytes of dynamic shared memory. */
ff_status lab_time_blocks(lab *l, lab_kernel kernel, uint32_t blocks, uint32_t shared, double *us);
/* Keeps the GPU busy for about so long, asynchronously, so that what is queued behind it follows without gaps. */
ff_status lab_burn(lab *l, double us);
ff_status lab_allocate(lab *l, size_t bytes, cuda_address *address); /* FF_NO_MEMORY: there is no room for it */
void lab_free(lab *l, cuda_address address);

/* ---- chain.c: pointer chases ---- */
/* Makes the addresses a cycle, in random order or as they stand; each holds the next one's. `at` is reordered. */
ff_status lab_chain(lab *l, cuda_address *at, size_t count, bool shuffle);
enum { CHASE_STEPS = 32 }; /* loads of a round */
/* Follows the chain from `start` for so many rounds with one thread; `kernel` is KERNEL_chase (through the L1) or
 * KERNEL_chase_l2. */
ff_status lab_chase(lab *l, lab_kernel kernel, cuda_address start, uint64_t rounds, double *us);
/* Cycles per step on a chain of `count`, once it has been gone through: what `rounds` more take. Issue is not
 * subtracted. It is gone through three times: each kernel runs on another SM, and an L2 of two sides keeps a copy of it
 * on the side of each. */
ff_status lab_chase_hot(lab *l, lab_kernel kernel, cuda_address start, size_t count, uint64_t rounds, double *cycles);
/* less the instructions of a step: what a machine file calls latency */
double lab_latency(const lab *l, double step_cycles);
/* Reads `bytes` from `base` with all SMs, at least once over; the time. */
ff_status lab_read(lab *l, cuda_address base, uint64_t bytes, double *us);
ff_status lab_write(lab *l, cuda_address base, uint64_t bytes, double *us);
/* reads just these, a multiple of 64 KiB, in order, not as fast */
ff_status lab_sweep(lab *l, cuda_address base, uint64_t bytes);
uint64_t lab_read_unit(const lab *l); /* these go by so many bytes, rounded up */

/* ---- the groups, in the order in which they are measured; groups.def names them ---- */
#define G(session, name, help) ff_status measure_##name(lab *l);
#include "calibrate/groups.def"
#undef G

#endif
