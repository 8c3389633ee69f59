/* SPDX-License-Identifier: Apache-2.0 */
/* The database: what goes in comes out, finished points are known, numbers follow the study, one writer at a time, and
 * files that are no such database. Points are a real study's, results are made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "sweep/database.h"
#include "sweep/schema.h"
#include "trace/file.h"

static char folder[64];

typedef struct made { /* a study and its plan, in the folder */
  study study;
  sweep_plan plan;
  char path[96];
} made;

static void make(made *m, const char *text) {
  char file[96];
  ff_error error;
  snprintf(file, sizeof file, "%s/s.yaml", folder);
  snprintf(m->path, sizeof m->path, "%s/s.db", folder);
  assert_int_equal(ff_file_write(file, text, strlen(text), NULL), FF_OK);
  if (study_read(file, text, strlen(text), &m->study, &error) || sweep_plan_make(&m->study, 1000, &m->plan, &error))
    fail_msg("%s", error.message);
}

static void unmake(made *m) {
  sweep_plan_free(&m->plan);
  study_free(&m->study);
}

static sweep_database *open_one(const made *m) {
  sweep_database *database = NULL;
  ff_error error;
  if (sweep_database_open(m->path, &m->plan, &database, &error)) fail_msg("%s", error.message);
  return database;
}

static void put(sweep_database *database, const sweep_point *point, uint64_t time_ps, const char *why) {
  sim_kernel_result kernel = {.name = "k(int)", .counters = {.time_ps = time_ps}};
  sim_allocation_result allocation = {
      .name = "cudaMalloc #1", .id = 1, .address = UINT64_C(1) << 45, .bytes = 4096, .managed = true};
  sim_result result = {.complete = true,
                       .counters = {.time_ps = time_ps, .faults = point->number, .tlb_lookups = 4, .tlb_misses = 1},
                       .kernels = &kernel,
                       .kernel_count = 1,
                       .allocations = &allocation,
                       .allocation_count = 1};
  assert_int_equal(
      sweep_database_put(database, point,
                         &(sweep_outcome){.result = why ? NULL : &result, .error = why, .host = "here", .seconds = 1},
                         NULL),
      FF_OK);
}

/* The first column of all rows, with spaces between; the caller frees it. */
static char *query(const char *path, const char *sql) {
  sqlite3 *db;
  sqlite3_stmt *rows;
  ff_text out = {0};
  assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &rows, NULL), SQLITE_OK);
  while (sqlite3_step(rows) == SQLITE_ROW)
    ff_text_add(&out, "%s%s", out.length ? " " : "",
                sqlite3_column_type(rows, 0) == SQLITE_NULL ? "-" : (const char *)sqlite3_column_text(rows, 0));
  sqlite3_finalize(rows);
  sqlite3_close(db);
  return out.chars ? out.chars : ff_strdup("");
}

static void expect(const char *path, const char *sql, const char *wanted) {
  char *got = query(path, sql);
  assert_string_equal(got, wanted);
  free(got);
}

#define TOP "trace: t.fft\nmachine: gtx480\n"

static void in_and_out(void **state) {
  made m;
  make(&m, TOP "memory: [copy, demand]\nset: {fault_us: [2.5, 10], l1_bytes: 16K}\n");
  sweep_database *database = open_one(&m);
  assert_int_equal(m.plan.points.count, 4);
  for (size_t i = 0; i < 4; i++) {
    assert_false(sweep_database_has(database, m.plan.points.items[i]));
    if (i != 3) put(database, m.plan.points.items[i], 1000 * (i + 1), NULL);
  }
  put(database, m.plan.points.items[3], 0, "bad luck");
  assert_true(sweep_database_has(database, m.plan.points.items[2]));
  assert_false(sweep_database_has(database, m.plan.points.items[3])); /* to be run again */
  ff_text list = {0};
  assert_int_equal(sweep_database_failures(database, 5, &list), 1);
  assert_non_null(
      strstr(list.chars, "point 4 (trace t.fft, machine gtx480, memory demand, l1_bytes 16K, fault_us 10): bad luck"));
  free(list.chars);
  put(database, m.plan.points.items[3], 6000, NULL);
  assert_int_equal(sweep_database_failures(database, 5, NULL), 0);
  sweep_database_close(database);
  expect(m.path, "SELECT point FROM results", "1 2 3 4");
  expect(m.path, "SELECT ratio FROM results", "1.0 2.0 1.0 2.0");
  expect(m.path, "SELECT fault_us FROM results", "2.5 2.5 10 10");
  expect(m.path, "SELECT l1_bytes FROM results", "16384 16384 16384 16384");
  expect(m.path, "SELECT tlb_miss_rate FROM results WHERE point = 1", "0.25");
  expect(m.path, "SELECT name FROM kernels WHERE point = 2", "k(int)");
  expect(m.path, "SELECT address FROM allocations WHERE point = 4", "35184372088832");
  expect(m.path, "SELECT count(*) FROM kernels", "4"); /* none of the failure that was replaced */
  expect(m.path, "SELECT count(*) FROM machines_of_points WHERE text LIKE '%fault_us%'", "4");
  expect(m.path, "PRAGMA journal_mode", "delete");
  char lock[128];
  snprintf(lock, sizeof lock, "%s-lock", m.path);
  assert_int_not_equal(access(lock, F_OK), 0);
  unlink(m.path);
  unmake(&m);
}

/* The study changes: points that stay keep their results under their new numbers, others go behind. */
static void numbers(void **state) {
  made first, second;
  make(&first, TOP "memory: [copy, demand, tbn]\n");
  sweep_database *database = open_one(&first);
  for (size_t i = 0; i < 3; i++) put(database, first.plan.points.items[i], 100 * (i + 1), NULL);
  sweep_database_close(database);
  make(&second, TOP "memory: [tbn, uvm, copy]\nprefetch: [sequential, none]\n");
  unmake(&second);
  make(&second, TOP "memory: [tbn, uvm, copy]\n");
  database = open_one(&second);
  assert_true(sweep_database_has(database, second.plan.points.items[0]));
  assert_false(sweep_database_has(database, second.plan.points.items[1]));
  put(database, second.plan.points.items[1], 400, NULL);
  sweep_database_close(database);
  expect(second.path, "SELECT memory FROM results ORDER BY point", "tbn uvm copy demand");
  expect(second.path, "SELECT point FROM results ORDER BY point", "1 2 3 4");
  expect(second.path, "SELECT k.time_ps FROM kernels k JOIN points USING(point) ORDER BY point", "300 400 100 200");
  expect(second.path, "SELECT t.point FROM timing t ORDER BY 1", "1 2 3 4");
  unlink(second.path);
  unmake(&first);
  unmake(&second);
}

/* Keys are of what a point is, not of how the study says it. */
static void keys(void **state) {
  made a, b, c;
  make(&a, TOP "memory: copy\nprefetch: tbn\n");
  make(&b, TOP "points: [{memory: copy}]\n");
  make(&c, TOP "memory: copy\nset: {fault_us: 3}\n");
  assert_string_equal(a.plan.points.items[0]->key, b.plan.points.items[0]->key);
  assert_string_not_equal(a.plan.points.items[0]->key, c.plan.points.items[0]->key);
  assert_int_equal(strlen(a.plan.points.items[0]->key), 32);
  unmake(&a);
  unmake(&b);
  unmake(&c);
}

static void one_writer(void **state) {
  made m;
  make(&m, TOP "memory: copy\n");
  sweep_database *database = open_one(&m);
  pid_t child = fork();
  if (child == 0) {
    sweep_database *other;
    ff_error error;
    _exit(sweep_database_open(m.path, &m.plan, &other, &error) == FF_INVALID &&
                  strstr(error.message, "another sweep is writing to it (process ")
              ? 0
              : 1);
  }
  int status;
  waitpid(child, &status, 0);
  assert_int_equal(status, 0);
  sweep_database_close(database);
  database = open_one(&m);
  sweep_database_close(database);
  unlink(m.path);
  unmake(&m);
}

static void formats(void **state) {
  made m;
  make(&m, TOP "memory: [copy, demand]\ngpu-memory: 8G\n");
  sweep_database *database = open_one(&m);
  put(database, m.plan.points.items[0], 2000000, NULL);
  put(database, m.plan.points.items[1], 0, "said \"no\", twice");
  sweep_database_close(database);
  ff_text out = {0};
  assert_int_equal(sweep_results_read(m.path, &(sweep_query){0}, SWEEP_TABLE, &out, NULL), FF_OK);
  assert_string_equal(
      out.chars,
      "point  memory     time  ratio  far-faults  to GPU  to CPU  link used\n    1  copy    2.00 us  1.00x           1     0 B     0 B      0.0 %\n"
      "    2  demand        -      -           -       -       -          -\npoint 2: said \"no\", twice\n");
  out.length = 0;
  assert_int_equal(
      sweep_results_read(m.path, &(sweep_query){.columns = "point,error,time_us,gpu_memory"}, SWEEP_CSV, &out, NULL),
      FF_OK);
  assert_string_equal(out.chars, "point,error,time_us,gpu_memory\n1,,2,8G\n2,\"said \"\"no\"\", twice\",,8G\n");
  out.length = 0;
  assert_int_equal(sweep_results_read(m.path, &(sweep_query){.columns = "point,time_us", .where = "error is null"},
                                      SWEEP_JSON, &out, NULL),
                   FF_OK);
  assert_string_equal(out.chars, "[\n {\n  \"point\": 1,\n  \"time_us\": 2.0\n }\n]\n");
  free(out.chars);
  out = (ff_text){0};
  ff_error error;
  assert_int_equal(sweep_results_read(m.path, &(sweep_query){.where = "nothing = 1"}, SWEEP_CSV, &out, &error),
                   FF_PARSE);
  assert_int_equal(
      sweep_results_read(m.path, &(sweep_query){.where = "1); DELETE FROM points; SELECT (1"}, SWEEP_CSV, &out, &error),
      FF_PARSE);
  assert_int_equal(sweep_results_read(m.path, &(sweep_query){.columns = "memroy"}, SWEEP_CSV, &out, &error),
                   FF_NOT_FOUND);
  assert_null(out.chars);
  expect(m.path, "SELECT count(*) FROM points", "2");
  unlink(m.path);
  unmake(&m);
}

/* Not ours: refused, and left as it was. */
static void other_files(void **state) {
  made m;
  ff_error error;
  sweep_database *database;
  ff_text out = {0};
  char text[] = "this is no database, but long enough to look like the header of one: 0123456789 0123456789 0123456789";
  make(&m, TOP "memory: copy\n");
  assert_int_equal(ff_file_write(m.path, text, sizeof text, NULL), FF_OK);
  assert_int_equal(sweep_database_open(m.path, &m.plan, &database, &error), FF_INVALID);
  assert_int_equal(sweep_results_read(m.path, &(sweep_query){0}, SWEEP_CSV, &out, &error), FF_INVALID);
  char *after;
  size_t size;
  assert_int_equal(ff_file_read(m.path, 0, &after, &size, NULL), FF_OK);
  assert_true(size == sizeof text && !memcmp(after, text, size));
  free(after);
  unlink(m.path);
  sqlite3 *db;
  sqlite3_open(m.path, &db);
  sqlite3_exec(db, "CREATE TABLE results(point)", NULL, NULL, NULL);
  assert_int_equal(sweep_database_open(m.path, &m.plan, &database, &error), FF_INVALID);
  sqlite3_exec(db,
               "DROP TABLE results; PRAGMA application_id = 1717990263; PRAGMA user_version = 99; CREATE TABLE x(y)",
               NULL, NULL, NULL);
  assert_int_equal(sweep_database_open(m.path, &m.plan, &database, &error), FF_INVALID);
  assert_non_null(strstr(error.message, "later farfault"));
  sqlite3_close(db);
  unlink(m.path);
  /* One that was just being made: empty, but SQLite's. */
  sqlite3_open(m.path, &db);
  sqlite3_exec(db, "PRAGMA journal_mode=WAL", NULL, NULL, NULL);
  sqlite3_close(db);
  database = open_one(&m);
  sweep_database_close(database);
  unlink(m.path);
  unmake(&m);
}

/* While another process writes, a file is not said to be something else. */
static void being_written(void **state) {
  made m;
  ff_error error;
  sqlite3 *writer, *reader;
  make(&m, TOP "memory: copy\n");
  sweep_database_close(open_one(&m));
  assert_int_equal(sqlite3_open(m.path, &writer), SQLITE_OK);
  assert_int_equal(sqlite3_exec(writer, "PRAGMA journal_mode=DELETE; BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_open(m.path, &reader), SQLITE_OK);
  assert_int_equal(schema_check(reader, m.path, false, &error), FF_IO);
  assert_non_null(strstr(error.message, "s.db: cannot be read now: another process is writing it"));
  assert_int_equal(sqlite3_exec(writer, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
  assert_int_equal(schema_check(reader, m.path, false, &error), FF_OK);
  sqlite3_close(reader);
  sqlite3_close(writer);
  unlink(m.path);
  unmake(&m);
}

static int make_folder(void **state) {
  char trace[96];
  trace_file_writer *writer;
  trace_file_about about = {.farfault = "test", .complete = true};
  strcpy(folder, "/tmp/farfault-test-XXXXXX");
  if (!mkdtemp(folder)) return 1;
  snprintf(trace, sizeof trace, "%s/t.fft", folder);
  return trace_file_create(trace, &about, &writer, NULL) || trace_file_finish(writer, &about, NULL);
}

static int remove_folder(void **state) {
  char command[96];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(in_and_out),   cmocka_unit_test(numbers),
                                     cmocka_unit_test(keys),         cmocka_unit_test(one_writer),
                                     cmocka_unit_test(formats),      cmocka_unit_test(other_files),
                                     cmocka_unit_test(being_written)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
