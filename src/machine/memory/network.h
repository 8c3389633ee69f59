/* SPDX-License-Identifier: Apache-2.0 */
/* The on-chip network between SMs and L2: what an SM, and a cluster of SMs, can take from it and give to it. Its
 * latency is part of l2_latency. */
#ifndef FF_MACHINE_MEMORY_NETWORK_H
#define FF_MACHINE_MEMORY_NETWORK_H

#include "machine/time.h"
#include "machine/timing.h"

typedef enum network_way { NETWORK_TO_SM, NETWORK_FROM_SM, NETWORK_WAYS } network_way;

typedef struct network_port {
  server way[NETWORK_WAYS];
} network_port;

typedef struct network {
  network_port *sms, *clusters; /* clusters: NULL where there are none */
  uint32_t cluster_sms;
} network;

/* When so many sectors that come at `at`, and without any wait would at `ask`, are through both ports. */
static inline ps network_pass(const network *n, const timing *t, uint32_t sm, network_way way, uint32_t sectors, ps ask,
                              ps at) {
  at = server_take(&n->sms[sm].way[way], ask, at, t->sm_port[way][sectors]);
  if (!n->clusters) return at;
  return server_take(&n->clusters[sm / n->cluster_sms].way[way], ask, at, t->cluster_port[way][sectors]);
}

#endif
