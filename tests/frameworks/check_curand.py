# SPDX-License-Identifier: Apache-2.0
"""cuRAND: every generator on the virtual GPU gives the numbers of the library's own generator on the CPU, and those of its definition where that
is published: Philox4x32-10 (Salmon et al., 2011), Sobol (SciPy, with the directions of Joe and Kuo). Distributions have the
moments that they must have, and the device functions of curand_kernel.h, compiled at run time, give what the definition says.

Integers and uniform numbers must be equal; normal and log-normal ones may differ by what sine, logarithm and square root of the machine differ by."""
import ctypes
import os

import numpy as np
import scipy.stats

from gpu import FOLDER, Array, Failure, call, captured, check, compare, load, new_stream, wait, zeros

RAND = load("libcurand.so.10")
NVRTC = load("libnvrtc.so.13")
DRIVER = ctypes.CDLL("libcuda.so.1")
PSEUDO = {"XORWOW": 101, "Philox4x32-10": 161, "MTGP32": 141, "MRG32k3a": 121}
QUASI = {"Sobol32": 201, "scrambled Sobol32": 202, "Sobol64": 203, "scrambled Sobol64": 204}
ORDERINGS = {"best": 100, "default": 101, "seeded": 102, "legacy": 103, "dynamic": 104}
COUNT, SEED, DIMENSIONS = 24000, 1234, 20
LONG = ctypes.c_ulonglong


def generator(kind, host=False, seed=SEED, offset=0, ordering=None, dimensions=DIMENSIONS):
    pointer = ctypes.c_void_p()
    call(RAND.curandCreateGeneratorHost if host else RAND.curandCreateGenerator, ctypes.byref(pointer), kind)
    if kind < 200:
        call(RAND.curandSetPseudoRandomGeneratorSeed, pointer, LONG(seed))
    else:
        call(RAND.curandSetQuasiRandomGeneratorDimensions, pointer, dimensions)
    if ordering:
        call(RAND.curandSetGeneratorOrdering, pointer, ordering)
    if offset:
        call(RAND.curandSetGeneratorOffset, pointer, LONG(offset))
    return pointer


# name: the function, the type of the numbers, its further arguments
WAYS = {"integers": ("curandGenerate", np.uint32, ()), "uniform": ("curandGenerateUniform", np.float32, ()),
        "uniform double": ("curandGenerateUniformDouble", np.float64, ()),
        "normal": ("curandGenerateNormal", np.float32, (ctypes.c_float(1), ctypes.c_float(2))),
        "normal double": ("curandGenerateNormalDouble", np.float64, (ctypes.c_double(1), ctypes.c_double(2))),
        "lognormal": ("curandGenerateLogNormal", np.float32, (ctypes.c_float(0), ctypes.c_float(0.5))),
        "lognormal double": ("curandGenerateLogNormalDouble", np.float64, (ctypes.c_double(0), ctypes.c_double(0.5))),
        "Poisson 3": ("curandGeneratePoisson", np.uint32, (ctypes.c_double(3),)),
        "Poisson 200": ("curandGeneratePoisson", np.uint32, (ctypes.c_double(200),)),
        "Poisson 5000": ("curandGeneratePoisson", np.uint32, (ctypes.c_double(5000),))}
SAME = {"integers", "uniform", "uniform double"}
# mean and deviation of each distribution
MOMENTS = {"integers": (2.0 ** 31, 2.0 ** 32 / 12 ** 0.5), "uniform": (0.5, 12 ** -0.5), "normal": (1, 2), "Poisson 3": (3, 3 ** 0.5),
           "lognormal": (np.exp(0.125), (np.exp(0.25) - 1) ** 0.5 * np.exp(0.125)), "Poisson 200": (200, 200 ** 0.5), "Poisson 5000": (5000, 5000 ** 0.5)}


def numbers(kind, way, host=False, count=COUNT, how="plain", times=1, **options):
    function, dtype, further = WAYS[way]
    if way == "integers" and kind >= 203:
        function, dtype = "curandGenerateLongLong", np.uint64
    made, where = generator(kind, host, **options), np.zeros(count, dtype) if host else zeros(count, dtype)

    def work():
        call(getattr(RAND, function), made, where, ctypes.c_size_t(count), *further)
    if how == "plain":
        for _ in range(times):
            work()
    else:
        stream = new_stream()
        call(RAND.curandSetStream, made, stream)
        call(RAND.curandGenerateSeeds, made)
        wait()
        if how == "graph":
            captured(stream, work)
        else:
            work()
    if not host:
        wait()
    call(RAND.curandDestroyGenerator, made)
    return where if host else where.get()


known = {}


def usual(kind, way):
    """With the seed and the order of every check that does not say otherwise; made once, some generators take seconds to begin."""
    if (kind, way) not in known:
        known[kind, way] = numbers(kind, way)
    return known[kind, way]


def as_on_the_cpu(kind, way, **options):
    def case():
        ours = numbers(kind, way, **options) if options else usual(kind, way)
        right = numbers(kind, way, True, **{k: v for k, v in options.items() if k != "how"})
        if way in SAME:
            return float((ours != right).mean())
        return compare(ours, right)
    return case


def moments(kind, way):
    """In deviations of the mean of as many numbers, and of their standard deviation; quasi-random numbers are nearer."""
    def case():
        values = usual(kind, way).astype(np.float64)
        if kind >= 203 and way == "integers":
            values /= 2.0 ** 32
        mean, deviation = MOMENTS[way.removesuffix(" double")]
        return max(abs(values.mean() - mean) / deviation * COUNT ** 0.5, abs(values.std() / deviation - 1) * (COUNT / 4) ** 0.5) / 5
    return case


def ordered(kind, ordering):
    values = numbers(kind, "uniform", ordering=ordering).astype(np.float64)
    return max(abs(values.mean() - 0.5) * (12 * COUNT) ** 0.5, abs(values.std() * 12 ** 0.5 - 1) * (COUNT / 4) ** 0.5) / 5


# ---- definitions ----

def philox(counter, key):
    """Philox4x32-10 of arrays of four counter words and two key words."""
    c, k = [np.asarray(word, np.uint64) for word in counter], [np.uint64(word) for word in key]
    low = np.uint64(0xffffffff)
    for _ in range(10):
        first, second = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(second >> np.uint64(32)) ^ c[1] ^ k[0], second & low, (first >> np.uint64(32)) ^ c[3] ^ k[1], first & low]
        k = [(k[0] + np.uint64(0x9E3779B9)) & low, (k[1] + np.uint64(0xBB67AE85)) & low]
    return np.stack(c, -1).astype(np.uint32)


def known_answers():
    """Of Random123's kat_vectors, for the reference above."""
    zero, ones = philox((0, 0, 0, 0), (0, 0)), philox((2 ** 32 - 1,) * 4, (2 ** 32 - 1,) * 2)
    return float(list(zero) != [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8] or list(ones) != [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd])


def philox_of_the_library():
    """Every group of four is of one counter and one of the subsequences 0, 1, 2, ..., each of which is used."""
    ours = numbers(161, "integers", count=4096, ordering=ORDERINGS["legacy"]).reshape(-1, 4)
    blocks = np.arange(1024, dtype=np.uint64)
    zero = np.zeros(1024, np.uint64)
    return float((ours != philox((zero, zero, blocks, zero), (SEED, 0))).any())


def mersenne():
    """The library's generator on the CPU interleaves 8192 sequences, of which the first begins as the published one."""
    ours, right = numbers(142, "integers", count=20000), numbers(142, "integers", host=True, count=20000)
    first = np.random.RandomState(SEED).randint(0, 2 ** 32, 1, np.uint32)
    return float((ours != right).any() or ours[0] != first[0])


def sobol(kind, bits):
    ours = numbers(kind, "integers", count=1024 * DIMENSIONS).reshape(DIMENSIONS, 1024)
    right = scipy.stats.qmc.Sobol(DIMENSIONS, scramble=False, bits=bits).random(1024).T
    return float(abs(ours / 2.0 ** bits - right).max())


check("Philox4x32-10 reference", known_answers, 0)
check("Philox4x32-10 by its definition", philox_of_the_library, 0)
check("MT19937", mersenne, 0)
check("Sobol32 by its definition", lambda: sobol(201, 32), 2.0 ** -32)
check("Sobol64 by its definition", lambda: sobol(203, 64), 2.0 ** -52)


# ---- device functions ----

SOURCE = r"""
#include <curand_kernel.h>
#define EACH(name, state, type, expression)                                             \
  extern "C" __global__ void name(type *out, unsigned long long seed, int count) {      \
    int thread = blockIdx.x * blockDim.x + threadIdx.x;                                 \
    state s;                                                                            \
    curand_init(seed, thread, 3, &s);                                                   \
    for (int n = 0; n < count; n++) out[thread * count + n] = expression;               \
  }
EACH(philox_integers, curandStatePhilox4_32_10_t, unsigned, curand(&s))
EACH(philox_uniform, curandStatePhilox4_32_10_t, float, curand_uniform(&s))
EACH(philox_normal, curandStatePhilox4_32_10_t, float, curand_normal(&s))
EACH(philox_poisson, curandStatePhilox4_32_10_t, unsigned, curand_poisson(&s, 30.0))
EACH(xorwow_integers, curandStateXORWOW_t, unsigned, curand(&s))
EACH(xorwow_uniform, curandStateXORWOW_t, double, curand_uniform_double(&s))
EACH(xorwow_normal, curandStateXORWOW_t, double, curand_normal_double(&s))
EACH(xorwow_poisson, curandStateXORWOW_t, unsigned, curand_poisson(&s, 30.0))
EACH(mrg_uniform, curandStateMRG32k3a_t, float, curand_uniform(&s))
EACH(mrg_normal, curandStateMRG32k3a_t, float, curand_normal(&s))
EACH(mrg_poisson, curandStateMRG32k3a_t, unsigned, curand_poisson(&s, 30.0))
"""


def compiled():
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    include = os.path.join(FOLDER, "cu13", "include")
    options = [b"--gpu-architecture=compute_80", f"--include-path={include}".encode(), f"--include-path={include}/cccl".encode()]
    call(NVRTC.nvrtcCreateProgram, ctypes.byref(program), SOURCE.encode(), b"device.cu", 0, ctypes.c_void_p(), ctypes.c_void_p())
    status = NVRTC.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    if status:
        NVRTC.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        NVRTC.nvrtcGetProgramLog(program, log)
        raise Failure(log.value.decode()[:150])
    call(NVRTC.nvrtcGetPTXSize, program, ctypes.byref(size))
    text, module = ctypes.create_string_buffer(size.value), ctypes.c_void_p()
    call(NVRTC.nvrtcGetPTX, program, text)
    zeros(1)  # the device's context is there
    call(DRIVER.cuModuleLoadData, ctypes.byref(module), text)
    return module


made = {}


def on_device(name, dtype, threads=256, count=40):
    if "module" not in made:
        made["module"] = compiled()
    function, out = ctypes.c_void_p(), zeros(threads * count, dtype)
    call(DRIVER.cuModuleGetFunction, ctypes.byref(function), made["module"], name.encode())
    values = [ctypes.c_void_p(out.address), LONG(SEED), ctypes.c_int(count)]
    arguments = (ctypes.c_void_p * 3)(*[ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in values])
    call(DRIVER.cuLaunchKernel, function, threads // 64, 1, 1, 64, 1, 1, 0, ctypes.c_void_p(), arguments, ctypes.c_void_p())
    wait()
    return out.get().reshape(threads, count)


def device_philox():
    """Thread t has subsequence t and begins at its fourth number."""
    ours = on_device("philox_integers", np.uint32)
    blocks, threads = np.meshgrid(np.arange(11, dtype=np.uint64), np.arange(256, dtype=np.uint64))
    zero = np.zeros_like(blocks)
    right = philox((blocks, zero, threads, zero), (SEED, 0)).reshape(256, 44)[:, 3:43]
    return float((ours != right).any())


def device_moments(name, dtype, mean, deviation):
    def case():
        values = on_device(name, dtype).astype(np.float64)
        n = values.size
        return max(abs(values.mean() - mean) / deviation * n ** 0.5, abs(values.std() / deviation - 1) * (n / 4) ** 0.5) / 5
    return case


check("device Philox4x32-10 by its definition", device_philox, 0)
for name in ("philox", "xorwow", "mrg"):
    wide = np.float64 if name == "xorwow" else np.float32
    check(f"device {name} uniform moments", device_moments(f"{name}_uniform", wide, 0.5, 12 ** -0.5), 1)
    check(f"device {name} normal moments", device_moments(f"{name}_normal", wide, 0, 1), 1)
    check(f"device {name} Poisson moments", device_moments(f"{name}_poisson", np.uint32, 30, 30 ** 0.5), 1)
check("device xorwow integers moments", device_moments("xorwow_integers", np.uint32, 2.0 ** 31, 2.0 ** 32 / 12 ** 0.5), 1)


# ---- every generator and distribution ----

for name, kind in {**QUASI, **PSEUDO}.items():
    for way in WAYS:
        if not way.startswith("Poisson"):
            check(f"{name} {way} as on the CPU", as_on_the_cpu(kind, way), 0 if way in SAME else 1e-13 if "double" in way else 1e-5)
        check(f"{name} {way} moments", moments(kind, way), 1)
    check(f"{name} twice, offset", as_on_the_cpu(kind, "integers", times=2, **({} if kind == 141 else {"offset": 1000})), 0)
    check(f"{name} on a stream", as_on_the_cpu(kind, "integers", how="stream"), 0)
    check(f"{name} in a graph", as_on_the_cpu(kind, "integers", how="graph"), 0)
    check(f"{name} the same again", lambda: float((numbers(kind, "normal") != usual(kind, "normal")).any()), 0)
for name, ordering in ORDERINGS.items():
    for kind in ("XORWOW", "MRG32k3a", "Philox4x32-10"):
        if name == "seeded" and kind != "XORWOW":
            continue
        check(f"{kind} ordering {name}", lambda: ordered(PSEUDO[kind], ordering), 1)
