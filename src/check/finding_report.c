/* SPDX-License-Identifier: Apache-2.0 */
/* Findings by key, their text and their JSON. */
#include "check/finding_report.h"

#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/descriptor.h"
#include "base/output.h"

enum { KEPT_MAX = 10000 }; /* findings; what comes behind is only counted */

struct check_report {
  check_options options;
  char *(*demangle)(const char *);
  FF_VEC(check_finding *) findings;
  uint32_t *slots; /* open addressing: index + 1 into findings */
  size_t slot_count;
  size_t flushed; /* findings before this one were printed or are not to be */
  uint64_t printed, by_level[CHECK_ERROR + 1], more;
  FILE *out;
};

static FILE *open_log(const char *path) {
  int fd = ff_descriptor_apart(open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  return fd < 0 ? NULL : fdopen(fd, "a");
}

check_report *check_report_create(const check_options *options, char *(*demangle)(const char *)) {
  check_report *r = ff_alloc(sizeof *r);
  r->options = *options;
  r->demangle = demangle;
  r->out = options->log[0] ? open_log(options->log) : NULL;
  if (options->log[0] && !r->out)
    fprintf(stderr, "farfault: %s: cannot be written: the report goes here\n", options->log);
  return r;
}

static void free_finding(check_finding *f) {
  for (uint32_t s = 0; s < f->site_count; s++) {
    free(f->sites[s].function);
    free(f->sites[s].file);
    free(f->sites[s].ptx);
  }
  free(f->title);
  free(f->details);
  free(f->tail);
  free(f->kernel);
  free(f);
}

void check_report_free(check_report *r) {
  if (!r) return;
  for (size_t n = 0; n < r->findings.count; n++) free_finding(r->findings.items[n]);
  free(r->findings.items);
  free(r->slots);
  if (r->out) fclose(r->out);
  free(r);
}

/* ---- by key ---- */

static uint64_t mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * UINT64_C(0x9E3779B97F4A7C15);
  return h ^ h >> 29;
}

uint64_t check_key(check_kind kind, const void *a, uint64_t b, const void *c, uint64_t d) {
  return mix(mix(mix(mix(mix(1, kind), (uintptr_t)a), b), (uintptr_t)c), d);
}

static size_t slot_of(const check_report *r, uint64_t key) {
  size_t at = key & (r->slot_count - 1);
  while (r->slots[at] && r->findings.items[r->slots[at] - 1]->key != key) at = (at + 1) & (r->slot_count - 1);
  return at;
}

static void grow(check_report *r) {
  r->slot_count = r->slot_count ? 2 * r->slot_count : 64;
  free(r->slots);
  r->slots = ff_alloc(r->slot_count * sizeof *r->slots);
  for (size_t n = 0; n < r->findings.count; n++) r->slots[slot_of(r, r->findings.items[n]->key)] = (uint32_t)n + 1;
}

/* Each finding is found by its key; by_level counts them and those that were not kept. */
static void report_check(const check_report *r) {
  uint64_t all = r->more;
  for (size_t n = 0; n < r->findings.count; n++)
    FF_ASSERT(r->slots[slot_of(r, r->findings.items[n]->key)] == n + 1 && r->findings.items[n]->count);
  for (int level = 0; level <= CHECK_ERROR; level++) all -= r->by_level[level];
  FF_ASSERT(all + r->findings.count == 0 && r->flushed <= r->findings.count);
}

check_finding *check_report_find(check_report *r, check_kind kind, check_level level, uint64_t key, bool *fresh) {
  *fresh = false;
  if (2 * (r->findings.count + 1) > r->slot_count) grow(r);
  size_t at = slot_of(r, key);
  if (r->slots[at]) {
    check_finding *known = r->findings.items[r->slots[at] - 1];
    known->count++;
    return known;
  }
  if (r->findings.count == KEPT_MAX) {
    r->by_level[level]++;
    r->more++;
    return NULL;
  }
  check_finding *made = ff_alloc(sizeof *made);
  made->kind = kind;
  made->level = level;
  made->key = key;
  made->count = 1;
  FF_PUSH(&r->findings, made);
  r->slots[at] = (uint32_t)r->findings.count;
  r->by_level[level]++;
  if (ff_check_level >= 2) report_check(r);
  *fresh = true;
  return made;
}

uint64_t check_report_count(const check_report *r, check_level level) { return r->by_level[level]; }

void check_site_fill(check_report *r, check_site *site, const ptx_func *func, uint32_t index, const char *access) {
  *site = (check_site){.function = r->demangle ? r->demangle(func->name) : ff_strdup(func->name), .access = access};
  if (index >= func->instr_count) return;
  const ptx_instr *instr = &func->instrs[index];
  ff_text text = {0};
  ptx_print_instr(func, instr, &text);
  while (text.length && (text.chars[text.length - 1] == '\n' || text.chars[text.length - 1] == ' '))
    text.chars[--text.length] = '\0';
  site->ptx = text.chars;
  site->ptx_line = instr->place.line;
  const ptx_module *source = func->source ? func->source : func->module;
  const char *file = source && instr->source_file < source->file_count ? source->files[instr->source_file] : NULL;
  if (!instr->source_line || !file) return;
  site->file = ff_strdup(file);
  site->line = instr->source_line;
}

/* ---- text ---- */

static void add_source(ff_text *out, const check_site *site) {
  ff_text_add(out, "%s", site->function);
  const char *slash = site->file ? strrchr(site->file, '/') : NULL;
  if (site->file) ff_text_add(out, " in %s:%u", slash ? slash + 1 : site->file, site->line);
}

static void add_ptx(ff_text *out, const check_site *site) {
  if (site->ptx) ff_text_add(out, "=========     PTX line %u: %s\n", site->ptx_line, site->ptx);
}

static void add_thread(ff_text *out, const check_thread *t) {
  if (t->known)
    ff_text_add(out, "=========     by thread (%u,%u,%u) in block (%u,%u,%u)\n", t->thread[0], t->thread[1],
                t->thread[2], t->block[0], t->block[1], t->block[2]);
}

static void add_lines(ff_text *out, const char *lines) {
  while (lines && *lines) {
    size_t length = strcspn(lines, "\n");
    ff_text_add(out, "=========     %.*s\n", (int)length, lines);
    lines += length + (lines[length] == '\n');
  }
}

static void add_race(ff_text *out, const check_finding *f) {
  static const char *const levels[] = {"Info", "Warning", "Error"};
  ff_text_add(out, "========= %s: Race reported between %s access at ", levels[f->level], f->sites[0].access);
  add_source(out, &f->sites[0]);
  ff_text_add(out, "\n");
  add_ptx(out, &f->sites[0]);
  add_thread(out, &f->threads[0]);
  ff_text_add(out, "=========     and %s access at ", f->sites[1].access);
  add_source(out, &f->sites[1]);
  ff_text_add(out, " [%" PRIu64 " hazard%s]\n", f->count, f->count == 1 ? "" : "s");
  add_ptx(out, &f->sites[1]);
  add_thread(out, &f->threads[1]);
}

static void add_plain(ff_text *out, const check_finding *f) {
  ff_text_add(out, "========= %s%s\n", f->level == CHECK_WARNING ? "Warning: " : "", f->title);
  if (f->site_count) {
    ff_text_add(out, "=========     at ");
    add_source(out, &f->sites[0]);
    ff_text_add(out, "\n");
    add_ptx(out, &f->sites[0]);
  }
  add_thread(out, &f->threads[0]);
}

static void add_finding(ff_text *out, const check_finding *f) {
  if (f->kind == CHECK_RACE) add_race(out, f);
  else add_plain(out, f);
  add_lines(out, f->details);
  if (f->kind != CHECK_RACE && f->count > 1)
    ff_text_add(out, "=========     and %" PRIu64 " more of the same at this place\n", f->count - 1);
  add_lines(out, f->tail);
  ff_text_add(out, "=========\n");
}

static void print(check_report *r, const ff_text *text) {
  FILE *out = r->out ? r->out : stderr;
  if (!text->length) return;
  flockfile(out);
  fwrite(text->chars, 1, text->length, out);
  fflush(out);
  funlockfile(out);
}

static void write_results(const check_report *r, uint64_t leaked_bytes, uint64_t leaked, bool ended);

void check_report_flush(check_report *r) {
  ff_text text = {0};
  bool any = r->flushed < r->findings.count;
  for (; r->flushed < r->findings.count; r->flushed++) {
    check_finding *f = r->findings.items[r->flushed];
    if (f->level < (check_level)r->options.level) continue;
    if (r->printed == r->options.print_limit)
      ff_text_add(&text, "========= %u findings were printed (--print-limit); the others are only counted\n=========\n",
                  r->options.print_limit);
    if (r->printed++ >= r->options.print_limit) continue;
    add_finding(&text, f);
    f->printed = true;
  }
  print(r, &text);
  free(text.chars);
  if (any) write_results(r, 0, 0, false);
}

/* ---- JSON ---- */

static json_t *thread_json(const check_thread *t) {
  return json_pack("{s:[i,i,i],s:[i,i,i]}", "thread", (int)t->thread[0], (int)t->thread[1], (int)t->thread[2], "block",
                   (int)t->block[0], (int)t->block[1], (int)t->block[2]);
}

static json_t *site_json(const check_site *site, const check_thread *thread) {
  json_t *o = json_object();
  json_object_set_new(o, "function", json_string_nocheck(site->function));
  if (site->access) json_object_set_new(o, "access", json_string(site->access));
  if (site->file) {
    json_object_set_new(o, "file", json_string_nocheck(site->file));
    json_object_set_new(o, "line", json_integer(site->line));
  }
  if (site->ptx) {
    json_object_set_new(o, "ptx_line", json_integer(site->ptx_line));
    json_object_set_new(o, "ptx", json_string_nocheck(site->ptx));
  }
  if (thread->known) {
    json_t *who = thread_json(thread);
    json_object_update(o, who);
    json_decref(who);
  }
  return o;
}

static json_t *finding_json(const check_finding *f) {
  static const char *const kinds[] = {
#define X(name, json) json,
#include "check/check_kinds.def"
#undef X
  };
  static const char *const levels[] = {"info", "warning", "error"};
  json_t *o = json_object(), *sites = json_array();
  json_object_set_new(o, "kind", json_string(kinds[f->kind]));
  json_object_set_new(o, "level", json_string(levels[f->level]));
  json_object_set_new(o, "count", json_integer((json_int_t)f->count));
  if (f->title) json_object_set_new(o, "title", json_string_nocheck(f->title));
  if (f->kernel) json_object_set_new(o, "kernel", json_string_nocheck(f->kernel));
  if (f->space) json_object_set_new(o, "space", json_string(f->space));
  if (f->bytes) json_object_set_new(o, "address", json_integer((json_int_t)f->address));
  if (f->bytes) json_object_set_new(o, "bytes", json_integer((json_int_t)f->bytes));
  for (uint32_t s = 0; s < f->site_count; s++) json_array_append_new(sites, site_json(&f->sites[s], &f->threads[s]));
  json_object_set_new(o, "at", sites);
  if (f->details) json_object_set_new(o, "details", json_string_nocheck(f->details));
  if (f->tail) json_object_set_new(o, "host", json_string_nocheck(f->tail));
  return o;
}

static void write_results(const check_report *r, uint64_t leaked_bytes, uint64_t leaked, bool ended) {
  if (!r->options.results[0]) return;
  json_t *o = json_object(), *list = json_array();
  for (size_t n = 0; n < r->findings.count; n++) json_array_append_new(list, finding_json(r->findings.items[n]));
  json_object_set_new(o, "process", json_integer(getpid()));
  json_object_set_new(o, "ended", json_boolean(ended));
  json_object_set_new(o, "errors", json_integer((json_int_t)r->by_level[CHECK_ERROR]));
  json_object_set_new(o, "warnings", json_integer((json_int_t)r->by_level[CHECK_WARNING]));
  json_object_set_new(o, "infos", json_integer((json_int_t)r->by_level[CHECK_INFO]));
  json_object_set_new(o, "leaked_bytes", json_integer((json_int_t)leaked_bytes));
  json_object_set_new(o, "leaked_allocations", json_integer((json_int_t)leaked));
  json_object_set_new(o, "findings", list);
  char *text = json_dumps(o, JSON_INDENT(2));
  json_decref(o);
  ff_text path = {0};
  const char *number = strstr(r->options.results, "%p");
  if (number)
    ff_text_add(&path, "%.*s%ld%s", (int)(number - r->options.results), r->options.results, (long)getpid(), number + 2);
  else ff_text_add(&path, "%s", r->options.results);
  ff_error error;
  if (text && ff_file_write_scratch(path.chars, text, strlen(text), &error))
    fprintf(stderr, "farfault: %s\n", error.message);
  free(path.chars);
  free(text);
}

void check_report_finish(check_report *r, uint64_t leaked_bytes, uint64_t leaked) {
  check_report_flush(r);
  write_results(r, leaked_bytes, leaked, true);
  if (r->options.results[0]) return; /* the command that started the program prints the rest */
  ff_text text = {0};
  ff_text_add(&text, "========= ERROR SUMMARY: %" PRIu64 " error%s, %" PRIu64 " warning%s\n", r->by_level[CHECK_ERROR],
              r->by_level[CHECK_ERROR] == 1 ? "" : "s", r->by_level[CHECK_WARNING],
              r->by_level[CHECK_WARNING] == 1 ? "" : "s");
  print(r, &text);
  free(text.chars);
}
