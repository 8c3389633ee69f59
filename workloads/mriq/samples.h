/* SPDX-License-Identifier: Apache-2.0 */
/* What host and kernel of mriq share. */
#ifndef WORKLOADS_MRIQ_SAMPLES_H
#define WORKLOADS_MRIQ_SAMPLES_H

enum { SAMPLES_AT_ONCE = 1024 };

#define TWO_PI 6.2831853071795864769f

#endif
