/* SPDX-License-Identifier: Apache-2.0 */
/* A run as JSON, schema 1 (docs/json.md), by jansson: written and read back.
 *
 * Keys come in a fixed order and numbers in a fixed form, so that equal runs give equal bytes; the
 * derived numbers are written for readers and ignored when read, the integer counters are the truth. Counters of
 * kernels and allocations that are zero are left out. Input is never trusted: types, ranges and lengths are checked. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/check.h"
#include "base/memory.h"
#include "report/columns.h"
#include "report/json_parts.h"

enum { LIST_LIMIT = 100000, NOTE_LIMIT = 1000, FILE_LIMIT = 1 << 30 };

/* ---- writing ---- */

/* Text from a program's names may not be UTF-8: bytes that are not become '?'. */
json_t *json_text_value(const char *text) {
  json_t *value = json_string(text);
  if (value) return value;
  char *clean = ff_strdup(text);
  for (char *c = clean; *c; c++)
    if ((unsigned char)*c >= 128) *c = '?';
  value = json_string(clean);
  free(clean);
  return value;
}

void json_put(json_t *object, const char *key, json_t *value) { json_object_set_new(object, key, value); }
void json_put_count(json_t *object, const char *key, uint64_t value) {
  json_put(object, key, json_integer((json_int_t)value));
}
/* json_real refuses what JSON cannot say (infinity); no number of ours is. */
void json_put_real(json_t *object, const char *key, double value) { json_put(object, key, json_real(value)); }

void json_put_counters(json_t *object, const sim_counters *c, bool zeros) {
#define X(name, unit, help) \
  if (zeros || c->name) json_put_count(object, #name, c->name);
#include "machine/observe/counters.def"
#undef X
}

static json_t *kernels_value(const sim_result *result) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < result->kernel_count; i++) {
    json_t *kernel = json_object();
    json_put(kernel, "name", json_text_value(result->kernels[i].name));
    if (result->kernels[i].range[0]) json_put(kernel, "range", json_text_value(result->kernels[i].range));
    if (result->kernels[i].site[0]) json_put(kernel, "site", json_text_value(result->kernels[i].site));
    json_put_counters(kernel, &result->kernels[i].counters, false);
    json_array_append_new(list, kernel);
  }
  return list;
}

static json_t *allocations_value(const sim_result *result) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < result->allocation_count; i++) {
    const sim_allocation_result *from = &result->allocations[i];
    json_t *allocation = json_object();
    json_put(allocation, "name", json_text_value(from->name));
    json_put_count(allocation, "id", from->id);
    json_put_count(allocation, "address", from->address);
    json_put_count(allocation, "bytes", from->bytes);
    json_put(allocation, "managed", json_boolean(from->managed));
    json_put(allocation, "pinned", json_boolean(from->pinned));
    json_put_counters(allocation, &from->counters, false);
    json_array_append_new(list, allocation);
  }
  return list;
}

static json_t *peaks_value(const machine_peaks *peaks) {
  json_t *object = json_object();
#define X(name, help) json_put_real(object, #name, peaks->name);
#include "machine/spec/peaks.def"
#undef X
  return object;
}

static json_t *sampling_value(const sim_sampling *sampling) {
  json_t *object = json_object();
  json_put_count(object, "timed", sampling->timed);
  json_put_count(object, "estimated", sampling->estimated);
  json_put_count(object, "blocks", sampling->blocks);
  json_put_count(object, "without_records", sampling->without_records);
  json_put_count(object, "estimated_ps", sampling->estimated_ps);
  json_put_count(object, "interval_ps", sampling->interval_ps);
  return object;
}

/* A history stands as null here: its lists are written by report_json_add_history, each in one line. */
static json_t *result_value(const report_run *run, const sim_result *result, bool history) {
  const sim_counters *c = &result->counters;
  json_t *object = json_object();
  json_put(object, "memory", json_text_value(result->memory));
  json_put(object, "machine", json_text_value(result->machine));
  if (result->device) json_put_count(object, "device", result->device - 1);
  if (result->peaks.warp_instructions > 0) json_put(object, "peaks", peaks_value(&result->peaks));
  json_put(object, "complete", json_boolean(result->complete));
  if (result->error[0]) json_put(object, "error", json_text_value(result->error));
#define X(key, value) json_put_real(object, #key, value);
  REPORT_DERIVED(X)
#undef X
  json_put_counters(object, c, true);
  if (result->sampling.chosen) json_put(object, "sampling", sampling_value(&result->sampling));
  if (result->stacks.count) json_put(object, "stacks", json_stacks_value(&result->stacks, c));
  if (result->tiers.count) json_put(object, "tiers", json_tiers_value(&result->tiers));
  json_put(object, "kernels", kernels_value(result));
  json_put(object, "allocations", allocations_value(result));
  if (result->lines_kept) json_put(object, "by_line", json_lines_value(result));
  if (history && result->history) json_put(object, "history", json_null());
  return object;
}

#define PUT_f json_put_real
#define PUT_u json_put_count
static json_t *host_value(const report_host *host) {
  json_t *object = json_object();
#define X(name, type, unit, help) PUT_##type(object, #name, host->name);
#include "report/host.def"
#undef X
  return object;
}

static int add_chunk(const char *bytes, size_t size, void *out) {
  ff_text_add_bytes(out, bytes, size);
  return 0;
}

static json_t *streams_value(const report_run *run) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < run->stream_count; i++) {
    json_t *one = json_object();
    json_put_count(one, "stream", run->streams[i].stream);
    json_put(one, "name", json_text_value(run->streams[i].name));
    json_array_append_new(list, one);
  }
  return list;
}

static json_t *run_value(const report_run *run, bool history) {
  json_t *root = json_object(), *notes = json_array(), *runs = json_array();
  json_put_count(root, "schema", REPORT_SCHEMA);
  json_put(root, "version", json_text_value(run->version));
  if (run->command) json_put(root, "command", json_text_value(run->command));
  json_put(root, "complete", json_boolean(run->complete));
  if (run->running) json_put_count(root, "running", run->running);
  for (uint32_t i = 0; i < run->note_count; i++) json_array_append_new(notes, json_text_value(run->notes[i]));
  json_put(root, "notes", notes);
  if (run->stream_count) json_put(root, "streams", streams_value(run));
  for (uint32_t i = 0; i < run->result_count; i++)
    json_array_append_new(runs, result_value(run, &run->results[i], history));
  json_put(root, "runs", runs);
  json_put(root, "host", host_value(&run->host));
  return root;
}

static void add_run(const report_run *run, bool history, ff_text *out) {
  json_t *root = run_value(run, history);
  size_t before = out->length;
  /* no memory: half a report would be a broken one */
  if (json_dump_callback(root, add_chunk, out, JSON_INDENT(1) | JSON_REAL_PRECISION(12))) out->length = before;
  ff_text_add(out, "\n");
  json_decref(root);
}

void report_json_write(const report_run *run, ff_text *out) { add_run(run, false, out); }

/* The last key of `host`, which is the last of the object that begins at `begin`: XXH64 of all bytes in front of the
 * comma before it. */
static const char checksum_key[] = "\"checksum\": \"", object_end[] = "\n }\n}\n";
enum { CHECKSUM_DIGITS = 16 };

static void add_checksum(ff_text *out, size_t begin) {
  if (out->length < begin + strlen(object_end)) return; /* no memory: there is no report */
  size_t end = out->length - strlen(object_end);
  FF_ASSERT(!strcmp(out->chars + end, object_end));
  out->length = end;
  ff_text_add(out, ",\n  %s%016" PRIx64 "\"%s", checksum_key, (uint64_t)XXH64(out->chars + begin, end - begin, 0),
              object_end);
}

/* Within a text of JSON a quote is written \", so that this is found only where it is a key. */
void report_json_write_whole(const report_run *run, ff_text *out) {
  static const char key[] = "\"history\": ", empty[] = "null";
  ff_text text = {0};
  size_t begin = out->length;
  add_run(run, true, &text);
  const char *at = text.chars;
  for (uint32_t i = 0; i < run->result_count; i++) {
    if (!run->results[i].history) continue;
    const char *place = strstr(at, "\"history\": null") + strlen(key);
    ff_text_add_bytes(out, at, (size_t)(place - at));
    json_history_write(run->results[i].history, out);
    at = place + strlen(empty);
  }
  ff_text_add(out, "%s", at);
  free(text.chars);
  add_checksum(out, begin);
}

/* ---- reading ---- */

typedef json_reader reader;

ff_status json_fail(reader *r, const char *key, const char *expected) {
  return ff_fail(r->error, FF_PARSE, "%s: \"%s\" is not %s", r->file, key, expected);
}

ff_status json_get_text(reader *r, const json_t *object, const char *key, bool required, char *to, size_t size) {
  const json_t *value = json_object_get(object, key);
  if (!value && !required) return FF_OK;
  if (!json_is_string(value) || json_string_length(value) >= size)
    return json_fail(r, key, "a text of acceptable length");
  memcpy(to, json_string_value(value), json_string_length(value) + 1);
  return FF_OK;
}

ff_status json_get_count(reader *r, const json_t *object, const char *key, uint64_t *to) {
  const json_t *value = json_object_get(object, key);
  if (!value) return FF_OK;
  if (!json_is_integer(value) || json_integer_value(value) < 0) return json_fail(r, key, "a whole number from 0");
  *to = (uint64_t)json_integer_value(value);
  return FF_OK;
}

ff_status json_get_real(reader *r, const json_t *object, const char *key, double *to) {
  const json_t *value = json_object_get(object, key);
  if (!value) return FF_OK;
  if (!json_is_number(value)) return json_fail(r, key, "a number");
  *to = json_number_value(value);
  return FF_OK;
}

static ff_status get_flag(reader *r, const json_t *object, const char *key, bool *to) {
  const json_t *value = json_object_get(object, key);
  if (!value) return FF_OK;
  if (!json_is_boolean(value)) return json_fail(r, key, "true or false");
  *to = json_is_true(value);
  return FF_OK;
}

/* The array `key` and its length; absent: empty. */
static ff_status get_list(reader *r, const json_t *object, const char *key, const json_t **list, uint32_t *count) {
  *list = json_object_get(object, key);
  *count = 0;
  if (!*list) return FF_OK;
  if (!json_is_array(*list) || json_array_size(*list) > LIST_LIMIT)
    return json_fail(r, key, "a list of acceptable length");
  *count = (uint32_t)json_array_size(*list);
  return FF_OK;
}

ff_status json_get_counters(reader *r, const json_t *object, sim_counters *c) {
#define X(name, unit, help) \
  if (json_get_count(r, object, #name, &c->name)) return FF_PARSE;
#include "machine/observe/counters.def"
#undef X
  return FF_OK;
}

static ff_status get_kernels(reader *r, const json_t *object, sim_result *result) {
  const json_t *list;
  uint32_t count;
  if (get_list(r, object, "kernels", &list, &count)) return FF_PARSE;
  result->kernels = ff_alloc(count * sizeof *result->kernels);
  result->kernel_count = count;
  for (uint32_t i = 0; i < count; i++) {
    const json_t *from = json_array_get(list, i);
    sim_kernel_result *kernel = &result->kernels[i];
    if (json_get_text(r, from, "name", true, kernel->name, sizeof kernel->name) ||
        json_get_text(r, from, "range", false, kernel->range, sizeof kernel->range) ||
        json_get_text(r, from, "site", false, kernel->site, sizeof kernel->site) ||
        json_get_counters(r, from, &kernel->counters))
      return FF_PARSE;
  }
  return FF_OK;
}

static ff_status get_allocations(reader *r, const json_t *object, sim_result *result) {
  const json_t *list;
  uint32_t count;
  if (get_list(r, object, "allocations", &list, &count)) return FF_PARSE;
  result->allocations = ff_alloc(count * sizeof *result->allocations);
  result->allocation_count = count;
  for (uint32_t i = 0; i < count; i++) {
    const json_t *from = json_array_get(list, i);
    sim_allocation_result *to = &result->allocations[i];
    uint64_t id = 0;
    if (json_get_text(r, from, "name", true, to->name, sizeof to->name) || json_get_count(r, from, "id", &id) ||
        json_get_count(r, from, "address", &to->address) || json_get_count(r, from, "bytes", &to->bytes) ||
        get_flag(r, from, "managed", &to->managed) || get_flag(r, from, "pinned", &to->pinned) ||
        json_get_counters(r, from, &to->counters))
      return FF_PARSE;
    if (id > UINT32_MAX) return json_fail(r, "id", "a whole number of 32 bits");
    to->id = (uint32_t)id;
  }
  return FF_OK;
}

static ff_status get_device(reader *r, const json_t *from, uint32_t *device) {
  uint64_t number = 0;
  if (!json_object_get(from, "device")) return FF_OK;
  if (json_get_count(r, from, "device", &number)) return FF_PARSE;
  if (number > 127) return json_fail(r, "device", "a number of a device");
  *device = (uint32_t)number + 1;
  return FF_OK;
}

static ff_status get_peaks(reader *r, const json_t *from, machine_peaks *peaks) {
  const json_t *object = json_object_get(from, "peaks");
  if (!object) return FF_OK;
  if (!json_is_object(object)) return json_fail(r, "peaks", "an object");
#define X(name, help)                                                 \
  if (json_get_real(r, object, #name, &peaks->name)) return FF_PARSE; \
  if (!(peaks->name > 0)) return json_fail(r, #name, "a number above 0");
#include "machine/spec/peaks.def"
#undef X
  return FF_OK;
}

static ff_status get_sampling(reader *r, const json_t *from, sim_sampling *sampling) {
  const json_t *object = json_object_get(from, "sampling");
  if (!object) return FF_OK;
  if (!json_is_object(object)) return json_fail(r, "sampling", "an object");
  sampling->chosen = true;
  bool has = json_object_get(object, "without_records") != NULL; /* older files do not */
  return (has && json_get_count(r, object, "without_records", &sampling->without_records)) ||
                 json_get_count(r, object, "timed", &sampling->timed) ||
                 json_get_count(r, object, "estimated", &sampling->estimated) ||
                 json_get_count(r, object, "blocks", &sampling->blocks) ||
                 json_get_count(r, object, "estimated_ps", &sampling->estimated_ps) ||
                 json_get_count(r, object, "interval_ps", &sampling->interval_ps)
             ? FF_PARSE
             : FF_OK;
}

static ff_status get_result(reader *r, const json_t *from, sim_result *result) {
  if (!json_is_object(from)) return json_fail(r, "runs", "a list of objects");
  if (get_device(r, from, &result->device) || get_peaks(r, from, &result->peaks) ||
      get_sampling(r, from, &result->sampling))
    return FF_PARSE;
  if (json_get_text(r, from, "memory", true, result->memory, sizeof result->memory) ||
      json_get_text(r, from, "machine", true, result->machine, sizeof result->machine) ||
      json_get_text(r, from, "error", false, result->error, sizeof result->error) ||
      get_flag(r, from, "complete", &result->complete) || json_get_counters(r, from, &result->counters) ||
      get_kernels(r, from, result) || get_allocations(r, from, result))
    return FF_PARSE;
  const json_t *stacks = json_object_get(from, "stacks"), *history = json_object_get(from, "history"),
               *lines = json_object_get(from, "by_line"), *tiers = json_object_get(from, "tiers");
  if (stacks && json_stacks_read(r, stacks, &result->stacks)) return FF_PARSE;
  if (tiers && json_tiers_read(r, tiers, &result->tiers)) return FF_PARSE;
  if (lines && json_lines_read(r, lines, result)) return FF_PARSE;
  return history && !json_is_null(history) ? json_history_read(r, history, result) : FF_OK;
}

#define GET_f json_get_real
#define GET_u json_get_count
static ff_status get_host(reader *r, const json_t *root, report_host *host) {
  const json_t *object = json_object_get(root, "host");
  if (!json_is_object(object)) return json_fail(r, "host", "an object");
#define X(name, type, unit, help) \
  if (GET_##type(r, object, #name, &host->name)) return FF_PARSE;
#include "report/host.def"
#undef X
  return FF_OK;
}

static ff_status get_notes(reader *r, const json_t *root, report_run *run) {
  const json_t *list;
  uint32_t count;
  if (get_list(r, root, "notes", &list, &count)) return FF_PARSE;
  if (count > NOTE_LIMIT) return json_fail(r, "notes", "a list of acceptable length");
  for (uint32_t i = 0; i < count; i++) {
    const json_t *note = json_array_get(list, i);
    if (!json_is_string(note)) return json_fail(r, "notes", "a list of texts");
    report_note(run, json_string_value(note));
  }
  return FF_OK;
}

static ff_status get_streams(reader *r, const json_t *root, report_run *run) {
  const json_t *list;
  uint32_t count;
  if (!json_object_get(root, "streams")) return FF_OK;
  if (get_list(r, root, "streams", &list, &count)) return FF_PARSE;
  if (count > NOTE_LIMIT) return json_fail(r, "streams", "a list of acceptable length");
  for (uint32_t i = 0; i < count; i++) {
    const json_t *from = json_array_get(list, i);
    uint64_t stream = 0;
    char name[64];
    if (!json_is_object(from)) return json_fail(r, "streams", "a list of objects");
    if (json_get_count(r, from, "stream", &stream) || json_get_text(r, from, "name", true, name, sizeof name))
      return FF_PARSE;
    if (stream > UINT32_MAX) return json_fail(r, "stream", "a whole number of 32 bits");
    report_name_stream(run, (uint32_t)stream, name);
  }
  return FF_OK;
}

static ff_status get_run(reader *r, const json_t *root, report_run *run) {
  if (!json_is_object(root))
    return ff_fail(r->error, FF_PARSE, "%s: is not a farfault run: an object is expected", r->file);
  const json_t *schema = json_object_get(root, "schema"), *command = json_object_get(root, "command"), *runs;
  if (!json_is_integer(schema))
    return ff_fail(r->error, FF_PARSE, "%s: is not a farfault run: it has no \"schema\"", r->file);
  if (json_integer_value(schema) != REPORT_SCHEMA)
    return ff_fail(r->error, FF_PARSE, "%s: has schema %lld; this version reads schema %d", r->file,
                   (long long)json_integer_value(schema), REPORT_SCHEMA);
  if (command && !json_is_string(command)) return json_fail(r, "command", "a text");
  if (command) run->command = ff_strdup(json_string_value(command));
  if (json_get_text(r, root, "version", false, run->version, sizeof run->version) ||
      get_flag(r, root, "complete", &run->complete) || json_get_count(r, root, "running", &run->running) ||
      get_notes(r, root, run) || get_streams(r, root, run))
    return FF_PARSE;
  uint32_t count;
  if (!json_object_get(root, "runs")) return json_fail(r, "runs", "a list");
  if (get_list(r, root, "runs", &runs, &count)) return FF_PARSE;
  run->results = ff_alloc(count * sizeof *run->results);
  for (uint32_t i = 0; i < count; i++) {
    run->result_count = i + 1;
    if (get_result(r, json_array_get(runs, i), &run->results[i])) return FF_PARSE;
  }
  return get_host(r, root, &run->host);
}

/* Whether the bytes are those that were written. A text without the key is taken as it is. */
static ff_status check_bytes(reader *r, const json_t *root, const char *text, size_t size) {
  const json_t *host = json_object_get(root, "host"), *said = json_object_get(host, "checksum");
  char own[CHECKSUM_DIGITS + 1] = "";
  if (!said) return FF_OK;
  size_t tail = strlen(",\n  ") + strlen(checksum_key) + CHECKSUM_DIGITS + strlen("\"") + strlen(object_end);
  if (size > tail && !memcmp(text + size - strlen(object_end), object_end, strlen(object_end)))
    snprintf(own, sizeof own, "%016" PRIx64, (uint64_t)XXH64(text, size - tail, 0));
  if (json_is_string(said) && !strcmp(json_string_value(said), own)) return FF_OK;
  return ff_fail(r->error, FF_PARSE,
                 "%s: is damaged, or was changed: its bytes do not have its checksum (without the key \"checksum\" in "
                 "\"host\" it is taken as it is)",
                 r->file);
}

ff_status report_json_read(const char *file, const char *text, size_t size, report_run *run, ff_error *error) {
  *run = (report_run){0};
  json_error_t why;
  json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &why);
  if (!root && !size) return ff_fail(error, FF_PARSE, "%s: is empty", file);
  uint32_t line = !root && why.line > 0 ? (uint32_t)why.line : 1;
  if (!root)
    return ff_fail_in_text(
        error, FF_PARSE, file, text, size, line,
        ff_column_in_bytes(text, size, line, why.column > 0 ? (uint32_t)why.column : 0), "not JSON: %s%s", why.text,
        json_error_code(&why) == json_error_premature_end_of_input ? ": it is cut off; it has to be made again" : "");
  reader r = {file, error};
  ff_status status = check_bytes(&r, root, text, size);
  if (!status) status = get_run(&r, root, run);
  if (status) report_free(run);
  json_decref(root);
  return status;
}

ff_status report_file_read(const char *path, report_run *run, ff_error *error) {
  char *text;
  size_t size;
  ff_status status = ff_file_read(path, FILE_LIMIT, &text, &size, error);
  if (status) return status;
  status = report_json_read(path, text, size, run, error);
  free(text);
  return status;
}
