/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of a sweep on a cluster say to each other, and the interface to what carries it (src/mpi/). Rank 0 has
 * the study and the database, and hands out the points; the others run them.
 *
 *   READY  a rank is there: how many points at once, its farfault's version, its host        others -> 0
 *   TASK   run this: the words of a command, each ended by a NUL                             0 -> others
 *   DONE   its exit status, seconds, what it said, its JSON                                  others -> 0
 *   ALIVE  nothing else to say                                                               both ways
 *   STOP   no more tasks: end what runs, answer BYE                                          0 -> others
 *   BYE    nothing runs any more                                                             others -> 0
 *   END    leave; status 1: all ranks are there to take leave of                             0 -> others */
#ifndef FF_SWEEP_MESSAGE_H
#define FF_SWEEP_MESSAGE_H

#include "base/text.h"

typedef enum sweep_kind {
  SWEEP_READY = 'R',
  SWEEP_TASK = 'T',
  SWEEP_DONE = 'D',
  SWEEP_ALIVE = 'A',
  SWEEP_STOP = 'S',
  SWEEP_BYE = 'B',
  SWEEP_END = 'E'
} sweep_kind;

typedef struct sweep_message {
  sweep_kind kind;
  uint32_t task;
  int32_t status;
  double seconds;
  const char *texts[2]; /* what they are is the kind's; a NUL follows each */
  size_t sizes[2];
} sweep_message;

void sweep_message_write(const sweep_message *message, ff_text *out);
/* The texts point into `bytes`. False: it is no message. */
bool sweep_message_read(const char *bytes, size_t size, sweep_message *message);

#define SWEEP_RANKS_SYMBOL "farfault_ranks"
enum { SWEEP_RANKS_VERSION = 1 };

/* The carrier: a shared object that is loaded if mpirun started us. Only one thread calls it. */
typedef struct sweep_ranks {
  int version;
  /* Joins the others; false with a message if that is not possible. */
  bool (*start)(int *rank, int *count, char *why, size_t why_size);
  /* The bytes are copied; never waits for the receiver. */
  void (*send)(int to, const void *bytes, size_t size);
  /* The next whole message, which the caller frees; false: there is none now. */
  bool (*receive)(int *from, char **bytes, size_t *size);
  /* Leaves. `all`: every rank does, so that they may wait for each other. What was sent has gone out, as far as that is
   * possible within `seconds`. */
  void (*end)(bool all, double seconds);
} sweep_ranks;

#endif
