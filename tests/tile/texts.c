/* SPDX-License-Identifier: Apache-2.0 */
/* For read.py: texts FILE... prints "=== FILE" and the module as text, or what is wrong with it, for each; texts
 * --break FILE... reads every beginning of each file, and the file with every byte changed, and ends with an error
 * where one of them is read without complaint though it is cut, or is refused without saying why. Both read from memory
 * that ends where the bytes end. texts --translate FILE... prints how long the PTX is, or what is wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "tile/tile.h"

static unsigned wrong;

static void complain(const char *path, size_t at, const char *what) {
  printf("%s, byte %zu: %s\n", path, at, what);
  wrong++;
}

/* The status of exactly these bytes; *text is NULL where there is none. */
static ff_status read_copy(const unsigned char *bytes, size_t size, char **text, ff_error *error) {
  unsigned char *copy = malloc(size ? size : 1);
  if (!copy) exit(1);
  memcpy(copy, bytes, size);
  *text = NULL;
  *error = (ff_error){.status = FF_OK};
  ff_status status = tile_to_text(copy, size, text, error);
  free(copy);
  return status;
}

static void print_file(const char *path, const unsigned char *bytes, size_t size) {
  char *text;
  ff_error error;
  size_t length = 0;
  printf("=== %s\n", path);
  if (read_copy(bytes, size, &text, &error) == FF_OK) {
    fputs(text, stdout);
    if (*error.message) complain(path, 0, "is read, and leaves a message");
    if (tile_bytecode_size(bytes, &length, &error) != FF_OK || length != size)
      complain(path, length, "is said to be the end");
  } else {
    printf("%s: %s\n", ff_status_text(error.status), error.message);
  }
  free(text);
}

/* A refusal says which byte or what is wrong; nothing else is left. */
static void check_refusal(const char *path, size_t at, ff_status status, const char *text, const ff_error *error) {
  if (status != FF_PARSE && status != FF_UNSUPPORTED) complain(path, at, "is refused by another status");
  if (error->status != status || strlen(error->message) < 20) complain(path, at, "is refused without a reason");
  if (text) complain(path, at, "is refused, and leaves a text");
}

static void break_file(const char *path, unsigned char *bytes, size_t size) {
  char *text;
  ff_error error;
  for (size_t length = 0; length < size; length++) {
    ff_status status = read_copy(bytes, length, &text, &error);
    if (status == FF_OK) complain(path, length, "is a good end");
    else check_refusal(path, length, status, text, &error);
    free(text);
  }
  for (size_t at = 0; at < size; at++)
    for (unsigned change = 0; change < 2; change++) {
      static const unsigned char changes[] = {0x01, 0x80};
      bytes[at] ^= changes[change];
      ff_status status = read_copy(bytes, size, &text, &error);
      if (status != FF_OK) check_refusal(path, at, status, text, &error);
      else if (*error.message) complain(path, at, "is read, and leaves a message");
      free(text);
      bytes[at] ^= changes[change];
    }
}

static void translate_file(const unsigned char *bytes, size_t size) {
  char *ptx;
  size_t length;
  ff_error error;
  ff_status status = tile_to_ptx(bytes, size, &ptx, &length, &error);
  if (status) {
    printf("%s: %s\n", ff_status_text(error.status), error.message);
    return;
  }
  printf("%zu bytes of PTX\n", length);
  free(ptx);
}

int main(int argc, char **argv) {
  bool breaking = argc > 1 && !strcmp(argv[1], "--break"), translating = argc > 1 && !strcmp(argv[1], "--translate");
  for (int i = breaking || translating ? 2 : 1; i < argc; i++) {
    char *bytes;
    size_t size;
    ff_error error;
    if (ff_file_read(argv[i], 0, &bytes, &size, &error)) {
      fprintf(stderr, "%s\n", error.message);
      return 1;
    }
    if (breaking) break_file(argv[i], (unsigned char *)bytes, size);
    else if (translating) translate_file((const unsigned char *)bytes, size);
    else print_file(argv[i], (const unsigned char *)bytes, size);
    free(bytes);
  }
  return wrong != 0;
}
