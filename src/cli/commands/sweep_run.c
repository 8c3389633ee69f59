/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the points of a sweep: in child processes (cli/running/slots.h), here and at other ranks, and every result into
 * the database as it comes.
 *
 * Signals are blocked and taken one by one, so that the database is never left in the midst of
 * something by one of them; no result is written twice; children do not outlive us. */
#define _GNU_SOURCE /* sigtimedwait's siginfo */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/tasks.h"
#include "cli/commands/sweep_command.h"
#include "cli/running/run.h"
#include "sweep/work_queue.h"

enum { ALIVE_EVERY = 1 /* s */ };

typedef struct running {
  sweep_work *work;
  uint32_t *points; /* of the tasks: indices into the plan */
  work_queue work_queue;
  slots slots;
  char **hosts;  /* of the ranks, owned; NULL: not known yet */
  char host[64]; /* ours */
  sigset_t watched, old;
  int stopped;         /* the signal that did */
  bool failed;         /* the database did */
  double begun, spoke; /* to the other ranks */
  double heard;        /* of them */
  uint32_t ended;
  ff_tasks tasks; /* by the work queue's numbers */
  bool terminal, shown;
} running;

static const sweep_point *point_of(const running *r, uint32_t task) {
  return r->work->plan->points.items[r->points[task]];
}

/* ---- results ---- */

/* Why there is no result, in one line. */
static void explain(const slot_end *end, ff_text *why) {
  if (end->status > 128) ff_text_add(why, "ended by signal %d", end->status - 128);
  else ff_text_add(why, "farfault sim ended with status %d", end->status);
  for (const char *line = end->log, *next; line && *line; line = next) {
    size_t length = strcspn(line, "\n");
    next = line + length + (line[length] == '\n');
    if (length) ff_text_add(why, "%s%.*s", line == end->log ? ": " : " / ", (int)length, line);
  }
  for (char *c = why->chars; *c; c++)
    if ((unsigned char)*c < 32 || (unsigned char)*c > 126) *c = '?';
}

static void put(running *r, uint32_t task, const sweep_outcome *outcome) {
  if (sweep_database_put(r->work->database, point_of(r, task), outcome, &r->work->error)) r->failed = true;
}

/* A child's end, here or at another rank: its JSON is the truth, if there is one of one simulation that ran to its
 * end. */
static void take(running *r, const slot_end *end, uint32_t rank, const char *host) {
  if (!work_queue_done(&r->work_queue, end->task)) return;
  report_run run = {0};
  ff_error error = {0};
  ff_text why = {0};
  sweep_outcome outcome = {.host = host, .rank = rank, .seconds = end->seconds};
  bool read =
      !end->status && end->output && !report_json_read("its result", end->output, end->output_size, &run, &error);
  if (read && run.result_count == 1 && (run.results[0].complete || run.results[0].error[0]))
    outcome.result = &run.results[0];
  else if (read)
    ff_text_add(&why, "farfault sim left a result of %u simulations, or an incomplete one", run.result_count);
  else if (!end->status) ff_text_add(&why, "%.300s", end->output ? error.message : "farfault sim left no result");
  else explain(end, &why);
  outcome.error = why.chars;
  put(r, end->task, &outcome);
  ff_tasks_end(&r->tasks, end->task, slots_now());
  r->ended++;
  report_free(&run);
  free(why.chars);
}

/* ---- here ---- */

/* A point in words; a rank takes another first one. */
static char **command_of(const running *r, uint32_t task) {
  const char *program = r->work->program ? r->work->program : "farfault";
  return sweep_point_command(r->work->plan, point_of(r, task), program, SLOT_OUTPUT);
}

static void start_here(running *r) {
  for (int64_t task; (task = work_queue_next(&r->work_queue, 0)) >= 0;) {
    char **argv = command_of(r, (uint32_t)task);
    ff_tasks_begin(&r->tasks, (uint32_t)task, slots_now());
    slots_run(&r->slots, (uint32_t)task, argv);
    for (char **word = argv; *word; word++) free(*word);
    free(argv);
  }
}

static void reap_here(running *r) {
  slot_end end;
  while (slots_reap(&r->slots, &end)) {
    take(r, &end, 0, r->host);
    slot_end_free(&end);
  }
}

/* ---- at other ranks ---- */

static void send(const running *r, int to, const sweep_message *message) {
  ff_text bytes = {0};
  sweep_message_write(message, &bytes);
  r->work->cluster->ranks->send(to, bytes.chars, bytes.length);
  free(bytes.chars);
}

static void start_there(running *r, int rank) {
  for (int64_t task; (task = work_queue_next(&r->work_queue, (uint32_t)rank)) >= 0;) {
    char **argv = command_of(r, (uint32_t)task);
    ff_text words = {0};
    ff_tasks_begin(&r->tasks, (uint32_t)task, slots_now());
    for (char **word = argv; *word; word++) {
      ff_text_add_bytes(&words, *word, strlen(*word) + 1);
      free(*word);
    }
    free(argv);
    send(r, rank,
         &(sweep_message){.kind = SWEEP_TASK, .task = (uint32_t)task, .texts = {words.chars}, .sizes = {words.length}});
    free(words.chars);
  }
}

/* A rank of another version would give other results under our name: it gets nothing to do. */
static void welcome(running *r, int from, const sweep_message *m) {
  const char *host = m->texts[1];
  if (strcmp(m->texts[0], FARFAULT_VERSION) != 0) {
    cli_fail(0, "rank %d on %.60s is farfault %.30s, not %s: it is left out", from, host, m->texts[0],
             FARFAULT_VERSION);
    return;
  }
  free(r->hosts[from]);
  r->hosts[from] = ff_strdup(host);
  work_queue_join(&r->work_queue, (uint32_t)from, m->status > 0 && m->status < 10000 ? (uint32_t)m->status : 1,
                  slots_now());
}

static void hear(running *r, int from, const char *bytes, size_t size) {
  sweep_message m;
  if (!sweep_message_read(bytes, size, &m) || from < 1 || from >= r->work->cluster->count) return;
  if (r->work->lost[from]) cli_fail(0, "rank %d is there again", from);
  r->work->lost[from] = false;
  work_queue_heard(&r->work_queue, (uint32_t)from, slots_now());
  if (m.kind == SWEEP_READY) welcome(r, from, &m);
  if (m.kind != SWEEP_DONE || m.task >= r->work_queue.task_count) return;
  slot_end end = {.task = m.task,
                  .status = m.status,
                  .seconds = m.seconds,
                  .log = (char *)m.texts[0],
                  .output = m.sizes[1] ? (char *)m.texts[1] : NULL,
                  .output_size = m.sizes[1]};
  take(r, &end, (uint32_t)from, r->hosts[from]);
}

static void find_lost(running *r) {
  for (int64_t rank; (rank = work_queue_lost(&r->work_queue, slots_now(), sweep_cluster_patience())) >= 0;) {
    r->work->lost[rank] = true;
    cli_fail(0, "rank %d has been silent for %.0f s: what it had goes to others", (int)rank, sweep_cluster_patience());
  }
  for (int64_t task; (task = work_queue_hopeless(&r->work_queue)) >= 0;) {
    put(r, (uint32_t)task, &(sweep_outcome){.error = "the ranks that ran this point were lost, three times"});
    ff_tasks_end(&r->tasks, (uint32_t)task, slots_now());
    r->ended++;
  }
}

static void work_with_ranks(running *r) {
  const sweep_cluster *cluster = r->work->cluster;
  char *bytes;
  size_t size;
  int from;
  while (cluster->ranks->receive(&from, &bytes, &size)) {
    r->heard = slots_now();
    hear(r, from, bytes, size);
    free(bytes);
  }
  work_queue_heard(&r->work_queue, 0, slots_now());
  find_lost(r);
  for (int rank = 1; rank < cluster->count && !r->stopped && !r->failed; rank++) start_there(r, rank);
  if (slots_now() - r->spoke < ALIVE_EVERY) return;
  r->spoke = slots_now();
  for (int rank = 1; rank < cluster->count; rank++) send(r, rank, &(sweep_message){.kind = SWEEP_ALIVE});
}

/* ---- the progress line ---- */

static void clear_line(running *r) {
  if (r->shown) fprintf(stderr, "\r\033[K");
  r->shown = false;
}

static uint32_t room(const work_queue *h) {
  uint32_t room = 0;
  for (uint32_t i = 0; i < h->worker_count; i++) room += h->workers[i].alive ? h->workers[i].room : 0;
  return room;
}

/* "farfault: sweep: 37 of 200 points, about 3 min left" */
static void show(running *r) {
  uint32_t all = r->work_queue.task_count;
  r->tasks.at_once = room(&r->work_queue);
  fprintf(stderr, "\rfarfault: sweep: %u of %u points", r->work->there + r->work_queue.done, r->work->there + all);
  slots_show_left(ff_tasks_show(&r->tasks, slots_now()));
  fprintf(stderr, "\033[K");
  fflush(stderr);
  r->shown = true;
}

/* ---- the loop ---- */

static void wait_for_news(running *r) {
  const struct timespec tick = {.tv_nsec = 250 * 1000 * 1000}, quiet = {.tv_sec = 10}, poll = sweep_poll(r->heard);
  siginfo_t info;
  int signal = sigtimedwait(&r->watched, &info, r->work->cluster->ranks ? &poll : r->terminal ? &tick : &quiet);
  if (signal > 0 && signal != SIGCHLD) r->stopped = signal;
}

static void loop(running *r) {
  while (!work_queue_finished(&r->work_queue) && !r->stopped && !r->failed) {
    start_here(r);
    wait_for_news(r);
    clear_line(r);
    reap_here(r);
    if (r->work->cluster->ranks) work_with_ranks(r);
    if (r->terminal) show(r);
  }
  clear_line(r);
}

/* Points of one trace under one manager are much alike. A trace's file is longer where more is to be simulated. */
static void add_task(running *r, uint32_t task) {
  const sweep_point *p = point_of(r, task);
  struct stat info;
  uint32_t group = 0;
  while (group < task && (point_of(r, group)->trace != p->trace || strcmp(point_of(r, group)->memory, p->memory) != 0))
    group++;
  ff_tasks_add(&r->tasks, stat(p->trace->path, &info) ? 1 : (double)info.st_size, group);
}

static void find_tasks(running *r) {
  sweep_work *w = r->work;
  uint32_t count = 0;
  r->points = ff_alloc((w->plan->points.count + 1) * sizeof *r->points);
  for (uint32_t i = 0; i < w->plan->points.count; i++)
    if (!sweep_database_has(w->database, w->plan->points.items[i])) r->points[count++] = i;
  w->there = (uint32_t)w->plan->points.count - count;
  for (uint32_t i = 0; i < count; i++) add_task(r, i);
  work_queue_start(&r->work_queue, count, w->cluster->ranks ? (uint32_t)w->cluster->count : 1);
}

int sweep_run(sweep_work *work) {
  running r = {.work = work, .begun = slots_now(), .terminal = isatty(STDERR_FILENO)};
  const int ends[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  sigemptyset(&r.watched);
  for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) sigaddset(&r.watched, ends[i]);
  sigprocmask(SIG_BLOCK, &r.watched, &r.old);
  gethostname(r.host, sizeof r.host - 1);
  find_tasks(&r);
  char *folder = sweep_folder_name(work->output, 0);
  slots_start(&r.slots, work->at_once, &r.old, folder);
  free(folder);
  r.slots.body = work->program ? NULL : cli_sim_point;
  r.slots.ends = cli_point_ends;
  r.hosts = ff_alloc((size_t)work->cluster->count * sizeof *r.hosts);
  work_queue_join(&r.work_queue, 0, work->at_once, r.begun);
  loop(&r);
  work->run = r.ended;
  slots_stop(&r.slots);
  for (int i = 0; i < work->cluster->count; i++) free(r.hosts[i]);
  free(r.hosts);
  free(r.points);
  ff_tasks_free(&r.tasks);
  work_queue_free(&r.work_queue);
  sigprocmask(SIG_SETMASK, &r.old, NULL);
  return r.stopped;
}
