/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of alexnet: five convolutions, three dense layers, 1000 classes, shapes as Krizhevsky, Sutskever and Hinton give them
 * (2012, section 3.5; the image 227 cells wide). A divisor makes all maps and dense layers but the last that much smaller; a smaller
 * image makes the convolutions so. Weights and images are random, of a size that keeps what the layers make of one size.
 *
 * The CPU does the same arithmetic in the same order: every layer of every image is compared bit for bit. */
#include "gpu.h"
#include "workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exact.h"

#define TILE 32
#define CLASSES 1000
#define CLASS_THREADS 256
#define CONVOLUTIONS 5
#define DENSE 3
#define BUFFERS 15 /* the image, what each step makes, and the classes' probabilities */

extern const char workload_ptx[];

typedef struct convolution { /* as in alexnet.cu */
  unsigned maps_read, maps_made, side_read, side_made, kernel, stride, padding;
} convolution;

static const struct shape { /* of a convolution in full size; groups do not see each other's maps */
  unsigned maps, groups, kernel, stride, padding, normalise, pool;
} shapes[CONVOLUTIONS] = {{96, 1, 11, 4, 0, 1, 1}, {256, 2, 5, 1, 2, 1, 1}, {384, 1, 3, 1, 1, 0, 0}, {384, 2, 3, 1, 1, 0, 0}, {256, 2, 3, 1, 1, 0, 1}};
static const unsigned dense_units[DENSE] = {4096, 4096, CLASSES};

typedef enum step_kind { CONVOLVE, NORMALISE, POOL, DENSELY, SOFTMAX } step_kind;

typedef struct step { /* reads buffer i, makes buffer i + 1, the i-th of the network */
  step_kind kind;
  convolution c;    /* its maps are those of a group; other kinds: sides and maps of all */
  unsigned groups, inputs, units, rectify;
  size_t made, weight_count, bias_count;
  float *weights, *bias;
  gpu_pointer device_weights, device_bias;
} step;

typedef struct network {
  step steps[BUFFERS - 1];
  size_t count, image_size;
} network;

/* ---- the network ---- */

static step *add_step(network *n, step_kind kind, size_t made) {
  step *s = &n->steps[n->count++];
  *s = (step){.kind = kind, .made = made};
  return s;
}

static void add_weights(step *s, workload_random *random, size_t terms, size_t units) {
  float most = sqrtf(6.0f / (float)terms); /* He et al. 2015: rectified layers keep their inputs' size */
  s->weight_count = terms * units, s->bias_count = units;
  s->weights = workload_random_floats(random, s->weight_count, -most, 2 * most);
  s->bias = workload_random_floats(random, units, 0, 0.1f);
}

/* Returns the side of what it makes. */
static unsigned add_convolution(network *n, workload_random *random, const struct shape *shape, unsigned maps_read, unsigned maps, unsigned side) {
  convolution c = {maps_read / shape->groups, maps / shape->groups, side, (side + 2 * shape->padding - shape->kernel) / shape->stride + 1,
                   shape->kernel, shape->stride, shape->padding};
  step *s = add_step(n, CONVOLVE, (size_t)maps * c.side_made * c.side_made);
  s->c = c, s->groups = shape->groups;
  add_weights(s, random, (size_t)c.maps_read * c.kernel * c.kernel, maps);
  if (shape->normalise) add_step(n, NORMALISE, s->made)->c = (convolution){.maps_made = maps, .side_made = c.side_made};
  if (!shape->pool) return c.side_made;
  unsigned pooled = (c.side_made - 3) / 2 + 1;
  add_step(n, POOL, (size_t)maps * pooled * pooled)->c = (convolution){.maps_made = maps, .side_read = c.side_made, .side_made = pooled};
  return pooled;
}

static void make_network(network *n, unsigned side, unsigned divisor, workload_random *random) {
  unsigned maps = 3;
  n->count = 0;
  n->image_size = (size_t)3 * side * side;
  for (size_t i = 0; i < CONVOLUTIONS; i++) {
    unsigned made = shapes[i].maps / divisor / 2 * 2; /* for two groups */
    side = add_convolution(n, random, &shapes[i], maps, made, side);
    maps = made;
  }
  unsigned inputs = maps * side * side;
  for (size_t i = 0; i < DENSE; i++) {
    unsigned last = i == DENSE - 1, units = last ? CLASSES : dense_units[i] / divisor;
    step *s = add_step(n, DENSELY, units);
    s->inputs = inputs, s->units = units, s->rectify = !last;
    add_weights(s, random, inputs, units);
    inputs = units;
  }
  add_step(n, SOFTMAX, CLASSES);
}

static void free_network(network *n) {
  for (size_t i = 0; i < n->count; i++) free(n->steps[i].weights), free(n->steps[i].bias);
}

/* ---- on the CPU ---- */

static float rectified(float x) { return x > 0 ? x : 0; }

static float convolved(const convolution *c, const float *from, const float *weight, float sum, unsigned top, unsigned left) {
  for (unsigned map = 0; map < c->maps_read; map++)
    for (unsigned i = 0; i < c->kernel; i++)
      for (unsigned j = 0; j < c->kernel; j++, weight++) {
        unsigned row = top + i - c->padding, column = left + j - c->padding; /* before the edge: huge */
        if (row < c->side_read && column < c->side_read) sum = fmaf(*weight, from[(map * c->side_read + row) * c->side_read + column], sum);
      }
  return rectified(sum);
}

static void convolve_on_cpu(const step *s, const float *from, float *to) {
  const convolution *c = &s->c;
  size_t terms = (size_t)c->maps_read * c->kernel * c->kernel;
  for (unsigned map = 0; map < s->groups * c->maps_made; map++) {
    const float *group = from + map / c->maps_made * c->maps_read * c->side_read * c->side_read;
    for (unsigned y = 0; y < c->side_made; y++)
      for (unsigned x = 0; x < c->side_made; x++)
        *to++ = convolved(c, group, s->weights + map * terms, s->bias[map], y * c->stride, x * c->stride);
  }
}

static void normalise_on_cpu(const step *s, const float *from, float *to) {
  unsigned maps = s->c.maps_made;
  size_t cells = (size_t)s->c.side_made * s->c.side_made;
  for (unsigned map = 0; map < maps; map++)
    for (size_t cell = 0; cell < cells; cell++) {
      float sum = 0;
      for (unsigned other = map < 2 ? 0 : map - 2; other < maps && other <= map + 2; other++)
        sum = fmaf(from[other * cells + cell], from[other * cells + cell], sum);
      float root = sqrtf(fmaf(1e-4f, sum, 2.0f));
      to[map * cells + cell] = from[map * cells + cell] / (root * sqrtf(root));
    }
}

static void pool_on_cpu(const step *s, const float *from, float *to) {
  size_t read = s->c.side_read, made = s->c.side_made;
  for (size_t map = 0; map < s->c.maps_made; map++, from += read * read)
    for (size_t y = 0; y < made; y++)
      for (size_t x = 0; x < made; x++) {
        float highest = from[2 * y * read + 2 * x];
        for (size_t i = 0; i < 9; i++) highest = fmaxf(highest, from[(2 * y + i / 3) * read + 2 * x + i % 3]);
        *to++ = highest;
      }
}

static void dense_on_cpu(const step *s, const float *from, float *to) {
  for (size_t unit = 0; unit < s->units; unit++) {
    float lanes[32] = {0};
    for (size_t i = 0; i < s->inputs; i++) lanes[i % 32] = fmaf(s->weights[unit * s->inputs + i], from[i], lanes[i % 32]);
    for (size_t distance = 16; distance > 0; distance /= 2)
      for (size_t lane = 0; lane < distance; lane++) lanes[lane] += lanes[lane + distance];
    float sum = lanes[0] + s->bias[unit];
    to[unit] = s->rectify ? rectified(sum) : sum;
  }
}

static void softmax_on_cpu(const float *from, float *to) {
  float highest = from[0], sums[CLASS_THREADS] = {0};
  for (size_t i = 0; i < CLASSES; i++) highest = from[i] > highest ? from[i] : highest;
  for (size_t i = 0; i < CLASSES; i++) sums[i % CLASS_THREADS] += exact_exp(from[i] - highest);
  for (size_t half = CLASS_THREADS / 2; half > 0; half /= 2)
    for (size_t at = 0; at < half; at++) sums[at] += sums[half + at];
  for (size_t i = 0; i < CLASSES; i++) to[i] = exact_exp(from[i] - highest) / sums[0];
}

static void step_on_cpu(const step *s, const float *from, float *to) {
  switch (s->kind) {
  case CONVOLVE: convolve_on_cpu(s, from, to); break;
  case NORMALISE: normalise_on_cpu(s, from, to); break;
  case POOL: pool_on_cpu(s, from, to); break;
  case DENSELY: dense_on_cpu(s, from, to); break;
  case SOFTMAX: softmax_on_cpu(from, to); break;
  }
}

/* ---- on the GPU ---- */

typedef struct kernels {
  gpu_kernel convolution, normalise, pool, dense, softmax;
} kernels;

static void launch_step(const kernels *k, step *s, gpu_pointer from, gpu_pointer to) {
  unsigned cells = s->c.side_made * s->c.side_made, classes = CLASSES;
  gpu_shape by_tile = {gpu_divide_up(cells, TILE), s->groups * gpu_divide_up(s->c.maps_made, TILE), 16, 16},
            by_cell = {gpu_divide_up(cells, 128), s->c.maps_made, 128, 1}, by_unit = {gpu_divide_up(s->units, 4), 1, 128, 1},
            one = {1, 1, CLASS_THREADS, 1};
  switch (s->kind) {
  case CONVOLVE: GPU_LAUNCH(k->convolution, by_tile, from, to, s->device_weights, s->device_bias, s->c); break;
  case NORMALISE: GPU_LAUNCH(k->normalise, by_cell, from, to, s->c.maps_made, cells); break;
  case POOL: GPU_LAUNCH(k->pool, by_cell, from, to, s->c.side_read, s->c.side_made); break;
  case DENSELY: GPU_LAUNCH(k->dense, by_unit, from, to, s->device_weights, s->device_bias, s->inputs, s->units, s->rectify); break;
  case SOFTMAX: GPU_LAUNCH(k->softmax, one, from, to, classes); break;
  }
}

static void open_network(network *n, kernels *k, gpu_pointer *buffers) {
  gpu_open(workload_ptx);
  *k = (kernels){gpu_find_kernel("alexnet_convolution"), gpu_find_kernel("alexnet_normalise"), gpu_find_kernel("alexnet_pool"),
                 gpu_find_kernel("alexnet_dense"), gpu_find_kernel("alexnet_softmax")};
  buffers[0] = gpu_allocate(n->image_size * sizeof(float));
  for (size_t i = 0; i < n->count; i++) {
    step *s = &n->steps[i];
    buffers[i + 1] = gpu_allocate(s->made * sizeof(float));
    if (!s->weights) continue;
    s->device_weights = gpu_upload(s->weights, s->weight_count * sizeof(float));
    s->device_bias = gpu_upload(s->bias, s->bias_count * sizeof(float));
  }
}

static void close_network(network *n, gpu_pointer *buffers) {
  for (size_t i = 0; i <= n->count; i++) gpu_free(buffers[i]);
  for (size_t i = 0; i < n->count; i++)
    if (n->steps[i].weights) gpu_free(n->steps[i].device_weights), gpu_free(n->steps[i].device_bias);
  gpu_close();
}

/* ---- both ---- */

typedef struct verdict {
  size_t wrong, checked;
} verdict;

/* What steps [from, to) made. Only the probabilities are copied back with an image; the layers between, after the last. */
static void compare(const network *n, const gpu_pointer *buffers, float *const *expected, size_t from, size_t to, verdict *v) {
  for (size_t i = from; i < to; i++) {
    size_t made = n->steps[i].made;
    float *got = workload_memory(made, sizeof *got);
    gpu_copy_to_host(got, buffers[i + 1], made * sizeof *got);
    v->wrong += workload_floats_differ(got, expected[i + 1], made);
    v->checked += made;
    for (size_t at = 0; at < made; at++) v->wrong += isnan(expected[i + 1][at]) != 0;
    free(got);
  }
}

static size_t most_probable(const float *probability) {
  size_t best = 0;
  for (size_t i = 1; i < CLASSES; i++) best = probability[i] > probability[best] ? i : best;
  return best;
}

static verdict classify(network *n, long images, workload_random *random) {
  kernels k;
  gpu_pointer buffers[BUFFERS];
  float *expected[BUFFERS] = {NULL};
  verdict v = {0, 0};
  for (size_t i = 0; i < n->count; i++) expected[i + 1] = workload_memory(n->steps[i].made, sizeof(float));
  open_network(n, &k, buffers);
  for (long image = 0; image < images; image++) {
    expected[0] = workload_random_floats(random, n->image_size, -1, 2);
    if (image || images == 1) gpu_measure(1); /* the first of several is for warming up */
    gpu_copy_to_device(buffers[0], expected[0], n->image_size * sizeof(float));
    for (size_t i = 0; i < n->count; i++) launch_step(&k, &n->steps[i], buffers[i], buffers[i + 1]);
    for (size_t i = 0; i < n->count; i++) step_on_cpu(&n->steps[i], expected[i], expected[i + 1]);
    compare(n, buffers, expected, n->count - 1, n->count, &v);
    gpu_measure(0);
    if (image == images - 1) compare(n, buffers, expected, 0, n->count - 1, &v);
    size_t best = most_probable(expected[n->count]);
    printf("image %ld: class %zu, probability %.3f\n", image, best, expected[n->count][best]);
    free(expected[0]);
  }
  close_network(n, buffers);
  for (size_t i = 0; i < n->count; i++) free(expected[i + 1]);
  return v;
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"side", 227, 67, 1024}, {"divisor", 2, 1, 16}, {"images", 1, 1, 100000}};
  workload_arguments(argc, argv, "alexnet", "classifies images by a network of AlexNet's shapes (full size: 227 1)", arguments, 3);
  workload_random random = {33};
  network n;
  make_network(&n, (unsigned)arguments[0].value, (unsigned)arguments[1].value, &random);
  verdict v = classify(&n, arguments[2].value, &random);
  free_network(&n);
  return workload_verdict_exact("alexnet", v.checked, v.wrong);
}
