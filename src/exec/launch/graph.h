/* SPDX-License-Identifier: Apache-2.0 */
/* Which graph kernels belong to: %current_graph_exec. One for the process, as its kernels run one at a time; two that
 * take turns because they wait for each other read that of the one that began last. */
#ifndef FF_EXEC_GRAPH_H
#define FF_EXEC_GRAPH_H

#include <stdint.h>

void exec_graph_enter(uint64_t graph); /* the launches from here on are nodes of it; 0: of none */
uint64_t exec_graph_current(void);

#endif
