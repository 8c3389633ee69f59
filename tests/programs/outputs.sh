#!/usr/bin/env bash
# Where outputs go: a device, a pipe and a link stay what they are; a file is whole or what it was; ranks of mpirun and processes of
# a program have a file each. The real /dev/null is at stake in no test: copies of devices are made here, which only root may.
# $3: the folder of fixtures.
source "$(dirname "$0")/common.sh"
ln -s "$3/ends" ends
"$farfault" run --memory copy,demand -o run.ffr --record app.fft ./ends exit >/dev/null 2>err || wrong "no run to begin with"
printf '.version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }\n' >k.ptx
printf 'trace: app.fft\nmachine: gtx480\nmemory: copy\n' >study.yaml

# Every command that writes a file, with FILE as its name. $4: the page of `report --html` was built.
page=()
[[ $4 == 1 ]] && page=("report --html FILE run.ffr")
outputs=("record -o FILE ./ends exit" "run --memory copy --record FILE ./ends exit" "run --memory copy -o FILE ./ends exit" "run --memory copy --json FILE ./ends exit"
         "run --memory copy --csv FILE ./ends exit" "sim --memory copy -o FILE app.fft" "trace cut -o FILE app.fft" "timeline -o FILE run.ffr"
         "${page[@]}" "report --csv FILE run.ffr" "rewrite --sm-affinity k.ptx -o FILE" "offload analyze --json FILE k.ptx" "memcheck --json FILE ./ends exit"
         "memcheck --log-file FILE ./ends exit" "import accelsim -o FILE $here/accelsim")
written() { # written NAME COMMAND: runs it with NAME for FILE
  # shellcheck disable=SC2086 # the command is words
  run timeout 60 "$farfault" ${2//FILE/$1}
}

mkdir devices
if mknod devices/null c 1 3 2>/dev/null && : 2>/dev/null >devices/null; then
  mknod devices/full c 1 7
  for command in "${outputs[@]}"; do
    written devices/null "$command"
    [[ $status -eq 126 || $status -eq 64 ]] && wrong "$shown: status $status"
    expect test -c devices/null
    written devices/full "$command"
    expect_status 1
    expect_err "devices/full: cannot be written: No space left on device"
    expect test -c devices/full
  done
  expect test "$(ls devices)" = "full
null"
  run "$farfault" sweep study.yaml -o devices/null
  expect_status 1
  expect_err "devices/null: a database needs a regular file"
fi

# A pipe gets what a file gets, but for the byte that says that a trace may have marks.
mkfifo pipe
for command in "trace cut -o FILE app.fft" "${page[@]}" "report --csv FILE run.ffr" "timeline -o FILE run.ffr" "record -o FILE ./ends exit"; do
  timeout 30 cat pipe >got &
  written pipe "$command"
  expect_status 0
  wait $!
  written plain "$command"
  expect cmp <(tail -c +13 got) <(tail -c +13 plain)
  expect test -p pipe
done
timeout 30 cat pipe >log &
run "$farfault" memcheck --log-file pipe ./ends exit
expect_status 0
wait $!
expect grep -q "ERROR SUMMARY" log
"$farfault" trace cut -o /dev/stdout app.fft 2>err | cat >through.fft
run "$farfault" trace check through.fft
expect_status 0

# A pipe that no process reads: a signal ends the wait, and leaves nothing in the temporary folder.
run timeout -s INT -k 30 3 "$farfault" record -o pipe ./ends exit
expect test $status -ne 137
expect test -z "$(ls -A "$TMPDIR")"

# Links are followed, dangling ones make their target; a file's mode stays; nothing is left next to it.
mkdir far
for command in "${outputs[@]}"; do
  rm -f far/*
  ln -sfn far/new link
  written link "$command"
  expect_status 0
  expect test -L link -a -f far/new
  chmod 640 far/new
  written link "$command"
  expect test -L link -a "$(stat -c %a far/new)" = 640
  expect test "$(ls far)" = new
done
ln -s far/study.db study.db
run "$farfault" sweep study.yaml -o study.db
expect_status 0
expect test -L study.db -a -s far/study.db

# Killed at any moment: the old file or the new one, whole.
cp app.fft old.fft
for delay in 0.001 0.01 0.02 0.03 0.05; do
  cp old.fft cut.fft
  timeout -s KILL $delay "$farfault" trace cut --launch 0 -o cut.fft app.fft >/dev/null 2>&1
  run "$farfault" trace check cut.fft
  expect_status 0
done

# A process each: in a file of its own; a device or a pipe gets all reports behind one another, and one trace.
run "$farfault" run --memory copy -o two.ffr --json two.json --csv two.csv --record two.fft ./ends exec
expect test -s two.ffr -a -s two.ffr.2 -a -s two.json.2 -a -s two.fft.2
timeout 30 cat pipe >got &
run "$farfault" run --memory copy --json pipe ./ends exec
wait $!
expect test "$(grep -c '"schema": 1' got)" -eq 2
expect test ! -e pipe.2
timeout 30 cat pipe >got &
run "$farfault" record -o pipe ./ends exec
wait $!
expect_status 1
expect_err "pipe: has the trace of the first of 2 processes"

# Ranks, each with a farfault of its own, and one farfault for all ranks.
if command -v mpirun >/dev/null; then
  mpi() { timeout 100 mpirun --allow-run-as-root --oversubscribe "$@"; }
  expected="FILE FILE.2 FILE.3"
  run mpi -n 3 "$farfault" run --memory copy -o r.ffr --json r.json --csv r.csv --record r.fft ./ends exit
  expect_status 0
  for file in r.ffr r.json r.csv r.fft; do expect test "$(echo $file*)" = "${expected//FILE/$file}"; done
  expect_err "r.fft.3:"
  for file in r.fft r.fft.2 r.fft.3; do expect "$farfault" trace check $file >/dev/null; done
  run mpi -n 2 "$farfault" run --memory copy -o x.ffr ./ends exec
  expect test "$(echo x.ffr*)" = "x.ffr x.ffr.1.2 x.ffr.2 x.ffr.2.2"
  run mpi -n 2 "$farfault" memcheck --json m.json ./ends exit
  expect test "$(echo m.json*)" = "m.json m.json.2"
  for rank in 0 1 2; do ln -s ends rank$rank; done
  run "$farfault" run --memory copy -o i.ffr --json i.json --csv i.csv --record i.fft timeout 100 mpirun --allow-run-as-root --oversubscribe -n 3 sh -c './rank$OMPI_COMM_WORLD_RANK exit'
  expect_status 0
  for file in i.ffr i.json i.fft; do expect test "$(echo $file*)" = "${expected//FILE/$file}"; done
  expect test "$(wc -l <i.csv)" -eq 4
  for rank in 0 1 2; do
    file=i.json.$((rank + 1))
    expect grep -q "\"command\": \"./rank$rank exit\"" "${file/%.1/}"
  done
  run env FARFAULT_RANK=4 "$farfault" run --memory copy --json said.json ./ends exit
  expect test -s said.json.5
  # A rank without work for a GPU does not end the others.
  run env FARFAULT_RANK=4 "$farfault" run --memory copy --json idle.json true
  expect_status 0
  expect_err "no file was written"
  run "$farfault" run --memory copy --json idle.json true
  expect_status 1
  rm -rf "${TMPDIR:?}"/* # mpirun's
fi
expect test -z "$(compgen -G '*.tmp-*')" -a -z "$(compgen -G '*.part-*')"

# ---- nobody reads the table any more, or it has no room: the files are whole all the same ----
: >err
unread() { # unread FILE COMMAND: its stderr is a pipe without a reader
  rm -f "$1"
  # shellcheck disable=SC2086 # the command is words
  { sleep 0.1; timeout 60 "$farfault" $2 2>&1 >out; } | true
  expect test -s "$1"
}
unread table.ffr "run --memory copy -o table.ffr ./ends exit"
unread table.csv "run --memory copy --csv table.csv ./ends abort"
: >log
unread table.json "memcheck --log-file log --json table.json ./ends abort"
{ timeout 60 "$farfault" sim --memory copy app.fft; echo $? >status; } 2>err | true
expect test "$(cat status)" -eq 0 -o "$(cat status)" -eq 141
for command in "run --memory copy ./ends exit" "memcheck ./ends exit"; do
  # shellcheck disable=SC2086
  "$farfault" $command >out 2>/dev/full
  expect test $? -eq 1
  # shellcheck disable=SC2086
  "$farfault" $command >out 2>&-
  expect test $? -eq 0
done
"$farfault" sim --memory copy app.fft >/dev/full 2>err
expect test $? -eq 1
expect_err "cannot write the table: No space left on device"

# ---- standard files that are closed: no other file is taken for one ----
run "$farfault" record -o whole.fft ./ends prints
expect_status 0
"$farfault" trace check whole.fft | sed 's/[^:]*: //' >whole.txt
closed() { # closed FILES WAY: without the standard files of these numbers
  local shut=""
  [[ $1 != *0* ]] || shut+=" <&-"
  [[ $1 != *1* ]] || shut+=" >&-"
  [[ $1 != *2* ]] || shut+=" 2>&-"
  rm -f shut.*
  for kept in "run --memory copy --record shut.fft -o shut.ffr" "memcheck --log-file shut.log"; do
    shown="$kept, without $1"
    eval "$farfault $kept ./ends $2 $shut" >/dev/null 2>&1
    status=$?
    expect_status 0
  done
  expect grep -q "ERROR SUMMARY: 0 errors" shut.log
  expect test "$(grep -c "something to read" shut.log)" -eq 0
  expect diff whole.txt <("$farfault" trace check shut.fft 2>&1 | sed 's/[^:]*: //')
  run "$farfault" report shut.ffr
  expect_status 0
}
for files in 0 1 2 012; do closed $files prints; done
closed "" closed

# ---- what is read is never written over ----
cp "$source/tests/unit/report/golden/sample.json" read.json
for command in "report read.json --csv read.json" "report read.json --html ./read.json" "report read.json --export-nsys read.json" \
  "timeline read.json -o read.json" "compare read.json $source/tests/unit/report/golden/sample.json --html read.json" \
  "compare $source/tests/unit/report/golden/sample.json read.json --json read.json"; do
  # shellcheck disable=SC2086 # words
  run "$farfault" $command
  expect_status 64
  expect_err "is what is read: the output would take its place"
  expect cmp read.json "$source/tests/unit/report/golden/sample.json"
done
cp app.fft read.fft
cp k.ptx read.ptx
cp -r "$here/accelsim" sass
cp -r sass sass.was
for command in "trace cut read.fft -o read.fft" "rewrite --sm-affinity read.ptx -o ./read.ptx" "import accelsim sass -o sass/kernelslist.g" \
  "import accelsim sass/kernelslist.g -o $(compgen -G 'sass/kernel-*.traceg*' | head -1)"; do
  # shellcheck disable=SC2086 # words
  run "$farfault" $command
  expect_status 64
  expect_err "is what is read: "
  expect cmp read.fft app.fft
  expect cmp read.ptx k.ptx
  expect diff -r sass sass.was
done

# ---- what takes long says before it begins that its result cannot be written ----
mkdir folder
for command in "calibrate --driver virtual --machine gtx480 -o folder" "calibrate --driver virtual --machine gtx480 -o new.yaml --svg folder" \
  "probe --target sim:gtx1080 --json folder" "bench managed --machine gtx480 --csv folder" "import accelsim sass -o folder"; do
  # shellcheck disable=SC2086 # words
  run timeout 20 "$farfault" $command
  expect_status 1
  expect_err "folder: cannot write there: it is a folder"
  expect_no_out
done
# What is made, or not written at all, is no reason.
run timeout 60 "$farfault" bench managed --machine gtx480 --keep kept --csv kept/bench.csv
expect_status 0
expect test -s kept/bench.csv
run timeout 60 "$farfault" calibrate --driver virtual --machine gtx480 --info -o none/new.yaml
expect_status 0
expect_out "GeForce GTX 480"
finish
