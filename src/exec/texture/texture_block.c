/* SPDX-License-Identifier: Apache-2.0 */
/* BC1 to BC5. Texel n of a block is (n % 4, n / 4); numbers in a block are little-endian. */
#include "exec/texture/texture_block.h"

static uint64_t little(const unsigned char *bytes, uint32_t count) {
  uint64_t value = 0;
  while (count--) value = value << 8 | bytes[count];
  return value;
}

/* ---- colours: two of 5, 6 and 5 bits, and two bits per texel ---- */

/* What of each endpoint, in sixths. */
static const uint8_t thirds[4][2] = {{6, 0}, {0, 6}, {4, 2}, {2, 4}}, halves[4][2] = {{6, 0}, {0, 6}, {3, 3}, {0, 0}};

/* opaque: not BC1, whose first endpoint is the larger one where all colours are, so that the fourth is black without
 * alpha otherwise. */
static void colour(const unsigned char *block, uint32_t n, bool opaque, float texel[4]) {
  static const struct { uint8_t shift, most; } channels[3] = {{11, 31}, {5, 63}, {0, 31}};
  uint32_t first = (uint32_t)little(block, 2), second = (uint32_t)little(block + 2, 2),
           code = little(block + 4, 4) >> 2 * n & 3;
  bool four = opaque || first > second;
  const uint8_t *part = (four ? thirds : halves)[code];
  for (uint32_t c = 0; c < 3; c++) {
    uint32_t a = first >> channels[c].shift & channels[c].most, b = second >> channels[c].shift & channels[c].most;
    texel[c] = (float)((part[0] * a + part[1] * b) / (6.0 * channels[c].most));
  }
  texel[3] = !four && code == 3 ? 0 : 1;
}

/* ---- one channel: two bytes, and three bits per texel ---- */

static float channel(const unsigned char *block, uint32_t n, bool is_signed) {
  uint32_t code = (uint32_t)(little(block + 2, 6) >> 3 * n & 7);
  int first = is_signed ? (int8_t)block[0] : block[0], second = is_signed ? (int8_t)block[1] : block[1],
      most = is_signed ? 127 : 255;
  bool eight = first > second;
  if (first < -127) first = -127;
  if (second < -127) second = -127;
  if (code < 2) return (float)((code ? second : first) / (double)most);
  if (!eight && code >= 6) return code == 7 ? 1 : is_signed ? -1 : 0;
  int steps = eight ? 7 : 5, part = (int)code - 1;
  return (float)(((steps - part) * first + part * second) / ((double)steps * most));
}

void texture_block_texel(exec_blocks format, const unsigned char *block, uint32_t x, uint32_t y, float texel[4]) {
  uint32_t n = 4 * y + x;
  bool is_signed = format == EXEC_BLOCKS_BC4_SIGNED || format == EXEC_BLOCKS_BC5_SIGNED;
  switch (format) {
  case EXEC_BLOCKS_BC1: colour(block, n, false, texel); break;
  case EXEC_BLOCKS_BC2:
    colour(block + 8, n, true, texel);
    texel[3] = (float)((double)(little(block, 8) >> 4 * n & 15) / 15.0);
    break;
  case EXEC_BLOCKS_BC3:
    colour(block + 8, n, true, texel);
    texel[3] = channel(block, n, false);
    break;
  case EXEC_BLOCKS_BC6H:
  case EXEC_BLOCKS_BC6H_SIGNED: texture_bc6h_texel(block, n, format == EXEC_BLOCKS_BC6H_SIGNED, texel); break;
  case EXEC_BLOCKS_BC7: texture_bc7_texel(block, n, texel); break;
  default: /* BC4, BC5 */
    texel[0] = channel(block, n, is_signed);
    texel[1] = format == EXEC_BLOCKS_BC5 || format == EXEC_BLOCKS_BC5_SIGNED ? channel(block + 8, n, is_signed) : 0;
    texel[2] = 0;
    texel[3] = 1;
  }
}
