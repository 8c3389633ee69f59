/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a simulation's choices: see choice.h. Everything here only checks and translates; sim.c makes the simulation.
 *
 * Reading refuses a choice that does not fit its manager (one that does not page has no far-faults to handle and
 * nothing to evict), and a name that is given twice behind it. */
#include "machine/spec/choice.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "farfault/policy.h"
#include "machine/host/given_hints.h"
#include "machine/sm/sample.h"
#include "machine/spec/spec_table.h"
#include "policy/manager.h"

const sim_choice_info sim_choice_infos[SIM_CHOICE_COUNT] = {
#define X(id, name, variable, pages, value, help) {name, variable, value, help, pages},
#include "machine/spec/choices.def"
#undef X
};

/* ---- names ---- */

static const char *closest(const char *word, const char *const *names) {
  const char *near = ff_closest(word, names);
  char *lower = ff_strdup(word);
  for (char *c = lower; *c; c++) *c = (char)tolower((unsigned char)*c);
  if (!near) near = ff_closest(lower, names);
  free(lower);
  return near;
}

static ff_status fail_no_manager(const char *name, ff_error *error) {
  ff_text known = {0};
  FF_VEC(const char *) names = {0};
  for (const manager *const *m = managers; *m; m++) {
    ff_text_add(&known, "%s%s", names.count ? ", " : "", (*m)->name);
    FF_PUSH(&names, (*m)->name);
  }
  FF_PUSH(&names, NULL);
  const char *near = closest(name, names.items);
  if (near)
    ff_fail(error, FF_NOT_FOUND, "no memory manager '%s': did you mean '%s'? There are %s", name, near, known.chars);
  else ff_fail(error, FF_NOT_FOUND, "no memory manager '%s': there are %s", name, known.chars);
  free(names.items);
  free(known.chars);
  return FF_NOT_FOUND;
}

static ff_status fail_no_choice(const char *name, ff_error *error) {
  const char *names[SIM_CHOICE_COUNT + SPEC_PARAM_COUNT + 1] = {0};
  for (int i = 0; i < SIM_CHOICE_COUNT; i++) names[i] = sim_choice_infos[i].name;
  for (int i = 0; i < SPEC_PARAM_COUNT; i++) names[SIM_CHOICE_COUNT + i] = spec_params[i].name;
  const char *near = closest(name, names);
  if (near)
    return ff_fail(error, FF_NOT_FOUND, "'%s' is neither a choice nor a value of the machine: did you mean '%s'?", name,
                   near);
  return ff_fail(error, FF_NOT_FOUND, "'%s' is neither a choice (prefetch, evict, ...) nor a value of the machine",
                 name);
}

static int choice_find(const char *name) {
  for (int i = 0; i < SIM_CHOICE_COUNT; i++)
    if (!strcmp(sim_choice_infos[i].name, name)) return i;
  return -1;
}

/* ---- values ---- */

ff_status sim_memory_read(const char *text, const machine_spec *machine, uint64_t *bytes, double *share,
                          ff_error *error) {
  uint64_t whole = UINT64_C(1000000000), parts;
  char page[32];
  *bytes = 0;
  *share = 0;
  if (strchr(text, '%')) {
    ff_status status = ff_parse_bytes(text, whole, &parts, error);
    if (status) return status;
    if (!parts) return ff_fail(error, FF_INVALID, "'%s' is nothing", text);
    *share = (double)parts / (double)whole;
    return FF_OK;
  }
  ff_status status = ff_parse_bytes(text, whole, bytes, error);
  if (status) return status;
  if (*bytes < machine->fault_page_bytes)
    return ff_fail(error, FF_INVALID, "'%s' is less than one page of %s", text,
                   ff_format_bytes(machine->fault_page_bytes, page, sizeof page));
  return FF_OK;
}

ff_status sim_host_memory_read(const char *text, const machine_spec *machine, uint64_t *bytes, double *share,
                               ff_error *error) {
  ff_status status = sim_memory_read(text, machine, bytes, share, error);
  if (status || *share > 0 || *bytes >= FF_BLOCK_BYTES) return status;
  return ff_fail(error, FF_INVALID, "'%s' is less than 2 MiB, the largest page that moves", text);
}

ff_status sim_faults_read(const char *text, machine_spec *machine, const manager_faults **ways, ff_error *error) {
  const char *colon = strchr(text, ':');
  *ways = manager_faults_find(text, colon ? (size_t)(colon - text) : strlen(text));
  if (!*ways || (colon && !(*ways)->number)) {
    ff_text known = {0};
    for (const manager_faults *each = manager_fault_ways; each->name; each++)
      ff_text_add(&known, "%s%s%s", known.length ? ", " : "", each->name, each->number ? "[:N]" : "");
    ff_fail(error, FF_NOT_FOUND, "'%s' is no way of handling far-faults: there are %s", text, known.chars);
    free(known.chars);
    return FF_NOT_FOUND;
  }
  if (!colon) return FF_OK;
  char setting[SIM_CHOICE_LENGTH];
  if (!colon[1] || strchr(colon, ',') ||
      snprintf(setting, sizeof setting, "%s=%s", (*ways)->number, colon + 1) >= (int)sizeof setting)
    return ff_fail(error, FF_INVALID, "'%.60s': no number follows the colon", text);
  return machine_spec_set(machine, setting, error);
}

ff_status sim_page_read(const char *text, uint64_t *bytes, ff_error *error) {
  static const struct {
    const char *name;
    uint64_t bytes;
  } pages[] = {{"4K", FF_PAGE_BYTES}, {"64K", FF_GROUP_BYTES}, {"2M", FF_BLOCK_BYTES}, {"auto", FF_BLOCK_BYTES}};
  for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
    if (!strcmp(text, pages[i].name)) {
      *bytes = pages[i].bytes;
      return FF_OK;
    }
  return ff_fail(error, FF_INVALID, "'%s' is none of the pages that a TLB maps: 4K, 64K, 2M, auto", text);
}

/* "32" or "32:16" as values of a machine. */
static ff_status link_settings(const char *text, char *set, size_t size, ff_error *error) {
  const char *colon = strchr(text, ':');
  int length = colon ? (int)(colon - text) : (int)strlen(text);
  if (strpbrk(text, ",=") || !length || (colon && !colon[1]))
    return ff_fail(error, FF_INVALID, "'%s' is not GB/s, as 32 or 32:16", text);
  int needed =
      snprintf(set, size, "link_h2d_gbs=%.*s,link_d2h_gbs=%s,link_table=none", length, text, colon ? colon + 1 : text);
  return needed < (int)size ? FF_OK : ff_fail(error, FF_LIMIT, "'%.40s...' is too long", text);
}

/* One of the two: bytes, or a share. */
static ff_status read_watermark(const char *text, size_t length, uint64_t *bytes, double *share, ff_error *error) {
  char *one = strndup(text, length);
  uint64_t whole = UINT64_C(1000000000), parts = 0;
  *share = 0;
  ff_status status = ff_parse_bytes(one, whole, strchr(one, '%') ? &parts : bytes, error);
  if (!status && strchr(one, '%') && parts > whole / 2)
    status = ff_fail(error, FF_INVALID, "'%.60s': at most half of GPU memory can be kept free", one);
  if (!status && parts) {
    *share = (double)parts / (double)whole;
    *bytes = 0;
  }
  if (!status && !parts && !*bytes) status = ff_fail(error, FF_INVALID, "'%.60s' is nothing", one);
  free(one);
  return status;
}

ff_status sim_watermark_read(const char *text, watermarks *marks, ff_error *error) {
  *marks = (watermarks){0};
  if (!strcmp(text, "none")) return FF_OK;
  const char *colon = strchr(text, ':'), *high = colon ? colon + 1 : text;
  ff_status status =
      read_watermark(text, colon ? (size_t)(colon - text) : strlen(text), &marks->low, &marks->low_share, error);
  if (!status) status = read_watermark(high, strlen(high), &marks->high, &marks->high_share, error);
  bool alike = (marks->low_share > 0) == (marks->high_share > 0);
  if (!status && alike && (marks->high < marks->low || marks->high_share < marks->low_share))
    status = ff_fail(error, FF_INVALID, "'%s': HIGH is less than LOW", text);
  return status;
}

ff_status sim_counters_read(const char *text, manager_counters *counters, ff_error *error) {
  *counters = (manager_counters){.granule = FF_BLOCK_BYTES};
  if (!strcmp(text, "none")) return FF_OK;
  char *end;
  unsigned long threshold = strtoul(text, &end, 10);
  if (*text < '1' || *text > '9' || (*end && *end != ':') || threshold > SIM_COUNTERS_MAX)
    return ff_fail(error, FF_INVALID, "'%s' is neither a number of accesses from 1 to %d, as 256 or 256:2M, nor none",
                   text, SIM_COUNTERS_MAX);
  counters->threshold = (uint32_t)threshold;
  if (!*end || !strcmp(end, ":2M")) return FF_OK;
  counters->granule = FF_GROUP_BYTES;
  if (!strcmp(end, ":64K")) return FF_OK;
  return ff_fail(error, FF_INVALID, "'%s': access counters are of 64K or 2M", text);
}

static ff_status check_settings(const char *set, const machine_spec *machine, ff_error *error) {
  machine_spec changed = *machine;
  return machine_spec_set_all(&changed, set, error);
}

static ff_status check_unit(const char *text, ff_error *error) {
  uint64_t unit;
  ff_status status = ff_parse_bytes(text, 0, &unit, error);
  if (!status && (unit < 128 || unit > FF_BLOCK_BYTES || (unit & (unit - 1))))
    return ff_fail(error, FF_INVALID, "'%s' is not a power of two from 128 to 2M", text);
  return status;
}

ff_status sim_ranges_read(const char *text, uint32_t *ranges, ff_error *error) {
  char *end;
  *ranges = UINT32_MAX;
  if (!strcmp(text, "unlimited")) return FF_OK;
  unsigned long count = strtoul(text, &end, 10);
  *ranges = (uint32_t)count;
  if (*text >= '1' && *text <= '9' && !*end && count <= SIM_RANGES_MAX) return FF_OK;
  return ff_fail(error, FF_INVALID, "'%s' is neither a number from 1 to %d nor unlimited", text, SIM_RANGES_MAX);
}

ff_status sim_sample_read(const char *text, uint32_t *needed, ff_error *error) {
  char *end;
  *needed = 0;
  if (!strcmp(text, "none")) return FF_OK;
  *needed = SAMPLE_NEEDED;
  if (!strcmp(text, "on")) return FF_OK;
  unsigned long count = strtoul(text, &end, 10);
  *needed = (uint32_t)count;
  if (*text >= '1' && *text <= '9' && !*end && count >= 2 && count <= SAMPLE_NEEDED_MAX) return FF_OK;
  return ff_fail(error, FF_INVALID, "'%s' is neither none, nor on, nor a number of launches from 2 to %d", text,
                 SAMPLE_NEEDED_MAX);
}

ff_status sim_threads_read(const char *text, uint32_t *threads, ff_error *error) {
  char *end;
  *threads = 0;
  if (!strcmp(text, "none")) return FF_OK;
  unsigned long count = strtoul(text, &end, 10);
  *threads = (uint32_t)count;
  if (*text >= '1' && *text <= '9' && !*end && count <= SIM_THREADS_MAX) return FF_OK;
  return ff_fail(error, FF_INVALID, "'%s' is neither none nor a number of threads from 1 to %d", text, SIM_THREADS_MAX);
}

ff_status sim_gap_read(const char *text, uint64_t *bytes, ff_error *error) {
  *bytes = 0;
  if (!strcmp(text, "none")) return FF_OK;
  ff_status status = ff_parse_bytes(text, 0, bytes, error);
  if (!status && (*bytes < 128 || *bytes > FF_BLOCK_BYTES))
    return ff_fail(error, FF_INVALID, "'%s' is not a gap from 128 to 2M, nor none", text);
  return status;
}

ff_status sim_choice_check(sim_choice_id id, const char *text, const machine_spec *machine, ff_error *error) {
  char set[SIM_SET_LENGTH];
  machine_spec changed = *machine;
  const manager_faults *ways;
  watermarks marks;
  sim_offload offload;
  sim_map_choice map;
  uint64_t bytes;
  uint32_t ranges;
  double share;
  switch (id) {
  case SIM_CHOICE_GPU_MEMORY: return sim_memory_read(text, machine, &bytes, &share, error);
  case SIM_CHOICE_HOST_MEMORY: return sim_host_memory_read(text, machine, &bytes, &share, error);
  case SIM_CHOICE_FAULTS: return sim_faults_read(text, &changed, &ways, error);
  case SIM_CHOICE_ACCESS_COUNTERS: return sim_counters_read(text, &(manager_counters){0}, error);
  case SIM_CHOICE_UNIT: return check_unit(text, error);
  case SIM_CHOICE_RANGES: return sim_ranges_read(text, &ranges, error);
  case SIM_CHOICE_GAP: return sim_gap_read(text, &bytes, error);
  case SIM_CHOICE_WRITE_BACK:
    if (!strcmp(text, "serial") || !strcmp(text, "overlapped")) return FF_OK;
    return ff_fail(error, FF_INVALID, "'%s' is neither 'serial' nor 'overlapped'", text);
  case SIM_CHOICE_L2:
    if (!strcmp(text, "keep") || !strcmp(text, "flush")) return FF_OK;
    return ff_fail(error, FF_INVALID, "'%s' is neither 'keep' nor 'flush'", text);
  case SIM_CHOICE_SAMPLE: return sim_sample_read(text, &ranges, error);
  case SIM_CHOICE_MODEL_THREADS: return sim_threads_read(text, &ranges, error);
  case SIM_CHOICE_WATERMARK: return sim_watermark_read(text, &marks, error);
  case SIM_CHOICE_PAGE: return sim_page_read(text, &bytes, error);
  case SIM_CHOICE_ADVISE: return sim_hints_read(text, &(sim_hints){0}, error);
  case SIM_CHOICE_LINK: {
    ff_status status = link_settings(text, set, sizeof set, error);
    return status ? status : check_settings(set, machine, error);
  }
  case SIM_CHOICE_OFFLOAD: return sim_offload_read(text, &offload, error);
  case SIM_CHOICE_MAP: return sim_map_read(text, machine->stack_count, &map, error);
  case SIM_CHOICE_PREFETCH:
  case SIM_CHOICE_EVICT:
  case SIM_CHOICE_COUNT: return FF_OK; /* policy_open checks these */
  }
  return FF_OK;
}

/* ---- one manager's text ---- */

static ff_status add_text(char *to, size_t size, const char *separator, const char *text, ff_error *error) {
  size_t used = strlen(to);
  if (used + strlen(separator) + strlen(text) >= size) return ff_fail(error, FF_LIMIT, "'%.40s...' is too long", text);
  snprintf(to + used, size - used, "%s%s", used ? separator : "", text);
  return FF_OK;
}

/* How the table shows "NAME=VALUE": of a plug-in's path only the end. */
static ff_status add_label(sim_choice *c, const char *name, const char *value, ff_error *error) {
  bool policy = !strcmp(name, sim_choice_infos[SIM_CHOICE_PREFETCH].name) ||
                !strcmp(name, sim_choice_infos[SIM_CHOICE_EVICT].name);
  const char *slash = policy ? strrchr(value, '/') : NULL;
  char shown[SIM_LABEL_LENGTH];
  snprintf(shown, sizeof shown, "%s=%s", name, slash ? slash + 1 : value);
  return add_text(c->label, sizeof c->label, "+", shown, error);
}

typedef struct reading {
  const manager *manager;
  const machine_spec *machine;
  sim_choice *choice;
  bool own[SIM_CHOICE_COUNT]; /* given behind the manager */
  char set[SIM_SET_LENGTH];   /* values of the machine, given behind it */
  ff_error *error;
} reading;

static ff_status read_setting(reading *r, const char *name, const char *text) {
  if (!spec_param_find(name)) return fail_no_choice(name, r->error);
  size_t length = strlen(name);
  for (const char *at = r->set; *at;) {
    if (!strncmp(at, name, length) && at[length] == '=')
      return ff_fail(r->error, FF_INVALID, "'%s' is given twice", name);
    at += strcspn(at, ",");
    at += *at == ',';
  }
  return add_text(r->set, sizeof r->set, ",", text, r->error);
}

/* "NAME=VALUE" behind a manager. */
static ff_status read_part(reading *r, const char *part) {
  const char *equals = strchr(part, '=');
  if (!equals || equals == part || !equals[1] || strchr(part, ','))
    return ff_fail(r->error, FF_INVALID, "'%s' is not NAME=VALUE", part);
  char *name = strndup(part, (size_t)(equals - part));
  const char *value = equals + 1;
  int id = choice_find(name);
  ff_status status;
  if (id < 0) status = read_setting(r, name, part);
  else if (r->own[id]) status = ff_fail(r->error, FF_INVALID, "'%s' is given twice", name);
  else if (sim_choice_infos[id].pages && r->manager->placement != MANAGER_PAGED)
    status = ff_fail(r->error, FF_INVALID, "'%s' says nothing to %s, which does not page", name, r->manager->name);
  else if ((id == SIM_CHOICE_RANGES || id == SIM_CHOICE_GAP) && !r->manager->ranges)
    status =
        ff_fail(r->error, FF_INVALID, "'%s' says nothing to %s, which has no partial pages", name, r->manager->name);
  else {
    r->own[id] = true;
    r->choice->choices.text[id][0] = '\0';
    status = add_text(r->choice->choices.text[id], SIM_CHOICE_LENGTH, "", value, r->error);
    if (!status) status = sim_choice_check((sim_choice_id)id, value, r->machine, r->error);
    if (status) status = ff_fail_at(r->error, status, name);
  }
  if (!status) status = add_label(r->choice, name, value, r->error);
  free(name);
  return status;
}

static ff_status read_parts(reading *r, char *parts) {
  while (parts) {
    char *part = strsep(&parts, "+");
    ff_status status = read_part(r, part);
    if (status) return status;
  }
  return FF_OK;
}

static bool chosen(const sim_choices *c, sim_choice_id id) { return c->text[id][0]; }

/* What was said for all, then the link, then what was said behind the manager: the last one counts. */
static ff_status join_settings(reading *r, const sim_choices *given) {
  sim_choices *c = &r->choice->choices;
  char link[SIM_SET_LENGTH] = "";
  ff_status status =
      chosen(c, SIM_CHOICE_LINK) ? link_settings(c->text[SIM_CHOICE_LINK], link, sizeof link, r->error) : FF_OK;
  c->set[0] = '\0';
  const char *parts[] = {given->set, link, r->set};
  for (int i = 0; i < 3 && !status; i++)
    if (*parts[i]) status = add_text(c->set, sizeof c->set, ",", parts[i], r->error);
  return status ? status : check_settings(c->set, r->machine, r->error);
}

static const char *text_or_null(const sim_choices *c, sim_choice_id id) { return chosen(c, id) ? c->text[id] : NULL; }

static ff_status make_options(reading *r) {
  sim_choice *choice = r->choice;
  const sim_choices *c = &choice->choices;
  sim_options *o = &choice->options;
  *o = (sim_options){.spec = r->machine,
                     .manager = choice->manager,
                     .label = choice->label,
                     .set = c->set,
                     .faults = text_or_null(c, SIM_CHOICE_FAULTS),
                     .page = text_or_null(c, SIM_CHOICE_PAGE),
                     .advise = text_or_null(c, SIM_CHOICE_ADVISE),
                     .prefetch = text_or_null(c, SIM_CHOICE_PREFETCH),
                     .evict = text_or_null(c, SIM_CHOICE_EVICT),
                     .access_counters = text_or_null(c, SIM_CHOICE_ACCESS_COUNTERS),
                     .l2_flush = !strcmp(c->text[SIM_CHOICE_L2], "flush"),
                     .write_back_overlaps = !strcmp(c->text[SIM_CHOICE_WRITE_BACK], "overlapped")};
  if (chosen(c, SIM_CHOICE_UNIT) && ff_parse_bytes(c->text[SIM_CHOICE_UNIT], 0, &o->unit_bytes, r->error))
    return r->error->status;
  if (chosen(c, SIM_CHOICE_RANGES) && sim_ranges_read(c->text[SIM_CHOICE_RANGES], &o->ranges, r->error))
    return r->error->status;
  if (chosen(c, SIM_CHOICE_SAMPLE) && sim_sample_read(c->text[SIM_CHOICE_SAMPLE], &o->sample, r->error))
    return r->error->status;
  if (chosen(c, SIM_CHOICE_MODEL_THREADS) && sim_threads_read(c->text[SIM_CHOICE_MODEL_THREADS], &o->threads, r->error))
    return r->error->status;
  o->gap_chosen = chosen(c, SIM_CHOICE_GAP);
  if (o->gap_chosen && sim_gap_read(c->text[SIM_CHOICE_GAP], &o->gap_bytes, r->error)) return r->error->status;
  o->map = text_or_null(c, SIM_CHOICE_MAP);
  if (chosen(c, SIM_CHOICE_OFFLOAD) && sim_offload_read(c->text[SIM_CHOICE_OFFLOAD], &o->offload, r->error))
    return r->error->status;
  o->watermarks_chosen = chosen(c, SIM_CHOICE_WATERMARK);
  if (o->watermarks_chosen && sim_watermark_read(c->text[SIM_CHOICE_WATERMARK], &o->watermarks, r->error))
    return r->error->status;
  if (chosen(c, SIM_CHOICE_HOST_MEMORY) && sim_host_memory_read(c->text[SIM_CHOICE_HOST_MEMORY], r->machine,
                                                                &o->host_memory, &o->host_memory_share, r->error))
    return r->error->status;
  if (!chosen(c, SIM_CHOICE_GPU_MEMORY)) return FF_OK;
  return sim_memory_read(c->text[SIM_CHOICE_GPU_MEMORY], r->machine, &o->gpu_memory, &o->gpu_memory_share, r->error);
}

ff_status sim_choice_read(const char *text, const sim_choices *given, const machine_spec *machine, sim_choice *choice,
                          ff_error *error) {
  ff_error unused;
  reading r = {.machine = machine, .choice = choice, .error = error ? error : &unused};
  *choice = (sim_choice){.choices = *given};
  char *whole = ff_strdup(text), *rest = whole, *name = strsep(&rest, "+");
  r.manager = manager_find(name);
  ff_status status = r.manager ? FF_OK : fail_no_manager(name, r.error);
  if (!status) status = add_text(choice->manager, sizeof choice->manager, "", name, r.error);
  if (!status) status = add_text(choice->label, sizeof choice->label, "", name, r.error);
  if (!status) status = read_parts(&r, rest);
  if (!status) status = join_settings(&r, given);
  if (!status) status = make_options(&r);
  free(whole);
  return status;
}

ff_status sim_choice_try(sim_choice *choice, bool recorded, ff_error *error) {
  trace_program *program = trace_program_create(0);
  trace_future *future = trace_future_create();
  sim *made = NULL;
  choice->options.future = future;
  choice->options.offloading = recorded ? &sim_offloading_nothing : NULL;
  ff_status status = sim_create(program, &choice->options, &made, error);
  sim_free(made);
  choice->options.future = NULL;
  choice->options.offloading = NULL;
  trace_future_free(future);
  trace_program_free(program);
  return status;
}
