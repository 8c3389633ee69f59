/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and sets of the CUDA runtime (CUDA Runtime API, "Memory Management").
 *
 * Here the parameters become one engine_copy or engine_set. Checked here: the kind (cudaErrorInvalidMemcpyDirection),
 * pitches (cudaErrorInvalidPitchValue), symbols (cudaErrorInvalidSymbol) and the range within a symbol; the rest is the
 * engine's. A copy of nothing succeeds whatever its pointers are. */
#include "driver/runtime_api/cudart.h"
#include "driver/runtime_api/cudart_array.h"

static const struct {
  engine_side to, from;
} sides[] = {
    [cudaMemcpyHostToHost] = {ENGINE_SIDE_HOST, ENGINE_SIDE_HOST},
    [cudaMemcpyHostToDevice] = {ENGINE_SIDE_DEVICE, ENGINE_SIDE_HOST},
    [cudaMemcpyDeviceToHost] = {ENGINE_SIDE_HOST, ENGINE_SIDE_DEVICE},
    [cudaMemcpyDeviceToDevice] = {ENGINE_SIDE_DEVICE, ENGINE_SIDE_DEVICE},
    [cudaMemcpyDefault] = {ENGINE_SIDE_ANY, ENGINE_SIDE_ANY},
};

static cudaError_t run(engine_copy copy, cudaMemcpyKind kind) {
  bool nothing = !copy.width || !copy.height || !copy.depth;
  if ((unsigned)kind > cudaMemcpyDefault) return nothing ? cudaSuccess : cudaErrorInvalidMemcpyDirection;
  copy.to_side = sides[kind].to;
  copy.from_side = sides[kind].from;
  return engine_copy_run(&copy);
}

/* ---- 1D ---- */

/* "To the host" may be in the device, as for cuMemcpyDtoH, which NVIDIA's runtimes leave it to (libcuda_copy.c). */
static cudaMemcpyKind kind_1d(cudaMemcpyKind kind, const void *to) {
  bool there = kind == cudaMemcpyDeviceToHost && engine_pointer_find((uintptr_t)to).memory == ENGINE_DEVICE;
  return there ? cudaMemcpyDeviceToDevice : kind;
}

static engine_copy in_a_row(void *to, const void *from, size_t bytes, cudaStream_t stream, bool async) {
  return (engine_copy){.to = (uint64_t)(uintptr_t)to,
                       .from = (uint64_t)(uintptr_t)from,
                       .width = bytes,
                       .height = 1,
                       .depth = 1,
                       .stream = stream,
                       .async = async};
}

static cudaError_t copy_1d(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream,
                           bool async) {
  return run(in_a_row(to, from, bytes, stream, async), kind_1d(kind, to));
}

CUDART_PAIR(cudaMemcpy, _ptds, (void *to, const void *from, size_t bytes, cudaMemcpyKind kind),
            copy_1d(to, from, bytes, kind, engine_stream_handle(NULL, own), false))
CUDART_PAIR(cudaMemcpyAsync, _ptsz,
            (void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream),
            copy_1d(to, from, bytes, kind, engine_stream_handle(stream, own), true))

static cudaError_t copy_peer(void *to, int to_device, const void *from, int from_device, size_t bytes,
                             cudaStream_t stream, bool async) {
  cudaError_t error = engine_start();
  if (error || !bytes) return error;
  if (!cudart_is_device(to_device) || !cudart_is_device(from_device)) return cudaErrorInvalidDevice;
  engine_copy copy = in_a_row(to, from, bytes, stream, async);
  copy.peer = !async;
  return run(copy, cudaMemcpyDeviceToDevice);
}
CUDART_API cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes) {
  return engine_return(copy_peer(to, to_device, from, from_device, bytes, cudaStreamLegacy, false));
}
CUDART_API cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                           cudaStream_t stream) {
  return engine_return(copy_peer(to, to_device, from, from_device, bytes, engine_stream_handle(stream, false), true));
}

/* ---- 2D ---- */

/* Of more rows than one none may reach into the next; NVIDIA's runtime leaves the pitch of one to the driver, which
 * does not look at it (tests/programs/private_runtimes.c). */
cudaError_t cudart_pitch(uint64_t *pitch, uint64_t width, bool rows) {
  if (rows && *pitch < width) return cudaErrorInvalidPitchValue;
  if (!rows) *pitch = width;
  return cudaSuccess;
}

static cudaError_t copy_2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                           cudaMemcpyKind kind, cudaStream_t stream, bool async) {
  bool rows = width && height > 1;
  cudaError_t error = width && height ? cudart_pitch(&to_pitch, width, rows) : cudaSuccess;
  if (!error && width && height) error = cudart_pitch(&from_pitch, width, rows);
  if (error) return error;
  return run((engine_copy){.to = (uint64_t)(uintptr_t)to,
                           .from = (uint64_t)(uintptr_t)from,
                           .width = width,
                           .height = height,
                           .depth = 1,
                           .to_pitch = to_pitch,
                           .from_pitch = from_pitch,
                           .stream = stream,
                           .async = async},
             kind);
}
CUDART_PAIR(cudaMemcpy2D, _ptds,
            (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
             cudaMemcpyKind kind),
            copy_2d(to, to_pitch, from, from_pitch, width, height, kind, engine_stream_handle(NULL, own), false))
CUDART_PAIR(cudaMemcpy2DAsync, _ptsz,
            (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
             cudaMemcpyKind kind, cudaStream_t stream),
            copy_2d(to, to_pitch, from, from_pitch, width, height, kind, engine_stream_handle(stream, own), true))

/* ---- 3D ---- */

/* One side of a 3D copy; positions are texels in an array, bytes in linear memory. */
static cudaError_t box_end(cudaArray_t array, cudaPos at, cudaPitchedPtr linear, uint32_t texel, engine_side side,
                           engine_box_end *end) {
  if ((array != NULL) == (linear.ptr != NULL)) return cudaErrorInvalidValue;
  *end = (engine_box_end){.array = (engine_array *)array,
                          .address = (uint64_t)(uintptr_t)linear.ptr,
                          .pitch = linear.pitch,
                          .rows = linear.ysize,
                          .y = at.y,
                          .z = at.z,
                          .side = side};
  return __builtin_mul_overflow((uint64_t)at.x, (uint64_t)(array ? texel : 1), &end->x) ? cudaErrorInvalidValue
                                                                                        : cudaSuccess;
}

/* Bytes of a texel of the array; 1 without one. */
static cudaError_t texel_of(cudaArray_t array, uint32_t *bytes) {
  engine_array_shape shape;
  *bytes = 1;
  if (!array) return cudaSuccess;
  cudaError_t error = engine_array_describe((engine_array *)array, &shape);
  if (!error) *bytes = engine_format_bytes(shape.format);
  return error;
}

/* The rows of a linear side and those of its slices; NVIDIA's runtime compares the extent as it stands, in texels where
 * the other side is an array. */
static cudaError_t box_pitch(cudaExtent extent, const engine_box *box, engine_box_end *end) {
  if (end->array || !extent.width || !extent.height || !extent.depth) return cudaSuccess;
  if ((extent.height > 1 || extent.depth > 1) && end->pitch < extent.width) return cudaErrorInvalidPitchValue;
  if (extent.depth > 1 && end->rows < extent.height) return cudaErrorInvalidPitchValue;
  uint64_t last;
  if (__builtin_add_overflow(end->x, box->width, &last)) return cudaErrorInvalidValue;
  if (!end->pitch) end->pitch = last;
  return end->pitch < last ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t cudart_box(const cudaMemcpy3DParms *p, cudaStream_t stream, bool async, engine_box *box) {
  uint32_t to_texel, from_texel;
  if (!p) return cudaErrorInvalidValue;
  if ((unsigned)p->kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  cudaError_t error = texel_of(p->dstArray, &to_texel);
  if (!error) error = texel_of(p->srcArray, &from_texel);
  *box = (engine_box){
      .width = p->extent.width, .height = p->extent.height, .depth = p->extent.depth, .stream = stream, .async = async};
  if (!error) error = box_end(p->dstArray, p->dstPos, p->dstPtr, to_texel, sides[p->kind].to, &box->to);
  if (!error) error = box_end(p->srcArray, p->srcPos, p->srcPtr, from_texel, sides[p->kind].from, &box->from);
  if (error) return error;
  /* An array's place is known; kinds that call it the host's are wrong. */
  if ((p->dstArray && sides[p->kind].to == ENGINE_SIDE_HOST) ||
      (p->srcArray && sides[p->kind].from == ENGINE_SIDE_HOST))
    return cudaErrorInvalidMemcpyDirection;
  uint32_t texel = p->dstArray ? to_texel : from_texel;
  if (__builtin_mul_overflow(box->width, (uint64_t)texel, &box->width)) return cudaErrorInvalidValue;
  error = box_pitch(p->extent, box, &box->to);
  return error ? error : box_pitch(p->extent, box, &box->from);
}

static cudaError_t copy_3d(const cudaMemcpy3DParms *p, cudaStream_t stream, bool async) {
  engine_box box;
  cudaError_t error = cudart_box(p, stream, async, &box);
  return error ? error : engine_box_run(&box);
}

cudaError_t cudart_copy_params(const cudaMemcpy3DParms *p, engine_copy *copy) {
  engine_box box;
  cudaError_t error = cudart_box(p, NULL, true, &box);
  return error ? error : engine_box_resolve(&box, copy);
}
CUDART_PAIR(cudaMemcpy3D, _ptds, (const cudaMemcpy3DParms *p), copy_3d(p, engine_stream_handle(NULL, own), false))
CUDART_PAIR(cudaMemcpy3DAsync, _ptsz, (const cudaMemcpy3DParms *p, cudaStream_t stream),
            copy_3d(p, engine_stream_handle(stream, own), true))

static cudaError_t copy_3d_peer(const cudaMemcpy3DPeerParms *p, cudaStream_t stream, bool async) {
  if (!p) return cudaErrorInvalidValue;
  cudaError_t error = engine_start();
  if (error) return error;
  if (!cudart_is_device(p->srcDevice) || !cudart_is_device(p->dstDevice)) return cudaErrorInvalidDevice;
  cudaMemcpy3DParms same = {.srcArray = p->srcArray,
                            .srcPos = p->srcPos,
                            .srcPtr = p->srcPtr,
                            .dstArray = p->dstArray,
                            .dstPos = p->dstPos,
                            .dstPtr = p->dstPtr,
                            .extent = p->extent,
                            .kind = cudaMemcpyDeviceToDevice};
  return copy_3d(&same, stream, async);
}
CUDART_PAIR(cudaMemcpy3DPeer, _ptds, (const cudaMemcpy3DPeerParms *p),
            copy_3d_peer(p, engine_stream_handle(NULL, own), false))
CUDART_PAIR(cudaMemcpy3DPeerAsync, _ptsz, (const cudaMemcpy3DPeerParms *p, cudaStream_t stream),
            copy_3d_peer(p, engine_stream_handle(stream, own), true))

/* ---- symbols ---- */

cudaError_t cudart_symbol_part(const void *symbol, size_t bytes, size_t offset, uint64_t *address) {
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

static cudaError_t copy_to_symbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                                  cudaMemcpyKind kind, cudaStream_t stream, bool async) {
  uint64_t to;
  if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
    return cudaErrorInvalidMemcpyDirection;
  cudaError_t error = cudart_symbol_part(symbol, bytes, offset, &to);
  return error ? error : copy_1d((void *)(uintptr_t)to, from, bytes, kind, stream, async);
}
CUDART_PAIR(cudaMemcpyToSymbol, _ptds,
            (const void *symbol, const void *from, size_t bytes, size_t offset, cudaMemcpyKind kind),
            copy_to_symbol(symbol, from, bytes, offset, kind, engine_stream_handle(NULL, own), false))
CUDART_PAIR(cudaMemcpyToSymbolAsync, _ptsz,
            (const void *symbol, const void *from, size_t bytes, size_t offset, cudaMemcpyKind kind,
             cudaStream_t stream),
            copy_to_symbol(symbol, from, bytes, offset, kind, engine_stream_handle(stream, own), true))

static cudaError_t copy_from_symbol(void *to, const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind kind,
                                    cudaStream_t stream, bool async) {
  uint64_t from;
  if (kind != cudaMemcpyDeviceToHost && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
    return cudaErrorInvalidMemcpyDirection;
  cudaError_t error = cudart_symbol_part(symbol, bytes, offset, &from);
  return error ? error : copy_1d(to, (const void *)(uintptr_t)from, bytes, kind, stream, async);
}
CUDART_PAIR(cudaMemcpyFromSymbol, _ptds,
            (void *to, const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind kind),
            copy_from_symbol(to, symbol, bytes, offset, kind, engine_stream_handle(NULL, own), false))
CUDART_PAIR(cudaMemcpyFromSymbolAsync, _ptsz,
            (void *to, const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind kind, cudaStream_t stream),
            copy_from_symbol(to, symbol, bytes, offset, kind, engine_stream_handle(stream, own), true))

/* ---- sets ---- */

static cudaError_t set_3d(void *to, size_t pitch, size_t slice, int value, cudaExtent size, cudaStream_t stream,
                          bool async) {
  bool something = size.width && size.height && size.depth;
  if (something && (size.height > 1 || size.depth > 1) && pitch < size.width) return cudaErrorInvalidValue;
  engine_set set = {.to = (uint64_t)(uintptr_t)to,
                    .width = size.width,
                    .height = size.height,
                    .depth = size.depth,
                    .pitch = pitch,
                    .slice = slice,
                    .value = (uint32_t)value & 0xff,
                    .element = 1,
                    .stream = stream,
                    .async = async};
  cudaError_t error = engine_set_run(&set);
  return error == cudaErrorInvalidPitchValue ? cudaErrorInvalidValue : error;
}

CUDART_PAIR(cudaMemset, _ptds, (void *to, int value, size_t bytes),
            set_3d(to, 0, 0, value, (cudaExtent){bytes, 1, 1}, engine_stream_handle(NULL, own), false))
CUDART_PAIR(cudaMemsetAsync, _ptsz, (void *to, int value, size_t bytes, cudaStream_t stream),
            set_3d(to, 0, 0, value, (cudaExtent){bytes, 1, 1}, engine_stream_handle(stream, own), true))
CUDART_PAIR(cudaMemset2D, _ptds, (void *to, size_t pitch, int value, size_t width, size_t height),
            set_3d(to, pitch, 0, value, (cudaExtent){width, height, 1}, engine_stream_handle(NULL, own), false))
CUDART_PAIR(cudaMemset2DAsync, _ptsz,
            (void *to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),
            set_3d(to, pitch, 0, value, (cudaExtent){width, height, 1}, engine_stream_handle(stream, own), true))
static cudaError_t set_slices(cudaPitchedPtr to, int value, cudaExtent size, cudaStream_t stream, bool async) {
  if (size.width && size.depth && size.height > to.ysize) return cudaErrorInvalidValue;
  return set_3d(to.ptr, to.pitch, to.pitch * to.ysize, value, size, stream, async);
}
CUDART_PAIR(cudaMemset3D, _ptds, (cudaPitchedPtr to, int value, cudaExtent extent),
            set_slices(to, value, extent, engine_stream_handle(NULL, own), false))
CUDART_PAIR(cudaMemset3DAsync, _ptsz, (cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream),
            set_slices(to, value, extent, engine_stream_handle(stream, own), true))
