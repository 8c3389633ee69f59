/* SPDX-License-Identifier: Apache-2.0 */
/* A saved run from anywhere: whatever is read must be written again, read again, shown and drawn, and stay the same;
 * in its page it ends no element. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "report/figures.h"
#include "report/html.h"
#include "report/report.h"
#include "report/timeline.h"

static void draw(const report_run *run) {
  ff_text pictures = {0};
  figure_times(run, &pictures);
  if (report_has_stacks(run)) figure_stacks(run, &pictures);
  for (uint32_t i = 0; i < run->result_count; i++) {
    figure_stack_links(run, &run->results[i], &pictures);
    if (!run->results[i].history) continue;
    figure_timeline(run, &run->results[i], &pictures);
    figure_link(run, &run->results[i], &pictures);
    figure_heat(run, &run->results[i], &pictures);
  }
  free(pictures.chars);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  report_run run, again;
  ff_error error;
  if (report_json_read("fuzz", (const char *)data, size, &run, &error)) return 0;
  ff_text first = {0}, second = {0}, table = {0}, csv = {0}, timeline = {0};
  report_json_write_whole(&run, &first);
  FF_ASSERT(report_json_read("again", first.chars, first.length, &again, &error) == FF_OK);
  report_json_write_whole(&again, &second);
  FF_ASSERT(first.length == second.length && !memcmp(first.chars, second.chars, first.length));
  report_table_write(&run, &(report_style){.verbose = true}, &table);
  report_columns columns = {0};
  report_columns_add(&run, &columns);
  report_csv_write(&run, true, &columns, &csv);
  report_timeline_write(&run, &timeline);
  draw(&run);
  ff_text page = {0};
  report_html_embed((const char *)data, size, &page);
  FF_ASSERT(page.length >= size && !memchr(page.chars, '<', page.length) && !memchr(page.chars, '&', page.length));
  free(page.chars);
  free(first.chars);
  free(second.chars);
  free(table.chars);
  free(csv.chars);
  free(timeline.chars);
  report_free(&run);
  report_free(&again);
  return 0;
}
