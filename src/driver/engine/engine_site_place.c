/* SPDX-License-Identifier: Apache-2.0 */
/* An address of the program's code as file:line, symbol+offset or object+offset (engine_site_place.h).
 *
 * Lines and symbols come from libbacktrace, which GCC brings; without it (FARFAULT_NO_BACKTRACE) symbols are those that
 * an object exports. Each object is read when the first address in it is asked for, and no other is. */
#define _GNU_SOURCE /* dladdr */
#include "driver/engine/engine_site_place.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef FARFAULT_NO_BACKTRACE
#include <backtrace.h>
#endif

#include "base/memory.h"
#include "driver/engine/engine_internal.h"
#include "driver/engine/engine_site.h"

static const char *file_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static bool starts(const char *text, const char *with) { return !strncmp(text, with, strlen(with)); }

static bool is_ours(const char *file) {
  return starts(file, "libfarfault") || starts(file, "libcudart.so") || starts(file, "libcuda.so") ||
         starts(file, "libnvJitLink.so") || starts(file, "libcufft.so") || starts(file, "libcufile.so");
}

/* The last part of a function's name as a person reads it: no result, no namespace, no template arguments, no
 * parameters. Its length; *begin is where it begins. */
static size_t plain_name(const char *name, const char **begin) {
  size_t end = strcspn(name, "<("), from = end;
  while (from && name[from - 1] != ':' && name[from - 1] != ' ') from--;
  *begin = name + from;
  return end - from;
}

static bool same_name(const char *one, const char *other) {
  char *a = engine_demangle(one), *b = engine_demangle(other);
  const char *x, *y;
  size_t length = plain_name(a, &x);
  bool same = length && length == plain_name(b, &y) && !memcmp(x, y, length);
  free(a);
  free(b);
  return same;
}

/* Functions between the program's own and the CUDA interface: a runtime's, inline ones of its headers, and the kernel's
 * stub. */
static bool is_passed(const char *function, const char *kernel) {
  if (strstr(function, "__device_stub_") || starts(function, "libcudart_static_")) return true;
  char *plain = engine_demangle(function);
  const char *name;
  size_t length = plain_name(plain, &name);
  bool runtime = (length > 4 && starts(name, "cuda") && name[4] >= 'A' && name[4] <= 'Z') ||
                 (length > 6 && starts(name, "__cuda"));
  free(plain);
  return runtime || (kernel && same_name(function, kernel));
}

static const char *keep(const char *text) {
  static FF_VEC(char *) kept;
  for (size_t n = 0; n < kept.count; n++)
    if (!strcmp(kept.items[n], text)) return kept.items[n];
  FF_PUSH(&kept, ff_strdup(text));
  return kept.items[kept.count - 1];
}

/* "name+0x12f3" or "name:41", the name cut where it would be longer than there is room for. */
static const char *site_text(const char *name, size_t length, const char *rest) {
  char text[ENGINE_SITE_BYTES];
  size_t room = sizeof text - 1 - strlen(rest);
  if (length > room) length = room;
  while (length && ((unsigned char)name[length] & 0xc0) == 0x80) length--; /* not within a character */
  snprintf(text, sizeof text, "%.*s%s", (int)length, name, rest);
  for (char *c = text; *c; c++)
    if ((unsigned char)*c < ' ') *c = '?';
  return keep(text);
}

typedef struct found {
  const char *kernel;
  const char *file; /* NULL: no line is known, or all are of functions that are passed */
  int line;
  bool lines;      /* some line is known */
  char *function;  /* by its symbol; of malloc */
  uintptr_t begin; /* of the function */
} found;

#ifndef FARFAULT_NO_BACKTRACE
static bool is_header(const char *file) {
  const char *name = file_name(file);
  return starts(name, "cuda_runtime") || starts(name, "crt1") || starts(name, "host_runtime.h") ||
         strstr(file, "/crt/") || strstr(file, ".cudafe1.stub.c");
}

static int add_line(void *to, uintptr_t address, const char *file, int line, const char *function) {
  (void)address;
  found *f = to;
  if (!file || line <= 0) return 0;
  f->lines = true;
  if (!function) function = f->function; /* line tables only, as -g1 of clang gives */
  if (is_header(file) || (function && is_passed(function, f->kernel))) return 0;
  f->file = file;
  f->line = line;
  return 1;
}

static void add_symbol(void *to, uintptr_t address, const char *name, uintptr_t begin, uintptr_t bytes) {
  (void)address;
  (void)bytes;
  found *f = to;
  if (!name || f->function) return;
  f->function = ff_strdup(name);
  f->begin = begin;
}

static void ignore(void *to, const char *message, int number) {
  (void)to;
  (void)message;
  (void)number;
}

/* What libbacktrace calls instead of dl_iterate_phdr (driver.cmake): it would read all of the process, which takes a
 * third of a second. It gets the object that has the address. */
static uintptr_t wanted;
typedef int object_function(struct dl_phdr_info *info, size_t size, void *context);
typedef struct object_call {
  object_function *function;
  void *context;
} object_call;
int site_iterate_objects(object_function *function, void *context);

static int pass_wanted(struct dl_phdr_info *info, size_t size, void *context) {
  const object_call *call = context;
  for (int n = 0; n < info->dlpi_phnum; n++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[n];
    if (part->p_type == PT_LOAD && wanted - (info->dlpi_addr + part->p_vaddr) < part->p_memsz)
      return call->function(info, size, call->context);
  }
  return 0;
}

int site_iterate_objects(object_function *function, void *context) {
  return dl_iterate_phdr(pass_wanted, &(object_call){function, context});
}

static void look_up(uintptr_t address, const void *object, found *f) {
  enum { OBJECTS = 32 }; /* of further ones only what they export is known */
  static struct {
    const void *object;
    struct backtrace_state *state;
  } objects[OBJECTS];
  int at = 0;
  while (at < OBJECTS && objects[at].object && objects[at].object != object) at++;
  if (at == OBJECTS) return;
  wanted = address;
  if (!objects[at].object) objects[at].state = backtrace_create_state(NULL, 1, ignore, NULL);
  objects[at].object = object;
  if (!objects[at].state) return;
  backtrace_syminfo(objects[at].state, address, add_symbol, ignore, f);
  backtrace_pcinfo(objects[at].state, address, add_line, ignore, f);
}
#else
static void look_up(uintptr_t address, const void *object, found *f) {
  (void)address;
  (void)object;
  (void)f;
}
#endif

const char *site_place(uintptr_t address, const char *kernel) {
  Dl_info info = {0};
  if (!dladdr((void *)address, &info) || !info.dli_fname) return NULL;
  const char *object = file_name(info.dli_fname), *site = NULL;
  if (is_ours(object)) return NULL;
  char rest[32];
  found f = {.kernel = kernel};
  look_up(address, info.dli_fbase, &f);
  if (!f.function && info.dli_sname) {
    f.function = ff_strdup(info.dli_sname);
    f.begin = (uintptr_t)info.dli_saddr;
  }
  if (f.file) {
    snprintf(rest, sizeof rest, ":%d", f.line);
    site = site_text(file_name(f.file), strlen(file_name(f.file)), rest);
  } else if (!f.lines && f.function && !is_passed(f.function, kernel)) {
    char *plain = engine_demangle(f.function);
    snprintf(rest, sizeof rest, "+0x%llx", (unsigned long long)(address - f.begin));
    site = site_text(plain, strcspn(plain, "("), rest);
    free(plain);
  } else if (!f.lines && !f.function) {
    snprintf(rest, sizeof rest, "+0x%llx", (unsigned long long)(address - (uintptr_t)info.dli_fbase));
    site = site_text(object, strcspn(object, "."), rest);
  }
  free(f.function);
  return site;
}
