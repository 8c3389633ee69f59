# SPDX-License-Identifier: Apache-2.0
"""Conformance cases of the floating-point instructions that are exactly defined, and of the approximate ones with the
manual's bounds."""
from fractions import Fraction

from . import arithmetic as A
from . import functions as F
from .formats import ANY_NAN, BF16, F16, F32, F64, FORMATS, SKIP, Number, flush, pack, smallest_normal, unpack
from .values import Random, float_edges
from .writer import lanes

MODES = ("rn", "rz", "rm", "rp")
NEW = (78, 90)  # version and target of forms that came later


def bits_of_value(form, value):
    return pack(form, A.number(Fraction(value)))


def halves(form, function):
    """A half-precision function on both halves; a tuple (low, high), since either may be any NaN."""

    def both(*operands):
        low = function(form, *(v & 0xFFFF for v in operands))
        high = function(form, *(v >> 16 for v in operands))
        return SKIP if low is SKIP or high is SKIP else (low, high)

    return both


def immediate(kind, value):
    """The PTX text and the bits of a floating-point constant."""
    bits = bits_of_value(FORMATS[kind], value)
    return (f"0f{bits:08X}" if kind == "f32" else f"0d{bits:016X}", bits)


def near_ties(form, operation, random, count):
    """Operands whose exact result lies at or next to the middle of two neighbours, or next to a value."""
    m, one = form.mantissa_bits, form.bias << form.mantissa_bits
    out = []
    for _ in range(count):
        a = one + random.bits(m)
        if operation in ("add", "sub"):
            step = form.bias - m - 1 + random.below(3)
            b = step << m | random.below(3) if step > 0 else 1
        elif operation == "mul":
            a, b = one + (1 << random.below(m)) + random.below(2), one + (1 << random.below(m)) + random.below(2)
        else:
            b = one + random.bits(m)
        sign = form.bits - 1
        out.append((a | random.below(2) << sign, b | random.below(2) << sign))
    return out


def variants(kind, modes, sat=True):
    """(dotted text, keyword arguments) of every combination of rounding, .ftz and .sat that the type has."""
    flags = [("", {})]
    if kind == "f32" or kind.startswith("f16"):
        flags.append((".ftz", {"ftz": True}))
        if sat:
            flags += [(".sat", {"sat": True}), (".ftz.sat", {"ftz": True, "sat": True})]
    for mode in modes:
        for text, options in flags:
            yield (f".{mode}" if mode else "") + text, dict(options, mode=mode or "rn")


def add_sub_mul():
    for name, function in (("add", A.add), ("sub", A.sub), ("mul", A.mul)):
        for kind in ("f32", "f64"):
            form = FORMATS[kind]
            for text, options in variants(kind, ("",) + MODES):
                opcode = f"{name}{text}.{kind}"
                yield lanes(
                    opcode,
                    kind,
                    [kind, kind],
                    lambda a, b, f=function, o=options, m=form: f(m, a, b, **o),
                    "rounded once; NaN results may be any NaN",
                    immediate=immediate(kind, Fraction(-5, 4)),
                    extra_rows=near_ties(form, name, Random("ties " + opcode), 12),
                )
        for kind in ("f16", "bf16"):
            form = FORMATS[kind]
            late = kind == "bf16"
            for text, options in variants(kind, ("", "rn")):
                one = lambda f, a, b, g=function, o=options: g(f, a, b, **o)
                target = (78, 90) if late else (70, 80)
                yield lanes(
                    f"{name}{text}.{kind}",
                    kind,
                    [kind, kind],
                    lambda a, b, g=one, m=form: g(m, a, b),
                    "rounded once; NaN results may be any NaN",
                    target=target,
                )
                yield lanes(
                    f"{name}{text}.{kind}x2",
                    f"{kind}x2",
                    [f"{kind}x2"] * 2,
                    halves(form, one),
                    "both halves, each rounded once",
                    target=target,
                )


def fma_rows(form, random):
    """Cancellation, halfway products, signed zeros, infinities times zero."""
    m, one = form.mantissa_bits, form.bias << form.mantissa_bits
    sign = 1 << (form.bits - 1)
    infinity, zero = ((1 << form.exponent_bits) - 1) << m, 0
    out = [
        (one + 1, one + 1, sign | (one + 2)),
        (one + 1, one - 1, sign | one),
        (one, sign | one, one),
        (one, one, sign | one),
        (zero, one, sign),
        (sign, one, sign),
        (sign, one, zero),
        (infinity, zero, one),
        (infinity, one, sign | infinity),
        (infinity, one, infinity),
        (zero, infinity, sign | infinity),
        (1, 1, one),
        (1, 1, sign | one),
        (1, one - (1 << m), zero),
        (one | (1 << m) - 1, one | (1 << m) - 1, 1),
        (infinity - 1, one + (1 << m), sign | (infinity - 1)),
        (infinity - 1, one + (1 << m), infinity - 1),
        (1 << m, one - (1 << m), zero),
        (1 << m, one - 1, zero),
        (one, 1, 1),
    ]
    for _ in range(14):
        a, b = one + random.bits(m), one + random.bits(m)
        product = A.multiply_numbers(unpack(form, a), unpack(form, b))
        near = pack(form, product, random.choose(MODES))
        out.append((a, b, near ^ sign))
    for _ in range(8):
        out.append(
            (one + (1 << random.below(m)), one + (1 << random.below(m)), (form.bias - m - 1) << m | random.below(4))
        )
    return out


def fma():
    for kind in ("f32", "f64"):
        form = FORMATS[kind]
        for name in ("fma", "mad"):
            for text, options in variants(kind, MODES):
                opcode = f"{name}{text}.{kind}"
                if name == "mad" and options["mode"] in ("rz", "rp"):
                    continue
                yield lanes(
                    opcode,
                    kind,
                    [kind] * 3,
                    lambda a, b, c, o=options, m=form: A.fma(m, a, b, c, **o),
                    "a b + c rounded once",
                    immediate=immediate(kind, Fraction(3, 8)),
                    extra_rows=fma_rows(form, Random("fma " + opcode)),
                )
    for kind in ("f16", "bf16"):
        form = FORMATS[kind]
        forms = list(variants(kind, ("rn",)))
        forms += (
            [(".rn.relu", {"relu": True}), (".rn.ftz.relu", {"relu": True, "ftz": True})]
            if kind == "f16"
            else [(".rn.relu", {"relu": True})]
        )
        for text, options in forms:
            opcode = f"fma{text}.{kind}"
            one = lambda f, a, b, c, o=options: A.fma(f, a, b, c, **o)
            rows = fma_rows(form, Random("fma " + opcode))
            yield lanes(
                opcode,
                kind,
                [kind] * 3,
                lambda a, b, c, g=one, m=form: g(m, a, b, c),
                "a b + c rounded once",
                extra_rows=rows,
            )
            doubled = [tuple(v << 16 | w for v, w in zip(row, other)) for row, other in zip(rows, rows[::-1])]
            yield lanes(
                f"{opcode}x2",
                f"{kind}x2",
                [f"{kind}x2"] * 3,
                halves(form, one),
                "both halves, each rounded once",
                extra_rows=doubled,
            )


def quotient_rows(form, random):
    """Quotients next to halfway cases, subnormal results, and every special pair."""
    m, one = form.mantissa_bits, form.bias << form.mantissa_bits
    sign = 1 << (form.bits - 1)
    specials = [
        0,
        sign,
        ((1 << form.exponent_bits) - 1) << m,
        ((1 << form.exponent_bits) - 1) << m | sign,
        one,
        sign | one,
        ((1 << form.exponent_bits) - 1) << m | 1 << (m - 1),
    ]
    out = [(a, b) for a in specials for b in specials]
    return out + [(1 << m | random.bits(m), one + (1 << m) + random.bits(m)) for _ in range(6)]


def division():
    for kind in ("f32", "f64"):
        form = FORMATS[kind]
        for text, options in variants(kind, MODES, sat=False):
            opcode = f"div{text}.{kind}"
            yield lanes(
                opcode,
                kind,
                [kind] * 2,
                lambda a, b, o=options, m=form: A.div(m, a, b, **o),
                "rounded once",
                immediate=immediate(kind, 3),
                extra_rows=quotient_rows(form, Random(opcode)),
                count=112,
            )
            yield lanes(
                f"rcp{text}.{kind}", kind, [kind], lambda a, o=options, m=form: A.rcp(m, a, **o), "1 / a rounded once"
            )
            yield lanes(
                f"sqrt{text}.{kind}",
                kind,
                [kind],
                lambda a, o=options, m=form: A.sqrt(m, a, **o),
                "rounded once",
                extra_rows=root_rows(form, Random("sqrt " + opcode)),
                count=72,
            )


def root_rows(form, random):
    """Edges, squares and their neighbours."""
    out = [(e,) for e in float_edges(form)]
    for _ in range(10):
        value = 3 + random.below(2000)
        square = bits_of_value(form, value * value)
        out += [(square,), (square + 1,), (square - 1,)]
    return out


def signs():
    for kind in ("f32", "f64"):
        form = FORMATS[kind]
        for ftz in (False, True) if kind == "f32" else (False,):
            dot = ".ftz" if ftz else ""
            yield lanes(
                f"abs{dot}.{kind}", kind, [kind], lambda a, m=form, z=ftz: A.absolute(m, a, z), "the sign bit cleared"
            )
            yield lanes(
                f"neg{dot}.{kind}", kind, [kind], lambda a, m=form, z=ftz: A.neg(m, a, z), "the sign bit inverted"
            )
        yield lanes(
            f"copysign.{kind}", kind, [kind] * 2, lambda a, b, m=form: A.copysign(m, a, b), "the sign of a on b"
        )
        for operation in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
            yield lanes(
                f"testp.{operation}.{kind}",
                "u32",
                [kind],
                lambda a, m=form, o=operation: int(A.testp(m, o, a)),
                "zeros count as normal",
                body=[f"testp.{operation}.{kind} %p, %a;", "selp.u32 %d, 1, 0, %p;"],
                registers=["pred %p"],
                count=32,
            )
    for kind in ("f16", "bf16"):
        form = FORMATS[kind]
        for ftz in (False, True) if kind == "f16" else (False,):
            dot = ".ftz" if ftz else ""
            for name, function in (("abs", A.absolute), ("neg", A.neg)):
                one = lambda f, a, g=function, z=ftz: g(f, a, z)
                yield lanes(f"{name}{dot}.{kind}", kind, [kind], lambda a, g=one, m=form: g(m, a), "the sign bit")
                yield lanes(
                    f"{name}{dot}.{kind}x2",
                    f"{kind}x2",
                    [f"{kind}x2"],
                    halves(form, one),
                    "the sign bits of both halves",
                )


def min_and_max():
    for name, largest in (("min", False), ("max", True)):
        for kind in ("f32", "f64", "f16", "bf16"):
            for text, options in min_max_variants(kind):
                form = FORMATS[kind]
                one = lambda f, *v, o=options, g=largest: A.min_max(f, v, g, **o)
                target = (72, 86) if "xorsign" in text else (70, 80)
                title = (
                    "-0 is below +0; one NaN operand gives the other"
                    if not options.get("nan")
                    else "a NaN operand gives the canonical NaN"
                )
                yield lanes(
                    f"{name}{text}.{kind}",
                    kind,
                    [kind] * 2,
                    lambda a, b, g=one, m=form: g(m, a, b),
                    title,
                    target=target,
                    extra_rows=zero_and_nan_rows(form),
                    immediate=immediate(kind, Fraction(1, 2)) if kind in ("f32", "f64") else None,
                )
                if kind in ("f16", "bf16"):
                    yield lanes(
                        f"{name}{text}.{kind}x2",
                        f"{kind}x2",
                        [f"{kind}x2"] * 2,
                        halves(form, one),
                        title,
                        target=target,
                        keep=None if not (largest and "xorsign" in text) else no_nan_half(form),
                    )
        for text, options in (("", {}), (".NaN", {"nan": True}), (".ftz.abs", {"ftz": True, "absolute_value": True})):
            yield lanes(
                f"{name}{text}.f32",
                "f32",
                ["f32"] * 3,
                lambda a, b, c, o=options, g=largest: A.min_max(F32, (a, b, c), g, **o),
                "of three",
                name=f"{name}{text}.f32.three",
                target=(88, 100),
            )


def no_nan_half(form):
    """For max.xorsign.abs of halves the manual tests another operand for NaN than everywhere else: left open."""
    return lambda *operands: not any(unpack(form, v >> s & 0xFFFF).nan for v in operands for s in (0, 16))


def min_max_variants(kind):
    yield "", {}
    if kind == "f64":
        return
    flushes = ("", ".ftz") if kind in ("f32", "f16") else ("",)
    for ftz in flushes:
        for nan in ("", ".NaN"):
            for sign in ("", ".xorsign.abs"):
                if ftz + nan + sign:
                    yield ftz + nan + sign, {
                        "ftz": bool(ftz),
                        "nan": bool(nan),
                        "xorsign": bool(sign),
                        "absolute_value": bool(sign),
                    }


def zero_and_nan_rows(form):
    sign = 1 << (form.bits - 1)
    nan = ((1 << form.exponent_bits) - 1) << form.mantissa_bits | 1 << (form.mantissa_bits - 1)
    one = form.bias << form.mantissa_bits
    return [(0, sign), (sign, 0), (nan, one), (one, nan), (nan, nan), (nan | sign, sign), (sign | 1, 0), (1, sign)]


# ---- approximate functions ----


def approximate(function, form, ftz, *bits):
    """The exact result of flushed operands: bits where it is special or flushed, else a decimal."""
    numbers = A.operands(form, bits, ftz)
    result = function(*numbers)
    if isinstance(result, Number):
        return ANY_NAN if result.nan else pack(form, result)
    if abs(result) > F.to_decimal(form.largest) * (1 + F.Decimal(2) ** -form.mantissa_bits / 4):
        return pack(form, A.infinity(int(result < 0)))
    if ftz and abs(result) < F.to_decimal(smallest_normal(form)) * (1 + F.Decimal(2) ** -10):
        if abs(result) > F.to_decimal(smallest_normal(form)) * (1 - F.Decimal(2) ** -10):
            return SKIP  # next to the smallest normal number: flushed or not
        return pack(form, Number(int(result < 0), "finite"))
    return result


def spread(form, random, low, high, count):
    """Values with exponents between low and high, both signs."""
    out = []
    for _ in range(count):
        exponent = form.bias + low + random.below(high - low + 1)
        out.append(
            random.below(2) << (form.bits - 1) | exponent << form.mantissa_bits | random.bits(form.mantissa_bits)
        )
    return out


def within(form, limit):
    """Keeps finite values up to a limit, and the special ones."""
    return lambda a: unpack(form, a).kind != "finite" or unpack(form, a).size <= limit


def approximate_f32():
    two_pi, hundred_pi = 6.2831853, 314.159
    small, large = "absolute 2^-20.5", "absolute 2^-14.7"
    table = [  # name, function, bound, exponents of the inputs, what is kept, what stands in the name
        ("sin", F.sin, small, (-20, 2), within(F32, two_pi), ""),
        ("sin", F.sin, large, (3, 8), within(F32, hundred_pi), ".wide"),
        ("cos", F.cos, small, (-20, 2), within(F32, two_pi), ""),
        ("cos", F.cos, large, (3, 8), within(F32, hundred_pi), ".wide"),
        ("lg2", F.lg2, "relative 2^-22", (-126, 127), outside_half_to_two, ""),
        ("lg2", F.lg2, "absolute 2^-22", (-1, 0), half_to_two, ".near1"),
        ("ex2", F.ex2, "ulp 2", (-30, 7), None, ""),
        ("rcp", F.rcp, "ulp 1", (-126, 127), None, ""),
        ("sqrt", F.sqrt, "relative 2^-23", (-126, 127), None, ""),
        ("rsqrt", F.rsqrt, "relative 2^-22.9", (-126, 127), None, ""),
    ]
    for name, function, bound, exponents, keep, suffix in table:
        for ftz in (False, True):
            opcode = f"{name}.approx{'.ftz' if ftz else ''}.f32"
            random = Random(opcode + suffix)
            rows = [(e,) for e in float_edges(F32)] + [(v,) for v in spread(F32, random, *exponents, 70)]
            yield lanes(
                opcode,
                "f32",
                ["f32"],
                lambda a, f=function, z=ftz: approximate(f, F32, z, a),
                f"within {bound}",
                name=opcode + suffix,
                extra_rows=rows,
                count=len(rows),
                allow=[bound],
                keep=keep,
            )
    rows = [(e,) for e in float_edges(F32)] + [(v,) for v in spread(F32, Random("tanh"), -126, 5, 70)]
    yield lanes(
        "tanh.approx.f32",
        "f32",
        ["f32"],
        lambda a: approximate(F.tanh, F32, False, a),
        "within relative 2^-11",
        extra_rows=rows,
        count=len(rows),
        allow=["relative 2^-11"],
    )


def half_to_two(a):
    n = unpack(F32, a)
    return n.kind == "finite" and Fraction(1, 2) < n.size < 2


def outside_half_to_two(a):
    return not half_to_two(a)


def approximate_half():
    for kind, form, tanh_bound, ex2_bound, ftz in (
        ("f16", F16, "absolute 2^-10.987", "relative 2^-9.9", False),
        ("bf16", BF16, "absolute 2^-8", "relative 2^-7", True),
    ):
        dot = ".ftz" if ftz else ""
        least = (-14, 3) if kind == "f16" else (-100, 6)
        for name, function, bound, flush_, text, late in (
            ("tanh", F.tanh, tanh_bound, False, "", (70, 80)),
            ("ex2", F.ex2, ex2_bound, ftz, dot, (70, 80)),
        ):
            target = (78, 90) if kind == "bf16" else late
            opcode = f"{name}.approx{text}.{kind}"
            values = float_edges(form) + spread(form, Random(opcode), *least, 38)
            keep = lambda a, f=function, m=form, z=flush_: not underflows(approximate(f, m, z, a), m)
            yield lanes(
                opcode,
                kind,
                [kind],
                lambda a, f=function, m=form, z=flush_: approximate(f, m, z, a),
                f"within {bound}",
                extra_rows=[(v,) for v in values],
                count=len(values),
                allow=[bound],
                target=target,
                keep=keep,
            )
            kept = [v for v in values if keep(v)]
            pairs = [(v << 16 | w,) for v, w in zip(kept, kept[::-1])]
            both = lambda a, f=function, m=form, z=flush_: (
                approximate(f, m, z, a & 0xFFFF),
                approximate(f, m, z, a >> 16),
            )
            yield lanes(
                f"{opcode}x2",
                f"{kind}x2",
                [f"{kind}x2"],
                both,
                f"both halves within {bound}",
                extra_rows=pairs,
                count=len(pairs),
                allow=[bound],
                target=target,
            )


def underflows(result, form):
    """A result whose relative error the format itself cannot keep: a subnormal one."""
    return isinstance(result, F.Decimal) and abs(result) < F.to_decimal(smallest_normal(form))


def approximate_division():
    """div.approx: 2 ulp for |b| in [2^-126, 2^126]; div.full: 2 ulp everywhere."""
    for ftz in ("", ".ftz"):
        for name in ("approx", "full"):
            opcode = f"div.{name}{ftz}.f32"
            random = Random(opcode)
            rows = quotient_rows(F32, random)
            rows += list(zip(spread(F32, random, -60, 60, 60), spread(F32, random, -60, 60, 60)))
            yield lanes(
                opcode,
                "f32",
                ["f32"] * 2,
                lambda a, b, z=bool(ftz): quotient(z, a, b),
                "within 2 ulp",
                extra_rows=rows,
                count=len(rows),
                allow=["ulp 2"],
                keep=in_range,
            )


def quotient(ftz, a, b):
    def divide(x, y):
        exact = A.divide_numbers(x, y)
        return exact if exact.kind != "finite" or exact.zero else F.to_decimal(exact.value)

    return approximate(divide, F32, ftz, a, b)


def in_range(a, b):
    """Inside the range for which div.approx has a bound (div.full has it everywhere), and results that are normal (a (1/b) may lose subnormals)."""
    y, x = unpack(F32, b), unpack(F32, a)
    if y.kind != "finite" or y.zero or x.kind != "finite":
        return True
    if not Fraction(1, 2**126) <= y.size <= 2**126:
        return False
    return x.zero or Fraction(1, 2**125) <= x.size / y.size


def approximate_double():
    """rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 read and write the upper words only; the manual gives no bound but says
    that 20 bits of mantissa are used. rsqrt.approx.f64 is full double precision in software: held to 2^-50 here."""
    for name, function in (("rcp", F.rcp), ("rsqrt", F.rsqrt)):
        opcode = f"{name}.approx.ftz.f64"
        edges = [
            0,
            1 << 63,
            1 << 52,
            0x3FF << 52,
            0xBFF << 52,
            0x7FF << 52,
            0xFFF << 52,
            0x0008 << 48,
            0x8008 << 48,
            0x7FF8 << 48,
        ]
        rows = [(v,) for v in edges + spread(F64, Random(opcode), -1000, 1000, 40)]
        yield lanes(
            opcode,
            "f64",
            ["f64"],
            lambda a, f=function: top_half(f, a),
            "20 bits of mantissa; low word zero",
            extra_rows=rows,
            count=len(rows),
            allow=["relative 2^-18"],
        )
        yield lanes(
            opcode,
            "u32",
            ["f64"],
            lambda a: 0,
            "the low word of the result is zero",
            name=f"{opcode}.low",
            body=[f"{opcode} %x, %a;", "mov.b64 {%d, %y}, %x;"],
            registers=["f64 %x", "u32 %y"],
            extra_rows=rows,
            count=len(rows),
            keep=lambda a, n=name: not unpack(F64, a).nan,
        )
    rows = [(v,) for v in float_edges(F64) + spread(F64, Random("rsqrt.approx.f64"), -1000, 1000, 40)]
    yield lanes(
        "rsqrt.approx.f64",
        "f64",
        ["f64"],
        lambda a: approximate(F.rsqrt, F64, False, a),
        "no bound is given; 2^-50 here",
        extra_rows=rows,
        count=len(rows),
        allow=["relative 2^-50"],
    )


def top_half(function, a):
    value = flush(F64, unpack(F64, a >> 32 << 32))
    if value.nan:
        return 0x7FFFFFFF00000000
    return approximate(lambda n: function(n), F64, True, pack(F64, value))


def cases():
    for group in (
        add_sub_mul,
        fma,
        division,
        signs,
        min_and_max,
        approximate_f32,
        approximate_half,
        approximate_division,
        approximate_double,
    ):
        yield from group()
