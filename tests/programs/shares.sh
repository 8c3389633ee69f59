#!/usr/bin/env bash
# Shares of a GPU between processes: many at once, killed in the middle, the broker killed, sockets and folders that are not what they should be; and
# `farfault shares`. Nothing is left running. $3: the fixtures.
source "$(dirname "$0")/common.sh"
holder=$3/share_holder
export XDG_RUNTIME_DIR=$work/runtime FARFAULT_BROKER_GRACE=0.3 FARFAULT_BROKER_LOG=$work/broker.log
mkdir -m 700 "$XDG_RUNTIME_DIR"
folder=$XDG_RUNTIME_DIR/farfault

# until CONDITION...: within 10 s.
until_so() {
  for _ in $(seq 200); do
    "$@" && return 0
    sleep 0.05
  done
  return 1
}
brokers() { "$farfault" shares --json - | sed -n 's/.*"broker": \([0-9]*\).*/\1/p'; }
no_broker() { ! compgen -G "$folder/*.sock" >/dev/null; }
has() { [[ -s $1 ]]; }
hold() { # hold FILE ARGUMENTS...: a holder in the background, its pid in $pid
  local file=$1
  shift
  rm -f "$file" # what a holder before it wrote must not count
  "$holder" "$@" >"$file" 2>"$file.err" </dev/null &
  pid=$!
}
holds() { "$farfault" shares | grep -Eq "^ *$1 .* holds "; }
waits() { "$farfault" shares | grep -Eq "^ *$1 .* waits "; }

# Nothing there: said so, and nothing is started.
run "$farfault" shares
expect_status 0
expect_out "no shares are handed out"
run "$farfault" shares --json -
expect_out "[]"
expect test ! -e "$folder"

# One share, its listing, and its end.
SHARE_NAME=first hold a gpu0 5 2 0 60
first=$pid
expect until_so has a
expect grep -qx "0 5 3" a
run "$farfault" shares
expect_out "gpu0: 15 of 20 SMs and 6 of 8 colours are free"
expect grep -Eq "^ *$first  *share_holder  *first  *holds  *0-4  *0-1  *0 s$" out
run "$farfault" shares --json -
expect_out "\"process\": $first"
expect_out '"first_sm": 0'
run "$holder" gpu0 16 0 0
expect_status 17
expect_err "no share of gpu0: 16 SMs are not to be had now: of 20 SMs 15 are free, of 8 colours 6: share_holder 'first' (process $first) has 5 SMs and 2 colours"
run "$holder" gpu0 16 0 0.2
expect_status 17
expect_err "16 SMs are not to be had within the time"
run "$holder" gpu0 21 0 0
expect_status 12
expect_err "21 SMs cannot be had of a GPU with 20"
SHARE_SMS=24 run "$holder" gpu0 1 0 0
expect_status 12
expect_err "it is shared as 20 SMs and 8 colours, not as 24 SMs and 8 colours"
run "$holder" gpu0 15 6 0
expect_status 0
expect grep -qx "5 15 fc" out
expect grep -qx connected out

# In the order of asking: who wants little does not pass who wants all.
hold b gpu0 20 8 -1 0.1
all=$pid
expect until_so waits "$all"
hold c gpu0 1 1 -1 0.1
little=$pid
expect until_so waits "$little"
run "$holder" gpu0 1 0 0
expect_status 17
expect_err "2 others wait"
expect test ! -s c
kill -9 "$first"
wait "$first" 2>/dev/null
wait "$all" "$little"
expect grep -qx "0 20 ff" b
expect grep -qx "0 1 1" c
expect until_so no_broker

# Eight at once, with no broker there: one is started, and no two ever have the same SM or colour.
mkdir marks
pids=()
for i in 1 2 3 4 5 6 7 8; do
  MARKS=$work/marks "$holder" gpu0 $((3 + i % 5)) $((1 + i % 3)) -1 0.2 >"eight.$i" 2>&1 </dev/null &
  pids+=($!)
done
sleep 0.15
expect test "$(brokers | wc -l)" -eq 1
for p in "${pids[@]}"; do
  wait "$p"
  expect test $? -eq 0
done
expect test "$(cat eight.* | grep -c '^connected$')" -eq 8
expect until_so no_broker

# Killed while its child keeps the connection open: the share is free all the same.
CHILD=3 hold a gpu0 20 8 -1 60
expect until_so has a
kill -9 "$pid"
wait "$pid" 2>/dev/null
run "$holder" gpu0 20 8 2 0
expect_status 0
expect grep -qx "0 20 ff" out

# The broker is killed: who waits is told, who holds keeps what he has, and the next broker does not hand that out.
expect until_so no_broker
hold a gpu0 8 3 -1 3
first=$pid
expect until_so has a
hold b gpu0 20 0 -1 0
waiting=$pid
expect until_so waits "$waiting"
broker=$(brokers)
kill -9 "$broker"
wait "$waiting"
status=$? shown="the holder that waited"
expect_status 16
expect grep -qx "no share of gpu0: its broker (process $broker) ended while this process waited for one" b.err
run "$farfault" shares
expect_status 0
expect_out "gpu0: its broker was killed"
expect grep -Eq "^ *$first  *\?  *-  *holds \(its broker is gone\)  *0-7  *0-2  *-$" out
hold b gpu0 5 1 0 60
second=$pid
expect until_so has b
expect grep -qx "8 5 8" b
run "$farfault" shares
expect_out "gpu0: 7 of 20 SMs and 4 of 8 colours are free"
expect grep -Eq "^ *$first  *\?  *-  *holds \(its broker is gone\)  *0-7  *0-2  *-$" out
run "$holder" gpu0 8 1 0
expect_status 17
expect_err "8 SMs are held since before this broker began"
wait "$first"
expect grep -qx alone a
run "$holder" gpu0 8 1 5 0
expect_status 0
expect grep -qx "0 8 1" out
kill "$second"
wait "$second" 2>/dev/null

# A broker that ends as the system asks for it (SIGTERM) tells those who wait as well; what is no socket is put away.
hold a gpu0 20 8 -1 60
first=$pid
expect until_so has a
kill "$(brokers)"
expect until_so no_broker
kill "$first"
touch "$(echo "$folder"/gpu0-*.lock | sed 's/lock$/sock/')"
run "$holder" gpu0 20 8 2 0
expect_status 0

# Whatever bytes come, and whichever client is silent: the others are served. The user that starts the broker may have a low limit of descriptors.
files=$(ulimit -Sn)
ulimit -Sn 64
hold a gpu0 5 2 -1 60
first=$pid
ulimit -Sn "$files"
expect until_so has a
run python3 "$here/shares_hostile.py" "$(echo "$folder"/gpu0-*.sock)"
expect_status 0
expect_out "the broker answers a foreign version with a refusal"
run "$holder" gpu0 15 6 0 0
expect_status 0
expect holds "$first"
kill "$first"
expect until_so no_broker

# A broker that may not have as many descriptors as it would need.
rm -f a
(ulimit -n 64 && exec "$holder" gpu0 5 2 -1 60) >a 2>a.err </dev/null &
first=$!
expect until_so has a
run python3 "$here/shares_hostile.py" "$(echo "$folder"/gpu0-*.sock)" few
expect_status 0
expect_out "the broker refuses whom it has no descriptors for"
run "$holder" gpu0 15 6 5 0
expect_status 0
kill "$first"
expect until_so no_broker

# A program that has closed its standard files: what it prints gets into no file of ours.
expect until_so no_broker
for shut in "<&- >&-" "<&- >&- 2>&-"; do
  eval "$holder gpu0 5 2 0 1 $shut &"
  first=$!
  expect until_so holds "$first"
  sleep 0.3 # it has printed its share
  run "$farfault" shares
  expect grep -Eq "^ *$first  *share_holder  *-  *holds  *0-4 " out
  expect test -z "$(cat "$folder"/gpu0-*.lock)"
  wait "$first"
  expect test $? -eq 0
  expect until_so no_broker
done

# Two GPUs are two brokers; names that could lead out of the folder, or are long, are names.
hold a ../../gpu 5 2 -1 60
first=$pid
hold b "$(printf 'GPU-%0200d' 7)" 5 2 -1 60
second=$pid
expect until_so has a
expect until_so has b
run "$farfault" shares
expect_out "../../gpu: 15 of 20 SMs"
expect grep -q '^GPU-0*7: 15 of 20 SMs' out
kill "$first" "$second"
run "$holder" "$(printf 'GPU-%0300d' 7)" 5 2 -1
expect_status 12
expect_err "1 to 255 bytes"

# When all have gone nothing is left, neither brokers nor their files.
empty() { [[ -z $(ls -A "$folder") ]]; }
expect until_so empty

# Folders that are not ours alone.
chmod 755 "$folder"
for command in "$holder gpu0 1 0 0" "$farfault shares"; do
  run $command
  expect_err "$folder: others may look into it (mode 755): chmod 700 it"
done
expect_status 1
rm -rf "$folder"
ln -s "$work" "$folder"
run "$holder" gpu0 1 0 0
expect_status 12
expect_err "$folder: it is no folder"
rm "$folder"
if [[ $(id -u) -eq 0 ]]; then
  mkdir -m 700 "$folder"
  chown 12345 "$folder"
  run "$holder" gpu0 1 0 0
  expect_status 12
  expect_err "$folder belongs to user 12345, not to 0"
  rmdir "$folder"
fi

# No broker to start.
FARFAULT_BROKER=$work/nowhere run "$holder" gpu0 1 0 0
expect_status 16
expect_err "$work/nowhere: cannot be started: No such file or directory"
FARFAULT_BROKER=/bin/true run "$holder" gpu0 1 0 0
expect_status 16
expect_err "/bin/true: it did not come up"
run "$(dirname "$farfault")/../lib/farfault/farfault-broker" gpu0
expect_status 64

# The brokers had nothing to complain of.
expect test ! -s broker.log
finish
