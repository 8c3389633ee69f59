#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""limits.py TEXTS FOLDER: small modules that ask for a lot, or for what there is not, translated by TEXTS (texts.c --translate).

A few bytes of bytecode name a tile of a million elements, or one that is made of another a hundred thousand times. Each of
these modules is translated, or is refused with the limit that it goes beyond, within a time and an amount of memory.
"""
import pathlib
import resource
import subprocess
import sys

import tile_ir as t

SECONDS, KIBIBYTES = 60, 4 << 20
texts, folder = sys.argv[1], pathlib.Path(sys.argv[2])
MOST = 1 << 20


def new():
    m = t.Module(1304)
    return m, m.entry('kernel', [t.ptr('i32'), 'i32', 'i1'])


def permuted():
    """A broadcast is put off, and put off again."""
    m, f = new()
    tile = f.broadcast(t.tile('i32', 4, 2), f.reshape(t.tile('i32', 1, 2), f.iota(t.tile('i32', 2))))
    for _ in range(100000):
        tile = f.permute(tile, [1, 0])
    view = f.partition(f.tensor_view(f.arguments[0], [4, 2], [2, 1]), [4, 2])
    f.store_view_tko(tile, view, [f.constant('i32', 0)] * 2)
    f.return_()
    return m


def nested():
    """Reductions in reductions, all within a thread: no code, but work."""
    m, f = new()
    wide = t.tile('i32', 1 << 10, 1 << 10)

    def fold(value, depth):
        with f.reduce([f.broadcast(wide, f.reshape(t.tile('i32', 1, 1), value))], 0, [0]) as body:
            if depth:
                fold(body.arguments[0], depth - 1)
            f.yield_(body.arguments[0])
    fold(f.iota(t.tile('i32', 1)), 4)
    f.return_()
    return m


def joined():
    """Tiles of a million elements, without code."""
    m, f = new()
    half = f.constant(t.tile('i32', MOST // 2), 1)
    for _ in range(100000):
        f.cat(half, half, 0)
    f.return_()
    return m


def numbers():
    """Globals, of which the bytecode has one element."""
    m, f = new()
    for i in range(100):
        m.global_(f'numbers_{i}', t.tile('i64', MOST), 123456789012345678, 8)
    f.return_()
    return m


def printed():
    """One text that is printed again and again."""
    m, f = new()
    for _ in range(1000):
        f.print_tko('x' * 1000000)
    f.return_()
    return m


def carried():
    """A loop that carries many large tiles, and changes their places."""
    m, f = new()
    tiles = [f.constant(t.tile('i32', MOST), i) for i in range(100)]
    with f.loop(tiles) as loop:
        with f.if_(f.arguments[2]) as choice:
            f.break_()
            choice.otherwise()
            f.yield_()
        f.continue_(*loop.arguments[1:], loop.arguments[0])
    f.return_()
    return m


def nibbles(name, shape, strides):
    """Elements of 4 bits, two in a byte."""
    def make():
        m = t.Module()
        f = m.entry('kernel', [t.ptr('i4')])
        view = f.partition(f.tensor_view(f.arguments[0], shape, strides), [2, 4])
        f.load_view_tko(view, [f.constant('i32', 0)] * 2)
        f.return_()
        return m
    make.__name__ = 'nibbles_' + name
    return make


CASES = [(permuted, 'bytes of PTX'), (nested, 'its translation takes more than 1 GiB'), (joined, 'its translation takes more than 1 GiB'),
         (numbers, "the module's globals take more than 256 MiB"), (printed, "the module's translation has more than 256 MiB"), (carried, 'bytes of PTX'),
         (nibbles('even', [3, 6], [8, 1]), 'bytes of PTX'), (nibbles('one_row', [1, 6], [7, 1]), 'bytes of PTX'),
         (nibbles('odd_rows', [3, 5], [8, 1]), 'do not come in pairs'), (nibbles('odd_stride', [3, 6], [7, 1]), 'do not come in pairs')]

folder.mkdir(parents=True, exist_ok=True)
wrong = 0
for make, expected in CASES:
    path = folder / f'limit-{make.__name__}.tileirbc'
    path.write_bytes(make().bytes())
    try:
        done = subprocess.run([texts, '--translate', str(path)], capture_output=True, text=True,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS)))
        text = f'{done.stdout}{done.stderr} (ended by {done.returncode})'
    finally:
        path.unlink()
    if done.returncode or expected not in done.stdout:
        wrong += 1
        print(f'{make.__name__}: expected "{expected}", got: {text}')
most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
if most > KIBIBYTES:
    wrong += 1
    print(f'{most} KiB of memory were taken')
print(f'{len(CASES)} modules')
sys.exit(wrong != 0)
