/* SPDX-License-Identifier: Apache-2.0 */
/* Images: whole or not, and mapped. Memory is never writable and executable at once. */
#include <string.h>
#include <sys/mman.h>
#include <xxhash.h>

#include "base/memory.h"
#include "compile/compile_private.h"

static uint64_t sum(const unsigned char *image, uint32_t bytes) {
  size_t behind = offsetof(image_head, checksum) + sizeof(uint64_t);
  return XXH3_64bits(image + behind, bytes - behind);
}

bool compile_seal(unsigned char *image, uint32_t bytes, const compile_key *key) {
  image_head head;
  if (bytes < sizeof head) return false;
  memcpy(&head, image, sizeof head);
  memcpy(head.key, key->half, sizeof head.key);
  head.checksum = sum(image, bytes);
  memcpy(image, &head, sizeof head);
  return true;
}

bool compile_is_whole(const unsigned char *image, uint32_t bytes, const compile_key *key, uint32_t function_count) {
  image_head head;
  if (bytes < sizeof head) return false;
  memcpy(&head, image, sizeof head);
  if (head.magic != IMAGE_MAGIC || head.key[0] != key->half[0] || head.key[1] != key->half[1] ||
      head.checksum != sum(image, bytes))
    return false;
  uint64_t entries = sizeof head + (uint64_t)function_count * sizeof(image_entry);
  if (head.function_count != function_count || head.code_offset < entries ||
      (uint64_t)head.code_offset + head.code_bytes != bytes || !head.code_bytes)
    return false;
  for (uint32_t n = 0; n < function_count; n++) {
    image_entry entry;
    memcpy(&entry, image + sizeof head + n * sizeof entry, sizeof entry);
    if (entry >= head.code_bytes) return false;
  }
  return true;
}

exec_native_function *compile_map(const unsigned char *image) {
  image_head head;
  memcpy(&head, image, sizeof head);
  unsigned char *code = mmap(NULL, head.code_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return NULL;
  memcpy(code, image + head.code_offset, head.code_bytes);
  if (mprotect(code, head.code_bytes, PROT_READ | PROT_EXEC)) {
    munmap(code, head.code_bytes);
    return NULL;
  }
  exec_native_function *made = ff_alloc((head.function_count + (size_t)1) * sizeof *made);
  for (uint32_t n = 0; n < head.function_count; n++) {
    image_entry entry;
    memcpy(&entry, image + sizeof head + n * sizeof entry, sizeof entry);
    made[n] = (exec_native_function)(uintptr_t)(code + entry);
  }
  return made;
}
