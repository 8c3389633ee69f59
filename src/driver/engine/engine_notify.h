/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that a program wants called when a device has something to tell (CUDA Driver API, "Memory Management",
 * cuDeviceRegisterAsyncNotification). The one kind of news there is says that the process has more device memory than
 * its budget; the virtual GPU sets no budgets, so that none is ever called. */
#ifndef FF_DRIVER_ENGINE_NOTIFY_H
#define FF_DRIVER_ENGINE_NOTIFY_H

#include "driver/engine/engine.h"

typedef struct engine_notify engine_notify;
typedef void engine_notify_call(void *news, void *data, engine_notify *registered);

/* Registers `call` for a device that is there; *registered belongs to the engine until engine_notify_remove.
 * cudaErrorInvalidValue: no function, or nowhere to put the handle. */
ENGINE_API cudaError_t engine_notify_add(int device, engine_notify_call *call, engine_notify **registered);
/* cudaErrorInvalidValue: nothing that is registered for this device. */
ENGINE_API cudaError_t engine_notify_remove(int device, engine_notify *registered);

#endif
