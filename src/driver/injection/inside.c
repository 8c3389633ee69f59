/* SPDX-License-Identifier: Apache-2.0 */
/* libfarfault-inside.so: the virtual GPU's runtime in the place of one that is linked into a program (nvcc's default),
 * or that a program finds by a way of its own; and PTX in the place of what NVRTC would give as machine code.
 *
 * Preloaded, it looks at every object that the program starts with. Where the symbol table says that a CUDA runtime is
 * inside, each of its functions gets a jump to the function of the same name in our libcudart of that version, before
 * the program's own constructors register their kernels; and again at whatever is loaded later (inside_open.c):
 *
 *   program: call cudaMalloc --> cudaMalloc, inside: jmp --> cudaMalloc of libcudart.so.13 in our folder
 *
 * What always holds: from then on nothing of the runtime inside is executed, so the program behaves as one that was
 * linked with the shared runtime. A function is changed only if 14 bytes from its start are its own and lie in a
 * segment of code; a process without a runtime inside is left as it is, and none of our other libraries are loaded into
 * it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "driver/injection/inside.h"
#include "fatbin/functions.h"

#define REGISTERS "__cudaRegisterFatBinary" /* in every CUDA runtime */
#define REGISTERS_ALL \
  "_ZL24__sti____cudaRegisterAllv" /* nvcc's constructor in each source file: it registers what is there */
#define REGISTERS_LINKED "__cudaRegisterLinkedBinary" /* ... with relocatable device code: counts its calls */
#define JUMP_BYTES 14u
#define MAX_SEGMENTS 8u /* with code, of one object; linkers make one */

/* What is compiled at run time for a machine is never read here: who asks for the machine code gets the PTX, which is
 * there too and which every load call takes. */
static const struct {
  const char *from, *to;
} nvrtc_names[] = {{"nvrtcGetCUBINSize", "nvrtcGetPTXSize"}, {"nvrtcGetCUBIN", "nvrtcGetPTX"}};

__attribute__((visibility("default"))) const int farfault_inside = 1; /* how libcuda finds out that this is loaded */

static void say(const char *what, const char *why) { fprintf(stderr, "farfault: %s: %s\n", what, why); }

/* ---- which version ---- */

typedef struct known_name {
  const char *name;
  int first, last;
} known_name;
static const known_name known_names[] = {
#define X(name, first, last) {#name, first, last},
#include "driver/runtime_api/stubs_cudart.def"
#undef X
};

static const known_name *find_known(const char *name) {
  for (size_t i = 0; i < sizeof known_names / sizeof *known_names; i++)
    if (strcmp(known_names[i].name, name) == 0) return &known_names[i];
  return NULL;
}

static bool is_wanted(const char *name) {
  if (strncmp(name, "nvrtcGet", 8) == 0) return true;
  if (strncmp(name, "cuda", 4) != 0 && strncmp(name, "__cuda", 6) != 0) return strcmp(name, REGISTERS_ALL) == 0;
  return strncmp(name, REGISTERS_LINKED, strlen(REGISTERS_LINKED)) == 0 || find_known(name);
}

static bool has(const fatbin_functions *functions, const char *prefix) {
  for (uint32_t i = 0; i < functions->count; i++)
    if (strncmp(functions->items[i].name, prefix, strlen(prefix)) == 0) return true;
  return false;
}

/* The major version that knows most of the names. 13 has no name that 12 has not: what nvcc 13 compiles calls
 * __cudaGetKernel, and only 12 has names that 13 has not. */
static int find_major(const fatbin_functions *functions) {
  unsigned votes[14] = {0};
  for (uint32_t i = 0; i < functions->count; i++) {
    const known_name *known = find_known(functions->items[i].name);
    for (int major = 11; known && major <= 13; major++) votes[major] += major >= known->first && major <= known->last;
  }
  if (votes[11] > votes[12] && votes[11] > votes[13]) return 11;
  return votes[13] >= votes[12] && has(functions, "__cudaGetKernel") ? 13 : 12;
}

/* ---- our libcudart ---- */

/* The one beside this library; NULL, and said: it cannot be loaded. */
static void *load_runtime(int major) {
  Dl_info own;
  ff_text path = {0};
  if (!dladdr(&farfault_inside, &own) || !strrchr(own.dli_fname, '/')) return NULL;
  ff_text_add(&path, "%.*s/libcudart.so.%s", (int)(strrchr(own.dli_fname, '/') - own.dli_fname), own.dli_fname,
              major == 11   ? "11.0"
              : major == 12 ? "12"
                            : "13");
  void *library = dlopen(path.chars, RTLD_NOW | RTLD_GLOBAL);
  if (!library) say("the virtual GPU's runtime cannot be loaded", dlerror());
  free(path.chars);
  return library;
}

/* ---- the jumps ---- */

typedef struct object { /* something that the loader has mapped */
  char *path;
  uint64_t base;
  struct {
    uint64_t start, end;
  } code[MAX_SEGMENTS]; /* its segments of code, as mapped */
  unsigned code_count;
  bool main;
} object;

static void write_jump(uint64_t at, const void *target) {
  unsigned char jump[JUMP_BYTES] = {0xff, 0x25, 0, 0, 0, 0}; /* jmp *0(%rip), and there the address */
  memcpy(jump + 6, &target, sizeof target);
  memcpy((void *)(uintptr_t)at, jump, sizeof jump);
}

/* Of the function inside; 0: it may not be changed. */
static uint64_t place_of(const object *in, const fatbin_function *function) {
  uint64_t at = in->base + function->address;
  for (unsigned i = 0; i < in->code_count && function->room >= JUMP_BYTES; i++)
    if (at >= in->code[i].start && at < in->code[i].end && in->code[i].end - at >= JUMP_BYTES) return at;
  return 0;
}

static bool set_writable(const object *in, bool writable) {
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  int rights = PROT_READ | (writable ? PROT_WRITE : PROT_EXEC), failed = 0;
  for (unsigned i = 0; i < in->code_count; i++) {
    uint64_t start = in->code[i].start & ~(page - 1);
    failed |= mprotect((void *)(uintptr_t)start, (size_t)(in->code[i].end - start), rights);
  }
  return !failed;
}

static uint64_t place_named(const object *in, const fatbin_functions *functions, const char *name) {
  for (uint32_t i = 0; i < functions->count; i++)
    if (strcmp(functions->items[i].name, name) == 0) return place_of(in, &functions->items[i]);
  return 0;
}

/* Where the function of this name inside leads from now on; NULL: it stays. `library`: our libcudart, or NULL. */
static const void *target_for(const object *in, const fatbin_functions *functions, const char *name, void *library) {
  for (size_t i = 0; i < sizeof nvrtc_names / sizeof *nvrtc_names; i++)
    if (strcmp(name, nvrtc_names[i].from) == 0)
      return (const void *)(uintptr_t)place_named(in, functions, nvrtc_names[i].to);
  return library && find_known(name) ? dlsym(library, name) : NULL;
}

/* False: nothing was changed. */
static bool replace(const object *in, const fatbin_functions *functions, void *library) {
  if (!set_writable(in, true)) {
    say(in->path, strerror(errno));
    set_writable(in, false);
    return false;
  }
  for (uint32_t i = 0; i < functions->count; i++) {
    const void *target = target_for(in, functions, functions->items[i].name, library);
    uint64_t at = place_of(in, &functions->items[i]);
    if (target && at) write_jump(at, target);
    else if (target) say(functions->items[i].name, "this function of the CUDA runtime inside cannot be replaced");
  }
  return set_writable(in, false);
}

/* A library's constructors have run before us: what they registered is registered again, now with ours. */
static void register_again(const object *in, const fatbin_functions *functions) {
  if (has(functions, REGISTERS_LINKED)) {
    say(in->path, "has the CUDA runtime and relocatable device code in it: link it with nvcc -cudart shared");
    return;
  }
  for (uint32_t i = 0; i < functions->count; i++) {
    uint64_t at = place_of(in, &functions->items[i]);
    if (!at || strcmp(functions->items[i].name, REGISTERS_ALL) != 0) continue;
    void (*again)(void);
    memcpy(&again, &at, sizeof again);
    again();
  }
}

static void take_over(const object *in) {
  fatbin_functions functions;
  if (in->code_count && fatbin_functions_find(in->path, is_wanted, &functions, NULL) == FF_OK) {
    void *library = has(&functions, REGISTERS) ? load_runtime(find_major(&functions)) : NULL;
    if (library || has(&functions, nvrtc_names[0].from))
      if (replace(in, &functions, library) && library && !in->main) register_again(in, &functions);
    fatbin_functions_free(&functions);
  }
}

/* ---- the objects ---- */

static struct { /* what has been looked at; changed only while the loader's lock or that of inside_look is held */
  FF_VEC(uint64_t) bases;
  unsigned long long loads; /* how many objects the loader had loaded by then */
} seen;

static bool see(uint64_t base) {
  for (size_t i = 0; i < seen.bases.count; i++)
    if (seen.bases.items[i] == base) return false;
  FF_PUSH(&seen.bases, base);
  return true;
}

typedef FF_VEC(object) object_list;

static int add_object(struct dl_phdr_info *info, size_t size, void *list) {
  object_list *objects = list;
  object made = {.base = info->dlpi_addr, .main = !info->dlpi_name[0]};
  if (info->dlpi_adds == seen.loads) return 1; /* nothing since the last time */
  if (!see(info->dlpi_addr)) return 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X) || made.code_count == MAX_SEGMENTS) continue;
    made.code[made.code_count].start = info->dlpi_addr + segment->p_vaddr;
    made.code[made.code_count++].end = info->dlpi_addr + segment->p_vaddr + segment->p_memsz;
  }
  made.path = ff_strdup(made.main ? "/proc/self/exe" : info->dlpi_name);
  FF_PUSH(objects, made);
  return 0;
}

static int count_loads(struct dl_phdr_info *info, size_t size, void *loads) {
  *(unsigned long long *)loads = info->dlpi_adds;
  return 1;
}

/* Is it one of ours: does it lie in this library's folder? */
static bool is_ours(const object *o) {
  Dl_info own;
  const char *slash = dladdr(&farfault_inside, &own) ? strrchr(own.dli_fname, '/') : NULL;
  size_t folder = slash ? (size_t)(slash - own.dli_fname) : 0;
  return slash && strncmp(o->path, own.dli_fname, folder + 1) == 0 && !strchr(o->path + folder + 1, '/');
}

void inside_look(void) {
  static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP; /* what we call may load libraries itself */
  object_list objects = {0};
  pthread_mutex_lock(&lock);
  dl_iterate_phdr(add_object, &objects);
  dl_iterate_phdr(count_loads, &seen.loads);
  for (size_t i = 0; i < objects.count; i++) {
    if (!is_ours(&objects.items[i])) take_over(&objects.items[i]);
    free(objects.items[i].path);
  }
  free(objects.items);
  pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void begin(void) { inside_look(); }
