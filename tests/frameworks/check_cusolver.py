# SPDX-License-Identifier: Apache-2.0
"""cuSOLVER: what a factorisation is multiplied out to, singular and eigenvalues against LAPACK (NumPy), residuals of solutions.

Tolerances: 20 n roundings of the type; Jacobi methods (gesvdj, syevj) stop at 1e-7 in single and 1e-12 in double precision."""
import ctypes
import itertools

import numpy as np
import scipy.sparse

from gpu import EPSILON, Array, Failure, call, captured, check, compare, load, new_stream, parts, wait, zeros

SOLVER = load("libcusolver.so.12")
SPARSE = load("libcusparse.so.12")
random = np.random.default_rng(3)
handle, params = ctypes.c_void_p(), ctypes.c_void_p()
call(SOLVER.cusolverDnCreate, ctypes.byref(handle))
call(SOLVER.cusolverDnCreateParams, ctypes.byref(params))
TYPES = {"S": np.float32, "D": np.float64, "C": np.complex64, "Z": np.complex128}
CUDA_TYPE = {"S": 0, "D": 1, "C": 4, "Z": 5}
VECTOR, LOWER, UPPER = 1, 0, 1
SIZES = (1, 5, 33, 100)


def numbers(shape, dtype):
    values = random.standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * random.standard_normal(shape)
    return values.astype(dtype)


def transposed(matrix):
    return np.conj(np.swapaxes(matrix, -1, -2))


def near(dtype, n):
    return 20 * max(n, 4) * EPSILON[np.dtype(dtype).name]


def jacobi(dtype):
    return 1e-5 if EPSILON[np.dtype(dtype).name] > 1e-10 else 1e-10


def real(dtype):
    return np.dtype(dtype).type(0).real.dtype


def name_of(letter, function):
    """The function for that type: what is orthogonal and symmetric for real numbers is unitary and Hermitian for complex ones."""
    if letter in "CZ":
        for from_name, to_name in (("orgqr", "ungqr"), ("ormqr", "unmqr"), ("syev", "heev"), ("sygv", "hegv"), ("orgbr", "ungbr"), ("sytrd", "hetrd"),
                                   ("orgtr", "ungtr"), ("ormtr", "unmtr")):
            function = function.replace(from_name, to_name)
    return f"cusolverDn{letter}{function}"


class Info:
    """devInfo, which must be 0."""

    def __init__(self, count=1):
        self.array = Array(np.full(count, 77, np.int32))

    def right(self):
        wait()
        if self.array.get().any():
            raise Failure(f"info {self.array.get()}")


def workspace(letter, function, dtype, *arguments):
    size = ctypes.c_int()
    call(getattr(SOLVER, name_of(letter, function) + "_bufferSize"), handle, *arguments, ctypes.byref(size))
    return zeros(max(size.value, 1), dtype), size.value


def run(letter, function, *arguments):
    call(getattr(SOLVER, name_of(letter, function)), handle, *arguments)


def permuted(matrix, pivots):
    rows = np.arange(len(matrix))
    for i, other in enumerate(pivots - 1):
        rows[[i, other]] = rows[[other, i]]
    return matrix[rows]


def positive(n, dtype, count=None):
    a = numbers((n, n) if count is None else (count, n, n), dtype)
    return (a @ transposed(a) + n * np.eye(n)).astype(dtype)


def columns(stack):
    return np.ascontiguousarray(np.swapaxes(stack, -1, -2))


def linear(letter, dtype, n):
    def lu(m):
        def case():
            a = numbers((m, n), dtype)
            x, pivots, info = Array(a, "F"), zeros(min(m, n), np.int32), Info()
            work, _ = workspace(letter, "getrf", dtype, m, n, x, m)
            run(letter, "getrf", m, n, x, m, work, pivots, info.array)
            info.right()
            got, k = x.get(), min(m, n)
            return compare(np.tril(got, -1)[:, :k] @ np.triu(got)[:k] + np.pad(np.triu(got)[:k], ((0, m - k), (0, 0))), permuted(a, pivots.get()))
        return case
    check(f"{letter}getrf {n}x{n}", lu(n), near(dtype, n))
    check(f"{letter}getrf {n + 9}x{n}", lu(n + 9), near(dtype, n))

    for operation, which in enumerate("NTC" if letter in "CZ" else "NT"):
        def solve():
            a, b = numbers((n, n), dtype) + n * np.eye(n, dtype=dtype), numbers((n, 3), dtype)
            x, y, pivots, info = Array(a, "F"), Array(b, "F"), zeros(n, np.int32), Info()
            work, _ = workspace(letter, "getrf", dtype, n, n, x, n)
            run(letter, "getrf", n, n, x, n, work, pivots, info.array)
            run(letter, "getrs", operation, n, 3, x, n, pivots, y, n, info.array)
            info.right()
            return compare({"N": a, "T": a.T, "C": transposed(a)}[which] @ y.get(), b)
        check(f"{letter}getrs {which} {n}", solve, near(dtype, n))

    for uplo, side in ((LOWER, "lower"), (UPPER, "upper")):
        def cholesky(then):
            def case():
                a = positive(n, dtype)
                x, info = Array(a, "F"), Info()
                work, size = workspace(letter, "potrf", dtype, uplo, n, x, n)
                run(letter, "potrf", uplo, n, x, n, work, size, info.array)
                info.right()
                factor = np.tril(x.get()) if uplo == LOWER else transposed(np.triu(x.get()))
                if then == "potrf":
                    return compare(factor @ transposed(factor), a)
                if then == "potrs":
                    b = numbers((n, 2), dtype)
                    y = Array(b, "F")
                    run(letter, "potrs", uplo, n, 2, x, n, y, n, info.array)
                    info.right()
                    return compare(a @ y.get(), b)
                work, size = workspace(letter, "potri", dtype, uplo, n, x, n)
                run(letter, "potri", uplo, n, x, n, work, size, info.array)
                info.right()
                half = np.tril(x.get()) if uplo == LOWER else transposed(np.triu(x.get()))
                return compare((half + transposed(np.tril(half, -1))) @ a, np.eye(n))
            return case
        for then in ("potrf", "potrs", "potri"):
            check(f"{letter}{then} {side} {n}", cholesky(then), near(dtype, n))

    def qr(then):
        def case():
            m = n + 7
            a = numbers((m, n), dtype)
            x, tau, info = Array(a, "F"), zeros(n, dtype), Info()
            work, size = workspace(letter, "geqrf", dtype, m, n, x, m)
            run(letter, "geqrf", m, n, x, m, tau, work, size, info.array)
            info.right()
            r = np.triu(x.get())[:n]
            if then == "ormqr":
                y = Array(a, "F")
                adjoint = 2 if letter in "CZ" else 1
                work, size = workspace(letter, "ormqr", dtype, 0, adjoint, m, n, n, x, m, tau, y, m)
                run(letter, "ormqr", 0, adjoint, m, n, n, x, m, tau, y, m, work, size, info.array)
                info.right()
                return compare(y.get(), np.vstack([r, np.zeros((m - n, n))]))
            work, size = workspace(letter, "orgqr", dtype, m, n, n, x, m, tau)
            run(letter, "orgqr", m, n, n, x, m, tau, work, size, info.array)
            info.right()
            q = x.get()
            return max(compare(q @ r, a), compare(transposed(q) @ q, np.eye(n)))
        return case
    check(f"{letter}geqrf {letter}orgqr {n}", qr("orgqr"), near(dtype, n))
    check(f"{letter}geqrf {letter}ormqr {n}", qr("ormqr"), near(dtype, n))

    def refined(function):
        def case():
            m = n + 10 if function == "gels" else n
            a, b = numbers((m, n), dtype) + (n * np.eye(m, n)).astype(dtype), numbers((m, 2), dtype)
            x, y, out, info = Array(a, "F"), Array(b, "F"), zeros((n, 2), dtype, "F"), Info()
            size, iterations, pivots = ctypes.c_size_t(), ctypes.c_int(), [zeros(n, np.int32)] if function == "gesv" else []
            shape = (m, n, 2) if function == "gels" else (n, 2)
            call(getattr(SOLVER, f"cusolverDn{letter * 2}{function}_bufferSize"), handle, *shape, x, m, *pivots, y, m, out, n, ctypes.c_void_p(),
                 ctypes.byref(size))
            work = zeros(max(size.value, 1), np.uint8)
            call(getattr(SOLVER, f"cusolverDn{letter * 2}{function}"), handle, *shape, x, m, *pivots, y, m, out, n, work, size,
                 ctypes.byref(iterations), info.array)
            info.right()
            return compare(out.get(), np.linalg.lstsq(a, b, rcond=None)[0])
        return case
    check(f"{letter}{letter}gesv {n}", refined("gesv"), 4 * near(dtype, n))
    check(f"{letter}{letter}gels {n}", refined("gels"), 4 * near(dtype, n))


def singular(letter, dtype, n):
    m, kind = n + 6, real(dtype)

    def gesvd():
        a = numbers((m, n), dtype)
        x, s, u, vt, info = Array(a, "F"), zeros(n, kind), zeros((m, m), dtype, "F"), zeros((n, n), dtype, "F"), Info()
        work, size = workspace(letter, "gesvd", dtype, m, n)
        run(letter, "gesvd", ctypes.c_char(b"A"), ctypes.c_char(b"A"), m, n, x, m, s, u, m, vt, n, work, size, zeros(n, kind), info.array)
        info.right()
        right = np.linalg.svd(a, compute_uv=False)
        return max(compare(s.get(), right), compare(u.get()[:, :n] * s.get() @ vt.get(), a), compare(transposed(u.get()) @ u.get(), np.eye(m)))
    check(f"{letter}gesvd {m}x{n}", gesvd, near(dtype, n))

    for economy in (0, 1):
        def gesvdj():
            a, settings = numbers((m, n), dtype), ctypes.c_void_p()
            call(SOLVER.cusolverDnCreateGesvdjInfo, ctypes.byref(settings))
            x, s, info = Array(a, "F"), zeros(n, kind), Info()
            u, v = zeros((m, n if economy else m), dtype, "F"), zeros((n, n), dtype, "F")
            work, size = jacobi_workspace(letter, "gesvdj", dtype, settings, VECTOR, economy, m, n, x, m, s, u, m, v, n)
            run(letter, "gesvdj", VECTOR, economy, m, n, x, m, s, u, m, v, n, work, size, info.array, settings)
            info.right()
            return max(compare(s.get(), np.linalg.svd(a, compute_uv=False)), compare(u.get()[:, :n] * s.get() @ transposed(v.get()), a))
        check(f"{letter}gesvdj {'economy ' if economy else ''}{m}x{n}", gesvdj, max(near(dtype, n), jacobi(dtype)))

    def polar():
        a = numbers((m, n), dtype)
        x, s, u, v, info = Array(a, "F"), zeros(n, kind), zeros((m, n), dtype, "F"), zeros((n, n), dtype, "F"), Info()
        long, device, host, error = ctypes.c_longlong, ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_double()
        code, plain = CUDA_TYPE[letter], CUDA_TYPE["S" if kind == np.float32 else "D"]
        arguments = (handle, params, VECTOR, 1, long(m), long(n), code, x, long(m), plain, s, code, u, long(m), code, v, long(n), code)
        call(SOLVER.cusolverDnXgesvdp_bufferSize, *arguments, ctypes.byref(device), ctypes.byref(host))
        call(SOLVER.cusolverDnXgesvdp, *arguments, zeros(max(device.value, 1), np.uint8), device, np.zeros(max(host.value, 1), np.uint8), host,
             info.array, ctypes.byref(error))
        info.right()
        return max(compare(s.get(), np.linalg.svd(a, compute_uv=False)), compare(u.get() * s.get() @ transposed(v.get()), a))
    check(f"{letter} Xgesvdp {m}x{n}", polar, 4 * near(dtype, n))


def jacobi_workspace(letter, function, dtype, settings, *arguments, count=()):
    size = ctypes.c_int()
    call(getattr(SOLVER, name_of(letter, function) + "_bufferSize"), handle, *arguments, ctypes.byref(size), settings, *count)
    return zeros(max(size.value, 1), dtype), size.value


def symmetric(letter, dtype, n):
    kind = real(dtype)
    for uplo, side in ((LOWER, "lower"), (UPPER, "upper")):
        def eigen(jacobi_way):
            def case():
                a = numbers((n, n), dtype)
                a = ((a + transposed(a)) / 2).astype(dtype)
                x, w, info, settings = Array(a, "F"), zeros(n, kind), Info(), ctypes.c_void_p()
                if jacobi_way:
                    call(SOLVER.cusolverDnCreateSyevjInfo, ctypes.byref(settings))
                    work, size = jacobi_workspace(letter, "syevj", dtype, settings, VECTOR, uplo, n, x, n, w)
                    run(letter, "syevj", VECTOR, uplo, n, x, n, w, work, size, info.array, settings)
                else:
                    work, size = workspace(letter, "syevd", dtype, VECTOR, uplo, n, x, n, w)
                    run(letter, "syevd", VECTOR, uplo, n, x, n, w, work, size, info.array)
                info.right()
                vectors = x.get()
                return max(compare(w.get(), np.linalg.eigvalsh(a)), compare(vectors * w.get() @ transposed(vectors), a),
                           compare(transposed(vectors) @ vectors, np.eye(n)))
            return case
        check(f"{letter}{'heevd' if letter in 'CZ' else 'syevd'} {side} {n}", eigen(False), near(dtype, n))
        check(f"{letter}{'heevj' if letter in 'CZ' else 'syevj'} {side} {n}", eigen(True), max(near(dtype, n), jacobi(dtype)))

    def some():
        a = numbers((n, n), dtype)
        a = ((a + transposed(a)) / 2).astype(dtype)
        x, w, info, found = Array(a, "F"), zeros(n, kind), Info(), ctypes.c_int()
        bound = (ctypes.c_float if kind == np.float32 else ctypes.c_double)(0)
        last = max(n // 2, 1)
        arguments = (VECTOR, 1002, LOWER, n, x, n, bound, bound, 1, last)  # CUSOLVER_EIG_RANGE_I
        work, size = workspace(letter, "syevdx", dtype, *arguments, ctypes.byref(found), w)
        run(letter, "syevdx", *arguments, ctypes.byref(found), w, work, size, info.array)
        info.right()
        vectors, values = x.get()[:, :last], w.get()[:last]
        return max(float(found.value != last), compare(values, np.linalg.eigvalsh(a)[:last]), compare(a @ vectors, vectors * values))
    check(f"{letter}{'heevdx' if letter in 'CZ' else 'syevdx'} {n}", some, 4 * near(dtype, n))

    def general():
        a, b = numbers((n, n), dtype), positive(n, dtype)
        a = ((a + transposed(a)) / 2).astype(dtype)
        x, y, w, info = Array(a, "F"), Array(b, "F"), zeros(n, kind), Info()
        work, size = workspace(letter, "sygvd", dtype, 1, VECTOR, LOWER, n, x, n, y, n, w)
        run(letter, "sygvd", 1, VECTOR, LOWER, n, x, n, y, n, w, work, size, info.array)
        info.right()
        return compare(a @ x.get(), b @ x.get() * w.get())
    check(f"{letter}{'hegvd' if letter in 'CZ' else 'sygvd'} {n}", general, 4 * near(dtype, n))

    def tridiagonal():
        a = numbers((n, n), dtype)
        a = ((a + transposed(a)) / 2).astype(dtype)
        x, d, e, tau, info = Array(a, "F"), zeros(n, kind), zeros(n, kind), zeros(n, dtype), Info()
        work, size = workspace(letter, "sytrd", dtype, LOWER, n, x, n, d, e, tau)
        run(letter, "sytrd", LOWER, n, x, n, d, e, tau, work, size, info.array)
        info.right()
        off = e.get()[:n - 1]
        return compare(np.linalg.eigvalsh(np.diag(d.get()) + np.diag(off, 1) + np.diag(off, -1)), np.linalg.eigvalsh(a))
    check(f"{letter}{'hetrd' if letter in 'CZ' else 'sytrd'} {n}", tridiagonal, near(dtype, n))

    def not_symmetric():
        a, long = numbers((n, n), dtype), ctypes.c_longlong
        wide = np.complex64 if kind == np.float32 else np.complex128
        code, wide_code = CUDA_TYPE[letter], CUDA_TYPE["C" if kind == np.float32 else "Z"]
        x, w, left, right, info = Array(a, "F"), zeros(n, wide), zeros((n, n), dtype), zeros((n, n), dtype, "F"), Info()
        device, host = ctypes.c_size_t(), ctypes.c_size_t()
        arguments = (handle, params, 0, VECTOR, long(n), code, x, long(n), wide_code, w, code, left, long(n), code, right, long(n), code)
        call(SOLVER.cusolverDnXgeev_bufferSize, *arguments, ctypes.byref(device), ctypes.byref(host))
        call(SOLVER.cusolverDnXgeev, *arguments, zeros(max(device.value, 1), np.uint8), device, np.zeros(max(host.value, 1), np.uint8), host,
             info.array)
        info.right()
        vectors, values = right.get().astype(np.complex128), w.get()
        if letter in "SD":  # a pair of conjugates has the real and the imaginary part in two columns
            first = np.flatnonzero(values.imag > 0)
            vectors[:, first], vectors[:, first + 1] = (vectors[:, first] + 1j * vectors[:, first + 1], vectors[:, first] - 1j * vectors[:, first + 1])
        return compare(a @ vectors, vectors * values)
    check(f"{letter} Xgeev {n}", not_symmetric, 4 * near(dtype, n))


def batched(letter, dtype):
    count, n, kind = 6, 12, real(dtype)

    def potrf(then):
        def case():
            a = positive(n, dtype, count)
            x, info = Array(columns(a)), Info(count)
            run(letter, "potrfBatched", LOWER, n, parts(x, count), n, info.array, count)
            info.right()
            factor = np.tril(columns(x.get()))
            if then == "potrfBatched":
                return compare(factor @ transposed(factor), a)
            b, last = numbers((count, n, 1), dtype), Info()
            y = Array(columns(b))
            run(letter, "potrsBatched", LOWER, n, 1, parts(x, count), n, parts(y, count), n, last.array, count)
            last.right()
            return compare(a @ columns(y.get().reshape(count, 1, n)), b)
        return case
    check(f"{letter}potrfBatched", potrf("potrfBatched"), near(dtype, n))
    check(f"{letter}potrsBatched", potrf("potrsBatched"), near(dtype, n))

    def gesvdj():
        a, settings = numbers((count, n, n), dtype), ctypes.c_void_p()
        call(SOLVER.cusolverDnCreateGesvdjInfo, ctypes.byref(settings))
        x, s, u, v, info = Array(columns(a)), zeros((count, n), kind), zeros(a.shape, dtype), zeros(a.shape, dtype), Info(count)
        work, size = jacobi_workspace(letter, "gesvdjBatched", dtype, settings, VECTOR, n, n, x, n, s, u, n, v, n, count=(count,))
        run(letter, "gesvdjBatched", VECTOR, n, n, x, n, s, u, n, v, n, work, size, info.array, settings, count)
        info.right()
        left, right = columns(u.get()), columns(v.get())
        return max(compare(s.get(), np.linalg.svd(a, compute_uv=False)), compare(left * s.get()[:, None] @ transposed(right), a))
    check(f"{letter}gesvdjBatched", gesvdj, jacobi(dtype))

    def gesvda():
        m, long = 20, ctypes.c_longlong
        a = numbers((count, m, n), dtype)
        x, s, u, v, info = (Array(columns(a)), zeros((count, n), kind), zeros((count, n, m), dtype), zeros((count, n, n), dtype), Info(count))
        arguments = (VECTOR, n, m, n, x, m, long(m * n), s, long(n), u, m, long(m * n), v, n, long(n * n))
        size = ctypes.c_int()
        call(getattr(SOLVER, f"cusolverDn{letter}gesvdaStridedBatched_bufferSize"), handle, *arguments, ctypes.byref(size), count)
        run(letter, "gesvdaStridedBatched", *arguments, zeros(max(size.value, 1), dtype), size.value, info.array, np.zeros(count), count)
        info.right()
        return max(compare(s.get(), np.linalg.svd(a, compute_uv=False)), compare(columns(u.get()) * s.get()[:, None] @ transposed(columns(v.get())), a))
    check(f"{letter}gesvdaStridedBatched", gesvda, 100 * near(dtype, n))

    def syev(modern):
        def case():
            a, settings, long = numbers((count, n, n), dtype), ctypes.c_void_p(), ctypes.c_longlong
            a = ((a + transposed(a)) / 2).astype(dtype)
            x, w, info = Array(columns(a)), zeros((count, n), kind), Info(count)
            if modern:
                device, host = ctypes.c_size_t(), ctypes.c_size_t()
                code, plain = CUDA_TYPE[letter], CUDA_TYPE["S" if kind == np.float32 else "D"]
                arguments = (handle, params, VECTOR, LOWER, long(n), code, x, long(n), plain, w, code)
                call(SOLVER.cusolverDnXsyevBatched_bufferSize, *arguments, ctypes.byref(device), ctypes.byref(host), long(count))
                call(SOLVER.cusolverDnXsyevBatched, *arguments, zeros(max(device.value, 1), np.uint8), device,
                     np.zeros(max(host.value, 1), np.uint8), host, info.array, long(count))
            else:
                call(SOLVER.cusolverDnCreateSyevjInfo, ctypes.byref(settings))
                work, size = jacobi_workspace(letter, "syevjBatched", dtype, settings, VECTOR, LOWER, n, x, n, w, count=(count,))
                run(letter, "syevjBatched", VECTOR, LOWER, n, x, n, w, work, size, info.array, settings, count)
            info.right()
            vectors = columns(x.get())
            return max(compare(w.get(), np.linalg.eigvalsh(a)), compare(vectors * w.get()[:, None] @ transposed(vectors), a))
        return case
    check(f"{letter}{'heevjBatched' if letter in 'CZ' else 'syevjBatched'}", syev(False), jacobi(dtype))
    check(f"{letter} XsyevBatched", syev(True), 4 * near(dtype, n))


def modern(letter, dtype, n, how):
    """Xpotrf and Xgetrf, on a stream or captured."""
    long, code = ctypes.c_longlong, CUDA_TYPE[letter]

    def case():
        a, info, stream = positive(n, dtype), Info(), new_stream()
        x, device, host = Array(a, "F"), ctypes.c_size_t(), ctypes.c_size_t()
        arguments = (handle, params, LOWER, long(n), code, x, long(n), code)
        call(SOLVER.cusolverDnXpotrf_bufferSize, *arguments, ctypes.byref(device), ctypes.byref(host))
        work, host_work = zeros(max(device.value, 1), np.uint8), np.zeros(max(host.value, 1), np.uint8)
        call(SOLVER.cusolverDnSetStream, handle, stream)
        try:
            def launch():
                call(SOLVER.cusolverDnXpotrf, *arguments, work, device, host_work, host, info.array)
            if how == "graph":
                captured(stream, launch)
            else:
                launch()
            info.right()
        finally:
            call(SOLVER.cusolverDnSetStream, handle, ctypes.c_void_p())
        return compare(np.tril(x.get()) @ transposed(np.tril(x.get())), a)
    check(f"{letter} Xpotrf {n} {'in a graph' if how == 'graph' else 'on a stream'}", case, near(dtype, n))


def sparse(letter, dtype):
    solver, descriptor = ctypes.c_void_p(), ctypes.c_void_p()
    call(SOLVER.cusolverSpCreate, ctypes.byref(solver))
    call(SPARSE.cusparseCreateMatDescr, ctypes.byref(descriptor))
    n = 80
    matrix = scipy.sparse.random(n, n, 0.05, random_state=4).toarray().astype(dtype)
    matrix = (matrix + matrix.T + 10 * np.eye(n)).astype(dtype)
    stored, b = scipy.sparse.csr_matrix(matrix), numbers(n, dtype)
    for function in ("qr", "chol"):
        def case():
            x, singular_at = zeros(n, dtype), ctypes.c_int()
            tolerance = (ctypes.c_float if real(dtype) == np.float32 else ctypes.c_double)(1e-7)
            call(getattr(SOLVER, f"cusolverSp{letter}csrlsv{function}"), solver, n, stored.nnz, descriptor, Array(stored.data),
                 Array(stored.indptr.astype(np.int32)), Array(stored.indices.astype(np.int32)), Array(b), tolerance, 0, x, ctypes.byref(singular_at))
            wait()
            return max(float(singular_at.value != -1), compare(matrix @ x.get(), b))
        check(f"{letter}csrlsv{function}", case, near(dtype, n))


for (letter, dtype), n in itertools.product(TYPES.items(), SIZES):
    linear(letter, dtype, n)
    if n < 100:
        singular(letter, dtype, n)
        symmetric(letter, dtype, n)
for letter, dtype in TYPES.items():
    batched(letter, dtype)
    sparse(letter, dtype)
    modern(letter, dtype, 70, "stream")
    modern(letter, dtype, 70, "graph")
