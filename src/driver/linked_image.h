/* SPDX-License-Identifier: Apache-2.0 */
/* The result of a link at run time (cuLink*, nvJitLink), in the place of machine code: the parts that were added, PTX
 * texts and fat binaries, which every call that loads a module recognises and links.
 *
 *   magic[16], u64 bytes of the whole, u32 count, u32 max_registers, then per part: u64 name bytes, u64 size, name with
 *   its NUL, bytes */
#ifndef FF_DRIVER_LINKED_IMAGE_H
#define FF_DRIVER_LINKED_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

enum { LINKED_PARTS_MAX = 1024 };

typedef struct link_part {
  char *bytes, *name;
  size_t size;
} link_part;

/* max_registers: of a thread of its kernels, as the linker was told; 0: nothing. */
void linked_image_write(const link_part *parts, size_t count, uint32_t max_registers, ff_text *out);

/* bytes == 0: the image knows its own end. */
bool linked_image_is(const void *image, size_t bytes);

/* The parts, which point into the image; how many there are, or 0: it is damaged. */
size_t linked_image_read(const void *image, size_t bytes, link_part parts[LINKED_PARTS_MAX], uint32_t *max_registers);

#endif
