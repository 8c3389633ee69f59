/* SPDX-License-Identifier: Apache-2.0 */
/* Images that hold machine code only, and folders of PTX for them: what is taken from where, and what is said. */
#define _GNU_SOURCE
#include "unit/driver/program.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "driver/driver_api/libcuda.h"
#include "driver/engine/kernel_folders.h"
#include "driver/engine/kernel_name.h"
#include "driver/engine/kernel_text.h"
#include "fatbin/cubin.h"

CUresult cuInit(unsigned), cuModuleLoadData(CUmodule *, const void *);
CUresult cuDevicePrimaryCtxRetain(CUcontext *, CUdevice), cuCtxSetCurrent(CUcontext);
CUresult cuLibraryLoadData(CUlibrary *, const void *, const int *, void **, unsigned, const int *, void **, unsigned);
CUresult cuLibraryGetKernel(CUkernel *, CUlibrary, const char *);
CUresult cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuLibraryGetGlobal(CUdeviceptr *, size_t *, CUlibrary, const char *);

static char folders[2][64]; /* of --kernels, in this order */
static char missing[80];

/* ---- helpers ---- */

static void write_text(const char *folder, const char *name, const char *text) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  assert_int_equal(ff_file_write(path, text, strlen(text), NULL), FF_OK);
}

/* With a time that no file has that was written before: clocks of file systems have ticks of up to 10 ms. */
static void write_later(const char *folder, const char *name, const char *text) {
  usleep(20000);
  write_text(folder, name, text);
}

static bool is_there(const char *folder, const char *name) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return access(path, F_OK) == 0;
}

/* A kernel that writes `value` to where its parameter points. */
#define KERNEL(name, value)                                                                                      \
  ".visible .entry " name "(.param .u64 .ptr .global .align 4 out)\n{\n.reg .b64 %p;\nld.param.u64 %p, [out];\n" \
  "st.global.u32 [%p], " #value ";\nret;\n}\n"

/* Machine code: an ELF file with a section for each of the functions, and nothing in it. */
static void make_cubin(const char *const *functions, uint32_t count, ff_text *out) {
  ff_text names = {0};
  ff_text_add_bytes(&names, "", 1);
  Elf64_Shdr sections[8] = {{0}};
  for (uint32_t i = 0; i < count; i++) {
    sections[i + 1] = (Elf64_Shdr){.sh_name = (Elf64_Word)names.length, .sh_type = SHT_PROGBITS};
    ff_text_add(&names, ".text.%s", functions[i]);
    ff_text_add_bytes(&names, "", 1);
  }
  Elf64_Ehdr header = {.e_shentsize = sizeof *sections, .e_shnum = (Elf64_Half)(count + 2)};
  memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_shstrndx = (Elf64_Half)(count + 1);
  header.e_shoff = sizeof header + names.length;
  sections[count + 1] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = sizeof header, .sh_size = names.length};
  ff_text_add_bytes(out, &header, sizeof header);
  ff_text_add_bytes(out, names.chars, names.length);
  ff_text_add_bytes(out, sections, (count + 2) * sizeof *sections);
  free(names.chars);
}

/* What nvcc would put into a program for machine code; it lives as long as the program. */
static wrapper *wrap_code(const char *const *functions, uint32_t count) {
  ff_text code = {0}, bytes = {0};
  make_cubin(functions, count, &code);
  fatbin_item item = {
      .kind = FATBIN_KIND_ELF, .arch = 90, .bytes = code.chars, .size = code.length, .packing = FATBIN_LZ4};
  assert_int_equal(fatbin_encode(&item, 1, &bytes, NULL), FF_OK);
  wrapper *made = calloc(1, sizeof *made);
  *made = (wrapper){.magic = FATBIN_WRAPPER_MAGIC, .version = 1, .data = bytes.chars, .next = registered_wrappers};
  registered_wrappers = made;
  free(code.chars);
  return made;
}

static void **register_code(const char *function) { return __cudaRegisterFatBinary(wrap_code(&function, 1)); }

/* Runs the kernel behind the stub and returns what it has written. */
static uint32_t result_of(const char *stub) {
  uint32_t *device, host = 0;
  succeed(cudaMalloc((void **)&device, sizeof *device));
  void *arguments[] = {&device};
  succeed(launch(stub, 1, 1, arguments));
  succeed(cudaMemcpy(&host, device, sizeof host, cudaMemcpyDeviceToHost));
  succeed(cudaFree(device));
  return host;
}

/* stderr from listen() to heard() as a text. */
static char heard_text[8192];
static FILE *messages;
static int stderr_before;

static void listen(void) {
  messages = tmpfile();
  stderr_before = dup(2);
  dup2(fileno(messages), 2);
}

static const char *heard(void) {
  dup2(stderr_before, 2);
  close(stderr_before);
  rewind(messages);
  heard_text[fread(heard_text, 1, sizeof heard_text - 1, messages)] = '\0';
  fclose(messages);
  return heard_text;
}

static char *read_missing(void) {
  char *text;
  size_t size;
  if (ff_file_read(missing, 0, &text, &size, NULL)) return ff_strdup("");
  return text;
}

/* ---- names ---- */

static void expect_same(const char *left, const char *right, bool same) {
  bool equal = kernel_name_hash(left, strlen(left)) == kernel_name_hash(right, strlen(right));
  if (equal != same) fail_msg("%s and %s: %s", left, right, equal ? "same" : "different");
}

static void names_without_what_builds_change(void **state) {
  (void)state;
  expect_same("_ZN38_GLOBAL__N__5e798be1_6_cub_cu_8a0ccfeb4scanEPf",
              "_ZN38_GLOBAL__N__f5692ca1_6_cub_cu__Z3runPf4scanEPf", true);
  expect_same("_ZN38_GLOBAL__N__5e798be1_6_cub_cu_8a0ccfeb4scanEPf",
              "_ZN38_GLOBAL__N__5e798be1_6_dub_cu_8a0ccfeb4scanEPf", false);
  expect_same("_ZN64_GLOBAL__N__41_tmpxft_0000abcd_00000000_9_foo_cpp1_ii_12345678_14scanEPf",
              /* not as long as they say: left as they are */
              "_ZN33_GLOBAL__N__1a2b3c4d_6_foo_cu_98765_14scanEPf", false);
  expect_same("_ZN63_GLOBAL__N__48_tmpxft_0000abcd_00000000_11_foo_cpp1_ii_123456784scanEPf",
              "_ZN63_GLOBAL__N__48_tmpxft_0000ffff_00000000_11_foo_cpp1_ii_876543214scanEPf", true);
  expect_same("_ZN3cub33CUB_200302_500_600_700_800_900_NS4scanEPf", "_ZN3cub17CUB_200302_750_NS4scanEPf", true);
  expect_same("_ZN3cub33CUB_200302_500_600_700_800_900_NS4scanEPf", "_ZN3cub17CUB_200402_750_NS4scanEPf", false);
  expect_same("_ZN6thrust20THRUST_200302_800_NS4scanEPf", "_ZN6thrust20THRUST_200302_900_NS4scanEPf", true);
  expect_same("_Z4scanPf", "_Z4scanPi", false);
  expect_same("_ZN15_GLOBAL__N__ab_3runv", "_ZN15_GLOBAL__N__ac_3runv", false); /* ends where a file could begin */
  expect_same("_ZN24_GLOBAL__N__ab__6_cub_cu4scanEPf", "_ZN24_GLOBAL__N__ac__6_cub_cu4scanEPf", true);
  expect_same("_ZN999_GLOBAL__N__", "_ZN998_GLOBAL__N__", false); /* longer than the name */
  expect_same("_ZN99999999999999999999_GLOBAL__N__1", "_ZN99999999999999999999_GLOBAL__N__2", false);
  char file[16];
  assert_true(kernel_name_file("_ZN38_GLOBAL__N__5e798be1_6_cub_cu_8a0ccfeb4scanEPf", file, sizeof file));
  assert_string_equal(file, "cub.cu");
  assert_false(kernel_name_file("_Z4scanPf", file, sizeof file));
}

static void expect_hashes(const char *text, const char *const *names, size_t count) {
  kernel_hashes hashes = {0};
  assert_true(kernel_hashes_of(text, strlen(text), &hashes));
  assert_int_equal(hashes.count, count);
  for (size_t i = 0; i < count; i++) assert_int_equal(hashes.items[i], kernel_name_hash(names[i], strlen(names[i])));
  free(hashes.items);
}

static void what_a_text_defines(void **state) {
  (void)state;
  expect_hashes(
      "// \"a comment\"\n/* .entry no() {} */" PTX_HEAD ".global .align 4 .u32 first;\n"
      ".visible .const .align 4 .b8 second[8] = {1, 2, 3};\n.extern .global .u32 elsewhere;\n"
      ".extern .shared .align 16 .b8 shared[];\n.global .u64 third[2] = {first, generic(first)};\n" KERNEL(
          "one",
          1) ".func (.param .u32 r) helper(.param .u32 a)\n{\n.global .u32 inside;\nret;\n}\n.entry two()\n.maxntid 32\n{ret;}\n",
      (const char *const[]){"first", "second", "third", "one", "two"}, 5);
  kernel_hashes hashes = {0};
  assert_false(kernel_hashes_of("", 0, &hashes));
  assert_false(kernel_hashes_of("\177ELF", 4, &hashes));
  assert_false(kernel_hashes_of("/* .version 7.0 ", 16, &hashes));
  assert_false(kernel_hashes_of(".version 7.0\n\0.entry", 20, &hashes));
  expect_hashes(PTX_HEAD ".entry", NULL, 0); /* cut short */
  expect_hashes(PTX_HEAD ".entry {(((", NULL, 0);
}

static void count_name(void *context, const char *name, size_t length) {
  (void)name, (void)length;
  ++*(int *)context;
}

static void a_broken_cubin_has_no_names(void **state) {
  (void)state;
  ff_text code = {0};
  make_cubin((const char *const[]){"one", "two"}, 2, &code);
  int count = 0;
  cubin_functions(code.chars, code.length, count_name, &count);
  assert_int_equal(count, 2);
  for (size_t size = 0; size < code.length; size++) { /* each in memory of its own, so that a byte too many is seen */
    char *part = malloc(size + 1);
    memcpy(part, code.chars, size);
    if (size) cubin_functions(part, size, count_name, &count);
    free(part);
  }
  for (size_t at = 16; at < code.length; at++) { /* each byte wrong */
    char kept = code.chars[at];
    code.chars[at] = (char)0xff;
    cubin_functions(code.chars, code.length, count_name, &count);
    code.chars[at] = kept;
  }
  free(code.chars);
}

/* ---- programs ---- */

static void kernels_come_from_the_folder(void **state) {
  (void)state;
  STUB(plain);
  STUB(hidden);
  STUB(counter);
  void **handle = register_code("plain_kernel");
  register_kernel(handle, plain, "plain_kernel");
  register_kernel(handle, hidden, "_ZN38_GLOBAL__N__aaaaaaaa_6_one_cu_bbbbbbbb6hiddenEPj"); /* of another build */
  __cudaRegisterVar(handle, counter, counter, "counter", 0, 4, 0, 0);
  assert_int_equal(result_of(plain), 1);
  assert_int_equal(result_of(hidden), 7); /* the variable is the same translation unit's */
  uint32_t value = 9;
  succeed(cudaMemcpyToSymbol(counter, &value, sizeof value, 0, cudaMemcpyHostToDevice));
  assert_int_equal(result_of(hidden), 9);
  cudaFuncAttributes attributes;
  succeed(cudaFuncGetAttributes(&attributes, plain));
  succeed(cudaDeviceReset());
  assert_int_equal(result_of(plain), 1);
  assert_int_equal(result_of(hidden), 7); /* as when it was loaded */
  __cudaUnregisterFatBinary(handle);
  expect(launch(plain, 1, 1, NULL), cudaErrorInvalidDeviceFunction);
  (void)cudaGetLastError();
}

/* Kernels are read when they are first used: of a small file from memory, a large one must still be what it was. */
static void a_large_file_that_changes_is_refused(void **state) {
  (void)state;
  kernel_text *text;
  char path[128], *statement;
  size_t length;
  ff_error error;
  snprintf(path, sizeof path, "%s/changing.ptx", folders[1]);
  write_text(folders[1], "changing.ptx", PTX_HEAD KERNEL("early_kernel", 30) KERNEL("late_kernel", 31));
  assert_int_equal(kernel_text_open(path, &text, &error), FF_OK);
  write_text(folders[1], "changing.ptx", PTX_HEAD KERNEL("late_kernel", 32));
  assert_int_equal(kernel_text_read(text, "late_kernel", &statement, &length, &error), FF_OK);
  assert_non_null(strstr(statement, "[%p], 31;"));
  free(statement);
  kernel_text_close(text);
  ff_text large = {0};
  ff_text_add(&large, "%s", PTX_HEAD KERNEL("early_kernel", 30) KERNEL("late_kernel", 31));
  while (large.length <= 1 << 20) ff_text_add(&large, "// one more line\n");
  write_text(folders[1], "changing.ptx", large.chars);
  free(large.chars);
  assert_int_equal(kernel_text_open(path, &text, &error), FF_OK);
  assert_int_equal(kernel_text_read(text, "late_kernel", &statement, &length, &error), FF_OK);
  assert_true(!strncmp(statement, ".visible .entry late_kernel", 27) && statement[length - 1] == '}');
  free(statement);
  assert_int_equal(kernel_text_read(text, "no_kernel", &statement, &length, &error), FF_NOT_FOUND);
  write_text(folders[1], "changing.ptx", PTX_HEAD KERNEL("late_kernel", 32));
  assert_int_equal(kernel_text_read(text, "late_kernel", &statement, &length, &error), FF_IO);
  assert_non_null(strstr(error.message, "has changed"));
  kernel_text_close(text);
  write_text(folders[1], "launching.ptx",
             PTX_HEAD ".extern .func cudaGetParameterBuffer();\n" KERNEL("whole_kernel", 1));
  snprintf(path, sizeof path, "%s/launching.ptx", folders[1]);
  assert_int_equal(kernel_text_open(path, &text, &error), FF_OK);
  assert_null(kernel_text_name(text, "whole_kernel")); /* it may name others: not taken apart */
  assert_non_null(strstr(kernel_text_shared(text, &length), "whole_kernel"));
  kernel_text_close(text);
}

/* Both folders have one.ptx and the kernel; the first counts. A file with more of a module's names counts more. */
static void the_fitting_file_counts(void **state) {
  (void)state;
  STUB(shared);
  STUB(alone);
  void **handle = register_code("shared_kernel");
  register_kernel(handle, shared, "shared_kernel");
  assert_int_equal(result_of(shared), 10);
  void **second = register_code("shared_kernel");
  register_kernel(second, shared, "shared_kernel");
  register_kernel(second, alone, "only_in_second");
  assert_int_equal(result_of(shared), 20);
  assert_int_equal(result_of(alone), 21);
}

/* A template's kernel is registered by one of the units that use it, maybe by one whose file lacks it: any file that
 * has it serves, with its own variables. */
static void a_kernel_of_several_units(void **state) {
  (void)state;
  STUB(plain);
  STUB(template);
  void **handle = register_code("plain_kernel");
  register_kernel(handle, plain, "plain_kernel");
  register_kernel(handle, template, "_ZN29CUB_200302_500_600_700_800_NS4scanEPj");
  assert_int_equal(result_of(plain), 1);
  assert_int_equal(result_of(template), 44);
  succeed(cudaDeviceReset());
  assert_int_equal(result_of(template), 44);
  assert_int_equal(result_of(plain), 1);
  __cudaUnregisterFatBinary(handle);
  const char *names[] = {"plain_kernel", "_ZN25CUB_200302_500_600_700_NS4scanEPj"};
  ff_text code = {0};
  CUmodule module;
  CUfunction function;
  CUcontext context;
  assert_int_equal(cuInit(0), CUDA_SUCCESS);
  assert_int_equal(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  assert_int_equal(cuCtxSetCurrent(context), CUDA_SUCCESS);
  make_cubin(names, 2, &code);
  assert_int_equal(cuModuleLoadData(&module, code.chars), CUDA_SUCCESS);
  assert_int_equal(cuModuleGetFunction(&function, module, names[1]), CUDA_SUCCESS);
  free(code.chars);
}

static void what_is_missing_is_named(void **state) {
  (void)state;
  STUB(absent);
  STUB(lacking);
  const char *name = "_ZN41_GLOBAL__N__aaaaaaaa_9_absent_cu_bbbbbbbb6absentEPj";
  void **handle = register_code(name);
  register_kernel(handle, absent, name);
  void **other = register_code("shared_kernel");
  register_kernel(other, lacking, "lacking_kernel");
  register_kernel(other, NULL, "shared_kernel");
  listen();
  cudaError_t first = launch(absent, 1, 1, NULL), again = launch(absent, 1, 1, NULL);
  (void)cudaGetLastError();
  cudaError_t last = cudaGetLastError(), other_call = cudaDeviceSynchronize(); /* the device keeps it */
  cudaError_t over = cudaDeviceReset();
  cudaError_t lacks = launch(lacking, 1, 1, NULL), afterwards = cudaDeviceSynchronize();
  const char *text = heard();
  expect(first, cudaErrorNoKernelImageForDevice);
  expect(again, cudaErrorNoKernelImageForDevice);
  succeed(last);
  expect(other_call, cudaErrorNoKernelImageForDevice);
  succeed(over);
  expect(lacks, cudaErrorNoKernelImageForDevice);
  expect(afterwards, cudaErrorNoKernelImageForDevice);
  succeed(cudaDeviceReset());
  const char *said = strstr(text, "compile absent.cu to PTX");
  assert_non_null(said);
  assert_null(strstr(said + 1, "compile absent.cu to PTX")); /* once */
  assert_non_null(strstr(text, "but lacks lacking_kernel: compile"));
  char *list = read_missing();
  assert_non_null(strstr(list, "absent.cu\t_ZN41_GLOBAL__N__"));
  assert_non_null(strstr(list, "\tlacking_kernel\n"));
  free(list);
  (void)cudaGetLastError();
}

/* Without folders: the launch fails, and nothing else does. CUB asks for the device between a launch and the look at
 * its error, and takes an error that it finds there for the answer's. */
static void without_folders_a_kernel_is_named(void **state) {
  (void)state;
  char *list = ff_strdup(getenv("FARFAULT_KERNELS"));
  static const char *const names[] = {"_Z5firstPj", "_Z6secondPj", "_Z5thirdPj", "_Z6fourthPj", "_Z5fifthPj"};
  static const char stubs[5];
  void **handle = __cudaRegisterFatBinary(wrap_code(names, 5));
  for (int i = 0; i < 5; i++) register_kernel(handle, &stubs[i], names[i]);
  cudaError_t launched[10];
  unsetenv("FARFAULT_KERNELS");
  listen();
  for (int i = 0; i < 10; i++) launched[i] = launch(&stubs[i % 5], 1, 1, NULL);
  int device = -1, count = 0;
  cudaError_t which = cudaGetDevice(&device), how_many = cudaGetDeviceCount(&count), noted = cudaGetLastError();
  cudaError_t other_call = cudaDeviceSynchronize();
  const char *text = heard();
  setenv("FARFAULT_KERNELS", list, 1);
  free(list);
  for (int i = 0; i < 10; i++) expect(launched[i], cudaErrorNoKernelImageForDevice);
  succeed(which);
  succeed(how_many);
  assert_int_equal(device, 0);
  assert_int_equal(count, 1);
  expect(noted, cudaErrorNoKernelImageForDevice);
  succeed(other_call);
  for (int i = 0; i < 3; i++) {
    char line[80];
    snprintf(line, sizeof line, "has no PTX of the kernel %s(unsigned int*)\n",
             (const char *const[]){"first", "second", "third"}[i]);
    const char *said = strstr(text, line);
    if (!said || strstr(said + 1, line)) fail_msg("not once: %s in %s", line, text);
  }
  assert_null(strstr(text, "fourth"));
  const char *further = strstr(text, "has no PTX of further kernels");
  assert_non_null(further);
  assert_null(strstr(further + 1, "has no PTX of further kernels"));
  char *lacks = read_missing();
  assert_non_null(strstr(lacks, "\t_Z6fourthPj\n"));
  assert_non_null(strstr(lacks, "\t_Z5fifthPj\n"));
  free(lacks);
}

/* A runtime that is linked into a library hands its fat binary over, and asks for kernels and variables by name. */
static void libraries_too(void **state) {
  (void)state;
  const char *functions[] = {"plain_kernel", "_ZN38_GLOBAL__N__cccccccc_6_one_cu_dddddddd6hiddenEPj"};
  CUlibrary library;
  CUkernel kernel;
  CUdeviceptr address;
  size_t bytes;
  CUcontext context;
  assert_int_equal(cuInit(0), CUDA_SUCCESS);
  assert_int_equal(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  assert_int_equal(cuCtxSetCurrent(context), CUDA_SUCCESS);
  assert_int_equal(cuLibraryLoadData(&library, wrap_code(functions, 2), NULL, NULL, 0, NULL, NULL, 0), CUDA_SUCCESS);
  assert_int_equal(cuLibraryGetKernel(&kernel, library, functions[1]), CUDA_SUCCESS);
  assert_int_equal(cuLibraryGetGlobal(&address, &bytes, library, "counter"), CUDA_SUCCESS);
  assert_int_equal(bytes, 4);
  ff_text code = {0};
  CUmodule module;
  make_cubin(functions, 2, &code);
  assert_int_equal(cuModuleLoadData(&module, code.chars), CUDA_SUCCESS);
  assert_int_equal(cuModuleGetFunction((CUfunction *)(void *)&kernel, module, functions[0]), CUDA_SUCCESS);
  listen();
  CUresult none = cuModuleGetFunction((CUfunction *)(void *)&kernel, module, "no_such_kernel");
  assert_non_null(strstr(heard(), "but lacks no_such_kernel: compile"));
  assert_int_equal(none, CUDA_ERROR_NOT_FOUND);
  free(code.chars);
}

static void a_broken_text_is_said(void **state) {
  (void)state;
  STUB(broken);
  void **handle = register_code("broken_kernel");
  register_kernel(handle, broken, "broken_kernel");
  listen();
  cudaError_t error = launch(broken, 1, 1, NULL);
  assert_non_null(strstr(heard(), "broken.ptx:"));
  assert_int_not_equal(error, cudaSuccess);
  (void)cudaGetLastError();
}

/* ---- the index ---- */

static char said[4096];
static void hear(const char *message) { snprintf(said + strlen(said), sizeof said - strlen(said), "%s\n", message); }

static const char *best(const char *list, const char *name) {
  static char path[256];
  said[0] = '\0';
  kernel_folders *opened = kernel_folders_open(list, hear);
  uint64_t hash = kernel_name_hash(name, strlen(name));
  const char *found = kernel_folders_best(opened, &hash, 1);
  snprintf(path, sizeof path, "%s", found ? strrchr(found, '/') + 1 : "none");
  kernel_folders_close(opened);
  return path;
}

static void the_index_is_kept_and_renewed(void **state) {
  (void)state;
  char folder[] = "/tmp/farfault-index-XXXXXX", path[128], list[256];
  assert_non_null(mkdtemp(folder));
  write_text(folder, "a.ptx", PTX_HEAD KERNEL("alpha", 1));
  write_text(folder, "binary.ptx", "\177ELF");
  snprintf(path, sizeof path, "%s/folder.ptx", folder);
  assert_int_equal(mkdir(path, 0700), 0);
  snprintf(path, sizeof path, "%s/pipe.ptx", folder);
  assert_int_equal(mkfifo(path, 0600), 0);
  assert_string_equal(best(folder, "alpha"), "a.ptx");
  assert_non_null(strstr(said, "binary.ptx is no PTX text"));
  assert_non_null(strstr(said, "folder.ptx is not a file"));
  assert_non_null(strstr(said, "pipe.ptx is not a file"));
  assert_true(is_there(folder, ".farfault-kernels"));
  assert_string_equal(best(folder, "alpha"), "a.ptx");
  assert_null(strstr(said, "binary.ptx")); /* known: not read again */
  write_text(folder, "a.ptx", PTX_HEAD KERNEL("beta", 1) KERNEL("gamma", 1));
  assert_string_equal(best(folder, "alpha"), "none");
  assert_string_equal(best(folder, "gamma"), "a.ptx");
  static const char *const wrong[] = {"",
                                      "farfault kernels 1\nfile",
                                      "farfault kernels 1\nzz\n\xff\n",
                                      "farfault kernels 2\n",
                                      "farfault kernels 1\nfile 1 1 1 a.ptx\n1\n",
                                      "farfault kernels 1\n12345\nfile x"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    write_text(folder, ".farfault-kernels", wrong[i]);
    assert_string_equal(best(folder, "gamma"), "a.ptx");
  }
  snprintf(list, sizeof list, "/no/such/folder::%s", folder);
  assert_string_equal(best(list, "beta"), "a.ptx");
  assert_non_null(strstr(said, "/no/such/folder: No such file"));
  snprintf(path, sizeof path, "rm -rf '%s'", folder);
  assert_int_equal(system(path), 0);
}

static void files_that_come_later_count(void **state) {
  (void)state;
  char folder[] = "/tmp/farfault-later-XXXXXX", command[128], inner[64];
  const uint64_t early = kernel_name_hash("early", 5), late = kernel_name_hash("late", 4),
                 latest = kernel_name_hash("latest", 6), inside = kernel_name_hash("inside", 6),
                 linked = kernel_name_hash("linked", 6);
  assert_non_null(mkdtemp(folder));
  write_later(folder, "m.ptx", PTX_HEAD KERNEL("early", 1));
  kernel_folders *opened = kernel_folders_open(folder, hear);
  assert_string_equal(strrchr(kernel_folders_best(opened, &early, 1), '/'), "/m.ptx");
  assert_false(kernel_folders_renew(opened));
  assert_null(kernel_folders_best(opened, &late, 1));
  write_later(folder, "a.ptx", PTX_HEAD KERNEL("early", 1) KERNEL("late", 1));
  assert_null(kernel_folders_best(opened, &late, 1));
  assert_true(kernel_folders_renew(opened));
  const char *found = kernel_folders_best(opened, &late, 1);
  assert_non_null(found);
  assert_string_equal(strrchr(found, '/'), "/a.ptx");
  assert_ptr_equal(kernel_folders_best(opened, &early, 1), found); /* it was written last */
  assert_false(kernel_folders_renew(opened));                      /* each is added once */
  write_later(folder, "half.ptx", PTX_HEAD KERNEL("whole", 1));    /* one that goes on being written */
  assert_true(kernel_folders_renew(opened));
  assert_null(kernel_folders_best(opened, &latest, 1));
  write_later(folder, "half.ptx", PTX_HEAD KERNEL("whole", 1) KERNEL("latest", 1));
  assert_true(kernel_folders_renew(opened));
  assert_string_equal(strrchr(kernel_folders_best(opened, &latest, 1), '/'), "/half.ptx");
  assert_false(kernel_folders_renew(opened));
  write_later(folder, "half.ptx", PTX_HEAD KERNEL("another", 1));
  assert_true(kernel_folders_renew(opened));
  assert_null(kernel_folders_best(opened, &latest, 1)); /* it has what it has now */
  write_later(folder, "m.ptx", PTX_HEAD KERNEL("early", 1) KERNEL("latest", 1));
  assert_true(kernel_folders_renew(opened)); /* so has one that was there at first */
  const char *again = kernel_folders_best(opened, &latest, 1);
  assert_string_equal(strrchr(again, '/'), "/m.ptx");
  assert_ptr_equal(kernel_folders_best(opened, &early, 1), again); /* written last now */
  write_later(folder, "m.ptx", PTX_HEAD KERNEL("early", 2) KERNEL("latest", 1));
  snprintf(command, sizeof command, "touch -d @1 '%s/m.ptx'", folder);
  assert_int_equal(system(command), 0);
  assert_true(kernel_folders_renew(opened));
  assert_ptr_not_equal(kernel_folders_best(opened, &latest, 1), again); /* another text has another pointer */
  assert_string_equal(again, kernel_folders_best(opened, &latest, 1));  /* and the one of before is still there */
  assert_ptr_equal(kernel_folders_best(opened, &early, 1), found);
  snprintf(inner, sizeof inner, "%s/inner", folder); /* a folder that a compiler makes for a while */
  assert_int_equal(mkdir(inner, 0700), 0);
  write_later(inner, "m.ptx", PTX_HEAD KERNEL("early", 1) KERNEL("inside", 1));
  assert_true(kernel_folders_renew(opened));
  assert_string_equal(strstr(kernel_folders_best(opened, &inside, 1), "/inner"), "/inner/m.ptx");
  assert_ptr_equal(kernel_folders_best(opened, &early, 1), found); /* it stands behind, though written last */
  assert_false(kernel_folders_renew(opened));
  write_later(inner, "late.ptx", PTX_HEAD KERNEL("inside", 1) KERNEL("latest_inside", 1));
  assert_true(kernel_folders_renew(opened));
  assert_string_equal(strstr(kernel_folders_best(opened, &inside, 1), "/inner"), "/inner/late.ptx");
  snprintf(command, sizeof command, "rm -r '%s'", inner);
  assert_int_equal(system(command), 0);
  assert_true(kernel_folders_renew(opened)); /* what is gone has nothing, */
  assert_null(kernel_folders_best(opened, &inside, 1));
  assert_ptr_equal(kernel_folders_best(opened, &early, 1), found); /* the others what they had, */
  assert_false(kernel_folders_renew(opened));                      /* and it is gone once */
  assert_int_equal(mkdir(inner, 0700), 0);
  write_later(inner, "m.ptx", PTX_HEAD KERNEL("inside", 1));
  assert_true(kernel_folders_renew(opened)); /* it may come back */
  assert_string_equal(strstr(kernel_folders_best(opened, &inside, 1), "/inner"), "/inner/m.ptx");
  write_later(folder, "text", PTX_HEAD KERNEL("linked", 1)); /* what a link names may go and come, too */
  snprintf(command, sizeof command, "ln -s text '%s/link.ptx'", folder);
  assert_int_equal(system(command), 0);
  assert_true(kernel_folders_renew(opened));
  snprintf(command, sizeof command, "mv '%s/text' '%s/other'", folder, folder);
  assert_int_equal(system(command), 0);
  assert_true(kernel_folders_renew(opened));
  assert_null(kernel_folders_best(opened, &linked, 1));
  snprintf(command, sizeof command, "mv '%s/other' '%s/text'", folder, folder);
  assert_int_equal(system(command), 0);
  assert_true(kernel_folders_renew(opened));
  assert_string_equal(strrchr(kernel_folders_best(opened, &linked, 1), '/'), "/link.ptx");
  snprintf(command, sizeof command, "%s/a.ptx", folder);
  assert_int_equal(unlink(command), 0);
  assert_true(kernel_folders_renew(opened)); /* an older one has its kernel, which it hid */
  assert_string_equal(strrchr(kernel_folders_best(opened, &early, 1), '/'), "/m.ptx");
  assert_null(kernel_folders_best(opened, &late, 1));
  kernel_folders_close(opened);
  assert_false(kernel_folders_renew(NULL));
  write_later(folders[1], "later.ptx", PTX_HEAD KERNEL("later_kernel", 33)); /* the driver has its folders open */
  STUB(later);
  register_kernel(register_code("later_kernel"), later, "later_kernel");
  assert_int_equal(result_of(later), 33);
  write_later(folders[1], "later.ptx", PTX_HEAD KERNEL("later_kernel", 34)); /* compiled once more, to the same file */
  STUB(later_again);
  register_kernel(register_code("later_kernel"), later_again, "later_kernel");
  assert_int_equal(result_of(later_again), 34);
  write_later(folders[1], "and_later.ptx", PTX_HEAD KERNEL("later_kernel", 35)); /* and to one of another name */
  STUB(latest_of_all);
  register_kernel(register_code("later_kernel"), latest_of_all, "later_kernel");
  assert_int_equal(result_of(latest_of_all), 35);
  write_later(folders[1], "later.ptx", PTX_HEAD KERNEL("later_kernel", 36));
  STUB(once_more);
  register_kernel(register_code("later_kernel"), once_more, "later_kernel");
  assert_int_equal(result_of(once_more), 36);
  assert_int_equal(result_of(later), 33); /* what is loaded stays */
  snprintf(command, sizeof command, "%s/later.ptx", folders[1]);
  assert_int_equal(unlink(command), 0);
  STUB(after_all);
  register_kernel(register_code("later_kernel"), after_all, "later_kernel");
  assert_int_equal(result_of(after_all), 35);
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  assert_int_equal(system(command), 0);
}

/* A file that had a kernel of another unit lacks it by the time that the kernel is needed: one that has it is found. */
static void a_kernel_that_moves_is_found(void **state) {
  (void)state;
  char path[128];
  STUB(base);
  STUB(moving);
  write_later(folders[1], "moves.ptx", PTX_HEAD KERNEL("moving_kernel", 51));
  write_later(folders[1], "base.ptx", PTX_HEAD KERNEL("base_kernel", 50)); /* written last: the module's */
  void **handle = register_code("base_kernel");
  register_kernel(handle, base, "base_kernel");
  register_kernel(handle, moving, "moving_kernel");
  assert_int_equal(result_of(base), 50);
  write_later(folders[1], "moved.ptx", PTX_HEAD KERNEL("moving_kernel", 52));
  write_later(folders[1], "moves.ptx", PTX_HEAD KERNEL("other_kernel", 53));
  assert_int_equal(result_of(moving), 52);
  STUB(gone);
  STUB(base_again);
  write_later(folders[1], "goes.ptx", PTX_HEAD KERNEL("going_kernel", 54));
  write_later(folders[1], "base.ptx", PTX_HEAD KERNEL("base_kernel", 56));
  handle = register_code("base_kernel");
  register_kernel(handle, base_again, "base_kernel");
  register_kernel(handle, gone, "going_kernel");
  assert_int_equal(result_of(base_again), 56);
  snprintf(path, sizeof path, "%s/goes.ptx", folders[1]);
  assert_int_equal(unlink(path), 0);
  write_later(folders[1], "gone.ptx", PTX_HEAD KERNEL("going_kernel", 55));
  assert_int_equal(result_of(gone), 55);
}

static void make_folders(void) {
  char list[200];
  for (int i = 0; i < 2; i++) {
    snprintf(folders[i], sizeof folders[i], "/tmp/farfault-kernels-XXXXXX");
    assert_non_null(mkdtemp(folders[i]));
  }
  write_text(
      folders[0], "one.ptx",
      PTX_HEAD ".global .align 4 .u32 counter = 7;\n" KERNEL("plain_kernel", 1) KERNEL(
          "shared_kernel",
          10) ".entry _ZN38_GLOBAL__N__11111111_6_one_cu__Z3runPj6hiddenEPj(.param .u64 out)\n{\n.reg .b64 %p;\n.reg .b32 %v;\n"
              "ld.param.u64 %p, [out];\nld.global.u32 %v, [counter];\nst.global.u32 [%p], %v;\nret;\n}\n");
  write_text(folders[0], "scan.ptx",
             PTX_HEAD ".global .align 4 .u32 counter = 44;\n.visible .entry _ZN17CUB_200302_800_NS4scanEPj(.param .u64 "
                      "out)\n{\n.reg .b64 %p;\n.reg .b32 %v;\nld.param.u64 %p, [out];\n"
                      "ld.global.u32 %v, [counter];\nst.global.u32 [%p], %v;\nret;\n}\n");
  write_text(folders[0], "broken.ptx", PTX_HEAD KERNEL("broken_kernel", 1) ".global .u32 broken = ;\n");
  write_text(folders[1], "one.ptx", PTX_HEAD KERNEL("shared_kernel", 20) KERNEL("only_in_second", 21));
  snprintf(list, sizeof list, "%s:%s", folders[0], folders[1]);
  setenv("FARFAULT_KERNELS", list, 1);
  snprintf(missing, sizeof missing, "%s/missing", folders[0]);
  setenv("FARFAULT_MISSING", missing, 1);
}

static int drop_folders(void **state) {
  (void)state;
  char command[256];
  snprintf(command, sizeof command, "rm -rf '%s' '%s'", folders[0], folders[1]);
  return system(command);
}

int main(void) {
  make_folders();
  const struct CMUnitTest tests[] = {cmocka_unit_test(names_without_what_builds_change),
                                     cmocka_unit_test(what_a_text_defines),
                                     cmocka_unit_test(a_broken_cubin_has_no_names),
                                     cmocka_unit_test(kernels_come_from_the_folder),
                                     cmocka_unit_test(a_large_file_that_changes_is_refused),
                                     cmocka_unit_test(the_fitting_file_counts),
                                     cmocka_unit_test(a_kernel_of_several_units),
                                     cmocka_unit_test(what_is_missing_is_named),
                                     cmocka_unit_test(without_folders_a_kernel_is_named),
                                     cmocka_unit_test(libraries_too),
                                     cmocka_unit_test(a_broken_text_is_said),
                                     cmocka_unit_test(the_index_is_kept_and_renewed),
                                     cmocka_unit_test(files_that_come_later_count),
                                     cmocka_unit_test(a_kernel_that_moves_is_found)};
  return cmocka_run_group_tests(tests, NULL, drop_folders);
}
