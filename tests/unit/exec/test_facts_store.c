/* SPDX-License-Identifier: Apache-2.0 */
/* Modules of which a kernel may reach much and calls little: bodies that it does not call are not kept, what is known
 * of them is found again on disk by the next process, and a damaged file, or that of
 * another build, is as good as none. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <xxhash.h>

#include "exec/decode/function_facts.h"
#include "exec/decode/program.h"
#include "unit/share.h"

static char home[64];
static exec_memory *memory;
static ff_text text; /* of the module */

/* Functions that need more and more registers; one with shared memory of its own, one that calls, one that takes an
 * address; a comment that makes the text as long as one that is worth it. */
static void write_text(size_t comment) {
  ff_text_add(&text, ".version 8.0\n.target sm_80\n.address_size 64\n.shared .align 8 .b8 pool[64];\n");
  for (int f = 0; f < 30; f++) {
    ff_text_add(&text, ".func (.reg .b32 r) f%d(.reg .b32 x) {\n .reg .b32 %%t<40>;\n", f);
    if (f == 7) ff_text_add(&text, " .shared .u32 mine[32]; st.shared.u32 [mine], x;\n");
    if (f == 9) ff_text_add(&text, " st.shared.u32 [pool+4], x;\n");
    for (int n = 0; n <= f; n++) ff_text_add(&text, " add.u32 %%t%d, x, %d;\n", n, n);
    for (int n = 0; n <= f; n++) ff_text_add(&text, " xor.b32 x, x, %%t%d;\n", n);
    if (f > 20) ff_text_add(&text, " call (x), f%d, (x);\n", f - 20);
    ff_text_add(&text, " mov.u32 r, x; ret;\n}\n");
  }
  ff_text_add(&text, ".global .u64 table[20] = {f0");
  for (int f = 1; f < 20; f++) ff_text_add(&text, ", f%d", f);
  ff_text_add(&text, "};\n.entry other() { .reg .b64 %%d; mov.u64 %%d, f22; ret; }\n"
                     ".entry k(.param .u64 p) {\n .reg .b64 %%d<3>; .reg .b32 %%a;\n ld.param.u64 %%d1, [p];\n"
                     " P: .callprototype (.reg .b32 r) _ (.reg .b32 x);\n call (%%a), %%d1, (%%a), P;\n ret;\n}\n/*");
  for (size_t n = 0; n < comment; n += 64)
    ff_text_add(&text, "0123456789012345678901234567890123456789012345678901234567890\n");
  ff_text_add(&text, "*/\n");
}

static int setup(void **state) {
  strcpy(home, "/tmp/ff-test-facts-XXXXXX");
  if (!mkdtemp(home) || setenv("XDG_CACHE_HOME", home, 1)) return 1;
  write_text(2 << 20);
  return exec_memory_create(&memory, NULL) != FF_OK;
}

static int teardown(void **state) {
  char command[PATH_MAX];
  snprintf(command, sizeof command, "rm -rf '%s'", home);
  exec_memory_free(memory);
  free(text.chars);
  return system(command) != 0;
}

/* The path of the one file there is; false: there is none. */
static bool kept_file(char *path) {
  snprintf(path, PATH_MAX, "%s/farfault/facts", home);
  DIR *d = opendir(path);
  bool found = false;
  for (struct dirent *e; d && (e = readdir(d));) {
    if (e->d_name[0] == '.') continue;
    assert_false(found);
    found = true;
    snprintf(path, PATH_MAX, "%s/farfault/facts/%s", home, e->d_name);
  }
  if (d) closedir(d);
  return found;
}

static void forget_file(void) {
  char path[PATH_MAX];
  if (kept_file(path)) assert_int_equal(unlink(path), 0);
}

typedef struct opened {
  ptx_module *module;
  exec_program *program;
  exec_kernel *kernel;
} opened;

static ptx_module *parse_module(const ff_text *of) {
  ptx_module *module = NULL;
  ff_error error = {0};
  if (ptx_module_parse_later("test.ptx", of->chars, of->length, &module, &error)) fail_msg("%s", error.message);
  return module;
}

static opened open_kernel(const ff_text *of) {
  opened o = {.module = parse_module(of)};
  ff_error error = {0};
  if (exec_program_create(o.module, memory, &o.program, &error) != FF_OK) fail_msg("%s", error.message);
  if (exec_program_kernel(o.program, "k", &o.kernel, &error) != FF_OK) fail_msg("%s", error.message);
  return o;
}

static void close_kernel(opened *o) {
  exec_program_free(o->program);
  ptx_module_free(o->module);
}

static void assert_same_kernel(const opened *a, const opened *b) {
  const exec_kernel_info *x = exec_kernel_describe(a->kernel), *y = exec_kernel_describe(b->kernel);
  assert_int_equal(x->registers, y->registers);
  assert_int_equal(x->static_shared, y->static_shared);
  assert_int_equal(x->local_bytes, y->local_bytes);
  assert_int_equal(x->may_wait, y->may_wait);
  assert_int_equal(a->kernel->reach_count, b->kernel->reach_count);
  assert_int_equal(a->kernel->pc_total, b->kernel->pc_total);
  for (uint32_t f = 0; f < a->kernel->reach_count; f++)
    assert_string_equal(a->kernel->reach[f]->name, b->kernel->reach[f]->name);
}

/* What the kernel reaches is known; of that only what has shared variables of its own is there. */
static void bodies_are_given_back(void **state) {
  forget_file();
  opened o = open_kernel(&text);
  assert_int_equal(o.kernel->reach_count, 22); /* itself, the 20 of the table, f22, whose f2 is among them */
  assert_int_equal(exec_kernel_describe(o.kernel)->static_shared, 64 + 128);
  for (uint32_t f = 0; f < o.module->func_count; f++) {
    const ptx_func *func = o.module->funcs[f];
    bool there = !strcmp(func->name, "k") || !strcmp(func->name, "f7");
    if (there == !!func->unread) fail_msg("%s", func->name);
  }
  const exec_code *code;
  const exec_isa_table *isa = exec_isa_find(NULL);
  assert_int_equal(exec_kernel_code(o.kernel, isa, &code, NULL), FF_OK); /* decoded: they are read again */
  for (uint32_t f = 0; f < o.kernel->reach_count; f++) assert_int_equal(code->functions[f]->number, f);
  close_kernel(&o);
}

static void found_again(void **state) {
  char path[PATH_MAX];
  forget_file();
  opened first = open_kernel(&text);
  assert_true(kept_file(path));
  opened second = open_kernel(&text);
  assert_same_kernel(&first, &second);
  exec_facts_table *known = exec_facts_create(second.module);
  const exec_func_list *taken;
  assert_true(exec_facts_recall(known));
  assert_int_equal(exec_facts_taken(known, &taken, NULL), FF_OK);
  assert_int_equal(taken->count, 21);
  assert_string_equal(taken->items[20]->name, "f22");
  for (uint32_t f = 0; f < 30; f++) {
    ptx_func *func = second.module->funcs[f];
    if (f == 7) continue; /* not in the file */
    const exec_facts *a = exec_facts_of(first.program->facts, first.module->funcs[f]), *b = exec_facts_of(known, func);
    assert_int_equal(a->instr_count, b->instr_count);
    assert_int_equal(a->registers, b->registers);
    assert_int_equal(a->callee_count, f > 20);
    assert_int_equal(b->callee_count, f > 20);
    if (f > 20) assert_ptr_equal(b->callees[0], second.module->funcs[f - 20]);
    assert_int_equal(b->var_count, f == 9);
    if (f == 9) assert_string_equal(b->vars[0]->name, "pool");
  }
  exec_facts_free(known);
  close_kernel(&first);
  close_kernel(&second);
}

static bool recalls(void) {
  ptx_module *module = parse_module(&text);
  exec_facts_table *known = exec_facts_create(module);
  bool found = exec_facts_recall(known);
  exec_facts_free(known);
  ptx_module_free(module);
  return found;
}

static void write_file(const char *path, const unsigned char *data, size_t bytes) {
  FILE *file = fopen(path, "wb");
  assert_int_equal(fwrite(data, 1, bytes, file), bytes);
  fclose(file);
}

static void damaged(void **state) {
  const size_t few = CHECKED_BUILD ? one_in(7) : 1;
  char path[PATH_MAX];
  forget_file();
  opened o = open_kernel(&text);
  assert_true(kept_file(path));
  unsigned char data[65536];
  FILE *file = fopen(path, "rb");
  size_t bytes = fread(data, 1, sizeof data, file), head = 32;
  fclose(file);
  assert_true(bytes > head && bytes < sizeof data && recalls());
  /* the last four bytes of the head's eight are numbers, too */
  for (size_t n = 0; n < bytes; n += n < head ? 1 : 37 * few) {
    data[n] ^= 4;
    write_file(path, data, bytes);
    assert_false(recalls());
    data[n] ^= 4;
  }
  for (size_t n = 0; n < bytes; n += 101 * few) {
    write_file(path, data, n);
    assert_false(recalls());
  }
  /* whole, as a checksum has it, and with numbers that the module does not have: what matters is that nothing is read
   * where nothing is */
  for (size_t n = head; n + 4 <= bytes; n += 4 * few) {
    uint32_t old, wild = UINT32_MAX - 1;
    memcpy(&old, data + n, 4);
    memcpy(data + n, &wild, 4);
    uint64_t check = XXH3_64bits(data + head, bytes - head);
    memcpy(data + 16, &check, 8);
    write_file(path, data, bytes);
    recalls();
    memcpy(data + n, &old, 4);
  }
  opened again = open_kernel(&text);
  assert_same_kernel(&o, &again);
  close_kernel(&again);
  close_kernel(&o);
}

static void small_is_not_kept(void **state) {
  char path[PATH_MAX];
  forget_file();
  ff_text small = {0};
  ff_text_add_bytes(&small, text.chars, (size_t)(strstr(text.chars, "/*") - text.chars));
  opened o = open_kernel(&small);
  assert_int_equal(o.kernel->reach_count, 22);
  assert_false(kept_file(path));
  close_kernel(&o);
  free(small.chars);
}

static void without_a_folder(void **state) {
  forget_file();
  setenv("XDG_CACHE_HOME", "/dev/null", 1);
  opened o = open_kernel(&text), again = open_kernel(&text);
  assert_same_kernel(&o, &again);
  close_kernel(&again);
  close_kernel(&o);
  setenv("XDG_CACHE_HOME", home, 1);
}

static ff_text wide; /* a module with a kernel that keeps 70 values at a time */

static void write_wide(void) {
  ff_text_add_bytes(&wide, text.chars, text.length);
  ff_text_add(&wide, ".entry wide(.param .u64 p) {\n .reg .b64 %%d<3>; .reg .b32 %%a; .reg .b32 %%t<80>;\n"
                     " ld.param.u64 %%d1, [p]; mov.u32 %%a, 1;\n");
  for (int n = 0; n < 70; n++) ff_text_add(&wide, " ld.global.u32 %%t%d, [%%d1+%d];\n", n, 4 * n);
  for (int n = 0; n < 70; n++) ff_text_add(&wide, " xor.b32 %%a, %%a, %%t%d;\n", n);
  ff_text_add(&wide, " P: .callprototype (.reg .b32 r) _ (.reg .b32 x);\n call (%%a), %%d1, (%%a), P;\n ret;\n}\n");
}

/* Registers of the kernel `wide`, where `k` is launched first if `after` says so. */
static uint32_t registers_of_wide(uint32_t limit, bool after) {
  ptx_module *module = parse_module(&wide);
  exec_program *program;
  exec_kernel *kernel;
  ff_error error = {0};
  ptx_find_func(module, "wide")->maxnreg = limit;
  assert_int_equal(exec_program_create(module, memory, &program, &error), FF_OK);
  if (after) assert_int_equal(exec_program_kernel(program, "k", &kernel, &error), FF_OK);
  assert_int_equal(exec_program_kernel(program, "wide", &kernel, &error), FF_OK);
  uint32_t registers = exec_kernel_describe(kernel)->registers;
  exec_program_free(program);
  ptx_module_free(module);
  return registers;
}

/* The same text in a program that was built with -maxrregcount has other kernels. */
static void limit_of_the_build(void **state) {
  write_wide();
  forget_file();
  uint32_t free_of_limit = registers_of_wide(0, true);
  assert_true(free_of_limit > 70);
  forget_file();
  assert_int_equal(registers_of_wide(32, false), 32);
  assert_int_equal(registers_of_wide(0, true), free_of_limit);
  free(wide.chars);
}

static const char *self; /* the path of this program */

/* Does a copy of this program, with that content and that time of its last change, find what is kept? */
static bool copy_recalls(const ff_text *content, struct timespec changed) {
  char path[PATH_MAX], command[2 * PATH_MAX];
  snprintf(path, sizeof path, "%s/copy", home);
  write_file(path, (const unsigned char *)content->chars, content->length);
  assert_int_equal(chmod(path, 0700), 0);
  assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[2]){changed, changed}, 0), 0);
  snprintf(command, sizeof command, "'%s' recalls", path);
  int status = system(command);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
  return WEXITSTATUS(status) == 0;
}

/* Where the build id begins in the file; 0: it has none. */
static size_t build_id_at(const ff_text *content) {
  static const char head[] = "\x03\0\0\0GNU"; /* the note's kind and owner; it is among the first things */
  for (size_t n = 0; n + sizeof head < content->length; n += 4)
    if (!memcmp(content->chars + n, head, sizeof head)) return n + sizeof head;
  return 0;
}

/* A build is known by what the linker wrote into it, wherever it lies and whatever the date of its file is. */
static void builds(void **state) {
  ff_text content = {0};
  char part[65536];
  struct stat s;
  FILE *file = fopen(self, "rb");
  assert_non_null(file);
  for (size_t got; (got = fread(part, 1, sizeof part, file)) > 0;) ff_text_add_bytes(&content, part, got);
  fclose(file);
  assert_int_equal(stat(self, &s), 0);
  size_t id = build_id_at(&content);
  if (!id) {
    free(content.chars);
    skip();
  }
  forget_file();
  opened o = open_kernel(&text);
  assert_true(copy_recalls(&content, (struct timespec){1000000000, 0}));
  content.chars[id] ^= 1;
  assert_false(copy_recalls(&content, s.st_mtim));
  close_kernel(&o);
  free(content.chars);
}

int main(int argc, char **argv) {
  if (argc > 1) { /* a copy of it (builds) */
    write_text(2 << 20);
    bool found = recalls();
    free(text.chars);
    return !found;
  }
  self = argv[0];
  const struct CMUnitTest tests[] = {cmocka_unit_test(bodies_are_given_back),
                                     cmocka_unit_test(found_again),
                                     cmocka_unit_test(damaged),
                                     cmocka_unit_test(small_is_not_kept),
                                     cmocka_unit_test(without_a_folder),
                                     cmocka_unit_test(limit_of_the_build),
                                     cmocka_unit_test(builds)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
