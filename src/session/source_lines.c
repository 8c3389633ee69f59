/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of instructions (source_lines.h): the modules that were launched are parsed again; an access's number counts
 * the instructions of the kernel and then those of the functions that it reaches, in the order in which they were
 * executed (exec_functions_of). */
#include "session/source_lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "exec/exec.h"
#include "offload/recorded_code.h"
#include "ptx/ir.h"

/* All simulations of a program see the same modules; one that is behind has not seen all. */
static const sim_result *best_informed(const sim_result *results, uint32_t count) {
  const sim_result *best = results;
  for (uint32_t i = 1; i < count; i++)
    if (results[i].code_count > best->code_count) best = &results[i];
  return best;
}

static bool is_used(const sim_result *results, uint32_t count, uint32_t module) {
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t n = 0; n < results[i].line_count; n++)
      if (results[i].lines[n].module == module) return true;
  return false;
}

static recorded_code *read_code(const sim_result *results, uint32_t count) {
  const sim_result *from = best_informed(results, count);
  recorded_code *code = recorded_code_create();
  for (uint32_t i = 0; i < from->code_count; i++)
    if (is_used(results, count, from->codes[i].module))
      recorded_code_add(code, from->codes[i].module, from->codes[i].ptx, from->codes[i].bytes);
  return code;
}

enum { TEXT_LIMIT = 200, FILE_LIMIT = 4000 }; /* longer ones are cut, or not known: reports have limits, too */

static char *instruction_text(const ptx_func *func, const ptx_instr *instr) {
  ff_text text = {0};
  ptx_print_instr(func, instr, &text);
  if (text.length > TEXT_LIMIT) text.chars[text.length = TEXT_LIMIT] = '\0';
  while (text.length && strchr(" \n", text.chars[text.length - 1])) text.chars[--text.length] = '\0';
  return text.chars;
}

static void fill_one(sim_line_result *line, const ptx_func *func, const ptx_instr *instr) {
  const ptx_module *source = func->source ? func->source : func->module;
  line->place = instr->place.line;
  line->text = instruction_text(func, instr);
  const char *file = instr->source_file < source->file_count ? source->files[instr->source_file] : NULL;
  if (!instr->source_line || !file || strlen(file) > FILE_LIMIT) return;
  line->file = ff_strdup(file);
  line->source = instr->source_line;
}

/* Lines of one kernel's code, by pc. */
static void fill_kernel(sim_line_result *lines, uint32_t count, const ptx_func *func) {
  const ptx_func **reach;
  uint32_t reached = exec_functions_of(func->module, func, &reach), f = 0;
  uint64_t base = 0; /* of reach[f] */
  for (uint32_t i = 0; i < count; i++) {
    for (; f < reached && lines[i].pc - base >= reach[f]->instr_count; f++) base += reach[f]->instr_count;
    if (f < reached) fill_one(&lines[i], reach[f], &reach[f]->instrs[lines[i].pc - base]);
  }
  free(reach);
}

static void fill_result(sim_result *result, recorded_code *code) {
  for (uint32_t first = 0, end; first < result->line_count; first = end) {
    sim_line_result *lines = &result->lines[first];
    for (end = first + 1; end < result->line_count && result->lines[end].code == lines->code;) end++;
    const ptx_func *func = recorded_code_find(code, lines->module, lines->symbol, result->kernels[lines->kernel].name);
    if (func) fill_kernel(lines, end - first, func);
  }
}

void source_lines_fill(sim_result *results, uint32_t count) {
  bool any = false;
  for (uint32_t i = 0; i < count; i++) any = any || results[i].line_count;
  if (!any) return;
  recorded_code *code = read_code(results, count);
  for (uint32_t i = 0; i < count; i++) fill_result(&results[i], code);
  recorded_code_free(code);
}
