/* SPDX-License-Identifier: Apache-2.0 */
/* Green contexts where SMs go in eights (compute capability 9), and 132 is no multiple of that. */
enum { GREEN_SMS = 132, GREEN_MIN = 8, GREEN_STEP = 8 };
#include "green_cases.h"

int main(void) {
  setenv("FARFAULT_MACHINE", "h200", 1);
  setenv("FARFAULT_MEMORY", "copy", 1);
  return run_green_cases();
}
