/* SPDX-License-Identifier: Apache-2.0 */
/* What an executable has in it (elf.h), through elf_read.h.
 *
 *   file -> section table -> .nv_fatbin, __nv_relfatbin -> fat binaries
 *        -> program headers -> PT_INTERP, PT_DYNAMIC -> NEEDED, RPATH, ...
 *        -> .dynsym, .symtab -> is __cudaRegisterFatBinary imported, or inside? */
#include "fatbin/elf.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "fatbin/elf_read.h"

#define MAX_NEEDED 4096u             /* libraries listed of one file */
#define MAX_STUB (UINT64_C(1) << 20) /* bytes of machine code without functions */
#define MAX_TEXT 65536u              /* bytes of a string in a string table */
#define MAX_PTX (UINT64_C(1) << 31)  /* bytes of all PTX texts of a file together */

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#else
#define OWN_MACHINE EM_NONE
#endif

static bool holds_fatbins(const elf_file *file, const Elf64_Shdr *section) {
  const char *name = elf_section_name(file, section);
  return section->sh_type != SHT_NOBITS && (strcmp(name, ".nv_fatbin") == 0 || strcmp(name, "__nv_relfatbin") == 0);
}

/* ---- dynamic linking ---- */

static bool address_offset(const elf_file *file, uint64_t address, uint64_t *offset) {
  for (uint32_t i = 0; i < file->segment_count; i++) {
    const Elf64_Phdr *segment = &file->segments[i];
    if (segment->p_type != PT_LOAD || address < segment->p_vaddr || address - segment->p_vaddr >= segment->p_filesz)
      continue;
    *offset = segment->p_offset + (address - segment->p_vaddr); /* may wrap in a hostile file; elf_part checks */
    return true;
  }
  return false;
}

/* The string at `at` of the dynamic string table, of `size` bytes at `offset`; NULL: out of it. The caller frees it. */
static char *read_string(const elf_file *file, uint64_t offset, uint64_t size, uint64_t at) {
  if (at >= size) return NULL;
  uint64_t start = offset + at;
  if (start < offset || start >= file->size) return NULL;
  uint64_t most = size - at;
  if (most > file->size - start) most = file->size - start;
  char *text = elf_part(file, start, most < MAX_TEXT ? most : MAX_TEXT);
  return text ? ff_realloc(text, strlen(text) + 1) : NULL;
}

static void keep(char **place, char *text) {
  free(*place);
  *place = text;
}

static void add_needed(fatbin_report *report, char *name) {
  if (!name || report->needed_count == MAX_NEEDED) {
    free(name);
    return;
  }
  report->needed = ff_realloc(report->needed, (report->needed_count + 1) * sizeof *report->needed);
  report->needed[report->needed_count++] = name;
  if (strncmp(name, "libcudart.so", 12) == 0) keep(&report->cudart, ff_strdup(name));
  if (strcmp(name, "libcuda.so.1") == 0 || strcmp(name, "libcuda.so") == 0) report->needs_libcuda = true;
}

static uint64_t dynamic_value(const Elf64_Dyn *entries, uint64_t count, int64_t tag) {
  for (uint64_t i = 0; i < count && entries[i].d_tag != DT_NULL; i++)
    if (entries[i].d_tag == tag) return entries[i].d_un.d_val;
  return 0;
}

static void read_dynamic(const elf_file *file, const Elf64_Phdr *segment, fatbin_report *report) {
  uint64_t count = segment->p_filesz / sizeof(Elf64_Dyn), strings, size;
  Elf64_Dyn *entries = elf_part(file, segment->p_offset, count * sizeof *entries);
  if (!entries) return;
  size = dynamic_value(entries, count, DT_STRSZ);
  if (address_offset(file, dynamic_value(entries, count, DT_STRTAB), &strings)) {
    for (uint64_t i = 0; i < count && entries[i].d_tag != DT_NULL; i++) {
      uint64_t at = entries[i].d_un.d_val;
      if (entries[i].d_tag == DT_NEEDED) add_needed(report, read_string(file, strings, size, at));
      if (entries[i].d_tag == DT_RPATH) keep(&report->rpath, read_string(file, strings, size, at));
      if (entries[i].d_tag == DT_RUNPATH) keep(&report->runpath, read_string(file, strings, size, at));
      if (entries[i].d_tag == DT_SONAME) keep(&report->soname, read_string(file, strings, size, at));
    }
  }
  free(entries);
}

static void read_segment_facts(const elf_file *file, fatbin_report *report) {
  for (uint32_t i = 0; i < file->segment_count; i++) {
    const Elf64_Phdr *segment = &file->segments[i];
    if (segment->p_type == PT_DYNAMIC && !report->needed_count) read_dynamic(file, segment, report);
    if (segment->p_type == PT_INTERP && segment->p_filesz && segment->p_filesz < MAX_TEXT)
      keep(&report->interpreter, elf_part(file, segment->p_offset, segment->p_filesz));
  }
}

/* ---- fat binaries ---- */

typedef struct image_walk {
  fatbin_report *report;   /* counts go here; may be NULL */
  fatbin_ptx_texts *texts; /* PTX goes here; may be NULL */
  uint64_t text_bytes;     /* of all of them so far */
  uint32_t images;
} image_walk;

static void count_arch(uint32_t arch, uint32_t *count, uint32_t *lowest, uint32_t *highest) {
  if (!*count || arch < *lowest) *lowest = arch;
  if (!*count || arch > *highest) *highest = arch;
  ++*count;
}

/* Has the machine code a section per function, `.text.NAME`? True: yes, or it is not what we know. */
static bool has_functions(const char *bytes, size_t size) {
  Elf64_Ehdr header;
  if (size < sizeof header) return true;
  memcpy(&header, bytes, sizeof header);
  uint64_t table = header.e_shoff, names = header.e_shstrndx, tables = (uint64_t)header.e_shnum * sizeof(Elf64_Shdr);
  if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || !table || table > size || tables > size - table ||
      names >= header.e_shnum)
    return true;
  Elf64_Shdr section, strings;
  memcpy(&strings, bytes + table + names * sizeof strings, sizeof strings);
  if (strings.sh_offset > size || strings.sh_size > size - strings.sh_offset) return true;
  for (unsigned i = 0; i < header.e_shnum; i++) {
    memcpy(&section, bytes + table + i * sizeof section, sizeof section);
    if (section.sh_name >= strings.sh_size || strings.sh_size - section.sh_name < 6) continue;
    if (memcmp(bytes + strings.sh_offset + section.sh_name, ".text.", 6) == 0) return true;
  }
  return false;
}

static bool entry_has_functions(const fatbin_entry *entry) {
  char *bytes;
  size_t size;
  if (entry->unpacked_bytes > MAX_STUB || fatbin_unpack(entry, &bytes, &size, NULL) != FF_OK) return true;
  bool has = has_functions(bytes, size);
  free(bytes);
  return has;
}

static ff_status take_text(const fatbin_entry *entry, image_walk *walk, ff_error *error) {
  fatbin_ptx_texts *texts = walk->texts;
  fatbin_ptx_text text = {.arch = entry->arch, .suffix = entry->suffix, .image = walk->images};
  walk->text_bytes += entry->unpacked_bytes < MAX_PTX ? entry->unpacked_bytes : MAX_PTX;
  if (walk->text_bytes >= MAX_PTX) return ff_fail(error, FF_LIMIT, "more than %" PRIu64 " bytes of PTX", MAX_PTX);
  ff_status status = fatbin_ptx(entry, &text.text, &text.length, error);
  if (status != FF_OK) return status;
  text.name = ff_alloc((size_t)entry->name_length + 1);
  if (entry->name_length) memcpy(text.name, entry->name, entry->name_length);
  texts->items = ff_realloc(texts->items, (texts->count + 1) * sizeof *texts->items);
  texts->items[texts->count++] = text;
  return FF_OK;
}

static ff_status take_image(const fatbin *image, image_walk *walk, ff_error *error) {
  fatbin_report *report = walk->report;
  ff_status status = FF_OK;
  for (uint32_t i = 0; i < image->entry_count && status == FF_OK; i++) {
    const fatbin_entry *entry = &image->entries[i];
    if (report && entry->kind == FATBIN_KIND_PTX)
      count_arch(entry->arch, &report->ptx, &report->ptx_lowest, &report->ptx_highest);
    if (report && entry->kind == FATBIN_KIND_TILE) report->tile++;
    if (report && entry->kind == FATBIN_KIND_ELF && !report->ptx && !report->tile && !report->kernels)
      report->kernels = entry_has_functions(entry);
    if (report && entry->kind == FATBIN_KIND_ELF)
      count_arch(entry->arch, &report->machine_code, &report->code_lowest, &report->code_highest);
    if (walk->texts && entry->kind == FATBIN_KIND_PTX) status = take_text(entry, walk, error);
  }
  walk->images++;
  if (report) report->images++;
  return status;
}

static ff_status note_damage(image_walk *walk, const ff_error *why, ff_error *error) {
  if (walk->report) {
    walk->report->damaged = true;
    walk->report->damage = *why;
    return FF_OK;
  }
  if (error) *error = *why;
  return why->status;
}

/* Fat binaries stand one after the other, each on an 8-byte boundary. What follows a broken one is not looked at. */
static ff_status walk_images(const char *bytes, uint64_t size, image_walk *walk, ff_error *error) {
  ff_status status = FF_OK;
  for (uint64_t at = 0, step; at + 4 <= size && status == FF_OK; at += step) {
    uint32_t magic;
    step = 8;
    memcpy(&magic, bytes + at, sizeof magic);
    if (magic != FATBIN_MAGIC) continue;
    fatbin image;
    ff_error why;
    if (fatbin_open(bytes + at, size - at, &image, &why) != FF_OK) return note_damage(walk, &why, error);
    step = (image.bytes + 7) / 8 * 8;
    status = take_image(&image, walk, error);
    fatbin_close(&image);
  }
  return status;
}

/* Sections with fat binaries do not overlap, so together they are no longer than the file. */
static ff_status walk_sections(const elf_file *file, image_walk *walk, ff_error *error) {
  ff_status status = FF_OK;
  uint64_t left = file->size;
  for (uint32_t i = 0; i < file->section_count && status == FF_OK; i++) {
    const Elf64_Shdr *section = &file->sections[i];
    if (!holds_fatbins(file, section)) continue;
    if (walk->report && strcmp(elf_section_name(file, section), "__nv_relfatbin") == 0)
      walk->report->relocatable = true;
    char *bytes = section->sh_size <= left ? elf_part(file, section->sh_offset, section->sh_size) : NULL;
    if (!bytes) {
      ff_error why;
      ff_fail(&why, FF_PARSE, "section %s reaches beyond the file", elf_section_name(file, section));
      return note_damage(walk, &why, error);
    }
    left -= section->sh_size;
    status = walk_images(bytes, section->sh_size, walk, error);
    free(bytes);
  }
  return status;
}

static ff_status walk_file(elf_file *file, fatbin_file_kind kind, image_walk *walk, ff_error *error) {
  if (kind == FATBIN_FILE_ELF) return walk_sections(file, walk, error);
  char *bytes = kind == FATBIN_FILE_FATBIN ? elf_part(file, 0, file->size) : NULL;
  ff_status status = bytes ? walk_images(bytes, file->size, walk, error) : FF_OK;
  free(bytes);
  return status;
}

/* ---- the two questions ---- */

static void read_script(const elf_file *file, fatbin_report *report) {
  uint64_t bytes = file->size - 2 < 256 ? file->size - 2 : 256;
  char *line = elf_part(file, 2, bytes);
  if (!line) return;
  size_t start = strspn(line, " \t"), end = start + strcspn(line + start, "\n");
  while (end > start && strchr(" \t\r", line[end - 1])) end--;
  memmove(line, line + start, end - start);
  line[end - start] = '\0';
  report->interpreter = line;
}

static void read_elf(elf_file *file, fatbin_report *report) {
  if (!elf_tables(file)) return;
  report->foreign = file->header.e_machine != OWN_MACHINE;
  report->no_sections = !file->section_count;
  read_segment_facts(file, report);
  const char *registers = "__cudaRegisterFatBinary"; /* in every program with a CUDA runtime */
  bool has_code = false, program = file->header.e_type != ET_REL;
  for (uint32_t i = 0; i < file->section_count; i++) has_code |= holds_fatbins(file, &file->sections[i]);
  report->stripped = !elf_section(file, SHT_SYMTAB);
  bool hidden = has_code && report->stripped && !report->needs_libcuda;
  report->runtime = FATBIN_RUNTIME_NONE;
  if (elf_has_symbol(file, SHT_DYNSYM, registers, false) || report->cudart) report->runtime = FATBIN_RUNTIME_SHARED;
  else if (program && (hidden || elf_has_symbol(file, SHT_SYMTAB, registers, true)))
    report->runtime = FATBIN_RUNTIME_STATIC;
}

ff_status fatbin_check_executable(const char *path, fatbin_report *report, ff_error *error) {
  elf_file file;
  *report = (fatbin_report){0};
  ff_status status = elf_open(path, &file, error);
  if (status != FF_OK) return status;
  report->executable = access(path, X_OK) == 0;
  report->kind = elf_kind(&file);
  if (report->kind == FATBIN_FILE_SCRIPT) read_script(&file, report);
  if (report->kind == FATBIN_FILE_ELF) read_elf(&file, report);
  walk_file(&file, report->kind, &(image_walk){.report = report}, NULL);
  elf_close(&file);
  return FF_OK;
}

ff_status fatbin_check_links(const char *path, fatbin_report *report, ff_error *error) {
  elf_file file;
  *report = (fatbin_report){0};
  ff_status status = elf_open(path, &file, error);
  if (status != FF_OK) return status;
  report->kind = elf_kind(&file);
  if (report->kind == FATBIN_FILE_ELF && elf_tables(&file)) read_segment_facts(&file, report);
  elf_close(&file);
  return FF_OK;
}

void fatbin_report_free(fatbin_report *report) {
  for (uint32_t i = 0; i < report->needed_count; i++) free(report->needed[i]);
  free(report->needed);
  free(report->interpreter);
  free(report->rpath);
  free(report->runpath);
  free(report->soname);
  free(report->cudart);
  *report = (fatbin_report){0};
}

static ff_status no_ptx(const char *path, fatbin_file_kind kind, uint32_t images, ff_error *error) {
  if (kind != FATBIN_FILE_ELF && kind != FATBIN_FILE_FATBIN)
    return ff_fail(error, FF_NOT_FOUND, "%s: neither a 64-bit ELF file nor a fat binary", path);
  if (!images) return ff_fail(error, FF_NOT_FOUND, "%s: no CUDA code in it", path);
  return ff_fail(error, FF_NOT_FOUND,
                 "%s: its CUDA code is machine code only; nvcc -arch=sm_75 (or code=compute_75) embeds PTX", path);
}

ff_status fatbin_extract_ptx(const char *path, fatbin_ptx_texts *texts, ff_error *error) {
  elf_file file;
  *texts = (fatbin_ptx_texts){0};
  ff_status status = elf_open(path, &file, error);
  if (status != FF_OK) return status;
  fatbin_file_kind kind = elf_kind(&file);
  if (kind == FATBIN_FILE_ELF) elf_tables(&file);
  image_walk walk = {.texts = texts};
  status = walk_file(&file, kind, &walk, error);
  elf_close(&file);
  if (status != FF_OK) ff_fail_at(error, status, path);
  if (status == FF_OK && !texts->count) status = no_ptx(path, kind, walk.images, error);
  if (status != FF_OK) fatbin_ptx_texts_free(texts);
  return status;
}

void fatbin_ptx_texts_free(fatbin_ptx_texts *texts) {
  for (uint32_t i = 0; i < texts->count; i++) {
    free(texts->items[i].text);
    free(texts->items[i].name);
  }
  free(texts->items);
  *texts = (fatbin_ptx_texts){0};
}
