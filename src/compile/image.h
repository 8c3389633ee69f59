/* SPDX-License-Identifier: Apache-2.0 */
/* What the compiler makes and the cache keeps: machine code that needs no relocation, and where its functions begin.
 *
 *   image_head, image_entry[function_count], padding to 64, code[code_bytes] (position-independent, with its
 *   constants) */
#ifndef FF_COMPILE_IMAGE_H
#define FF_COMPILE_IMAGE_H

#include <stdint.h>

#define IMAGE_MAGIC UINT64_C(0x32656d6954614666)

typedef struct image_head {
  uint64_t magic;
  uint64_t key[2];   /* of the request and the compiler that it was made for */
  uint64_t checksum; /* XXH3 of everything behind this field */
  uint32_t function_count, code_offset, code_bytes, unused;
} image_head;

typedef uint32_t image_entry; /* bytes from the code's start to a function's one body */

#endif
