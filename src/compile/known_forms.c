/* SPDX-License-Identifier: Apache-2.0 */
/* forms.def joined with the interpreter's tables: what is computed and on what operands stands there alone. */
#include "compile/known_forms.h"

#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "compile/request.h"

_Static_assert((int)NATIVE_KINDS == (int)OPS_KINDS, "a request has the kinds of the tables");

static const struct {
  uint16_t op;
  const char *names;
} operations[] = {
#define F(op, names) {NATIVE_##op, names},
#include "compile/forms.def"
#undef F
};

/* lop3's last source is its table, which is in the entry's aux. */
static compile_form form_of(const ops_entry *entry, uint16_t op) {
  compile_form form = {.entry = entry, .op = op};
  memcpy(form.kinds, entry->kinds, sizeof form.kinds);
  if (op == NATIVE_LOP3) form.kinds[4] = NATIVE_K_none;
  return form;
}

/* Names end with the text or a space. */
static const ops_entry *entry_of(ops_set *set, const char *name) {
  const ops_entry *entry = ops_find(set, name);
  /* no row has that name, or one without kinds */
  if (!entry || entry->kinds[0] == OPS_K_none) ff_check_failed(__FILE__, __LINE__, name); /* and those behind it */
  return entry;
}

compile_form *compile_forms(ops_set *set, uint32_t *count) {
  compile_form *forms = NULL;
  uint32_t room = 0;
  *count = 0;
  for (size_t o = 0; o < sizeof operations / sizeof *operations; o++)
    for (const char *name = operations[o].names; *name;) {
      if (*count == room) forms = ff_realloc(forms, (room = 2 * room + 256) * sizeof *forms);
      forms[(*count)++] = form_of(entry_of(set, name), operations[o].op);
      while (*name && *name != ' ') name++;
      while (*name == ' ') name++;
    }
  return forms;
}
