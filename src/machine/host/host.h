/* SPDX-License-Identifier: Apache-2.0 */
/* The host: its virtual clock, and what each operation costs it. */
#ifndef FF_MACHINE_HOST_HOST_H
#define FF_MACHINE_HOST_HOST_H

#include "machine/sim.h"
#include "machine/time.h"

enum { HOST_TIMES = 1 << 16 };

void host_spend(sim *s, ps cost);                  /* host time; the device goes on meanwhile */
void host_wait_for_device(sim *s);
typedef struct host_memory { uint64_t bytes, pages, raw; } host_memory; /* as the manager hands it out; in whole pages; as the program counts it: bytes */
host_memory host_memory_for(const sim *s, uint64_t address, uint64_t bytes); /* that a range takes which is not mapped now */
/* GPU memory for `name`; false: there is none, and the simulation has failed. */
bool host_take_memory(sim *s, host_memory memory, const char *name);
void host_give_memory(sim *s, host_memory memory);
void host_spend_call(sim *s);                      /* the cost of a CUDA call that does not wait */
void host_process(sim *s, const trace_op *op);
void sim_fail(sim *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
