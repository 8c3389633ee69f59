/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that two processes have: of the virtual GPU by a file descriptor, and of the host, registered in both. In each
 * process a kernel waits for the other's. The parent never starts an engine, so that each child has one of its own. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver/driver_api/libcuda.h"

typedef struct properties {
  int type, handle_types;
  CUmemLocation location;
  void *security;
  unsigned char flags[8];
} properties;
typedef struct access_to {
  CUmemLocation location;
  int flags;
} access_to;

CUresult cuInit(unsigned), cuDevicePrimaryCtxRetain(CUcontext *, CUdevice), cuCtxSetCurrent(CUcontext),
    cuCtxSynchronize(void), cuDeviceGetAttribute(int *, int, CUdevice);
CUresult cuMemGetInfo_v2(size_t *, size_t *), cuMemsetD8_v2(CUdeviceptr, unsigned char, size_t);
CUresult cuModuleLoadData(CUmodule *, const void *), cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                        void **, void **);
CUresult cuMemAddressReserve(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long),
    cuMemAddressFree(CUdeviceptr, size_t);
CUresult cuMemCreate(unsigned long long *, size_t, const properties *, unsigned long long),
    cuMemRelease(unsigned long long), cuMemMap(CUdeviceptr, size_t, size_t, unsigned long long, unsigned long long),
    cuMemUnmap(CUdeviceptr, size_t), cuMemSetAccess(CUdeviceptr, size_t, const access_to *, size_t),
    cuMemGetAllocationPropertiesFromHandle(properties *, unsigned long long);
CUresult cuMemExportToShareableHandle(void *, unsigned long long, int, unsigned long long),
    cuMemImportFromShareableHandle(unsigned long long *, void *, int);
CUresult cuMemHostRegister_v2(void *, size_t, unsigned), cuMemHostUnregister(void *),
    cuMemHostGetDevicePointer_v2(CUdeviceptr *, void *, unsigned);

typedef struct multicast_object {
  unsigned devices;
  size_t bytes;
  unsigned long long handle_types, flags;
} multicast_object;
CUresult cuMulticastCreate(unsigned long long *, const multicast_object *);

#define PIECE ((size_t)2 << 20)
enum { DESCRIPTOR = 1, FABRIC = 8, ROUNDS = 5 };
static const properties sharable = {.type = 1, .handle_types = DESCRIPTOR, .location = {cudaMemLocationTypeDevice, 0}};

/* In a child: the line that fails is its exit status. */
#define CHECK(condition)                         \
  do {                                           \
    if (!(condition)) return __LINE__ % 200 + 1; \
  } while (0)

/* As in devices_cases.h: *own counts to 5, each time until *other has come as far. */
static const char text[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry meet(.param .u64 own, .param .u64 other)\n{\n.reg .b32 %r<4>;\n.reg .b64 %rd<3>;\n.reg .pred %p;\n"
    "ld.param.u64 %rd1, [own];\nld.param.u64 %rd2, [other];\nmov.u32 %r1, 0;\n"
    "again:\nadd.u32 %r1, %r1, 1;\nst.volatile.global.u32 [%rd1], %r1;\n"
    "wait:\nld.volatile.global.u32 %r2, [%rd2];\nsetp.lt.u32 %p, %r2, %r1;\n@%p bra wait;\n"
    "setp.lt.u32 %p, %r1, 5;\n@%p bra again;\nret;\n}\n";

static int start(void) {
  CUcontext context;
  CHECK(!cuInit(0) && !cuDevicePrimaryCtxRetain(&context, 0) && !cuCtxSetCurrent(context));
  return 0;
}

static int meet(CUdeviceptr own, CUdeviceptr other) {
  CUmodule module;
  CUfunction function;
  CHECK(!cuModuleLoadData(&module, text) && !cuModuleGetFunction(&function, module, "meet"));
  CHECK(!cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&own, &other}, NULL));
  CHECK(!cuCtxSynchronize());
  return 0;
}

static int map(CUdeviceptr *at, unsigned long long handle) {
  CHECK(!cuMemAddressReserve(at, PIECE, 0, 0, 0) && !cuMemMap(*at, PIECE, 0, handle, 0));
  CHECK(!cuMemSetAccess(*at, PIECE, &(access_to){sharable.location, 3}, 1));
  return 0;
}

/* Over a socket, as programs hand each other file descriptors. */
static int send_descriptor(int socket, int descriptor) {
  char data = 'd', control[CMSG_SPACE(sizeof(int))] = {0};
  struct iovec part = {&data, 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  struct cmsghdr *head = CMSG_FIRSTHDR(&message);
  *head = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
  memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
  return sendmsg(socket, &message, 0) == 1 ? 0 : 1;
}

static int receive_descriptor(int socket, int *descriptor) {
  char data, control[CMSG_SPACE(sizeof(int))];
  struct iovec part = {&data, 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  if (recvmsg(socket, &message, 0) != 1 || !CMSG_FIRSTHDR(&message)) return 1;
  memcpy(descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof *descriptor);
  return 0;
}

static int sockets[2];
static volatile uint32_t *shared; /* of the host, in both processes */

static int exporter(void) {
  unsigned long long handle;
  CUdeviceptr at;
  int descriptor, supported = 0;
  CHECK(!start());
  CHECK(!cuDeviceGetAttribute(&supported, 103, 0) && supported); /* handles that are file descriptors */
  CHECK(!cuMemCreate(&handle, PIECE, &sharable, 0) && !map(&at, handle));
  CHECK(!cuMemsetD8_v2(at, 0, PIECE));
  CHECK(cuMemExportToShareableHandle(&descriptor, handle, FABRIC, 0) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuMemExportToShareableHandle(NULL, handle, DESCRIPTOR, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(!cuMemExportToShareableHandle(&descriptor, handle, DESCRIPTOR, 0));
  CHECK(!send_descriptor(sockets[0], descriptor) && !close(descriptor));
  CHECK(!meet(at, at + 128));
  CHECK(!cuMemUnmap(at, PIECE) && !cuMemRelease(handle) && !cuMemAddressFree(at, PIECE));
  return 0;
}

static int importer(void) {
  unsigned long long handle;
  CUdeviceptr at;
  int descriptor;
  properties found;
  size_t before, after, total;
  CHECK(!start() && !receive_descriptor(sockets[1], &descriptor) && !cuMemGetInfo_v2(&before, &total));
  CHECK(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)descriptor, FABRIC) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuMemImportFromShareableHandle(NULL, (void *)(intptr_t)descriptor, DESCRIPTOR) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)sockets[1], DESCRIPTOR) == CUDA_ERROR_INVALID_VALUE);
  CHECK(!cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)descriptor, DESCRIPTOR) && !close(descriptor));
  CHECK(!cuMemGetAllocationPropertiesFromHandle(&found, handle) && !memcmp(&found, &sharable, sizeof found));
  CHECK(!cuMemGetInfo_v2(&after, &total) && after == before); /* the other process has paid for it */
  CHECK(!map(&at, handle) && !meet(at + 128, at));
  CHECK(!cuMemUnmap(at, PIECE) && !cuMemRelease(handle) && !cuMemAddressFree(at, PIECE));
  return 0;
}

/* Of mine and the other's words, which stand in different lines. */
static int meet_in_host_memory(int me) {
  CUdeviceptr at;
  CHECK(!start() && !cuMemHostRegister_v2((void *)(uintptr_t)shared, 4096, 2));
  CHECK(!cuMemHostGetDevicePointer_v2(&at, (void *)(uintptr_t)shared, 0));
  CHECK(!meet(at + 128 * (CUdeviceptr)me, at + 128 * (CUdeviceptr)!me));
  CHECK(!cuMemHostUnregister((void *)(uintptr_t)shared));
  return 0;
}
static int first_registers(void) { return meet_in_host_memory(0); }
static int second_registers(void) { return meet_in_host_memory(1); }

/* Both end with 0. A kernel that waits for ever would not: the children are killed after a while. */
static void run_both(int (*first)(void), int (*second)(void)) {
  int (*bodies[2])(void) = {first, second};
  pid_t children[2];
  fflush(NULL);
  for (int n = 0; n < 2; n++) {
    children[n] = fork();
    assert_true(children[n] >= 0);
    if (children[n]) continue;
    alarm(120);
    exit(bodies[n]());
  }
  for (int n = 0; n < 2; n++) {
    int status;
    assert_int_equal(waitpid(children[n], &status, 0), children[n]);
    assert_int_equal(status, 0);
  }
}

static void gpu_memory_of_two_processes(void **state) {
  (void)state;
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
  run_both(exporter, importer);
}

static void host_memory_of_two_processes(void **state) {
  (void)state;
  shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(shared != MAP_FAILED);
  run_both(first_registers, second_registers);
  assert_int_equal(shared[0], ROUNDS);
  assert_int_equal(shared[32], ROUNDS);
}

static int not_sharable(void) {
  unsigned long long handle;
  properties own = sharable;
  int descriptor;
  own.handle_types = 0;
  CHECK(!start() && !cuMemCreate(&handle, PIECE, &own, 0));
  CHECK(cuMemExportToShareableHandle(&descriptor, handle, DESCRIPTOR, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(!cuMemRelease(handle));
  return 0;
}
static int nothing(void) { return 0; }
static void only_what_was_made_for_it(void **state) {
  (void)state;
  run_both(not_sharable, nothing);
}

/* Multicast objects stay in their process: another one that is given the handle is told so. */
static int start_with_a_switch(void) {
  setenv("FARFAULT_MACHINE", "dgx-h100", 1);
  setenv("FARFAULT_DEVICES", "2", 1);
  return start();
}

static int multicast_exporter(void) {
  unsigned long long object;
  int descriptor;
  char done;
  CHECK(!start_with_a_switch());
  CHECK(!cuMulticastCreate(&object, &(multicast_object){2, PIECE, DESCRIPTOR, 0}));
  CHECK(cuMemExportToShareableHandle(&descriptor, object, FABRIC, 0) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(!cuMemExportToShareableHandle(&descriptor, object, DESCRIPTOR, 0));
  CHECK(!send_descriptor(sockets[0], descriptor) && read(sockets[0], &done, 1) == 1);
  CHECK(!cuMemRelease(object) && !close(descriptor));
  return 0;
}

static int multicast_importer(void) {
  unsigned long long object = 77;
  int descriptor;
  CHECK(!start_with_a_switch() && !receive_descriptor(sockets[1], &descriptor));
  CHECK(cuMemImportFromShareableHandle(&object, (void *)(intptr_t)descriptor, FABRIC) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuMemImportFromShareableHandle(&object, (void *)(intptr_t)descriptor, DESCRIPTOR) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(object == 77 && write(sockets[1], "d", 1) == 1);
  return 0;
}

static void multicast_of_another_process_is_refused(void **state) {
  (void)state;
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
  run_both(multicast_exporter, multicast_importer);
}

int main(void) {
  setenv("FARFAULT_THREADS", "1", 1);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gpu_memory_of_two_processes), cmocka_unit_test(host_memory_of_two_processes),
      cmocka_unit_test(only_what_was_made_for_it), cmocka_unit_test(multicast_of_another_process_is_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
