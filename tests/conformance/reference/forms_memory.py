# SPDX-License-Identifier: Apache-2.0
"""Conformance cases of ld and st: every space, type, vector, cache operator and ordering. One warp; lane i works on group
(i + 5) mod 32 of V values, so that a wrong address shows."""
from . import integers as I
from .values import Random, bits_of, edges, random_value
from .writer import Array, Case, head, memory_kind

TYPES = ("u8", "s8", "b8", "u16", "s16", "b16", "u32", "s32", "b32", "u64", "s64", "b64", "f32", "f64")
TURN = 5
LANES = 32

# prefix, space, the types and vectors that are tested with it (None: all), target
FULL = [
    ("ld.global", "global"),
    ("ld.shared", "shared"),
    ("ld.local", "local"),
    ("ld.const", "const"),
    ("ld.param", "param"),
    ("ld", "generic"),
    ("ld.global.nc", "global"),
]
FULL_STORES = [("st.global", "global"), ("st.shared", "shared"), ("st.local", "local"), ("st", "generic")]
SOME = {
    "ld.global.ca": "f32 f64 u64 v4.f32",
    "ld.global.cg": "b32 f32 f64 u64 v4.f32",
    "ld.global.cs": "b16 f32 v4.f32 v4.s32",
    "ld.global.cv": "u64 u32",
    "ld.global.lu": "u32",
    "ld.ca": "u32 u64",
    "ld.cg": "u32",
    "ld.volatile.global": "f32 f64 s32 u32 u64 u8 v4.u32 v2.f32",
    "ld.volatile.shared": "f32 f64 u16 u32 u64 u8",
    "ld.volatile": "u32 f64",
    "ld.relaxed.gpu": "u32 v2.u32 v2.u64",
    "ld.relaxed.cta": "b32",
    "ld.relaxed.sys": "b32 b64",
    "ld.relaxed.gpu.global": "u32 f32 b64",
    "ld.relaxed.cta.shared": "u32",
    "ld.acquire.gpu": "u32 v2.u32",
    "ld.acquire.cta": "b64 u32",
    "ld.acquire.sys.global": "u8 u32",
    "ld.acquire.gpu.global": "u32 s64",
    "ld.weak.global": "u32 v2.f64",
    "ld.weak": "f32",
    "ld.global.L1::no_allocate": "u32 v4.f32",
    "ld.global.L2::128B": "u32",
    "ld.global.nc.L1::evict_last": "f32",
}
SOME_STORES = {
    "st.global.cg": "v4.s32 u32 f64",
    "st.global.cs": "b16 f32 v4.s32",
    "st.global.wb": "u32",
    "st.global.wt": "u64",
    "st.cg": "u32",
    "st.volatile.global": "f32 u32 u8 v2.u32",
    "st.volatile.shared": "f32 f64 u16 u32 u64 u8",
    "st.volatile": "u32",
    "st.relaxed.gpu": "v2.u32 v2.u64 u32",
    "st.relaxed.cta": "b32",
    "st.release.gpu": "u32 v2.u32",
    "st.release.sys.global": "u8 u64",
    "st.relaxed.sys.global": "f32",
    "st.relaxed.cta.shared": "u32",
    "st.release.cta.shared": "b64",
    "st.weak.global": "u32",
    "st.weak": "v2.f32",
}
MODERN = [
    ("ld.global", "v8.f32"),
    ("ld.global", "v8.u32"),
    ("ld.global", "v8.b32"),
    ("ld.global", "v4.u64"),
    ("ld.global", "v4.f64"),
]
MODERN_STORES = [
    ("st.global", "v8.f32"),
    ("st.global", "v8.u32"),
    ("st.global", "v8.b32"),
    ("st.global", "v4.u64"),
    ("st.global", "v4.f64"),
]


def space_of(prefix):
    return next((s for s in ("global", "shared", "local", "const", "param") if f".{s}" in prefix), "generic")


def suffixes():
    """ "u32", "v2.u32", "v4.u32" for every type, up to 16 bytes."""
    for kind in TYPES:
        for count in (1, 2, 4):
            if count * bits_of(kind) <= 128:
                yield (f"v{count}." if count > 1 else "") + kind


def split(suffix):
    vector, _, kind = suffix.rpartition(".")
    return kind, int(vector[1:]) if vector else 1


def wide(kind):
    """The register that a load of this type is made into: wider for small types, which must be extended."""
    if bits_of(kind) == 8:
        return "s16" if kind == "s8" else "u16"
    if bits_of(kind) == 16:
        return "s32" if kind == "s16" else "u32"
    return kind


def values(name, kind, count):
    random = Random(name)
    given = (edges(kind) * count)[: count // 2]
    return random.shuffle(given + [random_value(kind, random) for _ in range(count - len(given))])


def extended(kind, value):
    return I.as_type(value, kind) & I.mask(bits_of(wide(kind))) if kind[0] in "us" else value


def turned(items, count):
    """Group i of the result is group i + 5 of the items."""
    groups = [items[i * count : (i + 1) * count] for i in range(LANES)]
    return [v for i in range(LANES) for v in groups[(i + TURN) % LANES]]


def registers(kind, count):
    names = [f"%v{i}" for i in range(count)]
    return names, names[0] if count == 1 else "{" + ", ".join(names) + "}"


def frame(params, body, declarations, before="", target=(70, 80), name="test"):
    lines = [
        head(target) + before + f".visible .entry {name}({', '.join(params)})",
        "{",
        "  .reg .u32 %i, %j; .reg .u64 %at, %to, %off;",
    ]
    lines += [f"  {d}" for d in declarations] + [
        "  mov.u32 %i, %tid.x;",
        f"  add.u32 %j, %i, {TURN}; and.b32 %j, %j, {LANES - 1};",
    ]
    return "\n".join(lines + [f"  {line}" for line in body] + ["  ret;", "}"])


def address(base, index, size):
    """%at = base + index * size, for a parameter's name."""
    return f"ld.param.u64 %at, [{base}]; mad.wide.u32 %at, {index}, {size}, %at;"


def plain_stores(names, kind, size):
    return [f"st.global.{memory_kind(kind)} [%to+{i * size}], {n};" for i, n in enumerate(names)]


def load_file(prefix, suffix, target=(70, 80)):
    kind, count = split(suffix)
    space = space_of(prefix)
    opcode = f"{prefix}.{suffix}"
    size, to = bits_of(kind) // 8, wide(kind)
    names, operand = registers(kind, count)
    data = values(opcode, kind, LANES * count)
    group = size * count
    declarations = [f".reg .{to} {', '.join(names)};"]
    out = [
        "ld.param.u64 %to, [d];",
        f"mad.wide.u32 %to, %i, {bits_of(to) // 8 * count}, %to;",
        *plain_stores(names, to, bits_of(to) // 8),
    ]
    if space == "param":
        return param_file(opcode, kind, count, data, declarations, operand, out)
    before = ""
    if space == "const":
        before = f".const .align 16 .{kind} table[{len(data)}] = {{{', '.join(initial(kind, v) for v in data)}}};\n"
        body = [f"mov.u64 %at, table; mad.wide.u32 %at, %j, {group}, %at;", f"{opcode} {operand}, [%at];"]
        arrays = []
    else:
        arrays = [Array("in", "m", kind, data)]
        body = place(space, group, LANES * group) + [f"{opcode} {operand}, [%at];"]
        declarations += storage(space, LANES * group)
    arrays.append(Array("out", "d", to, turned([extended(kind, v) for v in data], count)))
    params = [f".param .u64 {a.name}" for a in arrays]
    text = frame(params, body + out, declarations, before, target)
    return Case("ld", opcode, f"one load per lane from {space} memory", arrays, text, ["launch: grid 1 block 32"])


def initial(kind, value):
    """An element of an initialiser."""
    if kind in ("f32", "f64"):
        return ("0f%08X" if kind == "f32" else "0d%016X") % value
    return str(I.as_type(value, kind)) if kind[0] in "us" else f"0x{value:x}"


def storage(space, size):
    """A byte array in that space, and a scratch register."""
    scratch = ".reg .b8 %byte; .reg .u32 %k;"
    if space == "shared":
        return [f".shared .align 16 .b8 area[{size}];", scratch]
    if space == "local":
        return [f".local .align 16 .b8 area[{size}];", scratch]
    return []


def place(space, group, total):
    """Leaves in %at the address of group %j, with the bytes of `m` there."""
    if space in ("global", "generic"):
        return [address("m", "%j", group)]
    if space == "shared":  # every lane brings its own group, byte by byte
        copy = [f"ld.global.b8 %byte, [%at+{i}]; st.shared.b8 [%to+{i}], %byte;" for i in range(group)]
        return [
            address("m", "%i", group),
            f"mov.u64 %to, area; mad.wide.u32 %to, %i, {group}, %to;",
            *copy,
            "bar.sync 0;",
            f"mov.u64 %at, area; mad.wide.u32 %at, %j, {group}, %at;",
        ]
    # local: every lane has a copy of everything, so that lanes read different parts of their own memory
    loop = [
        "mov.u32 %k, 0;",
        "copy:",
        "ld.param.u64 %at, [m]; cvt.u64.u32 %off, %k; add.u64 %at, %at, %off; ld.global.b8 %byte, [%at];",
        "mov.u64 %to, area; add.u64 %to, %to, %off; st.local.b8 [%to], %byte;",
        f"add.u32 %k, %k, 1; setp.lt.u32 %more, %k, {total};",
        "@%more bra copy;",
    ]
    return [".reg .pred %more;", *loop, f"mov.u64 %at, area; mad.wide.u32 %at, %j, {group}, %at;"]


def param_file(opcode, kind, count, data, declarations, operand, out):
    """A structure passed by value; the second group is read."""
    data = data[: 2 * count]
    size = bits_of(kind) // 8
    arrays = [Array("param", "p", kind, data), Array("out", "d", wide(kind), [extended(kind, v) for v in data[count:]])]
    params = [f".param .align 16 .b8 p[{len(data) * size}]", ".param .u64 d"]
    text = frame(params, [f"{opcode} {operand}, [p+{count * size}];"] + out, declarations)
    return Case("ld", opcode, "from a parameter passed by value", arrays, text, ["launch: grid 1 block 1"])


def store_file(prefix, suffix, target=(70, 80)):
    kind, count = split(suffix)
    space = space_of(prefix)
    opcode = f"{prefix}.{suffix}"
    size = bits_of(kind) // 8
    source = "b32" if size < 4 else kind  # wider registers are cut
    names, operand = registers(kind, count)
    data = values(opcode, source, LANES * count)
    group = size * count
    bring = [address("m", "%i", bits_of(source) // 8 * count)]
    bring += [f"ld.global.{source} {n}, [%at+{i * bits_of(source) // 8}];" for i, n in enumerate(names)]
    kept = [v & I.mask(size * 8) for v in data]
    declarations = [f".reg .{source} {', '.join(names)};"]
    if space in ("global", "generic"):
        expected = untwist(kept, count)
        body = bring + [address("d", "%j", group), f"{opcode} [%at], {operand};"]
    else:
        expected = turned(kept, count) if space == "shared" else kept
        declarations += storage(space, LANES * group if space == "shared" else group * 2)
        at = (
            f"mov.u64 %at, area; mad.wide.u32 %at, %i, {group}, %at;"
            if space == "shared"
            else f"mov.u64 %at, area; add.u64 %at, %at, {group};"
        )
        back = f"mov.u64 %at, area; mad.wide.u32 %at, %j, {group}, %at;" if space == "shared" else ""
        copy = [f"ld.{space}.b8 %byte, [%at+{i}]; st.global.b8 [%to+{i}], %byte;" for i in range(group)]
        body = bring + [at, f"{opcode} [%at], {operand};"] + (["bar.sync 0;", back] if space == "shared" else [])
        body += ["ld.param.u64 %to, [d];", f"mad.wide.u32 %to, %i, {group}, %to;"] + copy
    arrays = [Array("in", "m", source, data), Array("out", "d", kind, expected)]
    text = frame([f".param .u64 {a.name}" for a in arrays], body, declarations, target=target)
    return Case("st", opcode, f"one store per lane to {space} memory", arrays, text, ["launch: grid 1 block 32"])


def untwist(items, count):
    """Group i is stored at place i + 5."""
    out = [0] * len(items)
    for i in range(LANES):
        place_ = (i + TURN) % LANES
        out[place_ * count : (place_ + 1) * count] = items[i * count : (i + 1) * count]
    return out


def loads_and_stores():
    for prefix, _ in FULL:
        for suffix in suffixes():
            if not (prefix == "ld.global.nc" and suffix.split(".")[-1] in ("b8", "s64")):
                yield load_file(prefix, suffix)
    for prefix, _ in FULL_STORES:
        for suffix in suffixes():
            yield store_file(prefix, suffix)
    for prefix, list_ in SOME.items():
        for suffix in list_.split():
            yield load_file(prefix, suffix, (74, 80))
    for prefix, list_ in SOME_STORES.items():
        for suffix in list_.split():
            yield store_file(prefix, suffix, (74, 80))
    for prefix, suffix in MODERN:
        yield load_file(prefix, suffix, (88, 100))
    for prefix, suffix in MODERN_STORES:
        yield store_file(prefix, suffix, (88, 100))


def cases():
    yield from loads_and_stores()
