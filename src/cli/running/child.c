/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the program as a child with the virtual GPU's libraries in front; its stdin, stdout, stderr, working folder,
 * process group and terminal are ours, untouched.
 *
 * The signals we handle are blocked here and taken one by one (no handlers); the child gets back the
 * signal mask we were started with. A signal that another process sent to us goes on to the child; one from the
 * terminal went to the whole foreground group already. A signal that comes before the child has begun leaves it
 * unbegun. We end only after the child did; what comes to us after that ends us as it would any program, once the
 * temporary folder is gone. */
#define _GNU_SOURCE /* pipe2 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/memory.h"
#include "cli/running/run.h"
#include "session/session.h"

static const int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM};

static void set_variable(const char *name, const char *value) {
  if (value) setenv(name, value, 1);
  else unsetenv(name);
}

/* folder NULL: there is no such file. */
static void set_file(const char *name, const char *folder, const char *below) {
  if (!folder) {
    unsetenv(name);
    return;
  }
  ff_text path = {0};
  ff_text_add(&path, "%s/%s", folder, below);
  setenv(name, path.chars, 1);
  free(path.chars);
}

/* "first:old value", where there is one. */
static void set_in_front(const char *name, const char *first, char separator) {
  const char *old = getenv(name);
  ff_text value = {0};
  ff_text_add(&value, "%s", first);
  if (old && *old) ff_text_add(&value, "%c%s", separator, old);
  setenv(name, value.chars, 1);
  free(value.chars);
}

/* The folder itself, and those below it where NVIDIA's wheels have their libraries. */
static void add_cuda_libraries(const char *folder) {
  static const char *const places[] = {"", "/lib", "/*/lib", "/nvidia/*/lib"};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    ff_text pattern = {0};
    glob_t found;
    ff_text_add(&pattern, "%s%s", folder, places[i]);
    if (glob(pattern.chars, GLOB_ONLYDIR, NULL, &found) == 0) {
      for (size_t k = 0; k < found.gl_pathc; k++) set_in_front("LD_LIBRARY_PATH", found.gl_pathv[k], ':');
      globfree(&found);
    }
    free(pattern.chars);
  }
}

/* Triton has its PTX assembled by a program that these variables name; its own makes machine code. */
static void set_assembler(const char *libraries) {
  ff_text path = {0};
  ff_text_add(&path, "%s/ptxas", libraries);
  if (access(path.chars, X_OK) == 0) {
    setenv("TRITON_PTXAS_PATH", path.chars, 0);
    setenv("TRITON_PTXAS_BLACKWELL_PATH", path.chars, 0);
  }
  free(path.chars);
}

/* cuTile looks for its assembler in a package of NVIDIA's, then on PATH: where none is installed it finds ours. */
static void set_tile_assembler(const char *libraries) {
  ff_text path = {0};
  const char *old = getenv("PATH");
  if (!old || !*old) return; /* programs are looked for where the system says */
  ff_text_add(&path, "%s:%s/assemblers", old, libraries);
  setenv("PATH", path.chars, 1);
  free(path.chars);
}

/* NVTX loads what this variable names; a tool of the user's own stays. */
static void set_annotations(const char *libraries) {
  ff_text path = {0};
  ff_text_add(&path, "%s/libfarfault-nvtx.so", libraries);
  if (access(path.chars, R_OK) == 0) setenv("NVTX_INJECTION64_PATH", path.chars, 0);
  free(path.chars);
}

/* cuDNN has an NVRTC in it that makes machine code; with this variable it takes the one in the file libnvrtc, which is
 * led to PTX. */
static void set_compiler(void) { setenv("CUDNN_NVRTC_RUNTIME_LINKING", "1", 0); }

/* In the child, before exec. A variable of the user's own (FARFAULT_THREADS, ...) counts where no option was given. */
static void set_environment(const run_child *child) {
  const cli_setup *setup = child->setup;
  const run_executed none = {0}, *executed = child->executed ? child->executed : &none;
  if (executed->cuda_libraries) {
    run_name_dropped_packages(executed->cuda_libraries);
    add_cuda_libraries(executed->cuda_libraries);
  }
  if (child->libraries) set_in_front("LD_LIBRARY_PATH", child->libraries, ':'); /* before NVIDIA's libcudart */
  if (child->libraries) set_assembler(child->libraries);
  if (child->libraries) set_tile_assembler(child->libraries);
  if (child->libraries) set_annotations(child->libraries);
  set_compiler();
  bool found = child->program && child->program->preload; /* it may be read */
  char *needed = found && child->libraries ? run_needed_libraries(child->program->path, child->libraries) : NULL;
  if (needed) set_in_front("LD_PRELOAD", needed, ' ');
  free(needed);
  char *clock = executed->virtual_time ? run_clock(child->libraries) : NULL;
  if (clock) set_in_front("LD_PRELOAD", clock, ' ');
  free(clock);
  if (child->program && child->program->preload) set_in_front("LD_PRELOAD", child->program->preload, ' ');
  set_variable("FARFAULT_MEMORY", setup->managers);
  set_variable("FARFAULT_MACHINE", setup->machine);
  set_variable("FARFAULT_SET", setup->choices.set[0] ? setup->choices.set : NULL);
  for (int i = 0; i < SIM_CHOICE_COUNT; i++)
    set_variable(sim_choice_infos[i].variable, setup->choices.text[i][0] ? setup->choices.text[i] : NULL);
  if (executed->max_instructions[0]) set_variable("FARFAULT_MAX_INSTRUCTIONS", executed->max_instructions);
  if (executed->threads[0]) set_variable("FARFAULT_THREADS", executed->threads);
  if (executed->execute[0]) set_variable("FARFAULT_EXECUTE", executed->execute);
  if (executed->devices[0]) set_variable("FARFAULT_DEVICES", executed->devices);
  if (executed->bind_sms[0]) set_variable("FARFAULT_BIND_SMS", executed->bind_sms);
  if (executed->driver_version[0]) set_variable("FARFAULT_DRIVER_VERSION", executed->driver_version);
  if (executed->private_runtimes[0]) set_variable("FARFAULT_PRIVATE_RUNTIMES", executed->private_runtimes);
  set_variable("FARFAULT_HISTORY", child->history ? "1" : NULL);
  set_variable("FARFAULT_LINES", child->lines ? "1" : NULL);
  set_variable("FARFAULT_PROFILE_RANGE", child->profile_range ? "1" : NULL);
  set_variable("FARFAULT_PROFILE_NVTX", child->profile_nvtx);
  set_variable("FARFAULT_RECORD", child->record);
  set_file("FARFAULT_RESULTS", child->folder, "results-%p.json");
  set_file("FARFAULT_PROGRESS", child->folder, "progress");
}

/* ---- signals that wait ---- */

static sigset_t before_holding;
static bool holding;

static void forwarded_signals(sigset_t *set) {
  sigemptyset(set);
  for (size_t i = 0; i < sizeof forwarded / sizeof forwarded[0]; i++) sigaddset(set, forwarded[i]);
}

void run_hold_signals(void) {
  sigset_t held;
  FF_ASSERT(!holding);
  forwarded_signals(&held);
  sigaddset(&held, SIGPIPE);
  sigprocmask(SIG_BLOCK, &held, &before_holding);
  holding = true;
}

void run_release_signals(void) {
  if (!holding) return;
  holding = false;
  sigprocmask(SIG_SETMASK, &before_holding, NULL);
}

void run_children_mask(sigset_t *mask) {
  if (holding) *mask = before_holding;
  else sigprocmask(SIG_SETMASK, NULL, mask);
}

/* One of them has come and waits: its number, or 0. */
static int waiting_signal(void) {
  sigset_t pending;
  sigpending(&pending);
  for (size_t i = 0; i < sizeof forwarded / sizeof forwarded[0]; i++)
    if (sigismember(&pending, forwarded[i])) return forwarded[i];
  return 0;
}

/* ---- the child ---- */

/* A program may compute from its pointers: its memory lies at the same place on every run, as a debugger does it. Where
 * the system does not allow that, addresses stay random. */
static void fix_addresses(void) {
  int now = personality(UINT32_MAX);
  if (now != -1) personality((unsigned long)now | ADDR_NO_RANDOMIZE);
}

/* Never returns. An exec that fails reports its errno through `report`. */
static _Noreturn void become_program(const run_child *child, const sigset_t *mask, int report) {
  set_environment(child);
  sigprocmask(SIG_SETMASK, mask, NULL);
  if (child->body) { /* a part of farfault, of no use without it */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(report);
    exit(child->body(child->context));
  }
  fix_addresses();
  execv(child->program->path, child->argv);
  int failed = errno;
  if (write(report, &failed, sizeof failed) < 0) _exit(CLI_NOT_EXECUTABLE);
  _exit(CLI_NOT_EXECUTABLE);
}

/* Forks and waits until the program has been exec'ed or has failed to. */
static ff_status start(const run_child *child, const sigset_t *mask, pid_t *process, ff_error *error) {
  int report[2];
  if (pipe2(report, O_CLOEXEC)) return ff_fail(error, FF_IO, "cannot make a pipe: %s", strerror(errno));
  *process = fork();
  if (*process == 0) become_program(child, mask, report[1]);
  int forked = errno, failed = 0;
  close(report[1]);
  if (*process < 0) {
    close(report[0]);
    return ff_fail(error, FF_IO, "cannot start a process: %s", strerror(forked));
  }
  ssize_t got;
  while ((got = read(report[0], &failed, sizeof failed)) < 0 && errno == EINTR) {}
  close(report[0]);
  if (got != (ssize_t)sizeof failed) return FF_OK;
  waitpid(*process, NULL, 0);
  if (failed == ENOEXEC)
    return ff_fail(error, FF_IO,
                   "%s: cannot be executed: it is neither a program for this machine nor a script that starts with #!",
                   child->program->path);
  return ff_fail(error, FF_IO, "%s: cannot be executed: %s", child->program->path, strerror(failed));
}

/* Sends on what another process sent to us; the terminal's signals (SI_KERNEL) reach the whole group by themselves. */
static void forward(pid_t process, const siginfo_t *info) {
  if (info->si_code != SI_KERNEL) kill(process, info->si_signo);
}

static bool has_ended(pid_t process, run_end *end) {
  int status;
  if (waitpid(process, &status, WNOHANG) != process) return false;
  end->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  end->status = end->signal ? 128 + end->signal : WEXITSTATUS(status);
  return true;
}

/* Ctrl-Z: the shell gets the terminal without our line. */
static void stop(run_progress *progress) {
  run_progress_clear(progress);
  raise(SIGSTOP);
}

static void wait_for(pid_t process, const sigset_t *watched, run_progress *progress, run_live *live, run_end *end) {
  const struct timespec tick = {.tv_nsec = 200 * 1000 * 1000}, quiet = {.tv_sec = 10};
  while (!has_ended(process, end)) {
    siginfo_t info;
    int signal = sigtimedwait(watched, &info, progress->area || live->outputs ? &tick : &quiet);
    if (signal > 0 && signal != SIGCHLD) forward(process, &info);
    if (signal == SIGTSTP) stop(progress);
    run_live_write(live);
    if (progress->area) run_progress_show(progress);
  }
  if (progress->area) run_progress_clear(progress);
}

/* The progress file, made and mapped; NULL where no progress is to be shown. */
static session_progress *map_progress(const run_child *child) {
  if (!isatty(STDERR_FILENO)) return NULL;
  ff_text path = {0};
  ff_text_add(&path, "%s/progress", child->folder);
  int fd = open(path.chars, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  free(path.chars);
  void *area = MAP_FAILED;
  if (fd >= 0 && ftruncate(fd, sizeof(session_progress)) == 0)
    area = mmap(NULL, sizeof(session_progress), PROT_READ, MAP_SHARED, fd, 0);
  if (fd >= 0) close(fd);
  return area == MAP_FAILED ? NULL : area;
}

ff_status run_child_wait(const run_child *child, run_end *end, ff_error *error) {
  sigset_t watched, old, mask;
  run_children_mask(&mask);
  forwarded_signals(&watched);
  sigaddset(&watched, SIGCHLD);
  session_progress *area = map_progress(child);
  if (area) sigaddset(&watched, SIGTSTP);
  sigprocmask(SIG_BLOCK, &watched, &old);
  run_progress progress = {
      .area = area, .simulates = child->setup->managers[0] != '\0', .shared = child->program != NULL};
  pid_t process = -1;
  end->libraries = child->libraries;
  end->missing = child->libraries ? run_missing_libraries(child->libraries) : 0;
  int early = waiting_signal();
  ff_status status =
      early ? ff_fail(error, FF_IO, "stopped by signal %d (%s) before anything ran", early, strsignal(early))
            : start(child, &mask, &process, error);
  run_live live = {.outputs = child->live, .folder = child->folder};
  if (!status) wait_for(process, &watched, &progress, &live, end);
  if (area) munmap(area, sizeof *area);
  const struct timespec now = {0};
  while (!early && sigtimedwait(&watched, NULL, &now) > 0) {} /* what ended the child came to us as well */
  sigprocmask(SIG_SETMASK, &old, NULL);
  return status;
}

void run_child_here(const run_child *child, run_end *end) {
  FF_ASSERT(child->body && !child->program);
  set_environment(child);
  *end = (run_end){.status = child->body(child->context)};
}
