/* SPDX-License-Identifier: Apache-2.0 */
/* What an idle tenant has, used by the others: only with `borrow`. */
#ifndef FF_MACHINE_TENANTS_IDLE_SHARING_H
#define FF_MACHINE_TENANTS_IDLE_SHARING_H

#include "base/memory.h"
#include "machine/memory/address_map.h"
#include "machine/memory/hierarchy.h"
#include "machine/sm/dispatch.h"
#include "machine/tenants/device.h"

typedef struct moved_page {
  uint64_t address, home;
} moved_page; /* virtual; physical: where it goes back to */

typedef struct lent { /* what a tenant has of others */
  device *d;
  uint32_t tenant;
  const machine_spec *spec;
  const agenda *agenda;
  const kernel_time *kernels;
  memory *memory;
  placing *map;
  /* its own state */
  FF_VEC(moved_page) moved; /* its pages in their memory */
  ps look_again;            /* for such memory, no earlier than that */
} lent;

void idle_sharing_free(lent *l);
void idle_sharing_check(const lent *l);             /* at the deep check level */
tenant *idle_sharing_owner(device *d, uint32_t sm); /* the tenant that has the SM; NULL: none has */
/* may a block start on this SM of another tenant? */
bool idle_sharing_may(const lent *l, const sm *m, const kernel *k);
void idle_sharing_block_start(lent *l, const sm *m, ps time);
void idle_sharing_block_end(lent *l, const sm *m, ps time);
/* it has work: takes back what is its own */
void idle_sharing_kernel_begin(lent *l, ps time);
void idle_sharing_kernel_end(lent *l, ps time);
void idle_sharing_look(lent *l, ps time);                          /* is there memory to be had? */
void idle_sharing_count(lent *l, uint32_t module, uint64_t bytes); /* that it reads or writes there */
void idle_sharing_forget(lent *l);                                 /* all its pages are where they belong */

#endif
