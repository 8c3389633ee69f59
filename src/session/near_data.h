/* SPDX-License-Identifier: Apache-2.0 */
/* What simulations with memory stacks are told of a recorded program before they begin: the first pass over its trace
 * (offload/profile.h), with what the compiler says of its kernels (offload/candidate_table.h).
 *
 *   near_data_prepare --> session_create ... session_free --> near_data_free */
#ifndef FF_STUDY_NEAR_DATA_H
#define FF_STUDY_NEAR_DATA_H

#include "session/session.h"
#include "trace/file.h"

typedef struct near_data near_data;

/* Does what the options' simulations need, and says so in the options (offloading, marks). *out: NULL if they need
 * nothing; else what lies behind the options, to be freed after the session. watch: as for trace_file_feed, NULL: none.
 * The file is rewound. Damage of the file is no error here: what stands before it counts. FF_UNSUPPORTED: the trace has
 * no marks, and a simulation offloads or has a map found; FF_INVALID: two simulations with the oracle's maps have
 * different numbers of stacks; and what session_create says of options that are none. */
ff_status near_data_prepare(trace_file *file, session_options *options, const trace_file_watch *watch, near_data **out,
                            ff_error *error);
/* What of the program's code could not be used, a sentence for the report; NULL: nothing. */
const char *near_data_problem(const near_data *data);
void near_data_free(near_data *data); /* NULL: nothing */

#endif
