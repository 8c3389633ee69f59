/* SPDX-License-Identifier: Apache-2.0 */
/* The client's end of a connection: whole messages, sent and received until a time (of link_now_ms; -1: for ever). */
#ifndef FF_BROKER_LINK_H
#define FF_BROKER_LINK_H

#include "broker/broker_place.h"
#include "broker/wire.h"

typedef struct broker_link {
  int fd;      /* -1: closed */
  int32_t pid; /* the daemon's */
  size_t size; /* in `bytes`: received, not taken */
  uint8_t bytes[WIRE_FRAME];
} broker_link;
#define LINK_CLOSED ((broker_link){.fd = -1})

int64_t link_now_ms(void);
/* As place_connect; the other end is this user's. */
ff_status link_open(const broker_place *place, const char *socket_name, broker_link *link, ff_error *error);
/* FF_NOT_FOUND: the other end is gone. FF_IO: not in this time. */
ff_status link_send(broker_link *link, const wire_message *message, int64_t until_ms, ff_error *error);
/* The same; FF_UNSUPPORTED: a daemon of another version. */
ff_status link_receive(broker_link *link, int64_t until_ms, wire_message *message, ff_error *error);
bool link_alive(const broker_link *link);
void link_close(broker_link *link);

#endif
