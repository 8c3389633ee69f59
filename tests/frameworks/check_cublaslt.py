# SPDX-License-Identifier: Apache-2.0
"""cublasLtMatmul against NumPy: types, transpositions, row order, batches, all algorithms of the heuristic, epilogues and fp8.

Tolerances: k + 8 roundings of the type it is accumulated in and two of the result's type; gelu is allowed what its approximation by tanh may
differ by in that type (8 more roundings of the result's, at least of half: tanh may be the machine's approximation)."""
import ctypes
import itertools

import numpy as np

from gpu import (EPSILON, FP8, Array, Failure, call, captured, check, compare, from_bfloat16, from_fp8, load, new_stream, to_bfloat16, to_fp8, wait,
                 zeros)

LT = load("libcublasLt.so.13")
random = np.random.default_rng(2)
handle = ctypes.c_void_p()
call(LT.cublasLtCreate, ctypes.byref(handle))
WORKSPACE = zeros(32 << 20, np.uint8)

# CUDA_R_*, how values become bits and come back, the name of the rounding
KINDS = {"float": (0, np.float32, np.float64, "float32"), "double": (1, np.float64, np.float64, "float64"),
         "half": (2, np.float16, np.float64, "float16"), "bfloat16": (14, to_bfloat16, from_bfloat16, "bfloat16"),
         "complex": (4, np.complex64, np.complex128, "complex64"), "double complex": (5, np.complex128, np.complex128, "complex128"),
         "e4m3": (28, lambda v: to_fp8(v, "e4m3"), lambda v: from_fp8(v, "e4m3"), "e4m3"),
         "e5m2": (29, lambda v: to_fp8(v, "e5m2"), lambda v: from_fp8(v, "e5m2"), "e5m2")}
COMPUTE_16F, COMPUTE_32F, COMPUTE_TF32, COMPUTE_64F = 64, 68, 77, 70
LAYOUT_ORDER, LAYOUT_BATCH_COUNT, LAYOUT_BATCH_OFFSET = 1, 5, 6
TRANSA, TRANSB, EPILOGUE, BIAS, AUX, AUX_LD = 3, 4, 7, 8, 11, 12
A_SCALE, B_SCALE, D_SCALE, AMAX_D = 17, 18, 20, 21
RELU, WITH_BIAS, GELU, WITH_AUX, DRELU, DGELU, BGRAD, BGRADA, BGRADB = 2, 4, 32, 128, 136, 192, 16, 256, 512


def encode(values, kind):
    return np.asarray(KINDS[kind][1](values))


def decode(bits, kind):
    return np.asarray(KINDS[kind][2](bits))


class Made:
    """A descriptor of cuBLASLt with attributes."""

    def __init__(self, what, *arguments):
        self.what, self.pointer = what, ctypes.c_void_p()
        call(getattr(LT, f"cublasLt{what}Create"), ctypes.byref(self.pointer), *arguments)

    def set(self, attribute, value):
        call(getattr(LT, f"cublasLt{self.what}SetAttribute"), self.pointer, attribute, value, ctypes.c_size_t(value.nbytes))

    def __del__(self):
        getattr(LT, f"cublasLt{self.what}Destroy")(self.pointer)


def layout(kind, rows, columns, lead, batch=1, offset=0, row_order=False):
    made = Made("MatrixLayout", KINDS[kind][0], ctypes.c_ulonglong(rows), ctypes.c_ulonglong(columns), ctypes.c_longlong(lead))
    if row_order:
        made.set(LAYOUT_ORDER, np.int32(1))
    if batch > 1:
        made.set(LAYOUT_BATCH_COUNT, np.int32(batch))
        made.set(LAYOUT_BATCH_OFFSET, np.int64(offset))
    return made


def algorithms(operation, layouts, count):
    preference = Made("MatmulPreference")
    preference.set(1, np.uint64(WORKSPACE.bytes))
    results, found = (ctypes.c_char * 96 * count)(), ctypes.c_int()
    call(LT.cublasLtMatmulAlgoGetHeuristic, handle, operation.pointer, *[one.pointer for one in layouts], preference.pointer, count, results,
         ctypes.byref(found))
    if not found.value:
        raise Failure("no algorithm")
    return results[:found.value]


def products(inputs, output, compute, scale, shape, ta="N", tb="N", batch=1, row_order=False, alternatives=1, attributes=(), c_kind=None,
             alpha=1.5, beta=-0.5, how="plain", scale_inputs=1.0):
    """Runs it with each of the first ALTERNATIVES algorithms. Gives A, B, C as values, and the list of D as values."""
    m, n, k = shape
    kind_a, kind_b = inputs if isinstance(inputs, tuple) else (inputs, inputs)
    c_kind = c_kind or output
    complex_type = "complex" in kind_a

    def numbers(*size):
        values = random.standard_normal(size) * scale_inputs
        return values + 1j * random.standard_normal(size) if complex_type else values
    a = encode(numbers(batch, *((m, k) if ta == "N" else (k, m))), kind_a)
    b = encode(numbers(batch, *((k, n) if tb == "N" else (n, k))), kind_b)
    c = encode(numbers(batch, m, n), c_kind)

    def stored(values):
        return Array(values if row_order else np.ascontiguousarray(values.transpose(0, 2, 1)))

    def described(values, kind):
        rows, columns = values.shape[1:]
        return layout(kind, rows, columns, columns if row_order else rows, batch, rows * columns, row_order)
    operation = Made("MatmulDesc", compute, scale)
    operation.set(TRANSA, np.int32("NTC".index(ta)))
    operation.set(TRANSB, np.int32("NTC".index(tb)))
    for attribute, value in attributes:
        operation.set(attribute, value)
    layouts = [described(a, kind_a), described(b, kind_b), described(c, c_kind), described(c, output)]
    scalar = {0: np.float32, 1: np.float64, 2: np.float16, 4: np.complex64, 5: np.complex128}[scale]
    results = []
    for algorithm in algorithms(operation, layouts, alternatives):
        x, y, z, result = stored(a), stored(b), stored(c), stored(np.zeros((batch, m, n), encode(np.zeros(1), output).dtype))
        stream = ctypes.c_void_p() if how == "plain" else new_stream()

        def work():
            call(LT.cublasLtMatmul, handle, operation.pointer, scalar(alpha), x, layouts[0].pointer, y, layouts[1].pointer, scalar(beta), z,
                 layouts[2].pointer, result, layouts[3].pointer, algorithm, WORKSPACE, ctypes.c_size_t(WORKSPACE.bytes), stream)
        if how == "graph":
            captured(stream, work)
        else:
            work()
        wait()
        got = result.get() if row_order else result.get().reshape(batch, n, m).transpose(0, 2, 1)
        results.append(decode(got, output))

    def value(bits, kind, operation):
        values = decode(bits, kind)
        return {"N": values, "T": values.transpose(0, 2, 1), "C": values.conj().transpose(0, 2, 1)}[operation]
    return value(a, kind_a, ta), value(b, kind_b, tb), decode(c, c_kind), results


def near(output, compute, k):
    kind = {COMPUTE_16F: "float16", COMPUTE_32F: "float32", COMPUTE_TF32: "float32", COMPUTE_64F: "float64"}[compute]
    extra = 4 * EPSILON["tf32"] if compute == COMPUTE_TF32 else 0
    return (k + 8) * EPSILON[kind] + 2 * EPSILON[KINDS[output][3]] + extra


def plain(*arguments, **options):
    def case():
        alpha, beta = options.get("alpha", 1.5), options.get("beta", -0.5)
        a, b, c, results = products(*arguments, **options)
        right = alpha * (a @ b) + beta * c
        return max(compare(result, right) for result in results)
    return case


TYPES = (("float", "float", COMPUTE_32F, 0, ""), ("float", "float", COMPUTE_TF32, 0, " in TF32"), ("double", "double", COMPUTE_64F, 1, ""),
         ("complex", "complex", COMPUTE_32F, 4, ""), ("double complex", "double complex", COMPUTE_64F, 5, ""),
         ("half", "half", COMPUTE_32F, 0, ""), ("half", "float", COMPUTE_32F, 0, ""), ("half", "half", COMPUTE_16F, 2, " in half"),
         ("bfloat16", "bfloat16", COMPUTE_32F, 0, ""), ("bfloat16", "float", COMPUTE_32F, 0, ""))
for (inputs, output, compute, scale, way), shape in itertools.product(TYPES, ((32, 32, 32), (40, 24, 72), (128, 96, 160), (17, 13, 31))):
    m, n, k = shape
    name = f"{inputs} to {output}{way}"
    for ta, tb in itertools.product("NTC" if "complex" in inputs else "NT", repeat=2):
        check(f"matmul {name} {ta}{tb} {m}x{n}x{k}", plain(inputs, output, compute, scale, shape, ta, tb), near(output, compute, k))
for inputs, output, compute, scale, way in TYPES:
    name, shape = f"{inputs} to {output}{way}", (64, 48, 80)
    check(f"matmul {name} rows", plain(inputs, output, compute, scale, shape, row_order=True), near(output, compute, 80))
    check(f"matmul {name} batch", plain(inputs, output, compute, scale, shape, batch=3), near(output, compute, 80))
    check(f"matmul {name} on a stream", plain(inputs, output, compute, scale, shape, how="stream"), near(output, compute, 80))
    check(f"matmul {name} in a graph", plain(inputs, output, compute, scale, shape, how="graph"), near(output, compute, 80))
    check(f"matmul {name} 12 algorithms", plain(inputs, output, compute, scale, shape, alternatives=12), near(output, compute, 80))


# ---- epilogues ----

def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))


def gelu_slope(x):
    inner = np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)
    return 0.5 * (1 + np.tanh(inner)) + 0.5 * x * np.sqrt(2 / np.pi) * (1 + 3 * 0.044715 * x ** 2) / np.cosh(inner) ** 2


def bits_of(mask):
    """A mask of m x n as cuBLASLt keeps it: a bit per element, column by column."""
    return np.packbits(np.ascontiguousarray(mask.T), axis=1, bitorder="little")


def epilogue(kind, compute, number, shape, ta="N", tb="N"):
    def case():
        m, n, k = shape
        vector = n if number == BGRADB else m
        bias = Array(encode(random.standard_normal(vector), kind))
        attributes = [(EPILOGUE, np.int32(number))]
        if number & (WITH_BIAS | BGRAD | BGRADA | BGRADB):
            attributes.append((BIAS, np.uint64(bias.address)))
        aux_values, aux = None, None
        if number & 0x80 and number & (RELU | 8):
            aux_values = random.standard_normal((m, n)) > 0
            aux = Array(bits_of(aux_values)) if number & 8 else zeros((n, m // 8), np.uint8)
        elif number & 0x80:
            aux_values = decode(encode(random.standard_normal((m, n)), kind), kind)
            aux = Array(encode(aux_values if number & 64 else 0 * aux_values, kind), "F")
        if aux:
            attributes += [(AUX, np.uint64(aux.address)), (AUX_LD, np.int64(m))]
        a, b, _, (result,) = products(kind, kind, compute, 0 if kind != "double" else 1, shape, ta, tb, attributes=attributes, beta=0.0, alpha=1.0)
        right, error = (a @ b)[0], 0.0
        if number & WITH_BIAS:
            right = right + decode(bias.get(), kind)[:, None]
        before = right
        if number & RELU:
            right = np.maximum(right, 0)
        if number & GELU:
            right = gelu(right)
        if number & (DRELU & ~0x80):
            right = right * aux_values
        if number & (DGELU & ~0x80):
            right = right * gelu_slope(aux_values)
        if number & BGRAD:
            error = compare(decode(bias.get(), kind), right.sum(1))
        if number in (BGRADA, BGRADB):
            error = compare(decode(bias.get(), kind), a[0].sum(1) if number == BGRADA else b[0].sum(0))
        if number & WITH_AUX and number & RELU:
            sure = abs(before) > 1e-2 * abs(before).max()  # the sign of what is nearly 0 may differ
            ours = np.unpackbits(aux.get(), axis=1, bitorder="little").T.astype(bool)
            error = max(error, float((ours != (before > 0))[sure].any()))
        if number & WITH_AUX and number & GELU:
            error = max(error, compare(decode(aux.get(), kind), before))
        return max(error, compare(result[0], right))
    return case


EPILOGUES = {"relu": RELU, "bias": WITH_BIAS, "relu bias": RELU | WITH_BIAS, "relu aux": RELU | WITH_AUX, "relu aux bias": RELU | WITH_AUX | WITH_BIAS,
             "gelu": GELU, "gelu bias": GELU | WITH_BIAS, "gelu aux": GELU | WITH_AUX, "gelu aux bias": GELU | WITH_AUX | WITH_BIAS,
             "drelu": DRELU, "drelu bgrad": DRELU | BGRAD, "dgelu": DGELU, "dgelu bgrad": DGELU | BGRAD, "bgrada": BGRADA, "bgradb": BGRADB}
for kind, (name, number), shape in itertools.product(("half", "bfloat16", "float"), EPILOGUES.items(), ((128, 64, 96), (256, 128, 64))):
    more = 8 * max(EPSILON[KINDS[kind][3]], EPSILON["float16"]) if number & (GELU | 64) else 0
    sums = 8 * EPSILON[KINDS[kind][3]] if number & (BGRAD | BGRADA | BGRADB) else 0
    transposed = {BGRADA: "NN", BGRADB: "NT"}.get(number, "NN" if kind == "float" else "TN")
    check(f"epilogue {name} {kind} {shape[0]}x{shape[1]}x{shape[2]}", epilogue(kind, COMPUTE_32F, number, shape, *transposed),
          near(kind, COMPUTE_32F, shape[2] + shape[1]) + more + sums)


# ---- fp8: A transposed, B not, dimensions by 16 (cuBLAS's manual, cublasLtMatmul, "FP8 data types") ----

def fp8(inputs, output, shape, fast=0):
    def case():
        scales = [Array(np.array([value], np.float32)) for value in (0.5, 2.0, 0.25)]
        amax = zeros(1)
        attributes = [(A_SCALE, np.uint64(scales[0].address)), (B_SCALE, np.uint64(scales[1].address)), (25, np.int8(fast))]
        if output in FP8:
            attributes += [(D_SCALE, np.uint64(scales[2].address)), (AMAX_D, np.uint64(amax.address))]
        a, b, c, results = products(inputs, output, COMPUTE_32F, 0, shape, "T", "N", attributes=attributes, alpha=1.0, beta=0.0,
                                    c_kind="bfloat16" if output in FP8 else None)
        right = a.astype(np.float64) @ b
        error = 0.0
        if output in FP8:
            error = compare(amax.get()[0], abs(right).max())
            right = right * 0.25
        return max(error, compare(results[0], right))
    return case


for inputs, output, shape in itertools.product((("e4m3", "e4m3"), ("e4m3", "e5m2"), ("e5m2", "e4m3")), ("float", "half", "bfloat16", "e4m3", "e5m2"),
                                               ((16, 16, 16), (64, 32, 64), (128, 128, 128))):
    if output == "e5m2" and inputs == ("e4m3", "e4m3"):
        continue
    check(f"fp8 {inputs[0]} {inputs[1]} to {output} {shape[0]}x{shape[1]}x{shape[2]}", fp8(inputs, output, shape),
          (shape[2] + 8) * EPSILON["float32"] + 2 * EPSILON[KINDS[output][3]] + 2.0 ** -13)
