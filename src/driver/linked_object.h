/* SPDX-License-Identifier: Apache-2.0 */
/* What a link at run time takes from files of the host's compiler: nvcc -dc and -lib put device code into objects and
 * archives, and Numba's `link=[...]`, cuLinkAddFile and nvJitLinkAddFile name these. */
#ifndef FF_DRIVER_LINKED_OBJECT_H
#define FF_DRIVER_LINKED_OBJECT_H

#include <stdbool.h>
#include <stddef.h>

bool linked_object_is_archive(const void *file, size_t size);

/* Hands each fat binary that has PTX to `take`, in the order of the file: of an ELF object for 64 bits its sections
 * .nv_fatbin and __nv_relfatbin, of an archive (ar(5)) those of its objects but NVIDIA's device runtime. `image` points
 * into the file, at any alignment. How many there were; what is damaged ends the search, and what is no such file has
 * none. */
typedef void linked_object_take(void *to, const void *image, size_t size);
size_t linked_object_images(const void *file, size_t size, linked_object_take *take, void *to);

typedef enum linked_object_result {
  LINKED_OBJECT_ADDED,
  LINKED_OBJECT_CODE, /* machine code only: the file, or an object of the archive, and it is not of nvcc -dlink */
  LINKED_OBJECT_MANY, /* more than `room` fat binaries with PTX */
} linked_object_result;
/* The same for a link, all or nothing. An archive need not have any: NVIDIA's device runtime alone, which the virtual
 * GPU has itself, and objects without device code are good. */
linked_object_result linked_object_add(const void *file, size_t size, size_t room, linked_object_take *take, void *to);

#endif
