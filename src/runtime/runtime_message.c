/* SPDX-License-Identifier: Apache-2.0 */
/* What went wrong, for ff_message(): one text per thread. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/gpu.h"

static _Thread_local char message[2048];

const char *ff_message(void) { return message; }

void runtime_restore_message(const char *text) { snprintf(message, sizeof message, "%s", text); }

ff_result runtime_fail(ff_result result, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  for (char *c = message; *c; c++)
    if (*c == '\n') *c = ' ';
  return result;
}

const char *ff_result_name(ff_result result) {
  static const char *const names[] = {"FF_SUCCESS",         "FF_ERROR_INVALID",   "FF_ERROR_NO_DRIVER",
                                      "FF_ERROR_DRIVER",    "FF_ERROR_NO_MEMORY", "FF_ERROR_TOO_LARGE",
                                      "FF_ERROR_NOT_FOUND", "FF_ERROR_CODE",      "FF_ERROR_IO",
                                      "FF_ERROR_BUSY",      "FF_ERROR_FAULT",     "FF_ERROR_LOST"};
  return (unsigned)result < sizeof names / sizeof *names ? names[result] : "unknown result";
}

uint32_t ff_library_version(void) { return FF_VERSION; }

/* Errors after which a context may be of no use: a kernel's faults, a lost or reset GPU. */
static bool may_be_lost(int result) {
  return (result >= 700 && result < 800) || result == 4 || result == 201 || result == 46 || result == 214 ||
         result == 220 || result == 999;
}

ff_result driver_failed(ff_gpu *gpu, int result, const char *call) {
  ff_error error;
  cuda_fail(gpu->driver, result, call, &error);
  if (!gpu->lost && may_be_lost(result) && gpu->driver->CtxSynchronize()) { /* nothing gets through any more */
    const char *fault = gpu->driver->fault ? gpu->driver->fault() : "";
    gpu->lost = true;
    gpu->fault = result >= 700;
    snprintf(gpu->lost_message, sizeof gpu->lost_message, "%.500s%s%.1500s", error.message, *fault ? ": " : "", fault);
  }
  if (gpu->lost) return runtime_fail(FF_ERROR_LOST, "%s", gpu->lost_message);
  return runtime_fail(error.status == FF_NO_MEMORY ? FF_ERROR_NO_MEMORY : FF_ERROR_DRIVER, "%s", error.message);
}
