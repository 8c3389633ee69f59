/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer target: any bytes as Tile IR's bytecode. Nothing may crash, leak, read outside or take memory out of
 * proportion. What is read is printed, which goes through all of it, and translated; a translation is PTX. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/ir.h"
#include "tile/tile.h"

static void check_ptx(char *text, size_t length) {
  ptx_module *module;
  ff_error error;
  if (text[length]) abort();
  if (ptx_module_parse("translation", text, length, &module, &error) != FF_OK) {
    fprintf(stderr, "%s\n", error.message);
    abort();
  }
  ptx_module_free(module);
  free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *text = NULL;
  size_t length = 0;
  ff_error error;
  ff_status status = tile_to_text(data, size, &text, &error);
  if (status != FF_OK && status != FF_PARSE && status != FF_UNSUPPORTED) abort();
  if (status != FF_OK) return 0;
  if (strncmp(text, "version 13.", 11) != 0) abort();
  free(text);
  status = tile_to_ptx(data, size, &text, &length, &error);
  if (status != FF_OK && status != FF_PARSE && status != FF_UNSUPPORTED && status != FF_LIMIT) abort();
  if (status == FF_OK) check_ptx(text, length);
  /* A module that was read has its end inside. */
  if (tile_bytecode_size(data, &length, &error) != FF_OK || length > size) abort();
  return 0;
}
