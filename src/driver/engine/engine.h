/* SPDX-License-Identifier: Apache-2.0 */
/* The virtual GPU of one process: what libcudart and libcuda both sit on. They check and translate what their API adds
 * (handles, NULL pointers, flags); everything that has state is here.
 *
 *   libcudart.so.N  libcuda.so.1        thin: one function per API call
 *          \          /
 *        engine (libfarfault-gpu.so)    modules, allocations, copies, streams, events, launches, errors, virtual time
 *       /      |       \
 *    exec    session   fatbin, ptx
 *
 * Rules
 *   - One engine per process, made by the first call that needs it (not by registration, which runs in constructors).
 *     Every function here takes the one lock itself and may be called from any thread; user callbacks run without it.
 *   - The device runs in the order of the host: an operation is appended to the access stream, then carried out, and
 *     the call returns. Asynchrony exists in virtual time only. Therefore memory is up to date for the host after
 *     every call, and whether an operation "has finished" is what the simulation answers (engine_event_query).
 *   - A fault in a kernel is *sticky*: it is printed once, the launch itself still succeeds, and every later call that
 *     enters the engine returns it until engine_reset of that device. Nothing runs on any device any more.
 *   - Return values are CUDA runtime numbers; libcuda passes them on (engine_driver_result).
 *   - An engine function does not touch the calling thread's last error; libcudart does that in engine_return.
 *
 * Handles (streams, events, functions, modules) are pointers that are looked up in a table before they are followed,
 * so a stale or invented one is cudaErrorInvalidResourceHandle, and no crash. */
#ifndef FF_DRIVER_ENGINE_H
#define FF_DRIVER_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/cuda_abi.h"
#include "exec/exec.h"
#include "machine/spec/spec.h"
#include "trace/stream.h"

#define ENGINE_API __attribute__((visibility("default")))

/* ---- life ---- */

/* Makes the engine if need be. cudaErrorInitializationError: it cannot be made (said on stderr), or this process is a
 * fork of one that had it. Returns the sticky error if there is one. */
ENGINE_API cudaError_t engine_start(void);
/* cudaProfilerStart, cudaProfilerStop: a mark in the access stream, which costs the host nothing. */
ENGINE_API cudaError_t engine_profile(bool start);
ENGINE_API const machine_spec *engine_machine(void); /* after a successful engine_start; else NULL */
ENGINE_API uint64_t engine_gpu_memory(void);         /* bytes of GPU memory, of each device; 0 before engine_start */
ENGINE_API bool engine_started(void);                /* has it been made (and not reset since)? */
ENGINE_API void engine_finish(void);                 /* writes the results; runs by itself at exit; idempotent */
/* cudaDeviceReset: frees all memory, streams and events of the device, unloads its modules (they load again on demand),
 * clears the error that arose there; another one stays and is returned. */
ENGINE_API cudaError_t engine_reset(int device);
/* The function is called at the start of each reset, without a lock. There is one such function. */
ENGINE_API void engine_reset_tell(void (*function)(int device));

/* "farfault: ..." and a newline on stderr. _once: only the first time for this `key` (a call's name). */
ENGINE_API void engine_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
ENGINE_API void engine_say_once(const char *key, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "call X is not implemented", once per name; returns cudaErrorNotSupported through engine_return. */
ENGINE_API cudaError_t engine_unimplemented(const char *call);

/* ---- errors ---- */

ENGINE_API cudaError_t engine_sticky(void); /* cudaSuccess: none */
/* remembers a failure as the thread's last error */
ENGINE_API cudaError_t engine_return_from(const char *call, cudaError_t error);
#define engine_return(error) engine_return_from(__func__, error)
ENGINE_API bool engine_runtime_called(void);          /* has this thread called the runtime since it asked last? */
ENGINE_API cudaError_t engine_last_error(bool clear); /* cudaGetLastError (clear), cudaPeekAtLastError */
ENGINE_API int engine_driver_result_from(const char *call, cudaError_t error); /* the CUresult of the same meaning */
#define engine_driver_result(error) engine_driver_result_from(__func__, error)

/* The message of the kernel's fault that is sticky now; "" if there is none. Lives as long as the process. */
ENGINE_API const char *engine_fault_message(void);

/* The compute capability that the caller of a function is told, by an address in it: one of NVIDIA's libraries is told
 * one above all that it has machine code for, so that it takes its PTX; a part of cuDNN without kernels, which chooses
 * among engines, what the library with their kernels is told, on a device of 8.0 and later, and 8.9 at the most where
 * that library is not found; for every other caller the two are left alone.
 * Says once per library what it was told. */
ENGINE_API void engine_capability_tell(const void *caller, int *major, int *minor);

/* ---- modules ---- */

typedef struct engine_module engine_module;
typedef struct engine_function engine_function;
typedef struct engine_variable engine_variable;

/* A module whose code is in memory and stays there (registration): a wrapper, a fat binary, PTX text, Tile IR. Nothing
 * is looked at before it is needed. `binary` is what __cudaRegisterFatBinary was given. */
ENGINE_API engine_module *engine_module_register(const void *binary);
/* The same from an image that is copied, loaded at once (cuModuleLoadData, cudaLibraryLoadData). bytes == 0: PTX text
 * ends at its NUL, a fat binary and Tile IR at their own size. On failure the reason is in *error (the JIT's log).
 * cudaErrorNoKernelImageForDevice: there is neither PTX nor Tile IR that is translated. */
ENGINE_API cudaError_t engine_module_load(const void *image, size_t bytes, engine_module **module, ff_error *error);
/* The same for a library, as drivers load them by default: what stays in memory (a wrapper, which nvcc put into a
 * program) is read when something of it is first used, and an image without PTX fails only then. A library with
 * hundreds of images costs nothing for those that it never uses. */
ENGINE_API cudaError_t engine_library_load(const void *image, size_t bytes, engine_module **module, ff_error *error);
ENGINE_API cudaError_t engine_module_bind(engine_module *module); /* to the thread's device: it is that one's alone */
/* Several PTX texts or fat binaries linked into one module (cuLink*). */
ENGINE_API cudaError_t engine_module_link(const void *const *images, const size_t *bytes, const char *const *names,
                                          uint32_t count, uint32_t max_registers, engine_module **module,
                                          ff_error *error);
ENGINE_API cudaError_t engine_module_unload(engine_module *module); /* functions and variables die with it */
/* After a load: says once per library, that of `caller` (an address in it), that its Tile IR is translated. */
ENGINE_API void engine_module_tell(const engine_module *module, const void *caller);
ENGINE_API bool engine_module_valid(const engine_module *module);
/* Was it asked for as a library (cuLibraryLoadData)? Then cuModuleUnload does not take it. */
ENGINE_API void engine_module_set_library(engine_module *module, bool library);
ENGINE_API bool engine_module_is_library(const engine_module *module);
/* From now on its managed variables stay where they are, when the device is reset too. */
ENGINE_API void engine_module_keep_managed(engine_module *module);
/* Loads now what is loaded lazily (__cudaInitModule): afterwards __managed__ variables have their addresses. */
ENGINE_API cudaError_t engine_module_ready(engine_module *module);

/* Names a kernel of the module without loading it (registration). `name` is copied. */
ENGINE_API engine_function *engine_function_declare(engine_module *module, const char *name);
/* Finds it, loading the module. cudaErrorSymbolNotFound: no such kernel. */
ENGINE_API cudaError_t engine_function_find(engine_module *module, const char *name, engine_function **function);
ENGINE_API bool engine_function_valid(const engine_function *function);
ENGINE_API const char *engine_function_name(const engine_function *function); /* as in the PTX */

typedef struct engine_function_info {
  exec_kernel_info kernel;     /* name, params, static shared memory, registers ... */
  uint32_t max_threads;        /* per block: .maxntid, the device's limit, the registers */
  uint32_t max_dynamic_shared; /* as set, else what is left of the device's default limit */
  int32_t carveout;            /* preferred shared memory in percent, -1: default */
  uint32_t cache_preference;
  uint32_t cluster[3];   /* blocks of a cluster, as compiled or set; 0: the launch says it */
  bool non_portable;     /* clusters of more than 8 blocks are allowed */
  uint32_t tile_threads; /* of a block, where the kernel was translated from Tile IR; else 0 */
} engine_function_info;
/* Loads and decodes the kernel. cudaErrorInvalidDeviceFunction: the module has no such kernel;
 * cudaErrorNoKernelImageForDevice: the program has no PTX; cudaErrorInvalidPtx, cudaErrorNotSupported: said on
 * stderr. */
ENGINE_API cudaError_t engine_function_describe(engine_function *function, engine_function_info *info);
ENGINE_API cudaError_t engine_function_set_dynamic_shared(engine_function *function, int bytes);
ENGINE_API cudaError_t engine_function_set_carveout(engine_function *function, int percent);
ENGINE_API cudaError_t engine_function_set_cache(engine_function *function, unsigned preference);
/* cudaErrorInvalidValue: the kernel is compiled for a size; cudaErrorNotSupported: the device has no clusters. */
ENGINE_API cudaError_t engine_function_set_cluster(engine_function *function, unsigned axis, int blocks);
ENGINE_API cudaError_t engine_function_set_non_portable(engine_function *function, int allowed);

ENGINE_API engine_variable *engine_variable_declare(engine_module *module, const char *name, size_t bytes);
ENGINE_API cudaError_t engine_variable_find(engine_module *module, const char *name, engine_variable **variable);
/* Address and size, loading the module. cudaErrorInvalidSymbol: no such variable. */
ENGINE_API cudaError_t engine_variable_address(engine_variable *variable, uint64_t *address, uint64_t *bytes);
/* The same for the program, which may give the address to kernels: they may then store to a .const variable, too. */
ENGINE_API cudaError_t engine_variable_expose(engine_variable *variable, uint64_t *address, uint64_t *bytes);
/* __cudaRegisterManagedVar: when the module loads, *host_pointer gets the variable's address. */
ENGINE_API void engine_variable_manage(engine_variable *variable, void **host_pointer);
/* The managed variable whose host pointer now holds `address` (host code names it by its address); NULL: none. */
ENGINE_API engine_variable *engine_variable_managed(const void *address);

/* ---- memory ---- */

typedef enum engine_memory {
  ENGINE_DEVICE,
  ENGINE_MANAGED,
  ENGINE_PINNED,
  ENGINE_REGISTERED,
  ENGINE_PAGEABLE
} engine_memory;

typedef struct engine_pointer {
  engine_memory memory;    /* ENGINE_PAGEABLE: not known to the device */
  uint64_t address, bytes; /* of the whole allocation */
  uint32_t id;
  unsigned flags; /* of cudaHostAlloc, cudaHostRegister, cudaMallocManaged */
  int device;     /* whose it is; of host and managed memory, which was current */
  /* EXEC_MAPPED: address and bytes are the mapping's; EXEC_RESERVED: PAGEABLE, but its reservation's */
  exec_range range;
  bool readable, writable; /* by kernels of the thread's device */
} engine_pointer;

/* `call` names the allocation in reports ("cudaMalloc"). bytes > 0. Zero-filled. cudaErrorMemoryAllocation: more than
 * the machine's memory holds (device and managed) or than the host can give. */
ENGINE_API cudaError_t engine_allocate(engine_memory memory, uint64_t bytes, unsigned flags, const char *call,
                                       uint64_t *address);
/* `allowed`: a set of 1 << engine_memory; an address that starts no live allocation of such a kind is
 * cudaErrorInvalidValue. Synchronises with the device. */
ENGINE_API cudaError_t engine_free(uint64_t address, unsigned allowed);
ENGINE_API cudaError_t engine_host_register(void *host, uint64_t bytes, unsigned flags);
ENGINE_API cudaError_t engine_host_unregister(void *host);
/* The memory that the address belongs to. Needs no engine (then everything is pageable). */
ENGINE_API engine_pointer engine_pointer_find(uint64_t address);
/* device -1: the calling thread's. */
ENGINE_API cudaError_t engine_memory_info(int device, uint64_t *free_bytes, uint64_t *total_bytes);
/* cudaMemAdvise, cudaMemPrefetchAsync; device -1: the CPU. The range must lie in one managed allocation. */
ENGINE_API cudaError_t engine_advise(uint64_t address, uint64_t bytes, int advice, int device);
ENGINE_API cudaError_t engine_prefetch(uint64_t address, uint64_t bytes, int device, cudaStream_t stream);

/* ---- addresses and memory apart ---- */

#define ENGINE_GRANULARITY (UINT64_C(2) << 20) /* of memory that is mapped, least and best */
enum { ENGINE_ACCESS_NONE = 0, ENGINE_ACCESS_READ = 1, ENGINE_ACCESS_READ_WRITE = 3 }; /* CUmemAccess_flags */

/* Whole pages of the host's; alignment 0 or a power of two; `wanted`: where it should be if that is free, or 0. */
ENGINE_API cudaError_t engine_reserve(uint64_t bytes, uint64_t alignment, uint64_t wanted, uint64_t *address);
/* cudaErrorInvalidValue: not exactly a reservation, or something is mapped in it. */
ENGINE_API cudaError_t engine_unreserve(uint64_t address, uint64_t bytes);
/* Memory without an address, zero-filled; `note` comes back from engine_memory_note; `shared`: other processes can have
 * it. cudaErrorMemoryAllocation: the GPU is full. */
ENGINE_API cudaError_t engine_memory_create(int device, uint64_t bytes, const void *note, uint32_t note_bytes,
                                            bool shared, uint64_t *handle);
/* A file descriptor for another process, the caller's to close. cudaErrorInvalidValue: not made to be shared. */
ENGINE_API cudaError_t engine_memory_export(uint64_t handle, int *descriptor);
/* What another process has exported; the descriptor stays the caller's. cudaErrorInvalidValue: it is none of ours. */
ENGINE_API cudaError_t engine_memory_import(int descriptor, uint64_t *handle);
/* One reference less; without any and mapped nowhere it is given back. An unknown or stale handle:
 * cudaErrorInvalidValue, here and below. */
ENGINE_API cudaError_t engine_memory_release(uint64_t handle);
ENGINE_API cudaError_t engine_memory_note(uint64_t handle, void *note, uint32_t note_bytes);
/* Whose it is; *device stays as it was where it fails. */
ENGINE_API cudaError_t engine_memory_owner(uint64_t handle, int *device);
/* One reference more to what is mapped at the address. */
ENGINE_API cudaError_t engine_memory_retain(uint64_t address, uint64_t *handle);
/* The memory's first `bytes`, in one reservation, where nothing is mapped. Kernels and copies may not use it until
 * engine_set_access. */
ENGINE_API cudaError_t engine_map(uint64_t address, uint64_t bytes, uint64_t handle);
/* One mapping or several adjacent ones, each whole. Does not wait for the device. */
ENGINE_API cudaError_t engine_unmap(uint64_t address, uint64_t bytes);
/* of whole mappings, without gaps */
ENGINE_API cudaError_t engine_set_access(int device, uint64_t address, uint64_t bytes, unsigned access);
ENGINE_API cudaError_t engine_get_access(int device, uint64_t address, unsigned *access);

/* Multicast objects (engine_multicast.c): memory of several devices at the same addresses. Offsets and bytes are
 * multiples of ENGINE_GRANULARITY; what is not, or lies outside, is cudaErrorInvalidValue, as is a handle that is no
 * multicast object's. cudaErrorNotSupported: the machine's devices have no switch between them. */
ENGINE_API cudaError_t engine_multicast_create(uint32_t devices, uint64_t bytes, bool shared, uint64_t *handle);
/* cudaErrorInvalidValue: it is one of the team already, or all have been added. */
ENGINE_API cudaError_t engine_multicast_add(uint64_t handle, int device);
/* Wait until all devices have been added, as engine_map of the object does. cudaErrorInvalidDevice: the memory is of no
 * device of the team. cudaErrorInvalidValue: something is bound there already. */
ENGINE_API cudaError_t engine_multicast_bind(uint64_t handle, uint64_t offset, uint64_t memory, uint64_t from,
                                             uint64_t bytes);
ENGINE_API cudaError_t engine_multicast_bind_address(uint64_t handle, uint64_t offset, uint64_t address,
                                                     uint64_t bytes);
/* Whole bindings of the device. cudaErrorInvalidValue: there is none, or a part of one. */
ENGINE_API cudaError_t engine_multicast_unbind(uint64_t handle, int device, uint64_t offset, uint64_t bytes);

/* ---- memory and events of other processes (cudaIpc) ---- */

#define ENGINE_IPC_HANDLE_BYTES 64u
/* May memory of that address be given to other processes by handle? Device memory that is no pool's and not mapped. */
ENGINE_API bool engine_ipc_capable(uint64_t address);
/* A handle of the whole allocation that has the address, ENGINE_IPC_HANDLE_BYTES. cudaErrorInvalidValue: not
 * capable. */
ENGINE_API cudaError_t engine_ipc_export(uint64_t address, void *handle);
/* Where it begins here; opened again: the same place. cudaErrorInvalidValue: no handle; cudaErrorDeviceUninitialized:
 * of this process; cudaErrorMapBufferObjectFailed: freed, or its process is gone or another user's. */
ENGINE_API cudaError_t engine_ipc_import(const void *handle, uint64_t *address);
/* As often as it was opened. cudaErrorInvalidValue: not opened. Synchronises with the device, as engine_free does. */
ENGINE_API cudaError_t engine_ipc_close(uint64_t address);
/* Likewise of events. cudaErrorInvalidResourceHandle: not an event that was made with cudaEventInterprocess. */
ENGINE_API cudaError_t engine_ipc_event_export(cudaEvent_t event, void *handle);
ENGINE_API cudaError_t engine_ipc_event_import(const void *handle, cudaEvent_t *event);

/* ---- copies ---- */

/* what the caller says */
typedef enum engine_side { ENGINE_SIDE_ANY, ENGINE_SIDE_HOST, ENGINE_SIDE_DEVICE } engine_side;

typedef struct engine_copy { /* `depth` slices of `height` rows of `width` bytes */
  uint64_t to, from;
  uint64_t width, height, depth;  /* any 0: nothing happens */
  uint64_t to_pitch, from_pitch;  /* bytes between rows; unused if height == 1 */
  uint64_t to_slice, from_slice;  /* bytes between slices; unused if depth == 1 */
  engine_side to_side, from_side; /* ANY: by address */
  cudaStream_t stream;            /* already resolved: see engine_stream_handle */
  bool async;
  bool peer; /* not async: it comes after all that is there, as it does on both devices */
  bool file; /* set by engine_copy_run: engine_copies_of_files */
} engine_copy;
/* cudaErrorInvalidValue: NULL, a range that leaves its allocation, a freed one, a side that is not what was said, or
 * rows that overlap (pitch < width: cudaErrorInvalidPitchValue). */
ENGINE_API cudaError_t engine_copy_run(const engine_copy *copy);
/* Whether what the calling thread copies from now on between host and device is bytes of files. */
ENGINE_API void engine_copies_of_files(bool files);
/* Sets `width` x `height` x `depth` elements of `element` bytes (1, 2, 4) to `value`; width counts elements. */
typedef struct engine_set {
  uint64_t to, width, height, depth, pitch, slice;
  uint64_t value; /* its lowest bytes */
  uint32_t element;
  cudaStream_t stream;
  bool async;
  bool word; /* of 4 or 8 bytes, the only one: other threads may look at it, and see it whole */
  bool done; /* the memory is as it will be: the access stream and the clock are told of it, nothing more */
} engine_set;
ENGINE_API cudaError_t engine_set_run(const engine_set *set);

/* ---- streams and events ---- */

/* NULL -> the legacy default stream, or this thread's own if per_thread (the _ptsz and _ptds forms). */
static inline cudaStream_t engine_stream_handle(cudaStream_t stream, bool per_thread) {
  return stream ? stream : per_thread ? cudaStreamPerThread : cudaStreamLegacy;
}
/* in the thread's green context, if it has one */
ENGINE_API cudaError_t engine_stream_create(unsigned flags, int priority, cudaStream_t *stream);
/* on that device, in no green context */
ENGINE_API cudaError_t engine_stream_create_on(int device, unsigned flags, int priority, cudaStream_t *stream);
ENGINE_API cudaError_t engine_stream_destroy(cudaStream_t stream);
typedef struct engine_green engine_green;
/* green: NULL: none */
typedef struct engine_stream_info {
  unsigned flags;
  int priority, device;
  uint64_t id;
  engine_green *green;
} engine_stream_info;
ENGINE_API cudaError_t engine_stream_describe(cudaStream_t stream, engine_stream_info *info);
/* No line of the L2 persists any more. */
ENGINE_API cudaError_t engine_l2_reset(void);
/* What cudaStreamSetAttribute and cuStreamSetAttribute may set: a window, a policy, a priority (brought into its
 * range), a domain, a map of domains. All are kept and told; the window alone is simulated. A window larger than the
 * device's accessPolicyMaxWindowSize is taken as it is. cudaErrorInvalidValue: another attribute, or a value outside of
 * what the manual allows. */
ENGINE_API cudaError_t engine_stream_set(cudaStream_t stream, int attribute, const cudaLaunchAttributeValue *value);
ENGINE_API cudaError_t engine_stream_get(cudaStream_t stream, int attribute, cudaLaunchAttributeValue *value);
ENGINE_API cudaError_t engine_stream_copy_attributes(cudaStream_t to, cudaStream_t from);
ENGINE_API cudaError_t engine_stream_synchronize(cudaStream_t stream);
ENGINE_API cudaError_t engine_stream_query(cudaStream_t stream); /* cudaErrorNotReady */
ENGINE_API cudaError_t engine_stream_wait(cudaStream_t stream, cudaEvent_t event);
/* Runs the function on a thread of the engine's own when everything before it in the stream is over; whatever comes
 * after in any stream, and every synchronisation, waits for it. CUDA calls made by it are cudaErrorNotPermitted. */
ENGINE_API cudaError_t engine_stream_host(cudaStream_t stream, cudaHostFn_t function, void *data);
ENGINE_API cudaError_t engine_device_synchronize(int device);
#define ENGINE_PRIORITY_LEAST 0
#define ENGINE_PRIORITY_GREATEST (-5)

ENGINE_API cudaError_t engine_event_create(unsigned flags, cudaEvent_t *event);
ENGINE_API cudaError_t engine_event_destroy(cudaEvent_t event);
ENGINE_API cudaError_t engine_event_record(cudaEvent_t event, cudaStream_t stream);
ENGINE_API cudaError_t engine_event_synchronize(cudaEvent_t event);
ENGINE_API cudaError_t engine_event_query(cudaEvent_t event);
/* Milliseconds of virtual time between two recorded events. */
ENGINE_API cudaError_t engine_event_elapsed(cudaEvent_t start, cudaEvent_t stop, float *milliseconds);

/* ---- green contexts: sets of SMs, and the streams whose kernels run on them ---- */

/* At least one SM, each of the device's. It has a stream of its own, for NULL. A handle that is none:
 * cudaErrorContextIsDestroyed, here and below. */
ENGINE_API cudaError_t engine_green_create(int device, const trace_sms *sms, engine_green **green);
/* Its streams stay until they are destroyed or the device is reset, but every other use is cudaErrorStreamDetached;
 * before CUDA 13.1, cudaErrorContextIsDestroyed, and they cannot be destroyed. Their captures are invalid. */
ENGINE_API cudaError_t engine_green_destroy(engine_green *green);
ENGINE_API bool engine_green_valid(const engine_green *green);
/* No other one has it, also if it gets the address of one that was destroyed. 0: it is none. */
ENGINE_API uint64_t engine_green_id(const engine_green *green);
/* What is called when one was destroyed, without the lock; not at a reset (engine_reset_tell). */
ENGINE_API void engine_green_tell(void (*destroyed)(uint64_t id));
ENGINE_API cudaError_t engine_green_describe(engine_green *green, trace_sms *sms, uint64_t *id);
ENGINE_API int engine_green_device(engine_green *green); /* 0 if it is none */
/* In this thread NULL, cudaStreamLegacy and cudaStreamPerThread are its stream from now on, and streams that are made
 * are its; NULL: no longer. */
ENGINE_API void engine_green_use(engine_green *green);
ENGINE_API cudaError_t engine_green_stream(engine_green *green, unsigned flags, int priority, cudaStream_t *stream);
/* of all that its streams have to do */
ENGINE_API cudaError_t engine_green_record(engine_green *green, cudaEvent_t event);
ENGINE_API cudaError_t engine_green_wait(engine_green *green, cudaEvent_t event); /* all that its streams get to do */
ENGINE_API cudaError_t engine_green_synchronize(engine_green *green);
/* The same of a device: of all its streams, those of green contexts among them. */
ENGINE_API cudaError_t engine_device_record(int device, cudaEvent_t event);
ENGINE_API cudaError_t engine_device_wait(int device, cudaEvent_t event);
/* What was asked for of work queues; nothing is simulated by it. limit 0: nothing was. */
typedef struct engine_green_queues {
  unsigned limit;
  int scope;
} engine_green_queues;
ENGINE_API cudaError_t engine_green_get_queues(engine_green *green, engine_green_queues *queues);
ENGINE_API cudaError_t engine_green_set_queues(engine_green *green, engine_green_queues queues);

/* For the next engine_launch_run of this thread; copied. */
ENGINE_API cudaError_t engine_declare_uses(const ff_virtual_use *uses, uint32_t count);
/* The host's virtual time, in picoseconds; the question takes none. */
ENGINE_API cudaError_t engine_host_time(uint64_t *picoseconds);
/* cudaErrorInvalidValue: of no allocation; cudaErrorNotSupported: none is simulated */
ENGINE_API cudaError_t engine_physical(uint64_t address, uint64_t *physical);

/* ---- launches ---- */

typedef struct engine_launch {
  engine_function *function;
  uint32_t grid[3], block[3];
  uint32_t cluster[3]; /* blocks of a cluster; 0: as the function says */
  uint64_t dynamic_shared;
  cudaStream_t stream;
  void **arguments;   /* one pointer per parameter; NULL only without parameters or with `packed` */
  const void *packed; /* or the whole parameter block */
  size_t packed_bytes;
  bool cooperative;
  bool has_window; /* `window` is its access policy window; else that of the stream when it is launched */
  cudaAccessPolicyWindow window;
  int carve_out;              /* of shared memory, preferred: 1 + percent; 0: as the function says */
  cudaEvent_t before, behind; /* recorded in its stream in front of it, and behind it; NULL: none */
  exec_grids grids;           /* of engine_grids_run */
  const char *range; /* of NVTX, in which it was made (injection/nvtx.h); NULL: that of the thread that runs it */
  const char *site;  /* in the program, where it was made (engine_site.h); NULL: not known */
} engine_launch;
/* cudaErrorInvalidClusterSize: clusters that do not divide the grid, are too large, or not those that the kernel is
 * compiled for; cudaErrorInvalidConfiguration: grid or block beyond the device; cudaErrorInvalidValue: shared memory
 * beyond what the function allows, or its .maxntid; cudaErrorLaunchOutOfResources: registers;
 * cudaErrorCooperativeLaunchTooLarge. */
ENGINE_API cudaError_t engine_launch_run(const engine_launch *launch);
/* An attribute of a launch: cooperative, the size of clusters, the access policy window, the carve-out and events
 * change what happens here. Others that launches have are hints. cudaErrorInvalidValue: no attribute of launches, or a
 * window or a carve-out that is none; cudaErrorInvalidResourceHandle: no event; cudaErrorNotSupported: a node that the
 * device could update. */
ENGINE_API cudaError_t engine_launch_attribute(engine_launch *launch, int attribute,
                                               const cudaLaunchAttributeValue *value);
/* `count` cooperative launches of one kernel with one shape, each in a stream of another device, which are made as one
 * (engine_grids.c). flags: CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_*. cudaErrorInvalidValue: no launch, more than there
 * are devices, other flags, kernels or shapes that differ; cudaErrorInvalidDeviceFunction: no kernel;
 * cudaErrorInvalidResourceHandle: a default stream, or none; cudaErrorInvalidDevice: two of one device;
 * cudaErrorStreamCaptureUnsupported; cudaErrorNotSupported: kernels that may wait for each other in a program that is
 * checked; and those of engine_launch_run. Any of these: none was launched. */
ENGINE_API cudaError_t engine_grids_run(const engine_launch *list, unsigned count, unsigned flags);

/* ---- device ---- */

#define ENGINE_DEVICES_MAX 16u
/* What cuDriverGetVersion says: FARFAULT_DRIVER_VERSION, or the newest CUDA whose libraries were run. Needs no
 * engine. */
ENGINE_API uint32_t engine_driver_version(void);
ENGINE_API uint32_t engine_devices(void); /* how many there are, numbered from 0; after engine_start */

typedef struct engine_occupancy {                                      /* of one SM; see occupancy.c */
  uint32_t blocks, warps;                                              /* resident */
  uint32_t limit_threads, limit_blocks, limit_registers, limit_shared; /* blocks that each resource would allow */
} engine_occupancy;
ENGINE_API cudaError_t engine_occupancy_find(engine_function *function, uint32_t threads, uint64_t dynamic_shared,
                                             engine_occupancy *out);
/* Clusters that are resident at once, and the largest cluster, of a launch whose stream and arguments are not looked
 * at. */
ENGINE_API cudaError_t engine_occupancy_clusters(const engine_launch *launch, int *clusters);
ENGINE_API cudaError_t engine_occupancy_cluster_size(const engine_launch *launch, int *blocks);
/* The largest dynamic shared memory with which `blocks` blocks of `threads` threads are resident. */
ENGINE_API cudaError_t engine_occupancy_shared(engine_function *function, uint32_t blocks, uint32_t threads,
                                               uint64_t *bytes);
/* cuOccupancyMaxPotentialBlockSize: block size of the best occupancy, and the grid that fills the device. */
ENGINE_API cudaError_t engine_occupancy_best(engine_function *function, size_t (*shared_of)(int threads),
                                             uint64_t dynamic_shared, uint32_t limit, uint32_t *grid, uint32_t *block);
/* What has to do with graphics is 0. cudaErrorUnsupportedLimit: no such limit. */
ENGINE_API cudaError_t engine_limit_get(cudaLimit limit, size_t *value);
ENGINE_API cudaError_t engine_limit_set(cudaLimit limit, size_t value);

#endif
