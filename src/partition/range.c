/* SPDX-License-Identifier: Apache-2.0 */
/* Contiguous virtual memory over coloured frames: see range.h. */
#include "partition/range.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"

static void give_back_from(coloured_range *range, uint64_t page) {
  while (range->page_count > page) frames_give(range->from, range->pages[--range->page_count], 1);
}

ff_status coloured_range_resize(coloured_range *range, uint64_t bytes, ff_error *error) {
  uint64_t frame = frames_frame_bytes(range->from), before = range->page_count, wanted = bytes ? (bytes - 1) / frame + 1 : 0;
  if (!bytes) return ff_fail(error, FF_INVALID, "a range of no bytes");
  if (wanted > before && wanted - before > frames_left(range->from, range->set)) /* before anything is allocated for them */
    return ff_fail(error, FF_NO_MEMORY, "%llu frames are wanted, of these colours %llu are free", (unsigned long long)(wanted - before),
                   (unsigned long long)frames_left(range->from, range->set));
  give_back_from(range, wanted);
  range->pages = ff_realloc(range->pages, wanted * sizeof *range->pages);
  while (range->page_count < wanted) FF_ASSERT(frames_take(range->from, range->set, &range->pages[range->page_count++], NULL) == FF_OK);
  range->bytes = bytes;
  return FF_OK;
}

ff_status coloured_range_make(frames *from, uint64_t set, uint64_t bytes, coloured_range *out, ff_error *error) {
  coloured_range range = {.from = from, .set = set};
  ff_status status = coloured_range_resize(&range, bytes, error);
  if (!status) *out = range;
  return status;
}

void coloured_range_free(coloured_range *range) {
  give_back_from(range, 0);
  free(range->pages);
  *range = (coloured_range){.from = NULL};
}

uint64_t coloured_range_physical(const coloured_range *range, uint64_t offset) {
  uint64_t frame = frames_frame_bytes(range->from);
  FF_ASSERT(offset < range->bytes);
  return range->pages[offset / frame] + offset % frame;
}
