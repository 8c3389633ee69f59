/* SPDX-License-Identifier: Apache-2.0 */
/* Measured cells of one program as a file, from the process that simulated them to the one that makes rows of them:
 * JSON with every counter.
 *
 * A file that is read whole gave all cells that were asked for; one that is broken gave none. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "reproduce/repro_private.h"

/* What is not of machine/observe/counters.def. */
#define EACH_OTHER(X)   \
  X(offsets.candidates) \
  X(offsets.some_fixed) \
  X(offsets.all_fixed) X(offsets.lines) X(offsets.lines_beside) X(stacks.instances) X(stacks.colocated) X(lowest_bit)

static int add_chunk(const char *bytes, size_t size, void *out) {
  ff_text_add_bytes(out, bytes, size);
  return 0;
}

void repro_cells_json(const repro_data *data, uint32_t program, uint32_t first, uint32_t count, ff_text *out) {
  const repro_paper *paper = data->paper;
  json_t *cells = json_object();
  for (uint32_t i = first; i < first + count; i++) {
    const repro_cell *cell = &data->cells[program * paper->setting_count + i];
    if (!cell->known) continue;
    json_t *counters = json_object();
#define X(name, unit, help) \
  json_object_set_new(counters, #name, json_integer((json_int_t)cell->measured.counters.name));
#include "machine/observe/counters.def"
#undef X
#define OTHER(name) json_object_set_new(counters, #name, json_integer((json_int_t)cell->measured.name));
    EACH_OTHER(OTHER)
#undef OTHER
    json_object_set_new(cells, paper->settings[i].key, counters);
  }
  json_dump_callback(cells, add_chunk, out, JSON_INDENT(1));
  ff_text_add(out, "\n");
  json_decref(cells);
}

static uint64_t read_number(const json_t *from, const char *name, bool *good) {
  const json_t *value = *good ? json_object_get(from, name) : NULL;
  *good = json_is_integer(value) && json_integer_value(value) >= 0;
  return *good ? (uint64_t)json_integer_value(value) : 0;
}

static bool read_measured(const json_t *from, repro_measured *to) {
  bool good = json_is_object(from);
#define X(name, unit, help) to->counters.name = read_number(from, #name, &good);
#include "machine/observe/counters.def"
#undef X
#define OTHER(name) to->name = (__typeof__(to->name))read_number(from, #name, &good);
  EACH_OTHER(OTHER)
#undef OTHER
  return good;
}

static ff_status take(repro_data *data, uint32_t program, uint32_t first, uint32_t count, const json_t *cells,
                      const char *path, ff_error *error) {
  const repro_paper *paper = data->paper;
  repro_measured *measured = ff_alloc(count * sizeof *measured);
  ff_status status = FF_OK;
  for (uint32_t i = 0; i < count && !status; i++)
    if (repro_applies(paper, program, first + i) &&
        !read_measured(json_object_get(cells, paper->settings[first + i].key), &measured[i]))
      status = ff_fail(error, FF_PARSE, "%s: no numbers for '%s'", path, paper->settings[first + i].key);
  for (uint32_t i = 0; i < count && !status; i++)
    if (repro_applies(paper, program, first + i)) repro_put(data, program, first + i, &measured[i]);
  free(measured);
  return status;
}

ff_status repro_cells_read(repro_data *data, uint32_t program, uint32_t first, uint32_t count, const char *path,
                           ff_error *error) {
  char *text;
  size_t size;
  json_error_t said;
  ff_status status = ff_file_read(path, 1 << 20, &text, &size, error);
  if (status) return status;
  json_t *cells = json_loadb(text, size, 0, &said);
  free(text);
  if (!json_is_object(cells))
    status =
        ff_fail(error, FF_PARSE, "%s:%d:%d: %s", path, said.line, said.column, cells ? "not an object" : said.text);
  else status = take(data, program, first, count, cells, path, error);
  json_decref(cells);
  return status;
}
