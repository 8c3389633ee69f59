#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What ptx_machine_code estimates next to the code that NVIDIA's ptxas makes, of the workloads' kernels or of any PTX.

usage: machine_code.py PROGRAM SOURCE-FOLDER BUILD-FOLDER [-v] [FILE.ptx...]

PROGRAM is machine_code.c's. ptxas and nvdisasm come from PyPI into BUILD-FOLDER/cuda; without a network the test is skipped
(exit status 77). Kernels are compared whose loops ptxas leaves as they are (as many accesses to global memory at each depth):
in code that it unrolls nothing stands for the same. Instructions count 8 times as much in each loop around them. The blocks
that call ptxas's own slow paths (divisions of subnormal numbers) are left out: hardly any lane takes them.
LIMITS has how far a class may be from ptxas's count.
"""
import collections
import math
import pathlib
import re
import subprocess
import sys
import tempfile

PACKAGES = ["nvidia-cuda-nvcc==13.0.88", "nvidia-cuda-nvdisasm==13.2.51"]
ARCH = "sm_75"
CLASSES = {  # first words of machine instructions
    "fma": "FFMA FMUL FADD IMAD IDP HFMA2 HADD2 HMUL2",
    "alu": "IADD3 LOP3 SHF LEA ISETP FSETP SEL FSEL MOV PRMT IMNMX FMNMX IABS BMSK SGXT PLOP3 P2R R2P VOTE HSETP2 FSET",
    "xu": "MUFU FCHK I2F F2I F2F FRND POPC FLO BREV I2I",
    "fp64": "DFMA DADD DMUL DSETP",
    "lsu": "LDS STS ATOMS LDSM SHFL LDL STL LDC MATCH",
    "memory": "LDG STG LD ST RED ATOM ATOMG",
}
CLASS_OF = {word: name for name, words in CLASSES.items() for word in words.split()}
LIMITS = {  # class: how far the geometric mean may be from 1, and the mean error
    "slots": (0.07, 0.13),  # ptxas unrolls loops of lud_diagonal that have accesses to shared memory only
    "fma": (0.15, 0.16),
    "alu": (0.08, 0.28),
    "busier": (0.05, 0.20),  # of FMA and ALU: what bounds the time of kernels that compute
}


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"machine_code.py: {command[0]}: {done.stderr[-400:]}")
    return done.stdout


def install(source, build):
    done = subprocess.run([f"{source}/scripts/cuda-packages.sh", build, *PACKAGES], capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr.strip() or "machine_code.py: ptxas cannot be installed", file=sys.stderr)
        sys.exit(done.returncode)
    return pathlib.Path(done.stdout.strip())


def kernels_of(listing):
    """Of nvdisasm's text: kernel -> labels (strings) and instructions (operation, operands), in order."""
    kernels, now = {}, None
    for line in listing.splitlines():
        if match := re.match(r"\.text\.(\S+):", line):
            now = kernels[match[1]] = []
        elif line.startswith("//-----") or re.match(r"\s+\.type\s+\$.*internal", line):
            now = now if ".text." in line else None  # another section, or a slow path
        elif now is None:
            continue
        elif match := re.match(r"(\.L_\w+):", line):
            now.append(match[1])
        elif match := re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?(\S+)(.*);", line):
            now.append((match[1], match[2]))
    return kernels


def count_machine(code):
    """Depth of loops -> class -> count."""
    at, instructions = {}, []
    for item in code:
        if isinstance(item, str):
            at[item] = len(instructions)
        else:
            instructions.append(item)
    ends = {n + 1 for n, (name, _) in enumerate(instructions) if name.split(".")[0] in ("BRA", "EXIT", "RET", "CALL", "BSYNC")}
    starts = sorted(set(at.values()) | {0} | ends)
    slow = set()
    for begin, end in zip(starts, starts[1:]):
        if any(name.startswith("CALL") and "internal" in rest for name, rest in instructions[begin:end]):
            slow.update(range(begin, end))
            if end not in at.values():  # and what takes the result from where the slow path left it
                back = min([n for n in at.values() if n >= end] + [len(instructions)])
                slow.update(range(end, back) if back - end <= 4 else ())
    loops = {}
    for n, (name, rest) in enumerate(instructions):
        target = re.search(r"\((\.L\w+)\)", rest)
        if name.startswith("BRA") and target and at.get(target[1], n) < n:
            loops[at[target[1]]] = max(loops.get(at[target[1]], 0), n)
    counts = collections.defaultdict(collections.Counter)
    for n, (name, _) in enumerate(instructions):
        if name == "NOP" or n in slow:
            continue
        depth = sum(begin <= n <= end for begin, end in loops.items())
        counts[depth]["slots"] += 1
        kind = CLASS_OF.get(name.split(".")[0], "other")
        counts[depth][kind] += 2 if name.startswith(("IMAD.WIDE", "IMAD.HI")) else 1  # has its pipe twice as long
    return counts


def count_ours(program, path):
    kernels = collections.defaultdict(dict)
    for line in run([program, path]).splitlines():
        name, depth, _, *numbers = line.split("\t")
        counts = dict(zip(("slots", "fma", "alu", "xu", "fp64", "lsu", "tensor", "memory"), map(int, numbers)))
        counts["alu"] -= counts["memory"]  # accesses have the ALU's time for their addresses
        kernels[name][int(depth)] = counts
    return kernels


def total(counts, name):
    return sum(of.get(name, 0) * 8 ** min(depth, 3) for depth, of in counts.items())


def same_loops(ours, theirs):
    depths = set(ours) | set(theirs)
    return max(ours) == max(theirs) and all(
        ours.get(depth, {}).get("memory", 0) == theirs.get(depth, {}).get("memory", 0) for depth in depths)


def main():
    verbose = "-v" in sys.argv
    program, source, build, *files = [argument for argument in sys.argv[1:] if argument != "-v"]
    tools = install(source, build)
    ptxas, nvdisasm = (next(tools.rglob(f"bin/{name}")) for name in ("ptxas", "nvdisasm"))
    files = files or sorted(map(str, pathlib.Path(build, "workloads").glob("*.ptx")))
    ratios, compared, kernels = collections.defaultdict(list), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for path in files:
            ours = count_ours(program, path)
            run([ptxas, "-arch", ARCH, path, "-o", f"{folder}/code.cubin"])
            theirs = {name: count_machine(code) for name, code in kernels_of(run([nvdisasm, "-c", f"{folder}/code.cubin"])).items()}
            for name in ours.keys() & theirs.keys():
                kernels += 1
                if not same_loops(ours[name], theirs[name]):
                    continue
                compared += 1
                pair = {kind: (total(ours[name], kind), total(theirs[name], kind)) for kind in ("slots", *CLASSES)}
                pair["busier"] = tuple(max(pair["fma"][side], pair["alu"][side]) for side in (0, 1))
                for kind, (a, b) in pair.items():
                    if max(a, b) >= 4:
                        ratios[kind].append((a + 0.5) / (b + 0.5))
                if verbose:
                    print(f"{pathlib.Path(path).stem} {name[:40]}: " + ", ".join(f"{kind} {a}/{b}" for kind, (a, b) in pair.items() if a or b))
    print(f"{compared} of {kernels} kernels have the same loops")
    failed = compared == 0
    for kind, of in ratios.items():
        mean = math.exp(sum(map(math.log, of)) / len(of))
        error = sum(abs(ratio - 1) for ratio in of) / len(of)
        ratio_limit, error_limit = LIMITS.get(kind, (math.inf, math.inf))
        wrong = abs(mean - 1) > ratio_limit or error > error_limit
        failed |= wrong
        print(f"{kind:8} {len(of):3} kernels: ours / ptxas {mean:.3f}, mean error {100 * error:.1f} %" + (", above its limit" if wrong else ""))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
