/* SPDX-License-Identifier: Apache-2.0 */
/* Reading ELF files part by part (elf_read.h). */
#include "fatbin/elf_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

#define MAX_PART (UINT64_C(1) << 32) /* bytes of one section */

void *elf_part(const elf_file *file, uint64_t offset, uint64_t bytes) {
  if (offset > file->size || bytes > file->size - offset || bytes > MAX_PART) return NULL;
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

ff_status elf_open(const char *path, elf_file *file, ff_error *error) {
  *file = (elf_file){.path = path, .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file->fd < 0) return ff_fail(error, errno == ENOENT ? FF_NOT_FOUND : FF_IO, "%s: %s", path, strerror(errno));
  struct stat about;
  if (fstat(file->fd, &about) != 0 || !S_ISREG(about.st_mode)) {
    close(file->fd);
    return ff_fail(error, FF_IO, "%s: not a regular file", path);
  }
  file->size = (uint64_t)about.st_size;
  return FF_OK;
}

void elf_close(elf_file *file) {
  free(file->sections);
  free(file->section_names);
  free(file->segments);
  close(file->fd);
}

fatbin_file_kind elf_kind(const elf_file *file) {
  unsigned char start[16] = {0};
  uint64_t bytes = file->size < sizeof start ? file->size : sizeof start;
  void *part = elf_part(file, 0, bytes);
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
  Elf64_Shdr *first = elf_part(file, header->e_shoff, sizeof *first);
  if (!first) return;
  if (!count) count = first->sh_size; /* more than 65,279 sections: the count is in the first one */
  if (names == SHN_XINDEX) names = first->sh_link;
  free(first);
  if (count > file->size / sizeof(Elf64_Shdr)) return;
  file->sections = elf_part(file, header->e_shoff, count * sizeof(Elf64_Shdr));
  if (!file->sections) return;
  file->section_count = (uint32_t)count;
  if (names >= count || file->sections[names].sh_type == SHT_NOBITS) return;
  file->section_names_size = file->sections[names].sh_size;
  file->section_names = elf_part(file, file->sections[names].sh_offset, file->section_names_size);
}

static void read_segments(elf_file *file) {
  const Elf64_Ehdr *header = &file->header;
  if (!header->e_phoff || header->e_phentsize != sizeof(Elf64_Phdr)) return;
  file->segments = elf_part(file, header->e_phoff, header->e_phnum * sizeof(Elf64_Phdr));
  if (file->segments) file->segment_count = header->e_phnum;
}

bool elf_tables(elf_file *file) {
  Elf64_Ehdr *header = elf_part(file, 0, sizeof *header);
  if (!header) return false;
  file->header = *header;
  free(header);
  read_sections(file);
  read_segments(file);
  return true;
}

const char *elf_section_name(const elf_file *file, const Elf64_Shdr *section) {
  return file->section_names && section->sh_name < file->section_names_size ? file->section_names + section->sh_name
                                                                            : "";
}

const Elf64_Shdr *elf_section(const elf_file *file, uint32_t type) {
  for (uint32_t i = 0; i < file->section_count; i++)
    if (file->sections[i].sh_type == type) return &file->sections[i];
  return NULL;
}

/* ---- symbols ---- */

typedef struct elf_symbols { /* a copy of a symbol table; all NULL and 0: the file has none */
  Elf64_Sym *items;
  uint64_t count;
  char *names; /* NUL-terminated at names_size */
  uint64_t names_size;
} elf_symbols;

static elf_symbols elf_symbols_read(const elf_file *file, uint32_t type) {
  elf_symbols symbols = {0};
  const Elf64_Shdr *table = elf_section(file, type); /* a file has at most one of each type */
  if (!table || table->sh_link >= file->section_count || file->sections[table->sh_link].sh_type != SHT_STRTAB)
    return symbols;
  const Elf64_Shdr *names = &file->sections[table->sh_link];
  symbols.names = elf_part(file, names->sh_offset, names->sh_size);
  symbols.names_size = symbols.names ? names->sh_size : 0;
  uint64_t count = table->sh_size / sizeof(Elf64_Sym);
  symbols.items = symbols.names ? elf_part(file, table->sh_offset, count * sizeof(Elf64_Sym)) : NULL;
  symbols.count = symbols.items ? count : 0;
  return symbols;
}

static void elf_symbols_free(elf_symbols *symbols) {
  free(symbols->items);
  free(symbols->names);
}

bool elf_has_symbol(const elf_file *file, uint32_t type, const char *name, bool defined) {
  elf_symbols symbols = elf_symbols_read(file, type);
  size_t length = strlen(name) + 1; /* with its NUL: no strcmp, so that overlapping long strings cost nothing */
  bool found = false;
  for (uint64_t i = 0; i < symbols.count && !found; i++) {
    const Elf64_Sym *symbol = &symbols.items[i];
    found = (symbol->st_shndx != SHN_UNDEF) == defined && symbol->st_name < symbols.names_size &&
            symbols.names_size - symbol->st_name >= length &&
            memcmp(symbols.names + symbol->st_name, name, length) == 0;
  }
  elf_symbols_free(&symbols);
  return found;
}
