/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer target: any bytes as a fat binary, and as the file of an executable. Nothing may crash, leak or read
 * outside.
 *
 * What is let through is used: every entry is unpacked, the best PTX chosen. The file goes through a memory file, since
 * the functions for executables take a path. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fatbin/elf.h"
#include "fatbin/fatbin.h"

#define MOST_UNPACKED (16u << 20) /* bytes: keeps one input fast */

static void use_image(const uint8_t *data, size_t size) {
  fatbin image;
  fatbin_note note;
  if (fatbin_open(data, size, &image, NULL) != FF_OK) return;
  for (uint32_t i = 0; i < image.entry_count && i < 64; i++) {
    char *bytes;
    size_t length;
    if (image.entries[i].unpacked_bytes > MOST_UNPACKED) continue;
    if (fatbin_unpack(&image.entries[i], &bytes, &length, NULL) != FF_OK) continue;
    if (bytes[length] || length != image.entries[i].unpacked_bytes) abort();
    free(bytes);
  }
  fatbin_best_ptx(&image, 90, &note);
  fatbin_close(&image);
}


static void use_file(const uint8_t *data, size_t size) {
  int fd = memfd_create("fuzz", 0);
  if (fd < 0) return;
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  if (write(fd, data, size) == (ssize_t)size) {
    fatbin_report report;
    if (fatbin_check_executable(path, &report, NULL) != FF_OK) abort();
    fatbin_report_free(&report);
    if (fatbin_check_links(path, &report, NULL) != FF_OK) abort();
    fatbin_report_free(&report);
  }
  close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  use_image(data, size);
  use_file(data, size);
  return 0;
}
