# SPDX-License-Identifier: Apache-2.0
"""Integer instructions: PTX ISA 9.7.1, 9.7.2, 9.7.8. Operands and results are bit patterns (non-negative ints)."""


def width(kind):
    """The bits of an integer type's name: s32 -> 32."""
    return int(kind[1:])


def mask(bits):
    return (1 << bits) - 1


def signed(value, bits):
    value &= mask(bits)
    return value - (1 << bits) if value >> (bits - 1) else value


def as_type(value, kind):
    """A pattern as the number that a type gives it."""
    return signed(value, width(kind)) if kind[0] == "s" else value & mask(width(kind))


def clamp(value, low, high):
    return low if value < low else high if value > high else value


def saturate(value, kind):
    bits = width(kind)
    if kind[0] == "s":
        return clamp(value, -(1 << (bits - 1)), mask(bits - 1))
    return clamp(value, 0, mask(bits))


def multiply(kind, mode, a, b):
    """mul.lo, mul.hi: a pattern of the type's width; mul.wide: of twice the width."""
    product = as_type(a, kind) * as_type(b, kind)
    bits = width(kind)
    if mode == "wide":
        return product & mask(2 * bits)
    return (product >> bits if mode == "hi" else product) & mask(bits)


def multiply24(kind, mode, a, b):
    """48-bit product of the low 24 bits: bits 47..16 for .hi, 31..0 for .lo."""
    x, y = ((signed(v, 24) if kind == "s32" else v & mask(24)) for v in (a, b))
    return (x * y >> (16 if mode == "hi" else 0)) & mask(32)


def mad_sat(high, c):
    return saturate(signed(high, 32) + signed(c, 32), "s32") & mask(32)


def divide(kind, a, b):
    """Rounds towards zero. None for a zero divisor (unspecified)."""
    x, y = as_type(a, kind), as_type(b, kind)
    if y == 0:
        return None
    quotient = abs(x) // abs(y)
    return (-quotient if (x < 0) != (y < 0) else quotient) & mask(width(kind))


def remainder(kind, a, b):
    quotient = divide(kind, a, b)
    if quotient is None:
        return None
    bits = width(kind)
    x, y = as_type(a, kind), as_type(b, kind)
    exact = abs(x) // abs(y) * (-1 if (x < 0) != (y < 0) else 1)
    return (x - exact * y) & mask(bits)


def find_leading(kind, a, shift_amount):
    bits = width(kind)
    value = as_type(a, kind)
    if value < 0:
        value = ~value
    if value == 0:
        return mask(32)
    position = value.bit_length() - 1
    return bits - 1 - position if shift_amount else position


def reverse(a, bits):
    return int(format(a, f"0{bits}b")[::-1], 2)


def extract_field(kind, a, b, c):
    bits = width(kind)
    msb, position, length = bits - 1, b & 255, c & 255
    sign = 0
    if kind[0] == "s" and length:
        sign = a >> min(position + length - 1, msb) & 1
    out = 0
    for i in range(bits):
        inside = i < length and position + i <= msb
        out |= (a >> (position + i) & 1 if inside else sign) << i
    return out


def insert_field(bits, a, b, c, d):
    position, length = c & 255, d & 255
    out = b
    for i in range(length):
        if position + i >= bits:
            break
        out = out & ~(1 << (position + i)) | (a >> i & 1) << (position + i)
    return out


def extend(kind, mode, a, b):
    """szext."""
    count = b & 31
    too_large = b >= 32 and mode == "clamp"
    field = 0 if too_large else mask(32) << count & mask(32)
    sign = 0
    if count and not too_large and kind == "s32":
        sign = a >> (count - 1) & 1
    return (a & ~field | (field if sign else 0)) & mask(32)


def bit_mask(mode, a, b):
    """bmsk: `b` ones from position `a` up."""
    if mode == "wrap":
        a, b = a & 31, b & 31
    if a >= 32 or b == 0:
        return 0
    return mask(min(b, 32)) << a & mask(32)


def nth_set(value, base, offset):
    offset = signed(offset, 32)
    if offset == 0:
        return base if value >> base & 1 else mask(32)
    step = 1 if offset > 0 else -1
    left, position = abs(offset), base
    while 0 <= position < 32:
        if value >> position & 1:
            left -= 1
            if left == 0:
                return position
        position += step
    return mask(32)


def parts(value, count, bits, kind):
    """The `count` fields of `bits` bits, lowest first, signed if the type is."""
    fields = [value >> (i * bits) & mask(bits) for i in range(count)]
    return [signed(f, bits) for f in fields] if kind[0] == "s" else fields


def join(fields, bits):
    return sum((f & mask(bits)) << (i * bits) for i, f in enumerate(fields))


def dot4(atype, btype, a, b, c):
    return (c + sum(x * y for x, y in zip(parts(a, 4, 8, atype), parts(b, 4, 8, btype)))) & mask(32)


def dot2(mode, atype, btype, a, b, c):
    chosen = parts(b, 4, 8, btype)[0 if mode == "lo" else 2 :][:2]
    return (c + sum(x * y for x, y in zip(parts(a, 2, 16, atype), chosen))) & mask(32)


def shift_left(bits, a, b):
    return a << b & mask(bits) if b < bits else 0


def shift_right(kind, a, b):
    bits = width(kind)
    return as_type(a, kind) >> min(b, bits) & mask(bits)


def funnel(direction, mode, a, b, c):
    count = min(c, 32) if mode == "clamp" else c & 31
    both = b << 32 | a
    return (both << count >> 32 if direction == "l" else both >> count) & mask(32)


def look_up(table, a, b, c):
    """lop3: bit i of the result is bit (a_i b_i c_i) of the table."""
    out = 0
    for i in range(32):
        index = (a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)
        out |= (table >> index & 1) << i
    return out


PERMUTE_MODES = {  # the four source bytes, lowest destination byte first, for c & 3 = 0..3
    "f4e": [(0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)],
    "b4e": [(0, 7, 6, 5), (1, 0, 7, 6), (2, 1, 0, 7), (3, 2, 1, 0)],
    "rc8": [(0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)],
    "ecl": [(0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 2, 3), (3, 3, 3, 3)],
    "ecr": [(0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)],
    "rc16": [(0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)],
}


def permute(mode, a, b, c):
    source = parts(b << 32 | a, 8, 8, "u8")
    if mode:
        return join([source[i] for i in PERMUTE_MODES[mode][c & 3]], 8)
    out = []
    for control in parts(c, 4, 4, "u4"):
        byte = source[control & 7]
        out.append((0xFF if byte >> 7 else 0) if control >> 3 else byte)
    return join(out, 8)


def sum_of_differences(kind, a, b, c):
    return (c + abs(as_type(a, kind) - as_type(b, kind))) & mask(width(kind))


def video(operation, count, dtype, atype, btype, a, b, c, sat=False, add=False):
    """vadd2, vabsdiff4, ... with default selectors and mask: PTX ISA 9.7.18.2."""
    bits = 32 // count
    out = []
    for x, y in zip(parts(a, count, bits, atype), parts(b, count, bits, btype)):
        value = {
            "vadd": x + y,
            "vsub": x - y,
            "vabsdiff": abs(x - y),
            "vmin": min(x, y),
            "vmax": max(x, y),
            "vavrg": (x + y + (1 if x + y >= 0 else 0)) >> 1,
        }[operation]
        out.append(saturate(value, f"{dtype[0]}{bits}") if sat else value)
    return (c + sum(out)) & mask(32) if add else join(out, bits)
