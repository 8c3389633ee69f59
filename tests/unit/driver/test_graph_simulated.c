/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs and captures in parallel with two simulations. */
#include "graph_cases.h"

int main(void) {
  setenv("FARFAULT_MEMORY", "copy,replay", 1);
  return run_graph_cases();
}
