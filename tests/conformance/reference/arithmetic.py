# SPDX-License-Identifier: Apache-2.0
"""Floating-point instructions on exact numbers: PTX ISA 9.7.3 (single and double) and 9.7.4 (half precision).

Each function takes the format, operand bits, and the instruction's modifiers, and returns the expected bits (or ANY_NAN,
or SKIP). The modifiers: mode rn rz rm rp, ftz, sat (clamp to [0, 1], NaN to +0), relu (negative to 0).
"""
from fractions import Fraction
from math import isqrt

from .formats import (
    ANY_NAN,
    NAN,
    Number,
    canonical_nan,
    finite_bits,
    flush,
    infinity,
    number,
    pack,
    power,
    smallest_normal,
    unpack,
)


def operands(form, bits, ftz):
    numbers = [unpack(form, b) for b in bits]
    return [flush(form, n) for n in numbers] if ftz else numbers


def finish(form, result, mode="rn", ftz=False, sat=False, relu=False):
    if sat:
        result = clamp_to_unit(result)
    if relu:
        if result.nan:
            return canonical_nan(form)
        if result.sign:
            result = Number(0, "finite")
    return pack(form, result, mode, ftz)


def clamp_to_unit(result):
    if result.nan or result.sign:
        return Number(0, "finite")
    if result.inf or result.size > 1:
        return Number(0, "finite", Fraction(1))
    return result


def negate(n):
    return n._replace(sign=1 - n.sign)


def add_numbers(a, b, mode):
    if a.nan or b.nan or (a.inf and b.inf and a.sign != b.sign):
        return NAN
    if a.inf or b.inf:
        return a if a.inf else b
    if a.zero and b.zero and a.sign == b.sign:
        return a
    return number(a.value + b.value, sign_of_zero=int(mode == "rm"))


def multiply_numbers(a, b):
    sign = a.sign ^ b.sign
    if a.nan or b.nan or (a.inf and b.zero) or (a.zero and b.inf):
        return NAN
    if a.inf or b.inf:
        return infinity(sign)
    return Number(sign, "finite", a.size * b.size)


def divide_numbers(a, b):
    sign = a.sign ^ b.sign
    if a.nan or b.nan or (a.inf and b.inf) or (a.zero and b.zero):
        return NAN
    if a.inf or b.zero:
        return infinity(sign)
    if b.inf:
        return Number(sign, "finite")
    return Number(sign, "finite", a.size / b.size)


def root_number(a):
    """A square root to 300 bits, with a last bit that keeps an inexact one off every tie and every exact value."""
    if a.nan or (a.sign and not a.zero):
        return NAN
    if a.inf or a.zero:
        return a
    scale = 600
    scaled = a.size * power(2 * scale)
    whole = isqrt(scaled.numerator // scaled.denominator)
    exact = whole * whole == scaled
    root = Fraction(2 * whole + (0 if exact else 1), 2) / power(scale)
    return Number(0, "finite", root)


def add(form, a, b, mode="rn", ftz=False, sat=False):
    x, y = operands(form, (a, b), ftz)
    return finish(form, add_numbers(x, y, mode), mode, ftz, sat)


def sub(form, a, b, mode="rn", ftz=False, sat=False):
    x, y = operands(form, (a, b), ftz)
    return finish(form, add_numbers(x, negate(y), mode), mode, ftz, sat)


def mul(form, a, b, mode="rn", ftz=False, sat=False):
    x, y = operands(form, (a, b), ftz)
    return finish(form, multiply_numbers(x, y), mode, ftz, sat)


def fma(form, a, b, c, mode="rn", ftz=False, sat=False, relu=False):
    x, y, z = operands(form, (a, b, c), ftz)
    return finish(form, add_numbers(multiply_numbers(x, y), z, mode), mode, ftz, sat, relu)


def div(form, a, b, mode="rn", ftz=False):
    x, y = operands(form, (a, b), ftz)
    return finish(form, divide_numbers(x, y), mode, ftz)


def rcp(form, a, mode="rn", ftz=False):
    (x,) = operands(form, (a,), ftz)
    return finish(form, divide_numbers(number(1), x), mode, ftz)


def sqrt(form, a, mode="rn", ftz=False):
    (x,) = operands(form, (a,), ftz)
    return finish(form, root_number(x), mode, ftz)


def absolute(form, a, ftz=False):
    (x,) = operands(form, (a,), ftz)
    return ANY_NAN if x.nan else pack(form, x._replace(sign=0))


def neg(form, a, ftz=False):
    (x,) = operands(form, (a,), ftz)
    return ANY_NAN if x.nan else pack(form, negate(x))


def copysign(form, a, b):
    """The sign of a, the rest of b."""
    sign = 1 << (form.bits - 1)
    return (a & sign) | (b & ~sign)


def order_key(n):
    """Sorts numbers with -0 below +0."""
    if n.inf:
        return (-1 if n.sign else 1, 0, 0)
    return (0, n.value, 0 if n.sign else 1)


def pick(a, b, largest, nan):
    if a.nan and b.nan:
        return NAN
    if a.nan or b.nan:
        return NAN if nan else (b if a.nan else a)
    return (max if largest else min)(a, b, key=order_key)


def min_max(form, bits, largest, ftz=False, nan=False, xorsign=False, absolute_value=False):
    """min and max of two or three values; with .NaN a NaN operand gives the canonical NaN."""
    numbers = operands(form, bits, ftz)
    sign = numbers[0].sign ^ numbers[1].sign
    if absolute_value:
        numbers = [n._replace(sign=0) for n in numbers]
    result = numbers[0]
    for other in numbers[1:]:
        result = pick(result, other, largest, nan)
    if result.nan:
        return canonical_nan(form) if nan else ANY_NAN
    return pack(form, result._replace(sign=sign) if xorsign else result)


def compare(form, operation, a, b, ftz=False):
    """setp's floating-point comparisons: PTX ISA 9.3.1.2."""
    x, y = operands(form, (a, b), ftz)
    unordered = x.nan or y.nan
    if operation == "num":
        return not unordered
    if operation == "nan":
        return unordered
    if unordered:
        return operation in ("equ", "neu", "ltu", "leu", "gtu", "geu")
    relation = operation[:2]
    p = Number(0, "finite") if x.zero else x
    q = Number(0, "finite") if y.zero else y
    return compare_keys(relation, order_key(p), order_key(q))


def compare_keys(relation, p, q):
    return {
        "eq": p == q,
        "ne": p != q,
        "lt": p < q,
        "le": p <= q,
        "gt": p > q,
        "ge": p >= q,
        "lo": p < q,
        "ls": p <= q,
        "hi": p > q,
        "hs": p >= q,
    }[relation]


def testp(form, operation, a):
    x = unpack(form, a)
    subnormal = x.kind == "finite" and 0 < x.size < smallest_normal(form)
    return {
        "finite": x.kind == "finite",
        "infinite": x.inf,
        "number": not x.nan,
        "notanumber": x.nan,
        "normal": x.kind == "finite" and not subnormal,
        "subnormal": subnormal,
    }[operation]


def one(form):
    return finite_bits(form, 0, Fraction(1))
