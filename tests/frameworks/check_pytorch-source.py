# SPDX-License-Identifier: Apache-2.0
"""PyTorch's wheel with its own kernels compiled from source (scripts/pytorch-kernels.sh), against the CPU: tensors, and some steps of training
with the same seeds and the same initial weights."""
import copy

import torch
import torch.nn.functional as F
from torch import nn

from check import check

STEPS = 3


def near(ours, right, tolerance=1e-4):
    return torch.allclose(ours.detach().cpu().float(), right.detach().cpu().float(), tolerance, tolerance)


def both(function, *inputs):
    """The same function of the same tensors on both."""
    return near(function(*[value.cuda() for value in inputs]), function(*inputs))


# ---- models ----


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Conv2d(4, 8, 3, padding=1)
        self.out = nn.Linear(8 * 4 * 4, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.first(x))), 2)
        return self.out(F.max_pool2d(F.relu(self.second(x)), 2).flatten(1))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.norm, self.inputs, self.outputs = heads, nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.dense = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.inputs(self.norm(x)).split(width, 2)
        q, k, v = [part.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for part in parts]
        later = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        weights = (q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5).masked_fill(later, float("-inf")).softmax(-1)
        x = x + self.outputs((weights @ v).transpose(1, 2).reshape(batch, length, width))
        return x + self.dense(x)


class Text(nn.Module):
    def __init__(self, words=64, length=16, width=32):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks, self.out = nn.Sequential(Block(width, 2), Block(width, 2), nn.LayerNorm(width)), nn.Linear(width, words)

    def forward(self, x):
        return self.out(self.blocks(self.words(x) + self.places(torch.arange(x.shape[1], device=x.device))))


def losses(model, batches, loss, make_optimiser, device, precision=None):
    model = copy.deepcopy(model).to(device)
    optimiser, found = make_optimiser(model.parameters()), []
    scaler = torch.amp.GradScaler(device, enabled=precision is not None)
    for x, y in batches:
        optimiser.zero_grad()
        with torch.autocast(device, dtype=precision, enabled=precision is not None):
            value = loss(model(x.to(device)), y.to(device))
        scaler.scale(value).backward()
        scaler.step(optimiser)
        scaler.update()
        found.append(value.item())
    return found


def trains(model, batches, loss, make_optimiser, tolerance=1e-4, precision=None):
    right = losses(model, batches, loss, make_optimiser, "cpu")
    ours = losses(model, batches, loss, make_optimiser, "cuda", precision)
    return len(set(right)) > 1 and near(torch.tensor(ours), torch.tensor(right), tolerance)


def words_loss(found, right):
    return F.cross_entropy(found.flatten(0, 1), right.flatten())


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9)


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=1e-3)


torch.manual_seed(1)
X, Y = torch.randn(2, 8, 33)
DENSE = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
NUMBERS = [(torch.randn(8, 16), torch.randn(8, 1)) for _ in range(STEPS)]
PICTURES = [(torch.randn(8, 1, 16, 16), torch.randint(10, (8,))) for _ in range(STEPS)]
SENTENCES = [(words[:, :-1], words[:, 1:]) for words in torch.randint(64, (STEPS, 4, 17))]


# ---- what a GPU has in addition ----


def graph():
    x = torch.ones(64, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        y = x * 2 + 1
    torch.cuda.current_stream().wait_stream(stream)
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        y = x * 2 + 1
    x.fill_(5)
    recorded.replay()
    torch.cuda.synchronize()
    return bool((y == 11).all())


def streams():
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(first):
        x = torch.full((100,), 3.0, device="cuda")
        done = first.record_event()
    with torch.cuda.stream(second):
        second.wait_event(done)
        y = x * 2
    second.synchronize()
    return bool((y == 6).all())


def pinned():
    x = torch.randn(100).pin_memory()
    return torch.equal(x.to("cuda", non_blocking=True).cpu(), x) and x.is_pinned()


def statistics():
    before = torch.cuda.memory_allocated()
    x = torch.zeros(1 << 20, device="cuda")
    more = torch.cuda.memory_allocated() - before
    del x
    return more == 4 << 20 and torch.cuda.memory_allocated() == before and torch.cuda.memory_stats()["allocation.all.peak"] > 0


def two_devices():
    first, second = X.to("cuda:0"), Y.to("cuda:1")
    return near(first + second.to("cuda:0"), X + Y) and near(first.to("cuda:1") * second, X * Y)


def data_parallel():
    """NCCL between the devices: the loss, and the gradients that come back to the first one."""
    def step(model, x):
        model.zero_grad()
        loss = F.mse_loss(model(x), torch.ones(8, 4, device=x.device))
        loss.backward()
        return loss, [p.grad.cpu() for p in model.parameters()]

    torch.manual_seed(5)
    model, x = nn.Sequential(nn.Linear(33, 32), nn.ReLU(), nn.Linear(32, 4)), torch.randn(8, 33)
    loss, right = step(model, x)
    there, ours = step(nn.DataParallel(copy.deepcopy(model).cuda(), [0, 1]), x.cuda())
    return near(there.detach(), loss.detach()) and all(near(a, b) for a, b in zip(ours, right, strict=True))


def repeats():
    def numbers():
        torch.manual_seed(3)
        return torch.randn(1000, device="cuda"), torch.rand(1000, device="cuda")

    (first, second), (again, too) = numbers(), numbers()
    return torch.equal(first, again) and torch.equal(second, too) and abs(first.mean().item()) < 0.2 and abs(second.mean().item() - 0.5) < 0.1


check("a + b", lambda: both(lambda a, b: a + b, X, Y))
check("elementwise", lambda: both(lambda a, b: (a * b - a / (b.abs() + 1)).relu().half().float(), X, Y))
check("reductions", lambda: both(lambda a: torch.stack([a.sum(), a.mean(), a.max(), a.softmax(1).sum(0).mean()]), X))
check("index and cat", lambda: both(lambda a, b: torch.cat([a[[1, 3, 2]], b[a > 0].sum().expand(1, 33)]), X, Y))
check("random numbers", repeats)
check("a dense network, SGD", lambda: trains(DENSE, NUMBERS, F.mse_loss, sgd))
check("a convolutional network, SGD", lambda: trains(Images(), PICTURES, F.cross_entropy, sgd, 1e-3))
check("a transformer, AdamW", lambda: trains(Text(), SENTENCES, words_loss, adamw, 1e-3))
check("mixed precision, a transformer", lambda: trains(Text(), SENTENCES, words_loss, adamw, 2e-2, torch.float16))
check("CUDA graph", graph)
check("streams", streams)
check("pinned memory", pinned)
check("memory_stats", statistics)
check("two devices", two_devices)
check("DataParallel", data_parallel)
