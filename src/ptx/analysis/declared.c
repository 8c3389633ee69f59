/* SPDX-License-Identifier: Apache-2.0 */
/* Declared uses: ranges of a block, and messages. Arithmetic that could overflow is done with 128 bits. */
#include "ptx/analysis/declared.h"

#include <inttypes.h>

typedef __int128 wide;

static wide clip(wide value, wide low, wide high) { return value < low ? low : value > high ? high : value; }

ptx_use_range ptx_use_range_of(const ff_virtual_use *use, const uint32_t block[3]) {
  wide low = use->base, high = low + use->bytes;
  uint32_t mode = (use->read ? PTX_USE_READ : 0u) | (use->write ? PTX_USE_WRITE : 0u);
  if (high > UINT64_MAX) high = UINT64_MAX;
  if (use->block_bytes) {
    wide at = low + use->start;
    for (int d = 0; d < 3; d++) at += (wide)use->per_block[d] * block[d];
    wide end = clip(at + use->block_bytes, low, high);
    low = clip(at, low, high);
    high = end;
  }
  return (ptx_use_range){(uint64_t)low, (uint64_t)high, mode};
}

static bool covers_mode(const ptx_use_range *ranges, uint32_t count, uint64_t at, uint64_t end, uint32_t mode) {
  for (uint32_t i = 0; i < count;) {
    const ptx_use_range *range = &ranges[i++];
    if (!(range->mode & mode) || at < range->low || at >= range->high) continue;
    if (range->high >= end) return true;
    at = range->high; /* the rest may lie in another one */
    i = 0;
  }
  return false;
}

bool ptx_use_covers(const ptx_use_range *ranges, uint32_t count, uint64_t address, uint64_t bytes, uint32_t need) {
  uint64_t end = address + bytes;
  if (end < address) return false;
  for (uint32_t mode = PTX_USE_READ; mode <= PTX_USE_WRITE; mode <<= 1)
    if ((need & mode) && !covers_mode(ranges, count, address, end, mode)) return false;
  return true;
}

/* ---- words ---- */

static const char *name_of(const ff_virtual_use *use) { return use->segment ? use->segment : "?"; }

static const char *mode_text(uint32_t mode) {
  static const char *const texts[] = {"nothing", "read", "write", "read and write"};
  return texts[mode & 3];
}

static const char *action_text(uint32_t need) {
  return need == PTX_USE_READ ? "read" : need == PTX_USE_WRITE ? "write" : "atomic";
}

static const char *space_text(ptx_space space) {
  return space == PTX_SPACE_GLOBAL ? "global" : space == PTX_SPACE_CONST ? "constant" : "generic";
}

/* How far [address, end) reaches out of the range. */
static uint64_t overhang(const ptx_use_range *range, uint64_t address, uint64_t end) {
  uint64_t before = address < range->low ? range->low - address : 0, behind = end > range->high ? end - range->high : 0;
  return before > behind ? before : behind;
}

static void explain_mode(const ff_virtual_use *use, const ptx_use_range *range, uint32_t need, ff_text *text) {
  uint32_t missing = need & ~range->mode;
  ff_text_add(text, "\n  it %s segment '%s', which is declared for %s", missing & PTX_USE_WRITE ? "writes" : "reads",
              name_of(use),
              range->mode == PTX_USE_READ ? "reading"
              : range->mode               ? "writing"
                                          : "nothing");
}

static void explain_range(const ff_virtual_use *use, const uint32_t block[3], uint64_t address, uint64_t end,
                          ff_text *text) {
  ptx_use_range range = ptx_use_range_of(use, block);
  if (use->block_bytes)
    ff_text_add(text, "\n  outside of what the launch declares for this block of segment '%s' ", name_of(use));
  else ff_text_add(text, "\n  outside of what the launch declares of segment '%s' ", name_of(use));
  ff_text_add(text, "(bytes %" PRIu64 " to %" PRIu64 ", %s)", range.low - use->base + use->offset,
              range.high - use->base + use->offset, mode_text(range.mode));
  if (range.low == range.high) return;
  uint64_t before = address < range.low ? range.low - address : 0, behind = end > range.high ? end - range.high : 0;
  if (before) ff_text_add(text, ": it begins %" PRIu64 " byte%s before", before, before == 1 ? "" : "s");
  if (behind)
    ff_text_add(text, "%s it ends %" PRIu64 " byte%s behind", before ? "," : ":", behind, behind == 1 ? "" : "s");
}

/* The use that an access was probably meant for: one that holds it but for the mode; else the nearest, of the right
 * mode if there are several as near. */
void ptx_use_explain(const ff_virtual_use *uses, uint32_t count, const uint32_t block[3], ptx_space space,
                     uint64_t address, uint32_t bytes, uint32_t need, ff_text *text) {
  uint64_t end = address + bytes < address ? UINT64_MAX : address + bytes, least = UINT64_MAX;
  const ff_virtual_use *nearest = NULL;
  bool exact = false;
  ff_text_add(text, "undeclared %s %s of %u byte%s at 0x%" PRIx64, space_text(space), action_text(need), bytes,
              bytes == 1 ? "" : "s", address);
  for (uint32_t i = 0; i < count; i++) {
    ptx_use_range range = ptx_use_range_of(&uses[i], block);
    uint64_t far = range.low == range.high ? UINT64_MAX : overhang(&range, address, end);
    bool right = (range.mode & need) == need;
    if (!far && !right) {
      explain_mode(&uses[i], &range, need, text);
      return;
    }
    if (nearest && (far > least || (far == least && (exact || !right)))) continue;
    nearest = &uses[i];
    least = far;
    exact = right;
  }
  if (nearest) explain_range(nearest, block, address, end, text);
  else ff_text_add(text, "\n  the launch declares that it uses no segment");
}

void ptx_put_thread(const char *kernel, const uint32_t block[3], const uint32_t thread[3], ff_text *text) {
  ff_text_add(text, "\n  in kernel %s, block (%u,%u,%u), thread (%u,%u,%u)", kernel, block[0], block[1], block[2],
              thread[0], thread[1], thread[2]);
}

void ptx_put_place(const ptx_func *func, const ptx_instr *instr, bool callee, ff_text *text) {
  const ptx_module *module = func->source ? func->source : func->module, *files = func->module;
  ff_text_add(text, "\n  at %s:%u", module ? module->name : "?", instr->place.line);
  if (callee) ff_text_add(text, " in function %s", func->name);
  ff_text_add(text, ": ");
  ptx_print_instr(func, instr, text);
  if (instr->source_line && files && instr->source_file < files->file_count && files->files[instr->source_file])
    ff_text_add(text, "\n  from %s:%u", files->files[instr->source_file], instr->source_line);
}
