/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of weather: columns of moist air with a random share of clouds and rain. The CPU does the same arithmetic
 * in the same order: all that changes is compared bit for bit. */
#include "exact.h"
#include "gpu.h"
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_LEVELS 64

extern const char workload_ptx[];

enum { TEMPERATURE, VAPOUR, CLOUD, RAIN, PRESSURE, DENSITY, PRECIPITATION, FIELDS };

typedef struct weather_fields { /* same as in weather.cu, in the order above */
  gpu_pointer field[FIELDS];
} weather_fields;

typedef struct air {
  unsigned columns, levels;
  float *field[FIELDS]; /* [level][column], precipitation [column] */
} air;

static const float thickness = 500, time_step = 60;

static size_t words_of(const air *a, int field) {
  return (size_t)a->columns * (field == PRECIPITATION ? 1 : a->levels);
}

static void set_level(air *a, size_t i, float height, workload_random *random) {
  float temperature = 300 - 0.0065f * height + workload_random_float(random);
  a->field[TEMPERATURE][i] = temperature;
  a->field[PRESSURE][i] = 100000 * exact_exp(-height / 8000);
  a->field[DENSITY][i] = a->field[PRESSURE][i] / (287 * temperature);
  a->field[VAPOUR][i] = 0.02f * exact_exp(-height / 3000) * (0.7f + 0.6f * workload_random_float(random));
  int cloudy = workload_random_below(random, 2) == 0, rainy = workload_random_below(random, 3) == 0;
  a->field[CLOUD][i] = cloudy ? 0.003f * workload_random_float(random) : 0;
  a->field[RAIN][i] = rainy ? 0.004f * workload_random_float(random) : 0;
}

static air random_air(unsigned columns, unsigned levels) {
  air a = {.columns = columns, .levels = levels};
  workload_random random = {24};
  for (int field = 0; field < FIELDS; field++) a.field[field] = workload_memory(words_of(&a, field), sizeof(float));
  for (unsigned level = 0; level < levels; level++)
    for (unsigned column = 0; column < columns; column++)
      set_level(&a, (size_t)level * columns + column, thickness * ((float)level + 0.5f), &random);
  return a;
}

static float eighth_root(float x) { return sqrtf(sqrtf(sqrtf(x))); }

static float change_level(const air *a, size_t i) {
  float temperature = a->field[TEMPERATURE][i], vapour = a->field[VAPOUR][i], cloud = a->field[CLOUD][i];
  float rain = a->field[RAIN][i], above_cold = temperature - 35.86f;
  float saturated = 610.78f * exact_exp(17.27f * (temperature - 273.16f) / above_cold);
  float most = 0.622f * saturated / (a->field[PRESSURE][i] - saturated);

  float grown = cloud > 0.001f ? 0.001f * time_step * (cloud - 0.001f) : 0;
  if (rain > 0) grown = fmaf(2.2f * time_step * cloud, rain / eighth_root(rain), grown);
  if (grown > cloud) grown = cloud;
  cloud -= grown;
  rain += grown;

  float condensed = (vapour - most) / fmaf(most, 1.0204e7f / (above_cold * above_cold), 1);
  if (condensed < -cloud) condensed = -cloud;
  cloud += condensed;
  vapour -= condensed;

  float dried = vapour < most ? 0.002f * time_step * (1 - vapour / most) * sqrtf(a->field[DENSITY][i] * rain) : 0;
  if (dried > rain) dried = rain;
  a->field[TEMPERATURE][i] = fmaf(2490, condensed - dried, temperature);
  a->field[VAPOUR][i] = vapour + dried;
  a->field[CLOUD][i] = cloud;
  return rain - dried;
}

static void column_on_cpu(air *a, size_t column) {
  float rain[MOST_LEVELS + 1] = {0}, speed[MOST_LEVELS + 1] = {0}, density[MOST_LEVELS + 1] = {0}, fastest = 0;
  for (unsigned level = 0; level < a->levels; level++) {
    size_t i = (size_t)level * a->columns + column;
    density[level] = a->field[DENSITY][i];
    rain[level] = change_level(a, i);
    speed[level] = 14.34f * eighth_root(density[level] * rain[level]) * sqrtf(1.15f / density[level]);
    if (speed[level] > fastest) fastest = speed[level];
  }
  unsigned steps = 1 + (unsigned)(fastest * time_step / thickness);
  float part = time_step / (float)steps, fallen = 0;
  for (unsigned step = 0; step < steps; step++) {
    float below = density[0] * rain[0] * (speed[0] * part);
    fallen += below;
    for (unsigned level = 0; level < a->levels; level++) {
      float coming = density[level + 1] * rain[level + 1] * (speed[level + 1] * part);
      rain[level] += (coming - below) / (density[level] * thickness);
      below = coming;
    }
  }
  for (unsigned level = 0; level < a->levels; level++)
    a->field[RAIN][(size_t)level * a->columns + column] = rain[level];
  a->field[PRECIPITATION][column] += fallen;
}

static void steps_on_gpu(air *a, long steps) {
  gpu_open(workload_ptx);
  gpu_kernel kernel = gpu_find_kernel("weather_columns");
  weather_fields fields;
  for (int i = 0; i < FIELDS; i++) fields.field[i] = gpu_upload(a->field[i], words_of(a, i) * sizeof(float));
  gpu_shape shape = {gpu_divide_up(a->columns, 64), 1, 64, 1};
  float thickness_argument = thickness, time_argument = time_step;
  for (long step = 0; step < steps; step++)
    GPU_LAUNCH(kernel, shape, fields, a->columns, a->levels, thickness_argument, time_argument);
  for (int i = 0; i < FIELDS; i++) {
    gpu_copy_to_host(a->field[i], fields.field[i], words_of(a, i) * sizeof(float));
    gpu_free(fields.field[i]);
  }
  gpu_close();
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {
      {"columns", 8192, 1, 1 << 24}, {"levels", 28, 1, MOST_LEVELS}, {"steps", 2, 0, 100000}};
  workload_arguments(argc, argv, "weather", "warm rain in columns of air", arguments, 3);
  unsigned columns = (unsigned)arguments[0].value, levels = (unsigned)arguments[1].value;
  air expected = random_air(columns, levels), got = random_air(columns, levels);
  workload_cpu_begins();
  for (long step = 0; step < arguments[2].value; step++)
    for (unsigned column = 0; column < columns; column++) column_on_cpu(&expected, column);
  workload_cpu_ends();
  steps_on_gpu(&got, arguments[2].value);

  double fallen = 0;
  for (unsigned column = 0; column < columns; column++) fallen += got.field[PRECIPITATION][column];
  printf("weather: %u columns, %.4f mm of rain\n", columns, fallen / columns);
  size_t wrong = 0, checked = 0;
  for (int i = 0; i < FIELDS; i++) {
    wrong += workload_floats_differ(got.field[i], expected.field[i], words_of(&got, i));
    checked += words_of(&got, i);
    free(got.field[i]), free(expected.field[i]);
  }
  return workload_verdict_exact("weather", checked, wrong);
}
