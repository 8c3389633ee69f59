/* SPDX-License-Identifier: Apache-2.0 */
/* farfault-broker GPU: the daemon, a program of its own. libfarfault starts it (start.c) with what it needs: descriptor
 * BROKER_FD_STATUS, a pipe on which it says "ready", "busy" (another one serves this GPU) or what is wrong; descriptor
 * BROKER_FD_FOLDER, the folder. It leaves the process that started it (a second fork, its own session), and has none of
 * its memory and no file of his. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/server.h"
#include "broker/start.h"

/* The starter may have gone: SIGPIPE is ignored. */
static void say(const char *text) {
  ssize_t written = write(BROKER_FD_STATUS, text, strlen(text));
  (void)written;
  close(BROKER_FD_STATUS);
}

static void ready(void *context) { say(START_READY); }

/* Seconds, as FARFAULT_BROKER_GRACE says; what is none counts as the default. */
static int64_t grace(void) {
  const char *text = getenv("FARFAULT_BROKER_GRACE");
  char *end;
  double seconds = text && *text ? strtod(text, &end) : -1;
  return text && *text && !*end && seconds >= 0 && seconds <= 86400 ? (int64_t)(seconds * 1000) : SERVER_GRACE_MS;
}

int main(int argc, char **argv) {
  if (argc != 2 || fcntl(BROKER_FD_STATUS, F_SETFD, FD_CLOEXEC) || fcntl(BROKER_FD_FOLDER, F_SETFD, FD_CLOEXEC)) {
    fprintf(
        stderr,
        "farfault-broker: libfarfault starts this program when a share of a GPU is asked for; `farfault shares` lists what it handed out\n");
    return 64;
  }
  pid_t child = fork();
  if (child) return child < 0; /* the starter waits for this one */
  ff_error error;
  broker_place place = {.path = ""};
  char link[32];
  snprintf(link, sizeof link, "/proc/self/fd/%d", BROKER_FD_FOLDER);
  if (readlink(link, place.path, sizeof place.path - 1) <= 0)
    snprintf(place.path, sizeof place.path, "the broker's folder");
  signal(SIGPIPE, SIG_IGN);
  umask(077);
  if (chdir("/")) return 1;
  ff_status status = place_check(BROKER_FD_FOLDER, &place, &error);
  /* systemd-tmpfiles, which tidies up /tmp, leaves locked folders alone */
  if (!status) flock(BROKER_FD_FOLDER, LOCK_SH);
  if (!status) status = server_run(&place, argv[1], &(server_options){.grace_ms = grace(), .ready = ready}, &error);
  if (status) say(status == FF_LIMIT ? START_BUSY : error.message);
  place_close(&place);
  return status != FF_OK && status != FF_LIMIT;
}
