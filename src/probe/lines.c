/* SPDX-License-Identifier: Apache-2.0 */
/* How long a load of each of many lines takes from some SMs: which slice of the L2 a line is in, and on which side,
 * shows in that.
 *
 * Every SM reads the same lines, one SM after the other: the first SM finds none in the L2, the others find what the
 * one before read. */
#include <stdlib.h>

#include "probe/meter.h"

enum { SMS = 16 };

ff_status probe_lines(const meter *m, ff_text *out, ff_error *error) {
  uint32_t sms = m->sm_count < SMS ? m->sm_count : SMS, lines = m->line_count;
  double *first = ff_alloc(2 * (size_t)lines * sizeof *first + 1), *again = first + lines;
  ff_status status = m->flush(m->context, error);
  ff_text_add(out, "sm,line,first,again\n");
  for (uint32_t i = 0; i < sms && !status; i++) {
    uint32_t sm = (uint32_t)((uint64_t)i * m->sm_count / sms);
    status = m->time_lines(m->context, sm, m->base, lines, first, again, error);
    for (uint32_t line = 0; line < lines && !status; line++)
      ff_text_add(out, "%u,%u,%.1f,%.1f\n", sm, line, first[line], again[line]);
    if (m->progress) m->progress(m->context, "lines", (i + 1.0) / sms);
  }
  free(first);
  return status;
}
