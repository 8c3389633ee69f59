/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * What the virtual GPU's libcuda.so.1 has in addition to the CUDA driver API. A program finds these by dlsym and goes
 * on without them on a real GPU. Results are CUresult numbers. */
#ifndef FARFAULT_VIRTUAL_H
#define FARFAULT_VIRTUAL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What the next launch of this thread may touch (Wilt 2017, R1 and R3): an access of its kernel to memory that the
 *  program allocated
 * or mapped, outside of all of these, or of another kind, is a fault that names kernel, block, thread, PTX line and
 * segment. Block (x, y, z) of the launch may touch [base, base + bytes), and if block_bytes is not 0, of these only
 * [base + start + x * per_block[0] + y * per_block[1] + z * per_block[2], + block_bytes). Module variables, shared and
 * local memory, the device heap and parameters are always allowed. */
typedef struct ff_virtual_use {
  uint64_t base;        /**< device address */
  uint64_t bytes;       /**< from there */
  int64_t per_block[3]; /**< bytes from one block's range to the next one's */
  uint64_t block_bytes; /**< of one block's range; 0: every block may touch all */
  /** of block (0, 0, 0)'s range, from base: a launch that is a window of a larger grid begins elsewhere */
  int64_t start;
  uint64_t offset;     /**< of base in the segment, for the message */
  int read;            /**< not 0: may be read */
  int write;           /**< not 0: may be written */
  const char *segment; /**< its name, for the message; copied */
} ff_virtual_use;

/** Declares the uses of the calling thread's next launch: checked by that launch, then forgotten. count == 0: nothing
 *  may be touched. */
typedef int ff_virtual_declare_function(const ff_virtual_use *uses, uint32_t count);
/** See ff_virtual_declare_function. */
int farfaultDeclareUses(const ff_virtual_use *uses, uint32_t count);

/** Not 0: what the calling thread copies from now on between the host and the GPU is bytes of files: reports count them
 *  apart, and each copy takes the time of the machine's drive, too, if it has one. 0: no longer. */
typedef int ff_virtual_files_function(int files);
/** See ff_virtual_files_function. */
int farfaultFiles(int files);

/** The host's virtual time in picoseconds, as the first simulation has it (without one: a local estimate). The call
 *  itself takes none. */
typedef int ff_virtual_time_function(uint64_t *picoseconds);
/** See ff_virtual_time_function. */
int farfaultHostTime(uint64_t *picoseconds);

/** Where in GPU memory the first simulation has what lies at a device address: the physical address, which on a real
 *  GPU only the driver has.
 * CUDA_ERROR_INVALID_VALUE: nothing is allocated there. CUDA_ERROR_NOT_SUPPORTED: the machine's file has no address
 * hash (`address_map`), or nothing is simulated. Memory that was allocated in one piece of 2 MiB or more is one piece
 * there, too, while there is one that long. */
typedef int ff_virtual_physical_function(uint64_t address, uint64_t *physical);
/** See ff_virtual_physical_function. */
int farfaultPhysical(uint64_t address, uint64_t *physical);

/** The whole message of the kernel fault that made the context unusable; "" if there was none. Lives as long as the
 *  process. */
typedef const char *ff_virtual_fault_function(void);
/** See ff_virtual_fault_function. */
const char *farfaultFault(void);

#ifdef __cplusplus
}
#endif
#endif
