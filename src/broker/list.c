/* SPDX-License-Identifier: Apache-2.0 */
/* Who has what, asked of every daemon whose socket lies in the folder. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "broker/link.h"

enum { ANSWER_MS = 5000, LISTED = 4096 };

typedef FF_VEC(broker_holder) holders;

static void add_holder(const wire_message *m, holders *list) {
  broker_holder h = {.waits = m->state == WIRE_WAITS, .orphan = m->state == WIRE_ORPHAN, .pid = (int32_t)m->pid, .colour_count = (uint32_t)m->colours,
                     .grant = {(uint32_t)m->sm_first, (uint32_t)m->sms, m->mask}, .since_s = (double)m->age_ms / 1000};
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
  if (m.kind != WIRE_GPU) return ff_fail(error, FF_IO, "the broker (process %d) cannot list its shares%s%s", link->pid, m.kind == WIRE_REFUSED ? ": " : "", m.text);
  *listing = (broker_listing){.sms = (uint32_t)m.gpu_sms, .colours = (uint32_t)m.gpu_colours, .free_sms = (uint32_t)m.sms,
                              .free_colours = (uint32_t)m.colours, .daemon_pid = link->pid};
  memcpy(listing->gpu, m.gpu, sizeof listing->gpu);
  while (!(status = link_receive(link, until, &m, error)) && m.kind == WIRE_HOLDER && list->count < LISTED) add_holder(&m, list);
  if (status) return status;
  return m.kind == WIRE_END ? FF_OK : ff_fail(error, FF_IO, "the broker (process %d) does not end its list", link->pid);
}

/* FF_NOT_FOUND: there is none, or none any more. */
static ff_status list_one(const broker_place *place, const char *socket_name, broker_listing *listing, ff_error *error) {
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

static bool is_socket_name(const char *name) {
  size_t length = strlen(name);
  return length > 5 && length < PLACE_NAME && !strcmp(name + length - 5, ".sock");
}

static int by_gpu(const void *a, const void *b) { return strcmp(((const broker_listing *)a)->gpu, ((const broker_listing *)b)->gpu); }

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
    if (!is_socket_name(entry->d_name)) continue;
    ff_status status = list_one(&place, entry->d_name, &one, &why);
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
