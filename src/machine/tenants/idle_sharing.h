/* SPDX-License-Identifier: Apache-2.0 */
/* What an idle tenant has, used by the others: only with `borrow`. */
#ifndef FF_MACHINE_TENANTS_IDLE_SHARING_H
#define FF_MACHINE_TENANTS_IDLE_SHARING_H

#include "base/memory.h"
#include "machine/tenants/device.h"

typedef struct moved_page { uint64_t address, home; } moved_page; /* virtual; physical: where it goes back to */

typedef struct lent {           /* what a tenant has of others */
  FF_VEC(moved_page) moved;     /* its pages in their memory */
  ps look_again;                /* for such memory, no earlier than that */
} lent;

tenant *idle_sharing_owner(device *d, uint32_t sm);                          /* whose SM it is; NULL: nobody's */
bool idle_sharing_may(const sim *s, const sm *m, const kernel *k);           /* may a block start on this SM of another tenant? */
void idle_sharing_block_start(sim *s, const sm *m, ps time);
void idle_sharing_block_end(sim *s, const sm *m, ps time);
void idle_sharing_kernel_begin(sim *s, ps time);                             /* it has work: takes back what is its own */
void idle_sharing_kernel_end(sim *s, ps time);
void idle_sharing_look(sim *s, ps time);                                     /* is there memory to be had? */
void idle_sharing_count(sim *s, uint32_t module, uint64_t bytes);             /* that it reads or writes there */
void idle_sharing_forget(sim *s);                                            /* all its pages are where they belong */

#endif
