/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions of separate processes: what the broker hands out is disjoint, who comes too late is refused or waits, and
 * what a killed process had is free again. The child is forked before either process has opened the virtual GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "farfault/farfault.h"

typedef struct part {
  ff_result result;
  uint32_t first, count;
  bool apart;
  char message[256];
} part;

static ff_gpu *gpu;
static char folder[] = "/tmp/farfault-test-XXXXXX";

static part take(const char *share, const char *way, double timeout, ff_partition **p) {
  ff_partition_options o = {
      .size = sizeof o, .name = "tenant", .share = share, .way = way, .apart = true, .timeout_s = timeout};
  ff_partition_info info = {0};
  part made = {.result = ff_partition_create(gpu, &o, p)};
  if (made.result) snprintf(made.message, sizeof made.message, "%s", ff_message());
  else ff_partition_describe(*p, &info);
  made.first = info.sm_first;
  made.count = info.sm_count;
  made.apart = info.apart;
  return made;
}

/* Takes half of the GPU, says which, and waits to be killed. */
static void child_main(int out) {
  ff_options o = {.size = sizeof o, .driver = "virtual"};
  ff_partition *p;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  part made = {.result = ff_open(&o, &gpu)};
  if (!made.result) made = take("sm=50%", "green", 10, &p);
  if (write(out, &made, sizeof made) != sizeof made) _exit(1);
  for (;;) pause();
}

static pid_t child;
static part childs;

static int setup(void **state) {
  int ends[2];
  if (!mkdtemp(folder) || pipe(ends)) return -1;
  setenv("XDG_RUNTIME_DIR", folder, 1);
  setenv("FARFAULT_BROKER", FF_BUILD_DIR "/lib/farfault/farfault-broker", 1);
  setenv("FARFAULT_BROKER_GRACE", "0.3", 1);
  setenv("FARFAULT_MACHINE", "gtx1080ti", 1);
  unsetenv("FF_PARTITION");
  child = fork();
  if (!child) child_main(ends[1]);
  if (child < 0 || read(ends[0], &childs, sizeof childs) != sizeof childs) return -1;
  ff_options o = {.size = sizeof o, .driver = "virtual"};
  return ff_open(&o, &gpu) ? -1 : 0;
}

static int teardown(void **state) {
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  if (ff_close(gpu)) return -1;
  char inner[64];
  snprintf(inner, sizeof inner, "%s/farfault", folder);
  for (int i = 0; i < 100 && rmdir(inner); i++) usleep(50000); /* the daemon ends, and leaves nothing but its folder */
  return rmdir(folder);
}

static void processes_have_disjoint_shares(void **state) {
  ff_partition *p, *q, *r;
  if (childs.result) fail_msg("the child: %s", childs.message);
  assert_int_equal(childs.count, 14);
  assert_true(childs.apart);
  part mine = take("sm=25%", "rewrite", 0, &p);
  if (mine.result) fail_msg("%s", mine.message);
  assert_int_equal(mine.count, 7);
  assert_true(mine.first >= childs.first + childs.count || mine.first + mine.count <= childs.first);
  part late = take("sm=25%", "green", 0, &q); /* eight, in pairs: there are seven */
  assert_int_equal(late.result, FF_ERROR_BUSY);
  assert_non_null(strstr(late.message, "partition 'tenant': "));
  ff_partition_options o = {.size = sizeof o, .share = "sm=28"}; /* who does not ask for SMs apart is not counted */
  assert_int_equal(ff_partition_create(gpu, &o, &r), FF_ERROR_TOO_LARGE);
  kill(child, SIGKILL);
  late = take("sm=14", "green", 10, &q);
  if (late.result) fail_msg("%s", late.message);
  assert_int_equal(late.first, childs.first);
  assert_int_equal(ff_partition_destroy(p), FF_SUCCESS);
  mine = take("sm=14", "rewrite", 0, &p); /* what was given back */
  if (mine.result) fail_msg("%s", mine.message);
  assert_int_equal(ff_partition_destroy(p), FF_SUCCESS);
  assert_int_equal(ff_partition_destroy(q), FF_SUCCESS);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(processes_have_disjoint_shares)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
