/* SPDX-License-Identifier: Apache-2.0 */
/* Green contexts where SMs go in pairs (compute capability 6 and 7). */
enum { GREEN_SMS = 28, GREEN_MIN = 2, GREEN_STEP = 2 };
#include "green_cases.h"

int main(void) {
  setenv("FARFAULT_MACHINE", "gtx1080ti", 1);
  setenv("FARFAULT_MEMORY", "copy", 1);
  return run_green_cases();
}
