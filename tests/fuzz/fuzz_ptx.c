/* SPDX-License-Identifier: Apache-2.0 */
/* PTX text from anywhere: parsed or refused; what was parsed is printed, and that parses to a module that prints the same. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "ptx/cfg.h"
#include "ptx/ir.h"

static void analyse(const ptx_module *module) {
  for (uint32_t i = 0; i < module->func_count; i++) {
    if (!module->funcs[i]->has_body) continue;
    ptx_cfg *cfg = ptx_cfg_build(module->funcs[i]);
    ptx_register_estimate(module->funcs[i], cfg);
    ptx_cfg_free(cfg);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ptx_module *module, *again;
  ff_error error;
  if (ptx_module_parse("fuzz", (const char *)data, size, &module, &error)) {
    FF_ASSERT(error.message[0]);
    return 0;
  }
  analyse(module);
  ff_text first = {0}, second = {0};
  ptx_print_module(module, &first);
  FF_ASSERT(ptx_module_parse("again", first.chars, first.length, &again, &error) == FF_OK);
  ptx_print_module(again, &second);
  FF_ASSERT(first.length == second.length && !memcmp(first.chars, second.chars, first.length));
  free(first.chars);
  free(second.chars);
  ptx_module_free(module);
  ptx_module_free(again);
  return 0;
}
