#!/usr/bin/env bash
# The GitHub Action, the example workflow, the Containerfile: they parse, name each other's parts rightly, their scripts are shell, and the script that
# runs a program does what action.yml says. $3: the workloads, $4: yaml_flat.
source "$(dirname "$0")/common.sh"
workloads=$3
flat=$4
value() { sed -n "s/^$1	//p" out; }

# ---- action.yml ----
run "$flat" "$source/action.yml"
expect_status 0
cp out action
expect test "$(value runs.using)" = composite
expect test "$(value name)" = farfault
inputs=$(sed -n 's/^inputs\.\([a-z-]*\)\.description	.*/\1/p' action)
expect test "$(wc -w <<<"$inputs")" -ge 8
for input in $inputs; do expect grep -q "inputs\.$input\b" <(grep '^runs' action); done        # each is used
for used in $(grep '^runs' action | grep -o 'inputs\.[a-z-]*' | sort -u); do expect grep -q "^${used}\.default	" action; done # each used one is there
grep '^runs' action | sed -n 's/^runs.steps.[0-9]*.env.\(FARFAULT_ACTION_[A-Z_]*\)	.*/\1/p' | sort -u >given
grep -oh 'FARFAULT_ACTION_[A-Z_]*' "$source"/scripts/action-*.sh | sort -u >read
expect cmp given read
expect test "$(grep -c '^runs.steps.[0-9]*.run	.*\${{' action)" -eq 0 # no input is a part of a script's text
for step in 0 1; do
  sed -n "s/^runs\.steps\.$step\.run	//p" action >script
  expect test -s script
  expect bash -n script
  name=$(sed -n 's/.*SOURCE\/\(scripts[^"]*\)".*/\1/p' script)
  expect test -x "$source/$name"
  expect bash -n "$source/$name"
done

# ---- the workflow ----
run "$flat" "$source/examples/ci/farfault.yml"
expect_status 0
cp out workflow
expect grep -q '	actions/checkout@' workflow
expect grep -q '	OWNER/farfault@' workflow
step=$(sed -n 's/^jobs\.memory\.steps\.\([0-9]*\)\.uses	OWNER.*/\1/p' workflow)
for given in $(sed -n "s/^jobs\.memory\.steps\.$step\.with\.\([a-z-]*\)	.*/\1/p" workflow); do expect grep -q "^inputs\.$given\.default	" action; done
for output in $(grep -o 'steps\.memory\.outputs\.[a-z]*' workflow | sed 's/.*\.//' | sort -u); do expect grep -q "^outputs\.$output\.value	" action; done
sed -n 's/^jobs\.memory\.steps\.[0-9]*\.run	//p' workflow | while IFS= read -r line; do
  printf '%b\n' "${line//\\n/\\n}" | sed 's/\${{[^}]*}}/x/g' >script
  bash -n script || echo broken
done >broken 2>&1
expect test ! -s broken

# ---- the Containerfile ----
sed -e ':join; /\\$/ { N; s/\\\n//; b join }' -e '/^#/d; /^$/d' "$source/examples/ci/Containerfile" >lines
expect test "$(grep -vcE '^(FROM|COPY|RUN|WORKDIR|ENTRYPOINT|CMD) ' lines)" -eq 0
expect test "$(sed -n '1s/ .*//p' lines)" = FROM
sed -n 's/^RUN //p' lines >script
expect bash -n script
version=$(sed -n 's/^project(farfault VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")
pattern=$(sed -n 's/^COPY \(.*\) .*/\1/p' lines)
# shellcheck disable=SC2254 # a pattern
case farfault_${version}_amd64.deb in $pattern) pass ;; *) wrong "the package's name is not $pattern" ;; esac
expect test "$(sed -n 's/^ENTRYPOINT //p' lines | python3 -c 'import json, sys; print(json.load(sys.stdin)[0])')" = farfault

# ---- what the action runs ----
mkdir bin
ln -s "$farfault" bin/farfault
act() { # act NAME=VALUE...
  rm -rf results output
  run env PATH="$work/bin:$PATH" GITHUB_OUTPUT=output FARFAULT_ACTION_RESULTS=results FARFAULT_ACTION_MEMORY=copy,uvm FARFAULT_ACTION_MACHINE=gtx480 "$@" "$source/scripts/action-run.sh"
}
act FARFAULT_ACTION_COMMAND="$workloads/vectoradd 20000 && echo 'done'"
expect_status 0
expect_out "done"
expect test -s results/run.ffr
expect grep -qF 'failures="0"' results/junit.xml
expect test "$(cat output)" = "junit=results/junit.xml
run=results/run.ffr"
cp results/run.ffr main.ffr
act FARFAULT_ACTION_COMMAND="$workloads/vectoradd 20000" FARFAULT_ACTION_BASELINE=main.ffr FARFAULT_ACTION_OPTIONS=$'--set=link_h2d_gbs=1\n\n--verbose' \
  FARFAULT_ACTION_FAIL_IF=$'uvm.faults < 0\n\n   uvm.time > 1.05 * baseline.uvm.time'
expect_status 3
expect grep -qF 'tests="3" failures="1" errors="0"' results/junit.xml
run "$farfault" record -o p.fft "$workloads/vectoradd" 20000
act FARFAULT_ACTION_RECORDING=p.fft FARFAULT_ACTION_FAIL_IF='uvm.faults < 0'
expect_status 0
act FARFAULT_ACTION_RECORDING=p.fft FARFAULT_ACTION_COMMAND=true
expect_status 64
act FARFAULT_ACTION_COMMAND=
expect_status 64
act FARFAULT_ACTION_COMMAND="$workloads/vectoradd 20000" FARFAULT_ACTION_FAIL_IF='$(touch touched) > 1; touch touched'
expect_status 64
expect test ! -e touched
# What is installed already stays.
run env PATH="$work/bin:$PATH" FARFAULT_ACTION_SOURCE="$source" "$source/scripts/action-install.sh"
expect_status 0
expect_out "farfault $version"
finish
