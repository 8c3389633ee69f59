/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and an event of two processes (cudaIpc), and memory of a pool: this program starts itself again, unrelated but
 * for two pipes, which doubles what the first one has filled. Exit status 0: every word is what it must be. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver_call.h"

enum { WORDS = 65536, THREADS = 256 };

typedef struct handle {
  char bytes[64];
} handle;

typedef struct pool_properties { /* cudaMemPoolProps */
  int type, handles, location[2];
  char rest[72];
} pool_properties;
typedef struct sent {
  handle memory, event, pooled;
  int process, pool; /* the pool is this descriptor of that process */
} sent;
enum { PINNED = 1, DEVICE = 1, DESCRIPTOR = 1 };

static const char code[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry twice(.param .u64 to)\n{\n.reg .b32 %r<6>;\n.reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [to];\nmov.u32 %r2, %tid.x;\nmov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\nmad.lo.s32 %r2, %r3, %r4, %r2;\n"
    "mul.wide.u32 %rd2, %r2, 4;\nadd.u64 %rd3, %rd1, %rd2;\nld.global.u32 %r5, [%rd3];\nadd.u32 %r5, %r5, %r5;\nst.global.u32 [%rd3], %r5;\nret;\n}\n";

static uint32_t words[WORDS];

static int is_there(int wanted, ssize_t got) {
  if (got == wanted) return 1;
  fprintf(stderr, "the other process is gone\n");
  exit(4);
}

static void *open_kernel(void) {
  void *kernel, *module = driver_open(code);
  CALL(cuModuleGetFunction, (void **, void *, const char *), &kernel, module, "twice");
  return kernel;
}

static void launch(void *kernel, uint64_t at) {
  void *arguments[] = {&at};
  CALL(cuLaunchKernel,
       (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **), kernel,
       WORDS / THREADS, 1, 1, THREADS, 1, 1, 0, NULL, arguments, NULL);
}

static uint64_t import_pooled(const sent *s) {
  char path[64];
  uint64_t at;
  void *pool;
  snprintf(path, sizeof path, "/proc/%d/fd/%d", s->process, s->pool);
  int file = open(path, O_RDWR);
  CALL(cuMemPoolImportFromShareableHandle, (void **, void *, int, unsigned long long), &pool, (void *)(intptr_t)file,
       DESCRIPTOR, 0);
  close(file);
  CALL(cuMemPoolImportPointer, (uint64_t *, void *, const handle *), &at, pool, &s->pooled);
  return at;
}

static int second(void) {
  sent s;
  void *kernel = open_kernel(), *event;
  uint64_t at, pooled;
  is_there(sizeof s, read(0, &s, sizeof s));
  CALL(cuIpcOpenMemHandle_v2, (uint64_t *, handle, unsigned), &at, s.memory, 1);
  CALL(cuIpcOpenEventHandle, (void **, handle), &event, s.event);
  pooled = import_pooled(&s);
  launch(kernel, at);
  launch(kernel, pooled);
  CALL(cuEventRecord, (void *, void *), event, NULL);
  CALL(cuMemFreeAsync, (uint64_t, void *), pooled, NULL);
  CALL(cuCtxSynchronize, (void));
  is_there(1, write(1, "d", 1));
  is_there(1, read(0, &s, 1));
  CALL(cuIpcCloseMemHandle, (uint64_t), at);
  return 0;
}

/* Of `bytes`, with what is in `words`. */
static uint64_t export_pooled(sent *s, size_t bytes) {
  pool_properties properties = {.type = PINNED, .handles = DESCRIPTOR, .location = {DEVICE, 0}};
  uint64_t at;
  void *pool;
  CALL(cuMemPoolCreate, (void **, const pool_properties *), &pool, &properties);
  CALL(cuMemPoolExportToShareableHandle, (int *, void *, int, unsigned long long), &s->pool, pool, DESCRIPTOR, 0);
  CALL(cuMemAllocFromPoolAsync, (uint64_t *, size_t, void *, void *), &at, bytes, pool, NULL);
  CALL(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), at, words, bytes);
  CALL(cuMemPoolExportPointer, (handle *, uint64_t), &s->pooled, at);
  s->process = (int)getpid();
  return at;
}

/* How many words there are not what they were, that often. */
static int wrong_at(uint64_t at, uint32_t times) {
  int wrong = 0;
  CALL(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), words, at, sizeof words);
  for (uint32_t i = 0; i < WORDS; i++) wrong += words[i] != times * i * 2654435761u;
  return wrong;
}

static int first(char *program) {
  int down[2], up[2], status;
  if (pipe(down) || pipe(up)) return 5;
  pid_t child = fork();
  if (!child) {
    dup2(down[0], 0);
    dup2(up[1], 1);
    close(down[1]);
    close(up[0]);
    execl(program, program, "second", (char *)NULL);
    _exit(6);
  }
  close(down[0]);
  close(up[1]);
  void *kernel = open_kernel(), *event;
  sent s;
  uint64_t at, pooled;
  char done;
  CALL(cuMemAlloc_v2, (uint64_t *, size_t), &at, sizeof words);
  CALL(cuEventCreate, (void **, unsigned), &event, 6);
  for (uint32_t i = 0; i < WORDS; i++) words[i] = i * 2654435761u;
  CALL(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), at, words, sizeof words);
  CALL(cuIpcGetMemHandle, (handle *, uint64_t), &s.memory, at);
  CALL(cuIpcGetEventHandle, (handle *, void *), &s.event, event);
  pooled = export_pooled(&s, sizeof words);
  is_there(sizeof s, write(down[1], &s, sizeof s));
  is_there(1, read(up[0], &done, 1));
  CALL(cuStreamWaitEvent, (void *, void *, unsigned), NULL, event, 0);
  launch(kernel, at);
  int wrong = wrong_at(at, 4) + wrong_at(pooled, 2);
  is_there(1, write(down[1], "g", 1));
  if (wrong) return 1;
  CALL(cuMemFree_v2, (uint64_t), at);
  if (waitpid(child, &status, 0) != child || status) return 7;
  puts("good");
  return 0;
}

int main(int count, char **arguments) { return count > 1 ? second() : first(arguments[0]); }
