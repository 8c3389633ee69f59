/* SPDX-License-Identifier: Apache-2.0 */
/* A process that does not end by exit: by a signal that it does not handle (a crash, Ctrl-C, a time limit), or by
 * quick_exit. A part that has results writes them first, in a thread of its own:
 *
 *   signal -> the handler sets `number`, posts `wake`, waits for `done` -> the signal again, by default
 *   thread -> waits for `wake`, sees `number`, writes what there is, sets `done`
 *
 * The process ends as it would without us, by the same signal, a little later; only signals that had
 * their default action when the first one began to watch are looked at; the handler itself does what a handler may (it
 * takes no lock and allocates nothing), and gives up waiting after a while, as the program may have died holding a lock
 * that the thread needs: two seconds after what stops a process from outside; a second Ctrl-C, half a
 * second later or more, ends the process at once. Nothing can look at SIGKILL and _exit. */
#ifndef FF_BASE_ENDING_H
#define FF_BASE_ENDING_H

#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

enum { FF_ENDING_QUICK_EXIT = -1 };

typedef struct ff_ending {
  sem_t wake;        /* the owner may post it, too, for its own purposes */
  atomic_int number; /* the signal that ends the process, FF_ENDING_QUICK_EXIT, or 0 */
  atomic_bool done;  /* set by the thread: the process may end */
  pid_t process;     /* a forked child's ending is not ours */
} ff_ending;

void ff_ending_create(ff_ending *ending); /* not watched yet */
void ff_ending_free(ff_ending *ending);   /* after ff_ending_forget */
/* From now on, until ff_ending_forget. At most 4 at once; further ones are not told. */
void ff_ending_watch(ff_ending *ending);
void ff_ending_forget(ff_ending *ending);
/* Milliseconds that the thread has for what `number` ends: longer after a crash than where someone waits. */
int ff_ending_patience(int number);

#endif
