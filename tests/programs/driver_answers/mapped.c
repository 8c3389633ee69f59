/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about virtual memory, pools, memory between processes, and what a pointer is of. */
#define _GNU_SOURCE
#include "answers.h"


typedef struct properties {
  int type, handles, place, id;
  W meta;
  unsigned char compression, rdma;
  unsigned short usage;
  unsigned char reserved[4];
} properties;

static void virtual_memory(void) {
  W p = 0, h = 0, i = 0, size = 0, word[8] = {0};
  char text[100];
  answers_context();
  properties q = {1, 0, 1, 0, 0, 0, 0, 0, {0}};
  for (int flags = 0; flags < 3; flags++) {
    snprintf(text, sizeof text, "flags %d", flags);
    size = 0;
    ASK(text, cuMemGetAllocationGranularity, &size, &q, flags);
    say(text, "%lu", size);
  }
  for (int place = 0; place < 6; place++) {
    properties other = q;
    other.place = place;
    snprintf(text, sizeof text, "place %d", place);
    size = 0;
    ASK(text, cuMemGetAllocationGranularity, &size, &other, 0);
    say(text, "%lu", size);
  }
  ASK("null", cuMemGetAllocationGranularity, 0, &q, 0);
  ASK("null properties", cuMemGetAllocationGranularity, &size, 0, 0);
  properties wrong = q;
  wrong.type = 0;
  ASK("type 0", cuMemGetAllocationGranularity, &size, &wrong, 0);
  size = 2 << 20;
  ASK("type 0", cuMemCreate, &h, size, &wrong, 0);
  wrong = q, wrong.id = 5;
  ASK("no device", cuMemGetAllocationGranularity, &size, &wrong, 0);
  ASK("no device", cuMemCreate, &h, size, &wrong, 0);
  wrong = q;
  for (int kind = 0; kind < 17; kind = kind ? kind * 2 : 1) {
    wrong.handles = kind;
    snprintf(text, sizeof text, "handles %d", kind);
    if (!ASK(text, cuMemCreate, &h, size, &wrong, 0)) DO(cuMemRelease, h);
  }
  wrong = q, wrong.compression = 1;
  ASK("compression", cuMemCreate, &h, size, &wrong, 0);
  wrong = q, wrong.rdma = 1;
  ASK("RDMA", cuMemCreate, &h, size, &wrong, 0);
  wrong = q, wrong.usage = 1;
  ASK("tile pool", cuMemCreate, &h, size, &wrong, 0);
  wrong = q, wrong.place = 2;
  ASK("host", cuMemCreate, &h, size, &wrong, 0);
  wrong = q, wrong.place = 3;
  ASK("host NUMA", cuMemCreate, &h, size, &wrong, 0);
  ASK("flags 1", cuMemCreate, &h, size, &q, 1);
  ASK("odd size", cuMemCreate, &h, 4096, &q, 0);
  ASK("nothing", cuMemCreate, &h, 0, &q, 0);
  ASK("null", cuMemCreate, 0, size, &q, 0);
  ASK("too much", cuMemCreate, &h, 1ul << 46, &q, 0);
  ASK("", cuMemCreate, &h, size, &q, 0);
  ASK("two pieces", cuMemCreate, &i, 2 * size, &q, 0);
  ASK("odd size", cuMemAddressReserve, &p, 4096, 0, 0, 0);
  ASK("page and a half", cuMemAddressReserve, &p, 3 << 20, 0, 0, 0);
  ASK("nothing", cuMemAddressReserve, &p, 0, 0, 0, 0);
  ASK("flags", cuMemAddressReserve, &p, size, 0, 0, 1);
  ASK("not whole pages", cuMemAddressReserve, &p, size - 1, 0, 0, 0);
  ASK("alignment 3", cuMemAddressReserve, &p, size, 3, 0, 0);
  ASK("alignment 1 KiB", cuMemAddressReserve, &p, size, 1024, 0, 0);
  ASK("null", cuMemAddressReserve, 0, size, 0, 0, 0);
  ASK("alignment 16 MiB", cuMemAddressReserve, &p, size, 16 << 20, 0, 0);
  say("alignment", "%lu", p % (16 << 20));
  ASK("too much", cuMemAddressReserve, word, 1ul << 60, 0, 0, 0);
  ASK("", cuMemAddressReserve, &p, 8 * size, 0, 0, 0);
  ASK("reserved only", cuMemsetD8_v2, p, 0, 16);
  ASK("reserved only", cuMemGetAddressRange_v2, word, word + 1, p);
  ASK("reserved only", cuMemUnmap, p, size);
  W access[2] = {0};
  int *where = (int *)access; /* CUmemAccessDesc: {type, id}, flags */
  where[0] = 1, where[1] = 0, where[2] = 3;
  ASK("reserved only", cuMemSetAccess, p, size, access, 1);
  ASK("reserved only", cuMemGetAccess, word, access, p);
  ASK("odd address", cuMemMap, p + 4096, size, 0, h, 0);
  ASK("odd size", cuMemMap, p, 4096, 0, h, 0);
  ASK("part", cuMemMap, p, size, 0, i, 0);
  ASK("part", cuMemUnmap, p, size);
  ASK("offset", cuMemMap, p, size, size, i, 0);
  ASK("offset", cuMemUnmap, p, size);
  ASK("more than it is", cuMemMap, p, 2 * size, 0, h, 0);
  ASK("nothing", cuMemMap, p, 0, 0, h, 0);
  ASK("flags", cuMemMap, p, size, 0, h, 1);
  ASK("null", cuMemMap, 0, size, 0, h, 0);
  ASK("not reserved", cuMemMap, 0x7000000000, size, 0, h, 0);
  ASK("", cuMemMap, p, size, 0, h, 0);
  ASK("twice", cuMemMap, p, size, 0, h, 0);
  ASK("at another place", cuMemMap, p + 4 * size, size, 0, h, 0);
  ASK("without access", cuMemsetD8_v2, p, 0, 16);
  W flags = 9;
  ASK("without access", cuMemGetAccess, &flags, access, p);
  say("without access", "%lu", flags);
  where[2] = 2;
  ASK("flags 2", cuMemSetAccess, p, size, access, 1);
  where[2] = 3, where[1] = 4;
  ASK("no device", cuMemSetAccess, p, size, access, 1);
  where[1] = 0;
  ASK("none", cuMemSetAccess, p, size, access, 0);
  ASK("null", cuMemSetAccess, p, size, 0, 1);
  ASK("odd size", cuMemSetAccess, p, 4096, access, 1);
  ASK("more than is mapped", cuMemSetAccess, p, 2 * size, access, 1);
  ASK("", cuMemSetAccess, p, size, access, 1);
  ASK("", cuMemGetAccess, &flags, access, p);
  say("access", "%lu", flags);
  where[0] = 2;
  ASK("the host's", cuMemGetAccess, &flags, access, p);
  ASK("the host's", cuMemSetAccess, p, size, access, 1);
  where[0] = 1;
  ASK("mapped", cuMemsetD8_v2, p, 0, 16);
  ASK("past the mapping", cuMemsetD8_v2, p + size - 8, 0, 16);
  ASK("mapped", cuMemGetAddressRange_v2, word, word + 1, p + 64);
  say("mapped range", "%lu", word[1]);
  ASK("mapped", cuMemFree_v2, p);
  where[2] = 1;
  ASK("read only", cuMemSetAccess, p, size, access, 1);
  ASK("read only", cuMemGetAccess, &flags, access, p);
  say("read only", "%lu", flags);
  where[2] = 0;
  ASK("no access", cuMemSetAccess, p, size, access, 1);
  ASK("no access any more", cuMemsetD8_v2, p, 0, 16);
  ASK("", cuMemGetAllocationPropertiesFromHandle, &wrong, h);
  say("properties", "%d %d %d %d", wrong.type, wrong.handles, wrong.place, wrong.id);
  ASK("null", cuMemGetAllocationPropertiesFromHandle, 0, h);
  ASK("", cuMemRetainAllocationHandle, word, p + 100);
  say("retained is the same", "%d", word[0] == h);
  ASK("not mapped", cuMemRetainAllocationHandle, word, p + size);
  ASK("device memory", cuMemRetainAllocationHandle, word, answers_memory(16));
  ASK("mapped", cuMemRelease, h);
  ASK("retained", cuMemRelease, h);
  ASK("three times", cuMemRelease, h);
  ASK("with mappings", cuMemAddressFree, p, 8 * size);
  ASK("half", cuMemUnmap, p, size / 2);
  ASK("middle", cuMemUnmap, p + 4096, size);
  ASK("", cuMemUnmap, p, size);
  ASK("twice", cuMemUnmap, p, size);
  ASK("at another place", cuMemUnmap, p + 4 * size, size);
  ASK("half", cuMemAddressFree, p, 4 * size);
  ASK("middle", cuMemAddressFree, p + size, 7 * size);
  ASK("", cuMemAddressFree, p, 8 * size);
  ASK("twice", cuMemAddressFree, p, 8 * size);
  int file = -1;
  ASK("not shareable", cuMemExportToShareableHandle, &file, i, 1, 0);
  wrong = q, wrong.handles = 1;
  ASK("shareable", cuMemCreate, &h, size, &wrong, 0);
  ASK("kind 2", cuMemExportToShareableHandle, &file, h, 2, 0);
  ASK("flags", cuMemExportToShareableHandle, &file, h, 1, 1);
  ASK("", cuMemExportToShareableHandle, &file, h, 1, 0);
  say("descriptor", "%d", file > 2);
  ASK("", cuMemImportFromShareableHandle, word, (W)file, 1);
  ASK("no descriptor", cuMemImportFromShareableHandle, word, 999, 1);
  ASK("kind 7", cuMemImportFromShareableHandle, word, (W)file, 7);
}

static void pools(void) {
  W pool = 0, mine = 0, p = 0, q = 0, s = 0, t = 0, word[8] = {0};
  char text[100];
  answers_context();
  MUST(cuStreamCreate, &s, 0);
  MUST(cuStreamCreate, &t, 1);
  MUST(cuDeviceGetDefaultMemPool, &pool, 0);
  for (int i = 0; i < 14; i++) {
    snprintf(text, sizeof text, "attribute %d", i);
    word[0] = word[1] = 7777;
    int got = ASK(text, cuMemPoolGetAttribute, pool, i, word);
    if (!got) say(text, "%ld", i >= 1 && i <= 3 ? *(int *)word : (long)word[0]);
    word[0] = i >= 1 && i <= 3;
    ASK(text, cuMemPoolSetAttribute, pool, i, word);
    word[0] = 1000;
    snprintf(text, sizeof text, "attribute %d to 1000", i);
    ASK(text, cuMemPoolSetAttribute, pool, i, word);
    if (i >= 1 && i <= 3)
      DO(cuMemPoolGetAttribute, pool, i, word), say(text, "%d", *(int *)word), word[0] = 1,
                                                                               DO(cuMemPoolSetAttribute, pool, i, word);
    if (i == 4) word[0] = 0, DO(cuMemPoolSetAttribute, pool, i, word);
  }
  ASK("null", cuMemPoolGetAttribute, pool, 1, 0);
  ASK("null pool", cuMemPoolGetAttribute, 0, 1, word);
  ASK("default", cuMemPoolDestroy, pool);
  ASK("null", cuMemPoolDestroy, 0);
  ASK("", cuMemPoolTrimTo, pool, 0);
  ASK("null", cuMemPoolTrimTo, 0, 0);
  struct {
    int type, handles, place, id;
    W security, most;
    unsigned short usage;
    char reserved[54];
  } properties = {1, 0, 1, 0, 0, 0, 0, {0}};
  ASK("null", cuMemPoolCreate, 0, &properties);
  ASK("null properties", cuMemPoolCreate, &mine, 0);
  for (int type = 0; type < 4; type++)
    for (int place = 0; place < 5; place++) {
      properties.type = type, properties.place = place;
      snprintf(text, sizeof text, "type %d place %d", type, place);
      if (!ASK(text, cuMemPoolCreate, &mine, &properties)) DO(cuMemPoolDestroy, mine);
    }
  properties.type = 1, properties.place = 1, properties.id = 4;
  ASK("no device", cuMemPoolCreate, &mine, &properties);
  properties.id = 0;
  for (int kind = 1; kind < 17; kind *= 2) {
    properties.handles = kind;
    snprintf(text, sizeof text, "handles %d", kind);
    if (!ASK(text, cuMemPoolCreate, &mine, &properties)) DO(cuMemPoolDestroy, mine);
  }
  properties.handles = 0, properties.usage = 1;
  if (!ASK("usage 1", cuMemPoolCreate, &mine, &properties)) DO(cuMemPoolDestroy, mine);
  properties.usage = 0, properties.most = 1 << 20;
  ASK("at most 1 MiB", cuMemPoolCreate, &mine, &properties);
  ASK("within it", cuMemAllocFromPoolAsync, &p, 1 << 19, mine, s);
  ASK("beyond it", cuMemAllocFromPoolAsync, &q, 64 << 20, mine, s);
  ASK("after that", cuStreamSynchronize, s);
  properties.most = 0;
  MUST(cuMemPoolCreate, &mine, &properties);
  ASK("nothing", cuMemAllocFromPoolAsync, &p, 0, mine, s);
  ASK("null", cuMemAllocFromPoolAsync, 0, 16, mine, s);
  ASK("null pool", cuMemAllocFromPoolAsync, &p, 16, 0, s);
  ASK("too much", cuMemAllocFromPoolAsync, &p, 1ul << 46, mine, s);
  ASK("", cuMemAllocFromPoolAsync, &p, 100, mine, s);
  say("alignment", "%lu", (p & -p) > 512 ? 512 : p & -p);
  ASK("", cuMemAllocFromPoolAsync, &q, 100, mine, s);
  say("apart", "%ld", (long)(q - p));
  for (int i = 5; i < 9; i++) {
    snprintf(text, sizeof text, "two allocations, attribute %d", i);
    DO(cuMemPoolGetAttribute, mine, i, word);
    say(text, "%lu", word[0]);
  }
  DO(cuMemGetAddressRange_v2, word, word + 1, p);
  say("range", "%lu", word[1]);
  ASK("", cuMemFreeAsync, p, s);
  ASK("twice", cuMemFreeAsync, p, s);
  ASK("null", cuMemFreeAsync, 0, s);
  ASK("middle", cuMemFreeAsync, q + 64, s);
  W again = 0;
  ASK("reused", cuMemAllocFromPoolAsync, &again, 100, mine, s);
  say("reused in the stream", "%d", again == p);
  DO(cuMemFreeAsync, again, s);
  W across = 0;
  ASK("in another stream", cuMemAllocFromPoolAsync, &across, 100, mine, t);
  DO(cuMemFreeAsync, across, t);
  ASK("destroyed while used", cuMemPoolDestroy, mine);
  ASK("of a destroyed pool", cuMemFree_v2, q);
  ASK("plain memory", cuMemFreeAsync, answers_memory(64), s);
  ASK("default", cuMemAllocAsync, &p, 1000, s);
  ASK("free synchronously", cuMemFree_v2, p);
  DO(cuCtxSynchronize, 0);
  for (int i = 5; i < 9; i++) {
    snprintf(text, sizeof text, "default pool after, attribute %d", i);
    DO(cuMemPoolGetAttribute, pool, i, word);
    say(text, "%lu", word[0]);
  }
  word[0] = ~0ul;
  DO(cuMemPoolSetAttribute, pool, 4, word);
  static const size_t sizes[] = {1, 512, 513, 1 << 20, (2 << 20) + 1, 5 << 20, 33 << 20, 40 << 20, 100 << 20};
  for (int i = 0; i < 9; i++) {
    W used = 0, reserved = 0;
    DO(cuMemPoolTrimTo, pool, 0);
    MUST(cuMemAllocAsync, &p, sizes[i], s);
    MUST(cuStreamSynchronize, s);
    DO(cuMemPoolGetAttribute, pool, 7, &used);
    DO(cuMemPoolGetAttribute, pool, 5, &reserved);
    snprintf(text, sizeof text, "%zu bytes", sizes[i]);
    say(text, "used %lu reserved %lu", used, reserved);
    MUST(cuMemFreeAsync, p, s);
    MUST(cuStreamSynchronize, s);
  }
  W access[2] = {0};
  int *where = (int *)access, flags = 9;
  where[0] = 1, where[1] = 0, where[2] = 3;
  ASK("own device", cuMemPoolSetAccess, pool, access, 1);
  where[2] = 0;
  ASK("own device, none", cuMemPoolSetAccess, pool, access, 1);
  ASK("", cuMemPoolGetAccess, &flags, pool, access);
  say("access", "%d", flags);
  where[1] = 3;
  ASK("no device", cuMemPoolGetAccess, &flags, pool, access);
  ASK("no device", cuMemPoolSetAccess, pool, access, 1);
  ASK("not shareable", cuMemPoolExportToShareableHandle, &flags, pool, 1, 0);
  ASK("not shareable", cuMemPoolExportPointer, word, p);
  ASK("null", cuDeviceSetMemPool, 0, 0);
}

static void between(void) {
  W handle[8] = {0}, event[8] = {0}, e = 0, p = 0, word[4] = {0};
  answers_context();
  W d = answers_memory(4096);
  ASK("", cuIpcGetMemHandle, handle, d);
  ASK("middle", cuIpcGetMemHandle, handle, d + 100);
  ASK("null", cuIpcGetMemHandle, 0, d);
  ASK("of nothing", cuIpcGetMemHandle, handle, 0);
  MUST(cuMemHostAlloc, &p, 4096, 0);
  ASK("of the host", cuIpcGetMemHandle, handle, p);
  MUST(cuMemAllocManaged, &p, 4096, 1);
  ASK("of managed memory", cuIpcGetMemHandle, handle, p);
  MUST(cuMemAllocAsync, &p, 4096, 0);
  ASK("of a pool", cuIpcGetMemHandle, handle, p);
  ASK("an event that is not", cuEventCreate, &e, 0);
  ASK("an event that is not", cuIpcGetEventHandle, event, e);
  ASK("with time", cuEventCreate, &e, 4);
  ASK("", cuEventCreate, &e, 6);
  ASK("", cuIpcGetEventHandle, event, e);
  ASK("null", cuIpcGetEventHandle, 0, e);
  ASK("not opened", cuIpcCloseMemHandle, d);
  ASK("null", cuIpcCloseMemHandle, 0);
  ASK("flags 1, nobody's", cuEventElapsedTime, word, e, e);
}

/* Pointer attributes of every kind of pointer. */
static void pointer(const char *label, W address) {
  char text[100];
  for (int a = 0; a < 24; a++) {
    union {
      W word[4];
      int number[8];
    } value;
    memset(&value, 0x5a, sizeof value);
    snprintf(text, sizeof text, "%s, %d", label, a);
    int got = DO(cuPointerGetAttribute, &value, a, address);
    if (got) say(text, "%s", answers_name(got));
    else if (a == 1) say(text, "%s", value.word[0] ? "a context" : "no context");
    else if (a == 3 || a == 4 || a == 11) say(text, "%ld", value.word[0] ? (long)(address - value.word[0]) : -1);
    else if (a == 5 || a == 17 || a == 18) say(text, "%s", value.word[0] ? "something" : "nothing");
    else if (a == 7) say(text, "%s", value.word[0] ? "an id" : "0");
    else if (a == 12 || a == 19) say(text, "%lu", value.word[0]);
    else
      say(text, "%d",
          a == 6 || a == 8 || a == 10 || a == 13 || a == 15 || a == 20 ? value.number[0] & 0xff : value.number[0]);
  }
}

static void pointers(void) {
  W d = 0, p = 0, m = 0, s = 0, h = 0, v = 0, word[4] = {0};
  static char host[8192];
  answers_context();
  d = answers_memory(5000);
  pointer("device", d);
  pointer("device, middle", d + 100);
  pointer("past the end", d + (1 << 28));
  MUST(cuMemHostAlloc, &p, 5000, 2);
  pointer("pinned", p);
  pointer("pinned, middle", p + 100);
  MUST(cuMemHostRegister_v2, host, 8192, 2);
  pointer("registered", (W)host + 8);
  pointer("the stack", (W)&p);
  pointer("null", 0);
  pointer("nonsense", 0x1234567000);
  MUST(cuMemAllocManaged, &m, 65536, 1);
  pointer("managed", m + 4);
  MUST(cuMemAllocAsync, &s, 4096, 0);
  MUST(cuStreamSynchronize, 0);
  pointer("pool", s + 4);
  MUST(cuMemFreeAsync, s, 0);
  MUST(cuStreamSynchronize, 0);
  pointer("freed to a pool", s);
  int properties[8] = {1, 0, 1, 0};
  MUST(cuMemAddressReserve, &v, 4 << 20, 0, 0, 0);
  pointer("reserved", v);
  MUST(cuMemCreate, &h, 2 << 20, properties, 0);
  MUST(cuMemMap, v, 2 << 20, 0, h, 0);
  pointer("mapped", v + 4);
  int access[3] = {1, 0, 3};
  MUST(cuMemSetAccess, v, 2 << 20, access, 1);
  pointer("accessible", v + 4);
  MUST(cuMemFree_v2, d);
  pointer("freed", d);
  int one = 1, zero = 0, attributes[2] = {2, 9};
  MUST(cuMemAlloc_v2, &d, 64);
  ASK("6", cuPointerSetAttribute, &one, 6, d);
  ASK("6 back", cuPointerSetAttribute, &zero, 6, d);
  ASK("2", cuPointerSetAttribute, &one, 2, d);
  ASK("6 of the host", cuPointerSetAttribute, &one, 6, host);
  ASK("null", cuPointerSetAttribute, 0, 6, d);
  ASK("null", cuPointerGetAttribute, 0, 2, d);
  W values[2] = {(W)&one, (W)&zero};
  ASK("two", cuPointerGetAttributes, 2, attributes, values, d);
  say("two", "%d", one);
  one = zero = 77;
  ASK("two of the stack", cuPointerGetAttributes, 2, attributes, values, word);
  say("two of the stack", "%d %d", one, zero);
  ASK("none", cuPointerGetAttributes, 0, attributes, values, d);
  ASK("null", cuPointerGetAttributes, 2, 0, values, d);
  attributes[0] = 99;
  ASK("99", cuPointerGetAttributes, 2, attributes, values, d);
}

const section sections_mapped[] = {
    {"virtual", virtual_memory}, {"pools", pools}, {"between", between}, {"pointers", pointers}, {NULL, NULL}};
