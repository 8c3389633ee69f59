/* SPDX-License-Identifier: Apache-2.0 */
/* The session: what it takes from the environment, what it refuses, what it writes and when. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "report/report.h"
#include "session/session.h"
#include "unit/few_threads.h"

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
static session_options options_for(const char *list, const char *file) {
  session_options options = {0};
  strcpy(options.managers, list);
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
  static const char *const values[][2] = {{"FARFAULT_MEMORY", "copy,demand"},
                                          {"FARFAULT_MACHINE", "v100"},
                                          {"FARFAULT_SET", "fault_us=5"},
                                          {"FARFAULT_GPU_MEMORY", "75%"},
                                          {"FARFAULT_RESULTS", "r-%p"},
                                          {"FARFAULT_PROGRESS", "p"},
                                          {"FARFAULT_MAX_INSTRUCTIONS", "123456789012"},
                                          {"FARFAULT_THREADS", "3"},
                                          {"FARFAULT_BIND_SMS", "10-19"},
                                          {"FARFAULT_ISA", "baseline"}};
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) setenv(values[i][0], values[i][1], 1);
  session_options options;
  session_options_from_environment(&options);
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) unsetenv(values[i][0]);
  assert_string_equal(options.managers, "copy,demand");
  assert_string_equal(options.machine, "v100");
  assert_string_equal(options.choices.set, "fault_us=5");
  assert_string_equal(options.choices.text[SIM_CHOICE_GPU_MEMORY], "75%");
  assert_string_equal(options.results, "r-%p");
  assert_string_equal(options.progress, "p");
  assert_string_equal(options.isa, "baseline");
  assert_true(options.max_instructions == UINT64_C(123456789012));
  assert_int_equal(options.threads, 3);
  assert_int_equal(options.sm_first, 10);
  assert_int_equal(options.sm_count, 10);
  assert_string_equal(options.problem, "");
  session_options_from_environment(&options);
  assert_string_equal(options.managers, "");
  assert_int_equal(options.threads, 0);
}

static void what_the_environment_gets_wrong_is_refused(void **state) {
  static char long_text[4000];
  memset(long_text, 'x', sizeof long_text - 1);
  const char *const rows[][3] = {{"FARFAULT_THREADS", "two", "FARFAULT_THREADS is not a number"},
                                 {"FARFAULT_THREADS", "-1", "is not a number"},
                                 {"FARFAULT_THREADS", "99999", "from 0 to 4096"},
                                 {"FARFAULT_MAX_INSTRUCTIONS", "1e9", "is not a number"},
                                 {"FARFAULT_BIND_SMS", "9-3", "is not a range of SMs, as 0-9: '9-3'"},
                                 {"FARFAULT_BIND_SMS", "3-", "is not a range"},
                                 {"FARFAULT_BIND_SMS", "-3", "is not a range"},
                                 {"FARFAULT_BIND_SMS", "3- 5", "is not a range"},
                                 {"FARFAULT_BIND_SMS", "0-9x", "is not a range"},
                                 {"FARFAULT_BIND_SMS", "100-9999", "cannot be bound to SMs 100 to 9999: h200 has 132"},
                                 {"FARFAULT_MEMORY", long_text, "FARFAULT_MEMORY is longer than"},
                                 {"FARFAULT_SET", long_text, "FARFAULT_SET is longer"}};
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
  static const struct {
    const char *managers, *machine, *set, *memory, *expected;
  } rows[] = {{"nonesuch", "gtx480", "", "", "nonesuch"},
              {"", "gtx48", "", "", "did you mean 'gtx480'"},
              {"", "gtx480", "fault_us=x", "", "is not a number"},
              {"", "gtx480", "fault_us=5,nonesuch=1", "", "nonesuch"},
              {"", "gtx480", "", "lots", "GPU memory"},
              {"", "gtx480", "", "1K", "less than one page"},
              {"copy,nonesuch", "gtx480", "", "", "nonesuch"}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    session_options options = {0};
    strcpy(options.managers, rows[i].managers);
    strcpy(options.machine, rows[i].machine);
    strcpy(options.choices.set, rows[i].set);
    strcpy(options.choices.text[SIM_CHOICE_GPU_MEMORY], rows[i].memory);
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
  assert_null(session_primary(session, 0));
  assert_int_equal(session_machine(session)->sm_count, 15);
  exec_stats stats = {.warp_instructions = 5,
                      .thread_instructions = 160,
                      .warp_accesses = 2,
                      .sectors = 8,
                      .blocks = 1,
                      .divergent_branches = 3,
                      .barriers = 4};
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
  assert_non_null(strstr(run.command, "session_test_session"));
  report_free(&run);
  session_free(session);
}

/* One allocation and one copy of a megabyte to the device. */
static void append_copy(trace_program *program) {
  trace_op alloc = {
      .kind = TRACE_OP_ALLOC,
      .alloc = {
          .address = UINT64_C(0x200000000000), .bytes = 1 << 20, .memory = TRACE_MEMORY_DEVICE, .id = 1, .name = "a"}};
  trace_op copy = {
      .kind = TRACE_OP_COPY,
      .blocking = true,
      .copy = {.to = UINT64_C(0x200000000000), .from = 4096, .width = 1 << 20, .height = 1, .direction = TRACE_H2D}};
  trace_op_append(program, &alloc);
  trace_op_append(program, &copy);
}

static void every_manager_gets_the_stream(void **state) {
  session_options options = options_for("copy, ideal", "two.json");
  strcpy(options.choices.set, "fault_us=7");
  session *session = created(&options);
  assert_true(session_machine(session)->fault_us == 7);
  assert_non_null(session_primary(session, 0));
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

typedef struct taken {
  report_run run;
  int times;
} taken;

static void take(void *context, report_run *run) {
  taken *t = context;
  t->run = *run;
  t->times++;
}

static void results_may_be_taken(void **state) {
  session_options options = options_for("copy, ideal", "taken.json");
  taken t = {.times = 0};
  options.take = take;
  options.take_context = &t;
  session *session = created(&options);
  append_copy(session_program(session));
  usleep(50000); /* longer than the first period of a writer */
  assert_int_equal(t.times, 0);
  session_finish(session);
  assert_int_equal(t.times, 1);
  assert_true(t.run.complete);
  assert_int_equal(t.run.result_count, 2);
  assert_true(t.run.results[0].complete && t.run.results[0].counters.time_ps > 0);
  assert_true(access(options.results, F_OK) != 0);
  session_free(session);
  assert_int_equal(t.times, 1);
  report_free(&t.run);
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

/* A process that execs keeps its number: the program that it becomes must not take the first one's place. */
static void a_second_program_of_a_process_gets_its_own_file(void **state) {
  session_options options = options_for("", "again-%p.json");
  session_free(created(&options));
  exec_stats stats = {.warp_instructions = 77};
  session *session = created(&options);
  session_add_exec(session, &stats);
  session_free(session);
  const char *suffixes[] = {"", ".2"};
  for (uint64_t i = 0; i < 2; i++) {
    snprintf(options.results, sizeof options.results, "%s/again-%ld%s.json", folder, (long)getpid(), suffixes[i]);
    report_run run = results_of(&options);
    assert_int_equal(run.host.warp_instructions, 77 * i);
    report_free(&run);
  }
}

static void memory_that_is_missing_is_noted_once(void **state) {
  session_options options = options_for("", "room.json");
  strcpy(options.choices.text[SIM_CHOICE_GPU_MEMORY], "1M");
  session *session = created(&options);
  session_note_no_room(session, "cudaMalloc", 3 << 20, 512 << 10);
  session_note_no_room(session, "cudaMalloc", 2 << 20, 512 << 10);
  session_free(session);
  report_run run = results_of(&options);
  assert_int_equal(run.note_count, 2);
  assert_string_equal(run.notes[0], "machine gtx480 with 1.00 MiB of memory instead of 1.50 GiB");
  assert_string_equal(
      run.notes[1],
      "cudaMalloc of 3.00 MiB did not fit and failed: the GPU has 1.50 GiB, of which 512.00 KiB were taken");
  report_free(&run);
}

/* ---- endings: each in a child, which is to end as it would without a session ---- */

typedef enum ending { ABORT, TERMINATE, QUIT_QUICKLY, HANDLED, IGNORED, IN_A_CHILD, IN_A_LAUNCH, TWICE } ending;

static void take_it(int number) { _exit(5); }

static void *interrupt_later(void *process) {
  usleep(200000);
  kill(*(pid_t *)process, SIGINT);
  return NULL;
}

/* In a child: a session that copied a megabyte ends by `how`. */
static _Noreturn void end_by(ending how, const session_options *options) {
  pid_t self = getpid();
  pthread_t thread;
  if (how == HANDLED) signal(SIGTERM, take_it);
  if (how == IGNORED) signal(SIGTERM, SIG_IGN);
  if (how == IN_A_LAUNCH || how == TWICE) signal(SIGINT, SIG_DFL); /* a shell ignores it for what it runs behind */
  session *session = created(options);
  append_copy(session_program(session));
  if (how == IN_A_LAUNCH || how == TWICE) {
    trace_launch *launch = trace_launch_create(session_program(session), 4, 1); /* whose blocks never come */
    trace_op op = {.kind = TRACE_OP_LAUNCH, .launch = launch};
    trace_op_append(session_program(session), &op);
  }
  if (how == TWICE) pthread_create(&thread, NULL, interrupt_later, &self);
  if (how == ABORT) abort();
  if (how == QUIT_QUICKLY) quick_exit(3);
  if (how == IN_A_CHILD && fork() == 0) abort();
  if (how == IN_A_CHILD) wait(NULL);
  raise(how == IN_A_LAUNCH || how == TWICE ? SIGINT : SIGTERM);
  session_free(session);
  _exit(6);
}

/* The child's wait status, with the results in *run and how long it took. */
static int end_of(ending how, report_run *run, double *seconds) {
  char name[32];
  snprintf(name, sizeof name, "ending-%d.json", how);
  session_options options = options_for("copy,demand", name);
  struct timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  pid_t child = fork();
  if (child == 0) end_by(how, &options);
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  clock_gettime(CLOCK_MONOTONIC, &end);
  *seconds = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
  *run = results_of(&options);
  return status;
}

static void a_program_that_ends_badly_leaves_all_it_did(void **state) {
  static const struct {
    ending how;
    int signal, status;
    bool complete;
  } rows[] = {{ABORT, SIGABRT, 0, false},
              {TERMINATE, SIGTERM, 0, false},
              {QUIT_QUICKLY, 0, 3, true},
              {IGNORED, 0, 6, true},
              {IN_A_CHILD, SIGTERM, 0, false}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    report_run run;
    double seconds;
    int status = end_of(rows[i].how, &run, &seconds);
    assert_int_equal(WIFSIGNALED(status) ? WTERMSIG(status) : 0, rows[i].signal);
    if (!rows[i].signal) assert_int_equal(WEXITSTATUS(status), rows[i].status);
    assert_int_equal(run.complete, rows[i].complete);
    for (uint32_t k = 0; k < 2; k++) assert_true(run.results[k].complete);
    assert_int_equal(run.results[0].counters.h2d_bytes, 1 << 20);
    report_free(&run);
  }
}

static void a_handler_of_the_programs_own_is_left_alone(void **state) {
  report_run run;
  double seconds;
  int status = end_of(HANDLED, &run, &seconds);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 5);
  report_free(&run);
}

/* A kernel that is not done: its blocks will not come, and the process does not wait for them. */
static void an_interrupted_launch_does_not_keep_the_process(void **state) {
  static const ending hows[] = {IN_A_LAUNCH, TWICE};
  for (size_t i = 0; i < 2; i++) {
    report_run run;
    double seconds;
    int status = end_of(hows[i], &run, &seconds);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    assert_false(run.complete);
    assert_true(seconds < 20); /* nothing waits for ever; the machine may be slow */
    report_free(&run);
  }
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
  strcpy(options.choices.text[SIM_CHOICE_GPU_MEMORY], "50%");
  session *session = created(&options);
  /* the managers have half, the program all */
  assert_int_equal(session_gpu_memory(session), session_machine(session)->memory_bytes);
  session_free(session);
  strcpy(options.choices.text[SIM_CHOICE_GPU_MEMORY], "64G"); /* more than the machine's: the program has it too */
  session = created(&options);
  assert_int_equal(session_gpu_memory(session), UINT64_C(64) << 30);
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
  strcpy(options.choices.set, "fault_us=2.5");
  session *session = created(&options);
  assert_true(session_machine(session)->fault_us == 2.5);
  session_free(session);
  setlocale(LC_ALL, "C");
  report_run run = results_of(&options);
  report_free(&run);
}

/* Threads of simulations wait for each other where there are several devices; for one that was not made they do not.
 * (A recording and the recorders of the future are threads, too.) */
static void without_threads_it_is_not_created(void **state) {
  enum { WATCHDOG = 60, SIMULATIONS = 4, RECORDERS = 2, OTHERS = 2 };
  session *session;
  ff_error error;
  session_options options = options_for("copy,uvm+evict=belady", "no-threads");
  options.devices = 2;
  alarm(WATCHDOG);
  for (int left = 0; left < SIMULATIONS + RECORDERS + OTHERS; left++) {
    threads_left = left;
    snprintf(options.record, sizeof options.record, "%s/with-%d.fft", folder, left);
    assert_int_equal(session_create(&options, &session, &error), FF_IO);
    if (!strstr(error.message, "cannot start a thread")) fail_msg("%s", error.message);
  }
  threads_left = SIMULATIONS + RECORDERS + OTHERS;
  snprintf(options.record, sizeof options.record, "%s/with-all.fft", folder);
  session = created(&options);
  assert_int_equal(threads_left, 0);
  threads_left = -1;
  session_free(session);
  alarm(0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_environment_becomes_options),
                                     cmocka_unit_test(what_the_environment_gets_wrong_is_refused),
                                     cmocka_unit_test(bad_options_are_refused),
                                     cmocka_unit_test(without_managers_it_only_counts),
                                     cmocka_unit_test(every_manager_gets_the_stream),
                                     cmocka_unit_test(results_may_be_taken),
                                     cmocka_unit_test(a_snapshot_is_there_before_the_end),
                                     cmocka_unit_test(the_process_number_is_put_in),
                                     cmocka_unit_test(progress_is_shared),
                                     cmocka_unit_test(gpu_memory_may_be_a_share),
                                     cmocka_unit_test(a_forked_child_leaves_the_session_alone),
                                     cmocka_unit_test(numbers_have_points_in_any_locale),
                                     cmocka_unit_test(a_second_program_of_a_process_gets_its_own_file),
                                     cmocka_unit_test(memory_that_is_missing_is_noted_once),
                                     cmocka_unit_test(without_threads_it_is_not_created),
                                     cmocka_unit_test(a_program_that_ends_badly_leaves_all_it_did),
                                     cmocka_unit_test(a_handler_of_the_programs_own_is_left_alone),
                                     cmocka_unit_test(an_interrupted_launch_does_not_keep_the_process)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
