/* SPDX-License-Identifier: Apache-2.0 */
/* A fat binary, or an executable with some inside, from anywhere: looked into without a crash, whatever its fields say. */
#define _GNU_SOURCE /* memfd_create */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "fatbin/elf.h"

static void unpack_all(const fatbin *image) {
  for (uint32_t i = 0; i < image->entry_count; i++) {
    char *bytes = NULL;
    size_t size;
    ff_error error;
    if (image->entries[i].unpacked_bytes > 1 << 22) continue; /* allowed, but slow */
    if (fatbin_unpack(&image->entries[i], &bytes, &size, &error)) continue;
    FF_ASSERT(size == image->entries[i].unpacked_bytes && bytes[size] == 0);
    free(bytes);
  }
}

static void look_into_file(const uint8_t *data, size_t size) {
  int fd = memfd_create("fuzz", 0);
  if (fd < 0 || write(fd, data, size) != (ssize_t)size) exit(1);
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  fatbin_report report;
  if (!fatbin_check_executable(path, &report, NULL)) {
    FF_ASSERT(report.images || (!report.ptx && !report.machine_code));
    fatbin_report_free(&report);
  }
  fatbin_ptx_texts texts;
  if (!fatbin_extract_ptx(path, &texts, NULL)) {
    FF_ASSERT(texts.count > 0);
    fatbin_ptx_texts_free(&texts);
  }
  close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fatbin image;
  ff_error error;
  if (fatbin_open(data, size, &image, &error) == FF_OK) {
    FF_ASSERT(image.bytes <= size);
    fatbin_best_ptx(&image, 90, NULL);
    unpack_all(&image);
    fatbin_close(&image);
  } else {
    FF_ASSERT(error.message[0]);
  }
  look_into_file(data, size);
  return 0;
}
