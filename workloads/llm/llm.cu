/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of a small transformer that makes tokens: norm by the root of the mean square, rotary positions, attention over a paged cache of
 * keys and values, a gated two-layer network.
 *
 * A row is one token of one sequence: in a step each sequence has one row, or all rows of its prompt. Weights, keys and values are fp16 in
 * memory. What is multiplied by weights is rounded to fp16 first and kept in floats: a product of two fp16 numbers is exact in single
 * precision, so it does not matter who fuses it with the sum. The order of sums is the same in llm_cpu.c.
 *
 * A page has the keys, then the values, of PAGE_TOKENS positions of one sequence in one layer: [2][PAGE_TOKENS][width]. table[slot][n] is the
 * address of the n-th page of the sequence in that slot. The kernels find pages there alone; `declared` is in their parameters so that
 * what they use can be known before they begin. */
#include "device.h"

#include "exact.h"
#include "shape.h"

typedef unsigned short half_bits;

struct declared {
  unsigned long long address[DECLARED];
};

static __device__ __forceinline__ float widened(half_bits bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

static __device__ __forceinline__ half_bits narrowed(float value) {
  half_bits bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

static __device__ __forceinline__ float rounded(float value) { return widened(narrowed(value)); }

/* CHUNK fp16 numbers, 16 bytes. */
static __device__ __forceinline__ void load_chunk(const half_bits *from, float to[CHUNK]) {
  unsigned words[CHUNK / 2];
  asm("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
      : "l"(from));
  for (unsigned i = 0; i < CHUNK; i++) to[i] = widened((half_bits)(words[i / 2] >> i % 2 * 16));
}

static __device__ __forceinline__ void load_floats(const float *from, float to[CHUNK]) {
  for (unsigned i = 0; i < CHUNK; i += 4)
    asm("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];"
        : "=f"(to[i]), "=f"(to[i + 1]), "=f"(to[i + 2]), "=f"(to[i + 3])
        : "l"(from + i));
}

static __device__ __forceinline__ float warp_sum(float sum) {
  for (unsigned distance = WARP_LANES / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, (int)distance);
  return sum;
}

/* A block per row. */
extern "C" __global__ void llm_embed(const unsigned *token, const half_bits *embedding, float *x, unsigned width) {
  for (unsigned i = threadIdx.x; i < width; i += blockDim.x)
    x[blockIdx.x * width + i] = widened(embedding[(unsigned long long)token[blockIdx.x] * width + i]);
}

/* A warp per row made, which is row `from[row]` of x, divided by the root of its mean square. */
extern "C" __global__ void llm_norm(const float *x, const unsigned *from, float *to, unsigned width, unsigned rows) {
  unsigned row = (blockIdx.x * blockDim.x + threadIdx.x) / WARP_LANES, lane = threadIdx.x % WARP_LANES;
  if (row >= rows) return;
  const float *read = x + (unsigned long long)from[row] * width;
  float sum = 0;
  for (unsigned i = lane; i < width; i += WARP_LANES) sum = fmaf(read[i], read[i], sum);
  float root = sqrtf(warp_sum(sum) / (float)width + 1e-5f);
  for (unsigned i = lane; i < width; i += WARP_LANES) to[row * width + i] = rounded(read[i] / root);
}

/* to = weights x from, for TILE_ROWS rows at a time (blockIdx.y). A warp per TILE_UNITS units, whose lanes take every 32nd chunk. */
extern "C" __global__ void llm_dense(const float *from, const half_bits *weights, float *to, unsigned inputs, unsigned units,
                                     unsigned rows, unsigned how) {
  unsigned unit = (blockIdx.x * blockDim.x + threadIdx.x) / WARP_LANES * TILE_UNITS, lane = threadIdx.x % WARP_LANES;
  unsigned first = blockIdx.y * TILE_ROWS, count = rows - first < TILE_ROWS ? rows - first : TILE_ROWS;
  if (unit >= units) return;
  float sum[TILE_ROWS][TILE_UNITS] = {{0}};
  for (unsigned i = lane * CHUNK; i < inputs; i += WARP_LANES * CHUNK) {
    float weight[TILE_UNITS][CHUNK], value[CHUNK];
#pragma unroll
    for (unsigned u = 0; u < TILE_UNITS; u++) load_chunk(weights + (unsigned long long)(unit + u) * inputs + i, weight[u]);
#pragma unroll
    for (unsigned row = 0; row < TILE_ROWS; row++) {
      if (row >= count) continue;
      load_floats(from + (first + row) * inputs + i, value);
#pragma unroll
      for (unsigned u = 0; u < TILE_UNITS; u++)
#pragma unroll
        for (unsigned k = 0; k < CHUNK; k++) sum[row][u] = fmaf(weight[u][k], value[k], sum[row][u]);
    }
  }
#pragma unroll
  for (unsigned row = 0; row < TILE_ROWS; row++) {
    if (row >= count) continue;
    float own = 0, *at = to + (first + row) * units + unit + lane;
#pragma unroll
    for (unsigned u = 0; u < TILE_UNITS; u++) {
      float total = warp_sum(sum[row][u]);
      own = lane == u ? total : own;
    }
    if (lane < TILE_UNITS) *at = how == DENSE_ADDS ? *at + own : how == DENSE_ROUNDS ? rounded(own) : own;
  }
}

/* A block per row: its query and key are turned by its position, in pairs of numbers half a head apart; key and value go to their page.
 * qkv: [row][query, key, value][width]; turn: [position][cosine, sine][HEAD / 2]. */
extern "C" __global__ void llm_place(float *qkv, const unsigned *slot, const unsigned *position, const float *turn,
                                     const unsigned long long *table, unsigned width, unsigned pages, struct declared) {
  unsigned at = position[blockIdx.x];
  float *query = qkv + blockIdx.x * 3 * width, *key = query + width;
  half_bits *page = (half_bits *)table[slot[blockIdx.x] * pages + at / PAGE_TOKENS],
            *keys = page + at % PAGE_TOKENS * width, *values = keys + PAGE_TOKENS * width;
  const float *cosine = turn + at * HEAD, *sine = cosine + HEAD / 2;
  for (unsigned i = threadIdx.x; i < width / 2; i += blockDim.x) {
    unsigned pair = i % (HEAD / 2), low = i / (HEAD / 2) * HEAD + pair, high = low + HEAD / 2;
    float a = query[low], b = query[high], c = cosine[pair], s = sine[pair];
    query[low] = rounded(fmaf(a, c, -__fmul_rn(b, s)));
    query[high] = rounded(fmaf(a, s, __fmul_rn(b, c)));
    a = key[low];
    b = key[high];
    keys[low] = narrowed(fmaf(a, c, -__fmul_rn(b, s)));
    keys[high] = narrowed(fmaf(a, s, __fmul_rn(b, c)));
    values[low] = narrowed(key[width + low]);
    values[high] = narrowed(key[width + high]);
  }
}

/* A warp per row (blockIdx.x) and head (blockIdx.y). A lane per position makes the weights of positions, two numbers of the head per lane
 * the sum of values. */
extern "C" __global__ void llm_attend(const float *qkv, const unsigned *slot, const unsigned *position,
                                      const unsigned long long *table, float *to, unsigned width, unsigned pages, struct declared) {
  __shared__ float weight[CONTEXT];
  unsigned lane = threadIdx.x, count = position[blockIdx.x] + 1;
  const unsigned long long *page = table + slot[blockIdx.x] * pages;
  const float *query = qkv + blockIdx.x * 3 * width + blockIdx.y * HEAD;
  float highest = -1e30f, sum = 0, low = 0, high = 0;
  for (unsigned at = lane; at < count; at += WARP_LANES) {
    const half_bits *key = (const half_bits *)page[at / PAGE_TOKENS] + at % PAGE_TOKENS * width + blockIdx.y * HEAD;
    float score = 0;
    for (unsigned i = 0; i < HEAD; i += CHUNK) {
      float of_key[CHUNK];
      load_chunk(key + i, of_key);
      for (unsigned k = 0; k < CHUNK; k++) score = fmaf(query[i + k], of_key[k], score);
    }
    weight[at] = score = __fmul_rn(score, 0.125f);
    highest = score > highest ? score : highest;
  }
  for (unsigned distance = WARP_LANES / 2; distance > 0; distance /= 2) {
    float other = __shfl_xor_sync(ALL_LANES, highest, (int)distance);
    highest = other > highest ? other : highest;
  }
  for (unsigned at = lane; at < count; at += WARP_LANES) {
    weight[at] = exact_exp(weight[at] - highest);
    sum += weight[at];
  }
  sum = warp_sum(sum);
  __syncwarp();
  for (unsigned at = 0; at < count; at++) {
    const unsigned *value = (const unsigned *)((const half_bits *)page[at / PAGE_TOKENS] +
                                               (PAGE_TOKENS + at % PAGE_TOKENS) * width + blockIdx.y * HEAD);
    unsigned both = value[lane];
    low = fmaf(weight[at], widened((half_bits)both), low);
    high = fmaf(weight[at], widened((half_bits)(both >> 16)), high);
  }
  float *made = to + blockIdx.x * width + blockIdx.y * HEAD + 2 * lane;
  made[0] = rounded(low / sum);
  made[1] = rounded(high / sum);
}

/* A block per row: gate / (1 + e^-gate) x up. from: [row][gate, up][hidden]. */
extern "C" __global__ void llm_gate(const float *from, float *to, unsigned hidden) {
  for (unsigned i = threadIdx.x; i < hidden; i += blockDim.x) {
    float gate = from[blockIdx.x * 2 * hidden + i], up = from[(blockIdx.x * 2 + 1) * hidden + i];
    to[blockIdx.x * hidden + i] = rounded(__fmul_rn(gate / (1 + exact_exp(-gate)), up));
  }
}

/* A warp per row: the token with the highest score, the first of equals, and that score. */
extern "C" __global__ void llm_choose(const float *scores, unsigned *token, float *score, unsigned tokens) {
  unsigned lane = threadIdx.x, best = lane;
  const float *read = scores + blockIdx.x * tokens;
  for (unsigned i = lane; i < tokens; i += WARP_LANES) best = read[i] > read[best] ? i : best;
  float highest = read[best];
  for (unsigned distance = WARP_LANES / 2; distance > 0; distance /= 2) {
    float other = __shfl_down_sync(ALL_LANES, highest, (int)distance);
    unsigned which = __shfl_down_sync(ALL_LANES, best, (int)distance);
    if (lane + distance < WARP_LANES && (other > highest || (other == highest && which < best))) {
      highest = other;
      best = which;
    }
  }
  if (lane) return;
  token[blockIdx.x] = best;
  score[blockIdx.x] = highest;
}
