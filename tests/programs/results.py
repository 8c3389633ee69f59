#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The numbers that docs/results/*.md take from the CSV files next to them are those of the CSV files.

usage: results.py SOURCE-FOLDER

results.txt has pieces of the documents, one a line, with {paper;row;format} where a number stands, or
{paper;row;format;factor} where it is multiplied first; {paper:score;...} is the score instead of ours, {paper:paper;...} the
paper's number. A line `@FILE` says of which document the lines behind it are. With FARFAULT_GOLDEN=write the documents get
the numbers of the CSV files; the words around them are never changed.
"""
import csv
import os
import pathlib
import re
import sys

PLACEHOLDER = re.compile(r"\{([a-z0-9]+)(?::(\w+))?;([^;}]+);([^;}]+)(?:;([^;}]+))?\}")
NUMBER = r"-?\d[\d.]*\d|-?\d"


def value(tables, match):
    """The number that stands at a placeholder, as text."""
    paper, column, row, form, factor = match.groups()
    if row not in tables[paper]:
        raise KeyError(f"{paper}.csv has no row '{row}'")
    return format(float(tables[paper][row][column or "ours"]) * float(factor or 1), form)


def words(text):
    """A pattern of the text, wherever the document is wrapped."""
    return re.escape(text).replace(r"\ ", r"\s+")


def parts(template):
    """The template as a pattern of the document, with a group for each number."""
    pattern, at = "", 0
    for match in PLACEHOLDER.finditer(template):
        pattern += words(template[at : match.start()]) + f"({NUMBER})"
        at = match.end()
    return re.compile(pattern + words(template[at:]))


def check(text, template, tables):
    """The text with the template's numbers, and what was wrong with it."""
    found = list(parts(template).finditer(text))
    if len(found) != 1:
        return text, [f"{len(found)} times instead of once: {template}"]
    expected = [value(tables, match) for match in PLACEHOLDER.finditer(template)]
    if not expected:
        return text, [f"no number in: {template}"]
    wrong = []
    for group in range(len(expected), 0, -1):
        if found[0].group(group) != expected[group - 1]:
            wrong.append(f"{found[0].group(group)} instead of {expected[group - 1]}: {found[0].group(0)}")
            text = text[: found[0].start(group)] + expected[group - 1] + text[found[0].end(group) :]
    return text, wrong


def main():
    source = pathlib.Path(sys.argv[1])
    results = source / "docs" / "results"
    tables = {path.stem: {row["row"]: row for row in csv.DictReader(path.open()) if "row" in row} for path in results.glob("*.csv")}
    texts, document, wrong, count = {}, None, [], 0
    for line in (source / "tests" / "programs" / "results.txt").read_text().splitlines():
        if line.startswith("@"):
            document = source / line[1:]
            texts.setdefault(document, document.read_text())
        elif line and not line.startswith("#"):
            texts[document], bad = check(texts[document], line, tables)
            wrong += [f"{document.name}: {what}" for what in bad]
            count += 1
    if os.environ.get("FARFAULT_GOLDEN") == "write":
        for path, text in texts.items():
            path.write_text(text)
    for what in wrong:
        print(what, file=sys.stderr)
    print(f"{count - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())
