/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of functions as files that are kept (base/kept.h): `facts`, one per module.
 *
 *     head, then for each function in the order of their indices a `record` and its lists, then the taken ones
 *
 * All are numbers of 32 bits; functions and variables are given by their index in the module. A file is believed if it
 * is whole (a checksum) and for this module and build; its numbers are compared with the module's before they are
 * used. */
#define _GNU_SOURCE /* dladdr, dl_iterate_phdr */
#include "exec/decode/facts_store.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "base/kept.h"
#include "ptx/module.h"

#define FORMAT 1                        /* of the file, and of what the facts mean: another number for another one */
#define SMALLEST_TEXT ((size_t)1 << 20) /* what is read in less than 20 ms is not kept */
#define MAX_FILES 256u
#define MAX_BYTES (UINT64_C(64) << 20)
#define MAX_FILE (32u << 20)

typedef struct key {
  XXH128_hash_t hash;
} key;

typedef struct head {
  uint64_t key[2], check; /* of everything behind the head */
  uint32_t records, taken;
} head;

enum { WAITS = 1, WAITS_IN_LOOP = 2, READS_SMID = 4, READS_RESERVED = 8, PULLS = 16, MBARRIERS = 32, PRINTS = 64 };
enum { LAUNCHES = 128, CALLS_INDIRECT = 256, ALLOCATES = 512 };

typedef struct record {
  uint32_t func, instr_count, registers, local_bytes, stack_bytes, flags;
  uint32_t callees, vars, taken; /* how many of each stand behind it */
} record;

/* ---- the key ---- */

/* The identity of this code: another build may find other facts. The file may be another one by now, so what the linker
 * wrote into the code itself (the GNU build id) is asked first. */

/* The description of the build id's note, in a segment of notes; NULL: it has none. */
static const unsigned char *build_id_in(const unsigned char *notes, size_t room, uint32_t *bytes) {
  ElfW(Nhdr) note;
  while (room >= sizeof note) {
    memcpy(&note, notes, sizeof note);
    size_t name = ((size_t)note.n_namesz + 3) & ~(size_t)3, rest = ((size_t)note.n_descsz + 3) & ~(size_t)3;
    if (room - sizeof note < name || room - sizeof note - name < rest) return NULL;
    *bytes = note.n_descsz;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && !memcmp(notes + sizeof note, "GNU", 4))
      return notes + sizeof note + name;
    notes += sizeof note + name + rest;
    room -= sizeof note + name + rest;
  }
  return NULL;
}

static bool holds(const struct dl_phdr_info *object, uintptr_t address) {
  for (size_t n = 0; n < object->dlpi_phnum; n++) {
    const ElfW(Phdr) *part = &object->dlpi_phdr[n];
    if (part->p_type == PT_LOAD && address - (object->dlpi_addr + part->p_vaddr) < part->p_memsz) return true;
  }
  return false;
}

static bool hash_file(XXH3_state_t *state);

/* Of the loaded object that this code is in; `state` takes its build id. */
static int hash_build_id(struct dl_phdr_info *object, size_t size, void *state) {
  if (!holds(object, (uintptr_t)hash_file)) return 0;
  for (size_t n = 0; n < object->dlpi_phnum; n++) {
    const ElfW(Phdr) *part = &object->dlpi_phdr[n];
    uint32_t bytes = 0;
    const unsigned char *notes = (const unsigned char *)(uintptr_t)(object->dlpi_addr + part->p_vaddr);
    const unsigned char *id = part->p_type == PT_NOTE ? build_id_in(notes, part->p_memsz, &bytes) : NULL;
    if (!id || !bytes) continue;
    XXH3_128bits_update(state, id, bytes);
    return 1;
  }
  return 0;
}

static bool hash_file(XXH3_state_t *state) {
  Dl_info object;
  struct stat s;
  if (!dladdr((const void *)(uintptr_t)hash_file, &object) || !object.dli_fname || stat(object.dli_fname, &s))
    return false;
  uint64_t identity[3] = {(uint64_t)s.st_size, (uint64_t)s.st_mtim.tv_sec, (uint64_t)s.st_mtim.tv_nsec};
  XXH3_128bits_update(state, identity, sizeof identity);
  return true;
}

static bool hash_build(XXH3_state_t *state) {
  uint32_t format = FORMAT;
  XXH3_128bits_update(state, &format, sizeof format);
  return dl_iterate_phdr(hash_build_id, state) || hash_file(state);
}

static void hash_texts(XXH3_state_t *state, ptx_module *const *texts, uint32_t count) {
  for (uint32_t m = 0; m < count; m++) {
    uint64_t length = texts[m]->text_length;
    XXH3_128bits_update(state, &length, sizeof length);
    XXH3_128bits_update(state, texts[m]->text, length);
  }
}

/* False: the module is small, or all of it was read at once. */
static bool make_key(ptx_module *module, key *made) {
  uint32_t count;
  ptx_module *const *texts = ptx_module_made_of(&module, &count);
  size_t bytes = 0;
  for (uint32_t m = 0; texts && m < count; m++) bytes += texts[m]->text_length;
  XXH3_state_t *state = bytes < SMALLEST_TEXT ? NULL : XXH3_createState();
  if (!state) return false;
  XXH3_128bits_reset(state);
  bool good = hash_build(state);
  if (good) {
    hash_texts(state, texts, count);
    made->hash = XXH3_128bits_digest(state);
  }
  XXH3_freeState(state);
  return good;
}

static bool path_of(const key *k, char *path, size_t room) {
  if (!ff_kept_folder("facts", path, room)) return false;
  size_t length = strlen(path);
  return (size_t)snprintf(path + length, room - length, "/%016llx%016llx", (unsigned long long)k->hash.high64,
                          (unsigned long long)k->hash.low64) < room - length;
}

/* ---- writing ---- */

typedef FF_VEC(uint32_t) numbers;

static void put_record(numbers *out, const record *r) {
  const uint32_t words[] = {r->func,  r->instr_count, r->registers, r->local_bytes, r->stack_bytes,
                            r->flags, r->callees,     r->vars,      r->taken};
  for (size_t n = 0; n < sizeof words / sizeof *words; n++) FF_PUSH(out, words[n]);
}

static bool is_own(const ptx_var *var) { return var->func != NULL; }

/* False: it has variables of its own, which are there only while it is read; or it is a kernel, whose registers follow
 * from a limit that the text does not have (-maxrregcount). */
static bool put_facts(numbers *out, const ptx_func *of, const exec_facts *f) {
  if (of->entry) return false;
  for (uint32_t v = 0; v < f->var_count; v++)
    if (is_own(f->vars[v])) return false;
  uint32_t flags = (f->waits ? WAITS : 0) | (f->waits_in_loop ? WAITS_IN_LOOP : 0) | (f->reads_smid ? READS_SMID : 0) |
                   (f->reads_reserved ? READS_RESERVED : 0) | (f->pulls ? PULLS : 0) |
                   (f->uses_mbarriers ? MBARRIERS : 0) | (f->prints ? PRINTS : 0) | (f->launches ? LAUNCHES : 0) |
                   (f->calls_indirect ? CALLS_INDIRECT : 0) | (f->allocates ? ALLOCATES : 0);
  put_record(out, &(record){of->index, f->instr_count, f->registers, f->local_bytes, f->stack_bytes, flags,
                            f->callee_count, f->var_count, f->taken_count});
  for (uint32_t n = 0; n < f->callee_count; n++) FF_PUSH(out, f->callees[n]->index);
  for (uint32_t n = 0; n < f->var_count; n++) FF_PUSH(out, f->vars[n]->index);
  for (uint32_t n = 0; n < f->taken_count; n++) FF_PUSH(out, f->taken[n]->index);
  return true;
}

void exec_facts_keep(ptx_module *module, exec_facts *const *of, const ptx_func *const *taken, uint32_t taken_count) {
  key k;
  char path[PATH_MAX];
  if (!make_key(module, &k) || !path_of(&k, path, sizeof path)) return;
  numbers out = {0};
  for (size_t n = 0; n < sizeof(head) / sizeof(uint32_t); n++) FF_PUSH(&out, 0);
  uint32_t records = 0;
  for (uint32_t f = 0; f < module->func_count; f++) records += of[f] && put_facts(&out, module->funcs[f], of[f]);
  for (uint32_t n = 0; n < taken_count; n++) FF_PUSH(&out, taken[n]->index);
  size_t bytes = out.count * sizeof *out.items;
  if (bytes <= MAX_FILE) {
    head h = {.key = {k.hash.low64, k.hash.high64}, .records = records, .taken = taken_count};
    h.check = XXH3_64bits((const unsigned char *)out.items + sizeof h, bytes - sizeof h);
    memcpy(out.items, &h, sizeof h);
    if (ff_kept_write(path, out.items, (uint32_t)bytes)) {
      *strrchr(path, '/') = '\0';
      ff_kept_trim(path, MAX_FILES, MAX_BYTES);
    }
  }
  free(out.items);
}

/* ---- reading ---- */

static bool is_whole(const void *context, const unsigned char *data, uint32_t bytes) {
  const key *k = context;
  head h;
  if (bytes < sizeof h || bytes % sizeof(uint32_t)) return false;
  memcpy(&h, data, sizeof h);
  return h.key[0] == k->hash.low64 && h.key[1] == k->hash.high64 &&
         h.check == XXH3_64bits(data + sizeof h, bytes - sizeof h);
}

typedef struct reader {
  const ptx_module *module;
  const uint32_t *at, *end;
} reader;

/* The next `count` numbers, all below `limit`; NULL: they are not. */
static const uint32_t *take(reader *r, uint32_t count, uint32_t limit) {
  const uint32_t *first = r->at;
  if ((size_t)(r->end - r->at) < count) return NULL;
  for (uint32_t n = 0; n < count; n++)
    if (first[n] >= limit) return NULL;
  r->at += count;
  return first;
}

static const ptx_func **funcs_of(const ptx_module *module, const uint32_t *indices, uint32_t count) {
  const ptx_func **list = count ? ff_alloc(count * sizeof *list) : NULL;
  for (uint32_t n = 0; n < count; n++) list[n] = module->funcs[indices[n]];
  return list;
}

static exec_facts *facts_of(const ptx_module *module, const record *r, const uint32_t *callees, const uint32_t *vars,
                            const uint32_t *taken) {
  exec_facts *facts = ff_alloc(sizeof *facts);
  *facts = (exec_facts){.instr_count = r->instr_count,
                        .registers = r->registers,
                        .local_bytes = r->local_bytes,
                        .stack_bytes = r->stack_bytes,
                        .waits = r->flags & WAITS,
                        .waits_in_loop = r->flags & WAITS_IN_LOOP,
                        .reads_smid = r->flags & READS_SMID,
                        .reads_reserved = r->flags & READS_RESERVED,
                        .pulls = r->flags & PULLS,
                        .uses_mbarriers = r->flags & MBARRIERS,
                        .prints = r->flags & PRINTS,
                        .launches = r->flags & LAUNCHES,
                        .calls_indirect = r->flags & CALLS_INDIRECT,
                        .allocates = r->flags & ALLOCATES,
                        .callees = funcs_of(module, callees, r->callees),
                        .callee_count = r->callees,
                        .taken = funcs_of(module, taken, r->taken),
                        .taken_count = r->taken,
                        .var_count = r->vars};
  if (r->vars) facts->vars = ff_alloc(r->vars * sizeof *facts->vars);
  for (uint32_t n = 0; n < r->vars; n++) facts->vars[n] = module->vars[vars[n]];
  return facts;
}

/* One record; `of` NULL: only looks whether it is good. */
static bool read_record(reader *r, exec_facts **of) {
  const uint32_t *w = take(r, sizeof(record) / sizeof(uint32_t), UINT32_MAX);
  if (!w) return false;
  record known = {w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8]};
  const uint32_t *callees = take(r, known.callees, r->module->func_count);
  const uint32_t *vars = callees ? take(r, known.vars, r->module->var_count) : NULL;
  const uint32_t *taken = vars ? take(r, known.taken, r->module->func_count) : NULL;
  if (!taken || known.func >= r->module->func_count || r->module->funcs[known.func]->entry) return false;
  if (of && !of[known.func]) of[known.func] = facts_of(r->module, &known, callees, vars, taken);
  return true;
}

static bool read_all(reader r, const head *h, exec_facts **of, const ptx_func **taken) {
  for (uint32_t n = 0; n < h->records; n++)
    if (!read_record(&r, of)) return false;
  const uint32_t *list = h->taken <= r.module->func_count ? take(&r, h->taken, r.module->func_count) : NULL;
  if (!list || r.at != r.end) return false;
  for (uint32_t n = 0; taken && n < h->taken; n++) taken[n] = r.module->funcs[list[n]];
  return true;
}

bool exec_facts_load(ptx_module *module, exec_facts **of, const ptx_func **taken, uint32_t *taken_count) {
  key k;
  char path[PATH_MAX];
  uint32_t bytes;
  if (!make_key(module, &k) || !path_of(&k, path, sizeof path)) return false;
  unsigned char *data = ff_kept_read(path, MAX_FILE, is_whole, &k, &bytes);
  if (!data) return false;
  head h;
  memcpy(&h, data, sizeof h);
  reader r = {module, (const uint32_t *)(const void *)(data + sizeof h), NULL};
  r.end = r.at + (bytes - sizeof h) / sizeof(uint32_t);
  bool good = read_all(r, &h, NULL, NULL);
  if (good) {
    read_all(r, &h, of, taken);
    *taken_count = h.taken;
  }
  free(data);
  return good;
}
