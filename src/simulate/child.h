/* SPDX-License-Identifier: Apache-2.0 */
/* One child process: the program `farfault`, from its start to its end, with what it says on stderr kept.
 *
 *   simulate_child_run --> starts it --> passes its stderr on, asks go_on --> it has ended --> simulate_child_free
 *
 * When simulate_child_run returns the child is gone, whatever was returned; nothing of it is kept here but the end of
 * what it said. */
#ifndef FF_SIMULATE_CHILD_H
#define FF_SIMULATE_CHILD_H

#include "base/text.h"
#include "farfault/simulate.h"

typedef struct simulate_child {
  char *const *argv;                  /* argv[0]: its path */
  const ff_simulate_options *options; /* a whole one; environment, streams, go_on are looked at */
  /* filled: */
  int status;   /* exit status, 0 if a signal ended it */
  int signal;   /* that signal, or 0 */
  bool stopped; /* go_on said so */
  ff_text said; /* the last of what it wrote to stderr, from a line's beginning */
} simulate_child;

/* FF_IO: it could not be started. */
ff_status simulate_child_run(simulate_child *child, ff_error *error);
void simulate_child_free(simulate_child *child);

#endif
