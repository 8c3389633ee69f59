/* SPDX-License-Identifier: Apache-2.0 */
/* Places that are held until a known time. */
#include "machine/time.h"

#include <string.h>

#include "base/check.h"

void slots_init(slots *s, arena *a, uint64_t capacity) {
  s->capacity = (uint32_t)capacity;
  s->until = arena_alloc(a, 2 * capacity * sizeof *s->until);
}

/* The last of the times that are known gives way to this one. Later ones make room, PIECE of them at once. */
enum { PIECE = 8 };
static inline void put(const slots *s, ps until) {
  ps *t = s->until + s->first;
  uint32_t at = s->capacity - 1 - s->open;
  for (ps piece[PIECE]; at >= PIECE && t[at - PIECE] > until; at -= PIECE) {
    memcpy(piece, &t[at - PIECE], sizeof piece);
    memcpy(&t[at - PIECE + 1], piece, sizeof piece);
  }
  for (; at && t[at - 1] > until; at--) t[at] = t[at - 1];
  t[at] = until;
}

void slots_answer(slots *s, ps until) {
  FF_ASSERT(s->open);
  s->open--;
  put(s, until);
}

void slots_hold(slots *s, ps until) {
  FF_ASSERT(s->open < s->capacity); /* else slots_wait said SLOTS_OPEN: there is no place yet */
  if (++s->first == s->capacity) {
    memcpy(s->until, s->until + s->first, s->capacity * sizeof *s->until);
    s->first = 0;
  }
  if (__builtin_expect(s->open || until == SLOTS_OPEN, 0)) {
    s->until[s->first + s->capacity - 1] = SLOTS_OPEN;
    if (until == SLOTS_OPEN) {
      s->open++;
      return;
    }
  }
  put(s, until);
}
