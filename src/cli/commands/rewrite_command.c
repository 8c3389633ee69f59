/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault rewrite --sm-affinity FILE -o OUT.ptx`: kernels bound to a range of SMs (ptx/rewrite/persistent.h), from
 * PTX text or from an executable.
 *
 * What is written is PTX that parses; a kernel that is not rewritten is named with the reason, and
 * makes the exit status CLI_FAILED. OUT is written whole or not at all. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "fatbin/elf.h"
#include "ptx/rewrite/persistent.h"

typedef struct arguments {
  const char *file, *output;
  bool sm_affinity;
  ptx_persistent_options options;
} arguments;

typedef FF_VEC(ptx_module *) modules;

static ff_status take_text(const char *name, const char *text, size_t length, modules *all, ff_error *error) {
  ptx_module *module;
  ff_status status = ptx_module_parse(name, text, length, &module, error);
  if (!status) FF_PUSH(all, module);
  return status;
}

/* All modules of an executable that are for its newest architecture: the same program again is in it for older ones. */
static ff_status take_executable(const char *path, fatbin_ptx_texts *texts, modules *all, ff_error *error) {
  uint32_t newest = 0;
  ff_status status = fatbin_extract_ptx(path, texts, error);
  for (uint32_t i = 0; i < texts->count && !status; i++)
    if (texts->items[i].arch > newest) newest = texts->items[i].arch;
  for (uint32_t i = 0; i < texts->count && !status; i++) {
    ff_text name = {0};
    if (texts->items[i].arch != newest) continue;
    ff_text_add(&name, "%s(module %u)", path, texts->items[i].image + 1);
    status = take_text(name.chars, texts->items[i].text, texts->items[i].length, all, error);
    free(name.chars);
  }
  return status;
}

/* The file's code as one module. What is no ELF file and no fat binary is taken for PTX text. */
static ff_status take_file(const char *path, modules *all, ptx_module **linked, ff_error *error) {
  char *text;
  size_t size;
  fatbin_ptx_texts texts = {0};
  ff_status status = ff_file_read(path, 0, &text, &size, error);
  if (status) return status;
  bool binary = size >= 4 && (!memcmp(text, "\177ELF", 4) || !memcmp(text, "\x50\xed\x55\xba", 4));
  status = binary ? take_executable(path, &texts, all, error) : take_text(path, text, size, all, error);
  if (!status) status = ptx_link(all->items, (uint32_t)all->count, linked, error);
  fatbin_ptx_texts_free(&texts);
  free(text);
  return status;
}

/* "saxpy: saxpy__persistent, its parameters at byte 24 of 56" */
static uint32_t list_kernels(const char *file, const ptx_persistents *made, ff_text *list) {
  uint32_t refused = 0;
  for (uint32_t i = 0; i < made->kernel_count; i++) {
    const ptx_persistent_kernel *kernel = &made->kernels[i];
    if (kernel->persistent_name) {
      ff_text_add(list, "%s: %s, the queue's parameters at byte %u of %u\n", kernel->name, kernel->persistent_name,
                  kernel->offset, kernel->bytes);
      continue;
    }
    cli_fail(0, "%s: %s is not rewritten: %s", file, kernel->name, kernel->reason);
    refused++;
  }
  return refused;
}

static int write_result(const arguments *a, const ptx_persistents *made) {
  ff_text list = {0};
  ff_error error;
  int status = CLI_DONE;
  uint32_t refused = list_kernels(a->file, made, &list);
  if (!made->kernel_count) status = cli_fail(CLI_BAD_FILE, "%s: has no kernels", a->file);
  else if (!a->output) status = cli_print(&made->text);
  else if (ff_file_write(a->output, made->text.chars, made->text.length, &error))
    status = cli_fail(CLI_FAILED, "%s", error.message);
  else status = cli_print(&list);
  free(list.chars);
  return status ? status : refused ? CLI_FAILED : CLI_DONE;
}

enum { KEY_SM_AFFINITY = 256, KEY_REPLACE, KEY_POLLING, KEY_WHOLE_WARPS };
static const struct argp_option options[] = {
    {"sm-affinity", KEY_SM_AFFINITY, NULL, 0,
     "persistent blocks that stay on a range of SMs and take the grid's blocks from a queue", 0},
    {"output", 'o', "FILE", 0, "where the PTX goes (default: standard output)", 0},
    {"replace", KEY_REPLACE, NULL, 0,
     "the rewritten kernels take their originals' names, and these become NAME__original", 0},
    {"polling", KEY_POLLING, NULL, 0, "also kernels that poll memory: their blocks wait only for blocks of lower index",
     0},
    {"whole-warps", KEY_WHOLE_WARPS, NULL, 0,
     "the threads of a warp always leave a kernel together: nothing has to be done for warps of which some have left",
     0},
    {0}};

static error_t parse(int key, char *value, struct argp_state *state) {
  arguments *a = state->input;
  switch (key) {
  case KEY_SM_AFFINITY: a->sm_affinity = true; return 0;
  case KEY_REPLACE: a->options.replace = true; return 0;
  case KEY_POLLING: a->options.polling = true; return 0;
  case KEY_WHOLE_WARPS: a->options.whole_warps = true; return 0;
  case 'o': a->output = cli_output(value, "--output", false, state); return 0;
  case ARGP_KEY_ARG:
    if (!*value) cli_refuse(state, "the file's name is empty");
    if (a->file) cli_refuse(state, "one file at a time");
    a->file = value;
    return 0;
  case ARGP_KEY_END:
    if (!a->file) cli_refuse(state, "which file? (PTX text, or an executable with PTX inside)");
    if (!a->sm_affinity) cli_refuse(state, "rewrite for what? (--sm-affinity)");
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

static int rewrite(int argc, char **argv) {
  static const struct argp argp = {
      options,
      parse,
      "--sm-affinity FILE",
      "Rewrites the kernels of a PTX text or of an executable. With --sm-affinity each gets a second form, "
      "NAME__persistent, that runs on a range of SMs only: docs/rewrite.md says how it is launched.\v"
      "Kernels that cannot be rewritten are named with the reason, and the exit status is 1.\n\n"
      "Example:\n  farfault rewrite --sm-affinity kernels.ptx -o bound.ptx",
      NULL,
      NULL,
      NULL};
  arguments a = {0};
  modules all = {0};
  ptx_module *linked = NULL;
  ff_error error;
  int status;
  cli_parse(&argp, argc, argv, &a);
  if (kind_refused(a.file, KIND_PTX | KIND_PROGRAM)) return CLI_BAD_FILE;
  if (cli_keep_input(a.file, (const char *const[]){a.output}, 1)) return CLI_USAGE;
  if (take_file(a.file, &all, &linked, &error)) {
    status = cli_fail(CLI_BAD_FILE, "%s", error.message);
  } else {
    ptx_persistents *made = ptx_persistent_make(linked, &a.options);
    status = write_result(&a, made);
    ptx_persistent_free(made);
    ptx_module_free(linked);
  }
  for (size_t i = 0; i < all.count; i++) ptx_module_free(all.items[i]);
  free(all.items);
  return status;
}

const cli_command cli_rewrite = {"rewrite", "bind kernels to a range of SMs by rewriting their PTX", rewrite};
