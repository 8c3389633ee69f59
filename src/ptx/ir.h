/* SPDX-License-Identifier: Apache-2.0 */
/* A PTX module as parsed: what the text says, with names resolved, nothing interpreted yet.
 *
 * The parser (parse.c) builds it, the linker (linker.c) merges modules, the printer (print.c) writes it back, cfg.c and
 * liveness.c analyse it and exec/ decodes it. Everything hangs on the module's arena and is immutable once
 * ptx_module_parse has returned, apart from ptx_link, which makes a new module.
 *
 * Words: an instruction is `@guard opcode.modifier.type dst, src...;` (PTX ISA, "Instruction Statements").
 * Modifiers keep their order of appearance (it matters to wmma) and are in a set as well (for quick questions). */
#ifndef FF_PTX_IR_H
#define FF_PTX_IR_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"

typedef enum ptx_type {
  PTX_TYPE_NONE,
#define X(name, text, bits, class) PTX_##name,
#include "ptx/types.def"
#undef X
  PTX_TYPES
} ptx_type;

/* Mnemonics: `add`, `ld`, ... PTX_OP_ADD, PTX_OP_LD. */
typedef enum ptx_opcode {
#define X(name, text) PTX_OP_##name,
#include "ptx/opcodes.def"
#undef X
  PTX_OPS
} ptx_opcode;

/* Every dotted word that is not a type: rounding (.rn), comparison (.lt), space (.global), scope (.gpu), shape, ... */
typedef enum ptx_mod {
#define X(name, text) PTX_MOD_##name,
#include "ptx/modifiers.def"
#undef X
  PTX_MODS
} ptx_mod;

typedef enum ptx_space {
  PTX_SPACE_GENERIC, /* no space was written */
  PTX_SPACE_REG,
  PTX_SPACE_SREG,
  PTX_SPACE_CONST,
  PTX_SPACE_GLOBAL,
  PTX_SPACE_LOCAL,
  PTX_SPACE_PARAM,
  PTX_SPACE_SHARED,
  PTX_SPACE_TEX,
} ptx_space;

/* Special registers: %tid.x is PTX_SREG_TID_X, %laneid PTX_SREG_LANEID, ... */
typedef enum ptx_sreg {
#define X(name, text, type) PTX_SREG_##name,
#include "ptx/sregs.def"
#undef X
  PTX_SREGS
} ptx_sreg;

typedef struct ptx_place { /* where in the PTX text, from 1 */
  uint32_t line, column;
} ptx_place;

#define PTX_NO_REG UINT32_MAX

struct ptx_func;
struct ptx_var;

typedef struct ptx_symbol { /* a module- or function-level name: a variable or a function */
  const char *name;
  struct ptx_var *var; /* exactly one of the two is set */
  struct ptx_func *func;
} ptx_symbol;

typedef struct ptx_init { /* one address inside initialised data: `.global .u64 t[] = {f, x+4, generic(y)};` */
  uint64_t at;            /* byte offset in the variable */
  uint32_t bytes;         /* 4 or 8 (a mask() of fewer bytes: 1, with shift) */
  uint32_t shift;         /* right shift in bits before storing; 0 normally */
  const ptx_symbol *symbol;
  int64_t offset;
  bool generic; /* generic(x): the generic address */
} ptx_init;

typedef enum ptx_linkage {
  PTX_LINK_NONE,
  PTX_LINK_EXTERN,
  PTX_LINK_VISIBLE,
  PTX_LINK_WEAK,
  PTX_LINK_COMMON
} ptx_linkage;

typedef struct ptx_var { /* .global, .const, .shared, .local, .param, .tex variable */
  const char *name;
  ptx_place place;
  ptx_space space;
  ptx_linkage linkage;
  ptx_type type;             /* of one element */
  uint32_t vector;           /* 1, 2, 4 */
  uint32_t align;            /* bytes, a power of two, not 0 */
  uint64_t size;             /* bytes; 0: `extern .shared x[]` of unknown size */
  bool unsized;              /* declared with [] */
  bool managed;              /* .attribute(.managed) */
  bool pointer;              /* .param .ptr */
  uint32_t reg;              /* a `.reg` parameter or result of a .func (space REG): its register; else PTX_NO_REG */
  const unsigned char *data; /* `size` bytes of initial value, or NULL: zero */
  ptx_init *inits;
  uint32_t init_count;
  uint32_t index;        /* in its owner's list (module->vars or func->vars) */
  struct ptx_func *func; /* owner, NULL at module level */
  ptx_symbol symbol;
} ptx_var;

typedef struct ptx_reg {
  const char *name; /* as written; scoped names may repeat within a function */
  ptx_type type;
  /* 1: `.reg .v4 .f32 v` becomes the four registers v.x, v.y, v.z, v.w, and v a VECTOR of them */
  uint32_t vector;
} ptx_reg;

typedef enum ptx_operand_kind {
  PTX_OPERAND_NONE,     /* also the sink `_` */
  PTX_OPERAND_REG,      /* reg (index into func->regs); negated: !p */
  PTX_OPERAND_REG_PAIR, /* reg|reg2, destination and predicate: setp p|q, shfl d|p; either may be PTX_NO_REG for `_` */
  PTX_OPERAND_INT,      /* bits: 64-bit two's complement */
  PTX_OPERAND_F32,      /* bits: the 32 bits of 0f........ */
  PTX_OPERAND_F64,      /* bits: the 64 bits of 0d... or of a decimal literal */
  PTX_OPERAND_SREG,     /* sreg */
  PTX_OPERAND_SYMBOL,   /* symbol + offset: the address of a variable or function, as in mov.u64 d, x; or a callee */
  /* [reg + offset], [symbol + offset] or [offset]; for tex/surf: elements hold name and coordinates */
  PTX_OPERAND_ADDRESS,
  PTX_OPERAND_LABEL,     /* label: index of the instruction it stands before (may equal instr_count) */
  PTX_OPERAND_VECTOR,    /* {a, b, c, d}: elements */
  PTX_OPERAND_LIST,      /* (a, b): call arguments and results: elements */
  PTX_OPERAND_LABELS,    /* a .branchtargets list (brx.idx): elements are labels; .calltargets: elements are symbols */
  PTX_OPERAND_PROTOTYPE, /* a .callprototype (indirect call) */
} ptx_operand_kind;

typedef struct ptx_operand {
  ptx_operand_kind kind;
  bool negated;       /* !p, or -x where a form allows it */
  uint32_t reg, reg2; /* REG, REG_PAIR; ADDRESS: base register or PTX_NO_REG */
  uint32_t label;     /* LABEL */
  ptx_sreg sreg;      /* SREG */
  uint32_t selector;  /* video instructions, REG: .b0 .h1 .b3210 ...: 0xB or 0xA (h) in the top nibble, the number of
                               digits in the next byte, the digits as nibbles below; 0: none */
  int64_t offset;     /* SYMBOL, ADDRESS */
  uint64_t bits;      /* INT, F32, F64 */
  const ptx_symbol *symbol; /* SYMBOL, ADDRESS: NULL without a symbol */
  struct ptx_operand *elements;
  uint32_t element_count;
  const struct ptx_prototype *prototype;
} ptx_operand;

#define PTX_MAX_OPERANDS 12
#define PTX_MAX_MODS 16
#define PTX_MAX_TYPES 6

typedef struct ptx_instr {
  ptx_opcode opcode;
  ptx_place place;
  uint32_t source_file, source_line; /* from .loc; 0: unknown */
  uint32_t guard;                    /* predicate register or PTX_NO_REG */
  bool guard_negated;
  uint8_t mod_count, type_count, operand_count;
  uint8_t vector;                /* .v2 .v4 .v8: 2, 4, 8; else 1 */
  uint16_t mods[PTX_MAX_MODS];   /* ptx_mod, in order */
  ptx_type types[PTX_MAX_TYPES]; /* in order: cvt.rn.f32.s32 -> F32, S32 */
  uint32_t type_words;           /* bit i: the i-th dotted word is a type, else a modifier; for printing */
  uint64_t mod_set[(PTX_MODS + 63) / 64];
  ptx_operand
      *operands;    /* operand_count of them, in textual order, destination first where there is one; the parser has
                             checked the count (ptx_operand_limits) */
  const char *text; /* PTX_OP_UNKNOWN: the whole statement as written; else NULL */
} ptx_instr;

static inline bool ptx_has(const ptx_instr *instr, ptx_mod mod) { return instr->mod_set[mod / 64] >> (mod % 64) & 1; }

typedef struct ptx_prototype {
  ptx_var **params, **results; /* only type, size, align, vector are meaningful */
  uint32_t param_count, result_count;
} ptx_prototype;

typedef struct ptx_label {
  const char *name;
  uint32_t at; /* instruction index */
} ptx_label;

typedef struct ptx_func {
  const char *name;
  ptx_place place;
  bool entry, has_body, noreturn;
  ptx_linkage linkage;
  ptx_var **params, **results; /* also in vars */
  uint32_t param_count, result_count;
  ptx_var **vars; /* everything declared in the function: params, results, .local, .shared, .param */
  uint32_t var_count;
  ptx_reg *regs;
  uint32_t reg_count;
  ptx_instr *instrs;
  uint32_t instr_count;
  ptx_label *labels;
  uint32_t label_count;
  uint32_t maxntid[3], reqntid[3]; /* 0: not given */
  uint32_t minnctapersm, maxnreg;  /* 0: not given */
  uint32_t cluster[3];             /* .reqnctapercluster; 0: not given */
  uint32_t index;                  /* in module->funcs */
  struct ptx_module *module;
  const struct ptx_module *source; /* whose text the places are in: == module, but for linked functions */
  struct ptx_later *later;         /* how its body is read, and given back; NULL: it was parsed with the module */
  /* == later while the body is not there (ptx_func_read); NULL: the function is whole */
  struct ptx_later *unread;
  struct ptx_func *alias; /* .alias name, target: symbol.func is the target then, and there is no body */
  ptx_symbol symbol;
} ptx_func;

typedef struct ptx_module {
  ff_arena arena;
  const char *name; /* file name or "module 1 of ./saxpy": used in messages */
  uint32_t version_major, version_minor;
  uint32_t target; /* 75 for sm_75; with a suffix: target_suffix 'a' or 'f' */
  char target_suffix;
  uint32_t address_size; /* 32 or 64 */
  ptx_var **vars;
  uint32_t var_count;
  ptx_func **funcs;
  uint32_t func_count;
  ff_map func_names, var_names; /* for ptx_find_func and ptx_find_var; of equal names (after linking) the first */
  const char **files;           /* .file table; index = file number; NULL where unused */
  uint32_t file_count;
  const char *text; /* the source, NUL-terminated, for carets and `disasm`; length text_length */
  size_t text_length;
  struct ptx_parser *parser; /* of ptx_module_parse_later, for what is unread; else NULL */
  struct ptx_linker *linker; /* of ptx_link, where it left bodies unread; else NULL */
  pthread_mutex_t lock;      /* of all that reading a function changes */
} ptx_module;

/* Parses `length` bytes of PTX. `name` stands in messages ("name:line:column: message", the line, and a caret).
 * On success *module is the caller's (ptx_module_free). Reads no byte past the end, whatever the bytes are. */
ff_status ptx_module_parse(const char *name, const char *text, size_t length, ptx_module **module, ff_error *error);
void ptx_module_free(ptx_module *module);
/* The same for a module of which little is used: bodies are only noticed until ptx_func_read. A kernel with a body has
 * nothing but its name, entry, has_body and index until then, or until ptx_func_read_head; any other function has its
 * head. Errors within what was noticed are those calls'. What needs more than its own text (variables of the module in
 * the body, two declarations of a kernel) is whole at once. A body may use a function that is declared only behind
 * it. text[length] must be NUL, and the text outlive the module. */
ff_status ptx_module_parse_later(const char *name, const char *text, size_t length, ptx_module **module,
                                 ff_error *error);
/* Makes a function whole: instructions, labels, registers and variables. Does nothing to one that is. Threads may read
 * functions of a module at the same time, and use those that they have read. */
ff_status ptx_func_read(ptx_func *func, ff_error *error);
/* Parameters, results and directives, of a kernel that has only its name. */
ff_status ptx_func_read_head(ptx_func *func, ff_error *error);
/* Calls `look` once with the whole function. Of one that was unread the body is there only for that time, unless `look`
 * returns true. `look` must not read other functions of the module. */
ff_status ptx_func_look(ptx_func *func, bool (*look)(void *context, const ptx_func *func), void *context,
                        ff_error *error);
ff_status ptx_module_read(ptx_module *module, ff_error *error); /* all of them; the first error */

/* Links modules (relocatable device code): externs meet definitions by name, weak and common ones merge, statics of
 * different modules may share a name. The result borrows from the inputs, which must outlive it; free it with
 * ptx_module_free. Unresolved names are errors only for functions and variables that are used by a body, except the
 * ones the virtual GPU itself provides (vprintf, malloc, free, __assertfail, cnpGet...: they stay has_body ==
 * false). A body that is unread in an input is so in the result, and is read through that alone from then on: what is
 * wrong in it, or unresolved (FF_INVALID), is an error of ptx_func_read. */
ff_status ptx_link(ptx_module *const *modules, uint32_t count, ptx_module **linked, ff_error *error);

ptx_func *ptx_find_func(const ptx_module *module, const char *name); /* NULL: none */
ptx_var *ptx_find_var(const ptx_module *module, const char *name);

const char *ptx_type_text(ptx_type type);
uint32_t ptx_type_bits(ptx_type type);
char ptx_type_class(ptx_type type); /* 'U' 'S' 'F' 'B' 'P' 'O' */
const char *ptx_opcode_text(ptx_opcode opcode);
const char *ptx_mod_text(ptx_mod mod);
const char *ptx_sreg_text(ptx_sreg sreg);

/* The fewest and most operands the instruction may have; the parser refuses others ("add takes 3 operands"). */
void ptx_operand_limits(const ptx_instr *instr, uint32_t *fewest, uint32_t *most);

/* The parts of a call, NULL where absent: (results), callee, (arguments), prototype or target list. */
typedef struct ptx_call {
  const ptx_operand *results, *callee, *arguments, *targets;
} ptx_call;
ptx_call ptx_call_parts(const ptx_instr *instr);

/* The space an ld/st/atom/cvta/... names; PTX_SPACE_GENERIC if none. */
ptx_space ptx_instr_space(const ptx_instr *instr);

/* The rest of the instruction set in one line, e.g. "@%p1 fma.rn.f32 %f1, %f2, %f3, 0f3F800000;" for messages. */
void ptx_print_instr(const ptx_func *func, const ptx_instr *instr, ff_text *out);
/* A whole module as PTX text that parses back to the same module. */
void ptx_print_module(const ptx_module *module, ff_text *out);

#endif
