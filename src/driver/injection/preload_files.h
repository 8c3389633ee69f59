/* SPDX-License-Identifier: Apache-2.0 */
/* The files by which programs see that a driver is there. */
#ifndef FF_DRIVER_PRELOAD_FILES_H
#define FF_DRIVER_PRELOAD_FILES_H

#include <stdbool.h>

/* The file to look at in the place of `path`: itself, but where the system has none of its own, for NVIDIA's device
 * files (/dev/nvidia0 ..., /dev/nvidiactl, /dev/nvidia-uvm: /dev/null), for /proc/driver/nvidia/version (a text next to
 * this library) and for what is in a GPU's PCI folder (/sys/bus/pci/devices/0000:01:00.0/class: a folder next to this
 * library). Keeps errno. From any thread, whose next call ends the text's life. */
const char *preload_file(const char *path);

enum { PRELOAD_FOLDER_LENGTH = 40 };
/* What realpath says of the PCI folder of a GPU that the system does not have; false: `path` is no such folder. Keeps
 * errno. */
bool preload_real_folder(const char *path, char real[PRELOAD_FOLDER_LENGTH]);

#endif
