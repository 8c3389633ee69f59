/* SPDX-License-Identifier: Apache-2.0 */
/* Modules and kernels. The driver compiles; what is PTX is read here as well, for its kernels' parameters.
 *
 * A module is loaded on the first GPU at once, so that what is wrong with it is said at once, and on others when they
 * need it. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "ptx/ir.h"
#include "ptx/rewrite/window.h"
#include "runtime/runtime_check.h"

enum { LOG_BYTES = 4096, JIT_ERROR_LOG = 5, JIT_ERROR_LOG_BYTES = 6 };

/* ---- images ---- */

/* Bytes of a fat binary: a header of 16 bytes with the size of what follows. 0: it is none. */
static size_t fat_binary_bytes(const unsigned char *image) {
  static const unsigned char magic[4] = {0x50, 0xed, 0x55, 0xba};
  uint64_t bytes;
  if (memcmp(image, magic, 4)) return 0;
  memcpy(&bytes, image + 8, 8);
  return bytes < UINT64_C(1) << 32 ? bytes + 16 : 0;
}

static ff_result image_bytes(const void *image, size_t *bytes) {
  const unsigned char *c = image;
  if (*bytes) return FF_SUCCESS;
  if (!*c) return runtime_fail(FF_ERROR_CODE, "the module is empty");
  if (*c == 0x7f) return runtime_fail(FF_ERROR_INVALID, "ff_module_load: the size of a cubin must be given");
  *bytes = *c == 0x50 && c[1] == 0xed ? fat_binary_bytes(c) : strlen(image);
  return *bytes ? FF_SUCCESS : runtime_fail(FF_ERROR_CODE, "the module's header is damaged");
}

static bool is_text(const char *image, size_t bytes) {
  for (size_t i = 0; i < bytes && i < 64; i++)
    if (!isprint((unsigned char)image[i]) && !isspace((unsigned char)image[i])) return i && !image[i] && i + 1 == bytes;
  return true;
}

static void read_ptx(ff_module *m) {
  ff_error error;
  size_t bytes = m->bytes;
  while (bytes && !m->image[bytes - 1]) bytes--;
  if (!is_text(m->image, bytes)) snprintf(m->reason, sizeof m->reason, "module '%.100s' is not PTX", m->name);
  else if (!strstr(m->image, ".version"))
    snprintf(m->reason, sizeof m->reason, "module '%.100s' has no .version: it is not PTX", m->name);
  else if (ptx_module_parse(m->name, m->image, bytes, &m->ptx, &error))
    snprintf(m->reason, sizeof m->reason, "%.*s", (int)strcspn(error.message, "\n"), error.message);
}

/* Kernels of both forms must see the same variables: then one module has both from the start. */
bool module_has_variables(const ff_module *m) {
  for (uint32_t i = 0; m->ptx && i < m->ptx->var_count; i++)
    if (m->ptx->vars[i]->space == PTX_SPACE_GLOBAL) return true;
  return false;
}

/* ---- loading ---- */

ff_result module_load_image(ff_module *m, uint32_t d, const char *image, cuda_module *loaded) {
  char log[LOG_BYTES] = "";
  int options[] = {JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES};
  void *values[] = {log, (void *)(uintptr_t)sizeof log};
  if (*loaded) return FF_SUCCESS;
  TRY(gpu_on(m->gpu, d));
  int result = m->gpu->driver->ModuleLoadDataEx(loaded, image, 2, options, values);
  if (!result) return FF_SUCCESS;
  *loaded = NULL;
  ff_result failed = driver_failed(m->gpu, result, "cuModuleLoadDataEx");
  if (result != CUDA_INVALID_IMAGE && result != CUDA_NO_BINARY && result != CUDA_INVALID_PTX &&
      result != CUDA_NOT_SUPPORTED)
    return failed;
  log[sizeof log - 1] = '\0';
  char text[1024];
  snprintf(text, sizeof text, "module '%.200s': %.300s%s%.500s", m->name, ff_message(), *log ? ": " : "", log);
  return runtime_fail(FF_ERROR_CODE, "%s", text);
}

static ff_result load_on(ff_module *m, uint32_t d) {
  if (m->both && !module_load_image(m, d, m->windows->text.chars, &m->loaded[d])) return FF_SUCCESS;
  m->both = m->both && m->loaded[0]; /* on every GPU the same text */
  return m->both ? module_load_image(m, d, m->windows->text.chars, &m->loaded[d])
                 : module_load_image(m, d, check_image(m), &m->loaded[d]);
}

void module_unload_image(ff_module *m, uint32_t d, cuda_module *loaded) {
  if (*loaded) INSIST(gpu_on(m->gpu, d) || m->gpu->driver->ModuleUnload(*loaded));
}

void module_free(ff_module *m) {
  ff_gpu *gpu = m->gpu;
  for (uint32_t d = 0; d < gpu->device_count; d++) {
    module_unload_image(m, d, &m->loaded[d]);
    module_unload_image(m, d, &m->window_code[d]);
  }
  for (size_t i = 0; i < m->kernels.count; i++) {
    free(m->kernels.items[i]->name);
    free(m->kernels.items[i]->param_bytes);
    free(m->kernels.items[i]);
  }
  for (size_t at = 0; at < gpu->modules.count; at++)
    if (gpu->modules.items[at] == m) {
      memmove(&gpu->modules.items[at], &gpu->modules.items[at + 1], (--gpu->modules.count - at) * sizeof m);
      break;
    }
  rewrite_module_free(m);
  if (m->windows) ptx_windows_free(m->windows);
  check_module_free(m);
  if (m->ptx) ptx_module_free(m->ptx);
  free(m->kernels.items);
  free(m->image);
  free(m->name);
  free(m);
}

static ff_result load(ff_gpu *gpu, const char *name, const void *image, size_t bytes, ff_module **out) {
  if (gpu->lost) return runtime_fail(FF_ERROR_LOST, "%s", gpu->lost_message);
  TRY(image_bytes(image, &bytes));
  ff_module *m = ff_alloc(sizeof *m);
  *m = (ff_module){.gpu = gpu, .name = ff_strdup(name ? name : "module"), .image = ff_alloc(bytes + 1), .bytes = bytes};
  memcpy(m->image, image, bytes);
  read_ptx(m);
  check_module(m);
  if (module_has_variables(m)) m->both = (m->windows = ptx_windows_make(check_ptx(m))) != NULL;
  ff_result result = load_on(m, 0);
  if (result) {
    module_free(m);
    return result;
  }
  FF_PUSH(&gpu->modules, m);
  *out = m;
  return FF_SUCCESS;
}

ff_result ff_module_load(ff_gpu *gpu, const char *name, const void *image, size_t bytes, ff_module **module) {
  if (!gpu || !image || !module) return runtime_fail(FF_ERROR_INVALID, "ff_module_load: NULL");
  gpu_enter(gpu);
  ff_result result = load(gpu, name, image, bytes, module);
  gpu_leave(gpu);
  return result;
}

ff_result ff_module_load_file(ff_gpu *gpu, const char *path, ff_module **module) {
  char *data;
  size_t bytes;
  ff_error error;
  if (!gpu || !path || !module) return runtime_fail(FF_ERROR_INVALID, "ff_module_load_file: NULL");
  ff_status status = ff_file_read(path, 0, &data, &bytes, &error);
  if (status) return runtime_fail(access(path, F_OK) ? FF_ERROR_NOT_FOUND : FF_ERROR_IO, "%s", error.message);
  ff_result result =
      bytes ? ff_module_load(gpu, path, data, bytes, module) : runtime_fail(FF_ERROR_CODE, "%s: is empty", path);
  free(data);
  return result;
}

ff_result ff_module_unload(ff_module *module) {
  if (!module) return FF_SUCCESS;
  ff_gpu *gpu = module->gpu;
  gpu_enter(gpu);
  ff_result result = launch_wait(gpu);
  if (!result || gpu->lost) module_free(module);
  gpu_leave(gpu);
  return gpu->lost ? FF_SUCCESS : result;
}

/* ---- kernels ---- */

static void read_parameters(ff_kernel *k) {
  const ptx_func *f = k->module->ptx ? ptx_find_func(k->module->ptx, k->name) : NULL;
  if (!f || !f->entry) return;
  k->known = true;
  k->param_count = f->param_count;
  k->param_bytes = ff_alloc((f->param_count + 1) * sizeof *k->param_bytes);
  for (uint32_t i = 0; i < f->param_count; i++) k->param_bytes[i] = (uint32_t)f->params[i]->size;
}

static ff_result find(ff_module *m, const char *name, ff_kernel **out) {
  cuda_function function;
  for (size_t i = 0; i < m->kernels.count; i++)
    if (!strcmp(m->kernels.items[i]->name, name)) {
      *out = m->kernels.items[i];
      return FF_SUCCESS;
    }
  TRY(gpu_on(m->gpu, 0));
  ff_kernel wanted = {.module = m, .name = (char *)(uintptr_t)name};
  ff_result refused = check_kernel(&wanted);
  int result = m->gpu->driver->ModuleGetFunction(&function, m->loaded[0], check_entry(&wanted));
  if (result == CUDA_NOT_FOUND)
    return runtime_fail(FF_ERROR_NOT_FOUND, "module '%s' has no kernel '%s'", m->name, name);
  if (result) return driver_failed(m->gpu, result, "cuModuleGetFunction");
  if (refused) return refused;
  ff_kernel *k = ff_alloc(sizeof *k);
  *k = (ff_kernel){.module = m, .name = ff_strdup(name), .functions = {function}, .checked = wanted.checked};
  read_parameters(k);
  FF_PUSH(&m->kernels, k);
  *out = k;
  return FF_SUCCESS;
}

ff_result ff_kernel_find(ff_module *module, const char *name, ff_kernel **kernel) {
  if (!module || !name || !kernel) return runtime_fail(FF_ERROR_INVALID, "ff_kernel_find: NULL");
  ff_gpu *gpu = module->gpu;
  gpu_enter(gpu);
  ff_result result = find(module, name, kernel);
  gpu_leave(gpu);
  return result;
}

static ff_result window_name(ff_kernel *k, const char **name) {
  ff_module *m = k->module;
  if (!m->ptx) return runtime_fail(FF_ERROR_TOO_LARGE, "%s", m->reason);
  if (module_has_variables(m) && !m->both)
    return runtime_fail(FF_ERROR_TOO_LARGE, "module '%s' has variables, and the driver refuses its rewritten form",
                        m->name);
  if (!m->windows) m->windows = ptx_windows_make(check_ptx(m));
  const ptx_window_kernel *found = ptx_windows_find(m->windows, check_entry(k));
  if (!found || !found->window_name)
    return runtime_fail(FF_ERROR_TOO_LARGE, "kernel '%s' %s", k->name, found ? found->reason : "has no body");
  *name = found->window_name;
  return FF_SUCCESS;
}

ff_result module_windows(ff_kernel *k, const char **text, const char **name) {
  TRY(window_name(k, name));
  *text = k->module->windows->text.chars;
  return FF_SUCCESS;
}

static ff_result window_function(ff_gpu *gpu, ff_kernel *k, uint32_t d) {
  const char *name = NULL;
  if (k->windows[d]) return FF_SUCCESS;
  TRY(window_name(k, &name));
  ff_module *m = k->module;
  TRY(m->both ? load_on(m, d) : module_load_image(m, d, m->windows->text.chars, &m->window_code[d]));
  TRY(gpu_on(gpu, d));
  DRIVER_TRY(gpu, ModuleGetFunction, &k->windows[d], m->both ? m->loaded[d] : m->window_code[d], name);
  return FF_SUCCESS;
}

ff_result kernel_function(ff_gpu *gpu, ff_kernel *k, uint32_t d, bool window, cuda_function *function) {
  if (window) TRY(window_function(gpu, k, d));
  if (!window && !k->functions[d]) {
    TRY(load_on(k->module, d));
    TRY(gpu_on(gpu, d));
    DRIVER_TRY(gpu, ModuleGetFunction, &k->functions[d], k->module->loaded[d], check_entry(k));
  }
  *function = window ? k->windows[d] : k->functions[d];
  return FF_SUCCESS;
}
