/* SPDX-License-Identifier: Apache-2.0 */
/* Operations as bytes (operations.h): for each kind what is written and, in the same order, what is read and
 * checked. */
#include "trace/operations.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCKING = 128, THREADS_MAX = 1024 };

const char *operation_kind_name(trace_op_kind kind) {
  static const char *const names[] = {[TRACE_OP_ALLOC] = "allocate",
                                      [TRACE_OP_FREE] = "free",
                                      [TRACE_OP_COPY] = "copy",
                                      [TRACE_OP_SET] = "set",
                                      [TRACE_OP_LAUNCH] = "launch",
                                      [TRACE_OP_STREAM_CREATE] = "create stream",
                                      [TRACE_OP_STREAM_DESTROY] = "destroy stream",
                                      [TRACE_OP_EVENT_RECORD] = "record event",
                                      [TRACE_OP_STREAM_WAIT] = "stream waits for event",
                                      [TRACE_OP_SYNC_STREAM] = "synchronise stream",
                                      [TRACE_OP_SYNC_EVENT] = "synchronise event",
                                      [TRACE_OP_SYNC_DEVICE] = "synchronise device",
                                      [TRACE_OP_HOST] = "host call",
                                      [TRACE_OP_HOST_TOUCH] = "host touch",
                                      [TRACE_OP_ADVISE] = "advise",
                                      [TRACE_OP_PREFETCH] = "prefetch",
                                      [TRACE_OP_MODULE] = "module",
                                      [TRACE_OP_RESERVE] = "reserve",
                                      [TRACE_OP_UNRESERVE] = "free reservation",
                                      [TRACE_OP_CREATE] = "create memory",
                                      [TRACE_OP_RELEASE] = "release memory",
                                      [TRACE_OP_MAP] = "map",
                                      [TRACE_OP_UNMAP] = "unmap",
                                      [TRACE_OP_SET_ACCESS] = "set access",
                                      [TRACE_OP_STREAM_SMS] = "SMs of stream",
                                      [TRACE_OP_PROFILE] = "profile",
                                      [TRACE_OP_RANGE] = "range",
                                      [TRACE_OP_END] = "end"};
  return (size_t)kind < sizeof names / sizeof names[0] && names[kind] ? names[kind] : "?";
}

/* ---- names ---- */

void operation_names_reset(operation_names *names) {
  for (size_t i = 0; i < names->items.count; i++) free(names->items.items[i]);
  names->items.count = 0;
}

void operation_names_free(operation_names *names) {
  operation_names_reset(names);
  free(names->items.items);
  *names = (operation_names){0};
}

static char **name_of(operation_names *names, uint32_t kernel) {
  while (names->items.count <= kernel) FF_PUSH(&names->items, NULL);
  return &names->items.items[kernel];
}

/* ---- writing ---- */

static void put_text(pack_bytes *to, const char *text, size_t length) {
  pack_number(to, length);
  if (!length) return;
  ff_vec_reserve((void **)&to->items, &to->capacity, to->count + length, 1);
  memcpy(to->items + to->count, text, length);
  to->count += length;
}

/* Pageable memory has the address 0 already; managed memory has one on the host's side, too. */
static void put_copy(pack_bytes *to, const trace_op *op) {
  pack_byte(to, (uint8_t)(op->copy.direction | op->copy.pinned << 2 | op->copy.file << 3));
  pack_number(to, op->copy.to);
  pack_number(to, op->copy.from);
  pack_number(to, op->copy.width);
  pack_number(to, op->copy.height);
  pack_number(to, op->copy.to_pitch);
  pack_number(to, op->copy.from_pitch);
}

/* A name, as it is kept: with its kernel's symbol behind it. */
static char *keep_name(const char *name, size_t length, uint64_t symbol) {
  char *kept = ff_alloc(length + 1 + sizeof symbol);
  memcpy(kept, name, length);
  memcpy(kept + length + 1, &symbol, sizeof symbol);
  return kept;
}

static uint64_t symbol_of(const char *kept) {
  uint64_t symbol;
  memcpy(&symbol, kept + strlen(kept) + 1, sizeof symbol);
  return symbol;
}

static void put_l2_controls(pack_bytes *to, const trace_l2_controls *l2) {
  pack_number(to, l2->set_aside);
  pack_number(to, l2->resets);
  pack_number(to, l2->address);
  pack_number(to, l2->bytes);
  pack_number(to, l2->share);
  pack_byte(to, (uint8_t)(l2->hit | l2->miss << 2));
}

static void put_launch(pack_bytes *to, const trace_launch *launch, operation_names *names) {
  char **name = name_of(names, launch->kernel_index);
  bool named = *name && !strcmp(*name, launch->kernel) && symbol_of(*name) == launch->symbol;
  pack_number(to, launch->kernel_index);
  pack_byte(to,
            (uint8_t)(launch->cooperative | !named << 1 | (launch->smids != 0) << 2 | (!named && launch->symbol) << 3 |
                      (launch->range[0] != '\0') << 4 | (launch->carve_out != 0) << 5 | (launch->site[0] != '\0') << 6 |
                      trace_l2_controls_some(&launch->l2) << 7));
  if (launch->smids) pack_number(to, launch->smids);
  if (launch->carve_out) pack_byte(to, launch->carve_out);
  if (launch->range[0]) put_text(to, launch->range, strnlen(launch->range, sizeof launch->range));
  if (launch->site[0]) put_text(to, launch->site, strnlen(launch->site, sizeof launch->site));
  if (trace_l2_controls_some(&launch->l2)) put_l2_controls(to, &launch->l2);
  for (int i = 0; !named && launch->symbol && i < 8; i++) pack_byte(to, (uint8_t)(launch->symbol >> 8 * i));
  if (!named) {
    free(*name);
    *name = keep_name(launch->kernel, strlen(launch->kernel), launch->symbol);
    put_text(to, launch->kernel, strlen(launch->kernel));
  }
  for (int i = 0; i < 3; i++) pack_number(to, launch->grid[i]);
  for (int i = 0; i < 3; i++) pack_number(to, launch->block[i]);
  pack_number(to, launch->shared_bytes);
  pack_number(to, launch->registers);
  pack_number(to, launch->module);
  pack_number(to, launch->use_count);
  for (uint32_t i = 0; i < launch->use_count; i++) {
    pack_number(to, launch->uses[i].address);
    pack_number(to, launch->uses[i].bytes);
  }
  put_text(to, launch->parameters, launch->parameter_bytes);
}

static void put_range(pack_bytes *to, const trace_op *op) {
  pack_byte(to, (uint8_t)(op->range.begin | op->range.started << 1));
  pack_number(to, op->range.number);
  if (!op->range.begin) return;
  pack_number(to, op->range.thread);
  pack_byte(to, op->range.domain);
  put_text(to, op->range.name, strnlen(op->range.name, sizeof op->range.name));
}

void operation_put(pack_bytes *to, const trace_op *op, operation_names *names) {
  pack_byte(to, (uint8_t)(op->kind | (op->blocking ? BLOCKING : 0)));
  pack_number(to, op->stream);
  switch (op->kind) {
  case TRACE_OP_ALLOC:
  case TRACE_OP_RESERVE:
  case TRACE_OP_CREATE:
    pack_number(to, op->alloc.address);
    pack_number(to, op->alloc.bytes);
    pack_byte(to, (uint8_t)(op->alloc.memory | op->alloc.initialised << 2 | op->alloc.system << 3));
    pack_number(to, op->alloc.id);
    put_text(to, op->alloc.name, strnlen(op->alloc.name, sizeof op->alloc.name));
    break;
  case TRACE_OP_MAP:
  case TRACE_OP_UNMAP:
  case TRACE_OP_SET_ACCESS:
  case TRACE_OP_UNRESERVE:
    pack_number(to, op->map.address);
    pack_number(to, op->map.bytes);
    pack_number(to, op->map.offset);
    pack_number(to, op->map.memory);
    break;
  case TRACE_OP_FREE:
  case TRACE_OP_RELEASE:
    pack_number(to, op->free.address);
    pack_number(to, op->free.id);
    break;
  case TRACE_OP_COPY: put_copy(to, op); break;
  case TRACE_OP_SET:
    pack_number(to, op->set.to);
    pack_number(to, op->set.width);
    pack_number(to, op->set.height);
    pack_number(to, op->set.pitch);
    break;
  case TRACE_OP_LAUNCH: put_launch(to, op->launch, names); break;
  case TRACE_OP_STREAM_CREATE: pack_number(to, op->stream_create.flags); break;
  case TRACE_OP_STREAM_SMS:
    for (uint32_t i = 0; i < TRACE_SMS_MAX / 64; i++) pack_number(to, op->sms.mask[i]);
    break;
  case TRACE_OP_EVENT_RECORD:
  case TRACE_OP_STREAM_WAIT:
  case TRACE_OP_SYNC_EVENT: pack_number(to, op->event.event); break;
  case TRACE_OP_HOST_TOUCH:
    pack_number(to, op->touch.address);
    pack_number(to, op->touch.bytes);
    pack_byte(to, op->touch.write);
    break;
  case TRACE_OP_ADVISE:
  case TRACE_OP_PREFETCH:
    pack_number(to, op->hint.address);
    pack_number(to, op->hint.bytes);
    pack_number(to, (uint32_t)op->hint.advice);
    pack_number(to, (uint32_t)op->hint.device);
    break;
  case TRACE_OP_MODULE:
    pack_number(to, op->module.id);
    put_text(to, op->module.ptx, op->module.bytes);
    break;
  case TRACE_OP_PROFILE: pack_byte(to, op->profile.start); break;
  case TRACE_OP_RANGE: put_range(to, op); break;
  case TRACE_OP_STREAM_DESTROY:
  case TRACE_OP_SYNC_STREAM:
  case TRACE_OP_SYNC_DEVICE:
  case TRACE_OP_HOST:
  case TRACE_OP_END: break;
  }
}

/* ---- reading ---- */

/* A reader that goes on after a mistake and remembers it: checked once an operation. */
typedef struct taker {
  pack_view *from;
  const char *wrong;
} taker;

static void refuse(taker *t, const char *why) {
  if (!t->wrong) t->wrong = why;
}

static uint64_t take(taker *t, uint64_t limit) {
  uint64_t number;
  if (!pack_take_number(t->from, &number)) refuse(t, "it ends too early");
  if (number <= limit) return number;
  refuse(t, "a number is out of range");
  return 0;
}

static uint32_t take32(taker *t) { return (uint32_t)take(t, UINT32_MAX); }

static uint64_t take_address(taker *t) { return take(t, OPERATION_ADDRESS_MAX); }

/* The rest of a range that begins at the address. */
static uint64_t take_bytes(taker *t, uint64_t address) { return take(t, OPERATION_ADDRESS_MAX - address); }

static uint8_t take_flags(taker *t, uint8_t limit) {
  if (t->from->at == t->from->end) {
    refuse(t, "it ends too early");
    return 0;
  }
  uint8_t byte = *t->from->at++;
  if (byte <= limit) return byte;
  refuse(t, "it has flags that are not known");
  return 0;
}

static const char *take_text(taker *t, uint64_t limit, uint64_t *length) {
  *length = take(t, limit);
  const uint8_t *text = t->from->at;
  if ((uint64_t)(t->from->end - text) < *length) {
    refuse(t, "a text ends too early");
    *length = 0;
  }
  t->from->at += *length;
  return (const char *)text;
}

/* Rows that begin a pitch apart, all of them below the limit of addresses. */
static void check_rows(taker *t, uint64_t address, uint64_t width, uint64_t height, uint64_t pitch) {
  if (height &&
      (width > OPERATION_ADDRESS_MAX - address || (height - 1) * pitch > OPERATION_ADDRESS_MAX - address - width))
    refuse(t, "its rows go beyond all addresses");
}

#define PITCH_MAX (UINT64_C(1) << 32) /* times OPERATION_ROWS_MAX it is an address */

static void take_copy(taker *t, trace_op *op) {
  uint8_t flags = take_flags(t, 15);
  op->copy.direction = (trace_direction)(flags & 3);
  op->copy.pinned = flags >> 2 & 1;
  op->copy.file = flags >> 3;
  op->copy.to = take_address(t);
  op->copy.from = take_address(t);
  op->copy.width = take(t, OPERATION_ADDRESS_MAX);
  op->copy.height = take(t, OPERATION_ROWS_MAX);
  op->copy.to_pitch = take(t, op->copy.height > 1 ? PITCH_MAX : UINT64_MAX);
  op->copy.from_pitch = take(t, op->copy.height > 1 ? PITCH_MAX : UINT64_MAX);
  check_rows(t, op->copy.to, op->copy.width, op->copy.height, op->copy.to_pitch);
  check_rows(t, op->copy.from, op->copy.width, op->copy.height, op->copy.from_pitch);
}

static void take_set(taker *t, trace_op *op) {
  op->set.to = take_address(t);
  op->set.width = take(t, OPERATION_ADDRESS_MAX);
  op->set.height = take(t, OPERATION_ROWS_MAX);
  op->set.pitch = take(t, op->set.height > 1 ? PITCH_MAX : UINT64_MAX);
  check_rows(t, op->set.to, op->set.width, op->set.height, op->set.pitch);
}

static void take_name(taker *t, trace_launch *launch, operation_names *names, bool given) {
  char **name = name_of(names, launch->kernel_index);
  if (given) {
    uint64_t length;
    const char *text = take_text(t, sizeof launch->kernel - 1, &length);
    free(*name);
    size_t shown = strnlen(text, length);
    *name = keep_name(text, shown, launch->symbol);
  }
  if (!*name) {
    refuse(t, "a kernel without a name");
    return;
  }
  strcpy(launch->kernel, *name);
  launch->symbol = symbol_of(*name);
}

static void take_note(taker *t, char *note, size_t size) {
  uint64_t length;
  const char *text = take_text(t, size - 1, &length);
  memcpy(note, text, length);
}

static void take_range(taker *t, trace_op *op) {
  uint8_t flags = take_flags(t, 3);
  op->range.begin = flags & 1;
  op->range.started = flags & 2;
  op->range.number = take(t, INT64_MAX);
  if (!op->range.number) refuse(t, "a range without a number");
  if (flags == 2) refuse(t, "it has flags that are not known");
  if (!op->range.begin) return;
  op->range.thread = (uint32_t)take(t, INT32_MAX);
  op->range.domain = take_flags(t, TRACE_RANGE_NAME_BYTES - 1);
  take_note(t, op->range.name, sizeof op->range.name);
  if (op->range.domain && op->range.name[op->range.domain] != ':') refuse(t, "a range's name without its domain");
}

/* The grid's blocks and the block's warps are computed, not believed. */
static void take_shape(taker *t, trace_launch *launch) {
  uint64_t blocks = 1, threads = 1;
  for (int i = 0; i < 3; i++) launch->grid[i] = take32(t);
  for (int i = 0; i < 3; i++) launch->block[i] = (uint32_t)take(t, THREADS_MAX);
  for (int i = 0; i < 3; i++) {
    threads *= launch->block[i];
    blocks = launch->grid[i] && blocks > OPERATION_BLOCKS_MAX / launch->grid[i] ? OPERATION_BLOCKS_MAX + 1
                                                                                : blocks * launch->grid[i];
  }
  if (!threads || threads > THREADS_MAX) refuse(t, "a launch with no threads in a block, or more than 1024");
  if (blocks > OPERATION_BLOCKS_MAX) refuse(t, "a launch with too many blocks");
  launch->blocks = blocks;
  launch->warps_per_block = (uint32_t)((threads + 31) / 32);
}

static void take_l2_controls(taker *t, trace_l2_controls *l2) {
  l2->set_aside = take(t, OPERATION_ADDRESS_MAX);
  l2->resets = take32(t);
  l2->address = take_address(t);
  l2->bytes = take_bytes(t, l2->address);
  l2->share = (uint32_t)take(t, TRACE_L2_SHARE);
  uint8_t priorities = take_flags(t, 15);
  l2->hit = priorities & 3;
  l2->miss = priorities >> 2;
}

static void take_launch(taker *t, trace_launch *launch, operation_names *names) {
  launch->kernel_index = (uint32_t)take(t, OPERATION_KERNELS_MAX - 1);
  uint8_t flags = take_flags(t, 255);
  launch->cooperative = flags & 1;
  launch->smids = flags & 4 ? take32(t) : 0;
  launch->carve_out = flags & 32 ? take_flags(t, TRACE_CARVE_OUT_MAX) : 0;
  if (flags & 16) take_note(t, launch->range, sizeof launch->range);
  if (flags & 64) take_note(t, launch->site, sizeof launch->site);
  if (flags & 128) take_l2_controls(t, &launch->l2);
  if ((flags & 10) == 8) refuse(t, "a symbol without a name");
  for (int i = 0; flags & 8 && i < 8; i++) launch->symbol |= (uint64_t)take_flags(t, UINT8_MAX) << 8 * i;
  if (!t->wrong) take_name(t, launch, names, flags & 2);
  take_shape(t, launch);
  launch->shared_bytes = take32(t);
  launch->registers = take32(t);
  launch->module = take32(t);
  launch->use_count = (uint32_t)take(t, TRACE_USES_MAX);
  for (uint32_t i = 0; i < launch->use_count; i++) {
    launch->uses[i].address = take_address(t);
    launch->uses[i].bytes = take_bytes(t, launch->uses[i].address);
  }
  uint64_t bytes;
  launch->parameters = take_text(t, OPERATION_PARAMETERS_MAX, &bytes);
  launch->parameter_bytes = (uint32_t)bytes;
}

static void take_alloc(taker *t, trace_op *op) {
  op->alloc.address = take_address(t);
  op->alloc.bytes = take_bytes(t, op->alloc.address);
  uint8_t flags = take_flags(t, 15);
  op->alloc.memory = (trace_memory_kind)(flags & 3);
  op->alloc.initialised = flags >> 2 & 1;
  op->alloc.system = flags >> 3;
  op->alloc.id = take32(t);
  uint64_t length;
  const char *name = take_text(t, sizeof op->alloc.name - 1, &length);
  memcpy(op->alloc.name, name, length);
}

static void take_hint(taker *t, trace_op *op) {
  op->hint.address = take_address(t);
  op->hint.bytes = take_bytes(t, op->hint.address);
  op->hint.advice = (int32_t)take(t, TRACE_ADVICE_UNSET_ACCESSED_BY);
  op->hint.device = (int32_t)take32(t);
}

static void take_module(taker *t, trace_op *op) {
  op->module.id = take32(t);
  op->module.ptx = take_text(t, OPERATION_PTX_MAX, &op->module.bytes);
}

const char *operation_take(pack_view *from, trace_op *op, trace_launch *launch, operation_names *names) {
  taker t = {.from = from};
  *op = (trace_op){0};
  uint8_t kind = take_flags(&t, 255);
  op->kind = (trace_op_kind)(kind & ~BLOCKING);
  op->blocking = kind & BLOCKING;
  op->stream = take32(&t);
  switch (op->kind) {
  case TRACE_OP_ALLOC:
  case TRACE_OP_RESERVE:
  case TRACE_OP_CREATE: take_alloc(&t, op); break;
  case TRACE_OP_MAP:
  case TRACE_OP_UNMAP:
  case TRACE_OP_SET_ACCESS:
  case TRACE_OP_UNRESERVE:
    op->map.address = take_address(&t);
    op->map.bytes = take_bytes(&t, op->map.address);
    op->map.offset = take_address(&t);
    op->map.memory = take32(&t);
    break;
  case TRACE_OP_FREE:
  case TRACE_OP_RELEASE:
    op->free.address = take_address(&t);
    op->free.id = take32(&t);
    break;
  case TRACE_OP_COPY: take_copy(&t, op); break;
  case TRACE_OP_SET: take_set(&t, op); break;
  case TRACE_OP_LAUNCH:
    take_launch(&t, launch, names);
    op->launch = launch;
    break;
  case TRACE_OP_STREAM_CREATE: op->stream_create.flags = take32(&t); break;
  case TRACE_OP_STREAM_SMS:
    for (uint32_t i = 0; i < TRACE_SMS_MAX / 64; i++) op->sms.mask[i] = take(&t, UINT64_MAX);
    break;
  case TRACE_OP_EVENT_RECORD:
  case TRACE_OP_STREAM_WAIT:
  case TRACE_OP_SYNC_EVENT: op->event.event = take32(&t); break;
  case TRACE_OP_HOST_TOUCH:
    op->touch.address = take_address(&t);
    op->touch.bytes = take_bytes(&t, op->touch.address);
    op->touch.write = take_flags(&t, 1);
    break;
  case TRACE_OP_ADVISE:
  case TRACE_OP_PREFETCH: take_hint(&t, op); break;
  case TRACE_OP_MODULE: take_module(&t, op); break;
  case TRACE_OP_PROFILE: op->profile.start = take_flags(&t, 1); break;
  case TRACE_OP_RANGE: take_range(&t, op); break;
  case TRACE_OP_STREAM_DESTROY:
  case TRACE_OP_SYNC_STREAM:
  case TRACE_OP_SYNC_DEVICE:
  case TRACE_OP_HOST: break;
  default: refuse(&t, "an operation of an unknown kind");
  }
  return t.wrong;
}
