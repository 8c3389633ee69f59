/* SPDX-License-Identifier: Apache-2.0 */
/* Modules in memory: what texts (tests/tile) do not show. The bytecode is the fuzz target's corpus, which
 * tests/tile/cases.py makes; its texts are in tests/tile/golden. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "tile/module.h"
#include "tile/tile.h"

static char *read_file(const char *name, size_t *size) {
  ff_text path = {0};
  char *bytes;
  ff_text_add(&path, FF_SOURCE_DIR "/tests/fuzz/corpus/tile/%s", name);
  assert_int_equal(ff_file_read(path.chars, 0, &bytes, size, NULL), FF_OK);
  free(path.chars);
  return bytes;
}

/* The module outlives its bytes. */
static tile_module *open_module(const char *name) {
  size_t size;
  char *bytes = read_file(name, &size);
  tile_module *module;
  ff_error error;
  if (tile_module_read(bytes, size, &module, &error) != FF_OK) fail_msg("%s: %s", name, error.message);
  memset(bytes, 0xee, size);
  free(bytes);
  return module;
}

static const tile_op *nth(const tile_module *module, tile_opcode opcode, unsigned n) {
  const tile_block *body = module->functions[0].body;
  for (uint32_t i = 0; i < body->op_count; i++)
    if (body->ops[i]->opcode == opcode && n-- == 0) return body->ops[i];
  fail_msg("no such operation");
  return NULL;
}

static void test_recognised(void **state) {
  (void)state;
  static const char good[] = "\177TileIR\0\15\1\0\0";
  assert_true(tile_is_bytecode(good, sizeof good - 1));
  assert_true(tile_is_bytecode(good, 0));
  assert_true(tile_is_bytecode(good, 8));
  assert_false(tile_is_bytecode(good, 7));
  assert_false(tile_is_bytecode("\177TileIS\0", 8));
  char *one = malloc(1); /* that nothing is read behind it, a sanitizer says */
  *one = 'x';
  assert_false(tile_is_bytecode(one, 0));
  free(one);
}

static void test_size(void **state) {
  (void)state;
  size_t size, found = 0;
  ff_error error;
  char *bytes = read_file("views-1301", &size);
  char *exact = malloc(size);
  memcpy(exact, bytes, size);
  assert_int_equal(tile_bytecode_size(exact, &found, &error), FF_OK);
  assert_int_equal(found, size);
  exact[12] = (char)0x8f; /* the first section's number */
  found = 1;
  assert_int_equal(tile_bytecode_size(exact, &found, &error), FF_UNSUPPORTED);
  assert_int_equal(found, 1);
  exact[9] = 77; /* the version */
  assert_int_equal(tile_bytecode_size(exact, &found, &error), FF_UNSUPPORTED);
  exact[0] = 'x';
  assert_int_equal(tile_bytecode_size(exact, &found, &error), FF_PARSE);
  free(exact);
  free(bytes);
}

/* Bytes behind the end, as of an image that a program pads, do not matter. */
static void test_padded(void **state) {
  (void)state;
  size_t size;
  tile_module *module;
  char *bytes = read_file("shapes-1302", &size), *padded = calloc(1, size + 100);
  memcpy(padded, bytes, size);
  assert_int_equal(tile_module_read(padded, size + 100, &module, NULL), FF_OK);
  tile_module_free(module);
  free(padded);
  free(bytes);
}

static void test_data(void **state) {
  (void)state;
  static const unsigned char bits[] = {1, 0, 0, 1, 1, 1, 0, 1, 0, 0, 1, 0, 1, 1, 1, 1};
  static const unsigned char words[] = {0, 0, 0x80, 0x3f, 0, 0, 0xc0, 0xbf};
  tile_module *module = open_module("constants-1305");
  const tile_op *op = nth(module, TILE_OP_CONSTANT, 0);
  assert_true(op->data_splat && op->data_bytes == 1 && op->data[0] == 1);
  op = nth(module, TILE_OP_CONSTANT, 2);
  assert_true(!op->data_splat && op->data_bytes == sizeof bits);
  assert_memory_equal(op->data, bits, sizeof bits);
  op = nth(module, TILE_OP_CONSTANT, 12);
  assert_int_equal(op->results[0].type->scalar, TILE_TF32);
  assert_true(!op->data_splat && op->data_bytes == sizeof words);
  assert_memory_equal(op->data, words, sizeof words);
  assert_int_equal(module->global_count, 2);
  assert_true(!module->globals[0].data_splat && module->globals[0].data_bytes == 16 && module->globals[0].data[4] == 2);
  assert_int_equal(module->globals[0].alignment, 16);
  assert_true(module->globals[1].data_splat && module->globals[1].data_bytes == 8);
  tile_module_free(module);
  module = open_module("constants_3-1305");
  op = nth(module, TILE_OP_CONSTANT, 0);
  assert_memory_equal(op->data, "\17\0\7\10", 4);
  assert_true(module->globals[0].hidden && module->globals[0].constant);
  tile_module_free(module);
}

static void test_lines_and_hints(void **state) {
  (void)state;
  tile_module *module = open_module("kernels-1303");
  const tile_function *first = &module->functions[0], *second = &module->functions[1];
  assert_int_equal(module->version, 1303);
  assert_int_equal(first->clusters, 2); /* sm_90 says so, whatever the default is */
  assert_int_equal(first->occupancy, 2);
  assert_int_equal(first->warps, 0);
  assert_int_equal(second->warps, 8);
  assert_int_equal(first->body->ops[0]->line, 0);
  assert_null(first->body->ops[0]->file);
  assert_int_equal(second->body->ops[0]->line, 40);
  assert_int_equal(second->body->ops[1]->line, 17); /* of the function that was called from line 41 */
  assert_int_equal(second->body->ops[3]->line, 41);
  assert_string_equal(second->body->ops[0]->file, "kernel.py");
  tile_module_free(module);
}

static uint32_t check_block(const tile_block *block, uint32_t next);

/* Values are numbered as they come: an operation's results, then what is in its regions. */
static uint32_t check_op(const tile_op *op, const tile_block *block, uint32_t next) {
  assert_ptr_equal(op->block, block);
  for (uint32_t i = 0; i < op->operand_count; i++) assert_in_range(op->operands[i]->id, 0, next - 1);
  for (uint32_t i = 0; i < op->result_count; i++) {
    assert_int_equal(op->results[i].id, next++);
    assert_ptr_equal(op->results[i].op, op);
    assert_int_equal(op->results[i].index, i);
  }
  for (uint32_t i = 0; i < op->region_count; i++) {
    assert_ptr_equal(op->regions[i]->parent, op);
    next = check_block(op->regions[i], next);
  }
  return next;
}

static uint32_t check_block(const tile_block *block, uint32_t next) {
  for (uint32_t i = 0; i < block->argument_count; i++) {
    assert_int_equal(block->arguments[i].id, next++);
    assert_ptr_equal(block->arguments[i].block, block);
    assert_null(block->arguments[i].op);
  }
  for (uint32_t i = 0; i < block->op_count; i++) next = check_op(block->ops[i], block, next);
  return next;
}

static void test_values(void **state) {
  (void)state;
  static const char *const names[] = {"control-1303", "folds-1301", "absent_else-1302", "views_3-1304"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    tile_module *module = open_module(names[i]);
    const tile_function *f = &module->functions[0];
    assert_null(f->body->parent);
    assert_int_equal(check_block(f->body, 0), f->value_count);
    tile_module_free(module);
  }
}

static void test_optional_operands(void **state) {
  (void)state;
  tile_module *module = open_module("pointers-1304");
  const tile_op *bare = nth(module, TILE_OP_LOAD_PTR_TKO, 0), *full = nth(module, TILE_OP_LOAD_PTR_TKO, 1);
  assert_true(bare->mask == -1 && bare->padding == -1 && bare->token == -1 && !bare->has_scope);
  assert_true(full->mask == 1 && full->padding == 2 && full->token == 3 && full->has_scope);
  assert_int_equal(full->scope, TILE_SCOPE_SYSTEM);
  assert_int_equal(nth(module, TILE_OP_LOAD_PTR_TKO, 3)->token, 1);
  tile_module_free(module);
  module = open_module("views_3-1304");
  const tile_op *red = nth(module, TILE_OP_ATOMIC_RED_VIEW_TKO, 1);
  assert_true(red->index_first == 1 && red->index_count == 2 && red->token == 4 && red->operand_count == 5);
  tile_module_free(module);
}

static void test_types(void **state) {
  (void)state;
  tile_module *module = open_module("views-1301");
  const tile_type *a = nth(module, TILE_OP_MAKE_PARTITION_VIEW, 0)->results[0].type;
  const tile_type *b = nth(module, TILE_OP_MAKE_PARTITION_VIEW, 1)->results[0].type;
  assert_true(tile_type_equal(a, a));
  assert_false(tile_type_equal(a, b));
  tile_type copy = *a, tensor = *a->tensor;
  copy.tensor = &tensor;
  assert_true(tile_type_equal(a, &copy));
  tensor.strides[0]++;
  assert_false(tile_type_equal(a, &copy));
  tensor.strides[0]--;
  copy.padding = TILE_PAD_NAN;
  assert_false(tile_type_equal(a, &copy));
  assert_int_equal(b->padding, TILE_PAD_NEGATIVE_INFINITY);
  assert_true(b->dim_map[0] == 1 && b->dim_map[1] == 0);
  assert_int_equal(tile_elements(a), 128);
  assert_int_equal(tile_scalar_bits(TILE_I1), 1);
  assert_int_equal(tile_scalar_bits(TILE_E2M1), 4);
  assert_int_equal(tile_scalar_bits(TILE_TF32), 32);
  assert_int_equal(tile_scalar_bits(TILE_POINTER), 64);
  assert_string_equal(tile_scalar_name(TILE_BF16), "bf16");
  assert_string_equal(tile_opcode_name(TILE_OP_STORE_VIEW_TKO), "store_view_tko");
  assert_string_equal(tile_opcode_name((tile_opcode)30), "?");
  tile_module_free(module);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_recognised),
      cmocka_unit_test(test_size),
      cmocka_unit_test(test_padded),
      cmocka_unit_test(test_data),
      cmocka_unit_test(test_lines_and_hints),
      cmocka_unit_test(test_values),
      cmocka_unit_test(test_optional_operands),
      cmocka_unit_test(test_types),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
