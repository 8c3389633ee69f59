#!/usr/bin/env bash
# test.sh BUILD: everything that must hold.
#   1. all tests on the build that users get (BUILD)
#   2. a second build by clang (BUILD-check) with address and undefined-behaviour checks, fuzzing and coverage in one:
#      unit tests, whole-program tests without workloads, each fuzz target for its share of a minute, the branch-coverage figure
#   3. a third, small one (BUILD-threads) with ThreadSanitizer: libfarfault, called from several threads on the model driver
# The last line is "N passed, N failed". JOBS: how many at once; FUZZ_SECONDS: for all targets together.
set -uo pipefail
build=$1
check=$build-check
jobs=${JOBS:-$(nproc)}
fuzz_seconds=${FUZZ_SECONDS:-60}
passed=0 failed=0
say() { printf '\n== %s (after %d s)\n' "$1" $SECONDS; }
count() { if [[ $1 -eq 0 ]]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $2"; fi; }

# Adds what ctest counted to the sums.
run_tests() { # run_tests BUILD ARGUMENTS...
  local where=$1 line
  shift
  ctest --test-dir "$where" -j "$jobs" --output-on-failure "$@" 2>&1 | tee "$where/tests.log" | grep -Ev '^ *Start |Passed +[0-9.]+ sec$'
  line=$(grep -E '^[0-9]+% tests passed, ' "$where/tests.log" | tail -1)
  if [[ $line =~ ([0-9]+)\ tests?\ failed\ out\ of\ ([0-9]+) ]]; then
    failed=$((failed + BASH_REMATCH[1]))
    passed=$((passed + BASH_REMATCH[2] - BASH_REMATCH[1]))
  else
    count 1 "no tests ran in $where"
  fi
}

say "tests of $build"
run_tests "$build"

say "build with checks"
mkdir -p "$check"
if CC=clang cmake -S . -B "$check" -G Ninja -DFARFAULT_SANITIZE=ON -DFARFAULT_FUZZ=ON -DFARFAULT_COVERAGE=ON -DFARFAULT_WORKLOADS=OFF \
    -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG="-O1 -g1" >"$check/build.log" 2>&1 &&
  cmake --build "$check" -j "$jobs" >>"$check/build.log" 2>&1; then
  count 0
  # intercept_tls_get_addr=0: clang 14's leak check takes what lies before a library's thread-local block for its bounds, and dies of it now and then.
  export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:intercept_tls_get_addr=0 UBSAN_OPTIONS=print_stacktrace=1
  export FARFAULT_PROGRAMS=2000 # random programs for libfarfault: a third of those above
  export LLVM_PROFILE_FILE="$PWD/$check/profiles/%4m.profraw"
  rm -rf "$check/profiles"
  say "tests with checks"
  # Without those that mostly run LLVM, which is not checked, or measure, and take minutes here.
  run_tests "$check" -E '^(conformance/(generated|compiled|compiled_wide)|compiled/sweep|driver/test_symbols|programs/(executables|bench))$'

  say "fuzzing for $fuzz_seconds s"
  targets=("$check"/fuzz/*)
  each=$((fuzz_seconds / ((${#targets[@]} + jobs - 1) / jobs)))
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
  for target in "${targets[@]}"; do
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

  say "coverage"
  scripts/coverage.sh "$check"
  count $? "the coverage figure"
else
  tail -30 "$check/build.log"
  count 1 "the build with checks"
fi

say "libfarfault with ThreadSanitizer"
threads=$build-threads
mkdir -p "$threads"
if CC=clang cmake -S . -B "$threads" -G Ninja -DFARFAULT_WORKLOADS=OFF -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS=-fsanitize=thread \
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

say "done"
echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
