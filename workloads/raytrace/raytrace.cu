/* SPDX-License-Identifier: Apache-2.0 */
/* Ray tracing of spheres over a plane, in two forms.
 *   A launch per reflection: the state of each ray (where it starts, where it goes, how much its light counts) lies in global memory between launches,
 * one array per number, pixel next to pixel. raytrace_start makes the rays, raytrace_bounce moves each on to what it hits and adds the light from there
 * to the picture. The plane's pattern is read where rays come down: scattered.
 *   One launch (raytrace_whole): a thread follows its ray through all reflections. The scene is in constant memory, the light of each reflection is kept
 * on a stack in local memory until the ray has ended, and the plane has one brightness. */
#include "device.h"

#include "ray.h"

/* rays: seven arrays of `pixels` numbers: from x, y, z, direction x, y, z, weight. */
static __device__ __forceinline__ void put_ray(float *rays, unsigned pixels, unsigned pixel, vector from, vector direction, float weight) {
  rays[pixel] = from.x, rays[pixels + pixel] = from.y, rays[2 * pixels + pixel] = from.z;
  rays[3 * pixels + pixel] = direction.x, rays[4 * pixels + pixel] = direction.y, rays[5 * pixels + pixel] = direction.z;
  rays[6 * pixels + pixel] = weight;
}

extern "C" __global__ void raytrace_start(float *rays, float *picture, unsigned width, unsigned height) {
  unsigned pixel = blockIdx.x * blockDim.x + threadIdx.x, pixels = width * height;
  if (pixel >= pixels) return;
  put_ray(rays, pixels, pixel, vector{0, 0, -3.0f}, ray_through(pixel % width, pixel / width, width, height), 1.0f);
  picture[pixel] = 0;
}

typedef struct surface {
  vector at, normal;
  float light, reflected; /* what it gives off itself, 0 to 1; the share that it reflects */
} surface;

/* What the ray hits first. spheres: five arrays of `count` numbers: middle x, y, z, radius, share of light reflected; pattern: of pattern_size x pattern_size. */
static __device__ __forceinline__ surface nearest_surface(vector from, vector direction, const float *spheres, unsigned count, const float *pattern,
                                                          unsigned pattern_size) {
  float nearest = NEVER;
  unsigned hit = count;
#pragma unroll 1
  for (unsigned i = 0; i < count; i++) {
    float distance = ray_to_sphere(from, direction, spheres[i], spheres[count + i], spheres[2 * count + i], spheres[3 * count + i]);
    if (distance < nearest) nearest = distance, hit = i;
  }
  float plane = ray_to_plane(from, direction);
  bool on_plane = plane < nearest;
  if (on_plane) nearest = plane;
  surface s = {ray_along(from, nearest, direction), {0, 1.0f, 0}, 0, 0};
  if (nearest >= NEVER) {
    s.light = ray_sky(direction);
  } else if (on_plane) {
    s.light = pattern[ray_texel(s.at.x, s.at.z, pattern_size)] * ray_lit(s.normal);
    s.reflected = 0.3f;
  } else {
    s.normal = ray_unit(vector{s.at.x - spheres[hit], s.at.y - spheres[count + hit], s.at.z - spheres[2 * count + hit]});
    s.reflected = spheres[4 * count + hit];
    s.light = ray_lit(s.normal);
  }
  return s;
}

extern "C" __global__ void raytrace_bounce(float *rays, float *picture, unsigned pixels, const float *spheres, unsigned count, const float *pattern,
                                           unsigned pattern_size) {
  unsigned pixel = blockIdx.x * blockDim.x + threadIdx.x;
  if (pixel >= pixels) return;
  float weight = rays[6 * pixels + pixel];
  if (weight == 0) return; /* gone into the sky */
  vector from = {rays[pixel], rays[pixels + pixel], rays[2 * pixels + pixel]};
  vector direction = {rays[3 * pixels + pixel], rays[4 * pixels + pixel], rays[5 * pixels + pixel]};
  surface s = nearest_surface(from, direction, spheres, count, pattern, pattern_size);
  float kept = 1.0f - s.reflected;
  picture[pixel] = fmaf(weight * kept, s.light, picture[pixel]);
  put_ray(rays, pixels, pixel, s.at, ray_reflected(direction, s.normal), weight * s.reflected);
}

__constant__ float raytrace_scene[5 * RAY_MOST_SPHERES]; /* as `spheres` above */
__constant__ float raytrace_plane[1];

extern "C" __global__ void raytrace_whole(float *picture, unsigned width, unsigned height, unsigned count, unsigned bounces) {
  unsigned pixel = blockIdx.x * blockDim.x + threadIdx.x;
  if (pixel >= width * height) return;
  vector from = {0, 0, -3.0f}, direction = ray_through(pixel % width, pixel / width, width, height);
  float weight = 1.0f, shares[RAY_MOST_BOUNCES], lights[RAY_MOST_BOUNCES];
  unsigned depth = 0;
#pragma unroll 1
  while (depth < bounces && weight != 0) {
    surface s = nearest_surface(from, direction, raytrace_scene, count, raytrace_plane, 1);
    float kept = 1.0f - s.reflected;
    shares[depth] = weight * kept, lights[depth] = s.light;
    depth++;
    from = s.at;
    direction = ray_reflected(direction, s.normal);
    weight *= s.reflected;
  }
  float sum = 0;
#pragma unroll 1
  for (unsigned i = 0; i < depth; i++) sum = fmaf(shares[i], lights[i], sum);
  picture[pixel] = sum;
}
