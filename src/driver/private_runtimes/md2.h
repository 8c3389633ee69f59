/* SPDX-License-Identifier: Apache-2.0 */
/* MD2 (RFC 1319) and HMAC over it (RFC 2104). MD2 protects nothing any more, and libraries of cryptography have dropped
 * it; a CUDA runtime still computes it, to see that its driver does too (private_integrity.c). */
#ifndef FF_DRIVER_MD2_H
#define FF_DRIVER_MD2_H

#include <stddef.h>
#include <stdint.h>

enum { MD2_BYTES = 16 }; /* of a digest, and of a block */

typedef struct md2 {
  unsigned char state[MD2_BYTES], checksum[MD2_BYTES], block[MD2_BYTES];
  unsigned filled; /* bytes in `block`, < MD2_BYTES */
} md2;

void md2_start(md2 *hash);
void md2_add(md2 *hash, const void *bytes, size_t size);
void md2_finish(md2 *hash, unsigned char digest[MD2_BYTES]);

/* HMAC-MD2 with a key of exactly one block. */
void md2_keyed(const unsigned char key[MD2_BYTES], const void *bytes, size_t size, unsigned char digest[MD2_BYTES]);

#endif
