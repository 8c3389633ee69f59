# SPDX-License-Identifier: Apache-2.0
"""JAX: every function on the virtual GPU and on JAX's CPU backend, the same arguments, the same result."""
import jax
import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np
from jax import lax, random

from check import check

GPU, CPU = jax.devices("gpu")[0], jax.devices("cpu")[0]
numbers = np.random.default_rng(4)
X, Y = numbers.standard_normal((2, 1000)).astype(np.float32)
A, B = numbers.standard_normal((2, 64, 64)).astype(np.float32)
POSITIVE = (A @ A.T + 64 * np.eye(64)).astype(np.float32)
IMAGES = numbers.standard_normal((4, 8, 8, 3)).astype(np.float32)
FILTERS = numbers.standard_normal((3, 3, 3, 8)).astype(np.float32)
DIGITS = (numbers.random((16, 12, 12, 1)).astype(np.float32), numbers.integers(0, 10, 16))


def on(device, function, arguments):
    there = jax.device_put(arguments, device)
    return jax.tree.map(np.asarray, jax.jit(function)(*there))


def same(function, *arguments, tolerance=1e-4):
    """The function compiled for either: on the virtual GPU really, and near each other."""
    assert jax.tree.leaves(jax.device_put(arguments, GPU))[0].devices() == {GPU}
    ours, right = (jax.tree.leaves(on(device, function, arguments)) for device in (GPU, CPU))
    return all(np.allclose(a, b, rtol=tolerance, atol=tolerance) for a, b in zip(ours, right, strict=True))


def convolve(images, filters):
    return lax.conv_general_dilated(images, filters, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def mlp(weights, x):
    for w, b in weights[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = weights[-1]
    return x @ w + b


def mlp_weights():
    sizes = [8, 32, 32, 1]
    return [(numbers.standard_normal((m, n)).astype(np.float32) / m ** 0.5, np.zeros(n, np.float32))
            for m, n in zip(sizes, sizes[1:])]


def mlp_training(weights, x, y):
    def loss(weights):
        return jnp.mean((mlp(weights, x) - y) ** 2)

    def step(weights, _):
        value, gradients = jax.value_and_grad(loss)(weights)
        return jax.tree.map(lambda w, g: w - 0.05 * g, weights, gradients), value

    return lax.scan(step, weights, length=20)


def cnn_weights():
    return {"conv": numbers.standard_normal((3, 3, 1, 8)).astype(np.float32) / 3,
            "dense": numbers.standard_normal((6 * 6 * 8, 10)).astype(np.float32) / 17}


def cnn_loss(weights, images, labels):
    x = jax.nn.relu(convolve(images, weights["conv"]))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    scores = jax.nn.log_softmax(x.reshape(len(images), -1) @ weights["dense"])
    return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], 1))


def cnn_training(weights, images, labels):
    losses = []
    for _ in range(4):
        value, gradients = jax.value_and_grad(cnn_loss)(weights, images, labels)
        weights = jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients)
        losses.append(value)
    return weights, jnp.stack(losses)


def learns():
    weights, losses = on(GPU, cnn_training, (cnn_weights(), *DIGITS))
    return bool(losses[-1] < losses[0])


def attention(q, k, v):
    return jax.nn.softmax(q @ k.T / 8) @ v


def while_loop(x):
    return lax.while_loop(lambda state: state[0] < 10, lambda state: (state[0] + 1, state[1] * 0.5 + 1), (0, x))[1]


check("default device", lambda: jnp.zeros(3).devices() == {GPU})
check("elementwise", lambda: same(lambda x, y: jnp.sin(x) * y + jnp.exp(-x * x), X, Y))
check("without jit", lambda: np.allclose(np.asarray(jnp.asarray(X) + 2 * jnp.asarray(Y)), X + 2 * Y, atol=1e-6))
check("sum", lambda: same(lambda x: x.sum(), X))
check("sums of rows and columns", lambda: same(lambda a: (a.sum(0), a.mean(1), a.max(0), a.argmin(1)), A))
check("cumsum", lambda: same(jnp.cumsum, X))
check("sort", lambda: same(lambda x: (jnp.sort(x), jnp.argsort(x)), X))
check("gather and scatter", lambda: same(lambda x: (x[::3], x.at[::7].add(1.0), x[jnp.arange(10) * 5]), X))
check("integers", lambda: same(lambda i: (i // 3, i % 7, i ^ 21, i << 2), np.arange(1000)))
for kind, tolerance in (("float16", 2e-1), ("bfloat16", 1.0), ("float32", 5e-2)):
    check(f"product {kind}", lambda: same(lambda a, b: (a.astype(kind) @ b.astype(kind)).astype("float32"), A, B, tolerance=tolerance))
check("product in full precision", lambda: same(lambda a, b: jnp.matmul(a, b, precision="highest"), A, B))
check("product of batches", lambda: same(lambda a, b: jnp.einsum("bij,bjk->bik", a, b, precision="highest"), A.reshape(4, 16, 64), B.reshape(4, 64, 16)))
check("attention", lambda: same(attention, A, B, POSITIVE / 64, tolerance=5e-2))
check("convolution", lambda: same(convolve, IMAGES, FILTERS, tolerance=5e-2))
check("grad", lambda: same(jax.grad(lambda x: jnp.sum(jnp.tanh(x) ** 2)), X))
check("vmap", lambda: same(jax.vmap(lambda row, x: jnp.dot(row, x) + row[0], (0, None)), A, B[0], tolerance=5e-2))
check("jacobian", lambda: same(jax.jacfwd(lambda x: jnp.sin(x) * x[0]), X[:20]))
check("while_loop", lambda: same(while_loop, X))
check("cond", lambda: same(lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x), X))
check("random numbers", lambda: same(lambda seed: random.normal(random.key(seed), (1000,)), np.int32(7)))
check("Cholesky", lambda: same(jnp.linalg.cholesky, POSITIVE, tolerance=1e-3))
check("solve", lambda: same(jnp.linalg.solve, POSITIVE, B, tolerance=1e-3))
check("eigenvalues", lambda: same(jnp.linalg.eigvalsh, POSITIVE, tolerance=1e-2))
check("singular values", lambda: same(lambda a: jnp.linalg.svd(a, compute_uv=False), A, tolerance=1e-3))
check("QR", lambda: same(lambda a: abs(jnp.linalg.qr(a)[1]), A, tolerance=1e-2))
check("FFT", lambda: same(lambda x: abs(jnp.fft.fft(x)), X[:256], tolerance=1e-3))
check("MLP, 20 steps of training", lambda: same(mlp_training, mlp_weights(), X[:512].reshape(64, 8), Y[:64].reshape(64, 1), tolerance=1e-2))
check("CNN, 4 steps of training", lambda: same(cnn_training, cnn_weights(), *DIGITS, tolerance=2e-2))
check("CNN learns", learns)
