/* SPDX-License-Identifier: Apache-2.0 */
/* Runs conformance files on the executor: runner [--isa NAME] [--case NAME] [--compile] [--print] [--list] [--forms]
 * [--persistent] FILE-OR-FOLDER...
 *
 * --case: only the case of that name. --list: says which cases there are. --print: the PTX of each. --forms: the rows
 * of the interpreter's tables that no case states.
 *
 * --persistent: not the kernels themselves but their forms bound to SMs (ptx/rewrite/persistent.h), on all SMs and on
 * some of them; kernels that have none are named, with the reason.
 *
 * Every case is run on every instruction set that this processor has, several blocks on one host thread and on two. A
 * case without `launch:` is run twice, with whole warps and with blocks of 31 threads, so that both forms of every
 * instruction (all lanes, some lanes) see all values; buffers are then filled up with the same values again. What is
 * not an output must be unchanged afterwards. Prints each mismatch with file, line, case, lane, inputs, expected and
 * got. Exit status: 0 all as expected, 1 not, 2 bad usage. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "arrays.h"
#include "base/text.h"
#include "case.h"
#include "compile/compile.h"
#include "coverage.h"
#include "exec/exec.h"
#include "exec/memory/backing.h"
#include "exec/memory/multicast.h"
#include "exec/memory/visibility.h"
#include "ptx/ir.h"
#include "ptx/rewrite/persistent.h"

enum { SMS = 4, FITTING = 2, PERSISTENT_PARAMS = 7, START = 4096 + 256 };

typedef struct shape {
  case_shape in_case;
  unsigned threads;            /* of the host */
  unsigned sm_first, sm_count; /* of a persistent form */
} shape;

typedef struct run { /* one launch of one case */
  const char *place; /* of the case: "FILE:LINE: NAME" */
  const char *isa;
  const conformance_case *c;
  shape shape;
  exec_memory *memory;
  const exec_allocation *buffers[CASE_ARRAYS], *queue;
  const exec_allocation *multicast[CASE_ARRAYS]; /* of `buffers`: the reservation in which it is mapped; or NULL */
  exec_multicast teams[CASE_ARRAYS];
  const ptx_persistent_kernel *persistent; /* NULL: the kernel itself is launched */
  unsigned failures;
} run;

static const struct {
  const char *name;
  exec_fault_kind kind;
} fault_names[] = {
    {"illegal_address", EXEC_FAULT_ILLEGAL_ADDRESS},
    {"misaligned", EXEC_FAULT_MISALIGNED},
    {"invalid_space", EXEC_FAULT_INVALID_SPACE},
    {"assert", EXEC_FAULT_ASSERT},
    {"trap", EXEC_FAULT_TRAP},
    {"stack", EXEC_FAULT_STACK},
    {"barrier", EXEC_FAULT_BARRIER},
    {"timeout", EXEC_FAULT_TIMEOUT},
    {"invalid_pc", EXEC_FAULT_INVALID_PC},
    {"illegal_instruction", EXEC_FAULT_ILLEGAL_INSTRUCTION},
    {"unsupported", EXEC_FAULT_UNSUPPORTED},
};

static exec_fault_kind fault_kind(const char *name) {
  for (size_t i = 0; i < sizeof fault_names / sizeof *fault_names; i++)
    if (!strcmp(fault_names[i].name, name)) return fault_names[i].kind;
  return EXEC_FAULT_NONE;
}

static const char *fault_name(exec_fault_kind kind) {
  for (size_t i = 0; i < sizeof fault_names / sizeof *fault_names; i++)
    if (fault_names[i].kind == kind) return fault_names[i].name;
  return kind == EXEC_FAULT_NONE ? "none" : "internal";
}

/* ---- buffers ---- */

/* Each member of the team has its part of the buffer. */
static ff_status make_multicast(run *r, unsigned index, ff_error *error) {
  const exec_allocation *buffer = r->buffers[index], *mapping;
  exec_multicast *team = &r->teams[index];
  unsigned members = r->c->arrays[index].members;
  *team = (exec_multicast){.members = members, .piece_bytes = EXEC_BACKING_PIECE};
  team->host = ff_alloc(members * sizeof *team->host);
  for (unsigned m = 0; m < members; m++)
    team->host[m] = (unsigned char *)(uintptr_t)(buffer->address + m * (buffer->bytes / members));
  ff_status status = exec_memory_reserve(r->memory, EXEC_BACKING_PIECE, 0, 0, "team", &r->multicast[index], error);
  if (!status)
    status = exec_memory_map_multicast(r->memory, r->multicast[index]->address, EXEC_BACKING_PIECE, team, 1, "team",
                                       &mapping, error);
  if (!status) exec_memory_open(mapping, true, true);
  return status;
}

static void free_multicast(run *r, unsigned index) {
  free(r->teams[index].host);
  if (!r->multicast[index]) return;
  exec_memory_unmap(r->memory, r->multicast[index]->address, NULL);
  exec_memory_release(r->memory, r->multicast[index]->address, NULL);
}

static ff_status make_buffers(run *r, ff_error *error) {
  for (unsigned i = 0; i < r->c->array_count; i++) {
    const case_array *array = &r->c->arrays[i];
    if (array->by_value) continue;
    ff_status status =
        exec_memory_allocate(r->memory, case_elements(&r->shape.in_case, array) * value_bytes(array->type), 256,
                             EXEC_MEMORY_DEVICE, array->name, &r->buffers[i], error);
    if (status) return status;
    case_fill(&r->shape.in_case, array, (unsigned char *)(uintptr_t)r->buffers[i]->address);
    if (array->members && (status = make_multicast(r, i, error))) return status;
  }
  return FF_OK;
}

static void free_buffers(run *r) {
  for (unsigned i = 0; i < r->c->array_count; i++) free_multicast(r, i);
  for (unsigned i = 0; i < r->c->array_count; i++)
    if (r->buffers[i]) exec_memory_release(r->memory, r->buffers[i]->address, NULL);
  if (r->queue) exec_memory_release(r->memory, r->queue->address, NULL);
}

static ff_status make_params(const run *r, const exec_kernel_info *info, unsigned char *params, ff_error *error) {
  unsigned added = r->persistent ? PERSISTENT_PARAMS : 0;
  if (info->param_count != r->c->array_count + added)
    return ff_fail(error, FF_INVALID, "the kernel has %u parameters, the case gives %u", info->param_count,
                   r->c->array_count);
  for (unsigned i = 0; i < r->c->array_count; i++) {
    const case_array *array = &r->c->arrays[i];
    size_t size = array->by_value ? array->count * value_bytes(array->type) : sizeof(uint64_t);
    if (size != info->params[i].size)
      return ff_fail(error, FF_INVALID, "parameter '%s' has %u bytes, the case gives %zu", array->name,
                     info->params[i].size, size);
    if (array->by_value) case_fill(&r->shape.in_case, array, params + info->params[i].offset);
    else
      memcpy(params + info->params[i].offset, r->multicast[i] ? &r->multicast[i]->address : &r->buffers[i]->address,
             sizeof(uint64_t));
  }
  return FF_OK;
}

/* ---- comparing ---- */

static void write_start(const run *r, char *out, size_t size) {
  const unsigned *block = r->shape.in_case.block;
  snprintf(out, size, "%s (%s, blocks of %u, %u host thread%s): ", r->place, r->isa, block[0] * block[1] * block[2],
           r->shape.threads, r->shape.threads > 1 ? "s" : "");
}

static void report_start(run *r) {
  char start[START];
  write_start(r, start, sizeof start);
  fputs(start, stdout);
  r->failures++;
}

static void compare_array(run *r, unsigned index) {
  char start[START];
  ff_text lines = {0};
  write_start(r, start, sizeof start);
  r->failures += case_compare(r->c, &r->shape.in_case, &r->c->arrays[index],
                              (const unsigned char *)(uintptr_t)r->buffers[index]->address, start, &lines);
  if (lines.chars) fputs(lines.chars, stdout);
  free(lines.chars);
}

static void compare_fault(run *r, const exec_fault *fault) {
  const char *expected = r->c->fault[0] ? r->c->fault : "none";
  if (fault->kind != fault_kind(r->c->fault)) {
    report_start(r);
    printf("the fault is '%s', expected '%s': %s\n", fault_name(fault->kind), expected, fault->message);
  } else if (!r->persistent && r->c->fault_line && fault->line != r->c->fault_line) {
    report_start(r);
    printf("the fault is at line %u, expected line %u: %s\n", fault->line, r->c->fault_line, fault->message);
  }
}

/* ---- running ---- */

/* The queue's first launch takes from counter 1, and the other one is not 0 before. */
static ff_status make_queue(run *r, unsigned char *params, unsigned grid[3], ff_error *error) {
  ptx_persistent_params own = {.sm_first = r->shape.sm_first, .sm_count = r->shape.sm_count, .turn = 1};
  ff_status status =
      exec_memory_allocate(r->memory, sizeof(ptx_persistent_queue), 256, EXEC_MEMORY_DEVICE, "queue", &r->queue, error);
  if (status) return status;
  *(ptx_persistent_queue *)(uintptr_t)r->queue->address = (ptx_persistent_queue){{12345, 0}};
  own.queue = r->queue->address;
  memcpy(own.grid, r->shape.in_case.grid, sizeof own.grid);
  memcpy(params + r->persistent->offset, &own, sizeof own);
  grid[0] = ptx_persistent_blocks(FITTING, SMS, own.sm_count, own.grid);
  grid[1] = grid[2] = 1;
  return FF_OK;
}

static void check_queue(run *r) {
  const ptx_persistent_queue *queue = (const ptx_persistent_queue *)(uintptr_t)r->queue->address;
  uint64_t blocks = (uint64_t)r->shape.in_case.grid[0] * r->shape.in_case.grid[1] * r->shape.in_case.grid[2];
  if (!queue->taken[0] && queue->taken[1] > blocks) return;
  report_start(r);
  printf("the queue is left at %llu and %llu\n", (unsigned long long)queue->taken[0],
         (unsigned long long)queue->taken[1]);
}

static ff_status launch(run *r, exec_program *program, exec_fault *fault, ff_error *error) {
  exec_kernel *kernel;
  unsigned char params[4096] = {0};
  ff_status status =
      exec_program_kernel(program, r->persistent ? r->persistent->persistent_name : r->c->kernel, &kernel, error);
  if (status) return status;
  const exec_kernel_info *info = exec_kernel_describe(kernel);
  if (info->param_bytes > sizeof params) return ff_fail(error, FF_INVALID, "too many bytes of parameters");
  status = make_params(r, info, params, error);
  if (status) return status;
  exec_config config = {.memory = r->memory,
                        .threads = r->shape.threads,
                        .resident_blocks = 32,
                        .sm_count = SMS,
                        .max_shared = 48 << 10,
                        .max_instructions = r->persistent ? 8000000 : 2000000,
                        .clock_hz = 1000000000,
                        .isa = r->isa};
  exec_launch_request request = {.kernel = kernel,
                                 .dynamic_shared = r->c->shared,
                                 .params = params,
                                 .cooperative = r->c->cooperative,
                                 .launch_id = 1};
  memcpy(request.grid, r->shape.in_case.grid, sizeof request.grid);
  memcpy(request.block, r->shape.in_case.block, sizeof request.block);
  memcpy(request.cluster, r->c->cluster, sizeof request.cluster);
  if (r->persistent && (status = make_queue(r, params, request.grid, error))) return status;
  exec_stats stats = {0};
  status = exec_launch(&config, &request, &stats, fault, error);
  if (!status && r->persistent) check_queue(r);
  return status;
}

static ff_status try_launch(run *r, const ptx_module *linked, exec_fault *fault, ff_error *error) {
  exec_program *program;
  ff_status status = make_buffers(r, error);
  if (!status) status = exec_program_create(linked, r->memory, &program, error);
  if (status) return status;
  status = launch(r, program, fault, error);
  exec_program_free(program);
  return status;
}

/* A program of its own for every launch, so that the module's variables have their initial values. */
static void run_launch(run *r, const ptx_module *linked) {
  ff_error error = {0};
  exec_fault fault = {.kind = EXEC_FAULT_NONE};
  ff_status status = try_launch(r, linked, &fault, &error);
  if (status && status != FF_FAULT) {
    report_start(r);
    printf("%s\n", error.message);
  } else {
    compare_fault(r, &fault);
    for (unsigned i = 0; i < r->c->array_count && !fault.kind; i++)
      if (r->buffers[i]) compare_array(r, i);
  }
  fflush(stdout);
  free_buffers(r);
}

/* Several blocks are run on two host threads as well. */
static unsigned make_shapes(const conformance_case *c, shape shapes[2]) {
  case_shape made[2];
  unsigned count = case_shapes(c, made);
  for (unsigned i = 0; i < 2; i++) shapes[i] = (shape){.in_case = made[i < count ? i : 0], .threads = i + 1};
  return c->has_launch && c->grid[0] * c->grid[1] * c->grid[2] == 1 ? 1 : 2;
}

static unsigned run_shapes(const run *start, const char *only_isa, const ptx_module *linked, shape *shapes,
                           unsigned count) {
  unsigned failures = 0;
  for (const char *const *isa = exec_isas(); *isa; isa++) {
    if (only_isa && strcmp(only_isa, *isa)) continue;
    for (unsigned i = 0; i < count; i++) {
      run r = *start;
      r.isa = *isa;
      r.shape = shapes[i];
      run_launch(&r, linked);
      failures += r.failures;
    }
  }
  return failures;
}

/* All SMs, and the two in the middle. */
static unsigned run_persistent(const run *start, const char *only_isa, const ptx_module *linked, shape *shapes,
                               unsigned count, bool *refused, ff_error *error) {
  const ptx_persistent_options options = {0};
  ptx_persistents *made = ptx_persistent_make(linked, &options);
  const ptx_persistent_kernel *kernel = ptx_persistent_find(made, start->c->kernel);
  ptx_module *module = NULL, *whole = NULL;
  unsigned failures = 0;
  *refused = !kernel || !kernel->persistent_name;
  if (*refused) {
    printf("%s: not rewritten: %s\n", start->place, kernel ? kernel->reason : "no such kernel");
  } else if (ptx_module_parse("rewritten", made->text.chars, made->text.length, &module, error) ||
             ptx_link(&module, 1, &whole, error)) {
    printf("%s: rewritten: %s\n", start->place, error->message);
    failures++;
  } else {
    run r = *start;
    r.persistent = kernel;
    for (unsigned part = 0; part < 2; part++) {
      for (unsigned i = 0; i < count; i++) shapes[i].sm_first = part ? 1 : 0, shapes[i].sm_count = part ? 2 : SMS;
      failures += run_shapes(&r, only_isa, whole, shapes, count);
    }
  }
  ptx_module_free(whole);
  ptx_module_free(module);
  ptx_persistent_free(made);
  return failures;
}

/* What is asked for, and what has come of it. */
typedef struct options {
  const char *isa, *only; /* the name of a case; NULL: all */
  bool print, list, forms, persistent, compile;
  exec_memory *memory;
  unsigned cases, failed, refused;
} options;

static ff_status run_kernel(options *o, const char *file, const char *name, const char *place,
                            const conformance_case *c, unsigned *failures, ff_error *error) {
  ptx_module *module, *linked;
  shape shapes[2] = {0};
  bool refused = false;
  ff_status status = ptx_module_parse(file, c->text, c->text_length, &module, error);
  if (status) return status;
  if (o->forms) {
    coverage_note(module, name);
    ptx_module_free(module);
    return FF_OK;
  }
  status = ptx_link(&module, 1, &linked, error);
  if (!status) {
    run r = {.place = place, .c = c, .memory = o->memory};
    unsigned count = make_shapes(c, shapes);
    /* Code for some lanes is used by who has asked for it: of two threads that is sometimes one, sometimes the
     * other. */
    if (o->compile && !c->has_launch) shapes[1].threads = 1;
    *failures = o->persistent ? run_persistent(&r, o->isa, linked, shapes, count, &refused, error)
                              : run_shapes(&r, o->isa, linked, shapes, count);
    o->refused += refused;
    ptx_module_free(linked);
  }
  ptx_module_free(module);
  return status;
}

/* ---- files ---- */

static void run_case(options *o, const char *file, const case_place *at) {
  ff_error error = {0};
  conformance_case c = {0};
  unsigned failures = 0;
  char place[4096 + sizeof at->name];
  snprintf(place, sizeof place, "%s:%u%s%s", file, at->line, *at->name ? ": " : "", at->name);
  ff_status status = case_read(file, at, &c, &error);
  if (!status && o->print) printf("%s", c.text + strspn(c.text, "\n"));
  if (!status && o->list) printf("%s\n", place);
  if (!status && !o->print && !o->list) status = run_kernel(o, file, at->name, place, &c, &failures, &error);
  if (c.text) case_free(&c);
  if (status) printf("%s: %s\n", place, error.message);
  o->cases++;
  o->failed += status || failures;
}

static void run_file(options *o, const char *file) {
  char *text;
  size_t size;
  ff_error error = {0};
  if (ff_file_read(file, 1 << 24, &text, &size, &error)) {
    printf("%s: %s\n", file, error.message);
    o->failed++;
    return;
  }
  for (case_place at = {0}; case_next(text, size, &at);)
    if (!o->only || !strcmp(o->only, at.name)) run_case(o, file, &at);
  free(text);
}

static int is_ptx(const struct dirent *entry) {
  size_t length = strlen(entry->d_name);
  return length > 4 && !strcmp(entry->d_name + length - 4, ".ptx");
}

static void run_path(options *o, const char *path) {
  struct dirent **entries;
  struct stat info;
  if (stat(path, &info) || !S_ISDIR(info.st_mode)) {
    run_file(o, path);
    return;
  }
  int count = scandir(path, &entries, is_ptx, alphasort);
  for (int i = 0; i < count; i++) {
    char file[4096];
    snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
    run_file(o, file);
    free(entries[i]);
  }
  if (count >= 0) free(entries);
}

int main(int argc, char **argv) {
  options o = {0};
  int first = 1;
  for (; first < argc && argv[first][0] == '-'; first++) {
    if (!strcmp(argv[first], "--print")) o.print = true;
    else if (!strcmp(argv[first], "--list")) o.list = true;
    else if (!strcmp(argv[first], "--forms")) o.forms = true;
    else if (!strcmp(argv[first], "--persistent")) o.persistent = true;
    else if (!strcmp(argv[first], "--case") && first + 1 < argc) o.only = argv[++first];
    else if (!strcmp(argv[first], "--isa") && first + 1 < argc) o.isa = argv[++first];
    else if (!strcmp(argv[first], "--compile")) o.compile = true;
    else first = argc;
  }
  if (first >= argc) {
    fprintf(
        stderr,
        "usage: runner [--isa NAME] [--case NAME] [--compile] [--print] [--list] [--forms] [--persistent] FILE-OR-FOLDER...\n");
    return 2;
  }
  ff_error error = {0};
  if (o.compile && compile_use(COMPILE_ALWAYS, &error)) {
    fprintf(stderr, "%s\n", error.message);
    return 2;
  }
  if (exec_memory_create(&o.memory, &error)) {
    fprintf(stderr, "%s\n", error.message);
    return 2;
  }
  for (int i = first; i < argc; i++) run_path(&o, argv[i]);
  exec_memory_free(o.memory);
  if (o.forms) coverage_print_rest();
  bool runs = !o.print && !o.list && !o.forms;
  if (runs) printf("%u cases, %u failed", o.cases, o.failed);
  if (runs && o.persistent) printf(", %u not rewritten", o.refused);
  if (runs) printf("\n");
  compile_stats compiled;
  compile_get_stats(&compiled);
  if (compiled.failed) printf("%llu kernels could not be compiled\n", (unsigned long long)compiled.failed);
  return o.failed || !o.cases || compiled.failed;
}
