/* SPDX-License-Identifier: Apache-2.0 */
/* See spec_text.h. The file has been read by spec_yaml.c before, so what stands in it is known to be good; here only
 * the places matter. A changed text is read again, and must give what setting the values gives: whatever form of YAML
 * the file has, no wrong file comes out. */
#include "machine/spec/spec_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/yaml.h"

/* ---- reading ---- */

static void add_value(struct fy_node *node, ff_text *out) {
  char scalar[FF_YAML_SCALAR + 1];
  void *at = NULL;
  struct fy_node *item;
  if (ff_yaml_scalar(node, scalar)) ff_text_add(out, "%s", scalar);
  if (!fy_node_is_sequence(node)) return;
  ff_text_add(out, "[");
  for (bool more = false; (item = fy_node_sequence_iterate(node, &at)); more = true) {
    if (more) ff_text_add(out, ", ");
    add_value(item, out);
  }
  ff_text_add(out, "]");
}

/* Where a scalar stands, with its quotes. */
static spec_span span_of(const spec_text *t, struct fy_node *node) {
  struct fy_token *token = fy_node_is_scalar(node) ? fy_node_get_scalar_token(node) : NULL;
  const struct fy_mark *start = token ? fy_token_start_mark(token) : NULL,
                       *end = token ? fy_token_end_mark(token) : NULL;
  if (!start || !end || end->input_pos > t->size || start->input_pos > end->input_pos) return (spec_span){0};
  spec_span span = {start->input_pos, end->input_pos};
  char before = span.start ? t->text[span.start - 1] : '\0';
  if ((before == '"' || before == '\'') && t->text[span.end] == before) {
    span.start--;
    span.end++;
  }
  return span;
}

static void read_entry(spec_text *t, spec_entry *entry, struct fy_node *body) {
  struct fy_node_pair *pair;
  void *at = NULL;
  char name[FF_YAML_SCALAR + 1];
  while ((pair = fy_node_mapping_iterate(body, &at))) {
    struct fy_node *node = fy_node_pair_value(pair);
    ff_text text = {0};
    if (!ff_yaml_scalar(fy_node_pair_key(pair), name)) continue;
    ff_text_add(&text, "%s", "");
    add_value(node, &text);
    if (!strcmp(name, "value")) {
      entry->value = text.chars;
      entry->value_span = span_of(t, node);
    } else {
      entry->source = text.chars;
      entry->source_span = span_of(t, node);
    }
  }
}

static size_t line_start(const spec_text *t, size_t at) {
  while (at && t->text[at - 1] != '\n') at--;
  return at;
}

static void read_group(spec_text *t, const char *group, struct fy_node *body) {
  struct fy_node_pair *pair;
  void *at = NULL;
  char name[FF_YAML_SCALAR + 1];
  size_t line = 0;
  while ((pair = fy_node_mapping_iterate(body, &at))) {
    struct fy_node *key = fy_node_pair_key(pair);
    const spec_param *param = ff_yaml_scalar(key, name) ? spec_param_find(name) : NULL;
    if (!param) continue;
    if (!line) line = line_start(t, span_of(t, key).start);
    read_entry(t, &t->entries[param - spec_params], fy_node_pair_value(pair));
  }
  for (int i = 0; i < SPEC_PARAM_COUNT; i++)
    if (!strcmp(spec_params[i].group, group)) t->group_line[i] = line;
}

static void read_like(spec_text *t, struct fy_node *node) {
  char name[FF_YAML_SCALAR + 1];
  if (!ff_yaml_scalar(node, name)) return;
  t->like = ff_strdup(name);
  t->like_span = span_of(t, node);
  t->like_path = spec_like_path(name, t->path);
}

/* What the file does not give, but the one that it is like. */
static ff_status inherit(spec_text *t, ff_error *error) {
  spec_text *base = ff_alloc(sizeof *base);
  ff_status status = spec_text_read(t->like_path, base, error);
  for (int i = 0; i < SPEC_PARAM_COUNT && !status; i++) {
    spec_entry *entry = &t->entries[i], *from = &base->entries[i];
    if (entry->value || !from->value) continue;
    *entry = (spec_entry){.value = from->value, .source = from->source, .inherited = true};
    *from = (spec_entry){0};
  }
  if (!status) spec_text_free(base);
  free(base);
  return status;
}

static ff_status read_places(spec_text *t, ff_error *error) {
  ff_yaml yaml;
  struct fy_node_pair *pair;
  void *at = NULL;
  char name[FF_YAML_SCALAR + 1];
  ff_status status = ff_yaml_open(t->path, t->text, t->size, "machine", &yaml, error);
  if (status) return status;
  while ((pair = fy_node_mapping_iterate(ff_yaml_root(&yaml), &at))) {
    if (!ff_yaml_scalar(fy_node_pair_key(pair), name)) continue;
    if (!strcmp(name, "title")) t->title = span_of(t, fy_node_pair_value(pair));
    else if (!strcmp(name, "like")) read_like(t, fy_node_pair_value(pair));
    else read_group(t, name, fy_node_pair_value(pair));
  }
  ff_yaml_close(&yaml);
  return FF_OK;
}

ff_status spec_text_read(const char *name, spec_text *t, ff_error *error) {
  *t = (spec_text){0};
  ff_status status = machine_spec_load(name, &t->spec, error);
  if (status) return status;
  memcpy(t->path, t->spec.file, sizeof t->path);
  status = ff_file_read(t->path, 1 << 20, &t->text, &t->size, error);
  if (!status) status = spec_text_load(t->path, t->text, t->size, &t->spec, error);
  if (!status) status = read_places(t, error);
  if (!status && t->like_path) status = inherit(t, error);
  if (status) spec_text_free(t);
  return status;
}

void spec_text_free(spec_text *t) {
  for (int i = 0; i < SPEC_PARAM_COUNT; i++) {
    free(t->entries[i].value);
    free(t->entries[i].source);
  }
  free(t->text);
  free(t->like);
  free(t->like_path);
  *t = (spec_text){0};
}

/* ---- changing ---- */

typedef struct edit { /* the bytes of `span` become `text`; an empty span: it is put there */
  spec_span span;
  char *text;   /* owned */
  size_t order; /* in which they were made: that of edits at one place */
} edit;

typedef struct changing {
  const spec_text *base;
  const char *source; /* NULL: made */
  FF_VEC(edit) edits;
  FF_VEC(const spec_param *) params; /* that were changed */
  ff_text end;                       /* groups that the file does not have yet */
  ff_text list;                      /* "l2_bytes=60M,sm_count=100" */
  ff_error *error;
} changing;

/* As a double-quoted scalar of YAML 1.2 (section 7.3.1). */
static void quote(const char *text, ff_text *out) {
  ff_text_add(out, "\"");
  for (; *text; text++) {
    if (*text == '"' || *text == '\\') ff_text_add(out, "\\");
    ff_text_add(out, "%c", (unsigned char)*text < 32 || *text == 127 ? '?' : *text);
  }
  ff_text_add(out, "\"");
}

/* The text, at most `most` bytes of whole characters. */
static void add_cut(const char *text, size_t most, ff_text *out) {
  size_t length = strlen(text);
  if (length > most)
    for (length = most; length && ((unsigned char)text[length] & 0xc0) == 0x80;) length--;
  ff_text_add_bytes(out, text, length);
}

static void add_source(const changing *c, const spec_entry *entry, ff_text *out) {
  ff_text text = {0};
  if (c->source) ff_text_add(&text, "%s", c->source);
  else if (entry->value) {
    ff_text_add(&text, "set by hand; was ");
    add_cut(entry->value, 60, &text);
    ff_text_add(&text, " (");
    add_cut(entry->source, 400, &text);
    ff_text_add(&text, ")");
  } else ff_text_add(&text, "set by hand; was not given");
  quote(text.chars, out);
  free(text.chars);
}

static void add_edit(changing *c, spec_span span, const ff_text *text) {
  edit made = {span, text->chars, c->edits.count};
  FF_PUSH(&c->edits, made);
}

/* Puts the line into its group in `end`, which begins there if need be. */
static void add_to_end(changing *c, const char *group, const char *line) {
  ff_text head = {0}, end = {0};
  ff_text_add(&head, "\n%s:\n", group);
  const char *found = c->end.chars ? strstr(c->end.chars, head.chars) : NULL;
  size_t before = found ? (size_t)(found - c->end.chars) + head.length : c->end.length;
  ff_text_add_bytes(&end, c->end.chars ? c->end.chars : "", before);
  ff_text_add(&end, "%s  %s%s", found ? "" : head.chars, line, found ? c->end.chars + before : "");
  free(head.chars);
  free(c->end.chars);
  c->end = end;
}

/* In front of its group's first value, or in a group of its own at the end. */
static void add_entry(changing *c, const spec_param *param, const ff_text *value) {
  size_t line = c->base->group_line[param - spec_params];
  ff_text text = {0};
  const char *first = c->base->text + line;
  if (line) ff_text_add_bytes(&text, first, strspn(first, " "));
  ff_text_add(&text, "%s: {value: %s, source: ", param->name, value->chars);
  add_source(c, &c->base->entries[param - spec_params], &text);
  ff_text_add(&text, "}\n");
  if (line) add_edit(c, (spec_span){line, line}, &text);
  else add_to_end(c, param->group, text.chars);
  if (!line) free(text.chars);
}

static ff_status add_change(changing *c, const char *assignment) {
  const char *equals = strchr(assignment, '='), *dot = strchr(assignment, '.');
  if (!equals) return ff_fail(c->error, FF_INVALID, "'%s': write NAME=VALUE", assignment);
  const char *start = dot && dot < equals ? dot + 1 : assignment;
  char *name = strndup(start, (size_t)(equals - start));
  const spec_param *param = name ? spec_param_find(name) : NULL;
  free(name);
  bool other_group = param && start != assignment &&
                     (strlen(param->group) != (size_t)(dot - assignment) ||
                      strncmp(param->group, assignment, strlen(param->group)) != 0);
  if (other_group)
    return ff_fail(c->error, FF_INVALID, "'%s': %s is in group '%s'", assignment, param->name, param->group);
  ff_text_add(&c->list, "%s%s", c->list.length ? "," : "", start);
  if (!param) return FF_OK; /* machine_spec_set_all says what is wrong */
  for (size_t i = 0; i < c->params.count; i++)
    if (c->params.items[i] == param) return ff_fail(c->error, FF_INVALID, "%s is set twice", param->name);
  if (strchr("tmjpl", param->type))
    return ff_fail(c->error, FF_INVALID, "%s is a table: change it in the file", param->name);
  FF_PUSH(&c->params, param);
  const spec_entry *entry = &c->base->entries[param - spec_params];
  ff_text value = {0}, source = {0};
  if (param->type == 's') quote(equals + 1, &value);
  else ff_text_add(&value, "%s", equals + 1);
  if (!entry->value || entry->inherited) {
    add_entry(c, param, &value);
    free(value.chars);
    return FF_OK;
  }
  add_source(c, entry, &source);
  add_edit(c, entry->value_span, &value);
  add_edit(c, entry->source_span, &source);
  return FF_OK;
}

static void add_title(changing *c, const char *title) {
  ff_text text = {0}, cut = {0}, quoted = {0};
  if (title) ff_text_add(&text, "%s", title);
  else ff_text_add(&text, "%s, with %s", c->base->spec.title, c->list.chars);
  add_cut(text.chars, sizeof c->base->spec.title - 1, &cut);
  quote(cut.chars, &quoted);
  add_edit(c, c->base->title, &quoted);
  free(text.chars);
  free(cut.chars);
}

/* A path beside the file would lead elsewhere from another folder. */
static void keep_like(changing *c) {
  const spec_text *base = c->base;
  char *real = base->like_path && base->like[0] != '/' && machine_spec_is_file(base->like)
                   ? realpath(base->like_path, NULL)
                   : NULL;
  ff_text text = {0};
  if (!real) return;
  quote(real, &text);
  add_edit(c, base->like_span, &text);
  free(real);
}

static int by_place(const void *a, const void *b) {
  const edit *x = a, *y = b;
  if (x->span.start != y->span.start) return x->span.start < y->span.start ? -1 : 1;
  return x->order < y->order ? -1 : x->order > y->order;
}

/* The text with all edits; FF_UNSUPPORTED: some have no place, or overlap. */
static ff_status apply(changing *c, ff_text *out) {
  size_t at = 0;
  qsort(c->edits.items, c->edits.count, sizeof *c->edits.items, by_place);
  for (size_t i = 0; i < c->edits.count; i++) {
    const edit *e = &c->edits.items[i];
    if (e->span.start < at || !e->span.end)
      return ff_fail(c->error, FF_UNSUPPORTED, "%s: is written in a form that cannot be edited: one line per value can",
                     c->base->path);
    ff_text_add_bytes(out, c->base->text + at, e->span.start - at);
    ff_text_add(out, "%s", e->text);
    at = e->span.end;
  }
  ff_text_add_bytes(out, c->base->text + at, c->base->size - at);
  if (out->length && out->chars[out->length - 1] != '\n') ff_text_add(out, "\n");
  if (c->end.length) ff_text_add_bytes(out, c->end.chars, c->end.length);
  return FF_OK;
}

/* The new text must give the machine that was asked for. */
static ff_status check(const changing *c, const machine_spec *wanted, const ff_text *out) {
  machine_spec *made = ff_alloc(sizeof *made);
  ff_error why;
  ff_status status = spec_text_load(c->base->path, out->chars, out->length, made, &why);
  if (status)
    status = ff_fail(c->error, FF_UNSUPPORTED, "%s: cannot be edited, as what comes out is no machine: %s",
                     c->base->path, why.message);
  if (!status) {
    memcpy(made->title, wanted->title, sizeof made->title);
    memcpy(made->file, wanted->file, sizeof made->file);
    for (int i = 0; i < SPEC_PARAM_COUNT && !status; i++) {
      const spec_param *param = &spec_params[i];
      size_t next = i + 1 < SPEC_PARAM_COUNT ? spec_params[i + 1].offset : offsetof(machine_spec, file);
      bool text = param->type == 's';
      const char *a = (const char *)made + param->offset, *b = (const char *)wanted + param->offset;
      if (text ? strcmp(a, b) != 0 : memcmp(a, b, next - param->offset) != 0)
        status = ff_fail(c->error, FF_UNSUPPORTED, "%s: is written in a form that cannot be edited (%s)", c->base->path,
                         param->name);
    }
  }
  free(made);
  return status;
}

ff_status spec_text_change(const spec_text *base, const char *const *assignments, size_t count, const char *source,
                           const char *title, ff_text *out, ff_error *error) {
  changing c = {.base = base, .source = source, .error = error};
  machine_spec *wanted = ff_alloc(sizeof *wanted);
  ff_status status = FF_OK;
  *wanted = base->spec;
  for (size_t i = 0; i < count && !status; i++) status = add_change(&c, assignments[i]);
  if (!status && c.list.length) status = machine_spec_set_all(wanted, c.list.chars, error);
  if (!status && (count || title)) add_title(&c, title);
  if (!status) keep_like(&c);
  if (!status) status = apply(&c, out);
  if (!status) status = check(&c, wanted, out);
  for (size_t i = 0; i < c.edits.count; i++) free(c.edits.items[i].text);
  free(c.edits.items);
  free(c.params.items);
  free(c.end.chars);
  free(c.list.chars);
  free(wanted);
  return status;
}
