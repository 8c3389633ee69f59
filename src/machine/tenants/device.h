/* SPDX-License-Identifier: Apache-2.0 */
/* The device. Several simulations (tenants) may be on one: each has its program, its host, its streams and its pager;
 * SMs, caches, TLBs, DRAM and the link are the device's.
 *
 * With MIG each tenant has a slice, which is a device without tenants: its events, SMs, caches, TLBs, DRAM and copy
 * engines are its own; the link, the tenants and whose turn it is are the whole device's. */
#ifndef FF_MACHINE_TENANTS_DEVICE_H
#define FF_MACHINE_TENANTS_DEVICE_H

#include <pthread.h>

#include "machine/host/link.h"
#include "machine/host/streams.h"
#include "machine/host/tier_store.h"
#include "machine/memory/hierarchy.h"
#include "machine/memory/network.h"
#include "machine/sm/sm.h"
#include "partition/frames.h"
#include "partition/hash.h"

enum { TENANTS = SIM_TENANTS, SPACE_SHIFT = 47 }; /* addresses of tenant n have n in the bits from SPACE_SHIFT on */

typedef enum tenant_wait { WAIT_NOTHING, WAIT_TIME, WAIT_NODE, WAIT_ALL, WAIT_GONE } tenant_wait;

typedef struct tenant {
  /* of its simulation; NULL: between two rounds, or idle */
  struct event_loop *loop;
  struct dispatcher *dispatch;
  struct lent *lent;
  sim_tenant given;
  struct device *part; /* what its simulation runs on: its slice of the device, or the device itself */
  sm_set sms;          /* its own */
  tenant_wait waits;   /* its thread, while another one's runs: for what */
  ps until;            /* WAIT_TIME: its host's clock has come there */
  node *node;          /* WAIT_NODE */
  pthread_cond_t turn;
  uint32_t foreign_blocks; /* of others, on its SMs */
  uint32_t lent_blocks;    /* its own, on SMs of others */
  ps idle_since;           /* no kernel of its runs: since when */
  ps wants_back;           /* since when it waits for them to be over; 0: it does not */
  ps take_back, borrowed_from, borrowed;
  uint64_t lent_bytes; /* that it read and wrote in modules of others */
} tenant;

typedef struct device {
  struct device *whole; /* what it is a slice of; a device that is none: itself */
  uint32_t uses;        /* simulations, slices and, if there may be several, its maker */
  machine_spec spec;
  event_heap heap;
  arena arena;
  sm *sms;
  uint32_t sm_total; /* with those in memory stacks, which come last */
  l2_slice *slices;
  server crossing[2]; /* between the sides of the L2 */
  dram_channel *channels;
  lru walk_cache;
  slots walkers;
  lru *shared_tlb;       /* its sets; NULL: there is none */
  lru_census tlb_census; /* of all SMs' TLBs */
  divider shared_sets;
  uint64_t removals; /* how often a page has left, or has come to lie elsewhere: load_store.h */
  network network;
  bool limits_network; /* the machine file gives a limit of the network's ports */
  host_link link;
  tier_set tiers; /* below GPU memory */
  copy_engines engines;
  warp_table warps;
  warp_list *blocked_warps; /* per SM */
  uint32_t blocks;          /* that run on any of its SMs */
  uint64_t l1_clears;       /* of the L1s of all SMs: those without blocks follow when their next one starts */
  ps next_block;            /* the first time at which the GPU could start one more block */
  /* where physical memory lies: NULL where the machine file says nothing of it */
  address_hash *hash;
  frames *frames;
  /* tenants */
  sim_isolation isolation;
  bool borrow, shared;                        /* shared: made for several */
  uint32_t tenant_count, registered, running; /* running: the tenant whose thread may work */
  uint32_t turn;                              /* the tenant that is asked first for a block */
  bool kept;                                  /* MPS: an SM was refused, for another tenant's kernel (dispatch.c) */
  bool stop;                                  /* all that do not loop are over: the others stop where they are */
  ps now;
  pthread_mutex_t work;  /* of all its simulations: the thread that works does so for all of them */
  pthread_mutex_t mutex; /* of `registered` and `running`, for threads that wait for their turn */
  tenant tenants[TENANTS];
  /* SIM_ISOLATION_NONE: time slices */
  uint32_t slice_owner; /* the tenant whose blocks may start; TENANTS: none's */
  ps slice_until;       /* when its time is up; */
  bool slice_over;      /* it is: nothing of its starts any more */
} device;

/* device.c: which tenants are on the device, and which of them works next. */
device *device_create(const machine_spec *spec, uint32_t near, bool shared); /* near: SMs in memory stacks */
void device_keep(device *d);                                                 /* one more use */
void device_release(device *d);
/* Of the tenant of a device, or of the slice that is its part: its thread begins, and this returns when it is its
 * turn. */
void device_enter(device *part, uint32_t tenant, ps clock); /* clock: its host's */
void device_leave(device *part, uint32_t tenant);
/* the device and the others go on until then; `work` is held */
void device_wait(device *part, uint32_t tenant, tenant_wait what, ps until, node *n);
/* it loops, and no other one is measured in parallel any more */
bool device_stopped(const device *part, uint32_t tenant);

#endif
