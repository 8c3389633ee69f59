# SPDX-License-Identifier: Apache-2.0
"""A case of a conformance file: comments with the inputs and the expectations, then a kernel. See ../README.md for the format."""
from dataclasses import dataclass, field

from .formats import SKIP
from .values import Random, bits_of, rows, write

LINE = 118
LANES = 64


@dataclass
class Array:
    way: str  # "in", "out", "inout" or "param"
    name: str
    kind: str
    values: list  # inout: (before, after)
    register: str = ""


@dataclass
class Case:
    mnemonic: str
    name: str
    title: str
    arrays: list
    text: str  # the PTX
    headers: list = field(default_factory=list)  # further comment lines: "allow d: ulp 2", "launch: ...", "fault: ..."

    def render(self):
        lines = [f"// case: {self.name}", f"// {self.title}"]
        for array in self.arrays:
            for way, values in sides(array):
                lines += wrap(f"// {way} {array.name}: {array.kind}", [write(array.kind, v) for v in values])
        lines += [f"// {h}" for h in self.headers]
        return "\n".join(lines) + "\n" + self.text.strip("\n") + "\n"


def sides(array):
    if array.way == "inout":
        return [("in", array.values[0]), ("out", array.values[1])]
    return [(array.way, array.values)]


def wrap(start, words):
    lines, line = [], start
    for word in words:
        if len(line) + 1 + len(word) > LINE:
            lines.append(line)
            line = "//  "
        line += " " + word
    return lines + [line]


def head(target=(70, 80)):
    version, sm = target
    return f".version {version // 10}.{version % 10}\n.target sm_{sm}\n.address_size 64\n"


REGISTER_KINDS = {
    "u8": "u16",
    "s8": "s16",
    "b8": "b16",
    "f16": "b16",
    "bf16": "b16",
    "f16x2": "b32",
    "bf16x2": "b32",
    "tf32": "b32",
    "u16x2": "b32",
    "s16x2": "b32",
}
MEMORY_KINDS = {
    "f16": "b16",
    "bf16": "b16",
    "f16x2": "b32",
    "bf16x2": "b32",
    "tf32": "b32",
    "u16x2": "b32",
    "s16x2": "b32",
}


def register_kind(kind):
    return REGISTER_KINDS.get(kind, kind)


def memory_kind(kind):
    return MEMORY_KINDS.get(kind, kind)


def move(array, store):
    """Loads or stores the thread's element."""
    register = array.register or f"%{array.name}"
    address = f"ld.param.u64 %at, [{array.name}]; mad.wide.u32 %at, %i, {bits_of(array.kind) // 8}, %at;"
    kind = memory_kind(array.kind)
    access = f"st.global.{kind} [%at], {register};" if store else f"ld.global.{kind} {register}, [%at];"
    return f"  {address} {access}"


def lane_kernel(arrays, body, registers=(), target=(70, 80), narrow=False):
    """A kernel in which thread i works on element i of every array. `narrow`: 8-bit values are in 8-bit registers."""
    params = ", ".join(f".param .u64 {a.name}" for a in arrays)
    declared = {}
    for array in arrays:
        register = array.register or f"%{array.name}"
        declared.setdefault(register, array.kind if narrow and bits_of(array.kind) == 8 else register_kind(array.kind))
    for declaration in registers:
        kind, name = declaration.split()
        declared[name] = kind
    by_kind = {}
    for register, kind in declared.items():
        by_kind.setdefault(kind, []).append(register)
    lines = [head(target) + f".visible .entry test({params})", "{", "  .reg .u32 %i, %n, %t; .reg .u64 %at;"]
    lines += [f"  .reg .{kind} {', '.join(names)};" for kind, names in by_kind.items()]
    lines += ["  mov.u32 %i, %ctaid.x; mov.u32 %n, %ntid.x; mov.u32 %t, %tid.x; mad.lo.u32 %i, %i, %n, %t;"]
    lines += [move(a, store=False) for a in arrays if a.way in ("in", "inout")]
    lines += [f"  {line}" for line in body]
    lines += [move(a, store=True) for a in arrays if a.way in ("out", "inout")]
    return "\n".join(lines + ["  ret;", "}"])


def lanes(
    opcode,
    dtype,
    kinds,
    function,
    title,
    *,
    name=None,
    body=None,
    registers=(),
    immediate=None,
    edge_lists=None,
    count=LANES,
    target=(70, 80),
    allow=(),
    extra_rows=(),
    keep=None,
    narrow=False,
):
    """The usual case: `opcode d, a, b, ...` over `count` rows of operands. `function` takes the operands' bits and gives the
    result's. With `immediate` (text, bits), a second instruction has it as the last operand and, if the types allow, its
    first operand as the destination: result e."""
    names = "abcf"[: len(kinds)]
    random = Random(name or opcode)
    given = list(extra_rows) + rows(kinds, count, random, edge_lists)
    kept, results, seconds = [], [], []
    for row in given[: max(count, len(extra_rows))]:
        if keep and not keep(*row):
            continue
        result = function(*row)
        second = function(*row[:-1], immediate[1]) if immediate else 0
        if result is SKIP or second is SKIP:
            continue
        kept.append(row), results.append(result), seconds.append(second)
    arrays = [Array("in", n, k, [row[i] for row in kept]) for i, (n, k) in enumerate(zip(names, kinds))]
    operands = [f"%{n}" for n in names]
    lines = list(body) if body else [f"{opcode} %d, {', '.join(operands)};"]
    arrays.append(Array("out", "d", dtype, results))
    if immediate:
        register = "%a" if kinds[0] == dtype else "%e"
        lines.append(f"{opcode} {register}, {', '.join(operands[:-1] + [immediate[0]])};")
        arrays.append(Array("out", "e", dtype, seconds, register))
    headers = [f"allow {n}: {bound}" for bound in allow for n in ("de" if immediate else "d")]
    text = lane_kernel(arrays, lines, registers, target, narrow)
    return Case(opcode.split(".")[0], name or opcode, title, arrays, text, headers)
