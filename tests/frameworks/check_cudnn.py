# SPDX-License-Identifier: Apache-2.0
"""cuDNN 9 against NumPy: convolutions (forward and both gradients, each algorithm), pooling, softmax, activations, batch normalisation, sums of
tensors, recurrent networks; and its graph interface through cudnn-frontend: convolution with bias and relu, products, layer normalisation,
attention. What an algorithm or an engine does not support it says itself: that is a failure here, with its status.

Tolerances: a sum of n products n + 8 roundings of float, and two of the type of the result; Winograd and FFT 30 times that."""
import ctypes
import itertools
import math

import numpy as np

from gpu import EPSILON, Array, Failure, call, captured, check, compare, from_bfloat16, load, new_stream, to_bfloat16, wait, zeros

DNN = load("libcudnn.so.9")
random = np.random.default_rng(6)
handle = ctypes.c_void_p()
call(DNN.cudnnCreate, ctypes.byref(handle))
KINDS = {"float": (0, lambda v: v.astype(np.float32), lambda v: v.astype(np.float64), "float32"),
         "double": (1, lambda v: v.astype(np.float64), lambda v: v, "float64"),
         "half": (2, lambda v: v.astype(np.float16), lambda v: v.astype(np.float64), "float16"),
         "bfloat16": (9, to_bfloat16, from_bfloat16, "bfloat16")}
NCHW, NHWC = 0, 1


def scalar(kind, value):
    return np.float64(value) if kind == "double" else np.float32(value)


def made(what, setter, *arguments):
    pointer = ctypes.c_void_p()
    call(getattr(DNN, f"cudnnCreate{what}Descriptor"), ctypes.byref(pointer))
    call(getattr(DNN, setter), pointer, *arguments)
    return pointer


def tensor(kind, shape, order=NCHW):
    return made("Tensor", "cudnnSetTensor4dDescriptor", order, KINDS[kind][0], *shape)


class Values:
    """Numbers of a kind: on the device, with a descriptor, and as the reference sees them."""

    def __init__(self, kind, shape, order=NCHW, values=None):
        self.kind, self.order, self.shape = kind, order, shape
        values = random.standard_normal(shape) if values is None else values
        stored = KINDS[kind][1](np.asarray(values, np.float64))
        self.exact = KINDS[kind][2](stored).astype(np.float64)
        self.array = Array(np.ascontiguousarray(stored.transpose(0, 2, 3, 1)) if order == NHWC else stored)
        self.tensor = tensor(kind, shape, order)

    def get(self):
        got = KINDS[self.kind][2](self.array.get()).astype(np.float64)
        return got.transpose(0, 3, 1, 2) if self.order == NHWC else got


def empty(kind, shape, order=NCHW):
    return Values(kind, shape, order, np.zeros(shape))


def near(kind, count):
    return (count + 8) * EPSILON["float64" if kind == "double" else "float32"] + 2 * EPSILON[KINDS[kind][3]]


# ---- convolutions ----

def convolved(x, w, pad, stride, dilation):
    n, c, h, width = x.shape
    k, per_group, r, s = w.shape
    groups = c // per_group
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    rows, columns = (h + 2 * pad - dilation * (r - 1) - 1) // stride + 1, (width + 2 * pad - dilation * (s - 1) - 1) // stride + 1
    out = np.zeros((n, k, rows, columns))
    for i, j in itertools.product(range(r), range(s)):
        part = padded[:, :, i * dilation:i * dilation + rows * stride:stride, j * dilation:j * dilation + columns * stride:stride]
        for g in range(groups):
            each = k // groups
            out[:, g * each:(g + 1) * each] += np.einsum("nchw,kc->nkhw", part[:, g * per_group:(g + 1) * per_group], w[g * each:(g + 1) * each, :, i, j])
    return out


def input_gradient(dy, w, shape, pad, stride, dilation):
    n, c, h, width = shape
    k, per_group, r, s = w.shape
    groups, each = c // per_group, k // (c // per_group)
    rows, columns = dy.shape[2:]
    out = np.zeros((n, c, h + 2 * pad, width + 2 * pad))
    for i, j, g in itertools.product(range(r), range(s), range(groups)):
        out[:, g * per_group:(g + 1) * per_group, i * dilation:i * dilation + rows * stride:stride, j * dilation:j * dilation + columns * stride:stride] += (
            np.einsum("nkhw,kc->nchw", dy[:, g * each:(g + 1) * each], w[g * each:(g + 1) * each, :, i, j]))
    return out[:, :, pad:pad + h, pad:pad + width]


def filter_gradient(x, dy, shape, pad, stride, dilation):
    k, per_group, r, s = shape
    groups = x.shape[1] // per_group
    each, (rows, columns) = k // groups, dy.shape[2:]
    padded, out = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad))), np.zeros(shape)
    for i, j, g in itertools.product(range(r), range(s), range(groups)):
        part = padded[:, g * per_group:(g + 1) * per_group, i * dilation:i * dilation + rows * stride:stride,
                      j * dilation:j * dilation + columns * stride:stride]
        out[g * each:(g + 1) * each, :, i, j] = np.einsum("nchw,nkhw->kc", part, dy[:, g * each:(g + 1) * each])
    return out


GEOMETRY = {"3x3": ((2, 8, 12, 12), (16, 8, 3, 3), 1, 1, 1, 1), "1x1": ((2, 16, 7, 7), (8, 16, 1, 1), 0, 1, 1, 1),
            "5x5 stride 2": ((1, 4, 15, 15), (8, 4, 5, 5), 2, 2, 1, 1), "dilated": ((1, 4, 14, 14), (4, 4, 3, 3), 2, 1, 2, 1),
            "groups": ((2, 8, 9, 9), (8, 4, 3, 3), 1, 1, 1, 2)}


def convolution(way, geometry, kind, algorithm, order=NCHW, how="plain"):
    def case():
        x_shape, w_shape, pad, stride, dilation, groups = GEOMETRY[geometry]
        x, w = Values(kind, x_shape, order), Values(kind, w_shape, order)
        y_shape = convolved(np.zeros(x_shape), np.zeros(w_shape), pad, stride, dilation).shape
        filters = made("Filter", "cudnnSetFilter4dDescriptor", KINDS[kind][0], order, *w_shape)
        settings = made("Convolution", "cudnnSetConvolution2dDescriptor", pad, pad, stride, stride, dilation, dilation, 1, 1 if kind == "double" else 0)
        call(DNN.cudnnSetConvolutionGroupCount, settings, groups)
        if kind in ("half", "bfloat16"):
            call(DNN.cudnnSetConvolutionMathType, settings, 1)
        if way == "Forward":
            result = empty(kind, y_shape, order)
            head, body, tail = (x.tensor, filters, settings, result.tensor), (x.tensor, x.array, filters, w.array), (result.tensor, result.array)
            right = convolved(x.exact, w.exact, pad, stride, dilation)
        else:
            dy = Values(kind, y_shape, order)
            if way == "BackwardData":
                result = empty(kind, x_shape, order)
                head, body, tail = (filters, dy.tensor, settings, result.tensor), (filters, w.array, dy.tensor, dy.array), (result.tensor, result.array)
                right = input_gradient(dy.exact, w.exact, x_shape, pad, stride, dilation)
            else:
                result = empty(kind, w_shape, order)
                head, body, tail = (x.tensor, dy.tensor, settings, filters), (x.tensor, x.array, dy.tensor, dy.array), (filters, result.array)
                right = filter_gradient(x.exact, dy.exact, w_shape, pad, stride, dilation)
        size = ctypes.c_size_t()
        call(getattr(DNN, f"cudnnGetConvolution{way}WorkspaceSize"), handle, *head, algorithm, ctypes.byref(size))
        work = zeros(max(size.value, 1), np.uint8)

        def launch():
            call(getattr(DNN, f"cudnnConvolution{way}"), handle, scalar(kind, 1), *body, settings, algorithm, work, size, scalar(kind, 0), *tail)
        on(how, launch)
        return compare(result.get(), right)
    return case


def on(how, launch):
    """Plainly, on a stream or in a graph."""
    if how == "plain":
        launch()
        return wait()
    stream = new_stream()
    call(DNN.cudnnSetStream, handle, stream)
    try:
        if how == "graph":
            captured(stream, launch)
        else:
            launch()
        wait()
    finally:
        call(DNN.cudnnSetStream, handle, ctypes.c_void_p())


ALGORITHMS = {"Forward": {"implicit gemm": 0, "precomputed gemm": 1, "gemm": 2, "fft": 4, "fft tiling": 5, "winograd": 6, "winograd nonfused": 7},
              "BackwardData": {"0": 0, "1": 1, "fft": 2, "fft tiling": 3, "winograd": 4, "winograd nonfused": 5},
              "BackwardFilter": {"0": 0, "1": 1, "fft": 2, "3": 3, "winograd nonfused": 5, "fft tiling": 6}}
LENGTH = {"Forward": 200, "BackwardData": 200, "BackwardFilter": 400}
for way, algorithms in ALGORITHMS.items():
    for name, number in algorithms.items():
        loose = 30 if "fft" in name or "winograd" in name else 1
        check(f"convolution {way} {name}", convolution(way, "3x3", "float", number), loose * near("float", LENGTH[way]))
    for geometry, (kind, order) in itertools.product(GEOMETRY, (("float", NCHW), ("half", NHWC), ("bfloat16", NHWC), ("double", NCHW))):
        if order == NHWC and geometry == "groups":
            continue
        check(f"convolution {way} {geometry} {kind}", convolution(way, geometry, kind, 1, order), near(kind, LENGTH[way]))
    check(f"convolution {way} on a stream", convolution(way, "3x3", "float", 1, how="stream"), near("float", LENGTH[way]))
    check(f"convolution {way} in a graph", convolution(way, "3x3", "float", 1, how="graph"), near("float", LENGTH[way]))


# ---- pooling, softmax, activations, batch normalisation, sums ----

def pooled(x, mode, size, pad, stride):
    filled = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)), constant_values=-np.inf if mode == 0 else 0)
    inside = np.pad(np.ones_like(x), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    rows = (x.shape[2] + 2 * pad - size) // stride + 1
    parts = [(i, j, (slice(None), slice(None), slice(i, i + rows * stride, stride), slice(j, j + rows * stride, stride)))
             for i, j in itertools.product(range(size), range(size))]
    stack = np.stack([filled[place][:, :, :rows, :rows] for _, _, place in parts])
    counts = sum(inside[place][:, :, :rows, :rows] for _, _, place in parts)
    return stack.max(0) if mode == 0 else stack.sum(0) / (counts if mode == 2 else size * size), parts, filled.shape, rows, counts


def pooling(mode, kind):
    def case():
        x = Values(kind, (2, 3, 10, 10))
        size, pad, stride = 3, 1, 2
        right, parts, padded, rows, counts = pooled(x.exact, mode, size, pad, stride)
        settings = made("Pooling", "cudnnSetPooling2dDescriptor", mode, 0, size, size, pad, pad, stride, stride)
        y, one, none = empty(kind, right.shape), scalar(kind, 1), scalar(kind, 0)
        call(DNN.cudnnPoolingForward, handle, settings, one, x.tensor, x.array, none, y.tensor, y.array)
        dy, dx = Values(kind, right.shape), empty(kind, x.shape)
        call(DNN.cudnnPoolingBackward, handle, settings, one, y.tensor, y.array, dy.tensor, dy.array, x.tensor, x.array, none, dx.tensor, dx.array)
        wait()
        gradient, filled = np.zeros(padded), np.pad(x.exact, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
        for i, j, place in parts:
            share = (filled[place][:, :, :rows, :rows] == right) * dy.exact if mode == 0 else dy.exact / (counts if mode == 2 else 9)
            gradient[place][:, :, :rows, :rows] += share
        return max(compare(y.get(), right), compare(dx.get(), gradient[:, :, 1:-1, 1:-1]))
    return case


def softmax(algorithm, mode, kind):
    def case():
        x, dy = Values(kind, (3, 20, 4, 5)), Values(kind, (3, 20, 4, 5))
        axes = (1, 2, 3) if mode == 0 else (1,)
        high = np.exp(x.exact - x.exact.max(axes, keepdims=True))
        plain = high / high.sum(axes, keepdims=True)
        right = np.log(plain) if algorithm == 2 else plain
        y, dx, one, none = empty(kind, x.shape), empty(kind, x.shape), scalar(kind, 1), scalar(kind, 0)
        call(DNN.cudnnSoftmaxForward, handle, algorithm, mode, one, x.tensor, x.array, none, y.tensor, y.array)
        call(DNN.cudnnSoftmaxBackward, handle, algorithm, mode, one, y.tensor, y.array, dy.tensor, dy.array, none, dx.tensor, dx.array)
        wait()
        total = (dy.exact if algorithm == 2 else dy.exact * plain).sum(axes, keepdims=True)
        slope = dy.exact - plain * total if algorithm == 2 else plain * (dy.exact - total)
        return max(compare(y.get(), right), compare(dx.get(), slope))
    return case


ACTIVATIONS = {"sigmoid": (0, lambda x: 1 / (1 + np.exp(-x)), lambda x, y: y * (1 - y)), "relu": (1, lambda x: np.maximum(x, 0), lambda x, y: 1.0 * (x > 0)),
               "tanh": (2, np.tanh, lambda x, y: 1 - y * y), "elu": (4, lambda x: np.where(x > 0, x, np.expm1(x)), lambda x, y: np.where(x > 0, 1, y + 1)),
               "clipped relu": (3, lambda x: np.clip(x, 0, 1), lambda x, y: 1.0 * ((x > 0) & (x < 1)))}


def activation(name, kind):
    def case():
        number, function, slope = ACTIVATIONS[name]
        x, dy = Values(kind, (2, 3, 5, 7)), Values(kind, (2, 3, 5, 7))
        settings = made("Activation", "cudnnSetActivationDescriptor", number, 0, ctypes.c_double(1))
        y, dx, one, none = empty(kind, x.shape), empty(kind, x.shape), scalar(kind, 1), scalar(kind, 0)
        call(DNN.cudnnActivationForward, handle, settings, one, x.tensor, x.array, none, y.tensor, y.array)
        call(DNN.cudnnActivationBackward, handle, settings, one, y.tensor, y.array, dy.tensor, dy.array, x.tensor, x.array, none, dx.tensor, dx.array)
        wait()
        right = function(x.exact)
        return max(compare(y.get(), right), compare(dx.get(), dy.exact * slope(x.exact, right)))
    return case


def batch_norm(mode, kind):
    def case():
        shape = (4, 6, 5, 5)
        x, dy = Values(kind, shape), Values(kind, shape)
        axes, wide = ((0, 2, 3), "double" if kind == "double" else "float") if mode else ((0,), "double" if kind == "double" else "float")
        inner = (1, 6, 1, 1) if mode else (1, 6, 5, 5)
        scale, bias = Values(wide, inner), Values(wide, inner)
        mean, spread, running, running_spread, dscale, dbias = (empty(wide, inner) for _ in range(6))
        y, dx, one, none = empty(kind, shape), empty(kind, shape), scalar(kind, 1), scalar(kind, 0)
        tiny = ctypes.c_double(1e-5)
        call(DNN.cudnnBatchNormalizationForwardTraining, handle, mode, one, none, x.tensor, x.array, y.tensor, y.array, scale.tensor, scale.array,
             bias.array, ctypes.c_double(1), running.array, running_spread.array, tiny, mean.array, spread.array)
        call(DNN.cudnnBatchNormalizationBackward, handle, mode, one, none, one, none, x.tensor, x.array, dy.tensor, dy.array, dx.tensor, dx.array,
             scale.tensor, scale.array, dscale.array, dbias.array, tiny, mean.array, spread.array)
        again = empty(kind, shape)
        call(DNN.cudnnBatchNormalizationForwardInference, handle, mode, one, none, x.tensor, x.array, again.tensor, again.array, scale.tensor,
             scale.array, bias.array, running.array, running_spread.array, tiny)
        wait()
        centre, variance = x.exact.mean(axes, keepdims=True), x.exact.var(axes, keepdims=True)
        count = x.exact.size / scale.exact.size
        inverse = 1 / np.sqrt(variance + 1e-5)
        normal = (x.exact - centre) * inverse
        sums = (dy.exact * normal).sum(axes, keepdims=True), dy.exact.sum(axes, keepdims=True)
        slope = scale.exact * inverse * (dy.exact - sums[1] / count - normal * sums[0] / count)
        later = (x.exact - centre) / np.sqrt(variance * count / (count - 1) + 1e-5) * scale.exact + bias.exact
        return max(compare(y.get(), normal * scale.exact + bias.exact), compare(dx.get(), slope), compare(dscale.get(), sums[0]),
                   compare(dbias.get(), sums[1]), compare(again.get(), later))
    return case


def reduction(operation, function):
    def case():
        x, y = Values("float", (3, 4, 20, 30)), empty("float", (3, 1, 1, 30))
        settings, size = made("ReduceTensor", "cudnnSetReduceTensorDescriptor", operation, 0, 0, 0, 0), ctypes.c_size_t()
        call(DNN.cudnnGetReductionWorkspaceSize, handle, settings, x.tensor, y.tensor, ctypes.byref(size))
        call(DNN.cudnnReduceTensor, handle, settings, ctypes.c_void_p(), ctypes.c_size_t(0), zeros(max(size.value, 1), np.uint8), size, np.float32(1),
             x.tensor, x.array, np.float32(0), y.tensor, y.array)
        wait()
        return compare(y.get(), function(x.exact, axis=(1, 2), keepdims=True))
    return case


def two_tensors(operation, function):
    def case():
        a, b, c = Values("float", (2, 3, 4, 5)), Values("float", (1, 3, 1, 1)), empty("float", (2, 3, 4, 5))
        settings = made("OpTensor", "cudnnSetOpTensorDescriptor", operation, 0, 0)
        call(DNN.cudnnOpTensor, handle, settings, np.float32(1), a.tensor, a.array, np.float32(1), b.tensor, b.array, np.float32(0), c.tensor, c.array)
        wait()
        return compare(c.get(), function(a.exact, b.exact))
    return case


for kind in ("float", "half", "double"):
    for mode, name in enumerate(("max", "average with padding", "average")):
        check(f"pooling {name} {kind}", pooling(mode, kind), near(kind, 20))
    for (algorithm, name), (mode, over) in itertools.product(((0, "fast"), (1, "accurate"), (2, "log")), ((0, "instance"), (1, "channel"))):
        check(f"softmax {name} {over} {kind}", softmax(algorithm, mode, kind), near(kind, 400))
    for name in ACTIVATIONS:
        check(f"activation {name} {kind}", activation(name, kind), 2 * near(kind, 16))
    for mode, name in enumerate(("per activation", "spatial", "spatial persistent")):
        check(f"batch norm {name} {kind}", batch_norm(mode, kind), 4 * near(kind, 400))
for operation, (name, function) in enumerate((("add", np.sum), ("mul", np.prod), ("min", np.min), ("max", np.max))):
    check(f"reduce {name}", reduction(operation, function), near("float", 80))
check("reduce average", reduction(5, np.mean), near("float", 80))
for operation, (name, function) in enumerate((("add", np.add), ("mul", np.multiply), ("min", np.minimum), ("max", np.maximum))):
    check(f"two tensors {name}", two_tensors(operation, function), near("float", 2))


# ---- recurrent networks ----

def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def cell(mode, x, h, c, w):
    """One step; w: for each gate its matrices and biases of the input and of the state."""
    gates = [(x @ wx.T + bx, h @ wh.T + bh) for wx, bx, wh, bh in w]
    if mode < 2:
        total = sum(gates[0])
        return (np.maximum(total, 0) if mode == 0 else np.tanh(total)), c
    if mode == 2:
        i, f, n, o = (a + b for a, b in gates)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(n)
        return sigmoid(o) * np.tanh(c), c
    (r, rh), (i, ih), (n, nh) = gates
    i = sigmoid(i + ih)
    return (1 - i) * np.tanh(n + sigmoid(r + rh) * nh) + i * h, c


def recurrent(mode, kind, layers=2, backward=False):
    steps, batch, inputs, hidden, gates = 5, 3, 6, 8, {0: 1, 1: 1, 2: 4, 3: 3}[mode]
    code, wide = KINDS[kind][0], "double" if kind == "double" else "float"

    def case():
        dropout, settings, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
        call(DNN.cudnnCreateDropoutDescriptor, ctypes.byref(dropout))
        call(DNN.cudnnSetDropoutDescriptor, dropout, handle, ctypes.c_float(0), ctypes.c_void_p(), ctypes.c_size_t(0), ctypes.c_ulonglong(0))
        call(DNN.cudnnCreateRNNDescriptor, ctypes.byref(settings))
        call(DNN.cudnnSetRNNDescriptor_v8, settings, 0, mode, 2, 0, 0, code, KINDS[wide][0], 0, inputs, hidden, hidden, layers, dropout, 0)
        call(DNN.cudnnGetRNNWeightSpaceSize, handle, settings, ctypes.byref(size))
        dtype = KINDS[kind][1](np.zeros(1)).dtype
        weights = Array(KINDS[kind][1](random.standard_normal(size.value // dtype.itemsize) * 0.5))
        values, places = KINDS[kind][2](weights.get()).astype(np.float64), {}
        matrix, bias = (ctypes.c_void_p() for _ in range(2))
        call(DNN.cudnnCreateTensorDescriptor, ctypes.byref(matrix))
        call(DNN.cudnnCreateTensorDescriptor, ctypes.byref(bias))
        for layer, gate in itertools.product(range(layers), range(2 * gates)):
            at, bias_at = ctypes.c_void_p(), ctypes.c_void_p()
            call(DNN.cudnnGetRNNWeightParams, handle, settings, layer, size, weights, gate, matrix, ctypes.byref(at), bias, ctypes.byref(bias_at))
            wide_of = inputs if layer == 0 and gate < gates else hidden
            places[layer, gate] = [((address.value - weights.address) // dtype.itemsize, count, shape)
                                   for address, count, shape in ((at, wide_of * hidden, (hidden, wide_of)), (bias_at, hidden, (hidden,)))]

        def network(x, values):
            for layer in range(layers):
                read = lambda gate: [values[start:start + count].reshape(shape) for start, count, shape in places[layer, gate]]
                w = [(*read(gate), *read(gate + gates)) for gate in range(gates)]
                h, c, out = np.zeros((batch, hidden)), np.zeros((batch, hidden)), []
                for step in range(steps):
                    h, c = cell(mode, x[step], h, c, w)
                    out.append(h)
                x = np.stack(out)
            return x
        given = KINDS[kind][1](random.standard_normal((steps, batch, inputs)))
        exact, lengths = KINDS[kind][2](given).astype(np.float64), np.full(batch, steps, np.int32)
        x, y, device_lengths, fill = Array(given), zeros((steps, batch, hidden), dtype), Array(lengths), np.zeros(1)
        of = [made("RNNData", "cudnnSetRNNDataDescriptor", code, 0, steps, batch, vector, lengths, fill) for vector in (inputs, hidden)]
        state = made("Tensor", "cudnnSetTensorNdDescriptor", code, 3, np.array([layers, batch, hidden], np.int32),
                     np.array([batch * hidden, hidden, 1], np.int32))
        work_size, reserve_size, none = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_void_p()
        call(DNN.cudnnGetRNNTempSpaceSizes, handle, settings, int(backward), of[0], ctypes.byref(work_size), ctypes.byref(reserve_size))
        work, reserve = zeros(max(work_size.value, 1), np.uint8), zeros(max(reserve_size.value, 1), np.uint8)
        space = (work_size, work, reserve_size, reserve)
        call(DNN.cudnnRNNForward, handle, settings, int(backward), device_lengths, of[0], x, of[1], y, state, none, none, state, none, none, size,
             weights, *space)
        wait()
        right = network(exact, values)
        error = compare(KINDS[kind][2](y.get()), right)
        if not backward:
            return error
        dy = random.standard_normal(right.shape)
        dx, dw, slope = zeros(given.shape, dtype), zeros(values.shape, dtype), Array(KINDS[kind][1](dy))
        call(DNN.cudnnRNNBackwardData_v8, handle, settings, device_lengths, of[1], y, slope, of[0], dx, state, none, none, none, state, none, none,
             none, size, weights, *space)
        call(DNN.cudnnRNNBackwardWeights_v8, handle, settings, 0, device_lengths, of[0], x, state, none, of[1], y, size, dw, *space)
        wait()

        def along(direction_x, direction_w):  # a derivative by differences
            step = 1e-5
            return ((network(exact + step * direction_x, values + step * direction_w) - network(exact - step * direction_x, values - step * direction_w))
                    * dy).sum() / (2 * step)
        for _ in range(4):
            a, b = random.standard_normal(exact.shape), random.standard_normal(values.shape)
            error = max(error, abs((dx.get() * a).sum() / along(a, 0 * b) - 1), abs((dw.get() * b).sum() / along(0 * a, b) - 1))
        return error
    return case


for mode, name in enumerate(("relu", "tanh", "LSTM", "GRU")):
    for kind in ("float", "double", "half"):
        check(f"RNN {name} {kind}", recurrent(mode, kind), 20 * near(kind, 20))
    check(f"RNN {name} double gradients", recurrent(mode, "double", backward=True), 1e-6)


# ---- the graph interface ----

def frontend():
    import cudnn
    return cudnn


class Graph:
    """A graph of cudnn-frontend: tensors are made with their values, and given by address when it runs."""

    def __init__(self, kind):
        cudnn = self.cudnn = frontend()
        self.kinds = {"half": cudnn.data_type.HALF, "bfloat16": cudnn.data_type.BFLOAT16, "float": cudnn.data_type.FLOAT}
        self.handle = cudnn.create_handle()
        self.graph = cudnn.pygraph(io_data_type=self.kinds[kind], intermediate_data_type=cudnn.data_type.FLOAT, compute_data_type=cudnn.data_type.FLOAT,
                                   handle=self.handle)
        self.given, self.kind = {}, kind

    def tensor(self, shape, strides, kind=None, values=None):
        kind = kind or self.kind
        values = random.standard_normal(shape) if values is None else values
        stored = KINDS[kind][1](values)
        flat = np.zeros(int(sum((n - 1) * s for n, s in zip(shape, strides))) + 1, stored.dtype)
        np.lib.stride_tricks.as_strided(flat, shape, [s * flat.itemsize for s in strides])[...] = stored
        made_tensor, array = self.graph.tensor(dim=list(shape), stride=list(strides), data_type=self.kinds[kind]), Array(flat)
        self.given[made_tensor] = array
        return made_tensor, KINDS[kind][2](stored).astype(np.float64)

    def output(self, made_tensor, shape, strides, kind=None):
        kind = kind or self.kind
        made_tensor.set_output(True).set_dim(list(shape)).set_stride(list(strides)).set_data_type(self.kinds[kind])
        count = int(sum((n - 1) * s for n, s in zip(shape, strides))) + 1
        array = Array(KINDS[kind][1](np.zeros(count)))
        self.given[made_tensor] = array
        return lambda: np.lib.stride_tricks.as_strided(KINDS[kind][2](array.get()).astype(np.float64), shape, [8 * s for s in strides])

    def run(self):
        self.graph.build([self.cudnn.heur_mode.A, self.cudnn.heur_mode.FALLBACK])
        work = zeros(max(self.graph.get_workspace_size(), 1), np.uint8)
        self.graph.execute({one: array.address for one, array in self.given.items()}, work.address, handle=self.handle)
        wait()


def rows(shape):
    return [math.prod(shape[n + 1:]) for n in range(len(shape))]


def channels_last(shape):
    n, c, h, w = shape
    return [c * h * w, 1, c * w, c]


def graph_convolution(kind):
    def case():
        graph = Graph(kind)
        x_shape, w_shape, y_shape = (2, 16, 12, 12), (32, 16, 3, 3), (2, 32, 12, 12)
        x, exact_x = graph.tensor(x_shape, channels_last(x_shape))
        w, exact_w = graph.tensor(w_shape, channels_last(w_shape))
        b, exact_b = graph.tensor((1, 32, 1, 1), (32, 1, 32, 32))
        total = graph.graph.bias(input=graph.graph.conv_fprop(image=x, weight=w, padding=[1, 1], stride=[1, 1], dilation=[1, 1]), bias=b)
        read = graph.output(graph.graph.relu(input=total), y_shape, channels_last(y_shape))
        graph.run()
        return compare(read(), np.maximum(convolved(exact_x, exact_w, 1, 1, 1) + exact_b, 0))
    return case


def graph_product(kind):
    def case():
        graph = Graph(kind)
        a, exact_a = graph.tensor((2, 64, 32), rows((2, 64, 32)))
        b, exact_b = graph.tensor((2, 32, 48), rows((2, 32, 48)))
        c, exact_c = graph.tensor((1, 1, 48), rows((1, 1, 48)))
        product = graph.graph.matmul(A=a, B=b)
        read = graph.output(graph.graph.gelu(input=graph.graph.bias(input=product, bias=c)), (2, 64, 48), rows((2, 64, 48)))
        graph.run()
        x = exact_a @ exact_b + exact_c
        return compare(read(), x * 0.5 * (1 + np.vectorize(math.erf)(x / 2 ** 0.5)))
    return case


def graph_pointwise():
    graph = Graph("float")
    a, exact_a = graph.tensor((4, 32, 32), rows((4, 32, 32)))
    b, exact_b = graph.tensor((4, 32, 32), rows((4, 32, 32)))
    read = graph.output(graph.graph.tanh(input=graph.graph.mul(a=a, b=b)), (4, 32, 32), rows((4, 32, 32)))
    graph.run()
    return compare(read(), np.tanh(exact_a * exact_b))


def graph_norm(kind, way):
    def case():
        cudnn, graph, shape = frontend(), Graph(kind), (8, 128, 1, 1)
        x, exact_x = graph.tensor(shape, channels_last(shape))
        inner = (1, 128, 1, 1)
        scale, exact_scale = graph.tensor(inner, channels_last(inner), "float")
        bias, exact_bias = graph.tensor(inner, channels_last(inner), "float")
        tiny = graph.graph.tensor(dim=[1, 1, 1, 1], stride=[1, 1, 1, 1], is_pass_by_value=True, data_type=cudnn.data_type.FLOAT)
        graph.given[tiny] = Address(np.full(1, 1e-5, np.float32))
        phase = cudnn.norm_forward_phase.INFERENCE
        if way == "layer":
            y, _, _ = graph.graph.layernorm(norm_forward_phase=phase, input=x, scale=scale, bias=bias, epsilon=tiny)
            centre = exact_x.mean(1, keepdims=True)
            right = (exact_x - centre) / np.sqrt(exact_x.var(1, keepdims=True) + 1e-5) * exact_scale + exact_bias
        else:
            y, _ = graph.graph.rmsnorm(norm_forward_phase=phase, input=x, scale=scale, bias=bias, epsilon=tiny)
            right = exact_x / np.sqrt((exact_x ** 2).mean(1, keepdims=True) + 1e-5) * exact_scale + exact_bias
        read = graph.output(y, shape, channels_last(shape))
        graph.run()
        return compare(read(), right)
    return case


class Address:
    """Of a value on the host, which a graph takes where a device array's address stands."""

    def __init__(self, value):
        self.value, self.address = value, value.ctypes.data


def attention(kind, causal):
    def case():
        graph, shape = Graph(kind), (2, 3, 64, 64)
        (q, exact_q), (k, exact_k), (v, exact_v) = (graph.tensor(shape, rows(shape)) for _ in range(3))
        out = graph.graph.sdpa(q=q, k=k, v=v, is_inference=True, attn_scale=0.125, use_causal_mask=causal)[0]
        read = graph.output(out, shape, rows(shape))
        graph.run()
        scores = exact_q @ exact_k.swapaxes(-1, -2) * 0.125
        if causal:
            scores = np.where(np.tril(np.ones((64, 64))) > 0, scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return compare(read(), weights / weights.sum(-1, keepdims=True) @ exact_v)
    return case


for kind in ("half", "bfloat16", "float"):
    check(f"graph convolution bias relu {kind}", graph_convolution(kind), near(kind, 200) + (4 * EPSILON["tf32"] if kind == "float" else 0))
    check(f"graph matmul bias gelu {kind}", graph_product(kind), near(kind, 60) + 8 * EPSILON["tf32"])
    check(f"graph layer norm {kind}", graph_norm(kind, "layer"), 4 * near(kind, 128))
    check(f"graph RMS norm {kind}", graph_norm(kind, "rms"), 4 * near(kind, 128))
check("graph mul tanh", graph_pointwise, near("float", 16))
for kind, causal in itertools.product(("half", "bfloat16"), (False, True)):
    check(f"graph attention {'causal ' if causal else ''}{kind}", attention(kind, causal), 8 * EPSILON[KINDS[kind][3]])
