/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * libfarfault-simulate: what the program `farfault` does, for other programs: CUDA programs run on the virtual GPU,
 * recorded and simulated, studies swept, and the results read.
 *
 *     cc $(pkg-config --cflags farfault-simulate) mine.c $(pkg-config --libs farfault-simulate)
 *
 *     ff_simulate_run, ff_simulate_recording or ff_simulate_read -> ff_simulate_get, ff_simulate_counter,
 *     ff_simulate_get_kernel ... -> ff_simulate_free
 *
 * Every call that runs something starts the program `farfault` as a child process, waits for it and reads what it left.
 * So the same options give the same numbers as on a command line, and a simulation that fails, or a host that has no
 * memory left for it, ends the child and not its caller.
 *
 * Guarantees
 *   - a function that returns FF_SIMULATE_OK left *error untouched and set its results; any other left a message there
 *     that names the thing and the place, and results that are NULL;
 *   - nothing is kept between calls: any function may be called from any thread, and calls at the same time do not know
 *     of each other. A result is read by any number of threads, and freed by one when no other reads it;
 *   - what a call has started has ended when it returns, and its temporary files are gone. A caller that is killed
 *     leaves them in $TMPDIR (/tmp), in a folder farfault-api-*, and the child goes on to its end.
 * A host without memory for the library's own lists ends the process (exit 70). Signals: the caller's handlers and mask
 * stay as they are; the child starts with no signal blocked. The caller must not reap the library's children
 * (waitpid(-1)) while a call is running. */
#ifndef FARFAULT_SIMULATE_H
#define FARFAULT_SIMULATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define FF_SIMULATE_API __attribute__((visibility("default")))
#else
#define FF_SIMULATE_API
#endif

/** Of this interface: raised when a program has to be compiled again. Options are added without that: their struct says
 *  its size. */
#define FF_SIMULATE_VERSION 1u
/** The library's own FF_SIMULATE_VERSION. */
FF_SIMULATE_API uint32_t ff_simulate_version(void);
/** Of farfault, which the library came with: "0.1.0". */
FF_SIMULATE_API const char *ff_simulate_release(void);

/** What a call says. Never changes its numbers. */
typedef enum ff_simulate_status {
  FF_SIMULATE_OK = 0,
  FF_SIMULATE_INVALID,       /**< an argument or option that cannot be; nothing was run */
  FF_SIMULATE_BAD_FILE,      /**< a file is missing, broken or of no use: a trace, a machine, a program without PTX */
  FF_SIMULATE_NO_PROGRAM,    /**< the CUDA program is not there or cannot be executed */
  FF_SIMULATE_NOT_INSTALLED, /**< the program `farfault` was not found */
  FF_SIMULATE_NO_RESULTS,    /**< the program ran, and did not use the virtual GPU */
  FF_SIMULATE_STOPPED,       /**< `go_on` said so, or a signal ended `farfault` */
  FF_SIMULATE_FAILED         /**< something else: the system refused, or some points of a sweep have an error */
} ff_simulate_status;

/** "FF_SIMULATE_BAD_FILE"; never NULL. */
FF_SIMULATE_API const char *ff_simulate_status_name(ff_simulate_status status);

typedef struct ff_simulate_error {
  ff_simulate_status status;
  /** ended by NUL, without a line end; of several lines where `farfault` shows a place in a text */
  char message[4096];
} ff_simulate_error; /* every `error` below may be NULL */

/** How to run. Zero a whole one, then set `size` and what is wanted; NULL where a function takes one: all defaults.
 *  Everything is the caller's, and only looked at during the call. */
typedef struct ff_simulate_options {
  size_t size; /**< sizeof(ff_simulate_options) */
  /** the memory managers, as --memory takes them: "copy,uvm+evict=lru:64K"; NULL: the command's */
  const char *memory;
  const char *machine; /**< a bundled machine or a machine file; NULL: the command's, or that of the recording */
  /** Further options of the command, ended by NULL, each in one word: "--gpu-memory=50%", "--threads=2". Those that say
   *  where results go are the library's: what they say is not defined. NULL: none. */
  const char *const *arguments;
  bool history; /**< results have what happened when (ff_simulate_json) */
  /** The child's variables, "NAME=VALUE", ended by NULL; NULL: those of this process. */
  const char *const *environment;
  /** Its standard input, output and error: descriptors of this process, -1 for /dev/null; NULL: this process's own.
   *  What `farfault` says of failures goes into *error as well. */
  const int *streams;
  /** Asked about ten times a second while the call waits, in the calling thread; false ends what runs (SIGTERM, after
   *  five seconds SIGKILL) and the call returns FF_SIMULATE_STOPPED. NULL: it waits until the end. */
  bool (*go_on)(void *context);
  void *context;
  /** Path of the program `farfault`; NULL: that of this library's installation, then on PATH. */
  const char *program;
} ff_simulate_options;

/** What a run left: of every process of the program that used the virtual GPU, the simulations under each manager. */
typedef struct ff_simulate_result ff_simulate_result;

/* ---- running ---- */

/** Runs the program `argv[0]` (found on PATH) with its arguments, ended by NULL, as `farfault run` does. The program's
 *  own failure is no error: ff_simulate_exit_status. *out is the caller's (ff_simulate_free). */
FF_SIMULATE_API ff_simulate_status ff_simulate_run(const char *const *argv, const ff_simulate_options *options,
                                                   ff_simulate_result **out, ff_simulate_error *error);
/** Runs it and writes what it does into the file `trace`, as `farfault record` does; options->memory must be NULL.
 *  *exit_status, unless NULL: as of a shell. */
FF_SIMULATE_API ff_simulate_status ff_simulate_record(const char *const *argv, const char *trace,
                                                      const ff_simulate_options *options, int *exit_status,
                                                      ff_simulate_error *error);
/** Simulates the recording `trace`, as `farfault sim` does. Of a damaged one FF_SIMULATE_BAD_FILE. *out is the caller's
 *  (ff_simulate_free). */
FF_SIMULATE_API ff_simulate_status ff_simulate_recording(const char *trace, const ff_simulate_options *options,
                                                         ff_simulate_result **out, ff_simulate_error *error);
/** Simulates every point of the study (a file, docs/sweeps.md) into the database, as `farfault sweep` does; one that is
 *  there goes on. FF_SIMULATE_FAILED: some points have an error; all others are in the database. The database is one of
 *  SQLite's (docs/results-db.md). options->memory and machine must be NULL: the study says them. */
FF_SIMULATE_API ff_simulate_status ff_simulate_sweep(const char *study, const char *database,
                                                     const ff_simulate_options *options, ff_simulate_error *error);
/** Reads a file that `farfault run -o` or `--json` wrote. *out is the caller's (ff_simulate_free). */
FF_SIMULATE_API ff_simulate_status ff_simulate_read(const char *path, ff_simulate_result **out,
                                                    ff_simulate_error *error);
FF_SIMULATE_API void ff_simulate_free(ff_simulate_result *result); /**< NULL: nothing */

/* ---- results: what is returned belongs to the result, until ff_simulate_free ---- */

/** Of the program, as a shell has it (128 + N: signal N ended it); 0 of a recording and of a file. */
FF_SIMULATE_API int ff_simulate_exit_status(const ff_simulate_result *result);

typedef struct ff_simulate_process { /**< of the program, that used the virtual GPU */
  const char *command;               /**< the program and its arguments; NULL: unknown */
  bool complete;                     /**< it ended by itself, and every simulation with it */
  const char *const *notes;          /**< sentences for the reader */
  uint32_t note_count;
} ff_simulate_process;
FF_SIMULATE_API uint32_t ff_simulate_process_count(const ff_simulate_result *result);
/** NULL: there are not so many. */
FF_SIMULATE_API const ff_simulate_process *ff_simulate_get_process(const ff_simulate_result *result, uint32_t process);
/** Everything about the process as JSON (docs/json.md), with the history if there is one; NULL: there are not so
 *  many. */
FF_SIMULATE_API const char *ff_simulate_json(const ff_simulate_result *result, uint32_t process);
/** The table that `farfault run` prints of it, `farfault run -v` if `verbose`; the caller frees it with
 *  ff_simulate_free_text. NULL: there are not so many. */
FF_SIMULATE_API char *ff_simulate_table(const ff_simulate_result *result, uint32_t process, bool verbose);
FF_SIMULATE_API void ff_simulate_free_text(char *text); /**< NULL: nothing */

typedef struct ff_simulate_simulation { /**< one manager on one device of one process */
  const char *memory;                   /**< the manager, with what was changed of it */
  const char *machine;
  const char *error; /**< why the manager could not run the program: the numbers are no result; NULL: it could */
  uint32_t process;
  int32_t device; /**< from 0; -1: the program has one */
  bool complete;  /**< the numbers are of all that the program did */
  double ratio;   /**< its time over that of `copy`, or of the first simulation without an error; 0: there is none */
  uint32_t kernel_count, allocation_count;
} ff_simulate_simulation;
/** Of all processes together, in their order and that of the managers. */
FF_SIMULATE_API uint32_t ff_simulate_count(const ff_simulate_result *result);
/** NULL: there are not so many. */
FF_SIMULATE_API const ff_simulate_simulation *ff_simulate_get(const ff_simulate_result *result, uint32_t index);
/** The first simulation under the manager of that name; -1: there is none. */
FF_SIMULATE_API int64_t ff_simulate_find(const ff_simulate_result *result, const char *memory);

typedef struct ff_simulate_kernel { /**< all its launches together */
  const char *name;
  const char *range; /**< of the program's (NVTX) in which it was launched; "": in none */
} ff_simulate_kernel;
/** NULL: there is no such simulation, or it has not so many. */
FF_SIMULATE_API const ff_simulate_kernel *ff_simulate_get_kernel(const ff_simulate_result *result, uint32_t index,
                                                                 uint32_t kernel);

typedef struct ff_simulate_allocation {
  const char *name;        /**< "cudaMalloc #1 ..." */
  uint32_t id;             /**< of the program's allocations, from 1 */
  uint64_t address, bytes; /**< the GPU's address */
  bool managed, pinned;
} ff_simulate_allocation;
/** NULL: there is no such simulation, or it has not so many. */
FF_SIMULATE_API const ff_simulate_allocation *ff_simulate_get_allocation(const ff_simulate_result *result,
                                                                         uint32_t index, uint32_t allocation);

/* ---- counters, by name ---- */

typedef struct ff_simulate_counter_info {
  const char *name; /**< "h2d_bytes" */
  const char *unit; /**< "ps", "B", or "" for a number of things */
  const char *help; /**< half a sentence */
} ff_simulate_counter_info;
/** All counters, *count of them: those that `farfault list counters` prints, but for those of memory stacks. */
FF_SIMULATE_API const ff_simulate_counter_info *ff_simulate_counters(uint32_t *count);
/** The counter of a simulation, of one of its kernels (summed over the launches) or of its allocations. False, with
 *  *value untouched: there is no such simulation, kernel, allocation or counter. */
FF_SIMULATE_API bool ff_simulate_counter(const ff_simulate_result *result, uint32_t index, const char *name,
                                         uint64_t *value);
FF_SIMULATE_API bool ff_simulate_kernel_counter(const ff_simulate_result *result, uint32_t index, uint32_t kernel,
                                                const char *name, uint64_t *value);
FF_SIMULATE_API bool ff_simulate_allocation_counter(const ff_simulate_result *result, uint32_t index,
                                                    uint32_t allocation, const char *name, uint64_t *value);

#ifdef __cplusplus
}
#endif
#endif
