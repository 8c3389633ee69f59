/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault view --live`: the page of a file that a run writes while it goes on (`--live` of run and sim).
 *
 *   "/"          view_live.html, which asks for
 *   "/state"     {"file", "version", "state"}, and shows
 *   "/run.html"  the page of the file's newest contents
 *
 *   WAITING ──file_look: it is of a run that goes on──▶ RUNNING ──file_look: it is of one that has ended──▶ ENDED
 *                                                          └──process_is_gone, and the file is as it was──▶ LOST
 *
 * A file that is not there, or whose run has ended before, is shown and waited for. After the end it serves on until
 * the last page was read, as long as a reader asks: a browser's hidden page asks once a minute. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "cli/cli.h"
#include "cli/commands/view_command.h"

extern const char view_live_html[]; /* the file next to this one */

enum { PATIENCE_S = 90 };

typedef enum follow_state { WAITING, RUNNING, ENDED, LOST } follow_state;
static const char *const state_names[] = {"waiting", "running", "ended", "lost"};

typedef struct follow {
  const view_arguments *arguments;
  const http_library *http;
  http_server *server;
  follow_state state;
  uint64_t running; /* the process that writes the file */
  uint64_t version; /* of the page */
  struct stat seen; /* the file when it was last read; st_ino 0: never */
} follow;

static bool publish_page(follow *f, const char *page, size_t size) {
  f->version++;
  return f->http->publish(f->server, "/run.html", VIEW_HTML, page, size);
}

static bool publish_state(const follow *f) {
  const char *slash = strrchr(f->arguments->file, '/');
  const char *name = slash ? slash + 1 : f->arguments->file;
  json_t *file = json_string(name);
  json_t *root = json_pack("{sosIss}", "file", file ? file : json_string("?"), "version", (json_int_t)f->version,
                           "state", state_names[f->state]);
  char *text = json_dumps(root, JSON_COMPACT);
  bool good = f->http->publish(f->server, "/state", "application/json", text, strlen(text));
  free(text);
  json_decref(root);
  return good;
}

bool view_live_start(const view_arguments *a, const http_library *http, http_server *server) {
  static const char nothing[] = "<!doctype html><title>farfault view</title><p>There is no run yet.\n";
  follow f = {.arguments = a, .http = http, .server = server};
  return http->publish(server, "/", VIEW_HTML, view_live_html, strlen(view_live_html)) &&
         http->publish(server, "/run.html", VIEW_HTML, nothing, sizeof nothing - 1) && publish_state(&f);
}

static bool is_newer(const follow *f, const struct stat *info) {
  return info->st_ino != f->seen.st_ino || info->st_size != f->seen.st_size ||
         info->st_mtim.tv_sec != f->seen.st_mtim.tv_sec || info->st_mtim.tv_nsec != f->seen.st_mtim.tv_nsec;
}

static bool process_is_gone(uint64_t process) {
  return process > INT32_MAX || (kill((pid_t)process, 0) && errno == ESRCH);
}

/* What the file's new contents mean. */
static follow_state state_after(const follow *f) {
  if (f->running && !process_is_gone(f->running)) return RUNNING;
  if (f->state == RUNNING) return f->running ? LOST : ENDED;
  return WAITING;
}

/* Reads the file if it is not what it was. Returns the exit status: what cannot be shown has been said. */
static int file_look(follow *f) {
  struct stat info;
  if (stat(f->arguments->file, &info) || !is_newer(f, &info)) return CLI_DONE;
  f->seen = info;
  ff_text page = {0};
  int status = view_run_page(f->arguments, &page, &f->running);
  if (!status) {
    f->state = state_after(f);
    if (!publish_page(f, page.chars, page.length) || !publish_state(f))
      status = cli_fail(CLI_FAILED, "there is no memory for the page");
  }
  free(page.chars);
  return status;
}

/* One look at everything. A process that has gone may have written its end just before: the file is looked at after
 * that was seen. */
static int look(follow *f) {
  bool gone = f->state == RUNNING && process_is_gone(f->running);
  int status = file_look(f);
  if (status || !gone || f->state != RUNNING) return status;
  f->state = LOST;
  return publish_state(f) ? CLI_DONE : cli_fail(CLI_FAILED, "there is no memory for the page");
}

/* Whether the run has ended, and its readers have got the end or are gone. */
static bool is_over(const follow *f) {
  if (f->state != ENDED && f->state != LOST) return false;
  double quiet = f->http->quiet(f->server);
  return quiet < 0 || quiet > PATIENCE_S ||
         (f->http->was_read(f->server, "/state") && f->http->was_read(f->server, "/run.html"));
}

int view_live_follow(const view_arguments *a, const http_library *http, http_server *server, const sigset_t *ending) {
  const struct timespec tick = {.tv_nsec = 300 * 1000 * 1000}, now = {0};
  follow f = {.arguments = a, .http = http, .server = server};
  int status = look(&f);
  if (!status && f.state == WAITING)
    cli_fail(0, "%s: waiting for a run to write it (farfault run --live -o %s ...)", a->file, a->file);
  const struct timespec *pause = &now;
  while (!status && !is_over(&f) && sigtimedwait(ending, NULL, pause) < 0) {
    pause = &tick;
    status = look(&f);
  }
  if (f.state == LOST) status = cli_fail(CLI_FAILED, "%s: the run has ended without writing its end", a->file);
  else if (f.state == ENDED) cli_fail(0, "%s: the run has ended; `farfault view %s` shows it again", a->file, a->file);
  return status;
}
