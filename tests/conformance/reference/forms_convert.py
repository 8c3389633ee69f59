# SPDX-License-Identifier: Apache-2.0
"""Conformance cases of cvt and of mov between registers."""
from fractions import Fraction

from . import convert as C
from . import integers as I
from .formats import ANY_NAN, BF16, F16, FORMATS, pack, unpack
from .arithmetic import number
from .values import Random, float_edges, integer_edges
from .writer import lanes

WHOLE = ("rni", "rzi", "rmi", "rpi")
MODES = ("rn", "rz", "rm", "rp")
INTEGERS = [f"{s}{n}" for n in (8, 16, 32, 64) for s in "us"]


def value_bits(form, value):
    return pack(form, number(Fraction(value)))


def superset(dtype, atype):
    """Whether every value of atype is one of dtype: then .sat is not allowed."""
    if dtype[0] == atype[0]:
        return I.width(dtype) >= I.width(atype)
    return dtype[0] == "s" and I.width(dtype) > I.width(atype)


def between_integers():
    for dtype in INTEGERS:
        for atype in INTEGERS:
            if dtype != atype:
                yield lanes(
                    f"cvt.{dtype}.{atype}",
                    dtype,
                    [atype],
                    lambda a, d=dtype, s=atype: C.integer_to_integer(d, s, a, False),
                    "cut off, or extended by the source's sign",
                    count=32,
                )
            if not superset(dtype, atype):
                yield lanes(
                    f"cvt.sat.{dtype}.{atype}",
                    dtype,
                    [atype],
                    lambda a, d=dtype, s=atype: C.integer_to_integer(d, s, a, True),
                    "limited to the destination's range",
                    count=32,
                )


WIDER = {8: (32, 64), 16: (32, 64), 32: (64,), 64: ()}


def wide_form(dtype, atype, register, source, name):
    return lanes(
        f"cvt.{dtype}.{atype}",
        register,
        [source],
        lambda a: I.as_type(C.integer_to_integer(dtype, atype, a & I.mask(I.width(atype)), False), dtype)
        & I.mask(I.width(register)),
        f"from a register of {source} into one of {register}: cut, then extended to its width",
        name=name,
        count=24,
    )


def wide_registers():
    """Registers wider than the type: the source is cut, the destination extended (PTX ISA 9.4.1)."""
    for atype in ("s32", "u64"):
        yield wide_form("s8", atype, "s16", atype, f"cvt.s8.{atype}.into.s16")
    for atype in ("s8", "u8", "s16", "u16"):
        yield wide_form("s32", atype, "s32", "b32", f"cvt.s32.{atype}.from.b32")
    for atype in INTEGERS:
        for source in (atype, "b64") if I.width(atype) < 64 else (atype,):
            for dtype in INTEGERS:
                for bits in (I.width(dtype),) + WIDER[I.width(dtype)]:
                    register = f"{dtype[0]}{bits}"
                    if source == atype and register == dtype and dtype != atype:
                        continue  # between_integers
                    name = f"cvt.{dtype}.{atype}" + ("" if source == atype else f".from.{source}")
                    if register != dtype:
                        name += f".into.{register}"
                    yield wide_form(dtype, atype, register, source, name)


def into_floats():
    for dtype in ("f16", "bf16", "f32", "f64"):
        for atype in INTEGERS:
            modes = MODES if dtype in ("f32", "f64") else ("rn",) if dtype == "bf16" else ("rn", "rz")
            for mode in modes:
                if I.width(atype) < 32 and mode != "rn":
                    continue
                edges = near_halves(atype, FORMATS[dtype])
                yield lanes(
                    f"cvt.{mode}.{dtype}.{atype}",
                    dtype,
                    [atype],
                    lambda a, d=dtype, s=atype, m=mode: C.integer_to_float(d, s, a, m, False),
                    "rounded once",
                    edge_lists=[edges],
                    count=48,
                    target=(78, 90) if dtype == "bf16" else (70, 80),
                    narrow=dtype == "bf16",
                )
    for atype in ("s32", "u32", "s64"):
        yield lanes(
            f"cvt.rn.sat.f32.{atype}",
            "f32",
            [atype],
            lambda a, s=atype: C.integer_to_float("f32", s, a, "rn", True),
            "limited to [0, 1]",
            count=24,
        )


def near_halves(kind, form):
    """Edges, and whole numbers in the middle between two neighbours of the format."""
    bits = I.width(kind)
    values = integer_edges(bits)
    for top in range(form.mantissa_bits + 1, bits):
        for low in (1, 3):
            values.append((1 << top | low << (top - form.mantissa_bits - 1)) & I.mask(bits))
    return values[:14] + Random(kind + form.name).shuffle(values[14:])


def out_of_floats():
    for atype in ("f16", "bf16", "f32", "f64"):
        for dtype in INTEGERS:
            for mode in WHOLE:
                if I.width(dtype) < 32 and (mode != "rzi" or atype == "f64"):
                    continue
                if atype in ("f16", "bf16") and I.width(dtype) == 64 and mode != "rzi":
                    continue
                for ftz in ("", ".ftz") if atype == "f32" and mode == "rmi" else ("",):
                    yield lanes(
                        f"cvt.{mode}{ftz}.{dtype}.{atype}",
                        dtype,
                        [atype],
                        lambda a, d=dtype, s=atype, m=mode, z=ftz: C.float_to_integer(d, s, a, m, bool(z)),
                        "limited to the range; NaN gives 0, or the top bit where 64 bits are involved",
                        edge_lists=[whole_edges(FORMATS[atype], I.width(dtype))],
                        count=64,
                        target=(78, 90) if atype == "bf16" else (70, 80),
                        narrow=atype == "bf16",
                    )
    yield lanes(
        "cvt.rzi.ftz.s32.f32",
        "s32",
        ["f32"],
        lambda a: C.float_to_integer("s32", "f32", a, "rzi", True),
        "towards zero",
        count=32,
    )


def whole_edges(form, width):
    """Halves, the ends of the integer's range and what lies next to them, then the format's edges."""
    sign = 1 << (form.bits - 1)
    out = []
    for value in (
        Fraction(1, 2),
        Fraction(3, 2),
        Fraction(5, 2),
        Fraction(1, 4),
        Fraction(3, 4),
        2 ** (width - 1),
        2**width,
        2 ** (width - 1) - 1,
        2 ** (width - 1) + 1,
        Fraction(2**width) - Fraction(1, 2),
        Fraction(127, 2),
    ):
        bits = value_bits(form, value)
        out += [bits, bits | sign]
        if value > 100:
            out += [bits - 1, bits + 1]
    return float_edges(form) + out


def between_floats():
    for dtype, atype in (("f64", "f32"), ("f64", "f16"), ("f32", "f16")):
        for ftz in ("", ".ftz") if "f32" in (dtype, atype) else ("",):
            yield lanes(
                f"cvt{ftz}.{dtype}.{atype}",
                dtype,
                [atype],
                lambda a, d=dtype, s=atype, z=ftz: C.float_to_float(d, s, a, ftz=bool(z)),
                "exact",
            )
    for dtype, atype in (("f32", "f64"), ("f16", "f32"), ("f16", "f64")):
        for mode in MODES:
            for ftz in ("", ".ftz") if "f32" in (dtype, atype) else ("",):
                for sat in ("", ".sat") if mode == "rn" else ("",):
                    yield lanes(
                        f"cvt.{mode}{ftz}{sat}.{dtype}.{atype}",
                        dtype,
                        [atype],
                        lambda a, d=dtype, s=atype, m=mode, z=ftz, x=sat: C.float_to_float(
                            d, s, a, m, bool(z), bool(x)
                        ),
                        "rounded once",
                        edge_lists=[narrowing_edges(FORMATS[dtype], FORMATS[atype])],
                        count=72,
                    )
    for kind in ("f32", "f64", "f16"):
        for mode in WHOLE:
            for ftz in ("", ".ftz") if kind == "f32" else ("",):
                yield lanes(
                    f"cvt.{mode}{ftz}.{kind}.{kind}",
                    kind,
                    [kind],
                    lambda a, k=kind, m=mode, z=ftz: C.float_to_float(k, k, a, m, bool(z)),
                    "to a whole number",
                    edge_lists=[whole_edges(FORMATS[kind], 16)],
                )
    for mode in WHOLE:
        yield lanes(
            f"cvt.{mode}.bf16.bf16",
            "bf16",
            ["bf16"],
            lambda a, m=mode: C.float_to_float("bf16", "bf16", a, m),
            "to a whole number",
            edge_lists=[whole_edges(BF16, 8)],
            target=(78, 90),
            count=40,
        )
    for kind in ("f32", "f64"):
        for ftz in ("", ".ftz") if kind == "f32" else ("",):
            yield lanes(
                f"cvt{ftz}.sat.{kind}.{kind}",
                kind,
                [kind],
                lambda a, k=kind, z=ftz: C.float_to_float(k, k, a, "rn", bool(z), True),
                "limited to [0, 1], NaN to 0",
            )


def narrowing_edges(narrow, wide):
    """Edges of both formats, and values in the middle between neighbours of the narrow one."""
    out = float_edges(wide)
    random = Random(narrow.name + wide.name)
    for bits in float_edges(narrow):
        value = unpack(narrow, bits)
        if value.kind == "finite" and value.size:
            out.append(pack(wide, value))
    extra = wide.mantissa_bits - narrow.mantissa_bits
    for _ in range(14):
        exponent = wide.bias + random.below(8) - 4
        mantissa = random.bits(narrow.mantissa_bits) << extra | 1 << (extra - 1)
        out.append(random.below(2) << (wide.bits - 1) | exponent << wide.mantissa_bits | mantissa + random.below(3) - 1)
    return out


def brain_floats():
    late = (78, 90)
    for mode in ("rn", "rz"):
        for relu in ("", ".relu"):
            for satfinite in ("", ".satfinite"):
                for name, form in (("bf16", BF16), ("f16", F16)):
                    if name == "f16" and not relu and not satfinite:
                        continue
                    edge = [narrowing_edges(form, FORMATS["f32"])]
                    options = {"mode": mode, "relu": bool(relu), "satfinite": bool(satfinite)}
                    target = (81, 90) if satfinite else (70, 80)
                    yield lanes(
                        f"cvt.{mode}{relu}{satfinite}.{name}.f32",
                        name,
                        ["f32"],
                        lambda a, n=name, o=options: C.float_to_float(n, "f32", a, **o),
                        "rounded once",
                        edge_lists=edge,
                        target=target,
                        keep=None if not satfinite else not_nan,
                    )
                for name, form in (("bf16", BF16), ("f16", F16)):
                    edge = narrowing_edges(form, FORMATS["f32"])
                    options = {"mode": mode, "relu": bool(relu), "satfinite": bool(satfinite)}
                    target = (81, 90) if satfinite else (70, 80)
                    yield lanes(
                        f"cvt.{mode}{relu}{satfinite}.{name}x2.f32",
                        f"{name}x2",
                        ["f32", "f32"],
                        lambda a, b, n=name, o=options: C.pair(n, a, b, **o),
                        "a in the upper half, b in the lower",
                        edge_lists=[edge, edge[::-1]],
                        target=target,
                        keep=None if not satfinite else not_nan,
                    )
    for dtype, atype, mode in (
        ("f32", "bf16", ""),
        ("f64", "bf16", ""),
        ("f16", "bf16", "rn"),
        ("bf16", "f16", "rn"),
        ("bf16", "f64", "rn"),
    ):
        dot = f".{mode}" if mode else ""
        edge = float_edges(FORMATS[atype])
        if mode:
            edge = edge + [
                pack(FORMATS[atype], unpack(FORMATS[dtype], b))
                for b in float_edges(FORMATS[dtype])
                if unpack(FORMATS[dtype], b).kind == "finite"
            ]
        yield lanes(
            f"cvt{dot}.{dtype}.{atype}",
            dtype,
            [atype],
            lambda a, d=dtype, s=atype: C.float_to_float(d, s, a),
            "rounded once",
            edge_lists=[edge],
            target=(71, 80) if dtype == "f32" else late,
        )
    for dtype, atype in (("f16", "bf16"), ("bf16", "f16")):
        yield lanes(
            f"cvt.{dtype}.{atype}",
            dtype,
            [atype],
            lambda a, d=dtype, s=atype: C.float_to_float(d, s, a),
            "no rounding is named: of values that both have",
            edge_lists=[float_edges(FORMATS[atype])],
            target=late,
            keep=lambda a, d=dtype, s=atype: C.float_to_float(d, s, a, "rz") == C.float_to_float(d, s, a, "rp") == C.float_to_float(d, s, a, "rm"),
        )
    yield lanes(
        "cvt.rna.tf32.f32",
        "tf32",
        ["f32"],
        lambda a: C.float_to_float("tf32", "f32", a, "rna"),
        "ten bits of mantissa, ties away",
        edge_lists=[narrowing_edges(FORMATS["tf32"]._replace(bits=32, shift=0), FORMATS["f32"])],
        keep=not_nan,
    )


def not_nan(*operands):
    return all(not unpack(FORMATS["f32"], v).nan for v in operands)


def small_floats():
    """e4m3 and e5m2, two at a time; always to the largest finite value."""
    target = (81, 89)
    for name in ("e4m3x2", "e5m2x2"):
        form = FORMATS[name[:4]]
        for relu in ("", ".relu"):
            edge = narrowing_edges(form._replace(bits=8), FORMATS["f32"])
            yield lanes(
                f"cvt.rn.satfinite{relu}.{name}.f32",
                "b16",
                ["f32", "f32"],
                lambda a, b, n=name, r=relu: small_pair(n, unpack(FORMATS["f32"], a), unpack(FORMATS["f32"], b), r),
                "a in the upper byte, b in the lower",
                edge_lists=[edge, edge[::-1]],
                target=target,
            )
            halves = narrowing_edges(form._replace(bits=8), F16)
            pairs = [a << 16 | b for a, b in zip(halves, halves[::-1])]
            yield lanes(
                f"cvt.rn.satfinite{relu}.{name}.f16x2",
                "b16",
                ["f16x2"],
                lambda a, n=name, r=relu: small_pair(n, unpack(F16, a >> 16), unpack(F16, a & 0xFFFF), r),
                "both halves",
                edge_lists=[pairs],
                target=target,
            )
        values = [v | (v * 7 + 1 & 255) << 8 for v in range(256)]
        yield lanes(
            f"cvt.rn.f16x2.{name}",
            "f16x2",
            ["b16"],
            lambda a, f=form: (widened(f, a & 255), widened(f, a >> 8)),
            "every value",
            edge_lists=[values],
            count=256,
            target=target,
        )


def small_pair(name, a, b, relu):
    if relu:
        a, b = (v if v.nan or not v.sign else number(0) for v in (a, b))
    return C.fp8_pair(name, a, b)


def widened(form, bits):
    value = unpack(form, bits)
    return ANY_NAN if value.nan else pack(F16, value)


def moves():
    for kind in ("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64"):
        constant = {"f32": ("0fC0490FDB", 0xC0490FDB), "f64": ("0dC00921FB54442D18", 0xC00921FB54442D18)}.get(
            kind, ("-2", I.mask(int(kind[1:])) - 1)
        )
        text, bits = constant
        yield lanes(
            f"mov.{kind}",
            kind,
            [kind],
            lambda a: a,
            "a register and a constant",
            body=[f"mov.{kind} %d, %a;", f"mov.{kind} %x, {text};", *both_ways(kind)],
            registers=[f"{kind} %x", f"b{int(kind[1:])} %y"],
            count=24,
        )
        yield lanes(
            f"mov.{kind}",
            kind,
            [kind],
            lambda a, v=bits: v,
            "a constant",
            name=f"mov.{kind}.constant",
            body=[f"mov.{kind} %d, {text};"],
            count=4,
        )
    yield lanes(
        "mov.pred",
        "u32",
        ["u32"],
        lambda a: a & 1,
        "a predicate",
        body=["and.b32 %x, %a, 1;", "setp.ne.u32 %p, %x, 0;", "mov.pred %q, %p;", "selp.u32 %d, 1, 0, %q;"],
        registers=["u32 %x", "pred %p", "pred %q"],
        count=24,
    )
    yield from vector_moves()


def both_ways(kind):
    return [] if kind[0] == "b" else [f"mov.b{kind[1:]} %y, %d;", f"mov.b{kind[1:]} %d, %y;"]


def vector_moves():
    names = "xyzw"
    for whole, part in ((32, 16), (64, 32), (64, 16)):
        count = whole // part
        parts = [f"%{n}" for n in names[:count]]
        registers = [f"b{part} {p}" for p in parts]
        braces = "{" + ", ".join(parts) + "}"
        turned = "{" + ", ".join(parts[1:] + parts[:1]) + "}"
        yield lanes(
            f"mov.b{whole}",
            f"b{whole}",
            [f"b{whole}"],
            lambda a, w=whole, p=part: (a >> p | a << (w - p)) & I.mask(w),
            f"{count} parts out, turned by one, and back in",
            name=f"mov.b{whole}.vector{count}",
            body=[f"mov.b{whole} {braces}, %a;", f"mov.b{whole} %d, {turned};"],
            registers=registers,
            count=24,
        )
        sink = "{" + ", ".join(["_"] * (count - 1) + [parts[-1]]) + "}"
        yield lanes(
            f"mov.b{whole}",
            f"b{part}",
            [f"b{whole}"],
            lambda a, w=whole, p=part: a >> (w - p),
            "the last part; the others are not wanted",
            name=f"mov.b{whole}.sink{count}",
            body=[f"mov.b{whole} {sink}, %a;", f"mov.b{part} %d, {parts[-1]};"],
            registers=registers,
            count=16,
        )


def cases():
    for group in (
        between_integers,
        wide_registers,
        into_floats,
        out_of_floats,
        between_floats,
        brain_floats,
        small_floats,
        moves,
    ):
        yield from group()
