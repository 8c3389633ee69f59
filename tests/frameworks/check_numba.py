# SPDX-License-Identifier: Apache-2.0
"""Numba's CUDA target, against NumPy."""
import math

import numpy as np
from numba import cuda, float32, vectorize

from check import check

random = np.random.default_rng(2)
X, Y = random.random((2, 1000), dtype=np.float32)
A, B = random.random((2, 64, 64), dtype=np.float32)
INTEGERS = random.integers(0, 10, 5000).astype(np.int32)


@cuda.jit
def add(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + 2 * y[i]


@cuda.jit
def product(a, b, out):
    tile_a, tile_b = cuda.shared.array((16, 16), float32), cuda.shared.array((16, 16), float32)
    row, column = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for k in range(a.shape[1] // 16):
        tile_a[x, y] = a[row, y + k * 16]
        tile_b[x, y] = b[x + k * 16, column]
        cuda.syncthreads()
        for j in range(16):
            total += tile_a[x, j] * tile_b[j, y]
        cuda.syncthreads()
    out[row, column] = total


@cuda.jit
def count(numbers, out):
    i = cuda.grid(1)
    if i < numbers.size:
        cuda.atomic.add(out, numbers[i], 1)


@cuda.jit
def functions(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = math.sin(x[i]) + math.exp(-x[i]) + math.sqrt(x[i]) + math.log(1 + x[i])


@cuda.reduce
def total_of(a, b):
    return a + b


@cuda.jit(device=True)
def square(x):
    return x * x


@cuda.jit
def squares(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] = square(x[i])


@vectorize(["float32(float32, float32)"], target="cuda")
def times_plus(x, y):
    return x * y + 1


def run(kernel, blocks, threads, out, *arguments):
    kernel[blocks, threads](*arguments, out)
    return out


def in_stream():
    stream = cuda.stream()
    there = cuda.to_device(X, stream=stream)
    squares[4, 256, stream](there)
    return np.array_equal(there.copy_to_host(stream=stream), X * X)


def event_time():
    start, end = cuda.event(), cuda.event()
    start.record()
    run(add, 4, 256, np.zeros_like(X), X, Y)
    end.record()
    end.synchronize()
    return cuda.event_elapsed_time(start, end) > 0


check("add", lambda: np.array_equal(run(add, 4, 256, np.zeros_like(X), X, Y), X + 2 * Y))
check("shared memory", lambda: np.allclose(run(product, (4, 4), (16, 16), np.zeros_like(A), A, B), A @ B, 1e-4))
check("atomics", lambda: np.array_equal(run(count, 20, 256, np.zeros(10, np.int32), INTEGERS), np.bincount(INTEGERS, minlength=10)))
check("functions", lambda: np.allclose(run(functions, 4, 256, np.zeros_like(X), X), np.sin(X) + np.exp(-X) + np.sqrt(X) + np.log(1 + X), 1e-5))
check("reduce", lambda: abs(total_of(X.astype(np.float64)) - X.astype(np.float64).sum()) < 1e-9)
check("device function in a stream", in_stream)
check("vectorize", lambda: np.allclose(times_plus(X, Y), X * Y + 1))
check("events", event_time)
check("managed array", lambda: np.array_equal(run(add, 4, 256, cuda.managed_array(1000, np.float32), X, Y), X + 2 * Y))
