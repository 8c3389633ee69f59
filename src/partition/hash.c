/* SPDX-License-Identifier: Apache-2.0 */
/* Where an address lies: see hash.h.
 *
 * All hashes but `interleave` and `modulo` are linear over GF(2): the place of an address is the XOR of the places of
 * its bits. So they are three tables, indexed by ten bits of the address each, whose entries are XORed: module, bank
 * and set stand in one word. */
#include "partition/hash.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"
#include "partition/gf2.h"

enum { LOW_BIT = 7, TABLE_BITS = 10, TABLES = 3, FIELD_BITS = 16 };
#define FIELD ((UINT64_C(1) << FIELD_BITS) - 1)

/* x / by as one multiplication: `times` is 2^64 / by rounded up, which is exact for all x below 2^64 / by; above that
 * it is divided. */
typedef struct divider {
  uint64_t by, times, limit;
} divider;

struct address_hash {
  hash_spec spec;
  /* module | bank << 16 | set << 32; polynomial: the remainder read backwards */
  uint64_t tables[TABLES][1 << TABLE_BITS];
  /* polynomial: of what has at most row_bytes in each bank on average; xor: row_mask's lowest bit */
  uint32_t row_shift;
  uint64_t row_mask;              /* xor: the address bits that tell the rows of a bank apart */
  uint32_t remainder_bits;        /* polynomial: its degree */
  uint32_t piece_shift, row_bits; /* log2 of piece_bytes and row_bytes */
  divider modules, banks, sets;   /* interleave, modulo */
};

const char *hash_kind_name(hash_kind kind) {
  static const char *const names[] = {"interleave", "xor", "modulo", "polynomial"};
  return (size_t)kind < sizeof names / sizeof *names ? names[kind] : NULL;
}

const hash_spec *hash_spec_of(const address_hash *hash) { return &hash->spec; }

static uint32_t log2_of(uint64_t x) { return x > 1 ? 63 - (uint32_t)__builtin_clzll(x) : 0; }
static bool power_of_two(uint64_t x) { return x && !(x & (x - 1)); }

/* ---- the place of one bit ---- */

/* The lowest `bits` bits in opposite order. */
static uint64_t backwards(uint64_t value, uint32_t bits) {
  uint64_t out = 0;
  for (uint32_t i = 0; i < bits; i++) out |= (value >> i & 1) << (bits - 1 - i);
  return out;
}

static uint64_t bits_under(const hash_masks *m, uint32_t bit) {
  uint64_t value = 0;
  for (uint32_t i = 0; i < m->count; i++) value |= (m->masks[i] >> bit & 1) << i;
  return value;
}

/* Bits of all masks together which do not give the module: what tells the banks (sets) of one module apart. */
static hash_masks without_modules(const hash_masks *all, const hash_masks *modules) {
  gf2_space seen = gf2_span(modules->masks, modules->count);
  hash_masks out = {.count = 0};
  for (uint32_t i = 0; i < all->count; i++)
    if (gf2_add(&seen, all->masks[i])) out.masks[out.count++] = all->masks[i];
  return out;
}

/* x^n modulo the polynomial. */
static uint64_t power_modulo(uint32_t n, uint64_t polynomial) {
  uint64_t value = 1, top = UINT64_C(1) << log2_of(polynomial);
  while (n-- > 0) {
    value <<= 1;
    if (value & top) value ^= polynomial;
  }
  return value;
}

/* Neighbours differ in the remainder's lowest bits; read backwards as a fraction these are its largest, so that they go
 * to far modules (van der Corput). */
static uint64_t place_of_bit(const address_hash *h, const hash_masks *banks, const hash_masks *sets, uint32_t bit) {
  const hash_spec *spec = &h->spec;
  if (spec->kind == HASH_XOR)
    return bits_under(&spec->modules, bit) | bits_under(banks, bit) << FIELD_BITS |
           bits_under(sets, bit) << 2 * FIELD_BITS;
  uint32_t piece = log2_of(spec->piece_bytes);
  return bit < piece ? 0 : backwards(power_modulo(bit - piece, spec->polynomial), h->remainder_bits);
}

static void tables_make(address_hash *h, const hash_masks *banks, const hash_masks *sets) {
  for (uint32_t t = 0; t < TABLES; t++)
    for (uint32_t bit = 0; bit < TABLE_BITS; bit++) {
      uint64_t place = place_of_bit(h, banks, sets, LOW_BIT + t * TABLE_BITS + bit);
      for (uint32_t i = 1u << bit; i < 2u << bit; i++) h->tables[t][i] = h->tables[t][i - (1u << bit)] ^ place;
    }
}

/* ---- checks ---- */

static ff_status check_masks(const char *name, const hash_masks *m, ff_error *error) {
  if (m->count > HASH_MASKS) return ff_fail(error, FF_INVALID, "more than %d masks of the %s", HASH_MASKS, name);
  for (uint32_t i = 0; i < m->count; i++) {
    if (!m->masks[i]) return ff_fail(error, FF_INVALID, "mask %u of the %s is empty", i, name);
    if (m->masks[i] & ((UINT64_C(1) << LOW_BIT) - 1))
      return ff_fail(error, FF_INVALID, "mask %u of the %s has a bit within a line of 128 bytes (below %d)", i, name,
                     LOW_BIT);
    if (m->masks[i] >> (LOW_BIT + TABLES * TABLE_BITS))
      return ff_fail(error, FF_INVALID, "mask %u of the %s has a bit above %d", i, name,
                     LOW_BIT + TABLES * TABLE_BITS - 1);
  }
  return FF_OK;
}

static ff_status check_count(const char *name, uint32_t masks, uint32_t count, ff_error *error) {
  if (masks < FIELD_BITS && count == UINT32_C(1) << masks) return FF_OK;
  return ff_fail(error, FF_INVALID, "%u independent masks tell %u %s apart, but there are %u", masks,
                 UINT32_C(1) << masks, name, count);
}

/* Which bits of an address tell apart the rows of one bank. The bank's masks have a pivot each, as low as can be:
 * within a bank the other bits say what the pivots are. So the other bits number a bank's bytes: the lowest of them are
 * the place in the row, the rest its row, and every row has row_bytes. */
static uint64_t bits_of_rows(const hash_masks *modules, const hash_masks *banks, uint32_t row_bits) {
  gf2_space upside_down = {.rank = 0}; /* gf2's pivots are the highest bits */
  uint64_t others = UINT64_MAX;
  for (uint32_t i = 0; i < modules->count; i++) gf2_add(&upside_down, backwards(modules->masks[i], GF2_BITS));
  for (uint32_t i = 0; i < banks->count; i++) gf2_add(&upside_down, backwards(banks->masks[i], GF2_BITS));
  for (uint32_t i = 0; i < upside_down.rank; i++) others &= ~(UINT64_C(1) << __builtin_clzll(upside_down.rows[i]));
  while (row_bits--) others &= others - 1;
  return others;
}

static ff_status xor_create(address_hash *h, ff_error *error) {
  const hash_spec *spec = &h->spec;
  ff_status status = check_masks("modules", &spec->modules, error);
  if (!status) status = check_masks("banks", &spec->banks, error);
  if (!status) status = check_masks("sets", &spec->sets, error);
  if (status) return status;
  hash_masks none = {.count = 0};
  hash_masks modules = without_modules(&spec->modules, &none), banks = without_modules(&spec->banks, &spec->modules),
             sets = without_modules(&spec->sets, &spec->modules);
  status = check_count("modules", modules.count, spec->module_count, error);
  if (!status && modules.count != spec->modules.count)
    return ff_fail(error, FF_INVALID, "the masks of the modules depend on each other");
  if (!status) status = check_count("banks of a module", banks.count, spec->bank_count, error);
  if (!status) status = check_count("sets of a slice", sets.count, spec->set_count, error);
  if (status) return status;
  h->row_mask = bits_of_rows(&spec->modules, &banks, h->row_bits);
  h->row_shift = (uint32_t)__builtin_ctzll(h->row_mask);
  tables_make(h, &banks, &sets);
  return FF_OK;
}

/* Primitive, so that x^n runs through all remainders but 0; of degree 1, 2 and so on (each checked by a test). */
static const uint32_t primitive[] = {0x3,    0x7,     0xb,     0x13,    0x25,    0x43,    0x83,
                                     0x11d,  0x211,   0x409,   0x805,   0x1053,  0x201b,  0x4443,
                                     0x8003, 0x1002d, 0x20009, 0x40081, 0x80027, 0x100009};

/* A whole log2 of the modules is the degree: each remainder is one module. Otherwise four more: no module has 1/16 more
 * remainders than another. */
static uint64_t polynomial_for(uint32_t modules) {
  uint32_t degree = power_of_two(modules) ? log2_of(modules) : log2_of(modules) + 1 + 4;
  return primitive[degree > 1 ? degree - 1 : 0];
}

static ff_status polynomial_create(address_hash *h, ff_error *error) {
  hash_spec *spec = &h->spec;
  if (!spec->polynomial) spec->polynomial = polynomial_for(spec->module_count);
  h->remainder_bits = log2_of(spec->polynomial);
  if (h->remainder_bits < 1 || h->remainder_bits > 31 || !(spec->polynomial & 1))
    return ff_fail(error, FF_INVALID, "the polynomial must be odd and of degree 1 to 31");
  if (spec->module_count > UINT32_C(1) << h->remainder_bits)
    return ff_fail(error, FF_INVALID, "the polynomial's degree is too small for %u modules", spec->module_count);
  h->row_shift = log2_of(spec->row_bytes * spec->module_count * spec->bank_count);
  tables_make(h, NULL, NULL);
  return FF_OK;
}

static divider divider_of(uint64_t by) { return (divider){by, UINT64_MAX / by + 1, by > 1 ? UINT64_MAX / by : 0}; }

/* Places are below their counts: of addresses all over memory. */
static void check_places(const address_hash *h) {
  enum { CHECKED = 1024, ADDRESS_BITS = 40 };
  for (uint64_t i = 0; i < CHECKED; i++) {
    hash_place p = hash_of(h, i * UINT64_C(0x9e3779b97f4a7c15) >> (64 - ADDRESS_BITS));
    FF_ASSERT(p.module < h->spec.module_count && p.bank < h->spec.bank_count && p.set < h->spec.set_count);
  }
}

ff_status hash_create(const hash_spec *spec, address_hash **out, ff_error *error) {
  if (!spec->module_count || !spec->bank_count || !spec->set_count || !power_of_two(spec->row_bytes))
    return ff_fail(error, FF_INVALID, "there are no modules, banks, sets or rows");
  if (spec->module_count > HASH_COUNT || spec->bank_count > HASH_COUNT || spec->row_bytes > UINT64_C(1) << 30)
    return ff_fail(error, FF_INVALID, "above %d modules or banks, or rows above 1 GiB", HASH_COUNT);
  if (spec->kind != HASH_XOR && (!power_of_two(spec->piece_bytes) || spec->piece_bytes < UINT64_C(1) << LOW_BIT))
    return ff_fail(error, FF_INVALID, "the pieces that go to one module must be a power of two, at least 128 bytes");
  address_hash *h = ff_alloc(sizeof *h);
  h->spec = *spec;
  h->piece_shift = log2_of(spec->piece_bytes);
  h->row_bits = log2_of(spec->row_bytes);
  h->modules = divider_of(spec->module_count);
  h->banks = divider_of(spec->bank_count);
  h->sets = divider_of(spec->set_count);
  ff_status status = spec->kind == HASH_XOR          ? xor_create(h, error)
                     : spec->kind == HASH_POLYNOMIAL ? polynomial_create(h, error)
                                                     : FF_OK;
  if (!status && ff_check_level >= 2) check_places(h);
  if (status) free(h);
  else *out = h;
  return status;
}

void hash_free(address_hash *hash) { free(hash); }

/* ---- lookups ---- */

static inline uint64_t look_up(const address_hash *h, uint64_t physical) {
  uint64_t x = physical >> LOW_BIT, mask = (1 << TABLE_BITS) - 1;
  return h->tables[0][x & mask] ^ h->tables[1][x >> TABLE_BITS & mask] ^ h->tables[2][x >> 2 * TABLE_BITS & mask];
}

static inline uint64_t mix(uint64_t x) { return x * UINT64_C(0x9e3779b97f4a7c15) >> 32; }

static inline uint64_t divide(const divider *d, uint64_t x) {
  return x < d->limit ? (uint64_t)((unsigned __int128)x * d->times >> 64) : x / d->by;
}

static hash_place place_modulo(const address_hash *h, uint64_t physical) {
  uint64_t piece = physical >> h->piece_shift, inside = divide(&h->modules, piece);
  uint64_t local = inside << h->piece_shift | (physical & (h->spec.piece_bytes - 1)), line = local >> LOW_BIT;
  uint64_t row = local >> h->row_bits, row_of_bank = divide(&h->banks, row);
  return (hash_place){(uint32_t)(piece - inside * h->modules.by), (uint32_t)(row - row_of_bank * h->banks.by),
                      (uint32_t)(line - divide(&h->sets, line) * h->sets.by), row_of_bank};
}

/* The remainder, read backwards as a fraction of its range, gives the module; banks and sets come from it and the
 * address mixed. */
static hash_place place_polynomial(const address_hash *h, uint64_t physical) {
  const hash_spec *spec = &h->spec;
  uint64_t remainder = look_up(h, physical), region = physical >> h->row_shift, line = physical >> LOW_BIT;
  return (hash_place){(uint32_t)(remainder * spec->module_count >> h->remainder_bits),
                      (uint32_t)((mix(physical >> h->piece_shift ^ region) & UINT32_MAX) * spec->bank_count >> 32),
                      (uint32_t)((mix(line) & UINT32_MAX) * spec->set_count >> 32), region};
}

hash_place hash_of(const address_hash *h, uint64_t physical) {
  if (h->spec.kind == HASH_XOR) {
    uint64_t place = look_up(h, physical);
    return (hash_place){(uint32_t)(place & FIELD), (uint32_t)(place >> FIELD_BITS & FIELD),
                        (uint32_t)(place >> 2 * FIELD_BITS), (physical & h->row_mask) >> h->row_shift};
  }
  return h->spec.kind == HASH_POLYNOMIAL ? place_polynomial(h, physical) : place_modulo(h, physical);
}

uint32_t hash_module(const address_hash *h, uint64_t physical) { return hash_of(h, physical).module; }
