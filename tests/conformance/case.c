/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a case of a conformance file. Its comments are looked at line by line: "// key rest", and "//   more" (two blanks or
 * more) continues the line before. A text without `.version` is only the body of a kernel: the rest is written around
 * it. */
#include "case.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "exec/memory/multicast.h"

typedef struct reader {
  const char *name;
  unsigned line;
  conformance_case *out;
  ff_error *error;
  value_part *list; /* the list that a continuation line adds to */
  size_t list_count, list_room;
  const value_type *list_type;
  case_array *list_array;
  bool list_is_output;
} reader;

static ff_status bad(const reader *r, const char *what, const char *detail) {
  return ff_fail(r->error, FF_INVALID, "%s:%u: %s%s%s", r->name, r->line, what, detail ? ": " : "",
                 detail ? detail : "");
}

/* ---- lists of values ---- */

static ff_status add_word(reader *r, const char *word, size_t length) {
  unsigned parts = r->list_type->parts;
  if (r->list_count == r->list_room) {
    size_t room = r->list_room ? 2 * r->list_room : 64;
    value_part *more = realloc(r->list, room * parts * sizeof *more);
    if (!more) return bad(r, "out of memory", NULL);
    r->list = more;
    r->list_room = room;
  }
  if (!value_parse(r->list_type, word, length, r->list + r->list_count * parts)) {
    char text[80];
    snprintf(text, sizeof text, "'%.*s'", (int)(length < 60 ? length : 60), word);
    return bad(r, "not a value of this type", text);
  }
  r->list_count++;
  return FF_OK;
}

static ff_status add_words(reader *r, const char *text) {
  while (*text) {
    text += strspn(text, " \t\r");
    size_t length = strcspn(text, " \t\r");
    if (length) {
      ff_status status = add_word(r, text, length);
      if (status) return status;
    }
    text += length;
  }
  return FF_OK;
}

/* The list is complete: it becomes the input or output of its array. */
static ff_status end_list(reader *r) {
  case_array *array = r->list_array;
  if (!array) return FF_OK;
  r->list_array = NULL;
  value_part *list = r->list;
  r->list = NULL;
  if (r->list_is_output) array->output = list;
  else array->input = list;
  size_t count = r->list_count;
  r->list_count = r->list_room = 0;
  if (!count) return bad(r, "no values", array->name);
  if (array->count && array->count != count) return bad(r, "input and output differ in length", array->name);
  array->count = count;
  return FF_OK;
}

static case_array *find_array(conformance_case *c, const char *name) {
  for (unsigned i = 0; i < c->array_count; i++)
    if (!strcmp(c->arrays[i].name, name)) return &c->arrays[i];
  return NULL;
}

/* "in NAME: TYPE values": `rest` is what stands after the way. */
static ff_status start_list(reader *r, const char *way, const char *rest) {
  char name[32], type[16];
  int used = 0;
  if (sscanf(rest, " %31[A-Za-z0-9_$] : %15[a-z0-9]%n", name, type, &used) < 2)
    return bad(r, "expected NAME: TYPE values", rest);
  const value_type *value = value_type_find(type, strlen(type));
  if (!value) return bad(r, "unknown type", type);
  case_array *array = find_array(r->out, name);
  bool is_output = !strcmp(way, "out");
  if (array && (array->type != value || (is_output ? array->has_output : array->has_input)))
    return bad(r, "given twice", name);
  if (!array) {
    if (r->out->array_count == CASE_ARRAYS) return bad(r, "too many arrays", name);
    array = &r->out->arrays[r->out->array_count++];
    snprintf(array->name, sizeof array->name, "%s", name);
    array->type = value;
    array->by_value = !strcmp(way, "param");
  }
  if (is_output) array->has_output = true;
  else array->has_input = true;
  r->list_array = array;
  r->list_type = value;
  r->list_is_output = is_output;
  return add_words(r, rest + used);
}

/* ---- the other keys ---- */

static ff_status read_allow(reader *r, const char *rest) {
  char name[32];
  int used = 0;
  case_array *array =
      sscanf(rest, " %31[A-Za-z0-9_$] : %n", name, &used) == 1 && used ? find_array(r->out, name) : NULL;
  if (!array) return bad(r, "allow: no such output", rest);
  return value_bound_parse(rest + used, &array->bound)
             ? FF_OK
             : bad(r, "expected ulp N, absolute X or relative X", rest + used);
}

static ff_status read_multicast(reader *r, const char *rest) {
  char name[32];
  unsigned members;
  case_array *array = sscanf(rest, " %31[A-Za-z0-9_$] : %u", name, &members) == 2 ? find_array(r->out, name) : NULL;
  if (!array || !members || members > EXEC_TEAM_MAX || array->count % members)
    return bad(r, "expected an array and how many devices have equal parts of it", rest);
  array->members = members;
  return FF_OK;
}

static const char *read_shape(const char *text, unsigned shape[3]) {
  for (int axis = 0; axis < 3; axis++) {
    text += strspn(text, " ");
    if (!isdigit((unsigned char)*text)) break;
    shape[axis] = (unsigned)strtoul(text, (char **)&text, 10);
  }
  return text;
}

/* "grid X Y Z block X Y Z cluster X Y Z shared BYTES cooperative", each part optional */
static ff_status read_launch(reader *r, const char *rest) {
  conformance_case *c = r->out;
  c->has_launch = true;
  while (*(rest += strspn(rest, " "))) {
    if (!strncmp(rest, "grid ", 5)) rest = read_shape(rest + 5, c->grid);
    else if (!strncmp(rest, "block ", 6)) rest = read_shape(rest + 6, c->block);
    else if (!strncmp(rest, "cluster ", 8)) rest = read_shape(rest + 8, c->cluster);
    else if (!strncmp(rest, "shared ", 7)) c->shared = (unsigned)strtoul(rest + 7, (char **)&rest, 10);
    else if (!strncmp(rest, "cooperative", 11)) c->cooperative = true, rest += 11;
    else return bad(r, "expected grid, block, cluster, shared or cooperative", rest);
  }
  return FF_OK;
}

static ff_status read_word(reader *r, const char *rest, char *out, size_t size) {
  rest += strspn(rest, " ");
  size_t length = strcspn(rest, " \r");
  if (!length || length >= size) return bad(r, "expected one word", rest);
  memcpy(out, rest, length);
  out[length] = 0;
  return FF_OK;
}

static ff_status read_comment(reader *r, const char *comment) {
  if (r->list_array && !strncmp(comment, "  ", 2)) return add_words(r, comment);
  ff_status status = end_list(r);
  if (status) return status;
  comment += strspn(comment, " ");
  if (!strncmp(comment, "in ", 3)) return start_list(r, "in", comment + 3);
  if (!strncmp(comment, "out ", 4)) return start_list(r, "out", comment + 4);
  if (!strncmp(comment, "param ", 6)) return start_list(r, "param", comment + 6);
  if (!strncmp(comment, "allow ", 6)) return read_allow(r, comment + 6);
  if (!strncmp(comment, "multicast ", 10)) return read_multicast(r, comment + 10);
  if (!strncmp(comment, "launch:", 7)) return read_launch(r, comment + 7);
  if (!strncmp(comment, "fault:", 6)) return read_word(r, comment + 6, r->out->fault, sizeof r->out->fault);
  if (!strncmp(comment, "kernel:", 7)) return read_word(r, comment + 7, r->out->kernel, sizeof r->out->kernel);
  return FF_OK; /* a remark */
}

static ff_status read_lines(reader *r, char *text) {
  ff_status status = FF_OK;
  for (char *line = text; line && !status;) {
    char *next = strchr(line, '\n');
    if (next) *next++ = 0;
    r->line++;
    status = strncmp(line, "//", 2) ? end_list(r) : read_comment(r, line + 2);
    line = next;
  }
  return status ? status : end_list(r);
}

/* ---- the text ---- */

static void write_registers(const conformance_case *c, ff_text *out) {
  for (unsigned i = 0; i < c->array_count; i++)
    ff_text_add(out, "  .reg .%s %%%s;\n", c->arrays[i].type->reg, c->arrays[i].name);
}

static void write_access(const case_array *array, bool store, ff_text *out) {
  ff_text_add(out, "  ld.param.u64 %%at, [%s]; mad.wide.u32 %%at, %%i, %u, %%at; ", array->name,
              value_bytes(array->type));
  if (store) ff_text_add(out, "st.global.%s [%%at], %%%s;\n", array->type->memory, array->name);
  else ff_text_add(out, "ld.global.%s %%%s, [%%at];\n", array->type->memory, array->name);
}

/* The short form: only instructions on registers named like the arrays. Predicates %p, %q and a few scratch registers
 * are there. */
static void write_around(const conformance_case *c, const char *body, ff_text *out) {
  ff_text_add(out, ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry test(");
  for (unsigned i = 0; i < c->array_count; i++) ff_text_add(out, "%s.param .u64 %s", i ? ", " : "", c->arrays[i].name);
  ff_text_add(out, ")\n{\n  .reg .u32 %%i, %%n, %%t; .reg .u64 %%at; .reg .pred %%p, %%q;\n");
  ff_text_add(out, "  .reg .b16 %%h<4>; .reg .b32 %%r<8>; .reg .b64 %%rd<8>; .reg .f32 %%f<4>; .reg .f64 %%fd<4>;\n");
  write_registers(c, out);
  ff_text_add(
      out, "  mov.u32 %%i, %%ctaid.x; mov.u32 %%n, %%ntid.x; mov.u32 %%t, %%tid.x; mad.lo.u32 %%i, %%i, %%n, %%t;\n");
  for (unsigned i = 0; i < c->array_count; i++)
    if (c->arrays[i].has_input) write_access(&c->arrays[i], false, out);
  ff_text_add(out, "%s\n", body);
  for (unsigned i = 0; i < c->array_count; i++)
    if (c->arrays[i].has_output) write_access(&c->arrays[i], true, out);
  ff_text_add(out, "  ret;\n}\n");
}

static unsigned line_of_mark(const char *text) {
  const char *mark = strstr(text, "// faults here");
  unsigned line = 1;
  if (!mark) return 0;
  for (const char *at = text; at < mark; at++) line += *at == '\n';
  return line;
}

/* A whole module has empty lines for what stands before it in the file, so that what names a line names the file's. */
static ff_status keep_text(conformance_case *c, const char *text, const case_place *place, ff_error *error) {
  ff_text whole = {0};
  if (strstr(text, ".version")) {
    for (unsigned line = 1; line < place->line; line++) ff_text_add_bytes(&whole, "\n", 1);
    ff_text_add_bytes(&whole, text, place->length);
  } else {
    write_around(c, text, &whole);
  }
  c->text = whole.chars;
  c->text_length = whole.length;
  if (!c->text) return ff_fail(error, FF_NO_MEMORY, "out of memory");
  c->fault_line = line_of_mark(c->text);
  return FF_OK;
}

static ff_status check_case(const reader *r, const conformance_case *c) {
  bool checks = c->fault[0] != 0;
  for (unsigned i = 0; i < c->array_count; i++) {
    checks = checks || c->arrays[i].has_output;
    if (!c->has_launch && (c->arrays[i].by_value || c->arrays[i].members || c->arrays[i].count != c->arrays[0].count))
      return bad(r, "without 'launch:' every array has one value per thread, which differs", c->arrays[i].name);
  }
  if (!checks) return bad(r, "nothing is expected: there is no 'out' and no 'fault:'", NULL);
  return FF_OK;
}

ff_status case_read(const char *name, const case_place *place, conformance_case *out, ff_error *error) {
  *out = (conformance_case){.grid = {1, 1, 1}, .block = {1, 1, 1}, .kernel = "test"};
  char *copy = malloc(place->length + 1);
  if (!copy) return ff_fail(error, FF_NO_MEMORY, "out of memory");
  memcpy(copy, place->text, place->length);
  copy[place->length] = 0;
  reader r = {.name = name, .line = place->line - 1, .out = out, .error = error};
  ff_status status = read_lines(&r, copy);
  memcpy(copy, place->text, place->length); /* the lines were cut apart */
  if (!status) status = keep_text(out, copy, place, error);
  r.line = place->line;
  if (!status) status = check_case(&r, out);
  free(r.list);
  free(copy);
  if (status) case_free(out);
  return status;
}

void case_free(conformance_case *c) {
  for (unsigned i = 0; i < c->array_count; i++) free(c->arrays[i].input), free(c->arrays[i].output);
  free(c->text);
  *c = (conformance_case){0};
}
