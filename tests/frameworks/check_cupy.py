# SPDX-License-Identifier: Apache-2.0
"""CuPy, and through it NVRTC, CUB, Thrust, cuBLAS, cuSOLVER, cuSPARSE, cuRAND and farfault's cuFFT, against NumPy and SciPy."""
import cupy as cp
import cupyx.scipy.sparse as gpu_sparse
import numpy as np
import scipy.sparse as sparse

from check import check

random = np.random.default_rng(1)
A, B = random.standard_normal((2, 64, 64))
POSITIVE = A @ A.T + 64 * np.eye(64)
M = sparse.random(200, 200, 0.05, format="csr", random_state=1)
V = random.standard_normal(200)


def near(ours, right, tolerance=1e-6):
    return np.allclose(cp.asnumpy(ours), right, rtol=tolerance, atol=tolerance)


def of(array):
    return cp.asarray(array)


check("elementwise", lambda: near(of(A) * 2 + cp.sin(of(B)), A * 2 + np.sin(B)))
check("sum", lambda: near(of(A).sum(), A.sum()))
check("sum of rows", lambda: near(of(A).sum(axis=1), A.sum(axis=1)))
check("argmax", lambda: near(of(A).argmax(axis=0), A.argmax(axis=0)))
check("cumsum", lambda: near(cp.cumsum(of(A)), np.cumsum(A)))
check("sort", lambda: near(cp.sort(of(A), axis=1), np.sort(A, axis=1)))
check("argsort", lambda: near(cp.argsort(of(V)), np.argsort(V)))
check("unique", lambda: near(cp.unique(of((A * 4).astype(int))), np.unique((A * 4).astype(int))))

TOLERANCES = {"float16": 5e-2, "float32": 1e-3, "float64": 1e-9, "complex64": 1e-3, "complex128": 1e-9}
for name, tolerance in TOLERANCES.items():
    a, b = A.astype(name), B.astype(name)
    check(f"cublas gemm {name}", lambda: near(of(a) @ of(b), a @ b, tolerance))
    check(f"cublas gemm {name} transposed", lambda: near(of(a).T @ of(b).T, a.T @ b.T, tolerance))
for rows, inner, columns in ((1, 1, 1), (7, 3, 5), (33, 65, 17), (128, 1, 128), (200, 100, 50)):
    a, b = random.standard_normal((rows, inner)), random.standard_normal((inner, columns))
    check(f"cublas gemm {rows}x{inner}x{columns}", lambda: near(of(a) @ of(b), a @ b))
a, b = random.standard_normal((5, 20, 30)), random.standard_normal((5, 30, 10))
check("cublas gemm batched", lambda: near(cp.matmul(of(a), of(b)), np.matmul(a, b)))
check("cublas gemv", lambda: near(of(A) @ of(V[:64]), A @ V[:64]))
check("cublas dot", lambda: near(cp.dot(of(V), of(V)), V @ V))
check("cublas nrm2", lambda: near(cp.linalg.norm(of(V)), np.linalg.norm(V)))

check("cusolver LU", lambda: near(cp.linalg.solve(of(A), of(B)), np.linalg.solve(A, B)))
check("cusolver inverse", lambda: near(cp.linalg.inv(of(A)), np.linalg.inv(A)))
check("cusolver determinant", lambda: near(cp.linalg.det(of(A)), np.linalg.det(A)))
check("cusolver Cholesky", lambda: near(cp.linalg.cholesky(of(POSITIVE)), np.linalg.cholesky(POSITIVE)))
check("cusolver eigenvalues", lambda: near(cp.linalg.eigvalsh(of(POSITIVE)), np.linalg.eigvalsh(POSITIVE)))
check("cusolver singular values", lambda: near(cp.linalg.svd(of(A), compute_uv=False), np.linalg.svd(A, compute_uv=False)))
check("cusolver QR", lambda: near(abs(cp.linalg.qr(of(A))[1]), abs(np.linalg.qr(A)[1])))
check("cusolver least squares", lambda: near(cp.linalg.lstsq(of(A[:, :20]), of(B))[0], np.linalg.lstsq(A[:, :20], B)[0]))

check("cusparse SpMV", lambda: near(gpu_sparse.csr_matrix(M) @ of(V), M @ V))
check("cusparse SpMM", lambda: near(gpu_sparse.csr_matrix(M) @ of(np.ones((200, 8))), M @ np.ones((200, 8))))
check("cusparse SpGEMM", lambda: near((gpu_sparse.csr_matrix(M) @ gpu_sparse.csr_matrix(M)).todense(), (M @ M).todense()))
check("cusparse CSR to CSC", lambda: near(gpu_sparse.csr_matrix(M).tocsc().todense(), M.todense()))
check("cusparse COO", lambda: near(gpu_sparse.coo_matrix(M.tocoo()).tocsr().todense(), M.todense()))


def moments(numbers, mean, deviation):
    return abs(float(numbers.mean()) - mean) < 0.02 and abs(float(numbers.std()) - deviation) < 0.02


for generator in ("XORWOW", "MRG32k3a", "Philox4x3210"):
    check(f"device generator {generator}", lambda: moments(
        cp.random.Generator(getattr(cp.random, generator)(3)).standard_normal(20000), 0, 1))
for method in (cp.cuda.curand.CURAND_RNG_PSEUDO_XORWOW, cp.cuda.curand.CURAND_RNG_PSEUDO_MRG32K3A,
               cp.cuda.curand.CURAND_RNG_PSEUDO_PHILOX4_32_10):
    check(f"curand {method} uniform", lambda: moments(cp.random.RandomState(5, method).uniform(size=20000), 0.5, 12 ** -0.5))
    check(f"curand {method} normal", lambda: moments(cp.random.RandomState(5, method).normal(size=20000), 0, 1))

check("cufft 1D", lambda: near(cp.fft.fft(of(A)), np.fft.fft(A)))


def same_transforms(names, arrays, **options):
    """Each function of numpy.fft of each array, in single and in double precision."""
    return all(
        relative(getattr(cp.fft, name)(of(array.astype(kind)), **options), getattr(np.fft, name)(array.astype(kind), **options)) < bound
        for name in names for array in arrays for kind, bound in KINDS[array.dtype.kind])


def relative(ours, right):
    return np.linalg.norm(cp.asnumpy(ours) - right) / np.linalg.norm(right)


KINDS = {"c": (("complex64", 1e-6), ("complex128", 1e-14)), "f": (("float32", 1e-6), ("float64", 1e-14))}
REAL = [random.standard_normal((2, n)) for n in (2, 3, 8, 15, 60, 101, 128, 1000)]
COMPLEX = [random.standard_normal((2, n)) + 1j * random.standard_normal((2, n)) for n in (1, 2, 3, 8, 15, 60, 101, 128, 1000, 5000)]
VOLUME = random.standard_normal((3, 10, 12, 7)) + 1j * random.standard_normal((3, 10, 12, 7))

check("cufft fft, ifft", lambda: same_transforms(("fft", "ifft"), COMPLEX))
check("cufft rfft", lambda: same_transforms(("rfft",), REAL))
check("cufft irfft", lambda: same_transforms(("irfft",), COMPLEX[1:]))
check("cufft irfft, odd", lambda: same_transforms(("irfft",), [COMPLEX[3]], n=15))
check("cufft hfft, ihfft", lambda: same_transforms(("hfft",), COMPLEX[1:]) and same_transforms(("ihfft",), REAL))
check("cufft other axis", lambda: same_transforms(("fft", "ifft"), [VOLUME], axis=1))
check("cufft fft2, ifft2", lambda: same_transforms(("fft2", "ifft2"), [VOLUME]))
check("cufft fftn, ifftn", lambda: same_transforms(("fftn", "ifftn"), [VOLUME], axes=(1, 2, 3)))
check("cufft fftn of some axes", lambda: same_transforms(("fftn", "ifftn"), [VOLUME], axes=(0, 2)))
check("cufft rfft2, rfftn", lambda: same_transforms(("rfft2", "rfftn"), [VOLUME.real.copy()], axes=(1, 3)))
check("cufft irfft2, irfftn", lambda: same_transforms(("irfft2", "irfftn"), [VOLUME], axes=(1, 2)))
check("cufft padded and cut", lambda: same_transforms(("fft",), COMPLEX[3:], n=37))


def overwritten():
    from cupyx.scipy import fft
    ours = of(COMPLEX[8])
    return near(fft.ifft(fft.fft(ours, overwrite_x=True), overwrite_x=True), COMPLEX[8])


def planned():
    from cupyx.scipy import fft
    ours = of(VOLUME)
    with fft.get_fft_plan(ours, axes=(1, 2, 3)):
        return near(cp.fft.fftn(ours, axes=(1, 2, 3)), np.fft.fftn(VOLUME, axes=(1, 2, 3)))


check("cufft overwrite_x", overwritten)
check("cufft plan", planned)


def raw_kernel():
    kernel = cp.RawKernel('extern "C" __global__ void twice(double *x) { x[threadIdx.x] *= 2; }', "twice")
    numbers = cp.arange(64, dtype=cp.float64)
    kernel((1,), (64,), (numbers,))
    return near(numbers, np.arange(64) * 2)


def graph():
    stream, numbers = cp.cuda.Stream(non_blocking=True), cp.ones(100)
    numbers * 1  # compiled before the capture
    with stream:
        stream.begin_capture()
        numbers *= 3
        captured = stream.end_capture()
        captured.launch()
        captured.launch()
        stream.synchronize()
    return near(numbers, np.full(100, 9.0))


check("RawKernel", raw_kernel)
check("graph", graph)
check("pinned memory", lambda: np.array_equal(cp.asnumpy(of(V), stream=cp.cuda.Stream()), V))
