/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in for NVIDIA's linker: what it gives as machine code is what libcuda loads. */
#include <elf.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "driver/driver_api/libcuda.h"
#include "driver/linked_image.h"
#include "driver/linked_object.h"
#include "fatbin/fatbin.h"

typedef struct nvJitLink *nvJitLinkHandle;
int nvJitLinkCreate(nvJitLinkHandle *, uint32_t, const char **);
int nvJitLinkDestroy(nvJitLinkHandle *);
int nvJitLinkAddData(nvJitLinkHandle, int, const void *, size_t, const char *);
int nvJitLinkAddFile(nvJitLinkHandle, int, const char *);
int nvJitLinkComplete(nvJitLinkHandle);
int nvJitLinkGetLinkedCubinSize(nvJitLinkHandle, size_t *);
int nvJitLinkGetLinkedCubin(nvJitLinkHandle, void *);
int nvJitLinkGetLinkedPtxSize(nvJitLinkHandle, size_t *);
int nvJitLinkGetLinkedPtx(nvJitLinkHandle, char *);
int nvJitLinkGetErrorLogSize(nvJitLinkHandle, size_t *);
int nvJitLinkGetErrorLog(nvJitLinkHandle, char *);
int __nvJitLinkCreate_13_5(nvJitLinkHandle *, uint32_t, const char **);
int nvJitLinkVersion(unsigned *, unsigned *);
CUresult cuInit(unsigned);
CUresult cuCtxCreate_v2(CUcontext *, unsigned, CUdevice);
CUresult cuModuleLoadData(CUmodule *, const void *);
CUresult cuModuleUnload(CUmodule);
CUresult cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                        void **, void **);
CUresult cuMemAllocManaged(CUdeviceptr *, size_t, unsigned);
CUresult cuCtxSynchronize(void);
CUresult cuFuncGetAttribute(int *, int, CUfunction);
CUresult cuModuleLoadDataEx(CUmodule *, const void *, unsigned, const int *, void **);
CUresult cuLinkCreate_v2(unsigned, const int *, void **, CUlinkState *), cuLinkDestroy(CUlinkState),
    cuLinkAddData_v2(CUlinkState, int, void *, size_t, const char *, unsigned, const int *, void **),
    cuLinkComplete(CUlinkState, void **, size_t *);

enum { CUBIN = 1, PTX, LTOIR, FATBIN, LIBRARY = 6, ANY = 10 };
#define HEAD ".version 7.5\n.target sm_75\n.address_size 64\n"
static const char calls[] = HEAD
    ".extern .func (.param .b32 r) twice(.param .b32 x);\n"
    ".visible .entry fill(.param .u64 to)\n{\n.reg .b64 %rd<3>;\n.reg .b32 %r<3>;\nld.param.u64 %rd1, [to];\nmov.u32 %r1, 21;\n"
    "{\n.param .b32 a;\n.param .b32 b;\nst.param.b32 [a], %r1;\ncall.uni (b), twice, (a);\nld.param.b32 %r2, [b];\n}\n"
    "st.global.u32 [%rd1], %r2;\nret;\n}\n";
static const char callee[] =
    HEAD ".visible .func (.param .b32 r) twice(.param .b32 x)\n{\n.reg .b32 %r<3>;\nld.param.b32 %r1, [x];\n"
         "add.s32 %r2, %r1, %r1;\nst.param.b32 [r], %r2;\nret;\n}\n";
static const char alone[] =
    HEAD ".visible .entry fill(.param .u64 to)\n{\n.reg .b64 %rd<3>;\n.reg .b32 %r<3>;\nld.param.u64 %rd1, [to];\n"
         "mov.u32 %r1, 42;\nst.global.u32 [%rd1], %r1;\nret;\n}\n";

static nvJitLinkHandle start(void) {
  const char *options[] = {"-arch=sm_90"};
  nvJitLinkHandle link;
  assert_int_equal(__nvJitLinkCreate_13_5(&link, 1, options), 0);
  return link;
}

/* Loads what was linked, and runs its kernel: 42. */
static void run(nvJitLinkHandle link) {
  size_t size;
  CUmodule module;
  CUfunction fill;
  CUdeviceptr to;
  char image[8192];
  assert_int_equal(nvJitLinkComplete(link), 0);
  assert_int_equal(nvJitLinkGetLinkedCubinSize(link, &size), 0);
  assert_true(size && size <= sizeof image);
  assert_int_equal(nvJitLinkGetLinkedCubin(link, image), 0);
  assert_int_equal(cuModuleLoadData(&module, image), CUDA_SUCCESS);
  assert_int_equal(cuModuleGetFunction(&fill, module, "fill"), CUDA_SUCCESS);
  assert_int_equal(cuMemAllocManaged(&to, 4, 1), CUDA_SUCCESS);
  void *arguments[] = {&to};
  assert_int_equal(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL), CUDA_SUCCESS);
  assert_int_equal(cuCtxSynchronize(), CUDA_SUCCESS);
  assert_int_equal(*(int *)(uintptr_t)to, 42);
  assert_int_equal(cuModuleUnload(module), CUDA_SUCCESS);
}

static void test_one(void **state) {
  nvJitLinkHandle link = start();
  char text[sizeof alone];
  size_t size;
  assert_int_equal(nvJitLinkGetLinkedCubinSize(link, &size), 3); /* not complete */
  assert_int_equal(nvJitLinkAddData(link, ANY, alone, sizeof alone - 1, "alone"), 0);
  run(link);
  assert_int_equal(nvJitLinkGetLinkedPtxSize(link, &size), 0);
  assert_int_equal(size, sizeof alone);
  assert_int_equal(nvJitLinkGetLinkedPtx(link, text), 0);
  assert_string_equal(text, alone);
  assert_int_equal(nvJitLinkDestroy(&link), 0);
  assert_null(link);
}

static void test_two(void **state) {
  nvJitLinkHandle link = start();
  size_t size;
  assert_int_equal(nvJitLinkAddData(link, PTX, calls, sizeof calls, "calls"), 0);
  assert_int_equal(nvJitLinkAddData(link, CUBIN, callee, sizeof callee, "callee"), 0); /* as NVRTC gives it here */
  assert_int_equal(nvJitLinkAddData(link, LIBRARY, "!<arch>\nlibcudadevrt", 20, "cudadevrt"), 0);
  run(link);
  assert_int_equal(nvJitLinkGetLinkedPtxSize(link, &size), 3); /* it is no one text */
  assert_int_equal(nvJitLinkDestroy(&link), 0);
}

static void expect_log(nvJitLinkHandle link, const char *what) {
  char log[512];
  size_t size;
  assert_int_equal(nvJitLinkGetErrorLogSize(link, &size), 0);
  assert_true(size && size <= sizeof log);
  assert_int_equal(nvJitLinkGetErrorLog(link, log), 0);
  assert_int_equal(strlen(log), size - 1);
  assert_non_null(strstr(log, what));
}

/* The callee as nvcc -dc leaves it: a fat binary in a section of a host's object. kind 0: it has no entries. */
static void make_object(ff_text *out, const char *section, uint32_t kind) {
  ff_text image = {0}, inner = {0};
  fatbin_item item = {.kind = FATBIN_KIND_PTX,
                      .arch = 75,
                      .version_major = 7,
                      .version_minor = 5,
                      .bytes = callee,
                      .size = sizeof callee};
  if (kind && kind != FATBIN_KIND_PTX) { /* what is in machine code does not count, whatever it looks like */
    assert_int_equal(fatbin_encode(&item, 1, &inner, NULL), FF_OK);
    item.kind = kind;
    item.bytes = inner.chars;
    item.size = inner.length;
  }
  char names[32] = {0};
  assert_int_equal(fatbin_encode(&item, kind != 0, &image, NULL), FF_OK);
  free(inner.chars);
  size_t length = strlen(section);
  memcpy(names + 1, section, length);
  Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                       .e_type = ET_REL,
                       .e_machine = EM_X86_64,
                       .e_shoff = sizeof header,
                       .e_shentsize = sizeof(Elf64_Shdr),
                       .e_shnum = 3,
                       .e_shstrndx = 2};
  Elf64_Shdr sections[3] = {{0},
                            {.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_size = image.length + 24},
                            {.sh_type = SHT_STRTAB, .sh_size = sizeof names}};
  sections[2].sh_offset = sizeof header + sizeof sections;
  sections[1].sh_offset = sections[2].sh_offset + sizeof names;
  ff_text_add_bytes(out, (const char *)&header, sizeof header);
  ff_text_add_bytes(out, (const char *)sections, sizeof sections);
  ff_text_add_bytes(out, names, sizeof names);
  ff_text_add_bytes(out, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
  ff_text_add_bytes(out, image.chars, image.length);
  ff_text_add_bytes(out, "\0\0\0\0\0\0\0\0", 8);
  free(image.chars);
}

static void add_member(ff_text *out, const char *name, const char *bytes, size_t size) {
  ff_text_add(out, "%-48s%-10zu`\n", name, size);
  ff_text_add_bytes(out, bytes, size);
  if (size % 2) ff_text_add_bytes(out, "\n", 1);
}

/* An archive of an odd member, the object, and the device runtime, whose function of the same name does not count. */
static void make_archive(ff_text *out, const ff_text *object, const char *last) {
  static const char names[] = "a_rather_long_name.o/\ncuda_device_runtime.o/\n";
  ff_text_add_bytes(out, "!<arch>\n", 8);
  add_member(out, "//", names, sizeof names - 1);
  add_member(out, "readme/", "odd", 3);
  if (!last) add_member(out, "/0", object->chars, object->length);
  add_member(out, last ? last : "/22", object->chars, object->length);
}

static void test_objects(void **state) {
  static const char *const sections[] = {"__nv_relfatbin", ".nv_fatbin"};
  enum { OBJECT = 5 };
  for (int way = 0; way < 8; way++) {
    ff_text object = {0}, archive = {0};
    make_object(&object, sections[way % 2], FATBIN_KIND_PTX);
    make_archive(&archive, &object, NULL);
    const ff_text *file = way & 2 ? &archive : &object;
    nvJitLinkHandle link = start();
    assert_int_equal(nvJitLinkAddData(link, PTX, calls, sizeof calls, "calls"), 0);
    assert_int_equal(nvJitLinkAddData(link,
                                      way & 4   ? ANY
                                      : way & 2 ? LIBRARY
                                                : OBJECT,
                                      file->chars, file->length, "host"),
                     0);
    run(link);
    assert_int_equal(nvJitLinkDestroy(&link), 0);
    CUlinkState driver;
    void *cubin;
    size_t size;
    assert_int_equal(cuLinkCreate_v2(0, NULL, NULL, &driver), CUDA_SUCCESS);
    assert_int_equal(cuLinkAddData_v2(driver, 1, (void *)(uintptr_t)calls, sizeof calls, "calls", 0, NULL, NULL),
                     CUDA_SUCCESS);
    assert_int_equal(cuLinkAddData_v2(driver, way & 2 ? 4 : 3, file->chars, file->length, "host", 0, NULL, NULL),
                     CUDA_SUCCESS);
    assert_int_equal(cuLinkComplete(driver, &cubin, &size), CUDA_SUCCESS);
    assert_int_equal(cuLinkDestroy(driver), CUDA_SUCCESS);
    free(object.chars);
    free(archive.chars);
  }
}

static void count_image(void *to, const void *image, size_t size) {
  uint32_t magic; /* a member of an archive is at an even address */
  memcpy(&magic, image, sizeof magic);
  assert_int_equal(magic, FATBIN_MAGIC);
  assert_true(size > sizeof callee);
  ++*(int *)to;
}

static void read_image(void *to, const void *image, size_t size) {
  for (size_t i = 0; i < size; i++) *(unsigned *)to += ((const unsigned char *)image)[i];
}

/* An entry of no bytes would never be passed. */
static void try_empty_entry(const ff_text *object) {
  enum { ENTRY = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Shdr) + 32 + 16 + FATBIN_HEADER_BYTES };
  char *spoilt = malloc(object->length);
  unsigned sum = 0;
  memcpy(spoilt, object->chars, object->length);
  assert_int_equal(spoilt[ENTRY], FATBIN_KIND_ELF);
  memset(spoilt + ENTRY + 4, 0, 12); /* sizes of header and payload */
  assert_int_equal(linked_object_images(spoilt, object->length, read_image, &sum), 0);
  free(spoilt);
}

/* Nor would a fat binary whose header, and all of it, has no bytes. Nothing behind one with a short header counts. */
static void try_empty_image(const ff_text *object) {
  enum { IMAGE = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Shdr) + 32 + 16 };
  char *spoilt = malloc(object->length);
  unsigned sum = 0;
  memcpy(spoilt, object->chars, object->length);
  assert_int_equal(*(uint32_t *)(spoilt + IMAGE), FATBIN_MAGIC);
  spoilt[IMAGE + 6]--; /* the header's size */
  assert_int_equal(linked_object_images(spoilt, object->length, read_image, &sum), 0);
  memset(spoilt + IMAGE + 6, 0, 10); /* sizes of header and entries */
  assert_int_equal(linked_object_images(spoilt, object->length, read_image, &sum), 0);
  free(spoilt);
}

/* Each byte of a file spoilt: the search ends, and stays in the file, which a sanitizer sees. */
static void try_spoilt(const ff_text *file) {
  static const char values[] = {0, 1, -1};
  for (size_t at = 0; at < 3 * file->length; at++) {
    char *spoilt = malloc(file->length);
    unsigned sum = 0;
    memcpy(spoilt, file->chars, file->length);
    spoilt[at / 3] = values[at % 3];
    linked_object_images(spoilt, file->length, read_image, &sum);
    free(spoilt);
  }
}

static size_t spoilt_images(const ff_text *file, size_t at, char value) {
  char *spoilt = malloc(file->length);
  unsigned sum = 0;
  memcpy(spoilt, file->chars, file->length);
  spoilt[at] = value;
  size_t found = linked_object_images(spoilt, file->length, read_image, &sum);
  free(spoilt);
  return found;
}

/* Machine code, other sections, the device runtime alone, and every file that is cut off. */
static void test_no_objects(void **state) {
  ff_text object = {0}, code = {0}, other = {0}, archive = {0}, runtime = {0};
  make_object(&object, "__nv_relfatbin", FATBIN_KIND_PTX);
  make_object(&code, "__nv_relfatbin", FATBIN_KIND_ELF);
  make_object(&other, ".text", FATBIN_KIND_PTX);
  make_archive(&archive, &object, NULL);
  make_archive(&runtime, &object, "/22");
  int count = 0;
  assert_int_equal(linked_object_images(code.chars, code.length, count_image, &count), 0);
  assert_int_equal(linked_object_images(other.chars, other.length, count_image, &count), 0);
  assert_int_equal(linked_object_images(runtime.chars, runtime.length, count_image, &count), 0);
  assert_int_equal(linked_object_images(archive.chars, archive.length, count_image, &count), 1);
  assert_int_equal(count, 1);
  for (size_t length = 0; length < archive.length; length++) {
    char *cut = malloc(length + 1); /* so that a sanitizer sees what is read behind it */
    memcpy(cut, archive.chars, length);
    linked_object_images(cut, length, count_image, &count);
    free(cut);
  }
  for (size_t length = 0; length < object.length - 8; length++) {
    char *cut = malloc(length + 1);
    memcpy(cut, object.chars, length);
    assert_int_equal(linked_object_images(cut, length, count_image, &count), 0);
    free(cut);
  }
  try_empty_entry(&code);
  try_empty_image(&object);
  try_spoilt(&object);
  try_spoilt(&code);
  try_spoilt(&archive);
  assert_int_equal(spoilt_images(&object, 0, 'E'), 0);
  assert_int_equal(spoilt_images(&object, offsetof(Elf64_Ehdr, e_shentsize), 63), 0);
  assert_int_equal(
      spoilt_images(&object, sizeof(Elf64_Ehdr) + sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_type), SHT_NOBITS), 0);
  nvJitLinkHandle link = start();
  assert_int_equal(nvJitLinkAddData(link, ANY, code.chars, code.length, "host"), 3);
  expect_log(link, "host: is machine code");
  assert_int_equal(nvJitLinkAddData(link, ANY, runtime.chars, runtime.length, "cudadevrt"), 0);
  assert_int_equal(nvJitLinkDestroy(&link), 0);
  free(object.chars);
  free(code.chars);
  free(other.chars);
  free(archive.chars);
  free(runtime.chars);
}

/* ---- objects that a link refuses ---- */

static void add_object(ff_text *archive, const char *section, uint32_t kind) {
  ff_text object = {0};
  if (!archive->length) ff_text_add_bytes(archive, "!<arch>\n", 8);
  make_object(&object, section, kind);
  add_member(archive, "of/", object.chars, object.length);
  free(object.chars);
}

/* A file that both linkers refuse, or take. What is refused leaves nothing behind. */
static void expect_added(const ff_text *file, CUresult result, const char *what) {
  nvJitLinkHandle link = start();
  CUlinkState driver;
  void *cubin;
  size_t size;
  assert_int_equal(cuLinkCreate_v2(0, NULL, NULL, &driver), CUDA_SUCCESS);
  assert_int_equal(nvJitLinkAddData(link, LIBRARY, file->chars, file->length, "host"), result ? 3 : 0);
  assert_int_equal(cuLinkAddData_v2(driver, 4, file->chars, file->length, "host", 0, NULL, NULL), result);
  if (result) {
    expect_log(link, what);
    assert_int_equal(cuLinkComplete(driver, &cubin, &size), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(nvJitLinkAddData(link, PTX, alone, sizeof alone, "alone"), 0);
    run(link);
    assert_int_equal(nvJitLinkGetLinkedPtxSize(link, &size), 0); /* it is of one text */
  }
  assert_int_equal(nvJitLinkDestroy(&link), 0);
  assert_int_equal(cuLinkDestroy(driver), CUDA_SUCCESS);
}

/* An archive whose objects have no code that a link can take, beside others. */
static void test_machine_code(void **state) {
  static const char only[] = "host: has an object of machine code only";
  static const struct {
    const char *section;
    uint32_t kind;
    CUresult alone, with_ptx;
  } cases[] = {{"__nv_relfatbin", FATBIN_KIND_ELF, CUDA_ERROR_NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU},
               {".nv_fatbin", FATBIN_KIND_ELF, CUDA_ERROR_NO_BINARY_FOR_GPU, CUDA_SUCCESS}, /* of nvcc -dlink */
               {"__nv_relfatbin", 0, CUDA_SUCCESS, CUDA_SUCCESS},
               {".text", FATBIN_KIND_ELF, CUDA_SUCCESS, CUDA_SUCCESS}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ff_text archive = {0};
    add_object(&archive, cases[i].section, cases[i].kind);
    expect_added(&archive, cases[i].alone, only);
    add_object(&archive, "__nv_relfatbin", FATBIN_KIND_PTX);
    expect_added(&archive, cases[i].with_ptx, only);
    free(archive.chars);
  }
  ff_text object = {0}, runtime = {0};
  make_object(&object, "__nv_relfatbin", FATBIN_KIND_ELF);
  make_archive(&runtime, &object, "/22");
  expect_added(&runtime, CUDA_SUCCESS, NULL);
  free(object.chars);
  free(runtime.chars);
}

/* A link has room for so many parts. */
static void test_many(void **state) {
  ff_text archive = {0};
  for (int i = 0; i < LINKED_PARTS_MAX; i++) add_object(&archive, "__nv_relfatbin", FATBIN_KIND_PTX);
  expect_added(&archive, CUDA_SUCCESS, NULL);
  CUlinkState driver;
  nvJitLinkHandle link = start();
  assert_int_equal(cuLinkCreate_v2(0, NULL, NULL, &driver), CUDA_SUCCESS);
  assert_int_equal(nvJitLinkAddData(link, PTX, alone, sizeof alone, "alone"), 0);
  assert_int_equal(cuLinkAddData_v2(driver, 1, (void *)(uintptr_t)alone, sizeof alone, "alone", 0, NULL, NULL),
                   CUDA_SUCCESS);
  assert_int_equal(nvJitLinkAddData(link, LIBRARY, archive.chars, archive.length, "host"), 3);
  expect_log(link, "host: too many inputs");
  assert_int_equal(cuLinkAddData_v2(driver, 4, archive.chars, archive.length, "host", 0, NULL, NULL),
                   CUDA_ERROR_INVALID_VALUE);
  run(link);
  assert_int_equal(nvJitLinkDestroy(&link), 0);
  assert_int_equal(cuLinkDestroy(driver), CUDA_SUCCESS);
  add_object(&archive, "__nv_relfatbin", FATBIN_KIND_PTX);
  expect_added(&archive, CUDA_ERROR_INVALID_VALUE, "host: too many inputs");
  free(archive.chars);
}

static void test_wrong(void **state) {
  nvJitLinkHandle link = start();
  unsigned major, minor;
  size_t size;
  assert_int_equal(nvJitLinkGetErrorLogSize(link, &size), 0);
  assert_int_equal(size, 0);
  assert_int_equal(nvJitLinkAddData(link, CUBIN, "\177ELF\2\1\1", 8, "code"), 3);
  expect_log(link, "code: is machine code");
  assert_int_equal(nvJitLinkComplete(link), 3);
  expect_log(link, "nothing was added");
  assert_int_equal(nvJitLinkAddFile(link, PTX, "/nonexistent/file"), 3);
  expect_log(link, "/nonexistent/file");
  assert_int_equal(nvJitLinkAddData(link, PTX, NULL, 4, "none"), 10);
  assert_int_equal(nvJitLinkAddData(link, LTOIR, "BC\300\336", 4, "ir"), 0);
  assert_int_equal(nvJitLinkComplete(link), 5); /* there is no library of NVIDIA's */
  expect_log(link, "LTO-IR");
  assert_int_equal(nvJitLinkDestroy(&link), 0);
  assert_int_equal(nvJitLinkDestroy(&link), 10);
  assert_int_equal(nvJitLinkCreate(NULL, 0, NULL), 10);
  assert_int_equal(nvJitLinkVersion(&major, &minor), 0);
  assert_int_equal(major, 13);
}

/* ---- a limit of registers ---- */

static int registers_of(CUmodule module) {
  CUfunction function;
  int count;
  assert_int_equal(cuModuleGetFunction(&function, module, "many"), CUDA_SUCCESS);
  assert_int_equal(cuFuncGetAttribute(&count, 4, function), CUDA_SUCCESS);
  assert_int_equal(cuModuleUnload(module), CUDA_SUCCESS);
  return count;
}

/* All 60 values are loaded before the first is stored. */
static void write_many(ff_text *text) {
  ff_text_add(text, "%s.visible .entry many(.param .u64 to)\n{\n.reg .b64 %%rd<2>;\n.reg .b32 %%r<60>;\n", HEAD);
  ff_text_add(text, "ld.param.u64 %%rd1, [to];\n");
  for (int i = 0; i < 60; i++) ff_text_add(text, "ld.global.u32 %%r%d, [%%rd1 + %d];\n", i, 4 * i);
  for (int i = 0; i < 60; i++) ff_text_add(text, "st.global.u32 [%%rd1 + %d], %%r%d;\n", 4 * i + 4, i);
  ff_text_add(text, "ret;\n}\n");
}

static CUmodule link_limited(const ff_text *text, uint32_t count, const char **options) {
  nvJitLinkHandle link;
  size_t size;
  CUmodule module;
  assert_int_equal(nvJitLinkCreate(&link, count, options), 0);
  assert_int_equal(nvJitLinkAddData(link, PTX, text->chars, text->length + 1, "many"), 0);
  assert_int_equal(nvJitLinkComplete(link), 0);
  assert_int_equal(nvJitLinkGetLinkedCubinSize(link, &size), 0);
  char *image = malloc(size);
  assert_int_equal(nvJitLinkGetLinkedCubin(link, image), 0);
  assert_int_equal(cuModuleLoadData(&module, image), CUDA_SUCCESS);
  free(image);
  assert_int_equal(nvJitLinkGetLinkedPtxSize(link, &size), 0); /* as it was */
  assert_int_equal(size, text->length + 1);
  assert_int_equal(nvJitLinkDestroy(&link), 0);
  return module;
}

static void test_registers(void **state) {
  ff_text text = {0};
  CUmodule module;
  CUlinkState link;
  const int limit = 0; /* CU_JIT_MAX_REGISTERS */
  void *image, *values[] = {(void *)40};
  write_many(&text);
  assert_true(registers_of(link_limited(&text, 1, (const char *[]){"-arch=sm_90"})) > 57);
  assert_int_equal(registers_of(link_limited(&text, 2, (const char *[]){"-arch=sm_90", "-maxrregcount=38"})), 38);
  assert_int_equal(cuModuleLoadDataEx(&module, text.chars, 1, &limit, values), CUDA_SUCCESS);
  assert_int_equal(registers_of(module), 40);
  assert_int_equal(cuLinkCreate_v2(1, &limit, values, &link), CUDA_SUCCESS);
  assert_int_equal(cuLinkAddData_v2(link, 1, text.chars, text.length + 1, "many", 0, NULL, NULL), CUDA_SUCCESS);
  assert_int_equal(cuLinkComplete(link, &image, NULL), CUDA_SUCCESS);
  assert_int_equal(cuModuleLoadData(&module, image), CUDA_SUCCESS);
  assert_int_equal(registers_of(module), 40);
  assert_int_equal(cuLinkDestroy(link), CUDA_SUCCESS);
  free(text.chars);
}

/* A damaged image is refused, wherever it is cut. */
static void test_damaged(void **state) {
  link_part part = {.bytes = (char *)alone, .name = "alone", .size = sizeof alone}, parts[LINKED_PARTS_MAX];
  ff_text image = {0};
  uint32_t most;
  linked_image_write(&part, 1, 38, &image);
  assert_true(linked_image_is(image.chars, image.length));
  assert_int_equal(linked_image_read(image.chars, image.length, parts, &most), 1);
  assert_int_equal(most, 38);
  assert_string_equal(parts[0].name, "alone");
  assert_int_equal(parts[0].size, sizeof alone);
  for (size_t cut = 32; cut < image.length; cut++)
    assert_int_equal(linked_image_read(image.chars, cut, parts, &most), 0);
  for (size_t at = 16; at < 48; at++) { /* sizes and counts */
    image.chars[at] ^= 0x40;
    if (linked_image_read(image.chars, image.length, parts, &most) == 1) assert_true(parts[0].size <= image.length);
    image.chars[at] ^= 0x40;
  }
  free(image.chars);
}

static int open_device(void **state) {
  CUcontext context;
  return cuInit(0) || cuCtxCreate_v2(&context, 0, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one),        cmocka_unit_test(test_two),          cmocka_unit_test(test_objects),
      cmocka_unit_test(test_no_objects), cmocka_unit_test(test_wrong),        cmocka_unit_test(test_damaged),
      cmocka_unit_test(test_registers),  cmocka_unit_test(test_machine_code), cmocka_unit_test(test_many),
  };
  return cmocka_run_group_tests(tests, open_device, NULL);
}
