/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer target: any bytes as a fat binary, as machine code, and as the file of an executable. Nothing may crash,
 * leak or read outside.
 *
 * What is let through is used: every entry is unpacked, the best PTX chosen. The file goes through a memory file, since
 * the functions for executables take a path. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fatbin/cubin.h"
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


static void count_name(void *context, const char *name, size_t length) {
  *(size_t *)context += length + (length && name[length - 1] == 'k');
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
    for (uint64_t address = 0; address < 0x4000; address += 0x1000) free(elf_source_of(path, address, 0));
  }
  close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  size_t letters = 0;
  use_image(data, size);
  if (size) cubin_functions(data, size, count_name, &letters);
  use_file(data, size);
  return 0;
}
