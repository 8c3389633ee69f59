/* SPDX-License-Identifier: Apache-2.0 */
/* The one list of prefetchers and evictors, and the loading of plug-ins: see policies.h.
 *
 * A text with a slash in it, or whose part before the colon ends in ".so", is the path of a plug-in; all else is a
 * name. A plug-in is looked at before it is trusted: the symbol must be data, as large as this version's ff_policy. */
#define _GNU_SOURCE /* dladdr1 */
#include "policy/policies.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/text.h"

static const policy_entry prefetchers[] = {
#define PREFETCHER(name, argument) {&policy_prefetch_##name, argument},
#define EVICTOR(name, argument)
#include "policy/policies.def"
#undef PREFETCHER
#undef EVICTOR
    {0}};

static const policy_entry evictors[] = {
#define PREFETCHER(name, argument)
#define EVICTOR(name, argument) {&policy_evict_##name, argument},
#include "policy/policies.def"
#undef PREFETCHER
#undef EVICTOR
    {0}};

static const char *const use_names[] = {[POLICY_PREFETCH] = "prefetcher", [POLICY_EVICT] = "evictor"};

const policy_entry *policy_list(policy_use use) { return use == POLICY_EVICT ? evictors : prefetchers; }

/* ---- built-in ones ---- */

static ff_status unknown(policy_use use, const char *name, ff_error *error) {
  FF_VEC(const char *) names = {0};
  ff_text all = {0};
  for (const policy_entry *e = policy_list(use); e->policy; e++) {
    FF_PUSH(&names, e->policy->name);
    ff_text_add(&all, "%s%s", all.length ? ", " : "", e->policy->name);
  }
  FF_PUSH(&names, NULL);
  const char *near = ff_closest(name, names.items);
  ff_status status =
      ff_fail(error, FF_NOT_FOUND, "there is no %s '%s'%s%s%s; there are %s, and plug-ins (a path to a .so file)",
              use_names[use], name, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", all.chars);
  free(names.items);
  free(all.chars);
  return status;
}

static const ff_policy *find(policy_use use, const char *name) {
  for (const policy_entry *e = policy_list(use); e->policy; e++)
    if (!strcmp(e->policy->name, name)) return e->policy;
  return NULL;
}

/* ---- plug-ins ---- */

static bool is_path(const char *name) {
  size_t length = strlen(name);
  return strchr(name, '/') || (length >= 3 && !strcmp(name + length - 3, ".so"));
}

static bool is_regular(const char *path) {
  struct stat status;
  if (stat(path, &status)) return false;
  if (S_ISREG(status.st_mode)) return true;
  errno = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
  return false;
}

/* How many bytes the library's symbol table gives the symbol; 0: it is a function, or has no size. */
static size_t symbol_size(const void *symbol) {
  Dl_info info;
  const ElfW(Sym) *entry = NULL;
  if (!dladdr1(symbol, &info, (void **)&entry, RTLD_DL_SYMENT) || !entry) return 0;
  return ELF64_ST_TYPE(entry->st_info) == STT_OBJECT ? entry->st_size : 0;
}

/* Each version has the members of the one before, and more behind them. */
enum { OLDEST_VERSION = 2 };
static size_t size_of_version(uint32_t version) {
  return version == OLDEST_VERSION ? offsetof(ff_policy, settled) : sizeof(ff_policy);
}

static ff_status check_plugin(policy_use use, const char *path, const ff_policy *policy, ff_error *error) {
  if (!policy)
    return ff_fail(error, FF_INVALID,
                   "%s: it has no symbol ff_policy_plugin; a plug-in exports 'const ff_policy ff_policy_plugin'", path);
  size_t size = symbol_size(policy);
  if (size < sizeof policy->version)
    return ff_fail(error, FF_INVALID,
                   "%s: ff_policy_plugin is not a variable; a plug-in exports 'const ff_policy ff_policy_plugin'",
                   path);
  if (policy->version != FF_POLICY_VERSION && policy->version != OLDEST_VERSION)
    return ff_fail(error, FF_INVALID,
                   "%s: it is made for version %u of farfault/policy.h, this is version %u: compile it again", path,
                   (unsigned)policy->version, FF_POLICY_VERSION);
  if (size < size_of_version(policy->version))
    return ff_fail(error, FF_INVALID,
                   "%s: ff_policy_plugin has %zu bytes, a policy of version %u has %zu: compile it again", path, size,
                   (unsigned)policy->version, size_of_version(policy->version));
  if (!policy->name || !policy->summary)
    return ff_fail(error, FF_INVALID, "%s: its policy has no name or no summary", path);
  if (use == POLICY_PREFETCH && !policy->faulted && !policy->idle)
    return ff_fail(error, FF_INVALID, "%s: it cannot be a prefetcher: it has neither faulted nor idle", path);
  if (use == POLICY_EVICT && !policy->evict)
    return ff_fail(error, FF_INVALID, "%s: it cannot be an evictor: it has no evict", path);
  return FF_OK;
}

static ff_status load(policy_use use, const char *path, ff_policy_instance *instance, ff_error *error) {
  if (!is_regular(path)) return ff_fail(error, FF_NOT_FOUND, "%s %s: %s", use_names[use], path, strerror(errno));
  ff_text full = {0};
  /* without a slash it would be searched for elsewhere */
  ff_text_add(&full, "%s%s", strchr(path, '/') ? "" : "./", path);
  instance->library = dlopen(full.chars, RTLD_NOW | RTLD_LOCAL);
  free(full.chars);
  if (!instance->library)
    return ff_fail(error, FF_INVALID, "%s: not a shared object that can be loaded: %s", path, dlerror());
  const ff_policy *policy = instance->policy = dlsym(instance->library, "ff_policy_plugin");
  ff_status status = check_plugin(use, path, policy, error);
  if (status || policy->version == FF_POLICY_VERSION) return status;
  instance->older = ff_alloc(sizeof *instance->older); /* what it does not have is NULL */
  memcpy(instance->older, policy, size_of_version(policy->version));
  instance->policy = instance->older;
  return FF_OK;
}

/* ---- both ---- */

static ff_status begin(policy_use use, const char *name, const char *argument, ff_policy_instance *instance,
                       ff_error *error) {
  if (!instance->policy->create) {
    if (!argument) return FF_OK;
    return ff_fail(error, FF_INVALID, "%s %s takes no argument (':%s')", use_names[use], name, argument);
  }
  const char *problem = NULL;
  instance->state = instance->policy->create(argument, &problem);
  if (instance->state || !problem) return FF_OK;
  if (!argument) return ff_fail(error, FF_INVALID, "%s %s: %s", use_names[use], name, problem);
  return ff_fail(error, FF_INVALID, "%s %s: ':%s': %s", use_names[use], name, argument, problem);
}

ff_status policy_open(policy_use use, const char *text, ff_policy_instance *instance, ff_error *error) {
  const char *slash = strrchr(text, '/'), *colon = strchr(slash ? slash : text, ':');
  char *name = ff_strdup(text);
  if (colon) name[colon - text] = '\0';
  ff_policy_instance made = {0};
  ff_status status = FF_OK;
  if (is_path(name)) status = load(use, name, &made, error);
  else if (!(made.policy = find(use, name))) status = unknown(use, name, error);
  if (!status) status = begin(use, name, colon ? colon + 1 : NULL, &made, error);
  if (!status) made.text = ff_strdup(text);
  if (!status) *instance = made;
  else if (made.library) dlclose(made.library);
  if (status) free(made.older);
  free(name);
  return status;
}

/* The ":ARGUMENT" of "NAME:ARGUMENT"; "": there is none. */
static const char *argument_of(const ff_policy_instance *instance) {
  const char *colon = strrchr(instance->text, ':');
  return colon ? colon : "";
}

void policy_share(const ff_policy_instance *prefetch, ff_policy_instance *evict) {
  const ff_policy *p = prefetch->policy, *e = evict->policy;
  if (!p || !e || !p->shares_state || !e->shares_state || p->create != e->create) return;
  bool plugins = prefetch->library || evict->library;
  if (plugins && strcmp(prefetch->text, evict->text) != 0) return;
  if (!plugins && strcmp(argument_of(prefetch), argument_of(evict)) != 0) return;
  if (evict->state && !evict->borrowed && e->destroy) e->destroy(evict->state);
  evict->state = prefetch->state;
  evict->borrowed = true;
}

void policy_close(ff_policy_instance *instance) {
  free(instance->text);
  if (instance->borrowed) instance->state = NULL;
  if (instance->state && instance->policy->destroy) instance->policy->destroy(instance->state);
  if (instance->library) dlclose(instance->library);
  free(instance->older);
  *instance = (ff_policy_instance){0};
}
