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
#include <stdint.h>
#include <stdio.h>
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

/* ---- NVRTC, where a library looks for it in its own folders ---- */

/* "$ORIGIN/../lib" of the library that is loaded from `origin`, and the file in it. */
static bool expand(const char *origin, const char *folder, int length, const char *name, char path[PRELOAD_PATH_MAX]) {
  const char *end = strrchr(origin, '/');
  bool relative = length >= 7 && !strncmp(folder, "$ORIGIN", 7);
  if (relative && !end) return false;
  int skipped = relative ? 7 : 0,
      written = snprintf(path, PRELOAD_PATH_MAX, "%.*s%.*s/%s", relative ? (int)(end - origin) : 0, origin,
                         length - skipped, folder + skipped, name);
  return written < PRELOAD_PATH_MAX;
}

/* The list of folders in that library; NULL: none. */
static const char *own_folders(const struct link_map *map) {
  const char *strings = NULL;
  uint64_t at = 0;
  for (const ElfW(Dyn) *entry = map->l_ld; entry && entry->d_tag != DT_NULL; entry++) {
    if (entry->d_tag == DT_STRTAB) strings = (const char *)entry->d_un.d_ptr;
    if (entry->d_tag == DT_RUNPATH || (entry->d_tag == DT_RPATH && !at)) at = entry->d_un.d_val;
  }
  return strings && at ? strings + at : NULL;
}

/* What the C library's dlopen finds next is there by then, and its functions are led. */
static void look_in_own_folders(const char *name, const void *caller) {
  Dl_info info;
  struct link_map *map;
  char path[PRELOAD_PATH_MAX];
  if (!dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) || !map->l_name) return;
  const char *folders = own_folders(map);
  while (folders && *folders) {
    int length = (int)strcspn(folders, ":");
    bool known = expand(map->l_name, folders, length, name, path);
    if (known && next_dlopen()(path, RTLD_NOW)) return preload_look();
    folders += length + (folders[length] == ':');
  }
  if (next_dlopen()(name, RTLD_NOW)) preload_look();
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
  if (searched && !strncmp(name, "libnvrtc.so", 11)) look_in_own_folders(name, caller);
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
