/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and sets of the CUDA runtime (CUDA Runtime API, "Memory Management").
 *
 * Here the parameters become one engine_copy or engine_set. Checked here: the kind (cudaErrorInvalidMemcpyDirection),
 * pitches (cudaErrorInvalidPitchValue), symbols (cudaErrorInvalidSymbol) and the range within a symbol; the rest is the
 * engine's. A copy of nothing succeeds whatever its pointers are. */
#include "driver/cudart.h"

static const struct { engine_side to, from; } sides[] = {
    [cudaMemcpyHostToHost] = {ENGINE_SIDE_HOST, ENGINE_SIDE_HOST},
    [cudaMemcpyHostToDevice] = {ENGINE_SIDE_DEVICE, ENGINE_SIDE_HOST},
    [cudaMemcpyDeviceToHost] = {ENGINE_SIDE_HOST, ENGINE_SIDE_DEVICE},
    [cudaMemcpyDeviceToDevice] = {ENGINE_SIDE_DEVICE, ENGINE_SIDE_DEVICE},
    [cudaMemcpyDefault] = {ENGINE_SIDE_ANY, ENGINE_SIDE_ANY},
};

static cudaError_t run(engine_copy copy, cudaMemcpyKind kind) {
  if ((unsigned)kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  copy.to_side = sides[kind].to;
  copy.from_side = sides[kind].from;
  return engine_copy_run(&copy);
}

/* ---- 1D ---- */

static cudaError_t copy_1d(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream, bool async) {
  return run((engine_copy){.to = (uint64_t)(uintptr_t)to, .from = (uint64_t)(uintptr_t)from, .width = bytes, .height = 1,
                           .depth = 1, .stream = stream, .async = async}, kind);
}

CUDART_PAIR(cudaMemcpy, _ptds, (void *to, const void *from, size_t bytes, cudaMemcpyKind kind),
            copy_1d(to, from, bytes, kind, engine_stream_handle(NULL, own), false))
CUDART_PAIR(cudaMemcpyAsync, _ptsz, (void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream),
            copy_1d(to, from, bytes, kind, engine_stream_handle(stream, own), true))

static cudaError_t copy_peer(void *to, int to_device, const void *from, int from_device, size_t bytes, cudaStream_t stream, bool async) {
  if (to_device || from_device) return cudaErrorInvalidDevice;
  return copy_1d(to, from, bytes, cudaMemcpyDeviceToDevice, stream, async);
}
CUDART_API cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes) {
  return engine_return(copy_peer(to, to_device, from, from_device, bytes, cudaStreamLegacy, false));
}
CUDART_API cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes, cudaStream_t stream) {
  return engine_return(copy_peer(to, to_device, from, from_device, bytes, engine_stream_handle(stream, false), true));
}

/* ---- 2D ---- */

static cudaError_t copy_2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                           cudaMemcpyKind kind, cudaStream_t stream, bool async) {
  if (width && height && (width > to_pitch || width > from_pitch)) return cudaErrorInvalidPitchValue;
  return run((engine_copy){.to = (uint64_t)(uintptr_t)to, .from = (uint64_t)(uintptr_t)from, .width = width, .height = height,
                           .depth = 1, .to_pitch = to_pitch, .from_pitch = from_pitch, .stream = stream, .async = async}, kind);
}
CUDART_PAIR(cudaMemcpy2D, _ptds, (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, cudaMemcpyKind kind),
            copy_2d(to, to_pitch, from, from_pitch, width, height, kind, engine_stream_handle(NULL, own), false))
CUDART_PAIR(cudaMemcpy2DAsync, _ptsz,
            (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream),
            copy_2d(to, to_pitch, from, from_pitch, width, height, kind, engine_stream_handle(stream, own), true))

/* ---- 3D ---- */

static bool place(cudaPitchedPtr box, cudaPos at, uint64_t *address, uint64_t *pitch, uint64_t *slice) {
  *pitch = box.pitch;
  if (__builtin_mul_overflow((uint64_t)box.pitch, (uint64_t)box.ysize, slice)) return false;
  *address = (uint64_t)(uintptr_t)box.ptr + at.x + at.y * *pitch + at.z * *slice;
  return true;
}

static cudaError_t copy_3d(const cudaMemcpy3DParms *p, cudaStream_t stream, bool async) {
  if (!p) return cudaErrorInvalidValue;
  if (p->srcArray || p->dstArray) {
    engine_say_once("arrays", "copies to and from CUDA arrays are not implemented by the virtual GPU");
    return cudaErrorNotSupported;
  }
  if (!p->srcPtr.ptr || !p->dstPtr.ptr) return cudaErrorInvalidValue;
  if ((unsigned)p->kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  engine_copy copy = {.width = p->extent.width, .height = p->extent.height, .depth = p->extent.depth, .stream = stream, .async = async};
  bool something = copy.width && copy.height && copy.depth;
  if (something && (p->srcPos.x + copy.width > p->srcPtr.pitch || p->dstPos.x + copy.width > p->dstPtr.pitch) &&
      (copy.height > 1 || copy.depth > 1)) return cudaErrorInvalidPitchValue;
  if (copy.depth > 1 && (p->srcPos.y + copy.height > p->srcPtr.ysize || p->dstPos.y + copy.height > p->dstPtr.ysize))
    return cudaErrorInvalidValue;
  if (!place(p->srcPtr, p->srcPos, &copy.from, &copy.from_pitch, &copy.from_slice)) return cudaErrorInvalidValue;
  if (!place(p->dstPtr, p->dstPos, &copy.to, &copy.to_pitch, &copy.to_slice)) return cudaErrorInvalidValue;
  return run(copy, p->kind);
}
CUDART_PAIR(cudaMemcpy3D, _ptds, (const cudaMemcpy3DParms *p), copy_3d(p, engine_stream_handle(NULL, own), false))
CUDART_PAIR(cudaMemcpy3DAsync, _ptsz, (const cudaMemcpy3DParms *p, cudaStream_t stream), copy_3d(p, engine_stream_handle(stream, own), true))

static cudaError_t copy_3d_peer(const cudaMemcpy3DPeerParms *p, cudaStream_t stream, bool async) {
  if (!p) return cudaErrorInvalidValue;
  if (p->srcDevice || p->dstDevice) return cudaErrorInvalidDevice;
  cudaMemcpy3DParms same = {.srcArray = p->srcArray, .srcPos = p->srcPos, .srcPtr = p->srcPtr, .dstArray = p->dstArray,
                            .dstPos = p->dstPos, .dstPtr = p->dstPtr, .extent = p->extent, .kind = cudaMemcpyDeviceToDevice};
  return copy_3d(&same, stream, async);
}
CUDART_PAIR(cudaMemcpy3DPeer, _ptds, (const cudaMemcpy3DPeerParms *p), copy_3d_peer(p, engine_stream_handle(NULL, own), false))
CUDART_PAIR(cudaMemcpy3DPeerAsync, _ptsz, (const cudaMemcpy3DPeerParms *p, cudaStream_t stream),
            copy_3d_peer(p, engine_stream_handle(stream, own), true))

/* ---- symbols ---- */

static cudaError_t symbol_part(const void *symbol, size_t bytes, size_t offset, uint64_t *address) {
  uint64_t start, size;
  cudaError_t error = engine_start();
  if (error) return error;
  engine_variable *variable = cudart_variable(symbol);
  error = variable ? engine_variable_address(variable, &start, &size) : cudaErrorInvalidSymbol;
  if (error) return error;
  if (offset > size || bytes > size - offset) return cudaErrorInvalidValue;
  *address = start + offset;
  return cudaSuccess;
}

static cudaError_t copy_to_symbol(const void *symbol, const void *from, size_t bytes, size_t offset, cudaMemcpyKind kind,
                                  cudaStream_t stream, bool async) {
  uint64_t to;
  if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  cudaError_t error = symbol_part(symbol, bytes, offset, &to);
  return error ? error : copy_1d((void *)(uintptr_t)to, from, bytes, kind, stream, async);
}
CUDART_PAIR(cudaMemcpyToSymbol, _ptds, (const void *symbol, const void *from, size_t bytes, size_t offset, cudaMemcpyKind kind),
            copy_to_symbol(symbol, from, bytes, offset, kind, engine_stream_handle(NULL, own), false))
CUDART_PAIR(cudaMemcpyToSymbolAsync, _ptsz,
            (const void *symbol, const void *from, size_t bytes, size_t offset, cudaMemcpyKind kind, cudaStream_t stream),
            copy_to_symbol(symbol, from, bytes, offset, kind, engine_stream_handle(stream, own), true))

static cudaError_t copy_from_symbol(void *to, const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind kind,
                                    cudaStream_t stream, bool async) {
  uint64_t from;
  if (kind != cudaMemcpyDeviceToHost && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  cudaError_t error = symbol_part(symbol, bytes, offset, &from);
  return error ? error : copy_1d(to, (const void *)(uintptr_t)from, bytes, kind, stream, async);
}
CUDART_PAIR(cudaMemcpyFromSymbol, _ptds, (void *to, const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind kind),
            copy_from_symbol(to, symbol, bytes, offset, kind, engine_stream_handle(NULL, own), false))
CUDART_PAIR(cudaMemcpyFromSymbolAsync, _ptsz,
            (void *to, const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind kind, cudaStream_t stream),
            copy_from_symbol(to, symbol, bytes, offset, kind, engine_stream_handle(stream, own), true))

/* ---- sets ---- */

static cudaError_t set_3d(void *to, size_t pitch, size_t slice, int value, cudaExtent size, cudaStream_t stream, bool async) {
  bool something = size.width && size.height && size.depth;
  if (something && size.height > 1 && pitch < size.width) return cudaErrorInvalidValue;
  engine_set set = {.to = (uint64_t)(uintptr_t)to, .width = size.width, .height = size.height, .depth = size.depth, .pitch = pitch,
                    .slice = slice, .value = (uint32_t)value & 0xff, .element = 1, .stream = stream, .async = async};
  cudaError_t error = engine_set_run(&set);
  return error == cudaErrorInvalidPitchValue ? cudaErrorInvalidValue : error;
}

CUDART_PAIR(cudaMemset, _ptds, (void *to, int value, size_t bytes),
            set_3d(to, 0, 0, value, (cudaExtent){bytes, 1, 1}, engine_stream_handle(NULL, own), false))
CUDART_PAIR(cudaMemsetAsync, _ptsz, (void *to, int value, size_t bytes, cudaStream_t stream),
            set_3d(to, 0, 0, value, (cudaExtent){bytes, 1, 1}, engine_stream_handle(stream, own), true))
CUDART_PAIR(cudaMemset2D, _ptds, (void *to, size_t pitch, int value, size_t width, size_t height),
            set_3d(to, pitch, 0, value, (cudaExtent){width, height, 1}, engine_stream_handle(NULL, own), false))
CUDART_PAIR(cudaMemset2DAsync, _ptsz, (void *to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),
            set_3d(to, pitch, 0, value, (cudaExtent){width, height, 1}, engine_stream_handle(stream, own), true))
CUDART_PAIR(cudaMemset3D, _ptds, (cudaPitchedPtr to, int value, cudaExtent extent),
            set_3d(to.ptr, to.pitch, to.pitch * to.ysize, value, extent, engine_stream_handle(NULL, own), false))
CUDART_PAIR(cudaMemset3DAsync, _ptsz, (cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream),
            set_3d(to.ptr, to.pitch, to.pitch * to.ysize, value, extent, engine_stream_handle(stream, own), true))
