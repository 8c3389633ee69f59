#!/usr/bin/env bash
# Packs what `scripts/gpu-check.sh` needs of a build, for a machine with a GPU that has none of the packages farfault is built with.
#
#   scripts/gpu-pack.sh [BUILD] FILE.tar.xz
#
# There, beside the sources (nothing is compiled but five examples, with cc):
#
#   mkdir packed && tar xJf FILE.tar.xz -C packed && scripts/gpu-check.sh packed
#
# That machine needs a glibc no older than this one's. The executables are stripped, shared libraries that no system is sure to have lie in `needed`; the
# compiler of kernels (farfault-compile) is left out: on the virtual GPU, which a part or two runs beside the real one, kernels are interpreted.
set -euo pipefail
[[ $# -ge 1 && $# -le 2 && $1 != -* ]] || { sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 64; }
build=build
[[ $# -eq 1 ]] || { build=$1; shift; }
packed=$1
[[ -x $build/bin/farfault ]] || { echo "gpu-pack: $build/bin/farfault is not there: build first (make)" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work" "$packed.new"' EXIT
mkdir -p "$work"/{bin,bench,tests/programs,workloads/micro,needed}
cp "$build/bin/farfault" "$work/bin"
cp -a "$build/lib" "$work"
rm -f "$work"/lib/*.o "$work"/lib/farfault/{farfault-compile,libfarfault-mpi.so,libfarfault-http.so}
mkdir -p "$work/share/farfault" && cp -r "$(dirname "$0")/../machines" "$work/share/farfault"
copy() { # copy FOLDER FILE...: those that are built
  local folder=$1 file
  shift
  for file in "$@"; do [[ ! -f $file || ! -x $file ]] || cp "$file" "$work/$folder"; done
}
copy bench "$build"/bench/bench_{launch,share}
copy tests "$build"/tests/{conformance_driver,silicon_compare}
copy tests/programs "$build/tests/programs/driver_answers"
copy workloads "$build"/workloads/*
copy workloads/micro "$build"/workloads/micro/*

# Tests with the label gpu that are programs of one file.
ctest --test-dir "$build" -N -L '^gpu$' 2>/dev/null | sed -n 's/^ *Test *#[0-9]*: //p' | grep -Ev '^(conformance|silicon)/' | while read -r test; do
  copy tests "$build/tests/${test//\//_}"
  printf 'add_test("%s" "tests/%s")\nset_tests_properties("%s" PROPERTIES ENVIRONMENT "FARFAULT_CHECK=2" LABELS "gpu" TIMEOUT "300")\n' "$test" "${test//\//_}" "$test"
done >"$work/CTestTestfile.cmake"

find "$work" -type f -exec sh -c 'head -c 4 "$1" | grep -q ELF' _ {} \; -print0 | xargs -0 ldd 2>/dev/null |
  awk '$3 ~ "^/" { print $3 }' | sort -u | grep -Ev '/(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+)\.so|/libfarfault' |
  while read -r library; do cp -L "$library" "$work/needed"; done
find "$work" -type f \( -name '*.so*' -o -perm -u+x \) -exec sh -c 'head -c 4 "$1" | grep -q ELF' _ {} \; -exec strip --strip-unneeded {} +
tar cJf "$packed.new" -C "$work" .
mv "$packed.new" "$packed"
echo "gpu-pack: $packed: $(($(stat -c %s "$packed") >> 20)) MiB"
