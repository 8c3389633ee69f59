/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about allocations, copies, sets, pinned and managed memory. */
#define _GNU_SOURCE
#include "answers.h"


#define BAD 0x1234567000ul

static void memory(void) {
  W p = 0, q = 0, word[16] = {0};
  size_t pitch = 0;
  char text[200], host[4096] = {0};
  answers_context();
  ASK("0 bytes", cuMemAlloc_v2, &p, 0);
  ASK("null", cuMemAlloc_v2, 0, 16);
  ASK("too many", cuMemAlloc_v2, &p, 1ul << 46);
  ASK("all ones", cuMemAlloc_v2, &p, ~0ul);
  W last = 0;
  for (int i = 0; i < 5; i++) {
    static const size_t sizes[] = {1, 511, 513, 4097, 3 << 20};
    MUST(cuMemAlloc_v2, &q, sizes[i]);
    snprintf(text, sizeof text, "%zu bytes", sizes[i]);
    say(text, "alignment %lu", (q & -q) > 512 ? 512 : q & -q);
    word[0] = word[1] = 0;
    ASK(text, cuMemGetAddressRange_v2, word, word + 1, q);
    say(text, "range of %lu", word[1]);
    last = q;
  }
  MUST(cuMemAlloc_v2, &p, 1);
  MUST(cuMemAlloc_v2, &q, 1);
  say("two small ones are apart", "%ld", (long)(q - p));
  ASK("one past the end", cuMemGetAddressRange_v2, word, word + 1, last + (3 << 20));
  ASK("in the middle", cuMemGetAddressRange_v2, word, word + 1, last + 4097);
  say("base of the middle", "%lu", last - word[0]);
  ASK("null base", cuMemGetAddressRange_v2, 0, word + 1, last);
  ASK("null size", cuMemGetAddressRange_v2, word, 0, last);
  ASK("nulls", cuMemGetAddressRange_v2, 0, 0, last);
  ASK("of nothing", cuMemGetAddressRange_v2, word, word + 1, 0);
  ASK("of the host", cuMemGetAddressRange_v2, word, word + 1, host);
  ASK("null", cuMemFree_v2, 0);
  ASK("in the middle", cuMemFree_v2, last + 512);
  ASK("of the host", cuMemFree_v2, host);
  ASK("bad", cuMemFree_v2, BAD);
  ASK("", cuMemFree_v2, p);
  ASK("twice", cuMemFree_v2, p);
  ASK("null", cuMemGetInfo_v2, 0, 0);
  ASK("null total", cuMemGetInfo_v2, word, 0);
  ASK("null free", cuMemGetInfo_v2, 0, word + 1);
  ASK("", cuMemGetInfo_v2, word, word + 1);
  say("total", "%lu", word[1]);
  for (int e = 0; e < 6; e++) {
    static const unsigned elements[] = {4, 8, 16, 1, 3, 32};
    static const size_t widths[] = {1, 16, 32, 100, 256, 511, 512, 513, 1000, 4096, 5000, 100000};
    for (int w = 0; w < 12; w++) {
      if (e && w % 4) continue;
      snprintf(text, sizeof text, "pitch of %zu by %u", widths[w], elements[e]);
      pitch = 0;
      int got = DO(cuMemAllocPitch_v2, &p, &pitch, widths[w], 7, elements[e]);
      if (got) {
        say(text, "%s", answers_name(got));
        continue;
      }
      DO(cuMemGetAddressRange_v2, word, word + 1, p);
      say(text, "%zu of %lu bytes", pitch, word[1]);
      DO(cuMemFree_v2, p);
    }
  }
  ASK("no height", cuMemAllocPitch_v2, &p, &pitch, 16, 0, 4);
  ASK("no width", cuMemAllocPitch_v2, &p, &pitch, 0, 16, 4);
  ASK("null", cuMemAllocPitch_v2, 0, &pitch, 16, 16, 4);
  ASK("null pitch", cuMemAllocPitch_v2, &p, 0, 16, 16, 4);
  W d = answers_memory(8192), e = answers_memory(8192);
  ASK("end", cuMemsetD8_v2, d + 8191, 1, 2);
  ASK("whole and one more", cuMemsetD8_v2, d, 1, 8193);
  ASK("nothing", cuMemsetD8_v2, d, 1, 0);
  ASK("nothing, null", cuMemsetD8_v2, 0, 1, 0);
  ASK("null", cuMemsetD8_v2, 0, 1, 1);
  ASK("bad", cuMemsetD8_v2, BAD, 1, 1);
  ASK("of the host", cuMemsetD8_v2, host, 1, 1);
  ASK("odd", cuMemsetD16_v2, d + 1, 1, 2);
  ASK("odd", cuMemsetD32_v2, d + 2, 1, 2);
  ASK("too long", cuMemsetD32_v2, d, 1, 2049);
  ASK("small pitch", cuMemsetD2D8_v2, d, 8, 1, 16, 4);
  ASK("small pitch, one row", cuMemsetD2D8_v2, d, 8, 1, 16, 1);
  ASK("no height", cuMemsetD2D8_v2, d, 64, 1, 16, 0);
  ASK("no width", cuMemsetD2D8_v2, d, 64, 1, 0, 4);
  ASK("past the end", cuMemsetD2D8_v2, d, 4096, 1, 16, 3);
  ASK("last row fits", cuMemsetD2D8_v2, d, 4096, 1, 16, 2);
  ASK("odd pitch", cuMemsetD2D32_v2, d, 66, 1, 4, 4);
  ASK("odd pitch", cuMemsetD2D16_v2, d, 65, 1, 4, 4);
  ASK("", cuMemcpyHtoD_v2, d, host, 4096);
  ASK("nothing", cuMemcpyHtoD_v2, d, host, 0);
  ASK("nothing, nulls", cuMemcpyHtoD_v2, 0, 0, 0);
  ASK("null to", cuMemcpyHtoD_v2, 0, host, 4);
  ASK("null from", cuMemcpyHtoD_v2, d, 0, 4);
  ASK("past the end", cuMemcpyHtoD_v2, d + 8000, host, 4096);
  ASK("bad to", cuMemcpyHtoD_v2, BAD, host, 4);
  ASK("to the host", cuMemcpyHtoD_v2, host, host + 64, 4);
  ASK("from the device", cuMemcpyHtoD_v2, d, e, 64);
  ASK("", cuMemcpyDtoH_v2, host, d, 4096);
  ASK("nothing", cuMemcpyDtoH_v2, host, d, 0);
  ASK("null to", cuMemcpyDtoH_v2, 0, d, 4);
  ASK("null from", cuMemcpyDtoH_v2, host, 0, 4);
  ASK("bad from", cuMemcpyDtoH_v2, host, BAD, 4);
  ASK("past the end", cuMemcpyDtoH_v2, host, d + 8000, 4096);
  ASK("from the host", cuMemcpyDtoH_v2, host, host + 64, 4);
  unsigned pattern = 0x11223344;
  DO(cuMemsetD32_v2, d, pattern, 16);
  DO(cuMemsetD32_v2, e, 0, 16);
  ASK("to the device", cuMemcpyDtoH_v2, e, d, 64);
  DO(cuMemcpyDtoH_v2, host, e, 4);
  say("what a copy to the host wrote to the device", "%x", *(unsigned *)host);
  ASK("to the device", cuMemcpyDtoHAsync_v2, e, d, 64, 0);
  ASK("from the device", cuMemcpyHtoDAsync_v2, e, d, 64, 0);
  ASK("", cuMemcpyDtoD_v2, e, d, 8192);
  ASK("past the end", cuMemcpyDtoD_v2, e, d + 1, 8192);
  ASK("to the host", cuMemcpyDtoD_v2, host, d, 16);
  ASK("from the host", cuMemcpyDtoD_v2, d, host, 16);
  ASK("overlapping", cuMemcpyDtoD_v2, d + 16, d, 64);
  ASK("to itself", cuMemcpyDtoD_v2, d, d, 64);
  ASK("host to host", cuMemcpy, host, host + 100, 64);
  ASK("host to device", cuMemcpy, d, host, 64);
  ASK("device to host", cuMemcpy, host, d, 64);
  ASK("nothing, bad", cuMemcpy, BAD, BAD, 0);
  ASK("null", cuMemcpy, 0, d, 4);
  ASK("legacy", cuMemcpyAsync, d, host, 4, 1);
  ASK("per thread", cuMemcpyAsync, d, host, 4, 2);
  ASK("itself", cuMemcpyPeer, d, 0, e, 0, 16);
  /* host memory */
  ASK("null", cuMemHostAlloc, 0, 16, 0);
  ASK("nothing", cuMemHostAlloc, word, 0, 0);
  ASK("flags 8", cuMemHostAlloc, word, 16, 8);
  ASK("flags 16", cuMemHostAlloc, word, 16, 16);
  ASK("flags 7", cuMemHostAlloc, word, 16, 7);
  unsigned flags = 0;
  ASK("7", cuMemHostGetFlags, &flags, word[0]);
  say("flags", "%u", flags);
  ASK("7", cuMemHostGetDevicePointer_v2, word + 1, word[0], 0);
  say("same address", "%d", word[0] == word[1]);
  ASK("flags 1", cuMemHostGetDevicePointer_v2, word + 1, word[0], 1);
  ASK("middle", cuMemHostGetDevicePointer_v2, word + 1, word[0] + 4, 0);
  say("middle", "%ld", (long)(word[1] - word[0]));
  ASK("middle", cuMemHostGetFlags, &flags, word[0] + 4);
  ASK("middle", cuMemFreeHost, word[0] + 4);
  ASK("device", cuMemHostGetDevicePointer_v2, word + 1, d, 0);
  ASK("host", cuMemHostGetDevicePointer_v2, word + 1, host, 0);
  ASK("null", cuMemHostGetDevicePointer_v2, 0, word[0], 0);
  ASK("host", cuMemHostGetFlags, &flags, host);
  ASK("pinned", cuMemFree_v2, word[0]);
  ASK("", cuMemFreeHost, word[0]);
  ASK("twice", cuMemFreeHost, word[0]);
  ASK("null", cuMemFreeHost, 0);
  ASK("device", cuMemFreeHost, d);
  ASK("plain", cuMemAllocHost_v2, word, 16);
  ASK("plain", cuMemHostGetFlags, &flags, word[0]);
  say("flags of plain", "%u", flags);
  ASK("null", cuMemAllocHost_v2, 0, 16);
  ASK("nothing", cuMemAllocHost_v2, word, 0);
  char *pages = aligned_alloc(4096, 65536);
  memset(pages, 0, 65536);
  ASK("null", cuMemHostRegister_v2, 0, 16, 0);
  ASK("nothing", cuMemHostRegister_v2, pages, 0, 0);
  ASK("flags 16", cuMemHostRegister_v2, pages, 4096, 16);
  ASK("device", cuMemHostRegister_v2, d, 4096, 0);
  ASK("", cuMemHostRegister_v2, pages, 8192, 0);
  ASK("twice", cuMemHostRegister_v2, pages, 8192, 0);
  ASK("overlapping", cuMemHostRegister_v2, pages + 4096, 8192, 0);
  ASK("inside", cuMemHostRegister_v2, pages + 64, 64, 0);
  ASK("beside, not aligned", cuMemHostRegister_v2, pages + 16384 + 100, 100, 0);
  ASK("same page", cuMemHostRegister_v2, pages + 16384 + 300, 100, 0);
  ASK("registered", cuMemHostGetFlags, &flags, pages);
  say("flags of registered", "%u", flags);
  ASK("registered", cuMemHostGetDevicePointer_v2, word, pages, 0);
  say("registered, same address", "%d", word[0] == (W)pages);
  ASK("middle", cuMemHostUnregister, pages + 64);
  ASK("never", cuMemHostUnregister, pages + 32768);
  ASK("registered", cuMemFreeHost, pages);
  ASK("", cuMemHostUnregister, pages);
  ASK("twice", cuMemHostUnregister, pages);
  ASK("null", cuMemHostUnregister, 0);
  ASK("flags 8, read only", cuMemHostRegister_v2, pages, 4096, 8);
  ASK("not mapped", cuMemHostRegister_v2, BAD, 4096, 0);
  /* managed memory */
  ASK("null", cuMemAllocManaged, 0, 16, 1);
  ASK("nothing", cuMemAllocManaged, word, 0, 1);
  ASK("flags 0", cuMemAllocManaged, word, 16, 0);
  ASK("flags 2", cuMemAllocManaged, word, 16, 2);
  ASK("flags 3", cuMemAllocManaged, word, 16, 3);
  ASK("flags 4", cuMemAllocManaged, word, 16, 4);
  ASK("flags 1", cuMemAllocManaged, word, 1 << 16, 1);
  W m = word[0];
  ASK("managed", cuMemGetAddressRange_v2, word, word + 1, m + 5);
  say("managed range", "%lu", word[1]);
  ASK("managed", cuMemHostGetDevicePointer_v2, word, m, 0);
  ASK("managed", cuMemHostGetFlags, &flags, m);
  for (int advice = 0; advice < 9; advice++) {
    snprintf(text, sizeof text, "advice %d", advice);
    ASK(text, cuMemAdvise, m, 4096, advice, 0);
    snprintf(text, sizeof text, "advice %d, host", advice);
    ASK(text, cuMemAdvise, m, 4096, advice, -1);
    snprintf(text, sizeof text, "advice %d, no device", advice);
    ASK(text, cuMemAdvise, m, 4096, advice, 4);
  }
  ASK("nothing", cuMemAdvise, m, 0, 1, 0);
  ASK("past the end", cuMemAdvise, m, 1 << 24, 1, 0);
  ASK("device", cuMemAdvise, d, 4096, 1, 0);
  ASK("host", cuMemAdvise, pages, 4096, 1, 0);
  ASK("", cuMemPrefetchAsync, m, 4096, 0, 0);
  ASK("host", cuMemPrefetchAsync, m, 4096, -1, 0);
  ASK("no device", cuMemPrefetchAsync, m, 4096, 4, 0);
  ASK("nothing", cuMemPrefetchAsync, m, 0, 0, 0);
  ASK("past the end", cuMemPrefetchAsync, m, 1 << 24, 0, 0);
  ASK("device", cuMemPrefetchAsync, d, 4096, 0, 0);
  ASK("host memory", cuMemPrefetchAsync, pages, 4096, 0, 0);
  for (int a = 0; a < 12; a++) {
    int values[4] = {-9, -9, -9, -9};
    snprintf(text, sizeof text, "%d", a);
    int got = ASK(text, cuMemRangeGetAttribute, values, 4, a, m, 4096);
    if (!got) say(text, "%d", values[0]);
  }
  int values[4] = {0};
  ASK("8 bytes of an int", cuMemRangeGetAttribute, values, 8, 1, m, 4096);
  ASK("accessed by, 16 bytes", cuMemRangeGetAttribute, values, 16, 3, m, 4096);
  say("accessed by", "%d %d %d", values[0], values[1], values[2]);
  ASK("accessed by, 6 bytes", cuMemRangeGetAttribute, values, 6, 3, m, 4096);
  ASK("nothing", cuMemRangeGetAttribute, values, 4, 1, m, 0);
  ASK("past the end", cuMemRangeGetAttribute, values, 4, 1, m, 1 << 24);
  ASK("device", cuMemRangeGetAttribute, values, 4, 1, d, 4096);
  ASK("system memory", cuMemRangeGetAttribute, values, 4, 1, pages, 4096);
  ASK("system memory, last prefetch", cuMemRangeGetAttribute, values, 4, 4, pages, 4096);
  ASK("the stack", cuMemRangeGetAttribute, values, 4, 1, host, 64);
  ASK("null", cuMemRangeGetAttribute, 0, 4, 1, m, 4096);
  ASK("managed to host", cuMemFreeHost, m);
  ASK("managed", cuMemFree_v2, m);
  ASK("freed", cuMemAdvise, m, 4096, 1, 0);
}

const section sections_memory[] = {{"memory", memory}, {NULL, NULL}};
