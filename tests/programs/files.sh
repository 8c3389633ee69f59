#!/usr/bin/env bash
# Files that are missing, broken, or of the wrong kind: status 2 with the file's name; programs that cannot be run: 126, 127.
source "$(dirname "$0")/common.sh"

bad_file() { # bad_file EXPECTED ARGUMENTS...
  local expected=$1
  shift
  run "$farfault" "$@"
  expect_status 2
  expect_no_out
  expect_err "$expected"
}
bad_file "no/such: cannot open: No such file" report no/such
bad_file "$work: is a directory" report "$work"
echo '{"schema": 1,' >broken.json
bad_file "broken.json:2: not JSON" report broken.json
echo '{"schema": 7}' >later.json
bad_file "later.json: has schema 7; this version reads schema 1" report later.json
head -c 5000 /dev/urandom >noise
bad_file "noise" report noise
bad_file "no/such: cannot open" disasm no/such
bad_file "$work: is a directory" disasm "$work"
printf '.version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() {\n  frob.u32 5\n' >broken.ptx
bad_file "broken.ptx:" disasm broken.ptx
bad_file "noise" disasm noise
: >empty
bad_file "empty" disasm empty
bad_file "/bin/true" disasm /bin/true
head -c 3000 /bin/true >cut
bad_file "cut" disasm cut
echo 'core: {sm_count: 15}' >broken.yaml
bad_file "broken.yaml:1:18: write 'sm_count: {value:" run --machine broken.yaml /bin/true
bad_file "no/such.yaml: cannot open" run --machine no/such.yaml /bin/true

not_run() { # not_run STATUS EXPECTED ARGUMENTS...
  local wanted=$1 expected=$2
  shift 2
  run "$farfault" run "$@"
  expect_status "$wanted"
  expect_no_out
  expect_err "$expected"
}
not_run 127 "no/such: No such file or directory" no/such
not_run 127 "no-such-program-anywhere: not found on PATH" no-such-program-anywhere
printf '#!/bin/sh\n' >plain
not_run 126 "./plain: is not executable" ./plain
not_run 126 "$work: is a directory" "$work"
chmod +x plain
not_run 127 "plain: not found on PATH; for the file in this folder write ./plain" plain
printf '#!/no/such/interpreter\n' >orphan
chmod +x orphan
not_run 126 "./orphan: cannot be executed: No such file or directory" ./orphan
cp noise noise-program
chmod +x noise-program
not_run 126 "neither a program for this machine nor a script" ./noise-program
not_run 1 "no/folder/x: cannot write there" -o no/folder/x /bin/true
not_run 1 "no/folder/x: cannot write there" --csv no/folder/x /bin/true
not_run 1 "$work: cannot write there: it is a folder" -o "$work" /bin/true
not_run 1 "new/: cannot write there: it is a folder" --json new/ /bin/true
expect test ! -e new
# JSON on both of its options, and devices, may be named twice.
run "$farfault" run -o both --json both --csv /dev/null /bin/true
expect_status 1 # nothing to write, not the names
expect_err "no file was written"

# What cannot be written is said, by every command.
if [[ -w /dev/full ]]; then
  for arguments in "--help" "--version" "run --help" "list counters" "list machines --json -"; do
    # shellcheck disable=SC2086 # the arguments are words
    "$farfault" $arguments >/dev/full 2>err
    status=$?
    : >out
    shown="farfault $arguments, to a full disk"
    expect_status 1
    expect_err "cannot write the output: No space left on device"
  done
fi
finish
