/* SPDX-License-Identifier: Apache-2.0 */
/* A graph of one device in a stream of another: while a node on a branch waits for a value, that device is reset, and
 * the branch's stream is no more. The rest of the node runs in none, whatever has the stream's address then. And a
 * node that waits for an event of a stream which holds a host function. */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver/driver_api/libcuda_graph.h"
#include "driver/engine/engine_internal.h"
#include "driver/engine/engine_values.h"

CUresult cuInit(unsigned), cuDevicePrimaryCtxRetain(CUcontext *, CUdevice), cuDevicePrimaryCtxReset_v2(CUdevice),
    cuCtxSetCurrent(CUcontext), cuMemHostAlloc(void **, size_t, unsigned);
CUresult cuStreamCreate(CUstream *, unsigned), cuStreamDestroy_v2(CUstream), cuStreamSynchronize(CUstream),
    cuLaunchHostFunc(CUstream, cudaHostFn_t, void *);
CUresult cuEventCreate(CUevent *, unsigned), cuEventRecord(CUevent, CUstream), cuEventDestroy_v2(CUevent);
CUresult cuGraphCreate(CUgraph *, unsigned), cuGraphDestroy(CUgraph),
    cuGraphAddBatchMemOpNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
                             const CUDA_BATCH_MEM_OP_NODE_PARAMS *),
    cuGraphAddEventWaitNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUevent),
    cuGraphInstantiateWithFlags(CUgraphExec *, CUgraph, unsigned long long), cuGraphExecDestroy(CUgraphExec),
    cuGraphLaunch(CUgraphExec, CUstream);

#define succeed(call) assert_int_equal(call, CUDA_SUCCESS)
enum { WATCHDOG = 60, MANY = 16, EQUAL = 1 };

static CUcontext primary[2];
static uint32_t *words; /* in host memory: 0: the node has begun; 1: it goes on; 2: it has; 3: of the other node */
static CUgraphExec exec;
static CUstream launching;

static uint32_t word(int at) { return __atomic_load_n(&words[at], __ATOMIC_SEQ_CST); }
static void set_word(int at, uint32_t value) { __atomic_store_n(&words[at], value, __ATOMIC_SEQ_CST); }

static engine_value operation(int type, int at, uint64_t value, unsigned flags) {
  return (engine_value){.of = {.type = type, .address = (uintptr_t)&words[at], .value = value, .flags = flags}};
}

static void *launch(void *result) {
  const CUresult error = cuCtxSetCurrent(primary[0]);
  *(CUresult *)result = error ? error : cuGraphLaunch(exec, launching);
  return NULL;
}

static void the_stream_of_a_branch_goes(void **state) {
  (void)state;
  CUgraph graph;
  CUgraphNode first, node;
  CUstream others[MANY];
  CUresult result = -1;
  pthread_t thread;
  engine_value list[] = {operation(ENGINE_VALUE_WRITE_32, 0, 1, 0), operation(ENGINE_VALUE_WAIT_32, 1, 1, EQUAL),
                         operation(ENGINE_VALUE_WRITE_32, 2, 7, 0)};
  engine_value operation_apart = operation(ENGINE_VALUE_WRITE_32, 3, 1, 0);
  CUDA_BATCH_MEM_OP_NODE_PARAMS params = {.ctx = primary[0], .count = 3, .paramArray = list},
                                apart = {.ctx = primary[0], .count = 1, .paramArray = &operation_apart};
  succeed(cuCtxSetCurrent(primary[1]));
  succeed(cuStreamCreate(&launching, 1));
  succeed(cuCtxSetCurrent(primary[0]));
  succeed(cuGraphCreate(&graph, 0));
  succeed(cuGraphAddBatchMemOpNode(&first, graph, NULL, 0, &apart));
  succeed(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &params));
  succeed(cuGraphInstantiateWithFlags(&exec, graph, 0));
  for (int i = 0; i < MANY; i++) {
    if (i == MANY / 2) { /* this thread makes the branch's stream */
      set_word(1, 1);
      succeed(cuGraphLaunch(exec, launching));
      succeed(cuStreamSynchronize(launching));
      assert_int_equal(word(2), 7);
    }
    succeed(cuStreamCreate(&others[i], 1));
  }
  for (int i = 0; i < 3; i++) set_word(i, 0);
  assert_int_equal(pthread_create(&thread, NULL, launch, &result), 0);
  while (!word(0)) usleep(1000);
  /* (The allocator gives a piece again soon if its cache for this thread is full of others.) */
  for (int i = 0; i < MANY; i += 2) succeed(cuStreamDestroy_v2(others[i]));
  succeed(cuDevicePrimaryCtxReset_v2(1));
  for (int i = 0; i < MANY; i += 2) succeed(cuStreamCreate(&others[i], 1));
  set_word(1, 1);
  pthread_join(thread, NULL);
  assert_int_equal(word(2), 0);
  for (int i = 0; i < MANY; i++) succeed(cuStreamDestroy_v2(others[i]));
  succeed(cuGraphExecDestroy(exec));
  succeed(cuGraphDestroy(graph));
}

static sem_t go;
static void wait_for_go(void *unused) {
  (void)unused;
  while (sem_wait(&go)) {}
}

static bool is_waited_for(void) {
  pthread_mutex_lock(&ff_engine.lock);
  const bool waits = ff_engine.host_waiting > 0;
  pthread_mutex_unlock(&ff_engine.lock);
  return waits;
}

/* While a node waits for a value, a host function is put in another stream, and the event that the next node waits for
 * is recorded behind it. */
static void a_wait_for_an_event_carries_host_functions_on(void **state) {
  (void)state;
  CUgraph graph;
  CUgraphNode first, second, third;
  CUstream other;
  CUevent event;
  CUresult result = -1;
  pthread_t thread;
  const uint32_t grace = engine_grace_ms;
  engine_value list[] = {operation(ENGINE_VALUE_WRITE_32, 0, 1, 0), operation(ENGINE_VALUE_WAIT_32, 1, 1, EQUAL)};
  engine_value after = operation(ENGINE_VALUE_WRITE_32, 2, 7, 0);
  CUDA_BATCH_MEM_OP_NODE_PARAMS params = {.ctx = primary[0], .count = 2, .paramArray = list},
                                then = {.ctx = primary[0], .count = 1, .paramArray = &after};
  succeed(cuCtxSetCurrent(primary[0]));
  succeed(cuStreamCreate(&launching, 1));
  succeed(cuStreamCreate(&other, 1));
  succeed(cuEventCreate(&event, 0));
  succeed(cuGraphCreate(&graph, 0));
  succeed(cuGraphAddBatchMemOpNode(&first, graph, NULL, 0, &params));
  succeed(cuGraphAddEventWaitNode(&second, graph, &first, 1, event));
  succeed(cuGraphAddBatchMemOpNode(&third, graph, &second, 1, &then));
  succeed(cuGraphInstantiateWithFlags(&exec, graph, 0));
  for (int i = 0; i < 3; i++) set_word(i, 0);
  engine_grace_ms = 0;
  assert_int_equal(sem_init(&go, 0, 0), 0);
  assert_int_equal(pthread_create(&thread, NULL, launch, &result), 0);
  while (!word(0)) usleep(1000);
  succeed(cuLaunchHostFunc(other, wait_for_go, NULL));
  succeed(cuEventRecord(event, other));
  set_word(1, 1);
  while (!is_waited_for() && !word(2)) usleep(1000);
  assert_int_equal(word(2), 0);
  assert_int_equal(sem_post(&go), 0);
  pthread_join(thread, NULL);
  succeed(result);
  assert_int_equal(word(2), 7);
  engine_grace_ms = grace;
  sem_destroy(&go);
  succeed(cuGraphExecDestroy(exec));
  succeed(cuGraphDestroy(graph));
  succeed(cuEventDestroy_v2(event));
  succeed(cuStreamDestroy_v2(other));
  succeed(cuStreamDestroy_v2(launching));
}

static int start(void **state) {
  (void)state;
  setenv("FARFAULT_MACHINE", "v100", 1);
  setenv("FARFAULT_DEVICES", "2", 1);
  if (cuInit(0) || cuDevicePrimaryCtxRetain(&primary[0], 0) || cuDevicePrimaryCtxRetain(&primary[1], 1)) return -1;
  return cuCtxSetCurrent(primary[0]) || cuMemHostAlloc((void **)&words, 4 * sizeof *words, 0);
}

int main(void) {
  alarm(WATCHDOG);
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_stream_of_a_branch_goes),
                                     cmocka_unit_test(a_wait_for_an_event_carries_host_functions_on)};
  return cmocka_run_group_tests(tests, start, NULL);
}
