/* SPDX-License-Identifier: Apache-2.0 */
/* What the program does with managed memory between its calls: the exact operations that the access stream shows, and
 * that nothing else changes for the program. Operations are written as text: "w3+2" is a write of the pages 3 and 4 of
 * `memory`, "L" a launch, "S" a synchronisation, "C" a copy or set, "a3@-1" advice 3 for the CPU, "p@0" a prefetch to
 * the GPU. Run once per level of what the system can show. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "driver/engine/engine_internal.h"
#include "program.h"

#define PAGE 4096u

static const char code[] =
    PTX_HEAD ".visible .global .attribute(.managed) .align 4 .u32 variable = 7;\n"
             /* adds 1 to the first word of each page from p on */
             ".visible .entry bump(.param .u64 p)\n{\n.reg .b32 %r<3>;\n.reg .b64 %rd<4>;\n"
             "ld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4096;\nadd.u64 %rd3, %rd1, %rd2;\n"
             "ld.global.u32 %r2, [%rd3];\nadd.u32 %r2, %r2, 1;\nst.global.u32 [%rd3], %r2;\nret;\n}\n";
STUB(bump);
STUB(shadow);
static void *variable;
static trace_reader *reader;
static char *memory;

/* As the access stream has it: where something else has the usual range of addresses, memory is elsewhere. */
static uint64_t canonical(const void *at) { return exec_memory_canonical(ff_engine.memory, (uint64_t)(uintptr_t)at); }
static ff_text seen;

/* What was appended since the last call, allocations and the like left out. */
static const char *operations(void) {
  seen.length = 0;
  ff_text_add(&seen, "%s", "");
  while (trace_reader_has_op(reader)) {
    const trace_op *op = trace_reader_next_op(reader);
    const char *space = seen.length ? " " : "";
    if (op->kind == TRACE_OP_LAUNCH) {
      trace_reader_skip(reader, op->launch);
      ff_text_add(&seen, "%sL", space);
    } else if (op->kind == TRACE_OP_COPY || op->kind == TRACE_OP_SET) ff_text_add(&seen, "%sC", space);
    else if (op->kind == TRACE_OP_SYNC_DEVICE) ff_text_add(&seen, "%sS", space);
    else if (op->kind == TRACE_OP_ADVISE) ff_text_add(&seen, "%sa%d@%d", space, op->hint.advice, op->hint.device);
    else if (op->kind == TRACE_OP_PREFETCH) ff_text_add(&seen, "%sp@%d", space, op->hint.device);
    else if (op->kind == TRACE_OP_HOST_TOUCH && op->touch.bytes) {
      uint64_t offset = op->touch.address - canonical(memory);
      ff_text_add(&seen, "%s%c%llu+%llu", space, op->touch.write ? 'w' : 'r', (unsigned long long)(offset / PAGE),
                  (unsigned long long)((op->touch.bytes + PAGE - 1) / PAGE));
      assert_int_equal(offset % PAGE, 0);
    }
  }
  return seen.chars;
}

#define shows(text) assert_string_equal(operations(), text)

static void run_bump(unsigned first, unsigned pages) {
  void *at = memory + (size_t)first * PAGE, *arguments[] = {&at};
  succeed(launch(bump, 1, pages, arguments));
}

static int set_up(void **state) {
  (void)state;
  setenv("FARFAULT_MEMORY", "ideal", 0);
  const char *texts[] = {code};
  void **handle = register_ptx(texts, 1);
  register_kernel(handle, bump, "bump");
  __cudaRegisterManagedVar(handle, &variable, shadow, "variable", 0, 4, 0, 0);
  succeed(cudaFree(NULL));
  reader = trace_reader_create(ff_engine.trace);
  assert_non_null(reader);
  return 0;
}

static int allocate(void **state) {
  (void)state;
  succeed(cudaMallocManaged((void **)&memory, 64 * PAGE, cudaMemAttachGlobal));
  operations();
  return 0;
}

static int release(void **state) {
  (void)state;
  succeed(cudaFree(memory));
  return 0;
}

#define NEEDS(level) \
  if (engine_host_access_level_now() < (level)) skip()

static void first_touches(void **state) {
  (void)state;
  NEEDS(ENGINE_TOUCH_PAGES);
  memory[0] = 1;
  memory[PAGE] = 1;
  memory[5 * PAGE] = 1;
  succeed(cudaDeviceSynchronize());
  shows("w0+2 w5+1 S");
  succeed(cudaDeviceSynchronize());
  shows("S");
}

static void reads_and_writes_after_a_kernel(void **state) {
  (void)state;
  NEEDS(ENGINE_TOUCH_EXACT);
  run_bump(0, 8);
  succeed(cudaDeviceSynchronize());
  shows("L S");
  volatile char *m = memory;
  char x = m[2 * PAGE + 100];
  m[3 * PAGE + 7] = x;
  x = m[4 * PAGE];
  m[4 * PAGE] = x; /* read and written: a write */
  x = m[5 * PAGE];
  x = m[6 * PAGE];
  succeed(cudaDeviceSynchronize());
  shows("r2+1 w3+2 r5+2 S");
  x = m[2 * PAGE];
  run_bump(0, 8);
  shows("r2+1 L");
  succeed(cudaDeviceSynchronize());
  shows("S");
  for (int i = 0; i < 8; i++) assert_int_equal(m[(size_t)i * PAGE], 2);
}

static void without_write_protection_all_are_writes(void **state) {
  (void)state;
  if (engine_host_access_level_now() == ENGINE_TOUCH_EXACT || engine_host_access_level_now() < ENGINE_TOUCH_PAGES)
    skip();
  run_bump(0, 8);
  volatile char *m = memory;
  char x = m[2 * PAGE];
  m[3 * PAGE] = x;
  x = m[5 * PAGE];
  succeed(cudaDeviceSynchronize());
  shows("L w2+2 w5+1 S");
}

static void without_userfaultfd_reads_spread(void **state) {
  (void)state;
  if (engine_host_access_level_now() != ENGINE_TOUCH_GROUPS) skip();
  run_bump(0, 64);
  volatile char *m = memory;
  char x = m[20 * PAGE];
  m[50 * PAGE] = x;
  succeed(cudaDeviceSynchronize());
  const char *shown = operations(); /* at least these two; how far a read spreads is the system's choice */
  assert_true(!strncmp(shown, "L w", 3) && strstr(shown, "w50+1 S"));
  unsigned first, pages;
  assert_int_equal(sscanf(shown, "L w%u+%u", &first, &pages), 2);
  assert_true(first <= 20 && first + pages > 20 && pages <= 16);
}

static void copies_are_not_touches(void **state) {
  (void)state;
  NEEDS(ENGINE_TOUCH_EXACT);
  char local[3 * PAGE] = {1};
  void *device;
  succeed(cudaMalloc(&device, 64 * PAGE));
  succeed(cudaMemcpy(memory + 2 * PAGE, local, sizeof local, cudaMemcpyDefault));
  succeed(cudaMemcpy(local, memory + 2 * PAGE, sizeof local, cudaMemcpyDefault));
  succeed(cudaMemset(memory, 3, 10 * PAGE));
  succeed(cudaMemcpy2D(device, 2 * PAGE, memory, 2 * PAGE, 100, 20, cudaMemcpyDefault));
  succeed(cudaDeviceSynchronize());
  shows("C C C C S");
  volatile char x = memory[38 * PAGE]; /* of a page that the copy has looked at */
  x = x + memory[3 * PAGE];
  succeed(cudaDeviceSynchronize());
  shows("r3+1 r38+1 S");
  succeed(cudaFree(device));
}

/* Allocations side by side, and one far from the others: a touch is of one allocation, and ends where that does. */
static void neighbours(void **state) {
  (void)state;
  NEEDS(ENGINE_TOUCH_PAGES);
  enum { COUNT = 90 };
  static const size_t sizes[] = {PAGE, 100, 3 * PAGE};
  char *all[COUNT];
  void *between;
  uint64_t wanted = 0, found = 0;
  for (unsigned i = 0; i < COUNT; i++) {
    succeed(cudaMallocManaged((void **)&all[i], sizes[i % 3], cudaMemAttachGlobal));
    if (i == COUNT / 2) succeed(cudaMalloc(&between, 64u << 20));
  }
  operations();
  for (unsigned i = 0; i < COUNT; i++) {
    if (i % 4 == 3) continue;
    all[i][0] = all[i][sizes[i % 3] - 1] = 1;
    wanted += i % 3 == 2 ? 2 * PAGE : sizes[i % 3];
  }
  succeed(cudaDeviceSynchronize());
  while (trace_reader_has_op(reader)) {
    const trace_op *op = trace_reader_next_op(reader);
    if (op->kind != TRACE_OP_HOST_TOUCH) continue;
    const uint64_t begin = op->touch.address;
    unsigned i = 0;
    while (i < COUNT && !(begin >= canonical(all[i]) && begin < canonical(all[i]) + sizes[i % 3])) i++;
    assert_true(i < COUNT && i % 4 != 3 && op->touch.write);
    assert_true(begin + op->touch.bytes <= canonical(all[i]) + sizes[i % 3]);
    found += op->touch.bytes;
  }
  assert_int_equal(found, wanted);
  succeed(cudaFree(between));
  for (unsigned i = 0; i < COUNT; i++) succeed(cudaFree(all[i]));
}

/* Advice and prefetches are operations, behind what was touched before them; they touch nothing. */
static void hints(void **state) {
  (void)state;
  NEEDS(ENGINE_TOUCH_EXACT);
  const cudaMemLocation gpu = {cudaMemLocationTypeDevice, 0}, cpu = {cudaMemLocationTypeHost, 0},
                        other = {cudaMemLocationTypeDevice, 3};
  memory[0] = 1;
  succeed(cudaMemAdvise(memory, 64 * PAGE, cudaMemAdviseSetReadMostly, other)); /* the device is ignored */
  succeed(cudaMemAdvise(memory, 64 * PAGE, cudaMemAdviseSetPreferredLocation, cpu));
  succeed(cudaMemAdvise(memory, 64 * PAGE, cudaMemAdviseSetAccessedBy, gpu));
  succeed(cudaMemAdvise(memory, 64 * PAGE, cudaMemAdviseUnsetPreferredLocation, other));
  memory[PAGE] = 1;
  succeed(cudaMemPrefetchAsync(memory, 64 * PAGE, gpu, 0, NULL));
  succeed(cudaMemPrefetchAsync(memory, 64 * PAGE, cpu, 0, NULL));
  succeed(cudaDeviceSynchronize());
  shows("w0+1 a1@3 a3@-1 a5@0 a4@3 w1+1 p@0 p@-1 S");
}

/* Calls of the system that read and write managed memory work and are seen. */
static void system_calls(void **state) {
  (void)state;
  NEEDS(ENGINE_TOUCH_EXACT);
  int zero = open("/dev/zero", O_RDONLY), pipes[2];
  assert_int_equal(pipe(pipes), 0);
  run_bump(0, 64);
  assert_int_equal(read(zero, memory + PAGE + 10, 2 * PAGE), 2 * PAGE);
  assert_int_equal(write(pipes[1], memory + 7 * PAGE, 10), 10);
  assert_int_equal(read(pipes[0], memory + 9 * PAGE, 10), 10);
  FILE *file = tmpfile();
  assert_int_equal(fwrite(memory + 12 * PAGE, PAGE, 2, file), 2);
  rewind(file);
  assert_int_equal(fread(memory + 20 * PAGE, PAGE, 2, file), 2);
  fclose(file);
  succeed(cudaDeviceSynchronize());
  shows("L w1+3 r7+1 w9+1 r12+2 w20+2 S");
  assert_int_equal(memory[20 * PAGE], 1);
  close(zero), close(pipes[0]), close(pipes[1]);
}

/* As the kernel takes back pages that were not used of late, to find room or because it is set up to: the program's
 * pages are as they were. */
static void pages_that_the_kernel_takes_back(void **state) {
  (void)state;
  NEEDS(ENGINE_TOUCH_PAGES);
  struct rlimit limit;
  assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
  /* more than its limit: it has none */
  size_t bytes = limit.rlim_cur == RLIM_INFINITY ? PAGE : (limit.rlim_cur / PAGE + 1) * PAGE;
  void *probe = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (probe == MAP_FAILED) skip();
  bool may_lock = !mlock2(probe, bytes, MLOCK_ONFAULT);
  munmap(probe, bytes);
  if (!may_lock) skip();
  run_bump(0, 8);
  memory[3 * PAGE] = 1;
  memory[9 * PAGE] = 1;
  madvise(memory, 64 * PAGE, MADV_PAGEOUT); /* its result is whether it may */
  succeed(cudaDeviceSynchronize());
  shows("L w3+1 w9+1 S");
}

static void *write_pages(void *first) {
  for (int round = 0; round < 100; round++)
    for (int i = 0; i < 16; i++) ((volatile char *)first)[(size_t)i * PAGE]++;
  return NULL;
}

/* Threads touch at once, and while the device works: nothing is lost, and what lies between operations is seen. */
static void threads(void **state) {
  (void)state;
  NEEDS(ENGINE_TOUCH_PAGES);
  pthread_t thread[3];
  for (int i = 0; i < 3; i++)
    assert_int_equal(pthread_create(&thread[i], NULL, write_pages, memory + (size_t)(16 + 16 * i) * PAGE), 0);
  for (int i = 0; i < 20; i++) run_bump(0, 16);
  for (int i = 0; i < 3; i++) pthread_join(thread[i], NULL);
  succeed(cudaDeviceSynchronize());
  for (int i = 0; i < 64; i++) assert_int_equal(memory[(size_t)i * PAGE], i < 16 ? 20 : 100);
  succeed(cudaDeviceSynchronize());
  operations();
  for (int i = 0; i < 3; i++)
    assert_int_equal(pthread_create(&thread[i], NULL, write_pages, memory + (size_t)(16 + 16 * i) * PAGE), 0);
  for (int i = 0; i < 3; i++) pthread_join(thread[i], NULL);
  succeed(cudaDeviceSynchronize());
  assert_non_null(strstr(operations(), "w16+48 S"));
}

static void a_child_shares_nothing(void **state) {
  (void)state;
  NEEDS(ENGINE_TOUCH_GROUPS);
  memset(memory, 5, 64 * PAGE);
  run_bump(0, 1);
  fflush(NULL);
  pid_t child = fork();
  if (!child) {
    int wrong = memory[0] != 6 || memory[PAGE] != 5;
    memset(memory, 9, 64 * PAGE);
    _exit(wrong);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(memory[0], 6);
  assert_int_equal(memory[63 * PAGE], 5);
}

static void variables(void **state) {
  (void)state;
  NEEDS(ENGINE_TOUCH_EXACT);
  assert_non_null(variable); /* loaded by the first launch */
  uint64_t page = (canonical(variable) - canonical(memory)) / PAGE;
  char expected[64];
  succeed(cudaDeviceSynchronize());
  operations();
  assert_int_equal(*(volatile int *)variable, 7);
  succeed(cudaDeviceSynchronize());
  snprintf(expected, sizeof expected, "r%llu+1 S", (unsigned long long)page);
  shows(expected);
}

/* Released memory comes back as zeros, and large sparse allocations cost nothing. */
static void memory_is_used_again(void **state) {
  (void)state;
  char *again, *large;
  for (int i = 0; i < 5000; i++) { /* more than are remembered as freed */
    succeed(cudaMallocManaged((void **)&again, PAGE, cudaMemAttachGlobal));
    assert_int_equal(again[0], 0);
    again[0] = 1;
    succeed(cudaFree(again));
  }
  succeed(cudaMallocManaged((void **)&large, (size_t)100 << 30, cudaMemAttachGlobal));
  large[(size_t)99 << 30] = 1;
  succeed(cudaFree(large));
  operations();
}

/* A program may close what it did not open. Its memory goes on working; later allocations are not recorded. */
static void closed_descriptors(void **state) {
  (void)state;
  memory[0] = 4;
  for (int fd = 3; fd < 64; fd++) {
    char link[64], target[128] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (readlink(link, target, sizeof target - 1) > 0 &&
        (strstr(target, "managed memory") || strstr(target, "userfaultfd")))
      close(fd);
  }
  char *other;
  succeed(cudaMallocManaged((void **)&other, 4 * PAGE, cudaMemAttachGlobal));
  other[0] = 1;
  run_bump(0, 1);
  succeed(cudaDeviceSynchronize());
  assert_int_equal(memory[0], 5);
  assert_int_equal(other[0], 1);
  succeed(cudaFree(other));
}

int main(int count, char **arguments) {
  if (count == 1) { /* all levels, each in a process of its own */
    static const char *const levels[] = {"on", "pages", "groups", "off"};
    int failed = 0;
    for (int i = 0; i < 4; i++) {
      setenv("FARFAULT_HOST_TOUCHES", levels[i], 1);
      pid_t child = fork();
      if (!child) execl("/proc/self/exe", arguments[0], levels[i], NULL);
      int status;
      waitpid(child, &status, 0);
      if (status) fprintf(stderr, "level '%s' failed\n", levels[i]), failed = 1;
    }
    return failed;
  }
#define CASE(name) cmocka_unit_test_setup_teardown(name, allocate, release)
  const struct CMUnitTest tests[] = {
      CASE(first_touches),
      CASE(reads_and_writes_after_a_kernel),
      CASE(without_write_protection_all_are_writes),
      CASE(without_userfaultfd_reads_spread),
      CASE(copies_are_not_touches),
      CASE(neighbours),
      CASE(hints),
      CASE(pages_that_the_kernel_takes_back),
      CASE(system_calls),
      CASE(threads),
      CASE(a_child_shares_nothing),
      CASE(variables),
      CASE(memory_is_used_again),
      CASE(closed_descriptors),
  };
  return cmocka_run_group_tests(tests, set_up, NULL);
}
