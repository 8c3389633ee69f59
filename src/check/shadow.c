/* SPDX-License-Identifier: Apache-2.0 */
/* The bits of shadow.h. Byte n of the arena is bit n % 8 of byte n / 8. */
#define _GNU_SOURCE
#include "check/shadow.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "exec/memory/address_space.h"

#define SHADOW_BYTES (EXEC_ARENA_BYTES / 8)
#define HOST_PAGE UINT64_C(4096)

ff_status check_shadow_create(check_shadow *shadow, uint64_t base, ff_error *error) {
  void *bits = mmap(NULL, SHADOW_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (bits == MAP_FAILED)
    return ff_fail(error, FF_NO_MEMORY, "no room for a bit per byte of GPU memory (%s)", strerror(errno));
  shadow->bits = bits;
  shadow->base = base;
  return FF_OK;
}

void check_shadow_free(check_shadow *shadow) {
  if (shadow->bits) munmap(shadow->bits, SHADOW_BYTES);
  shadow->bits = NULL;
}

/* Cuts [address, address + bytes) to the arena; *at is then an offset in it. False: nothing is left. */
static bool cut(const check_shadow *shadow, uint64_t address, uint64_t bytes, uint64_t *at, uint64_t *length) {
  *at = address - shadow->base;
  if (*at >= EXEC_ARENA_BYTES || !bytes) return false;
  *length = bytes < EXEC_ARENA_BYTES - *at ? bytes : EXEC_ARENA_BYTES - *at;
  return true;
}

static void change(unsigned char *byte, unsigned mask, bool set) {
  if (set) __atomic_fetch_or(byte, (unsigned char)mask, __ATOMIC_RELAXED);
  else __atomic_fetch_and(byte, (unsigned char)~mask, __ATOMIC_RELAXED);
}

/* Whole bytes of bits; pages of zeros go back to the host. */
static void fill(unsigned char *bits, uint64_t count, bool set) {
  uint64_t low = (uintptr_t)bits, high = low + count;
  uint64_t first_page = (low + HOST_PAGE - 1) & ~(HOST_PAGE - 1), last_page = high & ~(HOST_PAGE - 1);
  if (!set && last_page > first_page && madvise((void *)first_page, last_page - first_page, MADV_DONTNEED) == 0) {
    memset((void *)low, 0, first_page - low);
    memset((void *)last_page, 0, high - last_page);
  } else {
    memset(bits, set ? 0xff : 0, count);
  }
}

static void change_range(unsigned char *bits, uint64_t at, uint64_t length, bool set) {
  uint64_t end = at + length;
  if (at & 7) {
    uint64_t stop = (at | 7) + 1 < end ? (at | 7) + 1 : end;
    change(&bits[at / 8], ((1u << (stop - at)) - 1) << (at & 7), set);
    at = stop;
  }
  if (end - at >= 8) fill(&bits[at / 8], (end - at) / 8, set);
  if (end > at && (end & 7)) change(&bits[end / 8], (1u << (end & 7)) - 1, set);
}

void check_shadow_set(check_shadow *shadow, uint64_t address, uint64_t bytes) {
  uint64_t at, length;
  if (shadow->bits && cut(shadow, address, bytes, &at, &length)) change_range(shadow->bits, at, length, true);
}

void check_shadow_clear(check_shadow *shadow, uint64_t address, uint64_t bytes) {
  uint64_t at, length;
  if (shadow->bits && cut(shadow, address, bytes, &at, &length)) change_range(shadow->bits, at, length, false);
}

/* Up to 64 bits from any place on. */
static uint64_t bits_at(const unsigned char *bits, uint64_t at, uint32_t count) {
  uint64_t word = 0;
  for (uint32_t n = 0; n < count; n++) word |= (uint64_t)(bits[(at + n) / 8] >> ((at + n) & 7) & 1) << n;
  return word;
}

static uint64_t found(const check_shadow *shadow, uint64_t address, uint32_t bytes, uint64_t all) {
  uint64_t at, length;
  if (!shadow->bits || !cut(shadow, address, bytes, &at, &length)) return all;
  if (bytes == 4 && !(at & 3)) return shadow->bits[at / 8] >> (at & 7) & 15;
  return bits_at(shadow->bits, at, (uint32_t)length);
}

static uint64_t all_of(uint32_t bytes) { return bytes >= 64 ? UINT64_MAX : (UINT64_C(1) << bytes) - 1; }

bool check_shadow_any(const check_shadow *shadow, uint64_t address, uint32_t bytes) {
  return found(shadow, address, bytes, all_of(bytes)) != 0;
}

bool check_shadow_all(const check_shadow *shadow, uint64_t address, uint32_t bytes) {
  return found(shadow, address, bytes, all_of(bytes)) == all_of(bytes);
}

void check_shadow_copy(check_shadow *shadow, uint64_t to, uint64_t from, uint64_t bytes) {
  uint64_t at, length, begin, room;
  if (!shadow->bits || !cut(shadow, to, bytes, &at, &length) || !cut(shadow, from, length, &begin, &room)) return;
  if (room < length) length = room;
  if (!((at | begin | length) & 7)) {
    memmove(&shadow->bits[at / 8], &shadow->bits[begin / 8], length / 8);
    return;
  }
  bool backwards = at > begin && at < begin + length;
  for (uint64_t n = 0; n < length; n++) { /* overlapping ranges as memmove has them */
    uint64_t k = backwards ? length - 1 - n : n;
    change(&shadow->bits[(at + k) / 8], 1u << ((at + k) & 7), shadow->bits[(begin + k) / 8] >> ((begin + k) & 7) & 1);
  }
}
