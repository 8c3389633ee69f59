/* SPDX-License-Identifier: Apache-2.0 */
/* The arrays of a case as bytes of a launch: how large the launch is, what stands in the arrays before it, and what
 * differs afterwards. The same for the executor and for a driver. */
#ifndef TESTS_CONFORMANCE_ARRAYS_H
#define TESTS_CONFORMANCE_ARRAYS_H

#include "base/text.h"
#include "case.h"

typedef struct case_shape {
  unsigned grid[3], block[3];
  size_t elements; /* of every array; 0: as many as the case gives */
} case_shape;

/* The launches of a case: one if it says `launch:`, else two, with whole warps and with blocks of 31 threads. */
unsigned case_shapes(const conformance_case *c, case_shape shapes[2]);

size_t case_elements(const case_shape *shape, const case_array *array);
/* Writes the array's inputs (0xa5 where it has none), case_elements * value_bytes of its type. */
void case_fill(const case_shape *shape, const case_array *array, unsigned char *bytes);

/* Compares the array's bytes after the launch with what is expected of it: its outputs, or its inputs unchanged. Adds a
 * line to `out` for each value that differs, a few at most, each after `start`. Returns how many lines. */
unsigned case_compare(const conformance_case *c, const case_shape *shape, const case_array *array,
                      const unsigned char *bytes, const char *start, ff_text *out);

#endif
