/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs and captures without a simulation. */
#include "graph_cases.h"

int main(void) {
  unsetenv("FARFAULT_MEMORY");
  return run_graph_cases();
}
