/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault sim --offload A,B --map C,D`: every manager with every way of offloading and every map.
 *
 * A choice of which there is only one stays a choice for all managers; of several, each simulation
 * has its own behind its manager's name ("copy+offload=controlled+map=learned"), as if the user had written it there;
 * what stands there already stays. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/running/run.h"
#include "session/session.h"

typedef FF_VEC(char *) words;

static void split(const char *text, words *out) {
  char *copy = ff_strdup(text), *rest = NULL;
  for (char *word = strtok_r(copy, ", ", &rest); word; word = strtok_r(NULL, ", ", &rest))
    FF_PUSH(out, ff_strdup(word));
  free(copy);
}

static void words_free(words *w) {
  for (size_t i = 0; i < w->count; i++) free(w->items[i]);
  free(w->items);
}

/* Is "+NAME=" behind the manager? */
static bool has_own(const char *manager, const char *name) {
  for (const char *at = manager; (at = strchr(at, '+')); at++)
    if (!strncmp(at + 1, name, strlen(name)) && at[1 + strlen(name)] == '=') return true;
  return false;
}

/* The managers with each value of the list behind them. */
static void multiply(const words *bases, const char *name, const words *values, words *out) {
  for (size_t i = 0; i < bases->count; i++) {
    bool own = has_own(bases->items[i], name);
    for (size_t k = 0; k < (own ? 1 : values->count); k++) {
      ff_text whole = {0};
      ff_text_add(&whole, "%s", bases->items[i]);
      if (!own) ff_text_add(&whole, "+%s=%s", name, values->items[k]);
      FF_PUSH(out, whole.chars);
    }
  }
}

static ff_status join(const words *all, char *to, size_t size, ff_error *error) {
  ff_text whole = {0};
  ff_status status = FF_OK;
  for (size_t i = 0; i < all->count; i++) ff_text_add(&whole, "%s%s", i ? "," : "", all->items[i]);
  if (all->count > SESSION_MANAGER_LIMIT)
    status =
        ff_fail(error, FF_LIMIT, "these are %zu simulations (managers x --offload x --map): at most %d run at once",
                all->count, SESSION_MANAGER_LIMIT);
  else if (whole.length >= size)
    status = ff_fail(error, FF_LIMIT, "the managers with all their --offload and --map are too long a text");
  else strcpy(to, whole.chars ? whole.chars : "");
  free(whole.chars);
  return status;
}

static ff_status multiply_by(cli_setup *setup, sim_choice_id id, ff_error *error) {
  char *text = setup->choices.text[id];
  const char *name = sim_choice_infos[id].name;
  if (!strchr(text, ',')) return FF_OK;
  words bases = {0}, values = {0}, out = {0};
  split(setup->managers, &bases);
  split(text, &values);
  multiply(&bases, name, &values, &out);
  ff_status status = values.count ? join(&out, setup->managers, sizeof setup->managers, error)
                                  : ff_fail(error, FF_INVALID, "--%s: '%.40s' names none", name, text);
  text[0] = '\0';
  words_free(&bases);
  words_free(&values);
  words_free(&out);
  return status;
}

ff_status cli_combine(cli_setup *setup, ff_error *error) {
  const char *offload = setup->choices.text[SIM_CHOICE_OFFLOAD], *map = setup->choices.text[SIM_CHOICE_MAP];
  if (!*offload && !*map) return FF_OK;
  if (!setup->managers[0]) strcpy(setup->managers, "copy");
  ff_status status = multiply_by(setup, SIM_CHOICE_OFFLOAD, error);
  return status ? status : multiply_by(setup, SIM_CHOICE_MAP, error);
}
