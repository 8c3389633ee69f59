/* SPDX-License-Identifier: Apache-2.0 */
/* Address hashes of real GPUs, as published with Jain 2019 (Fractional GPUs): each mask is the XOR of the named address
 * bits. What follows from them is an exact test of the algebra: ranks, counts, colours for each page size. */
#ifndef FF_TESTS_KNOWN_HASHES_H
#define FF_TESTS_KNOWN_HASHES_H

#include "partition/hash.h"

#define BITS1(a) (UINT64_C(1) << (a))
#define BITS2(a, ...) (BITS1(a) | BITS1(__VA_ARGS__))
#define BITS3(a, ...) (BITS1(a) | BITS2(__VA_ARGS__))
#define BITS4(a, ...) (BITS1(a) | BITS3(__VA_ARGS__))
#define BITS5(a, ...) (BITS1(a) | BITS4(__VA_ARGS__))
#define BITS6(a, ...) (BITS1(a) | BITS5(__VA_ARGS__))
#define BITS7(a, ...) (BITS1(a) | BITS6(__VA_ARGS__))
#define BITS8(a, ...) (BITS1(a) | BITS7(__VA_ARGS__))
#define BITS9(a, ...) (BITS1(a) | BITS8(__VA_ARGS__))
#define BITS10(a, ...) (BITS1(a) | BITS9(__VA_ARGS__))
#define BITS11(a, ...) (BITS1(a) | BITS10(__VA_ARGS__))
#define BITS12(a, ...) (BITS1(a) | BITS11(__VA_ARGS__))
#define BITS13(a, ...) (BITS1(a) | BITS12(__VA_ARGS__))
#define BITS_OF(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, _13, NAME, ...) NAME
#define BITS(...)                                                                                                     \
  BITS_OF(__VA_ARGS__, BITS13, BITS12, BITS11, BITS10, BITS9, BITS8, BITS7, BITS6, BITS5, BITS4, BITS3, BITS2, BITS1) \
  (__VA_ARGS__)

#define GTX1080_MODULES                                                                   \
  BITS(10, 12, 16, 20, 23, 26, 29, 30), BITS(11, 12, 13, 15, 17, 20, 21, 23, 25, 26, 30), \
      BITS(12, 13, 18, 19, 22, 25, 26, 27, 30, 31)

/* GTX 1070 and 1080: 8 modules, 128 banks together, 1024 sets together. */
static const hash_spec gtx1080_hash = {
    .kind = HASH_XOR,
    .modules = {{GTX1080_MODULES}, 3},
    .banks = {{GTX1080_MODULES, BITS(13, 15, 20, 24, 26, 29, 32), BITS(15, 16, 21, 22, 23, 25, 26, 28, 29),
               BITS(16, 19, 23, 27, 30), BITS(17, 20, 22, 23, 24, 27, 28, 29, 31)},
              7},
    .sets = {{GTX1080_MODULES, BITS(7, 8, 16, 17, 23, 26, 31), BITS(8, 10, 12, 16, 17, 21, 24, 25, 26, 27),
              BITS(9, 10, 18, 25, 29, 30, 31), BITS(13, 14, 20, 23, 28, 29, 30),
              BITS(14, 15, 17, 20, 21, 23, 24, 28, 31), BITS(15, 16, 19, 20, 23, 24, 25, 26, 28, 29, 30, 32),
              BITS(16, 17, 18, 19, 21, 22, 23, 25, 27, 28, 30)},
             10},
    .module_count = 8,
    .bank_count = 16,
    .set_count = 128,
    .row_bytes = 2048,
};

/* Tesla V100: 32 modules, 512 banks together, 1024 sets together. */
static const hash_spec v100_hash = {
    .kind = HASH_XOR,
    .modules = {{BITS(10, 13, 17, 19, 24, 25, 26, 29, 30, 32, 33), BITS(11, 13, 15, 23, 24, 26, 27, 29, 30, 31),
                 BITS(12, 15, 16, 18, 20, 21, 23, 26, 28, 29, 30), BITS(13, 19, 20, 22, 25, 27, 28, 29),
                 BITS(15, 18, 22, 23, 26, 29, 30, 31, 32, 33)},
                5},
    .banks = {{BITS(10, 11, 20, 23, 25, 28, 30, 33), BITS(11, 12, 16, 20, 25, 26, 29, 30, 32, 33),
               BITS(12, 16, 17, 19, 23, 25, 26, 27, 31), BITS(13, 24, 26, 27, 28, 30, 31, 33),
               BITS(15, 17, 19, 20, 27, 28, 30, 31, 32), BITS(16, 19, 20, 23, 27, 29, 31, 33),
               BITS(17, 18, 23, 24, 25, 27, 28, 30, 31), BITS(18, 21, 25, 29, 32),
               BITS(19, 20, 22, 24, 25, 26, 29, 30, 31, 33)},
              9},
    .sets = {{BITS(10, 17, 20, 22, 24, 26, 27, 28, 30, 32, 33), BITS(11, 12, 18, 24, 26, 28, 29, 30, 31, 32),
              BITS(12, 13, 22, 26, 27, 28, 29, 30, 31, 33), BITS(13, 14, 22, 24, 30, 31, 32, 33),
              BITS(15, 18, 22, 23, 26, 29, 30, 31, 32, 33), BITS(7, 15, 21, 23, 24, 25, 28, 32),
              BITS(8, 9, 15, 19, 21, 23, 24, 25, 28, 29, 31), BITS(9, 15, 19, 21, 22, 24, 25, 26, 27, 30, 31, 32, 33),
              BITS(14, 19, 20, 24, 25, 27, 28, 29, 30, 31, 32, 33), BITS(16, 19, 21, 22, 25, 26, 28, 30, 32)},
             10},
    .module_count = 32,
    .bank_count = 16,
    .set_count = 32,
    .row_bytes = 2048,
};

#endif
