/* SPDX-License-Identifier: Apache-2.0 */
/* LLVM from module to machine code, and that code laid out flat: sections one after the other, relocations settled, so
 * that the process which runs it maps it and needs nothing else. */
#include "compile/generator/emit.h"

#include <elf.h>
#include <llvm-c/Analysis.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/InstCombine.h>
#include <llvm-c/Transforms/Scalar.h>
#include <llvm-c/Transforms/Utils.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "compile/generator/generate.h"
#include "compile/image.h"

/* ---- flat code ---- */

typedef struct flat {
  const unsigned char *object;
  size_t object_bytes;
  const Elf64_Ehdr *head;
  const Elf64_Shdr *sections;
  uint64_t *place; /* of each section in the code; UINT64_MAX: left out */
  unsigned char *code;
  uint64_t bytes;
} flat;

static bool lay_out(flat *f) {
  f->head = (const Elf64_Ehdr *)(const void *)f->object;
  f->sections = (const Elf64_Shdr *)(const void *)(f->object + f->head->e_shoff);
  f->place = ff_alloc(f->head->e_shnum * sizeof *f->place);
  for (int text = 1; text >= 0; text--) /* what is executed first */
    for (uint32_t s = 0; s < f->head->e_shnum; s++) {
      const Elf64_Shdr *section = &f->sections[s];
      bool wanted = section->sh_type == SHT_PROGBITS && (section->sh_flags & SHF_ALLOC) && section->sh_size;
      if (text) f->place[s] = UINT64_MAX;
      if (!wanted || ((section->sh_flags & SHF_EXECINSTR) != 0) != text) continue;
      if (section->sh_flags & SHF_WRITE) return false;
      uint64_t align = section->sh_addralign < 64 ? 64 : section->sh_addralign;
      f->place[s] = (f->bytes + align - 1) & ~(align - 1);
      f->bytes = f->place[s] + section->sh_size;
    }
  f->code = ff_alloc(f->bytes + 1);
  for (uint32_t s = 0; s < f->head->e_shnum; s++)
    if (f->place[s] != UINT64_MAX)
      memcpy(f->code + f->place[s], f->object + f->sections[s].sh_offset, f->sections[s].sh_size);
  return true;
}

static bool relocate(const flat *f, const Elf64_Shdr *section) {
  const Elf64_Rela *all = (const Elf64_Rela *)(const void *)(f->object + section->sh_offset);
  const Elf64_Sym *symbols = (const Elf64_Sym *)(const void *)(f->object + f->sections[section->sh_link].sh_offset);
  if (f->place[section->sh_info] == UINT64_MAX) return true;
  for (uint64_t r = 0; r < section->sh_size / sizeof *all; r++) {
    const Elf64_Sym *symbol = &symbols[ELF64_R_SYM(all[r].r_info)];
    uint64_t type = ELF64_R_TYPE(all[r].r_info), at = f->place[section->sh_info] + all[r].r_offset;
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= f->head->e_shnum ||
        f->place[symbol->st_shndx] == UINT64_MAX)
      return false;
    int64_t distance = (int64_t)(f->place[symbol->st_shndx] + symbol->st_value + (uint64_t)all[r].r_addend - at);
    if ((type != R_X86_64_PC32 && type != R_X86_64_PLT32) || distance != (int32_t)distance) return false;
    int32_t narrow = (int32_t)distance;
    memcpy(f->code + at, &narrow, sizeof narrow);
  }
  return true;
}

static uint32_t find_function(const flat *f, const char *name) {
  for (uint32_t s = 0; s < f->head->e_shnum; s++) {
    if (f->sections[s].sh_type != SHT_SYMTAB) continue;
    const Elf64_Sym *symbols = (const Elf64_Sym *)(const void *)(f->object + f->sections[s].sh_offset);
    const char *names = (const char *)f->object + f->sections[f->sections[s].sh_link].sh_offset;
    for (uint64_t n = 0; n < f->sections[s].sh_size / sizeof *symbols; n++)
      if (!strcmp(names + symbols[n].st_name, name) && symbols[n].st_shndx < f->head->e_shnum)
        return (uint32_t)(f->place[symbols[n].st_shndx] + symbols[n].st_value);
  }
  return UINT32_MAX;
}

static bool flatten(flat *f) {
  if (!lay_out(f)) return false;
  for (uint32_t s = 0; s < f->head->e_shnum; s++)
    if (f->sections[s].sh_type == SHT_RELA && !relocate(f, &f->sections[s])) return false;
  return true;
}

/* ---- LLVM ---- */

static LLVMTargetMachineRef machine_for(uint32_t isa, const char **message) {
  static const char *const processors[] = {"skylake-avx512", "haswell", "x86-64"};
  static char text[256];
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  LLVMTargetRef target;
  char *why = NULL;
  if (LLVMGetTargetFromTriple("x86_64-unknown-linux-gnu", &target, &why)) {
    snprintf(text, sizeof text, "%s", why);
    LLVMDisposeMessage(why);
    *message = text;
    return NULL;
  }
  return LLVMCreateTargetMachine(target, "x86_64-unknown-linux-gnu", processors[isa < 3 ? isa : 2], "",
                                 LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelSmall);
}

static void improve(LLVMModuleRef module, LLVMTargetMachineRef machine) {
  LLVMPassManagerRef passes = LLVMCreatePassManager();
  LLVMAddAnalysisPasses(machine, passes);
  LLVMAddPromoteMemoryToRegisterPass(passes);
  LLVMAddEarlyCSEPass(passes);
  LLVMAddInstructionCombiningPass(passes);
  LLVMAddCFGSimplificationPass(passes);
  LLVMRunPassManager(passes, module);
  LLVMDisposePassManager(passes);
}

static bool make_functions(generator *g, const native_request *request) {
  const native_function *functions = (const native_function *)(const void *)(request + 1);
  const native_instr *instrs = (const native_instr *)(const void *)(functions + request->function_count);
  const native_operand *operands = (const native_operand *)(const void *)(instrs + request->instr_count);
  g->waits = (const uint32_t *)(const void *)(operands + request->operand_count);
  g->traced = request->watch & NATIVE_TRACED;
  g->watched = request->watch & (NATIVE_TRACED | NATIVE_USES);
  g->rows = request->watch & NATIVE_ROWS;
  for (uint32_t f = 0; f < request->function_count; f++) {
    plan *p = plan_make(&functions[f], f, instrs, operands, request->operand_count, g->waits, g->rows);
    if (!p) return false;
    gen_function(g, p, &functions[f], f);
    plan_free(p);
  }
  return true;
}

static void put_together(const native_request *request, const flat *f, unsigned char **image, uint32_t *bytes) {
  uint32_t start = (uint32_t)((sizeof(image_head) + request->function_count * sizeof(image_entry) + 63) & ~63u);
  image_head head = {.magic = IMAGE_MAGIC,
                     .function_count = request->function_count,
                     .code_offset = start,
                     .code_bytes = (uint32_t)f->bytes};
  *bytes = start + (uint32_t)f->bytes;
  *image = ff_alloc(*bytes);
  memcpy(*image, &head, sizeof head);
  image_entry *entries = (image_entry *)(void *)(*image + sizeof head);
  for (uint32_t n = 0; n < request->function_count; n++) {
    char name[64];
    snprintf(name, sizeof name, "native_%u", n);
    entries[n] = find_function(f, name);
  }
  memcpy(*image + start, f->code, f->bytes);
}

typedef struct session { /* what has to go when the image is made, or cannot be */
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMBuilderRef builder;
  LLVMTargetMachineRef machine;
  LLVMTargetDataRef data;
  LLVMMemoryBufferRef object;
  flat flat;
} session;

static void end_session(session *s) {
  free(s->flat.place);
  free(s->flat.code);
  if (s->object) LLVMDisposeMemoryBuffer(s->object);
  if (s->data) LLVMDisposeTargetData(s->data);
  if (s->machine) LLVMDisposeTargetMachine(s->machine);
  LLVMDisposeBuilder(s->builder);
  LLVMDisposeModule(s->module);
  LLVMContextDispose(s->context);
}

static bool make_object(session *s, const native_request *request, const char **message) {
  static char text[256];
  LLVMContextRef c = s->context;
  generator g = {.request = request,
                 .at = &request->layout,
                 .context = c,
                 .module = s->module,
                 .b = s->builder,
                 .i1 = LLVMInt1TypeInContext(c),
                 .i8 = LLVMInt8TypeInContext(c),
                 .i32 = LLVMInt32TypeInContext(c),
                 .i64 = LLVMInt64TypeInContext(c),
                 .f32 = LLVMFloatTypeInContext(c),
                 .f64 = LLVMDoubleTypeInContext(c),
                 .emulated = request->isa && request->wide};
  g.wide_vectors = g.emulated || !request->isa;
  g.pointer = LLVMPointerType(g.i8, 0);
  LLVMTypeRef parameters[2] = {g.pointer, g.pointer};
  g.handler = LLVMFunctionType(LLVMVoidTypeInContext(c), parameters, 2, false);
  if (!(s->machine = machine_for(request->isa, message))) return false;
  LLVMSetTarget(s->module, "x86_64-unknown-linux-gnu");
  s->data = LLVMCreateTargetDataLayout(s->machine);
  LLVMSetModuleDataLayout(s->module, s->data);
  *message = "it is too large";
  if (!make_functions(&g, request)) return false;
  char *why = NULL;
  bool good = !getenv("FARFAULT_COMPILE_CHECK") || !LLVMVerifyModule(s->module, LLVMReturnStatusAction, &why);
  if (good) {
    improve(s->module, s->machine);
    if (getenv("FARFAULT_COMPILE_PRINT")) LLVMPrintModuleToFile(s->module, getenv("FARFAULT_COMPILE_PRINT"), NULL);
    good = !LLVMTargetMachineEmitToMemoryBuffer(s->machine, s->module, LLVMObjectFile, &why, &s->object);
  }
  if (!good) {
    snprintf(text, sizeof text, "%s", why ? why : "");
    *message = text;
  }
  LLVMDisposeMessage(why);
  return good;
}

bool emit_image(const native_request *request, unsigned char **image, uint32_t *bytes, const char **message) {
  session s = {.context = LLVMContextCreate()};
  s.module = LLVMModuleCreateWithNameInContext("farfault", s.context);
  s.builder = LLVMCreateBuilderInContext(s.context);
  bool good = make_object(&s, request, message);
  if (good) {
    s.flat.object = (const unsigned char *)LLVMGetBufferStart(s.object);
    s.flat.object_bytes = LLVMGetBufferSize(s.object);
    *message = "the code has a relocation that cannot be settled";
    good = flatten(&s.flat);
  }
  if (good) put_together(request, &s.flat, image, bytes);
  end_session(&s);
  return good;
}
