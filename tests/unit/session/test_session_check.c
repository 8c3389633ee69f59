/* SPDX-License-Identifier: Apache-2.0 */
/* The check of a session's wiring finds each kind of damage, and nothing in a session that is sound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/session_private.h"

static session *open_session(void) {
  session_options options = {.devices = 2};
  session *s;
  ff_error error;
  strcpy(options.managers, "copy,ideal");
  assert_int_equal(session_create(&options, &s, &error), FF_OK);
  return s;
}

static bool aborts(session *s, void (*damage)(session *s)) {
  fflush(NULL);
  pid_t child = fork();
  if (!child) {
    signal(SIGABRT, SIG_DFL);
    if (!freopen("/dev/null", "w", stderr)) _exit(1);
    s->process = getpid(); /* the child has none of the threads: the check comes before they are joined */
    alarm(20);
    damage(s);
    session_finish(s);
    _exit(0);
  }
  int status;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void lose_a_manager(session *s) { s->manager_count--; }
static void lose_a_simulation(session *s) { s->managers[1].sim = NULL; }
static void lose_peers(session *s) { s->peers_count = 0; }
static void wrong_device(session *s) { s->managers[0].choice.options.device_index = 7; }
static void recorder_without_thread(session *s) { s->recorders[1].sim = s->managers[0].sim; }
static void no_stream(session *s) { s->program = NULL; }

static void test_damage(void **state) {
  (void)state;
  session *s = open_session();
  assert_true(aborts(s, lose_a_manager));
  assert_true(aborts(s, lose_a_simulation));
  assert_true(aborts(s, lose_peers));
  assert_true(aborts(s, wrong_device));
  assert_true(aborts(s, recorder_without_thread));
  assert_true(aborts(s, no_stream));
  session_free(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_damage)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
