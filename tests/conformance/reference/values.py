# SPDX-License-Identifier: Apache-2.0
"""Types, input values, and how both are written in a conformance file.

A value is a bit pattern of its type's width. Inputs are the edge cases of the type crossed with each other, then random
patterns from our own generator, seeded by the name of the case, so that the same case is made every time.
"""
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256
from struct import pack as pack_struct, unpack as unpack_struct

from .formats import ANY_NAN, FORMATS, finite_bits, number, pack, unpack

PACKED = {"f16x2": "f16", "bf16x2": "bf16"}


def bits_of(kind):
    if kind in FORMATS:
        return FORMATS[kind].bits if kind != "tf32" else 32
    return 32 if kind in PACKED or kind.endswith("16x2") else int(kind[1:])


class Random:
    """A 64-bit linear congruential generator; the high bits are used."""

    def __init__(self, name):
        self.state = int.from_bytes(sha256(name.encode()).digest()[:8], "little")

    def word(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) & (1 << 64) - 1
        return self.state >> 32

    def below(self, limit):
        return self.word() * limit >> 32

    def bits(self, count):
        out = 0
        for start in range(0, count, 16):
            out |= (self.word() >> 16) << start
        return out & (1 << count) - 1

    def choose(self, values):
        return values[self.below(len(values))]

    def shuffle(self, values):
        for i in range(len(values) - 1, 0, -1):
            j = self.below(i + 1)
            values[i], values[j] = values[j], values[i]
        return values


def float_edges(form):
    """Zeros, infinities, NaN, the smallest and largest numbers, one and its neighbours."""
    m = form.mantissa_bits
    sign = 1 << (form.bits - 1)
    one = finite_bits(form, 0, Fraction(1))
    infinity = ((1 << form.exponent_bits) - 1) << m
    positive = [
        0,
        1,
        (1 << m) - 1,
        1 << m,
        one - 1,
        one,
        one + 1,
        one + (1 << (m - 1)),
        one + (1 << m),
        infinity - 1,
        infinity,
        infinity | 1 << (m - 1),
        5 << (m - 2),
    ]
    return positive + [p | sign for p in positive if p != infinity | 1 << (m - 1)]


def integer_edges(bits):
    top = 1 << (bits - 1)
    return [
        0,
        1,
        2,
        3,
        7,
        top - 1,
        top,
        top + 1,
        (1 << bits) - 1,
        (1 << bits) - 2,
        (1 << bits // 2) - 1,
        1 << bits // 2,
        0x5555555555555555 & (1 << bits) - 1,
        0xAAAAAAAAAAAAAAAA & (1 << bits) - 1,
    ]


def edges(kind):
    if kind in FORMATS and kind != "tf32":
        return float_edges(FORMATS[kind])
    if kind in PACKED:
        halves = float_edges(FORMATS[PACKED[kind]])
        return [h << 16 | halves[(i * 7 + 3) % len(halves)] for i, h in enumerate(halves)]
    return integer_edges(bits_of(kind))


def random_value(kind, random):
    """Floats: mostly of moderate size, so that results are numbers; sometimes any pattern."""
    if kind in PACKED:
        half = PACKED[kind]
        return random_value(half, random) << 16 | random_value(half, random)
    if kind not in FORMATS or random.below(4) == 0:
        return random.bits(bits_of(kind))
    form = FORMATS[kind]
    exponent = form.bias - 6 + random.below(12)
    mantissa = random.bits(form.mantissa_bits)
    return random.below(2) << (form.bits - 1) | exponent << form.mantissa_bits | mantissa


def rows(kinds, count, random, edge_lists=None):
    """`count` tuples of operands: about two thirds edges crossed with edges."""
    lists = [list(e) for e in (edge_lists or [edges(k) for k in kinds])]
    if len(kinds) == 1:
        out = [(v,) for v in lists[0][:count]]
    else:
        out = []
        while len(out) < 2 * count // 3:
            shuffled = [random.shuffle(list(e)) for e in lists]
            longest = max(len(e) for e in shuffled)
            out += [tuple(e[i % len(e)] for e in shuffled) for i in range(longest)]
        out = out[: 2 * count // 3]
    while len(out) < count:
        out.append(tuple(random_value(k, random) for k in kinds))
    return out


STRUCT_CODES = {"f16": ("<e", "<H"), "f32": ("<f", "<I"), "f64": ("<d", "<Q")}


@lru_cache(maxsize=None)
def shortest_float(form, bits):
    """The shortest decimal that rounds to this pattern."""
    value = unpack(form, bits)
    if value.inf:
        return "-inf" if value.sign else "inf"
    if value.zero:
        return "-0" if value.sign else "0"
    size_bits = bits & ~(1 << (form.bits - 1))
    exact = float(value.size)  # every format's values are doubles
    if form.name == "f64":
        text = repr(exact)
    else:
        text = next(t for t in (f"{exact:.{digits}g}" for digits in range(1, 18)) if rounds_to(form, t, size_bits))
    text = text.replace("e+", "e").removesuffix(".0")
    return ("-" if value.sign else "") + text


def rounds_to(form, text, size_bits):
    if form.name not in STRUCT_CODES:
        return pack(form, number(Fraction(Decimal(text)))) == size_bits
    real, integer = STRUCT_CODES[form.name]
    try:
        return unpack_struct(integer, pack_struct(real, float(text)))[0] == size_bits
    except OverflowError:
        return False


def write(kind, value):
    """One value as a file has it. NaN as an expectation is `nan` (any); a NaN pattern is written in hexadecimal."""
    if isinstance(value, Decimal):
        return f"{value:.20g}".replace("e+", "e")
    if isinstance(value, tuple):  # low and high half
        half = PACKED[kind]
        return ",".join(write(half, v) for v in value)
    if value == ANY_NAN:
        return "nan"
    if kind in PACKED:
        half = PACKED[kind]
        return write(half, value & 0xFFFF) + "," + write(half, value >> 16)
    if kind in FORMATS and kind != "tf32":
        if unpack(FORMATS[kind], value).nan:
            return f"0x{value:0{FORMATS[kind].bits // 4}x}"
        return shortest_float(FORMATS[kind], value)
    bits = bits_of(kind)
    if kind[0] == "s" and not kind.endswith("x2"):
        number_ = value - (1 << bits) if value >> (bits - 1) else value
        return str(number_) if abs(number_) < 100000 else f"0x{value:x}"
    return str(value) if value < 100000 and kind[0] == "u" else f"0x{value:x}"
