#!/usr/bin/env bash
# `farfault run` around a program: what the program gets, what comes back, whatever way it ends.
source "$(dirname "$0")/common.sh"
pretender=$here/pretender.sh

# Its output, input and exit status are its own; the table is on stderr.
"$farfault" run "$pretender" 'cat' 'echo problem >&2' 'exit 3' >out 2>err <<<"from stdin"
status=$?
shown="farfault run, stdin"
expect_status 3
expect_out "from stdin"
expect test "$(wc -l <out)" -eq 1
expect_err "problem"
expect_err "farfault: ./pretender on h200"
expect_err "2.50x"
expect_err "note: a note"
expect_err "h200 is the default machine"
run "$farfault" run --machine gtx480 "$pretender"
expect_status 0
expect test "$(grep -c 'default machine' err)" -eq 0

# Arguments after the program are the program's, with and without --.
cat >arguments <<'X'
#!/bin/sh
printf '<%s>' "$@"
X
chmod +x arguments
run "$farfault" run ./arguments -o "a b" --memory '' x
expect_out "<-o><a b><--memory><><x>"
run "$farfault" run --memory copy -- ./arguments --
expect_out "<-->"
expect_err "did not use the virtual GPU"

# The environment of the program.
run "$farfault" run --memory copy,demand --machine gtx480 --set fault_us=50 --set sm_count=4 --gpu-memory 75% --threads 2 \
  --max-instructions 20M --bind-sms 2-3 /usr/bin/env
expect_status 0
expect_out "FARFAULT_MEMORY=copy,demand"
expect_out "FARFAULT_MACHINE=gtx480"
expect_out "FARFAULT_SET=fault_us=50,sm_count=4"
expect_out "FARFAULT_GPU_MEMORY=75%"
expect_out "FARFAULT_THREADS=2"
expect_out "FARFAULT_MAX_INSTRUCTIONS=20000000"
expect_out "FARFAULT_BIND_SMS=2-3"
libraries=$(cd "$(dirname "$farfault")/../lib/farfault" && pwd -P)
[[ $libraries == *[\ :\;\$]* ]] && libraries=$(realpath "$TMPDIR")/farfault- # a link stands for it
expect_out "LD_LIBRARY_PATH=$libraries"
LD_LIBRARY_PATH=/mine FARFAULT_GPU_MEMORY=1G run "$farfault" run --memory none /usr/bin/env
expect grep -q "^LD_LIBRARY_PATH=$libraries.*:/mine\$" out
expect_out "FARFAULT_MEMORY="
expect test "$(grep -c FARFAULT_GPU_MEMORY out)" -eq 0
cp "$source/machines/gtx480.yaml" mine.yaml
run "$farfault" run --machine mine.yaml /usr/bin/env
expect_out "FARFAULT_MACHINE=$(pwd -P)/mine.yaml"

# Ended by a signal: as a shell has it, and the last snapshot is shown.
COMPLETE=false run "$farfault" run "$pretender" 'kill -9 $$'
expect_status 137
expect_err "was ended by signal 9 (Killed)"
expect_err "(incomplete)"
expect_err "2.50x"
run "$farfault" run "$pretender" 'kill -SEGV $$'
expect_status 139

# A signal sent to farfault goes to the program, which may take it.
cat >sleeper <<'X'
#!/bin/sh
trap 'echo taken; exit 5' TERM
echo ready
while :; do sleep 0.05; done
X
chmod +x sleeper
: >out # no word of an earlier program
"$farfault" run ./sleeper >out 2>err &
process=$!
for _ in {1..200}; do grep -q ready out 2>/dev/null && break; sleep 0.05; done
kill -TERM $process
wait $process
status=$?
shown="farfault run ./sleeper, TERM"
expect_status 5
expect_out "taken"
: >out # no word of an earlier program
"$farfault" run "$pretender" 'echo ready' 'sleep 20' >out 2>err &
process=$!
for _ in {1..200}; do grep -q ready out 2>/dev/null && break; sleep 0.05; done
kill -HUP $process
wait $process
status=$?
shown="farfault run pretender, HUP"
expect_status 129
expect_err "2.50x"

# Lists may be given in parts.
run "$farfault" run --memory copy --memory demand,ideal /usr/bin/env
expect_out "FARFAULT_MEMORY=copy,demand,ideal"

# Files.
run "$farfault" run -o saved --csv rows.csv --json also.json "$pretender"
expect_status 0
expect cmp <(unsealed saved) also.json
expect test "$(head -1 rows.csv | cut -d, -f1-3)" = memory,machine,complete
expect test "$(wc -l <rows.csv)" -eq 3
cp err first
run "$farfault" report saved
expect_status 0
expect_no_err
expect cmp <(head -5 out) <(head -5 first)
run "$farfault" report --csv again.csv -v saved
expect cmp again.csv rows.csv
run "$farfault" run --json /dev/stdout "$pretender"
expect_out '"schema": 1'

# Several processes: a table and a file each.
cat >parent <<X
#!/bin/sh
"$pretender"
exec "$pretender"
X
chmod +x parent
run "$farfault" run -o several --csv several.csv ./parent
expect test "$(grep -c 'farfault: ./pretender on h200' err)" -eq 2
expect test -s several
expect test -s several.2
expect test "$(wc -l <several.csv)" -eq 5

# The program that a process of the program became, and numbers in the order in which programs ran.
run "$farfault" run --csv became.csv "$pretender" 'cp "$file" "${file%.json}.2.json"; sed s/pretender/third/ "$file" >"${file%.json}.10.json"'
expect test "$(grep -c 'farfault: ./' err)" -eq 3
expect grep -q third <(grep 'farfault: ./' err | tail -1)

# A results file that is cut is said to be, and is no crash; so is an empty one, which a full disk leaves.
run "$farfault" run "$pretender" 'head -c 100 "$file" >"$file.x"; mv "$file.x" "$file"'
expect_status 1
expect_err "not JSON"
expect test "$(grep -c 'did not use the virtual GPU' err)" -eq 0
run "$farfault" run "$pretender" ': >"$file"'
expect_status 1
expect_err "could not write its results"
run "$farfault" run "$pretender" ': >"$file"' 'exit 4'
expect_status 4

# Without CUDA: the program just runs.
run "$farfault" run /bin/echo hello
expect_status 0
expect_out hello
expect_err "/bin/echo did not use the virtual GPU: there is nothing to report"
run "$farfault" run echo hello
expect_out hello
for option in -o --json --csv; do # a file that was asked for and is not there is a failure
  run "$farfault" run $option nothing.ffr /bin/true
  expect_status 1
  expect_err "there is nothing to report, and no file was written"
  expect test ! -e nothing.ffr
done

# No progress line and no escapes where stderr is no terminal.
run "$farfault" run "$pretender" 'sleep 1.3'
expect test "$(grep -c $'\033' err)" -eq 0

# On a terminal there is a line after the first second, and it is gone before the table.
if command -v script >/dev/null; then
  cat >worker <<X
#!/bin/sh
# launches, blocks done, blocks in all, instructions, simulated time, done; the kernel's name
{ printf '\\001\\0\\0\\0\\0\\0\\0\\0\\005\\0\\0\\0\\0\\0\\0\\0\\012\\0\\0\\0\\0\\0\\0\\0'; head -c 24 /dev/zero; printf 'sa\\033xpy'; } |
  dd of="\$FARFAULT_PROGRESS" conv=notrunc 2>/dev/null
exec "$pretender" 'sleep 2'
X
  chmod +x worker
  script -qec "'$farfault' run ./worker" typescript >/dev/null 2>&1 </dev/null
  cp typescript out
  shown="farfault run on a terminal"
  expect_out "farfault: launch 1 sa?xpy: 50 % of 10 blocks, at 0 s"
  expect_out "2.50x"
  expect test "$(sed 's/.*\x1b\[K//' out | grep -c 'launch 1')" -eq 0
fi

# A full disk.
if [[ -w /dev/full ]]; then
  run "$farfault" run --json /dev/full "$pretender"
  expect_status 1
  expect_err "/dev/full: cannot be written: No space left on device"
fi
TMPDIR=/no/such run "$farfault" run "$pretender"
expect_status 1
expect_err "cannot make a temporary folder: No such file or directory (TMPDIR is where)"
long=$TMPDIR
for _ in {1..6}; do long=$long/$(printf 'x%.0s' {1..90}); done
mkdir -p "$long"
TMPDIR=$long run "$farfault" run "$pretender"
expect_status 1
expect_err "cannot make a temporary folder: File name too long"
rm -r "$TMPDIR"/x*
finish
