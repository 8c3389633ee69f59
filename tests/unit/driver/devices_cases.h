/* SPDX-License-Identifier: Apache-2.0 */
/* Three devices: which one a call means, what belongs to it, peers, and kernels that reach where they may not. For
 * test_devices*.c. */
#include "driver/runtime_api/cudart_array.h"
#include "driver/runtime_api/cudart_graph.h"
#include "driver/engine/engine_peer.h"
#include "driver/properties.h"
#include "program.h"

#include <pthread.h>

enum { DEVICES = 3 };

STUB(add_stub);
STUB(count_stub);
STUB(meet_stub);
STUB(shadow);
static void **module_handle;
static int *shared_counter;

static const char text[] = PTX_HEAD
    ".visible .global .align 4 .u32 counter = 40;\n"
    ".visible .global .attribute(.managed) .align 4 .u32 everywhere = 7;\n"
    ".visible .entry add(.param .u64 to, .param .u64 from)\n{\n.reg .b32 %r<6>;\n.reg .b64 %rd<8>;\n"
    "ld.param.u64 %rd1, [to];\nld.param.u64 %rd2, [from];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd3, %r1, 4;\n"
    "add.u64 %rd4, %rd1, %rd3;\nadd.u64 %rd5, %rd2, %rd3;\nld.global.u32 %r2, [%rd5];\nadd.u32 %r2, %r2, 1;\n"
    "st.global.u32 [%rd4], %r2;\nret;\n}\n"
    ".visible .entry meet(.param .u64 own, .param .u64 other)\n{\n.reg .b32 %r<4>;\n.reg .b64 %rd<3>;\n.reg .pred %p;\n"
    "ld.param.u64 %rd1, [own];\nld.param.u64 %rd2, [other];\nmov.u32 %r1, 0;\n"
    "again:\nadd.u32 %r1, %r1, 1;\nst.volatile.global.u32 [%rd1], %r1;\n"
    "wait:\nld.volatile.global.u32 %r2, [%rd2];\nsetp.lt.u32 %p, %r2, %r1;\n@%p bra wait;\n"
    "setp.lt.u32 %p, %r1, 5;\n@%p bra again;\nret;\n}\n"
    ".visible .entry count()\n{\n.reg .b32 %r<3>;\nld.global.u32 %r1, [counter];\nadd.u32 %r1, %r1, 1;\n"
    "st.global.u32 [counter], %r1;\nld.global.u32 %r2, [everywhere];\nadd.u32 %r2, %r2, 1;\nst.global.u32 [everywhere], %r2;\nret;\n}\n";

static int set_up(void **state) {
  (void)state;
  const char *texts[] = {text};
  module_handle = register_ptx(texts, 1);
  register_kernel(module_handle, add_stub, "add");
  register_kernel(module_handle, count_stub, "count");
  register_kernel(module_handle, meet_stub, "meet");
  __cudaRegisterVar(module_handle, shadow, NULL, "counter", 0, 4, 0, 0);
  __cudaRegisterManagedVar(module_handle, (void **)&shared_counter, NULL, "everywhere", 0, 4, 0, 0);
  return 0;
}

static cudaError_t add(void *to, const void *from) { return launch(add_stub, 1, 32, (void *[]){&to, &from}); }

static void *memory_on(int device) {
  void *made;
  succeed(cudaSetDevice(device));
  succeed(cudaMalloc(&made, 128));
  succeed(cudaMemset(made, 0, 128));
  return made;
}

static int first_word(const void *memory) {
  int value = -1;
  succeed(cudaMemcpy(&value, memory, sizeof value, cudaMemcpyDefault));
  return value;
}

static void counting(void **state) {
  (void)state;
  int count = 0, device = 9, found;
  char text_0[32], text_2[32];
  cudaDeviceProp_13 zero, two;
  succeed(cudaGetDeviceCount(&count));
  assert_int_equal(count, DEVICES);
  succeed(cudaGetDevice(&device));
  assert_int_equal(device, 0);
  expect(cudaSetDevice(DEVICES), cudaErrorInvalidDevice);
  expect(cudaSetDevice(-1), cudaErrorInvalidDevice);
  succeed(cudaSetDevice(2));
  succeed(cudaGetDevice(&device));
  assert_int_equal(device, 2);
  succeed(cudaDeviceGetPCIBusId(text_0, sizeof text_0, 0));
  succeed(cudaDeviceGetPCIBusId(text_2, sizeof text_2, 2));
  assert_string_equal(text_0, "0000:01:00.0");
  assert_string_equal(text_2, "0000:03:00.0");
  succeed(cudaDeviceGetByPCIBusId(&found, text_2));
  assert_int_equal(found, 2);
  expect(cudaDeviceGetByPCIBusId(&found, "0000:04:00.0"), cudaErrorInvalidDevice);
  expect(cudaDeviceGetByPCIBusId(&found, "0000:00:00.0"), cudaErrorInvalidDevice);
  properties_fill_13(engine_machine(), 0, 1, &zero);
  properties_fill_13(engine_machine(), 2, 1, &two);
  assert_memory_not_equal(zero.uuid, two.uuid, 16);
  assert_int_equal(zero.pciBusID, 1);
  assert_int_equal(two.pciBusID, 3);
  expect(cudaSetValidDevices((int[]){1, DEVICES}, 2), cudaErrorInvalidDevice);
  succeed(cudaSetDevice(0));
}

static void *other_thread(void *out) {
  cudaGetDevice(out);
  cudaSetDevice(1);
  return NULL;
}

static void a_device_per_thread(void **state) {
  (void)state;
  pthread_t thread;
  int device = 9;
  succeed(cudaSetDevice(2));
  assert_int_equal(pthread_create(&thread, NULL, other_thread, &device), 0);
  pthread_join(thread, NULL);
  assert_int_equal(device, 0);
  succeed(cudaGetDevice(&device));
  assert_int_equal(device, 2);
  succeed(cudaSetValidDevices((int[]){1, 2}, 2));
  assert_int_equal(pthread_create(&thread, NULL, other_thread, &device), 0);
  pthread_join(thread, NULL);
  assert_int_equal(device, 1);
  succeed(cudaSetValidDevices(NULL, 0));
  succeed(cudaSetDevice(0));
}

static void memory_of_a_device(void **state) {
  (void)state;
  size_t before[2], after[2], total;
  cudaPointerAttributes attributes;
  void *made, *host;
  for (int d = 0; d < 2; d++) {
    succeed(cudaSetDevice(d));
    succeed(cudaMemGetInfo(&before[d], &total));
  }
  succeed(cudaMalloc(&made, 1 << 20));
  for (int d = 0; d < 2; d++) {
    succeed(cudaSetDevice(d));
    succeed(cudaMemGetInfo(&after[d], &total));
  }
  assert_int_equal(before[0], after[0]);
  assert_int_equal(before[1], after[1] + (1 << 20));
  succeed(cudaSetDevice(0));
  succeed(cudaPointerGetAttributes(&attributes, made));
  assert_int_equal(attributes.device, 1);
  assert_int_equal(attributes.type, cudaMemoryTypeDevice);
  succeed(cudaSetDevice(2));
  succeed(cudaMallocHost(&host, 64));
  succeed(cudaPointerGetAttributes(&attributes, host));
  assert_int_equal(attributes.device, 2);
  succeed(cudaFree(made)); /* whichever device is current */
  succeed(cudaFreeHost(host));
  succeed(cudaSetDevice(1));
  succeed(cudaMemGetInfo(&after[1], &total));
  assert_int_equal(before[1], after[1]);
}

static void streams_and_events(void **state) {
  (void)state;
  cudaStream_t zero, one;
  cudaEvent_t of_zero, of_one;
  float time;
  int device = 9;
  void *there = memory_on(0), *here = memory_on(1);
  succeed(cudaSetDevice(0));
  succeed(cudaStreamCreate(&zero));
  succeed(cudaEventCreate(&of_zero));
  succeed(cudaSetDevice(1));
  succeed(cudaStreamCreate(&one));
  succeed(cudaEventCreate(&of_one));
  succeed(cudaStreamGetDevice(zero, &device));
  assert_int_equal(device, 0);
  succeed(cudaStreamGetDevice(NULL, &device));
  assert_int_equal(device, 1);
  expect(cudaEventRecord(of_zero, one), cudaErrorInvalidResourceHandle);
  expect(cudaEventRecord(of_one, zero), cudaErrorInvalidResourceHandle);
  succeed(cudaEventRecord(of_zero, zero)); /* the current device does not matter */
  succeed(cudaEventRecord(of_one, NULL));
  succeed(cudaStreamWaitEvent(one, of_zero, 0));
  succeed(cudaStreamWaitEvent(zero, of_one, 0));
  succeed(cudaEventSynchronize(of_zero));
  succeed(cudaEventSynchronize(of_one));
  succeed(cudaEventQuery(of_zero));
  expect(cudaEventElapsedTime(&time, of_zero, of_one), cudaErrorInvalidResourceHandle);
  void *arguments[] = {&here, &here};
  expect(cudaLaunchKernel(add_stub, (dim3){1, 1, 1}, (dim3){32, 1, 1}, arguments, 0, zero),
         cudaErrorInvalidResourceHandle);
  succeed(cudaLaunchKernel(add_stub, (dim3){1, 1, 1}, (dim3){32, 1, 1}, arguments, 0, one));
  assert_int_equal(first_word(here), 1);
  succeed(cudaMemsetAsync(there, 1, 128, zero)); /* copies and sets go to any device's streams */
  succeed(cudaMemcpyAsync(here, there, 128, cudaMemcpyDefault, zero));
  succeed(cudaStreamSynchronize(zero));
  assert_int_equal(first_word(here), 0x01010101);
  succeed(cudaFree(here));
  succeed(cudaFree(there));
  succeed(cudaEventDestroy(of_zero));
  succeed(cudaStreamDestroy(zero));
}

static void variables(void **state) {
  (void)state;
  void *address[2];
  int value = 0;
  for (int d = 0; d < 2; d++) {
    succeed(cudaSetDevice(d));
    for (int times = 0; times <= d; times++) succeed(launch(count_stub, 1, 1, NULL));
    succeed(cudaGetSymbolAddress(&address[d], shadow));
  }
  assert_ptr_not_equal(address[0], address[1]);
  for (int d = 0; d < 2; d++) {
    succeed(cudaSetDevice(d));
    succeed(cudaMemcpyFromSymbol(&value, shadow, 4, 0, cudaMemcpyDeviceToHost));
    assert_int_equal(value, 41 + d);
  }
  assert_int_equal(*shared_counter, 7 + 3); /* a managed variable is there once */
  succeed(cudaSetDevice(0));
  succeed(cudaDeviceReset()); /* device 1 keeps what it has, and the managed variable */
  assert_int_equal(*shared_counter, 10);
  succeed(cudaMemcpyFromSymbol(&value, shadow, 4, 0, cudaMemcpyDeviceToHost));
  assert_int_equal(value, 40);
  succeed(cudaSetDevice(1));
  succeed(cudaMemcpyFromSymbol(&value, shadow, 4, 0, cudaMemcpyDeviceToHost));
  assert_int_equal(value, 42);
}

static void peers(void **state) {
  (void)state;
  int can = 9, value = 9;
  succeed(cudaDeviceCanAccessPeer(&can, 0, 1));
  assert_int_equal(can, 1);
  succeed(cudaDeviceCanAccessPeer(&can, 1, 1));
  assert_int_equal(can, 0);
  expect(cudaDeviceCanAccessPeer(&can, 0, DEVICES), cudaErrorInvalidDevice);
  succeed(cudaDeviceGetP2PAttribute(&value, 2, 0, 1));
  assert_int_equal(value, 1);
  expect(cudaDeviceGetP2PAttribute(&value, 2, 1, 1), cudaErrorInvalidDevice);
  expect(cudaDeviceGetP2PAttribute(&value, 9, 0, 1), cudaErrorInvalidValue);
  succeed(cudaSetDevice(0));
  expect(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
  expect(cudaDeviceEnablePeerAccess(0, 0), cudaErrorDeviceUninitialized); /* as NVIDIA's runtime hands it on */
  expect(cudaDeviceEnablePeerAccess(DEVICES, 0), cudaErrorInvalidDevice);
  expect(cudaDeviceEnablePeerAccess(1, 1), cudaErrorInvalidValue);
  succeed(cudaDeviceEnablePeerAccess(1, 0));
  expect(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
  void *one = memory_on(1), *zero = memory_on(0), *two = memory_on(2);
  succeed(cudaSetDevice(0));
  succeed(add(zero, one)); /* both ways: reading, and writing */
  succeed(add(one, zero));
  succeed(cudaDeviceSynchronize());
  assert_int_equal(first_word(zero), 1);
  assert_int_equal(first_word(one), 2);
  succeed(cudaMemcpyPeer(two, 2, one, 1, 128));
  assert_int_equal(first_word(two), 2);
  expect(cudaMemcpyPeer(two, DEVICES, one, 1, 128), cudaErrorInvalidDevice);
  succeed(cudaMemcpyPeerAsync(zero, 0, two, 2, 128, NULL));
  succeed(cudaMemcpy(zero, two, 128, cudaMemcpyDefault));
  assert_int_equal(first_word(zero), 2);
  succeed(cudaDeviceDisablePeerAccess(1));
  succeed(cudaFree(one));
  succeed(cudaFree(two));
  succeed(cudaFree(zero));
}

static void reaching_too_far(void **state) {
  (void)state;
  void *one = memory_on(1), *zero = memory_on(0);
  int value;
  succeed(cudaSetDevice(1));
  succeed(cudaDeviceEnablePeerAccess(0, 0)); /* the other way round */
  succeed(cudaSetDevice(0));
  succeed(add(zero, zero));
  succeed(cudaDeviceSynchronize());
  succeed(add(zero, one));
  expect(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  assert_non_null(strstr(engine_fault_message(), "memory of device 1, to which device 0 has no peer access"));
  expect(cudaSetDevice(1), cudaErrorIllegalAddress);
  expect(cudaDeviceReset(), cudaErrorIllegalAddress); /* not where it arose */
  expect(cudaSetDevice(0), cudaErrorIllegalAddress);
  succeed(cudaDeviceReset());
  succeed(cudaSetDevice(1));
  succeed(cudaMalloc(&one, 128));
  expect(cudaDeviceDisablePeerAccess(0), cudaErrorPeerAccessNotEnabled); /* a reset ends it */
  succeed(cudaMemcpyFromSymbol(&value, shadow, 4, 0, cudaMemcpyDeviceToHost));
  succeed(cudaFree(one));
}

static void pools(void **state) {
  (void)state;
  cudaMemPool_t pool;
  void *one, *zero = memory_on(0);
  int flags = 9;
  cudaMemLocation to_zero = {cudaMemLocationTypeDevice, 0};
  cudaMemAccessDesc open = {.location = to_zero, .flags = 3};
  cudaPointerAttributes attributes;
  succeed(cudaSetDevice(1));
  succeed(cudaDeviceGetDefaultMemPool(&pool, 1));
  succeed(cudaMallocAsync(&one, 128, NULL));
  succeed(cudaMemsetAsync(one, 0, 128, NULL));
  succeed(cudaPointerGetAttributes(&attributes, one));
  assert_int_equal(attributes.device, 1);
  succeed(cudaMemPoolGetAccess(&flags, pool, &to_zero));
  assert_int_equal(flags, 0);
  succeed(cudaMemPoolSetAccess(pool, &open, 1));
  succeed(cudaSetDevice(0));
  succeed(add(zero, one));
  assert_int_equal(first_word(zero), 1);
  succeed(cudaFreeAsync(one, NULL));
  succeed(cudaSetDevice(1));
  open.flags = 0;
  succeed(cudaMemPoolSetAccess(pool, &open, 1));
  succeed(cudaMallocAsync(&one, 128, NULL)); /* the same piece again */
  succeed(cudaSetDevice(0));
  succeed(cudaDeviceEnablePeerAccess(1, 0)); /* is not of pools */
  succeed(add(zero, one));
  expect(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  succeed(cudaDeviceReset());
}

static void managed_memory(void **state) {
  (void)state;
  int *memory;
  succeed(cudaSetDevice(0));
  succeed(cudaMallocManaged((void **)&memory, 128, cudaMemAttachGlobal));
  for (int i = 0; i < 32; i++) memory[i] = i;
  for (int d = 0; d < DEVICES; d++) {
    succeed(cudaSetDevice(d));
#if CUDART_MAJOR >= 13
    succeed(cudaMemPrefetchAsync(memory, 128, (cudaMemLocation){cudaMemLocationTypeDevice, d}, 0, NULL));
    succeed(cudaMemAdvise(memory, 128, cudaMemAdviseSetAccessedBy, (cudaMemLocation){cudaMemLocationTypeDevice, d}));
    expect(cudaMemPrefetchAsync(memory, 128, (cudaMemLocation){cudaMemLocationTypeDevice, DEVICES}, 0, NULL),
           cudaErrorInvalidDevice);
#else
    succeed(cudaMemPrefetchAsync(memory, 128, d, NULL));
    succeed(cudaMemAdvise(memory, 128, cudaMemAdviseSetAccessedBy, d));
    expect(cudaMemPrefetchAsync(memory, 128, DEVICES, NULL), cudaErrorInvalidDevice);
#endif
    succeed(add(memory, memory));
    succeed(cudaDeviceSynchronize());
  }
  assert_int_equal(memory[5], 5 + DEVICES);
  succeed(cudaFree(memory));
}

/* Each kernel waits for the next one, on another device, five times. */
static void kernels_that_meet(void **state) {
  (void)state;
  uint32_t *words;
  succeed(cudaSetDevice(0));
  succeed(cudaHostAlloc((void **)&words, 64, cudaHostAllocPortable));
  memset(words, 0, 64);
  for (int d = 0; d < DEVICES; d++) {
    void *own = &words[d], *other = &words[(d + 1) % DEVICES];
    succeed(cudaSetDevice(d));
    succeed(launch(meet_stub, 1, 1, (void *[]){&own, &other}));
  }
  void *copy = NULL;
  succeed(cudaMalloc(&copy, 64)); /* device 2 is current: waits until all are over */
  for (int d = 0; d < DEVICES; d++) {
    succeed(cudaSetDevice(d));
    succeed(cudaDeviceSynchronize());
    assert_int_equal(words[d], 5);
  }
  succeed(cudaFree(copy));
  succeed(cudaFreeHost(words));
}

enum { ROUNDS = 4 };
static uint32_t *meeting; /* pinned; of each round 16 words, of which each device has one */

/* Launches and waits, as if no other thread were there; device 0 has all its launches ahead. */
static void *meet_in_thread(void *context) {
  int d = *(int *)context;
  cudaStream_t stream;
  bool good = !cudaSetDevice(d) && !cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  for (int round = 0; round < ROUNDS && good; round++) {
    void *own = &meeting[16 * round + d], *other = &meeting[16 * round + (d + 1) % DEVICES];
    good = !cudaLaunchKernel(meet_stub, (dim3){1, 1, 1}, (dim3){1, 1, 1}, (void *[]){&own, &other}, 0, stream);
    void *memory;
    if (d && good) good = !cudaStreamSynchronize(stream) && meeting[16 * round + d] == 5;
    if (d && good) good = !cudaMalloc(&memory, 64) && !cudaMemset(memory, 0, 64) && !cudaFree(memory);
  }
  good = good && !cudaStreamSynchronize(stream) && !cudaStreamDestroy(stream);
  return good ? context : NULL;
}

/* A thread that waits for its device does not wait for what other threads have to launch. */
static void threads_that_meet(void **state) {
  (void)state;
  pthread_t threads[DEVICES];
  int numbers[DEVICES];
  succeed(cudaSetDevice(0));
  succeed(cudaHostAlloc((void **)&meeting, 64 * ROUNDS, cudaHostAllocPortable));
  memset(meeting, 0, 64 * ROUNDS);
  for (int d = 0; d < DEVICES; d++) {
    numbers[d] = d;
    assert_int_equal(pthread_create(&threads[d], NULL, meet_in_thread, &numbers[d]), 0);
  }
  for (int d = 0; d < DEVICES; d++) {
    void *good;
    assert_int_equal(pthread_join(threads[d], &good), 0);
    assert_non_null(good);
  }
  for (int word = 0; word < ROUNDS * 16; word++) assert_int_equal(meeting[word], word % 16 < DEVICES ? 5 : 0);
  succeed(cudaFreeHost(meeting));
}

/* A stream waits for an event behind a kernel on another device that waits for the host. */
static void an_event_behind_another_device(void **state) {
  (void)state;
  uint32_t *words;
  cudaStream_t streams[2];
  cudaEvent_t event;
  void *zero = memory_on(0);
  succeed(cudaHostAlloc((void **)&words, 64, cudaHostAllocPortable));
  memset(words, 0, 64);
  for (int d = 0; d < 2; d++) {
    succeed(cudaSetDevice(d));
    succeed(cudaStreamCreateWithFlags(&streams[d], cudaStreamNonBlocking));
  }
  succeed(cudaSetDevice(0));
  succeed(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  void *own = &words[0], *other = &words[1], *next = &words[2];
  succeed(cudaLaunchKernel(meet_stub, (dim3){1, 1, 1}, (dim3){1, 1, 1}, (void *[]){&own, &other}, 0, streams[0]));
  succeed(cudaMemsetAsync(next, 1, 4, streams[0]));
  succeed(cudaEventRecord(event, streams[0]));
  succeed(cudaSetDevice(1));
  succeed(cudaStreamWaitEvent(streams[1], event, 0));
  succeed(cudaMemcpyAsync(&words[3], next, 4, cudaMemcpyDefault, streams[1]));
  expect(cudaStreamQuery(streams[1]), cudaErrorNotReady);
  expect(cudaEventQuery(event), cudaErrorNotReady);
  assert_int_equal(words[3], 0);
  *(volatile uint32_t *)other = 5; /* it may go on */
  succeed(cudaStreamSynchronize(streams[1]));
  assert_int_equal(words[3], 0x01010101);
  succeed(cudaEventDestroy(event));
  for (int d = 0; d < 2; d++) succeed(cudaStreamDestroy(streams[d]));
  succeed(cudaFreeHost(words));
  succeed(cudaFree(zero));
}

static void graphs(void **state) {
  (void)state;
  void *zero = memory_on(0), *one = memory_on(1);
  cudaStream_t stream, there;
  cudaEvent_t forked, joined;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  succeed(cudaSetDevice(1));
  succeed(cudaStreamCreate(&there));
  succeed(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming));
  succeed(cudaSetDevice(0));
  succeed(cudaStreamCreate(&stream));
  succeed(cudaEventCreateWithFlags(&forked, cudaEventDisableTiming));
  succeed(cudaStreamBeginCapture(stream, 2));
  succeed(cudaEventRecord(forked, stream));
  succeed(cudaStreamWaitEvent(there, forked, 0)); /* the capture goes on on device 1 */
  succeed(cudaSetDevice(1));
  void *arguments[] = {&one, &one};
  succeed(cudaLaunchKernel(add_stub, (dim3){1, 1, 1}, (dim3){32, 1, 1}, arguments, 0, there));
  succeed(cudaEventRecord(joined, there));
  succeed(cudaSetDevice(0));
  succeed(cudaStreamWaitEvent(stream, joined, 0));
  succeed(cudaStreamEndCapture(stream, &graph));
  succeed(cudaGraphInstantiateWithFlags(&exec, graph, 0));
  for (int i = 0; i < 2; i++) succeed(cudaGraphLaunch(exec, stream));
  succeed(cudaStreamSynchronize(stream));
  assert_int_equal(first_word(one), 2); /* device 0 could not have reached it */
  succeed(cudaGraphExecDestroy(exec));
  succeed(cudaGraphDestroy(graph));
  succeed(cudaStreamDestroy(stream));
  succeed(cudaStreamDestroy(there));
  succeed(cudaFree(zero));
  succeed(cudaFree(one));
}

int cuInit(unsigned);
int cuGraphAddMemAllocNode(cudaGraphNode_t *, cudaGraph_t, const cudaGraphNode_t *, size_t, cudaMemAllocNodeParams *);
int cuGraphMemAllocNodeGetParams(cudaGraphNode_t, cudaMemAllocNodeParams *);

/* Memory that a graph allocates on one device for another one, by a list and by the pool that a capture allocates
 * from. */
static void memory_of_graphs(void **state) {
  (void)state;
  void *zero = memory_on(0), *from_pool;
  cudaGraph_t graph;
  cudaGraphNode_t node, set;
  cudaGraphExec_t exec;
  cudaMemPool_t pool;
  cudaStream_t stream;
  cudaMemAccessDesc open = {.location = {cudaMemLocationTypeDevice, 0}, .flags = 3}, wrong;
  cudaMemAllocNodeParams params = {.poolProps = {.allocType = 1, .location = {cudaMemLocationTypeDevice, 1}},
                                   .accessDescs = &open,
                                   .accessDescCount = 1,
                                   .bytesize = 128},
                         found;
  cudaPointerAttributes attributes;
  succeed(cudaSetDevice(1));
  succeed(cudaGraphCreate(&graph, 0));
  for (int n = 0; n < 5; n++) { /* no such device, kind of place, access; too many; no list */
    wrong = open;
    if (n < 2) wrong.location.id = n ? -1 : DEVICES;
    if (n == 2) wrong.location.type = (cudaMemLocationType)2;
    if (n == 3) wrong.flags = 2;
    params.accessDescs = n < 4 ? &wrong : NULL;
    expect(cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &params), cudaErrorInvalidValue);
  }
  params.accessDescs = &open;
  params.accessDescCount = 17;
  expect(cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &params), cudaErrorInvalidValue);
  params.accessDescCount = 1;
  params.poolProps.location.id = DEVICES;
  expect(cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &params), cudaErrorInvalidValue);
  params.poolProps.location.id = 1;
  succeed(cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
  succeed(cudaGraphMemAllocNodeGetParams(node, &found));
  assert_int_equal(found.poolProps.location.id, 1);
  assert_int_equal(found.accessDescCount, 1);
  assert_memory_equal(found.accessDescs, &open, sizeof open);
  cudaMemsetParams zeros = {.dst = params.dptr, .elementSize = 4, .width = 32, .height = 1};
  succeed(cudaGraphAddMemsetNode(&set, graph, &node, 1, &zeros));
  succeed(cudaGraphInstantiateWithFlags(&exec, graph, 0));
  succeed(cudaGraphLaunch(exec, NULL));
  succeed(cudaDeviceSynchronize());
  succeed(cudaPointerGetAttributes(&attributes, params.dptr));
  assert_int_equal(attributes.device, 1);
  succeed(cudaSetDevice(0));
  succeed(add(zero, params.dptr)); /* device 0 reads it without peer access */
  assert_int_equal(first_word(zero), 1);
  succeed(cudaFree(params.dptr));
  succeed(cudaGraphExecDestroy(exec));
  succeed(cudaGraphDestroy(graph));
  assert_int_equal(cuInit(0), 0); /* the driver's calls */
  succeed(cudaGraphCreate(&graph, 0));
  params.accessDescs = &open;
  params.poolProps.location.id = DEVICES;
  assert_int_equal(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params), 1); /* CUDA_ERROR_INVALID_VALUE */
  params.poolProps.location.id = 2;
  assert_int_equal(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params), 0);
  assert_int_equal(cuGraphMemAllocNodeGetParams(node, &found), 0);
  assert_int_equal(found.poolProps.location.id, 2);
  assert_memory_equal(found.accessDescs, &open, sizeof open);
  params.accessDescs = NULL;
  assert_int_equal(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params), 1);
  succeed(cudaGraphDestroy(graph));

  succeed(cudaSetDevice(1));
  succeed(cudaDeviceGetDefaultMemPool(&pool, 1));
  succeed(cudaMemPoolSetAccess(pool, &open, 1));
  succeed(cudaStreamCreate(&stream));
  succeed(cudaStreamBeginCapture(stream, 2));
  succeed(cudaMallocAsync(&from_pool, 128, stream));
  succeed(cudaMemsetAsync(from_pool, 0, 128, stream));
  succeed(cudaStreamEndCapture(stream, &graph));
  open.flags = 0;
  succeed(cudaMemPoolSetAccess(pool, &open, 1)); /* later than the capture */
  succeed(cudaGraphInstantiateWithFlags(&exec, graph, 0));
  succeed(cudaGraphLaunch(exec, stream));
  succeed(cudaStreamSynchronize(stream));
  succeed(cudaSetDevice(0));
  succeed(add(zero, from_pool));
  succeed(cudaDeviceSynchronize());
  succeed(cudaSetDevice(2));
  succeed(add(memory_on(2), from_pool)); /* it was not opened to device 2 */
  expect(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  succeed(cudaDeviceReset());
}

/* Arrays and texture objects are a device's: they count in its memory and go with its reset; questions may be about any
 * device. */
static void arrays(void **state) {
  (void)state;
  const cudaChannelFormatDesc bytes = {8, 0, 0, 0, cudaChannelFormatKindUnsigned};
  unsigned char data[64], back[64] = {0};
  cudaArray_t zero, one;
  cudaMipmappedArray_t mipmap;
  cudaTextureObject_t texture_of_zero, texture_of_one;
  cudaArrayMemoryRequirements needs;
  size_t before, after, total, texels;
  for (int i = 0; i < 64; i++) data[i] = (unsigned char)(i * 5);
  succeed(cudaSetDevice(0));
  succeed(cudaMallocArray(&zero, &bytes, 8, 8, 0));
  cudaResourceDesc resource = {.resType = cudaResourceTypeArray, .res.array.array = zero};
  succeed(cudaCreateTextureObject(&texture_of_zero, &resource, &(cudaTextureDesc){0}, NULL));
  succeed(cudaSetDevice(1));
  succeed(cudaMemGetInfo(&before, &total));
  succeed(cudaMallocArray(&one, &bytes, 1024, 1024, 0));
  succeed(cudaMallocMipmappedArray(&mipmap, &bytes, (cudaExtent){8, 8, 0}, 2, 0));
  succeed(cudaMemGetInfo(&after, &total));
  assert_true(before - after >= 1024 * 1024);
  resource.res.array.array = one;
  succeed(cudaCreateTextureObject(&texture_of_one, &resource, &(cudaTextureDesc){0}, NULL));
  for (int device = 0; device < DEVICES; device++) {
    succeed(cudaArrayGetMemoryRequirements(&needs, one, device));
    assert_int_equal(needs.size, 1024 * 1024);
    succeed(cudaMipmappedArrayGetMemoryRequirements(&needs, mipmap, device));
    succeed(cudaDeviceGetTexture1DLinearMaxWidth(&texels, &bytes, device));
    assert_true(texels > 0);
  }
  for (int n = 0; n < 2; n++) {
    int device = n ? -1 : DEVICES;
    expect(cudaArrayGetMemoryRequirements(&needs, one, device), cudaErrorInvalidDevice);
    expect(cudaMipmappedArrayGetMemoryRequirements(&needs, mipmap, device), cudaErrorInvalidDevice);
    expect(cudaDeviceGetTexture1DLinearMaxWidth(&texels, &bytes, device), cudaErrorInvalidDevice);
  }
  /* of another device than the current one */
  succeed(cudaMemcpy2DToArray(zero, 0, 0, data, 8, 8, 8, cudaMemcpyHostToDevice));
  succeed(cudaMemcpy2DArrayToArray(one, 0, 0, zero, 0, 0, 8, 8, cudaMemcpyDeviceToDevice));
  succeed(cudaMemcpy2DFromArray(back, 8, one, 0, 0, 8, 8, cudaMemcpyDeviceToHost));
  assert_memory_equal(back, data, 64);
  succeed(cudaDeviceReset()); /* device 1 */
  expect(cudaGetChannelDesc(&(cudaChannelFormatDesc){0}, one), cudaErrorInvalidResourceHandle);
  expect(cudaFreeMipmappedArray(mipmap), cudaErrorInvalidResourceHandle);
  expect(cudaDestroyTextureObject(texture_of_one), cudaErrorInvalidValue);
  succeed(cudaDestroyTextureObject(texture_of_zero));
  succeed(cudaMemcpy2DFromArray(back, 8, zero, 0, 0, 8, 8, cudaMemcpyDeviceToHost));
  assert_memory_equal(back, data, 64);
  succeed(cudaFreeArray(zero));
  succeed(cudaSetDevice(0));
}

/* A wait is queued behind a kernel when its event is destroyed; another event may have the address by then. */
static void an_event_destroyed_early(void **state) {
  (void)state;
  cudaStream_t streams[2];
  cudaEvent_t first, second;
  uint32_t *words;
  succeed(cudaHostAlloc((void **)&words, 64, cudaHostAllocPortable));
  memset(words, 0, 64);
  for (int d = 0; d < 2; d++) {
    void *own = &words[d], *other = &words[8 + d];
    succeed(cudaSetDevice(d));
    succeed(cudaStreamCreateWithFlags(&streams[d], cudaStreamNonBlocking));
    succeed(cudaLaunchKernel(meet_stub, (dim3){1, 1, 1}, (dim3){1, 1, 1}, (void *[]){&own, &other}, 0, streams[d]));
  }
  succeed(cudaSetDevice(0));
  succeed(cudaEventCreateWithFlags(&first, cudaEventDisableTiming));
  succeed(cudaEventRecord(first, streams[0]));
  succeed(cudaStreamWaitEvent(streams[1], first, 0));
  __atomic_store_n(&words[8], 5, __ATOMIC_SEQ_CST); /* the first kernel ends */
  succeed(cudaEventDestroy(first));
  succeed(cudaSetDevice(1));
  succeed(cudaEventCreateWithFlags(&second, cudaEventDisableTiming));
  succeed(cudaEventRecord(second, streams[1]));
  expect(cudaStreamQuery(streams[1]), cudaErrorNotReady);
  __atomic_store_n(&words[9], 5, __ATOMIC_SEQ_CST);
  succeed(cudaStreamSynchronize(streams[1]));
  succeed(cudaEventQuery(second));
  assert_true(words[0] == 5 && words[1] == 5);
  succeed(cudaEventDestroy(second));
  for (int d = 0; d < 2; d++) succeed(cudaStreamDestroy(streams[d]));
  succeed(cudaSetDevice(0));
  succeed(cudaFreeHost(words));
}

static void never_called(void *news, void *data, engine_notify *registered) {
  (void)news;
  (void)data;
  (void)registered;
  abort();
}

static void news_of_devices(void **state) {
  (void)state;
  engine_notify *one, *two;
  succeed(cudaDeviceRegisterAsyncNotification(1, never_called, NULL, &one));
  succeed(cudaDeviceRegisterAsyncNotification(2, never_called, NULL, &two));
  expect(cudaDeviceUnregisterAsyncNotification(2, one), cudaErrorInvalidValue);
  expect(cudaDeviceRegisterAsyncNotification(DEVICES, never_called, NULL, &two), cudaErrorInvalidDevice);
  expect(cudaDeviceRegisterAsyncNotification(0, NULL, NULL, &two), cudaErrorInvalidValue);
  succeed(cudaDeviceUnregisterAsyncNotification(1, one));
  succeed(cudaDeviceUnregisterAsyncNotification(2, two));
  expect(cudaDeviceUnregisterAsyncNotification(DEVICES, two), cudaErrorInvalidDevice);
}

static int run_devices(const char *managers) {
  setenv("FARFAULT_DEVICES", "3", 1);
  if (managers) setenv("FARFAULT_MEMORY", managers, 1);
  const struct CMUnitTest tests[] = {cmocka_unit_test(counting),
                                     cmocka_unit_test(a_device_per_thread),
                                     cmocka_unit_test(memory_of_a_device),
                                     cmocka_unit_test(streams_and_events),
                                     cmocka_unit_test(variables),
                                     cmocka_unit_test(peers),
                                     cmocka_unit_test(reaching_too_far),
                                     cmocka_unit_test(pools),
                                     cmocka_unit_test(managed_memory),
                                     cmocka_unit_test(kernels_that_meet),
                                     cmocka_unit_test(threads_that_meet),
                                     cmocka_unit_test(an_event_behind_another_device),
                                     cmocka_unit_test(an_event_destroyed_early),
                                     cmocka_unit_test(graphs),
                                     cmocka_unit_test(arrays),
                                     cmocka_unit_test(memory_of_graphs),
                                     cmocka_unit_test(news_of_devices)};
  return cmocka_run_group_tests(tests, set_up, NULL);
}
