# SPDX-License-Identifier: Apache-2.0
"""An assembler of CUDA Tile IR bytecode for tests.

    m = Module(version=1303)
    f = m.entry('double', [ptr('f32'), 'i32'])
    x, n = f.arguments
    view = f.partition(f.tensor_view(x, [n], [1]), [128])
    i, _, _ = f.get_tile_block_id()
    a, token = f.load_view_tko(view, [i])
    f.store_view_tko(f.addf(a, a), view, [i], token=token)
    f.return_()
    open('double.tileirbc', 'wb').write(m.bytes())

Each operation is a method of Function with its name (`for_`, `if_`, ... where Python has the word). It takes operands, then
attributes by name, and gives a Value, a list of Values, or nothing. Types of results follow from the operands where they
can; else `type` comes first. Regions are `with` statements:

    with f.for_(zero, n, one, [start]) as loop:
        i, total = loop.arguments
        f.continue_(f.addi(total, i))
    total, = loop.results

    with f.if_(condition, ['i32']) as choice:
        f.yield_(a)
        choice.otherwise()
        f.yield_(b)

    with f.reduce([tile], 0, [0.0]) as sum:
        f.yield_(f.addf(*sum.arguments))

Nothing is verified, so wrong modules can be written, too: `f.op(...)` writes any operation byte by byte.
"""
import math
import struct

DYNAMIC = -(1 << 63)

# name: number in the bytecode, bits, exponent bits, mantissa bits
SCALARS = {
    'i1': (0, 1, 0, 0), 'i4': (22, 4, 0, 0), 'i8': (1, 8, 0, 0), 'i16': (2, 16, 0, 0), 'i32': (3, 32, 0, 0), 'i64': (4, 64, 0, 0),
    'f16': (5, 16, 5, 10), 'bf16': (6, 16, 8, 7), 'f32': (7, 32, 8, 23), 'tf32': (8, 19, 8, 10), 'f64': (9, 64, 11, 52),
    'e4m3': (10, 8, 4, 3), 'e5m2': (11, 8, 5, 2), 'e8m0': (18, 8, 8, 0), 'e2m1': (19, 4, 2, 1),
}
ROUNDINGS = ['nearest_even', 'zero', 'negative_inf', 'positive_inf', 'approx', 'full', 'nearest_int_to_zero', 'nearest_away']
PREDICATES = ['eq', 'ne', 'lt', 'le', 'gt', 'ge']
ORDERINGS = ['weak', 'relaxed', 'acquire', 'release', 'acq_rel']
SCOPES = ['block', 'device', 'system']
RMW = ['and', 'or', 'xor', 'add', 'addf', 'max', 'min', 'umax', 'umin', 'xchg']
REDUCTIONS = ['add', 'min', 'max', 'and', 'or', 'xor', 'umin', 'umax']
OVERFLOWS = ['none', 'no_signed_wrap', 'no_unsigned_wrap', 'no_wrap']
PADDINGS = ['zero', 'neg_zero', 'nan', 'pos_inf', 'neg_inf']


# ---- numbers ----

def varint(n):
    out = bytearray()
    while n > 0x7f:
        out.append(n & 0x7f | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def signed(n):
    return varint(2 * n if n >= 0 else -2 * n - 1)


def _decode_small(code, exponent, mantissa):
    """The value of a number of 4 or 8 bits; None: not finite."""
    if mantissa == 0:
        return None if code == 255 else 2.0 ** (code - 127)
    sign = -1.0 if code >> (exponent + mantissa) else 1.0
    e, m = code >> mantissa & (1 << exponent) - 1, code & (1 << mantissa) - 1
    if (exponent, mantissa) == (4, 3) and code & 0x7f == 0x7f:
        return None
    if (exponent, mantissa) == (5, 2) and e == 31:
        return None
    bias = (1 << exponent - 1) - 1
    return sign * (m * 2.0 ** (1 - bias - mantissa) if e == 0 else (1 + m / (1 << mantissa)) * 2.0 ** (e - bias))


def bits_of(scalar, value):
    """The bits of a number (a float is rounded to the nearest, even); a number given as bytes is its bits."""
    number, bits, exponent, mantissa = SCALARS[scalar]
    if isinstance(value, bytes):
        return int.from_bytes(value, 'little')
    if exponent == 0:
        return int(value) & (1 << bits) - 1
    if scalar == 'f64':
        return struct.unpack('<Q', struct.pack('<d', value))[0]
    if scalar == 'f16':
        return struct.unpack('<H', struct.pack('<e', value))[0]
    if bits <= 8:
        codes = [c for c in range(1 << bits) if _decode_small(c, exponent, mantissa) is not None]
        if not math.isfinite(value):
            return {'e5m2': 0x7c if value == math.inf else 0xfc if value == -math.inf else 0x7e}.get(scalar, (1 << bits - 1) - 1)
        return min(codes, key=lambda c: (abs(_decode_small(c, exponent, mantissa) - value), c & 1,
                                         math.copysign(1, _decode_small(c, exponent, mantissa)) != math.copysign(1, value)))
    word = struct.unpack('<I', struct.pack('<f', value))[0]
    drop = 23 - mantissa
    if drop and math.isfinite(value):
        word += (1 << drop - 1) - 1 + (word >> drop & 1)
    return word >> drop


# ---- types: tuples that hash ----

def pointer(to):
    """A pointer as an element."""
    return ('pointer', _element(to))


def _element(scalar):
    return ('scalar', scalar) if isinstance(scalar, str) else scalar


def tile(element, *shape):
    """tile('f32', 4, 64); tile('i32') is a scalar."""
    return ('tile', _element(element), tuple(shape))


def ptr(to):
    """A scalar tile with a pointer: the type of a kernel's argument."""
    return tile(pointer(to))


TOKEN = token = ('token',)  # the second name for those who have a `token` of their own


def tensor_view(element, shape, strides):
    return ('tensor_view', _element(element), tuple(shape), tuple(strides))


def partition_view(tensor, shape, dim_map=None, padding=None):
    return ('partition_view', tuple(shape), tensor, tuple(dim_map if dim_map is not None else range(len(shape))), padding)


def strided_view(tensor, shape, steps, dim_map=None, padding=None):
    return ('strided_view', tuple(shape), tuple(steps), tensor, tuple(dim_map if dim_map is not None else range(len(shape))), padding)


def gather_view(tensor, shape, sparse_dim, padding=None):
    return ('gather_view', tuple(shape), tensor, sparse_dim, padding)


def function(inputs, results=()):
    return ('function', tuple(inputs), tuple(results))


def _type(t):
    return tile(t) if isinstance(t, str) else t


def element_of(t):
    return t[2][1] if t[0] in ('partition_view', 'gather_view') else t[3][1] if t[0] == 'strided_view' else t[1]


def shape_of(t):
    return t[1] if t[0] in ('partition_view', 'gather_view', 'strided_view') else t[2]


def with_element(t, element):
    return ('tile', _element(element), t[2])


# ---- tables ----

class Table:
    """Items, each once, numbered as they come."""

    def __init__(self, width):
        self.width, self.items = width, {}

    def number(self, item):
        return self.items.setdefault(bytes(item), len(self.items))

    def bytes(self):
        out = bytearray(varint(len(self.items)))
        out += b'\xcb' * (-len(out) % self.width)
        at = 0
        for item in self.items:
            out += at.to_bytes(self.width, 'little')
            at += len(item)
        return bytes(out) + b''.join(self.items)


def _list(numbers, width):
    return varint(len(numbers)) + b''.join(n.to_bytes(width, 'little', signed=True) for n in numbers)


class Value:
    def __init__(self, number, type):
        self.number, self.type = number, type


class Module:
    def __init__(self, version=1303, tag=0, file='kernel.py'):
        self.minor, self.tag = version - 1300, tag
        self.strings, self.types, self.constants, self.places = Table(4), Table(4), Table(8), Table(4)
        self.functions, self.globals = [], bytearray()
        self.global_count = 0
        self.file = file
        self.producer = None

    def string(self, text):
        return self.strings.number(text if isinstance(text, bytes) else text.encode())

    def type(self, t):
        """A type's number."""
        t = _type(t)
        kind, new = t[0], self.minor >= 3
        padding = t[-1] if kind.endswith('_view') and kind != 'tensor_view' else None
        pad = b'' if padding is None else bytes([PADDINGS.index(padding)])
        pad = pad if new else bytes([padding is not None]) + pad
        flags = varint(padding is not None) if new else b''
        attribute = varint(0) if self.minor >= 4 else b''  # a pointer has no attributes
        if kind == 'scalar':
            out = varint(SCALARS[t[1]][0])
        elif kind == 'token':
            out = varint(17)
        elif kind == 'pointer':
            out = varint(12) + attribute + varint(self.type(t[1]))
        elif kind == 'tile':
            out = varint(13) + varint(self.type(t[1])) + _list(t[2], 8)
        elif kind == 'tensor_view':
            out = varint(14) + attribute + varint(self.type(t[1])) + _list(t[2], 8) + _list(t[3], 8)
        elif kind == 'partition_view':
            out = varint(15) + flags + _list(t[1], 4) + varint(self.type(t[2])) + _list(t[3], 4) + pad
        elif kind == 'strided_view':
            out = varint(21) + flags + _list(t[1], 4) + _list(t[2], 4) + varint(self.type(t[3])) + _list(t[4], 4) + pad
        elif kind == 'gather_view':
            out = varint(20) + flags + _list(t[1], 4) + varint(self.type(t[2])) + varint(t[3]) + pad
        elif kind == 'function':
            out = varint(16) + b''.join(varint(len(s)) + b''.join(varint(self.type(x)) for x in s) for s in t[1:])
        else:
            out = t[1]  # ('raw', bytes)
        return self.types.number(out)

    def data(self, t, values):
        """The number of the constant with a tile's elements: one for all, or a flat list."""
        t = _type(t)
        scalar = t[1][1]
        if isinstance(values, bytes):
            raw = values
        elif scalar == 'i1' and isinstance(values, (list, tuple)):
            bits = sum(bool(v) << i for i, v in enumerate(values))
            raw = bits.to_bytes((len(values) + 7) // 8, 'little')
        elif scalar == 'i1':
            raw = b'\xff' if values else b'\0'
        else:
            width = (SCALARS[scalar][1] + 7) // 8
            raw = b''.join(bits_of(scalar, v).to_bytes(width, 'little') for v in (values if isinstance(values, (list, tuple)) else [values]))
        return self.constants.number(varint(len(raw)) + raw)

    def global_(self, name, t, values, alignment=0, constant=False, private=False):
        self.global_count += 1
        self.globals += varint(self.string(name)) + varint(self.type(t)) + varint(self.data(t, values)) + varint(alignment)
        if self.minor >= 3:
            self.globals += bytes([private, constant])

    def entry(self, name, arguments, **hints):
        """hints: sm_90={'occupancy': 2}, default={...}; keys num_cta_in_cga, occupancy, num_worker_warps_per_cta."""
        f = Function(self, name, [_type(a) for a in arguments], hints)
        self.functions.append(f)
        return f

    def _place(self, function, line):
        """The number, from 1, of the place of a line."""
        if isinstance(line, tuple):
            callee, caller = [self._place(function, n) for n in line]
            return self.places.number(varint(6) + varint(callee) + varint(caller)) + 1
        file = varint(2) + varint(self.string(self.file)) + varint(self.string('/'))
        f = self.places.number(file) + 1
        unit = self.places.number(varint(1) + varint(f)) + 1
        scope = varint(5) + varint(f) + varint(1) + varint(self.string(function)) * 2 + varint(unit) + varint(1)
        s = self.places.number(scope + (varint(0) if self.minor >= 5 else b'')) + 1
        return self.places.number(varint(4) + varint(s) + varint(self.string(self.file)) + varint(line) + varint(1)) + 1

    def _lines(self):
        lines = [[self._place(f.name, n) if n else 0 for n in [next(filter(None, f.lines), 0)] + f.lines] for f in self.functions]
        out = bytearray(varint(len(lines)))
        out += b'\xcb' * (-len(out) % 4)
        at = 0
        for of in lines:
            out += at.to_bytes(4, 'little')
            at += len(of)
        out += varint(at)
        out += b'\xcb' * (-len(out) % 8)
        for of in lines:
            for n in of:
                out += n.to_bytes(8, 'little')
        if not self.places.items:
            self.places.number(b'\0')
        table = self.places.bytes()
        count = varint(len(self.places.items))
        out += count
        out += b'\xcb' * (-len(out) % 4)
        start = len(count) + -len(count) % 4
        return bytes(out) + table[start:]

    def sections(self):
        """Number, alignment, contents of each section."""
        functions = varint(len(self.functions)) + b''.join(f.bytes(i + 1) for i, f in enumerate(self.functions))
        out = [(2, 8, functions)]
        if self.global_count:
            out.append((6, 1, varint(self.global_count) + bytes(self.globals)))
        if self.producer:
            out.append((7, 1, varint(self.string(self.producer))))
        out.append((4, 8, self.constants.bytes()))
        out.append((3, 8, self._lines()))
        out.append((5, 4, self.types.bytes()))
        out.append((1, 4, self.strings.bytes()))
        return out

    def bytes(self, sections=None):
        out = bytearray(b'\x7fTileIR\0') + bytes([13, self.minor]) + self.tag.to_bytes(2, 'little')
        for number, alignment, contents in sections or self.sections():
            out += bytes([number | (0x80 if alignment > 1 else 0)]) + varint(len(contents))
            if alignment > 1:
                out += varint(alignment)
                out += b'\xcb' * (-len(out) % alignment)
            out += contents
        return bytes(out) + b'\0'


class Region:
    """Of an operation with regions, inside of `with`: `arguments`; after it: `results`."""

    def __init__(self, f, result_types, regions):
        self.f, self.result_types, self.regions = f, result_types, regions
        self.arguments, self.results = [], []

    def _open(self, types):
        f = self.f
        self.saved = f.code, f.count, f.next
        f.code, f.count = bytearray(), 0
        self.types = types
        self.arguments = [f.value(t) for t in types]

    def _close(self):
        f = self.f
        body, count = f.code, f.count
        f.code, f.count, f.next = self.saved
        types = b''.join(varint(f.m.type(t)) for t in self.types)
        f.code += varint(1) + varint(len(self.types)) + types + varint(count) + body

    def otherwise(self):
        self._close()
        self._open([])

    def __enter__(self):
        self._open(self.regions)
        return self

    def __exit__(self, kind, value, traceback):
        if kind is None:
            self._close()
            self.results = [self.f.value(t) for t in self.result_types]


class Common:
    """A function being written, without operations."""

    def __init__(self, m, name, argument_types, hints):
        self.m, self.name, self.argument_types, self.hints = m, name, argument_types, hints
        self.code, self.count, self.next = bytearray(), 0, 0
        self.arguments = [self.value(t) for t in argument_types]
        self.line, self.lines = 0, []  # line: of the operations that follow; 0: unknown; a pair: in a function, called from there
        self.flags = 2  # a kernel

    def value(self, type):
        self.next += 1
        return Value(self.next - 1, _type(type))

    def _hints(self):
        out = varint(11) + varint(len(self.hints))
        for architecture, hints in self.hints.items():
            out += varint(self.m.string(architecture)) + varint(10) + varint(len(hints))
            for key, value in hints.items():
                out += varint(self.m.string(key)) + varint(1) + varint(self.m.type(('scalar', 'i32'))) + varint(value)
        return out

    def bytes(self, place):
        m = self.m
        out = varint(m.string(self.name)) + varint(m.type(function(self.argument_types)))
        hinted = m.minor >= 5 or bool(self.hints)
        out += bytes([self.flags | (4 if self.hints and m.minor < 5 else 0)]) + varint(place)
        out += self._hints() if hinted else b''
        out += varint(6) + varint(0) if m.minor >= 5 else b''
        return out + varint(len(self.code)) + bytes(self.code)

    # ---- any operation ----

    def op(self, number, results=(), body=b'', counted=False):
        """Writes number, types of results (after their count if `counted`), then `body`. The results are Values."""
        self.start(number, results, body, counted)
        return [self.value(t) for t in results]

    def start(self, number, results=(), body=b'', counted=False):
        self.lines.append(self.line)
        self.count += 1
        self.code += varint(number) + (varint(len(results)) if counted else b'')
        self.code += b''.join(varint(self.m.type(t)) for t in results) + body

    def region(self, number, results, body, regions, arguments):
        self.start(number, results, body + varint(regions), True)
        return Region(self, [_type(t) for t in results], arguments)

    def since(self, minor, body):
        return body if self.m.minor >= minor else b''


def _values(*values):
    return b''.join(varint(v.number) for v in values)


def _counted(values):
    return varint(len(values)) + _values(*values)


def _name(names, name):
    return varint(names.index(name))


def _flags(*flags):
    return varint(sum(bool(f) << i for i, f in enumerate(flags)))


def _optional(*values):
    return _values(*[v for v in values if v is not None])


def _same(number, count):
    """An operation whose operands and result have one type."""
    def method(self, *operands):
        assert len(operands) == count
        return self.op(number, [operands[0].type], _values(*operands))[0]
    return method


for _n, (_number, _count) in dict(
        absf=(0, 1), absi=(1, 1), ceil=(13, 1), cos=(18, 1), cosh=(19, 1), floor=(39, 1), log=(63, 1), log2=(64, 1), negf=(79, 1), sin=(98, 1),
        sinh=(99, 1), tan=(105, 1), andi=(4, 2), ori=(82, 2), xori=(108, 2), mulhii=(77, 2), offset=(81, 2), pow=(84, 2), remf=(89, 2),
        atan2=(110, 2), fpow_i=(121, 2)).items():
    setattr(Common, _n, _same(_number, _count))


def _typed(number):
    """An operation of one operand that says its result's type."""
    def method(self, type, operand):
        return self.op(number, [_type(type)], _values(operand))[0]
    return method


for _n, _number in dict(bitcast=9, broadcast=11, int_to_ptr=51, ptr_to_int=86, ptr_to_ptr=87, reshape=91, pack=111, unpack=112,
                        make_partition_view=66, make_gather_scatter_view=115, make_strided_view=116).items():
    setattr(Common, _n, _typed(_number))


def _float_binary(number):
    def method(self, a, b, rounding='nearest_even', flush_to_zero=False):
        return self.op(number, [a.type], _flags(flush_to_zero) + _name(ROUNDINGS, rounding) + _values(a, b))[0]
    return method


for _n, _number in dict(addf=2, divf=20, mulf=76, subf=103).items():
    setattr(Common, _n, _float_binary(_number))


def _wrapping(number):
    def method(self, a, b, overflow='none'):
        return self.op(number, [a.type], _name(OVERFLOWS, overflow) + _values(a, b))[0]
    return method


for _n, _number in dict(addi=3, muli=78, shli=96, subi=104).items():
    setattr(Common, _n, _wrapping(_number))


def _signed_binary(number):
    def method(self, a, b, signed=True):
        return self.op(number, [a.type], bytes([signed]) + _values(a, b))[0]
    return method


for _n, _number in dict(maxi=70, mini=72, remi=90, shri=97).items():
    setattr(Common, _n, _signed_binary(_number))


def _extreme(number):
    def method(self, a, b, propagate_nan=False, flush_to_zero=False):
        return self.op(number, [a.type], _flags(propagate_nan, flush_to_zero) + _values(a, b))[0]
    return method


for _n, _number in dict(maxf=69, minf=71).items():
    setattr(Common, _n, _extreme(_number))


def _terminator(number):
    def method(self, *operands):
        self.op(number, [], _counted(operands), counted=True)
    return method


for _n, _number in dict(break_=10, continue_=17, return_=92, yield_=109).items():
    setattr(Common, _n, _terminator(_number))


class Function(Common):

    def assert_(self, condition, message):
        self.op(5, [], varint(self.m.string(message)) + _values(condition))

    def assume(self, value, attribute):
        """attribute: div_by(), bounded(), same()."""
        return self.op(6, [value.type], attribute + _values(value))[0]

    def atomic_cas_tko(self, pointers, compare, value, mask=None, token=None, ordering='relaxed', scope='device'):
        body = _flags(mask, token) + _name(ORDERINGS, ordering) + _name(SCOPES, scope)
        return self.op(7, [value.type, TOKEN], body + _values(pointers, compare, value) + _optional(mask, token))

    def atomic_rmw_tko(self, pointers, mode, value, mask=None, token=None, ordering='relaxed', scope='device'):
        body = _flags(mask, token) + _name(ORDERINGS, ordering) + _name(SCOPES, scope) + _name(RMW, mode)
        return self.op(8, [value.type, TOKEN], body + _values(pointers, value) + _optional(mask, token))

    def atomic_red_view_tko(self, view, index, mode, value, token=None, ordering='relaxed', scope='device', inbounds=None):
        body = _flags(token) + _name(ORDERINGS, ordering) + _name(SCOPES, scope) + _name(RMW, mode)
        body += self.since(5, _list(inbounds or [0] * len(index), 1))
        body += _values(view) + _counted(index) + _values(value) + _optional(token)
        return self.op(117, [TOKEN], body, counted=True)[0]

    def cat(self, a, b, dim):
        shape = tuple(n + b.type[2][d] if d == dim else n for d, n in enumerate(a.type[2]))
        return self.op(12, [('tile', a.type[1], shape)], varint(dim) + _values(a, b))[0]

    def cmpf(self, predicate, a, b, ordered=True):
        return self.op(14, [with_element(a.type, 'i1')], _name(PREDICATES, predicate) + bytes([ordered]) + _values(a, b))[0]

    def cmpi(self, predicate, a, b, signed=True):
        return self.op(15, [with_element(a.type, 'i1')], _name(PREDICATES, predicate) + bytes([signed]) + _values(a, b))[0]

    def constant(self, type, values):
        """One value for all elements, a flat list, or the bytes as they are stored."""
        return self.op(16, [_type(type)], varint(self.m.data(type, values)))[0]

    def divi(self, a, b, signed=True, rounding='zero'):
        return self.op(21, [a.type], bytes([signed]) + _name(ROUNDINGS, rounding) + _values(a, b))[0]

    def exp(self, x, rounding='full'):
        return self.op(23, [x.type], self.since(3, _name(ROUNDINGS, rounding)) + _values(x))[0]

    def exp2(self, x, flush_to_zero=False):
        return self.op(24, [x.type], _flags(flush_to_zero) + _values(x))[0]

    def rsqrt(self, x, flush_to_zero=False):
        return self.op(93, [x.type], _flags(flush_to_zero) + _values(x))[0]

    def sqrt(self, x, rounding='nearest_even', flush_to_zero=False):
        return self.op(100, [x.type], _flags(flush_to_zero) + _name(ROUNDINGS, rounding) + _values(x))[0]

    def tanh(self, x, rounding='full'):
        return self.op(106, [x.type], self.since(2, _name(ROUNDINGS, rounding)) + _values(x))[0]

    def exti(self, type, x, signed=True):
        return self.op(37, [_type(type)], bytes([signed]) + _values(x))[0]

    def trunci(self, type, x, overflow='none'):
        return self.op(107, [_type(type)], _name(OVERFLOWS, overflow) + _values(x))[0]

    def ftof(self, type, x, rounding='nearest_even'):
        return self.op(42, [_type(type)], _name(ROUNDINGS, rounding) + _values(x))[0]

    def ftoi(self, type, x, signed=True, rounding='nearest_int_to_zero', saturating=False):
        return self.op(43, [_type(type)], self.since(4, _flags(saturating)) + bytes([signed]) + _name(ROUNDINGS, rounding) + _values(x))[0]

    def itof(self, type, x, signed=True, rounding='nearest_even'):
        return self.op(59, [_type(type)], bytes([signed]) + _name(ROUNDINGS, rounding) + _values(x))[0]

    def negi(self, x, overflow='none'):
        return self.op(80, [x.type], self.since(2, _name(OVERFLOWS, overflow)) + _values(x))[0]

    def fma(self, a, b, c, rounding='nearest_even', flush_to_zero=False):
        return self.op(40, [c.type], _flags(flush_to_zero) + _name(ROUNDINGS, rounding) + _values(a, b, c))[0]

    def select(self, condition, a, b):
        return self.op(95, [a.type], _values(condition, a, b))[0]

    def extract(self, type, x, index):
        return self.op(38, [_type(type)], _counted([x] + list(index)), counted=True)[0]

    def insert(self, part, whole, index):
        return self.op(118, [whole.type], _counted([part, whole] + list(index)), counted=True)[0]

    def permute(self, x, permutation):
        shape = tuple(x.type[2][p] for p in permutation)
        return self.op(83, [('tile', x.type[1], shape)], _list(permutation, 4) + _values(x))[0]

    def iota(self, type):
        return self.op(58, [type])[0]

    def get_global(self, name, type):
        return self.op(44, [ptr(type)], varint(self.m.string(name)))[0]

    def get_tile_block_id(self):
        return self.op(48, [tile('i32')] * 3)

    def get_num_tile_blocks(self):
        return self.op(46, [tile('i32')] * 3)

    def get_index_space_shape(self, view, type='i32'):
        return self.op(45, [_type(type)] * len(shape_of(view.type)), _values(view), counted=True)

    def get_tensor_shape(self, tensor, type='i32'):
        return self.op(47, [_type(type)] * len(shape_of(tensor.type)), _values(tensor), counted=True)

    def make_token(self):
        return self.op(68, [token])[0]

    def join_tokens(self, *tokens):
        return self.op(60, [token], _counted(tokens), counted=True)[0]

    def memory_fence_alias_tko(self, before):
        return self.op(122, [token], _values(before))[0]

    def gdc_launch_dependents_tko(self, before=None):
        return self.op(119, [token], _counted([before] if before else []))[0]

    def gdc_wait_tko(self, before=None):
        return self.op(120, [token], _counted([before] if before else []))[0]

    def alloca(self, element, count, alignment=16, in_global=False):
        return self.op(113, [ptr(element)], _flags(in_global) + varint(count) + varint(alignment))[0]

    def print_tko(self, format, *arguments, token=None):
        results = [TOKEN] if self.m.minor >= 2 else []
        body = self.since(2, _flags(token)) + varint(self.m.string(format)) + _counted(arguments) + _optional(token)
        return (self.op(85, results, body, counted=True) or [None])[0]

    # ---- memory ----

    def tensor_view(self, base, shape, strides):
        """Numbers in shape and strides are known ones; Values, those that are not."""
        known = [[n if isinstance(n, int) else DYNAMIC for n in numbers] for numbers in (shape, strides)]
        unknown = [[n for n in numbers if not isinstance(n, int)] for numbers in (shape, strides)]
        return self.make_tensor_view(tensor_view(base.type[1][1], *known), base, *unknown)

    def make_tensor_view(self, type, base, shape, strides):
        return self.op(67, [type], _values(base) + _counted(shape) + _counted(strides), counted=True)[0]

    def partition(self, tensor, shape, dim_map=None, padding=None):
        return self.make_partition_view(partition_view(tensor.type, shape, dim_map, padding), tensor)

    def strided(self, tensor, shape, steps, dim_map=None, padding=None):
        return self.make_strided_view(strided_view(tensor.type, shape, steps, dim_map, padding), tensor)

    def gather(self, tensor, shape, sparse_dim, padding=None):
        return self.make_gather_scatter_view(gather_view(tensor.type, shape, sparse_dim, padding), tensor)

    def _access(self, flags, ordering, scope, hints):
        """Flags, ordering, scope and hints; hints: {'sm_90': {'latency': 4}}."""
        out = _flags(scope, hints is not None, *flags) + _name(ORDERINGS, ordering)
        out += _name(SCOPES, scope) if scope else b''
        if hints is not None:
            out += Common(self.m, '', [], hints)._hints()[1:]
        return out

    def load_ptr_tko(self, pointers, mask=None, padding=None, token=None, ordering='weak', scope=None, hints=None):
        type = with_element(pointers.type, pointers.type[1][1])
        body = self._access([mask, padding, token], ordering, scope, hints)
        return self.op(61, [type, TOKEN], body + _values(pointers) + _optional(mask, padding, token))

    def store_ptr_tko(self, pointers, value, mask=None, token=None, ordering='weak', scope=None, hints=None):
        body = self._access([mask, token], ordering, scope, hints)
        return self.op(101, [TOKEN], body + _values(pointers, value) + _optional(mask, token))[0]

    def load_view_tko(self, view, index, token=None, ordering='weak', scope=None, hints=None, inbounds=None):
        body = self._access([token], ordering, scope, hints) + self.since(4, _list(inbounds or [0] * len(index), 1))
        type = ('tile', element_of(view.type), shape_of(view.type))
        return self.op(62, [type, TOKEN], body + _values(view) + _counted(index) + _optional(token), counted=True)

    def store_view_tko(self, value, view, index, token=None, ordering='weak', scope=None, hints=None, inbounds=None):
        body = self._access([token], ordering, scope, hints) + self.since(4, _list(inbounds or [0] * len(index), 1))
        body += _values(value, view) + _counted(index) + _optional(token)
        return self.op(102, [TOKEN], body, counted=True)[0]

    def multimem_load_reduce_view_tko(self, view, index, reduction, token=None, ordering='relaxed', scope='system'):
        body = _flags(scope, token) + _name(ORDERINGS, ordering) + (_name(SCOPES, scope) if scope else b'')
        body += _name(REDUCTIONS, reduction) + _list([0] * len(index), 1) + _values(view) + _counted(index) + _optional(token)
        return self.op(123, [('tile', element_of(view.type), shape_of(view.type)), TOKEN], body, counted=True)

    def multimem_reduce_view_tko(self, view, value, index, reduction, token=None, ordering='relaxed', scope='system'):
        body = _flags(token) + _name(ORDERINGS, ordering) + _name(SCOPES, scope) + _name(REDUCTIONS, reduction)
        body += _list([0] * len(index), 1) + _values(view, value) + _counted(index) + _optional(token)
        return self.op(124, [TOKEN], body, counted=True)[0]

    def multimem_store_view_tko(self, view, value, index, token=None, ordering='relaxed', scope='system'):
        body = _flags(scope, token) + _name(ORDERINGS, ordering) + (_name(SCOPES, scope) if scope else b'')
        body += _list([0] * len(index), 1) + _values(view, value) + _counted(index) + _optional(token)
        return self.op(125, [TOKEN], body, counted=True)[0]

    # ---- matrices ----

    def mmaf(self, a, b, c, fast=False):
        return self.op(73, [c.type], self.since(3, _flags(fast)) + _values(a, b, c))[0]

    def mmai(self, a, b, c, lhs_signed=True, rhs_signed=True):
        return self.op(74, [c.type], bytes([lhs_signed, rhs_signed]) + _values(a, b, c))[0]

    def mmaf_scaled(self, a, b, c, a_scale, b_scale):
        return self.op(114, [c.type], _values(a, b, c, a_scale, b_scale))[0]

    # ---- regions ----

    def for_(self, first, end, step, carried=(), unsigned=False):
        types = [v.type for v in carried]
        body = self.since(2, _flags(unsigned)) + _counted([first, end, step] + list(carried))
        return self.region(41, types, body, 1, [first.type] + types)

    def loop(self, carried=(), results=()):
        return self.region(65, [_type(t) for t in results], _counted(list(carried)), 1, [v.type for v in carried])

    def if_(self, condition, results=()):
        return self.region(50, [_type(t) for t in results], _values(condition), 2, [])

    def _fold(self, number, tiles, types, attributes, identities):
        scalars = [t for v in tiles for t in [('tile', v.type[1], ())] * 2]
        array = varint(len(identities)) + b''.join(identity(self.m, v.type[1][1], i) for v, i in zip(tiles, identities))
        return self.region(number, types, attributes + array + _counted(tiles), 1, scalars)

    def reduce(self, tiles, dim, identities):
        """arguments: of each tile what there is so far, then the new element."""
        types = [('tile', v.type[1], v.type[2][:dim] + v.type[2][dim + 1:]) for v in tiles]
        return self._fold(88, list(tiles), types, varint(dim), identities)

    def scan(self, tiles, dim, identities, reverse=False):
        return self._fold(94, list(tiles), [v.type for v in tiles], varint(dim) + bytes([reverse]), identities)


# ---- attributes ----

def identity(m, scalar, value):
    """A number as an attribute."""
    number, bits, exponent, _ = SCALARS[scalar]
    code = bits_of(scalar, value)
    if scalar == 'i1':
        return varint(3) + bytes([code])
    body = varint(code) if exponent == 0 else bytes([code]) if bits <= 8 else signed(code if code < 1 << 63 else code - (1 << 64))
    return varint(2 if exponent else 1) + varint(m.type(('scalar', scalar))) + body


def div_by(divisor, every=None, along=None):
    out = varint(8) + varint(divisor) + _flags(every is not None, along is not None)
    return out + b''.join(signed(n) for n in (every, along) if n is not None)


def bounded(lower=None, upper=None):
    out = varint(12) + _flags(lower is not None, upper is not None)
    return out + b''.join(signed(n) for n in (lower, upper) if n is not None)


def same(*counts):
    return varint(9) + _list(counts, 8)
