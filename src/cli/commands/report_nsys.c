/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault report --export-nsys`: a run in the tables that `nsys export --type sqlite` makes, for scripts that read
 * these. Names and meanings of columns are those of the "SQLite Export Schema Reference" of Nsight Systems. What a run
 * does not know is NULL.
 *
 * The database is made in memory and written as any other output is: whole or not at all. Times are nanoseconds. */
#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/output.h"
#include "base/text.h"
#include "cli/commands/report_command.h"

static const char schema[] =
    "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL, contextId INT"
    " NOT NULL, streamId INT NOT NULL, correlationId INT, globalPid INT, demangledName INT NOT NULL, shortName INT NOT"
    " NULL, registersPerThread INT, gridX INT, gridY INT, gridZ INT, blockX INT, blockY INT, blockZ INT,"
    " staticSharedMemory INT, dynamicSharedMemory INT);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL, contextId INT"
    " NOT NULL, streamId INT, correlationId INT, globalPid INT, bytes INT NOT NULL, copyKind INT NOT NULL, srcKind INT,"
    " dstKind INT);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL, contextId INT"
    " NOT NULL, streamId INT, correlationId INT, globalPid INT, value INT, bytes INT NOT NULL, memKind INT);"
    "CREATE TABLE CUDA_UM_GPU_PAGE_FAULT_EVENTS (start INT NOT NULL, end INT NOT NULL, globalPid INT, deviceId INT NOT"
    " NULL, address INT, numberOfPageFaults INT NOT NULL, faultAccessType INT);"
    "CREATE TABLE CUDA_UM_CPU_PAGE_FAULT_EVENTS (start INT NOT NULL, globalPid INT, address INT NOT NULL,"
    " originalFaultPc INT, CpuInstruction INT, module INT, unresolvedFaultPc INT, sourceFile INT, sourceLine INT);";

enum { HOST_FAULTS_MAX = 4 << 20 }; /* rows: some 30 bytes each */

typedef struct writer {
  sqlite3 *db;
  int64_t device;
  uint32_t strings;
  bool failed;
} writer;

static void run_sql(writer *w, char *sql) { /* of sqlite3_mprintf; NULL: no memory */
  w->failed = w->failed || !sql || sqlite3_exec(w->db, sql, NULL, NULL, NULL) != SQLITE_OK;
  sqlite3_free(sql);
}

static int64_t nanoseconds(uint64_t picoseconds) { return (int64_t)(picoseconds / 1000); }

static int64_t stream_of(uint32_t stream) { return stream & 0xffffff; } /* without its device */

static uint32_t put_string(writer *w, const char *text, size_t length) {
  run_sql(w, sqlite3_mprintf("INSERT INTO StringIds VALUES(%u, '%.*q')", ++w->strings, (int)length, text));
  return w->strings;
}

static void put_kernels(writer *w, const sim_result *result) {
  uint32_t *names = ff_alloc((2 * (size_t)result->kernel_count + 1) * sizeof *names);
  for (uint32_t i = 0; i < result->kernel_count; i++) {
    const char *name = result->kernels[i].name;
    names[2 * i] = put_string(w, name, strlen(name));
    names[2 * i + 1] = put_string(w, name, strcspn(name, "<("));
  }
  for (size_t i = 0; i < result->history->kernels.count; i++) {
    const history_kernel *k = &result->history->kernels.items[i];
    if (k->kernel >= result->kernel_count) continue;
    run_sql(w,
            sqlite3_mprintf("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, contextId, streamId,"
                            " correlationId, demangledName, shortName) VALUES(%lld, %lld, %lld, 1, %lld, %lld, %u, %u)",
                            nanoseconds(k->begin), nanoseconds(k->end), w->device, stream_of(k->stream),
                            (int64_t)k->launch + 1, names[2 * k->kernel], names[2 * k->kernel + 1]));
  }
  free(names);
}

/* CUpti_ActivityMemcpyKind; 0: none. */
static int copy_kind(uint32_t kind) {
  static const int kinds[HISTORY_COPY_COUNT] = {
      [HISTORY_COPY_H2D] = 1, [HISTORY_COPY_D2H] = 2, [HISTORY_COPY_D2D] = 8, [HISTORY_COPY_H2H] = 9};
  return kind < HISTORY_COPY_COUNT ? kinds[kind] : 0;
}

static void put_copy(writer *w, const history_copy *c) {
  long long begin = nanoseconds(c->begin), end = nanoseconds(c->end), stream = stream_of(c->stream);
  long long bytes = (long long)c->bytes;
  if (c->kind == HISTORY_COPY_SET)
    run_sql(w, sqlite3_mprintf("INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET (start, end, deviceId, contextId, streamId,"
                               " bytes) VALUES(%lld, %lld, %lld, 1, %lld, %lld)",
                               begin, end, w->device, stream, bytes));
  else if (copy_kind(c->kind))
    run_sql(w, sqlite3_mprintf("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, contextId, streamId,"
                               " bytes, copyKind) VALUES(%lld, %lld, %lld, 1, %lld, %lld, %d)",
                               begin, end, w->device, stream, bytes, copy_kind(c->kind)));
}

/* What managed memory was moved: 11 and 12 are CUPTI's kinds of these. */
static void put_transfer(writer *w, const history_transfer *t) {
  if (t->cause == HISTORY_CAUSE_COPY || t->cause == HISTORY_CAUSE_REMOTE) return;
  run_sql(w,
          sqlite3_mprintf("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, contextId, bytes, copyKind)"
                          " VALUES(%lld, %lld, %lld, 1, %lld, %d)",
                          nanoseconds(t->begin), nanoseconds(t->end), w->device, (int64_t)t->bytes, t->in ? 11 : 12));
}

/* A row for each fault, as scripts count rows. */
static void put_host_faults(writer *w, const history_host_faults *f) {
  for (uint64_t i = 0; i < f->faults && !w->failed; i++)
    run_sql(w, sqlite3_mprintf("INSERT INTO CUDA_UM_CPU_PAGE_FAULT_EVENTS (start, address) VALUES(%lld, %lld)",
                               nanoseconds(f->begin), (int64_t)(f->address + i * f->step)));
}

static void put_all(writer *w, const sim_result *result) {
  const sim_history *h = result->history;
  put_kernels(w, result);
  for (size_t i = 0; i < h->copies.count; i++) put_copy(w, &h->copies.items[i]);
  for (size_t i = 0; i < h->transfers.count; i++) put_transfer(w, &h->transfers.items[i]);
  for (size_t i = 0; i < h->host_faults.count; i++) put_host_faults(w, &h->host_faults.items[i]);
  for (size_t i = 0; i < h->batches.count; i++)
    run_sql(w, sqlite3_mprintf("INSERT INTO CUDA_UM_GPU_PAGE_FAULT_EVENTS (start, end, deviceId, numberOfPageFaults)"
                               " VALUES(%lld, %lld, %lld, %lld)",
                               nanoseconds(h->batches.items[i].begin), nanoseconds(h->batches.items[i].end), w->device,
                               (int64_t)h->batches.items[i].faults));
}

static ff_status check_host_faults(const report_run *run, const char *file, ff_error *error) {
  uint64_t left = HOST_FAULTS_MAX;
  for (uint32_t i = 0; i < run->result_count; i++) {
    const sim_history *h = run->results[i].history;
    for (size_t k = 0; h && k < h->host_faults.count; k++) {
      if (h->host_faults.items[k].faults > left)
        return ff_fail(error, FF_LIMIT,
                       "--export-nsys: %s has more than %d faults of the CPU, and each of them would be a row", file,
                       HOST_FAULTS_MAX);
      left -= h->host_faults.items[k].faults;
    }
  }
  return FF_OK;
}

ff_status report_nsys(const report_run *run, const char *file, const char *path, ff_error *error) {
  uint32_t devices = 0;
  const char *memory = run->result_count ? run->results[0].memory : "";
  for (uint32_t i = 0; i < run->result_count; i++) {
    if (strcmp(run->results[i].memory, memory))
      return ff_fail(
          error, FF_UNSUPPORTED,
          "--export-nsys: %s has several memory managers, and these tables are of one: save it with --memory=%s", file,
          memory);
    devices += run->results[i].history != NULL;
  }
  if (!devices)
    return ff_fail(error, FF_UNSUPPORTED, "--export-nsys: %s holds no history; one is saved by `farfault run -o FILE`",
                   file);
  ff_status limited = check_host_faults(run, file, error);
  if (limited) return limited;
  writer w = {0};
  w.failed = sqlite3_open(":memory:", &w.db) != SQLITE_OK;
  run_sql(&w, sqlite3_mprintf("%s BEGIN", schema));
  for (uint32_t i = 0; i < run->result_count; i++) {
    w.device = run->results[i].device ? run->results[i].device - 1 : 0;
    if (run->results[i].history) put_all(&w, &run->results[i]);
  }
  run_sql(&w, sqlite3_mprintf("COMMIT"));
  sqlite3_int64 size = 0;
  unsigned char *bytes = w.failed ? NULL : sqlite3_serialize(w.db, "main", &size, 0);
  ff_status status = bytes ? ff_file_write(path, (const char *)bytes, (size_t)size, error)
                           : ff_fail(error, FF_LIMIT, "--export-nsys: %s", sqlite3_errmsg(w.db));
  sqlite3_free(bytes);
  sqlite3_close(w.db);
  return status;
}
