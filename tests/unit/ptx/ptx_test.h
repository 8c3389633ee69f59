/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of src/ptx share: text in, module or message out. */
#ifndef PTX_TEST_H
#define PTX_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "ptx/ir.h"

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

/* The text is handed over in a block of exactly its size, so that a sanitizer sees a read past its end. */
static inline ff_status parse_exact(const char *name, const char *text, ptx_module **module, ff_error *error) {
  size_t length = strlen(text);
  char *exact = malloc(length ? length : 1);
  memcpy(exact, text, length);
  ff_status status = ptx_module_parse(name, exact, length, module, error);
  free(exact);
  return status;
}

static inline ptx_module *parse(const char *text) {
  ff_error error = {0};
  ptx_module *module = NULL;
  if (parse_exact("test.ptx", text, &module, &error) != FF_OK) fail_msg("%s", error.message);
  return module;
}

/* HEAD and one kernel `k(.param .u64 p)` with this body. */
static inline ptx_module *parse_body(const char *body) {
  ff_text text = {0};
  ff_text_add(&text, "%s.visible .entry k(.param .u64 p)\n{\n%s\n}\n", HEAD, body);
  ptx_module *module = parse(text.chars);
  free(text.chars);
  return module;
}

/* The text must be refused, and the message must hold `expected`. */
static inline void refuse(const char *text, const char *expected) {
  ff_error error = {0};
  ptx_module *module = NULL;
  if (parse_exact("test.ptx", text, &module, &error) == FF_OK) fail_msg("parsed, though '%s' was expected", expected);
  assert_null(module);
  if (!strstr(error.message, expected)) fail_msg("the message is\n%s\nand not '%s'", error.message, expected);
}

static inline void refuse_body(const char *body, const char *expected) {
  ff_text text = {0};
  ff_text_add(&text, "%s.visible .entry k(.param .u64 p)\n{\n%s\n}\n", HEAD, body);
  refuse(text.chars, expected);
  free(text.chars);
}

static inline void expect_line(const ptx_func *func, uint32_t index, const char *expected) {
  ff_text line = {0};
  assert_true(index < func->instr_count);
  ptx_print_instr(func, &func->instrs[index], &line);
  assert_string_equal(line.chars, expected);
  free(line.chars);
}

#endif
