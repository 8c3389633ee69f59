/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of probes: the keys come from the host, nothing of the table does. */
#include "gpu.h"
#include "workload.h"

#include <stdlib.h>

extern const char workload_ptx[];

static uint64_t mixed(uint64_t x) { /* same as in probes.cu */
  x = (x ^ x >> 33) * UINT64_C(0xff51afd7ed558ccd);
  x = (x ^ x >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
  return x ^ x >> 33;
}

static void probe_on_cpu(const unsigned *keys, uint64_t words, unsigned threads, unsigned each, uint64_t *sums) {
  for (unsigned thread = 0; thread < threads; thread++)
    for (unsigned i = 0; i < each; i++) sums[thread] += mixed(~(mixed(keys[i * threads + thread]) % words));
}

static void probe_on_gpu(const unsigned *keys, uint64_t words, unsigned threads, unsigned each, uint64_t *sums) {
  unsigned probes = threads * each;
  gpu_open(workload_ptx);
  gpu_pointer device_keys = gpu_upload(keys, probes * sizeof *keys);
  gpu_pointer table = gpu_allocate(words * sizeof(uint64_t)), out = gpu_allocate(threads * sizeof(uint64_t));
  gpu_shape all = {gpu_divide_up(probes, 128), 1, 128, 1}, shape = {gpu_divide_up(threads, 128), 1, 128, 1};
  GPU_LAUNCH(gpu_find_kernel("insert"), all, device_keys, table, words, probes);
  GPU_LAUNCH(gpu_find_kernel("probe"), shape, device_keys, table, words, threads, each, out);
  gpu_copy_to_host(sums, out, threads * sizeof(uint64_t));
  gpu_free(device_keys), gpu_free(table), gpu_free(out);
  gpu_close();
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"megabytes", 256, 1, 1 << 16}, {"threads", 1024, 1, 1 << 20}, {"each", 8, 1, 64}};
  workload_arguments(argc, argv, "probes", "reads words of a large table at places that nothing foresees", arguments, 3);
  uint64_t words = ((uint64_t)arguments[0].value << 20) / sizeof(uint64_t);
  unsigned threads = (unsigned)arguments[1].value, each = (unsigned)arguments[2].value;
  uint64_t *expected = workload_memory(threads, sizeof *expected), *got = workload_memory(threads, sizeof *got);
  workload_random random = {47};
  unsigned *keys = workload_memory((size_t)threads * each, sizeof *keys);
  for (size_t i = 0; i < (size_t)threads * each; i++) keys[i] = workload_random_u32(&random);
  workload_cpu_begins();
  probe_on_cpu(keys, words, threads, each, expected);
  workload_cpu_ends();
  probe_on_gpu(keys, words, threads, each, got);
  size_t wrong = 0;
  for (unsigned i = 0; i < threads; i++) wrong += got[i] != expected[i];
  free(keys), free(expected), free(got);
  return workload_verdict_exact("probes", threads, wrong);
}
