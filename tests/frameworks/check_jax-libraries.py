# SPDX-License-Identifier: Apache-2.0
"""Libraries on JAX - Equinox, Optax, Flax, Diffrax, NumPyro, Keras - against JAX's CPU. XLA does not try kernels out, which takes most of the time."""
import os

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_gpu_autotune_level=0"
os.environ["KERAS_BACKEND"] = "jax"

import diffrax
import equinox as eqx
import flax.linen as linen
import jax
import jax.numpy as jnp
import keras
import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
from flax import nnx
from numpyro.infer import MCMC, NUTS, SVI, Trace_ELBO, autoguide

from check import check

KEY = np.array([0, 7], dtype=np.uint32)  # of a generator; NumPy's, so that it is of no device


def key(number=0):
    return jax.random.fold_in(jax.random.wrap_key_data(KEY), number)


def same(make, tolerance=1e-3):
    """All arrays that make() gives on the GPU are those of the CPU."""
    def on(platform):
        with jax.default_device(jax.devices(platform)[0]):
            return [np.asarray(x) for x in jax.tree.leaves(make())]
    return all(np.abs(a - b).max() <= tolerance * (np.abs(a).max() + 1e-9) for a, b in zip(on("cpu"), on("gpu"), strict=True))


def equinox_training():
    model, optimiser = eqx.nn.MLP(4, 2, 16, 2, key=key(1)), optax.adam(1e-2)
    x = jax.random.normal(key(), (32, 4))
    y, state, losses = jnp.stack([x.sum(1), x.prod(1)], 1), optimiser.init(eqx.filter(model, eqx.is_array)), []

    @eqx.filter_jit
    def step(model, state):
        loss, gradient = eqx.filter_value_and_grad(lambda m: jnp.mean((jax.vmap(m)(x) - y) ** 2))(model)
        update, state = optimiser.update(gradient, state, model)
        return eqx.apply_updates(model, update), state, loss

    for _ in range(4):
        model, state, loss = step(model, state)
        losses.append(loss)
    return losses


def equinox_layers():
    convolution, attention, cell = eqx.nn.Conv2d(3, 4, 3, key=key(2)), eqx.nn.MultiheadAttention(2, 8, key=key(3)), eqx.nn.GRUCell(4, 8, key=key(4))
    image, q, words = jax.random.normal(key(), (3, 8, 8)), jax.random.normal(key(5), (6, 8)), jax.random.normal(key(6), (5, 4))
    return eqx.filter_jit(lambda: (convolution(image), attention(q, q, q), jax.lax.scan(lambda h, x: (cell(x, h), None), jnp.zeros(8), words)[0]))()


def optimisers():
    results = []
    for optimiser in (optax.adamw(1e-2), optax.lamb(1e-2), optax.lion(1e-3), optax.adafactor(1e-2),
                      optax.chain(optax.clip_by_global_norm(0.5), optax.sgd(optax.cosine_decay_schedule(0.1, 10), momentum=0.9, nesterov=True))):
        weights = {"w": jax.random.normal(key(), (16, 16)), "b": jnp.ones(16)}
        state = optimiser.init(weights)

        @jax.jit
        def step(weights, state):
            gradient = jax.grad(lambda p: jnp.mean((jnp.tanh(p["w"]) + p["b"] - 1) ** 2))(weights)
            update, state = optimiser.update(gradient, state, weights)
            return optax.apply_updates(weights, update), state

        for _ in range(3):
            weights, state = step(weights, state)
        results.append(weights)
    return results


def lbfgs():
    def value(w):
        return jnp.sum((w - 3.0) ** 4) + jnp.sum(w[1:] * w[:-1])

    optimiser, w = optax.lbfgs(), jnp.ones(5)
    state, value_and_gradient = optimiser.init(w), optax.value_and_grad_from_state(value)

    @jax.jit
    def step(w, state):
        v, gradient = value_and_gradient(w, state=state)
        update, state = optimiser.update(gradient, state, w, value=v, grad=gradient, value_fn=value)
        return optax.apply_updates(w, update), state

    for _ in range(4):
        w, state = step(w, state)
    return w


class Network(nnx.Module):
    def __init__(self, numbers):
        self.convolution, self.norm, self.out = nnx.Conv(1, 4, (3, 3), rngs=numbers), nnx.BatchNorm(4, rngs=numbers), nnx.Linear(64, 3, rngs=numbers)

    def __call__(self, x):
        x = nnx.max_pool(nnx.relu(self.norm(self.convolution(x))), (2, 2), (2, 2))
        return self.out(x.reshape(x.shape[0], -1))


def flax_training():
    model = Network(nnx.Rngs(0))
    optimiser = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
    x, y = jax.random.normal(key(), (8, 8, 8, 1)), jnp.arange(8) % 3

    @nnx.jit
    def step(model, optimiser):
        loss, gradient = nnx.value_and_grad(lambda m: optax.softmax_cross_entropy_with_integer_labels(m(x), y).mean())(model)
        optimiser.update(model, gradient)
        return loss

    return [step(model, optimiser) for _ in range(3)]


def flax_layers():
    results = []
    for layer, shape in ((linen.RNN(linen.LSTMCell(8)), (2, 5, 4)), (linen.SelfAttention(num_heads=2), (2, 6, 8))):
        x = jax.random.normal(key(), shape)
        results.append(jax.jit(layer.apply)(layer.init(key(1), x), x))
    return results


def predators():
    solution = diffrax.diffeqsolve(diffrax.ODETerm(lambda t, y, _: jnp.stack([y[0] * (1 - y[1]), y[1] * (y[0] - 1)])), diffrax.Tsit5(), 0, 5, 0.1,
                                   jnp.array([1.2, 0.8]), saveat=diffrax.SaveAt(ts=jnp.linspace(0, 5, 6)),
                                   stepsize_controller=diffrax.PIDController(rtol=1e-5, atol=1e-6))
    return solution.ys


def stiff_gradient():
    def end(k):
        return diffrax.diffeqsolve(diffrax.ODETerm(lambda t, y, _: -k * (y - jnp.cos(t))), diffrax.Kvaerno3(), 0, 1, 0.05, jnp.zeros(1),
                                   stepsize_controller=diffrax.PIDController(rtol=1e-3, atol=1e-4)).ys[-1, 0]
    return jax.jit(jax.value_and_grad(end))(30.0)


def noise():
    path = diffrax.VirtualBrownianTree(0, 1, tol=1e-2, shape=(), key=key(5))
    terms = diffrax.MultiTerm(diffrax.ODETerm(lambda t, y, _: -y), diffrax.ControlTerm(lambda t, y, _: 0.1, path))
    return diffrax.diffeqsolve(terms, diffrax.Heun(), 0, 1, 0.05, 1.0).ys


def variational():
    x = jax.random.normal(key(), (50,))

    def line():
        a, b = numpyro.sample("a", dist.Normal(0, 1)), numpyro.sample("b", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(a * x + b, 0.5), obs=2 * x + 1)

    return SVI(line, autoguide.AutoNormal(line), numpyro.optim.Adam(0.05), Trace_ELBO()).run(key(6), 20, progress_bar=False).losses


def chain():
    """Its first sample: rounding parts two chains soon."""
    sampler = MCMC(NUTS(lambda: numpyro.sample("x", dist.Normal(jnp.zeros(2), jnp.array([1.0, 2.0])))), num_warmup=10, num_samples=10, progress_bar=False)
    sampler.run(key(7))
    return sampler.get_samples()["x"][:1]


def keras_training():
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((8, 8, 1)), keras.layers.Conv2D(4, 3, activation="relu"), keras.layers.MaxPooling2D(), keras.layers.Flatten(),
                              keras.layers.Dense(3)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    numbers = np.random.default_rng(0)
    x, y = numbers.normal(size=(16, 8, 8, 1)).astype("f"), numbers.integers(0, 3, 16)
    return np.array(model.fit(x, y, epochs=2, batch_size=8, verbose=0, shuffle=False).history["loss"])


def keras_layers():
    keras.utils.set_random_seed(4)
    words = keras.Input((6,))
    x = keras.layers.Embedding(20, 8)(words)
    x = keras.layers.LayerNormalization()(x + keras.layers.MultiHeadAttention(2, 4)(x, x))
    model = keras.Model(words, keras.layers.Dense(2)(keras.layers.LSTM(5)(x)))
    return model(np.arange(12).reshape(2, 6) % 20)


check("Equinox: training", lambda: same(equinox_training, 1e-2))
check("Equinox: convolution, attention, GRU", lambda: same(equinox_layers))
check("Optax: five optimisers", lambda: same(optimisers))
check("Optax: L-BFGS with its line search", lambda: same(lbfgs))
check("Flax NNX: training with batch norm", lambda: same(flax_training, 1e-2))
check("Flax Linen: LSTM, attention", lambda: same(flax_layers))
check("Diffrax: adaptive steps", lambda: same(predators))
check("Diffrax: gradient through implicit steps", lambda: same(stiff_gradient))
check("Diffrax: noise", lambda: same(noise))
check("NumPyro: variational inference", lambda: same(variational))
check("NumPyro: NUTS", lambda: same(chain))
check("Keras on JAX: training", lambda: same(keras_training, 1e-2))
check("Keras on JAX: embedding, attention, LSTM", lambda: same(keras_layers))
