#!/usr/bin/env bash
# An installation works from where it is: machines, workloads and libraries are found. $3: the build folder.
source "$(dirname "$0")/common.sh"

run cmake --install "$3" --prefix "$work/place with spaces"
expect_status 0
installed="$work/place with spaces/bin/farfault"
run "$installed" list machines
expect_status 0
expect_out "$(realpath "$work/place with spaces")"
run "$installed" run --memory copy --machine gtx480 /usr/bin/env
expect_status 0
expect_out "LD_LIBRARY_PATH=$(realpath "$work/place with spaces/lib/farfault")"
if [[ -x $work/place\ with\ spaces/lib/farfault/workloads/vectoradd ]]; then
  run "$installed" list workloads
  expect_out "place with spaces/lib/farfault/workloads/vectoradd"
  run "$installed" run --memory copy "$work/place with spaces/lib/farfault/workloads/vectoradd" 1000
  expect_status 0
  expect_out "PASSED"
  expect_err "on h200"
fi
finish
