#!/usr/bin/env bash
# scripts/gpu-kernels.py: the virtual GPU's counters, NVIDIA's profiler's (a stand-in prints what ncu would), the two side by side. $3: the build folder.
source "$(dirname "$0")/common.sh"
kernels=$source/scripts/gpu-kernels.py
measure() { run "$kernels" measure --build "$build" "$@"; }
build=$3

# Every bundled workload but the one that is only about managed memory has arguments for large GPUs.
names() { cut -f1 "$1" | tail -n +2 | grep -vx hosttouch; }
expect diff <(names "$source/workloads/workloads.tsv") <(names "$source/workloads/kernels.tsv")

measure --driver virtual --quick --only vectoradd,bfs -o ours.csv
expect_status 0
expect_out "ours.csv: 2 kernels"
"$farfault" run --machine h200 --memory copy --l2 flush --quiet --json run.json -- "$build/workloads/vectoradd" 10000 2 >/dev/null
expect python3 - <<'END'
import csv, json, sys
rows = {row["workload"]: row for row in csv.DictReader(open("ours.csv"))}
kernel = json.load(open("run.json"))["runs"][0]["kernels"][0]
row = rows["vectoradd"]
us = kernel["time_ps"] / 2 / 1e6
expected = {"kernel": "vectoradd", "launches": "2", "arguments": "10000 2", "instructions": f"{kernel['warp_instructions'] / 2:.6g}",
            "us": f"{us:.6g}", "cycles": f"{us * 1980:.6g}", "dram_read_bytes": f"{kernel['dram_read_bytes'] / 2:.6g}",
            "l2_sectors": f"{(kernel.get('l2_hits', 0) + kernel['l2_misses']) / 2:.6g}", "registers": ""}
wrong = {name: row[name] for name in expected if row[name] != expected[name]}
if wrong:
    print(wrong, expected)
sys.exit(bool(wrong))
END
measure --driver virtual --machine no-such -o none.csv
expect_err "no-such"
expect test ! -e none.csv
measure --driver virtual --quick --only nothing -o none.csv
expect_err "no workload 'nothing'"
measure --driver virtual --quick --only vectoradd --seconds -1 -o none.csv
expect_status 2
expect test ! -e none.csv

# Without the profiler.
mkdir empty
run env PATH="$work/empty" "$(python3 -c "import sys; print(sys.executable)")" "$kernels" measure --build "$build" -o none.csv
expect_status 77
expect_out "no ncu"

# With a stand-in: it runs the workloads and prints, line by line, what the profiler would of them.
mkdir bin
cat >bin/ncu <<'END'
#!/usr/bin/env bash
echo "$*" >>asked
while [[ $1 != --log-file ]]; do shift; done
log=$2
shift 2
[[ -z ${NO_RIGHT-} ]] || { echo "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission" >"$log"; exit 1; }
LD_LIBRARY_PATH=$VIRTUAL "$@"
status=$?
line() { echo "\"$1\",\"7\",\"$2\",\"127.0.0.1\",\"$3\",\"1\",\"7\",\"(256, 1, 1)\",\"(40, 1, 1)\",\"0\",\"9.0\",\"Command line profiler metrics\",\"$4\",\"$5\",\"$6\""; }
{
  echo "==PROF== Connected to process 7 (/somewhere/vectoradd)"
  echo '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"'
  line 0 vectoradd "vectoradd(float const *, int)" gpu__time_duration.sum nsecond "1,000"
  line 0 vectoradd "vectoradd(float const *, int)" sm__cycles_elapsed.max cycle "2,000"
  line 0 vectoradd "vectoradd(float const *, int)" lts__t_sectors_srcunit_tex.sum sector 100
  line 0 vectoradd "vectoradd(float const *, int)" dram__bytes_read.sum byte 400
  line 1 vectoradd "vectoradd(float const *, int)" gpu__time_duration.sum nsecond "3,000"
  line 1 vectoradd "vectoradd(float const *, int)" sm__cycles_elapsed.max cycle "4,000.50"
  line 1 vectoradd "vectoradd(float const *, int)" lts__t_sectors_srcunit_tex.sum sector 300
  line 1 vectoradd "vectoradd(float const *, int)" dram__bytes_read.sum byte n/a
  line 2 bfs bfs_level sm__cycles_elapsed.max cycle 48399.6
} >"$log"
exit $status
END
chmod +x bin/ncu
export VIRTUAL=$build/lib/farfault
unset FARFAULT_DRIVER
run env PATH="$work/bin:$PATH" "$kernels" measure --build "$build" --quick --only vectoradd,bfs -o gpu.csv
expect_status 0
expect_out "gpu.csv: 2 kernels"
expect grep -q 'cache-control all' asked
expect grep -q 'sm__cycles_elapsed.max,' asked
expect grep -qx 'vectoradd,10000 2,vectoradd,2,2,3000.25,,,,200,,,,,,' gpu.csv
run env PATH="$work/bin:$PATH" NO_RIGHT=1 "$kernels" measure --build "$build" --quick --only vectoradd -o none.csv
expect_status 77
expect_out ERR_NVGPUCTRPERM
mkdir -p broken/workloads
printf '#!/bin/sh\nexit 1\n' >broken/workloads/vectoradd
chmod +x broken/workloads/vectoradd
run env PATH="$work/bin:$PATH" "$kernels" measure --build broken --quick --only vectoradd -o broken.csv
expect_status 1
expect_out "failed: vectoradd"
run env PATH="$work/bin:$PATH" "$kernels" measure --build broken --quick --only vectoradd --seconds 0 -o broken.csv
expect_out "vectoradd (no time left)"

# Side by side: the worst first; of what both have.
run "$kernels" compare ours.csv ours.csv
expect_status 0
expect_out "2 kernels: ratio 1.00, error 0.0 %"
python3 - <<'END'
import csv
ours = list(csv.DictReader(open("ours.csv")))
columns = list(ours[0])
def write(name, factors):
    with open(name, "w") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        for row, factor in zip(ours, factors):
            writer.writerow({**row, "cycles": float(row["cycles"]) / factor})
write("other.csv", (0.5, 2))
write("one.csv", (1.5,))
END
run "$kernels" compare other.csv ours.csv
expect_out "2 kernels: ratio 1.00, error 75.0 %, correlation of the logarithms -; in one file only: 0"
run "$kernels" compare one.csv ours.csv
expect_out "1 kernels: ratio 1.50, error 50.0 %, correlation of the logarithms -; in one file only: 1"
run "$kernels" compare gpu.csv ours.csv
expect_status 0
expect awk '/vectoradd: vectoradd/ { found = $3 == "3000" && $5 == sprintf("%.2f", $4 / $3) } END { exit !found }' out
head -1 ours.csv >none.csv
run "$kernels" compare none.csv ours.csv
expect_status 2
finish
