/* SPDX-License-Identifier: Apache-2.0 */
/* Longer statements of random programs: what compiled code and the interpreter must hand to each other with more than a
 * line - masks that were made before lanes parted, loops left from within others, functions that call themselves,
 * pieces of local memory, chains of carries, barriers that count, asynchronous copies, clusters, matrices.
 *
 * Every block keeps what the others count on: where it ends, all lanes that came are there, and what it was given in
 * %r, %d, %h and %p may have other values. */
#include "blocks.h"

#include <stdio.h>
#include <string.h>

/* ---- membermasks in registers ---- */

/* Lanes whose number has the bit are one part, the others the other one. */
static const struct halves {
  uint32_t bit, without;
} halves[] = {{16, 0x0000ffff}, {8, 0x00ff00ff}, {4, 0x0f0f0f0f}, {2, 0x33333333}, {1, 0x55555555}};

/* Of b and c of shfl each as a constant or in a register. */
static void put_shuffle_operands(program *p) {
  static const uint32_t clamps[] = {31, 0, 0x1c03, 0x181f, 0x0f, 0x1e01, 7, 0x101f, 0x1f1f};
  if (one_in(p, 3)) PUT(p, "%%r%u, ", pick(p, R32));
  else PUT(p, "%u, ", pick(p, 34));
  if (one_in(p, 4)) PUT(p, "%%r%u", pick(p, R32));
  else PUT(p, "%u", CHOOSE(p, clamps));
}

/* What lanes of `mask` exchange; all of them are here, or will come to the same kind of instruction. */
static void put_sync(program *p, const char *mask, uint32_t kind) {
  static const char *const ways[] = {"up", "down", "bfly", "idx"}, *const votes[] = {"all", "any", "uni"},
                           *const reductions[] = {"add.u32", "min.u32", "max.s32",     "and.b32",    "or.b32",
                                                  "xor.b32", "min.f32", "max.abs.f32", "min.NaN.f32"};
  switch (kind) {
  case 0: PUT(p, "bar.warp.sync %s;\n", mask); break;
  case 1:
    PUT(p, "shfl.sync.%s.b32 %%r%u|%%p%u, %%r%u, ", CHOOSE(p, ways), pick(p, R32), pick(p, PREDS), pick(p, R32));
    put_shuffle_operands(p);
    PUT(p, ", %s;\n", mask);
    break;
  case 2:
    PUT(p, "shfl.sync.%s.b32 %%r%u, %%r%u, ", CHOOSE(p, ways), pick(p, R32), pick(p, R32));
    put_shuffle_operands(p);
    PUT(p, ", %s;\n", mask);
    break;
  case 3:
    PUT(p, "vote.sync.%s.pred %%p%u, %s%%p%u, %s;\n", CHOOSE(p, votes), pick(p, PREDS), pick(p, 2) ? "!" : "",
        pick(p, PREDS), mask);
    break;
  case 4: PUT(p, "vote.sync.ballot.b32 %%r%u, %%p%u, %s;\n", pick(p, R32), pick(p, PREDS), mask); break;
  case 5: PUT(p, "redux.sync.%s %%r%u, %%r%u, %s;\n", CHOOSE(p, reductions), pick(p, R32), pick(p, R32), mask); break;
  case 6: PUT(p, "match.any.sync.b32 %%r%u, %%r%u, %s;\n", pick(p, R32), pick(p, R32), mask); break;
  case 7: PUT(p, "match.any.sync.b64 %%r%u, %%d%u, %s;\n", pick(p, R32), pick(p, R64), mask); break;
  case 8:
    PUT(p, "match.all.sync.b32 %%r%u|%%p%u, %%r%u, %s;\n", pick(p, R32), pick(p, PREDS), pick(p, R32), mask);
    break;
  default: PUT(p, "elect.sync %%r%u|%%p%u, %s;\n", pick(p, R32), pick(p, PREDS), mask);
  }
}

static void put_syncs(program *p, const char *mask) {
  for (uint32_t n = 1 + pick(p, 3); n; n--) {
    put_sync(p, mask, pick(p, 10));
    if (one_in(p, 2)) PUT(p, "add.u32 %%r%u, %%r%u, %%r%u;\n", pick(p, R32), pick(p, R32), pick(p, R32));
  }
}

/* The mask of a lane's part in `mask`, and %u0: which of the two it is. Where all lanes of a warp are together the mask
 * need not be made from who is here, and then often is a constant per lane. */
static void put_parts(program *p, const char *mask, const struct halves *h, bool whole) {
  PUT(p, "mov.u32 %%k0, %%laneid;\nand.b32 %%k0, %%k0, %u;\nsetp.ne.u32 %%u0, %%k0, 0;\n", h->bit);
  PUT(p, "selp.b32 %s, %u, %u, %%u0;\n", mask, ~h->without, h->without);
  if (!whole) PUT(p, "activemask.b32 %%k1;\nand.b32 %s, %s, %%k1;\n", mask, mask);
}

/* Halves of a warp each by themselves, with masks that stood in a register when the lanes parted. */
static void put_masked(program *p) {
  const struct halves *h = &CHOOSE(p, halves);
  bool whole = p->entry && !p->depth;
  char mask[8];
  uint32_t label = p->labels++;
  if (p->masks >= MASKS) return;
  snprintf(mask, sizeof mask, "%%m%u", p->masks++);
  put_parts(p, mask, h, whole);
  if (whole && one_in(p, 2)) {
    put_statements(p, 2);
    PUT(p, "mov.u32 %%k0, %%laneid;\nand.b32 %%k0, %%k0, %u;\nsetp.ne.u32 %%u0, %%k0, 0;\n", h->bit);
  }
  if (one_in(p, 4)) {
    put_syncs(p, mask); /* all together, each group for itself */
  } else {
    PUT(p, "@%s%%u0 bra MA%u;\n", pick(p, 2) ? "!" : "", label);
    put_syncs(p, mask);
    if (pick(p, 4)) PUT(p, "bra MB%u;\n", label);
    else if (whole) PUT(p, "bar.warp.sync %s;\nbra MB%u;\n", mask, label);
    else PUT(p, "bra.uni MB%u;\n", label);
    PUT(p, "MA%u:\n", label);
    put_syncs(p, mask);
    PUT(p, "MB%u:\n", label);
  }
  if (whole && one_in(p, 2)) PUT(p, "bar.warp.sync -1;\n");
  p->masks--;
}

/* Lanes of one value each for themselves: groups by match, the mask of each is its own. */
static void put_groups(program *p) {
  if (p->masks >= MASKS) return;
  char mask[8];
  snprintf(mask, sizeof mask, "%%m%u", p->masks++);
  PUT(p, "activemask.b32 %%k1;\nand.b32 %%k2, %%r%u, %u;\nmatch.any.sync.b32 %s, %%k2, %%k1;\n", pick(p, R32),
      1 + pick(p, 7), mask);
  put_syncs(p, mask);
  if (one_in(p, 2)) { /* the least lane of each group does it */
    uint32_t label = p->labels++;
    PUT(p, "brev.b32 %%k3, %s;\nclz.b32 %%k3, %%k3;\nmov.u32 %%k4, %%laneid;\nsetp.ne.u32 %%u1, %%k3, %%k4;\n", mask);
    PUT(p, "@%%u1 bra GA%u;\npopc.b32 %%k5, %s;\natom.shared.add.u32 %%r%u, [sm+%u], %%k5;\nGA%u:\n", label, mask,
        pick(p, R32), 4 * pick(p, 64), label);
    PUT(p, "shfl.sync.idx.b32 %%r%u, %%r%u, %%k3, 31, %s;\n", pick(p, R32), pick(p, R32), mask);
  }
  p->masks--;
}

/* ---- loops that are left from within, entered in the middle, or written as states ---- */

static void put_nest(program *p) {
  uint32_t label = p->labels++, o = p->loops, i = o + 1, part = pick(p, PREDS);
  if (i >= DEPTHS) return;
  p->loops += 2;
  p->depth += 2;
  PUT(p, "mov.u32 %%c%u, 0;\nand.b32 %%n%u, %%r%u, 3;\nNO%u:\n", o, o, pick(p, R32), label);
  PUT(p, "mov.u32 %%c%u, 0;\nand.b32 %%n%u, %%r%u, 3;\nNI%u:\n", i, i, pick(p, R32), label);
  put_statements(p, 2);
  put_part(p, part);
  PUT(p, "@%%p%u bra %s%u;\n", part, (const char *[]){"NX", "ND", "NC", "NE"}[pick(p, 4)], label);
  if (one_in(p, 2)) put_statements(p, 2);
  part = pick(p, PREDS);
  if (one_in(p, 2)) put_part(p, part);
  PUT(p, "@%%p%u bra %s%u;\n", part, pick(p, 2) ? "NX" : "ND", label);
  PUT(p, "NC%u:\nadd.u32 %%c%u, %%c%u, 1;\nsetp.lt.u32 %%g%u, %%c%u, %%n%u;\n@%%g%u bra NI%u;\nNE%u:\n", label, i, i, i,
      i, i, i, label, label);
  if (one_in(p, 3)) put_statements(p, 1);
  PUT(p, "ND%u:\nadd.u32 %%c%u, %%c%u, 1;\nsetp.lt.u32 %%g%u, %%c%u, %%n%u;\n@%%g%u bra NO%u;\nNX%u:\n", label, o, o, o,
      o, o, o, label, label);
  p->depth -= 2;
  p->loops -= 2;
}

/* Some lanes come into the loop by its head, others in its middle. */
static void put_entered(program *p) {
  uint32_t label = p->labels++, d = p->loops, part = pick(p, PREDS);
  if (d >= DEPTHS) return;
  p->loops++;
  p->depth++;
  PUT(p, "mov.u32 %%c%u, 0;\nand.b32 %%n%u, %%r%u, 3;\n", d, d, pick(p, R32));
  put_part(p, part);
  PUT(p, "@%%p%u bra IM%u;\nIL%u:\n", part, label, label);
  put_statements(p, 2);
  PUT(p, "IM%u:\n", label);
  put_statements(p, 2);
  PUT(p, "add.u32 %%c%u, %%c%u, 1;\nsetp.lt.u32 %%g%u, %%c%u, %%n%u;\n@%%g%u bra IL%u;\n", d, d, d, d, d, d, label);
  p->depth--;
  p->loops--;
}

/* A loop around brx.idx: each lane goes through states of its own. */
static void put_states(program *p) {
  uint32_t label = p->labels++, d = p->loops, states = 2 + pick(p, 4);
  if (d >= DEPTHS) return;
  p->loops++;
  p->depth++;
  PUT(p, "and.b32 %%n%u, %%r%u, 3;\nadd.u32 %%n%u, %%n%u, 1;\nmov.u32 %%c%u, %%r%u;\n", d, pick(p, R32), d, d, d,
      pick(p, R32));
  PUT(p, "ST%u: .branchtargets", label);
  for (uint32_t s = 0; s < states; s++) PUT(p, "%s SB%u_%u", s ? "," : "", label, s);
  PUT(p, ", SX%u;\nSD%u:\nsub.u32 %%n%u, %%n%u, 1;\nsetp.lt.s32 %%g%u, %%n%u, 0;\n", label, label, d, d, d, d);
  PUT(p, "rem.u32 %%k0, %%c%u, %u;\n@%%g%u mov.u32 %%k0, %u;\nbrx.idx %%k0, ST%u;\n", d, states, d, states, label);
  for (uint32_t s = 0; s < states; s++) {
    PUT(p, "SB%u_%u:\n", label, s);
    put_statements(p, 2);
    PUT(p, "add.u32 %%c%u, %%c%u, %u;\n", d, d, 1 + pick(p, 3));
    PUT(p, "bra SD%u;\n", label);
  }
  PUT(p, "SX%u:\n", label);
  p->depth--;
  p->loops--;
}

/* ---- functions that call themselves and each other ---- */

void program_block_functions(program *p) {
  for (uint32_t f = 0; f < 2; f++)
    PUT(p, ".func (.param .b32 v) rec%u (.param .b32 n, .param .b32 a, .param .b64 l);\n", f);
  for (uint32_t f = 0; f < 2; f++) {
    PUT(p, ".func (.param .b32 v) rec%u (.param .b32 n, .param .b32 a, .param .b64 l)\n{\n", f);
    PUT(p, ".reg .b32 cn, ca, t, u, ti; .reg .b64 cl, own, fp; .reg .pred q, s; .local .align 16 .b8 mine[48];\n");
    PUT(p, "ld.param.b32 cn, [n]; ld.param.b32 ca, [a]; ld.param.b64 cl, [l];\n");
    PUT(p, "cvta.local.u64 own, mine;\nmov.u32 ti, %%laneid;\n");
    PUT(p, "st.local.v4.b32 [mine+16], {ca, cn, ti, %u};\nst.b32 [cl+%u], ca;\n", pick(p, 100), 4 * pick(p, 4));
    PUT(p, "mad.lo.u32 u, ca, %u, cn;\nsetp.le.s32 q, cn, 0;\n@q bra END;\n", 3 + pick(p, 100));
    PUT(p, "and.b32 t, ca, %u;\nsetp.eq.u32 s, t, %u;\nsub.s32 cn, cn, 1;\n", 1 + pick(p, 3), pick(p, 2));
    if (one_in(p, 2)) PUT(p, "@s bra OTHER;\n");
    if (one_in(p, 2)) PUT(p, "@s sub.s32 cn, cn, 1;\n");
    PUT(p,
        "{ .param .b32 r; .param .b32 x; .param .b32 y; .param .b64 z; st.param.b32 [x], cn; st.param.b32 [y], u; st.param.b64 [z], own;\n");
    PUT(p, "call (r), rec%u, (x, y, z);\nld.param.b32 t, [r]; }\nadd.u32 u, u, t;\n", pick(p, 2));
    PUT(p, "ld.b32 t, [own+%u];\nxor.b32 u, u, t;\n%sbra END;\nOTHER:\n", 16 + 4 * pick(p, 4),
        one_in(p, 4) ? "@s " : "");
    if (one_in(p, 2)) {
      PUT(p, "mov.u64 fp, rec%u; mov.u64 own, rec%u; selp.b64 fp, fp, own, q; cvta.local.u64 own, mine;\n", pick(p, 2),
          pick(p, 2));
      PUT(p,
          "{ .param .b32 r; .param .b32 x; .param .b32 y; .param .b64 z; st.param.b32 [x], cn; st.param.b32 [y], ca; st.param.b64 [z], own;\n");
      PUT(p, "PR: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _, .param .b64 _);\n");
      PUT(p, "call (r), fp, (x, y, z), PR;\nld.param.b32 t, [r]; }\nmad.lo.u32 u, t, 5, u;\n");
    }
    PUT(p, "ld.local.b32 t, [mine+%u];\nadd.u32 u, u, t;\nEND:\nst.param.b32 [v], u;\nret;\n}\n", 16 + 4 * pick(p, 4));
  }
}

static void put_recursion(program *p) {
  uint32_t to = pick(p, R32);
  PUT(p, "and.b32 %%k0, %%r%u, 3;\ncvta.local.u64 %%y0, lm;\n", pick(p, R32));
  PUT(p,
      "{ .param .b32 r; .param .b32 x; .param .b32 y; .param .b64 z; st.param.b32 [x], %%k0; st.param.b32 [y], %%r%u; st.param.b64 [z], %%y0;\n",
      pick(p, R32));
  PUT(p, "call (r), rec%u, (x, y, z);\nld.param.b32 %%r%u, [r]; }\n", pick(p, 2), to);
}

/* ---- memory ---- */

/* Types and how many of them: each as wide as `bytes`. */
static const struct wide {
  const char *type;
  uint32_t bytes, many, each;
  char letter;
} wides[] = {{".b32", 4, 1, 4, 'r'},     {".v2.b32", 8, 2, 4, 'r'},  {".v4.b32", 16, 4, 4, 'r'},
             {".b64", 8, 1, 8, 'd'},     {".v2.b64", 16, 2, 8, 'd'}, {".v2.b16", 4, 2, 2, 'h'},
             {".v4.b16", 8, 4, 2, 'h'},  {".v2.u8", 2, 2, 1, 'h'},   {".v4.u8", 4, 4, 1, 'h'},
             {".v4.s8", 4, 4, 1, 'r'},   {".v2.s16", 4, 2, 2, 'r'},  {".v4.u8", 4, 4, 1, 'd'},
             {".v4.f32", 16, 4, 4, 'r'}, {".v2.f64", 16, 2, 8, 'd'}, {".b128", 16, 1, 16, 'w'},
             {".v8.b32", 32, 8, 4, 'r'}, {".v4.b64", 32, 4, 8, 'd'}, {".v8.f32", 32, 8, 4, 'r'}};
enum { WIDES = sizeof wides / sizeof *wides, WIDEST_GLOBAL = 3 }; /* the last ones: of .global only */

static void put_wide_data(program *p, const struct wide *w, bool load) {
  uint32_t many = w->letter == 'r' ? R32 : w->letter == 'd' ? R64 : w->letter == 'w' ? 2 : R16, first = pick(p, many);
  if (w->many == 1) {
    PUT(p, "%%%c%u", w->letter, first);
    return;
  }
  for (uint32_t e = 0; e < w->many; e++) { /* of a load all different */
    PUT(p, e ? ", " : "{");
    if (load && one_in(p, 8)) PUT(p, "_");
    else PUT(p, "%%%c%u", w->letter, load ? (first + e) % many : pick(p, many));
  }
  PUT(p, "}");
}

/* Rows with steps of their own, forwards and backwards, from a base that is the same for all. */
static void put_rows(program *p) {
  static const char *const loads[] = {"",
                                      ".nc",
                                      ".L1::no_allocate",
                                      ".L2::128B",
                                      ".cs",
                                      ".lu",
                                      ".cv",
                                      ".volatile",
                                      ".weak",
                                      ".relaxed.cta",
                                      ".acquire.gpu",
                                      ".nc.L1::evict_last.L2::64B"};
  static const char *const stores[] = {"",          ".wb",          ".cs",          ".wt",
                                       ".volatile", ".relaxed.sys", ".release.cta", ".L1::evict_first"};
  const struct wide *w = &wides[pick(p, WIDES)];
  bool load = one_in(p, 2), table = load && one_in(p, 2);
  static const int32_t steps[] = {1, 1, 1, 2, 3, 0, -1, -2, 4};
  int32_t step = CHOOSE(p, steps) * (int32_t)w->bytes, least = step < 0 ? -step * 128 : 0;
  uint32_t off = (uint32_t)least + w->bytes * pick(p, 16);
  const char *base = table ? "%tab" : "%out", *index = pick(p, 3) ? "%ti" : "%gid";
  if (!strcmp(index, "%gid") && step < 0) off += (uint32_t)-step * 128;
  switch (pick(p, 4)) {
  case 0: PUT(p, "mul.wide.s32 %%y0, %s, %d;\nadd.s64 %%y0, %%y0, %s;\n", index, step, base); break;
  case 1: PUT(p, "mad.wide.s32 %%y0, %s, %d, %s;\n", index, step, base); break;
  case 2:
    PUT(p, "cvt.u64.u32 %%y0, %s;\nmul.lo.s64 %%y0, %%y0, %d;\nadd.s64 %%y0, %s, %%y0;\n", index, step, base);
    break;
  default: PUT(p, "mul.lo.s32 %%k0, %s, %d;\ncvt.s64.s32 %%y0, %%k0;\nadd.s64 %%y0, %%y0, %s;\n", index, step, base);
  }
  put_guard(p, 6);
  if (load) {
    const char *way = CHOOSE(p, loads);
    bool first =
        way[0] && (strstr(way, "volatile") || strstr(way, "weak") || strstr(way, "relaxed") || strstr(way, "acquire"));
    bool only = strstr(way, ".nc") != NULL;
    if (only && !table) way = "";
    if (w->bytes == 32 && strcmp(way, ".nc")) way = "", first = false;
    if (first) PUT(p, "ld%s.global%s ", way, w->type);
    else PUT(p, "ld.global%s%s ", way, w->type);
    put_wide_data(p, w, true);
    PUT(p, ", [%%y0+%u];\n", off);
  } else {
    const char *way = w->bytes == 32 ? "" : CHOOSE(p, stores);
    bool first = way[0] == '.' && (way[1] == 'v' || way[1] == 'r');
    if (first) PUT(p, "st%s.global%s [%%y0+%u], ", way, w->type, off);
    else PUT(p, "st.global%s%s [%%y0+%u], ", way, w->type, off);
    put_wide_data(p, w, false);
    PUT(p, ";\n");
  }
}

/* An array of a thread: of local addresses and generic ones, where a lane says and in order. */
static void put_array(program *p) {
  const struct wide *w = &wides[pick(p, WIDES - WIDEST_GLOBAL)];
  uint32_t last = 256 / w->bytes - 1;
  bool generic = one_in(p, 2), load = one_in(p, 2);
  switch (pick(p, 4)) {
  case 0: PUT(p, "and.b32 %%k0, %%r%u, %u;\n", pick(p, R32), last & 15); break;
  case 1: PUT(p, "and.b32 %%k0, %%ti, %u;\n", last); break;
  case 2: PUT(p, "and.b32 %%k0, %%n, %u;\n", last); break;
  default: PUT(p, "mov.u32 %%k0, %u;\n", pick(p, last + 1));
  }
  PUT(p, "mad.wide.u32 %%y0, %%k0, %u, %%lo;\n", w->bytes);
  if (generic) PUT(p, "cvta.local.u64 %%y0, %%y0;\n");
  put_guard(p, 6);
  PUT(p, "%s%s%s ", load ? "ld" : "st", generic ? "" : ".local", w->type);
  if (load) {
    put_wide_data(p, w, true);
    PUT(p, ", [%%y0];\n");
  } else {
    PUT(p, "[%%y0], ");
    put_wide_data(p, w, false);
    PUT(p, ";\n");
  }
}

/* Lanes of one access in different spaces. */
static void put_mixed(program *p) {
  bool load = one_in(p, 2);
  static const char *const from[] = {"%gsh", "%out", "%y1", "%tab", "%y2"}, *const to[] = {"%gsh", "%out", "%y1"};
  const char *one = load ? CHOOSE(p, from) : CHOOSE(p, to), *other = load ? CHOOSE(p, from) : CHOOSE(p, to);
  uint32_t part = pick(p, PREDS);
  const struct wide *w = &wides[pick(p, 8)];
  PUT(p, "cvta.local.u64 %%y1, lm;\ncvta.const.u64 %%y2, cm;\n");
  if (pick(p, 3)) put_part(p, part);
  PUT(p, "selp.b64 %%y0, %s, %s, %%p%u;\nand.b32 %%k0, %s%u, %u;\nmad.wide.u32 %%y0, %%k0, %u, %%y0;\n", one, other,
      part, pick(p, 2) ? "%r" : "%t", pick(p, 8), pick(p, 2) ? 15 : 31 / w->bytes, w->bytes);
  if (one_in(p, 3))
    PUT(p, "isspacep.%s %%p%u, %%y0;\n", (const char *[]){"shared", "local", "global", "const"}[pick(p, 4)],
        pick(p, PREDS));
  put_guard(p, 6);
  if (load) {
    PUT(p, "ld%s ", w->type);
    put_wide_data(p, w, true);
    PUT(p, ", [%%y0];\n");
  } else {
    PUT(p, "st%s [%%y0], ", w->type);
    put_wide_data(p, w, false);
    PUT(p, ";\n");
  }
}

static void put_atomics(program *p) {
  static const struct {
    const char *op;
    uint32_t bytes;
    char letter;
    uint32_t sources;
    bool shared;
  } ops[] = {
      {"add.noftz.f16x2", 4, 'r', 1, true}, {"add.noftz.bf16x2", 4, 'r', 1, true}, {"cas.b16", 2, 'h', 2, true},
      {"add.noftz.f16", 2, 'h', 1, true},   {"exch.b64", 8, 'd', 1, true},         {"cas.b64", 8, 'd', 2, true},
      {"and.b64", 8, 'd', 1, true},         {"or.b64", 8, 'd', 1, true},           {"min.u64", 8, 'd', 1, true},
      {"max.s64", 8, 'd', 1, true},         {"add.f64", 8, 'd', 1, true},          {"exch.b128", 16, 'w', 1, true},
      {"cas.b128", 16, 'w', 2, true},       {"cas.b32", 4, 'r', 2, true},          {"dec.u32", 4, 'r', 1, true},
      {"inc.u32", 4, 'r', 1, true},         {"add.f32", 4, 'r', 1, true},          {"exch.b32", 4, 'r', 1, true}};
  static const char *const orders[] = {"", "", ".relaxed.cta", ".acq_rel.gpu", ".acquire.sys", ".release.cta"};
  uint32_t n = pick(p, sizeof ops / sizeof *ops), many = ops[n].letter == 'r'   ? R32
                                                         : ops[n].letter == 'd' ? R64
                                                         : ops[n].letter == 'w' ? 2
                                                                                : R16;
  uint32_t where = pick(p, 3);
  const char *space = (const char *[]){".global", ".shared", ""}[where];
  bool reduces = ops[n].sources == 1 && strncmp(ops[n].op, "exch", 4) && one_in(p, 3);
  const char *order = CHOOSE(p, orders);
  if (ops[n].bytes == 16) order = ""; /* one of the order's own is asked for there */
  if (reduces && (strstr(order, "acq"))) order = ".relaxed.gpu";
  switch (pick(p, 4)) { /* one cell for all, for some, for each; in any order */
  case 0: PUT(p, "mov.u32 %%k0, %u;\n", pick(p, 16)); break;
  case 1: PUT(p, "and.b32 %%k0, %%ti, %u;\n", pick(p, 32)); break;
  case 2: PUT(p, "and.b32 %%k0, %%r%u, 15;\n", pick(p, R32)); break;
  default: PUT(p, "and.b32 %%k0, %%gid, 63;\n");
  }
  if (where == 1) PUT(p, "mad.lo.u32 %%k0, %%k0, %u, %%sh;\n", ops[n].bytes);
  else PUT(p, "mad.wide.u32 %%y0, %%k0, %u, %s;\n", ops[n].bytes, where == 0 || pick(p, 2) ? "%out" : "%gsh");
  put_guard(p, 6);
  PUT(p, "%s%s%s.%s ", reduces ? "red" : "atom", order, space, ops[n].op);
  if (!reduces) PUT(p, "%%%c%u, ", ops[n].letter, pick(p, many));
  PUT(p, "[%s]", where == 1 ? "%k0" : "%y0");
  for (uint32_t s = 0; s < ops[n].sources; s++) PUT(p, ", %%%c%u", ops[n].letter, pick(p, many));
  PUT(p, ";\n");
  if (one_in(p, 4)) {
    PUT(p, "and.b32 %%k0, %%r%u, 15;\nmad.wide.u32 %%y0, %%k0, 16, %%out;\n", pick(p, R32));
    if (pick(p, 2))
      PUT(p, "red.global.add.v4.f32 [%%y0], {%%r%u, %%r%u, %%r%u, %%r%u};\n", pick(p, R32), pick(p, R32), pick(p, R32),
          pick(p, R32));
    else
      PUT(p, "atom.global.add.v2.f32 {%%r%u, %%r%u}, [%%y0], {%%r%u, %%r%u};\n", pick(p, 8), 8 + pick(p, 8),
          pick(p, R32), pick(p, R32));
  }
}

/* A lock of each cell that lanes take in turn, by compare and swap in a loop. */
static void put_turns(program *p) {
  uint32_t label = p->labels++;
  PUT(p, "and.b32 %%k0, %%r%u, %u;\nmad.wide.u32 %%y0, %%k0, 8, %%out;\nld.global.b64 %%y1, [%%y0];\nCA%u:\n",
      pick(p, R32), pick(p, 4), label);
  PUT(p,
      "mad.lo.u64 %%y2, %%y1, 3, %%d%u;\natom.global.cas.b64 %%y3, [%%y0], %%y1, %%y2;\nsetp.ne.b64 %%u0, %%y3, %%y1;\n",
      pick(p, R64));
  PUT(p, "mov.b64 %%y1, %%y3;\n@%%u0 bra CA%u;\nmov.b64 %%d%u, %%y3;\n", label, pick(p, R64));
}

/* ---- computing ---- */

static void put_chain(program *p) {
  static const char *const starts[] = {"add.cc.u32", "sub.cc.u32", "mad.lo.cc.u32", "mad.hi.cc.u32", "add.cc.s32"},
                           *const more[] = {"addc.cc.u32", "subc.cc.u32", "madc.lo.cc.u32", "madc.hi.cc.u32",
                                            "madc.hi.cc.s32"},
                           *const ends[] = {"addc.u32", "subc.u32", "madc.lo.u32", "madc.hi.u32", "addc.s32"};
  for (uint32_t n = 0, count = 2 + pick(p, 4); n < count; n++) {
    const char *name = n == 0 ? CHOOSE(p, starts) : n + 1 == count ? CHOOSE(p, ends) : CHOOSE(p, more);
    if (n && one_in(p, 8)) PUT(p, "add.u32 %%k0, %%r%u, 1;\n", pick(p, R32));
    if (n && one_in(p, 12)) put_guard(p, 1);
    PUT(p, "%s %%r%u, %%r%u, ", name, pick(p, R32), pick(p, R32));
    put_source(p, OPERAND_32, PTX_U32);
    if (name[0] == 'm') PUT(p, ", %%r%u", pick(p, R32));
    PUT(p, ";\n");
  }
  if (one_in(p, 2))
    PUT(p, "%s.cc.u64 %%d%u, %%d%u, %%d%u;\n%sc.u64 %%d%u, %%d%u, %%d%u;\n", "add", pick(p, R64), pick(p, R64),
        pick(p, R64), pick(p, 2) ? "add" : "sub", pick(p, R64), pick(p, R64), pick(p, R64));
}

/* Values that are linear in the lane's number, or all but the same in all lanes. */
static void put_linear(program *p) {
  static const uint32_t factors[] = {1,  2,   3,         4,          5,          7,          8,          12,
                                     16, 100, 0x1000000, 0x40000000, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffc};
  uint32_t r = pick(p, R32), d = pick(p, R64);
  switch (pick(p, 10)) {
  case 0: PUT(p, "mad.lo.u32 %%r%u, %%ti, %u, %%r%u;\n", r, CHOOSE(p, factors), pick(p, R32)); break;
  case 1:
    PUT(p, "mul.lo.u32 %%r%u, %%ti, %u;\nadd.u32 %%r%u, %%r%u, %u;\n", r, CHOOSE(p, factors), r, r, CHOOSE(p, factors));
    break;
  case 2: PUT(p, "mov.u32 %%r%u, %%tid.x;\nshl.b32 %%r%u, %%r%u, %u;\n", r, r, r, pick(p, 34)); break;
  case 3: PUT(p, "sub.u32 %%r%u, %u, %%ti;\n", r, CHOOSE(p, factors)); break;
  case 4: PUT(p, "mul.wide.%s32 %%d%u, %%ti, %d;\n", pick(p, 2) ? "u" : "s", d, (int)CHOOSE(p, factors)); break;
  case 5:
    PUT(p, "mad.lo.u32 %%k0, %%ti, %u, %u;\ncvt.%s32 %%d%u, %%k0;\n", CHOOSE(p, factors), CHOOSE(p, factors),
        pick(p, 2) ? "u64.u" : "s64.s", d);
    break;
  case 6:
    PUT(p, "setp.eq.u32 %%u0, %%ti, %u;\nmov.u32 %%r%u, %u;\n@%%u0 mov.u32 %%r%u, %u;\n", pick(p, 64), r, pick(p, 100),
        r, pick(p, 100));
    break;
  case 7:
    PUT(p,
        "mov.u32 %%k0, %%ntid.x;\nmov.u32 %%k1, %%ctaid.x;\nmov.u32 %%k2, %%tid.x;\nmad.lo.u32 %%r%u, %%k0, %%k1, %%k2;\n",
        r);
    break;
  case 8:
    PUT(p, "neg.s32 %%r%u, %%ti;\nshr.%s32 %%k0, %%r%u, %u;\nadd.u32 %%r%u, %%r%u, %%k0;\n", r, pick(p, 2) ? "u" : "s",
        r, pick(p, 32), r, r);
    break;
  default:
    PUT(p,
        "cvt.u64.u32 %%d%u, %%ti;\nshl.b64 %%d%u, %%d%u, %u;\nadd.s64 %%d%u, %%d%u, -%u;\nsetp.lt.s64 %%p%u, %%d%u, %%d%u;\n",
        d, d, d, pick(p, 66), d, d, pick(p, 1000), pick(p, PREDS), d, pick(p, R64));
  }
  if (one_in(p, 3))
    PUT(p, "setp.%s32 %%p%u, %%r%u, %%r%u;\n", pick(p, 2) ? "lt.u" : "ge.s", pick(p, PREDS), r, pick(p, R32));
}

/* Registers of 8 bits: only accesses and conversions have them. */
static void put_bytes(program *p) {
  PUT(p,
      "{ .reg .b8 b0; .reg .s8 b1; .reg .u8 b2;\nand.b32 %%k0, %%r%u, 1023;\ncvt.u64.u32 %%y0, %%k0;\nadd.u64 %%y0, %%y0, %%tab;\n",
      pick(p, R32));
  PUT(p, "ld.global.b8 b0, [%%y0];\nld.global.s8 b1, [%%y0+1];\ncvt.u8.u32 b2, %%r%u;\n", pick(p, R32));
  PUT(p, "cvt.%s32.s8 %%r%u, b1;\ncvt.u32.u8 %%r%u, b2;\ncvt.rn.f32.s8 %%r%u, b1;\n", pick(p, 2) ? "s" : "u",
      pick(p, R32), pick(p, R32), pick(p, R32));
  PUT(p, "cvta.local.u64 %%y1, lm;\nst.b8 [%%y1+%u], b0;\nst.u8 [%%y1+%u], b2; }\n", pick(p, 64), pick(p, 64));
}

/* What has no value but is decoded: hints, policies, the stack of alloca. */
static void put_hints(program *p) {
  PUT(p, "and.b32 %%k0, %%r%u, 255;\nmad.wide.u32 %%y0, %%k0, 16, %%tab;\n", pick(p, R32));
  put_guard(p, 6);
  switch (pick(p, 6)) {
  case 0: PUT(p, "prefetch.global.L%u [%%y0+%u];\n", 1 + pick(p, 2), pick(p, 64)); break;
  case 1: PUT(p, "prefetchu.L1 [%%y0];\n"); break;
  case 2: PUT(p, "applypriority.global.L2::evict_normal [%%tab], 128;\n"); break;
  case 3:
    PUT(p,
        "createpolicy.fractional.L2::evict_last.b64 %%y1, 0.5;\nld.global.L2::cache_hint.b32 %%r%u, [%%y0+4], %%y1;\n",
        pick(p, R32));
    break;
  case 4: PUT(p, "pmevent 1;\n"); break;
  default: PUT(p, "griddepcontrol.%s;\n", pick(p, 2) ? "wait" : "launch_dependents");
  }
  if (one_in(p, 4) && !p->depth) {
    PUT(p,
        "stacksave.u64 %%y2;\nalloca.u64 %%y1, %u, 16;\nst.local.b32 [%%y1+%u], %%r%u;\nld.local.b32 %%r%u, [%%y1+%u];\nstackrestore.u64 %%y2;\n",
        64, 4 * pick(p, 4), pick(p, R32), pick(p, R32), 4 * pick(p, 4));
  }
}

/* ---- where all threads of a block come ---- */

/* Barriers with the number of threads that come; some only arrive. */
static void put_counted(program *p) {
  uint32_t label = p->labels++, number = 1 + pick(p, 8);
  PUT(p,
      "mov.u32 %%k0, %%ntid.x;\nmov.u32 %%k2, %%ntid.y;\nmul.lo.u32 %%k0, %%k0, %%k2;\nmov.u32 %%k2, %%ntid.z;\nmul.lo.u32 %%k0, %%k0, %%k2;\nadd.u32 %%k0, %%k0, 31;\nand.b32 %%k0, %%k0, -32;\n");
  PUT(p, "shr.u32 %%k1, %%ti, 5;\n");
  switch (pick(p, 4)) {
  case 0: PUT(p, "bar.sync %u, %%k0;\n", number); break;
  case 1:
    PUT(p, "bar.red.%s %u, %%k0, %%p%u;\n", pick(p, 2) ? "popc.u32 %r1," : "or.pred %p1,", number, pick(p, PREDS));
    break;
  case 2:
    PUT(p,
        "setp.eq.u32 %%u0, %%k1, 0;\n@%%u0 bra BA%u;\nbar.arrive %u, %%k0;\nbra BB%u;\nBA%u:\nbar.sync %u, %%k0;\nBB%u:\n",
        label, number, label, label, number, label);
    break;
  default: PUT(p, "mov.u32 %%k3, %u;\nbarrier.sync %%k3, %%k0;\n", number);
  }
  if (one_in(p, 2)) PUT(p, "bar.sync 0;\n");
}

/* Copies to shared memory that are waited for, by groups, or with an mbarrier that all threads arrive at. */
static void put_async(program *p) {
  uint32_t label = p->labels++, bytes = 4u << pick(p, 3);
  bool barrier = one_in(p, 2);
  if (barrier) {
    PUT(p, "setp.eq.u32 %%u0, %%ti, %%ti;\nbar.red.popc.u32 %%k6, 0, %%u0;\n");
    PUT(p, "bar.sync 0;\natom.shared.exch.b32 %%k5, [mb+24], 1;\nbar.sync 0;\nsetp.eq.u32 %%u2, %%k5, 0;\n");
    PUT(p, "@%%u2 mbarrier.init.shared.b64 [mb], %%k6;\nbar.sync 0;\n@%%u2 st.shared.b32 [mb+24], 0;\n");
  }
  for (uint32_t n = 1 + pick(p, 3); n; n--) {
    PUT(p, "mad.lo.u32 %%k0, %%ti, %u, %%sh;\nand.b32 %%k1, %%r%u, 127;\nmad.wide.u32 %%y0, %%k1, %u, %s;\n", bytes,
        pick(p, R32), bytes, pick(p, 3) ? "%tab" : "%out");
    put_guard(p, 5);
    if (bytes == 16 && one_in(p, 2)) PUT(p, "cp.async.cg.shared.global [%%k0+%u], [%%y0], 16", 16 * pick(p, 4));
    else PUT(p, "cp.async.ca.shared.global [%%k0+%u], [%%y0], %u", bytes * pick(p, 4), bytes);
    if (one_in(p, 4)) PUT(p, ", %u", pick(p, bytes + 1));
    PUT(p, ";\n");
    if (one_in(p, 2)) PUT(p, "cp.async.commit_group;\n");
  }
  if (barrier) {
    PUT(p, "%smbarrier.arrive.shared.b64 %%y1, [mb];\nMW%u:\n",
        pick(p, 2) ? "cp.async.mbarrier.arrive.shared.b64 [mb];\n" : "", label);
    if (one_in(p, 2)) PUT(p, "mbarrier.%s_wait.shared.b64 %%u3, [mb], %%y1;\n", pick(p, 2) ? "test" : "try");
    else PUT(p, "mbarrier.%s_wait.parity.shared.b64 %%u3, [mb], 0;\n", pick(p, 2) ? "test" : "try");
    PUT(p, "@!%%u3 bra MW%u;\nbar.sync 0;\n@%%u2 mbarrier.inval.shared.b64 [mb];\nbar.sync 0;\n", label);
  } else {
    PUT(p, "%s;\n",
        (const char *[]){"cp.async.wait_all", "cp.async.wait_group 0", "cp.async.wait_group 1"}[pick(p, 3)]);
    if (one_in(p, 2)) PUT(p, "bar.sync 0;\n");
  }
  PUT(p, "ld.shared.b32 %%r%u, [%%k0];\n", pick(p, R32));
}

/* Shared memory of the cluster's other block, or of this one under its rank. */
static void put_cluster(program *p) {
  uint32_t r = pick(p, R32);
  PUT(p,
      "mov.u32 %%k0, %%cluster_ctarank;\nmov.u32 %%k1, %%cluster_nctarank;\nadd.u32 %%k2, %%k0, %u;\nrem.u32 %%k2, %%k2, %%k1;\n",
      pick(p, 2));
  PUT(p, "and.b32 %%k3, %%%c%u, 63;\nmad.lo.u32 %%k3, %%k3, 4, %%sh;\nmapa.shared::cluster.u32 %%k4, %%k3, %%k2;\n",
      pick(p, 2) ? 'r' : 't', pick(p, 8));
  PUT(p, "mapa.u64 %%y0, %%gsh, %%k2;\n");
  if (p->cluster) PUT(p, "barrier.cluster.arrive;\nbarrier.cluster.wait;\n");
  put_guard(p, 6);
  switch (pick(p, 6)) {
  case 0: PUT(p, "ld.shared::cluster.b32 %%r%u, [%%k4];\n", r); break;
  case 1: PUT(p, "st.shared::cluster.b32 [%%k4+4], %%r%u;\n", r); break;
  case 2: PUT(p, "atom.shared::cluster.add.u32 %%r%u, [%%k4], %%r%u;\n", r, pick(p, R32)); break;
  case 3: PUT(p, "ld.v2.b32 {%%r%u, %%r%u}, [%%y0+%u];\n", r, (r + 1) % R32, 8 * pick(p, 16)); break;
  case 4: PUT(p, "st.b64 [%%y0+%u], %%d%u;\n", 8 * pick(p, 16), pick(p, R64)); break;
  default:
    PUT(p, "getctarank.shared::cluster.u32 %%r%u, %%k4;\nisspacep.shared::cluster %%p%u, %%y0;\n", r, pick(p, PREDS));
  }
  if (p->cluster) PUT(p, "barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n");
}

/* Of whole warps: the fragments of matrices. */
static void put_matrix(program *p) {
  uint32_t label = p->labels++;
  PUT(p, "activemask.b32 %%k0;\nsetp.ne.u32 %%u0, %%k0, -1;\n@%%u0 bra MX%u;\n", label);
  PUT(p, "mov.u32 %%k0, %%laneid;\nand.b32 %%k0, %%k0, 15;\nmad.lo.u32 %%k0, %%k0, 16, %%sh;\n");
#define FOUR "{%%r%u, %%r%u, %%r%u, %%r%u}"
#define PICK4 pick(p, 4), 4 + pick(p, 4), 8 + pick(p, 4), 12 + pick(p, 4)
  switch (pick(p, 6)) {
  case 0:
    PUT(p, "ldmatrix.sync.aligned.m8n8.x4%s.shared.b16 " FOUR ", [%%k0];\n", pick(p, 2) ? ".trans" : "", PICK4);
    break;
  case 1: PUT(p, "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%%k0], " FOUR ";\n", PICK4); break;
  case 2: PUT(p, "movmatrix.sync.aligned.m8n8.trans.b16 %%r%u, %%r%u;\n", pick(p, R32), pick(p, R32)); break;
  case 3:
    PUT(p, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " FOUR ", " FOUR ", {%%r%u, %%r%u}, " FOUR ";\n", PICK4,
        PICK4, pick(p, R32), pick(p, R32), PICK4);
    break;
  case 4:
    PUT(p, "mma.sync.aligned.m16n8k32.row.col%s.s32.s8.u8.s32 " FOUR ", " FOUR ", {%%r%u, %%r%u}, " FOUR ";\n",
        pick(p, 2) ? ".satfinite" : "", PICK4, PICK4, pick(p, R32), pick(p, R32), PICK4);
    break;
  default:
    PUT(p, "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%%d%u, %%d%u}, {%%d%u}, {%%d%u}, {%%d%u, %%d%u};\n",
        pick(p, 5), 5 + pick(p, 5), pick(p, R64), pick(p, R64), pick(p, R64), pick(p, R64));
  }
  PUT(p, "MX%u:\n", label);
}

/* Some lanes have had enough. */
static void put_end(program *p) {
  if (p->entry && one_in(p, 6)) {
    put_guard(p, 1);
    PUT(p, "ret;\n");
  }
}

/* ---- which ---- */

void program_block_registers(program *p) {
  PUT(p, ".reg .b32 %%m<%d>, %%k<8>;\n.reg .b64 %%y<4>;\n.reg .pred %%u<4>;\n", MASKS);
}

void program_block_head(program *p) { PUT(p, ".shared .align 8 .b64 mb[4];\n"); }

void program_block(program *p) {
  bool whole = p->entry && !p->depth && !p->loops;
  switch (pick(p, 22)) {
  case 0:
  case 1:
  case 2: put_masked(p); break;
  case 3: put_groups(p); break;
  case 4:
    if (p->depth < 3) put_nest(p);
    break;
  case 5:
    if (p->depth < 4) put_entered(p);
    break;
  case 6:
    if (p->depth < 3) put_states(p);
    break;
  case 7:
    if (p->recurses && p->depth < 3) put_recursion(p);
    break;
  case 8:
  case 9: put_rows(p); break;
  case 10: put_array(p); break;
  case 11: put_mixed(p); break;
  case 12: put_atomics(p); break;
  case 13: put_turns(p); break;
  case 14: put_chain(p); break;
  case 15: put_linear(p); break;
  case 16: put_bytes(p); break;
  case 17: put_hints(p); break;
  case 18:
    if (whole) put_counted(p);
    break;
  case 19:
    if (whole) put_async(p);
    break;
  case 20:
    if (whole) put_cluster(p);
    else put_linear(p);
    break;
  default:
    if (whole) put_matrix(p);
    else put_end(p);
  }
}
