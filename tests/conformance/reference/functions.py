# SPDX-License-Identifier: Apache-2.0
"""Reference values of the approximate functions: PTX ISA 9.7.3.13 to 9.7.3.22, 9.7.4.9, 9.7.4.10.

Each takes a Number and returns a Number (for the exact special cases of the manual's tables) or a decimal with at least
40 right digits. Series are summed with 70 digits; the arguments are exact.
"""
from decimal import Decimal, getcontext, localcontext

from .formats import NAN, Number, infinity, number

getcontext().prec = 70
getcontext().Emin, getcontext().Emax = -(10**6), 10**6


def to_decimal(fraction):
    return Decimal(fraction.numerator) / Decimal(fraction.denominator)


def arctan_of_inverse(n):
    """arctan(1 / n)."""
    term = total = Decimal(1) / n
    k, square = 1, n * n
    while abs(term) > Decimal(10) ** -75:
        term = -term / square
        k += 2
        total += term / k
    return total


with localcontext() as context:
    context.prec = 90
    PI = 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))
    LN2 = Decimal(2).ln()


def sine_series(x, start, first):
    """sum of (-1)^k x^(2k + first) / (2k + first)!, from term `start`."""
    term, total, n = start, start, first
    while abs(term) > Decimal(10) ** -68:
        term = -term * x * x / ((n + 1) * (n + 2))
        n += 2
        total += term
    return total


def reduce_angle(x):
    """x - 2 pi k, to the same absolute precision for |x| up to 10^20."""
    turns = (x / (2 * PI)).to_integral_value()
    return x - turns * 2 * PI


def sin(a):
    if a.nan or a.inf:
        return NAN
    if a.zero:
        return a
    x = reduce_angle(to_decimal(a.value))
    return sine_series(x, x, 1)


def cos(a):
    if a.nan or a.inf:
        return NAN
    if a.zero:
        return number(1)
    return sine_series(reduce_angle(to_decimal(a.value)), Decimal(1), 0)


def lg2(a):
    if a.nan or (a.sign and not a.zero):
        return NAN
    if a.zero:
        return infinity(1)
    if a.inf:
        return a
    if a.size == 1:
        return number(0)
    return to_decimal(a.size).ln() / LN2


def ex2(a):
    if a.nan:
        return NAN
    if a.inf:
        return Number(0, "finite") if a.sign else a
    if a.zero:
        return number(1)
    if a.size > 100000:  # far beyond every format
        return Decimal("1e-30000" if a.sign else "1e30000")
    return (to_decimal(a.value) * LN2).exp()


def tanh(a):
    if a.nan:
        return NAN
    if a.inf:
        return number(-1 if a.sign else 1)
    if a.zero:
        return a
    x = to_decimal(a.size)
    if x > 200:
        return number(-1 if a.sign else 1)
    if x < Decimal(10) ** -20:
        result = x
    else:
        e = (2 * x).exp()
        result = (e - 1) / (e + 1)
    return -result if a.sign else result


def rcp(a):
    if a.nan:
        return NAN
    if a.inf or a.zero:
        return Number(a.sign, "finite") if a.inf else infinity(a.sign)
    return 1 / to_decimal(a.value)


def sqrt(a):
    if a.nan or (a.sign and not a.zero):
        return NAN
    if a.inf or a.zero:
        return a
    return to_decimal(a.size).sqrt()


def rsqrt(a):
    if a.nan or (a.sign and not a.zero):
        return NAN
    if a.zero:
        return infinity(a.sign)
    if a.inf:
        return Number(0, "finite")
    return 1 / to_decimal(a.size).sqrt()
