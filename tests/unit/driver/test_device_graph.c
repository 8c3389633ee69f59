/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs that kernels launch (CUDA Programming Guide, "Device Graph Launch"). `note` writes down its tag and launches
 * what its list says; the order in which tags are written is the order in which the graphs ran. */
#include "driver/runtime_api/cudart_graph.h"
#include "program.h"

#define TAIL UINT64_C(0x0100000000000000)
#define AT_ONCE UINT64_C(0x0200000000000000)
#define SIBLING UINT64_C(0x0300000000000000)
enum { DEVICE_LAUNCH = 4, AUTO_FREE = 1 };
enum { NODE_NOT_SUPPORTED = 3, DEVICES_NOT_SUPPORTED = 4 }; /* of cudaGraphInstantiateResult */

#define ASK                                                                                                      \
  "{ .param .b64 g; st.param.b64 [g], %rd5; .param .b64 s; st.param.b64 [s], %rd6; .param .b32 r; call.uni (r)," \
  " cudaGraphLaunch, (g, s); ld.param.b32 %r4, [r]; }\n"
#define NOTE                                                                                 \
  "ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [tag]; atom.global.add.u32 %r2, [%rd1], 1;\n" \
  "mul.wide.u32 %rd3, %r2, 4; add.u64 %rd3, %rd3, %rd1; st.global.u32 [%rd3+4], %r1;\n"
static const char *const module_text = PTX_HEAD
    ".extern .func (.param .b32 r) cudaGraphLaunch(.param .b64 graph, .param .b64 stream);\n"
    /* list: pairs of a graph and a stream, the last one 0; the first stream becomes the sum of the errors */
    ".visible .entry note(.param .u64 out, .param .u32 tag, .param .u64 list) {\n"
    ".reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %rd<9>;\n" NOTE
    "ld.param.u64 %rd4, [list]; mov.u64 %rd7, %rd4; mov.u64 %rd8, 0;\n"
    "next: ld.global.u64 %rd5, [%rd4]; setp.eq.u64 %p1, %rd5, 0; @%p1 bra end; ld.global.u64 %rd6, [%rd4+8];\n" ASK
    "cvt.u64.u32 %rd6, %r4; add.u64 %rd8, %rd8, %rd6; add.u64 %rd4, %rd4, 16; bra next;\n"
    "end: setp.ne.u64 %p1, %rd8, 0; @%p1 st.global.u64 [%rd7+8], %rd8; ret;\n}\n"
    /* Launches the graph that it is in until it has run `limit` times; limit 0: writes which graph that is. */
    ".visible .entry again(.param .u64 out, .param .u32 tag, .param .u32 limit) {\n"
    ".reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %rd<7>;\n" NOTE
    "mov.u64 %rd5, %current_graph_exec; ld.param.u32 %r3, [limit]; setp.eq.u32 %p1, %r3, 0;\n"
    "@%p1 st.global.u64 [%rd1+8], %rd5; add.u32 %r2, %r2, 1; setp.ge.u32 %p1, %r2, %r3; @%p1 ret;\n"
    "mov.u64 %rd6, 0x0100000000000000;\n" ASK "ret;\n}\n";
STUB(note);
STUB(again);

static uint32_t *out; /* [0]: how many tags */

static int set_up(void **state) {
  (void)state;
  void **handle = register_ptx(&module_text, 1);
  register_kernel(handle, note, "note");
  register_kernel(handle, again, "again");
  __cudaRegisterFatBinaryEnd(handle);
  return 0;
}

static int clear(void **state) {
  (void)state;
  (void)cudaDeviceReset();
  succeed(cudaMallocManaged((void **)&out, 4096 * sizeof *out, 1));
  memset(out, 0, 4096 * sizeof *out);
  return 0;
}

typedef struct asked {
  cudaGraphExec_t graph;
  uint64_t stream;
} asked;

static void add_note(cudaGraph_t graph, uint32_t tag, asked *list, cudaGraphNode_t *node,
                     const cudaGraphNode_t *after) {
  void *arguments[] = {&out, &tag, &list};
  cudaKernelNodeParams params = {.func = note, .gridDim = {1, 1, 1}, .blockDim = {1, 1, 1}, .kernelParams = arguments};
  succeed(cudaGraphAddKernelNode(node, graph, after, after ? 1 : 0, &params));
}

static asked *list_of(const asked *items, size_t count) {
  asked *list;
  succeed(cudaMallocManaged((void **)&list, (count + 1) * sizeof *list, 1));
  if (count) memcpy(list, items, count * sizeof *list);
  list[count] = (asked){0};
  return list;
}

/* A graph of a node that writes its tag, and launches `count` others. */
static cudaGraphExec_t noting(uint32_t tag, const asked *items, size_t count, unsigned long long flags) {
  cudaGraph_t graph;
  cudaGraphNode_t node;
  cudaGraphExec_t exec;
  succeed(cudaGraphCreate(&graph, 0));
  add_note(graph, tag, list_of(items, count), &node, NULL);
  succeed(cudaGraphInstantiateWithFlags(&exec, graph, flags));
  succeed(cudaGraphUpload(exec, NULL));
  return exec;
}

static void expect_tags(const uint32_t *tags, uint32_t count) {
  succeed(cudaDeviceSynchronize());
  assert_int_equal(out[0], count);
  for (uint32_t i = 0; i < count; i++) assert_int_equal(out[1 + i], tags[i]);
}

/* Those beside the graph come before those of its tail, in the order in which they were asked for; what they ask for
 * comes before the next. The asking graph's own nodes are first. */
static void order(void **state) {
  (void)state;
  cudaGraphExec_t e = noting(5, NULL, 0, DEVICE_LAUNCH), f = noting(6, NULL, 0, DEVICE_LAUNCH);
  cudaGraphExec_t a = noting(10, NULL, 0, DEVICE_LAUNCH), c = noting(12, NULL, 0, DEVICE_LAUNCH),
                  d = noting(13, NULL, 0, DEVICE_LAUNCH);
  cudaGraphExec_t b = noting(11, (asked[]){{f, TAIL}, {e, AT_ONCE}}, 2, DEVICE_LAUNCH);
  cudaGraph_t graph;
  cudaGraphNode_t first, second;
  cudaGraphExec_t exec;
  asked *list = list_of((asked[]){{a, TAIL}, {b, AT_ONCE}, {c, TAIL}, {d, SIBLING}}, 4);
  succeed(cudaGraphCreate(&graph, 0));
  add_note(graph, 1, list, &first, NULL);
  add_note(graph, 2, list_of(NULL, 0), &second, &first);
  succeed(cudaGraphInstantiateWithFlags(&exec, graph, 0)); /* launched by the host alone */
  succeed(cudaGraphLaunch(exec, NULL));
  static const uint32_t tags[] = {1, 2, 11, 5, 6, 13, 10, 12, 1, 2, 11, 5, 6, 13, 10, 12};
  expect_tags(tags, 8);
  assert_true(list[0].stream == TAIL); /* no error */
  succeed(cudaGraphLaunch(exec, NULL));
  expect_tags(tags, 16);
}

/* A loop without the host: the graph launches itself. */
static void itself(void **state) {
  (void)state;
  cudaGraph_t graph;
  cudaGraphNode_t node;
  cudaGraphExec_t exec;
  uint32_t tag = 3, limit = 1000;
  void *arguments[] = {&out, &tag, &limit};
  cudaKernelNodeParams params = {.func = again, .gridDim = {1, 1, 1}, .blockDim = {1, 1, 1}, .kernelParams = arguments};
  succeed(cudaGraphCreate(&graph, 0));
  succeed(cudaGraphAddKernelNode(&node, graph, NULL, 0, &params));
  succeed(cudaGraphInstantiateWithFlags(&exec, graph, DEVICE_LAUNCH));
  succeed(cudaGraphLaunch(exec, NULL));
  succeed(cudaMemsetAsync(out + 1, 0, sizeof *out, NULL)); /* waits for all of them */
  succeed(cudaDeviceSynchronize());
  assert_int_equal(out[0], limit);
  assert_true(!out[1] && out[2] == 3 && out[limit] == 3 && !out[limit + 1]);
  limit = 0;
  succeed(cudaGraphExecKernelNodeSetParams(exec, node, &params));
  succeed(cudaGraphLaunch(exec, NULL));
  succeed(cudaDeviceSynchronize());
  assert_true(!memcmp(out + 2, &exec, sizeof exec));
  succeed(launch(again, 1, 1, arguments));
  succeed(cudaDeviceSynchronize());
  assert_true(!out[2] && !out[3]); /* not in a graph */
}

static void refusals(void **state) {
  (void)state;
  cudaGraphExec_t target = noting(7, NULL, 0, DEVICE_LAUNCH);
  asked *list = list_of((asked[]){{target, 0}, {target, 2}, {target, TAIL}}, 3);
  uint32_t tag = 1;
  void *arguments[] = {&out, &tag, &list};
  /* no stream that takes graphs, twice; one that a kernel outside of graphs asks for */
  succeed(launch(note, 1, 1, arguments));
  expect_tags((uint32_t[]){1, 7}, 2);
  assert_int_equal(list[0].stream, 2 * cudaErrorInvalidValue);

  cudaGraph_t graph;
  cudaGraphNode_t node, host;
  cudaGraphExec_t exec;
  succeed(cudaGraphCreate(&graph, 0));
  add_note(graph, 1, list, &node, NULL);
  expect(cudaGraphInstantiateWithFlags(&exec, graph, DEVICE_LAUNCH | AUTO_FREE), cudaErrorInvalidValue);
  cudaHostNodeParams called = {.fn = free};
  succeed(cudaGraphAddHostNode(&host, graph, NULL, 0, &called));
  cudaGraphInstantiateParams asking = {.flags = DEVICE_LAUNCH};
  expect(cudaGraphInstantiateWithParams(&exec, graph, &asking), cudaErrorNotSupported);
  assert_ptr_equal(asking.errNode_out, host);
  assert_int_equal(asking.result_out, NODE_NOT_SUPPORTED);
}

static cudaGraphNode_t add_set(cudaGraph_t graph, int device) {
  void *at;
  cudaGraphNode_t node;
  succeed(cudaSetDevice(device));
  succeed(cudaMalloc(&at, 4));
  cudaMemsetParams params = {.dst = at, .elementSize = 4, .width = 1, .height = 1};
  succeed(cudaGraphAddMemsetNode(&node, graph, NULL, 0, &params));
  succeed(cudaSetDevice(0));
  return node;
}

/* All nodes must be of one device, which need not be that of the thread that made the graph. */
static void one_device(void **state) {
  (void)state;
  cudaGraph_t graph, child;
  cudaGraphNode_t node;
  cudaGraphExec_t exec;
  succeed(cudaGraphCreate(&graph, 0));
  succeed(cudaGraphCreate(&child, 0));
  add_set(child, 1);
  succeed(cudaGraphAddChildGraphNode(&node, graph, NULL, 0, child));
  cudaGraphInstantiateParams asking = {.flags = DEVICE_LAUNCH};
  succeed(cudaGraphInstantiateWithParams(&exec, graph, &asking));
  node = add_set(graph, 0);
  expect(cudaGraphInstantiateWithParams(&exec, graph, &asking), cudaErrorNotSupported);
  assert_int_equal(asking.result_out, DEVICES_NOT_SUPPORTED);
  assert_ptr_equal(asking.errNode_out, node);
}

/* One that is for the host to launch: the thread was told that it would run. */
static void not_for_kernels(void **state) {
  (void)state;
  cudaGraphExec_t target = noting(7, NULL, 0, 0), exec = noting(1, (asked[]){{target, AT_ONCE}}, 1, DEVICE_LAUNCH);
  succeed(cudaGraphLaunch(exec, NULL));
  expect(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  assert_int_equal(out[0], 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(order, clear),      cmocka_unit_test_setup(itself, clear),
      cmocka_unit_test_setup(refusals, clear),   cmocka_unit_test_setup(not_for_kernels, clear),
      cmocka_unit_test_setup(one_device, clear),
  };
  setenv("FARFAULT_DEVICES", "2", 1);
  return cmocka_run_group_tests(tests, set_up, NULL);
}
