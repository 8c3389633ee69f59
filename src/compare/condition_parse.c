/* SPDX-License-Identifier: Apache-2.0 */
/* From a text to the nodes of a condition, by recursive descent: one function per line of the grammar (condition.h).
 * Each returns the node that it made. After the first error `failed` is set, and everything returns at once. */
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare/condition_private.h"

enum { POWER_MAX = 8, NAME_MAX_LENGTH = 255 };

typedef struct parser {
  condition *c;
  const char *at; /* what comes next */
  uint32_t depth;
  ff_status failed;
  ff_error *error;
} parser;

static const struct {
  const char *name;
  double scale;
  int time, bytes;
} units[] = {{"ps", 1, 1, 0},
             {"ns", 1e3, 1, 0},
             {"us", 1e6, 1, 0},
             {"ms", 1e9, 1, 0},
             {"s", 1e12, 1, 0},
             {"B", 1, 0, 1},
             {"K", 1024, 0, 1},
             {"KiB", 1024, 0, 1},
             {"M", 1048576, 0, 1},
             {"MiB", 1048576, 0, 1},
             {"G", 1073741824, 0, 1},
             {"GiB", 1073741824, 0, 1},
             {"T", 1099511627776, 0, 1},
             {"TiB", 1099511627776, 0, 1},
             {"%", 0.01, 0, 0}};
enum { UNITS = sizeof units / sizeof *units };

ff_status condition_fail(const condition *c, uint32_t column, ff_status status, ff_error *error, const char *format,
                         ...) {
  char what[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  return ff_fail_in_text(error, status, "condition", c->text, strlen(c->text), 1, column, "%s", what);
}

#define FAIL(p, column, ...) ((p)->failed = condition_fail((p)->c, (column), FF_PARSE, (p)->error, __VA_ARGS__))

static uint32_t column_of(const parser *p, const char *at) { return (uint32_t)(at - p->c->text) + 1; }

static void skip_blanks(parser *p) {
  while (isspace((unsigned char)*p->at)) p->at++;
}

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* Takes an operator, or a word that ends here. */
static bool take(parser *p, const char *token) {
  size_t length = strlen(token);
  skip_blanks(p);
  if (p->failed || strncmp(p->at, token, length) != 0) return false;
  if (is_word(token[0]) && (is_word(p->at[length]) || p->at[length] == '.' || p->at[length] == '-')) return false;
  p->at += length;
  return true;
}

static uint32_t push(parser *p, condition_node node) {
  FF_PUSH(&p->c->nodes, node);
  return (uint32_t)p->c->nodes.count - 1;
}

/* ---- dimensions ---- */

/* "a time", "bytes", "a number", "a condition", "bytes per time". Returns buffer. */
static const char *dimension(const condition_node *n, char buffer[64]) {
  const char *name = NULL;
  if (n->truth) name = "a condition";
  else if (!n->time && !n->bytes) name = "a number";
  else if (n->time == 1 && !n->bytes) name = "a time";
  else if (!n->time && n->bytes == 1) name = "bytes";
  else if (n->time == -1 && n->bytes == 1) name = "bytes per time";
  if (name) snprintf(buffer, 64, "%s", name);
  else snprintf(buffer, 64, "time^%d x bytes^%d", n->time, n->bytes);
  return buffer;
}

static bool must_be(parser *p, uint32_t node, bool truth, uint32_t column) {
  if (p->failed) return false;
  if (p->c->nodes.items[node].truth == truth) return true;
  if (truth) FAIL(p, column, "a condition is wanted here, such as uvm.faults > 1000");
  else FAIL(p, column, "a number is wanted here, and this is a condition");
  return false;
}

static uint32_t add_pair(parser *p, condition_operation operation, uint32_t left, uint32_t right, uint32_t column) {
  bool logic = operation >= OP_AND, compares = operation >= OP_LESS && operation <= OP_UNEQUAL;
  if (!must_be(p, left, logic, column) || !must_be(p, right, logic, column)) return 0;
  const condition_node *a = &p->c->nodes.items[left], *b = &p->c->nodes.items[right];
  condition_node node = {
      .operation = operation, .left = left, .right = right, .column = column, .truth = logic || compares};
  char first[64], second[64];
  int sign = operation == OP_DIVIDE ? -1 : 1;
  if (operation == OP_MULTIPLY || operation == OP_DIVIDE) {
    node.time = a->time + sign * b->time;
    node.bytes = a->bytes + sign * b->bytes;
    if (abs(node.time) > POWER_MAX || abs(node.bytes) > POWER_MAX) FAIL(p, column, "the power of a unit is too high");
  } else if (!logic && (a->time != b->time || a->bytes != b->bytes))
    FAIL(p, column, "%s and %s cannot be %s", dimension(a, first), dimension(b, second),
         compares ? "compared" : "added up or subtracted");
  else if (!logic && !compares) {
    node.time = a->time;
    node.bytes = a->bytes;
  }
  return p->failed ? 0 : push(p, node);
}

/* ---- what has no parts ---- */

static uint32_t parse_number(parser *p) {
  const char *start = p->at, *end = p->at;
  condition_node node = {.operation = OP_NUMBER, .column = column_of(p, start)};
  while (isdigit((unsigned char)*end) || *end == '.') end++;
  bool exponent = *end == 'e' && isdigit((unsigned char)end[1 + (end[1] == '-' || end[1] == '+')]);
  if (exponent) end += 2;
  while (exponent && isdigit((unsigned char)*end)) end++;
  char *read;
  node.number = strtod(start, &read);
  if (read != end || !isfinite(node.number)) {
    FAIL(p, node.column, "this is no number");
    return 0;
  }
  p->at = end;
  skip_blanks(p);
  size_t length = *p->at == '%' ? 1 : 0;
  if (isalpha((unsigned char)*p->at))
    while (is_word(p->at[length])) length++;
  if (!length || take(p, "and") || take(p, "or")) {
    p->at = end;
    return push(p, node);
  }
  for (int i = 0; i < UNITS; i++)
    if (strlen(units[i].name) == length && !strncmp(units[i].name, p->at, length)) {
      node.number *= units[i].scale;
      node.time = units[i].time;
      node.bytes = units[i].bytes;
      p->at += length;
      return push(p, node);
    }
  FAIL(p, column_of(p, p->at), "no unit '%.*s': there are ps, ns, us, ms, s, B, KiB, MiB, GiB, TiB and %%", (int)length,
       p->at);
  return 0;
}

/* A manager: in quotes, or what its names are made of. The caller frees; NULL: failed. */
static char *parse_manager(parser *p) {
  const char *start = p->at, *end = start;
  char quote = *start == '"' || *start == '\'' ? *start : '\0';
  if (quote) {
    start++;
    for (end = start; *end && *end != quote;) end++;
    if (!*end) FAIL(p, column_of(p, p->at), "the quote is not closed");
  } else
    while (is_word(*end) || *end == '-' || *end == '@') end++;
  size_t length = (size_t)(end - start);
  if (!p->failed && (!length || length > NAME_MAX_LENGTH))
    FAIL(p, column_of(p, p->at), "a manager's name is wanted here");
  if (p->failed) return NULL;
  p->at = end + (quote ? 1 : 0);
  char *name = ff_alloc(length + 1);
  memcpy(name, start, length);
  return name;
}

static metric_id parse_metric(parser *p) {
  char name[64];
  size_t length = 0;
  const char *start = p->at;
  while (is_word(start[length]) || (unsigned char)start[length] >= 0x80) length++; /* the message has the whole word */
  p->at += length;
  snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), start);
  metric_id id = metric_find(name);
  if (id < METRIC_COUNT && length < sizeof name) return id;
  const char *near = ff_closest(name, metric_names);
  if (!length) FAIL(p, column_of(p, start), "a metric's name is wanted here, such as time or faults");
  else if (near) FAIL(p, column_of(p, start), "no metric '%s': did you mean '%s'?", name, near);
  else FAIL(p, column_of(p, start), "no metric '%s' (docs/json.md lists them)", name);
  return METRIC_COUNT;
}

static uint32_t parse_name(parser *p) {
  condition_node node = {.operation = OP_NAME, .column = column_of(p, p->at)};
  char *manager = parse_manager(p);
  if (manager && !strcmp(manager, "baseline") && *p->at == '.') {
    free(manager);
    p->at++;
    node.baseline = true;
    manager = parse_manager(p);
  }
  if (manager && *p->at != '.')
    FAIL(p, node.column, "a name is MANAGER.METRIC, such as uvm.faults or baseline.copy.time");
  if (!p->failed) {
    p->at++;
    node.metric = parse_metric(p);
  }
  if (p->failed) {
    free(manager);
    return 0;
  }
  metric_kind kind = metric_kind_of(node.metric);
  node.manager = manager;
  node.time = kind == METRIC_TIME;
  node.bytes = kind == METRIC_BYTES;
  return push(p, node);
}

/* ---- the grammar, from the tightest binding to the loosest ---- */

static uint32_t parse_or(parser *p);

static uint32_t parse_whole(parser *p) {
  if (take(p, "(")) {
    const char *open = p->at - 1;
    uint32_t inner = parse_or(p);
    if (!p->failed && !take(p, ")")) FAIL(p, column_of(p, open), "the parenthesis is not closed");
    return inner;
  }
  skip_blanks(p);
  if (isdigit((unsigned char)*p->at) || *p->at == '.') return parse_number(p);
  if (is_word(*p->at) || *p->at == '"' || *p->at == '\'') return parse_name(p);
  if (*p->at) FAIL(p, column_of(p, p->at), "a number or a name is wanted here");
  else FAIL(p, column_of(p, p->at), "the condition ends where a number or a name is wanted");
  return 0;
}

/* What goes deeper comes through here or through parse_not. */
static bool enter(parser *p) {
  if (p->failed) return false;
  if (p->depth++ < CONDITION_DEPTH) return true;
  p->failed = condition_fail(p->c, column_of(p, p->at), FF_LIMIT, p->error, "more than %d levels", CONDITION_DEPTH);
  return false;
}

static uint32_t parse_sign(parser *p) {
  if (!enter(p)) return 0;
  uint32_t node = 0;
  if (take(p, "-")) {
    uint32_t column = column_of(p, p->at - 1), operand = parse_sign(p);
    if (must_be(p, operand, false, column)) {
      const condition_node *of = &p->c->nodes.items[operand];
      node =
          push(p, (condition_node){
                      .operation = OP_NEGATE, .left = operand, .time = of->time, .bytes = of->bytes, .column = column});
    }
  } else node = parse_whole(p);
  p->depth--;
  return node;
}

typedef struct infix {
  const char *token;
  condition_operation operation;
} infix;

/* One of the operators (the list ends in NULL), and where it stands. */
static bool take_infix(parser *p, const infix *list, condition_operation *operation, uint32_t *column) {
  for (; list->token; list++)
    if (take(p, list->token)) {
      *operation = list->operation;
      *column = column_of(p, p->at - strlen(list->token));
      return true;
    }
  return false;
}

/* Operands with operators of one strength between them, from the left. */
static uint32_t parse_row(parser *p, const infix *list, uint32_t (*operand)(parser *)) {
  condition_operation operation;
  uint32_t column, left = operand(p);
  while (!p->failed && take_infix(p, list, &operation, &column)) {
    uint32_t right = operand(p);
    left = add_pair(p, operation, left, right, column);
  }
  return left;
}

static uint32_t parse_product(parser *p) {
  static const infix list[] = {{"*", OP_MULTIPLY}, {"/", OP_DIVIDE}, {0}};
  return parse_row(p, list, parse_sign);
}

static uint32_t parse_sum(parser *p) {
  static const infix list[] = {{"+", OP_ADD}, {"-", OP_SUBTRACT}, {0}};
  return parse_row(p, list, parse_product);
}

static uint32_t parse_comparison(parser *p) {
  static const infix list[] = {{"<=", OP_LESS_EQUAL},
                               {">=", OP_MORE_EQUAL},
                               {"==", OP_EQUAL},
                               {"!=", OP_UNEQUAL},
                               {"<", OP_LESS},
                               {">", OP_MORE},
                               {0}};
  condition_operation operation, second;
  uint32_t column, left = parse_sum(p);
  if (p->failed || !take_infix(p, list, &operation, &column)) return left;
  uint32_t right = parse_sum(p);
  left = add_pair(p, operation, left, right, column);
  if (!p->failed && take_infix(p, list, &second, &column))
    FAIL(p, column, "one comparison after the other: put 'and' between two of them");
  return left;
}

static uint32_t parse_not(parser *p) {
  if (!enter(p)) return 0;
  uint32_t node = 0;
  skip_blanks(p);
  bool bang = *p->at == '!' && p->at[1] != '=';
  if (take(p, "not") || (bang && take(p, "!"))) {
    uint32_t column = column_of(p, p->at), operand = parse_not(p);
    if (must_be(p, operand, true, column))
      node = push(p, (condition_node){.operation = OP_NOT, .left = operand, .truth = true, .column = column});
  } else node = parse_comparison(p);
  p->depth--;
  return node;
}

static uint32_t parse_and(parser *p) {
  static const infix list[] = {{"and", OP_AND}, {"&&", OP_AND}, {0}};
  return parse_row(p, list, parse_not);
}

static uint32_t parse_or(parser *p) {
  static const infix list[] = {{"or", OP_OR}, {"||", OP_OR}, {0}};
  return parse_row(p, list, parse_and);
}

ff_status condition_parse(const char *text, condition **out, ff_error *error) {
  *out = NULL;
  if (strlen(text) > CONDITION_LENGTH)
    return ff_fail(error, FF_LIMIT, "a condition of more than %d characters", CONDITION_LENGTH);
  condition *c = ff_alloc(sizeof *c);
  c->text = ff_strdup(text);
  for (char *at = c->text; *at; at++)
    if ((unsigned char)*at < 32) *at = ' ';
  parser p = {.c = c, .at = c->text, .error = error};
  uint32_t whole = parse_or(&p);
  skip_blanks(&p);
  if (!p.failed && *p.at == '=' && p.at[1] != '=') FAIL(&p, column_of(&p, p.at), "'=' compares nothing: write ==");
  if (!p.failed && *p.at) FAIL(&p, column_of(&p, p.at), "an operator is wanted here (+ - * / < <= > >= == != and or)");
  must_be(&p, whole, true, 1);
  if (p.failed) condition_free(c);
  else *out = c;
  return p.failed;
}
