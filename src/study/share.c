/* SPDX-License-Identifier: Apache-2.0 */
/* Programs side by side (share.h): the names of the isolations, the colours of a machine. */
#include "study/share.h"

#include "partition/colours.h"

static const char *const names[] = {"none", "mps", "sm", "sm+memory"};

const char *share_isolation_name(share_isolation isolation) { return isolation < sizeof names / sizeof names[0] ? names[isolation] : NULL; }

uint32_t share_colours(const machine_spec *spec, uint64_t page_bytes) {
  hash_spec wanted;
  address_hash *hash;
  colours *c;
  if (machine_spec_hash(spec, &wanted, NULL) || hash_create(&wanted, &hash, NULL)) return 1;
  uint32_t count = 1;
  if (!colours_create(hash, page_bytes, &c, NULL)) {
    count = colours_count(c);
    colours_free(c);
  }
  hash_free(hash);
  return count;
}

ff_status share_run(const share_scenario *scenario, share_outcome *results, ff_error *error) {
  return ff_fail(error, FF_UNSUPPORTED, "programs side by side cannot be simulated in this build");
}
