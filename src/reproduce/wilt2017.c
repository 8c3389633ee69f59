/* SPDX-License-Identifier: Apache-2.0 */
/* The measurements of "Managed Memory and Segmentation" (Nicholas Wilt, August 2017): a null kernel, a synchronisation,
 * and then the host writes a byte of each 4 KiB page of a managed range, again and again; the time of one turn, by the
 * range's size.
 *
 * His tables' heads are off: what they call ms are microseconds, and GP100's 4 KB row prints 7 MB/s where its time
 * gives 87, which stands here. A turn is the run's time over its launches: the making of the range is in it, once per
 * run. */
#include "reproduce/repro_private.h"

#define SIZE(kb, pages, turns)                                                                                        \
  {                                                                                                                   \
    kb " KB", "hosttouch", {"3 " pages " " pages " 1", turns " " pages " " pages " 1", "1000 " pages " " pages " 1"}, \
    {                                                                                                                 \
      1, 2, 20                                                                                                        \
    }                                                                                                                 \
  }

static const repro_program programs[] = {
    SIZE("0", "0", "500"),      SIZE("4", "1", "500"),       SIZE("8", "2", "500"),     SIZE("16", "4", "500"),
    SIZE("32", "8", "500"),     SIZE("64", "16", "200"),     SIZE("128", "32", "200"),  SIZE("256", "64", "200"),
    SIZE("512", "128", "100"),  SIZE("1024", "256", "100"),  SIZE("2048", "512", "50"), SIZE("4096", "1024", "50"),
    SIZE("8192", "2048", "25"), SIZE("16384", "4096", "25"),
};

static const repro_setting settings[] = {
    {"GM200", "gm200", "gm200"},
    {"CUDA 6", "cuda6", "gm200"},
    {"GP100", "gp100", "gp100"},
};

#define TIME(board, kb, us) \
  { board ", " kb " KB: us per turn", us, REPRO_ONE, repro_launch_microseconds, board, NULL, kb " KB", 0, false }
#define RATE(board, kb, rate) \
  { board ", " kb " KB: MB/s", rate, REPRO_ONE, repro_launch_bandwidth, board, NULL, kb " KB", 0, false }
#define POINT(board, kb, us, rate) TIME(board, kb, us), RATE(board, kb, rate)

static const repro_row rows[] = {
    {"null launch with synchronisation: us", 46.35, REPRO_ONE, repro_launch_microseconds, "GM200", NULL, "0 KB", 0,
     false},
    TIME("GM200", "0", 47),
    POINT("GM200", "4", 105, 39),
    POINT("GM200", "8", 104, 78),
    POINT("GM200", "16", 115, 143),
    POINT("GM200", "32", 134, 244),
    POINT("GM200", "64", 213, 307),
    POINT("GM200", "128", 381, 344),
    POINT("GM200", "256", 649, 404),
    POINT("GM200", "512", 1247, 420),
    POINT("GM200", "1024", 2221, 472),
    POINT("GM200", "2048", 4712, 445),
    POINT("GM200", "4096", 8458, 496),
    POINT("GM200", "8192", 17041, 492),
    POINT("GM200", "16384", 33992, 494),
    TIME("GP100", "0", 39),
    POINT("GP100", "4", 47.15, 87),
    POINT("GP100", "8", 49.86, 164),
    POINT("GP100", "16", 57.84, 283),
    POINT("GP100", "32", 59.04, 555),
    POINT("GP100", "64", 64.73, 1012),
    POINT("GP100", "128", 79.08, 1657),
    POINT("GP100", "256", 98.41, 2664),
    POINT("GP100", "512", 137.15, 3823),
    POINT("GP100", "1024", 205.56, 5101),
    POINT("GP100", "2048", 391.91, 5351),
    POINT("GP100", "4096", 745.81, 5624),
    POINT("GP100", "8192", 1543.91, 5433),
    POINT("GP100", "16384", 3114.83, 5386),
    {"first managed memory (CUDA 6), 16384 KB: MB/s", 512, REPRO_ONE, repro_launch_bandwidth, "CUDA 6", NULL,
     "16384 KB", 0, false},
};

#define IN_FILE(board, value) "machines/" board ".yaml: " value " is derived from it"
static const repro_note notes[] = {
    {"null launch", true, IN_FILE("gm200", "sync_us")},
    {"GM200, 0 KB", true, IN_FILE("gm200", "sync_us")},
    {"GM200, 4 KB", true, IN_FILE("gm200", "managed_launch_us")},
    {"GM200, 16384 KB", true, IN_FILE("gm200", "host_fault_us")},
    {"GP100, 0 KB", true, IN_FILE("gp100", "sync_us")},
    {"GP100, 4 KB", true, IN_FILE("gp100", "host_fault_us")},
    {"first managed memory", true, "a page of it costs what the one of GM200 does: machines/gm200.yaml: host_fault_us"},
    {NULL, false, NULL},
};

static const repro_panel panels[] = {
    {"A null kernel, a synchronisation, and a byte written in each page of a managed range",
     "us per turn",
     NULL,
     repro_launch_microseconds,
     REPRO_ARITHMETIC,
     true,
     REPRO_NONE,
     NULL,
     {{"GM200", "GM200", NULL}, {"GP100", "GP100", NULL}},
     2},
    {"The same as bandwidth",
     "MB/s",
     NULL,
     repro_launch_bandwidth,
     REPRO_ARITHMETIC,
     true,
     REPRO_NONE,
     NULL,
     {{"GM200", "GM200", NULL}, {"GP100", "GP100", NULL}},
     2},
};

const repro_paper repro_wilt2017 = {
    .name = "wilt2017",
    .title = "Wilt: Managed Memory and Segmentation, 2017",
    .machine = "gm200",
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
