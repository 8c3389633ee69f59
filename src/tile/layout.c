/* SPDX-License-Identifier: Apache-2.0 */
/* Where the elements of a tile are, and how they get elsewhere.
 *
 * A gather gives each thread elements that others may have. Where the thread has them itself, only the names of
 * registers change. Otherwise they go through the shared variable `tile_scratch`: owners write, a barrier, all read.
 * It has two halves of SCRATCH_BYTES at most, used in turn, so that one barrier per exchange is enough: what was read
 * from a half was read before the barrier of the exchange in between. Where the way to here is not known (after a
 * label), a barrier goes first. A tile that is larger than a half goes in parts. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "tile/lower.h"

#define SCRATCH_BYTES 32768u /* a half's, without what is left out */
#define NO_BASE UINT32_MAX

static bool in_thread(const tile_layout *layout, uint32_t bit) { return (layout->of[bit] & LAYOUT_THREAD) != 0; }

tile_layout layout_default(const lower *l, const tile_type *tile) {
  tile_layout layout = {.bits = (uint8_t)lower_log2(tile_elements(tile))};
  uint32_t threads = l->thread_bits;
  /* Up to four neighbours in one thread: loads and stores of vectors. */
  uint32_t low = layout.bits <= threads ? 0 : layout.bits - threads < 2 ? layout.bits - threads : 2;
  for (uint32_t b = 0; b < layout.bits; b++)
    layout.of[b] = (uint8_t)(b < low ? b : b < low + threads ? LAYOUT_THREAD + b - low : b - threads);
  layout.registers = (uint8_t)(layout.bits <= threads ? 0 : layout.bits - threads);
  return layout;
}

bool layout_equal(const tile_layout *a, const tile_layout *b) {
  return a->bits == b->bits && a->registers == b->registers && !memcmp(a->of, b->of, a->bits);
}

uint32_t layout_static(const tile_layout *layout, uint32_t r) {
  uint32_t element = 0;
  for (uint32_t b = 0; b < layout->bits; b++)
    if (!in_thread(layout, b)) element |= (r >> layout->of[b] & 1) << b;
  return element;
}

/* base + the sum over `count` bits b of the list of thread bit from[b] x weights[b], for those that are thread bits;
 * bits whose thread bits follow each other, and weights double, go together. `base` is a register, or NO_BASE for 0.
 * False: there are none, and *sum is not set. */
static bool thread_sum(lower *l, const uint8_t *from, const uint8_t *bits, uint32_t count, const uint32_t *weights,
                       uint32_t base, uint32_t *sum) {
  bool any = false;
  for (uint32_t i = 0; i < count;) {
    uint8_t at = from[bits[i]];
    uint32_t weight = weights[bits[i]], first = at - LAYOUT_THREAD, length = 1;
    if (at == LAYOUT_FREE || !(at & LAYOUT_THREAD)) {
      i++;
      continue;
    }
    while (i + length < count && from[bits[i + length]] == at + length && weights[bits[i + length]] == weight << length)
      length++;
    i += length;
    uint32_t piece = l->thread;
    if (first || length < l->thread_bits) { /* not the whole number */
      piece = lower_register(l, CLASS_WORD);
      lower_emit(l, "bfe.u32 %%r%u, %%r%u, %u, %u;", piece, l->thread, first, length);
    }
    if (base == NO_BASE && weight == 1) base = piece;
    else {
      uint32_t more = lower_register(l, CLASS_WORD);
      if (base == NO_BASE) lower_emit(l, "mul.lo.u32 %%r%u, %%r%u, %u;", more, piece, weight);
      else lower_emit(l, "mad.lo.u32 %%r%u, %%r%u, %u, %%r%u;", more, piece, weight, base);
      base = more;
    }
    any = true;
  }
  if (any) *sum = base;
  return any;
}

bool layout_thread_part(lower *l, const tile_layout *layout, uint32_t first, uint32_t count, uint32_t *part) {
  uint8_t bits[LAYOUT_BITS_MAX];
  uint32_t weights[LAYOUT_BITS_MAX];
  for (uint32_t i = 0; i < count; i++) {
    bits[i] = (uint8_t)(first + i);
    weights[first + i] = 1u << i;
  }
  return thread_sum(l, layout->of, bits, count, weights, NO_BASE, part);
}

bool layout_owner(lower *l, const tile_layout *layout, uint32_t *predicate) {
  uint32_t free_bits = (1u << l->thread_bits) - 1;
  for (uint32_t b = 0; b < layout->bits; b++)
    if (in_thread(layout, b)) free_bits &= ~(1u << (layout->of[b] - LAYOUT_THREAD));
  if (!free_bits) return false;
  uint32_t masked = lower_register(l, CLASS_WORD);
  *predicate = lower_register(l, CLASS_PREDICATE);
  lower_emit(l, "and.b32 %%r%u, %%r%u, %u;", masked, l->thread, free_bits);
  lower_emit(l, "setp.eq.u32 %%p%u, %%r%u, 0;", *predicate, masked);
  return true;
}

static lowered *new_lowered(lower *l, register_class class, const tile_layout *layout) {
  lowered *value = lower_alloc(l, sizeof *value);
  value->class = class;
  value->layout = *layout;
  value->divisor = 1;
  value->registers = lower_alloc(l, sizeof(uint32_t) << layout->registers);
  return value;
}

void lower_barrier(lower *l) {
  lower_emit(l, "bar.sync 0;");
  l->stored = l->loaded = l->loaded_copies = false;
}

/* ---- through shared memory ---- */

typedef struct exchange {
  const lowered *value;
  const tile_layout *to;
  lowered *result;
  uint8_t source_of[LAYOUT_BITS_MAX]; /* per bit of the source's number: the reader's register or thread bit, or none */
  uint32_t source_bits, offset;
  uint32_t width;                   /* of an element in shared memory, bytes */
  uint32_t base;                    /* register: where this exchange's half begins */
  uint8_t order[LAYOUT_BITS_MAX];   /* bits of the number by their place in shared memory, the lowest first */
  uint32_t weight[LAYOUT_BITS_MAX]; /* per bit of the number: bytes in shared memory */
  uint32_t part_bits;               /* places within a part: the tile goes in 1 << (source_bits - part_bits) parts */
} exchange;

/* The number of elements, 4, 2 or 1, that registers from 0 on have side by side in memory. */
static uint32_t vector_length(const exchange *x, const uint8_t *from) {
  uint32_t n = 1;
  for (uint32_t b = 0; b < 2 && b < x->part_bits; b++) {
    uint8_t bit = x->order[b];
    if (from[bit] != b || x->weight[bit] != x->width << b || x->width << (b + 1) > 16) break;
    n <<= 1;
  }
  return n;
}

/* Of an exchange in parts: the predicate that a thread's elements are in this one, if that depends on the thread. */
static bool part_predicate(lower *l, const exchange *x, const uint8_t *from, uint32_t part, uint32_t *predicate) {
  uint32_t number, wanted = 0, weights[LAYOUT_BITS_MAX];
  for (uint32_t p = x->part_bits; p < x->source_bits; p++) {
    uint8_t bit = x->order[p];
    weights[bit] = 1u << (p - x->part_bits);
    if (from[bit] != LAYOUT_FREE && from[bit] & LAYOUT_THREAD) wanted |= part & weights[bit];
  }
  if (!thread_sum(l, from, x->order + x->part_bits, x->source_bits - x->part_bits, weights, NO_BASE, &number))
    return false;
  *predicate = lower_register(l, CLASS_PREDICATE);
  lower_emit(l, "setp.eq.u32 %%p%u, %%r%u, %u;", *predicate, number, wanted);
  return true;
}

/* Whether the bits of `element` that registers, or nothing, set agree with the part's number. */
static bool static_agrees(const exchange *x, const uint8_t *from, uint32_t part, uint32_t element) {
  for (uint32_t p = x->part_bits; p < x->source_bits; p++) {
    uint8_t bit = x->order[p];
    bool by_thread = from[bit] != LAYOUT_FREE && from[bit] & LAYOUT_THREAD;
    if (!by_thread && (element >> bit & 1) != (part >> (p - x->part_bits) & 1)) return false;
  }
  return true;
}

/* base + the thread's part of an element's place within the part, in bytes. */
static uint32_t scratch_address(lower *l, const exchange *x, const uint8_t *from) {
  uint32_t address = x->base;
  thread_sum(l, from, x->order, x->part_bits, x->weight, x->base, &address);
  return address;
}

/* The same of the bits that are set in `element`. */
static uint32_t static_bytes(const exchange *x, uint32_t element) {
  uint32_t bytes = 0;
  for (uint32_t p = 0; p < x->part_bits; p++)
    if (element >> x->order[p] & 1) bytes += x->weight[x->order[p]];
  return bytes;
}

static void write_part(lower *l, const exchange *x, uint32_t part) {
  const lowered *value = x->value;
  const tile_layout *layout = &value->layout;
  uint32_t owner, chosen;
  bool has_owner = layout_owner(l, layout, &owner);
  bool has_part = part_predicate(l, x, layout->of, part, &chosen);
  if (has_owner && has_part) lower_emit(l, "and.pred %%p%u, %%p%u, %%p%u;", chosen, chosen, owner);
  char guard[24], text[96];
  lower_guard_text(guard, sizeof guard, has_part ? chosen : has_owner ? owner : NO_REGISTER);
  uint32_t address = scratch_address(l, x, layout->of);
  uint32_t n = vector_length(x, layout->of);
  for (uint32_t r = 0; r < 1u << layout->registers; r += n) {
    uint32_t element = layout_static(layout, r);
    if (!static_agrees(x, layout->of, part, element)) continue;
    uint32_t numbers[4];
    char letter = lower_letter(value->class);
    for (uint32_t i = 0; i < n; i++) {
      numbers[i] = value->registers[r + i];
      if (value->class == CLASS_PREDICATE) {
        letter = 'r';
        numbers[i] = lower_register(l, CLASS_WORD);
        lower_emit(l, "selp.u32 %%r%u, 1, 0, %%p%u;", numbers[i], value->registers[r + i]);
      }
    }
    lower_emit(l, "%sst.shared%s.b%u [%%r%u+%u], %s;", guard, lower_vector_suffix(n), 8 * x->width, address,
               static_bytes(x, element), lower_registers_text(text, sizeof text, letter, numbers, n));
  }
}

static void read_part(lower *l, const exchange *x, uint32_t part) {
  lowered *result = x->result;
  uint32_t chosen;
  bool has_part = part_predicate(l, x, x->source_of, part, &chosen);
  char guard[24], text[96];
  lower_guard_text(guard, sizeof guard, has_part ? chosen : NO_REGISTER);
  uint32_t address = scratch_address(l, x, x->source_of);
  uint32_t n = vector_length(x, x->source_of);
  for (uint32_t r = 0; r < 1u << x->to->registers; r += n) {
    uint32_t element = x->offset;
    for (uint32_t b = 0; b < x->source_bits; b++)
      if (x->source_of[b] != LAYOUT_FREE && !(x->source_of[b] & LAYOUT_THREAD))
        element |= (r >> x->source_of[b] & 1) << b;
    if (!static_agrees(x, x->source_of, part, element)) continue;
    uint32_t numbers[4];
    bool predicate = result->class == CLASS_PREDICATE;
    for (uint32_t i = 0; i < n; i++) numbers[i] = predicate ? lower_register(l, CLASS_WORD) : result->registers[r + i];
    lower_emit(l, "%sld.shared%s.%c%u %s, [%%r%u+%u];", guard, lower_vector_suffix(n), x->width == 1 ? 'u' : 'b',
               8 * x->width,
               lower_registers_text(text, sizeof text, predicate ? 'r' : lower_letter(result->class), numbers, n),
               address, static_bytes(x, element));
    for (uint32_t i = 0; predicate && i < n; i++)
      lower_emit(l, "%ssetp.ne.u32 %%p%u, %%r%u, 0;", guard, result->registers[r + i], numbers[i]);
  }
}

/* Places in shared memory: what the writer has side by side lies side by side. Every 128 bytes, 16 are left out, so
 * that rows of a power of two do not all begin in the same bank. */
static void choose_places(exchange *x) {
  const tile_layout *from = &x->value->layout;
  bool taken[LAYOUT_BITS_MAX] = {false};
  uint32_t place = 0;
  for (uint32_t r = 0; r < 2; r++)
    for (uint32_t b = 0; b < x->source_bits; b++)
      if (from->of[b] == r && place == r) {
        x->order[place++] = (uint8_t)b;
        taken[b] = true;
      }
  for (uint32_t b = 0; b < x->source_bits; b++)
    if (!taken[b]) x->order[place++] = (uint8_t)b;
  for (uint32_t p = 0; p < x->part_bits; p++) {
    uint32_t bytes = x->width << p;
    x->weight[x->order[p]] = bytes + (bytes >> 7 << 4);
  }
}

/* The half whose turn it is, which nobody reads any more. */
static uint32_t take_half(lower *l, uint32_t bytes) {
  if (l->scratch_bytes < bytes) l->scratch_bytes = (bytes + 15) & ~15u;
  if (!l->scratch_known) lower_barrier(l);
  l->scratch_known = true;
  return l->scratch[l->scratch_turn++ & 1];
}

static lowered *through_memory(lower *l, exchange *x, tile_scalar scalar) {
  x->width = lower_bytes(scalar);
  uint32_t most = lower_log2(SCRATCH_BYTES / x->width);
  x->part_bits = x->source_bits < most ? x->source_bits : most;
  choose_places(x);
  uint32_t bytes = x->width << x->part_bits;
  x->result = new_lowered(l, x->value->class, x->to);
  for (uint32_t r = 0; r < 1u << x->to->registers; r++) x->result->registers[r] = lower_register(l, x->result->class);
  for (uint32_t part = 0; part < 1u << (x->source_bits - x->part_bits); part++) {
    x->base = take_half(l, bytes + (bytes >> 7 << 4));
    write_part(l, x, part);
    lower_barrier(l);
    read_part(l, x, part);
  }
  return x->result;
}

/* The whole tile at `base`, bit b of an element's number being weights[b] bytes. */
static void write_whole(lower *l, const lowered *value, tile_scalar scalar, uint32_t base, const uint32_t *weights) {
  exchange x = {.value = value,
                .source_bits = value->layout.bits,
                .width = lower_bytes(scalar),
                .base = base,
                .part_bits = value->layout.bits};
  choose_places(&x);
  memcpy(x.weight, weights, x.source_bits * sizeof *weights);
  write_part(l, &x, 0);
}

uint32_t layout_publish(lower *l, const lowered *value, tile_scalar scalar, const uint32_t *weights, uint32_t bytes) {
  uint32_t base = take_half(l, bytes);
  write_whole(l, value, scalar, base, weights);
  lower_barrier(l);
  return base;
}

void layout_write(lower *l, const lowered *value, tile_scalar scalar, uint32_t base, uint32_t offset) {
  uint32_t at = lower_register(l, CLASS_WORD), weights[LAYOUT_BITS_MAX];
  for (uint32_t b = 0; b < value->layout.bits; b++) weights[b] = lower_bytes(scalar) << b;
  lower_emit(l, "add.u32 %%r%u, %%r%u, %u;", at, base, offset);
  write_whole(l, value, scalar, at, weights);
}

/* ---- gather ---- */

/* The registers, if each thread has what it needs. */
static lowered *within_thread(lower *l, const exchange *x) {
  const tile_layout *from = &x->value->layout;
  for (uint32_t s = 0; s < x->source_bits; s++) {
    bool reader_thread = x->source_of[s] != LAYOUT_FREE && x->source_of[s] & LAYOUT_THREAD;
    if (in_thread(from, s) ? x->source_of[s] != from->of[s] : reader_thread) return NULL;
  }
  lowered *result = new_lowered(l, x->value->class, x->to);
  for (uint32_t r = 0; r < 1u << x->to->registers; r++) {
    uint32_t source = 0;
    for (uint32_t s = 0; s < x->source_bits; s++)
      if (!in_thread(from, s)) {
        uint32_t bit = x->source_of[s] == LAYOUT_FREE ? x->offset >> s & 1 : r >> x->source_of[s] & 1;
        source |= bit << from->of[s];
      }
    result->registers[r] = x->value->registers[source];
  }
  return result;
}

static lowered *expand_splat(lower *l, const lowered *value, const tile_layout *to) {
  lowered *result = new_lowered(l, value->class, to);
  result->divisor = value->divisor;
  for (uint32_t r = 0; r < 1u << to->registers; r++) result->registers[r] = value->registers[0];
  return result;
}

static lowered *gather(lower *l, const lowered *value, tile_scalar scalar, uint32_t source_bits, const uint8_t *columns,
                       uint32_t offset, const tile_layout *to, bool through) {
  if (value->splat) return expand_splat(l, value, to);
  exchange x = {.value = value, .to = to, .source_bits = source_bits, .offset = offset};
  memset(x.source_of, LAYOUT_FREE, sizeof x.source_of);
  for (uint32_t b = 0; b < to->bits; b++)
    if (columns[b] != LAYOUT_FREE) {
      FF_CHECK(columns[b] < source_bits && !(offset >> columns[b] & 1));
      x.source_of[columns[b]] = to->of[b];
    }
  lowered *result = through ? NULL : within_thread(l, &x);
  if (!result) result = through_memory(l, &x, scalar);
  result->divisor = value->divisor;
  return result;
}

lowered *layout_gather(lower *l, const lowered *value, tile_scalar scalar, uint32_t source_bits, const uint8_t *columns,
                       uint32_t offset, const tile_layout *to) {
  if (!value->lazy) return gather(l, value, scalar, source_bits, columns, offset, to, false);
  uint8_t composed[LAYOUT_BITS_MAX]; /* first these columns, then those of the broadcast that was put off */
  for (uint32_t b = 0; b < to->bits; b++)
    composed[b] = columns[b] == LAYOUT_FREE ? LAYOUT_FREE : value->lazy_columns[columns[b]];
  uint32_t inner = 0;
  for (uint32_t s = 0; s < source_bits; s++)
    if (offset >> s & 1 && value->lazy_columns[s] != LAYOUT_FREE) inner |= 1u << value->lazy_columns[s];
  return gather(l, value->lazy, scalar, value->lazy_bits, composed, inner, to, false);
}

lowered *layout_convert(lower *l, const lowered *value, tile_scalar scalar, const tile_layout *to) {
  if (!value->splat && !value->lazy && layout_equal(&value->layout, to)) return (lowered *)value;
  uint8_t same[LAYOUT_BITS_MAX];
  for (uint32_t b = 0; b < LAYOUT_BITS_MAX; b++) same[b] = (uint8_t)b;
  return layout_gather(l, value, scalar, to->bits, same, 0, to);
}

lowered *layout_share(lower *l, const lowered *value, tile_scalar scalar) {
  uint8_t same[LAYOUT_BITS_MAX];
  for (uint32_t b = 0; b < LAYOUT_BITS_MAX; b++) same[b] = (uint8_t)b;
  return gather(l, value, scalar, value->layout.bits, same, 0, &value->layout, true);
}
