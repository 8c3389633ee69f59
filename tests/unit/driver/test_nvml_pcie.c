/* SPDX-License-Identifier: Apache-2.0 */
/* What NVML says of the link to the host, from the machine file's rates: each machine in a process of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct nvmlDevice *nvmlDevice;
int nvmlInit_v2(void), nvmlDeviceGetHandleByIndex_v2(unsigned, nvmlDevice *);
typedef int query(nvmlDevice, unsigned *);
query nvmlDeviceGetCurrPcieLinkGeneration, nvmlDeviceGetMaxPcieLinkGeneration, nvmlDeviceGetGpuMaxPcieLinkGeneration,
    nvmlDeviceGetCurrPcieLinkWidth, nvmlDeviceGetMaxPcieLinkWidth, nvmlDeviceGetPcieLinkMaxSpeed,
    nvmlDeviceGetPcieSpeed;

enum { UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3 };

/* The number of the first answer that is wrong, from 1; 0: all are right. */
static int wrong_answer(const unsigned *right) {
  static query *const queries[] = {nvmlDeviceGetCurrPcieLinkGeneration,
                                   nvmlDeviceGetMaxPcieLinkGeneration,
                                   nvmlDeviceGetGpuMaxPcieLinkGeneration,
                                   nvmlDeviceGetPcieLinkMaxSpeed,
                                   nvmlDeviceGetCurrPcieLinkWidth,
                                   nvmlDeviceGetMaxPcieLinkWidth,
                                   nvmlDeviceGetPcieSpeed};
  nvmlDevice device;
  for (int i = 0; i < 7; i++) {
    unsigned value = 77;
    if (queries[i](NULL, &value) != UNINITIALIZED || value != 77) return i + 21;
  }
  if (nvmlInit_v2() || nvmlDeviceGetHandleByIndex_v2(0, &device)) return 100;
  for (int i = 0; i < 7; i++) {
    /* nothing is written without a link */
    unsigned value = 77, want = right[0] ? right[i < 4 ? 0 : i < 6 ? 1 : 2] : 77;
    int status = queries[i](device, &value);
    if (status != (right[0] ? 0 : NOT_SUPPORTED) || value != want) return i + 1;
    if (queries[i](device, NULL) != INVALID_ARGUMENT || queries[i](NULL, &value) != INVALID_ARGUMENT) return i + 11;
  }
  return 0;
}

static void test_generations(void **state) {
  static const struct {
    const char *machine, *set;
    unsigned right[3]; /* generation, 0: it is no PCI Express; lanes; speed */
  } rows[] = {
      {"v100", "", {3, 16, 8000}},
      {"gtx480", "", {3, 16, 8000}},
      {"a100", "", {4, 16, 16000}},
      {"h200", "", {5, 16, 32000}},
      {"gh200", "", {0}}, /* NVLink-C2C */
      {"v100", "link_h2d_gbs=4,link_d2h_gbs=4", {1, 16, 2500}},
      {"v100", "link_h2d_gbs=4,link_d2h_gbs=4.1", {2, 16, 5000}},
      {"v100", "link_h2d_gbs=8.1,link_d2h_gbs=4", {3, 16, 8000}},
      {"v100", "link_h2d_gbs=128,link_d2h_gbs=1", {6, 16, 64000}},
      {"v100", "link_h2d_gbs=129,link_d2h_gbs=1", {0}},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int status;
    pid_t child = fork();
    if (!child) {
      setenv("FARFAULT_MACHINE", rows[i].machine, 1);
      setenv("FARFAULT_SET", rows[i].set, 1);
      _exit(wrong_answer(rows[i].right));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status) print_error("row %zu: %d\n", i, WEXITSTATUS(status));
    assert_int_equal(status, 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_generations)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
