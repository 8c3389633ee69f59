/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled code of a launch: asked for when it begins, and again while it is being made, at every block and
 * now and then in a block's turns. */
#include "exec/launch/native.h"

static const exec_native_provider *provider;
static uint64_t compiled_launches, all_launches;

void exec_native_use(const exec_native_provider *wanted) { __atomic_store_n(&provider, wanted, __ATOMIC_RELEASE); }

void exec_native_count(uint64_t *compiled, uint64_t *launches) {
  *compiled = __atomic_load_n(&compiled_launches, __ATOMIC_RELAXED);
  *launches = __atomic_load_n(&all_launches, __ATOMIC_RELAXED);
}

void exec_native_begin(core_launch *launch, const exec_code *code) {
  const exec_native_provider *asked = __atomic_load_n(&provider, __ATOMIC_ACQUIRE);
  if (asked) launch->native = asked->begin(launch, code, &launch->native_job);
}

void exec_native_ask(core_launch *launch) {
  const exec_native_provider *asked = __atomic_load_n(&provider, __ATOMIC_ACQUIRE);
  if (!asked || __atomic_load_n(&launch->native, __ATOMIC_RELAXED)) return;
  const exec_native_code *code = asked->ask(launch, launch->native_job);
  if (code) __atomic_store_n(&launch->native, code, __ATOMIC_RELEASE);
}

void exec_native_wish(core_launch *launch) {
  const exec_native_provider *asked = __atomic_load_n(&provider, __ATOMIC_ACQUIRE);
  if (asked && asked->wish) asked->wish(launch);
}

void exec_native_end(core_launch *launch) {
  const exec_native_provider *asked = __atomic_load_n(&provider, __ATOMIC_ACQUIRE);
  if (asked && launch->native_job) asked->end(launch, launch->native_job);
  __atomic_add_fetch(&all_launches, 1, __ATOMIC_RELAXED);
  if (launch->native) __atomic_add_fetch(&compiled_launches, 1, __ATOMIC_RELAXED);
}
