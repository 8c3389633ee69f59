/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs: what is there is replaced whole or not at all, links lead on, and what is no regular file stays what it
 * is. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/output.h"
#include "base/rank.h"
#include "base/text.h"

static char folder[] = "/tmp/farfault-output-XXXXXX";

static int enter_folder(void **state) { return mkdtemp(folder) && !chdir(folder) ? 0 : -1; }
static int remove_folder(void **state) {
  char command[256];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command);
}

static void put(const char *path, const char *text) {
  assert_int_equal(ff_file_write(path, text, strlen(text), NULL), FF_OK);
}

static void expect_contents(const char *path, const char *text) {
  char *data;
  size_t size;
  assert_int_equal(ff_file_read(path, 0, &data, &size, NULL), FF_OK);
  assert_string_equal(data, text);
  free(data);
}

static void expect_no_asides(void) { assert_int_not_equal(system("ls | grep -q '[.]tmp-'"), 0); }

static mode_t mode_of(const char *path) {
  struct stat info;
  assert_int_equal(lstat(path, &info), 0);
  return info.st_mode;
}

/* In the place of the C library's: a signal may come just before. */
static int before_rename;
int rename(const char *from, const char *to) {
  if (before_rename) kill(getpid(), before_rename);
  return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

/* ---- regular files ---- */

static void a_signal_before_the_last_step_leaves_nothing_behind(void **state) {
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
    int status;
    put("file", "old");
    pid_t child = fork();
    if (!child) {
      signal(signals[i], SIG_DFL);
      setrlimit(RLIMIT_CORE, &(struct rlimit){0});
      before_rename = signals[i];
      ff_file_write("file", "new", 3, NULL);
      _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == signals[i]);
    expect_no_asides();
    expect_contents("file", "new");
  }
}

static void the_old_file_is_there_until_the_new_one_is_whole(void **state) {
  ff_output *output;
  put("file", "old");
  assert_int_equal(ff_output_open("file", FF_OUTPUT_KEPT, &output, NULL), FF_OK);
  assert_true(ff_output_is_file(output));
  ff_output_write(output, "new!", 4);
  ff_output_change(output, 3, "?", 1);
  expect_contents("file", "old");
  assert_int_equal(ff_output_finish(output, NULL), FF_OK);
  expect_contents("file", "new?");
  assert_int_equal(ff_output_open("file", FF_OUTPUT_KEPT, &output, NULL), FF_OK);
  ff_output_write(output, "never", 5);
  ff_output_discard(output);
  expect_contents("file", "new?");
  expect_no_asides();
}

static void two_outputs_of_one_process_do_not_meet(void **state) {
  ff_output *first, *second;
  assert_int_equal(ff_output_open("both", FF_OUTPUT_KEPT, &first, NULL), FF_OK);
  assert_int_equal(ff_output_open("both", FF_OUTPUT_KEPT, &second, NULL), FF_OK);
  ff_output_write(first, "first", 5);
  ff_output_write(second, "second", 6);
  assert_int_equal(ff_output_finish(second, NULL), FF_OK);
  expect_contents("both", "second");
  assert_int_equal(ff_output_finish(first, NULL), FF_OK);
  expect_contents("both", "first");
  expect_no_asides();
}

static void mode_bits_stay(void **state) {
  mode_t old = umask(022);
  put("new", "x");
  assert_int_equal(mode_of("new") & 07777, 0644);
  put("mode", "x");
  assert_int_equal(chmod("mode", 0751), 0);
  put("mode", "y");
  assert_int_equal(mode_of("mode") & 07777, 0751);
  umask(old);
}

static void links_are_followed_and_stay(void **state) {
  assert_int_equal(mkdir("deep", 0777), 0);
  put("deep/target", "old");
  assert_int_equal(symlink("target", "deep/inner"), 0);
  assert_int_equal(symlink("deep/inner", "outer"), 0);
  put("outer", "new");
  assert_true(S_ISLNK(mode_of("outer")) && S_ISLNK(mode_of("deep/inner")));
  expect_contents("deep/target", "new");
  assert_int_equal(symlink("deep/later", "dangling"), 0);
  put("dangling", "made");
  assert_true(S_ISLNK(mode_of("dangling")));
  assert_true(S_ISREG(mode_of("deep/later")));
  expect_contents("deep/later", "made");
  char *target = ff_output_target("dangling");
  assert_string_equal(target, "deep/later");
  free(target);
  assert_int_equal(symlink("circle", "circle"), 0);
  assert_int_equal(ff_file_write("circle", "x", 1, NULL), FF_IO);
}

static void another_hard_link_keeps_the_old_contents(void **state) {
  put("one", "old");
  assert_int_equal(link("one", "other"), 0);
  put("one", "new");
  expect_contents("one", "new");
  expect_contents("other", "old");
}

static void a_long_name_has_room_for_what_is_aside(void **state) {
  char name[256];
  memset(name, 'n', 255);
  name[255] = '\0';
  put(name, "long");
  expect_contents(name, "long");
  expect_no_asides();
}

static void the_same_file_has_one_name(void **state) {
  put("same", "x");
  assert_int_equal(symlink("same", "alias"), 0);
  assert_true(ff_output_same("same", "alias"));
  assert_true(ff_output_same("./same", "same"));
  assert_true(ff_output_same("not-there", "./not-there"));
  assert_false(ff_output_same("same", "one"));
  assert_false(ff_output_same("/dev/null", "/dev/null"));
  assert_false(ff_output_same(NULL, "same"));
}

/* As where the file system has no files without names. */
static void a_file_aside_has_a_name_of_its_own(void **state) {
  ff_output *output;
  ff_output_unnamed = false;
  put("named", "old");
  assert_int_equal(ff_output_open("named", FF_OUTPUT_SCRATCH, &output, NULL), FF_OK);
  assert_int_equal(system("ls | grep -q '^named[.]tmp-[0-9]*-[0-9a-f]*$'"), 0);
  ff_output_write(output, "new", 3);
  expect_contents("named", "old");
  assert_int_equal(ff_output_finish(output, NULL), FF_OK);
  expect_contents("named", "new");
  assert_int_equal(ff_output_open("named", FF_OUTPUT_KEPT, &output, NULL), FF_OK);
  ff_output_discard(output);
  expect_no_asides();
  ff_output_unnamed = true;
}

static void a_part_is_there_from_the_beginning(void **state) {
  ff_output *output;
  ff_error error;
  assert_int_equal(ff_output_open("part", FF_OUTPUT_PART, &output, NULL), FF_OK);
  ff_output_write(output, "so far", 6);
  expect_contents("part", "so far");
  ff_output_discard(output);
  expect_contents("part", "so far");
  assert_int_equal(ff_output_open("part", FF_OUTPUT_PART, &output, &error), FF_IO);
  assert_non_null(strstr(error.message, "part: cannot be written: File exists"));
}

static void a_finished_file_moves_to_where_the_output_leads(void **state) {
  put("from", "moved");
  put("to", "old");
  assert_int_equal(chmod("to", 0640), 0);
  assert_int_equal(symlink("to", "to-link"), 0);
  assert_int_equal(ff_output_move("from", "to-link", NULL), FF_OK);
  assert_true(S_ISLNK(mode_of("to-link")));
  assert_int_equal(mode_of("to") & 07777, 0640);
  expect_contents("to", "moved");
  assert_int_equal(access("from", F_OK), -1);
  put("from", "stays");
  ff_error error;
  assert_int_equal(ff_output_move("from", "no/such", &error), FF_IO);
  expect_contents("from", "stays");
}

/* ---- what is no regular file ---- */

static void a_full_device_says_so(void **state) {
  ff_error error;
  if (access("/dev/full", W_OK)) skip();
  assert_int_equal(ff_file_write("/dev/full", "x", 1, &error), FF_IO);
  assert_string_equal(error.message, "/dev/full: cannot be written: No space left on device");
  put("from", "x");
  assert_int_equal(ff_output_move("from", "/dev/full", &error), FF_IO);
  expect_contents("from", "x");
}

/* Of the real /dev/null nothing is at stake here: a copy, which only root may make. */
static void a_device_stays_one(void **state) {
  if (mknod("null", S_IFCHR | 0666, makedev(1, 3))) skip();
  int fd = open("null", O_WRONLY);
  if (fd < 0) skip(); /* a file system without devices */
  close(fd);
  put("null", "x");
  assert_true(S_ISCHR(mode_of("null")));
  put("from", "x");
  assert_int_equal(ff_output_move("from", "null", NULL), FF_OK);
  assert_true(S_ISCHR(mode_of("null")));
  assert_int_equal(access("from", F_OK), -1);
  expect_no_asides();
}

static void a_pipe_gets_all_of_it(void **state) {
  enum { BYTES = 300000 };
  assert_int_equal(mkfifo("pipe", 0600), 0);
  pid_t reader = fork();
  if (!reader) {
    char bytes[5000];
    size_t all = 0;
    usleep(50000); /* the writer is there first, and waits */
    int fd = open("pipe", O_RDONLY);
    for (ssize_t got; (got = read(fd, bytes, sizeof bytes)) > 0;) all += (size_t)got;
    _exit(all == BYTES ? 0 : 1);
  }
  char *bytes = calloc(BYTES, 1);
  assert_int_equal(ff_file_write("pipe", bytes, BYTES, NULL), FF_OK);
  free(bytes);
  int status;
  assert_int_equal(waitpid(reader, &status, 0), reader);
  assert_int_equal(status, 0);
  assert_true(S_ISFIFO(mode_of("pipe")));
}

static void a_reader_that_leaves_is_an_error_and_no_signal(void **state) {
  ff_output *output;
  ff_error error;
  assert_int_equal(mkfifo("left", 0600), 0);
  int reader = open("left", O_RDONLY | O_NONBLOCK);
  assert_int_equal(ff_output_open("left", FF_OUTPUT_KEPT, &output, NULL), FF_OK);
  assert_false(ff_output_is_file(output));
  close(reader);
  ff_output_write(output, "x", 1);
  assert_int_equal(ff_output_finish(output, &error), FF_IO);
  assert_string_equal(error.message, "left: cannot be written: Broken pipe");
  sigset_t pending;
  sigpending(&pending);
  assert_false(sigismember(&pending, SIGPIPE));
}

/* With its signals blocked, as while a program runs as our child. */
static void a_pipe_that_no_process_reads_is_left_at_a_signal(void **state) {
  assert_int_equal(mkfifo("unread", 0600), 0);
  pid_t writer = fork();
  if (!writer) {
    sigset_t set;
    ff_error error;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    alarm(20);
    kill(getpid(), SIGTERM);
    if (ff_file_write("unread", "x", 1, &error) != FF_IO ||
        !strstr(error.message, "unread: cannot be written: interrupted"))
      _exit(1);
    int reader = open("unread", O_RDONLY | O_NONBLOCK); /* it never reads: the pipe is full after 64 KiB */
    static char bytes[1 << 20];
    _exit(reader < 0 || ff_file_write("unread", bytes, sizeof bytes, &error) != FF_IO ||
          !strstr(error.message, "interrupted"));
  }
  int status;
  assert_int_equal(waitpid(writer, &status, 0), writer);
  assert_int_equal(status, 0);
}

/* ---- what cannot be ---- */

static void where_nothing_can_be_written_is_said_before(void **state) {
  static const struct {
    const char *path, *why;
  } rows[] = {{"no/such", "no/such: cannot write there"},
              {"slash/", "slash/: cannot write there: it is a folder"},
              {".", ".: cannot write there: it is a folder"},
              {"/dev/fd/9999", "/dev/fd/9999: cannot write there"},
              {"", "is empty"},
              {"file/below", "file/below: cannot write there"}};
  put("file", "x");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    ff_error error = {0};
    assert_int_equal(ff_output_check(rows[i].path, &error), FF_IO);
    assert_non_null(strstr(error.message, rows[i].why));
    assert_int_equal(ff_file_write(rows[i].path, "x", 1, &error), FF_IO);
  }
  assert_int_equal(ff_output_check("file", NULL), FF_OK);
  assert_int_equal(ff_output_check("not-yet", NULL), FF_OK);
}

/* A file that grows beyond the limit: the old one stays, and no other file is next to it. */
static void a_write_that_fails_leaves_the_old_file(void **state) {
  put("kept", "old");
  pid_t writer = fork();
  if (!writer) {
    ff_error error;
    static char bytes[1 << 16];
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &(struct rlimit){4096, 4096})) _exit(3);
    _exit(ff_file_write("kept", bytes, sizeof bytes, &error) != FF_IO ||
          !strstr(error.message, "kept: cannot be written: File too large"));
  }
  int status;
  assert_int_equal(waitpid(writer, &status, 0), writer);
  assert_int_equal(status, 0);
  expect_contents("kept", "old");
  expect_no_asides();
}

/* A program has the same numbers of open files as we have: what it closes is lost, and what it puts there is its
 * own. */
static void a_descriptor_that_was_taken_is_neither_written_nor_closed(void **state) {
  static const bool aside[] = {false, true};
  for (size_t i = 0; i < 2; i++)
    for (int closes = 0; closes < 2; closes++)
      for (int discards = 0; discards < 2; discards++) {
        int other = open("theirs", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        assert_true(other >= 0);
        put("kept", "old");
        ff_output *output;
        ff_error error = {0};
        ff_output_unnamed = !aside[i];
        int ours = dup(other); /* the lowest free number, which the output gets */
        close(ours);
        assert_int_equal(ff_output_open("kept", FF_OUTPUT_KEPT, &output, NULL), FF_OK);
        ff_output_unnamed = true;
        assert_true(fcntl(ours, F_GETFD) >= 0);
        ff_output_write(output, "new", 3);
        if (closes) close(ours);
        else assert_int_equal(dup2(other, ours), ours);
        ff_output_write(output, "er", 2);
        ff_output_change(output, 0, "N", 1);
        if (discards) ff_output_discard(output);
        else {
          assert_int_equal(ff_output_finish(output, &error), FF_IO);
          assert_non_null(strstr(error.message, "kept: cannot be written: its descriptor was closed, or given to"));
        }
        assert_int_equal(fcntl(ours, F_GETFD) >= 0, !closes);
        if (!closes) close(ours);
        close(other);
        expect_contents("theirs", "");
        expect_contents("kept", "old");
        expect_no_asides();
      }
}

/* ---- ranks ---- */

static void launchers_tell_ranks(void **state) {
  static const char *const all[] = {
      "FARFAULT_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE",
      "PMIX_RANK",     "SLURM_PROCID",         "SLURM_STEP_NUM_TASKS"};
  static const struct {
    const char *set[4];
    int rank;
  } rows[] = {
      {{NULL}, -1},
      {{"OMPI_COMM_WORLD_RANK", "3", "OMPI_COMM_WORLD_SIZE", "4"}, 3},
      {{"OMPI_COMM_WORLD_RANK", "0", "OMPI_COMM_WORLD_SIZE", "4"}, 0},
      {{"OMPI_COMM_WORLD_RANK", "0", "OMPI_COMM_WORLD_SIZE", "1"}, -1},
      {{"PMI_RANK", "2"}, 2},
      {{"PMIX_RANK", "5"}, 5},
      {{"SLURM_PROCID", "7", "SLURM_STEP_NUM_TASKS", "8"}, 7},
      {{"SLURM_PROCID", "0", "OMPI_COMM_WORLD_RANK", "6"}, 6},
      {{"PMI_RANK", "x"}, -1},
      {{"FARFAULT_RANK", "none", "OMPI_COMM_WORLD_RANK", "6"}, -1},
      {{"FARFAULT_RANK", "1", "OMPI_COMM_WORLD_RANK", "6"}, 1},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    for (size_t v = 0; v < sizeof all / sizeof *all; v++) unsetenv(all[v]);
    for (int v = 0; v < 4 && rows[i].set[v]; v += 2) setenv(rows[i].set[v], rows[i].set[v + 1], 1);
    assert_int_equal(ff_rank(), rows[i].rank);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_old_file_is_there_until_the_new_one_is_whole),
      cmocka_unit_test(a_signal_before_the_last_step_leaves_nothing_behind),
      cmocka_unit_test(two_outputs_of_one_process_do_not_meet),
      cmocka_unit_test(mode_bits_stay),
      cmocka_unit_test(links_are_followed_and_stay),
      cmocka_unit_test(another_hard_link_keeps_the_old_contents),
      cmocka_unit_test(a_long_name_has_room_for_what_is_aside),
      cmocka_unit_test(the_same_file_has_one_name),
      cmocka_unit_test(a_file_aside_has_a_name_of_its_own),
      cmocka_unit_test(a_part_is_there_from_the_beginning),
      cmocka_unit_test(a_finished_file_moves_to_where_the_output_leads),
      cmocka_unit_test(a_full_device_says_so),
      cmocka_unit_test(a_device_stays_one),
      cmocka_unit_test(a_pipe_gets_all_of_it),
      cmocka_unit_test(a_reader_that_leaves_is_an_error_and_no_signal),
      cmocka_unit_test(a_pipe_that_no_process_reads_is_left_at_a_signal),
      cmocka_unit_test(where_nothing_can_be_written_is_said_before),
      cmocka_unit_test(a_write_that_fails_leaves_the_old_file),
      cmocka_unit_test(a_descriptor_that_was_taken_is_neither_written_nor_closed),
      cmocka_unit_test(launchers_tell_ranks),
  };
  return cmocka_run_group_tests(tests, enter_folder, remove_folder);
}
