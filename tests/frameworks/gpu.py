# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's libraries by ctypes: device memory, calls that raise, streams and graphs, and a line per check with the error it had.

A check is one case: a call of a library and what its result is compared with. `compare` gives the largest error, relative to the
largest magnitude in the reference; the tolerance is that of the type (`EPSILON`) times the number of roundings the case states."""
import ctypes
import glob
import os
import sys
import time

import numpy as np

FOLDER = os.path.join(sys.prefix, "lib", f"python{sys.version_info.major}.{sys.version_info.minor}", "site-packages", "nvidia")
# The unit roundoff of a type; TF32 and fp8 have no NumPy type: their values are kept in float32.
EPSILON = {"float64": 2.0 ** -53, "float32": 2.0 ** -24, "tf32": 2.0 ** -11, "float16": 2.0 ** -11, "bfloat16": 2.0 ** -8,
           "e4m3": 2.0 ** -4, "e5m2": 2.0 ** -3, "complex128": 2.0 ** -53, "complex64": 2.0 ** -24}


class Failure(Exception):
    pass


def load(name):
    """The library NAME of the packages in this environment, or of the loader's folders."""
    found = sorted(glob.glob(os.path.join(FOLDER, "*", "lib", name)))
    return ctypes.CDLL(found[0] if found else name, mode=ctypes.RTLD_GLOBAL)


_runtime = ctypes.CDLL("libcudart.so.13", mode=ctypes.RTLD_GLOBAL)


def convert(argument):
    """A NumPy array or number goes by address, an int as int, a device array by its address there."""
    if isinstance(argument, Array):
        return ctypes.c_void_p(argument.address)
    if isinstance(argument, (np.ndarray, np.generic)):
        kept = np.asarray(argument)
        pointer = ctypes.c_void_p(kept.ctypes.data)
        pointer.kept = kept
        return pointer
    if isinstance(argument, int):
        return ctypes.c_int(argument) if -2 ** 31 <= argument < 2 ** 31 else ctypes.c_void_p(argument)
    if isinstance(argument, bytes):
        return ctypes.c_char_p(argument)
    return argument


def call(function, *arguments):
    """Calls it; a status other than 0 raises with the function's name."""
    status = function(*[convert(one) for one in arguments])
    if status:
        raise Failure(f"{function.__name__}: status {status}")


class Array:
    """An array in device memory, filled from a NumPy array, column by column if order is "F"; get() reads it back."""

    def __init__(self, values, order="C"):
        values = np.asarray(values)
        self.order, self.dtype, self.shape = order, values.dtype, values.shape
        flat = np.ascontiguousarray(values.flatten(order))
        pointer = ctypes.c_void_p()
        call(_runtime.cudaMalloc, ctypes.byref(pointer), ctypes.c_size_t(max(flat.nbytes, 1)))
        self.address, self.bytes = pointer.value, flat.nbytes
        call(_runtime.cudaMemcpy, self, flat, ctypes.c_size_t(flat.nbytes), 1)

    def get(self):
        flat = np.empty(self.bytes // self.dtype.itemsize, self.dtype)
        call(_runtime.cudaMemcpy, flat, self, ctypes.c_size_t(self.bytes), 2)
        return flat.reshape(self.shape, order=self.order)

    def at(self, elements):
        """The address of that element."""
        return ctypes.c_void_p(self.address + elements * self.dtype.itemsize)

    def __del__(self):
        try:
            _runtime.cudaFree(ctypes.c_void_p(self.address))
        except (AttributeError, TypeError):
            pass


def zeros(shape, dtype=np.float32, order="C"):
    return Array(np.zeros(shape, dtype), order)


def pointers(arrays):
    """An array of addresses, in device memory."""
    return Array(np.array([one.address for one in arrays], np.uint64))


def parts(array, count):
    """The addresses of COUNT equal parts of an array, in device memory."""
    return Array(np.array([array.address + i * (array.bytes // count) for i in range(count)], np.uint64))


def wait():
    call(_runtime.cudaDeviceSynchronize)


def new_stream():
    stream = ctypes.c_void_p()
    call(_runtime.cudaStreamCreateWithFlags, ctypes.byref(stream), 1)
    return stream


def captured(stream, work, launches=1):
    """What WORK puts into STREAM, captured as a graph and launched."""
    graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
    call(_runtime.cudaStreamBeginCapture, stream, 2)
    try:
        work()
    finally:
        status = _runtime.cudaStreamEndCapture(stream, ctypes.byref(graph))
    if status:
        raise Failure(f"cudaStreamEndCapture: status {status}")
    call(_runtime.cudaGraphInstantiate, ctypes.byref(executable), graph, ctypes.c_ulonglong(0))
    for _ in range(launches):
        call(_runtime.cudaGraphLaunch, executable, stream)
    call(_runtime.cudaStreamSynchronize, stream)
    call(_runtime.cudaGraphExecDestroy, executable)
    call(_runtime.cudaGraphDestroy, graph)


# bfloat16 and fp8 as their bits
def to_bfloat16(values):
    bits = np.asarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bfloat16(bits):
    return (np.asarray(bits, np.uint16).astype(np.uint32) << 16).view(np.float32)


def fp8_values(exponent_bits, mantissa_bits):
    """All 256 values of an fp8 type, by its bits; e4m3 has no infinity (OCP 8-bit floating point specification, section 5)."""
    bits = np.arange(256)
    sign = np.where(bits & 0x80, -1.0, 1.0)
    exponent, mantissa = (bits & 0x7f) >> mantissa_bits, bits & ((1 << mantissa_bits) - 1)
    bias = (1 << (exponent_bits - 1)) - 1
    values = np.where(exponent == 0, mantissa * 2.0 ** (1 - bias - mantissa_bits),
                      (1 + mantissa * 2.0 ** -mantissa_bits) * 2.0 ** (exponent - bias))
    if exponent_bits == 4:
        values[(bits & 0x7f) == 0x7f] = np.nan
    else:
        values[exponent == 31] = np.where(mantissa[exponent == 31] == 0, np.inf, np.nan)
    return sign * values


FP8 = {"e4m3": fp8_values(4, 3), "e5m2": fp8_values(5, 2)}


def to_fp8(values, kind):
    """The bits of the nearest finite values."""
    table = FP8[kind]
    finite = np.flatnonzero(np.isfinite(table))
    return finite[np.abs(np.asarray(values)[..., None] - table[finite]).argmin(-1)].astype(np.uint8)


def from_fp8(bits, kind):
    return FP8[kind][np.asarray(bits)].astype(np.float32)


def compare(ours, right):
    ours, right = np.asarray(ours), np.asarray(right)
    if ours.shape != right.shape:
        raise Failure(f"shape {ours.shape} for {right.shape}")
    if not right.size:
        return 0.0
    wide = np.complex128 if np.iscomplexobj(right) or np.iscomplexobj(ours) else np.float64
    error = np.abs(ours.astype(wide) - right.astype(wide)).max() / max(np.abs(right.astype(wide)).max(), 1e-300)
    return float(error) if np.isfinite(error) else float("inf")


ONLY = os.environ.get("CHECK")  # run only the checks whose names contain this


def check(name, case, tolerance):
    """Prints: name, outcome, seconds, error and tolerance, separated by tabs. CASE gives the error."""
    if ONLY and ONLY not in name:
        return
    start, error = time.time(), float("nan")
    try:
        error = case()
        outcome = "pass" if error <= tolerance else "WRONG"
    except Exception as problem:
        outcome = "fail: " + " ".join(f"{type(problem).__name__}: {problem}".split())[:160]
    print(f"{name}\t{outcome}\t{time.time() - start:.1f}\t{error:.1e}\t{tolerance:.1e}", flush=True)
