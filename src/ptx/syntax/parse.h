/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the parser share. A recursive-descent parser with one token in hand.
 *
 *   parse.c        module level, errors, tokens
 *   parse_data.c   variables: types, dimensions, initial values
 *   parse_func.c   functions: parameters, bodies, scopes, labels
 *   parse_instr.c  instructions and operands
 *   parse_expr.c   constant expressions
 *   parse_later.c  bodies that are read when they are wanted
 *
 * Failure is sticky: the first error is written once, and from then on every token is PTX_TOKEN_END, so every loop
 * comes to its end by itself. Functions that return bool say whether the thing was there and well formed. */
#ifndef FF_PTX_PARSE_H
#define FF_PTX_PARSE_H

#include "ptx/ir.h"
#include "ptx/syntax/lex.h"
#include "ptx/syntax/names.h"
#include "ptx/syntax/words.h"

/* Limits on what a text can make us build; all far above what compilers print. */
enum {
  PTX_LIMIT_SCOPES = 64,          /* nested { } */
  PTX_LIMIT_DEPTH = 64,           /* nested parentheses and unary operators, nested initialiser braces */
  PTX_LIMIT_REGS = 1 << 20,       /* registers of one function */
  PTX_LIMIT_REGS_TOTAL = 1 << 22, /* registers of a module */
  PTX_LIMIT_REG_TEXT = 1 << 28,   /* bytes of the names of a module's registers */
  /* over all branches and calls: entries in the lists and prototypes they name */
  PTX_LIMIT_TARGETS = 1 << 22,
  PTX_LIMIT_ELEMENTS = 256,  /* in a {...} or (...) operand */
  PTX_LIMIT_PARAMS = 4096,   /* of a function */
  PTX_LIMIT_FILES = 1 << 20, /* .file numbers */
  PTX_LIMIT_ALIGN = 1 << 16,
};
#define PTX_LIMIT_TEXT ((size_t)1 << 29)       /* bytes of text */
#define PTX_LIMIT_DATA ((uint64_t)1 << 30)     /* bytes of initial values in a module */
#define PTX_LIMIT_VARIABLE ((uint64_t)1 << 40) /* bytes of a variable */

typedef enum ptx_pending_kind { PTX_PENDING_LABEL, PTX_PENDING_TARGETS } ptx_pending_kind;

typedef struct ptx_pending { /* a use of a label that may be defined further down */
  ptx_pending_kind kind;
  const char *chars;
  uint32_t length;
  ptx_place place;
  ptx_operand *operand;
} ptx_pending;

typedef struct ptx_label_meaning { /* what a label stands before */
  const char *chars;
  uint32_t length;
  uint32_t at;           /* instruction, for code labels */
  ptx_operand_kind kind; /* LABEL, LABELS or PROTOTYPE */
  ptx_operand *elements;
  uint32_t element_count;
  const ptx_prototype *prototype;
} ptx_label_meaning;

typedef struct ptx_forward { /* a name in an initial value that is declared further down */
  ptx_init *init;
  const char *chars;
  uint32_t length;
  ptx_place place;
} ptx_forward;

typedef struct ptx_parser {
  ptx_module *module;
  ptx_lexer lexer;
  ptx_token token; /* the one in hand */
  ff_error *error;
  ff_status status; /* of the first error, or FF_OK */
  ptx_names names;
  uint32_t depth;                                         /* of recursion in expressions and initialisers */
  uint64_t data_bytes, reg_total, reg_text, target_total; /* spent so far: see the limits */

  FF_VEC(ptx_var *) module_vars;
  FF_VEC(ptx_func *) funcs;
  FF_VEC(const char *) files;
  FF_VEC(ptx_forward) forwards;

  ff_arena *arena; /* of what is made: the module's, or that of a body that is read later */
  ptx_func *func;  /* the function whose header or body is being parsed, or NULL */
  bool later;      /* bodies are only noticed (parse_later.c) */
  uint32_t source_file, source_line;
  FF_VEC(ptx_var *) vars;
  FF_VEC(ptx_reg) regs;
  FF_VEC(ptx_instr) instrs;
  FF_VEC(ptx_label_meaning) labels;
  FF_VEC(ptx_pending) pendings;
} ptx_parser;

/* parse.c */
void ptx_error_at(ptx_parser *parser, ptx_place place, ff_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void ptx_error_here(ptx_parser *parser, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ptx_next(ptx_parser *parser);             /* takes the token in hand */
ptx_token ptx_peek(const ptx_parser *parser);  /* the one behind it */
bool ptx_accept(ptx_parser *parser, int kind); /* takes it if it is of that kind */
bool ptx_expect(ptx_parser *parser, int kind, const char *after);
bool ptx_expect_name(ptx_parser *parser, const char *what, ptx_token *name); /* takes a name */
ptx_directive ptx_directive_here(const ptx_parser *parser); /* of the dotted word in hand, else PTX_DIR_NONE */
char *ptx_keep(ptx_parser *parser, const ptx_token *token); /* a copy in the arena */
void *ptx_new(ptx_parser *parser, size_t bytes);
/* Copies a vector's items into the arena; NULL if there are none. */
void *ptx_keep_items(ptx_parser *parser, const void *items, size_t count, size_t size);
/* How a token reads in a message, e.g. "'add'", "the end of the text". At most 60 characters of it. */
const char *ptx_token_text(const ptx_token *token, char buffer[80]);
void ptx_skip_braces(ptx_parser *parser); /* from '{' to its '}' */
bool ptx_parse_loc(ptx_parser *parser);
void ptx_parse_section(ptx_parser *parser);
void ptx_parse_pragma(ptx_parser *parser);
void ptx_parse_file(ptx_parser *parser);

/* parse_expr.c */
typedef struct ptx_value {
  ptx_operand_kind kind; /* INT, F32, F64 */
  bool is_unsigned;
  uint64_t bits;
} ptx_value;
bool ptx_parse_constant(ptx_parser *parser, ptx_value *value); /* a whole expression */
bool ptx_parse_term(ptx_parser *parser, ptx_value *value);     /* one that binds tighter than + and - */
/* An integer expression that must lie in [lowest, highest]; `what` stands in the message. */
bool ptx_parse_count(ptx_parser *parser, const char *what, uint64_t lowest, uint64_t highest, uint64_t *value);

/* parse_data.c */
typedef struct ptx_declaration { /* everything in front of the name */
  ptx_space space;
  ptx_type type;
  uint32_t vector, align; /* align 0: not given */
  bool pointer, managed;
} ptx_declaration;
/* From the state space word to the name, e.g. `.global .attribute(.managed) .align 4 .v2 .f32`. */
bool ptx_parse_declaration(ptx_parser *parser, ptx_declaration *declaration);
/* A variable from its name on: dimensions. Not bound, in no list. */
ptx_var *ptx_parse_variable(ptx_parser *parser, const ptx_declaration *declaration, const ptx_token *name);
/* Module level: after the linkage words; up to and with the ';'. */
void ptx_parse_module_variables(ptx_parser *parser, ptx_linkage linkage);
/* Within a body: .param, .local, .shared, .global, .const; up to and with the ';'. */
void ptx_parse_local_variables(ptx_parser *parser);
bool ptx_resolve_forwards(ptx_parser *parser, size_t first); /* from that one on */

/* parse_func.c */
void ptx_parse_function(ptx_parser *parser, ptx_linkage linkage, bool entry);
/* The two halves of that, of a function which is declared already. The head of a kernel, the token before its name in
 * hand; behind it the '{' is. The body, from the '{' in hand; behind it the token behind the '}' is. */
bool ptx_parse_head(ptx_parser *parser, ptx_func *func);
void ptx_parse_body(ptx_parser *parser, ptx_func *func);
/* `.reg` within a body, or a .reg parameter: declares registers; the index of the first, or PTX_NO_REG on failure. */
uint32_t ptx_add_registers(ptx_parser *parser, const ptx_token *name, ptx_type type, uint32_t vector, uint32_t count,
                           bool range);
/* A register that the text does not name; PTX_NO_REG on failure. */
uint32_t ptx_add_nameless(ptx_parser *parser, ptx_type type);
ptx_prototype *ptx_parse_prototype(ptx_parser *parser);

/* parse_later.c: the `.entry` in hand; true: the kernel is noted, and the token behind it in hand. */
bool ptx_notice_kernel(ptx_parser *parser, ptx_linkage linkage);
/* The same of the body of a function that has its head, from the '{' in hand. */
bool ptx_notice_body(ptx_parser *parser, ptx_func *func);
/* parse.c: the lists of the function in hand, which are as long as its body. */
void ptx_free_lists(ptx_parser *parser);
/* parse.c: once it is known which numbers of files there are. */
void ptx_check_files(ptx_parser *parser, ptx_func *func);

/* parse_instr.c */
void ptx_parse_instruction(ptx_parser *parser); /* from @ or the mnemonic to the ';' */
/* Notes that *operand names a label; it is filled when its scope ends. */
void ptx_add_pending(ptx_parser *parser, ptx_pending_kind kind, const ptx_token *name, ptx_operand *operand);
extern const ptx_operand ptx_no_operand; /* NONE, with no registers */

#endif
