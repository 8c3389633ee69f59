/* SPDX-License-Identifier: Apache-2.0 */
/* The invariants of decoded code, checked at the deep level when a function has been decoded.
 *
 *     first_of[n] < first_of[n + 1] <= count: every PTX instruction has an exec_instr at least;
 *     index == n exactly for the instructions in [first_of[n], first_of[n + 1])
 *     the code ends with an EXIT or RET of its own; branches lead to the first instruction of a PTX instruction
 *     what only computes has a handler for full and for partial masks
 *     registers that must be zero, all registers, load numbers: one behind the other, together the frame
 *     unit counts before an instruction == sum over the instructions before it
 *     lists of waits name load numbers and spills, spills load numbers; regions are sorted by their entries */
#include "base/check.h"
#include "exec/decode/decode.h"

static void check_order(const exec_function *f) {
  uint32_t count = f->source->instr_count;
  for (uint32_t n = 0; n < count; n++) {
    FF_ASSERT(f->first_of[n] < f->first_of[n + 1]);
    for (uint32_t i = f->first_of[n]; i < f->first_of[n + 1]; i++) FF_ASSERT(f->code[i].index == n);
  }
  FF_ASSERT(f->first_of[count] + 1 == f->count && f->code[f->count - 1].index == count);
  FF_ASSERT(f->code[f->count - 1].flow == (f->source->entry ? EXEC_FLOW_EXIT : EXEC_FLOW_RET));
}

static void check_instruction(const exec_function *f, const exec_instr *i) {
  FF_ASSERT((i->flow != EXEC_FLOW_NONE && i->flow != EXEC_FLOW_GUARDED) || (i->run[0] && i->run[1]));
  FF_ASSERT((i->guard == EXEC_NO_GUARD || i->guard + 4 <= f->frame_bytes) && i->rank != UINT32_MAX);
  if (i->flow == EXEC_FLOW_BRA || i->flow == EXEC_FLOW_BRA_IF)
    FF_ASSERT(i->target < f->count && f->first_of[f->code[i->target].index] == i->target);
  FF_ASSERT(!i->wait == !(i->attention & EXEC_ATTEND_WAIT));
  for (uint32_t n = 1; i->wait && n <= f->waits[i->wait - 1]; n++)
    FF_ASSERT((f->waits[i->wait - 1 + n] & EXEC_WAIT_NUMBER) <
              (f->waits[i->wait - 1 + n] & EXEC_WAIT_SPILL ? f->spill_count : f->load_count));
}

static void check_units(const exec_function *f) {
  uint32_t sfu = 0, fp64 = 0;
  for (uint32_t n = 0, i = 0; n < f->source->instr_count; n++) {
    FF_ASSERT(f->sfu_before[n] == sfu && f->fp64_before[n] == fp64);
    for (; i < f->first_of[n + 1]; i++) {
      sfu += f->code[i].unit == EXEC_UNIT_SFU;
      fp64 += f->code[i].unit == EXEC_UNIT_FP64;
    }
  }
}

void exec_function_check(const exec_function *f) {
  check_order(f);
  for (uint32_t i = 0; i < f->count; i++) check_instruction(f, &f->code[i]);
  check_units(f);
  FF_ASSERT(f->zero_bytes % 64 == 0 && f->zero_bytes <= f->loads_offset &&
            f->loads_offset + f->load_count * 4 <= f->frame_bytes);
  for (uint32_t s = 0; s < f->spill_count; s++)
    FF_ASSERT(f->ever < f->load_count && f->spills[s].words && f->spills[s].words <= TRACE_SPILL_WORDS &&
              f->spills[s].slot < TRACE_SPILL_SLOTS &&
              (f->spills[s].load == EXEC_NO_OFFSET || f->spills[s].load < f->load_count));
  for (uint32_t r = 1; r < f->region_count; r++) FF_ASSERT(f->regions[r - 1].mark.entry < f->regions[r].mark.entry);
}
