/* SPDX-License-Identifier: Apache-2.0 */
/* What reading a trace costs in addition to simulating it: processor time in the steps that bring what the simulation
 * asks for, and in all the rest, as `farfault sim` with one manager.
 *
 *     bench_trace TRACE... [MANAGER]     (default: replay, on gtx480) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "machine/sim.h"
#include "trace/file.h"

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

typedef struct simulation {
  sim *sim;
  double seconds;
} simulation;

/* What asking for the time adds to a step, and to what is between steps: the clock is a system call. */
static double clock_cost(void) {
  enum { CALLS = 20000 };
  double start = seconds(), sum = 0;
  for (int i = 0; i < CALLS; i++) {
    double before = seconds();
    sum += seconds() - before;
  }
  return (sum + (seconds() - start - sum)) / 2 / CALLS;
}

/* In the simulation's thread: the time is the simulation's, too, and is taken off. */
typedef struct pulled {
  trace_feed *feed;
  trace_program *program;
  double seconds;
  uint64_t steps;
} pulled;
static void pull(void *context) {
  pulled *p = context;
  double start = seconds();
  bool more = trace_feed_step(p->feed);
  p->seconds += seconds() - start;
  p->steps++;
  if (!more) trace_op_append(p->program, &(trace_op){.kind = TRACE_OP_END});
}

static void simulate(simulation *s) {
  double start = seconds();
  sim_run(s->sim);
  s->seconds = seconds() - start;
}

static void fail(const ff_error *error) {
  fprintf(stderr, "bench_trace: %s\n", error->message);
  exit(1);
}

static void measure(const char *path, const char *manager, const machine_spec *spec) {
  ff_error error;
  trace_file *file;
  if (trace_file_open(path, &file, &error)) fail(&error);
  trace_program *program = trace_program_create(0);
  simulation s = {0};
  if (sim_create(program, &(sim_options){.spec = spec, .manager = manager}, &s.sim, &error)) fail(&error);
  pulled p = {.feed = trace_feed_create(file, program, NULL), .program = program};
  trace_program_pull(program, pull, &p);
  simulate(&s);
  double cost = clock_cost() * (double)p.steps, reading = p.seconds - cost;
  s.seconds -= p.seconds + cost;
  if (trace_feed_free(p.feed, &error)) fail(&error);
  const trace_file_info *info = trace_file_information(file);
  double accesses = (double)info->accesses / 1e6;
  printf("%-24s %-8s %10.2f M %8.2f B %10.3f s %8.1f ns %10.3f s %8.1f %%\n", path, manager, accesses,
         (double)info->bytes / (double)info->accesses, reading, reading / accesses * 1e3, s.seconds,
         100 * reading / s.seconds);
  sim_free(s.sim);
  trace_program_free(program);
  trace_file_close(file);
}

int main(int argc, char **argv) {
  static machine_spec spec;
  ff_error error;
  if (argc < 2) {
    printf("bench_trace TRACE... [MANAGER]: reading, and simulating; no trace was given\n");
    return 0;
  }
  if (machine_spec_load("gtx480", &spec, &error)) fail(&error);
  bool manager = argc > 2 && !strchr(argv[argc - 1], '.');
  printf("%-24s %-8s %12s %10s %12s %11s %12s %10s\n", "trace", "memory", "accesses", "each", "reading", "an access",
         "simulating", "reading");
  for (int i = 1; i < argc - manager; i++) measure(argv[i], manager ? argv[argc - 1] : "replay", &spec);
  return 0;
}
