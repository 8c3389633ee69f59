/* SPDX-License-Identifier: Apache-2.0 */
/* NVTX, NVIDIA's annotations: the ranges that each thread of the program is in.
 *
 * libfarfault-nvtx.so is loaded by every copy of NVTX in the process (NVTX_INJECTION64_PATH; the header's and
 * libnvToolsExt.so's) and by the engine, so that all of them see one state. The binary interface is that of NVTX 3's
 * headers (nvtxDetail/nvtxTypes.h); none of them is used.
 *
 *   nvtx_inject.c  InitializeInjectionNvtx2: puts our functions into the tables of a copy of NVTX
 *   nvtx_calls.c   these functions; libnvToolsExt.so.1 has them under their names
 *   nvtx.c         the state behind them
 *
 * Every thread has a stack of open ranges, of all domains together, in the order in which they were opened. */
#ifndef FF_DRIVER_NVTX_H
#define FF_DRIVER_NVTX_H

#include <stdbool.h>
#include <stdint.h>

#define NVTX_SHOWN __attribute__((visibility("default")))

enum { NVTX_PATH_BYTES = 128 }; /* of farfault_nvtx_range, with its end */

/* ---- what the engine asks ---- */

/* The ranges that the calling thread is in, the outermost first: "step/layer2/conv", at most NVTX_PATH_BYTES - 1 bytes
 * of UTF-8 (outer ones are left out where it would be longer). NULL: none is open. A range of a domain with a name is
 * "domain:range". The text lives as long as the process, and is the same one for the same path. */
NVTX_SHOWN const char *farfault_nvtx_range(void);

/* From now on, when the program names a stream: its handle, and the name in UTF-8. The names that came before are lost:
 * without an engine there is no stream. */
NVTX_SHOWN void farfault_nvtx_tell_streams(void (*function)(void *stream, const char *name));

/* From now on, whenever a range begins or ends whose name is `name`, as paths have it ("conv", "domain:conv"; the text
 * is copied): `function` is called, in the thread that opened or closed it and without a lock of ours. The last call
 * counts. */
NVTX_SHOWN void farfault_nvtx_watch(const char *name, void (*function)(void));
/* How many such ranges are open in all threads; those of a thread that has ended are closed. */
NVTX_SHOWN uint64_t farfault_nvtx_watched(void);

/* A range that begins or ends. number: from 1, of no other range; thread: from 0, in the order of their first ranges;
 * name: "conv", or "domain:conv" with the length of the domain's name in `domain`; started: any thread may end it. */
typedef struct nvtx_event {
  uint64_t number;
  uint32_t thread;
  bool begin, started;
  uint8_t domain;
  char name[80]; /* UTF-8, cut where it is longer */
} nvtx_event;
typedef void (*nvtx_teller)(const nvtx_event *event);
/* From now on, whenever a range begins or ends: `function` is called, in the thread that opened or closed it and
 * without a lock of ours. First, for each range that is open in any thread, `open`, with our lock held. */
NVTX_SHOWN void farfault_nvtx_tell_ranges(nvtx_teller function, nvtx_teller open);

/* ---- what nvtx_calls.c needs; names are UTF-8, NULL is an empty one ---- */

typedef struct nvtx_domain nvtx_domain;                         /* NULL: the default domain */
NVTX_SHOWN nvtx_domain *farfault_nvtx_domain(const char *name); /* the same one for the same name; lives on */
/* The level of the range among its domain's of this thread, from 0. */
NVTX_SHOWN int farfault_nvtx_push(const nvtx_domain *domain, const char *name);
/* The level of the range that was closed; -1: none of the domain is open in this thread. */
NVTX_SHOWN int farfault_nvtx_pop(const nvtx_domain *domain);
/* A range that any thread may close; until then it is one of this thread's. Its number, not 0. */
NVTX_SHOWN uint64_t farfault_nvtx_start(const nvtx_domain *domain, const char *name);
NVTX_SHOWN void farfault_nvtx_end(uint64_t number);
NVTX_SHOWN void farfault_nvtx_name_stream(void *stream, const char *name);
/* A copy of the text that lives as long as the process. */
NVTX_SHOWN const char *farfault_nvtx_keep(const char *text);

/* The functions of NVTX that a tool may replace, by module and number; NULL: none of ours. */
void (*ff_nvtx_function(unsigned module, unsigned number))(void);

#endif
