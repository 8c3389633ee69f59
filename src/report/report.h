/* SPDX-License-Identifier: Apache-2.0 */
/* A run and its reports: JSON (written and read back), CSV, and the table for people.
 *
 * report_run holds everything a report shows; session.c fills it in the program's process and writes it as JSON,
 * `farfault run` and `farfault report` read that and print. docs/json.md is the schema's documentation.
 *
 * Reading what was written gives the same report_run; all simulated numbers come before the "host"
 * section, and are the same bytes for the same run; the ratio is a run's time over that of the manager `copy`, or of
 * the first run that has a time where `copy` is not among them. */
#ifndef FF_REPORT_REPORT_H
#define FF_REPORT_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"
#include "machine/observe/history.h"
#include "machine/observe/result.h"

#define REPORT_SCHEMA 1

typedef double report_type_f;
typedef uint64_t report_type_u;

typedef struct report_host {
#define X(name, type, unit, help) report_type_##type name;
#include "report/host.def"
#undef X
} report_host;

typedef struct report_stream { /* that the program has named */
  uint32_t stream;             /* as in the history: with its device */
  char name[64];
} report_stream;

/* So begins a note that says why what was simulated from a recording is not all that the program did. */
#define REPORT_NOTE_RECORDING "the recording"

typedef struct report_run { /* all pointers are owned: report_free */
  char version[32];         /* of farfault */
  char *command;            /* the program and its arguments, quoted for a shell; NULL: unknown */
  bool complete;            /* the program ended and every simulation with it */
  /* the process of `farfault run --live` that wrote it while the program ran; 0: it is of a run that has ended */
  uint64_t running;
  char **notes; /* lines for the reader ("values depend on %clock"); of a broken recording: REPORT_NOTE_RECORDING */
  uint32_t note_count;
  report_stream *streams; /* by number */
  uint32_t stream_count;
  sim_result *results; /* one per manager, in the order asked for; may be none (functional only) */
  uint32_t result_count;
  report_host host;
} report_run;

void report_free(report_run *run);
void report_note(report_run *run, const char *text); /* copies the text; a text that is there already is not repeated */

/* A later name goes before an earlier one; an empty one takes it back. */
void report_name_stream(report_run *run, uint32_t stream, const char *name);
/* As much of the name as there is room for; no part of a character. */
void report_cut_name(char *to, size_t size, const char *name);
enum { REPORT_STREAM_BYTES = 112 };
/* "default stream", "stream 3", "upload (stream 3)". Returns buffer. */
const char *report_stream_name(const report_run *run, uint32_t stream, char buffer[REPORT_STREAM_BYTES]);

/* A note that the manager thrashes, with what was seen of it; none if it does not. */
void report_note_thrashing(report_run *run, const sim_result *result);

/* What the ratios are relative to: the run `copy`, else the first one without an error; NULL: none has a time. */
/* Of several devices, those of the device. */
const sim_result *report_baseline(const report_run *run, uint32_t device);
/* Why the manager could not run the program: its error, without its own name in front. Belongs to the result. */
const char *report_reason(const sim_result *result);
/* 0: there is none (an error, no time, a snapshot) */
double report_ratio(const report_run *run, const sim_result *result);
/* How much faster kernels are than those of the first simulation with memory stacks: its kernel_ps over this one's; 0:
 * there is none, as above. */
double report_stacks_speed(const report_run *run, const sim_result *result);

/* The JSON text of schema 1, ending in a newline, added to *out. */
void report_json_write(const report_run *run, ff_text *out);
/* The same with the history of each run that has one (-o), and with a checksum. */
void report_json_write_whole(const report_run *run, ff_text *out);
/* Reads it back. Unknown keys are ignored (later versions may add some), a wrong type or another schema is FF_PARSE
 * with `file` (a name for messages), line and column where the text is not JSON at all; so is a text of which the
 * checksum is another one. */
ff_status report_json_read(const char *file, const char *text, size_t size, report_run *run, ff_error *error);
ff_status report_file_read(const char *path, report_run *run, ff_error *error);

/* CSV by RFC 4180 but with bare newlines: a header row, then one row per manager: memory, machine, complete, error, the
 * derived columns of the JSON, every counter. `header`: whether to write the header row (several runs in one file). */
typedef struct report_columns {
  bool stacks;    /* those of memory stacks */
  uint32_t tiers; /* those of so many tiers */
} report_columns;
void report_columns_add(const report_run *run, report_columns *columns); /* those that the run has, too */
void report_csv_write(const report_run *run, bool header, const report_columns *columns, ff_text *out);
bool report_has_stacks(const report_run *run); /* a machine of it has memory stacks */
/* The columns of `count` tiers below GPU memory, each with a comma in front, in the header and in a row: by their
 * number, as machines may call them differently; empty where the row has fewer. */
void report_csv_tiers_head(uint32_t count, ff_text *out);
void report_csv_tiers(const sim_tiers *tiers, uint32_t count, ff_text *out);

typedef struct report_style {
  bool verbose;   /* tables per kernel and per allocation, and the host's numbers */
  uint32_t lines; /* of each simulation's table of lines, where they were kept; 0: no such tables */
} report_style;
/* The table, for a monospaced terminal of about 110 columns; plain text without escapes. */
void report_table_write(const report_run *run, const report_style *style, ff_text *out);

/* 1234567890 ps -> "1.23 ms": three significant digits, ps to s. Writes at most `size` bytes; returns buffer. */
const char *report_format_time(uint64_t picoseconds, char *buffer, size_t size);
/* 1234567 -> "1.23 M"; up to 99999 as it is. */
const char *report_format_count(uint64_t count, char *buffer, size_t size);

#endif
