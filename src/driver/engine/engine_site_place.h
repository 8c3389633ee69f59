/* SPDX-License-Identifier: Apache-2.0 */
/* What is at an address of the program's code, in words. */
#ifndef FF_DRIVER_SITE_PLACE_H
#define FF_DRIVER_SITE_PLACE_H

#include <stdint.h>

/* The site at the address (of a call, not of what follows it), as engine_site says; NULL: the frame is to be passed.
 * The text lives as long as the process. One call at a time. */
const char *site_place(uintptr_t address, const char *kernel);

#endif
