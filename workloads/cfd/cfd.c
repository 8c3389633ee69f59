/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of cfd: a sheet of cells, each with four neighbours, numbered at random within windows of 1024, as a mesh
 * generator leaves them. The CPU does the same arithmetic in the same order: states are compared bit for bit. */
#include "gpu.h"
#include "workload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define QUANTITIES 5
#define FACES 4
#define STAGES 3
#define WINDOW 1024

extern const char workload_ptx[];

typedef struct mesh { /* arrays as in cfd.cu */
  size_t cells;
  int *neighbour;
  float *normal, *volume, *states;
} mesh;

/* Which number the cell has that is i-th by place. */
static int *random_numbers(size_t cells, workload_random *random) {
  int *number = workload_memory(cells, sizeof *number);
  for (size_t i = 0; i < cells; i++) {
    size_t first = i / WINDOW * WINDOW, k = first + workload_random_below(random, (uint32_t)(i - first + 1));
    number[i] = number[k];
    number[k] = (int)i;
  }
  return number;
}

static mesh random_mesh(int width, int height) {
  workload_random random = {25};
  size_t cells = (size_t)width * (size_t)height;
  mesh m = {.cells = cells, .neighbour = workload_memory(FACES * cells, sizeof(int))};
  m.normal = workload_random_floats(&random, 3 * FACES * cells, -0.05f, 0.1f);
  m.volume = workload_random_floats(&random, cells, 1, 0.5f);
  m.states = workload_random_floats(&random, QUANTITIES * cells, -0.05f, 0.1f);
  int *number = random_numbers(cells, &random);
  for (int y = 0, i = 0; y < height; y++)
    for (int x = 0; x < width; x++, i++) {
      size_t cell = (size_t)number[i];
      int beyond[FACES] = {x > 0 ? i - 1 : -1, x < width - 1 ? i + 1 : -1, y > 0 ? i - width : -1,
                           y < height - 1 ? i + width : -1};
      for (size_t face = 0; face < FACES; face++) {
        m.neighbour[face * cells + cell] = beyond[face] < 0 ? -1 : number[beyond[face]];
        m.normal[(3 * face + face / 2) * cells + cell] += face % 2 ? 1 : -1;
      }
      m.states[cell] += 1;
      m.states[4 * cells + cell] += 2.5f;
    }
  free(number);
  return m;
}

static float dot(const float *a, const float *b) { return fmaf(a[0], b[0], fmaf(a[1], b[1], a[2] * b[2])); }

static void load_state(const mesh *m, size_t i, float *state) {
  for (size_t k = 0; k < QUANTITIES; k++) state[k] = m->states[k * m->cells + i];
}

static float pressure_of(const float *s) { return 0.4f * fmaf(-0.5f / s[0], dot(s + 1, s + 1), s[4]); }

/* Returns the speed of the fastest wave. */
static float flux_of(const float *s, const float *normal, float length, float *through) {
  float pressure = pressure_of(s), speed = dot(s + 1, normal) / s[0];
  through[0] = s[0] * speed;
  for (int axis = 0; axis < 3; axis++) through[1 + axis] = fmaf(s[1 + axis], speed, pressure * normal[axis]);
  through[4] = (s[4] + pressure) * speed;
  return fmaf(sqrtf(1.4f * pressure / s[0]), length, fabsf(speed));
}

static void add_face(const mesh *m, size_t i, size_t face, const float *here, float *sum) {
  const float *at = m->normal + 3 * face * m->cells + i;
  float n[3] = {at[0], at[m->cells], at[2 * m->cells]}, length = sqrtf(dot(n, n));
  float there[QUANTITIES], a[QUANTITIES], b[QUANTITIES];
  int other = m->neighbour[face * m->cells + i];
  if (other < 0) {
    for (int axis = 0; axis < 3; axis++) sum[1 + axis] = fmaf(-pressure_of(here), n[axis], sum[1 + axis]);
    return;
  }
  load_state(m, (size_t)other, there);
  float half_wave = 0.5f * fmaxf(flux_of(here, n, length, a), flux_of(there, n, length, b));
  for (int k = 0; k < QUANTITIES; k++) sum[k] = fmaf(half_wave, there[k] - here[k], fmaf(-0.5f, a[k] + b[k], sum[k]));
}

static void step_on_cpu(mesh *m, float *old, float *fluxes, float *factor) {
  float here[QUANTITIES];
  memcpy(old, m->states, QUANTITIES * m->cells * sizeof *old);
  for (size_t i = 0; i < m->cells; i++) {
    load_state(m, i, here);
    float sound = sqrtf(1.4f * pressure_of(here) / here[0]), speed = sqrtf(dot(here + 1, here + 1)) / here[0];
    factor[i] = 0.2f / (sqrtf(m->volume[i]) * (sound + speed));
  }
  for (int stage = 0; stage < STAGES; stage++) {
    for (size_t i = 0; i < m->cells; i++) {
      float sum[QUANTITIES] = {0};
      load_state(m, i, here);
      for (size_t face = 0; face < FACES; face++) add_face(m, i, face, here, sum);
      for (size_t k = 0; k < QUANTITIES; k++) fluxes[k * m->cells + i] = sum[k];
    }
    for (size_t at = 0; at < QUANTITIES * m->cells; at++)
      m->states[at] = fmaf(factor[at % m->cells] * (1.0f / (float)(STAGES - stage)), fluxes[at], old[at]);
  }
}

static void steps_on_gpu(const mesh *m, float *result, long steps) {
  size_t column = m->cells * sizeof(float);
  unsigned cells = (unsigned)m->cells;
  gpu_open(workload_ptx);
  gpu_kernel start = gpu_find_kernel("cfd_start"), find = gpu_find_kernel("cfd_fluxes"),
             update = gpu_find_kernel("cfd_update");
  gpu_pointer states = gpu_upload(m->states, QUANTITIES * column), neighbour = gpu_upload(m->neighbour, FACES * column),
              normal = gpu_upload(m->normal, 3 * FACES * column), volume = gpu_upload(m->volume, column);
  gpu_pointer old = gpu_allocate(QUANTITIES * column), fluxes = gpu_allocate(QUANTITIES * column),
              factor = gpu_allocate(column);
  gpu_shape shape = {gpu_divide_up(cells, 192), 1, 192, 1};
  for (long step = 0; step < steps; step++) {
    GPU_LAUNCH(start, shape, states, old, factor, volume, cells);
    for (int stage = 0; stage < STAGES; stage++) {
      float part = 1.0f / (float)(STAGES - stage);
      GPU_LAUNCH(find, shape, states, neighbour, normal, fluxes, cells);
      GPU_LAUNCH(update, shape, states, old, factor, fluxes, cells, part);
    }
  }
  gpu_copy_to_host(result, states, QUANTITIES * column);
  gpu_free(states), gpu_free(neighbour), gpu_free(normal), gpu_free(volume);
  gpu_free(old), gpu_free(fluxes), gpu_free(factor);
  gpu_close();
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"width", 256, 1, 8192}, {"height", 128, 1, 8192}, {"steps", 2, 0, 100000}};
  workload_arguments(argc, argv, "cfd", "a gas on an unstructured mesh", arguments, 3);
  mesh m = random_mesh((int)arguments[0].value, (int)arguments[1].value);
  size_t words = QUANTITIES * m.cells;
  float *got = workload_memory(words, sizeof *got), *old = workload_memory(words, sizeof *old),
        *fluxes = workload_memory(words, sizeof *fluxes), *factor = workload_memory(m.cells, sizeof *factor);
  steps_on_gpu(&m, got, arguments[2].value);
  workload_cpu_begins();
  for (long step = 0; step < arguments[2].value; step++) step_on_cpu(&m, old, fluxes, factor);
  workload_cpu_ends();

  size_t wrong = workload_floats_differ(got, m.states, words);
  for (size_t i = 0; i < words; i++) wrong += isnan(m.states[i]) != 0;
  free(m.neighbour), free(m.normal), free(m.volume), free(m.states), free(got), free(old), free(fluxes), free(factor);
  return workload_verdict_exact("cfd", words, wrong);
}
