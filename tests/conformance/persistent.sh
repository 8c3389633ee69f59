#!/usr/bin/env bash
# Every conformance case's kernel, rewritten to run on a range of SMs, gives what it gave; persistent_refused.txt names those that are
# not rewritten, with the reason (without the numbers of lines, which move when cases are added).
#   tests/conformance/persistent.sh build/tests/conformance_runner tests/conformance
set -u
runner=$1
cd "$2" || exit 1
mapfile -t folders < <(find . -mindepth 2 -name '*.ptx' -not -path './wrong/*' -printf '%h\n' | sort -u)
output=$("$runner" --isa baseline --persistent "${folders[@]}")
status=$?
grep -v ': not rewritten: ' <<<"$output"
diff persistent_refused.txt <(grep ': not rewritten: ' <<<"$output" | sed -E 's/:[0-9]+: /: /; s/ at line [0-9]+//') && [ $status -eq 0 ]
