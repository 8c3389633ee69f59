/* SPDX-License-Identifier: Apache-2.0 */
/* From the interpreter's tables to statements: every name of every table, with registers of the widths that it asks
 * for. */
#include "forms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile/known_forms.h"

uint32_t program_pick(uint64_t *state, uint32_t n) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return (uint32_t)((z ^ z >> 31) >> 32) % n;
}

#define PICK(list) (list)[program_pick(state, sizeof(list) / sizeof *(list))]

void program_constant(uint64_t *state, ptx_type type, char *out, size_t room) {
  static const long long integers[] = {0,     1,     2,     3,  5,  7,  8,   15,   16,    17,  24,
                                       31,    32,    33,    47, 63, 64, 65,  127,  128,   255, 256,
                                       32767, 32768, 65535, -1, -2, -7, -32, -128, -32768};
  static const uint32_t singles[] = {0,           0x80000000u, 1,           0x807fffffu, 0x00800000u,
                                     0x3f800000u, 0xbf800000u, 0x40000000u, 0x7f800000u, 0xff800000u,
                                     0x7fc00000u, 0x7f800001u, 0xffc12345u, 0x7f7fffffu, 0x4f000000u,
                                     0xcf000000u, 0x3effffffu, 0x40490fdbu, 0x4b000001u};
  static const uint64_t doubles[] = {0,
                                     UINT64_C(1) << 63,
                                     1,
                                     UINT64_C(0x3ff0000000000000),
                                     UINT64_C(0xbff0000000000000),
                                     UINT64_C(0x7ff0000000000000),
                                     UINT64_C(0xfff0000000000000),
                                     UINT64_C(0x7ff8000000000000),
                                     UINT64_C(0x7ff0000000000001),
                                     UINT64_C(0xfff8000000012345),
                                     UINT64_C(0x7fefffffffffffff),
                                     UINT64_C(0x41e0000000000000),
                                     UINT64_C(0x36a0000000000000),
                                     UINT64_C(0x400921fb54442d18)};
  if (type == PTX_F32) snprintf(out, room, "0f%08X", PICK(singles));
  else if (type == PTX_F64) snprintf(out, room, "0d%016llX", (unsigned long long)PICK(doubles));
  else if (ptx_type_bits(type) >= 32 && program_pick(state, 4) == 0)
    snprintf(out, room, "%d", (int)(program_pick(state, UINT32_MAX) ^ program_pick(state, 3)));
  else snprintf(out, room, "%lld", PICK(integers));
}

/* ---- one name of a table ---- */

static operand_kind kind_of(ptx_type type) {
  if (type == PTX_TYPE_NONE) return OPERAND_NONE;
  uint32_t bits = ptx_type_bits(type);
  if (type == PTX_PRED) return OPERAND_PRED;
  return bits <= 16 ? OPERAND_16 : bits <= 32 ? OPERAND_32 : OPERAND_64;
}

static const char *register_of(operand_kind kind) {
  static const char *const registers[] = {"", "%p1", "%h1", "%r1", "%d1"};
  return registers[kind];
}

/* cvt writes down when a register is wider than its type: "<64" for the source, "@32" and "@64" for the destination. */
static void cut_widths(char *name, program_form *form) {
  char *wide = strpbrk(name, "<@/");
  if (!wide) return;
  if (strstr(wide, "<64")) form->src[0] = OPERAND_64;
  if (strstr(wide, "@32")) form->dst = OPERAND_32;
  if (strstr(wide, "@64")) form->dst = OPERAND_64;
  *wide = 0;
}

static void put_statement(const program_form *form, ff_text *out) {
  ff_text_add(out, "%s %s", form->text, register_of(form->dst));
  for (uint32_t s = 0; s < form->sources; s++) ff_text_add(out, ", %s", register_of(form->src[s]));
  ff_text_add(out, form->lop3 ? ", 0x96;\n" : ";\n");
}

static bool is_native(const ops_entry *entry) {
  static compile_form *forms;
  static uint32_t count;
  if (!forms) forms = compile_forms(&OPS_SET_ANY, &count);
  for (uint32_t n = 0; n < count; n++)
    if (forms[n].entry->run[0] == entry->run[0]) return true;
  return false;
}

/* Is it an instruction, and does it have a handler? */
static bool works(const program_form *form) {
  ff_text text = {0};
  ff_error error = {0};
  ptx_module *module = NULL;
  exec_choice choice = {0};
  ff_text_add(
      &text,
      ".version 8.7\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{\n.reg .b16 %%h<4>; .reg .b32 %%r<4>; .reg .b64 %%d<4>; .reg .pred %%p<4>;\n");
  put_statement(form, &text);
  ff_text_add(&text, "}\n");
  bool good = ptx_module_parse("form", text.chars, text.length, &module, &error) == FF_OK;
  good = good && module->func_count == 1 && module->funcs[0]->instr_count == 1;
  good = good && ops_choose(&OPS_SET_ANY, module->funcs[0], &module->funcs[0]->instrs[0], &choice, &error) == FF_OK;
  ptx_module_free(module);
  free(text.chars);
  return good;
}

/* Is the handler there already, under another name? */
static bool name_of_same(const program_forms *forms, const ops_entry *entry) {
  for (size_t n = 0; n < forms->handlers.count; n++)
    if (forms->handlers.items[n] == entry->run[0]) return true;
  return false;
}

static void add_name(program_forms *forms, const ops_entry *entry, const char *name, size_t length) {
  char *text = ff_arena_strndup(&forms->arena, name, length);
  program_form form = {.text = text, .dst = kind_of(entry->dst)};
  while (form.sources < 4 && entry->src[form.sources] != PTX_TYPE_NONE) {
    form.src[form.sources] = kind_of(entry->src[form.sources]);
    form.type[form.sources] = entry->src[form.sources];
    form.sources++;
  }
  bool converts = !strncmp(text, "cvt.", 4);
  if (converts && !strncmp(text, "cvt.pack", 8)) converts = false;
  cut_widths(text, &form);
  if (converts && form.dst == OPERAND_32 && !strstr(name, "@32") && (strstr(text, ".u8.") || strstr(text, ".s8.")))
    form.dst = OPERAND_16;
  form.compares = !strncmp(text, "setp.", 5);
  form.lop3 = !strncmp(text, "lop3.", 5);
  if (form.lop3) form.sources = 3; /* the last one is the table */
  form.native = is_native(entry);
  if (works(&form)) {
    if (form.native && !name_of_same(forms, entry)) {
      FF_PUSH(&forms->native, (uint32_t)forms->items.count);
      FF_PUSH(&forms->handlers, entry->run[0]);
    }
    FF_PUSH(&forms->items, form);
  } else if (text[0] != 'v') { /* v: video, made by hand */
    FF_PUSH(&forms->missing, (const char *)ff_arena_strndup(&forms->arena, name, length));
  }
}

program_forms *program_forms_make(void) {
  program_forms *forms = ff_alloc(sizeof *forms);
  for (int t = 0; OPS_SET_ANY.tables[t]; t++)
    for (const ops_entry *entry = OPS_SET_ANY.tables[t]; entry->names; entry++)
      for (const char *name = entry->names; *name;) {
        size_t length = strcspn(name, " ");
        add_name(forms, entry, name, length);
        name += length + strspn(name + length, " ");
      }
  return forms;
}

uint32_t program_forms_count(const program_forms *forms, bool native) {
  return (uint32_t)(native ? forms->native.count : forms->items.count);
}

uint32_t program_forms_missing(const program_forms *forms, const char *const **names) {
  *names = forms->missing.items;
  return (uint32_t)forms->missing.count;
}

void program_forms_free(program_forms *forms) {
  free(forms->items.items);
  free(forms->missing.items);
  free(forms->native.items);
  free(forms->handlers.items);
  ff_arena_free(&forms->arena);
  free(forms);
}

/* ---- video instructions: types, modifiers and selectors are in their text ---- */

/* Half of the times none; otherwise `parts` digits below `choices`. */
static void pick_selector(uint64_t *state, char kind, uint32_t parts, uint32_t choices, char out[8]) {
  uint32_t length = 0;
  if (program_pick(state, 2) == 0) {
    out[length++] = '.';
    out[length++] = kind;
    for (uint32_t i = 0; i < parts; i++) out[length++] = (char)('0' + program_pick(state, choices));
  }
  out[length] = '\0';
}

static bool packed_video(uint64_t *state, char *out, size_t room, char selectors[3][8]) {
  static const char *const names[] = {"vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax", "vset"}, *const types[] = {
                                                                                                        "u32", "s32"};
  static const char *const comparisons[] = {"eq", "ne", "lt", "le", "gt", "ge"},
                           *const masks[] = {"", ".h0", ".h1", ".h10"},
                           *const bytes[] = {"", ".b0", ".b2", ".b31", ".b3210"};
  uint32_t four = program_pick(state, 2), name = program_pick(state, 7);
  const char *a = PICK(types), *b = PICK(types),
             *mode = name == 6 ? (program_pick(state, 3) ? "" : ".add")
                               : (const char *[]){"", ".sat", ".add"}[program_pick(state, 3)];
  if (name == 6) snprintf(out, room, "vset%u.%s.%s%s%s", four ? 4 : 2, a, b, "", "");
  else snprintf(out, room, "%s%u.%s.%s.%s%s", names[name], four ? 4 : 2, PICK(types), a, b, mode);
  if (name == 6) snprintf(out, room, "vset%u.%s.%s.%s%s", four ? 4 : 2, a, b, PICK(comparisons), mode);
  snprintf(selectors[0], 8, "%s", four ? PICK(bytes) : PICK(masks));
  if (four) {
    pick_selector(state, 'b', 4, 8, selectors[1]);
    pick_selector(state, 'b', 4, 8, selectors[2]);
  } else {
    pick_selector(state, 'h', 2, 4, selectors[1]);
    pick_selector(state, 'h', 2, 4, selectors[2]);
  }
  return true;
}

bool program_video(uint64_t *state, char *out, size_t room, char selectors[3][8]) {
  static const char *const names[] = {"vadd", "vsub", "vabsdiff", "vmin", "vmax", "vset", "vshl", "vshr", "vmad"},
                           *const types[] = {"u32", "s32"};
  static const char *const parts[] = {"", "", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1"}, *const comparisons[] = {
                                                                                             "eq", "ne", "lt",
                                                                                             "le", "gt", "ge"};
  static const char *const second[] = {"add", "min", "max"}, *const scales[] = {"", ".shr7", ".shr15", ".po"};
  if (program_pick(state, 3) == 0) return packed_video(state, out, room, selectors);
  uint32_t name = program_pick(state, 9);
  const char *d = name == 5                ? ""
                  : program_pick(state, 2) ? ".s32"
                                           : ".u32",
             *b = name == 6 || name == 7 ? "u32" : PICK(types),
             *sat = name != 5 && program_pick(state, 3) == 0 ? ".sat" : "";
  bool merges = name != 8 && program_pick(state, 3) == 0, folds = name != 8 && !merges && program_pick(state, 2);
  char more[32] = "";
  if (name == 5) snprintf(more, sizeof more, ".%s", PICK(comparisons));
  if (name == 6 || name == 7) snprintf(more, sizeof more, program_pick(state, 2) ? ".wrap" : ".clamp");
  if (name == 8) snprintf(more, sizeof more, "%s", PICK(scales));
  snprintf(out, room, "%s%s.%s.%s%s%s%s%s", names[name], d, PICK(types), b, sat, more, folds ? "." : "",
           folds ? PICK(second) : "");
  snprintf(selectors[0], 8, "%s", merges ? parts[2 + program_pick(state, 6)] : "");
  snprintf(selectors[1], 8, "%s", PICK(parts));
  snprintf(selectors[2], 8, "%s", PICK(parts));
  return merges || folds || name == 8;
}
