/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of a run: names that must be escaped or cannot be file names, places of marks, runs with nothing to draw. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "report/figures.h"

#define US UINT64_C(1000000)

static void fill(sim_result *r, const char *memory) {
  snprintf(r->memory, sizeof r->memory, "%s", memory);
  strcpy(r->machine, "gtx480");
  r->counters.time_ps = 100 * US;
  r->kernels = ff_alloc(sizeof *r->kernels);
  r->kernel_count = 1;
  strcpy(r->kernels[0].name, "a<b & \"c\">(int)");
  r->allocations = ff_alloc(sizeof *r->allocations);
  r->allocation_count = 1;
  r->allocations[0] = (sim_allocation_result){.name = "<table>", .id = 1, .address = 1 << 20, .bytes = 8192};
  sim_history *h = history_create();
  history_note_kernel(h, (history_kernel){.begin = 25 * US, .end = 75 * US, .blocks = 3});
  history_spread(h, HISTORY_kernel_ps, 25 * US, 75 * US, 50 * US);
  history_spread(h, HISTORY_h2d_busy_ps, 50 * US, 100 * US, 25 * US);
  history_note_transfer(
      h, (history_transfer){
             .begin = 50 * US, .end = 51 * US, .bytes = 10, .pieces = 1, .cause = HISTORY_CAUSE_FAULT, .in = true});
  history_cell_at(h, history_map_of(h, 1, 1, 1 << 20, 8192), 50 * US, (1 << 20) + 4096)->accesses = 7;
  r->history = history_copy_of(h, 100 * US, 8192);
  history_free(h);
}

static report_run sample(const char *first, const char *second) {
  report_run run = {
      .command = ff_strdup("./a <b> & \"c\""), .results = ff_alloc(2 * sizeof *run.results), .result_count = 2};
  fill(&run.results[0], first);
  fill(&run.results[1], second);
  return run;
}

/* No "<" but those of our own tags, no "&" but those of our own entities. */
static void check_escaped(const char *svg) {
  static const char *const tags[] = {"svg ",  "/svg>", "rect ", "/rect>", "text ",  "/text>",
                                     "line ", "path ", "g ",    "/g>",    "title>", "/title>"};
  static const char *const entities[] = {"lt;", "gt;", "amp;", "quot;"};
  for (const char *at = svg; *at; at++) {
    bool known = *at != '<' && *at != '&';
    for (size_t i = 0; i < sizeof tags / sizeof *tags && *at == '<'; i++)
      known |= !strncmp(at + 1, tags[i], strlen(tags[i]));
    for (size_t i = 0; i < sizeof entities / sizeof *entities && *at == '&'; i++)
      known |= !strncmp(at + 1, entities[i], strlen(entities[i]));
    if (!known) fail_msg("not escaped: %.40s", at);
  }
}

static void names_are_escaped(void **state) {
  report_run run = sample("uvm+evict=<x>", "copy");
  ff_text pictures[4] = {{0}};
  figure_times(&run, &pictures[0]);
  figure_timeline(&run, &run.results[0], &pictures[1]);
  figure_link(&run, &run.results[0], &pictures[2]);
  assert_true(figure_heat(&run, &run.results[0], &pictures[3]));
  for (int i = 0; i < 4; i++) {
    check_escaped(pictures[i].chars);
    assert_non_null(strstr(pictures[i].chars, "uvm+evict=&lt;x&gt;"));
    free(pictures[i].chars);
  }
  report_free(&run);
}

/* The plot is 870 pixels from 110 on: 25 to 75 of 100 us are 327.5 to 762.5; the link's microsecond begins at 545. */
static void marks_are_where_the_time_says(void **state) {
  report_run run = sample("uvm", "copy");
  ff_text picture = {0};
  figure_timeline(&run, &run.results[0], &picture);
  assert_non_null(strstr(picture.chars, "<rect x=\"327.5\" y=\"40.0\" width=\"435.0\" height=\"24.0\""));
  assert_non_null(strstr(picture.chars, "<rect x=\"545.0\" y=\"70.0\" width=\"8.7\" height=\"24.0\" fill=\"#d55e00\""));
  free(picture.chars);
  report_free(&run);
}

static void every_cause_has_a_colour(void **state) {
  report_run run = sample("uvm", "copy");
  ff_text picture = {0};
  for (uint32_t cause = 0; cause < HISTORY_CAUSE_COUNT; cause++)
    history_note_transfer(
        run.results[0].history,
        (history_transfer){
            .begin = (60 + cause) * US, .end = (60 + cause) * US + 1, .bytes = 1, .pieces = 1, .cause = cause});
  figure_timeline(&run, &run.results[0], &picture);
  for (uint32_t cause = 0; cause < HISTORY_CAUSE_COUNT; cause++) {
    char name[64];
    snprintf(name, sizeof name, ">%s</text>", history_cause_names[cause]);
    assert_non_null(strstr(picture.chars, name));
  }
  assert_null(strstr(picture.chars, "(null)"));
  free(picture.chars);
  report_free(&run);
}

static void pictures_have_names_of_their_own(void **state) {
  char folder[] = "/tmp/farfault-test-XXXXXX";
  report_run run = sample("uvm+evict=lru:64K", "uvm+evict=lru/64K");
  uint32_t count;
  ff_error error;
  assert_non_null(mkdtemp(folder));
  assert_int_equal(report_figures_write(&run, folder, &count, &error), FF_OK);
  assert_int_equal(count, 7);
  static const char *const names[] = {"times.svg",
                                      "timeline-uvm+evict=lru_64K.svg",
                                      "timeline-uvm+evict=lru_64K-2.svg",
                                      "link-uvm+evict=lru_64K.svg",
                                      "link-uvm+evict=lru_64K-2.svg",
                                      "heat-uvm+evict=lru_64K.svg",
                                      "heat-uvm+evict=lru_64K-2.svg"};
  for (int i = 0; i < 7; i++) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    if (unlink(path)) fail_msg("%s is not there", path);
  }
  assert_int_equal(rmdir(folder), 0); /* nothing else was in it */
  report_free(&run);
}

/* Two simulations of two stacks; the second is twice as fast, and has more than the first on one link. */
static void stacks_have_bars_and_links(void **state) {
  report_run run = {
      .command = ff_strdup("./a"), .results = ff_alloc(2 * sizeof *run.results), .result_count = 2, .complete = true};
  ff_text picture = {0};
  for (uint32_t i = 0; i < 2; i++) {
    sim_result *r = &run.results[i];
    snprintf(r->memory, sizeof r->memory, "copy+map=%s", i ? "<b>" : "baseline");
    r->complete = true;
    r->counters.time_ps = 10 * US;
    r->counters.kernel_ps = (2 - i) * US;
    r->stacks = (sim_stacks){.count = 2,
                             .tx = {1024, 2048},
                             .cross = {{0, i * 600 << 10}, {4096, 0}},
                             .instances = 8,
                             .colocated = 2,
                             .link_joule = 0.5};
    snprintf(r->stacks.map, sizeof r->stacks.map, "%s", i ? "<b>" : "baseline");
  }
  figure_stacks(&run, &picture);
  check_escaped(picture.chars);
  assert_non_null(strstr(picture.chars, ">none, &lt;b&gt;</text>"));
  assert_non_null(strstr(picture.chars, "<title>2</title>"));
  assert_non_null(strstr(picture.chars, "<title>25</title>"));
  assert_null(strstr(picture.chars, "nan"));
  picture.length = 0;
  assert_true(figure_stack_links(&run, &run.results[1], &picture));
  check_escaped(picture.chars);
  assert_non_null(strstr(picture.chars, "fill=\"#fff\">600.00 KiB</text>")); /* the darkest cell has the most of all */
  picture.length = 0;
  assert_true(figure_stack_links(&run, &run.results[0], &picture));
  assert_null(strstr(picture.chars, "#08306b"));
  run.results[0].stacks.count = 0;
  picture.length = 0;
  assert_false(figure_stack_links(&run, &run.results[0], &picture));
  free(picture.chars);
  report_free(&run);
}

static void nothing_to_draw_is_drawn_empty(void **state) {
  report_run run = {.results = ff_alloc(sizeof *run.results), .result_count = 1}, none = {0};
  ff_text picture = {0};
  run.results[0].history = history_create();
  figure_times(&run, &picture);
  figure_times(&none, &picture);
  figure_timeline(&run, &run.results[0], &picture);
  figure_link(&run, &run.results[0], &picture);
  assert_false(figure_heat(&run, &run.results[0], &picture));
  assert_null(strstr(picture.chars, "nan"));
  assert_null(strstr(picture.chars, "inf"));
  free(picture.chars);
  report_free(&run);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_are_escaped),
      cmocka_unit_test(marks_are_where_the_time_says),
      cmocka_unit_test(every_cause_has_a_colour),
      cmocka_unit_test(pictures_have_names_of_their_own),
      cmocka_unit_test(nothing_to_draw_is_drawn_empty),
      cmocka_unit_test(stacks_have_bars_and_links),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
