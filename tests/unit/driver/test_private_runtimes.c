/* SPDX-License-Identifier: Apache-2.0 */
/* What libcuda has for CUDA runtimes that are not ours: the hash, the tables and their functions, context-local
 * storage, and the driver calls that answer such a runtime otherwise than a program. The runtimes themselves:
 * tests/programs/private_runtimes.sh. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver/driver_api/libcuda.h"
#include "driver/private_runtimes/md2.h"
#include "driver/private_runtimes/private_runtimes.h"
#include "fatbin/fatbin.h"

typedef struct resource {
  int type;
  unsigned char rest[140];
} resource;

CUresult cuInit(unsigned), cuGetExportTable(const void **, const CUuuid *);
CUresult cuCtxCreate_v2(CUcontext *, unsigned, CUdevice), cuCtxDestroy_v2(CUcontext), cuCtxSetCurrent(CUcontext),
    cuCtxGetCurrent(CUcontext *), cuCtxPopCurrent_v2(CUcontext *), cuCtxPushCurrent_v2(CUcontext),
    cuCtxGetLimit(size_t *, int), cuCtxSynchronize(void), cuCtxGetId(CUcontext, unsigned long long *);
CUresult cuDevicePrimaryCtxRetain(CUcontext *, CUdevice), cuDevicePrimaryCtxReset_v2(CUdevice),
    cuDeviceGetUuid(CUuuid *, CUdevice), cuDeviceGetAttribute(int *, int, CUdevice), cuDeviceGetCount(int *),
    cuDriverGetVersion(int *);
CUresult cuStreamCreate(CUstream *, unsigned), cuStreamDestroy_v2(CUstream),
    cuStreamGetId(CUstream, unsigned long long *);
CUresult cuMemFree_v2(CUdeviceptr), cuMemFreeHost(void *), cuMemcpyHtoD_v2(CUdeviceptr, const void *, size_t),
    cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t);
CUresult cuLibraryLoadData(CUlibrary *, const void *, const int *, void **, unsigned, const int *, void **, unsigned),
    cuLibraryUnload(CUlibrary), cuLibraryGetKernel(CUkernel *, CUlibrary, const char *),
    cuKernelGetName(const char **, CUkernel), cuKernelGetParamInfo(CUkernel, size_t, size_t *, size_t *),
    cuLibraryGetManaged(CUdeviceptr *, size_t *, CUlibrary, const char *),
    cuLibraryGetGlobal(CUdeviceptr *, size_t *, CUlibrary, const char *), cuModuleUnload(CUmodule),
    cuModuleGetLoadingMode(int *);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                        void **, void **);
CUresult cuDeviceGetDevResource(CUdevice, resource *, int), cuDevResourceGenerateDesc(void **, resource *, unsigned),
    cuGreenCtxCreate(CUgreenCtx *, void *, CUdevice, unsigned), cuGreenCtxDestroy(CUgreenCtx),
    cuCtxFromGreenCtx(CUcontext *, CUgreenCtx);

#define check(call, result) assert_int_equal(call, result)
#define succeed(call) check(call, CUDA_SUCCESS)

enum {
  DEVICES = 2,
  PCI_BUS = 33,
  PCI_DEVICE = 34,
  PCI_DOMAIN = 50,
  INVALID_CONFIGURATION = 9,
  GRAPHICS = 7,
  GRAPHICS_SHARED = 8
};

static const char ptx[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .global .attribute(.managed) .align 4 .u32 shared_value = 11;\n"
    ".visible .global .align 4 .u32 own_value = 22;\n"
    ".visible .entry raise()\n{\n.reg .b32 %r<3>;\nld.global.u32 %r1, [shared_value];\nadd.u32 %r2, %r1, 1;\n"
    "st.global.u32 [shared_value], %r2;\nret;\n}\n";

static CUcontext primaries[DEVICES];

/* ---- helpers ---- */

typedef struct wrapper { /* what nvcc puts into a program */
  uint32_t magic, version;
  const void *data, *more;
} wrapper;

static char *kept[32]; /* what was loaded lives as long as the process */
static unsigned kept_count;

static wrapper wrap(const char *text) { /* NULL: machine code alone */
  static const char code[64] = "\177ELF";
  fatbin_item item =
      text ? (fatbin_item){.kind = FATBIN_KIND_PTX, .arch = 75, .version_major = 7, .bytes = text, .size = strlen(text)}
           : (fatbin_item){.kind = FATBIN_KIND_ELF, .arch = 90, .bytes = code, .size = sizeof code};
  ff_text bytes = {0};
  assert_int_equal(fatbin_encode(&item, 1, &bytes, NULL), FF_OK);
  assert_true(kept_count < sizeof kept / sizeof *kept);
  kept[kept_count++] = bytes.chars;
  return (wrapper){FATBIN_WRAPPER_MAGIC, 1, bytes.chars, NULL};
}

static CUresult load(CUlibrary *library, const void *code) {
  return cuLibraryLoadData(library, code, NULL, NULL, 0, NULL, NULL, 0);
}

/* stderr from listen() to heard() as a text. */
static char heard_text[4096];
static int listening[2], stderr_before;

static void listen(void) {
  assert_int_equal(pipe2(listening, O_NONBLOCK), 0);
  fflush(stderr);
  stderr_before = dup(2);
  dup2(listening[1], 2);
}

static const char *heard(void) {
  fflush(stderr);
  dup2(stderr_before, 2);
  close(stderr_before);
  close(listening[1]);
  ssize_t got = read(listening[0], heard_text, sizeof heard_text - 1);
  heard_text[got > 0 ? got : 0] = '\0';
  close(listening[0]);
  return heard_text;
}

/* ---- the hash ---- */

static const char *digest_text(const unsigned char digest[MD2_BYTES]) {
  static char text[2 * MD2_BYTES + 1];
  for (int i = 0; i < MD2_BYTES; i++) snprintf(text + 2 * i, 3, "%02x", digest[i]);
  return text;
}

static const char *md2_of(const char *message, size_t step) {
  unsigned char digest[MD2_BYTES];
  md2 hash;
  md2_start(&hash);
  for (size_t at = 0, size = strlen(message); at < size; at += step)
    md2_add(&hash, message + at, size - at < step ? size - at : step);
  md2_finish(&hash, digest);
  return digest_text(digest);
}

/* RFC 1319, appendix A.5. */
static void test_md2(void **state) {
  static const char *const vectors[][2] = {
      {"", "8350e5a3e24c153df2275c9f80692773"},
      {"a", "32ec01ec4a6dac72c0ab96fb34c0b5d1"},
      {"abc", "da853b0d3f88d99b30283a69e6ded6bb"},
      {"message digest", "ab4f496bfb2a530b219ff33031fe06b0"},
      {"abcdefghijklmnopqrstuvwxyz", "4e8ddff3650292ab5a4108c3aa47940b"},
      {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "da33def2a42df13975352846c30338cd"},
      {"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
       "d5976f79d83d3a0dc9806c3c66f3efd8"}};
  for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
    for (size_t step = 1; step <= 100; step += 7) /* in one piece or in several */
      assert_string_equal(md2_of(vectors[i][0], step), vectors[i][1]);
}

/* RFC 2104's definition, H(K xor opad, H(K xor ipad, text)), as two messages in memory. */
static void test_keyed(void **state) {
  unsigned char key[MD2_BYTES], message[100], inner[MD2_BYTES + 100], outer[2 * MD2_BYTES], expected[MD2_BYTES],
      digest[MD2_BYTES];
  md2 hash;
  for (unsigned size = 0; size <= 100; size += 3) {
    for (unsigned i = 0; i < MD2_BYTES; i++) key[i] = (unsigned char)(size * 31 + i * 7);
    for (unsigned i = 0; i < size; i++) message[i] = (unsigned char)(i * i + size);
    for (unsigned i = 0; i < MD2_BYTES; i++) {
      inner[i] = (unsigned char)(key[i] ^ 0x36);
      outer[i] = (unsigned char)(key[i] ^ 0x5c);
    }
    memcpy(inner + MD2_BYTES, message, size);
    md2_start(&hash);
    md2_add(&hash, inner, MD2_BYTES + size);
    md2_finish(&hash, outer + MD2_BYTES);
    md2_start(&hash);
    md2_add(&hash, outer, sizeof outer);
    md2_finish(&hash, expected);
    md2_keyed(key, message, size, digest);
    assert_memory_equal(digest, expected, MD2_BYTES);
  }
  /* Computed with another MD2, pycryptodome's. */
  for (unsigned i = 0; i < MD2_BYTES; i++) key[i] = (unsigned char)i;
  md2_keyed(key, "message digest", 14, digest);
  assert_string_equal(digest_text(digest), "446d52936c70a51c9eef2e6b4886d9cc");
  md2_keyed(key, "", 0, digest);
  assert_string_equal(digest_text(digest), "d39ad9dde006587a8be949b11b9288f8");
}

/* ---- the integrity check ---- */

static void test_integrity(void **state) {
  private_question question = {.driver_version = 13000,
                               .version = 13000,
                               .process = 4321,
                               .thread = 0x89abcdef,
                               .runtime_table = (const void *)0x700000001000,
                               .integrity_table = (const void *)0x700000002000,
                               .integrity_function = (const void *)0x700000003000,
                               .unix_seconds = 1763884800};
  private_device devices[2] = {{.pci_bus = 1}, {.pci_domain = 2, .pci_bus = 3, .pci_device = 4}};
  for (int i = 0; i < 16; i++) {
    devices[0].uuid[i] = (char)(100 + i);
    devices[1].uuid[i] = (char)(200 + i);
  }
  uint64_t result[2];
  private_integrity_compute(&question, devices, 2, result);
  assert_int_equal(result[0], UINT64_C(0x3341181C03CB675C));
  assert_int_equal(result[1], UINT64_C(0x8ED383AA1F4CD1E8));
  question.version = 12091;
  private_integrity_compute(&question, devices, 2, result);
  assert_int_equal(result[0], UINT64_C(0x1841181C03CB675C));
  assert_int_equal(result[1], UINT64_C(0x8ED383AA1F4CD1E8));
  /* Over the same bytes with pycryptodome's MD2. */
  static const uint64_t expected[3][2] = {{UINT64_C(0xe9944a31e1817c9f), UINT64_C(0xfe2aa4cba43fab90)},
                                          {UINT64_C(0x5cc052a3a8e78af3), UINT64_C(0x2c9ae9f2a519d900)},
                                          {UINT64_C(0xad82bd6ed6367b4f), UINT64_C(0xee9898e25f213939)}};
  question.version = 13002;
  for (uint32_t count = 0; count <= 2; count++) {
    private_integrity_compute(&question, devices, count, result);
    assert_memory_equal(result, expected[count], sizeof result);
  }
  question.unix_seconds++;
  private_integrity_compute(&question, devices, 2, result);
  assert_int_not_equal(result[0], expected[2][0]);
}

/* ---- the tables ---- */

static const CUuuid RUNTIME = {"\x6b\xd5\xfb\x6c\x5b\xf4\xe7\x4a\x89\x87\xd9\x39\x12\xfd\x9d\xf9"},
                    HOOKS = {"\xa0\x94\x79\x8c\x2e\x74\x2e\x74\x93\xf2\x08\x00\x20\x0c\x0a\x66"},
                    TLS = {"\x42\xd8\x5a\x81\x23\xf6\xcb\x47\x82\x98\xf6\xe7\x8a\x3a\xec\xdc"},
                    STORAGE = {"\xc6\x93\x33\x6e\x11\x21\xdf\x11\xa8\xc3\x68\xf3\x55\xd8\x95\x93"},
                    CHECKS = {"\x26\x3e\x88\x60\x7c\xd2\x61\x43\x92\xf6\xbb\xd5\x00\x6d\xfa\x7e"},
                    INTEGRITY = {"\xd4\x08\x20\x55\xbd\xe6\x70\x4b\x8d\x34\xba\x12\x3c\x66\xe1\xf2"},
                    CONTEXT = {"\x21\x31\x8c\x60\x97\x14\x32\x48\x8c\xa6\x41\xff\x73\x24\xc8\xf2"},
                    UNKNOWN = {"not a table of's"};

static const void *const *find_table(const CUuuid *id) {
  const void *table = NULL;
  succeed(cuGetExportTable(&table, id));
  assert_non_null(table);
  return table;
}
#define SLOT(table, number, type) ((type)(uintptr_t)find_table(&table)[number])

/* Before anything has asked for a table: a program, to which an impossible shape is an invalid value. */
static void test_program(void **state) {
  wrapper code = wrap(ptx);
  CUlibrary library;
  CUkernel kernel;
  assert_false(private_is_runtime((const void *)test_program));
  assert_string_equal(private_call_name("cuMemAlloc", "cudaMalloc"), "cuMemAlloc");
  succeed(load(&library, &code));
  succeed(cuLibraryGetKernel(&kernel, library, "raise"));
  check(cuLaunchKernel(kernel, 1, 1, 1, 2000, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
  check(cuLaunchKernel(kernel, 0, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
  CUcontext context; /* without one a kernel has a name, but cannot be asked for parameters */
  const char *name;
  size_t offset;
  check(cuKernelGetParamInfo(kernel, 0, &offset, NULL), CUDA_ERROR_INVALID_VALUE); /* it has none */
  succeed(cuCtxGetCurrent(&context));
  succeed(cuCtxSetCurrent(NULL));
  succeed(cuKernelGetName(&name, kernel));
  check(cuKernelGetName(&name, NULL), CUDA_ERROR_INVALID_VALUE);
  check(cuKernelGetParamInfo(kernel, 0, &offset, NULL), CUDA_ERROR_INVALID_CONTEXT);
  succeed(cuCtxSetCurrent(context));
  succeed(cuLibraryUnload(library));
}

/* No table, and who asks is no runtime from then on. */
static void test_off(void **state) {
  const void *table = &table;
  setenv("FARFAULT_PRIVATE_RUNTIMES", "off", 1);
  listen();
  CUresult result = cuGetExportTable(&table, &RUNTIME), hooks = cuGetExportTable(&table, &HOOKS);
  const char *said = heard();
  unsetenv("FARFAULT_PRIVATE_RUNTIMES");
  check(result, CUDA_ERROR_NOT_FOUND);
  check(hooks, CUDA_ERROR_NOT_FOUND);
  assert_null(table);
  assert_non_null(strstr(said, "driver_test_private_runtimes has a CUDA runtime inside"));
  assert_false(private_is_runtime((const void *)test_off));
}

static void test_runtime(void **state) {
  wrapper code = wrap(ptx);
  CUlibrary library;
  CUkernel kernel;
  find_table(&RUNTIME);
  assert_true(private_is_runtime((const void *)test_runtime));
  assert_false(private_is_runtime(dlsym(RTLD_DEFAULT, "gnu_get_libc_version")));
  assert_false(private_is_runtime(NULL));
  succeed(load(&library, &code));
  succeed(cuLibraryGetKernel(&kernel, library, "raise"));
  check(cuLaunchKernel(kernel, 1, 1, 1, 2000, 1, 1, 0, NULL, NULL, NULL), INVALID_CONFIGURATION);
  check(cuLaunchKernel(kernel, 0, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), INVALID_CONFIGURATION);
  succeed(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
  check(cuLaunchKernel((CUfunction)&code, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
  succeed(cuCtxSynchronize());
  succeed(cuLibraryUnload(library));
}

static void test_sizes(void **state) {
  static const struct {
    const CUuuid *id;
    unsigned slots;
  } tables[] = {{&RUNTIME, 13}, {&HOOKS, 7}, {&TLS, 4}, {&CHECKS, 15}, {&INTEGRITY, 3}, {&CONTEXT, 96}};
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
    const void *const *table = find_table(tables[i].id);
    assert_int_equal((uintptr_t)table[0], tables[i].slots * sizeof(void *));
    for (unsigned slot = 1; slot < tables[i].slots; slot++) assert_non_null(table[slot]);
    assert_ptr_equal(find_table(tables[i].id), table); /* the check hashes where it is */
  }
  const void *const *storage = find_table(&STORAGE);
  for (int slot = 0; slot < 3; slot++) assert_non_null(storage[slot]);
  assert_null(storage[3]);
}

typedef CUresult nothing_known(void);

static void test_unknown_slot(void **state) {
  nothing_known *third = SLOT(HOOKS, 3, nothing_known *), *last = SLOT(CONTEXT, 95, nothing_known *);
  listen();
  CUresult result = third();
  const char *said = heard();
  check(result, CUDA_ERROR_NOT_SUPPORTED);
  assert_non_null(strstr(said, "HOOKS[3]"));
  listen();
  result = third();
  said = heard();
  check(result, CUDA_ERROR_NOT_SUPPORTED);
  assert_string_equal(said, ""); /* once */
  listen();
  result = last();
  said = heard();
  check(result, CUDA_ERROR_NOT_SUPPORTED);
  assert_non_null(strstr(said, "CONTEXT[95]"));
}

static void test_trace(void **state) {
  const void *table;
  setenv("FARFAULT_PRIVATE_RUNTIMES", "trace", 1);
  listen();
  CUresult known = cuGetExportTable(&table, &CHECKS), unknown = cuGetExportTable(&table, &UNKNOWN);
  const char *said = heard();
  unsetenv("FARFAULT_PRIVATE_RUNTIMES");
  check(known, CUDA_SUCCESS);
  check(unknown, CUDA_ERROR_NOT_FOUND);
  assert_non_null(strstr(said, "263e88607cd2614392f6bbd5006dfa7e: CHECKS"));
  assert_non_null(strstr(said, ": not known"));
  listen();
  known = cuGetExportTable(&table, &CHECKS);
  said = heard();
  check(known, CUDA_SUCCESS);
  assert_string_equal(said, "");
}

/* ---- functions in the tables ---- */

typedef void give_buffer(void **, size_t *);

static void test_small_functions(void **state) {
  CUcontext context = NULL;
  unsigned flags = 5;
  for (int slot = 2; slot <= 6; slot += 4) {
    unsigned char *buffer = NULL;
    size_t size = 0;
    SLOT(HOOKS, slot, give_buffer *)(((void **)&buffer), &size);
    assert_int_equal(size, slot == 2 ? 1024 : 14);
    for (size_t i = 0; i < size; i++) assert_int_equal(buffer[i], 0);
  }
  for (int device = 0; device < DEVICES; device++) {
    succeed(SLOT(RUNTIME, 2, CUresult(*)(CUcontext *, CUdevice))(&context, device));
    assert_ptr_equal(context, primaries[device]);
  }
  check(SLOT(RUNTIME, 2, CUresult(*)(CUcontext *, CUdevice))(&context, DEVICES), CUDA_ERROR_INVALID_DEVICE);
  succeed(SLOT(RUNTIME, 12, CUresult(*)(void))());
  succeed(SLOT(TLS, 2, CUresult(*)(CUcontext *))(&context));
  assert_ptr_equal(context, primaries[0]);
  const void *other = &context;
  succeed(SLOT(CHECKS, 2, CUresult(*)(CUcontext, uint32_t *, const void **))(context, &flags, &other));
  assert_int_equal(flags, 0);
  assert_ptr_equal(other, &context);
  {
    resource sms;
    void *descriptor;
    CUgreenCtx green;
    CUcontext of;
    succeed(cuDeviceGetDevResource(0, &sms, 1));
    succeed(cuDevResourceGenerateDesc(&descriptor, &sms, 1));
    succeed(cuGreenCtxCreate(&green, descriptor, 0, 0));
    succeed(cuCtxFromGreenCtx(&of, green));
    succeed(SLOT(CHECKS, 2, CUresult(*)(CUcontext, uint32_t *, const void **))(of, &flags, &other));
    assert_int_equal(flags, 1);
    succeed(cuGreenCtxDestroy(green));
    succeed(SLOT(CHECKS, 2, CUresult(*)(CUcontext, uint32_t *, const void **))(of, &flags, &other));
    assert_int_equal(flags, 0);
  }
  assert_int_equal(SLOT(CHECKS, 3, uint32_t(*)(void))(), 0);
  succeed(SLOT(INTEGRITY, 2, CUresult(*)(int))(1));
}

typedef CUresult integrity_answer(uint32_t, uint64_t, uint64_t *);

/* What slot 1 answers is the hash of what a program can find out. */
static void test_integrity_answer(void **state) {
  private_device devices[DEVICES];
  int count, version;
  uint64_t answer[2], expected[2];
  succeed(cuDeviceGetCount(&count));
  assert_int_equal(count, DEVICES);
  succeed(cuDriverGetVersion(&version));
  for (int i = 0; i < DEVICES; i++) {
    succeed(cuDeviceGetUuid((CUuuid *)devices[i].uuid, i));
    succeed(cuDeviceGetAttribute(&devices[i].pci_domain, PCI_DOMAIN, i));
    succeed(cuDeviceGetAttribute(&devices[i].pci_bus, PCI_BUS, i));
    succeed(cuDeviceGetAttribute(&devices[i].pci_device, PCI_DEVICE, i));
  }
  assert_memory_not_equal(devices[0].uuid, devices[1].uuid, 16);
  private_question question = {.driver_version = (uint32_t)version,
                               .version = 12092,
                               .process = (uint32_t)getpid(),
                               .thread = (uint32_t)(uintptr_t)pthread_self(),
                               .runtime_table = find_table(&RUNTIME),
                               .integrity_table = find_table(&INTEGRITY),
                               .integrity_function = find_table(&INTEGRITY)[1],
                               .unix_seconds = 1234567890};
  private_integrity_compute(&question, devices, DEVICES, expected);
  succeed(SLOT(INTEGRITY, 1, integrity_answer *)(12092, 1234567890, answer));
  assert_memory_equal(answer, expected, sizeof answer);
  check(SLOT(INTEGRITY, 1, integrity_answer *)(12092, 1234567890, NULL), CUDA_ERROR_INVALID_VALUE);
}

static void test_context_numbers(void **state) {
  CUresult (*device_of)(CUcontext, CUdevice *) = SLOT(CONTEXT, 3, CUresult(*)(CUcontext, CUdevice *));
  CUresult (*number_of)(CUcontext, uint64_t *) = SLOT(CONTEXT, 4, CUresult(*)(CUcontext, uint64_t *));
  CUresult (*stream_number)(CUcontext, void *, uint64_t *) =
      SLOT(CONTEXT, 39, CUresult(*)(CUcontext, void *, uint64_t *));
  CUresult (*stream_behind)(CUcontext, CUstream, void **, int) =
      SLOT(CONTEXT, 51, CUresult(*)(CUcontext, CUstream, void **, int));
  CUdevice device;
  uint64_t first, second;
  unsigned long long id;
  void *one, *two, *plain, *own;
  CUstream a, b;
  succeed(device_of(primaries[1], &device));
  assert_int_equal(device, 1);
  check(device_of(primaries[1], NULL), CUDA_ERROR_INVALID_VALUE);
  check(device_of((CUcontext)&device, &device), CUDA_ERROR_INVALID_CONTEXT);
  succeed(number_of(primaries[0], &first));
  succeed(number_of(primaries[1], &second));
  succeed(cuCtxGetId(primaries[1], &id));
  assert_int_equal(second, id);
  assert_int_not_equal(first, second);
  succeed(cuStreamCreate(&a, 0));
  succeed(cuStreamCreate(&b, 0));
  succeed(stream_behind(primaries[0], a, &one, 0));
  succeed(stream_behind(primaries[0], b, &two, 0));
  succeed(stream_behind(primaries[0], NULL, &plain, 0));
  succeed(stream_behind(primaries[0], NULL, &own, 1));
  assert_non_null(plain);
  assert_ptr_not_equal(plain, own);
  succeed(stream_number(primaries[0], one, &first));
  succeed(stream_number(primaries[0], two, &second));
  succeed(cuStreamGetId(b, &id));
  assert_int_equal(second, id);
  assert_int_not_equal(first, second);
  succeed(stream_number(primaries[0], plain, &first));
  succeed(stream_number(primaries[0], own, &second));
  assert_int_not_equal(first, second);
  succeed(cuStreamDestroy_v2(b));
  check(stream_behind(primaries[0], b, &two, 0), CUDA_ERROR_INVALID_HANDLE);
  succeed(cuStreamDestroy_v2(a));
}

/* As runtimes of CUDA 11 load: the same code is the same module, until it is unloaded. */
static void test_table_loads(void **state) {
  CUresult (*load_wrapper)(CUmodule *, const void *) = SLOT(RUNTIME, 1, CUresult(*)(CUmodule *, const void *));
  CUresult (*load_more)(CUmodule *, const void *, void *, void *, unsigned) =
      SLOT(RUNTIME, 6, CUresult(*)(CUmodule *, const void *, void *, void *, unsigned));
  CUresult (*load_header)(const void *, CUmodule *, void *, void *, unsigned) =
      SLOT(RUNTIME, 8, CUresult(*)(const void *, CUmodule *, void *, void *, unsigned));
  wrapper code = wrap(ptx), another = wrap(ptx);
  CUmodule module, again, other, header;
  CUkernel kernel;
  succeed(load_wrapper(&module, &code));
  succeed(load_more(&again, &code, NULL, NULL, 0));
  assert_ptr_equal(module, again);
  succeed(load_wrapper(&other, &another));
  assert_ptr_not_equal(module, other);
  succeed(load_header(code.data, &header, NULL, NULL, 0));
  assert_ptr_not_equal(module, header);
  succeed(cuLibraryGetKernel(&kernel, header, "raise"));
  succeed(cuModuleUnload(module));
  check(cuLibraryGetKernel(&kernel, module, "raise"), CUDA_ERROR_INVALID_HANDLE);
  succeed(load_wrapper(&again, &code)); /* not the one that is gone */
  succeed(cuLibraryGetKernel(&kernel, again, "raise"));
  succeed(cuLibraryUnload(again));
  succeed(cuLibraryUnload(other));
  succeed(cuLibraryUnload(header));
  check(load_wrapper(NULL, &code), CUDA_ERROR_INVALID_VALUE);
  check(load_wrapper(&module, NULL), CUDA_ERROR_INVALID_VALUE);
}

/* ---- storage ---- */

static char keys[8][1];
enum { GONE_MAX = 16 };
static struct {
  CUcontext context;
  void *key, *value;
} gone[GONE_MAX];
static unsigned gone_count;

static void note_gone(CUcontext context, void *key, void *value) {
  assert_true(gone_count < GONE_MAX);
  gone[gone_count].context = context;
  gone[gone_count].key = key;
  gone[gone_count++].value = value;
}

static void test_storage(void **state) {
  void *value = NULL;
  gone_count = 0;
  check(private_storage_get(&value, primaries[0], keys[0]), CUDA_ERROR_INVALID_HANDLE);
  assert_null(value);
  succeed(private_storage_put(primaries[0], keys[0], "first", note_gone));
  succeed(private_storage_put(NULL, keys[1], "second", NULL)); /* the current context is this one */
  succeed(private_storage_put(primaries[1], keys[0], "elsewhere", note_gone));
  succeed(private_storage_get(&value, NULL, keys[0]));
  assert_string_equal(value, "first");
  succeed(private_storage_get(&value, primaries[0], keys[1]));
  assert_string_equal(value, "second");
  succeed(private_storage_get(&value, primaries[1], keys[0]));
  assert_string_equal(value, "elsewhere");
  succeed(private_storage_put(primaries[0], keys[0], "replaced", note_gone));
  succeed(private_storage_get(&value, primaries[0], keys[0]));
  assert_string_equal(value, "replaced");
  check(private_storage_get(NULL, primaries[0], keys[0]), CUDA_ERROR_INVALID_VALUE);
  succeed(private_storage_remove(primaries[0], keys[0]));
  check(private_storage_get(&value, primaries[0], keys[0]), CUDA_ERROR_INVALID_HANDLE);
  succeed(private_storage_remove(primaries[0], keys[0])); /* it need not be there */
  succeed(private_storage_get(&value, primaries[0], keys[1]));
  assert_string_equal(value, "second");
  succeed(private_storage_get(&value, primaries[1], keys[0]));
  assert_string_equal(value, "elsewhere");
  succeed(private_storage_remove(NULL, keys[1]));
  succeed(private_storage_remove(primaries[1], keys[0]));
  assert_int_equal(gone_count, 0); /* neither replaced nor removed values are told of */
}

static void test_storage_contexts(void **state) {
  CUcontext made, popped;
  void *value;
  succeed(cuCtxPopCurrent_v2(&popped)); /* none is current */
  check(private_storage_put(NULL, keys[0], "x", NULL), CUDA_ERROR_INVALID_CONTEXT);
  check(private_storage_get(&value, NULL, keys[0]), CUDA_ERROR_INVALID_CONTEXT);
  check(private_storage_remove(NULL, keys[0]), CUDA_ERROR_INVALID_CONTEXT);
  succeed(cuCtxCreate_v2(&made, 0, 1));
  succeed(private_storage_put(NULL, keys[0], "made", note_gone));
  succeed(private_storage_get(&value, made, keys[0]));
  assert_string_equal(value, "made");
  check(private_storage_get(&value, popped, keys[0]), CUDA_ERROR_INVALID_HANDLE);
  gone_count = 0;
  succeed(cuCtxDestroy_v2(made));
  assert_int_equal(gone_count, 1);
  assert_ptr_equal(gone[0].context, made);
  assert_ptr_equal(gone[0].key, keys[0]);
  assert_string_equal(gone[0].value, "made");
  check(private_storage_put(made, keys[0], "x", NULL), CUDA_ERROR_INVALID_CONTEXT);
  check(private_storage_get(&value, made, keys[0]), CUDA_ERROR_INVALID_CONTEXT);
  check(private_storage_remove(made, keys[0]), CUDA_ERROR_INVALID_CONTEXT);
  check(private_storage_get(&value, (CUcontext)&made, keys[0]), CUDA_ERROR_INVALID_CONTEXT);
  succeed(cuCtxPushCurrent_v2(popped));
}

static void test_storage_reset(void **state) {
  void *value;
  gone_count = 0;
  succeed(private_storage_put(primaries[0], keys[0], "a", note_gone));
  succeed(private_storage_put(primaries[0], keys[1], "b", note_gone));
  succeed(private_storage_put(primaries[0], keys[2], "c", NULL));
  succeed(private_storage_put(primaries[1], keys[0], "elsewhere", note_gone));
  succeed(cuDevicePrimaryCtxReset_v2(0));
  assert_int_equal(gone_count, 2);
  for (unsigned i = 0; i < gone_count; i++) {
    assert_ptr_equal(gone[i].context, primaries[0]);
    assert_string_equal(gone[i].value, gone[i].key == keys[0] ? "a" : "b");
  }
  for (int i = 0; i < 3; i++) check(private_storage_get(&value, primaries[0], keys[i]), CUDA_ERROR_INVALID_HANDLE);
  succeed(private_storage_get(&value, primaries[1], keys[0]));
  succeed(private_storage_remove(primaries[1], keys[0]));
}

/* Our own runtime in the same process resets without the driver's call. */
static void test_storage_runtime_reset(void **state) {
  void *value;
  gone_count = 0;
  succeed(private_storage_put(primaries[0], keys[0], "a", note_gone));
  assert_int_equal(engine_reset(1), cudaSuccess);
  assert_int_equal(gone_count, 0);
  assert_int_equal(engine_reset(0), cudaSuccess);
  assert_int_equal(gone_count, 1);
  check(private_storage_get(&value, primaries[0], keys[0]), CUDA_ERROR_INVALID_HANDLE);
}

/* `gone` may use the storage: here it looks for itself, removes its neighbour and leaves something to the next one. */
static CUresult seen_by_gone[3];
static void call_back(CUcontext context, void *key, void *value) {
  void *found;
  gone_count++;
  seen_by_gone[0] = private_storage_get(&found, context, key);
  seen_by_gone[1] = private_storage_remove(context, keys[1]);
  seen_by_gone[2] = private_storage_put(context, keys[3], "left", note_gone);
}

static void test_storage_calls_back(void **state) {
  gone_count = 0;
  succeed(private_storage_put(primaries[0], keys[0], "a", call_back));
  succeed(private_storage_put(primaries[0], keys[1], "b", NULL));
  succeed(cuDevicePrimaryCtxReset_v2(0));
  check(seen_by_gone[0], CUDA_ERROR_INVALID_HANDLE);
  succeed(seen_by_gone[1]);
  succeed(seen_by_gone[2]);
  assert_int_equal(gone_count, 2); /* what was left is gone too */
  assert_string_equal(gone[1].value, "left");
}

/* A green context's values end with it, by its own call and with its device. */
static void test_storage_green(void **state) {
  resource sms;
  void *description, *value;
  CUgreenCtx green;
  CUcontext context;
  for (int by_reset = 0; by_reset < 2; by_reset++) {
    succeed(cuDeviceGetDevResource(0, &sms, 1));
    succeed(cuDevResourceGenerateDesc(&description, &sms, 1));
    succeed(cuGreenCtxCreate(&green, description, 0, 1));
    succeed(cuCtxFromGreenCtx(&context, green));
    check(private_storage_get(&value, context, keys[0]), CUDA_ERROR_INVALID_HANDLE);
    succeed(private_storage_put(context, keys[0], "green", note_gone));
    gone_count = 0;
    succeed(by_reset ? cuDevicePrimaryCtxReset_v2(0) : cuGreenCtxDestroy(green));
    assert_int_equal(gone_count, 1);
    assert_ptr_equal(gone[0].context, context);
    check(private_storage_get(&value, context, keys[0]), CUDA_ERROR_INVALID_CONTEXT);
  }
}

enum { THREADS = 4, TURNS = 600000 };
static pthread_barrier_t all_there;
static void *use_storage(void *own) {
  uintptr_t wrong = 0;
  pthread_barrier_wait(&all_there);
  for (uintptr_t i = 1; i <= TURNS; i++) {
    void *value = NULL;
    wrong += private_storage_put(primaries[i % 2], own, (void *)i, NULL) != CUDA_SUCCESS;
    wrong += private_storage_get(&value, primaries[i % 2], own) != CUDA_SUCCESS || value != (void *)i;
    wrong += private_storage_get(&value, primaries[i % 2], keys[7]) != CUDA_SUCCESS || strcmp(value, "for all") != 0;
    if (i % 3) continue;
    wrong += private_storage_remove(primaries[i % 2], own) != CUDA_SUCCESS;
    wrong += private_storage_get(&value, primaries[i % 2], own) != CUDA_ERROR_INVALID_HANDLE;
  }
  for (int d = 0; d < 2; d++) wrong += private_storage_remove(primaries[d], own) != CUDA_SUCCESS;
  return (void *)wrong;
}

static void test_storage_threads(void **state) {
  pthread_t threads[THREADS];
  void *wrong, *value;
  for (int d = 0; d < 2; d++) succeed(private_storage_put(primaries[d], keys[7], "for all", NULL));
  assert_int_equal(pthread_barrier_init(&all_there, NULL, THREADS), 0);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, use_storage, keys[i]), 0);
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(pthread_join(threads[i], &wrong), 0);
    assert_null(wrong);
  }
  for (int i = 0; i < THREADS; i++)
    check(private_storage_get(&value, primaries[0], keys[i]), CUDA_ERROR_INVALID_HANDLE);
  for (int d = 0; d < 2; d++) succeed(private_storage_remove(primaries[d], keys[7]));
}

/* ---- ordinary calls that runtimes make demands on ---- */

static void run_raise(CUlibrary library) {
  CUkernel kernel;
  succeed(cuLibraryGetKernel(&kernel, library, "raise"));
  succeed(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
  succeed(cuCtxSynchronize());
}

/* A managed variable stays where the program was told that it is, however it was told; its value is the first one
 * again. */
static void test_managed_stay(void **state) {
  wrapper code = wrap(ptx);
  CUlibrary library;
  CUdeviceptr managed, again, own;
  size_t bytes;
  for (int as_global = 0; as_global < 2; as_global++) {
    succeed(load(&library, &code));
    succeed(as_global ? cuLibraryGetGlobal(&managed, &bytes, library, "shared_value")
                      : cuLibraryGetManaged(&managed, &bytes, library, "shared_value"));
    assert_int_equal(bytes, 4);
    check(cuLibraryGetManaged(&own, &bytes, library, "own_value"), CUDA_ERROR_NOT_FOUND);
    succeed(cuLibraryGetGlobal(&own, &bytes, library, "own_value"));
    succeed(cuMemcpyHtoD_v2(own, &(uint32_t){99}, 4));
    uint32_t *value = (uint32_t *)(uintptr_t)managed, back = 0;
    assert_int_equal(*value, 11);
    run_raise(library);
    assert_int_equal(*value, 12);
    succeed(cuDevicePrimaryCtxReset_v2(0));
    assert_int_equal(*value, 11);
    run_raise(library);
    assert_int_equal(*value, 12);
    succeed(cuLibraryGetManaged(&again, NULL, library, "shared_value"));
    assert_int_equal(again, managed);
    succeed(cuLibraryGetGlobal(&own, &bytes, library, "own_value"));
    succeed(cuMemcpyDtoH_v2(&back, own, 4));
    assert_int_equal(back, 22);
    succeed(cuLibraryUnload(library));
  }
}

/* On two devices there is one managed variable: a reset of one leaves it, with its value; a reset of both makes it
 * new. */
static void test_managed_devices(void **state) {
  for (int first = 0; first < DEVICES; first++) {
    wrapper code = wrap(ptx);
    CUlibrary library;
    CUdeviceptr managed;
    succeed(load(&library, &code));
    succeed(cuLibraryGetManaged(&managed, NULL, library, "shared_value"));
    uint32_t *value = (uint32_t *)(uintptr_t)managed;
    for (int d = 0; d < DEVICES; d++) {
      succeed(cuCtxSetCurrent(primaries[d]));
      run_raise(library);
    }
    assert_int_equal(*value, 13);
    succeed(cuDevicePrimaryCtxReset_v2(first));
    assert_int_equal(*value, 13);
    succeed(cuDevicePrimaryCtxReset_v2(1 - first));
    assert_int_equal(*value, 11);
    for (int d = 0; d < DEVICES; d++) {
      succeed(cuCtxSetCurrent(primaries[d]));
      run_raise(library);
    }
    assert_int_equal(*value, 13);
    succeed(cuCtxSetCurrent(primaries[0]));
    succeed(cuLibraryUnload(library));
  }
}

static void test_loading(void **state) {
  wrapper no_ptx = wrap(NULL), bad = {FATBIN_WRAPPER_MAGIC, 1, "not a fat binary at all", NULL};
  CUlibrary library;
  CUkernel kernel;
  int mode = 0;
  unsetenv("CUDA_MODULE_LOADING");
  succeed(cuModuleGetLoadingMode(&mode));
  assert_int_equal(mode, 2);
  listen();
  CUresult loaded = load(&library, &no_ptx),
           found = loaded ? CUDA_SUCCESS : cuLibraryGetKernel(&kernel, library, "raise"), broken = load(&library, &bad);
  heard();
  succeed(loaded);
  check(found, CUDA_ERROR_NO_BINARY_FOR_GPU);
  check(broken, CUDA_ERROR_INVALID_IMAGE);
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  succeed(cuModuleGetLoadingMode(&mode));
  listen();
  loaded = load(&library, &no_ptx);
  heard();
  unsetenv("CUDA_MODULE_LOADING");
  assert_int_equal(mode, 1);
  check(loaded, CUDA_ERROR_NO_BINARY_FOR_GPU);
}

/* A library that asks which of its kernels there are has the first few named, and the images without PTX once. */
static void test_kernels_without_text(void **state) {
  char path[] = "/tmp/ff-test-missing-XXXXXX", listed[1024] = "", kernel[16];
  int file = mkstemp(path);
  assert_true(file >= 0);
  setenv("FARFAULT_MISSING", path, 1);
  listen();
  for (int i = 0; i < 6; i++) {
    wrapper no_ptx = wrap(NULL);
    CUlibrary library;
    CUkernel found;
    snprintf(kernel, sizeof kernel, "lacking_%d", i / 2 * 2); /* each is asked for of two images */
    CUresult loaded = load(&library, &no_ptx);
    if (!loaded) loaded = cuLibraryGetKernel(&found, library, kernel);
    if (loaded != CUDA_ERROR_NO_BINARY_FOR_GPU) fprintf(stderr, "%s is found\n", kernel);
    snprintf(kernel, sizeof kernel, "lacking_%d", 10 + i);
    if (i > 2 && cuLibraryGetKernel(&found, library, kernel) == CUDA_SUCCESS) fprintf(stderr, "%s is found\n", kernel);
  }
  const char *said = heard();
  unsetenv("FARFAULT_MISSING");
  assert_true(read(file, listed, sizeof listed - 1) > 0);
  close(file);
  unlink(path);
  assert_null(strstr(said, "is found"));
  const char *further = strstr(said, "has no PTX of further kernels");
  assert_non_null(further);
  assert_null(strstr(further + 1, "has no PTX of"));
  assert_non_null(strstr(listed, "lacking_0"));
  assert_non_null(strstr(listed, "lacking_15"));
  assert_null(strstr(strstr(listed, "lacking_0") + 1, "lacking_0"));
}

static void test_questions(void **state) {
  size_t value = 77;
  succeed(cuCtxGetLimit(&value, GRAPHICS));
  assert_int_equal(value, 0);
  value = 77;
  succeed(cuCtxGetLimit(&value, GRAPHICS_SHARED));
  assert_int_equal(value, 0);
  check(cuCtxGetLimit(&value, 99), CUDA_ERROR_UNSUPPORTED_LIMIT);
  check(cuCtxGetLimit(NULL, GRAPHICS), CUDA_ERROR_INVALID_VALUE);
  succeed(cuMemFree_v2(0));
  succeed(cuMemFreeHost(NULL));
  check(cuMemFree_v2(4096), CUDA_ERROR_INVALID_VALUE);
  CUcontext current;
  succeed(cuCtxPopCurrent_v2(&current));
  check(cuMemFree_v2(0), CUDA_ERROR_INVALID_CONTEXT);
  succeed(cuCtxPushCurrent_v2(current));
}

static int start(void **state) {
  setenv("FARFAULT_MACHINE", "h200", 1);
  setenv("FARFAULT_DEVICES", "2", 1);
  unsetenv("FARFAULT_PRIVATE_RUNTIMES");
  unsetenv("CUDA_MODULE_LOADING");
  if (cuInit(0)) return 1;
  for (int d = 0; d < DEVICES; d++)
    if (cuDevicePrimaryCtxRetain(&primaries[d], d)) return 1;
  return (int)cuCtxSetCurrent(primaries[0]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_md2),
      cmocka_unit_test(test_keyed),
      cmocka_unit_test(test_integrity),
      cmocka_unit_test(test_program), /* before any table is asked for */
      cmocka_unit_test(test_off),
      cmocka_unit_test(test_runtime),
      cmocka_unit_test(test_sizes),
      cmocka_unit_test(test_unknown_slot),
      cmocka_unit_test(test_trace),
      cmocka_unit_test(test_small_functions),
      cmocka_unit_test(test_integrity_answer),
      cmocka_unit_test(test_context_numbers),
      cmocka_unit_test(test_table_loads),
      cmocka_unit_test(test_storage),
      cmocka_unit_test(test_storage_contexts),
      cmocka_unit_test(test_storage_reset),
      cmocka_unit_test(test_storage_runtime_reset),
      cmocka_unit_test(test_storage_calls_back),
      cmocka_unit_test(test_storage_green),
      cmocka_unit_test(test_storage_threads),
      cmocka_unit_test(test_managed_stay),
      cmocka_unit_test(test_managed_devices),
      cmocka_unit_test(test_loading),
      cmocka_unit_test(test_kernels_without_text),
      cmocka_unit_test(test_questions),
  };
  return cmocka_run_group_tests(tests, start, NULL);
}
