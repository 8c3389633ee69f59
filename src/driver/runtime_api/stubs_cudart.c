/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime functions that are not implemented: each prints that once, with its name, and is cudaErrorNotSupported.
 *
 * Every name of stubs_cudart.def that belongs to this major is exported (driver/test_symbols). Each is a weak
 * definition, so that a function of cudart_*.c with that name takes its place at link time, without a list of what
 * exists. No header that declares them may be included here: all have the type int (void). */
#ifndef CUDART_MAJOR
#define CUDART_MAJOR 13
#endif

int engine_unimplemented(const char *call); /* engine.h */

#define STUB(name)                                             \
  __attribute__((weak, visibility("default"))) int name(void); \
  __attribute__((weak, visibility("default"))) int name(void) { return engine_unimplemented(#name); }
#define ABSENT(name)

/* STUB_first_last(name): is it in this major? */
#define STUB_11_13 STUB
#if CUDART_MAJOR == 11
#define STUB_11_11 STUB
#define STUB_11_12 STUB
#define STUB_12_12 ABSENT
#define STUB_12_13 ABSENT
#define STUB_13_13 ABSENT
#elif CUDART_MAJOR == 12
#define STUB_11_11 ABSENT
#define STUB_11_12 STUB
#define STUB_12_12 STUB
#define STUB_12_13 STUB
#define STUB_13_13 ABSENT
#else
#define STUB_11_11 ABSENT
#define STUB_11_12 ABSENT
#define STUB_12_12 ABSENT
#define STUB_12_13 STUB
#define STUB_13_13 STUB
#endif

#define X(name, first, last) STUB_##first##_##last(name)
#include "driver/runtime_api/stubs_cudart.def"
#undef X
