/* SPDX-License-Identifier: Apache-2.0 */
/* With a sanitizer's checks everything takes ten times as long: what is repeated only to see more of the same is
 * repeated less there. */
#ifndef FF_TESTS_SHARE_H
#define FF_TESTS_SHARE_H

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

#endif
