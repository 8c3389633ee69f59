/* SPDX-License-Identifier: Apache-2.0 */
/* A sweep on a cluster: how a process finds the other ranks, what one that is not the first does, and how they part.
 *
 * A rank that hears nothing from rank 0 for the time after which it would be lost itself ends; one
 * that was told to stop has no child left when it reports that. */
#define _GNU_SOURCE /* sigtimedwait's siginfo */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/commands/sweep_command.h"
#include "cli/running/run.h"

static bool started_by_mpirun(void) { return getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMIX_RANK"); }

double sweep_cluster_patience(void) {
  const char *text = getenv("FARFAULT_SWEEP_PATIENCE");
  double seconds = text ? strtod(text, NULL) : 0;
  return seconds >= 1 && seconds < 1e6 ? seconds : 30;
}

/* MPI's threads must not be those that our signals reach: they start with all of them blocked. */
static bool start_ranks(const sweep_ranks *ranks, sweep_cluster *cluster, char *why, size_t size) {
  sigset_t all, old;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &old);
  bool good = ranks->start(&cluster->rank, &cluster->count, why, size);
  sigprocmask(SIG_SETMASK, &old, NULL);
  return good;
}

bool sweep_cluster_join(sweep_cluster *cluster) {
  *cluster = (sweep_cluster){.count = 1};
  if (!started_by_mpirun()) return true;
  char *path = cli_find_installed((const char *const[]){"../lib/farfault/libfarfault-mpi.so", NULL}), why[512] = "";
  if (!path) return cli_fail(false, "started by mpirun, but this farfault was built without Open MPI (libopenmpi-dev)");
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const sweep_ranks *ranks = library ? dlsym(library, SWEEP_RANKS_SYMBOL) : NULL;
  if (!ranks) snprintf(why, sizeof why, "%s", dlerror());
  else if (ranks->version != SWEEP_RANKS_VERSION) snprintf(why, sizeof why, "%s: is of another farfault", path);
  else if (start_ranks(ranks, cluster, why, sizeof why)) cluster->ranks = ranks;
  free(path);
  if (!cluster->ranks) return cli_fail(false, "cannot join the other ranks: %s", why);
  return true;
}

/* Messages of short points come often: who waits long for the next one leaves a core idle. */
struct timespec sweep_poll(double heard) {
  return (struct timespec){.tv_nsec = slots_now() - heard < 0.05 ? 200 * 1000 : 3 * 1000 * 1000};
}

static void send(const sweep_cluster *cluster, int to, const sweep_message *message) {
  ff_text bytes = {0};
  sweep_message_write(message, &bytes);
  cluster->ranks->send(to, bytes.chars, bytes.length);
  free(bytes.chars);
}

/* The database may not be there yet: its folder is. */
char *sweep_folder_name(const char *database, int rank) {
  char *folder = ff_strdup(database), *slash = strrchr(folder, '/'), digits[SWEEP_KEY];
  if (slash) slash[slash == folder] = '\0';
  char *real = realpath(slash ? folder : ".", NULL);
  sweep_hash hash;
  ff_text name = {0};
  sweep_hash_start(&hash);
  sweep_hash_text(&hash, real ? real : folder);
  sweep_hash_text(&hash, strrchr(database, '/') ? strrchr(database, '/') + 1 : database);
  sweep_hash_end(&hash, digits);
  ff_text_add(&name, "sweep-%.16s-%d", digits, rank);
  free(folder);
  free(real);
  return name.chars;
}

/* ---- a rank that is told what to run ---- */

typedef struct working {
  const sweep_cluster *cluster;
  const char *program;
  slots slots;
  double heard, spoke, patience; /* until rank 0 speaks for the first time it may take its time: it reads the study */
  bool stopping, left, all;      /* told to stop; to leave; with all ranks */
} working;

static void say_ready(const working *w, uint32_t at_once) {
  char host[64] = "";
  gethostname(host, sizeof host - 1);
  send(w->cluster, 0,
       &(sweep_message){.kind = SWEEP_READY,
                        .status = (int32_t)at_once,
                        .texts = {FARFAULT_VERSION, host},
                        .sizes = {strlen(FARFAULT_VERSION), strlen(host)}});
}

/* The command's words but the first, which is what runs a point here. */
static void start(working *w, const sweep_message *m) {
  FF_VEC(char *) words = {0};
  for (size_t at = 0; at < m->sizes[0]; at += strlen(m->texts[0] + at) + 1) FF_PUSH(&words, (char *)m->texts[0] + at);
  FF_PUSH(&words, NULL);
  words.items[0] = (char *)(uintptr_t)(w->program ? w->program : "farfault");
  if (words.count > 1 && w->slots.running < w->slots.count) slots_run(&w->slots, m->task, words.items);
  free(words.items);
}

static void hear(working *w, const char *bytes, size_t size) {
  sweep_message m;
  if (!sweep_message_read(bytes, size, &m)) return;
  w->heard = slots_now();
  w->patience = sweep_cluster_patience();
  if (m.kind == SWEEP_TASK && !w->stopping) start(w, &m);
  if (m.kind == SWEEP_STOP && !w->stopping) {
    w->stopping = true;
    slots_stop(&w->slots);
    send(w->cluster, 0, &(sweep_message){.kind = SWEEP_BYE});
  }
  if (m.kind == SWEEP_END) {
    w->left = true;
    w->all = m.status;
  }
}

static void report(working *w) {
  slot_end end;
  while (!w->stopping && slots_reap(&w->slots, &end)) {
    send(w->cluster, 0,
         &(sweep_message){.kind = SWEEP_DONE,
                          .task = end.task,
                          .status = end.status,
                          .seconds = end.seconds,
                          .texts = {end.log, end.output},
                          .sizes = {strlen(end.log), end.output ? end.output_size : 0}});
    slot_end_free(&end);
  }
  if (slots_now() - w->spoke < 1) return;
  w->spoke = slots_now();
  send(w->cluster, 0, &(sweep_message){.kind = SWEEP_ALIVE});
}

int sweep_rank_work(const sweep_cluster *cluster, uint32_t at_once, const char *program, const char *database) {
  working w = {.cluster = cluster, .program = program, .heard = slots_now(), .patience = 20 * sweep_cluster_patience()};
  sigset_t children, old;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  sigprocmask(SIG_BLOCK, &children, &old);
  char *folder = sweep_folder_name(database, cluster->rank);
  slots_start(&w.slots, at_once, &old, folder);
  free(folder);
  w.slots.body = program ? NULL : cli_sim_point;
  w.slots.ends = cli_point_ends;
  say_ready(&w, at_once);
  while (!w.left && slots_now() - w.heard < w.patience) {
    int from;
    char *bytes;
    size_t size;
    const struct timespec poll = sweep_poll(w.heard);
    sigtimedwait(&children, NULL, &poll);
    while (cluster->ranks->receive(&from, &bytes, &size)) {
      if (from == 0) hear(&w, bytes, size);
      free(bytes);
    }
    report(&w);
  }
  if (!w.stopping) slots_stop(&w.slots);
  if (!w.left) cli_fail(0, "rank %d has heard nothing from rank 0 for %.0f s, and ends", cluster->rank, w.patience);
  cluster->ranks->end(w.left && w.all, w.left ? 5 : 0);
  return w.left ? CLI_DONE : CLI_FAILED;
}

/* ---- rank 0 lets them go ---- */

static void count_leave(const sweep_cluster *cluster, const bool *lost, bool *bye, uint32_t *waiting) {
  int from;
  char *bytes;
  size_t size;
  while (cluster->ranks->receive(&from, &bytes, &size)) {
    sweep_message m;
    bool leaves = sweep_message_read(bytes, size, &m) && m.kind == SWEEP_BYE && from > 0 && from < cluster->count;
    if (leaves && !bye[from] && !(lost && lost[from])) {
      bye[from] = true;
      --*waiting;
    }
    free(bytes);
  }
}

void sweep_cluster_dismiss(const sweep_cluster *cluster, const bool *lost) {
  bool *bye = ff_alloc((size_t)cluster->count * sizeof *bye);
  uint32_t waiting = 0, gone = 0;
  for (int rank = 1; rank < cluster->count; rank++) {
    if (lost && lost[rank]) gone++;
    else waiting++;
    send(cluster, rank, &(sweep_message){.kind = SWEEP_STOP});
  }
  const struct timespec pause = {.tv_nsec = 2 * 1000 * 1000};
  for (double begun = slots_now(); waiting && slots_now() - begun < 5; nanosleep(&pause, NULL))
    count_leave(cluster, lost, bye, &waiting);
  bool all = !waiting && !gone;
  for (int rank = 1; rank < cluster->count; rank++)
    send(cluster, rank, &(sweep_message){.kind = SWEEP_END, .status = all});
  free(bye);
  cluster->ranks->end(all, all ? 5 : 1);
}
