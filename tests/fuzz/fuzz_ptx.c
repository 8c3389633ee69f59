/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as PTX: parsing must end with a module or a message. A module must survive everything that is done with
 * one: printing (which must parse back to the same text), linking, instrumenting, binding to SMs, control flow,
 * liveness, outstanding loads, offload candidates. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "offload/candidate_describe.h"
#include "ptx/analysis/cfg.h"
#include "ptx/rewrite/instrument.h"
#include "ptx/rewrite/persistent.h"
#include "ptx/syntax/pending.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void check_operand(const ptx_func *func, const ptx_operand *operand) {
  FF_ASSERT(operand->reg == PTX_NO_REG || operand->reg < func->reg_count);
  FF_ASSERT(operand->reg2 == PTX_NO_REG || operand->reg2 < func->reg_count);
  if (operand->kind == PTX_OPERAND_LABEL) FF_ASSERT(operand->label <= func->instr_count);
  if (operand->kind == PTX_OPERAND_SYMBOL) FF_ASSERT(!operand->symbol->var != !operand->symbol->func);
  for (uint32_t i = 0; i < operand->element_count; i++) check_operand(func, &operand->elements[i]);
}

static void check_func(const ptx_func *func) {
  for (uint32_t i = 0; i < func->instr_count; i++) {
    const ptx_instr *instr = &func->instrs[i];
    uint32_t fewest, most;
    ptx_operand_limits(instr, &fewest, &most);
    FF_ASSERT(instr->operand_count >= fewest && instr->operand_count <= most);
    FF_ASSERT(!instr->source_line || instr->source_file < func->module->file_count);
    for (uint32_t k = 0; k < instr->operand_count; k++) check_operand(func, &instr->operands[k]);
    ff_text line = {0};
    if (i < 100) ptx_print_instr(func, instr, &line);
    free(line.chars);
  }
  if (!func->has_body) return;
  ptx_cfg *cfg = ptx_cfg_build(func);
  bool *pending = ptx_pending_loads(func, cfg);
  uint32_t registers = ptx_register_estimate(func, cfg);
  FF_ASSERT(registers >= 8 && registers <= 255);
  free(pending);
  ptx_cfg_free(cfg);
}

/* Chosen regions do not overlap, and save; marked, the text is the same PTX. */
static void check_offload(const ptx_module *module) {
  FF_VEC(offload_kernel *) kernels = {0};
  ff_text words = {0}, marked = {0}, before = {0}, after = {0};
  ff_error error;
  ptx_module *again;
  for (uint32_t f = 0; f < module->func_count; f++) {
    if (!module->funcs[f]->has_body) continue;
    offload_kernel *k = offload_analyze(module->funcs[f]);
    uint32_t end = 0, chosen = 0;
    for (uint32_t i = 0; i < k->region_count; i++) {
      const offload_region *r = &k->regions[i];
      FF_ASSERT(r->begin < r->end && r->end <= k->func->instr_count && r->entry >= r->begin && r->entry < r->end);
      offload_put_verdict(k, r, &words);
      if (!r->chosen) continue;
      FF_ASSERT(r->candidate && r->begin >= end && r->exit < k->func->instr_count && r->threshold != OFFLOAD_NEVER);
      end = r->end;
      chosen++;
    }
    FF_ASSERT(chosen == k->chosen_count);
    FF_PUSH(&kernels, k);
  }
  offload_annotate(module, kernels.items, (uint32_t)kernels.count, &marked);
  if (ptx_module_parse("marked", marked.chars, marked.length, &again, &error) != FF_OK) {
    fprintf(stderr, "%s\n%s\n", marked.chars, error.message);
    abort();
  }
  ptx_print_module(module, &before);
  ptx_print_module(again, &after);
  FF_ASSERT(!strcmp(before.chars, after.chars));
  ptx_module_free(again);
  for (size_t i = 0; i < kernels.count; i++) offload_kernel_free(kernels.items[i]);
  free(kernels.items);
  free(words.chars);
  free(marked.chars);
  free(before.chars);
  free(after.chars);
}

static void check_printed(const ptx_module *module) {
  ff_error error;
  ff_text first = {0}, second = {0};
  ptx_module *again;
  ptx_print_module(module, &first);
  if (ptx_module_parse("printed", first.chars, first.length, &again, &error) != FF_OK) {
    fprintf(stderr, "%s\n%s\n", first.chars, error.message);
    abort();
  }
  ptx_print_module(again, &second);
  if (strcmp(first.chars, second.chars) != 0) {
    fprintf(stderr, "--- first\n%s\n--- second\n%s\n", first.chars, second.chars);
    abort();
  }
  ptx_module_free(again);
  free(first.chars);
  free(second.chars);
}

/* What instrument makes must parse, with an entry for every kernel that has no reason against it. */
static void check_instrumented(const ptx_module *module) {
  ff_error error;
  ptx_checked *checked = ptx_instrument(module);
  ptx_module *again;
  if (ptx_module_parse("instrumented", checked->text.chars, checked->text.length, &again, &error) != FF_OK) {
    fprintf(stderr, "%s\n%s\n", checked->text.chars, error.message);
    abort();
  }
  for (uint32_t i = 0; i < checked->kernel_count; i++) {
    const ptx_checked_kernel *kernel = &checked->kernels[i];
    FF_ASSERT(!kernel->checked_name == !!kernel->reason);
    const ptx_func *made = kernel->checked_name ? ptx_find_func(again, kernel->checked_name) : NULL;
    FF_ASSERT(!kernel->checked_name || (made && made->entry && made->has_body));
    if (made) check_func(made);
  }
  ptx_module_free(again);
  ptx_checked_free(checked);
}

/* The same of kernels bound to SMs, whatever is assumed of them. */
static void check_persistent(const ptx_module *module, const ptx_persistent_options *options) {
  ff_error error;
  ptx_persistents *made = ptx_persistent_make(module, options);
  ptx_module *again;
  if (ptx_module_parse("rewritten", made->text.chars, made->text.length, &again, &error) != FF_OK) {
    fprintf(stderr, "%s\n%s\n", made->text.chars, error.message);
    abort();
  }
  for (uint32_t i = 0; i < made->kernel_count; i++) {
    const ptx_persistent_kernel *kernel = &made->kernels[i];
    FF_ASSERT(!kernel->persistent_name == !!kernel->reason);
    const ptx_func *func = kernel->persistent_name ? ptx_find_func(again, kernel->persistent_name) : NULL;
    FF_ASSERT(!kernel->persistent_name || (func && func->entry && func->has_body));
    if (func) check_func(func);
  }
  ptx_module_free(again);
  ptx_persistent_free(made);
}

static bool look_only(void *context, const ptx_func *func) {
  check_func(func);
  return false;
}

/* Reads all bodies of a module in which they are not, the last one first, and compares with one in which they are. */
static ff_status check_read(const ptx_module *module, ptx_module *later, ff_error *error) {
  ff_text first = {0}, second = {0};
  ff_status status = FF_OK;
  for (uint32_t i = later->func_count; i-- > 0 && !status;) {
    if (i % 2) status = ptx_func_look(later->funcs[i], look_only, NULL, error);
    if (!status) status = ptx_func_read(later->funcs[i], error);
  }
  if (status == FF_OK) {
    ptx_print_module(module, &first);
    ptx_print_module(later, &second);
    FF_ASSERT(!strcmp(first.chars, second.chars));
  }
  free(first.chars);
  free(second.chars);
  return status;
}

/* Bodies that are read later: the same module, unless the text is one of those that say so. Linked before it is read,
 * the same as linked afterwards. */
static void check_later(const ptx_module *module) {
  ff_error error;
  ptx_module *later, *linked, *whole_linked;
  FF_ASSERT(ptx_module_parse_later("fuzz", module->text, module->text_length, &later, &error) == FF_OK);
  ff_status alike = ptx_link((ptx_module *[]){(ptx_module *)(uintptr_t)module}, 1, &whole_linked, &error);
  ff_status link = ptx_link(&later, 1, &linked, &error), read = FF_OK;
  if (link == FF_OK) {
    read = alike == FF_OK ? check_read(whole_linked, linked, &error) : ptx_module_read(linked, &error);
    ptx_module_free(linked);
  }
  bool refused = read == FF_UNSUPPORTED && strstr(error.message, "read alone");
  FF_ASSERT(refused || (alike == FF_OK) == (link == FF_OK && read == FF_OK));
  ptx_module_free(whole_linked);
  ff_status status = check_read(module, later, &error);
  FF_ASSERT(status == FF_OK || (status == FF_UNSUPPORTED && strstr(error.message, "read alone")));
  ptx_module_free(later);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
  ff_error error = {0};
  ptx_module *module, *linked;
  ff_check_level = 2;
  ff_status status = ptx_module_parse("fuzz", (const char *)data, size, &module, &error);
  if (status != FF_OK) {
    FF_ASSERT(!module && error.status == status && error.message[0]);
    return 0;
  }
  for (uint32_t i = 0; i < module->func_count; i++) check_func(module->funcs[i]);
  check_printed(module);
  check_later(module);
  check_offload(module);
  check_instrumented(module);
  check_persistent(module, &(ptx_persistent_options){0});
  check_persistent(module, &(ptx_persistent_options){.replace = true, .polling = true, .whole_warps = true});
  ptx_module *twice[2] = {module, module};
  if (ptx_link(twice, 1, &linked, &error) == FF_OK) {
    for (uint32_t i = 0; i < linked->func_count; i++) check_func(linked->funcs[i]);
    check_printed(linked);
    check_instrumented(linked);
    ptx_module_free(linked);
  }
  if (ptx_link(twice, 2, &linked, &error) == FF_OK) {
    check_printed(linked);
    ptx_module_free(linked);
  }
  ptx_module_free(module);
  return 0;
}
