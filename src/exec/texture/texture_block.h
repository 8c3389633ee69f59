/* SPDX-License-Identifier: Apache-2.0 */
/* Block-compressed formats: BC1 to BC7, 4 by 4 texels in 8 or 16 bytes (Khronos Data Format Specification: "S3TC",
 * "RGTC" and "BPTC Compressed Texture Image Formats"). Pure functions of a block; any bytes are a block. */
#ifndef FF_EXEC_TEXTURE_BLOCK_H
#define FF_EXEC_TEXTURE_BLOCK_H

#include "exec/texture/texture.h"

/* Texel (x, y) of the block, each from 0 to 3, as red, green, blue, alpha; a colour that the format does not have is 0,
 * its alpha 1. BC1 to BC5 are computed exactly and rounded once. Not linearised: whether the colours are sRGB's is not
 * in the block. */
void texture_block_texel(exec_blocks format, const unsigned char *block, uint32_t x, uint32_t y, float texel[4]);

/* texture_bptc.c */
void texture_bc6h_texel(const unsigned char *block, uint32_t n, bool is_signed, float texel[4]);
void texture_bc7_texel(const unsigned char *block, uint32_t n, float texel[4]);

#endif
