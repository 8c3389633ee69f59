#!/usr/bin/env python3
"""Runs the tutorial: the ```sh blocks of a Markdown file, in order, in one shell in an empty folder, stopping at the first command that fails.
What a ```text block right behind one shows is what the block must print (stdout and stderr): the same words, numbers within a tenth; a line
"..." stands for any lines. With --update, or FARFAULT_GOLDEN=write, the numbers in the file become those that were printed (words too; "..." stays only where it is all). A file with less than six such blocks
(--least=N) is not what was meant."""
import os, re, subprocess, sys, tempfile

MARK = "@@tutorial@@"
TOLERANCE = 0.10


def blocks(text):
    """(first line of the sh block, its commands, the text block or None, where that begins and ends)."""
    lines, found, i = text.split("\n"), [], 0
    while i < len(lines):
        if lines[i] != "```sh":
            i += 1
            continue
        end = lines.index("```", i)
        shown = where = None
        if end + 1 < len(lines) and lines[end + 1] == "```text":
            close = lines.index("```", end + 1)
            shown, where = lines[end + 2:close], (end + 2, close)
        found.append((i + 1, lines[i + 1:end], shown, where))
        i = end + 1
    return lines, found


def number(word):
    match = re.fullmatch(r"([(<]?|[\w.]+\.cu?:)(-?\d+(?:\.\d+)?)([x%,;:)]*)", word)
    return (match[1], float(match[2]), match[3]) if match else None


def same_word(shown, printed):
    a, b = number(shown), number(printed)
    if not a or not b:
        return shown == printed
    return (a[0], a[2]) == (b[0], b[2]) and abs(a[1] - b[1]) <= TOLERANCE * max(abs(a[1]), abs(b[1])) + 1e-9


def same_line(shown, printed):
    split = lambda line: re.sub(r"(?<=[\d.]),(?=\S)", " , ", line).split()
    a, b = split(shown), split(printed)
    return len(a) == len(b) and all(map(same_word, a, b))


def first_difference(shown, printed):
    """None if they agree; else the line of `shown` that has no counterpart."""
    at = 0
    skipping = False
    for line in shown:
        if line == "...":
            skipping = True
            continue
        start = at
        while at < len(printed) and not same_line(line, printed[at]) and skipping:
            at += 1
        if at >= len(printed) or not same_line(line, printed[at]):
            return f"shown:   {line}\n  printed: {printed[start] if start < len(printed) else '(nothing)'}"
        at, skipping = at + 1, False
    return None if skipping or at == len(printed) else f"printed, but not shown: {printed[at]}"


def updated(shown, printed):
    """The lines that a text block shows, as printed now: for each kept line the next printed one that begins with the same words."""
    if "..." not in shown or shown == ["..."]:
        return printed
    beginning = lambda line: [word for word in line.split() if not number(word)][:2]
    result, at = [], 0
    for line in shown:
        found = next((i for i in range(at, len(printed)) if beginning(printed[i]) == beginning(line)), None)
        if line == "...":
            result.append(line)
        elif found is not None:
            result.append(printed[found])
            at = found + 1
    return result


def run(found, html):
    script = ["set -e"]
    for i, (line, commands, _, _) in enumerate(found):
        script.append(f"echo '{MARK} {i}'")
        script += commands if html else [re.sub(r" --html \S+", "", c) for c in commands]
    script.append(f"echo '{MARK} end'")
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "script.sh"), "w") as file:
            file.write("\n".join(script) + "\n")
        work = os.path.join(folder, "work")
        os.mkdir(work)
        done = subprocess.run(["bash", file.name], cwd=work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    parts = re.split(rf"^{MARK} (\S+)\n", done.stdout, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def main():
    document, build = sys.argv[1], sys.argv[2]
    update = "--update" in sys.argv or os.environ.get("FARFAULT_GOLDEN") == "write"
    os.environ["PATH"] = os.path.join(build, "bin") + ":" + os.environ["PATH"]
    os.environ["PKG_CONFIG_PATH"] = os.path.join(build, "lib", "pkgconfig")
    for name in [n for n in os.environ if n.startswith("FARFAULT_") and n != "FARFAULT_CHECK"]:
        del os.environ[name]
    with open(document) as file:
        lines, found = blocks(file.read())
    printed = run(found, os.path.exists(os.path.join(build, "share", "farfault", "report.html")))
    failed = 0
    for i, (line, commands, shown, where) in reversed(list(enumerate(found))):
        have = printed.get(str(i))
        after = str(i + 1) in printed or "end" in printed
        wrong = None
        if have is None:
            wrong = "was not reached"
        elif not after:
            wrong = "failed:\n  " + have.rstrip("\n").replace("\n", "\n  ")
        elif shown is not None:
            wrong = first_difference(shown, have.rstrip("\n").split("\n"))
            if update:
                lines[where[0]:where[1]] = updated(shown, have.rstrip("\n").split("\n"))
                wrong = None
        if wrong:
            failed += 1
            print(f"{document}:{line + 1}: {commands[0]}: {wrong}")
    if update and not failed:
        with open(document, "w") as file:
            file.write("\n".join(lines))
    print(f"{len(found) - failed} passed, {failed} failed")
    least = next((int(a[8:]) for a in sys.argv if a.startswith("--least=")), 6)
    return 1 if failed or len(found) < least else 0


if __name__ == "__main__":
    sys.exit(main())
