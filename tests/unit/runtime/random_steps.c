/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of random programs. Each chooses, calls the library, checks what can be checked at once (results that must
 * or must not be, given the world), and logs what the replay needs. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "random_world.h"

static const char *const access_names[] = {"-", "r", "w", "rw"};

static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

static entry *log_add(world *in, entry_kind kind, uint32_t slot) {
  FF_PUSH(&in->log, ((entry){.kind = kind, .slot = slot, .step = in->steps}));
  return &in->log.items[in->log.count - 1];
}

static void log_data(world *in, entry_kind kind, uint32_t slot, uint64_t offset, uint64_t bytes, const void *data) {
  entry *one = log_add(in, kind, slot);
  one->offset = offset;
  one->bytes = bytes;
  one->data = ff_alloc(bytes);
  memcpy(one->data, data, bytes);
}

/* A slot that is taken, or SLOTS. */
static uint32_t any_segment(world *in, choices *from) {
  uint32_t first = (uint32_t)choose(from, SLOTS);
  for (uint32_t i = 0; i < SLOTS; i++)
    if (in->segments[(first + i) % SLOTS].handle) return (first + i) % SLOTS;
  return SLOTS;
}

/* Sizes around pieces, mostly small ones; now and then one that is larger than many budgets. */
static uint64_t any_size(world *in, choices *from) {
  uint64_t piece = in->program->piece;
  switch (choose(from, 9)) {
  case 8: return 1 + choose(from, 3 * smaller(in->program->budget, 24 * piece)); /* windows */
  case 0: return 1 + choose(from, 16);
  case 1: return 1 + choose(from, piece);
  case 2: return piece * choose_between(from, 1, 3);
  case 3: return piece * choose_between(from, 1, 3) + 1;
  case 4: return piece * choose_between(from, 1, 4) - 1;
  case 5: return 1 + choose(from, 12 * piece);
  default: return 1 + choose(from, 4 * piece);
  }
}

static void any_range(choices *from, uint64_t whole, uint64_t *offset, uint64_t *bytes) {
  *offset = 0;
  *bytes = whole;
  if (chance(from, 40)) return;
  *offset = choose(from, whole);
  *bytes = 1 + choose(from, whole - *offset);
  if (chance(from, 30)) *bytes = 1 + choose(from, smaller(*bytes, 64));
}

/* ---- making and freeing ---- */

static void take(world *in, uint32_t slot, const char *file) {
  world_segment *segment = &in->segments[slot];
  program *program = in->program;
  for (uint32_t d = 0; d < program->devices; d++)
    if (ff_segment_address(segment->handle, d, &segment->address[d])) {
      if (program->options->failures == PROGRAM_NO_FAILURES)
        program_wrong(program, "ff_segment_address: %s", ff_message());
      segment->address[d] = 0;
    }
  entry *one = log_add(in, ENTRY_CREATE, slot);
  one->segment = *segment;
  if (!file) return;
  one->data = ff_alloc(segment->file_bytes + 1);
  memcpy(one->data, file, segment->file_bytes);
}

static void create_anonymous(world *in, choices *from, uint32_t slot) {
  world_segment made = {.bytes = any_size(in, from)};
  ff_result result = ff_segment_create(in->program->gpu, NULL, made.bytes, &made.handle);
  program_trace(in->program, "%u.%u: s%u = create(%llu) = %s", in->index, in->steps, slot,
                (unsigned long long)made.bytes, ff_result_name(result));
  if (!program_allows(in->program, result, "ff_segment_create")) return;
  in->segments[slot] = made;
  take(in, slot, NULL);
}

static void create_file(world *in, choices *from, uint32_t slot) {
  world_segment made = {.file = true, .writable = chance(from, 70), .bytes = any_size(in, from)};
  bool create = made.writable && chance(from, 30), whole = !create && chance(from, 30);
  made.file_offset = chance(from, 50) ? 0 : choose(from, 5000);
  made.file_bytes = made.file_offset + made.bytes + (whole ? 0 : choose(from, 100));
  if (create) made.file_bytes = choose(from, made.file_bytes);
  snprintf(made.path, sizeof made.path, "%s/%u_%u", program_folder(), in->index, in->files++);
  char *data = ff_alloc(made.file_bytes + 1);
  kernels_fill(choose(from, UINT64_MAX), data, made.file_bytes);
  unlink(made.path);
  FILE *file = create && !made.file_bytes ? NULL : fopen(made.path, "w");
  if (file) {
    if (fwrite(data, 1, made.file_bytes, file) != made.file_bytes)
      program_wrong(in->program, "%s cannot be written", made.path);
    fclose(file);
  }
  unsigned flags = (made.writable ? FF_FILE_WRITE : FF_FILE_READ) | (create ? FF_FILE_CREATE : 0);
  ff_result result =
      ff_segment_open(in->program->gpu, NULL, made.path, flags, made.file_offset, whole ? 0 : made.bytes, &made.handle);
  program_trace(in->program, "%u.%u: s%u = open(%s, flags %u, %llu, +%llu) = %s", in->index, in->steps, slot, made.path,
                flags, (unsigned long long)made.file_offset, (unsigned long long)(whole ? 0 : made.bytes),
                ff_result_name(result));
  if (program_allows(in->program, result, "ff_segment_open")) {
    in->segments[slot] = made;
    take(in, slot, data);
  }
  free(data);
}

static void step_create(world *in, choices *from) {
  uint32_t slot = 0;
  while (slot < SLOTS && in->segments[slot].handle) slot++;
  if (slot == SLOTS) return;
  if (chance(from, 15)) create_file(in, from, slot);
  else create_anonymous(in, from, slot);
}

static bool is_mapped(const world *in, uint32_t slot) {
  for (uint32_t m = 0; m < MAPPINGS; m++)
    if (in->mappings[m].held && in->mappings[m].slot == slot) return true;
  return false;
}

static void free_segment(world *in, uint32_t slot) {
  world_segment *segment = &in->segments[slot];
  ff_result result = ff_segment_free(segment->handle);
  program_trace(in->program, "%u.%u: free(s%u) = %s", in->index, in->steps, slot, ff_result_name(result));
  if (is_mapped(in, slot)) {
    if (result != FF_ERROR_BUSY)
      program_wrong(in->program, "a segment that is mapped was freed: %s", ff_result_name(result));
    if (result) return;
  } else if (!program_allows(in->program, result, "ff_segment_free")) {
    return;
  }
  entry *one = log_add(in, ENTRY_FREE, slot);
  if (segment->file) one->data = world_read_file(segment->path, &one->bytes);
  if (segment->file && !one->data) program_wrong(in->program, "%s is gone", segment->path);
  segment->handle = NULL;
}

static void step_free(world *in, choices *from) {
  uint32_t slot = any_segment(in, from);
  if (slot < SLOTS) free_segment(in, slot);
}

/* ---- the host window ---- */

static bool map(world *in, uint32_t slot, ff_access access, uint64_t offset, uint64_t bytes, world_mapping *mapping) {
  world_segment *segment = &in->segments[slot];
  *mapping = (world_mapping){.held = true, .slot = slot, .access = access, .offset = offset, .bytes = bytes};
  uint64_t asked = offset + bytes == segment->bytes && in->steps % 2 ? 0 : bytes; /* 0: to the end */
  ff_result result = ff_segment_map(segment->handle, access, offset, asked, &mapping->host);
  program_trace(in->program, "%u.%u: map(s%u, %s, %llu, +%llu) = %s", in->index, in->steps, slot, access_names[access],
                (unsigned long long)offset, (unsigned long long)bytes, ff_result_name(result));
  if (world_is_busy(in, slot, offset, bytes, access)) {
    if (result != FF_ERROR_BUSY && in->program->options->failures == PROGRAM_NO_FAILURES)
      program_wrong(in->program, "mapped over a mapping: %s", ff_result_name(result));
    if (!result) ff_segment_unmap(segment->handle, mapping->host);
    return false;
  }
  if (!program_allows(in->program, result, "ff_segment_map")) return false;
  if (access & FF_READ) log_data(in, ENTRY_SEEN, slot, offset, bytes, mapping->host);
  return true;
}

/* Writes what was mapped for writing (some of what may be read too), and ends the mapping; `data`: what to write, or
 * NULL. */
static bool unmap(world *in, choices *from, world_mapping *mapping, const void *data) {
  world_segment *segment = &in->segments[mapping->slot];
  uint64_t begin = 0, bytes = mapping->bytes;
  char *host = mapping->host;
  if (mapping->access == FF_READ_WRITE) any_range(from, mapping->bytes, &begin, &bytes);
  char *copy = ff_alloc(mapping->bytes);
  if (mapping->access == FF_READ) memcpy(copy, host, mapping->bytes); /* is it still what it was? */
  else if (data) memcpy(host + begin, data, bytes);
  else kernels_fill(choose(from, UINT64_MAX), host + begin, bytes);
  if (mapping->access & FF_WRITE) memcpy(copy, host + begin, bytes);
  ff_result result = ff_segment_unmap(segment->handle, mapping->host);
  program_trace(in->program, "%u.%u: unmap(s%u, %s %llu, +%llu) = %s", in->index, in->steps, mapping->slot,
                access_names[mapping->access], (unsigned long long)(mapping->offset + begin), (unsigned long long)bytes,
                ff_result_name(result));
  bool done = program_allows(in->program, result, "ff_segment_unmap");
  if (done || mapping->access == FF_READ_WRITE)
    log_data(in, mapping->access & FF_WRITE ? ENTRY_WRITTEN : ENTRY_SEEN, mapping->slot, mapping->offset + begin, bytes,
             copy);
  free(copy);
  mapping->held = !done;
  return done;
}

static world_mapping *free_mapping(world *in) {
  for (uint32_t m = 0; m < MAPPINGS; m++)
    if (!in->mappings[m].held) return &in->mappings[m];
  return NULL;
}

static void step_map(world *in, choices *from) {
  uint32_t slot = any_segment(in, from);
  world_mapping *mapping = free_mapping(in), made;
  if (slot == SLOTS || !mapping) return;
  ff_access access = (ff_access)choose_between(from, 1, 3);
  if (in->segments[slot].file && !in->segments[slot].writable) access = FF_READ;
  uint64_t offset, bytes;
  any_range(from, in->segments[slot].bytes, &offset, &bytes);
  if (!map(in, slot, access, offset, bytes, &made)) return;
  bool again = false; /* ff_segment_unmap could not tell which of the two is meant */
  for (uint32_t m = 0; m < MAPPINGS; m++) again |= in->mappings[m].held && in->mappings[m].host == made.host;
  *mapping = made;
  if (again || chance(from, 85)) unmap(in, from, mapping, NULL);
}

static void step_unmap(world *in, choices *from) {
  world_mapping *mapping = &in->mappings[choose(from, MAPPINGS)];
  if (mapping->held) unmap(in, from, mapping, NULL);
}

/* ---- launches ---- */

static void any_use(world *in, choices *from, uint32_t slot, launch_use *use, const uint32_t grid[3]) {
  *use = (launch_use){.slot = slot};
  mix_shape *shape = &use->shape;
  any_range(from, in->segments[slot].bytes, &use->offset, &shape->bytes);
  shape->access = (uint32_t)choose_between(from, 1, 3);
  if (in->segments[slot].file && !in->segments[slot].writable && !chance(from, 10)) shape->access = FF_READ;
  if (!chance(from, 35)) return;
  uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2], row = (shape->bytes + blocks - 1) / blocks;
  shape->per_block[0] = (int64_t)row;
  shape->per_block[1] = (int64_t)(row * grid[0]);
  shape->per_block[2] = (int64_t)(row * grid[0] * grid[1]);
  shape->block_bytes = row;
  if (chance(from, 25)) shape->block_bytes = 1 + choose(from, 2 * row);        /* holes, or rows that overlap */
  if (chance(from, 10)) shape->per_block[0] = -(int64_t)choose(from, row + 1); /* backwards, clipped */
  if (chance(from, 10)) shape->per_block[1] = 0;
  if (mix_is_whole(shape)) shape->block_bytes = 0;
}

typedef struct request {
  ff_launch_request launch;
  ff_argument arguments[1 + 2 * MIX_USES];
  ff_use uses[MIX_USES];
} request;

static void make_request(const world *in, const launch_spec *spec, request *out) {
  const program *program = in->program;
  *out = (request){.launch = {.kernel = spec->follow  ? program->follow
                                        : spec->clean ? program->clean[spec->count]
                                                      : program->mix[spec->count],
                              .block = {32, 1, 1},
                              .device = spec->device}};
  uint32_t count = 0;
  memcpy(out->launch.grid, spec->grid, sizeof spec->grid);
  out->arguments[count++] = (ff_argument){&spec->seed, 8, NULL, 0};
  for (uint32_t u = 0; u < spec->count; u++) {
    const launch_use *use = &spec->uses[u];
    ff_segment *segment = in->segments[use->slot].handle;
    bool to_end = use->offset + use->shape.bytes == in->segments[use->slot].bytes && spec->seed % 2;
    out->uses[u] = (ff_use){.segment = segment,
                            .access = (ff_access)use->shape.access,
                            .offset = use->offset,
                            .bytes = to_end ? 0 : use->shape.bytes,
                            .per_block = {use->shape.per_block[0], use->shape.per_block[1], use->shape.per_block[2]},
                            .block_bytes = use->shape.block_bytes};
    if (spec->follow && u) continue;
    out->arguments[count++] = (ff_argument){NULL, 8, segment, use->offset};
    out->arguments[count++] = spec->follow ? (ff_argument){&spec->pointers, 4, NULL, 0}
                                           : (ff_argument){&use->shape, sizeof use->shape, NULL, 0};
  }
  out->launch.arguments = out->arguments;
  out->launch.argument_count = count;
  out->launch.uses = out->uses;
  out->launch.use_count = spec->count;
}

static void trace_launch(world *in, const launch_spec *spec, ff_result result, ff_ticket ticket) {
  ff_text text = {0};
  for (uint32_t u = 0; u < spec->count; u++) {
    const launch_use *use = &spec->uses[u];
    ff_text_add(&text, ", s%u %s [%llu, +%llu)", use->slot, access_names[use->shape.access],
                (unsigned long long)use->offset, (unsigned long long)use->shape.bytes);
    if (!mix_is_whole(&use->shape))
      ff_text_add(&text, " per block %lld %lld %lld +%llu", (long long)use->shape.per_block[0],
                  (long long)use->shape.per_block[1], (long long)use->shape.per_block[2],
                  (unsigned long long)use->shape.block_bytes);
  }
  need need = world_needed(in, spec);
  program_trace(in->program, "%u.%u: launch %llu (%s, device %u, grid %u %u %u%s; needs %llu to %llu) = %s", in->index,
                in->steps, (unsigned long long)ticket,
                spec->follow  ? "follow"
                : spec->clean ? "clean"
                              : "mix",
                spec->device, spec->grid[0], spec->grid[1], spec->grid[2], text.chars ? text.chars : "",
                (unsigned long long)need.least, (unsigned long long)need.most, ff_result_name(result));
  free(text.chars);
}

static void launch(world *in, const launch_spec *spec) {
  request request;
  ff_ticket ticket = 0;
  make_request(in, spec, &request);
  ff_result result = ff_launch(in->program->gpu, &request.launch, &ticket);
  trace_launch(in, spec, result, ticket);
  world_judge(in, spec, result, false);
  pthread_mutex_lock(&in->program->lock);
  if (result) in->program->result->refused++;
  else in->program->result->launches++;
  pthread_mutex_unlock(&in->program->lock);
  if (result) return;
  entry *one = log_add(in, ENTRY_LAUNCH, 0);
  one->ticket = ticket;
  one->windows = spec->clean && world_needed(in, spec).most + world_pinned_bytes(in, spec) > in->program->budget;
  one->launch = ff_alloc(sizeof *spec);
  *one->launch = *spec;
}

static bool any_mix(world *in, choices *from, launch_spec *spec) {
  *spec = (launch_spec){.seed = choose(from, UINT64_MAX), .grid = {1, 1, 1}};
  if (chance(from, 60))
    for (int d = 0; d < 3; d++) spec->grid[d] = (uint32_t)choose_between(from, 1, d ? 3 : 8);
  spec->count = (uint32_t)(chance(from, 80) ? choose_between(from, 1, 3) : choose_between(from, 0, MIX_USES));
  for (uint32_t u = 0; u < spec->count; u++) {
    uint32_t slot = any_segment(in, from);
    if (slot == SLOTS) return false;
    any_use(in, from, slot, &spec->uses[u], spec->grid);
  }
  if (chance(from, 30)) spec->device = (uint32_t)choose(from, in->program->devices + 1);
  return true;
}

/* Rows of their own for all blocks, or for the blocks of one axis where the others have no more than one. */
static void any_rows(world *in, choices *from, uint32_t slot, launch_use *use, const uint32_t grid[3], bool written) {
  *use = (launch_use){.slot = slot};
  mix_shape *shape = &use->shape;
  any_range(from, in->segments[slot].bytes, &use->offset, &shape->bytes);
  shape->access = written ? (uint32_t)choose_between(from, 2, 3) : FF_READ;
  if (!written && chance(from, 25)) return;
  uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2], row = (shape->bytes + blocks - 1) / blocks;
  bool z_first = chance(from, 30); /* which axis' rows are next to each other */
  shape->per_block[0] = (int64_t)(z_first ? row * grid[2] * grid[1] : row);
  shape->per_block[1] = (int64_t)(z_first ? row * grid[2] : row * grid[0]);
  shape->per_block[2] = (int64_t)(z_first ? row : row * grid[0] * grid[1]);
  shape->block_bytes = row;
  if (chance(from, 25)) shape->block_bytes = written ? 1 + choose(from, row) : 1 + choose(from, 3 * row);
}

/* No block writes what another one touches: at most one use of each segment that is written. */
static bool any_clean(world *in, choices *from, launch_spec *spec) {
  bool used[SLOTS] = {false};
  *spec = (launch_spec){.clean = true,
                        .seed = choose(from, UINT64_MAX),
                        .count = (uint32_t)choose_between(from, 1, chance(from, 60) ? 2 : 4)};
  for (int d = 0; d < 3; d++)
    spec->grid[d] = (uint32_t)(chance(from, d ? 40 : 90) ? choose_between(from, 1, d ? 4 : 12) : 1);
  for (uint32_t u = 0; u < spec->count; u++) {
    uint32_t slot = any_segment(in, from);
    if (slot == SLOTS || used[slot]) return false;
    used[slot] = true;
    any_rows(in, from, slot, &spec->uses[u], spec->grid,
             chance(from, 60) && (!in->segments[slot].file || in->segments[slot].writable));
  }
  if (chance(from, 30)) spec->device = (uint32_t)choose(from, in->program->devices + 1);
  return true;
}

static void step_launch(world *in, choices *from) {
  launch_spec spec;
  if (chance(from, 30) ? any_clean(in, from, &spec) : any_mix(in, from, &spec)) launch(in, &spec);
}

static void step_plan(world *in, choices *from) {
  launch_spec spec;
  request request;
  ff_plan plan = {.needed = 0};
  if (!(chance(from, 50) ? any_clean(in, from, &spec) : any_mix(in, from, &spec))) return;
  make_request(in, &spec, &request);
  ff_result result = ff_launch_plan(in->program->gpu, &request.launch, &plan);
  need need = world_needed(in, &spec);
  program_trace(in->program, "%u.%u: plan = %s: %llu bytes, %llu windows (%llu to %llu)", in->index, in->steps,
                ff_result_name(result), (unsigned long long)plan.needed, (unsigned long long)plan.windows,
                (unsigned long long)need.least, (unsigned long long)need.most);
  world_judge(in, &spec, result, true);
  if (result) return;
  if (plan.needed < need.least || plan.needed > need.most + world_pinned_bytes(in, &spec))
    program_wrong(in->program, "a plan of %llu bytes for what needs %llu to %llu", (unsigned long long)plan.needed,
                  (unsigned long long)need.least, (unsigned long long)need.most);
  if (plan.windows == 1 && need.least > in->program->budget)
    program_wrong(in->program, "a plan to run whole what is larger than the budget");
}

/* A table of addresses is written, then a kernel follows them. */
static void step_follow(world *in, choices *from) {
  uint32_t table = any_segment(in, from), target = any_segment(in, from);
  world_mapping mapping;
  if (table == SLOTS || table == target || in->segments[table].bytes < 8 || in->segments[target].bytes < 8) return;
  if ((in->segments[table].file && !in->segments[table].writable) ||
      (in->segments[target].file && !in->segments[target].writable))
    return;
  launch_spec spec = {.follow = true,
                      .seed = choose(from, UINT64_MAX),
                      .grid = {1, 1, 1},
                      .count = 2,
                      .device = 1 + (uint32_t)choose(from, in->program->devices)};
  spec.pointers = (uint32_t)choose_between(from, 1, smaller(16, in->segments[table].bytes / 8));
  uint64_t pointers[16], base = in->segments[target].address[spec.device - 1];
  if (!base) return;
  for (uint32_t i = 0; i < spec.pointers; i++) pointers[i] = base + choose(from, in->segments[target].bytes - 7);
  if (is_mapped(in, table) || !map(in, table, FF_WRITE, 0, 8 * spec.pointers, &mapping)) return;
  world_mapping *kept = free_mapping(in);
  if (!unmap(in, from, &mapping, pointers)) {
    if (kept) *kept = mapping; /* ended later */
    return;
  }
  spec.uses[0] = (launch_use){table, 0, {.bytes = 8 * spec.pointers, .access = FF_READ}};
  spec.uses[1] = (launch_use){target, 0, {.bytes = in->segments[target].bytes, .access = FF_READ_WRITE}};
  launch(in, &spec);
}

/* ---- the rest ---- */

static void step_residency(world *in, choices *from) {
  uint32_t slot = any_segment(in, from), device = (uint32_t)choose(from, in->program->devices);
  if (slot == SLOTS) return;
  world_segment *segment = &in->segments[slot];
  uint64_t what = choose(from, in->program->pins ? 5 : 3);
  bool pin = chance(from, 50);
  static const char *const names[] = {"evict", "flush", "prioritise", "pin", "pin"};
  ff_result result = what == 0   ? ff_segment_evict(segment->handle)
                     : what == 1 ? ff_segment_flush(segment->handle)
                     : what == 2 ? ff_segment_prioritise(segment->handle, (int)choose(from, 5) - 2)
                                 : ff_segment_pin(segment->handle, device, pin);
  program_trace(in->program, "%u.%u: %s(s%u) %s %u = %s", in->index, in->steps, names[what], slot, pin ? "yes" : "no",
                device, ff_result_name(result));
  if (result == FF_ERROR_BUSY && (is_mapped(in, slot) || segment->pinned[device])) return;
  if (what >= 3 && pin && result == FF_ERROR_TOO_LARGE) return;
  if (program_allows(in->program, result, names[what]) && what >= 3) segment->pinned[device] = pin;
}

static void step_describe(world *in, choices *from) {
  uint32_t slot = any_segment(in, from);
  ff_segment_info info;
  if (slot == SLOTS) return;
  const world_segment *segment = &in->segments[slot];
  ff_result result = ff_segment_describe(segment->handle, &info);
  if (!program_allows(in->program, result, "ff_segment_describe")) return;
  if (info.bytes != segment->bytes || (segment->address[0] && info.address != segment->address[0]) ||
      info.file != segment->file)
    program_wrong(in->program, "step %u: segment %u is described as another one", in->steps, slot);
  if (info.newer_bytes > info.valid_bytes || info.valid_bytes > info.bytes)
    program_wrong(in->program, "step %u: segment %u has %llu newer bytes of %llu valid ones of %llu", in->steps, slot,
                  (unsigned long long)info.newer_bytes, (unsigned long long)info.valid_bytes,
                  (unsigned long long)info.bytes);
}

static void step_owner(world *in, choices *from) {
  uint32_t slot = any_segment(in, from), device = (uint32_t)choose(from, in->program->devices);
  ff_segment *owner = NULL;
  uint64_t offset = 0;
  if (slot == SLOTS || !in->segments[slot].address[device]) return;
  const world_segment *segment = &in->segments[slot];
  uint64_t wanted = choose(from, segment->bytes);
  ff_result result = ff_owner(in->program->gpu, segment->address[device] + wanted, &owner, &offset);
  if (result || owner != segment->handle || offset != wanted)
    program_wrong(in->program, "step %u: byte %llu of segment %u is not its own: %s", in->steps,
                  (unsigned long long)wanted, slot, ff_result_name(result));
  result = ff_owner(in->program->gpu, segment->address[device] + segment->bytes, &owner, &offset);
  if (!result && owner == segment->handle && in->program->devices == 1)
    program_wrong(in->program, "step %u: segment %u owns what is behind it", in->steps, slot);
  if (ff_owner(in->program->gpu, 1, &owner, &offset) != FF_ERROR_NOT_FOUND)
    program_wrong(in->program, "address 1 has an owner");
}

/* Any launch of this world; 0: there is none. */
static ff_ticket any_ticket(world *in, choices *from) {
  for (size_t tries = 0; tries < 4 && in->log.count; tries++) {
    const entry *one = &in->log.items[choose(from, in->log.count)];
    if (one->kind == ENTRY_LAUNCH) return one->ticket;
  }
  return 0;
}

static void step_wait(world *in, choices *from) {
  ff_ticket ticket = any_ticket(in, from);
  uint64_t what = choose(from, 8);
  bool done = false;
  if (!ticket && what < 6) return;
  ff_result result = what < 3    ? ff_wait(in->program->gpu, ticket)
                     : what < 6  ? ff_done(in->program->gpu, ticket, &done)
                     : what == 6 ? ff_flush(in->program->gpu)
                                 : ff_wait_all(in->program->gpu);
  program_trace(in->program, "%u.%u: %s %llu = %s", in->index, in->steps,
                what < 3    ? "wait"
                : what < 6  ? done ? "done: yes" : "done: no"
                : what == 6 ? "flush"
                            : "wait for all",
                (unsigned long long)(what < 6 ? ticket : 0), ff_result_name(result));
  if (!program_allows(in->program, result, "ff_wait, ff_done, ff_flush") || what >= 3) return;
  if (ff_done(in->program->gpu, ticket, &done) || !done)
    program_wrong(in->program, "launch %llu was waited for and is not over", (unsigned long long)ticket);
}

/* The module is loaded anew; launches of the old one may be queued. */
static void step_module(world *in) {
  program *program = in->program;
  ff_module *made;
  ff_kernel *kernels[MIX_USES + 1];
  if (!program->pins) return; /* others use it */
  ff_result result = ff_module_load(program->gpu, "clean", program->clean_text, 0, &made);
  program_trace(program, "%u.%u: load = %s", in->index, in->steps, ff_result_name(result));
  bool good = program_allows(program, result, "ff_module_load");
  if (!good) return;
  for (int n = 0; n <= MIX_USES && good; n++) {
    char name[16];
    snprintf(name, sizeof name, "clean%d", n);
    good = program_allows(program, ff_kernel_find(made, name, &kernels[n]), "ff_kernel_find");
  }
  result = ff_module_unload(good ? program->clean_module : made);
  program_trace(program, "%u.%u: unload = %s", in->index, in->steps, ff_result_name(result));
  if (!program_allows(program, result, "ff_module_unload") || !good) return;
  program->clean_module = made;
  memcpy(program->clean, kernels, sizeof kernels);
}

static void step_statistics(world *in, choices *from) {
  ff_statistics statistics;
  if (!program_allows(in->program, ff_statistics_get(in->program->gpu, &statistics), "ff_statistics_get")) return;
  uint64_t most = in->program->budget * in->program->devices;
  if (statistics.resident_bytes > most || statistics.peak_resident_bytes > most ||
      statistics.resident_bytes > statistics.peak_resident_bytes)
    program_wrong(in->program, "step %u: %llu bytes resident, %llu at most, of a budget of %llu", in->steps,
                  (unsigned long long)statistics.resident_bytes, (unsigned long long)statistics.peak_resident_bytes,
                  (unsigned long long)most);
  if (in->program->pinned && statistics.pinned_host_bytes > in->program->pinned)
    program_wrong(in->program, "step %u: %llu bytes of segments are page-locked", in->steps,
                  (unsigned long long)statistics.pinned_host_bytes);
  model_counts counts;
  program_model()->count(&counts);
  if (in->program->options->threads > 1) return; /* the others go on */
  /* What was evicted stays mapped in its old place for a while, in addition to the new one. */
  uint64_t mappings = statistics.mapped_pieces - statistics.unmapped_pieces;
  if (mappings != counts.mappings || statistics.resident_bytes > mappings * in->program->piece ||
      counts.handles * in->program->piece > most)
    program_wrong(
        in->program,
        "step %u: %llu bytes are said to be resident and %llu pieces mapped, the driver has %llu mapped of %llu",
        in->steps, (unsigned long long)statistics.resident_bytes, (unsigned long long)mappings,
        (unsigned long long)counts.mappings, (unsigned long long)counts.handles);
}

void world_step(world *in, choices *from) {
  uint64_t what = choose(from, 100);
  in->steps++;
  if (what < 44) step_launch(in, from);
  else if (what < 60) step_map(in, from);
  else if (what < 64) step_unmap(in, from);
  else if (what < 73) step_create(in, from);
  else if (what < 76) step_free(in, from);
  else if (what < 84) step_residency(in, from);
  else if (what < 87) step_describe(in, from);
  else if (what < 89) step_owner(in, from);
  else if (what < 93) step_wait(in, from);
  else if (what < 94) chance(from, 50) ? step_statistics(in, from) : step_module(in);
  else if (what < 96) step_plan(in, from);
  else step_follow(in, from);
}

/* ---- the end ---- */

static void ask_for_outcomes(world *in) {
  for (size_t i = 0; i < in->log.count; i++) {
    entry *one = &in->log.items[i];
    if (one->kind != ENTRY_LAUNCH) continue;
    ff_result result = ff_wait(in->program->gpu, one->ticket);
    one->ended_well = program_allows(in->program, result, "ff_wait");
    if (one->ended_well) continue;
    program_trace(in->program, "%u: launch %llu came to %s: %s", in->index, (unsigned long long)one->ticket,
                  ff_result_name(result), ff_message());
    pthread_mutex_lock(&in->program->lock);
    in->program->torn |= one->windows;
    in->program->result->failed_launches++;
    pthread_mutex_unlock(&in->program->lock);
  }
}

void world_leave(world *in, choices *from) {
  in->steps++;
  for (uint32_t m = 0; m < MAPPINGS; m++)
    if (in->mappings[m].held && (in->mappings[m].access & FF_WRITE)) unmap(in, from, &in->mappings[m], NULL);
  for (size_t i = 0; i < in->log.count; i++) in->log.items[i].ended_well = true;
}

void world_end(world *in, choices *from) {
  world_mapping mapping;
  in->steps++;
  for (uint32_t m = 0; m < MAPPINGS; m++)
    if (in->mappings[m].held) unmap(in, from, &in->mappings[m], NULL);
  ask_for_outcomes(in);
  for (uint32_t s = 0; s < SLOTS; s++) {
    if (!in->segments[s].handle) continue;
    if (map(in, s, FF_READ, 0, in->segments[s].bytes, &mapping)) unmap(in, from, &mapping, NULL);
    if (chance(from, 50)) free_segment(in, s);
  }
}

void world_free(world *in) {
  for (size_t i = 0; i < in->log.count; i++) {
    free(in->log.items[i].data);
    free(in->log.items[i].launch);
    if (in->log.items[i].kind == ENTRY_CREATE && in->log.items[i].segment.file) unlink(in->log.items[i].segment.path);
  }
  free(in->log.items);
}
