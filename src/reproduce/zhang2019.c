/* SPDX-License-Identifier: Apache-2.0 */
/* The experiments of "Efficient and transparent CPU-GPU data communication through partial page migration" (Zhang,
 * Yang, Shen, Wang, Computer Engineering & Science 41(7), 2019; English version DOI 10.1007/s11704-018-7386-4): pages
 * of 2 MiB moved whole, by one valid range, by several.
 *
 * The machine is Zheng et al.'s with a core clock of 700 MHz. The paper states no fixed cost of a fault; its numbers
 * stand next to ours without one (0 us), and the same rows follow with 20 us. Slowdowns are times over
 * copy-then-execute. */
#include "reproduce/repro_private.h"

static const repro_program programs[] = {
    {"BFS", "bfs", {"2000 8", "65536 8", "1048576 8"}, {1, 15, 150}},
    {"CP", "coulomb", {"130 50 20 3", "1414 1414 16 1", "5477 5477 16 1"}, {1, 10, 80}},
    {"LIB", "libor", {"300 10", "32768 20", "491520 20"}, {1, 15, 200}},
    {"LPS", "laplace", {"40 21 9 3", "100 100 100 2", "247 247 247 2"}, {1, 10, 100}},
    {"MUM", "stringmatch", {"3000 500 20", "60000 8000 25", "1500000 180000 25"}, {1, 30, 600}},
    {"NN", "neural", {"5", "60", "600"}, {1, 15, 150}},
    {"WP", "weather", {"300 20 3", "11834 28 2", "177515 28 2"}, {1, 10, 150}},
};

/* Pages of 2 MiB: what moves is the whole page, or parts in units of 1 KiB. */
#define WHOLE "replay+unit=2M+evict=lru:2M+page=2M"
#define SINGLE "partial-single+page=2M"
#define SEVERAL "partial-multi+page=2M"
#define FREE "+fault_us=0"
/* The paper's TLB experiment: 256 entries that all SMs share. */
#define SHARED_TLB "+tlb_entries=0+l2_tlb_entries=256"

static const repro_setting settings[] = {
    {"copy 16", "copy", NULL},
    {"whole 16", WHOLE FREE, NULL},
    {"single 16", SINGLE FREE, NULL},
    {"several 16", SEVERAL FREE, NULL},
    {"whole 16 20us", WHOLE, NULL},
    {"single 16 20us", SINGLE, NULL},
    {"several 16 20us", SEVERAL, NULL},
    {"copy 32", "copy+link=32", NULL},
    {"whole 32", WHOLE FREE "+link=32", NULL},
    {"single 32", SINGLE FREE "+link=32", NULL},
    {"several 32", SEVERAL FREE "+link=32", NULL},
    {"whole 32 20us", WHOLE "+link=32", NULL},
    {"single 32 20us", SINGLE "+link=32", NULL},
    {"several 32 20us", SEVERAL "+link=32", NULL},
    {"shared TLB 2M", SEVERAL FREE SHARED_TLB, NULL},
    {"shared TLB 4K", "partial-multi+page=4K" FREE SHARED_TLB, NULL},
    {"unit 128", SEVERAL FREE "+unit=128", NULL},
    {"unit 256", SEVERAL FREE "+unit=256", NULL},
    {"unit 512", SEVERAL FREE "+unit=512", NULL},
    {"unit 2K", SEVERAL FREE "+unit=2K", NULL},
    {"unit 4K", SEVERAL FREE "+unit=4K", NULL},
    {"unit 8K", SEVERAL FREE "+unit=8K", NULL},
    {"unit 16K", SEVERAL FREE "+unit=16K", NULL},
    {"unit 32K", SEVERAL FREE "+unit=32K", NULL},
    {"unit 64K", SEVERAL FREE "+unit=64K", NULL},
};

#define BOTH(name, paper, quantity, a, b)                                               \
  {name " (geometric mean)", paper, REPRO_GEOMETRIC, quantity, a, b, NULL, 0, false}, { \
    name " (arithmetic mean)", paper, REPRO_ARITHMETIC, quantity, a, b, NULL, 0, false  \
  }
/* The rows of one link (G: "16") and fault time (at: "" or " 20us"); the paper's numbers. */
#define COMPARE(G, at, shown, whole, lost, single, several, whole_single, whole_several)                              \
  BOTH(G " GB/s" shown ": whole pages: time over copy", whole, repro_time_ratio, "whole " G at, "copy " G),           \
      {G " GB/s" shown ": whole pages: speed lost against copy (arithmetic mean)",                                    \
       lost,                                                                                                          \
       REPRO_ARITHMETIC,                                                                                              \
       repro_time_lost,                                                                                               \
       "whole " G at,                                                                                                 \
       "copy " G,                                                                                                     \
       NULL,                                                                                                          \
       0,                                                                                                             \
       false},                                                                                                        \
      BOTH(G " GB/s" shown ": single range: time over copy", single, repro_time_ratio, "single " G at, "copy " G),    \
      BOTH(G " GB/s" shown ": several ranges: copy's time over theirs", several, repro_speedup, "several " G at,      \
           "copy " G),                                                                                                \
      BOTH(G " GB/s" shown ": single range: whole pages' time over its", whole_single, repro_speedup, "single " G at, \
           "whole " G at),                                                                                            \
      BOTH(G " GB/s" shown ": several ranges: whole pages' time over theirs", whole_several, repro_speedup,           \
           "several " G at, "whole " G at),                                                                           \
      {G " GB/s" shown ": programs in which whole >= single",                                                         \
       REPRO_NONE,                                                                                                    \
       REPRO_SHARE,                                                                                                   \
       repro_time_ratio,                                                                                              \
       "whole " G at,                                                                                                 \
       "single " G at,                                                                                                \
       NULL,                                                                                                          \
       1,                                                                                                             \
       false},                                                                                                        \
      {G " GB/s" shown ": programs in which single >= several",                                                       \
       REPRO_NONE,                                                                                                    \
       REPRO_SHARE,                                                                                                   \
       repro_time_ratio,                                                                                              \
       "single " G at,                                                                                                \
       "several " G at,                                                                                               \
       NULL,                                                                                                          \
       1,                                                                                                             \
       false},                                                                                                        \
  {                                                                                                                   \
    G " GB/s" shown ": programs in which copy >= several", REPRO_NONE, REPRO_SHARE, repro_time_ratio, "copy " G,      \
        "several " G at, NULL, 1, false                                                                               \
  }

static const repro_row rows[] = {
    /* sections 5.2 and 5.3, Figures 4 and 6 */
    COMPARE("16", "", " 0 us", 72.72, 0.9862, 1.30, 1.29, 55.94, 93.81),
    COMPARE("32", "", " 0 us", REPRO_NONE, 0.9872, 1.10, 1.22, 70.64, 94.99),
    COMPARE("16", " 20us", " 20 us", REPRO_NONE, REPRO_NONE, REPRO_NONE, REPRO_NONE, REPRO_NONE, REPRO_NONE),
    COMPARE("32", " 20us", " 20 us", REPRO_NONE, REPRO_NONE, REPRO_NONE, REPRO_NONE, REPRO_NONE, REPRO_NONE),
    {"16 GB/s 0 us: LPS: single range: time over copy", 2, REPRO_ONE, repro_time_ratio, "single 16", "copy 16", "LPS",
     0, false},
    {"16 GB/s 0 us: LPS: several ranges: time over copy", 1.3, REPRO_ONE, repro_time_ratio, "several 16", "copy 16",
     "LPS", 0, false},
    /* what moves; section 1: under 5 % of a page is touched */
    {"programs in which bytes of whole >= single", REPRO_NONE, REPRO_SHARE, repro_bytes_ratio, "whole 16", "single 16",
     NULL, 1, false},
    {"programs in which bytes of single >= several", REPRO_NONE, REPRO_SHARE, repro_bytes_ratio, "single 16",
     "several 16", NULL, 1, false},
    {"bytes of single range over whole pages (arithmetic mean)", REPRO_NONE, REPRO_ARITHMETIC, repro_bytes_ratio,
     "single 16", "whole 16", NULL, 0, false},
    {"bytes of several ranges over whole pages (arithmetic mean)", REPRO_NONE, REPRO_ARITHMETIC, repro_bytes_ratio,
     "several 16", "whole 16", NULL, 0, false},
    {"bytes of several ranges by 128 B over whole pages (arithmetic mean)", 0.05, REPRO_ARITHMETIC, repro_bytes_ratio,
     "unit 128", "whole 16", NULL, 0, false},
    /* section 5.3 (2) */
    {"TLB miss rate with 2 MiB pages (arithmetic mean)", 0.6476, REPRO_ARITHMETIC, repro_tlb_misses, "shared TLB 2M",
     NULL, NULL, 0, false},
    {"TLB miss rate with 4 KiB pages (arithmetic mean)", 0.8972, REPRO_ARITHMETIC, repro_tlb_misses, "shared TLB 4K",
     NULL, NULL, 0, false},
    /* section 5.3 (1), Figure 5 */
    BOTH("unit of 128 B: time over copy", REPRO_NONE, repro_time_ratio, "unit 128", "copy 16"),
    BOTH("unit of 256 B: time over copy", REPRO_NONE, repro_time_ratio, "unit 256", "copy 16"),
    BOTH("unit of 512 B: time over copy", REPRO_NONE, repro_time_ratio, "unit 512", "copy 16"),
    BOTH("unit of 1 KiB: time over copy", REPRO_NONE, repro_time_ratio, "several 16", "copy 16"),
    BOTH("unit of 2 KiB: time over copy", REPRO_NONE, repro_time_ratio, "unit 2K", "copy 16"),
    BOTH("unit of 4 KiB: time over copy", REPRO_NONE, repro_time_ratio, "unit 4K", "copy 16"),
    BOTH("unit of 8 KiB: time over copy", REPRO_NONE, repro_time_ratio, "unit 8K", "copy 16"),
    BOTH("unit of 16 KiB: time over copy", REPRO_NONE, repro_time_ratio, "unit 16K", "copy 16"),
    BOTH("unit of 32 KiB: time over copy", REPRO_NONE, repro_time_ratio, "unit 32K", "copy 16"),
    BOTH("unit of 64 KiB: time over copy", REPRO_NONE, repro_time_ratio, "unit 64K", "copy 16"),
};

static const repro_panel panels[] = {
    {"Time over copying first, no fixed cost per fault",
     "times copy's time",
     "geometric mean",
     repro_time_ratio,
     REPRO_GEOMETRIC,
     true,
     1,
     "as fast as copying first",
     {{"whole, 16 GB/s", "whole 16", "copy 16"},
      {"single, 16", "single 16", "copy 16"},
      {"several, 16", "several 16", "copy 16"},
      {"whole, 32", "whole 32", "copy 32"},
      {"single, 32", "single 32", "copy 32"},
      {"several, 32", "several 32", "copy 32"}},
     6},
    {"The same with 20 us per fault",
     "times copy's time",
     "geometric mean",
     repro_time_ratio,
     REPRO_GEOMETRIC,
     true,
     1,
     "as fast as copying first",
     {{"whole, 16 GB/s", "whole 16 20us", "copy 16"},
      {"single, 16", "single 16 20us", "copy 16"},
      {"several, 16", "several 16 20us", "copy 16"},
      {"whole, 32", "whole 32 20us", "copy 32"},
      {"single, 32", "single 32 20us", "copy 32"},
      {"several, 32", "several 32 20us", "copy 32"}},
     6},
    {"Several ranges: time over copying first by unit, 16 GB/s",
     "times copy's time",
     "geometric mean",
     repro_time_ratio,
     REPRO_GEOMETRIC,
     true,
     1,
     "as fast as copying first",
     {{"128 B", "unit 128", "copy 16"},
      {"512 B", "unit 512", "copy 16"},
      {"1 KiB", "several 16", "copy 16"},
      {"2 KiB", "unit 2K", "copy 16"},
      {"4 KiB", "unit 4K", "copy 16"},
      {"16 KiB", "unit 16K", "copy 16"},
      {"64 KiB", "unit 64K", "copy 16"}},
     7},
    {"TLB miss rate, several ranges, 256 entries shared by all SMs",
     "share",
     "arithmetic mean",
     repro_tlb_misses,
     REPRO_ARITHMETIC,
     false,
     REPRO_NONE,
     NULL,
     {{"pages of 2 MiB", "shared TLB 2M", NULL}, {"pages of 4 KiB", "shared TLB 4K", NULL}},
     2},
};

const repro_paper repro_zhang2019 = {
    .name = "zhang2019",
    .title =
        "Zhang, Yang, Shen, Wang: Efficient and transparent CPU-GPU data communication through partial page migration, 2019",
    .machine = "gtx480",
    .set = "clock_mhz=700,dram_clock_mhz=1024",
    .programs = programs,
    .settings = settings,
    .rows = rows,
    .panels = panels,
    .program_count = REPRO_COUNT(programs),
    .setting_count = REPRO_COUNT(settings),
    .row_count = REPRO_COUNT(rows),
    .panel_count = REPRO_COUNT(panels),
};
