/* SPDX-License-Identifier: Apache-2.0 */
/* The model driver's memory: reserved addresses, pieces of physical memory, mappings of pieces at addresses with access
 * per device.
 *
 * Reservations and mappings are sorted by address and do not overlap; every mapping lies in one reservation and is a
 * whole piece (CUDA allows an offset of 0 only). A piece counts against its device's memory until it has neither handle
 * nor mapping. Device addresses are no host addresses: what takes one for the other crashes. */
#include <stdlib.h>

#include "model_state.h"

static const uint64_t address_begin = 0x700000000000ull, address_end = 0x7f0000000000ull;

/* The index of the first whose end is above `address`. */
#define FIRST_ABOVE(vector, where)                                                                    \
  ({                                                                                                  \
    size_t low_ = 0, high_ = (vector).count;                                                          \
    while (low_ < high_) {                                                                            \
      size_t middle_ = (low_ + high_) / 2;                                                            \
      if ((vector).items[middle_].address + (vector).items[middle_].bytes > (where)) high_ = middle_; \
      else low_ = middle_ + 1;                                                                        \
    }                                                                                                 \
    low_;                                                                                             \
  })
#define INSERT(vector, index, ...)                                                                    \
  do {                                                                                                \
    size_t at_ = (index);                                                                             \
    FF_PUSH(&(vector), (__VA_ARGS__));                                                                \
    for (size_t i_ = (vector).count - 1; i_ > at_; i_--) (vector).items[i_] = (vector).items[i_ - 1]; \
    (vector).items[at_] = (__VA_ARGS__);                                                              \
  } while (0)
#define REMOVE(vector, index, number)                               \
  do {                                                              \
    for (size_t i_ = (index); i_ + (number) < (vector).count; i_++) \
      (vector).items[i_] = (vector).items[i_ + (number)];           \
    (vector).count -= (number);                                     \
  } while (0)

static bool aligned(uint64_t value) { return value % model.options.granularity == 0; }

/* Freed addresses are given again as soon as possible; now and then a gap of one granule is left, mostly none. */
int memory_reserve(cuda_address *address, uint64_t bytes, uint64_t alignment, bool plain) {
  if (!bytes || !aligned(bytes) || (alignment & (alignment - 1)) || bytes > address_end - address_begin) {
    model_violation("cuMemAddressReserve: %llu bytes aligned to %llu", (unsigned long long)bytes,
                    (unsigned long long)alignment);
    return MODEL_INVALID_VALUE;
  }
  if (alignment < model.options.granularity) alignment = model.options.granularity;
  uint64_t gap = model_random(4) ? 0 : model.options.granularity,
           at = (address_begin + gap + alignment - 1) & ~(alignment - 1);
  size_t index = 0;
  for (; index < model.reservations.count && model.reservations.items[index].address < at + bytes; index++)
    at = (model.reservations.items[index].address + model.reservations.items[index].bytes + gap + alignment - 1) &
         ~(alignment - 1);
  if (at + bytes > address_end) return MODEL_OUT_OF_MEMORY;
  INSERT(model.reservations, index, (reservation){at, bytes, plain});
  *address = at;
  return MODEL_OK;
}

int memory_unreserve(uint64_t address, uint64_t bytes) {
  size_t index = FIRST_ABOVE(model.reservations, address), map = FIRST_ABOVE(model.mappings, address);
  const reservation *found = index < model.reservations.count ? &model.reservations.items[index] : NULL;
  if (!found || found->address != address || found->bytes != bytes) {
    model_violation("cuMemAddressFree: [%llx, +%llu) is not what was reserved", (unsigned long long)address,
                    (unsigned long long)bytes);
    return MODEL_INVALID_VALUE;
  }
  if (map < model.mappings.count && model.mappings.items[map].address < address + bytes) {
    model_violation("cuMemAddressFree: [%llx, +%llu) is still mapped", (unsigned long long)address,
                    (unsigned long long)bytes);
    return MODEL_INVALID_VALUE;
  }
  REMOVE(model.reservations, index, 1);
  return MODEL_OK;
}

static void fill_with_garbage(char *data, uint64_t bytes) {
  uint64_t value = model_random(UINT64_MAX) | 1;
  for (uint64_t at = 0; at + 8 <= bytes; at += 8) {
    value = value * 6364136223846793005ull + 1442695040888963407ull;
    memcpy(data + at, &value, 8);
  }
}

int memory_create(cuda_memory *memory, uint64_t bytes, uint32_t device) {
  if (!bytes || !aligned(bytes) || device >= model.options.devices) {
    model_violation("cuMemCreate: %llu bytes on device %u", (unsigned long long)bytes, device);
    return MODEL_INVALID_VALUE;
  }
  device_state *owner = &model.devices[device];
  if (bytes > model.options.memory - owner->used) return MODEL_OUT_OF_MEMORY;
  piece *made = ff_alloc(sizeof *made);
  *made = (piece){.handle = ++model.last_handle << 4, .device = device, .bytes = bytes, .data = ff_alloc(bytes)};
  fill_with_garbage(made->data, bytes);
  owner->used += bytes;
  FF_PUSH(&model.pieces, made);
  *memory = made->handle;
  return MODEL_OK;
}

static void free_if_unused(piece *one) {
  if (one->mappings || !one->released) return;
  model.devices[one->device].used -= one->bytes;
  for (size_t i = 0; i < model.pieces.count; i++)
    if (model.pieces.items[i] == one) model.pieces.items[i] = model.pieces.items[--model.pieces.count];
  free(one->data);
  free(one);
}

static piece *find_piece(cuda_memory memory, const char *call) {
  for (size_t i = 0; i < model.pieces.count; i++)
    if (model.pieces.items[i]->handle == memory && !model.pieces.items[i]->released) return model.pieces.items[i];
  model_violation("%s: %llx is no handle", call, memory);
  return NULL;
}

int memory_release(cuda_memory memory) {
  piece *one = find_piece(memory, "cuMemRelease");
  if (!one) return MODEL_INVALID_VALUE;
  one->released = true;
  free_if_unused(one);
  return MODEL_OK;
}

int memory_map(uint64_t address, uint64_t bytes, cuda_memory memory, bool plain) {
  piece *one = find_piece(memory, "cuMemMap");
  if (!one) return MODEL_INVALID_VALUE;
  size_t where = FIRST_ABOVE(model.reservations, address), index = FIRST_ABOVE(model.mappings, address);
  const reservation *around = where < model.reservations.count ? &model.reservations.items[where] : NULL;
  const char *wrong =
      bytes != one->bytes || !aligned(address) ? "is not the whole handle, aligned"
      : !around || address < around->address || address + bytes > around->address + around->bytes ? "is not reserved"
      : index < model.mappings.count && model.mappings.items[index].address < address + bytes     ? "is mapped already"
                                                                                                  : NULL;
  if (wrong) {
    model_violation("cuMemMap: [%llx, +%llu) %s", (unsigned long long)address, (unsigned long long)bytes, wrong);
    return MODEL_INVALID_VALUE;
  }
  INSERT(model.mappings, index, (mapping){.address = address, .bytes = bytes, .piece = one, .plain = plain});
  one->mappings++;
  return MODEL_OK;
}

/* The mappings [*first, *first + *count) are all of [address, + bytes), without a hole, each whole. */
static bool whole_mappings(uint64_t address, uint64_t bytes, size_t *first, size_t *count) {
  *first = FIRST_ABOVE(model.mappings, address);
  uint64_t at = address;
  for (*count = 0; at < address + bytes; (*count)++) {
    const mapping *one = *first + *count < model.mappings.count ? &model.mappings.items[*first + *count] : NULL;
    if (!one || one->address != at || one->bytes > address + bytes - at) return false;
    at += one->bytes;
  }
  return bytes > 0;
}

int memory_unmap(uint64_t address, uint64_t bytes) {
  size_t first, count;
  if (!whole_mappings(address, bytes, &first, &count)) {
    model_violation("cuMemUnmap: [%llx, +%llu) is not what was mapped", (unsigned long long)address,
                    (unsigned long long)bytes);
    return MODEL_INVALID_VALUE;
  }
  const operation *user = queue_user(address, address + bytes);
  if (user)
    model_violation("use of memory that is unmapped under it: [%llx, +%llu), by a pending %s",
                    (unsigned long long)address, (unsigned long long)bytes, operation_name(user));
  for (size_t i = first; i < first + count; i++) {
    piece *one = model.mappings.items[i].piece;
    one->mappings--;
    free_if_unused(one);
  }
  REMOVE(model.mappings, first, count);
  return MODEL_OK;
}

int memory_access(uint64_t address, uint64_t bytes, const cuda_memory_access *access, size_t count) {
  size_t first, number;
  if (!whole_mappings(address, bytes, &first, &number)) {
    model_violation("cuMemSetAccess: [%llx, +%llu) is not what was mapped", (unsigned long long)address,
                    (unsigned long long)bytes);
    return MODEL_INVALID_VALUE;
  }
  for (size_t a = 0; a < count; a++) {
    if (access[a].location.type != 1 || (uint32_t)access[a].location.id >= model.options.devices ||
        (access[a].flags & ~3) || access[a].flags == 2) {
      model_violation("cuMemSetAccess: location %d of type %d, flags %d", access[a].location.id,
                      access[a].location.type, access[a].flags);
      return MODEL_INVALID_VALUE;
    }
    for (size_t i = first; i < first + number; i++)
      model.mappings.items[i].access[access[a].location.id] = (unsigned char)access[a].flags;
  }
  return MODEL_OK;
}

int memory_allocate(cuda_address *address, uint64_t bytes, uint32_t device) {
  uint64_t whole = (bytes + model.options.granularity - 1) & ~(model.options.granularity - 1);
  cuda_memory memory;
  int result = memory_create(&memory, whole, device);
  if (result) return result;
  result = memory_reserve(address, whole, 0, true);
  if (!result) {
    memory_map(*address, whole, memory, true);
    memory_access(*address, whole, &(cuda_memory_access){{1, (int)device}, 3}, 1);
  }
  memory_release(memory);
  return result;
}

int memory_free(uint64_t address) {
  size_t index = FIRST_ABOVE(model.reservations, address);
  if (index >= model.reservations.count || model.reservations.items[index].address != address ||
      !model.reservations.items[index].plain) {
    model_violation("cuMemFree: %llx is no allocation", (unsigned long long)address);
    return MODEL_INVALID_VALUE;
  }
  uint64_t bytes = model.reservations.items[index].bytes;
  memory_unmap(address, bytes);
  return memory_unreserve(address, bytes);
}

/* The bytes at `address` up to the end of their mapping; NULL: device may not. */
static char *bytes_at(uint32_t device, uint64_t address, unsigned char access, uint64_t *room) {
  size_t index = FIRST_ABOVE(model.mappings, address);
  const mapping *one = index < model.mappings.count ? &model.mappings.items[index] : NULL;
  if (!one || one->address > address || (one->access[device] & access) != access) return NULL;
  *room = one->address + one->bytes - address;
  return one->piece->data + (address - one->address);
}

static bool transfer(uint32_t device, uint64_t address, char *host, const char *source, uint64_t bytes,
                     const char *who) {
  while (bytes) {
    uint64_t room;
    char *here = bytes_at(device, address, source ? 3 : 1, &room);
    if (!here) {
      model_violation("%s of device %u %s %llx, which is not %s", who, device, source ? "writes" : "reads",
                      (unsigned long long)address, memory_is_mapped(address, 1) ? "accessible" : "mapped");
      if (!source) memset(host, 0, bytes);
      return false;
    }
    if (room > bytes) room = bytes;
    if (source) {
      memcpy(here, source, room);
      source += room;
    } else {
      memcpy(host, here, room);
      host += room;
    }
    address += room;
    bytes -= room;
  }
  return true;
}

bool memory_read(uint32_t device, uint64_t address, void *to, uint64_t bytes, const char *who) {
  return transfer(device, address, to, NULL, bytes, who);
}
bool memory_write(uint32_t device, uint64_t address, const void *from, uint64_t bytes, const char *who) {
  return transfer(device, address, NULL, from, bytes, who);
}

bool memory_is_mapped(uint64_t address, uint64_t bytes) {
  uint64_t at = address, end = address + bytes;
  for (size_t index = FIRST_ABOVE(model.mappings, address); at < end; index++) {
    if (index >= model.mappings.count || model.mappings.items[index].address > at) return false;
    at = model.mappings.items[index].address + model.mappings.items[index].bytes;
  }
  return true;
}

host_allocation *memory_host_find(const void *address, uint64_t bytes) {
  for (size_t i = 0; i < model.hosts.count; i++) {
    host_allocation *one = &model.hosts.items[i];
    if ((const char *)address < one->address + one->bytes && (const char *)address + bytes > one->address) return one;
  }
  return NULL;
}

void memory_reset(void) {
  for (size_t i = 0; i < model.pieces.count; i++) {
    free(model.pieces.items[i]->data);
    free(model.pieces.items[i]);
  }
  for (size_t i = 0; i < model.hosts.count; i++) free(model.hosts.items[i].address);
  model.pieces.count = model.mappings.count = model.reservations.count = model.hosts.count = 0;
  model.host_used = 0;
  for (uint32_t d = 0; d < MODEL_DEVICES; d++) model.devices[d].used = 0;
}
