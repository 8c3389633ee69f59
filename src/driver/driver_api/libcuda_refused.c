/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that the virtual GPU cannot serve, each with the reason that is said once: users need not look for it. They
 * are "not supported", which is what a real driver returns where the hardware or the system lacks what they need. */
#include "driver/driver_api/libcuda.h"

static CUresult refuse(const char *call, const char *reason) {
  LIBCUDA_TRY(libcuda_ready());
  engine_say_once(call, "%s: %s", call, reason);
  return CUDA_ERROR_NOT_SUPPORTED;
}

#define REFUSED(NAME, REASON) \
  LIBCUDA_CALL(NAME, (void)) { return refuse(#NAME, REASON); }

#define OUTSIDE "there is no graphics driver or other device whose memory the virtual GPU could use"
REFUSED(cuImportExternalMemory, OUTSIDE)
REFUSED(cuExternalMemoryGetMappedBuffer, OUTSIDE)
REFUSED(cuExternalMemoryGetMappedMipmappedArray, OUTSIDE)
REFUSED(cuDestroyExternalMemory, OUTSIDE)
REFUSED(cuImportExternalSemaphore, OUTSIDE)
REFUSED(cuDestroyExternalSemaphore, OUTSIDE)
REFUSED(cuSignalExternalSemaphoresAsync, OUTSIDE)
REFUSED(cuSignalExternalSemaphoresAsync_ptsz, OUTSIDE)
REFUSED(cuWaitExternalSemaphoresAsync, OUTSIDE)
REFUSED(cuWaitExternalSemaphoresAsync_ptsz, OUTSIDE)
REFUSED(cuMemGetHandleForAddressRange, OUTSIDE)
