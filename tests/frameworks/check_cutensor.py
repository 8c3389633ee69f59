# SPDX-License-Identifier: Apache-2.0
"""cuTENSOR against NumPy: contractions, reductions, permutations, elementwise operations, contractions captured in a graph.

Tolerances: a sum of n products is allowed n + 8 roundings of the type it is accumulated in and two of the result's type."""
import ctypes
import glob
import os

import numpy as np

from gpu import EPSILON, FOLDER, Array, call, captured, check, compare, new_stream, wait, zeros

TENSOR = ctypes.CDLL(glob.glob(os.path.join(os.path.dirname(FOLDER), "cutensor", "lib", "libcutensor.so.2"))[0])
random = np.random.default_rng(7)
handle = ctypes.c_void_p()
CODE = {"float32": 0, "float64": 1, "float16": 2, "complex64": 4, "complex128": 5}
# What each type is computed in: the library's descriptor, and the type of the scalars.
COMPUTE = {"float16": ("32F", "float32"), "float32": ("32F", "float32"), "float64": ("64F", "float64"), "complex64": ("32F", "complex64"),
           "complex128": ("64F", "complex128")}
IDENTITY, SQRT, ADD, MUL, MAX, RELU, CONJUGATE = 1, 2, 3, 5, 6, 8, 9


def setup():
    call(TENSOR.cutensorCreate, ctypes.byref(handle))
    return 0.0


def numbers(shape, dtype):
    values = random.standard_normal(shape)
    if dtype.startswith("complex"):
        values = values + 1j * random.standard_normal(shape)
    return values.astype(dtype)


def modes(text):
    return np.array([ord(mode) for mode in text] or [0], np.int32)


def described(array):
    pointer, extents = ctypes.c_void_p(), np.array(array.shape or [0], np.int64)
    strides = np.array([int(np.prod(array.shape[i + 1:])) for i in range(len(array.shape))] or [0], np.int64)
    call(TENSOR.cutensorCreateTensorDescriptor, handle, ctypes.byref(pointer), ctypes.c_uint32(len(array.shape)), extents, strides,
         CODE[array.dtype.name], ctypes.c_uint32(128))
    return pointer


def planned(create, dtype, *arguments):
    """The plan of an operation, and its work space."""
    operation, preference, plan, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
    compute = ctypes.c_void_p.in_dll(TENSOR, "CUTENSOR_COMPUTE_DESC_" + COMPUTE[dtype][0])
    call(create, handle, ctypes.byref(operation), *arguments, compute)
    call(TENSOR.cutensorCreatePlanPreference, handle, ctypes.byref(preference), -1, 0)
    call(TENSOR.cutensorEstimateWorkspaceSize, handle, operation, preference, 2, ctypes.byref(size))
    call(TENSOR.cutensorCreatePlan, handle, ctypes.byref(plan), operation, preference, size)
    return plan, zeros(max(size.value, 1), np.uint8), size


def scalar(value, dtype):
    return np.array(value, COMPUTE[dtype][1])


def summed(dtype, count):
    return (count + 8) * EPSILON[COMPUTE[dtype][1]] + 2 * EPSILON[dtype]


def contraction(spelled, sizes, dtype, graph=False, conjugate=False):
    """D = 1.5 A B + 0.5 C, by Einstein's convention."""
    inputs, c_modes = spelled.split("->")
    a_modes, b_modes = inputs.split(",")

    def case():
        a, b, c = (numbers([sizes[m] for m in of], dtype) for of in (a_modes, b_modes, c_modes))
        arrays = [Array(a), Array(b), Array(c)]
        left, right, out = (described(one) for one in arrays)
        plan, space, size = planned(TENSOR.cutensorCreateContraction, dtype, left, modes(a_modes), CONJUGATE if conjugate else IDENTITY, right,
                                    modes(b_modes), IDENTITY, out, modes(c_modes), IDENTITY, out, modes(c_modes))
        stream = new_stream()
        wait()

        def run():
            call(TENSOR.cutensorContract, handle, plan, scalar(1.5, dtype), arrays[0], arrays[1], scalar(0.5, dtype), arrays[2], arrays[2], space,
                 size, stream)

        captured(stream, run) if graph else run()
        wait()
        wide = np.complex128 if dtype.startswith("complex") else np.float64
        a = a.conj() if conjugate else a
        return compare(arrays[2].get(), 1.5 * np.einsum(spelled, a.astype(wide), b.astype(wide)) + 0.5 * c.astype(wide))

    count = int(np.prod([sizes[m] for m in set(a_modes) & set(b_modes) - set(c_modes)]))
    check(f"contraction {spelled}{' conjugate' if conjugate else ''}{' in a graph' if graph else ''} {dtype}", case, summed(dtype, count))


def reduction(a_modes, c_modes, sizes, dtype, operator, name):
    def case():
        a = numbers([sizes[m] for m in a_modes], dtype)
        arrays = [Array(a), zeros([sizes[m] for m in c_modes], np.dtype(dtype))]
        of, out = described(arrays[0]), described(arrays[1])
        plan, space, size = planned(TENSOR.cutensorCreateReduction, dtype, of, modes(a_modes), IDENTITY, out, modes(c_modes), IDENTITY, out,
                                    modes(c_modes), operator)
        call(TENSOR.cutensorReduce, handle, plan, scalar(1, dtype), arrays[0], scalar(0, dtype), arrays[1], arrays[1], space, size, None)
        wait()
        axes = tuple(i for i, m in enumerate(a_modes) if m not in c_modes)
        right = a.max(axes) if operator == MAX else a.astype(np.complex128 if dtype.startswith("complex") else np.float64).sum(axes)
        kept = [m for m in a_modes if m in c_modes]
        return compare(arrays[1].get(), right.transpose([kept.index(m) for m in c_modes]))

    count = int(np.prod([sizes[m] for m in a_modes if m not in c_modes]))
    check(f"reduction {name} {a_modes}->{c_modes} {dtype}", case, 0.0 if operator == MAX else summed(dtype, count))


def permutation(a_modes, b_modes, sizes, dtype):
    def case():
        a = numbers([sizes[m] for m in a_modes], dtype)
        arrays = [Array(a), zeros([sizes[m] for m in b_modes], np.dtype(dtype))]
        plan, _, _ = planned(TENSOR.cutensorCreatePermutation, dtype, described(arrays[0]), modes(a_modes), IDENTITY, described(arrays[1]),
                             modes(b_modes))
        call(TENSOR.cutensorPermute, handle, plan, scalar(2, dtype), *arrays, None)
        wait()
        return compare(arrays[1].get(), 2 * a.transpose([a_modes.index(m) for m in b_modes]))

    check(f"permutation {a_modes}->{b_modes} {dtype}", case, 0.0)


def elementwise(dtype):
    sizes = {"m": 37, "n": 24}

    def binary():
        a, c = abs(numbers((37, 24), dtype)), numbers((24, 37), dtype)
        arrays = [Array(a), Array(c)]
        of, out = described(arrays[0]), described(arrays[1])
        plan, _, _ = planned(TENSOR.cutensorCreateElementwiseBinary, dtype, of, modes("mn"), SQRT, out, modes("nm"), IDENTITY, out, modes("nm"), MUL)
        call(TENSOR.cutensorElementwiseBinaryExecute, handle, plan, scalar(2, dtype), arrays[0], scalar(3, dtype), arrays[1], arrays[1], None)
        wait()
        return compare(arrays[1].get(), 6 * np.sqrt(a.T.astype(np.float64)) * c)

    def trinary():
        a, b, c = (numbers([sizes[m] for m in of], dtype) for of in ("mn", "nm", "mn"))
        arrays = [Array(a), Array(b), Array(c)]
        first, second, out = (described(one) for one in arrays)
        plan, _, _ = planned(TENSOR.cutensorCreateElementwiseTrinary, dtype, first, modes("mn"), IDENTITY, second, modes("nm"), RELU, out, modes("mn"),
                             IDENTITY, out, modes("mn"), ADD, MAX)
        call(TENSOR.cutensorElementwiseTrinaryExecute, handle, plan, scalar(1, dtype), arrays[0], scalar(2, dtype), arrays[1], scalar(1, dtype),
             arrays[2], arrays[2], None)
        wait()
        return compare(arrays[2].get(), np.maximum(a.astype(np.float64) + 2 * np.maximum(b.T, 0).astype(np.float64), c))

    check(f"elementwise 2 sqrt(A) * 3 C {dtype}", binary, 6 * EPSILON[dtype])
    check(f"elementwise max(A + 2 relu(B), C) {dtype}", trinary, 4 * EPSILON[dtype])


check("cutensorCreate", setup, 0.0)
for kind in CODE:
    contraction("mkl,lnk->mn", {"m": 12, "n": 10, "k": 5, "l": 8}, kind)
contraction("mkl,lnk->mn", {"m": 12, "n": 10, "k": 5, "l": 8}, "complex64", conjugate=True)
contraction("mk,kn->mn", {"m": 70, "n": 65, "k": 48}, "float32")
contraction("bmk,bkn->bnm", {"b": 3, "m": 20, "n": 33, "k": 17}, "float32")
contraction("mhkn,ukh->mun", {"m": 9, "h": 4, "k": 6, "n": 7, "u": 11}, "float64")
contraction("mkl,lnk->mn", {"m": 12, "n": 10, "k": 5, "l": 8}, "float32", graph=True)
for kind in ("float32", "float64", "complex64"):
    reduction("mkn", "mn", {"m": 9, "k": 100, "n": 11}, kind, ADD, "sum")
reduction("mkn", "nm", {"m": 9, "k": 33, "n": 11}, "float32", MAX, "max")
reduction("mkn", "", {"m": 9, "k": 33, "n": 11}, "float64", ADD, "sum")
for kind in ("float16", "float32", "complex128"):
    permutation("abcd", "dbac", {"a": 5, "b": 9, "c": 12, "d": 7}, kind)
for kind in ("float32", "float64"):
    elementwise(kind)
