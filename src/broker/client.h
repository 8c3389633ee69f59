/* SPDX-License-Identifier: Apache-2.0 */
/* Shares of a GPU for processes: a share is a range of SMs and a set of memory colours that no other process of this
 * user has.
 *
 *     broker_take -> the share is this process's -> broker_give_back, or the process ends, in whatever way
 *
 * Who has what is known by one daemon for each GPU. The first broker_take starts it, and it ends by itself some time
 * after the last share was given back. Nothing here touches a GPU: to stay on its SMs and in its colours is the
 * holder's business.
 *
 * Guarantees
 *   - Two shares of one GPU that are held at once have no SM and no colour in common, whatever died in between, the
 *     daemon included: a share is also locked in a file by the process that holds it, and a new daemon hands out
 *     nothing that is locked.
 *   - Shares are handed out in the order in which they were asked for: a process that waits is passed by no other, not
 *     even by one that wants less.
 *   - A share ends with its process. A child that a holder forks does not hold it.
 *   - All functions may be called from any thread. No signal handler is installed and no child is left to be waited
 *     for. */
#ifndef FF_BROKER_CLIENT_H
#define FF_BROKER_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"

enum { BROKER_SMS = 1024, BROKER_COLOURS = 64, BROKER_GPU_NAME = 255, BROKER_NAME = 63 }; /* at most; names in bytes */
#define BROKER_FOREVER (-1.0)

typedef struct broker_request { /* zero a whole one, then set what is wanted */
  const char *gpu;              /* which one: its UUID, or another text that is the same in all processes */
  /* what the whole GPU has; all processes must say the same. gpu_colours 0: its memory is not divided */
  uint32_t gpu_sms, gpu_colours;
  uint32_t sms, colours; /* how many are wanted */
  double sm_share,
      colour_share; /* where the count is 0: of the whole, above 0 to 1; rounded down, but at least one. 0: none
                                  * (not of SMs: there must be one) */
  uint32_t sm_step; /* the range begins at a multiple of it, and ends at one or with the GPU; 0: 1 */
  const char *name; /* for people, in lists and messages; NULL: the program's name alone */
  double timeout_s; /* how long to wait for a share; 0: not at all; BROKER_FOREVER */
} broker_request;

typedef struct broker_grant {
  uint32_t sm_first, sm_count;
  uint64_t colours; /* bit c: colour c */
} broker_grant;

typedef struct broker_share broker_share;

/* FF_OK: *share is the caller's, until broker_give_back. FF_LIMIT: not to be had now, or not within the time (which
 * process has what stands in the message). FF_INVALID: a request that can never be met, or that does not fit what
 * others said of the GPU. FF_UNSUPPORTED: the daemon is of another version. FF_NOT_FOUND: there is no daemon to start.
 * FF_IO: the daemon cannot be reached, or ended while we waited. */
ff_status broker_take(const broker_request *request, broker_share **share, ff_error *error);
const broker_grant *broker_granted(const broker_share *share);
/* Does the daemon live that gave it? If not (it was killed) the share is still this process's alone. Does not
 * wait. */
bool broker_connected(const broker_share *share);
/* NULL: nothing. */
void broker_give_back(broker_share *share);

/* ---- which process has what ---- */

typedef struct broker_holder {
  bool waits;  /* it has nothing yet: `grant` is counts alone (sm_count; colour_count) */
  bool orphan; /* held since before this daemon began: its name and age are not known */
  int32_t pid; /* 0: not known */
  char program[64], name[BROKER_NAME + 1];
  broker_grant grant;
  uint32_t colour_count;
  double since_s; /* so long it holds, or waits */
} broker_holder;

typedef struct broker_listing { /* of one GPU */
  char gpu[BROKER_GPU_NAME + 1];
  uint32_t sms, colours, free_sms, free_colours;
  /* 0: it was killed, and no process has asked for a share since: `gpu` is a file's name, what is free is not known
   * (0) */
  int32_t daemon_pid;
  broker_holder *holders; /* in the order of their SMs; then those that wait, in their order */
  uint32_t holder_count;
} broker_listing;

/* All GPUs of which a process holds a share or waits for one. Never starts a daemon. The caller frees them with
 * broker_list_free. A daemon that does not answer is an error; the others are listed all the same. */
ff_status broker_list(broker_listing **listings, uint32_t *count, ff_error *error);
void broker_list_free(broker_listing *listings, uint32_t count);

#endif
