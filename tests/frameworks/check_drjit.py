# SPDX-License-Identifier: Apache-2.0
"""Dr.Jit, which writes PTX itself, against NumPy."""
import drjit as dr
import drjit.cuda.ad
import numpy as np
from drjit.cuda import Array2f, Float, Float16, Float64, Int, TensorXf, Texture2f, UInt

from check import check

X = np.linspace(-2, 2, 1000).astype(np.float32)
FUNCTIONS = {"sin": np.sin, "cos": np.cos, "exp": np.exp, "tanh": np.tanh, "atan": np.arctan, "cbrt": np.cbrt, "floor": np.floor}


@dr.syntax
def ten_rounds(x):
    i, out = Int(0), Float(x)
    while i < 10:
        out = out * 1.1 + 1
        i += 1
    return out


@dr.syntax
def double_or_negate(which, x):
    if which == 1:
        x = x * 2
    else:
        x = -x
    return x


def near(ours, right, tolerance=1e-5):
    return np.allclose(ours.numpy(), right, tolerance, tolerance)


def rounds():
    right = X.copy()
    for _ in range(10):
        right = right * np.float32(1.1) + 1
    return near(ten_rounds(X), right, 1e-4)


def scatter():
    sums, where = dr.zeros(Float, 10), dr.arange(UInt, 1000) % 10
    dr.scatter_reduce(dr.ReduceOp.Add, sums, Float(X), where)
    right = np.bincount(np.arange(1000) % 10, X, 10)
    return near(sums, right, 1e-3) and near(dr.gather(Float, sums, UInt([0, 3, 5])), right[[0, 3, 5]], 1e-3)


def gradient():
    x = dr.cuda.ad.Float(X)
    dr.enable_grad(x)
    dr.backward(dr.sum(dr.sin(x) * x))
    return near(dr.grad(x), np.sin(X) + X * np.cos(X), 1e-4)


def texture():
    pixels = Texture2f(TensorXf(np.arange(48).reshape(6, 8, 1).astype(np.float32)))
    return abs(float(pixels.eval(Array2f(Float([0.5]), Float([0.5])))[0][0]) - 23.5) < 0.1


def indirect_calls():
    which = np.arange(1000) % 3
    ours = dr.switch(UInt(which.astype(np.uint32)), [lambda x: x + 1, lambda x: x * 3, lambda x: dr.sin(x)], Float(X))
    return near(ours, np.choose(which, [X + 1, X * 3, np.sin(X)]))


def frozen():
    function = dr.freeze(lambda x: dr.sin(x) * 2)
    return all(near(function(Float(X * k)), 2 * np.sin(X * k)) for k in (1, 2, 3))


check("arithmetic", lambda: near(Float(X) * 2 + 1, X * 2 + 1) and near(Float64(X.astype(float)) / 3, X / np.float64(3), 1e-12))
check("functions", lambda: all(near(getattr(dr, name)(Float(X)), function(X)) for name, function in FUNCTIONS.items()))
check("half precision", lambda: near(Float16(X.astype(np.float16)) * Float16(2), X.astype(np.float16) * 2, 1e-2))
check("reductions", lambda: near(dr.max(Float(X)), 2) and near(dr.block_sum(Float(X), 10), X.reshape(100, 10).sum(1), 1e-4))
check("prefix sum, compress", lambda: near(dr.cumsum(Float(X)), X.cumsum(), 1e-3) and np.array_equal(dr.compress(Float(X) > 1).numpy(), np.flatnonzero(X > 1)))
check("scatter, gather", scatter)
check("loop", rounds)
check("branch", lambda: near(double_or_negate(Int((np.arange(1000) % 2).astype(np.int32)), Float(X)), np.where(np.arange(1000) % 2, X * 2, -X)))
check("indirect calls", indirect_calls)
check("gradient", gradient)
check("texture", texture)
check("frozen function", frozen)
