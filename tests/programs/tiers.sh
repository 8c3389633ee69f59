#!/usr/bin/env bash
# Tiers below the host's memory, from the command line: every manager that pages moves the same bytes to and from the GPU with them, the table and
# JSON have them, a file gives the table again, several GPUs share them, and what cannot be is refused. $3: the folder of fixtures; $4: of workloads.
source "$(dirname "$0")/common.sh"
export FARFAULT_CHECK=2
paged=uvm,hmm,segments,auto,demand,tbn,partial-multi
[[ -z ${FARFAULT_FEWER-} ]] || paged=uvm,segments,auto,partial-multi

run "$farfault" record -o va.fft "$4/vectoradd" 1000000
expect_status 0
run "$farfault" sim va.fft --machine h100-nvme --gpu-memory 50% --memory "copy+gpu-memory=100%,$paged" --json all.json
expect_status 0
run "$farfault" sim va.fft --machine h100-nvme --gpu-memory 50% --host-memory 33% --memory "copy+gpu-memory=100%,$paged" --json third.json --csv third.csv
expect_status 0
expect_out "memory         tier      holds"
cp out third
run "$farfault" report third.json
expect_status 0
expect test "$(grep -c nvme out)" -eq 7
expect cmp <(grep nvme out) <(grep nvme third)
expect python3 - <<'END'
import json, sys
def runs(file): return {run['memory']: run for run in json.load(open(file))['runs']}
whole, third = runs('all.json'), runs('third.json')
assert 'tiers' not in third['copy+gpu-memory=100%'] and third['copy+gpu-memory=100%']['time_ps'] == whole['copy+gpu-memory=100%']['time_ps']
del third['copy+gpu-memory=100%']
for name, run in third.items():
    host, drive = run['tiers']
    assert (host['name'], drive['name']) == ('host', 'nvme'), name
    assert host['peak_bytes'] <= host['capacity_bytes'] < 12000000 * 0.34 + 4096, name
    assert drive['written_bytes'] >= host['read_bytes'] > 0 and drive['wait_ps'] > 0, name
    # three arrays of 4 MB: what is not in host memory is on the drive
    assert 12000000 - host['capacity_bytes'] <= drive['peak_bytes'] < 12000000 - host['capacity_bytes'] + (2 << 20), (name, drive['peak_bytes'])
    assert run['time_ps'] > whole[name]['time_ps'], name
    before = whole[name]['tiers']
    assert before[0]['peak_bytes'] <= 12000000 + 3 * 4096 and before[1]['written_bytes'] == before[1]['waits'] == 0, name
END
run "$farfault" sim va.fft --machine h100-nvme --gpu-memory 50% --host-memory 33% --memory "copy+gpu-memory=100%,$paged" --json again.json
expect cmp <(grep -v '_seconds\|"version"\|"argv"' third.json) <(grep -v '_seconds\|"version"\|"argv"' again.json)

# ---- the same numbers as CSV, beside another run, in a condition, and on the page ----
expect python3 - <<'END'
import csv, json
def check(table, runs):
    for row, run in zip(csv.DictReader(open(table)), json.load(open(runs))['runs'], strict=True):
        for i, tier in enumerate(run.get('tiers', [{}, {}])):
            for key in 'name', 'capacity_bytes', 'peak_bytes', 'read_bytes', 'written_bytes', 'waits', 'wait_ps':
                assert row[f'tier{i}_{key}'] == str(tier.get(key, '')), (row['memory'], i, key)
        assert 'tier2_name' not in row
check('third.csv', 'third.json')
END
run "$farfault" report third.json --csv report.csv --html page.html
expect cmp report.csv third.csv
expect grep -q '"tier_counters":\[\["peak_bytes","B",' page.html
run "$farfault" compare all.json third.json
expect_status 1
expect grep -qE '^uvm +nvme +tier_read_bytes +0 B .* worse$' out
expect grep -qE '^uvm +nvme +tier_wait_ps +0 s .* worse$' out
run "$farfault" sim va.fft --machine h100-nvme --gpu-memory 50% --host-memory 33% --memory uvm --fail-if 'uvm.tier_read_bytes > 1 MiB and uvm.tier_waits > 0'
expect_status 3

# Without the option and the group nothing is said of tiers.
run "$farfault" sim va.fft --machine h100-pcie --memory uvm --json plain.json --csv plain.csv
expect_status 0
expect test "$(grep -c '"tiers"' plain.json)" -eq 0
expect test "$(grep -c tier plain.csv)" -eq 0

# ---- far memory before the host's: each manager moves the same bytes to and from the GPU; what one tier gives the next one takes ----
run "$farfault" sim va.fft --machine h100-nvme --gpu-memory 50% --host-memory 33% --set above_host=far:2M:100:90:0.4:64:mapped --memory uvm,auto --json far.json
expect_status 0
expect python3 - <<'END'
import json
def runs(file): return {run['memory']: run for run in json.load(open(file))['runs']}
third = runs('third.json')
for name, run in runs('far.json').items():
    far, host, drive = run['tiers']
    assert (far['name'], host['name'], drive['name']) == ('far', 'host', 'nvme')
    assert far['peak_bytes'] <= far['capacity_bytes'] == 2 << 20 and host['peak_bytes'] <= host['capacity_bytes']
    assert far['written_bytes'] >= far['peak_bytes'] > 0 and far['waits'] > 0, (name, far)
    assert host['read_bytes'] == drive['written_bytes'] > 0, (name, host, drive)
    assert 0 < host['written_bytes'] <= far['read_bytes'] + drive['read_bytes'], name
    assert drive['peak_bytes'] <= third[name]['tiers'][1]['peak_bytes'], name
END

# ---- two GPUs: 4 MiB of managed memory that go from one to the other and back, with 2 MiB of room in each and in the host's memory; they share the tiers ----
two="--machine l40s-4-nvme --gpu-memory 2M --host-memory 2M --memory demand,segments,auto"
run "$farfault" run --devices 2 $two --json two.json --csv two.csv --record two.fft "$3/devices" pages
expect_status 0
expect_out good
expect test "$(grep -c '^ *nvme \|  nvme ' out)" -eq 6
expect python3 - <<'END'
import csv, json
runs = {run['memory']: run for run in json.load(open('two.json'))['runs']}
rows = {row['memory']: row for row in csv.DictReader(open('two.csv'))}
assert len(runs) == 6
for name in 'demand', 'segments', 'auto':
    pair = [runs[f'{name}@{device}'] for device in (0, 1)]
    assert pair[0]['time_ps'] == pair[1]['time_ps'], name
    for tier in 0, 1:
        first, second = (run['tiers'][tier] for run in pair)
        for key in 'name', 'capacity_bytes', 'peak_bytes': assert first[key] == second[key], (name, key)
        for device, run in enumerate(pair):
            assert rows[f'{name}@{device}'][f'tier{tier}_read_bytes'] == str(run['tiers'][tier]['read_bytes'])
    host, drive = (pair[0]['tiers'][tier] for tier in (0, 1))
    assert host['peak_bytes'] <= host['capacity_bytes'] == 2 << 20, name
    # half of the array at least has been on the drive, and the GPU that came next has read it from there
    assert drive['peak_bytes'] >= (2 << 20) - 65536, (name, drive)
    assert all(run['tiers'][1]['read_bytes'] > 0 for run in pair), name
    assert sum(run['tiers'][1]['written_bytes'] for run in pair) >= drive['peak_bytes'], name
END
for round in 1 2; do
  run "$farfault" sim $two --json sim.json two.fft
  expect_status 0
  expect diff <(sed '/^ "host": {/,$d' two.json) <(sed '/^ "host": {/,$d' sim.json)
done
cat >two.yaml <<'END'
title: a program of two GPUs above a drive
trace: two.fft
machine: l40s-4-nvme
gpu-memory: 2M
host-memory: [2M, 8M]
memory: demand
END
run "$farfault" sweep two.yaml
expect_status 0
run "$farfault" results two.db --where "host_memory = '2M'"
expect_out demand

# ---- programs side by side: SMs of their own, or a slice of the GPU, do not keep them apart below it ----
run "$farfault" record -o small.fft "$4/vectoradd" 400000
beside() { # beside JSON OPTION...
  local json=$1
  shift
  run "$farfault" share --machine h100-nvme --memory uvm --isolate sm,mig --set memory_bytes=16M --json "$json" "$@" small.fft
  expect_status 0
}
beside narrow.json --host-memory 2M --jobs 2
expect_out "memory uvm, host memory 2M"
beside wide.json --host-memory 64M
beside narrow2.json --host-memory 2M --jobs 1
expect python3 - <<'END'
import json
narrow, wide, again = (json.load(open(f'{name}.json')) for name in ('narrow', 'wide', 'narrow2'))
assert narrow['host_memory'] == '2M' and wide['host_memory'] == '64M'
def worst(study): return {each['isolation']: each['variation_most'] for each in study['isolations']}
assert all(v > 10 for v in worst(narrow).values()), worst(narrow)
assert all(v < 1 for v in worst(wide).values()), worst(wide)
assert worst(narrow) == worst(again)
END
# What each took of the tiers: alone the same as by itself; nothing of the drive where all fits; both programs' bytes add up.
run "$farfault" sim small.fft --machine l40s-4-nvme --memory uvm --set memory_bytes=16M --host-memory 2M --json itself.json
python3 "$here/on_terminal.py" 80 "$farfault" share --machine l40s-4-nvme --memory uvm --isolate sm --set memory_bytes=16M --host-memory 2M --json rows.json --csv rows.csv small.fft >out 2>err </dev/null
shown="share on 80 columns"
expect test "$(awk 'length > 80' out | wc -l)" -eq 0
expect_out "below GPU memory  beside  tier      holds"
expect test "$(grep -c '  nvme  27.94 TiB ' out)" -eq 2
python3 "$here/on_terminal.py" 80 "$farfault" share --one --machine l40s-4-nvme --memory uvm --isolate sm --set memory_bytes=16M --host-memory 2M --json one.json small.fft small.fft >out 2>err </dev/null
expect test "$(awk 'length > 80' out | wc -l)" -eq 0
expect test "$(grep -c ' nvme  27.94 TiB ' out)" -eq 2
expect python3 - <<'END'
import csv, json
itself, rows, one, wide = (json.load(open(f'{name}.json')) for name in ('itself', 'rows', 'one', 'wide'))
def tiers(partition): return {tier['name']: tier for tier in partition['tiers']}
assert rows['alone'][0]['partitions'][0]['tiers'] == itself['runs'][0]['tiers']
beside = rows['isolations'][0]['rows'][0]['beside'][1]['partitions']
assert [each['tiers'] for each in beside] == [each['tiers'] for each in one['programs']]
both = [tiers(each)['nvme'] for each in beside]
assert all(each['read_bytes'] > 0 and each['wait_ps'] > 0 for each in both) and both[0]['peak_bytes'] == both[1]['peak_bytes']
assert tiers(wide['isolations'][0]['rows'][0]['beside'][1]['partitions'][0])['nvme']['read_bytes'] == 0
assert all(row['tier1_name'] == 'nvme' for row in csv.DictReader(open('rows.csv')))
END
run "$farfault" share --machine h100-pcie --memory uvm --host-memory 2M --isolate sm small.fft
expect test "$status" -ne 0
expect_err "has nothing below the host's memory for what does not fit"

# ---- refused ----
run "$farfault" sim va.fft --machine h100-pcie --memory uvm --host-memory 33%
expect_err "has nothing below the host's memory for what does not fit: give it a tier (below_host)"
run "$farfault" sim va.fft --machine h100-nvme --memory uvm --host-memory 1M
expect_status 64
expect_err "'1M' is less than 2 MiB"
run "$farfault" sim va.fft --machine h100-nvme --memory uvm --host-memory 2M --set below_host=nvme:4M:6:4:80:4K:paged
expect_out "the host's memory and the tiers below it hold 6.00 MiB"
sed 's/13, 6.6, 80/13, 0, 80/' "$source/machines/h100-nvme.yaml" >broken.yaml
run "$farfault" sim va.fft --machine ./broken.yaml --memory uvm
expect_err "broken.yaml:$(grep -n below_host broken.yaml | cut -d: -f1):"
expect_err "0 is out of range: 0.001 to 1000000 GB/s"
