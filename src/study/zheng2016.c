/* SPDX-License-Identifier: Apache-2.0 */
/* The experiments of "Towards High Performance Paged Memory for GPUs" (Zheng, Nellans, Zulfiqar, Stephenson, Keckler, HPCA 2016),
 * on the machine of its Table 1: faults that block an SM (section 2.1), replayable far-faults (section 3.2), prefetch (section 4).
 *
 * All times are whole runs over copy-then-execute. The programs are of the kinds of its suites (Rodinia, Parboil, and sparse
 * algebra for the DoE codes); its footprints are 2.6 to 144 MB, which --size full comes near. It calls its means averages
 * and does not say which: both stand here. */
#include "study/repro_private.h"

static const repro_program programs[] = {
    {"backprop",   "backprop",   {"1000 3", "55552 1", "277760 1"},               {1, 6, 40}},
    {"bfs",        "bfs",        {"2000 8", "65536 8", "65536 8"},                {1, 8, 8}},
    {"cfd",        "cfd",        {"40 30 3", "256 236 2", "640 473 2"},           {1, 20, 100}},
    {"coulomb",    "coulomb",    {"130 50 20 3", "1414 1414 16 1", "3162 3162 16 1"}, {1, 5, 25}},
    {"histogram",  "histogram",  {"20000 8", "4194304 64", "33554432 64"},        {1, 6, 25}},
    {"hotspot",    "hotspot",    {"100 70 4", "816 816 4", "1825 1825 8"},        {1, 10, 70}},
    {"kmeans",     "kmeans",     {"1000 5 6 3", "65536 8 8 4", "500000 8 8 4"},   {1, 8, 60}},
    {"nw",         "nw",         {"128", "1024", "3168"},                         {1, 3, 30}},
    {"pathfinder", "pathfinder", {"1000 50 7", "49000 100 20", "294000 100 20"},  {1, 8, 50}},
    {"sgemm",      "sgemm",      {"150 50 37", "816 816 512", "2720 2720 480"},   {1, 20, 200}},
    {"spmv",       "spmv",       {"1000 16", "65536 16", "327680 16"},            {1, 8, 40}},
    {"srad",       "srad",       {"70 45 3", "576 576 2", "2236 2236 2"},         {1, 10, 120}},
    {"stencil",    "stencil",    {"40 21 9 3", "128 128 61 4", "512 512 57 4"},   {1, 10, 120}},
};

static const repro_setting settings[] = {
    {"copy", "copy"},
    {"blocking 20 us", "demand"},
    {"replay 16", "replay"},
    {"random", "random"},
    {"sequential", "sequential"},
    {"locality", "locality"},
    {"oracle", "oracle"},
};

#define PREFETCHERS "random|sequential|locality"

/* A row for each of the two means. */
#define BOTH(name, paper, quantity, a, b)                                             \
  {name " (geometric mean)", paper, REPRO_GEOMETRIC, quantity, a, b, NULL, 0, false}, \
      {name " (arithmetic mean)", paper, REPRO_ARITHMETIC, quantity, a, b, NULL, 0, false}

static const repro_row rows[] = {
    /* section 3.1: what was run */
    {"footprint MB: smallest", 2.6, REPRO_LOWEST, repro_footprint, "copy", NULL, NULL, 0, false},
    {"footprint MB: average", 43, REPRO_ARITHMETIC, repro_footprint, "copy", NULL, NULL, 0, false},
    {"footprint MB: largest", 144, REPRO_HIGHEST, repro_footprint, "copy", NULL, NULL, 0, false},
    {"programs whose transfers take longer than their kernels", 0.5, REPRO_SHARE, repro_transfer_share, "copy", NULL, NULL, 0.5, false},
    /* section 2, Figures 2 and 3 */
    {"perfect overlap of copies and kernels: largest gain", 0.49, REPRO_HIGHEST, repro_overlap_gain, "copy", NULL, NULL, 0, false},
    BOTH("blocking 20 us: time over copy", 6, repro_time_ratio, "blocking 20 us", "copy"),
    {"blocking 20 us: time over copy (highest)", 15, REPRO_HIGHEST, repro_time_ratio, "blocking 20 us", "copy", NULL, 0, false},
    /* section 3.2, Figure 5 */
    BOTH("replay 16 faults per SM: time over copy", 2, repro_time_ratio, "replay 16", "copy"),
    {"replay 16 faults per SM: programs at least 2x slower than copy", 0.5, REPRO_SHARE, repro_time_ratio, "replay 16", "copy", NULL, 2, false},
    {"replay 16 faults per SM: time over copy (highest)", 7, REPRO_HIGHEST, repro_time_ratio, "replay 16", "copy", NULL, 0, false},
    /* section 4, Figure 6 and the contributions */
    {"replay 16 faults per SM: link used (arithmetic mean)", 0.25, REPRO_ARITHMETIC, repro_link_used, "replay 16", NULL, NULL, 0, false},
    BOTH("prefetch random: time over copy", REPRO_NONE, repro_time_ratio, "random", "copy"),
    BOTH("prefetch sequential: time over copy", REPRO_NONE, repro_time_ratio, "sequential", "copy"),
    BOTH("prefetch locality: time over copy", REPRO_NONE, repro_time_ratio, "locality", "copy"),
    BOTH("prefetch oracle: time over copy", REPRO_NONE, repro_time_ratio, "oracle", "copy"),
    {"best prefetch: time over the oracle's (geometric mean)", 1.03, REPRO_GEOMETRIC, repro_time_ratio, PREFETCHERS, "oracle", NULL, 0, false},
    {"best prefetch: time over the oracle's (arithmetic mean)", 1.03, REPRO_ARITHMETIC, repro_time_ratio, PREFETCHERS, "oracle", NULL, 0, false},
    {"best prefetch: copy's time over its (geometric mean)", 1.12, REPRO_GEOMETRIC, repro_speedup, PREFETCHERS, "copy", NULL, 0, true},
    {"best prefetch: copy's time over its (arithmetic mean)", 1.12, REPRO_ARITHMETIC, repro_speedup, PREFETCHERS, "copy", NULL, 0, true},
};

static const repro_panel panels[] = {
    {"Time of a whole run, over copying everything first", "times copy's time", "geometric mean", repro_time_ratio, REPRO_GEOMETRIC, true, 1, "as fast as copying first",
     {{"blocking, 20 us", "blocking 20 us", "copy"},
      {"replayable, 16 per SM", "replay 16", "copy"},
      {"sequential prefetch", "sequential", "copy"},
      {"oracle", "oracle", "copy"}},
     4},
    {"Link to the GPU, share of the kernels' time, replayable far-faults", "share", "arithmetic mean", repro_link_used, REPRO_ARITHMETIC, false, REPRO_NONE, NULL,
     {{"16 faults per SM", "replay 16", NULL}}, 1},
};

const repro_paper repro_zheng2016 = {
    .name = "zheng2016",
    .title = "Zheng, Nellans, Zulfiqar, Stephenson, Keckler: Towards High Performance Paged Memory for GPUs, HPCA 2016",
    .machine = "gtx480",
    .programs = programs,
    .settings = settings,
    .rows = rows,
    .panels = panels,
    .program_count = REPRO_COUNT(programs),
    .setting_count = REPRO_COUNT(settings),
    .row_count = REPRO_COUNT(rows),
    .panel_count = REPRO_COUNT(panels),
};
