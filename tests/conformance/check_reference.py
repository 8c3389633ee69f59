#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the reference against what Python itself can say: double arithmetic and its conversions, whole numbers, and the
functions of the math module. A test, run by ctest."""
import math
import struct
import sys
from fractions import Fraction
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

from reference import arithmetic as A, functions as F, integers as I  # noqa: E402
from reference.formats import ANY_NAN, BF16, E4M3, E5M2, F16, F32, F64, number, pack, unpack  # noqa: E402
from reference.values import Random, float_edges, integer_edges, shortest_float  # noqa: E402


def double(bits):
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def double_bits(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def operands(count):
    random = Random("check_reference")
    edges = float_edges(F64)
    for i in range(count):
        a = random.choose(edges) if i % 3 == 0 else random.bits(64)
        b = (
            (a ^ 1 << 63) + random.below(5) - 2 & (1 << 64) - 1
            if i % 4 == 0
            else random.choose(edges)
            if i % 5 == 0
            else random.bits(64)
        )
        if i % 7 == 0:  # near each other in size
            a, b = (1023 + random.below(4) << 52 | random.bits(52) for _ in range(2))
        yield a, b


def same(got, expected):
    return got == ANY_NAN if math.isnan(expected) else got == double_bits(expected)


def check_double_arithmetic():
    for a, b in operands(4000):
        x, y = double(a), double(b)
        assert same(A.add(F64, a, b), x + y), (x, y)
        assert same(A.sub(F64, a, b), x - y), (x, y)
        assert same(A.mul(F64, a, b), x * y), (x, y)
        if y:
            assert same(A.div(F64, a, b), x / y), (x, y)
        if x >= 0:
            assert same(A.sqrt(F64, a), math.sqrt(x)), x
        assert A.compare(F64, "lt", a, b) == (x < y) and A.compare(F64, "neu", a, b) == (x != y)


def check_directed_rounding():
    """Down is at most nearest, nearest at most up, and they are neighbours."""
    for a, b in operands(1500):
        for function in (A.add, A.mul):
            down, near, up = (function(F32, a >> 32, b >> 32, mode) for mode in ("rm", "rn", "rp"))
            if ANY_NAN in (down, near, up):
                continue
            keys = [A.order_key(unpack(F32, v)) for v in (down, near, up)]
            assert keys[0] <= keys[1] <= keys[2], (hex(a), hex(b))
            to_zero = function(F32, a >> 32, b >> 32, "rz")
            assert to_zero in (down, up)


def check_narrowing():
    for a, _ in operands(4000):
        value = unpack(F64, a)
        if value.nan:
            continue
        for form, code, integer in ((F32, "<f", "<I"), (F16, "<e", "<H")):
            try:
                expected = struct.unpack(integer, struct.pack(code, double(a)))[0]
            except OverflowError:
                expected = pack(form, A.infinity(value.sign))
            assert pack(form, value) == expected, double(a)


def check_round_trips():
    for form in (F16, BF16, E4M3, E5M2):
        for bits in range(1 << form.bits):
            value = unpack(form, bits)
            assert value.nan or pack(form, value) == bits, (form.name, bits)
            if not value.nan and not value.inf and form in (F16, BF16) and bits % 37 == 0:
                assert pack(form, number(Fraction(float(shortest_float(form, bits))), bits >> (form.bits - 1))) == bits


def check_functions():
    table = {F.sin: math.sin, F.cos: math.cos, F.tanh: math.tanh, F.ex2: lambda x: 2.0**x}
    for i in range(-200, 200):
        x = Fraction(i * 37, 512)
        if i == 0:
            continue
        for function, expected in table.items():
            assert abs(float(function(number(x))) - expected(float(x))) <= 1e-14 * max(1, abs(expected(float(x)))), (
                function,
                x,
            )
        if x > 0:
            assert (
                math.isclose(float(F.lg2(number(x))), math.log2(float(x)), rel_tol=1e-14, abs_tol=1e-15)
                if x != 1
                else True
            )
            assert math.isclose(float(F.rsqrt(number(x))), 1 / math.sqrt(float(x)), rel_tol=1e-14)


def check_integers():
    for kind in ("u8", "s8", "u32", "s32", "u64", "s64"):
        bits = I.width(kind)
        for a in integer_edges(bits):
            for b in integer_edges(bits):
                q, r = I.divide(kind, a, b), I.remainder(kind, a, b)
                if q is not None:
                    x, y = I.as_type(a, kind), I.as_type(b, kind)
                    assert (I.as_type(q, kind) * y + I.as_type(r, kind) - x) & I.mask(bits) == 0
                    assert abs(I.as_type(r, kind)) < abs(y)
                high, low = I.multiply(kind, "hi", a, b), I.multiply(kind, "lo", a, b)
                assert (
                    I.signed(high << bits | low, 2 * bits) == I.as_type(a, kind) * I.as_type(b, kind) or kind[0] == "u"
                )
    assert (
        I.reverse(1, 32) == 1 << 31
        and I.look_up(0x96, 0b1100, 0b1010, 0b1001) == 0b1111
        and I.permute("", 0x33221100, 0x77665544, 0x7531) == 0x77553311
    )


for check in (
    check_double_arithmetic,
    check_directed_rounding,
    check_narrowing,
    check_round_trips,
    check_functions,
    check_integers,
):
    check()
    print(f"{check.__name__}: ok")
