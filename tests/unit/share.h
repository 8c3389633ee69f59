/* SPDX-License-Identifier: Apache-2.0 */
/* With a sanitizer's checks everything takes ten times as long, and `make test` is run often: what is repeated only to
 * see more of the same is repeated less there. */
#ifndef FF_TESTS_SHARE_H
#define FF_TESTS_SHARE_H

#include <stdint.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
#define CHECKED_BUILD 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CHECKED_BUILD 1
#endif
#endif
#ifndef CHECKED_BUILD
#define CHECKED_BUILD 0
#endif

/* times; with checks one of them in `of`. */
#define SHARE(times, of) ((times) / (CHECKED_BUILD ? (of) : 1))

/* Where FARFAULT_FEWER is set, as by `make test`: of, otherwise 1. */
static inline uint32_t one_in(uint32_t of) { return getenv("FARFAULT_FEWER") ? of : 1; }

/* times, or one of them in `of`, one at least. */
static inline uint32_t fewer(uint32_t times, uint32_t of) { return times / one_in(of) ? times / one_in(of) : 1; }

#endif
