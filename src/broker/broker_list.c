/* SPDX-License-Identifier: Apache-2.0 */
/* Who has what: asked of the daemon of every lock file in the folder; where there is none, what is locked. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "broker/broker_link.h"

enum { ANSWER_MS = 5000, LISTED = 4096 };

typedef FF_VEC(broker_holder) holders;

static void add_holder(const wire_message *m, holders *list) {
  broker_holder h = {.waits = m->state == WIRE_WAITS,
                     .orphan = m->state == WIRE_ORPHAN,
                     .pid = (int32_t)m->pid,
                     .colour_count = (uint32_t)m->colours,
                     .grant = {(uint32_t)m->sm_first, (uint32_t)m->sms, m->mask},
                     .since_s = (double)m->age_ms / 1000};
  memcpy(h.program, m->program, sizeof h.program);
  memcpy(h.name, m->name, sizeof h.name);
  FF_PUSH(list, h);
}

static ff_status read_listing(broker_link *link, broker_listing *listing, holders *list, ff_error *error) {
  int64_t until = link_now_ms() + ANSWER_MS;
  wire_message m = {.kind = WIRE_LIST};
  ff_status status = link_send(link, &m, until, error);
  if (!status) status = link_receive(link, until, &m, error);
  if (status) return status;
  if (m.kind != WIRE_GPU)
    return ff_fail(error, FF_IO, "the broker (process %d) cannot list its shares%s%s", link->pid,
                   m.kind == WIRE_REFUSED ? ": " : "", m.text);
  *listing = (broker_listing){.sms = (uint32_t)m.gpu_sms,
                              .colours = (uint32_t)m.gpu_colours,
                              .free_sms = (uint32_t)m.sms,
                              .free_colours = (uint32_t)m.colours,
                              .daemon_pid = link->pid};
  memcpy(listing->gpu, m.gpu, sizeof listing->gpu);
  while (!(status = link_receive(link, until, &m, error)) && m.kind == WIRE_HOLDER && list->count < LISTED)
    add_holder(&m, list);
  if (status) return status;
  return m.kind == WIRE_END ? FF_OK : ff_fail(error, FF_IO, "the broker (process %d) does not end its list", link->pid);
}

/* FF_NOT_FOUND: there is none, or none any more. */
static ff_status list_one(const broker_place *place, const char *socket_name, broker_listing *listing,
                          ff_error *error) {
  broker_link link;
  holders list = {0};
  ff_status status = link_open(place, socket_name, &link, error);
  if (status) return status;
  status = read_listing(&link, listing, &list, error);
  link_close(&link);
  if (status) {
    free(list.items);
    return status;
  }
  listing->holders = list.items;
  listing->holder_count = (uint32_t)list.count;
  return FF_OK;
}

static bool ends_in(const char *name, const char *ending) {
  size_t length = strlen(name);
  return length > 5 && length < PLACE_NAME && !strcmp(name + length - 5, ending);
}

/* Adds an orphan for each run of SMs of one process, its colours with the first; colours alone with no SM. */
static void add_orphans(const int32_t *sm_pids, const int32_t *colour_pids, holders *list) {
  uint64_t listed = 0;
  for (uint32_t i = 0, end; i < BROKER_SMS + BROKER_COLOURS; i = end) {
    bool sm = i < BROKER_SMS;
    int32_t pid = sm ? sm_pids[i] : listed >> (i - BROKER_SMS) & 1 ? 0 : colour_pids[i - BROKER_SMS];
    for (end = i + 1; sm && end < BROKER_SMS && sm_pids[end] == pid;) end++;
    if (!pid) continue;
    broker_holder h = {.orphan = true, .pid = pid > 0 ? pid : 0, .grant = {sm ? i : 0, sm ? end - i : 0, 0}};
    for (uint32_t c = 0; c < BROKER_COLOURS; c++)
      if (colour_pids[c] == pid && !(listed >> c & 1)) h.grant.colours |= UINT64_C(1) << c;
    listed |= h.grant.colours;
    h.colour_count = (uint32_t)__builtin_popcountll(h.grant.colours);
    FF_PUSH(list, h);
  }
}

/* What processes hold of a GPU whose daemon is gone; the name without its hash stands for the GPU. FF_NOT_FOUND:
 * nothing. */
static ff_status list_locks(const broker_place *place, const char *lock_name, broker_listing *listing) {
  int32_t sm_pids[BROKER_SMS], colour_pids[BROKER_COLOURS];
  holders list = {0};
  if (!lock_look_there(place, lock_name, sm_pids, colour_pids)) return FF_NOT_FOUND;
  add_orphans(sm_pids, colour_pids, &list);
  *listing = (broker_listing){.holders = list.items, .holder_count = (uint32_t)list.count};
  size_t hash = strlen("-0123456789abcdef.lock"), length = strlen(lock_name);
  memcpy(listing->gpu, lock_name, length > hash ? length - hash : 0);
  return FF_OK;
}

/* By the lock file, which is there as long as a process holds a share. */
static ff_status list_gpu(const broker_place *place, const char *lock_name, broker_listing *listing, ff_error *error) {
  char socket_name[PLACE_NAME];
  size_t stem = strlen(lock_name) - 5;
  memcpy(socket_name, lock_name, stem);
  memcpy(socket_name + stem, ".sock", 6);
  ff_status status = list_one(place, socket_name, listing, error);
  return status == FF_NOT_FOUND ? list_locks(place, lock_name, listing) : status;
}

static int by_gpu(const void *a, const void *b) {
  return strcmp(((const broker_listing *)a)->gpu, ((const broker_listing *)b)->gpu);
}

ff_status broker_list(broker_listing **listings, uint32_t *count, ff_error *error) {
  FF_VEC(broker_listing) found = {0};
  broker_place place;
  *listings = NULL;
  *count = 0;
  ff_status result = place_open(false, &place, error);
  if (result) return result == FF_NOT_FOUND ? FF_OK : result;
  int copy = fcntl(place.folder, F_DUPFD_CLOEXEC, 0);
  DIR *folder = copy >= 0 ? fdopendir(copy) : NULL;
  if (!folder) {
    result = ff_fail(error, FF_IO, "%s: %s", place.path, strerror(errno));
    if (copy >= 0) close(copy);
  }
  for (struct dirent *entry; folder && (entry = readdir(folder));) {
    broker_listing one;
    ff_error why;
    if (!ends_in(entry->d_name, ".lock")) continue;
    ff_status status = list_gpu(&place, entry->d_name, &one, &why);
    if (!status && one.holder_count) FF_PUSH(&found, one);
    else if (!status) free(one.holders);
    else if (status != FF_NOT_FOUND && !result) result = ff_fail(error, status, "%s", why.message);
  }
  if (folder) closedir(folder);
  place_close(&place);
  if (found.count) qsort(found.items, found.count, sizeof *found.items, by_gpu);
  *listings = found.items;
  *count = (uint32_t)found.count;
  return result;
}

void broker_list_free(broker_listing *listings, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) free(listings[i].holders);
  free(listings);
}
