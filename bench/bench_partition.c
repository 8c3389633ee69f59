/* SPDX-License-Identifier: Apache-2.0 */
/* What a place in memory costs to compute, by kind of address hash, and a frame to take and give back, by how full
 * memory is.
 *
 *     bench_partition                    nanoseconds of processor time, best of three */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "machine/sim.h"
#include "partition/frames.h"

enum { LOOKUPS = 10000000, ROUNDS = 3, MOVES = 200000 };

static volatile uint64_t sink; /* so that nothing is left out */

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void check(ff_status status, const ff_error *error) {
  if (!status) return;
  fprintf(stderr, "bench_partition: %s\n", error->message);
  exit(1);
}

static address_hash *hash_of_machine(const char *machine, const char *set) {
  machine_spec spec;
  hash_spec wanted;
  address_hash *hash;
  ff_error error;
  check(machine_spec_load(machine, &spec, &error), &error);
  if (set) check(machine_spec_set_all(&spec, set, &error), &error);
  check(machine_spec_hash(&spec, &wanted, &error), &error);
  check(hash_create(&wanted, &hash, &error), &error);
  return hash;
}

static void measure_hash(const char *machine, const char *set) {
  address_hash *hash = hash_of_machine(machine, set);
  double best = 1e9;
  for (int round = 0; round < ROUNDS; round++) {
    uint64_t sum = 0, x = 1;
    double start = seconds();
    for (int i = 0; i < LOOKUPS; i++) {
      hash_place p = hash_of(hash, (x += UINT64_C(0x9e3779b97f4a7c15)) >> 31);
      sum += p.module + p.bank + p.set + p.row;
    }
    double took = seconds() - start;
    sink = sum;
    if (took < best) best = took;
  }
  printf("hash_of     %-8s %-12s %6.2f ns\n", machine, hash_kind_name(hash_spec_of(hash)->kind), best / LOOKUPS * 1e9);
  hash_free(hash);
}

static uint64_t seed = 88172645463325252;
static uint64_t random_below(uint64_t n) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed % n;
}

/* All frames of half the colours, then one given back and taken anew, anywhere: a full memory at work. */
static void measure_frames(const char *machine, uint64_t bytes) {
  address_hash *hash = hash_of_machine(machine, NULL);
  frames *f;
  ff_error error;
  double start = seconds();
  check(frames_create(hash, bytes, FRAME_BYTES, &f, &error), &error);
  uint64_t half = colours_all(frames_colours(f)) >> colours_count(frames_colours(f)) / 2, count = 0, at,
           *taken = malloc(bytes / FRAME_BYTES * sizeof *taken);
  if (!taken) exit(1);
  while (!frames_take(f, half, &at, NULL)) taken[count++] = at;
  double filled = seconds();
  for (int i = 0; i < MOVES; i++) {
    uint64_t which = random_below(count);
    frames_give(f, taken[which], 1);
    check(frames_take(f, half, &taken[which], &error), &error);
  }
  double moved = seconds();
  for (int i = 0; i < MOVES; i++) { /* sixty-four at a time, so that the search has something to find */
    uint64_t first = random_below(count - 64);
    if (i % 64) continue;
    for (uint64_t n = 0; n < 64; n++) frames_give(f, taken[first + n], 1);
    for (uint64_t n = 0; n < 64; n++) check(frames_take(f, half, &taken[first + n], &error), &error);
  }
  printf(
      "frames      %-8s %4llu GiB, half of %2u colours: %5.1f ns to take each; full: %6.1f ns to give one back and take it, %6.1f ns of 64 together\n",
      machine, (unsigned long long)(bytes >> 30), colours_count(frames_colours(f)),
      (filled - start) / (double)count * 1e9, (moved - filled) / MOVES * 1e9, (seconds() - moved) / MOVES * 1e9);
  free(taken);
  frames_free(f);
  hash_free(hash);
}

int main(void) {
  measure_hash("gtx1080", NULL);
  measure_hash("v100", NULL);
  measure_hash("gp100", NULL);
  measure_hash("gtx1080", "address_map=modulo");
  measure_hash("gtx1080", "address_map=polynomial");
  measure_frames("gtx1080", UINT64_C(8) << 30);
  measure_frames("v100", UINT64_C(16) << 30);
  measure_frames("v100", UINT64_C(143) << 30);
  return 0;
}
