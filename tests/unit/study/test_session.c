/* SPDX-License-Identifier: Apache-2.0 */
/* The session: what it takes from the environment, what it refuses, what it writes and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "report/report.h"
#include "study/session.h"

static char folder[] = "/tmp/ff-test-session-XXXXXX";

static int make_folder(void **state) {
  setenv("FARFAULT_MACHINES", FF_SOURCE_DIR "/machines", 1);
  return mkdtemp(folder) ? 0 : -1;
}
static int remove_folder(void **state) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command);
}

/* Options that write to `file` in the test's folder. */
static session_options options_for(const char *managers, const char *file) {
  session_options options = {0};
  strcpy(options.managers, managers);
  strcpy(options.machine, "gtx480");
  snprintf(options.results, sizeof options.results, "%s/%s", folder, file);
  return options;
}

static session *created(const session_options *options) {
  session *session = NULL;
  ff_error error;
  if (session_create(options, &session, &error)) fail_msg("%s", error.message);
  return session;
}

static report_run results_of(const session_options *options) {
  report_run run;
  ff_error error;
  if (report_file_read(options->results, &run, &error)) fail_msg("%s", error.message);
  return run;
}

static void the_environment_becomes_options(void **state) {
  static const char *const values[][2] = {{"FARFAULT_MEMORY", "copy,demand"}, {"FARFAULT_MACHINE", "v100"}, {"FARFAULT_SET", "fault_us=5"},
                                          {"FARFAULT_GPU_MEMORY", "75%"},     {"FARFAULT_RESULTS", "r-%p"}, {"FARFAULT_PROGRESS", "p"},
                                          {"FARFAULT_MAX_INSTRUCTIONS", "123456789012"}, {"FARFAULT_THREADS", "3"}, {"FARFAULT_ISA", "baseline"}};
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) setenv(values[i][0], values[i][1], 1);
  session_options options;
  session_options_from_environment(&options);
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) unsetenv(values[i][0]);
  assert_string_equal(options.managers, "copy,demand");
  assert_string_equal(options.machine, "v100");
  assert_string_equal(options.set, "fault_us=5");
  assert_string_equal(options.gpu_memory, "75%");
  assert_string_equal(options.results, "r-%p");
  assert_string_equal(options.progress, "p");
  assert_string_equal(options.isa, "baseline");
  assert_true(options.max_instructions == UINT64_C(123456789012));
  assert_int_equal(options.threads, 3);
  assert_string_equal(options.problem, "");
  session_options_from_environment(&options);
  assert_string_equal(options.managers, "");
  assert_int_equal(options.threads, 0);
}

static void what_the_environment_gets_wrong_is_refused(void **state) {
  static char long_text[2000];
  memset(long_text, 'x', sizeof long_text - 1);
  const char *const rows[][3] = {{"FARFAULT_THREADS", "two", "FARFAULT_THREADS is not a number"}, {"FARFAULT_THREADS", "-1", "is not a number"},
                                 {"FARFAULT_THREADS", "99999", "from 0 to 4096"}, {"FARFAULT_MAX_INSTRUCTIONS", "1e9", "is not a number"},
                                 {"FARFAULT_MEMORY", long_text, "FARFAULT_MEMORY is longer than"}, {"FARFAULT_SET", long_text, "FARFAULT_SET is longer"}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    setenv(rows[i][0], rows[i][1], 1);
    session_options options;
    session_options_from_environment(&options);
    unsetenv(rows[i][0]);
    session *session = NULL;
    ff_error error = {0};
    assert_int_equal(session_create(&options, &session, &error), FF_INVALID);
    if (!strstr(error.message, rows[i][2])) fail_msg("expected '%s' in '%s'", rows[i][2], error.message);
  }
}

static void bad_options_are_refused(void **state) {
  static const struct { const char *managers, *machine, *set, *memory, *expected; } rows[] = {
      {"nonesuch", "gtx480", "", "", "nonesuch"}, {"", "gtx48", "", "", "did you mean 'gtx480'"},
      {"", "gtx480", "fault_us=x", "", "is not a number"}, {"", "gtx480", "fault_us=5,nonesuch=1", "", "nonesuch"},
      {"", "gtx480", "", "lots", "GPU memory"}, {"", "gtx480", "", "1K", "less than one page"},
      {"copy,nonesuch", "gtx480", "", "", "nonesuch"}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    session_options options = {0};
    strcpy(options.managers, rows[i].managers);
    strcpy(options.machine, rows[i].machine);
    strcpy(options.set, rows[i].set);
    strcpy(options.gpu_memory, rows[i].memory);
    session *session = NULL;
    ff_error error = {0};
    assert_int_not_equal(session_create(&options, &session, &error), FF_OK);
    assert_null(session);
    if (!strstr(error.message, rows[i].expected)) fail_msg("expected '%s' in '%s'", rows[i].expected, error.message);
  }
}

static void without_managers_it_only_counts(void **state) {
  session_options options = options_for("", "functional.json");
  session *session = created(&options);
  assert_null(session_program(session));
  assert_null(session_primary(session));
  assert_int_equal(session_machine(session)->sm_count, 15);
  exec_stats stats = {.warp_instructions = 5, .thread_instructions = 160, .warp_accesses = 2, .sectors = 8, .blocks = 1, .divergent_branches = 3, .barriers = 4};
  session_add_exec(session, &stats);
  session_add_exec(session, &stats);
  session_note(session, "a note");
  session_note(session, "a note");
  session_finish(session);
  session_finish(session);
  report_run run = results_of(&options);
  assert_true(run.complete);
  assert_int_equal(run.result_count, 0);
  assert_int_equal(run.note_count, 1);
  assert_int_equal(run.host.warp_instructions, 10);
  assert_int_equal(run.host.thread_instructions, 320);
  assert_int_equal(run.host.warp_accesses, 4);
  assert_int_equal(run.host.sectors, 16);
  assert_int_equal(run.host.blocks, 2);
  assert_int_equal(run.host.divergent_branches, 6);
  assert_int_equal(run.host.barriers, 8);
  assert_int_equal(run.host.process, getpid());
  assert_true(run.host.wall_s > 0 && run.host.peak_rss_bytes > 100000);
  assert_non_null(strstr(run.command, "study_test_session"));
  report_free(&run);
  session_free(session);
}

/* One allocation and one copy of a megabyte to the device. */
static void append_copy(trace_program *program) {
  trace_op alloc = {.kind = TRACE_OP_ALLOC, .alloc = {.address = UINT64_C(0x200000000000), .bytes = 1 << 20, .memory = TRACE_MEMORY_DEVICE, .id = 1, .name = "a"}};
  trace_op copy = {.kind = TRACE_OP_COPY, .blocking = true,
                   .copy = {.to = UINT64_C(0x200000000000), .from = 4096, .width = 1 << 20, .height = 1, .direction = TRACE_H2D}};
  trace_op_append(program, &alloc);
  trace_op_append(program, &copy);
}

static void every_manager_gets_the_stream(void **state) {
  session_options options = options_for("copy, ideal", "two.json");
  strcpy(options.set, "fault_us=7");
  session *session = created(&options);
  assert_true(session_machine(session)->fault_us == 7);
  assert_non_null(session_primary(session));
  append_copy(session_program(session));
  session_finish(session);
  report_run run = results_of(&options);
  assert_true(run.complete);
  assert_int_equal(run.result_count, 2);
  assert_string_equal(run.results[0].memory, "copy");
  assert_string_equal(run.results[1].memory, "ideal");
  for (uint32_t i = 0; i < 2; i++) {
    assert_string_equal(run.results[i].machine, "gtx480");
    assert_string_equal(run.results[i].error, "");
    assert_true(run.results[i].complete);
    assert_true(run.results[i].counters.time_ps > 0);
  }
  assert_string_equal(run.notes[0], "machine gtx480 with fault_us=7");
  report_free(&run);
  session_free(session);
}

static void a_snapshot_is_there_before_the_end(void **state) {
  session_options options = options_for("copy", "early.json");
  session *session = created(&options);
  report_run run = results_of(&options);
  assert_false(run.complete);
  report_free(&run);
  exec_stats stats = {.warp_instructions = 5};
  session_add_exec(session, &stats);
  uint64_t seen = 0;
  for (int i = 0; i < 100 && !seen; i++) {
    usleep(50000);
    run = results_of(&options);
    seen = run.host.warp_instructions;
    assert_false(run.complete);
    report_free(&run);
  }
  assert_int_equal(seen, 5);
  session_free(session);
  run = results_of(&options);
  assert_true(run.complete);
  report_free(&run);
}

static void the_process_number_is_put_in(void **state) {
  session_options options = options_for("", "run-%p.json");
  session_free(created(&options));
  char path[512];
  snprintf(path, sizeof path, "%s/run-%ld.json", folder, (long)getpid());
  assert_int_equal(access(path, R_OK), 0);
}

static void progress_is_shared(void **state) {
  session_options options = options_for("", "progress.json");
  snprintf(options.progress, sizeof options.progress, "%s/progress", folder);
  int fd = open(options.progress, O_RDWR | O_CREAT, 0600);
  assert_true(fd >= 0);
  assert_int_equal(ftruncate(fd, sizeof(session_progress)), 0);
  session_progress *area = mmap(NULL, sizeof *area, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  session *session = created(&options);
  session_progress_area(session)->blocks_done = 77;
  assert_int_equal(area->blocks_done, 77);
  assert_int_equal(area->done, 0);
  session_finish(session);
  assert_int_equal(area->done, 1);
  session_free(session);
  munmap(area, sizeof *area);
  options = options_for("", "progress.json"); /* without a file there is an area all the same */
  session = created(&options);
  session_progress_area(session)->blocks_done = 1;
  session_free(session);
}

static void gpu_memory_may_be_a_share(void **state) {
  session_options options = options_for("", "memory.json");
  strcpy(options.gpu_memory, "50%");
  session *session = created(&options);
  assert_int_equal(session_gpu_memory(session), session_machine(session)->memory_bytes / 2);
  session_free(session);
}

static void a_forked_child_leaves_the_session_alone(void **state) {
  session_options options = options_for("copy", "fork.json");
  session *session = created(&options);
  pid_t child = fork();
  if (child == 0) {
    session_finish(session);
    session_free(session);
    _exit(0);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  report_run run = results_of(&options);
  assert_false(run.complete);
  report_free(&run);
  session_free(session);
}

/* A program may have set a locale whose numbers have a comma. */
static void numbers_have_points_in_any_locale(void **state) {
  if (!setlocale(LC_ALL, "de_DE.UTF-8")) skip();
  session_options options = options_for("", "locale.json");
  strcpy(options.set, "fault_us=2.5");
  session *session = created(&options);
  assert_true(session_machine(session)->fault_us == 2.5);
  session_free(session);
  setlocale(LC_ALL, "C");
  report_run run = results_of(&options);
  report_free(&run);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_environment_becomes_options), cmocka_unit_test(what_the_environment_gets_wrong_is_refused),
      cmocka_unit_test(bad_options_are_refused), cmocka_unit_test(without_managers_it_only_counts),
      cmocka_unit_test(every_manager_gets_the_stream), cmocka_unit_test(a_snapshot_is_there_before_the_end),
      cmocka_unit_test(the_process_number_is_put_in), cmocka_unit_test(progress_is_shared),
      cmocka_unit_test(gpu_memory_may_be_a_share), cmocka_unit_test(a_forked_child_leaves_the_session_alone),
      cmocka_unit_test(numbers_have_points_in_any_locale)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
