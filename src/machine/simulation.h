/* SPDX-License-Identifier: Apache-2.0 */
/* The wiring: one simulation and the parts that it is made of. Private to machine/ and its tests.
 *
 * Its state changes with events, which leave the queue in order of time (events.h), and with the host's operations.
 * What other threads read of it they read under its lock (answers.h). */
#ifndef FF_MACHINE_SIMULATION_H
#define FF_MACHINE_SIMULATION_H

#include "base/check.h"
#include "base/memory.h"
#include "base/text.h"
#include "machine/answers.h"
#include "machine/event_loop.h"
#include "machine/host/hints.h"
#include "machine/host/host.h"
#include "machine/host/host_transfer.h"
#include "machine/host/link.h"
#include "machine/host/peer_link.h"
#include "machine/host/streams.h"
#include "machine/host/tier_store.h"
#include "machine/host/virtual_memory.h"
#include "machine/memory/address_map.h"
#include "machine/memory/declared_residency.h"
#include "machine/memory/far_fault.h"
#include "machine/memory/hierarchy.h"
#include "machine/memory/tlb.h"
#include "machine/observe/observer.h"
#include "machine/observe/profile.h"
#include "machine/sim.h"
#include "machine/sm/dispatch.h"
#include "machine/sm/rounds.h"
#include "machine/sm/sample.h"
#include "machine/stacks/controller.h"
#include "machine/stacks/learn.h"
#include "machine/stacks/stacks.h"
#include "machine/tenants/device.h"
#include "machine/tenants/idle_sharing.h"
#include "machine/timing.h"
#include "policy/policies.h"

struct sim {
  /* what it is given once */
  device *d;
  uint32_t tenant;          /* its number on the device */
  uint64_t space;           /* tenant << SPACE_SHIFT */
  const machine_spec *spec; /* &own_spec */
  const manager *manager;   /* &own_manager */
  sm *sms;                  /* the device's */
  pager *pager;
  stacks *stacks; /* memory stacks; NULL: the machine has none */
  trace_program *program;
  trace_reader *reader;
  trace_future *future;  /* that its policies ask; NULL: they do not */
  trace_future *written; /* that it writes; NULL: none */
  ff_policy_instance prefetch, evict;
  uint32_t threads; /* on which its SMs run in rounds (sm/rounds.h); 0: event by event */
  bool measures;    /* what they take, in */
  round_parts parts;
  ps began; /* the device's time when it was made */
  timing t;
  /* its parts; the first ones are asked for every line */
  agenda agenda;
  front_end front;
  access_path accesses;
  memory memory;
  gmmu gmmu;
  link_port link;
  peer_link peers;
  tier_store tiers;
  far_faults faults;
  dispatcher dispatch;
  sampler sampler;
  controller controller;
  learner learner;
  placing placing;
  lent lent;
  host host;
  memory_budget budget;
  streams streams;
  event_loop loop;
  transfers transfers;
  segments segments;
  hints hints;
  mappings mappings;
  observer observer;
  profile profile;
  answers answers;
  /* what was chosen, apart from what is read all over */
  machine_spec own_spec; /* with this simulation's values */
  manager own_manager;   /* with its way of handling far-faults */
  char label[SIM_LABEL_LENGTH];
};

/* wiring.c */
void sim_wire(sim *s, const sim_options *options);
void sim_wire_pager(sim *s); /* once it is made, with what the other parts say */

/* Of the run, at this time; `simulation` is a sim. For profile.h. */
void sim_totals(void *simulation, ps time, sim_counters *total);

void sim_check(const sim *s); /* at the program's end: sim_check.c */

static inline bool is_paged(const sim *s) { return manager_pages(s->manager); }

#endif
