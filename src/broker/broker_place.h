/* SPDX-License-Identifier: Apache-2.0 */
/* Where the daemons and their clients meet: the folder farfault of the user's runtime folder ($XDG_RUNTIME_DIR, else
 * /run/user/UID), else /tmp/farfault-UID. For each GPU two files, NAME made of the GPU's text and a hash of it:
 *
 *     NAME.sock   the daemon listens there
 *     NAME.lock   the daemon holds it by flock as long as it lives, so that there is one; the holders of shares lock a byte for each SM
 *                 and each colour of theirs (fcntl), which the kernel undoes when they end, in whatever way
 *
 * The folder is this user's and no other user may look into it (checked on the open folder, by whose
 * descriptor everything in it is reached, so that nothing can be put in its place afterwards). */
#ifndef FF_BROKER_PLACE_H
#define FF_BROKER_PLACE_H

#include "broker/client.h"

enum { PLACE_NAME = 64 };

typedef struct broker_place {
  int folder;      /* descriptor */
  char path[4096]; /* for messages */
} broker_place;

/* Opens the folder, made if `make`. FF_NOT_FOUND: there is none (and not `make`). FF_INVALID: it is not fit to be
 * trusted. */
ff_status place_open(bool make, broker_place *place, ff_error *error);
/* The same for a descriptor that was handed over; place->folder is that one. */
ff_status place_check(int folder, broker_place *place, ff_error *error);
void place_close(broker_place *place);

/* NAME with an ending (".sock", ".lock") for a GPU. */
void place_file_name(const char *gpu, const char *ending, char name[PLACE_NAME]);

/* A socket of the daemon's: listening; connected (FF_NOT_FOUND: no daemon listens there; FF_LIMIT: too many at once
 * just now). The descriptors are not inherited by programs and do not block. */
ff_status place_listen(const broker_place *place, const char *name, int *fd, ff_error *error);
ff_status place_connect(const broker_place *place, const char *name, int *fd, ff_error *error);
/* Who is at the other end: FF_INVALID if it is not a process of this user. *pid 0: not known here. */
ff_status place_peer(int fd, int32_t *pid, ff_error *error);

/* ---- locks.c ---- */

/* Opens (makes) the lock file. */
ff_status lock_open(const broker_place *place, const char *name, int *fd, ff_error *error);
/* Is the open file still the one with this name? */
bool lock_is_there(const broker_place *place, const char *name, int fd);
/* The daemon's own lock. FF_LIMIT: another one has it. */
ff_status lock_own(const broker_place *place, const char *name, int *fd, ff_error *error);
/* Which SMs and colours are locked, and by which process (-1: not to be known); 0: by none. */
void lock_look(int fd, uint32_t sms, int32_t *sm_pids, uint32_t colours, int32_t *colour_pids);
/* The same for a file that may not be there, all SMs and colours; false: nothing is locked. What this process itself
 * has locked is not seen. */
bool lock_look_there(const broker_place *place, const char *name, int32_t sm_pids[BROKER_SMS],
                     int32_t colour_pids[BROKER_COLOURS]);
/* Locks a share for this process until lock_drop. FF_LIMIT: another process has some of it. */
typedef struct broker_lock broker_lock;
ff_status lock_take(const broker_place *place, const char *name, const broker_grant *grant, broker_lock **lock,
                    ff_error *error);
void lock_drop(broker_lock *lock, const broker_grant *grant);

#endif
