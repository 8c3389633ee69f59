/* SPDX-License-Identifier: Apache-2.0 */
/* Finding functions in an ELF file's .symtab, or .dynsym if it was stripped (functions.h).
 *
 * Room is counted to the next address at which any symbol with code stands: compilers align functions, so it is a
 * little more than the function's own size. */
#include "fatbin/functions.h"

#include <stdlib.h>

#include "base/memory.h"
#include "fatbin/elf_read.h"

#define MAX_FUNCTIONS 65536u /* wanted ones of one file */

/* The section that a function lies in; NULL: none with code. */
static const Elf64_Shdr *code_of(const elf_file *file, const Elf64_Sym *symbol) {
  if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= file->section_count) return NULL;
  const Elf64_Shdr *section = &file->sections[symbol->st_shndx];
  uint64_t end = section->sh_addr + section->sh_size;
  if (!(section->sh_flags & SHF_EXECINSTR) || end < section->sh_addr) return NULL;
  return symbol->st_value >= section->sh_addr && symbol->st_value < end ? section : NULL;
}

static bool is_function(const elf_file *file, const Elf64_Sym *symbol) {
  return ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && code_of(file, symbol);
}

static int compare(const void *a, const void *b) {
  uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
  return left < right ? -1 : left > right;
}

/* The least of `sorted` above `address`, or `end`. */
static uint64_t next_above(const uint64_t *sorted, uint64_t count, uint64_t address, uint64_t end) {
  uint64_t low = 0, high = count;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (sorted[middle] <= address) low = middle + 1;
    else high = middle;
  }
  return low < count && sorted[low] < end ? sorted[low] : end;
}

static void find(const elf_file *file, const elf_symbols *symbols, bool (*wanted)(const char *name),
                 fatbin_functions *found) {
  for (uint64_t i = 0; i < symbols->count && found->count < MAX_FUNCTIONS; i++) {
    const Elf64_Sym *symbol = &symbols->items[i];
    if (symbol->st_name >= symbols->names_size || !is_function(file, symbol) ||
        !wanted(symbols->names + symbol->st_name))
      continue;
    const Elf64_Shdr *code = code_of(file, symbol);
    if (found->count % 256 == 0) found->items = ff_realloc(found->items, (found->count + 256) * sizeof *found->items);
    found->items[found->count++] =
        (fatbin_function){symbols->names + symbol->st_name, symbol->st_value, code->sh_addr + code->sh_size};
  }
}

/* `room` has the end of the section until now. */
static void find_room(const elf_file *file, const elf_symbols *symbols, fatbin_functions *found) {
  uint64_t *addresses = ff_alloc((size_t)(symbols->count + 1) * sizeof *addresses), count = 0;
  for (uint64_t i = 0; i < symbols->count; i++)
    if (code_of(file, &symbols->items[i])) addresses[count++] = symbols->items[i].st_value;
  qsort(addresses, (size_t)count, sizeof *addresses, compare);
  for (uint32_t i = 0; i < found->count; i++) {
    fatbin_function *function = &found->items[i];
    function->room = next_above(addresses, count, function->address, function->room) - function->address;
  }
  free(addresses);
}

ff_status fatbin_functions_find(const char *path, bool (*wanted)(const char *name), fatbin_functions *found,
                                ff_error *error) {
  elf_file file;
  *found = (fatbin_functions){0};
  ff_status status = elf_open(path, &file, error);
  if (status) return status;
  elf_symbols symbols = {0};
  if (elf_kind(&file) == FATBIN_FILE_ELF && elf_tables(&file))
    symbols = elf_symbols_read(&file, elf_section(&file, SHT_SYMTAB) ? SHT_SYMTAB : SHT_DYNSYM);
  if (symbols.count) find(&file, &symbols, wanted, found);
  if (found->count) find_room(&file, &symbols, found);
  if (!symbols.count) status = ff_fail(error, FF_NOT_FOUND, "%s: has no symbol table", path);
  found->names = symbols.names;
  free(symbols.items);
  elf_close(&file);
  return status;
}

void fatbin_functions_free(fatbin_functions *found) {
  free(found->items);
  free(found->names);
  *found = (fatbin_functions){0};
}
