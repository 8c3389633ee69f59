/* SPDX-License-Identifier: Apache-2.0 */
/* Ray tracing of spheres over a patterned plane, a launch per reflection: the state of each ray (where it starts, where it goes, how much its light
 * counts) lies in global memory between launches, one array per number, pixel next to pixel. raytrace_start makes the rays, raytrace_bounce moves each
 * on to what it hits and adds the light from there to the picture. The pattern is read where rays come down: scattered. */
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

/* spheres: five arrays of `count` numbers: middle x, y, z, radius, share of light reflected. */
extern "C" __global__ void raytrace_bounce(float *rays, float *picture, unsigned pixels, const float *spheres, unsigned count, const float *pattern,
                                           unsigned pattern_size) {
  unsigned pixel = blockIdx.x * blockDim.x + threadIdx.x;
  if (pixel >= pixels) return;
  float weight = rays[6 * pixels + pixel];
  if (weight == 0) return; /* gone into the sky */
  vector from = {rays[pixel], rays[pixels + pixel], rays[2 * pixels + pixel]};
  vector direction = {rays[3 * pixels + pixel], rays[4 * pixels + pixel], rays[5 * pixels + pixel]};

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
  float light, reflected = 0;
  vector at = ray_along(from, nearest, direction), normal = {0, 1.0f, 0};
  if (nearest >= NEVER) {
    light = ray_sky(direction);
  } else if (on_plane) {
    light = pattern[ray_texel(at.x, at.z, pattern_size)] * ray_lit(normal);
    reflected = 0.3f;
  } else {
    normal = ray_unit(vector{at.x - spheres[hit], at.y - spheres[count + hit], at.z - spheres[2 * count + hit]});
    reflected = spheres[4 * count + hit];
    light = ray_lit(normal);
  }
  float kept = 1.0f - reflected;
  picture[pixel] = fmaf(weight * kept, light, picture[pixel]);
  put_ray(rays, pixels, pixel, at, ray_reflected(direction, normal), weight * reflected);
}
