# SPDX-License-Identifier: Apache-2.0
"""Conformance cases of tensor copies: tensor maps that the kernel makes by tensormap.replace, boxes of one to five dimensions, partly
outside of the tensor, with element strides, swizzled; stores and reductions; im2col is for tests/unit/driver.

The map that replaced fields start from is the one that cuTensorMapEncodeTiled writes for nothing: farfault's mark, and zeros; in one case
zeros alone, as Triton has it."""
from .forms_control import kernel_case, words
from .writer import Array, Case

ALL = 0xFFFFFFFF
MARK = 0x70614D726F736E54
TYPES = {"u8": (0, 1), "u16": (1, 2), "u32": (2, 4), "u64": (4, 8), "f16": (6, 2), "f32": (7, 4), "bf16": (10, 2)}
NAN = {2: 0x7FFF, 4: 0x7FFFFFFF}


def positions(counts):
    """All coordinates of a box, dimension 0 fastest."""
    if not counts:
        yield ()
        return
    for rest in positions(counts[1:]):
        for first in range(counts[0]):
            yield (first,) + rest


class Tensor:
    def __init__(self, kind, sizes, strides, box, steps=None, swizzle=0, fill=0, tells_steps=True):
        self.kind, self.sizes, self.strides, self.box = kind, sizes, strides, box
        self.number, self.bytes = TYPES[kind]
        self.steps = steps or [1] * len(sizes)
        self.tells_steps = tells_steps
        self.swizzle, self.fill = swizzle, fill
        self.counts = [box[0]] + [-(-b // s) for b, s in zip(box[1:], self.steps[1:])]
        self.total = self.bytes
        for count in self.counts:
            self.total *= count
        self.reach = sum((n - 1) * s for n, s in zip(sizes[1:], strides)) + sizes[0] * self.bytes

    def place(self, number):
        """Where element `number` of the box stands in shared memory, which begins at a multiple of 1024."""
        at = number * self.bytes
        row = (16 << self.swizzle) // 16
        return at ^ ((at >> 7) % row) * 16

    def elements(self, first):
        """For each element of the box its offset in memory; None: outside."""
        for at in positions(self.counts):
            where = [f + a * (s if n else 1) for n, (f, a, s) in enumerate(zip(first, at, self.steps))]
            inside = all(0 <= w < size for w, size in zip(where, self.sizes))
            yield where[0] * self.bytes + sum(w * s for w, s in zip(where[1:], self.strides)) if inside else None

    def make(self):
        rank = len(self.sizes)
        lines = [f"global_address.shared::cta.b1024.b64 [%m], %w1;"]
        lines += [f"rank.shared::cta.b1024.b32 [%m], {rank - 1};"]
        for n in range(rank):
            lines += [f"box_dim.shared::cta.b1024.b32 [%m], {n}, {self.box[n]};"]
            lines += [f"global_dim.shared::cta.b1024.b32 [%m], {n}, {self.sizes[n]};"]
            if self.tells_steps:
                lines += [f"element_stride.shared::cta.b1024.b32 [%m], {n}, {self.steps[n]};"]
            if n:
                lines += [f"global_stride.shared::cta.b1024.b64 [%m], {n - 1}, {self.strides[n - 1]};"]
        lines += [f"elemtype.shared::cta.b1024.b32 [%m], {self.number};"]
        lines += ["interleave_layout.shared::cta.b1024.b32 [%m], 0;"]
        lines += [f"swizzle_mode.shared::cta.b1024.b32 [%m], {self.swizzle};"]
        lines += [f"fill_mode.shared::cta.b1024.b32 [%m], {self.fill};"]
        return "".join(f"  tensormap.replace.tile.{line}\n" for line in lines)


class FourRows(Tensor):
    """.tile::gather4 and .tile::scatter4: the coordinates are a column and four rows, each a box of its own."""

    def __init__(self, kind, sizes, strides, columns, **more):
        super().__init__(kind, sizes, strides, [columns, 1], **more)
        self.total *= 4

    def elements(self, first):
        for row in first[1:]:
            yield from super().elements((first[0], row))


def get(data, at, size):
    return sum((data[(at + b) // 4] >> 8 * ((at + b) % 4) & 255) << 8 * b for b in range(size))


def put(data, at, size, value):
    for b in range(size):
        shift = 8 * ((at + b) % 4)
        data[(at + b) // 4] = data[(at + b) // 4] & ~(255 << shift) | (value >> 8 * b & 255) << shift


def kernel(tensor, first, source, body, ending, size):
    """source: the parameter with the tensor. One block of 32 threads; thread 0 makes the map and copies."""
    rank = len(first)
    coordinates = "{" + ", ".join(f"%c{n}" for n in range(rank)) + "}"
    sets = " ".join(f"mov.s32 %c{n}, {value};" for n, value in enumerate(first))
    return f""".global .align 128 .b8 place[128];
.visible .entry test(.param .u64 m, .param .u64 a, .param .u64 d)
{{
  .shared .align 1024 .b32 area[{size // 4}]; .shared .align 128 .b64 map[16]; .shared .align 8 .b64 mark;
  .reg .u32 %t, %i, %x, %m, %y; .reg .u64 %at, %to, %w0, %w1; .reg .s32 %c<5>; .reg .pred %p;
  mov.u32 %t, %tid.x; mov.u32 %i, %t; ld.param.u64 %at, [a]; mov.u32 %m, map;
fill:
  mov.u32 %x, 0; {"mad.wide.u32 %to, %i, 4, %at; ld.global.u32 %x, [%to];" if source == "d" else ""}
  mov.u64 %to, area; mad.wide.u32 %to, %i, 4, %to; st.shared.u32 [%to], %x;
  add.u32 %i, %i, 32; setp.lt.u32 %p, %i, {size // 4};
  @%p bra fill;
  setp.ne.u32 %p, %t, 0;
  @%p bra made;
  mbarrier.init.shared.b64 [mark], 1;
  ld.param.u64 %at, [m]; mov.u32 %i, 0;
copy:
  mad.wide.u32 %to, %i, 8, %at; ld.global.u64 %w0, [%to]; mad.lo.u32 %x, %i, 8, %m; st.shared.u64 [%x], %w0;
  add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 16;
  @%p bra copy;
  ld.param.u64 %w1, [{source}];
{tensor.make()}made:
  bar.sync 0; mov.u64 %w0, place;
  tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%w0], [map], 128;
  fence.proxy.tensormap::generic.acquire.gpu [%w0], 128; cvta.global.u64 %w0, %w0;
  setp.ne.u32 %p, %t, 0; {sets}
  @%p bra over;
  prefetch.tensormap [%w0];
  {body.format(map=f"[%w0, {coordinates}]", bytes=tensor.total)}
over:
{ending}  ret;
}}"""


def load_case(name, tensor, first, title, mark=MARK):
    data = words(name, -(-tensor.reach // 4) + 3)
    image = [0] * (-(-tensor.total // 128) * 32)
    for number, at in enumerate(tensor.elements(first)):
        value = get(data, at, tensor.bytes) if at is not None else NAN[tensor.bytes] if tensor.fill else 0
        put(image, tensor.place(number), tensor.bytes, value)
    rank = len(first)
    body = (
        "mbarrier.arrive.expect_tx.shared.b64 _, [mark], {bytes}; cp.async.bulk.prefetch.tensor."
        + f"{rank}d.L2.global.tile {{map}}; cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [area], {{map}}, [mark];"
    )
    ending = f"""wait:
  mbarrier.try_wait.parity.shared.b64 %p, [mark], 0;
  @!%p bra wait;
  mov.u32 %i, %t; ld.param.u64 %at, [d];
give:
  mov.u64 %to, area; mad.wide.u32 %to, %i, 4, %to; ld.shared.u32 %x, [%to]; mad.wide.u32 %to, %i, 4, %at; st.global.u32 [%to], %x;
  add.u32 %i, %i, 32; setp.lt.u32 %p, %i, {len(image)};
  @%p bra give;
"""
    arrays = [Array("in", "m", "u64", [mark] + [0] * 15), Array("in", "a", "u32", data), Array("out", "d", "u32", image)]
    text = kernel(tensor, first, "a", body, ending, len(image) * 4)
    return kernel_case("load", f"cp.async.bulk.tensor.{rank}d.{name}", title, arrays, text, "grid 1 block 32", target=(86, "90a"))


def pair_case(name, tensor, first, title):
    """Both blocks of a pair load the box, and tell the mbarrier of the even one."""
    case = load_case(name, tensor, first, title)
    image = case.arrays[2].values
    meet = "barrier.cluster.arrive; barrier.cluster.wait;"
    text = case.text.replace("sm_90a", "sm_100a").replace("mov.u32 %t, %tid.x;", ".reg .u32 %rank; .reg .pred %even; mov.u32 %rank, %cluster_ctarank; setp.eq.u32 %even, %rank, 0;\n  mov.u32 %t, %tid.x;", 1)
    text = text.replace("  setp.ne.u32 %p, %t, 0; mov.s32", f"  {meet} setp.ne.u32 %p, %t, 0; mov.s32", 1)
    text = text.replace(f"mbarrier.arrive.expect_tx.shared.b64 _, [mark], {tensor.total};", f"@%even mbarrier.arrive.expect_tx.shared.b64 _, [mark], {2 * tensor.total};")
    text = text.replace(f"tensor.{len(first)}d.shared::cluster.global.tile", f"tensor.{len(first)}d.cta_group::2.shared::cluster.global.tile")
    text = text.replace("wait:\n", "  @!%even bra told;\nwait:\n").replace("  @!%p bra wait;\n", f"  @!%p bra wait;\ntold:\n  {meet}\n")
    text = text.replace("ld.param.u64 %at, [d];\ngive:", f"ld.param.u64 %at, [d]; mad.wide.u32 %at, %rank, {4 * len(image)}, %at;\ngive:")
    arrays = [*case.arrays[:2], Array("out", "d", "u32", image + image)]
    body = text.split("\n", 3)[3]
    return kernel_case("load", f"cp.async.bulk.tensor.{len(first)}d.cta_group::2.{name}", title, arrays, body, "grid 2 block 32 cluster 2", target=(86, "100a"))


OPERATIONS = {
    "": lambda old, new, bits: new,
    "add": lambda old, new, bits: old + new & (1 << bits) - 1,
    "min": lambda old, new, bits: min(old, new),
    "max": lambda old, new, bits: max(old, new),
    "and": lambda old, new, bits: old & new,
    "or": lambda old, new, bits: old | new,
    "xor": lambda old, new, bits: old ^ new,
}


def store_case(name, tensor, first, title, operation=""):
    image = words(name, -(-tensor.total // 128) * 32)
    before = words(name + "d", -(-tensor.reach // 4) + 3)
    after = list(before)
    for number, at in enumerate(tensor.elements(first)):
        if at is None:
            continue
        new = get(image, tensor.place(number), tensor.bytes)
        put(after, at, tensor.bytes, OPERATIONS[operation](get(before, at, tensor.bytes), new, 8 * tensor.bytes))
    rank = len(first)
    start = f"cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{operation}.tile" if operation else (
        f"cp.async.bulk.tensor.{rank}d.global.shared::cta.tile"
    )
    body = f"fence.proxy.async; {start}.bulk_group {{map}}, [area]; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
    arrays = [
        Array("in", "m", "u64", [MARK] + [0] * 15),
        Array("in", "a", "u32", image),
        Array("inout", "d", "u32", (before, after)),
    ]
    text = kernel(tensor, first, "d", body, "", len(image) * 4)
    return kernel_case("store", f"{start}.{name}", title, arrays, text, "grid 1 block 32", target=(86, "90a"))


def four_rows(case):
    """The same copy with the mode in its name; only tensors of two dimensions have it."""
    load = ".load" in f".{case.mnemonic}"
    mode, plain = ("tile::gather4", "cluster.global.tile") if load else ("tile::scatter4", "cta.tile")
    text = case.text.replace("tensor.5d", "tensor.2d").replace(plain, plain.replace("tile", mode)).replace("L2.global.tile", f"L2.global.{mode}")
    text = text.replace(".target sm_90a", ".target sm_100a")
    return Case(case.mnemonic, case.name.replace("5d", "2d"), case.title, case.arrays, text, case.headers)


def cases():
    flat = Tensor("u32", [20, 12], [96], [8, 4])
    yield load_case("inside", flat, (4, 3), "a box inside the tensor")
    yield load_case("after", flat, (16, 10), "elements behind the last ones are zero")
    yield load_case("before", flat, (-3, -2), "elements before the first ones are zero")
    yield load_case("outside", flat, (-8, 40), "no element is inside")
    yield load_case("nan", Tensor("f32", [20, 12], [96], [8, 4], fill=1), (17, 10), "elements outside are NaN")
    yield load_case("nan16", Tensor("bf16", [20, 12], [48], [8, 4], fill=1), (-4, -1), "elements outside are NaN")
    yield load_case("line", Tensor("u8", [300], [], [64]), (250,), "bytes in one dimension")
    yield load_case("cube", Tensor("u16", [24, 5, 4], [64, 320], [16, 3, 2]), (3, 1, 3), "three dimensions, out of the last")
    yield load_case("four", Tensor("u64", [4, 3, 3, 2], [32, 96, 288], [2, 2, 2, 2]), (1, 2, 0, 0), "four dimensions")
    yield load_case(
        "five", Tensor("u32", [8, 2, 3, 2, 2], [32, 64, 192, 384], [4, 2, 2, 1, 2]), (2, 0, 2, 1, 0), "five dimensions"
    )
    yield load_case("steps", Tensor("u32", [8, 20], [32], [8, 9], steps=[1, 3]), (0, 1), "every third row")
    for swizzle, elements in ((1, 16), (2, 32), (3, 64)):
        yield load_case(
            f"swizzle{16 << swizzle}",
            Tensor("f16", [elements, 24], [2 * elements], [elements, 16], swizzle=swizzle),
            (0, 5),
            f"chunks of 16 bytes change places within {16 << swizzle}",
        )
    yield load_case("from_zeros", flat, (4, 3), "a map made from 128 zeros", mark=0)
    without = Tensor("u32", [20, 12], [96], [8, 4], tells_steps=False)
    yield load_case("from_zeros.steps", without, (4, 3), "and what counts from 1 is 1 where it is left out", mark=0)
    yield load_case("swizzle128.outside", Tensor("u32", [40, 10], [160], [32, 8], swizzle=3), (16, 4), "swizzled, partly outside")
    rows = FourRows("u32", [20, 12], [96], 8)
    for case in (
        load_case("gather4", rows, (4, 7, 0, 7, 3), "four rows in any order, one of them twice"),
        load_case("gather4.outside", rows, (16, 11, -1, 12, 2), "rows and columns that are outside are zero"),
        load_case("gather4.swizzle64", FourRows("u16", [64, 9], [128], 32, swizzle=2), (32, 8, 1, 5, 0), "swizzled"),
        store_case("scatter4", rows, (4, 7, 0, 9, 3), "to four rows"),
        store_case("scatter4.outside", rows, (-2, 11, -1, 12, 2), "what is outside is not stored"),
    ):
        yield four_rows(case)
    tall = FourRows("u32", [20, 12], [96], 8)
    tall.box = [8, 2]
    wrong = four_rows(load_case("gather4.tall", tall, (4, 7, 0, 7, 3), "the box must have one row"))
    wrong.headers.append("fault: illegal_instruction")
    yield wrong
    yield pair_case("pair", flat, (4, 3), "both blocks tell the mbarrier of the even one")
    yield store_case("inside", flat, (4, 3), "a box inside the tensor")
    yield store_case("outside", flat, (-3, 10), "what is outside is not stored")
    yield store_case("steps", Tensor("u32", [8, 20], [32], [8, 9], steps=[1, 3]), (0, 1), "every third row")
    yield store_case("swizzle64", Tensor("u16", [32, 24], [64], [32, 16], swizzle=2), (0, 12), "from swizzled shared memory")
    for operation in ("add", "min", "max", "and", "or", "xor"):
        yield store_case("u32", flat, (15, 9), "what is outside is left alone", operation)
    yield store_case("u64", Tensor("u64", [4, 3], [32], [2, 2]), (3, 1), "64 bits", "add")
