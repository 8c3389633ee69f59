#!/usr/bin/env bash
# A signal at each call of the C library that touches files or processes, in farfault's process: it ends, the old file is as it was or a whole new one
# is there, and no part of a trace, no folder in TMPDIR stays. $3: the folder of torture_program.
source "$(dirname "$0")/../programs/common.sh"
torture=$3
if [[ ! -e $torture/torture_fail.so ]]; then # a build with a sanitizer
  expect test -x "$torture/torture_program"
  pass
  finish
fi
program=("$torture/torture_program" 3 20)
run "$farfault" record -o old.fft "${program[@]}"
expect_status 0
cp old.fft app.fft
echo old >old.json

# stopped FILE COMMAND...: the command writes FILE; a SIGTERM comes at its first, second, ... call of each kind, until there is none left.
stopped() {
  local file=$1 kind n before
  shift
  for kind in folder open write pipe fork rename unlink; do
    for ((n = 1; n < 60; n = n < 6 ? n + 1 : n + n / 3)); do
      cp "old.${file#*.}" "$file"
      : >log
      { run env LD_PRELOAD="$torture/torture_fail.so" TORTURE_FAIL="$kind:$n=15" TORTURE_FAIL_IN=farfault TORTURE_FAIL_LOG="$work/log" timeout 60 "$farfault" "$@"; } 2>shell
      if [[ ! -s log ]]; then break; fi
      shown="farfault $* with a signal at $kind call $n"
      [[ $status -eq 143 || $status -eq 0 ]] && pass || wrong "$shown: status $status"
      if ! cmp -s "old.${file#*.}" "$file"; then
        case $file in
          *.fft) expect "$farfault" trace check "$file" >/dev/null ;;
          *) expect python3 -c "import json; json.load(open('$file'))" ;;
        esac
      fi
      before=$failed
      expect test -z "$(ls -A "$TMPDIR")"
      expect test -z "$(compgen -G '*.part-*')"
      [[ $failed -eq $before ]] || echo "  after: $shown"
      rm -rf "${TMPDIR:?}"/* ./*.part-*
    done
  done
  expect test "$n" -gt 1 # there were calls
}

stopped base.fft record -o base.fft "${program[@]}"
stopped base.json run --memory copy --json base.json "${program[@]}"
stopped base.json sim --memory copy --json base.json app.fft
stopped base.json memcheck --report-api-errors no --json base.json "${program[@]}"
finish
