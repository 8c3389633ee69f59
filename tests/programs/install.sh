#!/usr/bin/env bash
# An installation works from where it is: machines, workloads and libraries are found. $3: the build folder.
source "$(dirname "$0")/common.sh"

run cmake --install "$3" --prefix "$work/place with spaces"
expect_status 0
installed="$work/place with spaces/bin/farfault"
run "$installed" list machines
expect_status 0
expect_out "$(realpath "$work/place with spaces")"
# LD_LIBRARY_PATH and LD_PRELOAD know no quotes: a link without spaces and colons stands for the folder.
run "$installed" run --memory copy --machine gtx480 /usr/bin/env
expect_status 0
expect_out "LD_LIBRARY_PATH=$(realpath "$TMPDIR")/farfault-"
if [[ -e $3/share/farfault/report.html ]]; then
  run "$installed" report "$source/tests/unit/report/golden/sample.json" --html page.html
  expect_status 0
  expect grep -q 'id="data">{"kind":"run","file":"sample.json",' page.html
fi
for place in "place with spaces" "place:with;colons"; do
  [[ -d $work/$place ]] || cp -r "$work/place with spaces" "$work/$place"
  run "$work/$place/bin/farfault" run --memory copy "$3/tests/programs/with_rpath"
  expect_status 0
  expect_out "preload: $(realpath "$TMPDIR")/farfault-"
done
mkdir "$work/tmp with spaces"
TMPDIR="$work/tmp with spaces" run "$installed" run --memory copy /usr/bin/env
expect_status 1
expect_err "set TMPDIR"
if [[ -x $work/place\ with\ spaces/lib/farfault/workloads/vectoradd ]]; then
  run "$installed" list workloads
  expect_out "place with spaces/lib/farfault/workloads/vectoradd' "
  run "$installed" run --memory copy "$work/place with spaces/lib/farfault/workloads/vectoradd" 1000
  expect_status 0
  expect_out "PASSED"
  expect_err "on h200"
fi
finish
