#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""performance.py BUILD [--csv FILE] [--doc FILE] [--group NAME,...] [--repeat N] [--from FILE]
performance.py --from FILE --doc FILE [--check]

How fast a build is on this machine: executing kernels, the timing model, far-faults, launches, sampling, sweeps, whole runs
beside other simulators. Each figure is the best of N runs (default 3; of far-faults one) of the command beside it; processor time is user and
system time of the command and its children. Takes about four minutes on two idle cores.

--csv    the figures, to a file or - (default): group,what,value,unit,others,command
--doc    a document whose part between <!-- performance.py --> and <!-- end --> becomes the tables
--from   the figures come from this file, and nothing is measured; with BUILD, those of the groups that are not named
--check  the document is not written: status 1 if it is not what would be written

Other simulators' times were measured with the same programs' text compiled for them, on two cores of another x86-64 machine:
compare orders of magnitude.
"""
import argparse
import csv
import datetime
import os
import re
import subprocess
import sys
import tempfile

import curves

FIELDS = ["group", "what", "value", "unit", "others", "command"]


class Runner:
    """Runs commands of a build; {b} is its folder, {s} a scratch folder, in words of a command."""

    def __init__(self, build, repeat, scratch):
        self.build, self.repeat, self.scratch = build, repeat, scratch
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("FARFAULT_")}

    def words(self, command):
        return command.format(b=self.build, s=self.scratch).split()

    def run(self, command, **environment):
        """(what it printed, processor s, wall s, peak bytes) of one run."""
        return curves.run_alone(self.words(command), {**self.environment, **environment})

    def all_best(self, command, patterns, least=True, **environment):
        """For each pattern the best number that its group finds in what the runs print."""
        found = [[] for _ in patterns]
        for _ in range(self.repeat):
            text = self.run(command, **environment)[0]
            for numbers, pattern in zip(found, patterns):
                match = re.search(pattern, text, re.MULTILINE)
                if not match:
                    sys.exit(f"performance.py: '{command}' prints nothing like '{pattern}':\n{text[-1000:]}")
                numbers.append(float(match.group(1)))
        return [min(n) if least else max(n) for n in found]

    def best(self, command, pattern, least=True, **environment):
        return self.all_best(command, [pattern], least, **environment)[0]

    def processor(self, command, **environment):
        return min(self.run(command, **environment)[1] for _ in range(self.repeat))

    def wall(self, command, **environment):
        return min(self.run(command, **environment)[2] for _ in range(self.repeat))


def number(value):
    """Three digits, and no exponent; a text is what a program printed."""
    if isinstance(value, str):
        return value
    return f"{value:.0f}" if value >= 100 else f"{value:#.3g}"


def shown(command):
    """As it stands in a table: paths as from the build folder's parent."""
    return command.replace("{b}/", "build/").replace("{s}/", "")


def executing(r):
    cases = [(f"{what}{more}", rf"^{kernel} +\S+ +1 +{stream} +([0-9.]+)")  # the widest set that the machine has is listed first
             for kernel, what in (("product", "matrix product"), ("search", "breadth-first search"))
             for stream, more in (("no", ""), ("yes", ", writing the access stream"))]
    command = "{b}/bench/bench_exec 512 262144"
    for how, word in (("interpret", "interpreted"), ("compile", "compiled")):
        values = r.all_best(command, [pattern for _, pattern in cases], False, FARFAULT_EXECUTE=how)
        for (what, _), value in zip(cases, values):
            yield (f"{what}, {word}", value, "million warp instructions a second, one core", "", f"FARFAULT_EXECUTE={how} {shown(command)}")


def beside_c(r):
    text = r.run(f"scripts/compare-c.sh {r.build}", RUNS=str(r.repeat))[0]
    for line in text.splitlines()[1:]:
        fields = line.rsplit(None, 2) if line.startswith(("mean", "geometric")) else line.split()
        name, interpreted, compiled = fields[0], fields[-2], fields[-1]
        yield name, compiled, "times as long as C (-O2), compiled and interpreted", interpreted, "scripts/compare-c.sh build"


OTHERS = {  # (program and arguments, options): what others take, processor s
    "vector addition, 1 M floats, with timing": ("--machine h200 --memory copy", "vectoradd 1048576 1", "GPGPU-Sim 4.2: 64 s"),
    "the same, executed alone": ("--machine h200 --memory none", "vectoradd 1048576 1", "GPGPU-Sim 4.2: 4.7 s"),
    "matrix product 256, with timing": ("--machine h200 --memory copy", "matmul 256 1", "GPGPU-Sim 4.2: 172 s"),
    "matrix product 256, executed alone": ("--machine h200 --memory none", "matmul 256 1", "GPGPU-Sim 4.2: 8.2 s"),
    "matrix product 512, with timing": ("--machine h200 --memory copy", "matmul 512 1", "GPGPU-Sim 4.2: not over after 633 s"),
    "matrix product 512, executed alone": ("--machine h200 --memory none", "matmul 512 1", "GPGPU-Sim 4.2: 61 s"),
    "managed vector addition, 256 K floats": ("--machine gtx480 --memory demand", "vectoradd 262144 1", "UVMSmart: 189 s"),
    "the same in 2 MiB of GPU memory": ("--machine gtx480 --memory demand --gpu-memory 2M", "vectoradd 262144 1", "UVMSmart: 252 s"),
    "search, 262,144 vertices, with timing": ("--machine h200 --memory copy", "bfs 262144 8", ""),
    "the same under the driver's managed memory": ("--machine h200 --memory uvm", "bfs 262144 8", ""),
    "eight managers side by side": ("--machine h200 --memory copy,uvm,auto,demand,replay,tbn,sequential,segments", "bfs 65536 8", ""),
}


def whole_runs(r):
    for what, (options, program, others) in OTHERS.items():
        command = f"{{b}}/bin/farfault run {options} {{b}}/workloads/{program}"
        yield what, r.processor(command), "s of processor time", others, shown(command)


def model_alone(r):
    for machine in ("gtx480", "h200"):
        for stream in ("vector", "matrix", "search"):
            command = f"{{b}}/bench/bench_sim {stream} ideal machines/{machine}.yaml"
            lines = r.best(command, r"([0-9.]+) M lines/s", False)
            yield f"{stream}, {machine}", lines, "million lines of 128 bytes a second, one core", "", shown(command)


def threads(r):
    for machine in ("v100", "h200"):
        for stream in ("vector", "matrix", "search"):
            command = f"{{b}}/bench/bench_sim {stream} ideal machines/{machine}.yaml"
            pattern = r"^\S+ +\S+ +([0-9.]+) s"
            alone, two = r.best(command, pattern), r.best(command + " threads=2", pattern)
            yield f"{stream}, {machine}", alone / two, "times as fast on two threads, by the clock", "", shown(command) + " threads=2"


def far_faults(r):
    command = "{b}/bench/bench_faults {e} 1G 16G"
    for evictor in ("lru", "fifo", "tree", "auto", "belady"):
        text = r.run(command.replace("{e}", evictor))[0]
        for size in ("1 GiB", "16 GiB"):
            found = re.search(rf"^{evictor} +{size} .*fault +([0-9.]+) us per far-fault.*swap +([0-9.]+) us", text, re.MULTILINE)
            if not found:
                sys.exit(f"performance.py: bench_faults prints no line of {evictor}, {size}:\n{text}")
            yield (f"{evictor}, {size} of GPU memory", float(found.group(1)), "us a far-fault", f"{found.group(2)} us a page",
                   shown(command.replace("{e}", evictor)))
    command = "{b}/bench/bench_faults lru 16G"
    yield "16 GiB of memory in 4 KiB pages, 32 GiB of them known", r.run(command)[3] / 1e6, "MB of host memory at most", "", shown(command)


def launches(r):
    command = "{b}/bench/bench_launch 100"
    bare, declared = r.all_best(command, [r"^ +8 +([0-9]+)", r"^ +8 +[0-9]+ +[0-9]+ +([0-9]+)"])
    yield "bare cuLaunchKernel of 8 pointers, no simulation", bare / 1000, "us of processor time", "", shown(command)
    yield "the same with 8 declared segments", declared / 1000, "us of processor time", "", shown(command)
    for memory in ("none", "copy"):
        command = f"{{b}}/bin/farfault run --memory {memory} {{b}}/bench/bench_kernels 1 1 100000 32"
        yield f"one of 100,000 launches of one block, --memory {memory}", r.processor(command) * 10, "us of processor time", "", shown(command)
    for modules in (1, 5000):
        command = f"{{b}}/bin/farfault run --memory none {{b}}/bench/bench_kernels 5000 {modules} 5000"
        yield (f"5,000 kernels in {modules} module{'s' if modules > 1 else ''}, each launched once",
               r.best(command, r"first launches.* ([0-9.]+) million warp", False), "million warp instructions a second", "", shown(command))


def sampling(r):
    for program in ("hotspot 256 256 100", "hotspot 256 256 1000"):
        r.run(f"{{b}}/bin/farfault record -o {{s}}/a.fft {{b}}/workloads/{program}")
        r.run("{b}/bin/farfault trace cut --footprints -o {s}/f.fft {s}/a.fft")
        command = "{b}/bin/farfault sim --memory uvm --sample %s {s}/%s.fft"
        whole = r.processor(command % ("none", "a"))
        for kind, trace in (("", "a"), (", recording with footprints", "f")):
            yield (program + kind, whole / r.processor(command % ("on", trace)), "times as fast as without --sample", "", shown(command % ("on", trace)))


STUDY = """trace: {s}/point.fft
machine: gtx480
memory: [copy, demand, tbn, uvm]
set:
  fault_us: [{faults}]
  link_latency_us: [{latencies}]
"""


def sweeps(r):
    r.run("{b}/bin/farfault record -o {s}/point.fft {b}/workloads/vectoradd 4096")
    numbers = ", ".join(str(n) for n in range(1, 26))
    with open(os.path.join(r.scratch, "study.yaml"), "w") as file:
        file.write(STUDY.format(s=r.scratch, faults=numbers, latencies=numbers))
    command = "{b}/bin/farfault sweep -j 2 -o {s}/study.db {s}/study.yaml"
    runs = []
    for _ in range(r.repeat):
        if os.path.exists(os.path.join(r.scratch, "study.db")):
            os.remove(os.path.join(r.scratch, "study.db"))
        runs.append(r.run(command)[1:3])
    yield "one of 2,500 points of one small launch", min(c for c, _ in runs) / 2.5, "ms of processor time", "", shown(command)
    yield "the same, by the clock on two cores", min(w for _, w in runs) / 2.5, "ms", "", shown(command)


def small_parts(r):
    command = "{b}/bench/bench_partition"
    masks, modulo, frame = r.all_best(command, [r"v100 +xor +([0-9.]+) ns", r"modulo +([0-9.]+) ns", r"143 GiB.*full: +([0-9.]+) ns"])
    yield "module, bank, set and row of an address, XOR masks", masks, "ns", "", shown(command)
    yield "the same by modulo", modulo, "ns", "", shown(command)
    yield "a frame of 4 KiB of half of 8 colours, 143 GiB, full", frame, "ns to give back and take", "", shown(command)
    command = "{b}/bench/bench_offload {b}/workloads/sgemm.ptx"
    yield "blocks to offload of a kernel of 590 instructions", r.best(command, r"slowest: ([0-9.]+) ms"), "ms", "", shown(command)
    r.run("{b}/bin/farfault record -o {s}/t.fft -M gtx480 {b}/workloads/hotspot 1024 1024 4")
    command = "{b}/bench/bench_trace {s}/t.fft"
    yield "reading a recording, of a simulation's time", r.best(command, r"([0-9.]+) %"), "%", "", shown(command)


GROUPS = {  # what measures it, and the heading of its "others"
    "Whole runs": (whole_runs, "other simulators"),
    "Executing kernels": (executing, None),
    "Kernels beside plain C": (beside_c, "interpreted"),
    "The timing model alone": (model_alone, None),
    "One simulation on two threads": (threads, None),
    "Far-faults when memory is too small": (far_faults, "large prefetches"),
    "Launches and kernels": (launches, None),
    "Sampling": (sampling, None),
    "Sweeps": (sweeps, None),
    "Parts": (small_parts, None),
}


def this_machine():
    with open("/proc/cpuinfo") as file:
        text = file.read()
    name = re.search(r"model name\s*: (.*)", text)
    wide = "AVX-512" if " avx512f" in text else "AVX2" if " avx2" in text else "no AVX2"
    return f"{len(os.sched_getaffinity(0))} cores of {name.group(1) if name else 'an unknown processor'} with {wide}"


def measure(build, names, repeat):
    rows = [["machine", this_machine(), f"{os.getloadavg()[0]:.1f}", "load when it began", datetime.date.today().isoformat(), ""]]
    with tempfile.TemporaryDirectory() as scratch:
        runner = Runner(os.path.abspath(build), repeat, scratch)
        for name in names:
            print(f"performance.py: {name}", file=sys.stderr)
            for what, value, unit, others, command in GROUPS[name][0](runner):
                print(f"  {what}: {number(value)} {unit}", file=sys.stderr)
                rows.append([name, what, number(value), unit, others, command])
    return rows


def table(group, others):
    """Lines of Markdown for the rows of a group: a unit or a command that all have stands above them."""
    one_unit, one_command = len({r[3] for r in group}) == 1, len({r[5] for r in group}) == 1
    above = ([f"Unit: {group[0][3]}"] if one_unit else []) + ([f"`{group[0][5]}`"] if one_command else [])
    columns = [("what", "---", [r[1] for r in group]), ("figure", "---:", [r[2] if one_unit else f"{r[2]} {r[3]}" for r in group])]
    if others:
        columns.append((others, "---", [r[4] for r in group]))
    if not one_command:
        columns.append(("command", "---", [f"`{r[5]}`" for r in group]))
    across = 3 if len(group) > 16 and one_unit and one_command else 1
    down = -(-len(group) // across)

    def line(cells):
        return "| " + " | ".join(cells) + " |"

    out = [": ".join(above) + ".", ""] if above else []
    out += [line([c[0] for c in columns] * across), line([c[1] for c in columns] * across)]
    for i in range(down):
        out.append(line([c[2][j] if j < len(group) else "" for j in range(i, across * down, down) for c in columns]))
    return out + [""]


def tables(rows):
    machine = next(r for r in rows if r[0] == "machine")
    out = ["", f"{machine[1]}, {machine[4]}, load {machine[2]} when it began.", ""]
    for name in dict.fromkeys(r[0] for r in rows if r[0] != "machine"):
        out += [f"### {name}", ""] + table([r for r in rows if r[0] == name], GROUPS[name][1])
    return "\n".join(out)


def figures_of(path):
    try:
        with open(path, newline="") as file:
            rows = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        sys.exit(f"performance.py: {path}: {error}")
    if not rows or rows[0] != FIELDS or any(len(r) != len(FIELDS) or r[0] not in ("machine", *GROUPS) for r in rows[1:]):
        sys.exit(f"performance.py: {path} does not begin with {','.join(FIELDS)}, or has a row of another length or group")
    return rows[1:]


def with_groups(rows, fresh):
    """The rows, with those of the groups that `fresh` has in place of theirs; the machine's row is the rows'."""
    if all(r[0] == "machine" for r in rows):
        return fresh
    new = {r[0] for r in fresh} - {"machine"}
    merged = [r for r in rows if r[0] not in new] + [r for r in fresh if r[0] in new]
    return sorted(merged, key=lambda r: ["machine", *GROUPS].index(r[0]))


def put_in(document, rows, check):
    with open(document) as file:
        text = file.read()
    begin, end = "<!-- performance.py -->", "<!-- end -->"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        sys.exit(f"performance.py: {document} has no part between {begin} and {end}")
    new = text[:text.index(begin) + len(begin)] + "\n" + tables(rows) + text[text.index(end):]
    if check:
        if new != text:
            sys.exit(f"performance.py: the tables of {document} are not those of the figures: run it with --from and --doc")
        return
    with open(document, "w") as file:
        file.write(new)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?")
    parser.add_argument("--csv", default="-")
    parser.add_argument("--doc")
    parser.add_argument("--from", dest="source")
    parser.add_argument("--group", default=",".join(GROUPS))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--check", action="store_true")
    a = parser.parse_args()
    names = curves.chosen(parser, a, "group", GROUPS)
    if not a.build and not a.source:
        parser.error("a build folder, or --from and a file, is wanted")
    rows = figures_of(a.source) if a.source else []
    if a.build:
        rows = with_groups(rows, measure(a.build, names, a.repeat))
        with sys.stdout if a.csv == "-" else open(a.csv, "w", newline="") as out:
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow(FIELDS)
            writer.writerows(rows)
    if a.doc:
        put_in(a.doc, rows, a.check)


if __name__ == "__main__":
    main()
