/* SPDX-License-Identifier: Apache-2.0 */
/* The private tables, and the functions in their slots that are a few lines. A slot that is not served says so once,
 * with its name, and returns "not supported": it may be what a library that then fails has missed. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/forks.h"
#include "base/memory.h"
#include "driver/private_runtimes/private_runtimes.h"
#include "driver/properties.h"
#include "fatbin/fatbin.h"

enum { SLOTS_MAX = 100 }; /* of one table */
enum { ATTRIBUTE_PCI_BUS = 33, ATTRIBUTE_PCI_DEVICE = 34, ATTRIBUTE_PCI_DOMAIN = 50 };

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, const int *options, void **values, unsigned count,
                           const int *library_options, void **library_values, unsigned library_count);
CUresult cuCtxGetCurrent(CUcontext *context);
CUresult cuCtxGetId(CUcontext context, unsigned long long *id);
CUresult cuStreamGetId(CUstream stream, unsigned long long *id);

/* ---- which tables there are ---- */

typedef enum table_id {
#define TABLE(NAME, ...) TABLE_##NAME,
#define SLOT(...)
#include "driver/private_runtimes/private_tables.def"
#undef TABLE
#undef SLOT
  TABLE_COUNT
} table_id;

typedef struct table_info {
  const char *name;
  unsigned slots;
  bool sized;
  unsigned char id[16];
} table_info;

static const table_info infos[TABLE_COUNT] = {
#define TABLE(NAME, slots, sized, ...) {#NAME, slots, sized, {__VA_ARGS__}},
#define SLOT(...)
#include "driver/private_runtimes/private_tables.def"
#undef TABLE
#undef SLOT
};

/* One more than the slots: a table without a size ends with a null pointer. */
static const void *tables[TABLE_COUNT][SLOTS_MAX + 1];

/* ---- the mode ---- */

typedef enum private_mode { MODE_ON, MODE_OFF, MODE_TRACE } private_mode;

static private_mode mode(void) {
  const char *chosen = getenv("FARFAULT_PRIVATE_RUNTIMES");
  if (chosen && !strcmp(chosen, "off")) return MODE_OFF;
  return chosen && !strcmp(chosen, "trace") ? MODE_TRACE : MODE_ON;
}

bool private_runtimes_off(void) { return mode() == MODE_OFF; }

/* ---- RUNTIME ---- */

/* Runtimes of CUDA 11 load each fat binary once per context, and again after a reset, which ends a GPU's modules. Here
 * a module is there for all devices, and stays: they get the same one each time, as with a shared runtime. */
typedef struct loaded {
  const void *code;
  CUmodule module;
} loaded;
static FF_VEC(loaded) loads;
static pthread_mutex_t loads_lock = PTHREAD_MUTEX_INITIALIZER;
FF_FREE_IN_CHILD(loads_lock)

static CUresult load_once(CUmodule *module, const void *code) {
  for (size_t i = 0; i < loads.count; i++)
    if (loads.items[i].code == code) {
      *module = loads.items[i].module;
      return CUDA_SUCCESS;
    }
  LIBCUDA_TRY(cuLibraryLoadData(module, code, NULL, NULL, 0, NULL, NULL, 0));
  engine_module_set_library(*module, false); /* these runtimes unload it by either call */
  loaded new = {code, *module};
  FF_PUSH(&loads, new);
  return CUDA_SUCCESS;
}

static CUresult runtime_load(CUmodule *module, const void *code) {
  if (!module || !code) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&loads_lock);
  CUresult result = load_once(module, code);
  pthread_mutex_unlock(&loads_lock);
  return result;
}

void private_module_gone(CUmodule module) {
  pthread_mutex_lock(&loads_lock);
  for (size_t i = 0; i < loads.count; i++)
    if (loads.items[i].module == module) loads.items[i--] = loads.items[--loads.count];
  pthread_mutex_unlock(&loads_lock);
}

static CUresult runtime_load_header(const void *header, CUmodule *module) { return runtime_load(module, header); }

/* Before there is any context: the handle alone. */
static CUresult runtime_primary_context(CUcontext *context, CUdevice device) {
  LIBCUDA_TRY(libcuda_device(device));
  return context ? libcuda_primary(device, context) : CUDA_ERROR_INVALID_VALUE;
}

static void runtime_nothing(size_t value) { (void)value; }
static CUresult runtime_compilers(void) { return CUDA_SUCCESS; }

/* ---- HOOKS: where a profiler would mark the calls that it is to be told of ---- */

static void give_buffer(void **buffer, size_t *size, void *bytes, size_t wanted) {
  if (buffer) *buffer = bytes;
  if (size) *size = wanted;
}
static void hooks_first(void **buffer, size_t *size) {
  static char bytes[4096];
  give_buffer(buffer, size, bytes, 1024);
}
static void hooks_second(void **buffer, size_t *size) {
  static char bytes[4096];
  give_buffer(buffer, size, bytes, 14);
}

/* ---- contexts and streams ---- */

static CUresult current_context(CUcontext *context) { return cuCtxGetCurrent(context); }

/* What kind a context is: that of a green context is handed to the calls for those (the runtime of CUDA 13.5). */
enum { CONTEXT_PLAIN, CONTEXT_GREEN };
static CUresult checks_context(CUcontext context, uint32_t *kind, const void **other) {
  if (!kind) return CUDA_ERROR_INVALID_VALUE;
  bool green = context && libcuda_is_live(context) && libcuda_green_of(context);
  *kind = green ? CONTEXT_GREEN : CONTEXT_PLAIN;
  return CUDA_SUCCESS;
}
static uint32_t checks_zero(void) { return 0; }

static CUresult context_device(CUcontext context, CUdevice *device) {
  if (!context) context = libcuda_current();
  if (!context || !libcuda_is_live(context)) return CUDA_ERROR_INVALID_CONTEXT;
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  *device = libcuda_device_of(context);
  return CUDA_SUCCESS;
}

static CUresult context_number(CUcontext context, uint64_t *id) {
  unsigned long long number;
  LIBCUDA_TRY(cuCtxGetId(context, &number));
  if (!id) return CUDA_ERROR_INVALID_VALUE;
  *id = number;
  return CUDA_SUCCESS;
}

/* The "stream behind a handle" is the handle itself; NULL is one of the two default streams. */
static CUresult stream_behind(CUcontext context, CUstream stream, void **inner, int per_thread) {
  engine_stream_info info;
  CUstream behind = engine_stream_handle(stream, per_thread != 0);
  if (!inner) return CUDA_ERROR_INVALID_VALUE;
  if (engine_stream_describe(behind, &info)) return CUDA_ERROR_INVALID_HANDLE;
  *inner = behind;
  return CUDA_SUCCESS;
}

static CUresult stream_number(CUcontext context, void *inner, uint64_t *id) {
  unsigned long long number;
  LIBCUDA_TRY(cuStreamGetId(inner, &number));
  if (!id) return CUDA_ERROR_INVALID_VALUE;
  *id = number;
  return CUDA_SUCCESS;
}

/* ---- INTEGRITY ---- */

static int attribute_of(CUdevice device, int attribute) {
  int value = 0;
  properties_attribute(engine_machine(), device, attribute, &value);
  return value;
}

static CUresult private_integrity_answer(uint32_t version, uint64_t unix_seconds, uint64_t result[2]) {
  LIBCUDA_TRY(libcuda_device(0));
  if (!result) return CUDA_ERROR_INVALID_VALUE;
  private_device devices[ENGINE_DEVICES_MAX];
  uint32_t count = engine_devices();
  for (uint32_t i = 0; i < count; i++) {
    devices[i] = (private_device){.pci_domain = attribute_of((int)i, ATTRIBUTE_PCI_DOMAIN),
                                  .pci_bus = attribute_of((int)i, ATTRIBUTE_PCI_BUS),
                                  .pci_device = attribute_of((int)i, ATTRIBUTE_PCI_DEVICE)};
    properties_uuid(engine_machine(), (int)i, devices[i].uuid);
  }
  private_question question = {.driver_version = engine_driver_version(),
                               .version = version,
                               .process = (uint32_t)getpid(),
                               .thread = (uint32_t)(uintptr_t)pthread_self(),
                               .runtime_table = tables[TABLE_RUNTIME],
                               .integrity_table = tables[TABLE_INTEGRITY],
                               .integrity_function = tables[TABLE_INTEGRITY][1],
                               .unix_seconds = unix_seconds};
  private_integrity_compute(&question, devices, count, result);
  return CUDA_SUCCESS;
}

static CUresult integrity_switch(int on) { return CUDA_SUCCESS; }

/* ---- slots that are not served: each has a function of its own, so that it can name itself ---- */

static CUresult say_unknown(table_id table, unsigned slot) {
  char key[64];
  snprintf(key, sizeof key, "%s[%u]", infos[table].name, slot);
  engine_say_once(
      key,
      "a CUDA runtime that is not farfault's called %s of the driver's private functions, which the virtual "
      "GPU does not have; it was answered with 'not supported'",
      key);
  return CUDA_ERROR_NOT_SUPPORTED;
}

#define TEN(EACH, NAME, tens) \
  EACH(NAME, tens##0)         \
  EACH(NAME, tens##1)         \
  EACH(NAME, tens##2)         \
  EACH(NAME, tens##3)         \
  EACH(NAME, tens##4)         \
  EACH(NAME, tens##5) EACH(NAME, tens##6) EACH(NAME, tens##7) EACH(NAME, tens##8) EACH(NAME, tens##9)
#define HUNDRED(EACH, NAME) \
  TEN(EACH, NAME, )         \
  TEN(EACH, NAME, 1)        \
  TEN(EACH, NAME, 2)        \
  TEN(EACH, NAME, 3)        \
  TEN(EACH, NAME, 4) TEN(EACH, NAME, 5) TEN(EACH, NAME, 6) TEN(EACH, NAME, 7) TEN(EACH, NAME, 8) TEN(EACH, NAME, 9)

#define DEFINE(NAME, slot) \
  static CUresult unknown_##NAME##_##slot(void) { return say_unknown(TABLE_##NAME, slot); }
#define TABLE(NAME, ...) HUNDRED(DEFINE, NAME)
#define SLOT(...)
#include "driver/private_runtimes/private_tables.def"
#undef TABLE
#undef DEFINE

static CUresult (*const unknown[TABLE_COUNT][SLOTS_MAX])(void) = {
#define LIST(NAME, slot) unknown_##NAME##_##slot,
#define TABLE(NAME, ...) {HUNDRED(LIST, NAME)},
#include "driver/private_runtimes/private_tables.def"
#undef TABLE
#undef SLOT
#undef LIST
};

/* ---- the tables ---- */

static void fill_table(table_id table) {
  for (unsigned slot = 0; slot < infos[table].slots; slot++) tables[table][slot] = (const void *)unknown[table][slot];
  if (infos[table].sized) tables[table][0] = (const void *)(uintptr_t)(infos[table].slots * sizeof(void *));
}

static void fill_tables(void) {
  for (table_id table = 0; table < TABLE_COUNT; table++) fill_table(table);
#define TABLE(...)
#define SLOT(NAME, number, function) tables[TABLE_##NAME][number] = (const void *)function;
#include "driver/private_runtimes/private_tables.def"
#undef TABLE
#undef SLOT
}

static void trace(const CUuuid *id, const char *name) {
  char text[33];
  for (int i = 0; i < 16; i++) snprintf(text + 2 * i, 3, "%02x", (unsigned char)id->bytes[i]);
  engine_say("cuGetExportTable: %s: %s", text, name);
}

const void *private_table_find(const CUuuid *id, const void *caller) {
  static pthread_once_t filled = PTHREAD_ONCE_INIT;
  if (mode() == MODE_OFF) return NULL;
  pthread_once(&filled, fill_tables);
  table_id table = 0;
  while (table < TABLE_COUNT && memcmp(infos[table].id, id->bytes, sizeof id->bytes) != 0) table++;
  if (mode() == MODE_TRACE) trace(id, table < TABLE_COUNT ? infos[table].name : "not known");
  if (table == TABLE_COUNT) return NULL;
  private_runtime_note(caller);
  return tables[table];
}
