/* SPDX-License-Identifier: Apache-2.0 */
/* A launch: checks it, and lets the workers run its blocks.
 *
 * Worker 0 is the thread that launches; the others are kept between launches and join when there are blocks for them.
 * A worker takes blocks in the order of their index. It runs one until it is done; one that yields (it may be waiting
 * for another block) goes to the end of the worker's list, and a new one is started while the limit of resident blocks
 * allows. So blocks that wait for each other go on, with any number of workers.
 *
 * Blocks that take virtual blocks from a queue (ptx/rewrite/persistent.h) would not be what they are on a device if the
 * first one took all of them: each gives way when it has taken one, and the one that has done least goes on. One worker
 * runs such a launch, so that the same blocks take the same virtual blocks on every run.
 *
 * The blocks of a cluster are started together and stay with their worker, which runs them in turn (cluster.c).
 *
 * The access stream may delay the start of a block, but not a block that runs. When all blocks in progress only wait,
 * the next one starts regardless: they may wait for it.
 *
 * One launch runs at a time in a process. One whose blocks all do nothing but look at memory again and again may give
 * way (exec_config.give_way): its workers stop between two turns of blocks, and until it goes on other launches may
 * run, with workers of their own, and give way, too.
 *
 *     RUNNING --give_way: the launching thread stops the others--> STOPPED --config->give_way returns--> RUNNING */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "exec/launch/checker.h"
#include "exec/launch/fault.h"
#include "exec/launch/native.h"
#include "exec/launch/print_order.h"
#include "exec/decode/program.h"

#define MAX_WORKERS 256u
#define FRAMES_KEPT (UINT64_C(64) << 20) /* bytes of frames that a worker keeps from launch to launch */
#define WAIT_MILLISECONDS 20
#define STUCK_ROUNDS 3            /* of waiting for the stream while no block gets further */
#define GIVE_AGAIN_MILLISECONDS 1 /* as exec_give_way_ms, once a launch has given way */

uint32_t exec_give_way_ms = 50;

typedef struct worker_pool worker_pool;

typedef struct pool_worker {
  core_worker worker;
  worker_pool *pool;
  pthread_t thread;
  bool inside; /* works for the launch */
} pool_worker;

struct worker_pool {
  pthread_mutex_t launching; /* held by the launch that runs */
  pthread_mutex_t lock;      /* of what follows */
  pthread_cond_t wanted, left, go_on;
  pool_worker *workers[MAX_WORKERS];
  uint32_t count;      /* threads that exist, worker 0 not counted but present */
  core_launch *launch; /* to join; NULL: none */
  uint64_t launch_number;
  uint32_t inside;  /* threads that work for it */
  bool stop;        /* they are to stop between two turns; */
  uint32_t stopped; /* how many have */
  bool given;       /* the launch has given way */
  core_launch *own; /* the memory of its launches, and of their parameters */
  unsigned char *params;
  uint32_t param_room;
  uint64_t gave_at; /* and when it last did, in ms; 0: it has not */
};

#define POOL                                                                                                       \
  {                                                                                                                \
    .launching = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER, .wanted = PTHREAD_COND_INITIALIZER, \
    .left = PTHREAD_COND_INITIALIZER, .go_on = PTHREAD_COND_INITIALIZER                                            \
  }
#define MAX_POOLS (EXEC_GIVEN_MAX + 1) /* launches that have given way, and the one that runs */
static worker_pool pools[MAX_POOLS] = {[0 ... MAX_POOLS - 1] = POOL};

static uint64_t clock_total; /* warp instructions of all launches so far */

/* ---- a worker's blocks ---- */

static bool stopped(const core_launch *launch, uint64_t block) {
  return block > __atomic_load_n(&launch->stop_above, __ATOMIC_ACQUIRE);
}

static void append(core_worker *worker, core_block *block) {
  block->next = NULL;
  if (worker->running_tail) worker->running_tail->next = block;
  else worker->running = block;
  worker->running_tail = block;
  worker->running_count++;
}

static core_block *take_first(core_worker *worker) {
  core_block *block = worker->running;
  if (!block) return NULL;
  worker->running = block->next;
  if (!worker->running) worker->running_tail = NULL;
  worker->running_count--;
  return block;
}

/* ---- blocks that take their work from a queue: as on a device, the one that has done least comes first ---- */

static bool is_earlier(const core_block *a, const core_block *b) {
  return a->work != b->work ? a->work < b->work : a->turn < b->turn;
}

static void queue_block(core_worker *worker, core_block *block) {
  if (worker->queued_count == worker->queued_room) {
    worker->queued_room = worker->queued_room ? 2 * worker->queued_room : 64;
    worker->queued = ff_realloc(worker->queued, worker->queued_room * sizeof *worker->queued);
  }
  block->turn = worker->queued_turns++;
  uint32_t at = worker->queued_count++;
  for (; at && is_earlier(block, worker->queued[(at - 1) / 2]); at = (at - 1) / 2)
    worker->queued[at] = worker->queued[(at - 1) / 2];
  worker->queued[at] = block;
}

static core_block *take_queued(core_worker *worker) {
  if (!worker->queued_count) return NULL;
  core_block *first = worker->queued[0], *last = worker->queued[--worker->queued_count];
  uint32_t at = 0, count = worker->queued_count;
  for (uint32_t child = 1; child < count; child = 2 * at + 1) {
    if (child + 1 < count && is_earlier(worker->queued[child + 1], worker->queued[child])) child++;
    if (!is_earlier(worker->queued[child], last)) break;
    worker->queued[at] = worker->queued[child];
    at = child;
  }
  if (count) worker->queued[at] = last;
  return first;
}

/* All blocks of a cluster, of which `index` is the first; returns that one. */
static core_block *start_cluster(core_worker *worker, core_launch *launch, uint64_t index) {
  core_block *first = core_block_start(worker, launch, index);
  core_cluster *cluster = &first->own_cluster;
  for (uint32_t rank = 1; rank < launch->cluster_blocks; rank++) {
    core_block *block = core_block_start(worker, launch, index + rank);
    block->cluster = cluster;
    block->rank = rank;
    cluster->blocks[cluster->count++] = block;
    cluster->live += block->live_threads;
  }
  return first;
}

/* The next block of the launch, if one may start now; the first of the next cluster. */
static core_block *start_next(core_worker *worker, core_launch *launch) {
  uint64_t index = __atomic_load_n(&launch->next_block, __ATOMIC_RELAXED);
  do {
    if (index >= launch->blocks || stopped(launch, index)) return NULL;
    if (launch->threads == 1) { /* no other worker takes one */
      __atomic_store_n(&launch->next_block, index + launch->cluster_blocks, __ATOMIC_RELAXED);
      break;
    }
  } while (!__atomic_compare_exchange_n(&launch->next_block, &index, index + launch->cluster_blocks, true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  if (launch->native_job) exec_native_ask(launch);
  return start_cluster(worker, launch, index);
}

static bool any_left(const core_launch *launch) {
  uint64_t next = __atomic_load_n(&launch->next_block, __ATOMIC_RELAXED);
  return next < launch->blocks && !stopped(launch, next);
}

/* Takes a place among the resident blocks; one for each of a cluster. */
static bool take_place(core_launch *launch) {
  uint32_t resident = __atomic_load_n(&launch->resident, __ATOMIC_RELAXED), wanted = launch->cluster_blocks;
  do {
    if (resident + wanted > launch->resident_limit) return false;
    if (launch->threads == 1) {
      __atomic_store_n(&launch->resident, resident + wanted, __ATOMIC_RELAXED);
      return true;
    }
  } while (!__atomic_compare_exchange_n(&launch->resident, &resident, resident + wanted, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
  return true;
}

static void leave_place(core_launch *launch) {
  if (launch->threads == 1) launch->resident -= launch->cluster_blocks;
  else __atomic_sub_fetch(&launch->resident, launch->cluster_blocks, __ATOMIC_RELAXED);
}

/* For the only worker: which block is next must not depend on how fast the stream is read. So a new one comes
 * first if there is a place for it; it waits for its turn, but not for ever while readers may wait for what is in
 * progress. */
static bool only_worker_ready(const core_worker *worker, core_launch *launch, uint64_t index) {
  if (launch->resident + launch->cluster_blocks > launch->resident_limit) return false;
  bool ready = false;
  for (int round = 0; round < (worker->running ? STUCK_ROUNDS : 1) && !ready; round++)
    ready = trace_block_wait(launch->trace, index, WAIT_MILLISECONDS);
  return ready || worker->running;
}

/* May the stream's next block start? Waits a little if the worker has nothing else to do. */
static bool stream_ready(core_worker *worker, core_launch *launch) {
  /* these are all in progress until the queue is empty */
  if (!core_records(launch) || launch->kernel->pulls) return true;
  uint64_t index = __atomic_load_n(&launch->next_block, __ATOMIC_RELAXED);
  if (index >= launch->blocks) return true;
  if (launch->threads == 1) return only_worker_ready(worker, launch, index);
  uint64_t progress = __atomic_load_n(&launch->progress, __ATOMIC_RELAXED);
  if (trace_block_wait(launch->trace, index, worker->running ? 0 : WAIT_MILLISECONDS)) return true;
  /* blocks are in progress, here or elsewhere, but none gets further: this one may be what they wait for */
  bool stuck = progress == worker->seen_progress && __atomic_load_n(&launch->resident, __ATOMIC_RELAXED) > 0;
  worker->stuck_rounds = stuck ? worker->stuck_rounds + 1 : 0;
  worker->seen_progress = progress;
  return worker->stuck_rounds >= STUCK_ROUNDS;
}

/* A block to run: a new one if that is possible (the ones in progress have yielded), else the oldest in progress. */
static core_block *choose(core_worker *worker, core_launch *launch) {
  core_block *block;
  if (any_left(launch) && stream_ready(worker, launch) && take_place(launch)) {
    worker->stuck_rounds = 0;
    block = start_next(worker, launch);
    if (block) return block;
    leave_place(launch);
  }
  worker->queue_next = !worker->queue_next;
  block = worker->queue_next ? take_queued(worker) : take_first(worker);
  if (block) return block;
  return worker->queue_next ? take_first(worker) : take_queued(worker);
}

static uint64_t milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000 + 1;
}

/* The block has given way: config->waiting is called if it may wait for ever. */
static void note_waiting(core_worker *worker, core_launch *launch, core_block *block) {
  const exec_config *config = launch->config;
  if (!config->give_way && (!config->waiting || __atomic_load_n(&launch->told_waiting, __ATOMIC_RELAXED))) return;
  uint64_t progress = __atomic_load_n(&launch->progress, __ATOMIC_RELAXED), now = milliseconds();
  if (!block->polled || !worker->waiting_since || progress != worker->waiting_progress) {
    __atomic_store_n(&worker->waiting_progress, progress, __ATOMIC_RELAXED);
    __atomic_store_n(&worker->waiting_since, now, __ATOMIC_RELAXED);
  } else if (config->waiting && now - worker->waiting_since >= config->waiting_ms &&
             !__atomic_exchange_n(&launch->told_waiting, true, __ATOMIC_RELAXED)) {
    core_tell_waiting(block);
  }
}

/* ---- giving way ---- */

static bool polls_since(const core_worker *worker, uint64_t progress, uint64_t before) {
  uint64_t since = __atomic_load_n(&worker->waiting_since, __ATOMIC_RELAXED);
  return since && since <= before && __atomic_load_n(&worker->waiting_progress, __ATOMIC_RELAXED) == progress;
}

/* Have all blocks in progress only polled for a while? `own`: worker 0 has some. */
static bool all_poll(worker_pool *pool, const core_launch *launch, bool own) {
  uint64_t now = milliseconds(), progress = __atomic_load_n(&launch->progress, __ATOMIC_RELAXED);
  if (pool->gave_at && now - pool->gave_at < GIVE_AGAIN_MILLISECONDS) return false;
  uint64_t before = now - (pool->gave_at ? GIVE_AGAIN_MILLISECONDS : exec_give_way_ms);
  if (own && !polls_since(&pool->workers[0]->worker, progress, before)) return false;
  if (launch->threads == 1) return own;
  bool all = true, any = own;
  pthread_mutex_lock(&pool->lock);
  for (uint32_t n = 1; n < launch->threads && all; n++) {
    if (!pool->workers[n]->inside) continue;
    all = polls_since(&pool->workers[n]->worker, progress, before);
    any = true;
  }
  pthread_mutex_unlock(&pool->lock);
  return all && any;
}

static void stop_others(worker_pool *pool) {
  pthread_mutex_lock(&pool->lock);
  __atomic_store_n(&pool->stop, true, __ATOMIC_RELAXED);
  while (pool->stopped < pool->inside) pthread_cond_wait(&pool->left, &pool->lock);
  pthread_mutex_unlock(&pool->lock);
}

static void resume_others(worker_pool *pool) {
  pthread_mutex_lock(&pool->lock);
  __atomic_store_n(&pool->stop, false, __ATOMIC_RELAXED);
  pthread_cond_broadcast(&pool->go_on);
  pthread_mutex_unlock(&pool->lock);
}

/* A kernel has one place each for parameters whose address is taken and for the grid's barrier: another launch of it
 * may have used them meanwhile. */
static void give_way_now(worker_pool *pool, core_launch *launch) {
  unsigned char workspace[EXEC_PAGE_BYTES];
  const exec_kernel *kernel = launch->kernel;
  if (launch->workspace) memcpy(workspace, (const void *)(uintptr_t)launch->workspace, sizeof workspace);
  pool->given = true;
  launch->config->give_way(launch->config->give_way_context);
  pool->given = false;
  if (launch->workspace) memcpy((void *)(uintptr_t)launch->workspace, workspace, sizeof workspace);
  if (kernel->params_memory)
    memcpy((void *)(uintptr_t)kernel->params_memory->address, launch->params, kernel->info.param_bytes);
  pool->gave_at = milliseconds();
}

/* By worker 0, between two turns. The others may have been in the middle of one that did more than poll: asks again
 * when all have stopped. */
static void give_way(worker_pool *pool, core_launch *launch, bool own) {
  if (!launch->config->give_way || !all_poll(pool, launch, own)) return;
  stop_others(pool);
  if (all_poll(pool, launch, own)) give_way_now(pool, launch);
  resume_others(pool);
}

/* By the other workers, likewise. */
static void stop_here(worker_pool *pool) {
  pthread_mutex_lock(&pool->lock);
  pool->stopped++;
  pthread_cond_signal(&pool->left);
  while (pool->stop) pthread_cond_wait(&pool->go_on, &pool->lock);
  pool->stopped--;
  pthread_mutex_unlock(&pool->lock);
}

/* Of all blocks of its cluster; they are not in use any more. */
static void end_blocks(core_launch *launch, core_block *first, bool aborted) {
  leave_place(launch);
  if (launch->cluster_blocks == 1 && !aborted) {
    core_block_end(first);
    return;
  }
  core_cluster cluster = *first->cluster;
  for (uint32_t n = 0; n < cluster.count; n++) {
    if (aborted && !cluster.blocks[n]->done) core_block_abort(cluster.blocks[n]);
    else core_block_end(cluster.blocks[n]);
  }
}

/* Blocks behind one that has faulted stop at once; those before it may go on until they wait. `block`: the first of its
 * cluster. */
static void run_one(core_worker *worker, core_launch *launch, core_block *block) {
  core_block *volatile kept = block;
  if (setjmp(worker->escape)) { /* core_fault */
    end_blocks(launch, kept, true);
    return;
  }
  block_result result = stopped(launch, block->index) ? BLOCK_YIELD
                        : launch->cluster_blocks > 1  ? core_cluster_run(block->cluster)
                                                      : core_block_run(block);
  bool stopping = __atomic_load_n(&launch->stop_above, __ATOMIC_ACQUIRE) != UINT64_MAX;
  if (result == BLOCK_DONE) {
    end_blocks(launch, block, false);
  } else if (stopping) {
    end_blocks(launch, block, true);
  } else {
    if (result == BLOCK_PULLED) {
      queue_block(worker, block);
      return;
    }
    core_block_check_stuck(block->cluster);
    note_waiting(worker, launch, block);
    append(worker, block);
  }
}

/* ---- the end of the process ---- */

static _Atomic bool ending;             /* workers are to stay between two turns, for ever */
static _Atomic uint32_t working, ended; /* threads that have blocks of some launch; of these, those that stay */
static _Thread_local bool is_working;

static _Noreturn void stay(void) {
  ended++;
  for (;;) pause();
}

bool exec_end(int patience_ms) {
  ending = true;
  for (int waited = 0; ended + is_working < working; waited++) {
    if (waited == patience_ms) return false;
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
  return true;
}

bool exec_is_inside(void) { return is_working; }

static void work_until_done(worker_pool *pool, core_worker *worker, core_launch *launch) {
  worker->seen_progress = UINT64_MAX;
  worker->stuck_rounds = 0;
  __atomic_store_n(&worker->waiting_since, 0, __ATOMIC_RELAXED);
  for (;;) {
    if (ending) stay();
    if (worker->index && __atomic_load_n(&pool->stop, __ATOMIC_RELAXED)) stop_here(pool);
    core_block *block = choose(worker, launch);
    if (block) run_one(worker, launch, block);
    else if (!any_left(launch)) return;
    else sched_yield(); /* all places are taken by other workers' blocks */
    if (!worker->index) give_way(pool, launch, block != NULL);
  }
}

static void work(worker_pool *pool, core_worker *worker, core_launch *launch) {
  bool outer = is_working; /* a host function may launch while its kernel has given way */
  is_working = true;
  working += !outer;
  work_until_done(pool, worker, launch);
  working -= !outer;
  is_working = outer;
}

/* ---- the pool ---- */

static void *worker_main(void *context) {
  pool_worker *self = context;
  worker_pool *pool = self->pool;
  uint64_t seen = 0;
  pthread_mutex_lock(&pool->lock);
  for (;;) {
    while (!pool->launch || pool->launch_number == seen || self->worker.index >= pool->launch->threads) {
      if (pool->launch) seen = pool->launch_number;
      pthread_cond_wait(&pool->wanted, &pool->lock);
    }
    core_launch *launch = pool->launch;
    seen = pool->launch_number;
    pool->inside++;
    self->inside = true;
    __atomic_store_n(&self->worker.waiting_since, 0, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&pool->lock);
    work(pool, &self->worker, launch);
    pthread_mutex_lock(&pool->lock);
    self->inside = false;
    pool->inside--;
    pthread_cond_signal(&pool->left);
  }
  return NULL;
}

static pool_worker *new_worker(worker_pool *pool, uint32_t index) {
  pool_worker *made = ff_alloc_aligned(64, sizeof *made);
  made->worker.index = index;
  made->pool = pool;
  return made;
}

/* A forked child has no worker threads: it forgets them (their memory is lost to it, once). */
static void after_fork(void) {
  static const worker_pool fresh = POOL;
  for (size_t n = 0; n < sizeof pools / sizeof *pools; n++) pools[n] = fresh;
}

/* Makes workers until there are `threads` of them; returns how many there are. Called with pool->launching held. */
static uint32_t have_workers(worker_pool *pool, uint32_t threads) {
  static bool hooked;
  if (!hooked) pthread_atfork(NULL, NULL, after_fork);
  hooked = true;
  if (!pool->workers[0]) pool->workers[0] = new_worker(pool, 0);
  while (pool->count + 1 < threads) {
    pool_worker *made = new_worker(pool, pool->count + 1);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int failed = pthread_create(&made->thread, &attributes, worker_main, made);
    pthread_attr_destroy(&attributes);
    if (failed) {
      free(made);
      break;
    }
    pthread_mutex_lock(&pool->lock);
    pool->workers[++pool->count] = made;
    pthread_mutex_unlock(&pool->lock);
  }
  return pool->count + 1 < threads ? pool->count + 1 : threads;
}

static void after_launch(core_worker *worker, exec_stats *stats) {
  const exec_stats *own = &worker->stats;
  stats->warp_instructions += own->warp_instructions;
  stats->thread_instructions += own->thread_instructions;
  stats->warp_accesses += own->warp_accesses;
  stats->sectors += own->sectors;
  stats->blocks += own->blocks;
  stats->divergent_branches += own->divergent_branches;
  stats->barriers += own->barriers;
  memset(&worker->stats, 0, sizeof worker->stats);
  if (worker->frame_bytes > FRAMES_KEPT) core_frames_trim(worker);
  for (uint32_t kept = 0; worker->spare; kept++) { /* the next launch may have another shape: keep one */
    core_block *block = worker->spare;
    if (!kept && !block->next && block->local_room < FRAMES_KEPT) break;
    worker->spare = block->next;
    core_block_destroy(block);
  }
}

/* Worker 0 has no blocks left: waits for the others'. */
static void wait_for_others(worker_pool *pool, core_launch *launch) {
  pthread_mutex_lock(&pool->lock);
  pool->launch = NULL;
  while (pool->inside) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += WAIT_MILLISECONDS * 1000000;
    if (until.tv_nsec >= 1000000000) {
      until.tv_sec++;
      until.tv_nsec -= 1000000000;
    }
    if (pthread_cond_timedwait(&pool->left, &pool->lock, &until) != ETIMEDOUT) continue;
    pthread_mutex_unlock(&pool->lock);
    give_way(pool, launch, false);
    pthread_mutex_lock(&pool->lock);
  }
  pthread_mutex_unlock(&pool->lock);
}

static void run_blocks(worker_pool *pool, core_launch *launch, exec_stats *stats) {
  bool shared = launch->threads > 1;
  pool->gave_at = 0;
  if (shared) {
    pthread_mutex_lock(&pool->lock);
    pool->launch = launch;
    pool->launch_number++;
    pthread_cond_broadcast(&pool->wanted);
    pthread_mutex_unlock(&pool->lock);
  }
  work(pool, &pool->workers[0]->worker, launch);
  if (shared) wait_for_others(pool, launch);
  for (uint32_t n = 0; n < launch->threads; n++) after_launch(&pool->workers[n]->worker, stats);
}

/* ---- one launch ---- */

/* Blocks of a cluster along each axis. */
static void cluster_shape(const exec_launch_request *request, uint32_t shape[3]) {
  const exec_kernel_info *info = &request->kernel->info;
  for (uint32_t axis = 0; axis < 3; axis++) {
    shape[axis] = request->cluster[axis] ? request->cluster[axis] : info->cluster[axis];
    if (!shape[axis]) shape[axis] = 1;
  }
}

static ff_status check_cluster(const exec_launch_request *request, ff_error *error) {
  const exec_kernel_info *info = &request->kernel->info;
  uint32_t shape[3];
  uint64_t blocks = 1;
  cluster_shape(request, shape);
  for (uint32_t axis = 0; axis < 3; axis++) {
    blocks = blocks > EXEC_CLUSTER_MAX ? blocks : blocks * shape[axis];
    if (info->cluster[axis] && shape[axis] != info->cluster[axis])
      return ff_fail(error, FF_INVALID, "kernel %s: clusters of %u blocks along axis %u, it is compiled for %u",
                     info->name, shape[axis], axis, info->cluster[axis]);
    if (request->grid[axis] % shape[axis])
      return ff_fail(error, FF_INVALID, "kernel %s: a grid of %u blocks in clusters of %u", info->name,
                     request->grid[axis], shape[axis]);
  }
  if (blocks > EXEC_CLUSTER_MAX)
    return ff_fail(error, FF_INVALID, "kernel %s: a cluster of more than %u blocks", info->name, EXEC_CLUSTER_MAX);
  return FF_OK;
}

static ff_status check_request(const exec_config *config, const exec_launch_request *request, ff_error *error) {
  const exec_kernel_info *info = &request->kernel->info;
  uint64_t threads = (uint64_t)request->block[0] * request->block[1] * request->block[2];
  uint64_t blocks = (uint64_t)request->grid[0] * request->grid[1];
  if (!request->block[0] || !request->block[1] || !request->block[2] || !request->grid[0] || !request->grid[1] ||
      !request->grid[2])
    return ff_fail(error, FF_INVALID, "kernel %s: a grid or block dimension is 0", info->name);
  if (request->block[0] > EXEC_MAX_THREADS || request->block[1] > EXEC_MAX_THREADS ||
      request->block[2] > EXEC_MAX_THREADS || threads > info->max_threads)
    return ff_fail(error, FF_INVALID, "kernel %s: %llu threads per block, %u are possible", info->name,
                   (unsigned long long)threads, info->max_threads);
  if (blocks > UINT64_MAX / request->grid[2] || blocks * request->grid[2] >= UINT64_C(1) << 62)
    return ff_fail(error, FF_INVALID, "kernel %s: too many blocks", info->name);
  uint64_t shared = (uint64_t)info->static_shared + request->dynamic_shared;
  uint64_t limit = config->max_shared ? config->max_shared : EXEC_WINDOW_BYTES;
  if (shared > limit)
    return ff_fail(error, FF_INVALID, "kernel %s: %llu bytes of shared memory per block, %llu are possible", info->name,
                   (unsigned long long)shared, (unsigned long long)limit);
  if (request->cooperative && config->resident_blocks && blocks * request->grid[2] > config->resident_blocks)
    return ff_fail(error, FF_INVALID, "kernel %s: a cooperative grid of %llu blocks, %u can be resident", info->name,
                   (unsigned long long)(blocks * request->grid[2]), config->resident_blocks);
  if (info->param_bytes && !request->params) return ff_fail(error, FF_INVALID, "kernel %s: no parameters", info->name);
  return check_cluster(request, error);
}

static uint32_t worker_count(const exec_config *config, uint64_t blocks) {
  static _Atomic long known; /* asking reads files of the system */
  long cores = known;
  if (!cores) known = cores = sysconf(_SC_NPROCESSORS_ONLN);
  uint32_t wanted = config->threads ? config->threads : cores > 0 ? (uint32_t)cores : 1;
  if (wanted > MAX_WORKERS) wanted = MAX_WORKERS;
  return blocks < wanted ? (uint32_t)blocks : wanted;
}

/* Dynamic shared memory begins behind the static, at the alignment of the unsized variables. */
static uint32_t shared_bytes(const exec_kernel *kernel, uint32_t dynamic) {
  uint32_t start = kernel->info.static_shared;
  for (size_t n = 0; n < kernel->shared.count && dynamic; n++) {
    const ptx_var *var = kernel->shared.items[n].var;
    if ((var->unsized || !var->size) && kernel->shared.items[n].offset > start) start = kernel->shared.items[n].offset;
  }
  return start + dynamic;
}

/* Local memory per thread: what is known to be needed; if that is not known, at least the limit on the stack. */
static uint32_t stack_limit(const exec_config *config, const exec_kernel *kernel) {
  uint32_t known = kernel->info.local_bytes, limit = config->stack_bytes ? config->stack_bytes : EXEC_DEFAULT_STACK;
  if (limit > EXEC_MAX_LOCAL) limit = EXEC_MAX_LOCAL;
  limit &= ~15u;
  return kernel->recursive && limit > known ? limit : known;
}

/* In the workspace: what a grid knows of those of other devices (driver/engine/device_runtime.ptx). */
#define GRIDS_AT 64

static void set_workspace(core_launch *launch, const exec_launch_request *request) {
  if (!request->cooperative) return;
  const exec_allocation *workspace;
  exec_kernel *kernel = request->kernel;
  if (!kernel->workspace && exec_memory_allocate(launch->memory, EXEC_PAGE_BYTES, 0, EXEC_MEMORY_DEVICE,
                                                 "workspace of cooperative grids", &workspace, NULL) == FF_OK)
    exec_memory_exempt(kernel->workspace = workspace);
  if (!kernel->workspace) return;
  launch->workspace = kernel->workspace->address;
  memset((void *)(uintptr_t)launch->workspace, 0, EXEC_PAGE_BYTES);
  uint32_t bytes = EXEC_PAGE_BYTES;
  memcpy((void *)(uintptr_t)launch->workspace, &bytes, sizeof bytes);
  memcpy((void *)(uintptr_t)(launch->workspace + GRIDS_AT), &request->grids, sizeof request->grids);
}

static void set_up(core_launch *launch, const exec_config *config, const exec_launch_request *request,
                   unsigned char *params) {
  exec_kernel *kernel = request->kernel;
  launch->config = config;
  launch->request = request;
  launch->kernel = kernel;
  launch->memory = config->memory ? config->memory : kernel->program->memory;
  launch->function_count = kernel->reach_count;
  memcpy(launch->grid, request->grid, sizeof launch->grid);
  memcpy(launch->block, request->block, sizeof launch->block);
  cluster_shape(request, launch->cluster);
  launch->cluster_blocks = launch->cluster[0] * launch->cluster[1] * launch->cluster[2];
  launch->has_clusters = request->cluster[0] || kernel->info.cluster[0];
  launch->blocks = (uint64_t)request->grid[0] * request->grid[1] * request->grid[2];
  launch->thread_count = request->block[0] * request->block[1] * request->block[2];
  launch->warp_count = (launch->thread_count + EXEC_LANES - 1) / EXEC_LANES;
  launch->dynamic_shared = request->dynamic_shared;
  launch->shared_bytes = shared_bytes(kernel, request->dynamic_shared);
  launch->stack_limit = stack_limit(config, kernel);
  if (kernel->info.param_bytes) memcpy(params, request->params, kernel->info.param_bytes);
  if (kernel->params_memory)
    memcpy((void *)(uintptr_t)kernel->params_memory->address, params, kernel->info.param_bytes);
  launch->params = params;
  launch->clock_base = clock_total;
  launch->trace = request->trace;
  launch->touches = request->touches;
  core_declared_prepare(launch);
  launch->stop_above = UINT64_MAX;
  launch->resident_limit = config->resident_blocks ? config->resident_blocks : 4096;
  if (request->cooperative && launch->resident_limit < launch->blocks)
    launch->resident_limit = (uint32_t)launch->blocks;
  set_workspace(launch, request);
}

static void clear_fault(exec_fault *fault) {
  memset(fault, 0, offsetof(exec_fault, message));
  fault->message[0] = '\0';
}

/* The pool's, cleared, as is what lies behind the parameters. */
static core_launch *clear_launch(worker_pool *pool, uint32_t param_bytes) {
  if (!pool->own) pool->own = ff_alloc_aligned(64, sizeof *pool->own);
  size_t behind = offsetof(core_launch, fault) + sizeof pool->own->fault;
  memset(pool->own, 0, offsetof(core_launch, fault));
  clear_fault(&pool->own->fault);
  memset((char *)pool->own + behind, 0, sizeof *pool->own - behind);
  if (!pool->params || pool->param_room < param_bytes) {
    free(pool->params);
    pool->params = ff_alloc(param_bytes + 16u);
    pool->param_room = param_bytes;
  }
  memset(pool->params + param_bytes, 0, 16);
  return pool->own;
}

ff_status exec_launch(const exec_config *config, const exec_launch_request *request, exec_stats *stats,
                      exec_fault *fault, ff_error *error) {
  return exec_launch_checked(config, request, NULL, stats, fault, error);
}

/* The first whose launch has not given way. */
static worker_pool *free_pool(void) {
  uint32_t n = 0;
  while (n + 1 < MAX_POOLS && pools[n].given) n++;
  return &pools[n];
}

static void end_touched(worker_pool *pool, core_launch *launch, uint64_t instructions) {
  struct footprint *footprints[MAX_WORKERS] = {NULL};
  for (uint32_t n = 0; n < launch->threads; n++) {
    const core_worker *worker = &pool->workers[n]->worker;
    if (worker->touched_shape == launch->shape) footprints[n] = worker->touched;
  }
  core_touched_end(launch, footprints, launch->threads, instructions);
}

static bool has_all_functions(const exec_checker *c) {
  return c->launch_begin && c->launch_end && c->block_begin && c->block_end && c->entered && c->wrote && c->access &&
         c->fence && c->meet && c->arrive && c->release && c->heap_malloc && c->heap_freed && c->heap_misuse;
}

ff_status exec_launch_checked(const exec_config *config, const exec_launch_request *request, exec_checker *checker,
                              exec_stats *stats, exec_fault *fault, ff_error *error) {
  static uint64_t shape;
  if (fault) clear_fault(fault);
  ff_status status = check_request(config, request, error);
  if (status != FF_OK) return status;
  const exec_isa_table *isa = exec_isa_find(config->isa);
  if (!isa)
    return config->isa && *config->isa
               ? ff_fail(error, FF_INVALID, "instruction set '%s': not in this build, or this processor lacks it",
                         config->isa)
               : ff_fail(error, FF_INVALID, "built for another processor only: build it with FARFAULT_ISAS=all");
  FF_ASSERT(!checker || has_all_functions(checker));
  if (checker) isa = exec_isa_checked(isa);
  const exec_code *code;
  status = exec_kernel_code(request->kernel, isa, &code, error);
  if (status != FF_OK) return status;
  exec_stats unused = {0};
  worker_pool *pool = free_pool();
  /* Where launches give way it is free: the caller's own lock, which they take while they hold this one, is held
   * here. */
  if (pthread_mutex_trylock(&pool->launching)) pthread_mutex_lock(&pool->launching);
  core_launch *launch = clear_launch(pool, request->kernel->info.param_bytes);
  set_up(launch, config, request, pool->params);
  launch->isa = isa;
  launch->checker = checker;
  launch->functions = code->functions;
  launch->shape = ++shape;
  launch->threads = have_workers(pool, request->kernel->pulls || request->kernel->launches
                                           ? 1
                                           : worker_count(config, launch->blocks / launch->cluster_blocks));
  if (launch->resident_limit < launch->threads * launch->cluster_blocks)
    launch->resident_limit = launch->threads * launch->cluster_blocks;
  pthread_mutex_init(&launch->lock, NULL);
  exec_native_begin(launch, code);
  if (request->kernel->prints) launch->output = core_output_create(config);
  if (checker) checker->launch_begin(checker, launch);
  exec_stats *all = stats ? stats : &unused;
  uint64_t before = all->blocks, instructions = all->warp_instructions;
  run_blocks(pool, launch, all);
  if (launch->touches) end_touched(pool, launch, all->warp_instructions - instructions);
  FF_ASSERT(launch->fault.kind != EXEC_FAULT_NONE || all->blocks - before == launch->blocks);
  if (checker) checker->launch_end(checker, launch);
  core_output_finish(launch->output);
  core_children_finish(launch);
  exec_native_end(launch);
  clock_total += launch->executed;
  if (launch->fault.kind != EXEC_FAULT_NONE) {
    status = ff_fail(error, FF_FAULT, "%s", launch->fault.message);
    if (fault) *fault = launch->fault;
  }
  pthread_mutex_destroy(&launch->lock);
  free(launch->ranges);
  pthread_mutex_unlock(&pool->launching);
  return status;
}
