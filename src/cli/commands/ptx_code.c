/* SPDX-License-Identifier: Apache-2.0 */
/* See ptx_code.h. */
#include "cli/commands/ptx_code.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "fatbin/elf.h"
#include "tile/tile.h"
#include "trace/file.h"

static ff_status take_text(code *code, const char *name, const char *text, size_t length, ff_error *error) {
  ptx_module *module;
  ff_status status = ptx_module_parse(name, text, length, &module, error);
  if (!status) FF_PUSH(&code->modules, module);
  return status;
}

static ff_status take_executable(code *code, const char *path, ff_error *error) {
  fatbin_ptx_texts texts;
  uint32_t newest = 0;
  ff_status status = fatbin_extract_ptx(path, &texts, error);
  if (status) return status;
  for (uint32_t i = 0; i < texts.count; i++)
    if (texts.items[i].arch > newest) newest = texts.items[i].arch;
  for (uint32_t i = 0; i < texts.count && !status; i++) {
    ff_text name = {0};
    if (texts.items[i].arch != newest) continue;
    ff_text_add(&name, "%s(module %u)", path, texts.items[i].image + 1);
    status = take_text(code, name.chars, texts.items[i].text, texts.items[i].length, error);
    free(name.chars);
  }
  fatbin_ptx_texts_free(&texts);
  return status;
}

static bool is_known(const code *code, const char *text, uint64_t length) {
  for (size_t i = 0; i < code->modules.count; i++)
    if (code->modules.items[i]->text_length == length && !memcmp(code->modules.items[i]->text, text, length))
      return true;
  return false;
}

static ff_status take_trace(code *code, const char *path, ff_error *error) {
  trace_file *file;
  trace_item item = {0};
  ff_status status = trace_file_open(path, &file, error);
  if (status) return status;
  while (!status && item.kind != TRACE_ITEM_END) {
    status = trace_file_next(file, &item, error);
    if (status || item.kind != TRACE_ITEM_OPERATION || item.op->kind != TRACE_OP_MODULE ||
        is_known(code, item.op->module.ptx, item.op->module.bytes))
      continue;
    ff_text name = {0};
    ff_text_add(&name, "%s(module %u)", path, item.op->module.id);
    status = take_text(code, name.chars, item.op->module.ptx, item.op->module.bytes, error);
    free(name.chars);
  }
  trace_file_close(file);
  return status;
}

/* Looks at the first bytes of a regular file only: a pipe can be read but once. */
static bool is_trace(const char *path) {
  static const char magic[8] = {'F', 'F', 'T', 'R', 'A', 'C', 'E', '\n'};
  char start[sizeof magic];
  struct stat info;
  FILE *file = stat(path, &info) == 0 && S_ISREG(info.st_mode) ? fopen(path, "rb") : NULL;
  bool is = file && fread(start, sizeof start, 1, file) == 1 && !memcmp(start, magic, sizeof magic);
  if (file) fclose(file);
  return is;
}

ff_status code_translate(const char *path, char **text, size_t *size, ff_error *error) {
  char *ptx;
  size_t length;
  if (!*size || !tile_is_bytecode(*text, *size)) return FF_OK;
  ff_status status = tile_to_ptx(*text, *size, &ptx, &length, error);
  if (status) return ff_fail_at(error, status, path);
  free(*text);
  *text = ptx;
  *size = length;
  return FF_OK;
}

static ff_status take_file(code *code, const char *path, ff_error *error) {
  char *text;
  size_t size;
  ff_status status = ff_file_read(path, 0, &text, &size, error);
  if (status) return status;
  bool binary = size >= 4 && (!memcmp(text, "\177ELF", 4) || !memcmp(text, "\x50\xed\x55\xba", 4));
  if (binary) status = take_executable(code, path, error);
  else {
    status = code_translate(path, &text, &size, error);
    if (!status) status = take_text(code, path, text, size, error);
  }
  free(text);
  return status;
}

ff_status code_load(const char *path, code *code, ff_error *error) {
  memset(code, 0, sizeof *code);
  ff_status status = is_trace(path) ? take_trace(code, path, error) : take_file(code, path, error);
  if (!status && !code->modules.count) status = ff_fail(error, FF_NOT_FOUND, "%s: has no PTX in it", path);
  if (status) code_free(code);
  return status;
}

void code_free(code *code) {
  for (size_t i = 0; i < code->modules.count; i++) ptx_module_free(code->modules.items[i]);
  free(code->modules.items);
  memset(code, 0, sizeof *code);
}
