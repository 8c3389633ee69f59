/* SPDX-License-Identifier: Apache-2.0 */
/* One bit per byte of the virtual GPU's arena: has it been written since it was allocated?
 *
 * The bits stand in one reserved range of the host's, an eighth of the arena; the host gives it pages where bits are
 * set, so it costs an eighth of the bytes that were written. Bits are set atomically; two threads may write side by
 * side. */
#ifndef FF_CHECK_SHADOW_H
#define FF_CHECK_SHADOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef struct check_shadow {
  unsigned char *bits;
  uint64_t base;
} check_shadow; /* base: of the arena */

/* FF_NO_MEMORY: the host does not reserve that much. */
ff_status check_shadow_create(check_shadow *shadow, uint64_t base, ff_error *error);
void check_shadow_free(check_shadow *shadow);
/* Ranges of any length; what lies outside of the arena is ignored. */
void check_shadow_set(check_shadow *shadow, uint64_t address, uint64_t bytes);
void check_shadow_clear(check_shadow *shadow, uint64_t address, uint64_t bytes);
void check_shadow_copy(check_shadow *shadow, uint64_t to, uint64_t from, uint64_t bytes); /* both in the arena */
/* Is at least one of these bytes (at most 64) written? True outside of the arena. */
bool check_shadow_any(const check_shadow *shadow, uint64_t address, uint32_t bytes);
bool check_shadow_all(const check_shadow *shadow, uint64_t address, uint32_t bytes);

#endif
