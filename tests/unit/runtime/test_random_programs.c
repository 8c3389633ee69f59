/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs on libfarfault and the model driver: the result is that of the launches one after the other, whatever
 * order the driver chooses, whatever calls fail, with nothing left over. FARFAULT_PROGRAMS: how many per kind (of the
 * first).
 *
 *   test_random_programs --kind plain|failures|one|lost|threads|threads_failures --seed N [--count N] [-v]    one, or some, with their steps */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "random_program.h"

typedef struct kind {
  const char *name;
  program_failures failures;
  uint32_t threads, percent; /* percent: of FARFAULT_PROGRAMS */
} kind;
static const kind kinds[] = {
    {"plain", PROGRAM_NO_FAILURES, 1, 100}, {"failures", PROGRAM_FAILURES, 1, 50},
    {"one", PROGRAM_ONE_FAILURE, 1, 50},    {"lost", PROGRAM_LOST, 1, 30},
    {"threads", PROGRAM_NO_FAILURES, 4, 5}, {"threads_failures", PROGRAM_FAILURES, 3, 5},
};

static bool run(const kind *kind, uint64_t seed, bool verbose, program_result *sum) {
  program_options options = {.seed = seed, .failures = kind->failures, .threads = kind->threads, .verbose = verbose};
  program_result result;
  program_run(&options, &result);
  if (!result.good)
    fprintf(stderr, "%s\nwrong: %s\nagain: test_random_programs --kind %s --seed %llu -v\n",
            verbose || !result.trace ? "" : result.trace, result.why, kind->name, (unsigned long long)seed);
  sum->launches += result.launches;
  sum->refused += result.refused;
  sum->failed_calls += result.failed_calls;
  sum->failed_launches += result.failed_launches;
  sum->windows += result.windows;
  sum->evicted_bytes += result.evicted_bytes;
  sum->torn += result.torn;
  free(result.trace);
  return result.good;
}

/* Seeds from the kind's own range: what one kind has found does not move the others. */
static void run_kind(const kind *kind) {
  const char *wanted = getenv("FARFAULT_PROGRAMS");
  uint64_t count = (wanted ? strtoull(wanted, NULL, 10) : 6000) * kind->percent / 100;
  program_result sum = {.launches = 0};
  for (uint64_t seed = 1; seed <= count; seed++)
    if (!run(kind, seed, false, &sum)) fail();
  print_message(
      "%llu programs: %llu launches, %llu refused, %llu driver calls failed, %llu launches with them; %llu windows, %llu MB "
      "evicted; contents of %llu not checked\n",
      (unsigned long long)count, (unsigned long long)sum.launches, (unsigned long long)sum.refused,
      (unsigned long long)sum.failed_calls, (unsigned long long)sum.failed_launches, (unsigned long long)sum.windows,
      (unsigned long long)sum.evicted_bytes >> 20, (unsigned long long)sum.torn);
  if (count < 1000) return;
  assert_true(sum.launches > count && sum.windows > count / 40 && sum.evicted_bytes > count * 1024 &&
              sum.torn < count / 4);
  if (kind->failures) assert_true(sum.failed_calls > count / 10 && sum.failed_launches > 0);
}
static void plain(void **state) { run_kind(&kinds[0]); }
static void failures(void **state) { run_kind(&kinds[1]); }
static void one_failure(void **state) { run_kind(&kinds[2]); }
static void lost(void **state) { run_kind(&kinds[3]); }
static void threads(void **state) { run_kind(&kinds[4]); }
static void threads_failures(void **state) { run_kind(&kinds[5]); }

static int start(void **state) { return !program_start(FF_BUILD_DIR "/tests/model_driver.so"); }
static int end(void **state) {
  program_end();
  return 0;
}

static int run_wanted(int argc, char **argv) {
  const kind *kind = &kinds[0];
  uint64_t seed = 1, count = 1;
  bool verbose = false;
  for (int i = 1; i < argc; i++) {
    const char *value = i + 1 < argc ? argv[i + 1] : "";
    if (!strcmp(argv[i], "--seed")) seed = strtoull(value, NULL, 0);
    if (!strcmp(argv[i], "--count")) count = strtoull(value, NULL, 0);
    if (!strcmp(argv[i], "-v")) verbose = true;
    for (size_t k = 0; !strcmp(argv[i], "--kind") && k < sizeof kinds / sizeof *kinds; k++)
      if (!strcmp(kinds[k].name, value)) kind = &kinds[k];
  }
  program_result sum = {.launches = 0};
  uint64_t bad = 0;
  for (uint64_t s = seed; s < seed + count; s++) bad += !run(kind, s, verbose, &sum);
  printf("%llu of %llu %s programs wrong, %llu launches\n", (unsigned long long)bad, (unsigned long long)count,
         kind->name, (unsigned long long)sum.launches);
  return bad != 0;
}

int main(int argc, char **argv) {
  if (argc > 1) {
    if (start(NULL)) return 1;
    int result = run_wanted(argc, argv);
    program_end();
    return result;
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plain), cmocka_unit_test(failures), cmocka_unit_test(one_failure),
      cmocka_unit_test(lost),  cmocka_unit_test(threads),  cmocka_unit_test(threads_failures),
  };
  return cmocka_run_group_tests(tests, start, end);
}
