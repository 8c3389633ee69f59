/* SPDX-License-Identifier: Apache-2.0 */
/* The experiments of "Fractional GPUs: Software-based Compute and Memory Bandwidth Reservation for GPUs" (Jain, Baek,
 * Wang, Rajkumar, RTAS 2019): a GPU in equal partitions, a program in the first, another one again and again in all
 * others, and what that does to the first one's kernel times. CP: SMs of one's own; CMP: memory modules of one's own,
 * too; MPS: a share of the threads.
 *
 * Before that, figure 8: a thread that follows a chain of loads which all lie in one set and one bank, in parallel
 * with n - 1 others that do the same in the same or in other places. Its "programs" are the numbers of threads.
 *
 * In full size the programs have the data of those that the authors published (docs/results), but for SN, which sorts
 * keys without values, and MM, whose square matrices have as many multiplications. What is one launch is made several
 * times, to be a mean as theirs; in normal size on the GTX 1080 only ("MMx16"), as the V100's cells take minutes each.
 *
 * A time is normalised by (number of partitions) x (time alone on the whole GPU). The variation of a program is the
 * longest of its times with neighbours over its time alone in its partition, less one, in percent. Numbers of figure 8
 * are read off its plot. */
#include <string.h>

#include "reproduce/repro_private.h"

#define CHAIN(n)                                  \
  {                                               \
    "n=" #n, NULL, {#n, #n, #n}, { 0.05, 0.3, 5 } \
  }
#define CHAINS(tens)                                                                                              \
  CHAIN(tens##0), CHAIN(tens##1), CHAIN(tens##2), CHAIN(tens##3), CHAIN(tens##4), CHAIN(tens##5), CHAIN(tens##6), \
      CHAIN(tens##7), CHAIN(tens##8), CHAIN(tens##9)

static const repro_program programs[] = {
    {"MM", "matmul", {"80 2", "256 1", "400 16"}, {1, 8, 800}},
    {"SN", "sort", {"12 1", "16 1", "20 1"}, {1, 8, 700}},
    {"VA", "vectoradd", {"20000 2", "1048576 1", "8388608 4"}, {1, 30, 500}},
    {"SP", "scalarproduct", {"20 1500 2", "256 4096 1", "256 4096 16"}, {1, 30, 200}},
    {"FWT", "walsh", {"13 1", "21 0", "23 1"}, {1, 60, 1800}}, /* 21 0: one transform */
    {"CFD", "cfd", {"20 16 1", "128 128 1", "484 480 1"}, {1, 8, 600}},
    {"AlexNet", "alexnet", {"67 16 1", "227 8 8", "227 1 8"}, {1, 60, 400}},
    CHAIN(1),
    CHAIN(2),
    CHAIN(3),
    CHAIN(4),
    CHAIN(5),
    CHAIN(6),
    CHAIN(7),
    CHAIN(8),
    CHAIN(9),
    CHAINS(1),
    CHAINS(2),
    CHAINS(3),
    CHAINS(4),
    CHAIN(50),
    /* what is measured on the GTX 1080: several launches each, as the paper's are means of many; FWT's launches already
     * have all its phases */
    {"MMx16", "matmul", {"80 2", "256 16", "400 16"}, {1, 60, 800}},
    {"SNx3", "sort", {"12 1", "16 3", "20 3"}, {1, 15, 2000}},
    {"VAx10", "vectoradd", {"20000 2", "1048576 10", "8388608 4"}, {1, 120, 500}},
    {"SPx10", "scalarproduct", {"20 1500 2", "256 4096 10", "256 4096 16"}, {1, 60, 200}},
    {"CFDx4", "cfd", {"20 16 1", "128 128 4", "484 480 1"}, {1, 15, 600}},
};

/* X(key, machine, isolation, partitions, neighbour): one simulation. "chain" and the place of the others: figure 8. */
#define WITH_EACH(X, way, machine, isolation, partitions) \
  X(way " none", machine, isolation, partitions, NULL)    \
  X(way " MM", machine, isolation, partitions, "MM")      \
  X(way " FWT", machine, isolation, partitions, "FWT")    \
  X(way " VA", machine, isolation, partitions, "VA")
#define SETTINGS(X)                                        \
  X("1080 alone", "gtx1080", SHARE_SM, 1, NULL)            \
  WITH_EACH(X, "1080 CP", "gtx1080", SHARE_SM, 2)          \
  WITH_EACH(X, "1080 CMP", "gtx1080", SHARE_SM_MEMORY, 2)  \
  X("IC alone", "gtx1080", SHARE_SM, 1, NULL)              \
  WITH_EACH(X, "IC CP", "gtx1080", SHARE_SM, 2)            \
  X("IC CP IC", "gtx1080", SHARE_SM, 2, "AlexNet")         \
  WITH_EACH(X, "IC CMP", "gtx1080", SHARE_SM_MEMORY, 2)    \
  X("IC CMP IC", "gtx1080", SHARE_SM_MEMORY, 2, "AlexNet") \
  X("SCSB", "gtx1080", SHARE_SM, 2, "chain")               \
  X("DCSB", "gtx1080", SHARE_SM, 2, "chain")               \
  X("SCDB", "gtx1080", SHARE_SM, 2, "chain")               \
  X("DCDB", "gtx1080", SHARE_SM, 2, "chain")               \
  X("DM", "gtx1080", SHARE_SM, 2, "chain")                 \
  X("V100 alone", "v100", SHARE_SM, 1, NULL)               \
  WITH_EACH(X, "V100 MPS", "v100", SHARE_MPS, 2)           \
  WITH_EACH(X, "V100 CP", "v100", SHARE_SM, 2)             \
  WITH_EACH(X, "V100 CMP", "v100", SHARE_SM_MEMORY, 2)     \
  WITH_EACH(X, "V100/4 MPS", "v100", SHARE_MPS, 4)         \
  WITH_EACH(X, "V100/4 CP", "v100", SHARE_SM, 4)           \
  WITH_EACH(X, "V100/4 CMP", "v100", SHARE_SM_MEMORY, 4)

#define AS_SETTING(key, machine, isolation, partitions, neighbour) {key, "copy", machine},
/* AlexNet's (IC) whole time is measured, from an image's copy to the GPU to that of its classes back: its authors'
 * clock runs around each classification, after others to warm up (their classification.cpp) */
#define AS_SHARE(key, machine, isolation, partitions, neighbour) \
  {isolation, partitions, neighbour, (key)[0] != 'I', (isolation) >= SHARE_SM && (partitions) > 1, (key)[0] == 'I'},
static const repro_setting settings[] = {SETTINGS(AS_SETTING)};
static const repro_share shares[] = {SETTINGS(AS_SHARE)};

/* Figure 8's settings are for its chains, AlexNet's for AlexNet, the others for the programs of table 1: those with
 * several launches for the GTX 1080, those with one for the V100, FWT for both. */
static bool applies(uint32_t program, uint32_t setting) {
  const repro_program *p = &programs[program];
  bool of_chains = shares[setting].neighbour && !strcmp(shares[setting].neighbour, "chain"),
       of_alexnet = !strncmp(settings[setting].key, "IC ", 3), several = strchr(p->label, 'x') != NULL;
  if (!p->workload) return of_chains;
  if (of_chains || of_alexnet || !strcmp(p->workload, "alexnet")) return of_alexnet && !strcmp(p->workload, "alexnet");
  return !strcmp(p->label, "FWT") || several == !strcmp(settings[setting].machine, "gtx1080");
}

/* ---- quantities ---- */

static double variation(const repro_measured *a, const repro_measured *b) {
  return 100 * (repro_kernel_time_ratio(a, b) - 1);
}
static double variation_of_all(const repro_measured *a, const repro_measured *b) {
  return 100 * (repro_time_ratio(a, b) - 1);
}
static double half_time(const repro_measured *a, const repro_measured *b) { return repro_kernel_time_ratio(a, b) / 2; }
static double quarter_time(const repro_measured *a, const repro_measured *b) {
  return repro_kernel_time_ratio(a, b) / 4;
}
static double half_of_all(const repro_measured *a, const repro_measured *b) { return repro_time_ratio(a, b) / 2; }

/* Core cycles from one load of the first chain to the next. */
static double cycles(const repro_measured *a, const repro_measured *b) {
  return a->counters.accesses ? (double)a->counters.kernel_ps / (double)a->counters.accesses * REPRO_GTX1080_MHZ * 1e-6
                              : REPRO_NONE;
}

/* The number of threads (blocks) before this one, if a takes a tenth longer than b here: the lowest is where the curve
 * bends. */
static double bent_after(const repro_measured *a, const repro_measured *b) {
  return repro_kernel_time_ratio(a, b) > 1.1 ? (double)a->counters.blocks - 1 : REPRO_NONE;
}

/* ---- the paper's numbers ---- */

#define EVERY(way) way " none+" way " MM+" way " FWT+" way " VA"
#define EVERY_WITH_ALEXNET(way) EVERY(way) "+" way " IC"
#define VARIATION(where, way, average, most)                                                                         \
  {where ": variation %, average", average, REPRO_ARITHMETIC, variation, EVERY(way), way " none", NULL, 0, false}, { \
    where ": variation %, highest", most, REPRO_HIGHEST, variation, EVERY(way), way " none", NULL, 0, false          \
  }
#define TIMES(way, name, program, alone, with)                                                                    \
  {way ", " name " beside none: normalised time",                                                                 \
   alone,                                                                                                         \
   REPRO_ONE,                                                                                                     \
   half_time,                                                                                                     \
   way " none",                                                                                                   \
   "1080 alone",                                                                                                  \
   program,                                                                                                       \
   0,                                                                                                             \
   false},                                                                                                        \
  {                                                                                                               \
    way ", " name " beside VA: normalised time", with, REPRO_ONE, half_time, way " VA", "1080 alone", program, 0, \
        false                                                                                                     \
  }
#define CYCLES(curve, n, value) \
  { curve ", n = " #n ": cycles", value, REPRO_ONE, cycles, curve, NULL, "n=" #n, 0, false }

static const repro_row rows[] = {
    CYCLES("DM", 1, 470),
    CYCLES("SCSB", 50, 4550),
    CYCLES("DCSB", 50, 4500),
    CYCLES("SCDB", 50, 3700),
    CYCLES("DCDB", 50, 3600),
    CYCLES("DM", 50, 470),
    {"SCSB over DM, n = 50", 10, REPRO_ONE, repro_kernel_time_ratio, "SCSB", "DM", "n=50", 0, false},
    {"DCDB: threads before it bends", 16, REPRO_LOWEST, bent_after, "DCDB", "DM", NULL, 0, false},
    {"SCDB: threads before it bends", REPRO_NONE, REPRO_LOWEST, bent_after, "SCDB", "DM", NULL, 0, false},
    VARIATION("GTX 1080, 2 partitions, CP", "1080 CP", 130.4, 226.7),
    VARIATION("GTX 1080, 2 partitions, CMP", "1080 CMP", 7.5, 24.6),
    VARIATION("V100, 2 partitions, MPS", "V100 MPS", 135.8, 273.3),
    VARIATION("V100, 2 partitions, CP", "V100 CP", 48.1, 127.7),
    VARIATION("V100, 2 partitions, CMP", "V100 CMP", 8.7, 18.3),
    VARIATION("V100, 4 partitions, MPS", "V100/4 MPS", 260.6, 510),
    VARIATION("V100, 4 partitions, CP", "V100/4 CP", 79, 106.8),
    VARIATION("V100, 4 partitions, CMP", "V100/4 CMP", 7.3, 12.3),
    {"GTX 1080, AlexNet, CP: variation %", 104.6, REPRO_ONE, variation_of_all, EVERY_WITH_ALEXNET("IC CP"),
     "IC CP none", "AlexNet", 0, false},
    {"GTX 1080, AlexNet, CMP: variation %", 19.5, REPRO_ONE, variation_of_all, EVERY_WITH_ALEXNET("IC CMP"),
     "IC CMP none", "AlexNet", 0, false},
    TIMES("1080 CP", "MM", "MMx16", 0.96, 1.88),
    TIMES("1080 CP", "SN", "SNx3", 0.64, 1.2),
    TIMES("1080 CP", "VA", "VAx10", 0.5, 0.96),
    TIMES("1080 CP", "SP", "SPx10", 0.52, 1.37),
    TIMES("1080 CP", "FWT", "FWT", 0.56, 1.22),
    TIMES("1080 CP", "CFD", "CFDx4", 0.84, 2.73),
    TIMES("1080 CMP", "MM", "MMx16", 0.99, 1.07),
    TIMES("1080 CMP", "SN", "SNx3", 0.97, 1.01),
    TIMES("1080 CMP", "VA", "VAx10", 0.88, 0.9),
    TIMES("1080 CMP", "SP", "SPx10", 0.75, 0.78),
    TIMES("1080 CMP", "FWT", "FWT", 0.98, 1),
    TIMES("1080 CMP", "CFD", "CFDx4", 0.96, 1.19),
};

#define FIGURE_8 "machines/gtx1080.yaml has figure 8's 470 and 92 cycles and 16 MSHRs"
static const repro_note notes[] = {{"DM, n", true, FIGURE_8}, {"SCSB", true, FIGURE_8}, {"DCSB", true, FIGURE_8},
                                   {"SCDB", true, FIGURE_8},  {"DCDB", true, FIGURE_8}, {NULL, false, NULL}};

#define FOUR(label, way, alone)                                                                                 \
  {label ", none", way " none", alone}, {label ", MM", way " MM", alone}, {label ", FWT", way " FWT", alone}, { \
    label ", VA", way " VA", alone                                                                              \
  }
#define TWO(label, way, alone) \
  {label ", none", way " none", alone}, { label ", VA", way " VA", alone }
#define WAYS(machine)                                                                                      \
  {"MPS", EVERY(machine " MPS"), machine " MPS none"}, {"CP", EVERY(machine " CP"), machine " CP none"}, { \
    "CMP", EVERY(machine " CMP"), machine " CMP none"                                                      \
  }

static const repro_panel panels[] = {
    {"Figure 8: a load of the first of n chains, GTX 1080",
     "core cycles",
     NULL,
     cycles,
     REPRO_ARITHMETIC,
     false,
     REPRO_NONE,
     NULL,
     {{"same set, same bank", "SCSB", NULL},
      {"other set, same bank", "DCSB", NULL},
      {"same set, other bank", "SCDB", NULL},
      {"other set, other bank", "DCDB", NULL},
      {"other module", "DM", NULL}},
     5},
    {"Variation, GTX 1080, 2 partitions",
     "percent",
     "average",
     variation,
     REPRO_ARITHMETIC,
     false,
     REPRO_NONE,
     NULL,
     {{"CP", EVERY("1080 CP"), "1080 CP none"}, {"CMP", EVERY("1080 CMP"), "1080 CMP none"}},
     2},
    {"Variation, V100, 2 partitions",
     "percent",
     "average",
     variation,
     REPRO_ARITHMETIC,
     false,
     REPRO_NONE,
     NULL,
     {WAYS("V100")},
     3},
    {"Variation, V100, 4 partitions",
     "percent",
     "average",
     variation,
     REPRO_ARITHMETIC,
     false,
     REPRO_NONE,
     NULL,
     {WAYS("V100/4")},
     3},
    {"Figure 9(a): kernel time beside others, GTX 1080",
     "of 2 x the time alone",
     NULL,
     half_time,
     REPRO_ARITHMETIC,
     false,
     1,
     "half the speed",
     {FOUR("CP", "1080 CP", "1080 alone"), FOUR("CMP", "1080 CMP", "1080 alone")},
     8},
    {"Figure 9(b): kernel time beside others, V100",
     "of 2 x the time alone",
     NULL,
     half_time,
     REPRO_ARITHMETIC,
     false,
     1,
     "half the speed",
     {TWO("MPS", "V100 MPS", "V100 alone"), TWO("CP", "V100 CP", "V100 alone"), TWO("CMP", "V100 CMP", "V100 alone")},
     6},
    {"Kernel time beside others, V100 in four partitions",
     "of 4 x the time alone",
     NULL,
     quarter_time,
     REPRO_ARITHMETIC,
     false,
     1,
     "a quarter of the speed",
     {TWO("MPS", "V100/4 MPS", "V100 alone"), TWO("CP", "V100/4 CP", "V100 alone"),
      TWO("CMP", "V100/4 CMP", "V100 alone")},
     6},
    {"Figure 10: AlexNet's time beside others, GTX 1080",
     "of 2 x the time alone",
     NULL,
     half_of_all,
     REPRO_ARITHMETIC,
     false,
     1,
     "half the speed",
     {TWO("CP", "IC CP", "IC alone"),
      {"CP, MM", "IC CP MM", "IC alone"},
      {"CP, AlexNet", "IC CP IC", "IC alone"},
      TWO("CMP", "IC CMP", "IC alone"),
      {"CMP, MM", "IC CMP MM", "IC alone"},
      {"CMP, AlexNet", "IC CMP IC", "IC alone"}},
     8},
};

const repro_paper repro_jain2019 = {
    .name = "jain2019",
    .title =
        "Jain et al.: Fractional GPUs: software-based compute and memory bandwidth reservation for GPUs, RTAS 2019",
    .machine = "gtx1080",
    .programs = programs,
    .settings = settings,
    .shares = shares,
    .applies = applies,
    .rows = rows,
    .panels = panels,
    .notes = notes,
    .program_count = REPRO_COUNT(programs),
    .setting_count = REPRO_COUNT(settings),
    .row_count = REPRO_COUNT(rows),
    .panel_count = REPRO_COUNT(panels),
};
