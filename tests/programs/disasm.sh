#!/usr/bin/env bash
# `farfault disasm`: PTX text and executables; what it prints is PTX again, and the summary counts right.
source "$(dirname "$0")/common.sh"
fixtures=$3

run "$farfault" disasm "$fixtures/with_ptx"
expect_status 0
expect_no_err
expect_out "with_ptx"
expect_out ".visible .entry fill"
expect_out "// fill: kernel,"
expect_out "8 bytes of parameters, 64 bytes of shared memory"
expect_out "//   5 instructions: 1 integer, 1 move, 1 global access, 1 parameter access, 1 control flow"
cp out first.ptx
cp "$fixtures/with_ptx" large # more than a GiB
truncate -s +1100M large
run "$farfault" disasm large
expect_status 0
expect_out ".visible .entry fill"
run "$farfault" disasm first.ptx
expect_status 0
expect cmp <(grep -v '^//' out) <(grep -v '^//' first.ptx)
run "$farfault" disasm first.ptx fill
expect_status 0
expect_out "st.global.u32 [%rd2], %r1;"
expect test "$(grep -c '\.entry' out)" -eq 0
run "$farfault" disasm first.ptx nonesuch
expect_status 2
expect_err "first.ptx: has no function 'nonesuch' with a body: there is fill"
sed -n '/^\.version/,/^\.address/p' first.ptx >many.ptx
for i in 1 2 3 4 5 6 7 8 9; do echo ".entry k$i() { ret; }" >>many.ptx; done
run "$farfault" disasm many.ptx k
expect_status 2
expect_err "there are k1, k2, k3, k4, k5, k6, k7, k8, ..."
run "$farfault" disasm "$fixtures/both.fatbin"
expect_status 0
expect_out ".entry fill"
sed 's/mov.u32 %r1/mov.u32 %r7/' first.ptx >wrong.ptx
run "$farfault" disasm wrong.ptx
expect_status 2
expect_no_out
expect_err "'%r7' is not declared"
expect grep -qE "wrong.ptx:[0-9]+:[0-9]+: " err
finish
