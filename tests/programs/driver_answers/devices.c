/* SPDX-License-Identifier: Apache-2.0 */
/* Questions before cuInit, about devices and contexts, and with handles that are none. */
#define _GNU_SOURCE
#include "answers.h"


#define BAD 0x1234567000ul

static void before_init(void) {
  int number = 0;
  W word[8] = {0};
  ASK("", cuDriverGetVersion, &number);
  say("driver version", "%d", number);
  ASK("", cuDeviceGetCount, &number);
  ASK("", cuDeviceGet, &number, 0);
  ASK("", cuCtxGetCurrent, word);
  ASK("", cuCtxGetDevice, &number);
  ASK("", cuCtxSynchronize, 0);
  ASK("", cuMemAlloc_v2, word, 4);
  ASK("null", cuMemAlloc_v2, 0, 4);
  ASK("null", cuMemFree_v2, 0);
  ASK("", cuStreamCreate, word, 0);
  ASK("", cuStreamQuery, 0);
  ASK("", cuModuleLoadData, word, "x");
  ASK("", cuPointerGetAttribute, word, 1, &number);
  ASK("", cuDevicePrimaryCtxRetain, word, 0);
  ASK("", cuGetErrorName, 1, word);
  ASK("", cuGetErrorString, 1, word);
  ASK("no code", cuGetErrorName, 99999, word);
  say("its name", "%s", word[0] ? "given" : "null");
  ASK("null", cuGetErrorName, 1, 0);
  ASK("null", cuDriverGetVersion, 0);
  ASK("", cuDeviceGetAttribute, &number, 1, 0);
  ASK("", cuGraphCreate, word, 0);
  ASK("", cuEventCreate, word, 0);
  ASK("", cuProfilerStart, 0);
  ASK("", cuMemHostAlloc, word, 4, 0);
  ASK("", cuMemGetInfo_v2, word, word + 1);
  ASK("", cuGetProcAddress_v2, "cuInit", word, 13000, 0, 0);
  ASK("", cuLinkCreate_v2, 0, 0, 0, word);
  ASK("", cuFuncGetAttribute, &number, 0, 0);
  ASK("", cuLaunchKernel, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0);
  ASK("flags 1", cuInit, 1);
  ASK("flags 0", cuInit, 0);
  ASK("again", cuInit, 0);
}

static void errors(void) {
  for (int code = 0; code <= 1000; code++) {
    const char *name = NULL, *text = NULL;
    char key[20];
    int got = DO(cuGetErrorName, code, &name);
    DO(cuGetErrorString, code, &text);
    snprintf(key, sizeof key, "%d", code);
    if (!got) say(key, "%s: %s", name, text ? text : "(null)");
  }
}

static void attributes(void) {
  answers_context();
  for (int number = -1; number < 160; number++) {
    int value = -7;
    char key[20];
    int got = DO(cuDeviceGetAttribute, &value, number, 0);
    snprintf(key, sizeof key, "%03d", number);
    if (got) say(key, "%s", answers_name(got));
    else say(key, "%d", value);
  }
  ASK("null", cuDeviceGetAttribute, 0, 1, 0);
  int value = 0;
  ASK("no device", cuDeviceGetAttribute, &value, 1, 7);
  ASK("device -1", cuDeviceGetAttribute, &value, 1, -1);
}

static void device(void) {
  int number = 0, more = 0;
  W word[16] = {0};
  char text[200] = "";
  ASK("", cuInit, 0);
  ASK("null", cuDeviceGetCount, 0);
  ASK("null", cuDeviceGet, 0, 0);
  ASK("-1", cuDeviceGet, &number, -1);
  ASK("1", cuDeviceGet, &number, 1);
  ASK("", cuDeviceGetName, text, 100, 0);
  say("name", "%s", text);
  memset(text, 'x', 20);
  ASK("5 characters", cuDeviceGetName, text, 5, 0);
  say("short name", "%.8s", text);
  ASK("0 characters", cuDeviceGetName, text, 0, 0);
  ASK("null", cuDeviceGetName, 0, 5, 0);
  ASK("no device", cuDeviceGetName, text, 5, 9);
  ASK("", cuDeviceTotalMem_v2, word, 0);
  say("total memory", "%lu", word[0]);
  ASK("null", cuDeviceTotalMem_v2, 0, 0);
  ASK("no device", cuDeviceTotalMem_v2, word, 9);
  ASK("", cuDeviceComputeCapability, &number, &more, 0);
  say("compute capability", "%d.%d", number, more);
  ASK("null", cuDeviceComputeCapability, &number, 0, 0);
  int properties[20] = {0};
  ASK("", cuDeviceGetProperties, properties, 0);
  for (int i = 0; i < 14; i++) {
    snprintf(text, sizeof text, "property %02d", i);
    say(text, "%d", properties[i]);
  }
  ASK("null", cuDeviceGetProperties, 0, 0);
  ASK("null", cuDeviceGetUuid_v2, 0, 0);
  ASK("no device", cuDeviceGetUuid_v2, word, 4);
  ASK("", cuDeviceGetLuid, text, &number, 0);
  ASK("", cuDeviceGetPCIBusId, text, 100, 0);
  say("length of PCI bus id", "%zu", strlen(text));
  ASK("the same", cuDeviceGetByPCIBusId, &number, text);
  ASK("5 characters", cuDeviceGetPCIBusId, text, 5, 0);
  say("short PCI bus id", "%.8s", text);
  ASK("13 characters", cuDeviceGetPCIBusId, text, 13, 0);
  ASK("null", cuDeviceGetPCIBusId, 0, 50, 0);
  ASK("nonsense", cuDeviceGetByPCIBusId, &number, "hello");
  ASK("empty", cuDeviceGetByPCIBusId, &number, "");
  ASK("not there", cuDeviceGetByPCIBusId, &number, "0000:ee:00.0");
  ASK("null", cuDeviceGetByPCIBusId, &number, 0);
  ASK("itself", cuDeviceCanAccessPeer, &number, 0, 0);
  say("itself", "%d", number);
  ASK("no peer", cuDeviceCanAccessPeer, &number, 0, 1);
  ASK("null", cuDeviceCanAccessPeer, 0, 0, 0);
  for (int i = 0; i < 7; i++) {
    snprintf(text, sizeof text, "%d", i);
    ASK(text, cuDeviceGetP2PAttribute, &number, i, 0, 0);
  }
  ASK("no peer", cuDeviceGetP2PAttribute, &number, 1, 0, 1);
  for (int format = 0; format < 40; format++) {
    static const int formats[] = {1, 2, 3, 8, 9, 10, 16, 32};
    int channels[] = {1, 2, 3, 4, 5};
    if (format / 5 >= 8) break;
    word[0] = 0;
    snprintf(text, sizeof text, "format %d channels %d", formats[format / 5], channels[format % 5]);
    int got = DO(cuDeviceGetTexture1DLinearMaxWidth, word, formats[format / 5], channels[format % 5], 0);
    if (got) say(text, "%s", answers_name(got));
    else say(text, "%lu", word[0]);
  }
  ASK("", cuDeviceGetDefaultMemPool, word, 0);
  ASK("", cuDeviceGetMemPool, word + 1, 0);
  say("the default pool is current", "%d", word[0] == word[1]);
  ASK("null", cuDeviceGetMemPool, 0, 0);
  ASK("null", cuDeviceSetMemPool, 0, 0);
  ASK("no device", cuDeviceGetMemPool, word + 1, 1);
  ASK("no device", cuDeviceSetMemPool, 1, word[0]);
  ASK("no device", cuDeviceGetDefaultMemPool, word + 1, 1);
  for (int i = -1; i < 3; i++) {
    snprintf(text, sizeof text, "type %d", i);
    number = -1;
    ASK(text, cuDeviceGetExecAffinitySupport, &number, i, 0);
    say(text, "%d", number);
  }
  for (int i = 0; i < 5; i++) {
    snprintf(text, sizeof text, "attribute %d", i);
    word[0] = 77;
    ASK(text, cuDeviceGetGraphMemAttribute, 0, i, word);
    say(text, "%lu", word[0]);
    word[0] = 0;
    ASK(text, cuDeviceSetGraphMemAttribute, 0, i, word);
    word[0] = 1;
    snprintf(text, sizeof text, "attribute %d to 1", i);
    ASK(text, cuDeviceSetGraphMemAttribute, 0, i, word);
  }
  ASK("", cuDeviceGraphMemTrim, 0);
  ASK("no device", cuDeviceGraphMemTrim, 4);
  ASK("target 1 scope 1", cuFlushGPUDirectRDMAWrites, 0, 100);
  ASK("target 0 scope 0", cuFlushGPUDirectRDMAWrites, 0, 0);
}

static void contexts(void) {
  int number = 0, more = 0;
  unsigned flags = 0;
  W word[16] = {0}, context = 0, other = 0, current = 0;
  char text[200];
  MUST(cuInit, 0);
  ASK("none", cuCtxGetCurrent, &current);
  say("current", "%s", current ? "one" : "none");
  ASK("none", cuCtxGetDevice, &number);
  ASK("none", cuCtxSynchronize, 0);
  ASK("none", cuCtxPopCurrent_v2, &current);
  ASK("none", cuCtxGetFlags, &flags);
  ASK("none", cuCtxGetLimit, word, 0);
  ASK("none", cuMemAlloc_v2, word, 4);
  ASK("none", cuMemFree_v2, 0);
  ASK("none", cuMemFree_v2, BAD);
  ASK("none", cuStreamCreate, word, 0);
  ASK("none", cuStreamSynchronize, 0);
  ASK("none", cuEventCreate, word, 0);
  ASK("none", cuModuleLoadData, word, "x");
  ASK("none", cuMemHostAlloc, word, 4, 0);
  ASK("none", cuMemGetInfo_v2, word, word + 1);
  ASK("none", cuMemcpyHtoD_v2, BAD, word, 4);
  ASK("none", cuMemcpy, BAD, word, 4);
  ASK("none", cuMemsetD8_v2, BAD, 0, 4);
  ASK("none", cuLaunchKernel, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0);
  ASK("none", cuPointerGetAttribute, word, 2, &number);
  ASK("none", cuGraphCreate, word, 0);
  ASK("none", cuLinkCreate_v2, 0, 0, 0, word);
  ASK("none", cuCtxGetStreamPriorityRange, &number, &more);
  ASK("none", cuCtxGetApiVersion, 0, &flags);
  ASK("none", cuCtxDetach, 0);
  ASK("none", cuMemAllocManaged, word, 4, 1);
  ASK("none", cuMemAllocAsync, word, 4, 0);
  ASK("none", cuCtxGetCacheConfig, &number);
  ASK("none", cuCtxSetCacheConfig, 1);
  ASK("none", cuProfilerStart, 0);
  ASK("none", cuCtxResetPersistingL2Cache, 0);
  ASK("none", cuCtxEnablePeerAccess, 0, 0);
  ASK("none", cuTexRefCreate, word);
  ASK("none", cuLibraryLoadData, word, "x", 0, 0, 0, 0, 0, 0);
  ASK("none", cuIpcGetMemHandle, word, BAD);
  ASK("none", cuMemGetAddressRange_v2, word, word, BAD);
  ASK("no device", cuCtxCreate_v2, &context, 0, 5);
  ASK("flags 7", cuCtxCreate_v2, &context, 7, 0);
  ASK("flags 0x1000", cuCtxCreate_v2, &context, 0x1000, 0);
  ASK("flags 3", cuCtxCreate_v2, &context, 3, 0);
  ASK("flags 1", cuCtxCreate_v2, &context, 1, 0);
  ASK("", cuCtxGetFlags, &flags);
  say("flags", "%u", flags);
  ASK("null", cuCtxGetFlags, 0);
  ASK("null", cuCtxGetCurrent, 0);
  ASK("null", cuCtxGetDevice, 0);
  ASK("", cuCtxGetId, context, word);
  ASK("null", cuCtxGetId, context, 0);
  ASK("current", cuCtxGetId, 0, word);
  ASK("", cuCtxGetApiVersion, context, &flags);
  say("api version", "%u", flags);
  ASK("current", cuCtxGetApiVersion, 0, &flags);
  say("api version of the current", "%u", flags);
  ASK("null", cuCtxGetApiVersion, context, 0);
  for (int i = -1; i < 14; i++) {
    snprintf(text, sizeof text, "%d", i);
    word[0] = 7777;
    int got = ASK(text, cuCtxGetLimit, word, i);
    snprintf(text, sizeof text, "limit %d", i);
    if (!got) say(text, "%lu", word[0]);
  }
  ASK("null", cuCtxGetLimit, 0, 0);
  static const W limits[][2] = {{0, 0},       {0, 1},         {0, 1000},     {0, 1024}, {0, 1 << 16}, {0, 500000},
                                {0, 1 << 19}, {0, 1 << 30},   {1, 0},        {1, 1},    {1, 1000},    {1, 2 << 20},
                                {2, 0},       {2, 1},         {2, 16 << 20}, {3, 0},    {3, 2},       {3, 24},
                                {3, 25},      {4, 0},         {4, 1},        {4, 2048}, {5, 0},       {5, 1},
                                {5, 32},      {5, 64},        {5, 128},      {5, 256},  {6, 0},       {6, 1},
                                {6, 1 << 20}, {6, 1ul << 40}, {7, 1},        {8, 1},    {9, 1},       {12, 1}};
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    snprintf(text, sizeof text, "%lu to %lu", limits[i][0], limits[i][1]);
    int got = ASK(text, cuCtxSetLimit, limits[i][0], limits[i][1]);
    word[0] = 0;
    if (!got) DO(cuCtxGetLimit, word, limits[i][0]), say(text, "%lu", word[0]);
  }
  ASK("", cuCtxGetCacheConfig, &number);
  say("cache config", "%d", number);
  for (int i = -1; i < 5; i++) {
    snprintf(text, sizeof text, "%d", i);
    ASK(text, cuCtxSetCacheConfig, i);
  }
  ASK("again", cuCtxGetCacheConfig, &number);
  say("cache config after", "%d", number);
  ASK("", cuCtxGetSharedMemConfig, &number);
  say("shared memory config", "%d", number);
  ASK("2", cuCtxSetSharedMemConfig, 2);
  ASK("3", cuCtxSetSharedMemConfig, 3);
  ASK("after", cuCtxGetSharedMemConfig, &number);
  say("shared memory config after", "%d", number);
  ASK("", cuCtxGetStreamPriorityRange, &number, &more);
  say("priorities", "%d to %d", number, more);
  ASK("nulls", cuCtxGetStreamPriorityRange, 0, 0);
  ASK("4", cuCtxSetFlags, 4);
  ASK("7", cuCtxSetFlags, 7);
  ASK("0x400", cuCtxSetFlags, 0x400);
  ASK("8", cuCtxSetFlags, 8);
  ASK("0", cuCtxGetFlags, &flags);
  say("flags after", "%u", flags);
  ASK("null", cuCtxPushCurrent_v2, 0);
  ASK("itself", cuCtxPushCurrent_v2, context);
  ASK("", cuCtxPopCurrent_v2, &current);
  say("popped itself", "%d", current == context);
  ASK("null", cuCtxPopCurrent_v2, 0);
  ASK("after", cuCtxGetCurrent, &current);
  say("after two pops", "%s", current ? "one" : "none");
  ASK("one", cuCtxSetCurrent, context);
  ASK("a second", cuCtxCreate_v2, &other, 0, 0);
  W memory = 0;
  ASK("of the second", cuMemAlloc_v2, &memory, 4096);
  W stream = 0, event = 0;
  ASK("of the second", cuStreamCreate, &stream, 0);
  ASK("of the second", cuEventCreate, &event, 0);
  ASK("the first", cuCtxSetCurrent, context);
  ASK("other's memory", cuMemsetD8_v2, memory, 1, 16);
  ASK("other's memory", cuMemcpyDtoH_v2, word, memory, 16);
  ASK("other's stream", cuStreamQuery, stream);
  ASK("other's stream", cuStreamSynchronize, stream);
  ASK("other's stream, own event", cuEventCreate, word + 4, 0);
  ASK("own event, other's stream", cuEventRecord, word[4], stream);
  ASK("other's event, other's stream", cuEventRecord, event, stream);
  ASK("other's event, own stream", cuEventRecord, event, 0);
  ASK("own stream waits for other's event", cuStreamWaitEvent, 0, event, 0);
  ASK("other's event", cuEventQuery, event);
  ASK("other's event", cuEventSynchronize, event);
  ASK("other's memory", cuMemGetAddressRange_v2, word, word + 1, memory);
  ASK("other's memory", cuPointerGetAttribute, word, 1, memory);
  say("its context is the other", "%d", word[0] == other);
  ASK("other's memory", cuMemFree_v2, memory);
  ASK("other", cuCtxSynchronize_v2, other);
  ASK("other", cuCtxDestroy_v2, other);
  ASK("current", cuCtxDestroy_v2, context);
  ASK("after destroying the current", cuCtxGetCurrent, &current);
  say("after destroying the current", "%s", current ? "one" : "none");
  ASK("after destroying the current", cuMemAlloc_v2, word, 4);
  ASK("after destroying the current", cuCtxSynchronize, 0);
  ASK("null", cuCtxDestroy_v2, 0);
  ASK("", cuDevicePrimaryCtxGetState, 0, &flags, &number);
  say("primary", "flags %u active %d", flags, number);
  ASK("not retained", cuDevicePrimaryCtxRelease_v2, 0);
  ASK("flags 4", cuDevicePrimaryCtxSetFlags_v2, 0, 4);
  ASK("flags 7", cuDevicePrimaryCtxSetFlags_v2, 0, 7);
  ASK("flags 0x2000", cuDevicePrimaryCtxSetFlags_v2, 0, 0x2000);
  ASK("null", cuDevicePrimaryCtxRetain, 0, 0);
  ASK("no device", cuDevicePrimaryCtxRetain, word, 2);
  ASK("", cuDevicePrimaryCtxRetain, &context, 0);
  ASK("again", cuDevicePrimaryCtxRetain, &other, 0);
  say("primary contexts are the same", "%d", context == other);
  ASK("active", cuDevicePrimaryCtxGetState, 0, &flags, &number);
  say("primary active", "flags %u active %d", flags, number);
  ASK("while active", cuDevicePrimaryCtxSetFlags_v2, 0, 1);
  ASK("null flags", cuDevicePrimaryCtxGetState, 0, 0, &number);
  ASK("null state", cuDevicePrimaryCtxGetState, 0, &flags, 0);
  ASK("once", cuDevicePrimaryCtxRelease_v2, 0);
  ASK("still", cuMemAlloc_v2, &memory, 4);
  ASK("twice", cuDevicePrimaryCtxRelease_v2, 0);
  ASK("three times", cuDevicePrimaryCtxRelease_v2, 0);
  ASK("released", cuCtxGetCurrent, &current);
  say("released is current", "%d", current == context);
  ASK("released", cuMemAlloc_v2, &memory, 4);
  ASK("released", cuCtxGetDevice, &number);
  ASK("", cuDevicePrimaryCtxReset_v2, 0);
  ASK("back", cuDevicePrimaryCtxRetain, &other, 0);
  say("the same context again", "%d", context == other);
  ASK("with the old current", cuMemAlloc_v2, &memory, 4);
  ASK("after reset", cuDevicePrimaryCtxReset_v2, 0);
  ASK("after reset", cuMemFree_v2, memory);
  ASK("after reset", cuDevicePrimaryCtxGetState, 0, &flags, &number);
  say("after reset", "active %d, flags %u", number, flags);
}

static void destroy_one(W *context, W *stream, W *event) {
  MUST(cuInit, 0);
  MUST(cuCtxCreate_v2, context, 0, 0);
  MUST(cuStreamCreate, stream, 0);
  MUST(cuEventCreate, event, 0);
  MUST(cuCtxDestroy_v2, *context);
}

static void destroyed_contexts(void) {
  W c = 0, s = 0, e = 0, out[4] = {0};
  ALONE(destroy_one(&c, &s, &e); ASK("", cuCtxDestroy_v2, c));
  ALONE(destroy_one(&c, &s, &e); ASK("", cuCtxSetCurrent, c));
  ALONE(destroy_one(&c, &s, &e); ASK("", cuCtxPushCurrent_v2, c));
  ALONE(destroy_one(&c, &s, &e); ASK("", cuCtxGetApiVersion, c, out));
  ALONE(destroy_one(&c, &s, &e); ASK("", cuCtxGetId, c, out));
  ALONE(destroy_one(&c, &s, &e); ASK("", cuCtxSynchronize_v2, c));
  ALONE(destroy_one(&c, &s, &e); ASK("", cuStreamQuery, s));
  ALONE(destroy_one(&c, &s, &e); ASK("", cuStreamSynchronize, s));
  ALONE(destroy_one(&c, &s, &e); ASK("", cuStreamDestroy_v2, s));
  ALONE(destroy_one(&c, &s, &e); ASK("", cuStreamGetFlags, s, out));
  ALONE(destroy_one(&c, &s, &e); ASK("", cuEventQuery, e));
  ALONE(destroy_one(&c, &s, &e); ASK("", cuEventSynchronize, e));
  ALONE(destroy_one(&c, &s, &e); ASK("", cuEventDestroy_v2, e));
  ALONE(destroy_one(&c, &s, &e); answers_context(); ASK("another current", cuStreamQuery, s));
  ALONE(destroy_one(&c, &s, &e); answers_context(); ASK("another current", cuEventRecord, e, 0));
  ALONE(destroy_one(&c, &s, &e); answers_context(); ASK("another current", cuStreamWaitEvent, 0, e, 0));
  ALONE(c = (W)answers_context(); ASK("primary", cuCtxDestroy_v2, c); ASK("primary destroyed", cuCtxSetCurrent, c);
        ASK("primary destroyed", cuMemAlloc_v2, out, 4));
  ALONE(c = (W)answers_context(); MUST(cuDevicePrimaryCtxRelease_v2, 0); ASK("released", cuCtxSetCurrent, c);
        ASK("released", cuMemAlloc_v2, out, 4));
  ALONE(MUST(cuInit, 0); ASK("null", cuCtxCreate_v2, 0, 0, 0));
  ALONE(MUST(cuInit, 0); ASK("null", cuCtxCreate_v4, 0, 0, 0, 0));
  ALONE(MUST(cuInit, 0); MUST(cuCtxCreate_v2, &c, 0, 0); ASK("", cuCtxAttach, out, 0);
        ASK("flags", cuCtxAttach, out, 1); ASK("", cuCtxDetach, c); ASK("again", cuCtxDetach, c));
  ALONE(MUST(cuInit, 0); MUST(cuCtxCreate_v2, &c, 0, 0); ASK("created only", cuCtxDetach, c);
        ASK("detached", cuMemAlloc_v2, out, 4));
}

/* Freed streams, events, modules, pools and graphs, and numbers that never were handles. */
static W freed_stream(void) {
  W s = 0;
  answers_context();
  MUST(cuStreamCreate, &s, 0);
  MUST(cuStreamDestroy_v2, s);
  return s;
}
static W freed_event(void) {
  W e = 0;
  answers_context();
  MUST(cuEventCreate, &e, 0);
  MUST(cuEventDestroy_v2, e);
  return e;
}
static W freed_graph(void) {
  W g = 0;
  answers_context();
  MUST(cuGraphCreate, &g, 0);
  MUST(cuGraphDestroy, g);
  return g;
}

static void freed(void) {
  W out[4] = {0};
  ALONE(ASK("stream", cuStreamQuery, freed_stream()));
  ALONE(ASK("stream", cuStreamSynchronize, freed_stream()));
  ALONE(ASK("stream", cuStreamDestroy_v2, freed_stream()));
  ALONE(ASK("stream", cuStreamGetFlags, freed_stream(), out));
  ALONE(ASK("stream", cuStreamWaitEvent, freed_stream(), 0, 0));
  ALONE(ASK("stream", cuStreamIsCapturing, freed_stream(), out));
  ALONE(ASK("stream", cuStreamBeginCapture_v2, freed_stream(), 0));
  ALONE(ASK("event", cuEventQuery, freed_event()));
  ALONE(ASK("event", cuEventSynchronize, freed_event()));
  ALONE(ASK("event", cuEventRecord, freed_event(), 0));
  ALONE(ASK("event", cuEventDestroy_v2, freed_event()));
  ALONE(ASK("event", cuStreamWaitEvent, 0, freed_event(), 0));
  ALONE(ASK("graph", cuGraphDestroy, freed_graph()));
  ALONE(ASK("graph", cuGraphGetNodes, freed_graph(), 0, out));
  ALONE(ASK("graph", cuGraphClone, out, freed_graph()));
  ALONE(ASK("graph", cuGraphInstantiateWithFlags, out, freed_graph(), 0));
}

static void garbage(void) {
  static char zeros[4096] __attribute__((aligned(64)));
  W z = (W)zeros, out[4] = {0};
  ALONE(answers_context(); ASK("bad", cuCtxPushCurrent_v2, BAD));
  ALONE(answers_context(); ASK("bad", cuCtxSetCurrent, BAD));
  ALONE(answers_context(); ASK("zeros", cuCtxSetCurrent, z));
  ALONE(answers_context(); ASK("bad", cuCtxDestroy_v2, BAD));
  ALONE(answers_context(); ASK("bad", cuCtxGetApiVersion, BAD, out));
  ALONE(answers_context(); ASK("bad", cuStreamQuery, BAD));
  ALONE(answers_context(); ASK("zeros", cuStreamQuery, z));
  ALONE(answers_context(); ASK("3", cuStreamQuery, 3));
  ALONE(answers_context(); ASK("bad", cuStreamSynchronize, BAD));
  ALONE(answers_context(); ASK("zeros", cuStreamDestroy_v2, z));
  ALONE(answers_context(); ASK("bad", cuMemsetD8Async, answers_memory(64), 1, 16, BAD));
  ALONE(answers_context(); ASK("3", cuMemsetD8Async, answers_memory(64), 1, 16, 3));
  ALONE(answers_context(); ASK("bad", cuEventQuery, BAD));
  ALONE(answers_context(); ASK("zeros", cuEventQuery, z));
  ALONE(answers_context(); ASK("zeros", cuEventRecord, z, 0));
  ALONE(answers_context(); ASK("zeros", cuModuleUnload, z));
  ALONE(answers_context(); ASK("zeros", cuModuleGetFunction, out, z, "f"));
  ALONE(answers_context(); ASK("zeros", cuLaunchKernel, z, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0));
  ALONE(answers_context(); ASK("zeros", cuFuncGetAttribute, out, 0, z));
  ALONE(answers_context(); ASK("zeros", cuGraphDestroy, z));
  ALONE(answers_context(); ASK("zeros", cuGraphLaunch, z, 0));
  ALONE(answers_context(); ASK("zeros", cuGraphExecDestroy, z));
  ALONE(answers_context(); ASK("zeros", cuMemPoolDestroy, z));
  ALONE(answers_context(); ASK("zeros", cuArrayDestroy, z));
  ALONE(answers_context(); ASK("zeros", cuMemRelease, z));
  ALONE(answers_context(); ASK("12345", cuTexObjectDestroy, 12345));
  ALONE(answers_context(); ASK("12345", cuSurfObjectDestroy, 12345));
  ALONE(answers_context(); ASK("bad context", cuMemcpyPeer, answers_memory(64), BAD, answers_memory(64), BAD, 16));
  ALONE(answers_context(); ASK("zeros", cuLibraryUnload, z));
  ALONE(answers_context(); ASK("zeros", cuLinkDestroy, z));
}

const section sections_devices[] = {{"init", before_init}, {"errors", errors},     {"attributes", attributes},
                                    {"device", device},    {"contexts", contexts}, {"destroyed", destroyed_contexts},
                                    {"freed", freed},      {"garbage", garbage},   {NULL, NULL}};
