/* SPDX-License-Identifier: Apache-2.0 */
/* The log of a world done again on the host. What was seen must be what is there then, byte for byte. After the context
 * was lost a segment has, byte by byte, what it had at some time ("what had come back to the host is still there"):
 * then every state that it had is kept and any is good. */
#include <stdlib.h>
#include <string.h>

#include "random_world.h"

typedef struct mirror {
  bool alive;
  world_segment segment;
  char *data, *file;      /* file: all of it */
  FF_VEC(char *) history; /* of a program whose context is lost */
} mirror;

typedef struct replay {
  world *world;
  mirror mirrors[SLOTS];
  uint32_t device; /* whose addresses the launch has */
} replay;

static mirror *mirror_at(replay *in, uint64_t address, uint64_t bytes) {
  for (uint32_t s = 0; s < SLOTS; s++) {
    mirror *one = &in->mirrors[s];
    if (one->alive && address >= one->segment.address[in->device] &&
        address + bytes <= one->segment.address[in->device] + one->segment.bytes)
      return one;
  }
  return NULL;
}

static bool mirror_read(model_launch *launch, uint64_t address, void *to, uint64_t bytes) {
  replay *in = launch->more;
  const mirror *one = mirror_at(in, address, bytes);
  if (!one)
    return program_wrong(in->world->program, "the replay reads outside of every segment: %llx",
                         (unsigned long long)address);
  memcpy(to, one->data + (address - one->segment.address[in->device]), bytes);
  return true;
}

static bool mirror_write(model_launch *launch, uint64_t address, const void *from, uint64_t bytes) {
  replay *in = launch->more;
  mirror *one = mirror_at(in, address, bytes);
  if (!one)
    return program_wrong(in->world->program, "the replay writes outside of every segment: %llx",
                         (unsigned long long)address);
  memcpy(one->data + (address - one->segment.address[in->device]), from, bytes);
  return true;
}

static void replay_launch(replay *in, const launch_spec *spec) {
  const void *arguments[1 + 2 * MIX_USES];
  uint64_t addresses[MIX_USES];
  model_launch launch = {
      .block = {1, 1, 1}, .arguments = arguments, .read = mirror_read, .write = mirror_write, .more = in};
  memcpy(launch.grid, spec->grid, sizeof launch.grid);
  memcpy(launch.to, spec->grid, sizeof launch.to);
  in->device = spec->follow ? spec->device - 1 : 0;
  arguments[launch.argument_count++] = &spec->seed;
  for (uint32_t u = 0; u < spec->count; u++)
    addresses[u] = in->mirrors[spec->uses[u].slot].segment.address[in->device] + spec->uses[u].offset;
  if (spec->follow) {
    arguments[launch.argument_count++] = &addresses[0];
    arguments[launch.argument_count++] = &spec->pointers;
    kernel_follow(&launch);
    return;
  }
  for (uint32_t u = 0; u < spec->count; u++) {
    arguments[launch.argument_count++] = &addresses[u];
    arguments[launch.argument_count++] = &spec->uses[u].shape;
  }
  kernel_mix(&launch);
}

static void keep_history(replay *in) {
  if (in->world->program->options->failures != PROGRAM_LOST) return;
  for (uint32_t s = 0; s < SLOTS; s++) {
    mirror *one = &in->mirrors[s];
    if (!one->alive) continue;
    if (one->history.count && !memcmp(one->history.items[one->history.count - 1], one->data, one->segment.bytes))
      continue;
    char *copy = ff_alloc(one->segment.bytes);
    memcpy(copy, one->data, one->segment.bytes);
    FF_PUSH(&one->history, copy);
  }
}

static void forget(mirror *one) {
  for (size_t i = 0; i < one->history.count; i++) free(one->history.items[i]);
  free(one->history.items);
  free(one->data);
  free(one->file);
  *one = (mirror){.alive = false};
}

static void replay_create(replay *in, const entry *of) {
  mirror *one = &in->mirrors[of->slot];
  *one = (mirror){.alive = true, .segment = of->segment, .data = ff_alloc(of->segment.bytes)};
  if (!of->data) return;
  uint64_t has =
      of->segment.file_bytes > of->segment.file_offset ? of->segment.file_bytes - of->segment.file_offset : 0;
  memcpy(one->data, of->data + of->segment.file_offset, has < of->segment.bytes ? has : of->segment.bytes);
  one->file = ff_alloc(of->segment.file_bytes);
  memcpy(one->file, of->data, of->segment.file_bytes);
}

static bool was_once(const mirror *one, uint64_t at, char byte) {
  for (size_t i = 0; i < one->history.count; i++)
    if (one->history.items[i][at] == byte) return true;
  return false;
}

/* Compares data with the mirror's [offset, + bytes). */
static bool same(replay *in, const entry *of, const mirror *one, const char *data, uint64_t offset, uint64_t bytes,
                 const char *what) {
  for (uint64_t i = 0; i < bytes; i++) {
    if (data[i] == one->data[offset + i] || (in->world->program->lost && was_once(one, offset + i, data[i]))) continue;
    uint64_t wrong = 0, last = i;
    for (uint64_t j = i; j < bytes; j++)
      if (data[j] != one->data[offset + j]) {
        wrong++;
        last = j;
      }
    return program_wrong(
        in->world->program,
        "step %u: %s of segment %u.%u: byte %llu is %02x, not %02x (%llu wrong ones up to %llu, of %llu from %llu)",
        of->step, what, in->world->index, of->slot, (unsigned long long)(offset + i), (unsigned char)data[i],
        (unsigned char)one->data[offset + i], (unsigned long long)wrong, (unsigned long long)(offset + last),
        (unsigned long long)bytes, (unsigned long long)offset);
  }
  return true;
}

/* The file is what it was, with the segment's bytes in their place if they may be written. */
static bool check_file(replay *in, const entry *of, mirror *one, const char *data, uint64_t bytes) {
  const world_segment *segment = &one->segment;
  program *program = in->world->program;
  uint64_t end = segment->file_offset + segment->bytes, begin = segment->file_offset;
  if (bytes < segment->file_bytes || (!segment->writable && bytes != segment->file_bytes))
    return program_wrong(program, "step %u: the file of segment %u has %llu bytes", of->step, of->slot,
                         (unsigned long long)bytes);
  for (uint64_t i = 0; i < segment->file_bytes; i++)
    if ((!segment->writable || i < begin || i >= end) && data[i] != one->file[i])
      return program_wrong(program, "step %u: the file of segment %u has changed at %llu", of->step, of->slot,
                           (unsigned long long)i);
  if (!segment->writable) return true;
  uint64_t has = bytes > begin ? bytes - begin : 0;
  return same(in, of, one, data + begin, 0, has < segment->bytes ? has : segment->bytes, "the file");
}

static bool replay_entry(replay *in, const entry *of) {
  mirror *one = &in->mirrors[of->slot];
  switch (of->kind) {
  case ENTRY_CREATE: replay_create(in, of); return true;
  case ENTRY_LAUNCH:
    if (of->ended_well || in->world->program->lost) replay_launch(in, of->launch);
    return true;
  case ENTRY_SEEN: return same(in, of, one, of->data, of->offset, of->bytes, "the window");
  case ENTRY_WRITTEN: memcpy(one->data + of->offset, of->data, of->bytes); return true;
  case ENTRY_FREE: {
    bool good = !of->data || check_file(in, of, one, of->data, of->bytes);
    forget(one);
    return good;
  }
  }
  return false;
}

/* Files of segments that ff_close freed. */
static bool check_files_left(replay *in) {
  bool good = true;
  for (uint32_t s = 0; s < SLOTS && good; s++) {
    mirror *one = &in->mirrors[s];
    if (!one->alive || !one->file) continue;
    uint64_t bytes;
    char *data = world_read_file(one->segment.path, &bytes);
    good = data ? check_file(in, &(entry){.slot = s, .step = in->world->steps}, one, data, bytes)
                : program_wrong(in->world->program, "%s is gone", one->segment.path);
    free(data);
  }
  return good;
}

bool world_replay(world *in) {
  replay replay = {.world = in};
  bool good = true;
  if (in->program->torn) return true;
  for (size_t i = 0; i < in->log.count && good; i++) {
    good = replay_entry(&replay, &in->log.items[i]) && program_is_good(in->program);
    keep_history(&replay);
  }
  good = good && check_files_left(&replay);
  for (uint32_t s = 0; s < SLOTS; s++) forget(&replay.mirrors[s]);
  return good;
}
