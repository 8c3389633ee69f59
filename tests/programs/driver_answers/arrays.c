/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about arrays, texture and surface objects: what is refused. */
#define _GNU_SOURCE
#include "answers.h"


#include "textures.h"

static void objects(void) {
  char text[100];
  answers_context();
  W a = 0, o = 0, word[20] = {0};
  ASK("null", cuArray3DCreate_v2, 0, 0);
  static const array_description shapes[] = {{0, 0, 0, FLOAT, 1, 0},
                                             {4, 0, 0, FLOAT, 3, 0},
                                             {4, 0, 0, FLOAT, 5, 0},
                                             {4, 0, 0, 99, 1, 0},
                                             {4, 0, 0, 0, 1, 0},
                                             {131072, 0, 0, U8, 1, 0},
                                             {131073, 0, 0, U8, 1, 0},
                                             {131072, 2, 0, U8, 1, 0},
                                             {32768, 2, 0, U8, 1, 0},
                                             {131073, 2, 0, U8, 1, 0},
                                             {4, 65536, 0, U8, 1, 0},
                                             {4, 65537, 0, U8, 1, 0},
                                             {4, 131072, 0, U8, 1, 0},
                                             {16384, 2, 2, U8, 1, 0},
                                             {16385, 2, 2, U8, 1, 0},
                                             {4, 0, 2, U8, 1, 0},
                                             {4, 4, 4, U8, 1, 1},
                                             {4, 0, 4, U8, 1, 1},
                                             {4, 0, 0, U8, 1, 1},
                                             {4, 4, 2048, U8, 1, 1},
                                             {4, 4, 2049, U8, 1, 1},
                                             {4, 4, 6, U8, 1, 4},
                                             {4, 4, 5, U8, 1, 4},
                                             {4, 5, 6, U8, 1, 4},
                                             {4, 4, 12, U8, 1, 5},
                                             {4, 4, 13, U8, 1, 5},
                                             {4, 4, 0, U8, 1, 8},
                                             {6, 6, 6, FLOAT, 4, 12},
                                             {6, 6, 6, FLOAT, 4, 14},
                                             {6, 6, 6, FLOAT, 4, 10},
                                             {6, 6, 6, FLOAT, 4, 0xdeadbeef},
                                             {4, 0, 0, U8, 1, 8},
                                             {4, 4, 4, U8, 1, 8},
                                             {4, 4, 0, U8, 1, 2},
                                             {4, 4, 0, U8, 1, 16},
                                             {4, 4, 0, FLOAT, 1, 16},
                                             {4, 4, 0, U8, 1, 32},
                                             {4, 4, 0, U8, 1, 64},
                                             {4, 4, 0, U8, 1, 128},
                                             {4, 4, 0, U8, 1, 256},
                                             {32768, 4, 0, U8, 1, 8},
                                             {32769, 4, 0, U8, 1, 8},
                                             {1ul << 20, 1ul << 20, 0, U8, 1, 0}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    snprintf(text, sizeof text, "%lu %lu %lu format %d times %u flags %u", shapes[i].width, shapes[i].height,
             shapes[i].depth, shapes[i].format, shapes[i].channels, shapes[i].flags);
    if (ASK(text, cuArray3DCreate_v2, &a, &shapes[i])) continue;
    array_description back;
    memset(&back, 0xee, sizeof back);
    ASK(text, cuArray3DGetDescriptor_v2, &back, a);
    say(text, "%lu %lu %lu %d %u %u", back.width, back.height, back.depth, back.format, back.channels, back.flags);
    DO(cuArrayDestroy, a);
  }
  ASK("null", cuArrayDestroy, 0);
  ASK("levels 0", cuMipmappedArrayCreate, word, &shapes[31], 0);
  ASK("levels 9", cuMipmappedArrayCreate, word, &shapes[29], 9);
  a = array_make(8, 8, 0, FLOAT, 1, 0);
  W s = array_make(8, 8, 0, U32, 1, 2), d = answers_memory(1 << 16), u = array_make(8, 8, 0, U8, 4, 0),
    l = array_make(8, 8, 2, FLOAT, 1, 1);
  resource from = {.type = 0, .object = a}, plain = {.type = 0, .object = s}, bytes = {.type = 0, .object = u},
           layers = {.type = 0, .object = l};
  texture t = {.address = {CLAMP, CLAMP, CLAMP}};
  ASK("null", cuTexObjectCreate, 0, &from, &t, 0);
  ASK("null resource", cuTexObjectCreate, &o, 0, &t, 0);
  ASK("null texture", cuTexObjectCreate, &o, &from, 0, 0);
  ASK("", cuTexObjectCreate, &o, &from, &t, 0);
  ASK("layers", cuTexObjectCreate, &o, &layers, &t, 0);
  resource wrong = from;
  wrong.object = 0;
  ASK("null array", cuTexObjectCreate, &o, &wrong, &t, 0);
  wrong = from, wrong.type = 9;
  ASK("type 9", cuTexObjectCreate, &o, &wrong, &t, 0);
  wrong = from, wrong.flags = 1;
  ASK("resource flags 1", cuTexObjectCreate, &o, &wrong, &t, 0);
  for (int i = 0; i < 256; i = i ? i * 2 : 1) {
    texture other = t;
    other.flags = (unsigned)i;
    snprintf(text, sizeof text, "float, flags %d", i);
    ASK(text, cuTexObjectCreate, &o, &from, &other, 0);
    snprintf(text, sizeof text, "bytes, flags %d", i);
    ASK(text, cuTexObjectCreate, &o, &bytes, &other, 0);
    other.filter = 1;
    snprintf(text, sizeof text, "bytes, linear, flags %d", i);
    ASK(text, cuTexObjectCreate, &o, &bytes, &other, 0);
    snprintf(text, sizeof text, "words, linear, flags %d", i);
    ASK(text, cuTexObjectCreate, &o, &plain, &other, 0);
  }
  texture other = t;
  other.filter = 2;
  ASK("filter 2", cuTexObjectCreate, &o, &from, &other, 0);
  other = t, other.address[0] = 4;
  ASK("address 4", cuTexObjectCreate, &o, &from, &other, 0);
  other = t, other.address[0] = WRAP;
  ASK("wrap in texels", cuTexObjectCreate, &o, &from, &other, 0);
  texture back;
  DO(cuTexObjectGetTextureDesc, &back, o);
  say("wrap in texels", "%d %d %d", back.address[0], back.address[1], back.address[2]);
  for (int i = 0; i < 20; i += 3) {
    other = t, other.anisotropy = (unsigned)i;
    snprintf(text, sizeof text, "anisotropy %d", i);
    ASK(text, cuTexObjectCreate, &o, &from, &other, 0);
    ASK(text, cuTexObjectGetTextureDesc, &back, o);
    say(text, "%u", back.anisotropy);
  }
  other = t, other.mipmap_filter = 2;
  ASK("mipmap filter 2", cuTexObjectCreate, &o, &from, &other, 0);
  other = t, other.bias = 100, other.least = 5, other.most = 2;
  ASK("odd levels", cuTexObjectCreate, &o, &from, &other, 0);
  other = t, other.reserved[0] = 1;
  ASK("reserved", cuTexObjectCreate, &o, &from, &other, 0);
  resource linear = {.type = 2, .object = d, .format = FLOAT, .channels = 1, .size = 400};
  ASK("linear", cuTexObjectCreate, &o, &linear, &t, 0);
  linear.object = d + 4;
  ASK("linear, odd", cuTexObjectCreate, &o, &linear, &t, 0);
  linear.object = d + 256;
  ASK("linear, 256", cuTexObjectCreate, &o, &linear, &t, 0);
  linear.object = d, linear.size = 0;
  ASK("linear, nothing", cuTexObjectCreate, &o, &linear, &t, 0);
  linear.size = 1 << 20;
  ASK("linear, past the end", cuTexObjectCreate, &o, &linear, &t, 0);
  linear.size = 401;
  ASK("linear, odd size", cuTexObjectCreate, &o, &linear, &t, 0);
  linear.size = 400, linear.channels = 3;
  ASK("linear, three channels", cuTexObjectCreate, &o, &linear, &t, 0);
  linear.channels = 1, linear.object = 0;
  ASK("linear, null", cuTexObjectCreate, &o, &linear, &t, 0);
  linear.object = d;
  other = t, other.filter = 1;
  ASK("linear, linear filter", cuTexObjectCreate, &o, &linear, &other, 0);
  other = t, other.flags = NORMALIZED;
  ASK("linear, normalised", cuTexObjectCreate, &o, &linear, &other, 0);
  resource plane = {.type = 3, .object = d, .format = FLOAT, .channels = 1, .size = 8, .height = 4, .pitch = 64};
  ASK("plane", cuTexObjectCreate, &o, &plane, &t, 0);
  plane.pitch = 36;
  ASK("plane, pitch 36", cuTexObjectCreate, &o, &plane, &t, 0);
  plane.pitch = 32;
  ASK("plane, pitch 32", cuTexObjectCreate, &o, &plane, &t, 0);
  plane.pitch = 0;
  ASK("plane, no pitch", cuTexObjectCreate, &o, &plane, &t, 0);
  plane.pitch = 64, plane.height = 0;
  ASK("plane, no height", cuTexObjectCreate, &o, &plane, &t, 0);
  plane.height = 65001;
  ASK("plane, too high", cuTexObjectCreate, &o, &plane, &t, 0);
  plane.height = 4, plane.size = 17;
  ASK("plane, wider than its pitch", cuTexObjectCreate, &o, &plane, &t, 0);
  plane.size = 8, plane.object = d + 4;
  ASK("plane, odd", cuTexObjectCreate, &o, &plane, &t, 0);
  plane.object = d + 32;
  ASK("plane, 32", cuTexObjectCreate, &o, &plane, &t, 0);
  ASK("null", cuSurfObjectCreate, 0, &plain);
  ASK("", cuSurfObjectCreate, &o, &plain);
  ASK("array without flag", cuSurfObjectCreate, &o, &from);
  ASK("linear", cuSurfObjectCreate, &o, &linear);
  plain.object = 0;
  ASK("null array", cuSurfObjectCreate, &o, &plain);
  ASK("0", cuTexObjectDestroy, 0);
  ASK("0", cuSurfObjectDestroy, 0);
  ASK("null", cuTexObjectGetResourceDesc, 0, o);
  W copy[25] = {0};
  static char host[4096];
  copy[4] = 1, copy[5] = (W)host, copy[9] = 32, copy[10] = 8, copy[15] = 3, copy[18] = a, copy[22] = 32, copy[23] = 8,
  copy[24] = 1;
  ASK("whole", cuMemcpy3D_v2, copy);
  copy[22] = 33;
  ASK("too wide", cuMemcpy3D_v2, copy);
  copy[22] = 30;
  ASK("part of a texel", cuMemcpy3D_v2, copy);
  copy[22] = 28, copy[11] = 2;
  ASK("within a texel", cuMemcpy3D_v2, copy);
  copy[11] = 4;
  ASK("a texel on", cuMemcpy3D_v2, copy);
  copy[11] = 0, copy[23] = 9;
  ASK("too high", cuMemcpy3D_v2, copy);
  copy[23] = 8, copy[24] = 2;
  ASK("too deep", cuMemcpy3D_v2, copy);
  copy[24] = 0;
  ASK("no depth", cuMemcpy3D_v2, copy);
  copy[24] = 1, copy[9] = 16;
  ASK("small pitch", cuMemcpy3D_v2, copy);
  copy[9] = 0;
  ASK("no pitch", cuMemcpy3D_v2, copy);
  copy[4] = 7;
  ASK("memory type 7", cuMemcpy3D_v2, copy);
  copy[4] = 1, copy[18] = 0;
  ASK("null array", cuMemcpy3D_v2, copy);
  ASK("null", cuMemcpy3D_v2, 0);
  W flat[16] = {0}; /* CUDA_MEMCPY2D */
  flat[2] = 1, flat[3] = (W)host, flat[6] = 64, flat[9] = 2, flat[11] = d, flat[13] = 64, flat[14] = 32, flat[15] = 4;
  ASK("whole", cuMemcpy2D_v2, flat);
  flat[6] = 16;
  ASK("small pitch", cuMemcpy2D_v2, flat);
  ASK("small pitch", cuMemcpy2DUnaligned_v2, flat);
  flat[6] = 64, flat[13] = 0;
  ASK("no pitch", cuMemcpy2D_v2, flat);
  flat[13] = 33;
  ASK("odd pitch", cuMemcpy2D_v2, flat);
  ASK("odd pitch", cuMemcpy2DUnaligned_v2, flat);
  flat[13] = 1ul << 31;
  ASK("largest pitch", cuMemcpy2D_v2, flat);
  flat[13] = 64, flat[15] = 0;
  ASK("no height", cuMemcpy2D_v2, flat);
  flat[15] = 4, flat[14] = 0;
  ASK("no width", cuMemcpy2D_v2, flat);
  flat[14] = 32, flat[15] = 2000;
  ASK("past the end", cuMemcpy2D_v2, flat);
  flat[15] = 4, flat[9] = 4, flat[11] = d;
  ASK("unified", cuMemcpy2D_v2, flat);
  flat[9] = 0;
  ASK("memory type 0", cuMemcpy2D_v2, flat);
  flat[9] = 1, flat[10] = (W)host + 2048;
  ASK("host to host", cuMemcpy2D_v2, flat);
  ASK("null", cuMemcpy2D_v2, 0);
  ASK("", cuMemcpyAtoD_v2, d, a, 0, 32);
  ASK("too many", cuMemcpyAtoD_v2, d, a, 0, 257);
  ASK("odd", cuMemcpyAtoD_v2, d, a, 2, 30);
  ASK("", cuMemcpyDtoA_v2, a, 0, d, 32);
  ASK("", cuMemcpyHtoA_v2, a, 0, host, 32);
  ASK("null", cuMemcpyHtoA_v2, a, 0, 0, 32);
  ASK("", cuMemcpyAtoH_v2, host, a, 0, 32);
  ASK("", cuMemcpyAtoA_v2, a, 0, a, 64, 32);
}

const section sections_arrays[] = {{"objects", objects}, {NULL, NULL}};
