/* SPDX-License-Identifier: Apache-2.0 */
/* Where operations are in the program's text. What cannot be read is not known: lines are for people, and no program
 * stops for them.
 *
 *   a count of functions, for each the first of its indices (4 bytes)
 *   a count of indices (8 bytes each): of a function itself, then of its operations in their order
 *   a table of items, counted from 1: an item is a place (scope, file, line, column), or a call of one place from
 *   another, or a scope */
#include "tile/read.h"

enum { ITEM_PLACE = 4, ITEM_CALL = 6 };

void read_lines_open(tile_reader *r, tile_span section) {
  size_t start = section.at;
  tile_lines *lines = &r->lines;
  if (!section.end) return;
  r->quiet = true;
  lines->function_count = reader_count(r, &section, 4);
  reader_align(r, &section, start, 4);
  lines->functions = section.at;
  if ((section.end - section.at) / 4 < lines->function_count) section.at = section.end;
  else section.at += (size_t)lines->function_count * 4;
  lines->index_count = reader_count(r, &section, 8);
  reader_align(r, &section, start, 8);
  lines->indices = section.at;
  if ((section.end - section.at) / 8 < lines->index_count) section.at = section.end;
  else section.at += (size_t)lines->index_count * 8;
  if (section.at < section.end) {
    /* The table is aligned as if the section began at a multiple of 4, which it does. */
    uint32_t count = reader_count(r, &section, 4);
    reader_align(r, &section, start, 4);
    if (r->status == FF_OK && (section.end - section.at) / 4 >= count) {
      lines->items = (tile_table){count, section.at, 4, {section.at + (size_t)count * 4, section.end}};
      lines->usable = true;
    }
  }
  r->quiet = false;
  r->status = FF_OK;
}

static uint32_t read_place(tile_reader *r, tile_span item, const char **file) {
  reader_varint(r, &item); /* scope */
  uint64_t name = reader_varint(r, &item);
  uint64_t line = reader_varint(r, &item);
  if (r->status != FF_OK || name >= r->strings.count || line > UINT32_MAX) return 0;
  *file = reader_string_at(r, name);
  return (uint32_t)line;
}

static tile_span line_item(tile_reader *r, uint64_t index) {
  tile_span item = reader_item(r, &r->lines.items, index - 1), all = r->lines.items.items;
  if (item.at < all.at || item.end > all.end || item.at > item.end) item.at = item.end = all.end;
  return item;
}

static uint32_t find_place(tile_reader *r, uint64_t index, const char **file) {
  for (uint32_t hop = 0; hop < READ_NESTING_MAX && index && index <= r->lines.items.count; hop++) {
    tile_span item = line_item(r, index);
    uint64_t kind = reader_varint(r, &item);
    if (kind == ITEM_PLACE) return read_place(r, item, file);
    if (kind != ITEM_CALL) return 0;
    index = reader_varint(r, &item); /* what was called */
  }
  return 0;
}

uint32_t read_lines_find(tile_reader *r, uint64_t place, uint64_t n, const char **file) {
  const tile_lines *lines = &r->lines;
  uint32_t line = 0;
  *file = NULL;
  if (!lines->usable || r->status != FF_OK || !place || place > lines->function_count) return 0;
  tile_span at = {lines->functions + (size_t)(place - 1) * 4, lines->indices};
  uint64_t first = reader_fixed(r, &at, 4);
  if (n >= lines->index_count || first >= lines->index_count - n) return 0;
  r->quiet = true;
  tile_span index = {lines->indices + (size_t)(first + n) * 8, lines->items.starts};
  line = find_place(r, reader_fixed(r, &index, 8), file);
  r->quiet = false;
  r->status = FF_OK;
  return line;
}
