/* SPDX-License-Identifier: Apache-2.0 */
/* A recorded program through a session, in this process: what `farfault run` does, without the program. */
#ifndef FF_STUDY_REPLAY_H
#define FF_STUDY_REPLAY_H

#include "session/session.h"
#include "trace/file.h"

/* Makes a session of the options, feeds it the file, and finishes it: results go where the options say. FF_PARSE: the
 * file is damaged; what stands before is simulated, and the results say that they are of a part. FF_UNSUPPORTED: the
 * trace has not what they need (near_data.h). */
ff_status replay_run(trace_file *file, const session_options *options, ff_error *error);

/* How many GPUs the recorded program had; rewinds the file. */
uint32_t replay_devices(trace_file *file);

#endif
