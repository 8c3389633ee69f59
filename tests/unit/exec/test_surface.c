/* SPDX-License-Identifier: Apache-2.0 */
/* Surface loads, stores and reductions; what handles that are none, freed memory, and places outside lead to;
 * references; what the access stream and declared uses see of textures and surfaces. */
#include <math.h>

#include "texture_harness.h"

static unsigned char *byte_of(const image *i, uint64_t x, uint64_t y, uint64_t z) {
  const exec_image *level = &i->texture.level[0];
  return (unsigned char *)(uintptr_t)(level->address + z * level->slice + y * level->pitch + x);
}

/* ---- moving bytes ---- */

static void test_loads(void **state) {
  static const struct {
    const char *code;
    uint32_t bytes;
    uint8_t dimensions;
    bool layers;
  } cases[] = {
      {"suld.b.1d.b32.trap %r20, [%h, {%r10}];", 4, 1, false},
      {"suld.b.2d.b32.trap %r20, [%h, {%r10,%r11}];", 4, 2, false},
      {"suld.b.2d.v2.b32.trap {%r20,%r21}, [%h, {%r10,%r11}];", 8, 2, false},
      {"suld.b.2d.v4.b32.trap {%r20,%r21,%r22,%r23}, [%h, {%r10,%r11}];", 16, 2, false},
      {"suld.b.3d.b8.trap %rs1, [%h, {%r10,%r11,%r12,%r12}]; cvt.u32.u16 %r20, %rs1;", 1, 3, false},
      {"suld.b.3d.v2.b16.trap {%rs1,%rs2}, [%h, {%r10,%r11,%r12,%r12}]; mov.b32 %r20, {%rs1,%rs2};", 4, 3, false},
      {"suld.b.2d.cg.b64.trap %rd5, [%h, {%r10,%r11}]; mov.b64 {%r20,%r21}, %rd5;", 8, 2, false},
      {"suld.b.2d.v2.b64.trap {%rd5,%rd6}, [%h, {%r10,%r11}]; mov.b64 {%r20,%r21}, %rd5; mov.b64 {%r22,%r23}, %rd6;",
       16, 2, false},
      {"suld.b.a1d.b32.trap %r20, [%h, {%r12,%r10}];", 4, 1, true},
      {"suld.b.a2d.v4.b8.trap {%rs1,%rs2,%rs3,%rs4}, [%h, {%r12,%r10,%r11,%r11}]; cvt.u32.u16 %r20, %rs1; cvt.u32.u16 %r21, %rs4; shl.b32 %r21, %r21, 8; or.b32 %r20, %r20, %r21; mov.u32 %r21, 0;",
       4, 2, true}};
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    words points[64], got[64];
    open_instruction(cases[n].code);
    image i = make_levels(EXEC_TEXEL_U32, 4, cases[n].dimensions, 8, cases[n].dimensions > 1 ? 5 : 1,
                          cases[n].dimensions > 2 || cases[n].layers ? 3 : 1, 1, cases[n].layers);
    for (uint32_t p = 0; p < 64; p++)
      points[p] = (words){.u = {hash(p) % (128 / cases[n].bytes) * cases[n].bytes, cases[n].dimensions > 1 ? p % 5 : 0,
                                cases[n].dimensions > 2 || cases[n].layers ? p % 3 : 0}};
    fetch(add_texture(&i, NULL), points, got, 64);
    for (uint32_t p = 0; p < 64; p++) {
      words want = {.u = {0}};
      const unsigned char *from = byte_of(&i, points[p].u[0], points[p].u[1], points[p].u[2]);
      memcpy(&want, from, cases[n].bytes);
      if (strstr(cases[n].code, "v4.b8")) want.u[0] = from[0] | (uint32_t)from[3] << 8;
      if (memcmp(&want, &got[p], sizeof want))
        fail_msg("%s, point %u: %x %x %x %x", cases[n].code, p, got[p].u[0], got[p].u[1], got[p].u[2], got[p].u[3]);
    }
  }
}

/* What is outside: the nearest place, or nothing. */
static void test_bounds(void **state) {
  words points[100], got[100];
  open_instruction("suld.b.2d.b32.clamp %r20, [%h, {%r10,%r11}]; suld.b.2d.b32.zero %r21, [%h, {%r10,%r11}];");
  image i = make_image(EXEC_TEXEL_F32, 1, 2, 6, 4, 1);
  for (int n = 0; n < 100; n++) points[n] = (words){.s = {4 * (n % 10 - 2), n / 10 - 3}};
  points[99] = (words){.s = {INT32_MIN, INT32_MAX}};
  fetch(add_texture(&i, NULL), points, got, 100);
  for (int n = 0; n < 100; n++) {
    int x = points[n].s[0], y = points[n].s[1],
        near_x = x < 0    ? 0
                 : x > 20 ? 20
                          : x,
        near_y = y < 0   ? 0
                 : y > 3 ? 3
                         : y;
    uint32_t want;
    memcpy(&want, byte_of(&i, (uint64_t)near_x, (uint64_t)near_y, 0), 4);
    assert_int_equal(got[n].u[0], want);
    assert_int_equal(got[n].u[1], x == near_x && y == near_y ? want : 0);
  }
}

static void test_stores(void **state) {
  words points[64], got[64];
  open_instruction(
      "sust.b.2d.v2.b16.zero [%h, {%r10,%r11}], {%rs1,%rs2};\ncvt.u16.u32 %rs1, %r12; cvt.u16.u32 %rs2, %r13; sust.b.2d.v2.b16.zero [%h, {%r10,%r11}], {%rs1,%rs2};");
  image i = make_image(EXEC_TEXEL_U16, 2, 2, 8, 8, 1);
  for (uint32_t n = 0; n < 64; n++) points[n] = (words){.u = {n % 8 * 4, n / 8, n * 3, n * 5}};
  points[9].s[0] = -4;
  points[10].s[1] = 8;
  unsigned char kept[8];
  memcpy(kept, byte_of(&i, 4, 1, 0), 8);
  fetch(add_texture(&i, NULL), points, got, 64);
  for (uint32_t n = 0; n < 64; n++) {
    if (n == 9 || n == 10) continue;
    uint16_t pair[2] = {(uint16_t)(n * 3), (uint16_t)(n * 5)};
    assert_memory_equal(byte_of(&i, n % 8 * 4, n / 8, 0), pair, 4);
  }
  assert_memory_equal(byte_of(&i, 4, 1, 0), kept, 8);
}

/* Formatted stores convert, and x counts texels. */
static void test_formatted_stores(void **state) {
  words point[1] = {{.f = {1.5f, -2, 70000, 0.1f}}}, got[1];
  const char *code = "sust.p.2d.v4.b32.trap [%h, {1, 2}], {%r10,%r11,%r12,%r13};";
  open_instruction(code);
  image i = make_image(EXEC_TEXEL_F16, 4, 2, 4, 4, 1);
  fetch(add_texture(&i, NULL), point, got, 1);
  assert_memory_equal(byte_of(&i, 8, 2, 0), ((uint16_t[4]){0x3e00, 0xc000, 0x7c00, 0x2e66}), 8);
  open_instruction(code);
  i = make_image(EXEC_TEXEL_S8, 2, 2, 4, 4, 1);
  fetch(add_texture(&i, NULL), &(words){.s = {-200, 100, 5, 6}}, got, 1);
  assert_memory_equal(byte_of(&i, 2, 2, 0), ((int8_t[2]){-128, 100}), 2);
  /* numbers, where the format is normalised */
  static const struct {
    exec_texel_type type;
    uint32_t bytes;
    unsigned char want[8];
  } cases[] = {{EXEC_TEXEL_U8, 4, {128, 0, 255, 0}},
               {EXEC_TEXEL_S8, 4, {64, 0x81, 127, 0}},
               {EXEC_TEXEL_U16, 8, {0, 0x80, 0, 0, 0xff, 0xff, 0, 0}},
               {EXEC_TEXEL_S16, 8, {0, 0x40, 1, 0x80, 0xff, 0x7f, 0, 0}}};
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    open_instruction(code);
    i = make_image(cases[n].type, 4, 2, 4, 4, 1);
    i.texture.normalized = true;
    fetch(add_texture(&i, NULL), &(words){.f = {0.5f, -2, 70000, NAN}}, got, 1);
    assert_memory_equal(byte_of(&i, cases[n].bytes, 2, 0), cases[n].want, cases[n].bytes);
  }
}

static void test_reductions(void **state) {
  words points[64], got[64];
  open_instruction(
      "sured.b.add.2d.u32.trap [%h, {%r10,1}], %r11; sured.b.max.2d.s32.trap [%h, {%r10,2}], %r11; sured.p.min.2d.b32.trap [%h, {1,3}], %r11; sured.b.or.2d.b32.zero [%h, {%r12,0}], %r11;");
  image i = make_image(EXEC_TEXEL_S32, 1, 2, 4, 4, 1);
  for (uint32_t y = 0; y < 4; y++) memset(byte_of(&i, 0, y, 0), 0, 16);
  for (int n = 0; n < 64; n++) points[n] = (words){.s = {n % 2 * 4, n - 40, n == 3 ? 8 : -4}};
  fetch(add_texture(&i, NULL), points, got, 64);
  const int32_t *rows[4];
  for (uint32_t y = 0; y < 4; y++) rows[y] = (const int32_t *)(const void *)byte_of(&i, 0, y, 0);
  assert_int_equal(rows[1][0], -288); /* -40 - 38 ... + 22 */
  assert_int_equal(rows[1][1], -256);
  assert_int_equal(rows[2][0], 22);
  assert_int_equal(rows[2][1], 23);
  assert_int_equal(rows[3][1], -40);
  assert_int_equal(rows[0][2], -37);
  assert_int_equal(rows[0][0], 0);
}

static void test_queries(void **state) {
  words nothing[1] = {0}, got[1];
  open_instruction(
      "suq.width.b32 %r20, [%h]; suq.height.b32 %r21, [%h]; suq.array_size.b32 %r22, [%h]; suq.memory_layout.b32 %r23, [%h];");
  image i = make_levels(EXEC_TEXEL_U8, 1, 2, 7, 9, 3, 1, true);
  fetch(add_texture(&i, NULL), nothing, got, 1);
  assert_int_equal(got[0].u[0], 7);
  assert_int_equal(got[0].u[1], 9);
  assert_int_equal(got[0].u[2], 3);
  assert_int_equal(got[0].u[3], 0);
}

/* ---- faults ---- */

static void expect_fault(uint64_t handle, words at, exec_fault_kind kind, const char *part) {
  const exec_fault *fault = fetch_fault(handle, &at, 1);
  if (fault->kind != kind) fail_msg("kind %d: %s", fault->kind, fault->message);
  expect_text(fault->message, part);
  expect_text(fault->message, "in kernel k, block (0,0,0), thread (0,0,0)");
  expect_text(fault->message, "at test.ptx:");
}

static void test_surface_faults(void **state) {
  open_instruction("suld.b.2d.b32.trap %r20, [%h, {%r10,%r11}];");
  image i = make_image(EXEC_TEXEL_U32, 1, 2, 6, 4, 1);
  uint64_t surface = add_texture(&i, NULL);
  expect_fault(surface, (words){.s = {24, 0}}, EXEC_FAULT_TRAP, "at byte 24, 0, 0");
  expect_fault(surface, (words){.s = {0, 4}}, EXEC_FAULT_TRAP, "it has rows of 24 bytes, 4 rows");
  expect_fault(surface, (words){.s = {-4, -1}}, EXEC_FAULT_TRAP, "at byte -4, -1, 0");
  expect_fault(surface, (words){.s = {2, 0}}, EXEC_FAULT_MISALIGNED, "it must be a multiple of 4");
  expect_fault(add_texture(&i, &(exec_sampler){0}), (words){.s = {0}}, EXEC_FAULT_ILLEGAL_ADDRESS,
               "is a texture object, not a surface object");
}

/* Whatever 64 bits a kernel takes for an object: a fault, never more. */
static void test_hostile_handles(void **state) {
  open_instruction("tex.2d.v4.u32.f32 {%r20,%r21,%r22,%r23}, [%h, {%f0,%f1}];");
  image i = make_image(EXEC_TEXEL_U32, 1, 2, 6, 4, 1);
  uint64_t good = add_texture(&i, &(exec_sampler){0}), removed = add_texture(&i, &(exec_sampler){0});
  assert_int_equal(exec_texture_remove(test->memory, removed, NULL), FF_OK);
  assert_int_equal(exec_texture_remove(test->memory, removed, NULL), FF_NOT_FOUND);
  expect_fault(0, (words){.s = {0}}, EXEC_FAULT_ILLEGAL_ADDRESS, "0x0 is no texture object");
  expect_fault(removed, (words){.s = {0}}, EXEC_FAULT_ILLEGAL_ADDRESS, "or one that was destroyed");
  /* an address, whose word is a good handle */
  expect_fault(given, (words){.s = {0}}, EXEC_FAULT_ILLEGAL_ADDRESS, "is no texture object");
  expect_fault(add_texture(&i, NULL), (words){.s = {0}}, EXEC_FAULT_ILLEGAL_ADDRESS,
               "is a surface object, not a texture object");
  for (uint32_t n = 0; n < 2000; n++) {
    uint64_t invented = (uint64_t)hash(n) << 32 | hash(n + 5000);
    invented >>= n % 64;
    if (n % 5 == 0) invented = exec_memory_base(test->memory) + invented % EXEC_ARENA_BYTES;
    if (n % 5 == 1) invented = good ^ UINT64_C(1) << n / 5 % 64;
    if (exec_texture_find(test->memory, invented)) continue;
    const exec_fault *fault = fetch_fault(invented, &(words){.s = {0}}, 1);
    assert_int_equal(fault->kind, EXEC_FAULT_ILLEGAL_ADDRESS);
  }
  /* a slot that is used again does not make the old handle good */
  uint64_t next = add_texture(&i, &(exec_sampler){0});
  assert_int_not_equal(next, removed);
  expect_fault(removed, (words){.s = {0}}, EXEC_FAULT_ILLEGAL_ADDRESS, "is no texture object");
}

static void test_freed_memory(void **state) {
  open_instruction("tex.2d.v4.u32.f32 {%r20,%r21,%r22,%r23}, [%h, {%f0,%f1}];");
  image i = make_image(EXEC_TEXEL_U32, 1, 2, 6, 4, 1);
  uint64_t handle = add_texture(&i, &(exec_sampler){0});
  assert_int_equal(exec_memory_release(test->memory, i.memory->address, NULL), FF_OK);
  expect_fault(handle, (words){.s = {0}}, EXEC_FAULT_ILLEGAL_ADDRESS, "is not there any more");
  const exec_allocation *other; /* even if something else lies there now */
  assert_int_equal(exec_memory_allocate(test->memory, 1 << 20, 0, EXEC_MEMORY_DEVICE, "another", &other, NULL), FF_OK);
  expect_fault(handle, (words){.s = {0}}, EXEC_FAULT_ILLEGAL_ADDRESS, "is not there any more");
}

static void test_cube_or_not(void **state) {
  open_instruction("tex.cube.v4.u32.f32 {%r20,%r21,%r22,%r23}, [%h, {%f0,%f1,%f2,%f2}];");
  image i = make_image(EXEC_TEXEL_U32, 1, 2, 4, 4, 1);
  expect_fault(add_texture(&i, &(exec_sampler){0}), (words){.s = {0}}, EXEC_FAULT_ILLEGAL_ADDRESS, "is no cubemap");
}

static void test_refused_images(void **state) {
  open_instruction("mov.u32 %r20, 0;");
  image good = make_image(EXEC_TEXEL_U32, 4, 2, 4, 4, 1);
  uint64_t handle;
  for (int form = 0; form < 8; form++) {
    exec_texture t = good.texture;
    if (form == 0) t.level[0].width = 1000;
    if (form == 1) t.level[0].height = UINT32_MAX;
    if (form == 2) t.level[0].address -= 16;
    if (form == 3) t.level[0].address += 4;
    if (form == 4) t.level[0].pitch = UINT64_MAX / 2;
    if (form == 5) t.channels = 3;
    if (form == 6) t.level_count = 0;
    if (form == 7) t.level[0].depth = 2;
    assert_int_equal(exec_texture_add(test->memory, &t, &handle, NULL), FF_INVALID);
  }
}

/* Forms that the virtual GPU cannot run say so when a thread gets there. */
static void test_refused_forms(void **state) {
  static const struct {
    const char *code, *part;
  } cases[] = {{"tex.2d.v4.u32.f32 {%r20,%r21,%r22,%r23}, [reference, %h, {%f0,%f1}];", "sampler of its own"},
               {"tex.2dms.v4.u32.s32 {%r20,%r21,%r22,%r23}, [%h, {%r10,%r11,%r12,%r12}];", "geometry"},
               {"tex.2d.v4.u32.f32 {%r20,%r21,%r22,%r23}, [%h, {%f0,%f1}], %f2;", "depth texture"},
               {"tex.2d.v4.u32.f32 {%r20,%r21,%r22,%r23}, [%h, {%f0}];", "1 coordinates where 2 are needed"},
               {"tex.2d.v4.u32.f32 {%r20,%r21,%r22}, [%h, {%f0,%f1}];", "3 registers for 4 results"},
               {"tex.2d.v4.u32.f32 {%r20,%r21,%r22,%r23}, [%r10, {%f0,%f1}];", "not 64 bits wide"},
               {"tex.2d.v4.u32.f32 {%r20,%r21,%r22,%r23}, [%h];", "no [object, coordinates]"},
               {"tex.level.2d.v4.u32.f32 {%r20,%r21,%r22,%r23}, [%h, {%f0,%f1}];", "no level of detail"},
               {"tex.cube.v4.u32.f32 {%r20,%r21,%r22,%r23}, [%h, {%f0,%f1,%f2,%f2}], {1,2,3};", "offset in a cubemap"},
               {"tex.2d.v2.u32.f32 {%r20,%r21}, [%h, {%f0,%f1}];", "2 values"},
               {"tld4.r.3d.v4.u32.f32 {%r20,%r21,%r22,%r23}, [%h, {%f0,%f1,%f2,%f2}];", "coordinates"},
               {"suld.b.cube.b32.trap %r20, [%h, {%r10,%r11}];", "surface access"},
               {"sured.b.add.2d.u64.trap [%h, {%r10,%r11}], %h; sured.b.and.2d.u32.trap [%h, {%r10,%r11}], %r12;", ""},
               {"sust.b.2d.v4.b64.trap [%h, {%r10,%r11}], {%h,%h,%h,%h};", "surface access"}};
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    open_instruction(cases[n].code);
    image i = make_image(EXEC_TEXEL_U32, 4, 2, 4, 4, 1);
    const exec_fault *fault = fetch_fault(add_texture(&i, strncmp(cases[n].code, "su", 2) ? &(exec_sampler){0} : NULL),
                                          &(words){.s = {0}}, 1);
    if (*cases[n].part) assert_int_equal(fault->kind, EXEC_FAULT_UNSUPPORTED);
    expect_text(fault->message, cases[n].part);
  }
}

/* Every form that compilers were seen to print, and those they print for the rest of the texture functions, is decoded:
 * with no object it faults because of that, not because it is not there. */
static void test_every_form(void **state) {
  static const char *const forms[] = {
#define W "{%r20,%r21,%r22,%r23}"
#define F "{%f10,%f11,%f12,%f13}"
      "tex.1d.v4.s32.s32 " W ", [%h, {%r10}];",
      "tex.1d.v4.u32.s32 " W ", [%h, {%r10}];",
      "tex.1d.v4.f32.s32 " F ", [%h, {%r10}];",
      "tex.1d.v4.f32.f32 " F ", [%h, {%f0}];",
      "tex.2d.v4.f32.f32 " F ", [%h, {%f0,%f1}];",
      "tex.2d.v4.u32.f32 " W ", [%h, {%f0,%f1}];",
      "tex.3d.v4.f32.f32 " F ", [%h, {%f0,%f1,%f2,%f2}];",
      "tex.a1d.v4.f32.f32 " F ", [%h, {%r10,%f0}];",
      "tex.a2d.v4.f32.f32 " F ", [%h, {%r10,%f0,%f1,%f1}];",
      "tex.cube.v4.f32.f32 " F ", [%h, {%f0,%f1,%f2,%f2}];",
      "tex.acube.v4.f32.f32 " F ", [%h, {%r10,%f0,%f1,%f2}];",
      "tex.level.1d.v4.f32.f32 " F ", [%h, {%f0}], %f3;",
      "tex.level.2d.v4.f32.f32 " F ", [%h, {%f0,%f1}], %f3;",
      "tex.level.a2d.v4.f32.f32 " F ", [%h, {%r10,%f0,%f1,%f1}], %f3;",
      "tex.level.cube.v4.f32.f32 " F ", [%h, {%f0,%f1,%f2,%f2}], %f3;",
      "tex.grad.a1d.v4.f32.f32 " F ", [%h, {%r10,%f0}], {%f1}, {%f2};",
      "tex.grad.2d.v4.f32.f32 " F ", [%h, {%f0,%f1}], {%f0,%f1}, {%f2,%f3};",
      "tex.grad.3d.v4.f32.f32 " F ", [%h, {%f0,%f1,%f2,%f2}], {%f0,%f1,%f2,%f2}, {%f0,%f1,%f2,%f2};",
      "tex.grad.cube.v4.f32.f32 " F ", [%h, {%f0,%f1,%f2,%f2}], {%f0,%f1,%f2,%f2}, {%f0,%f1,%f2,%f2};",
      "tld4.r.2d.v4.f32.f32 " F ", [%h, {%f0,%f1}];",
      "tld4.a.a2d.v4.u32.f32 " W ", [%h, {%r10,%f0,%f1,%f1}], {1,2};",
      "tex.2d.v4.f32.f32 " F "|%q, [%h, {%f0,%f1}];",
      "suld.b.2d.b8.trap %rs1, [%h, {%r10,%r11}];",
      "suld.b.2d.v4.b8.trap {%rs1,%rs2,%rs3,%rs4}, [%h, {%r10,%r11}];",
      "suld.b.2d.v4.b32.clamp " W ", [%h, {%r10,%r11}];",
      "suld.b.3d.v2.b16.trap {%rs1,%rs2}, [%h, {%r10,%r11,%r12,%r12}];",
      "sust.b.1d.b8.zero [%h, {%r10}], {%rs1};",
      "sust.b.1d.b32.trap [%h, {%r10}], {%r11};",
      "sust.b.1d.v4.b32.trap [%h, {%r10}], " W ";",
      "sust.b.2d.b8.trap [%h, {%r10,%r11}], {%rs1};",
      "sust.b.2d.v4.b8.trap [%h, {%r10,%r11}], {%rs1,%rs2,%rs3,%rs4};",
      "sust.b.2d.b32.trap [%h, {%r10,%r11}], {%r12};",
      "sust.b.3d.b8.trap [%h, {%r10,%r11,%r12,%r12}], {%rs1};",
      "sust.b.3d.b32.trap [%h, {%r10,%r11,%r12,%r12}], {%r12};",
      "sust.b.a2d.v4.b32.trap [%h, {%r10,%r11,%r12,%r12}], " W ";",
      "sust.b.a1d.b64.trap [%h, {%r10,%r11}], {%rd5};",
      "sust.b.2d.wb.v2.b64.clamp [%h, {%r10,%r11}], {%rd5,%rd6};"};
#undef W
#undef F
  for (size_t n = 0; n < sizeof forms / sizeof *forms; n++) {
    open_instruction(forms[n]);
    const exec_fault *fault = fetch_fault(0, &(words){.s = {0}}, 1);
    if (fault->kind != EXEC_FAULT_ILLEGAL_ADDRESS) fail_msg("%s: %s", forms[n], fault->message);
  }
}

/* ---- references ---- */

static void test_references(void **state) {
  /* by name, and through the variable's address */
  static const char *const forms[] = {"tex.1d.v4.u32.s32 {%r20,%r21,%r22,%r23}, [reference, {%r10}];",
                                      "mov.u64 %h, reference; tex.1d.v4.u32.s32 {%r20,%r21,%r22,%r23}, [%h, {%r10}];",
                                      "shl.b32 %r10, %r10, 2; suld.b.1d.b32.trap %r20, [surface, {%r10}];"};
  for (int form = 0; form < 3; form++) {
    words point[1] = {{.u = {3}}}, got[1];
    uint64_t cell, bytes;
    open_instruction(forms[form]);
    assert_int_equal(exec_program_variable(test->program, form == 2 ? "surface" : "reference", &cell, &bytes, NULL),
                     FF_OK);
    assert_true(exec_texture_is_cell(test->memory, cell));
    assert_false(exec_texture_is_cell(test->memory, given));
    expect_fault(0, point[0], EXEC_FAULT_ILLEGAL_ADDRESS, "object");
    image i = make_image(EXEC_TEXEL_U32, 1, 1, 8, 1, 1);
    *u64_at(cell) = add_texture(&i, form == 2 ? NULL : &(exec_sampler){0});
    fetch(0, point, got, 1);
    assert_int_equal(got[0].u[0], u32_at(i.texture.address)[3]);
    *u64_at(cell) = UINT64_C(0x123456789);
    expect_fault(0, point[0], EXEC_FAULT_ILLEGAL_ADDRESS, "object");
  }
}

/* ---- declared uses, the access stream ---- */

static void test_declared_uses(void **state) {
  words points[32] = {0};
  open_instruction("tex.1d.v4.u32.s32 {%r20,%r21,%r22,%r23}, [%h, {%r10}];");
  image i = make_image(EXEC_TEXEL_U32, 1, 1, 64, 1, 1);
  i.texture.resource = EXEC_RESOURCE_LINEAR;
  uint64_t handle = add_texture(&i, &(exec_sampler){0});
  ff_virtual_use uses[2] = {{.base = given, .bytes = 16 + 2 * POINTS * 16, .read = 1, .write = 1, .segment = "block"},
                            {.base = i.texture.address, .bytes = 128, .read = 1, .segment = "texels"}};
  test->uses = uses;
  test->use_count = 2;
  for (uint32_t n = 0; n < 32; n++) points[n].u[0] = n;
  put_inputs(handle, points, 32);
  run(test, "k", 1, 32, given, POINTS * 16);
  points[7].u[0] = 32;
  const exec_fault *fault = fetch_fault(handle, points, 32);
  assert_int_equal(fault->kind, EXEC_FAULT_UNDECLARED);
  assert_int_equal(fault->thread[0], 7);
  expect_text(fault->message, "segment 'texels'");
}

/* The accesses of the instruction under test: "load 4: lines of lanes and sectors". */
static void trace_of(uint32_t threads, uint64_t handle, const words *points, ff_text *text) {
  trace_program *program = trace_program_create(0);
  trace_reader *reader = trace_reader_create(program);
  test->trace = trace_launch_create(program, 1, 1);
  trace_op_append(program, &(trace_op){.kind = TRACE_OP_LAUNCH, .launch = test->trace});
  put_inputs(handle, points, threads);
  run(test, "k", 1, threads, given, POINTS * 16);
  trace_launch_finish(test->trace);
  trace_op_append(program, &(trace_op){.kind = TRACE_OP_END});
  const trace_op *op = trace_reader_next_op(reader);
  trace_chunk *chunk = trace_reader_chunk(reader, op->launch, 0);
  trace_cursor cursor;
  trace_cursor_open(reader, chunk, 0, &cursor);
  for (const uint64_t *word = trace_cursor_next(reader, &cursor); trace_word_kind(*word) != TRACE_EXIT;
       word = trace_cursor_next(reader, &cursor)) {
    if (trace_word_kind(*word) == TRACE_WAIT) ff_text_add(text, " wait");
    if (trace_word_kind(*word) != TRACE_ACCESS) continue;
    uint64_t line = trace_line_address(word[2]);
    if (line - given < 16 + 2 * POINTS * 16 + 128) { /* the kernel's own */
      if (trace_access_operation(*word) == TRACE_STORE) ff_text_add(text, " results");
      continue;
    }
    ff_text_add(text, " %s%s%u/%x",
                trace_access_operation(*word) == TRACE_LOAD    ? "load"
                : trace_access_operation(*word) == TRACE_STORE ? "store"
                                                               : "atomic",
                trace_access_flags(*word) & TRACE_READ_ONLY ? "_nc " : " ", trace_access_bytes(*word),
                (uint32_t)word[1]);
    for (uint32_t n = 0; n < trace_access_lines(*word); n++)
      ff_text_add(text, " %llx:%u:%x", (unsigned long long)(trace_line_address(word[2 + n]) & 0xffff),
                  trace_line_lanes(word[2 + n]), trace_line_sectors(word[2 + n]));
  }
  trace_reader_release(reader, chunk);
  trace_reader_next_op(reader);
  trace_reader_free(reader);
  trace_program_free(program);
  test->trace = NULL;
}

static void expect_trace(const char *code, bool surface, bool linear, const words *points, const char *want) {
  open_instruction(code);
  image i = make_image(EXEC_TEXEL_F32, 1, 2, 24, 4, 1); /* rows of 96 bytes, 128 apart */
  i.texture.level[0].pitch = 128;
  i.texture.bytes = 512;
  uint64_t handle = add_texture(
      &i, surface ? NULL : &(exec_sampler){.linear = linear, .mode = {EXEC_ADDRESS_CLAMP, EXEC_ADDRESS_CLAMP}});
  ff_text text = {0};
  trace_of(4, handle, points, &text);
  char based[512] = "";
  uint32_t base = (uint32_t)(i.texture.address & 0xffff);
  snprintf(based, sizeof based, want, base, base + 128, base + 256);
  if (strcmp(text.chars, based)) fail_msg("%s:\n%s\nnot\n%s", code, text.chars, based);
  free(text.chars);
}

static void test_trace(void **state) {
  const words centres[4] = {{.f = {0.5f, 0.5f}}, {.f = {1.5f, 0.5f}}, {.f = {8.5f, 1.5f}}, {.f = {20.5f, 1.5f}}};
  const words between[4] = {{.f = {1, 1}}, {.f = {2, 1}}, {.f = {3, 1}}, {.f = {8, 1}}};
  const words bytes[4] = {{.u = {0, 2}}, {.u = {4, 2}}, {.u = {32, 2}}, {.u = {36, 1}}};
  const char *fetch_code = "tex.2d.v4.u32.f32 {%r20,%r21,%r22,%r23}, [%h, {%f0,%f1}];";
  /* the load of the inputs is waited for, then the fetch itself by the results' store */
  expect_trace(fetch_code, false, false, centres, " wait wait load_nc 4/f %x:2:1 %x:2:6 wait results");
  /* a footprint of two rows: the second row's sectors, and lane 3's next one, in further records */
  expect_trace(
      fetch_code, false, true, between,
      " wait wait load_nc 4/f %1$x:4:1 load_nc 4/8 %1$x:1:2 load_nc 4/1 %2$x:1:1 load_nc 4/8 %2$x:1:2 wait results");
  expect_trace("suld.b.2d.b32.trap %r20, [%h, {%r10,%r11}];", true, false, bytes,
               " wait wait load 4/f %3$x:3:3 %2$x:1:2 wait results");
  expect_trace("sust.b.2d.b32.trap [%h, {%r10,%r11}], %r12;", true, false, bytes,
               " wait wait store 4/f %3$x:3:3 %2$x:1:2 results");
  expect_trace("sured.b.add.2d.u32.trap [%h, {%r10,%r11}], %r12;", true, false, bytes,
               " wait wait atomic 4/f %3$x:3:3 %2$x:1:2 results");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_loads),          cmocka_unit_test(test_bounds),
                                     cmocka_unit_test(test_stores),         cmocka_unit_test(test_formatted_stores),
                                     cmocka_unit_test(test_reductions),     cmocka_unit_test(test_queries),
                                     cmocka_unit_test(test_surface_faults), cmocka_unit_test(test_hostile_handles),
                                     cmocka_unit_test(test_freed_memory),   cmocka_unit_test(test_cube_or_not),
                                     cmocka_unit_test(test_refused_images), cmocka_unit_test(test_refused_forms),
                                     cmocka_unit_test(test_every_form),     cmocka_unit_test(test_references),
                                     cmocka_unit_test(test_declared_uses),  cmocka_unit_test(test_trace)};
  int failed = 0;
  for (const char *const *isa = exec_isas(); *isa; isa++) {
    printf("instruction set %s\n", test_isa = *isa);
    failed += cmocka_run_group_tests(tests, NULL, NULL);
  }
  if (open_test) close_ptx(open_test);
  return failed != 0;
}
