/* SPDX-License-Identifier: Apache-2.0 */
/* Messages as bytes: a line of numbers, then the two texts, each with a NUL behind it. */
#include "sweep/rank_message.h"

#include <stdio.h>
#include <string.h>

void sweep_message_write(const sweep_message *m, ff_text *out) {
  ff_text_add(out, "%c %u %d %.6f %zu %zu\n", (char)m->kind, m->task, m->status, m->seconds, m->sizes[0], m->sizes[1]);
  for (int i = 0; i < 2; i++) {
    ff_text_add_bytes(out, m->texts[i] ? m->texts[i] : "", m->sizes[i]);
    ff_text_add_bytes(out, "", 1);
  }
}

bool sweep_message_read(const char *bytes, size_t size, sweep_message *m) {
  char line[128], kind;
  const char *end = memchr(bytes, '\n', size < sizeof line ? size : sizeof line - 1);
  int used = 0;
  if (!end) return false;
  memcpy(line, bytes, (size_t)(end - bytes));
  line[end - bytes] = '\0';
  *m = (sweep_message){0};
  if (sscanf(line, "%c %u %d %lf %zu %zu%n", &kind, &m->task, &m->status, &m->seconds, &m->sizes[0], &m->sizes[1],
             &used) != 6 ||
      line[used])
    return false;
  size_t left = size - (size_t)(end + 1 - bytes);
  if (!strchr("RTDASBE", kind) || m->sizes[0] > left || m->sizes[1] > left || m->sizes[0] + m->sizes[1] + 2 != left)
    return false;
  m->kind = (sweep_kind)kind;
  m->texts[0] = end + 1;
  m->texts[1] = m->texts[0] + m->sizes[0] + 1;
  return !m->texts[0][m->sizes[0]] && !m->texts[1][m->sizes[1]];
}
