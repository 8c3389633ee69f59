# SPDX-License-Identifier: Apache-2.0
"""What the cases of run_tiles.py share: the driver, tiles in Python (a shape and a flat list), whole tiles loaded and stored."""
import ctypes as c
import itertools
import struct

import tile_ir as t

FORMATS = {'i8': 'b', 'i16': 'h', 'i32': 'i', 'i64': 'q', 'f16': 'e', 'f32': 'f', 'f64': 'd', 'i1': 'B', 'e4m3': 'B', 'e5m2': 'B', 'bf16': 'H',
           'tf32': 'f', 'e8m0': 'B', 'e2m1': 'B'}


# ---- the driver ----

class Gpu:
    def __init__(self):
        self.warps = 0  # of a block, as a hint; 0: none
        self.cuda = c.CDLL('libcuda.so.1')
        context = c.c_void_p()
        self.call('cuInit', 0)
        self.call('cuDevicePrimaryCtxRetain', c.byref(context), 0)
        self.call('cuCtxSetCurrent', context)

    def call(self, name, *arguments):
        status = getattr(self.cuda, name)(*arguments)
        if status:
            raise RuntimeError(f'{name}: error {status}')

    def upload(self, scalar, values):
        """A buffer in device memory."""
        return Buffer(self, scalar, struct.pack(f'<{len(values)}{FORMATS[scalar]}', *values))

    def run(self, module, grid, *arguments):
        if self.warps:
            module.functions[0].hints = {'default': {'num_worker_warps_per_cta': self.warps}}
        image, kernel = c.c_void_p(), c.c_void_p()
        self.call('cuModuleLoadData', c.byref(image), module.bytes())
        self.call('cuModuleGetFunction', c.byref(kernel), image, module.functions[0].name.encode())
        values = [a.address if isinstance(a, Buffer) else a for a in arguments]
        pointers = (c.c_void_p * len(values))(*[c.cast(c.byref(v), c.c_void_p) for v in values])
        grid = list(grid) + [1] * (3 - len(grid))
        self.call('cuLaunchKernel', kernel, *grid, 1, 1, 1, 0, None, pointers, None)
        self.call('cuCtxSynchronize')
        self.call('cuModuleUnload', image)


class Buffer:
    def __init__(self, gpu, scalar, data):
        self.gpu, self.scalar, self.bytes, self.address = gpu, scalar, len(data), c.c_uint64()
        gpu.call('cuMemAlloc_v2', c.byref(self.address), c.c_size_t(max(len(data), 1)))
        gpu.call('cuMemcpyHtoD_v2', self.address, data, c.c_size_t(len(data)))

    def values(self):
        data = c.create_string_buffer(max(self.bytes, 1))
        self.gpu.call('cuMemcpyDtoH_v2', data, self.address, c.c_size_t(self.bytes))
        count = self.bytes // struct.calcsize(FORMATS[self.scalar])
        return list(struct.unpack(f'<{count}{FORMATS[self.scalar]}', data.raw[:self.bytes]))


# ---- tiles in Python: a shape and a flat list ----

def strides_of(shape):
    strides, n = [], 1
    for size in reversed(shape):
        strides.insert(0, n)
        n *= size
    return strides


def product(numbers):
    n = 1
    for number in numbers:
        n *= number
    return n


def each(shape):
    return itertools.product(*[range(n) for n in shape])


def at(shape, index):
    return sum(i * s for i, s in zip(index, strides_of(shape)))


def made(shape, of):
    return [of(index) for index in each(shape)]


def power(r, most):
    return 1 << r.randrange(most + 1)


def small_shape(r, rank, elements):
    """A shape of that rank with at most so many elements."""
    shape = [1] * rank
    for _ in range(r.randrange(elements.bit_length())):
        shape[r.randrange(rank)] *= 2
    return shape


def same(got, wanted, what):
    if got != wanted:
        bad = [i for i in range(len(wanted)) if got[i] != wanted[i]]
        raise AssertionError(f'{what}: {len(bad)} of {len(wanted)} wrong, the first at {bad[0]}: {got[bad[0]]}, not {wanted[bad[0]]}')


def store_all(f, base, value):
    """Stores a tile as a compact tensor."""
    shape = value.type[2]
    view = f.partition(f.tensor_view(base, list(shape), strides_of(shape)), shape)
    zero = f.constant('i32', 0)
    f.store_view_tko(value, view, [zero] * len(shape))


def load_all(f, base, shape):
    view = f.partition(f.tensor_view(base, list(shape), strides_of(shape)), shape)
    return f.load_view_tko(view, [f.constant('i32', 0)] * len(shape))[0]


def wrap(x, bits):
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x
