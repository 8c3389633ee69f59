/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that come as Tile IR (tile/tile.h): a program says what a block does with whole tiles, and how many threads
 * do it is the compiler's choice.
 *
 *   image ──engine_tile_add──▶ PTX, a source as any other ──▶ parts, linked, decoded
 *   launch with one thread per block ──engine_tile_settle──▶ the same launch with those of .reqntid
 *
 * What a program asks and is told stays in its terms: launches, graphs and their nodes have blocks of one thread, as
 * NVIDIA's documentation of tile kernels has it. Recordings, simulations and checkers have the threads that ran. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "driver/engine/engine_internal.h"
#include "tile/tile.h"

ff_status engine_tile_add(engine_module *module, const void *bytecode, size_t bytes, ff_error *error) {
  engine_source source = {.tile = true};
  ff_status status = bytes ? FF_OK : tile_bytecode_size(bytecode, &bytes, error);
  if (!status) status = tile_to_ptx(bytecode, bytes, &source.text, &source.length, error);
  if (!status) engine_module_add_source(module, source);
  return status;
}

bool engine_tile_has(const engine_module *module) {
  for (size_t i = 0; i < module->sources.count; i++)
    if (module->sources.items[i].tile) return true;
  return false;
}

void engine_tile_say(const char *owner) {
  ff_text key = {0};
  ff_text_add(&key, "Tile IR of %s", owner);
  engine_say_once(key.chars,
                  "%s: its Tile IR is translated to PTX; results are Tile IR's, times are those of this translation "
                  "and not of NVIDIA's code",
                  owner);
  free(key.chars);
}

void engine_module_tell(const engine_module *module, const void *caller) {
  Dl_info object;
  bool known = engine_tile_has(module) && dladdr(caller, &object) && object.dli_fname;
  const char *slash = known ? strrchr(object.dli_fname, '/') : NULL;
  if (engine_tile_has(module)) engine_tile_say(slash ? slash + 1 : program_invocation_short_name);
}

bool engine_tile_kernel(const engine_module *module, const char *name) {
  for (size_t i = 0; i < module->tile_parts.count; i++) {
    const ptx_func *found = ptx_find_func(module->tile_parts.items[i], name);
    if (found && found->entry) return true;
  }
  return false;
}

cudaError_t engine_tile_settle(const engine_launch *launch, const engine_function_info *info, engine_launch *settled) {
  *settled = *launch;
  if (!info->tile_threads) return cudaSuccess;
  if (launch->block[0] != 1 || launch->block[1] != 1 || launch->block[2] != 1) {
    engine_say_once(launch->function->name,
                    "%.200s is a kernel of tiles, which is launched with blocks of (1,1,1), not (%u,%u,%u)",
                    launch->function->title, launch->block[0], launch->block[1], launch->block[2]);
    return cudaErrorInvalidValue;
  }
  settled->block[0] = info->tile_threads;
  return cudaSuccess;
}
