/* SPDX-License-Identifier: Apache-2.0 */
/* What names mean at the parser's place in the text: nested scopes over one hash table.
 *
 * A name has up to three meanings at once, in separate spaces: a thing (register, variable, function), a range
 * (`%r<10>` binds the prefix `%r`) and a label. Bindings form a stack; each remembers the one it hides, so leaving a
 * scope pops its bindings and the hidden ones are back. names[i].head[space] is the innermost binding of that name, and
 * bindings are ordered by scope depth (names_check, at the deep level, when a scope ends). */
#ifndef FF_PTX_NAMES_H
#define FF_PTX_NAMES_H

#include "ptx/ir.h"

typedef enum ptx_name_space { PTX_NAMES_THING, PTX_NAMES_RANGE, PTX_NAMES_LABEL, PTX_NAME_SPACES } ptx_name_space;

typedef struct ptx_binding {
  uint32_t depth;           /* of the scope that made it; 0: module */
  const ptx_symbol *symbol; /* variable or function, or NULL */
  uint32_t reg;             /* first register, or the label's index */
  uint32_t count;           /* RANGE: how many numbers; else 1 */
  uint32_t vector;          /* registers per name: 1, 2, 4 */
  uint32_t name, hidden;    /* this binding's name; the binding that it hides or UINT32_MAX */
  ptx_name_space space;
} ptx_binding;

typedef struct ptx_name {
  const char *chars;
  uint32_t length, hash;
  uint32_t head[PTX_NAME_SPACES]; /* binding or UINT32_MAX */
} ptx_name;

typedef struct ptx_names {
  FF_VEC(ptx_name) names;
  FF_VEC(ptx_binding) bindings;
  uint32_t *slots; /* name index + 1, 0 free; slot_count a power of two */
  uint32_t slot_count;
  uint32_t depth;
} ptx_names;

/* `chars` must outlive the table (it points into the module's text). The pointer is valid until the next bind. */
const ptx_binding *ptx_names_find(const ptx_names *names, ptx_name_space space, const char *chars, uint32_t length);
/* Binds in the current scope. False: that scope has a binding of this name and space already. */
bool ptx_names_bind(ptx_names *names, ptx_name_space space, const char *chars, uint32_t length, ptx_binding binding);
void ptx_names_enter(ptx_names *names);
void ptx_names_leave(ptx_names *names);
/* Forgets the names behind the first `count` ones, none of which has a binding any more. */
void ptx_names_truncate(ptx_names *names, size_t count);
void ptx_names_free(ptx_names *names);

#endif
