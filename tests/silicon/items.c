/* SPDX-License-Identifier: Apache-2.0 */
/* See items.h. The texts of functions and sums are written here, those of forms by tests/compiled/program.c. */
#include "items.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "forms.h"
#include "program.h"

enum { FORM_RUNS = 4, FORM_SLOTS = 4, QUICK_STEP = 24, WARPS = 32, SUM_BLOCK = 128 };

static program_forms *forms; /* made once, kept */

/* ---- rows ---- */

/* How far off the manual lets a result be, by the function. */
typedef enum bound_kind { BOUND_ULP, BOUND_OF_LG2, BOUND_OF_SINE, BOUND_RELATIVE, BOUND_ABSOLUTE } bound_kind;

static const struct function {
  const char *instruction;
  char type; /* s: f32, h: f16, b: bf16 */
  double (*exact)(double x);
  bound_kind bound;
  double limit; /* BOUND_ULP: so many; else 2^limit */
} functions[] = {
    {"ex2.approx.f32", 's', exp2, BOUND_ULP, 2},
    {"ex2.approx.ftz.f32", 's', exp2, BOUND_ULP, 2},
    {"lg2.approx.f32", 's', log2, BOUND_OF_LG2, -22},
    {"lg2.approx.ftz.f32", 's', log2, BOUND_OF_LG2, -22},
    {"sin.approx.f32", 's', sin, BOUND_OF_SINE, 0},
    {"sin.approx.ftz.f32", 's', sin, BOUND_OF_SINE, 0},
    {"cos.approx.f32", 's', cos, BOUND_OF_SINE, 0},
    {"cos.approx.ftz.f32", 's', cos, BOUND_OF_SINE, 0},
    {"rcp.approx.f32", 's', NULL, BOUND_ULP, 1},
    {"rcp.approx.ftz.f32", 's', NULL, BOUND_ULP, 1},
    {"rsqrt.approx.f32", 's', NULL, BOUND_RELATIVE, -22.9},
    {"rsqrt.approx.ftz.f32", 's', NULL, BOUND_RELATIVE, -22.9},
    {"sqrt.approx.f32", 's', sqrt, BOUND_RELATIVE, -23},
    {"sqrt.approx.ftz.f32", 's', sqrt, BOUND_RELATIVE, -23},
    {"tanh.approx.f32", 's', tanh, BOUND_RELATIVE, -11},
    {"ex2.approx.f16", 'h', exp2, BOUND_RELATIVE, -9.9},
    {"ex2.approx.ftz.bf16", 'b', exp2, BOUND_RELATIVE, -7},
    {"tanh.approx.f16", 'h', tanh, BOUND_ABSOLUTE, -10.987},
    {"tanh.approx.bf16", 'b', tanh, BOUND_ABSOLUTE, -8},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

/* Registers per lane. A wgmma has A and D in registers, and 64 words of B in shared memory. */
static const struct sum {
  const char *instruction, *type, *sum_type;
  uint8_t a, b, c;
  bool warpgroup;
} sums[] = {
    {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", "f16", "f32", 2, 1, 4, false},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "f16", "f32", 4, 2, 4, false},
    {"mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16", "f16", "f16", 2, 1, 2, false},
    {"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", "f16", "f16", 4, 2, 2, false},
    {"mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", "f16", "f32", 2, 2, 8, false},
    {"mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", "bf16", "f32", 2, 1, 4, false},
    {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "bf16", "f32", 4, 2, 4, false},
    {"mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", "tf32", "f32", 2, 1, 4, false},
    {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "tf32", "f32", 4, 2, 4, false},
    {"mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", "e4m3", "f32", 4, 2, 4, false},
    {"mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32", "e5m2", "f32", 4, 2, 4, false},
    {"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "f64", "f64", 1, 1, 2, false},
    {"mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64", "f64", "f64", 8, 4, 4, false},
    {"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", "f16", "f32", 4, 0, 4, true},
    {"wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16", "f16", "f16", 4, 0, 2, true},
    {"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16", "bf16", "f32", 4, 0, 4, true},
    {"wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32", "tf32", "f32", 4, 0, 4, true},
    {"wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3", "e4m3", "f32", 4, 0, 4, true},
    {"wgmma.mma_async.sync.aligned.m64n8k32.f32.e5m2.e5m2", "e5m2", "f32", 4, 0, 4, true},
    {"wgmma.mma_async.sync.aligned.m64n8k32.f16.e4m3.e4m3", "e4m3", "f16", 4, 0, 2, true},
};
enum { SUMS = sizeof sums / sizeof *sums };

static bool is_wide(const struct sum *s) { return !strcmp(s->type, "f64"); }

/* ---- the list ---- */

static void add(item_list *list, const item *it, const char *name) {
  if (list->count == list->room) {
    list->room = list->room ? 2 * list->room : 256;
    list->items = ff_realloc(list->items, list->room * sizeof *list->items);
  }
  item *made = &list->items[list->count++];
  *made = *it;
  snprintf(made->name, sizeof made->name, "%s", name);
}

/* Those without exact bits are compared as functions, or have a bound in the conformance cases. */
static bool is_exact(const char *form) { return !strstr(form, ".approx") && !strstr(form, ".full"); }

static void add_forms(item_list *list, bool quick) {
  item it = {.kind = ITEM_FORM,
             .input = INPUT_MIX,
             .grid = 2,
             .block = 96,
             .runs = quick ? 1 : FORM_RUNS,
             .input_bytes = PROGRAM_TABLE,
             .output_bytes = FORM_SLOTS * PROGRAM_THREADS * 8,
             .word = 8};
  for (it.number = 0; it.number < program_forms_count(forms, false); it.number += quick ? QUICK_STEP : 1)
    if (is_exact(forms->items.items[it.number].text)) add(list, &it, forms->items.items[it.number].text);
}

static void add_functions(item_list *list, bool quick) {
  for (uint32_t n = 0; n < FUNCTIONS; n++) {
    bool single = functions[n].type == 's';
    size_t count = !single ? 1 << 16 : quick ? 1 << 12 : 1 << 20;
    item it = {.kind = ITEM_FUNCTION, .number = n, .block = 256, .grid = (uint32_t)(count / 256), .runs = 1};
    it.word = single ? 4 : 2;
    it.input_bytes = it.output_bytes = count * it.word;
    for (it.input = single ? INPUT_GRID : INPUT_ALL; it.input <= (single ? INPUT_NEAR : INPUT_ALL); it.input++)
      add(list, &it, functions[n].instruction);
  }
}

static void add_sums(item_list *list, bool quick) {
  for (uint32_t n = 0; n < SUMS; n++) {
    const struct sum *s = &sums[n];
    uint32_t most = s->a > s->c ? s->a : s->c, size = is_wide(s) ? 8 : 4, warps = quick ? 4 : WARPS;
    item it = {.kind = ITEM_SUM, .number = n, .input = INPUT_SUMS, .types = {s->type, s->sum_type}};
    it.block = SUM_BLOCK;
    it.grid = warps * 32 / SUM_BLOCK;
    it.runs = INPUT_SUM_RUNS;
    it.input_bytes = (size_t)3 * most * 32 * warps * size;
    it.output_bytes = (size_t)s->c * 32 * warps * size;
    it.word = !strcmp(s->sum_type, "f16") ? 2 : size;
    add(list, &it, s->instruction);
  }
}

item_list items_make(bool quick) {
  item_list list = {0};
  if (!forms) forms = program_forms_make();
  add_sums(&list, quick);
  add_functions(&list, quick);
  add_forms(&list, quick);
  return list;
}

/* ---- texts ---- */

static void put_head(ff_text *out, uint32_t compute) {
  ff_text_add(out, ".version 8.7\n.target sm_%u%s\n.address_size 64\n", compute, compute >= 90 ? "a" : "");
}

static void put_entry(ff_text *out, uint32_t compute) {
  put_head(out, compute);
  ff_text_add(out,
              ".visible .entry k(.param .u64 po, .param .u64 pt, .param .u32 pn, .param .f32 pf)\n{\n"
              ".reg .u64 %%out, %%in, %%x, %%third, %%b; .reg .u32 %%n, %%i, %%w, %%l, %%t; .reg .pred %%p;\n"
              "ld.param.u64 %%out, [po]; ld.param.u64 %%in, [pt]; ld.param.u32 %%n, [pn]; cvt.u64.u32 %%third, %%n;\n"
              "mov.u32 %%i, %%ctaid.x; mov.u32 %%w, %%ntid.x; mov.u32 %%t, %%tid.x; mad.lo.u32 %%i, %%i, %%w, %%t;\n"
              "shr.u32 %%w, %%i, 5; and.b32 %%l, %%i, 31;\n");
}

static void put_function(ff_text *out, const struct function *f) {
  const char *type = f->type == 's' ? "f32" : "b16";
  uint32_t size = f->type == 's' ? 4 : 2;
  ff_text_add(out, ".reg .%s %%a, %%d;\nmad.wide.u32 %%x, %%i, %u, %%in; ld.global.%s %%a, [%%x];\n%s %%d, %%a;\n",
              type, size, type, f->instruction);
  ff_text_add(out, "mad.wide.u32 %%x, %%i, %u, %%out; st.global.%s [%%x], %%d;\nret;\n}\n", size, type);
}

/* Register r of lane l of warp w stands at (w * count + r) * 32 + l. */
static void put_access(ff_text *out, bool store, const char *type, uint32_t size, char letter, uint32_t count) {
  for (uint32_t r = 0; r < count; r++) {
    ff_text_add(out, "mad.lo.u32 %%t, %%w, %u, %u; mad.lo.u32 %%t, %%t, 32, %%l; mad.wide.u32 %%x, %%t, %u, %s; ",
                count, r, size, store ? "%out" : "%in");
    if (store) ff_text_add(out, "st.global.%s [%%x], %%%c%u;\n", type, letter, r);
    else ff_text_add(out, "ld.global.%s %%%c%u, [%%x];\n", type, letter, r);
  }
}

static void put_vector(ff_text *out, char letter, uint32_t count) {
  for (uint32_t r = 0; r < count; r++) ff_text_add(out, "%s%%%c%u", r ? ", " : "{", letter, r);
  ff_text_add(out, "}");
}

/* Two core matrices of B side by side: 8 rows of 16 bytes each (PTX ISA, "Shared Memory Matrix Layout", no swizzle). */
static void put_shared_b(ff_text *out) {
  ff_text_add(
      out,
      ".shared .align 1024 .b32 area[64];\nmov.u32 %%t, %%tid.x; setp.lt.u32 %%p, %%t, 64; mov.u32 %%n, %%ctaid.x; mad.lo.u32 %%n, %%n, 64, %%t;\n"
      "mad.wide.u32 %%x, %%n, 4, %%in; mov.u32 %%n, area; mad.lo.u32 %%t, %%t, 4, %%n;\n@%%p ld.global.b32 %%i, [%%x];\n@%%p st.shared.b32 [%%t], %%i;\n"
      "fence.proxy.async; bar.sync 0; shr.u32 %%n, %%n, 4; and.b32 %%n, %%n, 0x3fff; cvt.u64.u32 %%b, %%n; or.b64 %%b, %%b, 0x1000080000;\n");
}

static void put_wgmma(ff_text *out, const struct sum *s) {
  bool turns = !strcmp(s->type, "f16") || !strcmp(s->type, "bf16"); /* these say whether B is transposed */
  ff_text_add(out, "setp.eq.u32 %%p, 0, 0; wgmma.fence.sync.aligned;\n%s ", s->instruction);
  put_vector(out, 'c', s->c);
  ff_text_add(out, ", ");
  put_vector(out, 'a', s->a);
  ff_text_add(out, ", %%b, %%p, 1, 1%s;\nwgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n",
              turns ? ", 0" : "");
}

static void put_sum(ff_text *out, const struct sum *s) {
  uint32_t size = is_wide(s) ? 8 : 4;
  const char *type = is_wide(s) ? "f64" : "b32", *c_type = strcmp(s->sum_type, "f32") ? type : "f32";
  ff_text_add(out, ".reg .%s %%a<8>, %%b<8>; .reg .%s %%c<8>;\n", type, c_type);
  put_access(out, false, type, size, 'a', s->a);
  ff_text_add(out, "add.u64 %%in, %%in, %%third;\n");
  if (s->warpgroup) put_shared_b(out);
  put_access(out, false, type, size, 'b', s->b);
  ff_text_add(out, "add.u64 %%in, %%in, %%third;\n");
  put_access(out, false, c_type, size, 'c', s->c);
  if (s->warpgroup) {
    put_wgmma(out, s);
  } else {
    ff_text_add(out, "%s ", s->instruction);
    for (const char *letter = "cabc"; *letter; letter++) {
      put_vector(out, *letter, *letter == 'a' ? s->a : *letter == 'b' ? s->b : s->c);
      ff_text_add(out, letter[1] ? ", " : ";\n");
    }
  }
  put_access(out, true, c_type, size, 'c', s->c);
  ff_text_add(out, "ret;\n}\n");
}

/* The same text for the device's architecture. */
static ff_text form_text(const item *it, uint32_t compute) {
  ff_text whole = program_sweep(forms, false, it->number, 1, 12345), out = {0};
  const char *rest = strstr(whole.chars, ".address_size");
  ff_text_add(&out, ".version 8.7\n.target sm_%u%s\n", compute, compute >= 90 ? "a" : "");
  ff_text_add_bytes(&out, rest, strlen(rest));
  free(whole.chars);
  return out;
}

ff_text item_text(const item *it, uint32_t compute) {
  ff_text out = {0};
  if (it->kind == ITEM_FORM) return form_text(it, compute);
  put_entry(&out, compute);
  if (it->kind == ITEM_FUNCTION) put_function(&out, &functions[it->number]);
  else put_sum(&out, &sums[it->number]);
  return out;
}

/* ---- functions ---- */

bool item_is_bf16(const item *it) { return functions[it->number].type == 'b'; }

double item_exact(const item *it, double x) {
  const struct function *f = &functions[it->number];
  if (f->exact) return f->exact(x);
  return strncmp(f->instruction, "rsqrt", 5) ? 1 / x : 1 / sqrt(x);
}

double item_bound(const item *it, double x, double exact) {
  const struct function *f = &functions[it->number];
  double size = fabs(exact);
  switch (f->bound) {
  case BOUND_ULP: return f->limit * ldexp(1, ilogb(size) - 23);
  case BOUND_OF_LG2: return x > 0.5 && x < 2 ? exp2(f->limit) : size * exp2(f->limit);
  case BOUND_OF_SINE: return fabs(x) <= 2 * M_PI ? exp2(-20.5) : fabs(x) <= 100 * M_PI ? exp2(-14.7) : 0;
  case BOUND_RELATIVE: return size * exp2(f->limit);
  default: return exp2(f->limit);
  }
}
