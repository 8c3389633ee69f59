/* SPDX-License-Identifier: Apache-2.0 */
/* Any PTX, launched with any parameters: the range analysis must end, soon, with ranges inside the segments that say
 * the same however they are asked; and every kernel's windows must be PTX that parses back to the same text. The first
 * 32 bytes are the launch. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "ptx/ranges/ranges.h"
#include "ptx/rewrite/window.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

enum { LAUNCH_BYTES = 32, PARAM_BYTES = 64, SEGMENTS = 3 };

static const ptx_ranges_segment segments[SEGMENTS] = {
    {0x10000, 0x1000}, {0x11000, 0x800}, {UINT64_C(0x7f0000000000), UINT64_C(1) << 33}};

static void check_range(const ptx_range *range, const ptx_ranges_segment *segment, const uint32_t grid[3]) {
  uint64_t begin, end;
  if (!range->any) {
    FF_ASSERT(!range->bytes && !range->block_bytes);
    return;
  }
  FF_ASSERT(range->bytes && range->offset <= segment->bytes && range->bytes <= segment->bytes - range->offset);
  if (range->whole)
    FF_ASSERT(!range->per_block[0] && !range->per_block[1] && !range->per_block[2] &&
              range->start == (int64_t)range->offset);
  const uint32_t all[3] = {0, 0, 0};
  ptx_range_of_blocks(range, all, grid, &begin, &end);
  FF_ASSERT(begin <= end && (begin == end || (begin >= range->offset && end <= range->offset + range->bytes)));
}

static bool holds(const ptx_range *outer, const ptx_range *inner) {
  return !inner->any ||
         (outer->any && outer->offset <= inner->offset && outer->offset + outer->bytes >= inner->offset + inner->bytes);
}

static void check_kernel(const ptx_func *kernel, const unsigned char *launch_bytes) {
  unsigned char params[PARAM_BYTES];
  static const uint64_t pointers[] = {0x10000, 0x11000, UINT64_C(0x7f0000000000), 0x10ff0};
  for (int i = 0; i < PARAM_BYTES / 8; i++) {
    uint64_t value =
        launch_bytes[i] < 200 ? pointers[i % 4] : (uint64_t)launch_bytes[8 + i] << launch_bytes[16 + i] % 64;
    memcpy(params + 8 * i, &value, 8);
  }
  ptx_ranges_launch launch = {{1 + launch_bytes[24] % 50u, 1 + launch_bytes[25] % 4u, 1 + launch_bytes[26] / 200u},
                              {1 + launch_bytes[27], 1 + launch_bytes[28] % 4u, 1},
                              params,
                              launch_bytes[29] % (PARAM_BYTES + 1u),
                              segments,
                              SEGMENTS};
  ptx_ranges found;
  ptx_ranges_find(kernel, &launch, &found);
  for (uint32_t s = 0; s < SEGMENTS; s++) {
    const ptx_segment_ranges *one = &found.segments[s];
    check_range(&one->reads, &segments[s], launch.grid);
    check_range(&one->writes, &segments[s], launch.grid);
    check_range(&one->all, &segments[s], launch.grid);
    FF_ASSERT(holds(&one->all, &one->reads) && holds(&one->all, &one->writes));
    FF_ASSERT(found.complete || (one->all.whole && one->all.bytes == segments[s].bytes && found.reason[0]));
  }
  ptx_ranges_free(&found);
}

static void check_windows(const ptx_module *module) {
  ptx_windows *windows = ptx_windows_make(module);
  ptx_module *again;
  ff_error error;
  if (ptx_module_parse("windows", windows->text.chars, windows->text.length, &again, &error) != FF_OK) {
    fprintf(stderr, "%s\n%s\n", windows->text.chars, error.message);
    abort();
  }
  for (uint32_t i = 0; i < windows->kernel_count; i++) {
    const ptx_window_kernel *kernel = &windows->kernels[i];
    FF_ASSERT(!kernel->window_name == !!kernel->reason);
    if (kernel->window_name)
      FF_ASSERT(ptx_find_func(again, kernel->window_name) &&
                ptx_param_layout(ptx_find_func(again, kernel->window_name), NULL) == kernel->bytes);
  }
  ptx_module_free(again);
  ptx_windows_free(windows);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
  ptx_module *module;
  ff_check_level = 2;
  if (size < LAUNCH_BYTES ||
      ptx_module_parse("fuzz", (const char *)data + LAUNCH_BYTES, size - LAUNCH_BYTES, &module, NULL) != FF_OK)
    return 0;
  for (uint32_t i = 0; i < module->func_count && i < 8; i++)
    if (module->funcs[i]->has_body) check_kernel(module->funcs[i], data);
  check_windows(module);
  ptx_module_free(module);
  return 0;
}
