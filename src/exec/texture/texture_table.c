/* SPDX-License-Identifier: Apache-2.0 */
/* The handles of texture and surface objects, and which variables hold such handles.
 *
 * A handle is slot + 1 in its low 20 bits and the slot's generation above, so that the handle of a removed object is
 * not taken for that of the slot's next object. Slots stand in chunks that do not move: a kernel looks handles up
 * without a lock while another thread adds one.
 *
 *     slots in use + spare slots == count; a slot in use has a handle of its own number, with an image that lies in its
 *     memory (slots_check, at the deep level) */
#include "exec/texture/texture_table.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"
#include "exec/memory/space.h"
#include "exec/texture/texture_sample.h"

enum { SLOT_BITS = 20, CHUNK = 256, CHUNKS = (1 << SLOT_BITS) / CHUNK, GENERATION_BITS = 24 };

typedef struct slot {
  uint64_t handle; /* 0: free */
  uint32_t generation;
  exec_texture texture;
} slot;

typedef struct cells {
  uint64_t address, bytes;
} cells; /* of one variable */

struct exec_textures {
  pthread_mutex_t lock;
  slot *chunks[CHUNKS];
  uint32_t count; /* slots ever used */
  FF_VEC(uint32_t) spare;
  FF_VEC(cells) cells;
};

static exec_textures *table_of(exec_memory *memory) {
  exec_textures **place = exec_memory_textures(memory);
  exec_textures *table = __atomic_load_n(place, __ATOMIC_ACQUIRE);
  if (table) return table;
  table = ff_alloc(sizeof *table);
  pthread_mutex_init(&table->lock, NULL);
  exec_textures *other = NULL;
  if (__atomic_compare_exchange_n(place, &other, table, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return table;
  exec_textures_free(table);
  return other;
}

void exec_textures_free(exec_textures *table) {
  if (!table) return;
  for (uint32_t c = 0; c < CHUNKS; c++) free(table->chunks[c]);
  free(table->spare.items);
  free(table->cells.items);
  pthread_mutex_destroy(&table->lock);
  free(table);
}

/* ---- what may be added ---- */

static bool image_inside(const exec_texture *t, const exec_image *image) {
  uint32_t texel = exec_texel_bytes(t);
  uint64_t offset = image->address - t->address, row = (uint64_t)exec_texels_across(t->blocks, image->width) * texel,
           rows, slices, end;
  uint32_t height = exec_texels_across(t->blocks, image->height);
  if (!image->width || !image->height || !image->depth || image->address < t->address || offset > t->bytes)
    return false;
  if (__builtin_mul_overflow(height - 1, image->pitch, &rows) ||
      __builtin_mul_overflow(image->depth - 1, image->slice, &slices))
    return false;
  if (__builtin_add_overflow(rows, slices, &end) || __builtin_add_overflow(end, row, &end)) return false;
  if ((image->address | (height > 1 ? image->pitch : 0) | (image->depth > 1 ? image->slice : 0)) & (texel - 1))
    return false;
  return end <= t->bytes - offset;
}

static ff_status check(const exec_texture *t, ff_error *error) {
  bool good = t->type < EXEC_TEXEL_COUNT && (t->channels == 1 || t->channels == 2 || t->channels == 4) &&
              t->dimensions >= 1 && t->dimensions <= 3 && t->level_count >= 1 &&
              t->level_count <= EXEC_TEXTURE_LEVELS && t->address + t->bytes >= t->address;
  good = good &&
         (!t->blocks || (t->blocks < EXEC_BLOCKS_COUNT && !t->surface && t->dimensions > 1 && texture_gives_floats(t)));
  for (uint32_t l = 0; good && l < t->level_count; l++)
    good = image_inside(t, &t->level[l]) && (!t->cube || t->level[l].depth % 6 == 0);
  return good ? FF_OK : ff_fail(error, FF_INVALID, "a texture whose texels are not inside its memory");
}

/* ---- adding and removing ---- */

static slot *slot_at(const exec_textures *table, uint32_t index) {
  slot *chunk = __atomic_load_n(&table->chunks[index / CHUNK], __ATOMIC_ACQUIRE);
  return chunk ? &chunk[index % CHUNK] : NULL;
}

static void slots_check(const exec_textures *table) { /* with the lock */
  uint32_t used = 0;
  for (uint32_t i = 0; i < table->count; i++) {
    const slot *s = slot_at(table, i);
    if (!s->handle) continue;
    used++;
    FF_ASSERT((s->handle & ((1u << SLOT_BITS) - 1)) == i + 1 && check(&s->texture, NULL) == FF_OK);
  }
  FF_ASSERT(used + table->spare.count == table->count);
}

ff_status exec_texture_add(exec_memory *memory, const exec_texture *texture, uint64_t *handle, ff_error *error) {
  ff_status status = check(texture, error);
  if (status != FF_OK) return status;
  exec_textures *table = table_of(memory);
  pthread_mutex_lock(&table->lock);
  uint32_t index = table->spare.count ? table->spare.items[--table->spare.count] : table->count++;
  if (index >= CHUNK * CHUNKS - 1) {
    table->count--;
    status = ff_fail(error, FF_LIMIT, "more than %d texture and surface objects", CHUNK * CHUNKS - 1);
  } else {
    if (!table->chunks[index / CHUNK])
      __atomic_store_n(&table->chunks[index / CHUNK], ff_alloc(CHUNK * sizeof(slot)), __ATOMIC_RELEASE);
    slot *s = slot_at(table, index);
    s->texture = *texture;
    *handle = (uint64_t)(s->generation & ((1u << GENERATION_BITS) - 1)) << SLOT_BITS | (index + 1);
    __atomic_store_n(&s->handle, *handle, __ATOMIC_RELEASE);
    if (ff_check_level >= 2) slots_check(table);
  }
  pthread_mutex_unlock(&table->lock);
  return status;
}

static slot *find_slot(const exec_textures *table, uint64_t handle) {
  uint32_t index = (uint32_t)(handle & ((1u << SLOT_BITS) - 1)) - 1;
  if (!table || !handle || index >= CHUNK * CHUNKS) return NULL;
  slot *s = slot_at(table, index);
  return s && __atomic_load_n(&s->handle, __ATOMIC_ACQUIRE) == handle ? s : NULL;
}

ff_status exec_texture_remove(exec_memory *memory, uint64_t handle, ff_error *error) {
  exec_textures *table = table_of(memory);
  pthread_mutex_lock(&table->lock);
  slot *s = find_slot(table, handle);
  if (s) {
    __atomic_store_n(&s->handle, 0, __ATOMIC_RELEASE);
    s->generation++;
    FF_PUSH(&table->spare, (uint32_t)(handle & ((1u << SLOT_BITS) - 1)) - 1);
    if (ff_check_level >= 2) slots_check(table);
  }
  pthread_mutex_unlock(&table->lock);
  return s ? FF_OK : ff_fail(error, FF_NOT_FOUND, "0x%" PRIx64 " is no texture or surface object", handle);
}

/* ---- finding ---- */

static bool is_cell(const exec_memory *memory, exec_textures *table, uint64_t address) {
  bool cell = false;
  pthread_mutex_lock(&table->lock);
  for (size_t n = 0; n < table->cells.count && !cell; n++)
    cell = address - table->cells.items[n].address < table->cells.items[n].bytes && address % 8 == 0;
  pthread_mutex_unlock(&table->lock);
  const exec_span *span = cell ? exec_memory_span(memory, address) : NULL;
  return span && address - span->info.address < span->readable && span->readable - (address - span->info.address) >= 8;
}

bool exec_texture_is_cell(const exec_memory *memory, uint64_t address) {
  exec_textures *table = __atomic_load_n(exec_memory_textures((exec_memory *)(uintptr_t)memory), __ATOMIC_ACQUIRE);
  return table && exec_memory_in_arena(memory, address) && is_cell(memory, table, address);
}

const exec_texture *exec_texture_find(const exec_memory *memory, uint64_t handle) {
  exec_textures *table = __atomic_load_n(exec_memory_textures((exec_memory *)(uintptr_t)memory), __ATOMIC_ACQUIRE);
  if (!table) return NULL;
  if (exec_memory_in_arena(memory, handle)) /* a variable's address */
    handle =
        is_cell(memory, table, handle) ? __atomic_load_n((const uint64_t *)(uintptr_t)handle, __ATOMIC_RELAXED) : 0;
  const slot *s = find_slot(table, handle);
  return s ? &s->texture : NULL;
}

void exec_texture_cells(exec_memory *memory, uint64_t address, uint64_t bytes) {
  exec_textures *table = table_of(memory);
  pthread_mutex_lock(&table->lock);
  FF_PUSH(&table->cells, ((cells){address, bytes}));
  pthread_mutex_unlock(&table->lock);
}

void exec_texture_forget_cells(exec_memory *memory, uint64_t address) {
  exec_textures *table = table_of(memory);
  pthread_mutex_lock(&table->lock);
  for (size_t n = 0; n < table->cells.count; n++)
    if (table->cells.items[n].address == address) table->cells.items[n--] = table->cells.items[--table->cells.count];
  pthread_mutex_unlock(&table->lock);
}
