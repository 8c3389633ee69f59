/* SPDX-License-Identifier: Apache-2.0 */
/* What was found: each finding once, with the place, a first example and how often; as text in the style of
 * compute-sanitizer, and as JSON.
 *
 * A finding is identified by its key (kind, instructions, ...), and printed once, when the launch ends in which it was
 * found first. Texts are the report's own, so that modules may be unloaded. */
#ifndef FF_CHECK_REPORT_H
#define FF_CHECK_REPORT_H

#include "base/memory.h"
#include "check/check_options.h"
#include "exec/core.h"

typedef enum check_kind {
#define X(name, json) CHECK_##name,
#include "check/check_kinds.def"
#undef X
  CHECK_KINDS
} check_kind;

typedef struct check_site {    /* an instruction, in words; all of malloc */
  char *function, *file, *ptx; /* demangled; NULL: no source line; the instruction's text */
  uint32_t line, ptx_line;
  const char *access; /* "Write", ...; NULL: not an access */
} check_site;

typedef struct check_thread {
  uint32_t thread[3], block[3];
  bool known;
} check_thread;

typedef struct check_finding {
  check_kind kind;
  check_level level;
  uint64_t key;
  uint64_t count; /* accesses, hazards, calls */
  check_site sites[2];
  uint32_t site_count;
  check_thread threads[2]; /* the first example's */
  uint64_t address, bytes;
  const char *space; /* "global", ...; NULL: none */
  char *title;       /* "Invalid __global__ write of size 4 bytes" */
  char *details;     /* lines behind the place, each without its "========= "; NULL: none */
  char *tail;        /* lines at the end (backtraces); NULL: none */
  char *kernel;      /* NULL: not in a kernel */
  bool printed;
} check_finding;

typedef struct check_report check_report;

check_report *check_report_create(const check_options *options, char *(*demangle)(const char *));
void check_report_free(check_report *report);
/* The finding with this key, its count one more; *fresh: it is new, and the caller fills it in. Keys of check_key.
 * NULL: there are too many to be kept (they are counted). Not thread-safe: the caller holds the check's lock. */
check_finding *check_report_find(check_report *report, check_kind kind, check_level level, uint64_t key, bool *fresh);
uint64_t check_key(check_kind kind, const void *a, uint64_t b, const void *c, uint64_t d);
/* Fills a site in; the instruction may be behind the function's last one. */
void check_site_fill(check_report *report, check_site *site, const ptx_func *func, uint32_t index, const char *access);
/* Prints what is new, and nothing twice. */
void check_report_flush(check_report *report);
/* The last words: the summary (unless the command prints it) and the JSON file. leaked: bytes and allocations that were
 * not freed. */
void check_report_finish(check_report *report, uint64_t leaked_bytes, uint64_t leaked);
uint64_t check_report_count(const check_report *report, check_level level); /* findings of that level */
/* The program's own call stack as lines "    Host Frame: ..." into `out`; frames of the virtual GPU are left out. */
typedef struct check_stack {
  void *frames[24];
  int count;
} check_stack;
void check_stack_take(check_stack *stack);
/* The function of an object file that has the address, if its symbol table is there; lives as long as the process.
 * base: where it is loaded. */
const char *check_symbol(const char *path, uint64_t address, uint64_t base);
/* The function of the CUDA interface that the program called: the outermost frame of ours that is one; NULL: none can
 * be told. */
const char *check_stack_call(const check_stack *stack);
void check_stack_add(const check_stack *stack, const char *title, char *(*demangle)(const char *), ff_text *out);

#endif
