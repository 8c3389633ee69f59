/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of nw: two random sequences of the same length (rounded up to whole tiles), one launch per anti-diagonal of
 * tiles, the whole score matrix compared with the CPU's. The kernels compare letters, or read what they are worth from a matrix. */
#include "gpu.h"
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TILE 32
#define MATCH 3
#define MISMATCH (-2)
#define GAP 4

extern const char workload_ptx[];

static unsigned char *random_sequence(workload_random *random, size_t length) {
  unsigned char *letters = workload_memory(length, 1);
  for (size_t i = 0; i < length; i++) letters[i] = "ACGT"[workload_random_below(random, 4)];
  return letters;
}

static void set_edges(int *score, size_t pitch) {
  for (size_t i = 0; i < pitch; i++) score[i] = score[i * pitch] = -GAP * (int)i;
}

static int larger(int a, int b) { return a > b ? a : b; }

static void align_on_cpu(const unsigned char *down, const unsigned char *across, int *score, size_t pitch) {
  set_edges(score, pitch);
  for (size_t y = 1; y < pitch; y++)
    for (size_t x = 1; x < pitch; x++) {
      const int *above = score + (y - 1) * pitch + x;
      int diagonal = above[-1] + (down[y - 1] == across[x - 1] ? MATCH : MISMATCH);
      score[y * pitch + x] = larger(diagonal, larger(above[0], score[y * pitch + x - 1]) - GAP);
    }
}

/* What each pair of letters is worth, in a matrix like the scores', whose first row and column nothing reads. */
static int *matrix_of(const unsigned char *down, const unsigned char *across, size_t pitch) {
  int *worth = workload_memory(pitch * pitch, sizeof *worth);
  for (size_t y = 1; y < pitch; y++)
    for (size_t x = 1; x < pitch; x++) worth[y * pitch + x] = down[y - 1] == across[x - 1] ? MATCH : MISMATCH;
  return worth;
}

static void align_on_gpu(const unsigned char *down, const unsigned char *across, int *score, unsigned tiles, int of_matrix) {
  size_t length = (size_t)tiles * TILE, pitch = length + 1, bytes = pitch * pitch * sizeof *score;
  set_edges(score, pitch);
  gpu_open(workload_ptx);
  gpu_kernel kernel = gpu_find_kernel(of_matrix ? "nw_diagonal_of_matrix" : "nw_diagonal");
  gpu_pointer device_down = 0, device_across = 0, device_worth = 0;
  if (of_matrix) {
    int *worth = matrix_of(down, across, pitch);
    device_worth = gpu_upload(worth, bytes);
    free(worth);
  } else {
    device_down = gpu_upload(down, length), device_across = gpu_upload(across, length);
  }
  gpu_pointer device_score = gpu_upload(score, bytes);
  for (unsigned diagonal = 0; diagonal < 2 * tiles - 1; diagonal++) {
    unsigned column = diagonal < tiles ? diagonal : tiles - 1, row = diagonal - column;
    gpu_shape shape = {column - row + 1, 1, TILE, 1};
    if (of_matrix)
      GPU_LAUNCH(kernel, shape, device_worth, device_score, tiles, column, row);
    else
      GPU_LAUNCH(kernel, shape, device_down, device_across, device_score, tiles, column, row);
  }
  gpu_copy_to_host(score, device_score, bytes);
  if (of_matrix)
    gpu_free(device_worth);
  else
    gpu_free(device_down), gpu_free(device_across);
  gpu_free(device_score);
  gpu_close();
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"length", 512, 1, 32768}, {"matrix", 0, 0, 1}};
  workload_arguments(argc, argv, "nw", "aligns two sequences (Needleman-Wunsch)", arguments, 2);
  unsigned tiles = gpu_divide_up((uint64_t)arguments[0].value, TILE);
  size_t length = (size_t)tiles * TILE, cells = (length + 1) * (length + 1);

  workload_random random = {4};
  unsigned char *down = random_sequence(&random, length), *across = random_sequence(&random, length);
  int *expected = workload_memory(cells, sizeof *expected), *score = workload_memory(cells, sizeof *score);
  workload_cpu_begins();
  align_on_cpu(down, across, expected, length + 1);
  workload_cpu_ends();
  align_on_gpu(down, across, score, tiles, (int)arguments[1].value);

  size_t wrong = 0;
  for (size_t i = 0; i < cells; i++) wrong += score[i] != expected[i];
  printf("nw: %zu x %zu letters, score %d\n", length, length, score[cells - 1]);
  free(down), free(across), free(expected), free(score);
  return workload_verdict_exact("nw", cells, wrong);
}
