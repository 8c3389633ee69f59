/* SPDX-License-Identifier: Apache-2.0 */
/* The program's own call stack, in words: only frames that are not the virtual GPU's. */
#define _GNU_SOURCE /* dladdr */
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "check/finding_report.h"

void check_stack_take(check_stack *stack) {
  stack->count = backtrace(stack->frames, (int)(sizeof stack->frames / sizeof stack->frames[0]));
}

static const char *file_name(const char *path) {
  const char *slash = path ? strrchr(path, '/') : NULL;
  return slash ? slash + 1 : path ? path : "?";
}

static bool is_ours(const char *file) {
  return !strncmp(file, "libfarfault-gpu", 15) || !strncmp(file, "libcudart.so", 12) ||
         !strncmp(file, "libcuda.so", 10);
}

const char *check_stack_call(const check_stack *stack) {
  const char *call = NULL;
  for (int n = 0; n < stack->count; n++) {
    Dl_info info = {0};
    const ElfW(Sym) *symbol = NULL;
    const char *at = (char *)stack->frames[n] - 1;
    if (!dladdr1(at, &info, (void **)&symbol, RTLD_DL_SYMENT) || !is_ours(file_name(info.dli_fname))) {
      if (call) return call;
      continue;
    }
    bool inside = info.dli_sname && symbol && at < (const char *)info.dli_saddr + symbol->st_size;
    if (inside && !strncmp(info.dli_sname, "cu", 2)) call = info.dli_sname;
  }
  return call;
}

static void add_frame(const void *address, const Dl_info *info, char *(*demangle)(const char *), ff_text *out) {
  uint64_t at = (uintptr_t)address - 1, offset = at - (uintptr_t)info->dli_fbase;
  const char *name = info->dli_sname ? info->dli_sname : check_symbol(info->dli_fname, at, (uintptr_t)info->dli_fbase);
  char *plain = name && demangle ? demangle(name) : NULL;
  ff_text_add(out, "    Host Frame: %s [0x%llx] in %s\n",
              plain  ? plain
              : name ? name
                     : "?",
              (unsigned long long)offset, file_name(info->dli_fname));
  free(plain);
}

void check_stack_add(const check_stack *stack, const char *title, char *(*demangle)(const char *), ff_text *out) {
  bool any = false;
  for (int n = 0; n < stack->count; n++) {
    Dl_info info = {0};
    if (!dladdr((char *)stack->frames[n] - 1, &info)) continue;
    const char *file = file_name(info.dli_fname);
    if ((!any && is_ours(file)) || !strncmp(file, "libc.so", 7)) continue;
    if (!any) ff_text_add(out, "%s\n", title);
    any = true;
    add_frame(stack->frames[n], &info, demangle, out);
  }
}
