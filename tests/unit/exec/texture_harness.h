/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of texture and surface instructions: images in memory, objects, and a kernel around one instruction.
 *
 *   open_instruction("tex.2d.v4.f32.f32 {%f10,%f11,%f12,%f13}, [%h, {%f0,%f1}];");
 *   image i = make_image(EXEC_TEXEL_F32, 1, 2, 8, 8, 1);     texels are filled with a hash, so no two are alike
 *   uint64_t handle = add_texture(&i, &sampler);
 *   fetch(handle, inputs, results, 64);                      thread t gets inputs[t] in %f0-%f3 and %r10-%r13
 *
 * Results are %r20-%r23, which %f10-%f13 are moved to behind an instruction that names them. */
#ifndef FF_TESTS_TEXTURE_HARNESS_H
#define FF_TESTS_TEXTURE_HARNESS_H

#include "core_harness.h"
#include "exec/texture/texture.h"

#define POINTS 256u

typedef union words {
  float f[4];
  uint32_t u[4];
  int32_t s[4];
} words;
typedef struct image {
  exec_texture texture;
  const exec_allocation *memory;
} image;

static kernel_test *test;
static uint64_t given; /* handle, 64 bits for surfaces; inputs; results */

static inline void open_instruction(const char *instruction) {
  char body[4096];
  bool floats = strstr(instruction, "%f10") != NULL;
  snprintf(
      body, sizeof body,
      ".reg .b64 %%h; .reg .pred %%q;\nmov.u32 %%r3, %%tid.x; mul.wide.u32 %%rd1, %%r3, 16; add.s64 %%rd2, %%out, %%rd1;\n"
      "ld.global.u64 %%h, [%%out]; ld.global.v4.b32 {%%r10,%%r11,%%r12,%%r13}, [%%rd2+16];\n"
      "mov.b32 %%f0, %%r10; mov.b32 %%f1, %%r11; mov.b32 %%f2, %%r12; mov.b32 %%f3, %%r13; cvt.u64.u32 %%rd3, %%n; add.s64 %%rd4, %%rd2, %%rd3;\n"
      "%s mov.b32 %%r20, 0; mov.b32 %%r21, 0; mov.b32 %%r22, 0; mov.b32 %%r23, 0;\n%s\n%s"
      "st.global.v4.b32 [%%rd4+16], {%%r20,%%r21,%%r22,%%r23};\n",
      floats ? "mov.f32 %f10, 0f00000000; mov.f32 %f11, 0f00000000; mov.f32 %f12, 0f00000000; mov.f32 %f13, 0f00000000;"
             : "",
      instruction, floats ? "mov.b32 %r20, %f10; mov.b32 %r21, %f11; mov.b32 %r22, %f12; mov.b32 %r23, %f13;\n" : "");
  test = open_body(".global .texref reference;\n.global .surfref surface;", body);
  given = buffer(test, 16 + 2 * POINTS * 16);
}

static inline uint32_t hash(uint32_t x) {
  x = (x ^ x >> 16) * 0x7feb352du;
  x = (x ^ x >> 15) * 0x846ca68bu;
  return x ^ x >> 16;
}

/* One level of an image, as the next of the texture's memory from `at` on. */
static inline void lay_level(image *i, uint64_t *at, uint32_t width, uint32_t height, uint32_t depth) {
  uint64_t pitch = ((uint64_t)width * exec_texel_bytes(&i->texture) + 31) / 32 * 32 + 32;
  i->texture.level[i->texture.level_count++] = (exec_image){
      .address = *at, .pitch = pitch, .slice = pitch * height + 64, .width = width, .height = height, .depth = depth};
  *at += (pitch * height + 64) * depth;
}

static inline image make_levels(exec_texel_type type, uint8_t channels, uint8_t dimensions, uint32_t width,
                                uint32_t height, uint32_t depth, uint32_t levels, bool layers) {
  image i = {.texture = {.resource = EXEC_RESOURCE_ARRAY,
                         .type = type,
                         .channels = channels,
                         .dimensions = dimensions,
                         .layered = layers,
                         .mipmapped = levels > 1}};
  assert_int_equal(exec_memory_allocate(test->memory, 1 << 20, 0, EXEC_MEMORY_DEVICE, "an array", &i.memory, NULL),
                   FF_OK);
  uint64_t at = i.memory->address;
  for (uint32_t l = 0; l < levels; l++)
    lay_level(&i, &at, width >> l ? width >> l : 1, height >> l ? height >> l : 1,
              layers       ? depth
              : depth >> l ? depth >> l
                           : 1);
  i.texture.address = i.memory->address;
  i.texture.bytes = at - i.memory->address;
  i.texture.allocation = i.memory->id;
  unsigned char *bytes = (unsigned char *)(uintptr_t)i.texture.address;
  for (uint64_t n = 0; n < i.texture.bytes; n++) bytes[n] = (unsigned char)hash((uint32_t)n + 77);
  /* near 1 */
  for (uint64_t n = 0; type >= EXEC_TEXEL_F16 && n + 1 < i.texture.bytes; n += 2)
    bytes[n + 1] = (unsigned char)((bytes[n + 1] & 0x83) | 0x38);
  return i;
}

static inline image make_image(exec_texel_type type, uint8_t channels, uint8_t dimensions, uint32_t width,
                               uint32_t height, uint32_t depth) {
  return make_levels(type, channels, dimensions, width, height, depth, 1, false);
}

static inline uint64_t add_texture(const image *i, const exec_sampler *sampler) {
  exec_texture texture = i->texture;
  uint64_t handle;
  ff_error error = {0};
  if (sampler) texture.sampler = *sampler;
  else texture.surface = true;
  if (exec_texture_add(test->memory, &texture, &handle, &error) != FF_OK) fail_msg("%s", error.message);
  return handle;
}

static inline void put_inputs(uint64_t handle, const words *inputs, uint32_t count) {
  *u64_at(given) = handle;
  memcpy((void *)(uintptr_t)(given + 16), inputs, count * sizeof *inputs);
}

static inline void fetch(uint64_t handle, const words *inputs, words *results, uint32_t count) {
  put_inputs(handle, inputs, count);
  run(test, "k", 1, count, given, POINTS * 16);
  memcpy(results, (void *)(uintptr_t)(given + 16 + POINTS * 16), count * sizeof *results);
}

static inline const exec_fault *fetch_fault(uint64_t handle, const words *inputs, uint32_t count) {
  put_inputs(handle, inputs, count);
  return run_fault(test, "k", 1, count, given, POINTS * 16);
}

#endif
