/* SPDX-License-Identifier: Apache-2.0 */
/* Which client has what of one GPU, and which waits: the daemon without sockets and clocks. It is given the time
 * (milliseconds), what clients say, and that they are gone; what is to be sent is its result.
 *
 *                       state_message: ASK             fits, and no client waited before it
 *     state_join --> JOINED ----------------> WAITS ------------------------------------> HOLDS
 *                      |                        |  its time is over, or it can never be     |
 *                      +------------------------+--------------------> (gone) <-------------+
 *                            state_leave: the connection ended, or the process did
 *
 * What always holds (state_check, after every message):
 *     free + handed out + orphaned == all, for SMs and for colours, each of them owned by one;
 *     what a holder was told is what it owns, and no more;
 *     a client that waits was there before all behind it, and the first of them cannot be served now.
 * Orphaned: locked by a process that this daemon does not know as its holder (it served an earlier daemon, or was
 * turned away and lives on). */
#ifndef FF_BROKER_STATE_H
#define FF_BROKER_STATE_H

#include "base/memory.h"
#include "broker/wire.h"

typedef enum state_phase { STATE_JOINED, STATE_WAITS, STATE_HOLDS } state_phase;

typedef struct state_client {
  uint32_t id; /* from 1 */
  int32_t pid;
  char program[64];
  state_phase phase;
  wire_message ask;
  int64_t since_ms, deadline_ms; /* since it waits or holds; STATE_WAITS: until when, -1: for ever */
  broker_grant grant;            /* STATE_HOLDS */
} state_client;

/* What the state machine needs of the world outside. */
typedef struct state_world {
  void *context;
  /* To this client. After REFUSED and END the connection is to be ended; REFUSED is already forgotten here. */
  void (*send)(void *context, uint32_t id, const wire_message *message);
  /* The process that has each SM and colour locked: its process, 0: none, -1: unknown. */
  void (*locked)(void *context, uint32_t sms, int32_t *sm_pids, uint32_t colours, int32_t *colour_pids);
} state_world;

typedef struct broker_state {
  state_world world;
  char gpu[BROKER_GPU_NAME + 1];
  uint32_t sms, colours;                                       /* 0: no client has said */
  uint32_t sm_owner[BROKER_SMS], colour_owner[BROKER_COLOURS]; /* client's id; 0: free */
  /* the process that has locked what no client has, as last looked */
  int32_t sm_orphan[BROKER_SMS], colour_orphan[BROKER_COLOURS];
  FF_VEC(state_client) clients; /* in the order of joining; those that wait in that of asking: `queue` */
  FF_VEC(uint32_t) queue;       /* ids */
} broker_state;

void state_start(broker_state *state, const char *gpu, state_world world);
void state_free(broker_state *state);
void state_join(broker_state *state, uint32_t id, int32_t pid, const char *program);
/* ASK or LIST, from a client that joined. Anything that it may not say now is refused. */
void state_message(broker_state *state, uint32_t id, const wire_message *message, int64_t now_ms);
/* Also for a client that is forgotten already. */
void state_leave(broker_state *state, uint32_t id, int64_t now_ms);
/* The time has come to state_due, or locks may have gone. */
void state_time(broker_state *state, int64_t now_ms);
/* When state_time is to be called; -1: at no time. */
int64_t state_due(const broker_state *state, int64_t now_ms);
/* Has it said all it has to? Only then its connection may be silent. */
bool state_settled(const broker_state *state, uint32_t id);
void state_check(const broker_state *state);

#endif
