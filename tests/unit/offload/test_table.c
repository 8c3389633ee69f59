/* SPDX-License-Identifier: Apache-2.0 */
/* From a launch and a pc to its candidate: several modules and names, code that is broken or missing, and several
 * threads at once. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "offload/candidate_table.h"

/* A kernel that sums n floats per thread: its loop saves words from some trips on. */
static char *kernel_text(const char *name, uint32_t padding) {
  ff_text text = {0};
  ff_text_add(&text,
              ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry %s(.param .u64 pa, .param .u32 pn)\n{\n"
              ".reg .b64 %%a, %%t; .reg .b32 %%r<9>; .reg .f32 %%f<4>; .reg .pred %%p;\n",
              name);
  for (uint32_t i = 0; i < padding; i++) ff_text_add(&text, "mov.u32 %%r7, %u;\n", i);
  ff_text_add(
      &text,
      "ld.param.u64 %%a, [pa]; ld.param.u32 %%r0, [pn]; mov.u32 %%r1, %%tid.x; mul.wide.u32 %%t, %%r1, 4; add.u64 %%t, %%t, %%a;\n"
      "mov.u32 %%r2, 0; mov.f32 %%f0, 0f00000000; setp.eq.u32 %%p, %%r0, 0; @%%p bra done;\n"
      "top: ld.global.f32 %%f1, [%%t]; ld.global.f32 %%f2, [%%t+4096]; add.f32 %%f0, %%f0, %%f1; add.f32 %%f0, %%f0, %%f2;\n"
      "add.u64 %%t, %%t, 8192; add.u32 %%r2, %%r2, 1; setp.lt.u32 %%p, %%r2, %%r0; @%%p bra top;\n"
      "done: st.global.f32 [%%a], %%f0; ret;\n}\n");
  return text.chars;
}

static void add_module(offload_table *t, uint32_t id, const char *text) {
  char *own = strdup(text);
  trace_op op = {.kind = TRACE_OP_MODULE, .module = {.ptx = own, .bytes = strlen(own), .id = id}};
  offload_table_operation(t, &op);
  memset(own, '!', strlen(own));
  free(own);
}

static trace_launch launch_of(const char *kernel, const char *symbol, uint32_t index, uint32_t module) {
  trace_launch launch = {.kernel_index = index, .module = module, .symbol = symbol ? trace_symbol(symbol) : 0};
  snprintf(launch.kernel, sizeof launch.kernel, "%s", kernel);
  return launch;
}

/* The only candidate of the kernel; its pc. */
static uint32_t only_pc(offload_table *t, const trace_launch *launch) {
  const offload_kernel *kernel = offload_table_kernel(t, launch);
  assert_non_null(kernel);
  assert_int_equal(kernel->chosen_count, 1);
  for (uint32_t i = 0; i < kernel->region_count; i++)
    if (kernel->regions[i].chosen) return kernel->regions[i].entry;
  return UINT32_MAX;
}

static void names(void **state) {
  (void)state;
  offload_table *t = offload_table_create();
  char *plain = kernel_text("sum", 0), *mangled = kernel_text("_Z3sumPfj", 3), *other = kernel_text("_Z3sumPfi", 5);
  add_module(t, 1, plain);
  add_module(t, 2, mangled);
  add_module(t, 3, mangled);
  add_module(t, 3, other);
  trace_launch a = launch_of("sum", "sum", 0, 1), b = launch_of("sum(float*, unsigned int)", "_Z3sumPfj", 1, 2),
               nameless = launch_of("sum(float*, unsigned int)", NULL, 2, 2);
  trace_launch first = launch_of("sum(float*, unsigned int)", "_Z3sumPfj", 3, 3),
               second = launch_of("sum(float*, int)", "_Z3sumPfi", 4, 3),
               unclear = launch_of("sum(float*, int)", NULL, 5, 3);
  uint32_t pc = only_pc(t, &a);
  const sim_candidate *found = offload_table_find(t, &a, pc);
  assert_non_null(found);
  assert_int_equal(found->pc, pc);
  assert_true(found->conditional && found->tx_trip < 0);
  assert_ptr_equal(offload_table_find(t, &a, pc), found);
  assert_true(offload_table_region(t, &a, pc)->chosen && offload_table_region(t, &a, pc)->entry == pc);
  assert_null(offload_table_find(t, &a, pc + 1));
  assert_null(offload_table_region(t, &a, pc + 1));
  assert_int_equal(only_pc(t, &b), pc + 3);
  assert_int_equal(only_pc(t, &nameless), pc + 3);
  assert_int_equal(only_pc(t, &first), pc + 3);
  assert_int_equal(only_pc(t, &second), pc + 5);
  assert_null(offload_table_kernel(t, &unclear));
  assert_null(offload_table_find(t, &unclear, pc));
  trace_launch nowhere = launch_of("sum", "sum", 6, 9), unknown = launch_of("product", "product", 7, 1);
  assert_null(offload_table_find(t, &nowhere, pc));
  assert_null(offload_table_find(t, &unknown, pc));
  assert_null(offload_table_problem(t));
  offload_table_free(t);
  free(plain);
  free(mangled);
  free(other);
}

static void broken_code(void **state) {
  (void)state;
  offload_table *t = offload_table_create();
  add_module(t, 1,
             ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry sum(.param .u64 pa) { bra nowhere; }");
  trace_launch a = launch_of("sum", "sum", 0, 1);
  assert_null(offload_table_find(t, &a, 4));
  assert_non_null(strstr(offload_table_problem(t), "the recorded PTX"));
  trace_op empty = {.kind = TRACE_OP_MODULE, .module = {.ptx = "", .bytes = 0, .id = 2}},
           other = {.kind = TRACE_OP_SYNC_DEVICE};
  offload_table_operation(t, &empty);
  offload_table_operation(t, &other);
  offload_table_free(t);
  offload_table_free(NULL);
}

typedef struct asker {
  offload_table *table;
  pthread_t thread;
  uint32_t pc;
  const sim_candidate *found[64];
} asker;

static void *ask(void *argument) {
  asker *a = argument;
  for (uint32_t round = 0; round < 200; round++)
    for (uint32_t k = 0; k < 64; k++) {
      char name[16];
      snprintf(name, sizeof name, "k%u", k);
      trace_launch launch = launch_of(name, name, k * 256, k % 4);
      const sim_candidate *found = offload_table_find(a->table, &launch, a->pc + k);
      if (!found || (a->found[k] && a->found[k] != found)) return NULL;
      a->found[k] = found;
    }
  return a;
}

static void threads(void **state) {
  (void)state;
  offload_table *t = offload_table_create();
  for (uint32_t k = 0; k < 64; k++) {
    char name[16];
    snprintf(name, sizeof name, "k%u", k);
    char *text = kernel_text(name, k);
    add_module(t, k % 4, text);
    free(text);
  }
  offload_table *single = offload_table_create();
  char *text = kernel_text("k0", 0);
  add_module(single, 0, text);
  free(text);
  trace_launch zero = launch_of("k0", "k0", 0, 0);
  asker askers[4];
  for (int i = 0; i < 4; i++) {
    askers[i] = (asker){.table = t, .pc = only_pc(single, &zero)};
    assert_int_equal(pthread_create(&askers[i].thread, NULL, ask, &askers[i]), 0);
  }
  for (int i = 0; i < 4; i++) {
    void *good;
    pthread_join(askers[i].thread, &good);
    assert_ptr_equal(good, &askers[i]);
    assert_memory_equal(askers[i].found, askers[0].found, sizeof askers[0].found);
  }
  offload_table_free(single);
  offload_table_free(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(broken_code), cmocka_unit_test(threads)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
