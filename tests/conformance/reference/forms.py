# SPDX-License-Identifier: Apache-2.0
"""All generated cases, and which file each stands in: GROUP/FAMILY.ptx.

A group is a module of this folder, forms_GROUP. A family is what one reads together: by default all forms of a mnemonic
that a group makes; TOGETHER puts several small mnemonics into one file, `part` cuts the large ones.
"""
from . import (
    forms_atomic,
    forms_block,
    forms_cluster,
    forms_compare,
    forms_control,
    forms_convert,
    forms_fault,
    forms_float,
    forms_integer,
    forms_matrix,
    forms_memory,
    forms_multimem,
    forms_random,
    forms_space,
    forms_tcgen05,
    forms_tcgen05_mma,
    forms_tensor,
    forms_warp,
    forms_wgmma,
)

GROUPS = {
    "integer": forms_integer,
    "float": forms_float,
    "convert": forms_convert,
    "compare": forms_compare,
    "matrix": forms_matrix,
    "memory": forms_memory,
    "atomic": forms_atomic,
    "warp": forms_warp,
    "control": forms_control,
    "block": forms_block,
    "space": forms_space,
    "fault": forms_fault,
    "random": forms_random,
    "cluster": forms_cluster,
    "wgmma": forms_wgmma,
    "tensor": forms_tensor,
    "multimem": forms_multimem,
    "tcgen05": forms_tcgen05,
    "tcgen05_mma": forms_tcgen05_mma,
}

TOGETHER = {
    "integer": {
        "bits": "bfe bfi bfind bmsk brev clz fns popc prmt szext",
        "carry": "addc subc madc",
        "dot": "dp2a dp4a",
        "logic": "and or xor not cnot lop3",
        "shift": "shl shr shf",
        "video": "vadd2 vadd4 vsub2 vsub4 vavrg2 vavrg4 vabsdiff2 vabsdiff4 vmin2 vmin4 vmax2 vmax4",
        "24bit": "mul24 mad24",
    },
    "float": {"sign": "abs neg copysign", "functions": "ex2 lg2 sin cos tanh rsqrt"},
    "compare": {"logic": "and or xor not lop3"},
    "matrix": {"rows": "ldmatrix stmatrix movmatrix"},
    "warp": {"registers": "mov activemask elect"},
    "control": {"branch": "bra brx exit"},
    "block": {
        "barrier": "bar barrier",
        "fence": "fence membar",
        "hints": "griddepcontrol nanosleep prefetch prefetchu",
        "wait": "bra",
    },
    "space": {"ld": "ld"},
    "fault": {"faults": "fault"},
    "random": {"programs": "random"},
    "cluster": {
        "bulk": "cp",
        "barrier": "barrier",
        "memory": "mapa getctarank isspacep atom red",
        "registers": "mov",
        "remote": "mbarrier st",
    },
    "tcgen05_mma": {"fault": "mma_fault"},
    "tcgen05": {name: name for name in ("alloc", "ld", "st", "cp", "shift", "commit", "fault")},
}
SPACES = ("global", "shared", "local", "const", "param")
INTEGERS = {f"{sign}{bits}" for sign in "usb" for bits in (8, 16, 32, 64)}


def part(case):
    """What part of a large family the case belongs to: by address space, or by type."""
    words = case.name.split(".")
    types = [word for word in words[1:] if word[0] in "usbfet" and word[-1].isdigit()]
    if case.mnemonic in ("ld", "st", "atom", "red"):
        return next((word for word in words if word in SPACES), "generic")
    if case.mnemonic == "cvt":
        return "_to_".join("integer" if t in INTEGERS else "float" for t in reversed(types[:2]))
    if case.mnemonic in ("setp", "set"):
        return "integer" if types[-1] in INTEGERS else "float"
    if case.mnemonic == "mma" and case.name.startswith("tcgen05"):
        return next(word for word in words if word.startswith("kind::"))[6:]
    if case.mnemonic in ("mma", "wmma", "wgmma"):
        return "integer" if "s32" in types else "float"
    return ""


def family(group, case):
    for name, mnemonics in TOGETHER.get(group, {}).items():
        if case.mnemonic in mnemonics.split():
            return name
    return ".".join(filter(None, (case.mnemonic, part(case))))


def files():
    """Each file's cases, by its path."""
    made = {}
    for group, module in GROUPS.items():
        for case in module.cases():
            made.setdefault(f"{group}/{family(group, case)}.ptx", []).append(case)
    return made


def cases():
    for group in GROUPS.values():
        yield from group.cases()
