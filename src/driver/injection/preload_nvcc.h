/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FF_DRIVER_PRELOAD_NVCC_H
#define FF_DRIVER_PRELOAD_NVCC_H

#include <stdbool.h>
#include <stddef.h>

/* What nvcc has to be told beside its own arguments, so that PTX is in what it makes: " -gencode arch=A,code=A" for
 * each virtual architecture A that the arguments give machine code of and no PTX. `words`: the arguments with a NUL
 * behind each, `length` bytes in all. False, and "" in `to`: nothing has to be added, or nothing may be (a cubin holds
 * one image; link-time code wants other options), or it has no room. */
bool preload_nvcc_options(const char *words, size_t length, char *to, size_t room);

/* In an nvcc's own process, before its main: sets NVCC_APPEND_FLAGS so (CUDA Compiler Driver NVCC, "NVCC Environment
 * Variables"). What that and NVCC_PREPEND_FLAGS have already counts with the arguments, behind which it is put: `words`
 * has `room` bytes. */
void preload_nvcc_keep_ptx(char *words, size_t length, size_t room);

#endif
