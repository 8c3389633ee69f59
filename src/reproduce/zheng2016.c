/* SPDX-License-Identifier: Apache-2.0 */
/* The experiments of "Towards High Performance Paged Memory for GPUs" (Zheng, Nellans, Zulfiqar, Stephenson, Keckler,
 * HPCA 2016), on the machine of its Table 1: faults that block an SM (section 2.1), replayable far-faults (section
 * 3.2), prefetch (section 4).
 *
 * All times are whole runs over copy-then-execute, in which all memory that a program allocates is copied first: the
 * paper has all pages in the CPU's memory at the beginning (section 3.1), so that what a program does not copy itself,
 * results and scratch memory, has to cross the link under both. Zhang et al., who take over its machine and comparison,
 * say of copying that all data that the GPU needs move before the program begins (2019, section 5). The programs are of
 * the kinds of its suites (Rodinia, Parboil, and sparse algebra for the DoE codes), and so are their footprints (2.6 to
 * 144 MB, 43 on average). The paper calls its means averages and does not say which: both stand here.
 *
 * What a perfect overlap of copies and kernels gains is a share of the time, as Figure 2 breaks it down: the paper's
 * "as much as 49 %" is of programs in which both take equally long, and half is all that any program can save. */
#include "reproduce/repro_private.h"

static const repro_program programs[] = {
    {"backprop", "backprop", {"1000 3", "277760 1", "833328 1"}, {1, 15, 50}},
    {"bfs", "bfs", {"2000 8", "131072 8", "1048576 8"}, {1, 12, 100}},
    {"cfd", "cfd", {"40 30 3", "400 300 2", "1024 888 2"}, {1, 20, 200}},
    {"coulomb", "coulomb", {"130 50 20 3", "3162 3162 16 1", "5477 5477 16 1"}, {1, 15, 50}},
    {"gaussian", "gaussian", {"40", "576", "1024"}, {1, 80, 500}},
    {"histogram", "histogram", {"20000 8", "33554432 64", "33554432 64"}, {1, 20, 20}},
    {"hotspot", "hotspot", {"100 70 4", "1825 1825 4", "3162 3162 8"}, {1, 20, 120}},
    {"kmeans", "kmeans", {"1000 5 6 3", "65536 8 8 4", "1000000 8 8 4"}, {1, 5, 100}},
    {"lookup", "lookup", {"7 40 3000", "60 8192 32768", "60 8192 262144"}, {1, 50, 400}},
    {"lud", "lud", {"3", "52", "128"}, {1, 20, 300}},
    {"mriq", "mriq", {"1000 1100", "262144 256", "262144 2048"}, {1, 5, 30}},
    {"mummer", "stringmatch", {"3000 500 20", "100000 14000 25", "1500000 180000 25"}, {1, 30, 600}},
    {"nw", "nw", {"128 1", "2224 1", "3872 1"}, {1, 20, 60}},
    {"particles", "particles", {"3 2", "12 1", "20 1"}, {1, 20, 100}},
    {"pathfinder", "pathfinder", {"1000 50 7", "294000 100 20", "294000 100 20"}, {1, 15, 15}},
    {"sgemm", "sgemm", {"150 50 37", "1224 1224 512", "5120 5120 384"}, {1, 20, 400}},
    {"spmv", "spmv", {"1000 16 2", "327680 16 1", "1000000 16 1"}, {1, 20, 60}},
    {"srad", "srad", {"70 45 3", "1290 1290 2", "2236 2236 2"}, {1, 20, 60}},
    {"stencil", "stencil", {"40 21 9 3", "256 256 76 4", "512 512 57 4"}, {1, 20, 60}},
};

#define ZEROS "+first_touch_moves=0"

static const repro_setting settings[] = {
    {"copy", "copy", NULL},
    {"blocking 5 us", "demand+fault_us=5", NULL},
    {"blocking 10 us", "demand+fault_us=10", NULL},
    {"blocking 20 us", "demand", NULL},
    {"blocking 50 us", "demand+fault_us=50", NULL},
    {"replay 1", "replay+fault_mshrs=1", NULL},
    {"replay 2", "replay+fault_mshrs=2", NULL},
    {"replay 4", "replay+fault_mshrs=4", NULL},
    {"replay 16", "replay", NULL},
    {"replay 64", "replay+fault_mshrs=64", NULL},
    {"replay 1 merges count", "replay+fault_mshrs=1+fault_merge_mshrs=1", NULL},
    {"replay 4 merges count", "replay+fault_mshrs=4+fault_merge_mshrs=1", NULL},
    {"random", "random", NULL},
    {"sequential", "sequential", NULL},
    {"locality", "locality", NULL},
    {"oracle", "oracle", NULL},
    /* pages that were never written are zero-filled where they are touched */
    {"replay 16 zeros", "replay" ZEROS, NULL},
    {"random zeros", "random" ZEROS, NULL},
    {"sequential zeros", "sequential" ZEROS, NULL},
    {"locality zeros", "locality" ZEROS, NULL},
    {"oracle zeros", "oracle" ZEROS, NULL},
};

#define PREFETCHERS "random|sequential|locality"
#define PREFETCHERS_ZEROS "random zeros|sequential zeros|locality zeros"

/* A row for each of the two means. */
#define BOTH(name, paper, quantity, a, b)                                               \
  {name " (geometric mean)", paper, REPRO_GEOMETRIC, quantity, a, b, NULL, 0, false}, { \
    name " (arithmetic mean)", paper, REPRO_ARITHMETIC, quantity, a, b, NULL, 0, false  \
  }

static const repro_row rows[] = {
    /* section 3.1: what was run */
    {"footprint MB: smallest", 2.6, REPRO_LOWEST, repro_footprint, "copy", NULL, NULL, 0, false},
    {"footprint MB: average", 43, REPRO_ARITHMETIC, repro_footprint, "copy", NULL, NULL, 0, false},
    {"footprint MB: largest", 144, REPRO_HIGHEST, repro_footprint, "copy", NULL, NULL, 0, false},
    {"programs whose transfers take longer than their kernels", 0.5, REPRO_SHARE, repro_transfer_share, "copy", NULL,
     NULL, 0.5, false},
    /* section 2, Figures 2 and 3 */
    {"perfect overlap of copies and kernels: time saved (highest)", 0.49, REPRO_HIGHEST, repro_overlap_saved, "copy",
     NULL, NULL, 0, false},
    BOTH("blocking 5 us: time over copy", 2, repro_time_over_all_copied, "blocking 5 us", "copy"),
    BOTH("blocking 10 us: time over copy", REPRO_NONE, repro_time_over_all_copied, "blocking 10 us", "copy"),
    BOTH("blocking 20 us: time over copy", 6, repro_time_over_all_copied, "blocking 20 us", "copy"),
    {"blocking 20 us: time over copy (highest)", 15, REPRO_HIGHEST, repro_time_over_all_copied, "blocking 20 us",
     "copy", NULL, 0, false},
    BOTH("blocking 50 us: time over copy", REPRO_NONE, repro_time_over_all_copied, "blocking 50 us", "copy"),
    /* section 3.2, Figure 5 */
    BOTH("replay 1 fault per SM: time over copy", 3.6, repro_time_over_all_copied, "replay 1", "copy"),
    BOTH("replay 2 faults per SM: time over copy", REPRO_NONE, repro_time_over_all_copied, "replay 2", "copy"),
    BOTH("replay 4 faults per SM: time over copy", 2, repro_time_over_all_copied, "replay 4", "copy"),
    BOTH("replay 16 faults per SM: time over copy", 2, repro_time_over_all_copied, "replay 16", "copy"),
    BOTH("replay 64 faults per SM: time over copy", REPRO_NONE, repro_time_over_all_copied, "replay 64", "copy"),
    {"replay 16 over 1 fault per SM: time saved (arithmetic mean)", 0.45, REPRO_ARITHMETIC, repro_time_saved,
     "replay 16", "replay 1", NULL, 0, false},
    {"replay 16 over 4 faults per SM: time saved (arithmetic mean)", REPRO_NONE, REPRO_ARITHMETIC, repro_time_saved,
     "replay 16", "replay 4", NULL, 0, false},
    {"replay 64 over 16 faults per SM: time saved (arithmetic mean)", REPRO_NONE, REPRO_ARITHMETIC, repro_time_saved,
     "replay 64", "replay 16", NULL, 0, false},
    BOTH("replay 1 fault per SM, merged ones counted: time over copy", REPRO_NONE, repro_time_over_all_copied,
         "replay 1 merges count", "copy"),
    BOTH("replay 4 faults per SM, merged ones counted: time over copy", REPRO_NONE, repro_time_over_all_copied,
         "replay 4 merges count", "copy"),
    {"replay 16 faults per SM: programs at least 2x slower than copy", 0.5, REPRO_SHARE, repro_time_over_all_copied,
     "replay 16", "copy", NULL, 2, false},
    {"replay 16 faults per SM: time over copy (highest)", 7, REPRO_HIGHEST, repro_time_over_all_copied, "replay 16",
     "copy", NULL, 0, false},
    {"order: 16 faults per SM, 4, 1, blocking 20 us, 50 us: time over copy", 1, REPRO_ORDERED, repro_time_ratio,
     "replay 16|replay 4|replay 1|blocking 20 us|blocking 50 us", "copy", NULL, 0, false},
    /* section 4, Figure 6 and the contributions */
    {"order: oracle, locality, copy, 16 faults per SM: time", 1, REPRO_ORDERED, repro_time_ratio,
     "oracle|locality|copy|replay 16", "copy", NULL, 0, false},
    {"replay 16 faults per SM: link used (arithmetic mean)", 0.25, REPRO_ARITHMETIC, repro_link_used, "replay 16", NULL,
     NULL, 0, false},
    BOTH("prefetch random: time over copy", REPRO_NONE, repro_time_over_all_copied, "random", "copy"),
    BOTH("prefetch sequential: time over copy", REPRO_NONE, repro_time_over_all_copied, "sequential", "copy"),
    BOTH("prefetch locality: time over copy", REPRO_NONE, repro_time_over_all_copied, "locality", "copy"),
    BOTH("prefetch oracle: time over copy", REPRO_NONE, repro_time_over_all_copied, "oracle", "copy"),
    {"best prefetch: time over the oracle's (geometric mean)", 1.03, REPRO_GEOMETRIC, repro_time_ratio, PREFETCHERS,
     "oracle", NULL, 0, false},
    {"best prefetch: time over the oracle's (arithmetic mean)", 1.03, REPRO_ARITHMETIC, repro_time_ratio, PREFETCHERS,
     "oracle", NULL, 0, false},
    {"best prefetch: copy's time over its (geometric mean)", 1.12, REPRO_GEOMETRIC, repro_speed_over_all_copied,
     PREFETCHERS, "copy", NULL, 0, true},
    {"best prefetch: copy's time over its (arithmetic mean)", 1.12, REPRO_ARITHMETIC, repro_speed_over_all_copied,
     PREFETCHERS, "copy", NULL, 0, true},
    /* the other reading: what a program does not copy itself costs copying nothing, but paging its way over the link */
    BOTH("only what the program copies, blocking 5 us: time over copy", REPRO_NONE, repro_time_ratio, "blocking 5 us",
         "copy"),
    BOTH("only what the program copies, blocking 20 us: time over copy", REPRO_NONE, repro_time_ratio, "blocking 20 us",
         "copy"),
    BOTH("only what the program copies, replay 4 faults per SM: time over copy", REPRO_NONE, repro_time_ratio,
         "replay 4", "copy"),
    BOTH("only what the program copies, replay 16 faults per SM: time over copy", REPRO_NONE, repro_time_ratio,
         "replay 16", "copy"),
    {"only what the program copies, best prefetch: copy's time over its (geometric mean)", REPRO_NONE, REPRO_GEOMETRIC,
     repro_speedup, PREFETCHERS, "copy", NULL, 0, true},
    {"only what the program copies, best prefetch: copy's time over its (arithmetic mean)", REPRO_NONE,
     REPRO_ARITHMETIC, repro_speedup, PREFETCHERS, "copy", NULL, 0, true},
    /* not as section 3.1 has it: what no page of the host backs does not cross the link */
    BOTH("never written pages zero-filled, replay 16 faults per SM: time over copy", REPRO_NONE, repro_time_ratio,
         "replay 16 zeros", "copy"),
    {"never written pages zero-filled, replay 16 faults per SM: link used (arithmetic mean)", REPRO_NONE,
     REPRO_ARITHMETIC, repro_link_used, "replay 16 zeros", NULL, NULL, 0, false},
    {"never written pages zero-filled, best prefetch: time over the oracle's (geometric mean)", REPRO_NONE,
     REPRO_GEOMETRIC, repro_time_ratio, PREFETCHERS_ZEROS, "oracle zeros", NULL, 0, false},
    {"never written pages zero-filled, best prefetch: copy's time over its (geometric mean)", REPRO_NONE,
     REPRO_GEOMETRIC, repro_speedup, PREFETCHERS_ZEROS, "copy", NULL, 0, true},
    {"never written pages zero-filled, best prefetch: copy's time over its (arithmetic mean)", REPRO_NONE,
     REPRO_ARITHMETIC, repro_speedup, PREFETCHERS_ZEROS, "copy", NULL, 0, true},
};

static const repro_note notes[] = {
    {"footprint MB", true, "the programs' arguments are chosen so"},
    {"replay 1 fault per SM: ", true, "machines/gtx480.yaml: fault_merge_mshrs is chosen by it"},
    {NULL, false, NULL},
};

static const repro_panel panels[] = {
    {"Time of a whole run, over copying everything first",
     "times copy's time",
     "geometric mean",
     repro_time_over_all_copied,
     REPRO_GEOMETRIC,
     true,
     1,
     "as fast as copying first",
     {{"blocking, 20 us", "blocking 20 us", "copy"},
      {"blocking, 5 us", "blocking 5 us", "copy"},
      {"replayable, 1 per SM", "replay 1", "copy"},
      {"replayable, 16 per SM", "replay 16", "copy"},
      {"sequential prefetch", "sequential", "copy"},
      {"oracle", "oracle", "copy"}},
     6},
    {"Link to the GPU, share of the kernels' time, replayable far-faults",
     "share",
     "arithmetic mean",
     repro_link_used,
     REPRO_ARITHMETIC,
     false,
     REPRO_NONE,
     NULL,
     {{"16 faults per SM", "replay 16", NULL}},
     1},
};

const repro_paper repro_zheng2016 = {
    .name = "zheng2016",
    .title = "Zheng, Nellans, Zulfiqar, Stephenson, Keckler: Towards High Performance Paged Memory for GPUs, HPCA 2016",
    .machine = "gtx480",
    .programs = programs,
    .settings = settings,
    .rows = rows,
    .panels = panels,
    .notes = notes,
    .program_count = REPRO_COUNT(programs),
    .setting_count = REPRO_COUNT(settings),
    .row_count = REPRO_COUNT(rows),
    .panel_count = REPRO_COUNT(panels),
};
