#!/usr/bin/env bash
# Every conformance file's kernel, rewritten to run on a range of SMs, gives what it gave; persistent_refused.txt names those that are
# not rewritten, with the reason.
#   tests/conformance/persistent.sh build/tests/conformance_runner tests/conformance
set -u
runner=$1
cd "$2" || exit 1
mapfile -t folders < <(find . -mindepth 2 -name '*.ptx' -not -path './wrong/*' -printf '%h\n' | sort -u)
output=$("$runner" --isa baseline --persistent "${folders[@]}")
status=$?
grep -v ': not rewritten: ' <<<"$output"
diff persistent_refused.txt <(grep ': not rewritten: ' <<<"$output") && [ $status -eq 0 ]
