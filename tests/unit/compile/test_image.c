/* SPDX-License-Identifier: Apache-2.0 */
/* Images: sealed, whole or not, mapped and run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "compile/compile_private.h"

static const compile_key key = {{0x1234, 0x5678}};
#define FUNCTIONS 2u

/* Functions of which number n returns n. */
static unsigned char *make_image(uint32_t *bytes) {
  uint32_t start = (uint32_t)((sizeof(image_head) + FUNCTIONS * sizeof(image_entry) + 63) & ~63u);
  image_head head = {
      .magic = IMAGE_MAGIC, .function_count = FUNCTIONS, .code_offset = start, .code_bytes = FUNCTIONS * 32};
  unsigned char *image = ff_alloc(*bytes = start + head.code_bytes);
  memcpy(image, &head, sizeof head);
  for (uint32_t n = 0; n < FUNCTIONS; n++) {
    image_entry entry = n * 32;
    memcpy(image + sizeof head + n * sizeof entry, &entry, sizeof entry);
    memcpy(image + start + n * 32, (unsigned char[]){0xb8, (unsigned char)n, 0, 0, 0, 0xc3}, 6); /* mov eax, n; ret */
  }
  assert_true(compile_seal(image, *bytes, &key));
  return image;
}

static void runs(void **unused) {
  uint32_t bytes;
  unsigned char *image = make_image(&bytes);
  assert_true(compile_is_whole(image, bytes, &key, FUNCTIONS));
  exec_native_function *code = compile_map(image);
  assert_non_null(code);
  for (uint32_t n = 0; n < FUNCTIONS; n++) assert_int_equal(code[n](NULL, 0, NULL), n);
  free(code);
  free(image);
}

/* Every byte, one after the other; every length. */
static void broken_ones_are_refused(void **unused) {
  uint32_t bytes;
  unsigned char *image = make_image(&bytes);
  for (uint32_t n = 0; n < bytes; n++) {
    image[n] ^= 0x41;
    assert_false(compile_is_whole(image, bytes, &key, FUNCTIONS));
    image[n] ^= 0x41;
  }
  for (uint32_t length = 0; length < bytes; length++) {
    unsigned char *less = ff_alloc(length); /* of this length exactly: reading behind it is seen */
    memcpy(less, image, length);
    assert_false(compile_is_whole(less, length, &key, FUNCTIONS));
    free(less);
  }
  assert_true(compile_is_whole(image, bytes, &key, FUNCTIONS));
  assert_false(compile_is_whole(image, bytes, &(compile_key){{0x1234, 0x5679}}, FUNCTIONS));
  assert_false(compile_is_whole(image, bytes, &key, FUNCTIONS + 1));
  free(image);
}

/* With a checksum that is right: counts and places are looked at, too. */
static void lies_are_refused(void **unused) {
  uint32_t bytes;
  unsigned char *image = make_image(&bytes);
  static const struct {
    size_t at;
    uint32_t value;
  } lies[] = {{offsetof(image_head, function_count), 1},      {offsetof(image_head, function_count), UINT32_MAX},
              {offsetof(image_head, code_offset), 0},         {offsetof(image_head, code_offset), UINT32_MAX},
              {offsetof(image_head, code_bytes), 0},          {offsetof(image_head, code_bytes), FUNCTIONS * 32 + 1},
              {offsetof(image_head, code_bytes), UINT32_MAX}, {sizeof(image_head), FUNCTIONS * 32},
              {sizeof(image_head) + 4, UINT32_MAX},           {sizeof(image_head), 0x80000000u}};
  for (size_t n = 0; n < sizeof lies / sizeof *lies; n++) {
    uint32_t was;
    memcpy(&was, image + lies[n].at, sizeof was);
    memcpy(image + lies[n].at, &lies[n].value, sizeof was);
    assert_true(compile_seal(image, bytes, &key));
    assert_false(compile_is_whole(image, bytes, &key, FUNCTIONS));
    memcpy(image + lies[n].at, &was, sizeof was);
  }
  assert_false(compile_seal(image, sizeof(image_head) - 1, &key));
  free(image);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(runs), cmocka_unit_test(broken_ones_are_refused),
                                     cmocka_unit_test(lies_are_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
