/* SPDX-License-Identifier: Apache-2.0 */
/* What every workload's host side shares: arguments, deterministic input, and the verdict.
 *
 * A workload prints what it did, then `NAME: PASSED (...)` or `NAME: FAILED (...)` with the largest error, and exits
 * with 0 or 1 (2: bad arguments or a GPU error). Its input depends on its arguments alone. */
#ifndef WORKLOADS_COMMON_WORKLOAD_H
#define WORKLOADS_COMMON_WORKLOAD_H

#include <stddef.h>
#include <stdint.h>

typedef struct workload_argument {
  const char *name;
  long value;       /* the default; replaced by what the user gave */
  long least, most; /* what is allowed */
} workload_argument;

/* Reads argv[1], argv[2] ... into arguments[i].value; `--help` prints them and exits; a bad one exits with status 2. */
void workload_arguments(int argc, char **argv, const char *name, const char *summary, workload_argument *arguments,
                        size_t count);

void *workload_memory(size_t count, size_t bytes); /* zero-filled; exits when there is none */

/* Our own generator (a 64-bit linear congruential one, high bits out), so that input is the same everywhere. */
typedef struct workload_random {
  uint64_t state;
} workload_random;
uint32_t workload_random_u32(workload_random *random);
uint32_t workload_random_below(workload_random *random, uint32_t limit); /* 0 .. limit - 1; limit > 0 */
float workload_random_float(workload_random *random);                    /* [0, 1), a multiple of 2^-24 */

/* count numbers of [least, least + span). Freed by the caller. */
float *workload_random_floats(workload_random *random, size_t count, float least, float span);

/* How many of the numbers are not the same bits. */
size_t workload_floats_differ(const float *got, const float *expected, size_t count);

/* Around what the CPU computes as the kernels do. With the environment variable WORKLOAD_TIMES the verdict's function says on standard
 * error how much processor time that took, and how much the calls that run kernels. */
void workload_cpu_begins(void);
void workload_cpu_ends(void);
void workload_kernels_begin(void);
void workload_kernels_end(void);

static inline void workload_swap(float **a, float **b) {
  float *kept = *a;
  *a = *b;
  *b = kept;
}

/* The verdicts. They print, and return the exit status. */
int workload_verdict_exact(const char *name, size_t checked, size_t wrong);
int workload_verdict_error(const char *name, size_t checked, double worst, double allowed);

/* |got - expected| / scale, larger if either is not a number: for `worst`. */
double workload_error(double got, double expected, double scale);

#endif
