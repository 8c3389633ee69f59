/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the text of a machine file (YAML, by libfyaml) into a machine_spec:
 *
 *   title: one line for `farfault list machines`
 *   GROUP:                                    as in params.def
 *     NAME: {value: V, source: "where V is from"}
 *
 * What always holds: a spec is accepted only if every required value of params.def was given exactly once, under its
 * group, with a value of its type and range, and with a source; everything else in the file is an error that shows its
 * line with a caret. Anchors and aliases are refused, so that a file cannot be larger than it looks. */
#include <libfyaml.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "machine/spec_table.h"

enum { SCALAR_LIMIT = 1023 };

typedef struct reader {
  const char *file, *text;
  size_t size;
  machine_spec *spec;
  ff_error *error;
  uint32_t seen[SPEC_PARAM_COUNT]; /* the line of each value, 0: not given yet */
  const char *groups[SPEC_PARAM_COUNT];
  uint32_t group_count;
} reader;

/* Fails at a node's place. Mappings and sequences have none of their own: the caller gives their key. */
static ff_status fail_at(reader *r, struct fy_node *node, const char *what) {
  const struct fy_mark *mark = NULL;
  struct fy_token *token = node ? fy_node_get_scalar_token(node) : NULL;
  if (token) mark = fy_token_start_mark(token);
  return ff_fail_in_text(r->error, FF_PARSE, r->file, r->text, r->size, mark ? (uint32_t)mark->line + 1 : 1,
                         mark ? (uint32_t)mark->column + 1 : 0, "%s", what);
}

static ff_status fail_about(reader *r, struct fy_node *node, const char *format, ...) __attribute__((format(printf, 3, 4)));
static ff_status fail_about(reader *r, struct fy_node *node, const char *format, ...) {
  ff_error about;
  va_list args;
  va_start(args, format);
  ff_vfail(&about, FF_PARSE, format, args);
  va_end(args);
  return fail_at(r, node, about.message);
}

/* The text of a scalar in `buffer` (SCALAR_LIMIT + 1 bytes); false if it is none, too long, or has a NUL. */
static bool scalar_text(struct fy_node *node, char *buffer) {
  if (!node || !fy_node_is_scalar(node) || fy_node_is_alias(node)) return false;
  size_t length = 0;
  const char *text = fy_node_get_scalar(node, &length);
  if (!text || length > SCALAR_LIMIT || memchr(text, 0, length)) return false;
  memcpy(buffer, text, length);
  buffer[length] = '\0';
  return true;
}

static ff_status read_point(reader *r, struct fy_node *key, struct fy_node *point, machine_size_table *table) {
  char bytes[SCALAR_LIMIT + 1], gbs[SCALAR_LIMIT + 1];
  if (!fy_node_is_sequence(point) || fy_node_sequence_item_count(point) != 2)
    return fail_at(r, fy_node_is_scalar(point) ? point : key, "each point of the table is a pair: [bytes, GB/s]");
  struct fy_node *first = fy_node_sequence_get_by_index(point, 0), *second = fy_node_sequence_get_by_index(point, 1);
  if (!scalar_text(first, bytes) || !scalar_text(second, gbs)) return fail_at(r, key, "each point of the table is a pair: [bytes, GB/s]");
  ff_error why;
  if (spec_point_add(table, bytes, gbs, &why)) return fail_about(r, first, "%s", why.message);
  return FF_OK;
}

static ff_status read_table(reader *r, const spec_param *param, struct fy_node *key, struct fy_node *value) {
  if (!fy_node_is_sequence(value) || fy_node_sequence_is_empty(value))
    return fail_about(r, fy_node_is_scalar(value) ? value : key, "'%s' is a table: [[bytes, GB/s], ...]", param->name);
  machine_size_table *table = (machine_size_table *)((char *)r->spec + param->offset);
  void *at = NULL;
  struct fy_node *point;
  while ((point = fy_node_sequence_iterate(value, &at))) {
    ff_status status = read_point(r, key, point, table);
    if (status) return status;
  }
  return FF_OK;
}

static ff_status read_value(reader *r, const spec_param *param, struct fy_node *key, struct fy_node *value) {
  if (param->type == 't') return read_table(r, param, key, value);
  char text[SCALAR_LIMIT + 1];
  if (!scalar_text(value, text)) return fail_about(r, key, "the value of '%s' must be a single one", param->name);
  ff_error why;
  if (spec_value_parse(param, text, r->spec, &why)) return fail_about(r, value, "%s: %s", param->name, why.message);
  return FF_OK;
}

static ff_status check_source(reader *r, const spec_param *param, struct fy_node *key, struct fy_node *source) {
  char text[SCALAR_LIMIT + 1];
  if (!source) return fail_about(r, key, "'%s' has no source: {value: ..., source: \"where it is from\"}", param->name);
  if (!scalar_text(source, text)) return fail_about(r, key, "the source of '%s' must be a text", param->name);
  if (!text[strspn(text, " \t\n")]) return fail_about(r, source, "the source of '%s' is empty", param->name);
  return FF_OK;
}

/* NAME: {value: V, source: S} */
static ff_status read_param(reader *r, const spec_param *param, struct fy_node *key, struct fy_node *body) {
  if (!fy_node_is_mapping(body))
    return fail_about(r, fy_node_is_scalar(body) ? body : key, "write '%s: {value: ..., source: \"where it is from\"}'", param->name);
  struct fy_node *value = NULL, *source = NULL;
  void *at = NULL;
  struct fy_node_pair *pair;
  while ((pair = fy_node_mapping_iterate(body, &at))) {
    char name[SCALAR_LIMIT + 1];
    struct fy_node *inner = fy_node_pair_key(pair);
    struct fy_node **slot = !scalar_text(inner, name) ? NULL : !strcmp(name, "value") ? &value : !strcmp(name, "source") ? &source : NULL;
    if (!slot) return fail_about(r, inner, "'%s' has only 'value' and 'source'", param->name);
    if (*slot) return fail_about(r, inner, "'%s' is given twice", name);
    *slot = fy_node_pair_value(pair);
    if (!*slot) return fail_about(r, inner, "'%s' has nothing after it", name);
  }
  if (!value) return fail_about(r, key, "'%s' has no value: {value: ..., source: \"where it is from\"}", param->name);
  ff_status status = read_value(r, param, key, value);
  return status ? status : check_source(r, param, key, source);
}

static ff_status unknown_param(reader *r, const char *group, struct fy_node *key, const char *name) {
  const char *names[SPEC_PARAM_COUNT + 1] = {0};
  for (int i = 0, n = 0; i < SPEC_PARAM_COUNT; i++)
    if (!strcmp(spec_params[i].group, group)) names[n++] = spec_params[i].name;
  const char *near = ff_closest(name, names);
  return near ? fail_about(r, key, "unknown value '%s' in group '%s': did you mean '%s'?", name, group, near)
              : fail_about(r, key, "unknown value '%s' in group '%s'", name, group);
}

static ff_status read_group(reader *r, const char *group, struct fy_node *group_key, struct fy_node *body) {
  if (!fy_node_is_mapping(body)) return fail_about(r, group_key, "group '%s' must hold values: NAME: {value: ..., source: ...}", group);
  void *at = NULL;
  struct fy_node_pair *pair;
  while ((pair = fy_node_mapping_iterate(body, &at))) {
    char name[SCALAR_LIMIT + 1];
    struct fy_node *key = fy_node_pair_key(pair);
    if (!scalar_text(key, name)) return fail_about(r, key ? key : group_key, "a value's name must be a plain word");
    const spec_param *param = spec_param_find(name);
    if (!param) return unknown_param(r, group, key, name);
    if (strcmp(param->group, group)) return fail_about(r, key, "'%s' belongs to group '%s', not '%s'", name, param->group, group);
    uint32_t *seen = &r->seen[param - spec_params];
    if (*seen) return fail_about(r, key, "'%s' is given twice, first on line %u", name, *seen);
    *seen = (uint32_t)fy_token_start_mark(fy_node_get_scalar_token(key))->line + 1;
    ff_status status = read_param(r, param, key, fy_node_pair_value(pair));
    if (status) return status;
  }
  return FF_OK;
}

static ff_status read_title(reader *r, struct fy_node *key, struct fy_node *value) {
  char text[SCALAR_LIMIT + 1];
  if (r->spec->title[0]) return fail_at(r, key, "'title' is given twice");
  if (!scalar_text(value, text) || !text[0] || strlen(text) >= sizeof r->spec->title || strpbrk(text, "\n\t\r\033"))
    return fail_about(r, key, "the title must be one line of 1 to %zu characters", sizeof r->spec->title - 1);
  strcpy(r->spec->title, text);
  return FF_OK;
}

static ff_status unknown_group(reader *r, struct fy_node *key, const char *name) {
  const char *names[SPEC_PARAM_COUNT + 2] = {"title"};
  for (int i = 0; i < SPEC_PARAM_COUNT; i++) names[i + 1] = spec_params[i].group;
  const char *near = ff_closest(name, names);
  return near ? fail_about(r, key, "unknown group '%s': did you mean '%s'?", name, near) : fail_about(r, key, "unknown group '%s'", name);
}

static ff_status read_top(reader *r, struct fy_node *key, struct fy_node *body) {
  char name[SCALAR_LIMIT + 1];
  if (!scalar_text(key, name)) return fail_at(r, key, "a group's name must be a plain word");
  if (!strcmp(name, "title")) return read_title(r, key, body);
  if (!spec_group_exists(name)) return unknown_group(r, key, name);
  for (uint32_t i = 0; i < r->group_count; i++)
    if (!strcmp(r->groups[i], name)) return fail_about(r, key, "group '%s' is given twice", name);
  for (int i = 0; i < SPEC_PARAM_COUNT; i++)
    if (!strcmp(spec_params[i].group, name)) {
      r->groups[r->group_count++] = spec_params[i].group;
      break;
    }
  return read_group(r, name, key, body);
}

static ff_status check_whole(reader *r) {
  if (!r->spec->title[0]) return ff_fail(r->error, FF_PARSE, "%s: has no title: add a line 'title: ...'", r->file);
  for (int i = 0; i < SPEC_PARAM_COUNT; i++)
    if (spec_params[i].required && !r->seen[i])
      return ff_fail(r->error, FF_PARSE, "%s: the value '%s' is missing from group '%s'", r->file, spec_params[i].name, spec_params[i].group);
  ff_error why;
  if (spec_check(r->spec, &why)) return ff_fail(r->error, FF_INVALID, "%s: %s", r->file, why.message);
  return FF_OK;
}

static ff_status read_root(reader *r, struct fy_node *root) {
  if (!root || !fy_node_is_mapping(root)) return ff_fail(r->error, FF_PARSE, "%s: is not a machine file: groups of values are expected", r->file);
  void *at = NULL;
  struct fy_node_pair *pair;
  while ((pair = fy_node_mapping_iterate(root, &at))) {
    ff_status status = read_top(r, fy_node_pair_key(pair), fy_node_pair_value(pair));
    if (status) return status;
  }
  return check_whole(r);
}

/* The first error that libfyaml collected, as ours. */
static ff_status fail_parse(reader *r, struct fy_diag *diag) {
  void *at = NULL;
  struct fy_diag_error *first = fy_diag_errors_iterate(diag, &at);
  if (!first) return ff_fail(r->error, FF_PARSE, "%s: is not YAML", r->file);
  uint32_t line = first->line > 0 ? (uint32_t)first->line : 1, column = first->column > 0 ? (uint32_t)first->column : 0;
  return ff_fail_in_text(r->error, FF_PARSE, r->file, r->text, r->size, line, column, "not YAML: %s", first->msg);
}

/* The length of the UTF-8 character at `at`, 0 if it is none or a control character that no text has. */
static size_t character_length(const unsigned char *at, size_t left) {
  if (*at == '\n' || *at == '\t' || *at == '\r' || (*at >= 32 && *at < 127)) return 1;
  size_t length = *at >= 0xf0 ? 4 : *at >= 0xe0 ? 3 : 2;
  if (*at < 0xc2 || *at > 0xf4 || length > left) return 0;
  for (size_t i = 1; i < length; i++)
    if ((at[i] & 0xc0) != 0x80) return 0;
  return length;
}

/* libfyaml is given only what a machine file may hold: UTF-8 text without YAML directives (lines that begin with %; one of
 * them with bytes that are no text keeps its scanner busy for ever). */
static ff_status check_text(reader *r) {
  uint32_t line = 1, column = 1;
  for (size_t at = 0, length; at < r->size; at += length) {
    length = character_length((const unsigned char *)r->text + at, r->size - at);
    if (!length) return ff_fail_in_text(r->error, FF_PARSE, r->file, r->text, r->size, line, column, "not text: this byte is 0x%02x", (unsigned char)r->text[at]);
    if (r->text[at] == '%' && column == 1) return ff_fail_in_text(r->error, FF_PARSE, r->file, r->text, r->size, line, column, "YAML directives are not used in machine files");
    column += (uint32_t)length;
    if (r->text[at] == '\n') {
      line++;
      column = 1;
    }
  }
  return FF_OK;
}

ff_status spec_text_load(const char *file, const char *text, size_t size, machine_spec *spec, ff_error *error) {
  reader r = {.file = file, .text = text, .size = size, .spec = spec, .error = error};
  *spec = (machine_spec){0};
  if (check_text(&r)) return FF_PARSE;
  struct fy_diag *diag = fy_diag_create(&(struct fy_diag_cfg){.level = FYET_ERROR, .module_mask = ~0u});
  fy_diag_set_collect_errors(diag, true);
  struct fy_parse_cfg config = {.flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG | FYPCF_ALLOW_DUPLICATE_KEYS, .diag = diag};
  struct fy_parser *parser = fy_parser_create(&config);
  struct fy_document *document = NULL, *second = NULL;
  ff_status status;
  if (fy_parser_set_string(parser, text, size) == 0) document = fy_parse_load_document(parser);
  if (!document) {
    status = fy_diag_got_error(diag) ? fail_parse(&r, diag) : ff_fail(error, FF_PARSE, "%s: is empty", file);
    goto out;
  }
  status = read_root(&r, fy_document_root(document));
  if (status) goto out;
  second = fy_parse_load_document(parser);
  if (fy_diag_got_error(diag)) status = fail_parse(&r, diag);
  else if (second) status = ff_fail(error, FF_PARSE, "%s: holds more than one document", file);
out:
  if (second) fy_parse_document_destroy(parser, second);
  if (document) fy_parse_document_destroy(parser, document);
  fy_parser_destroy(parser);
  fy_diag_destroy(diag);
  return status;
}
