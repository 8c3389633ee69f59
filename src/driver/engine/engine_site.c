/* SPDX-License-Identifier: Apache-2.0 */
/* Where in the program a call was made (engine_site.h).
 *
 * Unwinding a stack takes some 0.2 us a frame, too much for each launch. A function's frame has one size at each of its
 * calls, so that a return address tells where the next one lies. Paths of return addresses that were unwound once are
 * kept as a tree: to find a known site again, one word is read and looked up for each frame.
 *
 *   root -> return address in cudaLaunchKernel -> in the kernel's stub -> in main: "saxpy.cu:41"
 *
 * What was unwound goes into the tree only if each return address lies where its frame says, and less than FRAME_MAX
 * from the one before: what is read is then within the stack. A frame of another size (alloca) than it had makes its
 * path one that is always unwound. An object that is unloaded, with another one loaded in its place, keeps its
 * sites. */
#define _GNU_SOURCE /* dladdr */
#include "driver/engine/engine_site.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

#include "base/memory.h"
#include "driver/engine/engine_site_place.h"

enum { FRAMES = 32, FRAME_MAX = 4096, HASH_FIRST = 256 };

typedef struct site_node {
  uintptr_t address; /* a return address; 0: the root */
  uint32_t parent;   /* in nodes */
  uint32_t distance; /* bytes from its own slot on the stack to that of its children */
  bool varies;       /* that distance has not always been the same */
  const char *site;  /* a leaf's; NULL: the frame is passed */
} site_node;

typedef struct site_frame { /* of a stack, innermost first */
  uintptr_t address;
  const uintptr_t *slot; /* where it was read */
} site_frame;

typedef struct site_stack {
  site_frame frames[FRAMES];
  int count;
} site_stack;

static struct {
  pthread_mutex_t lock;
  FF_VEC(site_node) nodes; /* the root is the first */
  uint32_t *hash;          /* numbers of nodes by parent and address; 0: free */
  size_t hash_size;        /* a power of two, at least twice the nodes */
} tree = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t hash_of(uint32_t parent, uintptr_t address) {
  uint64_t mixed = (address ^ (uint64_t)parent << 48) * UINT64_C(0x9e3779b97f4a7c15);
  return (size_t)(mixed >> 32) & (tree.hash_size - 1);
}

/* Where the node is in the hash, or could be. */
static uint32_t *place_of(uint32_t parent, uintptr_t address) {
  size_t at = hash_of(parent, address);
  while (tree.hash[at]) {
    const site_node *node = &tree.nodes.items[tree.hash[at]];
    if (node->parent == parent && node->address == address) break;
    at = (at + 1) & (tree.hash_size - 1);
  }
  return &tree.hash[at];
}

static void grow(void) {
  free(tree.hash);
  tree.hash_size = tree.hash_size ? 2 * tree.hash_size : HASH_FIRST;
  tree.hash = ff_alloc(tree.hash_size * sizeof *tree.hash);
  for (uint32_t n = 1; n < tree.nodes.count; n++)
    *place_of(tree.nodes.items[n].parent, tree.nodes.items[n].address) = n;
}

static uint32_t add_node(uint32_t parent, uintptr_t address) {
  uint32_t *place = place_of(parent, address), number = (uint32_t)tree.nodes.count;
  if (*place) return *place;
  *place = number;
  FF_PUSH(&tree.nodes, ((site_node){.address = address, .parent = parent}));
  if (2 * tree.nodes.count > tree.hash_size) grow();
  return number;
}

/* Follows the tree from the slot of the innermost return address; NULL: the path is not known. */
__attribute__((no_sanitize("address"))) static const char *follow(const uintptr_t *slot) {
  uint32_t at = 0;
  for (;;) {
    uint32_t next = *place_of(at, *(const volatile uintptr_t *)slot);
    if (!next) return NULL;
    const site_node *node = &tree.nodes.items[next];
    if (node->site) return node->site;
    if (node->varies || !node->distance) return NULL;
    slot = (const uintptr_t *)((uintptr_t)slot + node->distance);
    at = next;
  }
}

/* ---- unwinding ---- */

static _Unwind_Reason_Code add_frame(struct _Unwind_Context *context, void *to) {
  site_stack *stack = to;
  uintptr_t address = _Unwind_GetIP(context);
  if (!address || stack->count == FRAMES) return _URC_END_OF_STACK;
  stack->frames[stack->count++] =
      (site_frame){address, (const uintptr_t *)_Unwind_GetCFA(context) - 1}; /* x86-64: right below the frame */
  return _URC_NO_REASON;
}

/* Whether the return address lies there, and how far behind the one before. */
static bool is_regular(const site_frame *before, const site_frame *frame) {
  uintptr_t from = (uintptr_t)before->slot, to = (uintptr_t)frame->slot;
  return to > from && to - from <= FRAME_MAX && *frame->slot == frame->address;
}

/* The path from the frame `first` to the frame `last`, whose site it is. */
static void keep_path(const site_stack *stack, int first, int last, const char *site) {
  if (*stack->frames[first].slot != stack->frames[first].address) return;
  for (int n = first + 1; n <= last; n++)
    if (!is_regular(&stack->frames[n - 1], &stack->frames[n])) return;
  uint32_t at = 0;
  for (int n = first; n <= last; n++) {
    at = add_node(at, stack->frames[n].address);
    site_node *node = &tree.nodes.items[at];
    if (n == last) {
      node->site = site;
      break;
    }
    uint32_t distance = (uint32_t)((uintptr_t)stack->frames[n + 1].slot - (uintptr_t)stack->frames[n].slot);
    node->varies = node->varies || (node->distance && node->distance != distance);
    node->distance = distance;
  }
}

static const char *unwind(const uintptr_t *slot, const char *kernel) {
  site_stack stack = {.count = 0};
  _Unwind_Backtrace(add_frame, &stack);
  int first = 0;
  while (first < stack.count && stack.frames[first].slot != slot) first++;
  for (int n = first; n < stack.count; n++) {
    const char *site = site_place(stack.frames[n].address - 1, kernel);
    if (!site) continue;
    keep_path(&stack, first, n, site);
    return site;
  }
  return "";
}

__attribute__((noinline)) const char *engine_site(const char *kernel) {
  const uintptr_t *slot = (const uintptr_t *)__builtin_frame_address(0) + 1;
  pthread_mutex_lock(&tree.lock);
  if (!tree.nodes.count) {
    FF_PUSH(&tree.nodes, (site_node){.address = 0});
    grow();
  }
  const char *site = follow(slot);
  if (!site) site = unwind(slot, kernel);
  pthread_mutex_unlock(&tree.lock);
  return site;
}
