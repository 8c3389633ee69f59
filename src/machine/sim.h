/* SPDX-License-Identifier: Apache-2.0 */
/* One simulation: a reader of the access stream, a machine, a manager. Runs in its own thread; deterministic. */
#ifndef FF_MACHINE_SIM_H
#define FF_MACHINE_SIM_H

#include <stdbool.h>

#include "base/status.h"
#include "machine/observe/history.h"
#include "machine/stacks/offload_choice.h"
#include "machine/observe/result.h"
#include "machine/spec/spec.h"
#include "policy/manager.h"
#include "trace/future.h"
#include "trace/stream.h"

typedef struct sim sim;

enum { SIM_LABEL_LENGTH = 256 };

/* ---- several programs on one GPU (Jain et al., RTAS 2019) ---- */

enum { SIM_TENANTS = 8 };
typedef struct device sim_device;

typedef enum sim_isolation {
  SIM_ISOLATION_NONE,      /* time slices: kernels of one tenant at a time, on all SMs */
  SIM_ISOLATION_MPS,       /* all at once, on any SM; each within its share of the GPU's threads */
  SIM_ISOLATION_SM,        /* each on SMs of its own */
  SIM_ISOLATION_SM_MEMORY, /* and in memory of its own colours */
  SIM_ISOLATION_MIG,       /* each in a slice of the GPU: nothing is common but the link to the host */
} sim_isolation;

typedef struct sim_tenant {
  uint32_t sm_first, sm_count; /* SIM_ISOLATION_SM, SM_MEMORY: its SMs, in a row; the tenants' follow each other */
  /* SIM_ISOLATION_SM_MEMORY: a bit for each colour of pages of 4 KiB (partition/colours.h) */
  uint64_t colours;
  uint64_t memory_bytes; /* that it may have; 0: all */
  double thread_share;   /* SIM_ISOLATION_MPS: of the GPU's threads */
  /* SIM_ISOLATION_MIG: the machine that it is (spec/mig.h); its simulations are to have it */
  const machine_spec *slice;
  /* simulation after simulation, until those that do not loop are over; but for its kernels nothing takes it time */
  bool loops;
  bool idle; /* nothing runs here */
} sim_tenant;

typedef struct sim_device_options {
  const machine_spec *spec; /* copied */
  const char *set;          /* as sim_options.set, for all tenants; NULL */
  sim_isolation isolation;
  bool borrow; /* SM, SM_MEMORY: what an idle tenant has is lent, and taken back when it has work */
  const sim_tenant *tenants;
  uint32_t count;
} sim_device_options;

typedef struct sim_tenant_result {
  uint64_t take_back_ps; /* the longest from its wish until it had all of its own again */
  uint64_t borrowed_ps;  /* how long it had what others lent */
  uint64_t lent_bytes;   /* that it read and wrote in memory modules of others */
} sim_tenant_result;

/* A device for simulations that are made with sim_options.device; each is to be run by a thread of its own, and none
 * goes on before all that are not idle run. FF_INVALID, FF_LIMIT, FF_UNSUPPORTED (memory that cannot be divided). Freed
 * after them. */
ff_status sim_device_create(const sim_device_options *options, sim_device **out, ff_error *error);
void sim_device_free(sim_device *device);
/* All that do not loop are over. */
bool sim_device_stopped(const sim_device *device);
/* The tenant will run no simulation any more: to be called by its thread if it could not make the next one. */
void sim_device_leave(sim_device *device, uint32_t number);
void sim_device_tenant(const sim_device *device, uint32_t number, sim_tenant_result *out);

/* ---- several devices of one program ---- */

/* Where the simulations of one manager meet, for devices `first` to `first + count - 1`: so that the host's clock is
 * the same in all of them, and streams of one device wait for another one's events. Each has to run, in a thread of its
 * own. Freed after them. */
typedef struct sim_peers sim_peers;
sim_peers *sim_peers_create(uint32_t first, uint32_t count);
void sim_peers_free(sim_peers *peers); /* NULL: nothing */

typedef struct sim_options { /* texts are borrowed until sim_create returns */
  uint32_t device_index;     /* of the devices of the program, the one that is simulated (trace/origin.h) */
  /* borrowed until sim_free; NULL: the host waits for the simulated device only, and its streams for no other one's */
  sim_peers *peers;
  const machine_spec *spec; /* copied */
  /* "NAME=VALUE,...": values of the machine for this simulation, as in its file; NULL: none */
  const char *set;
  const char *manager; /* a name of `list managers` */
  const char *label;   /* what results call it; NULL: the manager's name */
  uint64_t gpu_memory; /* bytes; 0: the spec's */
  /* or of the most that the program has allocated at one time, so far; 0: gpu_memory counts */
  double gpu_memory_share;
  /* paged managers: of the host's memory that their pages may take, in the same way; 0, 0: the spec's */
  uint64_t host_memory;
  double host_memory_share;
  /* what a TLB entry maps: "4K", "64K", "2M", "auto"; NULL: auto, up to the machine's page_bytes */
  const char *page;
  /* launches of a group that are timed before further ones are estimated (sm/sample.h), 2 to 16; 0: all are timed */
  uint32_t sample;
  /* 1 and more: its SMs run in rounds of the L2's latency, on so many threads (sm/rounds.h), with the same results for
   * any number of them; 0: event by event. FF_UNSUPPORTED: rounds_refuse */
  uint32_t threads;
  bool parts;    /* of rounds it is measured what takes how long: sim_round_parts */
  bool l2_flush; /* the L2 is written back and emptied before each kernel, which takes no time and is not counted */
  /* Instead of what a paged manager says; NULL, 0: as it says. */
  const char *advise; /* hints on allocations (machine/host/given_hints.h); only paged managers look at them */
  const char *faults; /* a name of manager_fault_ways, or "NAME:N" (policy/manager.h) */
  const char *prefetch, *evict; /* policies: policy/policies.h */
  const char *access_counters;  /* "256:2M" (sim_counters_read) */
  uint64_t unit_bytes;          /* what a far-fault moves: a power of two, 4 KiB to 2 MiB */
  uint32_t ranges;              /* partial pages: valid ranges that each may have; 0: as the manager says */
  uint64_t gap_bytes;           /* partial pages: a smaller gap between two ranges closes; only if gap_chosen */
  bool gap_chosen;
  watermarks watermarks; /* of what is kept free, if they were chosen; else as the manager says */
  bool watermarks_chosen;
  bool write_back_overlaps; /* an eviction's write-back does not hold up what comes in its place */
  /* borrowed until sim_free: waited for by a simulation whose policies ask for the future; or */
  trace_future *future;
  sim_offload offload; /* machines with stacks: */
  const char *map;     /* sim_map_read; NULL: baseline */
  /* borrowed until sim_free; NULL: nothing is known of the program's candidates, and offload must be NONE */
  const sim_offloading *offloading;
  sim_device *device;  /* that it shares with others, borrowed; NULL: one of its own */
  uint32_t tenant;     /* its number there */
  bool history;        /* is kept: sim_history_take */
  bool lines;          /* accesses are counted by instruction, too: sim_lines_take */
  bool profile;        /* only what happens between cudaProfilerStart and ...Stop is reported (observe/profile.h) */
  bool records_future; /* written by this simulation: its order of first touches, and which blocks use what */
} sim_options;

/* Before the first operation is appended to the program. FF_NOT_FOUND: no such manager (the message lists them). */
ff_status sim_create(trace_program *program, const sim_options *options, sim **out, ff_error *error);
/* Does a policy of it ask for the future? Then sim_run waits until another simulation has recorded it to its end. */
bool sim_needs_future(const sim *sim);
/* Consumes operations until TRACE_OP_END; returns then. To be called by the thread that is this simulation's own. */
void sim_run(sim *sim);
/* Instead of sim_run, for one that is not run after all: those of other devices (sim_options.peers) do not wait for
 * it. */
void sim_withdraw(sim *sim);
/* From another thread: waits until the simulation has got past operation `sequence` and, for a recorded event, knows
 * when it happened; returns picoseconds. The basis of cudaEventElapsedTime. */
uint64_t sim_event_time(sim *sim, uint64_t sequence);
/* Had the event recorded by operation `sequence` happened when the host was past operation `by`? Waits only until those
 * operations were processed; unlike sim_event_time it does not make the device go on. For cudaEventQuery and the
 * like. */
bool sim_event_happened(sim *sim, uint64_t sequence, uint64_t by);
/* The host's virtual clock after operation `sequence` (waits as above; of operations more than 65,536 back, the time of
 * the oldest that is remembered). */
uint64_t sim_host_time(sim *sim, uint64_t sequence);
/* The physical address of a virtual one, after operation `sequence` (waits as above). false: the machine has no address
 * hash. */
bool sim_physical(sim *sim, uint64_t sequence, uint64_t address, uint64_t *physical);
/* Whether it has come to the program's end; adds to *at a number that grows while it gets further. Any thread, any
 * time; cheap. */
bool sim_is_over(sim *sim, uint64_t *at);
/* A consistent copy of the numbers so far (none, but the error, of a manager that was given less memory than it needs);
 * any thread, any time. The caller frees it with sim_result_free. */
void sim_snapshot(sim *sim, sim_result *result);
/* A copy of the history so far, for sim_result.history; NULL: none is kept. Its kernels are numbered as those of a
 * snapshot. */
sim_history *sim_history_take(sim *sim);
/* What rounds have taken, in nanoseconds of processor time. All 0 where that was not asked for. After sim_run. */
typedef struct round_parts {
  uint64_t sms;                   /* SMs side by side, of all threads together, */
  uint64_t serving;               /* what they asked below their L1s, */
  uint64_t side_by_side;          /* of that what threads share, of all of them together, */
  uint64_t steps;                 /* and steps of one SM between two rounds */
  uint64_t rounds, turns, listed; /* rounds; times that SMs ran side by side, and how many did, in all */
  uint64_t stepped, served;       /* steps; requests served */
} round_parts;
void sim_round_parts(const sim *sim, round_parts *parts);
/* What has been counted by instruction so far: result->lines and result->codes, whose kernels are numbered as those of
 * a later snapshot; the caller frees it with sim_result_free. Nothing, if it is not asked for. */
void sim_lines_take(sim *sim, sim_result *result);
void sim_free(sim *sim);

typedef struct sim_manager {
  const char *name, *summary;
} sim_manager;
const sim_manager *sim_managers(uint32_t *count); /* for `list managers` and messages */

#endif
