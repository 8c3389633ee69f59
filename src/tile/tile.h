/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA Tile IR: programs that say what one tile block does with whole tiles, not what a thread does.
 *
 * The virtual GPU runs PTX only. So a module in Tile IR's bytecode is translated to PTX, as NVIDIA's assembler
 * translates it to machine code: everything behind (interpreter, native code, checkers, timing) stays as it is.
 *
 *   bytes ── read.c ──▶ tile_module (module.h) ── lower*.c ──▶ PTX text
 *
 * A tile block becomes a thread block of tile_threads() threads; a kernel says so by .reqntid, and how much shared
 * memory it exchanges tiles through by its shared variable. */
#ifndef FF_TILE_TILE_H
#define FF_TILE_TILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Whether the bytes begin as Tile IR's bytecode does. `size` 0: unknown; then nothing behind the first byte that
 * differs is read. */
bool tile_is_bytecode(const void *bytes, size_t size);

/* How many bytes the bytecode at `bytes` has, its end marker included; nothing behind it is read. For images that a
 * program hands over without their size. FF_PARSE: its sections make no sense. */
ff_status tile_bytecode_size(const void *bytes, size_t *size, ff_error *error);

/* Translates a module. *ptx is NUL-terminated one past *length; the caller frees it. FF_PARSE: the bytecode is broken
 * (the message names the byte or the operation); FF_UNSUPPORTED: an operation or a type that is not translated;
 * FF_LIMIT: it would have more than 256 MiB of text, or take more than 1 GiB on the way. */
ff_status tile_to_ptx(const void *bytes, size_t size, char **ptx, size_t *length, ff_error *error);

/* The module as text, an operation per line, for people and tests; the caller frees *text. */
ff_status tile_to_text(const void *bytes, size_t size, char **text, ff_error *error);

#endif
