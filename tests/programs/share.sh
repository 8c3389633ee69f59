#!/usr/bin/env bash
# farfault share: arguments that are refused; matrix, deadlines, failures and interruption with simulations of known outcome in place of ours; then ours.
source "$(dirname "$0")/common.sh"
workloads=$3
golden=$here/share-mig.csv

run "$farfault" record -o a.fft "$workloads/vectoradd" 5000
expect_status 0
run "$farfault" record -o b.fft "$workloads/vectoradd" 20000
expect_status 0

# ---- what is refused ----
refused() { # refused STATUS MESSAGE ARGUMENT...
  local status_wanted=$1 message=$2
  shift 2
  run "$farfault" share "$@"
  expect_status "$status_wanted"
  expect_err "$message"
  expect_no_out
}
refused 64 "which programs?"
refused 2 "nowhere.fft" --machine gtx1080 a.fft nowhere.fft
head -c 300 a.fft >cut.fft
printf 'no trace' >no.fft
refused 2 "no.fft" --machine gtx1080 no.fft
refused 64 "did you mean 'gtx1080'?" --machine gtx1008 a.fft
refused 64 "--partitions:1:4: " --machine gtx1080 --partitions 50:x a.fft
refused 64 "with one partition there is no neighbour" --machine gtx1080 --partitions 50% a.fft
refused 64 "--partitions" --machine gtx1080 --partitions 1:1:1:1:1:1:1:1:1 a.fft
refused 64 "no 'smm': did you mean 'sm'?" --machine gtx1080 --isolate smm a.fft
refused 64 "the address hash of gp100 is not known" --machine gp100 --isolate sm+memory a.fft
refused 64 "3 partitions, but gtx1080 has 2 colours of pages of 4 KiB" --machine gtx1080 --partitions 1:1:1 --isolate sm+memory a.fft
refused 64 "--borrow: with none and mps no program has anything to lend, with mig none may" --machine gtx1080 --isolate mps --borrow a.fft
refused 64 "--borrow" --machine a100 --isolate mig --borrow a.fft
for machine in v100 l40 rtx4090 gtx1080; do
  refused 64 "has no MIG: there are no mig_profiles in its machine file" --machine $machine --isolate mig a.fft
  refused 64 "has no MIG" --machine $machine --isolate mig --mig 3g,3g a.fft
done
refused 64 "--mig:1:4: no profile '5g': NVIDIA A100-SXM4-80GB has 1g.10gb, 1g.20gb, 2g.20gb" --machine a100 --mig 3g,5g a.fft
refused 64 "--mig:1:4: a profile is missing" --machine a100 --mig 3g, a.fft
refused 64 "--mig: these profiles have 8 compute slices together: there are 7" --machine a100 --mig 4g,4g a.fft
refused 64 "--mig: these profiles have 9 memory slices together: there are 8" --machine h100 --mig 3g,3g,1g a.fft
refused 64 "--mig: these profiles have 120 SMs together: there are 100" --machine h100 --set sm_count=100 --mig 3g,3g a.fft
refused 64 "--mig: 2 profiles, but 3 partitions" --machine a100 --partitions 1:1:1 --isolate mig --mig 3g,3g a.fft
refused 64 "--mig is for --isolate mig" --machine a100 --isolate sm --mig 3g,3g a.fft
refused 64 "has no profile of which 8 fit" --machine a100 --isolate mig --partitions 1:1:1:1:1:1:1:1 a.fft
refused 64 "cannot be divided into 8" --machine a100 --set channels=20 --isolate mig a.fft
refused 64 "with one partition there is no neighbour" --machine a100 --mig 7g a.fft
refused 64 "slices of MIG have a few sizes only" --machine a100 --isolate mig --slo a.fft=1ms a.fft
refused 64 "--slo:1:1: no program 'c.fft' here" --machine gtx1080 --slo c.fft=1ms a.fft
refused 64 "--slo:1:11: 'soon' is no deadline" --machine gtx1080 --slo a.fft=1ms,b=soon a.fft b.fft
refused 64 "time slices have no shares" --machine gtx1080 --isolate none --slo a.fft=1ms a.fft
refused 64 "one manager, for all programs" --machine gtx1080 --memory copy,uvm a.fft
refused 64 "prefetch=POLICY and evict=POLICY here, not 'gpu-memory=50%'" --machine gtx1080 --memory uvm+prefetch=none+gpu-memory=50% a.fft
refused 64 "there is no prefetcher 'tree'" --machine gtx1080 --memory replay+prefetch=tree a.fft
refused 64 "'prefetch' says nothing to copy" --machine gtx1080 --memory copy+prefetch=tbn a.fft
refused 64 "'a.fft'" --machine gtx1080 --memory a.fft a.fft
refused 64 "--jobs: '0'" --machine gtx1080 --jobs 0 a.fft
refused 64 "a.fft: is a recording: the report would take its place" --machine gtx1080 --csv a.fft a.fft
refused 1 "nowhere/s.svg: cannot write there" --machine gtx1080 --svg nowhere/s.svg a.fft
refused 64 "3 programs, but 2 partitions" --machine gtx1080 --one a.fft b.fft a.fft
refused 64 "the first partition is the measured one" --machine gtx1080 --one - a.fft
refused 64 "--one is one simulation" --machine gtx1080 --one --slo a.fft=1ms a.fft
refused 64 "--one is one simulation" --machine gtx1080 --one --isolate sm,mps a.fft
refused 64 "fault_su" --machine gtx1080 --set fault_su=1 a.fft

# ---- simulations of known outcome ----
# Alone 100 us (a), 300 us (b); half the SMs take twice as long; in parallel with a x 1.5, with b x 2.5, with memory of its own x 1.05 with either.
cat >known <<'X'
#!/usr/bin/env bash
while [[ $1 != -- ]]; do
  case $1 in --isolate | --partitions | --json) declare "${1#--}=$2" && shift ;; esac
  shift
done
shift
[[ -n ${DIES:-} && "$isolate $*" == "$DIES" ]] && { echo "farfault: this one dies" >&2; exit 3; }
[[ -n ${SLEEPS:-} && "$isolate $*" == "$SLEEPS" ]] && touch asleep && exec sleep 60
awk -v isolate="$isolate" -v partitions="$partitions" -v programs="$*" 'BEGIN {
  n = split(partitions, part, ":"); split(programs, program, " ")
  print "{\"programs\": ["
  for (i = 1; i <= n; i++) {
    split(part[i], share, /sm=|%,memory=|%/)
    sm = share[2] / 100; base = program[i] == "a.fft" ? 100 : 300; slow = 1
    if (n > 1 && program[2] != "-") slow = isolate == "sm+memory" ? 1.05 : program[2] == "b.fft" ? 2.5 : 1.5
    printf "{\"kernel_us\": %.3f, \"total_us\": 1, \"launches\": 4, \"passes\": 0, \"sms\": %d, \"colours\": %d, \"memory_slices\": %d, \"dram_gbs\": 50.5, \"dram_share\": 0.25,", base / sm * slow, int(sm * 20 + 0.5), isolate == "sm+memory" ? int(share[3] / 50 + 0.5) : 0, isolate == "mig" ? 4 : 0
    printf "\"dram_unused_gbs\": %d, \"borrowed_us\": 0, \"take_back_us\": 0, \"error\": \"\"}%s\n", program[2] == "-" ? 160 : 0, i < n ? "," : ""
  }
  print "]}" }' >"$json"
X
chmod +x known
export FARFAULT_SHARE_PROGRAM=$PWD/known
both=(--machine gtx1080 --isolate sm,sm+memory a.fft b.fft)
run "$farfault" share "${both[@]}" --json s.json --csv s.csv --svg s.svg
expect_status 0
expect_no_err
expect_out "sm: 10 of 20 SMs"
expect_out "sm+memory: 10 of 20 SMs, 1 of 2 colours"
expect_out "variation: 150.0 % on average, 150.0 % at most (a beside b)"
expect_out "variation: 5.0 % on average, 5.0 % at most (a beside a)"
expect_out "sm+memory      5.0 %    5.0 %             1.000  1.050  160.0 GB/s"
expect test "$(wc -l <s.csv)" -eq 15 # a heading, 2 alone, 2 isolations x 2 programs x 3
expect grep -q '^sm,a,b,2.5,2.5,500,1,4,0,10,0,0,50.5' s.csv
expect grep -q '^alone,b,,,,300,' s.csv
expect python3 -c 'import json; c = json.load(open("s.json"))["isolations"][1]["rows"][1]["beside"][2]; assert (c["interferer"], c["partitions"][1]["program"], c["normalised"]) == ("b", "b", 1.05)'
expect python3 -c 'import xml.dom.minidom as m; m.parse("s.svg")'
cp out all
for jobs in 1 3; do
  run "$farfault" share "${both[@]}" --jobs $jobs --json t.json --csv t.csv --svg t.svg
  expect cmp -s out all
  for kind in json csv svg; do expect cmp -s s.$kind t.$kind; done
done
run "$farfault" share --machine gtx1080 --isolate mps a.fft --interferers b.fft,a.fft --partitions 25%:25% --csv s.csv
expect_status 0
expect grep -q '^mps,a,b,2.5,2.5,1000,' s.csv
expect grep -q '^mps,a,none,1,1,400,' s.csv
expect test "$(wc -l <s.csv)" -eq 5
run "$farfault" share --machine gtx1080 a.fft # all that the machine has
expect test "$(grep -c '^[a-z+]*: 10 of 20 SMs' out)" -eq 4
run "$farfault" share --machine gp100 a.fft --partitions 1:3
expect_status 0
expect_err "sm+memory is left out: gp100 has too few colours"

# Slices stand beside the others where the machine has them and the partitions are equal, or where profiles are named.
run "$farfault" share --machine h100 a.fft --csv s.csv
expect_out "mig 3g.40gb,3g.40gb: 10 of 132 SMs, 4 of 8 memory slices"
expect grep -q '^mig,a,a,1.5,1.36363636,300,' s.csv # 300 us x 60 / 132 over 100 us
run "$farfault" share --machine h100 a.fft --partitions 1:3
expect test "$(grep -c mig out)" -eq 0
run "$farfault" share --machine h100 a.fft --mig 4g,2g,1g --jobs 1
expect_out "mig 4g.40gb,2g.20gb,1g.10gb"
expect_out "partitions 1:1:1,"

# A simulation that fails is named, the others are kept, no file is written.
rm s.json
DIES="sm a.fft b.fft" run "$farfault" share "${both[@]}" --json s.json
expect_status 1
expect_err "a beside b under sm: this one dies"
expect_err "incomplete: 13 of 14 simulations are there, and no file was written"
expect_out "variation: 100.0 % on average" # a in parallel with a 50 %, b 150 %
expect test ! -e s.json
# Interrupted while the last one runs: what it has.
SLEEPS="sm+memory b.fft b.fft" "$farfault" share "${both[@]}" --jobs 1 >out 2>err </dev/null &
child=$!
for _ in $(seq 200); do [[ -e asleep ]] && break; sleep 0.05; done
kill -TERM $child
wait $child
status=$? shown="an interrupted share"
expect_status 143
expect_err "incomplete: 13 of 14 simulations are there"
expect_out "kernel time"
expect test -z "$(pgrep -P $child)"

# ---- deadlines ----
run "$farfault" share "${both[@]}" --slo a.fft=250us,b=500us/launch --json l.json --csv l.csv --svg l.svg
expect_status 0
expect_out "a: at most 250 us of kernel time"
expect_out "smallest share under sm: none"                                # with 19 SMs and 2.5 x: 263 us
expect_out "sm+memory: 9 of 20 SMs, 1 of 2 colours (sm=45%,memory=50%): 233 us" # 100 x 20 / 9 x 1.05
expect_out "sm: 8 of 20 SMs (sm=40%): 469 us beside b"                    # 300 / 4 x 20 / 8 x 2.5
expect_out "all of these together: 13 of 20 SMs, 2 of 2 colours: one GPU has room for them"
expect python3 -c 'import xml.dom.minidom as m; m.parse("l.svg")'
expect python3 -c 'import json; assert json.load(open("l.json"))["deadlines"][1]["smallest"]["sm+memory"] == {"sms": 4, "colours": 1}'
expect grep -q '^a,sm+memory,250,0,1,9,233.333,a,1,1$' l.csv
DIES="sm a.fft b.fft" run "$farfault" share "${both[@]}" --slo a=1ms --json none.json
expect_status 1
expect_out "this one dies"
expect test ! -e none.json
unset FARFAULT_SHARE_PROGRAM

# ---- ours ----
run "$farfault" record -o mm.fft "$workloads/matmul" 128 1
run "$farfault" record -o va.fft "$workloads/vectoradd" 262144 1
ours=(--machine gtx1080 mm.fft va.fft)
run "$farfault" share "${ours[@]}" --json s.json --csv s.csv
expect_status 0
expect_no_err
run "$farfault" share --machine gtx1080 va.fft --isolate sm --csv again.csv --jobs 1
expect diff <(grep '^sm,va,' s.csv | grep -v mm) <(grep '^sm,' again.csv)
expect test "$(grep -c '^sm,' again.csv)" -eq 2
# Alone is what `farfault sim` says; memory of its own keeps interferers out; what that leaves idle.
run "$farfault" sim va.fft --machine gtx1080 --memory copy --csv sim.csv
cat >check.py <<'X'
import csv, json
rows = {(r["isolation"], r["program"], r["beside"]): r for r in csv.DictReader(open("s.csv"))}
simulated = float(next(csv.DictReader(open("sim.csv")))["kernel_us"])
assert abs(float(rows["alone", "va", ""]["kernel_us"]) - simulated) < 1e-3 * simulated, simulated
by = {i["isolation"]: i for i in json.load(open("s.json"))["isolations"]}
assert by["sm+memory"]["variation_most"] < 10 < by["sm"]["variation_most"], by
assert by["none"]["variation_most"] > by["mps"]["variation_most"] > by["sm+memory"]["variation_most"]
assert by["sm+memory"]["unused_gbs"] == 160 and by["sm"]["unused_gbs"] == 0
row = rows["sm+memory", "va", "mm"]
assert (row["sms"], row["colours"], row["launches"]) == ("10", "1", "1"), row
X
expect python3 check.py
# The smallest share, simulated by itself, is what the search said.
run "$farfault" share "${ours[@]}" --isolate sm+memory --interferers va.fft --slo va=25us --csv l.csv
expect_status 0
IFS=, read -r _ _ _ _ _ sms us _ < <(grep ',1$' l.csv)
# ---- a manager with other policies: replay fetches nothing ahead, and nothing is evicted here ----
for manager in replay replay+prefetch=none+evict=lru replay+prefetch=sequential; do
  run "$farfault" share --one --machine gtx1080 --isolate sm --memory "$manager" --json "$manager.json" b.fft -
  expect_status 0
done
expect cmp replay.json replay+prefetch=none+evict=lru.json
expect test "$(cmp replay.json replay+prefetch=sequential.json 2>&1 | wc -l)" -eq 1

run "$farfault" share --machine gtx1080 --isolate sm+memory --one --partitions "sm=$((sms * 5))%,memory=50%:sm=$((100 - sms * 5))%,memory=50%" va.fft va.fft --json one.json
expect_status 0
expect python3 -c 'import json, sys; o = json.load(open("one.json"))["programs"][0]; assert abs(o["kernel_us"] - float(sys.argv[1])) < 1e-3 and o["kernel_us"] <= 25, o' "${us:-0}"
run "$farfault" share --machine gtx1080 va.fft --interferers mm.fft --isolate sm+memory --borrow --csv s.csv
expect_status 0
expect_out "taken back"
expect python3 -c 'import csv; assert all(float(r["take_back_us"]) < 100 for r in csv.DictReader(open("s.csv")))'
expect python3 -c 'import csv; assert any(float(r["borrowed_us"]) > 1 for r in csv.DictReader(open("s.csv")))'
# Slices: the same time to the picosecond beside anything, which is that of a machine of the slice's size.
run "$farfault" share --machine a100 --isolate sm,mig va.fft --interferers mm.fft,va.fft --csv mig.csv
expect_status 0
expect_no_err
expect_out "mig 3g.40gb,3g.40gb: 42 of 108 SMs, 4 of 8 memory slices"
[[ ${FARFAULT_GOLDEN-} != write ]] || cp mig.csv "$golden"
expect diff "$golden" mig.csv
half=sm_count=42,channels=20,l2_slices=40,l2_bytes=20M,dram_gbs=1019.5,memory_bytes=40G,walkers=32,walk_cache_bytes=32K,l2_copies=0,side_latency=0,copy_engines=3,gpu_block_launch_cycles=3.0857142857142859
run "$farfault" sim va.fft --machine a100 --set $half --memory copy --csv half.csv
cat >slices.py <<'X'
import csv
rows = [r for r in csv.DictReader(open("mig.csv")) if r["isolation"] == "mig"]
assert len(rows) == 3
assert all(r["over_none"] == "1" and r["memory_slices"] == "4" for r in rows)
half = next(csv.DictReader(open("half.csv")))
assert {float(r["kernel_us"]) for r in rows} == {float(half["kernel_us"])}, half["kernel_us"]
assert {float(r["dram_unused_gbs"]) for r in rows} == {0, 1019.5}
X
expect python3 slices.py
# With check words on the bus (ECC) there is less for data: four sectors with each four, half.
run "$farfault" share --one --machine a100 --set dram_check_sectors=4 --mig 3g,3g va.fft -
expect_status 0
expect_out ' 509.8'
# The memory of a slice is what its program has: 3 MiB of arrays do not fit 2 MiB.
run "$farfault" share --one --machine a100 --set memory_bytes=16M --mig 1g,1g va.fft -
expect_status 1
expect_err "but the GPU has 2.00 MiB of memory"
run "$farfault" share --one --machine a100 --set memory_bytes=16M --mig 3g,1g va.fft -
expect_status 0

# A recording that is cut off is said to be, and simulated as far as it goes.
head -c $(($(stat -c %s va.fft) - 60)) va.fft >end.fft
run "$farfault" share --machine gtx1080 --isolate sm end.fft
expect_err "end.fft: its end is missing"
expect test $status -le 1

# One that is damaged fails, with the frame: nothing of it was measured.
{ head -c 500 b.fft; printf XXXX; tail -c +505 b.fft; } >damaged.fft # in the contents of its frame
run "$farfault" share --machine gtx1080 --isolate sm damaged.fft
expect_status 1
expect_err "damaged.fft: frame 0 at byte"
run timeout 60 "$farfault" share --machine gtx1080 --isolate sm damaged.fft b.fft
expect_status 1
expect_err "damaged.fft: frame 0 at byte"
finish
