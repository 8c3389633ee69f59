/* SPDX-License-Identifier: Apache-2.0 */
/* instructions: what single PTX instructions take, group by group (instructions.def). Its kernels are PTX that is made here, so that an
 * instruction is what the table says and no compiler of C has seen it.
 *
 * A kernel runs a loop of straight code. What a round takes is the difference of two launches, of few rounds and of more, behind one that
 * leaves the caches as both will find them, by events or, with the argument `clock`, by the kernels' own clock64. Of each row
 *
 *   latency    cycles from one instruction to the next that needs its result: one chain in one warp
 *   one warp   cycles between two instructions of a warp that has CHAINS chains
 *   interval   cycles between two warp instructions of one SM: 32 warps with as many chains each
 *              or between two instructions of a group of four warps, of those that only groups have
 *   GPU        the same on all SMs, in cycles of all of them together
 *   barrier    cycles of a barrier of so many warps
 *
 * The group `launch` measures kernels that do nothing: cycles of the GPU for each block, by threads of a block. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "micro.h"

enum {
  CHAINS = 4,
  ACCUMULATORS = 64,
  WARPS = 32,
  SEEDS = 1024,
  MOST_REPEATS = 32,
  FULL = 16 /* blocks of each SM */,
  CAPABILITY_MAJOR = 75,
  CAPABILITY_MINOR = 76
};

typedef struct row {
  const char *group, *name;
  int capability, width;
  char data;
  const char *modes;
  int steps, count;
  const char *setup, *step;
} row;

static const row rows[] = {
#define X(group, ...) {#group, __VA_ARGS__},
#include "instructions.def"
#undef X
};
enum { ROW_COUNT = sizeof rows / sizeof *rows };

/* ---- text ---- */

typedef struct text {
  char *start;
  size_t length, room;
} text;

static void add(text *t, const char *what, size_t length) {
  if (t->length + length + 1 > t->room) {
    t->room = 2 * t->room + length + 4096;
    t->start = realloc(t->start, t->room);
    if (!t->start) exit(2);
  }
  memcpy(t->start + t->length, what, length);
  t->length += length;
  t->start[t->length] = 0;
}

__attribute__((format(printf, 2, 3))) static void add_line(text *t, const char *format, ...) {
  char line[512];
  va_list list;
  va_start(list, format);
  int length = vsnprintf(line, sizeof line, format, list);
  va_end(list);
  add(t, line, (size_t)length);
}

static bool is_word(const char *at, const char *word) { return !strncmp(at, word, strlen(word)); }

/* The template with its names replaced, for chain k; `number` is unlike all others'. */
static void add_template(text *t, const char *template, int k, int number) {
  static const char *const shared_names[] = {"lane", "thread", "shared", "mine", "out"};
  for (const char *at = template; *at;) {
    if (*at != '$') {
      size_t plain = strcspn(at, "$");
      add(t, at, plain);
      at += plain;
      continue;
    }
    at++;
    const char *name = NULL;
    for (size_t i = 0; i < sizeof shared_names / sizeof *shared_names && !name; i++)
      if (is_word(at, shared_names[i])) name = shared_names[i];
    if (name) {
      add_line(t, "%%%s", name);
      at += strlen(name);
    } else {
      if (*at == 'n') add_line(t, "_%d", number);
      else if (*at == 'w')
        for (int i = 0; i < ACCUMULATORS; i++) add_line(t, "%s%%w%d", i ? "," : "", i);
      else if (*at == 'a' || *at == 'b') add_line(t, "%%%c", *at);
      else add_line(t, "%%%c%d", *at, k);
      at++;
    }
  }
  add_line(t, "\n");
}

/* ---- kernels ---- */

/* Parameters: seeds, x of each thread; then a and b; where results go, where clocks go, rounds. */
static void add_kernel(text *t, const row *r, int index, char mode) {
  static int number = 0;
  int chains = mode == 'S' ? CHAINS : 1, bytes = r->width / 8;
  add_line(
      t,
      ".visible .entry row%d_%c(.param .u64 seeds_at, .param .u64 out_at, .param .u64 clocks_at, .param .u32 rounds_are)\n",
      index, mode);
  add_line(t, ".maxntid %d,1,1\n{\n.reg .b16 %%h<4>;\n.reg .b32 %%i<4>,%%j<4>,%%o<4>,%%q<4>;\n",
           mode == 'M' ? 128 : 1024);
  add_line(t, ".reg .b32 %%lane,%%thread,%%shared,%%block,%%size,%%t,%%rounds,%%w<%d>;\n", ACCUMULATORS);
  add_line(
      t,
      ".reg .b64 %%l<4>,%%m<4>,%%r<4>,%%mine,%%out,%%seeds,%%clocks,%%begin,%%end,%%s;\n.reg .pred %%p<4>,%%again;\n");
  add_line(t, ".reg .b%d %%x<4>,%%a,%%b;\n", r->width);
  add_line(t, ".shared .align 16 .b8 memory[8192];\n");
  add_line(
      t,
      "ld.param.u64 %%seeds,[seeds_at]; ld.param.u64 %%out,[out_at]; ld.param.u64 %%clocks,[clocks_at]; ld.param.u32 %%rounds,[rounds_are];\n");
  add_line(
      t,
      "mov.u32 %%lane,%%laneid; mov.u32 %%t,%%tid.x; mov.u32 %%block,%%ctaid.x; mov.u32 %%size,%%ntid.x; mad.lo.u32 %%thread,%%block,%%size,%%t;\n");
  add_line(
      t,
      "mov.u32 %%shared,memory; mul.wide.u32 %%s,%%lane,16; add.u64 %%mine,%%seeds,%%s; mul.wide.u32 %%s,%%t,%d; add.u64 %%s,%%seeds,%%s;\n",
      bytes);
  add_line(t, "ld.global.b%d %%a,[%%s+%d]; ld.global.b%d %%b,[%%s+%d];\n", r->width, SEEDS * bytes, r->width,
           2 * SEEDS * bytes);
  for (int k = 0; k < chains; k++) {
    add_line(t, "ld.global.b%d %%x%d,[%%s+%d];\n", r->width, k, k * 32 * bytes);
    add_template(t, r->setup, k, number++);
  }
  if (mode == 'M')
    for (int i = 0; i < ACCUMULATORS; i++) add_line(t, "mov.b32 %%w%d,0;\n", i);
  add_line(t, "bar.sync 0;\nmov.u64 %%begin,%%clock64;\nAGAIN:\n.pragma \"nounroll\";\n");
  for (int i = 0; i < r->steps; i++) add_template(t, r->step, i % chains, number++);
  add_line(
      t,
      "sub.u32 %%rounds,%%rounds,1; setp.ne.u32 %%again,%%rounds,0; @%%again bra AGAIN;\nmov.u64 %%end,%%clock64;\n");
  add_line(t, "mul.wide.u32 %%s,%%thread,16; add.u64 %%s,%%clocks,%%s; st.global.v2.u64 [%%s],{%%begin,%%end};\n");
  add_line(t, "mul.wide.u32 %%s,%%thread,128; add.u64 %%s,%%out,%%s;\n");
  if (mode == 'M') add_line(t, "wgmma.wait_group.sync.aligned 0; mov.b32 %%x0,%%w0;\n");
  for (int k = 0; k < chains; k++) add_line(t, "st.global.b%d [%%s+%d],%%x%d;\n", r->width, 8 * k, k);
  add_line(t, "ret;\n}\n");
}

/* No row needs more than 9.0, whose PTX later GPUs take, but for what is 9.0a's alone. */
static void add_head(text *t, int capability) {
  add_line(t, ".version 8.4\n.target sm_%d%s\n.address_size 64\n.const .align 8 .u64 words[32] = {0",
           capability > 90 ? 90 : capability, capability == 90 ? "a" : "");
  for (int i = 1; i < 32; i++) add_line(t, ",%d", 8 * i);
  add_line(t, "};\n.visible .entry nothing() { ret; }\n");
  add_line(
      t,
      ".visible .entry spin(.param .u64 at) { .reg .b64 %%a,%%b,%%c; .reg .pred %%p; ld.param.u64 %%a,[at]; mov.u64 %%b,%%clock64;\n");
  add_line(
      t,
      "L: mov.u64 %%c,%%clock64; sub.u64 %%c,%%c,%%b; setp.lt.u64 %%p,%%c,20000000; @%%p bra L; st.global.u64 [%%a],%%c; ret; }\n");
}

/* Whether the name is one of those that `what` has, with a + between them. */
static bool is_named(const char *what, const char *name) {
  size_t length = strlen(name);
  for (const char *at = what; at; at = strchr(at, '+')) {
    at += *at == '+';
    if (!strncmp(at, name, length) && (!at[length] || at[length] == '+')) return true;
  }
  return false;
}

static bool is_wanted(const row *r, const char *what, int capability) {
  if (strchr(r->modes, 'M') && r->capability != capability) return false; /* of this generation only */
  return r->capability <= capability && (is_named(what, "all") || is_named(what, r->group) || is_named(what, r->name));
}

/* Ends the program where there is none. */
static void add_kernels(text *t, const char *what, int capability) {
  bool any = is_named(what, "launch");
  add_head(t, capability);
  for (int i = 0; i < ROW_COUNT; i++) {
    if (!is_wanted(&rows[i], what, capability)) continue;
    any = true;
    for (const char *mode = rows[i].modes; *mode; mode++)
      if (!strchr("GW", *mode)) add_kernel(t, &rows[i], i, *mode);
  }
  if (any) return;
  fprintf(stderr, "instructions: no group and no instruction '%s' for compute capability %d.%d\n", what,
          capability / 10, capability % 10);
  exit(2);
}

/* ---- measuring ---- */

typedef struct bench {
  gpu_pointer seeds, out, clocks;
  int first, more, repeats;
  bool by_clock;
  uint64_t *host_clocks; /* begin and end of each thread */
} bench;

static uint64_t seed_of(workload_random *random, char data) {
  uint32_t word = workload_random_u32(random), other = workload_random_u32(random);
  switch (data) {
  case 'F': return 0x3f800000 | word >> 9;
  case 'D': return 0x3ff0000000000000 | (uint64_t)word << 20;
  case 'H': return 0x3c003c00 | (word & 0x03ff03ff);
  case 'B': return 0x3f803f80 | (word & 0x007f007f);
  case 'L': return (uint64_t)other << 32 | word;
  default: return word;
  }
}

static void give_seeds(const bench *b, const row *r) {
  static uint64_t words[3 * SEEDS];
  workload_random random = {7};
  for (int i = 0; i < 3 * SEEDS; i++) {
    uint64_t seed = seed_of(&random, r->data);
    if (r->width == 64) words[i] = seed;
    else ((uint32_t *)words)[i] = (uint32_t)seed;
  }
  gpu_copy_to_device(b->seeds, words, sizeof words);
}

/* Cycles from the first thread's begin to the last one's end, of the block that took longest. */
static double clocks_of(const bench *b, gpu_shape shape) {
  uint64_t longest = 0;
  gpu_copy_to_host(b->host_clocks, b->clocks, (size_t)16 * shape.grid_x * shape.block_x);
  for (unsigned block = 0; block < shape.grid_x; block++) {
    const uint64_t *clock = b->host_clocks + (size_t)2 * block * shape.block_x;
    uint64_t begin = clock[0], end = clock[1];
    for (unsigned i = 1; i < shape.block_x; i++) {
      if (clock[2 * i] < begin) begin = clock[2 * i];
      if (clock[2 * i + 1] > end) end = clock[2 * i + 1];
    }
    if (end - begin > longest) longest = end - begin;
  }
  return (double)longest;
}

static double launch(const bench *b, gpu_kernel kernel, gpu_shape shape, int rounds) {
  double us;
  bench copy = *b;
  MICRO_TIME(us, GPU_LAUNCH(kernel, shape, copy.seeds, copy.out, copy.clocks, rounds));
  return b->by_clock ? clocks_of(b, shape) : micro_cycles(us);
}

static int compare(const void *a, const void *b) {
  double left = *(const double *)a, right = *(const double *)b;
  return (left > right) - (left < right);
}

/* Cycles of a round: the median of so many differences. */
static double round_of(const bench *b, gpu_kernel kernel, gpu_shape shape) {
  double differences[MOST_REPEATS];
  launch(b, kernel, shape, b->first);
  for (int i = 0; i < b->repeats; i++) {
    double few = launch(b, kernel, shape, b->first), many = launch(b, kernel, shape, b->more);
    differences[i] = (many - few) / (b->more - b->first);
  }
  qsort(differences, (size_t)b->repeats, sizeof *differences, compare);
  return differences[b->repeats / 2];
}

static void measure(const bench *b, const row *r, int index) {
  char name[80], quantity[160];
  double instructions = r->steps ? (double)r->steps * r->count : 1;
  unsigned sms = (unsigned)gpu_attribute(GPU_SMS);
  give_seeds(b, r);
  if (strchr(r->modes, 'G')) gpu_set_words(b->out, 0, (size_t)32 * 32 * WARPS * sms);
  for (const char *mode = r->modes; *mode; mode++) {
    snprintf(name, sizeof name, "row%d_%c", index, strchr("GW", *mode) ? 'S' : *mode);
    gpu_kernel kernel = gpu_find_kernel(name);
    if (*mode == 'B') {
      for (unsigned warps = 1; warps <= WARPS; warps *= 2) {
        snprintf(quantity, sizeof quantity, "%s, %u warps", r->name, warps);
        micro_print(quantity, round_of(b, kernel, (gpu_shape){1, 1, 32 * warps, 1}) / instructions, "cycles");
      }
      continue;
    }
    gpu_shape shape = {*mode == 'G' ? sms : 1, 1, strchr("LW", *mode) ? 32 : *mode == 'M' ? 128 : 32 * WARPS, 1};
    snprintf(quantity, sizeof quantity, "%s: %s", r->name,
             *mode == 'L'          ? "latency"
             : *mode == 'W'        ? "one warp"
             : strchr("SM", *mode) ? "interval"
                                   : "GPU");
    double warps = *mode == 'M' ? 1 : (double)(shape.block_x / 32) * shape.grid_x;
    micro_print(quantity, round_of(b, kernel, shape) / (instructions * warps), "cycles");
  }
}

static double grid_time(gpu_kernel kernel, unsigned blocks, unsigned threads, int repeats) {
  double us[MOST_REPEATS];
  for (int i = 0; i < repeats; i++) MICRO_TIME(us[i], gpu_launch(kernel, (gpu_shape){blocks, 1, threads, 1}, NULL));
  qsort(us, (size_t)repeats, sizeof *us, compare);
  return us[repeats / 2];
}

static void measure_launches(const bench *b) {
  gpu_kernel nothing = gpu_find_kernel("nothing");
  unsigned sms = (unsigned)gpu_attribute(GPU_SMS), waves = (unsigned)b->more;
  char quantity[80];
  grid_time(nothing, sms, 32, 1);
  for (unsigned threads = 32; threads <= 1024; threads *= 2) {
    double few = grid_time(nothing, FULL * sms, threads, b->repeats);
    double many = grid_time(nothing, FULL * (1 + waves) * sms, threads, b->repeats);
    snprintf(quantity, sizeof quantity, "block of %u threads", threads);
    micro_print(quantity, micro_cycles(many - few) / ((double)FULL * waves * sms), "cycles");
  }
  for (unsigned blocks = 1; blocks <= 4 * FULL * sms; blocks = blocks == 1 && sms > 1 ? sms : 8 * blocks) {
    snprintf(quantity, sizeof quantity, "empty kernel of %u blocks of 128 threads", blocks);
    micro_print(quantity, grid_time(nothing, blocks, 128, b->repeats), "us");
  }
  if (!b->by_clock) return;
  gpu_pointer at = b->clocks;
  double us;
  MICRO_TIME(us, GPU_LAUNCH(gpu_find_kernel("spin"), ((gpu_shape){1, 1, 32, 1}), at));
  uint64_t cycles;
  gpu_copy_to_host(&cycles, b->clocks, sizeof cycles);
  micro_print("clock", (double)cycles / us, "MHz");
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {
      {"rounds", 8, 1, 1 << 20}, {"repeats", 1, 1, MOST_REPEATS}, {"clock", 0, 0, 1}, {"print", 0, 0, 1000}};
  const char *what = argc > 1 && argv[1][0] != '-' ? argv[1] : "all";
  int skip = argc > 1 && argv[1][0] != '-';
  workload_arguments(argc - skip, argv + skip, "instructions",
                     "what single instructions take; before the numbers: groups, `launch`, or rows' names, with a + between them", arguments,
                     4);
  text ptx = {0};
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (arguments[3].value) { /* the PTX for that compute capability, times ten */
    add_kernels(&ptx, what, (int)arguments[3].value);
    fputs(ptx.start, stdout);
    free(ptx.start);
    return 0;
  }
  bench b = {.first = 4,
             .more = 4 + (int)arguments[0].value,
             .repeats = (int)arguments[1].value,
             .by_clock = arguments[2].value};
  gpu_open(NULL);
  int capability = 10 * gpu_attribute(CAPABILITY_MAJOR) + gpu_attribute(CAPABILITY_MINOR);
  size_t threads = (size_t)gpu_attribute(GPU_SMS) * 32 * WARPS;
  add_kernels(&ptx, what, capability);
  gpu_load(ptx.start);
  b.seeds = gpu_allocate(3 * SEEDS * 8);
  b.out = gpu_allocate(128 * threads);
  b.clocks = gpu_allocate(16 * threads);
  b.host_clocks = workload_memory(2 * threads, sizeof *b.host_clocks);
  gpu_set_words(b.out, 0, 32 * threads);
  if (is_named(what, "launch") || is_named(what, "all")) measure_launches(&b);
  for (int i = 0; i < ROW_COUNT; i++)
    if (is_wanted(&rows[i], what, capability)) measure(&b, &rows[i], i);
  gpu_close();
  free(b.host_clocks);
  free(ptx.start);
  return 0;
}
