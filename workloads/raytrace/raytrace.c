/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of raytrace: random spheres, a pattern of squares with grain. The CPU traces each pixel with the same operations (ray.h), all its
 * reflections at once; the pictures are compared bit for bit. */
#include "gpu.h"
#include "ray.h"
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>

extern const char workload_ptx[];

typedef struct scene {
  unsigned width, height, count, bounces, pattern_size, whole; /* whole: in one launch */
  float *spheres, *pattern; /* five arrays of count; pattern_size x pattern_size */
} scene;

static scene random_scene(const workload_argument *arguments) {
  scene s = {(unsigned)arguments[0].value, (unsigned)arguments[1].value, (unsigned)arguments[2].value, (unsigned)arguments[3].value, 1, (unsigned)arguments[4].value, NULL, NULL};
  while (!s.whole && s.pattern_size < 1024 && s.pattern_size < s.width) s.pattern_size *= 2; /* about as much as the rays */
  workload_random random = {29};
  s.spheres = workload_memory(5 * s.count, sizeof *s.spheres);
  for (unsigned i = 0; i < s.count; i++) {
    s.spheres[i] = -3 + 6 * workload_random_float(&random);
    s.spheres[s.count + i] = -0.5f + 2 * workload_random_float(&random);
    s.spheres[2 * s.count + i] = 1 + 6 * workload_random_float(&random);
    s.spheres[3 * s.count + i] = 0.2f + 0.6f * workload_random_float(&random);
    s.spheres[4 * s.count + i] = 0.2f + 0.6f * workload_random_float(&random);
  }
  s.pattern = workload_random_floats(&random, (size_t)s.pattern_size * s.pattern_size, 0.2f, 0.2f);
  for (size_t i = 0; i < (size_t)s.pattern_size * s.pattern_size; i++)
    if ((i / s.pattern_size ^ i) & 32) s.pattern[i] += 0.5f;
  return s;
}

/* The ray goes on to what it hits, whose light is added to the picture. */
static void bounce_on_cpu(const scene *s, vector *from, vector *direction, float *weight, float *picture) {
  const float *x = s->spheres, *y = x + s->count, *z = y + s->count, *radius = z + s->count, *share = radius + s->count;
  float nearest = NEVER;
  unsigned hit = s->count;
  for (unsigned i = 0; i < s->count; i++) {
    float distance = ray_to_sphere(*from, *direction, x[i], y[i], z[i], radius[i]);
    if (distance < nearest) nearest = distance, hit = i;
  }
  float plane = ray_to_plane(*from, *direction), light, reflected = 0;
  int on_plane = plane < nearest;
  if (on_plane) nearest = plane;
  vector at = ray_along(*from, nearest, *direction), normal = {0, 1, 0};
  if (nearest >= NEVER) {
    light = ray_sky(*direction);
  } else if (on_plane) {
    light = s->pattern[ray_texel(at.x, at.z, s->pattern_size)] * ray_lit(normal);
    reflected = 0.3f;
  } else {
    normal = ray_unit((vector){at.x - x[hit], at.y - y[hit], at.z - z[hit]});
    reflected = share[hit];
    light = ray_lit(normal);
  }
  float kept = 1 - reflected;
  *picture = fmaf(*weight * kept, light, *picture);
  *from = at;
  *direction = ray_reflected(*direction, normal);
  *weight *= reflected;
}

static void trace_on_cpu(const scene *s, float *picture) {
  for (unsigned pixel = 0; pixel < s->width * s->height; pixel++) {
    vector from = {0, 0, -3}, direction = ray_through(pixel % s->width, pixel / s->width, s->width, s->height);
    float weight = 1;
    picture[pixel] = 0;
    for (unsigned bounce = 0; bounce < s->bounces && weight != 0; bounce++) bounce_on_cpu(s, &from, &direction, &weight, &picture[pixel]);
  }
}

static void trace_by_reflection(const scene *s, gpu_pointer image, gpu_shape shape) {
  unsigned pixels = s->width * s->height, width = s->width, height = s->height, count = s->count, pattern_size = s->pattern_size;
  gpu_kernel start = gpu_find_kernel("raytrace_start"), bounce = gpu_find_kernel("raytrace_bounce");
  gpu_pointer rays = gpu_allocate(7 * pixels * sizeof(float));
  gpu_pointer spheres = gpu_upload(s->spheres, 5 * count * sizeof(float));
  gpu_pointer pattern = gpu_upload(s->pattern, (size_t)pattern_size * pattern_size * sizeof(float));
  GPU_LAUNCH(start, shape, rays, image, width, height);
  for (unsigned i = 0; i < s->bounces; i++) GPU_LAUNCH(bounce, shape, rays, image, pixels, spheres, count, pattern, pattern_size);
  gpu_free(rays), gpu_free(spheres), gpu_free(pattern);
}

static void trace_at_once(const scene *s, gpu_pointer image, gpu_shape shape) {
  unsigned width = s->width, height = s->height, count = s->count, bounces = s->bounces;
  gpu_copy_to_device(gpu_find_variable("raytrace_scene"), s->spheres, 5 * count * sizeof(float));
  gpu_copy_to_device(gpu_find_variable("raytrace_plane"), s->pattern, sizeof(float));
  GPU_LAUNCH(gpu_find_kernel("raytrace_whole"), shape, image, width, height, count, bounces);
}

static void trace_on_gpu(const scene *s, float *picture) {
  unsigned pixels = s->width * s->height;
  gpu_shape shape = {gpu_divide_up(pixels, 128), 1, 128, 1};
  gpu_open(workload_ptx);
  gpu_pointer image = gpu_allocate(pixels * sizeof(float));
  if (s->whole) trace_at_once(s, image, shape);
  else trace_by_reflection(s, image, shape);
  gpu_copy_to_host(picture, image, pixels * sizeof(float));
  gpu_free(image);
  gpu_close();
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"width", 512, 1, 8192}, {"height", 256, 1, 8192}, {"spheres", 8, 1, 4096}, {"reflections", 3, 1, 100}, {"one_launch", 0, 0, 1}};
  workload_arguments(argc, argv, "raytrace", "ray tracing of spheres over a plane, with reflections", arguments, 5);
  if (arguments[4].value && (arguments[2].value > RAY_MOST_SPHERES || arguments[3].value > RAY_MOST_BOUNCES)) {
    fprintf(stderr, "raytrace: one launch takes at most %u spheres and %u reflections\n", RAY_MOST_SPHERES, RAY_MOST_BOUNCES);
    return 2;
  }
  scene s = random_scene(arguments);
  size_t pixels = (size_t)s.width * s.height;
  float *expected = workload_memory(pixels, sizeof *expected), *got = workload_memory(pixels, sizeof *got);
  workload_cpu_begins();
  trace_on_cpu(&s, expected);
  workload_cpu_ends();
  trace_on_gpu(&s, got);

  double sum = 0;
  for (size_t i = 0; i < pixels; i++) sum += got[i];
  printf("raytrace: %u x %u pixels, mean brightness %.4f\n", s.width, s.height, sum / (double)pixels);
  size_t wrong = workload_floats_differ(got, expected, pixels);
  free(s.spheres), free(s.pattern), free(expected), free(got);
  return workload_verdict_exact("raytrace", pixels, wrong);
}
