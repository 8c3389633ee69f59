/* SPDX-License-Identifier: Apache-2.0 */
/* The lock next to a database (lock.c). Private to sweep/. */
#ifndef FF_SWEEP_LOCK_H
#define FF_SWEEP_LOCK_H

#include "base/text.h"

typedef struct sweep_lock {
  char *path;
  int fd; /* -1: not held */
} sweep_lock;

/* FF_INVALID: another process has it (the message says which); FF_IO: it cannot be made. */
ff_status sweep_lock_take(const char *database, sweep_lock *lock, ff_error *error);
void sweep_lock_release(sweep_lock *lock);

#endif
