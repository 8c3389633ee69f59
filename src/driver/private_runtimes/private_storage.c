/* SPDX-License-Identifier: Apache-2.0 */
/* Context-local storage. Every call of a private runtime begins with a look into it, so it is an array that is read
 * under a shared lock: there are as many values as runtimes times contexts in use, a dozen. */
#include <pthread.h>

#include "base/forks.h"
#include "base/memory.h"
#include "driver/private_runtimes/private_runtimes.h"

typedef struct stored {
  CUcontext context;
  void *key, *value;
  private_storage_gone *gone; /* or NULL */
} stored;

static FF_VEC(stored) values;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
FF_FREE_IN_CHILD_RW(lock)

static CUresult resolve(CUcontext *context) {
  if (!*context) *context = libcuda_current();
  return *context && libcuda_is_live(*context) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

/* Its place; values.count: it is not there. Under the lock. */
static size_t place_of(CUcontext context, const void *key) {
  size_t at = 0;
  while (at < values.count && (values.items[at].context != context || values.items[at].key != key)) at++;
  return at;
}

CUresult private_storage_put(CUcontext context, void *key, void *value, private_storage_gone *gone) {
  LIBCUDA_TRY(resolve(&context));
  stored entry = {context, key, value, gone};
  pthread_rwlock_wrlock(&lock);
  size_t at = place_of(context, key);
  if (at < values.count) values.items[at] = entry;
  else FF_PUSH(&values, entry);
  pthread_rwlock_unlock(&lock);
  return CUDA_SUCCESS;
}

CUresult private_storage_remove(CUcontext context, void *key) {
  LIBCUDA_TRY(resolve(&context));
  pthread_rwlock_wrlock(&lock);
  size_t at = place_of(context, key);
  if (at < values.count) values.items[at] = values.items[--values.count];
  pthread_rwlock_unlock(&lock);
  return CUDA_SUCCESS; /* also if it is not there: a runtime removes what a reset has removed already */
}

CUresult private_storage_get(void **value, CUcontext context, void *key) {
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(resolve(&context));
  pthread_rwlock_rdlock(&lock);
  size_t at = place_of(context, key);
  bool found = at < values.count;
  if (found) *value = values.items[at].value;
  pthread_rwlock_unlock(&lock);
  return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* One value of the context is taken out; false: it has none. */
static bool take_one(CUcontext context, stored *taken) {
  pthread_rwlock_wrlock(&lock);
  size_t at = 0;
  while (at < values.count && values.items[at].context != context) at++;
  bool found = at < values.count;
  if (found) {
    *taken = values.items[at];
    values.items[at] = values.items[--values.count];
  }
  pthread_rwlock_unlock(&lock);
  return found;
}

/* `gone` may call us again: no lock is held around it. */
void private_storage_drop(CUcontext context) {
  stored taken;
  while (take_one(context, &taken))
    if (taken.gone) taken.gone(context, taken.key, taken.value);
}
