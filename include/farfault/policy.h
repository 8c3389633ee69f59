/* SPDX-License-Identifier: Apache-2.0 */
/* Paging policies: what to bring together with a faulting page (a prefetcher) and what to let go when GPU memory is
 * full (an evictor). farfault's own policies use this interface, and so does a plug-in: one C file, compiled to a
 * shared object, that exports
 *
 *     const ff_policy ff_policy_plugin = {.version = FF_POLICY_VERSION, .name = "mine", ...};
 *
 *     cc -shared -fPIC -I include mine.c -o mine.so         farfault run --memory replay --prefetch ./mine.so ./app
 *
 * A policy proposes, the pager decides: a proposal is cut to what exists, what is not there yet (or is there, for an
 * evictor) and what fits; a policy that proposes nonsense costs time, never correctness. Proposals are made in order of
 * importance. All calls come from one thread per simulation, in order of simulated time; a policy keeps what it needs
 * to remember in its state, and must give the same answers to the same calls (randomness: view->random).
 *
 * Addresses are the GPU's, sizes are bytes, times picoseconds since the program began. A page is 4 KiB, a group 64 KiB,
 * a block 2 MiB, all aligned to their size. */
#ifndef FARFAULT_POLICY_H
#define FARFAULT_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FF_POLICY_VERSION \
  3u /* a plug-in made for version 2, which has all but what says "since version 3", still works */

#define FF_PAGE_BYTES UINT64_C(4096)
#define FF_GROUP_BYTES UINT64_C(65536)
#define FF_BLOCK_BYTES UINT64_C(2097152)
#define FF_BLOCK_PAGES 512u
#define FF_REACHED_BYTES UINT64_C(1024)
#define FF_NEVER UINT64_MAX

typedef struct ff_fault { /* a far-fault that is being served */
  uint64_t address;       /* of the first byte that was asked for */
  uint64_t time;          /* when the fault was seen */
  uint32_t sm;
} ff_fault;

typedef struct ff_pages { /* a bit per page of a block: page i is bit i % 64 of word[i / 64] */
  uint64_t word[FF_BLOCK_PAGES / 64];
} ff_pages;

typedef struct ff_block { /* a block as the pager sees it now */
  uint64_t address;
  ff_pages mapped; /* belongs to an allocation that can move */
  ff_pages valid;  /* is in GPU memory, or on its way there */
  /* part of valid: is on its way, or came for a fault whose access is yet to be made; cannot be evicted (`settled`
   * tells when it can be) */
  ff_pages moving;
  ff_pages dirty; /* in GPU memory and newer than the host's copy */
} ff_block;

typedef struct ff_allocation {
  uint64_t address, bytes;
  uint32_t number; /* from 1, in the order in which the program made them */
} ff_allocation;

/* What a policy may ask. Valid during a call. */
typedef struct ff_view ff_view;
struct ff_view {
  uint64_t now;
  uint64_t unit_bytes; /* what a far-fault moves at least */
  uint64_t capacity;   /* of GPU memory that allocations can have */
  uint64_t (*free_bytes)(const ff_view *view);
  void (*block)(const ff_view *view, uint64_t address, ff_block *block);                /* the block around `address` */
  bool (*allocation)(const ff_view *view, uint64_t address, ff_allocation *allocation); /* false: there is none */
  /* The first allocation that begins at `address` or above; false: there is none. */
  bool (*next_allocation)(const ff_view *view, uint64_t address, ff_allocation *allocation);
  /* by the GPU, within the range; 0: never */
  uint64_t (*last_use)(const ff_view *view, uint64_t address, uint64_t bytes);
  /* Of the program's future; FF_NEVER: no more, or the policy does not say needs_future. When the range is used next,
   * as a position in the program's order of thread blocks (of what runs now: where the program has come to; else it
   * stays the answer until the program has come there, then a later one is), and the `index`-th page, from 0, in the
   * order in which the program's pages are touched first. */
  uint64_t (*next_use)(const ff_view *view, uint64_t address, uint64_t bytes);
  uint64_t (*first_touch)(const ff_view *view, uint64_t index);
  /* 64 bits; the same sequence in every run */
  uint64_t (*random)(ff_view *view);
  /* Proposes to move (in `faulted`, `idle`: in; in `evict`: out; in `clean`: to be copied out) what the range holds.
   * Only noted: it is carried out when the policy has returned, and the view stays as it was until then. Ignored in
   * `arrived` and `left`. */
  void (*propose)(ff_view *view, uint64_t address, uint64_t bytes);
  /* Since version 3. The positions of the thread blocks that run now lie between these two; without needs_future 0.
   * And: as next_use, but what runs now is told apart: the answer stays right until the first of these positions is
   * beyond it. */
  uint64_t running_first, running_last;
  uint64_t (*next_position)(const ff_view *view, uint64_t address, uint64_t bytes);
  uint64_t queued; /* since version 3; in `reached`: bytes that the link to the GPU has still to carry; else 0 */
  /* Since version 3, what the machine says of the link to the GPU: the time that a group takes over it alone, its
   * latency included, and the bytes that it carries in the time of a far-fault's service. 0: nothing takes time. */
  uint64_t group_time, service_bytes;
  /* since version 3; in `left`: the host has touched these pages of managed memory, and has them back */
  bool by_host;
  /* Since version 3. Of what is absent of the range, the bytes that need no transfer to come: not written to since they
   * were allocated. */
  uint64_t (*blank_bytes)(const ff_view *view, uint64_t address, uint64_t bytes);
};

typedef struct ff_policy {
  uint32_t version; /* FF_POLICY_VERSION */
  const char *name;
  const char *summary; /* one line */
  /* asks next_use or first_touch: its simulation begins when the program has been recorded to its end */
  bool needs_future;
  /* `argument`: the text behind the colon of "name:argument", or NULL. Returns the state. To refuse the argument it
   * returns NULL with *problem set to a text that outlives the call; without a state to keep, NULL with *problem as it
   * was. May be NULL itself: no state, no argument. Several simulations run at once, each with a state of its own. */
  void *(*create)(const char *argument, const char **problem);
  void (*destroy)(void *state); /* what create returned, unless that was NULL */

  /* As a prefetcher. `faults` are served together, in order of service; they move whatever is proposed. One fault per
   * call unless the faults are served in batches, then all those of one block. */
  void (*faulted)(void *state, ff_view *view, const ff_fault *faults, size_t count);
  /* The link to the GPU has nothing to do: propose a piece, or nothing. */
  void (*idle)(void *state, ff_view *view);

  /* As an evictor: at least `bytes` must go (propose more than one range if need be). All that is proposed goes, even
   * if it is more than that: whole blocks, neighbours. If too little is proposed the pager takes what it comes upon. */
  void (*evict)(void *state, ff_view *view, uint64_t bytes);
  /* Of an evictor, optional: the link to the host has nothing to do while kernels run. Propose what is dirty and not
   * soon written again: the first run of dirty pages in what is proposed, 64 KiB of it at most, is written back and
   * stays. */
  void (*clean)(void *state, ff_view *view);

  /* What happened, for both; the view shows it already. Ranges lie within one block. A page arrives when it is in GPU
   * memory (moved there, or written by the GPU), and leaves when it is evicted, taken back by the host or freed. */
  void (*arrived)(void *state, ff_view *view, uint64_t address, uint64_t bytes);
  void (*left)(void *state, ff_view *view, uint64_t address, uint64_t bytes);

  /* True: if it is chosen as prefetcher and as evictor, with the same text, one state serves both, and what happened is
   * told once. (Two policies count as one here if they have the same `create`.) */
  bool shares_state;

  /* Since version 3. Pages that came earlier and were moving are so no longer: they can be evicted from now on. (What
   * arrives and can be evicted at once is told as `arrived` only; where memory is handed out in whole blocks, a block
   * settles as one.) An evictor that comes upon a unit of which nothing can go may put it aside until this, or an
   * arrival, names a page of it: so that it does not come upon the same unit again and again, and chooses in a time
   * that does not grow with memory. */
  void (*settled)(void *state, ff_view *view, uint64_t address, uint64_t bytes);

  /* Since version 3, of a prefetcher, optional. Under a manager that is told what launches declare (manager.h:
   * segments) and lets the prefetcher bring it: a launch is about to begin, whose arguments point into these
   * allocations, in the order of its arguments. Of what is proposed only that comes which needs no transfer, while
   * there is room: pages that were not written to since they were allocated. */
  void (*launching)(void *state, ff_view *view, const ff_allocation *declared, size_t count);
  /* Since version 3, of a prefetcher, optional. Under a manager with which the GPU reaches what is not in its memory
   * over the link (manager.h: reaches), as its access counters tell a driver: since a page of this group last came the
   * GPU has read and written so many bytes of it so. Called with each further FF_REACHED_BYTES. What is proposed comes
   * as with a far-fault: after its service, even if others must go. */
  void (*reached)(void *state, ff_view *view, uint64_t group, uint64_t bytes);
  /* Since version 3, of a prefetcher, optional: the program's own load or store of managed memory has faulted on the
   * page around `address`, which the host does not have. `there`: the pages of its block that the host has. What is
   * proposed goes to the host with the page, by the same fault, as far as it is in GPU memory and can go. */
  void (*host_faulted)(void *state, ff_view *view, uint64_t address, const ff_pages *there);
} ff_policy;

/* What a plug-in defines. */
#ifdef __GNUC__
__attribute__((visibility("default")))
#endif
extern const ff_policy ff_policy_plugin;

#ifdef __cplusplus
}
#endif
#endif
