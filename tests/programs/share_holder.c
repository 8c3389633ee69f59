/* SPDX-License-Identifier: Apache-2.0 */
/* share_holder GPU SMS COLOURS TIMEOUT [SECONDS]: takes a share of a GPU with 20 SMs and 8 colours, says which, holds
 * it for so long (or until its stdin ends, or it is killed), says whether the broker is still there, gives it back.
 * Exit status: 0; or 10 + ff_status.
 *
 * MARKS=FOLDER: makes a file for each SM and colour that must not be there yet, and removes it before giving back (99:
 * it was there). CHILD=SECONDS: a forked child keeps everything open, and outlives it. SHARE_SMS: of the GPU, instead
 * of 20. SHARE_NAME: the request's name. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "broker/client.h"

static void wait_for(const char *seconds) {
  char byte;
  double left = seconds ? atof(seconds) : 0;
  if (seconds) nanosleep(&(struct timespec){(time_t)left, (long)((left - (double)(time_t)left) * 1e9)}, NULL);
  else
    while (read(0, &byte, 1) > 0) continue;
}

static void mark(const char *folder, const char *what, uint32_t number, bool set) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s-%u", folder, what, number);
  int fd = set ? open(path, O_CREAT | O_EXCL | O_WRONLY, 0600) : unlink(path);
  if (fd < 0) {
    perror(path);
    _exit(99);
  }
  if (set) close(fd);
}

static void mark_all(const broker_grant *grant, bool set) {
  const char *folder = getenv("MARKS");
  for (uint32_t i = 0; folder && i < grant->sm_count; i++) mark(folder, "sm", grant->sm_first + i, set);
  for (uint32_t i = 0; folder && i < BROKER_COLOURS; i++)
    if (grant->colours >> i & 1) mark(folder, "colour", i, set);
}

static void start_child(void) {
  const char *seconds = getenv("CHILD");
  if (seconds && fork() == 0) {
    wait_for(seconds);
    _exit(0);
  }
}

int main(int argc, char **argv) {
  if (argc < 5) return 64;
  ff_error error;
  broker_share *share;
  const char *sms = getenv("SHARE_SMS");
  broker_request request = {.gpu = argv[1],
                            .gpu_sms = sms ? (uint32_t)atoi(sms) : 20,
                            .gpu_colours = 8,
                            .sms = (uint32_t)atoi(argv[2]),
                            .colours = (uint32_t)atoi(argv[3]),
                            .timeout_s = atof(argv[4]),
                            .name = getenv("SHARE_NAME")};
  ff_status status = broker_take(&request, &share, &error);
  if (status) {
    fprintf(stderr, "%s\n", error.message);
    return 10 + (int)status;
  }
  const broker_grant *grant = broker_granted(share);
  mark_all(grant, true);
  printf("%u %u %llx\n", grant->sm_first, grant->sm_count, (unsigned long long)grant->colours);
  fflush(stdout);
  start_child();
  wait_for(argc > 5 ? argv[5] : NULL);
  mark_all(grant, false);
  printf("%s\n", broker_connected(share) ? "connected" : "alone");
  broker_give_back(share);
  return 0;
}
