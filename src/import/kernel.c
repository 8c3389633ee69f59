/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a kernel's file (kernel.h):
 *
 *   -key = value ...    #BEGIN_TB    thread block = x,y,z    warp = w    insts = n    n instruction lines ...    #END_TB ...
 *
 * Numbers that size something are checked against CUDA's limits before it is made; warps of a block
 * may come in any order and are put in theirs when the block has ended. */
#include "import/kernel.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/operations.h"

enum { THREADS_MAX = 1024, WARPS_MAX = THREADS_MAX / 32, LONG_LINES = 60 };
#define BLOCK_WORDS_MAX (UINT64_C(1) << 27) /* 1 GiB of records */

static bool starts(const char *line, const char *with) { return !strncmp(line, with, strlen(with)); }

/* ---- the header ---- */

static bool three(const char *text, const char *format, uint32_t numbers[3]) {
  int end = -1;
  return sscanf(text, format, &numbers[0], &numbers[1], &numbers[2], &end) == 3 && end >= 0 && !text[end];
}

static bool one(const char *text, int base, uint64_t *number) {
  char *end;
  while (*text == ' ') text++;
  if (*text == '-' || *text == '+') return false;
  *number = strtoull(text, &end, base);
  return end != text && !*end;
}

/* What the header says beyond these is of no use here. NULL: good. */
static const char *header_line(kernel_header *h, const char *line) {
  const char *equals = strchr(line, '=');
  if (!equals) return "a line of the header without '='";
  const char *value = equals + 1 + (equals[1] == ' ');
  uint64_t number = 0;
  if (starts(line, "-kernel name")) {
    snprintf(h->name, sizeof h->name, "%.255s", value);
    return *value ? NULL : "the kernel has no name";
  }
  if (starts(line, "-grid dim"))
    return three(value, "(%9u,%9u,%9u)%n", h->grid) ? NULL : "the grid is expected as (x,y,z)";
  if (starts(line, "-block dim"))
    return three(value, "(%9u,%9u,%9u)%n", h->block) ? NULL : "the block is expected as (x,y,z)";
  bool address = starts(line, "-shmem base_addr") || starts(line, "-local mem base_addr");
  bool known = address || starts(line, "-shmem =") || starts(line, "-nregs") || starts(line, "-cuda stream id") ||
               starts(line, "-accelsim tracer version") || starts(line, "-enable lineinfo");
  if (!known) return NULL;
  if (!one(value, address ? 16 : 10, &number)) return "a number is expected";
  if (starts(line, "-shmem base_addr")) h->shared_base = number;
  else if (address) h->local_base = number;
  else if (starts(line, "-cuda stream id")) h->stream = number;
  else if (number > UINT32_MAX) return "a number is too large";
  else if (starts(line, "-shmem =")) h->shared_bytes = (uint32_t)number;
  else if (starts(line, "-nregs")) h->registers = (uint32_t)number;
  else if (starts(line, "-enable lineinfo")) h->format.lines = number;
  else h->format = (sass_format){.places = number<3, .lines = h->format.lines, .values = number> 5};
  return NULL;
}

static const char *check_header(kernel_header *h) {
  uint64_t threads = (uint64_t)h->block[0] * h->block[1], blocks = (uint64_t)h->grid[0] * h->grid[1];
  if (!h->name[0]) return "the header has no '-kernel name'";
  if (!h->grid[0] || !h->grid[1] || !h->grid[2]) return "the header has no '-grid dim', or an empty one";
  if (!h->block[0] || !h->block[1] || !h->block[2]) return "the header has no '-block dim', or an empty one";
  if (threads > THREADS_MAX || threads * h->block[2] > THREADS_MAX) return "a block of more than 1024 threads";
  if (blocks > OPERATION_BLOCKS_MAX / h->grid[2]) return "a grid of too many blocks";
  h->blocks = blocks * h->grid[2];
  h->warps = ((uint32_t)threads * h->block[2] + 31) / 32;
  return NULL;
}

ff_status kernel_read_header(lines *from, kernel_header *h, ff_error *error) {
  char *line;
  const char *wrong = NULL;
  *h = (kernel_header){0};
  for (;;) {
    ff_status status = lines_next(from, &line, error);
    if (status) return status;
    if (!line || *line == '#') break; /* the format, or the first block */
    if (!*line) continue;
    wrong = *line == '-' ? header_line(h, line) : "a line of the header is expected, as in '-grid dim = (1,1,1)'";
    if (wrong) return lines_fail(from, error, "%s: '%.*s'", wrong, LONG_LINES, line);
  }
  h->begun = line && starts(line, "#BEGIN_TB");
  wrong = check_header(h);
  if (wrong) return lines_fail(from, error, "%s", wrong);
  return FF_OK;
}

/* ---- blocks ---- */

typedef struct warp_part {
  size_t at, end;
  bool there;
} warp_part; /* of the reader's words */

struct kernel_reader {
  lines *from;
  const kernel_header *header;
  kernel_counts *counts;
  warp_state state;
  kernel_words words; /* warps as they come */
  warp_part parts[WARPS_MAX];
  bool begun; /* the block that comes has */
  bool has_number;
  uint32_t warp;            /* the one at hand; WARPS_MAX: none */
  uint64_t expected, seen;  /* its instructions */
  bool counted;             /* `expected` is known */
  FF_VEC(uint8_t) arrivals; /* of each barrier of the block */
};

kernel_reader *kernel_reader_create(lines *from, const kernel_header *header, kernel_counts *counts) {
  kernel_reader *r = ff_alloc(sizeof *r);
  r->from = from;
  r->header = header;
  r->counts = counts;
  r->begun = header->begun;
  return r;
}

void kernel_reader_free(kernel_reader *r) {
  if (!r) return;
  free(r->state.groups.items);
  free(r->words.items);
  free(r->arrivals.items);
  free(r);
}

static ff_status end_warp(kernel_reader *r, ff_error *error) {
  if (r->warp == WARPS_MAX) return FF_OK;
  if (r->counted && r->seen != r->expected)
    return lines_fail(r->from, error, "warp %" PRIu32 " has %" PRIu64 " instructions, but 'insts = %" PRIu64 "'",
                      r->warp, r->seen, r->expected);
  warp_end(&r->state, &r->words);
  r->parts[r->warp].end = r->words.count;
  while (r->arrivals.count < r->state.barriers) FF_PUSH(&r->arrivals, 0);
  for (uint32_t i = 0; i < r->state.barriers; i++) r->arrivals.items[i]++;
  r->warp = WARPS_MAX;
  return FF_OK;
}

static ff_status begin_warp(kernel_reader *r, const char *line, ff_error *error) {
  uint64_t warp;
  ff_status status = end_warp(r, error);
  if (status) return status;
  if (!one(line + strlen("warp ="), 10, &warp) || warp >= r->header->warps)
    return lines_fail(r->from, error, "'%.*s': a block of this kernel has %" PRIu32 " warps, from 0", LONG_LINES, line,
                      r->header->warps);
  if (r->parts[warp].there) return lines_fail(r->from, error, "warp %" PRIu64 " is there twice", warp);
  r->warp = (uint32_t)warp;
  r->parts[warp] = (warp_part){.at = r->words.count, .there = true};
  r->seen = 0;
  r->counted = false;
  warp_begin(&r->state);
  return FF_OK;
}

static ff_status begin_block(kernel_reader *r, kernel_block *block, const char *line, ff_error *error) {
  uint32_t at[3];
  const uint32_t *grid = r->header->grid;
  if (!three(line, "thread block = %9u,%9u,%9u%n", at) || at[0] >= grid[0] || at[1] >= grid[1] || at[2] >= grid[2])
    return lines_fail(r->from, error,
                      "'%.*s': there is no such block in a grid of (%" PRIu32 ",%" PRIu32 ",%" PRIu32 ")", LONG_LINES,
                      line, grid[0], grid[1], grid[2]);
  if (r->has_number) return lines_fail(r->from, error, "a second 'thread block' before #END_TB");
  block->number = at[0] + grid[0] * (at[1] + (uint64_t)grid[1] * at[2]);
  block->line = lines_number(r->from);
  r->has_number = true;
  return FF_OK;
}

static ff_status instruction(kernel_reader *r, const char *line, ff_error *error) {
  sass_instr instr;
  if (r->warp == WARPS_MAX)
    return lines_fail(r->from, error, "'warp = N' is expected before instructions: '%.*s'", LONG_LINES, line);
  if (r->counted && r->seen == r->expected)
    return lines_fail(r->from, error, "more instructions than 'insts = %" PRIu64 "' of warp %" PRIu32, r->expected,
                      r->warp);
  if (r->words.count > BLOCK_WORDS_MAX)
    return lines_fail(r->from, error, "a thread block of more than a gigabyte of records");
  const char *wrong = sass_parse(line, &r->header->format, &instr);
  if (wrong) return lines_fail(r->from, error, "%s: '%.*s'", wrong, LONG_LINES, line);
  warp_instruction(&r->state, &instr, r->header, &r->words, r->counts);
  r->seen++;
  return FF_OK;
}

/* The words of the warps in their order; a warp's n-th barrier opens when all that have an n-th one are there. */
static void gather(kernel_reader *r, kernel_block *block) {
  block->words.count = 0;
  for (uint32_t w = 0; w < r->header->warps; w++) {
    const warp_part *part = &r->parts[w];
    uint32_t barrier = 0;
    if (!part->there) FF_PUSH(&block->words, (uint64_t)TRACE_EXIT);
    for (size_t i = part->at; i < part->end;) {
      uint64_t *word = &r->words.items[i];
      size_t count = trace_word_kind(*word) == TRACE_ACCESS ? 2 + trace_access_lines(*word) : 1;
      if (trace_word_kind(*word) == TRACE_BARRIER) *word |= (uint64_t)r->arrivals.items[barrier++] << 16;
      for (size_t n = 0; n < count; n++) FF_PUSH(&block->words, word[n]);
      i += count;
    }
  }
  r->counts->blocks++;
  r->counts->barriers += r->arrivals.count;
}

static ff_status block_line(kernel_reader *r, kernel_block *block, const char *line, ff_error *error) {
  if (starts(line, "thread block")) return begin_block(r, block, line, error);
  if (starts(line, "cluster ")) return FF_OK;
  if (starts(line, "warp ="))
    return r->has_number ? begin_warp(r, line, error)
                         : lines_fail(r->from, error, "'thread block = x,y,z' is expected before its warps");
  if (!starts(line, "insts =")) return instruction(r, line, error);
  if (r->warp == WARPS_MAX || r->counted || r->seen || !one(line + strlen("insts ="), 10, &r->expected))
    return lines_fail(r->from, error,
                      "'%.*s': the number of a warp's instructions is expected, once, behind 'warp = N'", LONG_LINES,
                      line);
  r->counted = true;
  return FF_OK;
}

/* To the line behind #BEGIN_TB. */
static ff_status find_block(kernel_reader *r, bool *there, ff_error *error) {
  char *line;
  *there = r->begun;
  r->begun = false;
  while (!*there) {
    ff_status status = lines_next(r->from, &line, error);
    if (status || !line) return status;
    *there = starts(line, "#BEGIN_TB");
    if (!*there && *line && *line != '#')
      return lines_fail(
          r->from, error,
          "outside of a thread block: '%.*s' (Accel-Sim's post-traces-processing turns a raw trace into blocks)",
          LONG_LINES, line);
  }
  return FF_OK;
}

ff_status kernel_read_block(kernel_reader *r, kernel_block *block, bool *there, ff_error *error) {
  char *line;
  ff_status status = find_block(r, there, error);
  if (status || !*there) return status;
  memset(r->parts, 0, sizeof r->parts);
  r->words.count = r->arrivals.count = 0;
  r->warp = WARPS_MAX;
  r->has_number = false;
  for (;;) {
    status = lines_next(r->from, &line, error);
    if (status) return status;
    if (!line) return lines_fail(r->from, error, "the file ends within a thread block: #END_TB is missing");
    if (starts(line, "#END_TB")) break;
    if (starts(line, "#BEGIN_TB"))
      return lines_fail(r->from, error, "#BEGIN_TB before the #END_TB of the block before");
    if (*line && (status = block_line(r, block, line, error))) return status;
  }
  status = end_warp(r, error);
  if (status) return status;
  if (!r->has_number) return lines_fail(r->from, error, "a thread block without 'thread block = x,y,z'");
  gather(r, block);
  return FF_OK;
}
