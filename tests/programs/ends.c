/* SPDX-License-Identifier: Apache-2.0 */
/* A small program on the driver API that ends in the way its argument names, for the tests of `farfault run`: it copies
 * 4 MiB to the GPU, then: exit, abort, quick (quick_exit), at-once (_exit), forked (_exit of a child; the parent has no
 * GPU), exec (becomes itself with "exit"), wait (until a signal comes), handled (as wait, but SIGTERM is its own), room
 * (asks for more memory than any GPU has), prints (on both standard files between operations), closed (the same, when
 * it has closed them at its beginning), closes-all (every other open file, then exit), idle (no operation at all),
 * asking (launches scattered loads on another thread for as long as that can, and ends during the third launch).
 * "runtime": instead, it asks the driver API for the context after a call of the runtime's, and before. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 4 << 20, TABLE = 128 << 20 };

static int call(void *library, const char *name, void *a, void *b, void *c) {
  int (*function)(void *, void *, void *) = (int (*)(void *, void *, void *))dlsym(library, name);
  return function ? function(a, b, c) : 999;
}

static void on_term(int number) {
  printf("taken\n");
  fflush(stdout);
  _exit(5);
}

/* 640 blocks of 256 threads: loads from TABLE bytes that are long to simulate, and soon executed. */
static const char scattered[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry scattered(.param .u64 p) {\n"
    ".reg .u64 %d<4>; .reg .u32 %r<9>; .reg .pred %p;\n"
    "ld.param.u64 %d1, [p]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"
    "mad.lo.u32 %r4, %r1, %r2, %r3; mov.u32 %r7, 0;\n"
    "L: mad.lo.u32 %r4, %r4, 1664525, 1013904223; shr.u32 %r6, %r4, 7; mul.wide.u32 %d2, %r6, 4;\n"
    "add.u64 %d3, %d1, %d2; ld.global.u32 %r5, [%d3]; add.u32 %r7, %r7, 1; setp.lt.u32 %p, %r7, 40; @%p bra L;\n"
    "st.global.u32 [%d3], %r7; ret; }\n";

typedef struct launches {
  void *library, *context;
  _Atomic int begun;
} launches;

static void *launch_scattered(void *its) {
  launches *l = its;
  void *module, *function, *table, *parameters[] = {&table};
  call(l->library, "cuCtxSetCurrent", l->context, NULL, NULL);
  if (call(l->library, "cuMemAlloc_v2", &table, (void *)(long)TABLE, NULL)) return NULL;
  if (call(l->library, "cuModuleLoadData", &module, (void *)scattered, NULL)) return NULL;
  if (call(l->library, "cuModuleGetFunction", &function, module, "scattered")) return NULL;
  int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
  launch = (void *)dlsym(l->library, "cuLaunchKernel");
  do {
    l->begun++;
  } while (!launch(function, 640, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL));
  return NULL;
}

/* Until the third launch has begun: before that none is asked about. */
static void launch_beside(launches *l) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, launch_scattered, l)) exit(5);
  while (l->begun < 3) usleep(1000);
  usleep(100000);
}

/* Files of the virtual GPU's are open: of a recording, of managed memory. */
static void print_between(void *library) {
  static char *managed;
  if (call(library, "cuMemAllocManaged", &managed, (void *)(long)BYTES, (void *)1)) exit(5);
  for (long i = 0; i < 2000; i++) {
    memset(managed, 1, 1000);
    if (call(library, "cuMemsetD8_v2", managed, (void *)i, (void *)50000L)) exit(5);
    for (int file = STDOUT_FILENO; file <= STDERR_FILENO; file++)
      if (write(file, "something to read\n", 18) < 0) continue;
  }
  for (int i = 0; i < 50000; i++)
    if (managed[i] != (char)1999) exit(3);
}

static void end(const char *way, void *library, char **argv) {
  static void *too_much;
  if (!strcmp(way, "abort")) abort();
  if (!strcmp(way, "quick")) quick_exit(3);
  if (!strcmp(way, "at-once")) _exit(4);
  if (!strcmp(way, "exec")) execl(argv[0], argv[0], "exit", NULL);
  if (!strcmp(way, "room"))
    for (int i = 0; i < 2; i++) printf("%d\n", call(library, "cuMemAlloc_v2", &too_much, (void *)(1UL << 42), NULL));
  for (int file = STDERR_FILENO + 1; file < 1024 && !strcmp(way, "closes-all"); file++) close(file);
  if (!strcmp(way, "prints") || !strcmp(way, "closed")) print_between(library);
  if (strcmp(way, "wait") && strcmp(way, "handled")) return;
  printf("ready\n");
  fflush(stdout);
  for (;;) pause();
}

/* The runtime initialises the driver, in its own time: cuInit is not called. */
static int after_runtime(void *library) {
  void *runtime = dlopen("libcudart.so.12", RTLD_NOW | RTLD_GLOBAL), *context = NULL;
  if (!runtime) return 9;
  printf("before: %d\n", call(library, "cuCtxGetCurrent", &context, NULL, NULL));
  if (call(runtime, "cudaFree", NULL, NULL, NULL)) return 8;
  int result = call(library, "cuCtxGetCurrent", &context, NULL, NULL);
  printf("after: %d, %s\n", result, context ? "a context" : "none");
  return 0;
}

/* As Python's multiprocessing does it. The child goes on as "at-once". */
static void become_child(char **argv) {
  int status;
  pid_t child = fork();
  if (child) exit(waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  argv[1] = "at-once";
}

int main(int argc, char **argv) {
  static char data[BYTES];
  void *library = dlopen("libcuda.so.1", RTLD_NOW), *context, *memory;
  if (!library || argc != 2) return 9;
  if (!strcmp(argv[1], "runtime")) return after_runtime(library);
  if (!strcmp(argv[1], "handled")) signal(SIGTERM, on_term);
  if (!strcmp(argv[1], "forked")) become_child(argv);
  for (int file = STDOUT_FILENO; file <= STDERR_FILENO && !strcmp(argv[1], "closed"); file++) close(file);
  if (call(library, "cuInit", NULL, NULL, NULL) || call(library, "cuCtxCreate_v2", &context, NULL, NULL)) return 8;
  if (!strcmp(argv[1], "idle")) return 0;
  if (call(library, "cuMemAlloc_v2", &memory, (void *)(long)BYTES, NULL)) return 7;
  if (call(library, "cuMemcpyHtoD_v2", memory, data, (void *)(long)BYTES)) return 6;
  if (!strcmp(argv[1], "asking")) launch_beside(&(launches){.library = library, .context = context});
  end(argv[1], library, argv);
  return 0;
}
