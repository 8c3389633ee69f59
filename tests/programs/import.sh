#!/usr/bin/env bash
# farfault import accelsim: small traces of our own (tests/programs/accelsim), whole, compressed, in another order, and broken.
source "$(dirname "$0")/common.sh"
sample=$here/accelsim

run "$farfault" import accelsim "$sample" -o whole.fft
expect_status 0
expect_no_out
expect_err "14 operations, 2 launches, 10 warp accesses"
expect_err "6 allocations inferred, 24.00 KiB"
run "$farfault" trace check whole.fft
expect_status 0
run "$farfault" trace dump --records whole.fft
expect cmp out "$sample/golden.txt"
# What a launch touches is declared as what its parameters point to.
run "$farfault" trace info --json - whole.fft
expect_out '"launches": 2'
run "$farfault" sim whole.fft --memory copy,demand,uvm,segments --machine gtx480 --json sim.json
expect_status 0
expect_out "allocations are inferred"
expect_out "2 thread blocks are not in the Accel-Sim trace"
expect_out "1 bulk copies"
expect grep -q '"warp_instructions": *34' sim.json
FARFAULT_CHECK=2 run "$farfault" sim whole.fft --memory uvm --gpu-memory 4M
expect_status 0

# The same bytes again: from the list itself, compressed, and with the blocks and warps of the file in another order.
cp -r "$sample" other && chmod -R u+w other
run "$farfault" import accelsim other -o first.fft
run "$farfault" import accelsim other -o again.fft
expect cmp first.fft again.fft
checksum() { "$farfault" trace info "$1" | sed -n 's/^checksum *//p'; }
expect test "$(checksum first.fft)" = "$(checksum whole.fft)"
run "$farfault" import accelsim other/kernelslist.g -o list.fft
expect test "$(checksum list.fft)" = "$(checksum whole.fft)"
(cd other && sed -i 's/$/  /; s/^MemcpyH/\r&/; s/^\r//' kernelslist.g && sed -i 's/$/\r/' kernel-1.traceg)
run "$farfault" import accelsim other -o crlf.fft
expect test "$(checksum crlf.fft)" = "$(checksum whole.fft)"
awk 'BEGIN { RS = "#BEGIN_TB" } NR == 1 { head = $0 } NR == 2 { one = $0 } NR == 3 { two = $0 } END { printf "%s#BEGIN_TB%s\n#BEGIN_TB%s", head, two, one }' "$sample/kernel-1.traceg" >other/kernel-1.traceg
expect test "$(grep -n 'thread block' other/kernel-1.traceg | head -1 | cut -d= -f2)" = " 0,0,0"
run "$farfault" import accelsim other -o order.fft
expect_status 0
expect test "$(checksum order.fft)" = "$(checksum whole.fft)"
if command -v xz >/dev/null && command -v gzip >/dev/null; then
  xz other/kernel-1.traceg && gzip other/kernel-2.traceg
  run "$farfault" import accelsim other -o packed.fft
  expect_status 0
  expect test "$(checksum packed.fft)" = "$(checksum whole.fft)"
  sed -i 's/kernel-2.traceg/kernel-2.traceg.gz/' other/kernelslist.g
  run "$farfault" import accelsim other -o packed.fft
  expect test "$(checksum packed.fft)" = "$(checksum whole.fft)"
  for file in kernel-1.traceg.xz kernel-2.traceg.gz; do
    cp "other/$file" saved
    head -c 300 saved >"other/$file"
    run "$farfault" import accelsim other -o broken.fft
    expect_status 2
    expect_err "$file:"
    expect_err "cut off"
    { head -c 150 saved; printf 'xxxx'; tail -c +155 saved; } >"other/$file"
    run "$farfault" import accelsim other -o broken.fft
    expect_status 2
    expect_err "$file:"
    cp saved "other/$file"
  done
fi
# An older tracer's lines begin with block and warp.
rm -rf other && cp -r "$sample" other && chmod -R u+w other
sed -i 's/tracer version = 3/tracer version = 2/; s/^00[0-9a-f]* [0-9a-f]\{8\} /1 0 0 3 &/' other/kernel-1.traceg
run "$farfault" import accelsim other -o old.fft
expect test "$(checksum old.fft)" = "$(checksum whole.fft)"

# Broken input: the place, status 2, and nothing is left - what was there stays.
echo before >target.fft
broken() { # broken PLACE MESSAGE FILE SED-SCRIPT
  rm -rf other && cp -r "$sample" other && chmod -R u+w other
  sed -i "$4" "other/$3"
  run "$farfault" import accelsim other -o target.fft
  shown="import with '$4' in $3"
  expect_status 2
  expect_err "other/$3:$1: "
  expect_err "$2"
  expect grep -qx before target.fft
  expect test -z "$(compgen -G '*.tmp-*')"
}
one=kernel-1.traceg
broken 3 "neither a copy nor a kernel's file: 'launch" kernelslist.g 's/^kernel-1/launch-1/'
broken 1 "a copy is expected as" kernelslist.g '1s/800/80x/'
broken 1 "a copy is expected as" kernelslist.g '1s/,0x.*//; 1s/$/,/'
broken 1 "a copy is expected as" kernelslist.g '1s/0x00007f/0xff007f/'
broken 3 "(x,y,z): '-grid dim" $one '3s/(2,2,1)/(2,2)/'
broken 14 "has no '-grid dim'" $one '3s/2,2,1/2,0,1/'
broken 14 "more than 1024 threads" $one '4s/48/1025/'
broken 14 "too many blocks" $one '3s/2,2,1/999999999,999999999,9/'
broken 14 "has no '-kernel name'" $one '1d; 2s/^/\n/'
broken 5 "a number is expected: '-shmem" $one '5s/256/lots/'
broken 6 "a number is expected: '-nregs" $one '6s/12/-12/'
broken 5 "a line of the header is expected" $one '5s/^-/+/'
broken 18 "no such block in a grid of (2,2,1)" $one '18s/1,0,0/2,0,0/'
broken 18 "no such block" $one '18s/1,0,0/1,0/'
broken 20 "has 2 warps, from 0" $one '20s/1/2/'
broken 26 "warp 1 is there twice" $one '26s/0/1/'
broken 26 "warp 1 has 3 instructions, but 'insts = 4'" $one '21s/3/4/'
broken 40 "more instructions than 'insts = 12'" $one '27s/13/12/'
broken 21 "the number of a warp's instructions" $one '21s/3/x/'
broken 20 "'thread block = x,y,z' is expected" $one '18d;19s/^/\n/'
broken 22 "'warp = N' is expected" $one '20,21d;19s/^/\n\n/'
broken 22 "the instruction's place" $one '22s/^0000/zzzz/'
broken 22 "the mask" $one '22s/0000ffff/1ffffffff/'
broken 22 "the number of registers" $one '22s/ffff 1 /ffff 17 /'
broken 22 "a register is expected" $one '22s/R4/R256/'
broken 22 "a register is expected" $one '22s/R4/UR4/'
broken 22 "the width of the memory access" $one '22s/R4 4 .*/R4/'
broken 22 "an unknown mode of addresses" $one '22s/R4 4 1/R4 4 3/'
broken 22 "an address is missing" $one '22s/0x7f2a40000040/0x1ff7f2a40000040/'
broken 22 "the stride is missing" $one '22s/-4 //'
broken 22 "the stride leads beyond" $one '22s/ -4 / -999999999999999999 /'
broken 22 "do not follow each other" $one '22s/0000ffff/0000f0ff/'
broken 22 "more than the instruction has" $one '22s/-4/-4 1 1/'
broken 30 "fewer distances than further active lanes" $one '30s/ -124//'
broken 36 "an address is missing" $one '36s/ 0x00007f2a20000010//'
broken 43 "#BEGIN_TB before the #END_TB" $one '41s/.*//'
broken 54 "ends within a thread block" $one '55,$d'
broken 41 "without 'thread block" $one '17,40d;16s/$/\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n/'
broken 45 "this thread block was there before, on line 18" $one '45s/0,0,0/1,0,0/'
broken 43 "outside of a thread block" $one '43s/.*/0000 ffffffff 0 EXIT 0 0/'
broken 22 "the numbers in front of the instruction" kernel-2.traceg '22s/^17 0000/x 0000/'
broken 20 "a line of more than 65536 bytes" kernel-2.traceg '20s/.*/printf "%070000d" 0/e'
rm -rf other && cp -r "$sample" other && chmod -R u+w other
sed -i 's/2,2,1/99999999,2,1/' other/$one
run "$farfault" import accelsim other -o target.fft
expect_status 2
expect_err "$one: the grid has 199999998 thread blocks, but only 2 are in the file"
rm other/$one
run "$farfault" import accelsim other -o target.fft
expect_status 2
expect_err "other/$one: cannot be read: No such file"
: >other/kernelslist.g
run "$farfault" import accelsim other -o target.fft
expect_status 2
expect_err "no copy and no kernel is in it"
mv other/kernelslist.g other/kernelslist
run "$farfault" import accelsim other -o target.fft
expect_status 2
expect_err "a raw trace: Accel-Sim's post-traces-processing makes kernelslist.g"
run "$farfault" import accelsim no-such-folder -o target.fft
expect_status 2
expect_err "no-such-folder: cannot be read"
expect grep -qx before target.fft

# Where the trace cannot go.
run "$farfault" import accelsim "$sample" -o no/such/place.fft
expect_status 1
expect_err "cannot write there: no/such: No such file or directory"
run "$farfault" import accelsim "$sample" -o .
expect_status 1
expect_err ".: cannot write there: it is a folder"
TMPDIR=/no/such run "$farfault" import accelsim "$sample" -o target.fft
expect_status 1
expect_err "a temporary file cannot be made there"
for wrong in "accelsin x -o y|no format 'accelsin': did you mean 'accelsim'?" "xyz x -o y|no format 'xyz': there is accelsim" "accelsim x|-o FILE says" \
  "accelsim -o y|which trace?" "-o y|of which format" "accelsim x z -o y|one trace at a time"; do
  # shellcheck disable=SC2086 # words
  run "$farfault" import ${wrong%%|*}
  expect_status 64
  expect_err "${wrong#*|}"
done
finish
