/* SPDX-License-Identifier: Apache-2.0 */
/* A product of matrices in tensor memory, and the same on the CPU: tensor_gemm FILE.ptx ROWS COLUMNS DEPTH [kept].
 * Prints PASSED, or how many elements are wrong; kept: the kernel leaves its tensor memory allocated. */
#include <stdint.h>
#include <string.h>

#include "driver_call.h"

typedef struct size {
  uint32_t rows, columns, depth;
} size;

/* Halves of -4 to 4 in steps of a quarter, which sums keep exactly. */
static float value_of(uint32_t row, uint32_t k, uint32_t seed) {
  return (float)((int)((row * 7 + k * 13 + seed) % 33) - 16) / 4;
}

static uint16_t half_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  if (!(bits << 1)) return 0;
  return (uint16_t)((bits >> 16 & 0x8000) | (((bits >> 23 & 0xff) - 112) << 10) | (bits >> 13 & 0x3ff));
}

static uint64_t upload(uint32_t rows, uint32_t depth, uint32_t seed) {
  uint64_t address;
  size_t bytes = (size_t)rows * depth * 2;
  uint16_t *halves = malloc(bytes);
  for (uint32_t row = 0; row < rows; row++)
    for (uint32_t k = 0; k < depth; k++) halves[(size_t)row * depth + k] = half_of(value_of(row, k, seed));
  CALL(cuMemAlloc_v2, (uint64_t *, size_t), &address, bytes);
  CALL(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), address, halves, bytes);
  free(halves);
  return address;
}

static uint32_t wrong_elements(size s, const float *d) {
  uint32_t wrong = 0;
  for (uint32_t m = 0; m < s.rows; m++)
    for (uint32_t n = 0; n < s.columns; n++) {
      float sum = 0;
      for (uint32_t k = 0; k < s.depth; k++) sum += value_of(m, k, 0) * value_of(n, k, 5);
      wrong += d[(size_t)m * s.columns + n] != sum;
    }
  return wrong;
}

int main(int argc, char **argv) {
  if (argc < 5) return 4;
  size s = {(uint32_t)atoi(argv[2]), (uint32_t)atoi(argv[3]), (uint32_t)atoi(argv[4])};
  uint32_t kept = argc > 5 && !strcmp(argv[5], "kept");
  char *text = driver_text(argv[1]);
  void *module = driver_open(text), *kernel;
  uint64_t a = upload(s.rows, s.depth, 0), b = upload(s.columns, s.depth, 5), d;
  size_t bytes = (size_t)s.rows * s.columns * sizeof(float);
  float *product = calloc(1, bytes);
  CALL(cuMemAlloc_v2, (uint64_t *, size_t), &d, bytes);
  CALL(cuModuleGetFunction, (void **, void *, const char *), &kernel, module, "gemm");
  void *arguments[] = {&d, &a, &b, &s.columns, &s.depth, &kept};
  CALL(cuLaunchKernel,
       (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **), kernel,
       s.columns / 64, s.rows / 128, 1, 128, 1, 1, 0, NULL, arguments, NULL);
  CALL(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), product, d, bytes);
  uint32_t wrong = wrong_elements(s, product);
  printf(wrong ? "%u elements are wrong\n" : "PASSED\n", wrong);
  free(product);
  free(text);
  return wrong != 0;
}
