#!/usr/bin/env bash
# frameworks-check.sh BUILD [PART...]: do the frameworks that people install run on the virtual GPU, unmodified and right? Parts: cupy, numba,
# torch, pytorch-source, llm; all by default. What they need comes from PyPI and npm (some 6 GB for torch) into BUILD/frameworks, and stays there. Prints a table
# with a line per check and writes it to BUILD/frameworks/results.tsv; the last line counts. A part whose packages cannot be installed is skipped
# by name. Exit status 1: something is wrong that docs/frameworks.md does not list as such (tests/frameworks/expected.txt).
set -uo pipefail
[[ $# -ge 1 && -x $1/bin/farfault ]] || { sed -n '2,7s/^# //p' "$0" >&2; exit 64; }
build=$(cd "$1" && pwd) here=$(cd "$(dirname "$0")/.." && pwd)
shift
parts=("$@")
[[ $# -gt 0 ]] || parts=(cupy numba torch pytorch-source llm)
work=$build/frameworks
results=$work/results.tsv
mkdir -p "$work"
: >"$results"
cublas=nvidia-cublas==13.4.1.3 # the last before kernels in Tile IR
declare -A packages=(
  [cupy]="cupy-cuda13x scipy $cublas nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-curand nvidia-cusolver nvidia-cusparse nvidia-nvjitlink nvidia-cufft"
  [numba]="numba numba-cuda[cu13] numpy nvidia-nvjitlink"
  [torch]="torch numpy"
  [pytorch-source]="torch==2.6.0 numpy pyyaml"
  [llm]="gguf $cublas"
)

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
    on_gpu "$work/$1/bin/python" "$here/tests/frameworks/check_$1.py" 2>"$work/$1.errors" </dev/null
  [[ $? -eq 0 ]] || printf 'the program\tfail: it did not end well: %s\t0\n' "$work/$1.errors"
}

# The wheel's kernels, compiled from FARFAULT_PYTORCH_SOURCE, the sources of the same release: half an hour and more of processor time, once. Other
# kernels than those that were compiled are in the list of missing ones.
run_pytorch_source() {
  local folder=$work/$1/kernels
  "$here/scripts/pytorch-kernels.sh" --python "$work/$1/bin/python" --source "$FARFAULT_PYTORCH_SOURCE" "$folder" >"$work/$1.compiled" 2>&1 ||
    echo "not all kernels could be compiled: $work/$1.compiled" >&2
  PYTHONPATH=$here/tests/frameworks on_gpu --devices 2 --kernels "$folder" --missing "$work/$1.missing" "$work/$1/bin/python" \
    "$here/tests/frameworks/check_pytorch-source.py" 2>"$work/$1.errors" </dev/null
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
  [[ -n ${packages[$part]:-} ]] || { echo "frameworks-check.sh: no part '$part': there are cupy, numba, torch, pytorch-source, llm" >&2; exit 64; }
  if [[ $part == pytorch-source && ! -d ${FARFAULT_PYTORCH_SOURCE:-} ]]; then
    echo "skipped: $part: FARFAULT_PYTORCH_SOURCE does not name the sources of PyTorch 2.6.0"
    continue
  fi
  if ! install "$part"; then
    echo "skipped: $part: its packages cannot be installed ($work/$part.log)"
    continue
  fi
  if [[ $part == llm ]]; then run_llm; elif [[ $part == pytorch-source ]]; then run_pytorch_source "$part"; else run_python "$part"; fi |
    while IFS=$'\t' read -r name outcome seconds; do
      printf '%s\t%s\t%s\t%s\n' "$part" "$name" "$outcome" "$seconds" >>"$results"
      printf '%-6s %-34s %6s s  %s\n' "$part" "$name" "$seconds" "$outcome"
    done
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
