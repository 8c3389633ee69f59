#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The numbers of docs/compatibility.md add up: each row of its tables, and and most rows of the first two tables (SECTIONS) the section that they link to. README.md has the
sums of the first one.

usage: compatibility.py SOURCE-FOLDER
"""
import collections
import pathlib
import re
import sys

OUTCOMES = "pass", "no check", "fail", "not ended", "waive", "no input"
WORDS = {"three": 3, "four": 4}
wrong = []


def expect(what, got, wanted):
    if got != wanted:
        wrong.append(f"{what}: {got}, expected {wanted}")


def unwrapped(text):
    """Items and paragraphs in a line each, so that it does not matter where they are wrapped."""
    return re.sub(r"(?<=[^|\n])\n[ \t]*(?=[^\s|#*<-]|-\S|\*\*)", " ", text)


def tables(text):
    """Each table of a text: a list of rows, each a dictionary of its cells by the heading's words."""
    for block in re.findall(r"(?:^\|.*\n?)+", text, flags=re.M):
        cells = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in block.strip().split("\n")]
        yield [dict(zip(cells[0], row)) for row in cells[2:]]


def names(text):
    """How many names a list in commas has: up to the first full stop, without what stands in parentheses; "and four of ..." counts as four."""
    text = re.split(r"\.(?:\s|$)", re.sub(r"\s*\([^)]*\)", "", text), maxsplit=1)[0]
    parts = [part.strip() for part in re.split(r"[,;]", text) if part.strip()]
    more = re.match(r"and (\w+) (?:of|more)", parts[-1])
    if not more:
        return len(parts)
    return len(parts) - 1 + (int(more[1]) if more[1].isdigit() else WORDS[more[1]])


def outcome(words):
    """The outcome that the first words of a cell or of a list's item say."""
    for pattern, found in (("pass|agrees", "pass"), ("no check|ends, ", "no check"), ("not ended", "not ended"), ("waive", "waive"), ("fail|its own fault", "fail"),
                           ("no input|input or|stops at once", "no input"), ("does not compile|not compiled|left out", "not compiled"), ("not tried", "not tried")):
        if re.match(pattern, words):
            return found
    return None


def by_sums(section):
    """Outcomes of a section whose tables count programs; each row adds up."""
    sums = collections.Counter()
    for table in tables(section):
        total = next((name for name in ("programs", "cases") if name in table[0]), None)
        if not total or not set(OUTCOMES) & set(table[0]):
            continue
        for row in table:
            counts = {name: int(row[name]) for name in OUTCOMES if name in row}
            expect(" | ".join(row.values())[:60], sum(counts.values()), int(row[total]))
            sums.update(counts)
    return sums


def by_names(section):
    """Outcomes of a section that names its programs: in items "**passes** ...: a, b." and in tables with a column `outcome`."""
    sums = collections.Counter()
    for item in re.findall(r"^(?:- )?\*\*([^*]+)\*\*[^:\n]*:((?:.|\n)*?)(?=\n- |\n\n)", section, flags=re.M):
        if outcome(item[0]) in ("pass", "no check"):
            sums[outcome(item[0])] += names(item[1].replace("\n", " "))
    for table in tables(section):
        if "outcome" not in table[0]:
            continue
        for row in table:
            if "program" in row:
                sums[outcome(row["outcome"])] += names(row["program"])
            else:
                sums[outcome(row["outcome"])] += names(re.sub(r"\s*\([^)]*\)|:.*", "", row["programs"]))
    return sums


def hecbench(section):
    """Outcomes of a section whose table has the numbers, and whose items "**passes** (175): ..." have the names."""
    counts = collections.Counter()
    for row in next(tables(section)):
        if outcome(row["outcome"]):
            counts[outcome(row["outcome"])] += int(re.match(r"\d+", row["programs"])[0])
    listed = collections.Counter()
    for title, number, text in re.findall(r"^- \*\*([^*]+)\*\* \((\d+)\)(?: [^:\n]*)?:((?:.|\n)*?)(?=\n- |\n\n)", section, flags=re.M):
        expect(f"HeCBench: names under {title}", names(text.replace("\n", " ")), int(number))
        listed[outcome(title)] += int(number)
    for name, number in listed.items():
        expect(f"HeCBench: {name} of its items and its table", number, counts[name])
    return counts


def library_samples(section):
    """Of these the table has what ended, and how many of those were checked."""
    sums = collections.Counter()
    for row in next(tables(section)):
        ended, checked, fail, late = (int(row[name]) for name in ("end with status 0", "of these, the result was checked", "fail", "not ended"))
        expect(row["samples"], ended + fail + late, int(row["programs"]))
        sums.update({"pass": checked, "no check": ended - checked, "fail": fail, "not ended": late})
    return sums


# How the programs of a row of the first table are counted, by its first words: (function, a pattern of the rows of its section that count, if not all do)
SECTIONS = {
    "NVIDIA's cuda-samples": (by_names, None),
    "HeCBench": (hecbench, None),
    "The CUDA Handbook": (by_names, None),
    "Rodinia": (by_names, None),
    "SHOC": (by_names, None),
    "NVIDIA's CUDALibrarySamples": (library_samples, None),
    "CCCL's tests": (by_sums, None),
    "libcu++'s tests": (by_sums, r"\| (?:what |-|libcu)"),
    "SYCLomatic-test": (by_sums, r"\| (?:what |-|Intel|NVIDIA/)"),
    "books": (by_sums, None),
    "NVIDIA's libraries": (by_sums, None),
    "HIP's own tests": (by_sums, None),
}

source = pathlib.Path(sys.argv[1])
text = unwrapped((source / "docs" / "compatibility.md").read_text())
sections = {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-"): body for title, body in re.findall(r"^##+ (.*)\n((?:(?!^## ).*\n?)*)", text, flags=re.M)}
compared = 0
sums = collections.Counter()
for table in list(tables(text))[:2]:
    for row in table:
        name, anchor = re.match(r"(?:\[(.*?)\]\(#(.*?)\))?", row["suite"]).groups()
        counts = {key: int(row[key]) for key in OUTCOMES if key in row}
        expect(f"{name}: the row's sum", sum(counts.values()), int(row["tried"] if "tried" in row else row["cases"]))
        if not name:
            expect("the sums of the first table", counts, dict(sums))
            readme = re.search(r"Of (\d+) public programs (\d+) pass their own check, (\d+) end and have none, (\d+) had not ended.*?(\d+)\s\[fail\]", unwrapped((source / "README.md").read_text()), flags=re.S)
            said = [int(row["tried"]), counts["pass"], counts["no check"], counts["not ended"], counts["fail"]]
            expect("README.md", readme and [int(number) for number in readme.groups()], said)
            continue
        sums.update(counts)
        how = next((value for key, value in SECTIONS.items() if name.startswith(key)), None)
        if not how:
            continue
        body = sections[anchor]
        if how[1]:
            body = "\n".join(line for line in body.split("\n") if not line.startswith("|") or re.match(how[1], line) or line.startswith("|---"))
        found = how[0](body)
        for key, number in counts.items():
            expect(f"{name}: {key} of its section", found[key], number)
        if row.get("not compiled", "-") != "-" and found["not compiled"]:
            expect(f"{name}: not compiled of its section", found["not compiled"], int(row["not compiled"]))
        compared += 1
expect("rows that were compared with a section", compared, len(SECTIONS))
for line in wrong:
    print(line)
sys.exit(1 if wrong else 0)
