/* SPDX-License-Identifier: Apache-2.0 */
/* Lending (--borrow): what a partition has that runs nothing is used by the others, and given back when it has work
 * again.
 *
 *     SMs      blocks of others start on them, if their kernel's blocks have been short so far (LONGEST_BLOCK); they end there, none is stopped
 *     memory   after MIN_IDLE a part of a tenant's pages moves to frames of the idle tenant's colours, as many as can come back in half of
 *              TAKE_BACK: its loads and stores use the idle modules' bandwidth, too. A page that has moved keeps its
 *              own frame for the way back
 *
 * Moving takes the channels of both frames what reading and writing the page takes; the page may be used at once.
 *
 * A page that has moved has a frame of its own waiting. While a tenant's kernels run, nothing of others starts on its
 * SMs, and no page of others is in its colours. Both are asserted at the deep check level. */
#include "machine/tenants/idle_sharing.h"

#include <stdlib.h>

#include "base/check.h"

#define TAKE_BACK UINT64_C(100000000) /* 100 us: the longest that an owner should wait */
#define LONGEST_BLOCK (TAKE_BACK / 2)
#define MIN_IDLE (2 * TAKE_BACK)

/* ---- SMs ---- */

tenant *idle_sharing_owner(device *d, uint32_t sm) {
  for (uint32_t i = 0; i < d->tenant_count; i++)
    if (sm_set_has(&d->tenants[i].sms, sm)) return &d->tenants[i];
  return NULL;
}

static bool has_work(const tenant *t) { return t->dispatch && t->dispatch->kernels.running; }

bool idle_sharing_may(const lent *l, const sm *m, const kernel *k) {
  const tenant *owner = idle_sharing_owner(l->d, m->index);
  return !owner || (!has_work(owner) && k->done_blocks && k->longest_block <= LONGEST_BLOCK);
}

void idle_sharing_block_start(lent *l, const sm *m, ps time) {
  tenant *owner = idle_sharing_owner(l->d, m->index), *own = &l->d->tenants[l->tenant];
  if (!owner || owner == own) return;
  FF_CHECK_DEEP(!has_work(owner));
  owner->foreign_blocks++;
  if (!own->lent_blocks++ && !l->moved.count) own->borrowed_from = time;
}

static void borrowed_until(lent *l, ps time) {
  tenant *own = &l->d->tenants[l->tenant];
  if (!own->lent_blocks && !l->moved.count) own->borrowed += time - own->borrowed_from;
}

static void taken_back(tenant *owner, ps began, ps time) {
  if (time > began && owner->take_back < time - began) owner->take_back = time - began;
}

void idle_sharing_block_end(lent *l, const sm *m, ps time) {
  tenant *owner = idle_sharing_owner(l->d, m->index), *own = &l->d->tenants[l->tenant];
  if (!owner || owner == own) return;
  own->lent_blocks--;
  borrowed_until(l, time);
  if (--owner->foreign_blocks || !owner->wants_back) return;
  taken_back(owner, owner->wants_back, time);
  owner->wants_back = 0;
}

/* ---- memory ---- */

/* Reads one frame and writes the other, as far as their channels' buses go. Returns when it is over. */
static ps copy_frame(lent *l, uint64_t from, uint64_t to, ps time) {
  ps end = time;
  for (uint64_t at = 0; at < FRAME_BYTES; at += TRACE_LINE_BYTES) {
    ps read = channel_take(l->memory, from + at, time), written = channel_take(l->memory, to + at, read);
    if (end < written) end = written;
  }
  return end;
}

/* Its pages that lie in these colours go to their own frames. Returns when they are there. */
static ps bring_home(lent *l, uint64_t colours, ps time) {
  size_t kept = 0;
  ps end = time;
  for (size_t i = 0; i < l->moved.count; i++) {
    moved_page page = l->moved.items[i];
    uint64_t away = address_map_find(l->map, page.address);
    if (!(colours >> colours_of(frames_colours(l->d->frames), away) & 1)) {
      l->moved.items[kept++] = page;
      continue;
    }
    ps there = copy_frame(l, away, page.home, time);
    if (end < there) end = there;
    address_map_move(l->map, page.address, page.home);
    frames_give(l->d->frames, away, FRAME_BYTES);
  }
  bool all = l->moved.count && !kept;
  l->moved.count = kept;
  if (all) borrowed_until(l, time);
  return end;
}

void idle_sharing_forget(lent *l) { bring_home(l, UINT64_MAX, l->agenda->now); }

void idle_sharing_count(lent *l, uint32_t module, uint64_t bytes) {
  tenant *own = &l->d->tenants[l->tenant];
  if (l->moved.count && !(own->given.colours >> colours_of_module(frames_colours(l->d->frames), module) & 1))
    own->lent_bytes += bytes;
}

static double channel_gbs(const lent *l, uint64_t colours) {
  return l->spec->dram_gbs * spec_data_share(l->spec) * colours_modules_in(frames_colours(l->d->frames), colours) /
         (double)l->spec->channels;
}

/* The colours of tenants that have been idle for long enough. */
static uint64_t idle_colours(const lent *l, ps time) {
  uint64_t colours = 0;
  for (uint32_t i = 0; i < l->d->tenant_count; i++) {
    const tenant *t = &l->d->tenants[i];
    if (i != l->tenant && !has_work(t) && t->idle_since + MIN_IDLE <= time) colours |= t->given.colours;
  }
  return colours;
}

typedef struct page_list {
  FF_VEC(uint64_t) at_home;
  lent *own;
} page_list;

static void note_page(void *context, uint64_t address) {
  page_list *list = context;
  uint64_t own = list->own->d->tenants[list->own->tenant].given.colours;
  if (own >> colours_of(frames_colours(list->own->d->frames), address_map_find(list->own->map, address)) & 1)
    FF_PUSH(&list->at_home, address);
}

static bool move_away(lent *l, uint64_t address, uint64_t colours, ps time) {
  uint64_t home = address_map_find(l->map, address), away;
  ff_error none;
  if (frames_take(l->d->frames, colours, &away, &none)) return false;
  copy_frame(l, home, away, time);
  FF_PUSH(&l->moved, ((moved_page){address, home}));
  address_map_move(l->map, address, away);
  return true;
}

/* Spreads the tenant's pages evenly over its own and the lent modules, as far as they could be back in time. */
static void spread(lent *l, uint64_t colours, ps time) {
  tenant *t = &l->d->tenants[l->tenant];
  double own = channel_gbs(l, t->given.colours), lent = channel_gbs(l, colours), slower = own < lent ? own : lent;
  page_list pages = {.own = l};
  address_map_pages(l->map, note_page, &pages);
  uint64_t count = pages.at_home.count, limit = (uint64_t)(slower * (double)(TAKE_BACK / 2) / 1000 / FRAME_BYTES);
  uint64_t wanted = (uint64_t)((double)(count + l->moved.count) * lent / (own + lent));
  wanted = wanted > limit ? limit : wanted;
  wanted = wanted > l->moved.count ? wanted - l->moved.count : 0;
  if (wanted && !l->moved.count && !t->lent_blocks) t->borrowed_from = time;
  for (uint64_t i = 0; i < count; i++)
    if (i * wanted / count != (i + 1) * wanted / count && !move_away(l, pages.at_home.items[i], colours, time)) break;
  free(pages.at_home.items);
}

/* ---- kernels ---- */

void idle_sharing_kernel_begin(lent *l, ps time) {
  device *d = l->d;
  tenant *own = &d->tenants[l->tenant];
  if (own->foreign_blocks && !own->wants_back) own->wants_back = time;
  for (uint32_t i = 0; i < d->tenant_count; i++)
    if (i != l->tenant && d->tenants[i].lent && d->tenants[i].lent->moved.count)
      taken_back(own, time, bring_home(d->tenants[i].lent, own->given.colours, time));
  for (uint32_t i = 0; i < d->tenant_count; i++)
    if (d->tenants[i].lent) idle_sharing_check(d->tenants[i].lent);
}

void idle_sharing_check(const lent *l) {
  if (ff_check_level < 2) return;
  uint64_t own = l->d->tenants[l->tenant].given.colours, working = 0;
  for (uint32_t i = 0; i < l->d->tenant_count; i++)
    if (i != l->tenant && has_work(&l->d->tenants[i])) working |= l->d->tenants[i].given.colours;
  for (size_t i = 0; i < l->moved.count; i++) {
    const colours *colours = frames_colours(l->d->frames);
    uint64_t home = l->moved.items[i].home, away;
    FF_ASSERT(frames_is_taken(l->d->frames, home) && own >> colours_of(colours, home) & 1);
    FF_ASSERT(address_map_peek(l->map, l->moved.items[i].address, &away) && away != home);
    FF_ASSERT(!(working >> colours_of(colours, away) & 1));
  }
}

void idle_sharing_kernel_end(lent *l, ps time) {
  if (!l->kernels->running) l->d->tenants[l->tenant].idle_since = time;
}

/* While its kernels run, and memory is touched for the first time, again and again. */
void idle_sharing_look(lent *l, ps time) {
  if (l->d->isolation != SIM_ISOLATION_SM_MEMORY || time < l->look_again) return;
  l->look_again = time + MIN_IDLE;
  uint64_t colours = idle_colours(l, time);
  if (colours) spread(l, colours, time);
  idle_sharing_check(l);
}

void idle_sharing_free(lent *l) { free(l->moved.items); }
