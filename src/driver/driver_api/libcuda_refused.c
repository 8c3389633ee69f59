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
REFUSED(cuDeviceGetNvSciSyncAttributes, OUTSIDE)
REFUSED(cuGraphAddExternalSemaphoresSignalNode, OUTSIDE)
REFUSED(cuGraphAddExternalSemaphoresWaitNode, OUTSIDE)
REFUSED(cuGraphExecExternalSemaphoresSignalNodeSetParams, OUTSIDE)
REFUSED(cuGraphExecExternalSemaphoresWaitNodeSetParams, OUTSIDE)
REFUSED(cuGraphExternalSemaphoresSignalNodeGetParams, OUTSIDE)
REFUSED(cuGraphExternalSemaphoresSignalNodeSetParams, OUTSIDE)
REFUSED(cuGraphExternalSemaphoresWaitNodeGetParams, OUTSIDE)
REFUSED(cuGraphExternalSemaphoresWaitNodeSetParams, OUTSIDE)

#define GRAPHICS "there is no graphics driver whose images and buffers the virtual GPU could use"
REFUSED(cuEGLStreamConsumerAcquireFrame, GRAPHICS)
REFUSED(cuEGLStreamConsumerConnect, GRAPHICS)
REFUSED(cuEGLStreamConsumerConnectWithFlags, GRAPHICS)
REFUSED(cuEGLStreamConsumerDisconnect, GRAPHICS)
REFUSED(cuEGLStreamConsumerReleaseFrame, GRAPHICS)
REFUSED(cuEGLStreamProducerConnect, GRAPHICS)
REFUSED(cuEGLStreamProducerDisconnect, GRAPHICS)
REFUSED(cuEGLStreamProducerPresentFrame, GRAPHICS)
REFUSED(cuEGLStreamProducerReturnFrame, GRAPHICS)
REFUSED(cuEventCreateFromEGLSync, GRAPHICS)
REFUSED(cuGLCtxCreate, GRAPHICS)
REFUSED(cuGLCtxCreate_v2, GRAPHICS)
REFUSED(cuGLGetDevices, GRAPHICS)
REFUSED(cuGLGetDevices_v2, GRAPHICS)
REFUSED(cuGLInit, GRAPHICS)
REFUSED(cuGLMapBufferObject, GRAPHICS)
REFUSED(cuGLMapBufferObjectAsync, GRAPHICS)
REFUSED(cuGLMapBufferObjectAsync_v2, GRAPHICS)
REFUSED(cuGLMapBufferObjectAsync_v2_ptsz, GRAPHICS)
REFUSED(cuGLMapBufferObject_v2, GRAPHICS)
REFUSED(cuGLMapBufferObject_v2_ptds, GRAPHICS)
REFUSED(cuGLRegisterBufferObject, GRAPHICS)
REFUSED(cuGLSetBufferObjectMapFlags, GRAPHICS)
REFUSED(cuGLUnmapBufferObject, GRAPHICS)
REFUSED(cuGLUnmapBufferObjectAsync, GRAPHICS)
REFUSED(cuGLUnregisterBufferObject, GRAPHICS)
REFUSED(cuGraphicsEGLRegisterImage, GRAPHICS)
REFUSED(cuGraphicsGLRegisterBuffer, GRAPHICS)
REFUSED(cuGraphicsGLRegisterImage, GRAPHICS)
REFUSED(cuGraphicsMapResources, GRAPHICS)
REFUSED(cuGraphicsMapResources_ptsz, GRAPHICS)
REFUSED(cuGraphicsResourceGetMappedEglFrame, GRAPHICS)
REFUSED(cuGraphicsResourceGetMappedMipmappedArray, GRAPHICS)
REFUSED(cuGraphicsResourceGetMappedPointer, GRAPHICS)
REFUSED(cuGraphicsResourceGetMappedPointer_v2, GRAPHICS)
REFUSED(cuGraphicsResourceSetMapFlags, GRAPHICS)
REFUSED(cuGraphicsResourceSetMapFlags_v2, GRAPHICS)
REFUSED(cuGraphicsSubResourceGetMappedArray, GRAPHICS)
REFUSED(cuGraphicsUnmapResources, GRAPHICS)
REFUSED(cuGraphicsUnmapResources_ptsz, GRAPHICS)
REFUSED(cuGraphicsUnregisterResource, GRAPHICS)
REFUSED(cuGraphicsVDPAURegisterOutputSurface, GRAPHICS)
REFUSED(cuGraphicsVDPAURegisterVideoSurface, GRAPHICS)
REFUSED(cuStreamBeginCaptureToCig, GRAPHICS)
REFUSED(cuStreamBeginCaptureToCig_ptsz, GRAPHICS)
REFUSED(cuStreamEndCaptureToCig, GRAPHICS)
REFUSED(cuStreamEndCaptureToCig_ptsz, GRAPHICS)
REFUSED(cuVDPAUCtxCreate, GRAPHICS)
REFUSED(cuVDPAUCtxCreate_v2, GRAPHICS)
REFUSED(cuVDPAUGetDevice, GRAPHICS)

#define FABRIC "there is no fabric between machines"
REFUSED(cuDeviceGetCliqueCount, FABRIC)
REFUSED(cuDeviceGetCliqueInfo, FABRIC)
REFUSED(cuDeviceGetFabricClusterUuid, FABRIC)
REFUSED(cuFabricCpyBatchAsync, FABRIC)
REFUSED(cuFabricCpyBatchAsync_ptsz, FABRIC)
REFUSED(cuLogicalEndpointAddDevice, FABRIC)
REFUSED(cuLogicalEndpointBindAddr, FABRIC)
REFUSED(cuLogicalEndpointBindMem, FABRIC)
REFUSED(cuLogicalEndpointCreate, FABRIC)
REFUSED(cuLogicalEndpointDestroy, FABRIC)
REFUSED(cuLogicalEndpointExport, FABRIC)
REFUSED(cuLogicalEndpointGetLimits, FABRIC)
REFUSED(cuLogicalEndpointIdRelease, FABRIC)
REFUSED(cuLogicalEndpointIdReserve, FABRIC)
REFUSED(cuLogicalEndpointImport, FABRIC)
REFUSED(cuLogicalEndpointQuery, FABRIC)
REFUSED(cuLogicalEndpointUnbind, FABRIC)

#define CHECKPOINT "the virtual GPU is in the program's own process, which cannot be checkpointed from outside"
REFUSED(cuCheckpointOperationComplete, CHECKPOINT)
REFUSED(cuCheckpointProcessCheckpoint, CHECKPOINT)
REFUSED(cuCheckpointProcessGetRestoreThreadId, CHECKPOINT)
REFUSED(cuCheckpointProcessGetState, CHECKPOINT)
REFUSED(cuCheckpointProcessLock, CHECKPOINT)
REFUSED(cuCheckpointProcessRestore, CHECKPOINT)
REFUSED(cuCheckpointProcessUnlock, CHECKPOINT)

#define DUMP "no core of the GPU is dumped; what a kernel did wrong is said on stderr"
REFUSED(cuCoredumpDeregisterCompleteCallback, DUMP)
REFUSED(cuCoredumpDeregisterStartCallback, DUMP)
REFUSED(cuCoredumpGetAttribute, DUMP)
REFUSED(cuCoredumpGetAttributeGlobal, DUMP)
REFUSED(cuCoredumpRegisterCompleteCallback, DUMP)
REFUSED(cuCoredumpRegisterStartCallback, DUMP)
REFUSED(cuCoredumpSetAttribute, DUMP)
REFUSED(cuCoredumpSetAttributeGlobal, DUMP)

#define SPARSE "arrays whose parts have memory of their own are not there"
REFUSED(cuMemMapArrayAsync, SPARSE)
REFUSED(cuMemMapArrayAsync_ptsz, SPARSE)
#define DECOMPRESS "the machine has no engine for decompression"
REFUSED(cuMemBatchDecompressAsync, DECOMPRESS)
REFUSED(cuMemBatchDecompressAsync_ptsz, DECOMPRESS)
#define PLACES "each simulated manager has pages in places of its own, and the program runs before they do"
REFUSED(cuMemGetLocationInfo, PLACES)

#define WIDE \
  "the tensor copies that read such maps, .im2col::w and .im2col::w::128 of compute capability 10, are not there"
REFUSED(cuTensorMapEncodeIm2colWide, WIDE)

/* ---- what no array has ---- */

/* CUDA_ERROR_INVALID_VALUE: one that is not sparse, of which none can be made. */
LIBCUDA_CALL(cuArrayGetSparseProperties, (void *properties, void *array)) {
  LIBCUDA_TRY(libcuda_ready());
  (void)properties;
  (void)array;
  return CUDA_ERROR_INVALID_VALUE;
}
LIBCUDA_CALL(cuMipmappedArrayGetSparseProperties, (void *properties, void *array)) {
  return cuArrayGetSparseProperties(properties, array);
}
