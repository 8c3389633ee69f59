/* SPDX-License-Identifier: Apache-2.0 */
/* What was found, as text, JSON and a picture. The same result gives the same bytes, but for the
 * seconds it took. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/probe.h"
#include "report/svg.h"

enum { FIRST_PAGE = 10, LAST_PAGE = 21 }; /* of the table of colours: 1 KiB to 2 MiB */

static const char *const singular[PROBE_KINDS] = {"bank", "set"};

/* ---- text ---- */

static void add_bits(ff_text *out, uint64_t mask) {
  const char *between = "";
  for (int bit = 0; bit < 64; bit++) {
    if (!(mask >> bit & 1)) continue;
    ff_text_add(out, "%s%d", between, bit);
    between = " ";
  }
}

static void add_verdict(const probe_finding *f, const char *name, ff_text *out) {
  const recover_result *m = &f->map;
  switch (m->verdict) {
  case RECOVER_LINEAR: break;
  case RECOVER_PARTLY:
    ff_text_add(
        out,
        "  not linear: pairs that these masks allow share a %s %.3g times more rarely than they would; the rest of the map is no XOR (a number of modules that is no power of two?)\n",
        name, exp2(m->residue));
    break;
  case RECOVER_NOT_LINEAR:
    ff_text_add(
        out, "  not linear: no XOR of address bits is the same for all pairs that share a %s; nullity %u of %d bits\n",
        name, m->nullity, __builtin_popcountll(m->bits));
    break;
  case RECOVER_TOO_FEW:
    ff_text_add(out, "  too few pairs to say: %llu conflicts, and %u address bits that vary\n",
                (unsigned long long)f->conflicts, (unsigned)__builtin_popcountll(m->bits));
    break;
  }
}

static void add_finding(const probe_finding *f, probe_kind kind, ff_text *out) {
  const recover_result *m = &f->map;
  ff_text_add(out, "\n%s\n", probe_kind_name(kind));
  if (f->problem[0]) {
    ff_text_add(out, "  not found: %s\n", f->problem);
    return;
  }
  ff_text_add(out, "  %llu conflicts among %llu pairs (1 in %.0f); a load takes %.0f cycles, %s %.0f\n",
              (unsigned long long)f->conflicts, (unsigned long long)f->tested,
              (double)f->tested / (double)(f->conflicts ? f->conflicts : 1), f->fast,
              kind == PROBE_BANKS ? "in a bank whose rows alternate" : "pushed out of the L2", f->slow);
  if (f->ways) ff_text_add(out, "  %u lines of a set push one out\n", f->ways);
  for (uint32_t i = 0; i < m->rank; i++) {
    ff_text_add(out, "  %s bit %-2u = XOR of address bits ", singular[kind], i);
    add_bits(out, m->masks[i].bits);
    ff_text_add(out, "\n");
  }
  add_verdict(f, singular[kind], out);
  if (!m->rank) return;
  ff_text_add(
      out, "  rank %u (%.0f %s), nullity %u, confidence %.4f, false pairs %.2f %%, chance of a wrong mask below %.1g\n",
      m->rank, exp2(m->rank), probe_kind_name(kind), m->nullity, m->confidence, 100 * m->false_pairs, m->spurious);
  if (f->moved_tested)
    ff_text_add(out, "  %u of %u conflicts stay one when both addresses are moved by the same XOR\n", f->moved,
                f->moved_tested);
}

static void add_modules(const probe_result *r, ff_text *out) {
  char size[32];
  ff_text_add(out, "\nmemory modules: %u (what bank and set have in common)\n", UINT32_C(1) << r->module_rank);
  for (uint32_t i = 0; i < r->module_rank; i++) {
    ff_text_add(out, "  module bit %-2u = XOR of address bits ", i);
    add_bits(out, r->modules[i].bits);
    ff_text_add(out, "\n");
  }
  ff_text_add(out, "\ncolours (pages that share no module) by page size\n");
  for (uint32_t bits = FIRST_PAGE; bits <= LAST_PAGE; bits++) {
    uint32_t colours = probe_colours(r, bits);
    ff_text_add(out, "  %-10s %u\n", ff_format_bytes(UINT64_C(1) << bits, size, sizeof size), colours);
    if (colours == 1) break;
  }
}

void probe_text(const probe_result *r, ff_text *out) {
  char size[32], span[32];
  ff_text_add(out, "%s", r->device);
  if (r->memory_bytes) {
    ff_text_add(out, ": %s looked at, ", ff_format_bytes(r->memory_bytes, size, sizeof size));
    if (r->physical) ff_text_add(out, "physical addresses known");
    else
      ff_text_add(out, "physical addresses known within %s only: bits above are in no mask",
                  ff_format_bytes(r->span, span, sizeof span));
  }
  ff_text_add(out, "\n");
  for (int kind = 0; kind < PROBE_KINDS; kind++)
    if (r->kinds[kind].done || r->kinds[kind].problem[0]) add_finding(&r->kinds[kind], (probe_kind)kind, out);
  if (r->modules_known) add_modules(r, out);
}

/* ---- JSON ---- */

static json_t *bits_of(uint64_t mask) {
  json_t *list = json_array();
  for (int bit = 0; bit < 64; bit++)
    if (mask >> bit & 1) json_array_append_new(list, json_integer(bit));
  return list;
}

static json_t *masks_of(const recover_mask *masks, uint32_t count) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < count; i++) json_array_append_new(list, bits_of(masks[i].bits));
  return list;
}

static json_t *number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static void add_histogram(json_t *o, const probe_histogram *h) {
  json_t *bars = json_array();
  for (int i = 0; i < PROBE_BARS; i++) json_array_append_new(bars, json_integer(h->bars[i]));
  json_object_set_new(o, "histogram",
                      json_pack("{s:o, s:o, s:o}", "low", number(h->low), "width", number(h->width), "bars", bars));
}

static json_t *finding_of(const probe_finding *f) {
  const recover_result *m = &f->map;
  json_t *o = json_object();
  if (f->problem[0]) {
    json_object_set_new(o, "problem", json_stringn(f->problem, strnlen(f->problem, sizeof f->problem)));
    add_histogram(o, &f->times);
    return o;
  }
  json_object_set_new(o, "verdict", json_string(recover_verdict_name(m->verdict)));
  json_object_set_new(o, "masks", masks_of(m->masks, m->rank));
  json_object_set_new(o, "rank", json_integer(m->rank));
  json_object_set_new(o, "nullity", json_integer(m->nullity));
  json_object_set_new(o, "confidence", number(m->confidence));
  json_object_set_new(o, "false_pairs", number(m->false_pairs));
  json_object_set_new(o, "missed", number(m->missed));
  json_object_set_new(o, "residue_bits", number(m->residue));
  json_object_set_new(o, "pairs", json_integer((json_int_t)f->tested));
  json_object_set_new(o, "conflicts", json_integer((json_int_t)f->conflicts));
  json_object_set_new(o, "fast_cycles", number(f->fast));
  json_object_set_new(o, "slow_cycles", number(f->slow));
  json_object_set_new(o, "threshold_cycles", number(f->threshold));
  json_object_set_new(o, "moved", json_integer(f->moved));
  json_object_set_new(o, "moved_tested", json_integer(f->moved_tested));
  if (f->ways) json_object_set_new(o, "ways", json_integer(f->ways));
  json_object_set_new(o, "seconds", number(f->seconds));
  add_histogram(o, &f->times);
  return o;
}

static json_t *modules_of(const probe_result *r) {
  json_t *o = json_object(), *colours = json_object();
  char name[24];
  for (uint32_t bits = FIRST_PAGE; bits <= LAST_PAGE; bits++) {
    snprintf(name, sizeof name, "%llu", 1ull << bits);
    json_object_set_new(colours, name, json_integer(probe_colours(r, bits)));
  }
  json_object_set_new(o, "count", json_integer((json_int_t)1 << r->module_rank));
  json_object_set_new(o, "masks", masks_of(r->modules, r->module_rank));
  json_object_set_new(o, "colours_by_page_bytes", colours);
  return o;
}

/* Names may be no UTF-8: such bytes become '?'. */
static json_t *text_of(const char *text) {
  ff_text clean = {0};
  for (; *text; text++)
    ff_text_add(&clean, "%c", (unsigned char)*text < 32 || (unsigned char)*text > 126 ? '?' : *text);
  json_t *out = json_string(clean.chars ? clean.chars : "");
  free(clean.chars);
  return out;
}

void probe_json(const probe_result *r, const char *target, ff_text *out) {
  json_t *root = json_object();
  json_object_set_new(root, "target", text_of(target));
  json_object_set_new(root, "gpu", text_of(r->device));
  json_object_set_new(root, "virtual", json_boolean(r->is_virtual));
  json_object_set_new(root, "physical_addresses", json_boolean(r->physical));
  json_object_set_new(root, "memory_bytes", json_integer((json_int_t)r->memory_bytes));
  json_object_set_new(root, "span_bytes", json_integer((json_int_t)r->span));
  for (int kind = 0; kind < PROBE_KINDS; kind++)
    if (r->kinds[kind].done || r->kinds[kind].problem[0])
      json_object_set_new(root, probe_kind_name((probe_kind)kind), finding_of(&r->kinds[kind]));
  if (r->modules_known) json_object_set_new(root, "modules", modules_of(r));
  char *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
  ff_text_add(out, "%s\n", text ? text : "{}");
  free(text);
  json_decref(root);
}

/* ---- the picture ---- */

enum { WIDTH = 820, PANEL = 240, LEFT = 70, RIGHT = 30, TOP = 50, PLOT = 160 };

/* Counts on a logarithmic scale, as the slow pairs are one in hundreds. */
static void panel(const probe_finding *f, probe_kind kind, double top, ff_text *out) {
  const probe_histogram *h = &f->times;
  double most = 10, bar = (double)(WIDTH - LEFT - RIGHT) / PROBE_BARS, bottom = top + PLOT;
  char text[96];
  for (int i = 0; i < PROBE_BARS; i++) most = fmax(most, h->bars[i]);
  double height = PLOT / (log10(most) + 0.3);
  for (double count = 1; count <= most; count *= 10) {
    double y = bottom - (log10(count) + 0.3) * height;
    svg_line(out, LEFT, y, WIDTH - RIGHT, y, "stroke=\"#ddd\"");
    snprintf(text, sizeof text, "%.0f", count);
    svg_text(out, LEFT - 6, y + 4, "text-anchor=\"end\" font-size=\"12\"", text);
  }
  for (int i = 0; i < PROBE_BARS; i++) {
    double tall = h->bars[i] ? (log10(h->bars[i]) + 0.3) * height : 0;
    if (tall > 0)
      svg_rect(out, LEFT + i * bar, bottom - tall, bar, tall,
               h->low + (i + 0.5) * h->width > f->threshold ? "fill=\"#d55e00\"" : "fill=\"#0072b2\"");
  }
  svg_line(out, LEFT, bottom, WIDTH - RIGHT, bottom, "stroke=\"#444\"");
  for (int i = 0; i <= 4; i++) {
    snprintf(text, sizeof text, "%.0f", h->low + i * PROBE_BARS / 4.0 * h->width);
    svg_text(out, LEFT + i * (WIDTH - LEFT - RIGHT) / 4.0, bottom + 16, "text-anchor=\"middle\" font-size=\"12\"",
             text);
  }
  double x = LEFT + (f->threshold - h->low) / h->width * bar;
  if (x > LEFT && x < WIDTH - RIGHT) svg_line(out, x, top, x, bottom, "stroke=\"#444\" stroke-dasharray=\"4 3\"");
  snprintf(text, sizeof text, "cycles of a load: %s",
           kind == PROBE_BANKS ? "two addresses by turns" : "of a line, others read in between");
  svg_text(out, (WIDTH + LEFT - RIGHT) / 2., bottom + 34, "text-anchor=\"middle\" font-size=\"12\"", text);
  svg_text_turned(out, 18, (top + bottom) / 2, -90, "text-anchor=\"middle\" font-size=\"12\"", "measured so often");
}

void probe_picture(const probe_result *r, const char *target, ff_text *out) {
  char title[160];
  int panels = r->kinds[0].done + r->kinds[1].done, at = 0;
  snprintf(title, sizeof title, "%.60s (%.60s): access times", r->device, target);
  svg_begin(WIDTH, TOP + (panels ? panels : 1) * PANEL, title, out);
  for (int kind = 0; kind < PROBE_KINDS; kind++)
    if (r->kinds[kind].done) panel(&r->kinds[kind], (probe_kind)kind, TOP + at++ * PANEL, out);
  svg_end(out);
}
