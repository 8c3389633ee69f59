/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about launches and occupancy. */
#define _GNU_SOURCE
#include "answers.h"


#define HEAD ".version 7.0\n.target sm_75\n.address_size 64\n"
#include "modules.h"

static W the_function, the_memory;
static void launch(const char *label, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared) {
  ASK(label, cuLaunchKernel, the_function, gx, gy, gz, bx, by, bz, shared, 0, 0, 0);
}

static void launches(void) {
  answers_context();
  W m = answers_module(module_text), s = 0;
  unsigned value = 3;
  the_memory = answers_memory(4096);
  the_function = answers_function(m, "nothing");
  W store = answers_function(m, "store");
  MUST(cuStreamCreate, &s, 0);
  launch("1", 1, 1, 1, 1, 1, 1, 0);
  launch("no blocks x", 0, 1, 1, 1, 1, 1, 0);
  launch("no blocks y", 1, 0, 1, 1, 1, 1, 0);
  launch("no blocks z", 1, 1, 0, 1, 1, 1, 0);
  launch("no threads x", 1, 1, 1, 0, 1, 1, 0);
  launch("no threads y", 1, 1, 1, 1, 0, 1, 0);
  launch("no threads z", 1, 1, 1, 1, 1, 0, 0);
  launch("1024 threads", 1, 1, 1, 1024, 1, 1, 0);
  launch("1025 threads", 1, 1, 1, 1025, 1, 1, 0);
  launch("2048 threads in two", 1, 1, 1, 1024, 2, 1, 0);
  launch("64 z", 1, 1, 1, 1, 1, 64, 0);
  launch("65 z", 1, 1, 1, 1, 1, 65, 0);
  launch("1024 y", 1, 1, 1, 1, 1024, 1, 0);
  launch("65535 y", 1, 65535, 1, 1, 1, 1, 0);
  launch("65536 y", 1, 65536, 1, 1, 1, 1, 0);
  launch("65536 z", 1, 1, 65536, 1, 1, 1, 0);
  launch("2^31 x", 1u << 31, 1, 1, 1, 1, 1, 0);
  launch("48 KiB", 1, 1, 1, 1, 1, 1, 48 << 10);
  launch("48 KiB and 1", 1, 1, 1, 1, 1, 1, (48 << 10) + 1);
  launch("1 MiB", 1, 1, 1, 1, 1, 1, 1 << 20);
  DO(cuFuncSetAttribute, the_function, 8, 100000);
  launch("100000 bytes", 1, 1, 1, 1, 1, 1, 100000);
  launch("100001 bytes", 1, 1, 1, 1, 1, 1, 100001);
  the_function = answers_function(m, "bounded");
  launch("bounded, 256", 1, 1, 1, 256, 1, 1, 0);
  launch("bounded, 257", 1, 1, 1, 257, 1, 1, 0);
  launch("bounded, 16 by 16", 1, 1, 1, 16, 16, 1, 0);
  the_function = answers_function(m, "required");
  launch("required, 64 by 2", 1, 1, 1, 64, 2, 1, 0);
  launch("required, 64", 1, 1, 1, 64, 1, 1, 0);
  launch("required, 128", 1, 1, 1, 128, 1, 1, 0);
  the_function = answers_function(m, "sharing");
  ASK("sharing, no parameters", cuLaunchKernel, the_function, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0);
  W pointer = (W)&the_memory;
  ASK("sharing, 44 KiB more", cuLaunchKernel, the_function, 1, 1, 1, 1, 1, 1, 44 << 10, 0, &pointer, 0);
  ASK("sharing, 44 KiB and 1 more", cuLaunchKernel, the_function, 1, 1, 1, 1, 1, 1, (44 << 10) + 1, 0, &pointer, 0);
  ASK("null", cuLaunchKernel, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0);
  W parameters[2] = {(W)&the_memory, (W)&value};
  ASK("", cuLaunchKernel, store, 1, 1, 1, 1, 1, 1, 0, s, parameters, 0);
  ASK("", cuStreamSynchronize, s);
  W block[2] = {the_memory, 7}, size = 12;
  W extra[5] = {1, (W)block, 2, (W)&size, 0};
  ASK("extra", cuLaunchKernel, store, 1, 1, 1, 1, 1, 1, 0, s, 0, extra);
  ASK("extra and parameters", cuLaunchKernel, store, 1, 1, 1, 1, 1, 1, 0, s, parameters, extra);
  size = 8;
  ASK("extra too short", cuLaunchKernel, store, 1, 1, 1, 1, 1, 1, 0, s, 0, extra);
  size = 16;
  ASK("extra too long", cuLaunchKernel, store, 1, 1, 1, 1, 1, 1, 0, s, 0, extra);
  size = 12, extra[0] = 5;
  ASK("extra of another kind", cuLaunchKernel, store, 1, 1, 1, 1, 1, 1, 0, s, 0, extra);
  extra[0] = 0;
  ASK("extra of nothing", cuLaunchKernel, store, 1, 1, 1, 1, 1, 1, 0, s, 0, extra);
  ASK("so far", cuCtxSynchronize, 0);
  the_function = answers_function(m, "nothing");
  ASK("132 blocks", cuLaunchCooperativeKernel, the_function, 132, 1, 1, 32, 1, 1, 0, 0, 0);
  ASK("too many blocks", cuLaunchCooperativeKernel, the_function, 132 * 40, 1, 1, 32, 1, 1, 0, 0, 0);
  ASK("too many threads", cuLaunchCooperativeKernel, the_function, 132 * 3, 1, 1, 1024, 1, 1, 0, 0, 0);
  ASK("no blocks", cuLaunchCooperativeKernel, the_function, 0, 1, 1, 32, 1, 1, 0, 0, 0);
  struct {
    W function;
    unsigned grid[3], block[3], shared;
    W stream, parameters;
  } many[2] = {{the_function, {2, 1, 1}, {32, 1, 1}, 0, s, 0}, {the_function, {2, 1, 1}, {32, 1, 1}, 0, 0, 0}};
  ASK("one device", cuLaunchCooperativeKernelMultiDevice, many, 1, 0);
  many[0].stream = 0;
  ASK("null stream", cuLaunchCooperativeKernelMultiDevice, many, 1, 0);
  many[0].stream = s;
  ASK("flags 3", cuLaunchCooperativeKernelMultiDevice, many, 1, 3);
  ASK("none", cuLaunchCooperativeKernelMultiDevice, many, 0, 0);
  ASK("null", cuLaunchCooperativeKernelMultiDevice, 0, 1, 0);
  many[1].stream = s;
  ASK("the same device twice", cuLaunchCooperativeKernelMultiDevice, many, 2, 0);
  ASK("so far, cooperative", cuCtxSynchronize, 0);
  /* attributes of launches */
  struct attribute {
    int id, pad;
    union {
      int number[16];
      W word[8];
    } value;
  } attributes[2];
  struct {
    unsigned grid[3], block[3], shared;
    W stream, attributes;
    unsigned count;
  } config = {{8, 1, 1}, {32, 1, 1}, 0, s, (W)attributes, 1};
  char text[100];
  memset(attributes, 0, sizeof attributes);
  ASK("null", cuLaunchKernelEx, 0, the_function, 0, 0);
  config.count = 0;
  ASK("no attributes", cuLaunchKernelEx, &config, the_function, 0, 0);
  config.count = 1, config.attributes = 0;
  ASK("null attributes", cuLaunchKernelEx, &config, the_function, 0, 0);
  config.attributes = (W)attributes;
  for (int id = -1; id < 24; id++) {
    memset(attributes, 0, sizeof attributes);
    attributes[0].id = id;
    if (id == 12) continue; /* a launch completion event, which is null */
    snprintf(text, sizeof text, "attribute %d of zeros", id);
    ASK(text, cuLaunchKernelEx, &config, the_function, 0, 0);
  }
  static const int clusters[][3] = {{1, 1, 1}, {2, 1, 1}, {4, 1, 1}, {8, 1, 1}, {16, 1, 1},
                                    {3, 1, 1}, {2, 2, 1}, {0, 1, 1}, {5, 1, 1}};
  for (int i = 0; i < 9; i++) {
    memset(attributes, 0, sizeof attributes);
    attributes[0].id = 4;
    memcpy(attributes[0].value.number, clusters[i], sizeof clusters[i]);
    snprintf(text, sizeof text, "8 blocks, clusters of %d %d", clusters[i][0], clusters[i][1]);
    ASK(text, cuLaunchKernelEx, &config, the_function, 0, 0);
  }
  config.grid[0] = 16;
  DO(cuFuncSetAttribute, the_function, 14, 1);
  attributes[0].value.number[0] = 16, attributes[0].value.number[1] = attributes[0].value.number[2] = 1;
  ASK("16 blocks, a cluster of 16 not portable", cuLaunchKernelEx, &config, the_function, 0, 0);
  memset(attributes, 0, sizeof attributes);
  attributes[0].id = 8, attributes[0].value.number[0] = 99;
  ASK("priority 99", cuLaunchKernelEx, &config, the_function, 0, 0);
  attributes[0].id = 2, attributes[0].value.number[0] = 1;
  ASK("cooperative", cuLaunchKernelEx, &config, the_function, 0, 0);
  attributes[0].value.number[0] = 2;
  ASK("cooperative 2", cuLaunchKernelEx, &config, the_function, 0, 0);
  ASK("so far, attributes", cuCtxSynchronize, 0);
}

static char kernels_text[400000];
static void say_occupancy(const char *name, W function, int block, W shared) {
  int blocks = -7;
  char text[100];
  snprintf(text, sizeof text, "%s, %d threads, %lu bytes", name, block, shared);
  int got = DO(cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, function, block, shared);
  if (got) say(text, "%s", answers_name(got));
  else say(text, "%d", blocks);
}
static void say_potential(const char *name, W function, W shared, int limit) {
  int grid = -7, block = -7;
  char text[100];
  snprintf(text, sizeof text, "%s, best with %lu bytes, at most %d", name, shared, limit);
  int got = DO(cuOccupancyMaxPotentialBlockSize, &grid, &block, function, 0, shared, limit);
  if (got) say(text, "%s", answers_name(got));
  else say(text, "%d blocks of %d", grid, block);
}
static size_t eighth(int block) { return (size_t)block * 40; }

static void occupancy(void) {
  static const int blocks[] = {-1,  0,   1,   31,  32,  33,  64,  96,   128,  192,
                               256, 320, 384, 512, 640, 768, 896, 1024, 1025, 2048};
  static const W shared[] = {0,     1,     1000,  1024,  1025,  4096,  8192,   10000,  16384,
                             24576, 32768, 40000, 49152, 49153, 65536, 100000, 232448, 232449};
  char text[100];
  answers_context();
  W m = answers_module(module_text), f = answers_function(m, "nothing"), g = answers_function(m, "sharing"),
    h = answers_function(m, "bounded");
  for (int b = 0; b < 20; b++)
    for (int s = 0; s < 18; s++)
      if (b % 3 == 1 || s % 4 == 0) say_occupancy("nothing", f, blocks[b], shared[s]);
  for (int b = 2; b < 18; b += 2)
    for (int s = 0; s < 18; s += 2) say_occupancy("sharing", g, blocks[b], shared[s]);
  for (int b = 2; b < 20; b += 2) say_occupancy("bounded", h, blocks[b], 0);
  DO(cuFuncSetAttribute, f, 8, 232448);
  for (int b = 2; b < 18; b += 3)
    for (int s = 8; s < 18; s++) {
      snprintf(text, sizeof text, "opted in");
      say_occupancy(text, f, blocks[b], shared[s]);
    }
  for (int c = 0; c <= 100; c += 20) {
    DO(cuFuncSetAttribute, f, 9, c);
    snprintf(text, sizeof text, "carve-out %d", c);
    say_occupancy(text, f, 128, 0);
    say_occupancy(text, f, 128, 8192);
    say_occupancy(text, f, 128, 49152);
    say_occupancy(text, f, 128, 100000);
  }
  DO(cuFuncSetAttribute, f, 9, -1);
  for (int l = 0; l < 6; l++) {
    static const int limits[] = {0, 100, 128, 500, 1024, 5000};
    for (int s = 0; s < 18; s += 3) say_potential("nothing", f, shared[s], limits[l]);
    say_potential("sharing", g, 0, limits[l]);
    say_potential("bounded", h, 0, limits[l]);
  }
  int grid = 0, block = 0;
  ASK("by a function", cuOccupancyMaxPotentialBlockSize, &grid, &block, f, eighth, 0, 0);
  say("by a function", "%d blocks of %d", grid, block);
  ASK("null", cuOccupancyMaxPotentialBlockSize, 0, &block, f, 0, 0, 0);
  ASK("null function", cuOccupancyMaxPotentialBlockSize, &grid, &block, 0, 0, 0, 0);
  ASK("flags 1", cuOccupancyMaxPotentialBlockSizeWithFlags, &grid, &block, f, 0, 0, 0, 1);
  ASK("flags 2", cuOccupancyMaxPotentialBlockSizeWithFlags, &grid, &block, f, 0, 0, 0, 2);
  ASK("null", cuOccupancyMaxActiveBlocksPerMultiprocessor, 0, f, 32, 0);
  ASK("null function", cuOccupancyMaxActiveBlocksPerMultiprocessor, &grid, 0, 32, 0);
  ASK("flags 2", cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, &grid, f, 32, 0, 2);
  for (int n = 0; n < 6; n++) {
    static const int counts[] = {0, 1, 2, 7, 32, 33};
    for (int b = 0; b < 4; b++) {
      static const int sizes[] = {32, 128, 1000, 2000};
      W bytes = 7;
      snprintf(text, sizeof text, "%d blocks of %d", counts[n], sizes[b]);
      int got = ASK(text, cuOccupancyAvailableDynamicSMemPerBlock, &bytes, f, counts[n], sizes[b]);
      if (!got) say(text, "%lu", bytes);
      got = DO(cuOccupancyAvailableDynamicSMemPerBlock, &bytes, g, counts[n], sizes[b]);
      snprintf(text, sizeof text, "sharing, %d blocks of %d", counts[n], sizes[b]);
      if (!got) say(text, "%lu", bytes);
    }
  }
  struct attribute {
    int id, pad, number[16];
  } attribute = {4, 0, {2, 1, 1}};
  struct {
    unsigned grid[3], block[3], shared;
    W stream, attributes;
    unsigned count;
  } config = {{132, 1, 1}, {128, 1, 1}, 0, 0, (W)&attribute, 1};
  for (int c = 1; c <= 32; c *= 2) {
    for (int s = 0; s < 3; s++) {
      static const unsigned bytes[] = {0, 40000, 200000};
      attribute.number[0] = c;
      config.grid[0] = (unsigned)c * 12;
      config.shared = bytes[s];
      int clusters = -7;
      snprintf(text, sizeof text, "clusters of %d, %u bytes", c, bytes[s]);
      int got = ASK(text, cuOccupancyMaxActiveClusters, &clusters, f, &config);
      if (!got) say(text, "%d", clusters);
    }
  }
  for (int s = 0; s < 3; s++) {
    static const unsigned bytes[] = {0, 40000, 200000};
    config.count = 0, config.shared = bytes[s];
    int size = -7;
    snprintf(text, sizeof text, "%u bytes", bytes[s]);
    int got = ASK(text, cuOccupancyMaxPotentialClusterSize, &size, f, &config);
    if (!got) say(text, "largest cluster %d", size);
  }
}

/* Kernels that keep N values for which registers are needed. */
static void registers(void) {
  static const int counts[] = {4,  10, 16,  20,  24,  28,  32,  40,  48,  56,  64,  72,
                               80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 280};
  char *to = kernels_text, name[40];
  to += sprintf(to, HEAD);
  for (int k = 0; k < 24; k++) {
    int n = counts[k];
    to += sprintf(
        to,
        ".visible .entry keep%d(.param .u64 at) {\n.reg .b64 %%d<3>; .reg .b32 %%r<%d>;\nld.param.u64 %%d1, [at];\n", n,
        n + 2);
    for (int i = 0; i < n; i++) to += sprintf(to, "ld.volatile.global.u32 %%r%d, [%%d1+%d];\n", i, i * 4);
    to += sprintf(to, "bar.sync 0;\n");
    for (int i = n; i-- > 0;) to += sprintf(to, "st.volatile.global.u32 [%%d1+%d], %%r%d;\n", i * 8, i);
    to += sprintf(to, "ret;\n}\n");
  }
  answers_context();
  W m = answers_module(kernels_text);
  for (int k = 0; k < 24; k++) {
    int value = 0;
    snprintf(name, sizeof name, "keep%d", counts[k]);
    W f = answers_function(m, name);
    DO(cuFuncGetAttribute, &value, 4, f);
    say(name, "%d registers", value);
    snprintf(name, sizeof name, "keep%d local", counts[k]);
    DO(cuFuncGetAttribute, &value, 3, f);
    say(name, "%d", value);
    snprintf(name, sizeof name, "keep%d threads", counts[k]);
    DO(cuFuncGetAttribute, &value, 0, f);
    say(name, "%d", value);
    snprintf(name, sizeof name, "keep%d", counts[k]);
    for (int b = 32; b <= 1024; b *= 2) say_occupancy(name, f, b, 0);
    say_occupancy(name, f, 96, 0);
    say_potential(name, f, 0, 0);
  }
}

const section sections_launches[] = {
    {"launches", launches}, {"occupancy", occupancy}, {"registers", registers}, {NULL, NULL}};
