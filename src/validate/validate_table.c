/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of measurements: read, checked, chosen from. See validate.h. */
#include <stdlib.h>
#include <string.h>

#include "validate/validate_fields.h"

const char *const validate_role_names[VALIDATE_ROLES] = {"held", "fitted", "input"};

enum {
#define X(name, help) COLUMN_##name,
#include "validate/columns.def"
#undef X
  COLUMNS
};

static const char *const column_names[] = {
#define X(name, help) #name,
#include "validate/columns.def"
#undef X
    NULL};

/* The number of the word in the list, or -1. */
static int find(const char *word, const char *const *list, int count) {
  for (int i = 0; i < count; i++)
    if (!strcmp(word, list[i])) return i;
  return -1;
}

static uint32_t run_of(validate_table *table, const validate_row *row) {
  for (uint32_t i = 0; i < table->runs.count; i++) {
    const validate_run *run = &table->runs.items[i];
    if (!strcmp(run->machine, row->machine) && !strcmp(run->set, row->set) && !strcmp(run->memory, row->memory) &&
        !strcmp(run->program, row->program))
      return i;
  }
  FF_PUSH(&table->runs, ((validate_run){row->machine, row->set, row->memory, row->program}));
  return (uint32_t)table->runs.count - 1;
}

/* Numbers and words of the fields. */
static ff_status convert(const fields *f, validate_row *row, ff_error *error) {
  static const char *const when[] = {"quick", "full"};
  row->at = VALIDATE_NONE;
  if (strcmp(row->x, "-") && !fields_number(row->x, &row->at))
    return fields_fail(f, COLUMN_x, error, "'%s' is neither a number nor -", row->x);
  if (!fields_number(row->silicon, &row->measured) || row->measured <= 0)
    return fields_fail(f, COLUMN_silicon, error, "'%s' is no number above 0", row->silicon);
  int role = find(row->role, validate_role_names, VALIDATE_ROLES), quick = find(row->runs, when, 2);
  if (role < 0) return fields_fail(f, COLUMN_role, error, "'%s' is neither held, fitted nor input", row->role);
  if (quick < 0) return fields_fail(f, COLUMN_runs, error, "'%s' is neither quick nor full", row->runs);
  row->is = (validate_role)role;
  row->is_quick = !quick;
  row->ours = VALIDATE_NONE;
  return FF_OK;
}

static ff_status add_row(const fields *f, validate_table *table, ff_error *error) {
  validate_row row = {0};
  const char **texts[] = {
#define X(name, help) &row.name,
#include "validate/columns.def"
#undef X
  };
  for (int i = 0; i < COLUMNS; i++) *texts[i] = ff_arena_strndup(&table->texts, f->at[i], f->length[i]);
  ff_status status = convert(f, &row, error);
  if (status) return status;
  for (size_t i = 0; i < table->rows.count; i++) {
    const validate_row *other = &table->rows.items[i];
    if (!strcmp(other->group, row.group) && !strcmp(other->gpu, row.gpu) && !strcmp(other->row, row.row))
      return fields_fail(f, COLUMN_row, error, "%s of %s has a row '%s' already", row.group, row.gpu, row.row);
  }
  row.run = run_of(table, &row);
  FF_PUSH(&table->rows, row);
  return FF_OK;
}

ff_status validate_table_read(const char *file, const char *text, size_t size, validate_table *table, ff_error *error) {
  fields f = {.file = file, .text = text, .size = size, .names = column_names, .count = COLUMNS};
  ff_status status = fields_header(&f, error);
  while (!status && fields_more(&f)) {
    status = fields_next(&f, error);
    if (!status) status = add_row(&f, table, error);
  }
  return status;
}

void validate_table_free(validate_table *table) {
  free(table->rows.items);
  free(table->runs.items);
  free(table->goals.items);
  ff_arena_free(&table->texts);
  memset(table, 0, sizeof *table);
}

bool validate_needs_folder(const validate_row *row) { return strstr(row->program, VALIDATE_FOLDER) != NULL; }

bool validate_is_wanted(const validate_row *row, const validate_choice *choice) {
  return (!choice->group || !strcmp(choice->group, row->group)) &&
         (!choice->machine || !strcmp(choice->machine, row->machine)) && (!choice->quick || row->is_quick) &&
         (!choice->without_folder || !validate_needs_folder(row));
}

/* A goal whose rows are merely not run stays, and says so. */
static void choose_goals(validate_table *table, const validate_choice *choice) {
  validate_choice among = {.group = choice->group, .machine = choice->machine};
  size_t kept = 0;
  for (size_t i = 0; i < table->goals.count; i++) {
    bool wanted = !among.group && !among.machine;
    for (size_t k = 0; k < table->rows.count && !wanted; k++)
      wanted = validate_is_wanted(&table->rows.items[k], &among) &&
               validate_goal_is_of(&table->goals.items[i], &table->rows.items[k]);
    if (wanted) table->goals.items[kept++] = table->goals.items[i];
  }
  table->goals.count = kept;
}

void validate_choose(validate_table *table, const validate_choice *choice) {
  size_t kept = 0;
  choose_goals(table, choice);
  table->runs.count = 0;
  for (size_t i = 0; i < table->rows.count; i++) {
    validate_row row = table->rows.items[i];
    if (!validate_is_wanted(&row, choice)) continue;
    row.run = run_of(table, &row);
    table->rows.items[kept++] = row;
  }
  table->rows.count = kept;
}
