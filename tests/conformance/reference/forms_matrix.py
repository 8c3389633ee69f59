# SPDX-License-Identifier: Apache-2.0
"""Conformance cases of the warp-level matrix instructions: wmma, mma, ldmatrix, stmatrix, movmatrix. One warp.

Elements are chosen so that the exact result is what every order of accumulation gives before the last rounding. The lanes'
parts of a fragment are written out shape by shape as the manual's formulas have them (PTX ISA, "Matrix Fragments for mma")."""
from fractions import Fraction
from functools import lru_cache
from operator import and_, mul, xor

from .formats import E2M1, E2M3, E3M2, FORMATS, number, pack, unpack
from .tensor_sum import spread_matrix, tensor_product
from .values import Random
from .writer import Array, Case, head

LANES = 32
WORD = 0xFFFFFFFF


# ---- elements ----


def width(kind):
    return {"b1": 1, "u4": 4, "s4": 4, "u8": 8, "s8": 8, "f16": 16, "bf16": 16, "e4m3": 8, "e5m2": 8, "f64": 64}.get(kind, 32)


@lru_cache(maxsize=1 << 16)
def value_of(kind, bits):
    if kind in FORMATS:
        return unpack(FORMATS[kind], bits).value
    if kind[0] == "s" and bits >> (width(kind) - 1):
        return bits - (1 << width(kind))
    return bits


def bits_of_value(kind, value):
    if kind in FORMATS:
        return pack(FORMATS[kind], number(value))
    return int(value) & (1 << width(kind)) - 1


def element(kind, random):
    """A random element, with a fraction where that stays exact."""
    if kind in ("e4m3", "e5m2"):
        return bits_of_value(kind, Fraction(random.below(7) - 3, 2))
    if kind in FORMATS:
        return bits_of_value(kind, Fraction(random.below(65) - 32, 8))
    return random.bits(width(kind))


def matrix(kind, rows, columns, random):
    return [[element(kind, random) for _ in range(columns)] for _ in range(rows)]


def in_units(kind, elements):
    """The values of all elements as integers, in units of 1 / scale; and scale, a power of two. Sums of integers take a tenth of the
    time of sums of Fractions."""
    values = [[value_of(kind, bits) for bits in row] for row in elements]
    scale = max(value.denominator for row in values for value in row)
    return [[value.numerator * (scale // value.denominator) for value in row] for row in values], scale


@lru_cache(maxsize=1 << 16)
def bits_of_ratio(kind, numerator, denominator):
    return bits_of_value(kind, Fraction(numerator, denominator))


def product(kinds, a, b, c, operation=None, saturate=False):
    """d = a * b + c as bits of kinds[0]; kinds: d, a, b, c. Exact up to the last rounding."""
    d_kind, a_kind, b_kind, c_kind = kinds
    (left, a_scale), (right, b_scale), (addend, c_scale) = in_units(a_kind, a), in_units(b_kind, b), in_units(c_kind, c)
    columns = list(zip(*right))
    step = {"and": and_, "xor": xor, None: mul}[operation]
    scale = a_scale * b_scale
    out = []
    for row, before in zip(left, addend):
        out.append([])
        for column, first in zip(columns, before):
            total = sum(map(step, row, column)) * c_scale + first * scale
            if saturate:  # integers: both scales are 1
                total = max(-(1 << 31), min((1 << 31) - 1, total))
            out[-1].append(bits_of_ratio(d_kind, total, scale * c_scale))
    return out


# ---- wmma ----


def stored(kind, elements, column, stride):
    """The words of memory (of the kind's width; small ones in bytes) that hold a matrix."""
    rows, columns = len(elements), len(elements[0])
    lines, length = (columns, rows) if column else (rows, columns)
    flat = [0] * (lines * stride)
    for line in range(lines):
        for at in range(length):
            flat[line * stride + at] = elements[at][line] if column else elements[line][at]
    if width(kind) >= 8:
        return flat
    per = 32 // width(kind)
    return [sum(x << i * width(kind) for i, x in enumerate(flat[w : w + per])) for w in range(0, len(flat), per)]


def memory_kind(kind):
    return "b32" if width(kind) < 8 else f"b{width(kind)}"


def registers(kind, elements, multiplicand):
    return 8 if kind == "f16" and multiplicand else max(1, elements * width(kind) // LANES // max(32, width(kind)))


def names(letter, count):
    return "{" + ", ".join(f"%{letter}{i}" for i in range(count)) + "}"


def declare(letter, kind, count):
    return f"  .reg .{'b64' if kind == 'f64' else 'f32' if kind == 'f32' else 'b32'} %{letter}<{count}>;"


def wmma_file(shape, kinds, layouts, space="global", operation=None, saturate=False, extra=16):
    m, n, k = shape
    d_kind, a_kind, b_kind, c_kind = kinds
    a_column, b_column, c_column, d_column = (x == "c" for x in layouts)
    text = {False: "row", True: "col"}
    name = f"m{m}n{n}k{k}"
    types = ".".join((d_kind, c_kind) if a_kind == "f16" else kinds)
    op = f".{operation}.popc" if operation else ""
    full = f"wmma{op}.mma.{name}.{types}{'.satfinite' if saturate else ''}.{layouts}.{space}"
    random = Random(full)
    a, b, c = matrix(a_kind, m, k, random), matrix(b_kind, k, n, random), matrix(c_kind, m, n, random)
    if saturate:
        c = [[(0x7FFFFFFF, 0x80000000)[(i + j) % 2] for j in range(n)] for i in range(m)]
    d = product(kinds, a, b, c, operation, saturate)
    if width(a_kind) < 8:
        extra = 128 // width(a_kind)
    a_stride, b_stride = (m if a_column else k) + extra, (k if b_column else n) + extra
    c_stride, d_stride = (m if c_column else n) + 16, m if d_column else n
    arrays = [
        Array("in", "a", memory_kind(a_kind), stored(a_kind, a, a_column, a_stride)),
        Array("in", "b", memory_kind(b_kind), stored(b_kind, b, b_column, b_stride)),
        Array("in", "c", memory_kind(c_kind), stored(c_kind, c, c_column, c_stride)),
        Array("out", "d", memory_kind(d_kind), stored(d_kind, d, d_column, d_stride)),
    ]
    a_count, b_count = registers(a_kind, m * k, True), registers(b_kind, k * n, True)
    c_count, d_count = registers(c_kind, m * n, False), registers(d_kind, m * n, False)
    lines = [head((84, 90)) + ".visible .entry test(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)", "{"]
    lines += ["  .reg .u64 %a, %b, %c, %d; .reg .u32 %s, %t, %n, %x; .reg .pred %p; .reg .u64 %from, %to, %off;"]
    lines += [declare("a", a_kind, a_count), declare("b", b_kind, b_count), declare("c", c_kind, c_count), declare("d", d_kind, d_count)]
    lines += ["  ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; ld.param.u64 %c, [c]; ld.param.u64 %d, [d];"]
    ss = {"global": ".global", "shared": ".shared", "generic": ""}[space]
    if space == "shared":  # the lanes copy the words of a and b there first
        for letter, values, kind in (("a", arrays[0].values, a_kind), ("b", arrays[1].values, b_kind)):
            words = len(values) * max(width(kind), 32 if width(kind) < 8 else 8) // 32
            lines += [f"  .shared .align 32 .b32 area_{letter}[{words}]; mov.u32 %t, %tid.x;", f"copy_{letter}:"]
            lines += [f"  mul.wide.u32 %off, %t, 4; add.u64 %from, %{letter}, %off; mov.u64 %to, area_{letter}; add.u64 %to, %to, %off;"]
            lines += ["  ld.global.b32 %x, [%from]; st.shared.b32 [%to], %x; add.u32 %t, %t, 32;"]
            lines += [f"  setp.lt.u32 %p, %t, {words};", f"  @%p bra copy_{letter};", f"  mov.u64 %{letter}, area_{letter};"]
        lines += ["  bar.sync 0;"]
    lines += [f"  mov.u32 %s, {a_stride};"]
    lines += [f"  wmma.load.a.sync.aligned.{text[a_column]}.{name}{ss}.{a_kind} {names('a', a_count)}, [%a], %s;"]
    lines += [f"  wmma.load.b.sync.aligned.{text[b_column]}.{name}{ss}.{b_kind} {names('b', b_count)}, [%b], {b_stride};"]
    lines += [f"  wmma.load.c.sync.aligned.{text[c_column]}.{name}.global.{c_kind} {names('c', c_count)}, [%c], {c_stride};"]
    lines += [f"  wmma.mma{op}.sync.aligned.{text[a_column]}.{text[b_column]}.{name}.{types}{'.satfinite' if saturate else ''}"]
    lines += [f"    {names('d', d_count)}, {names('a', a_count)}, {names('b', b_count)}, {names('c', c_count)};"]
    lines += [f"  wmma.store.d.sync.aligned.{text[d_column]}.{name}.global.{d_kind} [%d], {names('d', d_count)};", "  ret;", "}"]
    return Case("wmma", full, "d = a * b + c", arrays, "\n".join(lines), ["launch: grid 1 block 32"])


def wmma_files():
    shapes = ((16, 16, 16), (32, 8, 16), (8, 32, 16))
    layouts = ("rrrr", "rcrc", "crcr", "cccc")
    for number_, shape in enumerate(shapes):
        for at, layout in enumerate(layouts):
            space = ("global", "shared", "generic")[(number_ + at) % 3]
            yield wmma_file(shape, ("f32", "f16", "f16", "f32"), layout, space)
            yield wmma_file(shape, ("s32", "u8", "u8", "s32"), layout, space)
        yield wmma_file(shape, ("f16", "f16", "f16", "f16"), ("rrrc", "crcr", "rcrr")[number_])
        yield wmma_file(shape, ("s32", "s8", "s8", "s32"), ("rcrr", "rrcc", "crrr")[number_], saturate=number_ == 0)
        yield wmma_file(shape, ("f32", "bf16", "bf16", "f32"), ("rcrr", "crcc", "rrrr")[number_])
    yield wmma_file((16, 16, 16), ("f32", "f16", "f16", "f16"), "rrrr")
    yield wmma_file((16, 16, 16), ("f16", "f16", "f16", "f32"), "rcrr")
    for layout in ("rrrr", "ccrc"):
        yield wmma_file((16, 16, 8), ("f32", "tf32", "tf32", "f32"), layout)
        yield wmma_file((8, 8, 4), ("f64",) * 4, layout)
    for kind in ("u4", "s4"):
        yield wmma_file((8, 8, 32), ("s32", kind, kind, "s32"), "rcrr", "shared" if kind == "u4" else "global")
    for operation in ("xor", "and"):
        yield wmma_file((8, 8, 128), ("s32", "b1", "b1", "s32"), "rcrr", operation=operation)


# ---- mma: lane, element -> (row, column) ----


def multiplicand_a(shape, kind):
    """As the manual's formulas for A; g: lane // 4, t: lane % 4."""
    m, _, k = shape
    size = width(kind)
    if size in (32, 64):
        tables = {4: lambda g, t, i: (g + 8 * (i % 2), t), 8: lambda g, t, i: (g + 8 * (i % 2), t + (4 if i >= 2 else 0))}
        tables[16] = lambda g, t, i: (g, i * 2 + t) if i % 2 == 0 else (g + 8, i * 2 - 2 + t)
        return (lambda g, t, i: (g, t)) if m == 8 else tables[k]
    side = 32 // size
    if m == 8:
        return lambda g, t, i: (g, t * side + i)
    if k == 4 * side:
        return lambda g, t, i: (g if i < side else g + 8, t * side + i % side)
    return lambda g, t, i: (g if i // side in (0, 2) else g + 8, t * side + i % side + (0 if i < 2 * side else 4 * side))


def multiplicand_b(shape, kind):
    size = width(kind)
    if size in (32, 64):
        return lambda g, t, i: (t + 4 * i, g)
    side = 32 // size
    return lambda g, t, i: (t * side + i % side + (0 if i < side else 4 * side), g)


def accumulator(shape, kind):
    return lambda g, t, i: (g if i < 2 else g + 8, t * 2 + i % 2)


def quads(which, column, kind):
    """m8n8k4 with f16: also which of the four products the lane takes part in."""

    def place(lane, i):
        high = 4 if lane >= 16 else 0
        if which == "a":
            return (i % 4 + high, lane % 4) if column else (lane % 4 + high, i)
        if which == "b":
            return (i, lane % 4 + high) if column else (lane % 4, i + high)
        if kind == "f16":
            return lane % 4 + high, i
        return (lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1)

    return place


def fragment(kind, count, at):
    """Registers of all lanes, lane by lane: `at(lane, i)` gives element i's bits."""
    per = max(1, 32 // width(kind))
    words = []
    for lane in range(LANES):
        for r in range(count):
            words.append(sum(at(lane, r * per + j) << j * width(kind) for j in range(per)))
    return words


def version_of(instruction):
    """The first version that has the instruction ("PTX ISA Notes" of mma and mma.sp)."""
    if "e4m3" in instruction or "e5m2" in instruction:
        return 87  # of .m16n8k16 and of .f16 sums; 84 for the others
    return 85 if "ordered_metadata" in instruction else 84


def mma_kernel(instruction, kinds, counts, target=None):
    lines = [head(target or (version_of(instruction), 90)) + ".visible .entry test(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)", "{"]
    lines += ["  .reg .u64 %at; .reg .u32 %t;", "  mov.u32 %t, %tid.x;"]
    for letter, kind, count in zip("dabc", kinds, counts):
        lines += [f"  .reg .{'f64' if kind == 'f64' else 'b32'} %{letter}<{count}>;"]
    size = [8 if kind == "f64" else 4 for kind in kinds]
    access = ["f64" if kind == "f64" else "b32" for kind in kinds]
    for n, letter in ((1, "a"), (2, "b"), (3, "c")):
        lines += [f"  ld.param.u64 %at, [{letter}]; mad.wide.u32 %at, %t, {size[n] * counts[n]}, %at;"]
        lines += [f"  ld.global.{access[n]} %{letter}{i}, [%at+{i * size[n]}];" for i in range(counts[n])]
    lines += [f"  {instruction}", "    " + ", ".join(names(x, c) for x, c in zip("dabc", counts)) + ";"]
    lines += [f"  ld.param.u64 %at, [d]; mad.wide.u32 %at, %t, {size[0] * counts[0]}, %at;"]
    lines += [f"  st.global.{access[0]} [%at+{i * size[0]}], %d{i};" for i in range(counts[0])]
    return "\n".join(lines + ["  ret;", "}"])


def mma_case(instruction, title, kinds, counts, words, ending="", target=None):
    kind_of = lambda kind: "b64" if kind == "f64" else "b32"
    arrays = [Array("in", x, kind_of(k), w) for x, k, w in zip("abc", kinds[1:], words[1:])]
    arrays.append(Array("out", "d", kind_of(kinds[0]), words[0]))
    name = instruction.replace(".sync.aligned", "").rstrip() + ending
    return Case("mma", name, title, arrays, mma_kernel(instruction, kinds, counts, target), ["launch: grid 1 block 32"])


def mma_file(shape, kinds, ending="", operation=None, saturate=False, sums=False):
    """sums: elements of many exponents, added as compute capability 9.0 does."""
    m, n, k = shape
    instruction = f"mma.sync.aligned.m{m}n{n}k{k}.row.col{'.satfinite' if saturate else ''}.{'.'.join(kinds)}{ending}"
    random = Random(instruction)
    a, b, c = matrix(kinds[1], m, k, random), matrix(kinds[2], k, n, random), matrix(kinds[3], m, n, random)
    if saturate:
        c = [[(0x7FFFFFF0, 0x80000010)[(i + j) % 2] for j in range(n)] for i in range(m)]
    if sums:
        random = Random(instruction + ".sums")
        a, b, c = (spread_matrix(kind, *size, random) for kind, size in zip(kinds[1:], ((m, k), (k, n), (m, n))))
    d = tensor_product(kinds, a, b, c) if sums else product(kinds, a, b, c, operation, saturate)
    places = [accumulator(shape, kinds[0]), multiplicand_a(shape, kinds[1]), multiplicand_b(shape, kinds[2]), accumulator(shape, kinds[3])]
    counts = [registers(kind, size, False) for kind, size in zip(kinds, (m * n, m * k, k * n, m * n))]
    words = []
    for kind, count, place, whole in zip(kinds, counts, places, (d, a, b, c)):

        def at(lane, i, place=place, whole=whole):
            row, column = place(lane // 4, lane % 4, i)
            return whole[row][column]

        words.append(fragment(kind, count, at))
    if sums:
        return mma_case(instruction, "as tensor cores of 9.0 add", kinds, counts, words, ".sums", (version_of(instruction), "90a"))
    return mma_case(instruction, "d = a * b + c; lanes by the manual's formulas", kinds, counts, words)


def quad_file(a_layout, b_layout, d_kind, c_kind):
    kinds = (d_kind, "f16", "f16", c_kind)
    instruction = f"mma.sync.aligned.m8n8k4.{a_layout}.{b_layout}.{'.'.join(kinds)}"
    random = Random(instruction)
    parts = []
    for _ in range(4):
        a, b, c = matrix("f16", 8, 4, random), matrix("f16", 4, 8, random), matrix(c_kind, 8, 8, random)
        parts.append((product(kinds, a, b, c), a, b, c))
    places = [quads("d", False, d_kind), quads("a", a_layout == "col", "f16"), quads("b", b_layout == "col", "f16"), quads("c", False, c_kind)]
    counts = [4 if d_kind == "f16" else 8, 2, 2, 4 if c_kind == "f16" else 8]
    words = []
    for n, (kind, count, place) in enumerate(zip(kinds, counts, places)):

        def at(lane, i, n=n, place=place):
            row, column = place(lane, i)
            return parts[lane % 16 // 4][n][row][column]

        words.append(fragment(kind, count, at))
    return mma_case(instruction, "four products, each by two groups of four lanes", kinds, counts, words)


def mma_files():
    half = [("f32", "f32"), ("f16", "f16")]
    for d_kind, c_kind in half:
        for shape in ((16, 8, 8), (16, 8, 16)):
            yield mma_file(shape, (d_kind, "f16", "f16", c_kind))
        yield mma_file((16, 8, 32), (d_kind, "e4m3", "e5m2", c_kind))
        yield mma_file((16, 8, 16), (d_kind, "e5m2", "e4m3", c_kind))
    for shape in ((16, 8, 8), (16, 8, 16)):
        yield mma_file(shape, ("f32", "bf16", "bf16", "f32"))
    for shape in ((16, 8, 4), (16, 8, 8)):
        yield mma_file(shape, ("f32", "tf32", "tf32", "f32"))
    for shape in ((8, 8, 4), (16, 8, 4), (16, 8, 8), (16, 8, 16)):
        yield mma_file(shape, ("f64",) * 4)
    for shape in ((8, 8, 16), (16, 8, 16), (16, 8, 32)):
        yield mma_file(shape, ("s32", "u8", "s8", "s32"))
        yield mma_file(shape, ("s32", "s8", "u8", "s32"), saturate=True)
    for shape in ((8, 8, 32), (16, 8, 32), (16, 8, 64)):
        yield mma_file(shape, ("s32", "u4", "s4", "s32"))
        yield mma_file(shape, ("s32", "s4", "s4", "s32"), saturate=True)
    for shape in ((8, 8, 128), (16, 8, 128), (16, 8, 256)):
        for operation in ("xor", "and"):
            yield mma_file(shape, ("s32", "b1", "b1", "s32"), f".{operation}.popc", operation)
    for a_layout in ("row", "col"):
        for b_layout in ("row", "col"):
            yield quad_file(a_layout, b_layout, "f32", "f32" if a_layout == b_layout else "f16")
    yield quad_file("row", "col", "f16", "f16")


# ---- mma of four and six bits, and with factors of blocks ----

TINY = {f.name: f for f in (E2M1, E2M3, E3M2)}


def tiny_value(kind, bits):
    return unpack(TINY[kind], bits).value if kind in TINY else value_of(kind, bits)


def tiny_element(kind, random):
    return random.bits(TINY[kind].bits) if kind in TINY else element(kind, random)


def container(kind, bits, dense, random):
    """What holds an element, and its width: four bits alone, or in the middle of a byte, six in its low bits. The rest of the byte is anything."""
    if dense:
        return bits, 4
    rest = random.bits(8)
    if kind == "e2m1":
        return rest & 0xC3 | bits << 2, 8
    return (rest & 0xC0 | bits if kind in TINY else bits), 8


def factor(kind, bits):
    """Of ue8m0 or ue4m3."""
    return Fraction(2) ** (bits - 127) if kind == "ue8m0" else value_of("e4m3", bits)


def tiny_file(a_kind, b_kind, d_kind="f32", words="kind::f8f6f4", scales=0, scale_kind="", selectors=((0, 0), (0, 0)), in_registers=False, default=False):
    dense = words.startswith("kind::mxf4")
    m, n, k = 16, 8, 64 if dense else 32
    kinds = (d_kind, a_kind, b_kind, d_kind)
    vec = f".block_scale{'' if default else f'.scale_vec::{scales}X'}" if scales else ""
    types = ".".join(kinds) + (f".{scale_kind}" if scales else "")
    instruction = f"mma.sync.aligned.{words}{vec}.m{m}n{n}k{k}.row.col.{types}"
    random = Random(instruction + str(selectors))
    a = [[tiny_element(a_kind, random) for _ in range(k)] for _ in range(m)]
    b = [[tiny_element(b_kind, random) for _ in range(n)] for _ in range(k)]
    c = matrix(d_kind, m, n, random)
    data = [[random.bits(32) for _ in range(LANES)] for _ in "ab"]  # lanes and bytes that are not selected hold anything
    factors = [[[Fraction(1)] * max(1, scales) for _ in range(count)] for count in (m, n)]
    for which, (byte, thread) in enumerate(selectors):
        for row in range((m, n)[which] if scales else 0):
            lane = row % 8 * 4 + thread * 2 + row // 8 if which == 0 else row * 4 + thread
            for i in range(scales):
                bits = 124 + random.below(7) if scale_kind == "ue8m0" else 0x30 + random.below(24)
                at = 8 * (byte + i)
                data[which][lane] = data[which][lane] & ~(0xFF << at) | bits << at
                factors[which][row][i] = factor(scale_kind, bits)
    chunk = k // max(1, scales)
    d = []
    for row in range(m):
        d.append([])
        for column in range(n):
            total = Fraction(value_of(d_kind, c[row][column]))
            for i in range(k):
                left = tiny_value(a_kind, a[row][i]) * factors[0][row][i // chunk]
                total += left * tiny_value(b_kind, b[i][column]) * factors[1][column][i // chunk]
            d[-1].append(bits_of_value(d_kind, total))
    side = 8 if dense else 4
    lane_words = {"a": [], "b": []}
    for lane in range(LANES):
        g, t = lane // 4, lane % 4
        for letter, count in (("a", 4), ("b", 2)):
            for r in range(count):
                word = 0
                for j in range(side):
                    if letter == "a":
                        bits, size = container(a_kind, a[g + 8 * (r % 2)][t * side + j + 4 * side * (r // 2)], dense, random)
                    else:
                        bits, size = container(b_kind, b[t * side + j + 4 * side * r][g], dense, random)
                    word |= bits << j * size
                lane_words[letter].append(word)
    sums = registers(d_kind, m * n, False)
    held = lambda whole: fragment(d_kind, sums, lambda lane, i: whole[accumulator((m, n, k), d_kind)(lane // 4, lane % 4, i)[0]][lane % 4 * 2 + i % 2])
    arrays = [Array("in", "a", "b32", lane_words["a"]), Array("in", "b", "b32", lane_words["b"]), Array("in", "c", "b32", held(c))]
    text = mma_kernel(instruction, kinds, [sums, 4, 2, sums], (87, "120a"))
    closing = names("c", sums) + ";"
    load, end = "", ""
    for which, letter in enumerate("ef" if scales else ""):
        arrays.append(Array("in", letter, "b32", data[which]))
        text = text.replace(".param .u64 d)", f".param .u64 {letter}, .param .u64 d)", 1)
        load += f"  .reg .b32 %{letter}; ld.param.u64 %at, [{letter}]; mad.wide.u32 %at, %t, 4, %at; ld.global.b32 %{letter}, [%at];\n"
        pair = selectors[which]
        if in_registers:
            load += f"  .reg .b16 %{letter}0, %{letter}1; mov.b16 %{letter}0, {pair[0]}; mov.b16 %{letter}1, {pair[1]};\n"
            pair = (f"%{letter}0", f"%{letter}1")
        end += f", %{letter}, {{{pair[0]}, {pair[1]}}}"
    arrays.append(Array("out", "d", "b32", held(d)))
    text = text.replace(closing, closing[:-1] + end + ";").replace(f"  {instruction}", load + f"  {instruction}")
    name = instruction.replace(".sync.aligned", "") + "".join(f".{byte}{thread}" for byte, thread in selectors if scales)
    title = "d = a * e * b * f + c; e, f: a factor for each block of a row or column, in the bytes and lanes that are selected" if scales else "d = a * b + c; elements in bytes"
    return Case("mma.tiny", name, title, arrays, text, ["launch: grid 1 block 32"])


def tiny_files():
    tiny = ("e4m3", "e5m2", "e2m1", "e2m3", "e3m2")
    for i, a in enumerate(tiny):
        yield tiny_file(a, tiny[(i + 1) % 5])
        yield tiny_file(a, tiny[(i + 3) % 5], "f32", "kind::mxf8f6f4", 1, "ue8m0", ((i % 4, i % 2), ((i + 1) % 4, (i + 2) % 4)))
    yield tiny_file("e2m1", "e4m3", "f16")
    yield tiny_file("e4m3", "e4m3", "f32", "kind::mxf8f6f4", 1, "ue8m0", ((3, 1), (2, 3)), in_registers=True, default=True)
    for byte in (0, 2):
        yield tiny_file("e2m1", "e2m1", "f32", "kind::mxf4", 2, "ue8m0", ((byte, byte // 2), (2 - byte, byte + 1)), default=byte == 2)
        yield tiny_file("e2m1", "e2m1", "f32", "kind::mxf4nvf4", 2, "ue8m0", ((byte, 1), (byte, byte)))
    for kind in ("ue8m0", "ue4m3"):
        yield tiny_file("e2m1", "e2m1", "f32", "kind::mxf4nvf4", 4, kind, ((0, 1), (0, 2)))


# ---- mma.sp: A has only half of its elements, and the metadata says which ----


def kept_columns(kind, random):
    """Of one chunk of a row, as "Sparse matrix storage" has them: its columns, which of them are kept, the chunk's bits in the metadata."""
    if kind == "tf32":
        second = random.below(2)
        return 2, [second], 0b1110 if second else 0b0100
    low = random.below(3)
    high = low + 1 + random.below(3 - low)
    each = 2 if width(kind) == 4 else 1  # of 4 bits two neighbours are kept or not
    return 4 * each, [each * part + i for part in (low, high) for i in range(each)], low | high << 2


def metadata_place(kind, chunks, row, chunk, selector):
    """The lane and the bit of a chunk's four bits. 16 chunks a row: all lanes of four hold some; fewer: those that the selector names."""
    group = row % 8 * 4
    if width(kind) >= 16:
        return group + (selector if chunks == 4 else 2 * selector + chunk // 4), (16 if row >= 8 else 0) + chunk % 4 * 4
    return group + (2 * selector if chunks == 8 else chunk // 8 * 2) + (row >= 8), chunk % 8 * 4


def sparse_file(k, kinds, selector, word="sp::ordered_metadata", saturate=False):
    m, n = 16, 8
    instruction = f"mma.{word}.sync.aligned.m{m}n{n}k{k}.row.col{'.satfinite' if saturate else ''}.{'.'.join(kinds)}"
    random = Random(instruction + str(selector))
    a, b, c = matrix(kinds[1], m, k // 2, random), matrix(kinds[2], k, n, random), matrix(kinds[3], m, n, random)
    whole = [[0] * k for _ in range(m)]
    metadata = [random.bits(32) for _ in range(LANES)]  # lanes that are not selected hold anything
    for row in range(m):
        at, column, chunk = 0, 0, 0
        while column < k:
            columns, kept, bits = kept_columns(kinds[1], random)
            lane, bit = metadata_place(kinds[1], k // columns, row, chunk, selector)
            metadata[lane] = metadata[lane] & ~(15 << bit) | bits << bit
            for one in kept:
                whole[row][column + one] = a[row][at]
                at += 1
            column, chunk = column + columns, chunk + 1
    if saturate:
        c = [[(0x7FFFFFF0, 0x80000010)[(i + j) % 2] for j in range(n)] for i in range(m)]
    d = product(kinds, whole, b, c, None, saturate)
    places = [accumulator((m, n, k), kinds[0]), multiplicand_a((m, n, k // 2), kinds[1]), sparse_b(kinds[2]), accumulator((m, n, k), kinds[3])]
    counts = [registers(kind, size, False) for kind, size in zip(kinds, (m * n, m * k // 2, k * n, m * n))]
    words = []
    for kind, count, place, held in zip(kinds, counts, places, (d, a, b, c)):

        def at_lane(lane, i, place=place, held=held):
            row, column = place(lane // 4, lane % 4, i)
            return held[row][column]

        words.append(fragment(kind, count, at_lane))
    arrays = [Array("in", x, "b32", w) for x, w in zip("abce", words[1:] + [metadata])] + [Array("out", "d", "b32", words[0])]
    text = mma_kernel(instruction, kinds, counts).replace(".param .u64 d)", ".param .u64 e, .param .u64 d)", 1)
    closing = names("c", counts[3]) + ";"
    load = "  .reg .b32 %e; ld.param.u64 %at, [e]; mad.wide.u32 %at, %t, 4, %at; ld.global.b32 %e, [%at];\n"
    text = text.replace(closing, closing[:-1] + f", %e, {selector};").replace(f"  {instruction}", load + f"  {instruction}")
    name = instruction.replace(".sync.aligned", "") + f".{selector}"
    title = "d = a * b + c; a: the kept elements, e: which they are, by the lanes that the selector names"
    return Case("mma.sp", name, title, arrays, text, ["launch: grid 1 block 32"])


def tiny_sparse_file(a_kind, b_kind, d_kind="f32", words="kind::f8f6f4", scales=0, scale_kind="", selectors=((0, 0), (0, 0))):
    """As tiny_file, with half of A's elements: of bytes two of four columns, of four bits alone two pairs of eight."""
    dense = words.startswith("kind::mxf4")
    m, n, k, side = 16, 8, 128 if dense else 64, 8 if dense else 4
    kinds = (d_kind, a_kind, b_kind, d_kind)
    vec = f".block_scale.scale_vec::{scales}X" if scales else ""
    types = ".".join(kinds) + (f".{scale_kind}" if scales else "")
    instruction = f"mma.sp::ordered_metadata.sync.aligned.m{m}n{n}k{k}.row.col.{words}{vec}.{types}"
    random = Random(instruction + str(selectors))
    a = [[tiny_element(a_kind, random) for _ in range(k // 2)] for _ in range(m)]
    b = [[tiny_element(b_kind, random) for _ in range(n)] for _ in range(k)]
    c = matrix(d_kind, m, n, random)
    columns = [[] for _ in range(m)]
    metadata = [0] * LANES
    for row in range(m):
        for chunk in range(16):
            width_, kept, bits = kept_columns("u4" if dense else "u8", random)
            lane, bit = row % 8 * 4 + chunk // 8 * 2 + (row >= 8), chunk % 8 * 4
            metadata[lane] |= bits << bit
            columns[row] += [chunk * width_ + one for one in kept]
    data = [[random.bits(32) for _ in range(LANES)] for _ in "ab"]
    factors = [[[Fraction(1)] * max(1, scales) for _ in range(count)] for count in (m, n)]
    for which, (byte, thread) in enumerate(selectors):
        for row in range((m, n)[which] if scales else 0):
            lane = row % 8 * 4 + thread * 2 + row // 8 if which == 0 else row * 4 + thread
            for i in range(scales):
                bits, at = (124 + random.below(7) if scale_kind == "ue8m0" else 0x30 + random.below(24)), 8 * (byte + i)
                data[which][lane] = data[which][lane] & ~(0xFF << at) | bits << at
                factors[which][row][i] = factor(scale_kind, bits)
    block = k // max(1, scales)
    d = []
    for row in range(m):
        d.append([])
        for column in range(n):
            total = Fraction(value_of(d_kind, c[row][column]))
            for element_, at in zip(a[row], columns[row]):
                left = tiny_value(a_kind, element_) * factors[0][row][at // block]
                total += left * tiny_value(b_kind, b[at][column]) * factors[1][column][at // block]
            d[-1].append(bits_of_value(d_kind, total))
    lane_words = {"a": [], "b": []}
    for lane in range(LANES):
        g, t = lane // 4, lane % 4
        for letter in "ab":
            for r in range(4):
                word = 0
                for j in range(side):
                    if letter == "a":
                        kind, bits = a_kind, a[g + 8 * (r % 2)][t * side + j + 4 * side * (r // 2)]
                    else:
                        kind, bits = b_kind, b[t * side + j + 4 * side * r][g]
                    bits, size = container(kind, bits, dense, random)
                    word |= bits << j * size
                lane_words[letter].append(word)
    sums = registers(d_kind, m * n, False)
    held = lambda whole: fragment(d_kind, sums, lambda lane, i: whole[accumulator((m, n, k), d_kind)(lane // 4, lane % 4, i)[0]][lane % 4 * 2 + i % 2])
    arrays = [Array("in", "a", "b32", lane_words["a"]), Array("in", "b", "b32", lane_words["b"]), Array("in", "c", "b32", held(c))]
    text = mma_kernel(instruction, kinds, [sums, 4, 4, sums], (87, "120a"))
    closing, load, end = names("c", sums) + ";", "", ", %e, 0"
    for letter, values in (("e", metadata), *zip("fg" if scales else "", data)):
        arrays.append(Array("in", letter, "b32", values))
        text = text.replace(".param .u64 d)", f".param .u64 {letter}, .param .u64 d)", 1)
        load += f"  .reg .b32 %{letter}; ld.param.u64 %at, [{letter}]; mad.wide.u32 %at, %t, 4, %at; ld.global.b32 %{letter}, [%at];\n"
    for letter, pair in zip("fg" if scales else "", selectors):
        end += f", %{letter}, {{{pair[0]}, {pair[1]}}}"
    arrays.append(Array("out", "d", "b32", held(d)))
    text = text.replace(closing, closing[:-1] + end + ";").replace(f"  {instruction}", load + f"  {instruction}")
    name = instruction.replace(".sync.aligned", "") + "".join(f".{byte}{thread}" for byte, thread in selectors if scales)
    title = "half of the elements of A, which e says; f, g: factors of blocks" if scales else "half of the elements of A, which e says; elements in bytes"
    return Case("mma.sp", name, title, arrays, text, ["launch: grid 1 block 32"])


def tiny_sparse_files():
    tiny = ("e4m3", "e5m2", "e2m1", "e2m3", "e3m2")
    for i, a in enumerate(tiny):
        yield tiny_sparse_file(a, tiny[(i + 2) % 5], "f16" if i == 2 else "f32")
        yield tiny_sparse_file(a, tiny[(i + 4) % 5], "f32", "kind::mxf8f6f4", 1, "ue8m0", ((i % 4, i % 2), ((i + 1) % 4, (i + 2) % 4)))
    yield tiny_sparse_file("e2m1", "e2m1", "f32", "kind::mxf4", 2, "ue8m0", ((2, 1), (0, 3)))
    yield tiny_sparse_file("e2m1", "e2m1", "f32", "kind::mxf4nvf4", 2, "ue8m0", ((0, 0), (2, 2)))
    for kind in ("ue8m0", "ue4m3"):
        yield tiny_sparse_file("e2m1", "e2m1", "f32", "kind::mxf4nvf4", 4, kind, ((0, 1), (0, 2)))


def sparse_b(kind):
    """Four rows of lanes' elements after one another, as for dense shapes."""
    side = 32 // width(kind) if width(kind) < 32 else 1
    return lambda g, t, i: (t * side + i % side + i // side * 4 * side, g)


def sparse_files():
    for selector in range(4):
        yield sparse_file(16, ("f32", "f16", "f16", "f32"), selector)
        yield sparse_file(8, ("f32", "tf32", "tf32", "f32"), selector)
    for selector in range(2):
        yield sparse_file(32, ("f16", "f16", "f16", "f16"), selector)
        yield sparse_file(32, ("f32", "bf16", "bf16", "f32"), selector, "sp")
        yield sparse_file(16, ("f32", "tf32", "tf32", "f32"), selector)
        yield sparse_file(32, ("s32", "s8", "u8", "s32"), selector)
        yield sparse_file(64, ("s32", "u4", "s4", "s32"), selector)
    yield sparse_file(16, ("f32", "bf16", "bf16", "f32"), 1)
    yield sparse_file(64, ("s32", "u8", "s8", "s32"), 0, saturate=True)
    yield sparse_file(128, ("s32", "s4", "s4", "s32"), 0, saturate=True)
    yield sparse_file(64, ("f32", "e4m3", "e5m2", "f32"), 0)
    yield sparse_file(64, ("f32", "e5m2", "e5m2", "f32"), 0, "sp")


# ---- ldmatrix, stmatrix, movmatrix ----


def rows_file(load, count, transposed, space):
    """Each matrix's rows stand in memory in an order of their own, 16 bytes each."""
    name = f"{'ldmatrix' if load else 'stmatrix'}.sync.aligned.m8n8.x{count}{'.trans' if transposed else ''}{space}.b16"
    random = Random(name)
    order = random.shuffle(list(range(8 * count)))
    halves = [random.bits(16) for _ in range(64 * count)]  # of the matrices, row by row

    def held(lane, j):
        pair = [(lane // 4, lane % 4 * 2 + i) for i in (0, 1)]
        low, high = (halves[j * 64 + (c * 8 + r if transposed else r * 8 + c)] for r, c in pair)
        return low | high << 16

    memory = [0] * (32 * count)
    for row in range(8 * count):
        for word in range(4):
            memory[order[row] * 4 + word] = halves[row * 8 + word * 2] | halves[row * 8 + word * 2 + 1] << 16
    places = [order[lane % (8 * count)] * 16 for lane in range(LANES)]
    inside = [held(lane, j) for lane in range(LANES) for j in range(count)]
    arrays = [Array("in", "a", "u32", places), Array("in", "b", "b32", memory if load else inside), Array("out", "d", "b32", inside if load else memory)]
    lines = [head((78, 90)) + ".visible .entry test(.param .u64 a, .param .u64 b, .param .u64 d)", "{"]
    lines += [f"  .reg .u64 %at, %p; .reg .u32 %t, %s, %x; .reg .b32 %r<{count}>; .shared .align 16 .b32 area[{32 * count}];"]
    lines += ["  mov.u32 %t, %tid.x; ld.param.u64 %at, [a]; mad.wide.u32 %at, %t, 4, %at; ld.global.u32 %s, [%at];"]
    lines += ["  mov.u32 %x, area; add.u32 %s, %s, %x; cvt.u64.u32 %p, %s;" + (" cvta.shared.u64 %p, %p;" if not space else "")]
    address = "[%s]" if space else "[%p]"
    registers_ = names("r", count)
    if load:
        for i in range(count):
            lines += [f"  ld.param.u64 %at, [b]; mad.wide.u32 %at, %t, 4, %at; ld.global.b32 %x, [%at+{128 * i}];"]
            lines += [f"  mov.u64 %at, area; mad.wide.u32 %at, %t, 4, %at; st.shared.b32 [%at+{128 * i}], %x;"]
        lines += ["  bar.sync 0;", f"  {name} {registers_}, {address};"]
        lines += [f"  ld.param.u64 %at, [d]; mad.wide.u32 %at, %t, {4 * count}, %at;"]
        lines += [f"  st.global.b32 [%at+{4 * i}], %r{i};" for i in range(count)]
    else:
        lines += [f"  ld.param.u64 %at, [b]; mad.wide.u32 %at, %t, {4 * count}, %at;"]
        lines += [f"  ld.global.b32 %r{i}, [%at+{4 * i}];" for i in range(count)]
        lines += [f"  {name} {address}, {registers_};", "  bar.sync 0;"]
        for i in range(count):
            lines += [f"  mov.u64 %at, area; mad.wide.u32 %at, %t, 4, %at; ld.shared.b32 %x, [%at+{128 * i}];"]
            lines += [f"  ld.param.u64 %at, [d]; mad.wide.u32 %at, %t, 4, %at; st.global.b32 [%at+{128 * i}], %x;"]
    title = "a: each lane's row; b: memory; d: registers" if load else "a: each lane's row; b: registers; d: memory"
    return Case(name.split(".")[0], name.replace(".sync.aligned", ""), title, arrays, "\n".join(lines + ["  ret;", "}"]), ["launch: grid 1 block 32"])


def transpose_file():
    random = Random("movmatrix")
    halves = [random.bits(16) for _ in range(64)]
    held = lambda of: [of(lane // 4, lane % 4 * 2) | of(lane // 4, lane % 4 * 2 + 1) << 16 for lane in range(LANES)]
    arrays = [
        Array("in", "a", "b32", held(lambda r, c: halves[r * 8 + c])),
        Array("out", "d", "b32", held(lambda r, c: halves[c * 8 + r])),
    ]
    lines = [head((78, 80)) + ".visible .entry test(.param .u64 a, .param .u64 d)", "{", "  .reg .u64 %at; .reg .b32 %x; .reg .u32 %t;"]
    lines += ["  mov.u32 %t, %tid.x; ld.param.u64 %at, [a]; mad.wide.u32 %at, %t, 4, %at; ld.global.b32 %x, [%at];"]
    lines += ["  movmatrix.sync.aligned.m8n8.trans.b16 %x, %x;"]
    lines += ["  ld.param.u64 %at, [d]; mad.wide.u32 %at, %t, 4, %at; st.global.b32 [%at], %x;", "  ret;", "}"]
    return Case("movmatrix", "movmatrix.m8n8.trans.b16", "the transpose", arrays, "\n".join(lines), ["launch: grid 1 block 32"])


def sum_files():
    """What the manual leaves open: how products are added."""
    for kinds in (("f32", "f16", "f16", "f32"), ("f16", "f16", "f16", "f16"), ("f32", "bf16", "bf16", "f32")):
        for k in (8, 16):
            yield mma_file((16, 8, k), kinds, sums=True)
    for k in (4, 8):
        yield mma_file((16, 8, k), ("f32", "tf32", "tf32", "f32"), sums=True)
    for small in ("e4m3", "e5m2"):
        yield mma_file((16, 8, 32), ("f32", small, small, "f32"), sums=True)


def cases():
    yield from wmma_files()
    yield from sum_files()
    yield from mma_files()
    yield from tiny_files()
    yield from sparse_files()
    yield from tiny_sparse_files()
    for load in (True, False):
        for count in (1, 2, 4):
            for transposed in (False, True):
                yield rows_file(load, count, transposed, ".shared" if (count + transposed) % 2 else "")
    yield transpose_file()
