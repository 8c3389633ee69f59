/* SPDX-License-Identifier: Apache-2.0 */
/* A compiler that is missing, fails, dies, says nonsense, says nothing or hangs: kernels are interpreted, and nothing
 * waits for ever. Each case in a process of its own, as the compiler is looked for once. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/text.h"
#include "compile/compile_private.h"
#include "exec/exec.h"

static char folder[4000];

/* out[i] = 3 i, for 64 threads; long enough to be more than a socket holds at once, if `large`. */
static const char *filling = "xor.b32 %r1, %r1, 1;\nxor.b32 %r1, %r1, 1;\n";
static ff_text kernel_text(bool large) {
  ff_text text = {0};
  ff_text_add(
      &text,
      ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 o)\n{\n.reg .b64 %%d<2>; .reg .b32 %%r<4>; .reg .pred %%p0;\n"
      "ld.param.u64 %%d0, [o];\nmov.u32 %%r0, %%tid.x;\nmul.lo.u32 %%r1, %%r0, 3;\n");
  for (int n = 0; n < (large ? 20000 : 1); n++) ff_text_add(&text, "%s", filling);
  ff_text_add(&text, "mad.wide.u32 %%d0, %%r0, 4, %%d0;\nst.global.u32 [%%d0], %%r1;\nret;\n}\n");
  return text;
}

static struct {
  ff_text text;
  exec_memory *memory;
  ptx_module *module;
  exec_program *program;
  exec_kernel *kernel;
  const exec_allocation *out;
} opened;

static bool open_kernel(bool large) {
  ff_error error = {0};
  opened.text = kernel_text(large);
  if (!exec_memory_create(&opened.memory, &error) &&
      !ptx_module_parse("k", opened.text.chars, opened.text.length, &opened.module, &error) &&
      !exec_program_create(opened.module, opened.memory, &opened.program, &error) &&
      !exec_program_kernel(opened.program, "k", &opened.kernel, &error) &&
      !exec_memory_allocate(opened.memory, 256, 0, EXEC_MEMORY_DEVICE, "out", &opened.out, &error))
    return true;
  printf("%s\n", error.message);
  return false;
}

/* True: the kernel ran and what it gave is right. */
static bool launch_kernel(void) {
  ff_error error = {0};
  exec_config config = {.memory = opened.memory, .threads = 1, .sm_count = 1};
  exec_launch_request request = {
      .kernel = opened.kernel, .grid = {1, 1, 1}, .block = {64, 1, 1}, .params = &opened.out->address};
  bool good = exec_launch(&config, &request, NULL, NULL, &error) == FF_OK;
  for (uint32_t n = 0; n < 64; n++) good &= ((const uint32_t *)(uintptr_t)opened.out->address)[n] == 3 * n;
  if (!good) printf("the kernel failed, or gave something else: %s\n", error.message);
  return good;
}

static void close_kernel(void) {
  exec_program_free(opened.program);
  ptx_module_free(opened.module);
  exec_memory_free(opened.memory);
  free(opened.text.chars);
}

static int run_kernel(bool large) {
  if (!open_kernel(large)) return 10;
  bool good = launch_kernel();
  close_kernel();
  return good ? 0 : 11;
}

/* The child: compiling is asked for, and cannot be; the program goes on. */
static int without_compiler(const char *path, bool large) {
  ff_error error;
  compile_stats stats;
  setenv("FARFAULT_COMPILER", path, 1);
  setenv("XDG_CACHE_HOME", folder, 1);
  compile_patience(1500);
  if (compile_use(COMPILE_ALWAYS, &error)) return 1;
  if (run_kernel(large) || run_kernel(large)) return 2;
  compile_get_stats(&stats);
  if (stats.failed != 1 || stats.compiled || stats.loaded) return 3;
  if (waitpid(-1, NULL, WNOHANG) >= 0) return 4; /* a child of ours was left */
  return 0;
}

static void expect(const char *script, bool large) {
  char path[4096];
  ff_error error;
  static int number;
  snprintf(path, sizeof path, "%s/compiler%d", folder, number++);
  assert_int_equal(ff_file_write(path, script, strlen(script), &error), FF_OK);
  assert_int_equal(chmod(path, 0700), 0);
  pid_t child = fork();
  if (!child) {
    alarm(60);
    int failed = without_compiler(path, large);
    fflush(stdout);
    _exit(failed);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  if (status) fail_msg("%s: exit %d, signal %d", script, WEXITSTATUS(status), WTERMSIG(status));
}

static void bad_ones(void **unused) {
  expect("#!/bin/sh\nexit 1\n", false);
  expect("#!/bin/sh\nkill -9 $$\n", false);
  expect("#!/bin/sh\ncat >/dev/null\necho this is not an image\n", false);
  expect("#!/bin/sh\ncat\n", false);
  expect("#!/bin/sh\ncat\n", true);
  expect("#!/bin/sh\nexec head -c 70000000 /dev/zero\n", false);
  expect("#!/bin/sh\nhead -c 100 >/dev/null\nexit 0\n", true);
  expect("not a program\n", false);
}

/* They hang before they read, in the middle, behind what they have written; detached and not. */
static void hanging_ones(void **unused) {
  expect("#!/bin/sh\nexec sleep 40\n", false);
  expect("#!/bin/sh\nexec sleep 40\n", true);
  expect("#!/bin/sh\nhead -c 1000 >/dev/null\nexec sleep 40\n", true);
  expect("#!/bin/sh\nsleep 40 &\nexit 0\n", true);
  expect("#!/bin/sh\ncat >/dev/null\nwhile :; do echo x; sleep 1; done\n", false);
}

static void missing(void **unused) {
  pid_t child = fork();
  if (!child) {
    ff_error error;
    setenv("FARFAULT_COMPILER", "/nowhere/farfault-compile", 1);
    char path[4096];
    if (compile_find(path, sizeof path) || compile_use(COMPILE_ALWAYS, &error) != FF_NOT_FOUND ||
        !strstr(error.message, "can only be interpreted"))
      _exit(1);
    if (compile_use(COMPILE_AUTO, &error) || run_kernel(false)) _exit(2);
    _exit(0);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

/* Launches of a kernel after which its code is looked for: then the cache's folder is there. */
static uint32_t launches_before_asking(const char *instructions) {
  static uint32_t number;
  ff_error error;
  char cache[4050], made[4096];
  snprintf(cache, sizeof cache, "%s/asks%u", folder, number++);
  snprintf(made, sizeof made, "%s/farfault", cache);
  setenv("XDG_CACHE_HOME", cache, 1);
  filling = instructions;
  if (compile_use(COMPILE_AUTO, &error) || !open_kernel(false)) return 0;
  uint32_t launches = 0;
  while (launches < 20000 && access(made, F_OK) && launch_kernel()) launches++;
  close_kernel();
  return launches;
}

/* Code is not looked for as long as a kernel's launches do little, if that is known before: it has no loop. */
static void tiny_launches(void **unused) {
  pid_t child = fork();
  if (!child) {
    uint32_t few = launches_before_asking(filling);
    if (few < 500 || few > 2000) _exit(1);
    if (launches_before_asking("mov.u32 %r2, 3;\nAGAIN: add.u32 %r2, %r2, -1;\nsetp.ne.u32 %p0, %r2, 0;\n"
                               "@%p0 bra AGAIN;\n") != 1)
      _exit(2);
    _exit(0);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

/* A program that does not want to hear of its children. */
static void signals_ignored(void **unused) {
  pid_t child = fork();
  if (!child) {
    char path[4096];
    ff_error error;
    const char *script = "#!/bin/sh\nexit 1\n";
    snprintf(path, sizeof path, "%s/ignored", folder);
    signal(SIGCHLD, SIG_IGN);
    signal(SIGPIPE, SIG_DFL);
    if (ff_file_write(path, script, strlen(script), &error) || chmod(path, 0700)) _exit(9);
    _exit(without_compiler(path, true));
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

/* A kernel is being made, by a compiler that takes its time, when the program forks: the child's launches do not wait
 * for code that no thread makes there. */
static void *launch_in_thread(void *unused) { return launch_kernel() ? NULL : unused; }

static void forked_meanwhile(void **unused) {
  char path[4096];
  ff_error error;
  const char *script = "#!/bin/sh\nexec sleep 3\n";
  snprintf(path, sizeof path, "%s/slow", folder);
  assert_int_equal(ff_file_write(path, script, strlen(script), &error), FF_OK);
  assert_int_equal(chmod(path, 0700), 0);
  pid_t child = fork();
  if (!child) {
    pthread_t thread;
    int status;
    alarm(60);
    setenv("FARFAULT_COMPILER", path, 1);
    compile_patience(2000);
    if (compile_use(COMPILE_ALWAYS, &error) || !open_kernel(false) ||
        pthread_create(&thread, NULL, launch_in_thread, &opened))
      _exit(1);
    usleep(500000);
    pid_t grandchild = fork();
    if (!grandchild) {
      alarm(30);
      _exit(!launch_kernel());
    }
    if (waitpid(grandchild, &status, 0) != grandchild || pthread_join(thread, NULL)) _exit(2);
    _exit(status != 0);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

#ifdef HAVE_GENERATOR
/* A program that is over before its code is there: the next one finds it in the cache. */
static int in_process(int (*what)(void), const char *compiler, const char *cache) {
  int status;
  pid_t child = fork();
  if (!child) {
    setenv("FARFAULT_COMPILER", compiler, 1);
    setenv("XDG_CACHE_HOME", cache, 1);
    _exit(what());
  }
  return waitpid(child, &status, 0) == child ? status : -1;
}

static int ends_early(void) {
  pthread_t thread;
  ff_error error;
  if (compile_use(COMPILE_ALWAYS, &error) || !open_kernel(false) ||
      pthread_create(&thread, NULL, launch_in_thread, &opened))
    return 1;
  usleep(300000);
  return 0;
}

static int is_kept(void) {
  ff_error error;
  compile_stats stats;
  if (compile_use(COMPILE_ALWAYS, &error) || !open_kernel(false) || !launch_kernel()) return 1;
  compile_get_stats(&stats);
  return stats.loaded == 1 && stats.compiled == 0 ? 0 : 2;
}

static void outlived(void **unused) {
  char path[4096], script[4096], cache[4096], ask[9000];
  ff_error error;
  snprintf(path, sizeof path, "%s/late", folder);
  snprintf(cache, sizeof cache, "%s/cache", folder);
  snprintf(script, sizeof script, "#!/bin/sh\n/bin/sleep 1\nexec '%s' \"$@\"\n",
           FF_BUILD_DIR "/lib/farfault/farfault-compile");
  assert_int_equal(ff_file_write(path, script, strlen(script), &error), FF_OK);
  assert_int_equal(chmod(path, 0700), 0);
  assert_int_equal(mkdir(cache, 0700), 0);
  assert_int_equal(in_process(ends_early, path, cache), 0);
  snprintf(ask, sizeof ask, "test -n \"$(find '%s' -type f ! -name '*.*')\"", cache);
  int waited = 0;
  while (system(ask) && waited++ < 300) usleep(100000);
  assert_true(waited < 300);
  assert_int_equal(in_process(is_kept, path, cache), 0);
}

static const char real[] = FF_BUILD_DIR "/lib/farfault/farfault-compile";

static int is_made(void) {
  ff_error error;
  compile_stats stats;
  if (compile_use(COMPILE_ALWAYS, &error) || !open_kernel(false) || !launch_kernel()) return 1;
  compile_get_stats(&stats);
  return stats.compiled == 1 && stats.failed == 0 ? 0 : 2;
}

static int is_refused(void) {
  ff_error error;
  compile_stats stats;
  if (compile_use(COMPILE_ALWAYS, &error) || !open_kernel(false) || !launch_kernel()) return 1;
  compile_get_stats(&stats);
  return stats.compiled == 0 && stats.failed == 1 ? 0 : 2;
}

/* The path of the one image in a cache, and of what stands next to it. */
static void only_image(const char *cache, char *path, size_t room) {
  char command[4200];
  snprintf(command, sizeof command, "find '%s' -type f ! -name '*.*'", cache);
  FILE *found = popen(command, "r");
  assert_non_null(found);
  assert_non_null(fgets(path, (int)room, found));
  path[strcspn(path, "\n")] = '\0';
  pclose(found);
}

/* Another process makes the same code: this one's compiler waits, and takes what that one has made. */
static void made_once(void **unused) {
  char cache[4096], path[4200], other[4300];
  snprintf(cache, sizeof cache, "%s/once", folder);
  assert_int_equal(mkdir(cache, 0700), 0);
  assert_int_equal(in_process(is_made, real, cache), 0);
  only_image(cache, path, sizeof path);
  snprintf(other, sizeof other, "%s.lock", path);
  int lock = open(other, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  assert_int_equal(flock(lock, LOCK_EX), 0);
  snprintf(other, sizeof other, "%s.aside", path);
  assert_int_equal(rename(path, other), 0);
  pid_t child = fork();
  if (!child) {
    close(lock); /* or this process would hold it, too */
    _exit(in_process(is_made, real, cache));
  }
  usleep(500000);
  assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
  assert_int_equal(rename(other, path), 0);
  snprintf(other, sizeof other, "%s.refused", path); /* it would fail to make it */
  assert_int_equal(close(creat(other, 0600)), 0);
  close(lock);
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

/* What took too long once is not tried again. */
static void given_up(void **unused) {
  char cache[4096], path[4200], mark[4300];
  snprintf(cache, sizeof cache, "%s/refused", folder);
  assert_int_equal(mkdir(cache, 0700), 0);
  assert_int_equal(in_process(is_made, real, cache), 0);
  only_image(cache, path, sizeof path);
  unlink(path);
  snprintf(mark, sizeof mark, "%s.refused", path);
  assert_int_equal(close(creat(mark, 0600)), 0);
  assert_int_equal(in_process(is_refused, real, cache), 0);
  assert_int_equal(access(path, F_OK), -1);
}

static int with_little_time(void) {
  ff_error error;
  setrlimit(RLIMIT_CPU, &(struct rlimit){1, 20});
  signal(SIGXCPU, SIG_IGN); /* here; the compiler begins with what is usual */
  filling = "mad.lo.u32 %r1, %r1, %r1, %r0;\nprmt.b32 %r1, %r1, %r0, %r1;\n"; /* nothing to simplify */
  if (compile_use(COMPILE_ALWAYS, &error) || !open_kernel(true)) return 1;
  launch_kernel();
  return 0;
}

static void takes_too_long(void **unused) {
  char cache[4096], ask[4300];
  snprintf(cache, sizeof cache, "%s/long", folder);
  assert_int_equal(mkdir(cache, 0700), 0);
  assert_int_equal(in_process(with_little_time, real, cache), 0);
  snprintf(ask, sizeof ask, "test -n \"$(find '%s' -name '*.refused')\"", cache);
  assert_int_equal(system(ask), 0);
}
#endif

static int make_folder(void **unused) {
  snprintf(folder, sizeof folder, "%s/farfault-spawn-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
  return !mkdtemp(folder);
}
static int drop_folder(void **unused) {
  char command[4096];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(missing),         cmocka_unit_test(bad_ones),         cmocka_unit_test(hanging_ones),
      cmocka_unit_test(signals_ignored), cmocka_unit_test(forked_meanwhile), cmocka_unit_test(tiny_launches),
#ifdef HAVE_GENERATOR
      cmocka_unit_test(outlived),        cmocka_unit_test(made_once),        cmocka_unit_test(given_up),
      cmocka_unit_test(takes_too_long),
#endif
  };
  return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
