/* SPDX-License-Identifier: Apache-2.0 */
/* driver_answers [--list] [SECTION...]: what the CUDA driver, its runtime and NVML say to a list of questions, as lines
 * `section.call case = answer`; on any driver, so that those of two can be compared. */
#define _GNU_SOURCE
#include "answers.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *section_name = "";
static void *libraries[3];
static sigjmp_buf before;
static volatile sig_atomic_t asking;

void say(const char *key, const char *format, ...) {
  va_list list;
  va_start(list, format);
  printf("%s.%s = ", section_name, key);
  vprintf(format, list);
  putchar('\n');
  fflush(stdout);
  va_end(list);
}

static void caught(int number) {
  if (asking) siglongjmp(before, number);
  static const char text[] = "the section ends with a signal\n";
  if (write(1, text, sizeof text - 1) < 0) _exit(4);
  _exit(5);
}

void *answers_symbol(const char *name) {
  for (int i = 0; i < 3; i++) {
    void *found = libraries[i] ? dlsym(libraries[i], name) : NULL;
    if (found) return found;
  }
  return NULL;
}

int answers_call(const char *name, const W *a) {
  int (*function)(W, W, W, W, W, W, W, W, W, W, W, W) =
      (int (*)(W, W, W, W, W, W, W, W, W, W, W, W))answers_symbol(name);
  if (!function) return -1;
  int number = sigsetjmp(before, 1);
  if (number) {
    asking = 0;
    return -1000 - number;
  }
  asking = 1;
  int result = function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]);
  asking = 0;
  return result;
}

const char *answers_name(int result) {
  static char number[40];
  const char *name = NULL;
  if (result == -1) return "no such function";
  if (result <= -1000) {
    snprintf(number, sizeof number, "%s", result == -1000 - SIGSEGV ? "SIGSEGV" : "a signal");
    return number;
  }
  int (*ask)(int, const char **) = (int (*)(int, const char **))answers_symbol("cuGetErrorName");
  if (ask && !ask(result, &name) && name) return name;
  snprintf(number, sizeof number, "%d", result);
  return number;
}

int answers_ask(const char *label, const char *name, const W *arguments) {
  char key[200];
  int result = answers_call(name, arguments);
  snprintf(key, sizeof key, "%s %s", name, label);
  if (!strncmp(name, "nvml", 4) && result >= 0) say(key, "%d", result);
  else say(key, "%s", answers_name(result));
  return result;
}

void answers_must(const char *name, const W *arguments) {
  int result = answers_call(name, arguments);
  if (!result) return;
  say("stopped", "%s: %s", name, answers_name(result));
  exit(3);
}

void answers_runtime(void) {
  const char *path = getenv("DRIVER_ANSWERS_RUNTIME");
  if (!path) path = "libcudart.so.13";
  libraries[1] = dlopen(path, RTLD_NOW);
  if (!libraries[1]) say("stopped", "no %s", path), exit(3);
}

void answers_nvml(void) {
  libraries[2] = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (!libraries[2]) say("stopped", "no libnvidia-ml.so.1"), exit(3);
}

void *answers_context(void) {
  void *context = NULL;
  MUST(cuInit, 0);
  MUST(cuDevicePrimaryCtxRetain, &context, 0);
  MUST(cuCtxSetCurrent, context);
  return context;
}

W answers_module(const char *ptx) {
  W module = 0;
  MUST(cuModuleLoadData, &module, ptx);
  return module;
}

W answers_function(W module, const char *name) {
  W function = 0;
  MUST(cuModuleGetFunction, &function, module, name);
  return function;
}

W answers_memory(size_t bytes) {
  W memory = 0;
  MUST(cuMemAlloc_v2, &memory, bytes);
  MUST(cuMemsetD8_v2, memory, 0, bytes);
  MUST(cuCtxSynchronize, 0);
  return memory;
}

/* True in the new process; the old one waits for it. */
int answers_alone(void) {
  fflush(stdout);
  pid_t child = fork();
  if (child < 0) exit(4);
  if (child == 0) {
    alarm(6);
    return 1;
  }
  int status = 0;
  alarm(9); /* the section's time begins again */
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFSIGNALED(status)) say("alone", "signal %d", WTERMSIG(status));
  else if (WEXITSTATUS(status)) say("alone", "status %d", WEXITSTATUS(status));
  return 0;
}

/* Without the libraries' own ends, which may not be reached after a wrong call. */
void answers_done(void) {
  fflush(stdout);
  _exit(0);
}

static const section *const groups[] = {sections_devices,  sections_memory,  sections_streams,  sections_graphs,
                                        sections_mapped,   sections_modules, sections_launches, sections_faults,
                                        sections_textures, sections_arrays,  sections_newer,    sections_other};
#define GROUPS (sizeof groups / sizeof *groups)

static int wanted(const char *name, int count, char **names) {
  for (int i = 0; i < count; i++) {
    if (!strcmp(names[i], name)) return 1;
  }
  return count == 0;
}

static void section_run(const section *one) {
  fflush(stdout);
  pid_t child = fork();
  if (child < 0) exit(4);
  if (child == 0) {
    section_name = one->name;
    setpgid(0, 0);
    struct sigaction action = {.sa_handler = caught, .sa_flags = SA_NODEFER};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    sigaction(SIGFPE, &action, NULL);
    const char *path = getenv("DRIVER_ANSWERS_LIBRARY");
    libraries[0] = dlopen(path ? path : "libcuda.so.1", RTLD_NOW);
    if (!libraries[0]) say("stopped", "no %s", path ? path : "libcuda.so.1"), _exit(3);
    alarm(9);
    one->run();
    fflush(stdout);
    _exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  section_name = one->name;
  if (WIFSIGNALED(status)) say("end", "signal %d", WTERMSIG(status));
  else say("end", "%d", WEXITSTATUS(status));
}

int main(int count, char **names) {
  if (count == 2 && !strcmp(names[1], "--list")) {
    for (size_t i = 0; i < GROUPS; i++)
      for (const section *one = groups[i]; one->name; one++) puts(one->name);
    return 0;
  }
  for (size_t i = 0; i < GROUPS; i++)
    for (const section *one = groups[i]; one->name; one++)
      if (wanted(one->name, count - 1, names + 1)) section_run(one);
  return 0;
}
