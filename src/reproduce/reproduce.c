/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a reproduction: from measured counters to numbers.
 *
 * A program counts for a row only if all settings that the row names were measured for it and its
 * quantity is a number; a mean over no program is REPRO_NONE, never 0. */
#include "reproduce/reproduce.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"

const char *const repro_size_names[REPRO_SIZES] = {"small", "normal", "full"};

extern const repro_paper repro_zheng2016, repro_zhang2019, repro_ganguly2019, repro_wilt2017, repro_jain2019,
    repro_hsieh2016, repro_combined;
const repro_paper *const repro_papers[] = {&repro_zheng2016, &repro_zhang2019, &repro_ganguly2019, &repro_wilt2017,
                                           &repro_jain2019,  &repro_hsieh2016, &repro_combined,    NULL};

const repro_paper *repro_find(const char *name) {
  for (const repro_paper *const *paper = repro_papers; *paper; paper++)
    if (!strcmp((*paper)->name, name)) return *paper;
  return NULL;
}

bool repro_applies(const repro_paper *paper, uint32_t program, uint32_t setting) {
  return !paper->applies || paper->applies(program, setting);
}

void repro_data_start(repro_data *data, const repro_paper *paper) {
  FF_ASSERT(paper->program_count <= REPRO_PROGRAMS && paper->setting_count <= REPRO_SETTINGS);
  *data = (repro_data){.paper = paper,
                       .cells = ff_alloc((size_t)paper->program_count * paper->setting_count * sizeof(repro_cell))};
}

void repro_data_free(repro_data *data) {
  free(data->cells);
  *data = (repro_data){0};
}

int repro_setting_index(const repro_paper *paper, const char *key) {
  for (uint32_t i = 0; i < paper->setting_count; i++)
    if (!strcmp(paper->settings[i].key, key)) return (int)i;
  return -1;
}

int repro_program_index(const repro_paper *paper, const char *label) {
  for (uint32_t i = 0; i < paper->program_count; i++)
    if (!strcmp(paper->programs[i].label, label)) return (int)i;
  return -1;
}

void repro_put(repro_data *data, uint32_t program, uint32_t setting, const repro_measured *measured) {
  FF_ASSERT(program < data->paper->program_count && setting < data->paper->setting_count);
  data->cells[program * data->paper->setting_count + setting] = (repro_cell){true, *measured};
}

/* What one cell has; NULL: it was not measured, or there is no such setting. */
static const repro_measured *cell(const repro_data *data, uint32_t program, const char *key) {
  int setting = repro_setting_index(data->paper, key);
  const repro_cell *found = setting < 0 ? NULL : &data->cells[program * data->paper->setting_count + (uint32_t)setting];
  return found && found->known ? &found->measured : NULL;
}

bool repro_memory(const repro_data *data, uint32_t program, uint32_t setting, ff_text *out) {
  const char *text = data->paper->settings[setting].memory, *begin = strchr(text, '<'),
             *end = begin ? strchr(begin, '>') : NULL;
  char key[64];
  if (!end) return ff_text_add(out, "%s", text), true;
  snprintf(key, sizeof key, "%.*s", (int)(end - begin - 1), begin + 1);
  const repro_measured *found = cell(data, program, key);
  if (!found) return false;
  ff_text_add(out, "%.*s", (int)(begin - text), text);
  if (found->lowest_bit) ff_text_add(out, "%u:%u%s", found->lowest_bit, found->lowest_bit + 1, end + 1);
  else ff_text_add(out, "baseline%s", end + 1);
  return true;
}

enum { KEYS = 256 }; /* longest list of settings */

static double highest_value(const repro_data *data, uint32_t program, repro_quantity quantity, const char *a,
                            const char *b) {
  char keys[KEYS], *rest = NULL;
  double highest = REPRO_NONE;
  FF_ASSERT(strlen(a) < sizeof keys);
  strcpy(keys, a);
  for (char *key = strtok_r(keys, "+", &rest); key; key = strtok_r(NULL, "+", &rest)) {
    const repro_measured *first = cell(data, program, key), *second = b ? cell(data, program, b) : NULL;
    if (!first || (b && !second)) return REPRO_NONE;
    double value = quantity(first, second);
    if (isnan(highest) || value > highest) highest = value;
  }
  return highest;
}

double repro_program_value(const repro_data *data, uint32_t program, repro_quantity quantity, const char *a,
                           const char *b) {
  const char *equals = strchr(a, '='), *names[3] = {a, equals ? equals + 1 : NULL, NULL};
  double values[3];
  char key[KEYS];
  if (!equals) return highest_value(data, program, quantity, a, b);
  FF_ASSERT(strlen(a) < sizeof key && strchr(equals, '&'));
  names[2] = strchr(equals, '&') + 1;
  for (int i = 0; i < 3; i++) {
    snprintf(key, sizeof key, "%.*s", (int)strcspn(names[i], "=&"), names[i]);
    values[i] = highest_value(data, program, quantity, key, b);
  }
  if (!repro_is_gain(quantity)) return values[0] - values[1] - values[2];
  return values[1] > 0 && values[2] > 0 ? values[0] / (values[1] * values[2]) : REPRO_NONE;
}

/* One step of a mean, and its end. */
static double accumulate(const repro_row *row, double sum, double value, uint32_t count) {
  switch (row->mean) {
  case REPRO_GEOMETRIC: return sum + log(value);
  case REPRO_HIGHEST: return count ? fmax(sum, value) : value;
  case REPRO_LOWEST: return count ? fmin(sum, value) : value;
  case REPRO_SHARE: return sum + (value >= row->bound);
  default: return sum + value;
  }
}

static double conclude(const repro_row *row, double sum, uint32_t count) {
  if (!count) return REPRO_NONE;
  switch (row->mean) {
  case REPRO_GEOMETRIC: return exp(sum / count);
  case REPRO_ARITHMETIC:
  case REPRO_SHARE: return sum / count;
  default: return sum;
  }
}

/* The row's value with one setting for `a`. */
static double value_with(const repro_data *data, const repro_row *row, const char *a, uint32_t *programs) {
  double sum = 0;
  uint32_t count = 0;
  for (uint32_t i = 0; i < data->paper->program_count; i++) {
    if (row->mean == REPRO_ONE && strcmp(data->paper->programs[i].label, row->program)) continue;
    double value = repro_program_value(data, i, row->quantity, a, row->b);
    if (!isfinite(value) || (row->mean == REPRO_GEOMETRIC && value <= 0)) continue;
    sum = accumulate(row, sum, value, count);
    count++;
  }
  *programs = count;
  return conclude(row, sum, count);
}

/* The share of neighbours in `a` of which the first has the lower mean. */
static double ordered(const repro_data *data, const repro_row *row, uint32_t *programs) {
  repro_row one = *row;
  char keys[KEYS], *rest = NULL;
  double before = REPRO_NONE;
  uint32_t pairs = 0, in_order = 0;
  FF_ASSERT(strlen(row->a) < sizeof keys);
  strcpy(keys, row->a);
  one.mean = repro_is_gain(row->quantity) ? REPRO_GEOMETRIC : REPRO_ARITHMETIC;
  for (char *key = strtok_r(keys, "|", &rest); key; key = strtok_r(NULL, "|", &rest)) {
    double value = value_with(data, &one, key, programs);
    if (isnan(value)) return REPRO_NONE;
    if (!isnan(before)) pairs++;
    in_order += before < value; /* false while there is none before */
    before = value;
  }
  return pairs ? (double)in_order / pairs : REPRO_NONE;
}

double repro_value(const repro_data *data, const repro_row *row, uint32_t *programs) {
  char keys[KEYS], *rest = NULL;
  double best = REPRO_NONE;
  uint32_t counted = 0;
  if (row->mean == REPRO_ORDERED) {
    best = ordered(data, row, &counted);
    if (programs) *programs = counted;
    return best;
  }
  FF_ASSERT(strlen(row->a) < sizeof keys);
  strcpy(keys, row->a);
  for (char *key = strtok_r(keys, "|", &rest); key; key = strtok_r(NULL, "|", &rest)) {
    uint32_t count;
    double value = value_with(data, row, key, &count);
    if (isnan(value) || (row->highest ? value <= best : value >= best)) continue; /* false while there is no best yet */
    best = value;
    counted = count;
  }
  if (programs) *programs = counted;
  return best;
}

double repro_ratio(double paper, double ours) {
  return isnan(paper) || isnan(ours) || paper == 0 ? REPRO_NONE : ours / paper;
}

/* ---- how near ours is ---- */

const char *const repro_claim_names[REPRO_CLAIMS] = {"value", "gain", "order"};

repro_claim repro_claim_of(const repro_paper *paper, const repro_row *row) {
  if (row->mean == REPRO_ORDERED) return REPRO_ORDER;
  if (row->mean == REPRO_SHARE) return REPRO_VALUE;
  bool gain = repro_is_gain(row->quantity);
  for (const repro_quantity *own = paper->gains; own && *own; own++) gain = gain || *own == row->quantity;
  return gain ? REPRO_GAIN : REPRO_VALUE;
}

double repro_score(const repro_paper *paper, const repro_row *row, double ours) {
  return repro_claim_of(paper, row) == REPRO_GAIN ? repro_ratio(row->paper - 1, ours - 1)
                                                  : repro_ratio(row->paper, ours);
}

bool repro_near(const repro_paper *paper, const repro_row *row, double score) {
  return repro_claim_of(paper, row) == REPRO_ORDER ? score == 1 : score >= 0.75 && score <= 1.25;
}

const repro_note *repro_note_of(const repro_paper *paper, const repro_row *row) {
  for (const repro_note *note = paper->notes; note && note->start; note++)
    if (!strncmp(row->name, note->start, strlen(note->start))) return note;
  return NULL;
}

repro_tally repro_count(const repro_data *data) {
  repro_tally tally = {0};
  for (uint32_t i = 0; i < data->paper->row_count; i++) {
    const repro_row *row = &data->paper->rows[i];
    double score = repro_score(data->paper, row, repro_value(data, row, NULL));
    const repro_note *note = repro_note_of(data->paper, row);
    if (isnan(score)) continue;
    if (note && note->fitted) {
      tally.fitted++;
      continue;
    }
    tally.rows++;
    tally.near += repro_near(data->paper, row, score);
  }
  return tally;
}
