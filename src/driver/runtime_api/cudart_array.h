/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA arrays, texture and surface objects of the CUDA runtime: types beyond cuda_abi.h and the functions of
 * cudart_array.c and cudart_texture.c. Layouts are those of CUDA 11, 12 and 13 (tests/unit/driver/test_texture.c
 * asserts them). */
#ifndef FF_DRIVER_CUDART_ARRAY_H
#define FF_DRIVER_CUDART_ARRAY_H

#include "driver/runtime_api/cudart.h"
#include "driver/engine/engine_array.h"

typedef struct cudaMipmappedArray *cudaMipmappedArray_t;
typedef unsigned long long cudaTextureObject_t, cudaSurfaceObject_t;

typedef enum cudaResourceType {
  cudaResourceTypeArray,
  cudaResourceTypeMipmappedArray,
  cudaResourceTypeLinear,
  cudaResourceTypePitch2D
} cudaResourceType;
typedef enum cudaTextureAddressMode {
  cudaAddressModeWrap,
  cudaAddressModeClamp,
  cudaAddressModeMirror,
  cudaAddressModeBorder
} cudaTextureAddressMode;
typedef enum cudaTextureFilterMode { cudaFilterModePoint, cudaFilterModeLinear } cudaTextureFilterMode;
typedef enum cudaTextureReadMode { cudaReadModeElementType, cudaReadModeNormalizedFloat } cudaTextureReadMode;

typedef struct cudaResourceDesc {
  cudaResourceType resType;
  union {
    struct {
      cudaArray_t array;
    } array;
    struct {
      cudaMipmappedArray_t mipmap;
    } mipmap;
    struct {
      void *devPtr;
      cudaChannelFormatDesc desc;
      size_t sizeInBytes;
    } linear;
    struct {
      void *devPtr;
      cudaChannelFormatDesc desc;
      size_t width, height, pitchInBytes;
    } pitch2D;
#if CUDART_MAJOR >= 13
    struct {
      int reserved[32];
    } reserved;
#endif
  } res;
#if CUDART_MAJOR >= 13
  unsigned flags;
#endif
} cudaResourceDesc;

/* CUDA 11's ends before seamlessCubemap, which is therefore only written where the caller has it */
typedef struct cudaTextureDesc {
  cudaTextureAddressMode addressMode[3];
  cudaTextureFilterMode filterMode;
  cudaTextureReadMode readMode;
  int sRGB;
  float borderColor[4];
  int normalizedCoords;
  unsigned maxAnisotropy;
  cudaTextureFilterMode mipmapFilterMode;
  float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
  int disableTrilinearOptimization;
  int seamlessCubemap;
} cudaTextureDesc;

typedef struct cudaResourceViewDesc {
  int format;
  size_t width, height, depth;
  unsigned firstMipmapLevel, lastMipmapLevel, firstLayer, lastLayer;
#if CUDART_MAJOR >= 13
  unsigned reserved[16];
#endif
} cudaResourceViewDesc;

typedef struct cudaArrayMemoryRequirements {
  size_t size, alignment;
  unsigned reserved[4];
} cudaArrayMemoryRequirements;

/* cudaErrorInvalidChannelDescriptor: no such format; cudaErrorNotSupported: one that is not there. */
cudaError_t cudart_format(const cudaChannelFormatDesc *desc, engine_format *format);
cudaChannelFormatDesc cudart_channel_desc(engine_format format);
/* The pitch of a linear side of a 2D copy; `rows`: there are several. That of a single row becomes its width.
 * (cudart_copy.c) cudaErrorInvalidPitchValue: rows that overlap. */
cudaError_t cudart_pitch(uint64_t *pitch, uint64_t width, bool rows);
/* A 3D copy's parameters as the engine has them (cudart_copy.c); box->from and ->to are not yet checked against their
 * arrays. */
cudaError_t cudart_box(const cudaMemcpy3DParms *p, cudaStream_t stream, bool async, engine_box *box);

cudaError_t cudaMallocArray(cudaArray_t *array, const cudaChannelFormatDesc *desc, size_t width, size_t height,
                            unsigned flags);
cudaError_t cudaMalloc3DArray(cudaArray_t *array, const cudaChannelFormatDesc *desc, cudaExtent extent, unsigned flags);
cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *mipmap, const cudaChannelFormatDesc *desc, cudaExtent extent,
                                     unsigned levels, unsigned flags);
cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t *array, cudaMipmappedArray_t mipmap, unsigned level);
cudaError_t cudaFreeArray(cudaArray_t array);
cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t mipmap);
cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc *desc, cudaExtent *extent, unsigned *flags, cudaArray_t array);
cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc *desc, cudaArray_t array);
cudaError_t cudaArrayGetMemoryRequirements(cudaArrayMemoryRequirements *out, cudaArray_t array, int device);
cudaError_t cudaArrayGetPlane(cudaArray_t *plane, cudaArray_t array, unsigned index);
cudaError_t cudaArrayGetSparseProperties(void *properties, cudaArray_t array);
cudaError_t cudaMipmappedArrayGetSparseProperties(void *properties, cudaMipmappedArray_t mipmap);
cudaError_t cudaMipmappedArrayGetMemoryRequirements(cudaArrayMemoryRequirements *out, cudaMipmappedArray_t mipmap,
                                                    int device);
CUDART_DECLARE(cudaMemcpyToArray, _ptds,
               (cudaArray_t to, size_t x, size_t y, const void *from, size_t bytes, cudaMemcpyKind kind))
CUDART_DECLARE(cudaMemcpyFromArray, _ptds,
               (void *to, cudaArray_t from, size_t x, size_t y, size_t bytes, cudaMemcpyKind kind))
CUDART_DECLARE(cudaMemcpyToArrayAsync, _ptsz,
               (cudaArray_t to, size_t x, size_t y, const void *from, size_t bytes, cudaMemcpyKind kind,
                cudaStream_t stream))
CUDART_DECLARE(cudaMemcpyFromArrayAsync, _ptsz,
               (void *to, cudaArray_t from, size_t x, size_t y, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream))
CUDART_DECLARE(cudaMemcpyArrayToArray, _ptds,
               (cudaArray_t to, size_t to_x, size_t to_y, cudaArray_t from, size_t from_x, size_t from_y, size_t bytes,
                cudaMemcpyKind kind))
CUDART_DECLARE(cudaMemcpy2DToArray, _ptds,
               (cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t height,
                cudaMemcpyKind kind))
CUDART_DECLARE(cudaMemcpy2DFromArray, _ptds,
               (void *to, size_t pitch, cudaArray_t from, size_t x, size_t y, size_t width, size_t height,
                cudaMemcpyKind kind))
CUDART_DECLARE(cudaMemcpy2DToArrayAsync, _ptsz,
               (cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t height,
                cudaMemcpyKind kind, cudaStream_t stream))
CUDART_DECLARE(cudaMemcpy2DFromArrayAsync, _ptsz,
               (void *to, size_t pitch, cudaArray_t from, size_t x, size_t y, size_t width, size_t height,
                cudaMemcpyKind kind, cudaStream_t stream))
CUDART_DECLARE(cudaMemcpy2DArrayToArray, _ptds,
               (cudaArray_t to, size_t to_x, size_t to_y, cudaArray_t from, size_t from_x, size_t from_y, size_t width,
                size_t height, cudaMemcpyKind kind))

/* cudart_texture.c */
cudaError_t cudaCreateTextureObject(cudaTextureObject_t *object, const cudaResourceDesc *resource,
                                    const cudaTextureDesc *texture, const cudaResourceViewDesc *view);
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object);
cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc *out, cudaTextureObject_t object);
cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc *out, cudaTextureObject_t object);
cudaError_t cudaGetTextureObjectResourceViewDesc(cudaResourceViewDesc *out, cudaTextureObject_t object);
cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *object, const cudaResourceDesc *resource);
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t object);
cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc *out, cudaSurfaceObject_t object);
cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t *texels, const cudaChannelFormatDesc *desc, int device);

#endif
