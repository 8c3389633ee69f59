# SPDX-License-Identifier: Apache-2.0
"""Writes tile_ir.tileirbc, the Tile IR of tile_ir.c: tile_ir.py FILE.

add    c = a + b in tiles of 256 (f32): of each array its pointer, its length and its stride of 1, which is not used
turn   b = a transposed, a square of 128 (f32), whose exchange needs more shared memory than a block has by default
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'tile'))
from tile_ir import Module, ptr

code = Module(1301)
f = code.entry('add', [ptr('f32'), 'i32', 'i32'] * 3)
a, b, c = (f.partition(f.tensor_view(f.arguments[i], [f.arguments[i + 1]], [1]), [256]) for i in (0, 3, 6))
at = f.get_tile_block_id()[:1]
f.store_view_tko(f.addf(f.load_view_tko(a, at)[0], f.load_view_tko(b, at)[0]), c, at)
f.return_()

f = code.entry('turn', [ptr('f32')] * 2)
a, b = (f.partition(f.tensor_view(p, [128, 128], [128, 1]), [128, 128]) for p in f.arguments)
zero = f.constant('i32', 0)
f.store_view_tko(f.permute(f.load_view_tko(a, [zero, zero])[0], [1, 0]), b, [zero, zero])
f.return_()
pathlib.Path(sys.argv[1]).write_bytes(code.bytes())
