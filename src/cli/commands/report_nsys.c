/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault report --export-nsys`: a run in the tables that `nsys export --type sqlite` makes, for scripts that read
 * these. Names and meanings of columns are those of the "SQLite Export Schema Reference" of Nsight Systems. What a run
 * does not know is NULL.
 *
 * Such scripts find the range of a kernel by the call that launched it: the row of CUPTI_ACTIVITY_KIND_RUNTIME with the
 * kernel's correlationId, and the ranges of NVTX_EVENTS on the same thread (globalTid) around that row's time. So a
 * call's thread is the one whose open ranges are those that the launch says it is in.
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
    " NOT NULL, greenContextId INT, streamId INT NOT NULL, correlationId INT, globalPid INT, demangledName INT NOT NULL,"
    " shortName INT NOT NULL, mangledName INT, launchType INT, cacheConfig INT, registersPerThread INT, gridX INT, gridY"
    " INT, gridZ INT, blockX INT, blockY INT, blockZ INT, staticSharedMemory INT, dynamicSharedMemory INT,"
    " localMemoryPerThread INT, localMemoryTotal INT, gridId INT, sharedMemoryExecuted INT, graphNodeId INT,"
    " sharedMemoryLimitConfig INT);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL, contextId INT"
    " NOT NULL, greenContextId INT, streamId INT, correlationId INT, globalPid INT, bytes INT NOT NULL, copyKind INT NOT"
    " NULL, srcKind INT, dstKind INT, srcDeviceId INT, srcContextId INT, dstDeviceId INT, dstContextId INT,"
    " migrationCause INT, graphNodeId INT, virtualAddress INT);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL, contextId INT"
    " NOT NULL, greenContextId INT, streamId INT, correlationId INT, globalPid INT, value INT, bytes INT NOT NULL,"
    " graphNodeId INT, memKind INT);"
    "CREATE TABLE CUDA_UM_GPU_PAGE_FAULT_EVENTS (start INT NOT NULL, end INT NOT NULL, globalPid INT, deviceId INT NOT"
    " NULL, address INT, numberOfPageFaults INT NOT NULL, faultAccessType INT);"
    "CREATE TABLE CUDA_UM_CPU_PAGE_FAULT_EVENTS (start INT NOT NULL, globalPid INT, address INT NOT NULL,"
    " originalFaultPc INT, CpuInstruction INT, module INT, unresolvedFaultPc INT, sourceFile INT, sourceLine INT);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT NOT NULL, end INT NOT NULL, eventClass INT, globalTid INT,"
    " correlationId INT, nameId INT NOT NULL, returnValue INT NOT NULL, callchainId INT);"
    "CREATE TABLE NVTX_EVENTS (start INT NOT NULL, end INT, eventType INT NOT NULL, rangeId INT, category INT, color INT,"
    " text TEXT, globalTid INT, endGlobalTid INT, textId INT, domainId INT, uint64Value INT, int64Value INT, doubleValue"
    " REAL, uint32Value INT, int32Value INT, floatValue REAL, jsonTextId INT, jsonText TEXT, binaryData TEXT);"
    "CREATE TABLE PROCESSES (globalPid INT, pid INT, name TEXT);"
    "CREATE TABLE TARGET_INFO_GPU (vmId INT NOT NULL, id INT NOT NULL, name TEXT, busLocation TEXT, isDiscrete INT,"
    " l2CacheSize INT, totalMemory INT, memoryBandwidth INT, clockRate INT, smCount INT, chipName TEXT, cuDevice INT);"
    "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INT, cudaId INT, pid INT, uuid TEXT, numMultiprocessors INT);"
    "CREATE TABLE ENUM_NSYS_EVENT_TYPE (id INTEGER PRIMARY KEY NOT NULL, name TEXT, label TEXT);"
    "INSERT INTO ENUM_NSYS_EVENT_TYPE VALUES (59, 'NvtxPushPopRange', 'NvtxPushPopRange'), (60, 'NvtxStartEndRange',"
    " 'NvtxStartEndRange'), (75, 'NvtxDomainCreate', 'NvtxDomainCreate');"
    "CREATE TABLE ENUM_CUDA_MEMCPY_OPER (id INTEGER PRIMARY KEY NOT NULL, name TEXT, label TEXT);"
    "INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES (1, 'CUDA_MEMCPY_KIND_HTOD', 'Host-to-Device'), (2,"
    " 'CUDA_MEMCPY_KIND_DTOH', 'Device-to-Host'), (8, 'CUDA_MEMCPY_KIND_DTOD', 'Device-to-Device'), (9,"
    " 'CUDA_MEMCPY_KIND_HTOH', 'Host-to-Host'), (11, 'CUDA_MEMCPY_KIND_UVM_HTOD', 'Unified Host-to-Device'), (12,"
    " 'CUDA_MEMCPY_KIND_UVM_DTOH', 'Unified Device-to-Host');"
    "CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER PRIMARY KEY NOT NULL, name TEXT, label TEXT);"
    "INSERT INTO ENUM_CUDA_MEM_KIND VALUES (0, 'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE', 'Pageable'), (1,"
    " 'CUDA_MEMOPR_MEMORY_KIND_PINNED', 'Pinned'), (2, 'CUDA_MEMOPR_MEMORY_KIND_DEVICE', 'Device'), (3,"
    " 'CUDA_MEMOPR_MEMORY_KIND_ARRAY', 'Array'), (4, 'CUDA_MEMOPR_MEMORY_KIND_MANAGED', 'Managed');";

enum { HOST_FAULTS_MAX = 4 << 20 };                      /* rows: some 30 bytes each */
enum { PUSHED = 59, STARTED = 60, DOMAIN_CREATED = 75 }; /* NVTX_EVENTS.eventType */

/* A serialised process or thread has 16 bits for the machine, then 24 for the process and 24 for the thread. The
 * process is 1 here in every run, and threads count from 1. */
#define PROCESS (1ll << 24)

typedef struct writer {
  sqlite3 *db;
  int64_t device;
  FF_VEC(char *) strings; /* StringIds from 1; owned */
  ff_map ids;             /* text -> its number */
  FF_VEC(char *) domains; /* of NVTX, from 1; owned */
  uint32_t correlation;   /* the last one */
  bool failed;
} writer;

static void run_sql(writer *w, char *sql) { /* of sqlite3_mprintf; NULL: no memory */
  w->failed = w->failed || !sql || sqlite3_exec(w->db, sql, NULL, NULL, NULL) != SQLITE_OK;
  sqlite3_free(sql);
}

static int64_t nanoseconds(uint64_t picoseconds) { return (int64_t)(picoseconds / 1000); }

static int64_t stream_of(uint32_t stream) { return stream & 0xffffff; } /* without its device */

/* The number of a text, each of which is there once. */
static uint32_t put_string(writer *w, const char *text, size_t length) {
  char *own = ff_alloc(length + 1);
  memcpy(own, text, length);
  uintptr_t known = (uintptr_t)ff_map_get(&w->ids, own);
  if (known) {
    free(own);
    return (uint32_t)known;
  }
  FF_PUSH(&w->strings, own);
  ff_map_set(&w->ids, own, (void *)w->strings.count);
  run_sql(w, sqlite3_mprintf("INSERT INTO StringIds VALUES(%u, '%q')", (uint32_t)w->strings.count, own));
  return (uint32_t)w->strings.count;
}

static void free_texts(char **texts, size_t count) {
  for (size_t i = 0; i < count; i++) free(texts[i]);
  free(texts);
}

/* ---- the host: ranges and calls ---- */

static long long thread_id(uint64_t thread) { return PROCESS + 1 + (long long)thread; }

static const char *name_in_domain(const history_range *range) {
  return range->name + (range->domain ? range->domain + 1 : 0);
}

/* 0: the default domain; the others count from 1, and are written where their first ranges begin. */
static uint32_t domain_of(writer *w, const history_range *range) {
  if (!range->domain) return 0;
  for (uint32_t i = 0; i < w->domains.count; i++)
    if (strlen(w->domains.items[i]) == range->domain && !memcmp(w->domains.items[i], range->name, range->domain))
      return i + 1;
  char *name = ff_alloc(range->domain + (size_t)1);
  memcpy(name, range->name, range->domain);
  FF_PUSH(&w->domains, name);
  uint32_t number = (uint32_t)w->domains.count;
  run_sql(w, sqlite3_mprintf("INSERT INTO NVTX_EVENTS (start, eventType, text, globalTid, domainId)"
                             " VALUES(%lld, %d, '%q', %lld, %u)",
                             nanoseconds(range->begin), DOMAIN_CREATED, name, thread_id(range->thread), number));
  return number;
}

/* With the text both in the row and in StringIds: some scripts look only here, some only there. */
static void put_ranges(writer *w, const sim_history *h) {
  for (size_t i = 0; i < h->ranges.count; i++) {
    const history_range *range = &h->ranges.items[i];
    const char *name = name_in_domain(range);
    uint32_t domain = domain_of(w, range);
    long long thread = thread_id(range->thread);
    run_sql(w, sqlite3_mprintf("INSERT INTO NVTX_EVENTS (start, end, eventType, rangeId, text, globalTid, endGlobalTid,"
                               " textId, domainId) VALUES(%lld, %lld, %d, %lld, '%q', %lld, %lld, %u, %u)",
                               nanoseconds(range->begin), nanoseconds(range->end), range->started ? STARTED : PUSHED,
                               range->started ? (long long)i + 1 : 0, name, thread, thread,
                               put_string(w, name, strlen(name)), domain));
  }
}

/* A call has a number for what it asked for. It has no row where the file, of an earlier version, has no times of
 * it. */
static void put_call(writer *w, const char *name, uint64_t called, uint64_t returned, uint64_t thread) {
  w->correlation++;
  if (!returned) return;
  run_sql(w, sqlite3_mprintf("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId,"
                             " returnValue) VALUES(%lld, %lld, %lld, %u, %u, 0)",
                             nanoseconds(called), nanoseconds(returned), thread_id(thread), w->correlation,
                             put_string(w, name, strlen(name))));
}

typedef struct callers { /* the threads that launch; calls are asked for in order */
  const sim_history *history;
  uint32_t threads; /* that have ranges, by the highest number */
  size_t next;      /* the first range that has not begun */
  FF_VEC(const history_range *) open;
} callers;

static callers callers_of(const sim_history *h) {
  callers c = {.history = h};
  for (size_t i = 0; i < h->ranges.count; i++)
    if (h->ranges.items[i].thread >= c.threads) c.threads = h->ranges.items[i].thread + 1;
  return c;
}

static void callers_move(callers *c, uint64_t called) {
  size_t kept = 0;
  for (; c->next < c->history->ranges.count && c->history->ranges.items[c->next].begin <= called; c->next++)
    FF_PUSH(&c->open, &c->history->ranges.items[c->next]);
  for (size_t i = 0; i < c->open.count; i++)
    if (c->open.items[i]->end > called) c->open.items[kept++] = c->open.items[i];
  c->open.count = kept;
}

/* Whether the thread's open ranges, with / between them, are the path, or end so: long ones are cut in front. */
static bool is_path_of(const callers *c, uint32_t thread, const char *path) {
  size_t left = strlen(path), inner = 0;
  for (size_t i = c->open.count; i-- > 0;) {
    const history_range *range = c->open.items[i];
    if (range->thread != thread) continue;
    if (inner && !left) return true;
    if (inner && path[--left] != '/') return false;
    size_t length = strlen(range->name);
    if (length > left || memcmp(path + left - length, range->name, length)) return false;
    left -= length;
    inner++;
  }
  return !left;
}

static bool has_open(const callers *c, uint32_t thread) {
  for (size_t i = 0; i < c->open.count; i++)
    if (c->open.items[i]->thread == thread) return true;
  return false;
}

/* Of a launch in no range the first thread that is in none. None that fits: one behind all that have ranges. */
static uint32_t caller_of(const callers *c, const char *path) {
  uint32_t thread = 0;
  while (!path[0] && has_open(c, thread)) thread++;
  if (!path[0]) return thread;
  for (size_t i = 0; i < c->open.count; i++)
    if (is_path_of(c, c->open.items[i]->thread, path)) return c->open.items[i]->thread;
  return c->threads;
}

/* ---- the device ---- */

static int by_call(const void *left, const void *right) {
  const history_kernel *const *a = left, *const *b = right;
  if ((*a)->called != (*b)->called) return (*a)->called < (*b)->called ? -1 : 1;
  return (*a)->launch < (*b)->launch ? -1 : (*a)->launch > (*b)->launch;
}

static const history_kernel **launches_by_call(const sim_history *h) { /* the caller frees the list */
  const history_kernel **all = ff_alloc((h->kernels.count + 1) * sizeof *all);
  for (size_t i = 0; i < h->kernels.count; i++) all[i] = &h->kernels.items[i];
  qsort(all, h->kernels.count, sizeof *all, by_call);
  return all;
}

static void put_kernels(writer *w, const sim_result *result) {
  uint32_t *names = ff_alloc((2 * (size_t)result->kernel_count + 1) * sizeof *names);
  for (uint32_t i = 0; i < result->kernel_count; i++) {
    const char *name = result->kernels[i].name;
    names[2 * i] = put_string(w, name, strlen(name));
    names[2 * i + 1] = put_string(w, name, strcspn(name, "<("));
  }
  callers callers = callers_of(result->history);
  const history_kernel **launches = launches_by_call(result->history);
  for (size_t i = 0; i < result->history->kernels.count; i++) {
    const history_kernel *k = launches[i];
    if (k->kernel >= result->kernel_count) continue;
    callers_move(&callers, k->called);
    put_call(w, "cudaLaunchKernel", k->called, k->returned, caller_of(&callers, result->kernels[k->kernel].range));
    run_sql(w, sqlite3_mprintf("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, contextId, streamId,"
                               " correlationId, globalPid, demangledName, shortName) VALUES(%lld, %lld, %lld, 1, %lld,"
                               " %u, %lld, %u, %u)",
                               nanoseconds(k->begin), nanoseconds(k->end), w->device, stream_of(k->stream),
                               w->correlation, PROCESS, names[2 * k->kernel], names[2 * k->kernel + 1]));
  }
  free(launches);
  free(callers.open.items);
  free(names);
}

/* CUpti_ActivityMemcpyKind; 0: none. */
static int copy_kind(uint32_t kind) {
  static const int kinds[HISTORY_COPY_COUNT] = {
      [HISTORY_COPY_H2D] = 1, [HISTORY_COPY_D2H] = 2, [HISTORY_COPY_D2D] = 8, [HISTORY_COPY_H2H] = 9};
  return kind < HISTORY_COPY_COUNT ? kinds[kind] : 0;
}

static const char *copy_call(const history_copy *c) {
  if (c->kind == HISTORY_COPY_SET) return c->blocking ? "cudaMemset" : "cudaMemsetAsync";
  if (copy_kind(c->kind)) return c->blocking ? "cudaMemcpy" : "cudaMemcpyAsync";
  return "cudaMemPrefetchAsync";
}

static void put_copy(writer *w, const history_copy *c, uint64_t thread) {
  long long begin = nanoseconds(c->begin), end = nanoseconds(c->end), stream = stream_of(c->stream);
  long long bytes = (long long)c->bytes;
  put_call(w, copy_call(c), c->called, c->returned, thread);
  if (c->kind == HISTORY_COPY_SET)
    run_sql(w, sqlite3_mprintf("INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET (start, end, deviceId, contextId, streamId,"
                               " correlationId, globalPid, bytes) VALUES(%lld, %lld, %lld, 1, %lld, %u, %lld, %lld)",
                               begin, end, w->device, stream, w->correlation, PROCESS, bytes));
  else if (copy_kind(c->kind))
    run_sql(w, sqlite3_mprintf("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, contextId, streamId,"
                               " correlationId, globalPid, bytes, copyKind)"
                               " VALUES(%lld, %lld, %lld, 1, %lld, %u, %lld, %lld, %d)",
                               begin, end, w->device, stream, w->correlation, PROCESS, bytes, copy_kind(c->kind)));
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

static void put_gpu(writer *w, const sim_result *result) {
  run_sql(w, sqlite3_mprintf("INSERT INTO TARGET_INFO_GPU (vmId, id, name, isDiscrete, cuDevice)"
                             " VALUES(0, %lld, '%q', 1, %lld)",
                             w->device, result->machine, w->device));
  run_sql(w, sqlite3_mprintf("INSERT INTO TARGET_INFO_CUDA_DEVICE (gpuId, cudaId, pid) VALUES(%lld, %lld, 1)",
                             w->device, w->device));
}

static void put_all(writer *w, const sim_result *result) {
  const sim_history *h = result->history;
  put_kernels(w, result);
  /* which thread asked for a copy is known where there is only one */
  uint32_t threads = callers_of(h).threads;
  for (size_t i = 0; i < h->copies.count; i++) put_copy(w, &h->copies.items[i], threads > 1 ? threads : 0);
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
  run_sql(&w,
          sqlite3_mprintf("INSERT INTO PROCESSES VALUES(%lld, 1, '%q')", PROCESS, run->command ? run->command : ""));
  bool ranges = false; /* the host's: every device's history has them */
  for (uint32_t i = 0; i < run->result_count; i++) {
    w.device = run->results[i].device ? run->results[i].device - 1 : 0;
    if (!run->results[i].history) continue;
    if (!ranges) put_ranges(&w, run->results[i].history);
    ranges = true;
    put_gpu(&w, &run->results[i]);
    put_all(&w, &run->results[i]);
  }
  run_sql(&w, sqlite3_mprintf("COMMIT"));
  sqlite3_int64 size = 0;
  unsigned char *bytes = w.failed ? NULL : sqlite3_serialize(w.db, "main", &size, 0);
  ff_status status = bytes ? ff_file_write(path, (const char *)bytes, (size_t)size, error)
                           : ff_fail(error, FF_LIMIT, "--export-nsys: %s", sqlite3_errmsg(w.db));
  ff_map_free(&w.ids);
  free_texts(w.strings.items, w.strings.count);
  free_texts(w.domains.items, w.domains.count);
  sqlite3_free(bytes);
  sqlite3_close(w.db);
  return status;
}
