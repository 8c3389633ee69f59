# SPDX-License-Identifier: Apache-2.0
"""Conformance files of control flow, calls, barriers, special registers, address spaces and initial values: kernels written
out, with expectations from a few lines of Python each."""
from .values import Random
from .writer import Array, Case, head, lane_kernel

ALL = 0xFFFFFFFF


def words(name, count, limit=None):
    random = Random(name)
    return [random.below(limit) if limit else random.bits(32) for _ in range(count)]


def lane_file(folder, name, title, arrays, body, registers=(), target=(70, 80)):
    """Run in both shapes, whole warps and blocks of 31."""
    return Case(folder, name, title, arrays, lane_kernel(arrays, body, registers, target), [])


def kernel_file(folder, name, title, arrays, text, launch, target=(70, 80), headers=()):
    return Case(folder, name, title, arrays, head(target) + text.strip("\n"), [f"launch: {launch}", *headers])


INDEX = """  .reg .u32 %i, %x, %y, %z; .reg .u64 %at, %to; .reg .pred %p, %q;
  mov.u32 %i, %tid.x;
"""


def store(name, register, kind="u32", index="%i"):
    size = int(kind[1:]) // 8
    return f"  ld.param.u64 %at, [{name}]; mad.wide.u32 %at, {index}, {size}, %at; st.global.{kind} [%at], {register};\n"


def load(name, register, kind="u32", index="%i"):
    size = int(kind[1:]) // 8
    return f"  ld.param.u64 %at, [{name}]; mad.wide.u32 %at, {index}, {size}, %at; ld.global.{kind} {register}, [%at];\n"


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
    body = ["mov.u32 %d, 0;", "loop:", "setp.le.u32 %p, %a, 1;", "@%p bra done;", "and.b32 %x, %a, 1; setp.eq.u32 %p, %x, 0;", "@%p bra even;",
            "mad.lo.u32 %a, %a, 3, 1;", "bra next;", "even:", "shr.u32 %a, %a, 1;", "next:", "add.u32 %d, %d, 1; setp.lt.u32 %p, %d, 200;",
            "@%p bra loop;", "done:"]
    yield lane_file("bra", "bra.loop", "a loop with a branch in it; every lane has its own number of rounds", arrays, body, ["u32 %x", "pred %p"])

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
    body = ["mov.u32 %d, 0;", "and.b32 %x, %a, 1; setp.eq.u32 %p, %x, 0;", "@%p bra even;", "add.u32 %d, %d, 1; and.b32 %x, %a, 2; setp.ne.u32 %p, %x, 0;",
            "@!%p bra twenty;", "add.u32 %d, %d, 10;", "bra.uni four;", "twenty:", "add.u32 %d, %d, 20;", "four:", "and.b32 %x, %a, 4; setp.eq.u32 %p, %x, 0;",
            "@%p bra join;", "add.u32 %d, %d, 100;", "bra join;", "even:", "and.b32 %x, %a, 8; setp.ne.u32 %p, %x, 0; selp.u32 %x, 2, 3, %p; add.u32 %d, %d, %x;",
            "join:", "and.b32 %x, %a, 16; setp.ne.u32 %p, %x, 0;", "@%p add.u32 %d, %d, 1000;"]
    yield lane_file("bra", "bra.nested", "branches in branches", arrays, body, ["u32 %x", "pred %p"])

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
    body = ["mov.u32 %d, 0;", "A:", "add.u32 %d, %d, 1; and.b32 %x, %a, 1; setp.ne.u32 %p, %x, 0;", "@%p bra B;", "C:",
            "add.u32 %d, %d, 100; shr.u32 %a, %a, 1; and.b32 %x, %a, 2; setp.eq.u32 %p, %x, 0;", "@%p bra D;", "B:",
            "add.u32 %d, %d, 10; shr.u32 %a, %a, 1; and.b32 %x, %a, 1; setp.ne.u32 %p, %x, 0;", "@%p bra C;", "D:",
            "add.u32 %d, %d, 1000; setp.eq.u32 %p, %a, 0;", "@%p bra done;", "setp.ge.u32 %p, %d, 4000;", "@%p bra done;",
            "shr.u32 %a, %a, 2; and.b32 %x, %a, 1; setp.ne.u32 %p, %x, 0;", "@%p bra A;", "bra B;", "done:"]
    yield lane_file("bra", "bra.unstructured", "a loop with two entries and jumps across", arrays, body, ["u32 %x", "pred %p"])

    values = words("brx", 62, 6)
    arrays = [Array("in", "a", "u32", values), Array("out", "d", "u32", [[7, 17, 27, 37, 37, 7][v] for v in values])]
    body = ["table: .branchtargets L0, L1, L2, L3, L3, L0;", "brx.idx %a, table;", "L0:", "mov.u32 %d, 7;", "bra done;", "L1:", "mov.u32 %d, 17;", "bra done;",
            "L2:", "mov.u32 %d, 27;", "bra done;", "L3:", "mov.u32 %d, 37;", "done:"]
    yield lane_file("brx", "brx.idx", "a jump by table, six ways", arrays, body)

    values = words("guards", 62)
    arrays = [Array("in", "a", "u32", values), Array("out", "d", "u32", [(v if v & 1 else (v + 5) & ALL) ^ (0 if v & 2 else 0xFF) for v in values])]
    body = ["and.b32 %x, %a, 1; setp.ne.u32 %p, %x, 0; and.b32 %x, %a, 2; setp.ne.u32 %q, %x, 0;", "@%p mov.u32 %d, %a;", "@!%p add.u32 %d, %a, 5;",
            "@!%q xor.b32 %d, %d, 255;"]
    yield lane_file("bra", "guard", "instructions under a predicate and under its complement", arrays, body, ["u32 %x", "pred %p", "pred %q"])


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
    yield kernel_file("exit", "exit", "lanes that left do not hold up a barrier, and store nothing",
                      [Array("in", "a", "u32", values), Array("inout", "d", "u32", (before, after))], text, "grid 1 block 64")


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
    text = FUNCTIONS + f""".visible .entry test(.param .u64 a, .param .u64 d)
{{
{INDEX}{load("a", "%x")}  {{ .param .u32 argument; .param .u32 answer;
    st.param.u32 [argument], %x;
    call (answer), fibonacci, (argument);
    ld.param.u32 %y, [answer]; }}
{store("d", "%y")}  ret;
}}"""
    yield kernel_file("call", "call.recursion", "every lane recurses to its own depth",
                      [Array("in", "a", "u32", numbers), Array("out", "d", "u32", [fibonacci(n) for n in numbers])], text, "grid 1 block 64")
    yield from indirect_call()
    yield from structure_call()
    yield from typed_calls()
    yield from register_call()


def indirect_call():
    values = words("indirect", 64)
    def three(v, i):
        return [2 * v, v ^ 0x55, v + 100][i % 3] & ALL
    text = """.func (.param .u32 result) one(.param .u32 x)
{ .reg .u32 %x; ld.param.u32 %x, [x]; add.u32 %x, %x, %x; st.param.u32 [result], %x; ret; }
.func (.param .u32 result) two(.param .u32 x)
{ .reg .u32 %x; ld.param.u32 %x, [x]; xor.b32 %x, %x, 85; st.param.u32 [result], %x; ret; }
.func (.param .u32 result) other(.param .u32 x)
{ .reg .u32 %x; ld.param.u32 %x, [x]; add.u32 %x, %x, 100; st.param.u32 [result], %x; ret; }
.global .align 8 .u64 table[3] = {one, two, other};
""" + f""".visible .entry test(.param .u64 a, .param .u64 d)
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
    yield kernel_file("call", "call.indirect", "three functions from a table of addresses, another for each lane",
                      [Array("in", "a", "u32", values), Array("out", "d", "u32", [three(v, i) for i, v in enumerate(values)])], text, "grid 1 block 64")


def structure_call():
    values = words("structure", 64, 1 << 30)
    text = """.func (.param .align 8 .b8 result[16]) turn(.param .align 8 .b8 x[16])
{
  .reg .u32 %a, %b; .reg .u64 %c;
  ld.param.u32 %a, [x]; ld.param.u32 %b, [x+4]; ld.param.u64 %c, [x+8];
  add.u64 %c, %c, 1;
  st.param.u32 [result], %b; st.param.u32 [result+4], %a; st.param.u64 [result+8], %c;
  ret;
}
""" + f""".visible .entry test(.param .u64 a, .param .u64 d, .param .u64 e)
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
    d = [(v - i) & ALL for i, v in enumerate(values)]
    yield kernel_file("call", "call.structure", "a structure of 16 bytes passed and returned by value",
                      [Array("in", "a", "u32", values), Array("out", "d", "u32", d), Array("out", "e", "u64", [(v << 20) + 1 for v in values])], text, "grid 1 block 64")


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
        yield kernel_file("call", f"call.param.{kind}", "an argument and a result of this type", arrays, text, "grid 1 block 32")


def register_call():
    """Parameters and results in registers, as hand-written PTX has them, and a divergent call without a result."""
    values = words("registers", 64)
    text = """.func (.reg .u32 %r) mix(.reg .u32 %a, .reg .u32 %b)
{ mad.lo.u32 %r, %a, %b, 3; ret; }
.func mark(.param .u64 where, .param .u32 what)
{ .reg .u64 %a; .reg .u32 %b; ld.param.u64 %a, [where]; ld.param.u32 %b, [what]; st.global.u32 [%a], %b; ret; }
""" + f""".visible .entry test(.param .u64 a, .param .u64 d)
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
    d = [v if i % 4 == 2 else (v * i + 3) & ALL for i, v in enumerate(values)]
    yield kernel_file("call", "call.registers", "arguments in registers; a call by some lanes only",
                      [Array("in", "a", "u32", values), Array("out", "d", "u32", d)], text, "grid 1 block 64")


# ---- barriers ----

def barriers():
    threads = 96
    values = words("bar", threads)
    shifted = [values[(i + 33) % threads] for i in range(threads)]
    through = """  .shared .u32 area[96];
  mov.u64 %to, area; mad.wide.u32 %to, %i, 4, %to; st.shared.u32 [%to], %x;
"""
    again = """  add.u32 %y, %i, 33; rem.u32 %y, %y, 96; mov.u64 %to, area; mad.wide.u32 %to, %y, 4, %to; ld.shared.u32 %y, [%to];
"""
    for name, instruction in (("bar.sync", "bar.sync 0;"), ("bar.sync.named", "bar.sync 5;"), ("bar.sync.count", "bar.sync 3, 96;"),
                              ("bar.cta.sync", "bar.cta.sync 0;"), ("barrier.sync", "barrier.sync 0;"), ("barrier.sync.aligned", "barrier.sync.aligned 1, 96;"),
                              ("barrier.cta.sync", "barrier.cta.sync 15;"), ("bar.sync.register", "mov.u32 %z, 7; bar.sync %z;")):
        text = f""".visible .entry test(.param .u64 a, .param .u64 d)
{{
{INDEX}{load("a", "%x")}{through}  {instruction}
{again}{store("d", "%y")}  ret;
}}"""
        yield kernel_file(name.split(".")[0], name, "three warps pass values through shared memory",
                          [Array("in", "a", "u32", values), Array("out", "d", "u32", shifted)], text, f"grid 1 block {threads}",
                          target=(78, 80) if ".cta" in name else (70, 80))
    yield from barrier_reductions(values, threads)
    yield from barrier_arrive()
    yield from barrier_divergent()


def barrier_reductions(values, threads):
    odd = [v & 1 for v in values]
    for family in ("bar", "barrier"):
        forms = (("popc.u32", sum(odd), threads - sum(odd)), ("and.pred", 0, int(not any(odd))), ("or.pred", 1, 1))
        for tail, plain, complement in forms:
            name = f"{family}.red.{tail}"
            if tail.startswith("popc"):
                lines = f"  {name} %y, 0, %p;\n  {name} %z, 1, 96, !%p;\n"
            else:
                lines = f"  {name} %q, 0, %p; selp.u32 %y, 1, 0, %q;\n  {name} %q, 2, !%p; selp.u32 %z, 1, 0, %q;\n"
            text = f""".visible .entry test(.param .u64 a, .param .u64 d, .param .u64 e)
{{
{INDEX}{load("a", "%x")}  and.b32 %x, %x, 1; setp.ne.u32 %p, %x, 0;
{lines}{store("d", "%y")}{store("e", "%z")}  ret;
}}"""
            yield kernel_file(family, name, "over three warps; e: of the complement",
                              [Array("in", "a", "u32", values), Array("out", "d", "u32", [plain] * threads), Array("out", "e", "u32", [complement] * threads)],
                              text, f"grid 1 block {threads}")


def barrier_arrive():
    """The first warp produces and does not wait; the second waits for it."""
    values = words("arrive", 32)
    for family in ("bar", "barrier"):
        text = f""".visible .entry test(.param .u64 a, .param .u64 d)
{{
  .shared .u32 area[32];
{INDEX}  and.b32 %y, %i, 31; setp.ge.u32 %p, %i, 32;
  mov.u64 %to, area; mad.wide.u32 %to, %y, 4, %to;
  @%p bra consumer;
{load("a", "%x", index="%y")}  st.shared.u32 [%to], %x;
  {family}.arrive 1, 64;
  ret;
consumer:
  {family}.sync 1, 64;
  ld.shared.u32 %x, [%to];
{store("d", "%x", index="%y")}  ret;
}}"""
        yield kernel_file(family, f"{family}.arrive", "a warp arrives without waiting, another waits",
                          [Array("in", "a", "u32", values), Array("out", "d", "u32", values)], text, "grid 1 block 64")


def barrier_divergent():
    """barrier.sync in the two sides of a divergent branch: the warp's lanes arrive one after the other."""
    text = f""".visible .entry test(.param .u64 d)
{{
  .shared .u32 count;
{INDEX}  mov.u64 %to, count; setp.eq.u32 %p, %i, 0;
  @%p st.shared.u32 [%to], 0;
  bar.sync 0;
  and.b32 %y, %i, 1; setp.eq.u32 %p, %y, 0;
  @%p bra even;
  atom.shared.add.u32 %x, [%to], 100;
  barrier.sync 1;
  bra done;
even:
  atom.shared.add.u32 %x, [%to], 1;
  barrier.sync 1;
done:
  ld.shared.u32 %x, [%to];
{store("d", "%x")}  ret;
}}"""
    yield kernel_file("barrier", "barrier.sync.divergent", "both sides of a branch meet at one barrier",
                      [Array("out", "d", "u32", [32 * 100 + 32] * 64)], text, "grid 1 block 64")


def fences():
    values = words("fences", 62)
    names = ["membar.cta", "membar.gl", "membar.sys", "fence.sc.cta", "fence.sc.gpu", "fence.sc.sys", "fence.acq_rel.cta", "fence.acq_rel.gpu", "fence.acq_rel.sys"]
    for name in names:
        arrays = [Array("in", "a", "u32", values), Array("out", "d", "u32", [(v + 1) & ALL for v in values])]
        yield lane_file(name.split(".")[0], name, "changes no value", arrays, ["add.u32 %d, %a, 1;", f"{name};"])
    arrays = [Array("in", "a", "u32", values), Array("out", "d", "u32", [(v + 1) & ALL for v in values])]
    yield lane_file("nanosleep", "nanosleep.u32", "by a constant and by a register", arrays, ["nanosleep.u32 20;", "and.b32 %x, %a, 63; nanosleep.u32 %x;", "add.u32 %d, %a, 1;"], ["u32 %x"])
    yield lane_file("griddepcontrol", "griddepcontrol", "nothing to wait for, nothing that depends", arrays,
                    ["griddepcontrol.wait;", "add.u32 %d, %a, 1;", "griddepcontrol.launch_dependents;"], target=(78, 90))
    for name, operand in (("prefetch.global.L1", "%at"), ("prefetch.global.L2", "%at"), ("prefetch.L1", "%at"), ("prefetch.global.L2::evict_last", "%at"), ("prefetchu.L1", "%at")):
        yield lane_file(name.split(".")[0], name, "changes no value", arrays, [f"ld.param.u64 %at, [a]; {name} [{operand}];", "add.u32 %d, %a, 1;"], target=(74, 80))


# ---- threads that wait for each other ----

def waiting():
    text = f""".global .u32 lock; .global .u32 counter;
.visible .entry test(.param .u64 d)
{{
{INDEX}again:
  atom.global.cas.b32 %x, [lock], 0, 1;
  setp.ne.u32 %p, %x, 0;
  @%p bra again;
  membar.gl;
  ld.volatile.global.u32 %y, [counter]; add.u32 %y, %y, 3; st.volatile.global.u32 [counter], %y;
  membar.gl;
  atom.global.exch.b32 %x, [lock], 0;
  mov.u32 %z, %ctaid.x; mov.u32 %x, %ntid.x; mad.lo.u32 %i, %z, %x, %i;
  ld.param.u64 %at, [d]; red.global.add.u32 [%at], 1; atom.global.max.u32 %x, [%at+4], %y;
  ret;
}}"""
    yield kernel_file("bra", "wait.lock", "every thread of three blocks takes one lock: lanes of a warp wait for each other",
                      [Array("inout", "d", "u32", ([0, 0], [240, 720]))], text, "grid 3 block 80")
    text = f""".visible .entry test(.param .u64 d)
{{
  .shared .u32 flag; .shared .u32 value;
{INDEX}  setp.eq.u32 %p, %i, 0;
  @%p st.shared.u32 [flag], 0;
  bar.sync 0;
  setp.lt.u32 %p, %i, 20;
  @%p bra consumer;
  setp.ne.u32 %p, %i, 31;
  @%p bra done;
  mov.u32 %x, 1234; st.volatile.shared.u32 [value], %x; membar.cta; mov.u32 %x, 1; st.volatile.shared.u32 [flag], %x;
  bra done;
consumer:
  ld.volatile.shared.u32 %x, [flag]; setp.eq.u32 %p, %x, 0;
  @%p bra consumer;
  ld.volatile.shared.u32 %x, [value]; add.u32 %x, %x, %i;
{store("d", "%x")}done:
  ret;
}}"""
    yield kernel_file("bra", "wait.lanes", "lanes of one warp wait for another lane of it",
                      [Array("inout", "d", "u32", ([5] * 32, [1234 + i if i < 20 else 5 for i in range(32)]))], text, "grid 1 block 32")
    for name, title, other, first in (("wait.before", "every block waits for the one before it", "sub.u32 %y, %z, 1;", "0"),
                                      ("wait.after", "every block waits for the one after it", "add.u32 %y, %z, 1;", "11")):
        text = f""".visible .entry test(.param .u64 flags, .param .u64 d)
{{
{INDEX}  mov.u32 %z, %ctaid.x; {other} ld.param.u64 %to, [flags]; mad.wide.u32 %at, %y, 4, %to;
  setp.ne.u32 %p, %i, 0;
  @%p bra joined;
  mov.u32 %x, 0; setp.eq.u32 %p, %z, {first};
  @%p bra known;
wait:
  ld.acquire.gpu.global.u32 %x, [%at]; setp.eq.u32 %p, %x, 0;
  @%p bra wait;
known:
  add.u32 %x, %x, 1; mad.wide.u32 %at, %z, 4, %to; st.release.gpu.global.u32 [%at], %x;
joined:
  bar.sync 0;
  mad.wide.u32 %at, %z, 4, %to; ld.volatile.global.u32 %x, [%at]; mov.u32 %y, %ntid.x; mad.lo.u32 %i, %z, %y, %i;
{store("d", "%x")}  ret;
}}"""
        order = list(range(1, 13)) if first == "0" else list(range(12, 0, -1))
        yield kernel_file("bra", name, title, [Array("inout", "flags", "u32", ([0] * 12, order)), Array("out", "d", "u32", [v for v in order for _ in range(40)])],
                          text, "grid 12 block 40")
    text = f""".visible .entry test(.param .u64 d)
{{
  .shared .u32 sum;
{INDEX}  setp.eq.u32 %p, %i, 95;
  @%p st.shared.u32 [sum], 0;
  shr.u32 %z, %i, 2; mov.u32 %y, 0;
round:
  bar.sync 0;
  atom.shared.add.u32 %x, [sum], 1;
  add.u32 %y, %y, 1; setp.le.u32 %p, %y, %z;
  @%p bra round;
{store("d", "%y")}  ret;
}}"""
    yield kernel_file("bar", "bar.sync.leaving", "threads leave a loop of barriers one by one; the others go on",
                      [Array("out", "d", "u32", [i // 4 + 1 for i in range(96)])], text, "grid 1 block 96")


def cases():
    for group in (branches, leaving, calls, barriers, fences, waiting):
        yield from group()
