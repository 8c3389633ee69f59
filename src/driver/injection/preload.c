/* SPDX-License-Identifier: Apache-2.0 */
/* libfarfault-preload.so, which `farfault run` preloads: PTX in the place of what NVRTC gives as machine code, and our
 * libcuda and libcudart where a program would load NVIDIA's by their paths (Python's packages do).
 *
 *   program: call nvrtcGetCUBIN --> nvrtcGetCUBIN of NVRTC: jmp --> nvrtcGetPTX of NVRTC
 *
 * A process without such libraries is left as it is, and none of our other libraries are loaded into it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/forks.h"
#include "base/memory.h"
#include "driver/injection/preload.h"
#include "fatbin/needed.h"

#define JUMP_BYTES 14u

/* What is compiled at run time for a machine is never read here: a program that asks for the machine code gets the PTX,
 * which is there too and which every load call takes. */
static const struct {
  const char *from, *to;
} nvrtc_names[] = {{"nvrtcGetCUBINSize", "nvrtcGetPTXSize"}, {"nvrtcGetCUBIN", "nvrtcGetPTX"}};

static const char *file_name(const char *path) { return strrchr(path, '/') ? strrchr(path, '/') + 1 : path; }

/* ---- NVRTC ---- */

static bool set_rights(uintptr_t from, uintptr_t to, int rights) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  from &= ~(page - 1);
  return !mprotect((void *)from, to - from, rights);
}

/* jmp *0(%rip), and there the address */
static bool write_jump(void *at, const void *target) {
  unsigned char jump[JUMP_BYTES] = {0xff, 0x25, 0, 0, 0, 0};
  uintptr_t from = (uintptr_t)at, to = from + JUMP_BYTES;
  memcpy(jump + 6, &target, sizeof target);
  if (!set_rights(from, to, PROT_READ | PROT_WRITE | PROT_EXEC)) return false;
  memcpy(at, jump, sizeof jump);
  return set_rights(from, to, PROT_READ | PROT_EXEC);
}

/* Of the function that starts there, bytes; 0: the loader does not say. */
static size_t size_of(const void *function) {
  Dl_info info;
  const ElfW(Sym) *symbol = NULL;
  if (!dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT) || info.dli_saddr != function) return 0;
  return symbol ? symbol->st_size : 0;
}

static void lead_functions(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  for (size_t i = 0; library && i < sizeof nvrtc_names / sizeof *nvrtc_names; i++) {
    void *from = dlsym(library, nvrtc_names[i].from), *to = dlsym(library, nvrtc_names[i].to);
    if (!from || !to || size_of(from) < JUMP_BYTES || !write_jump(from, to))
      fprintf(stderr, "farfault: %s: %s cannot be led to %s: machine code that NVRTC makes cannot run\n", path,
              nvrtc_names[i].from, nvrtc_names[i].to);
  }
  if (library) dlclose(library);
}

typedef struct loaded {
  uint64_t base;
  char *path;
} loaded;

static struct {             /* changed only under the lock of preload_look */
  FF_VEC(uint64_t) bases;   /* of NVRTCs that were led */
  unsigned long long loads; /* how many objects the loader had loaded by then */
} seen;

static bool was_seen(uint64_t base) {
  size_t at = 0;
  while (at < seen.bases.count && seen.bases.items[at] != base) at++;
  return at < seen.bases.count;
}

typedef FF_VEC(loaded) loaded_list;

static int add_nvrtc(struct dl_phdr_info *info, size_t size, void *list) {
  loaded_list *found = list;
  if (info->dlpi_adds == seen.loads) return 1; /* nothing since the last time */
  bool nvrtc = !strncmp(file_name(info->dlpi_name), "libnvrtc", 8) && !strstr(info->dlpi_name, "builtins");
  if (!nvrtc || was_seen(info->dlpi_addr)) return 0;
  FF_PUSH(&seen.bases, info->dlpi_addr);
  loaded one = {info->dlpi_addr, ff_strdup(info->dlpi_name)};
  FF_PUSH(found, one);
  return 0;
}

static int count_loads(struct dl_phdr_info *info, size_t size, void *loads) {
  *(unsigned long long *)loads = info->dlpi_adds;
  return 1;
}

static pthread_mutex_t look = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP; /* what we call may load libraries itself */
FF_FREE_IN_CHILD_RECURSIVE(look)

/* Functions are led outside of the iteration, which holds the loader's lock. */
void preload_look(void) {
  loaded_list found = {0};
  pthread_mutex_lock(&look);
  dl_iterate_phdr(add_nvrtc, &found);
  dl_iterate_phdr(count_loads, &seen.loads);
  for (size_t i = 0; i < found.count; i++) {
    lead_functions(found.items[i].path);
    free(found.items[i].path);
  }
  free(found.items);
  pthread_mutex_unlock(&look);
}

__attribute__((constructor)) static void begin(void) { preload_look(); }

/* ---- our libraries in the place of NVIDIA's ---- */

static bool is_cuda(const char *name) {
  static const char *const names[] = {"libcuda.so.1",    "libcuda.so",         "libcudart.so.11.0",  "libcudart.so.12",
                                      "libcudart.so.13", "libnvJitLink.so.12", "libnvJitLink.so.13", "libcupti.so.12",
                                      "libcupti.so.13",  "libcufft.so.10",     "libcufft.so.11",     "libcufft.so.12",
                                      "libcufile.so.0"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!strcmp(name, names[i])) return true;
  return false;
}

/* The file of that name in this library's folder; false: there is none. */
static bool find_ours(const char *name, char path[PRELOAD_PATH_MAX]) {
  Dl_info own;
  if (!dladdr(nvrtc_names, &own)) return false;
  const char *file = !strcmp(name, "libcuda.so") ? "libcuda.so.1" : name;
  int length =
      snprintf(path, PRELOAD_PATH_MAX, "%.*s%s", (int)(file_name(own.dli_fname) - own.dli_fname), own.dli_fname, file);
  return length < PRELOAD_PATH_MAX && !access(path, R_OK);
}

/* Of a file's libraries ours are to be loaded by their paths, others are looked into. */
static bool note_ours(void *ours, const fatbin_report *file, const char *name) {
  char path[PRELOAD_PATH_MAX];
  (void)file;
  if (!is_cuda(name) || !find_ours(name, path)) return true;
  needed_files_add(ours, path);
  return false;
}

static pthread_mutex_t files_lock = PTHREAD_MUTEX_INITIALIZER; /* of the list of all threads */
FF_FREE_IN_CHILD(files_lock)

/* Adds all of `from` to `to`. */
static void add_files(needed_files *to, const needed_files *from) {
  pthread_mutex_lock(&files_lock);
  for (size_t i = 0; i < from->count; i++) needed_files_add(to, from->items[i]);
  pthread_mutex_unlock(&files_lock);
}

/* The loader takes a library that is there already for every file that needs one of that name, whatever RPATH says. It
 * stays for the life of the process, so what was looked at is left out; no lock is held while something is loaded. */
static void load_needed(const char *name) {
  static needed_files done;
  needed_files files = {0}, ours = {0};
  add_files(&files, &done);
  needed_walk(name, &files, note_ours, &ours);
  for (size_t i = 0; i < ours.count; i++) dlopen(ours.items[i], RTLD_NOW);
  add_files(&done, &files);
  needed_files_free(&files);
  needed_files_free(&ours);
}

const char *preload_choose(const char *name, char path[PRELOAD_PATH_MAX]) {
  int before = errno;
  const char *chosen = name;
  if (is_cuda(file_name(name)) && find_ours(file_name(name), path)) {
    chosen = path;
    if (!strncmp(file_name(name), "libnvJitLink", 12)) setenv("FARFAULT_NVJITLINK", name, 0); /* for the stand-in */
  } else load_needed(name);
  errno = before;
  return chosen;
}
