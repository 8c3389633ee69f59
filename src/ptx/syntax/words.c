/* SPDX-License-Identifier: Apache-2.0 */
/* Text <-> enumerator for everything in the .def tables. One open-addressing table, at most a quarter full; a key is a
 * class character and the text, so that `%clock`, `.global` and `add` live side by side. */
#include "ptx/syntax/words.h"

#include <pthread.h>
#include <string.h>

static const char *const type_texts[] = {
    "",
#define X(name, text, bits, class) text,
#include "ptx/types.def"
#undef X
};

static const uint8_t type_bits[] = {
    0,
#define X(name, text, bits, class) bits,
#include "ptx/types.def"
#undef X
};

static const char type_classes[] = "?"
#define X(name, text, bits, class) #class
#include "ptx/types.def"
#undef X
    ;

static const char *const opcode_texts[] = {
#define X(name, text) text,
#include "ptx/opcodes.def"
#undef X
};

static const char *const mod_texts[] = {
#define X(name, text) text,
#include "ptx/modifiers.def"
#undef X
};

static const char *const sreg_texts[] = {
#define X(name, text, type) text,
#include "ptx/sregs.def"
#undef X
};

static const char *const directive_texts[] = {
    "",
#define X(name, text) text,
#include "ptx/directives.def"
#undef X
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

const char *ptx_type_text(ptx_type type) { return (unsigned)type < PTX_TYPES ? type_texts[type] : "?"; }
uint32_t ptx_type_bits(ptx_type type) { return (unsigned)type < PTX_TYPES ? type_bits[type] : 0; }
char ptx_type_class(ptx_type type) { return (unsigned)type < PTX_TYPES ? type_classes[type] : '?'; }
const char *ptx_opcode_text(ptx_opcode opcode) { return (unsigned)opcode < PTX_OPS ? opcode_texts[opcode] : "?"; }
const char *ptx_mod_text(ptx_mod mod) { return (unsigned)mod < PTX_MODS ? mod_texts[mod] : "?"; }
const char *ptx_sreg_text(ptx_sreg sreg) { return (unsigned)sreg < PTX_SREGS ? sreg_texts[sreg] : "?"; }

typedef struct word_slot {
  const char *text; /* NULL: free */
  char class;       /* '.' dotted, 'o' mnemonic, '%' special register */
  uint16_t value;   /* mnemonic or special register */
  ptx_word word;
} word_slot;

#define SLOTS 4096u
static word_slot slots[SLOTS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static word_slot *find(char class, const char *chars, size_t length) {
  uint32_t hash = 2166136261u ^ (unsigned char)class;
  for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)chars[i]) * 16777619u;
  for (uint32_t at = (hash ^ hash >> 15) % SLOTS;; at = (at + 1) % SLOTS) {
    word_slot *slot = &slots[at];
    if (!slot->text) return slot;
    if (slot->class == class && strncmp(slot->text, chars, length) == 0 && !slot->text[length]) return slot;
  }
}

static word_slot *add(char class, const char *text) {
  word_slot *slot = find(class, text, strlen(text));
  slot->text = text;
  slot->class = class;
  return slot;
}

static void build(void) {
  for (size_t i = 1; i < COUNT(type_texts); i++) add('.', type_texts[i])->word.type = (ptx_type)i;
  for (size_t i = 0; i < COUNT(mod_texts); i++) {
    word_slot *slot = add('.', mod_texts[i]);
    slot->word.is_mod = true;
    slot->word.mod = (ptx_mod)i;
  }
  for (size_t i = 1; i < COUNT(directive_texts); i++) add('.', directive_texts[i])->word.directive = (ptx_directive)i;
  for (size_t i = 0; i < COUNT(opcode_texts); i++) add('o', opcode_texts[i])->value = (uint16_t)i;
  for (size_t i = 0; i < COUNT(sreg_texts); i++) add('%', sreg_texts[i])->value = (uint16_t)i;
}

ptx_word ptx_word_find(const char *chars, size_t length) {
  pthread_once(&once, build);
  return find('.', chars, length)->word;
}

ptx_opcode ptx_opcode_find(const char *chars, size_t length) {
  pthread_once(&once, build);
  const word_slot *slot = find('o', chars, length);
  return slot->text ? (ptx_opcode)slot->value : PTX_OP_UNKNOWN;
}

ptx_sreg ptx_sreg_find(const char *chars, size_t length) {
  pthread_once(&once, build);
  const word_slot *slot = find('%', chars, length);
  return slot->text ? (ptx_sreg)slot->value : PTX_SREGS;
}
