/* SPDX-License-Identifier: Apache-2.0 */
#include "coverage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "exec/instructions/ops_table.h"

static FF_VEC(char *) stated; /* names of the tables */

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static bool starts_alike(const char *name, const char *case_name) {
  size_t length = strcspn(name, ".");
  return !strncmp(name, case_name, length) && (case_name[length] == '.' || !case_name[length]);
}

void coverage_note(const ptx_module *module, const char *case_name) {
  char name[160];
  for (uint32_t f = 0; f < module->func_count; f++)
    for (uint32_t i = 0; i < module->funcs[f]->instr_count; i++) {
      ops_name(module->funcs[f], &module->funcs[f]->instrs[i], name, sizeof name);
      if (starts_alike(name, case_name) && ops_find(&OPS_SET_ANY, name)) FF_PUSH(&stated, strdup(name));
    }
}

static bool is_stated(const char *name) {
  return stated.count && bsearch(&name, stated.items, stated.count, sizeof *stated.items, by_text);
}

/* A row's names are one computation: one of them is enough. */
static bool row_is_stated(const ops_entry *entry) {
  char name[160];
  for (const char *at = entry->names; *at; at += strspn(at, " ")) {
    int length = (int)strcspn(at, " ");
    snprintf(name, sizeof name, "%.*s", length, at);
    if (is_stated(name)) return true;
    at += length;
  }
  return false;
}

void coverage_print_rest(void) {
  if (stated.count) qsort(stated.items, stated.count, sizeof *stated.items, by_text);
  for (int t = 0; OPS_SET_ANY.tables[t]; t++)
    for (const ops_entry *entry = OPS_SET_ANY.tables[t]; entry->names; entry++)
      if (!row_is_stated(entry)) printf("%.*s\n", (int)strcspn(entry->names, " "), entry->names);
  for (size_t n = 0; n < stated.count; n++) free(stated.items[n]);
  free(stated.items);
}
