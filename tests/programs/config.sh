#!/usr/bin/env bash
# farfault.yaml: which value counts, what a file cannot say, messages with their place; `farfault config`. $3: the workloads.
source "$(dirname "$0")/common.sh"
workloads=$3
unset FARFAULT_CONFIG
export XDG_CONFIG_HOME=$work/user
mkdir -p user/farfault
run "$farfault" record -o p.fft --machine gtx480 "$workloads/vectoradd" 2000
expect_status 0
managers() { sed -n '/^memory /,/^[^a-z]/p' "$1" | sed '1d' | grep -oE '^[a-z-]+ ' | tr -d '\n'; }
simulates() { # simulates "MANAGERS" MACHINE ARGUMENT...: the table of farfault sim
  run "$farfault" sim p.fft "${@:3}"
  expect_status 0
  expect grep -q " on $2\$" out
  expect test "$(managers out)" = "$1 "
}

# ---- it takes no argument ----
run "$farfault" config machine
expect_status 64
expect_err "'machine': it takes no arguments"

# ---- which counts ----
run "$farfault" config
expect_status 0
expect grep -qE '^machine +h200 +run, record, sim +default$' out
expect_out "(no file"
printf 'machine: v100\nmemory: uvm\n' >user/farfault/farfault.yaml
simulates "uvm" v100
printf 'machine: gtx480 # the project\nmemory: [copy, tbn]\n' >farfault.yaml
simulates "copy tbn" gtx480
simulates "ideal" gtx480 --memory ideal
simulates "ideal" h100 -m ideal -Mh100
simulates "copy tbn" h100 --mach=h100 # as getopt takes it
run "$farfault" run sh -c '"$0" 2000' "$workloads/vectoradd" --memory=uvm # the program's own argument
expect test "$(managers err)" = "copy tbn "
printf 'sim:\n  memory: ideal\n' >>farfault.yaml
simulates "ideal" gtx480
run "$farfault" run "$workloads/vectoradd" 2000
expect test "$(managers err)" = "copy tbn "
run "$farfault" config
expect_status 0
expect grep -qE '^machine +gtx480 +run, record, sim +.*/farfault.yaml:1$' out
expect grep -qE '^machine +v100 +run, record, sim +.*user/farfault/farfault.yaml:1 \(another one counts\)$' out
expect grep -qE '^memory +ideal +sim +.*/farfault.yaml:4$' out
expect test "$(grep -c default out)" -eq 0
FARFAULT_CONFIG=none run "$farfault" config
expect_out "(no file"
printf 'machine: v100\n' >another.yaml
FARFAULT_CONFIG=another.yaml run "$farfault" config
expect_status 0
expect_out "another.yaml:1"
expect test "$(grep -c farfault.yaml out)" -eq 0
FARFAULT_CONFIG=absent.yaml run "$farfault" sim p.fft
expect_status 2
expect_err "absent.yaml: cannot"
# What one command starts itself has its options from that command alone.
run "$farfault" compare --memory uvm p.fft p.fft
expect_status 0
printf 'gpu-memory: 99%%\nmemory: nonsense\n' >farfault.yaml
run "$farfault" compare --memory uvm --machine gtx480 p.fft p.fft
expect_status 0
run "$farfault" sim p.fft
expect_status 64
expect_err "nonsense"
printf 'verbose: true\nmemory: copy\n' >farfault.yaml
run "$farfault" sim p.fft
expect_out "allocation"
printf 'verbose: false\nmemory: copy\n' >farfault.yaml
run "$farfault" sim p.fft
expect test "$(grep -c allocation out)" -eq 0
mkdir below
cp "$source/machines/gtx480.yaml" below/mine.yaml
rm user/farfault/farfault.yaml
printf 'machine: ./below/mine.yaml\nfail-if: [uvm.faults < 0, "1 / 1 > 2"]\nmemory: uvm\nthreads: 1\n' >farfault.yaml
simulates uvm mine
: >farfault.yaml
simulates "copy demand replay ideal" gtx480
printf '# nothing\n' >farfault.yaml
simulates "copy demand replay ideal" gtx480

# ---- refused ----
refused() { # refused TEXT PLACE MESSAGE
  printf '%b' "$1" >farfault.yaml
  for command in "config" "sim p.fft"; do
    # shellcheck disable=SC2086 # words
    run "$farfault" $command
    expect_status 2
    expect_err "farfault.yaml:$2: "
    expect_err "$3"
  done
}
refused 'memry: uvm\n' 1:1 "no option 'memry' of run, record and sim: did you mean 'memory'?"
refused 'machine: h100\nsim:\n  memry: uvm\n' 3:3 "no option 'memry' of sim: did you mean 'memory'?"
refused 'smi:\n  memory: uvm\n' 1:1 "no command 'smi': did you mean 'sim'?"
refused 'xyzzy:\n  memory: uvm\n' 1:1 "no command 'xyzzy' (farfault --help lists them)"
refused 'sim: 3\n' 1:1 "below the command 'sim' its options are wanted: NAME: VALUE"
refused 'memory: uvm\nmemory: copy\n' 2:1 "is given twice"
refused 'memory: [[uvm]]\n' 1:1 "must be a single one"
refused 'verbose: maybe\n' 1:10 "is true or false"
refused 'output: x.ffr\n' 1:1 "cannot be given in a file"
refused 'junit: x\n' 1:1 "cannot be given in a file"
refused 'help: true\n' 1:1 "'help' cannot be given in a file"
refused 'prefetch: ./evil.so\n' 1:11 "cannot name another file"
refused 'memory: uvm+evict=evil.so\n' 1:9 "cannot name another file"
refused 'machine: [h100\n' 2:1 "not YAML"
refused '- memory\n' 1 "options are wanted here"
refused 'machine: [gtx480, h100]\n' 1:1 "'machine' takes one value, not a list"
refused 'threads: 1\nsim:\n  gpu-memory: [50%%, 75%%]\n' 3:3 "'gpu-memory' takes one value, not a list"

# ---- wrong values are told with their place ----
blames() { # blames TEXT PLACE MESSAGE [COMMAND...]: COMMAND (sim) refuses it, and farfault config
  printf '%b' "$1" >farfault.yaml
  local command=("${@:4}")
  if [[ $# -eq 3 ]]; then
    command=(sim p.fft)
    run "$farfault" config
    expect_status 2
    expect_err "farfault: $work/farfault.yaml:$2: $3"
  fi
  run "$farfault" "${command[@]}"
  expect_status 64
  expect_err "$work/farfault.yaml:$2: $3"
}
blames '# one\nmachine: nosuch\n' 2:10 "no machine 'nosuch'"
blames 'memory: foo\n' 1:9 "no memory manager 'foo'"
blames 'memory: [copy,\n  foo]\n' 2:3 "no memory manager 'foo'"
blames 'memory: copy+x=3\n' 1:9 "copy+x=3: 'x' is neither"
blames 'gpu-memory: banana\n' 1:13 "--gpu-memory: 'banana' is not a size"
blames 'set: [fault_us=x, foo=2]\n' 1:7 "--set: fault_us: 'x' is not a number"
blames 'set: [fault_us=3, foo=2]\n' 1:19 "--set: a machine has no value 'foo'"
blames 'sim:\n  lines: 0\n' 2:10 "--lines: '0' is not a number" sim p.fft
blames "verbose: true\nfail-if: 'uvm.faults >'\n" 2:11 "--fail-if: condition:1:13: the condition ends" sim p.fft
blames 'threads: x\n' 1:10 "--threads: 'x' is not a number" run "$workloads/vectoradd" 2000
blames 'execute: foo\n' 1:10 "--execute: 'foo' is none of" run "$workloads/vectoradd" 2000
# The command line's own are told as ever, and what is no option's has no place.
printf 'memory: copy\nthreads: 1\n' >farfault.yaml
run "$farfault" sim --machine nosuch p.fft
expect_status 64
expect grep -q "^farfault: no machine 'nosuch'" err
run "$farfault" sim --memory foo p.fft
expect grep -q "^farfault: no memory manager 'foo'" err
run "$farfault" sim
expect_status 64
expect test "$(grep -c yaml err)" -eq 0
printf 'set: [fault_us=30, sm_count=10]\nmemory: [copy, uvm]\n' >farfault.yaml
run "$farfault" config
expect_status 0
simulates "copy uvm" gtx480
printf 'share:\n  isolate: [mps, sm]\n  jobs: 1\n' >farfault.yaml
run "$farfault" share --machine gtx480 p.fft
expect_status 0
expect_out mps
expect test "$(grep -c 'sm+memory\|time slices' out)" -eq 0

rm farfault.yaml
mkdir farfault.yaml
run "$farfault" config
expect_status 2
finish
