/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes whose output is kept in memory: what a sweep's points run in. Nothing of them is left on the disk,
 * and none outlives us, however we end. */
#ifndef FF_CLI_SLOTS_H
#define FF_CLI_SLOTS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SLOT_OUTPUT "/dev/fd/3" /* the file that a child writes its result to */

enum { SLOT_TASKS = 64 }; /* of one process: what it may have left behind in memory ends with it */

typedef struct slot {
  pid_t process;   /* 0: there is none; < 0: it could not be started */
  bool busy;       /* it has a task; else it waits for one */
  uint32_t task;   /* the caller's */
  int output, log; /* descriptors of memory files */
  int orders;      /* of a socket to a process that takes task after task; -1: it ends with this one */
  double begun;    /* the task, in seconds of the monotonic clock */
} slot;

typedef struct slot_end { /* slot_end_free */
  uint32_t task;
  int status;     /* as a shell has it */
  double seconds; /* it took */
  char *output;   /* owned, ends in a NUL; NULL: nothing was written, or too much */
  size_t output_size;
  char *log; /* the last lines of what it said, owned */
} slot_end;

typedef struct slots {
  slot *items;
  uint32_t count, running;
  sigset_t mask; /* that children start with */
  char *folder;  /* their TMPDIR, owned; NULL: ours */
  /* What a child does as a copy of this process, which saves it a program's start; returns its exit status. It is
   * called again for the next task, up to SLOT_TASKS times: with the same environment, whatever it has done to it; no
   * handler of atexit follows. NULL: the child becomes the program argv[0]. */
  int (*body)(int argc, char **argv);
  /* Whether such a task may leave more behind than memory: its process ends with it. NULL: none does. */
  bool (*ends)(char *const *argv);
} slots;

double slots_now(void);
/* ", about 3 min left", on stderr: the end of a progress line. 0: nothing. */
void slots_show_left(double seconds);
/* `name`: of a folder for the children's temporary files, the same for each sweep of a database at a rank, so that the
 * next one removes what one that was killed has left. */
void slots_start(slots *s, uint32_t count, const sigset_t *mask, const char *name);
/* Starts `argv` in a free slot: argv[0] is its path, stdin is empty. A child that cannot be started ends at once with
 * CLI_NOT_EXECUTABLE and a line in its log. */
void slots_run(slots *s, uint32_t task, char **argv);
/* One that has ended since; false: none has. */
bool slots_reap(slots *s, slot_end *end);
void slot_end_free(slot_end *end);
/* Kills what runs, removes the folder, and frees all. */
void slots_stop(slots *s);

#endif
