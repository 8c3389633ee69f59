/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the CUDA driver API that the workloads use, as a few calls that end the program on an error.
 *
 * libcuda.so.1 is opened by name at start, so the workloads build without CUDA and run on whatever stands in front:
 * `farfault run` puts its virtual GPU there, a machine with an NVIDIA driver has the real one. An error names the
 * driver call, what it was about, and the driver's own name for the error; the exit status is then 2. */
#ifndef WORKLOADS_COMMON_GPU_H
#define WORKLOADS_COMMON_GPU_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t gpu_pointer;         /* CUdeviceptr */
typedef struct CUfunc_st *gpu_kernel; /* CUfunction */

/* Device 0, its primary context, and the module of that PTX text (NUL-terminated); NULL: no module yet. */
void gpu_open(const char *ptx);
/* The module of that PTX text, where gpu_open was given none: once. */
void gpu_load(const char *ptx);
void gpu_close(void);

gpu_kernel gpu_find_kernel(const char *name);
/* The address of a __device__ or __constant__ variable of the module. */
gpu_pointer gpu_find_variable(const char *name);

gpu_pointer gpu_allocate(size_t bytes);
void gpu_free(gpu_pointer address);
void gpu_copy_to_device(gpu_pointer to, const void *from, size_t bytes);
void gpu_copy_to_host(void *to, gpu_pointer from, size_t bytes);
void gpu_set_words(gpu_pointer to, uint32_t word, size_t words);
/* Managed memory, attached to the whole device; freed by gpu_free. */
void *gpu_allocate_managed(size_t bytes);
/* Host memory that the GPU can reach; a copy from there to the device, which does not wait. */
void *gpu_allocate_pinned(size_t bytes);
void gpu_free_pinned(void *memory);
void gpu_copy_pinned(gpu_pointer to, const void *from, size_t bytes);
/* A stream that does not wait for the default one, nor that for it. NULL is the default stream. */
typedef struct CUstream_st *gpu_stream;
gpu_stream gpu_open_stream(void);
void gpu_close_stream(gpu_stream stream);
void gpu_copy_pinned_on(gpu_stream stream, gpu_pointer to, const void *from, size_t bytes);
/* What `later` is given from now on waits for all that `earlier` was given so far. */
void gpu_after(gpu_stream later, gpu_stream earlier);
/* Rows of so many bytes in planes, which lie close together at `from`, to where rows lie `pitch` bytes apart and planes
 * `plane_rows` rows. */
typedef struct gpu_box {
  size_t width, rows, planes; /* width: bytes */
  size_t pitch, plane_rows;
} gpu_box;
void gpu_copy_box(gpu_pointer to, const void *from, gpu_box box);
void gpu_copy_box_to_host(void *to, gpu_pointer from, gpu_box box); /* and back */
/* gpu_allocate and gpu_copy_to_device at once. */
gpu_pointer gpu_upload(const void *from, size_t bytes);

typedef struct gpu_shape { /* of a launch: blocks in the grid, threads in a block */
  unsigned grid_x, grid_y, block_x, block_y;
} gpu_shape;

/* arguments[i] points at the kernel's i-th argument, as in cuLaunchKernel. Does not wait. */
void gpu_launch(gpu_kernel kernel, gpu_shape shape, void **arguments);
/* The same with so many bytes of dynamic shared memory; more than 48 KiB have to be allowed for the kernel first. */
void gpu_launch_shared(gpu_kernel kernel, gpu_shape shape, unsigned shared_bytes, void **arguments);
void gpu_allow_shared(gpu_kernel kernel, unsigned bytes);
/* From now on the L2 keeps that range for kernels of this program: a `share` of its lines, 0 to 1, persist in `set_aside`
 * bytes of it, and the others are streamed. Of 0 bytes: nothing persists any more. For GPUs from 8.0 on. */
void gpu_keep(gpu_pointer address, size_t bytes, size_t set_aside, double share);
void gpu_wait(void);
/* What a benchmark's own clock would measure begins, or ends: what --profile-range counts (cuProfilerStart, ...Stop). */
void gpu_measure(int begins);

/* Of device 0. */
enum {
  GPU_CLOCK_KHZ = 13,         /* CU_DEVICE_ATTRIBUTE_CLOCK_RATE */
  GPU_SMS = 16,               /* ..._MULTIPROCESSOR_COUNT */
  GPU_L2_BYTES = 38,          /* ..._L2_CACHE_SIZE */
  GPU_SM_THREADS = 39,        /* ..._MAX_THREADS_PER_MULTIPROCESSOR */
  GPU_SM_SHARED_BYTES = 81,   /* ..._MAX_SHARED_MEMORY_PER_MULTIPROCESSOR */
  GPU_BLOCK_SHARED_BYTES = 97, /* ..._MAX_SHARED_MEMORY_PER_BLOCK_OPTIN */
  GPU_RESERVED_BYTES = 111     /* ..._RESERVED_SHARED_MEMORY_PER_BLOCK */
};
int gpu_attribute(int attribute);
/* Managed memory goes to device 0 (cuMemPrefetchAsync). Does not wait. */
void gpu_prefetch(const void *address, size_t bytes);

/* A point in the default stream, and how long it took from one to another. gpu_microseconds waits for the second and gives both
 * up. */
typedef struct CUevent_st *gpu_time;
gpu_time gpu_record(void);
double gpu_microseconds(gpu_time from, gpu_time to);

/* GPU_LAUNCH(kernel, shape, argument, ...): the arguments are variables (their addresses are taken). */
#define GPU_ADDRESSES_1(a) &(a)
#define GPU_ADDRESSES_2(a, ...) &(a), GPU_ADDRESSES_1(__VA_ARGS__)
#define GPU_ADDRESSES_3(a, ...) &(a), GPU_ADDRESSES_2(__VA_ARGS__)
#define GPU_ADDRESSES_4(a, ...) &(a), GPU_ADDRESSES_3(__VA_ARGS__)
#define GPU_ADDRESSES_5(a, ...) &(a), GPU_ADDRESSES_4(__VA_ARGS__)
#define GPU_ADDRESSES_6(a, ...) &(a), GPU_ADDRESSES_5(__VA_ARGS__)
#define GPU_ADDRESSES_7(a, ...) &(a), GPU_ADDRESSES_6(__VA_ARGS__)
#define GPU_ADDRESSES_8(a, ...) &(a), GPU_ADDRESSES_7(__VA_ARGS__)
#define GPU_ADDRESSES_9(a, ...) &(a), GPU_ADDRESSES_8(__VA_ARGS__)
#define GPU_ADDRESSES_10(a, ...) &(a), GPU_ADDRESSES_9(__VA_ARGS__)
#define GPU_PICK(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, name, ...) name
#define GPU_ADDRESSES(...)                                                                                             \
  GPU_PICK(__VA_ARGS__, GPU_ADDRESSES_10, GPU_ADDRESSES_9, GPU_ADDRESSES_8, GPU_ADDRESSES_7, GPU_ADDRESSES_6,          \
           GPU_ADDRESSES_5, GPU_ADDRESSES_4, GPU_ADDRESSES_3, GPU_ADDRESSES_2, GPU_ADDRESSES_1, )                      \
  (__VA_ARGS__)
#define GPU_LAUNCH(kernel, shape, ...) gpu_launch((kernel), (shape), (void *[]){GPU_ADDRESSES(__VA_ARGS__)})

static inline void gpu_swap(gpu_pointer *a, gpu_pointer *b) {
  gpu_pointer kept = *a;
  *a = *b;
  *b = kept;
}

static inline unsigned gpu_divide_up(uint64_t a, unsigned b) { return (unsigned)((a + b - 1) / b); }

#endif
