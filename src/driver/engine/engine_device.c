/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of the process: how many there are, which one a thread or a stream means, and whose memory which one may
 * use.
 *
 * A thread's device is that of the driver API's current context, if it has one, else the one that cudaSetDevice chose,
 * else the first. cudaSetDevice makes that device's primary context current, so it changes the former, too: libcuda
 * hears of it when it looks next (engine_device_chosen).
 *
 * A kernel sees the memory of its own device, managed and host memory, and that of others' which was opened to it: by
 * engine_peer_enable, or for what is from a pool or mapped by that call's own way. All else is hidden from it while it
 * runs (exec/memory/visibility.h). With one device none of this does anything. */
#include <stdio.h>

#include "driver/engine/engine_internal.h"
#include "driver/engine/engine_ipc.h"
#include "driver/engine/engine_peer.h"
#include "exec/memory/multicast.h"
#include "exec/memory/visibility.h"
#include "machine/spec/links.h"
#include "trace/origin.h"

_Static_assert(ENGINE_DEVICES_MAX == TRACE_DEVICES_MAX, "each has a number in the access stream");

static _Thread_local int chosen = -1; /* by cudaSetDevice; -1: none */
static _Thread_local int given = -1;  /* by the current context; -1: none */
static _Thread_local int meant = -1;  /* by a call that is about several; -1: none */
static _Thread_local bool chosen_lately;
static int first;                          /* cudaSetValidDevices */
static uint32_t peers[ENGINE_DEVICES_MAX]; /* bit b of peers[a]: a may use b's memory */
static int shown;                          /* whose kernels see what they may */
static bool changed;                       /* since then */
static _Atomic unsigned context_flags[ENGINE_DEVICES_MAX];
static bool (*_Atomic ask_context)(unsigned *flags);

/* ---- which ---- */

/* A library of a newer CUDA takes a driver of its own version for one that compiles its PTX, and hands an older one
 * machine code. */
enum { NEWEST_LIBRARIES = 13050 };

uint32_t engine_driver_version(void) {
  const char *wanted = getenv("FARFAULT_DRIVER_VERSION");
  uint32_t version = wanted ? session_driver_version(wanted) : 0;
  return version ? version : NEWEST_LIBRARIES;
}

uint32_t engine_devices(void) { return ff_engine.session ? session_devices(ff_engine.session) : 1; }

bool engine_device_exists(int device) { return device >= 0 && (uint32_t)device < engine_devices(); }

int engine_device_current(void) { return meant >= 0 ? meant : given >= 0 ? given : chosen >= 0 ? chosen : first; }

void engine_device_mean(int device) { meant = device; }

void engine_device_choose(int device) {
  chosen = device;
  if (given >= 0) given = device;
  chosen_lately = true;
  engine_green_use(NULL);
}

bool engine_device_chosen(int *device) {
  bool lately = chosen_lately;
  chosen_lately = false;
  *device = chosen;
  return lately;
}

void engine_device_give(int device) { given = device; }

void engine_device_prefer(int device) { first = device; }

unsigned engine_device_flags(int device) { return context_flags[device]; }

void engine_device_flags_set(int device, unsigned flags) { context_flags[device] = flags; }

void engine_context_flags_tell(bool (*ask)(unsigned *flags)) { ask_context = ask; }

bool engine_context_flags(unsigned *flags) {
  bool (*ask)(unsigned *flags) = ask_context;
  return ask && ask(flags);
}

int engine_device_of(const engine_stream *stream) { return stream ? stream->device : engine_device_current(); }

uint32_t engine_origin(int device) { return trace_origin(0, (uint32_t)device, false); }

/* ---- peers ---- */

void engine_peers_changed(void) { changed = true; }

static cudaError_t check_peer(int device, int peer) {
  return engine_device_exists(device) && engine_device_exists(peer) ? cudaSuccess : cudaErrorInvalidDevice;
}

/* The machine's links; before there is a session, and with one device, there is nothing to ask. */
static machine_path path_between(int device, int peer) {
  const machine_spec *machine = ff_engine.session ? session_machine(ff_engine.session) : NULL;
  return machine ? machine_path_between(machine, (uint32_t)device, (uint32_t)peer)
                 : (machine_path){.way = MACHINE_WAY_BUS};
}

bool engine_peer_possible(int device, int peer) {
  return device != peer && path_between(device, peer).way != MACHINE_WAY_HOST;
}

bool engine_peer_has_nvlink(int device, int peer) {
  machine_way way = path_between(device, peer).way;
  return way == MACHINE_WAY_JOINED || way == MACHINE_WAY_SWITCH;
}

double engine_peer_joined_gbs(int device, int peer) {
  machine_path path = path_between(device, peer);
  return path.way == MACHINE_WAY_JOINED ? path.gbs : 0;
}

static bool any_nvlink(void) {
  for (int a = 0; a < (int)engine_devices(); a++)
    for (int b = 0; b < a; b++)
      if (engine_peer_has_nvlink(a, b)) return true;
  return false;
}

enum { P2P_RANK = 1, P2P_ACCESS = 2, P2P_ATOMICS = 3 };

int engine_peer_attribute(int attribute, int device, int peer) {
  switch (attribute) {
  case P2P_RANK: return any_nvlink() && !engine_peer_has_nvlink(device, peer);
  case P2P_ACCESS: return engine_peer_possible(device, peer);
  case P2P_ATOMICS: return engine_peer_has_nvlink(device, peer);
  default: return 0;
  }
}

cudaError_t engine_peer_enable(int device, int peer) {
  cudaError_t error = engine_enter();
  if (error) return error;
  error = check_peer(device, peer);
  if (!error && device == peer) error = cudaErrorDeviceUninitialized; /* CUDA_ERROR_INVALID_CONTEXT, of libcuda */
  if (!error && !engine_peer_possible(device, peer)) error = cudaErrorPeerAccessUnsupported;
  if (!error && peers[device] >> peer & 1) error = cudaErrorPeerAccessAlreadyEnabled;
  if (!error) {
    peers[device] |= UINT32_C(1) << peer;
    engine_peers_changed();
    engine_append_host();
  }
  engine_leave();
  return error;
}

cudaError_t engine_peer_disable(int device, int peer) {
  cudaError_t error = engine_enter();
  if (error) return error;
  error = check_peer(device, peer);
  if (!error && !(peers[device] >> peer & 1)) error = cudaErrorPeerAccessNotEnabled;
  if (!error) {
    peers[device] &= ~(UINT32_C(1) << peer);
    engine_peers_changed();
    engine_append_host();
  }
  engine_leave();
  return error;
}

void engine_peers_reset(int device) {
  peers[device] = 0;
  for (uint32_t d = 0; d < ENGINE_DEVICES_MAX; d++) peers[d] &= ~(UINT32_C(1) << device);
  engine_peers_changed();
}

/* ---- whose memory ---- */

int engine_memory_device(const exec_allocation *allocation) {
  if (allocation->range == EXEC_MAPPED) return engine_mapped_device(allocation);
  return allocation->id < ff_engine.notes.count ? ff_engine.notes.items[allocation->id].device : 0;
}

bool engine_peer_may(int device, const exec_allocation *allocation, bool write) {
  int owner = engine_memory_device(allocation), access;
  bool may;
  if (allocation->kind != EXEC_MEMORY_DEVICE || owner == device) return true;
  if (engine_ipc_allows(allocation, device, &may)) return may;
  if (engine_pool_allows(allocation, device, &access))
    return access == ENGINE_ACCESS_READ_WRITE || (access == ENGINE_ACCESS_READ && !write);
  return peers[device] >> owner & 1;
}

/* Pinned memory is every device's, but for that of a pool on the host. */
static bool kernel_may(int device, const exec_allocation *allocation, bool write) {
  int access;
  if (allocation->kind != EXEC_MEMORY_PINNED || !engine_pool_allows(allocation, device, &access))
    return engine_peer_may(device, allocation, write);
  return access == ENGINE_ACCESS_READ_WRITE || (access == ENGINE_ACCESS_READ && !write);
}

/* Of a kernel on the device that is shown; it runs under the lock, but on several threads. */
static const char *why_closed(const exec_allocation *allocation) {
  static _Thread_local char text[112];
  int owner = engine_memory_device(allocation);
  if (exec_multicast_find(allocation->address).team)
    snprintf(text, sizeof text, "multicast memory, which only multimem instructions can use");
  else if (allocation->range == EXEC_MAPPED)
    snprintf(text, sizeof text, "mapped %s for device %d (cuMemSetAccess says who may use it)",
             engine_mapped_may(allocation, shown, false) ? "for reading only" : "without access", shown);
  else if (allocation->kind == EXEC_MEMORY_PINNED)
    snprintf(text, sizeof text, "of a pool on the host, which device %d may %s (cudaMemPoolSetAccess says who may)",
             shown, kernel_may(shown, allocation, false) ? "only read" : "not use");
  else snprintf(text, sizeof text, "memory of device %d, to which device %d has no peer access", owner, shown);
  return text;
}

void engine_peers_show(int device) {
  if ((engine_devices() == 1 && !engine_pools_on_host()) || (shown == device && !changed)) return;
  for (size_t id = 0; id < ff_engine.notes.count; id++) {
    const exec_allocation *allocation =
        ff_engine.notes.items[id].owner == ENGINE_OWNER_NONE ? NULL : ff_engine.notes.items[id].allocation;
    if (!allocation || (allocation->kind != EXEC_MEMORY_DEVICE && allocation->kind != EXEC_MEMORY_PINNED)) continue;
    for (const exec_allocation *a = allocation; a; a = engine_pool_next(a))
      exec_memory_open(a, kernel_may(device, allocation, false), kernel_may(device, allocation, true));
  }
  exec_memory_explain(why_closed);
  engine_vmm_show(device);
  shown = device;
  changed = false;
}
