/* SPDX-License-Identifier: Apache-2.0 */
/* The instruction sets that this build has, and which of them the processor can run. */
#include <pthread.h>
#include <string.h>

#include "exec/launch/checker.h"
#include "exec/decode/program.h"

#if defined(__x86_64__)
#include <cpuid.h>
/* Not every compiler's __builtin_cpu_supports has "f16c". */
static bool has_f16c(void) {
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#define CAN_AVX2 \
  (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") && has_f16c())
#define CAN_AVX512                                                                        \
  (CAN_AVX2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && \
   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
#else
#define CAN_AVX2 false
#define CAN_AVX512 false
#endif

static const exec_isa_table *const tables[EXEC_ISAS] = {/* NULL: the build does without it (FARFAULT_ISAS) */
#if !EXEC_WITHOUT_avx512
                                                        [0] = &exec_isa_avx512,
#endif
#if !EXEC_WITHOUT_avx2
                                                        [1] = &exec_isa_avx2,
#endif
#if !EXEC_WITHOUT_baseline
                                                        [2] = &exec_isa_baseline
#endif
};
static const char *const names[EXEC_ISAS] = {"avx512", "avx2", "baseline"};

/* Asked once: in a virtual machine `cpuid` takes microseconds. */
static bool runs[EXEC_ISAS];
static void ask_processor(void) {
  runs[0] = tables[0] && CAN_AVX512;
  runs[1] = tables[1] && CAN_AVX2;
  runs[2] = tables[2];
}
static bool can_run(uint32_t index) {
  static pthread_once_t asked = PTHREAD_ONCE_INIT;
  pthread_once(&asked, ask_processor);
  return runs[index];
}

const char *const *exec_isas(void) {
  static const char *found[EXEC_ISAS + 1];
  uint32_t count = 0;
  for (uint32_t n = 0; n < EXEC_ISAS; n++)
    if (can_run(n)) found[count++] = names[n];
  return found;
}

const exec_isa_table *exec_isa_find(const char *name) {
  for (uint32_t n = 0; n < EXEC_ISAS; n++)
    if (can_run(n) && (!name || !*name || !strcmp(name, names[n]))) return tables[n];
  return NULL;
}

uint32_t exec_isa_index(const exec_isa_table *isa) {
  uint32_t n = 0;
  while (n < EXEC_ISAS && tables[n] != isa) n++;
  return n < EXEC_ISAS ? n : EXEC_ISAS + exec_isa_checked_index(isa);
}

const exec_isa_table *exec_isa_numbered(uint32_t index) { return tables[index]; }

const char *exec_isa_name(const exec_isa_table *isa) { return names[exec_isa_index(isa) % EXEC_ISAS]; }
