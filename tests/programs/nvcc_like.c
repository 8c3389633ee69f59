/* SPDX-License-Identifier: Apache-2.0 */
/* A program with a fat binary where nvcc puts it (FATBIN: its file). With IMPORTS it needs a shared CUDA runtime,
 * without it seems to have the static one inside. It only says what LD_PRELOAD it was given. */
__asm__(".section .nv_fatbin,\"a\",@progbits\n.balign 8\nfatbin_bytes:\n.incbin \"" FATBIN "\"\n"
        ".section .nvFatBinSegment,\"aw\",@progbits\n.balign 8\n.long 0x466243b1, 1\n.quad fatbin_bytes, 0\n.text\n");

#include <stdio.h>
#include <stdlib.h>

#ifdef IMPORTS
extern void **__cudaRegisterFatBinary(void *binary);
void **(*volatile imported)(void *) = __cudaRegisterFatBinary;
#endif

int main(void) {
  const char *preload = getenv("LD_PRELOAD");
  printf("preload: %s\n", preload ? preload : "none");
  return 0;
}
