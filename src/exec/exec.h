/* SPDX-License-Identifier: Apache-2.0 */
/* The functional half of the virtual GPU: what every warp of a launch computes. It has no notion of time.
 *
 * ptx_module (linked) --exec_program_create--> exec_program --exec_program_kernel--> exec_kernel --exec_launch--> results
 * in memory, the access stream (trace/stream.h), statistics, or an exec_fault. */
#ifndef FF_EXEC_EXEC_H
#define FF_EXEC_EXEC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "exec/memory/address_space.h"
#include "farfault/virtual.h"
#include "ptx/ir.h"
#include "trace/stream.h"

/* one linked module, its variables in memory, its kernels decoded on demand */
typedef struct exec_program exec_program;

typedef struct exec_param {
  uint32_t offset, size, align;
} exec_param;

typedef struct exec_kernel_info {
  const char *name; /* as in the PTX (mangled) */
  const exec_param *params;
  uint32_t param_count, param_bytes; /* param_bytes: packed size of the whole parameter block */
  uint32_t static_shared;            /* bytes */
  uint32_t local_bytes;              /* per thread, deepest known stack frame */
  uint32_t registers;                /* per thread: an estimate */
  uint32_t const_bytes;
  uint32_t max_threads;      /* from .maxntid/.reqntid, else 1024 */
  uint32_t cluster[3];       /* .reqnctapercluster; 0: not given */
  const uint64_t *variables; /* addresses of the module's .global and .const variables that its code names */
  uint32_t variable_count;
  uint32_t ptx_version, target; /* 75 for sm_75; ptx_version 87 for 8.7 */
  bool reads_smid;              /* its code, or that of a function it may call */
  /* likewise: it looks at memory in a way that may wait for other threads (volatile, atomics, ...) */
  bool may_wait;
  bool uses_mbarriers; /* likewise */
} exec_kernel_info;

typedef struct exec_kernel exec_kernel;

/* Puts the module's .global and .const variables into memory (with their initial values) and checks them. The module
 * must outlive the program. Functions are decoded when first used: an unsupported instruction is an error of the
 * kernel that reaches it, not of the module (FF_UNSUPPORTED, with the PTX line). Bodies that the module has only
 * noticed (ptx_module_parse_later) are read when a kernel that reaches them is asked for, or called: of functions that
 * are called by their address only what is known of them stays. All are read where a kernel may launch any of them. */
ff_status exec_program_create(const ptx_module *linked, exec_memory *memory, exec_program **program, ff_error *error);
void exec_program_free(exec_program *program);    /* releases the variables */
void exec_program_restart(exec_program *program); /* gives the variables their first values again, where they are */
ff_status exec_program_kernel(exec_program *program, const char *name, exec_kernel **kernel, ff_error *error);
/* A region of the kernel's own function that is marked in the access stream: ENTER where lanes come to its entry from
 * outside, LEAVE when all of them have reached its exit (trace/stream.h). It must be entered only at `entry`, be left
 * only to `exit`, and have no barrier and no end of threads in it; regions do not overlap. Its trips, for ENTER:
 * `trips`; if that is 0, 1 (0 if tested_first) + the number of t = 0, 1, 2 ... for which from + t * step COMPARE to,
 * one after the other; if step is 0, too, they are not known. */
typedef struct exec_bound {
  uint32_t reg;
  int64_t value;
} exec_bound; /* the register plus value; PTX_NO_REG: value */
typedef struct exec_mark {
  uint32_t entry, exit; /* PTX instructions of the function; exit is outside, and may be behind the last one */
  uint32_t trips;
  exec_bound from, to;
  int64_t step;
  ptx_mod compare;   /* PTX_MOD_LT, _LE, _GT, _GE, _EQ, _NE or an unsigned one */
  bool tested_first; /* before the first trip */
  bool is_signed;
  uint32_t bits; /* of the counter: 32 or 64 */
} exec_mark;
/* Before the kernel's first launch; after it nothing changes. Copies them. FF_INVALID: they are not in the order of
 * their entries, or not in the function. Results do not depend on marks, nor does the access stream once they are left
 * out of it. */
ff_status exec_kernel_mark(exec_kernel *kernel, const exec_mark *marks, uint32_t count, ff_error *error);
const exec_kernel_info *exec_kernel_describe(const exec_kernel *kernel);
/* The functions whose instructions an access's number counts (`pc` of an ACCESS), one behind the other: the kernel
 * `func` of the module, then all that it can call. The caller frees the list; returns how many. */
uint32_t exec_functions_of(const ptx_module *linked, const ptx_func *func, const ptx_func ***reach);
/* FF_NOT_FOUND if there is no such .global/.const variable. */
ff_status exec_program_variable(exec_program *program, const char *name, uint64_t *address, uint64_t *bytes,
                                ff_error *error);
/* The host got the address of this variable, if there is one: kernels may store to it by that address even if it is
 * .const, as on a GPU, until exec_program_restart. */
void exec_program_expose(exec_program *program, const char *name);
/* Decoded code as text, for `farfault disasm -v` and debugging: one line per decoded instruction. */
struct ff_text;
void exec_kernel_print(const exec_kernel *kernel, struct ff_text *out);

typedef enum exec_fault_kind { /* what ended a launch */
                               EXEC_FAULT_NONE,
                               EXEC_FAULT_ILLEGAL_ADDRESS,
                               EXEC_FAULT_MISALIGNED,
                               EXEC_FAULT_INVALID_SPACE,
                               EXEC_FAULT_ASSERT,
                               EXEC_FAULT_TRAP,
                               EXEC_FAULT_STACK,
                               EXEC_FAULT_BARRIER,
                               EXEC_FAULT_TIMEOUT,
                               EXEC_FAULT_UNSUPPORTED,
                               EXEC_FAULT_INTERNAL,
                               EXEC_FAULT_INVALID_PC,
                               EXEC_FAULT_ILLEGAL_INSTRUCTION,
                               /* outside of what the launch declares (exec_launch_request.uses) */
                               EXEC_FAULT_UNDECLARED,
} exec_fault_kind;

typedef struct exec_fault {
  exec_fault_kind kind;
  uint32_t block[3], thread[3];
  uint64_t address;
  uint32_t line;      /* PTX line */
  char message[2048]; /* everything: kernel, block, thread, PTX line and text, address, nearest allocation */
} exec_fault;

typedef struct exec_stats {
  uint64_t warp_instructions, thread_instructions, warp_accesses, sectors, blocks, divergent_branches, barriers;
} exec_stats;

#define EXEC_GIVEN_MAX 64u /* launches that have given way at a time */
/* Of nothing but polling before a launch gives way: 50. Tests of many such launches set less, before the first. */
extern uint32_t exec_give_way_ms;

typedef struct exec_config {
  exec_memory *memory;
  uint32_t threads;          /* worker threads; 0: all cores of the host */
  uint32_t resident_blocks;  /* blocks that may be in progress at once (machine occupancy); bounds cooperative grids */
  uint32_t sm_count;         /* %nsmid */
  const uint16_t *sms;       /* the SMs that blocks may be on, each below sm_count; NULL: all */
  uint32_t sms_count;        /* of them */
  uint32_t max_shared;       /* bytes per block, for the check */
  uint32_t compute;          /* 90 for compute capability 9.0: how tensor cores sum; 0: that */
  uint32_t stack_bytes;      /* local memory per thread before EXEC_FAULT_STACK (cudaLimitStackSize); 0: default */
  uint64_t heap_bytes;       /* device malloc (cudaLimitMallocHeapSize) */
  uint64_t max_instructions; /* warp instructions of one launch before EXEC_FAULT_TIMEOUT; 0: none */
  uint64_t clock_hz;         /* for %clock: one cycle per warp instruction; the report says that values depend on it */
  void (*print)(void *context, const char *text, size_t length); /* kernel printf, in block order per launch end */
  void *print_context;
  void (*waiting)(const char *text); /* NULL, or told once if a block has only polled memory for waiting_ms of the
                                      * host's time while no block got further; the launch goes on */
  /* after as long (0: never), a block whose threads only wait at mbarriers, which nothing outside its cluster can
   * reach, ends with EXEC_FAULT_BARRIER */
  uint32_t waiting_ms;
  /* NULL, or called when all blocks in progress have only polled memory for a while, and none got further: what they
   * wait for may come from outside. On the thread that launched, while nothing of the launch runs; it goes on when this
   * returns. */
  void (*give_way)(void *context);
  void *give_way_context;
  const char *isa;                    /* "baseline", "avx2", ... or NULL: the best for this processor */
  volatile const bool *cancel;        /* NULL, or set true to stop (becomes EXEC_FAULT_TIMEOUT) */
  volatile uint64_t *progress_blocks; /* NULL, or counts finished blocks, for a progress display */
} exec_config;

/* A kernel that a thread of a launch has launched (dynamic parallelism). It is run when that launch has finished: its
 * own children before the next of its siblings, those of the tail stream last. Or a graph, which the caller runs. */
typedef struct exec_child {
  const char *kernel; /* the program's; NULL: a graph, and `params` is the handle (8 bytes) that the thread gave */
  uint32_t grid[3], block[3], dynamic_shared;
  bool tail;
  unsigned char *params; /* param_bytes of that kernel, owned */
  uint64_t at;           /* block of the launch that asked; in the order in which its warps ran */
} exec_child;

/* in the order in which they run */
typedef struct exec_children {
  exec_child *items;
  size_t count, capacity;
} exec_children;

/* Cooperative grids of several devices that synchronise with each other: which of them this one is. The word at
 * `meeting` is in memory that all can reach; 0 before the first of them. */
typedef struct exec_grids {
  uint64_t meeting;
  uint32_t rank, count; /* count 0: it is alone */
} exec_grids;

/* What kernels ask of the system about its devices by CUDA's device runtime. */
typedef struct exec_devices {
  uint32_t number, count;                                        /* the one that the launch is on, of how many */
  bool (*attribute)(uint32_t device, int attribute, int *value); /* as cudaDeviceGetAttribute; false: there is none */
  const size_t *limits;                                          /* of the launch's device, by cudaLimit; borrowed */
  uint32_t limit_count;
} exec_devices;

typedef struct exec_launch_request {
  exec_kernel *kernel;
  uint32_t grid[3], block[3];
  /* blocks of a cluster, which divide the grid, 16 at most; 0: as the kernel says, else 1 */
  uint32_t cluster[3];
  uint32_t dynamic_shared;
  const void *params; /* param_bytes bytes, laid out by exec_param */
  bool cooperative;
  exec_grids grids;    /* only where it is cooperative */
  uint64_t launch_id;  /* %gridid */
  uint64_t graph;      /* %current_graph_exec: the graph whose node it is; 0: none */
  trace_launch *trace; /* NULL: no access stream is wanted */
  bool touches;        /* trace_launch_ask has said yes: instead of records it gets footprints */
  const ff_virtual_use
      *uses; /* NULL: nothing is declared, everything is allowed. Otherwise these `use_count` uses (none: an
                               * access to any allocation but exempt ones is a fault), borrowed */
  uint32_t use_count;
  /* NULL: a kernel cannot launch others. Otherwise what it launched is added: exec_children_free */
  exec_children *children;
  const exec_devices *devices; /* NULL: what is asked about them gives cudaErrorInvalidValue; borrowed */
} exec_launch_request;

/* The process ends, perhaps from the middle of a launch (a worker has no memory): no other thread runs blocks from here
 * on, or looks at a launch or at the access stream. False: some have not come to the end of their turn in so many
 * milliseconds; config.cancel makes turns short. */
bool exec_end(int patience_ms);
bool exec_is_inside(void); /* the calling thread runs blocks of a launch */

/* Runs the whole grid and returns when it has finished. FF_OK: ran. FF_FAULT: *fault says why it stopped (memory keeps
 * what was written). FF_INVALID: the configuration is impossible (message in *error). *stats is added to, not reset.
 * With threads == 1 the blocks run in an order that depends on nothing but the launch: results, statistics and the
 * access stream are the same on every run, even if blocks race. With more, they are if blocks do not race, but for the
 * order of floating-point atomics. */
ff_status exec_launch(const exec_config *config, const exec_launch_request *request, exec_stats *stats,
                      exec_fault *fault, ff_error *error);

void exec_children_free(exec_children *children);

/* The instruction sets this build has and this processor can run, best first; NULL-ended. */
const char *const *exec_isas(void);

#endif
