#!/usr/bin/env bash
# farfault probe finds the address hashes of the virtual GPUs by timing, as the machine files have them; files, messages, what is refused.
source "$(dirname "$0")/common.sh"
unset FARFAULT_DRIVER
same_spans() { # found.json machine.yaml [bits]: what was found spans what the machine file has
  python3 - "$@" <<'EOF'
import json, re, sys
found, machine = json.load(open(sys.argv[1])), open(sys.argv[2]).read()
bits = (1 << int(sys.argv[3])) - 1 if len(sys.argv) > 3 else -1
def reduced(masks):
    rows = []
    for mask in masks:
        for row in rows: mask = min(mask, mask ^ row)
        if mask: rows = [min(row, row ^ mask) for row in rows] + [mask]
    return sorted(rows)
for kind, name in (("banks", "bank_masks"), ("sets", "set_masks"), ("modules", "module_masks")):
    if kind not in found: continue
    text = re.search(name + r": \{value: \[(\[.*?\])\], source", machine).group(1)
    wanted = [sum(1 << int(b) for b in mask.split(",")) & bits for mask in re.findall(r"\[([^\]]*)\]", text)]
    got = [sum(1 << b for b in mask) for mask in found[kind]["masks"]]
    assert reduced(got) == reduced(wanted), (kind, found[kind]["masks"])
    if kind != "modules": assert found[kind]["verdict"] == "linear" and found[kind]["confidence"] > 0.9, found[kind]["confidence"]
EOF
}

# Both maps, modules and colours; the file that is written is the machine again.
run "$farfault" probe --target sim:gtx1080 --pairs 64 --json a.json --svg a.svg -o a.yaml
expect_status 0
expect_no_err
expect_out "memory modules: 8"
expect_out "confidence 1.0000"
expect grep -qE '^  1.00 KiB +8$' out
expect grep -qE '^  8.00 KiB +1$' out
expect same_spans a.json "$source/machines/gtx1080.yaml"
expect python3 -c 'import xml.dom.minidom; xml.dom.minidom.parse("a.svg")'
expect grep -q 'set_masks: .*source: "measured by farfault probe on sim:gtx1080"' a.yaml
grep -v '_masks:\|address_map:' a.yaml >a.rest
grep -v '_masks:\|address_map:' "$source/machines/gtx1080.yaml" >b.rest
expect cmp -s a.rest b.rest
# What was written is a target, and the same twice is the same but for the time it took.
run "$farfault" probe --target ./a.yaml --what banks --pairs 64 --json b.json
expect_status 0
expect same_spans b.json "$source/machines/gtx1080.yaml"
expect python3 -c '
import json
a, b = (json.load(open(f))["banks"] for f in ("a.json", "b.json"))
for x in (a, b): del x["seconds"]
assert a == b'

# False pairs and jitter.
run "$farfault" probe --target sim:gtx1080 --what banks --noise 5 --jitter 3 --seed 7 --pairs 128 --json a.json
expect_status 0
expect same_spans a.json "$source/machines/gtx1080.yaml"

# As on a real GPU: the low bits only.
run env FARFAULT_DRIVER=virtual FARFAULT_MACHINE=gtx1080 "$farfault" probe --target cuda:0 --what banks --pairs 64 --json a.json
expect_status 0
expect_out "physical addresses known within 2.00 MiB only"
expect same_spans a.json "$source/machines/gtx1080.yaml" 21

# Pairs that were timed are a target; a search ends in time with what it has.
run "$farfault" probe --target sim:gtx1080 --what banks --pairs 64 --raw raw.csv --json a.json
expect_status 0
run "$farfault" probe --target raw.csv --json b.json
expect_status 0
expect same_spans b.json "$source/machines/gtx1080.yaml"
run timeout 60 "$farfault" probe --target sim:v100 --what sets --pairs 100000 --seconds 1
expect_status 1
expect_out "not found: the time is over"

# Lines one by one: all SMs find the same time in their side of the L2; what only the other side has costs more, once, from the first SM that asks.
run "$farfault" probe --target sim:h200 --what none --line-times lines.csv
expect_status 0
expect python3 - "$source/machines/h200.yaml" <<'EOF'
import collections, csv, re, sys
text = open(sys.argv[1]).read()
value = lambda name: float(re.search(rf"^  {name}: {{value: ([0-9.]+)", text, re.M).group(1))
rows = list(csv.DictReader(open("lines.csv")))
sms = sorted({int(r["sm"]) for r in rows})
assert len(sms) == 16 and sms[0] == 0 and sms[-1] == 123 and len(rows) == 16 * 128, (sms, len(rows))
again = {float(r["again"]) for r in rows}
assert max(again) - min(again) < 1 and value("l2_latency") < min(again) < value("l2_latency") + 100, again
hit = min(again)
late = collections.Counter(int(r["sm"]) for r in rows if int(r["sm"]) and abs(float(r["first"]) - hit - value("side_latency")) < 2)
soon = sum(abs(float(r["first"]) - hit) < 1 for r in rows if int(r["sm"]))
assert len(late) == 1 and 32 <= sum(late.values()) <= 96 and soon + sum(late.values()) == 15 * 128, (late, soon)
assert all(float(r["first"]) > hit + 200 for r in rows if r["sm"] == "0") # of DRAM
EOF

# A map that is no XOR.
run "$farfault" probe --target sim:gtx1080 --what banks --pairs 96 --set address_map=modulo,l2_slices=5,channels=5,l2_bytes=1280K
expect_status 1
expect_out "not linear"

# Pairs from a file.
python3 - >pairs.csv <<'EOF'
import random
random.seed(1)
print("primary,secondary,cycles")
masks = (0x2400, 0x4800, 0x9000)
for _ in range(2000):
    a, b = random.randrange(1 << 17) * 128, random.randrange(1 << 17) * 128
    same = all(bin((a ^ b) & m).count("1") % 2 == 0 for m in masks)
    if a != b: print(f"{a:#x},{b},{(550 if same else 500) + random.random() * 5:.1f}")
EOF
run "$farfault" probe --target pairs.csv --what sets
expect_status 0
expect_out "set bit 0  = XOR of address bits 10 13"
expect_out "set bit 2  = XOR of address bits 12 15"
expect_out "rank 3 (8 sets)"
echo '1,2,x' >bad.csv
run "$farfault" probe --target bad.csv
expect_status 2
expect_err "bad.csv:1:5: a time in cycles is expected"

# Messages.
refused() { # message, arguments
  local message=$1
  shift
  run "$farfault" probe "$@"
  expect_status 64
  expect_no_out
  expect_err "$message"
}
refused "--target is missing" --what banks
refused "neither banks nor sets nor both nor none" --target sim:gtx1080 --what rows
refused "not a number from 0 to 50" --target sim:gtx1080 --noise 51
refused "not a number from 32 to 100000" --target sim:gtx1080 --pairs 3
refused "--output needs the masks of both" --target sim:gtx1080 --what banks -o x.yaml
refused "pairs of a file are of banks or of sets" --target pairs.csv --what both
refused "--base must say" --target cuda:0 -o x.yaml
# A file that cannot be written loses nothing of what was found.
run "$farfault" probe --target sim:gtx1080 --what banks --pairs 64 --json kept.json --line-times no-such-folder/lines.csv
expect_status 1
expect_err "no-such-folder/lines.csv"
expect python3 -c 'import json; json.load(open("kept.json"))["banks"]["verdict"]'
refused "nothing else to do without --line-times" --target sim:gtx1080 --what none
refused "needs a GPU" --target pairs.csv --line-times x.csv
refused "not a number from 1 to 1000000" --target sim:gtx1080 --seconds 0
refused "no pairs are timed for banks" --target sim:gtx1080 --what sets --raw x.csv
refused "no pairs are timed for banks" --target pairs.csv --raw x.csv
refused "no power of two" --target cuda:0 --span 3M
refused "not a number from 0 to 1023" --target cuda:x
run "$farfault" probe --target sim:gtx1081
expect_status 64
expect_err "gtx1081"
run "$farfault" probe --target none.csv
expect_status 2
run env FARFAULT_DRIVER="$work/no-such-library" "$farfault" probe --target cuda:0
expect_status 1
expect_err "no-such-library"
finish
