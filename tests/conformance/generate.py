#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the generated conformance files, GROUP/FAMILY.ptx, next to this program: a file per family of forms, a case per form.

    generate.py            write them, and remove generated files that are no longer made
    generate.py --check    write nothing; fail if a file differs from what would be written
    generate.py --list     the names of the files

The expectations are computed from the PTX manual's text by reference/, which shares nothing with the executor. The files that
are made are listed in generated.txt; a file that is not listed there was written by hand and is left alone.
"""
import sys
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from reference import forms  # noqa: E402 (the path is set above)


def render(path, cases):
    names = [case.name for case in cases]
    for name in names:
        if names.count(name) > 1:
            sys.exit(f"{path}: two cases are called {name}")
    return "\n".join(["// SPDX-License-Identifier: Apache-2.0\n"] + [case.render() for case in cases])


def wanted_files():
    files = {path: render(path, cases) for path, cases in forms.files().items()}
    files["generated.txt"] = "".join(f"{name}\n" for name in sorted(files))
    return files


def listed_files():
    listing = HERE / "generated.txt"
    return listing.read_text().split("\n")[:-1] if listing.exists() else []


def check(files):
    wrong = [name for name, text in files.items() if not (HERE / name).exists() or (HERE / name).read_text() != text]
    wrong += [name for name in listed_files() if name not in files]
    for name in sorted(set(wrong)):
        print(f"{name} is not what generate.py makes")
    return 1 if wrong else 0


def write(files):
    for name in listed_files():
        if name not in files:
            (HERE / name).unlink(missing_ok=True)
    for name, text in files.items():
        path = HERE / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def main():
    files = wanted_files()
    if sys.argv[1:] == ["--check"]:
        sys.exit(check(files))
    if sys.argv[1:] == ["--list"]:
        print("\n".join(sorted(files)))
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        write(files)


main()
