/* SPDX-License-Identifier: Apache-2.0 */
/* The link between host and device: two directions at once, each a server; copy engines for bulk transfers. */
#ifndef FF_MACHINE_HOST_LINK_H
#define FF_MACHINE_HOST_LINK_H

#include "machine/sim.h"
#include "machine/time.h"

typedef struct link_direction { server bus; double per_byte; uint64_t busy; } link_direction;
typedef struct host_link {
  link_direction h2d, d2h;
  server engines[2];            /* one engine: [0] carries both directions */
  server device;                /* copies within GPU memory */
  ps accounted, union_busy;     /* busy in at least one direction, until `accounted` */
  ps beside_kernels;            /* of union_busy, while a kernel ran */
} host_link;

void link_init(sim *s);
void link_account(sim *s, ps now);    /* brings the busy time up to `now` */
ps link_transfer(const sim *s, uint64_t bytes); /* how long so much takes to the GPU, once it moves */
ps link_carry(sim *s, history_cause cause, bool in, uint64_t bytes, ps from); /* one page or sector: returns when the last byte is through */
ps link_remote(sim *s, bool write, uint64_t bytes, ps ask, ps at);
ps link_copy(sim *s, history_cause cause, bool in, uint64_t bytes, bool pageable, ps from); /* an explicit or bulk transfer on a copy engine */
ps link_device_copy(sim *s, uint64_t bytes, ps from);    /* within GPU memory; bytes read and written together */

#endif
