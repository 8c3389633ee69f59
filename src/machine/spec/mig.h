/* SPDX-License-Identifier: Apache-2.0 */
/* MIG (Multi-Instance GPU): which profiles fit a GPU together, and the machine that a slice of it is.
 *
 *     profiles fit together if   sum of compute slices <= mig_compute_slices
 *                                sum of memory slices  <= mig_memory_slices, and as much of the L2
 *                                sum of SMs            <= sm_count
 *
 * With the seven compute and eight memory slices of NVIDIA's GPUs these sums allow what the placements in the MIG user
 * guide do: no fourth 2g, no eighth 1g, no 1g beside two 3g. A slice's number is its profile's place in
 * mig_profiles. */
#ifndef FF_MACHINE_MIG_H
#define FF_MACHINE_MIG_H

#include "machine/spec/spec.h"

/* Compute slices of a profile. */
uint32_t mig_compute(const machine_profile *profile);
/* Reads "3g.40gb,3g": a profile is named in full, or by what is before its point (the first of the file is meant).
 * out[0 .. *count - 1]; at most `limit`. FF_UNSUPPORTED: the machine has no MIG; FF_NOT_FOUND, FF_PARSE, FF_LIMIT.
 * Messages name `option`, and show the place. */
ff_status mig_read(const machine_spec *spec, const char *option, const char *text, uint32_t limit, uint32_t *out,
                   uint32_t *count, ff_error *error);
/* Do these fit together? FF_LIMIT: no, with what is too much. */
ff_status mig_fit(const machine_spec *spec, const uint32_t *profiles, uint32_t count, ff_error *error);
/* The largest profile (most SMs, then most memory) of which `count` fit. FF_UNSUPPORTED, FF_LIMIT. */
ff_status mig_largest(const machine_spec *spec, uint32_t count, uint32_t *profile, ff_error *error);
/* The slice as a machine of its own: docs/timing.md has what it has of the whole. FF_INVALID: the machine's values
 * cannot be divided so. */
ff_status mig_slice(const machine_spec *spec, uint32_t profile, machine_spec *slice, ff_error *error);

#endif
