/* SPDX-License-Identifier: Apache-2.0 */
/* See workload.h. */
#include "workload.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void print_usage(FILE *to, const char *name, const char *summary, const workload_argument *arguments,
                        size_t count) {
  fprintf(to, "usage: %s", name);
  for (size_t i = 0; i < count; i++) fprintf(to, " [%s=%ld]", arguments[i].name, arguments[i].value);
  fprintf(to, "\n%s\n", summary);
}

static int read_argument(const char *text, workload_argument *argument) {
  char *end;
  errno = 0;
  long value = strtol(text, &end, 10);
  if (errno || end == text || *end || value < argument->least || value > argument->most) {
    fprintf(stderr, "%s must be a number from %ld to %ld, not '%s'\n", argument->name, argument->least, argument->most,
            text);
    return 0;
  }
  argument->value = value;
  return 1;
}

void workload_arguments(int argc, char **argv, const char *name, const char *summary, workload_argument *arguments,
                        size_t count) {
  if (argc == 2 && !strcmp(argv[1], "--help")) {
    print_usage(stdout, name, summary, arguments, count);
    exit(0);
  }
  int ok = (size_t)argc <= count + 1;
  for (int i = 1; ok && i < argc; i++) ok = read_argument(argv[i], &arguments[i - 1]);
  if (!ok) {
    print_usage(stderr, name, summary, arguments, count);
    exit(2);
  }
}

void *workload_memory(size_t count, size_t bytes) {
  void *memory = calloc(count ? count : 1, bytes);
  if (!memory) {
    fprintf(stderr, "no memory for %zu x %zu bytes\n", count, bytes);
    exit(2);
  }
  return memory;
}

uint32_t workload_random_u32(workload_random *random) {
  random->state = random->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(random->state >> 32);
}

uint32_t workload_random_below(workload_random *random, uint32_t limit) {
  return (uint32_t)((uint64_t)workload_random_u32(random) * limit >> 32);
}

float workload_random_float(workload_random *random) { return (float)(workload_random_u32(random) >> 8) * 0x1p-24f; }

float *workload_random_floats(workload_random *random, size_t count, float least, float span) {
  float *numbers = workload_memory(count, sizeof *numbers);
  for (size_t i = 0; i < count; i++) numbers[i] = least + span * workload_random_float(random);
  return numbers;
}

/* ---- processor time ---- */

static struct {
  double cpu, kernels, begun;
} times;

static double processor_time(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void workload_cpu_begins(void) { times.begun = processor_time(); }
void workload_cpu_ends(void) { times.cpu += processor_time() - times.begun; }
void workload_kernels_begin(void) { times.begun = processor_time(); }
void workload_kernels_end(void) { times.kernels += processor_time() - times.begun; }

static void print_times(const char *name) {
  if (!getenv("WORKLOAD_TIMES")) return;
  fprintf(stderr, "%s: kernels %.3f ms, the same on the CPU %.3f ms\n", name, 1e3 * times.kernels, 1e3 * times.cpu);
}

size_t workload_floats_differ(const float *got, const float *expected, size_t count) {
  size_t wrong = 0;
  for (size_t i = 0; i < count; i++) wrong += memcmp(&got[i], &expected[i], sizeof *got) != 0;
  return wrong;
}

double workload_error(double got, double expected, double scale) {
  double error = fabs(got - expected) / scale;
  return isnan(error) ? INFINITY : error;
}

int workload_verdict_exact(const char *name, size_t checked, size_t wrong) {
  print_times(name);
  printf("%s: %s (%zu of %zu values differ from the CPU's)\n", name, wrong ? "FAILED" : "PASSED", wrong, checked);
  return wrong != 0;
}

int workload_verdict_error(const char *name, size_t checked, double worst, double allowed) {
  print_times(name);
  int failed = !(worst <= allowed);
  printf("%s: %s (%zu values, largest error %.3g, allowed %.3g)\n", name, failed ? "FAILED" : "PASSED", checked, worst,
         allowed);
  return failed;
}
