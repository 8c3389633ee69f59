/* SPDX-License-Identifier: Apache-2.0 */
/* What the address space and programs need of the table of textures (texture_table.c): its place, its life, its
 * variables. */
#ifndef FF_EXEC_TEXTURE_TABLE_H
#define FF_EXEC_TEXTURE_TABLE_H

#include "exec/texture/texture.h"

typedef struct exec_textures exec_textures;
exec_textures **exec_memory_textures(exec_memory *memory); /* NULL until something is added */
void exec_textures_free(exec_textures *textures);
void exec_texture_forget_cells(exec_memory *memory, uint64_t address); /* the variable goes */

#endif
