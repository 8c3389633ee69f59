#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""curves.py BUILD [--csv FILE] [--svg FILE] [--series NAME,...] [--repeat N]

How the processor time of a whole run grows: with instructions, with data, with launches, with managers side by side, with
threads. Each point is `farfault run` with a bundled program on the machine h200, the least of N runs (default 3), user and
system time of it and of all its children.

--csv   the points, to a file or - (default): series,x,unit,cpu_s,wall_s,warp_instructions
--svg   the picture, drawn by gnuplot (Debian: gnuplot-nox)
"""
import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MANAGERS = ["copy", "uvm", "auto", "demand", "replay", "tbn", "sequential", "segments"]

# name: (what x is, [(x, farfault's options, program and arguments)])
SERIES = {
    "instructions": ("warp instructions", [(None, ["--memory", "copy"], ["matmul", str(n), "1"]) for n in (128, 192, 256, 384, 512, 768)]),
    "data": ("bytes", [(12 * n, ["--memory", "uvm"], ["vectoradd", str(n), "1"]) for n in (1 << 18, 1 << 20, 1 << 22, 1 << 24)]),
    "launches": ("launches", [(n, ["--memory", "copy"], ["bench_kernels", "1", "1", str(n), "32"]) for n in (1000, 4000, 16000, 64000)]),
    "managers": ("managers", [(n, ["--memory", ",".join(MANAGERS[:n])], ["bfs", "65536", "8"]) for n in (1, 2, 4, 8)]),
    "threads": ("threads", [(n, ["--memory", "none", "--threads", str(n)], ["matmul", "768", "4"]) for n in (1, 2, 4, 8, 16)]),
}


def run_alone(words, environment=None):
    """One run of a command, which must succeed: (what it printed, processor s of it and its children, wall s, peak bytes)."""
    with tempfile.TemporaryFile("w+") as out:
        begun = time.monotonic()
        child = subprocess.Popen(words, stdout=out, stderr=subprocess.STDOUT, env=environment, cwd=ROOT)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.monotonic() - begun
        child.returncode = os.waitstatus_to_exitcode(status)  # it has been waited for
        out.seek(0)
        text = out.read()
    if child.returncode:
        sys.exit(f"{os.path.basename(sys.argv[0])}: {' '.join(words)}: status {child.returncode}\n{text[-1000:]}")
    return text, usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss * 1024


def program_path(build, name):
    for folder in ("workloads", "bench"):
        path = os.path.join(build, folder, name)
        if os.path.exists(path):
            return path
    sys.exit(f"curves.py: {build} has no program {name}: is it a build folder?")


def measure(build, options, program, scratch):
    """One run: (processor s, wall s, warp instructions)."""
    result = os.path.join(scratch, "run.json")
    command = [os.path.join(build, "bin", "farfault"), "run", "--machine", "h200", "--json", result, *options,
               program_path(build, program[0]), *program[1:]]
    _, cpu, wall, _ = run_alone(command)
    with open(result) as file:
        host = json.load(file)["host"]
    return cpu, wall, host["warp_instructions"]


def run_series(build, names, repeat, scratch):
    rows = []
    for name in names:
        unit, points = SERIES[name]
        for x, options, program in points:
            if name == "threads" and x > len(os.sched_getaffinity(0)):
                continue
            print(f"{name}: {x if x is not None else ' '.join(program)}", file=sys.stderr)
            runs = [measure(build, options, program, scratch) for _ in range(repeat)]
            instructions = runs[0][2]
            rows.append([name, instructions if x is None else x, unit, round(min(r[0] for r in runs), 3),
                         round(min(r[1] for r in runs), 3), instructions])
    return rows


def write_csv(rows, path):
    out = sys.stdout if path == "-" else open(path, "w", newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["series", "x", "unit", "cpu_s", "wall_s", "warp_instructions"])
    writer.writerows(rows)
    if out is not sys.stdout:
        out.close()


def draw(rows, path, scratch):
    if not shutil.which("gnuplot"):
        sys.exit("curves.py: --svg needs gnuplot (Debian: gnuplot-nox)")
    series = [n for n in SERIES if any(r[0] == n for r in rows)]
    script = ["set terminal svg size 900,560 font 'sans-serif,12' background 'white'", f"set output '{path}'",
              "set multiplot layout 2,3", "set logscale xy", "set grid", "unset key", "set format x '10^{%L}'"]
    for name in series:
        data = os.path.join(scratch, name)
        column = 4 if name == "threads" else 3  # more threads save wall time, not processor time
        with open(data, "w") as file:
            file.writelines(f"{r[1]} {r[column]}\n" for r in rows if r[0] == name)
        if name in ("managers", "threads"):
            script += ["set format x '%g'", "set logscale x 2"]
        script += [f"set xlabel '{SERIES[name][0]}'", f"set ylabel '{'wall' if column == 4 else 'processor'} s'",
                   f"plot '{data}' with linespoints pointtype 7 linecolor rgb '#3070b0'"]
    subprocess.run(["gnuplot"], input="\n".join(script + ["unset multiplot"]), text=True, check=True)


def chosen(parser, arguments, kind, known):
    """The names that --KIND lists; the program ends where one is not known, or runs are to be repeated less than once."""
    names = getattr(arguments, kind).split(",")
    unknown = [n for n in names if n not in known]
    if unknown:
        parser.error(f"no {kind} {', '.join(unknown)}: there are {', '.join(known)}")
    if arguments.repeat < 1:
        parser.error("--repeat is at least 1")
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--csv", default="-")
    parser.add_argument("--svg")
    parser.add_argument("--series", default=",".join(SERIES))
    parser.add_argument("--repeat", type=int, default=3)
    a = parser.parse_args()
    names = chosen(parser, a, "series", SERIES)
    with tempfile.TemporaryDirectory() as scratch:
        rows = run_series(os.path.abspath(a.build), names, a.repeat, scratch)
        write_csv(rows, a.csv)
        if a.svg:
            draw(rows, a.svg, scratch)


if __name__ == "__main__":
    main()
