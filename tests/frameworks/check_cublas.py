# SPDX-License-Identifier: Apache-2.0
"""cuBLAS against NumPy and SciPy's BLAS: levels 1, 2 and 3 in S, D, C and Z, gemmEx in half, bfloat16, TF32 and int8, batches, streams, graphs.

Tolerances: a sum of n products is allowed n + 8 roundings of the type it is accumulated in, and of the type of its result."""
import ctypes
import itertools

import numpy as np
import scipy.linalg
import scipy.linalg.blas as reference

from gpu import (EPSILON, Array, call, captured, check, compare, from_bfloat16, load, new_stream, parts, to_bfloat16, wait, zeros)

BLAS = load("libcublas.so.13")
random = np.random.default_rng(1)
handle = ctypes.c_void_p()
call(BLAS.cublasCreate_v2, ctypes.byref(handle))
TYPES = {"S": np.float32, "D": np.float64, "C": np.complex64, "Z": np.complex128}
N, T, C = 0, 1, 2
TRANSPOSE = {"N": N, "T": T, "C": C}


def numbers(shape, dtype):
    values = random.standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * random.standard_normal(shape)
    return values.astype(dtype)


def roundings(dtype, count):
    return (count + 8) * EPSILON[np.dtype(dtype).name]


def blas(name, *arguments):
    call(getattr(BLAS, name), handle, *arguments)
    wait()


def operated(matrix, operation):
    return {"N": matrix, "T": matrix.T, "C": matrix.conj().T}[operation]


# ---- level 1 ----

def level1(letter, dtype):
    n, real = 1003, np.dtype(dtype).type(0).real.dtype
    x, y = numbers(n, dtype), numbers(n, dtype)
    alpha = dtype(0.75 - 0.5j) if np.iscomplexobj(x) else dtype(0.75)
    cosine, sine = real.type(0.8), real.type(0.6)
    near = roundings(dtype, 4)

    def changed(name, right, *before):
        a, b = Array(x), Array(y)
        blas(name, n, *before, a, 1, b, 1)
        return max(compare(got.get(), want) for got, want in zip((a, b), right))

    def one(name, right, *before):
        a = Array(x)
        blas(name, n, *before, a, 1)
        return compare(a.get(), right)

    def number(name, right, kind, *arrays):
        result = np.zeros((), kind)
        blas(name, n, *itertools.chain.from_iterable((Array(array), 1) for array in arrays), result)
        return compare(result, np.asarray(right))

    check(f"{letter}axpy", lambda: changed(f"cublas{letter}axpy_v2", (x, y + alpha * x), alpha), near)
    check(f"{letter}copy", lambda: changed(f"cublas{letter}copy_v2", (x, x)), 0)
    check(f"{letter}swap", lambda: changed(f"cublas{letter}swap_v2", (y, x)), 0)
    check(f"{letter}scal", lambda: one(f"cublas{letter}scal_v2", alpha * x, alpha), near)
    check(f"{letter}rot", lambda: rotated(letter, x, y, cosine, sine, n), near)
    wide = x.astype(np.complex128 if np.iscomplexobj(x) else np.float64)
    prefix = {"S": "S", "D": "D", "C": "Sc", "Z": "Dz"}[letter]
    magnitudes = np.abs(wide.real) + np.abs(wide.imag)
    check(f"{letter}asum", lambda: number(f"cublas{prefix}asum_v2", magnitudes.sum(), real, x), roundings(dtype, n))
    check(f"{letter}nrm2", lambda: number(f"cublas{prefix}nrm2_v2", np.linalg.norm(wide), real, x), roundings(dtype, n))
    for way, way_name in ((np.argmax, "amax"), (np.argmin, "amin")):
        check(f"{letter}{way_name}", lambda: number(f"cublasI{letter.lower()}{way_name}_v2", way(magnitudes) + 1, np.int32, x), 0)
    products = {"S": ("dot",), "D": ("dot",)}.get(letter, ("dotu", "dotc"))
    for name in products:
        left = wide.conj() if name == "dotc" else wide
        scale = np.abs(wide) @ np.abs(y) / max(abs(left @ y), 1e-30)
        check(f"{letter}{name}", lambda: number(f"cublas{letter}{name}_v2", left @ y, dtype, x, y), roundings(dtype, n) * scale)
    check(f"{letter}axpy stride", lambda: strided(letter, alpha, x, y), near)


def rotated(letter, x, y, cosine, sine, n):
    a, b = Array(x), Array(y)
    name = {"S": "Srot", "D": "Drot", "C": "Csrot", "Z": "Zdrot"}[letter]
    blas(f"cublas{name}_v2", n, a, 1, b, 1, cosine, sine)
    return max(compare(a.get(), cosine * x + sine * y), compare(b.get(), cosine * y - sine * x))


def strided(letter, alpha, x, y):
    b = Array(y)
    blas(f"cublas{letter}axpy_v2", 300, alpha, Array(x), 3, b, -2)
    right = y.copy()
    right[598::-2] += alpha * x[0:900:3]
    return compare(b.get(), right)


# ---- level 2 ----

def level2(letter, dtype):
    m, n = 130, 70
    complex_type = np.issubdtype(dtype, np.complexfloating)
    a, square = numbers((m, n), dtype), numbers((n, n), dtype)
    alpha, beta = dtype(1.5), dtype(-0.5)
    x, y = numbers(m, dtype), numbers(m, dtype)

    for operation in "NTC" if complex_type else "NT":
        matrix = operated(a, operation)
        rows, columns = matrix.shape

        def gemv():
            result = Array(y[:rows])
            blas(f"cublas{letter}gemv_v2", TRANSPOSE[operation], m, n, alpha, Array(a, "F"), m, Array(x[:columns]), 1, beta, result, 1)
            return compare(result.get(), alpha * matrix @ x[:columns] + beta * y[:rows])
        check(f"{letter}gemv {operation}", gemv, roundings(dtype, columns))

        def banded():
            lower, upper = 5, 3
            band = np.zeros((lower + upper + 1, n), dtype)
            full = np.zeros((m, n), dtype)
            for j in range(n):
                for i in range(max(0, j - upper), min(m, j + lower + 1)):
                    band[upper + i - j, j] = full[i, j] = a[i, j]
            result = Array(y[:rows])
            blas(f"cublas{letter}gbmv_v2", TRANSPOSE[operation], m, n, lower, upper, alpha, Array(band, "F"), lower + upper + 1,
                 Array(x[:columns]), 1, beta, result, 1)
            return compare(result.get(), alpha * operated(full, operation) @ x[:columns] + beta * y[:rows])
        check(f"{letter}gbmv {operation}", banded, roundings(dtype, 9))

    for function, conjugated in (("geru", False), ("gerc", True)) if complex_type else (("ger", False),):
        def ger():
            result = Array(a, "F")
            v = numbers(n, dtype)
            blas(f"cublas{letter}{function}_v2", m, n, alpha, Array(x), 1, Array(v), 1, result, m)
            return compare(result.get(), a + alpha * np.outer(x, v.conj() if conjugated else v))
        check(f"{letter}{function}", ger, roundings(dtype, 2))

    symmetric = square + square.conj().T
    for uplo, keep in ((0, np.tril), (1, np.triu)):  # CUBLAS_FILL_MODE_LOWER, UPPER
        side = "lower" if uplo == 0 else "upper"
        indices = np.tril_indices(n) if uplo == 0 else np.triu_indices(n)
        by_column = np.lexsort((indices[0], indices[1]))
        indices = tuple(part[by_column] for part in indices)

        def symv():
            name = "hemv" if complex_type else "symv"
            result = Array(y[:n])
            blas(f"cublas{letter}{name}_v2", uplo, n, alpha, Array(keep(symmetric), "F"), n, Array(x[:n]), 1, beta, result, 1)
            return compare(result.get(), alpha * symmetric @ x[:n] + beta * y[:n])
        check(f"{letter}{'hemv' if complex_type else 'symv'} {side}", symv, roundings(dtype, n))

        def spmv():
            name = "hpmv" if complex_type else "spmv"
            result = Array(y[:n])
            blas(f"cublas{letter}{name}_v2", uplo, n, alpha, Array(symmetric[indices]), Array(x[:n]), 1, beta, result, 1)
            return compare(result.get(), alpha * symmetric @ x[:n] + beta * y[:n])
        check(f"{letter}{'hpmv' if complex_type else 'spmv'} {side}", spmv, roundings(dtype, n))

        def syr():
            name = "her" if complex_type else "syr"
            result = Array(symmetric, "F")
            blas(f"cublas{letter}{name}_v2", uplo, n, alpha.real, Array(x[:n]), 1, result, n)
            return compare(keep(result.get()), keep(symmetric + alpha.real * np.outer(x[:n], x[:n].conj())))
        check(f"{letter}{'her' if complex_type else 'syr'} {side}", syr, roundings(dtype, 2))

        def syr2():
            name = "her2" if complex_type else "syr2"
            result = Array(symmetric, "F")
            blas(f"cublas{letter}{name}_v2", uplo, n, alpha, Array(x[:n]), 1, Array(y[:n]), 1, result, n)
            right = symmetric + alpha * np.outer(x[:n], y[:n].conj()) + np.conj(alpha) * np.outer(y[:n], x[:n].conj())
            return compare(keep(result.get()), keep(right))
        check(f"{letter}{'her2' if complex_type else 'syr2'} {side}", syr2, roundings(dtype, 4))

        triangle = keep(square) + n * np.eye(n, dtype=dtype)
        for operation, unit in itertools.product("NTC" if complex_type else "NT", (0, 1)):
            matrix = operated(triangle if not unit else keep(square, 1 - 2 * (uplo == 0)) / n + np.eye(n, dtype=dtype), operation)
            stored = Array(triangle if not unit else keep(square, 1 - 2 * (uplo == 0)) / n + n * np.eye(n, dtype=dtype), "F")
            case = f"{side} {operation}{' unit' if unit else ''}"

            def trmv():
                result = Array(x[:n])
                blas(f"cublas{letter}trmv_v2", uplo, TRANSPOSE[operation], unit, n, stored, n, result, 1)
                return compare(result.get(), matrix @ x[:n])
            check(f"{letter}trmv {case}", trmv, roundings(dtype, n))

            def trsv():
                result = Array(x[:n])
                blas(f"cublas{letter}trsv_v2", uplo, TRANSPOSE[operation], unit, n, stored, n, result, 1)
                return compare(matrix @ result.get(), x[:n])
            check(f"{letter}trsv {case}", trsv, roundings(dtype, n))


# ---- level 3 ----

SHAPES = ((1, 1, 1), (7, 5, 3), (33, 17, 65), (128, 128, 64), (200, 50, 100), (64, 1, 300))


def gemm(letter, dtype, m, n, k, ta, tb, stream=None, graph=False):
    a, b = numbers((m, k) if ta == "N" else (k, m), dtype), numbers((k, n) if tb == "N" else (n, k), dtype)
    c, alpha, beta = numbers((m, n), dtype), dtype(1.25), dtype(-0.5)
    left, right, result = Array(a, "F"), Array(b, "F"), Array(c, "F")

    def work():
        call(getattr(BLAS, f"cublas{letter}gemm_v2"), handle, TRANSPOSE[ta], TRANSPOSE[tb], m, n, k, alpha, left, a.shape[0], right, b.shape[0],
             beta, result, m)
    if stream:
        call(BLAS.cublasSetStream_v2, handle, stream)
    try:
        if graph:
            captured(stream, work)
        else:
            work()
            wait()
    finally:
        call(BLAS.cublasSetStream_v2, handle, ctypes.c_void_p())
    return compare(result.get(), alpha * operated(a, ta) @ operated(b, tb) + beta * c)


def level3(letter, dtype):
    complex_type = np.issubdtype(dtype, np.complexfloating)
    operations = "NTC" if complex_type else "NT"
    for (m, n, k), ta, tb in itertools.product(SHAPES, operations, operations):
        check(f"{letter}gemm {ta}{tb} {m}x{n}x{k}", lambda: gemm(letter, dtype, m, n, k, ta, tb), roundings(dtype, k))
    stream = new_stream()
    check(f"{letter}gemm on a stream", lambda: gemm(letter, dtype, 100, 60, 80, "N", "T", stream), roundings(dtype, 80))
    check(f"{letter}gemm in a graph", lambda: gemm(letter, dtype, 100, 60, 80, "N", "T", stream, True), roundings(dtype, 80))
    n, m, k = 96, 40, 33
    square, alpha, beta = numbers((n, n), dtype), dtype(1.25), dtype(-0.5)
    for uplo, keep in ((0, np.tril), (1, np.triu)):
        side = "lower" if uplo == 0 else "upper"
        for operation in ("N", "C" if complex_type else "T"):
            a, b = (numbers((n, k) if operation == "N" else (k, n), dtype) for _ in range(2))
            for name, symmetric in (("syrk", False), ("syr2k", False), ("syrkx", False)) + (
                    (("herk", True), ("her2k", True), ("herkx", True)) if complex_type else ()):
                kind = "T" if operation != "N" and not symmetric else operation
                x, y = operated(a, kind), operated(b, kind)
                turn = (lambda z: z.conj().T) if symmetric else (lambda z: z.T)
                start = square + turn(square)

                def rank():
                    result = Array(start, "F")
                    scale = beta.real if symmetric else beta
                    factor = alpha.real if symmetric and name == "herk" else alpha
                    second = [Array(b if name.endswith("2k") else a, "F"), b.shape[0]] if not name.endswith("rk") else []
                    blas(f"cublas{letter}{name}" + ("_v2" if not name.endswith("x") else ""), uplo, TRANSPOSE[kind], n, k, factor,
                         Array(a, "F"), a.shape[0], *second, scale, result, n)
                    right = factor * x @ turn(x)
                    if name.endswith("2k"):
                        right = factor * x @ turn(y) + factor * y @ turn(x)
                    return compare(keep(result.get()), keep(right + scale * start))
                check(f"{letter}{name} {side} {operation}", rank, roundings(dtype, 2 * k))
        for where, side_name in ((0, "left"), (1, "right")):
            b = numbers((n, m) if where == 0 else (m, n), dtype)
            c = numbers(b.shape, dtype)
            for name, conjugated in (("symm", False),) + ((("hemm", True),) if complex_type else ()):
                whole = square + (square.conj().T if conjugated else square.T)

                def symm():
                    result = Array(c, "F")
                    blas(f"cublas{letter}{name}_v2", where, uplo, *b.shape, alpha, Array(keep(whole), "F"), n, Array(b, "F"), b.shape[0], beta,
                         result, b.shape[0])
                    return compare(result.get(), alpha * (whole @ b if where == 0 else b @ whole) + beta * c)
                check(f"{letter}{name} {side_name} {side}", symm, roundings(dtype, n))
            for operation in operations:
                triangle = keep(square) + n * np.eye(n, dtype=dtype)
                matrix = operated(triangle, operation)

                def trmm():
                    result = zeros(b.shape, dtype, "F")
                    blas(f"cublas{letter}trmm_v2", where, uplo, TRANSPOSE[operation], 0, *b.shape, alpha, Array(triangle, "F"), n,
                         Array(b, "F"), b.shape[0], result, b.shape[0])
                    return compare(result.get(), alpha * (matrix @ b if where == 0 else b @ matrix))
                check(f"{letter}trmm {side_name} {side} {operation}", trmm, roundings(dtype, n))

                def trsm():
                    result = Array(b, "F")
                    blas(f"cublas{letter}trsm_v2", where, uplo, TRANSPOSE[operation], 0, *b.shape, alpha, Array(triangle, "F"), n, result,
                         b.shape[0])
                    got = result.get()
                    return compare(matrix @ got if where == 0 else got @ matrix, alpha * b)
                check(f"{letter}trsm {side_name} {side} {operation}", trsm, roundings(dtype, n))

    a, b = numbers((n, m), dtype), numbers((n, m), dtype)

    def geam():
        result = zeros((m, n), dtype, "F")
        blas(f"cublas{letter}geam", 1, 1, m, n, alpha, Array(a, "F"), n, beta, Array(b, "F"), n, result, m)
        return compare(result.get(), alpha * a.T + beta * b.T)
    check(f"{letter}geam", geam, roundings(dtype, 2))

    def dgmm():
        result, diagonal = zeros((n, m), dtype, "F"), numbers(n, dtype)
        blas(f"cublas{letter}dgmm", 0, n, m, Array(a, "F"), n, Array(diagonal), 1, result, n)
        return compare(result.get(), diagonal[:, None] * a)
    check(f"{letter}dgmm", dgmm, roundings(dtype, 1))


# ---- batches ----

def in_columns(values):
    """A stack of matrices, each column by column."""
    return np.ascontiguousarray(values.transpose(0, 2, 1))


def batches(letter, dtype):
    count, m, n, k = 5, 20, 12, 30
    a, b, c = numbers((count, m, k), dtype), numbers((count, k, n), dtype), numbers((count, m, n), dtype)
    alpha, beta = dtype(1.25), dtype(-0.5)
    right = alpha * a @ b + beta * c

    def pointer_batch():
        x, y, result = Array(in_columns(a)), Array(in_columns(b)), Array(in_columns(c))
        blas(f"cublas{letter}gemmBatched", 0, 0, m, n, k, alpha, parts(x, count), m, parts(y, count), k, beta, parts(result, count), m, count)
        return compare(result.get().transpose(0, 2, 1), right)
    check(f"{letter}gemmBatched", pointer_batch, roundings(dtype, k))

    def strided_batch():
        result = Array(in_columns(c))
        long = ctypes.c_longlong
        blas(f"cublas{letter}gemmStridedBatched", 0, 0, m, n, k, alpha, Array(in_columns(a)), m, long(m * k), Array(in_columns(b)), k,
             long(k * n), beta, result, m, long(m * n), count)
        return compare(result.get().transpose(0, 2, 1), right)
    check(f"{letter}gemmStridedBatched", strided_batch, roundings(dtype, k))

    def gemv_batch():
        long, x, y = ctypes.c_longlong, numbers((count, k), dtype), numbers((count, m), dtype)
        result = Array(y)
        blas(f"cublas{letter}gemvStridedBatched", 0, m, k, alpha, Array(in_columns(a)), m, long(m * k), Array(x), 1, long(k), beta, result, 1,
             long(m), count)
        return compare(result.get(), alpha * np.einsum("bij,bj->bi", a, x) + beta * y)
    check(f"{letter}gemvStridedBatched", gemv_batch, roundings(dtype, k))

    size = 16
    squares = numbers((count, size, size), dtype) + size * np.eye(size, dtype=dtype)

    def factors():
        x, pivots, info = Array(in_columns(squares)), zeros((count, size), np.int32), zeros(count, np.int32)
        blas(f"cublas{letter}getrfBatched", size, parts(x, count), size, pivots, info, count)
        return x, pivots, info

    def getrf():
        x, pivots, info = factors()
        error = float(abs(info.get()).max())
        for ours, steps, whole in zip(x.get().transpose(0, 2, 1), pivots.get(), squares):
            order = np.arange(size)
            for i, other in enumerate(steps - 1):
                order[[i, other]] = order[[other, i]]
            error = max(error, compare((np.tril(ours, -1) + np.eye(size)) @ np.triu(ours), whole[order]))
        return error
    check(f"{letter}getrfBatched", getrf, roundings(dtype, size))

    def getri():
        x, pivots, info = factors()
        result = zeros((count, size, size), dtype)
        blas(f"cublas{letter}getriBatched", size, parts(x, count), size, pivots, parts(result, count), size, info, count)
        return compare(result.get().transpose(0, 2, 1) @ squares, np.broadcast_to(np.eye(size), squares.shape))
    check(f"{letter}getriBatched", getri, roundings(dtype, 4 * size))

    def getrs():
        x, pivots, _ = factors()
        sides = numbers((count, size, 3), dtype)
        result, info = Array(in_columns(sides)), np.zeros(1, np.int32)
        blas(f"cublas{letter}getrsBatched", 0, size, 3, parts(x, count), size, pivots, parts(result, count), size, info, count)
        return compare(squares @ result.get().transpose(0, 2, 1), sides)
    check(f"{letter}getrsBatched", getrs, roundings(dtype, 4 * size))

    def matinv():
        result, info = zeros((count, size, size), dtype), zeros(count, np.int32)
        x = Array(in_columns(squares))
        blas(f"cublas{letter}matinvBatched", size, parts(x, count), size, parts(result, count), size, info, count)
        return compare(result.get().transpose(0, 2, 1) @ squares, np.broadcast_to(np.eye(size), squares.shape))
    check(f"{letter}matinvBatched", matinv, roundings(dtype, 4 * size))

    def geqrf():
        x, tau, info = Array(in_columns(squares)), zeros((count, size), dtype), np.zeros(1, np.int32)
        blas(f"cublas{letter}geqrfBatched", size, size, parts(x, count), size, parts(tau, count), info, count)
        triangle = np.triu(x.get().transpose(0, 2, 1))
        return compare(triangle.conj().transpose(0, 2, 1) @ triangle, squares.conj().transpose(0, 2, 1) @ squares)
    check(f"{letter}geqrfBatched", geqrf, roundings(dtype, 8 * size))

    def gels():
        tall, sides = numbers((count, 24, 8), dtype), numbers((count, 24, 2), dtype)
        x, result, info, infos = Array(in_columns(tall)), Array(in_columns(sides)), np.zeros(1, np.int32), zeros(count, np.int32)
        blas(f"cublas{letter}gelsBatched", 0, 24, 8, 2, parts(x, count), 24, parts(result, count), 24, info, infos, count)
        want = np.stack([np.linalg.lstsq(one, side, rcond=None)[0] for one, side in zip(tall, sides)])
        return compare(result.get().transpose(0, 2, 1)[:, :8], want)
    check(f"{letter}gelsBatched", gels, roundings(dtype, 24 * 8))

    def trsm_batch():
        lower = np.tril(squares)
        sides = numbers((count, size, 6), dtype)
        x, result = Array(in_columns(lower)), Array(in_columns(sides))
        blas(f"cublas{letter}trsmBatched", 0, 0, 0, 0, size, 6, alpha, parts(x, count), size, parts(result, count), size, count)
        return compare(lower @ result.get().transpose(0, 2, 1), alpha * sides)
    check(f"{letter}trsmBatched", trsm_batch, roundings(dtype, 4 * size))


# ---- gemmEx ----

R_32F, R_64F, R_16F, R_8I, R_32I, R_16BF = 0, 1, 2, 3, 10, 14
COMPUTE_16F, COMPUTE_32F, COMPUTE_32F_FAST_TF32, COMPUTE_32I = 64, 68, 77, 72
STORED = {"half": (R_16F, lambda v: v.astype(np.float16), lambda v: v.astype(np.float64), "float16"),
          "bfloat16": (R_16BF, to_bfloat16, from_bfloat16, "bfloat16"),
          "float": (R_32F, lambda v: v.astype(np.float32), lambda v: v.astype(np.float64), "float32"),
          "int8": (R_8I, lambda v: np.clip(v * 30, -127, 127).astype(np.int8), lambda v: v.astype(np.float64), None),
          "int32": (R_32I, lambda v: np.round(v * 30).astype(np.int32), lambda v: v.astype(np.float64), None)}


def gemm_ex(inputs, output, compute, scalar, m, n, k, ta, tb, batch=0):
    """`batch` matrices side by side, 0: cublasGemmEx."""
    in_type, encode, decode, _ = STORED[inputs]
    out_type, encode_out, decode_out, _ = STORED[output]
    count = max(batch, 1)
    a, b = (encode(random.standard_normal(shape)) for shape in
            ((count, m, k) if ta == "N" else (count, k, m), (count, k, n) if tb == "N" else (count, n, k)))
    c = encode_out(random.standard_normal((count, m, n)))
    alpha, beta, long = scalar(1), scalar(2), ctypes.c_longlong
    result, lead_a, lead_b = Array(in_columns(c)), a.shape[1], b.shape[1]
    x, y = Array(in_columns(a)), Array(in_columns(b))
    if batch:
        blas("cublasGemmStridedBatchedEx", TRANSPOSE[ta], TRANSPOSE[tb], m, n, k, alpha, x, in_type, lead_a, long(m * k), y, in_type, lead_b,
             long(k * n), beta, result, out_type, m, long(m * n), count, compute, -1)
    else:
        blas("cublasGemmEx", TRANSPOSE[ta], TRANSPOSE[tb], m, n, k, alpha, x, in_type, lead_a, y, in_type, lead_b, beta, result, out_type, m,
             compute, -1)
    left, right = (decode(values) if one == "N" else decode(values).transpose(0, 2, 1) for values, one in ((a, ta), (b, tb)))
    return compare(decode_out(result.get()).transpose(0, 2, 1), left @ right + 2 * decode_out(c))


def extended():
    kinds = (("half", "half", COMPUTE_32F, np.float32, 2 * EPSILON["float16"]),
             ("half", "float", COMPUTE_32F, np.float32, 0),
             ("half", "half", COMPUTE_16F, np.float16, None),
             ("bfloat16", "bfloat16", COMPUTE_32F, np.float32, 2 * EPSILON["bfloat16"]),
             ("bfloat16", "float", COMPUTE_32F, np.float32, 0),
             ("float", "float", COMPUTE_32F_FAST_TF32, np.float32, 4 * EPSILON["tf32"]))
    for (inputs, output, compute, scalar, result), (m, n, k), ta, tb in itertools.product(
            kinds, ((8, 8, 8), (33, 17, 65), (128, 64, 96), (256, 128, 64), (64, 1, 256)), "NT", "NT"):
        near = (k + 8) * EPSILON["float16"] if result is None else result + (k + 8) * EPSILON["float32"]
        name = f"{inputs} to {output}{' in half' if compute == COMPUTE_16F else ' in TF32' if compute == COMPUTE_32F_FAST_TF32 else ''}"
        check(f"gemmEx {name} {ta}{tb} {m}x{n}x{k}", lambda: gemm_ex(inputs, output, compute, scalar, m, n, k, ta, tb), near)
        if (m, n, k) in ((8, 8, 8), (128, 64, 96)):
            check(f"gemmStridedBatchedEx {name} {ta}{tb} {m}x{n}x{k}",
                  lambda: gemm_ex(inputs, output, compute, scalar, m, n, k, ta, tb, 3), near)
    for (m, n, k), ta, tb in itertools.product(((8, 8, 8), (64, 32, 128), (128, 128, 64)), "NT", "NT"):
        check(f"gemmEx int8 to int32 {ta}{tb} {m}x{n}x{k}",
              lambda: gemm_ex("int8", "int32", COMPUTE_32I, np.int32, m, n, k, ta, tb), 0)


for letter, dtype in TYPES.items():
    level1(letter, dtype)
    level2(letter, dtype)
    level3(letter, dtype)
    batches(letter, dtype)
extended()
