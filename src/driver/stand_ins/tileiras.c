/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for NVIDIA's assembler of Tile IR, for programs that make bytecode themselves and have it assembled before
 * they load it (cuTile): the result is the bytecode, which every load call of the virtual GPU takes.
 *
 * What cannot be translated is an error here, where the program expects one; the translation itself is thrown away.
 * Options of the compiler are accepted and change nothing. Tile libraries (-l) are refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "tile/tile.h"

typedef struct arguments {
  const char *in, *out, *remarks;
  bool version;
} arguments;

static int fail(const char *format, const char *what) {
  fprintf(stderr, "error: ");
  fprintf(stderr, format, what);
  fprintf(stderr, "\n");
  return EXIT_FAILURE;
}

/* `--name=value` and `--name value`, with one dash or two; *at is moved behind it. NULL: it is another option. */
static const char *value_of(const char *name, char **words, int count, int *at) {
  const char *word = words[*at] + 1 + (words[*at][1] == '-');
  size_t length = strlen(name);
  if (strncmp(word, name, length)) return NULL;
  if (word[length] == '=') return word + length + 1;
  return !word[length] && *at + 1 < count ? words[++*at] : NULL;
}

/* Options whose value may be the next word, and changes nothing. */
static bool skip_value(char **words, int count, int *at) {
  static const char *const names[] = {"gpu-name", "arch", "opt-level", "host-arch", "host-os", "remark-format"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (value_of(names[i], words, count, at)) return true;
  return false;
}

static int read_option(char **words, int count, int *at, arguments *out) {
  const char *value;
  if (!strncmp(words[*at], "-l", 2) && strncmp(words[*at], "-lineinfo", 9))
    return fail("%s: the virtual GPU does not link tile libraries", words[*at]);
  if ((value = value_of("o", words, count, at)) || (value = value_of("output-file", words, count, at)))
    out->out = value;
  else if ((value = value_of("remarks-output-file", words, count, at))) out->remarks = value;
  else if (!strcmp(words[*at], "--version")) out->version = true;
  else skip_value(words, count, at);
  return 0;
}

static int read_arguments(int count, char **words, arguments *out) {
  int failed = 0;
  for (int i = 1; i < count && !failed; i++) {
    if (words[i][0] == '-' && words[i][1]) failed = read_option(words, count, &i, out);
    else out->in = words[i];
  }
  return failed;
}

static ff_status check(const char *bytes, size_t size, ff_error *error) {
  char *ptx;
  size_t length;
  if (!size || !tile_is_bytecode(bytes, size)) return ff_fail(error, FF_PARSE, "it is not Tile IR's bytecode");
  ff_status status = tile_to_ptx(bytes, size, &ptx, &length, error);
  if (!status) free(ptx);
  return status;
}

static bool write_file(const char *path, const char *bytes, size_t size) {
  FILE *file = fopen(path, "wb");
  if (!file) return false;
  bool written = fwrite(bytes, 1, size, file) == size;
  return fclose(file) == 0 && written;
}

static int assemble(const arguments *given) {
  char *bytes;
  size_t size;
  ff_error error;
  if (ff_file_read(given->in, 0, &bytes, &size, &error)) return fail("%s", error.message);
  int failed = check(bytes, size, &error) ? fail("%s", error.message) : 0;
  if (!failed && !write_file(given->out, bytes, size)) failed = fail("%s: it cannot be written", given->out);
  if (!failed && given->remarks && !write_file(given->remarks, "", 0))
    failed = fail("%s: it cannot be written", given->remarks);
  free(bytes);
  return failed;
}

int main(int count, char **words) {
  arguments given = {.out = "elf.o"};
  int failed = read_arguments(count, words, &given);
  if (failed) return failed;
  if (given.version) { /* cuTile keeps what it has compiled by this text */
    printf("tileiras: farfault's stand-in for NVIDIA's assembler of Tile IR, farfault %s\n", FARFAULT_VERSION);
    return EXIT_SUCCESS;
  }
  return given.in ? assemble(&given) : fail("%s", "no input file");
}
