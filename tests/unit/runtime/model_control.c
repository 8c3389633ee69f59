/* SPDX-License-Identifier: Apache-2.0 */
/* The model driver's controls (model_driver.h): what a test sets, and what it asks afterwards. */
#include <stdlib.h>

#include "model_state.h"

#define CONTROL __attribute__((visibility("default")))
#define X(name, result, parameters) CONTROL result model_##name parameters;
MODEL_CONTROLS(X)
#undef X

CONTROL void model_kernel(const char *name, model_kernel_function *function, bool follows) {
  pthread_mutex_lock(&model.lock);
  uint32_t index = 0;
  while (index < model.kernel_count && strcmp(model.kernels[index].name, name)) index++;
  if (index < sizeof model.kernels / sizeof *model.kernels) {
    known_kernel *one = &model.kernels[index];
    snprintf(one->name, sizeof one->name, "%s", name);
    one->function = function;
    one->follows = follows;
    if (index == model.kernel_count) model.kernel_count++;
  }
  pthread_mutex_unlock(&model.lock);
}

static void free_handles(void) {
  while (model.events) {
    struct cuda_event_ *one = model.events;
    model.events = one->next;
    completion_drop(one->recorded);
    free(one);
  }
  while (model.modules) {
    struct cuda_module_ *one = model.modules;
    model.modules = one->next;
    free(one);
  }
}

CONTROL void model_reset(const model_options *options) {
  pthread_mutex_lock(&model.lock);
  queue_reset();
  free_handles();
  memory_reset();
  model.options = *options;
  if (!model.options.devices) model.options.devices = 1;
  if (model.options.devices > MODEL_DEVICES) model.options.devices = MODEL_DEVICES;
  if (!model.options.memory) model.options.memory = 1 << 30;
  if (!model.options.granularity) model.options.granularity = 4096;
  if (!model.options.idle_ms) model.options.idle_ms = 200;
  for (uint32_t d = 0; d < MODEL_DEVICES; d++) {
    model.devices[d].lost = 0;
    model.devices[d].retained = 0;
    model.devices[d].context.device = d;
  }
  model.random = options->seed;
  model.sequence = model.time = model.last_handle = 0;
  memset(model.calls, 0, sizeof model.calls);
  model.failure_count = model.violation_count = 0;
  model.failed = 0;
  model.violations[0] = '\0';
  pthread_mutex_unlock(&model.lock);
}

CONTROL void model_inject(const model_failure *failure) {
  pthread_mutex_lock(&model.lock);
  if (!failure) model.failure_count = 0;
  else if (model.failure_count < sizeof model.failures / sizeof *model.failures)
    model.failures[model.failure_count++] = *failure;
  pthread_mutex_unlock(&model.lock);
}

CONTROL uint64_t model_failures(void) {
  pthread_mutex_lock(&model.lock);
  uint64_t failed = model.failed;
  pthread_mutex_unlock(&model.lock);
  return failed;
}

CONTROL void model_lose(uint32_t device, int error) {
  pthread_mutex_lock(&model.lock);
  queue_lose(device, error);
  pthread_mutex_unlock(&model.lock);
}

CONTROL uint32_t model_violations(char *text, size_t room) {
  pthread_mutex_lock(&model.lock);
  uint32_t count = model.violation_count;
  if (text) snprintf(text, room, "%s", model.violations);
  pthread_mutex_unlock(&model.lock);
  return count;
}

static model_counts count_all(void) {
  model_counts counts = {.modules = 0};
  for (struct cuda_stream_ *one = model.streams; one; one = one->next) counts.streams += !one->destroyed;
  for (struct cuda_event_ *one = model.events; one; one = one->next) counts.events++;
  for (struct cuda_module_ *one = model.modules; one; one = one->next) counts.modules++;
  for (size_t i = 0; i < model.reservations.count; i++) {
    counts.reservations += !model.reservations.items[i].plain;
    counts.allocations += model.reservations.items[i].plain;
  }
  for (size_t i = 0; i < model.mappings.count; i++) counts.mappings += !model.mappings.items[i].plain;
  for (size_t i = 0; i < model.pieces.count; i++) counts.handles += !model.pieces.items[i]->released;
  counts.host_allocations = model.hosts.count;
  counts.pending = model.pending;
  for (uint32_t d = 0; d < MODEL_DEVICES; d++) counts.contexts += model.devices[d].retained;
  return counts;
}

CONTROL void model_count(model_counts *counts) {
  pthread_mutex_lock(&model.lock);
  *counts = count_all();
  pthread_mutex_unlock(&model.lock);
}

CONTROL uint64_t model_leaks(char *text, size_t room) {
  pthread_mutex_lock(&model.lock);
  model_counts c = count_all();
  pthread_mutex_unlock(&model.lock);
  uint64_t sum = c.streams + c.events + c.modules + c.reservations + c.mappings + c.handles + c.host_allocations +
                 c.allocations + c.pending + c.contexts;
  if (text)
    snprintf(
        text, room,
        "%llu streams, %llu events, %llu modules, %llu reservations, %llu mappings, %llu handles, %llu host allocations, "
        "%llu allocations, %llu pending operations, %llu contexts",
        (unsigned long long)c.streams, (unsigned long long)c.events, (unsigned long long)c.modules,
        (unsigned long long)c.reservations, (unsigned long long)c.mappings, (unsigned long long)c.handles,
        (unsigned long long)c.host_allocations, (unsigned long long)c.allocations, (unsigned long long)c.pending,
        (unsigned long long)c.contexts);
  return sum;
}

CONTROL uint64_t model_calls(model_call call) {
  pthread_mutex_lock(&model.lock);
  uint64_t calls = call < MODEL_ANY ? model.calls[call] : 0;
  pthread_mutex_unlock(&model.lock);
  return calls;
}

CONTROL void model_note(const char *text) {
  pthread_mutex_lock(&model.lock);
  if (model.options.verbose) fprintf(stderr, "%s\n", text);
  pthread_mutex_unlock(&model.lock);
}
