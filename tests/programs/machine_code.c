/* SPDX-License-Identifier: Apache-2.0 */
/* machine_code FILE.ptx [KERNEL]: what ptx_machine_code makes of each kernel, a line per depth of loops: kernel, depth,
 * registers, machine instructions and those of each pipe, accesses to global memory. With KERNEL: its instructions, a
 * line each with its counts. Device functions that stay calls are lines of their own.
 *
 * machine_code --spills REGISTERS FILE.ptx: what ptx_spill_code makes of each kernel where a thread may have so many
 * registers, a line each: kernel, our estimate of its registers, bytes of a thread's local memory, bytes that its code
 * stores and loads, each instruction counted once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "ptx/analysis/machine_code.h"
#include "ptx/analysis/spills.h"

enum { DEPTHS = 8 };

static bool reaches_memory(const ptx_instr *instr) {
  switch (instr->opcode) {
  case PTX_OP_LD:
  case PTX_OP_LDU:
  case PTX_OP_ST:
  case PTX_OP_ATOM:
  case PTX_OP_RED: break;
  default: return false;
  }
  ptx_space space = ptx_instr_space(instr);
  return space == PTX_SPACE_GLOBAL || space == PTX_SPACE_GENERIC;
}

static void print_instructions(const ptx_func *func, const ptx_cfg *cfg, const ptx_cost *costs) {
  for (uint32_t b = 0; b < cfg->block_count; b++) {
    printf("block %u, depth %u\n", b, cfg->blocks[b].loop_depth);
    for (uint32_t n = cfg->blocks[b].first; n < cfg->blocks[b].end; n++) {
      const uint8_t *count = costs[n].count;
      printf("%4u %3u  fma %u alu %u xu %u fp64 %u lsu %u  chain %3u loads %u  %s", n, count[PTX_PIPE_SLOTS],
             count[PTX_PIPE_FMA], count[PTX_PIPE_ALU], count[PTX_PIPE_XU], count[PTX_PIPE_FP64], count[PTX_PIPE_LSU],
             count[PTX_PIPE_CHAIN], count[PTX_PIPE_LOADS], ptx_opcode_text(func->instrs[n].opcode));
      for (uint32_t t = 0; t < func->instrs[n].type_count; t++) printf(".%s", ptx_type_text(func->instrs[n].types[t]));
      putchar('\n');
    }
  }
}

static void print_sums(const ptx_func *func, const ptx_cfg *cfg, const ptx_cost *costs) {
  uint64_t sum[DEPTHS][PTX_PIPES] = {{0}}, memory[DEPTHS] = {0};
  bool used[DEPTHS] = {false};
  for (uint32_t b = 0; b < cfg->block_count; b++) {
    uint32_t depth = cfg->blocks[b].loop_depth < DEPTHS ? cfg->blocks[b].loop_depth : DEPTHS - 1;
    if (!cfg->blocks[b].reachable) continue;
    used[depth] = true;
    for (uint32_t n = cfg->blocks[b].first; n < cfg->blocks[b].end; n++) {
      for (uint32_t u = 0; u < PTX_PIPES; u++) sum[depth][u] += costs[n].count[u];
      memory[depth] += reaches_memory(&func->instrs[n]);
    }
  }
  uint32_t registers = ptx_register_estimate(func, cfg);
  for (int d = 0; d < DEPTHS; d++) {
    if (!used[d]) continue;
    printf("%s\t%d\t%u", func->name, d, registers);
    for (int u = 0; u < PTX_PIPE_CHAIN; u++) printf("\t%llu", (unsigned long long)sum[d][u]);
    printf("\t%llu\n", (unsigned long long)memory[d]);
  }
}

static void print_spills(const ptx_func *func, const ptx_cfg *cfg, uint32_t registers) {
  uint32_t estimate = ptx_register_estimate(func, cfg), bytes[2] = {0};
  ptx_spills spills = {0};
  if (estimate >= registers) spills = ptx_spill_code(func, cfg, registers);
  for (uint32_t n = 0; n < spills.count; n++) bytes[spills.items[n].load] += 4u * spills.items[n].words;
  printf("%s\t%u\t%u\t%u\t%u\n", func->name, estimate, 4 * spills.words, bytes[0], bytes[1]);
  free(spills.items);
}

int main(int argc, char **argv) {
  uint32_t registers = 0;
  if (argc == 4 && !strcmp(argv[1], "--spills")) {
    registers = (uint32_t)strtoul(argv[2], NULL, 10);
    argc -= 2;
    argv += 2;
  }
  ff_error error = {0};
  ptx_module *module = NULL;
  char *text = NULL;
  size_t size = 0;
  if (argc < 2) return 64;
  if (ff_file_read(argv[1], SIZE_MAX, &text, &size, &error) != FF_OK ||
      ptx_module_parse(argv[1], text, size, &module, &error) != FF_OK) {
    fprintf(stderr, "machine_code: %s\n", error.message);
    return 1;
  }
  for (uint32_t f = 0; f < module->func_count; f++) {
    const ptx_func *func = module->funcs[f];
    if (!func->instr_count || (argc > 2 && strcmp(func->name, argv[2]))) continue;
    ptx_cfg *cfg = ptx_cfg_build(func);
    ptx_cost *costs = ptx_machine_code(func, cfg);
    if (registers) print_spills(func, cfg, registers);
    else if (argc > 2) print_instructions(func, cfg, costs);
    else print_sums(func, cfg, costs);
    free(costs);
    ptx_cfg_free(cfg);
  }
  ptx_module_free(module);
  free(text);
  return 0;
}
