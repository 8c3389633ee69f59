# SPDX-License-Identifier: Apache-2.0
"""Kernels in Tile IR run on the virtual GPU and compared with what plain Python computes, exactly.

    run_tiles.py [--seed N] [--rounds N] [CASE...]

Run it below `farfault run`, or with the virtual GPU's folder in LD_LIBRARY_PATH. Most cases make random kernels: one that
fails prints its seed. The last line is "N passed, N failed".
"""
import ctypes as c
import random
import struct
import sys

import kernels_control
import tile_ir as t
from kernels import Buffer, FORMATS, Gpu, at, each, load_all, made, power, product, same, small_shape, store_all, strides_of, wrap

OFTEN = {'views': 8, 'divisors': 4, 'shapes': 4}  # rounds of cases that are cheap and have many forms


# ---- cases ----

def case_views(gpu, r):
    """Loads through views of all kinds, with parts outside of the tensor, and stores of what was loaded."""
    rank = r.randrange(1, 4)
    scalar = r.choice(['i8', 'i16', 'i32', 'i64', 'f32', 'f16', 'i1'])
    tile = small_shape(r, rank, 1024)
    order = list(range(rank))
    r.shuffle(order)
    kind = r.choice(['partition', 'strided', 'gather'])
    dim_map = order if kind != 'gather' else list(range(rank))
    tensor = [0] * rank
    for k in range(rank):
        tensor[dim_map[k]] = max(1, tile[k] * r.randrange(1, 3) + r.choice([0, 0, -1, 1, 3]))
    inner = list(range(rank))
    r.shuffle(inner)  # which dimension runs fastest
    strides, n = [0] * rank, 1
    for d in inner:
        strides[d] = n
        n *= tensor[d] + r.choice([0, 0, 1, 8])
    overlaps = r.random() < .15  # windows that slide: more than one dimension of stride 1
    if overlaps:
        strides, n = [1] * rank, sum(tensor)
    padding = r.choice([None, 'zero', 'zero']) if scalar[0] == 'i' else r.choice(t.PADDINGS)
    steps = [r.randrange(1, 2 * tile[k] + 2) for k in range(rank)]
    sparse = r.randrange(rank)
    index = []
    for k in range(rank):
        step = {'partition': tile[k], 'strided': steps[k], 'gather': tile[k]}[kind]
        index.append(r.randrange(-(-tensor[dim_map[k]] // step)))
    known = [[r.random() < .5 for _ in range(rank)] for _ in range(2)]
    # A stride of 1 that is known lets neighbours go together, if their address is known to be aligned.
    values = [r.randrange(2) if scalar == 'i1' else r.randrange(-100, 100) for _ in range(n)]
    rows = [r.randrange(-3, tensor[sparse] + 3) for _ in range(tile[sparse])]

    m = t.Module()
    of_rows = r.choice(['i32', 'i64'])
    f = m.entry('views', [t.ptr(scalar), t.ptr(scalar), t.ptr(scalar), t.ptr(of_rows)] + ['i32'] * (2 * rank + rank))
    source, out, back, rows_at = f.arguments[:4]
    sizes, spans, indices = (f.arguments[4 + i * rank:4 + (i + 1) * rank] for i in range(3))
    assumed = r.random() < .7
    if assumed:
        source, back = (f.assume(p, t.div_by(16)) for p in (source, back))
    divisor = {d: strides[d] & -strides[d] for d in range(rank)}
    spans = [f.assume(v, t.div_by(divisor[d])) if assumed and strides[d] > 1 else v for d, v in enumerate(spans)]
    sizes = [f.assume(v, t.div_by(tensor[d] & -tensor[d])) if assumed else v for d, v in enumerate(sizes)]
    shape = [tensor[d] if known[0][d] else sizes[d] for d in range(rank)]
    span = [strides[d] if known[1][d] else spans[d] for d in range(rank)]

    def view_of(base):
        tensor_view = f.tensor_view(base, shape, span)
        if kind == 'partition':
            return f.partition(tensor_view, tile, dim_map, padding)
        if kind == 'strided':
            return f.strided(tensor_view, tile, steps, dim_map, padding)
        return f.gather(tensor_view, tile, sparse, padding)

    where = list(indices)
    if kind == 'gather':
        where[sparse] = load_all(f, rows_at, [tile[sparse]])
    loaded, _ = f.load_view_tko(view_of(source), where)
    store_all(f, out, loaded)
    if not overlaps:
        f.store_view_tko(loaded, view_of(back), where)
    f.return_()

    count = product(tile)
    a, b, d = gpu.upload(scalar, values), gpu.upload(scalar, [0] * count), gpu.upload(scalar, [0] * n)
    numbers = [c.c_int32(x) for x in tensor + strides + index]
    gpu.run(m, [1], a, b, d, gpu.upload(of_rows, rows), *numbers)

    wanted_back = [0] * n
    outside = {'zero': 0.0, None: 0.0, 'neg_zero': -0.0, 'pos_inf': float('inf'), 'neg_inf': -float('inf'), 'nan': 'nan'}[padding]

    def element(i):
        address, inside = 0, True
        for k in range(rank):
            if kind == 'gather' and k == sparse:
                x = rows[i[k]]
            else:
                x = index[k] * {'partition': tile[k], 'strided': steps[k], 'gather': tile[k]}[kind] + i[k]
            inside = inside and 0 <= x < tensor[dim_map[k]]
            address += x * strides[dim_map[k]]
        if inside:
            wanted_back[address] = values[address]
        return values[address] if inside else outside
    wanted = made(tile, element)
    got = ['nan' if x != x else x for x in b.values()]
    what = f'{kind} {scalar} tile {tile} of {tensor} strides {strides} map {dim_map} at {index}'
    same([str(x + 0.0) if x != 'nan' else x for x in got], [str(x + 0.0) if x != 'nan' else x for x in wanted], what)
    if not overlaps and (kind != 'gather' or len(set(rows)) == len(rows)):
        same(d.values(), wanted_back, what + ', stored')


def case_shapes(gpu, r):
    """A chain of operations that move elements."""
    scalar = r.choice(['i32', 'i32', 'i8', 'i16', 'i64', 'i1'])
    shape = small_shape(r, r.randrange(1, 4), 512)
    most = 2 if scalar == 'i1' else 100
    value = [r.randrange(most) for _ in range(product(shape))]
    m = t.Module(1304)
    f = m.entry('shapes', [t.ptr(scalar), t.ptr(scalar)])
    tile = load_all(f, f.arguments[0], shape)
    start, said = value, []
    for _ in range(r.randrange(1, 9)):
        kind = r.choice(['reshape', 'permute', 'broadcast', 'cat', 'extract', 'insert', 'constant'])
        said.append(kind)
        count = product(shape)
        if kind == 'reshape':
            rank, new = r.randrange(1, 5), []
            left = count
            for _ in range(rank - 1):
                new.append(power(r, left.bit_length() - 1))
                left //= new[-1]
            shape = new + [left]
            tile = f.reshape(t.tile(scalar, *shape), tile)
        elif kind == 'permute':
            order = list(range(len(shape)))
            r.shuffle(order)
            new = [shape[p] for p in order]
            value = made(new, lambda i: value[at(shape, [i[order.index(d)] for d in range(len(shape))])])
            tile, shape = f.permute(tile, order), new
        elif kind == 'broadcast':
            new = [n * power(r, 2) if n == 1 else n for n in shape]
            if product(new) > 4096:
                continue
            value = made(new, lambda i: value[at(shape, [0 if n == 1 else x for n, x in zip(shape, i)])])
            tile, shape = f.broadcast(t.tile(scalar, *new), tile), new
        elif kind == 'cat' and count < 2048:
            d = r.randrange(len(shape))
            other = [r.randrange(most) for _ in range(count)] if r.random() < .5 else value
            right = tile if other is value else f.constant(t.tile(scalar, *shape), other)
            new = [n * 2 if k == d else n for k, n in enumerate(shape)]
            value = made(new, lambda i: (value if i[d] < shape[d] else other)[at(shape, [x % shape[d] if k == d else x for k, x in enumerate(i)])])
            tile, shape = f.cat(tile, right, d), new
        elif kind == 'extract':
            new = [n // power(r, min(n.bit_length() - 1, 2)) for n in shape]
            which = [r.randrange(n // p) for n, p in zip(shape, new)]
            value = made(new, lambda i: value[at(shape, [w * p + x for w, p, x in zip(which, new, i)])])
            index = [f.constant('i32', w) for w in which]
            if r.random() < .3:  # what a compiler cannot know
                index = [f.addi(x, f.get_tile_block_id()[0]) for x in index]
            tile, shape = f.extract(t.tile(scalar, *new), tile, index), new
        elif kind == 'insert':
            part = [n // power(r, min(n.bit_length() - 1, 2)) for n in shape]
            which = [r.randrange(n // p) for n, p in zip(shape, part)]
            inner = [r.randrange(most) for _ in range(product(part))]
            old = value
            value = made(shape, lambda i: inner[at(part, [x % p for x, p in zip(i, part)])]
                         if all(x // p == w for x, p, w in zip(i, part, which)) else old[at(shape, i)])
            tile = f.insert(f.constant(t.tile(scalar, *part), inner), tile, [f.constant('i32', w) for w in which])
        elif kind == 'constant':
            shape = small_shape(r, r.randrange(1, 4), 256)
            number = r.randrange(most)
            value = [number] * product(shape) if r.random() < .5 else [r.randrange(most) for _ in range(product(shape))]
            tile = f.constant(t.tile(scalar, *shape), value[0] if len(set(value)) == 1 else value)
    store_all(f, f.arguments[1], tile)
    f.return_()
    out = gpu.upload(scalar, [0] * len(value))
    gpu.run(m, [1], gpu.upload(scalar, start), out)
    same(out.values(), value, f'{scalar} {said}')


def case_large(gpu, r):
    """Tiles that do not fit into what is exchanged at once."""
    scalar = r.choice(['i32', 'i64', 'i8', 'i16'])
    shape = [128, 512 // {'i64': 4, 'i32': 2, 'i16': 1, 'i8': 1}[scalar]]
    if r.random() < .5:
        shape = shape[::-1]
    value = [x % 127 for x in range(product(shape))]
    m = t.Module()
    f = m.entry('large', [t.ptr(scalar), t.ptr(scalar), t.ptr(scalar)])
    tile = load_all(f, f.arguments[0], shape)
    turned = f.permute(tile, [1, 0])
    store_all(f, f.arguments[1], turned)
    with f.reduce([turned], 0, [0]) as fold:
        f.yield_(f.maxi(*fold.arguments))
    store_all(f, f.arguments[2], fold.results[0])
    f.return_()
    out, most = gpu.upload(scalar, [0] * len(value)), gpu.upload(scalar, [0] * shape[0])
    gpu.run(m, [1], gpu.upload(scalar, value), out, most)
    rows = [value[i * shape[1]:(i + 1) * shape[1]] for i in range(shape[0])]
    same(out.values(), [row[i] for i in range(shape[1]) for row in rows], f'{scalar} {shape} turned')
    same(most.values(), [max(row) for row in rows], f'{scalar} {shape}, largest of rows')


def case_reduce(gpu, r):
    """Sums, products, extremes, and the place of the largest."""
    shape = small_shape(r, r.randrange(1, 4), 2048)
    d = r.randrange(len(shape))
    scalar = r.choice(['i32', 'i64', 'i8', 'f32', 'f64', 'f16'])
    if r.random() < .5:  # where the elements lie in another order
        order = list(range(len(shape)))
        r.shuffle(order)
    else:
        order = None
    value = [r.randrange(-4, 5) for _ in range(product(shape))]
    whole = scalar[0] == 'i'
    m = t.Module()
    f = m.entry('fold', [t.ptr(scalar), t.ptr(scalar), t.ptr('i32')])
    tile = load_all(f, f.arguments[0], shape)
    if order:
        tile = f.permute(tile, order)
    new = [shape[p] for p in order] if order else shape
    permuted = made(new, lambda i: value[at(shape, [i[order.index(k)] for k in range(len(shape))])]) if order else value
    kind = r.choice(['sum', 'max', 'place'])
    rest = new[:d] + new[d + 1:]

    def elements(i):
        return [permuted[at(new, list(i[:d]) + [x] + list(i[d:]))] for x in range(new[d])]
    place = gpu.upload('i32', [-1] * product(rest))
    if kind == 'place':
        numbers = f.broadcast(t.tile('i32', *new), f.reshape(t.tile('i32', *[n if k == d else 1 for k, n in enumerate(new)]), f.iota(t.tile('i32', new[d]))))
        with f.reduce([tile, numbers], d, [0, 0]) as fold:
            x, a, i, j = fold.arguments
            more = f.cmpi('gt', x, a) if whole else f.cmpf('gt', x, a)
            equal = f.cmpi('eq', x, a) if whole else f.cmpf('eq', x, a)
            first = f.andi(equal, f.cmpi('lt', i, j))
            take = f.ori(more, first)
            f.yield_(f.select(take, x, a), f.select(take, i, j))
        result, where = fold.results
        store_all(f, f.arguments[2], where)
        wanted = made(rest, lambda i: max(elements(i)))
        places = made(rest, lambda i: elements(i).index(max(elements(i))))
    else:
        with f.reduce([tile], d, [0]) as fold:
            a, b = fold.arguments
            if kind == 'sum':
                f.yield_(f.addi(a, b) if whole else f.addf(a, b))
            else:
                f.yield_(f.maxi(a, b) if whole else f.maxf(a, b))
        result, = fold.results
        bits = {'i8': 8, 'i32': 32, 'i64': 64}.get(scalar)
        wanted = made(rest, lambda i: (wrap(sum(elements(i)), bits) if whole else float(sum(elements(i)))) if kind == 'sum' else max(elements(i)))
        places = [-1] * product(rest)
    store_all(f, f.arguments[1], result)
    f.return_()
    out = gpu.upload(scalar, [0] * product(rest))
    gpu.run(m, [1], gpu.upload(scalar, value), out, place)
    what = f'{kind} of {scalar} {new} along {d}, order {order}'
    same(out.values(), wanted, what)
    same(place.values(), places, what + ', places')


def case_scan(gpu, r):
    """Prefixes of maps x -> a x + b, whose order matters, and of sums."""
    shape = small_shape(r, r.randrange(1, 4), 1024)
    d, reverse = r.randrange(len(shape)), r.random() < .5
    a0, b0 = ([r.randrange(-3, 4) for _ in range(product(shape))] for _ in range(2))
    m = t.Module()
    f = m.entry('scan', [t.ptr('i32')] * 4)
    a, b = load_all(f, f.arguments[0], shape), load_all(f, f.arguments[1], shape)
    with f.scan([a, b], d, [1, 0], reverse) as fold:
        x, p, y, q = fold.arguments  # the map (x, y) after (p, q)
        f.yield_(f.muli(x, p), f.addi(f.muli(x, q), y))
    for i in range(2):
        store_all(f, f.arguments[2 + i], fold.results[i])
    f.return_()
    outs = [gpu.upload('i32', [0] * product(shape)) for _ in range(2)]
    gpu.run(m, [1], gpu.upload('i32', a0), gpu.upload('i32', b0), *outs)
    wanted = [[0] * product(shape), [0] * product(shape)]
    for i in each(shape):
        if i[d]:
            continue
        line = [at(shape, [x if k == d else y for k, y in enumerate(i)]) for x in range(shape[d])]
        p, q = 1, 0
        for e in reversed(line) if reverse else line:
            p, q = wrap(a0[e] * p, 32), wrap(a0[e] * q + b0[e], 32)
            wanted[0][e], wanted[1][e] = p, q
    for i in range(2):
        same(outs[i].values(), wanted[i], f'scan of {shape} along {d}, reverse {reverse}')


def case_matrix(gpu, r):
    """Products whose sums are exact in every type."""
    kind = r.choice(['f16', 'bf16', 'tf32', 'f32', 'f64', 'e4m3', 'e5m2', 'i8', 'f16 in f16', 'e4m3 in f16'])
    scalar, _, sums = kind.partition(' in ')
    sums = sums or {'f64': 'f64', 'i8': 'i32'}.get(scalar, 'f32')
    batch = r.choice([None, None, 1, 2, 4])
    rows, columns, depth = power(r, 7), power(r, 6), power(r, 6)
    if r.random() < .5:  # as mma.sync takes them
        rows, columns, depth = max(rows, r.choice([16, 32, 64, 128])), max(columns, r.choice([8, 16, 32])), max(depth, 32)
    if scalar in ('f32', 'f64') and r.random() < .3:  # both factors are more than shared memory takes at once
        batch, rows, columns, depth = None, 64, 16, 256
    lead = [] if batch is None else [batch]
    signs = r.random() < .5, r.random() < .5

    def numbers(count, is_signed):
        return [r.randrange(-2 if is_signed or scalar != 'i8' else 0, 3) for _ in range(count)]
    b = batch or 1
    x, y = numbers(b * rows * depth, signs[0]), numbers(b * depth * columns, signs[1])
    z = [r.randrange(-4, 5) for _ in range(b * rows * columns)]
    m = t.Module()
    entry = {'bf16': 'f32', 'tf32': 'f32', 'e4m3': 'f32', 'e5m2': 'f32'}.get(scalar, scalar)  # given so, converted there
    f = m.entry('matrix', [t.ptr(entry), t.ptr(entry), t.ptr(sums), t.ptr(sums)])
    shapes = [lead + [rows, depth], lead + [depth, columns], lead + [rows, columns]]
    turned = [r.random() < .3 for _ in range(2)]  # the factor lies transposed in memory
    factors = []
    for i in range(2):
        shape = lead + shapes[i][-2:][::-1] if turned[i] else shapes[i]
        value = load_all(f, f.arguments[i], shape)
        if turned[i]:
            value = f.permute(value, list(range(len(lead))) + [len(lead) + 1, len(lead)])
        if entry != scalar:
            value = f.ftof(t.tile(scalar, *shapes[i]), value)
        factors.append(value)
    acc = load_all(f, f.arguments[2], shapes[2])
    result = f.mmai(*factors, acc, *signs) if scalar == 'i8' else f.mmaf(*factors, acc)
    if r.random() < .5:
        result = f.addi(result, acc) if sums == 'i32' else f.addf(result, acc)
        twice = 2
    else:
        twice = 1
    store_all(f, f.arguments[3], result)
    f.return_()

    def given(values, i):
        if not turned[i]:
            return values
        n, k = shapes[i][-2:]
        return [values[(e * n + row) * k + column] for e in range(b) for column in range(k) for row in range(n)]
    out = gpu.upload(sums, [0] * len(z))
    gpu.run(m, [1], gpu.upload(entry, given(x, 0)), gpu.upload(entry, given(y, 1)), gpu.upload(sums, z), out)
    wanted = [sum(x[(e * rows + i) * depth + k] * y[(e * depth + k) * columns + j] for k in range(depth)) + twice * z[(e * rows + i) * columns + j]
              for e in range(b) for i in range(rows) for j in range(columns)]
    same(out.values(), wanted, f'{kind} {lead} {rows} x {depth} x {columns} turned {turned} signs {signs}')


def case_scaled(gpu, r):
    """Block-scaled factors of 4 and 8 bits."""
    scalar, scale = r.choice([('e4m3', 'e8m0'), ('e5m2', 'e8m0'), ('e2m1', 'e8m0'), ('e2m1', 'e4m3')])
    rows, columns, depth, block = power(r, 5), power(r, 5), 32 * power(r, 1), r.choice([16, 32])
    m = t.Module()
    f = m.entry('scaled', [t.ptr('f32')] * 6)
    shapes = [[rows, depth], [depth, columns], [rows, columns], [rows, depth // block], [depth // block, columns]]
    values = [[float(r.randrange(-2, 3)) for _ in range(product(s))] for s in shapes[:3]]
    values += [[2.0 ** r.randrange(-2, 3) for _ in range(product(s))] for s in shapes[3:]]
    loaded = [load_all(f, p, s) for p, s in zip(f.arguments, shapes)]
    types = [scalar, scalar, 'f32', scale, scale]
    tiles = [x if k == 'f32' else f.ftof(t.tile(k, *s), x, 'zero' if k == 'e8m0' else 'nearest_even') for x, k, s in zip(loaded, types, shapes)]
    store_all(f, f.arguments[5], f.mmaf_scaled(*tiles))
    f.return_()
    out = gpu.upload('f32', [0.0] * (rows * columns))
    gpu.run(m, [1], *[gpu.upload('f32', v) for v in values], out)
    x, y, z, p, q = values
    blocks = depth // block
    wanted = [z[i * columns + j] + sum(x[i * depth + k] * p[i * blocks + k // block] * y[k * columns + j] * q[k // block * columns + j] for k in range(depth))
              for i in range(rows) for j in range(columns)]
    same(out.values(), wanted, f'{scalar} scaled by {scale}, {rows} x {depth} x {columns}, blocks of {block}')


def case_in_parts(gpu, r):
    """Tiles that are larger than what threads exchange in one go."""
    scalar = r.choice(['i32', 'i64', 'f64', 'i16'])
    count = r.choice([1, 1, 2]) * 65536 // struct.calcsize(FORMATS[scalar])
    rows = 1 << r.randrange(count.bit_length())
    shape = [rows, count // rows]
    value = [r.randrange(-99, 99) for _ in range(count)]
    m = t.Module(1304)
    f = m.entry('in_parts', [t.ptr(scalar)] * 3)
    turned = f.permute(load_all(f, f.arguments[0], shape), [1, 0])
    store_all(f, f.arguments[1], turned)
    part = [max(1, n // r.choice([1, 2, 4])) for n in shape[::-1]]
    place = [r.randrange(n // k) for n, k in zip(shape[::-1], part)]
    store_all(f, f.arguments[2], f.extract(t.tile(scalar, *part), turned, [f.constant('i32', k) for k in place]))
    f.return_()
    out, cut = gpu.upload(scalar, [0] * count), gpu.upload(scalar, [0] * product(part))
    gpu.run(m, [1], gpu.upload(scalar, value), out, cut)
    wanted = made(shape[::-1], lambda i: value[at(shape, i[::-1])])
    same(out.values(), wanted, f'{scalar} {shape}')
    same(cut.values(), made(part, lambda i: wanted[at(shape[::-1], [k * n + x for k, n, x in zip(place, part, i)])]), f'{part} at {place} of {scalar} {shape}')


def case_broadcasts(gpu, r):
    """Broadcasts, which are put off until they are used: cut, turned, broadcast again, carried by loops, reduced."""
    shape = [power(r, 4), power(r, 4)]
    start = value = [r.randrange(100) for _ in range(product(shape))]
    times = r.randrange(0, 4)
    m = t.Module(1304)
    f = m.entry('broadcasts', [t.ptr('i32'), t.ptr('i32'), t.ptr('i32'), 'i32'])
    new = [power(r, 3), *shape]
    tile = f.broadcast(t.tile('i32', *new), f.reshape(t.tile('i32', 1, *shape), load_all(f, f.arguments[0], shape)))
    value = made(new, lambda i: value[at(shape, i[1:])])
    for _ in range(r.randrange(1, 5)):
        shape, kind = new, r.choice(['cut', 'turn', 'more'])
        if kind == 'cut':
            new = [n // r.choice([1, min(2, n)]) for n in shape]
            place = [r.randrange(n // k) for n, k in zip(shape, new)]
            tile = f.extract(t.tile('i32', *new), tile, [f.constant('i32', k) for k in place])
            value = made(new, lambda i: value[at(shape, [k * n + x for k, n, x in zip(place, new, i)])])
        elif kind == 'turn':
            order = r.sample(range(3), 3)
            new = [shape[k] for k in order]
            tile = f.permute(tile, order)
            value = made(new, lambda i: value[at(shape, [i[order.index(k)] for k in range(3)])])
        else:
            new = [power(r, 2) if n == 1 else n for n in shape]
            tile = f.broadcast(t.tile('i32', *new), tile)
            value = made(new, lambda i: value[at(shape, [x if n > 1 else 0 for n, x in zip(shape, i)])])
    shape, d = new, r.randrange(3)
    with f.for_(f.constant('i32', 0), f.arguments[3], f.constant('i32', 1), [tile, f.muli(tile, tile)]) as loop:
        a, b = loop.arguments[1:]
        f.continue_(b, f.broadcast(a.type, f.extract(t.tile('i32', 1, 1, 1), f.addi(a, b), [f.constant('i32', 0)] * 3)))
    store_all(f, f.arguments[1], f.subi(loop.results[0], loop.results[1]))
    with f.reduce([tile], d, [0]) as fold:
        f.yield_(f.addi(*fold.arguments))
    store_all(f, f.arguments[2], fold.results[0])
    f.return_()
    rest = shape[:d] + shape[d + 1:]
    sums = [0] * product(rest)
    for i in each(shape):
        sums[at(rest, i[:d] + i[d + 1:])] += value[at(shape, i)]
    out, folded = gpu.upload('i32', [0] * product(shape)), gpu.upload('i32', [0] * len(sums))
    gpu.run(m, [1], gpu.upload('i32', start), out, folded, c.c_int32(times))
    a, b = value, [x * x for x in value]
    for _ in range(times):
        a, b = b, [a[0] + b[0]] * len(a)
    same(out.values(), [wrap(x - y, 32) for x, y in zip(a, b)], f'{shape}, {times} times')
    same(folded.values(), sums, f'{shape} along {d}')


def case_pointers(gpu, r):
    """Tiles of pointers: loads and stores with masks and padding."""
    count, n = power(r, 10), r.randrange(1, 200)
    scalar = r.choice(['i8', 'i32', 'f64', 'f16', 'i64'])
    index = [r.randrange(n) for _ in range(count)]
    targets = r.sample(range(2 * count), count)
    take = [r.randrange(2) for _ in range(count)]
    values = [r.randrange(-9, 9) for _ in range(n)]
    m = t.Module()
    f = m.entry('pointers', [t.ptr(scalar), t.ptr('i32'), t.ptr('i32'), t.ptr('i1'), t.ptr(scalar)])
    wide = t.tile(t.pointer(scalar), count)

    def pointers(base, offsets):
        all_of = f.broadcast(wide, f.reshape(t.tile(t.pointer(scalar), 1), base))
        return f.offset(all_of, offsets)
    mask = load_all(f, f.arguments[3], [count]) if r.random() < .8 else None
    padding = f.constant(t.tile(scalar, count), 5) if mask and r.random() < .5 else None
    loaded, _ = f.load_ptr_tko(pointers(f.arguments[0], load_all(f, f.arguments[1], [count])), mask, padding)
    f.store_ptr_tko(pointers(f.arguments[4], load_all(f, f.arguments[2], [count])), loaded, mask if r.random() < .5 else None)
    f.return_()
    out = gpu.upload(scalar, [77] * (2 * count))
    gpu.run(m, [1], gpu.upload(scalar, values), gpu.upload('i32', index), gpu.upload('i32', targets), gpu.upload('i1', take), out)
    got = out.values()
    for i in range(count):
        if mask is None or take[i]:
            wanted = [values[index[i]]]
        else:
            wanted = [5 if padding else 0, 77]
        assert got[targets[i]] in wanted, f'{scalar} {i} of {count}: {got[targets[i]]}, not {wanted}'
    untouched = set(range(2 * count)) - set(targets)
    assert all(got[i] == 77 for i in untouched), 'an element was written that no pointer points to'


def case_atomics(gpu, r):
    """Each element once, whatever the tile's size; what was there before adds up."""
    count, n = power(r, 9), power(r, 3)
    mode = r.choice(['add', 'max', 'min', 'umax', 'umin', 'and', 'or', 'xor', 'xchg', 'addf', 'cas'])
    scalar = r.choice(['f32', 'f64']) if mode == 'addf' else r.choice(['i32', 'i64'])
    index = [r.randrange(n) for _ in range(count)]
    take = [r.randrange(2) for _ in range(count)]
    values = [r.randrange(-9 if mode in ('max', 'min') else 1, 9) for _ in range(count)]
    blocks = r.randrange(1, 4)
    m = t.Module()
    f = m.entry('atomics', [t.ptr(scalar), t.ptr('i32'), t.ptr(scalar), t.ptr('i1'), t.ptr(scalar)])
    mask = load_all(f, f.arguments[3], [count])
    base = f.broadcast(t.tile(t.pointer(scalar), count), f.reshape(t.tile(t.pointer(scalar), 1), f.arguments[0]))
    where = f.offset(base, load_all(f, f.arguments[1], [count]))
    value = load_all(f, f.arguments[2], [count])
    order, scope = r.choice(['relaxed', 'acquire', 'release', 'acq_rel']), r.choice(['device', 'system'])
    if mode == 'cas':
        old, _ = f.atomic_cas_tko(where, f.constant(value.type, 0), value, mask, ordering=order, scope=scope)
    else:
        old, _ = f.atomic_rmw_tko(where, mode, value, mask, ordering=order, scope=scope)
    block = f.get_tile_block_id()[0]
    view = f.partition(f.tensor_view(f.arguments[4], [blocks * count], [1]), [count])
    f.store_view_tko(old, view, [block])
    f.return_()
    start = [0] * n if mode == 'cas' else [3] * n
    memory, olds = gpu.upload(scalar, start), gpu.upload(scalar, [0] * (count * blocks))
    gpu.run(m, [blocks], memory, gpu.upload('i32', index), gpu.upload(scalar, values), gpu.upload('i1', take), olds)
    got, before = memory.values(), olds.values()
    what = f'{mode} {scalar} of {count} on {n}, {blocks} blocks'
    for k in range(n):
        mine = [values[i] for i in range(count) if index[i] == k and take[i]] * blocks
        seen = sorted(before[b * count + i] for b in range(blocks) for i in range(count) if index[i] == k and take[i])
        if not mine:
            assert got[k] == start[k], what
            continue
        if mode in ('add', 'addf'):
            assert got[k] == 3 + sum(mine), f'{what}: {got[k]}'
            assert len(set(seen)) == len(seen) and seen[0] == 3, f'{what}: seen {seen}'
        elif mode in ('max', 'umax', 'min', 'umin'):
            assert got[k] == (max if 'max' in mode else min)(mine + [3]), what
        elif mode in ('and', 'or', 'xor'):
            wanted = 3
            for v in mine:
                wanted = {'and': wanted & v, 'or': wanted | v, 'xor': wanted ^ v}[mode]
            assert got[k] == wanted, f'{what}: {got[k]}, not {wanted}'
        elif mode == 'xchg':
            assert sorted(seen + [got[k]]) == sorted(mine + [3]), f'{what}: {seen} {got[k]}'
        else:  # cas from 0: one of them, which all later ones see
            assert got[k] in mine and seen == sorted([0] + [got[k]] * (len(mine) - 1)), f'{what}: {seen} {got[k]}'


def case_reduction_view(gpu, r):
    """Blocks that add their tiles to one."""
    shape, blocks = small_shape(r, 2, 512), r.randrange(1, 5)
    scalar = r.choice(['i32', 'f32', 'i64'])
    values = [r.randrange(-9, 9) for _ in range(product(shape))]
    m = t.Module()
    f = m.entry('red', [t.ptr(scalar), t.ptr(scalar)])
    view = f.partition(f.tensor_view(f.arguments[1], shape, strides_of(shape)), shape)
    f.atomic_red_view_tko(view, [f.constant('i32', 0)] * 2, 'addf' if scalar == 'f32' else 'add', load_all(f, f.arguments[0], shape))
    f.return_()
    out = gpu.upload(scalar, [1] * len(values))
    gpu.run(m, [blocks], gpu.upload(scalar, values), out)
    same(out.values(), [1 + blocks * v for v in values], f'{scalar} {shape}, {blocks} blocks')


def case_order(gpu, r):
    """Tokens within a block, and flags between blocks: each block waits for the one before it."""
    shape, blocks = [power(r, 6), power(r, 3)], r.randrange(2, 6)
    count = product(shape)
    start = [r.randrange(100) for _ in range(count)]
    m = t.Module()
    f = m.entry('order', [t.ptr('i32'), t.ptr('i32')])
    block = f.get_tile_block_id()[0]
    zero, one = f.constant('i32', 0), f.constant('i32', 1)
    flag = f.offset(f.arguments[1], zero)
    with f.loop() as wait:
        seen, _ = f.load_ptr_tko(flag, ordering='acquire', scope='device')
        with f.if_(f.cmpi('eq', seen, block)) as ready:
            f.break_()
            ready.otherwise()
            f.yield_()
        f.continue_()
    forward = f.partition(f.tensor_view(f.arguments[0], shape, strides_of(shape)), shape)
    turned = f.partition(f.tensor_view(f.arguments[0], shape[::-1], strides_of(shape[::-1])), shape[::-1])
    token = f.make_token()
    a, token = f.load_view_tko(forward, [zero, zero], token=token)
    token = f.store_view_tko(f.addi(a, f.constant(a.type, 1)), forward, [zero, zero], token=token)
    b, token = f.load_view_tko(turned, [zero, zero], token=token)  # other threads' elements
    turned_back = f.permute(f.reshape(t.tile('i32', *shape[::-1]), f.muli(b, f.constant(b.type, 3))), [1, 0])
    token = f.store_view_tko(turned_back, forward, [zero, zero], token=token)
    f.atomic_rmw_tko(flag, 'add', one, token=token, ordering='release')
    f.return_()
    memory = gpu.upload('i32', start)
    gpu.run(m, [blocks], memory, gpu.upload('i32', [0]))
    value = start
    for _ in range(blocks):
        value = [3 * (x + 1) for x in value]
        value = [value[at(shape[::-1], i[::-1])] for i in each(shape)]
    same(memory.values(), [wrap(x, 32) for x in value], f'{shape}, {blocks} blocks')


def case_written_behind(gpu, r):
    """What is loaded is what was there before a store that comes later: of one element, which all threads read for
    themselves, without a token; and of a tile whose elements other threads write, with one."""
    side, value = 16 << r.randrange(3), r.randrange(1000)
    start = [r.randrange(100) for _ in range(side * side)]
    m = t.Module()
    f = m.entry('behind', [t.ptr('i32')] * 3)
    zero = f.constant('i32', 0)
    whole = t.tile('i32', side, side)
    if r.random() < .5:
        one, _ = f.load_ptr_tko(f.arguments[0])
        f.store_ptr_tko(f.arguments[0], f.addi(one, f.constant('i32', 1)))
    else:  # what one thread is told goes to all
        one, _ = f.atomic_rmw_tko(f.arguments[0], 'add', f.constant('i32', 1))
    view = f.partition(f.tensor_view(f.arguments[1], [side, side], [side, 1]), [side, side])
    tile, token = f.load_view_tko(view, [zero, zero], token=f.make_token())
    row = t.tile(t.pointer('i32'), side * side)
    backwards = f.subi(f.constant(t.tile('i32', side * side), side * side - 1), f.iota(t.tile('i32', side * side)))
    places = f.offset(f.broadcast(row, f.reshape(t.tile(t.pointer('i32'), 1), f.arguments[1])), backwards)
    f.store_ptr_tko(places, f.constant(t.tile('i32', side * side), -1), token=token)
    store_all(f, f.arguments[2], f.addi(tile, f.broadcast(whole, f.reshape(t.tile('i32', 1, 1), one))))
    f.return_()
    counter, memory, out = gpu.upload('i32', [value]), gpu.upload('i32', start), gpu.upload('i32', [0] * len(start))
    gpu.run(m, [1], counter, memory, out)
    same(counter.values() + memory.values(), [value + 1] + [-1] * len(start), f'{side} x {side}')
    same(out.values(), [x + value for x in start], f'{side} x {side}, loaded')


def case_scalars_in_place(gpu, r):
    """One element that is read by all, decides, and is written, many times, without tokens."""
    m = t.Module()
    f = m.entry('count', [t.ptr('i32'), 'i32'])
    zero, one = f.constant('i32', 0), f.constant('i32', 1)
    token = f.make_token()
    with f.for_(zero, f.arguments[1], one, [token]) as loop:
        x, token = f.load_ptr_tko(f.arguments[0], token=loop.arguments[1])
        with f.if_(f.cmpi('eq', f.andi(x, one), zero), ['i32']) as even:
            f.yield_(f.addi(x, f.constant('i32', 3)))
            even.otherwise()
            f.yield_(f.addi(x, one))
        f.continue_(f.store_ptr_tko(f.arguments[0], even.results[0], token=token))
    f.return_()
    times, value = r.randrange(1, 30), r.randrange(100)
    memory = gpu.upload('i32', [value])
    gpu.run(m, [1], memory, c.c_int32(times))
    for _ in range(times):
        value += 1 if value & 1 else 3
    same(memory.values(), [value], f'{times} times')


def case_bytes(gpu, r):
    """pack and unpack, and shapes that a kernel asks for."""
    scalar = r.choice(['i16', 'i32', 'i64', 'f16', 'f32', 'i8'])
    count = power(r, 8)
    width = struct.calcsize(FORMATS[scalar])
    data = bytes(r.randrange(256) for _ in range(count * width))
    m = t.Module()
    f = m.entry('bytes', [t.ptr('i8'), t.ptr('i8'), t.ptr('i32'), 'i32'])
    value = f.unpack(t.tile(scalar, count), load_all(f, f.arguments[0], [count * width]))
    value = f.select(f.constant(t.tile('i1', count), 1), value, value)
    store_all(f, f.arguments[1], f.pack(t.tile('i8', count * width), value))
    view = f.strided(f.tensor_view(f.arguments[0], [f.arguments[3], 7], [7, 1]), [4, 2], [3, 2])
    for i, n in enumerate(f.get_index_space_shape(view)):
        f.store_ptr_tko(f.offset(f.arguments[2], f.constant('i32', i)), n)
    f.return_()
    out, sizes, n = Buffer(gpu, 'i8', bytes(len(data))), gpu.upload('i32', [0, 0]), r.randrange(1, 50)
    gpu.run(m, [1], Buffer(gpu, 'i8', data), out, sizes, c.c_int32(n))
    same(out.values(), list(struct.unpack(f'{len(data)}b', data)), f'{count} {scalar}')
    same(sizes.values(), [-(-n // 3), -(-7 // 2)], f'shape of {n} x 7 by 3 x 2')


def case_nibbles(gpu, r):
    """Elements of 4 bits, two in a byte, through views."""
    rank = r.randrange(1, 4)
    fast = r.randrange(rank)
    tile = small_shape(r, rank, 1024)
    tile[fast] = max(2, tile[fast])
    tensor = [n * r.randrange(1, 3) + r.choice([0, 1, 2]) for n in tile]
    tensor[fast] += tensor[fast] & 1
    others = [k for k in range(rank) if k != fast]
    r.shuffle(others)
    strides, n = [0] * rank, 1
    for k in [fast] + others:
        strides[k] = n
        n *= tensor[k]
    index = [r.randrange(-(-size // t_)) for size, t_ in zip(tensor, tile)]
    values = [r.randrange(16) for _ in range(n)]
    scalar = r.choice(['i4', 'e2m1'])
    m = t.Module()
    f = m.entry('nibbles', [t.ptr(scalar), t.ptr('i8'), t.ptr(scalar)] + ['i32'] * rank * 3)
    sizes, spans, at_index = (f.arguments[3 + i * rank:3 + (i + 1) * rank] for i in range(3))
    known = r.random() < .5
    span = [1 if k == fast else strides[k] if known else spans[k] for k in range(rank)]
    views = [f.partition(f.tensor_view(f.arguments[i], [tensor[k] if known else sizes[k] for k in range(rank)], span), tile, None, 'zero' if scalar == 'e2m1' else None)
             for i in (0, 2)]
    loaded, _ = f.load_view_tko(views[0], list(at_index))
    f.store_view_tko(loaded, views[1], list(at_index))
    bits = loaded if scalar == 'i4' else f.bitcast(t.tile('i4', *tile), loaded)
    store_all(f, f.arguments[1], f.exti(t.tile('i8', *tile), bits, signed=False))
    f.return_()
    packed = bytes(values[i] | values[i + 1] << 4 for i in range(0, n, 2))
    out, back = gpu.upload('i8', [0] * product(tile)), Buffer(gpu, 'e4m3', bytes(len(packed)))
    gpu.run(m, [1], Buffer(gpu, 'e4m3', packed), out, back, *[c.c_int32(x) for x in tensor + strides + index])
    kept = [0] * n

    def element(i):
        x = [index[k] * tile[k] + i[k] for k in range(rank)]
        if any(x[k] >= tensor[k] for k in range(rank)):
            return 0
        where = sum(x[k] * strides[k] for k in range(rank))
        kept[where] = values[where]
        return values[where]
    wanted = made(tile, element)
    what = f'{scalar} tile {tile} of {tensor} strides {strides} at {index}'
    same(out.values(), wanted, what)
    same(back.values(), [kept[i] | kept[i + 1] << 4 for i in range(0, n, 2)], what + ', stored')


def case_any_element(gpu, r):
    """A function that gives one of its operands, beside an operation that is not used: all threads have the same element."""
    n, which = 2 << r.randrange(10), r.randrange(2)
    value = r.sample(range(10000), n)
    m = t.Module()
    f = m.entry('any', [t.ptr('i32')] * 2)
    with f.reduce([load_all(f, f.arguments[0], [n])], 0, [0]) as fold:
        f.addi(*fold.arguments)
        f.yield_(fold.arguments[which])
    store_all(f, f.arguments[1], f.broadcast(t.tile('i32', n), f.reshape(t.tile('i32', 1), fold.results[0])))
    f.return_()
    out = gpu.upload('i32', [-1] * n)
    gpu.run(m, [1], gpu.upload('i32', value), out)
    got = set(out.values())
    assert len(got) == 1 and got < set(value), f'argument {which} of {n}: {len(got)} different elements'


def case_globals(gpu, r):
    """A variable of the module, which launches share."""
    m = t.Module()
    values = [r.randrange(100) for _ in range(16)]
    m.global_('numbers', t.tile('i32', 16), values, 16)
    f = m.entry('globals', [t.ptr('i32')])
    base = f.get_global('numbers', 'i32')
    store_all(f, f.arguments[0], load_all(f, base, [16]))
    f.return_()
    out = gpu.upload('i32', [0] * 16)
    gpu.run(m, [1], out)
    same(out.values(), values, 'a global')


def main():
    arguments = sys.argv[1:]
    seed, rounds = 1, 20
    while arguments and arguments[0].startswith('--'):
        option, number = arguments.pop(0), int(arguments.pop(0))
        if option == '--seed':
            seed = number
        else:
            rounds = number
    gpu = Gpu()
    cases = {name[5:]: value for name, value in [*globals().items(), *vars(kernels_control).items()] if name.startswith('case_')}
    passed = failed = 0
    for name in arguments or cases:
        for i in range(rounds * OFTEN.get(name, 1)):
            try:
                gpu.warps = random.Random(f'warps {name} {seed + i}').choice([0, 0, 1, 2, 4, 8, 16])
                cases[name](gpu, random.Random(f'{name} {seed + i}'))
                passed += 1
            except (AssertionError, RuntimeError) as e:
                failed += 1
                print(f'{name} --seed {seed + i}, {gpu.warps} warps: {e}')
    print(f'{passed} passed, {failed} failed')
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
