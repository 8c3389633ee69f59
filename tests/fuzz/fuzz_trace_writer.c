/* SPDX-License-Identifier: Apache-2.0 */
/* The library for traces in the hands of a caller who gives anything: the bytes choose calls and their arguments.
 * Whatever was accepted is a whole trace that reads without damage and has as many operations, records and words as
 * were accepted. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/text.h"
#include "farfault/trace.h"

typedef struct input {
  const uint8_t *at, *end;
} input;

static uint64_t take(input *in, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes && in->at < in->end; i++) value |= (uint64_t)*in->at++ << 8 * i;
  return value;
}

/* Mostly small, sometimes anything. */
static uint64_t number(input *in) {
  uint8_t how = (uint8_t)take(in, 1);
  return how < 160 ? how % 8 : how < 200 ? take(in, 2) : how < 220 ? UINT64_C(1) << how % 64 : take(in, 8);
}

typedef struct accepted {
  uint64_t operations, launches, accesses;
} accepted;

static void put_operation(ff_trace_writer *w, input *in, accepted *sum) {
  char name[80] = {0};
  ff_trace_error error;
  ff_trace_operation op = {.kind = (ff_trace_operation_kind)(number(in) % 27),
                           .stream = (uint32_t)number(in),
                           .blocking = take(in, 1) & 1,
                           .number = (uint32_t)number(in)};
  if (op.kind == FF_TRACE_MODULE) {
    op.as.module =
        (ff_trace_module){(uint32_t)number(in), take(in, 1) & 1 ? name : NULL, number(in) % 3 ? 3 : UINT64_MAX};
    if (op.as.module.bytes < UINT64_MAX && !op.as.module.ptx) op.as.module.bytes = number(in);
  } else if (op.kind == FF_TRACE_COPY || op.kind == FF_TRACE_SET) {
    op.as.copy = (ff_trace_copy){number(in),
                                 number(in),
                                 number(in),
                                 number(in),
                                 number(in),
                                 number(in),
                                 (ff_trace_direction)(number(in) % 6),
                                 take(in, 1) & 1};
  } else if (op.kind == FF_TRACE_ALLOCATE || op.kind == FF_TRACE_FREE || op.kind == FF_TRACE_RESERVE ||
             op.kind == FF_TRACE_CREATE_MEMORY || op.kind == FF_TRACE_RELEASE_MEMORY) {
    memset(name, 'n', number(in) % sizeof name);
    name[sizeof name - 1] = '\0';
    op.as.allocation = (ff_trace_allocation){number(in),           number(in),      (ff_trace_memory)(number(in) % 6),
                                             (uint32_t)number(in), take(in, 1) & 1, take(in, 1) & 1 ? name : NULL};
  } else if (op.kind == FF_TRACE_NAMED_RANGE) {
    memset(name, 'r', number(in) % sizeof name);
    op.as.named_range = (ff_trace_named_range){.number = number(in),
                                               .begin = take(in, 1) & 1,
                                               .started = take(in, 1) & 1,
                                               .domain = (uint8_t)number(in),
                                               .thread = (uint32_t)number(in),
                                               .name = take(in, 1) & 1 ? name : NULL};
  } else if (op.kind >= FF_TRACE_FREE_RESERVATION) {
    op.as.mapping = (ff_trace_mapping){number(in), number(in), number(in), (uint32_t)number(in)};
  } else {
    op.as.range = (ff_trace_range){number(in), number(in), take(in, 1) & 1, (int32_t)number(in)};
  }
  if (!ff_trace_put_operation(w, &op, &error)) sum->operations++;
}

/* Small enough that its warps' ends take no time. */
static void put_launch(ff_trace_writer *w, input *in, accepted *sum) {
  static const char bytes[16];
  ff_trace_use uses[3] = {{number(in), number(in)}};
  ff_trace_launch l = {.kernel = take(in, 1) & 7 ? "kernel" : NULL,
                       .grid = {(uint32_t)number(in) % 64, 1, (uint32_t)number(in) % 4},
                       .registers = (uint32_t)number(in)};
  for (int i = 0; i < 3; i++) l.block[i] = (uint32_t)number(in);
  l.parameter_bytes = (uint32_t)number(in) % 17;
  l.parameters = take(in, 1) & 1 ? bytes : NULL;
  l.use_count = (uint32_t)number(in) % 4;
  l.uses = take(in, 1) & 1 ? uses : NULL;
  if (ff_trace_put_launch(w, (uint32_t)number(in), &l, NULL)) return;
  sum->operations++;
  sum->launches++;
}

static void put_record(ff_trace_writer *w, input *in, accepted *sum) {
  uint64_t words[FF_TRACE_RECORD_WORDS], count = number(in) % (FF_TRACE_RECORD_WORDS + 1);
  for (uint64_t i = 0; i < FF_TRACE_RECORD_WORDS; i++) words[i] = number(in);
  words[0] = take(in, 1) & 1 ? ff_trace_access((ff_trace_access_op)(number(in) & 3), 2, 0, (uint32_t)number(in),
                                               (uint32_t)number(in))
                             : take(in, 8);
  if (take(in, 1) & 1) count = ff_trace_kind(words[0]) == FF_TRACE_ACCESS ? 2 + ff_trace_access_lines(words[0]) : 1;
  if (count > FF_TRACE_RECORD_WORDS) return;
  if (!ff_trace_put_record(w, words, (size_t)count, NULL)) sum->accesses += ff_trace_kind(words[0]) == FF_TRACE_ACCESS;
}

static void put_access(ff_trace_writer *w, input *in, accepted *sum) {
  uint64_t address[FF_TRACE_LANES], base = number(in), step = number(in);
  uint32_t bytes = (uint32_t)number(in) * (uint32_t)number(in), mask = (uint32_t)take(in, 4);
  for (uint32_t i = 0; i < FF_TRACE_LANES; i++) address[i] = (base + i * step) * (take(in, 1) & 3 ? bytes : 1);
  if (!ff_trace_put_access(w, (ff_trace_access_op)(number(in) % 5), (uint32_t)number(in), (uint32_t)number(in), bytes,
                           mask, address, NULL))
    sum->accesses += mask != 0;
}

static void check(const char *path, const accepted *sum) {
  ff_trace_reader *r;
  ff_trace_error error;
  ff_trace_item item;
  accepted seen = {0};
  FF_ASSERT(!ff_trace_open(path, &r, &error));
  FF_ASSERT(ff_trace_information(r)->whole);
  do {
    FF_ASSERT(!ff_trace_next(r, &item, &error));
    seen.operations += item.kind == FF_TRACE_OPERATION;
    seen.launches += item.kind == FF_TRACE_OPERATION && item.operation->kind == FF_TRACE_LAUNCH;
    seen.accesses += item.kind == FF_TRACE_RECORD && ff_trace_kind(item.record[0]) == FF_TRACE_ACCESS;
  } while (item.kind != FF_TRACE_END);
  FF_ASSERT(!memcmp(&seen, sum, sizeof seen));
  ff_trace_close(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  input in = {data, data + size};
  ff_text path = {0};
  const char *folder = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm"; /* what is written is flushed to the disk */
  ff_trace_writer *w;
  accepted sum = {0};
  ff_text_add(&path, "%s/farfault-fuzz-%ld.fft", folder, (long)getpid());
  FF_ASSERT(!ff_trace_create(path.chars, "fuzz", NULL, &w, NULL));
  while (in.at < in.end) switch (take(&in, 1) % 6) {
    case 0: put_operation(w, &in, &sum); break;
    case 1: put_launch(w, &in, &sum); break;
    case 2: ff_trace_begin_warp(w, number(&in), (uint32_t)number(&in), NULL); break;
    case 3: put_record(w, &in, &sum); break;
    default: put_access(w, &in, &sum); break;
    }
  if (size && data[0] == 255) {
    ff_trace_discard(w);
    FF_ASSERT(access(path.chars, F_OK));
  } else {
    FF_ASSERT(!ff_trace_finish(w, NULL, NULL));
    check(path.chars, &sum);
  }
  unlink(path.chars);
  free(path.chars);
  return 0;
}
