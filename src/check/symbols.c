/* SPDX-License-Identifier: Apache-2.0 */
/* Names of functions that a file does not export, from its symbol table (.symtab), which programs have unless they were
 * stripped.
 *
 * Offsets of the file are compared with its size before they are used. Files stay mapped: there are few. */
#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check/finding_report.h"

enum { FILES = 16 };

typedef struct symbols { /* of one file */
  char *path;
  const unsigned char *bytes;
  size_t size;
  const Elf64_Sym *table;
  size_t count;
  const char *names;
  size_t names_size;
} symbols;

static bool within(const symbols *s, uint64_t offset, uint64_t bytes) {
  return offset <= s->size && bytes <= s->size - offset;
}

static void find_table(symbols *s) {
  const Elf64_Ehdr *head = (const Elf64_Ehdr *)(const void *)s->bytes;
  if (!within(s, 0, sizeof *head) || memcmp(head->e_ident, ELFMAG, SELFMAG) || head->e_ident[EI_CLASS] != ELFCLASS64)
    return;
  if (head->e_shentsize != sizeof(Elf64_Shdr) || head->e_shoff % 8 ||
      !within(s, head->e_shoff, (uint64_t)head->e_shnum * sizeof(Elf64_Shdr)))
    return;
  const Elf64_Shdr *sections = (const Elf64_Shdr *)(const void *)(s->bytes + head->e_shoff);
  for (uint32_t n = 0; n < head->e_shnum; n++) {
    const Elf64_Shdr *table = &sections[n], *names = table->sh_link < head->e_shnum ? &sections[table->sh_link] : NULL;
    if (table->sh_type != SHT_SYMTAB || !names || table->sh_offset % 8) continue;
    if (!within(s, table->sh_offset, table->sh_size) || !within(s, names->sh_offset, names->sh_size)) continue;
    s->table = (const Elf64_Sym *)(const void *)(s->bytes + table->sh_offset);
    s->count = table->sh_size / sizeof(Elf64_Sym);
    s->names = (const char *)s->bytes + names->sh_offset;
    s->names_size = names->sh_size;
    return;
  }
}

static void open_file(symbols *s, const char *path) {
  s->path = ff_strdup(path);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  struct stat about;
  if (file < 0) return;
  if (fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0) {
    void *bytes = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (bytes != MAP_FAILED) {
      s->bytes = bytes;
      s->size = (size_t)about.st_size;
    }
  }
  close(file);
  if (s->bytes) find_table(s);
}

const char *check_symbol(const char *path, uint64_t address, uint64_t base) {
  static symbols files[FILES];
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  symbols *s = NULL;
  const char *found = NULL;
  pthread_mutex_lock(&lock);
  for (int n = 0; n < FILES && !s; n++) {
    if (!files[n].path) open_file(&files[n], path);
    if (!strcmp(files[n].path, path)) s = &files[n];
  }
  if (s && s->table) {
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)(const void *)s->bytes;
    uint64_t at = head->e_type == ET_EXEC ? address : address - base;
    for (size_t n = 0; n < s->count && !found; n++) {
      const Elf64_Sym *symbol = &s->table[n];
      bool holds = ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && at >= symbol->st_value &&
                   at - symbol->st_value < symbol->st_size;
      if (holds && symbol->st_name < s->names_size &&
          memchr(s->names + symbol->st_name, 0, s->names_size - symbol->st_name))
        found = s->names + symbol->st_name;
    }
  }
  pthread_mutex_unlock(&lock);
  return found;
}
