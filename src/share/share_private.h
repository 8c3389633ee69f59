/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that make texts of programs side by side, and by no other file. */
#ifndef FF_STUDY_SHARE_PRIVATE_H
#define FF_STUDY_SHARE_PRIVATE_H

#include <jansson.h>

#include "report/table.h"
#include "share/share_matrix.h"

/* The numbers of an outcome as an object; as ",12.5,..." behind the names of share_outcomes_csv_head. */
json_t *share_outcome_value(const share_outcome *outcome);
void share_outcomes_csv_head(ff_text *out);
void share_outcome_csv(const share_outcome *outcome, ff_text *out);

/* "mm" of the list of measured programs, of interferers; column 0 is "none". */
const char *share_measured_label(const share_matrix *m, uint32_t a);
const char *share_column_label(const share_matrix *m, uint32_t column);

/* A cell of a table: a time of people, "1.04", "4.0 %"; "-" where there is none. */
void share_time_cell(table *t, double us);
void share_number_cell(table *t, double value, const char *format);
/* A percentage that is shown with one decimal: without the sign of what is shown as 0. */
static inline double share_percent(double percent) { return percent > -0.05 && percent < 0 ? 0 : percent; }
/* A text as a field of CSV. */
void share_csv_text(const char *text, ff_text *out);
void share_csv_number(double value, ff_text *out); /* with a comma before it; NAN: empty */
json_t *share_text_value(const char *text);        /* what is no UTF-8 becomes '?' */
json_t *share_number_value(double value);          /* NAN: null */
void share_dump(json_t *root, ff_text *out);       /* and frees it */

/* "gtx1080, partitions 50:50, memory copy": what all simulations have in common. */
void share_heading(const share_matrix *m, ff_text *out);
json_t *share_setup_value(const share_matrix *m);
/* "10 of 20 SMs, 1 of 2 colours". */
void share_what(const machine_spec *spec, uint32_t sms, uint32_t colours, ff_text *out);

#endif
