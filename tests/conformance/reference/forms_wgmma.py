# SPDX-License-Identifier: Apache-2.0
"""Conformance cases of wgmma.mma_async and wgmma.mma_async.sp: a group of four warps, matrices in shared memory with every swizzle and both majors, A in
registers as well.

The image of shared memory is computed here from the manual's layouts (PTX ISA, "Shared Memory Matrix Layout", "Strides",
"Swizzling Modes"), word by word; the kernel copies it there. D before is small integers that the kernel makes of the
numbers of thread and register; of D after, each thread's registers are folded into four words by XOR and rotation."""
from fractions import Fraction

from .forms_control import kernel_case
from .forms_matrix import bits_of_value, element, kept_columns, matrix, metadata_place, product, value_of, width
from .tensor_sum import FRACTION, KEPT, SMALL_FRACTION, SMALL_KEPT, spread_matrix, tensor_product
from .values import Random
from .writer import Array

ALL = 0xFFFFFFFF
MODES = {0: 0, 128: 1, 64: 2, 32: 3}  # bytes of a swizzled row: the descriptor's field


def swizzled(at, row_bytes):
    """Chunks of 16 bytes change places in rows of so many bytes, by the number of the row of 128 bytes."""
    return at ^ ((at >> 7) % (row_bytes // 16 or 1)) * 16


class Layout:
    """Where element (row, k) of a matrix stands; rows of `deep` bytes along k. across: neighbours along rows."""

    def __init__(self, rows, bits, across, row_bytes, start, deep=32):
        self.bits, self.across, self.row_bytes, self.start = bits, across, row_bytes, start
        chunk_rows = 128 // bits  # elements of a chunk
        if not across:
            pitch = row_bytes or 16
            self.eights = 8 * pitch if row_bytes else 8 * deep
            self.leading, self.stride = (16 if row_bytes else 128), self.eights
            self.bytes = rows // 8 * self.eights
        elif row_bytes:
            groups = -(-rows // (row_bytes * 8 // bits))
            eights = deep * 8 // bits // 8
            self.stride, self.leading = 8 * row_bytes, eights * 8 * row_bytes  # eight k; the next group of chunks
            self.bytes = groups * self.leading
        else:
            self.stride, self.leading = 8 * deep, 128  # the next chunk of rows; eight k
            self.bytes = rows // chunk_rows * self.stride

    def place(self, row, k):
        bits = self.bits
        if not self.across:
            chunk, rest = divmod(k * bits, 128)
            at = row % 8 * (self.row_bytes or 16) + row // 8 * self.stride + chunk * self.leading
            return swizzled(self.start + at, self.row_bytes), rest
        chunk, rest = divmod(row * bits, 128)
        if self.row_bytes:
            in_row = self.row_bytes // 16
            at = chunk % in_row * 16 + chunk // in_row * self.leading + k % 8 * self.row_bytes + k // 8 * self.stride
        else:
            at = chunk * self.stride + k % 8 * 16 + k // 8 * self.leading
        return swizzled(self.start + at, self.row_bytes), rest

    def descriptor(self):
        return self.start >> 4 | self.leading >> 4 << 16 | self.stride >> 4 << 32 | MODES[self.row_bytes] << 62

    def write(self, image, elements):
        for row, line in enumerate(elements):
            for k, bits in enumerate(line):
                at, rest = self.place(row, k)
                image[(at * 8 + rest) // 32] |= bits << (at * 8 + rest) % 32


def places(half, registers):
    """(row, column) of each element of each register of each thread."""
    out = []
    for t in range(128):
        lane, first = t % 32, t // 32 * 16
        out.append([])
        for r in range(registers):
            row = first + lane // 4 + (r % 2 if half else r // 2 % 2) * 8
            column = (r // 2 if half else r // 4) * 8 + lane % 4 * 2 + (0 if half else r % 2)
            out[-1].append([(row, column), (row, column + 1)] if half else [(row, column)])
    return out


def rotate(word, by):
    return (word << by | word >> 32 - by) & ALL if by else word


def fold(registers):
    out = [0] * 4
    for r, word in enumerate(registers):
        out[r % 4] ^= rotate(word, r // 4 % 31)
    return out


def before(t, r):
    return (t * 7 + r * 5) % 23 - 11


DEPTH = {"f16": 16, "bf16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "s8": 32, "u8": 32, "b1": 256}


def wgmma(n, kinds, a_row=128, b_row=128, a_across=0, b_across=0, registers=False, scale_d=1, scale_a=1, scale_b=1, saturate=False, selector=None, sums=False):
    """selector: that of a sparse product, whose A has half of its elements; None: a dense one. sums: elements of many exponents, added as
    compute capability 9.0 does."""
    d_kind, a_kind, b_kind = kinds
    sparse = selector is not None
    k = DEPTH[a_kind] * (2 if sparse else 1)
    half, whole = d_kind == "f16", d_kind == "s32"
    name = f"wgmma.mma_async{'.sp' if sparse else ''}.m64n{n}k{k}.{'.'.join(kinds)}{'.satfinite' if saturate else ''}"
    what = [f"A in {'registers' if registers else f'rows of {a_row or 16}'}{' across' if a_across else ''}"]
    what += [f"B in rows of {b_row or 16}{' across' if b_across else ''}"]
    what += [f"metadata in the lanes of selector {selector}"] if sparse else []
    title = f"{', '.join(what)}; scale-d {scale_d}, scales {scale_a} {scale_b}"
    full = f"{name}.a{'r' if registers else a_row}{'t' if a_across else ''}.b{b_row}{'t' if b_across else ''}"
    full += f".{selector}" if selector else ""
    if (scale_d, scale_a, scale_b) != (1, 1, 1):
        full += f".{scale_d}{'n' if scale_a < 0 else 'p'}{'n' if scale_b < 0 else 'p'}"
    full += ".sums" if sums else ""
    random = Random(full)
    if sums:
        a, b = spread_matrix(a_kind, 64, k, random, 3), spread_matrix(b_kind, k, n, random, 3)
    elif a_kind == "b1":
        a = [[random.bits(1) for _ in range(k)] for _ in range(64)]
        b = [[random.bits(1) for _ in range(n)] for _ in range(k)]
    else:
        a, b = matrix(a_kind, 64, k // 2 if sparse else k, random), matrix(b_kind, k, n, random)
    whole_a, metadata = spread(a, a_kind, k, selector, random) if sparse else (a, None)
    count = n // (4 if half else 2)
    place = places(half, count)
    c_value = [[0] * n for _ in range(64)]
    for t in range(128):
        for r in range(count):
            for e, (row, column) in enumerate(place[t][r]):
                c_value[row][column] = before(t, r) * scale_d * (-1 if e else 1) if half else before(t, r) * scale_d
    if saturate:
        c_value = [[v * ((1 << 31) // 12) for v in row] for row in c_value]
    c = [[bits_of_value(d_kind, Fraction(v)) if not whole else v & ALL for v in row] for row in c_value]
    signed_a = whole_a
    if scale_a * scale_b < 0:
        signed_a = [[bits_of_value(a_kind, -value_of(a_kind, v)) for v in row] for row in whole_a]
    if sums:
        bits_ = (SMALL_FRACTION, SMALL_KEPT) if width(a_kind) == 8 else (FRACTION, KEPT)
        d = tensor_product((d_kind, a_kind, b_kind, d_kind), signed_a, b, c, *bits_)
    else:
        d = product((d_kind, a_kind, b_kind, d_kind), signed_a, b, c, "and" if a_kind == "b1" else None, saturate)
    turned = [[b[at][column] for at in range(k)] for column in range(n)]
    bits = width(a_kind)
    layout_a = Layout(64, bits, a_across, a_row, 0)
    start = 0 if registers else -(-layout_a.bytes // 1024) * 1024
    layout_b = Layout(n, bits, b_across, b_row, start, 64 if sparse else 32)
    size = -(-(start + layout_b.bytes) // 1024) * 1024
    image = [0] * (size // 4)
    if not registers:
        layout_a.write(image, a)
    layout_b.write(image, turned)
    arrays = [Array("in", "s", "b32", image)]
    if registers:
        arrays.append(Array("in", "a", "b32", register_words(a, bits)))
    if sparse:
        arrays.append(Array("in", "e", "b32", metadata))
    out = []
    for t in range(128):
        words = []
        for r in range(count):
            parts = [d[row][column] for row, column in place[t][r]]
            words.append(parts[0] | parts[1] << 16 if half else parts[0] & ALL)
        out += fold(words)
    arrays.append(Array("out", "d", "b32", out))
    text = kernel(name, arrays, count, k, kinds, size, layout_a, layout_b, registers, scale_d, scale_a, scale_b, saturate, selector)
    return kernel_case("wgmma.sp" if sparse else "wgmma", full, title, arrays, text, "grid 1 block 128", target=(84, "90a"))


def spread(a, kind, k, selector, random):
    """A with its zeros, and the metadata of the 128 threads: each warp has those of its 16 rows. Threads that the selector does not
    name hold anything."""
    whole, metadata = [[0] * k for _ in a], [random.bits(32) for _ in range(128)]
    for row, held in enumerate(a):
        columns = kept_columns(kind, random)[0]
        for chunk in range(k // columns):
            _, kept, bits = kept_columns(kind, random)
            lane, bit = metadata_place(kind, k // columns, row % 16, chunk, selector)
            thread = row // 16 * 32 + lane
            metadata[thread] = metadata[thread] & ~(15 << bit) | bits << bit
            for i, one in enumerate(kept):
                whole[row][chunk * columns + one] = held[chunk * len(kept) + i]
    return whole, metadata


def register_words(a, bits):
    """Register r of a thread holds 32 bits of row lane / 4 (+ 8 for odd r), at byte lane % 4 * 4 (+ 16 for r 2 and 3)."""
    out = []
    for t in range(128):
        lane = t % 32
        for r in range(4):
            row = t // 32 * 16 + lane // 4 + r % 2 * 8
            first = (lane % 4 * 32 + r // 2 * 128) // bits
            out.append(sum(a[row][first + e] << e * bits for e in range(32 // bits)))
    return out


def kernel(name, arrays, count, k, kinds, size, layout_a, layout_b, registers, scale_d, scale_a, scale_b, saturate, selector):
    d_kind, a_kind, b_kind = kinds
    sparse = selector is not None
    n = int(name.split(".m64n")[1].split("k")[0])
    half, whole = d_kind == "f16", d_kind == "s32"
    params = ", ".join(f".param .u64 {a.name}" for a in arrays)
    lines = [f".visible .entry test({params})", "{", f"  .shared .align 1024 .b32 area[{size // 4}];"]
    lines += [f"  .reg .b32 %d<{count}>, %a<4>, %o<4>; .reg .u32 %t, %i, %x; .reg .s32 %s; .reg .u64 %at, %to, %b, %e; .reg .pred %p;"]
    lines += ["  .reg .b16 %h, %l; .reg .f32 %f;"]
    lines += ["  mov.u32 %t, %tid.x; mov.u32 %i, %t; ld.param.u64 %at, [s];", "fill:"]
    lines += ["  mad.wide.u32 %b, %i, 4, %at; ld.global.b32 %x, [%b]; mov.u64 %to, area; mad.wide.u32 %to, %i, 4, %to;"]
    lines += [f"  st.shared.b32 [%to], %x; add.u32 %i, %i, 128; setp.lt.u32 %p, %i, {size // 4};", "  @%p bra fill;"]
    if registers:
        lines += ["  ld.param.u64 %at, [a]; mad.wide.u32 %at, %t, 16, %at; ld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%at];"]
    if sparse:
        lines += ["  .reg .b32 %m; ld.param.u64 %at, [e]; mad.wide.u32 %at, %t, 4, %at; ld.global.b32 %m, [%at];"]
    for r in range(count):
        line = f"  mad.lo.u32 %x, %t, 7, {r * 5}; rem.u32 %x, %x, 23; sub.u32 %s, %x, 11; "
        if half:
            line += f"cvt.rn.f16.s32 %l, %s; neg.s32 %s, %s; cvt.rn.f16.s32 %h, %s; mov.b32 %d{r}, {{%l, %h}};"
        elif whole:
            line += f"mul.lo.s32 %d{r}, %s, {(1 << 31) // 12};" if saturate else f"mov.b32 %d{r}, %s;"
        else:
            line += f"cvt.rn.f32.s32 %f, %s; mov.b32 %d{r}, %f;"
        lines.append(line)
    lines += ["  fence.proxy.async; bar.sync 0; wgmma.fence.sync.aligned;"]
    lines += [f"  mov.u64 %b, {layout_b.descriptor() - layout_b.start // 16:#x}; mov.u64 %e, {layout_a.descriptor():#x};"]
    lines += [f"  mov.u64 %to, area; add.u64 %to, %to, {layout_b.start}; shr.u64 %to, %to, 4; or.b64 %b, %b, %to;"]
    lines += [f"  setp.ne.u32 %p, {scale_d}, 0;"]
    d = "{" + ", ".join(f"%d{r}" for r in range(count)) + "}"
    rest = "" if whole else f", {scale_a}, {scale_b}"
    if a_kind in ("f16", "bf16"):
        rest += ("" if registers else f", {int(layout_a.across)}") + f", {int(layout_b.across)}"
    ending = ".and.popc" if a_kind == "b1" else ".satfinite" if saturate else ""
    a = "{%a0, %a1, %a2, %a3}" if registers else "%e"
    which = f", %m, {selector}" if sparse else ""
    form = f"wgmma.mma_async{'.sp' if sparse else ''}.sync.aligned.m64n{n}k{k}.{d_kind}.{a_kind}.{b_kind}{ending}"
    lines += [f"  {form} {d}, {a}, %b{which}, %p{rest};"]
    lines += ["  wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"]
    lines += ["  mov.b32 %o0, 0; mov.b32 %o1, 0; mov.b32 %o2, 0; mov.b32 %o3, 0;"]
    for r in range(count):
        by = r // 4 % 31
        lines += [f"  shf.l.wrap.b32 %x, %d{r}, %d{r}, {by}; xor.b32 %o{r % 4}, %o{r % 4}, %x;"]
    lines += ["  ld.param.u64 %at, [d]; mad.wide.u32 %at, %t, 16, %at; st.global.v4.b32 [%at], {%o0, %o1, %o2, %o3};", "  ret;", "}"]
    return "\n".join(lines)


def cases():
    half = ("f32", "f16", "f16")
    for row in (0, 32, 64, 128):
        yield wgmma(16, half, row, row)
        yield wgmma(64, half, row, row, a_across=1)
        yield wgmma(64, half, row, row, b_across=1)
    yield wgmma(128, half, 128, 128, 1, 1)
    yield wgmma(64, half, 32, 64, 1, 1)
    yield wgmma(8, half, 128, 32)
    yield wgmma(24, half, 128, 128, registers=True)
    yield wgmma(64, half, 128, 128, b_across=1, registers=True)
    yield wgmma(256, half)
    yield wgmma(16, half, scale_d=0)
    yield wgmma(16, half, scale_a=-1)
    yield wgmma(16, half, scale_a=-1, scale_b=-1)
    yield wgmma(32, half, scale_d=0, scale_b=-1, registers=True)
    yield wgmma(32, ("f16", "f16", "f16"))
    yield wgmma(64, ("f16", "f16", "f16"), b_across=1, registers=True)
    yield wgmma(48, ("f32", "bf16", "bf16"))
    yield wgmma(64, ("f32", "bf16", "bf16"), 64, 64, 1, 1)
    yield wgmma(40, ("f32", "tf32", "tf32"))
    yield wgmma(8, ("f32", "tf32", "tf32"), 32, 32, registers=True)
    for a in ("e4m3", "e5m2"):
        for b in ("e4m3", "e5m2"):
            yield wgmma(32, ("f32", a, b), 64, 128)
    yield wgmma(16, ("f16", "e4m3", "e5m2"), registers=True)
    for a in ("s8", "u8"):
        for b in ("s8", "u8"):
            yield wgmma(32, ("s32", a, b), 0, 128)
    yield wgmma(16, ("s32", "s8", "u8"), registers=True)
    yield wgmma(16, ("s32", "s8", "s8"), saturate=True)
    yield wgmma(16, ("s32", "b1", "b1"))
    yield wgmma(24, ("s32", "b1", "b1"), 32, 32, registers=True)
    for d_kind, kind in (("f32", "f16"), ("f16", "f16"), ("f32", "bf16"), ("f32", "tf32"), ("f32", "e4m3"), ("f16", "e5m2")):
        yield wgmma(16, (d_kind, kind, kind), sums=True, registers=kind == "tf32")
    yield from sparse_cases()


def sparse_cases():
    half = ("f32", "f16", "f16")
    for row in (0, 64, 128):
        yield wgmma(16, half, 128 - row, row, selector=0)
    for row in (0, 32, 64, 128):
        yield wgmma(64, half, row, max(row, 64), 1, 0, selector=1)
        yield wgmma(64, half, 128, row, 0, 1, selector=0)
    yield wgmma(128, half, 32, 32, 1, 1, selector=1)
    yield wgmma(24, half, registers=True, selector=0)
    yield wgmma(64, half, b_across=1, registers=True, selector=1)
    yield wgmma(256, half, selector=1)
    yield wgmma(8, half, scale_d=0, scale_a=-1, selector=0)
    yield wgmma(32, ("f16", "f16", "f16"), selector=1)
    yield wgmma(16, ("f16", "f16", "f16"), registers=True, scale_b=-1, selector=0)
    yield wgmma(48, ("f32", "bf16", "bf16"), selector=0)
    yield wgmma(64, ("f32", "bf16", "bf16"), 64, 64, 1, 1, selector=1)
    yield wgmma(40, ("f32", "tf32", "tf32"), selector=0)
    yield wgmma(8, ("f32", "tf32", "tf32"), 32, 64, registers=True, selector=1)
    yield wgmma(32, ("f32", "e4m3", "e5m2"), 64, 128, selector=0)
    yield wgmma(16, ("f32", "e5m2", "e5m2"), 32, 64, selector=0)
    yield wgmma(16, ("f16", "e5m2", "e4m3"), registers=True, selector=0)
    for a in ("s8", "u8"):
        for b in ("s8", "u8"):
            yield wgmma(32, ("s32", a, b), 0, 128, selector=0)
    yield wgmma(16, ("s32", "u8", "s8"), registers=True, selector=0)
    yield wgmma(16, ("s32", "s8", "s8"), saturate=True, selector=0)
    yield wgmma(16, ("s32", "u8", "s8"), scale_d=0, selector=0)
    yield from sparse_faults()


def sparse_faults():
    """What the manual does not define: other selectors, other depths, single bits, rows of B that are swizzled and shorter than K."""
    deep, short, half, bytes_ = 1 << 62, 3 << 62, "f16.f16", "e4m3.e4m3"

    def wrong(name, title, form, selector, rest="1, 1", descriptor=deep, fault="unsupported"):
        text = """.visible .entry test(.param .u64 d)
{
  .shared .align 1024 .b32 area[1024];
  .reg .b32 %d<4>, %m; .reg .u64 %a, %b; .reg .pred %p;
  mov.b32 %d0, 0; mov.b32 %d1, 0; mov.b32 %d2, 0; mov.b32 %d3, 0; mov.b32 %m, 0x44444444; setp.eq.u32 %p, 0, 0;
"""
        text += f"  mov.u64 %a, area; shr.u64 %a, %a, 4; or.b64 %b, %a, {descriptor:#x}; or.b64 %a, %a, {deep:#x};\n"
        text += f"  wgmma.mma_async.sp.sync.aligned.{form} {{%d0, %d1, %d2, %d3}}, %a, %b, %m, {selector}, %p{', ' if rest else ''}{rest}; // faults here\n"
        text += "  wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n  ret;\n}"
        arrays = [Array("in", "d", "u32", [0])]
        return kernel_case("wgmma.fault", f"wgmma.sp.{name}", title, arrays, text, "grid 1 block 128", target=(84, "90a"), headers=[f"fault: {fault}"])

    yield wrong("selector", "a third pair of threads", f"m64n8k32.f32.{half}", 2, "1, 1, 0, 0")
    yield wrong("selector_bytes", "all threads have metadata", f"m64n8k64.f32.{bytes_}", 1)
    yield wrong("selector_register", "the selector is a register", f"m64n8k32.f32.{half}", "%m", "1, 1, 0, 0")
    yield wrong("depth", "K of a dense A", f"m64n8k16.f32.{half}", 0, "1, 1, 0, 0")
    yield wrong("bits", "single bits", "m64n8k256.s32.b1.b1.and.popc", 0, "")
    yield wrong("short_rows", "swizzled rows of B of 32 bytes", f"m64n8k32.f32.{half}", 0, "1, 1, 0, 0", short, "illegal_instruction")
