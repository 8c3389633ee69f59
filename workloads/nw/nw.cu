/* SPDX-License-Identifier: Apache-2.0 */
/* Needleman-Wunsch alignment scores, by tiles on anti-diagonals. A cell needs its left, upper and upper-left
 * neighbours, so the tiles of one anti-diagonal are independent: one launch each, one warp per tile. Inside a tile the
 * warp walks the anti-diagonals in shared memory: lane x has column x, and is one row behind lane x - 1. What two letters are worth together is either
 * compared here (nw_diagonal) or read from a matrix as large as the scores, which the host has made (nw_diagonal_of_matrix), as Rodinia's nw does. */
#include "device.h"

#define TILE 32
#define MATCH 3
#define MISMATCH (-2)
#define GAP 4

typedef int nw_cells[TILE + 1][TILE + 1];

/* The cells above and left of the tile. */
static __device__ __forceinline__ void nw_read_edges(nw_cells &cell, const int *score, unsigned pitch, unsigned left, unsigned top) {
  unsigned x = threadIdx.x;
  cell[0][x + 1] = score[top * pitch + left + x + 1];
  cell[x + 1][0] = score[(top + x + 1) * pitch + left];
  if (x == 0) cell[0][0] = score[top * pitch + left];
}

/* The cell (x, y) of the tile, of what its two letters are worth. */
static __device__ __forceinline__ void nw_cell(nw_cells &cell, unsigned x, unsigned y, int worth) {
  int diagonal = cell[y][x] + worth;
  int up = cell[y][x + 1] - GAP, side = cell[y + 1][x] - GAP;
  int best = up > side ? up : side;
  cell[y + 1][x + 1] = diagonal > best ? diagonal : best;
}

static __device__ __forceinline__ void nw_write(const nw_cells &cell, int *score, unsigned pitch, unsigned left, unsigned top) {
  unsigned x = threadIdx.x;
  for (unsigned y = 0; y < TILE; y++) score[(top + y + 1) * pitch + left + x + 1] = cell[y + 1][x + 1];
}

/* score has rows and columns 0 .. tiles * TILE; row 0 and column 0 are given. left is the column of the diagonal's
 * first tile; tiles on the diagonal go down and to the left. */
extern "C" __global__ void nw_diagonal(const unsigned char *down, const unsigned char *across, int *score,
                                       unsigned tiles, unsigned first_column, unsigned first_row) {
  __shared__ nw_cells cell;
  __shared__ unsigned char row_letter[TILE], column_letter[TILE];
  unsigned pitch = tiles * TILE + 1, x = threadIdx.x;
  unsigned left = (first_column - blockIdx.x) * TILE, top = (first_row + blockIdx.x) * TILE;
  nw_read_edges(cell, score, pitch, left, top);
  row_letter[x] = down[top + x];
  column_letter[x] = across[left + x];
  __syncwarp();
  for (unsigned step = 0; step < 2 * TILE - 1; step++) {
    unsigned y = step - x;
    if (y < TILE) nw_cell(cell, x, y, row_letter[y] == column_letter[x] ? MATCH : MISMATCH);
    __syncwarp();
  }
  nw_write(cell, score, pitch, left, top);
}

/* worth: what row y's and column x's letter are worth at [y + 1][x + 1], rows as long as score's. */
extern "C" __global__ void nw_diagonal_of_matrix(const int *worth, int *score, unsigned tiles, unsigned first_column, unsigned first_row) {
  __shared__ nw_cells cell;
  __shared__ int tile[TILE][TILE];
  unsigned pitch = tiles * TILE + 1, x = threadIdx.x;
  unsigned left = (first_column - blockIdx.x) * TILE, top = (first_row + blockIdx.x) * TILE;
  nw_read_edges(cell, score, pitch, left, top);
  for (unsigned y = 0; y < TILE; y++) tile[y][x] = worth[(top + y + 1) * pitch + left + x + 1];
  __syncwarp();
  for (unsigned step = 0; step < 2 * TILE - 1; step++) {
    unsigned y = step - x;
    if (y < TILE) nw_cell(cell, x, y, tile[y][x]);
    __syncwarp();
  }
  nw_write(cell, score, pitch, left, top);
}
