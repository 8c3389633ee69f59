/* SPDX-License-Identifier: Apache-2.0 */
/* Which objects of the process have a CUDA runtime inside: those that have asked for a private table. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/forks.h"
#include "base/memory.h"
#include "driver/private_runtimes/private_runtimes.h"

static FF_VEC(const void *) objects; /* where they are loaded */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FF_FREE_IN_CHILD(lock)
static atomic_bool any; /* most processes have none: they need not look */

static const void *object_of(const void *address) {
  Dl_info info;
  return dladdr(address, &info) ? info.dli_fbase : NULL;
}

static bool is_known(const void *object) {
  size_t at = 0;
  while (at < objects.count && objects.items[at] != object) at++;
  return at < objects.count;
}

void private_runtime_note(const void *address) {
  const void *object = object_of(address);
  pthread_mutex_lock(&lock);
  if (object && !is_known(object)) FF_PUSH(&objects, object);
  pthread_mutex_unlock(&lock);
  atomic_store(&any, true);
}

bool private_is_runtime(const void *address) {
  if (!atomic_load(&any)) return false;
  const void *object = object_of(address);
  pthread_mutex_lock(&lock);
  bool known = object && is_known(object);
  pthread_mutex_unlock(&lock);
  return known;
}
