/* SPDX-License-Identifier: Apache-2.0 */
/* A library for LD_PRELOAD: it makes a call of the C library fail, for the torture run.
 *
 *   TORTURE_FAIL=KIND:N[+]      the N-th call of that kind in a process fails; with + all further ones, too. KINDS below
 *   TORTURE_FAIL=KIND:N=SIGNAL  it does not fail, but the process gets that signal (a number) just before it
 *   TORTURE_FAIL_IN=NAME        only in processes of that name (default: in all)
 *   TORTURE_FAIL_LOG=FILE       a line for each process in which a call failed
 *
 * In the process `farfault` every call counts but those of libfyaml, which crashes when it gets no memory; in others
 * only calls from farfault's own libraries do: what a CUDA program does then is not ours. Calls that the C library
 * makes for itself do not count. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef enum kind {
  KIND_ALLOC,
  KIND_MMAP,
  KIND_WRITE,
  KIND_OPEN,
  KIND_FTRUNCATE,
  KIND_THREAD,
  KIND_RENAME,
  KIND_FORK,
  KIND_PIPE,
  KIND_FOLDER,
  KIND_UNLINK,
  KINDS
} kind;
static const char *const names[KINDS] = {"alloc",  "mmap", "write", "open",   "ftruncate", "thread",
                                         "rename", "fork", "pipe",  "folder", "unlink"};

enum { RANGES = 16 };
/* code of farfault's libraries; in farfault: of libfyaml and the C library */
static struct { uintptr_t from, to; } ranges[RANGES];
static int range_count;
static int failing = KINDS;        /* the kind; KINDS: none */
static unsigned long wanted, seen; /* the number of the call that fails, of the calls so far */
static bool onwards, in_farfault;
static int sent; /* the signal instead of a failure; 0: none */
static const char *log_path;

void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t);

__attribute__((constructor)) static void begin(void) {
  const char *what = getenv("TORTURE_FAIL"), *in = getenv("TORTURE_FAIL_IN"), *colon = what ? strchr(what, ':') : NULL;
  in_farfault = !strcmp(program_invocation_short_name, "farfault");
  log_path = getenv("TORTURE_FAIL_LOG");
  if (!colon || (in && *in && strcmp(in, program_invocation_short_name))) return;
  wanted = strtoul(colon + 1, NULL, 10);
  onwards = what[strlen(what) - 1] == '+';
  sent = strchr(what, '=') ? atoi(strchr(what, '=') + 1) : 0;
  for (int k = 0; k < KINDS; k++)
    if (!strncmp(what, names[k], (size_t)(colon - what)) && !names[k][colon - what]) failing = k;
}

static int add_ranges(struct dl_phdr_info *info, size_t size, void *context) {
  const char *name = info->dlpi_name ? info->dlpi_name : "";
  bool listed =
      in_farfault ? strstr(name, "libfyaml.so") || strstr(name, "libc.so") : strstr(name, "/lib/farfault/") != NULL;
  if (!listed) return 0;
  for (int n = 0; n < info->dlpi_phnum && range_count < RANGES; n++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[n];
    if (p->p_type != PT_LOAD || !(p->p_flags & PF_X)) continue;
    ranges[range_count].from = info->dlpi_addr + p->p_vaddr;
    ranges[range_count++].to = info->dlpi_addr + p->p_vaddr + p->p_memsz;
  }
  return 0;
}

/* The libraries may come at any time (dlopen): they are looked for until they are there. */
static bool is_ours(const void *caller) {
  if (!range_count) dl_iterate_phdr(add_ranges, NULL);
  for (int n = 0; n < range_count; n++)
    if ((uintptr_t)caller >= ranges[n].from && (uintptr_t)caller < ranges[n].to) return !in_farfault;
  return in_farfault;
}

static void note(unsigned long number) {
  char line[120];
  int length = snprintf(line, sizeof line, "%s %d: %s call %lu\n", program_invocation_short_name, (int)getpid(),
                        names[failing], number);
  long file = log_path ? syscall(SYS_openat, AT_FDCWD, log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
  if (file >= 0 && syscall(SYS_write, file, line, length) >= 0) syscall(SYS_close, file);
}

static bool fails(kind k, const void *caller) {
  if ((int)k != failing || !is_ours(caller)) return false;
  unsigned long number = __atomic_add_fetch(&seen, 1, __ATOMIC_SEQ_CST);
  if (number != wanted && !(onwards && number > wanted)) return false;
  int saved = errno;
  if (number == wanted) note(number);
  if (sent) kill(getpid(), sent);
  errno = saved;
  return !sent;
}

#define CALLER __builtin_return_address(0)
/* The real function behind ours. */
#define REAL(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))
#define FAIL_WITH(kind, error, result) \
  do {                                 \
    if (fails(kind, CALLER)) {         \
      errno = error;                   \
      return result;                   \
    }                                  \
  } while (0)

void *malloc(size_t bytes) {
  FAIL_WITH(KIND_ALLOC, ENOMEM, NULL);
  return __libc_malloc(bytes);
}
void *calloc(size_t count, size_t bytes) {
  FAIL_WITH(KIND_ALLOC, ENOMEM, NULL);
  return __libc_calloc(count, bytes);
}
void *realloc(void *old, size_t bytes) {
  FAIL_WITH(KIND_ALLOC, ENOMEM, NULL);
  return __libc_realloc(old, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes) {
  FAIL_WITH(KIND_ALLOC, ENOMEM, NULL);
  return __libc_memalign(alignment, bytes);
}
void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
  FAIL_WITH(KIND_MMAP, ENOMEM, MAP_FAILED);
  return (void *)syscall(SYS_mmap, at, bytes, protection, flags, file, offset);
}
ssize_t write(int file, const void *bytes, size_t count) {
  if (file != 2) FAIL_WITH(KIND_WRITE, ENOSPC, -1); /* messages stay */
  return REAL(write)(file, bytes, count);
}
ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
  FAIL_WITH(KIND_WRITE, ENOSPC, -1);
  return REAL(pwrite)(file, bytes, count, offset);
}
ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t offset) {
  FAIL_WITH(KIND_WRITE, ENOSPC, -1);
  return REAL(pwrite64)(file, bytes, count, offset);
}
int open(const char *path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  mode_t mode = va_arg(list, mode_t);
  va_end(list);
  FAIL_WITH(KIND_OPEN, EMFILE, -1);
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
FILE *fopen(const char *path, const char *mode) {
  FAIL_WITH(KIND_OPEN, EMFILE, NULL);
  return REAL(fopen)(path, mode);
}
int ftruncate(int file, off_t length) {
  FAIL_WITH(KIND_FTRUNCATE, ENOSPC, -1);
  return REAL(ftruncate)(file, length);
}
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument) {
  if (fails(KIND_THREAD, CALLER)) return EAGAIN;
  return REAL(pthread_create)(thread, attributes, body, argument);
}
int rename(const char *from, const char *to) {
  FAIL_WITH(KIND_RENAME, ENOSPC, -1);
  return REAL(rename)(from, to);
}
pid_t fork(void) {
  FAIL_WITH(KIND_FORK, EAGAIN, -1);
  return REAL(fork)();
}
int pipe2(int ends[2], int flags) {
  FAIL_WITH(KIND_PIPE, EMFILE, -1);
  return REAL(pipe2)(ends, flags);
}
char *mkdtemp(char *name) {
  FAIL_WITH(KIND_FOLDER, ENOSPC, NULL);
  return REAL(mkdtemp)(name);
}
DIR *opendir(const char *path) {
  FAIL_WITH(KIND_FOLDER, EMFILE, NULL);
  return REAL(opendir)(path);
}
int unlink(const char *path) {
  FAIL_WITH(KIND_UNLINK, EIO, -1);
  return REAL(unlink)(path);
}
int unlinkat(int folder, const char *path, int flags) {
  FAIL_WITH(KIND_UNLINK, EIO, -1);
  return REAL(unlinkat)(folder, path, flags);
}
int rmdir(const char *path) {
  FAIL_WITH(KIND_UNLINK, EIO, -1);
  return REAL(rmdir)(path);
}
int memfd_create(const char *name, unsigned flags) {
  FAIL_WITH(KIND_OPEN, EMFILE, -1);
  return REAL(memfd_create)(name, flags);
}
