/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel's file of an Accel-Sim trace from anywhere: refused with a message, or every block is one of the grid's
 * whose records are what trace/stream.h allows, each warp ended by EXIT. What begins with "Memcpy" or "kernel" is read
 * as the list. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "import/kernel.h"
#include "import/kernel_list.h"
#include "trace/operations.h"

static void check_record(const uint64_t *record, uint32_t *loads) {
  switch (trace_word_kind(*record)) {
  case TRACE_ISSUE:
    FF_ASSERT(trace_issue_count(*record) >= trace_issue_sfu(*record) + trace_issue_fp64(*record));
    break;
  case TRACE_WAIT: FF_ASSERT(trace_wait_k(*record) < *loads); break;
  case TRACE_BARRIER: FF_ASSERT(trace_barrier_expected(*record) >= 1 && trace_barrier_expected(*record) <= 32); break;
  case TRACE_EXIT: *loads = 0; break;
  case TRACE_ACCESS:
    FF_ASSERT(trace_access_lines(*record) >= 1 && trace_access_lines(*record) <= 32 && record[1] &&
              record[1] <= UINT32_MAX);
    for (uint32_t i = 0; i < trace_access_lines(*record); i++)
      FF_ASSERT(trace_line_address(record[2 + i]) < OPERATION_ADDRESS_MAX && trace_line_sectors(record[2 + i]));
    *loads += trace_access_operation(*record) == TRACE_LOAD || trace_access_flags(*record) & TRACE_RETURNS;
    break;
  default: FF_ASSERT(false);
  }
}

static void check_block(const kernel_block *block, const kernel_header *header) {
  uint32_t exits = 0, loads = 0;
  FF_ASSERT(block->number < header->blocks);
  for (size_t i = 0; i < block->words.count;) {
    const uint64_t *record = &block->words.items[i];
    check_record(record, &loads);
    exits += trace_word_kind(*record) == TRACE_EXIT;
    i += trace_word_kind(*record) == TRACE_ACCESS ? 2 + trace_access_lines(*record) : 1;
  }
  FF_ASSERT(exits == header->warps);
}

static ff_status read_kernel(lines *from, ff_error *error) {
  kernel_header header;
  kernel_counts counts = {0};
  kernel_block block = {0};
  bool there = true;
  ff_status status = kernel_read_header(from, &header, error);
  if (status) return status;
  kernel_reader *reader = kernel_reader_create(from, &header, &counts);
  while (!(status = kernel_read_block(reader, &block, &there, error)) && there) check_block(&block, &header);
  kernel_reader_free(reader);
  free(block.words.items);
  return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  lines *from = lines_of_text("fuzz", (const char *)data, size);
  ff_error error = {0};
  if (size > 6 && (!memcmp(data, "Memcpy", 6) || !memcmp(data, "kernel", 6))) {
    list_entries list = {0};
    if (list_read(from, "/no/such", &list, &error)) FF_ASSERT(error.message[0]);
    list_free(&list);
  } else if (read_kernel(from, &error)) {
    FF_ASSERT(!strncmp(error.message, "fuzz:", 5));
  }
  lines_close(from);
  return 0;
}
