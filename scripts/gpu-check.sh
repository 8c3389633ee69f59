#!/usr/bin/env bash
# What can only be seen on a GPU: NVIDIA's driver and the GPU behind it measured, and compared with the virtual GPU. Every figure with its spread is a
# row of a dated CSV.
#
#   scripts/gpu-check.sh [-d virtual|cuda|PATH] [-o FOLDER] [-D DATE] [-s PART,...] [-t SECONDS] [-m] [-q] [BUILD]
#
# BUILD: build, which must be built, or what scripts/gpu-pack.sh packed. FOLDER: docs/results. -d: the driver (cuda); with `virtual` the whole of it runs on the virtual GPU, which tests
# the script. -s: only these parts, in this order (all: see below). -t: no part begins after so many seconds; each is saved when it ends. -q: small sizes.
# -m: on a real GPU too, run the pipelines on managed memory of four times what the GPU has left: that can hang a GPU that other programs share.
# LIMIT: seconds that each step may take (1200). PYTHON: a Python with PyTorch and Triton (python3).
#
#   calibrate     the machine file, by measuring: FOLDER/gpu-DATE-NAME.yaml
#   micro         the microbenchmarks of `farfault validate`
#   instructions  latency and throughput of single instructions
#   kernels       the bundled workloads' kernels with their counters, where the profiler is there (ncu): -kernels.csv
#   cases         the conformance cases; what differs: -differences.txt
#   forms         every form, function and sum next to the executor: -silicon.csv, -differences.txt
#   answers       what the driver says to 7500 questions, most of them wrong calls: -answers.txt; where the virtual GPU says something else: -differ.txt
#   torch         what the operators of PyTorch and kernels of Triton take: -torch.csv
#   probe         address hashes, and the L2's lines one by one: -probe.json, -lines.csv
#   share         SMs divided between two kernels
#   library       libfarfault's examples, tests and launches
#   benches       farfault bench managed and pipeline
#
# The file is FOLDER/gpu-DATE-NAME.csv, the others next to it. Exit status: 77 if there is no GPU, 1 if something failed (its row says so), else 0.
set -uo pipefail
parts=(calibrate micro instructions kernels cases forms answers torch probe share library benches)
driver=cuda folder=docs/results date=$(date +%F) total="" oversubscribe="" quick=""
usage() { sed -n '2,27s/^# \{0,1\}//p' "$0" >&2; exit 64; }
while getopts d:o:D:s:t:mq option; do
  case $option in
  d) driver=$OPTARG ;;
  o) folder=$OPTARG ;;
  D) date=$OPTARG ;;
  s) IFS=, read -r -a chosen <<<"$OPTARG"
    for part in "${chosen[@]}"; do
      [[ " ${parts[*]} " = *" $part "* ]] || { echo "gpu-check: there is no part '$part': ${parts[*]}" >&2; exit 64; }
    done
    [[ ${#chosen[@]} -gt 0 ]] || usage
    parts=("${chosen[@]}") ;;
  t) [[ $OPTARG =~ ^[0-9]+$ ]] || usage
    total=$((10#$OPTARG)) ;;
  m) oversubscribe=yes ;;
  q) quick=--quick ;;
  *) usage ;;
  esac
done
shift $((OPTIND - 1))
build=${1:-build}
source=$(cd "$(dirname "$0")/.." && pwd)
[[ -d $build ]] && build=$(cd "$build" && pwd)
farfault=$build/bin/farfault
limit=${LIMIT:-1200} # seconds, of each step
if [[ -d $build/needed ]]; then export LD_LIBRARY_PATH=$build/needed${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}; fi # scripts/gpu-pack.sh
[[ -x $farfault ]] || { echo "gpu-check: $farfault is not there: build first (make)" >&2; exit 1; }

work=$(mktemp -d)
export FARFAULT_DRIVER=$driver
unset FARFAULT_MACHINE FARFAULT_MEMORY
if ! "$farfault" calibrate --driver "$driver" --info >"$work/result.csv" 2>"$work/log"; then
  echo "gpu-check: there is no GPU: $(sed 's/^farfault: //' "$work/log")"
  rm -rf "$work"
  exit 77
fi
name=$(sed -n 's/^gpu,"\(.*\)",,,,.*/\1/p' "$work/result.csv" | tr -cs 'A-Za-z0-9\n' '-' | sed 's/-$//')
failures=0
say() { echo "gpu-check: $*"; }
rows() { cat >>"$work/result.csv"; }

mkdir -p "$folder" || exit 1
file=$folder/gpu-$date-$name
# What there is so far, also of a run that is stopped.
save() {
  local kept
  for kept in kernels.csv silicon.csv differences.txt answers.txt differ.txt torch.csv probe.json lines.csv; do
    [[ ! -e $work/$kept ]] || cp "$work/$kept" "$file-$kept"
  done
  [[ ! -s $work/machine.yaml ]] || cp "$work/machine.yaml" "$file.yaml"
  cp "$work/result.csv" "$file.csv.new" && mv "$file.csv.new" "$file.csv"
}
trap 'save; rm -rf "$work"' EXIT
child=""
stop() { # STATUS: what runs ends, what there is stays
  [[ -z $child ]] || kill "$child" 2>/dev/null
  exit "$1"
}
trap 'stop 143' TERM
trap 'stop 130' INT

# step NAME COMMAND...: its output to $work/log; a row that says whether it went well.
step() {
  local what=$1 status
  shift
  say "$*"
  timeout -k 10 "$limit" "$@" >"$work/log" 2>&1 </dev/null &
  child=$!
  wait "$child"
  status=$?
  child=""
  if [[ $status -ne 0 ]]; then
    failures=$((failures + 1))
    tail -5 "$work/log" | sed 's/^/  /'
  fi
  local command=$*
  command=${command//"$work/"/} # without this machine's folders
  command=${command//"$build/"/build/}
  command=${command//"$source/"/}
  echo "\"check: $what\",$status,exit status,,,\"${command//\"/\'}\"" | rows
  return $status
}

part_calibrate() {
  # shellcheck disable=SC2086 # no word, or one
  if step "calibrate" "$farfault" calibrate --driver "$driver" $quick --date "$date" -o "$work/machine.yaml" --csv "$work/figures.csv"; then
    tail -n +2 "$work/figures.csv" | rows
  fi
}

part_micro() {
  [[ -x $build/workloads/micro/mix ]] || { say "micro is left out: the bundled workloads are not built (clang)"; return; }
  step "microbenchmarks" "$source/scripts/gpu-micro.sh" ${quick:+-q} -d "$driver" "$build" "$work/micro.csv"
  grep '^gpu-micro:' "$work/log"
  [[ ! -f $work/micro.csv ]] || rows <"$work/micro.csv"
}

# By the kernels' own clock; on the virtual GPU by events, as its clock counts instructions.
part_instructions() {
  local instructions=$build/workloads/micro/instructions group before=()
  local groups=(float integer special convert matrix wgmma long warp shared locked launch atomics) way=(64 5 1)
  [[ -x $instructions ]] || { say "instructions is left out: the bundled workloads are not built (clang)"; return; }
  [[ -z $quick ]] || groups=(float shared launch) way=(4 1 1)
  if [[ $driver = virtual ]]; then
    before=("$farfault" run --machine v100 --memory copy --) way[2]=0
  elif [[ $driver = */* ]]; then
    before=(env "LD_LIBRARY_PATH=$(dirname "$driver")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}")
  fi
  for group in "${groups[@]}"; do
    step "instructions $group" "${before[@]}" "$instructions" "$group" "${way[@]}" || continue
    sed -nE "s/^(.*) = ([0-9.e+-]+) (cycles|us|MHz)\$/\"instructions: \1\",\2,\3,,,instructions $group ${way[*]}/p" "$work/log" | rows
  done
}

# `scripts/gpu-kernels.py compare` sets the file beside the virtual GPU's.
part_kernels() {
  local arguments=(--driver cuda --seconds 80)
  [[ $driver != virtual ]] || arguments=(--driver virtual --machine v100)
  [[ -z $quick ]] || arguments+=(--quick)
  if [[ ! -d $build/workloads ]] || ! command -v python3 >/dev/null || { [[ $driver != virtual ]] && ! command -v ncu >/dev/null; }; then
    say "kernels is left out: the workloads, python3 or ncu are missing"
    return
  fi
  step "kernels" python3 "$source/scripts/gpu-kernels.py" measure "${arguments[@]}" --build "$build" -o "$work/kernels.csv"
  if [[ $? -eq 77 ]]; then
    failures=$((failures - 1))
    say "kernels is left out: the profiler may not read counters here"
  fi
}

processes() { local count; count=$(nproc); echo $((count > 8 ? 8 : count)); }

part_cases() {
  local folder folders=()
  [[ -x $build/tests/conformance_driver ]] || { say "cases is left out: it needs a build with tests"; return; }
  for folder in "$source"/tests/conformance/*/; do
    [[ $folder = */reference/ || $folder = */wrong/ ]] || folders+=("$folder")
  done
  step "conformance cases" "$build/tests/conformance_driver" --jobs "$(processes)" "${folders[@]}" || cat "$work/log" >>"$work/differences.txt"
}

part_forms() {
  [[ -x $build/tests/silicon_compare ]] || { say "forms is left out: it needs a build with tests"; return; }
  # shellcheck disable=SC2086 # no word, or one
  step "forms, functions and sums" "$build/tests/silicon_compare" --jobs "$(processes)" $quick --csv "$work/silicon.csv" || cat "$work/log" >>"$work/differences.txt"
}

# The virtual GPU answers as the machine file that `calibrate` wrote.
part_answers() {
  local answers=$build/tests/programs/driver_answers arguments=("$work/machine.yaml" "$work/.")
  if [[ ! -x $answers ]] || ! command -v python3 >/dev/null; then
    say "answers is left out: it needs python3 and a build with tests"
    return
  fi
  case $driver in
  cuda) ;;
  virtual) arguments=(v100 "$work/." virtual) ;; # itself
  *) arguments+=("$driver") ;;
  esac
  if [[ $driver != virtual && ! -s $work/machine.yaml ]]; then
    say "answers is left out: the GPU's machine file was not measured before (calibrate)"
    return
  fi
  step "driver's answers" python3 "$source/tests/programs/driver_answers.py" compare "$farfault" "$answers" "${arguments[@]}" || return
  awk '/ answers, / { printf "\"driver: answers\",%d,,,,driver_answers.py\n\"driver: answers that differ from the virtual GPU\x27s\",%d,,,,driver_answers.py\n", $1, $3 }' "$work/log" | rows
}

# On the virtual GPU two of Triton's kernels.
part_torch() {
  local python=${PYTHON:-python3} runner=() arguments=(--seconds 70)
  if [[ $driver = virtual ]]; then runner=("$farfault" run --memory none) arguments=(--groups triton --only "triton/add 1M,triton/softmax 4096x1024"); fi
  export TRITON_CACHE_DIR=$work/triton TORCHINDUCTOR_CACHE_DIR=$work/inductor
  if [[ $driver != virtual && $driver != cuda ]]; then
    say "torch is left out: PyTorch takes no driver but the system's"
  elif ! timeout -k 10 "$limit" "${runner[@]}" "$python" -c 'import numpy, sys, torch, triton; sys.exit(not torch.cuda.is_available())' >"$work/log" 2>&1 </dev/null; then
    say "torch is left out: $python has no PyTorch and Triton that find the GPU (PYTHON names another)"
  else
    step "PyTorch and Triton" "${runner[@]}" "$python" "$source/tests/frameworks/time_torch.py" "$work/torch.csv" "${arguments[@]}"
  fi
}

# A map that is not found is a result.
part_probe() {
  local arguments=(--seconds 20)
  [[ -z $quick ]] || arguments=(--seconds 60 --pairs 64 --what banks)
  # shellcheck disable=SC2016 # the inner shell's
  step "probe" bash -c 'json=$1; shift; "$@"; [[ $? -le 1 && -s $json ]]' probe "$work/probe.json" \
    "$farfault" probe --target cuda:0 "${arguments[@]}" --json "$work/probe.json" --line-times "$work/lines.csv" || return
  awk -F, 'NR == 1 { next } { first[$1] += $3; again[$1] += $4; lines[$1]++ }
    END { for (sm in lines) {
      printf "\"probe: SM %d, a line of the L2\",%.1f,cycles,,,farfault probe --line-times\n", sm, again[sm] / lines[sm]
      printf "\"probe: SM %d, the first time\",%.1f,cycles,,,farfault probe --line-times\n", sm, first[sm] / lines[sm] } }' "$work/lines.csv" | rows
}

part_share() {
  [[ -x $build/bench/bench_share ]] || { say "share is left out: the benches are not built"; return; }
  step "bench_share" "$build/bench/bench_share" ${quick:+-q} || return
  awk '$1 ~ /^(whole|green|rewrite)$/ && $5 ~ /^[0-9.]+$/ {
      what = $4 == "-" ? "alone" : "next to " $4
      printf "\"share: %s, %s %s\",%s,us,%s,%s,bench_share\n", $1, $3, what, $5, $6, $7
      if ($4 != "-") printf "\"share: %s, %s %s, over alone\",%s,,,,bench_share\n", $1, $3, what, $8 }' "$work/log" | rows
}

part_library() {
  local example arguments cc=${CC:-cc}
  for example in saxpy image_pipeline kmeans matmul_out_of_core stream_file; do # they check their own results
    [[ -f $source/examples/$example.c && -f $build/lib/libfarfault.a ]] || continue
    arguments=()
    [[ -n $quick && $example = matmul_out_of_core ]] && arguments=(512 2)
    [[ -n $quick && $example = image_pipeline ]] && arguments=(2 256 4)
    if step "compile $example" "$cc" -std=c11 -O2 -I "$source/include" "$source/examples/$example.c" "$build/lib/libfarfault.a" -ldl -lm -pthread -o "$work/$example"; then
      if [[ $driver = virtual ]]; then export FARFAULT_DRIVER=$build/lib/farfault/libcuda.so.1; fi
      pushd "$work" >/dev/null
      step "example $example" "./$example" "${arguments[@]}"
      popd >/dev/null
      export FARFAULT_DRIVER=$driver
    fi
  done
  # Tests that take the driver from FARFAULT_DRIVER carry the label gpu.
  if [[ $(ctest --test-dir "$build" -N -L '^gpu$' 2>/dev/null | sed -n 's/^Total Tests: //p') -gt 0 ]]; then
    step "library's tests" ctest --test-dir "$build" -L '^gpu$' -E '^conformance/' --output-on-failure
  fi
  if [[ -x $build/bench/bench_launch ]] && step "bench_launch" "$build/bench/bench_launch"; then
    awk '$1 ~ /^[0-9]+$/ && NF == 6 {
        printf "\"host: cuLaunchKernel with %d pointers\",%.3f,us,,,bench_launch\n", $1, $2 / 1000
        printf "\"host: ff_launch with %d uses\",%.3f,us,,,bench_launch\n", $1, $4 / 1000
      }' "$work/log" | rows
  fi
}

part_benches() {
  local arguments=()
  [[ -z $quick ]] || arguments=(--repeat 2)
  if step "bench managed" "$farfault" bench managed "${arguments[@]}" --csv "$work/managed.csv"; then
    awk -F, 'NR > 1 && $1 !~ /^paper/ && $4 != "" { printf "\"managed: %s, %s pages touched\",%s,us,,,farfault bench managed\n", $1, $2, $4 }
      NR > 1 && $1 !~ /^paper/ && $5 != "" { printf "\"managed: %s, %s pages not touched\",%s,us,,,farfault bench managed\n", $1, $2, $5 }' "$work/managed.csv" | rows
  fi
  arguments=()
  [[ -z $quick ]] || arguments=(--data 16M --tile 512K --shape chain)
  if [[ $driver = virtual ]]; then
    arguments+=(--machine v100)
  elif [[ -z $oversubscribe ]]; then
    arguments+=(--only kernels,transfers,streams,segments)
  fi
  if step "bench pipeline" "$farfault" bench pipeline "${arguments[@]}" --csv "$work/pipeline.csv"; then
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
      { key = "pipeline: " $(column["shape"]) ", " $(column["program"])
        printf "\"%s\",%s,s,,,farfault bench pipeline\n", key, $(column["seconds"])
        if ($(column["ratio"]) != "") printf "\"%s, over streams\",%s,,,,farfault bench pipeline\n", key, $(column["ratio"]) }' "$work/pipeline.csv" | rows
  fi
}

late=()
for part in "${parts[@]}"; do
  if [[ -n $total ]] && ((SECONDS >= total)); then
    late+=("$part")
    continue
  fi
  "part_$part"
  save
done
[[ ${#late[@]} -eq 0 ]] || say "no time was left for ${late[*]}"
say "$file.csv: $(($(wc -l <"$file.csv") - 1)) rows, $failures failures"
[[ $failures -eq 0 ]]
