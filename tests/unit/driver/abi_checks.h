/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and offsets of the CUDA runtime's types, as a C compiler lays out NVIDIA's own declarations of them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "driver/cuda_abi.h"
#include "driver/runtime_api/cudart_array.h"

static void types_of_every_major(void **state) {
  (void)state;
  assert_int_equal(sizeof(dim3), 12);
  assert_int_equal(sizeof(cudaPitchedPtr), 32);
  assert_int_equal(sizeof(cudaExtent), 24);
  assert_int_equal(sizeof(cudaPos), 24);
  assert_int_equal(sizeof(cudaMemcpy3DParms), 160);
  assert_int_equal(offsetof(cudaMemcpy3DParms, dstArray), 64);
  assert_int_equal(offsetof(cudaMemcpy3DParms, dstPtr), 96);
  assert_int_equal(offsetof(cudaMemcpy3DParms, extent), 128);
  assert_int_equal(offsetof(cudaMemcpy3DParms, kind), 152);
  assert_int_equal(sizeof(cudaMemcpy3DPeerParms), 168);
  assert_int_equal(offsetof(cudaMemcpy3DPeerParms, dstArray), 72);
  assert_int_equal(offsetof(cudaMemcpy3DPeerParms, dstDevice), 136);
  assert_int_equal(offsetof(cudaPointerAttributes, devicePointer), 8);
  assert_int_equal(offsetof(cudaPointerAttributes, hostPointer), 16);
  assert_int_equal(offsetof(cudaFuncAttributes, maxThreadsPerBlock), 24);
  assert_int_equal(offsetof(cudaFuncAttributes, numRegs), 28);
  assert_int_equal(offsetof(cudaFuncAttributes, maxDynamicSharedSizeBytes), 44);
  assert_int_equal(offsetof(cudaFuncAttributes, preferredShmemCarveout), 48);
  assert_int_equal(sizeof(cudaMemLocation), 8);
  assert_int_equal(sizeof(cudaChannelFormatDesc), 20);
  assert_int_equal(offsetof(cudaResourceDesc, res.linear.desc), 16);
  assert_int_equal(offsetof(cudaResourceDesc, res.linear.sizeInBytes), 40);
  assert_int_equal(offsetof(cudaResourceDesc, res.pitch2D.width), 40);
  assert_int_equal(offsetof(cudaResourceDesc, res.pitch2D.pitchInBytes), 56);
  assert_int_equal(sizeof(cudaResourceDesc), CUDART_MAJOR >= 13 ? 144 : 64);
  assert_int_equal(offsetof(cudaTextureDesc, readMode), 16);
  assert_int_equal(offsetof(cudaTextureDesc, sRGB), 20);
  assert_int_equal(offsetof(cudaTextureDesc, borderColor), 24);
  assert_int_equal(offsetof(cudaTextureDesc, normalizedCoords), 40);
  assert_int_equal(offsetof(cudaTextureDesc, mipmapFilterMode), 48);
  assert_int_equal(offsetof(cudaTextureDesc, maxMipmapLevelClamp), 60);
  assert_int_equal(offsetof(cudaTextureDesc, disableTrilinearOptimization), 64);
  assert_int_equal(offsetof(cudaTextureDesc, seamlessCubemap), 68);
  assert_int_equal(offsetof(cudaResourceViewDesc, width), 8);
  assert_int_equal(offsetof(cudaResourceViewDesc, firstMipmapLevel), 32);
  assert_int_equal(offsetof(cudaResourceViewDesc, lastLayer), 44);
  assert_int_equal(sizeof(cudaResourceViewDesc), CUDART_MAJOR >= 13 ? 112 : 48);
  assert_int_equal(sizeof(cudaArrayMemoryRequirements), 32);
  assert_int_equal(sizeof(cudaAccessPolicyWindow), 32);
  assert_int_equal(sizeof(cudaLaunchAttributeValue), 64);
  assert_int_equal(sizeof(cudaLaunchAttribute), 72);
  assert_int_equal(offsetof(cudaLaunchAttribute, val), 8);
  assert_int_equal(sizeof(cudaLaunchConfig_t), 56);
  assert_int_equal(offsetof(cudaLaunchConfig_t, dynamicSmemBytes), 24);
  assert_int_equal(offsetof(cudaLaunchConfig_t, numAttrs), 48);
  assert_int_equal(cudaLimitMallocHeapSize, 2);
  assert_int_equal(cudaLimitPersistingL2CacheSize, 6);
  assert_int_equal(cudaMemAdviseUnsetAccessedBy, 6);
  assert_int_equal(cudaDevAttrMultiProcessorCount, 16);
  assert_int_equal(cudaDevAttrComputeCapabilityMinor, 76);
}
