/* SPDX-License-Identifier: Apache-2.0 */
/* A program on the driver API whose kernels touch memory that only the host knows: an array of malloc's, a variable,
 * the stack, and a list whose nodes were allocated one by one. Argument "array": only the array, whose addresses do not
 * depend on what else is allocated; "hints": the array is
 * prefetched before; "discard": managed memory is discarded, and nothing else happens; "freed": at last a kernel reads
 * memory that was given back to the host. It says what the device answers of such memory, and what the kernels
 * computed. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver_call.h"

enum { COUNT = 1 << 16, NODES = 10000, ILLEGAL_ADDRESS = 700 };

/* add: to[i] += 1. walk: the sum of a list's values, its end stored in *last. */
static const char code[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry add(.param .u64 to)\n{\n.reg .b32 %r<6>;\n.reg .b64 %rd<6>;\n"
    "ld.param.u64 %rd1, [to];\nmov.u32 %r2, %tid.x;\nmov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\n"
    "mad.lo.s32 %r2, %r3, %r4, %r2;\nmul.wide.u32 %rd3, %r2, 4;\nadd.u64 %rd4, %rd1, %rd3;\n"
    "ld.global.u32 %r5, [%rd4];\nadd.u32 %r5, %r5, 1;\nst.global.u32 [%rd4], %r5;\nret;\n}\n"
    ".visible .entry walk(.param .u64 first, .param .u64 sum, .param .u64 last)\n{\n.reg .pred %p<2>;\n.reg .b64 %rd<8>;\n"
    "ld.param.u64 %rd1, [first];\nld.param.u64 %rd2, [sum];\nld.param.u64 %rd3, [last];\nmov.u64 %rd4, 0;\n"
    "next:\nst.global.u64 [%rd3], %rd1;\nld.global.u64 %rd5, [%rd1+8];\nadd.u64 %rd4, %rd4, %rd5;\n"
    "ld.global.u64 %rd1, [%rd1];\nsetp.ne.u64 %p1, %rd1, 0;\n@%p1 bra next;\nst.global.u64 [%rd2], %rd4;\nret;\n}\n";

typedef struct node {
  struct node *next;
  uint64_t value;
} node;

static uint64_t sum;
static void *module;

static void launch(const char *name, unsigned blocks, unsigned threads, void **arguments) {
  void *kernel;
  CALL(cuModuleGetFunction, (void **, void *, const char *), &kernel, module, name);
  CALL(cuLaunchKernel,
       (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **), kernel,
       blocks, 1, 1, threads, 1, 1, 0, NULL, arguments, NULL);
}

static int synchronise(void) {
  int (*function)(void) = (int (*)(void))dlsym(library, "cuCtxSynchronize");
  return function();
}

static void show_attributes(void) {
  static const int asked[] = {88, 89, 100, 101};
  for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
    int value;
    CALL(cuDeviceGetAttribute, (int *, int, int), &value, asked[i], 0);
    printf("%d ", value);
  }
  puts("");
}

/* It prefers the GPU, and goes there; what the driver answers. */
static int hint(void *array, size_t bytes) {
  int (*advise)(uint64_t, size_t, int, int) = (int (*)(uint64_t, size_t, int, int))dlsym(library, "cuMemAdvise");
  int (*prefetch)(uint64_t, size_t, int, void *) =
      (int (*)(uint64_t, size_t, int, void *))dlsym(library, "cuMemPrefetchAsync");
  int advised = advise((uint64_t)(uintptr_t)array, bytes, 3, 0);
  return advised ? advised : prefetch((uint64_t)(uintptr_t)array, bytes, 0, NULL);
}

/* The runtime's calls that discard managed memory; what they answer of that, and of the array. */
static void discard(void *array, size_t bytes) {
  typedef struct location {
    int type, id;
  } location;
  library = dlopen("libcudart.so.13", RTLD_NOW);
  if (!library) exit(3);
  int (*discards)(void **, size_t *, size_t, unsigned long long, void *) =
      (int (*)(void **, size_t *, size_t, unsigned long long, void *))dlsym(library, "cudaMemDiscardBatchAsync");
  void *managed;
  location gpu = {1, 0};
  size_t first = 0;
  CALL(cudaMallocManaged, (void **, size_t, unsigned), &managed, bytes, 1);
  CALL(cudaMemDiscardBatchAsync, (void **, size_t *, size_t, unsigned long long, void *), &managed, &bytes, 1, 0, NULL);
  CALL(cudaMemDiscardAndPrefetchBatchAsync,
       (void **, size_t *, size_t, location *, size_t *, size_t, unsigned long long, void *), &managed, &bytes, 1, &gpu,
       &first, 1, 0, NULL);
  size_t more = bytes + 1;
  printf("discard: %d %d\n", discards(&array, &bytes, 1, 0, NULL), discards(&managed, &more, 1, 0, NULL));
  CALL(cudaFree, (void *), managed);
}

static int add_to_array(uint32_t *array) {
  for (uint32_t i = 0; i < COUNT; i++) array[i] = i;
  launch("add", COUNT / 256, 256, (void *[]){&array});
  int answer = synchronise();
  if (answer) return answer;
  for (uint32_t i = 0; i < COUNT; i++)
    if (array[i] != i + 1) return -1;
  return 0;
}

static int walk_list(void) {
  node *first = NULL, *last = NULL, **on_stack = &last;
  uint64_t *to = &sum, expected = 0;
  for (uint64_t i = 0; i < NODES; i++) {
    node *n = malloc(sizeof *n);
    *n = (node){first, i};
    first = n;
    expected += i;
  }
  launch("walk", 1, 1, (void *[]){&first, &to, &on_stack});
  int answer = synchronise();
  if (!answer && (sum != expected || last->value || last->next)) answer = -1;
  for (node *n = first, *next; n; n = next) {
    next = n->next;
    free(n);
  }
  return answer;
}

int main(int count, char **arguments) {
  const char *mode = count > 1 ? arguments[1] : "";
  module = driver_open(code);
  show_attributes();
  uint32_t *array = malloc(COUNT * sizeof *array);
  if (!strcmp(mode, "discard")) {
    discard(array, COUNT * sizeof *array);
    free(array);
    return 0;
  }
  if (!strcmp(mode, "hints")) {
    memset(array, 1, COUNT * sizeof *array);
    printf("hints: %d\n", hint(array, COUNT * sizeof *array));
  }
  int answer = add_to_array(array);
  if (answer == ILLEGAL_ADDRESS) {
    puts("illegal");
    return 0;
  }
  if (!answer && strcmp(mode, "array") && strcmp(mode, "hints")) answer = walk_list();
  printf("computed: %d\n", answer);
  CALL(cuMemHostRegister_v2, (void *, size_t, unsigned), array, COUNT * sizeof *array, 0);
  CALL(cuMemHostUnregister, (void *), array);
  if (!answer) printf("again: %d\n", add_to_array(array));
  free(array);
  if (!strcmp(mode, "freed")) {
    launch("add", 1, 32, (void *[]){&array});
    printf("freed: %d\n", synchronise());
  }
  return 0;
}
