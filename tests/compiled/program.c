/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs, statement by statement. Each statement is one or a few lines that stand for themselves, so that
 * a reducer of programs may leave out lines one at a time. Longer statements are in blocks.c. */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blocks.h"

/* ---- operands ---- */

static const char letters[] = {0, 'p', 'h', 'r', 'd'};
static const uint32_t counts[] = {0, PREDS, R16, R32, R64};

static void put_register(program *p, operand_kind kind) { PUT(p, "%%%c%u", letters[kind], pick(p, counts[kind])); }

void put_source(program *p, operand_kind kind, ptx_type type) {
  bool real = ptx_type_class(type) == 'F' && type != PTX_F32 && type != PTX_F64;
  char constant[40];
  if (kind == OPERAND_PRED || real || ptx_type_bits(type) > 64 || !one_in(p, 4)) {
    put_register(p, kind);
    return;
  }
  program_constant(&p->state, type, constant, sizeof constant);
  PUT(p, "%s", constant);
}

void put_guard(program *p, uint32_t often) {
  if (one_in(p, often)) PUT(p, "@%s%%p%u ", pick(p, 2) ? "!" : "", pick(p, PREDS));
}

/* ---- computing ---- */

/* Every other time one that the compiler has code of its own for. */
static const program_form *any_form(program *p) {
  const program_forms *forms = p->forms;
  return &forms->items.items[one_in(p, 2) ? forms->native.items[pick(p, (uint32_t)forms->native.count)]
                                          : pick(p, (uint32_t)forms->items.count)];
}

/* setp.lt.s32 -> setp.lt.and.s32: what combines stands behind the comparison. */
static void put_combining(program *p, const program_form *form, const char *how) {
  const char *behind = form->lop3 ? form->text + 4 : strchr(form->text + 5, '.');
  PUT(p, "%.*s.%s%s", (int)(behind - form->text), form->text, how, behind);
}

static void put_predicates(program *p, const program_form *form) {
  static const char *const how[] = {"and", "or", "xor"};
  bool combined = one_in(p, form->lop3 ? 2 : 3);
  if (combined) put_combining(p, form, CHOOSE(p, how));
  else PUT(p, "%s", form->text);
  PUT(p, " ");
  put_register(p, form->dst);
  if (form->lop3 ? combined : one_in(p, 3)) PUT(p, "|%%p%u", pick(p, PREDS));
  for (uint32_t s = 0; s < form->sources; s++) {
    PUT(p, ", ");
    put_source(p, form->src[s], form->type[s]);
  }
  if (form->lop3) PUT(p, ", %u", pick(p, 256));
  if (combined) PUT(p, ", %s%%p%u", pick(p, 2) ? "!" : "", pick(p, PREDS));
  PUT(p, ";\n");
}

static void put_form(program *p, const program_form *form) {
  if (form->compares || form->lop3) {
    put_predicates(p, form);
    return;
  }
  PUT(p, "%s ", form->text);
  put_register(p, form->dst);
  for (uint32_t s = 0; s < form->sources; s++) {
    PUT(p, ", ");
    put_source(p, form->src[s], form->type[s]);
  }
  PUT(p, ";\n");
}

static void put_video(program *p) {
  char name[80], selectors[3][8];
  bool third = program_video(&p->state, name, sizeof name, selectors);
  PUT(p, "%s %%r%u%s, %%r%u%s, %%r%u%s", name, pick(p, R32), selectors[0], pick(p, R32), selectors[1], pick(p, R32),
      selectors[2]);
  if (third) PUT(p, ", %%r%u", pick(p, R32));
  PUT(p, ";\n");
}

static void put_move(program *p) {
  static const char *const specials[] = {
      "%tid.x",           "%tid.y",       "%tid.z",       "%ntid.x",      "%ntid.y",
      "%ctaid.x",         "%ctaid.y",     "%nctaid.x",    "%laneid",      "%warpid",
      "%nwarpid",         "%lanemask_lt", "%lanemask_ge", "%lanemask_eq", "%dynamic_smem_size",
      "%total_smem_size", "%smid",        "%nsmid"};
  switch (pick(p, 12)) {
  case 0: PUT(p, "mov.u32 %%r%u, %s;\n", pick(p, R32), CHOOSE(p, specials)); break;
  case 1: PUT(p, "mov.b64 %%d%u, {%%r%u, %%r%u};\n", pick(p, R64), pick(p, R32), pick(p, R32)); break;
  case 2: PUT(p, "mov.b64 {%%r%u, %%r%u}, %%d%u;\n", pick(p, R32), pick(p, R32), pick(p, R64)); break;
  case 3: PUT(p, "mov.b32 %%r%u, {%%h%u, %%h%u};\n", pick(p, R32), pick(p, R16), pick(p, R16)); break;
  case 4: PUT(p, "mov.b32 {%%h%u, %%h%u}, %%r%u;\n", pick(p, R16), pick(p, R16), pick(p, R32)); break;
  case 5:
    PUT(p, "mov.b64 %%d%u, {%%h%u, %%h%u, %%h%u, %%h%u};\n", pick(p, R64), pick(p, R16), pick(p, R16), pick(p, R16),
        pick(p, R16));
    break;
  case 6:
    PUT(p, "mov.b64 {%%h%u, %%h%u, %%h%u, %%h%u}, %%d%u;\n", pick(p, R16), pick(p, R16), pick(p, R16), pick(p, R16),
        pick(p, R64));
    break;
  case 7: PUT(p, "mov.b128 %%w%u, {%%d%u, %%d%u};\n", pick(p, 2), pick(p, R64), pick(p, R64)); break;
  case 8: PUT(p, "mov.b128 {%%d%u, %%d%u}, %%w%u;\n", pick(p, R64), pick(p, R64), pick(p, 2)); break;
  case 9: PUT(p, "activemask.b32 %%r%u;\n", pick(p, R32)); break;
  case 10: PUT(p, "cvt.u32.u64 %%r%u, %%d%u;\n", pick(p, R32), pick(p, R64)); break;
  default:
    PUT(p, "isspacep.%s %%p%u, %%a%u;\n", (const char *[]){"shared", "local", "global", "const"}[pick(p, 4)],
        pick(p, PREDS), pick(p, 4));
  }
}

/* How many instructions have been counted since the program began: the counters are right wherever they are looked
 * at. */
static void put_clock(program *p) { PUT(p, "mov.u32 %%t0, %%clock;\nsub.u32 %%r%u, %%t0, %%ck;\n", pick(p, R32)); }

static void put_operation(program *p) {
  put_guard(p, 6);
  switch (pick(p, 8)) {
  case 0: put_move(p); break;
  case 1: put_video(p); break;
  case 2: PUT(p, "add.s32 %%r%u, %%r%u, %u;\n", pick(p, R32), pick(p, R32), pick(p, 100)); break;
  default: put_form(p, any_form(p));
  }
}

/* A few forms in a row of the kind that compiled code has for itself. */
static void put_integer(program *p) {
  static const char *const two[] = {"add.u32", "sub.u32", "mul.lo.u32", "and.b32", "or.b32",  "xor.b32", "min.s32",
                                    "max.u32", "shl.b32", "shr.s32",    "shr.u32", "div.s32", "rem.u32"};
  put_guard(p, 6);
  PUT(p, "%s %%r%u, %%r%u, ", CHOOSE(p, two), pick(p, R32), pick(p, R32));
  put_source(p, OPERAND_32, PTX_S32);
  PUT(p, ";\n");
}

static void put_compare(program *p) {
  static const char *const words[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  put_guard(p, 8);
  PUT(p, "setp.%s.%s %%p%u%s", CHOOSE(p, words), pick(p, 2) ? "s32" : "u32", pick(p, PREDS), "");
  if (one_in(p, 4)) PUT(p, "|%%p%u", pick(p, PREDS));
  PUT(p, ", %%r%u, ", pick(p, R32));
  put_source(p, OPERAND_32, PTX_S32);
  PUT(p, ";\n");
}

/* A predicate that parts the lanes in one of the usual ways. */
void put_part(program *p, uint32_t to) {
  switch (pick(p, 5)) {
  case 0: PUT(p, "and.b32 %%t0, %%ti, %u;\nsetp.ne.u32 %%p%u, %%t0, 0;\n", 1u << pick(p, 6), to); break;
  case 1: PUT(p, "setp.lt.u32 %%p%u, %%gid, %u;\n", to, pick(p, 128)); break;
  case 2: PUT(p, "setp.eq.u32 %%p%u, %%ti, %u;\n", to, pick(p, 64)); break;
  case 3: PUT(p, "setp.lt.u32 %%p%u, %%n, %u;\n", to, pick(p, 60)); break; /* the same for all */
  default: PUT(p, "and.b32 %%t0, %%r%u, %u;\nsetp.eq.u32 %%p%u, %%t0, 0;\n", pick(p, R32), 1 + pick(p, 3), to);
  }
}

/* ---- memory ---- */

typedef struct cell {
  const char *type;
  uint32_t bytes;
  operand_kind kind;
} cell;
static const cell cells[] = {{"u8", 1, OPERAND_16},  {"s8", 1, OPERAND_16},  {"u8", 1, OPERAND_32},
                             {"s8", 1, OPERAND_32},  {"u16", 2, OPERAND_16}, {"s16", 2, OPERAND_16},
                             {"s16", 2, OPERAND_32}, {"u32", 4, OPERAND_32}, {"b32", 4, OPERAND_32},
                             {"f32", 4, OPERAND_32}, {"s32", 4, OPERAND_64}, {"u32", 4, OPERAND_64},
                             {"u16", 2, OPERAND_64}, {"s8", 1, OPERAND_64},  {"u64", 8, OPERAND_64},
                             {"f64", 8, OPERAND_64}, {"b32", 4, OPERAND_32}, {"b64", 8, OPERAND_64}};

static uint32_t vector_of(program *p, const cell *c) {
  uint32_t vector = (uint32_t[]){1, 1, 1, 2, 4}[pick(p, 5)];
  return vector * c->bytes > 16 ? 1 : vector;
}

static void put_data(program *p, const cell *c, uint32_t vector, bool store) {
  if (vector == 1) {
    if (store && one_in(p, 6) && (c->kind == OPERAND_32 ? c->bytes == 4 : c->kind == OPERAND_64 && c->bytes == 8))
      PUT(p, "%u", pick(p, 1000));
    else put_register(p, c->kind);
    return;
  }
  for (uint32_t e = 0; e < vector; e++) {
    PUT(p, e ? ", " : "{");
    put_register(p, c->kind);
  }
  PUT(p, "}");
}

/* The address of `bytes` bytes (a power of two) in %a<to>: base and `room` bytes behind it. */
static void put_address(program *p, uint32_t to, const char *base, uint32_t bytes, uint32_t room) {
  uint32_t last = room / bytes - 1;
  switch (pick(p, 6)) {
  case 0:
  case 1: PUT(p, "mad.wide.u32 %%a%u, %%gid, %u, %s;\n", to, bytes, base); break; /* a row */
  case 2:
    PUT(p, "and.b32 %%t1, %%r%u, %u;\nmad.wide.u32 %%a%u, %%t1, %u, %s;\n", pick(p, R32), last, to, bytes, base);
    break;
  case 3: PUT(p, "add.u64 %%a%u, %s, %u;\n", to, base, pick(p, last) * bytes); break; /* one cell */
  case 4: PUT(p, "and.b32 %%t1, %%ti, %u;\nmad.wide.u32 %%a%u, %%t1, %u, %s;\n", pick(p, 64), to, bytes, base); break;
  default: PUT(p, "shr.u32 %%t1, %%gid, %u;\nmad.wide.u32 %%a%u, %%t1, %u, %s;\n", pick(p, 4), to, bytes, base);
  }
}

/* Behind a row of all threads there is room for more. */
static uint32_t put_behind(program *p, uint32_t bytes, uint32_t room) {
  uint32_t most = room - PROGRAM_THREADS * bytes;
  return room <= PROGRAM_THREADS * bytes || one_in(p, 2) ? 0 : pick(p, most / bytes) * bytes;
}

static void put_load(program *p, const char *space, const char *base, uint32_t room, bool constant) {
  static const char *const ways[] = {"", "", "", "", ".volatile", ".ca", ".cg", ".relaxed.gpu"};
  const cell *c = &CHOOSE(p, cells);
  uint32_t vector = vector_of(p, c), bytes = c->bytes * vector;
  bool generic = !space[0];
  put_address(p, 0, base, bytes, room / 2);
  const char *way = constant ? "" : CHOOSE(p, ways);
  bool cached = way[0] && way[1] == 'c';
  if (cached && generic) way = "";
  put_guard(p, 6);
  if (cached) PUT(p, "ld%s%s", space, way);
  else PUT(p, "ld%s%s", way, space);
  PUT(p, "%s.%s ", vector == 1 ? "" : vector == 2 ? ".v2" : ".v4", c->type);
  put_data(p, c, vector, false);
  PUT(p, ", [%%a0+%u];\n", put_behind(p, bytes, room / 2));
}

static void put_store(program *p, const char *space, const char *base, uint32_t room) {
  const cell *c = &CHOOSE(p, cells);
  uint32_t vector = vector_of(p, c), bytes = c->bytes * vector;
  put_address(p, 1, base, bytes, room / 2);
  put_guard(p, 6);
  PUT(p, "st%s%s%s.b%u [%%a1+%u], ", one_in(p, 8) ? ".volatile" : "", space,
      vector == 1   ? ""
      : vector == 2 ? ".v2"
                    : ".v4",
      c->bytes * 8, put_behind(p, bytes, room / 2));
  put_data(p, c, vector, true);
  PUT(p, ";\n");
}

static void put_atomic(program *p, const char *space, const char *base, uint32_t room) {
  static const char *const words[] = {"add.u32",  "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32",
                                      "exch.b32", "inc.u32", "dec.u32", "add.f32", "cas.b32"};
  static const char *const longs[] = {"add.u64", "min.s64", "max.u64", "xor.b64", "exch.b64", "cas.b64", "add.f64"};
  bool wide = one_in(p, 3);
  const char *op = wide ? CHOOSE(p, longs) : CHOOSE(p, words);
  bool cas = !strncmp(op, "cas", 3), reduces = one_in(p, 3) && !cas && strncmp(op, "exch", 4);
  char letter = wide ? 'd' : 'r';
  uint32_t many = wide ? R64 : R32;
  put_address(p, 2, base, wide ? 8 : 4, room / 2);
  put_guard(p, 6);
  if (reduces) PUT(p, "red%s.%s [%%a2], %%%c%u;\n", space, op, letter, pick(p, many));
  else if (cas)
    PUT(p, "atom%s.%s %%%c%u, [%%a2], %%%c%u, %%%c%u;\n", space, op, letter, pick(p, many), letter, pick(p, many),
        letter, pick(p, many));
  else PUT(p, "atom%s.%s %%%c%u, [%%a2], %%%c%u;\n", space, op, letter, pick(p, many), letter, pick(p, many));
}

/* Shared memory by 32-bit offsets: rows, pieces of rows, one cell, anything. */
static void put_shared(program *p) {
  const cell *c = &CHOOSE(p, cells);
  uint32_t vector = vector_of(p, c), bytes = c->bytes * vector, last = PROGRAM_SHARED / 2 / bytes - 1;
  bool store = one_in(p, 2);
  switch (pick(p, 5)) {
  case 0: PUT(p, "and.b32 %%t2, %%ti, %u;\nmad.lo.u32 %%t2, %%t2, %u, %%sh;\n", last, bytes); break;
  case 1: PUT(p, "and.b32 %%t2, %%r%u, %u;\nmad.lo.u32 %%t2, %%t2, %u, %%sh;\n", pick(p, R32), last, bytes); break;
  case 2: PUT(p, "add.u32 %%t2, %%sh, %u;\n", pick(p, last) * bytes); break;
  case 3:
    PUT(p, "shr.u32 %%t2, %%ti, %u;\nand.b32 %%t2, %%t2, %u;\nmad.lo.u32 %%t2, %%t2, %u, %%sh;\n", 1 + pick(p, 3), last,
        bytes);
    break;
  default: PUT(p, "and.b32 %%t2, %%ti, %u;\nmad.lo.u32 %%t2, %%t2, %u, %%sh;\n", 15 & last, bytes);
  }
  put_guard(p, 6);
  PUT(p, "%s.shared%s.%s%s ", store ? "st" : "ld",
      vector == 1   ? ""
      : vector == 2 ? ".v2"
                    : ".v4",
      store ? "b" : "",
      store ? (c->bytes == 1   ? "8"
               : c->bytes == 2 ? "16"
               : c->bytes == 4 ? "32"
                               : "64")
            : c->type);
  const char *at = one_in(p, 3) ? "%t2+2048" : "%t2";
  if (store) {
    PUT(p, "[%s], ", at);
    put_data(p, c, vector, true);
  } else {
    put_data(p, c, vector, false);
    PUT(p, ", [%s]", at);
  }
  PUT(p, ";\n");
}

static void put_local(program *p) {
  uint32_t how = pick(p, 4);
  if (how < 2) PUT(p, "and.b32 %%t3, %%r%u, 60;\ncvt.u64.u32 %%a3, %%t3;\nadd.u64 %%a3, %%a3, %%lo;\n", pick(p, R32));
  else PUT(p, "add.u64 %%a3, %%lo, %u;\n", pick(p, 15) * 4 & ~7u);
  put_guard(p, 6);
  switch (pick(p, 6)) {
  case 0: PUT(p, "st.local.b32 [%%a3], %%r%u;\n", pick(p, R32)); break;
  case 1: PUT(p, "ld.local.u32 %%r%u, [%%a3];\n", pick(p, R32)); break;
  case 2: PUT(p, "ld.local.s8 %%r%u, [%%a3+1];\n", pick(p, R32)); break;
  case 3: PUT(p, "st.local.b16 [%%a3+2], %%h%u;\n", pick(p, R16)); break;
  case 4: PUT(p, how < 2 ? "ld.local.u16 %%h%u, [%%a3];\n" : "ld.local.u64 %%d%u, [%%a3];\n", pick(p, R16)); break;
  default: PUT(p, how < 2 ? "st.local.u8 [%%a3+3], %%h%u;\n" : "st.local.v2.b32 [%%a3], {%%r%u, 7};\n", pick(p, R16));
  }
}

static void put_memory(program *p) {
  switch (pick(p, 12)) {
  case 0:
  case 1: put_load(p, ".global", "%tab", PROGRAM_TABLE, false); break;
  case 2: put_load(p, ".global", "%out", PROGRAM_OUT, false); break;
  case 3: put_load(p, ".const", "%con", 4096, true); break;
  case 4: put_load(p, "", pick(p, 3) ? "%tab" : pick(p, 2) ? "%gsh" : "%out", PROGRAM_SHARED, false); break;
  case 5: put_store(p, "", pick(p, 2) ? "%gsh" : "%out", PROGRAM_SHARED); break;
  case 6:
  case 7: put_store(p, ".global", "%out", PROGRAM_OUT); break;
  case 8: put_atomic(p, ".global", "%out", PROGRAM_OUT); break;
  case 9: put_local(p); break;
  case 10:
    put_atomic(p, p->faults && one_in(p, 4) ? ".shared" : "", "%gsh", PROGRAM_SHARED);
    break; /* as .shared: the address of a window, a fault */
  default: put_shared(p);
  }
}

static void put_shared_atomic(program *p) {
  static const char *const words[] = {"add.u32", "min.s32", "max.u32", "xor.b32", "exch.b32", "inc.u32"};
  PUT(p, "and.b32 %%t2, %%r%u, 511;\nmad.lo.u32 %%t2, %%t2, 4, %%sh;\n", pick(p, R32));
  put_guard(p, 6);
  PUT(p, "atom.shared.%s %%r%u, [%%t2], %%r%u;\n", CHOOSE(p, words), pick(p, R32), pick(p, R32));
}

/* ---- exchanges within a warp ---- */

static void put_exchange(program *p) {
  static const char *const ways[] = {"up", "down", "bfly", "idx"}, *const votes[] = {"all", "any", "uni"},
                           *const reductions[] = {"add.s32", "min.u32", "max.s32", "and.b32",
                                                  "or.b32",  "xor.b32", "min.s32"};
  const char *mask = "%t4";
  if (p->depth || one_in(p, 2)) PUT(p, "activemask.b32 %%t4;\n");
  else mask = "-1";
  if (one_in(p, 10)) put_guard(p, 1);
  switch (pick(p, 8)) {
  case 0:
  case 1:
    PUT(p, "shfl.sync.%s.b32 %%r%u|%%p%u, %%r%u, %u, %u, %s;\n", CHOOSE(p, ways), pick(p, R32), pick(p, PREDS),
        pick(p, R32), pick(p, 32), pick(p, 2) ? 31 : 0x1c03, mask);
    break;
  case 2:
    PUT(p, "shfl.sync.%s.b32 %%r%u, %%r%u, %%r%u, 31, %s;\n", CHOOSE(p, ways), pick(p, R32), pick(p, R32), pick(p, R32),
        mask);
    break;
  case 3:
    PUT(p, "vote.sync.%s.pred %%p%u, %s%%p%u, %s;\n", CHOOSE(p, votes), pick(p, PREDS), pick(p, 2) ? "!" : "",
        pick(p, PREDS), mask);
    break;
  case 4: PUT(p, "vote.sync.ballot.b32 %%r%u, %%p%u, %s;\n", pick(p, R32), pick(p, PREDS), mask); break;
  case 5: PUT(p, "redux.sync.%s %%r%u, %%r%u, %s;\n", CHOOSE(p, reductions), pick(p, R32), pick(p, R32), mask); break;
  case 6:
    if (pick(p, 2)) PUT(p, "match.any.sync.b32 %%r%u, %%r%u, %s;\n", pick(p, R32), pick(p, R32), mask);
    else PUT(p, "match.all.sync.b64 %%r%u|%%p%u, %%d%u, %s;\n", pick(p, R32), pick(p, PREDS), pick(p, R64), mask);
    break;
  default:
    if (pick(p, 2)) PUT(p, "elect.sync %%r%u|%%p%u, %s;\n", pick(p, R32), pick(p, PREDS), mask);
    else PUT(p, "bar.warp.sync %s;\n", mask);
  }
}

/* ---- control ---- */

static void put_statement(program *p);

void put_statements(program *p, uint32_t most) {
  for (uint32_t n = 1 + pick(p, most); n && p->budget; n--) put_statement(p);
}

static void put_if(program *p) {
  uint32_t label = p->labels++, predicate = pick(p, PREDS);
  if (pick(p, 4)) put_part(p, predicate);
  PUT(p, "@%s%%p%u bra E%u;\n", pick(p, 2) ? "!" : "", predicate, label);
  p->depth++;
  put_statements(p, 4);
  if (pick(p, 2)) {
    PUT(p, "bra Y%u;\nE%u:\n", label, label);
    put_statements(p, 4);
    PUT(p, "Y%u:\n", label);
  } else {
    PUT(p, "E%u:\n", label);
  }
  p->depth--;
}

/* The number of trips is a constant, a parameter, or a lane's own; some lanes leave early or leave out the rest of a
 * trip. */
static void put_loop(program *p) {
  uint32_t label = p->labels++, d = p->loops++;
  switch (pick(p, 3)) {
  case 0: PUT(p, "mov.u32 %%n%u, %u;\n", d, 1 + pick(p, 6)); break;
  case 1: PUT(p, "and.b32 %%n%u, %%n, 7;\n", d); break;
  default: PUT(p, "and.b32 %%n%u, %%r%u, 7;\n", d, pick(p, R32));
  }
  PUT(p, "mov.u32 %%c%u, 0;\nL%u:\n", d, label);
  p->depth++;
  put_statements(p, 5);
  if (one_in(p, 3)) {
    uint32_t predicate = pick(p, PREDS);
    put_part(p, predicate);
    PUT(p, "@%%p%u bra %c%u;\n", predicate, pick(p, 2) ? 'X' : 'Z', label);
    put_statements(p, 3);
  }
  p->depth--;
  PUT(p, "Z%u:\nadd.u32 %%c%u, %%c%u, 1;\nsetp.lt.u32 %%g%u, %%c%u, %%n%u;\n@%%g%u bra L%u;\nX%u:\n", label, d, d, d, d,
      d, d, label, label);
  p->loops--;
}

static void put_switch(program *p) {
  uint32_t label = p->labels++;
  PUT(p, "and.b32 %%t5, %%r%u, 3;\nT%u: .branchtargets B%ua, B%ub, B%uc, B%ua;\n", pick(p, R32), label, label, label,
      label, label);
  PUT(p, "brx.idx %%t5, T%u;\n", label);
  p->depth++;
  for (char c = 'a'; c <= 'c'; c++) {
    PUT(p, "B%u%c:\n", label, c);
    put_statements(p, 3);
    if (c != 'c') PUT(p, "bra V%u;\n", label);
  }
  p->depth--;
  PUT(p, "V%u:\n", label);
}

static void put_call(program *p) {
  uint32_t f = pick(p, p->functions), to = pick(p, R32);
  if (f == 0 && one_in(p, 2)) {
    put_guard(p, 4);
    PUT(p, "call (%%r%u), g, (%%r%u, %%d%u);\n", to, pick(p, R32), pick(p, R64));
    return;
  }
  PUT(p,
      "{ .param .b32 v; .param .b64 x; .param .b32 a; .param .b64 b; .param .b64 c; .param .b64 e; .param .align 8 .b8 s[12];\n");
  PUT(p, "st.param.b32 [a], %%r%u; st.param.b64 [b], %%d%u; st.param.b64 [c], %%out; st.param.b64 [e], %%tab;\n",
      pick(p, R32), pick(p, R64));
  PUT(p, "st.param.b64 [s], %%d%u; st.param.b16 [s+8], %%h%u; st.param.b8 [s+11], %%h%u;\n", pick(p, R64), pick(p, R16),
      pick(p, R16));
  char guard[16] = ""; /* what a call that was not made would have given is not read */
  if (p->functions > 1 && one_in(p, 3)) {
    uint32_t label = p->labels++;
    PUT(p, "mov.u64 %%a0, f%u; mov.u64 %%a1, f%u; selp.b64 %%a0, %%a0, %%a1, %%p%u;\n", f, pick(p, p->functions),
        pick(p, PREDS));
    PUT(p,
        "P%u: .callprototype (.param .b32 _, .param .b64 _) _ (.param .b32 _, .param .b64 _, .param .b64 _, .param .b64 _, .param .align 8 .b8 _[12]);\n",
        label);
    PUT(p, "call (v, x), %%a0, (a, b, c, e, s), P%u;\n", label);
  } else {
    if (one_in(p, 4)) snprintf(guard, sizeof guard, "@%s%%p%u ", pick(p, 2) ? "!" : "", pick(p, PREDS));
    PUT(p, "%scall (v, x), f%u, (a, b, c, e, s);\n", guard, f);
  }
  PUT(p, "%sld.param.b32 %%r%u, [v]; %sld.param.b64 %%d%u, [x]; }\n", guard, to, guard, pick(p, R64));
}

static void put_barrier(program *p) {
  switch (pick(p, 6)) {
  case 0: PUT(p, "bar.red.popc.u32 %%r%u, 0, %s%%p%u;\n", pick(p, R32), pick(p, 2) ? "!" : "", pick(p, PREDS)); break;
  case 1:
    PUT(p, "bar.red.%s.pred %%p%u, 0, %%p%u;\n", pick(p, 2) ? "and" : "or", pick(p, PREDS), pick(p, PREDS));
    break;
  case 2: PUT(p, "barrier.sync %u;\n", pick(p, 16)); break;
  case 3: PUT(p, "%s;\n", pick(p, 2) ? "membar.gl" : "fence.acq_rel.gpu"); break;
  default: PUT(p, "bar.sync %u;\n", pick(p, 2));
  }
}

/* Reads and writes of some lanes only: a part, a part of it, each lane for as long as it wants. */
static void put_accesses(program *p) {
  for (uint32_t n = 1 + pick(p, 3); n; n--) switch (pick(p, 4)) {
    case 0: put_load(p, ".global", "%tab", PROGRAM_TABLE, false); break;
    case 1: put_store(p, ".global", "%out", PROGRAM_OUT); break;
    default: put_shared(p);
    }
}

static void put_parted(program *p) {
  uint32_t label = p->labels++, outer = pick(p, PREDS), inner = pick(p, PREDS), d = p->loops;
  put_part(p, outer);
  PUT(p, "@%%p%u bra I%u;\n", outer, label);
  put_accesses(p);
  put_part(p, inner);
  PUT(p, "@%%p%u bra J%u;\n", inner, label);
  put_accesses(p);
  if (one_in(p, 2)) {
    PUT(p, "bra I%u;\nJ%u:\n", label, label);
    put_accesses(p);
  } else {
    PUT(p, "J%u:\n", label);
  }
  if (one_in(p, 2) && d < DEPTHS) {
    PUT(p, "and.b32 %%n%u, %%r%u, 3;\nK%u:\nsub.u32 %%n%u, %%n%u, 1;\n", d, pick(p, R32), label, d, d);
    put_accesses(p);
    PUT(p, "setp.gt.s32 %%g%u, %%n%u, 0;\n@%%g%u bra K%u;\n", d, d, d, label);
  }
  PUT(p, "I%u:\n", label);
}

/* Tile after tile: some threads bring it, all wait, some use it, all wait. */
static void put_tiles(program *p) {
  uint32_t label = p->labels++, d = p->loops++;
  PUT(p, "mov.u32 %%c%u, %u;\nM%u:\n", d, 1 + pick(p, 4), label);
  put_parted(p);
  PUT(p, "bar.sync 0;\n");
  if (pick(p, 3)) put_parted(p);
  else put_accesses(p);
  PUT(p, "bar.sync %u;\nsub.u32 %%c%u, %%c%u, 1;\nsetp.ne.u32 %%g%u, %%c%u, 0;\n@%%g%u bra M%u;\n", pick(p, 2), d, d, d,
      d, d, label);
  p->loops--;
}

/* One thread gives the word, the others wait for it: who runs how long is in the counters. */
static void put_hand_over(program *p) {
  uint32_t label = p->labels++, at = PROGRAM_SHARED - 4 - 4 * pick(p, 16), who = pick(p, 40);
  PUT(p, "setp.ne.u32 %%q0, %%ti, %u;\n@%%q0 bra H%u;\nst.volatile.shared.u32 [sm+%u], 1;\nH%u:\n", who, label, at,
      label);
  PUT(p, "W%u:\nld.volatile.shared.u32 %%t6, [sm+%u];\nsetp.eq.u32 %%q1, %%t6, 0;\n@%%q1 bra W%u;\n", label, at, label);
}

/* What ends the launch, for a lane or two. */
static void put_fault(program *p) {
  uint32_t label = p->labels++;
  PUT(p, "setp.ne.u32 %%q2, %%gid, %u;\n@%%q2 bra F%u;\n", pick(p, 128), label);
  switch (pick(p, 9)) {
  case 0: PUT(p, "ld.global.u32 %%r0, [%%out+%u];\n", 1 + pick(p, 3)); break;
  case 1: PUT(p, "st.global.u32 [%%out+%u], %%r0;\n", PROGRAM_OUT); break;
  case 2: PUT(p, "ld.global.u64 %%d0, [0];\n"); break;
  case 3: PUT(p, "ld.shared.u32 %%r0, [sm+%u];\n", 100000); break;
  case 4: PUT(p, "st.shared.v2.u32 [sm+4], {%%r0, %%r1};\n"); break;
  case 5: PUT(p, "trap;\n"); break;
  case 6: PUT(p, "st.local.u32 [%%lo+5000], %%r0;\n"); break;
  case 7: PUT(p, "atom.global.add.u32 %%r0, [%%tab+2], 1;\n"); break;
  default: PUT(p, "mov.u32 %%t5, 9;\nT%u: .branchtargets F%u;\nbrx.idx %%t5, T%u;\n", label, label, label);
  }
  PUT(p, "F%u:\n", label);
}

/* A fault of all lanes alike, or of scattered ones: no branch is in front of it. */
static void put_wide_fault(program *p) {
  PUT(p, "mad.wide.u32 %%a0, %%gid, %u, %%out;\n%s %%a0, %%a0, %u;\n", 4 << pick(p, 3), "add.u64",
      (unsigned)(PROGRAM_OUT - 64 * pick(p, 24) + pick(p, 2)));
  if (pick(p, 2)) PUT(p, "ld.global.u32 %%r%u, [%%a0];\n", pick(p, R32));
  else PUT(p, "st.global.u32 [%%a0], %%r%u;\n", pick(p, R32));
}

static void put_rare(program *p) {
  switch (pick(p, 6)) {
  case 0: put_clock(p); break;
  case 1:
    if (p->entry && !p->depth) put_hand_over(p);
    break;
  case 2:
    if (p->entry) {
      put_guard(p, 1);
      PUT(p, "exit;\n");
    } else if (p->depth) {
      put_guard(p, 1);
      PUT(p, "ret;\n");
    }
    break;
  case 3: PUT(p, "nanosleep.u32 5;\n"); break;
  case 4:
    if (p->faults) put_fault(p);
    break;
  default:
    if (p->faults && one_in(p, 2)) put_wide_fault(p);
  }
}

static void put_statement(program *p) {
  if (p->budget) p->budget--;
  switch (pick(p, 30)) {
  case 0:
  case 1:
    if (p->depth < 4) put_if(p);
    break;
  case 2:
  case 3:
    if (p->loops < DEPTHS && p->depth < 4) put_loop(p);
    break;
  case 4:
    if (p->depth < 3) put_switch(p);
    break;
  case 5:
    if (p->functions && p->depth < 3) put_call(p);
    break;
  case 6:
    if (p->entry && !p->depth && p->loops < DEPTHS && one_in(p, 2)) put_tiles(p);
    else if (p->entry && (!p->depth || one_in(p, 30))) put_barrier(p);
    break;
  case 7:
    if (one_in(p, 4)) put_rare(p);
    else put_parted(p);
    break;
  case 8: put_exchange(p); break;
  case 9: put_shared_atomic(p); break;
  case 10:
  case 11:
  case 12:
  case 13: put_memory(p); break;
  case 14:
  case 15: put_compare(p); break;
  case 16:
  case 17:
  case 18: put_integer(p); break;
  case 19:
  case 20:
  case 21:
  case 22:
  case 23:
  case 24: program_block(p); break;
  default: put_operation(p);
  }
}

/* ---- whole texts ---- */

static void put_registers(program *p) {
  PUT(p,
      ".reg .b32 %%r<%d>, %%t<8>, %%c<%d>, %%n<%d>, %%n, %%ti, %%gid, %%sh, %%ck;\n.reg .b64 %%d<%d>, %%a<4>, %%out, %%tab, %%lo, %%gsh, %%con;\n",
      R32, DEPTHS, DEPTHS, R64);
  PUT(p,
      ".reg .b16 %%h<%d>;\n.reg .b128 %%w<2>;\n.reg .pred %%p<%d>, %%q<4>, %%g<%d>;\n.local .align 16 .b8 lm[256];\n",
      R16, PREDS, DEPTHS);
  program_block_registers(p);
}

/* Where things are, the same in every function. */
static void put_places(program *p) {
  PUT(p,
      "mov.u32 %%ck, %%clock;\nmov.u32 %%ti, %%tid.x;\nmov.u32 %%t0, %%ntid.x;\nmov.u32 %%t1, %%tid.y;\nmad.lo.u32 %%ti, %%t1, %%t0, %%ti;\nmov.u32 %%t2, %%ntid.y;\nmul.lo.u32 %%t0, %%t0, %%t2;\n"
      "mov.u32 %%t1, %%tid.z;\nmad.lo.u32 %%ti, %%t1, %%t0, %%ti;\nmov.u32 %%t2, %%ntid.z;\nmul.lo.u32 %%t0, %%t0, %%t2;\nmov.u32 %%t1, %%ctaid.x;\nmad.lo.u32 %%gid, %%t1, %%t0, %%ti;\n"
      "mov.u32 %%sh, sm;\ncvta.shared.u64 %%gsh, sm;\nmov.u64 %%lo, lm;\nmov.u64 %%con, cm;\n");
}

/* Values of all kinds: some the same for all lanes. */
static void put_values(program *p) {
  for (int r = 0; r < R32; r += 4) {
    if (pick(p, 3))
      PUT(p, "mad.wide.u32 %%a0, %%gid, 16, %%tab;\nld.global.v4.u32 {%%r%d, %%r%d, %%r%d, %%r%d}, [%%a0+%u];\n", r,
          r + 1, r + 2, r + 3, pick(p, 512) * 16);
    else
      PUT(p, "ld.global.v4.u32 {%%r%d, %%r%d, %%r%d, %%r%d}, [%%tab+%u];\n", r, r + 1, r + 2, r + 3, pick(p, 512) * 16);
  }
  for (int d = 0; d < R64; d += 2)
    PUT(p, "mad.wide.u32 %%a0, %%gid, 16, %%tab;\nld.global.v2.u64 {%%d%d, %%d%d}, [%%a0+%u];\n", d, d + 1,
        pick(p, 512) * 16);
  for (int h = 0; h < R16; h += 4)
    PUT(p, "mad.wide.u32 %%a0, %%gid, 8, %%tab;\nld.global.v4.u16 {%%h%d, %%h%d, %%h%d, %%h%d}, [%%a0+%u];\n", h, h + 1,
        h + 2, h + 3, pick(p, 1000) * 8);
  PUT(p, "mov.u32 %%r3, %%gid;\nmov.u32 %%r7, %%n;\n");
  for (uint32_t q = 0; q < PREDS; q++) put_part(p, q);
}

/* The next place for a result of 8 bytes of every thread. */
static uint32_t next_slot(program *p) { return p->slots++ % PROGRAM_SLOTS * PROGRAM_THREADS * 8; }

static void put_result(program *p, operand_kind kind, const char *name) {
  uint32_t at = next_slot(p);
  if (kind == OPERAND_PRED) PUT(p, "selp.u32 %%t0, 1, 0, %s;\nst.global.u32 [%%a2+%u], %%t0;\n", name, at);
  else PUT(p, "st.global.b%u [%%a2+%u], %s;\n", kind == OPERAND_16 ? 16 : kind == OPERAND_32 ? 32 : 64, at, name);
}

static void put_results(program *p) {
  static const operand_kind kinds[] = {OPERAND_PRED, OPERAND_16, OPERAND_32, OPERAND_64};
  PUT(p, "mad.wide.u32 %%a2, %%gid, 8, %%out;\n");
  for (int k = 0; k < 4; k++)
    for (uint32_t r = 0; r < counts[kinds[k]]; r++) {
      char name[16];
      snprintf(name, sizeof name, "%%%c%u", letters[kinds[k]], r);
      put_result(p, kinds[k], name);
    }
}

static void put_function(program *p, uint32_t number) {
  p->entry = false;
  p->functions = number;
  PUT(p,
      ".func (.param .b32 v, .param .b64 x) f%u(.param .b32 a, .param .b64 b, .param .b64 c, .param .b64 e, .param .align 8 .b8 s[12])\n{\n",
      number);
  put_registers(p);
  PUT(p,
      "ld.param.b32 %%r0, [a];\nld.param.b64 %%d0, [b];\nld.param.b64 %%out, [c];\nld.param.b64 %%tab, [e];\nld.param.b64 %%d1, [s];\nld.param.u16 %%h0, [s+8];\nld.param.s8 %%r1, [s+11];\n"
      "mov.u32 %%n, %%ntid.x;\nst.param.b32 [v], %%r0;\nst.param.b64 [x], %%d0;\n");
  put_places(p);
  PUT(p,
      "mad.wide.u32 %%a0, %%gid, 16, %%tab;\nld.global.v4.u32 {%%r2, %%r3, %%r4, %%r5}, [%%a0+%u];\nadd.u32 %%r6, %%r0, %%r2;\n",
      pick(p, 512) * 16);
  uint32_t left = p->budget;
  p->budget = left < 8 ? left : 8;
  left -= p->budget;
  while (p->budget) put_statement(p);
  p->budget = left;
  PUT(p, "st.param.b32 [v], %%r%u;\nst.param.b64 [x], %%d%u;\nret;\n}\n", pick(p, R32), pick(p, R64));
}

static void put_head(program *p, const char *what, uint64_t seed) {
  PUT(p, "// %s %llu\n.version 8.7\n.target sm_100a\n.address_size 64\n.const .align 16 .b8 cm[4096] = {", what,
      (unsigned long long)seed);
  for (uint32_t n = 0; n < 64; n++) PUT(p, "%s%u", n ? ", " : "", pick(p, 256));
  PUT(p, "};\n.shared .align 16 .b8 sm[%u];\n", PROGRAM_SHARED);
  program_block_head(p);
}

static void put_entry(program *p) {
  p->entry = true;
  PUT(p, ".visible .entry k(.param .u64 po, .param .u64 pt, .param .u32 pn, .param .f32 pf)%s\n{\n",
      p->cluster ? " .reqnctapercluster 2" : "");
  put_registers(p);
  PUT(p, "ld.param.u64 %%out, [po];\nld.param.u64 %%tab, [pt];\nld.param.u32 %%n, [pn];\n");
  put_places(p);
  PUT(p, "ld.param.f32 %%r1, [pf];\n");
}

ff_text program_random(const program_forms *forms, uint64_t seed) {
  program p = {.state = seed * 2 + 1, .forms = forms};
  p.budget = 6 + pick(&p, 30);
  p.faults = one_in(&p, 6);
  p.cluster = one_in(&p, 8);
  put_head(&p, "random", seed);
  PUT(&p,
      ".func (.reg .b32 v) g(.reg .b32 a, .reg .b64 b)\n{\n.reg .pred q;\n.reg .b32 t;\nsetp.gt.s32 q, a, 5;\ncvt.u32.u64 t, b;\n@q add.u32 a, a, t;\nmov.u32 v, a;\nret;\n}\n");
  p.recurses = one_in(&p, 3);
  if (p.recurses) program_block_functions(&p);
  uint32_t functions = pick(&p, FUNCTIONS + 1);
  for (uint32_t f = 0; f < functions; f++) put_function(&p, f);
  p.functions = functions;
  put_entry(&p);
  put_values(&p);
  while (p.budget) put_statement(&p);
  put_results(&p);
  PUT(&p, "ret;\n}\n");
  return p.text;
}

/* ---- every form ---- */

/* A value for a source in its register: one per lane, one for all, of the table. */
static void put_sweep_value(program *p, operand_kind kind, const char *name, bool same) {
  uint32_t bytes = kind == OPERAND_16 ? 2 : kind == OPERAND_64 ? 8 : 4;
  if (kind == OPERAND_PRED) {
    PUT(p, "setp.%s.u32 %s, %s, %u;\n", pick(p, 2) ? "lt" : "ge", name, same ? "%n" : "%ti", pick(p, 60));
    return;
  }
  if (same) PUT(p, "ld.global.b%u %s, [%%tab+%u];\n", bytes * 8, name, pick(p, PROGRAM_TABLE / 16) * 16);
  else
    PUT(p, "mad.wide.u32 %%a0, %%gid, %u, %%tab;\nld.global.b%u %s, [%%a0+%u];\n", bytes, bytes * 8, name,
        pick(p, 400) * 16);
}

/* same: bit s: source s is one value for all lanes; constant: the last source is a constant. */
static void put_sweep_form(program *p, const program_form *form, uint32_t same, bool constant, bool guarded) {
  char names[4][16], literal[40], d[16];
  bool real = form->sources && ptx_type_class(form->type[form->sources - 1]) == 'F' &&
              form->type[form->sources - 1] != PTX_F32 && form->type[form->sources - 1] != PTX_F64;
  for (uint32_t s = 0; s < form->sources; s++) {
    snprintf(names[s], sizeof names[s], "%%%c%u", letters[form->src[s]], s);
    put_sweep_value(p, form->src[s], names[s], same >> s & 1);
  }
  snprintf(d, sizeof d, "%%%c%u", letters[form->dst], 5u);
  if (guarded) {
    put_sweep_value(p, form->dst, d, one_in(p, 2));
    put_sweep_value(p, OPERAND_PRED, "%p7", one_in(p, 2));
    PUT(p, "@%s%%p7 ", one_in(p, 2) ? "!" : "");
  }
  PUT(p, "%s %s", form->text, d);
  for (uint32_t s = 0; s < form->sources; s++) {
    bool last = s + 1 == form->sources && constant && !real && form->src[s] != OPERAND_PRED &&
                ptx_type_bits(form->type[s]) <= 64;
    if (last) program_constant(&p->state, form->type[s], literal, sizeof literal);
    PUT(p, ", %s", last ? literal : names[s]);
  }
  PUT(p, form->lop3 ? ", %u;\n" : ";\n", pick(p, 256));
  put_result(p, form->dst, d);
}

ff_text program_sweep(const program_forms *forms, bool native, uint32_t first, uint32_t count, uint64_t seed) {
  program p = {.state = seed * 2 + first * UINT64_C(1000003), .forms = forms};
  put_head(&p, "sweep", first);
  put_entry(&p);
  PUT(&p, "mad.wide.u32 %%a2, %%gid, 8, %%out;\n");
  for (uint32_t f = first; f < first + count && f < program_forms_count(forms, native); f++) {
    const program_form *form = &forms->items.items[native ? forms->native.items[f] : f];
    put_sweep_form(&p, form, 0, false, false);
    put_sweep_form(&p, form, 15, false, false);
    if (!native || one_in(&p, 2)) put_sweep_form(&p, form, pick(&p, 15), one_in(&p, 2), one_in(&p, 2));
    if (!native && one_in(&p, 2)) put_sweep_form(&p, form, 15, true, one_in(&p, 2));
  }
  PUT(&p, "ret;\n}\n");
  return p.text;
}

uint64_t program_value(uint64_t noise) {
  static const uint64_t special[] = {0,
                                     1,
                                     UINT64_MAX,
                                     UINT64_C(1) << 63,
                                     UINT64_C(0x7ff0000000000000),
                                     UINT64_C(0xfff0000000000001),
                                     UINT64_C(0x7ff8000000000123),
                                     UINT64_C(0x3ff0000000000000),
                                     UINT64_C(0x3f8000007f800000),
                                     UINT64_C(0xff8000007fc00001),
                                     UINT64_C(0x7f80000100000001),
                                     UINT64_C(0x807fffff00800000),
                                     UINT64_C(0x7f7fffffff7fffff),
                                     UINT64_C(0x3c0000017c00fc00),
                                     UINT64_C(0x7e017bff83ff0400),
                                     UINT64_C(0x3f807f80ff810001),
                                     UINT64_C(0x8000000080000000),
                                     UINT64_C(0x7fffffff7fffffff),
                                     UINT64_C(0x000f000000000000),
                                     UINT64_C(0x41dfffffffc00000),
                                     UINT64_C(0xc1e0000000200000),
                                     UINT64_C(0x4f0000004effffff),
                                     UINT64_C(0x36a0000000000001),
                                     UINT64_C(0x47efffffe0000000),
                                     UINT64_C(0x47effffff0000000),
                                     UINT64_C(0x3810000000000000),
                                     UINT64_C(0x380fffffe0000000)};
  switch (noise >> 5 & 3) {
  case 0: return special[(noise >> 40) % (sizeof special / sizeof *special)];
  case 1: return (noise >> 20 & 63) | (noise >> 30 & 63) << 32;
  case 2:
    return (noise & UINT64_C(0x007fffff007fffff)) | UINT64_C(0x3f0000003f800000) |
           (noise & UINT64_C(0x8300000081000000));
  default: return noise;
  }
}
