#!/usr/bin/env bash
# `farfault offload analyze`: the loop of LIBOR as in the paper, why other blocks are none, and PTX with marks that is the same PTX.
source "$(dirname "$0")/common.sh"
fixtures=$3
workloads=$4
library=$5
plain=$6

cat >libor.ptx <<'PTX'
.version 8.0
.target sm_80
.address_size 64
.visible .entry libor(.param .u64 p)
{
  .reg .b64 %rd<5>; .reg .b32 %r<4>; .reg .f32 %f<6>; .reg .pred %p<2>;
  ld.param.u64 %rd3, [p];
  ld.global.u64 %rd1, [%rd3];
  ld.global.u64 %rd2, [%rd3+8];
  ld.global.f32 %f1, [%rd3+16];
  ld.global.f32 %f2, [%rd3+20];
  atom.global.add.u32 %r1, [%rd3+24], 1;
LOOP:
  ld.global.f32 %f3, [%rd1];
  fma.rn.f32 %f4, %f3, %f1, %f2;
  st.global.f32 [%rd2], %f4;
  add.s64 %rd1, %rd1, 4;
  add.s64 %rd2, %rd2, 4;
  add.s32 %r1, %r1, -1;
  setp.ne.s32 %p1, %r1, 0;
  @%p1 bra LOOP; // and back
  ret;
}
PTX
run "$farfault" offload analyze --json libor.json libor.ptx
expect_status 0
expect_no_err
expect_out "libor (libor.ptx): 15 instructions, 1 of "
expect_out "160 - 33.5 k"
expect_out "0 - 16.25 k"
expect_out "TX from 5, RX"
expect_out "from 4 trips on: %r1 >= 4"
expect_out "an atomic operation needs the caches of the GPU (line 12)"
cat >check.py <<'PY'
import json
kernel, = json.load(open("libor.json"))["kernels"]
r, = [r for r in kernel["regions"] if r["chosen"]]
tx, rx = r["tx"], r["rx"]
assert [tx["fixed"] + rx["fixed"] + k * (tx["per_trip"] + rx["per_trip"]) for k in range(1, 6)] == [110.25, 60.5, 10.75, -39, -88.75]
assert (tx["fixed"], tx["per_trip"], rx["fixed"], rx["per_trip"]) == (160, -33.5, 0, -16.25)
assert r["threshold"] == 4 and tx["saved_from"] == 5 and rx["saved_from"] == 1
assert r["condition"] == {"register": "%r1", "at_least": 4}
assert len(r["live_in"]) == 5 and r["live_out"] == [] and (r["loads"], r["stores"]) == (1, 1)
assert (r["begin"], r["end"], r["first_line"], r["last_line"]) == (6, 14, 14, 21)
PY
expect python3 check.py
"$farfault" offload analyze --json - libor.ptx >stdout.json
expect cmp stdout.json libor.json
run "$farfault" offload analyze --annotate libor.ptx
expect_status 0
expect test "$(grep -n 'offload 1 begin' out | cut -d: -f1)" -eq 14
expect test "$(grep -n 'offload 1 end' out | cut -d: -f1)" -eq 23
expect grep -q '// offload 1 begin: from 4 trips on: %r1 >= 4; saves TX from 5, RX; TX = 160 - 33.5 k, RX = 0 - 16.25 k; in %rd1 %rd2 %r1 %f1 %f2; out -$' out

# Several statements on a line, guards, comments with a semicolon.
cat >dense.ptx <<'PTX'
.version 8.0 .target sm_80 .address_size 64
.visible .entry dense(.param .u64 p) { .reg .b64 %d; .reg .b32 %r<3>; .reg .pred %q; ld.param.u64 %d, [p]; ld.global.u32 %r1, [%d]; bar.sync 0; L: /* ; */ @%q ld.global.u32
  %r2, [%d+4 /* "; */ ]; st.global.u32 [%d], %r2; st.global.u32 [%d+8], %r2; add.s32 %r1, %r1, -1; setp.ne.s32 %q, %r1, 0; @%q bra L; ret; }
PTX
for file in libor.ptx dense.ptx "$workloads"/*.ptx; do
  run "$farfault" offload analyze --annotate "$file"
  expect_status 0
  expect_no_err
  expect diff <(sed 's/[ \t]*\/\/ offload [0-9].*//' out | tr -d ' \t\n') <(tr -d ' \t\n' <"$file")
  cp out marked.ptx
  cp "$file" plain.ptx
  expect cmp <("$farfault" disasm marked.ptx | grep -v '^//') <("$farfault" disasm plain.ptx | grep -v '^//')
  [[ $file == dense.ptx ]] && expect test "$(grep -c 'offload [0-9]' marked.ptx)" -ge 2
done

# Marked PTX computes what it did.
while IFS=$'\t' read -r name _ _ small _; do
  [[ $name == name || $name == hosttouch ]] && continue
  read -ra arguments <<<"$small"
  "$farfault" offload analyze --annotate "$workloads/$name.ptx" >marked.ptx
  run env FARFAULT_THREADS=1 LD_LIBRARY_PATH="$plain" "$workloads/$name" "${arguments[@]}"
  expect_status 0
  cp out expected
  run env FARFAULT_THREADS=1 REAL_LIBCUDA="$plain/libcuda.so.1" LD_LIBRARY_PATH="$library:$plain" CHECK_BY=text CHECK_TEXT=marked.ptx "$workloads/$name" "${arguments[@]}"
  expect_status 0
  if cmp -s out expected; then pass; else wrong "$name marked: $(diff out expected | head -5)"; fi
done <"$source/workloads/workloads.tsv"

# The trips that a mark tells are those that the warp makes: no instruction of the block's loop has more accesses, and one has as many.
cat >trips.py <<'PY'
import collections, re, sys
entered, seen = None, 0
for line in sys.stdin:
    enter = re.search(r"\benter pc \d+(?:, trips (\d+))?", line)
    access = re.search(r"\b(?:load|store) pc (\d+)", line)
    if enter:
        entered, accesses = enter[1], collections.Counter()
    elif access and entered:
        accesses[access[1]] += 1
    elif re.search(r"\bleave\b", line):
        assert entered and max(accesses.values()) == int(entered), (entered, accesses)
        entered, seen = None, seen + 1
assert seen > 10, seen
PY
for name in kmeans spmv scalarproduct greeks weather; do
  read -ra arguments <<<"$(awk -F'\t' -v name=$name '$1 == name { print $4 }' "$source/workloads/workloads.tsv")"
  run "$farfault" record -o $name.fft -- "$workloads/$name" "${arguments[@]}"
  expect_status 0
  "$farfault" trace dump --records $name.fft >dump
  expect python3 trips.py <dump
done

# Executables and traces: the same blocks as in their PTX.
run "$farfault" offload analyze "$fixtures/with_ptx"
expect_status 0
expect_out "fill ($fixtures/with_ptx(module 1))"
"$farfault" offload analyze spmv.fft | sed 1d >from_trace
"$farfault" offload analyze "$workloads/spmv.ptx" | sed 1d >from_text
expect test -s from_text
expect cmp from_trace from_text

run "$farfault" offload analyze --kernel nonesuch libor.ptx
expect_status 2
expect_err "libor.ptx: has no kernel with 'nonesuch' in its name: there is libor"
run "$farfault" offload analyze no/such
expect_status 2
run "$farfault" offload analyze
expect_status 64
run "$farfault" offload analyse libor.ptx
expect_status 64
expect_err "did you mean 'analyze'?"
echo 'int main;' >text.c
run "$farfault" offload analyze text.c
expect_status 2
expect_no_out
expect_err "text.c:1:1: "
printf '.version 8.0\n.target sm_80\n.address_size 64\n.func f() { ret; }\n' >none.ptx
run "$farfault" offload analyze none.ptx
expect_status 2
expect_err "none.ptx: has no kernels"
head -c 100 spmv.fft >cut.fft
run "$farfault" offload analyze cut.fft
expect_status 2
finish
