#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The bundled workloads' kernels with their counters, on a GPU or on a virtual one, and the two side by side.

usage: gpu-kernels.py measure [--driver cuda|virtual] [--machine NAME] [--build FOLDER] [--only NAME,...] [--quick] [--seconds N] -o FILE.csv
       gpu-kernels.py compare GPU.csv OURS.csv

measure runs the workloads of workloads/kernels.tsv (--quick: with the small ones of workloads.tsv) and writes a row per workload and kernel,
each figure the mean of its launches. --driver cuda (what is meant without it) runs them under NVIDIA's profiler, `ncu`, which must be on the PATH and
be allowed to read counters; virtual runs them on the virtual GPU, as --machine (h200). Both empty the L2 before each kernel: the profiler measures in
several passes, each of which must find the same. After --seconds (600) no further workload starts. Exit status: 77 without ncu, or where it may not read counters, 1 if a
workload failed, 2 if nothing was measured.

compare prints ours / the GPU's for the kernels that both files have, the worst time first, then of all: the geometric mean of the ratios of cycles, the
mean of |ratio - 1| and the correlation of the logarithms.

Instructions are not the same on both sides: of a GPU machine instructions, of the virtual one PTX instructions, both counted once a warp. A GPU's
sectors at the L2 are those that its SMs ask for; here page walks are among them."""

import argparse
import csv
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# our column: what ncu calls it, and by what that is multiplied
METRICS = {
    "us": ("gpu__time_duration.sum", 1e-3),
    "cycles": ("sm__cycles_elapsed.max", 1),
    "instructions": ("smsp__inst_executed.sum", 1),
    "dram_read_bytes": ("dram__bytes_read.sum", 1),
    "dram_write_bytes": ("dram__bytes_write.sum", 1),
    "l2_sectors": ("lts__t_sectors_srcunit_tex.sum", 1),
    "l2_hits": ("lts__t_sectors_srcunit_tex_lookup_hit.sum", 1),
    "l1_sectors": ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", 1),
    "l1_hits": ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum", 1),
    "active_cycles": ("sm__cycles_active.avg", 1),
    "warps_active": ("sm__warps_active.avg.pct_of_peak_sustained_active", 0.01),
    "registers": ("launch__registers_per_thread", 1),
}
COLUMNS = ["workload", "arguments", "kernel", "launches", *METRICS]


def table(path):
    """The rows of a file of columns between tabs."""
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def workloads(quick, only):
    """(name, arguments) of what is to run."""
    rows = table(ROOT / "workloads" / "kernels.tsv")
    if quick:
        small = {row["name"]: row["small"] for row in table(ROOT / "workloads" / "workloads.tsv")}
        rows = [{"name": row["name"], "arguments": small[row["name"]]} for row in rows]
    known = [row["name"] for row in rows]
    for name in only:
        if name not in known:
            sys.exit(f"gpu-kernels: there is no workload '{name}' in workloads/kernels.tsv")
    return [(row["name"], row["arguments"]) for row in rows if not only or row["name"] in only]


def number(text):
    """What ncu prints as a number, with or without commas; None where it has none."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def from_ncu(text, arguments):
    """Rows out of ncu's CSV, which has a line per launch and metric; `arguments` by workload. A metric that this GPU lacks stays empty."""
    lines = text.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith('"ID",')), len(lines))
    launches, values = {}, {}
    names = {metric: (column, factor) for column, (metric, factor) in METRICS.items()}
    for line in csv.DictReader(line for line in lines[begin:] if line.startswith('"')):
        key = (os.path.basename(line["Process Name"]), line["Kernel Name"].split("(")[0])
        launches.setdefault(key, set()).add((line["Process ID"], line["ID"]))
        value = number(line["Metric Value"])
        if line["Metric Name"] in names and value is not None:
            column, factor = names[line["Metric Name"]]
            values.setdefault((key, column), []).append(value * factor)
    rows = []
    for key, ids in launches.items():
        row = {"workload": key[0], "arguments": arguments.get(key[0], ""), "kernel": key[1], "launches": len(ids)}
        for column in METRICS:
            got = values.get((key, column), [])
            if len(got) == len(ids):
                row[column] = sum(got) / len(got)
        rows.append(row)
    return rows


def from_run(run, name, arguments, clock_mhz):
    """Rows out of a run of farfault, of one manager."""
    rows = []
    for kernel in run["kernels"]:
        launches = kernel.get("launches", 0)
        if not launches:
            continue

        def mean(*counters):
            return sum(kernel.get(counter, 0) for counter in counters) / launches

        rows.append(
            {
                "workload": name,
                "arguments": arguments,
                "kernel": kernel["name"].split("(")[0],
                "launches": launches,
                "us": mean("time_ps") / 1e6,
                "cycles": mean("time_ps") / 1e6 * clock_mhz,
                "instructions": mean("warp_instructions"),
                "dram_read_bytes": mean("dram_read_bytes"),
                "dram_write_bytes": mean("dram_write_bytes"),
                "l2_sectors": mean("l2_hits", "l2_misses"),
                "l2_hits": mean("l2_hits"),
                "l1_sectors": mean("l1_hits", "l1_misses"),
                "l1_hits": mean("l1_hits"),
            }
        )
    return rows


def measure_virtual(chosen, options):
    farfault = options.build / "bin" / "farfault"
    values = subprocess.run([farfault, "machine", "show", options.machine, "--json", "-"], capture_output=True, text=True, check=False)
    if values.returncode:
        sys.exit(f"gpu-kernels: {values.stderr.strip()}")
    clock = next(float(value["value"]) for value in json.loads(values.stdout)["values"] if value["name"] == "clock_mhz")
    rows, failed, end = [], [], time.monotonic() + options.seconds
    for name, arguments in chosen:
        if time.monotonic() > end:
            failed.append(f"{name} (no time left)")
            continue
        command = [farfault, "run", "--machine", options.machine, "--memory", "copy", "--l2", "flush", "--quiet", "--json", "-"]
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            command[-1] = file.name
            done = subprocess.run([*command, "--", options.build / "workloads" / name, *arguments.split()], stdout=subprocess.DEVNULL, check=False)
            if done.returncode:
                failed.append(name)
            else:
                rows += from_run(json.load(open(file.name, encoding="utf-8"))["runs"][0], name, arguments, clock)
    return rows, failed


def measure_gpu(chosen, options):
    ncu = shutil.which("ncu")
    if not ncu:
        print("gpu-kernels: there is no ncu on the PATH: no counters are read")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        log, failures = pathlib.Path(folder, "ncu.csv"), pathlib.Path(folder, "failures")
        failures.touch()
        # One profiler for all of them: its start takes longer than most workloads.
        script = ["SECONDS=0"]
        for name, arguments in chosen:
            script.append(
                f'if [ $SECONDS -ge {options.seconds:.0f} ]; then echo "{name} (no time left)" >>"{failures}"; '
                f'else "{options.build}/workloads/{name}" {arguments} >/dev/null || echo {name} >>"{failures}"; fi'
            )
        command = [ncu, "--target-processes", "all", "--clock-control", "none", "--cache-control", "all"]
        command += ["--metrics", ",".join(metric for metric, _ in METRICS.values()), "--csv", "--print-units", "base", "--log-file", log]
        done = subprocess.run([*command, "bash", "-c", "\n".join(script)], check=False)
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        rows, failed = from_ncu(text, dict(chosen)), failures.read_text(encoding="utf-8").split("\n")[:-1]
    if done.returncode and not rows:
        print(f"gpu-kernels: ncu ended with status {done.returncode}: " + " ".join(line for line in text.splitlines() if line.startswith("==ERROR==")))
        sys.exit(77 if "ERR_NVGPUCTRPERM" in text else 2)
    if done.returncode:
        failed.append(f"ncu: status {done.returncode}")
    return rows, failed


def measure(options):
    chosen = workloads(options.quick, [name for name in options.only.split(",") if name])
    rows, failed = (measure_virtual if options.driver == "virtual" else measure_gpu)(chosen, options)
    if not rows:
        print("gpu-kernels: nothing was measured")
        return 2
    with open(options.output, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({column: f"{value:.6g}" if isinstance(value, float) else value for column, value in row.items()})
    print(f"gpu-kernels: {options.output}: {len(rows)} kernels" + (f"; failed: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


def ratio(ours, theirs, column):
    """ours / theirs of a column, None where one of them is missing or 0."""
    if not ours[column] or not theirs[column] or not float(ours[column]) or not float(theirs[column]):
        return None
    return float(ours[column]) / float(theirs[column])


def share(row, part, whole):
    return float(row[part]) / float(row[whole]) if row[part] and row[whole] and float(row[whole]) else None


def correlation(pairs):
    """Of the logarithms; None of fewer than three pairs, or where one side does not vary."""
    a, b = [[math.log(x) for x in side] for side in zip(*pairs)]
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    spread = sum((x - mean_a) ** 2 for x in a) * sum((y - mean_b) ** 2 for y in b)
    if len(a) < 3 or spread == 0:
        return None
    return sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b)) / math.sqrt(spread)


def shown(value, form="%5.2f"):
    return "    -" if value is None else form % value


def compare(options):
    files = []
    for path in (options.gpu, options.ours):
        with open(path, encoding="utf-8", newline="") as file:
            files.append({(row["workload"], row["arguments"], row["kernel"]): row for row in csv.DictReader(file)})
    pairs = [(key, files[0][key], files[1][key]) for key in files[0] if key in files[1] and ratio(files[1][key], files[0][key], "cycles")]
    if not pairs:
        print("gpu-kernels: the files have no kernel in common")
        return 2
    pairs.sort(key=lambda pair: -abs(math.log(ratio(pair[2], pair[1], "cycles"))))
    print(f"{'kernel':40} {'GPU':>10} {'ours':>10} ratio  inst  read write | L2 hits, GPU, ours | L1 hits, GPU, ours")
    for key, gpu, ours in pairs:
        columns = [shown(ratio(ours, gpu, c)) for c in ("cycles", "instructions", "dram_read_bytes", "dram_write_bytes")]
        hits = [shown(share(row, f"{cache}_hits", f"{cache}_sectors")) for cache in ("l2", "l1") for row in (gpu, ours)]
        launches = "" if gpu["launches"] == ours["launches"] else f" launches: {gpu['launches']}, {ours['launches']}"
        print(
            f"{key[0] + ': ' + key[2]:40.40} {float(gpu['cycles']):10.0f} {float(ours['cycles']):10.0f} {' '.join(columns)} | "
            f"{hits[0]:>13} {hits[1]}  | {hits[2]:>13} {hits[3]}{launches}"
        )
    ratios = [ratio(ours, gpu, "cycles") for _, gpu, ours in pairs]
    together = correlation([(float(gpu["cycles"]), float(ours["cycles"])) for _, gpu, ours in pairs])
    print(
        f"{len(ratios)} kernels: ratio {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}, error {100 * sum(abs(r - 1) for r in ratios) / len(ratios):.1f} %, "
        f"correlation of the logarithms {shown(together, '%.3f').strip()}; in one file only: {len(files[0].keys() ^ files[1].keys())}"
    )
    return 0


def main():
    parser = argparse.ArgumentParser(usage="\n".join(__doc__.split("usage: ")[1].split("\n")[:2]))
    commands = parser.add_subparsers(dest="command", required=True)
    of_measure = commands.add_parser("measure")
    of_measure.add_argument("--driver", choices=["cuda", "virtual"], default="cuda")
    of_measure.add_argument("--machine", default="h200")
    of_measure.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    of_measure.add_argument("--only", default="")
    of_measure.add_argument("--quick", action="store_true")
    of_measure.add_argument("--seconds", type=float, default=600)
    of_measure.add_argument("-o", "--output", required=True)
    of_compare = commands.add_parser("compare")
    of_compare.add_argument("gpu")
    of_compare.add_argument("ours")
    options = parser.parse_args()
    if options.command == "measure":
        options.build = options.build.resolve()
        return measure(options)
    return compare(options)


if __name__ == "__main__":
    sys.exit(main())
