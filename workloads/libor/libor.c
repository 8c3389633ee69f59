/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of libor: as many rates after the last maturity as before it. The CPU does the same arithmetic in the same
 * order: prices and curves are compared bit for bit. */
#include "exact.h"
#include "gpu.h"
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>

#define MOST_RATES 80

extern const char workload_ptx[];

typedef struct libor_market { /* same as in libor.cu */
  unsigned maturities, rates;
  float interval, root_of_interval, strike, start;
  float volatility[MOST_RATES];
} libor_market;

typedef struct results {
  float *curves, *values;
} results;

static float path_on_cpu(const libor_market *m, const float *normals, size_t paths, float *rate) {
  for (unsigned i = 0; i < m->rates; i++) rate[i] = m->start;
  for (unsigned now = 0; now < m->maturities; now++) {
    float drift = 0, shock = m->root_of_interval * normals[now * paths];
    for (unsigned i = now + 1; i < m->rates; i++) {
      float volatility = m->volatility[i - now - 1], scaled = m->interval * volatility;
      drift += scaled * rate[i] / fmaf(m->interval, rate[i], 1);
      rate[i] *= exact_exp(fmaf(scaled, drift, volatility * fmaf(-0.5f, scaled, shock)));
    }
  }
  float bond = 1, annuity = 0, value = 0;
  for (unsigned i = m->maturities; i < m->rates; i++) {
    bond /= fmaf(m->interval, rate[i], 1);
    annuity = fmaf(m->interval, bond, annuity);
    float loss = fmaf(m->strike, annuity, bond) - 1;
    if (loss < 0) value = fmaf(-100, loss, value);
  }
  for (unsigned i = 0; i < m->maturities; i++) value /= fmaf(m->interval, rate[i], 1);
  return value;
}

static void paths_on_cpu(const libor_market *m, const float *normals, size_t paths, results to) {
  float rate[MOST_RATES];
  for (size_t path = 0; path < paths; path++) {
    to.values[path] = path_on_cpu(m, normals + path, paths, rate);
    for (unsigned i = 0; i < m->rates; i++) to.curves[i * paths + path] = rate[i];
  }
}

static void paths_on_gpu(const libor_market *m, const float *normals, unsigned paths, results to) {
  size_t column = paths * sizeof(float);
  gpu_open(workload_ptx);
  gpu_copy_to_device(gpu_find_variable("market"), m, sizeof *m);
  gpu_pointer device_normals = gpu_upload(normals, m->maturities * column), curves = gpu_allocate(m->rates * column),
              values = gpu_allocate(column);
  gpu_shape shape = {gpu_divide_up(paths, 64), 1, 64, 1};
  GPU_LAUNCH(gpu_find_kernel("libor_paths"), shape, device_normals, curves, values, paths);
  gpu_copy_to_host(to.curves, curves, m->rates * column);
  gpu_copy_to_host(to.values, values, column);
  gpu_free(device_normals), gpu_free(curves), gpu_free(values);
  gpu_close();
}

static results allocate_results(size_t curve_words, size_t paths) {
  return (results){workload_memory(curve_words, sizeof(float)), workload_memory(paths, sizeof(float))};
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"paths", 8192, 1, 1 << 24}, {"maturities", 20, 1, MOST_RATES / 2}};
  workload_arguments(argc, argv, "libor", "Monte Carlo paths of the LIBOR market model", arguments, 2);
  size_t paths = (size_t)arguments[0].value;
  libor_market m = {.interval = 0.25f, .root_of_interval = 0.5f, .strike = 0.045f, .start = 0.05f};
  m.maturities = (unsigned)arguments[1].value;
  m.rates = 2 * m.maturities;
  for (unsigned i = 0; i < m.rates; i++) m.volatility[i] = 0.3f - 0.002f * (float)i;
  workload_random random = {19};
  float *normals = workload_random_floats(&random, paths * m.maturities, 0, 1);
  for (size_t i = 0; i < paths * m.maturities; i++) /* four uniform numbers: nearly normal, variance 1 */
    for (int more = 0; more < 4; more++)
      normals[i] = more < 3 ? normals[i] + workload_random_float(&random) : 1.7320508f * (normals[i] - 2);
  results expected = allocate_results(paths * m.rates, paths), got = allocate_results(paths * m.rates, paths);
  workload_cpu_begins();
  paths_on_cpu(&m, normals, paths, expected);
  workload_cpu_ends();
  paths_on_gpu(&m, normals, (unsigned)paths, got);

  double sum = 0;
  for (size_t i = 0; i < paths; i++) sum += got.values[i];
  printf("libor: %zu paths, mean value %.4f\n", paths, sum / (double)paths);
  size_t wrong = workload_floats_differ(got.curves, expected.curves, paths * m.rates) +
                 workload_floats_differ(got.values, expected.values, paths);
  free(normals), free(expected.curves), free(expected.values), free(got.curves), free(got.values);
  return workload_verdict_exact("libor", paths * (m.rates + 1), wrong);
}
