/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of srad: a number of iterations on a noisy image; the host turns the sums of each into the speckle's
 * strength. The CPU does the same arithmetic in the same order: the image is compared bit for bit. */
#include "gpu.h"
#include "workload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 256
#define TILE 16

extern const char workload_ptx[];

typedef struct problem {
  int width, height;
  size_t cells, blocks;
  float *sums;        /* of every block: the cells, their squares */
  float *differences; /* north, south, west, east */
  float *coefficient;
} problem;

static const float step_length = 0.125f;

/* The variance of the image over the square of its mean. */
static float speckle_of(const problem *p) {
  double sum = 0, squares = 0, cells = (double)p->cells;
  for (size_t block = 0; block < p->blocks; block++) {
    sum += p->sums[2 * block];
    squares += p->sums[2 * block + 1];
  }
  double mean = sum / cells, variance = squares / cells - mean * mean;
  return (float)fmax(variance / (mean * mean), 1e-6);
}

static void sums_on_cpu(const problem *p, const float *image) {
  for (size_t block = 0; block < p->blocks; block++) {
    float sum[THREADS] = {0}, squares[THREADS] = {0};
    for (size_t x = 0; x < THREADS && block * THREADS + x < p->cells; x++) {
      sum[x] = image[block * THREADS + x];
      squares[x] = sum[x] * sum[x];
    }
    for (int half = THREADS / 2; half > 0; half /= 2)
      for (int x = 0; x < half; x++) sum[x] += sum[x + half], squares[x] += squares[x + half];
    p->sums[2 * block] = sum[0];
    p->sums[2 * block + 1] = squares[0];
  }
}

static float coefficient_of(const float *d, float here, float speckle) {
  float slope = fmaf(d[0], d[0], fmaf(d[1], d[1], fmaf(d[2], d[2], d[3] * d[3]))) / (here * here);
  float bend = (d[0] + d[1] + d[2] + d[3]) / here, spread = fmaf(bend, 0.25f, 1);
  float variation = fmaf(bend * bend, -0.0625f, 0.5f * slope) / (spread * spread);
  float value = 1 / (1 + (variation - speckle) / (speckle * (1 + speckle)));
  return value < 0 ? 0 : value > 1 ? 1 : value;
}

static void iterate_on_cpu(problem *p, float *image) {
  sums_on_cpu(p, image);
  float speckle = speckle_of(p);
  int width = p->width, height = p->height;
  for (int y = 0, i = 0; y < height; y++)
    for (int x = 0; x < width; x++, i++) {
      float d[] = {image[y > 0 ? i - width : i] - image[i], image[y < height - 1 ? i + width : i] - image[i],
                   image[x > 0 ? i - 1 : i] - image[i], image[x < width - 1 ? i + 1 : i] - image[i]};
      for (size_t side = 0; side < 4; side++) p->differences[side * p->cells + i] = d[side];
      p->coefficient[i] = coefficient_of(d, image[i], speckle);
    }
  for (int y = 0, i = 0; y < height; y++)
    for (int x = 0; x < width; x++, i++) {
      const float *c = p->coefficient, *d = p->differences + i;
      float below = c[y < height - 1 ? i + width : i], right = c[x < width - 1 ? i + 1 : i];
      float flow = fmaf(below, d[p->cells], c[i] * d[0]);
      flow = fmaf(right, d[3 * p->cells], fmaf(c[i], d[2 * p->cells], flow));
      image[i] = fmaf(step_length, flow, image[i]);
    }
}

static void iterate_on_gpu(problem *p, float *image, long iterations) {
  size_t bytes = p->cells * sizeof(float), sum_bytes = 2 * p->blocks * sizeof(float);
  gpu_open(workload_ptx);
  gpu_kernel add = gpu_find_kernel("srad_sums"), find = gpu_find_kernel("srad_coefficients"),
             update = gpu_find_kernel("srad_update");
  gpu_pointer device_image = gpu_upload(image, bytes), sums = gpu_allocate(sum_bytes),
              differences = gpu_allocate(4 * bytes), coefficient = gpu_allocate(bytes);
  gpu_shape row = {(unsigned)p->blocks, 1, THREADS, 1},
            tiles = {gpu_divide_up((uint64_t)p->width, TILE), gpu_divide_up((uint64_t)p->height, TILE), TILE, TILE};
  unsigned cells = (unsigned)p->cells;
  float step = step_length;
  for (long i = 0; i < iterations; i++) {
    GPU_LAUNCH(add, row, device_image, cells, sums);
    gpu_copy_to_host(p->sums, sums, sum_bytes);
    float speckle = speckle_of(p);
    GPU_LAUNCH(find, tiles, device_image, differences, coefficient, p->width, p->height, speckle);
    GPU_LAUNCH(update, tiles, device_image, differences, coefficient, p->width, p->height, step);
  }
  gpu_copy_to_host(image, device_image, bytes);
  gpu_free(device_image), gpu_free(sums), gpu_free(differences), gpu_free(coefficient);
  gpu_close();
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"width", 512, 1, 16384}, {"height", 512, 1, 16384}, {"iterations", 2, 0, 100000}};
  workload_arguments(argc, argv, "srad", "speckle-reducing anisotropic diffusion of an image", arguments, 3);
  problem p = {.width = (int)arguments[0].value, .height = (int)arguments[1].value};
  p.cells = (size_t)p.width * p.height;
  p.blocks = gpu_divide_up(p.cells, THREADS);
  p.sums = workload_memory(2 * p.blocks, sizeof(float));
  p.differences = workload_memory(4 * p.cells, sizeof(float));
  p.coefficient = workload_memory(p.cells, sizeof(float));
  workload_random random = {14};
  float *image = workload_random_floats(&random, p.cells, 1, 1), *expected = workload_memory(p.cells, sizeof *expected);
  memcpy(expected, image, p.cells * sizeof *image);
  workload_cpu_begins();
  for (long i = 0; i < arguments[2].value; i++) iterate_on_cpu(&p, expected);
  workload_cpu_ends();
  iterate_on_gpu(&p, image, arguments[2].value);

  size_t wrong = workload_floats_differ(image, expected, p.cells);
  free(p.sums), free(p.differences), free(p.coefficient), free(image), free(expected);
  return workload_verdict_exact("srad", p.cells, wrong);
}
