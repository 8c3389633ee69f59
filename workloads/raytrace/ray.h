/* SPDX-License-Identifier: Apache-2.0 */
/* What host and kernels of raytrace share: the scene, and the geometry of one ray, in operations of one rounding each and in an order that no compiler
 * changes (a product stands only where nothing is added to it). In a kernel file, include device.h first. */
#ifndef WORKLOADS_RAYTRACE_RAY_H
#define WORKLOADS_RAYTRACE_RAY_H

#ifdef __cplusplus
#define RAY static __device__ __forceinline__
#else
#include <math.h>
#define RAY static inline
#endif

typedef struct vector {
  float x, y, z;
} vector;

#define NEVER 1e30f /* no hit */
#define RAY_MOST_SPHERES 64u /* in one launch: in constant memory */
#define RAY_MOST_BOUNCES 8u  /* in one launch: on a thread's stack */
#define RAY_SHIFT 1e-3f /* a reflected ray starts so far from what it left */

RAY float ray_dot(vector a, vector b) { return fmaf(a.x, b.x, fmaf(a.y, b.y, a.z * b.z)); }

/* a + t b */
RAY vector ray_along(vector a, float t, vector b) {
  vector at = {fmaf(t, b.x, a.x), fmaf(t, b.y, a.y), fmaf(t, b.z, a.z)};
  return at;
}

RAY vector ray_unit(vector a) {
  float length = sqrtf(ray_dot(a, a));
  vector unit = {a.x / length, a.y / length, a.z / length};
  return unit;
}

/* Through the middle of pixel (column, row): the eye is at z = -3, the picture two units high, at z = 0. */
RAY vector ray_through(unsigned column, unsigned row, unsigned width, unsigned height) {
  float scale = 2.0f / (float)height;
  vector towards = {scale * ((float)column - 0.5f * (float)width), scale * (0.5f * (float)height - (float)row), 3.0f};
  return ray_unit(towards);
}

/* The distance to the sphere around (x, y, z); NEVER: it is missed, or behind. `direction` has length 1. */
RAY float ray_to_sphere(vector from, vector direction, float x, float y, float z, float radius) {
  vector to = {x - from.x, y - from.y, z - from.z};
  float middle = ray_dot(to, direction);
  vector aside = ray_along(to, -middle, direction);
  float under = fmaf(radius, radius, -ray_dot(aside, aside));
  if (under < 0) return NEVER;
  float half = sqrtf(under), near = middle - half, far = middle + half;
  return near > RAY_SHIFT ? near : far > RAY_SHIFT ? far : NEVER;
}

/* To the plane y = -1. */
RAY float ray_to_plane(vector from, vector direction) {
  float distance = direction.y < -1e-6f ? (-1.0f - from.y) / direction.y : NEVER;
  return distance > RAY_SHIFT ? distance : NEVER;
}

/* What a surface with this normal gives off under the light from the upper left, 0.1 to 1. */
RAY float ray_lit(vector normal) {
  vector light = {-0.48f, 0.8f, -0.36f};
  float lit = ray_dot(normal, light);
  return fmaf(0.9f, lit > 0 ? lit : 0.0f, 0.1f);
}

/* Of a ray that hits nothing: lighter upwards. */
RAY float ray_sky(vector direction) { return fmaf(0.3f, direction.y, 0.5f); }

RAY vector ray_reflected(vector direction, vector normal) { return ray_unit(ray_along(direction, -2.0f * ray_dot(direction, normal), normal)); }

/* Which of size x size texels (size: a power of two) of the plane's pattern lies at (x, z): 32 to a unit of length, repeated. */
RAY unsigned ray_texel(float x, float z, unsigned size) {
  int column = (int)(32.0f * (x + 4096.0f)), row = (int)(32.0f * (z + 4096.0f));
  return ((unsigned)row & (size - 1)) * size + ((unsigned)column & (size - 1));
}

#undef RAY

#endif
