/* SPDX-License-Identifier: Apache-2.0 */
/* The address hashes that Jain et al. published (RTAS 2019, figure 6 and their code), as bit lists that end with -1. */
#ifndef TEST_FGPU_MASKS_H
#define TEST_FGPU_MASKS_H

#include <stdint.h>

typedef struct published {
  const char *name;
  uint32_t address_bits, module_count, bank_count, set_count;
  int bits[24][14];
} published;

/* The banks' masks, then the sets'; the first module_count of the 1080's banks and sets are the modules'. */
static const published gtx1080 = {"GTX 1080",
                                  33,
                                  3,
                                  7,
                                  10,
                                  {{10, 12, 16, 20, 23, 26, 29, 30, -1},
                                   {11, 12, 13, 15, 17, 20, 21, 23, 25, 26, 30, -1},
                                   {12, 13, 18, 19, 22, 25, 26, 27, 30, 31, -1},
                                   {13, 15, 20, 24, 26, 29, 32, -1},
                                   {15, 16, 21, 22, 23, 25, 26, 28, 29, -1},
                                   {16, 19, 23, 27, 30, -1},
                                   {17, 20, 22, 23, 24, 27, 28, 29, 31, -1},
                                   {10, 12, 16, 20, 23, 26, 29, 30, -1},
                                   {11, 12, 13, 15, 17, 20, 21, 23, 25, 26, 30, -1},
                                   {12, 13, 18, 19, 22, 25, 26, 27, 30, 31, -1},
                                   {7, 8, 16, 17, 23, 26, 31, -1},
                                   {8, 10, 12, 16, 17, 21, 24, 25, 26, 27, -1},
                                   {9, 10, 18, 25, 29, 30, 31, -1},
                                   {13, 14, 20, 23, 28, 29, 30, -1},
                                   {14, 15, 17, 20, 21, 23, 24, 28, 31, -1},
                                   {15, 16, 19, 20, 23, 24, 25, 26, 28, 29, 30, 32, -1},
                                   {16, 17, 18, 19, 21, 22, 23, 25, 27, 28, 30, -1}}};
static const published v100 = {"V100",
                               34,
                               5,
                               9,
                               10,
                               {{10, 11, 20, 23, 25, 28, 30, 33, -1},
                                {11, 12, 16, 20, 25, 26, 29, 30, 32, 33, -1},
                                {12, 16, 17, 19, 23, 25, 26, 27, 31, -1},
                                {13, 24, 26, 27, 28, 30, 31, 33, -1},
                                {15, 17, 19, 20, 27, 28, 30, 31, 32, -1},
                                {16, 19, 20, 23, 27, 29, 31, 33, -1},
                                {17, 18, 23, 24, 25, 27, 28, 30, 31, -1},
                                {18, 21, 25, 29, 32, -1},
                                {19, 20, 22, 24, 25, 26, 29, 30, 31, 33, -1},
                                {10, 17, 20, 22, 24, 26, 27, 28, 30, 32, 33, -1},
                                {11, 12, 18, 24, 26, 28, 29, 30, 31, 32, -1},
                                {12, 13, 22, 26, 27, 28, 29, 30, 31, 33, -1},
                                {13, 14, 22, 24, 30, 31, 32, 33, -1},
                                {15, 18, 22, 23, 26, 29, 30, 31, 32, 33, -1},
                                {7, 15, 21, 23, 24, 25, 28, 32, -1},
                                {8, 9, 15, 19, 21, 23, 24, 25, 28, 29, 31, -1},
                                {9, 15, 19, 21, 22, 24, 25, 26, 27, 30, 31, 32, 33, -1},
                                {14, 19, 20, 24, 25, 27, 28, 29, 30, 31, 32, 33, -1},
                                {16, 19, 21, 22, 25, 26, 28, 30, 32, -1}}};

static inline uint64_t published_mask(const int *bits) {
  uint64_t mask = 0;
  for (; *bits >= 0; bits++) mask |= UINT64_C(1) << *bits;
  return mask;
}

static inline uint32_t published_masks(const published *p, int sets, uint64_t *masks) {
  uint32_t first = sets ? p->bank_count : 0, count = sets ? p->set_count : p->bank_count;
  for (uint32_t i = 0; i < count; i++) masks[i] = published_mask(p->bits[first + i]);
  return count;
}

#endif
