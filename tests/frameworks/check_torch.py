# SPDX-License-Identifier: Apache-2.0
"""PyTorch's wheel and Triton, against the CPU. The wheel's own kernels are machine code without PTX; what goes to cuBLAS, cuDNN and Triton
runs, and what does not is listed."""
import copy
import os
import subprocess
import sys
import tempfile

import torch
import torch._inductor.config
import torch.nn.functional as F
import triton
import triton.language as tl

from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from check import check

torch._inductor.config.triton.autotune_pointwise = False
torch._inductor.config.joint_graph_constant_folding = False  # it computes constants by kernels of the wheel
torch._inductor.config.shape_padding = False  # it makes random matrices by them, to try products with
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


def scaled_product(kind, rows, inner, columns, out):
    """Of 8-bit floats, which cuBLASLt multiplies."""
    a, b = torch.randn(rows, inner).clamp(-2, 2).to(kind), torch.randn(columns, inner).clamp(-2, 2).to(torch.float8_e4m3fn)
    ours = torch._scaled_mm(gpu(a), gpu(b).t(), gpu(torch.tensor(0.5)), gpu(torch.tensor(2.0)), out_dtype=out)
    return near(ours, a.float() @ b.float().t(), 5e-2)


def attention(causal):
    q, k, v = torch.randn(3, 2, 4, 64, 64).half()
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        ours = F.scaled_dot_product_attention(gpu(q), gpu(k), gpu(v), is_causal=causal)
    return near(ours, F.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=causal))


def same_gradients(ours, right, values, tolerance):
    """Of two functions of the same values, with the same weights."""
    there, here = [gpu(value).requires_grad_() for value in values], [value.float().requires_grad_() for value in values]
    found, wanted = ours(*there), right(*here)
    weights = torch.randn(wanted.shape)
    pairs = zip(torch.autograd.grad(found, there, gpu(weights.to(found.dtype))), torch.autograd.grad(wanted, here, weights), strict=True)
    return all(near(one, other, tolerance) for one, other in pairs)


def attention_gradient():
    def ours(q, k, v):
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return F.scaled_dot_product_attention(q, k, v)

    return same_gradients(ours, F.scaled_dot_product_attention, torch.randn(3, 2, 4, 64, 64).half(), 2e-2)


def lstm():
    layers, x = nn.LSTM(8, 16, 2), torch.randn(5, 3, 8)
    with torch.no_grad():
        return near(copy.deepcopy(layers).to("cuda")(gpu(x))[0], layers(x)[0], 1e-4)


def flexible(mask):
    """FlexAttention: with a function of scores, or with blocks that a causal mask leaves out."""
    q, k, v = torch.randn(3, 1, 2, 128, 32)

    def score(value, batch, head, query, key):
        return value + (query - key).abs() * -0.1

    compiled = torch.compile(flex_attention)
    if mask:
        blocks = create_block_mask(lambda batch, head, query, key: query >= key, None, None, 128, 128, device="cpu").to("cuda")
        return near(compiled(gpu(q), gpu(k), gpu(v), block_mask=blocks), F.scaled_dot_product_attention(q, k, v, is_causal=True))
    return near(compiled(gpu(q), gpu(k), gpu(v), score_mod=score), flex_attention(q, k, v, score_mod=score))


LAYERS = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4))


def any_shape():
    compiled = torch.compile(copy.deepcopy(LAYERS).to("cuda"), dynamic=True)
    with torch.no_grad():
        return all(near(compiled(gpu(x)), LAYERS(x), 1e-4) for x in (torch.randn(rows, 16) for rows in (3, 8, 17, 64)))


def sgd(parameters):
    return torch.optim.SGD(parameters, 0.05)


def adam(parameters):
    return torch.optim.Adam(parameters, 1e-2)


def trains(model, inputs, loss_of, optimiser_of=sgd):
    """Three steps: forward and backward by Inductor, the first gradient from the CPU, the update compiled, too."""
    def losses(device, compiled):
        own = copy.deepcopy(model).to(device)
        optimiser = optimiser_of(own.parameters())
        forward = compiled(lambda x, y: loss_of(own(x), y))
        update, found = compiled(optimiser.step), []
        for x, y in inputs:
            loss = forward(x.to(device), y.to(device))
            loss.backward(torch.tensor(1.0).to(device))
            update()
            optimiser.zero_grad(set_to_none=True)
            found.append(loss.item())
        return torch.tensor(found)

    right = losses("cpu", lambda function: function)
    return len(set(right.tolist())) > 1 and near(losses("cuda", torch.compile), right, 1e-4)


def images():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(512, 10))


def graph():
    x, later = gpu(torch.randn(64, 64)), torch.randn(64, 64)
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.mm(x, x)
    torch.cuda.synchronize()
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        y = torch.mm(x, x)
    x.copy_(later)
    recorded.replay()
    torch.cuda.synchronize()
    return near(y, later @ later)


def snapshot():
    torch.cuda.memory._record_memory_history(max_entries=1000)
    kept = torch.empty(1 << 20, device="cuda")
    found = torch.cuda.memory._snapshot()
    torch.cuda.memory._record_memory_history(enabled=None)
    return kept.numel() and any(event["action"] == "alloc" for event in found["device_traces"][0])


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, at):
        return torch.full((4,), float(at))


def loader():
    batches = list(torch.utils.data.DataLoader(Numbers(), batch_size=4, num_workers=2, pin_memory=True))
    there = torch.cat([batch.to("cuda", non_blocking=True).cpu()[:, 0] for batch in batches])
    return all(batch.is_pinned() for batch in batches) and torch.equal(there, torch.arange(16.0))


def profiled():
    """The GPU's part is refused; what runs on the CPU is there."""
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        torch.mm(gpu(A), gpu(B))
    return "aten::mm" in [event.key for event in profile.key_averages()]


DISTRIBUTED = """
import os, torch, torch.distributed as dist
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
base = torch.arange(1000.0)
ours = lambda: (base + rank).cuda()
empty = lambda count: torch.empty(count, device="cuda")
x = ours(); dist.all_reduce(x); good = [torch.equal(x.cpu(), 2 * base + 1)]
x = ours(); dist.broadcast(x, 1); good.append(torch.equal(x.cpu(), base + 1))
x = empty(2000); dist.all_gather_into_tensor(x, ours()); good.append(torch.equal(x.cpu(), torch.cat([base, base + 1])))
x = empty(500); dist.reduce_scatter_tensor(x, ours()); good.append(torch.equal(x.cpu(), (2 * base + 1)[500 * rank:500 * rank + 500]))
x = empty(1000); dist.all_to_all_single(x, ours()); good.append(torch.equal(x.cpu(), torch.cat([base + r for r in (0, 1)]).view(2, 2, 500)[:, rank].flatten()))
x, y = empty(1000), ours()
for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, y, 1 - rank), dist.P2POp(dist.irecv, x, 1 - rank)]): work.wait()
good.append(torch.equal(x.cpu(), base + 1 - rank))
dist.barrier()
dist.destroy_process_group()
assert all(good), good
print("right", flush=True)
"""


# Each process has half of a batch. What is left out needs kernels of the wheel: the first exchange of weights (both processes make the same ones) and
# the division of gradients by the number of processes, which NCCL does here.
DATA_PARALLEL = """
import copy, os, torch, torch.distributed as dist, torch.nn.functional as F
from torch import nn
import torch._inductor.config
torch._inductor.config.joint_graph_constant_folding = torch._inductor.config.shape_padding = False
rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
torch.manual_seed(0)
alone = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4))
own, batches = copy.deepcopy(alone).to("cuda"), [(torch.randn(8, 16), torch.randn(8, 4)) for _ in range(4)]
part = slice(4 * rank, 4 * rank + 4)

def averaged(tensor):
    dist.all_reduce(tensor, op=dist.ReduceOp.AVG)
    return tensor

def average(state, bucket):
    return dist.all_reduce(bucket.buffer(), op=dist.ReduceOp.AVG, async_op=True).get_future().then(lambda done: done.value()[0])

def losses(model, inputs, compiled):
    optimiser = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    update, loss_of = compiled(optimiser.step), compiled(F.mse_loss)
    for x, y in inputs:
        loss = loss_of(model(x), y)
        loss.backward(torch.tensor(1.0).to(x.device))
        update()
        optimiser.zero_grad(set_to_none=True)
        yield loss.detach()

model = nn.parallel.DistributedDataParallel(torch.compile(own), device_ids=[rank], init_sync=False)
model.register_comm_hook(None, average)
local = list(losses(model, [(x[part].to("cuda"), y[part].to("cuda")) for x, y in batches], torch.compile))
before = torch.tensor([loss.item() for loss in local])
together = torch.tensor([averaged(loss).item() for loss in local])
right = torch.stack(list(losses(alone, batches, lambda function: function)))
weights = [(one.detach().cpu(), other.detach()) for one, other in zip(own.parameters(), alone.parameters(), strict=True)]
assert not torch.allclose(before, right, 1e-3), "a part of a batch has the loss of all of it"
assert torch.allclose(together, right, 1e-5), (together, right)
assert all(torch.allclose(one, other, 1e-4, 1e-6) for one, other in weights), [(one - other).abs().max() for one, other in weights]
dist.destroy_process_group()
print("right", flush=True)
"""


def in_two_processes(text):
    """A process for each of two GPUs, as torchrun starts them; NCCL between them."""
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "program.py")
        with open(program, "w") as file:
            file.write(text)
        ran = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", program], stdout=subprocess.PIPE, text=True)
    return ran.returncode == 0 and ran.stdout.count("right") == 2


def data_parallel(rows):
    """Over both GPUs. One weight and no bias: several would be concatenated by a kernel of the wheel."""
    layer, x, weights = nn.Linear(16, 8, bias=False), torch.randn(rows, 16), torch.randn(rows, 8)
    ours = nn.DataParallel(copy.deepcopy(layer).to("cuda"))
    found, right = ours(gpu(x)), layer(x)
    found.backward(gpu(weights))
    right.backward(weights)
    return len(ours.device_ids) == 2 and near(found, right, 1e-5) and near(ours.module.weight.grad, layer.weight.grad, 1e-5)


# First: before this process has a GPU.
check("torch.distributed over NCCL, two processes", lambda: in_two_processes(DISTRIBUTED))
check("DistributedDataParallel, two processes", lambda: in_two_processes(DATA_PARALLEL))
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
check("torch.compile, shapes that change", any_shape)
for optimiser in (sgd, adam):
    check(f"torch.compile, training, a dense network, {optimiser.__name__}",
          lambda: trains(LAYERS, [(torch.randn(8, 16), torch.randn(8, 4)) for _ in range(3)], F.mse_loss, optimiser))
check("torch.compile, training, a convolutional network",
      lambda: trains(images(), [(torch.randn(4, 3, 16, 16), torch.randint(10, (4,))) for _ in range(3)], F.cross_entropy))
check("FlexAttention, scores", lambda: flexible(False))
check("FlexAttention, blocks of a causal mask", lambda: flexible(True))
for kind in (torch.float8_e4m3fn, torch.float8_e5m2):
    for size in ((64, 64, 64), (16, 32, 16), (32, 256, 64)):
        for out in (torch.bfloat16, torch.float32):
            check("_scaled_mm {} {} x {} x {} {}".format(kind, *size, out), lambda: scaled_product(kind, *size, out))
check("attention (cuDNN)", lambda: attention(False))
check("attention (cuDNN), causal", lambda: attention(True))
check("attention (cuDNN), gradient", attention_gradient)
check("LSTM (cuDNN)", lstm)
check("CUDA graph of a product", graph)
for rows in (8, 7):
    check(f"DataParallel over two GPUs, {rows} rows", lambda: data_parallel(rows))
check("memory snapshot", snapshot)
check("DataLoader with workers and pinned memory", loader)
check("profiler", profiled)
check("add (a kernel of the wheel)", lambda: near(gpu(A) + gpu(B), A + B))
