/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of greeks: twice as many rates as maturities. The CPU does the same arithmetic in the same order: prices and sensitivities are compared bit
 * for bit. That the adjoint is the derivative is shown by the difference of prices for shifted first curves. */
#include "exact.h"
#include "gpu.h"
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_RATES 80
#define INTERVAL 0.25f /* as in greeks.cu */
#define STRIKE 0.045f
#define START 0.05f /* all rates of the first curve */

extern const char workload_ptx[];

typedef struct problem {
  unsigned paths, maturities, rates;
  const float *normals; /* normals[maturity * paths + path] */
} problem;

typedef struct results { /* sensitivities[rate * paths + path] */
  float *sensitivities, *values;
} results;

typedef struct curves { /* of one path */
  float now[MOST_RATES], adjoint[MOST_RATES], past[MOST_RATES / 2][MOST_RATES];
} curves;

static float volatility_of(unsigned from_now) { return fmaf(-0.002f, (float)from_now, 0.3f); }

static void forward_on_cpu(const problem *p, unsigned path, float start, curves *c) {
  for (unsigned i = 0; i < p->rates; i++) c->now[i] = start;
  for (unsigned now = 0; now < p->maturities; now++) {
    float drift = 0, shock = 0.5f * p->normals[(size_t)now * p->paths + path];
    for (unsigned i = now + 1; i < p->rates; i++) {
      float volatility = volatility_of(i - now - 1), scaled = INTERVAL * volatility, before = c->now[i];
      c->past[now][i] = before;
      drift = fmaf(scaled, before / fmaf(INTERVAL, before, 1), drift);
      c->now[i] = before * exact_exp(fmaf(scaled, drift, volatility * fmaf(-0.5f, scaled, shock)));
    }
  }
}

static float price_on_cpu(const problem *p, curves *c) {
  float bond = 1, annuity = 0, value = 0, discount = 1;
  for (unsigned n = p->maturities; n < p->rates; n++) {
    bond /= fmaf(INTERVAL, c->now[n], 1);
    annuity = fmaf(INTERVAL, bond, annuity);
    float loss = fmaf(STRIKE, annuity, bond) - 1;
    value = fmaf(-100, loss < 0 ? loss : 0, value);
  }
  for (unsigned n = 0; n < p->maturities; n++) discount /= fmaf(INTERVAL, c->now[n], 1);
  value *= discount;
  for (unsigned n = 0; n < p->maturities; n++) c->adjoint[n] = -value * INTERVAL / fmaf(INTERVAL, c->now[n], 1);
  float bond_b = 0, annuity_b = 0, each = -100 * discount;
  for (unsigned n = p->rates - 1; n >= p->maturities; n--) {
    float growth = fmaf(INTERVAL, c->now[n], 1), loss = fmaf(STRIKE, annuity, bond) - 1, mine = loss < 0 ? each : 0;
    annuity_b = fmaf(STRIKE, mine, annuity_b);
    bond_b = fmaf(INTERVAL, annuity_b, bond_b + mine);
    c->adjoint[n] = -bond_b * bond * INTERVAL / growth;
    annuity = fmaf(-INTERVAL, bond, annuity);
    bond_b /= growth;
    bond *= growth;
  }
  return value;
}

static void backward_on_cpu(const problem *p, curves *c) {
  for (unsigned now = p->maturities; now-- > 0;) {
    float drift_b = 0;
    for (unsigned i = p->rates - 1; i > now; i--) {
      float scaled = INTERVAL * volatility_of(i - now - 1), before = c->past[now][i], after = c->now[i], b = c->adjoint[i];
      float growth = fmaf(INTERVAL, before, 1);
      drift_b = fmaf(scaled, b * after, drift_b);
      c->adjoint[i] = fmaf(b, after / before, drift_b * scaled / (growth * growth));
      c->now[i] = before;
    }
  }
}

/* Prices, sensitivities, and (of some paths) how much their mean falls or rises with the whole first curve, both ways. */
static void paths_on_cpu(const problem *p, results to) {
  curves *c = workload_memory(1, sizeof *c);
  double by_adjoint = 0, by_difference = 0, shift = 1e-3;
  for (unsigned path = 0; path < p->paths; path++) {
    forward_on_cpu(p, path, START, c);
    to.values[path] = price_on_cpu(p, c);
    backward_on_cpu(p, c);
    for (unsigned i = 0; i < p->rates; i++) to.sensitivities[(size_t)i * p->paths + path] = c->adjoint[i];
    if (path >= 256) continue;
    for (unsigned i = 0; i < p->rates; i++) by_adjoint += c->adjoint[i];
    for (int side = -1; side <= 1; side += 2) {
      forward_on_cpu(p, path, START + (float)side * (float)shift, c);
      by_difference += (float)side * price_on_cpu(p, c) / (2 * shift);
    }
  }
  printf("greeks: the whole curve's sensitivity, of %u paths, by the adjoint %.5g, by differences %.5g\n", p->paths < 256 ? p->paths : 256, by_adjoint, by_difference);
  free(c);
}

static void paths_on_gpu(const problem *p, results to) {
  size_t column = p->paths * sizeof(float);
  gpu_open(workload_ptx);
  gpu_kernel forward = gpu_find_kernel("greeks_forward"), price = gpu_find_kernel("greeks_price"), backward = gpu_find_kernel("greeks_backward");
  gpu_pointer normals = gpu_upload(p->normals, p->maturities * column), L = gpu_allocate(p->rates * column), L_b = gpu_allocate(p->rates * column);
  gpu_pointer past = gpu_allocate(p->maturities * p->rates * column), values = gpu_allocate(column);
  uint32_t start;
  memcpy(&start, &(float){START}, sizeof start);
  gpu_set_words(L, start, (size_t)p->rates * p->paths);
  gpu_shape shape = {gpu_divide_up(p->paths, 64), 1, 64, 1};
  unsigned paths = p->paths, maturities = p->maturities, rates = p->rates;
  GPU_LAUNCH(forward, shape, normals, L, past, paths, maturities, rates);
  GPU_LAUNCH(price, shape, L, L_b, values, paths, maturities, rates);
  GPU_LAUNCH(backward, shape, L, past, L_b, paths, maturities, rates);
  gpu_copy_to_host(to.sensitivities, L_b, rates * column);
  gpu_copy_to_host(to.values, values, column);
  gpu_free(normals), gpu_free(L), gpu_free(L_b), gpu_free(past), gpu_free(values);
  gpu_close();
}

static results allocate_results(const problem *p) {
  return (results){workload_memory((size_t)p->rates * p->paths, sizeof(float)), workload_memory(p->paths, sizeof(float))};
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"paths", 8192, 1, 1 << 24}, {"maturities", 12, 1, MOST_RATES / 2}};
  workload_arguments(argc, argv, "greeks", "LIBOR market model: prices and their sensitivities to each rate", arguments, 2);
  problem p = {(unsigned)arguments[0].value, (unsigned)arguments[1].value, 2 * (unsigned)arguments[1].value, NULL};
  size_t count = (size_t)p.paths * p.maturities;
  workload_random random = {23};
  float *normals = workload_random_floats(&random, count, -1.5f, 3); /* flat, about as wide as a normal one */
  p.normals = normals;
  results expected = allocate_results(&p), got = allocate_results(&p);
  workload_cpu_begins();
  paths_on_cpu(&p, expected);
  workload_cpu_ends();
  paths_on_gpu(&p, got);

  double sum = 0;
  for (size_t i = 0; i < p.paths; i++) sum += got.values[i];
  printf("greeks: %u paths, mean value %.4f\n", p.paths, sum / p.paths);
  size_t words = (size_t)p.paths * p.rates;
  size_t wrong = workload_floats_differ(got.sensitivities, expected.sensitivities, words) + workload_floats_differ(got.values, expected.values, p.paths);
  free(normals), free(expected.sensitivities), free(expected.values), free(got.sensitivities), free(got.values);
  return workload_verdict_exact("greeks", words + p.paths, wrong);
}
