/* SPDX-License-Identifier: Apache-2.0 */
/* The version oracle of the caches next to stacks. All do nothing below the deepest check level. */
#ifndef FF_MACHINE_STACKS_VERSIONS_H
#define FF_MACHINE_STACKS_VERSIONS_H

#include "machine/stacks/stacks.h"

void versions_create(stacks *k);
void versions_free(stacks *k);
/* of the last write that is known */
uint32_t versions_now(const stacks *k);
/* on an SM of the GPU; over: it is in memory */
void versions_wrote(stacks *k, const block *by, uint64_t address, ps over);
/* an instance that this SM had sent away, and its answer is there */
void versions_answered(stacks *k, uint32_t sm, uint64_t address);
void versions_l2_hit(const stacks *k, uint64_t address, uint32_t filled);
void versions_l1_hit(const stacks *k, const sm *m, uint64_t address, uint32_t filled);
/* an instance of that block reads memory */
void versions_near_read(const stacks *k, const stack_instance *i, const block *by, uint64_t address, ps at);

#endif
