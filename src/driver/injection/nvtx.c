/* SPDX-License-Identifier: Apache-2.0 */
/* The open ranges of all threads, and the texts that live on. One lock guards everything; a range is opened and closed
 * far more seldom than it would matter.
 *
 * A thread's path is made when it is asked for: programs open many more ranges than they launch kernels or allocate in.
 * There are at most PATHS_MAX different paths (a program may number its ranges); what comes then has one for all. */
#include "driver/injection/nvtx.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

enum { NAME_BYTES = 64, DEPTH_MAX = 512, PATHS_MAX = 4096 };

struct nvtx_domain {
  char name[NAME_BYTES];
};

typedef struct open_range {
  const nvtx_domain *domain;
  uint64_t number; /* 0: it was pushed */
  uint64_t serial; /* of all ranges */
  bool watched;
  char name[NAME_BYTES];
} open_range;

typedef struct thread_ranges {
  FF_VEC(open_range) open;
  uint32_t index;   /* of the threads, from 0 */
  uint32_t deeper;  /* pushed beyond DEPTH_MAX, and not popped: not kept */
  const char *path; /* of `open`; NULL: not made */
  struct thread_ranges *next;
} thread_ranges;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* of the thread's thread_ranges, or NULL */
static thread_ranges *threads;
static ff_map domains, texts, paths; /* name -> nvtx_domain; text -> itself; path -> itself */
static uint32_t path_count;
static uint64_t numbers; /* of started ranges */
static uint64_t serials; /* of all ranges */
static uint32_t thread_count;

static char *watched_name; /* of farfault_nvtx_watch, NULL: none */
static void (*watcher)(void);
static uint64_t watched_open; /* open_ranges that are watched */
static nvtx_teller teller;    /* of farfault_nvtx_tell_ranges */

/* "conv" or "domain:conv", as in a path. */
static void name_range(const open_range *range, char *name, size_t size) {
  const char *domain = range->domain ? range->domain->name : "";
  snprintf(name, size, "%s%s%s", domain, domain[0] ? ":" : "", range->name);
}

/* At most `size` - 1 bytes, of which none is a part of a character alone. */
static void copy_name(char *to, size_t size, const char *from) {
  size_t length = from ? strnlen(from, size) : 0;
  if (length == size) {
    length--;
    while (length && ((unsigned char)from[length] & 0xc0) == 0x80) length--;
  }
  if (length) memcpy(to, from, length);
  to[length] = '\0';
}

/* ---- telling ---- */

typedef FF_VEC(nvtx_event) event_list; /* what has happened since the lock was taken */

static nvtx_event event_of(const thread_ranges *mine, const open_range *range, bool begin) {
  char name[2 * NAME_BYTES];
  nvtx_event event = {
      .number = range->serial, .thread = mine->index, .begin = begin, .started = begin && range->number};
  name_range(range, name, sizeof name);
  if (range->domain) event.domain = (uint8_t)strlen(range->domain->name);
  copy_name(event.name, sizeof event.name, name);
  return event;
}

/* Gives the lock back, tells the watcher if there are more or fewer watched ranges than before, and the teller what
 * happened. */
static void leave_and_tell(uint64_t before, event_list *events) {
  void (*watch)(void) = watched_open == before ? NULL : watcher;
  nvtx_teller tell = teller;
  pthread_mutex_unlock(&lock);
  if (watch) watch();
  for (size_t i = 0; tell && i < events->count; i++) tell(&events->items[i]);
  free(events->items);
}

static void close_range(thread_ranges *mine, size_t at, event_list *events) {
  if (teller) FF_PUSH(events, event_of(mine, &mine->open.items[at], false));
  watched_open -= mine->open.items[at].watched;
  mine->open.count--;
  memmove(mine->open.items + at, mine->open.items + at + 1, (mine->open.count - at) * sizeof *mine->open.items);
  mine->path = NULL;
}

/* ---- threads ---- */

static void thread_ends(void *context) {
  thread_ranges *mine = context;
  pthread_mutex_lock(&lock);
  const uint64_t before = watched_open;
  event_list events = {0};
  while (mine->open.count) close_range(mine, mine->open.count - 1, &events);
  for (thread_ranges **at = &threads; *at; at = &(*at)->next)
    if (*at == mine) {
      *at = mine->next;
      break;
    }
  leave_and_tell(before, &events);
  free(mine->open.items);
  free(mine);
}

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }

static void start(void) {
  pthread_key_create(&key, thread_ends);
  pthread_atfork(before_fork, after_fork, after_fork);
}

/* With the lock held. NULL: the thread has none, and none is to be made. */
static thread_ranges *ranges_of_thread(bool make) {
  pthread_once(&once, start);
  thread_ranges *mine = pthread_getspecific(key);
  if (mine || !make) return mine;
  mine = ff_alloc(sizeof *mine);
  if (pthread_setspecific(key, mine)) {
    free(mine);
    return NULL;
  }
  mine->index = thread_count++;
  mine->next = threads;
  return threads = mine;
}

static void enter(void) {
  pthread_once(&once, start);
  pthread_mutex_lock(&lock);
}

static void leave(void) { pthread_mutex_unlock(&lock); }

/* ---- texts ---- */

/* Leaves out the label and a number behind it wherever a comma or the end follows. */
static void leave_out_number(char *name, const char *label) {
  for (char *at = name; (at = strstr(at, label));) {
    char *number = at + strlen(label);
    size_t digits = strspn(number, "0123456789");
    if (digits && (!number[digits] || number[digits] == ',')) memmove(at, number + digits, strlen(number + digits) + 1);
    else at = number;
  }
}

/* The numbers that PyTorch's emit_nvtx gives to each operator: with them no two ranges would be the same. */
static void leave_out_numbers(char *name) {
  leave_out_number(name, ", seq = ");
  leave_out_number(name, ", op_id = ");
}

static const char *kept_in(ff_map *map, const char *text) {
  char *kept = ff_map_get(map, text);
  if (kept) return kept;
  kept = ff_strdup(text);
  ff_map_set(map, kept, kept);
  return kept;
}

const char *farfault_nvtx_keep(const char *text) {
  enter();
  const char *kept = kept_in(&texts, text ? text : "");
  leave();
  return kept;
}

nvtx_domain *farfault_nvtx_domain(const char *name) {
  char own[NAME_BYTES];
  copy_name(own, sizeof own, name);
  enter();
  nvtx_domain *domain = ff_map_get(&domains, own);
  if (!domain) {
    domain = ff_alloc(sizeof *domain);
    memcpy(domain->name, own, sizeof own);
    ff_map_set(&domains, domain->name, domain);
  }
  leave();
  return domain;
}

/* ---- ranges ---- */

static int level_of(const thread_ranges *mine, const nvtx_domain *domain, size_t below) {
  int level = 0;
  for (size_t i = 0; i < below; i++) level += mine->open.items[i].domain == domain && !mine->open.items[i].number;
  return level;
}

static bool is_watched(const open_range *range) {
  char name[2 * NAME_BYTES];
  if (!watched_name) return false;
  name_range(range, name, sizeof name);
  return !strcmp(name, watched_name);
}

static bool open_range_in(thread_ranges *mine, const nvtx_domain *domain, const char *name, uint64_t number,
                          event_list *events) {
  if (!mine || mine->open.count == DEPTH_MAX) return false;
  open_range range = {.domain = domain, .number = number, .serial = ++serials};
  copy_name(range.name, sizeof range.name, name);
  leave_out_numbers(range.name);
  range.watched = is_watched(&range);
  watched_open += range.watched;
  FF_PUSH(&mine->open, range);
  mine->path = NULL;
  if (teller) FF_PUSH(events, event_of(mine, &range, true));
  return true;
}

int farfault_nvtx_push(const nvtx_domain *domain, const char *name) {
  enter();
  const uint64_t before = watched_open;
  thread_ranges *mine = ranges_of_thread(true);
  event_list events = {0};
  int level = mine ? level_of(mine, domain, mine->open.count) + (int)mine->deeper : -1;
  if (!open_range_in(mine, domain, name, 0, &events) && mine) mine->deeper++;
  leave_and_tell(before, &events);
  return level;
}

int farfault_nvtx_pop(const nvtx_domain *domain) {
  int level = -1;
  event_list events = {0};
  enter();
  const uint64_t before = watched_open;
  thread_ranges *mine = ranges_of_thread(false);
  if (mine && mine->deeper) {
    level = level_of(mine, domain, mine->open.count) + (int)--mine->deeper;
  } else if (mine) {
    size_t at = mine->open.count;
    while (at && (mine->open.items[at - 1].domain != domain || mine->open.items[at - 1].number)) at--;
    if (at) {
      level = level_of(mine, domain, at - 1);
      close_range(mine, at - 1, &events);
    }
  }
  leave_and_tell(before, &events);
  return level;
}

uint64_t farfault_nvtx_start(const nvtx_domain *domain, const char *name) {
  enter();
  const uint64_t before = watched_open, number = ++numbers;
  event_list events = {0};
  open_range_in(ranges_of_thread(true), domain, name, number, &events);
  leave_and_tell(before, &events);
  return number;
}

void farfault_nvtx_end(uint64_t number) {
  if (!number) return;
  enter();
  const uint64_t before = watched_open;
  event_list events = {0};
  for (thread_ranges *t = threads; t; t = t->next)
    for (size_t i = t->open.count; i-- > 0;)
      if (t->open.items[i].number == number) close_range(t, i, &events);
  leave_and_tell(before, &events);
}

void farfault_nvtx_watch(const char *name, void (*function)(void)) {
  enter();
  free(watched_name); /* a process that was forked asks anew */
  watched_name = ff_strdup(name);
  watcher = function;
  watched_open = 0;
  for (thread_ranges *t = threads; t; t = t->next)
    for (size_t i = 0; i < t->open.count; i++) watched_open += t->open.items[i].watched = is_watched(&t->open.items[i]);
  leave();
}

uint64_t farfault_nvtx_watched(void) {
  enter();
  const uint64_t open = watched_open;
  leave();
  return open;
}

/* The open range with the lowest serial above `serial`; NULL: none. */
static const open_range *next_open(uint64_t serial, const thread_ranges **whose) {
  const open_range *next = NULL;
  for (const thread_ranges *t = threads; t; t = t->next)
    for (size_t i = 0; i < t->open.count; i++) {
      const open_range *range = &t->open.items[i];
      if (range->serial <= serial || (next && next->serial < range->serial)) continue;
      next = range;
      *whose = t;
    }
  return next;
}

void farfault_nvtx_tell_ranges(nvtx_teller function, nvtx_teller open) {
  const thread_ranges *whose = NULL;
  uint64_t serial = 0;
  enter();
  teller = function;
  for (const open_range *range; (range = next_open(serial, &whose)); serial = range->serial) {
    nvtx_event event = event_of(whose, range, true);
    open(&event);
  }
  leave();
}

/* ---- paths ---- */

/* "domain:range", at the end of what ends at `end`; false: there is no room. */
static bool put_in_front(char *room, size_t *begin, const char *text) {
  size_t length = strlen(text);
  if (length > *begin) return false;
  *begin -= length;
  memcpy(room + *begin, text, length);
  return true;
}

static const char *make_path(const thread_ranges *mine) {
  char room[NVTX_PATH_BYTES], one[2 * NAME_BYTES + 1];
  size_t begin = sizeof room - 1;
  room[begin] = '\0';
  for (size_t i = mine->open.count; i-- > 0;) {
    name_range(&mine->open.items[i], one, sizeof one);
    if (i + 1 < mine->open.count) strcat(one, "/");
    if (!put_in_front(room, &begin, one)) break;
  }
  const char *path = room + begin;
  if (ff_map_get(&paths, path) || path_count < PATHS_MAX) {
    path_count += !ff_map_get(&paths, path);
    return kept_in(&paths, path);
  }
  return "(further ranges)";
}

const char *farfault_nvtx_range(void) {
  const char *path = NULL;
  enter();
  thread_ranges *mine = ranges_of_thread(false);
  if (mine && mine->open.count) {
    if (!mine->path) mine->path = make_path(mine);
    path = mine->path;
  }
  leave();
  return path;
}

/* ---- streams ---- */

static void (*_Atomic stream_named)(void *stream, const char *name);

void farfault_nvtx_tell_streams(void (*function)(void *stream, const char *name)) { stream_named = function; }

void farfault_nvtx_name_stream(void *stream, const char *name) {
  void (*function)(void *stream, const char *name) = stream_named;
  if (function) function(stream, name ? name : "");
}
