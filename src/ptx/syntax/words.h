/* SPDX-License-Identifier: Apache-2.0 */
/* The fixed vocabulary of PTX, looked up by text: mnemonics, dotted words, special registers. Built once per process
 * from the .def tables and read-only after that. */
#ifndef FF_PTX_WORDS_H
#define FF_PTX_WORDS_H

#include "ptx/ir.h"

/* Dotted words that open a statement (PTX ISA, "Directives"). */
typedef enum ptx_directive {
  PTX_DIR_NONE,
#define X(name, text) PTX_DIR_##name,
#include "ptx/directives.def"
#undef X
} ptx_directive;

typedef struct ptx_word { /* one dotted word may be several things: .param is a modifier and a directive */
  bool is_mod;
  ptx_mod mod;
  ptx_type type;           /* PTX_TYPE_NONE: not a type */
  ptx_directive directive; /* PTX_DIR_NONE: not a directive */
} ptx_word;

/* All zero if the word is unknown. `chars` without the dot. */
ptx_word ptx_word_find(const char *chars, size_t length);
/* PTX_OP_UNKNOWN if it is none. */
ptx_opcode ptx_opcode_find(const char *chars, size_t length);
/* PTX_SREGS if it is none. */
ptx_sreg ptx_sreg_find(const char *chars, size_t length);

#endif
