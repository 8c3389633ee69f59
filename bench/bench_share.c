/* SPDX-License-Identifier: Apache-2.0 */
/* Two kernels on one GPU: how much longer one takes next to the other, by the way SMs are divided between them.
 *
 *     bench_share [-q] [TURNS]     (FARFAULT_DRIVER as the library's; default: 5 turns, on the virtual GPU 1)
 *
 * A victim is launched while an interferer of several times its length runs: both on the whole GPU, each on one half of
 * the SMs by green contexts, and each on one half by rewriting (libfarfault's partitions). `alone` is the victim
 * without an interferer, in the same share. Printed is the median time from ff_launch to ff_wait, with the least and
 * the most, which has the host's part of a launch in it: on a real GPU some microseconds of the milliseconds that a
 * victim takes. Time is the host's, or on the virtual GPU its virtual time, where victims are some hundred times as
 * small, with -q two and a half times smaller again.
 *
 * stream: a block copies 64 KiB of 256 MiB. cached: of 8 MiB, which stay in the L2. compute: four chains of
 * fused multiply-adds in each thread. Every kernel ends by itself, and what it wrote is checked. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "farfault/farfault.h"
#include "runtime/cuda.h"

enum {
  MIB = 1 << 20,
  CHUNK = 64 << 10,
  THREADS = 256,
  KINDS = 3,
  MOST_TURNS = 99,
  COMPUTE_ROUNDS = 2000,
  FEW_ROUNDS = 100
};

static const char code[] =
    ".version 7.0\n.target sm_52\n.address_size 64\n"
    /* block b copies the chunk b & mask: 16 times 16 bytes in each thread */
    ".visible .entry copy(.param .u64 from, .param .u64 to, .param .u32 mask) {\n"
    ".reg .pred %p; .reg .b32 %i<5>; .reg .b64 %d<5>; .reg .b32 %v<5>;\n"
    "ld.param.u64 %d1, [from]; ld.param.u64 %d2, [to]; ld.param.u32 %i1, [mask];\n"
    "mov.u32 %i2, %ctaid.x; and.b32 %i2, %i2, %i1; mul.wide.u32 %d3, %i2, 65536;\n"
    "mov.u32 %i3, %tid.x; mul.wide.u32 %d4, %i3, 16; add.u64 %d3, %d3, %d4;\n"
    "add.u64 %d1, %d1, %d3; add.u64 %d2, %d2, %d3; mov.u32 %i4, 0;\n"
    "again: ld.global.v4.u32 {%v1, %v2, %v3, %v4}, [%d1]; st.global.v4.u32 [%d2], {%v1, %v2, %v3, %v4};\n"
    "add.u64 %d1, %d1, 4096; add.u64 %d2, %d2, 4096; add.u32 %i4, %i4, 1; setp.lt.u32 %p, %i4, 16; @%p bra again;\n"
    "ret; }\n"
    /* four chains of x = x * 1 + 1, from the thread's number on; their sum, of every block the same */
    ".visible .entry chains(.param .u64 from, .param .u64 to, .param .u32 rounds) {\n"
    ".reg .pred %p; .reg .b32 %i<5>; .reg .b64 %d<4>; .reg .f32 %f<6>;\n"
    "ld.param.u64 %d2, [to]; ld.param.u32 %i1, [rounds]; mov.u32 %i3, %tid.x; cvt.rn.f32.u32 %f1, %i3;\n"
    "mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1; mov.f32 %f5, 0f3F800000; mov.u32 %i4, 0;\n"
    "again: fma.rn.f32 %f1, %f1, %f5, %f5; fma.rn.f32 %f2, %f2, %f5, %f5; fma.rn.f32 %f3, %f3, %f5, %f5;\n"
    "fma.rn.f32 %f4, %f4, %f5, %f5; add.u32 %i4, %i4, 1; setp.lt.u32 %p, %i4, %i1; @%p bra again;\n"
    "add.f32 %f1, %f1, %f2; add.f32 %f3, %f3, %f4; add.f32 %f1, %f1, %f3;\n"
    "mul.wide.u32 %d3, %i3, 4; add.u64 %d2, %d2, %d3; st.global.f32 [%d2], %f1; ret; }\n";

typedef struct kind {
  const char *name, *kernel;
  uint64_t bytes; /* of its input, and of its output */
  double blocks;  /* of a victim on a real GPU, to an SM */
} kind;
static const kind kinds[KINDS] = {
    {"stream", "copy", 256 * MIB, 744}, {"cached", "copy", 8 * MIB, 744}, {"compute", "chains", CHUNK, 320}};

static ff_gpu *gpu;
static ff_gpu_info about;
static const cuda_driver *driver;
static ff_kernel *kernels[KINDS];
static ff_segment *segments[2][KINDS][2]; /* of the victim and of the interferer: what they read, what they write */
static uint32_t sms;
static double smaller = 1;
static int step = 1; /* through the kinds: on the virtual GPU without `cached` */

static void need(int result, const char *what) {
  if (!result) return;
  fprintf(stderr, "bench_share: %s: %s\n", what, ff_message());
  exit(1);
}

static double now(void) {
  uint64_t picoseconds;
  if (driver->host_time && !driver->host_time(&picoseconds)) return (double)picoseconds * 1e-12;
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- kernels ---- */

static uint64_t bytes_of(int k) { return about.is_virtual && kinds[k].bytes > 16 * MIB ? 16 * MIB : kinds[k].bytes; }
static uint32_t rounds_of(void) { return about.is_virtual ? FEW_ROUNDS : COMPUTE_ROUNDS; }

static void launch(ff_partition *share, int who, int k, double times, ff_ticket *ticket) {
  bool copies = kinds[k].kernel[1] == 'o';
  double blocks = kinds[k].blocks * sms * times / (about.is_virtual ? (copies ? 100 : 20) * smaller : 1);
  uint32_t value = copies ? (uint32_t)(bytes_of(k) / CHUNK - 1) : rounds_of();
  ff_segment *const *of = segments[who][k];
  ff_argument arguments[] = {FF_ADDRESS(of[0]), FF_ADDRESS(of[1]), FF_VALUE(value)};
  ff_use uses[] = {{.segment = of[0], .access = FF_READ}, {.segment = of[1], .access = FF_READ_WRITE}};
  ff_launch_request request = {.kernel = kernels[k],
                               .grid = {(uint32_t)blocks},
                               .block = {THREADS},
                               .arguments = arguments,
                               .argument_count = 3,
                               .uses = uses,
                               .use_count = 2};
  need(share ? ff_partition_launch(share, &request, ticket) : ff_launch(gpu, &request, ticket), "a launch");
  need(ff_flush(gpu), "ff_flush");
}

static uint32_t input_at(uint64_t i) { return (uint32_t)i * 2654435761u ^ (uint32_t)(i >> 7); }

static void make_kind(int k) {
  for (int who = 0; who < 2; who++)
    for (int side = 0; side < 2; side++) {
      void *host;
      need(ff_segment_create(gpu, kinds[k].name, bytes_of(k), &segments[who][k][side]), "ff_segment_create");
      need(ff_segment_map(segments[who][k][side], FF_WRITE, 0, 0, &host), "ff_segment_map");
      for (uint64_t i = 0; i < bytes_of(k) / 4; i++) ((uint32_t *)host)[i] = side ? 0 : input_at(i);
      need(ff_segment_unmap(segments[who][k][side], host), "ff_segment_unmap");
    }
}

/* Words of what the victims wrote that are wrong; of a copy, those that no block came to are still 0. */
static uint64_t count_wrong(int k) {
  uint64_t wrong = 0, written = 0;
  void *host;
  bool copies = kinds[k].kernel[1] == 'o';
  need(ff_segment_map(segments[0][k][1], FF_READ, 0, 0, &host), "ff_segment_map");
  for (uint64_t i = 0; i < (copies ? bytes_of(k) / 4 : THREADS); i++) {
    uint32_t word = ((uint32_t *)host)[i];
    float sum = ((float *)host)[i];
    if (copies) wrong += word != 0 && word != input_at(i);
    else wrong += sum != 4 * ((float)i + (float)rounds_of());
    written += word != 0;
  }
  need(ff_segment_unmap(segments[0][k][1], host), "ff_segment_unmap");
  return written ? wrong : 1;
}

/* ---- times ---- */

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* One row: of the victim, in microseconds. */
static double measure(const char *way, ff_partition *const shares[2], int victim, int interferer, int turns,
                      uint32_t its, double alone) {
  double took[MOST_TURNS];
  bool ended = false;
  for (int t = about.is_virtual ? 0 : -1; t < turns; t++) { /* a real GPU's first turn warms up */
    ff_ticket mine, other = 0;
    if (interferer >= 0) launch(shares[1], 1, interferer, about.is_virtual ? 3 : 8, &other);
    if (interferer >= 0 && !about.is_virtual) nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    double begin = now();
    launch(shares[0], 0, victim, 1, &mine);
    need(ff_wait(gpu, mine), "ff_wait");
    if (t >= 0) took[t] = (now() - begin) * 1e6;
    bool over = false;
    if (interferer >= 0) need(ff_done(gpu, other, &over), "ff_done");
    ended |= over;
    need(ff_wait_all(gpu), "ff_wait_all");
  }
  qsort(took, (size_t)turns, sizeof *took, compare);
  double middle = took[turns / 2];
  printf("%-8s %4u  %-8s %-8s %11.1f %11.1f %11.1f", way, its, kinds[victim].name,
         interferer < 0 ? "-" : kinds[interferer].name, middle, took[0], took[turns - 1]);
  if (interferer < 0) printf("         -\n");
  else printf("  %8.3f%s\n", middle / alone, ended ? "  the interferer ended first" : "");
  fflush(stdout);
  return middle;
}

static bool divide(const char *way, ff_partition *shares[2], uint32_t *victims) {
  ff_partition_options options = {.size = sizeof options, .name = "victim", .share = "sm=50%", .way = way};
  ff_partition_info info;
  if (ff_partition_create(gpu, &options, &shares[0])) {
    printf("%-8s not here: %s\n", way, ff_message());
    return false;
  }
  need(ff_partition_describe(shares[0], &info), "ff_partition_describe");
  *victims = info.sm_count;
  char rest[32]; /* green contexts round up: what is left, in whole groups */
  uint32_t left = sms - info.sm_count;
  snprintf(rest, sizeof rest, "sm=%u", *way == 'g' && left > 8 ? left / 8 * 8 : left);
  options.name = "interferer";
  options.share = rest;
  need(ff_partition_create(gpu, &options, &shares[1]), "ff_partition_create");
  return true;
}

static void measure_way(const char *way, int turns) {
  ff_partition *shares[2] = {NULL, NULL};
  uint32_t its = sms;
  if (*way != 'w' && !divide(way, shares, &its)) return;
  for (int k = 0; k < KINDS; k += step)
    for (int who = 0; who < 2; who++) launch(shares[who], who, k, 0.1, NULL); /* its memory is there then */
  need(ff_wait_all(gpu), "ff_wait_all");
  for (int victim = 0; victim < KINDS; victim += step) {
    double alone = measure(way, shares, victim, -1, turns, its, 0);
    for (int interferer = 0; interferer < KINDS; interferer += step)
      measure(way, shares, victim, interferer, turns, its, alone);
  }
  for (int i = 0; i < 2; i++) need(ff_partition_destroy(shares[i]), "ff_partition_destroy");
}

int main(int argc, char **argv) {
  ff_error error;
  ff_module *module;
  if (argc > 1 && !strcmp(argv[1], "-q")) {
    smaller = 2.5; /* on the virtual GPU */
    argc--;
    argv++;
  }
  int turns = argc > 1 ? atoi(argv[1]) : 0;
  uint64_t wrong = 0;
  setenv("FARFAULT_MEMORY", "copy", 0); /* on the virtual GPU something must be simulated: that has the time */
  need(ff_open(&(ff_options){.size = sizeof(ff_options), .budget = UINT64_C(2) << 30}, &gpu), "ff_open");
  need(ff_gpu_describe(gpu, &about), "ff_gpu_describe");
  if (cuda_open(NULL, &driver, &error)) {
    fprintf(stderr, "bench_share: %s\n", error.message);
    return 1;
  }
  int number = 0;
  need(driver->DeviceGetAttribute(&number, CUDA_ATTRIBUTE_SM_COUNT, 0), "the number of SMs");
  sms = (uint32_t)number;
  if (turns < 1) turns = about.is_virtual ? 1 : 5;
  if (turns > MOST_TURNS) turns = MOST_TURNS;
  need(ff_module_load(gpu, "share", code, 0, &module), "ff_module_load");
  if (about.is_virtual) step = 2;
  for (int k = 0; k < KINDS; k += step) {
    need(ff_kernel_find(module, kinds[k].kernel, &kernels[k]), "ff_kernel_find");
    make_kind(k);
  }
  printf("way       SMs  victim   next to   median, us       least        most  over alone\n");
  measure_way("whole", turns);
  measure_way("green", turns);
  measure_way("rewrite", turns);
  for (int k = 0; k < KINDS; k += step) wrong += count_wrong(k);
  printf("wrong words: %llu\n", (unsigned long long)wrong);
  return wrong || ff_close(gpu) != FF_SUCCESS;
}
