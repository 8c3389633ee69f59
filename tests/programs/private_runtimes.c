/* SPDX-License-Identifier: Apache-2.0 */
/* Much of what a program does with its CUDA runtime, and what comes of it: linked with NVIDIA's runtimes and with ours,
 * it must print and simulate the same (private_runtimes.sh). Compiled without NVIDIA's headers; VERSION: of the
 * runtime, FATBIN: the kernels' file (private_runtimes.ptx), registered as nvcc's code does it. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

__asm__(
    ".section .nv_fatbin,\"a\",@progbits\n.balign 8\nfatbin_bytes:\n.incbin \"" FATBIN "\"\n"
    ".section .nvFatBinSegment,\"aw\",@progbits\n.balign 8\nfatbin_wrapper: .long 0x466243b1, 1\n.quad fatbin_bytes, 0\n.text\n");
extern char fatbin_wrapper[];

typedef struct dim3 {
  unsigned x, y, z;
} dim3;
typedef int error;
typedef struct pointer_facts {
  int type, device;
  void *on_device, *on_host;
  long more[8];
} pointer_facts;

typedef struct kernel_node {
  const void *function;
  dim3 grid, block;
  unsigned shared;
  void **arguments, **extra;
} kernel_node;

typedef struct copy_node {
  void *from_array;
  size_t from_at[3];
  void *from;
  size_t from_shape[3];
  void *to_array;
  size_t to_at[3];
  void *to;
  size_t to_shape[3], extent[3];
  int kind;
} copy_node;
typedef struct set_node {
  void *to;
  size_t pitch;
  unsigned value, element;
  size_t width, height;
} set_node;

typedef struct peer_copy {
  void *from_array;
  size_t from_at[3];
  void *from;
  size_t from_shape[3];
  int from_device;
  void *to_array;
  size_t to_at[3];
  void *to;
  size_t to_shape[3];
  int to_device;
  size_t extent[3];
} peer_copy;

typedef struct extent_3d {
  size_t width, height, depth;
} extent_3d;
typedef struct pitched {
  void *pointer;
  size_t pitch, width, rows;
} pitched;
typedef struct channel_format {
  int x, y, z, w, kind;
} channel_format;
typedef struct linear_facts {
  void *pointer;
  channel_format format;
  size_t shape[3]; /* linear: bytes; pitched: texels, rows, pitch */
} linear_facts;
typedef struct resource_facts {
  int type; /* 0: an array, 2: linear, 3: pitched */
  union {
    void *array;
    linear_facts linear;
    int reserved[32];
  } u;
} resource_facts;
typedef struct texture_facts {
  int address[3], filter, read, more[16];
} texture_facts;

void **__cudaRegisterFatBinary(void *);
void __cudaRegisterFatBinaryEnd(void **), __cudaUnregisterFatBinary(void **);
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *, void *, void *, int *);
void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int);
void __cudaRegisterManagedVar(void **, void **, char *, const char *, int, size_t, int, int);
char __cudaInitModule(void **);
error cudaRuntimeGetVersion(int *), cudaDriverGetVersion(int *), cudaGetLastError(void), cudaPeekAtLastError(void);
const char *cudaGetErrorName(error);
error cudaGetDeviceCount(int *), cudaSetDevice(int), cudaGetDevice(int *), cudaDeviceReset(void),
    cudaDeviceSynchronize(void), cudaDeviceGetAttribute(int *, int, int), cudaDeviceCanAccessPeer(int *, int, int),
    cudaDeviceEnablePeerAccess(int, unsigned), cudaMemGetInfo(size_t *, size_t *), cudaDeviceGetLimit(size_t *, int),
    cudaDeviceGetPCIBusId(char *, int, int);
#if VERSION == 12
#define cudaGetDeviceProperties cudaGetDeviceProperties_v2
#endif
error cudaGetDeviceProperties(void *, int);
error cudaDeviceGetP2PAttribute(int *, int, int, int), cudaSetValidDevices(int *, int);
#if VERSION >= 12
error cudaInitDevice(int, unsigned, unsigned);
error cudaLibraryLoadData(void *, const void *, void *, void *, unsigned, void *, void *, unsigned),
    cudaLibraryUnload(void *), cudaLibraryGetKernel(void *, void *, const char *),
    cudaLibraryGetGlobal(void *, size_t *, void *, const char *), cudaLibraryGetKernelCount(unsigned *, void *),
    cudaLibraryEnumerateKernels(void *, unsigned, void *), cudaLibraryGetUnifiedFunction(void *, void *, const char *),
    cudaKernelSetAttributeForDevice(void *, int, int, int);
#endif
error cudaMalloc(void *, size_t), cudaFree(void *), cudaMallocManaged(void *, size_t, unsigned), cudaFreeHost(void *),
    cudaHostAlloc(void *, size_t, unsigned), cudaHostGetDevicePointer(void *, void *, unsigned),
    cudaMallocPitch(void *, size_t *, size_t, size_t), cudaMallocAsync(void *, size_t, void *),
    cudaFreeAsync(void *, void *), cudaHostRegister(void *, size_t, unsigned), cudaHostUnregister(void *),
    cudaPointerGetAttributes(pointer_facts *, const void *);
error cudaMemcpy(void *, const void *, size_t, int), cudaMemcpyAsync(void *, const void *, size_t, int, void *),
    cudaMemcpyPeer(void *, int, const void *, int, size_t), cudaMemcpy3DPeer(const peer_copy *),
    cudaMemcpy3DPeerAsync(const peer_copy *, void *), cudaMemset(void *, int, size_t),
    cudaMemsetAsync(void *, int, size_t, void *),
    cudaMemcpy2D(void *, size_t, const void *, size_t, size_t, size_t, int), cudaMemcpy3D(const copy_node *),
    cudaMemset3D(pitched, int, extent_3d);
error cudaMalloc3DArray(void *, const channel_format *, extent_3d, unsigned),
    cudaMallocArray(void *, const channel_format *, size_t, size_t, unsigned), cudaFreeArray(void *),
    cudaCreateTextureObject(unsigned long long *, const resource_facts *, const texture_facts *, const void *),
    cudaDestroyTextureObject(unsigned long long);
error cudaMemcpyToSymbol(const void *, const void *, size_t, size_t, int),
    cudaMemcpyFromSymbol(void *, const void *, size_t, size_t, int), cudaGetSymbolAddress(void *, const void *),
    cudaGetSymbolSize(size_t *, const void *);
error cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, void *),
    cudaLaunchHostFunc(void *, void (*)(void *), void *), cudaFuncGetAttributes(void *, const void *),
    cudaFuncSetAttribute(const void *, int, int), cudaFuncSetCacheConfig(const void *, int),
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *, const void *, int, size_t);
error cudaStreamCreate(void *), cudaStreamCreateWithFlags(void *, unsigned),
    cudaStreamCreateWithPriority(void *, unsigned, int), cudaStreamDestroy(void *), cudaStreamSynchronize(void *),
    cudaStreamQuery(void *), cudaStreamWaitEvent(void *, void *, unsigned),
    cudaStreamAddCallback(void *, void (*)(void *, error, void *), void *, unsigned),
    cudaStreamGetPriority(void *, int *);
error cudaEventCreate(void *), cudaEventCreateWithFlags(void *, unsigned), cudaEventRecord(void *, void *),
    cudaEventSynchronize(void *), cudaEventQuery(void *), cudaEventElapsedTime(float *, void *, void *),
    cudaEventDestroy(void *);
error cudaStreamBeginCapture(void *, int), cudaStreamEndCapture(void *, void *),
    cudaGraphInstantiateWithFlags(void *, void *, unsigned long long), cudaGraphLaunch(void *, void *),
    cudaGraphExecDestroy(void *), cudaGraphDestroy(void *), cudaGraphGetNodes(void *, void *, size_t *),
    cudaGraphNodeGetType(void *, int *), cudaGraphKernelNodeGetParams(void *, kernel_node *),
    cudaGraphCreate(void *, unsigned), cudaGraphAddKernelNode(void *, void *, void *, size_t, kernel_node *),
    cudaGraphKernelNodeSetParams(void *, kernel_node *),
    cudaGraphExecKernelNodeSetParams(void *, void *, kernel_node *),
    cudaGraphAddMemcpyNode1D(void *, void *, void *, size_t, void *, const void *, size_t, int),
    cudaGraphMemcpyNodeGetParams(void *, copy_node *),
    cudaGraphAddEventRecordNode(void *, void *, void *, size_t, void *),
    cudaGraphAddMemsetNode(void *, void *, void *, size_t, set_node *),
    cudaGetDriverEntryPoint(const char *, void *, unsigned long long, int *);

enum { N = 1000, BYTES = 4 * N, TO_DEVICE = 1, TO_HOST = 2, PER_THREAD = 2 };

static char combine[1], meet[1], launches[1], factors[1], unknown[1]; /* what stands for them on the host */
static int *meeting;
static void **registered;

static void check(error result, int line) {
  if (!result) return;
  printf("line %d: %s\n", line, cudaGetErrorName(result));
  exit(1);
}
#define CHECK(call) check(call, __LINE__)
#define TELL(call) printf("%s: %s\n", #call, cudaGetErrorName(call))

static void unregister(void) { __cudaUnregisterFatBinary(registered); }

__attribute__((constructor)) static void register_code(void) {
  registered = __cudaRegisterFatBinary(fatbin_wrapper);
  __cudaRegisterFunction(registered, combine, "combine", "combine", -1, NULL, NULL, NULL, NULL, NULL);
  __cudaRegisterFunction(registered, meet, "meet", "meet", -1, NULL, NULL, NULL, NULL, NULL);
  __cudaRegisterVar(registered, launches, "launches", "launches", 0, 4, 0, 0);
  __cudaRegisterVar(registered, factors, "factors", "factors", 0, 16, 1, 0);
  __cudaRegisterManagedVar(registered, (void **)&meeting, "meeting", "meeting", 0, 4, 0, 0);
  __cudaRegisterFatBinaryEnd(registered);
  atexit(unregister);
}

static error launch_combine(float *a, float *b, float *out, void *stream) {
  int n = N;
  void *arguments[] = {&a, &b, &out, &n};
  return cudaLaunchKernel(combine, (dim3){(N + 255) / 256, 1, 1}, (dim3){256, 1, 1}, arguments, 0, stream);
}

static float *numbers(float by) {
  static float values[N];
  for (int i = 0; i < N; i++) values[i] = by * (float)i;
  return values;
}

static void tell_sum(const char *what, const float *values) {
  double sum = 0;
  for (int i = 0; i < N; i++) sum += values[i];
  printf("%s: %.9g\n", what, sum);
}

static void symbols(void) {
  int count;
  size_t size;
  void *address;
  float table[4] = {1, 2, 3, 4}, back[4] = {0}, *a, *b, *out;
  CHECK(cudaMemcpyToSymbol(factors, table, sizeof table, 0, TO_DEVICE));
  CHECK(cudaMemcpyFromSymbol(back, factors, 8, 4, TO_HOST));
  CHECK(cudaGetSymbolSize(&size, factors));
  CHECK(cudaGetSymbolAddress(&address, launches));
  CHECK(cudaMemcpyFromSymbol(&count, launches, 4, 0, TO_HOST));
  printf("symbols: %g %g, %zu bytes, %d, %s\n", back[0], back[1], size, count, address ? "somewhere" : "nowhere");
  CHECK(cudaMalloc(&a, BYTES));
  CHECK(cudaMalloc(&b, BYTES));
  CHECK(cudaMallocManaged(&out, BYTES, 1));
  CHECK(cudaMemcpy(a, numbers(1), BYTES, TO_DEVICE));
  CHECK(cudaMemcpy(b, numbers(10), BYTES, TO_DEVICE));
  CHECK(launch_combine(a, b, out, NULL));
  CHECK(cudaMemcpyFromSymbol(&count, launches, 4, 0, TO_HOST));
  tell_sum("combined", out);
  printf("blocks: %d\n", count);
  CHECK(cudaMemcpy(&count, address, 4, TO_HOST));
  printf("and at its address: %d\n", count);
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFree(out));
}

/* Allocations of no bytes. */
static void nothing(void) {
  void *pointer = &pointer;
  TELL(cudaMallocManaged(&pointer, 0, 1));
  printf("nothing: %d\n", !pointer);
  pointer = &pointer;
  TELL(cudaMallocAsync(&pointer, 0, NULL));
  printf("nothing: %d\n", !pointer);
  TELL(cudaFreeAsync(NULL, NULL));
}

static void managed(void) {
  int by = 4;
  void *arguments[] = {&by};
  printf("init: %d\n", __cudaInitModule(registered));
  printf("meeting: %d\n", *meeting);
  *meeting += 100;
  CHECK(cudaLaunchKernel(meet, (dim3){1, 1, 1}, (dim3){8, 1, 1}, arguments, 0, NULL));
  CHECK(cudaDeviceSynchronize());
  printf("meeting: %d\n", *meeting);
}

static void called(void *count) { ++*(int *)count; }
static void called_back(void *stream, error status, void *count) { *(int *)count += status || !stream ? 100 : 10; }

static void streams(void) {
  float *host, *a, *b, milliseconds = -1;
  int count = 0, priority;
  void *first, *second, *third, *start, *stop, *plain;
  CHECK(cudaHostAlloc(&host, BYTES, 0)); /* as cudaMallocHost of C++ */
  CHECK(cudaMalloc(&a, BYTES));
  CHECK(cudaMalloc(&b, BYTES));
  memcpy(host, numbers(3), BYTES);
  CHECK(cudaStreamCreate(&first));
  CHECK(cudaStreamCreateWithFlags(&second, 1));
  CHECK(cudaStreamCreateWithPriority(&third, 1, -1));
  CHECK(cudaStreamGetPriority(third, &priority));
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  CHECK(cudaEventCreateWithFlags(&plain, 2));
  TELL(cudaEventQuery(start));
  TELL(cudaEventElapsedTime(&milliseconds, start, stop));
  CHECK(cudaEventRecord(start, first));
  CHECK(cudaMemcpyAsync(a, host, BYTES, TO_DEVICE, first));
  CHECK(cudaMemsetAsync(b, 0, BYTES, second));
  CHECK(cudaEventRecord(plain, second));
  CHECK(cudaStreamWaitEvent(first, plain, 0));
  CHECK(launch_combine(a, b, a, first));
  CHECK(cudaMemcpyAsync(host, a, BYTES, TO_HOST, first));
  CHECK(cudaEventRecord(stop, first));
  CHECK(cudaLaunchHostFunc(first, called, &count));
  CHECK(cudaStreamAddCallback(first, called_back, &count, 0));
  CHECK(cudaStreamSynchronize(first));
  CHECK(cudaEventSynchronize(stop));
  TELL(cudaStreamQuery(first));
  TELL(cudaEventQuery(stop));
  CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
  TELL(cudaEventElapsedTime(&milliseconds, start, plain));
  printf("streams: priority %d, called %d, time %s\n", priority, count, milliseconds > 0 ? "passes" : "stands");
  tell_sum("through a stream", host);
  CHECK(launch_combine(a, b, b, (void *)PER_THREAD));
  CHECK(launch_combine(a, b, b, third));
  CHECK(cudaStreamSynchronize((void *)PER_THREAD));
  CHECK(cudaStreamDestroy(first));
  CHECK(cudaStreamDestroy(second));
  CHECK(cudaStreamDestroy(third));
  CHECK(cudaEventDestroy(start));
  CHECK(cudaEventDestroy(stop));
  CHECK(cudaEventDestroy(plain));
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFreeHost(host));
}

/* A kernel's node names the function that the program launched. */
static void tell_kernels(void *graph) {
  void *nodes[8];
  size_t count = 8;
  CHECK(cudaGraphGetNodes(graph, nodes, &count));
  for (size_t n = 0; n < count; n++) {
    kernel_node kernel = {0};
    int type = -1;
    CHECK(cudaGraphNodeGetType(nodes[n], &type));
    if (type) continue;
    CHECK(cudaGraphKernelNodeGetParams(nodes[n], &kernel));
    printf("kernel node: combine %d, grid %u, block %u\n", kernel.function == (const void *)combine, kernel.grid.x,
           kernel.block.x);
  }
}

static void graphs(void) {
  float *a, *b, *host = numbers(2);
  void *stream, *graph, *executable;
  size_t nodes = 0;
  CHECK(cudaMalloc(&a, BYTES));
  CHECK(cudaMalloc(&b, BYTES));
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamBeginCapture(stream, 0));
  CHECK(cudaMemcpyAsync(a, host, BYTES, TO_DEVICE, stream));
  CHECK(cudaMemsetAsync(b, 0, BYTES, stream));
  CHECK(launch_combine(a, a, b, stream));
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphGetNodes(graph, NULL, &nodes));
  CHECK(cudaGraphInstantiateWithFlags(&executable, graph, 0));
  for (int i = 0; i < 2; i++) CHECK(cudaGraphLaunch(executable, stream));
  CHECK(cudaStreamSynchronize(stream));
  float back[N];
  CHECK(cudaMemcpy(back, b, BYTES, TO_HOST));
  printf("graph: %zu nodes\n", nodes);
  tell_kernels(graph);
  tell_sum("by a graph", back);
  CHECK(cudaGraphExecDestroy(executable));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
}

static void memory(void) {
  char *device, *pitched, *host, *mapped, *pooled, rows[3 * 10], back[3 * 10];
  static char own[8192] __attribute__((aligned(4096)));
  size_t pitch, available, total;
  pointer_facts facts = {0};
  CHECK(cudaFree(NULL));
  CHECK(cudaMalloc(&device, 100));
  CHECK(cudaMemset(device, 7, 100));
  CHECK(cudaMallocPitch(&pitched, &pitch, 10, 3));
  for (int i = 0; i < 30; i++) rows[i] = (char)i;
  CHECK(cudaMemcpy2D(pitched, pitch, rows, 10, 10, 3, TO_DEVICE));
  CHECK(cudaMemcpy2D(back, 10, pitched, pitch, 10, 3, TO_HOST));
  printf("pitch %zu: %s\n", pitch, memcmp(rows, back, 30) ? "differs" : "the same");
  CHECK(cudaHostAlloc(&host, 4096, 2));
  CHECK(cudaHostGetDevicePointer(&mapped, host, 0));
  CHECK(cudaHostRegister(own, sizeof own, 0));
  CHECK(cudaPointerGetAttributes(&facts, device + 5));
  printf("device pointer: type %d, device %d\n", facts.type, facts.device);
  CHECK(cudaPointerGetAttributes(&facts, host));
  printf("host pointer: type %d, device %d, %s\n", facts.type, facts.device, mapped == host ? "the same" : "another");
  CHECK(cudaMallocAsync(&pooled, 1000, NULL));
  CHECK(cudaMemsetAsync(pooled, 1, 1000, NULL));
  CHECK(cudaFreeAsync(pooled, NULL));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemGetInfo(&available, &total));
  printf("memory: %zu of %zu\n", available, total);
  CHECK(cudaHostUnregister(own));
  CHECK(cudaFreeHost(host));
  CHECK(cudaFreeHost(NULL));
  CHECK(cudaFree(pitched));
  CHECK(cudaFree(device));
}

/* Rows, slices and pitches that fit and do not, and what may be read of which format and how. */
static void pitches(void) {
  static char host[1 << 14];
  static const size_t steps[] = {0, 32, 64};
  static const channel_format floats = {.x = 32, .kind = 2};
  char *device;
  void *array;
  CHECK(cudaMalloc(&device, sizeof host));
  CHECK(cudaMalloc3DArray(&array, &floats, (extent_3d){8, 8, 8}, 0));
  for (int n = 0; n < 9 * 2; n++) {
    size_t to = steps[n % 3], from = steps[n / 3 % 3], height = n < 9 ? 1 : 4;
    printf("2D: %zu from %zu, %zu rows: ", to, from, height);
    TELL(cudaMemcpy2D(device, to, host, from, 64, height, TO_DEVICE));
    printf("2D: %zu from %zu, %zu rows, pitches less than those: ", to, from, height);
    TELL(cudaMemcpy2D(device, to / 8, host, from / 8, 64, height, TO_DEVICE));
  }
  for (int n = 0; n < 3 * 3 * 2 * 2 * 2; n++) {
    size_t pitch = steps[n % 3], rows = 2 * (size_t)(n / 3 % 3), x = n / 36 ? 8 : 0;
    extent_3d extent = {64, n / 9 % 2 ? 4 : 1, 1 + (size_t)(n / 18 % 2)};
    copy_node copy = {.from = host,
                      .from_shape = {pitch, 64, rows},
                      .from_at = {x, 0, 0},
                      .to = device,
                      .to_shape = {128, 128, 4},
                      .extent = {extent.width, extent.height, extent.depth},
                      .kind = TO_DEVICE};
    printf("3D: pitch %zu, %zu rows, extent %zu %zu, from %zu: ", pitch, rows, extent.height, extent.depth, x);
    TELL(cudaMemcpy3D(&copy));
    copy.to_array = array;
    copy.to = NULL;
    copy.extent[0] = 8;
    TELL(cudaMemcpy3D(&copy));
    TELL(cudaMemset3D((pitched){device, pitch, 64, rows}, 0, extent));
  }
  CHECK(cudaFreeArray(array));
  for (int n = 0; n < 3 * 3 * 3 * 4; n++) {
    channel_format format = {.x = 8 << n % 3, .kind = n / 3 % 3};
    if (format.x == 8 && format.kind == 2) continue;
    resource_facts resource = {.type = n / 9 % 3 ? n / 9 % 3 + 1 : 0};
    texture_facts texture = {.filter = n / 27 % 2, .read = n / 54};
    unsigned long long object;
    if (resource.type) resource.u.linear = (linear_facts){device, format, {resource.type == 2 ? 64 : 8, 4, 512}};
    else CHECK(cudaMallocArray(&resource.u.array, &format, 8, 8, 0));
    printf("texture: %d bits of kind %d in %d, filter %d, read %d: ", format.x, format.kind, resource.type,
           texture.filter, texture.read);
    error made = cudaCreateTextureObject(&object, &resource, &texture, NULL);
    printf("%s\n", cudaGetErrorName(made));
    if (!made) CHECK(cudaDestroyTextureObject(object));
    if (!resource.type) CHECK(cudaFreeArray(resource.u.array));
  }
  for (int n = 0; n < 4; n++) {
    void *nothing_there;
    size_t pitch = 7;
    CHECK(cudaMallocPitch(&nothing_there, &pitch, n % 2 ? 4 : 0, n / 2 ? 4 : 0));
    printf("pitch %zu\n", pitch);
    CHECK(cudaFree(nothing_there));
  }
  CHECK(cudaFree(device));
}

static void questions(void) {
  int value, blocks;
  size_t limit;
  char bus[32];
  static unsigned char properties[2048];
  struct {
    size_t shared, constant, local;
    int threads, registers, ptx, binary;
    long more[32];
  } attributes = {0};
  CHECK(cudaRuntimeGetVersion(&value));
  printf("runtime %d\n", value / 1000);
  CHECK(cudaDriverGetVersion(&value));
  CHECK(cudaDeviceGetPCIBusId(bus, sizeof bus, 0));
  printf("driver %d, bus %s\n", value, bus);
  for (int i = 1; i <= 110; i++) printf(cudaDeviceGetAttribute(&value, i, 0) ? "" : "%d=%d ", i, value);
  for (int length = 0; length < 16; length += 5) {
    memset(bus, '*', sizeof bus - 1);
    TELL(cudaDeviceGetPCIBusId(bus, length, 0));
    printf("bus in %d: %.31s\n", length, bus);
  }
  for (int i = 0; i < 10; i++) {
    if (i == 4 || i == 5) continue;
    error failed = cudaDeviceGetLimit(&limit, i);
    printf("limit %d: %s, %zu\n", i, cudaGetErrorName(failed), failed ? 0 : limit);
  }
  CHECK(cudaGetDeviceProperties(properties, 0));
  printf("properties: %s\n", properties);
  for (size_t i = 256; i < sizeof properties; i += 4)
    if (memcmp(properties + i, "\0\0\0", 4)) printf("+%zu=%d ", i, *(int *)(void *)(properties + i));
  CHECK(cudaFuncGetAttributes(&attributes, combine));
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, combine, 128, 0));
  printf("\nfunction: %zu %zu %d, %d blocks, of PTX %d for %d\n", attributes.shared, attributes.constant,
         attributes.threads, blocks, attributes.ptx, attributes.binary);
}

static void failures(void) {
  void *much, *arguments[] = {&much};
  int blocks;
  TELL(cudaLaunchKernel(meet, (dim3){1, 1, 1}, (dim3){2000, 1, 1}, arguments, 0, NULL));
  TELL(cudaPeekAtLastError());
  TELL(cudaGetLastError());
  TELL(cudaGetLastError());
  TELL(cudaLaunchKernel(meet, (dim3){0, 1, 1}, (dim3){32, 1, 1}, arguments, 0, NULL));
  TELL(cudaLaunchKernel(unknown, (dim3){1, 1, 1}, (dim3){32, 1, 1}, arguments, 0, NULL));
  TELL(cudaLaunchKernel(NULL, (dim3){1, 1, 1}, (dim3){32, 1, 1}, arguments, 0, NULL));
  TELL(cudaFuncGetAttributes(arguments, unknown));
  TELL(cudaFuncSetAttribute(unknown, 8, 0));
  TELL(cudaFuncSetCacheConfig(unknown, 1));
  TELL(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, unknown, 128, 0));
  TELL(cudaMemcpyToSymbol(unknown, arguments, 4, 0, TO_DEVICE));
  TELL(cudaMalloc(&much, (size_t)1 << 60));
  TELL(cudaMemcpy(NULL, arguments, 8, TO_DEVICE));
  TELL(cudaSetDevice(7));
  TELL(cudaGetLastError());
}

/* An error of a kernel: every call returns it from then on, but reading it takes it away. */
static void fault(void) {
  void *nowhere = (void *)(uintptr_t)64;
  launch_combine(nowhere, nowhere, nowhere, NULL);
  TELL(cudaGetLastError());
  TELL(cudaDeviceSynchronize());
  TELL(cudaPeekAtLastError());
  TELL(cudaGetLastError());
  TELL(cudaGetLastError());
  TELL(cudaMalloc(&nowhere, 8));
  TELL(cudaGetLastError());
  TELL(cudaPeekAtLastError());
}

static void wrong_nodes(void) {
  void *graph, *executable, *node, *copy, *device, *more, *arguments[] = {&device};
  char host[2][64];
  CHECK(cudaMalloc(&device, sizeof host));
  CHECK(cudaGraphCreate(&graph, 0));
  kernel_node meeting_once = {.function = meet, .grid = {1, 1, 1}, .block = {1, 1, 1}, .arguments = arguments};
  CHECK(cudaGraphAddKernelNode(&node, graph, NULL, 0, &meeting_once));
  CHECK(cudaGraphInstantiateWithFlags(&executable, graph, 0));
  kernel_node impossible = meeting_once, nothing_known = meeting_once;
  impossible.block.x = 2000;
  nothing_known.function = unknown;
  TELL(cudaGraphAddKernelNode(&more, graph, NULL, 0, &impossible));
  TELL(cudaGraphKernelNodeSetParams(node, &impossible));
  TELL(cudaGraphExecKernelNodeSetParams(executable, node, &impossible));
  TELL(cudaGraphAddKernelNode(&more, graph, NULL, 0, &nothing_known));
  TELL(cudaGraphKernelNodeSetParams(node, &nothing_known));
  TELL(cudaGraphExecKernelNodeSetParams(executable, node, &nothing_known));
  char *ends[] = {host[0], host[1], device, (char *)device + 64};
  for (int kind = 0; kind <= 4; kind++) {
    char *to = ends[kind == 1 || kind == 3 ? 2 : 0], *from = ends[kind >= 2 ? 3 : 1];
    copy_node found = {.kind = -1};
    CHECK(cudaGraphAddMemcpyNode1D(&copy, graph, NULL, 0, to, from, 64, kind));
    CHECK(cudaGraphMemcpyNodeGetParams(copy, &found));
    printf("a copy of kind %d: %zu bytes of kind %d%s\n", kind, found.extent[0] * found.extent[1] * found.extent[2],
           found.kind, found.to == to && found.from == from ? "" : " from or to elsewhere");
  }
  TELL(cudaGraphAddMemcpyNode1D(&copy, graph, NULL, 0, device, host, 0, TO_DEVICE));
  TELL(cudaGraphAddEventRecordNode(&node, graph, NULL, 0, NULL));
  set_node rows = {device, 3, 0, 1, 4, 2}; /* which reach into each other */
  TELL(cudaGraphAddMemsetNode(&node, graph, NULL, 0, &rows));
  CHECK(cudaGraphExecDestroy(executable));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaFree(device));
}

/* Which form of a driver function it is. */
static void tell_form(const char *name) {
  char later[64];
  void *driver = dlopen("libcuda.so.1", RTLD_NOW), *function = NULL;
  int status = 7;
  if (!driver) exit(1);
  snprintf(later, sizeof later, "%s_v2", name);
  TELL(cudaGetDriverEntryPoint(name, &function, 0, VERSION == 11 ? (int *)1 : &status));
  printf("%s: %s\n", name,
         !function                          ? "none"
         : function == dlsym(driver, later) ? "_v2"
         : function == dlsym(driver, name)  ? "the first form"
                                            : "another function");
}

/* Without a status in CUDA 11, where another parameter's register must not be taken for it. From 13 on a runtime may be
 * newer than the driver, which then has nothing to its version: newer_questions asks by version. */
static void entry_points(void) {
  void *function = NULL;
  if (VERSION >= 13) return;
  int status = 7, *told = &status;
  TELL(cudaGetDriverEntryPoint("cuInit", &function, 0, VERSION == 11 ? (int *)1 : told));
  printf("entry point: %s\n", function ? "found" : "none");
  TELL(cudaGetDriverEntryPoint("cuNone", &function, 0, VERSION == 11 ? (int *)1 : told));
  TELL(cudaGetDriverEntryPoint("cuNone", &function, 0, VERSION == 11 ? (int *)1 : NULL));
  TELL(cudaGetDriverEntryPoint("cuInit", &function, 77, VERSION == 11 ? (int *)1 : told));
  printf("entry point: status %d\n", status);
  tell_form("cuMemPrefetchAsync"); /* _v2 since 12.2 */
  tell_form("cuMemcpyBatchAsync"); /* since 12.8, _v2 since 13.0 */
}

static void *in_a_thread(void *data) {
  float *out = data;
  int device = -1;
  CHECK(cudaGetDevice(&device));
  CHECK(launch_combine(out, out, out, (void *)PER_THREAD));
  CHECK(cudaStreamSynchronize((void *)PER_THREAD));
  return (void *)(intptr_t)(device + 1);
}

static void threads(void) {
  float *data;
  pthread_t thread;
  void *result;
  CHECK(cudaMallocManaged(&data, BYTES, 1));
  memcpy(data, numbers(1), BYTES);
  if (pthread_create(&thread, NULL, in_a_thread, data) || pthread_join(thread, &result)) exit(1);
  tell_sum("a thread", data);
  printf("on device %d\n", (int)(intptr_t)result - 1);
  CHECK(cudaFree(data));
}

static void devices(void) {
  int count, can = 0;
  float *here, *there, back[N];
  void *variable;
  CHECK(cudaGetDeviceCount(&count));
  printf("devices: %d\n", count);
  if (count < 2) return;
  CHECK(cudaMalloc(&here, BYTES));
  CHECK(cudaMemcpy(here, numbers(5), BYTES, TO_DEVICE));
  CHECK(cudaSetDevice(1));
  /* loads the code now: NVIDIA's 11 and 12 do at any first call, the others here */
  CHECK(cudaGetSymbolAddress(&variable, launches));
  CHECK(cudaMalloc(&there, BYTES));
  CHECK(cudaMemcpyPeer(there, 1, here, 0, BYTES));
  /* every second row of 64 bytes, the other way round */
  peer_copy rows = {.from = there,
                    .from_shape = {128, 64, BYTES / 128},
                    .from_device = 1,
                    .to = here,
                    .to_shape = {64, 64, BYTES / 64},
                    .extent = {64, BYTES / 128, 1}};
  TELL(cudaMemcpy3DPeer(&rows));
  TELL(cudaMemcpy3DPeerAsync(&rows, NULL));
  CHECK(cudaMemcpy(back, here, BYTES, TO_HOST));
  tell_sum("rows from there", back);
  rows.extent[2] = 0;
  TELL(cudaMemcpy3DPeer(&rows));
  rows.to_device = 7;
  TELL(cudaMemcpy3DPeer(&rows));
  cudaGetLastError();
  CHECK(cudaMemcpy(here, numbers(5), BYTES, TO_DEVICE));
  CHECK(launch_combine(there, there, there, NULL)); /* its constants are those of this device: zero */
  CHECK(cudaMemcpy(back, there, BYTES, TO_HOST));
  tell_sum("there", back);
  CHECK(cudaDeviceCanAccessPeer(&can, 1, 0));
  TELL(cudaDeviceEnablePeerAccess(0, 0));
  TELL(cudaDeviceEnablePeerAccess(0, 0));
  TELL(cudaDeviceEnablePeerAccess(1, 0)); /* itself */
  cudaGetLastError();
  CHECK(launch_combine(here, there, there, NULL));
  CHECK(cudaMemcpy(back, there, BYTES, TO_HOST));
  tell_sum(can ? "from a peer" : "not from a peer", back);
  CHECK(cudaFree(there));
  CHECK(cudaDeviceReset());
  CHECK(cudaSetDevice(0));
  CHECK(cudaFree(here));
}

static void children(void) {
  void *memory;
  int status = 0;
  fflush(stdout);
  pid_t child = fork();
  if (!child) _exit(cudaMalloc(&memory, 4)); /* 3: cudaErrorInitializationError */
  waitpid(child, &status, 0);
  printf("a child: %d\n", WEXITSTATUS(status));
}

static void tell_pointer(const char *what, const void *pointer) {
  pointer_facts facts;
  CHECK(cudaPointerGetAttributes(&facts, pointer));
  printf("%s: type %d, device %d, on the device %s, on the host %s\n", what, facts.type, facts.device,
         facts.on_device == pointer ? "the same" : "none", facts.on_host == pointer ? "the same" : "none");
}

#if VERSION >= 13
typedef struct place {
  int type, id;
} place;
error cudaMemcpyBatchAsync(void **, const void **, size_t *, size_t, int *, size_t *, size_t, void *),
    cudaMemPrefetchBatchAsync(void **, size_t *, size_t, place *, size_t *, size_t, unsigned long long, void *),
    cudaMemPrefetchAsync(const void *, size_t, place, unsigned, void *);
typedef struct box { /* cudaMemcpy3DBatchOp of two pointers */
  struct {
    size_t type;
    void *pointer;
    size_t row, layer;
    place hint;
  } from, to;
  size_t extent[3];
  int order;
  unsigned flags;
} box;
error cudaMemcpy3DBatchAsync(size_t, box *, unsigned long long, void *),
    cudaDeviceGetHostAtomicCapabilities(unsigned *, const int *, unsigned, int),
    cudaDeviceGetP2PAtomicCapabilities(unsigned *, const int *, unsigned, int, int),
    cudaLogsCurrent(unsigned *, unsigned), cudaLogsDumpToMemory(unsigned *, char *, size_t *, unsigned),
    cudaGetDriverEntryPointByVersion(const char *, void **, unsigned, unsigned long long, int *),
    cudaStreamAttachMemAsync(void *, void *, size_t, unsigned);
static void newer_questions(void *managed, void *stream) {
  unsigned can[2] = {9, 9}, at = 9;
  int operations[2] = {0, 4}, status = 7;
  char log[8] = "x";
  size_t size = sizeof log;
  void *function;
  TELL(cudaDeviceGetHostAtomicCapabilities(can, operations, 2, 0));
  TELL(cudaDeviceGetHostAtomicCapabilities(can, operations, 2, 9));
  TELL(cudaDeviceGetP2PAtomicCapabilities(can, operations, 2, 0, 1));
  TELL(cudaDeviceGetP2PAtomicCapabilities(can, operations, 2, 0, 0));
  printf("atomics: %u %u\n", can[0], can[1]);
  operations[1] = 99;
  TELL(cudaDeviceGetHostAtomicCapabilities(can, operations, 2, 0));
  TELL(cudaLogsCurrent(&at, 0));
  TELL(cudaLogsCurrent(&at, 1));
  TELL(cudaLogsDumpToMemory(&at, log, &size, 0));
  printf("log: %u, %zu bytes\n", at, size);
  TELL(cudaGetDriverEntryPointByVersion("cuInit", &function, 99000, 0, &status));
  TELL(cudaGetDriverEntryPointByVersion("cuInit", &function, 12000, 77, &status));
  TELL(cudaGetDriverEntryPointByVersion("cuInit", &function, 12000, 0, &status));
  TELL(cudaGetDriverEntryPointByVersion("cuNone", &function, 12000, 0, NULL));
  printf("entry point: %d\n", status);
  TELL(cudaStreamAttachMemAsync(stream, managed, 1024, 4));
  TELL(cudaStreamAttachMemAsync(stream, managed, 4096, 4));
}
static void boxes_at_once(void *device, void *stream) {
  int in[6] = {1, 2, 3, 4, 5, 6}, out[4] = {0};
  box list[2] = {{{1, in, 12, 0, {0, 0}}, {1, device, 0, 0, {0, 0}}, {8, 2, 1}, 1, 0},
                 {{1, device, 0, 0, {0, 0}}, {1, out, 0, 0, {0, 0}}, {16, 1, 1}, 1, 0}};
  TELL(cudaMemcpy3DBatchAsync(1, list, 0, stream));
  TELL(cudaMemcpy3DBatchAsync(1, list + 1, 0, stream));
  CHECK(cudaStreamSynchronize(stream));
  printf("a batch of boxes: %d %d %d %d\n", out[0], out[1], out[2], out[3]);
  TELL(cudaMemcpy3DBatchAsync(1, list, 0, NULL));
  TELL(cudaMemcpy3DBatchAsync(1, list, 1, stream));
  TELL(cudaMemcpy3DBatchAsync(0, list, 0, stream));
  TELL(cudaMemcpy3DBatchAsync(1, NULL, 0, stream));
  list[1].extent[1] = 0;
  TELL(cudaMemcpy3DBatchAsync(2, list, 0, stream));
  list[1].extent[1] = 1;
  list[1].to.row = 15;
  TELL(cudaMemcpy3DBatchAsync(2, list, 0, stream));
  list[1].to.row = 0;
  list[1].order = 7;
  TELL(cudaMemcpy3DBatchAsync(2, list, 0, stream));
}
static void batches(void) {
  void *stream, *device, *managed;
  int in_order[6] = {1}, no_order[6] = {0};
  size_t bytes[1] = {sizeof in_order}, first = 0, second = 1;
  const void *from = in_order;
  place here = {1, 0}, nowhere = {1, 7};
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMalloc(&device, 64));
  CHECK(cudaMallocManaged(&managed, 4096, 1));
  TELL(cudaMemcpyBatchAsync(&device, &from, bytes, 1, in_order, &first, 1, stream));
  TELL(cudaMemcpyBatchAsync(&device, &from, bytes, 1, in_order, &first, 1, NULL));
  TELL(cudaMemcpyBatchAsync(&device, &from, bytes, 1, in_order, &first, 0, stream));
  TELL(cudaMemcpyBatchAsync(&device, &from, bytes, 1, in_order, &second, 1, stream));
  TELL(cudaMemcpyBatchAsync(&device, &from, bytes, 1, no_order, &first, 1, stream));
  boxes_at_once(device, stream);
  newer_questions(managed, stream);
  TELL(cudaMemPrefetchAsync(managed, 4096, (place){0, 0}, 0, stream));
  TELL(cudaMemPrefetchBatchAsync(&managed, bytes, 1, &here, &first, 1, 0, stream));
  TELL(cudaMemPrefetchBatchAsync(&managed, bytes, 1, &nowhere, &first, 1, 0, stream));
  CHECK(cudaStreamSynchronize(stream));
  cudaGetLastError();
  CHECK(cudaFree(managed));
  CHECK(cudaFree(device));
  CHECK(cudaStreamDestroy(stream));
}
#else
static void batches(void) {}
#endif

/* Questions and orders that are refused, or answered with nothing. */
static void refusals(void) {
  int value, devices[3] = {0, 1, 5};
  static char own[2][4096];
  tell_pointer("memory of the program", own);
  tell_pointer("no memory", NULL);
  TELL(cudaHostRegister(own, sizeof own, 4)); /* as memory of another board's */
  TELL(cudaFuncSetAttribute(combine, 10, 1)); /* whether clusters must be set is the code's */
  TELL(cudaDeviceGetP2PAttribute(&value, 0, 0, 7));
  TELL(cudaDeviceGetP2PAttribute(&value, 0, 0, 1));
  TELL(cudaDeviceGetP2PAttribute(&value, 1, 0, 0));
  TELL(cudaSetValidDevices(devices, 3)); /* more than there are */
  TELL(cudaSetValidDevices(devices + 1, 2));
  TELL(cudaSetValidDevices(devices, 2));
#if VERSION >= 12
  TELL(cudaInitDevice(0, 0, 8));
#endif
  cudaGetLastError();
}

#if VERSION >= 12
static const char late_code[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
                                ".visible .global .align 4 .u32 cells[4];\n"
                                ".visible .entry first() { .shared .align 4 .b8 s[64]; ret; }\n"
                                ".visible .entry second(.param .u64 p) { ret; }\n";
static void libraries(void) {
  void *library, *kernel, *listed[3] = {NULL}, *address;
  unsigned count;
  size_t bytes;
  struct {
    size_t shared, constant, local;
    int threads, registers, ptx, binary, cached, dynamic;
    long more[32];
  } facts;
  CHECK(cudaLibraryLoadData(&library, late_code, NULL, NULL, 0, NULL, NULL, 0));
  CHECK(cudaLibraryGetKernel(&kernel, library, "first"));
  CHECK(cudaLibraryGetGlobal(&address, &bytes, library, "cells"));
  CHECK(cudaLibraryGetKernelCount(&count, library));
  CHECK(cudaLibraryEnumerateKernels(listed, 3, library));
  printf("a library: %u kernels, %d of 3 listed, %s among them, %zu bytes\n", count,
         !!listed[0] + !!listed[1] + !!listed[2], listed[0] == kernel || listed[1] == kernel ? "first" : "not first",
         bytes);
  TELL(cudaLibraryEnumerateKernels(listed, 0, library));
  TELL(cudaLibraryGetUnifiedFunction(&address, library, "first"));
  TELL(cudaKernelSetAttributeForDevice(kernel, 8, 1000, 0));
  TELL(cudaKernelSetAttributeForDevice(kernel, 8, 1000000, 0));
  TELL(cudaKernelSetAttributeForDevice(kernel, 8, 1000, 5));
  CHECK(cudaFuncGetAttributes(&facts, kernel));
  printf("first: %zu shared bytes, up to %d dynamic ones\n", facts.shared, facts.dynamic);
  CHECK(cudaLibraryUnload(library));
  TELL(cudaLibraryUnload(library));
  cudaGetLastError();
}
#else
static void libraries(void) {}
#endif

static void *held;
static void at_exit(void) { TELL(cudaFree(held)); }

/* A runtime that is linked in may have ended by now (4: cudaErrorCudartUnloading), a shared one has not. */
__attribute__((destructor)) static void at_the_very_end(void) {
  error ended = cudaFree(NULL);
  printf("at the very end: %s\n", ended && ended != 4 ? cudaGetErrorName(ended) : "answered");
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  symbols();
  managed();
  nothing();
  streams();
  graphs();
  memory();
  pitches();
  questions();
  failures();
  refusals();
  batches();
  libraries();
  wrong_nodes();
  entry_points();
  threads();
  devices();
  children();
  fault();
  CHECK(cudaDeviceReset());
  symbols(); /* a new device: the variables have their first values again */
  managed();
  nothing();
  CHECK(cudaMalloc(&held, 4));
  atexit(at_exit);
  return 0;
}
