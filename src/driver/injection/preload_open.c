/* SPDX-License-Identifier: Apache-2.0 */
/* dlopen, before that of the C library: for libraries that are loaded while the program runs (a plug-in, an extension
 * module of Python).
 *
 * The C library's dlopen looks up who called it, and searches where the caller's RUNPATH or RPATH says. Therefore
 * `dlopen` here is a few instructions that jump to the one or the other function with everything as it was: to the C
 * library's own where the caller may matter, else to one of ours that calls it and then looks at what is new. The file
 * that is found is the one that would have been found without us, but for libcuda and libcudart (preload.c). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>

#include "driver/injection/preload.h"

typedef void *open_function(const char *name, int mode);

static open_function *next_dlopen(void) {
  static open_function *next;
  if (!next) *(void **)&next = dlsym(RTLD_NEXT, "dlopen");
  return next;
}

static void *open_and_look(const char *name, int mode) {
  char path[PRELOAD_PATH_MAX];
  if (strchr(name, '/')) name = preload_choose(name, path);
  void *library = next_dlopen()(name, mode);
  if (library) preload_look();
  return library;
}

static bool has_own_path(const void *caller) {
  Dl_info info;
  struct link_map *map;
  if (!dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP)) return true;
  for (const ElfW(Dyn) *entry = map->l_ld; entry && entry->d_tag != DT_NULL; entry++)
    if (entry->d_tag == DT_RUNPATH || entry->d_tag == DT_RPATH) return true;
  return false;
}

/* A library of ours that loads one by its path means that one. */
static bool is_ours(const void *caller) {
  Dl_info own, other;
  if (!dladdr(next_dlopen, &own) || !dladdr(caller, &other)) return false;
  const char *end = strrchr(own.dli_fname, '/');
  return end && !strncmp(own.dli_fname, other.dli_fname, (size_t)(end - own.dli_fname) + 1);
}

/* `caller`: where dlopen was called. */
open_function *preload_choose_dlopen(const char *name, const void *caller);
__attribute__((used)) open_function *preload_choose_dlopen(const char *name, const void *caller) {
  bool searched = name && (strchr(name, '$') || (!strchr(name, '/') && has_own_path(caller)));
  return !name || searched || is_ours(caller) ? next_dlopen() : open_and_look;
}

__asm__(".text\n.globl dlopen\n.type dlopen, @function\n"
        "dlopen:\n"
        "  pushq %rdi\n"
        "  pushq %rsi\n"
        "  movq 16(%rsp), %rsi\n" /* the return address */
        "  subq $8, %rsp\n"       /* aligned to 16 */
        "  call preload_choose_dlopen\n"
        "  addq $8, %rsp\n"
        "  popq %rsi\n"
        "  popq %rdi\n"
        "  jmp *%rax\n"
        ".size dlopen, .-dlopen\n");
