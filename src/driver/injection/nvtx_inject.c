/* SPDX-License-Identifier: Apache-2.0 */
/* What NVTX calls of the library that NVTX_INJECTION64_PATH names: each of its copies in the process (the header makes
 * one per library that includes it) gives us its tables of functions, and has ours from then on. */
#include <stddef.h>
#include <stdint.h>

#include "driver/injection/nvtx.h"

enum { EXPORT_CALLBACKS = 1, MODULES = 8 };

typedef void (*nvtx_any)(void);
typedef struct export_callbacks { /* NvtxExportTableCallbacks */
  size_t size;
  /* an array of pointers to the variables that have the functions; its first is of none */
  int (*module_table)(int module, nvtx_any ***table, unsigned *size);
} export_callbacks;
typedef const void *(*get_export_table)(uint32_t table);

NVTX_SHOWN int InitializeInjectionNvtx2(get_export_table table);
NVTX_SHOWN int InitializeInjectionNvtx(get_export_table table);

int InitializeInjectionNvtx2(get_export_table table) {
  const export_callbacks *callbacks = table ? table(EXPORT_CALLBACKS) : NULL;
  if (!callbacks || callbacks->size < sizeof *callbacks || !callbacks->module_table) return 0;
  for (unsigned module = 1; module < MODULES; module++) {
    nvtx_any **functions;
    unsigned count = 0;
    if (!callbacks->module_table((int)module, &functions, &count)) continue;
    for (unsigned number = 1; number < count; number++) {
      nvtx_any ours = ff_nvtx_function(module, number);
      if (ours && functions[number]) *functions[number] = ours;
    }
  }
  return 1;
}

/* The name of NVTX 2. */
int InitializeInjectionNvtx(get_export_table table) { return InitializeInjectionNvtx2(table); }
