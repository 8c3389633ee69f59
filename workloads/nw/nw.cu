/* SPDX-License-Identifier: Apache-2.0 */
/* Needleman-Wunsch alignment scores, by tiles on anti-diagonals. A cell needs its left, upper and upper-left
 * neighbours, so the tiles of one anti-diagonal are independent: one launch each, one warp per tile. Inside a tile the
 * warp walks the anti-diagonals in shared memory: lane x has column x, and is one row behind lane x - 1. */
#include "device.h"

#define TILE 32
#define MATCH 3
#define MISMATCH (-2)
#define GAP 4

/* score has rows and columns 0 .. tiles * TILE; row 0 and column 0 are given. left is the column of the diagonal's
 * first tile; tiles on the diagonal go down and to the left. */
extern "C" __global__ void nw_diagonal(const unsigned char *down, const unsigned char *across, int *score,
                                       unsigned tiles, unsigned first_column, unsigned first_row) {
  __shared__ int cell[TILE + 1][TILE + 1];
  __shared__ unsigned char row_letter[TILE], column_letter[TILE];
  unsigned pitch = tiles * TILE + 1, x = threadIdx.x;
  unsigned left = (first_column - blockIdx.x) * TILE, top = (first_row + blockIdx.x) * TILE;

  cell[0][x + 1] = score[top * pitch + left + x + 1];
  cell[x + 1][0] = score[(top + x + 1) * pitch + left];
  if (x == 0) cell[0][0] = score[top * pitch + left];
  row_letter[x] = down[top + x];
  column_letter[x] = across[left + x];
  __syncwarp();
  for (unsigned step = 0; step < 2 * TILE - 1; step++) {
    unsigned y = step - x;
    if (y < TILE) {
      int diagonal = cell[y][x] + (row_letter[y] == column_letter[x] ? MATCH : MISMATCH);
      int up = cell[y][x + 1] - GAP, side = cell[y + 1][x] - GAP;
      int best = up > side ? up : side;
      cell[y + 1][x + 1] = diagonal > best ? diagonal : best;
    }
    __syncwarp();
  }
  for (unsigned y = 0; y < TILE; y++) score[(top + y + 1) * pitch + left + x + 1] = cell[y + 1][x + 1];
}
