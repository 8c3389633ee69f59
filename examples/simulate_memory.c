/* SPDX-License-Identifier: Apache-2.0 */
/* How much GPU memory does a recorded program need? Simulates it with less and less, and prints the best manager of
 * each:
 *
 *   cc simulate_memory.c $(pkg-config --cflags --libs farfault-simulate) -o simulate_memory
 *   farfault record -o saxpy.fft ./saxpy && ./simulate_memory saxpy.fft */
#include <farfault/simulate.h>

#include <inttypes.h>
#include <stdio.h>

static int fail(const ff_simulate_error *error) {
  fprintf(stderr, "simulate_memory: %s: %s\n", ff_simulate_status_name(error->status), error->message);
  return 1;
}

/* The simulation that took the least time; -1: no manager could run the program. */
static int64_t best_of(const ff_simulate_result *result) {
  int64_t best = -1;
  uint64_t least = UINT64_MAX, time;
  for (uint32_t i = 0; i < ff_simulate_count(result); i++) {
    if (ff_simulate_get(result, i)->error || !ff_simulate_counter(result, i, "time_ps", &time) || time >= least)
      continue;
    best = i;
    least = time;
  }
  return best;
}

int main(int argc, char **argv) {
  static const char *const shares[] = {"--gpu-memory=100%", "--gpu-memory=75%", "--gpu-memory=50%"};
  for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
    const char *const arguments[] = {shares[i], NULL};
    ff_simulate_options options = {.size = sizeof options, .memory = "demand,tbn,auto", .arguments = arguments};
    ff_simulate_result *result;
    ff_simulate_error error;
    uint64_t time = 0, faults = 0;
    if (ff_simulate_recording(argc > 1 ? argv[1] : "", &options, &result, &error)) return fail(&error);
    int64_t best = best_of(result);
    if (best >= 0 && ff_simulate_counter(result, (uint32_t)best, "time_ps", &time) &&
        ff_simulate_counter(result, (uint32_t)best, "faults", &faults))
      printf("%s: %s is the fastest, %.1f us with %" PRIu64 " far-faults\n", shares[i] + 2,
             ff_simulate_get(result, (uint32_t)best)->memory, (double)time / 1e6, faults);
    ff_simulate_free(result);
  }
  return 0;
}
