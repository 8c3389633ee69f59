/* SPDX-License-Identifier: Apache-2.0 */
/* Instruction lines (sass.h): tokens between blanks, then what the opcode and its modifiers say.
 *
 * Whatever the line is, only its bytes are read, and addresses are below 2^56. */
#include "import/sass.h"

#include <string.h>

#include "trace/operations.h"

/* ---- tokens ---- */

typedef struct token {
  const char *at;
  size_t length;
} token;

static token next_token(const char **line) {
  const char *at = *line;
  while (*at == ' ' || *at == '\t') at++;
  token t = {at, strcspn(at, " \t")};
  *line = at + t.length;
  return t;
}

static bool is(token t, const char *word) { return t.length == strlen(word) && !memcmp(t.at, word, t.length); }

static int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

/* false: no number of that base, or more than 64 bits. */
static bool number_of(token t, uint32_t base, uint64_t *number) {
  size_t i = base == 16 && t.length > 2 && t.at[0] == '0' && (t.at[1] | 32) == 'x' ? 2 : 0;
  *number = 0;
  if (i == t.length) return false;
  for (; i < t.length; i++) {
    uint32_t digit = (uint32_t)digit_of(t.at[i]);
    if (digit >= base || __builtin_mul_overflow(*number, base, number) ||
        __builtin_add_overflow(*number, digit, number))
      return false;
  }
  return true;
}

static bool signed_of(token t, int64_t *number) {
  bool negative = t.length && *t.at == '-';
  uint64_t value;
  token digits = {t.at + negative, t.length - negative};
  if (!number_of(digits, 10, &value) || value > INT64_MAX) return false;
  *number = negative ? -(int64_t)value : (int64_t)value;
  return true;
}

static bool take32(const char **line, uint32_t base, uint32_t *number) {
  uint64_t value;
  if (!number_of(next_token(line), base, &value) || value > UINT32_MAX) return false;
  *number = (uint32_t)value;
  return true;
}

/* ---- opcodes ---- */

typedef struct opcode {
  const char *name;
  sass_kind kind;
} opcode;

static const opcode opcodes[] = {
    {"LDG", SASS_LOAD},           {"LD", SASS_LOAD},
    {"STG", SASS_STORE},          {"ST", SASS_STORE},
    {"ATOMG", SASS_ATOMIC},       {"ATOM", SASS_ATOMIC},
    {"RED", SASS_ATOMIC},         {"REDG", SASS_ATOMIC},
    {"LDGSTS", SASS_ASYNC_LOAD},  {"LDGDEPBAR", SASS_GROUP},
    {"DEPBAR", SASS_WAIT_GROUPS}, {"LDS", SASS_SHARED},
    {"STS", SASS_SHARED},         {"ATOMS", SASS_SHARED_ATOMIC},
    {"LDSM", SASS_SHARED},        {"STSM", SASS_SHARED},
    {"LDL", SASS_LOCAL},          {"STL", SASS_LOCAL},
    {"BAR", SASS_BARRIER},        {"UTMALDG", SASS_BULK},
    {"UTMASTG", SASS_BULK},       {"UTMAPF", SASS_BULK},
    {"UTMAREDG", SASS_BULK},      {"UBLKCP", SASS_BULK},
    {"UBLKPF", SASS_BULK},        {"UBLKRED", SASS_BULK},
};
static const char *const fp64_opcodes[] = {"DADD", "DMUL", "DFMA", "DMNMX", "DSET", "DSETP", "DMMA"};

static token next_part(token *opcode) {
  const char *dot = memchr(opcode->at, '.', opcode->length);
  size_t length = dot ? (size_t)(dot - opcode->at) : opcode->length;
  token part = {opcode->at, length};
  opcode->at += length + (dot != NULL);
  opcode->length -= length + (dot != NULL);
  return part;
}

/* 64, U8, S16, F64, F16x2: the bytes of a value; 0: the word is another. */
static uint32_t width_of(token part) {
  if (part.length && strchr("USF", *part.at)) part = (token){part.at + 1, part.length - 1};
  uint64_t bits, times = 1;
  if (part.length > 2 && part.at[part.length - 2] == 'x') {
    if (!number_of((token){part.at + part.length - 1, 1}, 10, &times)) return 0;
    part.length -= 2;
  }
  if (!number_of(part, 10, &bits) || bits > 1024) return 0;
  bits *= times;
  return bits >= 8 && bits <= 1024 && !(bits & (bits - 1)) ? (uint32_t)bits / 8 : 0;
}

/* Strong accesses beyond the SM go past its L1. */
static void take_modifiers(sass_instr *instr, token rest) {
  bool strong = false, wide_scope = false;
  while (rest.length) {
    token part = next_part(&rest);
    if (!instr->bytes) instr->bytes = width_of(part);
    strong = strong || is(part, "STRONG");
    wide_scope = wide_scope || is(part, "GPU") || is(part, "SYS");
    instr->arrive_only = instr->arrive_only || is(part, "ARV");
    if (is(part, "BYPASS") || is(part, "CG") || is(part, "CV") || is(part, "MMIO") || is(part, "VOLATILE"))
      instr->flags |= TRACE_BYPASS_L1;
    if (is(part, "CONSTANT") || is(part, "CI")) instr->flags |= TRACE_READ_ONLY;
    if (is(part, "EF") || is(part, "NA") || is(part, "LU") || is(part, "CS")) instr->flags |= TRACE_STREAMING;
  }
  if (strong && wide_scope) instr->flags |= TRACE_BYPASS_L1;
}

static void take_opcode(sass_instr *instr, token name) {
  token first = next_part(&name);
  for (size_t i = 0; i < sizeof opcodes / sizeof opcodes[0]; i++)
    if (is(first, opcodes[i].name)) instr->kind = opcodes[i].kind;
  for (size_t i = 0; i < sizeof fp64_opcodes / sizeof fp64_opcodes[0]; i++)
    instr->fp64 = instr->fp64 || is(first, fp64_opcodes[i]);
  instr->sfu = is(first, "MUFU");
  if (is(first, "LDSM") || is(first, "STSM")) instr->bytes = 16; /* a row of a matrix */
  take_modifiers(instr, name);
  if (!instr->bytes) instr->bytes = 4;
}

/* ---- operands ---- */

static const char *take_registers(const char **line, uint32_t *count, uint8_t registers[SASS_REGISTERS_MAX]) {
  if (!take32(line, 10, count) || *count > SASS_REGISTERS_MAX)
    return "the number of registers is missing, or more than 16";
  for (uint32_t i = 0; i < *count; i++) {
    token t = next_token(line);
    uint64_t number;
    if (!t.length || *t.at != 'R' || !number_of((token){t.at + 1, t.length - 1}, 10, &number) || number > SASS_ZERO)
      return "a register is expected: R0 to R255, as many as the number before says";
    registers[i] = (uint8_t)number;
  }
  return NULL;
}

static const char *const bad_address = "an address is missing, or beyond 2^56";

static bool take_address(const char **line, uint64_t *address) {
  return number_of(next_token(line), 16, address) && *address < OPERATION_ADDRESS_MAX;
}

/* The next lane's address by a signed distance. */
static bool step(uint64_t *address, int64_t distance) {
  *address += (uint64_t)distance;
  return *address < OPERATION_ADDRESS_MAX && distance > -(int64_t)OPERATION_ADDRESS_MAX &&
         distance < (int64_t)OPERATION_ADDRESS_MAX;
}

static const char *take_list(const char **line, sass_instr *instr) {
  for (uint32_t m = instr->mask; m; m &= m - 1)
    if (!take_address(line, &instr->address[__builtin_ctz(m)])) return bad_address;
  return NULL;
}

static const char *take_stride(const char **line, sass_instr *instr) {
  uint64_t address;
  int64_t stride;
  uint32_t run = instr->mask ? instr->mask >> __builtin_ctz(instr->mask) : 0;
  if (!take_address(line, &address)) return bad_address;
  if (!signed_of(next_token(line), &stride)) return "the stride is missing";
  if (run & (run + 1)) return "a base and a stride for active lanes that do not follow each other";
  for (uint32_t m = instr->mask; m; m &= m - 1) {
    instr->address[__builtin_ctz(m)] = address;
    if (m & (m - 1) && !step(&address, stride)) return "the stride leads beyond all addresses";
  }
  return NULL;
}

static const char *take_distances(const char **line, sass_instr *instr) {
  uint64_t address;
  int64_t distance;
  if (!take_address(line, &address)) return bad_address;
  for (uint32_t m = instr->mask; m; m &= m - 1) {
    instr->address[__builtin_ctz(m)] = address;
    if (!(m & (m - 1))) break;
    if (!signed_of(next_token(line), &distance)) return "fewer distances than further active lanes";
    if (!step(&address, distance)) return "a distance leads beyond all addresses";
  }
  return NULL;
}

static const char *take_memory(const char **line, sass_instr *instr) {
  uint32_t width, mode;
  if (!take32(line, 10, &width)) return "the width of the memory access is missing (0: none)";
  if (!width) return NULL;
  if (!take32(line, 10, &mode)) return "the addresses' mode is missing";
  instr->has_address = true;
  switch (mode) {
  case 0: return take_list(line, instr);
  case 1: return take_stride(line, instr);
  case 2: return take_distances(line, instr);
  default: return "an unknown mode of addresses: there are 0 (list), 1 (stride) and 2 (distances)";
  }
}

static const char *take_end(const char **line, const sass_format *format, sass_instr *instr) {
  token t = next_token(line);
  int64_t value;
  if (!t.length) return NULL;
  if (number_of(t, 10, &instr->immediate)) t = next_token(line);
  else if (signed_of(t, &value)) t = next_token(line);
  return t.length && !format->values ? "more than the instruction has" : NULL;
}

/* ---- the line ---- */

const char *sass_parse(const char *line, const sass_format *format, sass_instr *instr) {
  uint32_t skipped;
  *instr = (sass_instr){0};
  for (int i = 0; i < (format->places ? 4 : 0) + format->lines; i++)
    if (!take32(&line, 10, &skipped))
      return "the numbers in front of the instruction (block, warp, source line) are missing";
  if (!take32(&line, 16, &instr->pc)) return "the instruction's place (a hexadecimal number) is missing";
  if (!take32(&line, 16, &instr->mask)) return "the mask of active lanes (a hexadecimal number) is missing";
  const char *wrong = take_registers(&line, &instr->destinations, instr->destination);
  if (wrong) return wrong;
  token name = next_token(&line);
  if (!name.length) return "the opcode is missing";
  take_opcode(instr, name);
  wrong = take_registers(&line, &instr->sources, instr->source);
  if (wrong || instr->kind == SASS_BULK) return wrong;
  wrong = take_memory(&line, instr);
  return wrong ? wrong : take_end(&line, format, instr);
}
