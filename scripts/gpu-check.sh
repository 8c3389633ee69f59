#!/usr/bin/env bash
# What can only be seen on a GPU: the library's examples and tests, the benches and the calibration against NVIDIA's driver, every
# figure with its spread as a row of a dated CSV, and where the profiler is there (ncu), the workloads' kernels with their counters.
#
#   scripts/gpu-check.sh [-d virtual|cuda|PATH] [-o FOLDER] [-D DATE] [-m] [-q] [BUILD]
#
# BUILD: build, which must be built. FOLDER: docs/results. -d: the driver (cuda); with `virtual` the whole of it runs on the virtual GPU, which tests
# the script. -q: small sizes. -m: on a real GPU too, run the pipelines on managed memory of four times what the GPU has left: that can hang a GPU that
# other programs share. LIMIT: seconds that each step may take (1200). The file is FOLDER/gpu-DATE-NAME.csv, the machine file as measured next to it,
# and, where PYTHON (python3) has PyTorch and Triton, what their operators take (-torch.csv). Exit status: 77 if there is no GPU, 1 if something failed
# (its row says so), else 0.
set -uo pipefail
driver=cuda folder=docs/results date=$(date +%F) oversubscribe="" quick=""
while getopts d:o:D:mq option; do
  case $option in
  d) driver=$OPTARG ;;
  o) folder=$OPTARG ;;
  D) date=$OPTARG ;;
  m) oversubscribe=yes ;;
  q) quick=--quick ;;
  *) sed -n '2,13s/^# \{0,1\}//p' "$0" >&2; exit 64 ;;
  esac
done
shift $((OPTIND - 1))
build=${1:-build}
source=$(cd "$(dirname "$0")/.." && pwd)
[[ -d $build ]] && build=$(cd "$build" && pwd)
farfault=$build/bin/farfault
limit=${LIMIT:-1200} # seconds, of each step
[[ -x $farfault ]] || { echo "gpu-check: $farfault is not there: build first (make)" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export FARFAULT_DRIVER=$driver
unset FARFAULT_MACHINE FARFAULT_MEMORY
if ! "$farfault" calibrate --driver "$driver" --info >"$work/result.csv" 2>"$work/log"; then
  echo "gpu-check: there is no GPU: $(sed 's/^farfault: //' "$work/log")"
  exit 77
fi
name=$(sed -n 's/^gpu,"\(.*\)",,,,.*/\1/p' "$work/result.csv" | tr -cs 'A-Za-z0-9\n' '-' | sed 's/-$//')
failures=0
say() { echo "gpu-check: $*"; }

# step NAME COMMAND...: its output to $work/log; a row that says whether it went well.
step() {
  local what=$1 status
  shift
  say "$*"
  timeout "$limit" "$@" >"$work/log" 2>&1 </dev/null
  status=$?
  if [[ $status -ne 0 ]]; then
    failures=$((failures + 1))
    tail -5 "$work/log" | sed 's/^/  /'
  fi
  local command=$*
  command=${command//"$work/"/} # without this machine's folders
  command=${command//"$build/"/build/}
  command=${command//"$source/"/}
  echo "\"check: $what\",$status,exit status,,,\"${command//\"/\'}\"" >>"$work/result.csv"
  return $status
}

# Examples check their own results.
cc=${CC:-cc}
for example in saxpy image_pipeline kmeans matmul_out_of_core stream_file; do
  [[ -f $source/examples/$example.c && -f $build/lib/libfarfault.a ]] || continue
  arguments=()
  [[ -n $quick && $example = matmul_out_of_core ]] && arguments=(512 2)
  [[ -n $quick && $example = image_pipeline ]] && arguments=(2 256 4)
  if step "compile $example" "$cc" -std=c11 -O2 -I "$source/include" "$source/examples/$example.c" "$build/lib/libfarfault.a" -ldl -lm -pthread -o "$work/$example"; then
    if [[ $driver = virtual ]]; then export FARFAULT_DRIVER=$build/lib/farfault/libcuda.so.1; fi
    (cd "$work" && step "example $example" "./$example" "${arguments[@]}")
    failures=$((failures + ($? != 0)))
    export FARFAULT_DRIVER=$driver
  fi
done

# Tests that take the driver from FARFAULT_DRIVER carry the label gpu.
if [[ $(ctest --test-dir "$build" -N -L '^gpu$' 2>/dev/null | sed -n 's/^Total Tests: //p') -gt 0 ]]; then
  step "library's tests" ctest --test-dir "$build" -L '^gpu$' --output-on-failure
fi
if [[ -x $build/bench/bench_launch ]] && step "bench_launch" "$build/bench/bench_launch"; then
  awk '$1 ~ /^[0-9]+$/ && NF == 6 {
      printf "\"host: cuLaunchKernel with %d pointers\",%.3f,us,,,bench_launch\n", $1, $2 / 1000
      printf "\"host: ff_launch with %d uses\",%.3f,us,,,bench_launch\n", $1, $4 / 1000
    }' \
    "$work/log" >>"$work/result.csv"
fi

# The benches' own tables, a row per number.
commands=$("$farfault" --help)
if grep -q '^  bench ' <<<"$commands"; then
  arguments=()
  [[ -n $quick ]] && arguments=(--repeat 2)
  if step "bench managed" "$farfault" bench managed "${arguments[@]}" --csv "$work/managed.csv"; then
    awk -F, 'NR > 1 && $1 !~ /^paper/ && $4 != "" { printf "\"managed: %s, %s pages touched\",%s,us,,,farfault bench managed\n", $1, $2, $4 }
      NR > 1 && $1 !~ /^paper/ && $5 != "" { printf "\"managed: %s, %s pages not touched\",%s,us,,,farfault bench managed\n", $1, $2, $5 }' \
      "$work/managed.csv" >>"$work/result.csv"
  fi
  arguments=()
  [[ -n $quick ]] && arguments=(--data 16M --tile 512K --shape chain)
  if [[ $driver = virtual ]]; then
    arguments+=(--machine v100)
  elif [[ -z $oversubscribe ]]; then
    arguments+=(--only kernels,transfers,streams,segments)
  fi
  if step "bench pipeline" "$farfault" bench pipeline "${arguments[@]}" --csv "$work/pipeline.csv"; then
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
      { key = "pipeline: " $(column["shape"]) ", " $(column["program"])
        printf "\"%s\",%s,s,,,farfault bench pipeline\n", key, $(column["seconds"])
        if ($(column["ratio"]) != "") printf "\"%s, over streams\",%s,,,,farfault bench pipeline\n", key, $(column["ratio"]) }' \
      "$work/pipeline.csv" >>"$work/result.csv"
  fi
fi

# What single instructions take, by the kernels' own clock; on the virtual GPU by events, as its clock counts instructions.
instructions=$build/workloads/micro/instructions
if [[ -x $instructions ]]; then
  groups=(float integer special convert matrix wgmma long warp shared launch atomics) way=(64 5 1) before=()
  [[ -n $quick ]] && groups=(float shared launch) way=(4 1 1)
  if [[ $driver = virtual ]]; then
    before=("$farfault" run --machine v100 --memory copy --) way[2]=0
  elif [[ $driver = */* ]]; then
    before=(env "LD_LIBRARY_PATH=$(dirname "$driver")")
  fi
  for group in "${groups[@]}"; do
    step "instructions $group" "${before[@]}" "$instructions" "$group" "${way[@]}" || continue
    sed -nE "s/^(.*) = ([0-9.e+-]+) (cycles|us|MHz)\$/\"instructions: \1\",\2,\3,,,instructions $group ${way[*]}/p" "$work/log" >>"$work/result.csv"
  done
else
  say "no instructions are measured: $instructions was not built (it needs clang)"
fi

# The calibration.
# shellcheck disable=SC2086 # no word, or one
if step "calibrate" "$farfault" calibrate --driver "$driver" $quick --date "$date" -o "$work/machine.yaml" --csv "$work/figures.csv"; then
  tail -n +2 "$work/figures.csv" >>"$work/result.csv"
fi

# The microbenchmarks of `farfault validate`.
if [[ -x $build/workloads/micro/mix ]]; then
  # shellcheck disable=SC2086 # no word, or one
  step "microbenchmarks" "$source/scripts/gpu-micro.sh" ${quick:+-q} -d "$driver" "$build" "$work/micro.csv"
  grep '^gpu-micro:' "$work/log"
  [[ -f $work/micro.csv ]] && cat "$work/micro.csv" >>"$work/result.csv"
else
  say "no microbenchmarks: the bundled workloads are not built (clang)"
# What the driver says to some thousand questions, most of them wrong calls, and where the virtual GPU says something else.
answers=$build/tests/programs/driver_answers
if [[ ! -x $answers ]] || ! command -v python3 >/dev/null; then
  say "no driver's answers: needs python3 and a build with tests"
else
  arguments=("$work/machine.yaml" "$work/.")
  case $driver in
  cuda) ;;
  virtual) arguments=(v100 "$work/." virtual) ;; # itself
  *) arguments+=("$driver") ;;
  esac
  if step "driver's answers" python3 "$source/tests/programs/driver_answers.py" compare "$farfault" "$answers" "${arguments[@]}"; then
    awk '/ answers, / { printf "\"driver: answers\",%d,,,,driver_answers.py\n\"driver: answers that differ from the virtual GPU\x27s\",%d,,,,driver_answers.py\n", $1, $3 }' "$work/log" >>"$work/result.csv"
  fi
# PyTorch's operators and Triton's kernels, where they are installed: a table of its own. On the virtual GPU two of Triton's kernels.
python=${PYTHON:-python3} runner=() arguments=(--seconds 70)
if [[ $driver = virtual ]]; then runner=("$farfault" run --memory none) arguments=(--groups triton --only "triton/add 1M,triton/softmax 4096x1024"); fi
export TRITON_CACHE_DIR=$work/triton TORCHINDUCTOR_CACHE_DIR=$work/inductor
if [[ $driver != virtual && $driver != cuda ]]; then
  say "PyTorch: left out: it takes no driver but the system's"
elif ! "${runner[@]}" "$python" -c 'import numpy, sys, torch, triton; sys.exit(not torch.cuda.is_available())' >"$work/log" 2>&1 </dev/null; then
  say "PyTorch: left out: $python has no PyTorch and Triton that find the GPU (PYTHON names another)"
else
  step "PyTorch and Triton" "${runner[@]}" "$python" "$source/tests/frameworks/time_torch.py" "$work/torch.csv" "${arguments[@]}"
fi

mkdir -p "$folder"
file=$folder/gpu-$date-$name

# The bundled workloads' kernels, by the profiler's counters: a file of its own, which `scripts/gpu-kernels.py compare` sets beside the virtual GPU's.
arguments=(--driver cuda --seconds 80)
[[ $driver = virtual ]] && arguments=(--driver virtual --machine v100)
[[ -n $quick ]] && arguments+=(--quick)
if [[ ! -d $build/workloads ]] || ! command -v python3 >/dev/null || { [[ $driver != virtual ]] && ! command -v ncu >/dev/null; }; then
  say "the workloads' kernels are left out: the workloads, python3 or ncu are missing"
elif step "kernels" python3 "$source/scripts/gpu-kernels.py" measure "${arguments[@]}" --build "$build" -o "$work/kernels.csv"; then
  cp "$work/kernels.csv" "$file-kernels.csv"
elif [[ $? -eq 77 ]]; then
  failures=$((failures - 1))
  say "the workloads' kernels are left out: the profiler may not read counters here"
fi
for part in answers differ; do [[ -f $work/$part.txt ]] && cp "$work/$part.txt" "$file-$part.txt"; done
[[ -s $work/torch.csv ]] && cp "$work/torch.csv" "$file-torch.csv"
[[ -s $work/machine.yaml ]] && cp "$work/machine.yaml" "$file.yaml"
cp "$work/result.csv" "$file.csv.new" && mv "$file.csv.new" "$file.csv"
say "$file.csv: $(($(wc -l <"$file.csv") - 1)) rows, $failures failures"
[[ $failures -eq 0 ]]
