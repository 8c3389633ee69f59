#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""wrap-documents.py [--check] FILE...: wraps the paragraphs and items of Markdown files that have a line over 160 columns. Tables, code, HTML, quotes and
headings stay as they are, and so does a paragraph of which a new line would begin like something else. scripts/format.sh calls it. --check changes nothing
and prints the names of the files that it would change."""

import re
import sys
import textwrap

WIDTH = 160
ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+")
APART = re.compile(r"^\s*(?:[|#<>]|$|\[[^]]+\]:)")  # belongs to no paragraph
BLOCK = re.compile(r"^\s*(?:[-*+]\s|\d+[.)]\s|[#>|<]|=+$|-+$|```)")
FENCE = re.compile(r"^\s*```")


def wrapped(paragraph):
    if all(len(line) <= WIDTH for line in paragraph) or any(line.endswith(("  ", "\\")) for line in paragraph):
        return paragraph
    item = ITEM.match(paragraph[0])
    lead = item.group(0) if item else re.match(r"\s*", paragraph[0]).group(0)
    indent = re.match(r"\s*", paragraph[1]).group(0) if len(paragraph) > 1 else " " * len(lead)
    words = " ".join([paragraph[0][len(lead) :].strip()] + [line.strip() for line in paragraph[1:]])
    lines = textwrap.wrap(
        words, WIDTH, initial_indent=lead, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return paragraph if any(BLOCK.match(line) for line in lines[1:]) else lines


def wrapped_text(text):
    lines, paragraph, code = [], [], False
    for line in text.split("\n"):
        fence = bool(FENCE.match(line))
        apart = code or fence or APART.match(line) or (not paragraph and line.startswith("    "))
        if apart or ITEM.match(line):
            lines += wrapped(paragraph)
            paragraph = []
        if apart:
            lines.append(line)
        else:
            paragraph.append(line)
        code ^= fence
    return "\n".join(lines + wrapped(paragraph))


def main():
    arguments = sys.argv[1:]
    check = arguments[:1] == ["--check"]
    for name in arguments[check:]:
        with open(name, encoding="utf-8") as file:
            text = file.read()
        new = wrapped_text(text)
        if new == text:
            continue
        if check:
            print(name)
        else:
            with open(name, "w", encoding="utf-8") as file:
                file.write(new)


main()
