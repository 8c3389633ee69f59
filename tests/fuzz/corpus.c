/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target once over every file of a folder, whole and cut at a few places: the fuzz targets as plain tests,
 * in builds without libFuzzer. Ends with an error if the folder has no files: then nothing was tested. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A copy of exactly `size` bytes, so that a sanitizer sees any read past them. */
static void run_copy(const char *data, size_t size) {
  uint8_t *copy = malloc(size ? size : 1);
  if (!copy) exit(1);
  memcpy(copy, data, size);
  LLVMFuzzerTestOneInput(copy, size);
  free(copy);
}

static void run_file(const char *path) {
  char *data;
  size_t size;
  ff_error error;
  if (ff_file_read(path, 1 << 24, &data, &size, &error)) {
    fprintf(stderr, "%s\n", error.message);
    exit(1);
  }
  for (size_t part = 0; part <= 8; part++) run_copy(data, size * part / 8);
  free(data);
}

int main(int argc, char **argv) {
  unsigned files = 0;
  DIR *folder = argc > 1 ? opendir(argv[1]) : NULL;
  for (struct dirent *entry; folder && (entry = readdir(folder));) {
    if (entry->d_name[0] == '.') continue;
    ff_text path = {0};
    ff_text_add(&path, "%s/%s", argv[1], entry->d_name);
    run_file(path.chars);
    free(path.chars);
    files++;
  }
  if (folder) closedir(folder);
  printf("%u files\n", files);
  return files == 0;
}
