/* SPDX-License-Identifier: Apache-2.0 */
/* Which of NVIDIA's files a program finds under `farfault run`. Programs test for them before they load libcuda (JAX
 * does); what they would do with them is the driver library's business, and ours needs none.
 *
 * NCCL reads in a GPU's PCI folder what kind of device is there, and takes what has no folder for a switch. GPU number
 * n is 0000:(n+1):00.0 (properties_bus_write), below a root of its own. The real system knows a PCI folder by these
 * paths:
 *
 *     /sys/bus/pci/devices/0000:01:00.0    /sys/class/pci_bus/0000:01/../../0000:01:00.0    /sys/devices/pci0000:00/0000:01:00.0
 *
 * of which the first two are links to the last, which realpath gives. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "driver/injection/preload_files.h"

#define VERSION_FILE "driver-version" /* next to this library */
#define PCI_FOLDER "pci-gpu"          /* the same */
#define REAL_FOLDER "/sys/devices/pci0000:00/"
#define NAME_LENGTH 12 /* of 0000:01:00.0 */
#define BUS_LENGTH 7   /* of 0000:01 */

/* The system's own answer: not by a function that preload_paths.c stands before. */
static bool exists(const char *path) { return syscall(SYS_faccessat, AT_FDCWD, path, F_OK) == 0; }

static unsigned long device_count(void) {
  const char *given = getenv("FARFAULT_DEVICES");
  return given && *given ? strtoul(given, NULL, 10) : 1;
}

static bool is_device(const char *name) {
  if (!strcmp(name, "ctl") || !strcmp(name, "-uvm")) return true;
  unsigned long number;
  char *end;
  if (*name < '0' || *name > '9' || (*name == '0' && name[1])) return false;
  number = strtoul(name, &end, 10);
  return !*end && number < device_count();
}

/* The file, or what is at `rest` in the folder; NULL: it is not there. */
static const char *next_to_library(const char *name, const char *rest) {
  static _Thread_local char path[PATH_MAX];
  Dl_info own;
  if (!dladdr((void *)preload_file, &own)) return NULL;
  const char *slash = strrchr(own.dli_fname, '/');
  int folder = slash ? (int)(slash - own.dli_fname) + 1 : 0;
  int length = snprintf(path, sizeof path, "%.*s%s%s", folder, own.dli_fname, name, rest);
  return length < (int)sizeof path && exists(path) ? path : NULL;
}

/* Where the name of a PCI device begins in `path`, if that is of such a form; NULL: it is not. Below a bus there is
 * only a device of that bus. */
static const char *pci_name(const char *path) {
  static const char devices[] = "/sys/bus/pci/devices/", buses[] = "/sys/class/pci_bus/", up[] = "/../../";
  if (!strncmp(path, devices, sizeof devices - 1)) return path + sizeof devices - 1;
  if (!strncmp(path, REAL_FOLDER, sizeof REAL_FOLDER - 1)) return path + sizeof REAL_FOLDER - 1;
  if (strncmp(path, buses, sizeof buses - 1) != 0) return NULL;
  const char *bus = path + sizeof buses - 1, *name = strchr(bus, '/');
  if (!name || name - bus != BUS_LENGTH || strncmp(name, up, sizeof up - 1) != 0) return NULL;
  name += sizeof up - 1;
  return strncmp(bus, name, BUS_LENGTH) ? NULL : name;
}

/* The bus of `0000:BB:00.0`, BB being two hexadecimal digits, with which `name` begins. 0: it does not. */
static unsigned bus_of(const char *name) {
  if (strncmp(name, "0000:", 5) != 0 || !isxdigit((unsigned char)name[5]) || !isxdigit((unsigned char)name[6]))
    return 0;
  char digits[] = {name[5], name[6], '\0'};
  return strncmp(name + 7, ":00.0", 5) ? 0 : (unsigned)strtoul(digits, NULL, 16);
}

/* Whether that may follow a PCI folder's name: with more, a path could lead out of pci-gpu (`/..`). */
static bool is_of_folder(const char *rest) {
  static const char *const known[] = {"", "/", "/class", "/vendor", "/numa_node"};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (!strcmp(rest, known[i])) return true;
  return false;
}

/* Of a path into a GPU's PCI folder: what follows the folder, and the GPU's bus. NULL: it is none, or the system has
 * the device. */
static const char *in_pci_folder(const char *path, unsigned *bus) {
  const char *name = pci_name(path);
  char system[] = "/sys/bus/pci/devices/0000:00:00.0";
  *bus = name ? bus_of(name) : 0;
  if (!*bus || *bus > device_count() || !is_of_folder(name + NAME_LENGTH)) return NULL;
  memcpy(strrchr(system, '/') + 1, name, NAME_LENGTH);
  return exists(system) ? NULL : name + NAME_LENGTH;
}

static const char *stand_in(const char *path) {
  unsigned bus;
  if (!strncmp(path, "/dev/nvidia", 11)) return is_device(path + 11) ? "/dev/null" : NULL;
  if (!strcmp(path, "/proc/driver/nvidia/version")) return next_to_library(VERSION_FILE, "");
  const char *rest = in_pci_folder(path, &bus);
  return rest ? next_to_library(PCI_FOLDER, rest) : NULL;
}

bool preload_real_folder(const char *path, char real[PRELOAD_FOLDER_LENGTH]) {
  unsigned bus;
  if (!path || strncmp(path, "/sys/", 5) != 0) return false;
  int before = errno;
  const char *rest = in_pci_folder(path, &bus);
  errno = before;
  if (!rest || (*rest && strcmp(rest, "/") != 0)) return false;
  snprintf(real, PRELOAD_FOLDER_LENGTH, REAL_FOLDER "0000:%02x:00.0", bus);
  return true;
}

static bool may_be_of_a_gpu(const char *path) {
  return !strncmp(path, "/dev/nv", 7) || !strncmp(path, "/proc/d", 7) || !strncmp(path, "/sys/", 5);
}

const char *preload_file(const char *path) {
  if (!path || path[0] != '/' || !may_be_of_a_gpu(path)) return path;
  int before = errno;
  const char *other = stand_in(path);
  if (other && exists(path)) other = NULL;
  errno = before;
  return other ? other : path;
}
