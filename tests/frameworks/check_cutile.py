# SPDX-License-Identifier: Apache-2.0
"""Kernels of tiles in Python (cuTile), on CuPy's arrays, against NumPy."""
import math

import cupy as cp
import cuda.tile as ct
import numpy as np

from check import check

Size = ct.Constant[int]
random = np.random.default_rng(4)
X, Y = random.standard_normal((2, 3000), dtype=np.float32)
ROWS = random.standard_normal((50, 120), dtype=np.float32)
INTEGERS = random.integers(0, 40, 5000).astype(np.int32)


@ct.kernel
def add(x, y, out, n: Size):
    at = ct.bid(0)
    ct.store(out, index=(at,), tile=ct.load(x, index=(at,), shape=(n,)) + 2 * ct.load(y, index=(at,), shape=(n,)))


@ct.kernel
def product(a, b, c, m: Size, n: Size, k: Size):
    row, column = ct.bid(0), ct.bid(1)
    total = ct.full((m, n), 0, dtype=c.dtype if c.dtype == ct.int32 else ct.float32)
    zero = ct.PaddingMode.ZERO
    kind = ct.tfloat32 if a.dtype == ct.float32 else a.dtype
    for i in range(ct.num_tiles(a, axis=1, shape=(m, k))):
        left = ct.load(a, index=(row, i), shape=(m, k), padding_mode=zero).astype(kind)
        right = ct.load(b, index=(i, column), shape=(k, n), padding_mode=zero).astype(kind)
        total = ct.mma(left, right, total)
    ct.store(c, index=(row, column), tile=total.astype(c.dtype))


@ct.kernel
def products(a, b, c, m: Size, n: Size, k: Size):
    batch = ct.bid(0)
    left, right = ct.load(a, index=(batch, 0, 0), shape=(1, m, k)), ct.load(b, index=(batch, 0, 0), shape=(1, k, n))
    ct.store(c, index=(batch, 0, 0), tile=ct.matmul(left, right).astype(c.dtype))


@ct.kernel
def softmax(x, out, n: Size):
    row = ct.load(x, index=(ct.bid(0), 0), shape=(1, n), padding_mode=ct.PaddingMode.NEG_INF)
    power = ct.exp(row - ct.max(row, axis=1, keepdims=True))
    ct.store(out, index=(ct.bid(0), 0), tile=power / ct.sum(power, axis=1, keepdims=True))


@ct.kernel
def normalise(x, weight, out, n: Size):
    mean, square, columns = ct.full((1, n), 0, dtype=ct.float32), ct.full((1, n), 0, dtype=ct.float32), x.shape[1]
    for i in range(ct.cdiv(columns, n)):
        part = ct.load(x, index=(ct.bid(0), i), shape=(1, n), padding_mode=ct.PaddingMode.ZERO)
        mean, square = mean + part, square + part * part
    middle = ct.sum(mean, axis=1, keepdims=True) / columns
    spread = ct.rsqrt(ct.sum(square, axis=1, keepdims=True) / columns - middle * middle + 1e-5)
    for i in range(ct.cdiv(columns, n)):
        part, w = ct.load(x, index=(ct.bid(0), i), shape=(1, n)), ct.load(weight, index=(i,), shape=(n,))
        ct.store(out, index=(ct.bid(0), i), tile=(part - middle) * spread * w)


@ct.kernel
def transpose(x, out, m: Size, n: Size):
    ct.store(out, index=(ct.bid(1), ct.bid(0)), tile=ct.transpose(ct.load(x, index=(ct.bid(0), ct.bid(1)), shape=(m, n))))


@ct.kernel
def take(x, indices, out, n: Size):
    at = ct.bid(0) * n + ct.arange(n, dtype=ct.int32)
    ct.scatter(out, at, ct.gather(x, ct.gather(indices, at)))


@ct.kernel
def count(numbers, out, n: Size):
    part = ct.gather(numbers, ct.bid(0) * n + ct.arange(n, dtype=ct.int32), padding_value=-1)
    ct.atomic_add(out, part, 1)


@ct.kernel
def largest(x, where, out, m: Size, n: Size):
    part = ct.load(x, index=(ct.bid(0), 0), shape=(m, n), padding_mode=ct.PaddingMode.NEG_INF)
    ct.store(where, index=(ct.bid(0),), tile=ct.argmax(part, axis=1))
    ct.store(out, index=(ct.bid(0),), tile=ct.max(part, axis=1))


@ct.kernel
def sums(x, out, m: Size, n: Size):
    ct.store(out, index=(ct.bid(0), 0), tile=ct.cumsum(ct.load(x, index=(ct.bid(0), 0), shape=(m, n)), axis=1))


@ct.kernel
def functions(x, out, n: Size):
    a = ct.load(x, index=(ct.bid(0),), shape=(n,))
    ct.store(out, index=(ct.bid(0),), tile=ct.sin(a) + ct.exp(-a) + ct.sqrt(ct.maximum(a, -a)) + ct.tanh(a) + ct.floor(a))


@ct.kernel
def steps(out, n: Size):
    number, taken = ct.bid(0) + 1, 0
    while number != 1:
        if number % 2 == 0:
            number = number // 2
        else:
            number = 3 * number + 1
        taken += 1
    ct.scatter(out, ct.bid(0), taken)


@ct.kernel
def attention(q, k, v, out, scale: float, m: Size, n: Size, d: Size):
    queries = ct.load(q, index=(ct.bid(0), 0), shape=(m, d))
    top, total = ct.full((m, 1), -math.inf, dtype=ct.float32), ct.full((m, 1), 0, dtype=ct.float32)
    result = ct.full((m, d), 0, dtype=ct.float32)
    for i in range(ct.num_tiles(k, axis=0, shape=(n, d))):
        keys, values = ct.load(k, index=(i, 0), shape=(n, d)), ct.load(v, index=(i, 0), shape=(n, d))
        scores = ct.mma(queries, ct.transpose(keys), ct.full((m, n), 0, dtype=ct.float32)) * scale
        higher = ct.maximum(top, ct.max(scores, axis=1, keepdims=True))
        power, less = ct.exp(scores - higher), ct.exp(top - higher)
        total = total * less + ct.sum(power, axis=1, keepdims=True)
        result = ct.mma(power.astype(v.dtype), values, result * less)
        top = higher
    ct.store(out, index=(ct.bid(0), 0), tile=(result / total).astype(out.dtype))


def run(kernel, grid, out, *arguments):
    """`out` is the array, or its shape and type; arguments in the kernel's order, ... in its place."""
    there = cp.asarray(out)
    given = [there if a is ... else cp.asarray(a) if isinstance(a, np.ndarray) else a for a in arguments]
    ct.launch(cp.cuda.get_current_stream(), grid, kernel, tuple(given))
    return cp.asnumpy(there)


def added(tile):
    return np.array_equal(run(add, (ct.cdiv(3000, tile),), np.zeros_like(X), X, Y, ..., tile), X + 2 * Y)


def multiplied(kind, out, shape, tile, tolerance):
    rows, columns, depth = shape
    a, b = (random.integers(-8, 9, s).astype(kind) for s in ((rows, depth), (depth, columns)))
    if kind == np.float32:
        a, b = a / 8, b / 8
    right = a.astype(np.float64) @ b.astype(np.float64)
    grid = (ct.cdiv(rows, tile[0]), ct.cdiv(columns, tile[1]))
    c = run(product, grid, np.zeros((rows, columns), out), a, b, ..., *tile)
    return np.abs(c - right).max() <= tolerance * np.abs(right).max()


def batched():
    a, b = random.standard_normal((5, 32, 64)).astype(np.float16), random.standard_normal((5, 64, 16)).astype(np.float16)
    c = run(products, (5,), np.zeros((5, 32, 16), np.float32), a, b, ..., 32, 16, 64)
    return np.allclose(c, a.astype(np.float32) @ b.astype(np.float32), atol=2e-2)


def soft():
    power = np.exp(ROWS - ROWS.max(1, keepdims=True))
    return np.allclose(run(softmax, (50,), np.zeros_like(ROWS), ROWS, ..., 128), power / power.sum(1, keepdims=True), 1e-5)


def normalised():
    weight = np.linspace(0.5, 2, 120, dtype=np.float32)
    right = (ROWS - ROWS.mean(1, keepdims=True)) / np.sqrt(ROWS.var(1, keepdims=True) + 1e-5) * weight
    return np.allclose(run(normalise, (50,), np.zeros_like(ROWS), ROWS, weight, ..., 32), right, 1e-3, 1e-4)


def taken():
    indices = random.integers(0, 3000, 1000).astype(np.int32)
    return np.array_equal(run(take, (ct.cdiv(1000, 128),), np.zeros(1000, np.float32), X, indices, ..., 128), X[indices])


def found_largest():
    where = cp.zeros(50, dtype=np.int32)
    out = run(largest, (ct.cdiv(50, 8),), np.zeros(50, np.float32), ROWS, where, ..., 8, 128)
    return np.array_equal(out, ROWS.max(1)) and np.array_equal(cp.asnumpy(where), ROWS.argmax(1))


def collatz(n):
    return 0 if n == 1 else 1 + collatz(n // 2 if n % 2 == 0 else 3 * n + 1)


def attended():
    q, k, v = (random.standard_normal((128, 64)).astype(np.float16) for _ in range(3))
    out = run(attention, (4,), np.zeros((128, 64), np.float16), q, k, v, ..., 0.125, 32, 32, 64)
    scores = q.astype(np.float32) @ k.astype(np.float32).T * 0.125
    power = np.exp(scores - scores.max(1, keepdims=True))
    return np.allclose(out, power / power.sum(1, keepdims=True) @ v.astype(np.float32), atol=5e-3)


def in_graph():
    stream, x, y, out = cp.cuda.Stream(non_blocking=True), cp.asarray(X), cp.asarray(Y), cp.zeros(3000, np.float32)
    ct.launch(stream, (12,), add, (x, y, out, 256))
    stream.synchronize()
    with stream:
        stream.begin_capture()
        ct.launch(stream, (12,), add, (x, y, out, 256))
        graph = stream.end_capture()
        out.set(np.zeros_like(X))
        y.set(3 * Y)
        graph.launch(stream)
        stream.synchronize()
    return np.allclose(cp.asnumpy(out), X + 6 * Y)


def functions_of():
    right = np.sin(X) + np.exp(-X) + np.sqrt(np.abs(X)) + np.tanh(X) + np.floor(X)
    return np.allclose(run(functions, (12,), np.zeros_like(X), X, ..., 256), right, 1e-5, 1e-5)


check("add", lambda: added(256))
check("add, another tile", lambda: added(64))
check("product, half", lambda: multiplied(np.float16, np.float32, (128, 96, 160), (64, 32, 32), 0))
check("product, half, uneven", lambda: multiplied(np.float16, np.float16, (100, 75, 70), (64, 64, 32), 1e-3))
check("product, TF32", lambda: multiplied(np.float32, np.float32, (64, 64, 64), (32, 32, 16), 0))
check("product, bytes", lambda: multiplied(np.int8, np.int32, (64, 64, 128), (32, 32, 32), 0))
check("products, batched", batched)
check("softmax", soft)
check("layer norm", normalised)
check("transpose", lambda: np.array_equal(run(transpose, (4, 4), np.zeros((120, 50), np.float32), ROWS, ..., 16, 32), ROWS.T))
check("gather and scatter", taken)
check("atomics", lambda: np.array_equal(run(count, (20,), np.zeros(40, np.int32), INTEGERS, ..., 256), np.bincount(INTEGERS, minlength=40)))
check("argmax", found_largest)
check("cumulative sums", lambda: np.allclose(run(sums, (10,), np.zeros((40, 64), np.float32), ROWS[:40, :64].copy(), ..., 4, 64), ROWS[:40, :64].cumsum(1), atol=1e-5))
check("functions", functions_of)
check("loops and branches", lambda: np.array_equal(run(steps, (100,), np.zeros(100, np.int32), ..., 1), [collatz(n) for n in range(1, 101)]))
check("attention", attended)
check("in a graph", in_graph)
