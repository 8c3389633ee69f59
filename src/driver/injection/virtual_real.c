/* SPDX-License-Identifier: Apache-2.0 */
/* Our own libraries keep the host's time while the program's clocks are virtual: they are linked with --wrap of these
 * functions. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include <dlfcn.h>
#include <stddef.h>

#include "driver/injection/virtual_clock.h"

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __real_nanosleep(const struct timespec *wanted, struct timespec *left);
int __real_poll(struct pollfd *descriptors, nfds_t count, int milliseconds);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left);
int __wrap_poll(struct pollfd *descriptors, nfds_t count, int milliseconds);

static const virtual_clock *preloaded; /* NULL: the program's clocks are the host's */

__attribute__((constructor)) static void find(void) { preloaded = dlsym(RTLD_DEFAULT, VIRTUAL_CLOCK_SYMBOL); }

int __wrap_clock_gettime(clockid_t clock, struct timespec *time) {
  return preloaded ? preloaded->real_time(clock, time) : __real_clock_gettime(clock, time);
}

int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left) {
  return preloaded ? preloaded->real_sleep(wanted, left) : __real_nanosleep(wanted, left);
}

int __wrap_poll(struct pollfd *descriptors, nfds_t count, int milliseconds) {
  return preloaded ? preloaded->real_poll(descriptors, count, milliseconds)
                   : __real_poll(descriptors, count, milliseconds);
}
