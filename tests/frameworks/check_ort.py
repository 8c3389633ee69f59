# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's CUDA provider against its CPU provider: operators, a small convolutional network and a transformer's block, without and with the
optimisations of its graphs. Nothing falls back to the CPU."""
import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from check import check

onnxruntime.set_default_logger_severity(4)  # messages come with the exceptions
onnxruntime.preload_dlls()  # the CUDA libraries of the packages
random = np.random.default_rng(1)


class Graph:
    """A graph that is built node by node; weights are random."""

    def __init__(self):
        self.nodes, self.weights, self.inputs, self.count = [], [], {}, 0

    def input(self, value):
        name = f"input{len(self.inputs)}"
        self.inputs[name] = value
        return name

    def constant(self, value):
        name = f"weight{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weight(self, *shape):
        return self.constant((random.standard_normal(shape) / max(1, shape[0]) ** 0.5).astype(np.float32))

    def node(self, kind, *inputs, outputs=1, **attributes):
        names = [f"value{self.count + i}" for i in range(outputs)]
        self.count += outputs
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def model(self, *outputs):
        inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape) for name, value in self.inputs.items()]
        outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph(self.nodes, "graph", inputs, outputs, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9).SerializeToString()


def numbers(*shape):
    return random.standard_normal(shape).astype(np.float32)


def run(model, inputs, provider, optimised):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    if provider == "CUDAExecutionProvider":  # a node that the CUDA provider does not take is an error
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    session = onnxruntime.InferenceSession(model, options, providers=[provider])
    assert session.get_providers()[0] == provider, session.get_providers()
    return session.run(None, inputs)


def same(graph, *outputs, optimised=False, tolerance=1e-4):
    model = graph.model(*outputs)
    right = run(model, graph.inputs, "CPUExecutionProvider", optimised)
    ours = run(model, graph.inputs, "CUDAExecutionProvider", optimised)
    return all(np.allclose(a, b, tolerance, tolerance, equal_nan=True) and np.ptp(b) > 0 for a, b in zip(ours, right, strict=True))


def one(kind, *inputs, outputs=1, **attributes):
    """One operator; arrays are inputs of the model, lists constants."""
    graph = Graph()
    names = [graph.constant(np.array(value)) if isinstance(value, list) else graph.input(value) for value in inputs]
    found = graph.node(kind, *names, outputs=outputs, **attributes)
    return same(graph, *([found] if outputs == 1 else found))


def pictures(optimised):
    graph = Graph()
    x = graph.input(numbers(2, 3, 16, 16))
    x = graph.node("Conv", x, graph.weight(8, 3, 3, 3), graph.weight(8), pads=[1, 1, 1, 1])
    variance = graph.constant((random.random(8) + 0.5).astype(np.float32))
    x = graph.node("BatchNormalization", x, graph.weight(8), graph.weight(8), graph.weight(8), variance)
    x = graph.node("MaxPool", graph.node("Relu", x), kernel_shape=[2, 2], strides=[2, 2])
    y = graph.node("Relu", graph.node("Conv", x, graph.weight(8, 8, 3, 3), graph.weight(8), pads=[1, 1, 1, 1]))
    y = graph.node("Flatten", graph.node("GlobalAveragePool", graph.node("Add", x, y)))
    return same(graph, graph.node("Softmax", graph.node("Gemm", y, graph.weight(8, 10), graph.weight(10))), optimised=optimised, tolerance=1e-3)


def block(optimised, batch=2, length=7, width=32, heads=4):
    graph = Graph()

    def dense(x, inner, outer):
        return graph.node("Add", graph.node("MatMul", x, graph.weight(inner, outer)), graph.weight(outer))

    def split(x):
        x = graph.node("Reshape", x, graph.constant(np.array([batch, length, heads, width // heads])))
        return graph.node("Transpose", x, perm=[0, 2, 1, 3])

    x = graph.node("Gather", graph.weight(50, width), graph.input(random.integers(0, 50, (batch, length))))
    x = graph.node("Add", x, graph.weight(length, width))
    y = graph.node("LayerNormalization", x, graph.weight(width), graph.weight(width))
    q, k, v = [split(dense(y, width, width)) for _ in range(3)]
    scores = graph.node("MatMul", q, graph.node("Transpose", k, perm=[0, 1, 3, 2]))
    scores = graph.node("Mul", scores, graph.constant(np.float32((width // heads) ** -0.5)))
    scores = graph.node("Add", scores, graph.constant(np.triu(np.full((length, length), -1e9, np.float32), 1)))
    y = graph.node("Transpose", graph.node("MatMul", graph.node("Softmax", scores), v), perm=[0, 2, 1, 3])
    x = graph.node("Add", x, dense(graph.node("Reshape", y, graph.constant(np.array([batch, length, width]))), width, width))
    y = graph.node("LayerNormalization", x, graph.weight(width), graph.weight(width))
    x = graph.node("Add", x, dense(graph.node("Gelu", dense(y, width, 4 * width)), 4 * width, width))
    return same(graph, x, optimised=optimised, tolerance=1e-3)


X, Y = numbers(4, 6), numbers(4, 6)
check("Relu", lambda: one("Relu", X))
check("Add, broadcast", lambda: one("Add", X, numbers(6)))
check("Mul", lambda: one("Mul", X, Y))
check("Sub", lambda: one("Sub", X, Y))
check("Div", lambda: one("Div", X, np.abs(Y) + 1))
check("Sigmoid", lambda: one("Sigmoid", X))
check("Tanh", lambda: one("Tanh", X))
check("Gelu", lambda: one("Gelu", X))
check("Softmax", lambda: one("Softmax", X))
check("Softmax, long rows", lambda: one("Softmax", numbers(3, 1500)))
check("MatMul", lambda: one("MatMul", numbers(3, 5, 7), numbers(7, 4)))
check("Gemm", lambda: one("Gemm", X, Y, numbers(4), transB=1))
check("Conv", lambda: one("Conv", numbers(1, 3, 9, 9), numbers(4, 3, 3, 3), numbers(4), strides=[2, 2]))
check("MaxPool", lambda: one("MaxPool", numbers(1, 3, 8, 8), kernel_shape=[2, 2]))
check("BatchNormalization", lambda: one("BatchNormalization", numbers(2, 3, 4), numbers(3), numbers(3), numbers(3), np.abs(numbers(3)) + 1))
check("LayerNormalization", lambda: one("LayerNormalization", X, numbers(6), numbers(6)))
check("Transpose", lambda: one("Transpose", numbers(3, 4, 5), perm=[2, 0, 1]))
check("Concat", lambda: one("Concat", X, Y, axis=1))
check("Gather", lambda: one("Gather", numbers(10, 4), random.integers(0, 10, (2, 3))))
check("Split", lambda: one("Split", X, outputs=2, axis=1, num_outputs=2))
check("Slice", lambda: one("Slice", X, [1], [3], [1]))
check("Where", lambda: one("Where", X > 0, X, Y))
check("Sqrt", lambda: one("Sqrt", np.abs(X)))
check("Erf", lambda: one("Erf", X))
check("ReduceMean", lambda: one("ReduceMean", X, [1]))
check("a convolutional network", lambda: pictures(False))
check("a convolutional network, optimised", lambda: pictures(True))
check("a transformer's block", lambda: block(False))
check("a transformer's block, optimised", lambda: block(True))
