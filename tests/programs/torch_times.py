# SPDX-License-Identifier: Apache-2.0
"""torch_times.py SOURCES: tests/frameworks/torch_times.py, which joins what a GPU and the virtual GPU take for PyTorch's operators."""
import contextlib
import csv
import io
import json
import os
import sys
import tempfile

sources = sys.argv[1]
sys.path.insert(0, os.path.join(sources, "tests/frameworks"))
import torch_times as times  # noqa: E402

HEAD = "group,op,one_us,in_a_row_us,times,kernels_us,kernels,values\n"
SILICON = HEAD + """a,add 1M,6.0,3.0,9,2.000,"1 x void at::native::(anonymous namespace)::add<4, float>(int, float*)",1 2 -4
a,mul,6.0,3.0,9,8.000,"1 x nvjet_mul",1 2
copies,up,4.0,3.0,9,0.000,,7
left,out,1.0,1.0,9,1.000,1 x f,1
"""
OURS = HEAD + """a,add 1M,5.0,,1,,,1 2 -3
a,mul,6.0,,1,,,1
copies,up,12.0,,1,,,7
"""
RUN = {"runs": [{"kernels": [
    {"name": "void at::native::add<8, float>(int, float*)", "launches": 1, "time_ps": 3000000, "range": "a/add 1M"},
    {"name": "void at::native::add<8, float>(int, float*)", "launches": 5, "time_ps": 9000000},
    {"name": "cutlass::Kernel2<mul>(P)", "launches": 1, "time_ps": 1000000, "range": "a/mul"},
    {"name": "split", "launches": 2, "time_ps": 1000000, "range": "a/mul"},
    {"name": "empty", "launches": 1, "range": "a/mul"}, {"name": "queued", "range": "a/mul"}]}]}


def same(is_, should):
    if is_ != should:
        sys.exit(f"{is_!r} is not {should!r}")


with tempfile.TemporaryDirectory() as folder:
    def path(name, text=None):
        full = os.path.join(folder, name)
        if text is not None:
            with open(full, "w") as file:
                file.write(text)
        return full

    silicon, ours, run = path("silicon.csv", SILICON), path("ours.csv", OURS), path("run.json", json.dumps(RUN))
    times.main(["fill", ours, run])
    rows = times.read(ours)
    same(rows["a", "add 1M"]["kernels_us"], "3.000")
    same(rows["a", "mul"]["kernels"], "1 x cutlass::Kernel2<mul>(P); 2 x split; 1 x empty")
    same(rows["copies", "up"]["kernels_us"], "")
    same(times.counted(rows["a", "mul"]["kernels"]), {"cutlass::Kernel2": 1, "split": 2, "empty": 1})
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        same(times.main(["compare", silicon, ours, path("out.csv")]), 0)
    with open(path("out.csv"), newline="") as file:
        out = {row["op"]: row for row in csv.DictReader(file)}
    same(list(out), ["add 1M", "mul", "up"])
    same([out["add 1M"][k] for k in ("compared", "ratio", "kernels", "difference")], ["kernels_us", "1.500", "same", "0.25"])
    same([out["mul"][k] for k in ("ratio", "kernels", "difference")], ["0.250", "other", ""])
    same([out["up"][k] for k in ("compared", "ratio", "difference")], ["one_us", "3.000", "0"])
    # sqrt(1.5 * 0.25 / 1), the mean of both; add has the same kernels
    lines = [line.split() for line in printed.getvalue().splitlines()[1:]]
    same(lines[0], ["a", "2", "0.612", "1", "1.500"])
    same(lines[1][:3], ["copies", "1", "3.000"])
    with contextlib.redirect_stderr(io.StringIO()):
        same(times.main(["compare", silicon]), 64)
print("torch_times: right")
