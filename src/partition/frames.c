/* SPDX-License-Identifier: Apache-2.0 */
/* Physical memory as frames: see frames.h.
 *
 * 64 frames are a word of the bitmap `taken`; 64 words a group. For each colour c and group, none_left[c][group] has a
 * bit for each word; it is set when no frame of that colour was free in the word when the word was looked at last, and
 * cleared when one is given back: set means none, clear means maybe. Below first[c] all groups are full of such bits.
 *
 * Which frames of a word have colour c: for linear colours the frames whose offset in the word has the colour c ^
 * (colour of the word's beginning), the same 64-bit pattern for every word; otherwise a byte for each frame, filled in
 * when its word is first looked at. */
#include "partition/frames.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"

enum { WORD = 64, FRAMES_BITS = 32 };

struct frames {
  colours *colours;
  uint64_t frame_bytes, count, words, groups;
  uint32_t shift;                   /* log2 frame_bytes */
  uint64_t *taken;                  /* bits behind the last frame are set */
  uint64_t *none_left[COLOURS_MAX]; /* by colour; one bit for each word */
  uint64_t first[COLOURS_MAX];      /* by colour: the first group that may have one */
  uint64_t first_free;              /* no word below has a free frame of any colour */
  uint64_t patterns[COLOURS_MAX];   /* linear colours */
  uint8_t *colour_bytes;            /* other colours: 1 + the colour of each frame; 0: not asked yet */
  uint64_t taken_of[COLOURS_MAX], all_of[COLOURS_MAX];
  uint64_t taken_count;
  bool counted; /* all_of is filled in */
};

static bool power_of_two(uint64_t x) { return x && !(x & (x - 1)); }
const colours *frames_colours(const frames *f) { return f->colours; }
uint64_t frames_frame_bytes(const frames *f) { return f->frame_bytes; }

/* ---- colours of a word's frames ---- */

static uint32_t colour_count(const frames *f) { return colours_count(f->colours); }
static uint64_t word_address(const frames *f, uint64_t word) { return word * WORD << f->shift; }

static const uint8_t *bytes_of_word(const frames *f, uint64_t word) {
  uint8_t *bytes = f->colour_bytes + word * WORD;
  if (!bytes[0])
    for (uint32_t i = 0; i < WORD; i++)
      bytes[i] = (uint8_t)(1 + colours_of(f->colours, word_address(f, word) + ((uint64_t)i << f->shift)));
  return bytes;
}

/* Which frames of the word have a colour in the set. */
static uint64_t frames_of_set(const frames *f, uint64_t word, uint64_t set) {
  uint64_t out = 0;
  if (!(colours_all(f->colours) & ~set)) return UINT64_MAX;
  if (colours_linear(f->colours)) {
    uint32_t base = colours_of(f->colours, word_address(f, word));
    for (; set; set &= set - 1) out |= f->patterns[(uint32_t)__builtin_ctzll(set) ^ base];
    return out;
  }
  const uint8_t *bytes = bytes_of_word(f, word);
  for (uint32_t i = 0; i < WORD; i++) out |= (set >> (bytes[i] - 1) & 1) << i;
  return out;
}

/* Adds to `counts`, by colour, the frames of the word that are in `bits`. */
static void count_bits(const frames *f, uint64_t word, uint64_t bits, int64_t sign, uint64_t *counts) {
  if (colour_count(f) == 1) counts[0] += (uint64_t)(sign * __builtin_popcountll(bits));
  else if (!(bits & (bits - 1))) {
    if (bits)
      counts[colours_of(f->colours, word_address(f, word) + ((uint64_t)__builtin_ctzll(bits) << f->shift))] +=
          (uint64_t)sign;
  } else
    for (uint32_t c = 0; c < colour_count(f); c++)
      counts[c] += (uint64_t)(sign * __builtin_popcountll(bits & frames_of_set(f, word, UINT64_C(1) << c)));
}

/* ---- making and freeing ---- */

static void make_patterns(frames *f) {
  for (uint32_t i = 0; i < WORD; i++) f->patterns[colours_of(f->colours, (uint64_t)i << f->shift)] |= UINT64_C(1) << i;
}

ff_status frames_create(const address_hash *hash, uint64_t memory_bytes, uint64_t frame_bytes, frames **out,
                        ff_error *error) {
  if (!frame_bytes) frame_bytes = FRAME_BYTES;
  colours *c;
  ff_status status = colours_create(hash, frame_bytes, &c, error);
  if (status) return status;
  uint64_t count = memory_bytes / frame_bytes;
  if (!count || count > UINT64_C(1) << FRAMES_BITS) {
    colours_free(c);
    return count ? ff_fail(error, FF_LIMIT, "memory of %llu frames: at most 2^%d are managed",
                           (unsigned long long)count, FRAMES_BITS)
                 : ff_fail(error, FF_INVALID, "memory of %llu bytes has no frame of %llu",
                           (unsigned long long)memory_bytes, (unsigned long long)frame_bytes);
  }
  frames *f = ff_alloc(sizeof *f);
  *f = (frames){.colours = c,
                .frame_bytes = frame_bytes,
                .count = count,
                .words = (count + WORD - 1) / WORD,
                .shift = (uint32_t)__builtin_ctzll(frame_bytes)};
  f->groups = (f->words + WORD - 1) / WORD;
  f->taken = ff_alloc(f->words * sizeof *f->taken);
  if (count % WORD) f->taken[f->words - 1] = UINT64_MAX << count % WORD;
  for (uint32_t i = 0; i < colours_count(c); i++) f->none_left[i] = ff_alloc(f->groups * sizeof **f->none_left);
  if (colours_linear(c)) make_patterns(f);
  else if (colours_count(c) > 1) f->colour_bytes = ff_alloc(f->words * WORD); /* the host gives only what is touched */
  *out = f;
  return FF_OK;
}

void frames_free(frames *f) {
  if (!f) return;
  for (uint32_t i = 0; i < colour_count(f); i++) free(f->none_left[i]);
  free(f->taken);
  free(f->colour_bytes);
  colours_free(f->colours);
  free(f);
}

/* ---- one frame ---- */

/* Bits of the words of a group that may have a free frame of the set. */
static uint64_t words_to_see(const frames *f, uint64_t group, uint64_t set) {
  uint64_t none = UINT64_MAX;
  for (uint64_t s = set; s; s &= s - 1) none &= f->none_left[__builtin_ctzll(s)][group];
  uint64_t words = f->words - group * WORD;
  return ~none & (words < WORD ? (UINT64_C(1) << words) - 1 : UINT64_MAX);
}

static void no_more_below(frames *f, uint64_t group, uint64_t set) {
  for (uint64_t s = set; s; s &= s - 1) {
    uint64_t *first = &f->first[__builtin_ctzll(s)];
    if (*first < group) *first = group;
  }
}

/* The lowest word with a free frame of the set, and which those are; f->words: none. */
static uint64_t find_word(frames *f, uint64_t set, uint64_t *free_frames) {
  uint64_t group = f->groups;
  for (uint64_t s = set; s; s &= s - 1)
    if (f->first[__builtin_ctzll(s)] < group) group = f->first[__builtin_ctzll(s)];
  for (; group < f->groups; group++) {
    for (uint64_t see = words_to_see(f, group, set); see; see &= see - 1) {
      uint64_t word = group * WORD + (uint64_t)__builtin_ctzll(see);
      *free_frames = ~f->taken[word];
      if (*free_frames) *free_frames &= frames_of_set(f, word, set);
      if (*free_frames) {
        no_more_below(f, group, set);
        return word;
      }
      for (uint64_t s = set; s; s &= s - 1) f->none_left[__builtin_ctzll(s)][group] |= see & -see;
    }
  }
  no_more_below(f, f->groups, set);
  return f->words;
}

ff_status frames_take(frames *f, uint64_t set, uint64_t *physical, ff_error *error) {
  uint64_t bits, word = find_word(f, set & colours_all(f->colours), &bits);
  if (word == f->words) return ff_fail(error, FF_NO_MEMORY, "no frame of these colours is free");
  bits &= -bits;
  f->taken[word] |= bits;
  f->taken_count++;
  if (colour_count(f) > 1) count_bits(f, word, bits, 1, f->taken_of);
  *physical = (word * WORD + (uint64_t)__builtin_ctzll(bits)) << f->shift;
  return FF_OK;
}

/* ---- runs ---- */

/* The part of the word's bits that lies in [begin, end), in frames. */
static uint64_t bits_within(uint64_t word, uint64_t begin, uint64_t end) {
  uint64_t low = word * WORD, bits = UINT64_MAX;
  if (begin > low) bits &= UINT64_MAX << (begin - low);
  if (end < low + WORD) bits &= (UINT64_C(1) << (end - low)) - 1;
  return bits;
}

/* The first taken frame in [begin, end); end: none. */
static uint64_t first_taken(const frames *f, uint64_t begin, uint64_t end) {
  for (uint64_t word = begin / WORD; word * WORD < end; word++) {
    uint64_t bits = f->taken[word] & bits_within(word, begin, end);
    if (bits) return word * WORD + (uint64_t)__builtin_ctzll(bits);
  }
  return end;
}

/* The first free frame from `begin` on; f->count: none. */
static uint64_t first_free(const frames *f, uint64_t begin) {
  for (uint64_t word = begin / WORD; word < f->words; word++) {
    uint64_t bits = ~f->taken[word] & bits_within(word, begin, f->count);
    if (bits) return word * WORD + (uint64_t)__builtin_ctzll(bits);
  }
  return f->count;
}

static uint64_t find_run(frames *f, uint64_t length, uint64_t step) {
  uint64_t at = first_free(f, f->first_free * WORD);
  f->first_free = at / WORD;
  for (;;) {
    at = first_free(f, at);
    at = (at + step - 1) / step * step;
    if (at >= f->count || length > f->count - at) return f->count;
    uint64_t hit = first_taken(f, at, at + length);
    if (hit == at + length) return at;
    at = hit + 1;
  }
}

ff_status frames_take_run(frames *f, uint64_t bytes, uint64_t alignment, uint64_t *physical, ff_error *error) {
  if (!bytes || !power_of_two(alignment))
    return ff_fail(error, FF_INVALID, "a run of %llu bytes, aligned to %llu", (unsigned long long)bytes,
                   (unsigned long long)alignment);
  uint64_t length = ((bytes - 1) >> f->shift) + 1, step = alignment > f->frame_bytes ? alignment >> f->shift : 1;
  uint64_t begin = find_run(f, length, step);
  if (begin == f->count)
    return ff_fail(error, FF_NO_MEMORY, "no %llu bytes in a row are free", (unsigned long long)bytes);
  for (uint64_t word = begin / WORD; word * WORD < begin + length; word++) {
    uint64_t bits = bits_within(word, begin, begin + length);
    f->taken[word] |= bits;
    if (colour_count(f) > 1) count_bits(f, word, bits, 1, f->taken_of);
  }
  f->taken_count += length;
  *physical = begin << f->shift;
  return FF_OK;
}

/* ---- giving back ---- */

/* Some frames of the word became free: of which colours, is not asked. */
static void may_have_again(frames *f, uint64_t word, uint64_t set) {
  uint64_t group = word / WORD;
  for (uint64_t s = set; s; s &= s - 1) {
    uint32_t c = (uint32_t)__builtin_ctzll(s);
    f->none_left[c][group] &= ~(UINT64_C(1) << word % WORD);
    if (group < f->first[c]) f->first[c] = group;
  }
  if (word < f->first_free) f->first_free = word;
}

void frames_give(frames *f, uint64_t physical, uint64_t bytes) {
  uint64_t begin = physical >> f->shift, length = bytes ? ((bytes - 1) >> f->shift) + 1 : 0;
  FF_ASSERT(!(physical & (f->frame_bytes - 1)) && begin < f->count && length && length <= f->count - begin);
  uint64_t set = length == 1 ? UINT64_C(1) << colours_of(f->colours, physical) : colours_all(f->colours);
  for (uint64_t word = begin / WORD; word * WORD < begin + length; word++) {
    uint64_t given = bits_within(word, begin, begin + length);
    FF_ASSERT((f->taken[word] & given) == given);
    f->taken[word] &= ~given;
    if (colour_count(f) > 1) count_bits(f, word, given, -1, f->taken_of);
    may_have_again(f, word, set);
  }
  f->taken_count -= length;
}

bool frames_is_taken(const frames *f, uint64_t physical) {
  uint64_t frame = physical >> f->shift;
  FF_ASSERT(frame < f->count);
  return f->taken[frame / WORD] >> frame % WORD & 1;
}

/* ---- counts ---- */

static void count_all(frames *f) {
  for (uint64_t word = 0; word < f->words; word++) count_bits(f, word, bits_within(word, 0, f->count), 1, f->all_of);
  f->counted = true;
}

static bool whole_set(const frames *f, uint64_t set) { return !(colours_all(f->colours) & ~set); }

static uint64_t sum_of(const frames *f, const uint64_t *counts, uint64_t set) {
  uint64_t sum = 0;
  for (uint64_t s = set & colours_all(f->colours); s; s &= s - 1) sum += counts[__builtin_ctzll(s)];
  return sum;
}

uint64_t frames_all(frames *f, uint64_t set) {
  if (whole_set(f, set)) return f->count;
  if (!f->counted) count_all(f);
  return sum_of(f, f->all_of, set);
}

uint64_t frames_taken(const frames *f, uint64_t set) {
  return whole_set(f, set) ? f->taken_count : sum_of(f, f->taken_of, set);
}
uint64_t frames_left(frames *f, uint64_t set) { return frames_all(f, set) - frames_taken(f, set); }

/* ---- the invariant ---- */

void frames_check(frames *f) {
  uint64_t free_of[COLOURS_MAX] = {0}, free_count = 0;
  for (uint64_t word = 0; word < f->words; word++) {
    uint64_t bits = ~f->taken[word], group = word / WORD;
    FF_ASSERT(!(bits & ~bits_within(word, 0, f->count)));
    FF_ASSERT(!bits || word >= f->first_free);
    count_bits(f, word, bits, 1, free_of);
    free_count += (uint64_t)__builtin_popcountll(bits);
    for (uint32_t c = 0; c < colour_count(f); c++)
      if (f->none_left[c][group] >> word % WORD & 1 || group < f->first[c])
        FF_ASSERT(!(bits & frames_of_set(f, word, UINT64_C(1) << c)));
  }
  FF_ASSERT(f->taken_count + free_count == f->count);
  for (uint32_t c = 0; c < colour_count(f) && colour_count(f) > 1; c++)
    FF_ASSERT(f->taken_of[c] + free_of[c] == frames_all(f, UINT64_C(1) << c));
}
