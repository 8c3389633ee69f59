/* SPDX-License-Identifier: Apache-2.0 */
/* Before anything is generated: every count and index of a request is in range. */
#include "compile/generator/check.h"

static bool good_instr(const native_request *head, const native_function *f, const native_instr *n) {
  if ((uint64_t)n->wait + n->wait_count > head->wait_count) return false;
  if (n->op >= NATIVE_OPS || n->dst_kind >= NATIVE_KINDS) return false;
  for (int s = 0; s < 4; s++)
    if (n->src_kind[s] >= NATIVE_KINDS) return false;
  if ((uint64_t)n->operands + n->read_count + n->write_count > head->operand_count) return false;
  if ((n->op == NATIVE_BRANCH || n->op == NATIVE_BRANCH_IF) && n->target >= f->count) return false;
  if (n->op == NATIVE_BRANCH_IF && !n->read_count) return false;
  uint32_t sources = 0;
  while (sources < 4 && n->src_kind[sources]) sources++;
  if (n->op >= NATIVE_ADD && n->read_count < sources) return false;
  if (n->op == NATIVE_ACCESS) {
    bool sized = (n->bytes == 1 || n->bytes == 2 || n->bytes == 4 || n->bytes == 8) && (n->slot_bytes == 4 || n->slot_bytes == 8) && n->bytes <= n->slot_bytes;
    uint32_t address = n->space != NATIVE_PARAM;
    if (!sized || !n->elements || n->elements > 4 || n->read_count < address + (n->store ? n->elements : 0u)) return false;
    if (!n->store && n->write_count < n->elements) return false;
  }
  return true;
}

bool check_request(const unsigned char *data, uint32_t bytes, const char **message) {
  const native_request *head = (const native_request *)(const void *)data;
  *message = "this is not a request";
  if (bytes < sizeof *head || head->magic != NATIVE_MAGIC || head->version != NATIVE_VERSION || head->bytes != bytes) return false;
  uint64_t wanted = sizeof *head + (uint64_t)head->function_count * sizeof(native_function) + (uint64_t)head->instr_count * sizeof(native_instr) +
                    (uint64_t)head->operand_count * sizeof(native_operand) + (uint64_t)head->wait_count * sizeof(uint32_t);
  if (wanted != bytes) return false;
  const native_function *functions = (const native_function *)(const void *)(head + 1);
  const native_instr *instrs = (const native_instr *)(const void *)(functions + head->function_count);
  const native_operand *operands = (const native_operand *)(const void *)(instrs + head->instr_count);
  *message = "the request is broken";
  for (uint32_t o = 0; o < head->operand_count; o++)
    if (operands[o].bytes > 16 || (operands[o].bytes & (operands[o].bytes - 1)) || operands[o].bytes == 1 || operands[o].bytes == 2 || operands[o].constant > 2) return false;
  for (uint32_t f = 0; f < head->function_count; f++) {
    if (!functions[f].count || (uint64_t)functions[f].first + functions[f].count > head->instr_count) return false;
    for (uint32_t n = 0; n < functions[f].count; n++)
      if (!good_instr(head, &functions[f], &instrs[functions[f].first + n])) return false;
  }
  return true;
}
