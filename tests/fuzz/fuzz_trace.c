/* SPDX-License-Identifier: Apache-2.0 */
/* A trace from anywhere: first the bytes as a file; then as the payload of a frame whose checksums hold, which is read,
 * profiled and simulated. Nothing may crash or run on for ever.
 *
 * The input's first bytes say where the frame begins in the program (within a launch or not), and how many operations
 * and words it claims. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "machine/sim.h"
#include "offload/profile.h"
#include "offload/candidate_table.h"
#include "trace/trace_frame.h"

enum { WORK_MAX = 20000, BLOCKS_MAX = 2000 }; /* what is simulated: records and bytes touched; blocks of a launch */

static trace_file *open_bytes(const uint8_t *head, size_t head_size, const uint8_t *data, size_t size) {
  int fd = memfd_create("trace", MFD_CLOEXEC);
  char path[64];
  trace_file *file = NULL;
  FF_ASSERT(fd >= 0 && write(fd, head, head_size) == (ssize_t)head_size && write(fd, data, size) == (ssize_t)size);
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  ff_error error;
  if (trace_file_open(path, &file, &error)) file = NULL;
  close(fd);
  return file;
}

/* Reads to the end; whether it is small enough to be simulated. */
static bool read_all(trace_file *file) {
  trace_item item = {0};
  ff_error error;
  uint64_t work = 0;
  for (uint32_t errors = 0; item.kind != TRACE_ITEM_END;) {
    if (trace_file_next(file, &item, &error)) {
      FF_ASSERT(++errors <= trace_file_information(file)->frame_count);
      item.kind = TRACE_ITEM_RECORD;
      continue;
    }
    if (item.kind == TRACE_ITEM_RECORD) work++;
    if (item.kind != TRACE_ITEM_OPERATION) continue;
    const trace_op *op = item.op;
    work += 10;
    if (op->kind == TRACE_OP_LAUNCH) work += op->launch->blocks > BLOCKS_MAX ? WORK_MAX : op->launch->blocks;
    if (op->kind == TRACE_OP_ALLOC) work += op->alloc.bytes >> 12;
    if (op->kind == TRACE_OP_MAP || op->kind == TRACE_OP_UNMAP) work += op->map.bytes >> 12;
    if (op->kind == TRACE_OP_COPY) work += (op->copy.width >> 12) * op->copy.height + op->copy.height;
    if (op->kind == TRACE_OP_SET) work += (op->set.width >> 12) * op->set.height + op->set.height;
    if (op->kind == TRACE_OP_HOST_TOUCH) work += op->touch.bytes >> 12;
    if (op->kind == TRACE_OP_ADVISE || op->kind == TRACE_OP_PREFETCH) work += op->hint.bytes >> 12;
    if (work > WORK_MAX) return false;
  }
  return true;
}

/* Marks: the stream has them, and the simulation, which does not offload, leaves them out; else the feed does. */
static void simulate(trace_file *file, const char *manager, bool marks) {
  static machine_spec spec;
  static bool loaded;
  ff_error error;
  if (!loaded) FF_ASSERT(machine_spec_load(FF_SOURCE_DIR "/machines/gtx480.yaml", &spec, &error) == FF_OK);
  loaded = true;
  trace_program *program = trace_program_create(0);
  trace_program_mark(program, marks);
  sim *s;
  sim_result result;
  FF_ASSERT(sim_create(program, &(sim_options){.spec = &spec, .manager = manager, .gpu_memory_share = 0.5}, &s,
                       &error) == FF_OK);
  trace_file_feed(file, program, NULL, &error);
  trace_op_append(program, &(trace_op){.kind = TRACE_OP_END});
  sim_run(s);
  sim_snapshot(s, &result);
  FF_ASSERT(result.complete || result.error[0]);
  sim_result_free(&result);
  sim_free(s);
  trace_program_free(program);
}

static bool is_share(double share) { return share >= 0 && share <= 1; }

static void profile(trace_file *file) {
  static const machine_spec spec = {.l2_bytes = 1 << 14, .l2_ways = 4, .stack_count = 4};
  offload_table *table = offload_table_create();
  offload_profile_options options = {
      .spec = &spec, .find = offload_table_find, .operation = offload_table_operation, .context = table};
  offload_profile *p = offload_profile_run(file, &options);
  if (p) {
    uint64_t may_go = 0;
    for (uint32_t i = 0; i < p->candidate_count; i++) {
      FF_ASSERT(p->candidates[i].may_go <= p->candidates[i].instances);
      may_go += p->candidates[i].may_go;
    }
    FF_ASSERT(may_go == p->instances && p->candidate_accesses <= p->accesses && p->oracle_count <= p->range_count);
    FF_ASSERT(is_share(p->baseline) && is_share(p->best) && is_share(p->linear));
    for (uint32_t i = 1; i < p->range_count; i++)
      FF_ASSERT(p->ranges[i].address >= p->ranges[i - 1].address + p->ranges[i - 1].bytes);
  }
  offload_profile_free(p);
  offload_table_free(table);
}

/* The file's beginning and a frame's header in front of the payload. Returns its length. */
static size_t make_head(const uint8_t *control, const uint8_t *payload, size_t size, uint8_t *head) {
  uint8_t start[FILE_HEADER_BYTES] = FILE_MAGIC;
  start[8] = control[3] & 2 ? TRACE_FILE_PLAIN : TRACE_FILE_MARKED;
  frame_header header = {.kind = FRAME_DATA,
                         .payload_bytes = size,
                         .payload_hash = frame_hash(payload, size),
                         .operations = control[0],
                         .launches = control[0],
                         .words = control[1] | (uint32_t)control[2] << 8,
                         .open = control[3] & 1,
                         .launch = control[3] >> 4,
                         .block = control[4] & 15,
                         .launch_blocks = control[5],
                         .warp = control[4] >> 4,
                         .warps = control[6] & 63,
                         .operation = control[3] >> 2 & 3};
  memcpy(head, start, sizeof start);
  frame_header_write(&header, head + sizeof start);
  return sizeof start + FRAME_HEADER_BYTES;
}

enum { CONTROL = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  trace_file *file = open_bytes(data, size, data, 0);
  if (file && read_all(file)) {
    profile(file);
    simulate(file, "replay", size & 1);
  }
  trace_file_close(file);
  if (size < CONTROL) return 0;
  uint8_t head[FILE_HEADER_BYTES + FRAME_HEADER_BYTES];
  size_t length = make_head(data, data + CONTROL, size - CONTROL, head);
  file = open_bytes(head, length, data + CONTROL, size - CONTROL);
  FF_ASSERT(file);
  if (read_all(file)) {
    profile(file);
    simulate(file, data[7] & 1 ? "copy" : "uvm", data[7] & 2);
  }
  trace_file_close(file);
  return 0;
}
