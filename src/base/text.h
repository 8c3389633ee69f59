/* SPDX-License-Identifier: Apache-2.0 */
/* Text: a growable string, a string-keyed map, whole files, and numbers with units. */
#ifndef FF_BASE_TEXT_H
#define FF_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* A growable NUL-terminated string: `ff_text t = {0}; ff_text_add(&t, "%d", 3); free(t.chars);` */
typedef struct ff_text {
  char *chars; /* NULL until something was added */
  size_t length, capacity;
} ff_text;
void ff_text_add(ff_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ff_text_add_bytes(ff_text *text, const void *bytes, size_t length);
/* Adds the word as a shell would have to be given it: in quotes if it needs them. */
void ff_text_add_quoted(ff_text *text, const char *word);

/* A map from strings to pointers (open addressing, FNV-1a). Keys are not copied and must outlive the map. */
typedef struct ff_map {
  struct ff_map_slot *slots;
  size_t count, capacity;
} ff_map;
void *ff_map_get(const ff_map *map, const char *key); /* NULL: absent */
void ff_map_set(ff_map *map, const char *key, void *value);
void ff_map_free(ff_map *map);

/* Reads a whole file. *data is NUL-terminated one past *size; the caller frees it. `limit` in bytes (0: 1 GiB). */
ff_status ff_file_read(const char *path, size_t limit, char **data, size_t *size, ff_error *error);

/* Writes a whole output (output.h): a reader sees the old file or the new one; what is no regular file is written in
 * place. */
ff_status ff_file_write(const char *path, const void *data, size_t size, ff_error *error);

/* "8G", "512MiB", "75%" (of `whole`; whole == 0 refuses a percentage), "4096": bytes, units are powers of 1024. */
ff_status ff_parse_bytes(const char *text, uint64_t whole, uint64_t *bytes, ff_error *error);

/* 1536 -> "1.50 KiB", 0 -> "0 B". Writes at most `size` bytes; returns buffer. */
const char *ff_format_bytes(uint64_t bytes, char *buffer, size_t size);

/* The message "file:line:column: what", then that line of `text` and a caret below the column. Lines and columns count
 * from 1 (column in bytes; 0: no caret); long lines are cut around the column. Returns `status`. */
ff_status ff_fail_in_text(ff_error *error, ff_status status, const char *file, const char *text, size_t size,
                          uint32_t line, uint32_t column, const char *format, ...)
    __attribute__((format(printf, 8, 9)));

/* The column in bytes that ff_fail_in_text takes, of one in characters of UTF-8 (from 1), as parsers of YAML and JSON
 * count; the same column where the text has no such line. */
uint32_t ff_column_in_bytes(const char *text, size_t size, uint32_t line, uint32_t column);

/* For "did you mean": the candidate (NULL-ended list) nearest to `word` by edit distance, or NULL if none is near. */
const char *ff_closest(const char *word, const char *const *candidates);

#endif
