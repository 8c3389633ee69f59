/* SPDX-License-Identifier: Apache-2.0 */
/* Tracks points of a moving picture: in each frame, a block looks for its point's template in a window around the last place and moves the point to where
 * the normalised correlation is highest. All steps' results (window, sums, scores) go through global memory, point after point, as large windows need
 * it; the template is there too, or in shared memory as Rodinia's heartwall has it. Pixels are whole numbers up to 127 and sides at most 16, so that no
 * sum leaves 32 bits and every score has the same bits everywhere. */
#include "device.h"

#define THREADS 128
#define MOST_SIDE 16 /* of a template */

struct tracker { /* same as in heartwall.c */
  int *x, *y;    /* of each point: the template's upper left corner in the frame */
  int *templates, *windows, *sums, *squares; /* side^2 a point; then area^2 with area = side + 2 radius */
  float *scores; /* (2 radius + 1)^2 a point */
  int side, radius, width, height; /* of template, search, frame */
};

/* windows = the frame around the point. */
static __device__ __forceinline__ void copy_window(const int *frame, int width, int left, int top, int *window, int area) {
  for (int i = (int)threadIdx.x; i < area * area; i += THREADS) window[i] = frame[(top + i / area) * width + left + i % area];
}

/* sums[r][c]: of the window's pixels down to row r and up to column c; squares: of their squares. A thread per column, then one per row. */
static __device__ __forceinline__ void add_up(const int *window, int *sums, int *squares, int area) {
  int sum = 0, square = 0, line = (int)threadIdx.x;
  if (line < area) {
#pragma unroll 1
    for (int i = line; i < area * area; i += area) {
      int pixel = window[i];
      sums[i] = sum += pixel;
      squares[i] = square += pixel * pixel;
    }
  }
  __syncthreads();
  sum = square = 0;
  if (line < area) {
#pragma unroll 1
    for (int i = line * area; i < line * area + area; i++) {
      sums[i] = sum += sums[i];
      squares[i] = square += squares[i];
    }
  }
}

/* Of the box with that upper left corner, from what add_up made. */
static __device__ __forceinline__ int box_of(const int *sums, int area, int row, int column, int side) {
  const int *end = sums + (row + side - 1) * area + column - 1;
  int box = end[side];
  if (column > 0) box -= end[0];
  if (row > 0) box -= end[side - side * area];
  if (row > 0 && column > 0) box += end[-side * area];
  return box;
}

/* The normalised correlation at each displacement, but for the template's own variance, which is the same for all. */
static __device__ __forceinline__ void correlate(const int *pattern, int total, const int *window, const int *sums, const int *squares, float *scores,
                                                 int side, int radius) {
  int area = side + 2 * radius, ways = 2 * radius + 1, pixels = side * side;
  for (int i = (int)threadIdx.x; i < ways * ways; i += THREADS) {
    int row = i / ways, column = i % ways, products = 0;
#pragma unroll 1
    for (int r = 0; r < side; r++)
#pragma unroll 1
      for (int c = 0; c < side; c++) products += pattern[r * side + c] * window[(row + r) * area + column + c];
    int sum = box_of(sums, area, row, column, side), square = box_of(squares, area, row, column, side);
    int covariance = pixels * products - total * sum, variance = pixels * square - sum * sum;
    scores[i] = variance > 0 ? (float)covariance / sqrtf((float)variance) : 0.0f;
  }
}

/* The displacement of the highest score, the first of several; the same for all threads. */
static __device__ __forceinline__ int highest_of(const float *scores, int count) {
  __shared__ float best[THREADS];
  __shared__ int where[THREADS];
  unsigned t = threadIdx.x;
  best[t] = -3.4e38f, where[t] = count;
  for (int i = (int)t; i < count; i += THREADS)
    if (scores[i] > best[t]) best[t] = scores[i], where[t] = i;
  for (unsigned step = THREADS / 2; step > 0; step /= 2) {
    __syncthreads();
    if (t < step && (best[t + step] > best[t] || (best[t + step] == best[t] && where[t + step] < where[t])))
      best[t] = best[t + step], where[t] = where[t + step];
  }
  __syncthreads();
  return where[0];
}

static __device__ __forceinline__ int between(int value, int least, int most) { return value < least ? least : value > most ? most : value; }

/* Templates from the first frame: a block per point. */
extern "C" __global__ void heartwall_first(const int *frame, tracker k) {
  int point = (int)blockIdx.x;
  for (int i = (int)threadIdx.x; i < k.side * k.side; i += THREADS)
    k.templates[point * k.side * k.side + i] = frame[(k.y[point] + i / k.side) * k.width + k.x[point] + i % k.side];
}

template <bool STAGED>
static __device__ __forceinline__ void track(const int *frame, const tracker &k) {
  int point = (int)blockIdx.x, area = k.side + 2 * k.radius, ways = 2 * k.radius + 1, pixels = k.side * k.side;
  int left = between(k.x[point] - k.radius, 0, k.width - area), top = between(k.y[point] - k.radius, 0, k.height - area);
  int *pattern = k.templates + point * pixels, *window = k.windows + point * area * area;
  int *sums = k.sums + point * area * area, *squares = k.squares + point * area * area;
  float *scores = k.scores + point * ways * ways;
  const int *looked_for = pattern;

  copy_window(frame, k.width, left, top, window, area);
  if (STAGED) {
    __shared__ int staged[MOST_SIDE * MOST_SIDE];
    for (int i = (int)threadIdx.x; i < pixels; i += THREADS) staged[i] = pattern[i];
    looked_for = staged;
  }
  __syncthreads();
  add_up(window, sums, squares, area);
  __syncthreads();
  int total = 0;
  for (int i = 0; i < pixels; i++) total += looked_for[i];
  correlate(looked_for, total, window, sums, squares, scores, k.side, k.radius);
  __syncthreads();
  int best = highest_of(scores, ways * ways), row = best / ways, column = best % ways;
  if (threadIdx.x == 0) k.x[point] = left + column, k.y[point] = top + row;
  for (int i = (int)threadIdx.x; i < pixels; i += THREADS) /* the template follows what it finds, slowly */
    pattern[i] = (7 * pattern[i] + window[(row + i / k.side) * area + column + i % k.side] + 4) / 8;
}

extern "C" __global__ void heartwall_track(const int *frame, tracker k) { track<false>(frame, k); }

/* The same; the template that all threads of a block read again and again is in shared memory. */
extern "C" __global__ void heartwall_track_staged(const int *frame, tracker k) { track<true>(frame, k); }
