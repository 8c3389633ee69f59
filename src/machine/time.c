/* SPDX-License-Identifier: Apache-2.0 */
/* Places that are held until a known time. */
#include "machine/time.h"

#include <string.h>

void slots_init(slots *s, arena *a, uint64_t capacity) {
  s->capacity = (uint32_t)capacity;
  s->until = arena_alloc(a, 2 * capacity * sizeof *s->until);
}

/* The last of the times gives way to this one. */
static void put(const slots *s, ps until) {
  ps *t = s->until + s->first;
  uint32_t at = s->capacity - 1;
  for (; at && t[at - 1] > until; at--) t[at] = t[at - 1];
  t[at] = until;
}

void slots_answer(slots *s, ps until) { put(s, until); }

void slots_hold(slots *s, ps until) {
  if (++s->first == s->capacity) {
    memcpy(s->until, s->until + s->first, s->capacity * sizeof *s->until);
    s->first = 0;
  }
  put(s, until);
}
