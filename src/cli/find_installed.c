/* SPDX-License-Identifier: Apache-2.0 */
/* What is installed next to this executable, in the build folder as in an installation. */
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"

char *cli_find_installed(const char *const *paths) {
  char *folder = cli_own_folder(), *found = NULL;
  for (; *paths && !found; paths++) {
    ff_text path = {0};
    ff_text_add(&path, "%s/%s", folder, *paths);
    if (access(path.chars, R_OK) == 0) found = realpath(path.chars, NULL);
    free(path.chars);
  }
  free(folder);
  return found;
}

char *cli_workload_folder(void) {
  return cli_find_installed((const char *const[]){"../workloads", "../lib/farfault/workloads", NULL});
}
