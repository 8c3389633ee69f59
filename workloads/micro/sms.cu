/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of 1024 threads that go through the same tiles of 64 KiB: in each round a block has as many of them as every other one, and other
 * ones than in the rounds before and after, so that it finds none in its L1. */
#include "device.h"

struct __attribute__((aligned(16))) quad {
  float x, y, z, w;
};

enum { THREADS = 1024, TILE = 4096 };

#define SMS(name, ...)                                                                                                \
  extern "C" __global__ void name(const quad *from, quad *to, int tiles, int rounds) {                                 \
    float sum = 1.0f;                                                                                                  \
    for (int round = 0; round < rounds; round++) {                                                                     \
      unsigned part = (blockIdx.x + (unsigned)round) % gridDim.x;                                                      \
      int first = (int)((unsigned long long)part * (unsigned)tiles / gridDim.x);                                       \
      int end = (int)((unsigned long long)(part + 1) * (unsigned)tiles / gridDim.x);                                   \
      _Pragma("unroll 1") for (int tile = first; tile < end; tile++) {                                                 \
        unsigned long long at = (unsigned long long)tile * TILE + threadIdx.x;                                         \
        __VA_ARGS__;                                                                                                   \
      }                                                                                                                \
    }                                                                                                                  \
    if (sum == 1.23e30f) to[threadIdx.x].x = sum;                                                                      \
  }
#define FOUR(statement) _Pragma("unroll") for (int k = 0; k < 4; k++) statement

/* By its parts, which both compilers load and store at once. */
static __device__ __forceinline__ quad quad_at(const quad *at) { return quad{at->x, at->y, at->z, at->w}; }
static __device__ __forceinline__ void put_quad(quad *at, quad value) {
  at->x = value.x, at->y = value.y, at->z = value.z, at->w = value.w;
}

static __device__ __forceinline__ float sum_of(quad value) { return value.x + value.y + value.z + value.w; }

SMS(read, quad four[4]; FOUR(four[k] = quad_at(from + at + k * THREADS)); FOUR(sum += sum_of(four[k])))
SMS(write, (void)from; quad value = {sum, sum, sum, sum}; FOUR(put_quad(to + at + k * THREADS, value)))
SMS(copy, quad four[4]; FOUR(four[k] = quad_at(from + at + k * THREADS));
    FOUR(put_quad(to + at + k * THREADS, four[k])))

/* Floats of [1, 2) whose fractions are a hash of their place. */
extern "C" __global__ void fill(unsigned *words, unsigned long long count) {
  unsigned long long step = (unsigned long long)blockDim.x * gridDim.x;
  for (unsigned long long i = threadIdx.x + (unsigned long long)blockIdx.x * blockDim.x; i < count; i += step) {
    unsigned hash = (unsigned)i * 2654435761u;
    hash ^= hash >> 15;
    words[i] = 0x3f800000u | (hash * 2246822519u >> 9);
  }
}
