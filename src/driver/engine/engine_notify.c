/* SPDX-License-Identifier: Apache-2.0 */
/* What is registered for news of devices (engine_notify.h): a list, as a program has one or two. */
#include "base/forks.h"
#include "driver/engine/engine_notify.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"

struct engine_notify {
  int device;
  engine_notify *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FF_FREE_IN_CHILD(lock)
static engine_notify *first;

cudaError_t engine_notify_add(int device, engine_notify_call *call, engine_notify **registered) {
  if (!call || !registered) return cudaErrorInvalidValue;
  engine_notify *made = ff_alloc(sizeof *made);
  pthread_mutex_lock(&lock);
  *made = (engine_notify){device, first};
  *registered = first = made;
  pthread_mutex_unlock(&lock);
  return cudaSuccess;
}

cudaError_t engine_notify_remove(int device, engine_notify *registered) {
  pthread_mutex_lock(&lock);
  engine_notify **at = &first;
  while (*at && (*at != registered || (*at)->device != device)) at = &(*at)->next;
  engine_notify *found = *at;
  if (found) *at = found->next;
  pthread_mutex_unlock(&lock);
  free(found);
  return found ? cudaSuccess : cudaErrorInvalidValue;
}
