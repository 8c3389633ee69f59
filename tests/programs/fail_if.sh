#!/usr/bin/env bash
# --fail-if, --baseline and --junit of farfault run and sim: what makes the exit status 3, what is refused before anything runs, the file of verdicts.
source "$(dirname "$0")/common.sh"
workloads=$3
program=$workloads/vectoradd
common=(--memory "copy,uvm" --machine gtx480)

run "$farfault" run "${common[@]}" -o main.ffr "$program" 20000
expect_status 0
faults=$(python3 -c 'import json; print(json.load(open("main.ffr"))["runs"][1]["faults"])')
expect test "$faults" -gt 0
run "$farfault" record -o p.fft "$program" 20000

# ---- both commands, both sides of the edge ----
for how in "run $program 20000" "sim p.fft"; do
  read -r command what <<<"$how"
  # shellcheck disable=SC2086 # words
  {
    run "$farfault" "$command" "${common[@]}" --fail-if "uvm.faults > $faults" $what
    expect_status 0
    run "$farfault" "$command" "${common[@]}" --fail-if "uvm.faults >= $faults" $what
    expect_status 3
    expect_err "farfault: --fail-if 'uvm.faults >= $faults': it holds: uvm.faults = $faults"
    run "$farfault" "$command" "${common[@]}" --baseline main.ffr --fail-if 'copy.time > baseline.copy.time' --fail-if 'uvm.time != baseline.uvm.time' $what
    expect_status 0
    run "$farfault" "$command" "${common[@]}" --baseline main.ffr --fail-if 'copy.time > 0.9 * baseline.copy.time' --fail-if '1 > 2' $what
    expect_status 3
    run "$farfault" "$command" "${common[@]}" --fail-if 'uvm.time / copy.faults > 1us' $what # cannot be evaluated
    expect_status 3
    expect_err "a division by 0"
    run "$farfault" "$command" "${common[@]}" --junit found.xml --fail-if 'uvm.faults > 0' --fail-if 'uvm.faults < 0' --fail-if '1 / copy.faults > 1' $what
    expect_status 3
  }
  expect python3 -c 'import xml.etree.ElementTree as tree
suites = list(tree.parse("found.xml").getroot())
assert len(suites) == 1 and suites[0].attrib["tests"] == "4" and suites[0].attrib["failures"] == "1" and suites[0].attrib["errors"] == "1"
cases = list(suites[0])
assert [case[0].tag for case in cases] == ["system-out", "failure", "system-out", "error"], [case[0].tag for case in cases]
assert cases[1].attrib["name"] == "uvm.faults > 0"'
done

# ---- the program's own status stands ----
cat >three.sh <<END
#!/bin/sh
"$program" 20000
exit 5
END
chmod +x three.sh
run "$farfault" run "${common[@]}" --junit found.xml --fail-if '1 < 2' ./three.sh
expect_status 5
expect grep -qF 'tests="2" failures="2"' found.xml
run "$farfault" run "${common[@]}" --fail-if 'uvm.faults > 1' --junit found.xml /bin/true
expect_status 3
expect_err "--fail-if: there are no numbers"
expect grep -qF 'errors="1"' found.xml
run "$farfault" run "${common[@]}" --junit found.xml "$program" 20000 # without conditions: how the program ended
expect_status 0
expect grep -qF 'tests="1" failures="0"' found.xml

# ---- refused before anything runs ----
refused() { # refused STATUS MESSAGE OPTION...
  local wanted=$1 message=$2
  shift 2
  run "$farfault" run "${common[@]}" "$@" "$program" 20000
  expect_status "$wanted"
  expect_err "$message"
  expect_no_out
}
refused 64 "farfault run: --fail-if: condition:1:14: the condition ends" --fail-if 'uvm.faults > '
expect_err '               ^'
refused 64 "--fail-if: condition:1:1: 'tbn' is not simulated" --fail-if 'tbn.faults > 1'
refused 64 "--baseline FILE names one" --fail-if 'uvm.faults > baseline.uvm.faults'
refused 64 "--baseline main.ffr compares nothing without a condition: add --fail-if" --baseline main.ffr
refused 2 "nowhere.ffr: cannot open" --baseline nowhere.ffr --fail-if 'uvm.faults > baseline.uvm.faults'
refused 2 "is a trace of a recorded program" --baseline p.fft --fail-if 'uvm.faults > baseline.uvm.faults'
refused 64 "is the baseline" --baseline main.ffr -o ./main.ffr --fail-if 'uvm.faults > 1'
refused 64 "is named twice" --junit same --json same --fail-if 'uvm.faults > 1'
refused 1 "nowhere/found.xml" --junit nowhere/found.xml --fail-if 'uvm.faults > 1'
run "$farfault" run "${common[@]}" --junit /dev/full --fail-if '1 > 2' "$program" 20000
expect_status 1
expect_err "--junit: /dev/full"
finish
