/* SPDX-License-Identifier: Apache-2.0 */
/* Dynamic parallelism: kernels that launch kernels, by what CUDA's device runtime asks of the system. `tree` writes
 * down its tag and launches two of itself; the order in which tags are written is the order in which the kernels
 * ran. */
#include "program.h"

#define RUNTIME                                                                                                      \
  ".extern .func (.param .b64 r) __cuda_syscall_cnpv2GetParameterBufferV2(.param .b64 f, .param .align 4 .b8 g[12]," \
  " .param .align 4 .b8 b[12], .param .b32 s);\n"                                                                    \
  ".extern .func (.param .b32 r) __cuda_syscall_cnpv2LaunchDeviceV2(.param .b64 p, .param .b64 s);\n"                \
  ".extern .func (.param .b32 r) __cuda_syscall_cnpv2StreamCreate(.param .b64 p, .param .b32 f);\n"                  \
  ".extern .func (.param .b32 r) __cuda_syscall_cnpv2SetLastError(.param .b32 e);\n"                                 \
  ".extern .func (.param .b32 r) __cuda_syscall_cnpv2GetLastError();\n"                                              \
  ".extern .func (.param .b32 r) __cuda_syscall_cnpv2GetDevice(.param .b64 p);\n"                                    \
  ".extern .func (.param .b32 r) __cuda_syscall_cnpv2GetDeviceCount(.param .b64 p);\n"                               \
  ".extern .func (.param .b32 r) __cuda_syscall_cnpv2DeviceGetAttribute(.param .b64 p, .param .b32 a,"               \
  " .param .b32 d);\n"                                                                                               \
  ".extern .func (.param .b32 r) __cuda_syscall_cnpv2GetLimit(.param .b64 p, .param .b32 l);\n"

/* rd7 = parameter buffer of the kernel at rd6 for `grid` blocks of `block` threads with `shared` bytes */
#define BUFFER(grid, block, shared)                                                             \
  "{ .param .b64 f; st.param.b64 [f], %rd6; .param .align 4 .b8 g[12]; st.param.b32 [g], " grid \
  "; st.param.b32 [g+4], 1;"                                                                    \
  " st.param.b32 [g+8], 1; .param .align 4 .b8 b[12]; st.param.b32 [b], " block                 \
  "; st.param.b32 [b+4], 1; st.param.b32 [b+8], 1;"                                             \
  " .param .b32 s; st.param.b32 [s], " shared                                                   \
  "; .param .b64 r; call.uni (r), __cuda_syscall_cnpv2GetParameterBufferV2, (f, g, b, s);"      \
  " ld.param.b64 %rd7, [r]; }\n"
/* r7 = what the launch of the buffer rd7 into a stream gave */
#define LAUNCH(stream)                                                                                   \
  "{ .param .b64 p; st.param.b64 [p], %rd7; .param .b64 s; st.param.b64 [s], " stream "; .param .b32 r;" \
  " call.uni (r), __cuda_syscall_cnpv2LaunchDeviceV2, (p, s); ld.param.b32 %r7, [r]; }\n"
#define CHILD(digit, stream)                                                                                           \
  "mov.u64 %rd6, tree;\n" BUFFER(                                                                                      \
      "1", "1", "0") "st.u64 [%rd7], %rd1; sub.u32 %r3, %r1, 1; st.u32 [%rd7+8], %r3; mad.lo.u32 %r3, %r2, 10, " digit \
                     "; st.u32 [%rd7+12], %r3;\n"                                                                      \
                     "ld.param.u64 %rd5, [first]; st.u64 [%rd7+16], %rd5;\n" LAUNCH(stream)

/* what the call of the function about `arguments`, the answer's place first, gave goes to out + at; the answer to
 * out + at + 8 */
#define ASK(function, at, set, arguments)                                                                    \
  "{ add.u64 %rd2, %rd1, " at " + 8; .param .b64 p; st.param.b64 [p], %rd2; " set                            \
  " .param .b32 r; call.uni (r), __cuda_syscall_cnpv2" function ", (p" arguments "); ld.param.b32 %r5, [r];" \
  " st.global.u32 [%rd1 + " at "], %r5; }\n"
#define SET(name, value) ".param .b32 " name "; st.param.b32 [" name "], " value ";"

/* clang-format off */
static const char module_text[] = PTX_HEAD RUNTIME
    ".visible .entry tree(.param .u64 out, .param .u32 depth, .param .u32 tag, .param .u64 first)\n{\n"
    ".reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>;\n"
    "ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [depth]; ld.param.u32 %r2, [tag]; ld.param.u64 %rd4, [first];\n"
    "mov.u32 %r4, %ctaid.x; mad.lo.u32 %r2, %r4, 1000, %r2;\n"
    "atom.global.add.u32 %r5, [%rd1], 1; mul.wide.u32 %rd2, %r5, 4; add.u64 %rd2, %rd2, %rd1; st.global.u32 [%rd2+4], %r2;\n"
    "setp.eq.u32 %p1, %r1, 0; @%p1 ret;\n"
    CHILD("1", "%rd4") CHILD("2", "0") "ret;\n}\n"
    /* What is refused: bad[0] an impossible shape, bad[1] no kernel's address, bad[2] no buffer, bad[3] the error that
     * was set */
    ".visible .entry refused(.param .u64 bad)\n{\n.reg .b32 %r<9>; .reg .b64 %rd<9>;\nld.param.u64 %rd1, [bad];\n"
    "mov.u64 %rd6, tree;\n" BUFFER("1", "1025", "0") LAUNCH("0") "st.global.u32 [%rd1], %r7;\n"
    "add.u64 %rd6, %rd6, 8;\n" BUFFER("1", "1", "0") "st.global.u32 [%rd1+4], %rd7;\n"
    "mov.u64 %rd7, %rd1;\n" LAUNCH("0") "st.global.u32 [%rd1+8], %r7;\n"
    "{ .param .b32 e; st.param.b32 [e], 9; .param .b32 r; call.uni (r), __cuda_syscall_cnpv2SetLastError, (e); ld.param.b32 %r6, [r]; }\n"
    "{ .param .b32 r; call.uni (r), __cuda_syscall_cnpv2GetLastError, (); ld.param.b32 %r5, [r]; }\n"
    "mad.lo.u32 %r5, %r6, 100, %r5; st.global.u32 [%rd1+12], %r5;\n"
    "add.u64 %rd2, %rd1, 16;\n"
    "{ .param .b64 p; st.param.b64 [p], %rd2; .param .b32 f; st.param.b32 [f], 1; .param .b32 r;"
    " call.uni (r), __cuda_syscall_cnpv2StreamCreate, (p, f); ld.param.b32 %r5, [r]; }\n"
    "ret;\n}\n"
    /* More dynamic shared memory than there is. */
    ".visible .entry greedy(.param .u64 out)\n{\n.reg .b32 %r<9>; .reg .b64 %rd<9>;\n"
    "mov.u64 %rd6, tree;\n" BUFFER("1", "1", "10000000") LAUNCH("0") "ret;\n}\n"
    /* What a kernel asks about devices. */
    ".visible .entry asks(.param .u64 out)\n{\n.reg .b32 %r<9>; .reg .b64 %rd<9>;\nld.param.u64 %rd1, [out];\n"
    ASK("GetDevice", "0", "", "")
    ASK("GetDeviceCount", "16", "", "")
    ASK("DeviceGetAttribute", "32", SET("a", "16") SET("d", "0"), ", a, d") /* SMs */
    ASK("DeviceGetAttribute", "48", SET("a", "9999") SET("d", "0"), ", a, d")
    ASK("DeviceGetAttribute", "64", SET("a", "16") SET("d", "1"), ", a, d")
    ASK("GetLimit", "80", SET("l", "2"), ", l") /* the heap's bytes */
    ASK("GetLimit", "96", SET("l", "9999"), ", l")
    "ret;\n}\n";
/* clang-format on */

STUB(tree);
STUB(refused);
STUB(greedy);
STUB(asks);

static int set_up(void **state) {
  (void)state;
  const char *one[] = {module_text};
  void **handle = register_ptx(one, 1);
  register_kernel(handle, tree, "tree");
  register_kernel(handle, refused, "refused");
  register_kernel(handle, greedy, "greedy");
  register_kernel(handle, asks, "asks");
  __cudaRegisterFatBinaryEnd(handle);
  return 0;
}

static void check_order(unsigned grid, uint32_t depth, uint64_t first, const uint32_t *order, uint32_t count) {
  uint32_t *out, tags[64] = {0}, tag = 1;
  succeed(cudaMalloc((void **)&out, sizeof tags));
  succeed(cudaMemset(out, 0, sizeof tags));
  void *arguments[] = {&out, &depth, &tag, &first};
  succeed(launch(tree, grid, 1, arguments));
  succeed(cudaMemcpy(tags, out, sizeof tags, cudaMemcpyDeviceToHost));
  assert_int_equal(tags[0], count);
  for (uint32_t n = 0; n < count; n++) assert_int_equal(tags[1 + n], order[n]);
  succeed(cudaFree(out));
}

/* A child's own children run before its siblings; with grids of two blocks, the first block's come first. */
static void children_run_in_order(void **state) {
  (void)state;
  check_order(1, 2, 0, (uint32_t[]){1, 11, 111, 112, 12, 121, 122}, 7);
  check_order(2, 1, 0, (uint32_t[]){1, 1001, 11, 12, 10011, 10012}, 6);
}

static void the_tail_stream_runs_last(void **state) {
  (void)state;
  check_order(1, 2, 3, (uint32_t[]){1, 12, 122, 121, 11, 112, 111}, 7);
  check_order(2, 1, 3, (uint32_t[]){1, 1001, 12, 10012, 11, 10011}, 6);
}

static void impossible_launches_are_refused(void **state) {
  (void)state;
  uint32_t *bad, got[6];
  succeed(cudaMalloc((void **)&bad, sizeof got));
  succeed(cudaMemset(bad, 0xff, sizeof got));
  void *arguments[] = {&bad};
  succeed(launch(refused, 1, 1, arguments));
  succeed(cudaMemcpy(got, bad, sizeof got, cudaMemcpyDeviceToHost));
  assert_int_equal(got[0], 7); /* an invalid configuration */
  assert_int_equal(got[1], 0); /* no buffer */
  assert_int_equal(got[2], 1); /* an invalid value */
  assert_int_equal(got[3], 909);
  assert_true(got[4] > 4); /* not one of the streams that have numbers of their own */
  assert_int_equal(got[5], 0);
  succeed(cudaFree(bad));
}

/* A call that fails leaves the place of its answer as it was. */
static void kernels_ask_about_devices(void **state) {
  (void)state;
  struct {
    uint64_t error, answer;
  } * out, got[7];
  int sms;
  succeed(cudaDeviceSetLimit(cudaLimitMallocHeapSize, (size_t)5 << 30));
  succeed(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  succeed(cudaMalloc((void **)&out, sizeof got));
  succeed(cudaMemset(out, 0, sizeof got));
  void *arguments[] = {&out};
  succeed(launch(asks, 1, 1, arguments));
  succeed(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
  const uint64_t errors[] = {0, 0, 0, 1, 1, 0, 1}, answers[] = {0, 1, (uint64_t)sms, 0, 0, UINT64_C(5) << 30, 0};
  for (size_t n = 0; n < 7; n++) {
    assert_int_equal(got[n].error, errors[n]);
    assert_int_equal(got[n].answer, answers[n]);
  }
  succeed(cudaFree(out));
  succeed(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 8 << 20));
}

/* What only the launch itself can see is a fault of the program, and says which kernel. */
static void a_child_that_cannot_start_is_a_fault(void **state) {
  (void)state;
  int saved = dup(2);
  FILE *messages = tmpfile();
  dup2(fileno(messages), 2);
  uint32_t *out;
  succeed(cudaMalloc((void **)&out, 64));
  void *arguments[] = {&out};
  succeed(launch(greedy, 1, 1, arguments));
  expect(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  dup2(saved, 2);
  close(saved);
  char text[4096] = {0};
  rewind(messages);
  assert_true(fread(text, 1, sizeof text - 1, messages) > 0);
  assert_non_null(strstr(text, "kernel tree, launched by a kernel"));
  assert_non_null(strstr(text, "10000000 bytes of dynamic shared memory"));
  fclose(messages);
  succeed(cudaDeviceReset());
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(children_run_in_order),
      cmocka_unit_test(the_tail_stream_runs_last),
      cmocka_unit_test(impossible_launches_are_refused),
      cmocka_unit_test(kernels_ask_about_devices),
      cmocka_unit_test(a_child_that_cannot_start_is_a_fault),
  };
  return cmocka_run_group_tests(tests, set_up, NULL);
}
