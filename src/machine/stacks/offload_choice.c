/* SPDX-License-Identifier: Apache-2.0 */
/* How near-data processing is chosen, as text. */
#include "machine/stacks/offload_choice.h"

#include <string.h>

#include "base/text.h"

static const char *const offload_names[] = {"none", "always", "controlled", "ideal", "paper", NULL};

const char *sim_offload_name(sim_offload offload) { return offload_names[offload]; }

ff_status sim_offload_read(const char *text, sim_offload *offload, ff_error *error) {
  for (int i = 0; offload_names[i]; i++)
    if (!strcmp(text, offload_names[i])) {
      *offload = (sim_offload)i;
      return FF_OK;
    }
  return ff_fail(error, FF_INVALID, "'%.40s' is no way of offloading: there are none, always, controlled, ideal, paper",
                 text);
}

enum { WHOLE = 1000000000 };
#define LEARN_SHARE 0.001 /* Hsieh et al., section 3.2.2 */

static ff_status read_share(const char *text, double *share, ff_error *error) {
  uint64_t parts;
  ff_status status = ff_parse_bytes(text, WHOLE, &parts, error);
  if (!status && (!strchr(text, '%') || !parts || parts > WHOLE))
    status = ff_fail(error, FF_INVALID, "'%.40s' is no share of the instances, as 0.5%%", text);
  if (!status) *share = (double)parts / WHOLE;
  return status;
}

ff_status sim_map_read(const char *text, uint64_t stacks, sim_map_choice *choice, ff_error *error) {
  static const struct {
    const char *name;
    sim_map_kind kind;
    bool linear;
  } kinds[] = {{"learned", SIM_MAP_LEARNED, false},
               {"learned-linear", SIM_MAP_LEARNED, true},
               {"oracle", SIM_MAP_ORACLE, false},
               {"oracle-linear", SIM_MAP_ORACLE, true}};
  uint32_t bits = stacks ? 63 - (uint32_t)__builtin_clzll(stacks) : 0;
  size_t length = strcspn(text, ":");
  *choice = (sim_map_choice){.share = LEARN_SHARE, .fixed = stack_map_baseline(bits)};
  if (!stacks) return ff_fail(error, FF_INVALID, "the machine has no memory stacks to map to");
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (strlen(kinds[i].name) != length || strncmp(text, kinds[i].name, length)) continue;
    choice->kind = kinds[i].kind;
    choice->linear = kinds[i].linear;
    if (!text[length]) return FF_OK;
    if (choice->kind == SIM_MAP_ORACLE)
      return ff_fail(error, FF_INVALID, "'%.40s': the oracle knows all instances", text);
    return read_share(text + length + 1, &choice->share, error);
  }
  ff_status status = stack_map_parse(text, bits, &choice->fixed, error);
  if (status)
    return ff_fail(
        error, FF_INVALID,
        "'%.40s' is no map: there are baseline, neighbouring bits of the address (12:13), learned[:SHARE], learned-linear[:SHARE], oracle, oracle-linear",
        text);
  return FF_OK;
}

uint32_t sim_highest_pair(uint64_t sms, uint64_t threads, uint64_t stacks) {
  uint64_t run = sms * (threads / 32) * TRACE_LINE_BYTES / (2 * (stacks ? stacks : 1));
  return run >> STACK_MAP_LOWEST ? 63 - (uint32_t)__builtin_clzll(run) : STACK_MAP_LOWEST;
}

/* ---- do the choices fit the machine and what is known of the program? ---- */

static const sim_candidate *find_nothing(void *context, const trace_launch *launch, uint32_t pc) { return NULL; }
static const sim_range_map no_ranges[1];
const sim_offloading sim_offloading_nothing = {.find = find_nothing, .oracle = no_ranges, .oracle_linear = no_ranges};

#define RECORDED "recorded programs: `farfault record -o app.fft PROGRAM`, then `farfault sim app.fft`"

ff_status sim_offload_check(const char *machine, uint64_t stacks, sim_offload offload, const char *map,
                            const sim_offloading *offloading, ff_error *error) {
  sim_map_choice choice = {0};
  if (!stacks && (offload || map))
    return ff_fail(error, FF_INVALID, "%s has no memory stacks to %s: `farfault sim --machine tom` has", machine,
                   offload ? "offload to" : "map to");
  ff_status status = map ? sim_map_read(map, stacks, &choice, error) : FF_OK;
  if (status) return status;
  if (offload && !offloading) return ff_fail(error, FF_UNSUPPORTED, "offloading is simulated of " RECORDED);
  if (choice.kind != SIM_MAP_FIXED && !offloading)
    return ff_fail(error, FF_UNSUPPORTED, "a map is found for " RECORDED);
  if (choice.kind == SIM_MAP_ORACLE && !(choice.linear ? offloading->oracle_linear : offloading->oracle))
    return ff_fail(error, FF_UNSUPPORTED, "the oracle's map was not made");
  return FF_OK;
}
