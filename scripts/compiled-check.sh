#!/usr/bin/env bash
# compiled-check.sh BUILD PART SOURCES [CATCH2]: programs that are compiled from a library's sources, with their own checks, on the virtual GPU. PART: cutlass
# (NVIDIA's CUTLASS, its examples) or cccl (Thrust's and CUB's tests; these need Catch2's sources, 3.x). The programs are those of
# tests/frameworks/compiled.tsv; nvcc 13.0 comes from PyPI into BUILD/cuda. They are compiled to PTX, into BUILD/frameworks/PART, and stay there. Prints
# a line per program: its name, pass or fail with the reason, seconds that it ran.
set -uo pipefail
[[ $# -ge 3 && -x $1/bin/farfault && -d $3 ]] || { sed -n '2,6s/^# //p' "$0" >&2; exit 64; }
here=$(cd "$(dirname "$0")/.." && pwd) build=$(cd "$1" && pwd) part=$2 sources=$(cd "$3" && pwd) catch=${4:-}
work=$build/frameworks/$part
mkdir -p "$work/link" "$work/catch2" || exit 1
packages=$("$here/scripts/cuda-packages.sh" "$build" nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-runtime==13.0.88 \
  nvidia-cuda-cccl==13.0.85 nvidia-curand==10.4.0.35) || exit
toolkit=$packages/nvidia/cu13
ln -sf "$(find "$toolkit/lib" -name 'libcudart.so.*' | head -1)" "$work/link/libcudart.so"
compile() { nice -n 10 timeout 1800 "$toolkit/bin/nvcc" -std=c++17 -w "${folders[@]}" -I"$toolkit/include" -L"$toolkit/lib" -L"$work/link" "$@"; }

# Where headers are, and what is linked to every program of the part.
prepare_cutlass() {
  folders=(-O2 --expt-relaxed-constexpr -I"$sources/include" -I"$sources/tools/util/include" -I"$sources/examples/common")
  objects=()
}

# Each of Catch2's headers by the one file that has them all.
prepare_cccl() {
  local header extras=$catch/extras
  [[ -e $extras/catch_amalgamated.cpp ]] || { echo "compiled-check.sh: '$catch' has no extras/catch_amalgamated.cpp" >&2; return 1; }
  while read -r header; do
    mkdir -p "$work/catch2/catch2/$(dirname "$header")"
    echo "#include \"$extras/catch_amalgamated.hpp\"" >"$work/catch2/catch2/$header"
  done < <(cd "$catch/src/catch2" && find . -name '*.hpp')
  folders=(-Ofc max -Xcompiler -O0 -DCUB_CONFIG_MAIN -DC2H_HAS_CURAND=0 -DCCCL_ENABLE_ASSERTIONS -DCATCH_AMALGAMATED_CUSTOM_MAIN -I"$sources/cub" -I"$sources/thrust"
    -I"$sources/libcudacxx/include" -I"$sources/thrust/testing" -I"$sources/cub/test" -I"$sources/c2h/include" -I"$sources/c2h" -I"$work/catch2")
  objects=()
  local from to
  for from in "$extras/catch_amalgamated.cpp" "$sources/c2h/generators.cu" "$sources/thrust/testing/unittest/testframework.cu" "$sources/thrust/testing/unittest/cuda/testframework.cu"; do
    to=$(basename "$(dirname "$from")")-$(basename "${from%.*}").o
    [[ -e $work/$to ]] || compile -arch=compute_80 -c "$from" -o "$work/$to" >"$work/$to.log" 2>&1 || { echo "compiled-check.sh: $work/$to.log" >&2; return 1; }
    objects+=("$work/$to")
  done
}

# The program NAME; nothing where it is there already.
make_program() { # make_program NAME FILE CAPABILITY EDIT OPTIONS
  local file=$sources/$2 link=("${objects[@]}")
  [[ -x $work/$1 ]] && return
  if [[ $4 != - ]]; then
    sed "$4" "$file" >"$work/$1.cu" && ! cmp -s "$file" "$work/$1.cu" || return 1
    file=$work/$1.cu
  fi
  case $2 in # each test framework has a `main`
  cub/*) link=("${objects[@]:0:2}") ;;
  thrust/*) link=("${objects[@]:2}") ;;
  esac
  # shellcheck disable=SC2086 # options are words
  compile "-arch=compute_$3" $([[ $5 == - ]] || echo "$5") -I"$(dirname "$sources/$2")" "$file" "${link[@]}" -o "$work/$1" >"$work/$1.log" 2>&1
}

check() { # check NAME FILE CAPABILITY EDIT OPTIONS EXPECTED ARGUMENTS
  local start status words=()
  [[ -z $7 ]] || mapfile -d '' -t words < <(xargs printf '%s\0' <<<"$7") # words, some in quotes
  make_program "$1" "$2" "$3" "$4" "$5" || { printf '%s\tfail: it was not compiled: %s\t0\n' "$1" "$work/$1.log"; return; }
  start=$SECONDS
  timeout -k 5 600 "$build/bin/farfault" run --memory none --set "compute_major=${3%?},compute_minor=${3#?}" "$work/$1" "${words[@]}" >"$work/$1.out" 2>"$work/$1.errors" </dev/null
  status=$?
  if [[ $status -ne 0 ]]; then printf '%s\tfail: exit status %d: %s\t%d\n' "$1" $status "$(grep -hv '^farfault: /' "$work/$1.errors" | head -1 | cut -c1-150)" $((SECONDS - start))
  elif ! grep -Eq "$6" "$work/$1.out"; then printf '%s\tfail: it does not print that it passed: %s\t%d\n' "$1" "$work/$1.out" $((SECONDS - start))
  else printf '%s\tpass\t%d\n' "$1" $((SECONDS - start)); fi
}

prepare_"$part" || exit 1
while IFS=$'\t' read -r of name file capability edit options expected arguments; do
  [[ $of == "$part" ]] && check "$name" "$file" "$capability" "$edit" "$options" "$expected" "$arguments"
done <"$here/tests/frameworks/compiled.tsv"
exit 0
