/* SPDX-License-Identifier: Apache-2.0 */
/* LIBRARY: what looks like NVRTC to a program that wants machine code; else the program. It says what it got. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#ifdef LIBRARY
#ifdef __clang__
#define FUNCTION __attribute__((noinline, optnone, visibility("default")))
#else
#define FUNCTION __attribute__((noipa, visibility("default")))
#endif
#define GIVE(what, text)                                           \
  FUNCTION int nvrtcGet##what##Size(void *program, size_t *size);  \
  FUNCTION int nvrtcGet##what##Size(void *program, size_t *size) { \
    *size = sizeof text;                                           \
    return program == NULL;                                        \
  }                                                                \
  FUNCTION int nvrtcGet##what(void *program, char *to);            \
  FUNCTION int nvrtcGet##what(void *program, char *to) {           \
    memcpy(to, text, sizeof text);                                 \
    return program == NULL;                                        \
  }
GIVE(PTX, "the PTX, which is longer")
GIVE(CUBIN, "machine code")
#else
int nvrtcGetCUBINSize(void *program, size_t *size);
int nvrtcGetCUBIN(void *program, char *to);

int main(void) {
  char text[64], program;
  size_t size = 0;
  if (nvrtcGetCUBINSize(&program, &size) || size > sizeof text || nvrtcGetCUBIN(&program, text)) return 1;
  printf("%zu bytes: %s\n", size, text);
  return 0;
}
#endif
