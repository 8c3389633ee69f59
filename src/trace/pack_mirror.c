/* SPDX-License-Identifier: Apache-2.0 */
/* At the deep level a trace's writer reads back all that it writes (trace_frame.h):
 *
 *     pack_take(pack_put(record)) == record
 *     operation_put(operation_take(operation_put(operation))) == operation_put(operation)
 *
 * The first one says that writer and reader change the coder's state alike (pack.c); the second one that no operation
 * is written which the reader refuses or takes for another one. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "trace/trace_frame.h"

void pack_mirror_open(pack_mirror *m) {
  if (ff_check_level >= 2) m->coder = pack_coder_create();
}

void pack_mirror_close(pack_mirror *m) {
  pack_coder_free(m->coder);
  operation_names_free(&m->names);
  operation_names_free(&m->names_again);
  free(m->again.items);
}

void pack_mirror_reset(pack_mirror *m) {
  if (!m->coder) return;
  pack_coder_reset(m->coder);
  operation_names_reset(&m->names);
  operation_names_reset(&m->names_again);
  memset(m->read, 0, sizeof m->read);
}

void pack_mirror_record(pack_mirror *m, const pack_bytes columns[PACK_COLUMNS], const uint64_t *words) {
  pack_view views[PACK_COLUMNS];
  uint64_t read[PACK_RECORD_WORDS];
  for (int i = 0; i < PACK_COLUMNS; i++)
    views[i] = columns[i].count ? (pack_view){columns[i].items + m->read[i], columns[i].items + columns[i].count}
                                : (pack_view){0};
  uint32_t count = pack_take(m->coder, views, read);
  FF_ASSERT(count == (trace_word_kind(words[0]) == TRACE_ACCESS ? 2 + trace_access_lines(words[0]) : 1));
  FF_ASSERT(!memcmp(words, read, count * sizeof *words));
  for (int i = 0; i < PACK_COLUMNS; i++) {
    FF_ASSERT(views[i].at == views[i].end || i == PACK_TEXT);
    if (i != PACK_TEXT) m->read[i] = columns[i].count;
  }
}

void pack_mirror_operation(pack_mirror *m, const pack_bytes *text) {
  size_t start = m->read[PACK_TEXT];
  pack_view view = {text->items + start, text->items + text->count};
  trace_op op;
  trace_launch *launch = ff_alloc(sizeof *launch);
  FF_ASSERT(!operation_take(&view, &op, launch, &m->names) && view.at == view.end);
  m->again.count = 0;
  operation_put(&m->again, &op, &m->names_again);
  FF_ASSERT(m->again.count == text->count - start && !memcmp(m->again.items, text->items + start, m->again.count));
  m->read[PACK_TEXT] = text->count;
  free(launch);
}
