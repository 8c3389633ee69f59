/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of libfarfault-preload.so: preload.c leads NVRTC's functions and finds our libraries, preload_open.c
 * notices what is loaded. */
#ifndef FF_DRIVER_PRELOAD_H
#define FF_DRIVER_PRELOAD_H

/* Looks at what has been loaded since the last time, and leads the functions of NVRTC among it. From any thread. */
void preload_look(void);

/* Before the file `name` is loaded (a path): which file is to be loaded in its place: `name`, or ours if it is NVIDIA's
 * libcuda or libcudart; in `path`. A libcudart that the file, or a library that it needs, is linked with is loaded
 * first, so that the loader takes ours. */
enum { PRELOAD_PATH_MAX = 4096 };
const char *preload_choose(const char *name, char path[PRELOAD_PATH_MAX]);

#endif
