#!/usr/bin/env bash
# What libfarfault-preload.so does in a program, and the driver's private tables. $3: the folder of fixtures; $4: 1: a build with the tables.
source "$(dirname "$0")/common.sh"
fixtures=$3
libraries=$(cd "$(dirname "$farfault")/../lib/farfault" && pwd -P)

# A program that asks NVRTC for machine code gets the PTX: linked with it, and loading it.
run "$fixtures/preload_nvrtc"
expect_out "13 bytes: machine code"
run "$farfault" run --memory none "$fixtures/preload_nvrtc"
expect_status 0
expect_out "25 bytes: the PTX, which is longer"
run env LD_PRELOAD="$libraries/libfarfault-preload.so" "$fixtures/preload_nvrtc"
expect_out "25 bytes: the PTX, which is longer"
cat >loads.c <<'END'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
  void *library = dlopen(argv[1], RTLD_NOW);
  if (!library) return puts(dlerror()), 2;
  int (*size_of)(void *, size_t *) = (int (*)(void *, size_t *))dlsym(library, "nvrtcGetCUBINSize");
  int (*version)(int *) = (int (*)(int *))dlsym(library, argv[2]);
  size_t size = 0;
  int number = 0;
  if (size_of) size_of(&size, &size);
  if (version) version(&number);
  printf("%zu bytes, version %d\n", size, number);
  return 0;
}
END
expect cc loads.c -o loads -ldl
run ./loads "$fixtures/preload/libnvrtc.so" none
expect_out "13 bytes"
run "$farfault" run --memory none ./loads "$fixtures/preload/libnvrtc.so" none
expect_out "25 bytes"
run env LD_LIBRARY_PATH="$fixtures/preload" "$farfault" run --memory none ./loads libnvrtc.so none
expect_out "25 bytes"
# A child that is forked while another thread loads a library loads it, too.
cat >forks.c <<'END'
#define _GNU_SOURCE
#include "unit/forks.h"
#include <stdio.h>
static const char *name;
static void load(void) {
  void *library = dlopen(name, RTLD_NOW);
  if (library) dlclose(library);
}
int main(int argc, char **argv) {
  name = argv[argc - 1];
  load();
  return printf("%d locks\n", forks_with_each_lock(NULL, load)) < 0;
}
END
expect cc -rdynamic -I "$source/tests" forks.c -o forks -ldl -lpthread
run ./forks "$fixtures/preload/libnvrtc.so"
alone=$(cat out)
run "$farfault" run --memory none ./forks "$fixtures/preload/libnvrtc.so"
expect_status 0
expect grep -qE '^[1-9][0-9]* locks$' out
expect test "$(cat out)" != "$alone" # those of the preloaded library are among them

# A library looks for it in its own folders.
echo '#include <dlfcn.h>
void *find(void); void *find(void) { return dlopen("libnvrtc.so", RTLD_NOW); }' >finds.c
echo '#include <dlfcn.h>
#include <stdio.h>
void *find(void);
int main(void) {
  size_t size = 0;
  int (*size_of)(void *, size_t *) = (int (*)(void *, size_t *))dlsym(find(), "nvrtcGetCUBINSize");
  size_of(&size, &size);
  return printf("%zu bytes\n", size) < 0;
}' >found.c
mkdir own
cp "$fixtures/preload/libnvrtc.so" own
expect cc -shared -fPIC finds.c -Wl,-rpath,'$ORIGIN/own' -o libfinds.so
expect cc found.c ./libfinds.so -Wl,-rpath,"$work" -o found
run ./found
expect_out "13 bytes"
run "$farfault" run --memory none ./found
expect_out "25 bytes"
run "$farfault" run --memory none ./loads ./nothing.so none
expect_status 2
expect_out "nothing.so: cannot open"

# A libcuda or libcudart that is loaded by a path is ours, and so is the one that a library is linked with, or
# a library that that one is linked with, whatever their RPATHs say.
mkdir other
echo 'int cudaRuntimeGetVersion(int *version) { return *version = 1, 0; }
int cuDriverGetVersion(int *version) { return *version = 1, 0; }
int cufftGetVersion(int *version) { return *version = 1, 0; }' >other.c
for name in libcudart.so.12 libcudart.so.13 libcuda.so.1 libcufft.so.11; do expect cc -shared -fPIC other.c -Wl,-soname,$name -o other/$name; done
run ./loads "$work/other/libcudart.so.12" cudaRuntimeGetVersion
expect_out "version 1"
run "$farfault" run --memory none ./loads "$work/other/libcudart.so.12" cudaRuntimeGetVersion
expect_out "version 12"
run "$farfault" run --memory none ./loads "$work/other/libcuda.so.1" cuDriverGetVersion
expect_out "version 13"
if [[ -e $libraries/libcufft.so.11 ]]; then
  run "$farfault" run --memory none ./loads "$work/other/libcufft.so.11" cufftGetVersion
  expect_out "version 11"
fi
echo 'int cudaRuntimeGetVersion(int *version); int ask(int *version); int ask(int *version) { return cudaRuntimeGetVersion(version); }' >asking.c
expect cc -shared -fPIC asking.c other/libcudart.so.13 -Wl,--disable-new-dtags,-rpath,"$work/other" -o libasking.so
run ./loads ./libasking.so ask
expect_out "version 1"
run "$farfault" run --memory none ./loads ./libasking.so ask
expect_out "version 13"
echo 'int ask(int *version); int ask_deep(int *version); int ask_deep(int *version) { return ask(version); }' >deep.c
echo 'int ask_deep(int *version); int ask_deeper(int *version); int ask_deeper(int *version) { return ask_deep(version); }' >deeper.c
expect cc -shared -fPIC deep.c -L. -lasking -Wl,--disable-new-dtags,-rpath,'$ORIGIN' -o libdeep.so
expect cc -shared -fPIC deeper.c -L. -ldeep -Wl,--disable-new-dtags,-rpath,'$ORIGIN' -o libdeeper.so
run ./loads ./libdeeper.so ask_deeper
expect_out "version 1"
run "$farfault" run --memory none ./loads ./libdeeper.so ask_deeper
expect_out "version 13"

# Triton compiles a module with -lcuda while the program runs, in a folder where it has found libcuda.so.1.
echo 'int cuDriverGetVersion(int *version); int ask_driver(int *version); int ask_driver(int *version) { return cuDriverGetVersion(version); }' >driver.c
expect cc -shared -fPIC driver.c -L"$libraries" -lcuda -o libdriver.so
run "$farfault" run --memory none ./loads ./libdriver.so ask_driver
expect_out "version 13"

# What cuDNN chooses its engines by is above all machine code of the library with them (9.0 here), next to it, and 8.9 at the most without that library;
# a device before 8.0, and another library, are told the machine's.
cat >capability.c <<'END'
int cuInit(unsigned flags);
int cuDeviceGetAttribute(int *value, int attribute, int device);
int capability(void);
int capability(void) {
  int major = 0, minor = 0;
  cuInit(0);
  cuDeviceGetAttribute(&major, 75, 0);
  cuDeviceGetAttribute(&minor, 76, 0);
  return 10 * major + minor;
}
END
echo '#include <stdio.h>
int capability(void);
int main(void) { return printf("capability %d\n", capability()) < 0; }' >asks_capability.c
for name in libcudnn_some.so libother.so; do
  expect cc -shared -fPIC capability.c -Wl,-soname,$name -o $name
  expect cc asks_capability.c ./$name -Wl,-rpath,"$work" -Wl,--allow-shlib-undefined -o "asks_$name"
done
told() { run env LD_PRELOAD="$libraries/libcuda.so.1" "$farfault" run --memory none --machine "$1" "./asks_$2" && expect_out "capability $3"; }
told h200 libcudnn_some.so 89
told v100 libcudnn_some.so 70
told h200 libother.so 90
if [[ -e $fixtures/both.fatbin ]]; then
  echo "__asm__(\".section .nv_fatbin, \\\"a\\\"\\n.incbin \\\"$fixtures/both.fatbin\\\"\\n.previous\");" >engines.c
  expect cc -shared -fPIC engines.c -o libcudnn_engines_precompiled.so
  told h200 libcudnn_some.so 100
  expect_err "libcudnn_some.so: is told compute capability 10.0"
  told v100 libcudnn_some.so 70
fi

# A program with the address sanitizer, which refuses to run behind a preloaded library.
echo 'int main(void) { return 0; }' >checked.c
if cc -fsanitize=address checked.c -o checked 2>/dev/null; then
  run "$farfault" run --memory none ./checked
  expect_status 0
fi

# A library that asks for the driver's private table, as a runtime inside does that could not be replaced: it gets it, unless they are off.
cat >asks.c <<'END'
int cuGetExportTable(const void **table, const void *id);
int ask(void);
int ask(void) {
  static const unsigned char id[16] = {0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9};
  const void *table;
  return cuGetExportTable(&table, id) ? 3 : 0;
}
END
echo 'int ask(void); int main(void) { return ask(); }' >main.c
cc -shared -fPIC asks.c -Wl,-soname,libmine.so -o libmine.so && cc main.c ./libmine.so -Wl,-rpath,"$work" -Wl,--allow-shlib-undefined -o asks
if [[ $4 = 1 ]]; then
  run env LD_PRELOAD="$libraries/libcuda.so.1" "$farfault" run --memory none ./asks
  expect_status 0
  run env LD_PRELOAD="$libraries/libcuda.so.1" "$farfault" run --memory none --private-runtimes trace ./asks
  expect_status 0
  expect_err "cuGetExportTable: 6bd5fb6c5bf4e74a8987d93912fd9df9: RUNTIME"
fi
run env LD_PRELOAD="$libraries/libcuda.so.1" "$farfault" run --memory none --private-runtimes=off ./asks
expect_status 3
expect_err "libmine.so has a CUDA runtime inside that needs private tables of the driver"

# A program without CUDA gets none of our libraries but this one.
run "$farfault" run --memory none cat /proc/self/maps
expect_status 0
expect_out "/libfarfault-preload.so"
expect test "$(grep -c 'libfarfault-gpu\|libcudart' out)" = 0

# A program that looks for a driver's files finds them, one for each device, and one that has PTX assembled gets the PTX.
cat >files.c <<'END'
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int argc, char **argv) {
  struct stat info;
  struct statx more;
  char text[80] = "";
  const char *path = argv[1];
  errno = 0;
  int found = !access(path, R_OK), error = errno;
  int same = found == !stat(path, &info) && found == !lstat(path, &info) && found == !faccessat(AT_FDCWD, path, F_OK, 0) &&
             found == !fstatat(AT_FDCWD, path, &info, 0) && found == !statx(AT_FDCWD, path, 0, STATX_TYPE, &more);
  int file = open(path, O_RDONLY), other = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  same = same && found == (file >= 0) && found == (other >= 0);
  FILE *stream = fopen(path, "r");
  if (stream && !fgets(text, sizeof text, stream)) text[0] = '\0';
  printf("%s, %s, %s: %s\n", found ? "there" : "not there", same ? "by all calls" : "BY SOME CALLS", error ? strerror(error) : "no error", text);
  file = open("made", O_CREAT | O_WRONLY, 0640);
  return file < 0 || fstat(file, &info) || (info.st_mode & 0777) != 0640;
}
END
expect cc files.c -o files
umask 022
if [[ ! -e /dev/nvidia0 ]]; then
  run ./files /dev/nvidia0
  expect_out "not there, by all calls, No such file or directory"
  for path in /dev/nvidia0 /dev/nvidiactl /dev/nvidia-uvm; do
    run "$farfault" run --memory none ./files $path
    expect_status 0
    expect_out "there, by all calls, no error"
  done
  for path in /dev/nvidia1 /dev/nvidia00 /dev/nvidia /dev/nvidia0x /proc/driver/nvidia/versions; do
    run "$farfault" run --memory none ./files $path
    expect_status 0
    expect_out "not there, by all calls, No such file or directory"
  done
  run "$farfault" run --memory none --devices 2 ./files /dev/nvidia1
  expect_out "there, by all calls, no error"
  run "$farfault" run --memory none ./files /proc/driver/nvidia/version
  expect_out "there, by all calls, no error: NVRM version: "
fi

# The PCI folders of its GPUs, where the system has none: by the bus that the runtime tells, and no other.
cat >folder.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv) {
  char place[4096] = "", *real = realpath(argv[1], NULL), *same = realpath(argv[1], place);
  return printf("%s, %s\n", real ? real : "none", !real == !same && (!real || !strcmp(real, place)) ? "twice" : "NOT TWICE") < 0;
}
END
expect cc folder.c -o folder
if [[ ! -e /sys/bus/pci/devices/0000:02:00.0 && ! -e /sys/bus/pci/devices/0000:03:00.0 ]]; then
  for path in /sys/bus/pci/devices/0000:02:00.0 /sys/class/pci_bus/0000:02/../../0000:02:00.0 /sys/devices/pci0000:00/0000:02:00.0; do
    run ./folder $path
    expect_out "none, twice"
    run "$farfault" run --memory none --devices 2 ./folder $path
    expect_out "/sys/devices/pci0000:00/0000:02:00.0, twice"
    run "$farfault" run --memory none --devices 2 ./files $path/class
    expect_out "there, by all calls, no error: 0x030200"
    run "$farfault" run --memory none --devices 2 ./files $path/nothing
    expect_out "not there, by all calls, No such file or directory"
  done
  for path in /sys/bus/pci/devices/0000:03:00.0 /sys/bus/pci/devices/0000:02:00.1 /sys/bus/pci/devices/0000:02:00.00 /sys/bus/pci/devices/0000:00:00.0x; do
    run "$farfault" run --memory none --devices 2 ./folder $path
    expect_out "none, twice"
    run "$farfault" run --memory none --devices 2 ./files $path/class
    expect_out "not there, by all calls, No such file or directory"
  done
  # Names that only look like a device's, and files that are not of the folder.
  for path in 0000:+2:00.0/class 0000:-2:00.0/class "0000: 2:00.0/class" 0000:0x:00.0/class 0000:2:00.0/class 0000:002:00.0/class \
    0000:02:00.0/../libcuda.so.1 0000:02:00.0/class/ 0000:02:00.0/classes 0000:02:00.0/..; do
    for folder in /sys/bus/pci/devices /sys/devices/pci0000:00; do
      run "$farfault" run --memory none --devices 2 ./files "$folder/$path"
      expect_out "not there, by all calls, No such file or directory"
      run "$farfault" run --memory none --devices 2 ./folder "$folder/$path"
      expect_out "none, twice"
    done
  done
  # A device is found below its own bus only.
  for bus in 0000:01 anything 0000:2 "" 0000:02/.. 0000:02x 0000:0x; do
    path="/sys/class/pci_bus/$bus/../../0000:02:00.0"
    run "$farfault" run --memory none --devices 2 ./folder "$path"
    expect_out "none, twice"
    run "$farfault" run --memory none --devices 2 ./files "$path/class"
    expect_out "not there, by all calls, No such file or directory"
  done
fi
run "$farfault" run --memory none ./folder "$work/./folder.c"
expect_out "$work/folder.c, twice"
run "$farfault" run --memory none ./files "$work/files.c"
expect_out "there, by all calls, no error: #define _GNU_SOURCE"

cat >assembles.c <<'END'
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) {
  char *arguments[] = {"ptxas", "-arch=sm_90a", "a.ptx", "-o", "a.cubin", NULL}, *none[] = {NULL};
  char path[4096];
  int status = 1;
  pid_t child = 0;
  snprintf(path, sizeof path, "%s/ptxas", argv[2]);
  if (!strcmp(argv[1], "spawn")) {
    if (posix_spawn(&child, path, NULL, NULL, arguments, none)) return 2;
  } else if (!(child = strcmp(argv[1], "vfork") ? fork() : vfork())) {
    execv(path, arguments);
    _exit(3);
  }
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}
END
expect cc -w assembles.c -o assembles
printf '#!/bin/sh\necho NVIDIA >a.cubin\n' >other/ptxas
chmod +x other/ptxas
printf '.version 8.0' >a.ptx
printf '.version 8.0\0' >with_nul
for way in fork vfork spawn; do
  rm -f a.cubin
  run ./assembles $way other
  expect_status 0
  expect test "$(<a.cubin)" = NVIDIA
  run "$farfault" run --memory none ./assembles $way other
  expect_status 0
  expect cmp a.cubin with_nul
done
run "$farfault" run --memory none sh -c "other/ptxas -v" # as nvcc calls it
expect test "$(<a.cubin)" = NVIDIA

# A program that compiles by nvcc while it runs will load the cubin: there nvcc gets the stand-in, too, and a build's nvcc does not.
cat >nvcc.c <<'END'
#include <stdlib.h>
int main(void) { return system("other/ptxas -arch=sm_90a a.ptx -o a.cubin") != 0; }
END
cat >starts.c <<'END'
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) {
  int status = 1;
  if (!fork()) {
    execv(argv[1], argv + 1);
    _exit(3);
  }
  wait(&status);
  return WEXITSTATUS(status);
}
END
mkdir tools
expect cc -w nvcc.c -o tools/nvcc
expect cc -w starts.c -o starts
for option in -cubin --cubin; do
  rm -f a.cubin
  run "$farfault" run --memory none ./starts tools/nvcc -O3 $option a.cu
  expect_status 0
  expect cmp a.cubin with_nul
done
run "$farfault" run --memory none ./starts tools/nvcc -O3 a.cu
expect_status 0
expect test "$(<a.cubin)" = NVIDIA
rm -f a.cubin
run "$farfault" run --memory none sh -c "tools/nvcc -cubin a.cu; exit"
expect_status 0
expect test "$(<a.cubin)" = NVIDIA

# An nvcc that makes anything else than a cubin is told to keep the PTX beside the machine code, below a build, too: what a build that a
# program starts has compiled is loaded into the program.
cat >told.c <<'END'
#include <stdio.h>
#include <stdlib.h>
int main(void) { return puts(getenv("NVCC_APPEND_FLAGS") ? getenv("NVCC_APPEND_FLAGS") : "nothing") < 0; }
END
mkdir told
expect cc -w told.c -o told/nvcc
told() { # told WHAT ARGUMENT...
  local what=$1
  shift
  run "$farfault" run --memory none sh -c 'told/nvcc "$@"; exit' sh "$@"
  expect_status 0
  expect test "$(<out)" = "$what"
}
told " -gencode arch=compute_90a,code=compute_90a" -c -gencode=arch=compute_90a,code=sm_90a a.cu
told " -gencode arch=compute_80,code=compute_80 -gencode arch=compute_90,code=compute_90" -c -gencode arch=compute_80,code=sm_80 --generate-code=arch=compute_90,code=sm_90 a.cu
told " -gencode arch=compute_90,code=compute_90" -dc -gencode "arch=compute_90,code=[sm_90,lto_90]" --generate-code "arch=compute_90,code='sm_90'" a.cu
told " -gencode arch=compute_86,code=compute_86" -fatbin -code=sm_86,sm_89 --gpu-architecture compute_86 a.cu
told " -gencode arch=compute_90,code=compute_90 -gencode arch=compute_90a,code=compute_90a" -gencode arch=compute_90,code=sm_90 -gencode arch=compute_90a,code=sm_90a
told " -gencode arch=compute_90a,code=compute_90a -gencode arch=compute_90,code=compute_90" -gencode arch=compute_90a,code=sm_90a -gencode arch=compute_90,code=sm_90
for already in "-gencode=arch=compute_90,code=[sm_90,compute_90]" -arch=sm_90 "-arch=compute_90 -code=sm_90,compute_90" "-code=sm_90" "-gencode" "-gencode=arch=compute_90" \
  "-cubin -gencode=arch=compute_90,code=sm_90" "-gencode=arch=compute_90,code=sm_90 --cubin" "-dc -gencode=arch=compute_90,code=lto_90" "--ptx -arch=compute_90 -code=sm_90" "-dlto -gencode=arch=compute_90,code=sm_90" \
  "-gencode=arch=compute_90,code=sm_90 -optix-ir" "--optix-ir -gencode arch=compute_90,code=sm_90" \
  "-gencode arch=compute_90,code=sm_90 -gencode arch=compute_90,code=compute_90" "--generate-code=arch=compute_90,code=[sm_90,compute_90] -gencode=arch=compute_90,code=sm_90" \
  "-arch=compute_90 -code=sm_90 -gencode=arch=compute_90,code=compute_90" "-arch compute_90 -code compute_90 --gpu-code=sm_90" ""; do
  told nothing $already
done
NVCC_APPEND_FLAGS=-O1 told "-O1 -gencode arch=compute_75,code=compute_75" -gencode=arch=compute_75,code=sm_75
NVCC_APPEND_FLAGS=-O1 told -O1 -arch=sm_75
told " -gencode arch=compute_90,code=compute_90" -gencode=arch=compute_90,code=sm_90 -gencode=arch=compute_90a,code=compute_90a
told " -gencode arch=compute_90a,code=compute_90a" -gencode=arch=compute_90,code=compute_90 -gencode=arch=compute_90a,code=sm_90a
# What the environment has already counts, as of an nvcc that starts an nvcc.
cat >twice.c <<'END'
#include <stdlib.h>
int main(void) { return system("told/nvcc -c -gencode=arch=compute_90,code=sm_90 -gencode=arch=compute_80,code=sm_80 a.cu"); }
END
mkdir twice
expect cc -w twice.c -o twice/nvcc
run "$farfault" run --memory none twice/nvcc -c -gencode=arch=compute_90,code=sm_90 a.cu
expect_status 0
expect test "$(<out)" = " -gencode arch=compute_90,code=compute_90 -gencode arch=compute_80,code=compute_80"
NVCC_APPEND_FLAGS="-O1  --generate-code arch=compute_90,code=compute_90" told "-O1  --generate-code arch=compute_90,code=compute_90" -gencode=arch=compute_90,code=sm_90
NVCC_APPEND_FLAGS="-cubin" told "-cubin" -gencode=arch=compute_90,code=sm_90
NVCC_PREPEND_FLAGS="-gencode=arch=compute_90,code=compute_90" told nothing -gencode=arch=compute_90,code=sm_90
NVCC_PREPEND_FLAGS="-gencode=arch=compute_75,code=sm_75" told " -gencode arch=compute_75,code=compute_75"

# JAX learns the newest version of PTX from what is said of one that there is not.
run "$libraries/ptxas" --input-as-string ".version 99.99 .target sm_90a" -o newest.cubin
expect_status 255
expect_err "ptxas fatal   : Unsupported .version 99.99; current version is '9.0'"
run "$libraries/ptxas" --input-as-string ".version 8.0" -o given.cubin
expect_status 0
expect cmp given.cubin with_nul

# The version that the stand-in says is Triton's, where Triton asks.
cat >version.c <<'END'
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) {
  int status = 1;
  if (argc > 1 && !dlopen(argv[1], RTLD_NOW)) return 2;
  if (!fork()) {
    execl(getenv("TRITON_PTXAS_PATH"), "ptxas", "--version", (char *)0);
    _exit(3);
  }
  wait(&status);
  return WEXITSTATUS(status);
}
END
expect cc -w version.c -o version
mkdir -p triton/_C triton/backends/nvidia/bin
echo 'int nothing;' >nothing.c
expect cc -shared -fPIC nothing.c -o triton/_C/libtriton.so
printf '#!/bin/sh\necho "Cuda compilation tools, release 12.4, V12.4.99"\n' >triton/backends/nvidia/bin/ptxas
chmod +x triton/backends/nvidia/bin/ptxas
run "$farfault" run --memory none ./version
expect_out "release 13.0"
run "$farfault" run --memory none ./version ./triton/_C/libtriton.so
expect_out "release 12.4"

# A program that is linked with nvJitLink gets the stand-in, and that finds NVIDIA's library for link-time code behind it.
mkdir jit jit/empty
cat >jit/real.c <<'END'
#include <stdio.h>
#include <string.h>
static char text[64] = ".version 7.0";
int nvJitLinkCreate(void **link, unsigned count, const char **options) {
  *link = text;
  return strcmp(options[count - 1], "-ptx") != 0 || strcmp(options[count - 2], "-lto") != 0;
}
int nvJitLinkDestroy(void **link) { return 0; }
int nvJitLinkAddData(void *link, int type, const void *data, size_t size, const char *name) {
  return snprintf(text + strlen(text), 32, " of %.*s", (int)size, (const char *)data) < 0;
}
int nvJitLinkComplete(void *link) { return 0; }
int nvJitLinkGetLinkedPtxSize(void *link, size_t *size) { *size = strlen(text) + 1; return 0; }
int nvJitLinkGetLinkedPtx(void *link, char *to) { strcpy(to, text); return 0; }
int nvJitLinkGetErrorLogSize(void *link, size_t *size) { *size = 1; return 0; }
int nvJitLinkGetErrorLog(void *link, char *to) { *to = 0; return 0; }
END
cat >jit/links.c <<'END'
#include <stdio.h>
int nvJitLinkCreate(void **, unsigned, const char **), nvJitLinkAddData(void *, int, const void *, size_t, const char *),
    nvJitLinkComplete(void *), nvJitLinkGetLinkedPtx(void *, char *), nvJitLinkDestroy(void **);
int main(void) {
  const char *options[] = {"-lto", "-arch=sm_90"};
  char ptx[128] = "";
  void *link;
  if (nvJitLinkCreate(&link, 2, options) || nvJitLinkAddData(link, 3, "code", 4, "a")) return 1;
  int result = nvJitLinkComplete(link);
  if (!result) result = nvJitLinkGetLinkedPtx(link, ptx);
  printf("result %d, PTX: %s\n", result, ptx);
  return nvJitLinkDestroy(&link);
}
END
echo 'libnvJitLink.so.13 { global: *; };' >jit/map
expect cc -w -shared -fPIC -Wl,-soname,libnvJitLink.so.13 -Wl,--version-script=jit/map jit/real.c -o jit/libnvJitLink.so.13
expect cc -w jit/links.c jit/libnvJitLink.so.13 -o jit/links
run env LD_LIBRARY_PATH="$PWD/jit/empty:$PWD/jit" "$farfault" run --memory none jit/links
expect_status 0
expect_out "result 0, PTX: .version 7.0 of code"
expect test "$(grep -c "no version information" err)" -eq 0
run env LD_LIBRARY_PATH="$PWD/jit/empty" "$farfault" run --memory none jit/links
expect_out "result 5, PTX: "

# pip adds nothing to a folder `nvidia` that exists, and records the package all the same.
mkdir -p wheels/nvidia/cu13/lib wheels/nvidia_cublas-13.1.dist-info wheels/nvidia_cusparse-12.9.dist-info
echo 'nvidia/cu13/lib/libcublas.so.13,sha256=0,1' >wheels/nvidia_cublas-13.1.dist-info/RECORD
echo 'nvidia/cu13/lib/libcusparse.so.12,sha256=0,1' >wheels/nvidia_cusparse-12.9.dist-info/RECORD
touch wheels/nvidia/cu13/lib/libcublas.so.13
run "$farfault" run --memory none --cuda-libraries wheels jit/links
expect_err "wheels: pip has recorded nvidia_cusparse, but its files are not there"
expect test "$(grep -c 'pip has recorded' err)" -eq 1
finish
