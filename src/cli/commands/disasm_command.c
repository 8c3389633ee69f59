/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault disasm FILE [FUNCTION]`: the PTX of a file or of an executable as it was understood, and per function what
 * it needs and which instructions it has.
 *
 * The PTX printed parses back to the same module; the summary is PTX comments, so that the whole
 * output stays PTX. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "cli/commands/ptx_code.h"
#include "fatbin/elf.h"
#include "ptx/analysis/cfg.h"
#include "ptx/ir.h"

typedef enum instr_class {
#define C(class, name) CLASS_##class,
#include "cli/interface/classes.def"
#undef C
  CLASSES,
  CLASS_ARITHMETIC, /* one of the above by the instruction's type */
  CLASS_ACCESS,     /* one of the above by its space */
} instr_class;

static const char *const class_names[CLASSES] = {
#define C(class, name) name,
#include "cli/interface/classes.def"
#undef C
};

static instr_class class_of_opcode(ptx_opcode opcode) {
  switch (opcode) {
#define X(mnemonic, class) \
  case PTX_OP_##mnemonic:  \
    return CLASS_##class;
#include "cli/interface/classes.def"
#undef X
  default: return CLASS_OTHER;
  }
}

static instr_class class_of_space(ptx_space space) {
  switch (space) {
  case PTX_SPACE_GLOBAL: return CLASS_GLOBAL;
  case PTX_SPACE_SHARED: return CLASS_SHARED;
  case PTX_SPACE_LOCAL: return CLASS_LOCAL;
  case PTX_SPACE_CONST: return CLASS_CONSTANT;
  case PTX_SPACE_PARAM: return CLASS_PARAMETER;
  default: return CLASS_GENERIC;
  }
}

/* The last type decides: setp.lt.f32 compares floats, set.lt.u32.f64 doubles. */
static instr_class class_of(const ptx_instr *instr) {
  instr_class class = class_of_opcode(instr->opcode);
  ptx_type type = instr->type_count ? instr->types[instr->type_count - 1] : PTX_TYPE_NONE;
  bool real = type != PTX_TYPE_NONE && ptx_type_class(type) == 'F';
  if (class == CLASS_ARITHMETIC)
    return !real ? CLASS_INTEGER : ptx_type_bits(type) == 64 && type == PTX_F64 ? CLASS_DOUBLE : CLASS_FLOAT;
  if (class == CLASS_ACCESS) return class_of_space(ptx_instr_space(instr));
  return class;
}

/* Bytes of the variables of `space`, laid out in order with their alignment. */
static uint64_t layout_bytes(ptx_var *const *vars, uint32_t count, ptx_space space) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < count; i++)
    if (vars[i]->space == space) bytes = (bytes + vars[i]->align - 1) / vars[i]->align * vars[i]->align + vars[i]->size;
  return bytes;
}

static void write_classes(const ptx_func *func, ff_text *out) {
  uint32_t counts[CLASSES] = {0};
  bool any = false;
  for (uint32_t i = 0; i < func->instr_count; i++) counts[class_of(&func->instrs[i])]++;
  for (int class = 0; class < CLASSES; class ++) {
    if (!counts[class]) continue;
    ff_text_add(out, "%s %u %s", any ? "," : "", counts[class], class_names[class]);
    any = true;
  }
}

/* "// saxpy: kernel, 14 registers (estimate), ..." */
static void write_summary(const ptx_func *func, ff_text *out) {
  ptx_cfg *cfg = ptx_cfg_build(func);
  uint64_t shared = layout_bytes(func->vars, func->var_count, PTX_SPACE_SHARED);
  uint64_t local = layout_bytes(func->vars, func->var_count, PTX_SPACE_LOCAL);
  uint64_t params = layout_bytes(func->params, func->param_count, PTX_SPACE_PARAM);
  ff_text_add(out, "// %s: %s, %u registers per thread (estimate)", func->name, func->entry ? "kernel" : "function",
              ptx_register_estimate(func, cfg));
  if (func->entry) ff_text_add(out, ", %llu bytes of parameters", (unsigned long long)params);
  if (shared) ff_text_add(out, ", %llu bytes of shared memory", (unsigned long long)shared);
  if (local) ff_text_add(out, ", %llu bytes of local memory", (unsigned long long)local);
  ff_text_add(out, ", %u basic block%s\n//   %u instruction%s:", cfg->block_count, cli_s(cfg->block_count),
              func->instr_count, cli_s(func->instr_count));
  write_classes(func, out);
  ff_text_add(out, "\n");
  ptx_cfg_free(cfg);
}

/* What is asked for, and what was seen on the way. */
typedef struct search {
  const char *function; /* only its summary and instructions; NULL: whole modules */
  bool found;
  ff_text others; /* the first functions that are not it: "_Z5saxpyifPKfPf, ..." */
  uint32_t other_count;
} search;

enum { OTHERS_NAMED = 8 };

static void remember_other(search *search, const char *name) {
  if (search->other_count++ < OTHERS_NAMED)
    ff_text_add(&search->others, "%s%s", search->other_count > 1 ? ", " : "", name);
}

/* One PTX text. */
static ff_status write_module(const char *name, const char *text, size_t length, search *search, ff_text *out,
                              ff_error *error) {
  const char *function = search->function;
  ptx_module *module;
  ff_status status = ptx_module_parse(name, text, length, &module, error);
  if (status) return status;
  const ptx_func *wanted = function ? ptx_find_func(module, function) : NULL;
  if (!function) {
    ff_text_add(out, "// %s\n", name);
    ptx_print_module(module, out);
  }
  for (uint32_t i = 0; i < module->func_count; i++) {
    const ptx_func *func = module->funcs[i];
    if (!func->has_body) continue;
    if (function && func != wanted) {
      remember_other(search, func->name);
      continue;
    }
    search->found = true;
    write_summary(func, out);
    for (uint32_t j = 0; function && j < func->instr_count; j++) {
      for (uint32_t k = 0; k < func->label_count; k++)
        if (func->labels[k].at == j) ff_text_add(out, "%s:\n", func->labels[k].name);
      ff_text_add(out, "  ");
      ptx_print_instr(func, &func->instrs[j], out);
      ff_text_add(out, "\n");
    }
  }
  ptx_module_free(module);
  return FF_OK;
}

static ff_status write_executable(const char *path, search *search, ff_text *out, ff_error *error) {
  fatbin_ptx_texts texts;
  ff_status status = fatbin_extract_ptx(path, &texts, error);
  if (status) return status;
  for (uint32_t i = 0; i < texts.count && !status; i++) {
    ff_text name = {0};
    ff_text_add(&name, "%s(module %u%s%s, compute_%u%.1s)", path, texts.items[i].image + 1,
                texts.items[i].name[0] ? " of " : "", texts.items[i].name, texts.items[i].arch, &texts.items[i].suffix);
    status = write_module(name.chars, texts.items[i].text, texts.items[i].length, search, out, error);
    free(name.chars);
  }
  fatbin_ptx_texts_free(&texts);
  return status;
}

static bool is_binary(const char *first, size_t bytes) {
  return bytes >= 4 && (!memcmp(first, "\177ELF", 4) || !memcmp(first, "\x50\xed\x55\xba", 4));
}

/* An ELF file or a fat binary, of any size: it is not read whole. A pipe is read once, by the caller. */
static bool is_binary_file(const char *path) {
  char first[4];
  struct stat there;
  FILE *file = !stat(path, &there) && S_ISREG(there.st_mode) ? fopen(path, "re") : NULL;
  size_t bytes = file ? fread(first, 1, sizeof first, file) : 0;
  if (file) fclose(file);
  return is_binary(first, bytes);
}

/* What is no ELF file, no fat binary and no Tile IR is taken for PTX text. */
static ff_status write_file(const char *path, search *search, ff_text *out, ff_error *error) {
  char *text;
  size_t size;
  if (is_binary_file(path)) return write_executable(path, search, out, error);
  ff_status status = ff_file_read(path, 0, &text, &size, error);
  if (status) return status;
  if (is_binary(text, size)) status = write_executable(path, search, out, error);
  else {
    status = code_translate(path, &text, &size, error);
    if (!status) status = write_module(path, text, size, search, out, error);
  }
  free(text);
  return status;
}

typedef struct arguments {
  const char *file, *function;
} arguments;

static error_t parse(int key, char *value, struct argp_state *state) {
  arguments *a = state->input;
  switch (key) {
  case ARGP_KEY_ARG:
    if (!*value) cli_refuse(state, a->file ? "the function's name is empty" : "the file's name is empty");
    if (a->function) cli_refuse(state, "one function at a time");
    if (a->file) a->function = value;
    else a->file = value;
    return 0;
  case ARGP_KEY_END:
    if (!a->file) cli_refuse(state, "which file? (PTX text, or an executable with PTX inside)");
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

static int disasm(int argc, char **argv) {
  static const struct argp argp = {
      NULL,
      parse,
      "FILE [FUNCTION]",
      "Prints the PTX of a file or of an executable as farfault understands it, and per function its "
      "registers, memory and instructions by class. With FUNCTION (its name as in the PTX) only that one.\v"
      "Example:\n  farfault disasm ./saxpy\n  farfault disasm kernels.ptx saxpy",
      NULL,
      NULL,
      NULL};
  arguments a = {0};
  cli_parse(&argp, argc, argv, &a);
  if (kind_refused(a.file, KIND_PTX | KIND_PROGRAM)) return CLI_BAD_FILE;
  ff_text out = {0};
  ff_error error;
  search search = {.function = a.function};
  int status;
  if (write_file(a.file, &search, &out, &error)) status = cli_fail(CLI_BAD_FILE, "%s", error.message);
  else if (a.function && !search.found)
    status = cli_fail(CLI_BAD_FILE, "%s: has no function '%s' with a body: there %s %s%s", a.file, a.function,
                      search.other_count == 1 ? "is" : "are", search.other_count ? search.others.chars : "none",
                      search.other_count > OTHERS_NAMED ? ", ..." : "");
  else status = cli_print(&out);
  free(search.others.chars);
  free(out.chars);
  return status;
}

const cli_command cli_disasm = {"disasm", "print the PTX of a file or executable, and what functions need", disasm};
