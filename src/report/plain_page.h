/* SPDX-License-Identifier: Apache-2.0 */
/* The beginning and the end of pages without scripts, tables and pictures below each other: those of `farfault
 * validate` and `reproduce`. They fit a narrow screen, whose tables and pictures move sideways in a place of their own,
 * and follow the reader's choice of light or dark; pictures stay light (svg.h). The page of a run is made elsewhere
 * (html.h). */
#ifndef FF_REPORT_PLAIN_PAGE_H
#define FF_REPORT_PLAIN_PAGE_H

#include "base/text.h"

/* Up to where the body's text begins. `title`: in the window's title as it stands; `heading`: of level 1, both without
 * anything to escape; `style`: CSS of this page alone, behind what all have, or "". A number's cell has class "n", a
 * picture stands in a div of class "picture". */
void plain_page_begin(const char *title, const char *heading, const char *style, ff_text *out);
void plain_page_end(ff_text *out);

#endif
