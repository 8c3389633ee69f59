/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a condition: refused with a message, or it can be evaluated, again with the same verdict; and any text in
 * JUnit XML leaves no character that XML does not allow. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "compare/condition.h"
#include "compare/junit.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static sim_result results[3];
static const report_run run = {.complete = true, .results = results, .result_count = 3};

static void fill(void) {
  static const char *const names[] = {"copy", "uvm", "zero-copy"};
  for (uint32_t i = 0; i < 3; i++) {
    strcpy(results[i].memory, names[i]);
    results[i].complete = true;
    results[i].counters = (sim_counters){.time_ps = 1000 + i, .faults = i, .l1_hits = 3, .l1_misses = i};
  }
  strcpy(results[2].error, "no memory");
}

static void evaluate(const condition *c) {
  bool holds[2];
  ff_text values[2] = {{0}, {0}};
  ff_error error;
  ff_status status[2];
  for (int i = 0; i < 2; i++) {
    error.message[0] = '\0';
    status[i] = condition_evaluate(c, &run, &run, &holds[i], &values[i], &error);
    FF_ASSERT(!!status[i] == !!error.message[0]);
  }
  FF_ASSERT(status[0] == status[1] && holds[0] == holds[1] && values[0].length == values[1].length);
  free(values[0].chars);
  free(values[1].chars);
}

static void write_xml(const char *text) {
  junit_suite suite = {.name = ff_strdup(text)};
  ff_text xml = {0};
  junit_add(&suite, text, JUNIT_FAILED, text);
  junit_write(&suite, 1, &xml);
  size_t marks = 0;
  for (size_t i = 0; i < xml.length; i++) {
    FF_ASSERT((unsigned char)xml.chars[i] >= 32 || xml.chars[i] == '\n');
    marks += xml.chars[i] == '<';
  }
  FF_ASSERT(marks == 9); /* of the elements alone */
  junit_free(&suite);
  free(xml.chars);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
  ff_error error = {0};
  condition *c;
  char *text = ff_alloc(size + 1);
  memcpy(text, data, size);
  fill();
  ff_status status = condition_parse(text, &c, &error);
  FF_ASSERT(!!status == !!error.message[0] && !status == !!c);
  if (!status) {
    condition_check_managers(c, (const char *const[]){"copy", "uvm", NULL}, &error);
    evaluate(c);
  }
  condition_free(c);
  write_xml(text);
  free(text);
  return 0;
}
