#!/usr/bin/env bash
# A kernel that has 40 values a thread, and may have 32 registers (two blocks of 1024 threads on an SM), stores and loads what is too much, in its loop: compiled and interpreted,
# on any number of threads, in recordings and parts of them the same. The same kernel without that limit does not. $3: the folder of fixtures.
source "$(dirname "$0")/common.sh"
ln -s "$3/spills" spills

values=40
kernel() { # NAME DIRECTIVES
  echo ".visible .entry $1(.param .u64 out, .param .u64 in, .param .u32 rounds) $2"
  echo "{ .reg .pred p; .reg .b32 r<40>; .reg .b32 t<9>; .reg .b64 d<9>;"
  echo "ld.param.u64 d0, [out]; ld.param.u64 d1, [in]; ld.param.u32 t0, [rounds];"
  echo "mov.u32 t1, %ctaid.x; mov.u32 t2, %ntid.x; mov.u32 t3, %tid.x; mad.lo.s32 t4, t1, t2, t3; mov.u32 t5, %nctaid.x; mul.lo.s32 t6, t5, t2;"
  echo "mul.wide.u32 d2, t4, 4; add.s64 d3, d1, d2; mul.wide.u32 d4, t6, 4;"
  for ((n = 0; n < values; n++)); do echo "ld.global.u32 r$n, [d3]; add.s64 d3, d3, d4;"; done
  echo "mov.u32 t7, 0;"
  echo "L: setp.ge.u32 p, t7, t0; @p bra E;"
  for ((n = 0; n < values; n++)); do echo "mad.lo.s32 r$n, r$n, 3, r$(((n + 1) % values));"; done
  echo "add.s32 t7, t7, 1; bra L;"
  echo "E: mov.u32 t8, 0;"
  for ((n = 0; n < values; n++)); do echo "add.s32 t8, t8, r$n;"; done
  echo "add.s64 d5, d0, d2; st.global.u32 [d5], t8; ret; }"
}
{
  printf '.version 7.0\n.target sm_70\n.address_size 64\n'
  kernel free ""
  kernel held ".maxntid 1024, 1, 1 .minnctapersm 2"
} >spills.ptx
of() { # FILE KERNEL COUNTER: of the first manager
  python3 -c 'import json, sys; print(next(k.get(sys.argv[3], 0) for k in json.load(open(sys.argv[1]))["runs"][0]["kernels"] if k["name"] == sys.argv[2]))' "$@"
}
is() { if [[ $1 == "$2" ]]; then pass; else wrong "$3: $2, expected $1"; fi; }

# Compiled and interpreted write the same recording, twice.
run "$farfault" record --execute interpret -o app.fft --machine v100 ./spills spills.ptx 3 5
expect_status 0
expect_out "PASSED"
run "$farfault" record --execute interpret -o again.fft --machine v100 ./spills spills.ptx 3 5
expect cmp app.fft again.fft
run "$farfault" record --execute compile -o compile.fft --machine v100 ./spills spills.ptx 3 5
if [[ $status -eq 0 ]] || ! grep -q "has no farfault-compile" err; then
  expect_status 0
  expect_out "PASSED"
  expect cmp app.fft compile.fft
fi

# Each warp of `held` has the same ones; those of its loop once a round: of 42 words that a round needs, what 30 registers do not hold.
dump() { "$farfault" trace dump --records --kernel held --block "$1" app.fft | grep $'^\t'"$1\.$2"$'\t' | grep -c "spill $3"; }
stores=$(dump 1 7 store) loads=$(dump 1 7 load)
expect test "$stores" -gt $((5 * 5))
expect test "$loads" -gt $((5 * 10))
expect test "$loads" -lt $((5 * 30 + 60))
is "$stores" "$(dump 2 31 store)" "stores of another warp"
is 0 "$("$farfault" trace dump --records --kernel free app.fft | grep -c "spill ")" "spills of free"

# Where an SM has fewer than 64 warps, the assembler takes no account of two such blocks.
for target in 75 86; do
  sed "s/sm_70/sm_$target/" spills.ptx >fewer.ptx
  run "$farfault" record --machine v100 -o fewer.fft ./spills fewer.ptx 3 5
  expect_status 0
  is 0 "$("$farfault" trace dump --records fewer.fft | grep -c "spill ")" "spills of sm_$target"
done

# What is counted is what the recording has, under every manager, and takes time.
run "$farfault" sim --machine v100 --memory copy,demand,uvm --json sim.json app.fft
expect_status 0
is $((stores * 32 * 3)) "$(of sim.json held spill_stores)" "spill_stores"
is $((loads * 32 * 3)) "$(of sim.json held spill_loads)" "spill_loads"
is 0 "$(of sim.json free spill_loads)" "spill_loads of free"
expect test "$(of sim.json held kernel_ps)" -gt "$(of sim.json free kernel_ps)"
is "$(of sim.json free faults)" "$(of sim.json held faults)" "far-faults of copy"
run "$farfault" run --machine v100 --memory copy --json run.json ./spills spills.ptx 3 5
expect_status 0
for counter in kernel_ps spill_stores spill_loads; do is "$(of sim.json held $counter)" "$(of run.json held $counter)" "$counter of a run"; done

# In rounds: on any number of threads the same.
for threads in 1 2; do
  run "$farfault" sim --machine v100 --memory copy --model-threads $threads --json threads$threads.json app.fft
  expect_status 0
  is "$(of sim.json held spill_loads)" "$(of threads$threads.json held spill_loads)" "spill_loads in rounds"
done
is "$(of threads1.json held kernel_ps)" "$(of threads2.json held kernel_ps)" "time on two threads"

# A part of the recording, the sampler, a machine with memory stacks, where local memory takes no time.
run "$farfault" trace cut --kernel held -o cut.fft app.fft
expect_status 0
run "$farfault" sim --machine v100 --memory copy --json cut.json cut.fft
expect_status 0
is "$(of sim.json held spill_loads)" "$(of cut.json held spill_loads)" "spill_loads of a part"
run "$farfault" trace info app.fft
expect_status 0
if [[ -z ${FARFAULT_FEWER-} ]]; then # a launch that is long enough for some of its blocks to be timed for all
  run "$farfault" record -o long.fft --machine v100 ./spills spills.ptx 800 1
  for sample in none on; do
    run "$farfault" sim --machine v100 --memory copy --sample $sample --json $sample.json long.fft
    expect_status 0
  done
  expect grep -q "blocks of timed ones" out
  is "$(of none.json held spill_loads)" "$(of on.json held spill_loads)" "spill_loads of a sample"
  time=$(of none.json held kernel_ps) sampled=$(of on.json held kernel_ps)
  expect test "$sampled" -gt $((time / 100 * 98)) -a "$sampled" -lt $((time / 100 * 102))
fi
run "$farfault" sim --machine tom --memory copy --json tom.json app.fft
expect_status 0
is 0 "$(of tom.json held spill_loads)" "spill_loads of a machine with stacks"
finish
