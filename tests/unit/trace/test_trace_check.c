/* SPDX-License-Identifier: Apache-2.0 */
/* trace_check finds each kind of damage to the access stream, and nothing in a stream that is sound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trace/trace_private.h"

enum { BLOCKS = 4, WARPS = 2, RECORDS = 400 };

typedef struct sound {
  trace_program *program;
  trace_reader *reader, *other;
  trace_launch *launch;
  trace_chunk *held; /* by the reader: block 0 */
} sound;

static void write_block(trace_launch *launch, uint64_t block) {
  trace_chunk *chunk = trace_chunk_begin(launch, block);
  for (uint32_t warp = 0; warp < WARPS; warp++) {
    trace_writer w;
    trace_chunk_writer(chunk, warp, &w);
    for (uint32_t i = 0; i < RECORDS; i++) {
      trace_put_issue(&w, 3, 0, 0, 0);
      *trace_put_access(&w, TRACE_LOAD, 2, 0, i, UINT32_MAX, 1) = trace_line(i * 128, 32, 15);
    }
    trace_put_exit(&w);
  }
  trace_chunk_publish(chunk);
}

/* A launch with all blocks published, of which one reader has taken the first. */
static sound open_sound(uint64_t budget) {
  sound s = {.program = trace_program_create(budget)};
  s.reader = trace_reader_create(s.program);
  s.other = trace_reader_create(s.program);
  s.launch = trace_launch_create(s.program, BLOCKS, WARPS);
  trace_op_append(s.program, &(trace_op){.kind = TRACE_OP_LAUNCH, .launch = s.launch});
  for (uint64_t block = 0; block < BLOCKS; block++) write_block(s.launch, block);
  trace_reader_next_op(s.reader);
  s.held = trace_reader_chunk(s.reader, s.launch, 0);
  trace_check(s.program, true);
  return s;
}

static void close_sound(sound *s) {
  trace_reader_release(s->reader, s->held);
  trace_launch_finish(s->launch);
  trace_reader_free(s->reader);
  trace_reader_free(s->other);
  trace_check(s->program, true);
  trace_program_free(s->program);
}

static void test_sound(void **state) {
  (void)state;
  for (uint64_t budget = 0; budget <= 1024; budget += 1024) { /* 0: the usual one; 1024: nearly all is spilled */
    sound s = open_sound(budget);
    if (budget) assert_true(trace_program_usage(s.program).spilled_bytes > 0);
    close_sound(&s);
  }
}

/* Whether the check aborts a child process in which `damage` was done. */
static bool aborts(sound *s, void (*damage)(sound *s)) {
  fflush(NULL);
  pid_t child = fork();
  if (!child) {
    signal(SIGABRT, SIG_DFL);
    if (!freopen("/dev/null", "w", stderr)) _exit(1);
    damage(s);
    trace_check(s->program, true);
    _exit(0);
  }
  int status;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void nothing(sound *s) { (void)s; }
static void lose_memory(sound *s) { s->program->memory_bytes -= 512; }
static void free_too_early(sound *s) { s->program->freed_count++; }
static void misnumber(sound *s) { s->program->first->ops[0].sequence = 7; }
static void run_ahead(sound *s) { s->other->next += 2; }
static void lose_a_reference(sound *s) { s->launch->chunks->references--; }
static void forget_who_holds(sound *s) { s->held->taken = 0; }
static void release_twice(sound *s) { s->launch->chunks->progress[0].released++; }
static void claim_for_no_reader(sound *s) { s->held->pending |= 1u << 9; }
static void no_claim(sound *s) { s->held->pending = 0; }
static void lose_the_exit(sound *s) {
  trace_page *last = s->held->streams[1].last;
  last->words[last->used - 1] = TRACE_WAIT;
}
static void cut_a_record(sound *s) { s->held->streams[0].first->used--; }
static void wrong_block(sound *s) { s->held->block = 3; }
static void waits_for_what_is_there(sound *s) { s->program->waiting_op |= 2; }
static void miscount_a_stripe(sound *s) {
  for (int i = 0; i < STRIPES; i++) s->program->stripes[i].count++;
}
static void lose_a_page(sound *s) { s->program->pool.classes[0].free_count--; }
static void lose_an_extent(sound *s) { s->held->extents.count--; }
static void lose_file_space(sound *s) { s->program->spill.end += 512; }

static void test_damage(void **state) {
  (void)state;
  static void (*const damages[])(sound *) = {
      lose_memory,         free_too_early,   misnumber,         run_ahead,
      lose_a_reference,    forget_who_holds, release_twice,     lose_the_exit,
      claim_for_no_reader, no_claim,         cut_a_record,      wrong_block,
      lose_a_page,         lose_file_space,  miscount_a_stripe, waits_for_what_is_there,
  };
  sound s = open_sound(0);
  assert_false(aborts(&s, nothing));
  for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
    if (!aborts(&s, damages[i])) fail_msg("damage %zu was not found", i);
  }
  close_sound(&s);
}

static void test_damage_of_spilled(void **state) {
  (void)state;
  sound s = open_sound(1024);
  assert_true(s.held->extents.count > 0);
  assert_false(aborts(&s, nothing));
  assert_true(aborts(&s, lose_an_extent));
  assert_true(aborts(&s, lose_file_space));
  close_sound(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sound),
      cmocka_unit_test(test_damage),
      cmocka_unit_test(test_damage_of_spilled),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
