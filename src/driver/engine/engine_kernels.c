/* SPDX-License-Identifier: Apache-2.0 */
/* PTX in the place of machine code: what a program's images hold as machine code only is taken from folders of PTX that
 * the user has made from the same sources (`--kernels`, FARFAULT_KERNELS).
 *
 *   FARFAULT_KERNELS   the folders, separated by colons
 *   FARFAULT_MISSING   a file: a line for each kernel or translation unit that was needed and is in none of them
 *
 * A module is one translation unit, and so is a file. Which file is a module's is decided by the names of all its
 * kernels and variables: as registered, or, where nothing is registered, those of the functions in the machine code.
 * All here runs below the engine's lock. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/engine/engine_internal.h"
#include "driver/engine/kernel_folders.h"
#include "driver/engine/kernel_name.h"
#include "fatbin/cubin.h"
#include "fatbin/elf.h"

/* ---- the folders ---- */

static kernel_folders *folders; /* opened once; they live as long as the process */

static void say(const char *message) { engine_say("%s", message); }

static const char *folder_list(void) {
  const char *list = getenv("FARFAULT_KERNELS");
  return list && *list ? list : NULL;
}

/* The file with most of the names, which may have been written while the program ran; NULL: none. To look at all files
 * takes time: for an image that is worth it always, for a kernel (`newest` false) where none is known to have it. */
static const char *best_file(const uint64_t *names, size_t count, bool newest) {
  if (!folders && folder_list()) folders = kernel_folders_open(folder_list(), say);
  if (newest) kernel_folders_renew(folders);
  const char *path = kernel_folders_best(folders, names, count);
  return path || newest || !kernel_folders_renew(folders) ? path : kernel_folders_best(folders, names, count);
}

/* ---- what a module defines ---- */

static void add_name(void *context, const char *name, size_t length) {
  kernel_hashes *names = context;
  FF_PUSH(names, kernel_name_hash(name, length));
}

static void add_image_names(const fatbin *image, kernel_hashes *names) {
  for (uint32_t i = 0; i < image->entry_count; i++) {
    if (image->entries[i].kind != FATBIN_KIND_ELF) continue;
    char *bytes;
    size_t size;
    if (fatbin_unpack(&image->entries[i], &bytes, &size, NULL)) continue;
    cubin_functions(bytes, size, add_name, names);
    free(bytes);
    return; /* the others are the same kernels for other architectures */
  }
}

static kernel_hashes module_names(const engine_module *module, const fatbin_set *set, const void *image, size_t bytes) {
  kernel_hashes names = {0};
  for (const engine_function *f = module->functions; f; f = f->next) add_name(&names, f->name, strlen(f->name));
  for (const engine_variable *v = module->variables; v; v = v->next) add_name(&names, v->name, strlen(v->name));
  if (names.count) return names;
  for (uint32_t i = 0; set && i < set->count; i++) add_image_names(&set->images[i], &names);
  if (image) cubin_functions(image, bytes, add_name, &names);
  return names;
}

/* ---- what is missing ---- */

/* The source file of the module, as far as that can be seen; the caller frees it. NULL: it cannot. */
static char *source_of(const engine_module *module) {
  Dl_info object;
  char file[256];
  char *found = NULL;
  if (module->binary && dladdr(module->binary, &object) && object.dli_fname)
    found = elf_source_of(object.dli_fname, (uint64_t)(uintptr_t)module->binary, (uint64_t)(uintptr_t)object.dli_fbase);
  for (const engine_function *f = module->functions; f && !found; f = f->next)
    if (kernel_name_file(f->name, file, sizeof file)) found = ff_strdup(file);
  return found;
}

const char *engine_module_owner(const engine_module *module) {
  Dl_info object;
  if (!module->binary || !dladdr(module->binary, &object) || !object.dli_fname) return program_invocation_short_name;
  const char *slash = strrchr(object.dli_fname, '/');
  return slash ? slash + 1 : object.dli_fname;
}

/* One write for the line: processes may share the file. */
static void list_missing(const char *source, const char *kernel) {
  const char *path = getenv("FARFAULT_MISSING");
  if (!path || !*path) return;
  int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  ff_text line = {0};
  ff_text_add(&line, "%s\t%s\n", source ? source : "?", kernel);
  if (fd < 0 || write(fd, line.chars, line.length) != (ssize_t)line.length)
    engine_say_once("FARFAULT_MISSING", "--missing: %s: %s", path, strerror(errno));
  if (fd >= 0) close(fd);
  free(line.chars);
}

static ff_status fail_missing(const engine_module *module, ff_error *error) {
  const char *kernel = module->functions ? module->functions->name : "";
  size_t count = 0;
  for (const engine_function *f = module->functions; f; f = f->next) count++;
  /* Of a library's images, which may be hundreds, one is named where there are no folders that could have theirs. */
  char *source = count || folder_list() ? source_of(module) : NULL, *title = engine_demangle(kernel);
  ff_text which = {0};
  if (count) ff_text_add(&which, "module %u of %s", module->number, engine_module_owner(module));
  else ff_text_add(&which, "an image of %s", engine_module_owner(module)); /* the same for all: said once */
  if (source) ff_text_add(&which, " (%s)", source);
  ff_text_add(&which, " holds machine code only, no PTX");
  if (!folder_list())
    ff_fail(
        error, FF_NOT_FOUND,
        "%s: build it with nvcc's -gencode arch=compute_75,code=compute_75 (or plain -arch=sm_XX), so that it carries "
        "PTX, or compile %s to PTX in a folder and name that with --kernels",
        which.chars, source ? source : "its source file");
  else if (count)
    ff_fail(
        error, FF_NOT_FOUND,
        "%s, and none of its %zu kernels (%.160s) is in a folder of --kernels: compile %s to PTX there (of PyTorch: "
        "scripts/pytorch-kernels.sh%s%s)",
        which.chars, count, title, source ? source : "its source file", source ? " --only " : "", source ? source : "");
  else ff_fail(error, FF_NOT_FOUND, "%s, and nothing of it is in a folder of --kernels", which.chars);
  if (count) list_missing(source, kernel);
  free(which.chars);
  free(source);
  free(title);
  return FF_NOT_FOUND;
}

void engine_kernels_lacks(const engine_module *module, const char *name) {
  char *source = source_of(module), *title = engine_demangle(name);
  engine_say_once(
      name,
      "%s has most of the kernels of module %u (%s), but lacks %.300s: compile %s to PTX, of the same release "
      "and with its options",
      module->kernels_file, module->number, source ? source : "of an unknown source file", title,
      source ? source : "its source file");
  list_missing(source, name);
  free(source);
  free(title);
}

/* How many kernels of the owner have been asked for, this one included; 0: this one has been before. */
static uintptr_t ask_kernel(const char *owner, const char *name) {
  static ff_map asked, asked_of_owner; /* their keys live as long as the process */
  if (ff_map_get(&asked, name)) return 0;
  char *kept = ff_strdup(name);
  ff_map_set(&asked, kept, kept);
  uintptr_t count = (uintptr_t)ff_map_get(&asked_of_owner, owner) + 1;
  ff_map_set(&asked_of_owner, count > 1 ? owner : ff_strdup(owner), (void *)count);
  return count;
}

void engine_kernels_no_text(const engine_module *module, const char *name) {
  enum { NAMED = 3 }; /* libraries ask at their start which of their kernels there are: NCCL of ten without PTX */
  const char *owner = engine_module_owner(module);
  uintptr_t number = ask_kernel(owner, name);
  if (!number) return;
  char *title = engine_demangle(name), *source = source_of(module);
  if (number <= NAMED) engine_say("%s has no PTX of the kernel %.300s", owner, title);
  else if (number == NAMED + 1) engine_say("%s has no PTX of further kernels: --missing FILE lists them", owner);
  list_missing(source, name);
  free(title);
  free(source);
}

void engine_kernels_fault(const engine_function *function, int device) {
  if (!function->module->binary) return;
  if (!folder_list()) {
    engine_kernels_no_text(function->module, function->name);
    return;
  }
  char message[512];
  snprintf(
      message, sizeof message,
      "the kernel %.200s is in no folder of --kernels: every later call fails, as after a fault, since the program "
      "may go on with what is in memory instead of the kernel's results",
      function->name);
  engine_say_once("--kernels", "%s", message);
  engine_fault_locked(cudaErrorNoKernelImageForDevice, device, message);
}

/* ---- what is there ---- */

static ff_status take_file(engine_module *module, const char *path, ff_error *error) {
  kernel_text_close(module->text);
  module->text = NULL;
  ff_status status = kernel_text_open(path, &module->text, error);
  if (status) return status;
  engine_source source = {.name = ff_strdup(path)};
  const char *shared = kernel_text_shared(module->text, &source.length);
  source.text = ff_alloc(source.length + 1);
  memcpy(source.text, shared, source.length);
  FF_PUSH(&module->sources, source);
  free(module->kernels_file);
  module->kernels_file = ff_strdup(path);
  return FF_OK;
}

ff_status engine_kernels_take(engine_module *module, const fatbin_set *set, const void *image, size_t bytes,
                              ff_error *error) {
  kernel_hashes names = module_names(module, set, image, bytes);
  const char *path = names.count ? best_file(names.items, names.count, true) : NULL;
  free(names.items);
  if (!path && image) /* libraries try such, and go on with PTX */
    return ff_fail(error, FF_NOT_FOUND,
                   "the image is machine code (ELF), which the virtual GPU cannot run: load PTX instead");
  return path ? take_file(module, path, error) : fail_missing(module, error);
}

/* ---- kernels of several translation units ---- */

typedef struct other_file {
  const char *path; /* the folders' */
  engine_module *module;
} other_file;

/* Modules of files as such, for kernels that the file of their own module lacks; they live as long as the process. */
static FF_VEC(other_file) others;

static engine_module *module_of_file(const char *path) {
  for (size_t i = 0; i < others.count; i++)
    if (others.items[i].path == path) return others.items[i].module;
  other_file one = {path, engine_module_of_text()};
  ff_error error;
  if (take_file(one.module, path, &error)) engine_say_once(path, "%s", error.message);
  FF_PUSH(&others, one);
  return one.module;
}

/* A template's kernel is made by each translation unit that uses it, and registered by any one of them: a file that has
 * it serves, whichever unit's that is. NULL: none has, or only one that is not taken apart. */
static engine_module *elsewhere(const engine_module *module, const char *name) {
  if (!module->kernels_file) return NULL;
  uint64_t hash = kernel_name_hash(name, strlen(name));
  const char *path = best_file(&hash, 1, false);
  engine_module *other = path && strcmp(path, module->kernels_file) ? module_of_file(path) : NULL;
  return other && other->text && kernel_text_name(other->text, name) ? other : NULL;
}

bool engine_kernels_elsewhere(const engine_module *module, const char *name) { return elsewhere(module, name) != NULL; }

/* ---- the home of a kernel ---- */

/* A part of the module: what all kernels of the file share, and the kernel. Its lines are not the file's. */
static ff_status make_home(engine_function *function, ff_error *error) {
  engine_module *module = function->module;
  const char *name = kernel_text_name(module->text, function->name);
  char *statement;
  size_t length, shared_length;
  ff_status status = kernel_text_read(module->text, name, &statement, &length, error);
  if (status) return status == FF_NOT_FOUND ? FF_IO : status;
  ff_text text = {0}, title = {0};
  const char *shared = kernel_text_shared(module->text, &shared_length);
  ff_text_add_bytes(&text, shared, shared_length);
  ff_text_add_bytes(&text, "\n", 1);
  ff_text_add_bytes(&text, statement, length);
  ff_text_add(&title, "%s (%.60s)", module->kernels_file, name);
  free(statement);
  engine_source source = {.name = title.chars, .text = text.chars, .length = text.length};
  function->home = engine_module_part(module, source);
  return FF_OK;
}

/* The home that the kernel has in a module of its own file. */
static ff_status share_home(engine_function *function, engine_module *other, ff_error *error) {
  engine_function *there = engine_function_of_locked(other, function->name);
  ff_status status = there->home ? FF_OK : make_home(there, error);
  if (status) return status;
  function->home = there->home;
  function->home_name = kernel_text_name(other->text, function->name);
  return FF_OK;
}

ff_status engine_kernels_home(engine_function *function, ff_error *error) {
  engine_module *module = function->module;
  if (function->home) return FF_OK;
  if (module->text && kernel_text_name(module->text, function->name)) return make_home(function, error);
  bool own = ptx_find_func(engine_module_code(module), engine_kernels_name(module, function->name)) != NULL;
  engine_module *other = own ? NULL : elsewhere(module, function->name);
  if (other) return share_home(function, other, error);
  function->home = module;
  return FF_OK;
}

/* ---- names ---- */

static int compare_aliases(const void *left, const void *right) {
  uint64_t a = ((const engine_alias *)left)->hash, b = ((const engine_alias *)right)->hash;
  return (a > b) - (a < b);
}

static void add_alias(engine_module *module, const char *name) {
  engine_alias alias = {.hash = kernel_name_hash(name, strlen(name)), .name = name};
  FF_PUSH(&module->aliases, alias);
}

static void make_aliases(engine_module *module) {
  const ptx_module *code = engine_module_code(module);
  for (uint32_t i = 0; i < code->func_count; i++)
    if (code->funcs[i]->entry) add_alias(module, code->funcs[i]->name);
  for (uint32_t i = 0; i < code->var_count; i++) add_alias(module, code->vars[i]->name);
  if (module->aliases.count)
    qsort(module->aliases.items, module->aliases.count, sizeof *module->aliases.items, compare_aliases);
}

const char *engine_kernels_home_name(const engine_function *function) {
  return function->home_name ? function->home_name : engine_kernels_name(function->module, function->name);
}

const char *engine_kernels_name(engine_module *module, const char *name) {
  const char *own = module->text ? kernel_text_name(module->text, name) : NULL;
  if (own || !module->kernels_file || !module->parts.count) return own ? own : name;
  if (!module->aliases.count) make_aliases(module);
  const engine_alias wanted = {.hash = kernel_name_hash(name, strlen(name))};
  const engine_alias *found = NULL;
  if (module->aliases.count)
    found = bsearch(&wanted, module->aliases.items, module->aliases.count, sizeof wanted, compare_aliases);
  return found ? found->name : name;
}
