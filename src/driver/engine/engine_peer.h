/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of the process, and which of them may use another one's memory. Devices are numbered from 0; one that is
 * not there is cudaErrorInvalidDevice. */
#ifndef FF_DRIVER_ENGINE_PEER_H
#define FF_DRIVER_ENGINE_PEER_H

#include "driver/engine/engine.h"

/* ---- the calling thread's device: what its calls are for; no checks ---- */

ENGINE_API int engine_device_current(void);
ENGINE_API void engine_device_choose(int device);  /* cudaSetDevice; green contexts are current no longer */
ENGINE_API bool engine_device_chosen(int *device); /* was one chosen since this thread asked last? Which one? */
ENGINE_API void engine_device_give(int device);    /* that of the current context; -1: there is none */
void engine_device_mean(int device);               /* what this thread means for now; -1: as before */
ENGINE_API void engine_device_prefer(int device);  /* of threads that have chosen none */

/* Flags of a device's primary context, as either interface has set them: CU_CTX_*, which are cudaDevice*, too. */
ENGINE_API unsigned engine_device_flags(int device);
ENGINE_API void engine_device_flags_set(int device, unsigned flags);
/* `ask`, the driver API's: has the calling thread a context as current that is not a primary one? Then its flags. */
ENGINE_API void engine_context_flags_tell(bool (*ask)(unsigned *flags));
ENGINE_API bool engine_context_flags(unsigned *flags); /* what `ask` says; without one: false */

/* ---- peers ---- */

/* Kernels of `device` may use memory of `peer`. cudaErrorPeerAccessAlreadyEnabled, cudaErrorPeerAccessNotEnabled; to
 * itself: cudaErrorDeviceUninitialized; where the machine's links say that they are no peers:
 * cudaErrorPeerAccessUnsupported. */
ENGINE_API cudaError_t engine_peer_enable(int device, int peer);
ENGINE_API cudaError_t engine_peer_disable(int device, int peer);
/* cudaDeviceP2PAttr, CUdevice_P2PAttribute, 1 to 5, between two devices: the rank of the link between them is 0 for the
 * best of the machine, else 1; peers may use each other's memory; a link that is not PCIe has atomics; none carries
 * arrays. */
ENGINE_API int engine_peer_attribute(int attribute, int device, int peer);
ENGINE_API bool engine_peer_possible(int device, int peer); /* of two devices of the process */
ENGINE_API bool engine_peer_has_nvlink(int device, int peer);
ENGINE_API double engine_peer_joined_gbs(int device, int peer); /* of NVLinks that only these two have; 0: none */

void engine_peers_reset(int device); /* with the lock: none to or from it */

#endif
