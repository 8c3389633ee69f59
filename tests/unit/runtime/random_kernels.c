/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of random programs (random_kernels.h). */
#include "random_kernels.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { READ = 1, WRITE = 2 };

uint64_t kernels_hash(uint64_t hash, const void *data, uint64_t bytes) {
  const char *at = data;
  for (; bytes >= 8; bytes -= 8, at += 8) {
    uint64_t word;
    memcpy(&word, at, 8);
    hash = (hash ^ word) * 0x9fb21c651e98df25ull;
    hash ^= hash >> 29;
  }
  for (; bytes; bytes--, at++) hash = (hash ^ (unsigned char)*at) * 0x9fb21c651e98df25ull;
  return hash ^ (hash >> 32);
}

void kernels_fill(uint64_t hash, void *data, uint64_t bytes) {
  char *at = data;
  for (; bytes;) {
    hash = hash * 6364136223846793005ull + 1442695040888963407ull;
    uint64_t word = hash ^ (hash >> 31), part = bytes < 8 ? bytes : 8;
    memcpy(at, &word, part);
    at += part;
    bytes -= part;
  }
}

bool mix_is_whole(const mix_shape *shape) {
  return !shape->per_block[0] && !shape->per_block[1] && !shape->per_block[2];
}

bool mix_range(const mix_shape *shape, uint32_t x, uint32_t y, uint32_t z, uint64_t *begin, uint64_t *end) {
  int64_t first = 0, last = (int64_t)shape->bytes;
  if (!mix_is_whole(shape)) {
    first = (int64_t)x * shape->per_block[0] + (int64_t)y * shape->per_block[1] + (int64_t)z * shape->per_block[2];
    last = first + (int64_t)shape->block_bytes;
  }
  if (first < 0) first = 0;
  if (last > (int64_t)shape->bytes) last = (int64_t)shape->bytes;
  *begin = (uint64_t)first;
  *end = (uint64_t)last;
  return first < last;
}

typedef struct mix_use {
  uint64_t address;
  mix_shape shape;
} mix_use;

static uint64_t read_part(model_launch *launch, const mix_use *use, uint64_t begin, uint64_t end, uint64_t hash) {
  char *data = ff_alloc(end - begin);
  launch->read(launch, use->address + begin, data, end - begin);
  hash = kernels_hash(hash, data, end - begin);
  free(data);
  return hash;
}

/* Of a range that is read as well only some bytes are written: a stretch in the middle. */
static void write_part(model_launch *launch, const mix_use *use, uint64_t begin, uint64_t end, uint64_t hash) {
  uint64_t bytes = end - begin;
  char *data = ff_alloc(bytes);
  kernels_fill(hash ^ begin, data, bytes);
  if (use->shape.access & READ) {
    uint64_t from = bytes * (hash >> 32 & 7) / 16, upto = bytes - bytes * (hash >> 40 & 7) / 16;
    launch->write(launch, use->address + begin + from, data + from, upto - from);
  } else {
    launch->write(launch, use->address + begin, data, bytes);
  }
  free(data);
}

static void mix_block(model_launch *launch, const mix_use *uses, uint32_t count, uint32_t x, uint32_t y, uint32_t z,
                      uint64_t hash) {
  uint64_t begin, end;
  for (uint32_t u = 0; u < count; u++)
    if (!mix_is_whole(&uses[u].shape) && (uses[u].shape.access & READ) &&
        mix_range(&uses[u].shape, x, y, z, &begin, &end))
      hash = read_part(launch, &uses[u], begin, end, hash);
  for (uint32_t u = 0; u < count; u++)
    if (!mix_is_whole(&uses[u].shape) && (uses[u].shape.access & WRITE) &&
        mix_range(&uses[u].shape, x, y, z, &begin, &end))
      write_part(launch, &uses[u], begin, end, hash + u);
}

void kernel_mix(model_launch *launch) {
  mix_use uses[MIX_USES];
  uint64_t hash;
  uint32_t count = (launch->argument_count - 1) / 2;
  bool any_per_block = false;
  memcpy(&hash, launch->arguments[0], 8);
  for (uint32_t u = 0; u < count; u++) {
    memcpy(&uses[u].address, launch->arguments[1 + 2 * u], 8);
    memcpy(&uses[u].shape, launch->arguments[2 + 2 * u], sizeof uses[u].shape);
    any_per_block |= !mix_is_whole(&uses[u].shape);
  }
  for (uint32_t u = 0; u < count; u++)
    if (mix_is_whole(&uses[u].shape) && (uses[u].shape.access & READ))
      hash = read_part(launch, &uses[u], 0, uses[u].shape.bytes, hash);
  for (uint32_t z = launch->from[2]; any_per_block && z < launch->to[2]; z++)
    for (uint32_t y = launch->from[1]; y < launch->to[1]; y++)
      for (uint32_t x = launch->from[0]; x < launch->to[0]; x++)
        mix_block(launch, uses, count, x, y, z, hash + x + 1000 * y + 1000000 * z);
  for (uint32_t u = 0; u < count; u++)
    if (mix_is_whole(&uses[u].shape) && (uses[u].shape.access & WRITE))
      write_part(launch, &uses[u], 0, uses[u].shape.bytes, hash + u);
}

void kernel_follow(model_launch *launch) {
  uint64_t seed, table, address, value;
  uint32_t count;
  memcpy(&seed, launch->arguments[0], 8);
  memcpy(&table, launch->arguments[1], 8);
  memcpy(&count, launch->arguments[2], 4);
  for (uint32_t i = 0; i < count; i++) {
    if (!launch->read(launch, table + 8 * i, &address, 8) || !launch->read(launch, address, &value, 8)) return;
    value = value * 31 + seed + i;
    launch->write(launch, address, &value, 8);
  }
}

const char *kernels_register(const model_driver *model, const char **clean) {
  static char text[1024], ptx[8192];
  size_t at = (size_t)sprintf(text, "model\n"),
         ptx_at = (size_t)sprintf(ptx, ".version 7.0\n.target sm_70\n.address_size 64\n");
  for (int n = 0; n <= MIX_USES; n++) {
    char name[16];
    snprintf(name, sizeof name, "mix%d", n);
    model->kernel(name, kernel_mix, false);
    at += (size_t)sprintf(text + at, "%s 8", name);
    snprintf(name, sizeof name, "clean%d", n);
    model->kernel(name, kernel_mix, false);
    ptx_at += (size_t)sprintf(ptx + ptx_at, ".visible .entry %s(.param .u64 seed", name);
    for (int u = 0; u < n; u++) {
      at += (size_t)sprintf(text + at, " 8 %zu", sizeof(mix_shape));
      ptx_at += (size_t)sprintf(ptx + ptx_at, ", .param .u64 address%d, .param .align 8 .b8 shape%d[%zu]", u, u,
                                sizeof(mix_shape));
    }
    at += (size_t)sprintf(text + at, "\n");
    ptx_at += (size_t)sprintf(ptx + ptx_at, ")\n{\n  .reg .b32 %%r<2>;\n  mov.u32 %%r1, %%ctaid.x;\n  ret;\n}\n");
  }
  model->kernel("follow", kernel_follow, true);
  sprintf(text + at, "follow 8 8 4\n");
  *clean = ptx;
  return text;
}
