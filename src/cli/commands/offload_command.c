/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault offload analyze FILE`: which blocks of a program's kernels are worth running in memory stacks
 * (offload/candidates.h); of a trace also what they did. `farfault offload profile` is in offload_profile.c.
 *
 * What is printed with --annotate is PTX that means the same as the file's. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/commands/offload_command.h"
#include "cli/commands/offload_profile.h"
#include "offload/candidate_describe.h"

typedef struct arguments {
  const char *file, *kernel, *json, *machine;
  bool chosen, annotate, measured;
} arguments;

enum { KEY_JSON = 256, KEY_ANNOTATE, KEY_MEASURED };
static const struct argp_option options[] = {
    {"kernel", 'k', "NAME", 0, "only kernels whose name has this in it", 0},
    {"json", KEY_JSON, "FILE", 0, "write all that is known of every block as JSON; -: to stdout instead of the table",
     0},
    {"annotate", KEY_ANNOTATE, NULL, 0,
     "print the PTX with a comment where each chosen block begins and ends, instead of the table", 0},
    {"measured", KEY_MEASURED, NULL, 0,
     "of a trace: what is assumed next to what was measured - trips, lines per access, loads that miss - and what that changes",
     0},
    {"machine", 'M', "NAME|FILE", 0, "--measured: the machine whose L2 cache loads miss (default: tom)", 0},
    {NULL, 'm', "NAME|FILE", OPTION_HIDDEN, "--machine", 0}, /* as it was once */
    {0}};

static void take_action(arguments *a, const char *value, struct argp_state *state) {
  static const char *const actions[] = {"analyze", "profile", NULL};
  const char *near = cli_closest(value, actions);
  if (!strcmp(value, actions[0])) {
    a->chosen = true;
    return;
  }
  if (near) cli_refuse(state, "no action '%s': did you mean '%s'?", value, near);
  cli_refuse(state, "no action '%s': there are analyze and profile", value);
}

static error_t parse(int key, char *value, struct argp_state *state) {
  arguments *a = state->input;
  switch (key) {
  case 'k': a->kernel = value; return 0;
  case KEY_JSON: a->json = cli_output(value, "--json", true, state); return 0;
  case KEY_ANNOTATE: a->annotate = true; return 0;
  case KEY_MEASURED: a->measured = true; return 0;
  case 'm':
    cli_say_old(state, "-m", "-M");
    a->machine = value;
    return 0;
  case 'M': a->machine = value; return 0;
  case ARGP_KEY_ARG:
    if (!a->chosen) {
      take_action(a, value, state);
      return 0;
    }
    if (!*value) cli_refuse(state, "the file's name is empty");
    if (a->file) cli_refuse(state, "one file at a time");
    a->file = value;
    return 0;
  case ARGP_KEY_END:
    if (!a->chosen)
      cli_refuse(state, "what is to be done? (farfault offload analyze FILE, farfault offload profile TRACE)");
    if (!a->file) cli_refuse(state, "which file? (PTX text, an executable with PTX inside, or a trace)");
    if (a->annotate && a->json && !strcmp(a->json, "-"))
      cli_refuse(state, "--annotate and --json - both write to stdout");
    if (a->annotate && a->measured) cli_refuse(state, "--annotate and --measured are two outputs");
    if (a->machine && !a->measured) cli_refuse(state, "--machine is for --measured");
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

static bool is_wanted(const arguments *a, const ptx_func *func) {
  return func->entry && func->has_body && (!a->kernel || strstr(func->name, a->kernel));
}

static void analyse_all(const arguments *a, const code *code, offload_list *list) {
  for (size_t m = 0; m < code->modules.count; m++) {
    const ptx_module *module = code->modules.items[m];
    for (uint32_t i = 0; i < module->func_count; i++)
      if (is_wanted(a, module->funcs[i]))
        FF_PUSH(list, ((offload_shown){module, offload_analyze(module->funcs[i]), NULL}));
  }
}

/* Nothing to show: which kernels are there? */
static int fail_without(const arguments *a, const code *code) {
  enum { NAMED = 8 };
  ff_text names = {0};
  uint32_t count = 0;
  for (size_t m = 0; m < code->modules.count; m++)
    for (uint32_t i = 0; i < code->modules.items[m]->func_count; i++) {
      const ptx_func *func = code->modules.items[m]->funcs[i];
      if (func->entry && func->has_body && count++ < NAMED)
        ff_text_add(&names, "%s%s", count > 1 ? ", " : "", func->name);
    }
  int status = count ? cli_fail(CLI_BAD_FILE, "%s: has no kernel with '%s' in its name: there %s %s%s", a->file,
                                a->kernel, count == 1 ? "is" : "are", names.chars, count > NAMED ? ", ..." : "")
                     : cli_fail(CLI_BAD_FILE, "%s: has no kernels", a->file);
  free(names.chars);
  return status;
}

/* One text can be marked: several would not be PTX one behind the other. */
static int annotate(const arguments *a, const offload_list *list, ff_text *out) {
  const ptx_module *module = list->items[0].module;
  FF_VEC(offload_kernel *) kernels = {0};
  for (size_t i = 0; i < list->count; i++) {
    if (list->items[i].module != module) {
      free(kernels.items);
      return cli_fail(
          CLI_USAGE,
          "%s: its kernels are in several PTX texts; --kernel NAME says whose is meant: %s (%s), %s (%s), ...", a->file,
          list->items[0].kernel->func->name, module->name, list->items[i].kernel->func->name,
          list->items[i].module->name);
    }
    FF_PUSH(&kernels, list->items[i].kernel);
  }
  offload_annotate(module, kernels.items, (uint32_t)kernels.count, out);
  free(kernels.items);
  return CLI_DONE;
}

static int show(const arguments *a, const offload_list *list) {
  ff_text out = {0}, json = {0};
  ff_error error;
  int status = CLI_DONE;
  bool json_only = a->json && !strcmp(a->json, "-");
  if (a->json) offload_write_json(a->file, list, json_only ? &out : &json);
  if (a->annotate) status = annotate(a, list, &out);
  else if (!json_only && a->measured) offload_write_measured(list, &out);
  else if (!json_only) offload_write_table(list, &out);
  if (!status && a->json && !json_only && ff_file_write(a->json, json.chars, json.length, &error))
    status = cli_fail(CLI_FAILED, "%s", error.message);
  if (!status) status = cli_print(&out);
  free(out.chars);
  free(json.chars);
  return status;
}

static int measure(const arguments *a, offload_list *list) {
  machine_spec spec;
  ff_error error;
  if (machine_spec_load(a->machine ? a->machine : "tom", &spec, &error))
    return cli_fail(CLI_BAD_FILE, "%s", error.message);
  return offload_measure(a->file, &spec, list);
}

static int offload(int argc, char **argv) {
  static const struct argp argp = {
      options,
      parse,
      "analyze FILE\nprofile TRACE",
      "Says which blocks of a program's kernels are worth running in the memory stacks of a machine that has SMs there (near-data "
      "processing): where each begins and ends, which registers have to be sent, what its loads and stores save on the links to the memory, "
      "and from how many trips of its loop on; and of other blocks why not. FILE is PTX text, an executable with PTX inside, or a "
      "trace. `profile` says what blocks of a recorded program did and how its data should lie (farfault offload profile --help).\v"
      "TX is what goes to the memory, RX what comes from it, in words of 4 bytes for a warp; k is the number of trips. A block is worth it "
      "where TX + RX is below 0.\n\n"
      "Example:\n  farfault offload analyze kernels.ptx\n  farfault offload analyze --kernel libor --json blocks.json app.fft\n"
      "  farfault offload analyze --annotate ./saxpy > marked.ptx\n  farfault offload analyze --measured app.fft\n  farfault offload profile app.fft",
      NULL,
      NULL,
      NULL};
  arguments a = {0};
  code code;
  ff_error error;
  offload_list list = {0};
  if (argc > 1 && !strcmp(argv[1], "profile")) {
    argv[1] = "farfault offload profile";
    return cli_offload_profile(argc - 1, argv + 1);
  }
  cli_parse_tabular(&argp, argc, argv, &a, STDOUT_FILENO);
  if (cli_keep_input(a.file, (const char *const[]){a.json}, 1)) return CLI_USAGE;
  if (kind_refused(a.file, KIND_PTX | KIND_PROGRAM | KIND_TRACE)) return CLI_BAD_FILE;
  if (code_load(a.file, &code, &error)) return cli_fail(CLI_BAD_FILE, "%s", error.message);
  analyse_all(&a, &code, &list);
  int status = !list.count ? fail_without(&a, &code) : a.measured ? measure(&a, &list) : CLI_DONE;
  if (!status) status = show(&a, &list);
  for (size_t i = 0; i < list.count; i++) {
    free(list.items[i].measured);
    offload_kernel_free(list.items[i].kernel);
  }
  free(list.items);
  code_free(&code);
  return status;
}

const cli_command cli_offload = {"offload", "say which blocks of kernels are worth running in memory stacks", offload};
