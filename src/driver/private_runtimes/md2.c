/* SPDX-License-Identifier: Apache-2.0 */
/* MD2 and HMAC-MD2, from RFC 1319 and RFC 2104. */
#include "driver/private_runtimes/md2.h"

#include <string.h>

enum { ROUNDS = 18 };

/* RFC 1319, section 3.2: a permutation of 0 to 255 that the digits of pi give. */
static const unsigned char pi_table[256] = {
    41,  46,  67,  201, 162, 216, 124, 1,   61,  54,  84,  161, 236, 240, 6,   19,  98,  167, 5,   243, 192, 199,
    115, 140, 152, 147, 43,  217, 188, 76,  130, 202, 30,  155, 87,  60,  253, 212, 224, 22,  103, 66,  111, 24,
    138, 23,  229, 18,  190, 78,  196, 214, 218, 158, 222, 73,  160, 251, 245, 142, 187, 47,  238, 122, 169, 104,
    121, 145, 21,  178, 7,   63,  148, 194, 16,  137, 11,  34,  95,  33,  128, 127, 93,  154, 90,  144, 50,  39,
    53,  62,  204, 231, 191, 247, 151, 3,   255, 25,  48,  179, 72,  165, 181, 209, 215, 94,  146, 42,  172, 86,
    170, 198, 79,  184, 56,  210, 150, 164, 125, 182, 118, 252, 107, 226, 156, 116, 4,   241, 69,  157, 112, 89,
    100, 113, 135, 32,  134, 91,  207, 101, 230, 45,  168, 2,   27,  96,  37,  173, 174, 176, 185, 246, 28,  70,
    97,  105, 52,  64,  126, 15,  85,  71,  163, 35,  221, 81,  175, 58,  195, 92,  249, 206, 186, 197, 234, 38,
    44,  83,  13,  110, 133, 40,  132, 9,   211, 223, 205, 244, 65,  129, 77,  82,  106, 220, 55,  200, 108, 193,
    171, 250, 36,  225, 123, 8,   12,  189, 177, 74,  120, 136, 149, 139, 227, 99,  232, 109, 233, 203, 213, 254,
    59,  0,   29,  57,  242, 239, 183, 14,  102, 88,  208, 228, 166, 119, 114, 248, 235, 117, 75,  10,  49,  68,
    80,  180, 143, 237, 31,  26,  219, 153, 141, 51,  159, 17,  131, 20,
};

void md2_start(md2 *hash) { memset(hash, 0, sizeof *hash); }

/* RFC 1319, section 3.2. */
static void add_to_checksum(md2 *hash) {
  unsigned char last = hash->checksum[MD2_BYTES - 1];
  for (unsigned i = 0; i < MD2_BYTES; i++) {
    hash->checksum[i] ^= pi_table[hash->block[i] ^ last];
    last = hash->checksum[i];
  }
}

/* RFC 1319, section 3.4. */
static void add_to_state(md2 *hash) {
  unsigned char mixed[3 * MD2_BYTES];
  for (unsigned i = 0; i < MD2_BYTES; i++) {
    mixed[i] = hash->state[i];
    mixed[MD2_BYTES + i] = hash->block[i];
    mixed[2 * MD2_BYTES + i] = hash->state[i] ^ hash->block[i];
  }
  unsigned char t = 0;
  for (unsigned round = 0; round < ROUNDS; round++) {
    for (unsigned i = 0; i < sizeof mixed; i++) {
      mixed[i] ^= pi_table[t];
      t = mixed[i];
    }
    t = (unsigned char)(t + round);
  }
  memcpy(hash->state, mixed, MD2_BYTES);
}

static void add_block(md2 *hash) {
  add_to_checksum(hash);
  add_to_state(hash);
  hash->filled = 0;
}

void md2_add(md2 *hash, const void *bytes, size_t size) {
  const unsigned char *from = bytes;
  for (size_t i = 0; i < size; i++) {
    hash->block[hash->filled++] = from[i];
    if (hash->filled == MD2_BYTES) add_block(hash);
  }
}

/* 1 to 16 bytes of padding, each their number (RFC 1319, section 3.1), then the checksum as a last block. */
void md2_finish(md2 *hash, unsigned char digest[MD2_BYTES]) {
  unsigned padding = MD2_BYTES - hash->filled;
  memset(hash->block + hash->filled, (int)padding, padding);
  add_block(hash);
  memcpy(hash->block, hash->checksum, MD2_BYTES);
  add_to_state(hash);
  memcpy(digest, hash->state, MD2_BYTES);
}

void md2_keyed(const unsigned char key[MD2_BYTES], const void *bytes, size_t size, unsigned char digest[MD2_BYTES]) {
  unsigned char inner[MD2_BYTES], outer[MD2_BYTES], inner_digest[MD2_BYTES];
  for (unsigned i = 0; i < MD2_BYTES; i++) {
    inner[i] = key[i] ^ 0x36;
    outer[i] = key[i] ^ 0x5c;
  }
  md2 hash;
  md2_start(&hash);
  md2_add(&hash, inner, sizeof inner);
  md2_add(&hash, bytes, size);
  md2_finish(&hash, inner_digest);
  md2_start(&hash);
  md2_add(&hash, outer, sizeof outer);
  md2_add(&hash, inner_digest, sizeof inner_digest);
  md2_finish(&hash, digest);
}
