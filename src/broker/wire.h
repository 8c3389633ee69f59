/* SPDX-License-Identifier: Apache-2.0 */
/* What a client and the daemon say to each other: frames on a stream socket.
 *
 *     4 bytes  length of the rest, 4 to WIRE_FRAME - 4
 *     2 bytes  version of the sender (this head is the same in all versions, so that any two can say that they do not
 *     fit) 2 bytes  kind
 *     fields   as wire.def has them for the kind, nothing behind them
 *
 * Numbers have their lowest byte first. What always holds: a message that wire_read took has every number within its
 * limit and every text NUL-terminated, of printable ASCII, in its field; written again it gives the same bytes. */
#ifndef FF_BROKER_WIRE_H
#define FF_BROKER_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "broker/client.h"

enum { WIRE_VERSION = 1, WIRE_HEAD = 8, WIRE_FRAME = 1024 };

typedef enum wire_kind {
#define MESSAGE(kind, number, fields) WIRE_##kind = number,
#include "broker/wire.def"
#undef MESSAGE
} wire_kind;

enum { WIRE_HOLDS, WIRE_WAITS, WIRE_ORPHAN }; /* HOLDER's state */
#define WIRE_FOREVER UINT64_MAX               /* ASK's timeout_ms */

typedef struct wire_message { /* of all kinds: those fields count that wire.def names */
  wire_kind kind;
  uint64_t gpu_sms, gpu_colours, sms, colours, sm_step, timeout_ms, sm_first, mask, ahead, status, state, pid, age_ms;
  char gpu[BROKER_GPU_NAME + 1], name[BROKER_NAME + 1], program[64], text[512];
} wire_message;

typedef enum wire_result {
  WIRE_GOOD,    /* *used bytes were one message */
  WIRE_MORE,    /* so far it is the beginning of one */
  WIRE_BAD,     /* it is none, whatever follows */
  WIRE_FOREIGN, /* of the version *version */
} wire_result;

/* The first message in these bytes. */
wire_result wire_read(const uint8_t *bytes, size_t size, wire_message *message, size_t *used, uint32_t *version);
/* The message's bytes in `frame`; how many. Texts are cut to what fits their field. */
size_t wire_write(const wire_message *message, uint8_t frame[WIRE_FRAME]);
/* Copies a text that came from anywhere: what is not printable ASCII becomes '?'. */
void wire_clean(const char *text, char *out, size_t room);

#endif
