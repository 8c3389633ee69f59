/* SPDX-License-Identifier: Apache-2.0 */
/* See peaks.h. An SM looks a line of 128 bytes up per cycle, which its 32 banks of 4 bytes serve. */
#include "machine/spec/peaks.h"

enum { SM_BYTES_PER_CYCLE = 128 };

static double smaller(double a, double b) { return a < b ? a : b; }

machine_peaks machine_peaks_of(const machine_spec *spec) {
  if (spec->stack_count) return (machine_peaks){0};
  double sms = (double)spec->sm_count, ghz = spec->clock_mhz / 1000;
  double l2 = (double)spec->l2_slices * spec->l2_bytes_per_cycle * ghz;
  if (spec->sm_read_bytes > 0) l2 = smaller(l2, sms * spec->sm_read_bytes * ghz);
  if (spec->cluster_sms && spec->cluster_read_bytes > 0) {
    uint64_t clusters = (spec->sm_count + spec->cluster_sms - 1) / spec->cluster_sms;
    l2 = smaller(l2, (double)clusters * spec->cluster_read_bytes * ghz);
  }
  return (machine_peaks){.warp_instructions = sms * (double)spec->schedulers * ghz,
                         .l1 = sms * SM_BYTES_PER_CYCLE * ghz,
                         .l2 = l2,
                         .dram = spec->dram_gbs * spec_read_share(spec),
                         .link = spec->link_h2d_gbs};
}
