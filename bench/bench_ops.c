/* SPDX-License-Identifier: Apache-2.0 */
/* What one warp instruction (32 lanes) costs in each form of each computing handler.
 *
 *   bench_ops                 a table: the usual forms, on every instruction set of this processor, ns per instruction
 *   bench_ops --all ISA       every name of every table on one instruction set, slowest first
 *
 * The handlers run back to back on the same slots (in the first-level cache) with harmless values; the figure is the
 * best of several runs. "all" is the form for a full warp, "masked" the one for some lanes. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exec/instructions/ops_table.h"

enum { SLOT = 256 };

typedef struct bench {
  _Alignas(64) unsigned char frame[8 * SLOT];
  exec_warp warp;
  exec_instr in;
} bench;

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Values near 1.5 for floats, small for integers. */
static void fill(bench *b, ptx_type type, int source) {
  unsigned char *slot = b->frame + (1 + source) * SLOT;
  for (int l = 0; l < 32; l++) {
    double f64 = 1.0 + 0.01 * l;
    float f32 = (float)f64;
    uint32_t u32 = (uint32_t)(5 + 3 * l + source);
    uint64_t u64 = u32;
    if (type == PTX_F64) memcpy(slot + 8 * l, &f64, 8);
    else if (ptx_type_bits(type) == 64) memcpy(slot + 8 * l, &u64, 8);
    else if (type == PTX_F32) memcpy(slot + 4 * l, &f32, 4);
    else if (ptx_type_class(type) == 'F') {
      u32 = 0x3e003e00u & (ptx_type_bits(type) == 32 ? UINT32_MAX : 0xffffu);
      memcpy(slot + 4 * l, &u32, 4);
    } else memcpy(slot + 4 * l, &u32, 4);
  }
}

static void set_up(bench *b, const ops_entry *entry) {
  memset(b, 0, sizeof *b);
  b->warp.base[0] = b->warp.base[1] = b->frame;
  b->warp.mask = 0x0fffff0f;
  for (int l = 0; l < 32; l++) b->warp.lanes[l] = b->warp.mask >> l & 1 ? -1 : 0;
  b->in.aux = entry->aux;
  b->in.dst = entry->dst == PTX_PRED ? 6 * SLOT : 0;
  for (int i = 0; i < 4 && entry->src[i] != PTX_TYPE_NONE; i++) {
    b->in.src[i] = entry->src[i] == PTX_PRED ? 6 * SLOT + 64 + 8 * (uint32_t)i : (uint32_t)(1 + i) * SLOT;
    if (entry->src[i] != PTX_PRED) fill(b, entry->src[i], i);
    else memcpy(b->frame + b->in.src[i], "\x55\x33\x0f\x71", 4);
  }
}

static double measure(bench *b, exec_handler run) {
  enum { ROUNDS = 2000, REPEATS = 7 };
  double best = 1e9;
  for (int r = 0; r < REPEATS; r++) {
    uint64_t start = now();
    for (int i = 0; i < ROUNDS; i++) {
      run(&b->warp, &b->in);
      __asm__ volatile("" : : : "memory");
    }
    double each = (double)(now() - start) / ROUNDS;
    best = each < best ? each : best;
  }
  return best;
}

static const char *const usual[] = {
    "add.u32",
    "add.u64",
    "add.s16",
    "mul.lo.s32",
    "mul.lo.s64",
    "mul.wide.u32",
    "mul.hi.u32",
    "mul.hi.u64",
    "mad.lo.s32",
    "mad.wide.u32",
    "div.u32",
    "div.s32",
    "rem.u32",
    "div.u64",
    "rem.s64",
    "min.s32",
    "max.u64",
    "abs.s32",
    "add.cc.u32",
    "madc.hi.cc.u32",
    "and.b32",
    "xor.b64",
    "not.b32",
    "lop3.b32",
    "shl.b32",
    "shr.s32",
    "shl.b64",
    "shr.u64",
    "shf.l.wrap.b32",
    "popc.b32",
    "clz.b32",
    "brev.b32",
    "bfe.u32",
    "bfi.b32",
    "prmt.b32",
    "mov.b32",
    "mov.b64",
    "setp.lt.s32",
    "setp.eq.u32",
    "setp.lt.s64",
    "setp.gt.f32",
    "setp.lt.f64",
    "setp.lt.f16",
    "set.eq.f32.f32",
    "selp.b32",
    "selp.b64",
    "and.pred",
    "dp4a.s32.s32",
    "add.f32",
    "mul.f32",
    "fma.rn.f32",
    "fma.rn.ftz.f32",
    "add.rz.f32",
    "fma.rm.f32",
    "add.sat.f32",
    "min.f32",
    "div.rn.f32",
    "div.approx.f32",
    "sqrt.rn.f32",
    "rcp.rn.f32",
    "add.f64",
    "fma.rn.f64",
    "div.rn.f64",
    "add.rp.f64",
    "neg.f32",
    "ex2.approx.f32",
    "ex2.approx.ftz.f32",
    "lg2.approx.f32",
    "sin.approx.f32",
    "cos.approx.f32",
    "tanh.approx.f32",
    "rsqrt.approx.f32",
    "add.f16",
    "fma.rn.f16",
    "add.f16x2",
    "fma.rn.f16x2",
    "fma.rn.bf16x2",
    "max.f16",
    "cvt.u64.u32",
    "cvt.s64.s32",
    "cvt.u32.u64",
    "cvt.u16.u32",
    "cvt.s32.s8",
    "cvt.rn.f32.s32",
    "cvt.rn.f32.u32",
    "cvt.rn.f64.s32",
    "cvt.rn.f32.u64",
    "cvt.rzi.s32.f32",
    "cvt.rzi.u32.f32",
    "cvt.rmi.s32.f32",
    "cvt.rzi.s32.f64",
    "cvt.rzi.s64.f64",
    "cvt.f64.f32",
    "cvt.rn.f32.f64",
    "cvt.f32.f16",
    "cvt.rn.f16.f32",
    "cvt.rn.bf16.f32",
    "cvt.rna.tf32.f32",
    "cvt.rni.f32.f32",
    "vabsdiff4",
};

static bool runs_here(const ops_set *set) {
  if (!strcmp(set->isa, "avx2"))
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  if (!strcmp(set->isa, "avx512"))
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return true;
}
static ops_set *const sets[] = {
#if !EXEC_WITHOUT_baseline
    &ops_set_baseline,
#endif
#if !EXEC_WITHOUT_avx2
    &ops_set_avx2,
#endif
#if !EXEC_WITHOUT_avx512
    &ops_set_avx512,
#endif
};
enum { SETS = sizeof sets / sizeof *sets };

static void print_usual(void) {
  static bench b;
  printf("%-22s", "ns per warp instr.");
  for (int s = 0; s < SETS; s++)
    if (runs_here(sets[s])) printf("%10s all  masked", sets[s]->isa);
  printf("\n");
  for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
    printf("%-22s", usual[i]);
    for (int s = 0; s < SETS; s++) {
      const ops_entry *entry = runs_here(sets[s]) ? ops_find(sets[s], usual[i]) : NULL;
      if (!entry) continue;
      set_up(&b, entry);
      double all = measure(&b, entry->run[0]);
      set_up(&b, entry);
      printf("%14.1f %7.1f", all, measure(&b, entry->run[1]));
    }
    printf("\n");
  }
}

typedef struct figure {
  const char *names;
  double all, masked;
} figure;
static int slower_first(const void *a, const void *b) {
  double x = ((const figure *)a)->all, y = ((const figure *)b)->all;
  return x < y ? 1 : x > y ? -1 : 0;
}
static int print_all(const char *isa) {
  static bench b;
  static figure figures[8192];
  size_t count = 0;
  ops_set *set = NULL;
  for (int s = 0; s < SETS; s++)
    if (!strcmp(sets[s]->isa, isa) && runs_here(sets[s])) set = sets[s];
  if (!set) {
    fprintf(stderr, "bench_ops: this build does not have '%s', or this processor does not run it\n", isa);
    return 1;
  }
  for (int t = 0; set->tables[t]; t++)
    for (const ops_entry *entry = set->tables[t]; entry->names && count < 8192; entry++) {
      set_up(&b, entry);
      double all = measure(&b, entry->run[0]);
      set_up(&b, entry);
      figures[count++] = (figure){entry->names, all, measure(&b, entry->run[1])};
    }
  qsort(figures, count, sizeof *figures, slower_first);
  for (size_t i = 0; i < count; i++) printf("%8.1f %8.1f  %s\n", figures[i].all, figures[i].masked, figures[i].names);
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 3 && !strcmp(argv[1], "--all")) return print_all(argv[2]);
  print_usual();
  return 0;
}
