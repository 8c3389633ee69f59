# SPDX-License-Identifier: Apache-2.0
"""Modules for read.py: GOOD[name](version) gives a Module; together they have each operation in each of its forms. BAD[name] is
(module's maker, what the message says)."""
from tile_ir import *

GOOD, BAD = {}, {}


def good(since=1):
    def add(make):
        GOOD[make.__name__] = since, make
        return make
    return add


def entry(version, arguments=(), **hints):
    m = Module(version)
    return m, m.entry('k', arguments, **hints)


@good()
def arithmetic(version):
    m, f = entry(version, ['f32', 'i32'])
    x, i = f.arguments
    for name in 'absf ceil cos cosh floor log log2 negf sin sinh tan exp exp2 rsqrt sqrt tanh'.split():
        getattr(f, name)(x)
    f.exp2(x, flush_to_zero=True)
    f.rsqrt(x, flush_to_zero=True)
    f.sqrt(x, rounding='approx', flush_to_zero=True)
    for name in 'addf divf mulf subf maxf minf pow remf'.split():
        getattr(f, name)(x, x)
    f.addf(x, x, rounding='zero', flush_to_zero=True)
    f.divf(x, x, rounding='full')
    f.maxf(x, x, propagate_nan=True)
    f.minf(x, x, flush_to_zero=True)
    f.fma(x, x, x, rounding='positive_inf')
    for name in 'addi muli shli subi andi ori xori mulhii maxi mini remi shri divi'.split():
        getattr(f, name)(i, i)
    f.addi(i, i, overflow='no_signed_wrap')
    f.subi(i, i, overflow='no_unsigned_wrap')
    f.shli(i, i, overflow='no_wrap')
    for name in 'maxi mini remi shri divi'.split():
        getattr(f, name)(i, i, signed=False)
    f.divi(i, i, rounding='negative_inf')
    f.absi(i)
    f.negi(i, overflow='no_signed_wrap' if version >= 1302 else 'none')
    for predicate in PREDICATES:
        f.cmpf(predicate, x, x, ordered=predicate != 'ne')
        f.cmpi(predicate, i, i, signed=predicate != 'lt')
    f.select(f.cmpi('lt', i, i), x, x)
    f.return_()
    return m


@good(2)
def arithmetic_2(version):
    m, f = entry(version, ['f32', 'i32'])
    x, i = f.arguments
    f.atan2(x, x)
    f.tanh(x, rounding='approx')
    if version >= 1303:
        f.exp(x, rounding='approx')
    if version >= 1304:
        f.fpow_i(x, i)
        f.ftoi('i32', x, saturating=True)
    f.return_()
    return m


@good()
def conversions(version):
    m, f = entry(version, ['f32', 'i32', ptr('f16')])
    x, i, p = f.arguments
    f.ftof('f16', x)
    f.ftof('tf32', x)
    f.ftof('f64', x)
    f.ftoi('i8', x)
    f.ftoi('i64', x, signed=False)
    f.itof('bf16', i)
    f.itof('f32', i, signed=False)
    f.exti('i64', i)
    f.exti('i64', i, signed=False)
    f.trunci('i16', i)
    f.trunci('i1', i, overflow='no_wrap')
    f.bitcast('f32', i)
    n = f.ptr_to_int('i64', p)
    f.int_to_ptr(ptr('f16'), n)
    f.ptr_to_ptr(ptr('i8'), p)
    f.offset(p, i)
    f.return_()
    return m


@good()
def constants(version):
    m, f = entry(version)
    m.global_('table', tile('i32', 4), [1, 2, 3, 4], alignment=16)
    m.global_('zeros', tile('f64', 1024), 0.0)
    f.constant('i1', True)
    f.constant('i1', False)
    f.constant(tile('i1', 16), [1, 0, 0, 1, 1, 1, 0, 1, 0, 0, 1, 0, 1, 1, 1, 1])
    f.constant(tile('i1', 2), [0, 1])
    f.constant(tile('i1', 8), True)
    f.constant(tile('i1', 8), [1] * 8)
    f.constant(tile('i8', 4), [-1, 0, 1, 127])
    f.constant(tile('i16', 2), [-1, 300])
    f.constant('i64', -5)
    f.constant(tile('f16', 2), [1.0, -0.1])
    f.constant('bf16', 3.14159)
    f.constant(tile('f32', 32), [float(i) for i in range(32)])
    f.constant(tile('tf32', 2), [1.0, -1.5])
    f.constant(tile('tf32', 64), 2.0)
    f.constant('f64', 0.1)
    f.constant(tile('e4m3', 4), [1.0, -0.5, 448.0, 0.0])
    f.constant(tile('e5m2', 2), [1.0, 57344.0])
    f.constant(tile('f32', 8, 8), 0.5)
    f.get_global('table', 'i32')
    f.return_()
    return m


@good(3)
def constants_3(version):
    m, f = entry(version)
    m.global_('secret', tile('i8', 2), [7, 8], constant=True, private=True)
    f.constant(tile('i4', 4), [-1, 0, 7, -8])
    f.constant(tile('i4', 4), bytes([0xff, 0xf0, 0x07, 0xf8]))  # with their sign in the upper half
    f.constant(tile('i4', 2), -3)
    f.constant(tile('e2m1', 4), [0.5, -6.0, 1.0, 3.0])
    f.constant(tile('e8m0', 2), [1.0, 0.25])
    packed = f.pack(tile('i8', 8), f.constant(tile('e2m1', 16), 1.0))
    f.unpack(tile('e2m1', 16), packed)
    f.alloca('f32', 1024, alignment=128)
    f.alloca('i8', 16, alignment=1, in_global=True)
    f.return_()
    return m


@good()
def shapes(version):
    m, f = entry(version, ['f32'])
    x, = f.arguments
    row = f.broadcast(tile('f32', 16), f.reshape(tile('f32', 1), x))
    t = f.reshape(tile('f32', 2, 8), row)
    c = f.cat(t, t, 1)
    p = f.permute(c, [1, 0])
    zero = f.constant('i32', 0)
    f.extract(tile('f32', 4, 2), p, [zero, zero])
    if version >= 1304:
        f.insert(t, c, [zero, zero])
    f.iota(tile('i32', 64))
    f.permute(f.reshape(tile('f32', 2, 2, 4), row), [2, 0, 1])
    f.return_()
    return m


@good()
def control(version):
    m, f = entry(version, ['i32', 'i1', 'f32'])
    n, b, x = f.arguments
    with f.for_(n, n, n, [x, n], unsigned=version >= 1302) as loop:
        i, s, k = loop.arguments
        with f.if_(b) as choice:
            f.continue_(s, i)
            choice.otherwise()
            f.yield_()
        with f.if_(b, ['f32']) as choice:
            f.yield_(s)
            choice.otherwise()
            f.yield_(x)
        f.continue_(choice.results[0], k)
    s, k = loop.results
    with f.loop([k], ['f32', 'i1']) as loop:
        k, = loop.arguments
        with f.if_(b) as choice:
            f.break_(s, b)
            choice.otherwise()
            with f.loop():
                with f.for_(n, n, n):
                    f.continue_()
                f.break_()
            f.continue_(k)
        f.continue_(n)
    f.mulf(loop.results[0], s)
    with f.if_(loop.results[1]) as choice:
        f.return_()
        choice.otherwise()
        f.yield_()
    f.assert_(b, 'a "quoted" line\n')
    f.return_()
    return m


@good()
def absent_else(version):
    m, f = entry(version, ['i1'])
    body = bytes([f.arguments[0].number]) + varint(2)
    body += varint(1) + varint(0) + varint(1) + varint(109) + varint(0) + varint(0)  # a yield
    f.op(50, [], body + varint(0), counted=True)  # no second block
    f.lines.append(0)  # of the yield
    f.return_()
    return m


@good()
def folds(version):
    m, f = entry(version, ['i32', 'i1'])
    i = f.iota(tile('i32', 64))
    t = f.reshape(tile('i32', 4, 16), i)
    x = f.itof(tile('f32', 4, 16), t)
    with f.reduce([x, t], 1, [-math.inf, 0]) as r:
        a, b, k, l = r.arguments
        c = f.cmpf('gt', a, b)
        f.yield_(f.select(c, a, b), f.select(c, k, l))
    with f.scan([t], 0, [0], reverse=True) as r:
        f.yield_(f.addi(*r.arguments))
    with f.scan([x], 1, [1.0]) as r:
        f.yield_(f.mulf(*r.arguments))
    with f.reduce([f.ftof(tile('f64', 4, 16), x)], 0, [-math.inf]) as r:
        f.yield_(f.maxf(*r.arguments))
    with f.reduce([f.cmpi('lt', t, t)], 0, [True]) as r:
        f.yield_(f.andi(*r.arguments))
    with f.reduce([f.ftof(tile('e5m2', 4, 16), x), f.ftof(tile('tf32', 4, 16), x)], 0, [-math.inf, -2.0]) as r:
        f.yield_(r.arguments[0], r.arguments[3])
    f.return_()
    return m


@good()
def long_identity(version):
    """Some writers shift all 64 bits of an f64 up, which makes a number of 65 bits."""
    m, f = entry(version)
    t = f.constant(tile('f64', 4), 1.0)
    array = varint(1) + varint(2) + varint(m.type(('scalar', 'f64'))) + varint(bits_of('f64', -math.inf) << 1)
    with f.region(88, ['f64'], varint(0) + array + varint(1) + varint(t.number), 1, [tile('f64')] * 2) as r:
        f.yield_(f.maxf(*r.arguments))
    f.return_()
    return m


@good()
def pointers(version):
    m, f = entry(version, [ptr('i32'), 'i32'])
    p, n = f.arguments
    i = f.iota(tile('i32', 32))
    ps = f.offset(f.broadcast(tile(pointer('i32'), 32), f.reshape(tile(pointer('i32'), 1), p)), i)
    mask = f.cmpi('lt', i, i)
    t = f.make_token()
    v, t2 = f.load_ptr_tko(ps)
    w, t3 = f.load_ptr_tko(ps, mask, v, t, ordering='acquire', scope='system', hints={'sm_90': {'latency': 3}})
    f.load_ptr_tko(ps, mask)
    f.load_ptr_tko(ps, token=t)
    f.store_ptr_tko(ps, v)
    f.store_ptr_tko(ps, w, mask, f.join_tokens(t, t2, t3), ordering='release', scope='device')
    f.store_ptr_tko(ps, w, hints={})
    f.atomic_cas_tko(ps, v, w)
    f.atomic_cas_tko(ps, v, w, mask, t, ordering='acq_rel', scope='block')
    for mode in RMW:
        if mode != 'addf':
            f.atomic_rmw_tko(ps, mode, v, token=t if mode == 'or' else None)
    f.atomic_rmw_tko(ps, 'add', v, mask=mask, ordering='acq_rel', scope='system')
    f.print_tko('%d of %i\n', n, v)
    if version >= 1302:
        f.print_tko('done', token=t)
    f.return_()
    return m


@good()
def views(version):
    m, f = entry(version, [ptr('f16'), 'i32', 'i64'])
    p, n, big = f.arguments
    t = f.tensor_view(p, [n, 64], [64, 1])
    f.tensor_view(p, [], [])
    f.tensor_view(p, [big, big, 3], [7, big, 1])
    f.tensor_view(p, [n, 1 << 40, 5], [n, n, 1])
    f.get_tensor_shape(t)
    v = f.partition(t, [16, 8])
    w = f.partition(t, [8, 32], dim_map=[1, 0], padding='neg_inf')
    f.get_index_space_shape(v, 'i64')
    a, token = f.load_view_tko(v, [n, n])
    f.load_view_tko(w, [big, big], token, ordering='relaxed', scope='block', hints={'default': {'allow_tma': 1}})
    f.store_view_tko(a, v, [n, n], token)
    f.store_view_tko(a, v, [n, n], ordering='release', scope='system')
    if version >= 1304:
        f.load_view_tko(v, [n, n], inbounds=[True, False])
        f.store_view_tko(a, v, [n, n], inbounds=[False, True])
    for padding in PADDINGS:
        f.partition(t, [1, 1], padding=padding)
    f.get_num_tile_blocks()
    f.return_()
    return m


@good(3)
def views_3(version):
    m, f = entry(version, [ptr('f32'), 'i32'])
    p, n = f.arguments
    t = f.tensor_view(p, [n, n], [n, 1])
    rows = f.iota(tile('i32', 4))
    g = f.gather(t, [4, 32], 0, padding='zero')
    a, token = f.load_view_tko(g, [rows, n])
    f.store_view_tko(a, g, [rows, n])
    f.gather(t, [2, 4], 1)
    s = f.strided(t, [4, 32], [2, 5], dim_map=[1, 0], padding='nan')
    f.load_view_tko(s, [n, n])
    f.strided(t, [4, 4], [1, 1])
    v = f.partition(t, [4, 32])
    f.atomic_red_view_tko(v, [n, n], 'addf', a)
    f.atomic_red_view_tko(v, [n, n], 'addf', a, token, scope='block', inbounds=[1, 1] if version >= 1305 else None)
    f.return_()
    return m


@good()
def matrices(version):
    m, f = entry(version)
    for scalar in ['f16', 'bf16', 'tf32', 'f32', 'f64', 'e4m3', 'e5m2']:
        c = f.constant(tile('f64' if scalar == 'f64' else 'f32', 16, 32), 0.0)
        f.mmaf(f.constant(tile(scalar, 16, 8), 1.0), f.constant(tile(scalar, 8, 32), 2.0), c)
    a, b, c = [f.constant(tile('f16', 4, *s), 1.0) for s in ((16, 8), (8, 32), (16, 32))]
    f.mmaf(a, b, c, fast=version >= 1303)
    a, b, c = [f.constant(t, 1) for t in (tile('i8', 16, 8), tile('i8', 8, 32), tile('i32', 16, 32))]
    f.mmai(a, b, c)
    f.mmai(a, b, c, lhs_signed=False, rhs_signed=True)
    if version >= 1303:
        a, b, c = [f.constant(t, 1.0) for t in (tile('e2m1', 16, 64), tile('e2m1', 64, 8), tile('f32', 16, 8))]
        f.mmaf_scaled(a, b, c, f.constant(tile('e4m3', 16, 4), 1.0), f.constant(tile('e4m3', 4, 8), 1.0))
    f.return_()
    return m


@good()
def assumptions(version):
    m, f = entry(version, ['i32', ptr('f32')])
    i, p = f.arguments
    f.assume(p, div_by(16))
    t = f.iota(tile('i32', 64))
    f.assume(t, div_by(4, every=4, along=0))
    f.assume(i, bounded(0))
    f.assume(i, bounded(upper=-1))
    f.assume(i, bounded(-(1 << 31), (1 << 31) - 1))
    f.assume(i, bounded())
    f.assume(f.reshape(tile('i32', 8, 8), t), same(1, 8))
    f.return_()
    return m


@good(4)
def tokens_4(version):
    m, f = entry(version)
    t = f.gdc_wait_tko()
    t = f.gdc_launch_dependents_tko(f.gdc_wait_tko(t))
    f.gdc_launch_dependents_tko()
    f.memory_fence_alias_tko(t)
    f.return_()
    return m


@good(5)
def multimem(version):
    m, f = entry(version, [ptr('f32'), 'i32'])
    p, n = f.arguments
    v = f.partition(f.tensor_view(p, [n], [1]), [64])
    a, t = f.multimem_load_reduce_view_tko(v, [n], 'add')
    for reduction in REDUCTIONS:
        f.multimem_load_reduce_view_tko(v, [n], reduction, t, ordering='weak', scope=None)
    f.multimem_reduce_view_tko(v, a, [n], 'add', t)
    f.multimem_store_view_tko(v, a, [n])
    f.multimem_store_view_tko(v, a, [n], t, ordering='weak', scope=None)
    f.return_()
    return m


@good()
def kernels(version):
    m = Module(version)
    m.producer = 'by hand'
    a = m.entry('first', [], default=dict(occupancy=2, num_cta_in_cga=4), sm_90=dict(num_cta_in_cga=2), sm_100=dict(occupancy=8))
    a.return_()
    b = m.entry('second', ['i32'] * 3, sm_100=dict(occupancy=8), default=dict(num_worker_warps_per_cta=8))
    b.line = 40
    b.addi(b.arguments[0], b.arguments[2])
    b.line = (17, 41)
    b.negf(b.constant('f32', 1.0))
    b.line = 41
    b.return_()
    return m


# ---- modules that make no sense ----

def bad(message, version=1303):
    def add(make):
        BAD[make.__name__] = version, make, message
        return make
    return add


def simple(name, message, write, arguments=('i32', 'f32', 'i1', ptr('f32'))):
    """A kernel of version 13.3 whose body is `write(f, *arguments)`, then a return."""
    def make(version):
        m, f = entry(version, arguments)
        write(f, *f.arguments)
        f.return_()
        return m
    BAD[name] = 1303, make, message


# operands and results
simple('two_types', 'not of one type', lambda f, i, x, b, p: f.op(2, ['f32'], b'\0\0' + varint(1) + varint(0)))
simple('two_shapes', 'not tiles of one shape', lambda f, i, x, b, p: f.itof(tile('f32', 2), i))
simple('no_tile', 'the result is no tile', lambda f, i, x, b, p: f.absf(f.make_token()))
simple('no_token', 'is no token', lambda f, i, x, b, p: f.join_tokens(i))
simple('undefined', 'there is no value 99', lambda f, i, x, b, p: f.op(0, ['f32'], varint(99)))
simple('itself', 'there is no value 4 ', lambda f, i, x, b, p: f.op(0, ['f32'], varint(4)))
simple('result_of_region', 'there is no value', lambda f, i, x, b, p: inner_value(f, b))
simple('element_type', 'a type that no value has', lambda f, i, x, b, p: f.op(58, [('scalar', 'i32')]))
simple('flags', 'flags 0x2, not all known', lambda f, i, x, b, p: f.op(2, ['f32'], b'\2\0\1\1'))
simple('rounding', 'there is no rounding 8', lambda f, i, x, b, p: f.op(2, ['f32'], b'\0\10\1\1'))
simple('string', 'there is no string', lambda f, i, x, b, p: f.op(5, [], varint(77) + varint(2)))
simple('results', '2 results, not 1', lambda f, i, x, b, p: f.op(60, [token, token], varint(0), counted=True))
simple('entry_inside', 'not for inside of functions', lambda f, i, x, b, p: f.op(22))
simple('unknown', 'an operation of number 16386 is not known', lambda f, i, x, b, p: f.op(16386))
simple('a_gap', 'an operation of number 30 is not known', lambda f, i, x, b, p: f.op(30))
simple('select', 'the condition is not of i1', lambda f, i, x, b, p: f.select(i, x, x))
simple('offset_to_i32', 'not of the pointers\' type', lambda f, i, x, b, p: f.op(81, ['i32'], varint(3) + varint(0)))
simple('offset_of_i32', 'it is not of pointers and integers', lambda f, i, x, b, p: f.offset(i, i))
simple('offset_by_f32', 'it is not of pointers and integers', lambda f, i, x, b, p: f.offset(p, x))
simple('int_to_i32', 'not of integers to pointers', lambda f, i, x, b, p: f.int_to_ptr('i32', i))
simple('ptr_to_f32', 'not of pointers to integers', lambda f, i, x, b, p: f.ptr_to_int('f32', p))
simple('i32_to_ptr', 'it is not of pointers', lambda f, i, x, b, p: f.ptr_to_ptr(ptr('i8'), i))
simple('compare', 'not of one type', lambda f, i, x, b, p: f.cmpi('eq', i, f.constant('i64', 1)))
simple('assert_i32', 'its condition is not of i1', lambda f, i, x, b, p: f.assert_(i, ''))
simple('print_token', 'an operand is no tile', lambda f, i, x, b, p: f.print_tko('', f.make_token()))


def inner_value(f, b):
    with f.if_(b) as choice:
        x = f.constant('f32', 1.0)
        f.yield_()
        choice.otherwise()
        f.yield_()
    f.absf(x)


# constants and attributes
simple('short_data', 'constant 0 has 8 bytes', lambda f, i, x, b, p: f.constant(tile('f32', 4), bytes(8)))
simple('short_bits', 'constant 0 has 1 bytes', lambda f, i, x, b, p: f.constant(tile('i1', 16), b'\1'))
simple('pointers', 'no tile of numbers', lambda f, i, x, b, p: f.op(16, [ptr('f32')], varint(f.m.data('i64', 0))))
simple('no_constant', 'there is no constant 5', lambda f, i, x, b, p: f.op(16, ['f32'], varint(5)))
simple('assumed', 'no known kind', lambda f, i, x, b, p: f.assume(i, varint(3) + b'\1'))
simple('attribute', 'an attribute of number 13', lambda f, i, x, b, p: f.assume(i, varint(13)))

# shapes
t44 = tile('f32', 4, 4)
simple('cat', 'one behind the other', lambda f, i, x, b, p: f.op(12, [t44], varint(0) + varint(f.constant(t44, 1.0).number) * 2))
simple('cat_dim', 'one behind the other', lambda f, i, x, b, p: f.op(12, [t44], varint(2) + varint(f.constant(t44, 1.0).number) * 2))
simple('broadcast', 'does not stretch', lambda f, i, x, b, p: f.broadcast(tile('f32', 8, 4), f.constant(t44, 1.0)))
simple('reshape', 'other elements', lambda f, i, x, b, p: f.reshape(tile('f32', 8), f.constant(t44, 1.0)))
simple('permute', 'no permutation', lambda f, i, x, b, p: f.permute(f.constant(t44, 1.0), [1, 1]))
simple('permute_far', 'no permutation', lambda f, i, x, b, p: f.op(83, [t44], varint(2) + bytes(4) + b'\2\0\0\0' + varint(f.constant(t44, 1.0).number)))
simple('permute_short', 'no permutation', lambda f, i, x, b, p: f.op(83, [t44], varint(1) + bytes(4) + varint(f.constant(t44, 1.0).number)))
simple('extract', 'do not fit', lambda f, i, x, b, p: f.extract(tile('f32', 8, 2), f.constant(t44, 1.0), [i, i]))
simple('extract_i64', 'do not fit', lambda f, i, x, b, p: f.extract(tile('f32', 2, 2), f.constant(t44, 1.0), [i, f.constant('i64', 0)]))
simple('extract_rank', 'do not fit', lambda f, i, x, b, p: f.extract(tile('f32', 2, 2), f.constant(t44, 1.0), [i]))
simple('iota', 'no row of integers', lambda f, i, x, b, p: f.iota(t44))
simple('pack', 'not the bits', lambda f, i, x, b, p: f.pack(tile('i8', 4), f.iota(tile('i32', 2))))
simple('mma', 'do not fit each other', lambda f, i, x, b, p: f.mmaf(f.constant(tile('f16', 8, 4), 1.0), f.constant(tile('f16', 8, 4), 1.0), f.constant(tile('f32', 8, 4), 1.0)))
simple('mma_scales', 'shapes of the scales', lambda f, i, x, b, p: f.mmaf_scaled(*[f.constant(tile(s, 4, 4), 1.0) for s in ('e4m3', 'e4m3', 'f32')],
                                                                               *[f.constant(tile('e8m0', *s), 1.0) for s in ((4, 2), (4, 4))]))

# memory
simple('base', 'no pointer to the tensor', lambda f, i, x, b, p: f.make_tensor_view(tensor_view('f16', [4], [1]), p, [], []))
simple('shape', 'not as many scalar integers', lambda f, i, x, b, p: f.make_tensor_view(tensor_view('f32', [DYNAMIC], [1]), p, [], []))
simple('strides', 'not as many scalar integers', lambda f, i, x, b, p: f.make_tensor_view(tensor_view('f32', [4], [1]), p, [], [i]))
simple('view_of_other', 'no view of the operand', lambda f, i, x, b, p: f.make_partition_view(
    partition_view(tensor_view('f32', [8], [1]), [4]), f.tensor_view(p, [4], [1])))
simple('view_kind', 'no view of the operand', lambda f, i, x, b, p: f.op(115, [partition_view(tensor_view('f32', [8], [1]), [4])],
                                                                       varint(f.tensor_view(p, [8], [1]).number)))
simple('index', 'not one index for each', lambda f, i, x, b, p: f.load_view_tko(f.partition(f.tensor_view(p, [8], [1]), [4]), []))
simple('index_type', 'an index is no integer', lambda f, i, x, b, p: f.load_view_tko(f.partition(f.tensor_view(p, [8], [1]), [4]), [x]))
simple('sparse_index', 'an index is no integer', lambda f, i, x, b, p: f.load_view_tko(f.gather(f.tensor_view(p, [8], [1]), [4], 0), [i]))
simple('stored', 'not as those of the view', lambda f, i, x, b, p: f.store_view_tko(x, f.partition(f.tensor_view(p, [8], [1]), [4]), [i]))
simple('no_view', 'is of no view of tiles', lambda f, i, x, b, p: f.op(62, ['f32', token], b'\0\0' + varint(0) * 2, counted=True))
simple('no_pointers', 'no tile of pointers', lambda f, i, x, b, p: f.op(61, ['f32', token], b'\0\0' + varint(1)))
simple('mask', 'does not fit the pointers', lambda f, i, x, b, p: f.load_ptr_tko(p, mask=i))
simple('padding', 'the padding is not', lambda f, i, x, b, p: f.load_ptr_tko(p, mask=b, padding=i))
simple('value_shape', 'has not the shape of the pointers', lambda f, i, x, b, p: f.store_ptr_tko(p, f.constant(t44, 1.0)))
simple('token', 'the token is none', lambda f, i, x, b, p: f.load_ptr_tko(p, token=i))
simple('last_token', 'the last result is no token', lambda f, i, x, b, p: f.op(101, ['f32'], b'\0\0' + varint(3) + varint(1)))
simple('dimensions', 'one scalar integer for each dimension', lambda f, i, x, b, p: f.op(47, ['i32'], varint(0), counted=True))
simple('global_type', 'the result is no pointer', lambda f, i, x, b, p: f.op(44, ['i32'], varint(f.m.string('g'))))
simple('block_id', 'no scalar integer', lambda f, i, x, b, p: f.op(48, ['f32'] * 3))


# regions
def _for(f, bounds, carried=(), ends=None):
    with f.for_(*bounds, carried):
        f.continue_(*(ends if ends is not None else carried))


def _if(f, condition, results=(), ends=((), ())):
    with f.if_(condition, results) as choice:
        f.yield_(*ends[0])
        choice.otherwise()
        f.yield_(*ends[1])


def _loop(f, write, carried=(), results=()):
    with f.loop(carried, results) as loop:
        write(loop)


def _reduce(f, tiles, identities, ends, dim=0):
    with f.reduce(tiles, dim, identities) as r:
        f.yield_(*ends(r))


simple('for_bounds', 'not scalars of one integer type', lambda f, i, x, b, p: _for(f, (i, i, f.constant('i64', 1))))
simple('for_floats', 'not scalars of one integer type', lambda f, i, x, b, p: _for(f, (x, x, x)))
simple('for_carries', 'not what the loop carries', lambda f, i, x, b, p: _for(f, (i, i, i), [x], ends=[i]))
simple('for_forgets', 'not what the loop carries', lambda f, i, x, b, p: _for(f, (i, i, i), [x], ends=[]))
simple('if_condition', 'its condition is no scalar i1', lambda f, i, x, b, p: _if(f, i))
simple('if_results', 'not what the if gives', lambda f, i, x, b, p: _if(f, b, ['f32'], ((x,), (i,))))
simple('if_forgets', 'not what the if gives', lambda f, i, x, b, p: _if(f, b, ['f32'], ((x,), ())))
simple('loop_break', 'not what the loop gives', lambda f, i, x, b, p: _loop(f, lambda loop: f.break_(i), results=['f32']))
simple('loop_yields', 'neither in an if nor in a reduction', lambda f, i, x, b, p: _loop(f, lambda loop: f.yield_()))
simple('for_break', 'is in no loop', lambda f, i, x, b, p: break_in_for(f, i))
simple('break_outside', 'is in no loop', lambda f, i, x, b, p: f.break_())
simple('continue_outside', 'is in no loop', lambda f, i, x, b, p: f.continue_())
simple('return_something', 'gives something', lambda f, i, x, b, p: f.return_(x))
simple('return_in_reduce', 'is in a reduction', lambda f, i, x, b, p: return_in_reduce(f, b))
simple('reduce_dim', 'there is no such dimension', lambda f, i, x, b, p: reduce_dim(f))
simple('reduce_identity', 'of the wrong type', lambda f, i, x, b, p: reduce_identity(f))
simple('reduce_count', 'not as many as each other', lambda f, i, x, b, p: _reduce(f, [f.iota(tile('i32', 4))], [], lambda r: r.arguments[:1]))
simple('reduce_yields', 'not one scalar for each tile', lambda f, i, x, b, p: _reduce(f, [f.iota(tile('i32', 4))], [0], lambda r: r.arguments))
simple('reduce_shapes', 'not tiles of one shape', lambda f, i, x, b, p: _reduce(f, [f.iota(tile('i32', 4)), f.iota(tile('i32', 8))], [0, 0],
                                                                              lambda r: r.arguments[:2]))
simple('no_terminator', 'ends without a terminator', lambda f, i, x, b, p: _loop(f, lambda loop: f.absf(x)))
simple('two_terminators', 'operations follow a terminator', lambda f, i, x, b, p: _loop(f, lambda loop: (f.break_(), f.break_())))
simple('two_returns', 'operations follow a terminator', lambda f, i, x, b, p: f.return_())
simple('regions', '1 regions, not 2', lambda f, i, x, b, p: f.op(50, [], varint(b.number) + varint(1), counted=True))
simple('no_then', '0 blocks in a region', lambda f, i, x, b, p: f.op(50, [], varint(b.number) + varint(2) + varint(0) * 2, counted=True))
simple('blocks', '2 blocks in a region', lambda f, i, x, b, p: f.op(65, [], varint(0) + varint(1) + varint(2), counted=True))
simple('too_deep', 'nested deeper than 64', lambda f, i, x, b, p: nest(f, b, 65))


def break_in_for(f, i):
    with f.for_(i, i, i):
        f.break_()


def return_in_reduce(f, b):
    with f.reduce([f.iota(tile('i32', 4))], 0, [0]) as r:
        with f.if_(b) as choice:
            f.return_()
            choice.otherwise()
            f.yield_()
        f.yield_(r.arguments[0])


def reduce_dim(f):
    with f._fold(88, [f.iota(tile('i32', 4))], ['i32'], varint(1), [0]) as r:
        f.yield_(r.arguments[0])


def reduce_identity(f):
    tiles = [f.iota(tile('i32', 4))]
    array = varint(1) + identity(f.m, 'f32', 0.0)
    with f.region(88, ['i32'], varint(0) + array + varint(1) + varint(tiles[0].number), 1, [tile('i32')] * 2) as r:
        f.yield_(r.arguments[0])


def nest(f, b, depth):
    with f.if_(b) as choice:
        if depth > 1:
            nest(f, b, depth - 1)
        f.yield_()
        choice.otherwise()
        f.yield_()


@bad('not of the types that it carries')
def for_results(version):
    m, f = entry(version, ['i32', 'f32'])
    i, x = f.arguments
    with f.region(41, ['i32'], varint(0) + varint(4) + varint(i.number) * 3 + varint(x.number), 1, [i.type, x.type]):
        f.continue_(x)
    f.return_()
    return m


@bad('its region does not take what it carries')
def for_arguments(version):
    m, f = entry(version, ['i32', 'f32'])
    i, x = f.arguments
    with f.region(41, ['f32'], varint(0) + varint(4) + varint(i.number) * 3 + varint(x.number), 1, [i.type]):
        f.continue_(x)
    f.return_()
    return m


@bad('its region does not take what it carries')
def loop_arguments(version):
    m, f = entry(version, ['f32'])
    with f.region(65, [], varint(1) + varint(0), 1, []):
        f.break_()
    f.return_()
    return m


# types
def bad_type(name, message, t, version=1303):
    def make(version):
        m, f = entry(version)
        f.op(68, [t])
        f.return_()
        return m
    BAD['type_' + name] = version, make, message


t8 = tensor_view('f32', [8, 8], [8, 1])
bad_type('number', 'a type of number 99 is not known', ('raw', varint(99)))
bad_type('of_preview', 'a type of number 130 is not known', ('raw', varint(130)), 1304)
bad_type('new', 'came with version 13.3', ('scalar', 'i4'), 1302)
bad_type('new_view', 'came with version 13.3', gather_view(t8, [4, 4], 0), 1302)
bad_type('three', 'no power of two', tile('f32', 3))
bad_type('zero', 'no power of two', tile('f32', 4, 0))
bad_type('large', 'more than 1048576 elements', tile('f32', 2048, 1024))
bad_type('huge', 'more than 1048576 elements', tile('f32', 1 << 62))
bad_type('rank', 'a rank of 9', tile('f32', *[1] * 9))
bad_type('of_tile', 'neither a number nor a pointer', ('tile', tile('f32'), (4,)))
bad_type('strides', '1 dimensions with 2 strides', tensor_view('f32', [4], [1, 1]))
bad_type('negative', 'dimension 0 of a tensor is -4', tensor_view('f32', [-4], [1]))
bad_type('vast', 'dimension 0 of a tensor is 281474976710657', tensor_view('f32', [(1 << 48) + 1], [1]))
bad_type('far', 'stride 0 of a tensor is 4539909899366170625', tensor_view('f32', [4], [4539909899366170625]))
bad_type('far_back', 'stride 1 of a tensor is -281474976710657', tensor_view('f32', [4, 4], [1, -(1 << 48) - 1]))
bad_type('view_of_tile', 'something that is no tensor', partition_view(tile('f32', 4, 4), [4, 4]))
bad_type('view_rank', 'tiles of rank 1 of a tensor of rank 2', partition_view(t8, [4]))
bad_type('dim_map', 'dimension 1 of a tile is dimension 0', partition_view(t8, [4, 4], [0, 0]))
bad_type('dim_map_far', 'dimension 0 of a tile is dimension 2', partition_view(t8, [4, 4], [2, 0]))
bad_type('dim_map_short', 'not as many numbers as dimensions', partition_view(t8, [4, 4], [0]))
bad_type('steps', 'tiles that are 0 elements apart', strided_view(t8, [4, 4], [4, 0]))
bad_type('sparse', 'there is no dimension 2', gather_view(t8, [4, 4], 2))
bad_type('itself', 'nested too deep, or in themselves', ('raw', varint(12) + varint(0)))
bad_type('kind', 'a type that no value has', function([]))


# versions, functions, globals, sections
def bad_module(name, message, change, version=1303):
    def make(version):
        m, f = entry(version, ['i32'])
        f.return_()
        return change(m, f) or m
    BAD[name] = version, make, message


def set_minor(m, minor):
    m.minor = minor


def raw(data):
    class Bytes:
        def bytes(self):
            return data
    return Bytes()


def without(m, number):
    return raw(m.bytes([s for s in m.sections() if s[0] != number]))


bad_module('version_0', 'version 13.0.0 is not known', lambda m, f: set_minor(m, 0))
bad_module('version_6', 'version 13.6.0 is not known', lambda m, f: set_minor(m, 6))
bad_module('tag', 'version 13.3.2 is not known', lambda m, f: setattr(m, 'tag', 2))
bad_module('magic', 'no Tile IR bytecode', lambda m, f: raw(b'\x7fTileIS\0' + m.bytes()[8:]))
bad_module('no_strings', 'no strings or no functions', lambda m, f: without(m, 1))
bad_module('no_functions', 'no strings or no functions', lambda m, f: without(m, 2))
bad_module('no_types', 'there is no type', lambda m, f: without(m, 5))
bad_module('twice', 'a second section 1', lambda m, f: raw(m.bytes(m.sections() + m.sections()[-1:])))
bad_module('section', 'a section of number 9', lambda m, f: raw(m.bytes(m.sections() + [(9, 1, b'')])))
bad_module('aligned', 'aligned to 3 bytes', lambda m, f: raw(m.bytes([(2, 3, b'')])))
bad_module('device_function', 'is not a kernel', lambda m, f: setattr(f, 'flags', 0))
bad_module('two_of_one_name', 'a second k', lambda m, f: m.entry('k', []).return_())
bad_module('unnamed', 'has no name', lambda m, f: m.entry('', []).return_())
bad_module('named_as_global', 'a second k', lambda m, f: m.global_('k', 'i32', 1))
bad_module('no_return', 'neither in an if nor in a reduction', lambda m, f: setattr(f, 'code', bytearray(b'\x6d\0\0')))
bad_module('two_tokens', '2 operands', lambda m, f: setattr(f, 'code', bytearray(varint(120) + varint(m.type(token)) + b'\2\0\0')), 1304)
bad_module('empty', 'ends without a terminator', lambda m, f: setattr(f, 'code', bytearray()))
bad_module('argument', 'argument 0 of a function is no scalar', lambda m, f: m.entry('l', [tile('i32', 4)]).return_())
bad_module('alignment', 'an alignment of 3 bytes', lambda m, f: m.global_('g', 'i32', 1, alignment=3))
bad_module('visibility', 'there is no visibility 2', lambda m, f: m.global_('g', 'i32', 1, private=2))
bad_module('too_early', 'came with version 13.4', lambda m, f: setattr(f, 'code', bytearray(b'\x77\0\0')))
bad_module('hints', 'are no hints', lambda m, f: setattr(f, '_hints', lambda: varint(3) + b'\1') or setattr(f, 'hints', {1: 1}))
bad_module('many_arguments', 'too many arguments', lambda m, f: [m.entry(f'k{i}', ['i32'] * 5000).return_() for i in range(100)] and None)
bad_module('long_number', 'a number is too long', lambda m, f: setattr(f, 'code', bytearray(b'\xff' * 11)))
bad_module('longer_number', 'a number is too long', lambda m, f: setattr(f, 'code', bytearray(b'\xff' * 9 + b'\4')))
bad_module('number_of_65_bits', 'a number is too long', lambda m, f: setattr(f, 'code', bytearray(b'\xff' * 9 + b'\3')))
bad_module('table', 'item 1 starts where it cannot', lambda m, f: raw(m.bytes([s for s in m.sections() if s[0] != 1] + [
    (1, 4, b'\2\xcb\xcb\xcb' + b'\1\0\0\0' + b'\0\0\0\0' + b'k')])))
bad_module('table_far', 'item 0 starts where it cannot', lambda m, f: raw(m.bytes([s for s in m.sections() if s[0] != 1] + [
    (1, 4, b'\1\xcb\xcb\xcb' + b'\2\0\0\0' + b'k')])))
bad_module('identity_count', '9 operands; the most is 8', lambda m, f: setattr(
    f, 'code', bytearray(varint(88) + varint(0) + varint(0) + varint(9) + bytes(30))))
bad_module('wide_identity', 'a number of more than 8 bits', lambda m, f: setattr(
    f, 'code', bytearray(varint(88) + varint(0) + varint(0) + varint(1) + varint(1) + varint(m.type(('scalar', 'i8'))) + varint(300) + bytes(8))))
bad_module('attributes_deep', 'attributes are nested too deep', lambda m, f: setattr(
    f, '_hints', lambda: varint(11) + varint(1) + varint(0) + varint(10) + varint(1) + varint(0) + b'\6\1' * 40 + b'\3\0') or
    setattr(f, 'hints', {1: 1}))
