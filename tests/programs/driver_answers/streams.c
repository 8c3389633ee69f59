/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about streams and events. */
#define _GNU_SOURCE
#include "answers.h"

#include <time.h>
#include <unistd.h>

static void host_function(void *data) { (void)data; }
static volatile int let_go;
static void wait_function(void *data) {
  (void)data;
  struct timespec nap = {0, 1000000};
  for (int i = 0; i < 2000 && !let_go; i++) nanosleep(&nap, NULL);
}

static void streams(void) {
  W s = 0, t = 0, word[8] = {0};
  int number = 0;
  unsigned flags = 0;
  char text[100];
  answers_context();
  ASK("null", cuStreamCreate, 0, 0);
  for (int i = 0; i < 5; i++) {
    snprintf(text, sizeof text, "flags %d", i);
    if (!ASK(text, cuStreamCreate, &t, i)) {
      ASK(text, cuStreamGetFlags, t, &flags);
      say(text, "%u", flags);
    }
  }
  for (int i = -8; i < 4; i++) {
    snprintf(text, sizeof text, "priority %d", i);
    ASK(text, cuStreamCreateWithPriority, &t, 1, i);
    ASK(text, cuStreamGetPriority, t, &number);
    say(text, "%d", number);
  }
  ASK("flags 2", cuStreamCreateWithPriority, &t, 2, 0);
  MUST(cuStreamCreate, &s, 0);
  for (W which = 0; which < 3; which++) {
    snprintf(text, sizeof text, "stream %lu", which);
    ASK(text, cuStreamQuery, which);
    ASK(text, cuStreamSynchronize, which);
    ASK(text, cuStreamGetFlags, which, &flags);
    say(text, "flags %u", flags);
    ASK(text, cuStreamGetPriority, which, &number);
    say(text, "priority %d", number);
    ASK(text, cuStreamGetCtx, which, word);
    ASK(text, cuStreamGetId, which, word);
    say(text, "id %lu", word[0]);
    ASK(text, cuStreamGetDevice, which, &number);
    ASK(text, cuStreamIsCapturing, which, &number);
    ASK(text, cuStreamDestroy_v2, which);
    ASK(text, cuStreamBeginCapture_v2, which, 0);
    ASK(text, cuStreamEndCapture, which, word);
    ASK(text, cuStreamWaitEvent, which, 0, 0);
    ASK(text, cuStreamAttachMemAsync, which, 0, 0, 4);
  }
  ASK("null", cuStreamGetFlags, s, 0);
  ASK("null", cuStreamGetPriority, s, 0);
  ASK("null", cuStreamGetCtx, s, 0);
  ASK("null", cuStreamGetId, s, 0);
  ASK("null", cuStreamAddCallback, s, 0, 0, 0);
  ASK("flags", cuStreamAddCallback, s, host_function, 0, 1);
  ASK("", cuStreamAddCallback, s, host_function, 0, 0);
  ASK("null", cuLaunchHostFunc, s, 0, 0);
  ASK("", cuLaunchHostFunc, s, host_function, 0);
  W m = 0, d = answers_memory(4096);
  MUST(cuMemAllocManaged, &m, 65536, 1);
  ASK("global", cuStreamAttachMemAsync, s, m, 0, 1);
  ASK("single", cuStreamAttachMemAsync, s, m, 0, 4);
  ASK("single, null stream", cuStreamAttachMemAsync, 0, m, 0, 4);
  ASK("host", cuStreamAttachMemAsync, s, m, 0, 2);
  ASK("flags 3", cuStreamAttachMemAsync, s, m, 0, 3);
  ASK("flags 0", cuStreamAttachMemAsync, s, m, 0, 0);
  ASK("half", cuStreamAttachMemAsync, s, m, 32768, 1);
  ASK("middle", cuStreamAttachMemAsync, s, m + 4096, 0, 1);
  ASK("whole", cuStreamAttachMemAsync, s, m, 65536, 1);
  ASK("device memory", cuStreamAttachMemAsync, s, d, 0, 1);
  MUST(cuStreamSynchronize, s);
  for (int i = 0; i < 8; i++) {
    char value[128] = {0};
    snprintf(text, sizeof text, "attribute %d", i);
    int got = ASK(text, cuStreamGetAttribute, s, i, value);
    if (!got) say(text, "%d %d", ((int *)value)[0], ((int *)value)[1]);
    ASK(text, cuStreamSetAttribute, s, i, value);
  }
  /* values in memory */
  ASK("", cuStreamWriteValue32_v2, s, d, 5, 0);
  ASK("odd", cuStreamWriteValue32_v2, s, d + 2, 5, 0);
  ASK("null", cuStreamWriteValue32_v2, s, 0, 5, 0);
  ASK("flags 1", cuStreamWriteValue32_v2, s, d, 5, 1);
  ASK("flags 2", cuStreamWriteValue32_v2, s, d, 5, 2);
  ASK("", cuStreamWriteValue64_v2, s, d + 8, 5, 0);
  ASK("odd", cuStreamWriteValue64_v2, s, d + 4, 5, 0);
  ASK("true already", cuStreamWaitValue32_v2, s, d, 5, 0);
  ASK("equal already", cuStreamWaitValue32_v2, s, d, 5, 1);
  ASK("and", cuStreamWaitValue32_v2, s, d, 1, 2);
  ASK("nor", cuStreamWaitValue32_v2, s, d, 1, 3);
  ASK("odd", cuStreamWaitValue32_v2, s, d + 1, 5, 0);
  ASK("flags 4", cuStreamWaitValue32_v2, s, d, 5, 4);
  ASK("flush", cuStreamWaitValue32_v2, s, d, 5, 1u << 30);
  ASK("nothing", cuStreamBatchMemOp_v2, s, 0, 0, 0);
  union operation {
    int number[12];
    W word[6];
  } operations[4];
  memset(operations, 0, sizeof operations);
  operations[0].number[0] = 2, operations[0].word[1] = d + 16, operations[0].number[4] = 9;
  ASK("a write", cuStreamBatchMemOp_v2, s, 1, operations, 0);
  ASK("flags", cuStreamBatchMemOp_v2, s, 1, operations, 1);
  ASK("257 of them", cuStreamBatchMemOp_v2, s, 257, operations, 0);
  operations[0].number[0] = 6;
  ASK("a barrier", cuStreamBatchMemOp_v2, s, 1, operations, 0);
  operations[0].number[0] = 99;
  ASK("99", cuStreamBatchMemOp_v2, s, 1, operations, 0);
  static const int kinds[] = {0, 5, 6, 1}, types[] = {14, 22, 0}; /* add, and, or, none; u32, u64, none */
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    for (size_t n = 0; n < sizeof types / sizeof *types; n++) {
      int kind = kinds[k], type = types[n];
      memset(operations, 0, sizeof operations);
      operations[0].number[0] = 8;
      operations[0].number[2] = kind, operations[0].number[3] = type;
      operations[0].number[1] = 0;
      operations[0].word[2] = d + 32, operations[0].word[3] = 12;
      snprintf(text, sizeof text, "atomic reduction, operation %d, type %d", kind, type);
      ASK(text, cuStreamBatchMemOp_v2, s, 1, operations, 0);
    }
  }
  ASK("at last", cuStreamSynchronize, s);
  unsigned seen[12] = {0};
  DO(cuMemcpyDtoH_v2, seen, d, sizeof seen);
  say("values", "%u %u %u %u", seen[0], seen[2], seen[4], seen[8]);
}

static void events(void) {
  W s = 0, e = 0, f = 0, g = 0;
  float time = -1;
  char text[100];
  answers_context();
  MUST(cuStreamCreate, &s, 0);
  ASK("null", cuEventCreate, 0, 0);
  for (int i = 0; i < 10; i++) {
    snprintf(text, sizeof text, "flags %d", i);
    if (!ASK(text, cuEventCreate, &e, i)) DO(cuEventDestroy_v2, e);
  }
  MUST(cuEventCreate, &e, 0);
  MUST(cuEventCreate, &f, 0);
  MUST(cuEventCreate, &g, 2);
  ASK("never recorded", cuEventQuery, e);
  ASK("never recorded", cuEventSynchronize, e);
  ASK("never recorded", cuStreamWaitEvent, s, e, 0);
  ASK("never recorded", cuEventElapsedTime, &time, e, f);
  ASK("", cuEventRecord, e, s);
  ASK("one never recorded", cuEventElapsedTime, &time, e, f);
  ASK("", cuEventRecord, f, s);
  MUST(cuEventSynchronize, f);
  ASK("", cuEventElapsedTime, &time, e, f);
  ASK("back", cuEventElapsedTime, &time, f, e);
  say("back is negative or nothing", "%d", time <= 0);
  ASK("itself", cuEventElapsedTime, &time, e, e);
  say("itself", "%g", time);
  ASK("null", cuEventElapsedTime, 0, e, f);
  ASK("null event", cuEventElapsedTime, &time, 0, f);
  ASK("without time", cuEventRecord, g, s);
  MUST(cuEventSynchronize, g);
  ASK("without time", cuEventElapsedTime, &time, e, g);
  ASK("null", cuEventRecord, 0, s);
  ASK("null", cuEventQuery, 0);
  ASK("null", cuEventSynchronize, 0);
  ASK("null", cuEventDestroy_v2, 0);
  ASK("flags 0", cuEventRecordWithFlags, e, s, 0);
  ASK("flags 1", cuEventRecordWithFlags, e, s, 1);
  ASK("flags 2", cuEventRecordWithFlags, e, s, 2);
  ASK("flags 1", cuStreamWaitEvent, s, e, 1);
  ASK("flags 2", cuStreamWaitEvent, s, e, 2);
  /* an event that is still queued */
  MUST(cuLaunchHostFunc, s, wait_function, 0);
  MUST(cuEventRecord, e, s);
  MUST(cuEventRecord, f, s);
  ASK("queued", cuEventQuery, e);
  ASK("busy", cuStreamQuery, s);
  ASK("queued", cuEventElapsedTime, &time, e, f);
  ASK("queued", cuEventDestroy_v2, e);
  ASK("queued, the other", cuEventQuery, f);
  W t = 0;
  MUST(cuStreamCreate, &t, 1);
  ASK("queued, waited for", cuStreamWaitEvent, t, f, 0);
  ASK("waiting", cuStreamQuery, t);
  ASK("waited for", cuEventDestroy_v2, f);
  ASK("waiting", cuStreamDestroy_v2, t);
  ASK("busy", cuStreamDestroy_v2, s);
  let_go = 1;
  ASK("at last", cuCtxSynchronize, 0);
}

const section sections_streams[] = {{"streams", streams}, {"events", events}, {NULL, NULL}};
