/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the trace of a kernel that adds one to every n-th float of an array, then reads it back:
 *
 *   cc trace_strided.c $(pkg-config --cflags --libs farfault-trace) -o trace_strided
 *   ./trace_strided strided.fft 4 && farfault sim strided.fft --memory copy,uvm --gpu-memory 50%
 *
 * So can whoever knows what a program does to memory - a simulator, a binary instrumentation tool, a paper's
 * description - have it simulated. */
#include <farfault/trace.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCKS = 256, WARPS = 8, THREADS = 32 * WARPS };
#define ARRAY UINT64_C(0x10000000)

static ff_trace_error error;

static void must(ff_trace_status status) {
  if (!status) return;
  fprintf(stderr, "trace_strided: %s\n", error.message);
  exit(1);
}

/* What a warp does: a[i] = a[i] + 1, where i is `stride` times the thread's number. */
static void write_warp(ff_trace_writer *writer, uint64_t block, uint32_t warp, uint64_t stride) {
  uint64_t address[FF_TRACE_LANES];
  for (uint32_t lane = 0; lane < FF_TRACE_LANES; lane++)
    address[lane] = ARRAY + (block * THREADS + warp * FF_TRACE_LANES + lane) * stride * sizeof(float);
  const uint64_t before = ff_trace_issue(6, 0, 0, 0); /* five instructions that compute the address, and the load */
  const uint64_t wait = ff_trace_wait(0), after = ff_trace_issue(2, 0, 0, 0); /* the addition and the store */
  must(ff_trace_begin_warp(writer, block, warp, &error));
  must(ff_trace_put_record(writer, &before, 1, &error));
  must(ff_trace_put_access(writer, FF_TRACE_LOAD, 0, 5, sizeof(float), 0xffffffffu, address, &error));
  must(ff_trace_put_record(writer, &wait, 1, &error));
  must(ff_trace_put_record(writer, &after, 1, &error));
  must(ff_trace_put_access(writer, FF_TRACE_STORE, 0, 7, sizeof(float), 0xffffffffu, address, &error));
}

static void write_trace(const char *path, uint64_t stride) {
  const uint64_t bytes = BLOCKS * THREADS * stride * sizeof(float);
  ff_trace_writer *writer;
  must(ff_trace_create(path, "trace_strided", NULL, &writer, &error));
  ff_trace_operation operation = {.kind = FF_TRACE_ALLOCATE};
  operation.as.allocation = (ff_trace_allocation){
      .address = ARRAY, .bytes = bytes, .memory = FF_TRACE_MEMORY_DEVICE, .id = 1, .name = "array"};
  must(ff_trace_put_operation(writer, &operation, &error));
  operation = (ff_trace_operation){.kind = FF_TRACE_COPY, .blocking = true};
  operation.as.copy = (ff_trace_copy){.to = ARRAY, .width = bytes, .height = 1, .direction = FF_TRACE_TO_DEVICE};
  must(ff_trace_put_operation(writer, &operation, &error));
  const ff_trace_use use = {ARRAY, bytes};
  const ff_trace_launch launch = {.kernel = "add_one",
                                  .grid = {BLOCKS, 1, 1},
                                  .block = {THREADS, 1, 1},
                                  .registers = 16,
                                  .uses = &use,
                                  .use_count = 1};
  must(ff_trace_put_launch(writer, 0, &launch, &error));
  for (uint64_t block = 0; block < BLOCKS; block++)
    for (uint32_t warp = 0; warp < WARPS; warp++) write_warp(writer, block, warp, stride);
  operation = (ff_trace_operation){.kind = FF_TRACE_SYNC_DEVICE};
  must(ff_trace_put_operation(writer, &operation, &error));
  must(ff_trace_finish(writer, NULL, &error));
}

static void read_trace(const char *path) {
  uint64_t launches = 0, accesses = 0, lines = 0;
  ff_trace_reader *reader;
  ff_trace_item item = {.kind = FF_TRACE_OPERATION};
  must(ff_trace_open(path, &reader, &error));
  do {
    ff_trace_status status = ff_trace_next(reader, &item, &error);
    if (status == FF_TRACE_DAMAGED) {
      fprintf(stderr, "trace_strided: %s\n", error.message);
      continue; /* what stands behind the damage still comes */
    }
    must(status);
    if (item.kind == FF_TRACE_OPERATION && item.operation->kind == FF_TRACE_LAUNCH) launches++;
    if (item.kind != FF_TRACE_RECORD || ff_trace_kind(item.record[0]) != FF_TRACE_ACCESS) continue;
    accesses++;
    lines += ff_trace_access_lines(item.record[0]);
  } while (item.kind != FF_TRACE_END);
  printf("%" PRIu64 " launch%s, %" PRIu64 " accesses to %" PRIu64 " lines in %" PRIu64 " bytes\n", launches,
         launches == 1 ? "" : "es", accesses, lines, ff_trace_information(reader)->bytes);
  ff_trace_close(reader);
}

int main(int argc, char **argv) {
  const char *path = argc > 1 ? argv[1] : "strided.fft";
  uint64_t stride = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  if (!stride || stride > 4096) {
    fprintf(stderr, "usage: trace_strided [FILE [STRIDE]], a stride from 1 to 4096 floats\n");
    return 64;
  }
  write_trace(path, stride);
  read_trace(path);
  return 0;
}
