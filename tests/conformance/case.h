/* SPDX-License-Identifier: Apache-2.0 */
/* A case of a conformance file as read: its arrays, how it is launched, and the PTX text. The format is in
 * README.md. */
#ifndef TESTS_CONFORMANCE_CASE_H
#define TESTS_CONFORMANCE_CASE_H

#include "base/status.h"
#include "place.h"
#include "values.h"

#define CASE_ARRAYS 16

typedef struct case_array { /* one kernel parameter */
  char name[32];
  const value_type *type;
  bool by_value; /* `param`: the values themselves are the parameter */
  bool has_input, has_output;
  value_part *input, *output; /* count * type->parts each */
  size_t count;               /* values; the same for input and output */
  value_bound bound;
  /* `multicast`: the kernel gets a multicast address, behind which so many devices have equal parts */
  unsigned members;
} case_array;

typedef struct conformance_case {
  char *text; /* the PTX, complete; a whole module begins at the line of the text at which it begins in the file */
  size_t text_length;
  case_array arrays[CASE_ARRAYS];
  unsigned array_count;
  bool has_launch; /* else: one thread per value */
  unsigned grid[3], block[3], cluster[3], shared;
  bool cooperative;
  char fault[32];      /* the name of the fault that is expected; "" for none */
  unsigned fault_line; /* the line of the text with "// faults here"; 0: any */
  char kernel[64];
} conformance_case;

/* Reads the case at `place` of the file `name`. Errors name file and line. On FF_OK free it with case_free. */
ff_status case_read(const char *name, const case_place *place, conformance_case *out, ff_error *error);
void case_free(conformance_case *c);

#endif
