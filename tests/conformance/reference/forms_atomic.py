# SPDX-License-Identifier: Apache-2.0
"""Conformance cases of atom and red. 64 lanes, twice:

own     every lane has a word of its own: the old value is returned and the new one is in memory;
shared  eight lanes with the same operand hit one word. The order among them is free, but being alike they return the same
        collection of old values in every order: the sum of these (as integers) and the last word are checked.
"""
from . import arithmetic as A
from . import integers as I
from .formats import ANY_NAN, FORMATS, SKIP
from .values import PACKED, Random, bits_of, edges, random_value
from .writer import Array, Case, head, memory_kind, register_kind

THREADS, GROUP = 64, 8


def combine(operation, kind, old, operand, compare=0):
    bits = bits_of(kind)
    if operation == "add":
        return add(kind, old, operand)
    if operation in ("min", "max"):
        return (min if operation == "min" else max)(old, operand, key=lambda v: I.as_type(v, kind))
    return {
        "and": old & operand,
        "or": old | operand,
        "xor": old ^ operand,
        "exch": operand,
        "inc": 0 if old >= operand else old + 1,
        "dec": operand if old == 0 or old > operand else old - 1,
        "cas": operand if old == compare else old,
    }[operation] & I.mask(bits)


def add(kind, old, operand):
    if kind in PACKED:
        low, high = (add(PACKED[kind], old >> s & 0xFFFF, operand >> s & 0xFFFF) for s in (0, 16))
        return ANY_NAN if ANY_NAN in (low, high) else low | high << 16
    if kind in FORMATS:
        return A.add(FORMATS[kind], old, operand)
    return (old + operand) & I.mask(bits_of(kind))


def plain(kind, bits):
    """Neither NaN nor subnormal: whether those are kept differs between memories."""
    if kind in PACKED:
        return all(plain(PACKED[kind], bits >> s & 0xFFFF) for s in (0, 16))
    if kind not in FORMATS:
        return True
    n = A.unpack(FORMATS[kind], bits)
    return n.kind == "finite" and (n.zero or n.size >= A.smallest_normal(FORMATS[kind]))


def operands(name, kind, operation):
    """Rows of (old, operand, compare)."""
    random = Random(name)
    pool = [v for v in edges(kind) if plain(kind, v)]
    out = []
    while len(out) < THREADS:
        old = random.choose(pool) if random.below(2) else random_value(kind, random)
        operand = random.choose(pool) if random.below(2) else random_value(kind, random)
        if operation in ("inc", "dec") and random.below(3):
            operand = random.choose([old, (old + 1) & I.mask(32), 3, 7])
        compare = old if random.below(2) else operand
        result = combine(operation, kind, old, operand, compare)
        if plain(kind, old) and plain(kind, operand) and result not in (ANY_NAN, SKIP) and plain(kind, result):
            out.append((old, operand, compare))
    return out


def repeat(operation, kind, old, operand, compare):
    """GROUP times the same: the sum of the old values, and the last word. None if a float leaves the plain numbers."""
    total = 0
    for _ in range(GROUP):
        total += old
        old = combine(operation, kind, old, operand, compare)
        if old in (ANY_NAN, SKIP) or not plain(kind, old):
            return None
    return total & I.mask(64), old


def groups(name, kind, operation):
    out = []
    for old, operand, compare in operands(name + " shared", kind, operation) * 2:
        result = repeat(operation, kind, old, operand, compare) if len(out) < THREADS // GROUP else None
        if result:
            out.append((old, operand, compare, *result))
    assert len(out) == THREADS // GROUP
    return out


def instruction(opcode, operation, returns, where):
    values = "%c, %b" if operation == "cas" else "%b"
    return f"{opcode} %d, [{where}], {values};" if returns else f"{opcode} [{where}], {values};"


def lines(opcode, operation, kind, space, returns):
    """Own words first, then shared ones. In shared memory the words are brought in and out around the instruction."""
    size, memory, register = bits_of(kind) // 8, memory_kind(kind), register_kind(kind)
    in_shared = space == "shared"
    out = [f".reg .u32 %i, %g; .reg .u64 %at, %where, %wide; .reg .{register} %b, %c, %d, %w; .reg .pred %first;"]
    if in_shared:
        out.append(f".shared .align 8 .b8 area[{THREADS * size}];")
    out.append("mov.u32 %i, %tid.x; shr.u32 %g, %i, 3; and.b32 %g, %g, 7;")
    for suffix, index in (("", "%i"), ("2", "%g")):
        out += [f"ld.param.u64 %at, [b{suffix}]; mad.wide.u32 %at, {index}, {size}, %at; ld.global.{memory} %b, [%at];"]
        if operation == "cas":
            out += [
                f"ld.param.u64 %at, [c{suffix}]; mad.wide.u32 %at, {index}, {size}, %at; ld.global.{memory} %c, [%at];"
            ]
        out += [f"ld.param.u64 %at, [m{suffix}]; mad.wide.u32 %at, {index}, {size}, %at;"]
        if in_shared:
            out += [
                "bar.sync 0;",
                f"mov.u64 %where, area; mad.wide.u32 %where, {index}, {size}, %where;",
                f"ld.global.{memory} %w, [%at]; st.shared.{memory} [%where], %w;",
                "bar.sync 0;",
            ]
        out.append(instruction(opcode, operation, returns, "%where" if in_shared else "%at"))
        if in_shared:
            out += ["bar.sync 0;", f"ld.shared.{memory} %w, [%where]; st.global.{memory} [%at], %w;"]
        if returns:
            out += give_back(suffix, size, memory)
    return out


def give_back(suffix, size, memory):
    if not suffix:
        return [f"ld.param.u64 %at, [d]; mad.wide.u32 %at, %i, {size}, %at; st.global.{memory} [%at], %d;"]
    widen = {8: "mov.b64 %wide, %d;", 4: "cvt.u64.u32 %wide, %k;", 2: "cvt.u64.u16 %wide, %h;"}[size]
    bring = {8: "", 4: ".reg .u32 %k; mov.b32 %k, %d;", 2: ".reg .u16 %h; mov.b16 %h, %d;"}[size]
    return [bring, widen, "ld.param.u64 %at, [s]; mad.wide.u32 %at, %g, 8, %at; red.global.add.u64 [%at], %wide;"]


def case(opcode, operation, kind, space, target=(70, 80)):
    returns = opcode.startswith("atom")
    rows, shared = operands(opcode, kind, operation), groups(opcode, kind, operation)
    arrays = [
        Array("inout", "m", kind, ([r[0] for r in rows], [combine(operation, kind, *r) for r in rows])),
        Array("in", "b", kind, [r[1] for r in rows]),
    ]
    if operation == "cas":
        arrays.append(Array("in", "c", kind, [r[2] for r in rows]))
    arrays += [
        Array("inout", "m2", kind, ([g[0] for g in shared], [g[4] for g in shared])),
        Array("in", "b2", kind, [g[1] for g in shared]),
    ]
    if operation == "cas":
        arrays.append(Array("in", "c2", kind, [g[2] for g in shared]))
    if returns:
        arrays += [
            Array("out", "d", kind, [r[0] for r in rows]),
            Array("inout", "s", "u64", ([0] * len(shared), [g[3] for g in shared])),
        ]
    params = ", ".join(f".param .u64 {a.name}" for a in arrays)
    body = "\n".join(f"  {line}" for line in lines(opcode, operation, kind, space, returns) if line)
    text = f"{head(target)}.visible .entry test({params})\n{{\n{body}\n  ret;\n}}"
    title = f"{THREADS} lanes on own words, then {GROUP} lanes on each word; s sums what they got"
    return Case(opcode.split(".")[0], opcode, title, arrays, text, [f"launch: grid 1 block {THREADS}"])


def forms():
    """(operation, type, versions after the type's name, target)"""
    for kind in ("u32", "s32", "u64", "f32", "f64"):
        yield "add", f"add.{kind}", kind, (70, 80)
    for kind in ("f16x2", "f16"):
        yield "add", f"add.noftz.{kind}", kind, (70, 80)
    for kind in ("bf16x2", "bf16"):
        yield "add", f"add.noftz.{kind}", kind, (78, 90)
    for operation in ("min", "max"):
        for kind in ("u32", "s32", "u64", "s64"):
            yield operation, f"{operation}.{kind}", kind, (70, 80)
    for operation in ("and", "or", "xor", "exch", "cas"):
        for kind in ("b32", "b64"):
            yield operation, f"{operation}.{kind}", kind, (70, 80)
    for operation in ("inc", "dec"):
        yield operation, f"{operation}.u32", "u32", (70, 80)
    yield "cas", "cas.b16", "b16", (70, 80)


SCOPES = (
    "relaxed.gpu.global",
    "acquire.cta.global",
    "release.gpu.global",
    "acq_rel.sys.global",
    "global.sys",
    "global.cta",
    "relaxed.cta.shared",
    "acq_rel.gpu",
)


def cases():
    for operation, tail, kind, target in forms():
        for space, dot in (("global", ".global"), ("shared", ".shared"), ("generic", "")):
            yield case(f"atom{dot}.{tail}", operation, kind, space, target)
            if operation not in ("exch", "cas"):
                yield case(f"red{dot}.{tail}", operation, kind, space, target)
    for scope in SCOPES:
        space = "shared" if "shared" in scope else "global" if "global" in scope else "generic"
        for operation, tail, kind in (
            ("add", "add.u32", "u32"),
            ("cas", "cas.b64", "b64"),
            ("max", "max.s32", "s32"),
            ("exch", "exch.b32", "b32"),
            ("add", "add.f64", "f64"),
            ("or", "or.b32", "b32"),
            ("inc", "inc.u32", "u32"),
        ):
            yield case(f"atom.{scope}.{tail}", operation, kind, space)
        if "acq" not in scope:
            yield case(f"red.{scope}.and.b32", "and", "b32", space)
    for operation, tail, kind in (
        ("min", "min.s32", "s32"),
        ("cas", "cas.b32", "b32"),
        ("and", "and.b32", "b32"),
        ("xor", "xor.b32", "b32"),
        ("dec", "dec.u32", "u32"),
    ):
        yield case(f"atom.global.sys.{tail}", operation, kind, "global")
    for bits in (32, 64):
        yield case(f"atom.relaxed.global.cas.b{bits}", "cas", f"b{bits}", "global")
    # the order of words that older compilers print: operation, ordering, scope, type
    for middle in ("acq_rel.cta", "acquire.cta", "relaxed.cta", "relaxed.gpu", "relaxed.sys", "release.gpu"):
        yield case(f"atom.add.{middle}.u32", "add", "u32", "generic")
    for middle in ("acq_rel.cta", "relaxed.cta"):
        yield case(f"atom.add.{middle}.u64", "add", "u64", "generic")
    yield case("atom.or.acq_rel.cta.b32", "or", "b32", "generic")
    yield case("red.and.release.cta.b32", "and", "b32", "generic")
