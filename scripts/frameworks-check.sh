#!/usr/bin/env bash
# frameworks-check.sh BUILD [PART...]: do the frameworks that people install run on the virtual GPU, unmodified and right? Parts: cupy, numba, cutile,
# torch, cpu-operators, pytorch-source, jax, jax-libraries, tensorflow, ort, warp, drjit, xgboost, llm, nccl, and of NVIDIA's libraries cublas, cublaslt, cusolver, cusparse, curand, cudnn, cutensor, cutlass, cccl; all by default; and numba-tests, Numba's own tests of its CUDA target, opinfo, PyTorch's samples of its operators, opinfo-installed, the same with the kernels that the wheel has as PTX, and opinfo-compiled, by torch.compile (half an hour and more each). What they
# need comes from PyPI and npm (4 to 6 GB each for torch, jax and tensorflow) into BUILD/frameworks, and stays there. Prints a table with a line per check
# and writes it to BUILD/frameworks/results.tsv; the last lines count. A part whose packages cannot be installed is skipped by name. Exit status 1:
# something is wrong that docs/frameworks.md does not list as such (tests/frameworks/expected.txt).
set -uo pipefail
[[ $# -ge 1 && -x $1/bin/farfault ]] || { sed -n '2,6s/^# //p' "$0" >&2; exit 64; }
build=$(cd "$1" && pwd) here=$(cd "$(dirname "$0")/.." && pwd)
shift
parts=("$@")
[[ $# -gt 0 ]] || parts=(cupy numba cutile torch cpu-operators pytorch-source jax jax-libraries tensorflow ort warp drjit xgboost llm nccl cublas cublaslt cusolver cusparse curand cudnn cutensor cutlass cccl)
work=$build/frameworks
results=$work/results.tsv
mkdir -p "$work"
: >"$results"
declare -A packages=(
  [cupy]="cupy-cuda13x scipy nvidia-cublas nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-curand nvidia-cusolver nvidia-cusparse nvidia-nvjitlink nvidia-cufft"
  [numba]="numba numba-cuda[cu13] numpy nvidia-nvjitlink"
  [cutile]="cuda-tile cupy-cuda13x numpy"
  [torch]="torch numpy expecttest"
  [jax]="jax[cuda13]"
  [jax-libraries]="jax[cuda13] equinox diffrax optax flax numpyro keras"
  [tensorflow]="tensorflow[and-cuda]"
  [numba-tests]="numba numba-cuda[cu13] numpy scipy cffi ml_dtypes filecheck pytest psutil nvidia-nvjitlink cupy-cuda13x nvidia-curand nvidia-cublas"
  [pytorch-source]="torch==2.6.0 numpy pyyaml"
  [ort]="onnxruntime-gpu[cuda,cudnn]==1.23.2 onnx numpy" # the last that was found to have PTX
  [warp]="warp-lang numpy scipy"
  [drjit]="drjit numpy"
  [xgboost]="xgboost numpy"
  [llm]="gguf nvidia-cublas"
  [nccl]="nvidia-nccl-cu13==2.32.3 numpy"
  [libraries]="numpy scipy nvidia-cublas nvidia-cusolver nvidia-cusparse nvidia-curand nvidia-cudnn-cu13 nvidia-cudnn-frontend nvidia-nvjitlink
    nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cuda-cccl cutensor-cu13"
)
# Parts whose programs are compiled, from the sources that a variable names; it is in compiled-check.sh.
declare -A sources=([cutlass]=FARFAULT_CUTLASS_SOURCE [cccl]=FARFAULT_CCCL_SOURCE)
# The environment of a part: its own, or one for all of NVIDIA's libraries.
environment() {
  case $1 in cublas | cublaslt | cusolver | cusparse | curand | cudnn | cutensor) echo libraries ;; opinfo) echo pytorch-source ;; opinfo-installed | opinfo-compiled | cpu-operators) echo torch ;; *) echo "$1" ;; esac
}

# Numba's tests allocate more than the GPU's memory, and one of them a tensor map of compute capability 9.0.
declare -A options=([numba-tests]="--set compute_major=8,compute_minor=6,memory_bytes=2147483648" [torch]="--devices 2")

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
  local site=("$work/$1/lib/"python3*/site-packages) more=(${options[$1]:-})
  [[ $1 != tensorflow ]] || more+=(--cuda-libraries "${site[0]}")
  CUPY_CACHE_DIR=$work/$1/cache TRITON_CACHE_DIR=$work/$1/cache TORCHINDUCTOR_CACHE_DIR=$work/$1/cache CUDA_TILE_CACHE_DIR=$work/$1/cache WARP_CACHE_PATH=$work/$1/cache PYTHONPATH=$here/tests/frameworks \
    on_gpu "${more[@]}" "$work/$(environment "$1")/bin/python" "$here/tests/frameworks/check_$1.py" 2>"$work/$1.errors" </dev/null
  [[ $? -eq 0 ]] || printf 'the program\tfail: it did not end well: %s\t0\n' "$work/$1.errors"
}

# Numba's own tests, a process for each file: one that ends in a fault of the GPU spoils the rest of its file only.
run_numba_tests() {
  local python=$work/numba-tests/bin/python folder file name log counts start status
  folder=$(echo "$work/numba-tests/lib/"python3*/site-packages/numba_cuda/numba/cuda/tests)
  mkdir -p "$work/numba-tests/logs"
  for file in "$folder"/{core,cudadrv,cudapy,doc_examples,nrt}/test_*.py; do
    name=${file#"$folder/"} name=${name%.py} start=$SECONDS
    log=$work/numba-tests/logs/${name//\//_}.log
    CUPY_CACHE_DIR=$work/numba-tests/cache timeout -k 5 600 "$build/bin/farfault" run --memory none ${options[numba-tests]} \
      "$python" -m unittest -v "numba.cuda.tests.${name//\//.}" >"$log" 2>&1 </dev/null
    status=$?
    counts=$(sed -n 's/^Ran \([0-9]*\) tests\{0,1\} in.*/\1/p; s/^FAILED //p; s/^OK //p' "$log" | tr '\n' ' ')
    if [[ $status -eq 0 || $status -eq 5 ]]; then printf '%s\tpass\t%d\n' "$name" $((SECONDS - start)) # 5: there is none in it
    else printf '%s\tfail: of %s\t%d\n' "$name" "${counts:-(it did not end)}" $((SECONDS - start)); fi
  done
}

# The wheel's kernels, compiled from FARFAULT_PYTORCH_SOURCE, the sources of the same release: half an hour and more of processor time, once. Other
# kernels than those that were compiled are in the list of missing ones. opinfo compiles more files, unless FARFAULT_PYTORCH_KERNELS names a folder.
run_pytorch_source() { # run_pytorch_source PART [OPTION...]
  local part=$1 environment folder=${FARFAULT_PYTORCH_KERNELS:-$work/pytorch-source/kernels} more=()
  environment=$work/$(environment "$part")
  shift
  [[ $part != opinfo ]] || more=(--operators)
  if [[ -z ${FARFAULT_PYTORCH_KERNELS:-} ]]; then
    "$here/scripts/pytorch-kernels.sh" --python "$environment/bin/python" --source "$FARFAULT_PYTORCH_SOURCE" "${more[@]}" "$folder" \
      >"$work/$part.compiled" 2>&1 || echo "not all kernels could be compiled: $work/$part.compiled" >&2
  fi
  PYTHONPATH=$here/tests/frameworks on_gpu --devices 2 --kernels "$folder" --missing "$work/$part.missing" "$environment/bin/python" \
    "$here/tests/frameworks/check_$part.py" "$@" 2>"$work/$part.errors" </dev/null
  [[ $? -eq 0 ]] || printf 'the program\tfail: it did not end well: %s\t0\n' "$work/$part.errors"
}

# Operators: a line for each, and each sample's outcome in opinfo.tsv.
run_opinfo() {
  run_pytorch_source opinfo --details "$work/opinfo.tsv"
  grep -E '^(samples|gradients): ' "$work/opinfo.errors" >&2
}

# Operators with what needs no kernel of the wheel: a line for each, and each sample's outcome in opinfo-installed.tsv.
run_opinfo_installed() {
  PYTHONPATH=$here/tests/frameworks on_gpu "$work/torch/bin/python" "$here/tests/frameworks/check_opinfo.py" --as-installed --samples 2 --seconds 300 \
    --details "$work/opinfo-installed.tsv" 2>"$work/opinfo-installed.errors" </dev/null
  [[ $? -eq 0 ]] || printf 'the program\tfail: it did not end well: %s\t0\n' "$work/opinfo-installed.errors"
  grep -E '^(samples|gradients): ' "$work/opinfo-installed.errors" >&2
}

# Operators by torch.compile, results and gradients: a line for each, and each sample's outcome in opinfo-compiled.tsv and -gradients.tsv.
run_opinfo_compiled() {
  local more details=$work/opinfo-compiled
  for more in "--samples 3" --gradients; do
    [[ $more != --gradients ]] || details+=-gradients
    TRITON_CACHE_DIR=$work/torch/cache TORCHINDUCTOR_CACHE_DIR=$work/torch/cache PYTHONPATH=$here/tests/frameworks on_gpu "$work/torch/bin/python" \
      "$here/tests/frameworks/check_opinfo-compiled.py" --details "$details.tsv" $more 2>"$details.errors" </dev/null
    [[ $? -eq 0 ]] || printf 'the program\tfail: it did not end well: %s\t0\n' "$details.errors"
    grep '^samples: ' "$details.errors" >&2
  done
}

# The same tokens on the CPU and on the virtual GPU.
run_llm() {
  local node=$work/llm/node right ours start=$SECONDS
  cp "$here/examples/llm/chat.mjs" "$node/"
  "$work/llm/bin/python" "$here/examples/llm/make_gguf.py" "$work/llm/tiny.gguf" >&2 || return
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

# Their programs with their own checks. cccl also needs Catch2's sources (FARFAULT_CATCH2_SOURCE).
run_compiled() { "$here/scripts/compiled-check.sh" "$build" "$1" "${!sources[$1]}" "${FARFAULT_CATCH2_SOURCE:-}" 2>"$work/$1.errors"; }

for part in "${parts[@]}"; do
  if [[ -n ${sources[$part]:-} && ! -d ${!sources[$part]:-} ]]; then
    echo "skipped: $part: ${sources[$part]} does not name the sources"
    continue
  fi
  [[ -n ${sources[$part]:-} ]] || [[ -n ${packages[$(environment "$part")]:-} && $part != libraries ]] || { echo "frameworks-check.sh: no part '$part': there are $(printf '%s\n' "${!packages[@]}" opinfo opinfo-installed opinfo-compiled cpu-operators cublas cublaslt cusolver cusparse curand cudnn cutensor cutlass cccl | grep -vx libraries | sort | paste -sd' ')" >&2; exit 64; }
  if [[ $part =~ ^(pytorch-source|opinfo)$ && ! -d ${FARFAULT_PYTORCH_SOURCE:-} ]]; then
    echo "skipped: $part: FARFAULT_PYTORCH_SOURCE does not name the sources of PyTorch 2.6.0"
    continue
  fi
  if [[ -z ${sources[$part]:-} ]] && ! install "$(environment "$part")"; then
    echo "skipped: $part: its packages cannot be installed ($work/$(environment "$part").log)"
    continue
  fi
  case $part in
  llm | nccl | opinfo) run_"$part" ;;
  opinfo-installed) run_opinfo_installed ;;
  opinfo-compiled) run_opinfo_compiled ;;
  numba-tests) run_numba_tests ;;
  pytorch-source) run_pytorch_source "$part" ;;
  cutlass | cccl) run_compiled "$part" ;;
  *) run_python "$part" ;;
  esac |
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
  $3 ~ /^not run/ { unrun++; next }
  ($1 "\t" $2) in known { listed++; next }
  { others++ }
  END {
    printf "%d passed, %d failed as docs/frameworks.md says, %d failed otherwise%s\n", passed, listed, others, unrun ? ", " unrun " not run" : ""
    exit others > 0
  }' "$results"
