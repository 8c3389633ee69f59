/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix: its cells, the simulation of each, the arithmetic (share_matrix.h).
 *
 *   cells   one per measured program (alone), then isolation by isolation, program by program, none and each interferer */
#include "share/share_matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- programs and their labels ---- */

int32_t share_matrix_add(share_matrix *m, const char *path) {
  for (size_t i = 0; i < m->programs.count; i++)
    if (!strcmp(m->programs.items[i].path, path)) return (int32_t)i;
  if (m->programs.count == SHARE_RECORDINGS) return -1;
  FF_PUSH(&m->programs, ((share_recording){.path = ff_strdup(path)}));
  return (int32_t)m->programs.count - 1;
}

/* The path's last `folders` folders and its name, without ".fft". */
static char *make_label(const char *path, uint32_t folders) {
  const char *begin = path + strlen(path);
  for (uint32_t i = 0; begin > path; begin--)
    if (begin[-1] == '/' && i++ == folders) break;
  size_t length = strlen(begin);
  if (length > 4 && !strcmp(begin + length - 4, ".fft")) length -= 4;
  ff_text label = {0};
  ff_text_add(&label, "%.*s", (int)length, begin);
  return label.chars;
}

static bool is_taken(const share_matrix *m, size_t which, const char *label, uint32_t folders) {
  bool taken = !strcmp(label, "none") || !strcmp(label, "alone"); /* these are columns */
  for (size_t i = 0; i < m->programs.count && !taken; i++) {
    char *other = i == which ? NULL : make_label(m->programs.items[i].path, folders);
    taken = other && !strcmp(other, label);
    free(other);
  }
  return taken;
}

static void label_program(share_matrix *m, size_t which) {
  share_recording *p = &m->programs.items[which];
  uint32_t folders = 0, most = 0;
  for (const char *c = p->path; *c; c++) most += *c == '/';
  free(p->label);
  p->label = make_label(p->path, 0);
  while (is_taken(m, which, p->label, folders) && folders < most) {
    free(p->label);
    p->label = make_label(p->path, ++folders);
  }
  if (!is_taken(m, which, p->label, folders)) return;
  free(p->label);
  p->label = ff_strdup(p->path); /* a.fft next to a: these differ */
}

/* ---- cells ---- */

static uint32_t columns(const share_matrix *m) { return m->interferer_count + 1; }

void share_matrix_start(share_matrix *m) {
  for (size_t i = 0; i < m->programs.count; i++) label_program(m, i);
  m->cell_count = m->measured_count * (1 + m->isolation_count * columns(m));
  m->cells = ff_alloc((m->cell_count + 1) * sizeof *m->cells);
}

void share_matrix_free(share_matrix *m) {
  for (size_t i = 0; i < m->programs.count; i++) {
    free(m->programs.items[i].path);
    free(m->programs.items[i].label);
  }
  for (uint32_t i = 0; i < m->cell_count; i++) {
    free(m->cells[i].outcomes);
    free(m->cells[i].error);
  }
  free(m->programs.items);
  free(m->cells);
  *m = (share_matrix){0};
}

uint32_t share_matrix_alone(const share_matrix *m, uint32_t a) { return a; }

uint32_t share_matrix_cell(const share_matrix *m, uint32_t isolation, uint32_t a, uint32_t column) {
  return m->measured_count + (isolation * m->measured_count + a) * columns(m) + column;
}

typedef struct position {
  uint32_t isolation, a, column;
  bool alone;
} position;

static position position_of(const share_matrix *m, uint32_t cell) {
  if (cell < m->measured_count) return (position){.a = cell, .alone = true};
  cell -= m->measured_count;
  uint32_t row = cell / columns(m);
  return (position){.isolation = row / m->measured_count, .a = row % m->measured_count, .column = cell % columns(m)};
}

void share_matrix_request(const share_matrix *m, uint32_t cell, share_request *request) {
  position at = position_of(m, cell);
  *request =
      (share_request){.isolation = SHARE_NONE, .count = 1, .parts = {{1, 1}}, .programs = {(int32_t)m->measured[at.a]}};
  if (at.alone) return;
  request->isolation = m->isolations[at.isolation];
  request->borrow = m->borrow && share_lends(request->isolation);
  request->count = m->part_count;
  for (uint32_t i = 0; i < m->part_count; i++) {
    request->parts[i] = m->parts[i];
    request->profiles[i] = m->profiles[i];
    if (i) request->programs[i] = at.column ? (int32_t)m->interferers[at.column - 1] : -1;
  }
}

/* The measured program runs once; each of the others runs for as long, too, unless it is idle. With all of them idle,
 * launches are simulated much faster: measured for vectoradd and matmul with 28,000 and 190,000 accesses, in 1/12 to
 * 1/32 of the time beside one of the two. */
enum { BESIDE_OTHERS = 10 };
double share_request_weight(const share_matrix *m, const share_request *request, uint32_t *group) {
  uint32_t busy = 1;
  int32_t beside = -1;
  for (uint32_t i = 1; i < request->count; i++) {
    busy += request->programs[i] >= 0;
    if (request->programs[i] >= 0) beside = request->programs[i];
  }
  *group = (uint32_t)request->programs[0] * (SHARE_RECORDINGS + 1) + (uint32_t)(beside + 1);
  return (double)m->programs.items[request->programs[0]].accesses * (busy > 1 ? BESIDE_OTHERS * busy : 1);
}

static const char *measured_label(const share_matrix *m, uint32_t a) { return m->programs.items[m->measured[a]].label; }

void share_matrix_name(const share_matrix *m, uint32_t cell, ff_text *out) {
  position at = position_of(m, cell);
  ff_text_add(out, "%s", measured_label(m, at.a));
  if (at.alone) ff_text_add(out, " alone");
  else if (at.column) ff_text_add(out, " beside %s", m->programs.items[m->interferers[at.column - 1]].label);
  else ff_text_add(out, " beside none");
  if (!at.alone) ff_text_add(out, " under %s", share_isolation_name(m->isolations[at.isolation]));
}

void share_matrix_put(share_matrix *m, uint32_t cell, share_outcome *outcomes, const char *why) {
  share_cell *c = &m->cells[cell];
  share_request request;
  share_matrix_request(m, cell, &request);
  for (uint32_t i = 0; outcomes && i < request.count && !why; i++)
    if (outcomes[i].error[0]) why = outcomes[i].error;
  free(c->error);
  c->error = why ? ff_strdup(why) : NULL;
  if (why) {
    free(outcomes);
    outcomes = NULL;
  }
  free(c->outcomes);
  c->outcomes = outcomes;
}

uint32_t share_matrix_missing(const share_matrix *m) {
  uint32_t missing = 0;
  for (uint32_t i = 0; i < m->cell_count; i++) missing += !m->cells[i].outcomes;
  return missing;
}

/* ---- numbers ---- */

const share_outcome *share_matrix_outcome(const share_matrix *m, uint32_t isolation, uint32_t a, uint32_t column) {
  return m->cells[share_matrix_cell(m, isolation, a, column)].outcomes;
}

/* A program without kernels has no time that anything could be compared with. */
static double kernel_time(const share_outcome *o) { return o && o->kernel_us > 0 ? o->kernel_us : NAN; }

double share_alone_us(const share_matrix *m, uint32_t a) { return kernel_time(m->cells[a].outcomes); }

double share_time_us(const share_matrix *m, uint32_t isolation, uint32_t a, uint32_t column) {
  return kernel_time(share_matrix_outcome(m, isolation, a, column));
}

double share_over_none(const share_matrix *m, uint32_t isolation, uint32_t a, uint32_t column) {
  return share_time_us(m, isolation, a, column) / share_time_us(m, isolation, a, 0);
}

/* The measured program's share of the SMs. */
static double sm_share(const share_matrix *m, uint32_t isolation) {
  if (m->isolations[isolation] != SHARE_MIG) return m->parts[0].sm;
  return m->spec->mig_profiles.profiles[m->profiles[0]].sms / (double)m->spec->sm_count;
}

double share_normalised(const share_matrix *m, uint32_t isolation, uint32_t a, uint32_t column) {
  return share_time_us(m, isolation, a, column) * sm_share(m, isolation) / share_alone_us(m, a);
}

double share_variation(const share_matrix *m, uint32_t isolation, uint32_t a, uint32_t *worst) {
  double most = NAN;
  for (uint32_t column = 1; column < columns(m); column++) {
    double over = share_over_none(m, isolation, a, column);
    if (isnan(over) || over <= most) continue;
    most = over;
    if (worst) *worst = column;
  }
  return (most - 1) * 100;
}

typedef struct mean {
  double sum;
  uint32_t count;
} mean;
static void add(mean *m, double value) {
  if (isnan(value)) return;
  m->sum += value;
  m->count++;
}
static double mean_of(const mean *m) { return m->count ? m->sum / m->count : NAN; }

/* The longest of all programs, measured or not, over all cells of the isolation. */
static double longest_take_back(const share_matrix *m, uint32_t isolation) {
  double longest = 0;
  for (uint32_t a = 0; a < m->measured_count; a++)
    for (uint32_t column = 0; column < columns(m); column++) {
      const share_outcome *o = share_matrix_outcome(m, isolation, a, column);
      for (uint32_t i = 0; o && i < m->part_count; i++) longest = fmax(longest, o[i].take_back_us);
    }
  return longest;
}

share_summary share_summarise(const share_matrix *m, uint32_t isolation) {
  mean variation = {0}, none = {0}, worst_time = {0}, unused = {0}, borrowed = {0};
  share_summary s = {.variation_most = NAN, .take_back_us = longest_take_back(m, isolation)};
  for (uint32_t a = 0; a < m->measured_count; a++) {
    uint32_t worst = 0;
    double of_a = share_variation(m, isolation, a, &worst);
    const share_outcome *idle = share_matrix_outcome(m, isolation, a, 0);
    add(&variation, of_a);
    add(&none, share_normalised(m, isolation, a, 0));
    if (worst) add(&worst_time, share_normalised(m, isolation, a, worst));
    if (idle) add(&unused, idle->dram_unused_gbs);
    if (idle) add(&borrowed, idle->total_us > 0 ? idle->borrowed_us / idle->total_us : 0);
    if (isnan(of_a) || of_a <= s.variation_most) continue;
    s.variation_most = of_a;
    s.most_a = a;
    s.most_column = worst;
  }
  s.variation_average = mean_of(&variation);
  s.normalised_none = mean_of(&none);
  s.normalised_worst = mean_of(&worst_time);
  s.unused_gbs = mean_of(&unused);
  s.borrowed = mean_of(&borrowed);
  return s;
}
