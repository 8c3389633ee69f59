#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""wrap-comments.py [--check] FILE...: wraps prose over 120 columns in C comments that begin a line, and moves a comment behind code that makes a line too
long above that line. Tables and drawings (three spaces in a row, arrows) stay as they are. scripts/format.sh calls it before clang-format, whose own
wrapping of comments would join the lines of tables. --check changes nothing and prints the names of the files that it would change."""

import re
import sys

WIDTH = 120
DRAWN = re.compile(r"\S   +\S|-->|\S  +\S.*\S  +\S")
LINE = re.compile(r"^(\s*(?:/\*\*?|\*)\s+)(\S.*)$")
ITEM = re.compile(r"^(- |\d\. )")
ENTRY = re.compile(r"^(- |\d\. |\S+  )")
TRAILING = re.compile(r"^(\s*)(\S.*?[;,{})])\s*(/\*(?!.*clang-format).*\*/)$")


def continuation(prefix, text):
    """What stands before the text of a line that goes on."""
    prefix = prefix.replace("/**", " * ").replace("/*", " *")
    item = ITEM.match(text)
    return prefix + " " * len(item.group(0)) if item else prefix


def break_words(prefix, rest, words):
    lines, line = [], prefix + words[0]
    for word in words[1:]:
        if len(line) + 1 + len(word) <= WIDTH:
            line += " " + word
        elif word == "*/":  # not alone on a line
            line, _, last = line.rpartition(" ")
            lines.append(line)
            line = rest + last + " */"
        else:
            lines.append(line)
            line = rest + word
    return lines + [line]


def wrap(comment):
    done, at = [], 0
    while at < len(comment):
        line = LINE.match(comment[at])
        if not line or len(comment[at]) <= WIDTH or DRAWN.search(line.group(2)):
            done.append(comment[at])
            at += 1
            continue
        rest = continuation(line.group(1), line.group(2))
        lines = break_words(line.group(1), rest, line.group(2).split(" "))
        following = LINE.match(comment[at + 1]) if at + 1 < len(comment) else None
        goes_on = (following and len(following.group(1)) == len(rest) and following.group(2) != "*/"
                   and not DRAWN.search(following.group(2)) and not ENTRY.match(following.group(2)))
        if goes_on and len(lines) > 1:  # the last words go in front of the next line's
            comment[at + 1] = lines.pop() + " " + following.group(2)
        done += lines
        at += 1
    return done


def format_text(text):
    lines, done, at = text.split("\n"), [], 0
    while at < len(lines):
        line = lines[at]
        if re.match(r"^\s*/\*", line):
            end, behind = at, line.split("/*", 1)[1]
            while end < len(lines) - 1 and "*/" not in behind:
                end += 1
                behind = lines[end]
            code = behind.split("*/", 1)[1].strip() if "*/" in behind else ""
            done += lines[at:end + 1] if code else wrap(lines[at:end + 1])
            at = end + 1
            continue
        trailing = TRAILING.match(line)
        if trailing and len(line) > WIDTH and "/*" not in trailing.group(2) and not re.match(r"^(\}|else|case|default)", trailing.group(2)):
            done += wrap([trailing.group(1) + trailing.group(3).replace("/**<", "/**")])  # what Doxygen takes for the next member's
            line = trailing.group(1) + trailing.group(2)
        done.append(line)
        at += 1
    return "\n".join(done)


def main():
    check = sys.argv[1:2] == ["--check"]
    for name in sys.argv[1 + check:]:
        with open(name, encoding="utf-8") as file:
            old = file.read()
        new = format_text(old)
        if new != old and check:
            print(name)
        elif new != old:
            with open(name, "w", encoding="utf-8") as file:
                file.write(new)


if __name__ == "__main__":
    main()
