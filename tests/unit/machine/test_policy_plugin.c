/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing a policy: names, arguments, lists, plug-ins that fit and plug-ins that do not, and the nonsense policy
 * against the little pager. The plug-ins are plugin_*.c of this folder, compiled to shared objects next to the
 * tests. */
#include "policy_view.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

#define PLUGINS FF_BUILD_DIR "/tests/plugins/"

static void refused(policy_use use, const char *text, ff_status status, const char *part, const char *other_part) {
  ff_policy_instance instance = {0};
  ff_error error = {0};
  assert_int_equal(policy_open(use, text, &instance, &error), status);
  assert_null(instance.policy);
  if (!strstr(error.message, part) || !strstr(error.message, other_part))
    fail_msg("'%s': the message says neither '%s' nor '%s': %s", text, part, other_part, error.message);
}

static void accepted(policy_use use, const char *text, const char *name) {
  ff_policy_instance instance = {0};
  mini_choose(use, text, &instance);
  assert_string_equal(instance.policy->name, name);
  policy_close(&instance);
  assert_null(instance.policy);
}

static void test_lists(void **state) {
  for (policy_use use = POLICY_PREFETCH; use <= POLICY_EVICT; use++) {
    int count = 0;
    for (const policy_entry *e = policy_list(use); e->policy; e++) {
      count++;
      assert_int_equal(e->policy->version, FF_POLICY_VERSION);
      assert_true(strlen(e->policy->summary) > 5 && !strchr(e->policy->summary, '\n'));
      if (use == POLICY_EVICT) assert_non_null(e->policy->evict);
      else assert_true(e->policy->faulted || e->policy->idle || !strcmp(e->policy->name, "none"));
      accepted(use, e->policy->name, e->policy->name);
      if (!*e->argument) {
        char text[64];
        snprintf(text, sizeof text, "%s:1", e->policy->name);
        refused(use, text, FF_INVALID, e->policy->name, "no argument");
      }
    }
    assert_true(count >= (use == POLICY_EVICT ? 7 : 10)); /* none is lost */
  }
}

static void test_names_and_arguments(void **state) {
  accepted(POLICY_PREFETCH, "density:0", "density");
  accepted(POLICY_PREFETCH, "density:100", "density");
  accepted(POLICY_EVICT, "lru:64K", "lru");
  accepted(POLICY_EVICT, "lrm:4K", "lrm");
  accepted(POLICY_PREFETCH, "tbn:fit", "tbn");
  refused(POLICY_PREFETCH, "tbn:fits", FF_INVALID, "prefetcher tbn", "'fit', or none");
  static const char *const thresholds[] = {"density:",   "density:101", "density:-1",
                                           "density:5x", "density: 5",  "density:99999999999999999999"};
  for (int i = 0; i < 6; i++)
    refused(POLICY_PREFETCH, thresholds[i], FF_INVALID, "prefetcher density", "from 0 to 100");
  static const char *const units[] = {"lru:", "lru:8K", "fifo:4k", "random:2M ", "belady:64K:2M", "lrm:1"};
  for (int i = 0; i < 6; i++) refused(POLICY_EVICT, units[i], FF_INVALID, "evictor", "4K, 64K or 2M");
  refused(POLICY_PREFETCH, "lru", FF_NOT_FOUND, "no prefetcher 'lru'", "density");
  refused(POLICY_EVICT, "tbn", FF_NOT_FOUND, "no evictor 'tbn'", "belady");
  refused(POLICY_PREFETCH, "densty:51", FF_NOT_FOUND, "no prefetcher 'densty'", "did you mean 'density'?");
  refused(POLICY_PREFETCH, "", FF_NOT_FOUND, "no prefetcher ''", "tbn");
  refused(POLICY_PREFETCH, ":", FF_NOT_FOUND, "no prefetcher ''", "tbn");
}

/* ---- plug-ins ---- */

static void test_a_good_plugin(void **state) {
  mini m;
  mini_open(&m, 2, MINI_ALL);
  mini_prefetcher(&m, PLUGINS "plugin_next.so");
  assert_string_equal(m.prefetch.policy->name, "next");
  mini_allocate(&m, MINI_BASE, 20 * 4096);
  assert_true(mini_touch(&m, 0));
  assert_int_equal(m.moved, 9 * 4096);
  assert_true(mini_touch(&m, 15)); /* 16 to 19, the allocation's last */
  assert_int_equal(m.moved, 5 * 4096);
  mini_close(&m);
  mini_open(&m, 2, MINI_ALL);
  mini_prefetcher(&m, PLUGINS "plugin_next.so:3");
  mini_allocate(&m, MINI_BASE, 20 * 4096);
  assert_true(mini_touch(&m, 0));
  assert_int_equal(m.moved, 4 * 4096);
  mini_close(&m);
  refused(POLICY_PREFETCH, PLUGINS "plugin_next.so:0", FF_INVALID, "plugin_next.so", "from 1 to 512");
  refused(POLICY_EVICT, PLUGINS "plugin_next.so", FF_INVALID, "plugin_next.so", "has no evict");
}

static void test_several_instances(void **state) {
  ff_policy_instance a, b;
  mini_choose(POLICY_PREFETCH, PLUGINS "plugin_next.so:2", &a);
  mini_choose(POLICY_PREFETCH, PLUGINS "plugin_next.so:4", &b);
  assert_ptr_not_equal(a.state, b.state);
  policy_close(&a);
  assert_string_equal(b.policy->name, "next"); /* still loaded */
  policy_close(&b);
  policy_close(&b); /* nothing is left to close */
}

static void test_a_plugin_of_an_earlier_version(void **state) {
  mini m;
  mini_open(&m, 1, MINI_ALL);
  mini_evictor(&m, PLUGINS "plugin_older.so");
  assert_string_equal(m.evict.policy->name, "older");
  assert_null(m.evict.policy->settled);
  mini_allocate(&m, MINI_BASE, FF_BLOCK_BYTES);
  mini_arrive(&m, 3);
  mini_set_moving(&m, 3, true);
  mini_set_moving(&m, 3, false);
  mini_ask_evictor(&m, 1);
  assert_int_equal(m.proposals.count, 1);
  mini_close(&m);
}

static void test_plugins_that_do_not_fit(void **state) {
  refused(POLICY_PREFETCH, PLUGINS "plugin_version.so", FF_INVALID, "version 4", "this is version 3");
  refused(POLICY_PREFETCH, PLUGINS "plugin_no_symbol.so", FF_INVALID, "plugin_no_symbol.so",
          "no symbol ff_policy_plugin");
  refused(POLICY_PREFETCH, PLUGINS "plugin_function.so", FF_INVALID, "plugin_function.so", "not a variable");
  refused(POLICY_EVICT, PLUGINS "plugin_short.so", FF_INVALID, "bytes, a policy of version 2 has", "compile it again");
  refused(POLICY_PREFETCH, PLUGINS "plugin_useless.so", FF_INVALID, "cannot be a prefetcher",
          "neither faulted nor idle");
  refused(POLICY_EVICT, PLUGINS "plugin_useless.so", FF_INVALID, "cannot be an evictor", "no evict");
}

static void test_files_that_are_no_plugins(void **state) {
  char folder[] = "/tmp/farfault-policy-XXXXXX", text[128];
  assert_non_null(mkdtemp(folder));
  assert_int_equal(chdir(folder), 0);
  assert_int_equal(ff_file_write("text.so", "hello\n", 6, NULL), FF_OK);
  assert_int_equal(ff_file_write("empty.so", "", 0, NULL), FF_OK);
  assert_int_equal(mkdir("folder.so", 0700), 0);
  refused(POLICY_PREFETCH, "./text.so", FF_INVALID, "./text.so", "not a shared object");
  /* found here, not in the library path */
  refused(POLICY_PREFETCH, "text.so", FF_INVALID, "text.so", "not a shared object");
  refused(POLICY_PREFETCH, "./empty.so:4", FF_INVALID, "./empty.so", "not a shared object");
  refused(POLICY_PREFETCH, "./folder.so", FF_NOT_FOUND, "./folder.so", "directory");
  refused(POLICY_EVICT, "./absent.so", FF_NOT_FOUND, "evictor ./absent.so", "No such file");
  refused(POLICY_EVICT, "libc.so", FF_NOT_FOUND, "evictor libc.so", "No such file");
  snprintf(text, sizeof text, "%s/not:here/x", folder); /* a colon in a folder's name is no argument */
  refused(POLICY_EVICT, text, FF_NOT_FOUND, "not:here/x", "No such file");
  assert_int_equal(symlink(PLUGINS "plugin_next.so", "mine.so"), 0);
  accepted(POLICY_PREFETCH, "mine.so:7", "next");
  unlink("text.so");
  unlink("empty.so");
  unlink("mine.so");
  rmdir("folder.so");
  assert_int_equal(chdir("/"), 0);
  rmdir(folder);
}

/* The plug-in that docs/policies.md builds is the one that is tested here, to the letter. */
static void test_the_manual_shows_what_is_tested(void **state) {
  char *manual, *source;
  size_t manual_size, source_size;
  assert_int_equal(ff_file_read(FF_SOURCE_DIR "/docs/policies.md", 0, &manual, &manual_size, NULL), FF_OK);
  assert_int_equal(ff_file_read(FF_SOURCE_DIR "/tests/unit/machine/plugin_next.c", 0, &source, &source_size, NULL),
                   FF_OK);
  assert_true(source_size > 500);
  if (!strstr(manual, source)) fail_msg("docs/policies.md does not contain the text of plugin_next.c");
  free(manual);
  free(source);
}

/* ---- nonsense ---- */

static void test_nonsense(void **state) {
  for (int seed = 1; seed <= 5; seed++) {
    char text[256];
    mini m;
    mini_open(&m, 3, MINI_ALL);
    snprintf(text, sizeof text, PLUGINS "plugin_nonsense.so:%d", seed);
    mini_prefetcher(&m, text);
    mini_evictor(&m, text);
    mini_allocate(&m, MINI_BASE + 100, FF_BLOCK_BYTES);
    mini_allocate(&m, MINI_BASE + FF_BLOCK_BYTES + 500 * KB, 300 * KB);
    uint64_t strange = 0;
    for (int step = 0; step < 300; step++) {
      uint64_t page = mini_random(&m.view) % m.count;
      if (m.pages[page].mapped) mini_touch(&m, page);
      for (size_t i = 0; i < m.proposals.count; i++) {
        mini_range r = m.proposals.items[i];
        strange += r.bytes == 0 || r.address + r.bytes < r.address || r.address < MINI_BASE || r.address % 4096;
      }
      m.proposals.count = 0;
      /* not carried out: the little pager is strict with evictors */
      m.evict.policy->evict(m.evict.state, &m.view, 4096);
      m.prefetch.policy->idle(m.prefetch.state, &m.view);
    }
    assert_true(strange > 50);
    mini_close(&m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lists),
      cmocka_unit_test(test_names_and_arguments),
      cmocka_unit_test(test_a_good_plugin),
      cmocka_unit_test(test_a_plugin_of_an_earlier_version),
      cmocka_unit_test(test_several_instances),
      cmocka_unit_test(test_plugins_that_do_not_fit),
      cmocka_unit_test(test_files_that_are_no_plugins),
      cmocka_unit_test(test_the_manual_shows_what_is_tested),
      cmocka_unit_test(test_nonsense),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
