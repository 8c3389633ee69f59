/* SPDX-License-Identifier: Apache-2.0 */
/* libnvJitLink.so.12 and .13: a stand-in for NVIDIA's linker of code that is made at run time (nvJitLink's manual).
 * NVIDIA's makes machine code, which the virtual GPU cannot run; this one keeps the PTX that it is given, as an image
 * that libcuda's load calls take (linked_image.h). Link-time intermediate code (LTO-IR) is handed to NVIDIA's library,
 * where the program has one, which makes PTX of it: preload.c tells the path by which a program loads it; of one that
 * is linked with it, it is in a folder of LD_LIBRARY_PATH, behind ours.
 *
 * Numba, CuPy and cuda.core link by it. Messages are in the link's error log, where programs look for them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/text.h"
#include "driver/linked_image.h"
#include "driver/linked_object.h"
#include "fatbin/fatbin.h"

#ifndef NVJITLINK_MAJOR
#define NVJITLINK_MAJOR 13
#endif
#define VERSION_MINOR 0
#define TEXT_OF(number) #number
#define NAME_OF(major) "libnvJitLink.so." TEXT_OF(major)
#define LIBRARY_NAME NAME_OF(NVJITLINK_MAJOR)
#define EXPORT __attribute__((visibility("default")))

typedef enum nvJitLinkResult {
  NVJITLINK_SUCCESS = 0,
  NVJITLINK_ERROR_INVALID_INPUT = 3,
  NVJITLINK_ERROR_NVVM_COMPILE = 5,
  NVJITLINK_ERROR_UNRECOGNIZED_INPUT = 8,
  NVJITLINK_ERROR_NULL_INPUT = 10,
} nvJitLinkResult;

typedef enum nvJitLinkInputType { /* nvJitLink.h's numbers */
                                  INPUT_CUBIN = 1,
                                  INPUT_PTX,
                                  INPUT_LTOIR,
                                  INPUT_FATBIN,
                                  INPUT_OBJECT,
                                  INPUT_LIBRARY,
                                  INPUT_INDEX,
                                  INPUT_ANY = 10
} nvJitLinkInputType;

typedef FF_VEC(link_part) part_list;

typedef struct nvJitLink {
  part_list parts; /* PTX and fat binaries */
  part_list ltoir;
  FF_VEC(char *) options;
  ff_text image; /* after nvJitLinkComplete */
  bool text;     /* it is of one PTX text, which is */
  ff_text ptx;   /* with its NUL */
  ff_text log;   /* errors */
} * nvJitLinkHandle;

static nvJitLinkResult fail(nvJitLinkHandle link, nvJitLinkResult result, const char *what, const char *name) {
  ff_text_add(&link->log, "%sfarfault: %s: %s", link->log.length ? "\n" : "", name, what);
  return result;
}

/* ---- making ---- */

EXPORT nvJitLinkResult nvJitLinkCreate(nvJitLinkHandle *handle, uint32_t count, const char **options);
nvJitLinkResult nvJitLinkCreate(nvJitLinkHandle *handle, uint32_t count, const char **options) {
  if (!handle || (count && !options)) return NVJITLINK_ERROR_NULL_INPUT;
  nvJitLinkHandle link = ff_alloc(sizeof *link);
  for (uint32_t i = 0; i < count; i++) FF_PUSH(&link->options, ff_strdup(options[i]));
  *handle = link;
  return NVJITLINK_SUCCESS;
}

static void free_parts(part_list *parts) {
  for (size_t i = 0; i < parts->count; i++) {
    free(parts->items[i].bytes);
    free(parts->items[i].name);
  }
  free(parts->items);
}

EXPORT nvJitLinkResult nvJitLinkDestroy(nvJitLinkHandle *handle);
nvJitLinkResult nvJitLinkDestroy(nvJitLinkHandle *handle) {
  if (!handle || !*handle) return NVJITLINK_ERROR_NULL_INPUT;
  nvJitLinkHandle link = *handle;
  free_parts(&link->parts);
  free_parts(&link->ltoir);
  for (size_t i = 0; i < link->options.count; i++) free(link->options.items[i]);
  free(link->options.items);
  free(link->image.chars);
  free(link->ptx.chars);
  free(link->log.chars);
  free(link);
  *handle = NULL;
  return NVJITLINK_SUCCESS;
}

/* ---- adding ---- */

static bool starts_with(const void *data, size_t size, const char *start, size_t length) {
  return size >= length && !memcmp(data, start, length);
}

static bool is_fatbin(const void *data, size_t size) {
  uint32_t magic = 0;
  if (size >= sizeof magic) memcpy(&magic, data, sizeof magic);
  return magic == FATBIN_MAGIC;
}

/* What it is, by its first bytes: what NVRTC gives as machine code is PTX here, and Numba says "any". */
static nvJitLinkInputType find_type(nvJitLinkInputType given, const void *data, size_t size) {
  if (is_fatbin(data, size)) return INPUT_FATBIN;
  if (given == INPUT_LTOIR) return given;
  if (linked_object_is_archive(data, size)) return INPUT_LIBRARY;
  if (starts_with(data, size, "\177ELF", 4)) return INPUT_OBJECT;
  bool text = size && (((const char *)data)[0] == '/' || ((const char *)data)[0] == '.' ||
                       strchr(" \t\r\n", ((const char *)data)[0]));
  if (text) return INPUT_PTX;
  return given == INPUT_ANY ? INPUT_LTOIR : given;
}

static void keep(part_list *parts, const void *data, size_t size, const char *name) {
  link_part part = {.bytes = ff_alloc(size + 1), .size = size, .name = ff_strdup(name)};
  memcpy(part.bytes, data, size);
  FF_PUSH(parts, part);
}

typedef struct named_link {
  nvJitLinkHandle link;
  const char *name;
} named_link;

static void keep_image(void *to, const void *image, size_t size) {
  named_link *named = to;
  keep(&named->link->parts, image, size, named->name);
}

static size_t room(const nvJitLinkHandle link) { return LINKED_PARTS_MAX - link->parts.count - link->ltoir.count; }

static nvJitLinkResult keep_images(nvJitLinkHandle link, const void *data, size_t size, const char *name) {
  named_link named = {link, name};
  switch (linked_object_add(data, size, room(link), keep_image, &named)) {
  case LINKED_OBJECT_ADDED: return NVJITLINK_SUCCESS;
  case LINKED_OBJECT_MANY: return fail(link, NVJITLINK_ERROR_INVALID_INPUT, "too many inputs", name);
  default:
    return fail(link, NVJITLINK_ERROR_INVALID_INPUT,
                linked_object_is_archive(data, size)
                    ? "has an object of machine code only, which the virtual GPU cannot run"
                    : "is machine code, which the virtual GPU cannot run",
                name);
  }
}

EXPORT nvJitLinkResult nvJitLinkAddData(nvJitLinkHandle link, nvJitLinkInputType type, const void *data, size_t size,
                                        const char *name);
nvJitLinkResult nvJitLinkAddData(nvJitLinkHandle link, nvJitLinkInputType type, const void *data, size_t size,
                                 const char *name) {
  if (!link || !data || !size) return NVJITLINK_ERROR_NULL_INPUT;
  if (!name) name = "(no name)";
  if (!room(link)) return fail(link, NVJITLINK_ERROR_INVALID_INPUT, "too many inputs", name);
  switch (find_type(type, data, size)) {
  case INPUT_PTX: keep(&link->parts, data, strnlen(data, size), name); return NVJITLINK_SUCCESS;
  case INPUT_FATBIN: keep(&link->parts, data, size, name); return NVJITLINK_SUCCESS;
  case INPUT_LTOIR: keep(&link->ltoir, data, size, name); return NVJITLINK_SUCCESS;
  case INPUT_OBJECT:
  case INPUT_LIBRARY: return keep_images(link, data, size, name);
  case INPUT_INDEX: return NVJITLINK_SUCCESS; /* of a library */
  default: return fail(link, NVJITLINK_ERROR_INVALID_INPUT, "is machine code, which the virtual GPU cannot run", name);
  }
}

EXPORT nvJitLinkResult nvJitLinkAddFile(nvJitLinkHandle link, nvJitLinkInputType type, const char *path);
nvJitLinkResult nvJitLinkAddFile(nvJitLinkHandle link, nvJitLinkInputType type, const char *path) {
  char *data;
  size_t size;
  ff_error error;
  if (!link || !path) return NVJITLINK_ERROR_NULL_INPUT;
  if (ff_file_read(path, 0, &data, &size, &error))
    return fail(link, NVJITLINK_ERROR_INVALID_INPUT, error.message, path);
  nvJitLinkResult result = nvJitLinkAddData(link, type, data, size, path);
  free(data);
  return result;
}

/* ---- LTO-IR, by NVIDIA's library ---- */

typedef struct real_calls {
  nvJitLinkResult (*create)(void **, uint32_t, const char **);
  nvJitLinkResult (*destroy)(void **);
  nvJitLinkResult (*add)(void *, nvJitLinkInputType, const void *, size_t, const char *);
  nvJitLinkResult (*complete)(void *);
  nvJitLinkResult (*ptx_size)(void *, size_t *);
  nvJitLinkResult (*ptx)(void *, char *);
  nvJitLinkResult (*log_size)(void *, size_t *);
  nvJitLinkResult (*log)(void *, char *);
} real_calls;

/* Is there a library, and not this one, in which __func__ lies? */
static bool is_other(const char *path) {
  Dl_info own;
  struct stat here, there;
  return !stat(path, &there) && dladdr(__func__, &own) && !stat(own.dli_fname, &here) &&
         (here.st_dev != there.st_dev || here.st_ino != there.st_ino);
}

static void *open_real(void) {
  const char *path = getenv("FARFAULT_NVJITLINK"), *folders = getenv("LD_LIBRARY_PATH");
  void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  while (!library && folders && *folders) {
    size_t length = strcspn(folders, ":;");
    ff_text file = {0};
    ff_text_add(&file, "%.*s/" LIBRARY_NAME, (int)length, folders);
    if (length && is_other(file.chars)) library = dlopen(file.chars, RTLD_NOW | RTLD_LOCAL);
    free(file.chars);
    folders += length + (folders[length] != 0);
  }
  return library;
}

static bool find_real(real_calls *calls) {
  void *library = open_real();
  if (!library) return false;
  *(void **)&calls->create = dlsym(library, "nvJitLinkCreate");
  *(void **)&calls->destroy = dlsym(library, "nvJitLinkDestroy");
  *(void **)&calls->add = dlsym(library, "nvJitLinkAddData");
  *(void **)&calls->complete = dlsym(library, "nvJitLinkComplete");
  *(void **)&calls->ptx_size = dlsym(library, "nvJitLinkGetLinkedPtxSize");
  *(void **)&calls->ptx = dlsym(library, "nvJitLinkGetLinkedPtx");
  *(void **)&calls->log_size = dlsym(library, "nvJitLinkGetErrorLogSize");
  *(void **)&calls->log = dlsym(library, "nvJitLinkGetErrorLog");
  return calls->create && calls->create != (void *)nvJitLinkCreate && calls->destroy && calls->add && calls->complete &&
         calls->ptx_size && calls->ptx && calls->log_size && calls->log;
}

/* The program's options, but for those about what is made, and that PTX is. */
static nvJitLinkResult create_real(nvJitLinkHandle link, const real_calls *real, void **handle) {
  const char **options = ff_alloc((link->options.count + 2) * sizeof *options);
  uint32_t count = 0;
  for (size_t i = 0; i < link->options.count; i++)
    if (strcmp(link->options.items[i], "-lto") != 0 && strcmp(link->options.items[i], "-ptx") != 0)
      options[count++] = link->options.items[i];
  options[count++] = "-lto";
  options[count++] = "-ptx";
  nvJitLinkResult result = real->create(handle, count, options);
  free(options);
  return result;
}

static nvJitLinkResult take_ptx(nvJitLinkHandle link, const real_calls *real, void *handle) {
  size_t size;
  nvJitLinkResult result = real->ptx_size(handle, &size);
  if (result) return result;
  char *text = ff_alloc(size + 1);
  result = real->ptx(handle, text);
  if (!result) keep(&link->parts, text, strlen(text), "lto");
  free(text);
  return result;
}

static void take_log(nvJitLinkHandle link, const real_calls *real, void *handle) {
  size_t size;
  if (real->log_size(handle, &size) || size < 2) return;
  char *text = ff_alloc(size + 1);
  if (!real->log(handle, text)) ff_text_add(&link->log, "%s", text);
  free(text);
}

static nvJitLinkResult link_ltoir(nvJitLinkHandle link) {
  real_calls real;
  void *handle;
  if (!find_real(&real))
    return fail(link, NVJITLINK_ERROR_NVVM_COMPILE, "NVIDIA's library, which makes PTX of it, was not found", "LTO-IR");
  nvJitLinkResult result = create_real(link, &real, &handle);
  if (result) return fail(link, result, "NVIDIA's library refuses the options", "LTO-IR");
  for (size_t i = 0; i < link->ltoir.count && !result; i++) {
    const link_part *part = &link->ltoir.items[i];
    result = real.add(handle, INPUT_LTOIR, part->bytes, part->size, part->name);
  }
  if (!result) result = real.complete(handle);
  if (!result) result = take_ptx(link, &real, handle);
  if (result) take_log(link, &real, handle);
  real.destroy(&handle);
  return result;
}

/* ---- the result ---- */

/* -maxrregcount=N; 0: it is not there. */
static uint32_t max_registers(const nvJitLinkHandle link) {
  static const char option[] = "-maxrregcount=";
  for (size_t i = 0; i < link->options.count; i++)
    if (!strncmp(link->options.items[i], option, sizeof option - 1))
      return (uint32_t)strtoul(link->options.items[i] + sizeof option - 1, NULL, 10);
  return 0;
}

EXPORT nvJitLinkResult nvJitLinkComplete(nvJitLinkHandle link);
nvJitLinkResult nvJitLinkComplete(nvJitLinkHandle link) {
  if (!link) return NVJITLINK_ERROR_NULL_INPUT;
  if (link->image.chars) return NVJITLINK_SUCCESS;
  if (link->ltoir.count) {
    nvJitLinkResult result = link_ltoir(link);
    if (result) return result;
  }
  if (!link->parts.count) return fail(link, NVJITLINK_ERROR_INVALID_INPUT, "nothing was added", "nvJitLinkComplete");
  const link_part *first = &link->parts.items[0];
  link->text = link->parts.count == 1 && !is_fatbin(first->bytes, first->size);
  uint32_t most = max_registers(link);
  if (link->text) ff_text_add_bytes(&link->ptx, first->bytes, first->size + 1); /* keep() put a NUL behind it */
  if (link->text && !most) ff_text_add_bytes(&link->image, first->bytes, first->size + 1);
  else linked_image_write(link->parts.items, link->parts.count, most, &link->image);
  return NVJITLINK_SUCCESS;
}

static nvJitLinkResult give_size(const ff_text *text, size_t *size) {
  if (!size) return NVJITLINK_ERROR_NULL_INPUT;
  *size = text->length;
  return NVJITLINK_SUCCESS;
}

static nvJitLinkResult give(const ff_text *text, void *to) {
  if (!to) return NVJITLINK_ERROR_NULL_INPUT;
  if (text->length) memcpy(to, text->chars, text->length);
  return NVJITLINK_SUCCESS;
}

EXPORT nvJitLinkResult nvJitLinkGetLinkedCubinSize(nvJitLinkHandle link, size_t *size);
nvJitLinkResult nvJitLinkGetLinkedCubinSize(nvJitLinkHandle link, size_t *size) {
  return link && link->image.chars ? give_size(&link->image, size) : NVJITLINK_ERROR_INVALID_INPUT;
}
EXPORT nvJitLinkResult nvJitLinkGetLinkedCubin(nvJitLinkHandle link, void *cubin);
nvJitLinkResult nvJitLinkGetLinkedCubin(nvJitLinkHandle link, void *cubin) {
  return link && link->image.chars ? give(&link->image, cubin) : NVJITLINK_ERROR_INVALID_INPUT;
}
EXPORT nvJitLinkResult nvJitLinkGetLinkedPtxSize(nvJitLinkHandle link, size_t *size);
nvJitLinkResult nvJitLinkGetLinkedPtxSize(nvJitLinkHandle link, size_t *size) {
  return link && link->text ? give_size(&link->ptx, size) : NVJITLINK_ERROR_INVALID_INPUT;
}
EXPORT nvJitLinkResult nvJitLinkGetLinkedPtx(nvJitLinkHandle link, char *ptx);
nvJitLinkResult nvJitLinkGetLinkedPtx(nvJitLinkHandle link, char *ptx) {
  return link && link->text ? give(&link->ptx, ptx) : NVJITLINK_ERROR_INVALID_INPUT;
}
EXPORT nvJitLinkResult nvJitLinkGetLinkedLTOIRSize(nvJitLinkHandle link, size_t *size);
nvJitLinkResult nvJitLinkGetLinkedLTOIRSize(nvJitLinkHandle link, size_t *size) {
  return NVJITLINK_ERROR_UNRECOGNIZED_INPUT;
}
EXPORT nvJitLinkResult nvJitLinkGetLinkedLTOIR(nvJitLinkHandle link, void *code);
nvJitLinkResult nvJitLinkGetLinkedLTOIR(nvJitLinkHandle link, void *code) { return NVJITLINK_ERROR_UNRECOGNIZED_INPUT; }

/* ---- logs: sizes count the NUL ---- */

EXPORT nvJitLinkResult nvJitLinkGetErrorLogSize(nvJitLinkHandle link, size_t *size);
nvJitLinkResult nvJitLinkGetErrorLogSize(nvJitLinkHandle link, size_t *size) {
  if (!link || !size) return NVJITLINK_ERROR_NULL_INPUT;
  *size = link->log.length ? link->log.length + 1 : 0;
  return NVJITLINK_SUCCESS;
}
EXPORT nvJitLinkResult nvJitLinkGetErrorLog(nvJitLinkHandle link, char *log);
nvJitLinkResult nvJitLinkGetErrorLog(nvJitLinkHandle link, char *log) {
  if (!link || !log) return NVJITLINK_ERROR_NULL_INPUT;
  if (link->log.length) memcpy(log, link->log.chars, link->log.length + 1);
  return NVJITLINK_SUCCESS;
}
EXPORT nvJitLinkResult nvJitLinkGetInfoLogSize(nvJitLinkHandle link, size_t *size);
nvJitLinkResult nvJitLinkGetInfoLogSize(nvJitLinkHandle link, size_t *size) {
  if (!link || !size) return NVJITLINK_ERROR_NULL_INPUT;
  *size = 0;
  return NVJITLINK_SUCCESS;
}
EXPORT nvJitLinkResult nvJitLinkGetInfoLog(nvJitLinkHandle link, char *log);
nvJitLinkResult nvJitLinkGetInfoLog(nvJitLinkHandle link, char *log) {
  return link && log ? NVJITLINK_SUCCESS : NVJITLINK_ERROR_NULL_INPUT;
}

EXPORT nvJitLinkResult nvJitLinkVersion(unsigned *major, unsigned *minor);
nvJitLinkResult nvJitLinkVersion(unsigned *major, unsigned *minor) {
  if (!major || !minor) return NVJITLINK_ERROR_NULL_INPUT;
  *major = NVJITLINK_MAJOR;
  *minor = VERSION_MINOR;
  return NVJITLINK_SUCCESS;
}

/* ---- the same by the names that nvJitLink.h of each version calls ---- */

#define ALIAS(name, version) \
  extern __typeof(name) __##name##_##version __attribute__((alias(#name), visibility("default")));
#if NVJITLINK_MAJOR == 12
#define ALIASES(name) \
  ALIAS(name, 12_0)   \
  ALIAS(name, 12_1)   \
  ALIAS(name, 12_2)   \
  ALIAS(name, 12_3)   \
  ALIAS(name, 12_4) ALIAS(name, 12_5) ALIAS(name, 12_6) ALIAS(name, 12_7) ALIAS(name, 12_8) ALIAS(name, 12_9)
#else
#define ALIASES(name) \
  ALIAS(name, 13_0)   \
  ALIAS(name, 13_1)   \
  ALIAS(name, 13_2)   \
  ALIAS(name, 13_3)   \
  ALIAS(name, 13_4) ALIAS(name, 13_5) ALIAS(name, 13_6) ALIAS(name, 13_7) ALIAS(name, 13_8) ALIAS(name, 13_9)
#endif
ALIASES(nvJitLinkCreate)
ALIASES(nvJitLinkDestroy)
ALIASES(nvJitLinkAddData)
ALIASES(nvJitLinkAddFile)
ALIASES(nvJitLinkComplete)
ALIASES(nvJitLinkGetLinkedCubinSize)
ALIASES(nvJitLinkGetLinkedCubin)
ALIASES(nvJitLinkGetLinkedPtxSize)
ALIASES(nvJitLinkGetLinkedPtx)
ALIASES(nvJitLinkGetLinkedLTOIRSize)
ALIASES(nvJitLinkGetLinkedLTOIR)
ALIASES(nvJitLinkGetErrorLogSize)
ALIASES(nvJitLinkGetErrorLog)
ALIASES(nvJitLinkGetInfoLogSize)
ALIASES(nvJitLinkGetInfoLog)
