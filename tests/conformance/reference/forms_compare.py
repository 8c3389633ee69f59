# SPDX-License-Identifier: Apache-2.0
"""Conformance cases of comparisons, selection and predicate logic."""
from . import arithmetic as A
from . import integers as I
from .formats import FORMATS, flush, unpack
from .values import bits_of, edges
from .writer import lanes

ORDERED = ("eq", "ne", "lt", "le", "gt", "ge")
UNORDERED = ("equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
UNSIGNED = ("lo", "ls", "hi", "hs")
BOOLEAN = {"and": lambda t, c: t & c, "or": lambda t, c: t | c, "xor": lambda t, c: t ^ c}
SOURCES = ["b16", "b32", "b64"] + [f"{s}{n}" for n in (16, 32, 64) for s in "us"] + ["f32", "f64", "f16", "bf16"]
LATE = (78, 90)


def operations(kind):
    if kind in FORMATS:
        return ORDERED + UNORDERED
    return ORDERED[:2] if kind[0] == "b" else ORDERED + (UNSIGNED if kind[0] == "u" else ())


def compare(kind, operation, a, b, ftz=False):
    if kind in FORMATS:
        return int(A.compare(FORMATS[kind], operation, a, b, ftz))
    return int(
        A.compare_keys(
            operation,
            I.as_type(a, "u" + kind[1:] if kind[0] == "b" else kind),
            I.as_type(b, "u" + kind[1:] if kind[0] == "b" else kind),
        )
    )


def equal_rows(kind):
    """Pairs that are equal, which random crossing seldom makes."""
    return [(v, v) for v in edges(kind)[:12]] + (
        [(0, 1 << (bits_of(kind) - 1)), (1 << (bits_of(kind) - 1), 0)] if kind in FORMATS else []
    )


def dots(kind):
    return ("", ".ftz") if kind in ("f32", "f16") else ("",)


def setp():
    for kind in SOURCES:
        half = kind in ("f16", "bf16")
        for operation in operations(kind):
            for ftz in dots(kind):
                opcode = f"setp.{operation}{ftz}.{kind}"
                function = lambda a, b, k=kind, o=operation, z=ftz: compare(k, o, a, b, bool(z))
                # the second destination gives the complement: both in one word
                body = (
                    [f"{opcode} %p, %a, %b;", "selp.u32 %d, 1, 0, %p;"]
                    if half
                    else [f"{opcode} %p|%q, %a, %b;", "selp.u32 %d, 1, 0, %p;", "@%q add.u32 %d, %d, 2;"]
                )
                value = function if half else (lambda a, b, f=function: 1 if f(a, b) else 2)
                yield lanes(
                    opcode,
                    "u32",
                    [kind, kind],
                    value,
                    "1: p" if half else "1: p, 2: q, the complement",
                    body=body,
                    registers=["pred %p", "pred %q"],
                    count=48,
                    extra_rows=equal_rows(kind),
                    target=LATE if kind == "bf16" else (70, 80),
                )


def setp_halves():
    for kind in ("f16", "bf16"):
        for operation in operations(kind):
            for ftz in dots(kind):
                opcode = f"setp.{operation}{ftz}.{kind}x2"
                yield lanes(
                    opcode,
                    "u32",
                    [f"{kind}x2"] * 2,
                    lambda a, b, k=kind, o=operation, z=ftz: compare(k, o, a & 0xFFFF, b & 0xFFFF, bool(z))
                    | compare(k, o, a >> 16, b >> 16, bool(z)) << 1,
                    "1: the lower halves, 2: the upper ones",
                    body=[f"{opcode} %p|%q, %a, %b;", "selp.u32 %d, 1, 0, %p;", "@%q add.u32 %d, %d, 2;"],
                    registers=["pred %p", "pred %q"],
                    count=32,
                    target=LATE if kind == "bf16" else (70, 80),
                )


def setp_boolean():
    """p = t op c, q = !t op c, with c or its complement."""
    for kind, operation in (
        ("s32", "lt"),
        ("u32", "hi"),
        ("f32", "gt"),
        ("f64", "neu"),
        ("u64", "le"),
        ("b32", "eq"),
        ("s16", "ge"),
        ("f32", "nan"),
    ):
        for name, function in BOOLEAN.items():
            for negated in ("", "!"):
                opcode = f"setp.{operation}.{name}.{kind}"

                def value(a, b, c, k=kind, o=operation, f=function, n=negated):
                    t, third = compare(k, o, a, b), (c & 1) ^ bool(n)
                    return f(t, third) | f(1 - t, third) << 1

                yield lanes(
                    opcode,
                    "u32",
                    [kind, kind, "u32"],
                    value,
                    "1: p, 2: q",
                    name=opcode + (".not" if negated else ""),
                    body=[
                        "and.b32 %x, %c, 1;",
                        "setp.ne.u32 %r, %x, 0;",
                        f"{opcode} %p|%q, %a, %b, {negated}%r;",
                        "selp.u32 %d, 1, 0, %p;",
                        "@%q add.u32 %d, %d, 2;",
                    ],
                    registers=["u32 %x", "pred %p", "pred %q", "pred %r"],
                    count=32,
                )


def true_value(dtype):
    return {"u32": I.mask(32), "s32": I.mask(32), "u16": I.mask(16), "s16": I.mask(16)}.get(dtype) or A.one(
        FORMATS[dtype]
    )


def set_form(operation, ftz, dtype, stype):
    return lanes(
        f"set.{operation}{ftz}.{dtype}.{stype}",
        dtype,
        [stype] * 2,
        lambda a, b: true_value(dtype) if compare(stype, operation, a, b, bool(ftz)) else 0,
        "all ones or 1.0, else 0",
        count=32,
        extra_rows=equal_rows(stype)[:6] + equal_rows(stype)[-2:],
        target=LATE if stype == "bf16" else (70, 80),
    )


def set_halves(opcode, kind, dtype, operation, ftz):
    true = A.one(FORMATS[kind]) if dtype[-2:] == "x2" else 0xFFFF
    return lanes(
        opcode,
        dtype,
        [f"{kind}x2"] * 2,
        lambda a, b: I.join(
            [true * compare(kind, operation, a >> s & 0xFFFF, b >> s & 0xFFFF, bool(ftz)) for s in (0, 16)], 16
        ),
        "both halves",
        count=32,
        target=LATE if kind == "bf16" else (70, 80),
    )


def set_forms():
    made = set()
    everything = [("f32", "f32"), ("u32", "f32"), ("s32", "s32"), ("f16", "f16")]
    some = [
        ("u32", "s32"),
        ("f32", "s32"),
        ("u32", "u32"),
        ("s32", "f64"),
        ("f32", "f64"),
        ("u32", "u64"),
        ("s32", "s64"),
        ("u32", "s16"),
        ("u32", "b32"),
        ("f32", "b16"),
        ("u32", "f16"),
        ("u16", "f16"),
        ("f16", "f32"),
        ("f16", "s32"),
    ]
    for dtype, stype in everything + some:
        few = [o for o in ("eq", "lt", "geu", "hi", "nan") if o in operations(stype)]
        for operation in operations(stype) if (dtype, stype) in everything else few:
            for ftz in dots(stype) if (dtype, stype) == ("f32", "f32") else ("",):
                made.add((operation, ftz, stype))
                yield set_form(operation, ftz, dtype, stype)
    for stype in SOURCES:  # every comparison of every type, at least into u32
        for operation in operations(stype):
            for ftz in dots(stype):
                if (operation, ftz, stype) not in made:
                    yield set_form(operation, ftz, "u32", stype)
    for kind in ("f16", "bf16"):
        for dtype in (f"{kind}x2", "u32"):
            for operation in operations(kind):
                for ftz in dots(kind):
                    yield set_halves(f"set.{operation}{ftz}.{dtype}.{kind}x2", kind, dtype, operation, ftz)
    for name, function in BOOLEAN.items():
        for dtype, stype, operation in (("u32", "s32", "lt"), ("f32", "f32", "geu")):
            opcode = f"set.{operation}.{name}.{dtype}.{stype}"
            yield lanes(
                opcode,
                dtype,
                [stype, stype, "u32"],
                lambda a, b, c, d=dtype, s=stype, o=operation, f=function: true_value(d)
                if f(compare(s, o, a, b), c & 1)
                else 0,
                "combined with a predicate",
                body=["and.b32 %x, %c, 1;", "setp.ne.u32 %r, %x, 0;", f"{opcode} %d, %a, %b, %r;"],
                registers=["u32 %x", "pred %r"],
                count=32,
            )


def selection():
    kinds = [f"{s}{n}" for n in (16, 32, 64) for s in "bus"] + ["f32", "f64"]
    for kind in kinds:
        yield lanes(
            f"selp.{kind}",
            kind,
            [kind, kind, "u32"],
            lambda a, b, c: a if c & 1 else b,
            "a if the predicate holds, else b",
            body=["and.b32 %x, %c, 1;", "setp.ne.u32 %p, %x, 0;", f"selp.{kind} %d, %a, %b, %p;"],
            registers=["u32 %x", "pred %p"],
            count=32,
        )
        yield lanes(
            f"slct.{kind}.s32",
            kind,
            [kind, kind, "s32"],
            lambda a, b, c: b if c >> 31 else a,
            "a if c is not negative, else b",
            count=32,
        )
        for ftz in ("", ".ftz"):
            yield lanes(
                f"slct{ftz}.{kind}.f32",
                kind,
                [kind, kind, "f32"],
                lambda a, b, c, z=ftz: a if not_negative(c, z) else b,
                "-0 is 0; NaN takes b",
                count=32,
            )


def not_negative(c, ftz):
    value = unpack(FORMATS["f32"], c)
    if ftz:
        value = flush(FORMATS["f32"], value)
    return not value.nan and (value.zero or not value.sign)


def predicates():
    take = ["and.b32 %x, %a, 1;", "setp.ne.u32 %p, %x, 0;", "and.b32 %x, %b, 1;", "setp.ne.u32 %q, %x, 0;"]
    registers = ["u32 %x", "pred %p", "pred %q", "pred %r"]
    for name, function in BOOLEAN.items():
        yield lanes(
            f"{name}.pred",
            "u32",
            ["u32", "u32"],
            lambda a, b, f=function: f(a & 1, b & 1),
            "of predicates",
            body=take + [f"{name}.pred %r, %p, %q;", "selp.u32 %d, 1, 0, %r;"],
            registers=registers,
            count=40,
        )
    yield lanes(
        "not.pred",
        "u32",
        ["u32", "u32"],
        lambda a, b: (1 - (a & 1)) & b & 1,
        "then and, in place",
        body=take + ["not.pred %p, %p;", "and.pred %p, %p, %q;", "selp.u32 %d, 1, 0, %p;"],
        registers=registers,
        count=40,
    )
    for table, text in ((0x80, "a & b & c"), (0x1B, "mixed")):
        for name, function in (("or", lambda t, q: t | q), ("and", lambda t, q: t & q)):
            yield lanes(
                f"lop3.{name}.b32",
                "b32",
                ["b32"] * 3,
                lambda a, b, c, t=table, f=function: I.look_up(t, a, b, c) & ~1
                | f(int(I.look_up(t, a, b, c) != 0), c & 1),
                f"{text}; bit 0 of the result is replaced by the predicate",
                name=f"lop3.{name}.b32.{table:02x}",
                target=(82, 80),
                body=[
                    "and.b32 %x, %c, 1;",
                    "setp.ne.u32 %q, %x, 0;",
                    f"lop3.{name}.b32 %d|%p, %a, %b, %c, 0x{table:x}, %q;",
                    "and.b32 %d, %d, 0xfffffffe;",
                    "@%p or.b32 %d, %d, 1;",
                ],
                registers=registers,
                count=32,
            )


def cases():
    for group in (setp, setp_halves, setp_boolean, set_forms, selection, predicates):
        yield from group()
