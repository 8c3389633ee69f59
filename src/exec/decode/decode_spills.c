/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel spills, as its warps record it: stores and loads of local memory in the lists of waits
 * (decode_waits.c), which are made where a warp is traced and nowhere else. What the program computes stays in its
 * registers here; only the access stream has these stores and loads. */
#include "exec/decode/decode.h"
#include "exec/decode/function_facts.h"

enum { FEWEST_REGISTERS = 24 }; /* an assembler takes no smaller limit (ptxas 13.0: "lower bound of 24") */

void decode_spills(decoder *d) {
  uint32_t limit = d->kernel->register_limit;
  if (exec_facts_of(d->kernel->program->facts, d->func)->registers < limit) return; /* they are cut at its own limit */
  if (limit < FEWEST_REGISTERS) limit = FEWEST_REGISTERS;
  d->spills = ptx_spill_code(d->func, d->cfg, limit);
  if (!d->spills.count) return;
  exec_spill *spills = ff_arena_alloc(d->arena, d->spills.count * sizeof *spills);
  for (uint32_t n = 0; n < d->spills.count; n++) {
    const ptx_spill *s = &d->spills.items[n];
    if (s->load && d->load_number[s->reg] == EXEC_NO_OFFSET) d->load_number[s->reg] = d->out->load_count++;
    spills[n] = (exec_spill){.slot = s->slot % TRACE_SPILL_SLOTS,
                             .words = s->words,
                             .load = s->load ? d->load_number[s->reg] : EXEC_NO_OFFSET};
  }
  d->out->spills = spills;
  d->out->spill_count = d->spills.count;
  d->out->ever = d->out->load_count++;
}
