# SPDX-License-Identifier: Apache-2.0
"""Conformance cases of the instructions that exchange values within a warp: shfl, vote, match, redux, activemask, elect,
bar.warp.sync, and the lane masks. Two warps, so that they cannot be mixed up."""
import struct

from . import integers as I
from .values import Random
from .writer import Array, Case, lane_kernel

WARPS, LANES = 2, 32
ALL = 0xFFFFFFFF


def by_warp(function, *columns):
    """Applies a function of 32-element lists to each warp's part of the columns and joins the results."""
    out = []
    for warp in range(WARPS):
        out += function(*(c[warp * LANES : (warp + 1) * LANES] for c in columns))
    return out


def case(mnemonic, name, title, arrays, body, registers=(), target=(70, 80)):
    text = lane_kernel(arrays, body, registers, target)
    return Case(mnemonic, name, title, arrays, text, [f"launch: grid 1 block {WARPS * LANES}"])


def words(name, count=WARPS * LANES, limit=None):
    random = Random(name)
    return [random.below(limit) if limit else random.bits(32) for _ in range(count)]


# ---- shfl ----


def source_lane(mode, lane, b, c):
    """The lane that is read and whether it is in range: PTX ISA 9.7.9.6, Semantics."""
    b, clamp, segment = b & 31, c & 31, c >> 8 & 31
    most = lane & segment | clamp & ~segment
    least = lane & segment
    if mode == "up":
        j = lane - b
        return j, j >= most
    if mode == "down":
        j = lane + b
        return j, j <= most
    j = lane ^ b if mode == "bfly" else least | b & ~segment & 31
    return j, j <= most


def shuffle(mode, values, amounts, clamps):
    out, inside = [], []
    for lane in range(LANES):
        j, ok = source_lane(mode, lane, amounts[lane], clamps[lane])
        out.append(values[j if ok else lane])
        inside.append(int(ok))
    return out, inside


def shuffles():
    for mode in ("up", "down", "bfly", "idx"):
        name = f"shfl.sync.{mode}.b32"
        clamp = 0 if mode == "up" else 31
        values = words(name)
        for title, suffix, amounts, clamps in (
            (
                "amounts of every size, whole warp",
                "",
                [(i * 7 + 3) % 40 for i in range(WARPS * LANES)],
                [clamp] * WARPS * LANES,
            ),
            (
                "segments of 8 lanes",
                ".segments",
                [i % 9 for i in range(WARPS * LANES)],
                [0x1800 | clamp] * WARPS * LANES,
            ),
            (
                "any amount, clamp and segment per lane",
                ".mixed",
                words(name + "b", limit=64),
                [c & 0x1F1F for c in words(name + "c")],
            ),
        ):
            d = by_warp(lambda v, b, c, m=mode: shuffle(m, v, b, c)[0], values, amounts, clamps)
            p = by_warp(lambda v, b, c, m=mode: shuffle(m, v, b, c)[1], values, amounts, clamps)
            arrays = [
                Array("in", "a", "b32", values),
                Array("in", "b", "u32", amounts),
                Array("in", "c", "u32", clamps),
                Array("out", "d", "b32", d),
                Array("out", "e", "u32", p),
                Array("out", "f", "b32", d),
            ]
            body = [f"{name} %d|%p, %a, %b, %c, -1;", "selp.u32 %e, 1, 0, %p;", f"{name} %f, %a, %b, %c, 0xffffffff;"]
            yield case(
                "shfl", name + suffix, title + "; e: whether the source lane was in range", arrays, body, ["pred %p"]
            )
        fixed = by_warp(lambda v, m=mode, c=clamp: shuffle(m, v, [5] * LANES, [c] * LANES)[0], values)
        own = by_warp(lambda v, m=mode, c=clamp: shuffle(m, v, [1] * LANES, [c] * LANES)[0], values)
        arrays = [
            Array(
                "inout", "a", "f32", ([0x3F800000 + (v >> 12) for v in values], [0x3F800000 + (v >> 12) for v in own])
            ),
            Array("out", "d", "f32", [0x3F800000 + (v >> 12) for v in fixed]),
        ]
        body = [f"{name} %d, %a, 5, {clamp}, -1;", f"{name} %a|_, %a, 1, {clamp}, -1;"]
        yield case(
            "shfl",
            name + ".constant",
            "constant operands, float registers, a destination that is the source",
            arrays,
            body,
        )
    yield from shuffles_in_branches()


def shuffles_in_branches():
    """Odd and even lanes shuffle apart, each with its own mask."""
    values = words("shfl branches")

    def expected(v):
        return [v[(lane + 2) % LANES] + 1 & ALL if lane % 2 else v[(lane + 4) % LANES] for lane in range(LANES)]

    arrays = [Array("in", "a", "b32", values), Array("out", "d", "b32", by_warp(expected, values))]
    body = [
        "mov.u32 %l, %laneid; and.b32 %x, %l, 1; setp.ne.u32 %p, %x, 0;",
        "@%p bra odd;",
        "add.u32 %x, %l, 4; shfl.sync.idx.b32 %d, %a, %x, 31, 0x55555555;",
        "bra.uni done;",
        "odd:",
        "add.u32 %x, %l, 2; shfl.sync.idx.b32 %d, %a, %x, 31, 0xaaaaaaaa;",
        "add.u32 %d, %d, 1;",
        "done:",
    ]
    yield case(
        "shfl",
        "shfl.sync.idx.b32.branches",
        "odd and even lanes apart, in divergent branches",
        arrays,
        body,
        ["u32 %l", "u32 %x", "pred %p"],
    )


# ---- vote, match, redux ----


def votes():
    a = words("vote", limit=4) + [0]
    a = [1] * LANES + a[:LANES]
    bits = lambda v: sum((x & 1) << i for i, x in enumerate(v))
    take = ["and.b32 %x, %a, 1; setp.ne.u32 %p, %x, 0;"]
    registers = ["u32 %x", "pred %p", "pred %q"]
    modes = {"all": lambda b: b == ALL, "any": lambda b: b != 0, "uni": lambda b: b in (0, ALL)}
    for mode, function in modes.items():
        for name in (f"vote.sync.{mode}.pred", f"vote.{mode}.sync.pred"):
            d = by_warp(lambda v, f=function: [int(f(bits(v)))] * LANES, a)
            e = by_warp(lambda v, f=function: [int(f(ALL & ~bits(v)))] * LANES, a)
            arrays = [Array("in", "a", "u32", a), Array("out", "d", "u32", d), Array("out", "e", "u32", e)]
            body = take + [
                f"{name} %q, %p, -1;",
                "selp.u32 %d, 1, 0, %q;",
                f"{name} %q, !%p, -1;",
                "selp.u32 %e, 1, 0, %q;",
            ]
            yield case("vote", name, "e: of the complement", arrays, body, registers)
    for name in ("vote.sync.ballot.b32", "vote.ballot.sync.b32"):
        d = by_warp(lambda v: [bits(v)] * LANES, a)
        e = by_warp(lambda v: [ALL & ~bits(v)] * LANES, a)
        arrays = [Array("in", "a", "u32", a), Array("out", "d", "b32", d), Array("out", "e", "b32", e)]
        yield case(
            "vote",
            name,
            "e: of the complement",
            arrays,
            take + [f"{name} %d, %p, -1;", f"{name} %e, !%p, 0xffffffff;"],
            registers,
        )
    arrays = [
        Array("in", "a", "u32", a),
        Array("out", "d", "b32", by_warp(lambda v: [bits(v) & 0xFF0 if 4 <= i < 12 else 0 for i in range(LANES)], a)),
    ]
    body = take + [
        "mov.u32 %d, 0; mov.u32 %x, %laneid; sub.u32 %x, %x, 4; setp.lt.u32 %q, %x, 8;",
        "@%q vote.sync.ballot.b32 %d, %p, 0xff0;",
    ]
    yield case("vote", "vote.sync.ballot.b32.some", "lanes 4 to 11 only", arrays, body, registers)
    yield from vote_groups(a, bits, take, registers)


# The membermask of the lane's group: eight lanes.
GROUP = "mov.u32 %x, %laneid; and.b32 %x, %x, 24; shl.b32 %m, 0xff, %x;"


def by_group(function, v):
    """Applies a function of a list of values and the number of the first lane to each group of eight lanes."""
    return [function(v[lane & 24 : (lane & 24) + 8], lane & 24) for lane in range(LANES)]


def vote_groups(a, bits, take, registers):
    a = [1] * 12 + a[12:]  # a whole group that agrees
    d = by_warp(lambda v: by_group(lambda g, first: bits(g) << first, v), a)
    arrays = [Array("in", "a", "u32", a), Array("out", "d", "b32", d)]
    ballot = "vote.sync.ballot.b32 %d, %p, %m;"
    registers = registers + ["b32 %m"]
    title = "groups of eight lanes, each with its membermask"
    yield case("vote", "vote.sync.ballot.b32.groups", title, arrays, take + [GROUP, ballot], registers)
    apart = [
        "mov.u32 %x, %laneid; add.u32 %x, %x, 5; and.b32 %x, %x, 15; setp.lt.u32 %q, %x, 8;",
        "@%q bra other;",
        ballot,
        "bra.uni done;",
        "other:",
        ballot,
        "done:",
    ]
    later = title + ", which come in parts"
    yield case("vote", "vote.sync.ballot.b32.groups.apart", later, arrays, take + [GROUP] + apart, registers)
    for mode, function in {"all": lambda b: b == 255, "any": lambda b: b != 0, "uni": lambda b: b in (0, 255)}.items():
        d = by_warp(lambda v, f=function: by_group(lambda g, first: int(f(bits(g))), v), a)
        arrays = [Array("in", "a", "u32", a), Array("out", "d", "u32", d)]
        body = take + [GROUP, f"vote.sync.{mode}.pred %p, %p, %m;", "selp.u32 %d, 1, 0, %p;"]
        yield case("vote", f"vote.sync.{mode}.pred.groups", title, arrays, body, registers)


def matches():
    small = [i * 5 % 7 for i in range(WARPS * LANES)]
    same = [9] * LANES + small[:LANES]
    for bits in (32, 64):
        scale = 0x100000001 if bits == 64 else 1
        values = [v * scale for v in small]
        if bits == 64:
            values[3] ^= 1 << 63
        groups = lambda v: [sum((y == x) << i for i, y in enumerate(v)) for x in v]
        arrays = [Array("in", "a", f"b{bits}", values), Array("out", "d", "b32", by_warp(groups, values))]
        yield case(
            "match",
            f"match.any.sync.b{bits}",
            "the lanes with the same value",
            arrays,
            [f"match.any.sync.b{bits} %d, %a, -1;"],
        )
        values = [v * scale for v in same]
        alike = lambda v: len(set(v)) == 1
        arrays = [
            Array("in", "a", f"b{bits}", values),
            Array("out", "d", "b32", by_warp(lambda v: [ALL if alike(v) else 0] * LANES, values)),
            Array("out", "e", "u32", by_warp(lambda v: [int(alike(v))] * LANES, values)),
        ]
        body = [f"match.all.sync.b{bits} %d|%p, %a, -1;", "selp.u32 %e, 1, 0, %p;"]
        yield case("match", f"match.all.sync.b{bits}", "all lanes if all are alike, else 0", arrays, body, ["pred %p"])
    title = "groups of eight lanes, each with its membermask"
    values = [3] * 11 + small[11:]
    same = lambda v: by_group(lambda g, first: [sum((y == x) << i for i, y in enumerate(g)) << first for x in g], v)
    arrays = [
        Array("in", "a", "b32", values),
        Array("out", "d", "b32", by_warp(lambda v: [g[lane & 7] for lane, g in enumerate(same(v))], values)),
        Array("out", "e", "b32", by_warp(lambda v: by_group(lambda g, first: alike(g) * 255 << first, v), values)),
    ]
    body = [GROUP, "match.any.sync.b32 %d, %a, %m;", "match.all.sync.b32 %e, %a, %m;"]
    yield case("match", "match.sync.b32.groups", title, arrays, body, ["u32 %x", "b32 %m"])


def reductions():
    values = words("redux.groups", limit=1000)
    arrays = [
        Array("in", "a", "u32", values),
        Array("out", "d", "u32", by_warp(lambda v: by_group(lambda g, first: sum(g), v), values)),
        Array("out", "e", "u32", by_warp(lambda v: by_group(lambda g, first: max(g), v), values)),
    ]
    body = [GROUP, "redux.sync.add.u32 %d, %a, %m;", "redux.sync.max.u32 %e, %a, %m;"]
    title = "groups of eight lanes, each with its membermask"
    yield case("redux", "redux.sync.u32.groups", title, arrays, body, ["u32 %x", "b32 %m"])
    forms = (
        [("add", k) for k in ("u32", "s32")]
        + [("min", k) for k in ("u32", "s32")]
        + [("max", k) for k in ("u32", "s32")]
    )
    forms += [(o, "b32") for o in ("and", "or", "xor")]
    for operation, kind in forms:
        name = f"redux.sync.{operation}.{kind}"
        values = words(name)
        if operation in ("and", "or"):
            values = [v | 0x0F0F0000 if operation == "and" else v & 0x00FF00FF for v in values]

        def reduce_(v, o=operation, k=kind):
            if o == "add":
                return sum(v) & ALL
            if o in ("min", "max"):
                return (min if o == "min" else max)(v, key=lambda x: I.as_type(x, k))
            out = v[0]
            for x in v[1:]:
                out = {"and": out & x, "or": out | x, "xor": out ^ x}[o]
            return out

        some = [i for i in range(LANES) if i % 3 == 1]
        arrays = [
            Array("in", "a", kind, values),
            Array("out", "d", kind, by_warp(lambda v, r=reduce_: [r(v)] * LANES, values)),
            Array(
                "out",
                "e",
                kind,
                by_warp(
                    lambda v, r=reduce_: [r([v[i] for i in some]) if lane in some else 0 for lane in range(LANES)],
                    values,
                ),
            ),
        ]
        mask = sum(1 << i for i in some)
        body = [
            f"{name} %d, %a, -1;",
            "mov.b32 %e, 0; mov.u32 %x, %laneid; rem.u32 %x, %x, 3; setp.eq.u32 %p, %x, 1;",
            f"@%p {name} %e, %a, 0x{mask:x};",
        ]
        yield case("redux", name, "over the warp; e: over every third lane", arrays, body, ["u32 %x", "pred %p"])


def is_nan(word):
    return word & 0x7FFFFFFF > 0x7F800000


def reduced_floats(words, operation, absolute, nan):
    """-0 is below +0; a NaN counts with .NaN, or if there is nothing else (PTX ISA, redux.sync)."""
    words = [word & 0x7FFFFFFF if absolute else word for word in words]
    numbers = [word for word in words if not is_nan(word)]
    if not numbers or (nan and len(numbers) < len(words)):
        return 0x7FFFFFFF
    return operation(numbers, key=lambda word: (struct.unpack("<f", struct.pack("<I", word))[0], word != 0x80000000))


def redux_floats():
    """A warp with numbers, infinities, zeros of both signs and two NaNs, of which e sees none; one of zeros, and NaNs where e looks."""
    for operation in (min, max):
        for flags in ("", ".abs", ".NaN", ".abs.NaN"):
            name = f"redux.sync.{operation.__name__}{flags}.f32"
            values = [value & 0xBFFFFFFF for value in words(name)]  # exponents below 128: no NaN
            values[:8] = [0x7F800000, 0xFF800000, 0x7FC00001, 0xFF800001, 0, 0x80000000, 1, 0x80000001]
            some = [i for i in range(LANES) if i % 3 == 1]
            values[LANES:] = [0xFFC00000 + i if i in some else (i & 1) << 31 for i in range(LANES)]

            def reduce_(v, o=operation, f=flags):
                return reduced_floats(v, o, "abs" in f, "NaN" in f)

            def alone(v, r=reduce_):
                return [r([v[lane]]) for lane in range(LANES)]

            def among(v, r=reduce_):
                return [r([v[i] for i in some]) if lane in some else 0 for lane in range(LANES)]

            arrays = [
                Array("in", "a", "b32", values),
                Array("out", "d", "b32", by_warp(lambda v, r=reduce_: [r(v)] * LANES, values)),
                Array("out", "e", "b32", by_warp(among, values)),
                Array("out", "f", "b32", by_warp(alone, values)),
            ]
            mask = sum(1 << i for i in some)
            body = [
                f"{name} %d, %a, -1;",
                "mov.b32 %e, 0; mov.u32 %x, %laneid; mov.u32 %y, 1; shl.b32 %y, %y, %x; rem.u32 %x, %x, 3; setp.eq.u32 %p, %x, 1;",
                f"@%p {name} %e, %a, 0x{mask:x};",
                f"{name} %f, %a, %y;",
            ]
            title = "over the warp; e: over every third lane; f: over each lane by itself"
            yield case("redux", name, title, arrays, body, ["u32 %x", "u32 %y", "pred %p"], target=(88, "100a"))


# ---- masks ----


def masks():
    lanes = list(range(LANES))
    zeros = Array("in", "a", "u32", [0] * WARPS * LANES)
    full = Array("out", "d", "b32", [ALL] * WARPS * LANES)
    branch = Array("out", "e", "b32", [sum(1 << k for k in lanes if (k < 11) == (i < 11)) for i in lanes] * WARPS)
    body = [
        "activemask.b32 %d;",
        "mov.u32 %x, %laneid; setp.lt.u32 %p, %x, 11;",
        "@%p bra low;",
        "activemask.b32 %e;",
        "bra.uni done;",
        "low:",
        "activemask.b32 %e;",
        "done:",
        "bar.warp.sync -1;",
        "add.u32 %d, %d, %a;",
    ]
    yield case(
        "activemask",
        "activemask.b32",
        "all lanes, and in a divergent branch",
        [zeros, full, branch],
        body,
        ["u32 %x", "pred %p"],
    )
    for name, function in (
        ("eq", lambda i: 1 << i),
        ("lt", lambda i: (1 << i) - 1),
        ("le", lambda i: (2 << i) - 1),
        ("gt", lambda i: ALL & ~((2 << i) - 1)),
        ("ge", lambda i: ALL & ~((1 << i) - 1)),
    ):
        out = Array("out", "d", "u32", [function(i) for i in lanes] * WARPS)
        yield case("mov", f"mov.u32.lanemask_{name}", f"%lanemask_{name}", [out], [f"mov.u32 %d, %lanemask_{name};"])
    elected = Array("out", "d", "u32", [0 | (int(i == 0)) << 8 for i in lanes] * WARPS)
    body = ["elect.sync %d|%p, 0xffffffff;", "@%p or.b32 %d, %d, 256;"]
    yield case("elect", "elect.sync", "lane 0 leads a whole warp", [elected], body, ["pred %p"], target=(80, 90))
    elected = Array("out", "d", "u32", [(i & 24) | int(i % 8 == 0) << 8 for i in lanes] * WARPS)
    body = [GROUP, "elect.sync %d|%p, %m;", "@%p or.b32 %d, %d, 256;"]
    registers = ["pred %p", "u32 %x", "b32 %m"]
    yield case("elect", "elect.sync.groups", "a lane of each eight leads", [elected], body, registers, target=(80, 90))


def warp_barrier():
    """Lanes pass values through shared memory between warp barriers, in a divergent loop too."""
    values = words("bar.warp.sync", limit=1000)

    def expected(v):
        for step in (1, 2, 4, 8, 16):
            v = [v[i] + v[(i + step) % LANES] for i in range(LANES)]
        return v

    arrays = [Array("in", "a", "u32", values), Array("out", "d", "u32", by_warp(expected, values))]
    body = [
        ".shared .u32 area[64];",
        "mov.u64 %base, area; mul.wide.u32 %off, %i, 4; add.u64 %own, %base, %off;",
        "mov.u32 %d, %a; mov.u32 %s, 1;",
        "loop:",
        "st.shared.u32 [%own], %d;",
        "bar.warp.sync 0xffffffff;",
        "add.u32 %x, %i, %s; and.b32 %x, %x, 31; and.b32 %y, %i, 32; or.b32 %x, %x, %y;",
        "mul.wide.u32 %off, %x, 4; add.u64 %off, %base, %off; ld.shared.u32 %x, [%off];",
        "bar.warp.sync -1;",
        "add.u32 %d, %d, %x;",
        "shl.b32 %s, %s, 1; setp.lt.u32 %p, %s, 32;",
        "@%p bra loop;",
    ]
    yield case(
        "bar",
        "bar.warp.sync",
        "a sum over the warp through shared memory",
        arrays,
        body,
        ["u64 %base", "u64 %off", "u64 %own", "u32 %s", "u32 %x", "u32 %y", "pred %p"],
    )


def cases():
    for group in (shuffles, votes, matches, reductions, redux_floats, masks, warp_barrier):
        yield from group()
