# SPDX-License-Identifier: Apache-2.0
"""cvt: PTX ISA 9.7.9.21. Operands and results are bit patterns."""
from fractions import Fraction

from . import integers as I
from .arithmetic import clamp_to_unit
from .formats import (
    ANY_NAN,
    E4M3,
    E5M2,
    FORMATS,
    NAN,
    Number,
    canonical_nan,
    flush,
    number,
    pack,
    round_to_integer,
    special_bits,
    unpack,
)


def is_float(kind):
    return kind in FORMATS


def integer_to_integer(dtype, atype, a, sat):
    value = I.as_type(a, atype)
    return (I.saturate(value, dtype) if sat else value) & I.mask(I.width(dtype))


def integer_to_float(dtype, atype, a, mode, sat):
    value = number(I.as_type(a, atype))
    return pack(FORMATS[dtype], clamp_to_unit(value) if sat else value, mode)


def nan_to_integer(dtype, atype):
    """Zero, or 1 << (bits - 1) where a 64-bit type is involved."""
    if atype != "f64" and dtype not in ("s64", "u64"):
        return 0
    return 1 << (I.width(dtype) - 1)


def float_to_integer(dtype, atype, a, mode, ftz):
    value = unpack(FORMATS[atype], a)
    if ftz and atype == "f32":
        value = flush(FORMATS[atype], value)
    if value.nan:
        return nan_to_integer(dtype, atype)
    if value.inf:
        whole = -(1 << 80) if value.sign else 1 << 80
    else:
        whole = round_to_integer(value.value, mode)
    return I.saturate(whole, dtype) & I.mask(I.width(dtype))


def round_to_whole(value, mode):
    """A float rounded to a whole number, keeping its sign on zero."""
    if value.kind != "finite":
        return value
    return Number(value.sign, "finite", Fraction(abs(round_to_integer(value.value, mode))))


def float_to_float(dtype, atype, a, mode="rn", ftz=False, sat=False, relu=False, satfinite=False):
    value = unpack(FORMATS[atype], a)
    if ftz and atype == "f32":
        value = flush(FORMATS[atype], value)
    if mode in ("rni", "rzi", "rmi", "rpi"):
        value, mode = round_to_whole(value, mode), "rn"
    if sat:
        value = clamp_to_unit(value)
    if relu and value.nan:
        return canonical_nan(FORMATS[dtype])
    if relu and value.sign:
        value = Number(0, "finite")
    result = pack(FORMATS[dtype], value, mode, ftz and dtype == "f32", saturate=satfinite)
    if dtype == atype and result == ANY_NAN:
        return ANY_NAN
    return result


def pair(dtype, a, b, mode="rn", relu=False, satfinite=False):
    """cvt.rn.f16x2.f32 d, a, b: a in the upper half. None where a half is any NaN (one pattern cannot say that)."""
    high = float_to_float(dtype, "f32", a, mode, relu=relu, satfinite=satfinite)
    low = float_to_float(dtype, "f32", b, mode, relu=relu, satfinite=satfinite)
    return (low, high)


def to_fp8(form, value):
    """One byte, round to nearest even, to the largest finite value beyond it; NaN is 0x7f (e4m3) or 0x7f (e5m2)."""
    if value.nan:
        return special_bits(form, NAN)
    return pack(form, value, "rn", saturate=True)


def fp8_pair(name, a, b):
    form = E4M3 if name == "e4m3x2" else E5M2
    return to_fp8(form, a) << 8 | to_fp8(form, b)


__all__ = [
    "is_float",
    "integer_to_integer",
    "integer_to_float",
    "float_to_integer",
    "float_to_float",
    "pair",
    "fp8_pair",
]
