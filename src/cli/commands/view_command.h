/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `farfault view`: view_command.c (the page, the server), view_live.c (--live). Private to cli/. */
#ifndef FF_CLI_VIEW_H
#define FF_CLI_VIEW_H

#include <signal.h>

#include "base/text.h"
#include "http/server.h"

typedef struct view_arguments {
  const char *file, *advice;
  uint16_t port; /* 0: any */
  bool open, live;
} view_arguments;

/* Adds the page of a saved run to *page; *running: the process that goes on writing it, 0: none. Returns the exit
 * status, after a message. */
int view_run_page(const view_arguments *a, ff_text *page, uint64_t *running);

#define VIEW_HTML "text/html; charset=utf-8"

/* ---- view_live.c ---- */

/* What the server has before anybody can ask. False: there is no memory. */
bool view_live_start(const view_arguments *a, const http_library *http, http_server *server);
/* Follows the file until the run that writes it has ended and those who look have its end, or until one of these
 * signals, which are blocked. Returns the exit status. */
int view_live_follow(const view_arguments *a, const http_library *http, http_server *server, const sigset_t *ending);

#endif
