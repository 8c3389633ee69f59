/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that end a process which has something to write first: one waits for the writer, a second one does not. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/ending.h"

static ff_ending *shared_ending(void) {
  return mmap(NULL, sizeof(ff_ending), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

/* A process of one thread whose writer never comes. */
static pid_t start(ff_ending *ending) {
  pid_t child = fork();
  if (child) return child;
  signal(SIGINT, SIG_DFL);
  ff_ending_create(ending);
  ff_ending_watch(ending);
  atomic_store(&ending->done, true); /* "ready", for the parent */
  for (;;) pause();
}

static uint64_t blocked_signals(pid_t process) {
  char path[64], line[256];
  unsigned long long mask = 0;
  snprintf(path, sizeof path, "/proc/%ld/status", (long)process);
  FILE *file = fopen(path, "r");
  while (file && fgets(line, sizeof line, file))
    if (sscanf(line, "SigBlk: %llx", &mask) == 1) break;
  if (file) fclose(file);
  return mask;
}

static int end_of(pid_t child) {
  int status;
  alarm(60); /* a watchdog */
  assert_int_equal(waitpid(child, &status, 0), child);
  alarm(0);
  return status;
}

static void ready(ff_ending *ending) {
  while (!atomic_load(&ending->done)) usleep(1000);
  atomic_store(&ending->done, false);
}

static void a_second_interrupt_gets_through(void **state) {
  ff_ending *ending = shared_ending();
  pid_t child = start(ending);
  ready(ending);
  kill(child, SIGINT);
  while (!atomic_load(&ending->number)) usleep(1000);
  uint64_t blocked = blocked_signals(child); /* its only thread waits in the handler, if it is there still */
  assert_int_equal(blocked >> (SIGINT - 1) & 1, 0);
  usleep(600000);
  kill(child, SIGINT);
  int status = end_of(child);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
  munmap(ending, sizeof *ending);
}

static void a_writer_that_never_comes_is_given_up(void **state) {
  ff_ending *ending = shared_ending();
  pid_t child = start(ending);
  ready(ending);
  kill(child, SIGTERM);
  int status = end_of(child);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  munmap(ending, sizeof *ending);
}

/* The handler is not what ends the process while the writer works: it waits for it. */
static void the_writer_is_waited_for(void **state) {
  ff_ending *ending = shared_ending();
  pid_t child = start(ending);
  ready(ending);
  kill(child, SIGINT);
  while (!atomic_load(&ending->number)) usleep(1000);
  assert_int_equal(atomic_load(&ending->number), SIGINT);
  atomic_store(&ending->done, true);
  int status = end_of(child);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
  munmap(ending, sizeof *ending);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_second_interrupt_gets_through),
                                     cmocka_unit_test(a_writer_that_never_comes_is_given_up),
                                     cmocka_unit_test(the_writer_is_waited_for)};
  return cmocka_run_group_tests_name("ending", tests, NULL, NULL);
}
