/* SPDX-License-Identifier: Apache-2.0 */
/* Block compression: blocks made by hand from the formats' definitions, tables and formulas of BC1 to BC5 texel by
 * texel, and of BC6H and BC7 sums over many blocks that another decoder gives as well. */
#include <math.h>

#include "texture_harness.h"

#include "exec/instructions/ops_half.h"
#include "exec/texture/texture_block.h"

static void expect_texel(exec_blocks format, const unsigned char *block, uint32_t n, double r, double g, double b,
                         double a) {
  const double want[4] = {r, g, b, a};
  float got[4];
  texture_block_texel(format, block, n % 4, n / 4, got);
  for (int c = 0; c < 4; c++)
    if (!(fabs(got[c] - want[c]) <= 6e-8 * fmax(1, fabs(want[c]))))
      fail_msg("format %d, texel %u, channel %d: %.9g, not %.9g", format, n, c, (double)got[c], want[c]);
}

/* ---- BC1 to BC5 ---- */

/* The example of the specification: (29, 60, 1) and (20, 2, 30); texels 0 to 3 of each row have codes 0 to 3. */
static const unsigned char colours[8] = {0x81, 0xef, 0x5e, 0xa0, 0xe4, 0xe4, 0xe4, 0xe4},
                           swapped[8] = {0x5e, 0xa0, 0x81, 0xef, 0xe4, 0xe4, 0xe4, 0xe4};

static void put_eight(unsigned char *to, const unsigned char *from) { memcpy(to, from, 8); }

static void expect_four_colours(exec_blocks format, const unsigned char *block, uint32_t n, double alpha) {
  expect_texel(format, block, n, 29.0 / 31, 60.0 / 63, 1.0 / 31, alpha);
  expect_texel(format, block, n + 1, 20.0 / 31, 2.0 / 63, 30.0 / 31, alpha);
  expect_texel(format, block, n + 2, 78.0 / 93, 122.0 / 189, 32.0 / 93, alpha);
  expect_texel(format, block, n + 3, 69.0 / 93, 64.0 / 189, 61.0 / 93, alpha);
}

static void bc1_to_bc3(void **state) {
  unsigned char block[16];
  expect_four_colours(EXEC_BLOCKS_BC1, colours, 4, 1);
  expect_texel(EXEC_BLOCKS_BC1, swapped, 12, 20.0 / 31, 2.0 / 63, 30.0 / 31, 1);
  expect_texel(EXEC_BLOCKS_BC1, swapped, 13, 29.0 / 31, 60.0 / 63, 1.0 / 31, 1);
  expect_texel(EXEC_BLOCKS_BC1, swapped, 14, 49.0 / 62, 62.0 / 126, 31.0 / 62, 1);
  expect_texel(EXEC_BLOCKS_BC1, swapped, 15, 0, 0, 0, 0);
  for (int n = 0; n < 8; n++) block[n] = (unsigned char)(n | (15 - n) << 4);
  put_eight(block + 8, colours);
  expect_texel(EXEC_BLOCKS_BC2, block, 4, 29.0 / 31, 60.0 / 63, 1.0 / 31, 2.0 / 15);
  expect_texel(EXEC_BLOCKS_BC2, block, 5, 20.0 / 31, 2.0 / 63, 30.0 / 31, 13.0 / 15);
  put_eight(block + 8, swapped); /* always four colours */
  expect_texel(EXEC_BLOCKS_BC2, block, 15, 78.0 / 93, 122.0 / 189, 32.0 / 93, 8.0 / 15);
  memset(block, 0, 8);
  block[0] = 200, block[1] = 60;
  put_eight(block + 8, colours);
  expect_four_colours(EXEC_BLOCKS_BC3, block, 8, 200.0 / 255);
  put_eight(block + 8, swapped);
  expect_texel(EXEC_BLOCKS_BC3, block, 3, 78.0 / 93, 122.0 / 189, 32.0 / 93, 200.0 / 255);
}

/* Texel n of one channel has code n % 8. */
static void put_codes(unsigned char *block, uint8_t first, uint8_t second) {
  /* 0, 1, 2 ... 7 in three bits each, twice */
  static const unsigned char codes[6] = {0x88, 0xc6, 0xfa, 0x88, 0xc6, 0xfa};
  block[0] = first, block[1] = second;
  memcpy(block + 2, codes, 6);
}

static void bc4_and_bc5(void **state) {
  unsigned char block[16];
  for (uint32_t n = 0; n < 16; n++) {
    uint32_t code = n % 8;
    put_codes(block, 240, 100);
    put_codes(block + 8, 30, 230);
    double more = code == 0 ? 240 : code == 1 ? 100 : ((8 - code) * 240 + (code - 1) * 100) / 7.0;
    double less = code == 0   ? 30
                  : code == 1 ? 230
                  : code == 6 ? 0
                  : code == 7 ? 255
                              : ((6 - code) * 30 + (code - 1) * 230) / 5.0;
    expect_texel(EXEC_BLOCKS_BC4, block, n, more / 255, 0, 0, 1);
    expect_texel(EXEC_BLOCKS_BC5, block, n, more / 255, less / 255, 0, 1);
    expect_texel(EXEC_BLOCKS_BC4, block + 8, n, less / 255, 0, 0, 1);
    put_codes(block, 90, (uint8_t)-128); /* -128 is -127 */
    put_codes(block + 8, (uint8_t)-50, 77);
    more = code == 0 ? 90 : code == 1 ? -127 : ((8.0 - code) * 90 + (code - 1.0) * -127) / 7.0;
    less = code == 0   ? -50
           : code == 1 ? 77
           : code == 6 ? -127
           : code == 7 ? 127
                       : ((6.0 - code) * -50 + (code - 1.0) * 77) / 5.0;
    expect_texel(EXEC_BLOCKS_BC4_SIGNED, block, n, more / 127, 0, 0, 1);
    expect_texel(EXEC_BLOCKS_BC5_SIGNED, block, n, more / 127, less / 127, 0, 1);
  }
  put_codes(block, 9, 9); /* not larger */
  expect_texel(EXEC_BLOCKS_BC4, block, 7, 1, 0, 0, 1);
}

/* ---- BC7 and BC6H by hand: bits from the lowest on ---- */

typedef struct writer {
  unsigned char block[16];
  uint32_t at;
} writer;

static void put(writer *w, uint32_t count, uint32_t value) {
  for (uint32_t n = 0; n < count; n++, w->at++) w->block[w->at / 8] |= (unsigned char)((value >> n & 1) << w->at % 8);
}

static void expect_bytes(const writer *w, uint32_t n, int r, int g, int b, int a) {
  expect_texel(EXEC_BLOCKS_BC7, w->block, n, r / 255.0, g / 255.0, b / 255.0, a / 255.0);
}

static void bc7_by_hand(void **state) {
  writer six = {.at = 0}; /* one subset, 7 bits and one below them per endpoint, indices of 4 bits */
  put(&six, 7, 1 << 6);
  /* endpoints: 2 * 10c, 2 * (127 - c) + 1 */
  for (uint32_t c = 0; c < 4; c++) put(&six, 7, 10 * c), put(&six, 7, 127 - c);
  put(&six, 1, 0), put(&six, 1, 1);
  put(&six, 3, 0);
  for (uint32_t n = 1; n < 16; n++) put(&six, 4, n);
  assert_int_equal(six.at, 128);
  expect_bytes(&six, 0, 0, 20, 40, 60);
  expect_bytes(&six, 15, 255, 253, 251, 249);
  expect_bytes(&six, 7, (34 * 0 + 30 * 255 + 32) / 64, (34 * 20 + 30 * 253 + 32) / 64, (34 * 40 + 30 * 251 + 32) / 64,
               (34 * 60 + 30 * 249 + 32) / 64);

  writer five = {.at = 0}; /* 7 bits of colour, 8 of alpha, an index each; alpha and green change places */
  put(&five, 6, 1 << 5), put(&five, 2, 2);
  for (uint32_t c = 0; c < 3; c++) put(&five, 7, 0x40 + c), put(&five, 7, 0x20 + c); /* 0x81 + 2c, 0x40 + 2c */
  put(&five, 8, 7), put(&five, 8, 200);
  put(&five, 1, 1);
  for (uint32_t n = 1; n < 16; n++) put(&five, 2, 3);
  put(&five, 1, 0);
  for (uint32_t n = 1; n < 16; n++) put(&five, 2, n == 1 ? 2 : 0);
  assert_int_equal(five.at, 128);
  expect_bytes(&five, 0, (43 * 0x81 + 21 * 0x40 + 32) / 64, 7, (43 * 0x85 + 21 * 0x44 + 32) / 64,
               (43 * 0x83 + 21 * 0x42 + 32) / 64);
  expect_bytes(&five, 1, 0x40, (21 * 7 + 43 * 200 + 32) / 64, 0x44, 0x42);

  /* two subsets by columns (pattern 0), 6 bits and one for both endpoints of a subset, no alpha */
  writer one = {.at = 0};
  put(&one, 2, 2), put(&one, 6, 0);
  for (uint32_t c = 0; c < 3; c++)
    for (uint32_t e = 0; e < 4; e++) put(&one, 6, 16 * e + c);
  put(&one, 2, 2); /* subset 1 */
  put(&one, 2, 0);
  for (uint32_t n = 1; n < 15; n++) put(&one, 3, n == 2 ? 7 : 0);
  put(&one, 2, 0); /* texel 15: the anchor of subset 1 */
  assert_int_equal(one.at, 128);
  expect_bytes(&one, 0, 0, 4, 8, 255);
  expect_bytes(&one, 3, 0x83, 0x87, 0x8b, 255); /* 1000001, and its highest bit again */
  expect_bytes(&one, 2, 0xc3, 0xc7, 0xcb, 255);
  expect_texel(EXEC_BLOCKS_BC7, (const unsigned char[16]){0, 0xff, 0xff}, 5, 0, 0, 0, 0); /* reserved */
}

static void bc6h_by_hand(void **state) {
  writer three = {.at = 0}; /* one subset, 10 bits per endpoint, as they are */
  put(&three, 5, 3);
  for (uint32_t c = 0; c < 3; c++) put(&three, 10, 100 * c);
  for (uint32_t c = 0; c < 3; c++) put(&three, 10, 1023);
  put(&three, 3, 0);
  for (uint32_t n = 1; n < 16; n++) put(&three, 4, n);
  assert_int_equal(three.at, 128);
  uint32_t wide = ((100u << 15) + 0x4000) >> 9, between = (34 * wide + 30 * 0xffff + 32) >> 6;
  expect_texel(EXEC_BLOCKS_BC6H, three.block, 0, 0, ops_of_f16(wide * 31 >> 6),
               ops_of_f16((((200u << 15) + 0x4000) >> 9) * 31 >> 6), 1);
  expect_texel(EXEC_BLOCKS_BC6H, three.block, 15, 65504, 65504, 65504, 1);
  float texel[4];
  texture_block_texel(EXEC_BLOCKS_BC6H, three.block, 3, 1, texel);
  assert_true(texel[1] == ops_of_f16(between * 31 >> 6));
  texture_block_texel(EXEC_BLOCKS_BC6H_SIGNED, three.block, 3, 3, texel); /* 1023 is -1 */
  assert_true(texel[0] == -ops_of_f16((((1u << 15) + 0x4000) >> 9) * 31 >> 5));
  three.block[0] |= 0x10; /* mode 19 */
  expect_texel(EXEC_BLOCKS_BC6H, three.block, 9, 0, 0, 0, 1);
}

/* What bcdec 0.98 gives for the same blocks, all modes among them. */
static void many_blocks(void **state) {
  uint32_t sums[3] = {0};
  for (uint32_t t = 0; t < 8192; t++) {
    unsigned char block[16];
    float texel[4];
    for (uint32_t n = 0; n < 16; n++) block[n] = (unsigned char)hash(16 * t + n);
    unsigned char first = block[0];
    block[0] = (unsigned char)((first & 0xe0) | t % 32);
    for (uint32_t form = 0; form < 2; form++)
      for (uint32_t n = 0; n < 16; n++) {
        texture_block_texel(form ? EXEC_BLOCKS_BC6H_SIGNED : EXEC_BLOCKS_BC6H, block, n % 4, n / 4, texel);
        for (int c = 0; c < 3; c++)
          sums[form] = sums[form] * 31 + (signbit(texel[c]) && texel[c] == 0 ? 0x8000u : ops_f16_rn(texel[c]));
      }
    block[0] = (unsigned char)((first | 1) << t % 8);
    for (uint32_t n = 0; n < 16; n++) {
      texture_block_texel(EXEC_BLOCKS_BC7, block, n % 4, n / 4, texel);
      for (int c = 0; c < 4; c++) sums[2] = sums[2] * 31 + (uint32_t)lrint((double)texel[c] * 255);
    }
  }
  assert_int_equal(sums[0], 0x161dbae9);
  assert_int_equal(sums[1], 0xfa171f17);
  assert_int_equal(sums[2], 0x6470a278);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(bc1_to_bc3), cmocka_unit_test(bc4_and_bc5),
                                     cmocka_unit_test(bc7_by_hand), cmocka_unit_test(bc6h_by_hand),
                                     cmocka_unit_test(many_blocks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
