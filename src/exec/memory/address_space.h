/* SPDX-License-Identifier: Apache-2.0 */
/* The virtual GPU's address space.
 *
 * A device address *is* a host address: the whole arena is one reserved range of the process, so that managed and
 * pinned pointers work on both sides. It begins at EXEC_ARENA_CANONICAL, so that the same program gets the same
 * addresses in every run; where something else lies there already, it is elsewhere. A table with one entry per 4 KiB
 * page of the arena finds the allocation of any address in O(1).
 *
 *   exec_memory_base ....... device, managed and pinned allocations ........ + EXEC_ARENA_BYTES
 *   EXEC_SHARED_WINDOW ..... generic addresses of the running block's shared memory (16 MiB, unmapped), and behind it
 *                            16 MiB for each block of its cluster, by rank
 *   EXEC_LOCAL_WINDOW ...... generic addresses of the running thread's local memory (16 MiB, unmapped)
 *   other host memory ...... known if registered (cudaHostRegister), or if it was shown (exec_memory_show)
 *
 * What leaves the process has *canonical* addresses (exec_memory_canonical), which are the same in every run, wherever
 * the arena is and however the host places its memory: the access stream, and with it simulations and recordings.
 *
 * Invariants (check_tiling): allocations do not overlap, and every one starts on a 4 KiB page of its own (2 MiB if it
 * is that large). An allocation ends at the byte: the one after `bytes` is out of bounds, and with padding
 * (exec_memory_pad) so is everything up to that distance behind it and in front of it. Freed allocations are kept until
 * their range is used again, so that a use after free can be named. */
#ifndef FF_EXEC_MEMORY_H
#define FF_EXEC_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define EXEC_ARENA_CANONICAL UINT64_C(0x200000000000)
#define EXEC_REGISTERED_CANONICAL UINT64_C(0x300000000000) /* registered host memory, up to 0x7f... */
#define EXEC_ARENA_BYTES (UINT64_C(1) << 40)
#define EXEC_SHARED_WINDOW UINT64_C(0x1fff00000000)
#define EXEC_LOCAL_WINDOW UINT64_C(0x1fff80000000)
#define EXEC_WINDOW_BYTES (UINT64_C(1) << 24)
#define EXEC_CLUSTER_BYTES (17 * EXEC_WINDOW_BYTES) /* of the shared memory of a cluster */
#define EXEC_PAGE_BYTES 4096u
#define EXEC_PADDING_MAX (1u << 30)

typedef enum exec_memory_kind {
  EXEC_MEMORY_DEVICE,
  EXEC_MEMORY_MANAGED,
  EXEC_MEMORY_PINNED,
  EXEC_MEMORY_REGISTERED,
  EXEC_MEMORY_SYSTEM /* host memory that kernels may touch without its being registered */
} exec_memory_kind;

typedef enum exec_range { EXEC_ALLOCATED, EXEC_RESERVED, EXEC_MAPPED } exec_range;

typedef struct exec_allocation {
  uint64_t address, bytes;
  exec_memory_kind kind;
  exec_range range;
  uint32_t id;     /* from 1, in order of allocation, not reused; a mapping has its reservation's */
  uint64_t memory; /* a mapping's: what the caller gave for its memory */
  bool freed;
  bool read_only; /* .const variables, unless the host has their address: a kernel's store is a fault */
  bool constant;  /* .const variables and parameters: isspacep.const */
  bool exempt;    /* module variables, parameters, the heap: launches do not declare their use */
  char name[64];  /* "cudaMalloc #3 (4000 bytes)" or a variable's name */
} exec_allocation;

typedef struct exec_memory exec_memory;

ff_status exec_memory_create(exec_memory **memory, ff_error *error);
void exec_memory_free(exec_memory *memory);

/* Where the arena begins; a multiple of 1 GiB, and at the first places that are tried, of 1 TiB. */
uint64_t exec_memory_base(const exec_memory *memory);
bool exec_memory_in_arena(const exec_memory *memory, uint64_t address);
/* What an address is called outside of the process; the same modulo 4096, in the arena modulo 1 GiB. 0: it is neither
 * in the arena nor in live registered memory. */
uint64_t exec_memory_canonical(const exec_memory *memory, uint64_t address);

/* Before the first allocation: from now on the nearest of others is at least so many bytes (EXEC_PADDING_MAX at most)
 * before and after each, and so are blocks of device malloc. Reservations and what is mapped in them have their
 * program's addresses, and no padding. */
void exec_memory_pad(exec_memory *memory, uint64_t bytes);
uint64_t exec_memory_padding(const exec_memory *memory);

/* Zero-filled. Thread-safe (a lock); lookups take no lock. *allocation stays valid until exec_memory_free. */
ff_status exec_memory_allocate(exec_memory *memory, uint64_t bytes, uint64_t alignment, exec_memory_kind kind,
                               const char *name, const exec_allocation **allocation, ff_error *error);
/* Several allocations, one behind the other in one range, all or none. Each is released on its own. */
typedef struct exec_wanted {
  uint64_t bytes, alignment;
  const char *name;
} exec_wanted;
ff_status exec_memory_allocate_row(exec_memory *memory, const exec_wanted *wanted, uint32_t count,
                                   exec_memory_kind kind, const exec_allocation **allocations, ff_error *error);
/* FF_NOT_FOUND: no live allocation starts there. The pages go back to the host; the span stays as a tombstone. */
ff_status exec_memory_release(exec_memory *memory, uint64_t address, ff_error *error);
/* From now on the allocation's pages are the first ones of `file`, which other processes may have mapped, too; what
 * they hold is written there first if `keep`. Its address stays, and the file may be closed. FF_NO_MEMORY: the host
 * cannot, and nothing has changed. Nothing may run on the device meanwhile. */
ff_status exec_memory_share(exec_memory *memory, const exec_allocation *allocation, int file, bool keep,
                            ff_error *error);
/* Makes existing host memory visible to kernels (cudaHostRegister), and takes it back. */
ff_status exec_memory_register(exec_memory *memory, void *host, uint64_t bytes, const exec_allocation **allocation,
                               ff_error *error);
ff_status exec_memory_unregister(exec_memory *memory, void *host, ff_error *error); /* of both */
/* Makes host memory visible to kernels that is not registered: of [begin, end), which the host may read, and write
 * if `writable`, the part around `address` that is not visible yet. FF_INVALID: `address` is visible, or the virtual
 * GPU's; FF_LIMIT: too many ranges are visible. Thread-safe, also while kernels run. */
ff_status exec_memory_show(exec_memory *memory, uint64_t address, uint64_t begin, uint64_t end, bool writable,
                           const char *name, const exec_allocation **allocation, ff_error *error);

/* Addresses without memory, multiples of 2 MiB; from `wanted` on if that is not 0 and free. Released by
 * exec_memory_release. */
ff_status exec_memory_reserve(exec_memory *memory, uint64_t bytes, uint64_t alignment, uint64_t wanted,
                              const char *name, const exec_allocation **reservation, ff_error *error);
/* Maps whole pages of a reservation, none of which is mapped (FF_INVALID), to `file` from `offset` on. `handle`: for
 * .memory. FF_NO_MEMORY: the host cannot. *mapping stays valid until it is unmapped. Nothing may run on the device
 * meanwhile. */
ff_status exec_memory_map(exec_memory *memory, uint64_t address, uint64_t bytes, int file, uint64_t offset,
                          uint64_t handle, const char *name, const exec_allocation **mapping, ff_error *error);
/* FF_NOT_FOUND: no mapping starts there. Leaves no trace of it. */
ff_status exec_memory_unmap(exec_memory *memory, uint64_t address, ff_error *error);
/* A mapping's reservation; anything else itself. */
const exec_allocation *exec_memory_holder(const exec_allocation *allocation);
bool exec_memory_may(const exec_allocation *allocation, bool write); /* be read, be written, by kernels and copies */

/* The allocation (live or freed) that holds `address`, else NULL. */
const exec_allocation *exec_memory_find(const exec_memory *memory, uint64_t address);
/* The same, and of an address next to it the allocation whose pages, or padding, it is in. */
const exec_allocation *exec_memory_owner(const exec_memory *memory, uint64_t address);
/* The live allocation that ends nearest below or starts nearest above `address`, for messages; NULL: there is none. */
const exec_allocation *exec_memory_nearest(const exec_memory *memory, uint64_t address);
uint64_t exec_memory_bytes(const exec_memory *memory, exec_memory_kind kind); /* live bytes of that kind */

#endif
