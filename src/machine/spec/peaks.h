/* SPDX-License-Identifier: Apache-2.0 */
/* What a machine does at most per second: the lines of a roofline. */
#ifndef FF_MACHINE_PEAKS_H
#define FF_MACHINE_PEAKS_H

#include "machine/spec/spec.h"

/* In 10^9 per second; all 0: not known. */
typedef struct machine_peaks {
#define X(name, help) double name;
#include "machine/spec/peaks.def"
#undef X
} machine_peaks;

/* Not known of a machine with memory stacks: their SMs and channels share the work with the GPU's. */
machine_peaks machine_peaks_of(const machine_spec *spec);

#endif
