/* SPDX-License-Identifier: Apache-2.0 */
/* The files by which programs see that a driver is there. */
#ifndef FF_DRIVER_PRELOAD_FILES_H
#define FF_DRIVER_PRELOAD_FILES_H

/* The file to look at in the place of `path`: itself, but for NVIDIA's device files (/dev/nvidia0 ..., /dev/nvidiactl,
 * /dev/nvidia-uvm: /dev/null) and /proc/driver/nvidia/version (a text next to this library), where the system has none
 * of its own. Keeps errno. From any thread. */
const char *preload_file(const char *path);

#endif
