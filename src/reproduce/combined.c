/* SPDX-License-Identifier: Apache-2.0 */
/* The ideas of the papers together, on the same programs: partial pages (Zhang et al. 2019), the tree prefetcher
 * (Ganguly et al. 2019), segments that launches declare (Wilt 2017), near-data processing (Hsieh et al. 2016), and SMs
 * and memory modules of one's own (Jain et al. 2019). No paper has such a table: all rows are ours alone.
 *
 * Everything is over replayable far-faults (Zheng et al. 2016) of the machine's page, 4 KiB or 64 KiB; the measure is
 * the time of the whole run.
 * No machine has all five: a GPU with memory stacks cannot be shared here, as the stacks belong to one program's
 * simulation. So there are two:
 *   tom      partial, tree, segments, offload, and their pairs; and without offloading once more with far-faults that
 *            cost nothing but their transfer, as Zhang et al. have them, and with memory for three quarters of the data
 *   gtx1080  partial, tree, segments, isolation: half of the GPU, with vector additions again and again on the other
 *            half under the same manager. Without isolation both run on all SMs, each with a half of the threads (MPS)
 *
 * Partial pages and segments cannot be together: what a launch declares is there before it begins, whole, so that no
 * far-fault is left to bring a part.
 *
 * Of a pair, "over the product" is its speed over the product of the two speeds apart: 1 means that each gives what it
 * gives alone. "Less the sum" is the same of the saved share of the time. */
#include "reproduce/repro_private.h"

static const repro_program programs[] = {
    {"SUMS", "tiles", {"33 16 1 64 16 1", "512 1024 1 256 1024 1", "512 4096 1 256 4096 1"}, {1, 5, 30}},
    {"ROWS", "tiles", {"256 4 1 2048 4 1", "7168 128 1 2048 128 1", "7168 512 1 2048 512 1"}, {1, 5, 30}},
    {"BFS", "bfs", {"2000 8 1", "65536 8 1", "524288 8 1"}, {1, 10, 60}},
    {"KM", "kmeans", {"3000 34 6 3 1", "32768 34 5 2 1", "131072 34 5 2 1"}, {1, 10, 60}},
    {"CFD", "cfd", {"40 30 1", "128 128 3", "512 256 3"}, {1, 10, 90}},
    {"LIB", "greeks", {"300 6", "8192 12", "32768 12"}, {1, 10, 60}},
    {"HS", "hotspot", {"100 70 4", "512 512 8", "1024 1024 8"}, {1, 10, 60}},
    {"FWT", "walsh", {"16 0", "19 0", "21 0"}, {1, 10, 60}},
    {"SP", "scalarproduct", {"20 1500 1", "128 16384 1", "1024 16384 1"}, {1, 10, 60}},
    {"VA", "vectoradd", {"10000 2", "1048576 1", "4194304 1"}, {1, 10, 60}},
};

#define PARTIAL "partial-multi"
#define PARTIAL_TREE PARTIAL "+prefetch=tbn"
#define SEGMENTS_TREE "segments+prefetch=tbn"
/* X(key, memory, machine, isolation, partitions, neighbour): all ways of paging under one condition */
#define EACH_WAY(X, of, also, ...)                     \
  X(of "base", "replay" also, __VA_ARGS__)             \
  X(of "partial", PARTIAL also, __VA_ARGS__)           \
  X(of "tree", "tbn" also, __VA_ARGS__)                \
  X(of "segments", "segments" also, __VA_ARGS__)       \
  X(of "partial tree", PARTIAL_TREE also, __VA_ARGS__) \
  X(of "tree segments", SEGMENTS_TREE also, __VA_ARGS__)
#define STAYS "+offload=none+map=baseline"
#define LITTLE STAYS "+gpu-memory=75%"
#define GOES "+offload=controlled+map=learned"
#define SETTINGS(X)                                                        \
  EACH_WAY(X, "", STAYS, "tom", SHARE_NONE, 0, NULL)                       \
  EACH_WAY(X, "offload ", GOES, "tom", SHARE_NONE, 0, NULL)                \
  EACH_WAY(X, "0us ", STAYS "+fault_us=0", "tom", SHARE_NONE, 0, NULL)     \
  X("75% base", "replay" LITTLE, "tom", SHARE_NONE, 0, NULL)               \
  X("75% tree", "tbn" LITTLE, "tom", SHARE_NONE, 0, NULL)                  \
  X("75% segments", "segments" LITTLE, "tom", SHARE_NONE, 0, NULL)         \
  X("75% tree segments", SEGMENTS_TREE LITTLE, "tom", SHARE_NONE, 0, NULL) \
  X("copy", "copy" STAYS, "tom", SHARE_NONE, 0, NULL)                      \
  X("offload copy", "copy" GOES, "tom", SHARE_NONE, 0, NULL)               \
  EACH_WAY(X, "shared ", "", "gtx1080", SHARE_MPS, 2, "VA")                \
  EACH_WAY(X, "isolated ", "", "gtx1080", SHARE_SM_MEMORY, 2, "VA")        \
  X("shared copy", "copy", "gtx1080", SHARE_MPS, 2, "VA")                  \
  X("isolated copy", "copy", "gtx1080", SHARE_SM_MEMORY, 2, "VA")

#define AS_SETTING(key, memory, machine, isolation, partitions, neighbour) {key, memory, machine},
#define AS_SHARE(key, memory, machine, isolation, partitions, neighbour) \
  {isolation, partitions, neighbour, false, false, false},
static const repro_setting settings[] = {SETTINGS(AS_SETTING)};
static const repro_share shares[] = {SETTINGS(AS_SHARE)};

/* Of the kernels, their waits for pages included; the copies that a map which is being learned holds up are the
 * program's (hsieh2016.c). */
static double kernel_speed(const repro_measured *a, const repro_measured *b) {
  double slow = (double)(b->counters.kernel_ps - b->stacks.stopped_ps),
         quick = (double)(a->counters.kernel_ps - a->stacks.stopped_ps);
  return quick > 0 ? slow / quick : REPRO_NONE;
}

/* What setting `a` saves of the time of `base`. */
#define SAVES(name, a, base)                                                                                        \
  {name ": time saved (arithmetic mean)", REPRO_NONE, REPRO_ARITHMETIC, repro_time_saved, a, base, NULL, 0, false}, \
      {name ": speed (geometric mean)", REPRO_NONE, REPRO_GEOMETRIC, repro_speedup, a, base, NULL, 0, false},       \
      {name ": speed (highest)", REPRO_NONE, REPRO_HIGHEST, repro_speedup, a, base, NULL, 0, false}, {              \
    name ": speed (lowest)", REPRO_NONE, REPRO_LOWEST, repro_speedup, a, base, NULL, 0, false                       \
  }
/* The same of a pair, and it next to its two. */
#define PAIR(name, both, one, other, base)                                                                            \
  SAVES(name, both, base),                                                                                            \
      {name ": speed over the product (geometric mean)",                                                              \
       REPRO_NONE,                                                                                                    \
       REPRO_GEOMETRIC,                                                                                               \
       repro_speedup,                                                                                                 \
       both "=" one "&" other,                                                                                        \
       base,                                                                                                          \
       NULL,                                                                                                          \
       0,                                                                                                             \
       false},                                                                                                        \
      {name ": programs in which speed is at least the product, within 1 %",                                          \
       REPRO_NONE,                                                                                                    \
       REPRO_SHARE,                                                                                                   \
       repro_speedup,                                                                                                 \
       both "=" one "&" other,                                                                                        \
       base,                                                                                                          \
       NULL,                                                                                                          \
       0.99,                                                                                                          \
       false},                                                                                                        \
      {name ": time saved less the sum (arithmetic mean)",                                                            \
       REPRO_NONE,                                                                                                    \
       REPRO_ARITHMETIC,                                                                                              \
       repro_time_saved,                                                                                              \
       both "=" one "&" other,                                                                                        \
       base,                                                                                                          \
       NULL,                                                                                                          \
       0,                                                                                                             \
       false},                                                                                                        \
  {                                                                                                                   \
    name ": programs in which time saved is at least the sum, within 1 %", REPRO_NONE, REPRO_SHARE, repro_time_saved, \
        both "=" one "&" other, base, NULL, -0.01, false                                                              \
  }
#define SINGLES(where, of)                                                                                   \
  SAVES(where "partial pages", of "partial", of "base"), SAVES(where "tree prefetch", of "tree", of "base"), \
      SAVES(where "segments", of "segments", of "base")
#define PAGING_PAIRS(where, of)                                                                         \
  PAIR(where "partial pages and tree prefetch", of "partial tree", of "partial", of "tree", of "base"), \
      PAIR(where "tree prefetch and segments", of "tree segments", of "tree", of "segments", of "base")
/* Paging of condition `of` with an idea that makes `of` of it, over base `from`. */
#define WITH(where, idea, of, from)                                                                           \
  SAVES(where idea, of "base", from "base"),                                                                  \
      PAIR(where "partial pages and " idea, of "partial", from "partial", of "base", from "base"),            \
      PAIR(where "tree prefetch and " idea, of "tree", from "tree", of "base", from "base"),                  \
      PAIR(where "segments and " idea, of "segments", from "segments", of "base", from "base"),               \
      PAIR(where "partial pages, tree prefetch and " idea, of "partial tree", from "partial tree", of "base", \
           from "base"),                                                                                      \
      PAIR(where "tree prefetch, segments and " idea, of "tree segments", from "tree segments", of "base",    \
           from "base")

#define KERNELS(name, a, base)                                                                                      \
  {name ": speed of kernels (geometric mean)", REPRO_NONE, REPRO_GEOMETRIC, kernel_speed, a, base, NULL, 0, false}, \
      {name ": speed of kernels (highest)", REPRO_NONE, REPRO_HIGHEST, kernel_speed, a, base, NULL, 0, false}, {    \
    name ": speed of kernels (lowest)", REPRO_NONE, REPRO_LOWEST, kernel_speed, a, base, NULL, 0, false             \
  }

static const repro_row rows[] = {
    SINGLES("", ""),
    PAGING_PAIRS("", ""),
    WITH("", "offloading", "offload ", ""),
    SINGLES("0 us per fault: ", "0us "),
    PAGING_PAIRS("0 us per fault: ", "0us "),
    SAVES("memory for 75 %: tree prefetch", "75% tree", "75% base"),
    SAVES("memory for 75 %: segments", "75% segments", "75% base"),
    PAIR("memory for 75 %: tree prefetch and segments", "75% tree segments", "75% tree", "75% segments", "75% base"),
    SINGLES("shared GPU: ", "shared "),
    PAGING_PAIRS("shared GPU: ", "shared "),
    WITH("shared GPU: ", "isolation", "isolated ", "shared "),
    KERNELS("offloading, all data copied first", "offload copy", "copy"),
    KERNELS("offloading, replayable far-faults", "offload base", "base"),
    KERNELS("offloading, segments", "offload segments", "segments"),
    KERNELS("shared GPU: isolation, all data copied first", "isolated copy", "shared copy"),
    KERNELS("shared GPU: isolation, replayable far-faults", "isolated base", "shared base"),
    KERNELS("shared GPU: isolation, segments", "isolated segments", "shared segments"),
};

#define SPEEDS(title, of)                                                                            \
  {                                                                                                  \
    title, "times replayable far-faults", "geometric mean", repro_speedup, REPRO_GEOMETRIC, true, 1, \
        "as fast as replayable far-faults alone",                                                    \
        {{"partial pages", of "partial", of "base"},                                                 \
         {"tree", of "tree", of "base"},                                                             \
         {"segments", of "segments", of "base"},                                                     \
         {"partial, tree", of "partial tree", of "base"},                                            \
         {"tree, segments", of "tree segments", of "base"}},                                         \
        5                                                                                            \
  }
#define SPEEDS_WITH(title, idea, of, from)                                                           \
  {                                                                                                  \
    title, "times replayable far-faults", "geometric mean", repro_speedup, REPRO_GEOMETRIC, true, 1, \
        "as fast as replayable far-faults alone",                                                    \
        {{idea, of "base", from "base"},                                                             \
         {"partial pages", of "partial", from "base"},                                               \
         {"tree", of "tree", from "base"},                                                           \
         {"segments", of "segments", from "base"},                                                   \
         {"partial, tree", of "partial tree", from "base"},                                          \
         {"tree, segments", of "tree segments", from "base"}},                                       \
        6                                                                                            \
  }
#define PRODUCTS(title, of, from)                                                                       \
  {                                                                                                     \
    title, "over the product of both apart", "geometric mean", repro_speedup, REPRO_GEOMETRIC, true, 1, \
        "each gives what it gives alone",                                                               \
        {{"partial pages", of "partial=" from "partial&" of "base", from "base"},                       \
         {"tree", of "tree=" from "tree&" of "base", from "base"},                                      \
         {"segments", of "segments=" from "segments&" of "base", from "base"},                          \
         {"partial, tree", of "partial tree=" from "partial tree&" of "base", from "base"},             \
         {"tree, segments", of "tree segments=" from "tree segments&" of "base", from "base"}},         \
        5                                                                                               \
  }
static const repro_panel panels[] = {
    SPEEDS("Speed over replayable far-faults, tom", ""),
    SPEEDS_WITH("The same with offloading", "offloading alone", "offload ", ""),
    PRODUCTS("Speed with offloading over the product", "offload ", ""),
    SPEEDS("Far-faults that cost nothing, tom", "0us "),
    {"Memory for 75 % of the data, tom",
     "times replayable far-faults",
     "geometric mean",
     repro_speedup,
     REPRO_GEOMETRIC,
     true,
     1,
     "as fast as replayable far-faults alone",
     {{"tree", "75% tree", "75% base"},
      {"segments", "75% segments", "75% base"},
      {"tree, segments", "75% tree segments", "75% base"}},
     3},
    SPEEDS("Beside vector additions on a shared GTX 1080", "shared "),
    SPEEDS_WITH("The same with SMs and memory modules of its own", "isolation alone", "isolated ", "shared "),
    PRODUCTS("Speed with isolation over the product", "isolated ", "shared "),
};

static const repro_quantity gains[] = {kernel_speed, NULL};

const repro_paper repro_combined = {
    .name = "combined",
    .title =
        "Combined: partial pages, tree prefetch, segments, near-data processing and isolation on the same programs",
    .machine = "tom",
    .programs = programs,
    .settings = settings,
    .shares = shares,
    .recorded = true,
    .rows = rows,
    .panels = panels,
    .gains = gains,
    .program_count = REPRO_COUNT(programs),
    .setting_count = REPRO_COUNT(settings),
    .row_count = REPRO_COUNT(rows),
    .panel_count = REPRO_COUNT(panels),
};
