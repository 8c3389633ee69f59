#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What ptx_spill_code spills next to what NVIDIA's ptxas does, of the workloads' kernels or of any PTX.

usage: spills.py PROGRAM PTXAS [--arch ARCH]... [--limit N]... [-v] FILE.ptx...

PROGRAM is machine_code.c's. 255 as a limit is none. Bytes are those of one thread, each instruction counted once, as ptxas
prints them. A line for each architecture and limit: how many kernels there are; how many spill by both, by ptxas alone and by
the estimate alone; the bytes that both sides store and load, over all kernels; the mean error of bytes loaded, of the kernels
in which ptxas spills. -v: a line for each kernel in which either spills.
"""
import argparse
import re
import subprocess
import sys

NONE = 255


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"spills.py: {command[0]} {command[-1]}: {done.stderr[-300:]}", file=sys.stderr)
        return None
    return done.stdout + done.stderr


def assembled(ptxas, arch, limit, file):
    """kernel -> (bytes stored, bytes loaded)"""
    held = [] if limit == NONE else ["-maxrregcount", str(limit)]
    text = run([ptxas, "-v", f"-arch={arch}", "-o", "/dev/null", *held, file])
    kernels, now = {}, None
    for line in (text or "").splitlines():
        if match := re.search(r"Compiling entry function '([^']+)'", line):
            now = match[1]
        elif (match := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line)) and now and now not in kernels:
            kernels[now] = (int(match[1]), int(match[2]))
    return kernels


def estimated(program, limit, file):
    text = run([program, "--spills", str(limit), file])
    rows = [line.split("\t") for line in (text or "").splitlines()]
    return {row[0]: (int(row[3]), int(row[4])) for row in rows}


def compare(options, arch, limit):
    both = theirs = ours = kernels = 0
    sums, errors = [0, 0, 0, 0], []
    for file in options.files:
        real, guess = assembled(options.ptxas, arch, limit, file), estimated(options.program, limit, file)
        for name in sorted(real.keys() & guess.keys()):
            r, g = real[name], guess[name]
            kernels += 1
            both += any(r) and any(g)
            theirs += any(r) and not any(g)
            ours += any(g) and not any(r)
            sums = [a + b for a, b in zip(sums, (r[0], g[0], r[1], g[1]))]
            if r[1]:
                errors.append(abs(g[1] - r[1]) / r[1])
            if options.verbose and (any(r) or any(g)):
                print(f"{arch} {limit:3} {name[:40]:40} ptxas {r[0]:6} {r[1]:6}  here {g[0]:6} {g[1]:6}")
    error = f"{100 * sum(errors) / len(errors):.0f} %" if errors else "-"
    print(f"| {arch} | {'none' if limit == NONE else limit} | {kernels} | {both} | {theirs} | {ours} "
          f"| {sums[0]} | {sums[1]} | {sums[2]} | {sums[3]} | {error} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("ptxas")
    parser.add_argument("--arch", action="append")
    parser.add_argument("--limit", action="append", type=int)
    parser.add_argument("-v", dest="verbose", action="store_true")
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    for arch in options.arch or ["sm_75", "sm_90"]:
        for limit in options.limit or [NONE, 64, 40, 32, 24]:
            compare(options, arch, limit)


main()
