/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernels have code, and when it is made: the provider of exec/launch/native.h.
 *
 *   (asked for, not by launches that are tiny) --cache--> READY
 *        |                   ^
 *        +--> IDLE --> RUNNING (a thread waits for the compiler) --> FAILED
 *
 * A kernel has an entry for full warps, and one for any lanes, asked for when such lanes run.
 *
 * An entry is made once per request and lives as long as the process; its code is set before its
 * state says READY. Results do not depend on any of this. */
#include "compile/compile.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compile/kernel_describe.h"
#include "compile/compile_private.h"

#define WORTH_IT (UINT64_C(3) << 20) /* warp instructions of a kernel after which compiling it pays */
#define TINY (UINT64_C(1) << 14)     /* so few take less time to interpret than code takes to be found in the cache */
#define OF_ANY 8u                    /* in exec_code.native: from a watch to the entry for any lanes */
#define WISHES 100000u               /* blocks of instructions for some lanes only, after which code for these does */

typedef enum state { IDLE, RUNNING, READY, FAILED } state;

typedef struct entry {
  struct entry *next;      /* of all */
  struct entry *same_slot; /* of those with its slot */
  compile_key key;
  void *request;
  uint32_t request_bytes, function_count;
  state state;
  struct entry *full; /* of an entry for any lanes: whose code it completes; else NULL */
  exec_native_code *code;
  uint64_t executed; /* warp instructions of finished launches */
  uint32_t wishes;
} entry;

#define SLOTS 8192u /* a power of two */

static struct {
  pthread_mutex_t lock;
  pthread_cond_t done;
  entry *entries;
  entry *slots[SLOTS]; /* by key; each the first of its list */
  compile_mode mode;
  compile_stats stats;
  uint32_t makers, most_makers; /* threads that wait for the compiler while the program goes on */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

static state state_of(const entry *e) { return __atomic_load_n(&e->state, __ATOMIC_ACQUIRE); }

void compile_get_stats(compile_stats *stats) {
  pthread_mutex_lock(&all.lock);
  *stats = all.stats;
  pthread_mutex_unlock(&all.lock);
}

/* ---- making code ---- */

static void put_code(entry *e, const exec_native_function *bodies) {
  if (!e->full) e->code = ff_alloc((e->function_count + (size_t)1) * sizeof *e->code);
  for (uint32_t f = 0; f < e->function_count; f++) {
    if (e->full) __atomic_store_n(&e->full->code[f].any, bodies[f], __ATOMIC_RELEASE);
    else e->code[f].full = bodies[f];
  }
}

/* bodies: of each function, given away; NULL: there are none. */
static void settle(entry *e, exec_native_function *bodies, uint64_t *counter) {
  pthread_mutex_lock(&all.lock);
  if (bodies) {
    put_code(e, bodies);
    ++*counter;
  } else all.stats.failed++;
  free(e->request);
  e->request = NULL;
  __atomic_store_n(&e->state, bodies ? READY : FAILED, __ATOMIC_RELEASE);
  pthread_cond_broadcast(&all.done);
  pthread_mutex_unlock(&all.lock);
  free(bodies);
}

static void make(entry *e) {
  uint32_t bytes = 0;
  uint64_t took = 0;
  unsigned char *image = compile_ask(e->request, e->request_bytes, &e->key, &bytes, &took);
  exec_native_function *bodies = NULL;
  if (image && compile_seal(image, bytes, &e->key) && compile_is_whole(image, bytes, &e->key, e->function_count))
    bodies = compile_map(image);
  pthread_mutex_lock(&all.lock);
  all.stats.microseconds += took;
  all.stats.code_bytes += bodies ? bytes : 0;
  pthread_mutex_unlock(&all.lock);
  free(image);
  settle(e, bodies, &all.stats.compiled);
}

static void *maker(void *context) {
  make(context);
  __atomic_sub_fetch(&all.makers, 1, __ATOMIC_RELAXED);
  return NULL;
}

/* True: it is for the caller to make it. */
static bool claim(entry *e) {
  state idle = IDLE;
  return __atomic_compare_exchange_n(&e->state, &idle, RUNNING, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* Half of the processors at most are busy with compilers that a program does not wait for: it executes meanwhile. */
static bool may_make(void) {
  if (__atomic_add_fetch(&all.makers, 1, __ATOMIC_RELAXED) <= all.most_makers) return true;
  __atomic_sub_fetch(&all.makers, 1, __ATOMIC_RELAXED);
  return false;
}

/* An entry that is idle, if the compiler has time for it; else it will be asked for again. The thread takes no signal
 * that is meant for the program. */
static void make_in_thread(entry *e) {
  if (!may_make()) return;
  if (!claim(e)) {
    __atomic_sub_fetch(&all.makers, 1, __ATOMIC_RELAXED);
    return;
  }
  pthread_t thread;
  pthread_attr_t attributes;
  sigset_t every, old;
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, &old);
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  int failed = pthread_create(&thread, &attributes, maker, e);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  if (!failed) return;
  __atomic_sub_fetch(&all.makers, 1, __ATOMIC_RELAXED);
  settle(e, NULL, &all.stats.failed);
}

static void wait_for(entry *e) {
  pthread_mutex_lock(&all.lock);
  while (e->state == RUNNING) pthread_cond_wait(&all.done, &all.lock);
  pthread_mutex_unlock(&all.lock);
}

/* ---- forks: the child has no thread that makes code, and goes on with what there is ---- */

static void before_fork(void) { pthread_mutex_lock(&all.lock); }
static void parent_goes_on(void) { pthread_mutex_unlock(&all.lock); }

static void child_goes_on(void) {
  pthread_mutex_init(&all.lock, NULL);
  pthread_cond_init(&all.done, NULL);
  for (entry *e = all.entries; e; e = e->next)
    if (e->state == RUNNING) e->state = IDLE;
  all.makers = 0;
}

static void watch_forks(void) { pthread_atfork(before_fork, parent_goes_on, child_goes_on); }

/* ---- entries ---- */

static entry **slot_of(const compile_key *key) {
  uint32_t bits;
  memcpy(&bits, key, sizeof bits);
  return &all.slots[bits % SLOTS];
}

static entry *find_entry(const compile_key *key) {
  entry *e = *slot_of(key);
  while (e && memcmp(&e->key, key, sizeof *key)) e = e->same_slot;
  return e;
}

/* It is not in the cache; a thread that waits for it may make it. */
static void set_idle(entry *e) {
  pthread_mutex_lock(&all.lock);
  __atomic_store_n(&e->state, IDLE, __ATOMIC_RELEASE);
  pthread_cond_broadcast(&all.done);
  pthread_mutex_unlock(&all.lock);
}

/* The entry of this code, made when it is first asked for; NULL: it cannot be compiled. full: what it completes, if
 * it is for any lanes. Called with nothing locked, by one thread at a time. */
static entry *entry_of(const core_launch *launch, const exec_code *code, entry *full) {
  uint32_t watch = native_watch(launch), bytes;
  void **known = &((exec_code *)(uintptr_t)code)->native[watch + (full ? OF_ANY : 0)];
  entry *made = __atomic_load_n(known, __ATOMIC_ACQUIRE);
  if (made) return made;
  compile_key key;
  void *request = native_describe(launch->kernel, code, launch->isa, watch, full != NULL, &bytes);
  if (!request || !compile_make_key(request, bytes, &key)) {
    free(request);
    return NULL;
  }
  pthread_mutex_lock(&all.lock);
  entry *e = find_entry(&key);
  if (!e) {
    e = ff_alloc(sizeof *e);
    entry **slot = slot_of(&key);
    *e = (entry){.next = all.entries,
                 .same_slot = *slot,
                 .key = key,
                 .request = request,
                 .request_bytes = bytes,
                 .function_count = launch->function_count,
                 .state = RUNNING,
                 .full = full};
    all.entries = *slot = e;
    request = NULL;
    pthread_mutex_unlock(&all.lock);
    uint32_t image_bytes;
    unsigned char *image = compile_load(&key, e->function_count, &image_bytes);
    exec_native_function *mapped = image ? compile_map(image) : NULL;
    free(image);
    if (mapped || compile_refused(&key)) settle(e, mapped, &all.stats.loaded);
    else set_idle(e);
  } else {
    pthread_mutex_unlock(&all.lock);
  }
  free(request);
  __atomic_store_n(known, e, __ATOMIC_RELEASE);
  return e;
}

/* ---- launches that are too small to look for code ---- */

/* Warp instructions that a launch executes if each warp comes to each instruction once; UINT64_MAX: some may come
 * again, or they are more than TINY. */
static uint64_t instructions_of(const core_launch *launch, const exec_code *code) {
  const exec_function *kernel = code->functions[0];
  uint64_t warps = launch->blocks <= TINY ? launch->blocks * launch->warp_count : UINT64_MAX;
  if (launch->function_count != 1 || !kernel || warps > TINY || warps * kernel->count > TINY) return UINT64_MAX;
  for (uint32_t n = 0; n < kernel->count; n++) {
    const exec_instr *i = &kernel->code[n];
    bool jumps = i->flow == EXEC_FLOW_BRA || i->flow == EXEC_FLOW_BRA_IF;
    if ((jumps && i->target <= n) || i->flow == EXEC_FLOW_BRX) return UINT64_MAX;
  }
  return warps * kernel->count;
}

/* Is this one of the first launches of a kernel, which do little together? A program may have thousands of such
 * kernels. */
static bool is_tiny(const core_launch *launch, const exec_code *code) {
  if (__atomic_load_n(&code->native[native_watch(launch)], __ATOMIC_ACQUIRE)) return false;
  uint64_t executes = instructions_of(launch, code);
  if (executes > TINY) return false;
  uint64_t *unasked = &((exec_code *)(uintptr_t)code)->unasked;
  return __atomic_add_fetch(unasked, executes, __ATOMIC_RELAXED) <= TINY;
}

/* ---- the provider ---- */

static const exec_native_code *begin(core_launch *launch, const exec_code *code, void **job) {
  *job = NULL;
  if (launch->checker || exec_isa_index(launch->isa) == EXEC_ISAS - 1) return NULL;
  if (all.mode == COMPILE_AUTO && is_tiny(launch, code)) return NULL;
  entry *e = entry_of(launch, code, NULL);
  if (!e) return NULL;
  if (all.mode == COMPILE_ALWAYS) {
    if (claim(e)) make(e);
    else wait_for(e);
  }
  state now = state_of(e);
  if (now == READY) return e->code;
  if (now != FAILED) *job = e;
  return NULL;
}

static const exec_native_code *ask(core_launch *launch, void *job) {
  entry *e = job;
  state now = state_of(e);
  if (now == READY) return e->code;
  uint64_t executed =
      __atomic_load_n(&launch->executed, __ATOMIC_RELAXED) + __atomic_load_n(&e->executed, __ATOMIC_RELAXED);
  if (now == IDLE && executed > WORTH_IT) make_in_thread(e);
  return NULL;
}

static void end(core_launch *launch, void *job) {
  entry *e = job;
  __atomic_add_fetch(&e->executed, launch->executed, __ATOMIC_RELAXED);
}

/* Workers may come here at once: one of them looks for the entry, the others go on without it. */
static void wish(core_launch *launch) {
  static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;
  const exec_code *code = &launch->kernel->code[exec_isa_index(launch->isa)];
  uint32_t watch = native_watch(launch);
  entry *e = __atomic_load_n((entry *const *)&code->native[watch + OF_ANY], __ATOMIC_ACQUIRE);
  if (!e) {
    if (pthread_mutex_trylock(&asking)) return;
    e = entry_of(launch, code, code->native[watch]);
    pthread_mutex_unlock(&asking);
    if (!e) return;
  }
  if (state_of(e) == READY || state_of(e) == FAILED) return;
  if (all.mode == COMPILE_ALWAYS) {
    if (claim(e)) make(e);
    else wait_for(e);
  } else if (state_of(e) == IDLE && __atomic_add_fetch(&e->wishes, 1, __ATOMIC_RELAXED) > WISHES) {
    make_in_thread(e);
  }
}

static const exec_native_provider provider = {begin, ask, end, wish};

bool compile_mode_parse(const char *text, compile_mode *mode) {
  static const char *const names[] = {
      [COMPILE_NEVER] = "interpret", [COMPILE_AUTO] = "auto", [COMPILE_ALWAYS] = "compile"};
  for (int m = COMPILE_NEVER; m <= COMPILE_ALWAYS; m++)
    if (!strcmp(text, names[m])) {
      *mode = (compile_mode)m;
      return true;
    }
  return false;
}

ff_status compile_use(compile_mode mode, ff_error *error) {
  char path[PATH_MAX];
  if (mode == COMPILE_ALWAYS && !compile_find(path, sizeof path))
    return ff_fail(
        error, FF_NOT_FOUND,
        "this installation has no farfault-compile (it was built without LLVM): kernels can only be interpreted");
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, watch_forks);
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  all.most_makers = processors > 3 ? (uint32_t)processors / 2 : 1;
  all.mode = mode;
  exec_native_use(mode == COMPILE_NEVER ? NULL : &provider);
  return FF_OK;
}
