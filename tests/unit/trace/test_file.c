/* SPDX-License-Identifier: Apache-2.0 */
/* Trace files: what is written comes back word for word; a file that is cut, damaged or half-written gives a true part
 * and says so; regular streams take few bytes. */
#include "file_program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "trace/trace_frame.h"
#include "unit/share.h"

static void what_is_written_comes_back(void **state) {
  (void)state;
  char *path = path_of("round.fft");
  for (uint64_t seed = 1; seed < fewer(30, 3); seed++) {
    shape s = {.seed = seed, .operations = 1 + (uint32_t)(mix(seed) % 60), .blocks_most = 5, .records_most = 30};
    write_file(path, &s);
    check_file(path, &s);
  }
  write_file(path, &(shape){.seed = 1}); /* of nothing */
  check_file(path, &(shape){.seed = 1});
  write_file(path, &large);
  check_file(path, &large);
  trace_file *file;
  assert_int_equal(trace_file_open(path, &file, NULL), FF_OK);
  assert_true(trace_file_information(file)->frame_count > 3); /* so that frames end within launches, blocks and warps */
  trace_file_close(file);
  unlink(path);
  free(path);
}

static void the_same_program_gives_the_same_bytes(void **state) {
  (void)state;
  char *path = path_of("same.fft"), *first, *second;
  size_t sizes[2];
  write_file(path, &large);
  assert_int_equal(ff_file_read(path, 0, &first, &sizes[0], NULL), FF_OK);
  write_file(path, &large);
  assert_int_equal(ff_file_read(path, 0, &second, &sizes[1], NULL), FF_OK);
  assert_int_equal(sizes[0], sizes[1]);
  assert_memory_equal(first, second, sizes[0]);
  free(first);
  free(second);
  unlink(path);
  free(path);
}

static void regular_streams_take_few_bytes(void **state) {
  (void)state;
  char *path = path_of("regular.fft");
  shape s = {.seed = 9, .operations = 40, .blocks_most = 2000, .records_most = 16, .regular = true};
  write_file(path, &s);
  check_file(path, &s);
  trace_file *file;
  assert_int_equal(trace_file_open(path, &file, NULL), FF_OK);
  const trace_file_info *info = trace_file_information(file);
  assert_true(info->accesses > 10000);
  assert_true(info->bytes < info->accesses / 5);
  trace_file_close(file);
  unlink(path);
  free(path);
}

/* However short the file is: it is refused, or what comes is the beginning, and it is not called whole. */
static void a_file_that_is_cut_gives_its_beginning(void **state) {
  (void)state;
  char *path = path_of("cut.fft"), *bytes;
  size_t size, opened = 0;
  for (int big = 0; big < 2; big++) {
    const shape *s = big ? &medium : &small;
    write_file(path, s);
    assert_int_equal(ff_file_read(path, 0, &bytes, &size, NULL), FF_OK);
    for (size_t cut = 0; cut < size; cut += big ? 1 + mix(cut) % (size / 15) : 1) {
      trace_file *file;
      ff_error error;
      place at;
      write_bytes(path, bytes, cut);
      if (trace_file_open(path, &file, &error)) {
        assert_true(cut < 16);
        continue;
      }
      opened++;
      assert_int_equal(read_beginning(file, s, &at, &error), FF_OK);
      /* The index is behind all that counts: without the last bytes it is found by looking for it. */
      if (!trace_file_information(file)->whole) assert_false(trace_file_information(file)->about.complete);
      else assert_true(cut + 24 >= size && at.operation == s->operations);
      trace_file_close(file);
    }
    free(bytes);
  }
  assert_true(opened > 1000);
  unlink(path);
  free(path);
}

/* Reads all of a damaged file: what comes is what was written, in its place; returns the frames that were lost. */
static uint32_t read_around(trace_file *file, const shape *s) {
  trace_item item;
  ff_error error;
  uint32_t lost = 0;
  place at = {0};
  bool in_step = true; /* no frame was lost since the last operation */
  for (;;) {
    if (trace_file_next(file, &item, &error)) {
      assert_non_null(strstr(error.message, "is damaged"));
      lost++;
      in_step = false;
      continue;
    }
    if (item.kind == TRACE_ITEM_END) return lost;
    if (item.kind == TRACE_ITEM_RECORD) {
      if (in_step) expect_record(s, &at, &item);
      continue;
    }
    if (!in_step) { /* launches before it */
      trace_op op;
      trace_launch launch;
      at = (place){0};
      for (; at.operation < item.op->sequence; at.operation++) {
        make_operation(s, at.operation, 0, &op, &launch);
        at.launches += op.kind == TRACE_OP_LAUNCH;
      }
      in_step = true;
    }
    expect_operation(s, &at, item.op);
  }
}

/* Any byte may be wrong: one frame is lost, the rest is true. */
static void damage_costs_a_frame(void **state) {
  (void)state;
  char *path = path_of("damaged.fft"), *bytes;
  size_t size;
  uint32_t lost_in_all = 0;
  for (int big = 0; big < 2; big++) {
    const shape *s = big ? &medium : &small;
    write_file(path, s);
    assert_int_equal(ff_file_read(path, 0, &bytes, &size, NULL), FF_OK);
    for (size_t at = 12; at < size; at += big ? 1 + mix(at) % (size / 25) : 1) {
      trace_file *file;
      ff_error error;
      bytes[at] ^= (char)(1 << mix(at) % 8);
      write_bytes(path, bytes, size);
      bytes[at] ^= (char)(1 << mix(at) % 8);
      if (trace_file_open(path, &file, &error)) fail_msg("%zu: %s", at, error.message);
      uint32_t lost = read_around(file, s);
      assert_true(lost <= 1);
      lost_in_all += lost;
      trace_file_close(file);
    }
    free(bytes);
  }
  assert_true(lost_in_all > 100);
  unlink(path);
  free(path);
}

static void what_is_no_trace_is_refused(void **state) {
  (void)state;
  char *path = path_of("no.fft");
  trace_file *file;
  ff_error error;
  write_bytes(path, "", 0);
  assert_int_equal(trace_file_open(path, &file, &error), FF_PARSE);
  write_bytes(path, "something else, and long enough", 31);
  assert_int_equal(trace_file_open(path, &file, &error), FF_PARSE);
  assert_non_null(strstr(error.message, "no trace"));
  write_bytes(path, "FFTRACE\n\1\100\0\0\0\0\0\0", 16);
  assert_int_equal(trace_file_open(path, &file, &error), FF_PARSE);
  assert_non_null(strstr(error.message, "version 16385"));
  unlink(path);
  assert_int_equal(trace_file_open(path, &file, &error), FF_IO);
  assert_int_equal(trace_file_open(folder, &file, &error), FF_IO);
  free(path);
}

/* Good checksums, but the only frame begins within a launch that never was. */
static void a_frame_out_of_nowhere_is_refused(void **state) {
  (void)state;
  char *path = path_of("nowhere.fft");
  uint8_t bytes[FILE_HEADER_BYTES + FRAME_HEADER_BYTES + 64] = FILE_MAGIC,
                                                         *payload = bytes + FILE_HEADER_BYTES + FRAME_HEADER_BYTES;
  bytes[8] = (uint8_t)TRACE_FILE_VERSION;
  bytes[9] = TRACE_FILE_VERSION >> 8;
  size_t size = 0;
  for (int column = 0; column < PACK_COLUMNS + 1; column++) { /* a new head, EXIT; one for a footprint */
    uint8_t count = column == PACK_HEADS ? 1 : column == PACK_WORDS ? 8 : 0;
    payload[size++] = count;
    payload[size++] = count;
    if (count) payload[size] = column == PACK_HEADS ? 1 : TRACE_EXIT;
    size += count;
  }
  frame_header header = {.kind = FRAME_DATA,
                         .open = true,
                         .launch_blocks = 1,
                         .warps = 1,
                         .words = 1,
                         .payload_bytes = size,
                         .payload_hash = frame_hash(payload, size)};
  frame_header_write(&header, bytes + FILE_HEADER_BYTES);
  write_bytes(path, (const char *)bytes, FILE_HEADER_BYTES + FRAME_HEADER_BYTES + size);
  trace_file *file;
  ff_error error;
  assert_int_equal(trace_file_open(path, &file, &error), FF_OK);
  assert_int_equal(trace_file_information(file)->frame_count, 1);
  trace_program *program = trace_program_create(0);
  assert_int_equal(trace_file_feed(file, program, NULL, &error), FF_PARSE);
  assert_non_null(strstr(error.message, "does not follow"));
  trace_program_free(program);
  trace_file_close(file);
  unlink(path);
  free(path);
}

static void a_full_disk_is_said_at_the_end(void **state) {
  (void)state;
  trace_file_writer *w;
  ff_error error;
  trace_file_about about = {0};
  char *path = path_of("full.fft");
  assert_int_equal(trace_file_create_part(path, &about, &w, &error), FF_OK);
  assert_int_equal(trace_file_create_part(path, &about, &(trace_file_writer *){0}, &error), FF_IO); /* it is there */
  signal(SIGXFSZ, SIG_IGN);
  pid_t child = fork(); /* a limit of the file's size stands for a full disk */
  if (child == 0) {
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){2000, 2000});
    write_program(w, &large);
    _exit(trace_file_finish(w, &about, &error) == FF_IO && strstr(error.message, "cannot be written") ? 0 : 1);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  trace_file_abandon(w);
  unlink(path);
  free(path);
}

/* A process that is killed while it records, at any moment: what it leaves is a beginning. */
static void a_killed_recording_is_never_misread(void **state) {
  (void)state;
  char *path = path_of("killed.fft");
  uint32_t with_something = 0;
  struct stat all;
  write_file(path, &medium);
  assert_int_equal(stat(path, &all), 0);
  uint64_t whole = (uint64_t)all.st_size;
  for (unsigned i = 0; i < SHARE(100, 4); i++) {
    unlink(path);
    pid_t child = fork();
    if (child == 0) {
      trace_file_writer *w;
      trace_file_about about = {.complete = true};
      if (trace_file_create_part(path, &about, &w, NULL)) _exit(1);
      write_program(w, &medium);
      trace_file_finish(w, &about, NULL);
      _exit(0);
    }
    struct stat now = {0};
    uint64_t enough = mix(i) % whole; /* bytes; about so many, then */
    for (int wait = 0; wait < 5000 && (uint64_t)now.st_size < enough && !waitpid(child, NULL, WNOHANG); wait++) {
      usleep(100);
      if (stat(path, &now)) now.st_size = 0;
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    trace_file *file;
    ff_error error;
    place at;
    if (access(path, F_OK) || trace_file_open(path, &file, &error)) continue; /* too early */
    assert_int_equal(read_beginning(file, &medium, &at, &error), FF_OK);
    if (trace_file_information(file)->whole) assert_int_equal(at.operation, medium.operations);
    with_something += at.operation > 0;
    trace_file_close(file);
  }
  assert_true(with_something > 5);
  unlink(path);
  free(path);
}

/* On the host's side of a copy there may be managed memory, which is simulated: its address is kept, whatever the
 * direction. */
static void both_addresses_of_a_copy_come_back(void **state) {
  (void)state;
  char *path = path_of("copies.fft");
  trace_file_about about = {.farfault = "1.2.3", .complete = true};
  trace_file_writer *w;
  trace_file *file;
  trace_item item;
  assert_int_equal(trace_file_create(path, &about, &w, NULL), FF_OK);
  for (int i = 0; i < 8; i++) {
    trace_op op = {.kind = TRACE_OP_COPY,
                   .copy = {.to = 0x200000001254,
                            .from = 0x200000042000,
                            .width = 44,
                            .height = 1,
                            .direction = (trace_direction)(i % 4),
                            .pinned = i >= 4}};
    trace_file_put_operation(w, &op);
  }
  assert_int_equal(trace_file_finish(w, &about, NULL), FF_OK);
  assert_int_equal(trace_file_open(path, &file, NULL), FF_OK);
  for (int i = 0; i < 8; i++) {
    assert_int_equal(trace_file_next(file, &item, NULL), FF_OK);
    assert_int_equal(item.kind, TRACE_ITEM_OPERATION);
    assert_int_equal(item.op->copy.direction, i % 4);
    assert_int_equal(item.op->copy.to, 0x200000001254);
    assert_int_equal(item.op->copy.from, 0x200000042000);
  }
  trace_file_close(file);
  unlink(path);
  free(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_written_comes_back),
      cmocka_unit_test(both_addresses_of_a_copy_come_back),
      cmocka_unit_test(the_same_program_gives_the_same_bytes),
      cmocka_unit_test(regular_streams_take_few_bytes),
      cmocka_unit_test(a_file_that_is_cut_gives_its_beginning),
      cmocka_unit_test(damage_costs_a_frame),
      cmocka_unit_test(what_is_no_trace_is_refused),
      cmocka_unit_test(a_frame_out_of_nowhere_is_refused),
      cmocka_unit_test(a_full_disk_is_said_at_the_end),
      cmocka_unit_test(a_killed_recording_is_never_misread),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
