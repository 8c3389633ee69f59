/* SPDX-License-Identifier: Apache-2.0 */
/* The binary interface of the CUDA runtime, as far as the virtual GPU speaks it: names, numbers and struct layouts.
 *
 * Written from the CUDA Runtime API reference ("Data types used by CUDA Runtime"); NVIDIA's headers are neither needed
 * nor included anywhere, because users' machines need not have them. What always holds: a type here has the size,
 * alignment and field offsets of the type of the same name in CUDA 11, 12 and 13, unless its comment says otherwise
 * (tests/unit/driver/test_abi.c asserts the numbers). cudaDeviceProp differs by version: see properties.h.
 *
 * Runtime and driver share almost all error numbers since CUDA 10.1: cudaErrorX == CUDA_ERROR_X. */
#ifndef FF_DRIVER_CUDA_ABI_H
#define FF_DRIVER_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifndef CUDART_MAJOR
#define CUDART_MAJOR 13 /* whose interface libcudart is compiled for: 11, 12 or 13 */
#endif

typedef enum cudaError {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInitializationError = 3,
  cudaErrorCudartUnloading = 4,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidPitchValue = 12,
  cudaErrorInvalidSymbol = 13,
  cudaErrorInvalidHostPointer = 16,
  cudaErrorInvalidDevicePointer = 17,
  cudaErrorInvalidTexture = 18,
  cudaErrorInvalidChannelDescriptor = 20,
  cudaErrorInvalidMemcpyDirection = 21,
  cudaErrorMissingConfiguration = 52,
  cudaErrorInvalidDeviceFunction = 98,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorInvalidKernelImage = 200,
  cudaErrorDeviceUninitialized = 201,
  cudaErrorNoKernelImageForDevice = 209,
  cudaErrorUnsupportedLimit = 215,
  cudaErrorPeerAccessUnsupported = 217,
  cudaErrorInvalidPtx = 218,
  cudaErrorUnsupportedPtxVersion = 222,
  cudaErrorInvalidSource = 300,
  cudaErrorFileNotFound = 301,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorIllegalState = 401,
  cudaErrorSymbolNotFound = 500,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchOutOfResources = 701,
  cudaErrorLaunchTimeout = 702,
  cudaErrorPeerAccessAlreadyEnabled = 704,
  cudaErrorPeerAccessNotEnabled = 705,
  cudaErrorSetOnActiveProcess = 708,
  cudaErrorContextIsDestroyed = 709,
  cudaErrorAssert = 710,
  cudaErrorHostMemoryAlreadyRegistered = 712,
  cudaErrorHostMemoryNotRegistered = 713,
  cudaErrorHardwareStackError = 714,
  cudaErrorIllegalInstruction = 715,
  cudaErrorMisalignedAddress = 716,
  cudaErrorInvalidAddressSpace = 717,
  cudaErrorInvalidPc = 718,
  cudaErrorLaunchFailure = 719,
  cudaErrorCooperativeLaunchTooLarge = 720,
  cudaErrorNotPermitted = 800,
  cudaErrorNotSupported = 801,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorUnknown = 999,
} cudaError_t;

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUfunc_st *cudaFunction_t;
typedef struct CUkern_st *cudaKernel_t;
typedef struct cudaArray *cudaArray_t;
typedef struct CUmemPoolHandle_st *cudaMemPool_t;

#define cudaStreamLegacy ((cudaStream_t)0x1)
#define cudaStreamPerThread ((cudaStream_t)0x2)

typedef struct dim3 { unsigned int x, y, z; } dim3;

typedef enum cudaMemcpyKind {
  cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault,
} cudaMemcpyKind;

typedef enum cudaMemoryType {
  cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice, cudaMemoryTypeManaged,
} cudaMemoryType;

/* Flags, by the call that takes them. */
enum { cudaStreamDefault = 0, cudaStreamNonBlocking = 1 };
enum { cudaEventDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2, cudaEventInterprocess = 4 };
enum { cudaHostAllocDefault = 0, cudaHostAllocPortable = 1, cudaHostAllocMapped = 2, cudaHostAllocWriteCombined = 4 };
enum { cudaHostRegisterDefault = 0, cudaHostRegisterPortable = 1, cudaHostRegisterMapped = 2,
       cudaHostRegisterIoMemory = 4, cudaHostRegisterReadOnly = 8 };
enum { cudaMemAttachGlobal = 1, cudaMemAttachHost = 2, cudaMemAttachSingle = 4 };
enum { cudaDeviceScheduleAuto = 0, cudaDeviceScheduleSpin = 1, cudaDeviceScheduleYield = 2,
       cudaDeviceScheduleBlockingSync = 4, cudaDeviceScheduleMask = 7, cudaDeviceMapHost = 8,
       cudaDeviceLmemResizeToMax = 16, cudaDeviceSyncMemops = 128, cudaDeviceMask = 255 };
enum { cudaOccupancyDefault = 0, cudaOccupancyDisableCachingOverride = 1 };

#define cudaCpuDeviceId (-1)
#define cudaInvalidDeviceId (-2)

typedef struct cudaPitchedPtr { void *ptr; size_t pitch, xsize, ysize; } cudaPitchedPtr;
typedef struct cudaExtent { size_t width, height, depth; } cudaExtent; /* width in bytes for linear memory */
typedef struct cudaPos { size_t x, y, z; } cudaPos;                    /* x in bytes for linear memory */

typedef struct cudaMemcpy3DParms {
  cudaArray_t srcArray;
  cudaPos srcPos;
  cudaPitchedPtr srcPtr;
  cudaArray_t dstArray;
  cudaPos dstPos;
  cudaPitchedPtr dstPtr;
  cudaExtent extent;
  cudaMemcpyKind kind;
} cudaMemcpy3DParms;

typedef struct cudaMemcpy3DPeerParms {
  cudaArray_t srcArray;
  cudaPos srcPos;
  cudaPitchedPtr srcPtr;
  int srcDevice;
  cudaArray_t dstArray;
  cudaPos dstPos;
  cudaPitchedPtr dstPtr;
  int dstDevice;
  cudaExtent extent;
} cudaMemcpy3DPeerParms;

typedef struct cudaPointerAttributes {
  cudaMemoryType type;
  int device;
  void *devicePointer, *hostPointer;
#if CUDART_MAJOR >= 13
  long reserved[8];
#endif
} cudaPointerAttributes;

typedef struct cudaFuncAttributes {
  size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
  int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA;
  int maxDynamicSharedSizeBytes, preferredShmemCarveout;
#if CUDART_MAJOR >= 12
  int clusterDimMustBeSet, requiredClusterWidth, requiredClusterHeight, requiredClusterDepth;
  int clusterSchedulingPolicyPreference, nonPortableClusterSizeAllowed;
  int reserved[16];
#endif
} cudaFuncAttributes;

typedef enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9,
  cudaFuncAttributeClusterDimMustBeSet = 10,
  cudaFuncAttributeRequiredClusterWidth = 11,
  cudaFuncAttributeRequiredClusterHeight = 12,
  cudaFuncAttributeRequiredClusterDepth = 13,
  cudaFuncAttributeNonPortableClusterSizeAllowed = 14,
  cudaFuncAttributeClusterSchedulingPolicyPreference = 15,
} cudaFuncAttribute;

typedef enum cudaFuncCache {
  cudaFuncCachePreferNone, cudaFuncCachePreferShared, cudaFuncCachePreferL1, cudaFuncCachePreferEqual,
} cudaFuncCache;

typedef enum cudaSharedMemConfig {
  cudaSharedMemBankSizeDefault, cudaSharedMemBankSizeFourByte, cudaSharedMemBankSizeEightByte,
} cudaSharedMemConfig;

typedef enum cudaLimit {
  cudaLimitStackSize, cudaLimitPrintfFifoSize, cudaLimitMallocHeapSize, cudaLimitDevRuntimeSyncDepth,
  cudaLimitDevRuntimePendingLaunchCount, cudaLimitMaxL2FetchGranularity, cudaLimitPersistingL2CacheSize,
  cudaLimitCount,
} cudaLimit;

typedef enum cudaMemoryAdvise {
  cudaMemAdviseSetReadMostly = 1, cudaMemAdviseUnsetReadMostly, cudaMemAdviseSetPreferredLocation,
  cudaMemAdviseUnsetPreferredLocation, cudaMemAdviseSetAccessedBy, cudaMemAdviseUnsetAccessedBy,
} cudaMemoryAdvise;

typedef enum cudaMemLocationType {
  cudaMemLocationTypeInvalid, cudaMemLocationTypeDevice, cudaMemLocationTypeHost, cudaMemLocationTypeHostNuma,
  cudaMemLocationTypeHostNumaCurrent,
} cudaMemLocationType;
typedef struct cudaMemLocation { cudaMemLocationType type; int id; } cudaMemLocation;

typedef enum cudaMemRangeAttribute {
  cudaMemRangeAttributeReadMostly = 1, cudaMemRangeAttributePreferredLocation, cudaMemRangeAttributeAccessedBy,
  cudaMemRangeAttributeLastPrefetchLocation,
} cudaMemRangeAttribute;

typedef enum cudaChannelFormatKind {
  cudaChannelFormatKindSigned, cudaChannelFormatKindUnsigned, cudaChannelFormatKindFloat, cudaChannelFormatKindNone,
} cudaChannelFormatKind;
typedef struct cudaChannelFormatDesc { int x, y, z, w; cudaChannelFormatKind f; } cudaChannelFormatDesc;

typedef struct cudaAccessPolicyWindow {
  void *base_ptr;
  size_t num_bytes;
  float hitRatio;
  int hitProp, missProp;
} cudaAccessPolicyWindow;

/* cudaLaunchKernelExC, cudaStreamSetAttribute. The value's union is 64 bytes; only what is read here is named. */
typedef enum cudaLaunchAttributeID {
  cudaLaunchAttributeIgnore = 0, cudaLaunchAttributeAccessPolicyWindow = 1, cudaLaunchAttributeCooperative = 2,
  cudaLaunchAttributeSynchronizationPolicy = 3, cudaLaunchAttributeClusterDimension = 4,
  cudaLaunchAttributeClusterSchedulingPolicyPreference = 5, cudaLaunchAttributeProgrammaticStreamSerialization = 6,
  cudaLaunchAttributeProgrammaticEvent = 7, cudaLaunchAttributePriority = 8,
} cudaLaunchAttributeID;
typedef union cudaLaunchAttributeValue {
  char pad[64];
  cudaAccessPolicyWindow accessPolicyWindow;
  int cooperative;
  int syncPolicy;
  struct { unsigned int x, y, z; } clusterDim;
  int priority;
} cudaLaunchAttributeValue;
typedef struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  char pad[8 - sizeof(int)];
  cudaLaunchAttributeValue val;
} cudaLaunchAttribute;
typedef struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute *attrs;
  unsigned int numAttrs;
} cudaLaunchConfig_t;

typedef void (*cudaHostFn_t)(void *data);
typedef void (*cudaStreamCallback_t)(cudaStream_t stream, cudaError_t status, void *data);

typedef struct cudaUUID_t { char bytes[16]; } cudaUUID_t;

/* X(name, number): the device attributes that are answered (cudaDeviceGetAttribute, cuDeviceGetAttribute). */
#define CUDA_DEVICE_ATTRIBUTES(X)                                                                                      \
  X(MaxThreadsPerBlock, 1) X(MaxBlockDimX, 2) X(MaxBlockDimY, 3) X(MaxBlockDimZ, 4) X(MaxGridDimX, 5)                    \
  X(MaxGridDimY, 6) X(MaxGridDimZ, 7) X(MaxSharedMemoryPerBlock, 8) X(TotalConstantMemory, 9) X(WarpSize, 10)            \
  X(MaxPitch, 11) X(MaxRegistersPerBlock, 12) X(ClockRate, 13) X(TextureAlignment, 14) X(GpuOverlap, 15)                 \
  X(MultiProcessorCount, 16) X(KernelExecTimeout, 17) X(Integrated, 18) X(CanMapHostMemory, 19) X(ComputeMode, 20)       \
  X(MaxTexture1DWidth, 21) X(MaxTexture2DWidth, 22) X(MaxTexture2DHeight, 23) X(MaxTexture3DWidth, 24)                   \
  X(MaxTexture3DHeight, 25) X(MaxTexture3DDepth, 26) X(MaxTexture2DLayeredWidth, 27)                                     \
  X(MaxTexture2DLayeredHeight, 28) X(MaxTexture2DLayeredLayers, 29) X(SurfaceAlignment, 30) X(ConcurrentKernels, 31)     \
  X(EccEnabled, 32) X(PciBusId, 33) X(PciDeviceId, 34) X(TccDriver, 35) X(MemoryClockRate, 36)                           \
  X(GlobalMemoryBusWidth, 37) X(L2CacheSize, 38) X(MaxThreadsPerMultiProcessor, 39) X(AsyncEngineCount, 40)              \
  X(UnifiedAddressing, 41) X(MaxTexture1DLayeredWidth, 42) X(MaxTexture1DLayeredLayers, 43)                              \
  X(MaxTexture2DGatherWidth, 45) X(MaxTexture2DGatherHeight, 46) X(MaxTexture3DWidthAlt, 47)                             \
  X(MaxTexture3DHeightAlt, 48) X(MaxTexture3DDepthAlt, 49) X(PciDomainId, 50) X(TexturePitchAlignment, 51)               \
  X(MaxTextureCubemapWidth, 52) X(MaxTextureCubemapLayeredWidth, 53) X(MaxTextureCubemapLayeredLayers, 54)               \
  X(MaxSurface1DWidth, 55) X(MaxSurface2DWidth, 56) X(MaxSurface2DHeight, 57) X(MaxSurface3DWidth, 58)                   \
  X(MaxSurface3DHeight, 59) X(MaxSurface3DDepth, 60) X(MaxSurface1DLayeredWidth, 61) X(MaxSurface1DLayeredLayers, 62)    \
  X(MaxSurface2DLayeredWidth, 63) X(MaxSurface2DLayeredHeight, 64) X(MaxSurface2DLayeredLayers, 65)                      \
  X(MaxSurfaceCubemapWidth, 66) X(MaxSurfaceCubemapLayeredWidth, 67) X(MaxSurfaceCubemapLayeredLayers, 68)               \
  X(MaxTexture1DLinearWidth, 69) X(MaxTexture2DLinearWidth, 70) X(MaxTexture2DLinearHeight, 71)                          \
  X(MaxTexture2DLinearPitch, 72) X(MaxTexture2DMipmappedWidth, 73) X(MaxTexture2DMipmappedHeight, 74)                    \
  X(ComputeCapabilityMajor, 75) X(ComputeCapabilityMinor, 76) X(MaxTexture1DMipmappedWidth, 77)                          \
  X(StreamPrioritiesSupported, 78) X(GlobalL1CacheSupported, 79) X(LocalL1CacheSupported, 80)                            \
  X(MaxSharedMemoryPerMultiprocessor, 81) X(MaxRegistersPerMultiprocessor, 82) X(ManagedMemory, 83)                      \
  X(IsMultiGpuBoard, 84) X(MultiGpuBoardGroupID, 85) X(HostNativeAtomicSupported, 86)                                    \
  X(SingleToDoublePrecisionPerfRatio, 87) X(PageableMemoryAccess, 88) X(ConcurrentManagedAccess, 89)                     \
  X(ComputePreemptionSupported, 90) X(CanUseHostPointerForRegisteredMem, 91) X(CooperativeLaunch, 95)                    \
  X(CooperativeMultiDeviceLaunch, 96) X(MaxSharedMemoryPerBlockOptin, 97) X(CanFlushRemoteWrites, 98)                    \
  X(HostRegisterSupported, 99) X(PageableMemoryAccessUsesHostPageTables, 100) X(DirectManagedMemAccessFromHost, 101)     \
  X(MaxBlocksPerMultiprocessor, 106) X(MaxPersistingL2CacheSize, 108) X(MaxAccessPolicyWindowSize, 109)                  \
  X(ReservedSharedMemoryPerBlock, 111) X(SparseCudaArraySupported, 112) X(HostRegisterReadOnlySupported, 113)            \
  X(TimelineSemaphoreInteropSupported, 114) X(MemoryPoolsSupported, 115) X(GPUDirectRDMASupported, 116)                  \
  X(GPUDirectRDMAFlushWritesOptions, 117) X(GPUDirectRDMAWritesOrdering, 118) X(MemoryPoolSupportedHandleTypes, 119)     \
  X(ClusterLaunch, 120) X(DeferredMappingCudaArraySupported, 121) X(IpcEventSupport, 125) X(MemSyncDomainCount, 126)     \
  X(NumaConfig, 130) X(NumaId, 131) X(MpsEnabled, 133) X(HostNumaId, 134)

typedef enum cudaDeviceAttr {
#define X(name, number) cudaDevAttr##name = number,
  CUDA_DEVICE_ATTRIBUTES(X)
#undef X
} cudaDeviceAttr;

#endif
