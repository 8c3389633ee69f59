/* SPDX-License-Identifier: Apache-2.0 */
/* The cache on disk: what is found again, what is not trusted, what is left when writing fails. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "compile/compile_private.h"

static const compile_key key = {{0xabc, 0xdef}};
static char home[PATH_MAX - 200];

/* An image of one function with `bytes` bytes of code, sealed. */
static unsigned char *make_image(uint32_t code_bytes, const compile_key *for_key, uint32_t *bytes) {
  image_head head = {.magic = IMAGE_MAGIC, .function_count = 1, .code_offset = 64, .code_bytes = code_bytes};
  unsigned char *image = ff_alloc(*bytes = 64 + code_bytes);
  memcpy(image, &head, sizeof head);
  memset(image + 64, 0xc3, code_bytes);
  assert_true(compile_seal(image, *bytes, for_key));
  return image;
}

static void file_of(const compile_key *of, char *path) {
  snprintf(path, PATH_MAX, "%s/farfault/native/%016llx%016llx", home, (unsigned long long)of->half[1],
           (unsigned long long)of->half[0]);
}

static bool is_found(const compile_key *of) {
  uint32_t bytes;
  unsigned char *image = compile_load(of, 1, &bytes);
  bool found = image != NULL;
  free(image);
  return found;
}

static void keep_one(const compile_key *of, uint32_t code_bytes) {
  uint32_t bytes;
  char path[PATH_MAX];
  unsigned char *image = make_image(code_bytes, of, &bytes);
  if (compile_path(of, path, sizeof path)) compile_keep_at(path, image, bytes);
  free(image);
}

static uint32_t count_files(void) {
  char path[PATH_MAX];
  uint32_t count = 0;
  snprintf(path, sizeof path, "%s/farfault/native", home);
  DIR *folder = opendir(path);
  if (!folder) return 0;
  for (struct dirent *e; (e = readdir(folder));) count += e->d_name[0] != '.' || strlen(e->d_name) > 2;
  closedir(folder);
  return count;
}

static int fresh(void **unused) {
  snprintf(home, sizeof home, "%s/farfault-store-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
  return !mkdtemp(home) || setenv("XDG_CACHE_HOME", home, 1);
}

static int gone(void **unused) {
  char command[PATH_MAX + 16];
  snprintf(command, sizeof command, "rm -rf '%s'", home);
  return system(command);
}

static void what_was_kept_is_found(void **unused) {
  char path[PATH_MAX];
  struct stat s;
  assert_false(is_found(&key));
  keep_one(&key, 1000);
  assert_true(is_found(&key));
  assert_false(is_found(&(compile_key){{0xabc, 0xdee}}));
  file_of(&key, path);
  assert_int_equal(stat(path, &s), 0);
  assert_int_equal(s.st_mode & 0777, 0600);
  assert_int_equal(count_files(), 1);
}

/* Users' files are often made so that their group may write them: the cache's are not. */
static void whatever_the_umask(void **unused) {
  mode_t before = umask(0);
  keep_one(&key, 100);
  umask(before);
  assert_true(is_found(&key));
}

static void what_others_may_write_is_not_trusted(void **unused) {
  char path[PATH_MAX], folder[PATH_MAX], other[PATH_MAX];
  keep_one(&key, 1000);
  file_of(&key, path);
  chmod(path, 0620);
  assert_false(is_found(&key));
  chmod(path, 0602);
  assert_false(is_found(&key));
  chmod(path, 0600);
  assert_true(is_found(&key));
  snprintf(folder, sizeof folder, "%s/farfault/native", home);
  chmod(folder, 0770);
  assert_false(is_found(&key));
  keep_one(&(compile_key){{1, 1}}, 10);
  chmod(folder, 0700);
  assert_int_equal(count_files(), 1); /* nothing was put there meanwhile */
  snprintf(other, sizeof other, "%s/other", home);
  assert_int_equal(rename(path, other), 0);
  assert_int_equal(symlink(other, path), 0);
  assert_false(is_found(&key));
  if (geteuid()) return;
  unlink(path);
  assert_int_equal(rename(other, path), 0);
  assert_true(is_found(&key));
  assert_int_equal(chown(path, 1, (gid_t)-1), 0); /* another user's */
  assert_false(is_found(&key));
}

static void broken_files_are_not_used_and_made_anew(void **unused) {
  char path[PATH_MAX];
  struct stat s;
  keep_one(&key, 1000);
  file_of(&key, path);
  for (int length = 0; length < 1064; length += 97) {
    assert_int_equal(truncate(path, length), 0);
    assert_false(is_found(&key));
    keep_one(&key, 1000);
    assert_true(is_found(&key));
  }
  int fd = open(path, O_RDWR);
  assert_int_equal(pwrite(fd, "x", 1, 700), 1);
  assert_false(is_found(&key));
  assert_int_equal(ftruncate(fd, (off_t)COMPILE_MAX_IMAGE + 1), 0);
  assert_false(is_found(&key));
  close(fd);
  unlink(path);
  assert_int_equal(mkfifo(path, 0600), 0);
  alarm(20); /* a pipe that no process writes is not waited for */
  assert_false(is_found(&key));
  alarm(0);
  unlink(path);
  assert_int_equal(mkdir(path, 0700), 0);
  assert_false(is_found(&key));
  keep_one(&key, 1000);
  assert_false(is_found(&key));
  assert_int_equal(stat(path, &s), 0);
}

/* As on a disk that is full: nothing is left, neither whole nor in part. */
static void no_room(void **unused) {
  keep_one(&key, 1000);
  pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){5000, 5000});
    keep_one(&(compile_key){{7, 7}}, 100000);
    _exit(is_found(&(compile_key){{7, 7}}) || !is_found(&key));
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(count_files(), 1);
}

static void no_folder(void **unused) {
  char file[PATH_MAX];
  snprintf(file, sizeof file, "%s/file", home);
  assert_int_equal(close(creat(file, 0600)), 0);
  setenv("XDG_CACHE_HOME", file, 1);
  keep_one(&key, 10);
  assert_false(is_found(&key));
  setenv("XDG_CACHE_HOME", "/nowhere/at/all", 1);
  keep_one(&key, 10);
  assert_false(is_found(&key));
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  keep_one(&key, 10);
  assert_false(is_found(&key));
  setenv("XDG_CACHE_HOME", "relative", 1); /* such a one counts as none */
  setenv("HOME", home, 1);
  keep_one(&key, 10);
  assert_true(is_found(&key));
  snprintf(file, sizeof file, "%s/.cache/farfault/native", home);
  assert_int_equal(access(file, R_OK), 0);
}

/* Several processes write and read the same file: each finds a whole one or none. */
static void at_once(void **unused) {
  pid_t children[4];
  for (int n = 0; n < 4; n++)
    if (!(children[n] = fork())) {
      bool good = true;
      for (int round = 0; round < 100; round++) {
        keep_one(&key, 20000);
        good &= is_found(&key);
      }
      _exit(!good);
    }
  for (int n = 0; n < 4; n++) {
    int status;
    assert_int_equal(waitpid(children[n], &status, 0), children[n]);
    assert_int_equal(status, 0);
  }
  assert_int_equal(count_files(), 1);
}

/* As farfault-compile does when no process reads what it has made; of its path only the key is looked at. */
static bool keep_one_at(const char *where, const compile_key *of) {
  char path[PATH_MAX];
  uint32_t bytes;
  unsigned char *image = make_image(10, of, &bytes);
  if (where) snprintf(path, sizeof path, "%s", where);
  else file_of(of, path);
  bool kept = compile_keep_at(path, image, bytes);
  free(image);
  return kept;
}

static void kept_at_a_path(void **unused) {
  char path[PATH_MAX];
  keep_one(&(compile_key){{1, 1}}, 10); /* makes the folder */
  assert_true(keep_one_at(NULL, &key));
  assert_true(is_found(&key));
  assert_false(keep_one_at("", &key));
  assert_false(keep_one_at("0123456789abcdef0123456789abcdef", &key));
  assert_false(keep_one_at("/nowhere/0123456789abcdef0123456789abcdef", &key));
  snprintf(path, sizeof path, "%s/farfault/native/0123456789abcdef0123456789abcde", home);
  assert_false(keep_one_at(path, &key));
  snprintf(path, sizeof path, "%s/farfault/native/0123456789abcdefg123456789abcdef", home);
  assert_false(keep_one_at(path, &key));
  assert_int_equal(count_files(), 2);
}

static void fill_cache(void) {
  char path[PATH_MAX];
  for (uint32_t n = 0; n < 4100; n++) {
    file_of(&(compile_key){{n, 99}}, path);
    int fd = creat(path, 0600);
    assert_true(fd >= 0);
    futimens(fd, (struct timespec[2]){{.tv_sec = 1000 + n}, {.tv_sec = 1000 + n}});
    close(fd);
  }
}

/* The ones used longest ago go when there are too many. */
static void the_oldest_go(void **unused) {
  char path[PATH_MAX];
  keep_one(&key, 10);
  fill_cache();
  assert_true(is_found(&key));
  keep_one(&(compile_key){{5, 5}}, 10);
  assert_true(count_files() <= 2048);
  assert_true(is_found(&key));
  assert_true(is_found(&(compile_key){{5, 5}}));
  file_of(&(compile_key){{4099, 99}}, path);
  assert_int_equal(access(path, F_OK), 0);
  file_of(&(compile_key){{0, 99}}, path);
  assert_int_equal(access(path, F_OK), -1);
}

/* A mark next to the file, of this user: what the compiler has given up. */
static void what_took_too_long_is_known(void **unused) {
  char path[PATH_MAX], mark[PATH_MAX + 16];
  assert_false(compile_refused(&key));
  keep_one(&key, 10);
  assert_false(compile_refused(&key));
  file_of(&key, path);
  snprintf(mark, sizeof mark, "%s.refused", path);
  assert_int_equal(symlink(path, mark), 0);
  assert_false(compile_refused(&key));
  unlink(mark);
  assert_int_equal(close(creat(mark, 0600)), 0);
  assert_true(compile_refused(&key));
  assert_false(compile_refused(&(compile_key){{1, 1}}));
  assert_int_equal(chmod(mark, 0622), 0);
  assert_false(compile_refused(&key));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, gone)
  const struct CMUnitTest tests[] = {TEST(what_was_kept_is_found),
                                     TEST(whatever_the_umask),
                                     TEST(what_others_may_write_is_not_trusted),
                                     TEST(broken_files_are_not_used_and_made_anew),
                                     TEST(no_room),
                                     TEST(no_folder),
                                     TEST(at_once),
                                     TEST(kept_at_a_path),
                                     TEST(the_oldest_go),
                                     TEST(what_took_too_long_is_known)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
