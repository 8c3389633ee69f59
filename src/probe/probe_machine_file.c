/* SPDX-License-Identifier: Apache-2.0 */
/* The machine file with the hash that was found: the base's text, whose lines of the address map are replaced.
 *
 * The text is a machine file that loads; nothing of it but the map differs from the base's. */
#include <stdio.h>
#include <string.h>

#include "machine/spec/spec_table.h"
#include "probe/probe.h"

static const char *const replaced[] = {"address_map", "module_masks", "bank_masks",
                                       "set_masks",   "piece_bytes",  "polynomial"};

static void add_masks(ff_text *out, const char *name, const recover_mask *masks, uint32_t count, const char *source) {
  ff_text_add(out, "  %s: {value: [", name);
  for (uint32_t i = 0; i < count; i++) {
    const char *between = i ? ", [" : "[";
    for (int bit = 0; bit < 64; bit++)
      if (masks[i].bits >> bit & 1) {
        ff_text_add(out, "%s%d", between, bit);
        between = ", ";
      }
    ff_text_add(out, "]");
  }
  ff_text_add(out, "], source: \"%s\"}\n", source);
}

static void add_map(ff_text *out, const probe_result *r, const char *target) {
  char source[200], clean[64];
  size_t i = 0;
  for (; target[i] && i + 1 < sizeof clean; i++)
    clean[i] = target[i] < 32 || target[i] > 126 || target[i] == '"' || target[i] == '\\' ? '?' : target[i];
  clean[i] = '\0';
  snprintf(source, sizeof source, "measured by farfault probe on %s", clean);
  ff_text_add(out, "  address_map: {value: xor, source: \"%s\"}\n", source);
  add_masks(out, "module_masks", r->modules, r->module_rank, source);
  add_masks(out, "bank_masks", r->kinds[PROBE_BANKS].map.masks, r->kinds[PROBE_BANKS].map.rank, source);
  add_masks(out, "set_masks", r->kinds[PROBE_SETS].map.masks, r->kinds[PROBE_SETS].map.rank, source);
}

static bool is_replaced(const char *line, size_t length) {
  size_t indent = 0;
  while (indent < length && line[indent] == ' ') indent++;
  for (size_t i = 0; i < sizeof replaced / sizeof *replaced; i++) {
    size_t name = strlen(replaced[i]);
    if (length - indent > name && !memcmp(line + indent, replaced[i], name) && line[indent + name] == ':') return true;
  }
  return false;
}

static ff_status check(const probe_result *r, ff_error *error) {
  if (!r->modules_known)
    return ff_fail(error, FF_INVALID,
                   "a machine file needs the masks of banks and of sets, and both must have been found");
  if (!r->physical)
    return ff_fail(error, FF_INVALID,
                   "physical addresses are known within %llu bytes only: the masks are too short for a machine file",
                   (unsigned long long)r->span);
  for (int kind = 0; kind < PROBE_KINDS; kind++)
    if (r->kinds[kind].map.verdict != RECOVER_LINEAR)
      return ff_fail(error, FF_INVALID, "the map of the %s is %s: a machine file of masks would be wrong",
                     probe_kind_name((probe_kind)kind), recover_verdict_name(r->kinds[kind].map.verdict));
  return FF_OK;
}

ff_status probe_write_machine(const probe_result *result, const char *base_name, const char *base_text,
                              size_t base_size, const char *target, ff_text *out, ff_error *error) {
  machine_spec checked;
  bool in_hash = false, written = false;
  ff_status status = check(result, error);
  if (status) return status;
  for (size_t at = 0; at < base_size;) {
    const char *line = base_text + at, *end = memchr(line, '\n', base_size - at);
    size_t length = end ? (size_t)(end - line) : base_size - at;
    at += length + (end != NULL);
    if (length && line[0] != ' ' && line[0] != '#') in_hash = length >= 5 && !memcmp(line, "hash:", 5);
    if (in_hash && is_replaced(line, length)) continue;
    ff_text_add_bytes(out, line, length);
    ff_text_add(out, "\n");
    if (in_hash && !written && length >= 5 && !memcmp(line, "hash:", 5)) {
      add_map(out, result, target);
      written = true;
    }
  }
  if (!written) {
    ff_text_add(out, "\nhash:\n");
    add_map(out, result, target);
  }
  status = spec_text_load(base_name, out->chars, out->length, &checked, error);
  return status ? ff_fail_at(error, FF_INVALID, "what was found does not fit the machine's other values") : FF_OK;
}
