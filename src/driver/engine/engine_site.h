/* SPDX-License-Identifier: Apache-2.0 */
/* Where in the program a call of CUDA's was made: "saxpy.cu:41" where the program has line information (-g), else
 * "main+0x1f3" where it has a symbol, else "saxpy+0x12f3", the file's name and the place in it. The same text in every
 * run: none has an address of the process. */
#ifndef FF_DRIVER_SITE_H
#define FF_DRIVER_SITE_H

enum { ENGINE_SITE_BYTES = 40 }; /* of a site, with its end */

/* The innermost frame of the calling thread's stack that is neither ours nor of a CUDA runtime or its headers, nor the
 * host's stub of `kernel` (a function's name in the PTX; NULL: the call is no launch). "" if there is none. The text
 * lives as long as the process, and is the same one for the same site. Thread-safe. */
const char *engine_site(const char *kernel);

#endif
