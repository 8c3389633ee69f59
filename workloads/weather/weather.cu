/* SPDX-License-Identifier: Apache-2.0 */
/* Warm rain in columns of air: a long thread per column, over six arrays [level][column], level 0 at the ground. First
 * every level for itself: cloud becomes rain, vapour becomes cloud or cloud vapour, rain dries up, and the heat of it.
 * Then rain falls through the levels in as many small steps as the fastest needs, which differs from lane to lane. */
#include "device.h"
#include "exact.h"

#define MOST_LEVELS 64

struct weather_fields { /* same as in weather.c */
  float *temperature, *vapour, *cloud, *rain;
  const float *pressure, *density;
  float *precipitation;
};

static __device__ __forceinline__ float eighth_root(float x) { return sqrtf(sqrtf(sqrtf(x))); }

/* One level over that many seconds; returns its rain. */
static __device__ __forceinline__ float change_level(weather_fields air, unsigned i, float seconds) {
  float temperature = air.temperature[i], vapour = air.vapour[i], cloud = air.cloud[i], rain = air.rain[i];
  float above_cold = temperature - 35.86f;
  float saturated = __fmul_rn(610.78f, exact_exp(17.27f * (temperature - 273.16f) / above_cold));
  float most = 0.622f * saturated / (air.pressure[i] - saturated);

  float grown = cloud > 0.001f ? __fmul_rn(0.001f * seconds, cloud - 0.001f) : 0;
  if (rain > 0) grown = fmaf(2.2f * seconds * cloud, rain / eighth_root(rain), grown);
  if (grown > cloud) grown = cloud;
  cloud -= grown;
  rain += grown;

  float condensed = (vapour - most) / fmaf(most, 1.0204e7f / (above_cold * above_cold), 1.0f);
  if (condensed < -cloud) condensed = -cloud;
  cloud += condensed;
  vapour -= condensed;

  float dried = vapour < most ? __fmul_rn(0.002f * seconds * (1.0f - vapour / most), sqrtf(air.density[i] * rain)) : 0;
  if (dried > rain) dried = rain;
  air.temperature[i] = fmaf(2490.0f, condensed - dried, temperature);
  air.vapour[i] = vapour + dried;
  air.cloud[i] = cloud;
  return rain - dried;
}

extern "C" __global__ void weather_columns(weather_fields air, unsigned columns, unsigned levels, float thickness,
                                           float seconds) {
  unsigned column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  float rain[MOST_LEVELS + 1], speed[MOST_LEVELS + 1], fastest = 0;
  rain[levels] = speed[levels] = 0;
  for (unsigned level = 0; level < levels; level++) {
    unsigned i = level * columns + column;
    float density = air.density[i];
    rain[level] = change_level(air, i, seconds);
    speed[level] = 14.34f * eighth_root(density * rain[level]) * sqrtf(1.15f / density);
    if (speed[level] > fastest) fastest = speed[level];
  }

  unsigned steps = 1 + (unsigned)(fastest * seconds / thickness);
  float part = seconds / (float)steps, fallen = 0;
  for (unsigned step = 0; step < steps; step++) {
    float below = __fmul_rn(air.density[column] * rain[0], speed[0] * part); /* kg/m^2 that leave the level */
    fallen += below;
    for (unsigned level = 0; level < levels; level++) {
      float here = air.density[level * columns + column];
      float above = level + 1 < levels ? air.density[(level + 1) * columns + column] : 0;
      float coming = __fmul_rn(above * rain[level + 1], speed[level + 1] * part);
      rain[level] += (coming - below) / (here * thickness);
      below = coming;
    }
  }
  for (unsigned level = 0; level < levels; level++) air.rain[level * columns + column] = rain[level];
  air.precipitation[column] += fallen;
}
