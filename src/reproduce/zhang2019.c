/* SPDX-License-Identifier: Apache-2.0 */
/* The experiments of "Efficient and transparent CPU-GPU data communication through partial page migration" (Zhang,
 * Yang, Shen, Wang, Computer Engineering & Science 41(7), 2019; English version DOI 10.1007/s11704-018-7386-4): pages
 * of 2 MiB moved whole, by one valid range, by several.
 *
 * The machine is Zheng et al.'s with a core clock of 700 MHz. The paper states no fixed cost of a fault; its numbers
 * stand next to ours without one (0 us), and the same rows follow with 20 us. Slowdowns are times over
 * copy-then-execute.
 *
 * Four groups of programs:
 *   (no name)  the kinds that the paper names; ours use nearly all of their data, where the paper's use under 5 % of a
 *              page, so the paper has no number for whole pages and one range of them. Several ranges move what is used
 *              and no more, however far apart it lies: for these the paper's number stands here, against copying as
 *              section 5 defines it: all data that the GPU needs move before the program begins. Pages are as large
 *              under both (the paper's experiments have pages of 2 MB). The number for 96 GB/s is in the English
 *              version's abstract alone
 *   sparse     under 5 % of their pages, in one to eight parts that lie far apart. How sparse is our choice, so what
 *              whole pages cost them shows nothing and does not count; SUMS, the tiles of 2 KB columns, is shown alone
 *   near       the same with what is used of a page close together, as the paper's two or three ranges a page with
 *              little lost by one hull want it. One rule made their sizes before they were run: 64 KiB of each of 128
 *              pages, in one cluster or in two that are as far apart as they are long
 *   PROBE      a table that nearly fills the 1536 MB of the paper's TLB experiment, for that alone */
#include <string.h>

#include "reproduce/repro_private.h"

static const repro_program programs[] = {
    {"BFS", "bfs", {"2000 8", "65536 8", "1048576 8"}, {1, 15, 150}},
    {"CP", "coulomb", {"130 50 20 3", "1414 1414 16 1", "5477 5477 16 1"}, {1, 10, 80}},
    {"LIB", "libor", {"300 10", "32768 20", "491520 20"}, {1, 15, 200}},
    {"LPS", "laplace", {"40 21 9 3", "100 100 100 2", "247 247 247 2"}, {1, 10, 100}},
    {"MUM", "stringmatch", {"3000 500 20", "60000 8000 25", "1500000 180000 25"}, {1, 30, 600}},
    {"NN", "neural", {"5", "60", "600"}, {1, 15, 150}},
    {"WP", "weather", {"300 20 3", "11834 28 2", "177515 28 2"}, {1, 10, 150}},
    /* 2 KB columns of rows 256 KiB apart; boxes of 16 short rows with their halo, two in a page; 28 KB of each page,
     * and a sum of each row: a sparse matrix with long rows */
    {"TILE", "tiles", {"33 16 1 64 16 0", "512 1024 1 256 1024 0", "512 4096 1 256 4096 0"}, {1, 3, 20}},
    {"BOX", "tiles", {"32 4 8 4 64 0", "128 16 128 4 256 0", "128 16 512 4 256 0"}, {1, 3, 20}},
    {"ROWS", "tiles", {"256 4 1 2048 4 1", "7168 128 1 2048 128 1", "7168 512 1 2048 512 1"}, {1, 3, 20}},
    {"SUMS", "tiles", {"33 16 1 64 16 1", "512 1024 1 256 1024 1", "512 4096 1 256 4096 1"}, {1, 3, 20}},
    /* two or three parts of each page, by one rule made before they were run: 2.5 bags of 16 KB of rows of a table; 2.5
     * rows of a sparse matrix, of 28 KB on average; two planes of LPS's box, which is a part of a grid of 512 x 512 x
     * 100 */
    {"GATHER", "gather", {"1000 50 9 4", "262144 256 320 16", "1048576 256 1280 16"}, {1, 3, 20}},
    {"CSR", "csr", {"50 300 7 500", "4681 7168 160 16384", "18724 7168 640 16384"}, {1, 3, 20}},
    {"HALO", "laplace", {"40 21 9 2 64 32", "100 100 100 2 512 512", "200 200 200 2 1024 1024"}, {1, 3, 20}},
    /* one cluster, two, two that are written as much as read */
    {"ONE", "tiles", {"64 1 8 64 32 1", "16384 1 128 64 32 1", "16384 1 512 64 32 1"}, {1, 3, 20}},
    {"TWO", "tiles", {"64 2 8 64 32 1", "8192 2 128 64 32 1", "8192 2 512 64 32 1"}, {1, 3, 20}},
    {"PAIR", "tiles", {"64 2 8 64 32 0", "8192 2 128 64 32 0", "8192 2 512 64 32 0"}, {1, 3, 20}},
    {"PROBE", "probes", {"16 256 4", "1440 4096 8", "1440 16384 8"}, {1, 3, 15}},
};
enum { FIRST_SPARSE = 7, FIRST_NEAR = 14, PROBE = 17 };

/* Pages of 2 MiB: what moves is the whole page, with all that lies in it, or parts in units of 1 KiB. */
#define WHOLE "replay+unit=2M+prefetch=window+evict=lru:2M+page=2M"
#define SINGLE "partial-single+page=2M"
#define SEVERAL "partial-multi+page=2M"
#define ALONE SEVERAL "+ranges=unlimited+gap=none" /* nothing but what was asked for, by units */
#define FREE "+fault_us=0"
/* The paper's TLB experiment: 256 entries that all SMs share. */
#define SHARED_TLB "+tlb_entries=0+l2_tlb_entries=256"
#define EVERY_UNIT(UNIT) \
  UNIT(128), UNIT(256), UNIT(512), UNIT(1K), UNIT(2K), UNIT(4K), UNIT(8K), UNIT(16K), UNIT(32K), UNIT(64K)
#define OF_UNIT(unit) \
  { "unit " #unit, ALONE FREE "+unit=" #unit, NULL }
#define SPARSE_UNIT(unit) \
  { "sparse unit " #unit, ALONE FREE "+unit=" #unit, NULL }
#define LIMITS(of)                                                                                                    \
  {of "ranges 1", SEVERAL FREE "+gap=none+ranges=1", NULL}, {of "ranges 2", SEVERAL FREE "+gap=none+ranges=2", NULL}, \
      {of "ranges 4", SEVERAL FREE "+gap=none+ranges=4", NULL}, {                                                     \
    of "ranges 8", SEVERAL FREE "+gap=none+ranges=8", NULL                                                            \
  }
#define WAYS(of, gbs, link)                                                                         \
  {of "copy " gbs, "copy" link, NULL}, {of "whole " gbs, WHOLE FREE link, NULL},                    \
      {of "single " gbs, SINGLE FREE link, NULL}, {of "several " gbs, SEVERAL FREE link, NULL},     \
      {of "whole " gbs " 20us", WHOLE link, NULL}, {of "single " gbs " 20us", SINGLE link, NULL}, { \
    of "several " gbs " 20us", SEVERAL link, NULL                                                   \
  }

static const repro_setting settings[] = {
    WAYS("", "16", ""),
    WAYS("", "32", "+link=32"),
    {"shared TLB 2M", SEVERAL FREE SHARED_TLB, NULL},
    {"shared TLB 4K", "partial-multi+page=4K" FREE SHARED_TLB, NULL},
    EVERY_UNIT(OF_UNIT),
    LIMITS(""),
    WAYS("sparse ", "16", ""),
    WAYS("sparse ", "32", "+link=32"),
    EVERY_UNIT(SPARSE_UNIT),
    LIMITS("sparse "),
    WAYS("near ", "16", ""),
    WAYS("near ", "32", "+link=32"),
    {"sparse shared TLB 2M", SEVERAL FREE SHARED_TLB, NULL},
    {"sparse shared TLB 4K", "partial-multi+page=4K" FREE SHARED_TLB, NULL},
    {"copy 96", "copy+link=96", NULL},
    {"several 96", SEVERAL FREE "+link=96", NULL},
    {"large copy 16", "copy+page=2M", NULL},
    {"large copy 32", "copy+page=2M+link=32", NULL},
    {"large copy 96", "copy+page=2M+link=96", NULL},
};

static bool applies(uint32_t program, uint32_t setting) {
  const char *key = settings[setting].key;
  bool sparse = !strncmp(key, "sparse", 6), near = !strncmp(key, "near", 4), tlb = !strncmp(key, "sparse shared", 13);
  if (program == PROBE) return tlb;
  if (program >= FIRST_NEAR) return near;
  if (program >= FIRST_SPARSE) return sparse && !tlb;
  return !sparse && !near;
}

#define BOTH(name, paper, quantity, a, b)                                               \
  {name " (geometric mean)", paper, REPRO_GEOMETRIC, quantity, a, b, NULL, 0, false}, { \
    name " (arithmetic mean)", paper, REPRO_ARITHMETIC, quantity, a, b, NULL, 0, false  \
  }
#define IN_ORDER(name, a, b) \
  { name, 1, REPRO_ORDERED, repro_time_ratio, a, b, NULL, 0, false }
/* The rows of one group (of: "sparse "), link (G: "16") and fault time (at: "" or " 20us"); the paper's numbers. */
#define COMPARE(of, G, at, shown, whole, lost, single, several, whole_single, whole_several)                           \
  BOTH(of G " GB/s" shown ": whole pages: time over copy", whole, repro_time_ratio, of "whole " G at, of "copy " G),   \
      {of G " GB/s" shown ": whole pages: speed lost against copy (arithmetic mean)",                                  \
       lost,                                                                                                           \
       REPRO_ARITHMETIC,                                                                                               \
       repro_time_lost,                                                                                                \
       of "whole " G at,                                                                                               \
       of "copy " G,                                                                                                   \
       NULL,                                                                                                           \
       0,                                                                                                              \
       false},                                                                                                         \
      BOTH(of G " GB/s" shown ": single range: time over copy", single, repro_time_ratio, of "single " G at,           \
           of "copy " G),                                                                                              \
      BOTH(of G " GB/s" shown ": several ranges: copy's time over theirs", several, repro_speedup, of "several " G at, \
           of "copy " G),                                                                                              \
      BOTH(of G " GB/s" shown ": single range: whole pages' time over its", whole_single, repro_speedup,               \
           of "single " G at, of "whole " G at),                                                                       \
      BOTH(of G " GB/s" shown ": several ranges: whole pages' time over theirs", whole_several, repro_speedup,         \
           of "several " G at, of "whole " G at),                                                                      \
      {of G " GB/s" shown ": programs in which whole >= single",                                                       \
       REPRO_NONE,                                                                                                     \
       REPRO_SHARE,                                                                                                    \
       repro_time_ratio,                                                                                               \
       of "whole " G at,                                                                                               \
       of "single " G at,                                                                                              \
       NULL,                                                                                                           \
       1,                                                                                                              \
       false},                                                                                                         \
      {of G " GB/s" shown ": programs in which single >= several",                                                     \
       REPRO_NONE,                                                                                                     \
       REPRO_SHARE,                                                                                                    \
       repro_time_ratio,                                                                                               \
       of "single " G at,                                                                                              \
       of "several " G at,                                                                                             \
       NULL,                                                                                                           \
       1,                                                                                                              \
       false},                                                                                                         \
  {                                                                                                                    \
    of G " GB/s" shown ": programs in which copy >= several", REPRO_NONE, REPRO_SHARE, repro_time_ratio, of "copy " G, \
        of "several " G at, NULL, 1, false                                                                             \
  }
#define PAPERS_16 72.72, 0.9862, 1.30, 1.29, 55.94, 93.81
#define PAPERS_32 REPRO_NONE, 0.9872, 1.10, 1.22, 70.64, 94.99
#define NO_PAPER REPRO_NONE, REPRO_NONE, REPRO_NONE, REPRO_NONE, REPRO_NONE, REPRO_NONE
/* COMPARE's arguments are counted before those are replaced. */
#define COMPARED(...) COMPARE(__VA_ARGS__)
#define UNIT_ROW(of, unit, a) \
  BOTH(of "unit of " unit ", no limit: time over copy", REPRO_NONE, repro_time_ratio, a, of "copy 16")
#define UNITS(of)                                                                                                    \
  UNIT_ROW(of, "128 B", of "unit 128"), UNIT_ROW(of, "256 B", of "unit 256"), UNIT_ROW(of, "512 B", of "unit 512"),  \
      UNIT_ROW(of, "1 KiB", of "unit 1K"), UNIT_ROW(of, "2 KiB", of "unit 2K"), UNIT_ROW(of, "4 KiB", of "unit 4K"), \
      UNIT_ROW(of, "8 KiB", of "unit 8K"), UNIT_ROW(of, "16 KiB", of "unit 16K"),                                    \
      UNIT_ROW(of, "32 KiB", of "unit 32K"), UNIT_ROW(of, "64 KiB", of "unit 64K")
#define LIMIT_ROW(of, n)                                                                                           \
  BOTH(of "at most " n " ranges of 1 KiB units: time over no limit", REPRO_NONE, repro_time_ratio, of "ranges " n, \
       of "unit 1K")
#define LIMIT_ROWS(of) LIMIT_ROW(of, "1"), LIMIT_ROW(of, "2"), LIMIT_ROW(of, "4"), LIMIT_ROW(of, "8")

/* Copying programs with pages as large as those of the ranges, and with the machine's. */
#define ALL_COPIED(G, several)                                                                                   \
  BOTH(G " GB/s 0 us, all data copied, pages of 2 MiB: several ranges: copy's time over theirs", several,        \
       repro_speed_over_all_copied, "several " G, "large copy " G),                                              \
      BOTH(G " GB/s 0 us, all data copied, pages of 4 KiB: several ranges: copy's time over theirs", REPRO_NONE, \
           repro_speed_over_all_copied, "several " G, "copy " G)

static const repro_row rows[] = {
    /* sections 5.2 and 5.3, Figures 4 and 6 */
    COMPARED("", "16", "", " 0 us", NO_PAPER),
    COMPARED("", "32", "", " 0 us", NO_PAPER),
    ALL_COPIED("16", 1.29),
    ALL_COPIED("32", 1.22),
    ALL_COPIED("96", 1.37),
    COMPARED("sparse ", "16", "", " 0 us", PAPERS_16),
    COMPARED("sparse ", "32", "", " 0 us", PAPERS_32),
    COMPARED("near ", "16", "", " 0 us", PAPERS_16),
    COMPARED("near ", "32", "", " 0 us", PAPERS_32),
    IN_ORDER("near order: several ranges, copy, single range, whole pages: time",
             "near several 16|near copy 16|near single 16|near whole 16", "near copy 16"),
    {"order: several ranges, copy, single range, whole pages: time", REPRO_NONE, REPRO_ORDERED, repro_time_ratio,
     "several 16|copy 16|single 16|whole 16", "copy 16", NULL, 0, false},
    IN_ORDER("sparse order: several ranges, copy, single range, whole pages: time",
             "sparse several 16|sparse copy 16|sparse single 16|sparse whole 16", "sparse copy 16"),
    COMPARED("", "16", " 20us", " 20 us", NO_PAPER),
    COMPARED("", "32", " 20us", " 20 us", NO_PAPER),
    COMPARED("sparse ", "16", " 20us", " 20 us", NO_PAPER),
    COMPARED("sparse ", "32", " 20us", " 20 us", NO_PAPER),
    COMPARED("near ", "16", " 20us", " 20 us", NO_PAPER),
    COMPARED("near ", "32", " 20us", " 20 us", NO_PAPER),
    /* the tiles of 2 KB columns by themselves */
    {"sparse 16 GB/s 0 us: SUMS: whole pages: time over copy", 72.72, REPRO_ONE, repro_time_ratio, "sparse whole 16",
     "sparse copy 16", "SUMS", 0, false},
    {"sparse 16 GB/s 0 us: SUMS: several ranges: copy's time over theirs", 1.29, REPRO_ONE, repro_speedup,
     "sparse several 16", "sparse copy 16", "SUMS", 0, false},
    /* LPS by itself, as the part of a grid; of the dense one the paper has no number */
    {"sparse 16 GB/s 0 us: HALO (LPS): single range: time over copy", 2, REPRO_ONE, repro_time_ratio,
     "sparse single 16", "sparse copy 16", "HALO", 0, false},
    {"sparse 16 GB/s 0 us: HALO (LPS): several ranges: time over copy", 1.3, REPRO_ONE, repro_time_ratio,
     "sparse several 16", "sparse copy 16", "HALO", 0, false},
    {"16 GB/s 0 us: LPS: single range: time over copy", REPRO_NONE, REPRO_ONE, repro_time_ratio, "single 16", "copy 16",
     "LPS", 0, false},
    {"16 GB/s 0 us: LPS: several ranges: time over copy", REPRO_NONE, REPRO_ONE, repro_time_ratio, "several 16",
     "copy 16", "LPS", 0, false},
    /* what moves; section 1: under 5 % of a page is touched */
    {"programs in which bytes of whole >= single", REPRO_NONE, REPRO_SHARE, repro_bytes_ratio, "whole 16", "single 16",
     NULL, 1, false},
    {"programs in which bytes of single >= several", REPRO_NONE, REPRO_SHARE, repro_bytes_ratio, "single 16",
     "several 16", NULL, 1, false},
    {"bytes of single range over whole pages (arithmetic mean)", REPRO_NONE, REPRO_ARITHMETIC, repro_bytes_ratio,
     "single 16", "whole 16", NULL, 0, false},
    {"bytes of several ranges over whole pages (arithmetic mean)", REPRO_NONE, REPRO_ARITHMETIC, repro_bytes_ratio,
     "several 16", "whole 16", NULL, 0, false},
    {"bytes of several ranges by 128 B over whole pages (arithmetic mean)", REPRO_NONE, REPRO_ARITHMETIC,
     repro_bytes_ratio, "unit 128", "whole 16", NULL, 0, false},
    {"sparse bytes of single range over whole pages (arithmetic mean)", REPRO_NONE, REPRO_ARITHMETIC, repro_bytes_ratio,
     "sparse single 16", "sparse whole 16", NULL, 0, false},
    {"sparse bytes of several ranges over whole pages (arithmetic mean)", REPRO_NONE, REPRO_ARITHMETIC,
     repro_bytes_ratio, "sparse several 16", "sparse whole 16", NULL, 0, false},
    {"sparse bytes of several ranges by 128 B over whole pages (arithmetic mean)", 0.05, REPRO_ARITHMETIC,
     repro_bytes_ratio, "sparse unit 128", "sparse whole 16", NULL, 0, false},
    /* section 5.3 (2) */
    {"TLB miss rate with 2 MiB pages (arithmetic mean)", REPRO_NONE, REPRO_ARITHMETIC, repro_tlb_misses,
     "shared TLB 2M", NULL, NULL, 0, false},
    {"TLB miss rate with 4 KiB pages (arithmetic mean)", REPRO_NONE, REPRO_ARITHMETIC, repro_tlb_misses,
     "shared TLB 4K", NULL, NULL, 0, false},
    {"PROBE: TLB miss rate with 2 MiB pages", 0.6476, REPRO_ONE, repro_tlb_misses, "sparse shared TLB 2M", NULL,
     "PROBE", 0, false},
    {"PROBE: TLB miss rate with 4 KiB pages", 0.8972, REPRO_ONE, repro_tlb_misses, "sparse shared TLB 4K", NULL,
     "PROBE", 0, false},
    {"order: TLB miss rate with 2 MiB pages below that with 4 KiB pages", 1, REPRO_ORDERED, repro_tlb_misses,
     "shared TLB 2M|shared TLB 4K", NULL, NULL, 0, false},
    /* section 5.3 (1), Figure 5: the unit alone, and then how many ranges are enough */
    UNITS(""),
    IN_ORDER("order: units of 1, 8, 16, 32, 64 KiB: time", "unit 1K|unit 8K|unit 16K|unit 32K|unit 64K", "copy 16"),
    UNITS("sparse "),
    IN_ORDER("sparse order: units of 1, 8, 16, 32, 64 KiB: time",
             "sparse unit 1K|sparse unit 8K|sparse unit 16K|sparse unit 32K|sparse unit 64K", "sparse copy 16"),
    LIMIT_ROWS(""),
    LIMIT_ROWS("sparse "),
};

static const repro_note notes[] = {
    {"sparse 16 GB/s 0 us: whole", true, "how sparse the programs are is our choice"},
    {"sparse 32 GB/s 0 us: whole", true, "how sparse the programs are is our choice"},
    {"sparse 16 GB/s 0 us: single range: whole", true, "how sparse the programs are is our choice"},
    {"sparse 32 GB/s 0 us: single range: whole", true, "how sparse the programs are is our choice"},
    {"sparse 16 GB/s 0 us: several ranges: whole", true, "how sparse the programs are is our choice"},
    {"sparse 32 GB/s 0 us: several ranges: whole", true, "how sparse the programs are is our choice"},
    {"near 16 GB/s 0 us: whole", true, "how sparse the programs are is our choice"},
    {"near 16 GB/s 0 us: single range: whole", true, "how sparse the programs are is our choice"},
    {"near 16 GB/s 0 us: several ranges: whole", true, "how sparse the programs are is our choice"},
    {"near 32 GB/s 0 us: whole", true, "how sparse the programs are is our choice"},
    {"near 32 GB/s 0 us: single range: whole", true, "how sparse the programs are is our choice"},
    {"near 32 GB/s 0 us: several ranges: whole", true, "how sparse the programs are is our choice"},
    {"sparse 16 GB/s 0 us: SUMS", true,
     "one program whose sparsity is our choice; the paper's number is a mean of ten"},
    {"sparse bytes", true, "how sparse the programs are is our choice"},
    {"PROBE", false, "1440 of the 1536 MB of memory; the paper does not say how much of them its programs use"},
    {NULL, false, NULL},
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
    {"Sparse programs: time over copying first, no fixed cost per fault",
     "times copy's time",
     "geometric mean",
     repro_time_ratio,
     REPRO_GEOMETRIC,
     true,
     1,
     "as fast as copying first",
     {{"whole, 16 GB/s", "sparse whole 16", "sparse copy 16"},
      {"single, 16", "sparse single 16", "sparse copy 16"},
      {"several, 16", "sparse several 16", "sparse copy 16"},
      {"whole, 32", "sparse whole 32", "sparse copy 32"},
      {"single, 32", "sparse single 32", "sparse copy 32"},
      {"several, 32", "sparse several 32", "sparse copy 32"}},
     6},
    {"Programs whose data are close together: time over copying first, no fixed cost per fault",
     "times copy's time",
     "geometric mean",
     repro_time_ratio,
     REPRO_GEOMETRIC,
     true,
     1,
     "as fast as copying first",
     {{"whole, 16 GB/s", "near whole 16", "near copy 16"},
      {"single, 16", "near single 16", "near copy 16"},
      {"several, 16", "near several 16", "near copy 16"},
      {"whole, 32", "near whole 32", "near copy 32"},
      {"single, 32", "near single 32", "near copy 32"},
      {"several, 32", "near several 32", "near copy 32"}},
     6},
    {"The unit alone, any number of ranges: time over copying first, 16 GB/s",
     "times copy's time",
     "geometric mean",
     repro_time_ratio,
     REPRO_GEOMETRIC,
     true,
     1,
     "as fast as copying first",
     {{"128 B", "unit 128", "copy 16"},
      {"1 KiB", "unit 1K", "copy 16"},
      {"4 KiB", "unit 4K", "copy 16"},
      {"16 KiB", "unit 16K", "copy 16"},
      {"64 KiB", "unit 64K", "copy 16"},
      {"sparse, 128 B", "sparse unit 128", "sparse copy 16"},
      {"sparse, 1 KiB", "sparse unit 1K", "sparse copy 16"},
      {"sparse, 4 KiB", "sparse unit 4K", "sparse copy 16"},
      {"sparse, 16 KiB", "sparse unit 16K", "sparse copy 16"},
      {"sparse, 64 KiB", "sparse unit 64K", "sparse copy 16"}},
     10},
    {"Then the limit of ranges, units of 1 KiB: time over no limit",
     "times that without a limit",
     "geometric mean",
     repro_time_ratio,
     REPRO_GEOMETRIC,
     true,
     1,
     "as fast as without a limit",
     {{"1", "ranges 1", "unit 1K"},
      {"2", "ranges 2", "unit 1K"},
      {"4", "ranges 4", "unit 1K"},
      {"8", "ranges 8", "unit 1K"},
      {"sparse, 1", "sparse ranges 1", "sparse unit 1K"},
      {"sparse, 2", "sparse ranges 2", "sparse unit 1K"},
      {"sparse, 4", "sparse ranges 4", "sparse unit 1K"},
      {"sparse, 8", "sparse ranges 8", "sparse unit 1K"}},
     8},
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
    .notes = notes,
    .applies = applies,
    .program_count = REPRO_COUNT(programs),
    .setting_count = REPRO_COUNT(settings),
    .row_count = REPRO_COUNT(rows),
    .panel_count = REPRO_COUNT(panels),
};
