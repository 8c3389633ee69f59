/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that take shares and give them back, or kill themselves while they hold or wait, and brokers that are
 * killed under them: no SM and no colour is ever held by two processes that live, and in the end nothing is left. Who
 * has what stands in memory that all share. */
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "broker/broker_link.h"

enum { WORKERS = 6, SMS = 16, COLOURS = 6, RUN_MS = 2500, BROKER_LIVES_MS = 150 };

typedef struct table {
  _Atomic pid_t owner[SMS + COLOURS]; /* a process that was killed leaves its number */
  _Atomic uint32_t granted, killed, told;
} table;

static table *shared;
static char runtime[64];

static void pause_ms(long ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL); }

static bool is_dead(pid_t pid) {
  char path[64], text[256], state = 0;
  snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
  FILE *file = fopen(path, "r");
  if (!file) return true;
  const char *name_end = fgets(text, sizeof text, file) ? strrchr(text, ')') : NULL;
  if (name_end) state = name_end[2];
  fclose(file);
  return !name_end || state == 'Z' || state == 'X';
}

/* Its old owner is dead, or just dying: its locks go before it has quite gone. */
static void take_cell(uint32_t cell) {
  pid_t old = atomic_exchange(&shared->owner[cell], getpid());
  for (int i = 0; old && i < 1000 && !is_dead(old); i++) pause_ms(5);
  if (old && !is_dead(old)) _exit(3);
}

static void leave_cell(uint32_t cell) {
  if (atomic_exchange(&shared->owner[cell], 0) != getpid()) _exit(4);
}

static void for_all(const broker_grant *grant, void (*change)(uint32_t cell)) {
  for (uint32_t i = 0; i < grant->sm_count; i++) change(grant->sm_first + i);
  for (uint32_t i = 0; i < COLOURS; i++)
    if (grant->colours >> i & 1) change(SMS + i);
}

/* Until the time is over, or it kills itself. */
static void work(unsigned seed, int64_t until_ms) {
  while (link_now_ms() < until_ms) {
    ff_error error;
    broker_share *share;
    broker_request request = {.gpu = "gpu",
                              .gpu_sms = SMS,
                              .gpu_colours = COLOURS,
                              .sms = 1 + (uint32_t)rand_r(&seed) % 8,
                              .colours = (uint32_t)rand_r(&seed) % 4,
                              .timeout_s = rand_r(&seed) % 3 ? 1.0 : 0.0};
    ff_status status = broker_take(&request, &share, &error);
    if (status == FF_IO && strstr(error.message, "ended while this process waited")) atomic_fetch_add(&shared->told, 1);
    else if (status && status != FF_LIMIT) {
      fprintf(stderr, "%s\n", error.message);
      _exit(5);
    }
    if (status) continue;
    for_all(broker_granted(share), take_cell);
    atomic_fetch_add(&shared->granted, 1);
    pause_ms(rand_r(&seed) % 8);
    if (rand_r(&seed) % 8 == 0) {
      atomic_fetch_add(&shared->killed, 1);
      kill(getpid(), SIGKILL);
    }
    for_all(broker_granted(share), leave_cell);
    broker_give_back(share);
  }
  _exit(0);
}

static pid_t start_worker(unsigned seed, int64_t until_ms) {
  pid_t child = fork();
  if (child == 0) work(seed, until_ms);
  return child;
}

static void kill_broker(void) {
  broker_listing *list;
  uint32_t count;
  if (!broker_list(&list, &count, NULL) && count && list[0].daemon_pid) kill(list[0].daemon_pid, SIGKILL);
  broker_list_free(list, count);
}

static void check_end(int status) {
  bool good = (WIFEXITED(status) && WEXITSTATUS(status) == 0) || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  if (!good) fail_msg("a worker ended with status %x", (unsigned)status);
}

static int files_left(const char *folder) {
  int count = 0;
  DIR *dir = opendir(folder);
  for (struct dirent *entry; dir && (entry = readdir(dir));) count += entry->d_name[0] != '.';
  if (dir) closedir(dir);
  return count;
}

static void no_two_hold_the_same(void **unused) {
  int64_t until_ms = link_now_ms() + RUN_MS, next_kill_ms = link_now_ms() + BROKER_LIVES_MS;
  unsigned seed = 1;
  int running = 0, status;
  while (link_now_ms() < until_ms || running) {
    while (running < WORKERS && link_now_ms() < until_ms) {
      assert_true(start_worker(seed++, until_ms) > 0);
      running++;
    }
    if (link_now_ms() >= next_kill_ms && link_now_ms() < until_ms) {
      kill_broker();
      next_kill_ms += BROKER_LIVES_MS;
    }
    while (running && waitpid(-1, &status, WNOHANG) > 0) {
      check_end(status);
      running--;
    }
    pause_ms(2);
  }
  print_message("%u shares, %u holders killed, %u told of a broker's end\n", shared->granted, shared->killed,
                shared->told);
  assert_true(shared->granted > 50 && shared->killed > 3);
}

/* A last one gets everything, and its broker takes all files along. */
static void nothing_is_left(void **unused) {
  char folder[128];
  broker_share *share;
  ff_error error;
  broker_request all = {
      .gpu = "gpu", .gpu_sms = SMS, .gpu_colours = COLOURS, .sms = SMS, .colours = COLOURS, .timeout_s = 5};
  if (broker_take(&all, &share, &error)) fail_msg("%s", error.message);
  broker_give_back(share);
  snprintf(folder, sizeof folder, "%s/farfault", runtime);
  for (int i = 0; i < 500 && files_left(folder); i++) pause_ms(20);
  assert_int_equal(rmdir(folder), 0);
  assert_int_equal(rmdir(runtime), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(no_two_hold_the_same), cmocka_unit_test(nothing_is_left)};
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  snprintf(runtime, sizeof runtime, "/tmp/farfault-test-XXXXXX");
  if (shared == MAP_FAILED || !mkdtemp(runtime)) return 1;
  setenv("FARFAULT_BROKER", FF_BUILD_DIR "/lib/farfault/farfault-broker", 1);
  setenv("FARFAULT_BROKER_GRACE", "0.1", 1);
  setenv("XDG_RUNTIME_DIR", runtime, 1);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
