/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/linked_object.h"

#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fatbin/fatbin.h"

typedef struct bytes {
  const unsigned char *at;
  size_t size;
} bytes;

typedef struct search {
  linked_object_take *take; /* NULL: they are counted */
  void *to;
  size_t found;
  bool code;      /* an object has fat binaries, and none with PTX */
  bool link_code; /* and they are for a link */
} search;

#define ARCHIVE_START "!<arch>\n"
enum { ARCHIVE_START_BYTES = 8, MEMBER_BYTES = 60, MEMBER_SIZE_AT = 48, IMAGE_ALIGNMENT = 8 };

/* `size` bytes at `offset`; false: the file has not so many. */
static bool part(bytes of, uint64_t offset, uint64_t size, bytes *out) {
  if (offset > of.size || size > of.size - offset) return false;
  *out = (bytes){of.at + offset, size};
  return true;
}

static bool copy(bytes of, uint64_t offset, void *to, size_t size) {
  bytes from;
  if (!part(of, offset, size, &from)) return false;
  memcpy(to, from.at, size);
  return true;
}

/* An entry: u16 kind, u32 at 4 its header's size, u64 at 8 its payload's (fatbin/fatbin.h). */
static bool has_ptx(bytes image) {
  uint16_t kind, start;
  uint32_t header;
  uint64_t payload;
  if (!copy(image, 6, &start, sizeof start)) return false;
  for (uint64_t at = start; copy(image, at, &kind, sizeof kind); at += header + payload) {
    if (kind == FATBIN_KIND_PTX) return true;
    if (!copy(image, at + 4, &header, sizeof header) || !copy(image, at + 8, &payload, sizeof payload)) return false;
    if (header < FATBIN_ENTRY_BYTES || payload > image.size) return false;
  }
  return false;
}

/* Has it fat binaries without PTX? Those with PTX are taken. */
static bool search_section(search *s, bytes section) {
  bool code = false;
  uint32_t magic;
  uint16_t header;
  uint64_t size;
  for (uint64_t at = 0, used; copy(section, at, &magic, sizeof magic); at += used) {
    bytes image;
    used = IMAGE_ALIGNMENT; /* of what is between two */
    if (magic != FATBIN_MAGIC || !copy(section, at + 6, &header, sizeof header) ||
        !copy(section, at + 8, &size, sizeof size))
      continue;
    if (header < FATBIN_HEADER_BYTES || size > section.size || !part(section, at, header + size, &image)) break;
    if (has_ptx(image)) {
      if (s->take) s->take(s->to, image.at, image.size);
      s->found++;
    } else if (image.size > header) code = true;
    used = (header + size + IMAGE_ALIGNMENT - 1) & ~(uint64_t)(IMAGE_ALIGNMENT - 1);
  }
  return code;
}

static bool is_named(bytes names, uint32_t at, const char *name) {
  bytes found;
  return part(names, at, strlen(name) + 1, &found) && !memcmp(found.at, name, found.size);
}

/* What nvcc -dlink leaves is in .nv_fatbin: machine code that is linked already, and no part of another link. */
static void search_object(search *s, bytes file) {
  size_t before = s->found;
  bool code = false, link_code = false;
  Elf64_Ehdr header;
  Elf64_Shdr names_at, at;
  bytes names, section;
  if (!copy(file, 0, &header, sizeof header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof at || header.e_shoff > file.size)
    return;
  if (!copy(file, header.e_shoff + (uint64_t)header.e_shstrndx * sizeof at, &names_at, sizeof names_at) ||
      !part(file, names_at.sh_offset, names_at.sh_size, &names))
    return;
  for (uint64_t i = 0; i < header.e_shnum && copy(file, header.e_shoff + i * sizeof at, &at, sizeof at); i++) {
    if (at.sh_type == SHT_NOBITS || !part(file, at.sh_offset, at.sh_size, &section)) continue;
    if (is_named(names, at.sh_name, "__nv_relfatbin")) link_code |= search_section(s, section);
    else if (is_named(names, at.sh_name, ".nv_fatbin")) code |= search_section(s, section);
  }
  if (s->found != before) return;
  s->code |= code || link_code;
  s->link_code |= link_code;
}

/* NVIDIA's libcudadevrt.a, whose functions the virtual GPU has itself. Names of more than 15 characters are in the
 * member "//", each with a slash behind it, and the member itself is called by its name's place there: "/123". */
static bool is_device_runtime(const char *called, bytes names) {
  static const char name[] = "cuda_device_runtime.o/";
  bytes found;
  return called[0] == '/' && part(names, strtoull(called + 1, NULL, 10), sizeof name - 1, &found) &&
         !memcmp(found.at, name, found.size);
}

static void search_archive(search *s, bytes file) {
  char header[MEMBER_BYTES + 1] = {0};
  bytes member, names = {0};
  for (uint64_t at = ARCHIVE_START_BYTES; copy(file, at, header, MEMBER_BYTES);) {
    uint64_t size = strtoull(header + MEMBER_SIZE_AT, NULL, 10);
    if (!part(file, at + MEMBER_BYTES, size, &member)) return;
    if (!memcmp(header, "// ", 3)) names = member;
    else if (!is_device_runtime(header, names)) search_object(s, member);
    at += MEMBER_BYTES + size + size % 2;
  }
}

bool linked_object_is_archive(const void *file, size_t size) {
  return size >= ARCHIVE_START_BYTES && !memcmp(file, ARCHIVE_START, ARCHIVE_START_BYTES);
}

static search search_file(const void *file, size_t size, linked_object_take *take, void *to) {
  search s = {.take = take, .to = to};
  bytes all = {file, size};
  if (linked_object_is_archive(file, size)) search_archive(&s, all);
  else search_object(&s, all);
  return s;
}

size_t linked_object_images(const void *file, size_t size, linked_object_take *take, void *to) {
  return search_file(file, size, take, to).found;
}

linked_object_result linked_object_add(const void *file, size_t size, size_t room, linked_object_take *take, void *to) {
  search s = search_file(file, size, NULL, NULL);
  bool none = !s.found && (s.code || !linked_object_is_archive(file, size));
  if (none || s.link_code) return LINKED_OBJECT_CODE;
  if (s.found > room) return LINKED_OBJECT_MANY;
  linked_object_images(file, size, take, to);
  return LINKED_OBJECT_ADDED;
}
