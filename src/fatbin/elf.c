/* SPDX-License-Identifier: Apache-2.0 */
/* Reading ELF files part by part (elf.h). Tables come from <elf.h>; each is copied out of the file before it is looked at.
 *
 *   file -> section table -> .nv_fatbin, __nv_relfatbin -> fat binaries
 *        -> program headers -> PT_INTERP, PT_DYNAMIC -> NEEDED, RPATH, ...
 *        -> .dynsym -> is __cudaRegisterFatBinary imported? */
#include "fatbin/elf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

#define MOST_NEEDED 4096u        /* libraries listed of one file */
#define MOST_TEXT 65536u         /* bytes of a string in a string table */
#define MOST_PART (UINT64_C(1) << 32) /* bytes of one section */
#define MOST_PTX (UINT64_C(1) << 31)  /* bytes of all PTX texts of a file together */

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#else
#define OWN_MACHINE EM_NONE
#endif

typedef struct elf_file {
  const char *path;
  int fd;
  uint64_t size;
  Elf64_Ehdr header;
  Elf64_Shdr *sections;
  uint32_t section_count;
  char *section_names;      /* NUL-terminated at section_names_size */
  uint64_t section_names_size;
  Elf64_Phdr *segments;
  uint32_t segment_count;
} elf_file;

/* Copies `bytes` bytes at `offset`, plus a NUL. NULL: the file does not have them. The caller frees it. */
static void *read_part(const elf_file *file, uint64_t offset, uint64_t bytes) {
  if (offset > file->size || bytes > file->size - offset || bytes > MOST_PART) return NULL;
  char *part = ff_alloc((size_t)bytes + 1);
  for (uint64_t done = 0; done < bytes;) {
    ssize_t got = pread(file->fd, part + done, (size_t)(bytes - done), (off_t)(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) { /* an error, or the file has been cut meanwhile */
      free(part);
      return NULL;
    }
    done += (uint64_t)got;
  }
  return part;
}

static ff_status file_open(const char *path, elf_file *file, ff_error *error) {
  *file = (elf_file){.path = path, .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file->fd < 0)
    return ff_fail(error, errno == ENOENT ? FF_NOT_FOUND : FF_IO, "%s: %s", path, strerror(errno));
  struct stat about;
  if (fstat(file->fd, &about) != 0 || !S_ISREG(about.st_mode)) {
    close(file->fd);
    return ff_fail(error, FF_IO, "%s: not a regular file", path);
  }
  file->size = (uint64_t)about.st_size;
  return FF_OK;
}

static void file_close(elf_file *file) {
  free(file->sections);
  free(file->section_names);
  free(file->segments);
  close(file->fd);
}

static fatbin_file_kind file_kind(elf_file *file) {
  unsigned char start[16] = {0};
  uint64_t bytes = file->size < sizeof start ? file->size : sizeof start;
  void *part = read_part(file, 0, bytes);
  if (part) memcpy(start, part, (size_t)bytes);
  free(part);
  uint32_t magic;
  memcpy(&magic, start, sizeof magic);
  if (start[0] == '#' && start[1] == '!') return FATBIN_FILE_SCRIPT;
  if (magic == FATBIN_MAGIC) return FATBIN_FILE_FATBIN;
  if (memcmp(start, ELFMAG, SELFMAG) != 0) return FATBIN_FILE_OTHER;
  return start[EI_CLASS] == ELFCLASS64 && start[EI_DATA] == ELFDATA2LSB ? FATBIN_FILE_ELF : FATBIN_FILE_ELF_OTHER;
}

/* ---- the tables ---- */

static void read_sections(elf_file *file) {
  const Elf64_Ehdr *header = &file->header;
  if (!header->e_shoff || header->e_shentsize != sizeof(Elf64_Shdr)) return;
  uint64_t count = header->e_shnum, names = header->e_shstrndx;
  Elf64_Shdr *first = read_part(file, header->e_shoff, sizeof *first);
  if (!first) return;
  if (!count) count = first->sh_size;                /* more than 65,279 sections: the count is in the first one */
  if (names == SHN_XINDEX) names = first->sh_link;
  free(first);
  if (count > file->size / sizeof(Elf64_Shdr)) return;
  file->sections = read_part(file, header->e_shoff, count * sizeof(Elf64_Shdr));
  if (!file->sections) return;
  file->section_count = (uint32_t)count;
  if (names >= count || file->sections[names].sh_type == SHT_NOBITS) return;
  file->section_names_size = file->sections[names].sh_size;
  file->section_names = read_part(file, file->sections[names].sh_offset, file->section_names_size);
}

static void read_segments(elf_file *file) {
  const Elf64_Ehdr *header = &file->header;
  if (!header->e_phoff || header->e_phentsize != sizeof(Elf64_Phdr)) return;
  file->segments = read_part(file, header->e_phoff, header->e_phnum * sizeof(Elf64_Phdr));
  if (file->segments) file->segment_count = header->e_phnum;
}

static bool read_tables(elf_file *file) {
  Elf64_Ehdr *header = read_part(file, 0, sizeof *header);
  if (!header) return false;
  file->header = *header;
  free(header);
  read_sections(file);
  read_segments(file);
  return true;
}

static const char *section_name(const elf_file *file, const Elf64_Shdr *section) {
  return file->section_names && section->sh_name < file->section_names_size ? file->section_names + section->sh_name : "";
}

static bool holds_fatbins(const elf_file *file, const Elf64_Shdr *section) {
  const char *name = section_name(file, section);
  return section->sh_type != SHT_NOBITS && (strcmp(name, ".nv_fatbin") == 0 || strcmp(name, "__nv_relfatbin") == 0);
}

/* ---- dynamic linking ---- */

static bool address_offset(const elf_file *file, uint64_t address, uint64_t *offset) {
  for (uint32_t i = 0; i < file->segment_count; i++) {
    const Elf64_Phdr *segment = &file->segments[i];
    if (segment->p_type != PT_LOAD || address < segment->p_vaddr || address - segment->p_vaddr >= segment->p_filesz) continue;
    *offset = segment->p_offset + (address - segment->p_vaddr); /* may wrap in a hostile file; read_part checks */
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
  char *text = read_part(file, start, most < MOST_TEXT ? most : MOST_TEXT);
  return text ? ff_realloc(text, strlen(text) + 1) : NULL;
}

static void keep(char **place, char *text) {
  free(*place);
  *place = text;
}

static void add_needed(fatbin_report *report, char *name) {
  if (!name || report->needed_count == MOST_NEEDED) {
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
  Elf64_Dyn *entries = read_part(file, segment->p_offset, count * sizeof *entries);
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
    if (segment->p_type == PT_INTERP && segment->p_filesz && segment->p_filesz < MOST_TEXT)
      keep(&report->interpreter, read_part(file, segment->p_offset, segment->p_filesz));
  }
}

/* Does the dynamic symbol table (a file has at most one) leave this name to another object? */
static bool imports(const elf_file *file, const char *wanted) {
  uint32_t at = 0;
  while (at < file->section_count && file->sections[at].sh_type != SHT_DYNSYM) at++;
  if (at == file->section_count || file->sections[at].sh_link >= file->section_count) return false;
  const Elf64_Shdr *table = &file->sections[at], *names = &file->sections[table->sh_link];
  uint64_t count = table->sh_size / sizeof(Elf64_Sym);
  Elf64_Sym *symbols = read_part(file, table->sh_offset, count * sizeof *symbols);
  char *strings = names->sh_type == SHT_STRTAB ? read_part(file, names->sh_offset, names->sh_size) : NULL;
  size_t length = strlen(wanted) + 1; /* with its NUL: no strcmp, so that overlapping long strings cost nothing */
  bool found = false;
  for (uint64_t k = 0; symbols && strings && k < count && !found; k++)
    found = symbols[k].st_shndx == SHN_UNDEF && symbols[k].st_name < names->sh_size &&
            names->sh_size - symbols[k].st_name >= length && memcmp(strings + symbols[k].st_name, wanted, length) == 0;
  free(symbols);
  free(strings);
  return found;
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

static ff_status take_text(const fatbin_entry *entry, image_walk *walk, ff_error *error) {
  fatbin_ptx_texts *texts = walk->texts;
  fatbin_ptx_text text = {.arch = entry->arch, .suffix = entry->suffix, .image = walk->images};
  walk->text_bytes += entry->unpacked_bytes < MOST_PTX ? entry->unpacked_bytes : MOST_PTX;
  if (walk->text_bytes >= MOST_PTX) return ff_fail(error, FF_LIMIT, "more than %" PRIu64 " bytes of PTX", MOST_PTX);
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
    if (report && entry->kind == FATBIN_KIND_PTX) count_arch(entry->arch, &report->ptx, &report->ptx_lowest, &report->ptx_highest);
    if (report && entry->kind == FATBIN_KIND_ELF) count_arch(entry->arch, &report->machine_code, &report->code_lowest, &report->code_highest);
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
    if (walk->report && strcmp(section_name(file, section), "__nv_relfatbin") == 0) walk->report->relocatable = true;
    char *bytes = section->sh_size <= left ? read_part(file, section->sh_offset, section->sh_size) : NULL;
    if (!bytes) {
      ff_error why;
      ff_fail(&why, FF_PARSE, "section %s reaches beyond the file", section_name(file, section));
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
  char *bytes = kind == FATBIN_FILE_FATBIN ? read_part(file, 0, file->size) : NULL;
  ff_status status = bytes ? walk_images(bytes, file->size, walk, error) : FF_OK;
  free(bytes);
  return status;
}

/* ---- the two questions ---- */

static void read_script(const elf_file *file, fatbin_report *report) {
  uint64_t bytes = file->size - 2 < 256 ? file->size - 2 : 256;
  char *line = read_part(file, 2, bytes);
  if (!line) return;
  size_t start = strspn(line, " \t"), end = start + strcspn(line + start, "\n");
  while (end > start && strchr(" \t\r", line[end - 1])) end--;
  memmove(line, line + start, end - start);
  line[end - start] = '\0';
  report->interpreter = line;
}

static void read_elf(elf_file *file, fatbin_report *report) {
  if (!read_tables(file)) return;
  report->foreign = file->header.e_machine != OWN_MACHINE;
  report->no_sections = !file->section_count;
  read_segment_facts(file, report);
  bool registers = imports(file, "__cudaRegisterFatBinary");
  bool has_code = false;
  for (uint32_t i = 0; i < file->section_count; i++) has_code |= holds_fatbins(file, &file->sections[i]);
  report->runtime = registers || report->cudart ? FATBIN_RUNTIME_SHARED
                    : has_code && file->header.e_type != ET_REL ? FATBIN_RUNTIME_STATIC : FATBIN_RUNTIME_NONE;
}

ff_status fatbin_check_executable(const char *path, fatbin_report *report, ff_error *error) {
  elf_file file;
  *report = (fatbin_report){0};
  ff_status status = file_open(path, &file, error);
  if (status != FF_OK) return status;
  report->executable = access(path, X_OK) == 0;
  report->kind = file_kind(&file);
  if (report->kind == FATBIN_FILE_SCRIPT) read_script(&file, report);
  if (report->kind == FATBIN_FILE_ELF) read_elf(&file, report);
  walk_file(&file, report->kind, &(image_walk){.report = report}, NULL);
  file_close(&file);
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
  return ff_fail(error, FF_NOT_FOUND, "%s: its CUDA code is machine code only; nvcc -arch=sm_75 (or code=compute_75) embeds PTX", path);
}

ff_status fatbin_extract_ptx(const char *path, fatbin_ptx_texts *texts, ff_error *error) {
  elf_file file;
  *texts = (fatbin_ptx_texts){0};
  ff_status status = file_open(path, &file, error);
  if (status != FF_OK) return status;
  fatbin_file_kind kind = file_kind(&file);
  if (kind == FATBIN_FILE_ELF) read_tables(&file);
  image_walk walk = {.texts = texts};
  status = walk_file(&file, kind, &walk, error);
  file_close(&file);
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
