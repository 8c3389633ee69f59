/* SPDX-License-Identifier: Apache-2.0 */
/* Modules, libraries and the linker (Driver API: "Module Management", "Library Management").
 *
 * A library is a module that needs no context; here they are the same thing. The linker's result is a "cubin" of our
 * own making (linked_image.h), which any of the load calls recognises and links.
 *
 *   cuLinkCreate -> cuLinkAddData, cuLinkAddFile ... -> cuLinkComplete (links once to check, keeps the parts)
 *                -> cuModuleLoadData(the cubin)      -> engine_module_link */
#include "base/forks.h"
#include "driver/driver_api/libcuda.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "driver/linked_image.h"
#include "driver/linked_object.h"
#include "driver/private_runtimes/private_runtimes.h"
#include "fatbin/fatbin.h"

enum { LOADING_EAGER = 1, LOADING_LAZY }; /* CUmoduleLoadingMode */

/* ---- JIT options ---- */

static void fill_log(unsigned count, const int *options, void **values, int buffer, const char *message) {
  char *text = NULL;
  size_t size = 0, *used = NULL;
  for (unsigned i = 0; i < count; i++) {
    if (options[i] == buffer) text = values[i];
    if (options[i] == buffer + 1) { /* the size option follows the buffer's number; the value itself is in and out */
      size = (unsigned)(uintptr_t)values[i];
      used = (size_t *)&values[i];
    }
  }
  size_t length = strlen(message) + 1;
  if (length > size) length = size;
  if (text && length) {
    memcpy(text, message, length);
    text[length - 1] = '\0';
  }
  if (used) *used = text ? length : 0;
}

void libcuda_jit_report(unsigned count, const int *options, void **values, const char *message) {
  if (!options || !values) return;
  for (unsigned i = 0; i < count; i++)
    if (options[i] == CU_JIT_WALL_TIME) values[i] = NULL; /* a float: 0.0 ms */
  fill_log(count, options, values, CU_JIT_INFO_LOG_BUFFER, "");
  fill_log(count, options, values, CU_JIT_ERROR_LOG_BUFFER, message);
}

/* CU_JIT_MAX_REGISTERS; 0: it is not there. */
static uint32_t jit_registers(unsigned count, const int *options, void **values) {
  for (unsigned i = 0; options && values && i < count; i++)
    if (options[i] == CU_JIT_MAX_REGISTERS) return (uint32_t)(uintptr_t)values[i];
  return 0;
}

/* ---- the linker's result ---- */

struct CUlinkState_st {
  FF_VEC(link_part) parts;
  ff_text cubin; /* after cuLinkComplete */
  unsigned option_count;
  const int *options; /* the caller's, who keeps them until cuLinkDestroy */
  void **values;
};

static cudaError_t link_parts(const link_part *parts, size_t count, uint32_t max_registers, engine_module **module,
                              ff_error *error) {
  const void *images[LINKED_PARTS_MAX];
  size_t sizes[LINKED_PARTS_MAX];
  const char *names[LINKED_PARTS_MAX];
  for (size_t i = 0; i < count; i++) {
    images[i] = parts[i].bytes;
    sizes[i] = parts[i].size;
    names[i] = parts[i].name;
  }
  return engine_module_link(images, sizes, names, (uint32_t)count, max_registers, module, error);
}

static cudaError_t load_linked(const void *image, size_t bytes, engine_module **module, ff_error *error) {
  link_part parts[LINKED_PARTS_MAX];
  uint32_t max_registers;
  size_t count = linked_image_read(image, bytes, parts, &max_registers);
  if (count) return link_parts(parts, count, max_registers, module, error);
  ff_fail(error, FF_PARSE, "the linked image is damaged");
  return cudaErrorInvalidKernelImage;
}

/* ---- loading ---- */

static bool is_lazy(void) {
  const char *mode = getenv("CUDA_MODULE_LOADING");
  return !mode || strcmp(mode, "EAGER") != 0;
}

/* The JIT's options of a call, and where it was called from. */
typedef struct load_options {
  unsigned count;
  const int *options;
  void **values;
  const void *caller;
} load_options;
#define OPTIONS(count, options, values) \
  &(load_options) { count, options, values, __builtin_return_address(0) }

/* bytes == 0: the image knows its own end. */
static CUresult load_as(bool library, CUmodule *module, const void *image, size_t bytes, const load_options *how) {
  ff_error error = {.message = ""};
  cudaError_t failed;
  if (!module || !image) return CUDA_ERROR_INVALID_VALUE;
  uint32_t max_registers = jit_registers(how->count, how->options, how->values);
  if (linked_image_is(image, bytes)) failed = load_linked(image, bytes, module, &error);
  else if (max_registers) failed = engine_module_link(&image, &bytes, NULL, 1, max_registers, module, &error);
  else if (library && is_lazy()) failed = engine_library_load(image, bytes, module, &error);
  else failed = engine_module_load(image, bytes, module, &error);
  libcuda_jit_report(how->count, how->options, how->values, failed ? error.message : "");
  if (failed) engine_say_once(error.message, "%s", error.message);
  else engine_module_tell(*module, how->caller);
  return libcuda_result(failed);
}

static CUresult load_file(CUmodule *module, const char *path, const load_options *how) {
  char *data;
  size_t size;
  ff_error error;
  if (!module || !path) return CUDA_ERROR_INVALID_VALUE;
  ff_status status = ff_file_read(path, 0, &data, &size, &error);
  if (status != FF_OK) {
    libcuda_jit_report(how->count, how->options, how->values, error.message);
    return CUDA_ERROR_FILE_NOT_FOUND;
  }
  CUresult result = size ? load_as(false, module, data, size, how) : CUDA_ERROR_INVALID_IMAGE;
  free(data);
  return result;
}

/* A module is its context's, a library any one's. */
static CUresult load_here(CUmodule *module, const void *image, const load_options *how) {
  LIBCUDA_TRY(libcuda_enter());
  LIBCUDA_TRY(load_as(false, module, image, 0, how));
  return libcuda_result(engine_module_bind(*module));
}

LIBCUDA_CALL(cuModuleLoad, (CUmodule * module, const char *path)) {
  LIBCUDA_TRY(libcuda_enter());
  LIBCUDA_TRY(load_file(module, path, OPTIONS(0, NULL, NULL)));
  return libcuda_result(engine_module_bind(*module));
}
LIBCUDA_CALL(cuModuleLoadData, (CUmodule * module, const void *image)) {
  return load_here(module, image, OPTIONS(0, NULL, NULL));
}
LIBCUDA_CALL(cuModuleLoadDataEx,
             (CUmodule * module, const void *image, unsigned count, const int *options, void **values)) {
  return load_here(module, image, OPTIONS(count, options, values));
}
LIBCUDA_CALL(cuModuleLoadFatBinary, (CUmodule * module, const void *image)) {
  return load_here(module, image, OPTIONS(0, NULL, NULL));
}

LIBCUDA_CALL(cuModuleUnload, (CUmodule module)) {
  LIBCUDA_TRY(libcuda_enter());
  if (engine_module_is_library(module)) return CUDA_ERROR_NOT_PERMITTED;
  private_module_gone(module);
  return libcuda_result(engine_module_unload(module));
}

LIBCUDA_CALL(cuModuleGetLoadingMode, (int *mode)) {
  LIBCUDA_TRY(libcuda_ready());
  if (!mode) return CUDA_ERROR_INVALID_VALUE;
  *mode = is_lazy() ? LOADING_LAZY : LOADING_EAGER;
  return CUDA_SUCCESS;
}

/* ---- what is in them ---- */

static CUresult find_function(CUfunction *function, CUmodule module, const char *name) {
  if (!function || !name || !*name) return CUDA_ERROR_INVALID_VALUE;
  if (!engine_module_valid(module)) return CUDA_ERROR_INVALID_HANDLE;
  return libcuda_result(engine_function_find(module, name, function));
}

/* A program keeps the address of a managed variable: the variable does not move when the device is reset. */
static CUresult find_global(CUdeviceptr *pointer, size_t *bytes, CUmodule module, const char *name) {
  if (!name || (!pointer && !bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (!engine_module_valid(module)) return CUDA_ERROR_INVALID_HANDLE;
  engine_variable *variable;
  uint64_t address, size;
  LIBCUDA_TRY(libcuda_result(engine_variable_find(module, name, &variable)));
  LIBCUDA_TRY(libcuda_result(engine_variable_expose(variable, &address, &size)));
  if (engine_pointer_find(address).memory == ENGINE_MANAGED) engine_module_keep_managed(module);
  if (pointer) *pointer = address;
  if (bytes) *bytes = size;
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name)) {
  LIBCUDA_TRY(libcuda_enter());
  return find_function(function, module, name);
}

LIBCUDA_CALL(cuModuleGetGlobal_v2, (CUdeviceptr * pointer, size_t *bytes, CUmodule module, const char *name)) {
  LIBCUDA_TRY(libcuda_enter());
  return find_global(pointer, bytes, module, name);
}

/* ---- libraries ---- */

LIBCUDA_CALL(cuLibraryLoadData,
             (CUlibrary * library, const void *code, const int *options, void **values, unsigned count,
              const int *library_options, void **library_values, unsigned library_count)) {
  LIBCUDA_TRY(libcuda_ready());
  LIBCUDA_TRY(libcuda_result(engine_start()));
  LIBCUDA_TRY(load_as(true, library, code, 0, OPTIONS(count, options, values)));
  engine_module_set_library(*library, true);
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuLibraryLoadFromFile,
             (CUlibrary * library, const char *path, const int *options, void **values, unsigned count,
              const int *library_options, void **library_values, unsigned library_count)) {
  LIBCUDA_TRY(libcuda_ready());
  LIBCUDA_TRY(libcuda_result(engine_start()));
  LIBCUDA_TRY(load_file(library, path, OPTIONS(count, options, values)));
  engine_module_set_library(*library, true);
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuLibraryUnload, (CUlibrary library)) {
  LIBCUDA_TRY(libcuda_ready());
  private_module_gone(library);
  return libcuda_result(engine_module_unload(library));
}

LIBCUDA_CALL(cuLibraryGetKernel, (CUkernel * kernel, CUlibrary library, const char *name)) {
  LIBCUDA_TRY(libcuda_ready());
  return find_function(kernel, library, name);
}

LIBCUDA_CALL(cuLibraryGetModule, (CUmodule * module, CUlibrary library)) {
  LIBCUDA_TRY(libcuda_enter());
  if (!module) return CUDA_ERROR_INVALID_VALUE;
  if (!engine_module_valid(library)) return CUDA_ERROR_INVALID_HANDLE;
  *module = library;
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuLibraryGetGlobal, (CUdeviceptr * pointer, size_t *bytes, CUlibrary library, const char *name)) {
  LIBCUDA_TRY(libcuda_enter());
  return find_global(pointer, bytes, library, name);
}

/* Needs no context: managed memory is no device's. */
LIBCUDA_CALL(cuLibraryGetManaged, (CUdeviceptr * pointer, size_t *bytes, CUlibrary library, const char *name)) {
  CUdeviceptr address;
  LIBCUDA_TRY(libcuda_ready());
  LIBCUDA_TRY(find_global(&address, bytes, library, name));
  if (engine_pointer_find(address).memory != ENGINE_MANAGED) return CUDA_ERROR_NOT_FOUND;
  if (pointer) *pointer = address;
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuKernelGetFunction, (CUfunction * function, CUkernel kernel)) {
  LIBCUDA_TRY(libcuda_enter());
  if (!function) return CUDA_ERROR_INVALID_VALUE;
  if (!engine_function_valid(kernel)) return CUDA_ERROR_INVALID_HANDLE;
  *function = kernel;
  return CUDA_SUCCESS;
}

/* ---- linking ---- */

enum { LINK_CUBIN, LINK_PTX, LINK_FATBINARY, LINK_OBJECT, LINK_LIBRARY }; /* CUjitInputType */

/* All that are live: a program may hand in anything. */
static FF_VEC(CUlinkState) links;
static pthread_mutex_t links_lock = PTHREAD_MUTEX_INITIALIZER;
FF_FREE_IN_CHILD(links_lock)

static void link_remember(CUlinkState state) {
  pthread_mutex_lock(&links_lock);
  FF_PUSH(&links, state);
  pthread_mutex_unlock(&links_lock);
}

/* Is it live? `forget`: from now on it is not. */
static bool link_known(CUlinkState state, bool forget) {
  pthread_mutex_lock(&links_lock);
  size_t at = 0;
  while (at < links.count && links.items[at] != state) at++;
  bool known = at < links.count;
  if (known && forget) links.items[at] = links.items[--links.count];
  pthread_mutex_unlock(&links_lock);
  return known;
}

LIBCUDA_CALL(cuLinkCreate_v2, (unsigned count, const int *options, void **values, CUlinkState *state)) {
  LIBCUDA_TRY(libcuda_enter());
  if (!state || (count && (!options || !values))) return CUDA_ERROR_INVALID_VALUE;
  struct CUlinkState_st *made = ff_alloc(sizeof *made);
  made->option_count = count;
  made->options = options;
  made->values = values;
  link_remember(made);
  *state = made;
  return CUDA_SUCCESS;
}

typedef struct named_state {
  struct CUlinkState_st *state;
  const char *name;
} named_state;

static void link_keep(void *to, const void *bytes, size_t size) {
  named_state *named = to;
  link_part part = {.bytes = ff_alloc(size + 1), .size = size, .name = ff_strdup(named->name ? named->name : "")};
  memcpy(part.bytes, bytes, size);
  FF_PUSH(&named->state->parts, part);
}

static CUresult link_full(void) {
  engine_say_once("cuLinkAddData: room", "cuLink* links %d PTX texts and fat binaries at the most", LINKED_PARTS_MAX);
  return CUDA_ERROR_INVALID_VALUE;
}

static CUresult link_add_objects(named_state *named, const void *data, size_t size) {
  switch (linked_object_add(data, size, LINKED_PARTS_MAX - named->state->parts.count, link_keep, named)) {
  case LINKED_OBJECT_ADDED: return CUDA_SUCCESS;
  case LINKED_OBJECT_MANY: return link_full();
  default:
    engine_say_once("cuLinkAddData", "cuLink* links PTX, fat binaries, and objects and libraries that have PTX; this "
                                     "has machine code only, or an object that has");
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
}

static CUresult link_add(struct CUlinkState_st *state, int type, const void *data, size_t size, const char *name) {
  if (!link_known(state, false)) return CUDA_ERROR_INVALID_HANDLE;
  if (!data || !size || state->cubin.chars) return CUDA_ERROR_INVALID_VALUE;
  if (state->parts.count == LINKED_PARTS_MAX) return link_full();
  bool text = type == LINK_CUBIN && size > 4 && memcmp(data, "\177ELF", 4) != 0; /* what NVRTC gives here: preload.c */
  named_state named = {state, name};
  if ((type == LINK_CUBIN && !text) || type == LINK_OBJECT || type == LINK_LIBRARY)
    return link_add_objects(&named, data, size);
  if (type != LINK_PTX && type != LINK_FATBINARY && !text) return CUDA_ERROR_INVALID_VALUE;
  link_keep(&named, data, size);
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuLinkAddData_v2, (CUlinkState state, int type, void *data, size_t size, const char *name, unsigned count,
                                const int *options, void **values)) {
  LIBCUDA_TRY(libcuda_enter());
  return link_add(state, type, data, size, name);
}

LIBCUDA_CALL(cuLinkAddFile_v2,
             (CUlinkState state, int type, const char *path, unsigned count, const int *options, void **values)) {
  LIBCUDA_TRY(libcuda_enter());
  char *data;
  size_t size;
  if (!link_known(state, false)) return CUDA_ERROR_INVALID_HANDLE;
  if (!path) return CUDA_ERROR_INVALID_VALUE;
  if (ff_file_read(path, 0, &data, &size, NULL) != FF_OK) return CUDA_ERROR_FILE_NOT_FOUND;
  CUresult result = link_add(state, type, data, size, path);
  free(data);
  return result;
}

LIBCUDA_CALL(cuLinkComplete, (CUlinkState state, void **cubin, size_t *size)) {
  LIBCUDA_TRY(libcuda_enter());
  if (!link_known(state, false)) return CUDA_ERROR_INVALID_HANDLE;
  if (!cubin || !state->parts.count) return CUDA_ERROR_INVALID_VALUE;
  engine_module *module;
  ff_error error = {.message = ""};
  uint32_t most = jit_registers(state->option_count, state->options, state->values);
  cudaError_t failed = link_parts(state->parts.items, state->parts.count, most, &module, &error);
  libcuda_jit_report(state->option_count, state->options, state->values, failed ? error.message : "");
  if (failed) return libcuda_result(failed);
  LIBCUDA_TRY(libcuda_result(engine_module_unload(module)));
  if (!state->cubin.chars) linked_image_write(state->parts.items, state->parts.count, most, &state->cubin);
  *cubin = state->cubin.chars;
  if (size) *size = state->cubin.length;
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuLinkDestroy, (CUlinkState state)) {
  LIBCUDA_TRY(libcuda_ready());
  if (!link_known(state, true)) return CUDA_ERROR_INVALID_HANDLE;
  for (size_t i = 0; i < state->parts.count; i++) {
    free(state->parts.items[i].bytes);
    free(state->parts.items[i].name);
  }
  free(state->parts.items);
  free(state->cubin.chars);
  free(state);
  return CUDA_SUCCESS;
}
