/* SPDX-License-Identifier: Apache-2.0 */
/* Channel formats with a number of their own: normalised integers and block compression (CUDA Driver API,
 * CUarray_format; the runtime's cudaChannelFormatKind has the same ones in the same order, from other numbers on). */
#include "driver/engine/engine_array.h"

/* CU_AD_FORMAT_BC1_UNORM ... */
enum { FIRST_BLOCKS = 0x91, LAST_BLOCKS = 0x9e, FIRST_NORMALIZED = 0xc0, LAST_NORMALIZED = 0xcb };

static const struct {
  exec_blocks blocks;
  bool srgb;
} compressed[] = {{EXEC_BLOCKS_BC1, false},        {EXEC_BLOCKS_BC1, true},         {EXEC_BLOCKS_BC2, false},
                  {EXEC_BLOCKS_BC2, true},         {EXEC_BLOCKS_BC3, false},        {EXEC_BLOCKS_BC3, true},
                  {EXEC_BLOCKS_BC4, false},        {EXEC_BLOCKS_BC4_SIGNED, false}, {EXEC_BLOCKS_BC5, false},
                  {EXEC_BLOCKS_BC5_SIGNED, false}, {EXEC_BLOCKS_BC6H, false},       {EXEC_BLOCKS_BC6H_SIGNED, false},
                  {EXEC_BLOCKS_BC7, false},        {EXEC_BLOCKS_BC7, true}};
_Static_assert(sizeof compressed / sizeof *compressed == LAST_BLOCKS - FIRST_BLOCKS + 1, "one each");

engine_format engine_format_of_blocks(exec_blocks blocks, bool srgb) {
  static const struct {
    exec_texel_type type;
    uint32_t channels;
  } inside[] = {{EXEC_TEXEL_COUNT, 0},
#define X(name, bytes, channels, type, may_be_srgb) {EXEC_TEXEL_##type, channels},
                EXEC_BLOCK_FORMATS(X)
#undef X
  };
  return (engine_format){
      .type = inside[blocks].type, .channels = inside[blocks].channels, .blocks = blocks, .srgb = srgb};
}

bool engine_format_numbered(unsigned number, engine_format *format) {
  static const exec_texel_type types[] = {EXEC_TEXEL_U8, EXEC_TEXEL_U16, EXEC_TEXEL_S8, EXEC_TEXEL_S16};
  if (number >= FIRST_BLOCKS && number <= LAST_BLOCKS) {
    *format = engine_format_of_blocks(compressed[number - FIRST_BLOCKS].blocks, compressed[number - FIRST_BLOCKS].srgb);
    return true;
  }
  if (number < FIRST_NORMALIZED || number > LAST_NORMALIZED) return false;
  uint32_t n = number - FIRST_NORMALIZED;
  *format = (engine_format){.type = types[n / 3], .channels = 1u << n % 3, .normalized = true};
  return true;
}

unsigned engine_format_number(engine_format format) {
  for (unsigned number = FIRST_BLOCKS; number <= LAST_NORMALIZED; number++) {
    engine_format one;
    if (!engine_format_numbered(number, &one) || one.blocks != format.blocks || one.srgb != format.srgb) continue;
    if (one.type == format.type && one.channels == format.channels && one.normalized == format.normalized)
      return number;
  }
  return 0;
}

uint32_t engine_format_channels(engine_format format) {
  return format.type == EXEC_TEXEL_F16 && format.blocks ? 3 : format.channels;
}
