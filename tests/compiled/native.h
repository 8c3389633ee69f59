/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels compiled in this process, by the sources of farfault-compile: no process to start, and the checks of this
 * build see it. */
#ifndef FF_TESTS_COMPILED_NATIVE_H
#define FF_TESTS_COMPILED_NATIVE_H

#include <stdbool.h>

void native_inside(bool compile); /* all launches from now on */
const char *native_problem(void); /* why a kernel could not be compiled; NULL: all could */

#endif
