/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of heartwall: frames of a soft random texture that is drawn out and together around its middle, as a heart beats, with noise; points on a
 * ring and around it. The CPU tracks in the same order with the same operations: places and templates are compared bit for bit. */
#include "gpu.h"
#include "workload.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const char workload_ptx[];

typedef struct tracker { /* same as in heartwall.cu */
  gpu_pointer x, y, templates, windows, sums, squares, scores;
  int side, radius, width, height;
} tracker;

typedef struct problem {
  int points, frames, side, radius, width, height;
  bool staged;            /* templates in shared memory */
  int *texture;         /* width x height, 8 to 119 */
  int *x, *y, *templates; /* where the points are; templates[point][row][column] */
} problem;

/* Noise, made soft by four passes over neighbours in both directions, and stretched to its whole range again. */
static int *random_texture(workload_random *random, int width, int height) {
  size_t count = (size_t)width * (size_t)height;
  int *texture = workload_memory(count, sizeof *texture), least = 1 << 20, most = 0;
  for (size_t i = 0; i < count; i++) texture[i] = (int)workload_random_below(random, 1 << 16);
  for (int pass = 0; pass < 4; pass++) {
    for (size_t i = 0; i + 1 < count; i++) texture[i] = (texture[i] + texture[i + 1]) / 2;
    for (size_t i = 0; i + (size_t)width < count; i++) texture[i] = (texture[i] + texture[i + (size_t)width]) / 2;
  }
  for (size_t i = 0; i < count; i++) least = texture[i] < least ? texture[i] : least, most = texture[i] > most ? texture[i] : most;
  for (size_t i = 0; i < count; i++) texture[i] = 8 + (texture[i] - least) * 111 / (most - least + 1);
  return texture;
}

static int between(int value, int least, int most) { return value < least ? least : value > most ? most : value; }

/* How far the heart's wall is out in a frame: 0, 1, 2, 3, 2, 1, 0, 1 ... pixels at the picture's rim. */
static int stretch_of(int frame) { return frame % 6 < 3 ? frame % 6 : 6 - frame % 6; }

static void draw_frame(const problem *p, workload_random *random, int frame, int *to) {
  int stretch = stretch_of(frame);
  for (int y = 0; y < p->height; y++)
    for (int x = 0; x < p->width; x++) {
      int from_x = between(x - stretch * (2 * x - p->width) / p->width, 0, p->width - 1);
      int from_y = between(y - stretch * (2 * y - p->height) / p->height, 0, p->height - 1);
      to[y * p->width + x] = p->texture[from_y * p->width + from_x] + (int)workload_random_below(random, 8);
    }
}

/* Points in a spiral from the middle to the rim. */
static void place_points(problem *p) {
  int reach_x = p->width - p->side, reach_y = p->height - p->side;
  for (int i = 0; i < p->points; i++) {
    double out = sqrt((i + 0.5) / p->points), angle = 2.399963 * i;
    p->x[i] = between((int)(reach_x * (0.5 + 0.48 * out * cos(angle))), 0, reach_x);
    p->y[i] = between((int)(reach_y * (0.5 + 0.48 * out * sin(angle))), 0, reach_y);
  }
}

static float score_on_cpu(const problem *p, const int *pattern, const int *frame, int left, int top) {
  int sum = 0, square = 0, products = 0, total = 0, pixels = p->side * p->side;
  for (int r = 0; r < p->side; r++)
    for (int c = 0; c < p->side; c++) {
      int pixel = frame[(top + r) * p->width + left + c];
      sum += pixel, square += pixel * pixel, total += pattern[r * p->side + c];
      products += pattern[r * p->side + c] * pixel;
    }
  int covariance = pixels * products - total * sum, variance = pixels * square - sum * sum;
  return variance > 0 ? (float)covariance / sqrtf((float)variance) : 0;
}

static void track_on_cpu(problem *p, const int *frame, int point) {
  int area = p->side + 2 * p->radius, ways = 2 * p->radius + 1, best = ways * ways;
  int left = between(p->x[point] - p->radius, 0, p->width - area), top = between(p->y[point] - p->radius, 0, p->height - area);
  int *pattern = p->templates + point * p->side * p->side;
  float highest = -3.4e38f;
  for (int i = 0; i < ways * ways; i++) {
    float score = score_on_cpu(p, pattern, frame, left + i % ways, top + i / ways);
    if (score > highest) highest = score, best = i;
  }
  p->x[point] = left + best % ways, p->y[point] = top + best / ways;
  for (int i = 0; i < p->side * p->side; i++)
    pattern[i] = (7 * pattern[i] + frame[(p->y[point] + i / p->side) * p->width + p->x[point] + i % p->side] + 4) / 8;
}

static void start_on_cpu(problem *p, const int *frame) {
  for (int point = 0; point < p->points; point++)
    for (int i = 0; i < p->side * p->side; i++)
      p->templates[point * p->side * p->side + i] = frame[(p->y[point] + i / p->side) * p->width + p->x[point] + i % p->side];
}

/* frames[frame]: each of width x height. From the places in p->x, p->y on; leaves the last ones and the templates there. */
static void frames_on_gpu(problem *p, int *const *frames) {
  size_t points = (size_t)p->points, area = (size_t)(p->side + 2 * p->radius), ways = (size_t)(2 * p->radius + 1);
  size_t frame_bytes = (size_t)p->width * (size_t)p->height * sizeof(int), template_bytes = points * (size_t)(p->side * p->side) * sizeof(int);
  gpu_open(workload_ptx);
  gpu_pointer frame = gpu_upload(frames[0], frame_bytes);
  tracker k = {.side = p->side, .radius = p->radius, .width = p->width, .height = p->height};
  k.x = gpu_upload(p->x, points * sizeof *p->x), k.y = gpu_upload(p->y, points * sizeof *p->y);
  k.templates = gpu_allocate(template_bytes), k.windows = gpu_allocate(points * area * area * sizeof(int));
  k.sums = gpu_allocate(points * area * area * sizeof(int)), k.squares = gpu_allocate(points * area * area * sizeof(int));
  k.scores = gpu_allocate(points * ways * ways * sizeof(float));
  gpu_shape shape = {(unsigned)p->points, 1, 128, 1};
  GPU_LAUNCH(gpu_find_kernel("heartwall_first"), shape, frame, k);
  for (int i = 1; i < p->frames; i++) {
    gpu_copy_to_device(frame, frames[i], frame_bytes);
    GPU_LAUNCH(gpu_find_kernel(p->staged ? "heartwall_track_staged" : "heartwall_track"), shape, frame, k);
  }
  gpu_copy_to_host(p->x, k.x, points * sizeof *p->x), gpu_copy_to_host(p->y, k.y, points * sizeof *p->y);
  gpu_copy_to_host(p->templates, k.templates, template_bytes);
  gpu_free(frame), gpu_free(k.x), gpu_free(k.y), gpu_free(k.templates), gpu_free(k.windows), gpu_free(k.sums), gpu_free(k.squares), gpu_free(k.scores);
  gpu_close();
}

static void allocate_points(problem *p) {
  p->x = workload_memory((size_t)p->points, sizeof *p->x), p->y = workload_memory((size_t)p->points, sizeof *p->y);
  p->templates = workload_memory((size_t)(p->points * p->side * p->side), sizeof *p->templates);
  place_points(p);
}

/* Pixels from where the points should be, on average. */
static double mean_error(const problem *p, const problem *start) {
  double sum = 0;
  int stretch = stretch_of(p->frames - 1);
  for (int i = 0; i < p->points; i++) {
    double middle = 0.5 * p->side, x = start->x[i] + middle, y = start->y[i] + middle;
    sum += hypot(p->x[i] + middle - x - stretch * (2 * x / p->width - 1), p->y[i] + middle - y - stretch * (2 * y / p->height - 1));
  }
  return sum / p->points;
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"points", 1024, 1, 1 << 16}, {"frames", 3, 2, 1000}, {"width", 1024, 64, 8192}, {"height", 512, 64, 8192},
                                   {"side", 8, 2, 16}, {"radius", 4, 1, 8}, {"staged", 0, 0, 1}};
  workload_arguments(argc, argv, "heartwall", "tracks points of a moving picture by their templates", arguments, 7);
  problem expected = {.points = (int)arguments[0].value, .frames = (int)arguments[1].value, .width = (int)arguments[2].value,
                      .height = (int)arguments[3].value, .side = (int)arguments[4].value, .radius = (int)arguments[5].value,
                      .staged = arguments[6].value == 1};
  workload_random random = {31};
  expected.texture = random_texture(&random, expected.width, expected.height);
  problem got = expected, start = expected;
  allocate_points(&expected), allocate_points(&got), allocate_points(&start);
  int **frames = workload_memory((size_t)expected.frames, sizeof *frames);
  for (int i = 0; i < expected.frames; i++) {
    frames[i] = workload_memory((size_t)expected.width * (size_t)expected.height, sizeof *frames[i]);
    draw_frame(&expected, &random, i, frames[i]);
    workload_cpu_begins();
    if (!i) start_on_cpu(&expected, frames[i]);
    for (int point = 0; i && point < expected.points; point++) track_on_cpu(&expected, frames[i], point);
    workload_cpu_ends();
  }
  frames_on_gpu(&got, frames);

  printf("heartwall: %d points over %d frames, %.2f pixels from where they should be on average\n", got.points, got.frames, mean_error(&got, &start));
  size_t wrong = 0, words = (size_t)(got.points * got.side * got.side);
  for (int i = 0; i < got.points; i++) wrong += (got.x[i] != expected.x[i]) + (got.y[i] != expected.y[i]);
  for (size_t i = 0; i < words; i++) wrong += got.templates[i] != expected.templates[i];
  for (int i = 0; i < got.frames; i++) free(frames[i]);
  free(frames), free(got.texture), free(got.x), free(got.y), free(got.templates), free(start.x), free(start.y), free(start.templates);
  free(expected.x), free(expected.y), free(expected.templates);
  return workload_verdict_exact("heartwall", words + 2 * (size_t)got.points, wrong);
}
