/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor maps in the layout of GPUs: words that CUTLASS's CuTe DSL made of tensors that are known, and words that no
 * map has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "exec/memory/tensor_map.h"

typedef struct raw_map {
  _Alignas(64) uint32_t word[32];
} raw_map;

/* 256 x 128 numbers of two bytes at 0x200000001230, a box of 64 x 32. */
static const raw_map plain = {
    {0x1230, 0x2000, 0x00040312,
     0x20, [8] = 255, [9] = 127, [13] = 63u << 24, [14] = 31, [16] = 0xffffffff, [31] = 0xffffffff}};

static tensor_map own(const raw_map *raw) {
  tensor_map map;
  memcpy(&map, raw, sizeof map);
  assert_null(tensor_map_own(&map));
  assert_true(map.magic == TENSOR_MAP_MAGIC);
  tensor_map again = map;
  assert_null(tensor_map_own(&again)); /* one of farfault's stays as it is */
  assert_memory_equal(&again, &map, sizeof map);
  return map;
}

static void refused(const raw_map *raw, const char *message) {
  tensor_map map;
  memcpy(&map, raw, sizeof map);
  const char *wrong = tensor_map_own(&map);
  assert_non_null(wrong);
  assert_string_equal(wrong, message);
  assert_memory_equal(&map, raw, sizeof map);
}

static void a_tensor_of_two_dimensions(void **state) {
  (void)state;
  tensor_map map = own(&plain);
  tensor_map expected = {.magic = TENSOR_MAP_MAGIC,
                         .address = UINT64_C(0x200000001230),
                         .stride = {512},
                         .last = {255, 127},
                         .box = {64, 32, 1, 1, 1},
                         .step = {1, 1, 1, 1, 1},
                         .type = TENSOR_MAP_F16,
                         .rank = 2};
  assert_memory_equal(&map, &expected, sizeof map);
}

static void five_dimensions_with_strides_of_forty_bits(void **state) {
  (void)state;
  const raw_map raw = {
      {0, 0x2000, 0x00240042, 0x20, 0x40, 0x60, 0x80, 0x8421, 1023, 15, 14, 13, 12, 15u << 24, 0x03020403}};
  tensor_map map = own(&raw);
  assert_int_equal(map.rank, 5);
  assert_int_equal(map.type, TENSOR_MAP_U8);
  for (uint32_t n = 0; n < 4; n++) {
    assert_true(map.stride[n] == (UINT64_C(1) << (36 + n)) + 512 * (n + 1));
    assert_int_equal(map.last[n + 1], 15 - n);
  }
  static const uint16_t box[] = {16, 4, 5, 3, 4};
  assert_memory_equal(map.box, box, sizeof box);
}

static void types_and_swizzles(void **state) {
  (void)state;
  static const uint8_t types[] = {TENSOR_MAP_U8,      TENSOR_MAP_U16, TENSOR_MAP_U32, TENSOR_MAP_S32,
                                  TENSOR_MAP_U64,     TENSOR_MAP_S64, TENSOR_MAP_F16, TENSOR_MAP_F32,
                                  TENSOR_MAP_F32_FTZ, TENSOR_MAP_F64, TENSOR_MAP_BF16};
  for (uint32_t type = 0; type < sizeof types; type++)
    for (uint32_t swizzle = 0; swizzle < 4; swizzle++)
      for (uint32_t promotion = 0; promotion < 4; promotion++) {
        raw_map raw = plain;
        raw.word[2] = 0x12 | type << 7 | swizzle << 13 | promotion << 17;
        tensor_map map = own(&raw);
        assert_int_equal(map.type, types[type]);
        assert_int_equal(map.swizzle, swizzle);
        assert_int_equal(map.rank, 2);
      }
  raw_map raw = plain;
  raw.word[2] = 0x00250392;
  assert_int_equal(own(&raw).type, TENSOR_MAP_TF32);
  raw.word[2] = 0x00250412;
  assert_int_equal(own(&raw).type, TENSOR_MAP_TF32_FTZ);
  raw.word[2] = 0x00250312; /* half precision does not round to TF32 */
  refused(&raw, "there is no tensor map");
}

static void what_is_not_known_is_refused(void **state) {
  (void)state;
  raw_map raw = plain;
  raw.word[2] = 0x00040592;
  refused(&raw, "there is a tensor map of a packed type, which is not implemented,");
  raw.word[2] = 0x002c6392;
  refused(&raw, "there is a tensor map with a swizzle of other atoms, which is not implemented,");
  memset(&raw, 0, sizeof raw);
  refused(&raw, "there is no tensor map");
  memset(&raw, 0xff, sizeof raw);
  refused(&raw, "there is no tensor map");
  static const struct {
    uint32_t word, bit;
  } wrong[] = {{0, 0},  {0, 3},  {1, 25}, {1, 31}, {2, 0},  {2, 1},  {2, 2},   {2, 3},  {2, 11}, {2, 12},
               {2, 15}, {2, 22}, {2, 31}, {7, 16}, {7, 31}, {13, 0}, {13, 23}, {15, 0}, {15, 31}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    raw = plain;
    raw.word[wrong[i].word] ^= 1u << wrong[i].bit;
    refused(&raw, "there is no tensor map");
  }
  raw = plain;
  raw.word[0] = raw.word[1] = 0; /* no address */
  refused(&raw, "there is no tensor map");
  raw = plain;
  raw.word[2] |= 0x70; /* eight dimensions */
  refused(&raw, "there is no tensor map");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_tensor_of_two_dimensions),
      cmocka_unit_test(five_dimensions_with_strides_of_forty_bits),
      cmocka_unit_test(types_and_swizzles),
      cmocka_unit_test(what_is_not_known_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
