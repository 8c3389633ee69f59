# SPDX-License-Identifier: Apache-2.0
"""cuSPARSE against SciPy: products, solutions of triangular and tridiagonal systems, conversions, with indices of 32 and 64 bits.

Tolerances: a sum of n products is allowed n + 8 roundings of the type it is accumulated in and two of the result's type; conversions none."""
import ctypes
import itertools

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from gpu import (EPSILON, Array, Failure, call, captured, check, compare, from_bfloat16, load, new_stream, to_bfloat16, wait, zeros)

SPARSE = load("libcusparse.so.12")
random = np.random.default_rng(5)
handle = ctypes.c_void_p()
call(SPARSE.cusparseCreate, ctypes.byref(handle))
TYPES = {"S": np.float32, "D": np.float64, "C": np.complex64, "Z": np.complex128}
CUDA_TYPE = {"S": 0, "D": 1, "C": 4, "Z": 5}
INDEX = {np.int32: 2, np.int64: 3}
COLUMNS, ROWS = 1, 2
OPERATIONS = {"N": 0, "T": 1, "C": 2}
long = ctypes.c_longlong


def numbers(shape, dtype):
    values = random.standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * random.standard_normal(shape)
    return values.astype(dtype)


def some(m, n, dtype, density=0.08):
    matrix = scipy.sparse.random(m, n, density, format="csr", random_state=7)
    matrix.sort_indices()
    return scipy.sparse.csr_matrix((numbers(matrix.nnz, dtype), matrix.indices, matrix.indptr), shape=(m, n))


def roundings(dtype, count):
    return (count + 8) * EPSILON[np.dtype(dtype).name]


def operated(matrix, operation):
    return {"N": matrix, "T": matrix.T, "C": matrix.conj().T}[operation]


class Matrix:
    """A sparse matrix in device memory and its descriptor: csr, csc, coo."""

    def __init__(self, matrix, way, code, index=np.int32, encode=lambda v: v, base=0):
        stored = getattr(matrix, "to" + way)()
        if way == "coo":
            order = np.lexsort((stored.col, stored.row))
            first, second, values = stored.row[order], stored.col[order], stored.data[order]
        else:
            stored.sort_indices()
            first, second, values = stored.indptr, stored.indices, stored.data
        self.parts = [Array((first + base).astype(index)), Array((second + base).astype(index)), Array(encode(values))]
        self.pointer, (rows, columns), kinds = ctypes.c_void_p(), matrix.shape, (INDEX[index],) * (1 if way == "coo" else 2)
        call(getattr(SPARSE, f"cusparseCreate{way.capitalize()}"), ctypes.byref(self.pointer), long(rows), long(columns), long(stored.nnz),
             *self.parts, *kinds, base, code)

    def set(self, attribute, value):
        call(SPARSE.cusparseSpMatSetAttribute, self.pointer, attribute, np.int32(value), ctypes.c_size_t(4))

    def __del__(self):
        SPARSE.cusparseDestroySpMat(self.pointer)


def vector(array, code):
    pointer = ctypes.c_void_p()
    call(SPARSE.cusparseCreateDnVec, ctypes.byref(pointer), long(array.shape[0]), array, code)
    return pointer


def dense(array, code):
    """Of an Array: its order is the matrix's."""
    pointer, (rows, columns) = ctypes.c_void_p(), array.shape
    lead, order = (rows, COLUMNS) if array.order == "F" else (columns, ROWS)
    call(SPARSE.cusparseCreateDnMat, ctypes.byref(pointer), long(rows), long(columns), long(lead), array, code, order)
    return pointer


def with_buffer(function, *arguments):
    """The work space that FUNCTION_bufferSize asks for."""
    size = ctypes.c_size_t()
    call(getattr(SPARSE, f"{function}_bufferSize"), handle, *arguments, ctypes.byref(size))
    return zeros(max(size.value, 1), np.uint8)


def run(function, *arguments):
    call(getattr(SPARSE, function), handle, *arguments)


# ---- products ----

def spmv(letter, way, index, operation, algorithm=0, how="plain", base=0):
    def case():
        dtype, code, m, n = TYPES[letter], CUDA_TYPE[letter], 150, 110
        matrix = some(m, n, dtype)
        right_matrix = operated(matrix, operation)
        x, y, alpha, beta = numbers(right_matrix.shape[1], dtype), numbers(right_matrix.shape[0], dtype), dtype(1.5), dtype(-0.5)
        a, given, result = Matrix(matrix, way, code, index, base=base), Array(x), Array(y)
        arguments = (OPERATIONS[operation], alpha, a.pointer, vector(given, code), beta, vector(result, code), code, algorithm)
        work = with_buffer("cusparseSpMV", *arguments)
        stream = ctypes.c_void_p() if how == "plain" else new_stream()
        call(SPARSE.cusparseSetStream, handle, stream)
        try:
            if how == "graph":
                captured(stream, lambda: run("cusparseSpMV", *arguments, work))
            else:
                run("cusparseSpMV", *arguments, work)
            wait()
        finally:
            call(SPARSE.cusparseSetStream, handle, ctypes.c_void_p())
        return compare(result.get(), alpha * (right_matrix @ x) + beta * y)
    return case


def spmm(letter, way, index, operation, other, orders, algorithm=0):
    def case():
        dtype, code, m, k, n = TYPES[letter], CUDA_TYPE[letter], 90, 70, 24
        matrix = some(m, k, dtype)
        left = operated(matrix, operation)
        b = numbers((left.shape[1], n) if other == "N" else (n, left.shape[1]), dtype)
        c, alpha, beta = numbers((left.shape[0], n), dtype), dtype(1.5), dtype(-0.5)
        a, given, result = Matrix(matrix, way, code, index), Array(b, orders[0]), Array(c, orders[1])
        arguments = (OPERATIONS[operation], OPERATIONS[other], alpha, a.pointer, dense(given, code), beta, dense(result, code), code, algorithm)
        work = with_buffer("cusparseSpMM", *arguments)
        run("cusparseSpMM", *arguments, work)
        wait()
        return compare(result.get(), alpha * (left @ operated(b, other)) + beta * c)
    return case


def spgemm(letter, algorithm):
    def case():
        dtype, code, alpha, beta = TYPES[letter], CUDA_TYPE[letter], TYPES[letter](1.5), TYPES[letter](0)
        left, right = some(80, 60, dtype), some(60, 90, dtype)
        a, b = Matrix(left, "csr", code), Matrix(right, "csr", code)
        offsets, descriptor, c = zeros(81, np.int32), ctypes.c_void_p(), ctypes.c_void_p()
        none = ctypes.c_void_p()
        call(SPARSE.cusparseCreateCsr, ctypes.byref(c), long(80), long(90), long(0), offsets, none, none, 2, 2, 0, code)
        call(SPARSE.cusparseSpGEMM_createDescr, ctypes.byref(descriptor))
        arguments = (0, 0, alpha, a.pointer, b.pointer, beta, c, code, algorithm, descriptor)
        kept = []
        for step in ("workEstimation", "estimateMemory", "compute") if algorithm in (4, 5) else ("workEstimation", "compute"):
            size, other = ctypes.c_size_t(), ctypes.c_size_t()
            function = f"cusparseSpGEMM_{step}"
            if step == "estimateMemory":
                run(function, *arguments, ctypes.c_float(0.2), ctypes.byref(size), none, none)
                kept.append(zeros(max(size.value, 1), np.uint8))
                run(function, *arguments, ctypes.c_float(0.2), ctypes.byref(size), kept[-1], ctypes.byref(other))
                kept.append(zeros(max(other.value, 1), np.uint8))
                continue
            if step == "compute" and algorithm in (4, 5):
                size.value = kept[-1].bytes
                run(function, *arguments, ctypes.byref(size), kept[-1])
                continue
            run(function, *arguments, ctypes.byref(size), none)
            kept.append(zeros(max(size.value, 1), np.uint8))
            run(function, *arguments, ctypes.byref(size), kept[-1])
        rows, columns, count = (ctypes.c_longlong() for _ in range(3))
        call(SPARSE.cusparseSpMatGetSize, c, ctypes.byref(rows), ctypes.byref(columns), ctypes.byref(count))
        indices, values = zeros(count.value, np.int32), zeros(count.value, dtype)
        call(SPARSE.cusparseCsrSetPointers, c, offsets, indices, values)
        run("cusparseSpGEMM_copy", *arguments)
        wait()
        result = scipy.sparse.csr_matrix((values.get(), indices.get(), offsets.get()), shape=(80, 90))
        return compare(result.toarray(), alpha * (left @ right).toarray())
    return case


def sddmm(letter, way, orders):
    def case():
        dtype, code, alpha, beta = TYPES[letter], CUDA_TYPE[letter], TYPES[letter](1.5), TYPES[letter](-0.5)
        pattern, k = some(60, 50, dtype), 32
        x, y = numbers((60, k), dtype), numbers((k, 50), dtype)
        c, left, right = Matrix(pattern, way, code), Array(x, orders[0]), Array(y, orders[1])
        arguments = (0, 0, alpha, dense(left, code), dense(right, code), beta, c.pointer, code, 0)
        work = with_buffer("cusparseSDDMM", *arguments)
        run("cusparseSDDMM", *arguments, work)
        wait()
        rows, columns = pattern.tocoo().row, pattern.tocoo().col
        return compare(c.parts[2].get(), alpha * (x @ y)[rows, columns] + beta * pattern.data)
    return case


def solve(letter, way, operation, fill, unit, sides):
    """SpSV with one right side, SpSM with more."""
    def case():
        dtype, code, n, alpha = TYPES[letter], CUDA_TYPE[letter], 96, TYPES[letter](1.5)
        matrix = some(n, n, dtype, 0.1) / 4 + scipy.sparse.eye(n, dtype=dtype) * (1 if unit else 3)
        matrix = scipy.sparse.csr_matrix((scipy.sparse.tril if fill == 0 else scipy.sparse.triu)(matrix), dtype=dtype)
        if unit:
            matrix.setdiag(1)
        b = numbers((n, sides) if sides > 1 else n, dtype)
        a, given, result = Matrix(matrix, way, code), Array(b, "F"), zeros(b.shape, dtype, "F")
        a.set(0, fill)  # CUSPARSE_SPMAT_FILL_MODE
        a.set(1, unit)  # CUSPARSE_SPMAT_DIAG_TYPE
        name, descriptor = ("SpSM", ctypes.c_void_p()) if sides > 1 else ("SpSV", ctypes.c_void_p())
        make = dense if sides > 1 else vector
        call(getattr(SPARSE, f"cusparse{name}_createDescr"), ctypes.byref(descriptor))
        arguments = (OPERATIONS[operation],) + ((0,) if sides > 1 else ()) + (alpha, a.pointer, make(given, code), make(result, code), code, 0,
                                                                              descriptor)
        work = with_buffer(f"cusparse{name}", *arguments)
        run(f"cusparse{name}_analysis", *arguments, work)
        run(f"cusparse{name}_solve", *arguments)
        wait()
        return compare(operated(matrix, operation) @ result.get(), alpha * b)
    return case


# ---- conversions ----

def to_dense(letter, way, order):
    def case():
        matrix, code = some(70, 40, TYPES[letter]), CUDA_TYPE[letter]
        a, result = Matrix(matrix, way, code), zeros((70, 40), TYPES[letter], order)
        arguments = (a.pointer, dense(result, code), 0)
        run("cusparseSparseToDense", *arguments, with_buffer("cusparseSparseToDense", *arguments))
        wait()
        return compare(result.get(), matrix.toarray())
    return case


def from_dense(letter, way, order):
    def case():
        matrix, dtype, code = some(70, 40, TYPES[letter]), TYPES[letter], CUDA_TYPE[letter]
        given, sparse, none = Array(matrix.toarray(), order), ctypes.c_void_p(), ctypes.c_void_p()
        offsets = zeros((40 if way == "csc" else 70) + 1, np.int32)
        create = getattr(SPARSE, f"cusparseCreate{way.capitalize()}")
        if way == "coo":
            call(create, ctypes.byref(sparse), long(70), long(40), long(0), none, none, none, 2, 0, code)
        else:
            call(create, ctypes.byref(sparse), long(70), long(40), long(0), offsets, none, none, 2, 2, 0, code)
        arguments = (dense(given, code), sparse, 0)
        work = with_buffer("cusparseDenseToSparse", *arguments)
        run("cusparseDenseToSparse_analysis", *arguments, work)
        rows, columns, count = (ctypes.c_longlong() for _ in range(3))
        call(SPARSE.cusparseSpMatGetSize, sparse, ctypes.byref(rows), ctypes.byref(columns), ctypes.byref(count))
        first = zeros(count.value, np.int32) if way == "coo" else offsets
        second, values = zeros(count.value, np.int32), zeros(count.value, dtype)
        call(getattr(SPARSE, f"cusparse{way.capitalize()}SetPointers"), sparse, first, second, values)
        run("cusparseDenseToSparse_convert", *arguments, work)
        wait()
        if way == "coo":
            made = scipy.sparse.coo_matrix((values.get(), (first.get(), second.get())), shape=(70, 40))
        else:
            made = getattr(scipy.sparse, f"{way}_matrix")((values.get(), second.get(), first.get()), shape=(70, 40))
        return max(float(count.value != matrix.nnz), compare(made.toarray(), matrix.toarray()))
    return case


def csr_to_csc(letter):
    def case():
        matrix, dtype, code = some(70, 40, TYPES[letter]), TYPES[letter], CUDA_TYPE[letter]
        given = [Array(matrix.data), Array(matrix.indptr.astype(np.int32)), Array(matrix.indices.astype(np.int32))]
        made = [zeros(matrix.nnz, dtype), zeros(41, np.int32), zeros(matrix.nnz, np.int32)]
        arguments = (70, 40, matrix.nnz, *given, *made, code, 1, 0, 1)
        run("cusparseCsr2cscEx2", *arguments, with_buffer("cusparseCsr2cscEx2", *arguments))
        wait()
        right = matrix.tocsc()
        return max(compare(ours.get(), want) for ours, want in zip(made, (right.data, right.indptr, right.indices)))
    return case


def rows_to_offsets():
    matrix = some(70, 40, np.float32).tocoo()
    offsets, rows = zeros(71, np.int32), zeros(matrix.nnz, np.int32)
    run("cusparseXcoo2csr", Array(np.sort(matrix.row).astype(np.int32)), matrix.nnz, 70, offsets, 0)
    run("cusparseXcsr2coo", offsets, matrix.nnz, 70, rows, 0)
    wait()
    return max(compare(offsets.get(), matrix.tocsr().indptr), compare(rows.get(), np.sort(matrix.row)))


def sorted_coo():
    matrix = some(70, 40, np.float32).tocoo()
    order = random.permutation(matrix.nnz)
    rows, columns, size = Array(matrix.row[order].astype(np.int32)), Array(matrix.col[order].astype(np.int32)), ctypes.c_size_t()
    places = Array(np.arange(matrix.nnz, dtype=np.int32))
    call(SPARSE.cusparseXcoosort_bufferSizeExt, handle, 70, 40, matrix.nnz, rows, columns, ctypes.byref(size))
    run("cusparseXcoosortByRow", 70, 40, matrix.nnz, rows, columns, places, zeros(max(size.value, 1), np.uint8))
    wait()
    right = np.lexsort((matrix.col, matrix.row))
    return max(compare(rows.get(), matrix.row[right]), compare(columns.get(), matrix.col[right]), compare(order[places.get()], right))


# ---- sparse vectors, tridiagonal systems, incomplete factors ----

def sparse_vector(letter, what):
    def case():
        dtype, code, n, count = TYPES[letter], CUDA_TYPE[letter], 200, 40
        places = np.sort(random.choice(n, count, False)).astype(np.int32)
        x, y, alpha, beta = numbers(count, dtype), numbers(n, dtype), dtype(1.5), dtype(-0.5)
        indices, values, whole, pointer = Array(places), Array(x), Array(y), ctypes.c_void_p()
        call(SPARSE.cusparseCreateSpVec, ctypes.byref(pointer), long(n), long(count), indices, values, 2, 0, code)
        target, right = vector(whole, code), y.copy()
        if what == "Axpby":
            run("cusparseAxpby", alpha, pointer, beta, target)
            right = beta * y
            right[places] += alpha * x
        elif what == "Gather":
            run("cusparseGather", target, pointer)
            wait()
            return compare(values.get(), y[places])
        elif what == "Scatter":
            run("cusparseScatter", pointer, target)
            right[places] = x
        else:
            result = np.zeros((), dtype)
            arguments = (0, pointer, target, result, code)
            run("cusparseSpVV", *arguments, with_buffer("cusparseSpVV", *arguments))
            wait()
            scale = max(float((abs(x) * abs(y[places])).sum()), 1e-30)
            return float(abs(result - (x @ y[places]))) / scale
        wait()
        return compare(whole.get(), right)
    return case


def tridiagonal(letter, function, n, sides):
    def case():
        dtype = TYPES[letter]
        below, middle, above = numbers(n, dtype), numbers(n, dtype) + dtype(8), numbers(n, dtype)
        below[0] = above[-1] = 0
        b = numbers((n, sides), dtype)
        given, result, size = [Array(one) for one in (below, middle, above)], Array(b, "F"), ctypes.c_size_t()
        call(getattr(SPARSE, f"cusparse{letter}{function}_bufferSizeExt"), handle, n, sides, *given, result, n, ctypes.byref(size))
        run(f"cusparse{letter}{function}", n, sides, *given, result, n, zeros(max(size.value, 1), np.uint8))
        wait()
        matrix = np.diag(middle) + np.diag(below[1:], -1) + np.diag(above[:-1], 1)
        return compare(matrix @ result.get(), b)
    return case


def tridiagonal_batch(letter):
    def case():
        dtype, n, count = TYPES[letter], 64, 5
        below, middle, above, b = (numbers((count, n), dtype) for _ in range(4))
        middle += dtype(8)
        below[:, 0] = above[:, -1] = 0
        given, result, size = [Array(one) for one in (below, middle, above)], Array(b), ctypes.c_size_t()
        call(getattr(SPARSE, f"cusparse{letter}gtsv2StridedBatch_bufferSizeExt"), handle, n, *given, result, count, n, ctypes.byref(size))
        run(f"cusparse{letter}gtsv2StridedBatch", n, *given, result, count, n, zeros(max(size.value, 1), np.uint8))
        wait()
        return max(compare((np.diag(middle[i]) + np.diag(below[i, 1:], -1) + np.diag(above[i, :-1], 1)) @ result.get()[i], b[i])
                   for i in range(count))
    return case


def incomplete(letter, function):
    """On a matrix whose factors fill nothing (tridiagonal) the incomplete factors are the factors."""
    def case():
        dtype, n = TYPES[letter], 60
        off = numbers(n - 1, dtype)
        matrix = scipy.sparse.csr_matrix(scipy.sparse.diags([np.conj(off), np.full(n, 6, dtype), off], [-1, 0, 1]), dtype=dtype)
        values, offsets, indices = Array(matrix.data), Array(matrix.indptr.astype(np.int32)), Array(matrix.indices.astype(np.int32))
        info, descriptor, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
        call(getattr(SPARSE, f"cusparseCreate{function.capitalize()}Info"), ctypes.byref(info))
        call(SPARSE.cusparseCreateMatDescr, ctypes.byref(descriptor))
        arguments = (n, matrix.nnz, descriptor, values, offsets, indices, info)
        name = f"cusparse{letter}{function}"
        call(getattr(SPARSE, name + "_bufferSize"), handle, *arguments, ctypes.byref(size))
        work = zeros(max(size.value, 1), np.uint8)
        run(name + "_analysis", *arguments, 1, work)
        run(name, *arguments, 1, work)
        wait()
        factors = scipy.sparse.csr_matrix((values.get(), matrix.indices, matrix.indptr)).toarray()
        if function == "csrilu02":
            return compare((np.tril(factors, -1) + np.eye(n)) @ np.triu(factors), matrix.toarray())
        return compare(np.tril(factors) @ np.tril(factors).conj().T, matrix.toarray())
    return case


def sum_of_two(letter):
    def case():
        dtype, m, n = TYPES[letter], 50, 40
        a, b, alpha, beta = some(m, n, dtype), some(m, n, dtype, 0.15), dtype(1.5), dtype(-0.5)
        descriptor, size, count = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_int()
        call(SPARSE.cusparseCreateMatDescr, ctypes.byref(descriptor))
        x, y = ((descriptor, one.nnz, Array(one.data), Array(one.indptr.astype(np.int32)), Array(one.indices.astype(np.int32))) for one in (a, b))
        offsets, none = zeros(m + 1, np.int32), ctypes.c_void_p()
        call(getattr(SPARSE, f"cusparse{letter}csrgeam2_bufferSizeExt"), handle, m, n, alpha, *x, beta, *y, descriptor, none, offsets, none,
             ctypes.byref(size))
        work = zeros(max(size.value, 1), np.uint8)
        run("cusparseXcsrgeam2Nnz", m, n, descriptor, x[1], *x[3:], descriptor, y[1], *y[3:], descriptor, offsets, ctypes.byref(count), work)
        values, indices = zeros(count.value, dtype), zeros(count.value, np.int32)
        run(f"cusparse{letter}csrgeam2", m, n, alpha, *x, beta, *y, descriptor, values, offsets, indices, work)
        wait()
        made = scipy.sparse.csr_matrix((values.get(), indices.get(), offsets.get()), shape=(m, n))
        return compare(made.toarray(), (alpha * a + beta * b).toarray())
    return case


for letter, dtype in TYPES.items():
    operations = "NTC" if letter in "CZ" else "NT"
    for way, (index, bits), operation in itertools.product(("csr", "csc", "coo"), ((np.int32, 32), (np.int64, 64)), operations):
        check(f"{letter} SpMV {way} {operation} index {bits}", spmv(letter, way, index, operation), roundings(dtype, 30))
    for name, way, algorithm in (("CSR_ALG1", "csr", 2), ("CSR_ALG2", "csr", 3), ("COO_ALG1", "coo", 1), ("COO_ALG2", "coo", 4)):
        check(f"{letter} SpMV {name}", spmv(letter, way, np.int32, "N", algorithm), roundings(dtype, 30))
    check(f"{letter} SpMV csr from 1", spmv(letter, "csr", np.int32, "N", base=1), roundings(dtype, 30))
    check(f"{letter} SpMV on a stream", spmv(letter, "csr", np.int32, "N", how="stream"), roundings(dtype, 30))
    check(f"{letter} SpMV in a graph", spmv(letter, "csr", np.int32, "N", how="graph"), roundings(dtype, 30))
    for way, operation, other, orders in itertools.product(("csr", "csc", "coo"), operations, "NT", ("FF", "CC")):
        order = {"FF": "columns", "CC": "rows"}[orders]
        check(f"{letter} SpMM {way} {operation}{other} {order}", spmm(letter, way, np.int32, operation, other, orders), roundings(dtype, 30))
    for name, way, algorithm, orders in (("CSR_ALG1", "csr", 4, "FF"), ("CSR_ALG2", "csr", 6, "CC"), ("CSR_ALG3", "csr", 12, "FF"),
                                         ("COO_ALG1", "coo", 1, "FF"), ("COO_ALG2", "coo", 2, "FF"), ("COO_ALG3", "coo", 3, "FF"),
                                         ("COO_ALG4", "coo", 5, "CC")):
        check(f"{letter} SpMM {name}", spmm(letter, way, np.int32, "N", "N", orders, algorithm), roundings(dtype, 30))
    for algorithm in (0, 3, 4, 5):
        check(f"{letter} SpGEMM algorithm {algorithm}", spgemm(letter, algorithm), roundings(dtype, 30))
    for way, orders in itertools.product(("csr",), ("FF", "CC", "CF", "FC")):
        check(f"{letter} SDDMM {way} {orders}", sddmm(letter, way, orders), roundings(dtype, 40))
    for way, operation, fill, unit, sides in itertools.product(("csr", "coo"), operations, (0, 1), (0, 1), (1, 5)):
        name = f"{'lower' if fill == 0 else 'upper'}{' unit' if unit else ''}"
        check(f"{letter} {'SpSM' if sides > 1 else 'SpSV'} {way} {operation} {name}", solve(letter, way, operation, fill, unit, sides),
              8 * roundings(dtype, 30))
    for way, order in itertools.product(("csr", "csc", "coo"), "FC"):
        name = "columns" if order == "F" else "rows"
        check(f"{letter} {way} to dense by {name}", to_dense(letter, way, order), 0)
        check(f"{letter} dense by {name} to {way}", from_dense(letter, way, order), 0)
    check(f"{letter} CSR to CSC", csr_to_csc(letter), 0)
    for what in ("Axpby", "Gather", "Scatter", "SpVV"):
        check(f"{letter} {what}", sparse_vector(letter, what), 0 if what in ("Gather", "Scatter") else roundings(dtype, 40))
    for n, sides in ((3, 1), (64, 3), (500, 2)):
        check(f"{letter}gtsv2 {n}x{sides}", tridiagonal(letter, "gtsv2", n, sides), 8 * roundings(dtype, 10))
        check(f"{letter}gtsv2_nopivot {n}x{sides}", tridiagonal(letter, "gtsv2_nopivot", n, sides), 8 * roundings(dtype, 10))
    check(f"{letter}gtsv2StridedBatch", tridiagonal_batch(letter), 8 * roundings(dtype, 10))
    check(f"{letter}csrilu02", incomplete(letter, "csrilu02"), 8 * roundings(dtype, 10))
    check(f"{letter}csric02", incomplete(letter, "csric02"), 8 * roundings(dtype, 10))
    check(f"{letter}csrgeam2", sum_of_two(letter), roundings(dtype, 2))
check("Xcoo2csr Xcsr2coo", rows_to_offsets, 0)
check("XcoosortByRow", sorted_coo, 0)


# ---- types that are computed in single precision ----

MIXED = {"half": (2, lambda v: v.astype(np.float16), lambda v: v.astype(np.float64), "float16"),
         "bfloat16": (14, to_bfloat16, from_bfloat16, "bfloat16")}
for kind, (code, encode, decode, rounding) in MIXED.items():
    def product(sides):
        def case():
            matrix = some(120, 90, np.float32)
            exact = scipy.sparse.csr_matrix((decode(encode(matrix.data)), matrix.indices, matrix.indptr), shape=matrix.shape)
            a, x = Matrix(matrix, "csr", code, encode=encode), encode(numbers((90, sides) if sides > 1 else 90, np.float32))
            given, result = Array(x, "F"), zeros((120, sides) if sides > 1 else 120, x.dtype, "F")
            if sides > 1:
                arguments = (0, 0, np.float32(1), a.pointer, dense(given, code), np.float32(0), dense(result, code), 0, 0)
                run("cusparseSpMM", *arguments, with_buffer("cusparseSpMM", *arguments))
            else:
                arguments = (0, np.float32(1), a.pointer, vector(given, code), np.float32(0), vector(result, code), 0, 0)
                run("cusparseSpMV", *arguments, with_buffer("cusparseSpMV", *arguments))
            wait()
            return compare(decode(result.get()), exact @ decode(x))
        return case
    check(f"{kind} SpMV csr", product(1), 2 * EPSILON[rounding])
    check(f"{kind} SpMM csr", product(16), 2 * EPSILON[rounding])
