/* SPDX-License-Identifier: Apache-2.0 */
/* The coder (pack.h): a dictionary of heads with each one's successor, and per instruction what its lines did before.
 *
 * pack_put and pack_take change the coder's state by the same functions (`learn_...`) with the same arguments;
 * pack_mirror.c checks that both states stay the same. */
#include "trace/pack.h"

#include <stdlib.h>
#include <string.h>

enum { HEADS_MAX = 1 << 16, TABLE_SIZE = 256 }; /* the table's at first */
#define NOTHING UINT32_MAX
#define FULL_MASK UINT32_MAX

/* A stride is believed when it was seen twice in a row, so that one jump (the end of a row) does not disturb it. */
typedef struct stride {
  int64_t value, last;
} stride;

typedef struct slot {                   /* an instruction that accesses memory: a pc of a kernel */
  uint64_t line, warp_line, block_line; /* the first line of its last access, of its first one in a warp, in a block */
  stride in_warp, by_warp, by_block, gap;
  uint64_t warp, block; /* in which it was last met */
  uint32_t mask;        /* of its last access */
  uint32_t kernel, pc;
} slot;

typedef struct head {
  uint64_t word; /* the record's first word */
  uint32_t kernel;
  uint32_t successor; /* the head that followed it the last time; NOTHING: none yet */
  uint32_t slot;      /* of an ACCESS */
  uint32_t trips;     /* of the last ENTER with this head */
} head;

/* Numbers by hash, open addressing; NOTHING: empty. */
typedef struct table {
  uint32_t *items;
  size_t size;
} table;

struct pack_coder {
  FF_VEC(head) heads;
  FF_VEC(slot) slots;
  table by_word, by_pc;    /* heads, slots */
  FF_VEC(uint32_t) starts; /* by kernel: the head that a warp begins with */
  uint32_t kernel;
  uint32_t before;      /* the head that came last in this warp; NOTHING: it begins */
  uint64_t warp, block; /* counted from 1 */
  uint64_t last_line;   /* of any access: where a new instruction's first line is looked for */
  uint32_t mask;        /* of the warp's access before */
  bool plain;           /* heads of ENTERs have their trips */
};

/* ---- bytes ---- */

void pack_byte(pack_bytes *to, uint8_t byte) {
  if (to->count == to->capacity) ff_vec_reserve((void **)&to->items, &to->capacity, to->count + 1, 1);
  to->items[to->count++] = byte;
}

void pack_number(pack_bytes *to, uint64_t number) {
  for (; number > 127; number >>= 7) pack_byte(to, (uint8_t)(number | 128));
  pack_byte(to, (uint8_t)number);
}

bool pack_take_number(pack_view *from, uint64_t *number) {
  uint64_t value = 0;
  for (uint32_t shift = 0; from->at < from->end && shift < 64; shift += 7) {
    uint8_t byte = *from->at++;
    if (shift == 63 && byte > 1) break;
    value |= (uint64_t)(byte & 127) << shift;
    if (byte < 128) {
      *number = value;
      return true;
    }
  }
  *number = 0;
  return false;
}

static uint64_t zigzag(int64_t number) { return (uint64_t)number << 1 ^ (uint64_t)(number >> 63); }
static int64_t unzigzag(uint64_t number) { return (int64_t)(number >> 1) ^ -(int64_t)(number & 1); }

/* ---- life ---- */

static void table_clear(table *t, size_t size) {
  t->items = ff_realloc(t->items, size * sizeof *t->items);
  t->size = size;
  memset(t->items, 0xff, size * sizeof *t->items);
}

pack_coder *pack_coder_create(void) {
  pack_coder *c = ff_alloc(sizeof *c);
  pack_coder_reset(c);
  return c;
}

void pack_coder_free(pack_coder *c) {
  if (!c) return;
  free(c->heads.items);
  free(c->slots.items);
  free(c->by_word.items);
  free(c->by_pc.items);
  free(c->starts.items);
  free(c);
}

void pack_coder_reset(pack_coder *c) {
  c->heads.count = c->slots.count = c->starts.count = 0;
  table_clear(&c->by_word, TABLE_SIZE);
  table_clear(&c->by_pc, TABLE_SIZE);
  pack_coder_kernel(c, 0);
  c->before = NOTHING;
  c->warp = c->block = 1;
  c->last_line = 0;
  c->mask = FULL_MASK;
}

void pack_coder_plain(pack_coder *c) { c->plain = true; }

void pack_coder_kernel(pack_coder *c, uint32_t kernel) {
  while (c->starts.count <= kernel) FF_PUSH(&c->starts, NOTHING);
  c->kernel = kernel;
}

void pack_coder_block(pack_coder *c) { c->block++; }

void pack_coder_warp(pack_coder *c) {
  c->before = NOTHING;
  c->warp++;
  c->mask = FULL_MASK;
}

/* A stream with ever new heads: what was learnt is forgotten, by writer and reader in the same place. */
static inline void make_room(pack_coder *c) {
  if (__builtin_expect(c->heads.count < HEADS_MAX, 1)) return;
  uint32_t kernel = c->kernel;
  pack_coder_reset(c);
  pack_coder_kernel(c, kernel);
}

/* ---- heads ---- */

static size_t first_place(const table *t, uint64_t word, uint32_t kernel) {
  return (size_t)(((word ^ (uint64_t)kernel << 20) * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (t->size - 1);
}

static size_t head_place(const pack_coder *c, uint64_t word, uint32_t kernel) {
  size_t at = first_place(&c->by_word, word, kernel);
  for (; c->by_word.items[at] != NOTHING; at = (at + 1) & (c->by_word.size - 1)) {
    const head *h = &c->heads.items[c->by_word.items[at]];
    if (h->word == word && h->kernel == kernel) break;
  }
  return at;
}

static size_t slot_place(const pack_coder *c, uint32_t pc, uint32_t kernel) {
  size_t at = first_place(&c->by_pc, pc, kernel);
  for (; c->by_pc.items[at] != NOTHING; at = (at + 1) & (c->by_pc.size - 1)) {
    const slot *s = &c->slots.items[c->by_pc.items[at]];
    if (s->pc == pc && s->kernel == kernel) break;
  }
  return at;
}

/* The slot of the instruction: heads of one pc (with other numbers of lines) share it. */
static uint32_t slot_of(pack_coder *c, uint64_t word) {
  uint32_t pc = trace_access_pc(word);
  size_t at = slot_place(c, pc, c->kernel);
  if (c->by_pc.items[at] != NOTHING) return c->by_pc.items[at];
  if (2 * (c->slots.count + 1) > c->by_pc.size) {
    table_clear(&c->by_pc, c->by_pc.size * 2);
    for (uint32_t i = 0; i < c->slots.count; i++)
      c->by_pc.items[slot_place(c, c->slots.items[i].pc, c->slots.items[i].kernel)] = i;
    at = slot_place(c, pc, c->kernel);
  }
  slot fresh = {.kernel = c->kernel,
                .pc = pc,
                .line = c->last_line,
                .warp_line = c->last_line,
                .block_line = c->last_line,
                .mask = FULL_MASK};
  FF_PUSH(&c->slots, fresh);
  return c->by_pc.items[at] = (uint32_t)c->slots.count - 1;
}

static uint32_t learn_head(pack_coder *c, uint64_t word) {
  head fresh = {.word = word, .kernel = c->kernel, .successor = NOTHING};
  if (trace_word_kind(word) == TRACE_ACCESS) fresh.slot = slot_of(c, word);
  if (2 * (c->heads.count + 1) > c->by_word.size) {
    table_clear(&c->by_word, c->by_word.size * 2);
    for (uint32_t i = 0; i < c->heads.count; i++)
      c->by_word.items[head_place(c, c->heads.items[i].word, c->heads.items[i].kernel)] = i;
  }
  uint32_t number = (uint32_t)c->heads.count;
  c->by_word.items[head_place(c, word, c->kernel)] = number;
  FF_PUSH(&c->heads, fresh);
  return number;
}

/* Where the number of the head that comes next is remembered. */
static inline uint32_t *successor_of(pack_coder *c) {
  return c->before == NOTHING ? &c->starts.items[c->kernel] : &c->heads.items[c->before].successor;
}

static inline void learn_step(pack_coder *c, uint32_t number) {
  *successor_of(c) = number;
  c->before = number;
}

/* ---- lines ---- */

static inline void learn_stride(stride *s, int64_t now) {
  if (now == s->last) s->value = now;
  s->last = now;
}

static inline uint64_t expected_line(const pack_coder *c, const slot *s) {
  if (s->warp == c->warp) return s->line + (uint64_t)s->in_warp.value;
  if (s->block == c->block) return s->warp_line + (uint64_t)s->by_warp.value;
  return s->block_line + (uint64_t)s->by_block.value;
}

static inline void learn_line(pack_coder *c, slot *s, uint64_t line) {
  if (s->warp == c->warp) {
    learn_stride(&s->in_warp, (int64_t)(line - s->line));
  } else {
    if (s->block == c->block) {
      learn_stride(&s->by_warp, (int64_t)(line - s->warp_line));
    } else {
      learn_stride(&s->by_block, (int64_t)(line - s->block_line));
      s->block_line = line;
      s->block = c->block;
    }
    s->warp_line = line;
    s->warp = c->warp;
  }
  s->line = line;
}

/* ---- writing ---- */

static uint32_t put_head(pack_coder *c, pack_bytes *columns, uint64_t word) {
  uint32_t expected = *successor_of(c), number;
  if (expected != NOTHING && c->heads.items[expected].word == word) {
    pack_byte(&columns[PACK_HEADS], 0);
    number = expected;
  } else if ((number = c->by_word.items[head_place(c, word, c->kernel)]) != NOTHING) {
    pack_number(&columns[PACK_HEADS], 1 + (uint64_t)number);
  } else {
    pack_number(&columns[PACK_HEADS], 1 + (uint64_t)c->heads.count);
    for (int shift = 0; shift < 64; shift += 8) pack_byte(&columns[PACK_WORDS], (uint8_t)(word >> shift));
    number = learn_head(c, word);
  }
  learn_step(c, number);
  return number;
}

static void put_mask(pack_coder *c, pack_bytes *columns, slot *s, uint32_t mask) {
  if (mask == c->mask) {
    pack_byte(&columns[PACK_MASKS], 0);
  } else if (mask == s->mask) {
    pack_byte(&columns[PACK_MASKS], 1);
  } else {
    pack_byte(&columns[PACK_MASKS], 2);
    for (int shift = 0; shift < 32; shift += 8) pack_byte(&columns[PACK_WORDS], (uint8_t)(mask >> shift));
  }
  c->mask = s->mask = mask;
}

/* The bytes of a distance into their planes; returns how many there are. */
static uint8_t put_distance(pack_bytes *columns, uint64_t distance) {
  uint8_t bytes = 0;
  for (; distance; distance >>= 8) pack_byte(&columns[PACK_PLANE0 + bytes++], (uint8_t)distance);
  return bytes;
}

static void put_lines(pack_coder *c, pack_bytes *columns, slot *s, const uint64_t *lines, uint32_t count) {
  uint32_t left = (uint32_t)__builtin_popcount(c->mask);
  uint64_t number = lines[0] >> 10;
  pack_byte(&columns[PACK_FIRST], put_distance(columns, zigzag((int64_t)(number - expected_line(c, s)))));
  learn_line(c, s, number);
  for (uint32_t i = 0;; i++) {
    uint32_t lanes = trace_line_lanes(lines[i]);
    pack_byte(&columns[PACK_SECTORS], (uint8_t)trace_line_sectors(lines[i]));
    pack_byte(&columns[PACK_LANES], (uint8_t)((i + 1 < count ? lanes : lanes - left) & 63));
    left -= lanes;
    if (i + 1 == count) break;
    uint64_t next = lines[i + 1] >> 10;
    pack_byte(&columns[PACK_FURTHER], put_distance(columns, zigzag((int64_t)(next - number - (uint64_t)s->gap.value))));
    learn_stride(&s->gap, (int64_t)(next - number));
    number = next;
  }
  c->last_line = number;
}

#define TRIPS_BITS ((uint64_t)TRACE_TRIPS_MAX << 4)

static void put_enter(pack_coder *c, pack_bytes *columns, uint64_t word) {
  uint32_t number = put_head(c, columns, word & ~TRIPS_BITS);
  head *h = &c->heads.items[number];
  pack_number(&columns[PACK_WORDS], zigzag((int64_t)trace_enter_trips(word) - h->trips));
  h->trips = trace_enter_trips(word);
}

void pack_put(pack_coder *c, pack_bytes columns[PACK_COLUMNS], const uint64_t *words) {
  make_room(c);
  if (trace_word_kind(words[0]) == TRACE_ENTER && !c->plain) {
    put_enter(c, columns, words[0]);
    return;
  }
  uint32_t number = put_head(c, columns, words[0]);
  if (trace_word_kind(words[0]) != TRACE_ACCESS) return;
  slot *s = &c->slots.items[c->heads.items[number].slot];
  put_mask(c, columns, s, (uint32_t)words[1]);
  put_lines(c, columns, s, words + 2, trace_access_lines(words[0]));
}

/* ---- reading ---- */

static inline bool take_byte(pack_view *from, uint8_t *byte) {
  if (from->at == from->end) return false;
  *byte = *from->at++;
  return true;
}

static bool take_word(pack_view *from, int bytes, uint64_t *word) {
  if (from->end - from->at < bytes) return false;
  *word = 0;
  for (int i = 0; i < bytes; i++) *word |= (uint64_t)from->at[i] << 8 * i;
  from->at += bytes;
  return true;
}

/* What stream.h says of a record's first word. */
static bool allowed(uint64_t word) {
  switch (trace_word_kind(word)) {
  case TRACE_ISSUE:
  case TRACE_WAIT:
  case TRACE_BARRIER:
  case TRACE_ENTER:
  case TRACE_LEAVE:
  case TRACE_EXIT:
  case TRACE_UNITS: return true;
  case TRACE_ASYNC: return trace_async_what(word) < TRACE_ASYNC_COUNT;
  case TRACE_SPILL:
    return trace_spill_words(word) >= 1 && trace_spill_words(word) <= TRACE_SPILL_WORDS && trace_spill_sectors(word);
  case TRACE_ACCESS: return trace_access_lines(word) >= 1 && trace_access_lines(word) <= PACK_LINES_MAX;
  case TRACE_END: break;
  }
  return false;
}

/* The head that was expected is what mostly comes. */
static inline bool take_expected_head(pack_coder *c, pack_view *columns, uint32_t *number) {
  pack_view *heads = &columns[PACK_HEADS];
  if (heads->at == heads->end || *heads->at) return false;
  uint32_t expected = *successor_of(c);
  if (expected == NOTHING) return false;
  heads->at++;
  *number = c->before = expected;
  return true;
}

static bool take_other_head(pack_coder *c, pack_view *columns, uint32_t *number) {
  uint64_t coded, word;
  if (!pack_take_number(&columns[PACK_HEADS], &coded) || !coded) return false;
  if (coded <= c->heads.count) {
    *number = (uint32_t)(coded - 1);
    if (c->heads.items[*number].kernel != c->kernel) return false;
  } else {
    if (coded != c->heads.count + 1 || !take_word(&columns[PACK_WORDS], 8, &word) || !allowed(word)) return false;
    if (trace_word_kind(word) == TRACE_ENTER && !c->plain && word & TRIPS_BITS) return false;
    if (c->by_word.items[head_place(c, word, c->kernel)] != NOTHING) return false;
    *number = learn_head(c, word);
  }
  learn_step(c, *number);
  return true;
}

static inline bool take_mask(pack_coder *c, pack_view *columns, slot *s) {
  uint8_t how;
  uint64_t word;
  if (!take_byte(&columns[PACK_MASKS], &how)) return false;
  if (how == 1) c->mask = s->mask;
  else if (how == 2 && take_word(&columns[PACK_WORDS], 4, &word)) c->mask = (uint32_t)word;
  else if (how) return false;
  s->mask = c->mask;
  return true;
}

static inline bool take_distance(pack_view *columns, pack_column lengths, uint64_t *distance) {
  uint8_t bytes, byte;
  *distance = 0;
  if (!take_byte(&columns[lengths], &bytes) || bytes > PACK_PLANES) return false;
  for (uint8_t i = 0; i < bytes; i++) {
    if (!take_byte(&columns[PACK_PLANE0 + i], &byte)) return false;
    *distance |= (uint64_t)byte << 8 * i;
  }
  return true;
}

#define LINE_LIMIT (UINT64_C(1) << 54) /* line numbers are below it */

static bool take_lines(pack_coder *c, pack_view *columns, slot *s, uint64_t *lines, uint32_t count) {
  uint32_t left = (uint32_t)__builtin_popcount(c->mask);
  uint64_t distance, number;
  if (!take_distance(columns, PACK_FIRST, &distance)) return false;
  number = expected_line(c, s) + (uint64_t)unzigzag(distance);
  learn_line(c, s, number);
  for (uint32_t i = 0;; i++) {
    uint8_t sectors, lanes;
    if (!take_byte(&columns[PACK_SECTORS], &sectors) || !take_byte(&columns[PACK_LANES], &lanes)) return false;
    if (number >= LINE_LIMIT || !sectors || sectors > 15 || lanes > 63) return false;
    uint32_t own = i + 1 < count ? lanes : (lanes + left) & 63;
    lines[i] = number << 10 | own << 4 | sectors;
    left -= own;
    if (i + 1 == count) break;
    if (!take_distance(columns, PACK_FURTHER, &distance)) return false;
    uint64_t next = number + (uint64_t)s->gap.value + (uint64_t)unzigzag(distance);
    learn_stride(&s->gap, (int64_t)(next - number));
    number = next;
  }
  c->last_line = number;
  return true;
}

/* The head's word, an ENTER's with its trips. */
static inline bool take_trips(const pack_coder *c, pack_view *columns, head *h, uint64_t *word) {
  uint64_t distance;
  *word = h->word;
  if (trace_word_kind(h->word) != TRACE_ENTER || c->plain) return true;
  if (!pack_take_number(&columns[PACK_WORDS], &distance)) return false;
  uint64_t trips = h->trips + (uint64_t)unzigzag(distance);
  if (trips > TRACE_TRIPS_MAX) return false;
  h->trips = (uint32_t)trips;
  *word |= trips << 4;
  return true;
}

uint32_t pack_take(pack_coder *c, pack_view columns[PACK_COLUMNS], uint64_t *words) {
  uint32_t number;
  make_room(c);
  if (!take_expected_head(c, columns, &number) && !take_other_head(c, columns, &number)) return 0;
  if (!take_trips(c, columns, &c->heads.items[number], &words[0])) return 0;
  if (trace_word_kind(words[0]) != TRACE_ACCESS) return 1;
  slot *s = &c->slots.items[c->heads.items[number].slot];
  if (!take_mask(c, columns, s)) return 0;
  words[1] = c->mask;
  return take_lines(c, columns, s, words + 2, trace_access_lines(words[0])) ? 2 + trace_access_lines(words[0]) : 0;
}

/* An ISSUE and its UNITS on their way into a stream without marks. Where no mark follows they are written as they came;
 * else, and where there are too many, they are the writer's pending ISSUE, with which the next one may be joined
 * (trace_copy_word). Of files that farfault has not written, which may have UNITS without a count or more of them than
 * it takes, these are copied, too. */
typedef struct issue_words {
  uint64_t word[4];
  uint32_t count; /* 0: none is on its way */
  bool units;     /* the stream has UNITS */
} issue_words;

/* They are as if they had come by trace_copy_word. */
static void issue_pends(issue_words *i, trace_writer *to) {
  for (uint32_t n = 0; n < i->count; n++) trace_copy_word(to, i->word[n]);
  i->count = 0;
}

static inline void issue_write(issue_words *i, trace_writer *to) {
  if (!i->count) return;
  uint64_t *at = trace_room(to, i->count);
  for (uint32_t n = 0; n < i->count; n++) at[n] = i->word[n];
  i->count = 0;
}

/* Any record but an ACCESS. */
static inline void copy_word(issue_words *i, trace_writer *to, uint64_t word) {
  trace_kind kind = trace_word_kind(word);
  if (kind == TRACE_ISSUE && !to->joins && (trace_issue_count(word) || trace_issue_memory(word))) {
    issue_write(i, to);
    trace_flush_issue(to);
    i->word[i->count++] = word;
  } else if (kind == TRACE_UNITS && i->count && i->count < 4) {
    if (i->units) i->word[i->count++] = word;
  } else {
    if (kind == TRACE_UNITS || kind == TRACE_ENTER || kind == TRACE_LEAVE) issue_pends(i, to);
    else issue_write(i, to);
    trace_copy_word(to, word);
  }
}

static inline void copy_access(issue_words *i, trace_writer *to) {
  issue_write(i, to);
  trace_flush_issue(to);
}

bool pack_take_warp(pack_coder *c, pack_view columns[PACK_COLUMNS], trace_writer *to, bool marks, uint32_t *words_left,
                    uint64_t *instructions) {
  issue_words issue = {.units = trace_writer_has_units(to)};
  bool ended = false;
  while (*words_left) {
    uint32_t number;
    make_room(c);
    if (!take_expected_head(c, columns, &number) && !take_other_head(c, columns, &number)) break;
    uint64_t word;
    if (!take_trips(c, columns, &c->heads.items[number], &word)) break;
    trace_kind kind = trace_word_kind(word);
    uint32_t lines = kind == TRACE_ACCESS ? trace_access_lines(word) : 0, words = kind == TRACE_ACCESS ? 2 + lines : 1;
    if (words > *words_left) break;
    *words_left -= words;
    if ((ended = kind == TRACE_EXIT)) break;
    if (kind == TRACE_ISSUE) *instructions += trace_issue_count(word);
    if (kind != TRACE_ACCESS) {
      if (marks) *trace_room(to, 1) = word;
      else copy_word(&issue, to, word);
      continue;
    }
    copy_access(&issue, to);
    uint64_t *at = trace_room(to, words);
    at[0] = word;
    slot *s = &c->slots.items[c->heads.items[number].slot];
    bool good = take_mask(c, columns, s);
    at[1] = c->mask;
    if (good && take_lines(c, columns, s, at + 2, lines)) continue;
    to->at = at; /* as if it had not begun */
    break;
  }
  if (ended) issue_write(&issue, to);
  else issue_pends(&issue, to);
  return ended;
}
