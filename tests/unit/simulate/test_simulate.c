/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of libfarfault-simulate: what they run, what they return, and that nothing of a call stays behind. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/text.h"
#include "farfault/simulate.h"

#define VECTORADD FF_BUILD_DIR "/workloads/vectoradd"

static char folder[] = "/tmp/test-simulate-XXXXXX", trace[64];
static int quiet[3]; /* no input, and outputs that are read back */
static ff_simulate_error error;

static ff_simulate_options defaults(void) {
  return (ff_simulate_options){
      .size = sizeof(ff_simulate_options), .memory = "copy,demand", .machine = "gtx480", .streams = quiet};
}

static void said(char *text, size_t size) {
  ssize_t got = pread(quiet[2], text, size - 1, 0);
  text[got > 0 ? got : 0] = '\0';
}

static uint64_t counter(const ff_simulate_result *result, const char *memory, const char *name) {
  uint64_t value = 0;
  assert_true(ff_simulate_counter(result, (uint32_t)ff_simulate_find(result, memory), name, &value));
  return value;
}

static int set_up(void **state) {
  const char *const argv[] = {VECTORADD, "20000", NULL};
  int status = -1;
  (void)state;
  if (!mkdtemp(folder)) return 1;
  snprintf(trace, sizeof trace, "%s/a.fft", folder);
  quiet[0] = -1;
  quiet[1] = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  quiet[2] = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  setenv("TMPDIR", folder, 1);
  ff_simulate_options options = defaults();
  options.memory = NULL;
  if (access(VECTORADD, X_OK)) {
    puts("skipped: the workloads are not part of this build");
    exit(0);
  }
  if (ff_simulate_record(argv, trace, &options, &status, &error)) puts(error.message);
  return status;
}

/* Nothing but the trace is there, and no child. */
static int tear_down(void **state) {
  (void)state;
  unlink(trace);
  return rmdir(folder) || waitpid(-1, NULL, WNOHANG) != -1;
}

static void test_run(void **state) {
  const char *const argv[] = {"sh", "-c", VECTORADD " 20000; exit 7", NULL};
  ff_simulate_options options = defaults();
  ff_simulate_result *result;
  (void)state;
  assert_int_equal(ff_simulate_run(argv, &options, &result, &error), FF_SIMULATE_OK);
  assert_int_equal(ff_simulate_exit_status(result), 7);
  assert_int_equal(ff_simulate_process_count(result), 1);
  assert_int_equal(ff_simulate_count(result), 2);
  const ff_simulate_process *process = ff_simulate_get_process(result, 0);
  assert_true(process->complete && strstr(process->command, "vectoradd 20000"));
  assert_null(ff_simulate_get_process(result, 1));
  assert_null(ff_simulate_json(result, 1));
  assert_null(ff_simulate_table(result, 1, false));
  assert_non_null(strstr(ff_simulate_json(result, 0), "\"schema\": 1"));
  assert_null(strstr(ff_simulate_json(result, 0), "\"history\""));
  char *table = ff_simulate_table(result, 0, false);
  assert_non_null(strstr(table, "far-faults"));
  ff_simulate_free_text(table);
  ff_simulate_free(result);
}

static void test_recording(void **state) {
  ff_simulate_options options = defaults();
  ff_simulate_result *result;
  uint64_t value = 5, sum = 0;
  (void)state;
  options.history = true;
  assert_int_equal(ff_simulate_recording(trace, &options, &result, &error), FF_SIMULATE_OK);
  const ff_simulate_simulation *copy = ff_simulate_get(result, 0), *demand = ff_simulate_get(result, 1);
  assert_string_equal(copy->memory, "copy");
  assert_string_equal(copy->machine, "gtx480");
  assert_true(copy->complete && !copy->error && copy->device == -1 && copy->process == 0);
  assert_true(copy->ratio == 1 && demand->ratio > 1);
  assert_int_equal(ff_simulate_find(result, "demand"), 1);
  assert_int_equal(ff_simulate_find(result, "uvm"), -1);
  assert_null(ff_simulate_get(result, 2));
  assert_non_null(strstr(ff_simulate_json(result, 0), "\"history\""));
  assert_int_equal(counter(result, "copy", "faults"), 0);
  assert_true(counter(result, "demand", "faults") > 10);
  /* three arrays, of which two are read; their sums are the simulation's */
  assert_int_equal(copy->kernel_count, 1);
  assert_int_equal(copy->allocation_count, 3);
  assert_string_equal(ff_simulate_get_kernel(result, 0, 0)->range, "");
  assert_non_null(strstr(ff_simulate_get_kernel(result, 0, 0)->name, "vectoradd"));
  assert_null(ff_simulate_get_kernel(result, 0, 1));
  assert_null(ff_simulate_get_allocation(result, 2, 0));
  for (uint32_t i = 0; i < 3; i++) {
    assert_int_equal(ff_simulate_get_allocation(result, 1, i)->bytes, 80000);
    assert_true(ff_simulate_allocation_counter(result, 1, i, "faults", &value));
    sum += value;
  }
  assert_int_equal(sum, counter(result, "demand", "faults"));
  assert_true(ff_simulate_kernel_counter(result, 1, 0, "faults", &value));
  assert_int_equal(value, sum);
  /* what is not there leaves the value alone */
  assert_false(ff_simulate_counter(result, 0, "no_such", &value));
  assert_false(ff_simulate_counter(result, 2, "faults", &value));
  assert_false(ff_simulate_counter(result, 0, NULL, &value));
  assert_false(ff_simulate_kernel_counter(result, 0, 1, "faults", &value));
  assert_false(ff_simulate_allocation_counter(result, 0, 3, "faults", &value));
  assert_int_equal(value, sum);
  ff_simulate_free(result);
}

static void test_counters(void **state) {
  uint32_t count;
  const ff_simulate_counter_info *infos = ff_simulate_counters(&count);
  bool found = false;
  (void)state;
  for (uint32_t i = 0; i < count; i++) {
    assert_true(infos[i].name[0] && infos[i].help[0]);
    found = found || (!strcmp(infos[i].name, "h2d_bytes") && !strcmp(infos[i].unit, "B"));
  }
  assert_true(found);
  assert_int_equal(ff_simulate_version(), FF_SIMULATE_VERSION);
  assert_string_equal(ff_simulate_release(), FARFAULT_VERSION);
  assert_string_equal(ff_simulate_status_name(FF_SIMULATE_STOPPED), "FF_SIMULATE_STOPPED");
  assert_string_equal(ff_simulate_status_name((ff_simulate_status)99), "unknown");
}

/* The status and a part of the message of a recording that is refused. */
static void expect_refused(const char *file, const ff_simulate_options *options, ff_simulate_status status,
                           const char *part) {
  ff_simulate_result *result = (ff_simulate_result *)(uintptr_t)1;
  error = (ff_simulate_error){0};
  assert_int_equal(ff_simulate_recording(file, options, &result, &error), status);
  assert_null(result);
  assert_int_equal(error.status, status);
  if (!strstr(error.message, part)) fail_msg("'%s' is not in '%s'", part, error.message);
  assert_true(error.message[strlen(error.message) - 1] != '\n' && strncmp(error.message, "farfault", 8) != 0);
  assert_int_equal(ff_simulate_recording(file, options, &result, NULL), status);
}

static void test_refused(void **state) {
  ff_simulate_options options = defaults();
  (void)state;
  expect_refused("/nowhere/a.fft", &options, FF_SIMULATE_BAD_FILE, "/nowhere/a.fft: cannot be read");
  expect_refused("/etc/passwd", &options, FF_SIMULATE_BAD_FILE, "/etc/passwd: no trace");
  expect_refused("", &options, FF_SIMULATE_INVALID, "empty");
  expect_refused(NULL, &options, FF_SIMULATE_INVALID, "empty");
  expect_refused("--help", &options, FF_SIMULATE_BAD_FILE, "--help: cannot be read");
  options.memory = "copi";
  expect_refused(trace, &options, FF_SIMULATE_INVALID, "copi");
  options.memory = "copy";
  options.machine = "h300";
  expect_refused(trace, &options, FF_SIMULATE_INVALID, "h300");
  options.machine = NULL;
  options.arguments = (const char *const[]){"--gpu-memory=much", NULL};
  expect_refused(trace, &options, FF_SIMULATE_INVALID, "much");
  options.arguments = (const char *const[]){"--no-such-option", NULL};
  expect_refused(trace, &options, FF_SIMULATE_INVALID, "no-such-option");
  options.arguments = (const char *const[]){"trace.fft", NULL};
  expect_refused(trace, &options, FF_SIMULATE_INVALID, "'trace.fft' is no option");
  options = defaults();
  options.program = "/nowhere/farfault";
  expect_refused(trace, &options, FF_SIMULATE_NOT_INSTALLED, "/nowhere/farfault");
  options.size = 0;
  expect_refused(trace, &options, FF_SIMULATE_INVALID, "size");
  assert_int_equal(ff_simulate_recording(trace, NULL, NULL, &error), FF_SIMULATE_INVALID);
  /* a shorter struct, of an older header */
  options = defaults();
  options.size = offsetof(ff_simulate_options, program);
  options.program = "/nowhere/farfault";
  ff_simulate_result *result;
  assert_int_equal(ff_simulate_recording(trace, &options, &result, &error), FF_SIMULATE_OK);
  ff_simulate_free(result);
}

/* A manager that is left out is a result that says why, also if there is no other. */
static void test_left_out(void **state) {
  ff_simulate_options options = defaults();
  ff_simulate_result *result;
  (void)state;
  options.memory = "uvm+gpu-memory=1M"; /* it needs 4 MiB */
  assert_int_equal(ff_simulate_recording(trace, &options, &result, &error), FF_SIMULATE_OK);
  assert_non_null(ff_simulate_get(result, 0)->error);
  assert_null(ff_simulate_get(result, 1));
  ff_simulate_free(result);
}

static void test_programs_without_results(void **state) {
  const char *const none[] = {"true", NULL}, *const missing[] = {"/nowhere/app", NULL}, *const nothing[] = {NULL},
                    *const killed[] = {"sh", "-c", "kill -9 $$", NULL};
  ff_simulate_options options = defaults();
  ff_simulate_result *result;
  (void)state;
  assert_int_equal(ff_simulate_run(none, &options, &result, &error), FF_SIMULATE_NO_RESULTS);
  assert_non_null(strstr(error.message, "did not use the virtual GPU"));
  assert_int_equal(ff_simulate_run(killed, &options, &result, &error), FF_SIMULATE_NO_RESULTS);
  assert_non_null(strstr(error.message, "signal 9"));
  assert_int_equal(ff_simulate_run(missing, &options, &result, &error), FF_SIMULATE_NO_PROGRAM);
  assert_non_null(strstr(error.message, "/nowhere/app"));
  assert_int_equal(ff_simulate_run(nothing, &options, &result, &error), FF_SIMULATE_INVALID);
  assert_null(result);
  options.memory = NULL;
  assert_int_equal(ff_simulate_record(none, "/nowhere/a.fft", &options, NULL, &error), FF_SIMULATE_FAILED);
  assert_non_null(strstr(error.message, "/nowhere"));
  char other[80];
  snprintf(other, sizeof other, "%s/b.fft", folder);
  assert_int_equal(ff_simulate_record(none, other, &options, NULL, &error), FF_SIMULATE_NO_RESULTS);
  options.memory = "copy";
  assert_int_equal(ff_simulate_record(none, other, &options, NULL, &error), FF_SIMULATE_INVALID);
}

static void test_file(void **state) {
  ff_simulate_options options = defaults();
  ff_simulate_result *result, *again;
  char path[80];
  (void)state;
  snprintf(path, sizeof path, "%s/run.json", folder);
  assert_int_equal(ff_simulate_recording(trace, &options, &result, &error), FF_SIMULATE_OK);
  const char *json = ff_simulate_json(result, 0);
  assert_int_equal(ff_file_write(path, json, strlen(json), NULL), 0);
  assert_int_equal(ff_simulate_read(path, &again, &error), FF_SIMULATE_OK);
  assert_string_equal(ff_simulate_json(again, 0), json);
  assert_int_equal(counter(again, "demand", "time_ps"), counter(result, "demand", "time_ps"));
  ff_simulate_free(again);
  ff_simulate_free(result);
  ff_simulate_free(NULL);
  assert_int_equal(ff_file_write(path, "{\"schema\": 2}", 13, NULL), 0);
  assert_int_equal(ff_simulate_read(path, &again, &error), FF_SIMULATE_BAD_FILE);
  assert_non_null(strstr(error.message, "schema"));
  unlink(path);
}

static void test_streams(void **state) {
  const char *const argv[] = {"sh", "-c", "echo out; echo err >&2; cat; echo $FARFAULT_TEST_WORD", NULL};
  ff_simulate_options options = defaults();
  ff_simulate_result *result;
  char text[4096];
  (void)state;
  setenv("FARFAULT_TEST_WORD", "inherited", 1);
  assert_int_equal(ftruncate(quiet[1], 0) | ftruncate(quiet[2], 0), 0);
  lseek(quiet[1], 0, SEEK_SET);
  lseek(quiet[2], 0, SEEK_SET);
  options.environment = (const char *const[]){"PATH=/usr/bin:/bin", "FARFAULT_TEST_WORD=given", NULL};
  assert_int_equal(ff_simulate_run(argv, &options, &result, &error), FF_SIMULATE_NO_RESULTS);
  ssize_t got = pread(quiet[1], text, sizeof text - 1, 0);
  text[got > 0 ? got : 0] = '\0';
  assert_string_equal(text, "out\ngiven\n");
  said(text, sizeof text);
  assert_true(!strncmp(text, "err\n", 4));
  /* a reader that has gone is no signal for us */
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  close(ends[0]);
  options = defaults();
  options.streams = (const int[]){-1, quiet[1], ends[1]};
  assert_int_equal(ff_simulate_run(argv, &options, &result, &error), FF_SIMULATE_NO_RESULTS);
  close(ends[1]);
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static bool three_times(void *context) { return ++*(int *)context < 3; }

static void expect_stopped(const char *script, double at_least, double at_most) {
  const char *const argv[] = {"sh", "-c", script, NULL};
  ff_simulate_options options = defaults();
  ff_simulate_result *result;
  int asked = 0;
  double begun = seconds();
  options.go_on = three_times;
  options.context = &asked;
  assert_int_equal(ff_simulate_run(argv, &options, &result, &error), FF_SIMULATE_STOPPED);
  double took = seconds() - begun;
  assert_null(result);
  assert_int_equal(asked, 3);
  if (took < at_least || took > at_most) fail_msg("'%s' took %.1f s", script, took);
}

static void test_stopped(void **state) {
  (void)state;
  expect_stopped("exec sleep 30", 0.1, 4.9);                        /* at once, by SIGTERM */
  expect_stopped("trap '' TERM; exec sleep 30", 4, 20);             /* killed after five seconds */
  expect_stopped("while :; do echo much more >&2; done", 0.1, 4.9); /* is listened to, and asked all the same */
}

/* A stderr that is never read does not keep the caller from being asked. */
static void test_stopped_with_a_full_pipe(void **state) {
  const char *const argv[] = {"sh", "-c", "while :; do echo much more >&2; done", NULL};
  ff_simulate_options options = defaults();
  ff_simulate_result *result;
  int ends[2], asked = -3;
  (void)state;
  assert_int_equal(pipe(ends), 0);
  options.streams = (const int[]){-1, quiet[1], ends[1]};
  options.go_on = three_times;
  options.context = &asked;
  assert_int_equal(ff_simulate_run(argv, &options, &result, &error), FF_SIMULATE_STOPPED);
  close(ends[0]);
  close(ends[1]);
}

static void *simulate_in_thread(void *argument) {
  ff_simulate_options options = defaults();
  ff_simulate_result *result = NULL;
  options.memory = argument;
  if (ff_simulate_recording(trace, &options, &result, NULL)) return NULL;
  return result;
}

static void test_threads(void **state) {
  static char *const managers[] = {"copy", "demand", "tbn", "demand"};
  pthread_t threads[4];
  ff_simulate_result *results[4];
  (void)state;
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, simulate_in_thread, managers[i]), 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], (void **)&results[i]);
  for (int i = 0; i < 4; i++) assert_int_equal(ff_simulate_find(results[i], managers[i]), 0);
  assert_int_equal(counter(results[1], "demand", "time_ps"), counter(results[3], "demand", "time_ps"));
  for (int i = 0; i < 4; i++) ff_simulate_free(results[i]);
}

static void test_sweep(void **state) {
  ff_simulate_options options = defaults();
  char study[80], database[80], text[200];
  (void)state;
  snprintf(study, sizeof study, "%s/study.yaml", folder);
  snprintf(database, sizeof database, "%s/study.db", folder);
  options.memory = options.machine = NULL;
  int length = snprintf(text, sizeof text, "trace: a.fft\nmachine: gtx480\nmemory: [copy, demand]\n");
  assert_int_equal(ff_file_write(study, text, (size_t)length, NULL), 0);
  assert_int_equal(ff_simulate_sweep(study, database, &options, &error), FF_SIMULATE_OK);
  assert_int_equal(access(database, R_OK), 0);
  length = snprintf(text, sizeof text, "trace: a.fft\nmachine: gtx480\nmemory: [copy, demant]\n");
  assert_int_equal(ff_file_write(study, text, (size_t)length, NULL), 0);
  assert_int_equal(ff_simulate_sweep(study, database, &options, &error), FF_SIMULATE_BAD_FILE);
  assert_non_null(strstr(error.message, "study.yaml:3:16")); /* the place, and the line below with a caret */
  assert_non_null(strstr(error.message, "demant]\n"));
  assert_int_equal(ff_simulate_sweep("", database, &options, &error), FF_SIMULATE_INVALID);
  assert_int_equal(ff_simulate_sweep(study, NULL, &options, &error), FF_SIMULATE_INVALID);
  options.memory = "copy";
  assert_int_equal(ff_simulate_sweep(study, database, &options, &error), FF_SIMULATE_INVALID);
  unlink(study);
  unlink(database);
  strcat(database, "-lock");
  unlink(database);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_run),      cmocka_unit_test(test_recording),
      cmocka_unit_test(test_left_out), cmocka_unit_test(test_counters),
      cmocka_unit_test(test_refused),  cmocka_unit_test(test_programs_without_results),
      cmocka_unit_test(test_file),     cmocka_unit_test(test_streams),
      cmocka_unit_test(test_stopped),  cmocka_unit_test(test_stopped_with_a_full_pipe),
      cmocka_unit_test(test_threads),  cmocka_unit_test(test_sweep),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
