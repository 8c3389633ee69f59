/* SPDX-License-Identifier: Apache-2.0 */
/* Grouped bars as SVG: ours as bars, a published value as a black mark across its bar's place. More groups than can
 * stand next to each other are points of curves.
 *
 * Plain SVG 1.1 without scripts, styles from outside or fonts of our own; a light background of its own; the same
 * numbers give the same bytes. Texts are escaped. */
#ifndef FF_REPORT_BARS_H
#define FF_REPORT_BARS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

enum { BARS_SERIES = 8, BARS_GROUPS = 32 }; /* as many colours as there are; with more groups a panel has curves */

typedef struct bars_panel { /* pointers are the caller's */
  const char *title, *axis; /* above it; what the vertical axis is */
  const char **groups;      /* names below the groups */
  const char **series;      /* the legend */
  uint32_t group_count, series_count;
  double *ours, *paper; /* group_count x series_count; NAN: none */
  bool logarithmic;
  double line; /* a dashed line across, NAN: none */
  const char *line_label;
  double *low, *high; /* as ours: a whisker from one to the other; NULL: none */
  const char *whisker_label;
} bars_panel;

/* The whole picture: `title`, the panels below each other, `below` as a last line. */
void bars_write(const char *title, const char *below, const bars_panel *panels, uint32_t count, ff_text *out);

/* The panels alone, from `y` on, for a picture of 1100 pixels that has more than these; returns where they end. */
double bars_add(const bars_panel *panels, uint32_t count, double y, ff_text *out);

#endif
