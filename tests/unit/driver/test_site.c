/* SPDX-License-Identifier: Apache-2.0 */
/* Where a call was made (engine_site.h): lines of this file, the same again from the tree of known paths, frames whose
 * size varies, stubs of kernels that are passed, several threads, and what a known site costs. Names in messages. */
#include "driver/engine/engine_internal.h"
#include "driver/engine/engine_site.h"

#include <alloca.h>
#include <pthread.h>
#include <time.h>

#include "program.h"

#define APART __attribute__((noinline)) /* a frame of its own */
#define STAY __asm__ volatile("" ::: "memory")

/* A kernel's stub and the interface's functions, as they lie between the program and the engine. */
APART static const char *__device_stub_work(void) {
  const char *site = engine_site("work");
  STAY;
  return site;
}

APART static const char *work(void) {
  const char *site = __device_stub_work();
  STAY;
  return site;
}

APART static const char *cudaWrapped(void) {
  const char *site = engine_site(NULL);
  STAY;
  return site;
}

static void expect_line(const char *site, int line) {
  char text[ENGINE_SITE_BYTES];
  snprintf(text, sizeof text, "test_site.c:%d", line);
  assert_string_equal(site, text);
}

static void lines(void **state) {
  (void)state;
  for (int n = 0; n < 3; n++) { /* unwound, then known */
    expect_line(engine_site(NULL), __LINE__);
    expect_line(work(), __LINE__);
    expect_line(cudaWrapped(), __LINE__);
    const char *here[2] = {work(), work()};
    assert_ptr_equal(here[0], here[1]);
  }
}

/* From two callers through one frame that is passed. */
APART static const char *cudaThrough(size_t bytes) {
  volatile char *memory = alloca(bytes);
  memory[0] = 1;
  const char *site = engine_site(NULL);
  memory[bytes - 1] = 2;
  return site;
}

static void frames_that_vary(void **state) {
  (void)state;
  for (size_t bytes = 16; bytes < 20000; bytes = bytes * 3 + 16) {
    expect_line(cudaThrough(bytes), __LINE__);
    expect_line(cudaThrough(16), __LINE__);
    expect_line(cudaThrough(bytes), __LINE__);
  }
}

static void *ask(void *unused) {
  (void)unused;
  for (int n = 0; n < 1000; n++) {
    const char *site = work();
    char text[ENGINE_SITE_BYTES];
    snprintf(text, sizeof text, "test_site.c:%d", __LINE__ - 2);
    if (strcmp(site, text)) return "wrong";
  }
  return NULL;
}

static void several_threads(void **state) {
  (void)state;
  pthread_t threads[4];
  for (int n = 0; n < 4; n++) assert_int_equal(pthread_create(&threads[n], NULL, ask, NULL), 0);
  for (int n = 0; n < 4; n++) {
    void *wrong;
    assert_int_equal(pthread_join(threads[n], &wrong), 0);
    assert_null(wrong);
  }
}

/* Far below the microsecond that a launch may take for it; unwinding these frames takes more. */
static void a_known_site_costs_little(void **state) {
  (void)state;
  enum { TIMES = 100000 };
  double best = 1e9;
  for (int round = 0; round < 10; round++) {
    struct timespec begin, end;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    for (int n = 0; n < TIMES; n++) work();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    double each = ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / TIMES;
    if (each < best) best = each;
  }
  print_message("a known site: %.0f ns\n", best);
  assert_true(best < 1000);
}

/* Names as a person reads them; not so in an instruction's text, nor where it is no function's. */
static void names_in_messages(void **state) {
  static const char *const rows[][2] = {{"illegal\n  in kernel _Z4oopsIfEvPT_, block (0,0,0)",
                                         "illegal\n  in kernel void oops<float>(float*), block (0,0,0)"},
                                        {"x\n  at m:3 in function _ZN1a4helpEi: call.uni _ZN1a4helpEi, (p);",
                                         "x\n  at m:3 in function a::help(int): call.uni _ZN1a4helpEi, (p);"},
                                        {"in kernel _Zwrong", "in kernel _Zwrong"},
                                        {" _Z1fv kernel plain", " _Z1fv kernel plain"},
                                        {"", ""}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char message[128];
    snprintf(message, sizeof message, "%s", rows[i][0]);
    engine_name_functions(message, sizeof message);
    assert_string_equal(message, rows[i][1]);
  }
  char small[16] = "kernel _Z4oopsv"; /* " _Z" behind a blank only */
  engine_name_functions(small, sizeof small);
  assert_string_equal(small, "kernel oops()");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lines),
      cmocka_unit_test(frames_that_vary),
      cmocka_unit_test(several_threads),
      cmocka_unit_test(a_known_site_costs_little),
      cmocka_unit_test(names_in_messages),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
