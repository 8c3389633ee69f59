/* SPDX-License-Identifier: Apache-2.0 */
/* What driver_answers_*.c ask with: a call by its name, any arguments, and its answer as one line `key = value`.
 *
 * All arguments are widened to 64 bits, which the calling convention of x86-64 allows for integers and pointers. A call
 * that ends in a signal answers with the signal's name. Every section runs in a process of its own, each
 * question that is asked alone for at most nine seconds. */
#ifndef FF_TESTS_DRIVER_ANSWERS_H
#define FF_TESTS_DRIVER_ANSWERS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long W;

#define W_1(a) (W)(a)
#define W_2(a, ...) (W)(a), W_1(__VA_ARGS__)
#define W_3(a, ...) (W)(a), W_2(__VA_ARGS__)
#define W_4(a, ...) (W)(a), W_3(__VA_ARGS__)
#define W_5(a, ...) (W)(a), W_4(__VA_ARGS__)
#define W_6(a, ...) (W)(a), W_5(__VA_ARGS__)
#define W_7(a, ...) (W)(a), W_6(__VA_ARGS__)
#define W_8(a, ...) (W)(a), W_7(__VA_ARGS__)
#define W_9(a, ...) (W)(a), W_8(__VA_ARGS__)
#define W_10(a, ...) (W)(a), W_9(__VA_ARGS__)
#define W_11(a, ...) (W)(a), W_10(__VA_ARGS__)
#define W_12(a, ...) (W)(a), W_11(__VA_ARGS__)
#define W_PICK(a, b, c, d, e, f, g, h, i, j, k, l, n, ...) n
#define W_ALL(...) W_PICK(__VA_ARGS__, W_12, W_11, W_10, W_9, W_8, W_7, W_6, W_5, W_4, W_3, W_2, W_1, 0)(__VA_ARGS__)

/* The result of the call, without a line. */
#define DO(name, ...) answers_call(#name, (const W[12]){W_ALL(__VA_ARGS__)})
/* The same with a line; `label` says which case it is. */
#define ASK(label, name, ...) answers_ask(label, #name, (const W[12]){W_ALL(__VA_ARGS__)})
/* What must succeed for the rest of the section to have a meaning. */
#define MUST(name, ...) answers_must(#name, (const W[12]){W_ALL(__VA_ARGS__)})

int answers_call(const char *name, const W *arguments);
int answers_ask(const char *label, const char *name, const W *arguments);
void answers_must(const char *name, const W *arguments);
void *answers_symbol(const char *name); /* of the libraries that are asked; NULL: none has it */
void answers_runtime(void);             /* opens the runtime as well */
void answers_nvml(void);
const char *answers_name(int result); /* as the driver's enumeration has it, or the number */
/* One line: section.key = value. */
__attribute__((format(printf, 2, 3))) void say(const char *key, const char *format, ...);

/* What may end the process, or leave the driver in no state to be asked more, in a process of its own, where nothing
 * has been initialised. */
#define ALONE(...)         \
  do {                     \
    if (answers_alone()) { \
      __VA_ARGS__;         \
      answers_done();      \
    }                      \
  } while (0)
int answers_alone(void);
void answers_done(void);

/* A context of device 0, current. */
void *answers_context(void);
W answers_module(const char *ptx); /* loaded; a handle */
W answers_function(W module, const char *name);
W answers_memory(size_t bytes); /* of the device, zero */

typedef struct section {
  const char *name;
  void (*run)(void);
} section;
/* Each ends with {NULL, NULL}. */
extern const section sections_devices[], sections_memory[], sections_streams[], sections_graphs[], sections_mapped[],
    sections_modules[], sections_launches[], sections_faults[], sections_textures[], sections_arrays[],
    sections_newer[], sections_other[];

#endif
