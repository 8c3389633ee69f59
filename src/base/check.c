/* SPDX-License-Identifier: Apache-2.0 */
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

int ff_check_level = 0;

__attribute__((constructor)) void ff_check_level_read(void) {
  const char *text = getenv("FARFAULT_CHECK");
  if (text && text[0] >= '0' && text[0] <= '2' && !text[1]) ff_check_level = text[0] - '0';
}

_Noreturn void ff_check_failed(const char *file, int line, const char *expression) {
  fprintf(stderr, "farfault: internal check failed at %s:%d: %s\n", file, line, expression);
  abort();
}
