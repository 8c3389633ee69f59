/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels that are asked about. */
static const char module_text[] = HEAD
    ".visible .global .align 4 .u32 counter = 40;\n.visible .const .align 4 .b8 table[400];\n.global .align 8 .b8 hidden[16];\n"
    ".visible .entry nothing() { ret; }\n"
    ".visible .entry store(.param .u64 to, .param .u32 value) { .reg .b64 %d<3>; .reg .b32 %r<3>; ld.param.u64 %d1, [to]; ld.param.u32 %r1, [value]; st.u32 [%d1], %r1; ret; }\n"
    ".visible .entry bounded() .maxntid 256, 1, 1 { ret; }\n"
    ".visible .entry required() .reqntid 64, 2, 1 { ret; }\n"
    ".visible .entry crowded() .maxntid 256, 1, 1 .minnctapersm 4 { ret; }\n"
    ".visible .entry sharing(.param .u64 to) { .shared .align 16 .b8 box[4096]; .reg .b64 %d<3>; .reg .b32 %r<4>; ld.param.u64 %d1, [to]; mov.u32 %r1, %tid.x; mov.u32 %r2, box; st.shared.u32 [%r2], %r1; bar.sync 0; ld.shared.u32 %r3, [%r2]; st.u32 [%d1], %r3; ret; }\n"
    ".visible .entry big(.param .align 8 .b8 block[4000]) { ret; }\n"
    ".visible .entry mixed(.param .u8 a, .param .u64 b, .param .u16 c, .param .align 4 .b8 d[12]) { ret; }\n"
    ".visible .entry constants(.param .u64 to) { .reg .b64 %d<3>; .reg .b32 %r<3>; ld.param.u64 %d1, [to]; ld.const.u32 %r1, [table]; st.u32 [%d1], %r1; ret; }\n";
