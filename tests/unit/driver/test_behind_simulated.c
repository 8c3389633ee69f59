/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that wait for the host, in parallel with two simulations: they cannot get past a kernel that has not
 * finished. */
#include "behind_cases.h"

int main(void) {
  setenv("FARFAULT_MEMORY", "copy,uvm", 1);
  return run_behind_cases();
}
