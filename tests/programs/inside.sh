#!/usr/bin/env bash
# Programs into which a CUDA runtime is linked run on the virtual GPU, whose runtime takes its place. $3: the folder of fixtures.
source "$(dirname "$0")/common.sh"
fixtures=$3
libraries=$(cd "$(dirname "$farfault")/../lib/farfault" && pwd -P)

# Without us, what is inside is called.
run "$fixtures/inside_13"
expect_status 1
expect_err "the dud's cudaMalloc"

# As a program of CUDA 11, 12 or 13; inside_12 has an RPATH.
for version in 11 12 13; do
  run "$farfault" run --memory copy,demand --json "$version.json" "$fixtures/inside_$version"
  expect_status 0
  expect_out "version $version"
  expect_out "0 wrong"
  expect test "$(grep -c dud err)" = 0
done
expect grep -q '"fill"' 13.json

# Without farfault run: with the library that does it, and nothing else.
run env LD_PRELOAD="$libraries/libfarfault-inside.so" "$fixtures/inside_13"
expect_status 0
expect_out "0 wrong"

# In a library that the program is linked with, one that it loads, and below a script.
run "$farfault" run --memory none "$fixtures/inside_linked"
expect_status 0
expect_out "0 wrong"
run "$farfault" run --memory none "$fixtures/inside_loaded" "$fixtures/inside/libinside_library.so"
expect_status 0
expect_out "0 wrong"
run env LD_LIBRARY_PATH="$fixtures/inside" "$farfault" run --memory none "$fixtures/inside_loaded" libinside_library.so
expect_status 0
expect_out "0 wrong"
run "$farfault" run --memory none "$fixtures/inside_loaded" ./nothing.so
expect_status 2
expect_err "nothing.so: cannot open"
cp "$fixtures/inside_13" inside
printf '#!/bin/sh\nexec ./inside\n' >script
chmod +x script
run "$farfault" run --memory none ./script
expect_status 0
expect_out "0 wrong"

# Who asks NVRTC for machine code gets the PTX.
run "$fixtures/inside_nvrtc"
expect_out "13 bytes: machine code"
run "$farfault" run --memory none "$fixtures/inside_nvrtc"
expect_status 0
expect_out "25 bytes: the PTX, which is longer"

# A program with the address sanitizer, which refuses to run behind a preloaded library.
echo 'int main(void) { return 0; }' >checked.c
if cc -fsanitize=address checked.c -o checked 2>/dev/null; then
  run "$farfault" run --memory none ./checked
  expect_status 0
fi

# Stripped: nothing is replaced. A program with nothing inside gets none of our libraries but this one.
if command -v strip >/dev/null; then
  strip inside
  run env LD_PRELOAD="$libraries/libfarfault-inside.so" ./inside
  expect_status 1
  expect_err "the dud's cudaMalloc"
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
run env LD_PRELOAD="$libraries/libcuda.so.1" "$farfault" run --memory none ./asks
expect_status 0
run env LD_PRELOAD="$libraries/libcuda.so.1" "$farfault" run --memory none --private-runtimes trace ./asks
expect_status 0
expect_err "cuGetExportTable: 6bd5fb6c5bf4e74a8987d93912fd9df9: RUNTIME"
run env LD_PRELOAD="$libraries/libcuda.so.1" "$farfault" run --memory none --private-runtimes=off ./asks
expect_status 3
expect_err "libmine.so has a CUDA runtime inside that needs private tables of the driver"

run "$farfault" run --memory none cat /proc/self/maps
expect_status 0
expect_out "/libfarfault-inside.so"
expect test "$(grep -c 'libfarfault-gpu\|libcudart' out)" = 0
finish
