/* SPDX-License-Identifier: Apache-2.0 */
/* The list of prefetchers and evictors (farfault/policy.h), and how one is chosen: "name", "name:argument", or a
 * plug-in, "./mine.so" or "./mine.so:argument". Help, messages and `list` expand from the lists here. */
#ifndef FF_POLICY_POLICIES_H
#define FF_POLICY_POLICIES_H

#include <stdbool.h>

#include "base/status.h"
#include "farfault/policy.h"

typedef enum policy_use { POLICY_PREFETCH, POLICY_EVICT } policy_use;

#define PREFETCHER(name, argument) extern const ff_policy policy_prefetch_##name;
#define EVICTOR(name, argument) extern const ff_policy policy_evict_##name;
#include "policy/policies.def"
#undef PREFETCHER
#undef EVICTOR

typedef struct policy_entry {
  const ff_policy *policy;
  const char *argument; /* how it is written behind the colon: "[:THRESHOLD]"; "": it takes none */
} policy_entry;

/* Of one use, in the order in which they are shown; ended by an entry without policy. */
const policy_entry *policy_list(policy_use use);

/* A policy at work. Made by policy_open, given back with policy_close; one per simulation. */
typedef struct ff_policy_instance {
  const ff_policy *policy; /* NULL: none */
  ff_policy *older;        /* of a plug-in made for an earlier version: as one of this version, `policy` */
  void *state;
  void *library; /* of a plug-in */
  char *text;    /* what it was chosen with */
  bool borrowed; /* the state is another instance's */
} ff_policy_instance;

/* Makes an instance of what `text` names. FF_NOT_FOUND: no such policy or file; FF_INVALID: its argument is refused, or
 * the plug-in does not fit (symbol, version, or it has not what the use needs). *instance is written only on
 * success. */
ff_status policy_open(policy_use use, const char *text, ff_policy_instance *instance, ff_error *error);
/* If both are the same policy, chosen with the same text, and it shares its state: the evictor gets the prefetcher's
 * state. */
void policy_share(const ff_policy_instance *prefetch, ff_policy_instance *evict);
void policy_close(ff_policy_instance *instance); /* also of a zeroed one */

#endif
