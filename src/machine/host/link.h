/* SPDX-License-Identifier: Apache-2.0 */
/* The link between host and device: two directions at once, each a server; copy engines for bulk transfers. */
#ifndef FF_MACHINE_HOST_LINK_H
#define FF_MACHINE_HOST_LINK_H

#include "machine/observe/history.h"
#include "machine/sm/dispatch.h"
#include "machine/spec/spec.h"
#include "machine/time.h"

/* A server, and what other devices have reached over this end of the way, and have told of afterwards: it was carried
 * line by line between what this device sent. So it takes the time in which the server would be idle, from `from` on
 * and in the order of telling, and turns with what comes. Where there are more pieces than fit, the last ones are
 * one. */
enum { LINK_PIECES = 8 };
typedef struct link_server {
  server bus;
  struct {
    ps work, from; /* service time that is left; it does not begin before `from` */
  } pieces[LINK_PIECES];
  uint32_t count;
} link_server;
void link_server_add(link_server *s, ps work, ps from);         /* another device's work */
void link_server_settle(link_server *s, ps now);                /* what has been carried of that before `now` */
ps link_server_take(link_server *s, ps ask, ps at, ps service); /* as server_take */
ps link_server_free(const link_server *s);                      /* when all that is known is over */

typedef struct link_direction {
  link_server server;
  double per_byte;
  uint64_t busy;
} link_direction;
static inline ps link_free(const link_direction *d) { return link_server_free(&d->server); }
typedef struct link_crossed { /* one way, since someone has looked: bytes, begin of the first, end of the last */
  uint64_t bytes;
  ps first, last;
} link_crossed;
typedef struct copy_engines {
  server link[2]; /* one engine: [0] carries both directions */
  server device;  /* copies within GPU memory */
} copy_engines;
typedef struct host_link {
  link_direction h2d, d2h;
  ps accounted, union_busy; /* busy in at least one direction, until `accounted` */
  ps during_kernels;        /* of union_busy, while a kernel ran */
} host_link;

/* What one simulation has of the link: how long things take as it is told, whose kernels run in parallel with its
 * transfers, and what of it has moved. */
typedef struct link_port {
  host_link *wire;       /* the device's */
  copy_engines *engines; /* the device's, or its slice's */
  const kernel_time *kernels;
  sim_history *history;                /* NULL: none is kept */
  const machine_size_table *table;     /* measured bandwidths by size */
  ps latency, device_latency;          /* of the link; before a copy within GPU memory */
  double host_per_byte, dram_per_byte; /* picoseconds */
  bool two_engines;
  bool instant; /* copies take no time */
  /* its own state */
  link_crossed crossed[2]; /* from the GPU, to it: all that may pass the host's port */
  uint64_t moved[2];       /* bytes from the GPU, to it, but for what kernels and copies reach in host memory */
} link_port;

void link_account(link_port *p, ps now);              /* brings the busy time up to `now` */
ps link_transfer(const link_port *p, uint64_t bytes); /* how long so much takes to the GPU, once it moves */
/* one page or sector: returns when the last byte is through */
ps link_carry(link_port *p, history_cause cause, bool in, uint64_t bytes, ps from);
ps link_remote(link_port *p, bool write, uint64_t bytes, ps ask, ps at);
/* what another device has reached over it since `from` */
void link_carry_beside(link_port *p, bool in, uint64_t bytes, ps from);
/* an explicit or bulk transfer on a copy engine */
ps link_copy(link_port *p, history_cause cause, bool in, uint64_t bytes, bool pageable, ps from);
ps link_device_copy(link_port *p, uint64_t bytes, ps from); /* within GPU memory; bytes read and written together */

#endif
