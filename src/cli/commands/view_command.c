/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault view FILE`: the page of a saved run, or of a sweep, in a browser on this machine. The page is what
 * `farfault report --html` writes; a server that is a library of its own (src/http/) hands it out until a signal ends
 * it. It is made once; with --live again whenever the file is another one (view_live.c). */
#define _GNU_SOURCE /* POSIX_SPAWN_SETSID */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/commands/report_command.h"
#include "cli/commands/view_command.h"

extern char **environ;

enum { KEY_PORT = 256, KEY_OPEN, KEY_ADVICE, KEY_LIVE, LAST_PORT = 65535 };

static const struct argp_option options[] = {
    {"port", KEY_PORT, "N", 0, "listen on this port of 127.0.0.1 (default: one that is free)", 0},
    {"open", KEY_OPEN, NULL, 0, "open the page in the browser (by xdg-open)", 0},
    {"live", KEY_LIVE, NULL, 0,
     "follow the run that writes this file (`farfault run --live -o FILE`), and end when it has ended", 0},
    {"advice", KEY_ADVICE, "FILE", 0, "show this advice in the page: what `farfault advise --json FILE` wrote", 0},
    {0}};

static uint16_t port_of(const char *value, struct argp_state *state) {
  char *end;
  long number = strtol(value, &end, 10);
  if (end == value || *end || number < 1 || number > LAST_PORT)
    cli_refuse(state, "--port: '%s' is not a port from 1 to %d", value, LAST_PORT);
  return (uint16_t)number;
}

static error_t parse(int key, char *value, struct argp_state *state) {
  view_arguments *a = state->input;
  switch (key) {
  case KEY_PORT: a->port = port_of(value, state); return 0;
  case KEY_OPEN: a->open = true; return 0;
  case KEY_LIVE: a->live = true; return 0;
  case KEY_ADVICE:
    if (!*value) cli_refuse(state, "--advice: the file's name is empty");
    a->advice = value;
    return 0;
  default: return cli_take_file(key, value, &a->file, KIND_RUN | KIND_DATABASE, state);
  }
}

/* ---- the page ---- */

int view_run_page(const view_arguments *a, ff_text *page, uint64_t *running) {
  report_run run;
  ff_error error;
  ff_text more = {0};
  char *text;
  size_t size;
  if (ff_file_read(a->file, 0, &text, &size, &error)) return cli_fail(CLI_BAD_FILE, "%s", error.message);
  int status =
      report_json_read(a->file, text, size, &run, &error) ? cli_fail(CLI_BAD_FILE, "%s", error.message) : CLI_DONE;
  if (!status) {
    *running = run.running;
    status = report_page_more(&run, a->advice, &more);
    report_free(&run);
  }
  if (!status) status = report_page_text("", "run", a->file, more.chars, text, size, page);
  free(more.chars);
  free(text);
  return status;
}

static int make_sweep_page(const view_arguments *a, ff_text *page) {
  ff_text json = {0};
  int status = report_sweep_data("", a->file, &json);
  if (!status) status = report_page_text("", "results", a->file, NULL, json.chars, json.length, page);
  free(json.chars);
  return status;
}

static int make_page(const view_arguments *a, ff_text *page) {
  uint64_t running;
  return kind_of_file(a->file) == KIND_DATABASE ? make_sweep_page(a, page) : view_run_page(a, page, &running);
}

/* ---- the server ---- */

/* NULL after a message. It stays loaded until the process ends. */
static const http_library *load_library(void) {
  char *path = cli_find_installed((const char *const[]){"../lib/farfault/libfarfault-http.so", NULL});
  if (!path) {
    cli_fail(0, "this farfault was built without an HTTP server (libmicrohttpd-dev); `farfault report --html FILE` "
                "writes the page as a file that a browser opens");
    return NULL;
  }
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const http_library *library = handle ? dlsym(handle, HTTP_LIBRARY_SYMBOL) : NULL;
  if (!library) cli_fail(0, "cannot load the HTTP server: %s", dlerror());
  else if (library->version != HTTP_LIBRARY_VERSION) cli_fail(0, "%s: is of another farfault", path);
  bool good = library && library->version == HTTP_LIBRARY_VERSION;
  free(path);
  return good ? library : NULL;
}

/* The signals that end it, but those that it was started to ignore (nohup, a shell's background), blocked from here on,
 * for the server's thread, too. *before: the mask that was. */
static void hold_signals(sigset_t *ending, sigset_t *before) {
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  sigemptyset(ending);
  for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
    struct sigaction action;
    if (!sigaction(signals[i], NULL, &action) && action.sa_handler != SIG_IGN) sigaddset(ending, signals[i]);
  }
  sigprocmask(SIG_BLOCK, ending, before);
}

/* A session of its own: what ends us does not end the browser. */
static void open_browser(const char *url, const sigset_t *mask) {
  char *words[] = {"xdg-open", (char *)(uintptr_t)url, NULL};
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  posix_spawnattr_setsigmask(&attributes, mask);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
  pid_t process;
  int failed = posix_spawnp(&process, words[0], &files, &attributes, words, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (failed) cli_fail(0, "--open: cannot start xdg-open (%s): open the address yourself", strerror(failed));
}

/* Whether there is something to serve; said if not. */
static bool publish(const view_arguments *a, const ff_text *page, const http_library *http, http_server *server) {
  if (a->live ? view_live_start(a, http, server) : http->publish(server, "/", VIEW_HTML, page->chars, page->length))
    return true;
  return cli_fail(false, "there is no memory for the page");
}

static int wait_for_signal(const sigset_t *ending) {
  int ended_by;
  sigwait(ending, &ended_by);
  return CLI_DONE;
}

static int serve(const view_arguments *a, const ff_text *page) {
  const http_library *http = load_library();
  if (!http) return CLI_FAILED;
  signal(SIGPIPE, SIG_IGN); /* of readers that left, and of our stdout */
  char why[256], url[64];
  sigset_t ending, before;
  uint16_t port;
  int status = CLI_FAILED;
  hold_signals(&ending, &before);
  http_server *server = http->start(a->port, &port, why, sizeof why);
  if (!server && a->port) return cli_fail(CLI_FAILED, "--port: cannot listen on port %u: %s", a->port, why);
  if (!server) return cli_fail(CLI_FAILED, "cannot listen on 127.0.0.1: %s", why);
  snprintf(url, sizeof url, "http://127.0.0.1:%u/", port);
  if (publish(a, page, http, server)) {
    printf("%s\n", url);
    fflush(stdout);
    cli_fail(0, "%s: its page is at %s until %s", a->file, url, a->live ? "the run has ended" : "Ctrl-C");
    if (a->open) open_browser(url, &before);
    status = a->live ? view_live_follow(a, http, server, &ending) : wait_for_signal(&ending);
  }
  http->end(server);
  return status;
}

static int view(int argc, char **argv) {
  static const struct argp argp = {
      options,
      parse,
      "RUN|DATABASE",
      "Shows the page of a run that `farfault run -o FILE` (or --json FILE) saved, or of a sweep's database, in a browser: "
      "serves it on 127.0.0.1, prints its address, and ends at Ctrl-C. Only this machine can reach it, with all its users.\v"
      "Example:\n  farfault run -o saxpy.ffr ./saxpy 1000000\n  farfault view --open saxpy.ffr\n"
      "  farfault run --live -o train.ffr ./train & farfault view --live --open train.ffr\n\n"
      "From another machine: ssh -L 8000:127.0.0.1:8000 HOST farfault view --port 8000 saxpy.ffr",
      NULL,
      NULL,
      NULL};
  view_arguments a = {0};
  cli_parse(&argp, argc, argv, &a);
  if ((a.advice || a.live) && kind_of_file(a.file) == KIND_DATABASE)
    return cli_fail(CLI_USAGE, "--%s: it is for the page of a run", a.live ? "live" : "advice");
  ff_text page = {0};
  int status = a.live ? CLI_DONE : make_page(&a, &page);
  if (!status) status = serve(&a, &page);
  free(page.chars);
  return status;
}

const cli_command cli_view = {"view", "show the page of a run or a sweep in a browser", view};
