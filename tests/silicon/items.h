/* SPDX-License-Identifier: Apache-2.0 */
/* What is compared: kernels k(.u64 out, .u64 in, .u32 n, .f32 f) that write what they compute of `in` to `out`, each
 * thread to its own places. Three kinds: every computing form of the interpreter's tables, the approximate functions,
 * sums of products on tensor cores. */
#ifndef TESTS_SILICON_ITEMS_H
#define TESTS_SILICON_ITEMS_H

#include <stdbool.h>

#include "base/text.h"
#include "inputs.h"

typedef enum item_kind { ITEM_FORM, ITEM_FUNCTION, ITEM_SUM, ITEM_KINDS } item_kind;

typedef struct item {
  item_kind kind;
  char name[96];
  uint32_t number; /* ITEM_FORM: of the form; else of the row in items.c */
  input_kind input;
  const char *types[2];             /* ITEM_SUM: of A and B, of C and D */
  uint32_t grid, block, runs;       /* runs: with other inputs each */
  size_t input_bytes, output_bytes; /* of one run; of sums A, B and C have a third of the inputs each */
  uint32_t word;                    /* bytes of what is compared at once */
} item;

typedef struct item_list {
  item *items;
  size_t count, room;
} item_list;

/* All items, or with `quick` a part of each kind, with fewer inputs. Free .items. */
item_list items_make(bool quick);
/* The PTX; compute: 90 for a device of compute capability 9.0. The caller frees .chars. */
ff_text item_text(const item *it, uint32_t compute);

/* The exact value of a function's item at x, and how far off the manual lets a result be: 0 if it says nothing
 * there. */
double item_exact(const item *it, double x);
double item_bound(const item *it, double x, double exact);
/* Else, where its words have two bytes, f16. */
bool item_is_bf16(const item *it);

#endif
