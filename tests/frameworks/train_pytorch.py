# SPDX-License-Identifier: Apache-2.0
"""train_pytorch.py [gpt|cnn] [STEPS] [cpu|cuda]: training steps of a transformer that predicts the next token, or of a convolutional network, with Adam.
Each step, its parts and each layer are ranges of NVTX. Prints the losses; on the GPU they must be the CPU's."""
import contextlib
import sys

import torch
import torch.nn.functional as F
from torch import nn

WORDS, LENGTH, WIDTH, LAYERS, HEADS, BATCH = 2048, 64, 256, 6, 4, 2


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.inputs, self.outputs = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.dense = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.inputs(self.norm(x)).split(width, 2)
        q, k, v = [part.view(batch, length, HEADS, width // HEADS).transpose(1, 2) for part in parts]
        later = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        weights = (q @ k.transpose(-2, -1) * (width // HEADS) ** -0.5).masked_fill(later, float("-inf")).softmax(-1)
        x = x + self.outputs((weights @ v).transpose(1, 2).reshape(batch, length, width))
        return x + self.dense(x)


class Text(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks, self.norm, self.out = nn.ModuleList(Block() for _ in range(LAYERS)), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)

    def forward(self, x):
        x = self.words(x) + self.places(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            x = block(x)
        return self.out(self.norm(x)).flatten(0, 1)


class Images(nn.Sequential):
    def __init__(self, channels=(3, 32, 64, 128, 256)):
        parts = []
        for before, after in zip(channels, channels[1:]):
            parts += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2)]
        super().__init__(*parts, nn.Flatten(), nn.Linear(channels[-1] * 4, 4096), nn.ReLU(), nn.Linear(4096, 10))


def name_layers(model):
    """A range for each layer, forward and backward; what it calls is inside. Backward passes run in a thread of PyTorch's, which has ranges of its own."""
    def begin(name):
        return lambda layer, values: None if torch.cuda.nvtx.range_push(name) else None

    def end(layer, inputs, outputs):
        torch.cuda.nvtx.range_pop()

    for name, layer in model.named_modules():
        if name and not isinstance(layer, (nn.ModuleList, nn.Sequential)):
            short = name.removeprefix("blocks.")
            layer.register_forward_pre_hook(begin(short))
            layer.register_forward_hook(end)
            layer.register_full_backward_pre_hook(begin(f"backward of {short}"))
            layer.register_full_backward_hook(end)


def train(kind, steps, device):
    torch.manual_seed(1)
    part = torch.cuda.nvtx.range if device == "cuda" else lambda name: contextlib.nullcontext()
    model = Text() if kind == "gpt" else Images()
    numbers = [torch.randint(WORDS, (BATCH, LENGTH + 1)) for _ in range(steps)]
    data = [(n[:, :-1], n[:, 1:].flatten()) for n in numbers]
    if kind == "cnn":
        data = [(torch.randn(BATCH, 3, 32, 32), torch.randint(10, (BATCH,))) for _ in range(steps)]
    with part("weights"):
        model = model.to(device)
    if device == "cuda":
        name_layers(model)
    optimiser, losses = torch.optim.Adam(model.parameters(), lr=1e-3), []
    for x, y in data:
        with part("forward"):
            loss = F.cross_entropy(model(x.to(device)), y.to(device))
        with part("backward"):
            loss.backward()
        with part("update"):
            optimiser.step()
            optimiser.zero_grad()
        losses.append(loss.item())
    return losses


kind, steps = sys.argv[1] if len(sys.argv) > 1 else "gpt", int(sys.argv[2]) if len(sys.argv) > 2 else 2
ours = train(kind, steps, sys.argv[3] if len(sys.argv) > 3 else "cuda")
print("losses", " ".join(f"{loss:.4f}" for loss in ours))
if torch.cuda.is_initialized():
    print(f"{torch.cuda.max_memory_allocated() / 2**20:.0f} MiB of tensors, {torch.cuda.max_memory_reserved() / 2**20:.0f} MiB reserved")
right = train(kind, steps, "cpu")
if not all(abs(a - b) < 2e-3 for a, b in zip(ours, right)):
    sys.exit(f"the CPU's losses are {right}")
