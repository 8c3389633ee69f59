#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""read.py TEXTS FOLDER: modules of cases.py, written by tile_ir.py into FOLDER and read by TEXTS (texts.c).

- Each good module, in each version that has its operations, reads as its golden file says (golden/NAME.txt; after a change
  that is meant, FARFAULT_GOLDEN=write). It has the text of the first version, and of those that differ from the one before.
- Each bad module is refused, and the message says why.
- The corpus of the fuzz target (../fuzz/corpus/tile) is what tile_ir.py writes of good modules.
- No beginning of a module is taken for one, and no changed byte ends the reader.
"""
import difflib
import os
import pathlib
import subprocess
import sys

import cases

VERSIONS = range(1301, 1306)
HERE = pathlib.Path(__file__).parent
texts, folder = sys.argv[1], pathlib.Path(sys.argv[2])
wrong = 0


def complain(*words):
    global wrong
    wrong += 1
    print(*words)


def run(*arguments):
    done = subprocess.run([texts, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode or done.stderr:
        complain(f'ended by {done.returncode}: {done.stdout[-2000:] if done.returncode > 0 else ""}{done.stderr}')
    return done.stdout


def read_all(modules):
    """What is printed of each module: {name: text}."""
    paths = {}
    for name, module in modules.items():
        paths[name] = folder / (name + '.tileirbc')
        paths[name].write_bytes(module.bytes())
    parts = run(*paths.values()).split('=== ')[1:]
    found = dict(part.split('\n', 1) for part in parts)
    return {name: found.get(str(path), '') for name, path in paths.items()}


def check_good(name, since, read):
    """The text of the first version, then of each that differs from the one before."""
    out, last = '', None
    for version in VERSIONS[since - 1:]:
        text = read[f'{name}-{version}']
        if not text.startswith('version 13.'):
            complain(f'{name}, version {version}: {text}')
            continue
        first, body = text.split('\n', 1)
        if body != last:
            out += first + '\n' + body
        last = body
    return out


def check_golden(name, text):
    golden = HERE / 'golden' / (name + '.txt')
    if os.environ.get('FARFAULT_GOLDEN') == 'write':
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text)
    expected = golden.read_text() if golden.exists() else ''
    for line in difflib.unified_diff(expected.splitlines(), text.splitlines(), str(golden), 'read', lineterm=''):
        complain(line)


def check_corpus(name, since, make):
    """The fuzz target starts from one of its versions."""
    version = 1300 + since + len(name) % (6 - since)
    path = HERE.parent / 'fuzz' / 'corpus' / 'tile' / f'{name}-{version}'
    data = make(version).bytes()
    if os.environ.get('FARFAULT_GOLDEN') == 'write':
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    if not path.exists() or path.read_bytes() != data:
        complain(f'{path} is not what tile_ir.py writes')


def check_bad(name, message, text):
    if message not in text or not text.startswith(('malformed input: ', 'not supported: ')):
        complain(f'{name}: expected "{message}", got: {text}')


folder.mkdir(parents=True, exist_ok=True)
good = read_all({f'{name}-{version}': make(version) for name, (since, make) in cases.GOOD.items() for version in VERSIONS[since - 1:]})
for name, (since, make) in cases.GOOD.items():
    check_golden(name, check_good(name, since, good))
    check_corpus(name, since, make)
bad = read_all({'bad-' + name: make(version) for name, (version, make, message) in cases.BAD.items()})
for name, (version, make, message) in cases.BAD.items():
    check_bad(name, message, bad['bad-' + name])
broken = [(name, 1305) for name in cases.GOOD] + [('views', 1301), ('control', 1302), ('pointers', 1303), ('views_3', 1304)]
run('--break', *[folder / f'{name}-{version}.tileirbc' for name, version in broken])
print(f'{len(cases.GOOD)} good modules, {len(cases.BAD)} bad ones')
sys.exit(wrong != 0)
