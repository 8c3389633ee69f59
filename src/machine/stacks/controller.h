/* SPDX-License-Identifier: Apache-2.0 */
/* The offload controller: which instances of candidates go to a stack, and back. */
#ifndef FF_MACHINE_STACKS_CONTROLLER_H
#define FF_MACHINE_STACKS_CONTROLLER_H

#include "machine/stacks/stacks.h"

void controller_enter(sim *s, warp *w, uint64_t word);
void controller_access(sim *s, warp *w, const uint64_t *record, ps time); /* the instance makes an access */
bool controller_decide(sim *s, warp *w, ps time);                         /* true: the warp goes, and is woken there */
/* all lines of its access are on their way: w->arrival */
void controller_accessed(sim *s, const warp *w);
/* true: the warp was away and is on its own SM again, from *back_at on */
bool controller_leave(sim *s, warp *w, ps time, ps *back_at);

#endif
