/* SPDX-License-Identifier: Apache-2.0 */
/* base/text.h: growable strings, the map against a naive model, files, sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

static void text_grows_and_ends_in_nul(void **state) {
  ff_text text = {0};
  for (int i = 0; i < 1000; i++) ff_text_add(&text, "%d,", i);
  ff_text_add_bytes(&text, "a\0b", 3);
  assert_int_equal(text.length, 10 * 2 + 90 * 3 + 900 * 4 + 3);
  assert_memory_equal(text.chars + text.length - 3, "a\0b", 4);
  assert_memory_equal(text.chars, "0,1,2,", 6);
  free(text.chars);
}

static void adding_nothing_gives_an_empty_string(void **state) {
  ff_text text = {0};
  ff_text_add_bytes(&text, NULL, 0);
  assert_string_equal(text.chars, "");
  free(text.chars);
}

enum { KEYS = 500 };
static void map_agrees_with_an_array(void **state) {
  static char keys[KEYS][16];
  void *model[KEYS] = {0};
  ff_map map = {0};
  for (int i = 0; i < KEYS; i++) snprintf(keys[i], sizeof keys[i], "key %d", i * 7919);
  assert_null(ff_map_get(&map, keys[0]));
  uint32_t random = 1;
  for (int step = 0; step < 5000; step++) {
    random = random * 1664525 + 1013904223;
    int i = (int)(random >> 8) % KEYS;
    model[i] = &model[(random >> 3) % KEYS];
    ff_map_set(&map, keys[i], model[i]);
    int j = (int)(random >> 12) % KEYS;
    assert_ptr_equal(ff_map_get(&map, keys[j]), model[j]);
  }
  size_t set = 0;
  for (int i = 0; i < KEYS; i++) {
    assert_ptr_equal(ff_map_get(&map, keys[i]), model[i]);
    set += model[i] != NULL;
  }
  assert_int_equal(map.count, set);
  ff_map_free(&map);
  assert_null(ff_map_get(&map, keys[0]));
}

static void sizes_are_parsed(void **state) {
  static const struct {
    const char *text;
    uint64_t whole, bytes;
  } good[] = {{"0", 0, 0},
              {"4096", 0, 4096},
              {"1k", 0, 1024},
              {"8G", 0, UINT64_C(8) << 30},
              {"512MiB", 0, 512u << 20},
              {"512MB", 0, 512u << 20},
              {"1.5K", 0, 1536},
              {"2T", 0, UINT64_C(2) << 40},
              {"75%", 1000, 750},
              {"12.5%", 800, 100},
              {"100%", 7, 7},
              {"7B", 0, 7}};
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    uint64_t bytes = 99;
    assert_int_equal(ff_parse_bytes(good[i].text, good[i].whole, &bytes, NULL), FF_OK);
    assert_int_equal(bytes, good[i].bytes);
  }
}

static void what_is_no_size_is_refused(void **state) {
  static const char *const bad[] = {"",    "x",   "G",    "-1",  "1X",  "1GG", "8 G",
                                    "nan", "inf", "1e30", "75%", "1K2", "%",   "0x10x"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    uint64_t bytes = 99;
    ff_error error = {0};
    assert_int_equal(ff_parse_bytes(bad[i], 0, &bytes, &error), FF_INVALID);
    assert_int_equal(bytes, 99);
    assert_non_null(strstr(error.message, "is not a size"));
  }
}

static void bytes_are_formatted(void **state) {
  static const struct {
    uint64_t bytes;
    const char *text;
  } rows[] = {{0, "0 B"},
              {1023, "1023 B"},
              {1024, "1.00 KiB"},
              {1536, "1.50 KiB"},
              {UINT64_C(3) << 40, "3.00 TiB"},
              {UINT64_MAX, "16.00 EiB"}};
  char text[32];
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    assert_string_equal(ff_format_bytes(rows[i].bytes, text, sizeof text), rows[i].text);
}

static char folder[] = "/tmp/ff-test-text-XXXXXX";
static const char *in_folder(const char *name) {
  static char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}
static int make_folder(void **state) { return mkdtemp(folder) ? 0 : -1; }
static int remove_folder(void **state) {
  char command[256];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command);
}

static void a_file_comes_back_whole(void **state) {
  static char bytes[200000];
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (char)(i * 31);
  ff_error error;
  assert_int_equal(ff_file_write(in_folder("file"), bytes, sizeof bytes, &error), FF_OK);
  char *data;
  size_t size;
  assert_int_equal(ff_file_read(in_folder("file"), 0, &data, &size, &error), FF_OK);
  assert_int_equal(size, sizeof bytes);
  assert_memory_equal(data, bytes, sizeof bytes);
  assert_int_equal(data[size], 0);
  free(data);
}

static void reading_stops_at_the_limit(void **state) {
  ff_error error;
  assert_int_equal(ff_file_write(in_folder("ten"), "0123456789", 10, &error), FF_OK);
  char *data = NULL;
  size_t size;
  assert_int_equal(ff_file_read(in_folder("ten"), 9, &data, &size, &error), FF_LIMIT);
  assert_null(data);
  assert_int_equal(ff_file_read(in_folder("ten"), 10, &data, &size, &error), FF_OK);
  free(data);
}

static void unreadable_files_are_named(void **state) {
  ff_error error;
  char *data;
  size_t size;
  assert_int_equal(ff_file_read(in_folder("missing"), 0, &data, &size, &error), FF_IO);
  assert_non_null(strstr(error.message, "missing: cannot open: No such file"));
  assert_int_equal(ff_file_read(folder, 0, &data, &size, &error), FF_IO);
  assert_non_null(strstr(error.message, "is a directory"));
}

static void unwritable_files_are_named(void **state) {
  ff_error error;
  assert_int_equal(ff_file_write(in_folder("no/such"), "x", 1, &error), FF_IO);
  assert_non_null(strstr(error.message, "no/such: cannot write there"));
  assert_int_equal(ff_file_write(folder, "x", 1, &error), FF_IO);
  assert_non_null(strstr(error.message, "it is a folder"));
}

static void writing_keeps_links_and_devices(void **state) {
  char target[256], link[256];
  strcpy(target, in_folder("target"));
  strcpy(link, in_folder("link"));
  assert_int_equal(ff_file_write(target, "old", 3, NULL), FF_OK);
  assert_int_equal(symlink(target, link), 0);
  assert_int_equal(ff_file_write(link, "newer", 5, NULL), FF_OK);
  struct stat info;
  assert_int_equal(lstat(link, &info), 0);
  assert_true(S_ISLNK(info.st_mode));
  assert_int_equal(stat(target, &info), 0);
  assert_int_equal(info.st_size, 5);
  assert_int_equal(ff_file_write("/dev/null", "x", 1, NULL), FF_OK);
  assert_int_equal(stat("/dev/null", &info), 0);
  assert_true(S_ISCHR(info.st_mode));
}

static void an_open_file_is_written_where_it_stands(void **state) {
  int fd = open(in_folder("open"), O_RDWR | O_CREAT, 0600);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, "before ", 7), 7);
  char name[32];
  snprintf(name, sizeof name, "/dev/fd/%d", fd);
  assert_int_equal(ff_file_write(name, "after", 5, NULL), FF_OK);
  char bytes[32] = {0};
  assert_int_equal(pread(fd, bytes, sizeof bytes, 0), 12);
  assert_string_equal(bytes, "before after");
  close(fd);
  ff_error error;
  assert_int_equal(ff_file_write("/dev/fd/9999", "x", 1, &error), FF_IO);
}

static void words_are_quoted_for_a_shell(void **state) {
  static const char *const rows[][2] = {{"saxpy", "saxpy"},
                                        {"./a-b_c.d=1,2", "./a-b_c.d=1,2"},
                                        {"", "''"},
                                        {"two words", "'two words'"},
                                        {"it's", "'it'\\''s'"},
                                        {"$HOME", "'$HOME'"},
                                        {"%s%n;", "'%s%n;'"},
                                        {"a\nb", "'a\nb'"},
                                        {"~", "'~'"}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    ff_text text = {0};
    ff_text_add_quoted(&text, rows[i][0]);
    assert_string_equal(text.chars, rows[i][1]);
    free(text.chars);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(words_are_quoted_for_a_shell),
                                     cmocka_unit_test(text_grows_and_ends_in_nul),
                                     cmocka_unit_test(adding_nothing_gives_an_empty_string),
                                     cmocka_unit_test(map_agrees_with_an_array),
                                     cmocka_unit_test(sizes_are_parsed),
                                     cmocka_unit_test(what_is_no_size_is_refused),
                                     cmocka_unit_test(bytes_are_formatted),
                                     cmocka_unit_test(a_file_comes_back_whole),
                                     cmocka_unit_test(reading_stops_at_the_limit),
                                     cmocka_unit_test(unreadable_files_are_named),
                                     cmocka_unit_test(unwritable_files_are_named),
                                     cmocka_unit_test(writing_keeps_links_and_devices),
                                     cmocka_unit_test(an_open_file_is_written_where_it_stands)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
