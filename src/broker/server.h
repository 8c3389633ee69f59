/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon of one GPU: sockets, processes and the clock around the state machine (state.h).
 *
 * No client can make it wait, whatever it sends or does not send: sockets do not block, what is read
 * and what is still to be written is bounded for each, and a client that has not sent its request after
 * SERVER_PATIENCE_MS, or does not read what is sent to it, is turned away. A share ends with its connection or with
 * the process that opened it, whichever is first. */
#ifndef FF_BROKER_SERVER_H
#define FF_BROKER_SERVER_H

#include "broker/broker_place.h"

enum { SERVER_CLIENTS = 256, SERVER_PATIENCE_MS = 10000, SERVER_GRACE_MS = 3000, SERVER_OUT = 256 * 1024 };

typedef struct server_options {
  int64_t grace_ms;             /* how long it stays when no client is connected */
  void (*ready)(void *context); /* it listens; NULL: no call */
  void *context;
} server_options;

/* Serves until no client has been connected for the grace time, or SIGTERM, SIGINT or SIGHUP. FF_LIMIT: another daemon
 * serves this GPU. */
ff_status server_run(const broker_place *place, const char *gpu, const server_options *options, ff_error *error);

#endif
