/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about what came with CUDA 12 and 13: tensor maps, green contexts, conditional nodes, batches, places of
 * memory. */
#define _GNU_SOURCE
#include "answers.h"

static const char kernels[] = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry nothing() { ret; }\n";

/* One encoding, with the case's difference from a good one. */
typedef struct tensor {
  int type, rank, interleave, swizzle, promotion, fill;
  W address, sizes[5], strides[5];
  unsigned box[5], steps[5];
} tensor;
static void encode(const char *label, tensor t) {
  static unsigned char map[256];
  unsigned char *at = (unsigned char *)(((uintptr_t)map + 63) & ~(uintptr_t)63);
  ASK(label, cuTensorMapEncodeTiled, at, t.type, t.rank, t.address, t.sizes, t.strides, t.box, t.steps, t.interleave,
      t.swizzle, t.promotion, t.fill);
}

static void tensor_maps(void) {
  answers_context();
  tensor good = {7, 2, 0, 0, 0, 0, answers_memory(1 << 20), {64, 64}, {256}, {32, 32}, {1, 1}}, t;
  char text[100];
  encode("good", good);
  for (int i = -1; i < 17; i++) {
    t = good, t.type = i;
    snprintf(text, sizeof text, "type %d", i);
    encode(text, t);
  }
  for (int i = 0; i < 7; i++) {
    t = good, t.rank = i;
    for (int k = 1; k < 5; k++) t.sizes[k] = 4, t.strides[k] = 1024ul << (2 * k), t.box[k] = 2, t.steps[k] = 1;
    snprintf(text, sizeof text, "rank %d", i);
    encode(text, t);
  }
  for (int i = 0; i < 8; i++) {
    t = good, t.swizzle = i;
    for (int box = 8; box <= 64; box *= 2) {
      t.box[0] = (unsigned)box;
      snprintf(text, sizeof text, "swizzle %d, box of %d", i, box);
      encode(text, t);
    }
  }
  for (int i = 0; i < 4; i++) {
    t = good, t.interleave = i;
    snprintf(text, sizeof text, "interleave %d of rank 2", i);
    encode(text, t);
    t.rank = 3, t.sizes[2] = 4, t.strides[1] = 1 << 14, t.box[2] = t.steps[2] = 1, t.box[0] = 8;
    snprintf(text, sizeof text, "interleave %d of rank 3", i);
    encode(text, t);
    t.swizzle = 1;
    snprintf(text, sizeof text, "interleave %d of rank 3, swizzle 1", i);
    encode(text, t);
  }
  for (int i = 0; i < 5; i++) {
    t = good, t.promotion = i;
    snprintf(text, sizeof text, "promotion %d", i);
    encode(text, t);
    t = good, t.fill = i;
    snprintf(text, sizeof text, "fill %d", i);
    encode(text, t);
    t.type = 2;
    snprintf(text, sizeof text, "fill %d of integers", i);
    encode(text, t);
  }
  for (W i = 1; i <= 32; i *= 2) {
    t = good, t.address += i;
    snprintf(text, sizeof text, "address %lu further", i);
    encode(text, t);
  }
  t = good, t.address = 0;
  encode("address null", t);
  static const W strides[] = {0, 8, 16, 24, 128, 255, 256, 1ul << 39, (1ul << 40) - 16, 1ul << 40};
  for (int i = 0; i < 10; i++) {
    t = good, t.strides[0] = strides[i];
    snprintf(text, sizeof text, "stride %lu", strides[i]);
    encode(text, t);
  }
  static const W sizes[] = {0, 1, 3, 16, 1ul << 31, 1ul << 32, (1ul << 32) + 1};
  for (int i = 0; i < 7; i++) {
    t = good, t.sizes[0] = sizes[i];
    snprintf(text, sizeof text, "size %lu", sizes[i]);
    encode(text, t);
  }
  static const unsigned boxes[] = {0, 1, 2, 3, 4, 6, 64, 128, 255, 256, 257};
  for (int i = 0; i < 11; i++) {
    t = good, t.box[0] = boxes[i];
    snprintf(text, sizeof text, "box %u", boxes[i]);
    encode(text, t);
    t = good, t.box[1] = boxes[i];
    snprintf(text, sizeof text, "box %u high", boxes[i]);
    encode(text, t);
  }
  static const unsigned steps[] = {0, 1, 2, 7, 8, 9};
  for (int i = 0; i < 6; i++) {
    t = good, t.steps[0] = steps[i];
    snprintf(text, sizeof text, "step %u", steps[i]);
    encode(text, t);
    t = good, t.steps[1] = steps[i];
    snprintf(text, sizeof text, "step %u down", steps[i]);
    encode(text, t);
  }
  static unsigned char map[256];
  unsigned char *at = (unsigned char *)(((uintptr_t)map + 63) & ~(uintptr_t)63);
  ASK("null map", cuTensorMapEncodeTiled, 0, 7, 2, good.address, good.sizes, good.strides, good.box, good.steps, 0, 0,
      0, 0);
  ASK("odd map", cuTensorMapEncodeTiled, at + 8, 7, 2, good.address, good.sizes, good.strides, good.box, good.steps, 0,
      0, 0, 0);
  ASK("null sizes", cuTensorMapEncodeTiled, at, 7, 2, good.address, 0, good.strides, good.box, good.steps, 0, 0, 0, 0);
  ASK("null strides", cuTensorMapEncodeTiled, at, 7, 2, good.address, good.sizes, 0, good.box, good.steps, 0, 0, 0, 0);
  ASK("null strides, rank 1", cuTensorMapEncodeTiled, at, 7, 1, good.address, good.sizes, 0, good.box, good.steps, 0, 0,
      0, 0);
  ASK("null box", cuTensorMapEncodeTiled, at, 7, 2, good.address, good.sizes, good.strides, 0, good.steps, 0, 0, 0, 0);
  ASK("null steps", cuTensorMapEncodeTiled, at, 7, 2, good.address, good.sizes, good.strides, good.box, 0, 0, 0, 0, 0);
  ASK("good again", cuTensorMapEncodeTiled, at, 7, 2, good.address, good.sizes, good.strides, good.box, good.steps, 0,
      0, 0, 0);
  ASK("", cuTensorMapReplaceAddress, at, good.address + 64);
  ASK("odd", cuTensorMapReplaceAddress, at, good.address + 4);
  ASK("null", cuTensorMapReplaceAddress, at, 0);
  ASK("null map", cuTensorMapReplaceAddress, 0, good.address);
}

typedef struct resource {
  int type;
  unsigned char padding[92];
  unsigned count, rest[11];
} resource;
_Static_assert(sizeof(resource) == 144, "CUdevResource");

static void green(void) {
  void *context = answers_context();
  resource all, groups[64], left, other;
  W description = 0, g = 0, s = 0, word[4] = {0};
  unsigned count = 0;
  char text[100];
  for (int type = -1; type < 4; type++) {
    memset(&all, 0, sizeof all);
    snprintf(text, sizeof text, "type %d", type);
    ASK(text, cuDeviceGetDevResource, 0, &all, type);
    ASK(text, cuCtxGetDevResource, context, &all, type);
    say(text, "%u", all.count);
  }
  MUST(cuDeviceGetDevResource, 0, &all, 1);
  say("the whole", "type %d, %u SMs, %u %u", all.type, all.count, all.rest[0], all.rest[1]);
  ASK("no device", cuDeviceGetDevResource, 4, &all, 1);
  ASK("null", cuDeviceGetDevResource, 0, 0, 1);
  static const unsigned least[] = {0,  1,  2,  7,  8,  9,   12,  16,  17,  24,  32,
                                   50, 60, 64, 66, 67, 100, 128, 130, 132, 133, 1000};
  for (int i = 0; i < 22; i++)
    for (unsigned flags = 0; flags < 4; flags++) {
      count = 64;
      memset(groups, 0, sizeof groups);
      memset(&left, 0, sizeof left);
      snprintf(text, sizeof text, "groups of %u, flags %u", least[i], flags);
      int got = ASK(text, cuDevSmResourceSplitByCount, groups, &count, &all, &left, flags, least[i]);
      if (!got) say(text, "%u groups of %u, %u left", count, groups[0].count, left.count);
    }
  count = 2;
  ASK("two of 16", cuDevSmResourceSplitByCount, groups, &count, &all, &left, 0, 16);
  say("two of 16", "%u groups of %u and %u, %u left", count, groups[0].count, groups[1].count, left.count);
  ASK("null left", cuDevSmResourceSplitByCount, groups, &count, &all, 0, 0, 16);
  ASK("null count", cuDevSmResourceSplitByCount, groups, 0, &all, &left, 0, 16);
  ASK("null input", cuDevSmResourceSplitByCount, groups, &count, 0, &left, 0, 16);
  count = 0;
  ASK("none", cuDevSmResourceSplitByCount, groups, &count, &all, &left, 0, 16);
  count = 0;
  ASK("how many", cuDevSmResourceSplitByCount, 0, &count, &all, 0, 0, 16);
  say("how many", "%u", count);
  ASK("flags 8", cuDevSmResourceSplitByCount, groups, &count, &all, &left, 8, 16);
  count = 1;
  MUST(cuDevSmResourceSplitByCount, groups, &count, &all, &left, 0, 16);
  count = 1;
  ASK("what is left", cuDevSmResourceSplitByCount, &other, &count, &left, 0, 0, 8);
  count = 1;
  ASK("a group", cuDevSmResourceSplitByCount, &other, &count, &groups[0], 0, 0, 8);
  ASK("", cuDevResourceGenerateDesc, &description, groups, 1);
  ASK("none", cuDevResourceGenerateDesc, word, groups, 0);
  ASK("null", cuDevResourceGenerateDesc, word, 0, 1);
  ASK("null description", cuDevResourceGenerateDesc, 0, groups, 1);
  resource both[2] = {groups[0], left};
  ASK("two", cuDevResourceGenerateDesc, word, both, 2);
  both[1] = groups[0];
  ASK("the same twice", cuDevResourceGenerateDesc, word, both, 2);
  ASK("flags 0", cuGreenCtxCreate, &g, description, 0, 0);
  ASK("flags 2", cuGreenCtxCreate, &g, description, 0, 2);
  ASK("null", cuGreenCtxCreate, 0, description, 0, 1);
  ASK("null description", cuGreenCtxCreate, &g, 0, 0, 1);
  ASK("no device", cuGreenCtxCreate, &g, description, 3, 1);
  ASK("", cuGreenCtxCreate, &g, description, 0, 1);
  memset(&other, 0, sizeof other);
  ASK("", cuGreenCtxGetDevResource, g, &other, 1);
  say("its resource", "%u", other.count);
  ASK("null", cuGreenCtxGetDevResource, g, 0, 1);
  W c = 0;
  ASK("", cuCtxFromGreenCtx, &c, g);
  ASK("null", cuCtxFromGreenCtx, 0, g);
  ASK("flags 0", cuGreenCtxStreamCreate, &s, g, 0, 0);
  ASK("flags 1", cuGreenCtxStreamCreate, &s, g, 1, 0);
  ASK("priority 99", cuGreenCtxStreamCreate, word, g, 1, 99);
  ASK("null", cuGreenCtxStreamCreate, 0, g, 1, 0);
  W of = 0;
  ASK("its stream", cuStreamGetGreenCtx, s, &of);
  say("its stream", "%d", of == g);
  ASK("a plain stream", cuStreamGetGreenCtx, 0, &of);
  say("a plain stream", "%s", of ? "one" : "none");
  ASK("its stream", cuStreamGetCtx, s, word);
  say("context of its stream", "%s", word[0] == c ? "its" : word[0] == (W)context ? "the primary" : "another");
  ASK("its stream", cuStreamGetCtx_v2, s, word, word + 1);
  say("contexts of its stream", "%s, %s",
      word[0] == c            ? "its"
      : word[0] == (W)context ? "the primary"
      : word[0]               ? "another"
                              : "none",
      word[1] == g ? "its"
      : word[1]    ? "another"
                   : "none");
  W e = 0;
  MUST(cuEventCreate, &e, 0);
  ASK("", cuGreenCtxRecordEvent, g, e);
  ASK("null", cuGreenCtxRecordEvent, g, 0);
  ASK("", cuGreenCtxWaitEvent, g, e);
  ASK("", cuCtxRecordEvent, context, e);
  ASK("", cuCtxWaitEvent, context, e);
  ASK("current", cuCtxSetCurrent, c);
  ASK("green", cuMemAlloc_v2, word, 64);
  ASK("green", cuStreamCreate, word, 0);
  ASK("green, flags 1", cuStreamCreate, word, 1);
  ASK("green", cuCtxSynchronize, 0);
  unsigned flags = 0;
  ASK("green", cuCtxGetFlags, &flags);
  ASK("green", cuCtxSetLimit, 0, 2048);
  W m = answers_module(kernels);
  ASK("green", cuLaunchKernel, answers_function(m, "nothing"), 4, 1, 1, 32, 1, 1, 0, 0, 0, 0);
  ASK("green, its stream", cuLaunchKernel, answers_function(m, "nothing"), 4, 1, 1, 32, 1, 1, 0, s, 0, 0);
  int blocks = 0;
  ASK("green", cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, answers_function(m, "nothing"), 32, 0);
  ASK("green, too many blocks", cuLaunchCooperativeKernel, answers_function(m, "nothing"), 132 * 16, 1, 1, 32, 1, 1, 0,
      s, 0);
  ASK("green", cuCtxDestroy_v2, c);
  ASK("null", cuGreenCtxDestroy, 0);
  ASK("back", cuCtxSetCurrent, context);
  ASK("", cuGreenCtxDestroy, g);
  ASK("at last", cuCtxSynchronize, 0);
}

static void newer_graphs(void) {
  W g = 0, h = 0, n = 0, x = 0, word[40];
  void *context = answers_context();
  char text[100];
  MUST(cuGraphCreate, &g, 0);
  ASK("", cuGraphConditionalHandleCreate, &h, g, context, 1, 1);
  ASK("flags 2", cuGraphConditionalHandleCreate, word, g, context, 1, 2);
  ASK("null", cuGraphConditionalHandleCreate, 0, g, context, 1, 1);
  ASK("null graph", cuGraphConditionalHandleCreate, word, 0, context, 1, 1);
  ASK("value without its flag", cuGraphConditionalHandleCreate, word, g, context, 1, 0);
  for (int type = -1; type < 16; type++) {
    memset(word, 0, sizeof word);
    *(int *)word = type;
    snprintf(text, sizeof text, "type %d of zeros", type);
    ASK(text, cuGraphAddNode, &n, g, 0, 0, word);
  }
  memset(word, 0, sizeof word);
  *(int *)word = 5;
  ((int *)word)[1] = 1;
  ASK("reserved words", cuGraphAddNode, &n, g, 0, 0, word);
  for (int kind = 0; kind < 5; kind++)
    for (unsigned size = 0; size < 4; size++) {
      W handle = 0;
      MUST(cuGraphConditionalHandleCreate, &handle, g, context, 0, 1);
      memset(word, 0, sizeof word);
      *(int *)word = 13;
      word[2] = handle;
      ((int *)word)[6] = kind, ((unsigned *)word)[7] = size;
      word[5] = (W)context;
      snprintf(text, sizeof text, "condition %d, %u graphs", kind, size);
      if (!ASK(text, cuGraphAddNode, &n, g, 0, 0, word)) {
        ASK(text, cuGraphAddNode, &n, g, 0, 0, word); /* the same handle again */
      }
    }
  ASK("handles without a node", cuGraphInstantiateWithFlags, &x, g, 0);
  W c = 0, body = 0;
  MUST(cuGraphCreate, &c, 0);
  MUST(cuGraphConditionalHandleCreate, &h, c, context, 1, 1);
  memset(word, 0, sizeof word);
  *(int *)word = 13;
  word[2] = h, ((unsigned *)word)[7] = 1, word[5] = (W)context;
  ASK("an if", cuGraphAddNode, &n, c, 0, 0, word);
  W *bodies = (W *)word[4];
  body = bodies ? bodies[0] : 0;
  say("an if", "%s", body ? "a body" : "no body");
  ASK("of a body", cuGraphDestroy, body);
  ASK("in a body", cuGraphAddEmptyNode, word + 20, body, 0, 0);
  struct {
    W function, data;
  } host = {(W)free, 0};
  ASK("in a body", cuGraphAddHostNode, word + 20, body, 0, 0, &host);
  ASK("an if", cuGraphInstantiateWithFlags, &x, c, 0);
  ASK("an if", cuGraphLaunch, x, 0);
  ASK("an if", cuCtxSynchronize, 0);
  ASK("an if", cuGraphClone, word + 20, c);
  ASK("an if", cuGraphDestroyNode, n);
  /* instantiation with parameters */
  W empty = 0;
  MUST(cuGraphCreate, &empty, 0);
  for (W flags = 0; flags < 32; flags = flags ? flags * 2 : 1) {
    W parameters[6] = {flags, 0, 0, 0};
    snprintf(text, sizeof text, "flags %lu", flags);
    ASK(text, cuGraphInstantiateWithParams, &x, empty, parameters);
    say(text, "%d", ((int *)parameters)[6]);
  }
}

static void batches(void) {
  answers_context();
  W s = 0, a = answers_memory(4096), b = answers_memory(4096), m = 0, failed = 7;
  MUST(cuStreamCreate, &s, 0);
  MUST(cuMemAllocManaged, &m, 65536, 1);
  W to[2] = {a, a + 64}, from[2] = {b, b + 64}, sizes[2] = {64, 64}, which[2] = {0, 0};
  int attributes[2][6] = {{1}, {1}}; /* order, two places, flags */
  ASK("", cuMemcpyBatchAsync_v2, to, from, sizes, 2, attributes, which, 1, s);
  ASK("null stream", cuMemcpyBatchAsync_v2, to, from, sizes, 2, attributes, which, 1, 0);
  ASK("per thread", cuMemcpyBatchAsync_v2, to, from, sizes, 2, attributes, which, 1, 2);
  ASK("none", cuMemcpyBatchAsync_v2, to, from, sizes, 0, attributes, which, 1, s);
  ASK("no attributes", cuMemcpyBatchAsync_v2, to, from, sizes, 2, attributes, which, 0, s);
  ASK("null", cuMemcpyBatchAsync_v2, 0, from, sizes, 2, attributes, which, 1, s);
  attributes[0][0] = 0;
  ASK("order 0", cuMemcpyBatchAsync_v2, to, from, sizes, 2, attributes, which, 1, s);
  attributes[0][0] = 4;
  ASK("order 4", cuMemcpyBatchAsync_v2, to, from, sizes, 2, attributes, which, 1, s);
  attributes[0][0] = 1, attributes[0][5] = 4;
  ASK("flags 4", cuMemcpyBatchAsync_v2, to, from, sizes, 2, attributes, which, 1, s);
  attributes[0][5] = 0, which[0] = 1;
  ASK("attributes from the second on", cuMemcpyBatchAsync_v2, to, from, sizes, 2, attributes, which, 1, s);
  which[0] = 0, sizes[1] = 0;
  ASK("a size of 0", cuMemcpyBatchAsync_v2, to, from, sizes, 2, attributes, which, 1, s);
  sizes[1] = 64, to[1] = 0;
  ASK("a null", cuMemcpyBatchAsync_v2, to, from, sizes, 2, attributes, which, 1, s);
  ASK("a null, with an index", cuMemcpyBatchAsync, to, from, sizes, 2, attributes, which, 1, &failed, s);
  say("index", "%ld", (long)failed);
  W places[2] = {1, 0}, managed[1] = {m}, bytes[1] = {4096};
  ASK("", cuMemPrefetchBatchAsync, managed, bytes, 1, places, which, 1, 0, s);
  ASK("flags 1", cuMemPrefetchBatchAsync, managed, bytes, 1, places, which, 1, 1, s);
  ASK("none", cuMemPrefetchBatchAsync, managed, bytes, 0, places, which, 1, 0, s);
  ASK("null stream", cuMemPrefetchBatchAsync, managed, bytes, 1, places, which, 1, 0, 0);
  ASK("", cuMemDiscardBatchAsync, managed, bytes, 1, 0, s);
  ASK("null stream", cuMemDiscardBatchAsync, managed, bytes, 1, 0, 0);
  ASK("", cuMemDiscardAndPrefetchBatchAsync, managed, bytes, 1, places, which, 1, 0, s);
  managed[0] = a;
  ASK("device memory", cuMemPrefetchBatchAsync, managed, bytes, 1, places, which, 1, 0, s);
  ASK("device memory", cuMemDiscardBatchAsync, managed, bytes, 1, 0, s);
  char text[100];
  for (int type = 0; type < 5; type++)
    for (int id = -1; id < 2; id++) {
      W place = (W)type | (W)(unsigned)id << 32;
      snprintf(text, sizeof text, "place %d %d", type, id);
      ASK(text, cuMemPrefetchAsync_v2, m, 4096, place, 0, s);
      ASK(text, cuMemAdvise_v2, m, 4096, 3, place);
      ASK(text, cuMemAdvise_v2, m, 4096, 5, place);
      W pool = 0;
      ASK(text, cuMemGetDefaultMemPool, &pool, &place, 1);
      ASK(text, cuMemGetMemPool, &pool, &place, 1);
      pool = 0;
      ASK(text, cuMemGetDefaultMemPool, &pool, &place, 3);
    }
  for (int a1 = 5; a1 < 9; a1++) {
    int value = -9;
    snprintf(text, sizeof text, "%d", a1);
    if (!ASK(text, cuMemRangeGetAttribute, &value, 4, a1, m, 4096)) say(text, "%d", value);
  }
  ASK("at last", cuStreamSynchronize, s);
}

static void various(void) {
  W word[16] = {0}, size = 0;
  unsigned values[8] = {0}, operations[4] = {0, 1, 2, 3};
  char text[100], room[4096];
  answers_context();
  for (int i = 0; i < 9; i++) {
    size = 4;
    memset(room, 0, sizeof room);
    snprintf(text, sizeof text, "%d", i);
    ASK(text, cuCoredumpGetAttribute, i, room, &size);
    if (i != 5 && i != 6) say(text, "%d", room[0]);
  }
  ASK("", cuDeviceGetHostAtomicCapabilities, values, operations, 4, 0);
  say("atomics with the host", "%x %x %x %x", values[0], values[1], values[2], values[3]);
  ASK("none", cuDeviceGetHostAtomicCapabilities, values, operations, 0, 0);
  ASK("itself", cuDeviceGetP2PAtomicCapabilities, values, operations, 4, 0, 0);
  W handle = 0, multicast[4] = {2, 2 << 20, 0, 0}; /* devices, size */
  *(unsigned *)multicast = 1;
  ASK("one device", cuMulticastCreate, &handle, multicast);
  ASK("one device", cuMulticastGetGranularity, word, multicast, 0);
  W d = answers_memory(4 << 20);
  int file = -1;
  ASK("", cuMemGetHandleForAddressRange, &file, d, 2 << 20, 1, 0);
  ASK("odd size", cuMemGetHandleForAddressRange, &file, d, 100, 1, 0);
  ASK("type 9", cuMemGetHandleForAddressRange, &file, d, 2 << 20, 9, 0);
  ASK("none", cuCheckpointProcessGetState, 999999, word);
  ASK("itself", cuCheckpointProcessGetState, 0, word);
  ASK("", cuLogsCurrent, word, 0);
  ASK("null", cuLogsCurrent, 0, 0);
  ASK("null", cuLogsRegisterCallback, 0, 0, word);
  ASK("flags", cuProfilerInitialize, 0, 0, 7);
  ASK("", cuProfilerStop, 0);
  W s = 0, t = 0;
  MUST(cuStreamCreate, &s, 0);
  MUST(cuStreamCreate, &t, 0);
  ASK("", cuStreamCopyAttributes, t, s);
  ASK("to the legacy one", cuStreamCopyAttributes, 0, s);
  unsigned char semaphore[256] = {0};
  ASK("zeros", cuImportExternalMemory, word, semaphore);
  ASK("zeros", cuImportExternalSemaphore, word, semaphore);
  ASK("null", cuImportExternalMemory, word, 0);
  ASK("null", cuDestroyExternalMemory, 0);
  ASK("", cuMemBatchDecompressAsync, word, 0, 0, word, s);
  ASK("", cuCtxResetPersistingL2Cache, 0);
  ASK("itself", cuCtxEnablePeerAccess, 0, 0);
  void *context = NULL;
  DO(cuCtxGetCurrent, &context);
  ASK("own context", cuCtxEnablePeerAccess, context, 0);
  ASK("own context", cuCtxDisablePeerAccess, context);
  ASK("at last", cuCtxSynchronize, 0);
}

const section sections_newer[] = {{"tensors", tensor_maps}, {"green", green},     {"newer_graphs", newer_graphs},
                                  {"batches", batches},     {"various", various}, {NULL, NULL}};
