# SPDX-License-Identifier: Apache-2.0
"""time_torch.py TIMES.csv [OPTION...]: what PyTorch's operators, Triton's kernels and small models take on the GPU.

A row for each operator: microseconds by CUDA events of one call (the median of nine) and of calls in a row, the sum of its kernels' times by torch.profiler
and their names with how often each ran in a call, and a sample of the result. Data are the same everywhere: NumPy's generator makes them. Each operator is
called before it is measured, and then as often as 20 ms allow.

    python time_torch.py silicon.csv
    farfault run --machine h200 --memory copy --kernels KERNELS --json run.json python time_torch.py ours.csv --virtual
    python torch_times.py fill ours.csv run.json && python torch_times.py compare silicon.csv ours.csv

--virtual: once before and once measured, in a range of NVTX named as the operator, by which run.json has the kernels; `fill` puts them into the table.
What has no PTX fails, and the rest of its process with it: choose by --groups, --only and --skip."""
import argparse
import csv
import statistics
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
import triton
import triton.language as tl

parser = argparse.ArgumentParser()
parser.add_argument("table")
parser.add_argument("--groups", default="")
parser.add_argument("--skip", default="", help="operators whose names contain one of these")
parser.add_argument("--only", default="", help="operators whose names contain one of these")
parser.add_argument("--most", type=int, default=1 << 40, help="operators of more elements or multiplications than this are left out")
parser.add_argument("--virtual", action="store_true")
parser.add_argument("--smoke", action="store_true", help="six operators, of all kinds")
parser.add_argument("--seconds", type=float, default=1e9, help="stop after these")
arguments = parser.parse_args()

BASE = np.random.default_rng(7).standard_normal(1 << 20, dtype=np.float32)
K, M = 1 << 10, 1 << 20
started = time.time()


def numbers(*shape, dtype=torch.float32, scale=1.0, shift=0):
    """A tensor on the GPU: standard normal numbers times scale, a pattern of 2^20 again and again, turned by shift."""
    count = int(np.prod(shape))
    values = np.resize(np.roll(BASE, shift), count) * np.float32(scale)
    return torch.from_numpy(values).view(*shape).to(dtype).to("cuda")


def whole(below, *shape, shift=0):
    count = int(np.prod(shape))
    values = (np.arange(count, dtype=np.int64) * 2654435761 + shift) % (1 << 32) % below
    return torch.from_numpy(values).view(*shape).to("cuda")


# ---- Triton's kernels, after its tutorials ----


@triton.jit
def t_add(x, y, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def t_copy(x, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < count), mask=at < count)


@triton.jit
def t_gelu(x, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < count)
    tl.store(out + at, 0.5 * v * (1 + tl.erf(v * 0.7071067811865476)), mask=at < count)


@triton.jit
def t_sum_rows(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        total += tl.load(x + row * columns + start + tl.arange(0, BLOCK))
    tl.store(out + row, tl.sum(total, 0))


@triton.jit
def t_softmax(out, x, count, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * count + at, mask=at < count, other=-float("inf"))
    values = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * count + at, values / tl.sum(values, 0), mask=at < count)


@triton.jit
def t_layer_norm(x, w, b, out, count, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < count
    v = tl.load(x + row * count + at, mask=inside, other=0.0)
    mean = tl.sum(v, 0) / count
    d = tl.where(inside, v - mean, 0.0)
    scale = tl.rsqrt(tl.sum(d * d, 0) / count + 1e-5)
    tl.store(out + row * count + at, d * scale * tl.load(w + at, mask=inside) + tl.load(b + at, mask=inside), mask=inside)


@triton.jit
def t_gather_rows(table, index, out, width, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    source = tl.load(index + row)
    tl.store(out + row * width + at, tl.load(table + source * width + at, mask=at < width), mask=at < width)


@triton.jit
def t_scatter_add(x, index, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.atomic_add(out + tl.load(index + at, mask=inside, other=0), tl.load(x + at, mask=inside), mask=inside)


@triton.jit
def t_cumsum_rows(x, out, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(out + row * columns + at, tl.cumsum(tl.load(x + row * columns + at), 0))


@triton.jit
def t_transpose(x, out, N, BLOCK: tl.constexpr):
    r, c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + c[:, None] * N + r[None, :], tl.trans(tl.load(x + r[:, None] * N + c[None, :])))


@triton.jit
def t_matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    pid = tl.program_id(0)
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    in_group = GROUP * columns
    first = (pid // in_group) * GROUP
    size = min(rows - first, GROUP)
    m, n = first + (pid % in_group) % size, (pid % in_group) // size
    am, bn, k = (m * BM + tl.arange(0, BM)) % M, (n * BN + tl.arange(0, BN)) % N, tl.arange(0, BK)
    ap, bp = a + am[:, None] * K + k[None, :], b + k[:, None] * N + bn[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for i in range(0, tl.cdiv(K, BK)):
        total = tl.dot(tl.load(ap), tl.load(bp), total)
        ap += BK
        bp += BK * N
    cm, cn = m * BM + tl.arange(0, BM), n * BN + tl.arange(0, BN)
    tl.store(c + cm[:, None] * N + cn[None, :], total.to(c.dtype.element_ty))


@triton.jit
def t_attention(q, k, v, out, L, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    block, head = tl.program_id(0), tl.program_id(1)
    rows, d = block * BM + tl.arange(0, BM), tl.arange(0, D)
    base = head * L * D
    qs = tl.load(q + base + rows[:, None] * D + d[None, :])
    most = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    result = tl.zeros((BM, D), tl.float32)
    for start in range(0, L, BN):
        columns = start + tl.arange(0, BN)
        ks = tl.load(k + base + columns[:, None] * D + d[None, :])
        s = tl.dot(qs, tl.trans(ks)) * scale
        new = tl.maximum(most, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        old = tl.exp(most - new)
        total = total * old + tl.sum(p, 1)
        vs = tl.load(v + base + columns[:, None] * D + d[None, :])
        result = tl.dot(p.to(qs.dtype), vs, result * old[:, None])
        most = new
    tl.store(out + base + rows[:, None] * D + d[None, :], (result / total[:, None]).to(out.dtype.element_ty))


@triton.jit
def t_vector_matrix(x, w, out, N, K, BN: tl.constexpr, BK: tl.constexpr):
    """out[n] = sum of w[n, k] x[k]: what a decode step does with a layer's weights."""
    n, k = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BN, BK), dtype=tl.float32)
    for start in range(0, K, BK):
        total += tl.load(w + n[:, None] * K + start + k[None, :]).to(tl.float32) * tl.load(x + start + k).to(tl.float32)[None, :]
    tl.store(out + n, tl.sum(total, 1).to(out.dtype.element_ty))


# ---- models ----


class GPT:
    """A decoder of GPT-2's shape with random weights: norm before, learnt places, the output by the words' embedding."""

    def __init__(self, layers, width, heads, words, dtype, context=1024):
        self.layers, self.width, self.heads, self.dtype = layers, width, heads, dtype
        self.words, self.places = numbers(words, width, scale=0.02, dtype=dtype), numbers(context, width, scale=0.01, dtype=dtype, shift=5)
        one, zero = torch.ones(width).to(dtype).to("cuda"), torch.zeros(4 * width).to(dtype).to("cuda")
        self.one, self.zero = one, zero[:width].contiguous()
        self.blocks = []
        for i in range(layers):
            self.blocks.append([numbers(3 * width, width, scale=0.02, dtype=dtype, shift=11 * i), numbers(width, width, scale=0.02, dtype=dtype, shift=13 * i + 1),
                                numbers(4 * width, width, scale=0.02, dtype=dtype, shift=17 * i + 2), numbers(width, 4 * width, scale=0.02, dtype=dtype, shift=19 * i + 3)])
        self.zero3, self.zero4 = torch.zeros(3 * width).to(dtype).to("cuda"), zero

    def parameters(self):
        return [self.words, self.places] + [w for block in self.blocks for w in block]

    def norm(self, x):
        return F.layer_norm(x, (self.width,), self.one, self.zero)

    def step(self, x, mask, cache=None, past=0):
        """x: [tokens, width]. With a cache: keys and values of `past` tokens before, room for more."""
        tokens, size = x.shape[0], self.width // self.heads
        for i, (qkv, out, up, down) in enumerate(self.blocks):
            parts = F.linear(self.norm(x), qkv, self.zero3).view(tokens, 3, self.heads, size)
            q, k, v = parts[:, 0].transpose(0, 1), parts[:, 1].transpose(0, 1), parts[:, 2].transpose(0, 1)
            if cache is not None:
                cache[i][0][:, past:past + tokens].copy_(k)
                cache[i][1][:, past:past + tokens].copy_(v)
                k, v = cache[i][0][:, :past + tokens], cache[i][1][:, :past + tokens]
            scores = torch.bmm(q, k.transpose(1, 2)) * (size ** -0.5)
            if mask is not None:
                scores = scores + mask
            y = torch.bmm(scores.softmax(-1), v).transpose(0, 1).reshape(tokens, self.width)
            x = x + F.linear(y, out, self.zero)
            x = x + F.linear(F.gelu(F.linear(self.norm(x), up, self.zero4)), down, self.zero)
        return x

    def forward(self, tokens, mask, cache=None, past=0):
        x = F.embedding(tokens, self.words) + self.places[past:past + tokens.shape[0]]
        return F.linear(self.norm(self.step(x, mask, cache, past)), self.words)


def later(tokens, dtype):
    return torch.full((tokens, tokens), float("-inf")).triu(1).to(dtype).to("cuda")


# ---- operators: (group, name, size, function that makes the call) ----

OPS = []


def op(group, name, size=0):
    def add(make):
        OPS.append((group, name, size, make))
        return make
    return add


def each_size(group, name, sizes, make):
    for n in sizes:
        OPS.append((group, f"{name} {n // M}M" if n >= M else f"{name} {n // K}K", n, lambda n=n: make(n)))


def into(function, out):
    return lambda: (function(), out)[1]


def triton_ops():
    g = "triton"

    def add(n, block=1024):
        x, y = numbers(n), numbers(n, shift=3)
        out = torch.empty_like(x)
        return into(lambda: t_add[(n // block,)](x, y, out, n, BLOCK=block), out)

    def one_to_one(kernel, dtype=torch.float32):
        def make(n):
            x = numbers(n, dtype=dtype)
            out = torch.empty_like(x)
            return into(lambda: kernel[(n // 1024,)](x, out, n, BLOCK=1024), out)
        return make

    each_size(g, "add", [M, 4 * M, 16 * M, 64 * M], add)
    each_size(g, "copy", [M, 16 * M, 64 * M], one_to_one(t_copy))
    each_size(g, "copy bf16", [16 * M], one_to_one(t_copy, torch.bfloat16))
    each_size(g, "gelu", [M, 16 * M, 64 * M], one_to_one(t_gelu))

    def rows(kernel, count, columns, block):
        def make():
            x = numbers(count, columns)
            out = torch.empty(count, device="cuda")
            return into(lambda: kernel[(count,)](x, out, columns, BLOCK=block), out)
        return make

    OPS.append((g, "sum rows 4096x4096", 16 * M, rows(t_sum_rows, 4096, 4096, 1024)))
    OPS.append((g, "sum rows 256x65536", 16 * M, rows(t_sum_rows, 256, 65536, 2048)))

    def softmax(count, columns):
        def make():
            x = numbers(count, columns)
            out = torch.empty_like(x)
            return into(lambda: t_softmax[(count,)](out, x, columns, BLOCK=columns), out)
        return make

    OPS.append((g, "softmax 4096x1024", 4 * M, softmax(4096, 1024)))
    OPS.append((g, "softmax 16384x1024", 16 * M, softmax(16384, 1024)))
    OPS.append((g, "softmax 2048x8192", 16 * M, softmax(2048, 8192)))

    @op(g, "layer norm 8192x1024", 8 * M)
    def _():
        x, w, b = numbers(8192, 1024), numbers(1024), numbers(1024, shift=9)
        out = torch.empty_like(x)
        return into(lambda: t_layer_norm[(8192,)](x, w, b, out, 1024, BLOCK=1024), out)

    @op(g, "gather rows 8192 of 50257x768", 8 * M)
    def _():
        table, index = numbers(50257, 768), whole(50257, 8192)
        out = torch.empty(8192, 768, device="cuda")
        return into(lambda: t_gather_rows[(8192,)](table, index, out, 768, BLOCK=1024), out)

    for spread in (M, 1024):
        @op(g, f"scatter add 4M to {spread // K}K", 4 * M)
        def _(spread=spread):
            x, index, out = numbers(4 * M), whole(spread, 4 * M), torch.zeros(spread).to("cuda")
            return into(lambda: t_scatter_add[(4 * K,)](x, index, out, 4 * M, BLOCK=1024), out)

    @op(g, "cumsum rows 4096x2048", 8 * M)
    def _():
        x = numbers(4096, 2048)
        out = torch.empty_like(x)
        return into(lambda: t_cumsum_rows[(4096,)](x, out, 2048, BLOCK=2048), out)

    @op(g, "transpose 4096", 16 * M)
    def _():
        x = numbers(4096, 4096)
        out = torch.empty_like(x)
        return into(lambda: t_transpose[(64, 64)](x, out, 4096, BLOCK=64), out)

    def product(n, dtype, bm=128, bn=128, bk=32, warps=8):
        def make():
            a, b = numbers(n, n, dtype=dtype), numbers(n, n, dtype=dtype, shift=77)
            out = torch.empty(n, n, device="cuda", dtype=dtype)
            return into(lambda: t_matmul[(n // bm * (n // bn),)](a, b, out, n, n, n, bm, bn, bk, 8, num_warps=warps, num_stages=3), out)
        return make

    for n in (512, 1024, 2048, 4096):
        OPS.append((g, f"matmul f16 {n}", n ** 3, product(n, torch.float16, bk=64)))
    for n in (1024, 2048):
        OPS.append((g, f"matmul bf16 {n} 64x64", n ** 3, product(n, torch.bfloat16, 64, 64, 32, 4)))
        OPS.append((g, f"matmul tf32 {n}", n ** 3, product(n, torch.float32)))

    for length in (512, 1024, 2048):
        @op(g, f"attention f16 12x{length}x64", 12 * 128 * length ** 2)
        def _(length=length):
            q, k, v = [numbers(12, length, 64, dtype=torch.float16, shift=s) for s in (0, 1000, 2000)]
            out = torch.empty_like(q)
            return into(lambda: t_attention[(length // 64, 12)](q, k, v, out, length, 0.125, 64, 64, 64, num_warps=4), out)

    for dtype, label in ((torch.float16, "f16"), (torch.float32, "f32")):
        for n, k in ((4096, 4096), (16384, 4096)):
            @op(g, f"vector x matrix {label} {n}x{k}", n * k)
            def _(dtype=dtype, n=n, k=k):
                x, w = numbers(k, dtype=dtype), numbers(n, k, dtype=dtype, scale=0.02)
                out = torch.empty(n, device="cuda", dtype=dtype)
                return into(lambda: t_vector_matrix[(n // 4,)](x, w, out, n, k, 4, 512, num_warps=4), out)


def elementwise_ops():
    g = "elementwise"
    sizes = [M, 4 * M, 16 * M, 64 * M]

    def two(function, dtype=torch.float32):
        def make(n):
            x, y = numbers(n, dtype=dtype), numbers(n, dtype=dtype, shift=3)
            out = torch.empty_like(x)
            return into(lambda: function(x, y, out=out), out)
        return make

    each_size(g, "add", sizes, two(torch.add))
    each_size(g, "mul", [M, 16 * M], two(torch.mul))
    each_size(g, "add bf16", [M, 16 * M], two(torch.add, torch.bfloat16))

    def one(function):
        def make(n):
            x = numbers(n)
            return lambda: function(x)
        return make

    each_size(g, "gelu", [M, 16 * M, 64 * M], one(F.gelu))
    each_size(g, "to bf16", [M, 16 * M], one(lambda x: x.to(torch.bfloat16)))

    def copy(n):
        x = numbers(n)
        out = torch.empty_like(x)
        return into(lambda: out.copy_(x), out)

    def fill(n):
        out = torch.empty(n, device="cuda")
        return into(lambda: out.fill_(3.0), out)

    each_size(g, "copy", [M, 16 * M, 64 * M], copy)
    each_size(g, "fill", [M, 16 * M, 64 * M], fill)

    @op(g, "transposed copy 4096", 16 * M)
    def _():
        x = numbers(4096, 4096)
        return lambda: x.t().contiguous()

    @op(g, "add row 16384x1024", 16 * M)
    def _():
        x, row = numbers(16384, 1024), numbers(1024, shift=5)
        out = torch.empty_like(x)
        return into(lambda: torch.add(x, row, out=out), out)


def reduction_ops():
    g = "reduction"

    def whole_sum(n):
        x = numbers(n)
        return lambda: x.sum()

    each_size(g, "sum", [M, 16 * M, 64 * M], whole_sum)
    for dim in (0, 1):
        @op(g, f"sum of 4096x4096 over {dim}", 16 * M)
        def _(dim=dim):
            x = numbers(4096, 4096)
            return lambda: x.sum(dim)
    for count, columns in ((4096, 1024), (16384, 1024), (2048, 8192)):
        @op("softmax", f"softmax {count}x{columns}", count * columns)
        def _(count=count, columns=columns):
            x = numbers(count, columns)
            return lambda: x.softmax(1)
        @op("norm", f"layer norm {count}x{columns}", count * columns)
        def _(count=count, columns=columns):
            x, w, b = numbers(count, columns), numbers(columns), numbers(columns, shift=9)
            return lambda: F.layer_norm(x, (columns,), w, b)


def index_ops():
    g = "index"

    @op(g, "embedding 8192 of 50257x768", 8 * M)
    def _():
        table, index = numbers(50257, 768), whole(50257, 8192)
        return lambda: F.embedding(index, table)

    @op(g, "gather 4M of 4M", 4 * M)
    def _():
        x, index = numbers(4 * M), whole(4 * M, 4 * M)
        return lambda: torch.gather(x, 0, index)

    @op(g, "index 4M of 4M", 4 * M)
    def _():
        x, index = numbers(4 * M), whole(4 * M, 4 * M)
        return lambda: x[index]

    for spread in (M, 1024):
        @op(g, f"scatter_add 4M to {spread // K}K", 4 * M)
        def _(spread=spread):
            x, index, out = numbers(4 * M), whole(spread, 4 * M), torch.zeros(spread).to("cuda")
            return into(lambda: out.scatter_add_(0, index, x), out)

    @op(g, "index_add 8192 rows to 50257x768", 8 * M)
    def _():
        table, index, x = numbers(50257, 768), whole(50257, 8192), numbers(8192, 768)
        return into(lambda: table.index_add_(0, index, x), table)

    each = [("cumsum 1M", M, lambda: numbers(M), lambda x: x.cumsum(0)), ("cumsum 16M", 16 * M, lambda: numbers(16 * M), lambda x: x.cumsum(0)),
            ("cumsum 4096x2048", 8 * M, lambda: numbers(4096, 2048), lambda x: x.cumsum(1)),
            ("sort 1M", 2 * M, lambda: numbers(M), lambda x: x.sort().values), ("sort 1024x1024", 2 * M, lambda: numbers(1024, 1024), lambda x: x.sort(1).values),
            ("topk 100 of 1M", M, lambda: numbers(M), lambda x: x.topk(100).values), ("topk 50 of 64x50257", 3 * M, lambda: numbers(64, 50257), lambda x: x.topk(50).values)]
    for name, size, data, function in each:
        @op("scan and sort", name, size)
        def _(data=data, function=function):
            x = data()
            return lambda: function(x)


def product_ops():
    def precise(on, call):
        def run():
            torch.backends.cuda.matmul.allow_tf32 = on
            out = call()
            torch.backends.cuda.matmul.allow_tf32 = False
            return out
        return run

    for label, dtype, on in (("f32", torch.float32, False), ("tf32", torch.float32, True), ("bf16", torch.bfloat16, False)):
        for n in (256, 512, 1024, 2048, 4096):
            @op("matmul", f"matmul {label} {n}", n ** 3)
            def _(n=n, dtype=dtype, on=on):
                a, b = numbers(n, n, dtype=dtype), numbers(n, n, dtype=dtype, shift=77)
                return precise(on, lambda: a @ b)
        for k, n in ((768, 768), (768, 3072), (768, 50257), (4096, 4096), (4096, 16384)):
            @op("matmul of one row", f"1 x {k} x {n} {label}", k * n)
            def _(k=k, n=n, dtype=dtype, on=on):
                x, w = numbers(1, k, dtype=dtype), numbers(n, k, dtype=dtype, scale=0.02)
                return precise(on, lambda: F.linear(x, w))
        for batch, m, k, n in ((12, 64, 64, 64), (96, 128, 64, 128), (96, 512, 64, 512)):
            @op("batched matmul", f"{batch} x {m} x {k} x {n} {label}", batch * m * k * n)
            def _(batch=batch, m=m, k=k, n=n, dtype=dtype, on=on):
                a, b = numbers(batch, m, k, dtype=dtype), numbers(batch, k, n, dtype=dtype, shift=99)
                return precise(on, lambda: torch.bmm(a, b))


def convolution_ops():
    for batch, channels, size, out, kernel, stride in ((8, 64, 56, 64, 3, 1), (8, 3, 224, 64, 7, 2), (8, 256, 14, 256, 3, 1), (8, 256, 14, 1024, 1, 1)):
        for label, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
            name = f"{batch}x{channels}x{size}x{size} to {out} by {kernel}x{kernel}/{stride} {label}"
            work = batch * channels * (size // stride) ** 2 * out * kernel ** 2

            def data(batch=batch, channels=channels, size=size, out=out, kernel=kernel, dtype=dtype):
                return numbers(batch, channels, size, size, dtype=dtype), numbers(out, channels, kernel, kernel, dtype=dtype, scale=0.05, shift=31)

            @op("convolution", name, work)
            def _(data=data, kernel=kernel, stride=stride):
                x, w = data()
                return lambda: F.conv2d(x, w, stride=stride, padding=kernel // 2)

            @op("convolution backward", name, 2 * work)
            def _(data=data, kernel=kernel, stride=stride):
                x, w = data()
                y = F.conv2d(x, w, stride=stride, padding=kernel // 2)
                dy = numbers(*y.shape, dtype=y.dtype, shift=41)
                pad = kernel // 2
                return lambda: torch.ops.aten.convolution_backward(dy, x, w, None, (stride, stride), (pad, pad), (1, 1), False, (0, 0), 1, (True, True, False))[1]


def attention_ops():
    from torch.nn.attention import SDPBackend, sdpa_kernel
    for length in (64, 512, 1024, 2048):
        for label, backend in (("math", SDPBackend.MATH), ("flash", SDPBackend.FLASH_ATTENTION), ("cudnn", SDPBackend.CUDNN_ATTENTION)):
            @op("attention", f"attention {label} bf16 12x{length}x64", 12 * 128 * length ** 2)
            def _(length=length, backend=backend):
                q, k, v = [numbers(1, 12, length, 64, dtype=torch.bfloat16, shift=s) for s in (0, 1000, 2000)]

                def run():
                    with sdpa_kernel(backend):
                        return F.scaled_dot_product_attention(q, k, v)
                return run


def model_ops():
    for label, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
        @op("model", f"GPT-2 small, 64 tokens, {label}", 64 * 124 * M)
        def _(dtype=dtype):
            model, mask, tokens = GPT(12, 768, 12, 50257, dtype), later(64, dtype), whole(50257, 64)
            return lambda: model.forward(tokens, mask)

        @op("model", f"GPT-2 small, a token behind 128, {label}", 124 * M)
        def _(dtype=dtype):
            model, token = GPT(12, 768, 12, 50257, dtype), whole(50257, 1)
            cache = [[numbers(12, 256, 64, dtype=dtype, shift=i), numbers(12, 256, 64, dtype=dtype, shift=i + 100)] for i in range(12)]
            return lambda: model.forward(token, None, cache, 128)


def training_ops():
    def transformer():
        model, mask = GPT(2, 256, 4, 2048, torch.float32), later(64, torch.float32)
        parameters = [p.requires_grad_() for p in model.parameters()]
        tokens = whole(2048, 65)
        x, y = tokens[:-1].contiguous(), tokens[1:].contiguous()
        return parameters, lambda: F.cross_entropy(model.forward(x, mask), y)

    def images():
        w = [numbers(32, 3, 3, 3, scale=0.2), numbers(64, 32, 3, 3, scale=0.06, shift=3), numbers(10, 64 * 64, scale=0.02, shift=4)]
        x, y = numbers(16, 3, 32, 32), whole(10, 16)

        def loss():
            z = F.max_pool2d(F.relu(F.conv2d(x, w[0], padding=1)), 2)
            z = F.max_pool2d(F.relu(F.conv2d(z, w[1], padding=1)), 2)
            return F.cross_entropy(F.linear(z.flatten(1), w[2]), y)
        return [p.requires_grad_() for p in w], loss

    for name, make, rate in (("transformer of 2 layers, 256 wide", transformer, 0.05), ("CNN of 2 layers", images, 0.02)):
        @op("training", f"a step of a {name}", 50 * M)
        def _(make=make, rate=rate, name=name):
            parameters, loss = make()
            optimiser = torch.optim.SGD(parameters, lr=rate, foreach=True)
            losses = LOSSES.setdefault(f"a step of a {name}", [])

            def step():
                value = loss()
                optimiser.zero_grad()
                value.backward()
                optimiser.step()
                losses.append(value.detach())
                return value.detach()
            return step


LOSSES = {}


def launch_ops():
    g = "launches"

    def tiny():
        x = torch.empty(32, device="cuda")
        return x, lambda: x.fill_(1.0)

    @op(g, "200 fills of 32 numbers", 1)
    def _():
        x, call = tiny()
        return lambda: ([call() for _ in range(200)], x)[1]

    @op(g, "a graph of 20 additions of 1M", 20 * M)
    def _():
        x, y = numbers(M), numbers(M, shift=3)
        out = torch.empty_like(x)
        return graph_of(lambda: [torch.add(x, y, out=out) for _ in range(20)], out)

    @op(g, "20 additions of 1M", 20 * M)
    def _():
        x, y = numbers(M), numbers(M, shift=3)
        out = torch.empty_like(x)
        return lambda: ([torch.add(x, y, out=out) for _ in range(20)], out)[1]

    @op(g, "a graph of 100 fills of 32 numbers", 1)
    def _():
        x, call = tiny()
        return graph_of(lambda: [call() for _ in range(100)], x)


def graph_of(calls, out):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        calls()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        calls()
    return lambda: (graph.replay(), out)[1]


def copy_ops():
    for count in (4 * K, 64 * K, M, 16 * M, 128 * M):
        for kind in ("pinned", "pageable"):
            name = f"{count // M} MiB" if count >= M else f"{count // K} KiB"

            @op("copies", f"to the GPU, {kind}, {name}", count // 4)
            def _(count=count, kind=kind):
                x = torch.empty(count, dtype=torch.uint8, pin_memory=kind == "pinned")
                x.numpy()[:] = 7
                y = torch.empty(count, dtype=torch.uint8, device="cuda")
                return lambda: y.copy_(x, non_blocking=kind == "pinned")

            @op("copies", f"to the host, {kind}, {name}", count // 4)
            def _(count=count, kind=kind):
                y = torch.empty(count, dtype=torch.uint8, pin_memory=kind == "pinned")
                y.numpy()[:] = 7
                x = torch.empty(count, dtype=torch.uint8).numpy()
                x[:] = 5
                x = torch.from_numpy(x).to("cuda")
                return lambda: y.copy_(x, non_blocking=kind == "pinned")


GROUPS = {"triton": triton_ops, "elementwise": elementwise_ops, "reduction": reduction_ops, "product": product_ops, "index": index_ops, "launch": launch_ops,
          "copy": copy_ops, "model": model_ops, "training": training_ops, "attention": attention_ops, "convolution": convolution_ops}

# ---- measuring ----


def elapsed(call, times):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    begin.record()
    for _ in range(times):
        out = call()
    end.record()
    torch.cuda.synchronize()
    return 1000 * begin.elapsed_time(end) / times, out


def profiled(call, times):
    """What ran on the GPU in `times` calls: (name, count per call, median microseconds, sum per call), by torch.profiler."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(times):
            call()
        torch.cuda.synchronize()
    found = {}
    for event in profile.profiler.kineto_results.events():
        if event.device_type() == torch.autograd.DeviceType.CUDA:
            found.setdefault(event.name(), []).append(event.duration_ns() / 1000)
    return [(name, len(all_) / times, statistics.median(all_), sum(all_) / times) for name, all_ in found.items()]


def sample_of(out):
    """Twenty-two numbers of a result, evenly apart."""
    flat = out.detach().flatten()
    at = torch.linspace(0, flat.numel() - 1, min(22, flat.numel()), dtype=torch.float64).long()
    return " ".join(f"{x:.6g}" for x in flat.cpu()[at].double().tolist())


def measure(group, name, make):
    """A row of the table."""
    call = make()
    torch.cuda.synchronize()
    if arguments.virtual:
        call()
        torch.cuda.synchronize()
        torch.cuda.nvtx.range_push(f"{group}/{name}")
        one, out = elapsed(call, 1)
        torch.cuda.nvtx.range_pop()
        values = sample_of(out)
        row, times, kernels, names = "", 1, "", ""
    else:
        elapsed(call, 1)
        first, out = elapsed(call, 1)
        values = sample_of(out)  # of the second call, as on the virtual GPU: some add to what is there
        times = max(3, min(30, int(20000 / first)))
        one = statistics.median(elapsed(call, 1)[0] for _ in range(min(times, 9)))
        row = f"{elapsed(call, times)[0]:.3f}"
        found = [f for f in profiled(call, min(times, 5)) if not f[0].startswith(("Memcpy", "Memset"))]
        kernels = f"{sum(f[3] for f in found):.3f}"
        names = "; ".join(f"{f[1]:g} x {f[0]}" for f in found)
    if group == "training":
        values = " ".join(f"{x.item():.6f}" for x in LOSSES[name][:2])
    return [group, name, f"{one:.3f}", row, times, kernels, names, values]


SMOKE = ("triton/add 1M", "triton/matmul f16 512", "elementwise/add 1M", "matmul/matmul bf16 256", "launches/a graph of 20 additions of 1M",
         "copies/to the GPU, pinned, 1 MiB", "training/a step of a CNN of 2 layers")


def chosen(group, name, size):
    full = f"{group}/{name}"
    if arguments.smoke:
        return full in SMOKE
    parts = [text.split(",") if text else [] for text in (arguments.only, arguments.skip)]
    return size <= arguments.most and (not parts[0] or any(p in full for p in parts[0])) and not any(p in full for p in parts[1])


def main():
    for group in [g for g in arguments.groups.split(",") if g] or list(GROUPS):
        GROUPS[group]()
    print(f"torch {torch.__version__}, CUDA {torch.version.cuda}, Triton {triton.__version__}, {torch.cuda.get_device_name()}", file=sys.stderr)
    failed = 0
    with open(arguments.table, "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["group", "op", "one_us", "in_a_row_us", "times", "kernels_us", "kernels", "values"])
        for group, name, size, make in OPS:
            if not chosen(group, name, size):
                continue
            if time.time() - started > arguments.seconds:
                print(f"time is up before {group}/{name}", file=sys.stderr)
                break
            begin = time.time()
            try:
                # Ranges of NVTX are the thread's: without threads the backward pass is in the operator's.
                with torch.set_grad_enabled(group == "training"), torch.autograd.set_multithreading_enabled(not arguments.virtual):
                    table.writerow(measure(group, name, make))
            except Exception as problem:  # one operator that fails leaves the others
                failed += 1
                print(f"{group}/{name}: {type(problem).__name__}: {str(problem).splitlines()[0][:200]}", file=sys.stderr)
            print(f"{time.time() - begin:7.2f} s  {group}/{name}", file=sys.stderr)
            file.flush()
            torch.cuda.empty_cache()
    return 1 if failed else 0


sys.exit(main())
