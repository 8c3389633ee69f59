/* SPDX-License-Identifier: Apache-2.0 */
/* The experiments of "Transparent Offloading and Mapping (TOM): Enabling Programmer-Transparent Near-Data Processing in
 * GPU Systems" (Hsieh, Ebrahimi, Kim, Vijaykumar, Chatterjee, O'Connor, Mutlu, Keckler, ISCA 2016): code blocks that
 * run in memory stacks, and which stack has an address.
 *
 * Speed is over a GPU that offloads nothing, has the SMs that the stacks would have (68 instead of 64 and one in each)
 * and the baseline's map. Its time is that of the kernels, with the time of learning a map and without the program's
 * copies, which wait for it. The paper's numbers stand beside its own controller ("paper"); "ours" is the one that
 * docs/offload.md describes. Traffic is all that links between GPU and stacks and between stacks carry, energy that of
 * links, DRAM and SMs.
 *
 * The programs are of the paper's ten kinds. Each is recorded once; all settings simulate the recording. HW holds its
 * template in shared memory, as Rodinia's heartwall does, so that what compares it with the picture is no candidate;
 * templates of 16 x 16 in windows of 32 x 32 are the largest that it takes (Rodinia's: 51 x 51 in 81 x 81). */
#include "reproduce/repro_private.h"

static const repro_program programs[] = {
    {"BP", "backprop", {"1000 3", "262144 1", "1048576 1"}, {0.5, 20, 100}},
    {"BFS", "bfs", {"2000 8 1", "524288 8 1", "1048576 8 1"}, {0.5, 60, 150}},
    {"KM", "kmeans", {"1000 5 6 3 1", "131072 34 5 2 1", "262144 34 5 2 1"}, {0.5, 40, 150}},
    {"CFD", "cfd", {"40 30 1", "512 256 1", "1024 512 1"}, {0.5, 30, 150}},
    {"HW", "heartwall", {"20 2 96 70 6 3 1", "1024 2 1024 1024 16 8 1", "2048 3 2048 1024 16 8 1"}, {0.5, 60, 400}},
    {"LIB", "greeks", {"300 6", "32768 12", "65536 20"}, {0.5, 25, 150}},
    {"RAY", "raytrace", {"64 30 5 2", "1024 512 8 3", "2048 1024 8 3"}, {0.5, 25, 150}},
    {"FWT", "walsh", {"13 0", "21 0", "23 0"}, {0.5, 20, 200}},
    {"SP", "scalarproduct", {"20 8192 1", "1024 16384 1", "4096 16384 1"}, {0.5, 30, 100}},
    {"RD", "reduce", {"50000 16 1", "16777216 4096 1", "67108864 8192 1"}, {0.5, 30, 100}},
};

#define PAPER "copy+offload=paper+map="
#define OURS "copy+offload=controlled+map="
#define FOUND "<by learned 0.1%>" /* the pair that the first 0.1 % choose, from the start */
#define CROSS(share, gbs) \
  { "cross " share, PAPER "learned+stack_cross_gbs=" gbs, NULL }
#define TWICE "+stack_tx_gbs=80+stack_rx_gbs=80+stack_cross_gbs=40" /* the other reading of "80 GB/s per link" */

static const repro_setting settings[] = {
    /* from the recordings */
    {"offsets", NULL, NULL},
    {"by baseline", NULL, NULL},
    {"by oracle", NULL, NULL},
    {"by linear", NULL, NULL},
    {"by learned 0.1%", NULL, NULL},
    {"by learned 0.5%", NULL, NULL},
    {"by learned 1%", NULL, NULL},
    {"by 7:8", NULL, NULL},
    {"by 8:9", NULL, NULL},
    {"by 9:10", NULL, NULL},
    {"by 10:11", NULL, NULL},
    {"by 11:12", NULL, NULL},
    {"by 12:13", NULL, NULL},
    {"by 13:14", NULL, NULL},
    {"by 14:15", NULL, NULL},
    {"by 15:16", NULL, NULL},
    {"by 16:17", NULL, NULL},
    /* simulated */
    {"none", "copy+offload=none+map=baseline", NULL},
    {"none, 64 SMs", "copy+offload=none+map=baseline+stack_saved_sms=0", NULL},
    {"ideal", "copy+offload=ideal+map=" FOUND, NULL},
    {"always baseline", "copy+offload=always+map=baseline", NULL},
    {"always learned", "copy+offload=always+map=learned", NULL},
    {"paper baseline", PAPER "baseline", NULL},
    {"paper learned", PAPER "learned", NULL},
    {"paper found", PAPER FOUND, NULL},
    {"paper oracle", PAPER "oracle", NULL},
    {"ours baseline", OURS "baseline", NULL},
    {"ours learned", OURS "learned", NULL},
    {"ours oracle", OURS "oracle", NULL},
    {"ours linear", OURS "oracle-linear", NULL},
    CROSS("0.125", "5"),
    CROSS("0.25", "10"),
    CROSS("1", "40"),
    {"none, slow inside", "copy+offload=none+map=baseline+stack_gbs=80", NULL},
    {"slow inside", PAPER "learned+stack_gbs=80", NULL},
    {"16 warps", PAPER "learned+stack_warps=16", NULL},
    {"warps x2", PAPER "learned+stack_warps=96", NULL},
    {"warps x4", PAPER "learned+stack_warps=192", NULL},
    {"four SMs", PAPER "learned+stack_sms=4+stack_warps=192", NULL},
    {"none, twice the links", "copy+offload=none+map=baseline" TWICE, NULL},
    {"twice the links, baseline", PAPER "baseline" TWICE, NULL},
    {"twice the links", PAPER "learned" TWICE, NULL},
};

/* ---- quantities ---- */

static double over(double a, double b) { return b > 0 ? a / b : REPRO_NONE; }

/* Of kernels; the copies that a map waits for are copies of the program. */
static double work_ps(const repro_measured *m) { return (double)(m->counters.kernel_ps - m->stacks.stopped_ps); }
static double speed(const repro_measured *a, const repro_measured *b) { return over(work_ps(b), work_ps(a)); }
static double traffic(const repro_measured *a, const repro_measured *b) {
  return over((double)sim_stacks_traffic(&a->stacks), (double)sim_stacks_traffic(&b->stacks));
}
static double energy(const repro_measured *a, const repro_measured *b) {
  return over(sim_stacks_joule(&a->stacks), sim_stacks_joule(&b->stacks));
}
static double memory_joule(const repro_measured *m) { return sim_stacks_joule(&m->stacks) - m->stacks.sm_joule; }
static double energy_of_memory(const repro_measured *a, const repro_measured *b) {
  return over(memory_joule(a), memory_joule(b));
}
static double energy_in_use(const repro_measured *a, const repro_measured *b) {
  return over(memory_joule(a) - a->stacks.idle_joule, memory_joule(b) - b->stacks.idle_joule);
}

/* Of the busiest channel between GPU and stacks: share of the kernels' time. */
static double channel_used(const repro_measured *a, const repro_measured *b) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < a->stacks.count; i++) {
    if (a->stacks.tx[i] > most) most = a->stacks.tx[i];
    if (a->stacks.rx[i] > most) most = a->stacks.rx[i];
  }
  return over((double)most / (REPRO_TOM_LINK_GBS * 1e9), work_ps(a) * 1e-12);
}

static double colocation(const repro_measured *a, const repro_measured *b) {
  return over((double)a->stacks.colocated, (double)a->stacks.instances);
}
static double beside(const repro_measured *a, const repro_measured *b) {
  return over((double)a->offsets.lines_beside, (double)a->offsets.lines);
}
static double lines(const repro_measured *a, const repro_measured *b) {
  return over((double)a->offsets.lines, (double)a->stacks.instances);
}
static double offloaded(const repro_measured *a, const repro_measured *b) {
  return over((double)a->stacks.offloaded, (double)a->stacks.instances);
}
static double in_stacks(const repro_measured *a, const repro_measured *b) {
  return over((double)a->stacks.offloaded_instructions, (double)a->counters.warp_instructions);
}
static double some_fixed(const repro_measured *a, const repro_measured *b) {
  return over((double)a->offsets.some_fixed, (double)a->offsets.candidates);
}
static double all_fixed(const repro_measured *a, const repro_measured *b) {
  return over((double)a->offsets.all_fixed, (double)a->offsets.candidates);
}

/* ---- the paper's numbers ---- */

#define EVERY_PAIR "by 7:8|by 8:9|by 9:10|by 10:11|by 11:12|by 12:13|by 13:14|by 14:15|by 15:16|by 16:17"

#define SPEED(name, setting, average, best)                                                            \
  {name ": speed (geometric mean)", average, REPRO_GEOMETRIC, speed, setting, "none", NULL, 0, false}, \
      {name ": speed (highest)", best, REPRO_HIGHEST, speed, setting, "none", NULL, 0, false}, {       \
    name ": speed (lowest)", REPRO_NONE, REPRO_LOWEST, speed, setting, "none", NULL, 0, false          \
  }
#define COLOCATED(name, setting, average)                                                                             \
  {                                                                                                                   \
    name ": instances in one stack (arithmetic mean)", average, REPRO_ARITHMETIC, colocation, setting, NULL, NULL, 0, \
        false                                                                                                         \
  }
#define BESIDE(name, setting, average)                                                                                 \
  {                                                                                                                    \
    name ": lines of instances beside them (arithmetic mean)", average, REPRO_ARITHMETIC, beside, setting, NULL, NULL, \
        0, false                                                                                                       \
  }
#define BY_PAIR(bits) COLOCATED("bits " bits, "by " bits, REPRO_NONE)
#define SAVED(name, what, setting, average, best)                                                  \
  {name " (arithmetic mean)", average, REPRO_ARITHMETIC, what, setting, "none", NULL, 0, false}, { \
    name " (lowest)", best, REPRO_LOWEST, what, setting, "none", NULL, 0, false                    \
  }
#define OF(program, setting, value) \
  { program ", " setting ": speed", value, REPRO_ONE, speed, setting, "none", program, 0, false }
#define PAPERS(program) \
  { program ", controlled learned: speed", REPRO_NONE, REPRO_ONE, speed, "paper learned", "none", program, 0, false }

static const repro_quantity gains[] = {speed, traffic, energy, energy_in_use, energy_of_memory, NULL};

static const repro_row rows[] = {
    /* section 3.2.1 */
    {"candidates with accesses at fixed offsets (arithmetic mean)", 0.85, REPRO_ARITHMETIC, some_fixed, "offsets", NULL,
     NULL, 0, false},
    {"programs in which all offsets are fixed", 0.6, REPRO_SHARE, all_fixed, "offsets", NULL, NULL, 1, false},
    /* sections 3.2.1 and 3.2.2, figure 6 */
    BESIDE("baseline map", "by baseline", 0.38),
    BESIDE("oracle", "by oracle", 0.75),
    BESIDE("learned from 0.1 %", "by learned 0.1%", 0.72),
    BESIDE("learned from 0.5 %", "by learned 0.5%", REPRO_NONE),
    BESIDE("learned from 1 %", "by learned 1%", REPRO_NONE),
    BESIDE("a linear map for each allocation", "by linear", REPRO_NONE),
    {"lines that an instance touches (geometric mean)", REPRO_NONE, REPRO_GEOMETRIC, lines, "by baseline", NULL, NULL,
     0, false},
    {"lines that an instance touches (highest)", REPRO_NONE, REPRO_HIGHEST, lines, "by baseline", NULL, NULL, 0, false},
    {"lines that an instance touches (lowest)", REPRO_NONE, REPRO_LOWEST, lines, "by baseline", NULL, NULL, 0, false},
    COLOCATED("baseline map", "by baseline", REPRO_NONE),
    COLOCATED("oracle", "by oracle", REPRO_NONE),
    COLOCATED("learned from 0.1 %", "by learned 0.1%", REPRO_NONE),
    COLOCATED("a linear map for each allocation", "by linear", REPRO_NONE),
    {"one pair for all programs, the best: instances in one stack (arithmetic mean)", REPRO_NONE, REPRO_ARITHMETIC,
     colocation, EVERY_PAIR, NULL, NULL, 0, true},
    BY_PAIR("7:8"),
    BY_PAIR("8:9"),
    BY_PAIR("9:10"),
    BY_PAIR("10:11"),
    BY_PAIR("11:12"),
    BY_PAIR("12:13"),
    BY_PAIR("13:14"),
    BY_PAIR("14:15"),
    BY_PAIR("15:16"),
    BY_PAIR("16:17"),
    /* section 2, figures 2 and 3 */
    SPEED("ideal offloading", "ideal", 1.58, 2.19),
    {"ideal map over the baseline's, controlled: speed (geometric mean)", 1.13, REPRO_GEOMETRIC, speed, "paper oracle",
     "paper baseline", NULL, 0, false},
    /* section 6.1, figure 8 */
    SPEED("controlled, learned", "paper learned", 1.3, 1.76),
    SPEED("controlled, baseline map", "paper baseline", REPRO_NONE, REPRO_NONE),
    SPEED("controlled, the learned map from the start", "paper found", REPRO_NONE, REPRO_NONE),
    SPEED("controlled, oracle", "paper oracle", REPRO_NONE, REPRO_NONE),
    SPEED("our controller, learned", "ours learned", REPRO_NONE, REPRO_NONE),
    SPEED("our controller, baseline map", "ours baseline", REPRO_NONE, REPRO_NONE),
    SPEED("our controller, oracle", "ours oracle", REPRO_NONE, REPRO_NONE),
    SPEED("our controller, linear maps", "ours linear", REPRO_NONE, REPRO_NONE),
    SPEED("nothing offloaded, 64 SMs", "none, 64 SMs", REPRO_NONE, REPRO_NONE),
    SPEED("always, learned", "always learned", 0.97, REPRO_NONE),
    SPEED("always, baseline map", "always baseline", 0.93, REPRO_NONE),
    {"learned over baseline map, controlled: speed (geometric mean)", 1.1, REPRO_GEOMETRIC, speed, "paper learned",
     "paper baseline", NULL, 0, false},
    OF("LIB", "always learned", 0.36),
    {"LIB, controlled learned: speed", 1.52, REPRO_ONE, speed, "paper learned", "none", "LIB", 0, false},
    PAPERS("BP"),
    PAPERS("BFS"),
    PAPERS("KM"),
    PAPERS("CFD"),
    PAPERS("HW"),
    PAPERS("RAY"),
    PAPERS("FWT"),
    PAPERS("SP"),
    PAPERS("RD"),
    {"nothing offloaded: busiest channel of a stack, share of its bandwidth (arithmetic mean)", REPRO_NONE,
     REPRO_ARITHMETIC, channel_used, "none", NULL, NULL, 0, false},
    {"controlled, learned: instances offloaded (arithmetic mean)", REPRO_NONE, REPRO_ARITHMETIC, offloaded,
     "paper learned", NULL, NULL, 0, false},
    {"controlled, learned: instructions in stacks (arithmetic mean)", REPRO_NONE, REPRO_ARITHMETIC, in_stacks,
     "paper learned", NULL, NULL, 0, false},
    {"always, learned: instructions in stacks (arithmetic mean)", REPRO_NONE, REPRO_ARITHMETIC, in_stacks,
     "always learned", NULL, NULL, 0, false},
    /* sections 6.2 and 6.3, figures 9 and 10 */
    SAVED("controlled, learned: traffic", traffic, "paper learned", 0.87, 0.63),
    SAVED("always, learned: traffic", traffic, "always learned", 0.62, 0.01),
    SAVED("controlled, learned: energy", energy, "paper learned", 0.89, 0.63),
    {"controlled, learned: energy but for idle links and SMs (arithmetic mean)", REPRO_NONE, REPRO_ARITHMETIC,
     energy_in_use, "paper learned", "none", NULL, 0, false},
    {"controlled, learned: energy of links and DRAM (arithmetic mean)", REPRO_NONE, REPRO_ARITHMETIC, energy_of_memory,
     "paper learned", "none", NULL, 0, false},
    /* section 6.4, figures 11 and 12 */
    {"link between stacks, 0.125 of the GPU's: speed (geometric mean)", 1.17, REPRO_GEOMETRIC, speed, "cross 0.125",
     "none", NULL, 0, false},
    {"link between stacks, 0.25 of the GPU's: speed (geometric mean)", 1.29, REPRO_GEOMETRIC, speed, "cross 0.25",
     "none", NULL, 0, false},
    {"link between stacks, 0.5 of the GPU's: speed (geometric mean)", 1.3, REPRO_GEOMETRIC, speed, "paper learned",
     "none", NULL, 0, false},
    {"link between stacks, as the GPU's: speed (geometric mean)", 1.31, REPRO_GEOMETRIC, speed, "cross 1", "none", NULL,
     0, false},
    SPEED("a third of the warps in stacks", "16 warps", REPRO_NONE, REPRO_NONE),
    {"twice the warps in stacks: speed (geometric mean)", REPRO_NONE, REPRO_GEOMETRIC, speed, "warps x2", "none", NULL,
     0, false},
    {"four times the warps in stacks: speed (geometric mean)", REPRO_NONE, REPRO_GEOMETRIC, speed, "warps x4", "none",
     NULL, 0, false},
    {"four SMs in each stack: speed (geometric mean)", REPRO_NONE, REPRO_GEOMETRIC, speed, "four SMs", "none", NULL, 0,
     false},
    {"links of 80 GB/s each way, learned: speed (geometric mean)", REPRO_NONE, REPRO_GEOMETRIC, speed,
     "twice the links", "none, twice the links", NULL, 0, false},
    {"links of 80 GB/s each way, learned over baseline map: speed (geometric mean)", REPRO_NONE, REPRO_GEOMETRIC, speed,
     "twice the links", "twice the links, baseline", NULL, 0, false},
    {"stacks no faster inside than their link: speed (geometric mean)", 1.28, REPRO_GEOMETRIC, speed, "slow inside",
     "none, slow inside", NULL, 0, false},
};

static const repro_note notes[] = {
    {"stacks no faster inside", true,
     "80 GB/s per link can be each way or both ways together: only with the latter a gain is possible here at all"},
    {"baseline map: lines of instances", true,
     "the paper does not say what the share is of: of instances in one stack it cannot be and a share of lines is no less than a quarter by any map"},
    {0},
};

#define SERIES_PAIR(bits) \
  { bits, "by " bits, NULL }

/* Series of panels: what each map does. */
#define BY_MAP                                                                          \
  {                                                                                     \
    {"baseline map", "by baseline", NULL}, {"learned, 0.1 %", "by learned 0.1%", NULL}, \
        {"learned, 1 %", "by learned 1%", NULL}, {"oracle", "by oracle", NULL}, {       \
      "linear", "by linear", NULL                                                       \
    }                                                                                   \
  }
static const repro_panel panels[] = {
    {"Speed",
     "times a GPU without offloading",
     "geometric mean",
     speed,
     REPRO_GEOMETRIC,
     false,
     1,
     "as fast as without",
     {{"ideal", "ideal", "none"},
      {"always, baseline map", "always baseline", "none"},
      {"always, learned", "always learned", "none"},
      {"controlled, baseline map", "paper baseline", "none"},
      {"controlled, learned", "paper learned", "none"}},
     5},
    {"Lines of instances in the stack of their first one", "share", "arithmetic mean", beside, REPRO_ARITHMETIC, false,
     REPRO_NONE, NULL, BY_MAP, 5},
    {"Instances whose accesses lie in one stack", "share", "arithmetic mean", colocation, REPRO_ARITHMETIC, false,
     REPRO_NONE, NULL, BY_MAP, 5},
    {"The same by pair of address bits",
     "share",
     "arithmetic mean",
     colocation,
     REPRO_ARITHMETIC,
     false,
     REPRO_NONE,
     NULL,
     {SERIES_PAIR("7:8"), SERIES_PAIR("8:9"), SERIES_PAIR("9:10"), SERIES_PAIR("10:11"), SERIES_PAIR("11:12"),
      SERIES_PAIR("12:13"), SERIES_PAIR("13:14"), SERIES_PAIR("14:15"), SERIES_PAIR("15:16"), SERIES_PAIR("16:17")},
     10},
    {"Traffic on all links",
     "of that without offloading",
     "arithmetic mean",
     traffic,
     REPRO_ARITHMETIC,
     false,
     1,
     "as much as without",
     {{"always, learned", "always learned", "none"},
      {"controlled, baseline map", "paper baseline", "none"},
      {"controlled, learned", "paper learned", "none"}},
     3},
    {"Energy of links, DRAM and SMs",
     "of that without offloading",
     "arithmetic mean",
     energy,
     REPRO_ARITHMETIC,
     false,
     1,
     "as much as without",
     {{"always, learned", "always learned", "none"},
      {"controlled, baseline map", "paper baseline", "none"},
      {"controlled, learned", "paper learned", "none"}},
     3},
    {"Speed, controlled, learned, with other stacks",
     "times a GPU without offloading",
     "geometric mean",
     speed,
     REPRO_GEOMETRIC,
     false,
     1,
     "as fast as without",
     {{"links between stacks x 0.125", "cross 0.125", "none"},
      {"x 0.25", "cross 0.25", "none"},
      {"x 0.5", "paper learned", "none"},
      {"x 1", "cross 1", "none"},
      {"a third of the warps", "16 warps", "none"},
      {"twice the warps", "warps x2", "none"},
      {"four times", "warps x4", "none"},
      {"four SMs in each", "four SMs", "none"},
      {"no faster inside", "slow inside", "none, slow inside"}},
     9},
    {"Share of instructions that stacks run",
     "share",
     "arithmetic mean",
     in_stacks,
     REPRO_ARITHMETIC,
     false,
     REPRO_NONE,
     NULL,
     {{"always, learned", "always learned", NULL}, {"controlled, learned", "paper learned", NULL}},
     2},
};

const repro_paper repro_hsieh2016 = {
    .name = "hsieh2016",
    .title =
        "Hsieh et al.: Transparent Offloading and Mapping (TOM): enabling programmer-transparent near-data processing in GPU systems, ISCA 2016",
    .machine = "tom",
    .programs = programs,
    .settings = settings,
    .recorded = true,
    .rows = rows,
    .panels = panels,
    .gains = gains,
    .notes = notes,
    .program_count = REPRO_COUNT(programs),
    .setting_count = REPRO_COUNT(settings),
    .row_count = REPRO_COUNT(rows),
    .panel_count = REPRO_COUNT(panels),
};
