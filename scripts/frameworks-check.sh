#!/usr/bin/env bash
# frameworks-check.sh BUILD [PART...]: do the frameworks that people install run on the virtual GPU, unmodified and right? Parts: cupy, numba,
# torch, llm, nccl; all by default. What they need comes from PyPI and npm (some 6 GB for torch) into BUILD/frameworks, and stays there. Prints a table
# with a line per check and writes it to BUILD/frameworks/results.tsv; the last line counts. A part whose packages cannot be installed is skipped
# by name. Exit status 1: something is wrong that docs/frameworks.md does not list as such (tests/frameworks/expected.txt).
set -uo pipefail
[[ $# -ge 1 && -x $1/bin/farfault ]] || { sed -n '2,7s/^# //p' "$0" >&2; exit 64; }
build=$(cd "$1" && pwd) here=$(cd "$(dirname "$0")/.." && pwd)
shift
parts=("$@")
[[ $# -gt 0 ]] || parts=(cupy numba torch llm nccl)
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
  [nccl]="nvidia-nccl-cu13==2.32.3 numpy"
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

# Results with 4 GPUs, then what one all-reduce moves between 2 and between 4.
run_nccl() {
  local python=$work/nccl/bin/python program=$here/tests/frameworks/check_nccl.py
  PYTHONPATH=$here/tests/frameworks on_gpu --devices 4 "$python" "$program" 2>"$work/nccl.errors" </dev/null
  [[ $? -eq 0 ]] || printf 'the program\tfail: it did not end well: %s\t0\n' "$work/nccl.errors"
  local -A ways=([peers]=NCCL_P2P_LEVEL=SYS [host]=NCCL_P2P_DISABLE=1)
  for ranks in 2 4; do
    for way in peers host; do
      rm -f "$work/nccl.json"
      env "${ways[$way]}" "$build/bin/farfault" run --memory copy --machine h200 --devices $ranks --json "$work/nccl.json" "$python" "$program" \
        traffic $ranks >>"$work/nccl.errors" 2>&1 </dev/null
      on_gpu "$python" "$program" compare $ranks $way "$work/nccl.json" 2>>"$work/nccl.errors"
    done
  done
}

for part in "${parts[@]}"; do
  [[ -n ${packages[$part]:-} ]] || { echo "frameworks-check.sh: no part '$part': there are cupy, numba, torch, llm, nccl" >&2; exit 64; }
  if ! install "$part"; then
    echo "skipped: $part: its packages cannot be installed ($work/$part.log)"
    continue
  fi
  case $part in llm | nccl) run_"$part" ;; *) run_python "$part" ;; esac |
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
