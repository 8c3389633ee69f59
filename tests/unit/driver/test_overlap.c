/* SPDX-License-Identifier: Apache-2.0 */
/* What overlaps in virtual time while `copy` is simulated, and what must not: copies in both directions
 * and kernels in streams that do not wait for the default stream; events that order them; pinned and pageable memory;
 * parts of a buffer; memory that is mapped and unmapped while work runs. */
#include "program.h"

enum { BYTES = 8 << 20 };

static const char loop_text[] = PTX_HEAD
    ".visible .entry spin(.param .u32 rounds, .param .u64 to)\n{\n.reg .b32 %r<3>;\n.reg .b64 %rd<2>;\n.reg .pred %p;\n"
    "ld.param.u32 %r1, [rounds];\nld.param.u64 %rd1, [to];\nmov.u32 %r2, 0;\n"
    "again:\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p, %r2, %r1;\n@%p bra again;\nst.global.u32 [%rd1], %r2;\nret;\n}\n";
STUB(spin);

static cudaStream_t stream[3];
static char *device[2], *pinned[2], *pageable;
static uint32_t *result;

static void setup(void) {
  void **handle = register_ptx((const char *const[]){loop_text}, 1);
  register_kernel(handle, spin, "spin");
  for (int i = 0; i < 3; i++) succeed(cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking));
  for (int i = 0; i < 2; i++) succeed(cudaMalloc((void **)&device[i], BYTES));
  for (int i = 0; i < 2; i++) succeed(cudaHostAlloc((void **)&pinned[i], BYTES, 0));
  succeed(cudaMalloc((void **)&result, 64));
  pageable = malloc(BYTES);
  memset(pageable, 1, BYTES);
}

static void in(int s, char *host) {
  succeed(cudaMemcpyAsync(device[0], host, BYTES, cudaMemcpyHostToDevice, stream[s]));
}
static void out(int s) { succeed(cudaMemcpyAsync(pinned[1], device[1], BYTES, cudaMemcpyDeviceToHost, stream[s])); }
static void run(int s, uint32_t rounds) {
  uint32_t *to = result + s;
  succeed(cudaLaunchKernel(spin, (dim3){1, 1, 1}, (dim3){32, 1, 1}, (void *[]){&rounds, &to}, 0, stream[s]));
}

/* Virtual host time in microseconds, from a device without work to one without work. */
static double begun;
static double host_us(void) {
  uint64_t ps;
  succeed(engine_host_time(&ps));
  return (double)ps * 1e-6;
}
static void begin(void) {
  succeed(cudaDeviceSynchronize());
  begun = host_us();
}
static double end(void) {
  succeed(cudaDeviceSynchronize());
  return host_us() - begun;
}

static uint32_t rounds;
/* each about as long as the others, so that overlap and sequence cannot be mixed up */
static double alone_in, alone_out, alone_run;

static void measure_each(void **state) {
  (void)state;
  begin(), in(0, pinned[0]), alone_in = end();
  begin(), out(0), alone_out = end();
  begin(), run(0, 10000);
  double some = end();
  begin(), run(0, 20000);
  rounds = (uint32_t)(10000 * alone_in / (end() - some));
  begin(), run(0, rounds), alone_run = end();
  assert_true(alone_in > 300 && alone_out > 0.7 * alone_in && alone_out < 1.4 * alone_in);
  assert_true(alone_run > 0.9 * alone_in && alone_run < 1.2 * alone_in);
}

static double longest(void) {
  return alone_in > alone_out    ? alone_in > alone_run ? alone_in : alone_run
         : alone_out > alone_run ? alone_out
                                 : alone_run;
}

static void independent_work_overlaps(void **state) {
  (void)state;
  begin(), in(0, pinned[0]), run(1, rounds), out(2);
  assert_in_range((int)end(), (int)longest(), (int)(1.15 * longest()));
  begin(), run(0, rounds), run(1, rounds), run(2, rounds);
  assert_in_range((int)end(), (int)(0.95 * alone_run), (int)(1.15 * alone_run));
}

static void dependent_work_does_not(void **state) {
  (void)state;
  double sum = alone_in + alone_run + alone_out;
  cudaEvent_t brought, ran;
  succeed(cudaEventCreateWithFlags(&brought, cudaEventDisableTiming));
  succeed(cudaEventCreateWithFlags(&ran, cudaEventDisableTiming));
  begin(), in(0, pinned[0]), run(0, rounds), out(0);
  assert_in_range((int)end(), (int)(0.9 * sum), (int)(1.1 * sum));
  begin(), in(0, pinned[0]);
  succeed(cudaEventRecord(brought, stream[0]));
  succeed(cudaStreamWaitEvent(stream[1], brought, 0));
  run(1, rounds);
  succeed(cudaEventRecord(ran, stream[1]));
  succeed(cudaStreamWaitEvent(stream[2], ran, 0));
  out(2);
  assert_in_range((int)end(), (int)(0.9 * sum), (int)(1.1 * sum));
  begin(), in(0, pinned[0]); /* a wait for the copy holds up one stream, not the other */
  succeed(cudaEventRecord(brought, stream[0]));
  succeed(cudaStreamWaitEvent(stream[1], brought, 0));
  run(1, rounds), out(2);
  assert_in_range((int)end(), (int)(0.9 * (alone_in + alone_run)), (int)(1.1 * (alone_in + alone_run)));
  succeed(cudaEventDestroy(brought));
  succeed(cudaEventDestroy(ran));
}

static void a_direction_is_one_after_the_other(void **state) {
  (void)state;
  begin(); /* halves of one buffer in two streams */
  for (int half = 0; half < 2; half++)
    succeed(cudaMemcpyAsync(device[0] + half * BYTES / 2, pinned[0] + half * BYTES / 2, BYTES / 2,
                            cudaMemcpyHostToDevice, stream[half]));
  assert_in_range((int)end(), (int)(0.95 * alone_in), (int)(1.15 * alone_in));
}

static void pageable_memory_blocks(void **state) {
  (void)state;
  begin(), in(0, pinned[0]);
  expect(cudaStreamQuery(stream[0]), cudaErrorNotReady);
  (void)cudaGetLastError();
  end();
  begin(), in(0, pageable);
  double blocked = host_us() - begun;
  succeed(cudaStreamQuery(stream[0]));
  assert_true(blocked > 0.8 * alone_in);
  run(1, rounds); /* only now: the host was held up */
  assert_true(end() > 0.9 * (blocked + alone_run));
}

static int seen;
static void look(void *unused) {
  (void)unused;
  seen = pinned[1][0];
}
static void host_functions_keep_their_place(void **state) {
  (void)state;
  memset(pinned[0], 5, BYTES);
  succeed(cudaMemsetAsync(device[1], 7, BYTES, stream[2]));
  out(2);
  succeed(cudaLaunchHostFunc(stream[2], look, NULL));
  succeed(cudaMemsetAsync(device[1], 9, BYTES, stream[2]));
  out(2);
  succeed(cudaStreamSynchronize(stream[2]));
  assert_int_equal(seen, 7);
  assert_int_equal(pinned[1][BYTES - 1], 9);
}

/* ---- mappings while work runs ---- */

int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
int cuMemAddressReserve(uint64_t *, size_t, size_t, uint64_t, unsigned long long),
    cuMemCreate(unsigned long long *, size_t, const void *, unsigned long long);
int cuMemMap(uint64_t, size_t, size_t, unsigned long long, unsigned long long), cuMemUnmap(uint64_t, size_t),
    cuMemSetAccess(uint64_t, size_t, const void *, size_t);
int cuMemRelease(unsigned long long), cuMemAddressFree(uint64_t, size_t);

static void mapping_does_not_wait(void **state) {
  (void)state;
  const size_t piece = 2 << 20;
  const uint64_t properties[4] = {1, UINT64_C(1), 0, 0}; /* pinned memory of device 0 */
  const int access[3] = {1, 0, 3};
  uint64_t at;
  unsigned long long memory;
  void *context;
  assert_int_equal(cuInit(0), 0);
  assert_int_equal(cuDevicePrimaryCtxRetain(&context, 0), 0);
  assert_int_equal(cuCtxSetCurrent(context), 0);
  begin(), run(0, rounds);
  assert_int_equal(cuMemAddressReserve(&at, 4 * piece, 0, 0, 0), 0);
  assert_int_equal(cuMemCreate(&memory, piece, properties, 0), 0);
  assert_int_equal(cuMemMap(at, piece, 0, memory, 0), 0);
  assert_int_equal(cuMemSetAccess(at, piece, access, 1), 0);
  assert_int_equal(cuMemUnmap(at, piece), 0);
  assert_int_equal(cuMemMap(at + piece, piece, 0, memory, 0), 0);
  assert_int_equal(cuMemSetAccess(at + piece, piece, access, 1), 0);
  double calls = host_us() - begun; /* the parameters of the machine file, and the launch */
  const machine_spec *m = engine_machine();
  double wanted = m->launch_us + m->reserve_us + m->create_us + 2 * m->map_us + 2 * m->set_access_us + m->unmap_us;
  assert_true(calls > wanted - 0.001 && calls < wanted + 0.001);
  expect(cudaStreamQuery(stream[0]), cudaErrorNotReady);
  (void)cudaGetLastError();
  succeed(cudaMemcpyAsync((void *)(at + piece), pinned[0], piece, cudaMemcpyHostToDevice, stream[1]));
  double both = end();
  assert_in_range((int)both, (int)(0.95 * alone_run), (int)(1.2 * alone_run));
  assert_int_equal(cuMemUnmap(at + piece, piece), 0);
  assert_int_equal(cuMemRelease(memory), 0);
  assert_int_equal(cuMemAddressFree(at, 4 * piece), 0);
}

int main(void) {
  setenv("FARFAULT_MEMORY", "copy", 1);
  setenv("FARFAULT_MACHINE", "v100", 1);
  setup();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(measure_each),
      cmocka_unit_test(independent_work_overlaps),
      cmocka_unit_test(dependent_work_does_not),
      cmocka_unit_test(a_direction_is_one_after_the_other),
      cmocka_unit_test(pageable_memory_blocks),
      cmocka_unit_test(host_functions_keep_their_place),
      cmocka_unit_test(mapping_does_not_wait),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
