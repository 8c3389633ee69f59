#!/bin/bash
# `farfault rewrite --sm-affinity`: what it writes and refuses; and the bundled workloads compute with kernels bound to SMs, all of them
# or a few, what they compute with their own.
. "$(dirname "$0")/common.sh"
workloads=$3
library=$4
export FARFAULT_THREADS=1 REAL_LIBCUDA=$5/libcuda.so.1
plain=$5

cat >some.ptx <<'END'
.version 7.0
.target sm_80
.address_size 64
.visible .entry saxpy(.param .u64 y, .param .u32 n)
{
  .reg .pred %p; .reg .b32 %r<5>; .reg .b64 %rd<3>;
  ld.param.u32 %r0, [n];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r4, %r1, %r2, %r3;
  setp.ge.u32 %p, %r4, %r0; @%p ret;
  ld.param.u64 %rd0, [y]; mul.wide.u32 %rd1, %r4, 4; add.s64 %rd2, %rd0, %rd1; st.global.u32 [%rd2], %r4;
  ret;
}
END
run "$farfault" rewrite --sm-affinity some.ptx -o bound.ptx
expect_status 0
expect_no_err
expect_out "saxpy: saxpy__persistent, the queue's parameters at byte 16 of 48"
expect grep -q '\.entry saxpy(' bound.ptx
expect grep -q '\.entry saxpy__persistent(' bound.ptx
run "$farfault" disasm bound.ptx saxpy__persistent
expect_status 0
expect_out "mov.u32 %persistent_x, %smid;"
run "$farfault" rewrite --sm-affinity --replace some.ptx
expect_status 0
expect_out ".entry saxpy("
expect_out ".entry saxpy__original("
expect test "$(grep -c saxpy__persistent out)" -eq 0
# The same through an executable; twice the same bytes.
run "$farfault" rewrite --sm-affinity some.ptx -o again.ptx
expect cmp bound.ptx again.ptx

cat >more.ptx <<'END'
.version 7.0
.target sm_80
.address_size 64
.visible .entry spins(.param .u64 y)
{
  .reg .pred %p; .reg .b32 %r; .reg .b64 %rd;
  ld.param.u64 %rd, [y];
WAIT: ld.volatile.global.u32 %r, [%rd]; setp.eq.u32 %p, %r, 0; @%p bra WAIT;
  ret;
}
.visible .entry plain() { ret; }
END
run "$farfault" rewrite --sm-affinity more.ptx -o part.ptx
expect_status 1
expect_err "more.ptx: spins is not rewritten: spins polls memory in a loop at line 8: it may wait for a block that does not run yet"
expect_out "plain: plain__persistent"
expect grep -q 'plain__persistent' part.ptx
run "$farfault" rewrite --sm-affinity --polling more.ptx -o part.ptx
expect_status 0
run "$farfault" rewrite more.ptx
expect_status 64
expect_err "rewrite for what? (--sm-affinity)"
run "$farfault" rewrite --sm-affinity
expect_status 64
run "$farfault" rewrite --sm-affinity no/such.ptx
expect_status 2
echo '.version 7.0' >none.ptx
run "$farfault" rewrite --sm-affinity none.ptx
expect_status 2

asked=1 # of the workloads, those that checked.sh leaves out in `make test`
while IFS=$'\t' read -r name _ _ small _; do
  [[ $name != name && $name != hosttouch ]] && one_in 2 || continue
  read -ra arguments <<<"$small"
  run env LD_LIBRARY_PATH="$plain" "$workloads/$name" "${arguments[@]}"
  expect_status 0
  cp out expected
  for range in "0 80" "3 5"; do
    run env LD_LIBRARY_PATH="$library:$plain" CHECK_BY=persistent SM_FIRST="${range% *}" SM_COUNT="${range#* }" FARFAULT_MACHINE=v100 "$workloads/$name" "${arguments[@]}"
    expect_status 0
    if cmp -s out expected; then pass; else wrong "$name on SMs $range: $(diff out expected | head -5)"; fi
    expect_no_err
  done
  # The virtual GPU does it by itself.
  run "$farfault" run --machine v100 --memory none --quiet --bind-sms 3-7 "$workloads/$name" "${arguments[@]}"
  expect_status 0
  if cmp -s out expected; then pass; else wrong "$name with --bind-sms: $(diff out expected | head -5)"; fi
done <"$source/workloads/workloads.tsv"

# Bound kernels are on their SMs alone, which takes as much longer as there are fewer of them; what cannot be bound is named, with the reason.
kernel() { jq ".runs[0].kernels[0].$1" run.json; }
run "$farfault" run --machine v100 --memory ideal --bind-sms 0-79 --json run.json "$workloads/nbody" 2560
expect_status 0
expect_err "note: kernels are bound to SMs 0 to 79 of 80, by persistent blocks"
all=$(kernel time_ps)
expect test "$(kernel name)" = '"nbody"'
run "$farfault" run --machine v100 --memory ideal --bind-sms 79 --json run.json "$workloads/nbody" 2560
expect_status 0
one=$(kernel time_ps)
expect test "$one" -gt $((5 * all))
run "$farfault" run --machine v100 --memory ideal --bind-sms 0-9 "$workloads/scan" 50000
expect_status 0
expect_err "note: scan is not bound to SMs: scan polls memory in a loop"
run "$farfault" run --machine v100 --memory ideal --bind-sms 70-80 "$workloads/nbody" 300
expect_err "kernels cannot be bound to SMs 70 to 80: v100 has 80, numbered from 0"

# Block b is told that it is on SM b modulo 80: only those of the range store results.
run "$farfault" record --machine v100 --bind-sms 3-7 -o bound.fft "$workloads/vectoradd" 10000 1
expect_status 0
"$farfault" trace dump --records bound.fft | sed -n 's/^\t\([0-9]*\)\.[0-9]*\tstore pc [0-9]*, 4 bytes.*/\1/p' >blocks
expect test "$(awk '{ print $1 % 80 }' blocks | sort -nu | tr '\n' ' ')" = "3 4 5 6 7 "

# A recording of ten SMs is what a partition of ten runs: as long as where there are twenty.
run "$farfault" record --machine gtx1080 --bind-sms 0-9 -o bound.fft "$workloads/nbody" 2560
expect_status 0
expect_err "kernels are bound to SMs 0 to 9 of 20"
run "$farfault" sim --memory ideal --json run.json bound.fft
expect_status 0
run "$farfault" share --one --machine gtx1080 --isolate sm --partitions 50:50 --json share.json bound.fft -
expect_status 0
expect awk -v whole="$(kernel time_ps)" -v part="$(jq '[.. | .kernel_us? | numbers][0]' share.json)" 'BEGIN { exit !(part > 0.98e-6 * whole && part < 1.02e-6 * whole) }'
finish
