/* SPDX-License-Identifier: Apache-2.0 */
/* The search for the smallest share that meets a deadline (share_slo.h).
 *
 *   wanted: the most -> (missed: half of it, as a check) | bisection between what misses and what meets -> a check in
 *           the middle of what should meet -> 0
 *           irregular: every number, from above */
#include "share/share_slo.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- deadlines ---- */

ff_status share_deadline_read(const char *text, share_deadline *d, ff_error *error) {
  static const struct {
    const char *name;
    double us;
  } units[] = {{"ns", 1e-3}, {"us", 1}, {"ms", 1e3}, {"s", 1e6}};
  char *end;
  double number = text[0] >= '0' && text[0] <= '9' ? strtod(text, &end) : NAN;
  if (isnan(number)) end = (char *)text;
  size_t length = strcspn(end, "/");
  d->per_launch = !strcmp(end + length, "/launch");
  for (size_t i = 0; i < sizeof units / sizeof units[0] && (!end[length] || d->per_launch); i++)
    if (strlen(units[i].name) == length && !strncmp(end, units[i].name, length)) {
      d->us = number * units[i].us;
      if (isfinite(d->us) && d->us > 0) return FF_OK;
    }
  return ff_fail(error, FF_PARSE, "'%.40s' is no deadline: a time above 0, as 2.5ms, or 40us/launch", text);
}

static int32_t find_program(const share_matrix *m, const char *name) {
  for (size_t i = 0; i < m->programs.count; i++)
    if (!strcmp(m->programs.items[i].path, name)) return (int32_t)i;
  for (size_t i = 0; i < m->programs.count; i++)
    if (!strcmp(m->programs.items[i].label, name)) return (int32_t)i;
  return -1;
}

static ff_status unknown(const share_matrix *m, const char *name, ff_error *error) {
  const char *paths[SHARE_RECORDINGS + 1] = {0};
  for (size_t i = 0; i < m->programs.count; i++) paths[i] = m->programs.items[i].path;
  const char *near = ff_closest(name, paths);
  if (near) return ff_fail(error, FF_NOT_FOUND, "no program '%s' here: did you mean '%s'?", name, near);
  return ff_fail(error, FF_NOT_FOUND, "no program '%s' here: give its recording, too", name);
}

/* "a.fft=2.5ms", which is changed. */
static ff_status read_item(share_slo *slo, char *item, ff_error *error) {
  char *equals = strrchr(item, '=');
  share_deadline d = {0};
  if (!equals || equals == item) return ff_fail(error, FF_PARSE, "a deadline is PROGRAM=TIME, as a.fft=2.5ms");
  *equals = '\0';
  int32_t program = find_program(slo->m, item);
  if (program < 0) return unknown(slo->m, item, error);
  ff_status status = share_deadline_read(equals + 1, &d, error);
  if (status) return status;
  d.program = (uint32_t)program;
  for (size_t i = 0; i < slo->deadlines.count; i++)
    if (slo->deadlines.items[i].program == d.program)
      return ff_fail(error, FF_PARSE, "the second deadline of '%s'", item);
  FF_PUSH(&slo->deadlines, d);
  return FF_OK;
}

ff_status share_slo_read(share_slo *slo, const char *name, const char *text, ff_error *error) {
  ff_status status = FF_OK;
  for (const char *at = text; !status;) {
    size_t length = strcspn(at, ",");
    ff_text item = {0};
    ff_error why;
    ff_text_add(&item, "%.*s", (int)length, at);
    status = read_item(slo, item.chars ? item.chars : (char[]){""}, &why);
    if (status)
      ff_fail_in_text(error, status, name, text, strlen(text), 1, (uint32_t)(at - text) + 1, "%s", why.message);
    free(item.chars);
    if (!at[length]) break;
    at += length + 1;
  }
  return status;
}

/* ---- rows ---- */

ff_status share_slo_start(share_slo *slo, uint32_t colours, ff_error *error) {
  const share_matrix *m = slo->m;
  uint32_t others = m->part_count - 1;
  for (size_t d = 0; d < slo->deadlines.count; d++)
    for (uint32_t i = 0; i < m->isolation_count; i++) {
      share_row row = {
          .deadline = (uint32_t)d, .isolation = m->isolations[i], .most = (uint32_t)m->spec->sm_count - others};
      if (row.isolation == SHARE_MIG)
        return ff_fail(
            error, FF_INVALID,
            "slices of MIG have a few sizes only: a deadline needs mps, sm or sm+memory (--mig tries profiles)");
      if (row.isolation == SHARE_NONE)
        return ff_fail(error, FF_INVALID, "time slices have no shares: a deadline needs mps, sm or sm+memory");
      if (row.isolation != SHARE_SM_MEMORY) FF_PUSH(&slo->rows, row);
      else
        for (row.colours = 1; row.colours + others <= colours; row.colours++) FF_PUSH(&slo->rows, row);
    }
  slo->open = ff_alloc((slo->rows.count + 1) * sizeof *slo->open);
  slo->outcomes = ff_alloc((slo->rows.count * m->interferer_count + 1) * sizeof *slo->outcomes);
  return FF_OK;
}

void share_slo_free(share_slo *slo) {
  for (size_t i = 0; i < slo->rows.count; i++) {
    free(slo->rows.items[i].looked.items);
    free(slo->rows.items[i].error);
  }
  free(slo->rows.items);
  free(slo->deadlines.items);
  free(slo->outcomes);
  free(slo->open);
  *slo = (share_slo){0};
}

const share_looked *share_row_looked(const share_row *row, uint32_t sms) {
  for (size_t i = 0; i < row->looked.count; i++)
    if (row->looked.items[i].sms == sms) return &row->looked.items[i];
  return NULL;
}

/* The fewest SMs from which on everything that was looked at meets the deadline; 0: the most do not. */
static uint32_t meets_from(const share_row *row) {
  uint32_t from = 0;
  for (size_t i = row->looked.count; i-- > 0 && row->looked.items[i].meets;) from = row->looked.items[i].sms;
  return from;
}

/* The most SMs below that which miss it; 0: none was seen to. */
static uint32_t misses_until(const share_row *row) {
  uint32_t until = 0;
  for (size_t i = 0; i < row->looked.count; i++)
    if (!row->looked.items[i].meets) until = row->looked.items[i].sms;
  return until;
}

static uint32_t next_in_scan(const share_row *row) {
  for (uint32_t sms = row->most; sms; sms--)
    if (!share_row_looked(row, sms)) return sms;
  return 0;
}

/* The number of SMs to look at next; 0: the answer stands. */
static uint32_t next_wanted(const share_row *row) {
  if (row->error) return 0;
  if (row->irregular) return next_in_scan(row);
  if (!row->looked.count) return row->most;
  uint32_t from = meets_from(row), until = misses_until(row);
  if (!from) return row->most > 1 && !share_row_looked(row, row->most / 2) ? row->most / 2 : 0;
  if (from > until + 1) return until + (from - until) / 2;
  uint32_t check = from + (row->most - from) / 2;
  return check > from && !share_row_looked(row, check) ? check : 0;
}

bool share_row_ended(const share_row *row) { return !next_wanted(row); }
uint32_t share_row_answer(const share_row *row) { return row->error || !share_row_ended(row) ? 0 : meets_from(row); }

static void insert(share_row *row, share_looked looked) {
  FF_PUSH(&row->looked, looked);
  size_t at = row->looked.count - 1;
  for (; at && row->looked.items[at - 1].sms > looked.sms; at--) row->looked.items[at] = row->looked.items[at - 1];
  row->looked.items[at] = looked;
  bool met = false;
  for (size_t i = 0; i < row->looked.count; i++) {
    if (met && !row->looked.items[i].meets) row->irregular = true;
    met = met || row->looked.items[i].meets;
  }
}

static double time_of(const share_outcome *o, const share_deadline *d) {
  return d->per_launch ? o->kernel_us / (double)(o->launches ? o->launches : 1) : o->kernel_us;
}

/* What the step's simulations of an open row say. */
static void take_step(share_slo *slo, uint32_t which) {
  share_row *row = &slo->rows.items[slo->open[which]];
  const share_deadline *d = &slo->deadlines.items[row->deadline];
  share_looked looked = {.sms = row->wanted};
  row->wanted = 0;
  if (row->error) return;
  for (uint32_t i = 0; i < slo->m->interferer_count; i++) {
    double us = time_of(&slo->outcomes[which * slo->m->interferer_count + i], d);
    if (i && us <= looked.us) continue;
    looked.us = us;
    looked.worst = i;
  }
  looked.meets = looked.us <= d->us;
  insert(row, looked);
}

uint32_t share_slo_next(share_slo *slo) {
  for (uint32_t i = 0; i < slo->open_count; i++) take_step(slo, i);
  slo->open_count = 0;
  for (uint32_t i = 0; i < slo->rows.count; i++)
    if ((slo->rows.items[i].wanted = next_wanted(&slo->rows.items[i]))) slo->open[slo->open_count++] = i;
  slo->simulations += (uint64_t)slo->open_count * slo->m->interferer_count;
  return slo->open_count * slo->m->interferer_count;
}

uint32_t share_slo_left(const share_slo *slo) {
  uint32_t left = 0;
  for (uint32_t i = 0; i < slo->open_count; i++) {
    const share_row *row = &slo->rows.items[slo->open[i]];
    uint32_t from = meets_from(row), gap = from ? from - misses_until(row) : row->most;
    left += (uint32_t)ceil(log2(gap + 1.0)); /* the check above, too, less the step that runs */
  }
  return left * slo->m->interferer_count;
}

void share_slo_request(const share_slo *slo, uint32_t index, share_request *request) {
  const share_matrix *m = slo->m;
  const share_row *row = &slo->rows.items[slo->open[index / m->interferer_count]];
  double sm = (double)row->wanted / (double)m->spec->sm_count, memory = sm;
  if (row->colours) memory = (double)row->colours / share_machine_colours(m->spec);
  *request = (share_request){
      .isolation = row->isolation, .borrow = m->borrow && share_lends(row->isolation), .count = m->part_count};
  for (uint32_t i = 0; i < m->part_count; i++) {
    uint32_t others = m->part_count - 1;
    request->parts[i] = i ? (share_part){(1 - sm) / others, (1 - memory) / others} : (share_part){sm, memory};
    request->programs[i] =
        (int32_t)(i ? m->interferers[index % m->interferer_count] : slo->deadlines.items[row->deadline].program);
  }
}

void share_slo_put(share_slo *slo, uint32_t index, const share_outcome *outcome, const char *why) {
  share_row *row = &slo->rows.items[slo->open[index / slo->m->interferer_count]];
  ff_text text = {0};
  if (outcome && share_lends(row->isolation) && (outcome->sms != row->wanted || outcome->colours != row->colours))
    ff_text_add(&text, "the simulation had %u SMs and %u colours, not %u and %u", outcome->sms, outcome->colours,
                row->wanted, row->colours);
  else if (outcome && !(outcome->kernel_us > 0)) ff_text_add(&text, "the program runs no kernel");
  else if (!outcome) ff_text_add(&text, "%s", why);
  else slo->outcomes[index] = *outcome;
  if (text.chars && !row->error) row->error = text.chars;
  else free(text.chars);
}

const share_row *share_slo_smallest(const share_slo *slo, uint32_t deadline, share_isolation isolation,
                                    uint32_t colours) {
  const share_row *best = NULL;
  double least = INFINITY;
  for (size_t i = 0; i < slo->rows.count; i++) {
    const share_row *row = &slo->rows.items[i];
    uint32_t answer = share_row_answer(row);
    if (row->deadline != deadline || row->isolation != isolation || !answer) continue;
    double share =
        (double)answer / (double)slo->m->spec->sm_count + (row->colours ? (double)row->colours / colours : 0);
    if (share > least + 1e-9 || (best && share > least - 1e-9 && answer >= share_row_answer(best))) continue;
    least = fmin(least, share);
    best = row;
  }
  return best;
}
