# SPDX-License-Identifier: Apache-2.0
"""TensorFlow, every function on the virtual GPU and on the CPU: the same arguments, the same result."""
import os

os.environ.setdefault("TF_CUDNN_USE_AUTOTUNE", "0")  # every algorithm of cuDNN's would run once

import numpy as np
import tensorflow as tf

from check import check

tf.config.experimental.enable_tensor_float_32_execution(False)

numbers = np.random.default_rng(5)
X, Y = numbers.standard_normal((2, 1000)).astype(np.float32)
A, B = numbers.standard_normal((2, 64, 64)).astype(np.float32)
POSITIVE = (A @ A.T + 64 * np.eye(64)).astype(np.float32)
IMAGES = numbers.standard_normal((4, 12, 12, 3)).astype(np.float32)
FILTERS = numbers.standard_normal((3, 3, 3, 8)).astype(np.float32)
DIGITS, LABELS = numbers.random((32, 12, 12, 1)).astype(np.float32), numbers.integers(0, 10, 32)


def on(device, function, arguments):
    with tf.device(device):
        results = tf.nest.flatten(function(*map(tf.constant, arguments)))
        assert all(device[1:] in result.device for result in results), results[0].device
        return [result.numpy() for result in results]


def same(function, *arguments, tolerance=1e-4):
    ours, right = on("/GPU:0", function, arguments), on("/CPU:0", function, arguments)
    return all(np.allclose(a, b, rtol=tolerance, atol=tolerance) for a, b in zip(ours, right, strict=True))


def gradients(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.tanh(x) ** 2)
    return tape.gradient(y, x)


def pooled(images, filters):
    return tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(images, filters, 1, "SAME")), 2, 2, "VALID")


def build():
    return tf.keras.Sequential([
        tf.keras.Input((12, 12, 1)),
        tf.keras.layers.Conv2D(8, 3, activation="relu"),
        tf.keras.layers.MaxPooling2D(),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(10),
    ])


def train(device, weights):
    with tf.device(device):
        model = build()
        model.set_weights(weights)
        model.compile(tf.keras.optimizers.SGD(0.1), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        history = model.fit(DIGITS, LABELS, batch_size=16, epochs=2, shuffle=False, verbose=0)
        return history.history["loss"], model.get_weights()


def keras_training():
    tf.keras.utils.set_random_seed(1)
    weights = build().get_weights()
    (our_losses, ours), (losses, right) = train("/GPU:0", weights), train("/CPU:0", weights)
    close = all(np.allclose(a, b, rtol=1e-2, atol=1e-3) for a, b in zip(ours, right, strict=True))
    return close and np.allclose(our_losses, losses, rtol=1e-3) and our_losses[-1] < our_losses[0]


check("a GPU is there", lambda: len(tf.config.list_physical_devices("GPU")) == 1)
check("elementwise", lambda: same(lambda x, y: tf.sin(x) * y + tf.exp(-x * x), X, Y))
check("sums", lambda: same(lambda a: (tf.reduce_sum(a, 0), tf.reduce_max(a, 1), tf.reduce_mean(a)), A))
check("cumsum", lambda: same(tf.cumsum, X, tolerance=1e-3))
check("transpose, concat, slices", lambda: same(lambda a, b: (tf.transpose(a), tf.concat([a, b], 1), a[::2, 3:40]), A, B))
check("gather and scatter", lambda: same(lambda x: (tf.gather(x, tf.range(0, 100, 7)), tf.tensor_scatter_nd_add(x, [[1], [5]], [1.0, 2.0])), X))
check("sort", lambda: same(lambda x: (tf.sort(x), tf.math.top_k(x, 10).values), X))
for kind, tolerance in (("float16", 2e-1), ("float32", 1e-3), ("float64", 1e-9)):
    check(f"product {kind}", lambda: same(tf.matmul, A.astype(kind), B.astype(kind), tolerance=tolerance))
check("product of batches", lambda: same(tf.matmul, A.reshape(4, 16, 64), B.reshape(4, 64, 16), tolerance=1e-3))
check("convolution and pooling", lambda: same(pooled, IMAGES, FILTERS, tolerance=1e-3))
check("gradients", lambda: same(gradients, X))
check("tf.function", lambda: same(tf.function(lambda a, b: tf.nn.softmax(a @ b)), A, B, tolerance=1e-3))
check("XLA (jit_compile)", lambda: same(tf.function(lambda x, y: tf.sin(x) * y + tf.exp(-x * x), jit_compile=True), X, Y))
check("Cholesky", lambda: same(tf.linalg.cholesky, POSITIVE, tolerance=1e-3))
check("solve", lambda: same(tf.linalg.solve, POSITIVE, B, tolerance=1e-3))
check("FFT", lambda: same(lambda x: tf.abs(tf.signal.rfft(x)), X[:256], tolerance=1e-3))
check("Keras CNN, 4 steps of training", keras_training)
