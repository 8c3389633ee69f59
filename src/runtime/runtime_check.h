/* SPDX-License-Identifier: Apache-2.0 */
/* Declared uses, checked (Wilt 2017, R3). Two ways:
 *
 *   the virtual GPU checks every launch by itself: it is told the uses before each one; a launch that leaves them ends
 *   the context; with FF_CHECK=1 (ff_options.check) kernels check themselves, on any GPU: their PTX is instrumented
 *   when the module is loaded (ptx/rewrite/instrument.h). A launch that leaves its uses is reported by ff_wait, what it
 *   wrote within them stays, and all goes on.
 *
 * With gpu->check a kernel either is instrumented, or runs on the virtual GPU, or was refused by
 * ff_kernel_find. */
#ifndef FF_RUNTIME_CHECK_H
#define FF_RUNTIME_CHECK_H

#include "runtime/gpu.h"

/* ---- code (runtime_module.c) ---- */

/* With gpu->check, and if it is PTX: makes the instrumented form, which takes the place of what the program gave. */
void check_module(ff_module *m);
/* What the driver is to load: m->image, or the instrumented text. */
const char *check_image(const ff_module *m);
/* What windows are made from: m->ptx, or the instrumented module. */
const struct ptx_module *check_ptx(const ff_module *m);
/* Finds the instrumented form; FF_ERROR_CODE: there is none, and why. */
ff_result check_kernel(ff_kernel *k);
/* The entry to launch, as the loaded code calls it. */
const char *check_entry(const ff_kernel *k);
void check_module_free(ff_module *m);

/* ---- launches (runtime_launch.c) ---- */

/* Before `part` of a launch goes into the open operation `op`: says what it uses, to the driver or in a table whose
 * address becomes *table: the argument behind the kernel's own. 0: the kernel takes none. */
ff_result check_before(ff_gpu *gpu, const launch *l, uint32_t device, const box *part, operation op,
                       cuda_address *table);
/* Behind it: the report comes to the host. */
ff_result check_after(ff_gpu *gpu, operation op, cuda_address table);
/* Launches that are over and left their uses become failed ones. Waits for those parts of launch `ticket` that are not
 * (0: of none). */
ff_result check_collect(ff_gpu *gpu, ff_ticket ticket);
/* Nothing runs any more: gives the tables of that GPU back. */
void check_close(ff_gpu *gpu, uint32_t device);

#endif
