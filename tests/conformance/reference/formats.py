# SPDX-License-Identifier: Apache-2.0
"""Binary floating-point formats, exactly.

A value is a Number: NaN, an infinity, or a sign with a Fraction. Arithmetic is done on Fractions without error and
rounded once, by `pack`, in the mode that the instruction names. Nothing here uses the host's floating point.
"""
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple


class Format(NamedTuple):
    name: str
    bits: int
    exponent_bits: int
    mantissa_bits: int
    has_infinity: bool = True  # e4m3 has none: its largest exponent holds numbers, all ones is NaN
    shift: int = 0  # tf32 stands in the upper bits of 32
    has_nan: bool = True

    @property
    def bias(self):
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def least_exponent(self):  # of the normal numbers
        return 1 - self.bias

    @property
    def largest(self):
        if self.has_infinity:
            return (2 - Fraction(1, 1 << self.mantissa_bits)) * power(self.bias)
        return (2 - Fraction(2, 1 << self.mantissa_bits)) * power(self.bias + 1)


F16 = Format("f16", 16, 5, 10)
BF16 = Format("bf16", 16, 8, 7)
TF32 = Format("tf32", 19, 8, 10, shift=13)
F32 = Format("f32", 32, 8, 23)
F64 = Format("f64", 64, 11, 52)
E4M3 = Format("e4m3", 8, 4, 3, has_infinity=False)
E5M2 = Format("e5m2", 8, 5, 2)
E2M1, E2M3, E3M2 = (Format(name, 1 + e + m, e, m, has_infinity=False, has_nan=False) for name, e, m in (("e2m1", 2, 1), ("e2m3", 2, 3), ("e3m2", 3, 2)))
FORMATS = {f.name: f for f in (F16, BF16, TF32, F32, F64, E4M3, E5M2)}


class Number(NamedTuple):
    sign: int
    kind: str  # "nan", "inf", "finite"
    size: Fraction = Fraction(0)  # magnitude of a finite number

    @property
    def nan(self):
        return self.kind == "nan"

    @property
    def inf(self):
        return self.kind == "inf"

    @property
    def zero(self):
        return self.kind == "finite" and self.size == 0

    @property
    def value(self):  # of a finite number
        return -self.size if self.sign else self.size


NAN = Number(0, "nan")
ANY_NAN = "nan"  # an expectation: any NaN will do
SKIP = None  # an expectation: the manual does not say; the lane is left out


def power(exponent):
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def scaled(integer, exponent):
    """integer * 2^exponent"""
    return Fraction(integer << exponent) if exponent >= 0 else Fraction(integer, 1 << -exponent)


def infinity(sign):
    return Number(sign, "inf")


def number(value, sign_of_zero=0):
    if value == 0:
        return Number(sign_of_zero, "finite")
    return Number(int(value < 0), "finite", abs(Fraction(value)))


@lru_cache(maxsize=1 << 16)
def unpack(form, bits):
    """The Number that a pattern stands for."""
    bits >>= form.shift
    mantissa = bits & ((1 << form.mantissa_bits) - 1)
    exponent = bits >> form.mantissa_bits & ((1 << form.exponent_bits) - 1)
    sign = bits >> (form.mantissa_bits + form.exponent_bits) & 1
    top = (1 << form.exponent_bits) - 1
    if exponent == top and form.has_infinity:
        return Number(sign, "nan") if mantissa else infinity(sign)
    if form.has_nan and exponent == top and mantissa == (1 << form.mantissa_bits) - 1:
        return Number(sign, "nan")
    if exponent == 0:
        return Number(sign, "finite", scaled(mantissa, form.least_exponent - form.mantissa_bits))
    return Number(
        sign, "finite", scaled(mantissa + (1 << form.mantissa_bits), exponent - form.bias - form.mantissa_bits)
    )


def exponent_of(size):
    """floor(log2(size)) of a positive Fraction."""
    top, bottom = size.numerator, size.denominator
    guess = top.bit_length() - bottom.bit_length()
    fits = bottom << guess <= top if guess >= 0 else bottom <= top << -guess
    return guess if fits else guess - 1


def round_quotient(top, bottom, negative, mode):
    """top / bottom (not negative) as the magnitude of a number of that sign, to an integer: rn/rni (ties to even), rna (ties
    away), rz/rzi, rm/rmi, rp/rpi."""
    floor, rest = divmod(top, bottom)
    if rest == 0:
        return floor
    direction = mode[:2]
    if mode == "rna":
        return floor + (2 * rest >= bottom)
    if direction == "rn":
        return floor + (2 * rest > bottom or (2 * rest == bottom and floor & 1))
    return floor + (direction == ("rm" if negative else "rp"))


def round_to_integer(value, mode):
    """A Fraction of any sign."""
    size = round_quotient(abs(value.numerator), value.denominator, value < 0, mode)
    return -size if value < 0 else size


@lru_cache(maxsize=None)
def smallest_normal(form):
    return power(form.least_exponent)


def special_bits(form, number):
    sign = number.sign << (form.exponent_bits + form.mantissa_bits)
    top = ((1 << form.exponent_bits) - 1) << form.mantissa_bits
    if number.nan:
        return (top | ((1 << form.mantissa_bits) - 1)) << form.shift
    return (sign | top) << form.shift


def overflow_bits(form, sign, mode, saturate):
    """The rounded value is beyond the largest finite one."""
    to_infinity = mode in ("rn", "rna") or mode == ("rm" if sign else "rp")
    if to_infinity and not saturate and form.has_infinity:
        return special_bits(form, infinity(sign))
    if to_infinity and not saturate:
        return special_bits(form, NAN)
    return finite_bits(form, sign, form.largest)


def finite_bits(form, sign, size):
    """A magnitude that the format holds exactly."""
    out = sign << (form.exponent_bits + form.mantissa_bits)
    if size:
        exponent = max(exponent_of(size), form.least_exponent)
        units = size / power(exponent - form.mantissa_bits)
        assert units.denominator == 1
        mantissa = units.numerator
        if mantissa >> form.mantissa_bits:
            mantissa += (exponent - form.least_exponent) << form.mantissa_bits
        out |= mantissa
    return out << form.shift


def pack(form, number, mode="rn", ftz=False, saturate=False):
    """The bits of a Number, rounded once. ANY_NAN for a NaN. SKIP where flushing would depend on whether smallness is
    detected before or after rounding (the manual does not say). `saturate`: to the largest finite value (.satfinite).
    """
    if number.nan:
        return ANY_NAN
    sign = number.sign << (form.exponent_bits + form.mantissa_bits)
    if number.inf:
        return finite_bits(form, number.sign, form.largest) if saturate else special_bits(form, number)
    if number.size == 0:
        return sign << form.shift
    exponent = max(exponent_of(number.size), form.least_exponent)
    top, bottom, up = number.size.numerator, number.size.denominator, form.mantissa_bits - exponent
    units = round_quotient(top << up if up > 0 else top, bottom if up > 0 else bottom << -up, number.sign, mode)
    magnitude = units + (exponent - form.least_exponent << form.mantissa_bits)  # units may carry into the exponent
    if magnitude > largest_bits(form):
        return overflow_bits(form, number.sign, mode, saturate)
    if ftz and number.size < smallest_normal(form):
        if magnitude >> form.mantissa_bits:
            return SKIP
        magnitude = 0
    return (sign | magnitude) << form.shift


def largest_bits(form):
    """The magnitude of the largest finite value."""
    top = (1 << form.exponent_bits) - 1 << form.mantissa_bits
    return top - 1 if form.has_infinity else top + (1 << form.mantissa_bits) - 2


def flush(form, number):
    """A subnormal input under .ftz."""
    if number.kind == "finite" and number.size < smallest_normal(form):
        return Number(number.sign, "finite")
    return number


def canonical_nan(form):
    return special_bits(form, NAN)


def is_nan_bits(form, bits):
    return unpack(form, bits).nan
