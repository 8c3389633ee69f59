#!/usr/bin/env bash
# test.sh BUILD [quick|test|check-all]: what must hold. tests/levels.tsv says which tests only a longer one runs.
#   quick      the fast tests on the build that users get (BUILD)
#   test       1. the tests on BUILD, which it builds, but for those that run with checks (label `checked`)
#              2. a second build by clang (BUILD-check) with address and undefined-behaviour checks and fuzzing in one, made beside these:
#                 unit tests, whole-program tests without workloads, each fuzz target for its share of some seconds
#              The first has the interpreter for this machine's best instruction set, the second also for the baseline, which is compiled with checks.
#   check-all  the same with every test and instruction set in both, more random programs, four minutes of fuzzing, and the branch-coverage figure
#              (BUILD-check is made anew); and two further, small builds with ThreadSanitizer: BUILD-threads, libfarfault called from several threads on
#              the model driver, and BUILD-races, what the virtual GPU's threads and those of simulations share
# The last line is "N passed, N failed". JOBS: how many at once; FUZZ_SECONDS: for all targets together.
# WERROR=OFF: a warning does not end the builds but the first.
set -uo pipefail
build=$1
mode=${2:-test}
check=$build-check
jobs=${JOBS:-$(nproc)}
werror=${WERROR:-ON}
levels=$(dirname "$0")/../tests/levels.tsv
case $mode in
  quick) later='test|all' ;;
  # without null, alignment: half the time to compile and a quarter of that to run; a null pointer ends the program all the same, at least in its first page
  test) later=all fuzz_seconds=${FUZZ_SECONDS:-11} random_programs=250 coverage=OFF isas=baseline,native without=null,alignment ;;
  check-all) later=none fuzz_seconds=${FUZZ_SECONDS:-240} random_programs=2000 coverage=ON isas=all without= ;;
  *) sed -n '2,13s/^# //p' "$0" >&2; exit 64 ;;
esac
passed=0 failed=0
# A python3 that is a script (pyenv's) takes three times as long to start as the interpreter that it finds, and the tests start it hundreds of times.
interpreter=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null)
[[ -z $interpreter || $(readlink -f "$interpreter") == $(readlink -f "$(command -v python3)") ]] || export PATH=$(dirname "$interpreter"):$PATH
say() { printf '\n== %s (after %d s)\n' "$1" $SECONDS; }
count() { if [[ $1 -eq 0 ]]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $2"; fi; }

# The names, as a regular expression, of those that this mode leaves out in BUILD (column 2 of the levels) or BUILD-check (column 3).
left_out() { awk -F'\t' -v column="$1" -v later="^($later|-)\$" '!/^#/ && $column ~ later { printf "%s%s", (n++ ? "|" : ""), $1 }' "$levels"; }

names() { sed -n 's/^ *Test *#[0-9]*: //p' | sort; }
labelled() { ctest --test-dir "$1" -N -L "^$2$" | names; }

# Runs the tests of one build, and adds what ctest counted to the sums. One more at once than there are processors: some of them wait.
run_tests() { # run_tests BUILD COLUMN [LABEL]: without those that have the label
  local where=$1 line out label=${3-}
  out=$(left_out "$2")
  [[ -z $out ]] || printf 'left out here, by %s: %s\n' tests/levels.tsv "${out//|/ }" | fold -s -w 150
  [[ -z $label ]] || printf 'left to %s: %d tests\n' "$check" "$(labelled "$where" "$label" | wc -l)"
  ctest --test-dir "$where" -j $((jobs + 1)) --output-on-failure ${out:+-E "^($out)$"} ${label:+-LE "^$label$"} 2>&1 | tee "$where/tests.log" | grep -Ev '^ *Start |Passed +[0-9.]+ sec$'
  line=$(grep -E '^[0-9]+% tests passed, ' "$where/tests.log" | tail -1)
  if [[ $line =~ ([0-9]+)\ tests?\ failed\ out\ of\ ([0-9]+) ]]; then
    failed=$((failed + BASH_REMATCH[1]))
    passed=$((passed + BASH_REMATCH[2] - BASH_REMATCH[1]))
  else
    count 1 "no tests ran in $where"
  fi
}

finish() {
  say "done"
  echo "$passed passed, $failed failed"
  [[ $failed -eq 0 ]]
  exit
}

[[ $mode != test ]] || export FARFAULT_FEWER=1 # of what is repeated only to see more of the same: tests/unit/share.h, tests/programs/common.sh
targets=() label=
if [[ $mode != quick ]]; then
  mkdir -p "$check"
  CC=clang cmake -S . -B "$check" -G Ninja -DFARFAULT_WERROR="$werror" -DFARFAULT_SANITIZE=ON -DFARFAULT_SANITIZE_WITHOUT=$without -DFARFAULT_FUZZ=ON -DFARFAULT_COVERAGE=$coverage -DFARFAULT_WORKLOADS=OFF \
    -DFARFAULT_ISAS=$isas -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG="-O1 -g1" >"$check/build.log" 2>&1
  configured=$?
  [[ $mode != test || $configured -ne 0 ]] || targets=(--target tested) label=checked
  say "$build"
  cmake --build "$build" -j "$jobs" "${targets[@]}" || exit 1
  if [[ $configured -eq 0 ]]; then # in what time the tests of BUILD leave over: many of them wait
    nice -n 15 cmake --build "$check" -j "$jobs" "${targets[@]}" >>"$check/build.log" 2>&1 &
    building=$!
  fi
fi

say "tests of $build"
run_tests "$build" 2 ${label:+"$label"}
[[ $mode != quick ]] || finish

say "build with checks"
if [[ $configured -eq 0 ]] && wait "$building"; then
  count 0
  if [[ -n $label ]]; then
    { ctest --test-dir "$check" -N | names; ls "$check/fuzz" | sed 's/^fuzz_/fuzz\//'; } >"$check/tests.txt"
    missing=$(labelled "$build" "$label" | grep -vxFf "$check/tests.txt" | tr '\n' ' ')
    [[ -z $missing ]]
    count $? "left to $check, which does not have them: $missing"
  fi
  # malloc_context_size, quarantine_size_mb: less than by default, which takes a tenth of the tests' time.
  # intercept_tls_get_addr=0: clang 14's leak check takes what lies before a library's thread-local block for its bounds, and dies of it now and then.
  export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:intercept_tls_get_addr=0:malloc_context_size=8:quarantine_size_mb=32 UBSAN_OPTIONS=print_stacktrace=1
  export FARFAULT_PROGRAMS=$random_programs # for libfarfault: fewer than above
  export LLVM_PROFILE_FILE="$PWD/$check/profiles/%4m.profraw" # of coverage
  rm -rf "$check/profiles"
  say "tests with checks"
  run_tests "$check" 3

  say "fuzzing for $fuzz_seconds s"
  fuzzers=("$check"/fuzz/*)
  each=$((fuzz_seconds / ((${#fuzzers[@]} + jobs - 1) / jobs)))
  [[ $each -gt 0 ]] || each=1 # 0 has no end
  fuzz() { # fuzz TARGET SECONDS: new inputs go to a folder of their own, crashing ones into BUILD-check
    local name
    name=$(basename "$1")
    mkdir -p "$check/found/$name"
    "$1" -max_total_time="$2" -rss_limit_mb=4096 -timeout=20 -verbosity=0 -artifact_prefix="$check/$name-" "$check/found/$name" \
      "tests/fuzz/corpus/${name#fuzz_}" >"$check/$name.log" 2>&1 && exit 0
    tail -40 "$check/$name.log"
    exit 1
  }
  running=()
  for target in "${fuzzers[@]}"; do
    if [[ ${#running[@]} -ge $jobs ]]; then
      wait "${running[0]%% *}"
      count $? "${running[0]#* }"
      running=("${running[@]:1}")
    fi
    (fuzz "$target" "$each") &
    running+=("$! $target")
  done
  for one in "${running[@]}"; do
    wait "${one%% *}"
    count $? "${one#* }"
  done

  if [[ $coverage == ON ]]; then
    say "coverage"
    scripts/coverage.sh "$check"
    count $? "the coverage figure"
  fi
else
  tail -30 "$check/build.log"
  count 1 "the build with checks"
fi

if [[ $mode == check-all ]]; then
  say "libfarfault with ThreadSanitizer"
  threads=$build-threads
  mkdir -p "$threads"
  if CC=clang cmake -S . -B "$threads" -G Ninja -DFARFAULT_WERROR="$werror" -DFARFAULT_WORKLOADS=OFF -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS=-fsanitize=thread \
      -DCMAKE_C_FLAGS_DEBUG="-O1 -g1" >"$threads/build.log" 2>&1 &&
    cmake --build "$threads" -j "$jobs" --target runtime_test_random_programs runtime_test_model_driver >>"$threads/build.log" 2>&1; then
    export TSAN_OPTIONS=halt_on_error=1 FARFAULT_CHECK=2
    "$threads/tests/runtime_test_model_driver" >"$threads/tests.log" 2>&1
    count $? "the model driver with ThreadSanitizer: $threads/tests.log"
    for kind in threads threads_failures; do
      "$threads/tests/runtime_test_random_programs" --kind $kind --seed 1 --count 120 >>"$threads/tests.log" 2>&1
      count $? "random programs ($kind) with ThreadSanitizer: $threads/tests.log"
    done
  else
    tail -30 "$threads/build.log"
    count 1 "the build with ThreadSanitizer"
  fi

  say "the virtual GPU with ThreadSanitizer"
  races=$build-races
  # Those in which threads meet; all unit tests of base/, trace/, exec/, session/, check/ and driver/ can be built there. Not base_test_ending, whose
  # second signal comes late, as ThreadSanitizer keeps signals back; nor driver_test_contexts, which loads a library that would have to be built, too.
  raced=(driver_test_{threads,behind,behind_simulated,green_far,graph_values,graph_batches,graph_simulated,device_runtime,device_graph,devices,launch,kernels}
    driver_test_{overlap,process,stream,stream_simulated,forks,ipc,declare,graph_far,libcuda_rare,multicast,nvtx,pool,private_runtimes,shared,shared_pool}
    driver_test_{site,touch,vmm} exec_test_core_launch session_test_session session_test_session_check trace_test_stream)
  mkdir -p "$races"
  if ! setarch -R true 2>/dev/null; then
    echo "left out: this system keeps programs from having the same addresses each time (setarch -R), which ThreadSanitizer needs"
  elif cmake -S . -B "$races" -G Ninja -DFARFAULT_WERROR="$werror" -DFARFAULT_WORKLOADS=OFF -DFARFAULT_ISAS=native -DFARFAULT_SANITIZE_THREADS=ON >"$races/build.log" 2>&1 &&
    cmake --build "$races" -j "$jobs" --target "${raced[@]}" >>"$races/build.log" 2>&1; then
    export FARFAULT_MACHINES=$PWD/machines FARFAULT_CHECK=2 TSAN_OPTIONS=halt_on_error=1:die_after_fork=0:report_thread_leaks=0 # tests fork, and end while threads run
    for test in "${raced[@]}"; do
      setarch -R "$races/tests/$test" >"$races/$test.log" 2>&1
      count $? "$test with ThreadSanitizer: $races/$test.log"
    done
  else
    tail -30 "$races/build.log"
    count 1 "the build of the virtual GPU with ThreadSanitizer"
  fi
fi

finish
