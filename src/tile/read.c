/* SPDX-License-Identifier: Apache-2.0 */
/* Bytecode to module: the file, its sections and tables (read.h).
 *
 *   7f "TileIR" 0   major   minor   tag (2 bytes)   section...   0
 *   section: number (bit 7: aligned), size, if aligned: alignment and filler up to it, contents */
#include "tile/read.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { HEADER_BYTES = 12 };
enum {
  SECTION_END,
  SECTION_STRINGS,
  SECTION_FUNCTIONS,
  SECTION_LINES,
  SECTION_CONSTANTS,
  SECTION_TYPES,
  SECTION_GLOBALS,
  SECTION_PRODUCER,
  SECTION_COUNT
};
enum { ENTRY = 2, HAS_HINTS = 4 }; /* of a function's flags */

static const unsigned char magic[8] = "\177TileIR"; /* its NUL too */

/* ---- bytes ---- */

void reader_fail(tile_reader *r, tile_span *span, size_t at, ff_status status, const char *format, ...) {
  if (span) span->at = span->end;
  if (r->status != FF_OK) return;
  r->status = status;
  if (r->quiet) return;
  va_list args;
  char place[160];
  va_start(args, format);
  ff_vfail(r->error, status, format, args);
  va_end(args);
  snprintf(place, sizeof place, "Tile IR bytecode, byte %zu (%s)", at, r->part);
  ff_fail_at(r->error, status, place);
}

uint8_t reader_byte(tile_reader *r, tile_span *span) { return (uint8_t)reader_fixed(r, span, 1); }

uint64_t reader_fixed(tile_reader *r, tile_span *span, uint32_t width) {
  uint64_t value = 0;
  if (r->status != FF_OK) return 0;
  if (span->end - span->at < width) {
    reader_fail(r, span, span->at, FF_PARSE, "ends in the middle");
    return 0;
  }
  for (uint32_t i = 0; i < width; i++) value |= (uint64_t)r->bytes[span->at++] << 8 * i;
  return value;
}

/* Up to 65 bits; the 65th goes to *high. */
static uint64_t varint65(tile_reader *r, tile_span *span, bool *high) {
  uint64_t value = 0;
  size_t start = span->at;
  for (uint32_t shift = 0; shift <= 63; shift += 7) {
    uint8_t byte = reader_byte(r, span);
    value |= (uint64_t)(byte & 0x7f) << shift;
    *high = shift == 63 && (byte & 2);
    if (shift == 63 && byte > 3) break;
    if (!(byte & 0x80)) return r->status == FF_OK ? value : 0;
  }
  reader_fail(r, span, start, FF_PARSE, "a number is too long");
  return 0;
}

uint64_t reader_varint(tile_reader *r, tile_span *span) {
  bool high;
  size_t start = span->at;
  uint64_t value = varint65(r, span, &high);
  if (!high) return value;
  reader_fail(r, span, start, FF_PARSE, "a number is too long");
  return 0;
}

int64_t reader_signed(tile_reader *r, tile_span *span) {
  bool high;
  uint64_t value = varint65(r, span, &high);
  if (high) return (int64_t)(value >> 1 | UINT64_C(1) << 63);
  return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}

uint32_t reader_count(tile_reader *r, tile_span *span, size_t least) {
  size_t start = span->at;
  uint64_t count = reader_varint(r, span);
  if (count <= (span->end - span->at) / least && count <= INT32_MAX) return (uint32_t)count;
  reader_fail(r, span, start, FF_PARSE, "says that %" PRIu64 " items follow, more than there is room for", count);
  return 0;
}

uint32_t reader_below(tile_reader *r, tile_span *span, uint64_t limit, const char *what) {
  size_t start = span->at;
  uint64_t value = reader_varint(r, span);
  if (r->status != FF_OK) return 0;
  if (value < limit) return (uint32_t)value;
  reader_fail(r, span, start, FF_PARSE, "there is no %s %" PRIu64 " (there are %" PRIu64 ")", what, value, limit);
  return 0;
}

void reader_align(tile_reader *r, tile_span *span, size_t start, size_t alignment) {
  size_t filler = (alignment - (span->at - start) % alignment) % alignment;
  if (filler > span->end - span->at) reader_fail(r, span, span->at, FF_PARSE, "ends in the middle");
  else span->at += filler;
}

/* ---- tables ---- */

static uint64_t start_of_item(tile_reader *r, const tile_table *table, uint64_t index) {
  tile_span place = {table->starts + (size_t)index * table->width, table->items.at};
  return reader_fixed(r, &place, table->width);
}

void reader_table(tile_reader *r, tile_span section, uint32_t width, tile_table *table) {
  size_t start = section.at;
  uint64_t last = 0;
  *table = (tile_table){.width = width};
  if (!section.end) return; /* absent */
  uint32_t count = reader_count(r, &section, width);
  if (!count) return;
  reader_align(r, &section, start, width);
  if (r->status == FF_OK && (section.end - section.at) / width < count)
    reader_fail(r, NULL, section.at, FF_PARSE, "has no room for the starts of %u items", count);
  if (r->status != FF_OK) return;
  *table = (tile_table){count, section.at, width, {section.at + (size_t)count * width, section.end}};
  for (uint32_t i = 0; i < count && r->status == FF_OK; i++) {
    uint64_t item = start_of_item(r, table, i);
    if (item < last || item > table->items.end - table->items.at)
      reader_fail(r, NULL, table->starts + (size_t)i * width, FF_PARSE, "item %u starts where it cannot", i);
    last = item;
  }
}

tile_span reader_item(tile_reader *r, const tile_table *table, uint64_t index) {
  tile_span all = table->items;
  if (r->status != FF_OK || index >= table->count) return (tile_span){all.end, all.end};
  size_t from = all.at + (size_t)start_of_item(r, table, index);
  size_t to = index + 1 < table->count ? all.at + (size_t)start_of_item(r, table, index + 1) : all.end;
  return (tile_span){from, to};
}

const char *reader_string_at(tile_reader *r, uint64_t index) {
  if (r->status != FF_OK || index >= r->strings.count) return "";
  if (!r->string_texts[index]) {
    tile_span item = reader_item(r, &r->strings, index);
    r->string_texts[index] = ff_arena_strndup(r->arena, (const char *)r->bytes + item.at, item.end - item.at);
  }
  return r->string_texts[index];
}

const char *reader_string(tile_reader *r, tile_span *span) {
  return reader_string_at(r, reader_below(r, span, r->strings.count, "string"));
}

/* ---- constants ---- */

static void open_constants(tile_reader *r, tile_span section) {
  reader_table(r, section, 8, &r->constants);
  r->constant_items = ff_arena_alloc(r->arena, (size_t)r->constants.count * sizeof *r->constant_items);
  for (uint64_t i = 0; i < r->constants.count && r->status == FF_OK; i++) {
    tile_span item = reader_item(r, &r->constants, i);
    uint32_t size = reader_count(r, &item, 1);
    r->constant_items[i].raw = (tile_span){item.at, item.at + size};
  }
}

static const unsigned char *unpack_bits(tile_reader *r, tile_constant *c) {
  if (c->bits) return c->bits;
  size_t size = c->raw.end - c->raw.at;
  unsigned char *bits = ff_arena_alloc(r->arena, 8 * size);
  for (size_t i = 0; i < 8 * size; i++) bits[i] = r->bytes[c->raw.at + i / 8] >> i % 8 & 1;
  return c->bits = bits;
}

static const unsigned char *keep_nibbles(tile_reader *r, tile_constant *c) {
  if (c->nibbles) return c->nibbles;
  size_t size = c->raw.end - c->raw.at;
  unsigned char *nibbles = ff_arena_alloc(r->arena, size);
  for (size_t i = 0; i < size; i++) nibbles[i] = r->bytes[c->raw.at + i] & 15;
  return c->nibbles = nibbles;
}

/* The 19 bits of a tf32 are the upper ones of an f32. */
static const unsigned char *widen_tf32(tile_reader *r, tile_constant *c) {
  if (c->words) return c->words;
  size_t count = (c->raw.end - c->raw.at) / 3;
  unsigned char *words = ff_arena_alloc(r->arena, 4 * count);
  for (size_t i = 0; i < count; i++) {
    tile_span three = {c->raw.at + 3 * i, c->raw.end};
    uint64_t bits = reader_fixed(r, &three, 3) << 13;
    for (size_t b = 0; b < 4; b++) words[4 * i + b] = (unsigned char)(bits >> 8 * b);
  }
  return c->words = words;
}

/* Whether `have` bytes are `count` elements of `stored` bytes, or one for all. */
static bool fits(size_t have, size_t stored, uint32_t count, bool *splat) {
  *splat = have == stored;
  return *splat || have == stored * count;
}

static bool constant_bits(tile_reader *r, tile_constant *c, uint32_t count, const unsigned char **data, bool *splat) {
  size_t have = c->raw.end - c->raw.at;
  uint8_t first = have ? r->bytes[c->raw.at] : 1;
  *splat = have == 1 && (first == 0 || first == 0xff);
  if (!*splat && have != (count + 7) / 8) return false;
  *data = unpack_bits(r, c);
  return true;
}

void reader_constant(tile_reader *r, tile_span *span, const tile_type *type, const unsigned char **data, size_t *bytes,
                     bool *splat) {
  size_t start = span->at;
  uint32_t index = reader_below(r, span, r->constants.count, "constant");
  if (r->status != FF_OK || !type) return;
  if (type->kind != TILE_KIND_TILE || type->scalar == TILE_POINTER) {
    reader_fail(r, span, start, FF_PARSE, "a constant that is no tile of numbers");
    return;
  }
  tile_constant *c = &r->constant_items[index];
  size_t have = c->raw.end - c->raw.at, width = tile_scalar_bits(type->scalar) / 8;
  uint32_t count = tile_elements(type);
  bool good;
  if (type->scalar == TILE_I1) {
    good = constant_bits(r, c, count, data, splat);
  } else if (width == 0) {
    good = fits(have, 1, count, splat);
    *data = good ? keep_nibbles(r, c) : NULL;
  } else if (type->scalar == TILE_TF32) {
    good = fits(have, 3, count, splat);
    *data = good ? widen_tf32(r, c) : NULL;
  } else {
    good = fits(have, width, count, splat);
    *data = r->bytes + c->raw.at; /* the module's own copy */
  }
  *bytes = (width ? width : 1) * (*splat ? 1 : (size_t)count);
  if (!good)
    reader_fail(r, span, start, FF_PARSE, "constant %u has %zu bytes, which is neither %u elements nor one", index,
                have, count);
}

/* ---- functions and globals ---- */

static void add_name(tile_reader *r, tile_span *span, size_t at, ff_map *names, const char *name) {
  if (r->status != FF_OK) return;
  if (!*name) reader_fail(r, span, at, FF_PARSE, "has no name");
  else if (ff_map_get(names, name)) reader_fail(r, span, at, FF_PARSE, "a second %s", name);
  else ff_map_set(names, name, r);
}

static void read_function(tile_reader *r, tile_span *span, tile_function *f, ff_map *names) {
  size_t start = span->at;
  r->part = "a function";
  f->name = reader_string(r, span);
  add_name(r, span, start, names, f->name);
  f->type = reader_type(r, span);
  if (f->type && f->type->kind != TILE_KIND_FUNCTION)
    reader_fail(r, span, start, FF_PARSE, "%s has the type of a value", f->name);
  uint8_t flags = reader_byte(r, span);
  f->entry = flags & ENTRY;
  if (r->status == FF_OK && !f->entry)
    reader_fail(r, span, start, FF_UNSUPPORTED, "%s is not a kernel but a function", f->name);
  uint64_t place = reader_varint(r, span);
  if (r->minor >= 5 || (flags & HAS_HINTS)) reader_hints(r, span, f);
  if (r->minor >= 5) reader_skip_attribute(r, span); /* of the arguments */
  uint32_t size = reader_count(r, span, 1);
  if (r->status != FF_OK) return;
  tile_span body = {span->at, span->at + size};
  span->at += size;
  reader_body(r, body, f, place);
}

static void read_functions(tile_reader *r, tile_span section, ff_map *names) {
  r->part = "functions";
  uint32_t count = reader_count(r, &section, 5); /* name, type, flags, place, size */
  r->module->functions = ff_arena_alloc(r->arena, count * sizeof(tile_function));
  r->module->function_count = count;
  for (uint32_t i = 0; i < count && r->status == FF_OK; i++)
    read_function(r, &section, &r->module->functions[i], names);
}

static void read_globals(tile_reader *r, tile_span section, ff_map *names) {
  r->part = "globals";
  uint32_t count = reader_count(r, &section, r->minor >= 3 ? 6 : 4);
  r->module->globals = ff_arena_alloc(r->arena, count * sizeof(tile_global));
  r->module->global_count = count;
  for (uint32_t i = 0; i < count && r->status == FF_OK; i++) {
    tile_global *g = &r->module->globals[i];
    size_t start = section.at;
    g->name = reader_string(r, &section);
    add_name(r, &section, start, names, g->name);
    g->type = reader_type(r, &section);
    reader_constant(r, &section, g->type, &g->data, &g->data_bytes, &g->data_splat);
    g->alignment = reader_varint(r, &section);
    if (g->alignment & (g->alignment - 1))
      reader_fail(r, &section, start, FF_PARSE, "an alignment of %" PRIu64 " bytes", g->alignment);
    if (r->minor >= 3) g->hidden = reader_below(r, &section, 2, "visibility");
    if (r->minor >= 3) g->constant = reader_varint(r, &section) != 0;
  }
}

/* ---- the file ---- */

bool tile_is_bytecode(const void *bytes, size_t size) {
  if (size && size < sizeof magic) return false;
  for (size_t i = 0; i < sizeof magic; i++)
    if (((const unsigned char *)bytes)[i] != magic[i]) return false;
  return true;
}

static void read_header(tile_reader *r, tile_span *file) {
  r->part = "header";
  if (file->end < HEADER_BYTES || !tile_is_bytecode(r->bytes, file->end)) {
    reader_fail(r, file, 0, FF_PARSE, "this is no Tile IR bytecode");
    return;
  }
  file->at = sizeof magic;
  uint8_t major = reader_byte(r, file);
  r->minor = reader_byte(r, file);
  uint64_t tag = reader_fixed(r, file, 2); /* 1: of a preview, whose operations have numbers of their own */
  if (major != 13 || r->minor < 1 || r->minor > 5 || tag > 1)
    reader_fail(r, file, sizeof magic, FF_UNSUPPORTED, "version %u.%u.%" PRIu64 " is not known; 13.1 to 13.5 are",
                major, r->minor, tag);
}

/* The next section's number; 0 at the end. */
static uint32_t next_section(tile_reader *r, tile_span *file, tile_span *contents) {
  size_t start = file->at;
  uint8_t first = reader_byte(r, file);
  uint32_t number = first & 0x7f;
  if (r->status != FF_OK || first == SECTION_END) return SECTION_END;
  if (number == SECTION_END || number >= SECTION_COUNT) {
    reader_fail(r, file, start, number ? FF_UNSUPPORTED : FF_PARSE, "a section of number %u", number);
    return SECTION_END;
  }
  uint64_t size = reader_varint(r, file);
  if (first & 0x80) {
    uint64_t alignment = reader_varint(r, file);
    if (!alignment || (alignment & (alignment - 1)) || alignment > 4096)
      reader_fail(r, file, start, FF_PARSE, "a section aligned to %" PRIu64 " bytes", alignment);
    else reader_align(r, file, 0, (size_t)alignment);
  }
  if (size > file->end - file->at)
    reader_fail(r, file, start, FF_PARSE, "section %u has %" PRIu64 " bytes, more than the file", number, size);
  if (r->status != FF_OK) return SECTION_END;
  *contents = (tile_span){file->at, file->at + (size_t)size};
  file->at += (size_t)size;
  return number;
}

/* All sections; those that are absent stay empty. *file is left behind the end marker. */
static void find_sections(tile_reader *r, tile_span *file, tile_span sections[SECTION_COUNT]) {
  bool seen[SECTION_COUNT] = {0};
  tile_span contents;
  r->part = "sections";
  for (;;) {
    size_t start = file->at;
    uint32_t number = next_section(r, file, &contents);
    if (number == SECTION_END) return;
    if (seen[number]) reader_fail(r, file, start, FF_PARSE, "a second section %u", number);
    seen[number] = true;
    sections[number] = contents;
  }
}

ff_status tile_bytecode_size(const void *bytes, size_t *size, ff_error *error) {
  tile_reader r = {.bytes = bytes, .error = error};
  tile_span file = {0, (size_t)1 << 31}, sections[SECTION_COUNT];
  if (!tile_is_bytecode(bytes, 0)) file.end = 0; /* nothing more is read */
  read_header(&r, &file);
  if (reader_ok(&r)) find_sections(&r, &file, sections);
  if (reader_ok(&r)) *size = file.at;
  return r.status;
}

static void read_sections(tile_reader *r, tile_span sections[SECTION_COUNT]) {
  ff_map names = {0};
  r->part = "strings";
  reader_table(r, sections[SECTION_STRINGS], 4, &r->strings);
  r->string_texts = ff_arena_alloc(r->arena, (size_t)r->strings.count * sizeof *r->string_texts);
  r->part = "types";
  reader_table(r, sections[SECTION_TYPES], 4, &r->types);
  r->type_items = ff_arena_alloc(r->arena, (size_t)r->types.count * sizeof *r->type_items);
  r->part = "constants";
  open_constants(r, sections[SECTION_CONSTANTS]);
  if (reader_ok(r)) read_lines_open(r, sections[SECTION_LINES]);
  if (reader_ok(r) && sections[SECTION_GLOBALS].end) read_globals(r, sections[SECTION_GLOBALS], &names);
  if (reader_ok(r)) read_functions(r, sections[SECTION_FUNCTIONS], &names);
  ff_map_free(&names);
}

ff_status tile_module_read(const void *bytes, size_t size, tile_module **module, ff_error *error) {
  tile_reader r = {.error = error};
  tile_span sections[SECTION_COUNT] = {{0}}, file = {0, size};
  if (size > UINT32_MAX) return ff_fail(error, FF_PARSE, "Tile IR bytecode of more than 4 GiB");
  r.argument_room = 16 * (uint64_t)size;
  r.module = ff_alloc(sizeof *r.module);
  r.arena = &r.module->arena;
  r.bytes = memcpy(ff_arena_alloc(r.arena, size), bytes, size);
  read_header(&r, &file);
  r.module->version = 1300 + r.minor;
  if (reader_ok(&r)) find_sections(&r, &file, sections);
  r.part = "sections";
  if (reader_ok(&r) && !(sections[SECTION_STRINGS].end && sections[SECTION_FUNCTIONS].end))
    reader_fail(&r, NULL, size, FF_PARSE, "there are no strings or no functions");
  if (reader_ok(&r)) read_sections(&r, sections);
  if (!reader_ok(&r)) {
    tile_module_free(r.module);
    return r.status;
  }
  *module = r.module;
  return FF_OK;
}

void tile_module_free(tile_module *module) {
  if (!module) return;
  ff_arena_free(&module->arena);
  free(module);
}
