#!/usr/bin/env bash
# test.sh BUILD: everything that must hold, from the fast checks to the long ones:
#   1. all tests on the build that users get           (BUILD)
#   2. unit tests with address and undefined-behaviour checks, and fuzzing for about a minute (BUILD-sanitize, BUILD-fuzz)
#   3. the branch-coverage figure                      (BUILD-coverage)
# The last line is "N passed, N failed". JOBS: how many at once.
set -uo pipefail
build=$1
jobs=${JOBS:-$(nproc)}
fuzz_seconds=${FUZZ_SECONDS:-60}
passed=0 failed=0
started=$SECONDS
say() { printf '\n== %s (%d s)\n' "$1" $((SECONDS - started)); }
add() { if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $*"; fi; }

# Adds what ctest counted in its log to the sums.
count_tests() {
  local line
  line=$(grep -E '^[0-9]+% tests passed, [0-9]+ tests? failed out of [0-9]+' "$1" | tail -1)
  if [[ $line =~ ([0-9]+)\ tests?\ failed\ out\ of\ ([0-9]+) ]]; then
    failed=$((failed + BASH_REMATCH[1]))
    passed=$((passed + BASH_REMATCH[2] - BASH_REMATCH[1]))
  else
    failed=$((failed + 1))
    echo "FAILED: no tests ran ($1)"
  fi
}
run_tests() { # run_tests BUILD ARGUMENTS...
  local where=$1
  shift
  ctest --test-dir "$where" -j "$jobs" --output-on-failure "$@" 2>&1 | tee "$where/tests.log" | grep -v '^ *Start '
  count_tests "$where/tests.log"
}

say "tests"
run_tests "$build"

say "unit tests with sanitizers"
if add cmake -S . -B "$build-sanitize" -G Ninja -DFARFAULT_SANITIZE=ON -DFARFAULT_WORKLOADS=OFF -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG="-O1 -g1" >/dev/null &&
  cmake --build "$build-sanitize" -j "$jobs" -- -k 0 >"$build-sanitize/build.log" 2>&1; then
  ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 run_tests "$build-sanitize"
else
  tail -30 "$build-sanitize/build.log"
  add false "the build with sanitizers"
fi

if [[ -f tests/fuzz/CMakeLists.txt ]]; then
  say "fuzzing"
  if CC=clang cmake -S . -B "$build-fuzz" -G Ninja -DFARFAULT_SANITIZE=ON -DFARFAULT_FUZZ=ON -DFARFAULT_WORKLOADS=OFF >/dev/null &&
    cmake --build "$build-fuzz" -j "$jobs" --target fuzz >"$build-fuzz/build.log" 2>&1; then
    targets=("$build-fuzz"/fuzz/*)
    each=$((fuzz_seconds * jobs / ${#targets[@]} / jobs))
    for target in "${targets[@]}"; do
      name=$(basename "$target")
      add "$target" -max_total_time="$each" -rss_limit_mb=4096 -timeout=20 -print_final_stats=0 -verbosity=0 "tests/fuzz/corpus/${name#fuzz_}"
    done
  else
    tail -30 "$build-fuzz/build.log" 2>/dev/null
    add false "the build of the fuzz targets"
  fi
fi

say "coverage"
scripts/coverage.sh "$build-coverage" "$jobs"

say "done"
echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
