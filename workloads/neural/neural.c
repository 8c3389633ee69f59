/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of neural: random weights and images. The CPU does the same arithmetic in the same order: the ten outputs
 * of every image, and the maps between, are compared bit for bit. */
#include "gpu.h"
#include "workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define KERNEL 5
#define LAYERS 4

extern const char workload_ptx[];

/* What each layer reads and makes: maps of side x side. A dense layer reads and makes maps of one cell. */
static const struct layer {
  unsigned maps_read, side_read, maps_made, side_made;
} layers[LAYERS] = {{1, 29, 6, 13}, {6, 13, 50, 5}, {50 * 5 * 5, 1, 100, 1}, {100, 1, 10, 1}};

static int is_dense(size_t i) { return layers[i].side_read == 1; }
static size_t cells_read(size_t i) { return (size_t)layers[i].maps_read * layers[i].side_read * layers[i].side_read; }
static size_t cells_made(size_t i) { return (size_t)layers[i].maps_made * layers[i].side_made * layers[i].side_made; }
static size_t inputs_of(size_t i) { return (size_t)layers[i].maps_read * (is_dense(i) ? 1 : KERNEL * KERNEL); }
static size_t weights_of(size_t i) { return (1 + inputs_of(i)) * layers[i].maps_made; }

static float squash(float x) { return x / (1 + fabsf(x)); }

static float convolved(const struct layer *l, const float *from, const float *weight, unsigned x, unsigned y) {
  float sum = *weight++;
  for (unsigned map = 0; map < l->maps_read; map++)
    for (unsigned row = 0; row < KERNEL; row++)
      for (unsigned column = 0; column < KERNEL; column++)
        sum = fmaf(*weight++, from[(map * l->side_read + 2 * y + row) * l->side_read + 2 * x + column], sum);
  return squash(sum);
}

static void layer_on_cpu(size_t i, const float *from, float *to, const float *weights) {
  const struct layer *l = &layers[i];
  if (is_dense(i)) {
    for (unsigned unit = 0; unit < l->maps_made; unit++) {
      float sum = weights[unit];
      for (size_t k = 0; k < l->maps_read; k++) sum = fmaf(weights[(1 + k) * l->maps_made + unit], from[k], sum);
      to[unit] = squash(sum);
    }
    return;
  }
  for (unsigned map = 0; map < l->maps_made; map++)
    for (unsigned y = 0; y < l->side_made; y++)
      for (unsigned x = 0; x < l->side_made; x++) *to++ = convolved(l, from, weights + map * (1 + inputs_of(i)), x, y);
}

static void network_on_gpu(float *const *cells, float *const *weights, unsigned images) {
  gpu_pointer device_cells[LAYERS + 1], device_weights[LAYERS];
  gpu_open(workload_ptx);
  gpu_kernel convolution = gpu_find_kernel("neural_convolution"), dense = gpu_find_kernel("neural_dense");
  device_cells[0] = gpu_upload(cells[0], images * cells_read(0) * sizeof(float));
  for (size_t i = 0; i < LAYERS; i++) {
    device_weights[i] = gpu_upload(weights[i], weights_of(i) * sizeof(float));
    device_cells[i + 1] = gpu_allocate(images * cells_made(i) * sizeof(float));
  }
  for (size_t i = 0; i < LAYERS; i++) {
    struct layer l = layers[i];
    gpu_shape by_map = {l.maps_made, images, l.side_made, l.side_made}, by_image = {images, 1, l.maps_made, 1};
    if (is_dense(i))
      GPU_LAUNCH(dense, by_image, device_cells[i], device_cells[i + 1], device_weights[i], l.maps_read);
    else
      GPU_LAUNCH(convolution, by_map, device_cells[i], device_cells[i + 1], device_weights[i], l.maps_read,
                 l.side_read);
  }
  for (size_t i = 0; i < LAYERS; i++)
    gpu_copy_to_host(cells[i + 1], device_cells[i + 1], images * cells_made(i) * sizeof(float));
  for (size_t i = 0; i <= LAYERS; i++) gpu_free(device_cells[i]);
  for (size_t i = 0; i < LAYERS; i++) gpu_free(device_weights[i]);
  gpu_close();
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"images", 32, 1, 65535}};
  workload_arguments(argc, argv, "neural", "a small network that reads digits, many images", arguments, 1);
  size_t images = (size_t)arguments[0].value;
  workload_random random = {23};
  float *got[LAYERS + 1], *expected[LAYERS + 1], *weights[LAYERS];
  got[0] = expected[0] = workload_random_floats(&random, images * cells_read(0), 0, 1);
  for (size_t i = 0; i < LAYERS; i++) {
    float most = 3 / sqrtf((float)inputs_of(i));
    weights[i] = workload_random_floats(&random, weights_of(i), -most, 2 * most);
    got[i + 1] = workload_memory(images * cells_made(i), sizeof(float));
    expected[i + 1] = workload_memory(images * cells_made(i), sizeof(float));
    workload_cpu_begins();
    for (size_t image = 0; image < images; image++)
      layer_on_cpu(i, expected[i] + image * cells_read(i), expected[i + 1] + image * cells_made(i), weights[i]);
    workload_cpu_ends();
  }
  network_on_gpu(got, weights, (unsigned)images);

  size_t wrong = 0, checked = 0;
  for (size_t i = 0; i < LAYERS; i++) {
    wrong += workload_floats_differ(got[i + 1], expected[i + 1], images * cells_made(i));
    checked += images * cells_made(i);
    free(weights[i]), free(got[i + 1]), free(expected[i + 1]);
  }
  free(got[0]);
  return workload_verdict_exact("neural", checked, wrong);
}
