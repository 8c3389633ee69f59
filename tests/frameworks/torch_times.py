# SPDX-License-Identifier: Apache-2.0
"""torch_times.py fill TIMES.csv RUN.json...: puts the kernels of `farfault run --json RUN.json` into the table that time_torch.py --virtual wrote.
torch_times.py compare SILICON.csv OURS.csv [OUT.csv]: operators that both tables have, and per group the geometric mean of ours over silicon, of all
operators and of those whose kernels have the same names on both sides."""
import collections
import csv
import json
import math
import re
import sys


def short(name):
    """A kernel's name without its parameters, arguments of templates and namespaces that have no name."""
    name, depth, kept = re.sub(r"^void |\(anonymous namespace\)::", "", name), 0, ""
    for letter in name:
        depth += letter == "<"
        kept += letter if depth == 0 else ""
        depth -= letter == ">"
    return kept.split("(")[0].strip()


def read(path):
    with open(path, newline="") as file:
        return {(row["group"], row["op"]): row for row in csv.DictReader(file)}


def counted(kernels):
    """"2 x add; 1 x mul" as counts of short names."""
    found = collections.Counter()
    for part in filter(None, kernels.split("; ")):
        count, name = part.split(" x ", 1)
        found[short(name)] += round(float(count))
    return found


def fill(path, runs):
    rows, times, names = read(path), collections.Counter(), collections.defaultdict(list)
    for run in runs:
        with open(run) as file:
            kernels = json.load(file)["runs"][0]["kernels"]
        for kernel in kernels:
            if "range" in kernel and kernel.get("launches"):  # what is 0 is absent
                key = tuple(kernel["range"].split("/", 1))
                times[key] += kernel.get("time_ps", 0)
                names[key].append(f"{kernel['launches']} x {kernel['name']}")
    with open(path, "w", newline="") as file:
        table = csv.DictWriter(file, next(iter(rows.values())).keys(), lineterminator="\n")
        table.writeheader()
        for key, row in rows.items():
            if names[key]:
                row["kernels_us"], row["kernels"] = f"{times[key] / 1e6:.3f}", "; ".join(names[key])
            table.writerow(row)


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def difference(a, b):
    """The largest difference of two samples over the largest number; "": they cannot be compared."""
    a, b = [[float(x) for x in text.split()] for text in (a, b)]
    if not a or len(a) != len(b):
        return ""
    return f"{max(abs(x - y) for x, y in zip(a, b)) / (max(map(abs, a)) or 1):.2g}"


def compare(silicon, ours, out):
    silicon, ours = read(silicon), read(ours)
    rows, groups = [], collections.defaultdict(lambda: ([], []))
    for key in (k for k in silicon if k in ours):
        s, o = silicon[key], ours[key]
        # Where there are no kernels, as in copies, the call's time by events.
        column = "kernels_us" if s["kernels_us"] and o["kernels_us"] and float(s["kernels_us"]) else "one_us"
        names = [counted(row["kernels"]) for row in (s, o)]
        same = "same" if names[0] == names[1] else "some" if set(names[0]) & set(names[1]) else "other"
        ratio = float(o[column]) / float(s[column])
        groups[key[0]][0].append(ratio)
        if same == "same":
            groups[key[0]][1].append(ratio)
        rows.append([*key, column, s[column], o[column], f"{ratio:.3f}", same, difference(s["values"], o["values"]), s["one_us"], o["one_us"], s["in_a_row_us"]])
    if out:
        with open(out, "w", newline="") as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(["group", "op", "compared", "silicon_us", "ours_us", "ratio", "kernels", "difference", "silicon_one_us", "ours_one_us", "silicon_in_a_row_us"])
            table.writerows(rows)
    print(f"{'group':24} {'operators':>9} {'ours / silicon':>14} {'same kernels':>12} {'ours / silicon':>14}")
    for group, (every, alike) in groups.items():
        print(f"{group:24} {len(every):9} {mean(every):14.3f} {len(alike):12} {f'{mean(alike):.3f}' if alike else '-':>14}")
    return 0 if rows else 1


def main(words):
    if len(words) >= 3 and words[0] == "fill":
        return fill(words[1], words[2:])
    if len(words) in (3, 4) and words[0] == "compare":
        return compare(words[1], words[2], words[3] if len(words) == 4 else None)
    print(__doc__, file=sys.stderr)
    return 64


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
