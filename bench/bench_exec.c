/* SPDX-License-Identifier: Apache-2.0 */
/* How fast kernels are executed: warp instructions per second of a tiled matrix product (regular, shared memory and
 * barriers) and a breadth-first search (irregular, divergent), with one worker and with two, with and without the
 * access stream, and on each instruction set; compared with the same work as plain C on the same core.
 *
 *   [FARFAULT_EXECUTE=compile] bench_exec [matrix size, a multiple of 16] [vertices of the graph]
 *
 * "CPU" counts the processor time of all workers, "wall" the time that passed: on a busy machine only the first is
 * stable. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "compile/compile.h"
#include "exec/exec.h"

/* C = A * B by tiles of 16 x 16 in shared memory; 256 threads per block. The inner product is unrolled as compilers
 * do. */
#define STEP(k, next) \
  "ld.shared.f32 %b, [%pb+" #k "*64]; ld.shared.f32 %a, [%pa+" #k "*4]; fma.rn.f32 %sum, %a, %b, %sum;\n"
/* clang-format off */
static const char product_text[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry product(.param .u64 pA, .param .u64 pB, .param .u64 pC, .param .u32 pn)\n{\n"
    ".shared .align 4 .b8 ta[1024]; .shared .align 4 .b8 tb[1024];\n"
    ".reg .b32 %n, %x, %y, %bx, %by, %row, %col, %r<8>, %sa, %sb, %pa, %pb, %t, %tiles; .reg .b64 %A, %B, %C, %ga, %gb, %step, %rd<6>;\n"
    ".reg .f32 %a, %b, %sum; .reg .pred %p;\n"
    "ld.param.u64 %A, [pA]; ld.param.u64 %B, [pB]; ld.param.u64 %C, [pC]; ld.param.u32 %n, [pn];\n"
    "mov.u32 %x, %tid.x; mov.u32 %y, %tid.y; mov.u32 %bx, %ctaid.x; mov.u32 %by, %ctaid.y;\n"
    "shl.b32 %row, %by, 4; add.u32 %row, %row, %y; shl.b32 %col, %bx, 4; add.u32 %col, %col, %x;\n"
    "mad.lo.u32 %r1, %row, %n, %x; mul.wide.u32 %rd1, %r1, 4; add.s64 %ga, %A, %rd1;\n"
    "mad.lo.u32 %r2, %y, %n, %col; mul.wide.u32 %rd2, %r2, 4; add.s64 %gb, %B, %rd2; shl.b32 %r3, %n, 4; mul.wide.u32 %step, %r3, 4;\n"
    "mov.u32 %r4, ta; shl.b32 %r5, %y, 6; add.u32 %pa, %r4, %r5; shl.b32 %r6, %x, 2; add.u32 %sa, %pa, %r6;\n"
    "mov.u32 %r7, tb; add.u32 %pb, %r7, %r6; add.u32 %sb, %pb, %r5; mov.f32 %sum, 0f00000000; mov.u32 %t, 0; shr.u32 %tiles, %n, 4;\n"
    "LOOP: ld.global.f32 %a, [%ga]; st.shared.f32 [%sa], %a; ld.global.f32 %b, [%gb]; st.shared.f32 [%sb], %b; bar.sync 0;\n"
    STEP(0, ) STEP(1, ) STEP(2, ) STEP(3, ) STEP(4, ) STEP(5, ) STEP(6, ) STEP(7, )
    STEP(8, ) STEP(9, ) STEP(10, ) STEP(11, ) STEP(12, ) STEP(13, ) STEP(14, ) STEP(15, )
    "bar.sync 0; add.s64 %ga, %ga, 64; add.s64 %gb, %gb, %step; add.u32 %t, %t, 1; setp.lt.u32 %p, %t, %tiles; @%p bra LOOP;\n"
    "mad.lo.u32 %r1, %row, %n, %col; mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %C, %rd1; st.global.f32 [%rd2], %sum; ret;\n}\n";
/* clang-format on */

/* One level: every vertex of the level looks at all its neighbours. */
static const char search_text[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry level(.param .u64 prow, .param .u64 pcol, .param .u64 pdist, .param .u32 pn, .param .u32 plevel, .param .u64 pchanged)\n{\n"
    ".reg .b32 %v, %n, %level, %r<8>, %e, %end, %u, %d, %next; .reg .b64 %row, %col, %dist, %changed, %rd<8>; .reg .pred %p<5>;\n"
    "ld.param.u64 %row, [prow]; ld.param.u64 %col, [pcol]; ld.param.u64 %dist, [pdist]; ld.param.u32 %n, [pn]; ld.param.u32 %level, [plevel];\n"
    "ld.param.u64 %changed, [pchanged]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %v, %r1, %r2, %r3;\n"
    "setp.ge.u32 %p1, %v, %n; @%p1 bra END; mul.wide.u32 %rd1, %v, 4; add.s64 %rd2, %dist, %rd1; ld.global.u32 %d, [%rd2];\n"
    "setp.ne.u32 %p2, %d, %level; @%p2 bra END; add.s64 %rd3, %row, %rd1; ld.global.u32 %e, [%rd3]; ld.global.u32 %end, [%rd3+4];\n"
    "add.u32 %next, %level, 1; setp.ge.u32 %p3, %e, %end; @%p3 bra END; mul.wide.u32 %rd4, %e, 4; add.s64 %rd5, %col, %rd4;\n"
    "LOOP: ld.global.u32 %u, [%rd5]; mul.wide.u32 %rd6, %u, 4; add.s64 %rd7, %dist, %rd6; ld.global.u32 %d, [%rd7]; setp.ge.s32 %p4, %d, 0; @%p4 bra SKIP;\n"
    "st.global.u32 [%rd7], %next; st.global.u32 [%changed], 1;\n"
    "SKIP: add.s64 %rd5, %rd5, 4; add.u32 %e, %e, 1; setp.lt.u32 %p4, %e, %end; @%p4 bra LOOP;\n"
    "END: ret;\n}\n";

static double seconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static _Noreturn void fail(const char *what, const ff_error *error) {
  fprintf(stderr, "bench_exec: %s: %s\n", what, error->message);
  exit(1);
}

/* ---- a consumer of the access stream that reads every record ---- */

typedef struct consumer {
  trace_program *program;
  trace_reader *reader;
  pthread_t thread;
  uint64_t records;
} consumer;

static void read_chunk(consumer *c, const trace_op *op, uint64_t block) {
  trace_chunk *chunk = trace_reader_chunk(c->reader, op->launch, block);
  for (uint32_t w = 0; w < op->launch->warps_per_block; w++) {
    trace_cursor cursor;
    trace_cursor_open(c->reader, chunk, w, &cursor);
    do c->records++;
    while (trace_word_kind(*trace_cursor_next(c->reader, &cursor)) != TRACE_EXIT);
  }
  trace_reader_release(c->reader, chunk);
}

static void *consume(void *context) {
  consumer *c = context;
  for (const trace_op *op; (op = trace_reader_next_op(c->reader));)
    if (op->kind == TRACE_OP_LAUNCH)
      for (uint64_t b = 0; b < op->launch->blocks; b++) read_chunk(c, op, b);
  return NULL;
}

static void consumer_start(consumer *c) {
  *c = (consumer){.program = trace_program_create(0)};
  c->reader = trace_reader_create(c->program);
  pthread_create(&c->thread, NULL, consume, c);
}

static void consumer_stop(consumer *c) {
  trace_op_append(c->program, &(trace_op){.kind = TRACE_OP_END});
  pthread_join(c->thread, NULL);
  trace_reader_free(c->reader);
  trace_program_free(c->program);
}

/* ---- one configuration ---- */

typedef struct bench {
  exec_memory *memory;
  exec_kernel *product, *level;
  consumer *consumer; /* NULL: no stream */
  uint32_t threads, n, vertices;
  const char *isa;
  float *a, *b, *c;
  uint32_t *row, *col, *changed;
  int32_t *dist;
  double cpu, wall; /* of the launches */
  uint64_t instructions, accesses;
} bench;

static void launch(bench *s, exec_kernel *kernel, uint32_t grid_x, uint32_t grid_y, uint32_t block_x, uint32_t block_y,
                   const void *params) {
  exec_config config = {.memory = s->memory, .threads = s->threads, .sm_count = 80, .isa = s->isa};
  exec_launch_request request = {
      .kernel = kernel, .grid = {grid_x, grid_y, 1}, .block = {block_x, block_y, 1}, .params = params};
  if (s->consumer) {
    request.trace = trace_launch_create(s->consumer->program, (uint64_t)grid_x * grid_y, (block_x * block_y + 31) / 32);
    trace_op_append(s->consumer->program, &(trace_op){.kind = TRACE_OP_LAUNCH, .launch = request.trace});
  }
  exec_stats stats = {0};
  exec_fault fault;
  ff_error error;
  clockid_t clock = s->threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_PROCESS_CPUTIME_ID;
  double cpu = seconds(clock), wall = seconds(CLOCK_MONOTONIC);
  if (exec_launch(&config, &request, &stats, &fault, &error) != FF_OK) fail("launch", &error);
  s->cpu += seconds(clock) - cpu;
  s->wall += seconds(CLOCK_MONOTONIC) - wall;
  s->instructions += stats.warp_instructions;
  s->accesses += stats.warp_accesses;
  if (s->consumer) trace_launch_finish(request.trace);
}

static void run_product(bench *s) {
  struct {
    const float *a, *b;
    float *c;
    uint32_t n;
  } params = {s->a, s->b, s->c, s->n};
  launch(s, s->product, s->n / 16, s->n / 16, 16, 16, &params);
}

static void run_search(bench *s) {
  for (uint32_t v = 0; v < s->vertices; v++) s->dist[v] = v ? -1 : 0;
  for (uint32_t level = 0;; level++) {
    struct {
      const uint32_t *row, *col;
      int32_t *dist;
      uint32_t n, level;
      uint32_t *changed;
    } params = {s->row, s->col, s->dist, s->vertices, level, s->changed};
    *s->changed = 0;
    launch(s, s->level, (s->vertices + 255) / 256, 1, 256, 1, &params);
    if (!*s->changed) return;
  }
}

/* ---- the same in C ---- */

static void c_product(const float *a, const float *b, float *c, uint32_t n) {
  for (uint32_t i0 = 0; i0 < n; i0 += 16)
    for (uint32_t j0 = 0; j0 < n; j0 += 16) {
      float sum[16][16] = {{0}};
      for (uint32_t k0 = 0; k0 < n; k0 += 16)
        for (uint32_t i = 0; i < 16; i++)
          for (uint32_t j = 0; j < 16; j++)
            for (uint32_t k = k0; k < k0 + 16; k++)
              sum[i][j] = __builtin_fmaf(a[(i0 + i) * n + k], b[k * n + j0 + j], sum[i][j]);
      for (uint32_t i = 0; i < 16; i++)
        for (uint32_t j = 0; j < 16; j++) c[(i0 + i) * n + j0 + j] = sum[i][j];
    }
}

static void c_search(const uint32_t *row, const uint32_t *col, int32_t *dist, uint32_t n) {
  for (uint32_t v = 0; v < n; v++) dist[v] = v ? -1 : 0;
  for (int32_t level = 0, changed = 1; changed; level++) {
    changed = 0;
    for (uint32_t v = 0; v < n; v++)
      if (dist[v] == level)
        for (uint32_t e = row[v]; e < row[v + 1]; e++)
          if (dist[col[e]] < 0) {
            dist[col[e]] = level + 1;
            changed = 1;
          }
  }
}

/* ---- set up, report ---- */

static void *device(bench *s, uint64_t bytes) {
  const exec_allocation *allocation;
  ff_error error;
  if (exec_memory_allocate(s->memory, bytes, 0, EXEC_MEMORY_DEVICE, "bench", &allocation, &error) != FF_OK)
    fail("memory", &error);
  return (void *)(uintptr_t)allocation->address;
}

static exec_kernel *load(bench *s, const char *text, const char *name) {
  ptx_module *module;
  exec_program *program;
  exec_kernel *kernel;
  ff_error error;
  if (ptx_module_parse(name, text, strlen(text), &module, &error) != FF_OK ||
      exec_program_create(module, s->memory, &program, &error) != FF_OK ||
      exec_program_kernel(program, name, &kernel, &error) != FF_OK)
    fail(name, &error);
  return kernel;
}

static void make_graph(bench *s, uint32_t degree) {
  uint32_t seed = 12345, edges = 0;
  s->row = device(s, 4 * ((uint64_t)s->vertices + 1));
  s->col = device(s, 4 * (uint64_t)s->vertices * 2 * degree);
  for (uint32_t v = 0; v < s->vertices; v++) {
    s->row[v] = edges;
    seed = seed * 1664525 + 1013904223;
    for (uint32_t e = 0, count = (seed >> 16) % (2 * degree); e < count; e++) {
      seed = seed * 1664525 + 1013904223;
      s->col[edges++] = (uint32_t)((uint64_t)seed * s->vertices >> 32);
    }
  }
  s->row[s->vertices] = edges;
}

static double report(bench *s, const char *name, void (*run)(bench *)) {
  s->cpu = s->wall = 0;
  s->instructions = s->accesses = 0;
  do run(s);
  while (s->cpu < 0.5);
  double cores = s->cpu / s->wall;
  printf("%-10s %-9s %7u  %-6s %9.1f %9.1f %8.1f %6.2f\n", name, s->isa, s->threads, s->consumer ? "yes" : "no",
         (double)s->instructions / s->cpu / 1e6, (double)s->instructions / s->wall / 1e6,
         (double)s->accesses / s->cpu / 1e6, cores);
  return s->cpu;
}

static void report_c(const char *name, double c_seconds, double exec_seconds) {
  printf("%-10s plain C, one core: %.1f ms; executed as a kernel with one worker: %.1f ms, %.2f times as long\n", name,
         1e3 * c_seconds, 1e3 * exec_seconds, exec_seconds / c_seconds);
}

static void compare_with_c(bench *s) {
  float *c = ff_alloc((size_t)s->n * s->n * sizeof *c);
  int32_t *dist = ff_alloc(s->vertices * sizeof *dist);
  s->threads = 1;
  s->cpu = 0;
  run_product(s);
  double kernel = s->cpu, start = seconds(CLOCK_THREAD_CPUTIME_ID);
  c_product(s->a, s->b, c, s->n);
  report_c("product", seconds(CLOCK_THREAD_CPUTIME_ID) - start, kernel);
  if (memcmp(c, s->c, (size_t)s->n * s->n * sizeof *c)) printf("product: the results differ\n");
  s->cpu = 0;
  run_search(s);
  kernel = s->cpu;
  start = seconds(CLOCK_THREAD_CPUTIME_ID);
  c_search(s->row, s->col, dist, s->vertices);
  report_c("search", seconds(CLOCK_THREAD_CPUTIME_ID) - start, kernel);
  if (memcmp(dist, s->dist, s->vertices * sizeof *dist)) printf("search: the results differ\n");
  free(c);
  free(dist);
}

int main(int argc, char **argv) {
  bench s = {.n = argc > 1 ? (uint32_t)atoi(argv[1]) & ~15u : 512,
             .vertices = argc > 2 ? (uint32_t)atoi(argv[2]) : 1 << 18};
  ff_error error;
  compile_mode mode;
  const char *how = getenv("FARFAULT_EXECUTE");
  if (how && (!compile_mode_parse(how, &mode) || compile_use(mode, &error) != FF_OK))
    return fprintf(stderr, "bench_exec: FARFAULT_EXECUTE=%s is not possible\n", how), 2;
  if (s.n < 16 || s.n > 8192 || s.vertices < 2 || s.vertices > 1 << 26)
    return fprintf(stderr, "bench_exec: sizes out of range\n"), 2;
  if (exec_memory_create(&s.memory, &error) != FF_OK) fail("memory", &error);
  s.product = load(&s, product_text, "product");
  s.level = load(&s, search_text, "level");
  uint64_t cells = (uint64_t)s.n * s.n;
  s.a = device(&s, 4 * cells);
  s.b = device(&s, 4 * cells);
  s.c = device(&s, 4 * cells);
  for (uint64_t i = 0; i < cells; i++) {
    s.a[i] = (float)(i % 7) * 0.5f;
    s.b[i] = (float)(i % 11) - 3;
  }
  s.dist = device(&s, 4 * (uint64_t)s.vertices);
  s.changed = device(&s, 4);
  make_graph(&s, 8);
  printf("matrix %u x %u, graph of %u vertices and %u edges; millions per second\n", s.n, s.n, s.vertices,
         s.row[s.vertices]);
  printf("%-10s %-9s %7s  %-6s %9s %9s %8s %6s\n", "kernel", "set", "workers", "stream", "instr/CPU", "instr/wall",
         "acc/CPU", "cores");
  for (const char *const *isa = exec_isas(); *isa; isa++)
    for (s.threads = 1; s.threads <= 2; s.threads++)
      for (int traced = 0; traced < 2; traced++) {
        if (isa != exec_isas() && (traced || s.threads > 1)) continue; /* the other sets: one line each */
        consumer reader;
        s.isa = *isa;
        s.consumer = traced ? &reader : NULL;
        if (traced) consumer_start(&reader);
        report(&s, "product", run_product);
        report(&s, "search", run_search);
        if (traced) consumer_stop(&reader);
      }
  s.isa = exec_isas()[0];
  s.consumer = NULL;
  compare_with_c(&s);
  return 0;
}
