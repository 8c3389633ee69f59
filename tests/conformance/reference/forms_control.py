# SPDX-License-Identifier: Apache-2.0
"""Conformance cases of control flow and calls: kernels written
out, with expectations from a few lines of Python each."""
from .values import Random
from .writer import Array, Case, head, lane_kernel

ALL = 0xFFFFFFFF


def words(name, count, limit=None):
    random = Random(name)
    return [random.below(limit) if limit else random.bits(32) for _ in range(count)]


def lane_case(mnemonic, name, title, arrays, body, registers=(), target=(70, 80)):
    """Run in both shapes, whole warps and blocks of 31."""
    return Case(mnemonic, name, title, arrays, lane_kernel(arrays, body, registers, target), [])


def kernel_case(mnemonic, name, title, arrays, text, launch, target=(70, 80), headers=()):
    return Case(mnemonic, name, title, arrays, head(target) + text.strip("\n"), [f"launch: {launch}", *headers])


INDEX = """  .reg .u32 %i, %x, %y, %z; .reg .u64 %at, %to; .reg .pred %p, %q;
  mov.u32 %i, %tid.x;
"""


def store(name, register, kind="u32", index="%i"):
    size = int(kind[1:]) // 8
    return (
        f"  ld.param.u64 %at, [{name}]; mad.wide.u32 %at, {index}, {size}, %at; st.global.{kind} [%at], {register};\n"
    )


def load(name, register, kind="u32", index="%i"):
    size = int(kind[1:]) // 8
    return (
        f"  ld.param.u64 %at, [{name}]; mad.wide.u32 %at, {index}, {size}, %at; ld.global.{kind} {register}, [%at];\n"
    )


# ---- branches ----


def collatz(n, limit=200):
    steps = 0
    while n > 1 and steps < limit:
        n = n // 2 if n % 2 == 0 else (3 * n + 1) & ALL
        steps += 1
    return steps


def branches():
    values = [i + 1 for i in range(62)]
    arrays = [Array("in", "a", "u32", values), Array("out", "d", "u32", [collatz(v) for v in values])]
    body = [
        "mov.u32 %d, 0;",
        "loop:",
        "setp.le.u32 %p, %a, 1;",
        "@%p bra done;",
        "and.b32 %x, %a, 1; setp.eq.u32 %p, %x, 0;",
        "@%p bra even;",
        "mad.lo.u32 %a, %a, 3, 1;",
        "bra next;",
        "even:",
        "shr.u32 %a, %a, 1;",
        "next:",
        "add.u32 %d, %d, 1; setp.lt.u32 %p, %d, 200;",
        "@%p bra loop;",
        "done:",
    ]
    yield lane_case(
        "bra",
        "bra.loop",
        "a loop with a branch in it; every lane has its own number of rounds",
        arrays,
        body,
        ["u32 %x", "pred %p"],
    )

    values = words("bra.nested", 62, 64)

    def nested(v):
        out = 0
        if v & 1:
            out += 1
            out += 10 if v & 2 else 20
            if v & 4:
                out += 100
        else:
            out += 2 if v & 8 else 3
        return out + (1000 if v & 16 else 0)

    arrays = [Array("in", "a", "u32", values), Array("out", "d", "u32", [nested(v) for v in values])]
    body = [
        "mov.u32 %d, 0;",
        "and.b32 %x, %a, 1; setp.eq.u32 %p, %x, 0;",
        "@%p bra even;",
        "add.u32 %d, %d, 1; and.b32 %x, %a, 2; setp.ne.u32 %p, %x, 0;",
        "@!%p bra twenty;",
        "add.u32 %d, %d, 10;",
        "bra.uni four;",
        "twenty:",
        "add.u32 %d, %d, 20;",
        "four:",
        "and.b32 %x, %a, 4; setp.eq.u32 %p, %x, 0;",
        "@%p bra join;",
        "add.u32 %d, %d, 100;",
        "bra join;",
        "even:",
        "and.b32 %x, %a, 8; setp.ne.u32 %p, %x, 0; selp.u32 %x, 2, 3, %p; add.u32 %d, %d, %x;",
        "join:",
        "and.b32 %x, %a, 16; setp.ne.u32 %p, %x, 0;",
        "@%p add.u32 %d, %d, 1000;",
    ]
    yield lane_case("bra", "bra.nested", "branches in branches", arrays, body, ["u32 %x", "pred %p"])

    values = words("bra.unstructured", 62, 256)

    def unstructured(v):
        state, out = "a", 0
        for _ in range(40):
            if state == "a":
                out += 1
                state = "b" if v & 1 else "c"
            elif state == "b":
                out += 10
                v >>= 1
                state = "c" if v & 1 else "d"
            elif state == "c":
                out += 100
                v >>= 1
                state = "b" if v & 2 else "d"
            else:
                out += 1000
                if v == 0 or out >= 4000:
                    return out
                v >>= 2
                state = "a" if v & 1 else "b"
        return out

    kept = [v for v in values if unstructured(v) >= 1000]
    arrays = [Array("in", "a", "u32", kept), Array("out", "d", "u32", [unstructured(v) for v in kept])]
    body = [
        "mov.u32 %d, 0;",
        "A:",
        "add.u32 %d, %d, 1; and.b32 %x, %a, 1; setp.ne.u32 %p, %x, 0;",
        "@%p bra B;",
        "C:",
        "add.u32 %d, %d, 100; shr.u32 %a, %a, 1; and.b32 %x, %a, 2; setp.eq.u32 %p, %x, 0;",
        "@%p bra D;",
        "B:",
        "add.u32 %d, %d, 10; shr.u32 %a, %a, 1; and.b32 %x, %a, 1; setp.ne.u32 %p, %x, 0;",
        "@%p bra C;",
        "D:",
        "add.u32 %d, %d, 1000; setp.eq.u32 %p, %a, 0;",
        "@%p bra done;",
        "setp.ge.u32 %p, %d, 4000;",
        "@%p bra done;",
        "shr.u32 %a, %a, 2; and.b32 %x, %a, 1; setp.ne.u32 %p, %x, 0;",
        "@%p bra A;",
        "bra B;",
        "done:",
    ]
    yield lane_case(
        "bra", "bra.unstructured", "a loop with two entries and jumps across", arrays, body, ["u32 %x", "pred %p"]
    )

    values = words("brx", 62, 6)
    arrays = [Array("in", "a", "u32", values), Array("out", "d", "u32", [[7, 17, 27, 37, 37, 7][v] for v in values])]
    body = [
        "table: .branchtargets L0, L1, L2, L3, L3, L0;",
        "brx.idx %a, table;",
        "L0:",
        "mov.u32 %d, 7;",
        "bra done;",
        "L1:",
        "mov.u32 %d, 17;",
        "bra done;",
        "L2:",
        "mov.u32 %d, 27;",
        "bra done;",
        "L3:",
        "mov.u32 %d, 37;",
        "done:",
    ]
    yield lane_case("brx", "brx.idx", "a jump by table, six ways", arrays, body)

    values = words("guards", 62)
    arrays = [
        Array("in", "a", "u32", values),
        Array("out", "d", "u32", [(v if v & 1 else (v + 5) & ALL) ^ (0 if v & 2 else 0xFF) for v in values]),
    ]
    body = [
        "and.b32 %x, %a, 1; setp.ne.u32 %p, %x, 0; and.b32 %x, %a, 2; setp.ne.u32 %q, %x, 0;",
        "@%p mov.u32 %d, %a;",
        "@!%p add.u32 %d, %a, 5;",
        "@!%q xor.b32 %d, %d, 255;",
    ]
    yield lane_case(
        "bra",
        "guard",
        "instructions under a predicate and under its complement",
        arrays,
        body,
        ["u32 %x", "pred %p", "pred %q"],
    )


def leaving():
    values = words("exit", 64)
    text = f""".visible .entry test(.param .u64 a, .param .u64 d)
{{
{INDEX}{load("a", "%x")}  and.b32 %y, %x, 3; setp.eq.u32 %p, %y, 0;
  @%p exit;
  setp.eq.u32 %p, %y, 1;
  @%p ret;
  bar.sync 0;
{store("d", "%x")}  ret;
}}"""
    before = [7] * 64
    after = [v if v & 3 > 1 else 7 for v in values]
    yield kernel_case(
        "exit",
        "exit",
        "lanes that left do not hold up a barrier, and store nothing",
        [Array("in", "a", "u32", values), Array("inout", "d", "u32", (before, after))],
        text,
        "grid 1 block 64",
    )


# ---- calls ----

FUNCTIONS = """.func (.param .u32 result) twice(.param .u32 x)
{
  .reg .u32 %x;
  ld.param.u32 %x, [x];
  add.u32 %x, %x, %x;
  st.param.u32 [result], %x;
  ret;
}
.func (.param .u32 result) fibonacci(.param .u32 n)
{
  .reg .u32 %n, %a, %b; .reg .pred %p;
  ld.param.u32 %n, [n];
  setp.lt.u32 %p, %n, 2;
  @%p bra small;
  sub.u32 %a, %n, 1;
  { .param .u32 argument; .param .u32 answer;
    st.param.u32 [argument], %a;
    call.uni (answer), fibonacci, (argument);
    ld.param.u32 %b, [answer]; }
  sub.u32 %a, %n, 2;
  { .param .u32 argument; .param .u32 answer;
    st.param.u32 [argument], %a;
    call (answer), fibonacci, (argument);
    ld.param.u32 %a, [answer]; }
  add.u32 %n, %a, %b;
small:
  st.param.u32 [result], %n;
  ret;
}
"""


def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def calls():
    numbers = [i % 11 for i in range(64)]
    text = (
        FUNCTIONS
        + f""".visible .entry test(.param .u64 a, .param .u64 d)
{{
{INDEX}{load("a", "%x")}  {{ .param .u32 argument; .param .u32 answer;
    st.param.u32 [argument], %x;
    call (answer), fibonacci, (argument);
    ld.param.u32 %y, [answer]; }}
{store("d", "%y")}  ret;
}}"""
    )
    yield kernel_case(
        "call",
        "call.recursion",
        "every lane recurses to its own depth",
        [Array("in", "a", "u32", numbers), Array("out", "d", "u32", [fibonacci(n) for n in numbers])],
        text,
        "grid 1 block 64",
    )
    yield from indirect_call()
    yield from structure_call()
    yield from typed_calls()
    yield from register_call()


def indirect_call():
    values = words("indirect", 64)

    def three(v, i):
        return [2 * v, v ^ 0x55, v + 100][i % 3] & ALL

    text = (
        """.func (.param .u32 result) one(.param .u32 x)
{ .reg .u32 %x; ld.param.u32 %x, [x]; add.u32 %x, %x, %x; st.param.u32 [result], %x; ret; }
.func (.param .u32 result) two(.param .u32 x)
{ .reg .u32 %x; ld.param.u32 %x, [x]; xor.b32 %x, %x, 85; st.param.u32 [result], %x; ret; }
.func (.param .u32 result) other(.param .u32 x)
{ .reg .u32 %x; ld.param.u32 %x, [x]; add.u32 %x, %x, 100; st.param.u32 [result], %x; ret; }
.global .align 8 .u64 table[3] = {one, two, other};
"""
        + f""".visible .entry test(.param .u64 a, .param .u64 d)
{{
  .reg .u64 %f;
{INDEX}{load("a", "%x")}  rem.u32 %y, %i, 3; mov.u64 %to, table; mad.wide.u32 %to, %y, 8, %to; ld.global.u64 %f, [%to];
  {{ .param .u32 argument; .param .u32 answer;
    st.param.u32 [argument], %x;
    shape: .callprototype (.param .u32 _) _ (.param .u32 _);
    call (answer), %f, (argument), shape;
    ld.param.u32 %y, [answer]; }}
{store("d", "%y")}  ret;
}}"""
    )
    yield kernel_case(
        "call",
        "call.indirect",
        "three functions from a table of addresses, another for each lane",
        [Array("in", "a", "u32", values), Array("out", "d", "u32", [three(v, i) for i, v in enumerate(values)])],
        text,
        "grid 1 block 64",
    )


def structure_call():
    values = words("structure", 64, 1 << 30)
    text = (
        """.func (.param .align 8 .b8 result[16]) turn(.param .align 8 .b8 x[16])
{
  .reg .u32 %a, %b; .reg .u64 %c;
  ld.param.u32 %a, [x]; ld.param.u32 %b, [x+4]; ld.param.u64 %c, [x+8];
  add.u64 %c, %c, 1;
  st.param.u32 [result], %b; st.param.u32 [result+4], %a; st.param.u64 [result+8], %c;
  ret;
}
"""
        + f""".visible .entry test(.param .u64 a, .param .u64 d, .param .u64 e)
{{
  .reg .u64 %w;
{INDEX}{load("a", "%x")}  cvt.u64.u32 %w, %x; shl.b64 %w, %w, 20;
  {{ .param .align 8 .b8 argument[16]; .param .align 8 .b8 answer[16];
    st.param.v2.u32 [argument], {{%x, %i}};
    st.param.u64 [argument+8], %w;
    call.uni (answer), turn, (argument);
    ld.param.v2.u32 {{%y, %z}}, [answer];
    ld.param.u64 %w, [answer+8]; }}
  sub.u32 %y, %z, %y;
{store("d", "%y")}{store("e", "%w", "u64")}  ret;
}}"""
    )
    d = [(v - i) & ALL for i, v in enumerate(values)]
    yield kernel_case(
        "call",
        "call.structure",
        "a structure of 16 bytes passed and returned by value",
        [
            Array("in", "a", "u32", values),
            Array("out", "d", "u32", d),
            Array("out", "e", "u64", [(v << 20) + 1 for v in values]),
        ],
        text,
        "grid 1 block 64",
    )


def typed_calls():
    """st.param and ld.param of every type that compilers print, through a function that hands its argument back."""
    random = Random("typed calls")
    for kind in ("b8", "b16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"):
        bits = int(kind[1:])
        register = {8: "b16", 16: "b16"}.get(bits, kind)
        memory = f"b{bits}" if bits < 32 else kind
        # NaN patterns may pass too: only bits are moved
        values = [random.bits(bits) for _ in range(32)]
        arrays = [Array("in", "a", kind, values), Array("out", "d", "u16" if bits == 8 else kind, values)]
        size, out = bits // 8, 2 if bits == 8 else bits // 8
        text = f""".func (.param .{kind} result) same(.param .{kind} x)
{{ .reg .{register} %x; ld.param.{kind} %x, [x]; st.param.{kind} [result], %x; ret; }}
.visible .entry test(.param .u64 a, .param .u64 d)
{{
  .reg .{register} %v;
{INDEX}  ld.param.u64 %at, [a]; mad.wide.u32 %at, %i, {size}, %at; ld.global.{memory} %v, [%at];
  {{ .param .{kind} argument; .param .{kind} answer;
    st.param.{kind} [argument], %v;
    call.uni (answer), same, (argument);
    ld.param.{kind} %v, [answer]; }}
  ld.param.u64 %at, [d]; mad.wide.u32 %at, %i, {out}, %at; st.global.{'b16' if bits == 8 else memory} [%at], %v;
  ret;
}}"""
        yield kernel_case(
            "call", f"call.param.{kind}", "an argument and a result of this type", arrays, text, "grid 1 block 32"
        )


def register_call():
    """Parameters and results in registers, as hand-written PTX has them, and a divergent call without a result."""
    values = words("registers", 64)
    text = (
        """.func (.reg .u32 %r) mix(.reg .u32 %a, .reg .u32 %b)
{ mad.lo.u32 %r, %a, %b, 3; ret; }
.func mark(.param .u64 where, .param .u32 what)
{ .reg .u64 %a; .reg .u32 %b; ld.param.u64 %a, [where]; ld.param.u32 %b, [what]; st.global.u32 [%a], %b; ret; }
"""
        + f""".visible .entry test(.param .u64 a, .param .u64 d)
{{
{INDEX}{load("a", "%x")}  call (%y), mix, (%x, %i);
{store("d", "%y")}  and.b32 %z, %i, 3; setp.eq.u32 %p, %z, 2;
  @!%p bra done;
  {{ .param .u64 where; .param .u32 what;
    st.param.u64 [where], %at; st.param.u32 [what], %x;
    call mark, (where, what); }}
done:
  ret;
}}"""
    )
    d = [v if i % 4 == 2 else (v * i + 3) & ALL for i, v in enumerate(values)]
    yield kernel_case(
        "call",
        "call.registers",
        "arguments in registers; a call by some lanes only",
        [Array("in", "a", "u32", values), Array("out", "d", "u32", d)],
        text,
        "grid 1 block 64",
    )


def cases():
    for group in (branches, leaving, calls):
        yield from group()
