# SPDX-License-Identifier: Apache-2.0
"""cpu_operators.py: PyTorch's operators on the CPU, memory on the GPU, against the same on the CPU alone. What no operator of a CPU computes shows here."""
import copy

import cpu_operators  # noqa: F401: from its import on, operators run on the CPU
import torch
import torch.nn.functional as F

from torch import nn

from check import check

torch.manual_seed(0)
A, B = torch.randn(2, 2, 8, 16)
Q, K, V = torch.randn(3, 2, 4, 9, 16)


def both(function, *tensors):
    """The function's result and its gradients agree: of attention the CPU has a kernel of its own, which rounds otherwise."""
    results = []
    for device in ("cuda", "cpu"):
        inputs = [tensor.to(device, copy=True).requires_grad_() for tensor in tensors]
        result = function(*inputs)
        result.float().square().sum().backward()
        results.append([result, *(tensor.grad for tensor in inputs)])
    tolerance = 1e-5 if tensors[0].dtype == torch.float32 else 3e-2
    return results[0][0].is_cuda and all(torch.allclose(ours.detach().cpu(), right.detach(), tolerance, tolerance) for ours, right in zip(*results))


def masked(query, key, value):
    return F.scaled_dot_product_attention(query, key, value, torch.ones(9, 9, dtype=torch.bool, device=query.device).tril())


def layer(tensor):
    torch.manual_seed(1)
    return nn.TransformerEncoderLayer(16, 4, 32, dropout=0, batch_first=True).to(tensor.device)(tensor)


def trained():
    network = nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 4))
    target = torch.randint(0, 4, (8,))
    losses = []
    for device in ("cuda", "cpu"):
        model = copy.deepcopy(network).to(device)
        optimiser = torch.optim.AdamW(model.parameters(), 0.01)
        losses.append([])
        for _ in range(3):
            optimiser.zero_grad()
            loss = F.cross_entropy(model(A[0].to(device)), target.to(device))
            loss.backward()
            optimiser.step()
            losses[-1].append(loss.item())
    return all(abs(a - b) < 1e-6 for a, b in zip(*losses)) and losses[0][0] > losses[0][2]


def views():
    tensor = torch.zeros(4, 6, device="cuda")
    tensor[1:3, ::2] += 1
    tensor.t()[5].fill_(2)
    right = torch.zeros(4, 6)
    right[1:3, ::2] += 1
    right.t()[5].fill_(2)
    return torch.equal(tensor.cpu(), right)


check("sum and product", lambda: both(lambda a, b: (a + b) @ b.t(), A[0], B[0]))
check("writing to views", views)
check("attention", lambda: both(F.scaled_dot_product_attention, Q, K, V))
check("attention in half, causal", lambda: both(lambda *qkv: F.scaled_dot_product_attention(*qkv, is_causal=True), Q.half(), K.half(), V.half()))
check("attention in bfloat16 with a mask", lambda: both(masked, Q.bfloat16(), K.bfloat16(), V.bfloat16()))
check("a layer of a transformer", lambda: both(layer, A))
check("three steps of AdamW", trained)
