/* SPDX-License-Identifier: Apache-2.0 */
/* Monte Carlo paths of the LIBOR market model with sensitivities: forward, a thread moves a curve of forward rates through time and prices swaptions;
 * backward, the adjoint of each step gives the derivative of the price by every rate of the first curve. The curve L, its adjoint L_b and the curves
 * on the way lie in global memory, path next to path, so that a warp's accesses are side by side; rates and maturities are parameters, so that the
 * loops' trips are known before they start, and only then.
 *
 * Each product is an operand of a fused multiply-add or is rounded by itself, in a fixed order: the host compares bit for bit. */
#include "device.h"
#include "exact.h"

#define INTERVAL 0.25f /* years from one maturity to the next; same as in greeks.c */
#define STRIKE 0.045f

/* Of the rate that matures so many intervals from now on. */
static __device__ __forceinline__ float volatility_of(unsigned from_now) { return fmaf(-0.002f, (float)from_now, 0.3f); }

/* past[now][i]: rate i before the step from maturity `now` to the next. */
extern "C" __global__ void greeks_forward(const float *normals, float *L, float *past, unsigned paths, unsigned maturities, unsigned rates) {
  unsigned path = blockIdx.x * blockDim.x + threadIdx.x;
  if (path >= paths) return;
  for (unsigned now = 0; now < maturities; now++) {
    float drift = 0, shock = 0.5f * normals[now * paths + path];
    float *rate = L + path, *kept = past + (unsigned long long)now * rates * paths + path;
#pragma unroll 1
    for (unsigned i = now + 1; i < rates; i++) {
      float volatility = volatility_of(i - now - 1), scaled = INTERVAL * volatility, before = rate[i * paths];
      kept[i * paths] = before;
      drift = fmaf(scaled, before / fmaf(INTERVAL, before, 1.0f), drift);
      rate[i * paths] = before * exact_exp(fmaf(scaled, drift, volatility * fmaf(-0.5f, scaled, shock)));
    }
  }
}

/* values[path]: of swaptions that begin at the last maturity and end at each later rate, today. L_b[n]: its derivative by the final L[n]. */
extern "C" __global__ void greeks_price(const float *L, float *L_b, float *values, unsigned paths, unsigned maturities, unsigned rates) {
  unsigned path = blockIdx.x * blockDim.x + threadIdx.x;
  if (path >= paths) return;
  L += path, L_b += path;
  float bond = 1, annuity = 0, value = 0;
#pragma unroll 1
  for (unsigned n = maturities; n < rates; n++) {
    bond /= fmaf(INTERVAL, L[n * paths], 1.0f);
    annuity = fmaf(INTERVAL, bond, annuity);
    float loss = fmaf(STRIKE, annuity, bond) - 1.0f;
    value = fmaf(-100.0f, loss < 0 ? loss : 0.0f, value);
  }
  float discount = 1;
#pragma unroll 1
  for (unsigned n = 0; n < maturities; n++) discount /= fmaf(INTERVAL, L[n * paths], 1.0f);
  value *= discount;
  values[path] = value;

#pragma unroll 1
  for (unsigned n = 0; n < maturities; n++) L_b[n * paths] = -value * INTERVAL / fmaf(INTERVAL, L[n * paths], 1.0f);
  float bond_b = 0, annuity_b = 0, each = -100.0f * discount;
#pragma unroll 1
  for (unsigned n = rates - 1; n >= maturities; n--) {
    float growth = fmaf(INTERVAL, L[n * paths], 1.0f), loss = fmaf(STRIKE, annuity, bond) - 1.0f, mine = loss < 0 ? each : 0.0f;
    annuity_b = fmaf(STRIKE, mine, annuity_b);
    bond_b = fmaf(INTERVAL, annuity_b, bond_b + mine);
    L_b[n * paths] = -bond_b * bond * INTERVAL / growth;
    annuity = fmaf(-INTERVAL, bond, annuity);
    bond_b /= growth;
    bond *= growth;
  }
}

/* L_b: from derivatives by the final curve to derivatives by the first one. L goes back, too. */
extern "C" __global__ void greeks_backward(float *L, const float *past, float *L_b, unsigned paths, unsigned maturities, unsigned rates) {
  unsigned path = blockIdx.x * blockDim.x + threadIdx.x;
  if (path >= paths) return;
  for (unsigned now = maturities; now-- > 0;) {
    float drift_b = 0;
    float *rate = L + path, *rate_b = L_b + path;
    const float *kept = past + (unsigned long long)now * rates * paths + path;
#pragma unroll 1
    for (unsigned i = rates - 1; i > now; i--) {
      float scaled = INTERVAL * volatility_of(i - now - 1), before = kept[i * paths], after = rate[i * paths], b = rate_b[i * paths];
      float growth = fmaf(INTERVAL, before, 1.0f);
      drift_b = fmaf(scaled, b * after, drift_b); /* of the exponent, whose derivative is the rate itself */
      rate_b[i * paths] = fmaf(b, after / before, drift_b * scaled / (growth * growth));
      rate[i * paths] = before;
    }
  }
}
