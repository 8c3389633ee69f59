# SPDX-License-Identifier: Apache-2.0
"""Sums of products as the tensor cores of compute capability 9.0 take them, exactly. The manual leaves order and precision open; this
is the published model (Xie and others, "MMA-Sim", arXiv 2511.10909; Khattak and Mikaitis, arXiv 2512.07004): C's element and all products are
cut off, toward zero, `fraction` bits below the largest of their exponents, and added; an f32 is that sum cut off, an f16 rounded to
the nearest. Every value is finite."""
from fractions import Fraction

from .formats import FORMATS, exponent_of, number, pack, power, unpack

FRACTION, KEPT = 25, 23  # bits
SMALL_FRACTION, SMALL_KEPT = 13, 13  # wgmma of e4m3 and e5m2


def cut(value, unit):
    """Toward zero to a multiple of `unit`."""
    size = abs(value) // unit * unit
    return -size if value < 0 else size


def parts(kind, bits):
    """The value; its exponent, of a subnormal number that of the smallest normal one, of zero None."""
    value = unpack(FORMATS[kind], bits).value
    return value, max(exponent_of(abs(value)), FORMATS[kind].least_exponent) if value else None


def one_sum(d_kind, products, first, fraction, kept):
    """The bits of D's element; products, first: (value, exponent)."""
    top = max((e for v, e in [*products, first] if v), default=None)
    if top is None:
        return 0
    total = sum(cut(v, power(top - fraction)) for v, _ in [*products, first])
    if total and d_kind == "f32":
        total = cut(total, power(max(exponent_of(abs(total)), -126) - kept))
    return pack(FORMATS[d_kind], number(Fraction(total)))


def tensor_product(kinds, a, b, c, fraction=FRACTION, kept=KEPT):
    """d = a * b + c as bits of kinds[0]; kinds: d, a, b, c."""
    d_kind, a_kind, b_kind, c_kind = kinds
    left, across = [[parts(a_kind, x) for x in row] for row in a], list(zip(*[[parts(b_kind, x) for x in row] for row in b]))
    multiply = lambda x, y: (x[0] * y[0], x[1] + y[1] if x[0] and y[0] else None)
    return [
        [one_sum(d_kind, [multiply(x, y) for x, y in zip(row, column)], parts(c_kind, first), fraction, kept) for column, first in zip(across, before)]
        for row, before in zip(left, c)
    ]


def spread_element(kind, random, spread):
    """Any fraction, an exponent within `spread` of 0; now and then zero."""
    form = FORMATS[kind]
    if random.below(16) == 0:
        return 0
    exponent = random.below(2 * spread + 1) - spread + form.bias
    mantissa = random.bits(form.mantissa_bits) & ((1 << form.mantissa_bits) - 2)
    return (random.bits(1) << (form.exponent_bits + form.mantissa_bits) | max(exponent, 0) << form.mantissa_bits | mantissa) << form.shift


SPREADS = {"f16": 5, "bf16": 12, "tf32": 12, "f32": 14, "e4m3": 5, "e5m2": 6}


def spread_matrix(kind, rows, columns, random, spread=None):
    return [[spread_element(kind, random, SPREADS[kind] if spread is None else spread) for _ in range(columns)] for _ in range(rows)]
