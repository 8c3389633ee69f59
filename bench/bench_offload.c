/* SPDX-License-Identifier: Apache-2.0 */
/* What it costs to find a kernel's offload candidates.
 *
 *     bench_offload FILE.ptx...          milliseconds of processor time, best of five: each kernel, the slowest last
 *     bench_offload                      of a kernel made of 100,000 instructions in loops and branches */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/text.h"
#include "offload/candidates.h"

enum { ROUNDS = 5, HUGE_BLOCKS = 25000 };

static double milliseconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static double measure(const ptx_func *func) {
  double best = 1e9;
  for (int round = 0; round < ROUNDS; round++) {
    double start = milliseconds();
    offload_kernel *kernel = offload_analyze(func);
    double took = milliseconds() - start;
    if (took < best) best = took;
    if (round == ROUNDS - 1)
      printf("%-28s %6u instructions %6u blocks %4u chosen %9.3f ms\n", func->name, func->instr_count,
             kernel->region_count, kernel->chosen_count, best);
    offload_kernel_free(kernel);
  }
  return best;
}

static double measure_text(const char *name, const char *text, size_t length) {
  ptx_module *module;
  ff_error error;
  double slowest = 0;
  if (ptx_module_parse(name, text, length, &module, &error)) {
    fprintf(stderr, "bench_offload: %s\n", error.message);
    exit(1);
  }
  for (uint32_t i = 0; i < module->func_count; i++) {
    double took = module->funcs[i]->has_body ? measure(module->funcs[i]) : 0;
    if (took > slowest) slowest = took;
  }
  ptx_module_free(module);
  return slowest;
}

static void put_huge(ff_text *t) {
  ff_text_add(
      t,
      ".version 8.0\n.target sm_80\n.address_size 64\n.entry huge(.param .u64 p)\n{\n.reg .b32 %%r<600>; .reg .b64 %%d; .reg .pred %%q;\nld.param.u64 %%d, [p];\n");
  for (unsigned i = 0; i < HUGE_BLOCKS; i++)
    ff_text_add(
        t,
        "L%u: ld.global.u32 %%r%u, [%%d+%u];\nadd.u32 %%r0, %%r0, %%r%u;\nsetp.lt.u32 %%q, %%r0, %u;\n@%%q bra L%u;\n",
        i, i % 500, 4 * i, (i + 7) % 500, i, i % 3 ? i : i + 1);
  ff_text_add(t, "L%u: ret;\n}\n", HUGE_BLOCKS);
}

int main(int argc, char **argv) {
  double slowest = 0;
  ff_text huge = {0};
  for (int i = 1; i < argc; i++) {
    char *text;
    size_t size;
    ff_error error;
    if (ff_file_read(argv[i], 0, &text, &size, &error)) {
      fprintf(stderr, "bench_offload: %s\n", error.message);
      return 1;
    }
    double took = measure_text(argv[i], text, size);
    if (took > slowest) slowest = took;
    free(text);
  }
  if (argc < 2) {
    put_huge(&huge);
    slowest = measure_text("huge", huge.chars, huge.length);
    free(huge.chars);
  }
  printf("slowest: %.3f ms\n", slowest);
  return 0;
}
