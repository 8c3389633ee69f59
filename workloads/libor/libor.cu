/* SPDX-License-Identifier: Apache-2.0 */
/* Monte Carlo paths of the LIBOR market model: a thread moves a curve of forward rates through time, one normal number
 * per maturity, and prices a book of swaptions at the end. The curve is an array of the thread's own (local memory);
 * normal numbers and resulting curves lie path next to path. */
#include "device.h"
#include "exact.h"

#define MOST_RATES 80

struct libor_market { /* same as in libor.c */
  unsigned maturities, rates;
  float interval, root_of_interval, strike, start;
  float volatility[MOST_RATES];
};

extern "C" {
__constant__ libor_market market;
}

/* Rate i + 1 .. rates - 1 over the time from maturity `now` to the next. */
static __device__ __forceinline__ void move_curve(float *rate, unsigned now, float normal) {
  float drift = 0, shock = market.root_of_interval * normal;
  for (unsigned i = now + 1; i < market.rates; i++) {
    float volatility = market.volatility[i - now - 1], scaled = market.interval * volatility;
    drift += scaled * rate[i] / fmaf(market.interval, rate[i], 1.0f);
    rate[i] *= exact_exp(fmaf(scaled, drift, volatility * fmaf(-0.5f, scaled, shock)));
  }
}

extern "C" __global__ void libor_paths(const float *normals, float *curves, float *values, unsigned paths) {
  unsigned path = blockIdx.x * blockDim.x + threadIdx.x;
  if (path >= paths) return;
  float rate[MOST_RATES];
  for (unsigned i = 0; i < market.rates; i++) rate[i] = market.start;
  for (unsigned now = 0; now < market.maturities; now++) move_curve(rate, now, normals[now * paths + path]);

  float bond = 1, annuity = 0, value = 0;
  for (unsigned i = market.maturities; i < market.rates; i++) {
    bond /= fmaf(market.interval, rate[i], 1.0f);
    annuity = fmaf(market.interval, bond, annuity);
    float loss = fmaf(market.strike, annuity, bond) - 1.0f; /* of the swap that ends here */
    if (loss < 0) value = fmaf(-100.0f, loss, value);
  }
  for (unsigned i = 0; i < market.maturities; i++) value /= fmaf(market.interval, rate[i], 1.0f);
  for (unsigned i = 0; i < market.rates; i++) curves[i * paths + path] = rate[i];
  values[path] = value;
}
