/* SPDX-License-Identifier: Apache-2.0 */
/* Packages whose files pip has not installed. NVIDIA's packages all bring a folder `nvidia`; where one is there
 * already, `pip install --target` leaves that as it is, and installs of the new package nothing but its *.dist-info. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/running/run.h"

/* The first path in *.dist-info/RECORD, a list of "path,hash,bytes"; false: there is none. */
static bool first_file(const char *record, char path[512]) {
  FILE *file = fopen(record, "r");
  if (!file) return false;
  bool read = fgets(path, 512, file) != NULL;
  fclose(file);
  if (read) path[strcspn(path, ",\n")] = 0;
  return read && !strncmp(path, "nvidia/", 7);
}

static void check_record(const char *folder, const char *record) {
  char first[512];
  ff_text path = {0};
  if (!first_file(record, first)) return;
  ff_text_add(&path, "%s/%s", folder, first);
  if (access(path.chars, F_OK)) {
    const char *name = record + strlen(folder) + 1; /* NAME-VERSION.dist-info/RECORD */
    fprintf(
        stderr,
        "farfault: --cuda-libraries: %s: pip has recorded %.*s, but its files are not there. `pip install --target` adds "
        "nothing to a folder `nvidia` that exists: name all packages in one call, or give each call a folder of its own\n",
        folder, (int)strcspn(name, "-"), name);
  }
  free(path.chars);
}

void run_name_dropped_packages(const char *folder) {
  ff_text pattern = {0};
  glob_t found;
  ff_text_add(&pattern, "%s/nvidia_*.dist-info/RECORD", folder);
  if (glob(pattern.chars, 0, NULL, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; i++) check_record(folder, found.gl_pathv[i]);
    globfree(&found);
  }
  free(pattern.chars);
}
