/* SPDX-License-Identifier: Apache-2.0 */
/* Machine files: the bundled ones load, and every way to get one wrong is refused with its place.
 *
 * Each error case edits a good file (machines/gtx480.yaml) in one place, so that the message is about that edit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "machine/spec/allocation.h"
#include "machine/spec/peaks.h"
#include "machine/spec/spec.h"

static char *good; /* the text of gtx480.yaml */
static char path[] = "/tmp/ff-test-spec-XXXXXX.yaml";

static int set_up(void **state) {
  size_t size;
  int fd = mkstemps(path, 5);
  if (fd < 0) return -1;
  close(fd);
  return ff_file_read(FF_SOURCE_DIR "/machines/gtx480.yaml", 0, &good, &size, NULL);
}

static int tear_down(void **state) {
  free(good);
  return unlink(path);
}

static ff_status load_text(const char *text, machine_spec *spec, ff_error *error) {
  assert_int_equal(ff_file_write(path, text, strlen(text), NULL), FF_OK);
  return machine_spec_load(path, spec, error);
}

/* The good file with the first `from` replaced by `to`. The caller frees it. */
static char *edited(const char *from, const char *to) {
  const char *at = strstr(good, from);
  assert_non_null(at);
  ff_text text = {0};
  ff_text_add(&text, "%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
  return text.chars;
}

/* The line on which `needle` stands in `text`, from 1. */
static unsigned line_of(const char *text, const char *needle) {
  unsigned line = 1;
  const char *end = strstr(text, needle);
  assert_non_null(end);
  for (; text < end; text++) line += *text == '\n';
  return line;
}

/* The edit must be refused with a message that has `expected` in it and, if `place` is given, points at its line. */
static void refused(const char *from, const char *to, const char *place, const char *expected) {
  machine_spec spec;
  ff_error error = {0};
  char *text = edited(from, to);
  assert_int_not_equal(load_text(text, &spec, &error), FF_OK);
  if (!strstr(error.message, expected)) fail_msg("expected '%s' in '%s'", expected, error.message);
  if (place) {
    char start[300];
    snprintf(start, sizeof start, "%s:%u:", path, line_of(text, place));
    if (strncmp(error.message, start, strlen(start))) fail_msg("expected the place %s in '%s'", start, error.message);
    assert_non_null(strstr(error.message, "^"));
  }
  free(text);
}

static void the_bundled_machines_load(void **state) {
  static const char *const expected[] = {"a100",    "a40",     "b200",        "gh200",     "gm200",     "gp100",
                                         "gtx480",  "gv100",   "h100",        "h100-nvme", "h100-pcie", "h200",
                                         "l40",     "l40s",    "l40s-4-nvme", "p100",      "rtx2080ti", "rtx3090",
                                         "rtx4090", "rtx5090", "v100"};
  char **names = machine_spec_list();
  size_t found = 0;
  for (char **name = names; *name; name++) {
    machine_spec spec;
    ff_error error = {0};
    if (machine_spec_load(*name, &spec, &error)) fail_msg("%s", error.message);
    assert_true(spec.title[0] && spec.name[0]);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) found += !strcmp(*name, expected[i]);
    if (name[1]) assert_true(strcmp(name[0], name[1]) < 0);
    free(*name);
  }
  free(names);
  assert_int_equal(found, sizeof expected / sizeof *expected);
}

/* "Technical specifications per compute capability": what an SM of a board of NVIDIA's has. l1_kib: its L1 and shared
 * memory together. */
static void boards_have_their_capabilitys_limits(void **state) {
  static const struct {
    uint64_t major, minor, threads, blocks, shared_kib, optin_kib, l1_kib;
  } rows[] = {{7, 0, 2048, 32, 96, 96, 128},    {7, 5, 1024, 16, 64, 64, 96},   {8, 0, 2048, 32, 164, 163, 192},
              {8, 6, 1536, 16, 100, 99, 128},   {8, 9, 1536, 24, 100, 99, 128}, {9, 0, 2048, 32, 228, 227, 256},
              {10, 0, 2048, 32, 228, 227, 256}, {12, 0, 1536, 24, 100, 99, 128}};
  enum { ROWS = sizeof rows / sizeof *rows, KIB = 1024 };
  bool seen[ROWS] = {false};
  char **names = machine_spec_list();
  for (char **name = names; *name; name++) {
    machine_spec spec;
    assert_int_equal(machine_spec_load(*name, &spec, NULL), FF_OK);
    for (size_t i = 0; i < ROWS; i++) {
      if (spec.compute_major != rows[i].major || spec.compute_minor != rows[i].minor) continue;
      seen[i] = true;
      if (spec.max_threads != rows[i].threads || spec.max_blocks != rows[i].blocks || spec.registers != 65536 ||
          spec.shared_bytes != rows[i].shared_kib * KIB || spec.shared_per_block != 48 * KIB ||
          spec.shared_per_block_optin != rows[i].optin_kib * KIB || spec.l1_bytes != rows[i].l1_kib * KIB)
        fail_msg("%s is not as compute capability %llu.%llu says", *name, (unsigned long long)rows[i].major,
                 (unsigned long long)rows[i].minor);
      /* the tables of allocation.def and of the machine file agree: all shared memory leaves the rest to the L1, but
       * for 8 KiB */
      assert_int_equal(allocation_carve_out(&spec, 32, 0, 0, 100), spec.shared_bytes);
      assert_int_equal(allocation_l1(&spec, spec.shared_bytes), spec.l1_bytes - spec.shared_bytes - 8 * KIB);
    }
    free(*name);
  }
  free(names);
  for (size_t i = 0; i < ROWS; i++)
    if (!seen[i]) fail_msg("no machine of row %zu", i);
}

/* CUDA's table of compute capabilities: 63 registers a thread up to 3.0, 255 since; what is above is spilled. */
static void threads_have_no_more_registers_than_their_capability(void **state) {
  (void)state;
  machine_spec fermi, volta;
  assert_int_equal(machine_spec_load("gtx480", &fermi, NULL), FF_OK);
  assert_int_equal(machine_spec_load("v100", &volta, NULL), FF_OK);
  assert_int_equal(allocation_of_thread(&fermi, 63), 63);
  assert_int_equal(allocation_of_thread(&fermi, 100), 63);
  assert_int_equal(allocation_of_thread(&volta, 100), 100);
  assert_int_equal(allocation_of_thread(&volta, 300), 255);
  assert_int_equal(allocation_warps(&fermi, 200), allocation_warps(&fermi, 63));
  assert_int_equal(allocation_registers(&fermi, 8, 200), allocation_registers(&fermi, 8, 63));
  fermi.compute_major = 3;
  assert_int_equal(allocation_of_thread(&fermi, 100), 63);
  fermi.compute_minor = 5;
  assert_int_equal(allocation_of_thread(&fermi, 100), 100);
}

/* The guide says of 3.x that the L1 has 16, 32 or 48 KiB of 64: all that shared memory leaves. */
static void older_l1s_have_all_that_is_left(void **state) {
  enum { KIB = 1024 };
  machine_spec spec;
  assert_int_equal(machine_spec_load("v100", &spec, NULL), FF_OK);
  spec.compute_major = 3;
  spec.compute_minor = 5;
  spec.l1_bytes = 64 * KIB;
  for (uint64_t shared = 16 * KIB; shared <= 48 * KIB; shared += 16 * KIB)
    assert_int_equal(allocation_l1(&spec, shared), 64 * KIB - shared);
}

/* GeForce boards tell programs their memory's highest clock and run it at another under CUDA. */
static double mhz_under_cuda(const machine_spec *spec, const char *name) {
  static const struct {
    const char *name;
    double mhz;
  } boards[] = {{"rtx2080ti", 6800}, {"rtx3090", 9501}, {"rtx4090", 10251}, {"rtx5090", 13801}};
  for (size_t i = 0; i < sizeof boards / sizeof *boards; i++)
    if (!strcmp(boards[i].name, name)) {
      assert_true(boards[i].mhz < spec->dram_clock_mhz);
      return boards[i].mhz;
    }
  return spec->dram_clock_mhz;
}
/* Bandwidth is two transfers per memory clock over the bus, and the channels make up the bus. */
static void boards_have_the_bandwidth_of_their_bus(void **state) {
  static const struct {
    const char *name;
    uint64_t bus, channel; /* bits */
  } rows[] = {{"p100", 4096, 128},      {"v100", 4096, 128},    {"gv100", 4096, 128}, {"a100", 5120, 128},
              {"h100-pcie", 5120, 128}, {"h100", 5120, 64},     {"gh200", 6144, 64},  {"h200", 6144, 64},
              {"b200", 8192, 64},       {"rtx2080ti", 352, 16}, {"a40", 384, 16},     {"rtx3090", 384, 16},
              {"l40", 384, 16},         {"l40s", 384, 16},      {"rtx4090", 384, 16}, {"rtx5090", 512, 8}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    machine_spec spec;
    assert_int_equal(machine_spec_load(rows[i].name, &spec, NULL), FF_OK);
    double gbs = 2 * mhz_under_cuda(&spec, rows[i].name) * (double)rows[i].bus / 8 / 1000;
    if (spec.dram_gbs < gbs * 0.998 || spec.dram_gbs > gbs * 1.002)
      fail_msg("%s: %g GB/s, its bus has %g", rows[i].name, spec.dram_gbs, gbs);
    assert_int_equal(spec.channels * rows[i].channel, rows[i].bus);
    /* PCIe is as fast both ways; NVLink-C2C, as it was measured, is not */
    if (strcmp(rows[i].name, "gh200")) assert_true(spec.link_d2h_gbs == spec.link_h2d_gbs);
  }
}

/* Zheng et al., HPCA 2016, Table 1. */
static void gtx480_is_the_papers_table(void **state) {
  machine_spec spec;
  assert_int_equal(machine_spec_load("gtx480", &spec, NULL), FF_OK);
  assert_int_equal(spec.sm_count, 15);
  assert_true(spec.clock_mhz == 1400);
  assert_int_equal(spec.l1_bytes, 16384);
  assert_int_equal(spec.l2_bytes, 12 * 131072);
  assert_int_equal(spec.l2_mshrs, 128);
  assert_int_equal(spec.tlb_entries, 128);
  assert_int_equal(spec.tlb_ports, 4);
  assert_int_equal(spec.walk_cache_bytes, 8192);
  assert_true(spec.walk_cache_latency == 20);
  assert_int_equal(spec.channels, 12);
  assert_true(spec.dram_gbs == 384);
  assert_true(spec.t_rcd == 12 && spec.t_rp == 12 && spec.t_rc == 40 && spec.t_cl == 12 && spec.t_wr == 12);
  assert_true(spec.link_h2d_gbs == 16 && spec.link_d2h_gbs == 16);
  assert_true(spec.fault_us == 20);
  assert_int_equal(spec.fault_page_bytes, 4096);
}

static void near(double value, double wanted) {
  if (!(value > wanted * 0.999999 && value < wanted * 1.000001)) fail_msg("%.12g, expected %.12g", value, wanted);
}

static void peaks_are_what_the_file_makes(void **state) {
  machine_spec spec;
  assert_int_equal(machine_spec_load("gtx480", &spec, NULL), FF_OK);
  machine_peaks peaks = machine_peaks_of(&spec);
  near(peaks.warp_instructions, 15 * 2 * 1.4); /* SMs, schedulers, GHz */
  near(peaks.l1, 15 * 128 * 1.4);
  near(peaks.l2, 12 * 32 * 1.4);
  near(peaks.dram, 384);
  near(peaks.link, 16);
  spec.dram_read_share = 0.75;
  near(machine_peaks_of(&spec).dram, 288);
  spec.dram_check_sectors = 1; /* to the four of a line */
  near(machine_peaks_of(&spec).dram, 230.4);
  spec.dram_copy_share = 0.5;
  near(spec_copy_share(&spec), 0.4);
  spec.sm_read_bytes = 16;
  near(machine_peaks_of(&spec).l2, 15 * 16 * 1.4);
  spec.cluster_sms = 4; /* four clusters, the last one of three SMs */
  spec.cluster_read_bytes = 40;
  near(machine_peaks_of(&spec).l2, 4 * 40 * 1.4);
  spec.cluster_read_bytes = 4000;
  near(machine_peaks_of(&spec).l2, 15 * 16 * 1.4);
  spec.stack_count = 4;
  assert_true(machine_peaks_of(&spec).warp_instructions == 0);
}

static void a_file_is_found_by_its_path_too(void **state) {
  machine_spec spec;
  assert_int_equal(load_text(good, &spec, NULL), FF_OK);
  assert_string_equal(spec.file, path);
}

static void an_unknown_machine_is_told_what_there_is(void **state) {
  machine_spec spec;
  ff_error error;
  assert_int_equal(machine_spec_load("gtx48", &spec, &error), FF_NOT_FOUND);
  assert_non_null(strstr(error.message, "did you mean 'gtx480'?"));
  assert_int_equal(machine_spec_load("frobnicator", &spec, &error), FF_NOT_FOUND);
  assert_non_null(strstr(error.message, "h200"));
  assert_int_equal(machine_spec_load("/no/such/file.yaml", &spec, &error), FF_IO);
}

static void unknown_names_are_refused(void **state) {
  refused("sm_count:", "sm_cuont:", "sm_cuont", "unknown value 'sm_cuont' in group 'core': did you mean 'sm_count'?");
  refused("sm_count:", "frobs:", "frobs", "unknown value 'frobs' in group 'core'");
  refused("\ncore:", "\ncoer:", "coer:", "unknown group 'coer': did you mean 'core'?");
  refused("\ncore:", "\nxyzzy:", "xyzzy:",
          "unknown group 'xyzzy': there are device, core, l1, tlb, l2, network, hash, dram, stacks, energy, link, "
          "fault, host, links, mig, tiers\n");
  refused("  sm_count:", "  l1_bytes:", "l1_bytes", "'l1_bytes' belongs to group 'l1', not 'core'");
}

static void what_is_given_twice_is_refused(void **state) {
  refused("  schedulers:", "  sm_count: {value: 15, source: \"x\"}\n  schedulers:",
          "  sm_count: {value: 15, source: \"x\"}", "'sm_count' is given twice, first on line");
  refused("\nhost:", "\ncore: {}\nhost:", "core: {}", "group 'core' is given twice");
  refused("\ntitle:", "\ntitle: \"a\"\ntitle:", "title: \"GTX", "'title' is given twice");
  refused("{value: 15,", "{value: 15, value: 15,", "sm_count", "'value' is given twice");
}

static void what_is_missing_is_named(void **state) {
  refused("  sm_count: {value: 15, source: \"Zheng 2016, Table 1\"}\n", "", NULL,
          "the value 'sm_count' is missing from group 'core'");
  refused("\ntitle:", "\n#title:", NULL, "has no title");
  refused("{value: 15, source: \"Zheng 2016, Table 1\"}", "{source: \"Zheng 2016, Table 1\"}", "sm_count",
          "'sm_count' has no value");
}

static void every_value_needs_a_source(void **state) {
  refused("{value: 15, source: \"Zheng 2016, Table 1\"}", "{value: 15}", "sm_count", "'sm_count' has no source");
  refused("{value: 15, source: \"Zheng 2016, Table 1\"}", "{value: 15, source: \" \"}", "sm_count",
          "the source of 'sm_count' is empty");
  refused("{value: 15, source: \"Zheng 2016, Table 1\"}", "{value: 15, source: [a]}", "sm_count",
          "the source of 'sm_count' must be a text");
  refused("{value: 15, source: \"Zheng 2016, Table 1\"}", "15", "sm_count", "write 'sm_count: {value: ..., source:");
  refused("{value: 15, source:", "{value: 15, from:", "sm_count", "'sm_count' has only 'value' and 'source'");
}

static void wrong_types_are_refused(void **state) {
  refused("{value: 15,", "{value: fifteen,", "sm_count", "sm_count: 'fifteen' is not a whole number");
  refused("{value: 15,", "{value: 15.5,", "sm_count", "sm_count: '15.5' is not a whole number");
  refused("{value: 15,", "{value: -15,", "sm_count", "sm_count: '-15' is not a whole number");
  refused("{value: 15,", "{value: [15],", "sm_count", "the value of 'sm_count' must be a single one");
  refused("{value: 1400,", "{value: fast,", "clock_mhz", "clock_mhz: 'fast' is not a number");
  refused("{value: 1400,", "{value: inf,", "clock_mhz", "clock_mhz: 'inf' is not a number");
  refused("{value: 1400,", "{value: 0x10,", "clock_mhz", "clock_mhz: '0x10' is not a number");
  refused("{value: 1536M,", "{value: 1536Q,", "memory_bytes", "is not a size");
  refused("{value: \"GeForce GTX 480 (Zheng 2016)\",", "{value: \"\",",
          "  name:", "name: is 0 bytes of text: 1 to 63 are allowed");
  refused("{value: \"GeForce GTX 480 (Zheng 2016)\",", "{value: \"a\\nb\",", "  name:", "control character");
}

static void values_out_of_range_are_refused(void **state) {
  refused("{value: 15,", "{value: 0,", "sm_count", "sm_count: 0 is out of range: 1 to 4096");
  refused("{value: 15,", "{value: 4097,", "sm_count", "sm_count: 4097 is out of range: 1 to 4096");
  refused("{value: 15,", "{value: 99999999999999999999999,", "sm_count", "is not a whole number");
  refused("{value: 1400,", "{value: 0,", "clock_mhz", "clock_mhz: 0 is out of range: 1 to 100000 MHz");
  refused("{value: 384,", "{value: 1e300,", "dram_gbs", "out of range");
  refused("{value: 20, source: \"Zheng 2016, Table 1\"}\n  fault_mshrs", "{value: -20, source: \"x\"}\n  fault_mshrs",
          "fault_us", "fault_us: -20 is out of range");
}

static void values_that_contradict_each_other_are_refused(void **state) {
  refused("page_bytes: {value: 4K", "page_bytes: {value: 5000", NULL, "page_bytes must be a power of two");
  refused("shared_per_block: {value: 48K", "shared_per_block: {value: 64K", NULL, "shared_per_block must not be above");
  refused("max_threads: {value: 1536", "max_threads: {value: 1537", NULL, "max_threads must be a multiple");
  refused("banks: {value: 16", "bank_permutation: {value: 1, source: x}\n  banks: {value: 12", NULL,
          "banks must be a power of two where bank_permutation is 1");
  static const char *const lowest[] = {"7", "21"};
  for (int i = 0; i < 2; i++) {
    char group[128];
    snprintf(group, sizeof group,
             "\nhash:\n  side_masks: {value: [[%s, 30]], source: x}\nl2:\n  l2_copies: {value: 1, source: x}\n",
             lowest[i]);
    refused("\nl2:\n", group, NULL, "with l2_copies the lowest bit of side_masks must be 8 to 20");
  }
  refused("l1_ways: {value: 4", "l1_ways: {value: 400", NULL, "l1_bytes must hold");
}

static void what_is_no_machine_file_is_refused(void **state) {
  static const struct {
    const char *text, *expected;
  } rows[] = {{"", "is empty"},
              {"# nothing\n", "is empty"},
              {"just text", "is not a machine file"},
              {"[1, 2]", "is not a machine file"},
              {"core: 5", "group 'core' must hold values"},
              {"core: [1]", "group 'core' must hold values"},
              {"core:", "group 'core' must hold values"},
              {"{: 1", "not YAML"},
              {"core: {", "not YAML"},
              {"\tcore: 1", "not YAML"},
              {"%YAML 1.2\n---\na: 1", ":1:1: YAML directives are not used"},
              {"a: 1\n%%%%%%%%smc\217y\n", ":2:1: YAML directives"},
              {"a: \217", ":1:4: not text: this byte is 0x8f"},
              {"a: \xe2\x82", ":1:4: not text"},
              {"a: \033[2J", ":1:4: not text: this byte is 0x1b"},
              {"'a''''b': c", "unknown group 'a''b'"},
              {"a: &x 1\nb: *x", "unknown group"},
              {"[a]: b", "plain word"},
              {"title: *nothing", "title"},
              {"title: \"\"", "the title must be"}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    machine_spec spec;
    ff_error error = {0};
    assert_int_not_equal(load_text(rows[i].text, &spec, &error), FF_OK);
    if (!strstr(error.message, rows[i].expected))
      fail_msg("'%s': expected '%s' in '%s'", rows[i].text, rows[i].expected, error.message);
  }
  refused("{value: 15, source: \"Zheng 2016, Table 1\"}", "{value: 15, source: \"x\"", "  clock_mhz", "not YAML");
  refused("{value: 15, source: \"Zheng", "{value: &a 15, source: *a, x: \"Zheng", NULL, "sm_count");
}

static void a_second_document_is_refused(void **state) {
  ff_text text = {0};
  ff_text_add(&text, "%s\n---\ntitle: \"second\"\n", good);
  machine_spec spec;
  ff_error error;
  assert_int_equal(load_text(text.chars, &spec, &error), FF_PARSE);
  assert_non_null(strstr(error.message, "more than one document"));
  free(text.chars);
}

static void nesting_is_bounded(void **state) {
  static char deep[200001];
  memset(deep, '[', sizeof deep - 1);
  machine_spec spec;
  assert_int_not_equal(load_text(deep, &spec, NULL), FF_OK);
}

static void a_nul_in_the_file_is_refused(void **state) {
  assert_int_equal(ff_file_write(path, "title: \"a\"\n\0core: 1", 19, NULL), FF_OK);
  machine_spec spec;
  ff_error error;
  assert_int_equal(machine_spec_load(path, &spec, &error), FF_PARSE);
  assert_non_null(strstr(error.message, ":2:1: not text: this byte is 0x00"));
}

#define LINK_TABLE(t) "  copy_engines: {value: 2, source: \"x\"}\n  link_table: {value: " t ", source: \"x\"}\n"
static ff_status load_with_table(const char *lines, machine_spec *spec, ff_error *error) {
  char *at = strstr(good, "  copy_engines:");
  ff_text text = {0};
  ff_text_add(&text, "%.*s%s%s", (int)(at - good), good, lines, strchr(at, '\n') + 1);
  ff_status status = load_text(text.chars, spec, error);
  free(text.chars);
  return status;
}

static void size_tables_are_read(void **state) {
  machine_spec spec;
  ff_error error;
  assert_int_equal(load_with_table(LINK_TABLE("[[4K, 3.22], [64K, 8.48], [1M, 11.22]]"), &spec, &error), FF_OK);
  assert_int_equal(spec.link_table.count, 3);
  assert_int_equal(spec.link_table.points[1].bytes, 65536);
  assert_true(spec.link_table.points[2].gbs == 11.22);
}

#define TIERS(t) \
  "\ntiers:\n  host_memory_bytes: {value: 8G, source: \"x\"}\n  below_host: {value: " t ", source: \"x\"}\nhost:"
#define NVME "[nvme, 1T, 6.8, 4, 80, 128K, paged]"

static void tiers_are_read(void **state) {
  machine_spec spec;
  char *text = edited("\nhost:", TIERS("[[cxl, 256G, 30, 28, 0.3, 64, mapped], " NVME "]"));
  assert_int_equal(load_text(text, &spec, NULL), FF_OK);
  free(text);
  const machine_tier *cxl = &spec.below_host.tiers[0], *nvme = &spec.below_host.tiers[1];
  assert_int_equal(spec.host_memory_bytes, UINT64_C(8) << 30);
  assert_int_equal(spec.below_host.count, 2);
  assert_string_equal(cxl->name, "cxl");
  assert_int_equal(cxl->bytes, UINT64_C(256) << 30);
  assert_int_equal(cxl->mapped, 1);
  assert_int_equal(nvme->mapped, 0);
  assert_int_equal(nvme->unit_bytes, 128 << 10);
  assert_true(nvme->read_gbs == 6.8 && nvme->write_gbs == 4 && nvme->latency_us == 80);
  machine_spec again = spec;
  assert_int_equal(
      machine_spec_set(&again, "below_host=cxl:256G:30:28:0.3:64:mapped nvme:1T:6.8:4:80:128K:paged", NULL), FF_OK);
  assert_memory_equal(&again.below_host, &spec.below_host, sizeof spec.below_host);
  assert_int_equal(machine_spec_set_all(&again, "below_host=none,host_memory_bytes=0", NULL), FF_OK);
  assert_int_equal(again.below_host.count, 0);
  assert_int_equal(machine_spec_set_all(&spec, "above_host=far:512G:100:90:0.4:64:mapped", NULL), FF_OK);
  assert_int_equal(spec.above_host.count, 1);
  assert_string_equal(spec.above_host.tiers[0].name, "far");
  assert_int_equal(machine_spec_set_all(&spec, "below_host=none", NULL), FF_OK); /* the host's memory is the last */
}

/* A table takes the place of the one in the machine that this one is like; what is not given stays. */
static void tables_are_not_joined(void **state) {
  machine_spec like, spec;
  assert_int_equal(machine_spec_load("h100-nvme", &like, NULL), FF_OK);
  assert_int_equal(like.below_host.count, 1);
  assert_int_equal(load_text("title: own\nlike: h100-nvme\ntiers:\n"
                             "  below_host: {value: [[cxl, 1T, 30, 28, 0.3, 64, mapped]], source: \"x\"}\n",
                             &spec, NULL),
                   FF_OK);
  assert_int_equal(spec.below_host.count, 1);
  assert_string_equal(spec.below_host.tiers[0].name, "cxl");
  assert_int_equal(spec.sm_count, like.sm_count);
  assert_int_equal(spec.host_memory_bytes, like.host_memory_bytes);
}

static void broken_tiers_are_refused(void **state) {
  static const struct {
    const char *tiers, *message;
  } files[] = {
      {"[[nvme, 1T, 6.8, 4, 80, 128K]]", "each tier is [name, bytes, GB/s read"},
      {"[nvme]", "each tier is [name, bytes, GB/s read"},
      {"nvme", "'below_host' is a list"},
      {"[]", "'below_host' is a list"},
      {"[[NVMe, 1T, 6.8, 4, 80, 128K, paged]]", "'NVMe' is not the name of a tier"},
      {"[[files, 1T, 6.8, 4, 80, 128K, paged]]", "'files' is what counts files"},
      {"[[host, 1T, 6.8, 4, 80, 128K, paged]]", "there are two tiers 'host'"},
      {"[" NVME ", " NVME "]", "there are two tiers 'nvme'"},
      {"[[nvme, much, 6.8, 4, 80, 128K, paged]]", "'much' is not a size"},
      {"[[nvme, 1M, 6.8, 4, 80, 128K, paged]]", "'1M' is less than 2 MiB"},
      {"[[nvme, 1T, 0, 4, 80, 128K, paged]]", "0 is out of range: 0.001 to 1000000 GB/s"},
      {"[[nvme, 1T, 6.8, fast, 80, 128K, paged]]", "'fast' is not a number"},
      {"[[nvme, 1T, 6.8, 4, -1, 128K, paged]]", "-1 is out of range: 0 to 1000000 us"},
      {"[[nvme, 1T, 6.8, 4, 80, 100K, paged]]", "a unit of '100K' is not a power of two"},
      {"[[nvme, 1T, 6.8, 4, 80, 128K, near]]", "'near' is neither 'paged' nor 'mapped'"},
      {"[[a, 1T, 1, 1, 1, 4K, paged], [b, 1T, 1, 1, 1, 4K, paged], [c, 1T, 1, 1, 1, 4K, paged], [d, 1T, 1, 1, 1, 4K, paged], "
       "[e, 1T, 1, 1, 1, 4K, paged]]",
       "more than 4 tiers"}};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    ff_text to = {0};
    ff_text_add(&to, "\ntiers:\n  below_host: {value: %s, source: \"x\"}\nhost:", files[i].tiers);
    refused("\nhost:", to.chars, "below_host", files[i].message);
    free(to.chars);
  }
  refused("\nhost:", "\ntiers:\n  host_memory_bytes: {value: 8G, source: \"x\"}\nhost:", NULL,
          "host_memory_bytes needs a tier for what does not fit: below_host");
  refused("\nhost:",
          "\ntiers:\n  host_memory_bytes: {value: 1M, source: \"x\"}\n  below_host: {value: [" NVME
          "], source: \"x\"}\nhost:",
          NULL, "host_memory_bytes must hold at least 2 MiB");
  refused("\nhost:", "\ntiers:\n  above_host: {value: [" NVME "], source: \"x\"}\nhost:", NULL,
          "above_host needs host_memory_bytes");
  refused("\nhost:",
          "\ntiers:\n  above_host: {value: [" NVME
          "], source: \"x\"}\n  host_memory_bytes: {value: 8G, source: \"x\"}\n"
          "  below_host: {value: [" NVME "], source: \"x\"}\nhost:",
          NULL, "there are two tiers 'nvme'");
  machine_spec spec;
  ff_error error = {0};
  assert_int_equal(load_text(good, &spec, NULL), FF_OK);
  assert_int_not_equal(
      machine_spec_set_all(
          &spec,
          "above_host=a:1T:1:1:1:4K:paged b:1T:1:1:1:4K:paged c:1T:1:1:1:4K:paged,host_memory_bytes=8G,"
          "below_host=d:1T:1:1:1:4K:paged e:1T:1:1:1:4K:paged",
          &error),
      FF_OK);
  assert_non_null(strstr(error.message, "more than 4 tiers in above_host and below_host"));
  assert_int_equal(load_text(good, &spec, NULL), FF_OK);
  assert_int_not_equal(machine_spec_set(&spec, "below_host=nvme:1T:6.8", &error), FF_OK);
  assert_non_null(strstr(error.message, "'nvme' is not a tier: write NAME:BYTES"));
  assert_int_not_equal(machine_spec_set(&spec, "below_host= ", &error), FF_OK);
  assert_non_null(strstr(error.message, "no tiers: write NAME:BYTES"));
}

static void broken_size_tables_are_refused(void **state) {
  static const struct {
    const char *lines, *expected;
  } rows[] = {{LINK_TABLE("[]"), "is a table"},
              {LINK_TABLE("4K"), "is a table"},
              {LINK_TABLE("[4K, 3]"), "each point"},
              {LINK_TABLE("[[4K]]"), "each point"},
              {LINK_TABLE("[[4K, 1], [4K, 2]]"), "sizes must grow"},
              {LINK_TABLE("[[4K, 0]]"), "out of range"},
              {LINK_TABLE("[[0, 1]]"), "0 bytes"},
              {LINK_TABLE("[[4K, x]]"), "is not a number"}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    machine_spec spec;
    ff_error error = {0};
    assert_int_not_equal(load_with_table(rows[i].lines, &spec, &error), FF_OK);
    if (!strstr(error.message, rows[i].expected))
      fail_msg("%s: expected '%s' in '%s'", rows[i].lines, rows[i].expected, error.message);
  }
}

static void values_can_be_set(void **state) {
  machine_spec spec;
  assert_int_equal(machine_spec_load("gtx480", &spec, NULL), FF_OK);
  assert_int_equal(machine_spec_set(&spec, "fault_us=50", NULL), FF_OK);
  assert_true(spec.fault_us == 50);
  assert_int_equal(machine_spec_set(&spec, "memory_bytes=2G", NULL), FF_OK);
  assert_int_equal(spec.memory_bytes, UINT64_C(2) << 30);
  assert_int_equal(machine_spec_set(&spec, "name=some = text", NULL), FF_OK);
  assert_string_equal(spec.name, "some = text");
  assert_int_equal(machine_spec_set(&spec, "link_table=4K:3.5 64K:8", NULL), FF_OK);
  assert_int_equal(spec.link_table.count, 2);
  assert_int_equal(machine_spec_set(&spec, "link_table=none", NULL), FF_OK);
  assert_int_equal(spec.link_table.count, 0);
}

static void a_failed_setting_changes_nothing(void **state) {
  static const struct {
    const char *setting, *expected;
  } rows[] = {{"fault_us", "is not NAME=VALUE"},
              {"=5", "is not NAME=VALUE"},
              {"falt_us=5", "did you mean 'fault_us'"},
              {"xyzzyxyzzy=5", "has no value 'xyzzyxyzzy'"},
              {"fault_us=", "is not a number"},
              {"fault_us=-1", "out of range"},
              {"page_bytes=5000", "power of two"},
              {"link_table=4K", "is not a point"},
              {"link_table=", "no points"},
              {"link_table=8K:1 4K:2", "sizes must grow"},
              {"sm_count= 5", "is not a whole number"}};
  machine_spec spec, before;
  assert_int_equal(machine_spec_load("gtx480", &spec, NULL), FF_OK);
  before = spec;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    ff_error error = {0};
    assert_int_not_equal(machine_spec_set(&spec, rows[i].setting, &error), FF_OK);
    if (!strstr(error.message, rows[i].expected))
      fail_msg("%s: expected '%s' in '%s'", rows[i].setting, rows[i].expected, error.message);
    assert_memory_equal(&spec, &before, sizeof spec);
  }
}

static void folders_of_the_variable_come_first(void **state) {
  char folder[] = "/tmp/ff-test-machines-XXXXXX", file[64];
  assert_non_null(mkdtemp(folder));
  snprintf(file, sizeof file, "%s/mine.yaml", folder);
  assert_int_equal(ff_file_write(file, good, strlen(good), NULL), FF_OK);
  char *old = strdup(getenv("FARFAULT_MACHINES") ? getenv("FARFAULT_MACHINES") : "");
  ff_text value = {0};
  ff_text_add(&value, "/no/such/folder::%s:%s", folder, old);
  setenv("FARFAULT_MACHINES", value.chars, 1);
  machine_spec spec;
  assert_int_equal(machine_spec_load("mine", &spec, NULL), FF_OK);
  assert_string_equal(spec.file, file);
  char **names = machine_spec_list();
  size_t found = 0;
  for (char **name = names; *name; name++) {
    found += !strcmp(*name, "mine");
    free(*name);
  }
  free(names);
  assert_int_equal(found, 1);
  setenv("FARFAULT_MACHINES", old, 1);
  free(old);
  free(value.chars);
  unlink(file);
  rmdir(folder);
}

static double fault_us(const char *name) {
  machine_spec spec;
  assert_int_equal(machine_spec_load(name, &spec, NULL), FF_OK);
  return spec.fault_us;
}

/* The machine that was read last is kept: a file that has changed since, itself or the one that it is like, is not. */
static void a_changed_file_is_read_again(void **state) {
  char like[] = "/tmp/ff-test-like-XXXXXX.yaml";
  int fd = mkstemps(like, 5);
  assert_true(fd >= 0);
  close(fd);
  ff_text text = {0};
  ff_text_add(&text, "title: like\nlike: %s\n", path);
  assert_int_equal(ff_file_write(like, text.chars, text.length, NULL), FF_OK);
  free(text.chars);
  for (int i = 0; i < 4; i++) {
    bool twenty = i % 2 == 0;
    char *changed = edited("fault_us: {value: 20", twenty ? "fault_us: {value: 20" : "fault_us: {value: 35");
    assert_int_equal(ff_file_write(path, changed, strlen(changed), NULL), FF_OK);
    free(changed);
    for (int k = 0; k < 4; k++) assert_true(fault_us((i < 2) == (k < 2) ? path : like) == (twenty ? 20 : 35));
  }
  unlink(like);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_bundled_machines_load),
                                     cmocka_unit_test(boards_have_their_capabilitys_limits),
                                     cmocka_unit_test(threads_have_no_more_registers_than_their_capability),
                                     cmocka_unit_test(older_l1s_have_all_that_is_left),
                                     cmocka_unit_test(boards_have_the_bandwidth_of_their_bus),
                                     cmocka_unit_test(gtx480_is_the_papers_table),
                                     cmocka_unit_test(peaks_are_what_the_file_makes),
                                     cmocka_unit_test(a_file_is_found_by_its_path_too),
                                     cmocka_unit_test(an_unknown_machine_is_told_what_there_is),
                                     cmocka_unit_test(unknown_names_are_refused),
                                     cmocka_unit_test(what_is_given_twice_is_refused),
                                     cmocka_unit_test(what_is_missing_is_named),
                                     cmocka_unit_test(every_value_needs_a_source),
                                     cmocka_unit_test(wrong_types_are_refused),
                                     cmocka_unit_test(values_out_of_range_are_refused),
                                     cmocka_unit_test(values_that_contradict_each_other_are_refused),
                                     cmocka_unit_test(what_is_no_machine_file_is_refused),
                                     cmocka_unit_test(a_second_document_is_refused),
                                     cmocka_unit_test(nesting_is_bounded),
                                     cmocka_unit_test(a_nul_in_the_file_is_refused),
                                     cmocka_unit_test(size_tables_are_read),
                                     cmocka_unit_test(broken_size_tables_are_refused),
                                     cmocka_unit_test(tiers_are_read),
                                     cmocka_unit_test(tables_are_not_joined),
                                     cmocka_unit_test(broken_tiers_are_refused),
                                     cmocka_unit_test(values_can_be_set),
                                     cmocka_unit_test(a_failed_setting_changes_nothing),
                                     cmocka_unit_test(folders_of_the_variable_come_first),
                                     cmocka_unit_test(a_changed_file_is_read_again)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
