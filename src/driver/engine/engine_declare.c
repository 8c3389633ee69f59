/* SPDX-License-Identifier: Apache-2.0 */
/* What the next launch of a thread may touch (include/farfault/virtual.h): kept for that thread until it launches.
 *
 * A list belongs to the thread that declared it, and from engine_declared_take on to the launch. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "driver/engine/engine_internal.h"

#define MAX_USES (1u << 20)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* of the thread's engine_declared, or NULL */

void engine_declared_free(engine_declared *declared) {
  if (!declared) return;
  for (uint32_t i = 0; i < declared->count; i++) free((char *)(uintptr_t)declared->uses[i].segment);
  free(declared->uses);
  free(declared);
}

static void free_at_exit(void *declared) { engine_declared_free(declared); }

static void make_key(void) { pthread_key_create(&key, free_at_exit); }

engine_declared *engine_declared_take(void) {
  pthread_once(&once, make_key);
  engine_declared *declared = pthread_getspecific(key);
  if (declared) pthread_setspecific(key, NULL);
  return declared;
}

cudaError_t engine_declare_uses(const ff_virtual_use *uses, uint32_t count) {
  engine_declared_free(engine_declared_take());
  if ((count && !uses) || count > MAX_USES) return cudaErrorInvalidValue;
  engine_declared *declared = ff_alloc(sizeof *declared);
  declared->uses = ff_alloc((count + (size_t)1) * sizeof *declared->uses);
  declared->count = count;
  for (uint32_t i = 0; i < count; i++) {
    declared->uses[i] = uses[i];
    declared->uses[i].segment = uses[i].segment ? ff_strdup(uses[i].segment) : NULL;
  }
  if (!pthread_setspecific(key, declared)) return cudaSuccess;
  engine_declared_free(declared);
  return cudaErrorMemoryAllocation;
}
