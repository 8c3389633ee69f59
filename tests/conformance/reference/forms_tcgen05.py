# SPDX-License-Identifier: Apache-2.0
"""Conformance cases of tcgen05: tensor memory, its allocation, loads and stores, commit.

Tensor memory is a dictionary here, (lane, column) to a word. Where the registers of a warp lie follows from the manual's figures
("Matrix fragments for shape ..."): eight rows of four threads, sixteen rows as two of these. What is wrong ends with a fault at the
instruction."""
from .forms_control import kernel_case
from .forms_warp import reduced_floats
from .forms_wgmma import fold
from .writer import Array

ALL = 0xFFFFFFFF
FILL, GIVEN = 0x9E3779B1, 0x85EBCA6B
TARGET = (88, "100a")
SHAPES = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}  # registers of .x1


def power(n):
    return 1 << (n - 1).bit_length()


def filled(lane, column):
    return (lane * 512 + column) * FILL & ALL


def folded(values):
    """A lane as one word, as READ_LANES makes it."""
    word = 0
    for value in values:
        word = (word * 31 + value) & ALL
    return word


def given(thread, register):
    return (thread * 131 + register) * GIVEN & ALL


def place(shape, t, r):
    """(row, word of the row, whether it is the second half's) of register r of thread t."""
    group, rest = divmod(t, 4)
    if shape == "32x32b":
        return t, r, False
    if shape == "16x32bx2":
        return t % 16, r, t >= 16
    if shape == "16x64b":  # two words in each row; threads 0 and 2 of four have row g, 1 and 3 row g + 8
        return group + (8 if rest in (1, 3) else 0), r * 2 + (1 if rest >= 2 else 0), False
    if shape == "16x128b":  # tiles of 8 x 4 words: the upper, the lower, then those to the right
        tile, half = divmod(r, 2)
        return group + 8 * half, tile * 4 + rest, False
    tile, inside = divmod(r, 4)  # 16x256b: tiles of 8 x 8 words, each thread two neighbours
    half, word = divmod(inside, 2)
    return group + 8 * half, tile * 8 + rest * 2 + word, False


def words(shape, registers):
    return max(place(shape, t, r)[1] for t in range(32) for r in (registers - 1,)) + 1


HEAD = """.visible .entry test({params})
{{
  .shared .align 8 .b32 at_word[4]; .shared .align 8 .b64 done;
  .reg .b32 %r<128>, %o<4>; .reg .u32 %t, %w, %column, %x, %v; .reg .b32 %base, %lane, %y; .reg .u64 %at, %e; .reg .pred %p, %first;
  mov.u32 %t, %tid.x; shr.u32 %w, %t, 5; setp.eq.u32 %first, %w, 0;
"""
ALLOC = """  @!%first bra allocated;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [at_word], {columns};
  tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
allocated:
  bar.sync 0; ld.shared.u32 %base, [at_word]; and.b32 %x, %w, 3; shl.b32 %x, %x, 21; add.u32 %base, %base, %x;
"""
SYNC = "  tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;\n"
FREE = SYNC + """  @!%first bra freed;
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %base, {columns};
freed:
  ret;
}}"""
FILLS = """  mov.u32 %column, 0;
fill:
{values}  add.u32 %x, %base, %column; tcgen05.st.sync.aligned.32x32b.x8.b32 [%x], {{%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}};
  add.u32 %column, %column, 8; setp.lt.u32 %p, %column, {columns};
  @%p bra fill;
  tcgen05.wait::st.sync.aligned;
"""
READ_LANES = """  mov.u32 %column, 0; mov.u32 %y, 0;
read:
  add.u32 %x, %base, %column;
  tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r0}}, [%x]; tcgen05.wait::ld.sync.aligned; mad.lo.u32 %y, %y, 31, %r0;
  add.u32 %column, %column, 1; setp.lt.u32 %p, %column, {columns};
  @%p bra read;
  ld.param.u64 %at, [d]; mad.wide.u32 %at, %t, 4, %at; st.global.b32 [%at], %y;
"""
STORE_FOLDED = "  ld.param.u64 %at, [d]; mad.wide.u32 %at, %t, 16, %at; st.global.v4.b32 [%at], {%o0, %o1, %o2, %o3};\n"


def vector(count):
    return "{" + ", ".join(f"%r{r}" for r in range(count)) + "}"


def fill(columns):
    values = "".join(
        f"  mad.lo.u32 %v, %t, 512, %column; add.u32 %v, %v, {c}; mul.lo.u32 %r{c}, %v, {FILL:#x};\n" for c in range(8)
    )
    return FILLS.format(values=values, columns=columns)


def folding(count):
    lines = ["  mov.b32 %o0, 0; mov.b32 %o1, 0; mov.b32 %o2, 0; mov.b32 %o3, 0;"]
    for r in range(count):
        lines += [f"  shf.l.wrap.b32 %x, %r{r}, %r{r}, {r // 4 % 31}; xor.b32 %o{r % 4}, %o{r % 4}, %x;"]
    return "\n".join(lines) + "\n"


def case(mnemonic, name, title, arrays, text, launch="grid 1 block 128", headers=()):
    return kernel_case(mnemonic, name, title, arrays, text, launch, target=TARGET, headers=headers)


def geometry(shape, times, halves, start, upper):
    registers = SHAPES[shape] * times
    span = words(shape, registers) * (2 if halves else 1)
    split = span if shape == "16x32bx2" else 0
    columns = max(32, power(start + span + split))
    return registers, split, columns, upper << 20 | start


def load(shape, times, halves=False, start=0, upper=0):
    """Tensor memory is filled, and read in a shape. upper: from lane 16 of each warp's on."""
    registers, split, columns, offset = geometry(shape, times, halves, start, upper)
    word = f"tcgen05.ld.sync.aligned.{shape}.x{times}{'.pack::16b' if halves else ''}.b32"
    out = []
    for thread in range(128):
        got = []
        for r in range(registers):
            row, at, second = place(shape, thread % 32, r)
            lane, column = thread // 32 * 32 + 16 * upper + row, start + (split if second else 0)
            if halves:
                low, high = (filled(lane, column + 2 * at + h) & 0xFFFF for h in (0, 1))
                got.append(low | high << 16)
            else:
                got.append(filled(lane, column + at))
        out += fold(got)
    arrays = [Array("out", "d", "b32", out)]
    extra = f", {split}" if split else ""
    text = HEAD.format(params=".param .u64 d") + ALLOC.format(columns=columns) + fill(columns)
    text += f"  add.u32 %lane, %base, {offset:#x}; {word} {vector(registers)}, [%lane]{extra};\n  tcgen05.wait::ld.sync.aligned;\n"
    text += folding(registers) + STORE_FOLDED + FREE.format(columns=columns)
    name = f"{word[:-4]}{f'.from{start}' if start else ''}{'.upper' if upper else ''}"
    return case("ld", name, "what was stored by lanes and columns", arrays, text)


def store(shape, times, halves=False, start=0, upper=0):
    """Registers are stored in a shape over what is there; then each thread reads its lane."""
    registers, split, columns, offset = geometry(shape, times, halves, start, upper)
    word = f"tcgen05.st.sync.aligned.{shape}.x{times}{'.unpack::16b' if halves else ''}.b32"
    memory = {(lane, column): filled(lane, column) for lane in range(128) for column in range(columns)}
    for thread in range(128):
        for r in range(registers):
            row, at, second = place(shape, thread % 32, r)
            lane, column = thread // 32 * 32 + 16 * upper + row, start + (split if second else 0)
            value = given(thread, r)
            if halves:
                memory[lane, column + 2 * at], memory[lane, column + 2 * at + 1] = value & 0xFFFF, value >> 16
            else:
                memory[lane, column + at] = value
    out = []
    for lane in range(128):
        out.append(folded(memory[lane, column] for column in range(columns)))
    arrays = [Array("out", "d", "b32", out)]
    text = HEAD.format(params=".param .u64 d") + ALLOC.format(columns=columns) + fill(columns)
    for r in range(registers):
        text += f"  mad.lo.u32 %v, %t, 131, {r}; mul.lo.u32 %r{r}, %v, {GIVEN:#x};\n"
    extra = f", {split}" if split else ""
    text += f"  add.u32 %lane, %base, {offset:#x}; {word} [%lane]{extra}, {vector(registers)};\n  tcgen05.wait::st.sync.aligned;\n"
    text += READ_LANES.format(columns=columns) + FREE.format(columns=columns)
    name = f"{word[:-4]}{f'.from{start}' if start else ''}{'.upper' if upper else ''}"
    return case("st", name, "read again by lanes and columns", arrays, text)


def reduced(words, operation, kind, absolute, nan):
    """As redux.sync does it."""
    if kind == "f32":
        return reduced_floats(words, operation, absolute, nan)
    value = {"u32": lambda word: word, "s32": lambda word: word - (word >> 31 << 32)}[kind]
    return operation(words, key=value)


def load_reduced(shape, times, operation, kind, absolute=False, nan=False, first=(), upper=0):
    """What each thread's words are reduced to, and with integers these words, too. first: words of the first columns, of every lane."""
    registers, split, columns, offset = geometry(shape, times, False, 0, upper)
    flags = (".abs" if absolute else "") + (".NaN" if nan else "")
    word = f"tcgen05.ld.red.sync.aligned.{shape}.x{times}.{operation.__name__}{flags}.{kind}"
    cell = lambda lane, column: first[column] if column < len(first) else filled(lane, column)
    out, results = [], []
    for thread in range(128):
        got = []
        for r in range(registers):
            row, at, second = place(shape, thread % 32, r)
            got.append(cell(thread // 32 * 32 + 16 * upper + row, at + (split if second else 0)))
        out += fold(got)
        results.append(reduced(got, operation, kind, absolute, nan))
    both = kind != "f32"
    arrays = [Array("out", "e", "b32", results)] + ([Array("out", "d", "b32", out)] if both else [])
    extra = f", {split}" if split else ""
    text = HEAD.format(params=".param .u64 e" + (", .param .u64 d" if both else "")) + ALLOC.format(columns=columns) + fill(columns)
    if first:
        text += "".join(f"  mov.b32 %r{n}, {value:#x};\n" for n, value in enumerate(first))
        text += f"  tcgen05.st.sync.aligned.32x32b.x{len(first)}.b32 [%base], {vector(len(first))}; tcgen05.wait::st.sync.aligned;\n"
    text += f"  add.u32 %lane, %base, {offset:#x}; {word} {vector(registers)}, %y, [%lane]{extra};\n  tcgen05.wait::ld.sync.aligned;\n"
    text += "  ld.param.u64 %e, [e]; mad.wide.u32 %e, %t, 4, %e; st.global.b32 [%e], %y;\n"
    text += (folding(registers) + STORE_FOLDED if both else "") + FREE.format(columns=columns)
    name = word + (".first" + "_".join(f"{value:x}" for value in first) if first else "") + (".upper" if upper else "")
    return kernel_case("ld_red", name, "the words, and what they are reduced to", arrays, text, "grid 1 block 128", target=(88, "103a"))


def reductions():
    for operation in (min, max):
        yield load_reduced("32x32b", 2, operation, "u32")
        yield load_reduced("32x32b", 64, operation, "s32")
        yield load_reduced("16x32bx2", 4, operation, "s32", upper=1)
        yield load_reduced("16x32bx2", 128, operation, "u32")
        for absolute in (False, True):
            for nan in (False, True):
                yield load_reduced("32x32b", 128, operation, "f32", absolute, nan)
                yield load_reduced("16x32bx2", 32, operation, "f32", absolute, nan)
                yield load_reduced("32x32b", 2, operation, "f32", absolute, nan, (0x7FC00001, 0xFFFFFFFF))
                yield load_reduced("32x32b", 4, operation, "f32", absolute, nan, (0xFF800001, 0xBF800000))
        yield load_reduced("32x32b", 2, operation, "f32", first=(0, 0x80000000))
        yield load_reduced("32x32b", 2, operation, "f32", first=(0x80000000, 0))


def moves(form):
    yield form("32x32b", 1)
    yield form("32x32b", 32, start=5)
    yield form("32x32b", 128)
    yield form("32x32b", 8, halves=True)
    yield form("16x64b", 1, upper=1)
    yield form("16x64b", 4, start=32)
    yield form("16x64b", 128)
    yield form("16x64b", 2, halves=True)
    yield form("16x128b", 1)
    yield form("16x128b", 8, upper=1)
    yield form("16x128b", 64)
    yield form("16x128b", 16, halves=True, start=2)
    yield form("16x256b", 1)
    yield form("16x256b", 4, start=3)
    yield form("16x256b", 32, upper=1)
    yield form("16x256b", 2, halves=True)
    yield form("16x32bx2", 1)
    yield form("16x32bx2", 16, upper=1)
    yield form("16x32bx2", 128)
    yield form("16x32bx2", 4, halves=True)


# ---- allocations ----

ALLOCATE = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"
DEALLOCATE = "tcgen05.dealloc.cta_group::1.sync.aligned.b32"
RELINQUISH = "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned"
D = ".param .u64 d"
PUT = "  ld.param.u64 %at, [d]; mad.wide.u32 %at, %t, 4, %at; st.global.u32 [%at], %y;\n"


def allocations():
    text = HEAD.format(params=D)
    for n, columns in enumerate((256, 128, 64, 64)):  # all 512, no two of which overlap
        text += f"  {ALLOCATE} [at_word+{4 * n}], {columns};\n"
    text += "  bar.warp.sync 0xffffffff; and.b32 %x, %t, 3; mul.wide.u32 %at, %x, 4; mov.u64 %e, at_word; add.u64 %at, %at, %e;\n"
    text += "  ld.shared.u32 %lane, [%at]; mov.u32 %y, 0;\n"
    for n, columns in enumerate((256, 128, 64, 64)):
        text += f"  ld.shared.u32 %base, [at_word+{4 * n}]; and.b32 %x, %base, {columns - 1}; add.u32 %y, %y, {columns};\n"
        text += f"  mov.u32 %v, {n + 1}; tcgen05.st.sync.aligned.32x32b.x1.b32 [%base], {{%v}};\n"
        text += f"  add.u32 %x, %base, {columns - 1}; tcgen05.st.sync.aligned.32x32b.x1.b32 [%x], {{%v}};\n"
    text += "  mov.u32 %y, 0;\n"
    for n, columns in enumerate((256, 128, 64, 64)):
        text += f"  ld.shared.u32 %base, [at_word+{4 * n}]; add.u32 %x, %base, {columns - 1};\n"
        text += "  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%base]; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%x];\n"
        text += "  mad.lo.u32 %y, %y, 10, %r0; mad.lo.u32 %y, %y, 10, %r1;\n"
    text += PUT
    for n, columns in enumerate((256, 128, 64, 64)):
        text += f"  ld.shared.u32 %base, [at_word+{4 * n}]; {DEALLOCATE} %base, {columns};\n"
    out = [Array("out", "d", "u32", [11223344] * 32)]
    yield case("alloc", "tcgen05.alloc.four", "allocations do not overlap", out, text + "  ret;\n}", "grid 1 block 32")
    text = HEAD.format(params=D) + f"  mov.u32 %y, 0;\nagain:\n  {ALLOCATE} [at_word], 512; ld.shared.u32 %base, [at_word];\n"
    text += f"  {DEALLOCATE} %base, 512; add.u32 %y, %y, 1; setp.lt.u32 %p, %y, 9;\n  @%p bra again;\n  {RELINQUISH};\n" + PUT + "  ret;\n}"
    yield case("alloc", "tcgen05.alloc.again", "freed columns are there again", [Array("out", "d", "u32", [9] * 32)], text, "grid 1 block 32")
    text = HEAD.format(params=D)
    text += f"""  mov.u32 %y, 0; st.shared.u32 [at_word+8], %y;
  @!%first bra second;
  {ALLOCATE} [at_word], 512; bar.sync 0;
wait:
  add.u32 %y, %y, 1; setp.lt.u32 %p, %y, 3000;
  @%p bra wait;
  st.shared.u32 [at_word+8], %y; ld.shared.u32 %base, [at_word]; {DEALLOCATE} %base, 512;
  bra both;
second:
  bar.sync 0; {ALLOCATE} [at_word+4], 512; ld.shared.u32 %y, [at_word+8]; ld.shared.u32 %base, [at_word+4]; {DEALLOCATE} %base, 512;
both:
""" + PUT + "  ret;\n}"
    out = [Array("out", "d", "u32", [3000] * 64)]
    yield case("alloc", "tcgen05.alloc.waits", "the second warp waits for the first to free its columns", out, text, "grid 1 block 64")
    text = HEAD.format(params=D) + f"  {ALLOCATE} [at_word], 512; ld.shared.u32 %base, [at_word]; mov.u32 %y, %ctaid.x;\n"
    text += f"  tcgen05.st.sync.aligned.32x32b.x1.b32 [%base+7], {{%y}}; tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%y}}, [%base+7];\n"
    text += f"  mov.u32 %x, %ctaid.x; mad.lo.u32 %t, %x, 32, %t; {DEALLOCATE} %base, 512;\n" + PUT + "  ret;\n}"
    out = [Array("out", "d", "u32", [n // 32 for n in range(640)])]
    yield case("alloc", "tcgen05.alloc.blocks", "twenty blocks, each with all columns", out, text, "grid 20 block 32")


# ---- commit ----

WAIT = """wait:
  mbarrier.try_wait.parity.shared::cta.b64 %p, [done], 0;
  @!%p bra wait;
"""


def commits():
    text = HEAD.format(params=D) + "  setp.eq.u32 %p, %t, 0;\n  @%p mbarrier.init.shared::cta.b64 [done], 1;\n  bar.sync 0;\n"
    text += "  @%p tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];\n" + WAIT + "  mov.u32 %y, 5;\n" + PUT + "  ret;\n}"
    out = [Array("out", "d", "u32", [5] * 64)]
    yield case("commit", "tcgen05.commit.one", "an arrival", out, text, "grid 1 block 64")
    text = HEAD.format(params=D) + "  setp.eq.u32 %p, %t, 0; mov.u64 %at, done; cvta.shared.u64 %at, %at;\n"
    text += "  @%p mbarrier.init.shared::cta.b64 [done], 2;\n  bar.sync 0; setp.lt.u32 %p, %t, 2;\n"
    text += "  @%p tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%at];\n" + WAIT + "  mov.u32 %y, 6;\n" + PUT + "  ret;\n}"
    yield case("commit", "tcgen05.commit.generic", "two threads arrive, by a generic address", [Array("out", "d", "u32", [6] * 64)], text, "grid 1 block 64")
    text = HEAD.format(params=D) + "  .reg .b16 %mask; mov.b16 %mask, 13; setp.eq.u32 %p, %t, 0;\n  @%p mbarrier.init.shared::cta.b64 [done], 1;\n"
    text += "  barrier.cluster.arrive; barrier.cluster.wait; mov.u32 %x, %cluster_ctarank; setp.eq.and.u32 %first, %x, 1, %p;\n"
    text += "  @%first tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [done], %mask;\n"
    text += "  barrier.cluster.arrive; barrier.cluster.wait; mbarrier.test_wait.parity.shared::cta.b64 %p, [done], 0; selp.u32 %y, 1, 0, %p;\n"
    text += "  mad.lo.u32 %t, %x, 32, %t;\n" + PUT + "  ret;\n}"
    out = [Array("out", "d", "u32", [(13 >> n // 32) & 1 for n in range(128)])]
    yield case("commit", "tcgen05.commit.multicast", "mbarriers of blocks 0, 2 and 3 of the cluster", out, text, "grid 4 block 32 cluster 4")


# ---- cp, shift ----

COPIES = {  # rows, chunks of 16 bytes in one, where row r goes
    "128x256b": (128, 2, lambda r: [r]),
    "128x128b": (128, 1, lambda r: [r]),
    "4x256b": (4, 2, lambda r: [32 * r]),
    "64x128b.warpx2::02_13": (64, 1, lambda r: [r, r + 64]),
    "64x128b.warpx2::01_23": (64, 1, lambda r: [r // 32 * 64 + r % 32 + 32 * n for n in (0, 1)]),
    "32x128b.warpx4": (32, 1, lambda r: [r + 32 * n for n in range(4)]),
}
MODE = {0: 0, 128: 2, 64: 4, 32: 6}


def chunk_at(row, chunk, row_bytes):
    """Where it is in shared memory: eight rows one behind the other, swizzled in rows of so many bytes; 0: not, and the second chunks far off."""
    if not row_bytes:
        return row * 16 + chunk * 2048
    at = row % 8 * row_bytes + row // 8 * 8 * row_bytes + chunk * 16
    return at ^ (at >> 7) % (row_bytes // 16) * 16


def expanded(data, bits):
    whole = int.from_bytes(data, "little")
    return bytes(((whole >> i * bits) & ((1 << bits) - 1)) << (2 if bits == 4 else 0) for i in range(16))


def as_pair(text, by, in_bytes=0):
    """A kernel of one block for a pair: the first thread of block `by` issues, for both; each has its own part of the arrays."""
    text = text.replace("cta_group::1", "cta_group::2").replace(SYNC[:-1], SYNC[:-1].replace("bar.sync 0;", "barrier.cluster.arrive; barrier.cluster.wait;"))
    text = text.replace("  mov.u32 %t, %tid.x;", "  .reg .u32 %rank; mov.u32 %rank, %cluster_ctarank;\n  mov.u32 %t, %tid.x;", 1)
    text = text.replace("setp.eq.u32 %p, %t, 0;", f"mad.lo.u32 %x, %rank, 128, %t; setp.eq.u32 %p, %x, {128 * by};", 1)
    for name, bytes_ in (("s", in_bytes), ("d", 512)):
        text = text.replace(f"ld.param.u64 %at, [{name}];", f"ld.param.u64 %at, [{name}]; mad.wide.u32 %at, %rank, {bytes_}, %at;")
    return text


def copied_lanes(image, shape, row_bytes, bits, start, lane):
    """The lanes of tensor memory behind a copy from this shared memory, each as one word."""
    rows, chunks, goes = COPIES[shape]
    raw = b"".join(word.to_bytes(4, "little") for word in image)
    memory = {(at, column): filled(at, column) for at in range(128) for column in range(32)}
    for row in range(rows):
        for chunk in range(chunks):
            at = chunk_at(row, chunk, row_bytes)
            data = raw[at : at + 16]
            if bits:
                data = expanded(data, bits)
            for target in goes(row):
                for word in range(4):
                    memory[target + lane, start + chunk * 4 + word] = int.from_bytes(data[4 * word : 4 * word + 4], "little")
    return [folded(memory[at, column] for column in range(32)) for at in range(128)]


def copied(shape, row_bytes=0, bits=0, start=0, lane=0, pair_by=None):
    """pair_by: two blocks copy, each its own rows, as this one says."""
    chunks = COPIES[shape][1]
    formats = {0: "", 4: ".b8x16.b4x16_p64", 6: ".b8x16.b6x16_p32"}[bits]
    name = f"tcgen05.cp.{shape}{formats}.{row_bytes}{f'.from{start}' if start else ''}{f'.lane{lane}' if lane else ''}"
    size, blocks = 128 * max(row_bytes, 16 * chunks), 1 if pair_by is None else 2
    image = [(i * 0x9E3779B1 + 7) & ALL for i in range(blocks * size // 4)]
    out = []
    for block in range(blocks):
        out += copied_lanes(image[block * size // 4 : (block + 1) * size // 4], shape, row_bytes, bits, start, lane)
    stride, leading = (8 * row_bytes, 0) if row_bytes else (128, 2048)
    descriptor = leading >> 4 << 16 | stride >> 4 << 32 | 1 << 46 | MODE[row_bytes] << 61
    arrays = [Array("in", "s", "b32", image), Array("out", "d", "b32", out)]
    text = HEAD.format(params=".param .u64 s, .param .u64 d").replace("{\n", f"{{\n  .shared .align 1024 .b32 area[{size // 4}]; .reg .u64 %to;\n", 1)
    text += "  ld.param.u64 %at, [s]; mov.u32 %column, %t;\nimage:\n"
    text += "  mad.wide.u32 %e, %column, 4, %at; ld.global.b32 %x, [%e]; mov.u64 %to, area; mad.wide.u32 %to, %column, 4, %to;\n"
    text += f"  st.shared.b32 [%to], %x; add.u32 %column, %column, 128; setp.lt.u32 %p, %column, {size // 4};\n  @%p bra image;\n"
    text += "  fence.proxy.async.shared::cta;\n" + ALLOC.format(columns=32) + fill(32)
    text += SYNC[:-1] + " setp.eq.u32 %p, %t, 0;\n"
    text += f"  mov.u64 %to, area; shr.u64 %to, %to, 4; mov.u64 %e, {descriptor:#x}; add.u64 %e, %e, %to;\n"
    text += f"  @%p tcgen05.cp.cta_group::1.{shape}{formats} [%base+{lane << 16 | start}], %e;\n" + SYNC + READ_LANES.format(columns=32) + FREE.format(columns=32)
    if pair_by is None:
        return case("cp", name, "rows of shared memory in lanes", arrays, text)
    text = as_pair(text, pair_by, size)
    return case("cp", f"{name}.pair{pair_by}", "each of two blocks has its own rows", arrays, text, "grid 2 block 128 cluster 2")


def shifted(lane, start, pair_by=None):
    memory = {(at, column): filled(at, column) for at in range(128) for column in range(32)}
    for row in range(31):
        for column in range(start, start + 8):
            memory[lane + row, column] = filled(lane + row + 1, column)
    out = []
    for at in range(128):
        out.append(folded(memory[at, column] for column in range(32)))
    text = HEAD.format(params=D) + ALLOC.format(columns=32) + fill(32)
    text += SYNC[:-1] + " setp.eq.u32 %p, %t, 0;\n"
    text += f"  @%p tcgen05.shift.cta_group::1.down [%base+{lane << 16 | start}];\n" + SYNC + READ_LANES.format(columns=32) + FREE.format(columns=32)
    name = f"tcgen05.shift.down.lane{lane}.from{start}"
    if pair_by is None:
        return case("shift", name, "31 rows of 32 bytes get the next one", [Array("out", "d", "b32", out)], text)
    arrays = [Array("out", "d", "b32", out * 2)]
    return case("shift", f"{name}.pair{pair_by}", "the same in both blocks", arrays, as_pair(text, pair_by), "grid 2 block 128 cluster 2")


def copies():
    yield copied("128x256b")
    yield copied("128x256b", 128, start=9)
    yield copied("128x256b", 32)
    yield copied("128x128b", start=4)
    yield copied("128x128b", 64)
    yield copied("4x256b", lane=31)
    yield copied("64x128b.warpx2::02_13")
    yield copied("64x128b.warpx2::01_23", start=28)
    yield copied("32x128b.warpx4", start=3)
    yield copied("128x256b", 0, 4)
    yield copied("128x128b", 128, 6)
    yield copied("32x128b.warpx4", 0, 6)
    yield shifted(0, 0)
    yield shifted(96, 24)
    for by in (0, 1):
        yield copied("128x256b", start=by, pair_by=by)
        yield shifted(32, 8, pair_by=by)


# ---- what is wrong ----


def fault(name, title, body, launch="grid 1 block 32", kind="illegal_instruction"):
    text = HEAD.format(params=D) + body + "  ret;\n}"
    return case("fault", f"tcgen05.{name}", title, [Array("in", "d", "u32", [0])], text, launch, headers=[f"fault: {kind}"])


def pair_fault(name, title, body, kind, cluster=2):
    text = HEAD.format(params=D) + "  .reg .u32 %rank; .reg .pred %second; mov.u32 %rank, %cluster_ctarank; setp.eq.u32 %second, %rank, 1;\n" + body + "  ret;\n}"
    return case("fault", f"tcgen05.{name}", title, [Array("in", "d", "u32", [0])], text, f"grid {cluster} block 32 cluster {cluster}", headers=[f"fault: {kind}"])


def faults_of_pairs():
    allocate, deallocate = ALLOCATE.replace("::1", "::2", 1), DEALLOCATE.replace("::1", "::2", 1)
    take = f"  {allocate} [at_word], 64; ld.shared.u32 %base, [at_word];\n"
    yield pair_fault("pair.alone", "a cluster of one block", f"  {allocate} [at_word], 64; // faults here\n", "illegal_instruction", 1)
    yield pair_fault("pair.differs", "blocks of a pair allocate different numbers of columns", f"  selp.u32 %x, 64, 32, %second;\n  {allocate} [at_word], %x; // faults here\n", "illegal_instruction")
    yield pair_fault("pair.waits", "only one block of the pair allocates", f"  @%second bra none;\n  {allocate} [at_word], 64;\nnone:\n  barrier.cluster.arrive;\n  barrier.cluster.wait; // faults here\n", "barrier")
    yield pair_fault("pair.mixed", "one and two blocks in one kernel", take + f"  {DEALLOCATE} %base, 64; // faults here\n", "illegal_instruction")
    done = "  barrier.cluster.arrive; barrier.cluster.wait;\n"
    yield pair_fault("pair.exited", "the other block has ended", take + done + f"  @!%second bra stays;\n  {deallocate} %base, 64;\n  exit;\nstays:\n  mov.u32 %y, 0;\nwait:\n  nanosleep.u32 100; add.u32 %y, %y, 1; setp.lt.u32 %p, %y, 1000;\n  @%p bra wait;\n  tcgen05.shift.cta_group::2.down [%base]; // faults here\n", "illegal_instruction")


def pair_allocations():
    """Both blocks get the same columns, whichever comes first; one has allocated, freed and allocated again."""
    allocate, deallocate = ALLOCATE.replace("::1", "::2", 1), DEALLOCATE.replace("::1", "::2", 1)
    text = HEAD.format(params=D) + "  .reg .u32 %rank; mov.u32 %rank, %cluster_ctarank; mov.u32 %y, 0;\n"
    text += f"  {allocate} [at_word], 256; {allocate} [at_word+4], 256;\n  ld.shared.u32 %base, [at_word]; {deallocate} %base, 256;\n"
    text += f"  {allocate} [at_word+8], 128; {allocate} [at_word+12], 128;\n"
    for n in (1, 2, 3):
        text += f"  ld.shared.u32 %x, [at_word+{4 * n}]; mad.lo.u32 %y, %y, 1000, %x;\n"
    text += "  mad.lo.u32 %t, %rank, 32, %t;\n" + PUT
    for n, columns in ((1, 256), (2, 128), (3, 128)):
        text += f"  ld.shared.u32 %base, [at_word+{4 * n}]; {deallocate} %base, {columns};\n"
    yield case("alloc", "tcgen05.alloc.pair", "two blocks allocate together", [Array("out", "d", "u32", [256000128] * 64)], text + "  ret;\n}", "grid 2 block 32 cluster 2")


def uneven_allocations(freed):
    """A block has freed its first columns, the other has not: both get others."""
    allocate, deallocate = ALLOCATE.replace("::1", "::2", 1), DEALLOCATE.replace("::1", "::2", 1)
    meet = "  barrier.cluster.arrive; barrier.cluster.wait;\n"
    text = HEAD.format(params=D) + "  .reg .u32 %rank; .reg .pred %second; mov.u32 %rank, %cluster_ctarank; setp.eq.u32 %second, %rank, 1;\n"
    text += f"  {allocate} [at_word], 128; {allocate} [at_word+4], 128; ld.shared.u32 %base, [at_word];\n"
    text += f"  @{'' if freed == 0 else '!'}%second bra kept;\n  {deallocate} %base, 128;\nkept:\n{meet}  {allocate} [at_word+8], 128;\n{meet}"
    text += f"  @{'!' if freed == 0 else ''}%second bra freed;\n  {deallocate} %base, 128;\nfreed:\n  ld.shared.u32 %y, [at_word+8]; mad.lo.u32 %t, %rank, 32, %t;\n" + PUT
    for n in (1, 2):
        text += f"  ld.shared.u32 %base, [at_word+{4 * n}]; {deallocate} %base, 128;\n"
    yield case("alloc", f"tcgen05.alloc.uneven{'.first' if freed == 0 else ''}", "columns that are free in both", [Array("out", "d", "u32", [256] * 64)], text + "  ret;\n}", "grid 2 block 32 cluster 2")


def allocations_in_turns():
    """Between two allocations the blocks meet: no request of the first is left for the second, which is of fewer columns."""
    allocate, deallocate = ALLOCATE.replace("::1", "::2", 1), DEALLOCATE.replace("::1", "::2", 1)
    text = HEAD.format(params=D) + "  .reg .u32 %rank; mov.u32 %rank, %cluster_ctarank;\n"
    for n, columns in enumerate((256, 128, 64)):
        text += f"  {allocate} [at_word+{4 * n}], {columns};\n  barrier.cluster.arrive; barrier.cluster.wait;\n"
    text += "  ld.shared.u32 %y, [at_word+4]; ld.shared.u32 %x, [at_word+8]; mad.lo.u32 %y, %y, 1000, %x; mad.lo.u32 %t, %rank, 32, %t;\n" + PUT
    for n, columns in enumerate((256, 128, 64)):
        text += f"  ld.shared.u32 %base, [at_word+{4 * n}]; {deallocate} %base, {columns};\n"
    yield case("alloc", "tcgen05.alloc.turns", "two blocks allocate together, and meet after each", [Array("out", "d", "u32", [256384] * 64)], text + "  ret;\n}", "grid 2 block 32 cluster 2")


def faults():
    take = f"  {ALLOCATE} [at_word], 64; ld.shared.u32 %base, [at_word];\n"
    load_word = "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r0, %r1}"
    yield fault("alloc.not_power", "48 columns", f"  {ALLOCATE} [at_word], 48; // faults here\n")
    yield fault("alloc.few", "16 columns", f"  {ALLOCATE} [at_word], 16; // faults here\n")
    yield fault("alloc.many", "1024 columns", f"  {ALLOCATE} [at_word], 1024; // faults here\n")
    yield fault("alloc.larger", "an allocation that is larger than the one before", take + f"  {ALLOCATE} [at_word], 128; // faults here\n")
    yield fault("alloc.differs", "threads name different numbers of columns", f"  shl.b32 %x, 32, %t;\n  {ALLOCATE} [at_word], %x; // faults here\n")
    yield fault("alloc.half_warp", "a warp of 16 threads", f"  {ALLOCATE} [at_word], 32; // faults here\n", "grid 1 block 16")
    yield fault("alloc.relinquished", "after the right was given up", f"  {RELINQUISH};\n  {ALLOCATE} [at_word], 32; // faults here\n")
    yield fault("alloc.outside", "the address goes to no shared memory", f"  mov.u32 %x, 0x20000;\n  {ALLOCATE} [%x], 32; // faults here\n", kind="illegal_address")
    yield fault("alloc.forever", "nobody can free the columns", f"  {ALLOCATE} [at_word], 512;\n  {ALLOCATE} [at_word], 32; // faults here\n", kind="barrier")
    yield fault("alloc.kept", "columns are allocated when the block ends", take + "  exit; // faults here\n")
    yield fault("dealloc.twice", "freed twice", take + f"  {DEALLOCATE} %base, 64;\n  {DEALLOCATE} %base, 64; // faults here\n", kind="illegal_address")
    yield fault("dealloc.other", "other columns than were allocated", take + f"  {DEALLOCATE} %base, 32; // faults here\n", kind="illegal_address")
    yield fault("dealloc.inside", "not where the allocation begins", take + f"  add.u32 %base, %base, 32;\n  {DEALLOCATE} %base, 32; // faults here\n", kind="illegal_address")
    yield fault("ld.not_allocated", "a column behind the allocation", take + f"  {load_word}, [%base+63]; // faults here\n", kind="illegal_address")
    yield fault("ld.outside", "columns beyond the last", take + f"  {load_word}, [%base+511]; // faults here\n", kind="illegal_address")
    yield fault("ld.other_lanes", "lanes of another warp", take + f"  {load_word}, [%base+0x200000]; // faults here\n", kind="illegal_address")
    yield fault("ld.differs", "threads name different addresses", take + f"  add.u32 %base, %base, %t;\n  {load_word}, [%base]; // faults here\n")
    yield fault("st.freed", "a store to freed columns", take + f"  {DEALLOCATE} %base, 64; mov.u32 %r0, 1;\n  tcgen05.st.sync.aligned.32x32b.x1.b32 [%base], {{%r0}}; // faults here\n", kind="illegal_address")
    yield fault("commit.outside", "no mbarrier there", "  mov.u32 %x, 0x20000;\n  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%x]; // faults here\n", kind="illegal_address")


    yield fault("ld.no_operands", "no operands", "  tcgen05.ld.sync.aligned.32x32b.x1.b32; // faults here\n", kind="unsupported")
    yield fault("ld.registers", "two registers, where the shape has one", "  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0, %r1}, [%x]; // faults here\n", kind="unsupported")
    for name, title, form in (
        ("one", "one word", "32x32b.x1.min.u32 {%r0}, %x, [%x]"),
        ("shape", "a shape whose threads have words of several lanes", "16x64b.x2.min.u32 {%r0, %r1}, %x, [%x]"),
        ("operation", "no operation", "32x32b.x2.u32 {%r0, %r1}, %x, [%x]"),
        ("abs", "absolute values of integers", "32x32b.x2.min.abs.s32 {%r0, %r1}, %x, [%x]"),
        ("type", "bits", "32x32b.x2.min.b32 {%r0, %r1}, %x, [%x]"),
        ("few", "no result", "32x32b.x2.min.u32 {%r0, %r1}, [%x]"),
    ):
        yield fault(f"ld_red.{name}", title, f"  tcgen05.ld.red.sync.aligned.{form}; // faults here\n", kind="unsupported")
    yield fault("mma.few", "operands are missing", "  tcgen05.mma.cta_group::1.kind::f16 [%x], %at, %at, %x; // faults here\n", kind="unsupported")
    operands = "[%x], %at, %at, %x"
    masks = ", ".join(f"%r{n}" for n in range(8))
    for name, title, form in (
        ("mma.ws_pair", "weights that stay, for two blocks", f"mma.ws.cta_group::2.kind::f16 {operands}, %p"),
        ("mma.ws_lanes", "weights that stay, with a mask of lanes", f"mma.ws.cta_group::1.kind::f16 {operands}, {{%r0, %r1, %r2, %r3}}, %p"),
        ("mma.masks", "eight masks for one block", f"mma.cta_group::1.kind::f16 {operands}, {{{masks}}}, %p"),
        ("mma.scale", "D is scaled by more than 15 bits", f"mma.cta_group::1.kind::f16 {operands}, %p, 16"),
        ("mma.scale_kind", "D is scaled where A has bytes", f"mma.cta_group::1.kind::f8f6f4 {operands}, %p, 3"),
        ("cp.format", "bytes of no format", "cp.cta_group::1.128x128b.b8x16 [%x], %at"),
    ):
        yield fault(name, title, f"  tcgen05.{form}; // faults here\n", kind="unsupported")
    copy = "tcgen05.cp.cta_group::1.128x128b [%base], %at"
    yield fault("cp.version", "no 0b001 in the descriptor", take + f"  mov.u64 %at, 0;\n  {copy}; // faults here\n")
    yield fault("cp.outside", "the source is not in shared memory", take + f"  mov.u64 %at, {1 << 46 | 0x3000:#x};\n  {copy}; // faults here\n", kind="illegal_address")
    source = f"  .shared .align 128 .b32 area[1024];\n{take}  mov.u64 %at, area; shr.u64 %at, %at, 4; add.u64 %at, %at, {1 << 46:#x};\n"
    for name, shape, at, title in (
        ("lanes", "128x128b", 0x10000, "more lanes than there are"),
        ("lanes_four", "32x128b.warpx4", 0x10000, "the same four times"),
        ("columns", "128x256b", 60, "columns behind the allocation"),
    ):
        yield fault(f"cp.{name}", title, source + f"  tcgen05.cp.cta_group::1.{shape} [%base+{at:#x}], %at; // faults here\n", kind="illegal_address")
    yield fault("shift.columns", "columns behind the allocation", take + "  tcgen05.shift.cta_group::1.down [%base+60]; // faults here\n", kind="illegal_address")
    later = "  mov.u32 %y, 0;\nlater:\n  nanosleep.u32 100; add.u32 %y, %y, 1; setp.lt.u32 %p, %y, 1000;\n  @%p bra later;\n"
    waits = f"  @!%first bra waits;\n  {ALLOCATE} [at_word], 512;\n  bar.sync 0;\n{later}  {RELINQUISH};\n  exit;\nwaits:\n  bar.sync 0;\n  {ALLOCATE} [at_word+4], 32; // faults here\n"
    yield fault("alloc.waits_relinquished", "the right is given up while a warp waits for columns", waits, "grid 1 block 64")
    yield fault("shift.lane", "not at the first lane of a warp's", take + "  tcgen05.shift.cta_group::1.down [%base+0x100000]; // faults here\n", kind="misaligned")


def cases():
    yield from copies()
    yield from allocations()
    yield from pair_allocations()
    yield from uneven_allocations(1)
    yield from uneven_allocations(0)
    yield from allocations_in_turns()
    yield from moves(load)
    yield from moves(store)
    yield from reductions()
    yield from commits()
    yield from faults()
    yield from faults_of_pairs()
