/* SPDX-License-Identifier: Apache-2.0 */
/* Opening YAML texts, and messages about places in them: see yaml.h. */
#include "base/yaml.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- what libfyaml is given ---- */

/* The length of the UTF-8 character at `at`, 0 if it is none (a longer form of another one and half of a pair are none,
 * either) or a control character that no text has. */
static size_t character_length(const unsigned char *at, size_t left) {
  if (*at == '\n' || *at == '\t' || *at == '\r' || (*at >= 32 && *at < 127)) return 1;
  size_t length = *at >= 0xf0 ? 4 : *at >= 0xe0 ? 3 : 2;
  if (*at < 0xc2 || *at > 0xf4 || length > left) return 0;
  for (size_t i = 1; i < length; i++)
    if ((at[i] & 0xc0) != 0x80) return 0;
  unsigned least = *at == 0xe0   ? 0xa0
                   : *at == 0xf0 ? 0x90
                                 : 0x80,
           most = *at == 0xed   ? 0x9f
                  : *at == 0xf4 ? 0x8f
                                : 0xbf;
  return at[1] < least || at[1] > most ? 0 : length;
}

/* As libfyaml sees it: a carriage return ends a line as well, and a byte order mark is nothing. */
static bool begins_line(const ff_yaml *y, size_t at) {
  return !at || y->text[at - 1] == '\n' || y->text[at - 1] == '\r' || (at == 3 && !memcmp(y->text, "\xef\xbb\xbf", 3));
}

/* A `?` that stands by itself at the beginning of a line, or behind what a node begins after: the next is a key that
 * may be a mapping. (In a comment, too: where quotes hide a '#' this would have to be a parser.) */
static bool begins_complex_key(const ff_yaml *y, size_t at) {
  if (y->text[at] != '?' || (at + 1 < y->size && !strchr(" \t\r\n", y->text[at + 1]))) return false;
  if (!begins_line(y, at) && !strchr(" \t", y->text[at - 1])) return false;
  while (!begins_line(y, at) && strchr(" \t", y->text[at - 1])) at--;
  return begins_line(y, at) || strchr(":-?,[{", y->text[at - 1]);
}

static ff_status check_text(const ff_yaml *y, const char *kind) {
  uint32_t line = 1, column = 1;
  for (size_t at = 0, length; at < y->size; at += length) {
    length = character_length((const unsigned char *)y->text + at, y->size - at);
    if (!length)
      return ff_fail_in_text(y->error, FF_PARSE, y->file, y->text, y->size, line, column,
                             "not text: this byte is 0x%02x", (unsigned char)y->text[at]);
    if (y->text[at] == '%' && begins_line(y, at))
      return ff_fail_in_text(y->error, FF_PARSE, y->file, y->text, y->size, line, column,
                             "YAML directives are not used in %s files", kind);
    if (begins_complex_key(y, at))
      return ff_fail_in_text(y->error, FF_PARSE, y->file, y->text, y->size, line, column,
                             "keys behind a '?' are not used in %s files: write \"key: value\"", kind);
    column += (uint32_t)length;
    if (y->text[at] == '\n') {
      line++;
      column = 1;
    }
  }
  return FF_OK;
}

/* The first error that libfyaml collected, as ours. */
static ff_status fail_parse(const ff_yaml *y) {
  void *at = NULL;
  struct fy_diag_error *first = fy_diag_errors_iterate(y->diag, &at);
  if (!first) return ff_fail(y->error, FF_PARSE, "%s: is not YAML", y->file);
  uint32_t line = first->line > 0 ? (uint32_t)first->line : 1;
  uint32_t column = ff_column_in_bytes(y->text, y->size, line, first->column > 0 ? (uint32_t)first->column : 0);
  return ff_fail_in_text(y->error, FF_PARSE, y->file, y->text, y->size, line, column, "not YAML: %s", first->msg);
}

static ff_status load(ff_yaml *y) {
  if (fy_parser_set_string(y->parser, y->text, y->size) == 0) y->document = fy_parse_load_document(y->parser);
  if (!y->document)
    return fy_diag_got_error(y->diag) ? fail_parse(y) : ff_fail(y->error, FF_PARSE, "%s: is empty", y->file);
  struct fy_document *second = fy_parse_load_document(y->parser);
  if (second) fy_parse_document_destroy(y->parser, second);
  if (fy_diag_got_error(y->diag)) return fail_parse(y);
  return second ? ff_fail(y->error, FF_PARSE, "%s: holds more than one document", y->file) : FF_OK;
}

ff_status ff_yaml_open(const char *file, const char *text, size_t size, const char *kind, ff_yaml *yaml,
                       ff_error *error) {
  *yaml = (ff_yaml){.file = file, .text = text, .size = size, .error = error};
  if (check_text(yaml, kind)) return FF_PARSE;
  yaml->diag = fy_diag_create(&(struct fy_diag_cfg){.level = FYET_ERROR, .module_mask = ~0u});
  if (!yaml->diag) return ff_fail(error, FF_LIMIT, "%s: cannot be read: the host is out of memory", file);
  fy_diag_set_collect_errors(yaml->diag, true);
  struct fy_parse_cfg config = {.flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG | FYPCF_ALLOW_DUPLICATE_KEYS,
                                .diag = yaml->diag};
  yaml->parser = fy_parser_create(&config);
  ff_status status =
      yaml->parser ? load(yaml) : ff_fail(error, FF_LIMIT, "%s: cannot be read: the host is out of memory", file);
  if (status) ff_yaml_close(yaml);
  return status;
}

struct fy_node *ff_yaml_root(const ff_yaml *yaml) {
  return fy_document_root(yaml->document);
}

void ff_yaml_close(ff_yaml *yaml) {
  if (yaml->document) fy_parse_document_destroy(yaml->parser, yaml->document);
  if (yaml->parser) fy_parser_destroy(yaml->parser);
  if (yaml->diag) fy_diag_destroy(yaml->diag);
  yaml->document = NULL;
  yaml->parser = NULL;
  yaml->diag = NULL;
}

/* ---- nodes ---- */

/* The pieces that libfyaml decodes a scalar to, one after the other. Within 'a''''b' its version 0.7.12 gives each
 * quote but the last as a piece, not each second one: a quote right behind one that counted is that one's other
 * half. */
static bool add_pieces(struct fy_token_iter *pieces, bool single_quoted, char *buffer) {
  const struct fy_iter_chunk *piece = NULL;
  const char *quote = NULL; /* the last one that counted */
  size_t length = 0;
  int failed = 0;
  while ((piece = fy_token_iter_chunk_next(pieces, piece, &failed))) {
    bool is_quote = single_quoted && piece->len == 1 && *piece->str == '\'';
    if (is_quote && quote && piece->str == quote + 1) continue;
    if (piece->len > FF_YAML_SCALAR - length || memchr(piece->str, 0, piece->len)) return false;
    memcpy(buffer + length, piece->str, piece->len);
    length += piece->len;
    if (is_quote) quote = piece->str;
  }
  buffer[length] = '\0';
  return !failed;
}

/* Not by fy_node_get_scalar: that has the scanner's count of bytes for the text's length, and where decoding gives more
 * (runs of escaped quotes, for one) libfyaml 0.7.12 cuts the text and loses the list of its pieces. The iterator here
 * is destroyed whatever it gives. */
bool ff_yaml_scalar(struct fy_node *node, char *buffer) {
  if (!node || !fy_node_is_scalar(node) || fy_node_is_alias(node)) return false;
  struct fy_token *token = fy_node_get_scalar_token(node);
  struct fy_token_iter *pieces = token ? fy_token_iter_create(token) : NULL;
  buffer[0] = '\0';
  if (!pieces) return !token; /* a value that is left out is empty */
  bool whole = add_pieces(pieces, fy_token_scalar_style(token) == FYSS_SINGLE_QUOTED, buffer);
  fy_token_iter_destroy(pieces);
  return whole;
}

void ff_yaml_place(struct fy_node *node, uint32_t *line, uint32_t *column) {
  const struct fy_mark *mark = NULL;
  struct fy_token *token = node ? fy_node_get_scalar_token(node) : NULL;
  if (token) mark = fy_token_start_mark(token);
  *line = mark ? (uint32_t)mark->line + 1 : 1;
  *column = mark ? (uint32_t)mark->column + 1 : 0;
}

ff_status ff_yaml_fail(const ff_yaml *yaml, struct fy_node *node, const char *format, ...) {
  uint32_t line, column;
  ff_error about;
  va_list args;
  va_start(args, format);
  ff_vfail(&about, FF_PARSE, format, args);
  va_end(args);
  ff_yaml_place(node, &line, &column);
  column = ff_column_in_bytes(yaml->text, yaml->size, line, column);
  return ff_fail_in_text(yaml->error, FF_PARSE, yaml->file, yaml->text, yaml->size, line, column, "%s", about.message);
}
