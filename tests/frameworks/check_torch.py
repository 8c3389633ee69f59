# SPDX-License-Identifier: Apache-2.0
"""PyTorch's wheel and Triton, against the CPU. The wheel's own kernels are machine code without PTX; what goes to cuBLAS, cuDNN and Triton
runs, and what does not is listed."""
import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from check import check

torch.manual_seed(0)
A, B = torch.randn(2, 64, 64)
IMAGE, WEIGHTS = torch.randn(2, 3, 16, 16), torch.randn(8, 3, 3, 3)


def gpu(tensor):
    return tensor.to("cuda")


def near(ours, right, tolerance=1e-2):
    return torch.allclose(ours.detach().cpu().float(), right.detach().float(), tolerance, tolerance)


@triton.jit
def add_kernel(x, y, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def product_kernel(a, b, out, N: tl.constexpr, BLOCK: tl.constexpr):
    rows, columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in range(0, N, BLOCK):
        inner = k + tl.arange(0, BLOCK)
        total += tl.dot(tl.load(a + rows[:, None] * N + inner[None, :]), tl.load(b + inner[:, None] * N + columns[None, :]))
    tl.store(out + rows[:, None] * N + columns[None, :], total)


@triton.jit
def softmax_kernel(out, x, count, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * count + at, mask=at < count, other=-float("inf"))
    values = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * count + at, values / tl.sum(values, 0), mask=at < count)


@triton.jit
def barrier_kernel(values, counter, out, BLOCKS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(values + at, at * 2)
    tl.debug_barrier()
    tl.atomic_add(counter, 1, sem="acq_rel")
    while tl.atomic_add(counter, 0, sem="acquire") < BLOCKS:
        pass
    tl.store(out + at, tl.load(values + BLOCKS * BLOCK - 1 - at))


@triton.autotune(configs=[triton.Config({"BLOCK": block}, num_warps=warps) for block in (128, 256) for warps in (2, 4)], key=["count"])
@triton.jit
def double_kernel(x, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < count) * 2, mask=at < count)


def triton_add():
    x, y = torch.randn(2, 1000)
    out = torch.empty(1000, device="cuda")
    add_kernel[(4,)](gpu(x), gpu(y), out, 1000, BLOCK=256)
    return torch.equal(out.cpu(), x + y)


def triton_product(kind):
    a, b, out = A.to(kind), B.to(kind), torch.empty(64, 64, device="cuda")
    product_kernel[(2, 2)](gpu(a), gpu(b), out, 64, BLOCK=32)
    return near(out, a.float() @ b.float(), 5e-2)


def triton_softmax():
    x, out = torch.randn(16, 100), torch.empty(16, 100, device="cuda")
    softmax_kernel[(16,)](out, gpu(x), 100, BLOCK=128)
    return near(out, x.softmax(1), 1e-6)


def triton_barrier():
    values, out = torch.empty(2048, device="cuda"), torch.empty(2048, device="cuda")
    barrier_kernel[(16,)](values, gpu(torch.zeros(1, dtype=torch.int32)), out, BLOCKS=16, BLOCK=128, launch_cooperative_grid=True)
    return torch.equal(out.cpu(), 4094 - 2 * torch.arange(2048.0))


def triton_autotune():
    x, out = torch.randn(3000), torch.empty(3000, device="cuda")
    double_kernel[lambda meta: (triton.cdiv(3000, meta["BLOCK"]),)](gpu(x), out, 3000)
    return torch.equal(out.cpu(), x * 2)


def product_of_bytes(rows, inner, columns):
    a, b = torch.randint(-128, 128, (rows, inner)).to(torch.int8), torch.randint(-128, 128, (inner, columns)).to(torch.int8)
    return torch.equal(torch._int_mm(gpu(a), gpu(b)).cpu().long(), a.long() @ b.long())


def compiled():
    layers = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.LayerNorm(64), torch.nn.GELU(), torch.nn.Linear(64, 8))
    x = torch.randn(16, 32)
    right = layers(x)
    return near(torch.compile(layers.to("cuda"))(gpu(x)), right, 1e-4)


check("copies", lambda: torch.equal(gpu(A).cpu(), A))
check("pinned memory", lambda: torch.equal(A.pin_memory().to("cuda", non_blocking=True).cpu(), A))
check("memory_stats", lambda: torch.cuda.memory_stats()["num_alloc_retries"] == 0)
check("mm", lambda: near(torch.mm(gpu(A), gpu(B)), A @ B))
check("mm half", lambda: near(torch.mm(gpu(A.half()), gpu(B.half())), A @ B, 1e-1))
check("mm bfloat16", lambda: near(torch.mm(gpu(A.bfloat16()), gpu(B.bfloat16())), A @ B, 3e-1))
for size in ((128, 128, 64), (64, 64, 64)):
    check("_int_mm {} x {} x {}".format(*size), lambda: product_of_bytes(*size))
check("bmm", lambda: near(torch.bmm(gpu(A.view(4, 16, 64)), gpu(B.view(4, 64, 16))), torch.bmm(A.view(4, 16, 64), B.view(4, 64, 16))))
check("linear", lambda: near(F.linear(gpu(A), gpu(B)), F.linear(A, B)))
check("conv2d (cuDNN)", lambda: near(F.conv2d(gpu(IMAGE), gpu(WEIGHTS), padding=1), F.conv2d(IMAGE, WEIGHTS, padding=1)))
COMPLEX = torch.randn(4, 6, 10, dtype=torch.complex64)
check("fft (cuFFT)", lambda: torch.allclose(torch.fft.fft(gpu(COMPLEX)).cpu(), torch.fft.fft(COMPLEX), 1e-5, 1e-5))
check("fftn (cuFFT)", lambda: torch.allclose(torch.fft.fftn(gpu(COMPLEX)).cpu(), torch.fft.fftn(COMPLEX), 1e-4, 1e-4))
check("rfft2 (cuFFT)", lambda: torch.allclose(torch.fft.rfft2(gpu(A)).cpu(), torch.fft.rfft2(A), 1e-4, 1e-3))
check("irfft (cuFFT)", lambda: near(torch.fft.irfft(gpu(COMPLEX), norm="forward"), torch.fft.irfft(COMPLEX, norm="forward"), 1e-5))
check("triton add", triton_add)
for kind in (torch.float16, torch.bfloat16, torch.float32):
    check(f"triton dot {kind}", lambda: triton_product(kind))
check("triton softmax", triton_softmax)
check("triton grid barrier", triton_barrier)
check("triton autotune", triton_autotune)
check("torch.compile forward", compiled)
check("add (a kernel of the wheel)", lambda: near(gpu(A) + gpu(B), A + B))
