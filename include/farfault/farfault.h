/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * libfarfault: GPU memory in segments whose use every launch declares.
 *
 *     cc $(pkg-config --cflags farfault) mine.c $(pkg-config --libs farfault)
 *
 *     ff_open -> ff_segment_create, ff_segment_map / unmap -> ff_module_load, ff_kernel_find
 *             -> ff_launch (values and uses) -> ff_wait -> ff_segment_map -> ff_close
 *
 * A launch says which segments it uses, which bytes of them, and how. From that alone follow residency, copies,
 * dependences between launches, overlap of copies and kernels, eviction when the segments are larger than the budget,
 * and launches in windows of blocks when one of them is (Wilt 2017, requirements R1 to R9).
 *
 * Guarantees
 *   - The result is that of the launches run one after the other in the order of their ff_launch calls.
 *   - A function that returns FF_SUCCESS did it; any other did nothing that could be seen, and ff_message() says why.
 *   - No segment is ever lost: after a failure each has the contents that the last launch that ended well gave it.
 *   - All functions may be called from any thread. Calls with the same ff_gpu wait for each other, but for ff_wait's
 *     waiting.
 *   - A host without memory for the library's own lists ends the process (exit 70); memory for segments that is not
 *     there is an error.
 *
 * It speaks the CUDA driver API, found when it is opened: NVIDIA's where there is a GPU, else the virtual GPU that
 * comes with farfault. The environment's FARFAULT_DRIVER says otherwise: `virtual`, `cuda`, or the path of a driver
 * library. FF_CHECK=1 checks every access of every kernel against the declared uses. */
#ifndef FARFAULT_FARFAULT_H
#define FARFAULT_FARFAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define FF_API __attribute__((visibility("default")))
#else
#define FF_API
#endif

/** Of this interface: raised when a program has to be compiled again. */
#define FF_VERSION 1u
/** The library's own FF_VERSION. */
FF_API uint32_t ff_library_version(void);

/** What a call says. Never changes its numbers. */
typedef enum ff_result {
  FF_SUCCESS = 0,
  FF_ERROR_INVALID,   /**< an argument that cannot be, or a call at the wrong time */
  FF_ERROR_NO_DRIVER, /**< no driver library, or it has no GPU */
  FF_ERROR_DRIVER,    /**< a driver call failed; the message names it and its error */
  FF_ERROR_NO_MEMORY, /**< the host's or the GPU's memory is used up, after all that could be evicted was */
  /** the launch cannot be run within the budget; the message has the sum that it needs, and why windows do not help */
  FF_ERROR_TOO_LARGE,
  FF_ERROR_NOT_FOUND, /**< no such kernel, file or address */
  FF_ERROR_CODE,      /**< the module's code is refused */
  FF_ERROR_IO,        /**< a segment's file cannot be read or written */
  FF_ERROR_BUSY,      /**< the segment is mapped in a way that forbids this */
  FF_ERROR_FAULT,     /**< a kernel failed, or left its declared uses (R3): kernel, thread, PTX line, segment */
  FF_ERROR_LOST       /**< the GPU is lost after a kernel's fault; what had come back to the host is still there */
} ff_result;

/** The name of a result ("FF_ERROR_BUSY"); never NULL. */
FF_API const char *ff_result_name(ff_result result);
/** What the last call of this thread that failed had to say, one line; "" if none has. Valid until its next failing
 *  call. */
FF_API const char *ff_message(void);

typedef struct ff_gpu ff_gpu;         /**< one or several GPUs, their segments and launches */
typedef struct ff_segment ff_segment; /**< a named range of bytes that lives on the host, on GPUs, or on both */
typedef struct ff_module ff_module;   /**< loaded code */
typedef struct ff_kernel ff_kernel;   /**< a kernel of a module; lives as long as that */
typedef uint64_t ff_ticket;           /**< a launch's number, from 1, in the order of the calls */

/* ---- GPUs ---- */

/** How to open. Zero a whole one, then set `size` and what is wanted. */
typedef struct ff_options {
  size_t size;           /**< sizeof(ff_options) */
  const char *driver;    /**< as FARFAULT_DRIVER, which goes before it; NULL: choose */
  const int *devices;    /**< the driver's numbers of the GPUs to use; NULL: device 0 alone */
  uint32_t device_count; /**< of them; 0 with `devices` NULL */
  /** launches that may be held back so that what they need is known before something is evicted; 0: 32 */
  uint32_t lookahead;
  uint64_t budget; /**< bytes of each GPU's memory that segments may take; 0: nine tenths of what is free */
  /** bytes of page-locked host memory for the segments' host side; what is above it is pageable; 0: no limit */
  uint64_t pinned;
  /** bytes of GPU memory that are mapped and evicted at once; 0: the driver's granularity, larger for large budgets */
  uint64_t piece;
  bool check; /**< as FF_CHECK=1 */
  /** take the whole budget from the driver at once, so that no launch waits for the driver to find memory */
  bool commit;
} ff_options;

/** `options` may be NULL. FF_ERROR_NO_DRIVER, FF_ERROR_DRIVER, FF_ERROR_NO_MEMORY (the budget is more than the GPU
 *  has). */
FF_API ff_result ff_open(const ff_options *options, ff_gpu **gpu);
/** Waits for all launches, writes file segments back, frees everything of it: segments, modules, kernels. NULL:
 *  nothing. The result
 * is the first failure that no call has returned; all is freed anyway. */
FF_API ff_result ff_close(ff_gpu *gpu);

/** What it has. `name`: of the first GPU. */
typedef struct ff_gpu_info {
  char name[256];        /**< of the first GPU, as its driver says it */
  char driver[256];      /**< the library's file; "virtual: ..." for the virtual GPU */
  uint32_t device_count; /**< GPUs that were opened */
  bool is_virtual;       /**< the driver is farfault's virtual GPU */
  uint64_t memory;       /**< bytes of each GPU */
  uint64_t budget;       /**< bytes in force, of each GPU */
  uint64_t piece;        /**< bytes in force */
} ff_gpu_info;
/** Fills *info. */
FF_API ff_result ff_gpu_describe(ff_gpu *gpu, ff_gpu_info *info);

/* ---- segments ---- */

/** Anonymous, all zero bytes. Costs nothing until it is used. `name` is copied (messages, reports); NULL: "segment N".
 *  bytes > 0. */
FF_API ff_result ff_segment_create(ff_gpu *gpu, const char *name, uint64_t bytes, ff_segment **segment);

/** For ff_segment_open. */
enum {
  FF_FILE_READ = 0, /**< the file is never written; a launch that declares to write it is refused */
  /** what launches and mappings write goes to the file (ff_segment_flush, ff_segment_free, ff_close) */
  FF_FILE_WRITE = 1,
  FF_FILE_CREATE = 2 /**< with FF_FILE_WRITE: made if need be, and extended to hold the segment */
};
/** Backed by bytes [offset, offset + bytes) of a file; bytes == 0: to its end. The file's bytes are read when they are
 *  needed,
 * and never more than a few megabytes of them are kept on the host. FF_ERROR_IO: it cannot be opened, or is shorter. */
FF_API ff_result ff_segment_open(ff_gpu *gpu, const char *name, const char *path, unsigned flags, uint64_t offset,
                                 uint64_t bytes, ff_segment **segment);
/** Waits for the launches that use it. FF_ERROR_BUSY: it is mapped. FF_ERROR_IO: its file could not be written; it is
 *  not freed then. */
FF_API ff_result ff_segment_free(ff_segment *segment);

/** What a launch or a mapping does with bytes. */
typedef enum ff_access {
  FF_READ = 1, /**< nothing is written */
  /** every byte is written: what was there is not brought. What the kernel does leave unwritten is undefined */
  FF_WRITE = 2,
  FF_READ_WRITE = 3 /**< may be read, may be written, in part or whole */
} ff_access;

/** The host window: bytes [offset, offset + bytes) (bytes == 0: to its end) in host memory, in *host, until
 *  ff_segment_unmap. With FF_READ
 * it brings what the host does not have, and waits for the launches that write it; with FF_WRITE it waits for copies
 * that still read it. Launches that read it on the GPU go on with what they have. A segment may be
 * mapped several times at once; ranges mapped for writing may overlap no other mapping, and no launch may use them
 * (FF_ERROR_BUSY); launches may read what is mapped for reading. */
FF_API ff_result ff_segment_map(ff_segment *segment, ff_access access, uint64_t offset, uint64_t bytes, void **host);
/** Ends the mapping that gave `host` (of several the youngest). What was mapped for writing is the newest from now
 *  on. */
FF_API ff_result ff_segment_unmap(ff_segment *segment, void *host);
/** Brings the host side (and its file) up to date, without freeing GPU memory. */
FF_API ff_result ff_segment_flush(ff_segment *segment);
/** Pinned: is brought to GPU `device` (an index into ff_options.devices) now, and never evicted from it.
 *  FF_ERROR_TOO_LARGE: pinned
 * segments would leave no room in the budget. */
FF_API ff_result ff_segment_pin(ff_segment *segment, uint32_t device, bool pinned);
/** Of two segments whose next use is unknown the one of lower priority is evicted first. 0 at the start. */
FF_API ff_result ff_segment_prioritise(ff_segment *segment, int priority);
/** Drops it from GPU memory (what is newer there is written back). For tests and programs that know better. */
FF_API ff_result ff_segment_evict(ff_segment *segment);

/** What is known of a segment at the moment. */
typedef struct ff_segment_info {
  const char *name;        /**< until the segment is freed */
  uint64_t bytes;          /**< its size */
  uint64_t address;        /**< on the first GPU: never changes, whether it is resident or not */
  uint64_t resident_bytes; /**< that have GPU memory, on any GPU, once counted */
  uint64_t valid_bytes;    /**< whose newest contents are in some GPU's memory */
  uint64_t newer_bytes;    /**< of those: the host does not have */
  bool used;               /**< by launches or copies that may not be over */
  bool pinned;             /**< ff_segment_pin, on any GPU */
  bool file;               /**< it was made by ff_segment_open */
} ff_segment_info;
/** Fills *info. Waits for nothing. */
FF_API ff_result ff_segment_describe(ff_segment *segment, ff_segment_info *info);
/** Its address on GPU `device`: always the same. A segment's contents may hold such addresses, if launches that follow
 *  them
 * run on that device and declare what they follow to. */
FF_API ff_result ff_segment_address(ff_segment *segment, uint32_t device, uint64_t *address);
/** Whose is this device address (R3)? FF_ERROR_NOT_FOUND: no segment's. */
FF_API ff_result ff_owner(ff_gpu *gpu, uint64_t address, ff_segment **segment, uint64_t *offset);

/* ---- code ---- */

/** From PTX, a cubin or a fat binary in memory (copied). `name` stands in messages. bytes == 0: PTX that ends at its
 *  NUL, or a
 * fat binary. Of a cubin nothing is known but its kernels: its launches cannot be analysed, checked or run in
 * windows. */
FF_API ff_result ff_module_load(ff_gpu *gpu, const char *name, const void *image, size_t bytes, ff_module **module);
/** The same, from a file. FF_ERROR_NOT_FOUND, FF_ERROR_IO: it cannot be read. */
FF_API ff_result ff_module_load_file(ff_gpu *gpu, const char *path, ff_module **module);
/** Waits for its launches. */
FF_API ff_result ff_module_unload(ff_module *module);
/** `name` as in the PTX. */
FF_API ff_result ff_kernel_find(ff_module *module, const char *name, ff_kernel **kernel);

/* ---- launches ---- */

/** What a launch uses of a segment: bytes [offset, offset + bytes), and if per_block is not all 0, of these block (x,
 *  y, z) only
 * [offset + x * per_block[0] + y * per_block[1] + z * per_block[2], + block_bytes), clipped to the former. So "block b
 * reads rows b * r to b * r + h" of a matrix with rows of w bytes is {.per_block = {r * w}, .block_bytes = h * w}. */
typedef struct ff_use {
  ff_segment *segment; /**< of the same ff_gpu */
  ff_access access;    /**< how */
  uint64_t offset;     /**< first byte */
  uint64_t bytes;      /**< how many; 0: to the segment's end */
  /** bytes from one block's range to the next one's, in x, y and z; all 0: every block uses the whole range */
  int64_t per_block[3];
  uint64_t block_bytes; /**< of one block's range */
} ff_use;

/** A kernel's argument: a value, or the address of a segment's byte. */
typedef struct ff_argument {
  const void *value;   /**< copied by ff_launch; NULL: an address */
  size_t bytes;        /**< of the value; it must be the parameter's size, where that is known */
  ff_segment *segment; /**< whose address, if `value` is NULL */
  uint64_t offset;     /**< into the segment */
} ff_argument;
/** An lvalue as an argument. */
#define FF_VALUE(lvalue) \
  { &(lvalue), sizeof(lvalue), NULL, 0 }
/** A segment's address as an argument. */
#define FF_ADDRESS(segment) \
  { NULL, 8, (segment), 0 }
/** The address of a segment's byte as an argument. */
#define FF_ADDRESS_AT(segment, offset) \
  { NULL, 8, (segment), (offset) }

/** A launch. Zero a whole one, then set what is wanted. */
typedef struct ff_launch_request {
  ff_kernel *kernel;            /**< of the same ff_gpu */
  uint32_t grid[3];             /**< blocks in x, y and z; 0 counts as 1 */
  uint32_t block[3];            /**< threads of a block; 0 counts as 1 */
  uint32_t shared_bytes;        /**< dynamic */
  const ff_argument *arguments; /**< in the order of the kernel's parameters */
  uint32_t argument_count;      /**< of them */
  const ff_use *uses;           /**< everything of segments that the kernel touches */
  uint32_t use_count;           /**< of them */
  /** 1 + the index of the GPU that it must run on; 0: the one that has most of what it needs */
  uint32_t device;
} ff_launch_request;

/** Queues a launch; *ticket (may be NULL) is its number. Everything it points to is copied. FF_ERROR_TOO_LARGE: not
 *  even block by
 * block does it fit the budget, or it cannot be run in windows. FF_ERROR_BUSY: a range of its uses is mapped for
 * writing. */
FF_API ff_result ff_launch(ff_gpu *gpu, const ff_launch_request *request, ff_ticket *ticket);
/** Waits until the launch is over. The result is what became of it: a launch that failed did nothing, and those after
 *  it ran all the
 * same; but what a launch in windows had done before it failed stays. */
FF_API ff_result ff_wait(ff_gpu *gpu, ff_ticket ticket);
/** Waits for all. The result is the first failure of a launch that no call has told of so far. */
FF_API ff_result ff_wait_all(ff_gpu *gpu);
/** Is the launch over? Does not wait. */
FF_API ff_result ff_done(ff_gpu *gpu, ff_ticket ticket, bool *done);
/** Hands over to the GPU what is held back for the lookahead. ff_wait does so too; a program that goes on with other
 *  work calls this. */
FF_API ff_result ff_flush(ff_gpu *gpu);

/* ---- partitions: a share of a GPU ---- */

/** A share of a GPU: SMs, and part of the budget. Launches and segments that are made through it stay within it. */
typedef struct ff_partition ff_partition;

/** Zero a whole one, then set `size`, `share` and what is wanted. */
typedef struct ff_partition_options {
  size_t size;      /**< sizeof(ff_partition_options) */
  const char *name; /**< for messages and lists, copied; NULL: "partition" */
  /** "sm=25%,memory=50%". sm: a percentage of the GPU's SMs (rounded down, at least 1), or how many. memory: a
   *  percentage of the GPU's budget,
   * or bytes ("512M"), in whole pieces; left out: its segments share the GPU's budget with those of no partition. */
  const char *share;
  uint32_t device; /**< index of the GPU in ff_options.devices */
  /** `green`: a green context, which the driver of CUDA 12.5 and newer has; the SMs are then rounded up to whole groups
   *  of the driver's (2 on
   * compute capability 6 and 7, 4 on 8, 8 on 9). `rewrite`: kernels are launched as persistent blocks that stay on any
   * number of SMs; their code must be PTX without variables. `auto` (NULL): green, or rewrite where the driver has no
   * green contexts or the share is less than a group. The environment's FF_PARTITION goes before it. */
  const char *way;
  /** SMs that no other process of this user has either that sets this: a small daemon hands them out */
  bool apart;
  double timeout_s; /**< `apart`: how long to wait for them; 0: not at all; negative: for ever */
} ff_partition_options;

/** Takes the share. FF_ERROR_TOO_LARGE: the SMs are not to be had in addition to those of the other partitions (at most
 *  8 of a GPU). FF_ERROR_NO_MEMORY: the
 * budget is not, in addition to them and what is pinned. FF_ERROR_NO_DRIVER: `green`, and the driver has none.
 * FF_ERROR_BUSY, FF_ERROR_NOT_FOUND, FF_ERROR_IO: `apart`, and others hold the SMs, there is no daemon to start, or it
 * cannot be reached. */
FF_API ff_result ff_partition_create(ff_gpu *gpu, const ff_partition_options *options, ff_partition **partition);
/** Waits for its launches and gives the share back. FF_ERROR_BUSY: it has segments still. NULL: nothing. ff_close does
 *  it, too. */
FF_API ff_result ff_partition_destroy(ff_partition *partition);

/** What it has. */
typedef struct ff_partition_info {
  const char *name; /**< until it is destroyed */
  uint32_t device;  /**< as in its options */
  const char *way;  /**< "green" or "rewrite" */
  /** `rewrite`: the first SM's number (%smid); `green`: in the order of the driver's groups, whose numbers it keeps for
   *  itself */
  uint32_t sm_first;
  uint32_t sm_count; /**< SMs that it has, after rounding */
  uint32_t gpu_sms;  /**< of the whole GPU */
  uint64_t budget;   /**< bytes of GPU memory that its segments may take; the GPU's where own_budget is false */
  bool own_budget;   /**< the share named memory */
  /** its memory is in memory modules that no other partition uses. False so far: the driver hands out pieces that lie
   *  in all */
  bool memory_apart;
  bool apart; /**< as in its options */
} ff_partition_info;
/** Fills *info. */
FF_API ff_result ff_partition_describe(ff_partition *partition, ff_partition_info *info);

/** As ff_segment_create and ff_segment_open, in the partition's memory. Where the share names memory only the
 *  partition's launches may use such a
 * segment, and they no other. */
FF_API ff_result ff_partition_segment_create(ff_partition *partition, const char *name, uint64_t bytes,
                                             ff_segment **segment);
/** See ff_partition_segment_create. */
FF_API ff_result ff_partition_segment_open(ff_partition *partition, const char *name, const char *path, unsigned flags,
                                           uint64_t offset, uint64_t bytes, ff_segment **segment);
/** As ff_launch, on the partition's SMs. `rewrite`: a kernel that cannot be bound to SMs fails when it is waited for,
 *  with FF_ERROR_CODE and why. */
FF_API ff_result ff_partition_launch(ff_partition *partition, const ff_launch_request *request, ff_ticket *ticket);

/* ---- plans ---- */

/** Why a launch runs as it does: filled for a request without running it. */
typedef struct ff_plan {
  uint64_t needed;  /**< bytes of GPU memory that the whole launch needs at once */
  uint64_t windows; /**< parts that it would be run in, 1: whole; 0: it cannot be run */
  /** where windows come from ("declared per block", "proved from the PTX"), or why there are none */
  char reason[512];
} ff_plan;
/** Fills *plan for the launch that `request` would be. */
FF_API ff_result ff_launch_plan(ff_gpu *gpu, const ff_launch_request *request, ff_plan *plan);

/* ---- statistics ---- */

/** Counts since ff_open; bytes of all GPUs. */
typedef struct ff_statistics {
  uint64_t launches;            /**< that ff_launch took */
  uint64_t windows;             /**< launches of parts */
  uint64_t to_gpu_copies;       /**< from the host, or another GPU */
  uint64_t to_gpu_bytes;        /**< of them */
  uint64_t from_gpu_copies;     /**< to the host */
  uint64_t from_gpu_bytes;      /**< of them */
  uint64_t zeroed_bytes;        /**< set on the GPU instead of copied */
  uint64_t dropped_bytes;       /**< evicted without a copy: the host had them, or no launch needed them */
  uint64_t evicted_bytes;       /**< all that was evicted */
  uint64_t mapped_pieces;       /**< pieces of GPU memory put behind addresses */
  uint64_t unmapped_pieces;     /**< and taken away */
  uint64_t stalls;              /**< times that a launch had to wait on the host for memory */
  uint64_t recoveries;          /**< times that the driver was out of memory and eviction helped */
  uint64_t resident_bytes;      /**< GPU memory behind segments now */
  uint64_t peak_resident_bytes; /**< the most there was */
  uint64_t host_bytes;          /**< host memory behind segments now */
  uint64_t pinned_host_bytes;   /**< of that: page-locked */
  uint64_t file_read_bytes;     /**< from segments' files */
  uint64_t file_written_bytes;  /**< to them */
} ff_statistics;
/** Fills *statistics. Waits for nothing. */
FF_API ff_result ff_statistics_get(ff_gpu *gpu, ff_statistics *statistics);

#ifdef __cplusplus
}
#endif
#endif
