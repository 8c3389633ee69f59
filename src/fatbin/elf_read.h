/* SPDX-License-Identifier: Apache-2.0 */
/* Reading ELF files part by part: for elf.c.
 *
 * The file is not trusted. A part is copied out of the file before it is looked at, and only
 * if the file has all of it; a table that the file does not have, or that makes no sense, is empty. */
#ifndef FF_FATBIN_ELF_READ_H
#define FF_FATBIN_ELF_READ_H

#include <elf.h>

#include "fatbin/elf.h"

typedef struct elf_file {
  const char *path;
  int fd;
  uint64_t size;
  Elf64_Ehdr header;
  Elf64_Shdr *sections;
  uint32_t section_count;
  char *section_names; /* NUL-terminated at section_names_size */
  uint64_t section_names_size;
  Elf64_Phdr *segments;
  uint32_t segment_count;
} elf_file;

/* Copies `bytes` bytes at `offset`, plus a NUL. NULL: the file does not have them. The caller frees it. */
void *elf_part(const elf_file *file, uint64_t offset, uint64_t bytes);

/* Only of regular files. After a success elf_close; a failure leaves nothing open. */
ff_status elf_open(const char *path, elf_file *file, ff_error *error);
void elf_close(elf_file *file);

fatbin_file_kind elf_kind(const elf_file *file);
/* Header, sections and segments of a FATBIN_FILE_ELF. False: not even a header. */
bool elf_tables(elf_file *file);
const char *elf_section_name(const elf_file *file, const Elf64_Shdr *section); /* "": it has none */
/* The first section of this type (SHT_*); NULL: none. */
const Elf64_Shdr *elf_section(const elf_file *file, uint32_t type);
/* Does the symbol table of this type (SHT_SYMTAB, SHT_DYNSYM) have the name, defined in the file or left to another
 * one? */
bool elf_has_symbol(const elf_file *file, uint32_t type, const char *name, bool defined);

#endif
