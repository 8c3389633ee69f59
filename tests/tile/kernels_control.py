# SPDX-License-Identifier: Apache-2.0
"""Cases of run_tiles.py: control flow, what loops carry, and what is known of a value at the end of it."""
import ctypes as c

import tile_ir as t
from kernels import at, load_all, made, power, product, same, small_shape, store_all, wrap


def case_loops(gpu, r):
    """Loops that carry tiles of which one becomes another, in others, with branches."""
    shape = small_shape(r, 2, 512)
    count = product(shape)
    one, two = ([r.randrange(100) for _ in range(count)] for _ in range(2))
    outer, inner, stop = r.randrange(1, 5), r.randrange(0, 5), r.randrange(1, 20)
    square = shape[0] == shape[1]
    m = t.Module()
    f = m.entry('loops', [t.ptr('i32')] * 3 + ['i32'] * 3)
    a, b = load_all(f, f.arguments[0], shape), load_all(f, f.arguments[1], shape)
    outer_end, inner_end, stop_at = f.arguments[3:]
    zero, step = f.constant('i32', 0), f.constant('i32', 1)
    with f.for_(zero, outer_end, step, [a, b, zero]) as loop:
        i, x, y, n = loop.arguments
        with f.for_(zero, inner_end, step, [x, y, n]) as nested:
            j, p, q, k = nested.arguments
            with f.if_(f.cmpi('lt', f.addi(i, j), f.constant('i32', 3)), [p.type, 'i32']) as choice:
                f.yield_(f.addi(p, q), f.addi(k, step))
                choice.otherwise()
                f.yield_(f.permute(p, [1, 0]) if square else f.subi(p, q), k)
            f.continue_(q, choice.results[0], choice.results[1])
        with f.loop([nested.results[0], zero], [x.type, 'i32']) as endless:
            v, s = endless.arguments
            with f.if_(f.cmpi('ge', s, stop_at)) as done:
                f.break_(v, s)
                done.otherwise()
                f.yield_()
            f.continue_(f.addi(v, f.broadcast(v.type, f.reshape(t.tile('i32', 1, 1), s))), f.addi(s, f.constant('i32', 3)))
        f.continue_(nested.results[1], endless.results[0], f.addi(nested.results[2], endless.results[1]))
    x, y, n = loop.results
    store_all(f, f.arguments[2], f.addi(f.subi(x, f.muli(y, f.constant(x.type, 3))), f.broadcast(x.type, f.reshape(t.tile('i32', 1, 1), n))))
    f.return_()
    out = gpu.upload('i32', [0] * count)
    gpu.run(m, [1], gpu.upload('i32', one), gpu.upload('i32', two), out, *[c.c_int32(x) for x in (outer, inner, stop)])
    x, y, n = one, two, 0
    for i in range(outer):
        p, q, k = x, y, n
        for j in range(inner):
            if i + j < 3:
                new, k = [u + v for u, v in zip(p, q)], k + 1
            else:
                new = made(shape, lambda e: p[at(shape, e[::-1])]) if square else [u - v for u, v in zip(p, q)]
            p, q = q, new
        v, s = p, 0
        while s < stop:
            v, s = [e + s for e in v], s + 3
        x, y, n = q, v, k + s
    same(out.values(), [wrap(u - 3 * v + n, 32) for u, v in zip(x, y)], f'{shape}, {outer} x {inner} times, to {stop}')


def case_changed_places(gpu, r):
    """Loops whose carried values change places, in all orders: tiles, scalars, and parts that are one's and another's."""
    kinds = [r.choice([[64], [4, 16], [256], []]) for _ in range(r.randrange(2, 6))]
    values = [[r.randrange(100) for _ in range(product(shape))] for shape in kinds]
    order = list(range(len(kinds)))
    for shape in {str(k): k for k in kinds}.values():
        mine = [k for k in order if kinds[k] == shape]
        for k, other in zip(mine, [r.choice(mine) for _ in mine] if r.random() < .3 else r.sample(mine, len(mine))):
            order[k] = other
    times, changed = r.randrange(5), r.randrange(len(kinds))
    m = t.Module()
    f = m.entry('places', ['i32'] + [t.ptr('i32')] * len(kinds))
    tiles = [load_all(f, p, s) if s else f.load_ptr_tko(p)[0] for p, s in zip(f.arguments[1:], kinds)]
    with f.for_(f.constant('i32', 0), f.arguments[0], f.constant('i32', 1), tiles) as loop:
        carried = loop.arguments[1:]
        new = [carried[k] for k in order]
        new[changed] = f.addi(new[changed], carried[changed])
        f.continue_(*new)
    for p, s, value in zip(f.arguments[1:], kinds, loop.results):
        store_all(f, p, value) if s else f.store_ptr_tko(p, value)
    f.return_()
    memory = [gpu.upload('i32', v) for v in values]
    gpu.run(m, [1], c.c_int32(times), *memory)
    for _ in range(times):
        new = [values[k] for k in order]
        new[changed] = [x + y for x, y in zip(new[changed], values[changed])]
        values = new
    for k, (got, wanted) in enumerate(zip(memory, values)):
        same(got.values(), [wrap(x, 32) for x in wanted], f'{k} of {kinds} as {order}, {changed} changed, {times} times')


def case_jumps(gpu, r):
    """continue, break and return in branches of branches, with tiles that threads exchange on some of the ways only."""
    n = power(r, 4)
    start = [r.randrange(100) for _ in range(n * n)]
    times, a, b, end = r.randrange(1, 9), r.randrange(1, 4), r.randrange(1, 4), r.randrange(1, 200)
    m = t.Module()
    f = m.entry('jumps', [t.ptr('i32')] + ['i32'] * 4)
    zero, one = f.constant('i32', 0), f.constant('i32', 1)
    tile = load_all(f, f.arguments[0], [n, n])

    def splat(number):
        return f.broadcast(tile.type, f.reshape(t.tile('i32', 1, 1), number))
    with f.for_(zero, f.arguments[1], one, [tile, zero]) as outer:
        i, x, s = outer.arguments
        with f.if_(f.cmpi('eq', f.remi(i, f.arguments[2]), zero)) as first:
            turned = f.permute(x, [1, 0])
            with f.if_(f.cmpi('lt', s, f.arguments[4])) as second:
                f.continue_(f.addi(x, f.addi(turned, turned)), f.addi(s, i))
                second.otherwise()
                f.yield_()
            f.yield_()
            first.otherwise()
            f.yield_()
        with f.loop([x, i], [x.type, 'i32']) as inner:
            y, k = inner.arguments
            with f.if_(f.cmpi('gt', k, f.arguments[3])) as done:
                with f.if_(f.cmpi('eq', f.andi(k, one), zero)) as even:
                    f.break_(f.permute(y, [1, 0]), k)
                    even.otherwise()
                    f.continue_(f.addi(y, splat(k)), f.addi(k, one))
                f.yield_()
                done.otherwise()
                f.yield_()
            f.continue_(f.addi(y, f.permute(y, [1, 0])), f.addi(k, one))
        f.continue_(inner.results[0], f.addi(s, inner.results[1]))
    store_all(f, f.arguments[0], outer.results[0])
    with f.if_(f.cmpi('ge', outer.results[1], f.arguments[4])) as stop:
        f.return_()
        stop.otherwise()
        f.yield_()
    store_all(f, f.arguments[0], splat(outer.results[1]))
    f.return_()
    memory = gpu.upload('i32', start)
    gpu.run(m, [1], memory, *[c.c_int32(x) for x in (times, a, b, end)])

    def turn(x):
        return made([n, n], lambda e: x[at([n, n], e[::-1])])
    x, s = start, 0
    for i in range(times):
        if i % a == 0 and s < end:
            x, s = [u + 2 * v for u, v in zip(x, turn(x))], s + i
            continue
        k = i
        while True:
            if k > b and k % 2 == 0:
                x = turn(x)
                break
            x = [u + k for u in x] if k > b else [u + v for u, v in zip(x, turn(x))]
            k += 1
        s += k
    same(memory.values(), [wrap(u, 32) for u in (x if s >= end else [s] * len(x))], f'{n} x {n}, {times} times, {a} {b} {end}')


def case_divisors(gpu, r):
    """What is known of an address decides how many elements go at once: arithmetic of multiples, then loads from there."""
    scalar, number = r.choice(['i8', 'i16', 'i32']), r.choice(['i32', 'i64'])
    given = [r.randrange(-64, 64) << r.randrange(7) for _ in range(4)]
    m = t.Module()
    f = m.entry('divisors', [t.ptr(scalar), t.ptr(scalar)] + [number] * 4)
    base = f.assume(f.arguments[0], t.div_by(16))
    known = [(f.assume(v, t.div_by(x & -x if x else 64)), x) for v, x in zip(f.arguments[2:], given)]
    known += [(f.constant(number, x), x) for x in [r.randrange(1, 40), 16 * r.randrange(-3, 4), 0]]
    for _ in range(r.randrange(1, 7)):
        kind = r.choice(['addi', 'subi', 'muli', 'andi', 'ori', 'mini', 'maxi', 'negi', 'shli', 'select', 'count', 'resize'])
        (v, x), (w, y) = r.choice(known), r.choice(known)
        if kind == 'negi':
            known.append((f.negi(v), -x))
        elif kind == 'shli':
            n = r.randrange(5)
            known.append((f.shli(v, f.constant(number, n)), x << n))
        elif kind == 'select':
            known.append((f.select(f.cmpi('lt', v, w), v, w), x if x < y else y))
        elif kind == 'resize':
            narrow = f.trunci(t.tile('i16'), v)
            known.append((f.exti(t.tile(number), narrow), wrap(x, 16)))
        elif kind == 'count':  # the last of some turns
            with f.for_(v, f.addi(v, f.constant(number, 1)), f.constant(number, r.choice([1, 2, 16])), [w]) as loop:
                f.continue_(f.addi(loop.arguments[0], loop.arguments[1]))
            known.append((loop.results[0], x + y))
        else:
            of = {'addi': x + y, 'subi': x - y, 'muli': x * y, 'andi': x & y, 'ori': x | y, 'mini': min(x, y), 'maxi': max(x, y)}[kind]
            known.append((getattr(f, kind)(v, w), of))
        if abs(known[-1][1]) > 1 << 28:
            known.pop()
    v, x = known[-1]
    part = f.andi(v, f.constant(number, 1023))
    tile, span = r.choice([[64], [4, 16], [256]]), r.choice([64, 48, 20])
    shape = tile if len(tile) == 1 else [4, 16]
    strides = [1] if len(tile) == 1 else [span, 1]

    def copy(place):
        view = f.partition(f.tensor_view(f.offset(base, place), shape, strides), tile)
        store_all(f, f.arguments[1], f.load_view_tko(view, [f.constant('i32', 0)] * len(tile))[0])
    if r.random() < .5:
        copy(part)
    else:  # by the counter of a loop
        with f.for_(part, f.addi(part, f.constant(number, 1)), f.constant(number, r.choice([1, 2, 16]))) as loop:
            copy(loop.arguments[0])
            f.continue_()
    f.return_()
    values = [r.randrange(-100, 100) for _ in range(2048)]
    out = gpu.upload(scalar, [0] * product(tile))
    kind = c.c_int32 if number == 'i32' else c.c_int64
    gpu.run(m, [1], gpu.upload(scalar, values), out, *[kind(n) for n in given])
    wanted = made(tile, lambda i: values[(x & 1023) + sum(k * n for k, n in zip(i, strides))])
    same(out.values(), wanted, f'{scalar} at {x}, {tile} {strides}')


def case_counts(gpu, r):
    """Loops that count near the ends of their type, signed and unsigned."""
    scalar, is_unsigned = r.choice(['i32', 'i64']), r.random() < .5
    bits = int(scalar[1:])
    least, most = (0, (1 << bits) - 1) if is_unsigned else (-1 << bits - 1, (1 << bits - 1) - 1)
    step = r.choice([1, 2, 3, 1000, 1 << bits - 3])
    start = r.choice([least, most, r.randrange(max(least, -100), 100)])
    start = min(most, max(least, start + step * r.randrange(-5, 2) + r.randrange(-2, 3)))
    end = max(least, min(most, start + step * r.randrange(-1, 5) + r.randrange(3)))
    turns = [i for i in range(start, max(start, end), step)]
    constant = r.random() < .5
    m = t.Module(1304)
    f = m.entry('counts', [t.ptr(scalar), scalar, scalar, scalar])
    out, first, last, by = f.arguments
    zero = f.constant(scalar, 0)
    with f.for_(first, last, f.constant(scalar, step) if constant else by, [zero, zero], unsigned=is_unsigned) as loop:
        i, n, total = loop.arguments
        f.continue_(f.addi(n, f.constant(scalar, 1)), f.addi(f.muli(total, f.constant(scalar, 3)), i))
    for k, value in enumerate(loop.results):
        f.store_ptr_tko(f.offset(out, f.constant('i32', k)), value)
    f.return_()
    kind = c.c_int32 if bits == 32 else c.c_int64
    memory = gpu.upload(scalar, [0, 0])
    gpu.run(m, [1], memory, *[kind(x) for x in (start, end, step)])
    total = 0
    for i in turns:
        total = 3 * total + i
    same(memory.values(), [len(turns), wrap(total, bits)], f'{scalar} from {start} to {end} by {step}, unsigned {is_unsigned}')
