/* SPDX-License-Identifier: Apache-2.0 */
/* Where in GPU memory a physical address lies: memory module (an L2 slice with its DRAM channel), set of that slice,
 * bank and row of that channel (Jain 2019, section V). What a machine file says is made into tables once, so that an
 * address costs three lookups.
 *
 *   interleave  pieces of piece_bytes go round the modules (no group `hash` in the machine file)
 *   xor         each bit of the module, bank and set number is the parity of the address under a mask
 *   modulo      the piece's number modulo the count of modules, which need not be a power of two
 *   polynomial  the piece's number modulo a polynomial over GF(2) (Rau 1991), read backwards as a fraction of the count
 *               of modules; its degree should be log2 of the modules where that is whole, else about four more: strides
 *               below 2^degree pieces look at
 *               few of its bits
 *
 * Modules, banks of a module and sets of a slice are numbered from 0; hash_create asserts at the deep check level that
 * places stay below their counts, for addresses all over memory. Rows are numbered within their bank. */
#ifndef FF_PARTITION_HASH_H
#define FF_PARTITION_HASH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum { HASH_MASKS = 16, HASH_COUNT = 1 << 16 /* modules, banks: at most */ };

typedef enum hash_kind { HASH_INTERLEAVE, HASH_XOR, HASH_MODULO, HASH_POLYNOMIAL } hash_kind;

typedef struct hash_masks {
  uint64_t masks[HASH_MASKS];
  uint32_t count;
} hash_masks; /* mask i gives bit i */

typedef struct hash_spec { /* as a machine file gives it */
  hash_kind kind;
  /* xor: of all modules together, so that what gives the module is in the span of the other two */
  hash_masks modules, banks, sets;
  /* the other kinds; polynomial 0: one that suits the count of modules is chosen, and hash_spec_of has it */
  uint64_t piece_bytes, polynomial;
  uint32_t module_count, bank_count, set_count; /* banks of a module's channel, sets of its slice */
  uint64_t row_bytes;
} hash_spec;

typedef struct hash_place {
  uint32_t module, bank, set;
  uint64_t row;
} hash_place;

typedef struct address_hash address_hash;

/* FF_INVALID: the masks do not fit the counts (the message says which). The caller frees it with hash_free. */
ff_status hash_create(const hash_spec *spec, address_hash **out, ff_error *error);
void hash_free(address_hash *hash);
const hash_spec *hash_spec_of(const address_hash *hash);
hash_place hash_of(const address_hash *hash, uint64_t physical);
/* The module alone. */
uint32_t hash_module(const address_hash *hash, uint64_t physical);
/* "xor" and so on; NULL: no such number. HASH_INTERLEAVE is the first. */
const char *hash_kind_name(hash_kind kind);

#endif
