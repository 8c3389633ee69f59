# SPDX-License-Identifier: Apache-2.0
"""Random programs: blocks of random instructions under random predicates, joined by random jumps in both directions, with
calls, each thread's own memory and atomics in shared memory. Every thread has fuel for a number of blocks. The expectation comes
from running the same program thread by thread, so any fault in divergence, reconvergence, guards, operand layout or frames
shows in some thread's result. NaNs are looked at only through conversions and comparisons, which are exactly defined."""
from . import arithmetic as A
from . import convert as C
from . import integers as I
from .formats import ANY_NAN, F32, canonical_nan
from .values import Random
from .writer import Array, Case, head

PROGRAMS, THREADS, GRID, BLOCK = 24, 160, 2, 80
WORDS, LONGS, FLOATS, PREDICATES, CELLS, COUNTERS = 6, 3, 3, 3, 8, 4
M32, M64 = I.mask(32), I.mask(64)


def settle(bits):
    return canonical_nan(F32) if bits == ANY_NAN else bits


# (text with {0} the destination and {1}.. the sources, kinds of destination and sources, function)
OPERATIONS = [
    ("add.u32", "ww w", lambda a, b: a + b),
    ("sub.s32", "ww w", lambda a, b: a - b),
    ("mul.lo.u32", "ww w", lambda a, b: a * b),
    ("mad.lo.s32", "www w", lambda a, b, c: a * b + c),
    ("mul.hi.u32", "ww w", lambda a, b: a * b >> 32),
    ("and.b32", "ww w", lambda a, b: a & b),
    ("or.b32", "ww w", lambda a, b: a | b),
    ("xor.b32", "ww w", lambda a, b: a ^ b),
    ("not.b32", "w w", lambda a: ~a),
    ("neg.s32", "w w", lambda a: -a),
    ("abs.s32", "w w", lambda a: abs(I.signed(a, 32))),
    ("min.s32", "ww w", lambda a, b: min(I.signed(a, 32), I.signed(b, 32))),
    ("max.u32", "ww w", max),
    ("shl.b32", "ws w", lambda a, b: I.shift_left(32, a, b)),
    ("shr.s32", "ws w", lambda a, b: I.shift_right("s32", a, b)),
    ("shr.u32", "ww w", lambda a, b: I.shift_right("u32", a, b)),
    ("shf.l.wrap.b32", "wws w", lambda a, b, c: I.funnel("l", "wrap", a, b, c)),
    ("popc.b32", "w w", lambda a: bin(a).count("1")),
    ("clz.b32", "w w", lambda a: 32 - a.bit_length()),
    ("brev.b32", "w w", lambda a: I.reverse(a, 32)),
    ("bfind.u32", "w w", lambda a: I.find_leading("u32", a, False)),
    ("prmt.b32", "www w", lambda a, b, c: I.permute("", a, b, c)),
    ("bfe.s32", "wss w", lambda a, b, c: I.extract_field("s32", a, b, c)),
    ("bfi.b32", "wwss w", lambda a, b, c, d: I.insert_field(32, a, b, c, d)),
    ("sad.s32", "www w", lambda a, b, c: I.sum_of_differences("s32", a, b, c)),
    ("mul.wide.u32", "ww l", lambda a, b: a * b),
    ("mad.wide.s32", "wwl l", lambda a, b, c: I.signed(a, 32) * I.signed(b, 32) + c),
    ("add.s64", "ll l", lambda a, b: a + b),
    ("sub.u64", "ll l", lambda a, b: a - b),
    ("xor.b64", "ll l", lambda a, b: a ^ b),
    ("mul.lo.s64", "ll l", lambda a, b: a * b),
    ("shr.u64", "ls l", lambda a, b: I.shift_right("u64", a, b)),
    ("shl.b64", "ls l", lambda a, b: I.shift_left(64, a, b)),
    ("max.s64", "ll l", lambda a, b: max(I.signed(a, 64), I.signed(b, 64))),
    ("cvt.u32.u64", "l w", lambda a: a),
    ("cvt.s64.s32", "w l", lambda a: I.signed(a, 32)),
    ("cvt.u64.u32", "w l", lambda a: a),
    ("popc.b64", "l w", lambda a: bin(a).count("1")),
    ("cvt.rn.f32.s32", "w f", lambda a: C.integer_to_float("f32", "s32", a, "rn", False)),
    ("cvt.rzi.s32.f32", "f w", lambda a: C.float_to_integer("s32", "f32", a, "rzi", False)),
    ("add.f32", "ff f", lambda a, b: A.add(F32, a, b)),
    ("mul.f32", "ff f", lambda a, b: A.mul(F32, a, b)),
    ("fma.rn.f32", "fff f", lambda a, b, c: A.fma(F32, a, b, c)),
    ("min.f32", "ff f", lambda a, b: A.min_max(F32, (a, b), False)),
    ("neg.f32", "f f", lambda a: A.neg(F32, a)),
    ("sub.ftz.f32", "ff f", lambda a, b: A.sub(F32, a, b, ftz=True)),
    ("selp.b32", "wwp w", lambda a, b, c: a if c else b),
    ("selp.f32", "ffp f", lambda a, b, c: a if c else b),
    ("selp.b64", "llp l", lambda a, b, c: a if c else b),
    ("setp.lt.s32", "ww p", lambda a, b: I.signed(a, 32) < I.signed(b, 32)),
    ("setp.ge.u32", "ww p", lambda a, b: a >= b),
    ("setp.eq.u64", "ll p", lambda a, b: a == b),
    ("setp.gt.f32", "ff p", lambda a, b: A.compare(F32, "gt", a, b)),
    ("setp.leu.f32", "ff p", lambda a, b: A.compare(F32, "leu", a, b)),
    ("setp.ne.and.s32", "wwp p", lambda a, b, c: a != b and c),
    ("xor.pred", "pp p", lambda a, b: a != b),
    ("not.pred", "p p", lambda a: not a),
]
FILES = {"w": ("%w", WORDS), "l": ("%l", LONGS), "f": ("%f", FLOATS), "p": ("%p", PREDICATES)}


class Program:
    """Blocks of (lines of text, guard, effect); an effect is a function of a thread's state."""

    def __init__(self, number):
        self.random = Random(f"random program {number}")
        self.blocks = []
        count = 5 + self.random.below(8)
        for index in range(count):
            items = [self.item() for _ in range(3 + self.random.below(6))]
            self.blocks.append(
                (
                    items,
                    self.random.below(PREDICATES),
                    self.random.below(2),
                    self.random.below(count),
                    self.random.below(count) if self.random.below(3) == 0 else index + 1,
                )
            )

    def register(self, kind):
        prefix, count = FILES[kind]
        number = self.random.below(count)
        return f"{prefix}{number}", (kind, number)

    def source(self, kind):
        """A register, or now and then a constant; s: a small number."""
        if kind == "s" or kind == "w" and self.random.below(5) == 0:
            value = (
                self.random.below(40)
                if kind == "s"
                else self.random.choose([0, 1, 2, 255, 0x7FFFFFFF, self.random.bits(32)])
            )
            return str(value), value
        return self.register(kind)

    def item(self):
        guard = (self.random.below(PREDICATES), self.random.below(2)) if self.random.below(4) == 0 else None
        kind = self.random.below(12)
        make = (
            self.local_store
            if kind == 0
            else self.local_load
            if kind == 1
            else self.count
            if kind == 2
            else self.call
            if kind == 3 and not guard
            else self.compute
        )
        text, effect = make()
        before, _, last = text.rpartition("; ")  # only the last instruction is under the guard
        prefix = f"@{'!' if guard and guard[1] else ''}%p{guard[0]} " if guard else ""
        return [before + ";"] * bool(before) + [prefix + last], guard, effect

    def compute(self):
        opcode, kinds, function = self.random.choose(OPERATIONS)
        sources, to = kinds.split()
        operands = [self.source(k) for k in sources]
        text, target = self.register(to)
        bits = {"w": M32, "l": M64, "f": M32, "p": 1}[to]

        def effect(state):
            result = settle(function(*(state.get(o) for _, o in operands)))
            state.set(target, int(result) & bits)

        return f"{opcode} {text}, {', '.join(t for t, _ in operands)};", effect

    def local_store(self):
        (at, at_key), (what, what_key) = self.register("w"), self.register("w")

        def effect(state):
            state.cells[state.get(at_key) & CELLS - 1] = state.get(what_key)

        return f"and.b32 %t, {at}, {CELLS - 1}; mad.lo.u32 %t, %t, 4, %mine; st.local.u32 [%t], {what};", effect

    def local_load(self):
        (at, at_key), (to, to_key) = self.register("w"), self.register("w")

        def effect(state):
            state.set(to_key, state.cells[state.get(at_key) & CELLS - 1])

        return f"and.b32 %t, {at}, {CELLS - 1}; mad.lo.u32 %t, %t, 4, %mine; ld.local.u32 {to}, [%t];", effect

    def count(self):
        (what, key), which = self.register("w"), self.random.below(COUNTERS)

        def effect(state):
            state.counters[which] = (state.counters[which] + state.get(key)) & M32

        return f"red.shared.add.u32 [counters+{4 * which}], {what};", effect

    def call(self):
        (a, a_key), (b, b_key), (to, to_key) = self.register("w"), self.register("w"), self.register("w")

        def effect(state):
            state.set(to_key, steps(state.get(a_key), state.get(b_key)))

        return f"call ({to}), steps, ({a}, {b});", effect


def steps(a, b):
    """The device function: a loop of its own length in each thread, with an early return."""
    count = b & 7
    while count:
        if a & 0xF == 3:
            return a ^ b
        a = (a * 5 + 1) & M32
        count -= 1
    return a


STEPS = """.func (.reg .u32 %r) steps(.reg .u32 %a, .reg .u32 %b)
{
  .reg .u32 %count, %t; .reg .pred %p;
  and.b32 %count, %b, 7;
again:
  setp.eq.u32 %p, %count, 0;
  @%p bra end;
  and.b32 %t, %a, 15; setp.eq.u32 %p, %t, 3;
  @%p bra early;
  mad.lo.u32 %a, %a, 5, 1; sub.u32 %count, %count, 1;
  bra again;
early:
  xor.b32 %r, %a, %b;
  ret;
end:
  mov.u32 %r, %a;
  ret;
}
"""


class State:
    def __init__(self, a, b, counters):
        self.values = {("w", i): (a + i * b) & M32 for i in range(WORDS)}
        self.values.update({("l", i): a * b + i & M64 for i in range(LONGS)})
        self.values.update(
            {("f", i): C.integer_to_float("f32", "s32", (a >> 8 * i) & 0xFFFF, "rn", False) for i in range(FLOATS)}
        )
        self.values.update({("p", i): (b >> i) & 1 for i in range(PREDICATES)})
        self.cells = [(b + i) & M32 for i in range(CELLS)]
        self.counters = counters

    def get(self, key):
        return self.values[key] if isinstance(key, tuple) else key

    def set(self, key, value):
        self.values[key] = value

    def digest(self):
        out = 0
        for i in range(WORDS):
            out = (out * 31 + self.values[("w", i)]) & M32
        for i in range(LONGS):
            out = (out * 31 + (self.values[("l", i)] ^ self.values[("l", i)] >> 32)) & M32
        for i in range(FLOATS):
            out = (out * 31 + C.float_to_integer("s32", "f32", self.values[("f", i)], "rzi", False)) & M32
        return out


def run(program, state, fuel):
    """One thread. Returns how many blocks it went through."""
    at, left = 0, fuel
    while at < len(program.blocks) and left:
        left -= 1
        items, predicate, negated, target, otherwise = program.blocks[at]
        for _, guard, effect in items:
            if not guard or state.get(("p", guard[0])) != guard[1]:
                effect(state)
        at = target if state.get(("p", predicate)) != negated else otherwise
    return fuel - left


def text_of(program):
    lines = [
        head(),
        STEPS,
        ".visible .entry test(.param .u64 a, .param .u64 b, .param .u64 d, .param .u64 e, .param .u64 counts)",
        "{",
        f"  .shared .align 4 .u32 counters[{COUNTERS}]; .local .align 4 .u32 cells[{CELLS}];",
        f"  .reg .u32 %w<{WORDS}>, %i, %a, %b, %t, %x, %fuel, %mine, %block, %n; .reg .u64 %l<{LONGS}>, %at, %y; .reg .f32 %f<{FLOATS}>; .reg .pred %p<{PREDICATES}>, %q;",
        "  mov.u32 %t, %tid.x; mov.u32 %block, %ctaid.x; mov.u32 %n, %ntid.x; mad.lo.u32 %i, %block, %n, %t; mov.u32 %mine, cells;",
        "  ld.param.u64 %at, [a]; mad.wide.u32 %at, %i, 4, %at; ld.global.u32 %a, [%at];",
        "  ld.param.u64 %at, [b]; mad.wide.u32 %at, %i, 4, %at; ld.global.u32 %b, [%at];",
        f"  setp.lt.u32 %q, %t, {COUNTERS}; mov.u32 %x, counters; mad.lo.u32 %x, %t, 4, %x;",
        "  @%q st.shared.u32 [%x], 0;",
        "  bar.sync 0;",
    ]
    lines += [f"  mad.lo.u32 %w{i}, %b, {i}, %a;" for i in range(WORDS)]
    lines += [f"  mul.wide.u32 %l{i}, %a, %b; add.u64 %l{i}, %l{i}, {i};" for i in range(LONGS)]
    lines += [f"  bfe.u32 %x, %a, {8 * i}, 16; cvt.rn.f32.s32 %f{i}, %x;" for i in range(FLOATS)]
    lines += [f"  and.b32 %x, %b, {1 << i}; setp.ne.u32 %p{i}, %x, 0;" for i in range(PREDICATES)]
    lines += [f"  add.u32 %x, %b, {i}; st.local.u32 [cells+{4 * i}], %x;" for i in range(CELLS)]
    lines.append("  and.b32 %fuel, %a, 31; add.u32 %fuel, %fuel, 1; mov.u32 %n, %fuel;")
    for index, (items, predicate, negated, target, otherwise) in enumerate(program.blocks):
        lines += [f"B{index}:", "  setp.eq.u32 %q, %fuel, 0;", "  @%q bra done;", "  sub.u32 %fuel, %fuel, 1;"]
        lines += [f"  {line}" for text, _, _ in items for line in text]
        lines.append(f"  @{'!' if negated else ''}%p{predicate} bra B{target};")
        if otherwise != index + 1:
            lines.append(f"  bra B{otherwise};")
    lines += ["done:", "  mov.u32 %x, 0;"]
    lines += [f"  mad.lo.u32 %x, %x, 31, %w{i};" for i in range(WORDS)]
    lines += [
        f"  shr.u64 %y, %l{i}, 32; xor.b64 %y, %y, %l{i}; cvt.u32.u64 %t, %y; mad.lo.u32 %x, %x, 31, %t;"
        for i in range(LONGS)
    ]
    lines += [f"  cvt.rzi.s32.f32 %t, %f{i}; mad.lo.u32 %x, %x, 31, %t;" for i in range(FLOATS)]
    lines += [
        "  ld.param.u64 %at, [d]; mad.wide.u32 %at, %i, 4, %at; st.global.u32 [%at], %x;",
        "  sub.u32 %x, %n, %fuel; ld.param.u64 %at, [e]; mad.wide.u32 %at, %i, 4, %at; st.global.u32 [%at], %x;",
        "  bar.sync 0;",
        f"  mov.u32 %t, %tid.x; setp.ge.u32 %q, %t, {COUNTERS};",
        "  @%q ret;",
        f"  mov.u32 %x, counters; mad.lo.u32 %x, %t, 4, %x; ld.shared.u32 %b, [%x]; mad.lo.u32 %i, %block, {COUNTERS}, %t;",
        "  ld.param.u64 %at, [counts]; mad.wide.u32 %at, %i, 4, %at; st.global.u32 [%at], %b;",
        "  ret;",
        "}",
    ]
    return "\n".join(lines)


def case(number):
    program = Program(number)
    random = Random(f"random input {number}")
    a, b = ([random.bits(32) for _ in range(THREADS)] for _ in range(2))
    counters = [[0] * COUNTERS for _ in range(GRID)]
    digests, lengths = [], []
    for i in range(THREADS):
        state = State(a[i], b[i], counters[i // BLOCK])
        lengths.append(run(program, state, (a[i] & 31) + 1))
        digests.append(state.digest())
    arrays = [
        Array("in", "a", "b32", a),
        Array("in", "b", "b32", b),
        Array("out", "d", "b32", digests),
        Array("out", "e", "u32", lengths),
        Array("out", "counts", "u32", sum(counters, [])),
    ]
    return Case(
        "random",
        f"program{number:02}",
        "a random program; d: a digest of its registers, e: the blocks it went through",
        arrays,
        text_of(program),
        [f"launch: grid {GRID} block {BLOCK}"],
    )


def cases():
    for number in range(PROGRAMS):
        yield case(number)
