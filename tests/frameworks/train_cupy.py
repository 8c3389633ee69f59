# SPDX-License-Identifier: Apache-2.0
"""Training steps of a perceptron with two hidden layers in CuPy: forward, backward, momentum, each in a range of NVTX. The loss is compared with
NumPy's. What a step needs of memory: weights, gradients and momentum, of which each part of a step uses some."""
import sys

import cupy as cp
import numpy as np
from cupyx.profiler import time_range

STEPS, BATCH, SIZES = 2, 64, (512, 1024, 1024, 16)


def train(xp, weights, inputs, targets):
    momenta = [xp.zeros_like(w) for w in weights]
    losses = []
    for _ in range(STEPS):
        with time_range("forward"):
            layers = [inputs]
            for number, w in enumerate(weights):
                with time_range(f"layer{number + 1}"):
                    out = layers[-1] @ w
                    layers.append(xp.maximum(out, 0) if number + 1 < len(weights) else out)
            difference = layers[-1] - targets
            losses.append(float((difference * difference).mean()))
        with time_range("backward"):
            gradients = [None] * len(weights)
            slope = difference * (2 / difference.size)
            for number in reversed(range(len(weights))):
                with time_range(f"layer{number + 1}"):
                    gradients[number] = layers[number].T @ slope
                    if number:
                        slope = (slope @ weights[number].T) * (layers[number] > 0)
        with time_range("update"):
            for w, m, g in zip(weights, momenta, gradients):
                m *= 0.9
                m += g
                w -= 0.05 * m
    return losses


random = np.random.default_rng(1)
weights = [(random.standard_normal(shape) / shape[0] ** 0.5).astype(np.float32) for shape in zip(SIZES, SIZES[1:])]
inputs, targets = (random.standard_normal((BATCH, size)).astype(np.float32) for size in (SIZES[0], SIZES[-1]))
with time_range("weights"):
    ours = [cp.asarray(w) for w in weights]
with time_range("data"):
    data = cp.asarray(inputs), cp.asarray(targets)
losses = train(cp, ours, *data)
right = train(np, weights, inputs, targets)
print("losses", " ".join(f"{loss:.4f}" for loss in losses))
if not np.allclose(losses, right, rtol=1e-3) or losses[1] >= losses[0]:
    sys.exit(f"NumPy's losses are {right}")
