/* SPDX-License-Identifier: Apache-2.0 */
/* Three processes that fight for shares of one GPU, two of which fit at a time: no SM is ever two processes', each
 * share is what was asked for, and each process gets its turns, as the broker serves them in the order in which they
 * ask. The processes are forked before any has opened the virtual GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#include <cmocka.h>

#include "farfault/farfault.h"

enum { PROCESSES = 3, ROUNDS = 20, SMS = 28, SHARE = 11 /* 40 % of 28 */ };

typedef struct board {   /* shared by the processes */
  atomic_int owner[SMS]; /* 1 + the process that holds the SM; 0: none */
  atomic_int rounds[PROCESSES], overlaps, wrong, most, holders;
  char message[PROCESSES][256];
} board;

static board *seen;
static char folder[] = "/tmp/farfault-test-XXXXXX";

static void hold(int self, const ff_partition_info *info) {
  if (info->sm_count != SHARE || !info->apart || info->sm_first + info->sm_count > SMS) {
    seen->wrong++;
    return;
  }
  int holders = ++seen->holders, most = seen->most;
  while (holders > most && !atomic_compare_exchange_weak(&seen->most, &most, holders)) continue;
  for (uint32_t i = info->sm_first; i < info->sm_first + info->sm_count; i++) {
    int none = 0;
    if (!atomic_compare_exchange_strong(&seen->owner[i], &none, 1 + self)) seen->overlaps++;
  }
  usleep(2000); /* while others ask */
  for (uint32_t i = info->sm_first; i < info->sm_first + info->sm_count; i++) {
    int own = 1 + self;
    if (!atomic_compare_exchange_strong(&seen->owner[i], &own, 0)) seen->overlaps++;
  }
  seen->holders--;
}

static _Noreturn void fight(int self) {
  ff_options options = {.size = sizeof options, .driver = "virtual"};
  ff_partition_options share = {
      .size = sizeof share, .name = "fighter", .share = "sm=40%", .way = "rewrite", .apart = true, .timeout_s = 60};
  ff_gpu *gpu;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  ff_result result = ff_open(&options, &gpu);
  for (int round = 0; !result && round < ROUNDS; round++) {
    ff_partition_info info = {0};
    ff_partition *p;
    if ((result = ff_partition_create(gpu, &share, &p)) || (result = ff_partition_describe(p, &info))) break;
    hold(self, &info);
    if ((result = ff_partition_destroy(p))) break;
    seen->rounds[self]++;
  }
  if (result) snprintf(seen->message[self], sizeof seen->message[self], "%s", ff_message());
  else if (ff_close(gpu)) result = FF_ERROR_BUSY;
  _exit(result != FF_SUCCESS);
}

static void three_processes_share(void **state) {
  pid_t children[PROCESSES];
  for (int i = 0; i < PROCESSES; i++) {
    children[i] = fork();
    assert_true(children[i] >= 0);
    if (!children[i]) fight(i);
  }
  for (int i = 0; i < PROCESSES; i++) {
    int status;
    assert_int_equal(waitpid(children[i], &status, 0), children[i]);
    if (status) fail_msg("process %d, after %d rounds: %s", i, seen->rounds[i], seen->message[i]);
    assert_int_equal(seen->rounds[i], ROUNDS);
  }
  assert_int_equal(seen->wrong, 0);
  assert_int_equal(seen->overlaps, 0);
  assert_int_equal(seen->most, 2); /* two shares of 40 % at a time, never three */
}

static int setup(void **state) {
  seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (seen == MAP_FAILED || !mkdtemp(folder)) return -1;
  setenv("XDG_RUNTIME_DIR", folder, 1);
  setenv("FARFAULT_BROKER", FF_BUILD_DIR "/lib/farfault/farfault-broker", 1);
  setenv("FARFAULT_BROKER_GRACE", "0.3", 1);
  setenv("FARFAULT_MACHINE", "gtx1080ti", 1);
  unsetenv("FF_PARTITION");
  return 0;
}

static int teardown(void **state) {
  char inner[64];
  snprintf(inner, sizeof inner, "%s/farfault", folder);
  for (int i = 0; i < 100 && rmdir(inner); i++) usleep(50000); /* the daemon ends, and leaves nothing but its folder */
  return rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(three_processes_share)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
