/* SPDX-License-Identifier: Apache-2.0 */
/* What points and machine files are known by: FNV-1a of 128 bits. It tells apart what was not made to collide; nothing
 * here guards against an attacker. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sweep/study_plan.h"

void sweep_hash_start(sweep_hash *hash) {
  hash->state = ((unsigned __int128)0x6c62272e07bb0142u << 64) | 0x62b821756295c58du;
}

static void add(sweep_hash *hash, const unsigned char *bytes, size_t size) {
  const unsigned __int128 prime = ((unsigned __int128)1 << 88) | 0x13b;
  for (size_t i = 0; i < size; i++) hash->state = (hash->state ^ bytes[i]) * prime;
}

/* The length first, so that no two lists of texts are the same bytes. */
void sweep_hash_bytes(sweep_hash *hash, const void *bytes, size_t size) {
  unsigned char length[8];
  for (int i = 0; i < 8; i++) length[i] = (unsigned char)((uint64_t)size >> (8 * i));
  add(hash, length, sizeof length);
  add(hash, bytes, size);
}

void sweep_hash_text(sweep_hash *hash, const char *text) { sweep_hash_bytes(hash, text, strlen(text)); }

void sweep_hash_end(const sweep_hash *hash, char digits[SWEEP_KEY]) {
  snprintf(digits, SWEEP_KEY, "%016" PRIx64 "%016" PRIx64, (uint64_t)(hash->state >> 64), (uint64_t)hash->state);
}
