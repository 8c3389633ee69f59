#!/usr/bin/env bash
# `farfault bench`: Wilt's microbenchmark and the pipelines on the virtual GPU: numbers that hold whatever the machine, files, what is refused.
source "$(dirname "$0")/common.sh"
export FARFAULT_DRIVER=virtual
value() { python3 -c "import json,sys; d=json.load(open(sys.argv[1])); print(eval(sys.argv[2], {'d': d}))" "$@"; }
holds() { if [[ $(value "$1" "$2") == True ]]; then pass; else wrong "$1: not so: $2"; fi; }

# managed: an empty turn is the same in each way; what moves more takes longer; the paper's boards come out near the paper.
for machine in gm200 gp100; do
  run "$farfault" bench managed --machine $machine --repeat 3 --json - --csv $machine.csv --svg $machine.svg
  expect_status 0
  expect_no_err
  cp out $machine.json
  holds $machine.json 'd["turns"] == 3 and len(d["ways"]) == 5 and len(d["pages"]) == 14'
  holds $machine.json 'all(abs(w["touched_us"][-1] - w["touched_us"][-2]) > 1 for w in d["ways"].values())'
  holds $machine.json 'all(a <= b + 1e-9 for w in d["ways"].values() for a, b in zip(w["touched_us"][1:], w["touched_us"][2:]))'
  holds $machine.json 'd["ways"]["managed"]["touched_us"][0] == d["ways"]["copies"]["touched_us"][0] == d["ways"]["managed"]["untouched_us"][9]'
  holds $machine.json 'd["ways"]["copies_in"]["touched_us"][13] < d["ways"]["copies"]["touched_us"][13]'
  holds $machine.json "abs(d['ways']['managed']['touched_us'][13] / d['paper']['${machine}_us'][13] - 1) < 0.1"
  # Segments cost what the program's own copies cost, once there is something to copy: within a tenth from 1 MiB on.
  holds $machine.json 'all(d["ways"]["segments_in"]["touched_us"][i] < 1.1 * d["ways"]["copies_in"]["touched_us"][i] for i in range(9, 14))'
  holds $machine.json 'all(d["ways"]["segments"]["touched_us"][i] < 1.1 * d["ways"]["copies"]["touched_us"][i] for i in range(9, 14))'
  expect test "$(wc -l <$machine.csv)" -eq $((1 + 5 * 14 + 2 * 14))
  expect grep -q "^managed,4096,16777216," $machine.csv
  expect grep -q "farfault bench managed --machine $machine --repeat 3, on $machine" $machine.svg
  expect python3 -c "import xml.dom.minidom as m; m.parse('$machine.svg')"
done
run "$farfault" bench managed --only copies_in --repeat 2
expect_status 0
expect_out "copies in"
expect_out "33992.00 (494)"
expect test "$(grep -c managed out)" -eq 0
cp out first
run "$farfault" bench managed --only copies_in --repeat 2
expect cmp -s first out

# pipeline: right everywhere; copies and kernels alone are no slower than the whole; bytes as they must be.
small=(--data 16M --budget 4M --tile 256K --machine v100)
run "$farfault" bench pipeline "${small[@]}" --json - --csv p.csv --svg p.svg
expect_status 0
expect_no_err
cp out p.json
holds p.json '[s["shape"] for s in d["shapes"]] == ["stream", "chain", "diamond"]'
holds p.json 'all(p["wrong"] == 0 for s in d["shapes"] for p in s["machines"][0]["programs"].values())'
holds p.json 'all(s["machines"][0]["programs"][n]["checked"] == 2 << 20 for s in d["shapes"] for n in ("streams", "managed", "segments"))'
holds p.json 'all(s["machines"][0]["programs"][n]["seconds"] < s["machines"][0]["programs"]["streams"]["seconds"] for s in d["shapes"] for n in ("kernels", "transfers"))'
holds p.json 'all(s["machines"][0]["programs"]["streams"][n] == 8 << 20 for s in d["shapes"] for n in ("to_gpu_bytes", "from_gpu_bytes"))'
holds p.json 'all(s["machines"][0]["programs"]["managed"]["to_gpu_bytes"] >= 8 << 20 for s in d["shapes"])'
expect test "$(wc -l <p.csv)" -eq 16
expect python3 -c "import xml.dom.minidom as m; m.parse('p.svg')"
run "$farfault" bench pipeline --shape matmul --data 768K --budget 4M --tile 64K --machine v100 --only streams,managed,segments --keep runs
expect_status 0
expect test "$(grep -c ' right' out)" -eq 3
run "$farfault" timeline runs/matmul-v100-streams.ffr -o t.json
expect_status 0
expect grep -q '"product' t.json

# What is refused, before anything is measured.
refused() {
  run "$farfault" bench "${@:2}"
  expect_status 64
  expect_no_out
  expect_err "$1"
}
refused "what is to be measured" --json
refused "did you mean 'managed'" manged
refused "no measurement 'xyz'" xyz
refused "did you mean 'diamond'" pipeline --shape diamnd
refused "for pipeline" managed --data 1M
refused "for managed" pipeline --repeat 3
refused "one machine at a time" managed --machine v100 --machine h200
refused "not a number" managed --repeat 0
refused "no program 'streams'" managed --only streams
refused "names no program" pipeline --only ,
refused "share needs --data" pipeline --budget 25%
refused "multiple of --tile" pipeline --data 5M
refused "no machine" managed --machine nothing
refused "no value" managed --set link_h2d=3
FARFAULT_DRIVER=$work/none.so run "$farfault" bench managed
expect_status 1
expect_err none.so
run "$farfault" bench managed --only copies --repeat 1 --svg no/such/folder.svg
expect_status 1
expect_err no/such/folder.svg
# A signal ends the measurement, with nothing on stdout and nothing left behind.
run timeout --preserve-status -s INT 0.5 "$farfault" bench pipeline --shape matmul --csv never.csv
expect_status 130
expect_no_out
expect_err "signal 2"
expect test ! -e never.csv
finish
