/* SPDX-License-Identifier: Apache-2.0 */
/* A program's future: which thread block uses which page, and in which order pages are touched first. Clairvoyant
 * policies read it (Belady's eviction, the oracle prefetcher); it is known when the program has been recorded to its
 * end.
 *
 *   recorder: trace_future_launch/_range/_block/_touch ... trace_future_complete
 *   others:   trace_future_wait, then the look-ups, from any number of threads
 *
 * A *position* counts thread blocks in the program's order: the blocks of one launch follow each other, launches follow
 * each other as the host made them. A copy or set by the GPU has the position of the next launch's first block.
 *
 * Once complete it does not change any more (asserted). A page's runs are then sorted, not empty, and apart from each
 * other: first <= last, and last + 1 < the next run's first (trace_future_complete checks it at the deep level). */
#ifndef FF_TRACE_FUTURE_H
#define FF_TRACE_FUTURE_H

#include "trace/stream.h"

#define TRACE_FUTURE_NEVER UINT64_MAX

typedef struct trace_future trace_future;

trace_future *trace_future_create(void);
void trace_future_free(trace_future *future);

/* ---- one thread records ---- */

/* in the program's order, before its blocks */
void trace_future_launch(trace_future *future, const trace_launch *launch);
void trace_future_range(trace_future *future, uint64_t address, uint64_t bytes); /* copied or set by the GPU */
/* All pages that the block's accesses reach. The reader has taken the chunk and not released it. */
void trace_future_block(trace_future *future, trace_reader *reader, trace_chunk *chunk, const trace_launch *launch,
                        uint64_t block);
/* as time goes on; only a page's first touch is kept */
void trace_future_touch(trace_future *future, uint64_t address);
void trace_future_complete(trace_future *future);

/* ---- when it is complete ---- */

void trace_future_wait(trace_future *future);
uint64_t trace_future_position(const trace_future *future, const trace_launch *launch, uint64_t block);
/* The first position, `from` or later, at which a page of the range is used; TRACE_FUTURE_NEVER: there is none. */
uint64_t trace_future_next_use(const trace_future *future, uint64_t address, uint64_t bytes, uint64_t from);
/* The address of the page that is touched first as the index-th (from 0); TRACE_FUTURE_NEVER: there are not so many. */
uint64_t trace_future_first_touch(const trace_future *future, uint64_t index);

#endif
