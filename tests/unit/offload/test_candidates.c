/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates, costs, conditions and bars of kernels that are small enough to do by hand. */
#include "unit/offload/offload_test.h"

/* The numbers of Hsieh et al., section 3.1.5. */
static void libor_loop(void **state) {
  static const double sums[] = {110.25, 60.5, 10.75, -39, -88.75};
  ptx_module *module = parse_body(LIBOR_BODY);
  offload_kernel *kernel = offload_analyze(only_kernel(module));
  assert_int_equal(kernel->chosen_count, 1);
  const offload_region *r = region_at(kernel, 6, 14);
  assert_true(r->chosen && r->candidate);
  assert_int_equal(r->live_in_count, 5);
  assert_int_equal(r->other_count, 0);
  assert_int_equal(r->live_out_count, 0);
  assert_int_equal(r->loads, 1);
  assert_int_equal(r->stores, 1);
  assert_true(r->tx_fixed == 160 && r->tx_trip == -33.5 && r->rx_fixed == 0 && r->rx_trip == -16.25);
  for (int k = 1; k <= 5; k++) assert_true(r->tx_fixed + r->rx_fixed + k * (r->tx_trip + r->rx_trip) == sums[k - 1]);
  assert_int_equal(r->trips.kind, OFFLOAD_TRIPS_KNOWN);
  assert_int_equal(r->threshold, 4);
  assert_int_equal(r->tx_from, 5);
  assert_int_equal(r->rx_from, 1);
  assert_string_equal(kernel->func->regs[r->compared].name, "%r1");
  assert_int_equal(r->compared_with, 4);
  assert_false(r->compared_down);
  assert_int_equal(r->in_bytes, 2 * 256 + 3 * 128);
  for (uint32_t n = 1; n < 10; n++) assert_int_equal(offload_trips_of(&r->trips, n, 0), n);
  sim_candidate c = offload_candidate(r);
  assert_int_equal(c.pc, 6);
  assert_true(c.conditional);
  assert_int_equal(c.threshold, 4);
  assert_int_equal(c.in_bytes, r->in_bytes);
  assert_true(c.tx_trip == -33.5 && c.rx_trip == -16.25 && c.tx_fixed == 160 && c.rx_fixed == 0);
  offload_kernel_free(kernel);
  ptx_module_free(module);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(libor_loop)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
