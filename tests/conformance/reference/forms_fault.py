# SPDX-License-Identifier: Apache-2.0
"""Conformance cases of what ends a kernel: the fault and the line of PTX that it names."""
from .forms_control import INDEX, store
from .writer import Array, Case, head

STORE = "st.global.u32 [%at], %x; // faults here"
FAULTS = [
    (
        "illegal_address",
        "global.past_end",
        "one word beyond the end of an allocation",
        "ld.param.u64 %at, [d]; add.u64 %at, %at, 128;",
        STORE,
    ),
    ("illegal_address", "global.null", "a null pointer", "mov.u64 %at, 0;", "ld.global.u32 %x, [%at]; // faults here"),
    (
        "illegal_address",
        "global.before",
        "one word before an allocation",
        "ld.param.u64 %at, [d];",
        "ld.global.u32 %x, [%at+-4]; // faults here",
    ),
    (
        "illegal_address",
        "global.one_lane",
        "one lane of the warp only",
        "ld.param.u64 %at, [d]; mad.wide.u32 %at, %i, 4, %at; setp.eq.u32 %p, %i, 17; selp.u32 %y, 4096, 0, %p; cvt.u64.u32 %to, %y; add.u64 %at, %at, %to;",
        STORE,
    ),
    (
        "illegal_address",
        "global.vector",
        "the last word of a vector is beyond the end",
        "ld.param.u64 %at, [d]; add.u64 %at, %at, 112; add.u64 %at, %at, 16;",
        "ld.global.v4.u32 {%x, %y, %z, %x}, [%at]; // faults here",
    ),
    (
        "illegal_address",
        "generic.null",
        "a null pointer by a generic store",
        "mov.u64 %at, 8;",
        "st.u32 [%at], %x; // faults here",
    ),
    (
        "illegal_address",
        "atom.past_end",
        "an atomic beyond the end",
        "ld.param.u64 %at, [d]; add.u64 %at, %at, 256;",
        "atom.global.add.u32 %x, [%at], 1; // faults here",
    ),
    (
        "illegal_address",
        "red.past_end",
        "a reduction beyond the end",
        "ld.param.u64 %at, [d]; add.u64 %at, %at, 256;",
        "red.global.add.u32 [%at], 1; // faults here",
    ),
    (
        "misaligned",
        "global.word",
        "a word at an odd address",
        "ld.param.u64 %at, [d]; add.u64 %at, %at, 2;",
        "ld.global.u32 %x, [%at]; // faults here",
    ),
    (
        "misaligned",
        "global.vector",
        "four words at an address that is not a multiple of 16",
        "ld.param.u64 %at, [d]; add.u64 %at, %at, 8;",
        "ld.global.v4.u32 {%x, %y, %z, %x}, [%at]; // faults here",
    ),
    (
        "misaligned",
        "shared.word",
        "a word at an odd address of shared memory",
        "mov.u64 %at, area; add.u64 %at, %at, 1;",
        "st.shared.u32 [%at], %i; // faults here",
    ),
    (
        "misaligned",
        "local.double",
        "eight bytes at an address that is not a multiple of 8",
        "mov.u64 %at, mine; add.u64 %at, %at, 4;",
        "st.local.u64 [%at], %to; // faults here",
    ),
    (
        "misaligned",
        "atom.word",
        "an atomic at an odd address",
        "ld.param.u64 %at, [d]; add.u64 %at, %at, 1;",
        "atom.global.add.u32 %x, [%at], 1; // faults here",
    ),
    (
        "illegal_address",
        "shared.past_end",
        "beyond the block's shared memory",
        "mov.u64 %at, area; add.u64 %at, %at, 65536;",
        "st.shared.u32 [%at], %i; // faults here",
    ),
    (
        "illegal_address",
        "local.past_end",
        "far beyond the thread's own memory",
        "mov.u64 %at, mine; add.u64 %at, %at, 0x800000;",
        "st.local.u32 [%at], %i; // faults here",
    ),
    (
        "illegal_address",
        "const.store",
        "a store into constant memory",
        "cvta.const.u64 %at, fixed;",
        "st.u32 [%at], %x; // faults here",
    ),
    ("trap", "trap", "trap ends the kernel", "", "trap; // faults here"),
    (
        "trap",
        "trap.guarded",
        "under a predicate that one lane has",
        "setp.eq.u32 %p, %i, 30;",
        "@%p trap; // faults here",
    ),
    ("timeout", "endless", "a loop without an end", "", "again: bra again;"),
    (
        "illegal_instruction",
        "barrier_count",
        "a barrier for more threads than the block has",
        "",
        "bar.sync 1, 64; // faults here",
    ),
    (
        "invalid_pc",
        "garbage",
        "a call through a number that is no function",
        "mov.u64 %at, 0x1234; shape: .callprototype _ ();",
        "call %at, (), shape; // faults here",
    ),
]


def faults():
    for kind, name, title, lines, fault in FAULTS:
        text = f"""{head()}.const .u32 fixed = 5;
.visible .entry test(.param .u64 d)
{{
  .shared .align 16 .b8 area[64]; .local .align 16 .b8 mine[64];
{INDEX}  mov.u32 %x, 0; mov.u32 %y, 0; mov.u32 %z, 0; mov.u64 %to, 0;
  st.shared.u32 [area], %x; st.local.u32 [mine], %x;
  {lines}
  {fault}
{store("d", "%x")}  ret;
}}"""
        yield Case(
            "fault",
            f"{kind}.{name}",
            title,
            [Array("in", "d", "u32", [0] * 32)],
            text,
            ["launch: grid 1 block 32", f"fault: {kind}", *(["executor only"] if name == "barrier_count" else [])],
        )
    yield from call_faults()


def call_faults():
    text = (
        head()
        + f""".visible .entry test(.param .u64 d)
{{
{INDEX}  setp.ge.u32 %p, %i, 32;
  @%p bra other;
  bar.sync 1, 64;
  bra done;
other:
  bar.sync 2, 64;
done:
  ret;
}}"""
    )
    yield Case(
        "fault",
        "barrier.never_met",
        "two warps wait for each other at different barriers",
        [Array("in", "d", "u32", [0] * 32)],
        text,
        ["launch: grid 1 block 64", "fault: barrier"],
    )
    text = (
        head()
        + f""".func endless(.param .u32 n)
{{
  .local .align 4 .b8 mine[64]; .reg .u32 %n;
  ld.param.u32 %n, [n]; st.local.u32 [mine], %n; add.u32 %n, %n, 1;
  {{ .param .u32 argument; st.param.u32 [argument], %n; call endless, (argument); }}
  ld.local.u32 %n, [mine];
  ret;
}}
.visible .entry test(.param .u64 d)
{{
{INDEX}  {{ .param .u32 argument; st.param.u32 [argument], %i; call endless, (argument); }}
  ret;
}}"""
    )
    yield Case(
        "fault",
        "stack.recursion",
        "a function that calls itself without an end",
        [Array("in", "d", "u32", [0] * 32)],
        text,
        ["launch: grid 1 block 32", "fault: stack"],
    )
    text = (
        head()
        + f""".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.global .align 1 .b8 what[6] = {{120, 32, 62, 32, 48, 0}};
.global .align 1 .b8 file[5] = {{97, 46, 99, 117, 0}};
.global .align 1 .b8 function[2] = {{102, 0}};
.visible .entry test(.param .u64 result)
{{
{INDEX}  setp.ne.u32 %p, %i, 3;
  @%p bra done;
  {{ .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;
    cvta.global.u64 %at, what; st.param.b64 [a], %at; cvta.global.u64 %at, file; st.param.b64 [b], %at; st.param.b32 [c], 7;
    cvta.global.u64 %at, function; st.param.b64 [d], %at; st.param.b64 [e], 1;
    call.uni __assertfail, (a, b, c, d, e); }}
done:
  ret;
}}"""
    )
    yield Case(
        "fault",
        "assert.one_lane",
        "an assertion fails in one lane",
        [Array("in", "result", "u32", [0] * 32)],
        text,
        ["launch: grid 1 block 32", "fault: assert"],
    )


def cases():
    yield from faults()
