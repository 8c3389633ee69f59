/* SPDX-License-Identifier: Apache-2.0 */
/* What a launch declares that its kernel uses (Wilt 2017, R1 and R3), for one block at a time, and the words for an
 * access that leaves it. The virtual GPU checks accesses itself, instrumented code (instrument.h) does so on a real
 * one: both use these functions, and so agree.
 *
 * An access of n bytes at a, by a block, is declared exactly if every byte of [a, a + n) lies in a use's range for this
 * block that has the right mode; an atomic operation needs both modes, from one use or from several. */
#ifndef FF_PTX_DECLARED_H
#define FF_PTX_DECLARED_H

#include "farfault/virtual.h"
#include "ptx/ir.h"

enum { PTX_USE_READ = 1, PTX_USE_WRITE = 2 }; /* modes; an atomic operation needs both */

typedef struct ptx_use_range { /* a use as one block sees it: [low, high); low == high: nothing */
  uint64_t low, high;
  uint32_t mode;
} ptx_use_range;

ptx_use_range ptx_use_range_of(const ff_virtual_use *use, const uint32_t block[3]);
/* Is [address, address + bytes) declared with all of the modes `need`? */
bool ptx_use_covers(const ptx_use_range *ranges, uint32_t count, uint64_t address, uint64_t bytes, uint32_t need);

/* "undeclared global read of 4 bytes at 0x..", and a line that says which use is nearest and how far it is missed.
 * need: the modes of the access. */
void ptx_use_explain(const ff_virtual_use *uses, uint32_t count, const uint32_t block[3], ptx_space space,
                     uint64_t address, uint32_t bytes, uint32_t need, ff_text *text);
/* "\n  in kernel k, block (x,y,z), thread (x,y,z)" */
void ptx_put_thread(const char *kernel, const uint32_t block[3], const uint32_t thread[3], ff_text *text);
/* "\n  at NAME:line[ in function f]: instruction;[\n  from FILE:line]". callee: func was called by the kernel. */
void ptx_put_place(const ptx_func *func, const ptx_instr *instr, bool callee, ff_text *text);

#endif
