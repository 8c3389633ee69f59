/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer target: any bytes as a PTX file of --kernels, and as a kernel's name. Nothing may crash, leak or read
 * outside; what the file defines lies in it. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "driver/engine/kernel_folders.h"
#include "driver/engine/kernel_name.h"
#include "driver/engine/kernel_text.h"

typedef struct place {
  const char *text;
  size_t length;
} place;

static void check_definition(void *context, const kernel_definition *d) {
  const place *all = context;
  if (d->name < all->text || d->name_length > all->length ||
      (size_t)(d->name - all->text) > all->length - d->name_length)
    abort();
  if (d->kernel && (d->begin > d->end || d->end > all->length)) abort();
}

static void use_file(const char *path) {
  kernel_text *text;
  ff_error error;
  size_t length;
  if (kernel_text_open(path, &text, &error)) return;
  if (strlen(kernel_text_shared(text, &length)) != length) abort();
  for (size_t i = 0; i < 64; i++) {
    const char *name = kernel_text_next(text, i);
    char *statement;
    if (!name) break;
    if (kernel_text_name(text, name) != name) continue; /* another one has the same common form */
    if (kernel_text_read(text, name, &statement, &length, &error)) abort();
    if (statement[length]) abort();
    free(statement);
  }
  kernel_text_close(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *text = malloc(size + 1), path[64], file[32];
  memcpy(text, data, size);
  text[size] = '\0';
  place all = {text, size};
  kernel_hashes hashes = {0};
  kernel_name_hash(text, strlen(text));
  if (kernel_name_file(text, file, sizeof file) && strlen(file) >= sizeof file) abort();
  kernel_text_scan(text, size, check_definition, &all);
  kernel_hashes_of(text, size, &hashes);
  free(hashes.items);
  int fd = memfd_create("fuzz", 0);
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  if (fd >= 0 && write(fd, data, size) == (ssize_t)size) use_file(path);
  if (fd >= 0) close(fd);
  free(text);
  return 0;
}
