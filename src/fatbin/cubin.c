/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the functions in a cubin: each has a section ".text.NAME" (cubin.h). */
#include "fatbin/cubin.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

typedef struct cubin_bytes {
  const unsigned char *data;
  size_t size;
} cubin_bytes;

static bool take(cubin_bytes image, uint64_t offset, void *to, size_t bytes) {
  if (offset > image.size || bytes > image.size - offset) return false;
  memcpy(to, image.data + offset, bytes);
  return true;
}

/* Up to the end of the section table: code and names are before it, and nothing behind it is needed. */
static size_t size_in_header(const void *image) {
  Elf64_Ehdr header;
  memcpy(&header, image, sizeof header);
  if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_shoff > UINT32_MAX) return 0;
  return (size_t)header.e_shoff + (size_t)header.e_shnum * sizeof(Elf64_Shdr);
}

static void take_section(cubin_bytes image, const Elf64_Shdr *section, const Elf64_Shdr *names,
                         void (*each)(void *context, const char *name, size_t length), void *context) {
  static const char prefix[] = ".text.";
  const size_t skipped = sizeof prefix - 1;
  if (section->sh_type != SHT_PROGBITS || section->sh_name >= names->sh_size) return;
  const char *name = (const char *)image.data + names->sh_offset + section->sh_name;
  size_t length = strnlen(name, (size_t)(names->sh_size - section->sh_name));
  if (length > skipped && !memcmp(name, prefix, skipped)) each(context, name + skipped, length - skipped);
}

void cubin_functions(const void *image, size_t size, void (*each)(void *context, const char *name, size_t length),
                     void *context) {
  cubin_bytes bytes = {image, size ? size : size_in_header(image)};
  Elf64_Ehdr header;
  Elf64_Shdr names, section;
  if (!take(bytes, 0, &header, sizeof header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return;
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof section) return;
  if (header.e_shoff > bytes.size || header.e_shstrndx >= header.e_shnum) return;
  if (!take(bytes, header.e_shoff + header.e_shstrndx * sizeof section, &names, sizeof names)) return;
  if (names.sh_offset > bytes.size || names.sh_size > bytes.size - names.sh_offset) return;
  for (uint32_t i = 0; i < header.e_shnum; i++)
    if (take(bytes, header.e_shoff + i * sizeof section, &section, sizeof section))
      take_section(bytes, &section, &names, each, context);
}
