/* SPDX-License-Identifier: Apache-2.0 */
/* Where the simulations of several devices meet (peers.h). No device is more than one meeting ahead of the slowest, so
 * that two times of each are enough: by the meeting's number, even or odd. */
#include "machine/host/peers.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"
#include "trace/origin.h"

struct sim_peers {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint32_t first, count;
  owners *owners; /* of managed pages, under this manager */
  tier_log *tiers;
  uint64_t merged; /* meetings whose notes are in it */
  struct {
    uint64_t meetings, said[2], operation[2];
    bool gone;
  } each[TRACE_DEVICES_MAX];
};

sim_peers *sim_peers_create(uint32_t first, uint32_t count) {
  FF_ASSERT(count && first + count <= TRACE_DEVICES_MAX);
  sim_peers *peers = ff_alloc(sizeof *peers);
  peers->first = first;
  peers->count = count;
  peers->owners = owners_create();
  peers->tiers = tier_log_create();
  pthread_mutex_init(&peers->lock, NULL);
  pthread_cond_init(&peers->changed, NULL);
  return peers;
}

void sim_peers_free(sim_peers *peers) {
  if (!peers) return;
  pthread_cond_destroy(&peers->changed);
  pthread_mutex_destroy(&peers->lock);
  owners_free(peers->owners);
  tier_log_free(peers->tiers);
  free(peers);
}

uint64_t peers_meet(sim_peers *peers, uint32_t device, uint64_t operation, uint64_t time) {
  pthread_mutex_lock(&peers->lock);
  uint64_t number = peers->each[device].meetings, latest = time;
  peers->each[device].said[number % 2] = time;
  peers->each[device].operation[number % 2] = operation;
  peers->each[device].meetings++;
  pthread_cond_broadcast(&peers->changed);
  for (uint32_t d = peers->first; d < peers->first + peers->count; d++) {
    while (peers->each[d].meetings <= number && !peers->each[d].gone) pthread_cond_wait(&peers->changed, &peers->lock);
    bool was_there = peers->each[d].meetings > number;
    FF_CHECK_DEEP(!was_there || peers->each[d].operation[number % 2] == operation);
    if (was_there && peers->each[d].said[number % 2] > latest) latest = peers->each[d].said[number % 2];
  }
  /* the first that goes on: all others wait here still */
  if (peers->merged == number) {
    owners_merge(peers->owners);
    tier_log_merge(peers->tiers);
    peers->merged++;
  }
  pthread_mutex_unlock(&peers->lock);
  return latest;
}

owners *peers_owners(sim_peers *peers) { return peers->owners; }
tier_log *peers_tiers(sim_peers *peers) { return peers->tiers; }

void peers_leave(sim_peers *peers, uint32_t device) {
  pthread_mutex_lock(&peers->lock);
  peers->each[device].gone = true;
  pthread_cond_broadcast(&peers->changed);
  pthread_mutex_unlock(&peers->lock);
}
