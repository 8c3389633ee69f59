#!/usr/bin/env bash
# frameworks-check.sh BUILD [PART...]: do the frameworks that people install run on the virtual GPU, unmodified and right? Parts: cupy, numba,
# torch, llm, and NVIDIA's libraries: cublas, cublaslt, cusolver, cusparse, curand, cudnn; all by default. What they need comes from PyPI and npm
# (some 6 GB for torch) into BUILD/frameworks, and stays there. Prints a table with a line per check and writes it to BUILD/frameworks/results.tsv;
# the last lines count. A part whose packages cannot be installed is skipped by name. Exit status 1: something is wrong that
# docs/frameworks.md does not list as such (tests/frameworks/expected.txt).
set -uo pipefail
[[ $# -ge 1 && -x $1/bin/farfault ]] || { sed -n '2,6s/^# //p' "$0" >&2; exit 64; }
build=$(cd "$1" && pwd) here=$(cd "$(dirname "$0")/.." && pwd)
shift
parts=("$@")
[[ $# -gt 0 ]] || parts=(cupy numba torch llm cublas cublaslt cusolver cusparse curand cudnn)
work=$build/frameworks
results=$work/results.tsv
mkdir -p "$work"
: >"$results"
cublas=nvidia-cublas==13.4.1.3 # the last before kernels in Tile IR
declare -A packages=(
  [cupy]="cupy-cuda13x scipy $cublas nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-curand nvidia-cusolver nvidia-cusparse nvidia-nvjitlink nvidia-cufft"
  [numba]="numba numba-cuda[cu13] numpy nvidia-nvjitlink"
  [torch]="torch numpy"
  [llm]="gguf $cublas"
  [libraries]="numpy scipy $cublas nvidia-cusolver nvidia-cusparse nvidia-curand nvidia-cudnn-cu13 nvidia-cudnn-frontend nvidia-nvjitlink
    nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cuda-cccl"
)
# The environment of a part: its own, or one for all of NVIDIA's libraries.
environment() {
  case $1 in cublas | cublaslt | cusolver | cusparse | curand | cudnn) echo libraries ;; *) echo "$1" ;; esac
}

# A virtual environment per part, so that what one needs does not change another.
install() { # install PART
  [[ -e $work/$1/installed ]] && return
  echo "installing: $1" >&2
  python3 -m venv "$work/$1" && "$work/$1/bin/pip" install -q --disable-pip-version-check ${packages[$1]} >"$work/$1.log" 2>&1 || return 1
  if [[ $1 == llm ]]; then
    (mkdir -p "$work/llm/node" && cd "$work/llm/node" && npm init -y && npm install node-llama-cpp) >>"$work/$1.log" 2>&1 || return 1
  fi
  touch "$work/$1/installed"
}

on_gpu() { "$build/bin/farfault" run --memory none "$@"; }

run_python() { # run_python PART
  CUPY_CACHE_DIR=$work/$1/cache TRITON_CACHE_DIR=$work/$1/cache TORCHINDUCTOR_CACHE_DIR=$work/$1/cache PYTHONPATH=$here/tests/frameworks \
    on_gpu "$work/$(environment "$1")/bin/python" "$here/tests/frameworks/check_$1.py" 2>"$work/$1.errors" </dev/null
  [[ $? -eq 0 ]] || printf 'the program\tfail: it did not end well: %s\t0\n' "$work/$1.errors"
}

# The same tokens on the CPU and on the virtual GPU.
run_llm() {
  local node=$work/llm/node right ours start=$SECONDS
  cp "$here/examples/llm/chat.mjs" "$node/"
  "$work/llm/bin/python" "$here/examples/llm/make_gguf.py" "$work/llm/tiny.gguf" || return
  right=$(cd "$node" && node chat.mjs "$work/llm/tiny.gguf" cpu 2>"$work/llm.errors")
  ours=$(cd "$node" && on_gpu --cuda-libraries "$work/llm/lib/"python3*/site-packages node chat.mjs "$work/llm/tiny.gguf" cuda 2>>"$work/llm.errors")
  if [[ -n $right && $ours == "$right" ]]; then printf 'tokens\tpass\t%d\n' $((SECONDS - start))
  else printf 'tokens\tWRONG\t%d\n' $((SECONDS - start)); fi
}

for part in "${parts[@]}"; do
  [[ -e $here/tests/frameworks/check_$part.py || $part == llm ]] || { echo "frameworks-check.sh: no part '$part'" >&2; exit 64; }
  if ! install "$(environment "$part")"; then
    echo "skipped: $part: its packages cannot be installed ($work/$(environment "$part").log)"
    continue
  fi
  if [[ $part == llm ]]; then run_llm; else run_python "$part"; fi |
    while IFS=$'\t' read -r name outcome seconds error tolerance; do
      printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$part" "$name" "$outcome" "$seconds" "$error" "$tolerance" >>"$results"
      printf '%-8s %-44s %6s s  %s%s\n' "$part" "$name" "$seconds" "$outcome" "${error:+, error $error of $tolerance}"
    done
done
for part in "${parts[@]}"; do
  awk -F'\t' -v part="$part" '$1 == part { all++; good += $3 == "pass" } END { if (all) printf "%s: %d of %d pass\n", part, good, all }' "$results"
done
awk -F'\t' -v expected="$here/tests/frameworks/expected.txt" '
  BEGIN { while ((getline line < expected) > 0) known[line] = 1 }
  $3 == "pass" { passed++; next }
  ($1 "\t" $2) in known { listed++; next }
  { others++ }
  END {
    printf "%d passed, %d failed as docs/frameworks.md says, %d failed otherwise\n", passed, listed, others
    exit others > 0
  }' "$results"
