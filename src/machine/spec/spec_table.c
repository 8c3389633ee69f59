/* SPDX-License-Identifier: Apache-2.0 */
/* The table of a machine's parameters, and the checks of single values and of what must hold between them.
 *
 * The checks refuse a required value outside the limits of spec_limits.def, so that code which uses a machine_spec does
 * not guard against zero, infinity or absurd sizes. Numbers are read in the
 * C locale, whatever locale the process has set. */
#include "machine/spec/spec_table.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "partition/hash.h"

static const struct {
  double low, high;
} limits[SPEC_PARAM_COUNT] = {
#define X(name, low, high) [SPEC_##name] = {low, high},
#include "machine/spec/spec_limits.def"
#undef X
};

enum {
  LIMIT_COUNT = 0
#define X(name, low, high) +1
#include "machine/spec/spec_limits.def"
#undef X
};
_Static_assert((int)LIMIT_COUNT == (int)SPEC_PARAM_COUNT,
               "every parameter of params.def has a line in spec_limits.def");

#define TYPE_LETTER(type) (#type)[0]
const spec_param spec_params[SPEC_PARAM_COUNT] = {
#define X(group, name, type, unit, required, help) \
  [SPEC_##name] = {#group, #name, TYPE_LETTER(type), unit, required, offsetof(machine_spec, name)},
#include "machine/spec/params.def"
#undef X
};

const spec_param *spec_param_find(const char *name) {
  for (int i = 0; i < SPEC_PARAM_COUNT; i++)
    if (!strcmp(spec_params[i].name, name)) return &spec_params[i];
  return NULL;
}

void spec_param_limits(const spec_param *param, double *low, double *high) {
  *low = limits[param - spec_params].low;
  *high = limits[param - spec_params].high;
}

bool spec_group_exists(const char *group) {
  for (int i = 0; i < SPEC_PARAM_COUNT; i++)
    if (!strcmp(spec_params[i].group, group)) return true;
  return false;
}

static ff_status range_check(const spec_param *param, double value, ff_error *error) {
  double low = limits[param - spec_params].low, high = limits[param - spec_params].high;
  if (value >= low && value <= high) return FF_OK;
  return ff_fail(error, FF_INVALID, "%.16g is out of range: %.16g to %.16g%s%s", value, low, high,
                 param->unit[0] ? " " : "", param->unit);
}

/* strtod in the C locale, of plain decimal numbers only (no hexadecimal, infinity, NaN or spaces). */
static bool number_parse(const char *text, double *number) {
  if (!isdigit((unsigned char)text[0]) && text[0] != '.' && text[0] != '-') return false;
  if (strspn(text, "0123456789.eE+-") != strlen(text)) return false;
  locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0), old = uselocale(c);
  char *end;
  errno = 0;
  *number = strtod(text, &end);
  bool good = end != text && !*end && errno != ERANGE;
  uselocale(old);
  freelocale(c);
  return good;
}

static ff_status whole_number_parse(const spec_param *param, const char *text, uint64_t *number, ff_error *error) {
  if (!strcmp(param->unit, "bytes")) return ff_parse_bytes(text, 0, number, error);
  char *end;
  errno = 0;
  *number = strtoull(text, &end, 10);
  if (!isdigit((unsigned char)text[0]) || *end || errno)
    return ff_fail(error, FF_INVALID, "'%s' is not a whole number", text);
  return FF_OK;
}

static ff_status text_store(const char *text, machine_spec *spec, size_t offset, ff_error *error) {
  for (const char *c = text; *c; c++)
    if ((unsigned char)*c < 32 || *c == 127) return ff_fail(error, FF_INVALID, "has a control character in it");
  strcpy((char *)spec + offset, text); /* the length was checked against the limit, which is the array's */
  return FF_OK;
}

ff_status spec_value_parse(const spec_param *param, const char *text, machine_spec *spec, ff_error *error) {
  double number = 0;
  uint64_t whole = 0;
  ff_status status = FF_OK;
  switch (param->type) {
  case 'u':
    if ((status = whole_number_parse(param, text, &whole, error)) ||
        (status = range_check(param, (double)whole, error)))
      return status;
    memcpy((char *)spec + param->offset, &whole, sizeof whole);
    return FF_OK;
  case 'f':
    if (!number_parse(text, &number)) return ff_fail(error, FF_INVALID, "'%s' is not a number", text);
    if ((status = range_check(param, number, error))) return status;
    memcpy((char *)spec + param->offset, &number, sizeof number);
    return FF_OK;
  case 's':
    if ((double)strlen(text) > limits[param - spec_params].high || !text[0])
      return ff_fail(error, FF_INVALID, "is %zu bytes of text: 1 to %.0f are allowed", strlen(text),
                     limits[param - spec_params].high);
    return text_store(text, spec, param->offset, error);
  default: return ff_fail(error, FF_INVALID, "is a table, not a single value");
  }
}

ff_status spec_point_add(machine_size_table *table, const char *bytes, const char *gbs, ff_error *error) {
  machine_size_point point;
  if (table->count == sizeof table->points / sizeof table->points[0])
    return ff_fail(error, FF_INVALID, "more than %u points", table->count);
  ff_status status = ff_parse_bytes(bytes, 0, &point.bytes, error);
  if (status) return status;
  if (!number_parse(gbs, &point.gbs)) return ff_fail(error, FF_INVALID, "'%s' is not a number", gbs);
  if (!(point.gbs >= 0.001 && point.gbs <= 1e6))
    return ff_fail(error, FF_INVALID, "%.16g is out of range: 0.001 to 1000000 GB/s", point.gbs);
  if (point.bytes == 0) return ff_fail(error, FF_INVALID, "a transfer of 0 bytes has no bandwidth");
  if (table->count && point.bytes <= table->points[table->count - 1].bytes)
    return ff_fail(error, FF_INVALID, "sizes must grow from point to point");
  table->points[table->count++] = point;
  return FF_OK;
}

void spec_mask_bits(const spec_param *param, uint32_t *low, uint32_t *high) {
  bool gpus = param - spec_params == SPEC_roots;
  *low = gpus ? 0 : SPEC_LOWEST_BIT;
  *high = gpus ? MACHINE_GPUS - 1 : SPEC_HIGHEST_BIT;
}

static ff_status gpu_parse(const char *text, uint32_t *gpu, ff_error *error) {
  if (!isdigit((unsigned char)text[0]) || strlen(text) > 2 || (text[1] && !isdigit((unsigned char)text[1])) ||
      strtoul(text, NULL, 10) >= MACHINE_GPUS)
    return ff_fail(error, FF_INVALID, "'%s' is not a GPU: 0 to %d", text, MACHINE_GPUS - 1);
  *gpu = (uint32_t)strtoul(text, NULL, 10);
  return FF_OK;
}

ff_status spec_join_add(machine_join_table *table, const char *const texts[4], ff_error *error) {
  machine_join join;
  if (table->count == MACHINE_JOINS) return ff_fail(error, FF_INVALID, "more than %d joins", MACHINE_JOINS);
  ff_status status = gpu_parse(texts[0], &join.gpus[0], error);
  if (!status) status = gpu_parse(texts[1], &join.gpus[1], error);
  if (status) return status;
  if (!number_parse(texts[2], &join.gbs)) return ff_fail(error, FF_INVALID, "'%s' is not a number", texts[2]);
  if (!number_parse(texts[3], &join.latency_us)) return ff_fail(error, FF_INVALID, "'%s' is not a number", texts[3]);
  if (!(join.gbs >= 0.001 && join.gbs <= 1e6))
    return ff_fail(error, FF_INVALID, "%.16g is out of range: 0.001 to 1000000 GB/s", join.gbs);
  if (!(join.latency_us >= 0 && join.latency_us <= 1e6))
    return ff_fail(error, FF_INVALID, "%.16g is out of range: 0 to 1000000 us", join.latency_us);
  if (join.gpus[0] == join.gpus[1]) return ff_fail(error, FF_INVALID, "GPU %u is joined with itself", join.gpus[0]);
  for (uint64_t i = 0; i < table->count; i++) {
    const uint32_t *other = table->joins[i].gpus;
    if ((other[0] == join.gpus[0] && other[1] == join.gpus[1]) ||
        (other[0] == join.gpus[1] && other[1] == join.gpus[0]))
      return ff_fail(error, FF_INVALID, "GPUs %u and %u are joined twice: give one join what all their links carry",
                     join.gpus[0], join.gpus[1]);
  }
  table->joins[table->count++] = join;
  return FF_OK;
}

/* "3g.40gb": 3; 0: not such a name. */
static uint32_t compute_slices_of(const char *name) {
  char *end;
  unsigned long slices = isdigit((unsigned char)name[0]) ? strtoul(name, &end, 10) : 0;
  bool good = slices && slices <= 64 && end[0] == 'g' && end[1] == '.' && isdigit((unsigned char)end[2]);
  return good && strspn(name, "0123456789abcdefghijklmnopqrstuvwxyz.+") == strlen(name) ? (uint32_t)slices : 0;
}

static ff_status count_parse(const char *what, const char *text, uint32_t most, uint32_t *count, ff_error *error) {
  uint64_t number = 0;
  if (strspn(text, "0123456789") == strlen(text) && strlen(text) <= 6) number = strtoull(text, NULL, 10);
  if (!number || number > most)
    return ff_fail(error, FF_INVALID, "'%s' is not a number of %s: 1 to %u", text, what, most);
  *count = (uint32_t)number;
  return FF_OK;
}

ff_status spec_profile_add(machine_profile_table *table, const char *const texts[4], ff_error *error) {
  machine_profile profile = {.sms = 0};
  if (table->count == MACHINE_PROFILES) return ff_fail(error, FF_INVALID, "more than %d profiles", MACHINE_PROFILES);
  if (!compute_slices_of(texts[0]) || strlen(texts[0]) >= sizeof profile.name)
    return ff_fail(error, FF_INVALID, "'%s' is not a profile: they are like 3g.40gb", texts[0]);
  strcpy(profile.name, texts[0]);
  ff_status status = count_parse("SMs", texts[1], 4096, &profile.sms, error);
  if (!status) status = count_parse("memory slices", texts[2], 64, &profile.memory, error);
  if (!status) status = count_parse("L2 slices", texts[3], 64, &profile.l2, error);
  if (status) return status;
  for (uint64_t i = 0; i < table->count; i++)
    if (!strcmp(table->profiles[i].name, profile.name))
      return ff_fail(error, FF_INVALID, "profile %s is given twice", profile.name);
  table->profiles[table->count++] = profile;
  return FF_OK;
}

static ff_status tier_number(const char *text, double low, const char *unit, double *number, ff_error *error) {
  if (!number_parse(text, number)) return ff_fail(error, FF_INVALID, "'%s' is not a number", text);
  if (*number >= low && *number <= 1e6) return FF_OK;
  return ff_fail(error, FF_INVALID, "%.16g is out of range: %.16g to 1000000 %s", *number, low, unit);
}

static ff_status tier_name(const machine_tier_table *table, const char *text, char name[16], ff_error *error) {
  if (!text[0] || strlen(text) >= sizeof table->tiers[0].name ||
      strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(text))
    return ff_fail(error, FF_INVALID, "'%s' is not the name of a tier: up to 15 of a to z, 0 to 9 and -", text);
  if (!strcmp(text, "files")) return ff_fail(error, FF_INVALID, "'files' is what counts files: another name");
  bool twice = !strcmp(text, "host");
  for (uint64_t i = 0; i < table->count; i++) twice = twice || !strcmp(table->tiers[i].name, text);
  if (twice) return ff_fail(error, FF_INVALID, "there are two tiers '%s'", text);
  strcpy(name, text);
  return FF_OK;
}

static ff_status tier_unit(const char *text, uint64_t *bytes, ff_error *error) {
  ff_status status = ff_parse_bytes(text, 0, bytes, error);
  if (status || (*bytes >= 64 && *bytes <= UINT64_C(1) << 30 && !(*bytes & (*bytes - 1)))) return status;
  return ff_fail(error, FF_INVALID, "a unit of '%s' is not a power of two from 64 to 1G", text);
}

ff_status spec_tier_add(machine_tier_table *table, const char *const texts[MACHINE_TIER_FIELDS], int *wrong,
                        ff_error *error) {
  machine_tier tier = {.bytes = 0};
  *wrong = 0;
  if (table->count == MACHINE_TIERS) return ff_fail(error, FF_INVALID, "more than %d tiers", MACHINE_TIERS);
  ff_status status = tier_name(table, texts[0], tier.name, error);
  if (!status) status = ff_parse_bytes(texts[ *wrong = 1], 0, &tier.bytes, error);
  if (!status && tier.bytes < UINT64_C(2) << 20)
    status = ff_fail(error, FF_INVALID, "'%s' is less than 2 MiB, the largest page that moves", texts[1]);
  if (!status) status = tier_number(texts[ *wrong = 2], 0.001, "GB/s", &tier.read_gbs, error);
  if (!status) status = tier_number(texts[ *wrong = 3], 0.001, "GB/s", &tier.write_gbs, error);
  if (!status) status = tier_number(texts[ *wrong = 4], 0, "us", &tier.latency_us, error);
  if (!status) status = tier_unit(texts[ *wrong = 5], &tier.unit_bytes, error);
  if (status) return status;
  *wrong = 6;
  tier.mapped = !strcmp(texts[6], "mapped");
  if (!tier.mapped && strcmp(texts[6], "paged"))
    return ff_fail(error, FF_INVALID, "'%s' is neither 'paged' nor 'mapped'", texts[6]);
  table->tiers[table->count++] = tier;
  return FF_OK;
}

ff_status spec_mask_bit_add(const spec_param *param, machine_mask_table *table, const char *bit, bool first,
                            ff_error *error) {
  bool gpus = param - spec_params == SPEC_roots;
  uint32_t most = (uint32_t)limits[param - spec_params].high;
  if (first && table->count == most)
    return ff_fail(error, FF_INVALID, "more than %u %s%s", most, gpus ? "root" : "mask", most > 1 ? "s" : "");
  if (!isdigit((unsigned char)bit[0]) || strlen(bit) > 2 || (bit[1] && !isdigit((unsigned char)bit[1])))
    return ff_fail(error, FF_INVALID, "'%s' is not a %s", bit, gpus ? "GPU" : "bit of an address");
  uint32_t number = (uint32_t)strtoul(bit, NULL, 10), low, high;
  spec_mask_bits(param, &low, &high);
  if (number < low || number > high)
    return ff_fail(error, FF_INVALID, "%s %u is out of range: %u to %u", gpus ? "GPU" : "bit", number, low, high);
  table->count += first;
  uint64_t *mask = &table->masks[table->count - 1];
  if (*mask >> number & 1)
    return ff_fail(error, FF_INVALID, gpus ? "GPU %u is twice below one root" : "bit %u is twice in one mask", number);
  *mask |= UINT64_C(1) << number;
  return FF_OK;
}

static bool power_of_two(uint64_t value) { return value && !(value & (value - 1)); }
static int lowest_bit(uint64_t mask) { return mask ? __builtin_ctzll(mask) : 64; }

/* ---- address hashes ---- */

static ff_status find_kind(const machine_spec *spec, hash_kind *kind, ff_error *error) {
  const char *wanted = spec->address_map[0] ? spec->address_map : "interleave", *name;
  for (*kind = HASH_INTERLEAVE; (name = hash_kind_name(*kind)); ++*kind)
    if (!strcmp(name, wanted)) return FF_OK;
  return ff_fail(error, FF_INVALID, "address_map is interleave, xor, modulo or polynomial, not '%s'", wanted);
}

static hash_masks masks_of(const machine_mask_table *table) {
  hash_masks masks = {.count = table->count};
  memcpy(masks.masks, table->masks, sizeof masks.masks);
  return masks;
}
_Static_assert((int)HASH_MASKS == (int)MACHINE_MASKS, "a machine file's masks fit a hash");

ff_status machine_spec_hash(const machine_spec *spec, hash_spec *hash, ff_error *error) {
  hash_kind kind;
  ff_status status = find_kind(spec, &kind, error);
  if (status) return status;
  *hash = (hash_spec){.kind = kind,
                      .modules = masks_of(&spec->module_masks),
                      .banks = masks_of(&spec->bank_masks),
                      .sets = masks_of(&spec->set_masks),
                      .piece_bytes = spec->piece_bytes ? spec->piece_bytes : 256,
                      .polynomial = spec->polynomial,
                      .module_count = (uint32_t)spec->l2_slices,
                      .bank_count = (uint32_t)spec->banks,
                      .set_count = (uint32_t)(spec->l2_bytes / spec->l2_slices / (spec->l2_ways * 128)),
                      .row_bytes = spec->row_bytes};
  return FF_OK;
}

static ff_status check_hash(const machine_spec *spec, ff_error *error) {
  hash_spec wanted;
  address_hash *hash;
  ff_status status = machine_spec_hash(spec, &wanted, error);
  if (status || wanted.kind == HASH_INTERLEAVE) return status;
  if (spec->l2_slices != spec->channels)
    return ff_fail(error, FF_INVALID, "with address_map %s each channel has one slice: l2_slices must be channels",
                   spec->address_map);
  if ((status = hash_create(&wanted, &hash, error))) return status;
  hash_free(hash);
  return FF_OK;
}

/* ---- memory stacks ---- */

/* What a machine with stacks must also say. */
static const int of_stacks[] = {SPEC_stack_warps,  SPEC_stack_tx_gbs, SPEC_stack_rx_gbs,     SPEC_stack_cross_gbs,
                                SPEC_stack_vaults, SPEC_stack_gbs,    SPEC_stack_busy_cycles};

static ff_status check_stacks(const machine_spec *spec, ff_error *error) {
  if (!spec->stack_count) return FF_OK;
  if (!power_of_two(spec->stack_count))
    return ff_fail(error, FF_INVALID, "stack_count must be a power of two, not %" PRIu64, spec->stack_count);
  for (size_t i = 0; i < sizeof of_stacks / sizeof *of_stacks; i++) {
    const spec_param *param = &spec_params[of_stacks[i]];
    const char *value = (const char *)spec + param->offset;
    if (param->type == 'f' ? !(*(const double *)value > 0) : !*(const uint64_t *)value)
      return ff_fail(error, FF_INVALID, "a machine with stack_count must have %s, too", param->name);
  }
  if (spec->address_map[0] && strcmp(spec->address_map, "interleave"))
    return ff_fail(error, FF_INVALID, "a machine has either memory stacks or an address_map");
  if (spec->sm_count + spec->stack_count * spec->stack_sms + spec->stack_saved_sms > 4096)
    return ff_fail(error, FF_INVALID, "more than 4096 SMs with those of the stacks");
  return FF_OK;
}

/* ---- several GPUs ---- */

static ff_status check_links(const machine_spec *spec, ff_error *error) {
  const machine_join_table *joins = &spec->joins;
  uint64_t below = 0, all = (UINT64_C(1) << spec->gpus) - 1;
  bool any = joins->count || spec->switch_gbs > 0 || spec->roots.count;
  if (any && !spec->gpus) return ff_fail(error, FF_INVALID, "links without a number of GPUs: gpus is missing");
  for (uint64_t i = 0; i < joins->count; i++)
    for (int end = 0; end < 2; end++)
      if (joins->joins[i].gpus[end] >= spec->gpus)
        return ff_fail(error, FF_INVALID, "joins: there is no GPU %u: gpus is %u", joins->joins[i].gpus[end],
                       (unsigned)spec->gpus);
  for (uint32_t r = 0; r < spec->roots.count; r++) {
    uint64_t own = spec->roots.masks[r];
    if (own & ~all)
      return ff_fail(error, FF_INVALID, "roots: there is no GPU %d: gpus is %u", 63 - __builtin_clzll(own & ~all),
                     (unsigned)spec->gpus);
    if (own & below)
      return ff_fail(error, FF_INVALID, "roots: GPU %d is below two of them", __builtin_ctzll(own & below));
    below |= own;
  }
  if (spec->roots.count && below != all)
    return ff_fail(error, FF_INVALID, "roots: GPU %d is below none of them", __builtin_ctzll(all & ~below));
  if (!spec->roots.count && (spec->root_gbs > 0 || spec->root_peers))
    return ff_fail(error, FF_INVALID, "root_gbs and root_peers need roots");
  return FF_OK;
}

/* ---- MIG ---- */

/* That the profiles fit what else the machine says is looked at where one is taken (mig.c): a machine whose sm_count is
 * changed is a machine still. */
static ff_status check_mig(const machine_spec *spec, ff_error *error) {
  const machine_profile_table *table = &spec->mig_profiles;
  if (!table->count && !spec->mig_compute_slices && !spec->mig_memory_slices) return FF_OK;
  if (!table->count || !spec->mig_compute_slices || !spec->mig_memory_slices)
    return ff_fail(error, FF_INVALID, "mig_compute_slices, mig_memory_slices and mig_profiles go together");
  for (uint64_t i = 0; i < table->count; i++) {
    const machine_profile *p = &table->profiles[i];
    if (compute_slices_of(p->name) > spec->mig_compute_slices)
      return ff_fail(error, FF_INVALID, "mig_profiles: %s has %u compute slices of %u", p->name,
                     compute_slices_of(p->name), (unsigned)spec->mig_compute_slices);
    if (p->memory > spec->mig_memory_slices || p->l2 > spec->mig_memory_slices)
      return ff_fail(error, FF_INVALID, "mig_profiles: %s has %u memory and %u L2 slices of %u", p->name, p->memory,
                     p->l2, (unsigned)spec->mig_memory_slices);
  }
  return FF_OK;
}

static ff_status check_tiers(const machine_spec *spec, ff_error *error) {
  const machine_tier_table *above = &spec->above_host, *below = &spec->below_host;
  if (spec->host_memory_bytes && !below->count && !above->count)
    return ff_fail(error, FF_INVALID, "host_memory_bytes needs a tier for what does not fit: below_host");
  if (above->count && !spec->host_memory_bytes)
    return ff_fail(error, FF_INVALID, "above_host needs host_memory_bytes: how much goes on to the host's memory");
  if (above->count + below->count > MACHINE_TIERS)
    return ff_fail(error, FF_INVALID, "more than %d tiers in above_host and below_host", MACHINE_TIERS);
  for (uint64_t i = 0; i < above->count; i++)
    for (uint64_t j = 0; j < below->count; j++)
      if (!strcmp(above->tiers[i].name, below->tiers[j].name))
        return ff_fail(error, FF_INVALID, "there are two tiers '%s'", above->tiers[i].name);
  if (spec->host_memory_bytes && spec->host_memory_bytes < UINT64_C(2) << 20)
    return ff_fail(error, FF_INVALID, "host_memory_bytes must hold at least 2 MiB, the largest page that moves");
  return FF_OK;
}

ff_status spec_check(const machine_spec *spec, ff_error *error) {
  if (!power_of_two(spec->page_bytes)) return ff_fail(error, FF_INVALID, "page_bytes must be a power of two");
  if (!power_of_two(spec->row_bytes)) return ff_fail(error, FF_INVALID, "row_bytes must be a power of two");
  if (spec->l2_copies && spec->side_masks.count &&
      (lowest_bit(spec->side_masks.masks[0]) < 8 || lowest_bit(spec->side_masks.masks[0]) > 20))
    return ff_fail(error, FF_INVALID, "with l2_copies the lowest bit of side_masks must be 8 to 20");
  if (spec->bank_permutation && !power_of_two(spec->banks))
    return ff_fail(error, FF_INVALID, "banks must be a power of two where bank_permutation is 1");
  if (!power_of_two(spec->fault_page_bytes))
    return ff_fail(error, FF_INVALID, "fault_page_bytes must be a power of two");
  if (spec->piece_bytes && !power_of_two(spec->piece_bytes))
    return ff_fail(error, FF_INVALID, "piece_bytes must be a power of two");
  if (spec->l2_mshr_bytes && !power_of_two(spec->l2_mshr_bytes))
    return ff_fail(error, FF_INVALID, "l2_mshr_bytes must be a power of two");
  if (!spec->tlb_entries && !spec->l2_tlb_entries)
    return ff_fail(error, FF_INVALID, "there is no TLB: tlb_entries or l2_tlb_entries must be above 0");
  if (spec->l2_tlb_ways && spec->l2_tlb_entries % spec->l2_tlb_ways)
    return ff_fail(error, FF_INVALID, "l2_tlb_entries must be a multiple of l2_tlb_ways");
  if (spec->max_threads % 32)
    return ff_fail(error, FF_INVALID, "max_threads must be a multiple of the warp's 32 threads");
  if (spec->shared_per_block > spec->shared_per_block_optin)
    return ff_fail(error, FF_INVALID, "shared_per_block must not be above shared_per_block_optin");
  if (spec->shared_per_block_optin > spec->shared_bytes)
    return ff_fail(error, FF_INVALID, "shared_per_block_optin must not be above shared_bytes");
  if (spec->l1_bytes < spec->l1_ways * 128)
    return ff_fail(error, FF_INVALID, "l1_bytes must hold at least one line of 128 bytes per way (l1_ways)");
  if (spec->l2_bytes / spec->l2_slices < spec->l2_ways * 128)
    return ff_fail(
        error, FF_INVALID,
        "a slice of the L2 (l2_bytes / l2_slices) must hold at least one line of 128 bytes per way (l2_ways)");
  if (spec_copy_share(spec) >= 2 * spec_read_share(spec))
    return ff_fail(error, FF_INVALID, "dram_copy_share must be below twice dram_read_share: writes take time, too");
  if (spec->memory_bytes < spec->fault_page_bytes)
    return ff_fail(error, FF_INVALID, "memory_bytes must hold at least one page of fault_page_bytes");
  ff_status status = check_stacks(spec, error);
  if (!status) status = check_links(spec, error);
  if (!status) status = check_mig(spec, error);
  if (!status) status = check_tiers(spec, error);
  return status ? status : check_hash(spec, error);
}
