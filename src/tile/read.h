/* SPDX-License-Identifier: Apache-2.0 */
/* Reading bytecode: what the parts of the reader share. None of it is seen outside of this folder.
 *
 *   read.c        sections, tables, strings, constants, functions, globals
 *   read_types.c  types
 *   read_ops.c    operations and their attributes, as operations.def says
 *   read_check.c  what must hold between an operation, its operands and its regions
 *   read_lines.c  where operations are in the program's text
 *
 *   file      magic, version, sections; each has a number, a size and perhaps an alignment
 *   table     a count, where each item starts, the items: strings, types, constants
 *   span      the bytes of the file from `at` to `end`, of which the next is read at `at`
 *
 * Failures stick: after the first one every span is read as if it ended, so callers look at `status` where it matters
 * and nothing loops longer than the file is long. Memory is in proportion to the file: an item of a table is converted
 * once however often it is used. */
#ifndef FF_TILE_READ_H
#define FF_TILE_READ_H

#include "tile/module.h"
#include "tile/tile.h"

#define READ_NESTING_MAX 16u /* of attributes in attributes, types in types */

typedef struct tile_span {
  size_t at, end;
} tile_span;

typedef struct tile_table {
  uint64_t count;
  size_t starts; /* of the file: `width` bytes for each item */
  uint32_t width;
  tile_span items;
} tile_table;

typedef struct tile_constant { /* as the file has it, and as module.h wants it once an operation needed that */
  tile_span raw;
  const unsigned char *bits, *nibbles, *words; /* i1; i4 and e2m1; tf32 */
} tile_constant;

typedef struct tile_lines { /* read_lines.c */
  bool usable;
  uint64_t function_count, index_count;
  size_t functions, indices; /* of the file: 4 bytes for each function, 8 for each operation */
  tile_table items;
} tile_lines;

typedef struct tile_reader {
  const unsigned char *bytes;
  uint32_t minor; /* version 13.minor */
  tile_module *module;
  ff_arena *arena; /* the module's */
  tile_table strings, types, constants;
  const char **string_texts;    /* NULL: not needed yet */
  const tile_type **type_items; /* NULL: not needed yet */
  tile_constant *constant_items;
  tile_lines lines;
  uint64_t argument_room; /* arguments that functions may still have: their types may be shared */
  const char *part;       /* what is being read, for messages: "a type", "addf" */
  bool quiet;             /* failures are of no interest: only the status is set */
  ff_status status;
  ff_error *error;
} tile_reader;

/* Notes the first failure, with the byte and the part, and ends the span (may be NULL). */
void reader_fail(tile_reader *r, tile_span *span, size_t at, ff_status status, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
static inline bool reader_ok(const tile_reader *r) { return r->status == FF_OK; }

/* The next bytes of a span; 0 after a failure. */
uint8_t reader_byte(tile_reader *r, tile_span *span);
uint64_t reader_fixed(tile_reader *r, tile_span *span, uint32_t width); /* little-endian, 1 to 8 bytes */
uint64_t reader_varint(tile_reader *r, tile_span *span);
/* Zigzag: 0, -1, 1, -2... Also of 65 bits, where a writer shifted 64 bits up: then those 64. */
int64_t reader_signed(tile_reader *r, tile_span *span);
/* A count of things that take `least` bytes each or more: a failure if the span has not as many. */
uint32_t reader_count(tile_reader *r, tile_span *span, size_t least);
/* A number below `limit`; `what` names it in the message. */
uint32_t reader_below(tile_reader *r, tile_span *span, uint64_t limit, const char *what);
void reader_align(tile_reader *r, tile_span *span, size_t start, size_t alignment); /* in bytes from `start` */

void reader_table(tile_reader *r, tile_span section, uint32_t width, tile_table *table);
tile_span reader_item(tile_reader *r, const tile_table *table, uint64_t index);

/* By the number that the span has next; "", NULL, nothing after a failure. */
const char *reader_string(tile_reader *r, tile_span *span);
const tile_type *reader_type(tile_reader *r, tile_span *span);
/* The elements of a tile of numbers, as tile_op.data says. */
void reader_constant(tile_reader *r, tile_span *span, const tile_type *type, const unsigned char **data, size_t *bytes,
                     bool *splat);

/* The hints of a function (an attribute of its own). */
void reader_hints(tile_reader *r, tile_span *span, tile_function *function);
void reader_skip_attribute(tile_reader *r, tile_span *span);
/* The operations of a function up to the span's end. `place`: of the function among the lines. */
void reader_body(tile_reader *r, tile_span span, tile_function *function, uint64_t place);

void read_check_op(tile_reader *r, const tile_op *op); /* after its operands, attributes and regions were read */

void read_lines_open(tile_reader *r, tile_span section);
/* The line of the n-th operation (0: the function itself) of a function. 0, NULL: not known. */
uint32_t read_lines_find(tile_reader *r, uint64_t place, uint64_t n, const char **file);
const char *reader_string_at(tile_reader *r, uint64_t index); /* "" after a failure */

/* One row of operations.def; NULL: no such operation. */
typedef struct tile_form {
  const char *text;
  uint8_t since;
  const char *results, *flags, *attributes, *operands;
  uint8_t regions;
  char rule;
} tile_form;
const tile_form *tile_form_of(uint64_t number);

#endif
