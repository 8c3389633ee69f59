/* SPDX-License-Identifier: Apache-2.0 */
/* See dataflow.h. */
#include "ptx/analysis/dataflow.h"

void ptx_touched(const ptx_instr *instr, touched *t) {
  t->reads = ptx_instr_reads(instr, t->regs, t->room);
  uint32_t left = t->reads < t->room ? t->room - t->reads : 0;
  t->writes = ptx_instr_writes(instr, left ? t->regs + t->reads : NULL, left);
  if (t->reads + t->writes <= t->room) return;
  t->room = (t->reads + t->writes) * 2;
  t->regs = ff_realloc(t->regs, t->room * sizeof *t->regs);
  ptx_touched(instr, t);
}

void ptx_dataflow_add(dataflow *flow, uint32_t reg) {
  if (flow->bit_of[reg] == PTX_NO_REG) flow->bit_of[reg] = flow->bit_count++;
}
