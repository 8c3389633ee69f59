/* SPDX-License-Identifier: Apache-2.0 */
/* The experiments of "Interplay between Hardware Prefetcher and Page Eviction Policy in CPU-GPU Unified Virtual Memory"
 * (Ganguly, Zhang, Yang, Melhem, ISCA 2019): prefetchers without and evictors with too small a memory, on a GTX 1080
 * Ti.
 *
 * The measure is the paper's "kernel and fault time". Its simulator adds 45 us for every far-fault, so the faults are
 * served one after another: here by batches of one fault. How replayable far-faults that any number at once are served
 * for would do stands next to it. The footprints are the paper's; per-program numbers are those of the output that its
 * authors publish with their simulator (UVMSmart). Memory that is too small holds 1 / 1.1 of the footprint, as
 * there. */
#include "reproduce/repro_private.h"

static const repro_program programs[] = {
    {"backprop", "backprop", {"1000 3", "192592 1", "833328 1"}, {1, 60, 250}},
    {"bfs", "bfs", {"2000 6 2", "262144 6 2", "1048576 6 2"}, {1, 60, 300}},
    {"fdtd", "fdtd", {"110 60 3", "1200 1200 5", "3162 3162 5"}, {1, 60, 400}},
    {"hotspot", "hotspot", {"100 70 4", "1024 1024 8", "3162 3162 8"}, {1, 40, 400}},
};

#define SERIAL "+faults=batch:1+fault_batch_us=45+fault_block_us=0"
#define SMALL "+gpu-memory=90.9%"

static const repro_setting settings[] = {
    {"demand", "replay" SERIAL, NULL},
    {"random", "replay+prefetch=anypage" SERIAL, NULL},
    {"SL", "sl" SERIAL, NULL},
    {"TBN", "tbn" SERIAL, NULL},
    {"demand at once", "replay", NULL},
    {"random at once", "replay+prefetch=anypage", NULL},
    {"SL at once", "sl", NULL},
    {"TBN at once", "tbn", NULL},
    {"LRU 4K", "tbn+prefetch=tbn:fit+evict=lru:4K" SERIAL SMALL, NULL},
    {"LRU 2M", "tbn+evict=lru:2M" SERIAL SMALL, NULL},
    {"TBNe", "tbn+evict=tree" SERIAL SMALL, NULL},
    {"LRU 4K at once", "tbn+prefetch=tbn:fit+evict=lru:4K" SMALL, NULL},
    {"LRU 2M at once", "tbn+evict=lru:2M" SMALL, NULL},
    {"TBNe at once", "tbn+evict=tree" SMALL, NULL},
};

#define ONE(name, paper, quantity, a, b, program) \
  { name, paper, REPRO_ONE, quantity, a, b, program, 0, false }
#define GEOMETRIC(name, paper, quantity, a, b) \
  { name " (geometric mean)", paper, REPRO_GEOMETRIC, quantity, a, b, NULL, 0, false }
#define ARITHMETIC(name, paper, quantity, a, b) \
  { name " (arithmetic mean)", paper, REPRO_ARITHMETIC, quantity, a, b, NULL, 0, false }
#define FAULTS(way, backprop, bfs, fdtd, hotspot)                                     \
  ONE(way ": far-faults of backprop", backprop, repro_faults, way, NULL, "backprop"), \
      ONE(way ": far-faults of bfs", bfs, repro_faults, way, NULL, "bfs"),            \
      ONE(way ": far-faults of fdtd", fdtd, repro_faults, way, NULL, "fdtd"),         \
      ONE(way ": far-faults of hotspot", hotspot, repro_faults, way, NULL, "hotspot")
#define SPEEDUPS(way, mean, backprop, bfs, fdtd, hotspot)                                                       \
  GEOMETRIC(way ": demand's time over its", mean, repro_kernel_speedup, way, "demand"),                         \
      ONE(way ": demand's time over its: backprop", backprop, repro_kernel_speedup, way, "demand", "backprop"), \
      ONE(way ": demand's time over its: bfs", bfs, repro_kernel_speedup, way, "demand", "bfs"),                \
      ONE(way ": demand's time over its: fdtd", fdtd, repro_kernel_speedup, way, "demand", "fdtd"),             \
      ONE(way ": demand's time over its: hotspot", hotspot, repro_kernel_speedup, way, "demand", "hotspot")

static const repro_row rows[] = {
    FAULTS("demand", 6785, 2491, 4224, 3072),
    FAULTS("SL", 460, 162, 277, 192),
    FAULTS("TBN", 100, 53, 58, 36),
    SPEEDUPS("random", 1.4, 1.41, 1.42, 1.37, 1.41),
    SPEEDUPS("SL", 13.3, 13.3, 13.1, 13.2, 13.6),
    SPEEDUPS("TBN", 38.8, 43.3, 30.4, 40.6, 42.4),
    GEOMETRIC("random with faults served at once: demand's time over its", REPRO_NONE, repro_kernel_speedup,
              "random at once", "demand at once"),
    GEOMETRIC("SL with faults served at once: demand's time over its", REPRO_NONE, repro_kernel_speedup, "SL at once",
              "demand at once"),
    GEOMETRIC("TBN with faults served at once: demand's time over its", REPRO_NONE, repro_kernel_speedup, "TBN at once",
              "demand at once"),
    ARITHMETIC("110 % of memory: TBNe and TBNp over LRU 4K: time saved", 0.93, repro_kernel_saved, "TBNe", "LRU 4K"),
    GEOMETRIC("110 % of memory: LRU 4K's time over TBNe and TBNp's", REPRO_NONE, repro_kernel_speedup, "TBNe",
              "LRU 4K"),
    ONE("110 % of memory: LRU 4K's time over TBNe and TBNp's: backprop", 2.55, repro_kernel_speedup, "TBNe", "LRU 4K",
        "backprop"),
    ONE("110 % of memory: LRU 4K's time over TBNe and TBNp's: bfs", 21.6, repro_kernel_speedup, "TBNe", "LRU 4K",
        "bfs"),
    ONE("110 % of memory: LRU 4K's time over TBNe and TBNp's: fdtd", 15.4, repro_kernel_speedup, "TBNe", "LRU 4K",
        "fdtd"),
    ONE("110 % of memory: LRU 4K's time over TBNe and TBNp's: hotspot", REPRO_NONE, repro_kernel_speedup, "TBNe",
        "LRU 4K", "hotspot"),
    GEOMETRIC("110 % of memory: LRU 2M's time over TBNe and TBNp's", 1.185, repro_kernel_speedup, "TBNe", "LRU 2M"),
    ONE("110 % of memory: LRU 2M's time over TBNe and TBNp's: backprop", 0.993, repro_kernel_speedup, "TBNe", "LRU 2M",
        "backprop"),
    ONE("110 % of memory: LRU 2M's time over TBNe and TBNp's: bfs", 1.09, repro_kernel_speedup, "TBNe", "LRU 2M",
        "bfs"),
    ONE("110 % of memory: LRU 2M's time over TBNe and TBNp's: fdtd", 1.16, repro_kernel_speedup, "TBNe", "LRU 2M",
        "fdtd"),
    ONE("110 % of memory: LRU 2M's time over TBNe and TBNp's: hotspot", 1.03, repro_kernel_speedup, "TBNe", "LRU 2M",
        "hotspot"),
    GEOMETRIC("110 % of memory with faults served at once: LRU 4K's time over TBNe and TBNp's", REPRO_NONE,
              repro_kernel_speedup, "TBNe at once", "LRU 4K at once"),
    GEOMETRIC("110 % of memory with faults served at once: LRU 2M's time over TBNe and TBNp's", REPRO_NONE,
              repro_kernel_speedup, "TBNe at once", "LRU 2M at once"),
};

static const repro_panel panels[] = {
    {"Kernel and fault time of demand paging over that with a prefetcher",
     "times as fast as demand paging",
     "geometric mean",
     repro_kernel_speedup,
     REPRO_GEOMETRIC,
     true,
     1,
     "as fast as demand paging",
     {{"random", "random", "demand"}, {"SL", "SL", "demand"}, {"TBN", "TBN", "demand"}},
     3},
    {"Far-faults",
     "far-faults",
     NULL,
     repro_faults,
     REPRO_ARITHMETIC,
     true,
     REPRO_NONE,
     NULL,
     {{"demand", "demand", NULL}, {"SL", "SL", NULL}, {"TBN", "TBN", NULL}},
     3},
    {"Memory for 1 / 1.1 of the footprint: time with an LRU over that with TBNe and TBNp",
     "times as fast",
     "geometric mean",
     repro_kernel_speedup,
     REPRO_GEOMETRIC,
     true,
     1,
     "as fast",
     {{"over LRU 4K, prefetch until memory is full", "TBNe", "LRU 4K"}, {"over LRU 2M with TBNp", "TBNe", "LRU 2M"}},
     2},
};

const repro_paper repro_ganguly2019 = {
    .name = "ganguly2019",
    .title =
        "Ganguly, Zhang, Yang, Melhem: Interplay between Hardware Prefetcher and Page Eviction Policy in CPU-GPU UVM, ISCA 2019",
    .machine = "gtx1080ti",
    .programs = programs,
    .settings = settings,
    .rows = rows,
    .panels = panels,
    .program_count = REPRO_COUNT(programs),
    .setting_count = REPRO_COUNT(settings),
    .row_count = REPRO_COUNT(rows),
    .panel_count = REPRO_COUNT(panels),
};
