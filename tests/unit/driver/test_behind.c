/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that wait for the host, without a simulation. */
#include "behind_cases.h"

int main(void) {
  unsetenv("FARFAULT_MEMORY");
  return run_behind_cases();
}
