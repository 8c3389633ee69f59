/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a program's translation units are needed.
 *
 * After a device link (nvcc -rdc=true) a fat binary holds one PTX text per translation unit, and as a rule one more:
 * the large library of dynamic parallelism, of which nothing is used. A text is parsed only if it defines a name that
 * the program has registered (a kernel, a variable), or one that a parsed text declares as external.
 *
 * What a text defines is seen without parsing it: every word of its statements outside braces that do not say .extern.
 * That may be too much (names of parameters, say), but not too little. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "driver/engine/engine_internal.h"
#include "fatbin/fatbin.h"

typedef struct word {
  const char *text;
  size_t length;
} word;
typedef struct part_index {
  FF_VEC(word) words;
} part_index; /* sorted, borrowed from the source */

/* ---- what a text defines ---- */

static bool in_word(char c) { return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '.' || c == '%'; }

static const char *skip_to(const char *at, const char *end, const char *close) {
  size_t length = strlen(close);
  while (at < end && ((size_t)(end - at) < length || memcmp(at, close, length))) at++;
  return (size_t)(end - at) < length ? end : at + length;
}

/* Behind a comment or a quoted text that begins at `at`; `at` itself if none does. */
static const char *skip_text(const char *at, const char *end) {
  if (*at == '"') return skip_to(at + 1, end, "\"");
  if (*at != '/' || end - at < 2) return at;
  if (at[1] == '/') return skip_to(at + 2, end, "\n");
  return at[1] == '*' ? skip_to(at + 2, end, "*/") : at;
}

/* Behind the '}' that belongs to the '{' before `at`. Nearly all of a text is in braces. */
static const char *skip_braces(const char *at, const char *end) {
  static const bool matters[256] = {['{'] = true, ['}'] = true, ['"'] = true, ['/'] = true};
  for (uint32_t depth = 1; at < end && depth;) {
    if (!matters[(unsigned char)*at]) {
      at++;
      continue;
    }
    const char *behind = skip_text(at, end);
    if (behind == at) {
      depth += *at == '{';
      depth -= *at == '}';
      behind++;
    }
    at = behind;
  }
  return at;
}

static int compare_words(const void *left, const void *right) {
  const word *a = left, *b = right;
  int order = memcmp(a->text, b->text, a->length < b->length ? a->length : b->length);
  return order ? order : (a->length > b->length) - (a->length < b->length);
}

static void make_index(const engine_source *source, part_index *index) {
  const char *at = source->text, *end = at + source->length;
  size_t statement = 0; /* its first word in the index */
  bool external = false;
  while (at < end) {
    const char *behind = skip_text(at, end), *begin = at;
    if (behind != at) {
      at = behind;
      continue;
    }
    if (*at == '{') at = begin = skip_braces(at + 1, end) - 1;
    if (*at == ';' || *at == '}') {
      if (external) index->words.count = statement;
      statement = index->words.count;
      external = false;
    }
    while (at < end && in_word(*at)) at++;
    if (at == begin) {
      at++;
      continue;
    }
    word found = {begin, (size_t)(at - begin)};
    if (*begin != '.') FF_PUSH(&index->words, found);
    else if (found.length == 7 && !memcmp(begin, ".extern", 7)) external = true;
  }
  if (index->words.count) qsort(index->words.items, index->words.count, sizeof *index->words.items, compare_words);
}

static bool defines(const part_index *index, const char *name) {
  word wanted = {name, strlen(name)};
  return index->words.count && bsearch(&wanted, index->words.items, index->words.count, sizeof wanted, compare_words);
}

/* ---- what is needed ---- */

typedef struct part_choice {
  engine_module *module;
  part_index *indices;
  bool *needed;
} part_choice;

static void need(part_choice *choice, const char *name) {
  for (size_t i = 0; i < choice->module->sources.count; i++)
    if (!choice->needed[i] && defines(&choice->indices[i], name)) choice->needed[i] = true;
}

static void need_externals(part_choice *choice, const ptx_module *part) {
  for (uint32_t f = 0; f < part->func_count; f++)
    if (!part->funcs[f]->has_body) need(choice, part->funcs[f]->name);
  for (uint32_t v = 0; v < part->var_count; v++)
    if (part->vars[v]->linkage == PTX_LINK_EXTERN) need(choice, part->vars[v]->name);
}

/* The texts that hold what the program has registered; all of them if that says nothing. */
static void need_registered(part_choice *choice) {
  engine_module *module = choice->module;
  size_t count = 0;
  for (const engine_function *f = module->functions; f && module->binary; f = f->next) need(choice, f->name);
  for (const engine_variable *v = module->variables; v && module->binary; v = v->next) need(choice, v->name);
  for (size_t i = 0; i < module->sources.count; i++) count += choice->needed[i];
  for (size_t i = 0; i < module->sources.count && !count; i++) choice->needed[i] = true;
}

/* What a kernel says itself goes before what the compiler was told for all. */
static void limit_registers(ptx_module *part, uint32_t most) {
  for (uint32_t f = 0; f < part->func_count; f++)
    if (part->funcs[f]->entry && !part->funcs[f]->maxnreg) part->funcs[f]->maxnreg = most;
}

/* What is in a program's own binary is read when it is wanted; a text that the program loads is right or wrong as a
 * whole when it does. What is done to all kernels of a module needs all of them. */
static bool may_read_later(const engine_module *module) { return module->binary && !ff_engine.options.sm_count; }

static ff_status parse_source(const engine_module *module, const engine_source *source, ptx_module **parsed,
                              ff_error *error) {
  if (may_read_later(module)) return ptx_module_parse_later(source->name, source->text, source->length, parsed, error);
  return ptx_module_parse(source->name, source->text, source->length, parsed, error);
}

/* FF_PARSE, as a driver's assembler has it: code with a letter in its target that this GPU does not run. What is plain
 * runs on older GPUs, too (src/driver/README.md). */
static ff_status check_target(const engine_source *source, const ptx_module *part, ff_error *error) {
  const machine_spec *machine = ff_engine.machine;
  uint32_t capability = (uint32_t)(machine->compute_major * 10 + machine->compute_minor);
  if (!source->own_target || !part->target_suffix || fatbin_target_runs(part->target, part->target_suffix, capability))
    return FF_OK;
  return ff_fail(
      error, FF_PARSE,
      "%s: its .target is sm_%u%c, which the machine does not run (compute capability %u.%u): such code runs on "
      "that architecture ('a') or on its family ('f') alone: --machine names another GPU",
      source->name, part->target, part->target_suffix, capability / 10, capability % 10);
}

/* Parses until nothing more is needed: parsed[i] belongs to source i. */
static ff_status parse_needed(part_choice *choice, ptx_module **parsed, ff_error *error) {
  const engine_module *module = choice->module;
  bool again = true; /* a text may need one that stands before it */
  while (again) {
    again = false;
    for (size_t i = 0; i < module->sources.count; i++) {
      const engine_source *source = &module->sources.items[i];
      if (!choice->needed[i] || parsed[i]) continue;
      ff_status status = parse_source(module, source, &parsed[i], error);
      if (!status) status = check_target(source, parsed[i], error);
      if (status) return status;
      limit_registers(parsed[i], source->max_registers);
      need_externals(choice, parsed[i]);
      again = true;
    }
  }
  return FF_OK;
}

ff_status engine_parts_parse(engine_module *module, ff_error *error) {
  size_t count = module->sources.count;
  part_choice choice = {module, ff_alloc(count * sizeof *choice.indices), ff_alloc(count * sizeof *choice.needed)};
  ptx_module **parsed = ff_alloc(count * sizeof(ptx_module *));
  for (size_t i = 0; i < count && count > 1; i++) make_index(&module->sources.items[i], &choice.indices[i]);
  need_registered(&choice);
  ff_status status = parse_needed(&choice, parsed, error);
  for (size_t i = 0; i < count; i++) {
    if (parsed[i]) FF_PUSH(&module->parts, parsed[i]);
    if (parsed[i] && module->sources.items[i].tile) FF_PUSH(&module->tile_parts, (const ptx_module *)parsed[i]);
    free(choice.indices[i].words.items);
  }
  free(choice.indices);
  free(choice.needed);
  free(parsed);
  return status;
}
