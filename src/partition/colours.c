/* SPDX-License-Identifier: Apache-2.0 */
/* Colours of pages: see colours.h. */
#include "partition/colours.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"
#include "partition/gf2.h"

enum {
  COLOUR_BITS = 6,
  LINE_BITS = 7,
  PAGE_BITS = 30,
  SAMPLED_PAGES = 1 << 17,
  SAMPLED_PIECES = 1 << 24,
  ADDRESS_BITS = 37,
  CHECKED = 64 /* pages, and pieces of each */
};

struct colours {
  const address_hash *hash; /* NULL: one module */
  uint64_t page_bytes;
  uint32_t count, modules;
  uint64_t masks[COLOUR_BITS]; /* linear: mask i gives bit i */
  uint32_t mask_count;
  bool linear;
  uint32_t *of_module; /* a colour for each module; while they are found: a parent in a forest, a root being a colour */
};

void colours_free(colours *c) {
  if (c) free(c->of_module);
  free(c);
}

uint32_t colours_count(const colours *c) { return c->count; }
uint64_t colours_all(const colours *c) { return c->count < COLOURS_MAX ? (UINT64_C(1) << c->count) - 1 : UINT64_MAX; }
bool colours_linear(const colours *c) { return c->linear; }

uint32_t colours_of_module(const colours *c, uint32_t module) {
  FF_ASSERT(module < c->modules);
  return c->of_module[module];
}

uint32_t colours_modules_in(const colours *c, uint64_t set) {
  uint32_t count = 0;
  for (uint32_t m = 0; m < c->modules; m++) count += set >> c->of_module[m] & 1;
  return count;
}

uint32_t colours_of(const colours *c, uint64_t physical) {
  if (c->count == 1) return 0;
  if (!c->linear) return c->of_module[hash_module(c->hash, physical)];
  uint32_t colour = 0;
  for (uint32_t i = 0; i < c->mask_count; i++) colour |= gf2_product(c->masks[i], physical) << i;
  return colour;
}

/* ---- xor: cosets ---- */

/* The functionals that vanish on W number its cosets; each is a set of module bits, whose masks are added. */
static void find_cosets(colours *c) {
  const hash_masks *modules = &hash_spec_of(c->hash)->modules;
  gf2_space within = {.rank = 0};
  for (uint64_t bit = 1; bit < c->page_bytes && bit; bit <<= 1) {
    uint64_t column = 0;
    for (uint32_t i = 0; i < modules->count; i++) column |= (uint64_t) !!(modules->masks[i] & bit) << i;
    gf2_add(&within, column);
  }
  gf2_space functionals = gf2_null(&within, (UINT64_C(1) << modules->count) - 1);
  c->mask_count = functionals.rank < COLOUR_BITS ? functionals.rank : COLOUR_BITS;
  c->count = UINT32_C(1) << c->mask_count;
  for (uint32_t f = 0; f < c->mask_count; f++) {
    uint64_t functional = functionals.rows[functionals.rank - 1 - f];
    for (uint32_t i = 0; i < modules->count; i++)
      if (functional >> i & 1) c->masks[f] ^= modules->masks[i];
    for (uint32_t m = 0; m < c->modules; m++) c->of_module[m] |= gf2_product(functional, m) << f;
  }
  c->linear = true;
}

/* ---- other hashes: modules that pages touch together ---- */

static uint32_t root_of(uint32_t *parents, uint32_t module) {
  while (parents[module] != module) module = parents[module] = parents[parents[module]];
  return module;
}

/* Puts the modules of one page together; how many roots are left of `roots`. */
static uint32_t join_page(colours *c, uint64_t page, uint64_t piece_bytes, uint32_t roots) {
  uint32_t first = root_of(c->of_module, hash_module(c->hash, page));
  for (uint64_t at = piece_bytes; at < c->page_bytes && roots > 1; at += piece_bytes) {
    uint32_t other = root_of(c->of_module, hash_module(c->hash, page + at));
    if (other == first) continue;
    if (other < first) { /* the root is the lowest module */
      c->of_module[first] = other;
      first = other;
    } else c->of_module[other] = first;
    roots--;
  }
  return roots;
}

/* How many pages to look at, one per step, so that no module is left apart that a page would join (or as many as we can
 * afford). */
static uint64_t pages_to_see(const hash_spec *spec, uint64_t pieces) {
  uint64_t pages = spec->module_count, affordable = SAMPLED_PIECES / pieces;
  if (spec->kind == HASH_POLYNOMIAL) pages = UINT64_C(1) << (63 - __builtin_clzll(spec->polynomial));
  if (affordable > SAMPLED_PAGES) affordable = SAMPLED_PAGES;
  if (affordable < 2) affordable = 2;
  return pages < affordable ? pages : affordable;
}

static void find_joined(colours *c) {
  const hash_spec *spec = hash_spec_of(c->hash);
  uint64_t piece = spec->piece_bytes, step = piece > c->page_bytes ? piece : c->page_bytes,
           pieces = c->page_bytes > piece ? c->page_bytes / piece : 1;
  uint64_t pages = pages_to_see(spec, pieces), far = (UINT64_C(1) << ADDRESS_BITS) / step;
  bool all = spec->kind != HASH_POLYNOMIAL || pages == UINT64_C(1) << (63 - __builtin_clzll(spec->polynomial));
  uint32_t roots = c->modules;
  for (uint32_t m = 0; m < c->modules; m++) c->of_module[m] = m;
  for (uint64_t i = 0; i < pages && roots > 1 && c->page_bytes > piece; i++) {
    uint64_t page = i;
    if (!all && i % 2) page = (i * UINT64_C(0x9e3779b97f4a7c15) >> 20) % (far ? far : 1);
    roots = join_page(c, page * step, piece, roots);
  }
  c->count = roots;
}

/* Roots become numbers, in the order of their lowest modules; too many of them are put together. */
static void number_roots(colours *c) {
  uint32_t found = c->count, next = 0;
  if (c->count > COLOURS_MAX) {
    c->count = COLOURS_MAX;
    for (uint32_t d = COLOURS_MAX; d >= COLOURS_MAX / 2; d--)
      if (found % d == 0) {
        c->count = d;
        break;
      }
  }
  for (uint32_t m = 0; m < c->modules; m++) { /* the root of a module is never above it, so it has its number by now */
    uint32_t parent = c->of_module[m];
    if (parent == m) c->of_module[m] = (uint32_t)((uint64_t)next++ * c->count / found);
    else c->of_module[m] = c->of_module[parent];
  }
  FF_ASSERT(next == found);
}

/* The modules that pages touch have the pages' colours: of the first ones, which find_joined has looked at. */
static void check_pages(const colours *c) {
  const hash_spec *spec = hash_spec_of(c->hash);
  uint64_t piece = spec->piece_bytes ? spec->piece_bytes : UINT64_C(1) << LINE_BITS,
           step = piece > c->page_bytes ? piece : c->page_bytes,
           pages = pages_to_see(spec, c->page_bytes > piece ? c->page_bytes / piece : 1);
  for (uint64_t i = 0; i < pages && i < CHECKED; i += 2)
    for (uint64_t n = 0; n < CHECKED && n * piece < c->page_bytes; n++)
      FF_ASSERT(c->of_module[hash_module(c->hash, i * step + n * piece)] == colours_of(c, i * step));
  for (uint32_t m = 0; m < c->modules; m++) FF_ASSERT(c->of_module[m] < c->count);
}

ff_status colours_create(const address_hash *hash, uint64_t page_bytes, colours **out, ff_error *error) {
  if (page_bytes < UINT64_C(1) << LINE_BITS || page_bytes > UINT64_C(1) << PAGE_BITS || (page_bytes & (page_bytes - 1)))
    return ff_fail(error, FF_INVALID, "pages of %llu bytes: must be a power of two, 128 bytes to 1 GiB",
                   (unsigned long long)page_bytes);
  uint32_t modules = hash ? hash_spec_of(hash)->module_count : 1;
  colours *c = ff_alloc(sizeof *c);
  *c = (colours){.hash = hash,
                 .page_bytes = page_bytes,
                 .count = 1,
                 .modules = modules,
                 .of_module = ff_alloc(modules * sizeof *c->of_module)};
  if (hash && hash_spec_of(hash)->kind == HASH_XOR) find_cosets(c);
  else if (hash) {
    find_joined(c);
    number_roots(c);
  }
  if (hash && ff_check_level >= 2) check_pages(c);
  *out = c;
  return FF_OK;
}
