/* SPDX-License-Identifier: Apache-2.0 */
/* BC6H and BC7 (Khronos Data Format Specification, "BPTC Compressed Texture Image Formats"): 128 bits, lowest first.
 *
 * A block has a mode, which says how its bits are shared out: one to three subsets of the texels with two endpoints
 * each, a pattern that says which texel is in which subset, and an index per texel between its endpoints. The highest
 * bit of the index of one texel of each subset, its anchor, is 0 and not in the block. */
#include <pthread.h>
#include <string.h>

#include "exec/instructions/ops_half.h"
#include "exec/texture/texture_block.h"

#define FLOAT(...)
#define THREE(...)
#define TWO(pattern, anchor) {pattern, anchor},
static const struct {
  uint16_t pattern;
  uint8_t anchor;
} two[64] = {
#include "exec/texture/texture_bptc.def"
};
#undef TWO
#undef THREE
#define TWO(...)
#define THREE(pattern, anchor1, anchor2) {pattern, {anchor1, anchor2}},
static const struct {
  uint32_t pattern;
  uint8_t anchor[2];
} three[64] = {
#include "exec/texture/texture_bptc.def"
};
#undef THREE
#undef FLOAT

/* ---- bits ---- */

typedef struct bits {
  uint64_t word[2];
  uint32_t at;
} bits; /* at: of the next one */

static bits bits_of(const unsigned char *block) {
  bits b = {.at = 0};
  for (uint32_t n = 16; n-- > 0;) b.word[n / 8] = b.word[n / 8] << 8 | block[n];
  return b;
}

static uint32_t peek(const bits *b, uint32_t at, uint32_t count) {
  uint64_t low = at < 64 ? b->word[0] >> at : b->word[1] >> (at - 64);
  if (at && at < 64) low |= b->word[1] << (64 - at);
  return (uint32_t)(low & ((UINT64_C(1) << count) - 1));
}

static uint32_t take(bits *b, uint32_t count) {
  uint32_t value = peek(b, b->at, count);
  b->at += count;
  return value;
}

/* ---- subsets and indices ---- */

static uint32_t subset_of(uint32_t subsets, uint32_t partition, uint32_t n) {
  return subsets == 3 ? three[partition].pattern >> 2 * n & 3 : subsets == 2 ? two[partition].pattern >> n & 1 : 0;
}

/* The index of texel n, of `count` bits but for the anchors', the first of which begins at bit `at`. */
static uint32_t index_of(const bits *b, uint32_t at, uint32_t count, uint32_t subsets, uint32_t partition, uint32_t n) {
  const uint8_t anchors[3] = {0, subsets == 3 ? three[partition].anchor[0] : two[partition].anchor,
                              three[partition].anchor[1]};
  uint32_t before = 0, width = count;
  for (uint32_t s = 0; s < subsets; s++) {
    before += anchors[s] < n;
    width -= anchors[s] == n;
  }
  return peek(b, at + count * n - before, width);
}

static int interpolate(int first, int second, uint32_t index, uint32_t count) {
  static const uint8_t weights[3][16] = {
      {0, 21, 43, 64}, {0, 9, 18, 27, 37, 46, 55, 64}, {0, 4, 9, 13, 17, 21, 26, 30, 34, 38, 43, 47, 51, 55, 60, 64}};
  int weight = weights[count - 2][index];
  return ((64 - weight) * first + weight * second + 32) >> 6;
}

/* ---- BC7 ---- */

/* bits, but for the first */
typedef struct bc7_mode {
  uint8_t subsets, partition, rotation, selection, colour, alpha, p_each, p_shared, index, index2;
} bc7_mode;
static const bc7_mode bc7_modes[8] = {{3, 4, 0, 0, 4, 0, 1, 0, 3, 0}, {2, 6, 0, 0, 6, 0, 0, 1, 3, 0},
                                      {3, 6, 0, 0, 5, 0, 0, 0, 2, 0}, {2, 6, 0, 0, 7, 0, 1, 0, 2, 0},
                                      {1, 0, 2, 1, 5, 6, 0, 0, 2, 3}, {1, 0, 2, 0, 7, 8, 0, 0, 2, 2},
                                      {1, 0, 0, 0, 7, 7, 1, 0, 4, 0}, {2, 6, 0, 0, 5, 5, 1, 0, 2, 0}};

/* The highest bits again below the lowest, to 8 bits. */
static int widen(uint32_t value, uint32_t count) {
  value <<= 8 - count;
  return (int)(value | value >> count);
}

static void bc7_endpoints(const bc7_mode *m, bits *b, int endpoint[6][4]) {
  uint32_t count = 2u * m->subsets, raw[6][4];
  bool more = m->p_each || m->p_shared;
  for (uint32_t c = 0; c < 4; c++)
    for (uint32_t e = 0; e < count; e++) raw[e][c] = take(b, c < 3 ? m->colour : m->alpha);
  for (uint32_t e = 0; more && e < count; e++) {
    uint32_t p = m->p_each || !(e & 1) ? take(b, 1) : raw[e - 1][0] & 1;
    for (uint32_t c = 0; c < 4; c++) raw[e][c] = raw[e][c] << 1 | p;
  }
  for (uint32_t e = 0; e < count; e++)
    for (uint32_t c = 0; c < 4; c++) {
      uint32_t bits = c < 3 ? m->colour : m->alpha;
      endpoint[e][c] = c < 3 || bits ? widen(raw[e][c], bits + more) : 255;
    }
}

void texture_bc7_texel(const unsigned char *block, uint32_t n, float texel[4]) {
  int endpoint[6][4], value[4];
  memset(texel, 0, 4 * sizeof *texel);
  if (!block[0]) return; /* reserved */
  bits b = bits_of(block);
  const bc7_mode *m = &bc7_modes[__builtin_ctz(block[0])];
  take(&b, (uint32_t)__builtin_ctz(block[0]) + 1);
  uint32_t partition = take(&b, m->partition), rotation = take(&b, m->rotation), selection = take(&b, m->selection);
  bc7_endpoints(m, &b, endpoint);
  uint32_t subset = subset_of(m->subsets, partition, n), index[2],
           width[2] = {m->index, m->index2 ? m->index2 : m->index};
  index[0] = index[1] = index_of(&b, b.at, m->index, m->subsets, partition, n);
  if (m->index2) index[1] = index_of(&b, b.at + 16u * m->index - m->subsets, m->index2, m->subsets, partition, n);
  for (uint32_t c = 0; c < 4; c++) {
    uint32_t which = c < 3 ? selection : !selection;
    value[c] = interpolate(endpoint[2 * subset][c], endpoint[2 * subset + 1][c], index[which], width[which]);
  }
  if (rotation) {
    int alpha = value[3];
    value[3] = value[rotation - 1];
    value[rotation - 1] = alpha;
  }
  for (uint32_t c = 0; c < 4; c++) texel[c] = (float)value[c] / 255;
}

/* ---- BC6H ---- */

typedef struct bc6h_mode {
  uint8_t mode, bits, delta[3], subsets;
  const char *layout;
} bc6h_mode;
#undef TWO
#define TWO(...)
#define THREE(...)
#define FLOAT(mode, bits, r, g, b, subsets, layout) {mode, bits, {r, g, b}, subsets, layout},
static const bc6h_mode bc6h_modes[] = {
#include "exec/texture/texture_bptc.def"
};
enum {
  BC6H_MODES = sizeof bc6h_modes / sizeof *bc6h_modes,
  BC6H_BITS = 80,
  BC6H_PARTITION = 77,
  BC6H_INDICES_OF_TWO = 82,
  BC6H_INDICES_OF_ONE = 65
};

typedef struct bit_place {
  uint8_t endpoint, channel, bit;
} bit_place;
static bit_place bc6h_places[BC6H_MODES][BC6H_BITS]; /* where the bits behind the mode's go, */
static uint32_t bc6h_counts[BC6H_MODES];             /* so many */
static pthread_once_t bc6h_once = PTHREAD_ONCE_INIT;

static uint8_t number(const char **text) {
  uint32_t value = 0;
  while (**text >= '0' && **text <= '9') value = value * 10 + (uint32_t)(*(*text)++ - '0');
  return (uint8_t)value;
}

/* Reads "R0:9-0 G2:4 ..." */
static void place_bits(void) {
  for (uint32_t m = 0; m < BC6H_MODES; m++)
    for (const char *at = bc6h_modes[m].layout; *at;) {
      bit_place place = {.channel = *at == 'R' ? 0 : *at == 'G' ? 1 : 2, .endpoint = (uint8_t)(at[1] - '0')};
      at += 3;
      uint8_t last = number(&at);
      place.bit = last;
      if (*at == '-') {
        at++;
        place.bit = number(&at);
      }
      for (;; place.bit = (uint8_t)(place.bit < last ? place.bit + 1 : place.bit - 1)) {
        bc6h_places[m][bc6h_counts[m]++] = place;
        if (place.bit == last) break;
      }
      if (*at == ' ') at++;
    }
}

static int sign_extend(int value, uint32_t count) {
  int sign = 1 << (count - 1);
  return ((value & (2 * sign - 1)) ^ sign) - sign;
}

/* Endpoints as the mode has them: differences from the first one, if that is how they are stored. */
static void bc6h_endpoints(uint32_t m, bits *b, bool is_signed, int endpoint[4][3]) {
  const bc6h_mode *mode = &bc6h_modes[m];
  memset(endpoint, 0, 4 * sizeof *endpoint);
  for (uint32_t n = 0; n < bc6h_counts[m]; n++) {
    bit_place place = bc6h_places[m][n];
    endpoint[place.endpoint][place.channel] |= (int)(take(b, 1) << place.bit);
  }
  for (uint32_t c = 0; c < 3; c++)
    for (uint32_t e = 0; e < 4; e++) {
      int *value = &endpoint[e][c];
      if (e && mode->delta[c])
        *value = (endpoint[0][c] + sign_extend(*value, mode->delta[c])) & ((1 << mode->bits) - 1);
      if (is_signed) *value = sign_extend(*value, mode->bits);
    }
}

/* To 16 bits, or 15 and a sign. */
static int unquantize(int value, uint32_t count, bool is_signed) {
  if (!is_signed)
    return count >= 15 || !value ? value : value == (1 << count) - 1 ? 0xffff : ((value << 15) + 0x4000) >> (count - 1);
  if (count >= 16 || !value) return value;
  int size = value < 0 ? -value : value;
  size = size >= (1 << (count - 1)) - 1 ? 0x7fff : ((size << 15) + 0x4000) >> (count - 1);
  return value < 0 ? -size : size;
}

/* The bits of a half: 0xffff, or 0x7fff, becomes the largest finite one. */
static uint32_t to_half(int value, bool is_signed) {
  if (!is_signed) return (uint32_t)(value * 31 >> 6);
  return value < 0 ? (uint32_t)(-value * 31 >> 5) | 0x8000 : (uint32_t)(value * 31 >> 5);
}

void texture_bc6h_texel(const unsigned char *block, uint32_t n, bool is_signed, float texel[4]) {
  int endpoint[4][3];
  bits b = bits_of(block);
  uint32_t small = (block[0] & 3) < 2, number_of_mode = block[0] & (small ? 3 : 31), m = 0;
  pthread_once(&bc6h_once, place_bits);
  while (m < BC6H_MODES && bc6h_modes[m].mode != number_of_mode) m++;
  texel[0] = texel[1] = texel[2] = 0;
  texel[3] = 1;
  if (m == BC6H_MODES) return; /* reserved */
  take(&b, small ? 2 : 5);
  bc6h_endpoints(m, &b, is_signed, endpoint);
  uint32_t subsets = bc6h_modes[m].subsets, partition = subsets == 2 ? peek(&b, BC6H_PARTITION, 5) : 0,
           width = subsets == 2 ? 3 : 4;
  uint32_t index = index_of(&b, subsets == 2 ? BC6H_INDICES_OF_TWO : BC6H_INDICES_OF_ONE, width, subsets, partition, n);
  uint32_t first = 2 * subset_of(subsets, partition, n), count = bc6h_modes[m].bits;
  for (uint32_t c = 0; c < 3; c++) {
    int low = unquantize(endpoint[first][c], count, is_signed),
        high = unquantize(endpoint[first + 1][c], count, is_signed);
    texel[c] = ops_of_f16(to_half(interpolate(low, high, index, width), is_signed));
  }
}
