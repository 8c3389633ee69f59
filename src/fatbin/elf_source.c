/* SPDX-License-Identifier: Apache-2.0 */
/* Which source file a variable of an executable is from: in the symbol table the local symbols of a file stand behind
 * the file's own (STT_FILE). */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "fatbin/elf_read.h"

/* nvcc names what it makes of "FillKernel.cu" "tmpxft_00006fda_00000000-6_FillKernel.compute_90.cudafe1.cpp": cuts that
 * in place. */
static char *source_name(char *made) {
  if (strncmp(made, "tmpxft_", 7)) return made;
  char *name = strchr(made, '-');
  if (!name) return made;
  for (name++; isdigit((unsigned char)*name); name++) {}
  if (*name == '_') name++;
  char *end = strstr(name, ".cudafe1."), *arch = strstr(name, ".compute_");
  if (arch && (!end || arch < end)) end = arch;
  if (!end || end == name) return made;
  strcpy(end, ".cu"); /* shorter than what stood there */
  return name;
}

static const char *symbol_name(const char *names, uint64_t bytes, const Elf64_Sym *symbol) {
  return symbol->st_name < bytes ? names + symbol->st_name : ""; /* elf_part ends the names with a NUL */
}

static char *search(const Elf64_Sym *symbols, uint64_t count, const char *names, uint64_t bytes, uint64_t address) {
  const char *file = NULL;
  for (uint64_t i = 0; i < count; i++) {
    const Elf64_Sym *symbol = &symbols[i];
    if (ELF64_ST_TYPE(symbol->st_info) == STT_FILE) file = symbol_name(names, bytes, symbol);
    if (ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT || ELF64_ST_BIND(symbol->st_info) != STB_LOCAL) continue;
    if (symbol->st_value == address && file && *file) return strdup(file);
  }
  return NULL;
}

char *elf_source_of(const char *path, uint64_t address, uint64_t base) {
  elf_file file;
  char *found = NULL;
  if (elf_open(path, &file, NULL)) return NULL;
  const Elf64_Shdr *table =
      elf_kind(&file) == FATBIN_FILE_ELF && elf_tables(&file) ? elf_section(&file, SHT_SYMTAB) : NULL;
  if (table && table->sh_link < file.section_count) {
    const Elf64_Shdr *strings = &file.sections[table->sh_link];
    Elf64_Sym *symbols = elf_part(&file, table->sh_offset, table->sh_size);
    char *names = elf_part(&file, strings->sh_offset, strings->sh_size);
    uint64_t wanted = file.header.e_type == ET_EXEC ? address : address - base;
    if (symbols && names) found = search(symbols, table->sh_size / sizeof *symbols, names, strings->sh_size, wanted);
    free(symbols);
    free(names);
  }
  elf_close(&file);
  if (found) {
    char *name = source_name(found);
    memmove(found, name, strlen(name) + 1);
  }
  return found;
}
