# SPDX-License-Identifier: Apache-2.0
"""Conformance cases of tcgen05.mma: matrices in shared memory with every swizzle and both majors, A in tensor memory as well.

The image of shared memory is computed from the manual's canonical layouts, word by word. D before is small integers; of D after, each
lane of tensor memory is folded into one word, lanes that are not D's as well."""
from functools import lru_cache
from operator import mul

from .forms_matrix import TINY, bits_of_ratio, factor, kept_columns, tiny_element, tiny_value, width
from .forms_tcgen05 import ALL, ALLOC, FREE, HEAD, READ_LANES, TARGET, case, folded, power
from .values import Random
from .writer import Array

MODES = {0: 0, 128: 2, 64: 4, 32: 6, "wide": 1}  # bytes of a swizzled row: the descriptor's field
DEPTH = {"f16": 16, "bf16": 16, "tf32": 8, "s8": 32, "u8": 32}  # 32 for all of f8f6f4
TYPES = {"f16": 0, "bf16": 1, "tf32": 2, "e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5, "u8": 0, "s8": 1}
KINDS = {"f16": "f16", "bf16": "f16", "tf32": "tf32", "u8": "i8", "s8": "i8"}

# the same few, again and again
tiny_value = lru_cache(maxsize=None)(tiny_value)

def bits_of(kind):
    return TINY[kind].bits if kind in TINY else width(kind)


class Place:
    """Where element (row, k) stands in shared memory. across: neighbours along rows. swizzle: a key of MODES."""

    def __init__(self, kind, rows, across, swizzle, start, dense=False, twice=1):
        """twice: 2 for rows of 64 bytes along K."""
        self.bits, self.tiny, self.across, self.swizzle, self.start = bits_of(kind), kind in TINY and not dense, across, swizzle, start
        self.row_bytes = 128 if swizzle == "wide" else swizzle
        self.tall = 4 if swizzle == "wide" else 8  # k of an atom
        depth = DEPTH.get(kind, 32) * twice
        pitch = self.row_bytes or 16
        if not across:
            self.stride = 8 * pitch if self.row_bytes else 256 * twice
            self.leading = 16 if self.row_bytes else 128
            self.bytes = rows // 8 * self.stride
            return
        chunk_rows = 128 // self.bits
        atom, atoms = self.tall * pitch, depth // self.tall
        if self.row_bytes:
            self.stride, self.leading = atom, atoms * atom
            self.bytes = -(-rows // (chunk_rows * pitch // 16)) * self.leading
        else:
            self.leading, self.stride = atom, atoms * atom
            self.bytes = rows // chunk_rows * self.stride

    def place(self, row, k):
        """A bit."""
        if not self.across:
            chunk, rest = (k // 16, k % 16 * self.bits) if self.tiny else divmod(k * self.bits, 128)
            at = row % 8 * (self.row_bytes or 16) + row // 8 * self.stride + chunk * self.leading
        else:
            chunk, rest = divmod(row * self.bits, 128)
            in_row = self.row_bytes // 16 or 1
            groups, many = (self.leading, self.stride) if self.row_bytes else (self.stride, self.leading)
            at = chunk % in_row * 16 + chunk // in_row * groups + k % self.tall * (self.row_bytes or 16) + k // self.tall * many
        at += self.start
        if self.swizzle == "wide":
            at ^= (at >> 7) % 4 * 32
        else:
            at ^= (at >> 7) % (self.row_bytes // 16 or 1) * 16
        return at * 8 + rest

    def descriptor(self):
        return self.start >> 4 | self.leading >> 4 << 16 | self.stride >> 4 << 32 | 1 << 46 | MODES[self.swizzle] << 61

    def write(self, image, elements):
        for row, line in enumerate(elements):
            for k, bits in enumerate(line):
                at = self.place(row, k)
                image[at // 32] |= bits << at % 32 & ALL
                if at % 32 + self.bits > 32:
                    image[at // 32 + 1] |= bits >> 32 - at % 32


def description(m, n, kinds, a_across=0, b_across=0, a_negated=0, b_negated=0, saturate=0):
    d_kind, a_kind, b_kind = kinds
    d = {"f16": 0, "f32": 1, "s32": 2}[d_kind]
    word = saturate << 3 | d << 4 | TYPES[a_kind] << 7 | TYPES[b_kind] << 10 | a_negated << 13 | b_negated << 14
    return word | a_across << 15 | b_across << 16 | n // 8 << 17 | m // 16 << 24


def before(lane, column):
    return (lane * 7 + column * 5) % 23 - 11


def lane_of(m, row):
    return row if m == 128 else row % 16 + row // 16 * 32


def held(kind, line, dense=False):
    """A row of A as the words of tensor memory; dense: four bits an element."""
    if dense:
        return [sum(bits << i * 4 for i, bits in enumerate(line[w : w + 8])) for w in range(0, len(line), 8)]
    if kind in TINY:
        line = [bits << (2 if kind == "e2m1" else 0) for bits in line]
    size = 8 if kind in TINY else bits_of(kind)
    per = 32 // size
    return [sum(bits << i * size for i, bits in enumerate(line[w : w + per])) for w in range(0, len(line), per)]


def factors(count, scales, kind, first, random):
    """Of `count` rows: the factors of each, and the words that hold them."""
    values, words = [], []
    for _ in range(count):
        bits = [124 + random.below(7) if kind == "ue8m0" else 0x30 + random.below(24) for _ in range(scales)]
        word = random.bits(32)
        for i, one in enumerate(bits):
            word = word & ~(0xFF << 8 * (first + i)) | one << 8 * (first + i)
        values.append([factor(kind, one) for one in bits])
        words.append(word)
    return values, words


def beside(words, differ=0):
    """The words of factors as columns of tensor memory, the same in all four parts but for the bits that may differ."""
    columns = range(-(-len(words) // 32))
    return [[(words[c * 32 + lane % 32] if c * 32 + lane % 32 < len(words) else 0) ^ (lane // 32 * 0x55555555 & differ) for c in columns] for lane in range(128)]


def not_factors(scales, first):
    """The bits of a word that no factor is in."""
    return ALL ^ ((1 << 8 * scales) - 1) << 8 * first


def multiply_scaled(kinds, a, b, sign, a_factors, b_factors):
    """As multiply."""
    length = len(a[0]) // len(a_factors[0])
    left = [[tiny_value(kinds[1], x) * f[k // length] for k, x in enumerate(line)] for line, f in zip(a, a_factors)]
    right = [[tiny_value(kinds[2], x) * f[k // length] for k, x in enumerate(line)] for line, f in zip(b, b_factors)]
    scale = 1 << 24
    left, right = ([[int(x * scale) for x in line] for line in side] for side in (left, right))
    return [[sign * sum(map(mul, row, line)) for line in right] for row in left], scale * scale


def sparse_rows(kind, rows, depth, random):
    """For each row the columns of its elements, and the words of its metadata: two a lane, or one of two rows' halves."""
    single, pairs = kind == "tf32", depth == 128
    columns, words = [], [[0, 0] for _ in range(rows)]
    for row in range(rows):
        columns.append([])
        chunks = depth // (2 if single else 8 if pairs else 4)
        for chunk in range(chunks):
            width_, kept, bits = kept_columns("tf32" if single else "u4" if pairs else "u8", random)
            columns[-1] += [chunk * width_ + one for one in kept]
            if chunks == 16:
                words[row][chunk // 8] |= bits << chunk % 8 * 4
            else:  # rows 0 to 7 of sixteen, chunks 0 to 3: lanes 0 to 7; chunks 4 to 7: lanes 8 to 15; rows 8 to 15: the upper halves
                words[row // 16 * 16 + chunk // 4 * 8 + row % 8][0] |= bits << row // 8 % 2 * 16 + chunk % 4 * 4
    return columns, words


def spread(rows, columns, depth):
    """Whole rows of A, with zeros."""
    out = []
    for line, places in zip(rows, columns):
        whole = [0] * depth
        for value, at in zip(line, places):
            whole[at] = value
        out.append(whole)
    return out


def multiply(kinds, a, b, sign):
    """Exact sums as integers, in units of 1 / the second value; elements have at most 16 bits behind the point."""
    scale = 1 << 16
    left = [[int(tiny_value(kinds[1], x) * scale) for x in line] for line in a]
    right = [[int(tiny_value(kinds[2], x) * scale) for x in line] for line in b]
    return [[sign * sum(map(mul, row, line)) for line in right] for row in left], scale * scale


class Zero:
    """A zero-column mask descriptor: of each sub-mask its start count and whether it begins with zeros of B; how many columns are used, and
    how many are zeros, at once. Spans are named as in the manual's examples: its table has their names exchanged."""

    def __init__(self, starts, firsts, skip, use, shift=0, generated=1):
        self.starts, self.firsts, self.skip, self.use, self.shift, self.generated = starts, firsts, skip, use, shift, generated
        self.bits = sum(start << 8 * i for i, start in enumerate(starts)) | sum(first << 32 + i for i, first in enumerate(firsts))
        self.bits |= generated << 39 | skip << 40 | use << 48 | shift << 56

    def columns(self, m, n):
        """For each column whether B is zero there."""
        out, width = [], n * m // 128
        for start, first in zip(self.starts, self.firsts):
            spans = [[0] * (self.use + 1), [1] * (self.skip + 1)]
            pattern = (spans[first] + spans[1 - first]) * width
            out += pattern[start : start + width]
        return out[:n] if self.generated else [0] * n


def mma(m, n, kinds, a_swizzle=128, b_swizzle=128, keep=1, scale=0, mask=None, tensor=False, upper=0, block=None, ids=(0, 0), ws=False, sparse=False, reuse=0, loose=False, nan=None, zero=None, selector=0, **flags):
    """reuse: the field of .ws for it. zero: a mask of columns of B (class Zero). loose: parts of tensor memory differ around the factors, whose addresses have a byte's number on top. nan: a row of A and
    a column of B whose factors are no numbers. b is given as N rows of K. upper: D and A begin in lane 16. block: (kind, vector size, factors, type of factors)."""
    d_kind, a_kind, b_kind = kinds
    kind = KINDS.get(a_kind, "f8f6f4")
    depth = DEPTH.get(a_kind, 32)
    dense = block is not None and block[0] != "mxf8f6f4"
    if block:
        kind = f"{block[0]}.block_scale{block[1]}"
        depth = 64 if dense else 32
    a_across, b_across = flags.get("a_across", 0), flags.get("b_across", 0)
    k = depth  # of A as it is stored
    depth *= 2 if sparse else 1
    word = f"tcgen05.mma{'.ws' if ws else ''}{'.sp' if sparse else ''}.cta_group::1.kind::{kind}"
    sides = 128 // m if ws else 1  # parts of D's columns, each in lanes of its own
    parts = [f"{word}.m{m}n{n}.{'.'.join(kinds)}", "at" if tensor else f"a{a_swizzle}{'t' if a_across else ''}"]
    parts += [f"b{b_swizzle}{'t' if b_across else ''}", *(key for key in flags if key not in ("a_across", "b_across"))]
    parts += [text for text, there in (("alone", not keep), (f"scale{scale}", scale), ("masked", mask), ("upper", upper)) if there]
    if block:
        parts += [block[3], f"{ids[0]}{ids[1]}"]
    parts += [text for text, there in (("reuse", reuse), ("loose", loose), ("nan", nan)) if there]
    parts += [f"zero{zero.bits:x}"] if zero else []
    parts += [f"selector{selector}"] if selector else []
    name = ".".join(parts)
    random = Random(name)
    a = [[tiny_element(a_kind, random) for _ in range(k)] for _ in range(m)]
    b = [[tiny_element(b_kind, random) for _ in range(depth)] for _ in range(n + (32 if zero else 0))]
    stored_b = b
    if zero:
        b = [[0] * depth if out else line for line, out in zip(b[zero.shift :], zero.columns(m, n))]
    places, metadata = sparse_rows(a_kind, m, depth, random) if sparse else (None, None)
    whole = spread(a, places, depth) if sparse else a
    sign = -1 if flags.get("a_negated", 0) != flags.get("b_negated", 0) else 1
    extra = [[] for _ in range(128)]  # what stands behind D in tensor memory: A, factors of A and of B
    if tensor:
        for row in range(m):
            extra[lane_of(m, row) + 16 * upper] = held(a_kind, a[row], dense)
        extra = [line or [0] * 8 for line in extra]
    if block:
        a_factors, a_words = factors(m, block[2], block[3], ids[0], random)
        b_factors, b_words = factors(n, block[2], block[3], ids[1], random)
        sums, unit = multiply_scaled(kinds, whole, b, sign, a_factors, b_factors)
        if nan:
            a_words[nan[0]] |= 0xFF << 8 * ids[0]
            b_words[nan[1]] |= 0xFF << 8 * ids[1]
        differ = [not_factors(block[2], first) if loose else 0 for first in ids]
        extra = [line + x + y for line, x, y in zip(extra, beside(a_words, differ[0]), beside(b_words, differ[1]))]
    else:
        sums, unit = multiply(kinds, whole, b, sign)
    if sparse:
        extra = [line + (words if not selector else [0xFFFFFFFF, words[0]]) for line, words in zip(extra, metadata * sides)]
    columns = max(32, power(n // sides + len(extra[0])))
    times = ((1 << 31) - 1) // 11 if flags.get("saturate") else 1

    def cell(value, unit=1):
        return value // unit & ALL if d_kind == "s32" else bits_of_ratio(d_kind, value, unit)

    memory = [[cell(before(lane, column) * times) for column in range(columns)] for lane in range(128)]
    for row, side in ((row, side) for row in range(m) for side in range(sides)):
        lane = row + m * side if ws else lane_of(m, row) + 16 * upper
        if mask and mask[lane // 32] >> lane % 32 & 1:
            continue
        for column in range(n // sides):
            value = (sums[row][side * (n // sides) + column] << scale) + (before(lane, column) * times * unit if keep else 0)
            if flags.get("saturate"):
                value = max(-(1 << 31) * unit, min(((1 << 31) - 1) * unit, value))
            memory[lane][column] = 0x7FFFFFFF if nan and (row == nan[0] or column == nan[1]) else cell(value, unit << scale)
    place_a = Place(a_kind, m, a_across, a_swizzle, 0, dense)
    start = 0 if tensor else -(-place_a.bytes // 1024) * 1024
    place_b = Place(b_kind, len(stored_b), b_across, b_swizzle, start, dense, 2 if sparse else 1)
    image = [0] * (-(-(start + place_b.bytes) // 1024) * 256)
    if not tensor:
        place_a.write(image, a)
    place_b.write(image, stored_b)
    arrays = [Array("in", "s", "b32", image)]
    if extra[0]:
        for lane in range(128):
            memory[lane][n // sides : n // sides + len(extra[0])] = extra[lane]
        arrays.append(Array("in", "a", "b32", [w for line in extra for w in line]))
    out = []
    for lane in range(128):
        out.append(folded(memory[lane]))
    arrays.append(Array("out", "d", "b32", out))
    idesc = description(m, n, kinds, **flags)
    if block:
        idesc = description(m, n, kinds, **flags) & ~0x30 | ids[1] << 4 | ids[0] << 29 | (block[3] == "ue8m0") << 23
        if dense:
            idesc = idesc & ~0x1F80 | 1 << 7 | 1 << 10
    idesc |= (4 if sparse else 0) | selector | reuse << 30
    at = (8 if tensor else 0) + n
    tops = [first << 30 if loose else 0 for first in ids]
    rest = f", [%lane+{tops[0] + at}], [%lane+{tops[1] + at + 4}]" if block else ""
    before_idesc = f", [%lane+{n // sides + len(extra[0]) - 2}]" if sparse else ""
    text = kernel(word, arrays, columns, n // sides, len(extra[0]), d_kind, times, place_a, place_b, tensor, upper, keep, scale, mask, idesc, rest, before_idesc, zero)
    title = f"A in {'tensor memory' if tensor else f'rows of {a_swizzle or 16}'}, B in rows of {b_swizzle or 16}"
    return case("mma", name, title, arrays, text)


def kernel(word, arrays, columns, n, extra, d_kind, times, place_a, place_b, tensor, upper, keep, scale, mask, idesc, rest, before_idesc="", zero=None):
    params = ", ".join(f".param .u64 {a.name}" for a in arrays)
    size = len(arrays[0].values)
    text = HEAD.format(params=params).replace("{\n", f"{{\n  .shared .align 1024 .b32 area[{size}];\n", 1)
    text += "  .reg .u64 %to, %b; .reg .s32 %s; .reg .f32 %f; .reg .b16 %h; .reg .b32 %idesc, %m<4>; .reg .pred %keep;\n"
    text += "  setp.eq.u32 %p, %t, 0;\n  @%p mbarrier.init.shared::cta.b64 [done], 1;\n"
    text += "  ld.param.u64 %at, [s]; mov.u32 %column, %t;\nimage:\n"
    text += "  mad.wide.u32 %e, %column, 4, %at; ld.global.b32 %x, [%e]; mov.u64 %to, area; mad.wide.u32 %to, %column, 4, %to;\n"
    text += f"  st.shared.b32 [%to], %x; add.u32 %column, %column, 128; setp.lt.u32 %p, %column, {size};\n  @%p bra image;\n"
    text += "  fence.proxy.async.shared::cta;\n" + ALLOC.format(columns=columns)
    text += "  mov.u32 %column, 0;\nsums:\n  mul.lo.u32 %x, %t, 7; mad.lo.u32 %x, %column, 5, %x; rem.u32 %x, %x, 23; sub.u32 %s, %x, 11;\n"
    if d_kind == "s32":
        text += f"  mul.lo.s32 %x, %s, {times};\n"
    elif d_kind == "f16":
        text += "  cvt.rn.f16.s32 %h, %s; cvt.u32.u16 %x, %h;\n"
    else:
        text += "  cvt.rn.f32.s32 %f, %s; mov.b32 %x, %f;\n"
    text += "  add.u32 %y, %base, %column; tcgen05.st.sync.aligned.32x32b.x1.b32 [%y], {%x};\n"
    text += f"  add.u32 %column, %column, 1; setp.lt.u32 %p, %column, {columns};\n  @%p bra sums;\n"
    if extra:
        text += f"  ld.param.u64 %at, [a]; mad.wide.u32 %at, %t, {4 * extra}, %at; mov.u32 %column, 0;\nextra:\n"
        text += f"  ld.global.b32 %x, [%at]; add.u32 %y, %base, %column; tcgen05.st.sync.aligned.32x32b.x1.b32 [%y+{n}], {{%x}};\n"
        text += f"  add.u64 %at, %at, 4; add.u32 %column, %column, 1; setp.lt.u32 %p, %column, {extra};\n  @%p bra extra;\n"
    text += "  tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;\n"
    text += "  setp.ne.u32 %p, %t, 0;\n  @%p bra issued;\n"
    text += f"  mov.u64 %to, area; shr.u64 %to, %to, 4; mov.u64 %b, {place_b.descriptor():#x}; add.u64 %b, %b, %to;\n"
    text += f"  mov.u64 %e, {place_a.descriptor():#x}; add.u64 %e, %e, %to; mov.b32 %idesc, {idesc:#x}; setp.ne.u32 %keep, {keep}, 0;\n"
    text += f"  add.u32 %lane, %base, {upper << 20:#x}; add.u32 %y, %lane, {n};\n"
    masks = ""
    if mask:
        text += "".join(f"  mov.b32 %m{n}, {value:#x};" for n, value in enumerate(mask)) + "\n"
        masks = ", {%m0, %m1, %m2, %m3}"
    behind = f", {scale}" if scale else ""
    if zero:
        text += f"  mov.u64 %to, {zero.bits:#x};\n"
        behind = ", %to"
    text += f"  {word} [%lane], {'[%y]' if tensor else '%e'}, %b{before_idesc}, %idesc{rest}{masks}, %keep{behind};\n"
    text += "  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];\nissued:\nwait:\n"
    text += "  mbarrier.try_wait.parity.shared::cta.b64 %p, [done], 0;\n  @!%p bra wait;\n  tcgen05.fence::after_thread_sync;\n"
    return text + READ_LANES.format(columns=columns) + FREE.format(columns=columns)


def products():
    half = ("f32", "f16", "f16")
    for swizzle in (0, 32, 64, 128):
        yield mma(128, 16, half, swizzle, swizzle)
        yield mma(64, 64, half, swizzle, swizzle, a_across=1)
        yield mma(128, 64, half, swizzle, swizzle, b_across=1)
    yield mma(64, 8, half, 64, 32)
    yield mma(128, 256, half, 64, 64)
    yield mma(64, 24, half, upper=1)
    yield mma(128, 40, half, keep=0)
    yield mma(128, 16, half, scale=3)
    yield mma(128, 16, half, mask=(0x80000001, 0xFFFF0000, 0, ALL))
    yield mma(64, 16, half, mask=(0x0000F00F, 0, 0x1, 0), a_negated=1)
    yield mma(128, 16, half, a_negated=1, b_negated=1)
    yield mma(128, 24, ("f16", "f16", "f16"))
    yield mma(128, 16, ("f16", "f16", "f16"), scale=15, b_negated=1)
    yield mma(128, 32, ("f32", "bf16", "bf16"), 64, 64, a_across=1, b_across=1)
    yield mma(128, 16, half, tensor=True)
    yield mma(64, 16, half, tensor=True)
    yield mma(64, 48, half, tensor=True, upper=1, b_across=1)
    for swizzle in (0, 128):
        yield mma(128, 24, ("f32", "tf32", "tf32"), swizzle, swizzle)
    yield mma(128, 64, ("f32", "tf32", "tf32"), "wide", "wide", a_across=1, b_across=1)
    yield mma(64, 16, ("f32", "tf32", "tf32"), tensor=True, scale=1)
    for a, b in (("e4m3", "e4m3"), ("e5m2", "e4m3"), ("e2m3", "e2m1"), ("e3m2", "e5m2"), ("e2m1", "e3m2")):
        yield mma(128, 16, ("f32", a, b), 64, 128)
        yield mma(64, 16, ("f16", a, b), tensor=True)
    yield mma(128, 32, ("f32", "e4m3", "e5m2"), 128, 32, a_across=1, b_across=1)
    yield mma(128, 16, ("f32", "e4m3", "e5m2"), 0, 0, a_across=1, b_across=1)
    for a in ("s8", "u8"):
        for b in ("s8", "u8"):
            yield mma(128, 24, ("s32", a, b), 0, 128)
    yield mma(64, 48, ("s32", "s8", "u8"), 32, 32, b_across=1)
    yield mma(128, 16, ("s32", "s8", "s8"), tensor=True)
    yield mma(128, 16, ("s32", "s8", "s8"), saturate=1)


def stationary():
    half = ("f32", "f16", "f16")
    yield mma(32, 64, half, 128, 128, ws=True)
    yield mma(64, 64, half, ws=True, reuse=2)
    yield mma(64, 128, half, 64, 64, ws=True, b_across=1)
    yield mma(128, 64, half, ws=True, keep=0)
    yield mma(128, 64, half, ws=True, tensor=True)
    yield mma(32, 256, ("f16", "f16", "f16"), 32, 32, ws=True)
    yield mma(64, 64, ("f32", "tf32", "tf32"), ws=True)
    yield mma(32, 64, ("f32", "e4m3", "e2m1"), ws=True)
    yield mma(32, 128, ("s32", "s8", "u8"), ws=True)
    yield mma(128, 64, half, ws=True, sparse=True)
    yield mma(128, 64, ("s32", "u8", "s8"), 64, 64, ws=True, sparse=True, tensor=True)
    yield mma(64, 128, half, ws=True, sparse=True)
    yield mma(32, 64, ("f32", "tf32", "tf32"), ws=True, sparse=True, selector=1)
    yield mma(32, 128, ("f32", "e5m2", "e4m3"), 32, 64, ws=True, sparse=True)
    yield mma(128, 64, half, ws=True, zero=Zero((0, 0, 0, 0), (0, 0, 0, 0), 4, 3, generated=0))
    yield mma(128, 64, half, ws=True, zero=Zero((0, 9, 9, 9), (0, 1, 0, 1), 2, 3))
    yield mma(64, 128, half, ws=True, zero=Zero((0, 0, 9, 9), (1, 0, 0, 1), 2, 3))
    yield mma(32, 128, half, ws=True, reuse=1, zero=Zero((0, 1, 2, 1), (1, 1, 0, 0), 2, 3, 2))
    yield mma(32, 64, half, 64, 64, ws=True, reuse=2, b_across=1, zero=Zero((3, 1, 4, 0), (1, 0, 1, 0), 4, 6, 13))
    yield mma(128, 64, ("f32", "tf32", "tf32"), ws=True, reuse=3, keep=0, zero=Zero((255, 0, 0, 0), (0, 0, 0, 0), 0, 255, 32))
    yield mma(64, 64, ("f32", "e5m2", "e4m3"), ws=True, reuse=3, tensor=False, zero=Zero((7, 30, 0, 0), (1, 0, 0, 0), 11, 30, 31, 0))
    yield mma(64, 64, ("s32", "s8", "u8"), 0, 0, ws=True, reuse=3, b_across=1, zero=Zero((7, 30, 0, 0), (1, 0, 0, 0), 11, 30, 17))
    yield mma(128, 128, half, ws=True, sparse=True, reuse=3, zero=Zero((2, 0, 0, 0), (1, 0, 0, 0), 3, 0, 9))


def sparse():
    half = ("f32", "f16", "f16")
    yield mma(128, 24, half, sparse=True, selector=1)
    yield mma(128, 16, ("f32", "tf32", "tf32"), sparse=True, selector=1)
    yield mma(128, 16, half, sparse=True)
    yield mma(128, 64, half, 64, 64, sparse=True, a_across=1, b_across=1)
    yield mma(128, 24, half, 0, 0, sparse=True, keep=0)
    yield mma(128, 16, ("f32", "bf16", "bf16"), sparse=True, tensor=True)
    yield mma(128, 16, ("f32", "tf32", "tf32"), 64, 64, sparse=True)
    yield mma(128, 16, ("f32", "e4m3", "e5m2"), sparse=True)
    yield mma(128, 16, ("f32", "e2m1", "e3m2"), sparse=True, tensor=True)
    yield mma(128, 32, ("s32", "s8", "u8"), 32, 64, sparse=True)
    yield mma(128, 16, ("f32", "e4m3", "e2m3"), sparse=True, block=("mxf8f6f4", "", 1, "ue8m0"), ids=(1, 2))
    yield mma(128, 16, ("f32", "e2m1", "e2m1"), sparse=True, block=("mxf4", "", 2, "ue8m0"), ids=(0, 2))
    yield mma(128, 16, ("f32", "e2m1", "e2m1"), sparse=True, block=("mxf4nvf4", ".scale_vec::4X", 4, "ue4m3"))


def scaled():
    for i, (a, b) in enumerate((("e4m3", "e5m2"), ("e2m3", "e2m1"), ("e3m2", "e4m3"), ("e2m1", "e3m2"), ("e5m2", "e2m3"))):
        yield mma(128, 16, ("f32", a, b), 128, 64, block=("mxf8f6f4", ("", ".scale_vec::1X", ".block32")[i % 3], 1, "ue8m0"), ids=(i % 4, (i + 1) % 4))
    yield mma(128, 80, ("f32", "e4m3", "e4m3"), 128, 128, tensor=True, keep=0, block=("mxf8f6f4", "", 1, "ue8m0"), b_across=1)
    four = ("f32", "e2m1", "e2m1")
    yield mma(128, 24, four, 128, 32, block=("mxf4", "", 2, "ue8m0"), ids=(2, 0))
    yield mma(128, 16, four, 0, 0, block=("mxf4", ".scale_vec::2X", 2, "ue8m0"), ids=(0, 2), a_negated=1)
    yield mma(128, 136, four, 64, 64, block=("mxf4nvf4", ".block32", 2, "ue8m0"))
    yield mma(128, 16, four, tensor=True, block=("mxf4nvf4", ".scale_vec::4X", 4, "ue4m3"))
    yield mma(128, 40, four, 128, 128, block=("mxf4nvf4", ".block16", 4, "ue8m0"))
    yield mma(128, 24, four, loose=True, block=("mxf4", "", 2, "ue8m0"), ids=(2, 0))
    yield mma(128, 40, ("f32", "e4m3", "e4m3"), loose=True, block=("mxf8f6f4", "", 1, "ue8m0"), ids=(1, 3))
    yield mma(128, 16, ("f32", "e4m3", "e4m3"), nan=(77, 5), block=("mxf8f6f4", "", 1, "ue8m0"), ids=(3, 0))


# ---- two blocks ----


def as_pair(text, size, extra, four=False):
    """The kernel of one block for a pair: rank 0 issues, both wait; each has its own part of the arrays. four: two pairs in a cluster, which read the same."""
    text = text.replace("cta_group::1", "cta_group::2")
    if four:
        ranks = ".reg .u32 %rank, %all; .reg .b16 %both; mov.u32 %all, %cluster_ctarank; and.b32 %rank, %all, 1; and.b32 %all, %all, 2; shl.b32 %all, 3, %all; cvt.u16.u32 %both, %all;"
        text = text.replace("ld.param.u64 %at, [d];", "ld.param.u64 %at, [d]; mov.u32 %all, %cluster_ctarank; and.b32 %all, %all, 2; mad.wide.u32 %at, %all, 512, %at;")
    else:
        ranks = ".reg .u32 %rank; .reg .b16 %both; mov.b16 %both, 3; mov.u32 %rank, %cluster_ctarank;"
    text = text.replace("  mov.u32 %t, %tid.x;", f"  {ranks}\n  mov.u32 %t, %tid.x;", 1)
    for name, bytes_ in (("s", size * 4), ("a", 512 * extra), ("d", 512)):
        text = text.replace(f"ld.param.u64 %at, [{name}];", f"ld.param.u64 %at, [{name}]; mad.wide.u32 %at, %rank, {bytes_}, %at;")
    meet = "barrier.cluster.arrive; barrier.cluster.wait;"
    text = text.replace("bar.sync 0; tcgen05.fence::after_thread_sync;\n  setp.ne.u32 %p, %t, 0;", f"{meet} tcgen05.fence::after_thread_sync;\n  mad.lo.u32 %x, %rank, 128, %t; setp.ne.u32 %p, %x, 0;", 1)
    text = text.replace("shared::cluster.b64 [done];", "shared::cluster.multicast::cluster.b64 [done], %both;", 1)
    return text.replace("  tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;\n  @!%first bra freed;", f"  {meet}\n  @!%first bra freed;", 1)


def pair(m, n, kinds, a_swizzle=128, b_swizzle=128, keep=1, mask=None, tensor=False, block=None, b_across=0, sparse=False, four=False):
    d_kind, a_kind, b_kind = kinds
    dense = block is not None and block[0] != "mxf8f6f4"
    kind = f"{block[0]}.block_scale{block[1]}" if block else KINDS.get(a_kind, "f8f6f4")
    k = 64 if dense else DEPTH.get(a_kind, 32)
    depth = 2 * k if sparse else k
    word = f"tcgen05.mma{'.sp' if sparse else ''}.cta_group::1.kind::{kind}"
    name = f"{word}.m{m}n{n}.{'.'.join(kinds)}.{'at' if tensor else f'a{a_swizzle}'}.b{b_swizzle}{'t' if b_across else ''}".replace("group::1", "group::2")
    name += f"{'.masked' if mask else ''}{'' if keep else '.alone'}{'.four' if four else ''}"
    random = Random(name)
    a = [[tiny_element(a_kind, random) for _ in range(k)] for _ in range(m)]
    b = [[tiny_element(b_kind, random) for _ in range(depth)] for _ in range(n)]
    half, twice = m // 2, m == 128  # rows of a block; whether the upper columns are in lanes 64 to 127
    width_ = n // 2 if twice else n
    extra = [[] for _ in range(256)]
    if tensor:
        for lane in range(256):
            row = lane // 128 * half + lane % half
            extra[lane] = held(a_kind, a[row], dense)
    if block:
        a_factors, a_words = factors(m, block[2], block[3], 0, random)
        b_factors, b_words = factors(n, block[2], block[3], 0, random)
        sums, unit = multiply_scaled(kinds, a, b, 1, a_factors, b_factors)
        sides = beside(a_words[:half]) + beside(a_words[half:])
        extra = [line + x + y for line, x, y in zip(extra, sides, 2 * beside(b_words))]
    elif sparse:
        places, metadata = sparse_rows(a_kind, m, depth, random)
        sums, unit = multiply(kinds, spread(a, places, depth), b, 1)
        extra = [line + words for line, words in zip(extra, metadata)]  # M is 256
    else:
        sums, unit = multiply(kinds, a, b, 1)
    columns = max(32, power(width_ + len(extra[0])))

    def cell(value, unit=1):
        return value // unit & ALL if d_kind == "s32" else bits_of_ratio(d_kind, value, unit)

    out = []
    for rank in range(2):
        for lane in range(128):
            line = [cell(before(lane, column)) for column in range(columns)]
            row, first = rank * half + lane % half, (lane // 64 * width_ if twice else 0)
            if not (mask and mask[rank * 4 + lane // 32] >> lane % 32 & 1):
                for column in range(width_):
                    line[column] = cell(sums[row][first + column] + (before(lane, column) * unit if keep else 0), unit)
            line[width_ : width_ + len(extra[0])] = extra[rank * 128 + lane]
            out.append(folded(line))
    place_a = Place(a_kind, half, 0, a_swizzle, 0, dense)
    start = 0 if tensor else -(-place_a.bytes // 1024) * 1024
    place_b = Place(b_kind, n // 2, b_across, b_swizzle, start, dense, depth // k)
    size = -(-(start + place_b.bytes) // 1024) * 256
    image = []
    for rank in range(2):
        one = [0] * size
        if not tensor:
            place_a.write(one, a[rank * half : rank * half + half])
        place_b.write(one, b[rank * n // 2 : rank * n // 2 + n // 2])
        image += one
    arrays = [Array("in", "s", "b32", image)]
    if extra[0]:
        arrays.append(Array("in", "a", "b32", [w for line in extra for w in line]))
    arrays.append(Array("out", "d", "b32", out * (2 if four else 1)))
    idesc = description(m, n, kinds, b_across=b_across) | (4 if sparse else 0)
    if block:
        idesc = idesc & ~0x30 | (block[3] == "ue8m0") << 23
        if dense:
            idesc = idesc & ~0x1F80 | 1 << 7 | 1 << 10
    at = (8 if tensor else 0) + width_
    rest = f", [%lane+{at}], [%lane+{at + 4}]" if block else ""
    short = [Array("in", "s", "b32", image[:size]), *arrays[1:]]
    before_idesc = f", [%lane+{width_ + len(extra[0]) - 2}]" if sparse else ""
    text = kernel(word, short, columns, width_, len(extra[0]), d_kind, 1, place_a, place_b, tensor, 0, keep, 0, mask, idesc, rest, before_idesc)
    text = as_pair(text, size, len(extra[0]), four).replace("{%m0, %m1, %m2, %m3}", "{%m0, %m1, %m2, %m3, %m4, %m5, %m6, %m7}").replace("%m<4>", "%m<8>")
    return case("mma", name, "two blocks, each with half of the rows of A and D and half of the columns of B", arrays, text, f"grid {4 if four else 2} block 128 cluster {4 if four else 2}")


def pairs():
    half = ("f32", "f16", "f16")
    yield pair(256, 32, half)
    yield pair(256, 128, half, 64, 32, b_across=1)
    yield pair(128, 32, half, 0, 0)
    yield pair(128, 64, ("f16", "f16", "f16"), 64, 128, keep=0)
    yield pair(256, 16, half, tensor=True)
    yield pair(128, 16, ("f32", "bf16", "bf16"), tensor=True)
    yield pair(256, 32, half, mask=(1, 0, 0, 0x80000000, ALL, 0, 0xFF00, 0))
    yield pair(128, 16, half, mask=(1, 0, 0, 0x80000000, ALL, 0, 0xFF00, 0))
    yield pair(256, 64, ("f32", "tf32", "tf32"))
    yield pair(256, 32, ("f32", "e4m3", "e2m1"))
    yield pair(128, 64, ("s32", "s8", "u8"))
    yield pair(256, 48, ("f32", "e4m3", "e5m2"), block=("mxf8f6f4", "", 1, "ue8m0"))
    yield pair(256, 32, ("f32", "e2m1", "e2m1"), block=("mxf4nvf4", ".scale_vec::4X", 4, "ue4m3"))
    yield pair(256, 32, half, mask=(1, 0, 0, 0x80000000, ALL, 0, 0xFF00, 0), four=True)
    yield pair(256, 32, half, sparse=True)
    yield pair(256, 32, ("s32", "s8", "u8"), sparse=True)


def faults():
    good = description(128, 16, ("f32", "f16", "f16"))
    shared = 1 << 46 | 2 << 61 | 64 << 32

    def scaled_wrong(name, title, idesc, kind="mxf4.block_scale", before="", fault="illegal_instruction", a_factors=16, **more):
        return wrong(name, title, idesc, kind=kind, rest=f", [%base+{a_factors}], [%base+24]", before=before, fault=fault, **more)

    def wrong(name, title, idesc=good, a=shared, b=shared, d="%base", kind="f16", fault="illegal_instruction", where=None, rest="", before="", ws="", metadata="", pair=False, mask=None, behind=""):
        text = HEAD.format(params=".param .u64 d").replace("{\n", "{\n  .shared .align 1024 .b32 area[4096];\n", 1)
        text += "  .reg .u64 %a, %b; .reg .b32 %idesc; .reg .pred %keep;\n" + ALLOC.format(columns=32)
        text += f"  mov.b32 %idesc, {idesc:#x}; mov.u64 %a, {a:#x}; mov.u64 %b, {b:#x}; setp.eq.u32 %keep, %t, 99; setp.ne.u32 %p, %t, 0;\n{before}"
        zero = "" if mask is None else ", %e"
        text += "" if mask is None else f"  mov.u64 %e, {mask:#x};\n"
        text += f"  mov.u32 %x, area;\n  @%p bra freed0;\n  tcgen05.mma{ws}.cta_group::1.kind::{kind} [{d}], {where or '%a'}, %b{metadata}, %idesc{rest}, %keep{zero}{behind}; // faults here\nfreed0:\n"
        text += FREE.format(columns=32)
        if pair:
            text = text.replace("cta_group::1", "cta_group::2").replace("  .reg .u64 %a,", "  .reg .u32 %rank; mov.u32 %rank, %cluster_ctarank;\n  .reg .u64 %a,", 1)
            text = text.replace("setp.ne.u32 %p, %t, 0;\n", "mad.lo.u32 %x, %rank, 128, %t; setp.ne.u32 %p, %x, 0;\n  barrier.cluster.arrive; barrier.cluster.wait;\n", 1)
        launch = "grid 2 block 128 cluster 2" if pair else "grid 1 block 128"
        return case("mma_fault", f"tcgen05.mma.{name}", title, [Array("in", "d", "u32", [0])], text, launch, headers=[f"fault: {fault}"])

    yield wrong("stationary_columns", "N is 32 with .ws", description(64, 32, ("f32", "f16", "f16")), kind="f16", ws=".ws")
    wide = description(64, 64, ("f32", "f16", "f16")) | 2 << 30
    for name, title, bits, fault in (
        ("reserved", "a reserved bit of the mask of columns", 1 << 37, "illegal_instruction"),
        ("end", "its last bit", 1 << 63, "illegal_instruction"),
        ("shift", "a shift beyond that of the instruction descriptor", 17 << 56, "illegal_instruction"),
        ("span", "a mask that leaves out a span", 3 << 8 | 1 << 33, "unsupported"),
        ("used_span", "a mask that leaves out a span of what is used", 4, "unsupported"),
    ):
        yield wrong(f"zero_{name}", title, wide, ws=".ws", mask=2 << 40 | 3 << 48 | 1 << 39 | bits, fault=fault)
    narrow = description(32, 64, ("f32", "f16", "f16")) | 3 << 30
    yield wrong("zero_narrow", "a shift beyond that of M of 32", narrow, ws=".ws", mask=17 << 56)
    yield wrong("zero_scale", "a scale behind the mask of columns", wide, ws=".ws", mask=0, behind=", 1", fault="unsupported")
    yield wrong("zero_lanes", "a mask of lanes with .ws", wide, ws=".ws", rest=", {%x, %x, %x, %x}", fault="unsupported")
    yield wrong("zero_dense", "a mask of columns without .ws", mask=1 << 39, fault="unsupported")
    yield wrong("stationary_rows", "M is 96 with .ws", description(96, 64, ("f32", "f16", "f16")), kind="f16", ws=".ws")
    yield wrong("sparse_bit", "the descriptor says that A is sparse", good | 4)
    yield wrong("dense_bit", "the descriptor says that A is dense", good, ws=".sp", metadata=", [%base+16]")
    yield wrong("metadata", "metadata of 0", good | 4, ws=".sp", metadata=", [%base+16]")
    yield wrong("metadata_place", "metadata in columns that are not allocated", good | 4, ws=".sp", metadata=", [%base+32]", fault="illegal_address")
    yield wrong("sparse_rows", "M of 64", description(64, 16, ("f32", "f16", "f16")) | 4, ws=".sp", metadata=", [%base+16]", fault="unsupported")
    yield wrong("sparse_odd", "the selector is 1, the metadata are in an odd column", good | 5, ws=".sp", metadata=", [%base+17]", fault="unsupported")
    yield wrong("metadata_selected", "the selected column of metadata is not allocated", good | 5, ws=".sp", metadata=", [%base+32]", fault="illegal_address")
    yield wrong("sparse_selector", "another selector", good | 6, ws=".sp", metadata=", [%base+16]", fault="unsupported")
    yield wrong("sparse_swizzle", "rows of 32 bytes, swizzled, for 64 of K", good | 4, ws=".sp", metadata=", [%base+16]", b=1 << 46 | 6 << 61 | 16 << 32)
    yield wrong("reserved_bit", "a reserved bit", good | 1 << 23)
    yield wrong("rows", "M is 96", good & ~(31 << 24) | 6 << 24)
    yield wrong("columns", "N is 0", good & ~(63 << 17))
    yield wrong("columns_i8", "N is 40", description(128, 40, ("s32", "s8", "s8")), kind="i8")
    yield wrong("type", "a type that there is not", good | 7 << 7)
    yield wrong("sum_type", "D of s32 for f16", good ^ 3 << 4)
    yield wrong("negated_i8", "integers are not negated", description(128, 16, ("s32", "s8", "s8"), a_negated=1), kind="i8")
    yield wrong("saturate", "floats do not saturate", good | 8)
    yield wrong("version", "no 0b001 in the descriptor of A", a=shared & ~(1 << 46))
    yield wrong("swizzle", "there is no mode 3", b=shared | 1 << 61)
    yield wrong("absolute", "an absolute address", b=shared | 1 << 52)
    yield wrong("atoms", "atoms of 32 bytes for f16", a=1 << 46 | 1 << 61)
    yield wrong("atoms_tf32", "tf32 transposed in chunks", description(128, 16, ("f32", "tf32", "tf32"), a_across=1), kind="tf32")
    yield wrong("across_small", "e2m1 transposed", description(128, 16, ("f32", "e2m1", "e4m3"), a_across=1), kind="f8f6f4")
    yield wrong("across_8", "8 bits of B transposed, N is 24", description(128, 24, ("f32", "e4m3", "e4m3"), b_across=1), kind="f8f6f4")
    yield wrong("a_outside", "A is not in shared memory", a=shared | 0x3000, fault="illegal_address")
    yield wrong("d_not_allocated", "columns of D are not allocated", d="%base+24", fault="illegal_address")
    yield wrong("d_lane", "D begins in lane 16", d="%base+0x100000", fault="illegal_address")
    yield wrong("a_lane", "A and D begin in different lanes", description(64, 16, ("f32", "f16", "f16")), where="[%base+0x100010]", fault="illegal_address")
    yield wrong("a_across", "A in tensor memory is transposed", description(128, 16, ("f32", "f16", "f16"), a_across=1), where="[%base+16]")


    factored = 1 << 7 | 1 << 10 | 2 << 17 | 1 << 23 | 1 << 27  # mxf4: M 128, N 16
    yield scaled_wrong("factors_id", "the factors begin at byte 1", factored | 1 << 4)
    yield scaled_wrong("factors_type", "ue4m3 for mxf4", factored & ~(1 << 23))
    yield scaled_wrong("factors_rows", "M is 256", factored & ~(3 << 27) | 2 << 27)
    yield scaled_wrong("factors_k96", "K is 96", factored | 1 << 31)
    yield scaled_wrong("factors_type_of_a", "A of e4m3 for mxf4", factored & ~(7 << 7))
    lanes = "  tcgen05.st.sync.aligned.32x32b.x1.b32 [%base+16], {%t}; tcgen05.fence::before_thread_sync; bar.sync 0;\n"
    yield scaled_wrong("factors_differ", "the parts of tensor memory have different factors", factored, before=lanes)


    # what the checks of descriptors and of places are for, each alone
    def put(value, column=16):
        return f"  {value}\n  tcgen05.st.sync.aligned.32x32b.x1.b32 [%base+{column}], {{%y}}; tcgen05.fence::before_thread_sync; bar.sync 0;\n"

    for bits in (1, 2, 3, 7, 11):
        yield wrong(f"metadata_{bits}", f"metadata of {bits}", good | 4, ws=".sp", metadata=", [%base+16]", before=put(f"mov.u32 %y, {bits * 0x11111111};"))
    two = put("shr.u32 %y, %t, 6; mul.lo.u32 %y, %y, 0x55555555; add.u32 %y, %y, 0x44444444;")
    yield wrong("metadata_parts", "the parts of tensor memory have different metadata", description(32, 64, ("f32", "f16", "f16")) | 4, ws=".ws.sp", metadata=", [%base+16]", before=two)
    yield wrong("metadata_tf32", "metadata of 0", description(128, 16, ("f32", "tf32", "tf32")) | 4, kind="tf32", ws=".sp", metadata=", [%base+16]")
    eight = ("f32", "e4m3", "e4m3")
    end = {"ws": ".sp", "metadata": ", [%base+31]", "before": put("mov.u32 %y, 0x44444444;", 31)}
    yield wrong("metadata_end", "the second column of metadata is not allocated", description(128, 16, eight) | 4, kind="f8f6f4", fault="illegal_address", **end)
    yield wrong("a_end", "the last columns of A are not allocated", where="[%base+25]", fault="illegal_address")
    yield wrong("reserved_bit_30", "a bit that only .ws has", good | 1 << 30)
    yield wrong("reserved_bit_29", "a reserved bit with .ws", description(128, 64, ("f32", "f16", "f16")) | 1 << 29, ws=".ws")
    yield wrong("selector_f8", "a selector of bytes", description(128, 16, eight) | 5, kind="f8f6f4", ws=".sp", metadata=", [%base+16]")
    yield wrong("sum_bf16", "D of f16, A and B of bf16", description(128, 16, ("f16", "bf16", "bf16")))
    yield wrong("types_differ", "A of f16, B of bf16", description(128, 16, ("f32", "f16", "bf16")))
    yield wrong("stationary_tensor", "A in tensor memory, M of 64 with .ws", description(64, 64, ("f32", "f16", "f16")), ws=".ws", where="[%base+16]")
    yield wrong("b_across_small", "B of e2m1 transposed", description(128, 16, ("f32", "e4m3", "e2m1"), b_across=1), kind="f8f6f4")
    yield wrong("swizzle_5", "there is no mode 5", b=1 << 46 | 5 << 61)
    yield wrong("swizzle_7", "there is no mode 7", b=1 << 46 | 7 << 61)
    yield wrong("fixed_bits", "bits 53 to 60 of a descriptor", b=shared | 1 << 55)
    for bit in (0, 3, 6, 24):
        yield scaled_wrong(f"factors_bit_{bit}", "a reserved bit", factored | 1 << bit)
    yield scaled_wrong("factors_id_a", "the factors of A begin at byte 1", factored | 1 << 29)
    yield scaled_wrong("factors_type_two", "two factors of ue4m3", factored & ~(1 << 23), kind="mxf4nvf4.block_scale.block32")
    yield scaled_wrong("factors_end", "the last factors of A are not allocated", factored, a_factors=30, fault="illegal_address")
    yield scaled_wrong("factors_part", "one part of tensor memory has another second factor", factored, before=put("shr.u32 %y, %t, 5; setp.eq.u32 %keep, %y, 1; selp.u32 %y, 256, 0, %keep;"))
    yield wrong("pair_rows", "M is 64", description(64, 32, ("f32", "f16", "f16")), pair=True)
    yield wrong("pair_columns", "N is 24", description(128, 24, ("f32", "f16", "f16")), pair=True)
    yield wrong("pair_columns_i8", "N is 48", description(128, 48, ("s32", "s8", "s8")), kind="i8", pair=True)
    yield wrong("pair_across", "8 bits of B transposed, N is 16", description(128, 16, eight, b_across=1), kind="f8f6f4", pair=True)
    yield wrong("pair_sparse", "M of 64 a block", good & ~(31 << 24) | 8 << 24 | 4, ws=".sp", metadata=", [%base+16]", pair=True, fault="unsupported")
    yield wrong("pair_lanes", "lanes 0 and 64 have different rows of A", good, where="[%base+16]", before=put("mov.u32 %y, %t;"), pair=True)
    large = 1 << 23 | 2 << 27  # ue8m0, M 256
    yield scaled_wrong("pair_factors", "N is 24", large | 3 << 17, kind="mxf8f6f4.block_scale", pair=True)
    yield scaled_wrong("pair_factors_across", "8 bits of B transposed, N is 16", large | 2 << 17 | 1 << 16, kind="mxf8f6f4.block_scale", pair=True)


def cases():
    yield from products()
    yield from scaled()
    yield from stationary()
    yield from sparse()
    yield from pairs()
    yield from faults()
