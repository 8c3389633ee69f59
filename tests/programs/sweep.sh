#!/usr/bin/env bash
# farfault sweep and results: studies that are refused, a small one run in all ways - at once, killed a hundred times, by two at a
# time, by ranks of mpirun, one of them killed - with the same rows; and what is made of the database.
source "$(dirname "$0")/common.sh"
workloads=$3
library=$(dirname "$farfault")/../lib/farfault/libfarfault-mpi.so
# Everything but when and where: what must be the same.
rows() { sqlite3 -readonly "$1" .dump | grep -v '^INSERT INTO timing'; }
count() { sqlite3 -readonly "$1" "SELECT count(*) FROM points" 2>/dev/null; }

run "$farfault" record -o a.fft "$workloads/vectoradd" 5000
expect_status 0
run "$farfault" record -o b.fft "$workloads/vectoradd" 20000
expect_status 0
cp "$source/machines/gtx480.yaml" mine.yaml
cat >study.yaml <<'X'
title: all there is
trace: [a.fft, b.fft]
machine: [gtx480, ./mine.yaml]
grids:
  - memory: [copy, demand, uvm+evict=lru:64K]
    gpu-memory: 100%
    set: {fault_us: [10, 20.5], l1_bytes: 16K}
  - {memory: copy, faults: block, prefetch: tbn}
points:
  - {memory: replay, faults: "replay:4", machine: h200, trace: a.fft}
X

# ---- what is refused ----
run "$farfault" sweep
expect_status 64
expect_err "which study?"
run "$farfault" sweep nowhere.yaml
expect_status 2
expect_err "nowhere.yaml: cannot open"
for jobs in 0 -1 x 1000; do
  run "$farfault" sweep study.yaml --jobs=$jobs
  expect_status 64
done
refused() { # refused PLACE MESSAGE: of the study on stdin
  cat >bad.yaml
  run "$farfault" sweep bad.yaml -o bad.db
  expect_status 2
  expect_err "bad.yaml:$1"
  expect_err "$2"
  expect test ! -e bad.db
}
refused 3:1: "unknown key 'memroy': did you mean 'memory'?" <<<$'trace: a.fft\nmachine: gtx480\nmemroy: copy'
refused 4:1: "'fault_us' is a value of the machine: write 'set: {fault_us: ...}'" <<<$'trace: a.fft\nmachine: gtx480\nmemory: copy\nfault_us: 3'
refused 1:17: "a machine has no value 'fault_su': did you mean 'fault_us'?" <<<$'points: [{set: {fault_su: 1}}]'
refused 1:1: "this grid has no 'memory'" <<<$'trace: a.fft\nmachine: gtx480'
refused 2:4: "a point has one 'memory'" <<<$'points:\n- {memory: [copy, demand]}'
refused 1:16: "no.fft: cannot be read" <<<$'trace: [a.fft, no.fft]\nmachine: gtx480\nmemory: copy'
refused 1:8: "mine.yaml: no trace" <<<$'trace: mine.yaml\nmachine: gtx480\nmemory: copy'
refused 2:10: "did you mean 'gtx480'?" <<<$'trace: a.fft\nmachine: gtx408\nmemory: copy'
refused 3:16: "no memory manager 'demnad': did you mean 'demand'?" <<<$'trace: a.fft\nmachine: gtx480\nmemory: [copy, demnad]'
refused 3:9: "'prefecth' is neither a choice nor a value of the machine: did you mean 'prefetch'?" <<<$'trace: a.fft\nmachine: gtx480\nmemory: demand+prefecth=tbn'
refused 4:13: "gpu-memory: 'lots' is not a size" <<<$'trace: a.fft\nmachine: gtx480\nmemory: uvm\ngpu-memory: lots'
refused 4:17: "fault_us: " <<<$'trace: a.fft\nmachine: gtx480\nmemory: uvm\nset: {fault_us: soon}'
refused 4:11: "no prefetcher 'tnb'; did you mean 'tbn'?" <<<$'trace: a.fft\nmachine: gtx480\nmemory: uvm\nprefetch: tnb'
refused 4:28: "'prefetch' says nothing to copy" <<<$'trace: a.fft\nmachine: gtx480\npoints:\n- {memory: copy, prefetch: tbn}'
refused 1:1: "l2_slices" <<<$'trace: a.fft\nmachine: gtx480\nmemory: copy\nset: {channels: 5}'
head -c 200 a.fft >cut.fft
refused 1:8: "cut.fft" <<<$'trace: cut.fft\nmachine: gtx480\nmemory: copy'
printf 'trace: a.fft\nmachine: gtx480\nmemory: demand\nset: {fault_us: [%s0], api_us: [%s0]}\n' "$(seq -s, 1 200)," "$(seq -s, 1 200)," >large.yaml
run "$farfault" sweep large.yaml
expect_status 2
expect_err "is a study of 40401 points, and at most 10000 are run"
run "$farfault" sweep study.yaml --limit 3
expect_status 2
expect_err "--limit N allows more"

# ---- the points ----
run "$farfault" sweep study.yaml --dry-run
expect_status 0
expect test "$(grep -c '' out)" -eq 16 # 2 traces x (1 machine text x 3 managers x 2 + copy alone) + replay; a heading
expect_err "combinations are the same"
expect_out "uvm+evict=lru:64K"
expect test ! -e study.db
run "$farfault" sweep study.yaml --dry-run -v
expect_out "--set l1_bytes=16K --set fault_us=20.5 --gpu-memory 100%"
expect_out "$work/a.fft"

# ---- run ----
run "$farfault" sweep study.yaml
expect_status 0
points=$(count study.db)
expect_err "$points points in study.db"
expect test "$points" -eq 15
rows study.db >wanted
expect test "$(sqlite3 study.db "SELECT group_concat(name) FROM (SELECT name FROM parameters ORDER BY position)")" = l1_bytes,fault_us,gpu-memory,faults,prefetch
expect test "$(sqlite3 study.db "SELECT count(*) FROM results WHERE state = 'done' AND l1_bytes = 16384 AND fault_us > 20")" -eq 6
expect test "$(sqlite3 study.db "SELECT faults_chosen, typeof(faults) FROM results WHERE memory = 'replay'")" = "replay:4|integer"
expect test "$(sqlite3 study.db "SELECT count(*) FROM results WHERE memory = 'copy' AND prefetch IS NOT NULL")" -eq 0
expect test "$(sqlite3 study.db "SELECT count(*) FROM kernels")" -eq "$points"
expect test "$(sqlite3 study.db "SELECT count(*) FROM points JOIN timing USING(point)")" -eq "$points"
expect test "$(sqlite3 study.db "SELECT count(*) FROM machines_of_points WHERE text LIKE '%title:%'")" -eq "$points"
expect test ! -e study.db-lock -a ! -e study.db-wal
# A point is what `farfault sim` says, and its ratio is over copy's.
read -r point time <<<"$(sqlite3 -separator ' ' study.db "SELECT point, time_ps FROM results WHERE memory = 'demand' AND fault_us = 20.5 LIMIT 1")"
run bash -c "$("$farfault" sweep study.yaml --dry-run -v 2>/dev/null | sed -n "${point}p" | sed "s|^farfault|$farfault|") --json one.json"
expect_status 0
expect test "$(python3 -c 'import json; print(json.load(open("one.json"))["runs"][0]["time_ps"])')" = "$time"
expect test "$(sqlite3 study.db "SELECT abs(r.ratio - 1.0 * r.time_ps / c.time_ps) < 1e-9 FROM results r JOIN results c ON c.memory = 'copy' AND c.trace = r.trace AND c.fault_us = r.fault_us WHERE r.point = $point")" = 1
# Once more: nothing to do. With other points: these are kept, and come last.
run "$farfault" sweep study.yaml
expect_status 0
expect_err "0 points run, $points were in study.db already"
rows study.db >again
expect cmp wanted again
sed 's/copy, demand,/tbn, demand,/; s/all there is/more/' study.yaml >more.yaml
cp study.db more.db
run "$farfault" sweep more.yaml
expect_status 0
expect_err "4 points run, 11 were in more.db already"
expect test "$(sqlite3 more.db "SELECT count(*), max(point), sum(memory = 'tbn' AND point <= 15) FROM points")" = "19|19|4"
expect test "$(sqlite3 more.db "SELECT count(*) FROM kernels k JOIN points p USING(point)")" -eq 19
run "$farfault" sweep study.yaml -o more.db # and back: the numbers of before, the others behind
expect_status 0
expect test "$(sqlite3 more.db "SELECT group_concat(key) FROM (SELECT key FROM points WHERE point <= 15 ORDER BY point)")" = "$(sqlite3 study.db "SELECT group_concat(key) FROM (SELECT key FROM points ORDER BY point)")"
# A machine that changed is another machine.
sed -i 's/fault_mshrs: *{value: [0-9]*/fault_mshrs: {value: 2/' mine.yaml
run "$farfault" sweep study.yaml --dry-run
expect test "$(grep -c '' out)" -gt 20
cp "$source/machines/gtx480.yaml" mine.yaml

# ---- a study without machines ----
# Each recording has the machine that it was made on, as under `farfault sim`; where that is gone the default, which is said once.
run "$farfault" record -o v100.fft --machine v100 "$workloads/vectoradd" 5000
expect_status 0
cp mine.yaml own.yaml
run "$farfault" record -o own.fft --machine own.yaml "$workloads/vectoradd" 6000
expect_status 0
printf 'trace: [a.fft, v100.fft, own.fft]\nmemory: [copy, demand]\nset: {fault_us: 20}\n' >bare.yaml
run "$farfault" sweep bare.yaml -o bare.db
expect_status 0
expect test "$(grep -c 'is not there' err)" -eq 0
expect test "$(sqlite3 bare.db "SELECT group_concat(trace || ' ' || machine) FROM (SELECT * FROM points WHERE memory = 'copy' ORDER BY point)")" = "a.fft h200,v100.fft v100,own.fft $work/own.yaml"
run "$farfault" sim v100.fft --memory demand --set fault_us=20 --json sim.json
expect_status 0
expect test "$(sqlite3 bare.db "SELECT time_ps FROM results WHERE trace = 'v100.fft' AND memory = 'demand'")" = "$(python3 -c 'import json; print(json.load(open("sim.json"))["runs"][0]["time_ps"])')"
rm own.yaml
run "$farfault" sweep bare.yaml -o gone.db
expect_status 0
expect_err "own.fft: the machine of the recording, $work/own.yaml, is not there: h200 is simulated ('machine' in the study chooses another)"
expect test "$(grep -c 'is not there' err)" -eq 1
expect test "$(sqlite3 gone.db "SELECT DISTINCT machine FROM points WHERE trace = 'own.fft'")" = h200
printf 'trace: own.fft\nmachine: gtx480\nmemory: copy\n' >named.yaml
run "$farfault" sweep named.yaml --dry-run
expect_status 0
expect test "$(grep -c 'is not there' err)" -eq 0

# ---- points that fail ----
"$farfault" record -o c.fft "$workloads/vectoradd" 100000 >out 2>&1
printf 'trace: c.fft\nmachine: gtx480\nmemory: [copy, demand]\ngpu-memory: 50%%\n' >small.yaml
run "$farfault" sweep small.yaml
expect_status 1
expect_err "1 of 2 points has an error"
expect_err "copy: with "
expect test "$(sqlite3 small.db "SELECT state, time_ps IS NULL, error LIKE 'copy: %' FROM points WHERE point = 1")" = "refused|1|1"
cat >failing <<X
#!/bin/sh
[ -e fail ] && case "\$*" in *demand*) echo "no luck" >&2; exit 7 ;; esac
[ -e slow ] && sleep 0.2
exec "$farfault" "\$@"
X
chmod +x failing
export FARFAULT_SWEEP_PROGRAM=$work/failing
touch fail
run "$farfault" sweep study.yaml -o failed.db
expect_status 1
expect_err "4 of 15 points have an error"
expect_err "farfault sim ended with status 7: no luck"
rm fail
run "$farfault" sweep study.yaml -o failed.db
expect_status 0
expect_err "4 points run, 11 were in failed.db already"
rows failed.db >again
expect cmp wanted again
unset FARFAULT_SWEEP_PROGRAM
FARFAULT_SWEEP_PROGRAM=/nowhere/x run "$farfault" sweep small.yaml -o none.db
expect_status 1
expect_err "/nowhere/x: cannot be executed"

# ---- two at a time; stopped ----
touch slow
export FARFAULT_SWEEP_PROGRAM=$work/failing
"$farfault" sweep study.yaml -o two.db -j 1 >first 2>&1 </dev/null &
process=$!
until [[ $(count two.db) -ge 1 ]]; do sleep 0.05; done
run "$farfault" sweep study.yaml -o two.db
expect_status 2
expect_err "two.db: another sweep is writing to it (process $process on "
run "$farfault" results two.db # reading is allowed
expect_status 0
kill -INT $process
wait $process
expect test $? -eq 130
expect grep -q "stopped: [0-9]* of 15 points \(is\|are\) in two.db; the same command goes on from there" first
rm slow
run "$farfault" sweep study.yaml -o two.db
expect_status 0
rows two.db >again
expect cmp wanted again
unset FARFAULT_SWEEP_PROGRAM

# ---- killed, a hundred times ----
wrongs=0 kills=0
while [[ $kills -lt 100 ]]; do
  "$farfault" sweep study.yaml -o killed.db >first 2>&1 </dev/null &
  process=$!
  sleep 0.0$((RANDOM % 80 + 10))
  kill -KILL $process 2>/dev/null && kills=$((kills + 1))
  wait $process 2>/dev/null
  [[ -s killed.db ]] || continue
  [[ $(sqlite3 killed.db "PRAGMA integrity_check" 2>&1) == ok ]] || wrongs=$((wrongs + 1))
  # What is there is whole, and what it will be.
  [[ $(count killed.db) -lt 15 ]] && continue
  rows killed.db >again
  cmp -s wanted again || wrongs=$((wrongs + 1))
  rm -f killed.db*
done
expect test $wrongs -eq 0
run "$farfault" sweep study.yaml -o killed.db
expect_status 0
rows killed.db >again
expect cmp wanted again

# ---- one process takes many points, and may be killed: then the point that it had is lost, and comes again ----
cat >many.yaml <<'X'
trace: a.fft
machine: gtx480
memory: [demand, replay]
set: {fault_us: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20], link_latency_us: [1, 2, 3, 4]}
X
run "$farfault" sweep many.yaml -o whole.db -j 1 # more points than one process takes
expect_status 0
expect test "$(count whole.db)" -eq 160
rows whole.db >all
run env FARFAULT_SWEEP_PROGRAM="$farfault" "$farfault" sweep many.yaml -o alone.db # a program each
expect_status 0
rows alone.db >again
expect cmp all again
"$farfault" sweep many.yaml -o hit.db -j 2 >first 2>&1 </dev/null &
process=$!
kills=0
while kill -0 $process 2>/dev/null && [[ $kills -lt 25 ]]; do
  for child in $(pgrep -P $process); do kill -KILL "$child" 2>/dev/null && kills=$((kills + 1)); done
  sleep 0.02
done
wait $process
expect test $? -le 1
expect test "$kills" -gt 0
expect test "$(count hit.db)" -eq 160
expect test "$(sqlite3 hit.db "SELECT count(*) FROM points WHERE error IS NOT NULL AND error NOT LIKE 'ended by signal 9%'")" -eq 0
run "$farfault" sweep many.yaml -o hit.db
expect_status 0
rows hit.db >again
expect cmp all again

# ---- a plug-in that stays in its process does not carry over from point to point ----
cp "$(dirname "$farfault")/../tests/plugins/plugin_remembers.so" .
cp plugin_remembers.so plugin_remembers # a path, by its slash
for plugin in plugin_remembers.so plugin_remembers; do
  for order in "10 20" "20 10"; do
    read -r first_us second_us <<<"$order"
    cat >remembers.yaml <<X
trace: b.fft
machine: gtx480
memory: replay
prefetch: ./$plugin
points: [{set: {fault_us: $first_us}}, {set: {fault_us: $second_us}}]
X
    run "$farfault" sweep remembers.yaml -o "$plugin-$first_us.db" -j 1
    expect_status 0
  done
  for us in 10 20; do
    for first in 10 20; do sqlite3 "$plugin-$first.db" "SELECT * FROM points WHERE fault_us = $us" | cut -d'|' -f2- >"$plugin-$us-$first"; done
    expect cmp "$plugin-$us-10" "$plugin-$us-20"
    expect test -s "$plugin-$us-10"
  done
done

# ---- the job file for Slurm: a step that lost a task is started again, another end is the job's ----
mkdir -p slurm
cat >slurm/srun <<X
#!/bin/bash
[ "\$1" = --mpi=pmix ] || exit 64
echo step >>"$work/steps"
[ "\$(grep -c . "$work/steps")" -ge "\$LOST" ] || exit 137
shift
[ "\$1" = farfault ] && shift
exec "$farfault" "\$@"
X
chmod +x slurm/srun
job() { PATH=$work/slurm:$PATH run bash "$source/examples/cluster/sweep.sbatch" "$@"; }
LOST=3 job study.yaml slurm.db
expect_status 0
expect test "$(grep -c . steps)" -eq 3
expect_err "a task was lost (status 137, attempt 2): once more"
rows slurm.db >again
expect cmp wanted again
rm steps
LOST=9 job study.yaml slurm.db
expect_status 137
expect test "$(grep -c . steps)" -eq 5
rm steps
LOST=1 job small.yaml
expect_status 1
expect test "$(grep -c . steps)" -eq 1
run bash "$source/examples/cluster/sweep.sbatch"
expect_err "STUDY"

# ---- ranks ----
if [[ -e $library ]] && command -v mpirun >/dev/null; then
  kill_rank() { # kill_rank RANK DATABASE
    local victim
    for victim in $(pgrep -f "sweep study.yaml -o $2"); do
      tr '\0' '\n' <"/proc/$victim/environ" 2>/dev/null | grep -qx "OMPI_COMM_WORLD_RANK=$1" && kill -KILL "$victim"
    done
  }
  mpi() { run timeout 60 mpirun --allow-run-as-root --oversubscribe "$@"; }
  mpi -n 3 "$farfault" sweep study.yaml -o ranks.db
  expect_status 0
  expect_err "15 points in ranks.db"
  rows ranks.db >again
  expect cmp wanted again
  mpi -n 2 "$farfault" sweep
  expect test "$(grep -c 'which study' err)" -eq 1
  touch slow
  export FARFAULT_SWEEP_PROGRAM=$work/failing FARFAULT_SWEEP_PATIENCE=1.5
  timeout 60 mpirun --allow-run-as-root --oversubscribe --enable-recovery -n 3 "$farfault" sweep study.yaml -o lost.db >first 2>&1 </dev/null &
  process=$!
  until [[ $(sqlite3 -readonly lost.db "SELECT count(*) FROM timing WHERE rank = 1" 2>/dev/null) -ge 1 ]]; do
    sleep 0.05
    kill -0 $process 2>/dev/null || break
  done
  kill_rank 1 lost.db
  wait $process
  expect grep -q "rank 1 has been silent for 2 s: what it had goes to others" first
  expect grep -q "15 points in lost.db" first
  rows lost.db >again
  expect cmp wanted again
  expect test "$(sqlite3 lost.db "SELECT count(DISTINCT rank) FROM timing")" -eq 3
  # Without rank 0 there is no sweep: the others end, and the next sweep goes on.
  timeout 60 mpirun --allow-run-as-root --oversubscribe --enable-recovery -n 3 "$farfault" sweep study.yaml -o first.db >first 2>&1 </dev/null &
  process=$!
  until [[ $(count first.db) -ge 2 ]]; do
    sleep 0.05
    kill -0 $process 2>/dev/null || break
  done
  kill_rank 0 first.db
  wait $process
  expect test "$(grep -c 'has heard nothing from rank 0' first)" -eq 2
  expect test "$(count first.db)" -lt 15
  rm slow
  unset FARFAULT_SWEEP_PROGRAM FARFAULT_SWEEP_PATIENCE
  run "$farfault" sweep study.yaml -o first.db
  expect_status 0
  rows first.db >again
  expect cmp wanted again
else
  echo "no Open MPI: nothing with ranks was tested"
fi

# ---- results ----
run "$farfault" results study.db
expect_status 0
expect test "$(grep -c '' out)" -eq 16
expect test "$(head -1 out | tr -s ' ')" = "point trace machine l1_bytes fault_us gpu_memory faults_chosen memory time ratio far-faults to GPU to CPU link used"
run "$farfault" results study.db --csv -
cp out points.csv
run "$farfault" report study.db --csv -
expect_status 0
expect diff points.csv out
run "$farfault" results study.db --csv -
expect_status 0
expect test "$(head -1 out | tr , '\n' | wc -l)" -eq "$(sed -n 2p out | tr , '\n' | wc -l)"
expect test "$(grep -c '' out)" -eq 16
run "$farfault" results study.db --json - --where "memory = 'copy'" --columns point,memory,error
expect_status 0
expect test "$(python3 -c 'import json; print(json.load(open("out"))[0])')" = "{'point': 1, 'memory': 'copy', 'error': None}"
run "$farfault" results study.db --columns memory,time_us --where "fault_us > 15 -- a comment"
expect_status 0
expect test "$(grep -c '' out)" -eq 7
run "$farfault" results study.db --where "memory = 'cpoy'"
expect_status 0
expect_out "(--where holds for no point)"
run "$farfault" results study.db --where "memroy = 'copy'"
expect_status 64
expect_err "no such column: memroy"
run "$farfault" results study.db --where "1) UNION SELECT 1 --"
expect_status 64
for where in "1); DELETE FROM points; --" "1); DROP TABLE points" ""; do
  run "$farfault" results study.db --where "$where"
  expect_status 64
done
run "$farfault" results study.db --columns memory,tiem_us
expect_status 64
expect_err "did you mean 'time_us'?"
run "$farfault" results small.db
expect_out "point 1: copy: with "
for file in study.yaml a.fft nowhere.db .; do
  run "$farfault" results $file
  expect_status 2
  expect_err "$file: "
  expect_no_out
done
sqlite3 other.db "CREATE TABLE results(point)"
run "$farfault" results other.db
expect_status 2
expect_err "other.db: is not a database of farfault sweep"
run "$farfault" sweep study.yaml -o other.db
expect_status 2
expect_err "other.db: is not a database of farfault sweep"
cp study.db damaged.db # a page in its middle
printf '%4000s' x | dd of=damaged.db bs=1 seek=5000 conv=notrunc 2>/dev/null
for command in "results damaged.db" "report damaged.db" "sweep study.yaml -o damaged.db"; do
  run "$farfault" $command
  expect_status 2
  expect_err "damaged.db: is damaged: "
  expect_no_out
done
run "$farfault" sweep study.yaml -o a.fft
expect_status 2
expect test "$("$farfault" trace info a.fft | grep -c .)" -gt 3
rows study.db >again
expect cmp wanted again
rm -rf "$TMPDIR"/* # mpirun's, and a killed rank's
finish
