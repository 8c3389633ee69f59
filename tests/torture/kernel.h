/* SPDX-License-Identifier: Apache-2.0 */
/* Random kernels that no thread can race in, each as PTX and as a reference on the CPU that gives the same words.
 *
 * A kernel is k(y, x, z, counters, n, salt): n words each, n a power of two and a multiple of the launch's threads.
 * Thread by thread, word i of y comes from itself, from words of x and z anywhere, and from the other threads of the
 * block; counters only grow by atomic additions. y, x, z and counters are different buffers; x and z may be one. */
#ifndef FF_TESTS_TORTURE_KERNEL_H
#define FF_TESTS_TORTURE_KERNEL_H

#include <stdint.h>

#include "base/text.h"

enum { KERNEL_REGISTERS = 8, KERNEL_OPS = 40, KERNEL_TABLE = 64, KERNEL_COUNTERS = 16, KERNEL_THREADS = 256 };

typedef enum kernel_op_kind {
  KERNEL_COMPUTE,  /* d = a OP b */
  KERNEL_GUARDED,  /* the same where bit `amount` of register c is set */
  KERNEL_SKIP,     /* where register c has one of the bits of `mask`, the next `amount` operations are left out */
  KERNEL_REPEAT,   /* the next `amount` operations, (c & mask) times */
  KERNEL_TABLE_OP, /* d = table[a % KERNEL_TABLE], in constant memory */
  /* d = a of the thread that is `amount` further on in the block: by shared memory, between barriers */
  KERNEL_EXCHANGE,
  KERNEL_COUNT /* counters[a % KERNEL_COUNTERS] += b, atomically */
} kernel_op_kind;

typedef struct kernel_op {
  kernel_op_kind kind;
  uint32_t op, d, a, b, c, amount, mask;
} kernel_op;

typedef struct kernel {
  uint32_t op_count;
  kernel_op ops[KERNEL_OPS];
  uint32_t table[KERNEL_TABLE];
  uint32_t factor[2], offset[2]; /* where x and z are read: (i * factor + offset) % n; factors are odd */
  uint32_t stored;               /* the register whose value becomes y[i] */
} kernel;

typedef struct kernel_arguments {
  uint32_t *y;
  const uint32_t *x, *z;
  uint32_t *counters;
  uint32_t n, salt, blocks, threads; /* threads: of a block, a power of two */
} kernel_arguments;

uint32_t kernel_pick(uint64_t *state, uint32_t n); /* 0 to n - 1; n > 0 */
kernel kernel_random(uint64_t *state);
/* The module's PTX; the caller frees .chars. */
ff_text kernel_ptx(const kernel *kernel);
/* Does to the arguments' memory what a launch does. */
void kernel_reference(const kernel *kernel, const kernel_arguments *arguments);

#endif
