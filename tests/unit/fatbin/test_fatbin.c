/* SPDX-License-Identifier: Apache-2.0 */
/* Fat binaries: what is written is read back, the layout is the documented one, and whatever is broken is an error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "fatbin/fatbin.h"

static const char ptx[] = ".version 8.7\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\n\tret;\n}\n";
static const fatbin_packing packings[] = {FATBIN_RAW, FATBIN_LZ4, FATBIN_ZSTD};

static fatbin_item ptx_item(uint32_t arch, char suffix, fatbin_packing packing) {
  return (fatbin_item){.kind = FATBIN_KIND_PTX,
                       .arch = arch,
                       .suffix = suffix,
                       .version_major = 8,
                       .version_minor = 7,
                       .packing = packing,
                       .bytes = ptx,
                       .size = sizeof ptx - 1};
}

static ff_text encode(const fatbin_item *items, uint32_t count) {
  ff_text out = {0};
  ff_error error;
  assert_int_equal(fatbin_encode(items, count, &out, &error), FF_OK);
  return out;
}

/* A copy in a block of exactly that size, so that a read past its end is caught. */
static unsigned char *exact(const char *bytes, size_t size) {
  unsigned char *copy = malloc(size ? size : 1);
  assert_non_null(copy);
  memcpy(copy, bytes, size);
  return copy;
}

static uint64_t next_random(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

/* ---- writing and reading ---- */

static void test_round_trip(void **state) {
  static const size_t sizes[] = {0, 1, 7, 8, 9, 1000, 200000};
  for (size_t p = 0; p < 3; p++) {
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
      char *text = malloc(sizes[s] + 1);
      uint64_t seed = 88172645463325252u;
      for (size_t i = 0; i < sizes[s]; i++) text[i] = "add.u32 %r;\n"[next_random(&seed) % 12];
      text[sizes[s]] = '\0';
      fatbin_item item = ptx_item(80, 0, packings[p]);
      item.bytes = text;
      item.size = sizes[s];
      ff_text image = encode(&item, 1);
      fatbin read;
      assert_int_equal(fatbin_open(image.chars, image.length, &read, NULL), FF_OK);
      assert_int_equal(read.entry_count, 1);
      assert_int_equal(read.bytes, image.length);
      assert_int_equal(read.entries[0].packing, packings[p]);
      char *back;
      size_t length;
      assert_int_equal(fatbin_ptx(&read.entries[0], &back, &length, NULL), FF_OK);
      assert_int_equal(length, sizes[s]);
      assert_string_equal(back, text);
      free(back);
      free(text);
      free(image.chars);
      fatbin_close(&read);
    }
  }
}

static void test_fields(void **state) {
  fatbin_item items[3] = {ptx_item(100, 'f', FATBIN_ZSTD), ptx_item(90, 'a', FATBIN_LZ4), ptx_item(75, 0, FATBIN_RAW)};
  items[0].name = "saxpy.cu";
  items[0].options = " --generate-line-info ";
  items[0].debug = true;
  items[1].kind = FATBIN_KIND_ELF;
  items[2].name = "a long name of a file.cu";
  ff_text image = encode(items, 3);
  fatbin read;
  assert_int_equal(fatbin_open(image.chars, image.length, &read, NULL), FF_OK);
  assert_int_equal(read.entry_count, 3);
  const fatbin_entry *e = read.entries;
  assert_int_equal(e[0].kind, FATBIN_KIND_PTX);
  assert_int_equal(e[0].arch, 100);
  assert_int_equal(e[0].suffix, 'f');
  assert_int_equal(e[0].version_major, 8);
  assert_int_equal(e[0].version_minor, 7);
  assert_int_equal(e[0].flags,
                   FATBIN_FLAG_64BIT | FATBIN_FLAG_DEBUG | FATBIN_FLAG_ALWAYS | FATBIN_FLAG_ZSTD | FATBIN_FLAG_FAMILY);
  assert_int_equal(e[0].name_length, 8);
  assert_memory_equal(e[0].name, "saxpy.cu", 8);
  assert_int_equal(e[0].options_length, 22);
  assert_memory_equal(e[0].options, " --generate-line-info ", 22);
  assert_int_equal(e[1].kind, FATBIN_KIND_ELF);
  assert_int_equal(e[1].suffix, 'a');
  assert_int_equal(e[2].suffix, 0);
  assert_int_equal(e[2].name_length, strlen(items[2].name));
  char *text;
  size_t length;
  assert_int_equal(fatbin_ptx(&e[1], &text, &length, NULL), FF_INVALID); /* not PTX */
  assert_int_equal(fatbin_unpack(&e[1], &text, &length, NULL), FF_OK);
  assert_int_equal(length, sizeof ptx - 1);
  free(text);
  fatbin_close(&read);
  free(image.chars);
}

/* The documented layout, written out by hand: the encoder has no part in it. */
static void test_layout(void **state) {
  unsigned char bytes[1 + 16 + 64 + 16] = {0}, *image = bytes + 1; /* at an odd address on purpose */
  static const unsigned char header[16] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 80, 0, 0, 0, 0, 0, 0, 0};
  /* kind, header size, payload size */
  static const unsigned char entry[64] = {1, 0, 1, 1, 64, 0, 0, 0, 16,   0, 0,    0,  0, 0, 0, 0, 0,
                                          0, 0, 0, 0, 0,  0, 0, 0, 0,    9, 0,    90, 0, 0, 0, /* version 9.0, sm_90 */
                                          0, 0, 0, 0, 0,  0, 0, 0, 0x11, 0, 0x10, 0,  0, 0, 0, 0};
  memcpy(image, header, 16);
  memcpy(image + 16, entry, 64);
  memcpy(image + 80, ".version 9.0\n", 13); /* padded to 16 with zeros */
  fatbin read;
  assert_int_equal(fatbin_open(image, 96, &read, NULL), FF_OK);
  assert_int_equal(read.entry_count, 1);
  assert_int_equal(read.entries[0].arch, 90);
  assert_int_equal(read.entries[0].suffix, 'a');
  assert_int_equal(read.entries[0].version_major, 9);
  char *text;
  size_t length;
  assert_int_equal(fatbin_ptx(&read.entries[0], &text, &length, NULL), FF_OK);
  assert_string_equal(text, ".version 9.0\n");
  assert_int_equal(length, 13);
  free(text);
  fatbin_close(&read);
}

static void test_empty(void **state) {
  ff_text image = encode(NULL, 0);
  fatbin read;
  fatbin_note note;
  assert_int_equal(image.length, FATBIN_HEADER_BYTES);
  assert_int_equal(fatbin_open(image.chars, image.length, &read, NULL), FF_OK);
  assert_int_equal(read.entry_count, 0);
  assert_null(fatbin_best_ptx(&read, 75, &note));
  assert_string_equal(note, "");
  fatbin_close(&read);
  free(image.chars);
}

/* ---- choosing ---- */

static uint32_t best(const fatbin *image, uint32_t capability, bool noted) {
  fatbin_note note;
  const fatbin_entry *entry = fatbin_best_ptx(image, capability, &note);
  assert_int_equal(note[0] != '\0', noted);
  return entry ? entry->arch * 256 + (unsigned char)entry->suffix : 0;
}

static void test_best(void **state) {
  fatbin_item items[] = {ptx_item(80, 0, FATBIN_RAW), ptx_item(90, 'a', FATBIN_RAW),  ptx_item(90, 0, FATBIN_RAW),
                         ptx_item(75, 0, FATBIN_RAW), ptx_item(100, 'f', FATBIN_RAW), ptx_item(120, 'a', FATBIN_RAW),
                         ptx_item(200, 0, FATBIN_RAW)};
  items[6].kind = FATBIN_KIND_ELF;
  ff_text image = encode(items, 7);
  fatbin read;
  assert_int_equal(fatbin_open(image.chars, image.length, &read, NULL), FF_OK);
  assert_int_equal(best(&read, 75, false), 75 * 256);
  assert_int_equal(best(&read, 79, false), 75 * 256);
  assert_int_equal(best(&read, 89, false), 80 * 256);
  assert_int_equal(best(&read, 90, false), 90 * 256); /* plain before "a" */
  assert_int_equal(best(&read, 100, false), 100 * 256 + 'f');
  assert_int_equal(best(&read, 103, false), 100 * 256 + 'f'); /* the same family */
  assert_int_equal(best(&read, 110, false), 90 * 256);        /* another one */
  assert_int_equal(best(&read, 120, false), 120 * 256 + 'a');
  assert_int_equal(best(&read, 121, false), 90 * 256); /* "a" is for its own only */
  assert_int_equal(best(&read, 20, true), 75 * 256);   /* none: the lowest plain one, and it is said */
  fatbin_note note;
  fatbin_best_ptx(&read, 20, &note);
  assert_string_equal(note, "its PTX is for compute_75, the machine has compute capability 2.0");
  assert_non_null(fatbin_best_ptx(&read, 20, NULL));
  fatbin_close(&read);
  free(image.chars);
}

static uint32_t best_tile(const fatbin *image, uint32_t capability) {
  const fatbin_entry *entry = fatbin_best_tile(image, capability);
  return entry ? entry->arch : 0;
}

/* Tile IR beside PTX: each is chosen among its own kind. */
static void test_tile(void **state) {
  fatbin_item items[] = {ptx_item(75, 0, FATBIN_RAW), ptx_item(80, 0, FATBIN_ZSTD), ptx_item(100, 0, FATBIN_RAW),
                         ptx_item(90, 0, FATBIN_RAW)};
  items[1].kind = items[2].kind = FATBIN_KIND_TILE;
  ff_text image = encode(items, 4);
  fatbin read;
  char *bytes;
  size_t size;
  assert_int_equal(fatbin_open(image.chars, image.length, &read, NULL), FF_OK);
  assert_int_equal(best_tile(&read, 90), 80);
  assert_int_equal(best_tile(&read, 120), 100);
  assert_int_equal(best_tile(&read, 70), 80); /* none: the lowest */
  assert_int_equal(best(&read, 90, false), 90 * 256);
  assert_int_equal(fatbin_unpack(fatbin_best_tile(&read, 90), &bytes, &size, NULL), FF_OK);
  assert_int_equal(size, items[1].size);
  assert_memory_equal(bytes, items[1].bytes, size);
  free(bytes);
  read.entry_count = 1;
  assert_int_equal(best_tile(&read, 90), 0);
  fatbin_close(&read);
  free(image.chars);
}

/* PTX for an architecture or a family is for no other GPU, unless there is machine code in whose place it stands. */
static uint32_t best_with(uint32_t code, char code_suffix, uint32_t arch, char suffix, uint32_t capability,
                          bool noted) {
  fatbin_item items[] = {ptx_item(arch, suffix, FATBIN_RAW), ptx_item(code, code_suffix, FATBIN_RAW)};
  items[1].kind = FATBIN_KIND_ELF;
  ff_text image = encode(items, code ? 2 : 1);
  fatbin read;
  assert_int_equal(fatbin_open(image.chars, image.length, &read, NULL), FF_OK);
  uint32_t found = best(&read, capability, noted);
  fatbin_close(&read);
  free(image.chars);
  return found;
}

static void test_code_for_some(void **state) {
  const uint32_t f = 120 * 256 + 'f', a = 90 * 256 + 'a';
  assert_int_equal(best_with(0, 0, 120, 'f', 90, true), 0);
  assert_int_equal(best_with(0, 0, 120, 'f', 121, false), f);
  assert_int_equal(best_with(0, 0, 120, 'f', 130, true), 0);
  assert_int_equal(best_with(0, 0, 90, 'a', 100, true), 0);
  assert_int_equal(best_with(0, 0, 90, 'a', 80, true), 0);
  assert_int_equal(best_with(0, 0, 90, 'a', 90, false), a);
  assert_int_equal(best_with(90, 0, 120, 'f', 90, true), f);
  assert_int_equal(best_with(90, 'a', 120, 'f', 90, true), f);
  assert_int_equal(best_with(80, 0, 120, 'f', 89, true), f); /* machine code of the same major number */
  assert_int_equal(best_with(89, 0, 120, 'f', 80, true), 0);
  assert_int_equal(best_with(80, 0, 120, 'f', 90, true), 0);
  assert_int_equal(best_with(100, 'a', 120, 'f', 103, true), 0);
  assert_int_equal(best_with(100, 'f', 120, 'f', 103, true), f);
  assert_int_equal(best_with(0, 0, 101, 'a', 110, false), 101 * 256 + 'a'); /* the same GPU, renamed */
  assert_int_equal(best_with(0, 0, 101, 'f', 100, true), 0);
  fatbin_item items[] = {ptx_item(100, 'a', FATBIN_RAW), ptx_item(120, 0, FATBIN_RAW)};
  ff_text image = encode(items, 2);
  fatbin read;
  assert_int_equal(fatbin_open(image.chars, image.length, &read, NULL), FF_OK);
  assert_int_equal(best(&read, 90, true), 120 * 256); /* a plain one stands in, though there is a lower one */
  fatbin_close(&read);
  free(image.chars);
}

/* ---- what is registered ---- */

typedef struct wrapper {
  uint32_t magic, version;
  const void *data, *linked;
} wrapper;

static void test_registered(void **state) {
  fatbin_item one = ptx_item(75, 0, FATBIN_ZSTD), two[2] = {ptx_item(80, 0, FATBIN_RAW), ptx_item(86, 0, FATBIN_LZ4)};
  ff_text first = encode(&one, 1), second = encode(two, 2);
  fatbin_set set;
  wrapper plain = {FATBIN_WRAPPER_MAGIC, 1, first.chars, NULL};
  assert_int_equal(fatbin_open_registered(&plain, &set, NULL), FF_OK);
  assert_int_equal(set.count, 1);
  assert_false(set.relocatable);
  assert_int_equal(set.images[0].entries[0].arch, 75);
  fatbin_set_close(&set);

  const void *array[] = {second.chars, first.chars, NULL};
  wrapper linked = {FATBIN_WRAPPER_MAGIC, 2, first.chars, array};
  assert_int_equal(fatbin_open_registered(&linked, &set, NULL), FF_OK);
  assert_int_equal(set.count, 3);
  assert_true(set.relocatable);
  assert_int_equal(set.images[1].entry_count, 2);
  fatbin_set_close(&set);

  linked.linked = NULL;
  assert_int_equal(fatbin_open_registered(&linked, &set, NULL), FF_OK);
  assert_int_equal(set.count, 1);
  fatbin_set_close(&set);

  assert_int_equal(fatbin_open_registered(second.chars, &set, NULL), FF_OK); /* no wrapper at all */
  assert_int_equal(set.images[0].entry_count, 2);
  fatbin_set_close(&set);

  ff_error error;
  assert_int_equal(fatbin_open_registered(NULL, &set, &error), FF_INVALID);
  plain.data = NULL;
  assert_int_equal(fatbin_open_registered(&plain, &set, &error), FF_PARSE);
  plain.data = ptx;
  assert_int_equal(fatbin_open_registered(&plain, &set, &error), FF_PARSE);
  plain.version = 3;
  assert_int_equal(fatbin_open_registered(&plain, &set, &error), FF_UNSUPPORTED);
  plain.magic++;
  assert_int_equal(fatbin_open_registered(&plain, &set, &error), FF_PARSE);
  const void *bad[] = {second.chars, ptx, NULL};
  linked.linked = bad;
  assert_int_equal(fatbin_open_registered(&linked, &set, &error), FF_PARSE);
  assert_int_equal(set.count, 0);
  free(first.chars);
  free(second.chars);
}

/* ---- broken input ---- */

/* Opens and unpacks everything; whatever was let through must lie inside. */
static void use(const unsigned char *bytes, size_t size) {
  fatbin read;
  ff_error error = {.message = ""};
  if (fatbin_open(bytes, size, &read, &error) != FF_OK) {
    assert_true(error.message[0] != '\0');
    return;
  }
  assert_true(read.bytes <= size);
  for (uint32_t i = 0; i < read.entry_count; i++) {
    const fatbin_entry *e = &read.entries[i];
    assert_true(e->payload >= bytes && e->payload_bytes <= size - (size_t)(e->payload - bytes));
    if (e->name_length)
      assert_true(e->name >= (const char *)bytes && e->name + e->name_length <= (const char *)bytes + size);
    if (e->options_length)
      assert_true(e->options >= (const char *)bytes && e->options + e->options_length <= (const char *)bytes + size);
    char *text;
    size_t length;
    if (fatbin_unpack(e, &text, &length, &error) == FF_OK) {
      assert_int_equal(length, e->unpacked_bytes);
      assert_int_equal(text[length], 0);
      free(text);
    }
  }
  fatbin_close(&read);
}

static ff_text three_entries(void) {
  fatbin_item items[3];
  for (int i = 0; i < 3; i++) {
    items[i] = ptx_item(75, 0, packings[i]);
    items[i].name = "x.cu";
    items[i].options = "-g";
  }
  return encode(items, 3);
}

static void test_truncated(void **state) {
  ff_text image = three_entries();
  for (size_t size = 0; size < image.length; size++) {
    unsigned char *copy = exact(image.chars, size);
    fatbin read;
    ff_error error = {.message = ""};
    assert_int_equal(fatbin_open(copy, size, &read, &error), FF_PARSE);
    assert_true(error.message[0] != '\0');
    assert_null(read.entries);
    free(copy);
  }
  free(image.chars);
}

/* Cut inside, with a header that says so: the last entry is then the broken one. */
static void test_truncated_honestly(void **state) {
  ff_text image = three_entries();
  for (size_t size = FATBIN_HEADER_BYTES; size < image.length; size++) {
    unsigned char *copy = exact(image.chars, size);
    uint64_t content = size - FATBIN_HEADER_BYTES;
    memcpy(copy + 8, &content, 8);
    use(copy, size);
    free(copy);
  }
  free(image.chars);
}

static void test_flipped(void **state) {
  static const unsigned char flips[] = {0x01, 0x02, 0x10, 0x20, 0x80, 0xff};
  ff_text image = three_entries();
  for (size_t at = 0; at < image.length; at++) {
    for (size_t f = 0; f < sizeof flips; f++) {
      unsigned char *copy = exact(image.chars, image.length);
      copy[at] ^= flips[f];
      use(copy, image.length);
      free(copy);
    }
  }
  free(image.chars);
}

static void test_random_damage(void **state) {
  ff_text image = three_entries();
  uint64_t seed = 42;
  for (int round = 0; round < 20000; round++) {
    unsigned char *copy = exact(image.chars, image.length);
    for (uint64_t n = next_random(&seed) % 8 + 1; n; n--)
      copy[next_random(&seed) % image.length] = (unsigned char)next_random(&seed);
    uint32_t magic = FATBIN_MAGIC;
    memcpy(copy, &magic, 4);
    use(copy, image.length);
    free(copy);
  }
  free(image.chars);
}

static void put64(char *at, uint64_t value) { memcpy(at, &value, 8); }
static void put32(char *at, uint32_t value) { memcpy(at, &value, 4); }

static ff_status open_and_unpack(const ff_text *image, ff_error *error) {
  fatbin read;
  char *text;
  size_t length;
  ff_status status = fatbin_open(image->chars, image->length, &read, error);
  if (status != FF_OK) return status;
  status = fatbin_unpack(&read.entries[0], &text, &length, error);
  if (status == FF_OK) free(text);
  fatbin_close(&read);
  return status;
}

static void test_damaged_fields(void **state) {
  for (size_t p = 1; p < 3; p++) {
    fatbin_item item = ptx_item(75, 0, packings[p]);
    ff_text image = encode(&item, 1);
    char *entry = image.chars + FATBIN_HEADER_BYTES;
    ff_error error;
    assert_int_equal(open_and_unpack(&image, &error), FF_OK);
    put64(entry + 56, sizeof ptx); /* one byte more than there is */
    assert_int_equal(open_and_unpack(&image, &error), FF_PARSE);
    put64(entry + 56, sizeof ptx - 2);
    assert_int_equal(open_and_unpack(&image, &error), FF_PARSE);
    put64(entry + 56, UINT64_C(1) << 40); /* an allocation that must not happen */
    assert_int_equal(open_and_unpack(&image, &error), FF_LIMIT);
    put64(entry + 56, UINT64_MAX);
    assert_int_equal(open_and_unpack(&image, &error), FF_LIMIT);
    put64(entry + 56, FATBIN_MAX_PAYLOAD); /* within the limit, but no packing expands that far */
    assert_int_equal(open_and_unpack(&image, &error), FF_PARSE);
    assert_non_null(strstr(error.message, "cannot become"));
    put64(entry + 56, sizeof ptx - 1);
    put32(entry + 16, 0); /* compressed to nothing */
    assert_int_equal(open_and_unpack(&image, &error), FF_PARSE);
    put32(entry + 16, UINT32_MAX);
    assert_int_equal(open_and_unpack(&image, &error), FF_PARSE);
    free(image.chars);
  }
  fatbin_item item = ptx_item(75, 0, FATBIN_ZSTD);
  ff_text image = encode(&item, 1);
  char *entry = image.chars + FATBIN_HEADER_BYTES;
  ff_error error;
  put64(entry + 40, FATBIN_FLAG_LZ4 | FATBIN_FLAG_ZSTD);
  assert_int_equal(open_and_unpack(&image, &error), FF_PARSE);
  put64(entry + 40, FATBIN_FLAG_ZSTD);
  put32(entry + 4, 63); /* header size */
  assert_int_equal(open_and_unpack(&image, &error), FF_PARSE);
  put32(entry + 4, UINT32_MAX);
  assert_int_equal(open_and_unpack(&image, &error), FF_PARSE);
  put32(entry + 4, 64);
  put64(entry + 8, UINT64_MAX); /* payload size */
  assert_int_equal(open_and_unpack(&image, &error), FF_PARSE);
  image.chars[4] = 2; /* format version */
  assert_int_equal(open_and_unpack(&image, &error), FF_UNSUPPORTED);
  image.chars[4] = 1;
  put64(image.chars + 8, UINT64_MAX); /* size of the whole */
  assert_int_equal(open_and_unpack(&image, &error), FF_PARSE);
  free(image.chars);
}

static void test_too_many_entries(void **state) {
  uint32_t count = FATBIN_MAX_ENTRIES + 1;
  fatbin_item *items = calloc(count, sizeof *items);
  for (uint32_t i = 0; i < count; i++) items[i] = (fatbin_item){.kind = FATBIN_KIND_PTX, .bytes = "", .size = 0};
  ff_text image = encode(items, count);
  fatbin read;
  assert_int_equal(fatbin_open(image.chars, image.length, &read, NULL), FF_LIMIT);
  assert_null(read.entries);
  free(image.chars);
  free(items);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip),     cmocka_unit_test(test_fields),
      cmocka_unit_test(test_layout),         cmocka_unit_test(test_empty),
      cmocka_unit_test(test_best),           cmocka_unit_test(test_tile),
      cmocka_unit_test(test_code_for_some),  cmocka_unit_test(test_registered),
      cmocka_unit_test(test_truncated),      cmocka_unit_test(test_truncated_honestly),
      cmocka_unit_test(test_flipped),        cmocka_unit_test(test_random_damage),
      cmocka_unit_test(test_damaged_fields), cmocka_unit_test(test_too_many_entries),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
