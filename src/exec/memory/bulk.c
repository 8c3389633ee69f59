/* SPDX-License-Identifier: Apache-2.0 */
/* Bulk copies and reductions, and those of tensors (PTX ISA, "Data Movement and Conversion Instructions: Bulk copy",
 * "... Tensor copy"), clusterlaunchcontrol.try_cancel and st.bulk. They are asynchronous; here they are over when they
 * are issued: a program may not look at what is copied before it has waited, and may not change it either.
 *
 * What is read of and written to global memory is in the access stream, 16 bytes a lane. */
#include "exec/memory/bulk.h"

#include <string.h>

#include "exec/launch/checker.h"
#include "exec/launch/fault.h"
#include "exec/memory/shared_address.h"
#include "ptx/ir.h"

#define CHUNK 16u
#define ROW_BYTES 2048u               /* of a box, at most: 256 elements of 8 bytes */
#define BOX_BYTES (UINT64_C(1) << 20) /* more than any SM's shared memory; what is prefetched need not fit it */
#define PREFETCH_BYTES (UINT64_C(1) << 28)

uint64_t core_bulk_address(const core_warp *w, const bulk_address *a, uint32_t lane) {
  if (a->wide) return core_address_in(a->space, exec_u64(&w->x, a->slot)[lane] + (uint64_t)a->add);
  return (uint32_t)(exec_u32(&w->x, a->slot)[lane] + (uint32_t)a->add);
}

static uint32_t word_of(const core_warp *w, uint32_t slot, uint32_t lane) { return exec_u32(&w->x, slot)[lane]; }

/* ---- the access stream ---- */

typedef struct chunks { /* of global memory, that have no record yet */
  core_warp *w;
  exec_instr instr; /* its side data is the exec_access */
  uint64_t at[EXEC_LANES];
  uint32_t count;
} chunks;

static chunks chunks_of(core_warp *w, const exec_instr *i, const exec_access *access) {
  chunks c = {.w = w, .instr = *i};
  c.instr.side = access;
  return c;
}

static void write_chunks(chunks *c) {
  if (c->count && core_tells_places(c->w))
    core_trace_gather(c->w, &c->instr, c->at, 0, CHUNK, c->count < 32 ? (1u << c->count) - 1 : UINT32_MAX);
  c->count = 0;
}

static void add_chunks(chunks *c, uint64_t address, uint64_t bytes) {
  if (!core_tells_places(c->w) || !bytes) return;
  for (uint64_t at = address & ~(uint64_t)(CHUNK - 1); at < address + bytes; at += CHUNK) {
    c->at[c->count++] = at;
    if (c->count == EXEC_LANES) write_chunks(c);
  }
}

/* A checker learns that the bytes have values. */
static void tell_written(core_warp *w, uint32_t lane, ptx_space space, uint64_t address, uint32_t bytes) {
  exec_checker *checker = w->launch->checker;
  if (checker && bytes && (space != PTX_SPACE_SHARED || address < EXEC_WINDOW_BYTES))
    checker->wrote(checker, w, lane, space, address, bytes);
}

static bool is_shared(const exec_access *a, uint64_t address) {
  return a->space == PTX_SPACE_SHARED ||
         (a->space == PTX_SPACE_GENERIC && address - EXEC_SHARED_WINDOW < EXEC_CLUSTER_BYTES);
}

/* ---- reductions ---- */

#define BATCH 32u

/* to[n] = to[n] op from[n], elements of `size` bytes. */
static void reduce_bytes(const core_warp *w, exec_atomic_function reduce, unsigned char *to, const unsigned char *from,
                         uint32_t bytes, uint32_t size, bool alone) {
  _Alignas(64) uint64_t value[BATCH];
  void *cell[BATCH];
  (void)w;
  for (uint32_t at = 0; at < bytes; at += BATCH * size) {
    uint32_t count = (bytes - at) / size < BATCH ? (bytes - at) / size : BATCH;
    for (uint32_t n = 0; n < count; n++) {
      const unsigned char *one = from + at + n * size;
      cell[n] = to + at + n * size;
      if (size == 8) memcpy(&value[n], one, 8);
      else {
        uint32_t word = 0;
        memcpy(&word, one, size);
        ((uint32_t *)value)[n] = word;
      }
    }
    reduce(cell, value, value, NULL, count < 32 ? (1u << count) - 1 : UINT32_MAX, alone);
  }
}

/* ---- copies of a range ---- */

static void move_bytes(unsigned char *to, const unsigned char *from, uint32_t bytes, uint32_t mask) {
  if (mask == 0xffff) memmove(to, from, bytes);
  else
    for (uint32_t n = 0; n < bytes; n++)
      if (mask >> n % CHUNK & 1) to[n] = from[n];
}

static void put_range(core_warp *w, const exec_instr *i, uint32_t lane, uint64_t address, const unsigned char *from,
                      uint32_t bytes) {
  const exec_bulk *bulk = i->side;
  exec_instr to = *i;
  to.side = &bulk->to;
  unsigned char *target = core_bytes_at(w, &to, lane, address, bytes, CHUNK);
  bool shared = is_shared(&bulk->to, address);
  uint32_t mask = bulk->bytes_mask == EXEC_NO_OFFSET ? 0xffff : word_of(w, bulk->bytes_mask, lane) & 0xffff;
  if (bulk->reduces)
    reduce_bytes(w, shared ? bulk->reduce_shared : bulk->reduce, target, from, bytes,
                 ptx_type_bits((ptx_type)bulk->type) / 8, shared || w->launch->threads == 1);
  else move_bytes(target, from, bytes, mask);
  tell_written(w, lane, shared ? PTX_SPACE_SHARED : PTX_SPACE_GLOBAL, address, bytes);
  if (shared) return;
  chunks c = chunks_of(w, i, &bulk->to);
  add_chunks(&c, address, bytes);
  write_chunks(&c);
}

/* The mbarrier that is told: in a block of the cluster, or where the instruction says. With .cta_group::2 it may be in
 * either block of a pair, by the bit of the address that tells these apart on a GPU. A block's addresses of its own
 * shared memory have no such bit here; programs clear it, so that both blocks tell the even one's barrier. */
static void complete(core_warp *w, const exec_instr *i, uint32_t lane, uint64_t address, uint32_t bytes) {
  const exec_bulk *bulk = i->side;
  bool own = bulk->to.space == PTX_SPACE_SHARED && address < EXEC_WINDOW_BYTES;
  if (bulk->pair && own && w->block->cluster->count > 1)
    address = core_shared_map(w, (uint32_t)address, w->block->rank & ~1u);
  exec_instr at = *i;
  at.side = &bulk->to;
  if (bulk->completes) core_mbarrier_complete(w, &at, lane, address, bytes);
}

/* Calls put for the target, or for those of all blocks that a multicast names. */
typedef void (*put_function)(core_warp *w, const exec_instr *i, uint32_t lane, uint64_t target, void *context);

static void put_everywhere(core_warp *w, const exec_instr *i, uint32_t lane, uint32_t bytes, put_function put,
                           void *context) {
  const exec_bulk *bulk = i->side;
  uint64_t target = core_bulk_address(w, &bulk->target, lane),
           barrier = bulk->completes ? core_bulk_address(w, &bulk->barrier, lane) : 0;
  if (bulk->ranks == EXEC_NO_OFFSET) {
    put(w, i, lane, target, context);
    complete(w, i, lane, barrier, bytes);
    return;
  }
  for (uint32_t m = word_of(w, bulk->ranks, lane) & 0xffff; m; m &= m - 1) {
    uint32_t rank = (uint32_t)__builtin_ctz(m);
    put(w, i, lane, core_shared_map(w, (uint32_t)target, rank), context);
    complete(w, i, lane, core_shared_map(w, (uint32_t)barrier, bulk->pair ? rank & ~1u : rank), bytes);
  }
}

typedef struct range {
  const unsigned char *from;
  uint32_t bytes;
} range;

static void put_one_range(core_warp *w, const exec_instr *i, uint32_t lane, uint64_t target, void *context) {
  const range *r = context;
  put_range(w, i, lane, target, r->from, r->bytes);
}

static void range_lane(core_warp *w, const exec_instr *i, uint32_t lane) {
  const exec_bulk *bulk = i->side;
  exec_instr from = *i;
  from.side = &bulk->from;
  uint64_t source = core_bulk_address(w, &bulk->source, lane);
  uint32_t bytes = word_of(w, bulk->size, lane);
  if (bytes % CHUNK)
    core_fault(w, i, lane, EXEC_FAULT_MISALIGNED, 0, "a bulk copy of %u bytes: the size must be a multiple of 16",
               bytes);
  if (!bytes) return;
  range r = {core_bytes_at(w, &from, lane, source, bytes, CHUNK), bytes};
  if (!is_shared(&bulk->from, source)) {
    chunks c = chunks_of(w, i, &bulk->from);
    add_chunks(&c, source, bytes);
    write_chunks(&c);
  }
  if (!bulk->prefetches) put_everywhere(w, i, lane, bytes, put_one_range, &r);
}

/* ---- without a source ---- */

/* No launch is ever canceled: all blocks of a grid are on their way from its beginning. The manual leaves open whether
 * a request succeeds; a kernel that gets none has done its own part, and each other block does its. */
static void cancel_lane(core_warp *w, const exec_instr *i, uint32_t lane) {
  static const unsigned char refused[16];
  const exec_bulk *bulk = i->side;
  uint64_t target = core_bulk_address(w, &bulk->target, lane), barrier = core_bulk_address(w, &bulk->barrier, lane);
  uint32_t count = bulk->everywhere ? w->block->cluster->count : 1;
  for (uint32_t rank = 0; rank < count; rank++) {
    bool mapped = bulk->everywhere && count > 1;
    put_range(w, i, lane, mapped ? core_shared_map(w, (uint32_t)target, rank) : target, refused, sizeof refused);
    complete(w, i, lane, mapped ? core_shared_map(w, (uint32_t)barrier, rank) : barrier, sizeof refused);
  }
}

static void zero_lane(core_warp *w, const exec_instr *i, uint32_t lane) {
  const exec_bulk *bulk = i->side;
  exec_instr to = *i;
  to.side = &bulk->to;
  uint64_t bytes = exec_u64(&w->x, bulk->size)[lane], target = core_bulk_address(w, &bulk->target, lane);
  if (bytes % 8 || bytes > UINT32_MAX)
    core_fault(w, i, lane, EXEC_FAULT_MISALIGNED, 0, "st.bulk of %llu bytes: the size must be a multiple of 8",
               (unsigned long long)bytes);
  if (!bytes) return;
  memset(core_bytes_at(w, &to, lane, target, (uint32_t)bytes, 8), 0, bytes);
  tell_written(w, lane, is_shared(&bulk->to, target) ? PTX_SPACE_SHARED : PTX_SPACE_GLOBAL, target, (uint32_t)bytes);
  if (is_shared(&bulk->to, target)) return;
  chunks c = chunks_of(w, i, &bulk->to);
  add_chunks(&c, target, bytes);
  write_chunks(&c);
}

/* ---- tensors ---- */

typedef struct tensor_box { /* one copy: rows of the box, one behind the other in shared memory */
  tensor_map map;
  int64_t at[TENSOR_MAP_DIMENSIONS];     /* coordinates of the first element */
  int64_t offset[TENSOR_MAP_DIMENSIONS]; /* im2col: what is added where an element is taken */
  uint32_t count[TENSOR_MAP_DIMENSIONS]; /* elements along each dimension of the box */
  int64_t row[4];                        /* of .tile::gather4 and .tile::scatter4 */
  uint32_t rows, row_bytes, element;
  exec_instr global; /* side data: the access of the tensor */
  chunks chunks;
} tensor_box;

static void read_map(core_warp *w, const exec_instr *i, uint32_t lane, tensor_box *box) {
  const exec_bulk *bulk = i->side;
  exec_access map_access = bulk->from;
  exec_instr at = *i;
  map_access.space = PTX_SPACE_GENERIC;
  map_access.op = EXEC_OP_LOAD;
  at.side = &map_access;
  uint64_t address = core_bulk_address(w, &bulk->map, lane);
  memcpy(&box->map, core_bytes_at(w, &at, lane, address, sizeof box->map, 64), sizeof box->map);
  const char *wrong = tensor_map_own(&box->map);
  if (!wrong && (box->map.type >= TENSOR_MAP_TYPES || box->map.swizzle >= TENSOR_MAP_SWIZZLES))
    wrong = "there is no tensor map";
  if (wrong)
    core_fault(w, i, lane, EXEC_FAULT_ILLEGAL_INSTRUCTION, address, "%s at 0x%llx", wrong, (unsigned long long)address);
  if (box->map.rank != bulk->dimensions || box->map.im2col != bulk->im2col)
    core_fault(w, i, lane, EXEC_FAULT_ILLEGAL_INSTRUCTION, address,
               "the tensor map at 0x%llx is of a%s tensor of %u dimensions", (unsigned long long)address,
               box->map.im2col ? "n im2col" : " tiled", box->map.rank);
  for (uint32_t n = 0; n < box->map.rank; n++)
    if ((n && !box->map.step[n]) || (!box->map.im2col && !box->map.box[n]))
      core_fault(w, i, lane, EXEC_FAULT_ILLEGAL_INSTRUCTION, address,
                 "the tensor map at 0x%llx has a step or a box of 0 along dimension %u", (unsigned long long)address,
                 n);
}

/* "tiled::scatter4/tiled::gather4 mode": the box has one row. */
static void measure_four(core_warp *w, const exec_instr *i, uint32_t lane, tensor_box *box) {
  const exec_bulk *bulk = i->side;
  if (box->map.box[1] != 1)
    core_fault(w, i, lane, EXEC_FAULT_ILLEGAL_INSTRUCTION, 0, "four rows by a box of %u rows: it must have one",
               box->map.box[1]);
  box->rows = 4;
  for (uint32_t n = 0; n < 4; n++) box->row[n] = (int32_t)word_of(w, bulk->coordinate[n + 1], lane);
}

static void measure_box(core_warp *w, const exec_instr *i, uint32_t lane, tensor_box *box) {
  const exec_bulk *bulk = i->side;
  const tensor_map *map = &box->map;
  box->element = tensor_map_element(map->type);
  uint64_t rows = 1;
  for (uint32_t n = 0; n < map->rank; n++) {
    box->at[n] = (int32_t)word_of(w, bulk->coordinate[n], lane);
    box->count[n] = n ? (map->box[n] + map->step[n] - 1u) / map->step[n] : map->box[0];
    if (n) rows *= box->count[n]; /* of 65535 at most: below 2^64 */
  }
  box->rows = (uint32_t)rows;
  if (bulk->four) measure_four(w, i, lane, box);
  if (map->im2col) {
    box->count[0] = map->channels;
    box->rows = map->pixels;
    rows = map->pixels;
    for (uint32_t n = 0; n + 2 < map->rank && !bulk->no_offsets; n++)
      box->offset[n + 1] = word_of(w, bulk->offset[n], lane) & 0xffff;
  }
  box->row_bytes = box->count[0] * box->element;
  if (box->row_bytes > ROW_BYTES)
    core_fault(w, i, lane, EXEC_FAULT_ILLEGAL_INSTRUCTION, 0, "a box with rows of %u bytes", box->row_bytes);
  uint64_t most = bulk->prefetches ? PREFETCH_BYTES : BOX_BYTES;
  if (!bulk->four && box->row_bytes && rows > most / box->row_bytes)
    core_fault(w, i, lane, EXEC_FAULT_ILLEGAL_INSTRUCTION, 0, "a box of %llu rows of %u bytes is too large",
               (unsigned long long)rows, box->row_bytes);
}

/* The coordinates of a row: tiled boxes go through their dimensions, im2col ones through the pixels of the bounding
 * box, from the first on. */
static void place_of_row(const tensor_box *box, uint32_t row, int64_t at[TENSOR_MAP_DIMENSIONS]) {
  for (uint32_t n = 1; n < box->map.rank; n++) {
    at[n] = box->at[n] + (int64_t)(row % box->count[n]) * box->map.step[n];
    row /= box->count[n];
  }
}

static void next_pixel(const tensor_box *box, int64_t at[TENSOR_MAP_DIMENSIONS]) {
  const tensor_map *map = &box->map;
  for (uint32_t n = 1; n + 1 < map->rank; n++) {
    at[n] += map->step[n];
    if (at[n] <= (int64_t)map->last[n] + map->upper[n - 1]) return;
    at[n] = map->lower[n - 1];
  }
  at[map->rank - 1]++;
}

typedef struct row_part { /* bytes of a row that are in the tensor */
  uint64_t address;
  uint32_t first, bytes;
} row_part;

static row_part part_of_row(const tensor_box *box, const int64_t at[TENSOR_MAP_DIMENSIONS]) {
  const tensor_map *map = &box->map;
  row_part part = {.address = map->address};
  for (uint32_t n = 1; n < map->rank; n++) {
    int64_t place = at[n] + box->offset[n];
    if (place < 0 || place > map->last[n]) return part;
    part.address += (uint64_t)place * map->stride[n - 1];
  }
  int64_t first = box->at[0] < 0 ? -box->at[0] : 0, end = (int64_t)map->last[0] + 1 - box->at[0];
  if (end > box->count[0]) end = box->count[0];
  if (first >= end) return part;
  part.first = (uint32_t)first * box->element;
  part.bytes = (uint32_t)(end - first) * box->element;
  part.address += (uint64_t)((box->at[0] + first) * (int64_t)box->element);
  return part;
}

static void fill_row(const tensor_box *box, unsigned char *row) {
  static const uint64_t nan[TENSOR_MAP_TYPES] = {
      [TENSOR_MAP_F16] = 0x7fff,         [TENSOR_MAP_F32] = 0x7fffffff,     [TENSOR_MAP_F64] = INT64_MAX,
      [TENSOR_MAP_BF16] = 0x7fff,        [TENSOR_MAP_F32_FTZ] = 0x7fffffff, [TENSOR_MAP_TF32] = 0x7fffffff,
      [TENSOR_MAP_TF32_FTZ] = 0x7fffffff};
  memset(row, 0, box->row_bytes);
  if (!box->map.nan) return;
  for (uint32_t n = 0; n < box->count[0]; n++) memcpy(row + n * box->element, &nan[box->map.type], box->element);
}

/* What the type changes in elements that are read: subnormal numbers become zero, fractions are cut to those of
 * tf32. */
static void convert_row(const tensor_box *box, unsigned char *row) {
  uint32_t type = box->map.type;
  bool flushes = type == TENSOR_MAP_F32_FTZ || type == TENSOR_MAP_TF32_FTZ;
  bool cuts = type == TENSOR_MAP_TF32 || type == TENSOR_MAP_TF32_FTZ;
  for (uint32_t n = 0; (flushes || cuts) && n < box->count[0]; n++) {
    uint32_t bits;
    memcpy(&bits, row + 4 * (size_t)n, 4);
    if (flushes && !(bits & 0x7f800000)) bits &= 0x80000000;
    if (cuts) bits &= 0xffffe000;
    memcpy(row + 4 * (size_t)n, &bits, 4);
  }
}

/* The row between memory and a buffer. Of shared memory `at` is the address of the whole box. */
static void shared_row(core_warp *w, const exec_instr *i, uint32_t lane, const tensor_box *box, uint64_t at,
                       uint32_t row, unsigned char *data, bool write) {
  const exec_bulk *bulk = i->side;
  const exec_access *access = bulk->stores ? &bulk->from : &bulk->to;
  exec_instr place = *i;
  place.side = access;
  for (uint32_t done = 0; done < box->row_bytes; done += CHUNK) {
    uint32_t piece = box->row_bytes - done < CHUNK ? box->row_bytes - done : CHUNK;
    uint64_t linear = at + (uint64_t)row * box->row_bytes + done;
    uint64_t swizzled =
        (linear & ~(uint64_t)0xffffff) | tensor_map_swizzled((uint32_t)(linear & 0xffffff), box->map.swizzle, 0);
    unsigned char *cell = core_bytes_at(w, &place, lane, swizzled, piece, 1);
    if (write) memcpy(cell, data + done, piece);
    else memcpy(data + done, cell, piece);
  }
}

static unsigned char *global_part(core_warp *w, uint32_t lane, tensor_box *box, const row_part *part) {
  unsigned char *at = core_bytes_at(w, &box->global, lane, part->address, part->bytes, 1);
  add_chunks(&box->chunks, part->address, part->bytes);
  return at;
}

/* Each row in its turn: calls with its number and the part of it that is in the tensor. */
typedef void (*row_function)(core_warp *w, const exec_instr *i, uint32_t lane, tensor_box *box, uint32_t row,
                             const row_part *part, void *context);

static void each_row(core_warp *w, const exec_instr *i, uint32_t lane, tensor_box *box, row_function function,
                     void *context) {
  int64_t at[TENSOR_MAP_DIMENSIONS];
  memcpy(at, box->at, sizeof at);
  for (uint32_t row = 0; row < box->rows; row++) {
    if (((const exec_bulk *)i->side)->four) at[1] = box->row[row];
    else if (!box->map.im2col) place_of_row(box, row, at);
    row_part part = part_of_row(box, at);
    function(w, i, lane, box, row, &part, context);
    if (box->map.im2col) next_pixel(box, at);
  }
}

static void load_row(core_warp *w, const exec_instr *i, uint32_t lane, tensor_box *box, uint32_t row,
                     const row_part *part, void *context) {
  unsigned char *data = (unsigned char *)context + (size_t)row * box->row_bytes;
  fill_row(box, data);
  if (!part->bytes) return;
  memcpy(data + part->first, global_part(w, lane, box, part), part->bytes);
  convert_row(box, data);
}

static void prefetch_row(core_warp *w, const exec_instr *i, uint32_t lane, tensor_box *box, uint32_t row,
                         const row_part *part, void *context) {
  if (part->bytes) global_part(w, lane, box, part);
}

static void store_row(core_warp *w, const exec_instr *i, uint32_t lane, tensor_box *box, uint32_t row,
                      const row_part *part, void *context) {
  const exec_bulk *bulk = i->side;
  _Alignas(16) unsigned char data[ROW_BYTES];
  if (!part->bytes) return;
  shared_row(w, i, lane, box, *(const uint64_t *)context, row, data, false);
  unsigned char *to = global_part(w, lane, box, part);
  if (!bulk->reduces) memcpy(to, data + part->first, part->bytes);
  else {
    static const uint8_t types[TENSOR_MAP_TYPES] = {
        [TENSOR_MAP_U8] = PTX_U8,       [TENSOR_MAP_U16] = PTX_U16,     [TENSOR_MAP_U32] = PTX_U32,
        [TENSOR_MAP_S32] = PTX_S32,     [TENSOR_MAP_U64] = PTX_U64,     [TENSOR_MAP_S64] = PTX_S64,
        [TENSOR_MAP_F16] = PTX_F16,     [TENSOR_MAP_F32] = PTX_F32,     [TENSOR_MAP_F64] = PTX_F64,
        [TENSOR_MAP_BF16] = PTX_BF16,   [TENSOR_MAP_F32_FTZ] = PTX_F32, [TENSOR_MAP_TF32] = PTX_F32,
        [TENSOR_MAP_TF32_FTZ] = PTX_F32};
    exec_atomic_function reduce = exec_bulk_reduction((ptx_mod)bulk->operation, (ptx_type)types[box->map.type], true);
    if (!reduce)
      core_fault(w, i, lane, EXEC_FAULT_UNSUPPORTED, 0, "not supported: this reduction of .%s elements",
                 ptx_type_text((ptx_type)types[box->map.type]));
    reduce_bytes(w, reduce, to, data + part->first, part->bytes, box->element, w->launch->threads == 1);
  }
  tell_written(w, lane, PTX_SPACE_GLOBAL, part->address, part->bytes);
}

typedef struct loaded {
  tensor_box *box;
  unsigned char *data;
} loaded;

static void put_box(core_warp *w, const exec_instr *i, uint32_t lane, uint64_t target, void *context) {
  const loaded *l = context;
  uint32_t row_bytes = l->box->row_bytes;
  for (uint32_t row = 0; row < l->box->rows; row++)
    shared_row(w, i, lane, l->box, target, row, l->data + (size_t)row * row_bytes, true);
  tell_written(w, lane, PTX_SPACE_SHARED, target, l->box->rows * row_bytes);
}

static void tensor_lane(core_warp *w, const exec_instr *i, uint32_t lane) {
  const exec_bulk *bulk = i->side;
  const exec_access *global = bulk->stores ? &bulk->to : &bulk->from;
  tensor_box box = {.global = *i};
  box.global.side = global;
  box.chunks = chunks_of(w, i, global);
  read_map(w, i, lane, &box);
  measure_box(w, i, lane, &box);
  if (bulk->prefetches) {
    each_row(w, i, lane, &box, prefetch_row, NULL);
    write_chunks(&box.chunks);
    return;
  }
  uint64_t shared = core_bulk_address(w, bulk->stores ? &bulk->source : &bulk->target, lane);
  exec_instr place = *i;
  place.side = bulk->stores ? &bulk->from : &bulk->to;
  uint32_t bytes = box.rows * box.row_bytes;
  core_bytes_at(w, &place, lane, shared, bytes, 128); /* all of it, aligned */
  if (bulk->stores) {
    each_row(w, i, lane, &box, store_row, &shared);
    write_chunks(&box.chunks);
    return;
  }
  unsigned char *data = ff_alloc(bytes);
  each_row(w, i, lane, &box, load_row, data);
  write_chunks(&box.chunks);
  put_everywhere(w, i, lane, bytes, put_box, &(loaded){&box, data});
  free(data);
}

void core_bulk(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  const exec_bulk *bulk = i->side;
  for (uint32_t m = w->active; m; m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m);
    if (bulk->cancels) cancel_lane(w, i, lane);
    else if (bulk->zeroes) zero_lane(w, i, lane);
    else if (bulk->dimensions) tensor_lane(w, i, lane);
    else range_lane(w, i, lane);
    w->accesses++;
  }
}

/* ---- tensormap.replace ---- */

/* PTX ISA, "tensormap.replace": its numbers of element types. */
static const uint8_t replaced_types[TENSOR_MAP_TYPES] = {
    TENSOR_MAP_U8,   TENSOR_MAP_U16,  TENSOR_MAP_U32,     TENSOR_MAP_S32,     TENSOR_MAP_U64,
    TENSOR_MAP_S64,  TENSOR_MAP_F16,  TENSOR_MAP_F32,     TENSOR_MAP_F32_FTZ, TENSOR_MAP_F64,
    TENSOR_MAP_BF16, TENSOR_MAP_TF32, TENSOR_MAP_TF32_FTZ};

static bool replace_field(tensor_map *map, const exec_replace *r, uint64_t value) {
  uint32_t n = r->ordinal;
  switch ((ptx_mod)r->field) {
  case PTX_MOD_GLOBAL_ADDRESS: map->address = value; return true;
  case PTX_MOD_RANK: map->rank = (uint8_t)(value + 1); return value < TENSOR_MAP_DIMENSIONS;
  case PTX_MOD_BOX_DIM: map->box[n] = (uint16_t)value; return value && value <= 256;
  case PTX_MOD_GLOBAL_DIM: map->last[n] = (uint32_t)value - 1; return true;
  case PTX_MOD_GLOBAL_STRIDE: map->stride[n] = value; return n < 4;
  case PTX_MOD_ELEMENT_STRIDE: map->step[n] = (uint8_t)value; return value && value <= 8;
  case PTX_MOD_ELEMTYPE:
    if (value >= TENSOR_MAP_TYPES) return false;
    map->type = replaced_types[value];
    return true;
  case PTX_MOD_INTERLEAVE_LAYOUT: return !value;
  case PTX_MOD_SWIZZLE_MODE: map->swizzle = (uint8_t)value; return value < TENSOR_MAP_SWIZZLES;
  case PTX_MOD_FILL_MODE: map->nan = (uint8_t)value; return value < 2;
  default: return false;
  }
}

/* Triton makes its maps from 128 zeros, field by field: fields of a GPU's map that count from 1 are 1 where they are
 * left out, all others 0. */
static void begin_blank(tensor_map *map) {
  static const tensor_map blank;
  if (memcmp(map, &blank, sizeof blank) != 0) return;
  map->magic = TENSOR_MAP_MAGIC;
  map->rank = 1;
  for (uint32_t n = 0; n < TENSOR_MAP_DIMENSIONS; n++) map->box[n] = map->step[n] = 1;
}

static void replace_lane(core_warp *w, const exec_instr *i, uint32_t lane) {
  const exec_replace *r = i->side;
  uint64_t address = core_bulk_address(w, &r->map, lane);
  exec_instr at = *i;
  exec_access access = r->access;
  at.side = &access;
  tensor_map *map = (tensor_map *)(void *)core_bytes_at(w, &at, lane, address, sizeof *map, 64), made;
  bool shared = is_shared(&access, address);
  if (!r->field) { /* tensormap.cp_fenceproxy */
    access.space = PTX_SPACE_SHARED;
    access.op = EXEC_OP_LOAD;
    memcpy(map, core_bytes_at(w, &at, lane, core_bulk_address(w, &r->from, lane), sizeof *map, 64), sizeof *map);
  } else {
    memcpy(&made, map, sizeof made);
    begin_blank(&made);
    const char *wrong = tensor_map_own(&made);
    if (wrong)
      core_fault(w, i, lane, EXEC_FAULT_ILLEGAL_INSTRUCTION, address, "%s at 0x%llx", wrong,
                 (unsigned long long)address);
    uint64_t value = r->wide ? exec_u64(&w->x, r->value)[lane] : word_of(w, r->value, lane);
    if (!replace_field(&made, r, value))
      core_fault(w, i, lane, EXEC_FAULT_ILLEGAL_INSTRUCTION, address, "a tensor map cannot have this value");
    memcpy(map, &made, sizeof made);
  }
  tell_written(w, lane, shared ? PTX_SPACE_SHARED : PTX_SPACE_GLOBAL, address, sizeof *map);
}

void core_tensor_replace(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  for (uint32_t m = w->active; m; m &= m - 1) replace_lane(w, i, (uint32_t)__builtin_ctz(m));
}
