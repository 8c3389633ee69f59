/* SPDX-License-Identifier: Apache-2.0 */
/* Starting the daemon of a GPU. */
#ifndef FF_BROKER_START_H
#define FF_BROKER_START_H

#include "broker/broker_place.h"

enum { BROKER_FD_STATUS = 3, BROKER_FD_FOLDER = 4 }; /* of the daemon */
#define START_READY "ready"
#define START_BUSY "busy"

/* Starts it and waits until it listens, or another one holds its place (which may be one that is just beginning, or
 * ending). FF_NOT_FOUND: there is no such program. FF_IO: it did not come up, and why. */
ff_status start_daemon(const broker_place *place, const char *gpu, ff_error *error);

#endif
