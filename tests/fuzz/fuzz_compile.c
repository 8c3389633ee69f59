/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the compiler and images from it. The first byte says which:
 *
 *   0  the rest is a request
 *   1  a request as it is made of a kernel, with changes: section, element, byte, how, value (6 bytes each)
 *   2  an image, and of how many functions it is said to be
 *
 * A request is refused with a reason, or becomes an image that is whole; what the generator makes of one that was not
 * refused is LLVM IR that LLVM's verifier finds no fault with. An image is refused or can be mapped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/check.h"
#include "compile/kernel_describe.h"
#include "compile/generator/emit_check.h"
#include "compile/generator/emit.h"
#include "compile/compile_private.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static const char kernels[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n.shared .align 16 .b8 sm[256];\n"
    ".func (.param .b32 v) f(.param .b32 a, .param .b64 b)\n{\n.reg .b32 r<3>; .reg .b64 d<3>; .reg .pred p;\n"
    "ld.param.b32 r0, [a]; ld.param.b64 d0, [b]; setp.lt.s32 p, r0, 5; @p bra L; add.s32 r0, r0, 3; ld.global.u32 r1, [d0]; xor.b32 r0, r0, r1;\nL:\nst.param.b32 [v], r0; ret;\n}\n"
    ".visible .entry k(.param .u64 o, .param .u32 n)\n{\n.reg .b32 r<12>; .reg .b64 d<6>; .reg .b16 h<4>; .reg .pred p<5>; .reg .b64 w<2>;\n"
    "ld.param.u64 d0, [o]; ld.param.u32 r0, [n]; mov.u32 r1, %tid.x; mov.u32 r2, %ctaid.x; mad.lo.s32 r3, r1, r2, r0; mad.wide.u32 d1, r3, 8, d0;\n"
    "ld.global.v2.f32 {r4, r5}, [d1]; fma.rn.f32 r4, r4, r5, r4; add.rn.f32 r5, r4, 0f3f800000; cvt.rn.f64.s32 d2, r3; div.rn.f64 d2, d2, d2; cvt.s16.s32 h0, r3; mul.wide.s16 r6, h0, h1;\n"
    "setp.gt.and.s32 p0|p1, r3, 7, !p2; @p0 add.s32 r6, r6, 9; @!p1 selp.b32 r7, r6, r5, p0; mov.b64 d3, {r6, r7}; mov.b64 {r8, r9}, d3; lop3.b32 r8, r8, r9, r3, 0x96; brev.b32 r9, r8;\n"
    "mov.u32 r10, sm; shl.b32 r11, r1, 2; and.b32 r11, r11, 252; add.s32 r10, r10, r11; st.shared.u32 [r10], r9; bar.sync 0; ld.shared.u32 r8, [r10]; ld.shared.v2.u32 {r4, r5}, [sm+8];\n"
    "mov.u32 r11, 0;\nL:\nadd.s32 r11, r11, 1; shfl.sync.bfly.b32 r4|p3, r4, 1, 31, -1; atom.global.add.u32 r5, [d1], r4; div.s32 r7, r8, r11; sub.u64 d3, d3, d1; min.s64 d3, d3, d2;\n"
    "{ .param .b32 v; .param .b32 a; .param .b64 b; st.param.b32 [a], r4; st.param.b64 [b], d0; call (v), f, (a, b); ld.param.b32 r4, [v]; }\n"
    "setp.lt.u32 p4, r11, r0; @p4 bra L;\n@p0 st.global.u16 [d1+2], h0; st.global.v2.u32 [d1], {r4, r5}; ret;\n}\n";

enum { BASES = 8 }; /* by watch; for full warps, then for any */
static unsigned char *bases[BASES];
static uint32_t base_bytes[BASES];

static void make_bases(void) {
  ff_error error;
  exec_memory *memory;
  ptx_module *module, *linked;
  exec_program *program;
  exec_kernel *kernel;
  const exec_code *code;
  const exec_isa_table *isa = exec_isa_find(NULL);
  setenv("FARFAULT_COMPILE_CHECK", "1", 1);
  if (exec_memory_create(&memory, &error) || ptx_module_parse("k", kernels, sizeof kernels - 1, &module, &error) ||
      ptx_link(&module, 1, &linked, &error) || exec_program_create(linked, memory, &program, &error) ||
      exec_program_kernel(program, "k", &kernel, &error) || exec_kernel_code(kernel, isa, &code, &error)) {
    fprintf(stderr, "%s\n", error.message);
    abort();
  }
  for (uint32_t b = 0; b < BASES; b++) {
    bases[b] = native_describe(kernel, code, isa, b % 4, b >= 4, &base_bytes[b]);
    ((native_request *)(void *)bases[b])->isa = 0; /* nothing is run: for AVX-512 on any processor */
  }
  exec_program_free(program);
  ptx_module_free(linked);
  ptx_module_free(module);
  exec_memory_free(memory);
}

static void try_image(unsigned char *image, uint32_t bytes, uint32_t functions) {
  const compile_key key = {{3, 4}};
  if (!compile_seal(image, bytes, &key) || !compile_is_whole(image, bytes, &key, functions)) return;
  image_head head;
  memcpy(&head, image, sizeof head);
  exec_native_function *code = compile_map(image);
  FF_ASSERT(code);
  uintptr_t start = (uintptr_t)code[0];
  for (uint32_t f = 0; f < functions; f++)
    if ((uintptr_t)code[f] < start) start = (uintptr_t)code[f];
  if (functions) munmap((void *)(start & ~(uintptr_t)4095), head.code_bytes);
  free(code);
}

static void try_request(const unsigned char *request, uint32_t bytes) {
  const char *message = NULL;
  unsigned char *image;
  uint32_t image_bytes;
  if (!check_request(request, bytes, &message)) {
    FF_ASSERT(message && message[0]);
    return;
  }
  const native_request *head = (const native_request *)(const void *)request;
  if (!emit_image(head, &image, &image_bytes, &message)) {
    fprintf(stderr, "a request that was not refused: %s\n", message);
    FF_ASSERT(!strcmp(message, "it is too large"));
    return;
  }
  const compile_key key = {{3, 4}};
  FF_ASSERT(compile_seal(image, image_bytes, &key) && compile_is_whole(image, image_bytes, &key, head->function_count));
  free(image);
}

/* The parts of a request: where they begin, how large one element is, how many there are. */
static void section(const native_request *head, uint32_t which, size_t *at, size_t *size, uint32_t *count) {
  const size_t sizes[5] = {sizeof *head, sizeof(native_function), sizeof(native_instr), sizeof(native_operand),
                           sizeof(uint32_t)};
  const uint32_t counts[5] = {1, head->function_count, head->instr_count, head->operand_count, head->wait_count};
  *at = 0;
  for (uint32_t s = 0; s < which; s++) *at += sizes[s] * counts[s];
  *size = sizes[which];
  *count = counts[which];
}

static void change(unsigned char *request, const native_request *head, const unsigned char *how) {
  size_t at, size;
  uint32_t count, value = how[5];
  section(head, how[0] % 5, &at, &size, &count);
  if (!count) return;
  unsigned char *element = request + at + (how[1] | (uint32_t)how[2] << 8) % count * size,
                *byte = element + how[3] % size;
  switch (how[4] % 5) {
  case 0: *byte = (unsigned char)value; break;
  case 1: *byte ^= (unsigned char)(1u << value % 8); break;
  case 2: *byte = (unsigned char)(*byte + (value & 1 ? 1 : -1)); break;
  case 3: memset(element + (how[3] % size & ~(size_t)3), value & 1 ? 0xff : 0, 4); break;
  default: memcpy(element, request + at + value % count * size, size); /* as another one */
  }
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
  if (!bases[0]) make_bases();
  if (!size) return 0;
  if (data[0] % 3 == 1 && size >= 2) {
    uint32_t base = data[1] % BASES;
    unsigned char *request = ff_alloc(base_bytes[base]);
    memcpy(request, bases[base], base_bytes[base]);
    for (size_t n = 2; n + 6 <= size; n += 6)
      change(request, (const native_request *)(const void *)bases[base], data + n);
    try_request(request, base_bytes[base]);
    free(request);
    return 0;
  }
  unsigned char *copy = ff_alloc(size); /* aligned, and of this length exactly */
  memcpy(copy, data + 1, size - 1);
  if (data[0] % 3 == 0) try_request(copy, (uint32_t)size - 1);
  else if (size > 2) try_image(copy, (uint32_t)size - 1, data[1] % 4);
  free(copy);
  return 0;
}
