# SPDX-License-Identifier: Apache-2.0
"""Conformance cases of multimem.ld_reduce, multimem.st and multimem.red: teams of three devices. The array that is
multicast has one device's part after another. The manual does not say in which order values are added up: here it is the
order of the devices, rounded at each step, or once with .acc::f32."""
from . import arithmetic as A
from .formats import ANY_NAN, F32, FORMATS, SKIP, pack, unpack
from .forms_atomic import combine, plain
from .forms_control import kernel_case, words
from .values import PACKED, Random, bits_of, edges, random_value
from .writer import Array, memory_kind, register_kind

MEMBERS = 3
HOPPER = (88, 90)
HALVES = ("f16", "bf16", "f16x2", "bf16x2")
INTEGERS = {"add": "u32 s32 u64", "min": "u32 s32 u64 s64", "max": "u32 s32 u64 s64"}
INTEGERS |= {operation: "b32 b64" for operation in ("and", "or", "xor")}


def vectors(kind):
    """How many elements of a number the instructions take: 4, 8 or 16 bytes."""
    return [n for n in (1, 2, 4, 8) if n * bits_of(kind) in (32, 64, 128) and not (kind == "f64" and n > 1)]


def lanes(count):
    """Of vectors fewer."""
    return max(32 // count, 8)


def reduce_two(operation, kind, a, b):
    if kind in PACKED:
        low, high = (reduce_two(operation, PACKED[kind], a >> s & 0xFFFF, b >> s & 0xFFFF) for s in (0, 16))
        return ANY_NAN if ANY_NAN in (low, high) else low | high << 16
    if kind in FORMATS and operation in ("min", "max"):
        return A.min_max(FORMATS[kind], (a, b), operation == "max")
    return combine(operation, kind, a, b)


def fold(operation, kind, values):
    result = values[0]
    for value in values[1:]:
        result = reduce_two(operation, kind, result, value)
        if result in (ANY_NAN, SKIP):
            return SKIP
    return result


def wide_sum(kind, values):
    """.acc::f32: halves are added as .f32 and rounded once."""
    if kind in PACKED:
        low, high = (wide_sum(PACKED[kind], [v >> s & 0xFFFF for v in values]) for s in (0, 16))
        return SKIP if SKIP in (low, high) else low | high << 16
    total = pack(F32, unpack(FORMATS[kind], values[0]))
    for value in values[1:]:
        total = A.add(F32, total, pack(F32, unpack(FORMATS[kind], value)))
        if total in (ANY_NAN, SKIP):
            return SKIP
    return pack(FORMATS[kind], unpack(F32, total))


def columns(name, kind, count, function):
    """`count` rows of one value for each member, of which the function makes a result that is a plain number."""
    random, out = Random(name), []
    pool = [v for v in edges(kind) if plain(kind, v)]
    while len(out) < count:
        values = [random.choose(pool) if random.below(3) == 0 else random_value(kind, random) for _ in range(MEMBERS)]
        result = function(values) if all(plain(kind, v) for v in values) else SKIP
        if result not in (ANY_NAN, SKIP) and plain(kind, result):
            out.append((values, result))
    return out


def kernel(kind, count, body, arrays):
    """Thread i moves its elements between d and registers, by plain accesses, and does the instruction at m."""
    register, memory, size = register_kind(kind), memory_kind(kind), bits_of(kind) // 8
    names = [f"%v{n}" for n in range(count)]
    data = names[0] if count == 1 else "{" + ", ".join(names) + "}"
    params = ", ".join(f".param .u64 {a.name}" for a in arrays)
    text = f".visible .entry test({params})\n{{\n  .reg .u32 %i; .reg .u64 %at, %to; .reg .{register} {', '.join(names)};\n"
    text += f"  mov.u32 %i, %tid.x; ld.param.u64 %at, [m]; mad.wide.u32 %at, %i, {size * count}, %at;\n"
    text += f"  ld.param.u64 %to, [d]; mad.wide.u32 %to, %i, {size * count}, %to;\n"
    load = "".join(f"  ld.global.{memory} %v{n}, [%to+{n * size}];\n" for n in range(count))
    store = "".join(f"  st.global.{memory} [%to+{n * size}], %v{n};\n" for n in range(count))
    before, after = ("", store) if body.startswith("multimem.ld_reduce") else (load, "")
    return text + before + "  " + body.replace("DATA", data) + "\n" + after + "  ret;\n}"


def case(opcode, name, kind, count, arrays):
    suffix = f".v{count}.{kind}" if count > 1 else f".{kind}"
    operands = "DATA, [%at];" if opcode == "multimem.ld_reduce" else "[%at], DATA;"
    text = kernel(kind, count, f"{name}{suffix} {operands}", arrays)
    return kernel_case(
        opcode,
        name + suffix,
        f"{MEMBERS} devices",
        arrays,
        text,
        f"grid 1 block {lanes(count)}",
        target=HOPPER,
        headers=[f"multicast m: {MEMBERS}"],
    )


def by_member(rows):
    return [values[m] for m in range(MEMBERS) for values in rows]


def ld_reduce(words, kind, count, function):
    rows = columns(f"{words}{kind}{count}", kind, lanes(count) * count, function)
    arrays = [
        Array("in", "m", kind, by_member([r[0] for r in rows])),
        Array("out", "d", kind, [r[1] for r in rows]),
    ]
    return case("multimem.ld_reduce", f"multimem.ld_reduce.{words}", kind, count, arrays)


def red(words, operation, kind, count):
    random, rows = Random(f"red{words}{kind}{count}"), []
    while len(rows) < lanes(count) * count:
        operand = random_value(kind, random)
        old = [random_value(kind, random) for _ in range(MEMBERS)]
        new = [reduce_two(operation, kind, v, operand) for v in old]
        if all(v not in (ANY_NAN, SKIP) and plain(kind, v) for v in [operand, *old, *new]):
            rows.append((operand, old, new))
    arrays = [
        Array("inout", "m", kind, (by_member([r[1] for r in rows]), by_member([r[2] for r in rows]))),
        Array("in", "d", kind, [r[0] for r in rows]),
    ]
    return case("multimem.red", f"multimem.red.{words}", kind, count, arrays)


def st(words, kind, count):
    random = Random(f"st{words}{kind}{count}")
    values = [random.bits(bits_of(kind)) for _ in range(lanes(count) * count)]
    if kind in FORMATS or kind in PACKED:
        values = [v for v in (random_value(kind, random) for _ in range(64 * count)) if plain(kind, v)][: lanes(count) * count]
    before = [random.bits(32) if kind in PACKED else 0 for _ in range(MEMBERS * lanes(count) * count)]
    arrays = [Array("inout", "m", kind, (before, values * MEMBERS)), Array("in", "d", kind, values)]
    return case("multimem.st", f"multimem.st.{words}", kind, count, arrays)


FAULTS = [
    ("multimem.ld_reduce", "ordinary", "memory that is no multicast memory", "multimem.ld_reduce.add.u32 %x, [%to];"),
    ("multimem.st", "ordinary", "memory that is no multicast memory", "multimem.st.u32 [%to], %x;"),
    ("multimem.st", "misaligned", "an address that is not a multiple of 16", "multimem.st.v4.f32 [%at+8], {%f, %f, %f, %f};"),
    ("multimem.red", "ordinary", "memory that is no multicast memory", "multimem.red.add.u32 [%to], %x;"),
    ("multimem.ld_reduce", "ld", "an ordinary load of multicast memory", "ld.global.u32 %x, [%at];"),
    ("multimem.red", "red", "an ordinary reduction of multicast memory", "red.global.add.u32 [%at], %x;"),
]


def faults():
    for opcode, name, title, instruction in FAULTS:
        arrays = [Array("in", "m", "u32", list(range(3 * MEMBERS * 4))), Array("in", "d", "u32", [1, 2, 3, 4])]
        text = f""".visible .entry test(.param .u64 m, .param .u64 d)
{{
  .reg .u32 %x; .reg .u64 %at, %to; .reg .f32 %f;
  ld.param.u64 %at, [m]; ld.param.u64 %to, [d]; mov.u32 %x, 1; mov.f32 %f, 0f3f800000;
  {instruction} // faults here
  st.global.u32 [%to], %x;
  ret;
}}"""
        kind = "misaligned" if name == "misaligned" else "illegal_address"
        headers = [f"multicast m: {MEMBERS}", f"fault: {kind}"]
        yield kernel_case(opcode, f"{opcode}.fault.{name}", title, arrays, text, "grid 1 block 1", HOPPER, headers)


def ordinary_stores():
    """What the manual leaves open, and NCCL relies on: a store to a multicast address is one to each device. Odd threads store
    to memory of their own instead."""
    values = words("multimem ordinary store", 32)
    before = [0] * (MEMBERS * 32)
    part = [v if n % 2 == 0 else 0 for n, v in enumerate(values)]
    arrays = [
        Array("inout", "m", "u32", (before, part * MEMBERS)),
        Array("in", "d", "u32", values),
        Array("out", "o", "u32", [v if n % 2 else 0 for n, v in enumerate(values)]),
    ]
    text = """.visible .entry test(.param .u64 m, .param .u64 d, .param .u64 o)
{
  .reg .u32 %i, %x, %z; .reg .u64 %at, %to, %other; .reg .pred %p;
  mov.u32 %i, %tid.x; ld.param.u64 %at, [m]; mad.wide.u32 %at, %i, 4, %at;
  ld.param.u64 %to, [d]; mad.wide.u32 %to, %i, 4, %to; ld.global.u32 %x, [%to];
  ld.param.u64 %other, [o]; mad.wide.u32 %other, %i, 4, %other; mov.u32 %z, 0; st.global.u32 [%other], %z;
  and.b32 %z, %i, 1; setp.ne.u32 %p, %z, 0; selp.u64 %at, %other, %at, %p;
  st.relaxed.sys.u32 [%at], %x;
  ret;
}"""
    headers = [f"multicast m: {MEMBERS}"]
    yield kernel_case("multimem.st", "st.u32.multicast", "of one warp", arrays, text, "grid 1 block 32", HOPPER, headers)


def cases():
    for operation, kinds in INTEGERS.items():
        for kind in kinds.split():
            yield ld_reduce(f"relaxed.sys.global.{operation}", kind, 1, lambda v: fold(operation, kind, v))
            yield red(f"release.sys.global.{operation}", operation, kind, 1)
    for kind in ("b32", "u64", "s32"):
        yield st("relaxed.sys.global", kind, 1)
    for kind in ("f16", "bf16", "f16x2", "bf16x2", "f32", "f64"):
        for count in vectors(kind):
            operations = ("add", "min", "max") if kind in HALVES else ("add",)
            for operation in operations:
                yield ld_reduce(f"weak.global.{operation}", kind, count, lambda v: fold(operation, kind, v))
                if operation == "add" or count > 1:
                    yield red(f"relaxed.gpu.global.{operation}", operation, kind, count)
            if kind in HALVES:
                words = "acquire.sys.global.add.acc::f32"
                yield ld_reduce(words, kind, count, lambda v: wide_sum(kind, v))
            yield st("release.sys.global", kind, count)
    yield from ordinary_stores()
    yield from faults()
