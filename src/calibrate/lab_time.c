/* SPDX-License-Identifier: Apache-2.0 */
/* Where time comes from. On the virtual GPU both clocks are virtual: the host's is told by its library, next to CUDA;
 * on a real one the host's is CLOCK_MONOTONIC. The device's comes from events on both. */
#include <time.h>

#include "calibrate/lab.h"

double lab_host_now(const lab *l) {
  uint64_t picoseconds;
  if (l->cuda->host_time && !l->cuda->host_time(&picoseconds)) return (double)picoseconds / 1e6;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

ff_status lab_elapsed(lab *l, cuda_event begin, cuda_event end, double *us) {
  float milliseconds;
  LAB_CALL(l, EventSynchronize, end);
  LAB_CALL(l, EventElapsedTime, &milliseconds, begin, end);
  *us = (double)milliseconds * 1e3;
  return FF_OK;
}
