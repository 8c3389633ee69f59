/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about captures and graphs. */
#define _GNU_SOURCE
#include "answers.h"


#define HEAD ".version 7.0\n.target sm_75\n.address_size 64\n"

static const char kernels[] = HEAD
    ".visible .entry nothing() { ret; }\n"
    ".visible .entry one(.param .u64 to) { .reg .b64 %d<3>; .reg .b32 %r<3>; ld.param.u64 %d1, [to]; cvta.to.global.u64 %d1, %d1; mov.u32 %r1, 1; st.global.u32 [%d1], %r1; ret; }\n";

static void host_function(void *data) { (void)data; }

/* Each call once in each mode while a stream is being captured: its result, the capture's state, and its end. */
static W the_stream, the_event, the_memory, the_pinned, the_function;
static void capture_begin(int mode) {
  MUST(cuStreamCreate, &the_stream, 0);
  MUST(cuEventCreate, &the_event, 0);
  MUST(cuStreamBeginCapture_v2, the_stream, mode);
}
static void capture_end(int mode, const char *name, const char *label, int result) {
  char key[200], first[64], last[64];
  int status = -1;
  W graph = 0;
  static const char *const modes[] = {"global", "thread", "relaxed"};
  snprintf(key, sizeof key, "%s %s, %s", name, label, modes[mode]);
  snprintf(first, sizeof first, "%s", answers_name(result));
  int asked = DO(cuStreamIsCapturing, the_stream, &status);
  int ended = DO(cuStreamEndCapture, the_stream, &graph);
  snprintf(last, sizeof last, "%s", answers_name(ended));
  W nodes = 0;
  if (graph) DO(cuGraphGetNodes, graph, 0, &nodes);
  say(key, "%s, status %d %d, end %s, %lu nodes", first, asked, status, last, nodes);
  if (graph) DO(cuGraphDestroy, graph);
  DO(cuEventDestroy_v2, the_event);
  DO(cuStreamDestroy_v2, the_stream);
}
#define CAPTURED(label, name, ...)                          \
  do {                                                      \
    capture_begin(mode);                                    \
    capture_end(mode, #name, label, DO(name, __VA_ARGS__)); \
  } while (0)

static void captures(void) {
  W word[8] = {0}, other = 0, blocking = 0, old = 0, m = 0;
  char host[64] = {0};
  unsigned flags = 0;
  int number = 0;
  float time = 0;
  answers_context();
  W module = answers_module(kernels);
  the_function = answers_function(module, "nothing");
  the_memory = answers_memory(4096);
  MUST(cuMemHostAlloc, &the_pinned, 4096, 0);
  MUST(cuMemAllocManaged, &m, 65536, 1);
  MUST(cuStreamCreate, &other, 1);
  MUST(cuStreamCreate, &blocking, 0);
  MUST(cuEventCreate, &old, 0);
  MUST(cuEventRecord, old, other);
  MUST(cuCtxSynchronize, 0);
  for (int mode = 0; mode < 3; mode++) {
    CAPTURED("itself", cuStreamSynchronize, the_stream);
    CAPTURED("itself", cuStreamQuery, the_stream);
    CAPTURED("other", cuStreamSynchronize, other);
    CAPTURED("other", cuStreamQuery, other);
    CAPTURED("blocking", cuStreamQuery, blocking);
    CAPTURED("legacy", cuStreamSynchronize, 0);
    CAPTURED("legacy", cuStreamQuery, 0);
    CAPTURED("per thread", cuStreamQuery, 2);
    CAPTURED("", cuCtxSynchronize, 0);
    CAPTURED("", cuMemAlloc_v2, word, 16);
    CAPTURED("", cuMemFree_v2, word[0]);
    CAPTURED("null", cuMemFree_v2, 0);
    CAPTURED("", cuMemAllocManaged, word, 16, 1);
    DO(cuMemFree_v2, word[0]);
    CAPTURED("", cuMemHostAlloc, word, 16, 0);
    CAPTURED("", cuMemFreeHost, word[0]);
    CAPTURED("", cuMemHostRegister_v2, host, 64, 0);
    DO(cuMemHostUnregister, host);
    CAPTURED("", cuMemcpyHtoD_v2, the_memory, host, 16);
    CAPTURED("", cuMemcpyDtoH_v2, host, the_memory, 16);
    CAPTURED("", cuMemcpyDtoD_v2, the_memory, the_memory + 64, 16);
    CAPTURED("pageable", cuMemcpyHtoDAsync_v2, the_memory, host, 16, the_stream);
    CAPTURED("pageable", cuMemcpyDtoHAsync_v2, host, the_memory, 16, the_stream);
    CAPTURED("pinned", cuMemcpyHtoDAsync_v2, the_memory, the_pinned, 16, the_stream);
    CAPTURED("nothing", cuMemcpyHtoDAsync_v2, the_memory, the_pinned, 0, the_stream);
    CAPTURED("legacy", cuMemcpyHtoDAsync_v2, the_memory, the_pinned, 16, 0);
    CAPTURED("other", cuMemcpyHtoDAsync_v2, the_memory, the_pinned, 16, other);
    CAPTURED("blocking", cuMemcpyHtoDAsync_v2, the_memory, the_pinned, 16, blocking);
    CAPTURED("bad", cuMemcpyDtoDAsync_v2, the_memory, 0x1234567000, 16, the_stream);
    CAPTURED("", cuMemsetD8_v2, the_memory, 1, 16);
    CAPTURED("", cuMemsetD8Async, the_memory, 1, 16, the_stream);
    CAPTURED("bad", cuMemsetD8Async, 0x1234567000, 1, 16, the_stream);
    CAPTURED("legacy", cuMemsetD8Async, the_memory, 1, 16, 0);
    CAPTURED("", cuLaunchKernel, the_function, 1, 1, 1, 1, 1, 1, 0, the_stream, 0, 0);
    CAPTURED("legacy", cuLaunchKernel, the_function, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0);
    CAPTURED("other", cuLaunchKernel, the_function, 1, 1, 1, 1, 1, 1, 0, other, 0, 0);
    CAPTURED("bad shape", cuLaunchKernel, the_function, 1, 1, 1, 2000, 1, 1, 0, the_stream, 0, 0);
    CAPTURED("", cuLaunchCooperativeKernel, the_function, 1, 1, 1, 1, 1, 1, 0, the_stream, 0);
    CAPTURED("", cuEventRecord, the_event, the_stream);
    CAPTURED("external", cuEventRecordWithFlags, the_event, the_stream, 1);
    CAPTURED("external", cuStreamWaitEvent, the_stream, old, 1);
    CAPTURED("uncaptured", cuStreamWaitEvent, the_stream, old, 0);
    CAPTURED("never recorded", cuStreamWaitEvent, the_stream, the_event, 0);
    CAPTURED("old", cuEventQuery, old);
    CAPTURED("old", cuEventSynchronize, old);
    CAPTURED("old", cuEventElapsedTime, &time, old, old);
    CAPTURED("", cuStreamAddCallback, the_stream, host_function, 0, 0);
    CAPTURED("", cuLaunchHostFunc, the_stream, host_function, 0);
    CAPTURED("again", cuStreamBeginCapture_v2, the_stream, 0);
    CAPTURED("legacy", cuStreamBeginCapture_v2, 0, 0);
    CAPTURED("", cuStreamCreate, word, 0);
    CAPTURED("", cuStreamDestroy_v2, word[0]);
    CAPTURED("", cuEventCreate, word, 0);
    CAPTURED("", cuEventDestroy_v2, word[0]);
    CAPTURED("", cuModuleLoadData, word, kernels);
    CAPTURED("", cuModuleUnload, word[0]);
    CAPTURED("", cuModuleGetFunction, word, module, "one");
    CAPTURED("", cuFuncGetAttribute, &number, 0, the_function);
    CAPTURED("", cuFuncSetAttribute, the_function, 8, 1024);
    CAPTURED("", cuMemAllocAsync, word, 4096, the_stream);
    CAPTURED("not of the graph", cuMemFreeAsync, the_memory, the_stream);
    CAPTURED("", cuMemGetInfo_v2, word, word + 1);
    CAPTURED("", cuCtxSetLimit, 0, 2048);
    CAPTURED("", cuCtxGetLimit, word, 0);
    CAPTURED("", cuStreamGetFlags, the_stream, &flags);
    CAPTURED("", cuStreamGetId, the_stream, word);
    CAPTURED("", cuStreamAttachMemAsync, the_stream, m, 0, 1);
    CAPTURED("", cuMemPrefetchAsync, m, 4096, 0, the_stream);
    CAPTURED("", cuStreamWriteValue32_v2, the_stream, the_memory, 1, 0);
    CAPTURED("", cuStreamWaitValue32_v2, the_stream, the_memory, 1, 0);
    CAPTURED("", cuPointerGetAttribute, word, 2, the_memory);
    CAPTURED("", cuCtxGetCurrent, word);
    CAPTURED("", cuMemGetAddressRange_v2, word, word + 1, the_memory);
    CAPTURED("", cuGraphCreate, word, 0);
    CAPTURED("", cuMemAdvise, m, 4096, 1, 0);
    CAPTURED("null graph", cuStreamEndCapture, the_stream, 0);
    CAPTURED("other", cuStreamEndCapture, other, word);
    capture_begin(mode);
    DO(cuEventRecord, the_event, the_stream);
    capture_end(mode, "cuEventQuery", "captured", DO(cuEventQuery, the_event));
    capture_begin(mode);
    DO(cuEventRecord, the_event, the_stream);
    capture_end(mode, "cuEventSynchronize", "captured", DO(cuEventSynchronize, the_event));
    capture_begin(mode);
    DO(cuEventRecord, the_event, the_stream);
    capture_end(mode, "cuEventElapsedTime", "captured", DO(cuEventElapsedTime, &time, old, the_event));
    W fork = 0;
    MUST(cuStreamCreate, &fork, 1);
    capture_begin(mode);
    DO(cuEventRecord, the_event, the_stream);
    capture_end(mode, "cuStreamWaitEvent", "fork, nothing done", DO(cuStreamWaitEvent, fork, the_event, 0));
    ASK("after an unjoined capture", cuStreamIsCapturing, fork, &number);
    say("after an unjoined capture", "%d", number);
    DO(cuStreamDestroy_v2, fork);
    MUST(cuStreamCreate, &fork, 1);
    capture_begin(mode);
    DO(cuEventRecord, the_event, the_stream);
    DO(cuStreamWaitEvent, fork, the_event, 0);
    capture_end(mode, "cuLaunchKernel", "fork, not joined",
                DO(cuLaunchKernel, the_function, 1, 1, 1, 1, 1, 1, 0, fork, 0, 0));
    ASK("not joined", cuStreamIsCapturing, fork, &number);
    say("not joined", "%d", number);
    ASK("a fork", cuStreamEndCapture, fork, word);
    DO(cuStreamDestroy_v2, fork);
    MUST(cuStreamCreate, &fork, 1);
    capture_begin(mode);
    DO(cuEventRecord, the_event, the_stream);
    DO(cuStreamWaitEvent, fork, the_event, 0);
    capture_end(mode, "cuStreamEndCapture", "of the fork", DO(cuStreamEndCapture, fork, word));
    DO(cuStreamDestroy_v2, fork);
    MUST(cuStreamCreate, &fork, 1);
    W second = 0;
    MUST(cuStreamBeginCapture_v2, fork, mode);
    capture_begin(mode);
    DO(cuEventRecord, the_event, the_stream);
    capture_end(mode, "cuStreamWaitEvent", "of another capture", DO(cuStreamWaitEvent, fork, the_event, 0));
    ASK("merged", cuStreamEndCapture, fork, &second);
    DO(cuStreamDestroy_v2, fork);
    ASK("after all", cuCtxSynchronize, 0);
    ASK("not capturing", cuStreamEndCapture, other, word);
    int set = mode;
    ASK("", cuThreadExchangeStreamCaptureMode, &set);
    say("mode before", "%d", set);
    DO(cuThreadExchangeStreamCaptureMode, &set);
  }
  int set = 5;
  ASK("5", cuThreadExchangeStreamCaptureMode, &set);
  ASK("null", cuThreadExchangeStreamCaptureMode, 0);
  ASK("mode 3", cuStreamBeginCapture_v2, other, 3);
  ASK("null", cuStreamIsCapturing, other, 0);
  capture_begin(0);
  ASK("capturing", cuStreamDestroy_v2, the_stream);
  ASK("after a capturing stream was destroyed", cuMemAlloc_v2, word, 16);
  capture_begin(0);
  MUST(cuMemsetD8Async, the_memory, 1, 16, the_stream);
  int status = 0;
  W id = 0, graph = 0, count = 0, list = 0;
  ASK("", cuStreamGetCaptureInfo_v2, the_stream, &status, &id, &graph, &list, &count);
  say("info", "status %d, %s graph, %lu dependencies", status, graph ? "a" : "no", count);
  ASK("nulls", cuStreamGetCaptureInfo_v2, the_stream, 0, 0, 0, 0, 0);
  ASK("status only", cuStreamGetCaptureInfo_v2, the_stream, &status, 0, 0, 0, 0);
  ASK("legacy", cuStreamGetCaptureInfo_v2, 0, &status, &id, 0, 0, 0);
  ASK("the graph of a capture", cuGraphDestroy, graph);
  ASK("the graph of a capture", cuGraphInstantiateWithFlags, word, graph, 0);
  ASK("the graph of a capture", cuGraphAddEmptyNode, word, graph, 0, 0);
  ASK("flags 0, none", cuStreamUpdateCaptureDependencies, the_stream, 0, 0, 0);
  ASK("flags 1, none", cuStreamUpdateCaptureDependencies, the_stream, 0, 0, 1);
  ASK("flags 2", cuStreamUpdateCaptureDependencies, the_stream, 0, 0, 2);
  ASK("dependencies", cuStreamEndCapture, the_stream, &graph);
  ASK("", cuGraphGetNodes, graph, 0, &count);
  say("nodes", "%lu", count);
}

static void graphs(void) {
  W g = 0, x = 0, n = 0, o = 0, word[32] = {0}, count = 0;
  char text[100];
  int number = 0;
  answers_context();
  W module = answers_module(kernels), nothing = answers_function(module, "nothing"),
    one = answers_function(module, "one"), d = answers_memory(4096);
  ASK("null", cuGraphCreate, 0, 0);
  ASK("flags 1", cuGraphCreate, &g, 1);
  ASK("", cuGraphCreate, &g, 0);
  ASK("null graph", cuGraphAddEmptyNode, &n, 0, 0, 0);
  ASK("null node", cuGraphAddEmptyNode, 0, g, 0, 0);
  ASK("null dependencies", cuGraphAddEmptyNode, &n, g, 0, 1);
  ASK("", cuGraphAddEmptyNode, &n, g, 0, 0);
  W twice[2] = {n, n};
  ASK("the same dependency twice", cuGraphAddEmptyNode, &o, g, twice, 2);
  ASK("", cuGraphAddEmptyNode, &o, g, &n, 1);
  ASK("again", cuGraphAddDependencies, g, &n, &o, 1);
  ASK("a cycle", cuGraphAddDependencies, g, &o, &n, 1);
  ASK("itself", cuGraphAddDependencies, g, &n, &n, 1);
  ASK("none", cuGraphAddDependencies, g, &n, &n, 0);
  ASK("nulls", cuGraphAddDependencies, g, 0, 0, 1);
  ASK("with a cycle", cuGraphInstantiateWithFlags, &x, g, 0);
  ASK("not there", cuGraphRemoveDependencies, g, &n, &n, 1);
  ASK("a cycle", cuGraphRemoveDependencies, g, &o, &n, 1);
  ASK("after the cycle", cuGraphInstantiateWithFlags, &x, g, 0);
  ASK("null", cuGraphGetNodes, g, 0, 0);
  ASK("", cuGraphGetNodes, g, 0, &count);
  say("nodes", "%lu", count);
  count = 10;
  ASK("room for ten", cuGraphGetNodes, g, word, &count);
  say("nodes of ten", "%lu, the third %s", count, word[2] ? "set" : "null");
  count = 1;
  ASK("room for one", cuGraphGetNodes, g, word, &count);
  say("nodes of one", "%lu", count);
  ASK("", cuGraphGetRootNodes, g, 0, &count);
  say("roots", "%lu", count);
  ASK("", cuGraphGetEdges, g, 0, 0, &count);
  say("edges", "%lu", count);
  W hub = 0, from[3] = {0}, to[3] = {0}, spare = 0;
  MUST(cuGraphCreate, &spare, 0);
  MUST(cuGraphAddEmptyNode, &hub, spare, 0, 0);
  for (int i = 0; i < 3; i++) MUST(cuGraphAddEmptyNode, word + 10, spare, &hub, 1);
  count = 1;
  ASK("room for one", cuGraphGetEdges, spare, from, to, &count);
  say("edges of one", "%lu", count);
  count = 1;
  ASK("room for one", cuGraphNodeGetDependentNodes, hub, from, &count);
  say("dependent nodes of one", "%lu", count);
  ASK("no room asked for", cuGraphNodeGetDependentNodes, hub, 0, &count);
  say("dependent nodes", "%lu", count);
  ASK("", cuGraphNodeGetType, n, &number);
  say("type of empty", "%d", number);
  ASK("null", cuGraphNodeGetType, n, 0);
  ASK("null", cuGraphNodeGetType, 0, &number);
  struct {
    W function;
    unsigned grid[3], block[3], shared;
    W parameters, extra, kernel, context;
  } k = {nothing, {1, 1, 1}, {1, 1, 1}, 0, 0, 0, 0, 0};
  ASK("", cuGraphAddKernelNode_v2, &n, g, 0, 0, &k);
  ASK("null", cuGraphAddKernelNode_v2, &n, g, 0, 0, 0);
  k.grid[0] = 0;
  ASK("no blocks", cuGraphAddKernelNode_v2, &n, g, 0, 0, &k);
  k.grid[0] = 1, k.block[1] = 0;
  ASK("no threads", cuGraphAddKernelNode_v2, &n, g, 0, 0, &k);
  k.block[1] = 2000;
  ASK("2000 threads", cuGraphAddKernelNode_v2, &n, g, 0, 0, &k);
  k.block[1] = 1, k.shared = 1 << 20;
  ASK("too much shared memory", cuGraphAddKernelNode_v2, &n, g, 0, 0, &k);
  k.shared = 0, k.function = 0;
  ASK("null function", cuGraphAddKernelNode_v2, &n, g, 0, 0, &k);
  k.function = one;
  ASK("no parameters", cuGraphAddKernelNode_v2, &n, g, 0, 0, &k);
  W parameter = (W)&d;
  k.parameters = (W)&parameter;
  ASK("parameters", cuGraphAddKernelNode_v2, &n, g, 0, 0, &k);
  k.extra = (W)word;
  ASK("parameters twice", cuGraphAddKernelNode_v2, &n, g, 0, 0, &k);
  struct {
    W to, pitch;
    unsigned value, element;
    W width, height;
  } m = {d, 0, 1, 1, 16, 1};
  void *context = NULL;
  DO(cuCtxGetCurrent, &context);
  ASK("", cuGraphAddMemsetNode, &n, g, 0, 0, &m, context);
  ASK("null context", cuGraphAddMemsetNode, &n, g, 0, 0, &m, 0);
  ASK("null", cuGraphAddMemsetNode, &n, g, 0, 0, 0, context);
  m.element = 3;
  ASK("element 3", cuGraphAddMemsetNode, &n, g, 0, 0, &m, context);
  m.element = 4, m.to = d + 2;
  ASK("odd", cuGraphAddMemsetNode, &n, g, 0, 0, &m, context);
  m.to = 0;
  ASK("to null", cuGraphAddMemsetNode, &n, g, 0, 0, &m, context);
  m.to = d, m.width = 0;
  ASK("no width", cuGraphAddMemsetNode, &n, g, 0, 0, &m, context);
  m.width = 2000;
  ASK("too long", cuGraphAddMemsetNode, &n, g, 0, 0, &m, context);
  m.width = 16, m.height = 0;
  ASK("no height", cuGraphAddMemsetNode, &n, g, 0, 0, &m, context);
  m.height = 4, m.pitch = 8;
  ASK("small pitch", cuGraphAddMemsetNode, &n, g, 0, 0, &m, context);
  m.height = 1, m.pitch = 0, m.element = 1, m.value = 300;
  ASK("value of nine bits", cuGraphAddMemsetNode, &n, g, 0, 0, &m, context);
  struct {
    W function, data;
  } h = {(W)host_function, 0};
  ASK("", cuGraphAddHostNode, &n, g, 0, 0, &h);
  ASK("null", cuGraphAddHostNode, &n, g, 0, 0, 0);
  h.function = 0;
  ASK("null function", cuGraphAddHostNode, &n, g, 0, 0, &h);
  ASK("a kernel's parameters", cuGraphKernelNodeGetParams_v2, n, word);
  ASK("null", cuGraphHostNodeGetParams, n, 0);
  ASK("null event", cuGraphAddEventRecordNode, &n, g, 0, 0, 0);
  ASK("null event", cuGraphAddEventWaitNode, &n, g, 0, 0, 0);
  ASK("itself", cuGraphAddChildGraphNode, &n, g, 0, 0, g);
  ASK("null", cuGraphAddChildGraphNode, &n, g, 0, 0, 0);
  W empty = 0, ex = 0;
  MUST(cuGraphCreate, &empty, 0);
  ASK("empty", cuGraphInstantiateWithFlags, &ex, empty, 0);
  ASK("empty", cuGraphLaunch, ex, 0);
  ASK("null", cuGraphLaunch, 0, 0);
  ASK("", cuGraphUpload, ex, 0);
  ASK("null", cuGraphExecDestroy, 0);
  ASK("null", cuGraphDestroy, 0);
  ASK("null", cuGraphDestroyNode, 0);
  ASK("null", cuGraphClone, 0, g);
  ASK("", cuGraphClone, word, empty);
  for (W flags = 0; flags < 32; flags = flags ? flags * 2 : 1) {
    snprintf(text, sizeof text, "flags %lu", flags);
    ASK(text, cuGraphInstantiateWithFlags, &ex, empty, flags);
    W got = 99;
    ASK(text, cuGraphExecGetFlags, ex, &got);
    say(text, "%lu", got);
  }
  ASK("null", cuGraphInstantiateWithFlags, 0, empty, 0);
  ASK("null graph", cuGraphInstantiateWithFlags, &ex, 0, 0);
  /* memory of graphs */
  W a = 0, b = 0;
  MUST(cuGraphCreate, &a, 0);
  struct {
    int type, handles, place, id;
    W security, most;
    unsigned short usage;
    char reserved[54];
    W access, access_count, bytes, address;
  } p;
  memset(&p, 0, sizeof p);
  p.type = 1, p.place = 1, p.bytes = 1000;
  ASK("", cuGraphAddMemAllocNode, &n, a, 0, 0, &p);
  say("address", "%s", p.address ? "given" : "null");
  W given = p.address;
  p.bytes = 0;
  ASK("nothing", cuGraphAddMemAllocNode, &o, a, 0, 0, &p);
  p.bytes = ~0ul;
  ASK("too much", cuGraphAddMemAllocNode, &o, a, 0, 0, &p);
  p.bytes = 16, p.type = 0;
  ASK("type 0", cuGraphAddMemAllocNode, &o, a, 0, 0, &p);
  p.type = 1, p.handles = 1;
  ASK("shareable", cuGraphAddMemAllocNode, &o, a, 0, 0, &p);
  p.handles = 0, p.id = 3;
  ASK("no device", cuGraphAddMemAllocNode, &o, a, 0, 0, &p);
  ASK("in a clone", cuGraphClone, &b, a);
  MUST(cuGraphCreate, &b, 0);
  ASK("with memory", cuGraphAddChildGraphNode, &o, b, 0, 0, a);
  ASK("not of a graph", cuGraphAddMemFreeNode, &o, a, &n, 1, d);
  ASK("not after it", cuGraphAddMemFreeNode, &o, a, 0, 0, given);
  ASK("", cuGraphAddMemFreeNode, &o, a, &n, 1, given);
  ASK("twice", cuGraphAddMemFreeNode, &o, a, &n, 1, given);
  ASK("of an allocation", cuGraphDestroyNode, n);
  ASK("with memory", cuGraphRemoveDependencies, a, &n, &o, 1);
  ASK("with memory", cuGraphInstantiateWithFlags, &ex, a, 0);
  ASK("with memory, twice", cuGraphInstantiateWithFlags, word, a, 0);
  ASK("with memory", cuGraphLaunch, ex, 0);
  ASK("with memory, again", cuGraphLaunch, ex, 0);
  ASK("with memory", cuCtxSynchronize, 0);
  /* updates */
  W u = 0, v = 0, un = 0, vn = 0, ux = 0;
  MUST(cuGraphCreate, &u, 0);
  MUST(cuGraphCreate, &v, 0);
  k.function = nothing, k.parameters = 0, k.extra = 0;
  MUST(cuGraphAddKernelNode_v2, &un, u, 0, 0, &k);
  MUST(cuGraphInstantiateWithFlags, &ux, u, 0);
  k.grid[0] = 5;
  MUST(cuGraphAddKernelNode_v2, &vn, v, 0, 0, &k);
  struct {
    int result;
    W node, from;
  } info = {0};
  ASK("another grid", cuGraphExecUpdate_v2, ux, v, &info);
  say("update", "%d", info.result);
  MUST(cuGraphAddEmptyNode, &o, v, 0, 0);
  ASK("one node more", cuGraphExecUpdate_v2, ux, v, &info);
  say("update with one node more", "%d, %s", info.result, info.node ? "a node" : "no node");
  MUST(cuGraphDestroyNode, vn);
  ASK("another type", cuGraphExecUpdate_v2, ux, v, &info);
  say("update with another type", "%d, %s", info.result, info.node ? "a node" : "no node");
  ASK("null info", cuGraphExecUpdate_v2, ux, v, 0);
  ASK("", cuGraphExecKernelNodeSetParams_v2, ux, un, &k);
  k.function = one;
  ASK("another function, no parameters", cuGraphExecKernelNodeSetParams_v2, ux, un, &k);
  ASK("a node of another graph", cuGraphExecKernelNodeSetParams_v2, ux, o, &k);
  ASK("null", cuGraphExecKernelNodeSetParams_v2, ux, un, 0);
  unsigned enabled = 9;
  ASK("", cuGraphNodeGetEnabled, ux, un, &enabled);
  say("enabled", "%u", enabled);
  ASK("0", cuGraphNodeSetEnabled, ux, un, 0);
  ASK("7", cuGraphNodeSetEnabled, ux, un, 7);
  ASK("no kernel", cuGraphNodeSetEnabled, ux, o, 0);
  ASK("disabled", cuGraphLaunch, ux, 0);
  ASK("", cuGraphDebugDotPrint, u, "/nowhere/at/all", 0);
  ASK("empty", cuGraphDebugDotPrint, u, "", 0);
  ASK("null", cuGraphDebugDotPrint, u, 0, 0);
  /* user objects */
  W object = 0;
  ASK("count 0", cuUserObjectCreate, &object, 0, host_function, 0, 1);
  ASK("flags 0", cuUserObjectCreate, &object, 0, host_function, 1, 0);
  ASK("null destructor", cuUserObjectCreate, &object, 0, 0, 1, 1);
  ASK("", cuUserObjectCreate, &object, 0, host_function, 2, 1);
  ASK("count 0", cuUserObjectRetain, object, 0);
  ASK("", cuGraphRetainUserObject, g, object, 1, 0);
  ASK("flags 2", cuGraphRetainUserObject, g, object, 1, 2);
  ASK("", cuGraphReleaseUserObject, g, object, 1);
  ASK("never retained", cuGraphReleaseUserObject, v, object, 1);
  ASK("null", cuUserObjectRelease, 0, 1);
}

const section sections_graphs[] = {{"captures", captures}, {"graphs", graphs}, {NULL, NULL}};
