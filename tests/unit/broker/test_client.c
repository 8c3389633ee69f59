/* SPDX-License-Identifier: Apache-2.0 */
/* The client with a real broker: many threads of one process, a forked child, arguments that cannot be, a broker of
 * another version or none at all. Each test has a folder of its own, in which nothing is left. */
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <pthread.h>

#include "broker/broker_link.h"

enum { THREADS = 6, ROUNDS = 25, SMS = 16, COLOURS = 4 };

static char runtime[64];

static void pause_ms(long ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL); }

static int set_up(void **unused) {
  snprintf(runtime, sizeof runtime, "/tmp/farfault-test-XXXXXX");
  setenv("FARFAULT_BROKER", FF_BUILD_DIR "/lib/farfault/farfault-broker", 1);
  setenv("FARFAULT_BROKER_GRACE", "0.1", 1);
  return !mkdtemp(runtime) || setenv("XDG_RUNTIME_DIR", runtime, 1);
}

static int files_left(void) {
  char folder[128];
  int count = 0;
  snprintf(folder, sizeof folder, "%s/farfault", runtime);
  DIR *dir = opendir(folder);
  for (struct dirent *entry; dir && (entry = readdir(dir));) count += entry->d_name[0] != '.';
  if (dir) closedir(dir);
  return count;
}

/* The broker ends by itself, and takes its files along. */
static int tear_down(void **unused) {
  char folder[128];
  for (int i = 0; i < 500 && files_left(); i++) pause_ms(20);
  snprintf(folder, sizeof folder, "%s/farfault", runtime);
  rmdir(folder);
  return rmdir(runtime); /* fails if anything is left */
}

static broker_request want(uint32_t sms, uint32_t colours, double timeout_s) {
  return (broker_request){
      .gpu = "gpu", .gpu_sms = SMS, .gpu_colours = COLOURS, .sms = sms, .colours = colours, .timeout_s = timeout_s};
}

static broker_share *take(broker_request request) {
  broker_share *share;
  ff_error error;
  if (broker_take(&request, &share, &error)) fail_msg("%s", error.message);
  return share;
}

static void refused(broker_request request, ff_status status, const char *part) {
  broker_share *share;
  ff_error error;
  assert_int_equal(broker_take(&request, &share, &error), status);
  if (!strstr(error.message, part)) fail_msg("'%s' is not in '%s'", part, error.message);
}

static void counts_and_shares(void **unused) {
  broker_request half = {.gpu = "gpu", .gpu_sms = SMS, .gpu_colours = COLOURS, .sm_share = 0.5, .colour_share = 0.26};
  broker_share *a = take(half);
  assert_int_equal(broker_granted(a)->sm_count, 8);
  assert_int_equal(broker_granted(a)->colours, 1);
  half.sm_share = 0.01; /* at least one */
  half.colour_share = 0;
  broker_share *b = take(half);
  assert_int_equal(broker_granted(b)->sm_first, 8);
  assert_int_equal(broker_granted(b)->sm_count, 1);
  assert_int_equal(broker_granted(b)->colours, 0);
  assert_true(broker_connected(a) && broker_connected(b));
  broker_give_back(a);
  broker_share *c = take(want(8, 1, 0)); /* given back means free, at once */
  assert_int_equal(broker_granted(c)->sm_first, 0);
  broker_give_back(b);
  broker_give_back(c);
  broker_give_back(NULL);
  broker_request thirds = {.gpu = "gpu", .gpu_sms = 100, .sm_share = 0.29};
  a = take(thirds);
  assert_int_equal(broker_granted(a)->sm_count, 29);
  broker_give_back(a);
}

static void what_cannot_be(void **unused) {
  broker_request r = want(1, 0, 0);
  r.gpu = "";
  refused(r, FF_INVALID, "1 to 255 bytes");
  r.gpu = NULL;
  refused(r, FF_INVALID, "1 to 255 bytes");
  refused(want(0, 1, 0), FF_INVALID, "0 SMs cannot be had");
  refused(want(SMS + 1, 0, 0), FF_INVALID, "17 SMs cannot be had of a GPU with 16");
  refused(want(1, COLOURS + 1, 0), FF_INVALID, "5 colours cannot be had of a GPU with 4");
  r = want(1, 0, 0);
  r.gpu_sms = 0;
  refused(r, FF_INVALID, "1 to 1024 SMs");
  r.gpu_sms = BROKER_SMS + 1;
  refused(r, FF_INVALID, "1 to 1024 SMs");
  r = want(0, 0, 0);
  r.sm_share = 1.5;
  refused(r, FF_INVALID, "from 0 to 1");
  r.sm_share = -0.5;
  refused(r, FF_INVALID, "from 0 to 1");
  r.sm_share = 0.0 / 0.0;
  refused(r, FF_INVALID, "from 0 to 1");
  r = want(1, 0, 0.0 / 0.0);
  refused(r, FF_INVALID, "no number");
  assert_int_equal(files_left(), 0); /* nothing was started */
}

/* ---- threads ---- */

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static bool sm_taken[SMS];
static uint64_t colours_taken;

static void change(const broker_grant *grant, bool taken) {
  pthread_mutex_lock(&guard);
  for (uint32_t i = 0; i < grant->sm_count; i++) {
    if (sm_taken[grant->sm_first + i] == taken) abort();
    sm_taken[grant->sm_first + i] = taken;
  }
  if (taken ? colours_taken & grant->colours : ~colours_taken & grant->colours) abort();
  colours_taken ^= grant->colours;
  pthread_mutex_unlock(&guard);
}

static void *takes_and_gives_back(void *number) {
  for (uint32_t i = 0; i < ROUNDS; i++) {
    broker_share *share = take(want(1 + ((uint32_t)(uintptr_t)number + i) % 7, i % 3, BROKER_FOREVER));
    change(broker_granted(share), true);
    pause_ms(1);
    change(broker_granted(share), false);
    broker_give_back(share);
  }
  return NULL;
}

static void threads_of_one_process(void **unused) {
  pthread_t threads[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, takes_and_gives_back, (void *)i), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  assert_int_equal(colours_taken, 0);
}

/* ---- processes ---- */

static int32_t broker_pid(void) {
  broker_listing *list;
  uint32_t count;
  assert_int_equal(broker_list(&list, &count, NULL), FF_OK);
  assert_int_equal(count, 1);
  int32_t pid = list[0].daemon_pid;
  broker_list_free(list, count);
  return pid;
}

/* A child that gives back what its parent holds changes nothing; what it takes itself is its own. */
static void a_forked_child(void **unused) {
  broker_share *share = take(want(8, 2, 0));
  pid_t child = fork();
  if (child == 0) {
    broker_request rest = want(8, 2, 0);
    broker_share *own;
    for (int i = 0; i < 2; i++) {
      if (broker_take(&rest, &own, NULL) || broker_granted(own)->sm_first != 8) _exit(1);
      if (!i) broker_give_back(own);
    }
    broker_give_back(share);
    kill(broker_pid(), SIGKILL); /* the next one knows from the locks alone who has what */
    while (broker_connected(own)) pause_ms(5);
    broker_request none = want(1, 0, 0);
    broker_share *more;
    _exit(broker_take(&none, &more, NULL) == FF_LIMIT ? 0 : 2);
  }
  int status;
  waitpid(child, &status, 0);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  broker_share *again = take(want(8, 2, 2)); /* the child's */
  assert_int_equal(broker_granted(again)->sm_first, 8);
  refused(want(1, 0, 0), FF_LIMIT, "of 16 SMs 0 are free");
  broker_give_back(again);
  broker_give_back(share);
}

/* Killed again and again: what this process holds stays its own, in the eyes of each new broker. */
static void brokers_that_are_killed(void **unused) {
  broker_share *shares[4];
  for (uint32_t i = 0; i < 4; i++) {
    shares[i] = take(want(3, 1, 5));
    assert_int_equal(broker_granted(shares[i])->sm_first, 3 * i);
    assert_int_equal(broker_granted(shares[i])->colours, UINT64_C(1) << i);
    assert_true(broker_connected(shares[i]));
    kill(broker_pid(), SIGKILL);
    for (int wait = 0; wait < 500 && broker_connected(shares[i]); wait++) pause_ms(10);
    assert_false(broker_connected(shares[i]));
  }
  refused(want(5, 0, 0), FF_LIMIT, "12 SMs are held since before this broker began");
  broker_give_back(shares[1]);
  broker_share *gap = take(want(3, 1, 5));
  assert_int_equal(broker_granted(gap)->sm_first, 3);
  broker_give_back(gap);
  for (uint32_t i = 0; i < 4; i++)
    if (i != 1) broker_give_back(shares[i]);
  /* and nothing is left over; this broker clears away after the others */
  broker_give_back(take(want(SMS, COLOURS, 5)));
}

/* Programs that ignore SIGCHLD, or block all signals, have brokers that do neither. */
static void signals_of_the_caller(void **unused) {
  sigset_t all, before;
  void (*old)(int) = signal(SIGCHLD, SIG_IGN);
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  broker_share *share = take(want(1, 0, 0));
  sigprocmask(SIG_SETMASK, &before, NULL);
  signal(SIGCHLD, old);
  assert_int_not_equal(getsid(broker_pid()), getsid(0)); /* what ends our terminal does not end it */
  kill(broker_pid(), SIGUSR1);
  for (int wait = 0; wait < 500 && broker_connected(share); wait++) pause_ms(10);
  assert_false(broker_connected(share));
  broker_give_back(share);
  broker_give_back(take(want(1, 0, 0)));
}

/* ---- a broker that is none ---- */

/* A process in the broker's place: it answers one request with these bytes, and then says nothing more, or ends. */
static pid_t pretend(const broker_place *place, const char *name, const void *bytes, size_t size, bool ends) {
  int fd;
  assert_int_equal(place_listen(place, name, &fd, NULL), FF_OK);
  pid_t child = fork();
  if (child == 0) {
    int taken;
    while ((taken = accept(fd, NULL, NULL)) < 0) pause_ms(5);
    if (write(taken, bytes, size) != (ssize_t)size || ends) _exit(1);
    for (;;) pause();
  }
  close(fd);
  return child;
}

/* What a request comes to then. */
static void answered(const void *bytes, size_t size, ff_status status, const char *part) {
  char name[PLACE_NAME];
  broker_place place;
  assert_int_equal(place_open(true, &place, NULL), FF_OK);
  place_file_name("gpu", ".sock", name);
  pid_t child = pretend(&place, name, bytes, size, false);
  refused(want(1, 0, 0), status, part);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  unlinkat(place.folder, name, 0);
  place_close(&place);
}

static void answers_that_are_none(void **unused) {
  uint8_t frame[WIRE_FRAME];
  size_t size = wire_write(&(wire_message){.kind = WIRE_GRANTED, .sm_first = 16, .sms = 1}, frame);
  answered(frame, size, FF_IO, "SMs that there are not");
  size = wire_write(&(wire_message){.kind = WIRE_GRANTED, .sm_first = 0, .sms = 2, .mask = 0x10}, frame);
  answered(frame, size, FF_IO, "SMs that there are not");
  size = wire_write(&(wire_message){.kind = WIRE_END}, frame);
  answered(frame, size, FF_IO, "what no broker answers");
  answered("\xff\xff\xff\xff", 4, FF_IO, "what is no message");
  frame[4] = WIRE_VERSION + 1;
  answered(frame, size, FF_UNSUPPORTED, "speaks version 2, this program 1");
  size = wire_write(&(wire_message){.kind = WIRE_REFUSED, .status = FF_LIMIT, .text = "because"}, frame);
  answered(frame, size, FF_LIMIT, "no share of gpu: because");
}

/* A broker that ends before it has answered is one that was idle; and what it granted with its last breath does not
 * count, as another may have begun since. */
static void brokers_that_end_at_once(void **unused) {
  char name[PLACE_NAME];
  broker_place place;
  uint8_t frame[WIRE_FRAME];
  size_t size = wire_write(&(wire_message){.kind = WIRE_GRANTED, .sm_first = 15, .sms = 1}, frame);
  assert_int_equal(place_open(true, &place, NULL), FF_OK);
  place_file_name("gpu", ".sock", name);
  for (int grants = 0, tries = 0; grants < 2; grants++, tries = 0) {
    bool early; /* it was asked whether it lives before it had ended: then it did */
    do {
      pid_t child = pretend(&place, name, frame, grants ? size : 0, true);
      broker_share *share = take(want(1, 0, 0));
      waitpid(child, NULL, 0);
      early = broker_granted(share)->sm_first == 15;
      if (!early) assert_true(broker_connected(share) && !broker_granted(share)->sm_first);
      broker_give_back(share);
      if (early) unlinkat(place.folder, name, 0);
      for (int i = 0; i < 500 && !early && files_left(); i++) pause_ms(20);
    } while (early && ++tries < 50);
    assert_false(early);
  }
  place_close(&place);
}

#define ONE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
int main(void) {
  const struct CMUnitTest tests[] = {ONE(counts_and_shares),       ONE(what_cannot_be),
                                     ONE(threads_of_one_process),  ONE(a_forked_child),
                                     ONE(brokers_that_are_killed), ONE(signals_of_the_caller),
                                     ONE(answers_that_are_none),   ONE(brokers_that_end_at_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
