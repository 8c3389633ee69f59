# SPDX-License-Identifier: Apache-2.0
"""Conformance cases of the integer, logic and shift instructions."""
from . import integers as I
from .values import integer_edges
from .writer import lanes

SIZES = (16, 32, 64)
KINDS = [f"{s}{n}" for n in SIZES for s in "us"]
SHIFTS = [0, 1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]
POSITIONS = [0, 1, 5, 8, 16, 31, 32, 33, 40, 63, 64, 100, 255, 256, 257, 0xFFFFFFFF]
PAIRS = ("u16x2", "s16x2")


def wrap(kind, value):
    return value & I.mask(I.width(kind))


def two(opcode, kind, function, title, **options):
    number = options.pop("number", -7)
    text = str(number if kind[0] in "sb" else number & I.mask(I.width(kind)))
    return lanes(opcode, kind, [kind, kind], function, title, immediate=(text, wrap(kind, number)), **options)


def halves(function, kind):
    """A 16-bit function on both halves."""

    def both(*operands):
        fields = [I.parts(v, 2, 16, kind) for v in operands]
        return I.join([function(*pair) for pair in zip(*fields)], 16)

    return both


def add_and_subtract():
    for kind in KINDS:
        yield two(f"add.{kind}", kind, lambda a, b, k=kind: wrap(k, a + b), f"d = a + b modulo 2^{I.width(kind)}")
        yield two(f"sub.{kind}", kind, lambda a, b, k=kind: wrap(k, a - b), f"d = a - b modulo 2^{I.width(kind)}")
    for name, sign in (("add", 1), ("sub", -1)):
        yield two(
            f"{name}.sat.s32",
            "s32",
            lambda a, b, s=sign: wrap("s32", I.saturate(I.signed(a, 32) + s * I.signed(b, 32), "s32")),
            "limited to the least and the largest s32",
        )
    for kind in PAIRS:
        yield lanes(
            f"add.{kind}",
            kind,
            [kind, kind],
            halves(lambda a, b: a + b, kind),
            "both halves, no carry between them",
            target=(80, 90),
        )


def multiply():
    for kind in KINDS:
        for mode in ("lo", "hi", "wide"):
            if mode == "wide" and I.width(kind) == 64:
                continue
            dtype = f"{kind[0]}{I.width(kind) * 2}" if mode == "wide" else kind
            number = -3 if kind[0] == "s" else 0xABCD
            yield lanes(
                f"mul.{mode}.{kind}",
                dtype,
                [kind, kind],
                lambda a, b, k=kind, m=mode: I.multiply(k, m, a, b),
                "the product's low half, high half or all of it",
                immediate=(str(number), wrap(kind, number)),
            )
            yield lanes(
                f"mad.{mode}.{kind}",
                dtype,
                [kind, kind, dtype],
                lambda a, b, c, k=kind, m=mode, d=dtype: wrap(d, I.multiply(k, m, a, b) + c),
                "the product's part plus c",
                immediate=("100", 100),
            )
    yield lanes(
        "mad.hi.sat.s32",
        "s32",
        ["s32"] * 3,
        lambda a, b, c: I.mad_sat(I.multiply("s32", "hi", a, b), c),
        "the addition saturates",
    )
    small = [v & 0xFFFFFF for v in integer_edges(24)] + [0xFFFFFFFF, 0xFF800000]
    for kind in ("u32", "s32"):
        for mode in ("lo", "hi"):
            yield lanes(
                f"mul24.{mode}.{kind}",
                kind,
                [kind] * 2,
                lambda a, b, k=kind, m=mode: I.multiply24(k, m, a, b),
                "product of the low 24 bits",
                edge_lists=[small, small],
                keep=lambda a, b, k=kind: fits24(k, a, b),
            )
            yield lanes(
                f"mad24.{mode}.{kind}",
                kind,
                [kind] * 3,
                lambda a, b, c, k=kind, m=mode: wrap(k, I.multiply24(k, m, a, b) + c),
                "product of the low 24 bits plus c",
                edge_lists=[small, small, integer_edges(32)],
                keep=lambda a, b, c, k=kind: fits24(k, a, b),
            )


def fits24(kind, a, b):
    """The manual speaks of 24-bit values held in 32 bits: others are left out."""
    if kind == "u32":
        return a < 1 << 24 and b < 1 << 24
    return all(-(1 << 23) <= I.signed(v, 32) < 1 << 23 for v in (a, b))


def divide():
    for kind in KINDS:
        bits = I.width(kind)
        number = -7 if kind[0] == "s" else 7
        least_by_minus_one = lambda a, b, k=kind, n=bits: not (k[0] == "s" and a == 1 << (n - 1) and b == I.mask(n))
        for name, function in (("div", I.divide), ("rem", I.remainder)):
            yield lanes(
                f"{name}.{kind}",
                kind,
                [kind] * 2,
                lambda a, b, k=kind, f=function: f(k, a, b),
                "rounds towards zero; a zero divisor and the least number by -1 are not defined",
                immediate=(str(number), wrap(kind, number)),
                keep=least_by_minus_one,
            )


def one_operand():
    for bits in SIZES:
        kind = f"s{bits}"
        yield lanes(
            f"abs.{kind}",
            kind,
            [kind],
            lambda a, k=kind: wrap(k, abs(I.as_type(a, k))),
            "the least number has no positive: it stays",
        )
        yield lanes(f"neg.{kind}", kind, [kind], lambda a, k=kind: wrap(k, -a), "the least number stays")
    for bits in (32, 64):
        kind = f"b{bits}"
        yield lanes(f"popc.{kind}", "u32", [kind], lambda a: bin(a).count("1"), "how many ones")
        yield lanes(f"clz.{kind}", "u32", [kind], lambda a, n=bits: n - a.bit_length(), "leading zeros")
        yield lanes(f"brev.{kind}", kind, [kind], lambda a, n=bits: I.reverse(a, n), "bits in reverse order")
        for sign in "us":
            for amount in ("", ".shiftamt"):
                yield lanes(
                    f"bfind{amount}.{sign}{bits}",
                    "u32",
                    [f"{sign}{bits}"],
                    lambda a, k=f"{sign}{bits}", s=amount: I.find_leading(k, a, s),
                    "the highest bit that is not the sign, or 0xffffffff",
                )
    for bits in SIZES:
        kind = f"b{bits}"
        yield lanes(f"not.{kind}", kind, [kind], lambda a, k=kind: wrap(k, ~a), "every bit inverted")
        yield lanes(f"cnot.{kind}", kind, [kind], lambda a: int(a == 0), "1 for zero, else 0")


def min_and_max():
    for kind in KINDS:
        for name, function in (("min", min), ("max", max)):
            yield two(
                f"{name}.{kind}",
                kind,
                lambda a, b, k=kind, f=function: wrap(k, f(I.as_type(a, k), I.as_type(b, k))),
                "signed and unsigned differ",
                number=5,
            )
    for name, function in (("min", min), ("max", max)):
        for order in (f"{name}.relu.s32", f"{name}.s32.relu"):
            yield lanes(
                order,
                "s32",
                ["s32"] * 2,
                lambda a, b, f=function: max(0, f(I.signed(a, 32), I.signed(b, 32))),
                "negative becomes 0",
                target=(80, 90),
            )
        for order in (f"{name}.relu.s16x2", f"{name}.s16x2.relu"):
            yield lanes(
                order,
                "s16x2",
                ["s16x2"] * 2,
                halves(lambda a, b, f=function: max(0, f(a, b)), "s16x2"),
                "negative halves become 0",
                target=(80, 90),
            )
        for kind in PAIRS:
            yield lanes(f"{name}.{kind}", kind, [kind] * 2, halves(function, kind), "both halves", target=(80, 90))


def logic():
    for bits in SIZES:
        kind = f"b{bits}"
        for name, function in (("and", lambda a, b: a & b), ("or", lambda a, b: a | b), ("xor", lambda a, b: a ^ b)):
            yield two(f"{name}.{kind}", kind, function, "bit by bit", number=-256)
    for table in (0x00, 0xFF, 0x80, 0xFE, 0x96, 0xE8, 0xCA, 0x1B, 0x6A):
        yield lanes(
            "lop3.b32",
            "b32",
            ["b32"] * 3,
            lambda a, b, c, t=table: I.look_up(t, a, b, c),
            f"table 0x{table:02x}",
            name=f"lop3.b32.{table:02x}",
            body=[f"lop3.b32 %d, %a, %b, %c, 0x{table:x};"],
            count=32,
        )


def shifts():
    for bits in SIZES:
        values = integer_edges(bits)
        yield lanes(
            f"shl.b{bits}",
            f"b{bits}",
            [f"b{bits}", "u32"],
            lambda a, b, n=bits: I.shift_left(n, a, b),
            "amounts beyond the width give 0",
            edge_lists=[values, SHIFTS],
            immediate=("5", 5),
        )
        for sign in "bus":
            kind = f"{sign}{bits}"
            yield lanes(
                f"shr.{kind}",
                kind,
                [kind, "u32"],
                lambda a, b, k=kind: I.shift_right(k, a, b),
                "amounts beyond the width give 0, or all sign bits",
                edge_lists=[values, SHIFTS],
                immediate=("9", 9),
            )
    for direction in "lr":
        for mode in ("clamp", "wrap"):
            yield lanes(
                f"shf.{direction}.{mode}.b32",
                "b32",
                ["b32", "b32", "u32"],
                lambda a, b, c, d=direction, m=mode: I.funnel(d, m, a, b, c),
                "b is the high half; amounts are limited to 32 or taken modulo 32",
                edge_lists=[integer_edges(32), integer_edges(32), SHIFTS],
                immediate=("13", 13),
            )


def fields():
    for bits in (32, 64):
        values = integer_edges(bits)
        for sign in "us":
            kind = f"{sign}{bits}"
            yield lanes(
                f"bfe.{kind}",
                kind,
                [kind, "u32", "u32"],
                lambda a, b, c, k=kind: I.extract_field(k, a, b, c),
                "position and length are taken modulo 256",
                edge_lists=[values, POSITIONS, POSITIONS],
                immediate=("11", 11),
            )
        yield lanes(
            f"bfi.b{bits}",
            f"b{bits}",
            [f"b{bits}", f"b{bits}", "u32", "u32"],
            lambda a, b, c, d, n=bits: I.insert_field(n, a, b, c, d),
            "position and length are taken modulo 256",
            edge_lists=[values, values, POSITIONS, POSITIONS],
            immediate=("9", 9),
        )
    for kind in ("u32", "s32"):
        for mode in ("clamp", "wrap"):
            yield lanes(
                f"szext.{mode}.{kind}",
                kind,
                [kind, "u32"],
                lambda a, b, k=kind, m=mode: I.extend(k, m, a, b),
                "the low b bits, extended",
                edge_lists=[integer_edges(32), SHIFTS],
                target=(76, 80),
            )
    for mode in ("clamp", "wrap"):
        yield lanes(
            f"bmsk.{mode}.b32",
            "b32",
            ["u32", "u32"],
            lambda a, b, m=mode: I.bit_mask(m, a, b),
            "b ones from position a up",
            edge_lists=[SHIFTS, SHIFTS],
            target=(76, 80),
            immediate=("3", 3),
        )
    bases = list(range(32))
    offsets = [0, 1, 2, 3, 8, 31, 32, I.mask(32), I.mask(32) - 1, I.mask(32) - 6, I.mask(32) - 30]
    yield lanes(
        "fns.b32",
        "b32",
        ["b32", "u32", "s32"],
        lambda a, b, c: I.nth_set(a, b, c),
        "the n-th one from a position",
        edge_lists=[integer_edges(32), bases, offsets],
        keep=lambda a, b, c: b < 32 and abs(I.signed(c, 32)) <= 64,
    )


def bytes_and_dots():
    words = [0, 0x03020100, 0x7F80FF01, 0xFEDCBA98, 0x80808080, 0x01234567, 0xFFFFFFFF]
    controls = [0x3210, 0x7654, 0x0123, 0xFEDC, 0x8888, 0x5410, 0x7632, 0xFFFF, 0x0, 0xBA98, 0x12345670, 0xFFFF3210]
    yield lanes(
        "prmt.b32",
        "b32",
        ["b32"] * 3,
        lambda a, b, c: I.permute("", a, b, c),
        "four bytes out of eight; bit 3 of a selector replicates the sign",
        edge_lists=[words, words[::-1], controls],
        immediate=("0x4140", 0x4140),
    )
    for mode in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16"):
        yield lanes(
            f"prmt.b32.{mode}",
            "b32",
            ["b32"] * 3,
            lambda a, b, c, m=mode: I.permute(m, a, b, c),
            "bits 0 and 1 of c choose",
            edge_lists=[words, words[::-1], [0, 1, 2, 3, 4, 7, 0xFFFFFFFE]],
            count=32,
        )
    for atype in ("u32", "s32"):
        for btype in ("u32", "s32"):
            ctype = "u32" if atype == btype == "u32" else "s32"
            kinds = [atype, btype, ctype]
            yield lanes(
                f"dp4a.{atype}.{btype}",
                ctype,
                kinds,
                lambda a, b, c, x=atype, y=btype: I.dot4(x, y, a, b, c),
                "c plus four products of bytes",
                edge_lists=[words, words, integer_edges(32)],
            )
            for mode in ("lo", "hi"):
                yield lanes(
                    f"dp2a.{mode}.{atype}.{btype}",
                    ctype,
                    kinds,
                    lambda a, b, c, x=atype, y=btype, m=mode: I.dot2(m, x, y, a, b, c),
                    "c plus two products of a half word and a byte",
                    edge_lists=[words, words, integer_edges(32)],
                )
    for kind in KINDS:
        yield lanes(
            f"sad.{kind}", kind, [kind] * 3, lambda a, b, c, k=kind: I.sum_of_differences(k, a, b, c), "c + |a - b|"
        )


def video():
    words = [0, 0x03020100, 0x7F80FF01, 0xFEDCBA98, 0x80808080, 0x01234567, 0xFFFFFFFF, 0x7F7F7F7F]
    forms = [
        ("vabsdiff", n, t, sat, add) for n in (2, 4) for t in ("u32", "s32") for sat, add in ((0, 0), (1, 0), (0, 1))
    ]
    forms += [
        (op, n, t, sat, add)
        for op in ("vadd", "vsub", "vmin", "vmax", "vavrg")
        for n in (2, 4)
        for t in ("u32", "s32")
        for sat, add in ((0, 0), (0, 1))
    ]
    forms += [(op, n, t, 1, 0) for op in ("vadd", "vsub") for n in (2, 4) for t in ("u32", "s32")]
    for operation, count, kind, sat, add in forms:
        opcode = f"{operation}{count}.{kind}.{kind}.{kind}" + (".sat" if sat else "") + (".add" if add else "")
        yield lanes(
            opcode,
            kind,
            [kind] * 3,
            lambda a, b, c, o=operation, n=count, k=kind, s=sat, p=add: I.video(o, n, k, k, k, a, b, c, s, p),
            "all parts at once" + ("; c plus their sum" if add else ""),
            edge_lists=[words, words[::-1], words],
            count=32,
        )


def carries():
    """Chains through the condition code: a carry out, a carry in, and one that goes through."""
    for bits in (32, 64):
        for sign in "us":
            yield from carry_files(f"{sign}{bits}", bits, I.mask(bits))


def carry_files(kind, bits, top):
    def added(a, b, c):
        low = a + b
        middle = (c + a) + (low >> bits)
        return (b + c + (middle >> bits)) & top, middle & top, low & top

    def subtracted(a, b, c):
        low = a - b
        middle = c - a - (low < 0)
        return (b - c - (middle < 0)) & top, middle & top, low & top

    def multiplied(a, b, c):
        product = I.multiply(f"u{bits}", "lo", a, b) if kind[0] == "u" else a * b & top
        low = product + c
        high = I.multiply(kind, "hi", a, b) + a + (low >> bits)
        return (I.multiply(kind, "hi", b, c) + b + (high >> bits)) & top, high & top, low & top

    def not_borrowed(a, b, c):
        return int(a >= b)

    def borrowed(a, b, c):
        low = a + b
        return (c - a - (low <= top)) & top

    def through(a, b, c):
        low = a - b
        middle = c + a + (low >= 0)
        return (b - c - (middle <= top)) & top

    # a subtraction is x + ~y + 1: its carry is set where nothing is borrowed, and subc takes one from every addition
    # without a carry
    for name, function, body in (
        ("addc.after.sub.cc", not_borrowed, ["sub.cc.{kind} %x, %a, %b;", "addc.{kind} %d, 0, 0;"]),
        ("subc.after.add.cc", borrowed, ["add.cc.{kind} %x, %a, %b;", "subc.{kind} %d, %c, %a;"]),
        (
            "subc.after.addc.cc",
            through,
            ["sub.cc.{kind} %x, %a, %b;", "addc.cc.{kind} %y, %c, %a;", "subc.{kind} %d, %b, %c;"],
        ),
    ):
        yield lanes(
            f"{name}.{kind}",
            kind,
            [kind] * 3,
            (lambda f: lambda a, b, c: f(a & top, b & top, c & top))(function),
            "additions and subtractions in one chain",
            body=[line.format(kind=kind) for line in body],
            registers=[f"{kind} %x", f"{kind} %y"],
            count=48,
        )
    for index, part in enumerate(("last", "through", "first")):
        pick = lambda f, i=index: (lambda a, b, c: f(a, b, c)[i])
        chosen = ["%d", "%y", "%x"][index]
        tail = [] if chosen == "%d" else [f"mov.b{bits} %d, {chosen};"]
        registers = [f"{kind} %x", f"{kind} %y"]
        names = {
            "last": ("addc", "subc", "madc.hi"),
            "through": ("addc.cc", "subc.cc", "madc.hi.cc"),
            "first": ("add.cc", "sub.cc", "mad.lo.cc"),
        }[part]
        chains = [
            ([f"add.cc.{kind} %x, %a, %b;", f"addc.cc.{kind} %y, %c, %a;", f"addc.{kind} %d, %b, %c;"], added),
            ([f"sub.cc.{kind} %x, %a, %b;", f"subc.cc.{kind} %y, %c, %a;", f"subc.{kind} %d, %b, %c;"], subtracted),
            (
                [
                    f"mad.lo.cc.{kind} %x, %a, %b, %c;",
                    f"madc.hi.cc.{kind} %y, %a, %b, %a;",
                    f"madc.hi.{kind} %d, %b, %c, %b;",
                ],
                multiplied,
            ),
        ]
        for name, (body, function) in zip(names, chains):
            yield lanes(
                f"{name}.{kind}",
                kind,
                [kind] * 3,
                pick(function),
                f"the {part} of a chain of three, by way of the carry",
                body=body + tail,
                registers=registers,
                count=48,
            )
    yield lanes(
        f"madc.lo.cc.{kind}",
        kind,
        [kind] * 3,
        lambda a, b, c: madc_low(kind, bits, top, a, b, c)[0],
        "low halves with carry in and out: the second word",
        body=madc_low_body(kind, "%d", "%x"),
        registers=[f"{kind} %x", f"{kind} %y"],
        count=48,
    )
    yield lanes(
        f"madc.lo.{kind}",
        kind,
        [kind] * 3,
        lambda a, b, c: madc_low(kind, bits, top, a, b, c)[1],
        "low halves with carry in: the third word",
        body=madc_low_body(kind, "%x", "%d"),
        registers=[f"{kind} %x", f"{kind} %y"],
        count=48,
    )
    yield lanes(
        f"mad.hi.cc.{kind}",
        kind,
        [kind] * 3,
        lambda a, b, c: (I.multiply(kind, "hi", a, b) + c >> bits) & 1,
        "the carry of the high half plus c",
        body=[f"mad.hi.cc.{kind} %x, %a, %b, %c;", f"addc.{kind} %d, 0, 0;"],
        registers=[f"{kind} %x"],
        count=48,
    )


def madc_low(kind, bits, top, a, b, c):
    first = I.multiply(kind, "lo", a, b) + c
    second = I.multiply(kind, "lo", b, c) + a + (first >> bits)
    third = I.multiply(kind, "lo", c, a) + b + (second >> bits)
    return second & top, third & top


def madc_low_body(kind, second, third):
    return [
        f"mad.lo.cc.{kind} %y, %a, %b, %c;",
        f"madc.lo.cc.{kind} {second}, %b, %c, %a;",
        f"madc.lo.{kind} {third}, %c, %a, %b;",
    ]


def cases():
    for group in (
        add_and_subtract,
        multiply,
        divide,
        one_operand,
        min_and_max,
        logic,
        shifts,
        fields,
        bytes_and_dots,
        video,
        carries,
    ):
        yield from group()
