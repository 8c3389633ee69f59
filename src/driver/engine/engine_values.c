/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on one value in memory (engine_values.h). A write is a set of one element, which others see whole;
 * a reduction is one in the access stream, too. Flushes and barriers have nothing to do: memory is always up to date.
 *
 * A stream waits without the engine's lock, so that other threads can launch what writes the value; a graph's node
 * gives the lock away while it waits. */
#include "driver/engine/engine_values.h"

#include <stdatomic.h>
#include <time.h>

#include "driver/engine/engine_graph_private.h"

/* CUstreamWaitValue_flags */
enum { WAIT_GREATER, WAIT_EQUAL, WAIT_AND, WAIT_NOR, WAIT_FLUSH = 1 << 30 };

static bool waits(const engine_value *v) { return v->type == ENGINE_VALUE_WAIT_32 || v->type == ENGINE_VALUE_WAIT_64; }
static bool writes(const engine_value *v) {
  return v->type == ENGINE_VALUE_WRITE_32 || v->type == ENGINE_VALUE_WRITE_64;
}
static bool reduces(const engine_value *v) { return v->type == ENGINE_VALUE_REDUCE; }
static bool reaches(const engine_value *v) { return waits(v) || writes(v) || reduces(v); }
static uint64_t address_of(const engine_value *v) { return reduces(v) ? v->reduce.address : v->of.address; }
static unsigned bytes_of(const engine_value *v) {
  if (reduces(v)) return v->reduce.data == ENGINE_REDUCE_U32 ? 4 : 8;
  return v->type == ENGINE_VALUE_WAIT_32 || v->type == ENGINE_VALUE_WRITE_32 ? 4 : 8;
}

/* ---- are they possible? ---- */

static bool is_reduction(const engine_value *v) {
  int operation = v->reduce.operation, data = v->reduce.data;
  return !v->reduce.flags && (data == ENGINE_REDUCE_U32 || data == ENGINE_REDUCE_U64) &&
         (operation == ENGINE_REDUCE_ADD || operation == ENGINE_REDUCE_AND || operation == ENGINE_REDUCE_OR);
}

static cudaError_t check_form(const engine_value *v) {
  if (reduces(v)) return is_reduction(v) ? cudaSuccess : cudaErrorInvalidValue;
  if (waits(v)) return (v->of.flags & ~(unsigned)WAIT_FLUSH) <= WAIT_NOR ? cudaSuccess : cudaErrorInvalidValue;
  if (writes(v)) return v->of.flags <= 1 ? cudaSuccess : cudaErrorInvalidValue;
  return v->type == ENGINE_VALUE_FLUSH || v->type == ENGINE_VALUE_BARRIER ? cudaSuccess : cudaErrorInvalidValue;
}

static cudaError_t check_place(const engine_value *v, engine_pointer found) {
  if (!reaches(v)) return cudaSuccess;
  uint64_t address = address_of(v);
  bool inside = found.memory != ENGINE_PAGEABLE && bytes_of(v) <= found.bytes - (address - found.address);
  return inside && address % bytes_of(v) == 0 && found.readable && found.writable ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t engine_values_check_locked(const engine_value *list, size_t count) {
  if (count > ENGINE_VALUES_MAX || (count && !list)) return cudaErrorInvalidValue;
  cudaError_t error = cudaSuccess;
  for (size_t i = 0; !error && i < count; i++) {
    error = check_form(&list[i]);
    bool later = reaches(&list[i]) && engine_graph_address(address_of(&list[i]));
    if (!error && !later) error = check_place(&list[i], engine_pointer_find_locked(address_of(&list[i])));
  }
  return error;
}

static bool same_kind(const engine_value *a, const engine_value *b) {
  return a->reduce.operation == b->reduce.operation && a->reduce.data == b->reduce.data;
}
static bool same_reduction(const engine_value *a, const engine_value *b) {
  return same_kind(a, b) && a->reduce.address == b->reduce.address && a->reduce.value == b->reduce.value;
}
static bool same_access(const engine_value *a, const engine_value *b) {
  return !reaches(a) || (a->of.address == b->of.address && a->of.value == b->of.value && a->of.flags == b->of.flags);
}

bool engine_values_same(const engine_value *a, const engine_value *b, size_t count) {
  bool same = true;
  for (size_t i = 0; same && i < count; i++)
    same = a[i].type == b[i].type && (reduces(&a[i]) ? same_reduction(&a[i], &b[i]) : same_access(&a[i], &b[i]));
  return same;
}

bool engine_value_replaces(const engine_value *old, const engine_value *other) {
  unsigned kept = waits(old) ? (unsigned)WAIT_FLUSH : ~0u;
  if (old->type != other->type) return false;
  if (reduces(old)) return same_kind(old, other);
  return !reaches(old) || (old->of.flags & kept) == (other->of.flags & kept);
}

/* ---- waiting ---- */

static bool is_met(uint64_t found, uint64_t wanted, unsigned bytes, unsigned how) {
  if (bytes == 4) {
    found = (uint32_t)found;
    wanted = (uint32_t)wanted;
  }
  switch (how) {
  case WAIT_GREATER: return bytes == 4 ? (int32_t)(uint32_t)(found - wanted) >= 0 : (int64_t)(found - wanted) >= 0;
  case WAIT_EQUAL: return found == wanted;
  case WAIT_AND: return (found & wanted) != 0;
  default: return (bytes == 4 ? (uint32_t) ~(found | wanted) : ~(found | wanted)) != 0;
  }
}

static uint64_t read_value(uint64_t address, unsigned bytes) {
  return bytes == 4 ? atomic_load((_Atomic uint32_t *)(uintptr_t)address)
                    : atomic_load((_Atomic uint64_t *)(uintptr_t)address);
}

static bool is_there(const engine_value *v) {
  return is_met(read_value(v->of.address, bytes_of(v)), v->of.value, bytes_of(v), v->of.flags & ~(unsigned)WAIT_FLUSH);
}

static void rest(void) { nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); }

static cudaError_t give_up(void) {
  engine_say_once(
      "cuStreamWaitValue",
      "cuStreamWaitValue waits for a value that nothing has written; what the same thread writes later cannot come, because "
      "a stream holds up the thread that works with it on the virtual GPU");
  return cudaErrorNotSupported;
}

/* ---- in a stream ---- */

typedef struct target { /* the stream that was meant; others may get its handle while a value is waited for */
  cudaStream_t handle;
  uint32_t number;
} target;

/* With the lock. NULL: it was destroyed, and why nothing can be done in it. */
static engine_stream *find_again(const target *at, cudaError_t *error) {
  engine_stream *stream = engine_stream_find(at->handle);
  const bool same = stream && stream->number == at->number;
  *error = same ? cudaSuccess : stream ? cudaErrorContextIsDestroyed : engine_stream_error(at->handle);
  return same ? stream : NULL;
}

static cudaError_t wait_for(const engine_value *v) {
  cudaError_t error = check_place(v, engine_pointer_find(v->of.address));
  for (int i = 0; !error && i < ENGINE_VALUE_PATIENCE_MS; i++) {
    if (is_there(v)) return cudaSuccess;
    rest();
  }
  return error ? error : give_up();
}

static engine_set set_of(const engine_value *v) {
  return (engine_set){.to = v->of.address,
                      .width = 1,
                      .height = 1,
                      .depth = 1,
                      .value = v->of.value,
                      .element = bytes_of(v),
                      .async = true,
                      .word = true};
}

static cudaError_t write_now(const engine_value *v, const target *to) {
  engine_set set = set_of(v);
  set.stream = to->handle;
  cudaError_t error = check_place(v, engine_pointer_find(v->of.address));
  if (!error) error = engine_enter_during_kernel();
  if (error) return error;
  if (find_again(to, &error)) error = engine_set_run_locked(&set);
  engine_leave();
  return error;
}

/* Done before the set that stands for it in the access stream: the host may do an atomic on the same word. */
static void reduce(const engine_value *v) {
  uint64_t value = v->reduce.value;
  _Atomic uint32_t *word = (_Atomic uint32_t *)(uintptr_t)v->reduce.address;
  _Atomic uint64_t *both = (_Atomic uint64_t *)(uintptr_t)v->reduce.address;
  bool narrow = bytes_of(v) == 4;
  switch (v->reduce.operation) {
  case ENGINE_REDUCE_ADD:
    if (narrow) atomic_fetch_add(word, (uint32_t)value);
    else atomic_fetch_add(both, value);
    return;
  case ENGINE_REDUCE_AND:
    if (narrow) atomic_fetch_and(word, (uint32_t)value);
    else atomic_fetch_and(both, value);
    return;
  default:
    if (narrow) atomic_fetch_or(word, (uint32_t)value);
    else atomic_fetch_or(both, value);
  }
}

static cudaError_t reduce_on(const engine_value *v, engine_stream *stream) {
  cudaError_t error = check_place(v, engine_pointer_find_locked(v->reduce.address));
  if (error) return error;
  engine_host_access_collect(false);
  reduce(v);
  engine_host_access_settle(v->reduce.address, bytes_of(v)); /* it was the device's */
  engine_set set = {.to = v->reduce.address,
                    .width = bytes_of(v) / 4,
                    .height = 1,
                    .depth = 1,
                    .element = 4,
                    .async = true,
                    .done = true};
  return engine_set_on(set, stream, true);
}

/* Not queued behind kernels that wait: it waits for them itself. */
static cudaError_t reduce_now(const engine_value *v, const target *to) {
  cudaError_t error = engine_enter_during_kernel();
  if (error) return error;
  engine_stream *stream = find_again(to, &error);
  if (stream) error = engine_deferred_settle(stream);
  if (!error) error = reduce_on(v, stream);
  engine_leave();
  return error;
}

static cudaError_t capture(cudaStream_t handle, const engine_value *list, size_t count, target *to, bool *taken) {
  *taken = false;
  cudaError_t error = engine_enter_during_kernel();
  if (error) return error;
  engine_stream *stream = engine_stream_find(handle);
  engine_node_params params = {.kind = ENGINE_NODE_VALUES, .values = {list, count}};
  if (stream) *to = (target){handle, stream->number};
  error = stream ? engine_capture_take(stream, &params, true, taken) : engine_stream_error(handle);
  engine_leave();
  return error;
}

cudaError_t engine_values_run(cudaStream_t stream, const engine_value *list, size_t count) {
  if (count > ENGINE_VALUES_MAX || !list) return cudaErrorInvalidValue;
  bool taken;
  target to;
  cudaError_t error = capture(stream, list, count, &to, &taken);
  for (size_t i = 0; !error && !taken && i < count; i++) {
    error = check_form(&list[i]);
    if (!error && waits(&list[i])) error = wait_for(&list[i]);
    if (!error && writes(&list[i])) error = write_now(&list[i], &to);
    if (!error && reduces(&list[i])) error = reduce_now(&list[i], &to);
  }
  return error;
}

/* ---- as a node ---- */

cudaError_t engine_value_write_on(const engine_value *v, engine_stream *stream) {
  if (reduces(v)) return reduce_on(v, stream);
  return writes(v) ? engine_set_on(set_of(v), stream, true) : cudaSuccess;
}

/* Memory may go while the lock is free, and a graph's own comes and goes: it is looked for each time. */
cudaError_t engine_value_look_locked(const engine_value *v, bool *there) {
  *there = !waits(v);
  cudaError_t error = *there ? cudaSuccess : check_place(v, engine_pointer_find_locked(v->of.address));
  if (!*there && !error) *there = is_there(v);
  return error;
}

cudaError_t engine_value_wait_locked(const engine_value *v) {
  for (int i = 0; i < ENGINE_VALUE_PATIENCE_MS; i++) {
    bool there;
    cudaError_t error = engine_value_look_locked(v, &there);
    if (error || there) return error;
    pthread_mutex_unlock(&ff_engine.lock);
    rest();
    pthread_mutex_lock(&ff_engine.lock);
    if (ff_engine.phase != ENGINE_READY || ff_engine.stop) return cudaErrorCudartUnloading;
  }
  return give_up();
}
