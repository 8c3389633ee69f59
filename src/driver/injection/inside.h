/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of libfarfault-inside.so: inside.c replaces runtimes, inside_open.c notices what is loaded later. */
#ifndef FF_DRIVER_INSIDE_H
#define FF_DRIVER_INSIDE_H

extern const int farfault_inside; /* exported: how libcuda finds out that this library is loaded */

/* Looks at every object that has been loaded since the last time, and replaces the runtime inside. From any thread. */
void inside_look(void);

#endif
