/* SPDX-License-Identifier: Apache-2.0 */
/* Modules: from what a program registers or loads to code that exec/ can run.
 *
 *   registered --engine_module_load_locked--> loaded on a device --engine_modules_reset--> registered
 *                     | no PTX, broken PTX
 *                     v
 *                   failed: the reason was said on stderr, every use returns the same error
 *
 * The code is read once; each device that uses it has variables of its own, but for managed ones, and kernels of its
 * own.
 *
 * A registered module is looked at when something of it is first used. One fat binary gives one PTX text; after a
 * device link there is one per translation unit, and those that are needed (engine_parts.c) are linked. The variables
 * of a loaded module are in memory, and the access stream has their allocations. Functions keep their identity (and
 * their attributes and kernel numbers) when the module loads again after a reset. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/engine/engine_internal.h"
#include "exec/launch/program_sharing.h"
#include "fatbin/fatbin.h"
#include "tile/tile.h"

extern const char engine_device_runtime_ptx[]; /* device_runtime.ptx */

/* ---- reading images ---- */

void engine_module_add_source(engine_module *module, engine_source source) {
  ff_text name = {0};
  ff_text_add(&name, "module %u of %s", module->number, program_invocation_short_name);
  if (module->sources.count) ff_text_add(&name, " (part %zu)", module->sources.count + 1);
  source.name = name.chars;
  FF_PUSH(&module->sources, source);
}

static void add_source(engine_module *module, char *text, size_t length, uint32_t max_registers) {
  engine_module_add_source(module, (engine_source){.text = text, .length = length, .max_registers = max_registers});
}

static uint32_t capability(void) {
  return (uint32_t)(ff_engine.machine->compute_major * 10 + ff_engine.machine->compute_minor);
}

/* nvcc's -maxrregcount, which the container keeps for the assembler: "...maxrregcount=96..." or with a blank. */
static uint32_t max_registers(const fatbin_entry *entry) {
  static const char option[] = "maxrregcount";
  uint32_t number = 0;
  if (!entry->options) return 0;
  const char *at = memmem(entry->options, entry->options_length, option, sizeof option - 1);
  const char *end = entry->options + entry->options_length;
  if (!at || (at += sizeof option - 1) == end || (*at != '=' && *at != ' ')) return 0;
  for (at++; at < end && *at >= '0' && *at <= '9' && number < 1000; at++) number = 10 * number + (uint32_t)(*at - '0');
  return number;
}

static ff_status take_tile(engine_module *module, const fatbin_entry *entry, ff_error *error) {
  char *bytecode;
  size_t size;
  ff_status status = fatbin_unpack(entry, &bytecode, &size, error);
  if (status) return status;
  status = engine_tile_add(module, bytecode, size, error);
  free(bytecode);
  return status;
}

/* Takes the PTX of one fat binary; any plain one will do, for a newer GPU too. nvcc puts kernels of tiles into a fat
 * binary of their own, which has none. FF_NOT_FOUND: it has neither. */
static ff_status take_image(engine_module *module, const fatbin *image, ff_error *error) {
  fatbin_note why;
  const fatbin_entry *entry = fatbin_best_ptx(image, capability(), &why);
  const fatbin_entry *tile = entry ? NULL : fatbin_best_tile(image, capability());
  if (tile) return take_tile(module, tile, error);
  if (!entry && why[0])
    return ff_fail(error, FF_NOT_FOUND,
                   "module %u of %s: %s, and code for an architecture with a letter runs on that one ('a') or on its "
                   "family ('f') alone: --machine names another GPU",
                   module->number, program_invocation_short_name, why);
  if (!entry)
    return ff_fail(error, FF_NOT_FOUND, "module %u of %s holds machine code only, no PTX", module->number,
                   program_invocation_short_name);
  char *text;
  size_t length;
  ff_status status = fatbin_ptx(entry, &text, &length, error);
  if (!status) add_source(module, text, length, max_registers(entry));
  return status;
}

/* Of a device link the first image is the linker's own output; the code is in the others. */
static ff_status take_set(engine_module *module, const fatbin_set *set, ff_error *error) {
  uint32_t first = set->relocatable && set->count > 1 ? 1 : 0;
  ff_status status = FF_OK;
  for (uint32_t i = first; i < set->count && !status; i++)
    if (set->images[i].entry_count || set->count == 1) status = take_image(module, &set->images[i], error);
  return status;
}

static bool has_ptx(const fatbin_set *set) {
  for (uint32_t i = 0; i < set->count; i++)
    for (uint32_t e = 0; e < set->images[i].entry_count; e++)
      if (set->images[i].entries[e].kind == FATBIN_KIND_PTX) return true;
  return false;
}

/* `word` has no byte of 0: a text that is shorter is not read behind its end. bytes is 0 where the caller gave none. */
static bool begins_with(const void *image, size_t bytes, const void *word) {
  return !(bytes && bytes < 4) && !strncmp(image, word, 4);
}

static bool looks_like_binary(const void *image, size_t bytes) {
  const uint32_t wrapper = FATBIN_WRAPPER_MAGIC, whole = FATBIN_MAGIC;
  return begins_with(image, bytes, &wrapper) || begins_with(image, bytes, &whole);
}

/* What NVIDIA's driver takes for PTX: white space, then `.version` or a comment. */
static bool looks_like_text(const char *text, size_t length) {
  size_t at = 0;
  while (at < length && isspace((unsigned char)text[at])) at++;
  const char *const begins[] = {".version", "//", "/*"};
  for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
    if (length - at >= strlen(begins[i]) && !memcmp(text + at, begins[i], strlen(begins[i]))) return true;
  return false;
}

/* FF_NOT_FOUND: there is no code in it that could run here; FF_UNSUPPORTED: its Tile IR is not translated; FF_PARSE: it
 * is broken. */
static ff_status read_image(engine_module *module, const void *image, size_t bytes, ff_error *error) {
  if (!looks_like_binary(image, bytes)) {
    if (begins_with(image, bytes, "\177ELF")) return engine_kernels_take(module, NULL, image, bytes, error);
    if (tile_is_bytecode(image, bytes)) return engine_tile_add(module, image, bytes, error);
    size_t length = bytes ? strnlen(image, bytes) : strlen(image);
    if (!looks_like_text(image, length))
      return ff_fail(
          error, FF_PARSE,
          "the image is no fat binary, no ELF file, no Tile IR and no PTX text, which begins with .version or a comment");
    char *text = ff_alloc(length + 1);
    memcpy(text, image, length);
    add_source(module, text, length, 0);
    module->sources.items[module->sources.count - 1].own_target = true;
    return FF_OK;
  }
  fatbin_set set;
  ff_status status = fatbin_open_registered(image, &set, error);
  if (status) return status == FF_UNSUPPORTED ? FF_PARSE : status; /* a format that is not known */
  status = take_set(module, &set, error);
  if (status == FF_NOT_FOUND && !module->sources.count && !has_ptx(&set))
    status = engine_kernels_take(module, &set, NULL, 0, error);
  fatbin_set_close(&set);
  return status;
}

/* ---- loading ---- */

/* A module that calls what NVIDIA's libcudadevrt has for cooperative grids gets ours. */
static ff_status add_device_runtime(engine_module *module, ff_error *error) {
  bool wanted = false, defined = false;
  for (size_t i = 0; i < module->parts.count; i++)
    for (uint32_t f = 0; f < module->parts.items[i]->func_count; f++) {
      const ptx_func *func = module->parts.items[i]->funcs[f];
      bool ours = !strncmp(func->name, "cudaCG", strlen("cudaCG"));
      wanted = wanted || ours;
      defined = defined || (ours && func->has_body);
    }
  if (!wanted || defined) return FF_OK;
  ptx_module *runtime;
  ff_status status = ptx_module_parse("the device runtime", engine_device_runtime_ptx,
                                      strlen(engine_device_runtime_ptx), &runtime, error);
  if (!status) FF_PUSH(&module->parts, runtime);
  return status;
}

static ff_status parse_and_link(engine_module *module, ff_error *error) {
  ff_status status = engine_parts_parse(module, error);
  if (!status) status = add_device_runtime(module, error);
  if (!status && module->parts.count > 1)
    status = ptx_link(module->parts.items, (uint32_t)module->parts.count, &module->linked, error);
  return status ? status : engine_bound_module(module, error);
}

const ptx_module *engine_module_code(const engine_module *module) {
  return module->linked ? module->linked : module->parts.items[0];
}

static bool in_memory(const ptx_var *variable) {
  return (variable->space == PTX_SPACE_GLOBAL || variable->space == PTX_SPACE_CONST) && variable->size &&
         variable->linkage != PTX_LINK_EXTERN;
}

static bool loaded_elsewhere(const engine_module *module, int device) {
  for (int d = 0; d < (int)ENGINE_DEVICES_MAX; d++)
    if (d != device && module->programs[d]) return true;
  return false;
}

/* Tells the access stream about every module variable (or, with `add` false, that it is gone): of managed ones, with
 * the first device (the last). */
static void note_variables(engine_module *module, int device, bool add) {
  const ptx_module *code = engine_module_code(module);
  for (uint32_t i = 0; i < code->var_count && !module->base; i++) { /* a part has none of its own */
    const ptx_var *variable = code->vars[i];
    uint64_t address, bytes;
    if (!in_memory(variable) || exec_program_variable(module->programs[device], variable->name, &address, &bytes, NULL))
      continue;
    if (variable->managed && loaded_elsewhere(module, device)) continue;
    const exec_allocation *allocation = exec_memory_find(ff_engine.memory, address);
    if (!allocation) continue;
    if (add)
      engine_note_allocation(device, allocation, cudaMemAttachGlobal, ENGINE_OWNER_MODULE, variable->name,
                             variable->managed ? TRACE_MEMORY_MANAGED : TRACE_MEMORY_DEVICE);
    else engine_forget_allocation(allocation);
  }
}

static void point_managed_variables(engine_module *module, int device) {
  for (engine_variable *v = module->variables; v; v = v->next) {
    uint64_t address, bytes;
    const char *name = engine_kernels_name(module, v->name);
    if (!v->host_pointer || exec_program_variable(module->programs[device], name, &address, &bytes, NULL)) continue;
    *v->host_pointer = (void *)(uintptr_t)address;
    module->managed_known = true;
  }
}

static void drop_text(engine_module *module) {
  if (module->linked) ptx_module_free(module->linked);
  for (size_t i = 0; i < module->parts.count; i++) ptx_module_free(module->parts.items[i]);
  free(module->parts.items);
  free(module->tile_parts.items);
  free(module->aliases.items);
  memset(&module->parts, 0, sizeof module->parts);
  memset(&module->tile_parts, 0, sizeof module->tile_parts);
  memset(&module->aliases, 0, sizeof module->aliases);
  ptx_persistent_free(module->bound);
  module->linked = NULL;
  module->bound = NULL;
  module->failed = false;
}

static exec_program *any_program(const engine_module *module) {
  for (uint32_t d = 0; d < ENGINE_DEVICES_MAX; d++)
    if (module->programs[d]) return module->programs[d];
  return NULL;
}

/* Of the module's functions, those whose code `home` has (a module has all of its own). */
static void forget_code(engine_module *module, const engine_module *home, int device) {
  for (engine_function *f = module->functions; f; f = f->next)
    if (home == module || f->home == home) f->on[device].code = NULL, f->on[device].marked = false;
}

static void drop_program(engine_module *module, int device) {
  exec_program *program = module->programs[device];
  if (!program) return;
  note_variables(module, device, false);
  forget_code(module, module, device);
  for (engine_module *m = module->base ? ff_engine.modules : NULL; m; m = m->next) forget_code(m, module, device);
  module->programs[device] = NULL;
  exec_program *other = any_program(module);
  if (other) exec_program_hand_over(program, other);
  exec_program_free(program);
  if (!other) drop_text(module);
}

static void drop_code(engine_module *module) {
  for (uint32_t d = 0; d < ENGINE_DEVICES_MAX; d++) drop_program(module, (int)d);
  drop_text(module);
}

/* *broken: the image is, not the code in it. */
static ff_status read_code(engine_module *module, bool *broken, ff_error *error) {
  ff_status status = FF_OK;
  *broken = false;
  if (module->parts.count) return FF_OK; /* another device has it */
  if (!module->sources.count && module->binary) {
    status = read_image(module, module->binary, 0, error);
    if (!status && engine_tile_has(module)) engine_tile_say(engine_module_owner(module));
  }
  *broken = status == FF_PARSE;
  if (!status && !module->sources.count)
    status = ff_fail(error, FF_NOT_FOUND, "module %u of %s is empty", module->number, program_invocation_short_name);
  return status ? status : parse_and_link(module, error);
}

int engine_module_device(const engine_module *module, int wanted) {
  return module->device == ENGINE_ANY_DEVICE ? wanted : module->device;
}

cudaError_t engine_module_load_locked(engine_module *module, int device, ff_error *error) {
  if (module->programs[device]) return cudaSuccess;
  if (module->failed) {
    ff_fail(error, FF_INVALID, "%s", module->unsaid ? module->unsaid : "the module could not be loaded before");
    return module->error;
  }
  if (module->base) {
    cudaError_t failed = engine_module_load_locked(module->base, device, error);
    if (failed) return failed;
  }
  bool broken;
  ff_status status = read_code(module, &broken, error);
  exec_program *made = NULL;
  if (!status && module->base)
    status = exec_program_create_part(engine_module_code(module), module->base->programs[device], &made, error);
  else if (!status)
    status =
        exec_program_create_sharing(engine_module_code(module), ff_engine.memory, any_program(module), &made, error);
  if (status && any_program(module)) return engine_status_error(status); /* there it goes on */
  if (status) {
    drop_code(module);
    module->failed = true;
    bool cannot_run = status == FF_NOT_FOUND || (status == FF_UNSUPPORTED && !module->sources.count);
    module->error = cannot_run ? cudaErrorNoKernelImageForDevice
                    : broken   ? cudaErrorInvalidKernelImage
                               : engine_status_error(status);
    return module->error;
  }
  module->programs[device] = made;
  note_variables(module, device, true);
  point_managed_variables(module, device);
  return cudaSuccess;
}

/* For calls that have no way to hand the message on. */
static cudaError_t load_or_say(engine_module *module, int device) {
  ff_error reason;
  bool say = !module->failed || module->unsaid;
  cudaError_t error = engine_module_load_locked(module, device, &reason);
  if (error && say) engine_say_once(reason.message, "%s", reason.message);
  free(module->unsaid);
  module->unsaid = NULL;
  return error;
}

/* ---- life of a module ---- */

static engine_module *make_module(const void *binary) {
  engine_module *module = ff_alloc(sizeof *module);
  module->binary = binary;
  module->device = ENGINE_ANY_DEVICE;
  module->number = ++ff_engine.next_module;
  module->before = ff_engine.last_module;
  *(module->before ? &module->before->next : &ff_engine.modules) = module;
  ff_engine.last_module = module;
  engine_handles_add(&ff_engine.handles, module, ENGINE_HANDLE_MODULE);
  return module;
}

engine_module *engine_module_part(engine_module *module, engine_source source) {
  engine_module *part = make_module(NULL);
  part->base = module;
  part->device = module->device;
  FF_PUSH(&part->sources, source);
  return part;
}

engine_module *engine_module_of_text(void) { return make_module(NULL); }

engine_module *engine_module_register(const void *binary) {
  pthread_mutex_lock(&ff_engine.lock); /* not engine_enter: nothing may start yet */
  engine_module *module = make_module(binary);
  pthread_mutex_unlock(&ff_engine.lock);
  return module;
}

static void free_module(engine_module *module);

static engine_module *first_part(const engine_module *module) {
  engine_module *part = ff_engine.modules;
  while (part && part->base != module) part = part->next;
  return part;
}

static void free_module(engine_module *module) {
  for (engine_module *part; module->text && (part = first_part(module));) free_module(part);
  drop_code(module);
  for (engine_function *f = module->functions, *next; f; f = next) {
    next = f->next;
    engine_handles_remove(&ff_engine.handles, f);
    free(f->name);
    free(f->title);
    free(f);
  }
  for (engine_variable *v = module->variables, *next; v; v = next) {
    next = v->next;
    engine_handles_remove(&ff_engine.handles, v);
    free(v->name);
    free(v);
  }
  for (size_t i = 0; i < module->sources.count; i++) {
    free(module->sources.items[i].name);
    free(module->sources.items[i].text);
  }
  free(module->sources.items);
  free(module->kernels_file);
  kernel_text_close(module->text);
  free(module->unsaid);
  *(module->before ? &module->before->next : &ff_engine.modules) = module->next;
  *(module->next ? &module->next->before : &ff_engine.last_module) = module->before;
  ff_map_free(&module->function_names);
  ff_map_free(&module->variable_names);
  engine_handles_remove(&ff_engine.handles, module);
  free(module);
}

cudaError_t engine_module_link(const void *const *images, const size_t *bytes, const char *const *names, uint32_t count,
                               uint32_t max_registers, engine_module **out, ff_error *reason) {
  cudaError_t error = engine_enter();
  if (error) {
    ff_fail(reason, FF_INVALID, "the virtual GPU is not available");
    return error;
  }
  engine_module *module = make_module(NULL);
  ff_status status = FF_OK;
  for (uint32_t i = 0; i < count && !status; i++) {
    size_t before = module->sources.count;
    status = read_image(module, images[i], bytes ? bytes[i] : 0, reason);
    if (!status && names && names[i] && module->sources.count > before) {
      free(module->sources.items[before].name);
      module->sources.items[before].name = ff_strdup(names[i]);
    }
  }
  for (size_t i = 0; i < module->sources.count; i++)
    if (!module->sources.items[i].max_registers) module->sources.items[i].max_registers = max_registers;
  bool cannot_run = status == FF_NOT_FOUND || status == FF_UNSUPPORTED;
  error = cannot_run ? cudaErrorNoKernelImageForDevice : status ? cudaErrorInvalidKernelImage : cudaSuccess;
  if (!error) error = engine_module_load_locked(module, engine_device_of(NULL), reason);
  if (error) free_module(module);
  else *out = module;
  engine_print_flush();
  engine_leave();
  return error;
}

cudaError_t engine_module_bind(engine_module *module) {
  cudaError_t error = engine_enter();
  if (error) return error;
  if (engine_handles_have(&ff_engine.handles, module, ENGINE_HANDLE_MODULE)) module->device = engine_device_of(NULL);
  else error = cudaErrorInvalidResourceHandle;
  engine_leave();
  return error;
}

static bool is_wrapper(const void *image, size_t bytes) {
  uint32_t magic;
  if (bytes && bytes < FATBIN_WRAPPER_BYTES) return false;
  memcpy(&magic, image, sizeof magic);
  return magic == FATBIN_WRAPPER_MAGIC;
}

/* A module whose every use fails, with the reason. */
static engine_module *make_unusable(cudaError_t error, const char *reason) {
  engine_module *module = engine_module_register(NULL);
  module->failed = true;
  module->error = error;
  module->unsaid = ff_strdup(reason);
  return module;
}

cudaError_t engine_library_load(const void *image, size_t bytes, engine_module **module, ff_error *reason) {
  if (is_wrapper(image, bytes)) {
    fatbin_set set;
    if (fatbin_open_registered(image, &set, reason)) return cudaErrorInvalidKernelImage;
    fatbin_set_close(&set);
    *module = engine_module_register(image);
    return cudaSuccess;
  }
  cudaError_t error = engine_module_load(image, bytes, module, reason);
  if (error != cudaErrorNoKernelImageForDevice) return error;
  *module = make_unusable(error, reason->message);
  return cudaSuccess;
}

void engine_module_keep_managed(engine_module *module) {
  pthread_mutex_lock(&ff_engine.lock);
  if (engine_handles_have(&ff_engine.handles, module, ENGINE_HANDLE_MODULE)) module->managed_known = true;
  pthread_mutex_unlock(&ff_engine.lock);
}

void engine_module_set_library(engine_module *module, bool library) {
  pthread_mutex_lock(&ff_engine.lock);
  if (engine_handles_have(&ff_engine.handles, module, ENGINE_HANDLE_MODULE)) module->library = library;
  pthread_mutex_unlock(&ff_engine.lock);
}

bool engine_module_is_library(const engine_module *module) {
  pthread_mutex_lock(&ff_engine.lock);
  bool is = engine_handles_have(&ff_engine.handles, module, ENGINE_HANDLE_MODULE) && module->library;
  pthread_mutex_unlock(&ff_engine.lock);
  return is;
}

cudaError_t engine_module_load(const void *image, size_t bytes, engine_module **module, ff_error *error) {
  return engine_module_link(&image, &bytes, NULL, 1, 0, module, error);
}

/* Also at the end of the process, when the engine may not have started, or be broken: it is not started for this, and
 * a finished one is left as it is. */
static bool is_at_work(const engine_module *module) {
  for (int d = 0; d < (int)ENGINE_DEVICES_MAX; d++)
    if (module->programs[d] && engine_deferred_is_active(d)) return true;
  return false;
}

/* Kernels of it that have given way, and launches of it that are queued, are over then, with all else of their devices.
 * Not those of a registered one: it goes when its library does, or the process, which stops its kernels; if some are
 * still at work, it stays. False: it is none, or none any more. */
static bool wait_for_kernels_of(engine_module *module) {
  for (int d = 0; d < (int)ENGINE_DEVICES_MAX; d++) {
    if (!engine_handles_have(&ff_engine.handles, module, ENGINE_HANDLE_MODULE)) return false;
    if (module->programs[d] && !module->binary) engine_deferred_wait_device(d);
  }
  return engine_handles_have(&ff_engine.handles, module, ENGINE_HANDLE_MODULE);
}

cudaError_t engine_module_unload(engine_module *module) {
  if (pthread_mutex_lock(&ff_engine.lock)) return cudaErrorCudartUnloading;
  cudaError_t error = cudaSuccess;
  if (ff_engine.phase == ENGINE_FINISHED) error = cudaErrorCudartUnloading;
  else if (!wait_for_kernels_of(module)) error = cudaErrorInvalidResourceHandle;
  else if (!is_at_work(module)) {
    if (!module->binary) engine_print_flush(); /* cuModuleUnload does that; the end of the process does not */
    free_module(module);
  }
  engine_leave();
  return error;
}

/* Where the calling thread uses it. */
static int module_place(const engine_module *module) { return engine_module_device(module, engine_device_of(NULL)); }

bool engine_module_valid(const engine_module *module) {
  pthread_mutex_lock(&ff_engine.lock);
  bool valid = engine_handles_have(&ff_engine.handles, module, ENGINE_HANDLE_MODULE);
  pthread_mutex_unlock(&ff_engine.lock);
  return valid;
}

cudaError_t engine_module_ready(engine_module *module) {
  cudaError_t error = engine_enter_apart();
  if (error) return error;
  error = engine_handles_have(&ff_engine.handles, module, ENGINE_HANDLE_MODULE)
              ? load_or_say(module, module_place(module))
              : cudaErrorInvalidResourceHandle;
  engine_leave();
  return error;
}

/* The program was told where a managed variable is, and is not told again: the variables stay where they are. Where
 * another device has the module as well, that one keeps the managed variables, with their values. */
static void restart_program(engine_module *module, int device) {
  note_variables(module, device, false);
  exec_program_restart(module->programs[device]);
  note_variables(module, device, true);
}

void engine_modules_reset(int device) {
  for (engine_module *module = ff_engine.modules; module; module = module->next) {
    bool last = module->programs[device] && !loaded_elsewhere(module, device);
    if (last && module->managed_known) restart_program(module, device);
    else drop_program(module, device);
  }
}

static void trace_text(const engine_module *module, const char *text, size_t length) {
  trace_op op = {.kind = TRACE_OP_MODULE,
                 .module = {.ptx = trace_keep(ff_engine.trace, text, length), .bytes = length, .id = module->number}};
  engine_append(&op);
}

void engine_module_trace(engine_module *module) {
  if (module->traced || !ff_engine.trace) return;
  module->traced = true;
  if (module->bound) trace_text(module, module->bound->text.chars, module->bound->text.length);
  for (size_t i = 0; i < module->sources.count && !module->bound; i++)
    trace_text(module, module->sources.items[i].text, module->sources.items[i].length);
}

/* ---- functions ---- */

/* A library that is found once stays loaded; what the program has itself may go. NULL: there is none. */
static void *demangler_symbol(void) {
  static _Atomic(void *) library;
  void *symbol = dlsym(RTLD_DEFAULT, "__cxa_demangle");
  if (symbol) return symbol;
  if (!library) library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
  return library ? dlsym(library, "__cxa_demangle") : NULL;
}

/* The C++ name a person reads. The demangler belongs to the program's C++ library; without one the name stays. It is
 * only asked of mangled names: loading the library takes longer than many a kernel, and it would make `int` of one that
 * is called `i`. */
char *engine_demangle(const char *name) {
  if (strncmp(name, "_Z", 2)) return ff_strdup(name);
  char *(*demangler)(const char *, char *, size_t *, int *) = NULL;
  void *symbol = demangler_symbol();
  memcpy(&demangler, &symbol, sizeof demangler);
  int status = -1;
  char *text = demangler ? demangler(name, NULL, NULL, &status) : NULL;
  return text && status == 0 ? text : ff_strdup(name);
}

/* Names of templates may be longer than messages. */
static void add_readable(ff_text *text, const char *name, size_t length) {
  enum { LONGEST = 300 };
  ff_text mangled = {0};
  ff_text_add(&mangled, "%.*s", (int)length, name);
  char *plain = engine_demangle(mangled.chars);
  ff_text_add(text, "%.*s%s", LONGEST, plain, strlen(plain) > LONGEST ? "..." : "");
  free(plain);
  free(mangled.chars);
}

static bool follows(const char *message, const char *at, const char *word) {
  size_t length = strlen(word);
  return (size_t)(at - message) >= length && !memcmp(at - length, word, length);
}

void engine_name_functions(char *message, size_t size) {
  ff_text text = {0};
  const char *at = message, *space;
  while ((space = strstr(at, " _Z"))) {
    const char *name = space + 1;
    size_t length = strcspn(name, " ,:\n");
    ff_text_add_bytes(&text, at, (size_t)(name - at));
    if (follows(message, name, "kernel ") || follows(message, name, "function ")) add_readable(&text, name, length);
    else ff_text_add_bytes(&text, name, length);
    at = name + length;
  }
  ff_text_add(&text, "%s", at);
  snprintf(message, size, "%s", text.chars);
  free(text.chars);
}

static engine_function *make_function(engine_module *module, const char *name) {
  engine_function *function = ff_map_get(&module->function_names, name);
  if (function) return function;
  function = ff_alloc(sizeof *function);
  *function = (engine_function){.name = ff_strdup(name), .module = module, .next = module->functions};
  for (uint32_t d = 0; d < ENGINE_DEVICES_MAX; d++) function->on[d].dynamic_shared = function->on[d].carveout = -1;
  module->functions = function;
  ff_map_set(&module->function_names, function->name, function);
  engine_handles_add(&ff_engine.handles, function, ENGINE_HANDLE_FUNCTION);
  return function;
}

engine_function *engine_function_declare(engine_module *module, const char *name) {
  pthread_mutex_lock(&ff_engine.lock);
  bool valid = engine_handles_have(&ff_engine.handles, module, ENGINE_HANDLE_MODULE);
  engine_function *function = valid ? make_function(module, name) : NULL;
  pthread_mutex_unlock(&ff_engine.lock);
  return function;
}

cudaError_t engine_function_find(engine_module *module, const char *name, engine_function **out) {
  if (!name || !out) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter_apart();
  if (error) return error;
  if (!engine_handles_have(&ff_engine.handles, module, ENGINE_HANDLE_MODULE)) error = cudaErrorInvalidResourceHandle;
  if (!error) error = load_or_say(module, module_place(module));
  engine_function *found = error ? NULL : engine_function_of_locked(module, name);
  if (found) *out = found;
  else if (!error) error = cudaErrorSymbolNotFound;
  if (error == cudaErrorSymbolNotFound && module->kernels_file) engine_kernels_lacks(module, name);
  if (error == cudaErrorNoKernelImageForDevice) engine_kernels_no_text(module, name);
  engine_leave();
  return error;
}

engine_function *engine_function_of_locked(engine_module *module, const char *name) {
  if (module->text && kernel_text_name(module->text, name)) return make_function(module, name);
  const ptx_func *found = ptx_find_func(engine_module_code(module), engine_kernels_name(module, name));
  if (!found && engine_kernels_elsewhere(module, name)) return make_function(module, name);
  return found && found->entry && found->has_body ? make_function(module, name) : NULL;
}

bool engine_function_valid(const engine_function *function) {
  pthread_mutex_lock(&ff_engine.lock);
  bool valid = engine_handles_have(&ff_engine.handles, function, ENGINE_HANDLE_FUNCTION);
  pthread_mutex_unlock(&ff_engine.lock);
  return valid;
}

const char *engine_function_name(const engine_function *function) { return function->name; }

const ptx_func *engine_function_code(const engine_function *function) {
  return ptx_find_func(engine_module_code(function->home), engine_kernels_home_name(function));
}

/* For how many threads of an SM the compiler must leave registers; 0: it was not told. */
static uint32_t promised_threads(const ptx_func *code) {
  const uint32_t *given = code && code->reqntid[0] ? code->reqntid : code ? code->maxntid : NULL;
  if (!given || !given[0]) return 0;
  uint64_t threads = code->minnctapersm ? code->minnctapersm : 1;
  for (int i = 0; i < 3; i++) threads *= given[i] ? given[i] : 1;
  return threads < UINT32_MAX ? (uint32_t)threads : UINT32_MAX;
}

cudaError_t engine_function_load_locked(engine_function *function, int device) {
  if (function->on[device].code) return cudaSuccess;
  cudaError_t error = load_or_say(function->module, device);
  if (error == cudaErrorNoKernelImageForDevice) engine_kernels_fault(function, device);
  if (error) return error;
  ff_error reason;
  ff_status status = engine_kernels_home(function, &reason);
  if (!status && (error = load_or_say(function->home, device))) return error;
  if (!status)
    status = exec_program_kernel(function->home->programs[device], engine_kernels_home_name(function),
                                 &function->on[device].code, &reason);
  if (status == FF_NOT_FOUND && function->module->kernels_file) {
    engine_kernels_lacks(function->module, function->name);
    engine_kernels_fault(function, device);
    return cudaErrorNoKernelImageForDevice;
  }
  if (status == FF_NOT_FOUND) return cudaErrorInvalidDeviceFunction;
  if (status) {
    engine_say_once(function->name, "%s", reason.message);
    return engine_status_error(status);
  }
  function->on[device].promised = promised_threads(engine_function_code(function));
  function->tile = engine_tile_kernel(function->home, engine_kernels_home_name(function));
  if (!function->index) function->index = ++ff_engine.next_kernel;
  if (!function->title) function->title = engine_demangle(function->name);
  return cudaSuccess;
}

/* ---- variables ---- */

static engine_variable *make_variable(engine_module *module, const char *name, size_t bytes) {
  engine_variable *variable = ff_map_get(&module->variable_names, name);
  if (variable) return variable;
  variable = ff_alloc(sizeof *variable);
  *variable = (engine_variable){.name = ff_strdup(name), .module = module, .bytes = bytes, .next = module->variables};
  module->variables = variable;
  ff_map_set(&module->variable_names, variable->name, variable);
  engine_handles_add(&ff_engine.handles, variable, ENGINE_HANDLE_VARIABLE);
  return variable;
}

engine_variable *engine_variable_declare(engine_module *module, const char *name, size_t bytes) {
  pthread_mutex_lock(&ff_engine.lock);
  bool valid = engine_handles_have(&ff_engine.handles, module, ENGINE_HANDLE_MODULE);
  engine_variable *variable = valid ? make_variable(module, name, bytes) : NULL;
  pthread_mutex_unlock(&ff_engine.lock);
  return variable;
}

void engine_variable_manage(engine_variable *variable, void **host_pointer) { variable->host_pointer = host_pointer; }

engine_variable *engine_variable_managed(const void *address) {
  engine_variable *found = NULL;
  if (!address || pthread_mutex_lock(&ff_engine.lock)) return NULL;
  for (engine_module *module = ff_engine.modules; module && !found; module = module->next)
    for (engine_variable *v = module->variables; v && !found; v = v->next)
      if (v->host_pointer && *v->host_pointer == address) found = v;
  pthread_mutex_unlock(&ff_engine.lock);
  return found;
}

static cudaError_t address_locked(engine_variable *variable, bool expose, uint64_t *address, uint64_t *bytes) {
  int device = module_place(variable->module);
  cudaError_t error = load_or_say(variable->module, device);
  if (error) return error;
  exec_program *program = variable->module->programs[device];
  const char *name = engine_kernels_name(variable->module, variable->name);
  if (exec_program_variable(program, name, address, bytes, NULL)) return cudaErrorInvalidSymbol;
  if (variable->bytes && variable->bytes < *bytes) *bytes = variable->bytes;
  if (expose) exec_program_expose(program, name);
  return cudaSuccess;
}

/* Under one lock: between two, another thread may unload the module or reset the device. */
static cudaError_t find_address(engine_variable *variable, bool expose, uint64_t *address, uint64_t *bytes) {
  cudaError_t error = engine_enter_apart();
  if (error) return error;
  bool valid = engine_handles_have(&ff_engine.handles, variable, ENGINE_HANDLE_VARIABLE);
  error = valid ? address_locked(variable, expose, address, bytes) : cudaErrorInvalidSymbol;
  engine_leave();
  return error;
}

cudaError_t engine_variable_address(engine_variable *variable, uint64_t *address, uint64_t *bytes) {
  return find_address(variable, false, address, bytes);
}

cudaError_t engine_variable_expose(engine_variable *variable, uint64_t *address, uint64_t *bytes) {
  return find_address(variable, true, address, bytes);
}

cudaError_t engine_variable_find(engine_module *module, const char *name, engine_variable **out) {
  if (!name || !out) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter_apart();
  if (error) return error;
  if (!engine_handles_have(&ff_engine.handles, module, ENGINE_HANDLE_MODULE)) error = cudaErrorInvalidResourceHandle;
  if (!error) error = load_or_say(module, module_place(module));
  if (!error) {
    uint64_t address, bytes;
    const char *own = engine_kernels_name(module, name);
    bool found = exec_program_variable(module->programs[module_place(module)], own, &address, &bytes, NULL) == FF_OK;
    if (found) *out = make_variable(module, name, 0);
    else error = cudaErrorSymbolNotFound;
  }
  engine_leave();
  return error;
}
