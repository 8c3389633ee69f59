/* SPDX-License-Identifier: Apache-2.0 */
/* One PTX text, run both ways on every instruction set: what it leaves in memory, what it counts and how it ends must
 * be the same. */
#ifndef FF_TESTS_COMPILED_COMPARE_H
#define FF_TESTS_COMPILED_COMPARE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct comparer comparer;
/* isa: only that instruction set; NULL: all that are compiled for. stream: launches have an access stream, which must
 * be the same, too. */
comparer *comparer_make(const char *isa, bool stream);
void comparer_free(comparer *c);

typedef enum comparison { COMPARE_SAME, COMPARE_DIFFERENT, COMPARE_INVALID } comparison;
/* INVALID: it does not parse. Unless SAME, `why` says what is different (room: at least 512). */
comparison compare_text(comparer *c, const char *text, size_t length, char *why, size_t room);

typedef struct compare_counts {
  unsigned long long launches, compiled, faults, instructions, divergent;
} compare_counts;
const compare_counts *comparer_counts(const comparer *c);

#endif
