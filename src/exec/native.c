/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled code of a launch: asked for when it begins, and again at every block while it is being made. */
#include "exec/native.h"

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

void exec_native_end(core_launch *launch) {
  const exec_native_provider *asked = __atomic_load_n(&provider, __ATOMIC_ACQUIRE);
  if (asked && launch->native_job) asked->end(launch, launch->native_job);
  __atomic_add_fetch(&all_launches, 1, __ATOMIC_RELAXED);
  if (launch->native) __atomic_add_fetch(&compiled_launches, 1, __ATOMIC_RELAXED);
}

/* ---- what compiled code calls ---- */

static void run_guarded(core_warp *w, const exec_instr *i) {
  uint32_t predicate = *exec_pred(&w->x, i->guard), active = w->active, mask = w->x.mask;
  uint32_t lanes = (i->guard_negated ? ~predicate : predicate) & active;
  if (!lanes) return;
  w->active = w->x.mask = lanes;
  for (uint32_t l = 0; l < EXEC_LANES; l++) w->x.lanes[l] = -(int32_t)(lanes >> l & 1);
  i->run[1](&w->x, i);
  w->active = active;
  w->x.mask = mask;
  for (uint32_t l = 0; l < EXEC_LANES; l++) w->x.lanes[l] = -(int32_t)(mask >> l & 1);
}

const exec_native_api exec_native_calls = {.guarded = run_guarded};
