/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of backprop: training steps of a network of many inputs, 16 hidden units and one output. The GPU has the
 * large layer; the host adds up its partial sums and does the output. The CPU does all in the same order, so weights
 * are compared bit for bit. */
#include "exact.h"
#include "gpu.h"
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNITS 16
#define PITCH (UNITS + 1)

extern const char workload_ptx[];

static const float rate = 0.3f, momentum = 0.3f, target = 0.1f;

typedef struct layer { /* the large one, on either side */
  size_t inputs;       /* a multiple of 16 */
  size_t weight_count;
  float *input, *weights, *changes;
  float output[UNITS]; /* the output's weights */
} layer;

static float sigmoid(float x) { return 1 / (1 + exact_exp(-x)); }

/* From the partial sums of the blocks and the biases: what the hidden units should have been off by. Adjusts the
 * output's weights; returns the output. */
static float finish_step(layer *l, const float *partial, const float *bias, float *delta) {
  float hidden[UNITS], sum = 0;
  for (int unit = 0; unit < UNITS; unit++) {
    float inputs = bias[unit];
    for (size_t block = 0; block < l->inputs / UNITS; block++) inputs += partial[block * UNITS + unit];
    hidden[unit] = sigmoid(inputs);
    sum = fmaf(hidden[unit], l->output[unit], sum);
  }
  float result = sigmoid(sum), slope = result * (1 - result) * (target - result);
  for (int unit = 0; unit < UNITS; unit++) {
    delta[unit] = hidden[unit] * (1 - hidden[unit]) * l->output[unit] * slope;
    l->output[unit] = fmaf(rate * slope, hidden[unit], l->output[unit]);
  }
  return result;
}

static void forward_on_cpu(const layer *l, float *partial) {
  for (size_t block = 0; block < l->inputs / UNITS; block++)
    for (int unit = 0; unit < UNITS; unit++) {
      float product[UNITS];
      for (size_t y = 0; y < UNITS; y++)
        product[y] = l->input[block * UNITS + y] * l->weights[(block * UNITS + y + 1) * PITCH + unit + 1];
      for (int half = UNITS / 2; half > 0; half /= 2)
        for (int y = 0; y < half; y++) product[y] += product[y + half];
      partial[block * UNITS + unit] = product[0];
    }
}

static void adjust_on_cpu(layer *l, const float *delta) {
  for (size_t row = 0; row <= l->inputs; row++)
    for (int unit = 0; unit < UNITS; unit++) {
      size_t at = row * PITCH + unit + 1;
      float slope = row ? delta[unit] * l->input[row - 1] : delta[unit];
      l->changes[at] = fmaf(rate, slope, momentum * l->changes[at]);
      l->weights[at] += l->changes[at];
    }
}

static void train_on_cpu(layer *l, float *partial, long steps) {
  float delta[UNITS];
  for (long step = 0; step < steps; step++) {
    forward_on_cpu(l, partial);
    finish_step(l, partial, l->weights + 1, delta);
    adjust_on_cpu(l, delta);
  }
}

static float train_on_gpu(layer *l, float *partial, long steps) {
  size_t bytes = l->weight_count * sizeof(float), partial_bytes = l->inputs * sizeof(float);
  float delta[UNITS], bias[PITCH], result = 0;
  gpu_open(workload_ptx);
  gpu_kernel forward = gpu_find_kernel("backprop_forward"), adjust = gpu_find_kernel("backprop_adjust");
  gpu_pointer input = gpu_upload(l->input, l->inputs * sizeof(float)), weights = gpu_upload(l->weights, bytes),
              changes = gpu_upload(l->changes, bytes);
  gpu_pointer partials = gpu_allocate(partial_bytes), deltas = gpu_allocate(sizeof delta);
  gpu_shape shape = {(unsigned)(l->inputs / UNITS), 1, UNITS, UNITS};
  for (long step = 0; step < steps; step++) {
    GPU_LAUNCH(forward, shape, input, weights, partials);
    gpu_copy_to_host(partial, partials, partial_bytes);
    gpu_copy_to_host(bias, weights, sizeof bias);
    result = finish_step(l, partial, bias + 1, delta);
    gpu_copy_to_device(deltas, delta, sizeof delta);
    GPU_LAUNCH(adjust, shape, input, deltas, weights, changes);
  }
  gpu_copy_to_host(l->weights, weights, bytes);
  gpu_copy_to_host(l->changes, changes, bytes);
  gpu_free(input), gpu_free(weights), gpu_free(changes), gpu_free(partials), gpu_free(deltas);
  gpu_close();
  return result;
}

static layer random_layer(size_t inputs) {
  workload_random random = {13};
  layer l = {.inputs = inputs, .weight_count = (inputs + 1) * PITCH};
  l.input = workload_random_floats(&random, inputs, 0, 1);
  l.weights = workload_random_floats(&random, l.weight_count, -0.5f, 1);
  l.changes = workload_memory(l.weight_count, sizeof(float));
  for (size_t i = 0; i < l.weight_count; i++) l.weights[i] *= 4 / sqrtf((float)inputs);
  for (int unit = 0; unit < UNITS; unit++) l.output[unit] = workload_random_float(&random) - 0.5f;
  return l;
}

static void free_layer(layer *l) { free(l->input), free(l->weights), free(l->changes); }

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"inputs", 65536, 1, 1 << 24}, {"steps", 1, 1, 100000}};
  workload_arguments(argc, argv, "backprop", "training steps of a two-layer network", arguments, 2);
  size_t inputs = (size_t)gpu_divide_up((uint64_t)arguments[0].value, UNITS) * UNITS;
  layer expected = random_layer(inputs), got = random_layer(inputs);
  float *partial = workload_memory(inputs, sizeof *partial);
  workload_cpu_begins();
  train_on_cpu(&expected, partial, arguments[1].value);
  workload_cpu_ends();
  float result = train_on_gpu(&got, partial, arguments[1].value);
  printf("backprop: %zu inputs, output %.6f before the last change\n", inputs, (double)result);

  size_t wrong = workload_floats_differ(got.weights, expected.weights, got.weight_count) +
                 workload_floats_differ(got.changes, expected.changes, got.weight_count);
  size_t checked = 2 * got.weight_count;
  free_layer(&expected), free_layer(&got), free(partial);
  return workload_verdict_exact("backprop", checked, wrong);
}
