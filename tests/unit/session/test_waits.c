/* SPDX-License-Identifier: Apache-2.0 */
/* No simulation waits for ever: random programs (launches, sizes, streams, events, devices) through random sets of
 * managers, written as a running program writes (several threads, blocks held back by the throttle) and as a recording
 * is fed, each under a watchdog. The throttle is only an optimisation: both ways give the same numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "report/report.h"
#include "session/session.h"
#include "trace/origin.h"
#include "unit/share.h"

enum { PROGRAMS = 6, WATCHDOG_SECONDS = 120, WRITERS = 3, ARRAY_BYTES = 1 << 20 };
#define ARRAY(device) (UINT64_C(0x200000000000) + (uint64_t)(device) * (64 << 20))

static char folder[] = "/tmp/ff-test-waits-XXXXXX";

static int make_folder(void **state) {
  setenv("FARFAULT_MACHINES", FF_SOURCE_DIR "/machines", 1);
  return mkdtemp(folder) ? 0 : -1;
}
static int remove_folder(void **state) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command);
}

/* ---- the watchdog ---- */

static atomic_uint watched; /* grows with each program */
static const char *_Atomic what = "";

static void *watchdog(void *unused) {
  for (unsigned seen = watched, seconds = 0;; seconds++) {
    sleep(1);
    if (watched != seen) seen = watched, seconds = 0;
    if (seconds < WATCHDOG_SECONDS) continue;
    fprintf(stderr, "the program waits for ever: %s\n", (const char *)what);
    _exit(1);
  }
  return unused;
}

/* ---- random programs ---- */

typedef struct random_program {
  uint64_t seed, state;
  uint32_t devices, launches, streams;
  uint32_t blocks; /* of each launch; 0: random */
  bool fed;        /* as from a file: one thread, little ahead */
  char managers[512];
} random_program;

static uint32_t below(random_program *p, uint32_t n) {
  p->state = p->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(p->state >> 33) % n;
}

/* One to four managers: those that keep launches back, that stop at each fault, that begin when the program has
 * ended. */
static void choose_managers(random_program *p) {
  static const char *const names[] = {"copy",
                                      "segments",
                                      "ideal",
                                      "demand",
                                      "replay",
                                      "uvm",
                                      "auto",
                                      "replay+evict=belady",
                                      "replay+prefetch=oracle",
                                      "tbn",
                                      "zero-copy",
                                      "ats",
                                      "partial-multi",
                                      "hmm",
                                      "hmm+gpu-memory=20%",
                                      "tbn+gpu-memory=20%",
                                      "segments+gpu-memory=30%"};
  uint32_t count = 1 + below(p, p->devices > 1 ? 2 : 4), chosen = 0;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t n = below(p, sizeof names / sizeof *names);
    if (chosen >> n & 1) continue;
    snprintf(p->managers + strlen(p->managers), sizeof p->managers - strlen(p->managers), "%s%s", chosen ? "," : "",
             names[n]);
    chosen |= 1u << n;
  }
}

static random_program program_of(uint64_t seed) {
  random_program p = {.seed = seed, .state = seed * UINT64_C(0x9e3779b97f4a7c15)};
  p.devices = below(&p, 3) ? 1 : 2 + below(&p, 2);
  p.streams = below(&p, 2) ? 1 : 2 + below(&p, 3);
  p.launches = 2 + below(&p, 12);
  choose_managers(&p);
  return p;
}

static void write_block(trace_launch *launch, uint64_t block, uint32_t device) {
  trace_chunk *chunk = trace_chunk_begin(launch, block);
  for (uint32_t w = 0; w < launch->warps_per_block; w++) {
    trace_writer writer;
    trace_chunk_writer(chunk, w, &writer);
    for (uint64_t n = 0; n < 3; n++) {
      uint64_t address = ARRAY(device) + (block * 4096 + w * 128 + n * 8192 * launch->id) % ARRAY_BYTES;
      trace_put_issue(&writer, 4, 0, 0, 0);
      *trace_put_access(&writer, n == 2 ? TRACE_STORE : TRACE_LOAD, 2, 0, (uint32_t)n, UINT32_MAX, 1) =
          trace_line(address, 32, 15);
    }
    trace_put_wait(&writer, 0);
    trace_put_exit(&writer);
  }
  trace_chunk_publish(chunk);
}

typedef struct run {
  trace_launch *launch;
  atomic_ullong next;
  uint32_t device;
  bool fed;
} run;

static void *write_blocks(void *of) {
  run *r = of;
  for (uint64_t b; (b = atomic_fetch_add(&r->next, 1)) < r->launch->blocks;) {
    while (!trace_block_wait(r->launch, b, r->fed ? -1 : 20)) {}
    write_block(r->launch, b, r->device);
  }
  return NULL;
}

static void append_launch(random_program *p, trace_program *to, uint32_t stream) {
  static const uint32_t sizes[] = {1, 100, 700, 2000, 4000};
  uint32_t blocks = p->blocks ? p->blocks : sizes[below(p, 5)], warps = 1 + below(p, 2);
  run r = {.launch = trace_launch_create(to, blocks, warps), .device = trace_device(stream), .fed = p->fed};
  trace_launch *l = r.launch;
  snprintf(l->kernel, sizeof l->kernel, "kernel");
  l->grid[0] = blocks;
  l->grid[1] = l->grid[2] = l->block[1] = l->block[2] = 1;
  l->block[0] = warps * 32;
  l->registers = 16;
  l->use_count = 1;
  l->uses[0] = (trace_use){ARRAY(r.device), ARRAY_BYTES};
  trace_op_append(to, &(trace_op){.kind = TRACE_OP_LAUNCH, .stream = stream, .launch = l});
  pthread_t threads[WRITERS];
  for (int i = 0; i < WRITERS && !p->fed; i++) pthread_create(&threads[i], NULL, write_blocks, &r);
  if (p->fed) write_blocks(&r);
  for (int i = 0; i < WRITERS && !p->fed; i++) pthread_join(threads[i], NULL);
  trace_launch_finish(l);
}

/* Between two launches: copies, events, waits for another stream's or device's event, synchronisations. */
static void append_between(random_program *p, trace_program *to, uint32_t stream, uint32_t other, uint32_t *event) {
  uint32_t device = trace_device(stream), kind = below(p, 7);
  trace_op copy = {
      .kind = TRACE_OP_COPY,
      .stream = stream,
      .blocking = kind == 0,
      .copy = {
          .to = ARRAY(device), .from = 0x1000, .width = 65536, .height = 1, .direction = TRACE_H2D, .pinned = true}};
  if (kind < 2) trace_op_append(to, &copy);
  if (kind == 2) trace_op_append(to, &(trace_op){.kind = TRACE_OP_SYNC_STREAM, .stream = stream});
  if (kind == 3) trace_op_append(to, &(trace_op){.kind = TRACE_OP_SYNC_DEVICE, .stream = stream});
  if (kind != 4) return;
  trace_op_append(to, &(trace_op){.kind = TRACE_OP_EVENT_RECORD, .stream = stream, .event = {++*event}});
  trace_op_append(to, &(trace_op){.kind = TRACE_OP_STREAM_WAIT, .stream = other, .event = {*event}});
}

static void append_program(random_program *p, trace_program *to) {
  uint32_t event = 0;
  for (uint32_t d = 0; d < p->devices; d++) {
    trace_op alloc = {
        .kind = TRACE_OP_ALLOC,
        .stream = trace_origin(0, d, false),
        .alloc = {
            .address = ARRAY(d), .bytes = ARRAY_BYTES, .memory = TRACE_MEMORY_DEVICE, .id = d + 1, .name = "array"}};
    trace_op_append(to, &alloc);
    for (uint32_t s = 1; s < p->streams; s++)
      trace_op_append(to, &(trace_op){.kind = TRACE_OP_STREAM_CREATE,
                                      .stream = trace_origin(s, d, false),
                                      .stream_create = {TRACE_STREAM_NON_BLOCKING}});
  }
  for (uint32_t i = 0; i < p->launches; i++) {
    uint32_t stream = trace_origin(below(p, p->streams), below(p, p->devices), false);
    append_launch(p, to, stream);
    append_between(p, to, stream, trace_origin(below(p, p->streams), below(p, p->devices), false), &event);
  }
}

/* ---- one program, one way ---- */

static report_run run_of(random_program p, bool fed) {
  char text[700];
  session_options options = {.devices = p.devices, .stream_bytes = fed ? 0 : 256 << 10};
  session *session;
  ff_error error;
  snprintf(text, sizeof text, "seed %u, %s: %u devices, %u streams, %u launches, %s", (unsigned)p.seed,
           fed ? "fed" : "run", p.devices, p.streams, p.launches, p.managers);
  what = text;
  watched++;
  strcpy(options.managers, p.managers);
  strcpy(options.machine, "gtx480");
  snprintf(options.results, sizeof options.results, "%s/%s.json", folder, fed ? "fed" : "run");
  if (p.seed % 4 == 0) snprintf(options.record, sizeof options.record, "%s/%s.fft", folder, fed ? "fed" : "run");
  if (session_create(&options, &session, &error)) fail_msg("%s: %s", text, error.message);
  if (fed) trace_program_limit(session_program(session), 64 << 10);
  p.fed = fed;
  append_program(&p, session_program(session));
  session_free(session);
  report_run run;
  if (report_file_read(options.results, &run, &error)) fail_msg("%s", error.message);
  if (!run.complete) fail_msg("%s: not complete", text);
  if (options.record[0] && unlink(options.record)) fail_msg("%s: no recording", text);
  what = "";
  return run;
}

static void check(const random_program *p) {
  report_run run = run_of(*p, false), fed = run_of(*p, true);
  assert_int_equal(run.result_count, fed.result_count);
  for (uint32_t i = 0; i < run.result_count; i++) {
    assert_true(run.results[i].complete && fed.results[i].complete);
    assert_string_equal(run.results[i].error, fed.results[i].error);
    assert_int_equal(run.results[i].counters.time_ps, fed.results[i].counters.time_ps);
    assert_int_equal(run.results[i].counters.warp_instructions, fed.results[i].counters.warp_instructions);
  }
  report_free(&run);
  report_free(&fed);
}

static void random_programs_end(void **state) {
  for (uint64_t seed = 1; seed <= fewer(PROGRAMS, 3); seed++) {
    random_program p = program_of(seed);
    check(&p);
  }
}

/* `segments` knows eight launches before it goes on with the first: no other reader may wait until it has taken their
 * blocks. */
static void launches_kept_back_hold_no_reader_up(void **state) {
  random_program p = {
      .seed = 1, .state = 5, .devices = 1, .streams = 1, .launches = 6, .blocks = 16384, .managers = "copy,segments"};
  check(&p);
}

/* A simulation that samples reads a launch whole before it goes on, while others release its blocks one by one. */
static void launches_read_whole_hold_no_reader_up(void **state) {
  random_program p = {.seed = 3,
                      .state = 7,
                      .devices = 1,
                      .streams = 1,
                      .launches = 60,
                      .blocks = 2000,
                      .managers = "copy,copy+sample=2,uvm+sample=2,ideal+sample=on"};
  check(&p);
  report_run sampled = run_of(p, true);
  for (uint32_t i = 1; i < sampled.result_count; i++) assert_true(sampled.results[i].sampling.estimated > 0);
  report_free(&sampled);
}

/* Simulations of one manager on several devices meet; another manager's do not wait for these. */
static void devices_that_meet_hold_no_other_up(void **state) {
  random_program p = {.seed = 2, .state = 6, .devices = 3, .streams = 2, .launches = 12, .managers = "segments,uvm"};
  check(&p);
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, watchdog, NULL);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_programs_end), cmocka_unit_test(launches_kept_back_hold_no_reader_up),
      cmocka_unit_test(launches_read_whole_hold_no_reader_up), cmocka_unit_test(devices_that_meet_hold_no_other_up)};
  return cmocka_run_group_tests_name("waits", tests, make_folder, remove_folder);
}
